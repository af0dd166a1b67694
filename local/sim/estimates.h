/* estimates: asks for an estimate for every job of a workload when it is submitted, by every
 * method, and scores it when the job starts: `nui sim --estimates`.
 *
 * Nothing but what a site would know at that moment is known: jobs that ended, those that run since
 * when, the queue. Corrections learn from the jobs that started so far. */
#ifndef NUI_LOCAL_SIM_ESTIMATES_H
#define NUI_LOCAL_SIM_ESTIMATES_H

#include "local/estimate/estimator.h"
#include "local/sim/simrun.h"
#include "proto/base/strbuf.h"

struct estimates_summary {
    struct score score;
    double ms_mean, ms_max; /* real time of one answer */
};

struct estimates_row {
    time_us asked;    /* TIME_US_NONE: never */
    duration_us wait; /* from asked to the start; -1: never started */
    struct estimate given[ESTIMATE_METHODS];
};

struct estimates {
    uint64_t count;
    struct estimates_row *row; /* of workload->job[i] */
    struct estimates_summary method[ESTIMATE_METHODS];
};

/* Like simrun_replay, with the questions. */
int estimates_replay (const struct workload *workload, const struct machine *machine,
                      const struct policy *policy, const struct engine_site *site, duration_us tick,
                      uint64_t seed, simrun_progress *progress, void *self, struct simrun *run,
                      struct estimates *out, struct err *err);
void estimates_free (struct estimates *estimates);

/* One row for each job and method, in seconds. */
void estimates_csv (struct strbuf *out, const struct workload *workload,
                    const struct estimates *estimates);

#endif
