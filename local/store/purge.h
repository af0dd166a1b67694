/* purge: jobs that ended long ago are forgotten, with what their users signed and the answers of
 * co-allocations. Their history stays (history.h).
 *
 * A job whose end somebody has not yet heard must not go: a metascheduler that asks again for it
 * would have it run twice. So a purge is done in two steps: a mark is taken of all that is written
 * down now; once the metaschedulers have acknowledged every event up to it, what had ended before
 * the mark may go. */
#ifndef NUI_LOCAL_STORE_PURGE_H
#define NUI_LOCAL_STORE_PURGE_H

#include "local/store/local_store.h"

struct purge_mark {
    uint64_t change; /* jobs changed later are not meant */
    uint64_t event;  /* the last event written */
};

int purge_mark_take (struct local_store *store, struct purge_mark *out, struct err *err);
int purge_mark_reached (struct local_store *store, const struct purge_mark *mark, bool *out,
                        struct err *err);

/* In a transaction: up to limit jobs within the mark that ended before, each with its signed job and
 * its part, and as many tombstones of parts that never had a job. A job whose hold the bank has not
 * answered stays. fn is called for each job. *count_out: jobs and tombstones. */
int purge_jobs (struct local_store *store, const struct purge_mark *mark, time_us before,
                uint32_t limit, void (*fn) (void *arg, uint64_t number), void *arg,
                uint32_t *count_out, struct err *err);

#endif
