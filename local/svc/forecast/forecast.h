/* forecast: start-time estimates of the daemon (local/estimate), and their record.
 *
 * After a change of the schedule, and every minute, the site is simulated forward: the queue, then a
 * table of shapes. That is done in slices of the event loop of FORECAST_SLICE units of work, of some 8 ns
 * each, so that the loop is held for 5 ms at most with 10,000 jobs in the queue (tests/bench/estimate
 * measures it), with FORECAST_PACE times as long for others after each: calls that stand in a queue are
 * slowed by a fifth, not stopped. A survey begins no sooner than that the processor was free for others
 * FORECAST_SHARE times as long as the last one took. Results are kept until the next. Questions about a shape or by another method are answered at
 * once, within FORECAST_ASK units; where that is not enough, or there are more than FORECAST_ASK_JOBS jobs,
 * from the last survey.
 *
 * Whatever is said of a job is durable before anybody sees it: its first answer, and each later one that
 * differs (by surveys: by more than a minute and a fifth of what is left; asked for: than a minute), which
 * until then stands and is what is shown. When the job starts they are scored, the first apart from the
 * others. What is said of a job that has not come is its first answer if it comes. Run times come from the
 * history of ended jobs (local/store/history.h). Under SIMULATION nothing is forecast. */
#ifndef NUI_LOCAL_SVC_FORECAST_H
#define NUI_LOCAL_SVC_FORECAST_H

#include "local/estimate/estimator.h"
#include "local/svc/svc_i.h"

enum {
    FORECAST_SLICE = 150000,
    FORECAST_PACE = 4,
    FORECAST_SHARE = 20,
    FORECAST_ASK = 600000,
    FORECAST_ASK_JOBS = 3000,
    FORECAST_EVERY_S = 60,
};

/* Why nothing can be said of a job in the queue; NULL: it waits for its turn. */
const char *forecast_none (struct svc *svc, const struct site_job *job, struct arena *arena);
/* In the arena. NULL: nothing was said yet, or it does not wait. Where nothing can be said (held, not
 * before a date) it says why; of a co-allocated part it is the moment agreed. */
Nui__Common__V1__Forecast *forecast_of_job (struct svc *svc, const struct site_job *job,
                                            struct arena *arena);
/* What has no estimate, and why ('why' is not copied). */
/* It begins no earlier: all moments are that at least. */
void forecast_not_before (Nui__Common__V1__Forecast *forecast, time_us at);
Nui__Common__V1__Forecast *forecast_without (const char *method, const char *why,
                                             struct arena *arena);
/* By a method, now; ERR_NOT_FOUND, with the reason: it does not wait for its turn. */
int forecast_ask_job (struct svc *svc, const struct site_job *job, enum estimate_method method,
                      struct arena *arena, Nui__Common__V1__Forecast **out, struct err *err);
/* Of what is not in the queue: submitted now by these credentials. */
int forecast_ask_shape (struct svc *svc, const uint32_t cred[CRED_KINDS], const struct req *req,
                        uint32_t req_count, duration_us walltime, enum estimate_method method,
                        struct arena *arena, Nui__Common__V1__Forecast **out, struct err *err);
/* Of a job that a metascheduler may send. */
int forecast_quote (struct svc *svc, const struct jobspec *spec, struct arena *arena,
                    Nui__Common__V1__Forecast **out, struct err *err);
/* In the transaction that takes it in: what was said of it before is its own; fails with the transaction. */
int forecast_entered (struct svc *svc, const struct site_job *job, const struct jobspec *spec,
                      struct err *err);
/* From the table: the tightest shape that covers it; false: not yet known. */
bool forecast_table (struct svc *svc, uint32_t procs, duration_us walltime, struct estimate *out,
                     time_us *made_out);

/* Of all, then of each class; of each the first answers, then the others by kind; in the arena. */
Nui__Common__V1__EstimateRecord **forecast_records (struct svc *svc, struct arena *arena,
                                                    size_t *count_out);

struct forecast_cost {
    uint64_t surveys;
    duration_us survey; /* processor time of the last one */
    duration_us slice;  /* the longest */
    time_us surveyed;   /* TIME_US_NONE: never */
    uint64_t history;
};
void forecast_cost (struct svc *svc, struct forecast_cost *out);

#endif
