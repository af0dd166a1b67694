/* simstats: sums, means and quantiles over the jobs of a run. simrun.c calls it when the run is
 * over. Jobs that never ran count as such, and in no mean. */
#include "local/sim/simstats.h"
#include "proto/base/mem.h"

#include <stdlib.h>
#include <string.h>

static int ascending (const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The smallest value that at least this share of all does not exceed. */
static double quantile (const double *sorted, uint64_t count, double share)
{
    uint64_t at = (uint64_t)(share * (double)count);
    if ((double)at == share * (double)count && at > 0)
        at--;
    return sorted[at < count ? at : count - 1];
}

void simstats_compute (const struct workload *w, const struct engine_result *result,
                       const struct engine_summary *summary, int64_t procs_total,
                       struct simstats *out)
{
    memset (out, 0, sizeof *out);
    out->passes = summary->passes;
    out->preempted = summary->preempted;
    double *wait = mem_alloc ((w->count + 1) * sizeof wait[0]);
    double wait_sum = 0, slowdown_sum = 0, used = 0;
    time_us first = TIME_US_MAX, last = TIME_US_NONE;
    for (uint64_t i = 0; i < w->count; i++) {
        const struct engine_result *r = &result[i];
        if (w->job[i].submit < first)
            first = w->job[i].submit;
        if (r->start == TIME_US_NONE || r->end == TIME_US_NONE) {
            out->not_started++;
            continue;
        }
        double wait_s = (double)(r->start - w->job[i].submit) / US_PER_S;
        double run_s = (double)(r->end - r->start) / US_PER_S;
        double bound_s =
            run_s > SIMSTATS_SLOWDOWN_THRESHOLD_S ? run_s : SIMSTATS_SLOWDOWN_THRESHOLD_S;
        double slowdown = (wait_s + run_s) / bound_s;
        wait[out->jobs++] = wait_s;
        wait_sum += wait_s;
        slowdown_sum += slowdown > 1 ? slowdown : 1;
        used += run_s * w->job[i].procs;
        out->backfilled += r->backfilled;
        if (r->end > last)
            last = r->end;
    }
    if (out->jobs) {
        qsort (wait, out->jobs, sizeof wait[0], ascending);
        out->mean_wait_s = wait_sum / (double)out->jobs;
        out->median_wait_s = quantile (wait, out->jobs, .5);
        out->p95_wait_s = quantile (wait, out->jobs, .95);
        out->max_wait_s = wait[out->jobs - 1];
        out->mean_bounded_slowdown = slowdown_sum / (double)out->jobs;
        out->makespan_s = (double)(last - first) / US_PER_S;
        if (out->makespan_s > 0)
            out->utilisation = used / (out->makespan_s * (double)procs_total);
    }
    free (wait);
}
