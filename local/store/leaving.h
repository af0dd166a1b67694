/* leaving: jobs that have ended and whose files are still to be taken away, and the files that could not
 * be. */
#ifndef NUI_LOCAL_STORE_LEAVING_H
#define NUI_LOCAL_STORE_LEAVING_H

#include "local/store/local_store.h"

/* All of it goes with the job, too. In a transaction: */
int leaving_put (struct local_store *store, uint64_t number, struct err *err);
int leaving_delete (struct local_store *store, uint64_t number, struct err *err);
/* Every one that is still to be taken away, by number. */
int leaving_each (struct local_store *store, void (*fn) (void *arg, uint64_t number), void *arg,
                  struct err *err);

enum leaving { LEAVING_NOTHING, LEAVING_FAILED, LEAVING_NOW };
/* NOW: its files are still to be taken away; FAILED: that is over, and some could not be. */
int leaving_state (struct local_store *store, uint64_t number, enum leaving *out, struct err *err);

/* A file that could not be taken away. It stays here while that is tried once more. */
struct leaving_file {
    uint32_t place;   /* among all that were to be taken away, from 0 */
    const char *path; /* in the job's directory */
    const char *url;  /* fit to be shown */
    const char *text; /* why not */
    int64_t bytes, bytes_done;
};

/* In a transaction: */
int leaving_failed_put (struct local_store *store, uint64_t number, const struct leaving_file *file,
                        struct err *err);
int leaving_failed_clear (struct local_store *store, uint64_t number, struct err *err);
/* By place; texts until fn returns. */
int leaving_failed_each (struct local_store *store, uint64_t number,
                         void (*fn) (void *arg, const struct leaving_file *file), void *arg,
                         struct err *err);

#endif
