/* estimates: what waiting jobs were told about their start, and when they did start. Durable, so that
 * the record of a site's estimates survives it. One row for each job that was given an estimate: the
 * first one, which is what it is scored by. Waits are counted from `given`. */
#ifndef NUI_LOCAL_STORE_ESTIMATES_H
#define NUI_LOCAL_STORE_ESTIMATES_H

#include "local/store/local_store.h"

struct store_estimate_values { /* microseconds */
    int64_t median, low50, high50, low95, high95;
};

struct store_estimate {
    uint64_t number; /* of the job */
    time_us given;
    time_us started; /* 0: it has not, as far as is known */
    const char *class_name;
    struct store_estimate_values raw;  /* before correction by the record */
    struct store_estimate_values said; /* what was told */
    uint32_t draws;
    bool certain;
};

/* In a transaction. A job that has a row keeps it. */
int store_estimate_add (struct local_store *store, const struct store_estimate *estimate,
                        struct err *err);
/* In a transaction. ERR_NOT_FOUND is no error: it was never told anything. */
int store_estimate_started (struct local_store *store, uint64_t number, time_us started,
                            struct err *err);
/* In a transaction: rows given before that moment, and of jobs that ended without a start. */
int store_estimate_purge (struct local_store *store, time_us before, struct err *err);
/* All, in the order of their starts, those without one last. Where the job started and its row does
 * not say so (a crash in between) the job's own start counts. Strings hold during the call. */
int store_estimate_each (struct local_store *store,
                         void (*fn) (void *arg, const struct store_estimate *estimate), void *arg,
                         struct err *err);

#endif
