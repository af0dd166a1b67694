/* filenote: what is known of one file of a batch, in a file of its own: the source's identity, so
 * that a part is never continued with another version; what has been made whole; an upload in
 * parts.
 *
 * Written beside and renamed, so that a kill -9 leaves the old one or the new. Not forced to disk:
 * after a start of the machine, parts are not trusted (`boot`). Blocking, short. */
#ifndef NUI_LOCAL_STAGE_FILENOTE_H
#define NUI_LOCAL_STAGE_FILENOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/strbuf.h"

enum { FILENOTE_TEXT_MAX = 1024 };

struct filenote {
    char etag[FILENOTE_TEXT_MAX]; /* strong; "": none */
    char modified[64];            /* Last-Modified as it came; sftp, file: seconds; "": unknown */
    int64_t size;                 /* -1: unknown */
    uint64_t whole_inode; /* of the part that was whole, or the file that was sent; 0: not yet */
    int64_t whole_size;
    char upload[FILENOTE_TEXT_MAX]; /* id of an upload in parts */
    int64_t part_size;
    struct strbuf parts;              /* its parts: "ETAG\n" each */
    char bucket_url[4096], user[256]; /* of that upload: whom to tell that it is given up */
};

#define FILENOTE_NEW ((struct filenote){.size = -1})

/* Of the same URL (NULL: any) and start of the machine; else, and when it is not there,
 * FILENOTE_NEW. */
void filenote_read (int dir, const char *name, const char *url, struct filenote *out);
int filenote_write (int dir, const char *name, const char *url, const struct filenote *memo,
                    struct err *err);
void filenote_free (struct filenote *memo);
/* Nothing is known any more. */
void filenote_clear (struct filenote *memo);

#endif
