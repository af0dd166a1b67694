/* estimates: what waiting jobs were told about their start, and when they did start. Durable, so that
 * the record of a site's estimates survives it. The first answer that a job was given has a row of its
 * own; every other one is a row of the later answers, in the order in which they were given. Waits are
 * counted from `given`. */
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
/* In a transaction: of all answers of a job; of one that was never told anything, nothing. */
int store_estimate_started (struct local_store *store, uint64_t number, time_us started,
                            struct err *err);
/* In a transaction: answers given before that moment, those of jobs that ended without a start, and all
 * later answers but the newest STORE_LATER_MAX. */
int store_estimate_purge (struct local_store *store, time_us before, struct err *err);
/* In a transaction, before rows are read: where a job started and its answers do not say so (a crash in
 * between) the job's own start counts. */
int store_estimate_heal (struct local_store *store, struct err *err);
/* All first answers, in the order of their starts, those without one last. Strings hold during the call. */
int store_estimate_each (struct local_store *store,
                         void (*fn) (void *arg, const struct store_estimate *estimate), void *arg,
                         struct err *err);

enum { STORE_LATER_MAX = 200000 }; /* some 30 MB */

struct store_later {
    uint64_t number;
    const char *kind; /* who gave it: "later", or as its asker called the method */
    const char *class_name;
    time_us given, started; /* as above */
    struct store_estimate_values said;
    uint32_t draws;
    bool certain;
    const char *cause; /* what had moved it; "" */
};

/* In a transaction. */
int store_later_add (struct local_store *store, const struct store_later *later, struct err *err);
/* Those of one job, or (number 0) of all that wait or started after `since`: those that wait
 * first, then by their starts; as they were given. Strings hold during the call, in which the store must be
 * left alone. */
int store_later_each (struct local_store *store, uint64_t number, time_us since,
                      void (*fn) (void *arg, const struct store_later *later), void *arg,
                      struct err *err);

#endif
