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

enum { PURGE_MAX = 200 };

struct purge_job {
    uint64_t number;
    uint32_t incarnation;
};
/* Up to PURGE_MAX jobs within the mark that ended before; one whose hold the bank has not answered
 * is not among them. */
int purge_candidates (struct local_store *store, const struct purge_mark *mark, time_us before,
                      struct purge_job out[PURGE_MAX], uint32_t *count_out, struct err *err);
/* In a transaction: these jobs, with what their users signed. */
int purge_forget (struct local_store *store, const struct purge_job *jobs, uint32_t count,
                  struct err *err);
/* In a transaction: up to limit messages that have arrived and were appended before `arrived`, and up to as many dead
 * letters of every box that died before `dead`. */
int purge_messages (struct local_store *store, time_us arrived, time_us dead, uint32_t limit,
                    struct err *err);
/* In a transaction: up to PURGE_MAX parts of co-allocations, settled before, whose job is gone or
 * never was, and the epochs of their transactions. */
int purge_tombstones (struct local_store *store, time_us before, uint32_t *count_out,
                      struct err *err);

#endif
