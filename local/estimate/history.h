/* history: what ended jobs asked for and how long they ran; what came when. Pure.
 *
 * Keeps the last `capacity` ended jobs and submissions, linked by what they have in common, newest
 * first: the same user with the same request, the same user with the same limit, the user, then
 * account, group, class and the whole site among jobs of a like limit. history_runs turns that into
 * a weighted set of run times: each level takes what its own samples earn (n / (n + k)) of what the
 * closer levels left, and within a level recent jobs count more. Predictions are for reports only:
 * backfill uses the wallclock limit.
 *
 * Cost: ended and arrived O(1); history_runs O(RUNS_MAX); memory about 150 bytes a job kept. */
#ifndef NUI_LOCAL_ESTIMATE_HISTORY_H
#define NUI_LOCAL_ESTIMATE_HISTORY_H

#include "local/core/types.h"
#include "proto/base/rng.h"

/* What is known of a job before it runs. */
struct job_known {
    uint32_t cred[CRED_KINDS]; /* CRED_NONE where absent */
    uint32_t procs;
    duration_us limit; /* > 0 */
};

struct history;

struct history *history_create (uint32_t capacity); /* rounded up to a power of two; never NULL */
void history_destroy (struct history *history);     /* NULL is a no-op */

void history_arrived (struct history *history, const struct job_known *job, time_us submit);
/* It ran for `run` (at most its limit counts). */
void history_ended (struct history *history, const struct job_known *job, duration_us run);

uint64_t history_ended_count (const struct history *history); /* ever */

enum { RUNS_MAX = 64 };
struct runs { /* a distribution: run[i] with probability upto[i] - upto[i - 1] */
    uint32_t count;
    duration_us run[RUNS_MAX];
    float upto[RUNS_MAX]; /* ascending, the last is 1 */
};

/* How long a job that has run for `elapsed` (0: not begun) will have run in the end: > elapsed, at
 * most its limit (or a little past elapsed, where that is over the limit). */
void history_runs (const struct history *history, const struct job_known *job, duration_us elapsed,
                   struct runs *out);
/* One of them, blurred a little: two runs of one program are alike, not equal. */
duration_us runs_draw (const struct runs *runs, const struct job_known *job, duration_us elapsed,
                       struct rng *rng);
/* Its mean. */
double runs_mean (const struct runs *runs);
/* The value below which a share q (0 … 1) lies. */
duration_us runs_quantile (const struct runs *runs, double q);

/* Submissions yet to come, as a stretch of the recent past again: same time of day, so many days
 * earlier, another day when it is used up. */
struct arrivals {
    const struct history *history;
    uint64_t at;       /* the next submission of the past */
    duration_us shift; /* added to its time */
    time_us until;     /* of the past, where this stretch ends */
    time_us now;
    bool none;
};
void arrivals_begin (struct arrivals *arrivals, const struct history *history, time_us now,
                     struct rng *rng);
/* false: none in the foreseeable future. */
bool arrivals_next (struct arrivals *arrivals, struct rng *rng, time_us *at_out,
                    struct job_known *job_out);

#endif
