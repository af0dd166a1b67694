/* labstats: means, quantiles, differences and bootstrap intervals over the records of runs. The
 * experiments call it. Random draws come from the seed that is given, so that a page can be made
 * again number by number. */
#include "local/sim/lab/labstats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/rng.h"

bool lab_ran (const struct lab_job *job)
{
    return job->start >= 0 && job->end >= 0;
}

double lab_wait_s (const struct lab_job *job)
{
    return job->start - job->submit;
}

static int ascending (const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double lab_quantile (double *value, uint64_t count, double share)
{
    if (count == 0)
        return 0;
    qsort (value, count, sizeof value[0], ascending);
    double at = ceil (share * (double)count) - 1;
    return value[at < 0 ? 0 : at >= (double)count ? count - 1 : (uint64_t)at];
}

double lab_mean (const double *value, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += value[i];
    return count ? sum / (double)count : 0;
}

double lab_first_submit_s (const struct lab_result *r)
{
    return r->count ? r->job[0].submit : 0;
}

double lab_last_submit_s (const struct lab_result *r)
{
    return r->count ? r->job[r->count - 1].submit : 0;
}

double lab_last_end_s (const struct lab_result *r)
{
    double last = 0;
    for (uint64_t i = 0; i < r->count; i++)
        last = r->job[i].end > last ? r->job[i].end : last;
    return last;
}

void lab_stats_compute (const struct lab_result *r, int64_t procs, struct lab_stats *out)
{
    double *wait = mem_alloc ((r->count + 1) * sizeof wait[0]);
    double slowdown = 0, xfactor = 0, work = 0;
    memset (out, 0, sizeof *out);
    for (uint64_t i = 0; i < r->count; i++) {
        const struct lab_job *j = &r->job[i];
        if (!lab_ran (j)) {
            out->not_started++;
            continue;
        }
        double w = lab_wait_s (j), run = j->end - j->start, bound = run > 10 ? run : 10;
        wait[out->jobs++] = w;
        slowdown += (w + run) / bound > 1 ? (w + run) / bound : 1;
        xfactor += (w + j->limit) / j->limit;
        work += run * j->procs;
        out->backfilled += j->backfilled;
    }
    if (out->jobs) {
        double from = lab_first_submit_s (r), until = lab_last_submit_s (r),
               jobs = (double)out->jobs;
        out->mean_wait_s = lab_mean (wait, out->jobs);
        out->median_wait_s = lab_quantile (wait, out->jobs, .5);
        out->p95_wait_s = lab_quantile (wait, out->jobs, .95);
        out->max_wait_s = wait[out->jobs - 1];
        out->slowdown = slowdown / jobs;
        out->xfactor = xfactor / jobs;
        out->makespan_s = lab_last_end_s (r) - from;
        out->proc_h = work / 3600;
        if (out->makespan_s > 0)
            out->used = work / (out->makespan_s * (double)procs);
        if (until > from)
            lab_use (r, procs, from, until, 1, &out->used_loaded);
    }
    free (wait);
}

void lab_use (const struct lab_result *r, int64_t procs, double from, double until, uint32_t count,
              double *out)
{
    double width = (until - from) / count;
    memset (out, 0, count * sizeof out[0]);
    for (uint64_t i = 0; i < r->count && width > 0; i++) {
        const struct lab_job *j = &r->job[i];
        if (!lab_ran (j) || j->end <= from || j->start >= until)
            continue;
        double begin = j->start > from ? j->start : from, end = j->end < until ? j->end : until;
        uint32_t at = (uint32_t)((begin - from) / width);
        for (; at < count && from + at * width < end; at++) {
            double low = from + at * width, high = low + width;
            out[at] += ((end < high ? end : high) - (begin > low ? begin : low)) * j->procs;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] /= width * (double)procs;
}

struct interval95 lab_bootstrap (const double *value, uint64_t count, uint64_t seed)
{
    struct interval95 out = {lab_mean (value, count), 0, 0};
    uint64_t blocks = count < 2 * LAB_BLOCKS ? count : LAB_BLOCKS;
    uint64_t length = blocks ? count / blocks : 0;
    if (count < 2) {
        out.low = out.high = out.mean;
        return out;
    }
    double *sum = mem_alloc ((count + length + 1) * sizeof sum[0]); /* running, once around */
    double *mean = mem_alloc (LAB_RESAMPLES * sizeof mean[0]);
    struct rng rng;
    sum[0] = 0;
    for (uint64_t i = 0; i < count + length; i++)
        sum[i + 1] = sum[i] + value[i % count];
    rng_seed (&rng, seed, 95);
    for (int r = 0; r < LAB_RESAMPLES; r++) {
        double total = 0;
        for (uint64_t b = 0; b < blocks; b++) {
            uint64_t at = (uint64_t)(rng_unit (&rng) * (double)count);
            total += sum[at + length] - sum[at];
        }
        mean[r] = total / (double)(blocks * length);
    }
    out.low = lab_quantile (mean, LAB_RESAMPLES, .025);
    out.high = lab_quantile (mean, LAB_RESAMPLES, .975);
    free (sum);
    free (mean);
    return out;
}

bool lab_apart (const struct interval95 *d)
{
    return d->low > 0 || d->high < 0;
}
