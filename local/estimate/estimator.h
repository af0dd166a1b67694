/* estimator: when will it start? Four ways behind one interface, and the record that corrects them.
 * Pure: no clock, no I/O; what is random comes from the seed.
 *
 *   limits      all jobs run to their limits, nobody else comes: Maui's answer from reservations
 *   priority    strictly after all that are ahead, as long as jobs alike took on average
 *   history     quantiles of the waits of jobs alike (waits.h)
 *   simulation  the site simulated forward with run times and arrivals from history (simulate.h)
 *
 * The caller tells it what happens (arrived, started, ended), shows it the cluster (estimator_see),
 * asks, and when a job starts has the answers that were given scored (estimator_score). Answers are
 * waits from the moment of estimator_see. */
#ifndef NUI_LOCAL_ESTIMATE_ESTIMATOR_H
#define NUI_LOCAL_ESTIMATE_ESTIMATOR_H

#include "local/estimate/record.h"
#include "local/estimate/simulate.h"
#include "local/estimate/waits.h"

enum estimate_method {
    ESTIMATE_LIMITS,
    ESTIMATE_PRIORITY,
    ESTIMATE_HISTORY,
    ESTIMATE_SIMULATION,
    ESTIMATE_METHODS
};
const char *estimate_method_name (enum estimate_method method); /* "limits" … */

struct estimator_options {
    uint32_t history; /* ended jobs that are remembered; 0: ESTIMATOR_HISTORY */
    uint32_t draws;   /* of the simulation, at most; 0: ESTIMATOR_DRAWS */
    uint64_t work;    /* of one simulated answer; 0: ESTIMATOR_WORK */
    bool bounded; /* no answer (ERR_LIMIT) where the least draws would need more work than that */
    uint64_t seed;
};
enum {
    ESTIMATOR_HISTORY = 8192,
    ESTIMATOR_DRAWS = 40,
    ESTIMATOR_WORK = 300000 /* some milliseconds on one core; bench: tests/bench/estimate */
};

struct estimator;
struct estimator *estimator_create (const struct estimator_options *options); /* never NULL */
void estimator_destroy (struct estimator *estimator);

void estimator_arrived (struct estimator *estimator, const struct job_known *job, time_us submit);
void estimator_started (struct estimator *estimator, const struct job_known *job, duration_us wait);
void estimator_ended (struct estimator *estimator, const struct job_known *job, duration_us run);

/* The cluster as it is; pointers into it are not kept. */
int estimator_see (struct estimator *estimator, struct cluster *cluster, time_us now,
                   struct err *err);
const struct scene *estimator_scene (const struct estimator *estimator);
const struct history *estimator_history (const struct estimator *estimator);
/* Before the cluster's policy is replaced, whatever was seen is forgotten. */
void estimator_policy_changed (struct estimator *estimator);

/* What a method says before correction, of a waiting job that estimator_see saw, or (spec not NULL,
 * with an id above all others) of one that is not in the queue. ERR_NOT_FOUND: the job is not among
 * those that may start (held, reserved for, not before a date). ERR_LIMIT: see bounded. cluster: as seen last. */
int estimator_ask (struct estimator *estimator, enum estimate_method method,
                   struct cluster *cluster, struct job_id id, const struct job_spec *spec,
                   struct estimate *raw_out, struct err *err);

/* control_apply by the method's control. */
void estimator_correct (const struct estimator *estimator, enum estimate_method method,
                        const struct estimate *raw, struct estimate *out);
/* The job started: the control learns. */
void estimator_score (struct estimator *estimator, enum estimate_method method,
                      const struct estimate *raw, duration_us wait);

#endif
