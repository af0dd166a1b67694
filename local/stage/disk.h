/* disk: the work on one file that would hold the loop up, done by a thread of its own: copying,
 * hashing, writing out (fsync).
 *
 * The thread sees its order only. A task that is dropped goes on to the next block and then ends by
 * itself, with its own descriptors. */
#ifndef NUI_LOCAL_STAGE_DISK_H
#define NUI_LOCAL_STAGE_DISK_H

#include <event2/event.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/err.h"

struct disk_order {
    int from, to;       /* dup'ed; -1: nothing to read, or only to read */
    int64_t begin, end; /* bytes of both; end -1: until `from` ends */
    EVP_MD_CTX *hash; /* of what is read; taken over (also on failure), handed back in the callback;
                         NULL: none */
    bool sync;        /* `to` to disk at the end */
};

struct disk_result {
    int error; /* errno; 0: done. ESTALE: `from` ended before `end` */
    int64_t end;
    EVP_MD_CTX *hash; /* the receiver's */
};

struct disk;
/* From the loop; the task is over and freed. */
typedef void (*disk_fn) (void *arg, struct disk_result *result);

struct disk *disk_begin (struct event_base *base, const struct disk_order *order, disk_fn fn,
                         void *arg, struct err *err);
int64_t disk_done (const struct disk *disk); /* how far it is: an offset like `begin` */
void disk_drop (struct disk *disk);          /* no callback comes; NULL is a no-op */

#endif
