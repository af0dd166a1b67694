/* labstats: what the jobs of one run, or of two to be compared, come to. Pure. */
#ifndef NUI_LOCAL_SIM_LAB_LABSTATS_H
#define NUI_LOCAL_SIM_LAB_LABSTATS_H

#include <stdbool.h>

#include "local/sim/lab/labrun.h"

struct lab_stats {
    uint64_t jobs, not_started, backfilled;
    double mean_wait_s, median_wait_s, p95_wait_s, max_wait_s;
    double slowdown;   /* mean of max (1, (wait + run) / max (run, 10 s)) */
    double xfactor;    /* mean of (wait + limit) / limit, as Maui computes it */
    double makespan_s; /* first submission to last end */
    double used;       /* share of the machine over the makespan */
    /* the same, from the first submission to the last: no emptying at the end */
    double used_loaded;
    double proc_h; /* processor-hours done */
};
void lab_stats_compute (const struct lab_result *result, int64_t procs, struct lab_stats *out);

bool lab_ran (const struct lab_job *job);
double lab_wait_s (const struct lab_job *job);

/* Mean share of procs in use in each of count equal stretches of [from_s, until_s). */
void lab_use (const struct lab_result *result, int64_t procs, double from_s, double until_s,
              uint32_t count, double *out);
double lab_first_submit_s (const struct lab_result *result);
double lab_last_submit_s (const struct lab_result *result);
double lab_last_end_s (const struct lab_result *result);

struct interval95 {
    double mean, low, high;
};
/* Mean with a 95 % bootstrap interval. Neighbouring jobs wait for the same reason, so whole blocks
 * of neighbours are drawn (circular block bootstrap, Politis & Romano 1992), LAB_BLOCKS of them,
 * each of count / LAB_BLOCKS values; 2000 resamples. With fewer than two values per block each
 * value is a block of its own. Cost O(count + resamples * blocks). */
enum { LAB_BLOCKS = 40, LAB_RESAMPLES = 2000 };
struct interval95 lab_bootstrap (const double *value, uint64_t count, uint64_t seed);
/* Neither end on the other side of 0. */
bool lab_apart (const struct interval95 *difference);

/* value is sorted. The smallest value that at least this share does not exceed; 0 when none. */
double lab_quantile (double *value, uint64_t count, double share);
double lab_mean (const double *value, uint64_t count);

#endif
