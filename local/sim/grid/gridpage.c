/* The page of `nui sim --grid`: what the grid gains, and what co-allocation costs the others. */
#include <math.h>
#include <stdlib.h>

#include "local/sim/grid/gridcmd.h"
#include "local/sim/lab/report.h"
#include "proto/base/mem.h"

enum { PLAIN = 4 };

static double hours (double s)
{
    return s / 3600;
}

static void gain_find (struct report *page, const struct grid_run *run)
{
    double pool = run[GRID_POOL].mean_wait_s, moved = run[GRID_MOVED].mean_wait_s;
    double ratio = pool > 0 ? moved / pool : moved > 0 ? INFINITY : 1;
    struct finding *f = report_finding (
        page, "near-the-pool", ratio, ratio <= 1.25 ? FINDING_HOLDS : FINDING_DIFFERS,
        "Jobs placed by the metascheduler wait at most a quarter longer than on one machine of all "
        "processors.",
        "%.0f s against %.0f s in one pool and %.0f s on isolated sites.", moved, pool,
        run[GRID_ISOLATED].mean_wait_s);
    if (ratio > 1.25)
        finding_why (f, "A job that needs more than any one site has free waits, where the pool "
                        "would piece it together.");
}

static void figure_gain (struct report *page, const struct grid_run *run)
{
    static const char *const category[PLAIN] = {"isolated", "one pool", "placed", "and moved"};
    double x[PLAIN], mean[PLAIN], p95[PLAIN];
    struct chart chart = {.title = "Wait",
                          .x_label = "",
                          .y_label = "hours",
                          .category = category,
                          .category_count = PLAIN,
                          .y_zero = true};
    for (int i = 0; i < PLAIN; i++) {
        x[i] = i;
        mean[i] = hours (run[i].mean_wait_s);
        p95[i] = hours (run[i].p95_wait_s);
    }
    chart_add (&chart, "mean", CHART_BARS, PLAIN, x, mean);
    chart_add (&chart, "95 % of jobs wait less", CHART_BARS, PLAIN, x, p95)->colour = 1;
    report_chart_csv (page, "wait.csv", "run", &chart);
    report_figure (page, &chart, "wait.csv",
                   "Every site for itself, one machine of all processors, and the same jobs placed "
                   "by the metascheduler: at their submission only, and moved while they wait.");
}

/* The first point is no co-allocation at all. */
static void figures_share (struct report *page, const struct grid_run *run, uint32_t count)
{
    uint32_t points = count + 1;
    double *x = mem_zero (points, sizeof *x), *extra = mem_zero (points, sizeof *extra);
    double *wait = mem_zero (points, sizeof *wait), *response = mem_zero (points, sizeof *response);
    double *use = mem_zero (points, sizeof *use);
    wait[0] = response[0] = NAN;
    use[0] = run[GRID_ISOLATED].summary.utilisation;
    for (uint32_t i = 0; i < count; i++) {
        const struct grid_run *r = &run[PLAIN + i];
        x[i + 1] = r->share * 100;
        extra[i + 1] = hours (r->local_extra_s);
        wait[i + 1] = r->summary.coallocated ? hours (r->group_wait_s) : NAN;
        response[i + 1] = r->summary.coallocated ? hours (r->group_response_s) : NAN;
        use[i + 1] = r->summary.utilisation;
    }
    struct chart cost = {.title = "What co-allocation costs the others",
                         .y_label = "hours",
                         .x_label = "co-allocated share of jobs, per cent",
                         .zero_line = true};
    chart_add (&cost, "extra wait of local jobs", CHART_POINTS, points, x, extra);
    report_chart_csv (page, "extra-wait.csv", "share_percent", &cost);
    report_figure (
        page, &cost, "extra-wait.csv",
        "How much longer the jobs that are not co-allocated wait than the very same jobs "
        "do when no job is.");
    struct chart groups = {.title = "Co-allocated jobs",
                           .y_label = "hours",
                           .y_zero = true,
                           .x_label = "co-allocated share of jobs, per cent"};
    chart_add (&groups, "wait", CHART_POINTS, points, x, wait);
    chart_add (&groups, "response (wait and run)", CHART_POINTS, points, x, response)->colour = 1;
    report_chart_csv (page, "groups.csv", "share_percent", &groups);
    report_figure (page, &groups, "groups.csv",
                   "Two halves at one moment, one at the job's home, one at another site.");
    struct chart used = {.title = "Use of all processors",
                         .y_zero = true,
                         .y_percent = 1,
                         .x_label = "co-allocated share of jobs, per cent",
                         .y_label = "in use"};
    chart_add (&used, NULL, CHART_POINTS, points, x, use);
    report_chart_csv (page, "use.csv", "share_percent", &used);
    report_figure (page, &used, "use.csv", "From the first submission to the last.");
    free (x);
    free (extra);
    free (wait);
    free (response);
    free (use);
}

static void table_runs (struct report *page, const struct grid_run *run, uint32_t count)
{
    struct strbuf rows = STRBUF_INIT;
    strbuf_puts (&rows,
                 "run\tjobs\tmean wait s\t95 % s\tslowdown\tuse %\taway\tmoved\tco-allocated\t"
                 "their wait s\tresponse s\tothers wait s\textra s\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct grid_run *r = &run[i];
        strbuf_printf (&rows, "%s\t%llu\t%.0f\t%.0f\t%.1f\t%.1f\t%llu\t%llu\t%llu", r->label,
                       (unsigned long long)r->ended, r->mean_wait_s, r->p95_wait_s,
                       r->mean_slowdown, 100 * r->summary.utilisation,
                       (unsigned long long)r->summary.away, (unsigned long long)r->summary.moved,
                       (unsigned long long)r->summary.coallocated);
        if (r->kind == GRID_SHARED)
            strbuf_printf (&rows, "\t%.0f\t%.0f\t%.0f\t%.0f\n", r->group_wait_s,
                           r->group_response_s, r->local_wait_s, r->local_extra_s);
        else
            strbuf_puts (&rows, "\t\t\t\t\n");
    }
    report_table (page, strbuf_text (&rows), "runs.csv");
    strbuf_free (&rows);
}

int gridpage_write (const struct grid *grid, const char *source, const struct grid_run *run,
                    uint32_t count, const char *folder, struct err *err)
{
    struct report *page = report_create ("Several sites as one grid", source);
    int rc = report_folder_make (folder, err);
    struct strbuf sites = STRBUF_INIT;
    for (uint32_t s = 0; s < grid->site_count; s++)
        strbuf_printf (&sites, "%s%s (%lld processors, %llu jobs)", s ? ", " : "",
                       grid->site[s].name, (long long)grid->site[s].machine->procs,
                       (unsigned long long)grid->site[s].jobs_count);
    report_lead (page,
                 "%s: %llu jobs of the first %.1f days of each log, replayed on every site's own "
                 "scheduler in one virtual time, with the metascheduler's own choice between them. "
                 "Messages take no time here, and none is lost.",
                 strbuf_text (&sites), (unsigned long long)grid->count,
                 (double)grid->period / 86400 / US_PER_S);
    gain_find (page, run);
    report_heading (page, "Waiting");
    figure_gain (page, run);
    if (count > PLAIN) {
        report_heading (page, "Co-allocation and the others");
        report_text (page, "Here every ordinary job runs at home, so that what changes comes from "
                           "the co-allocated ones alone.");
        figures_share (page, run, count - PLAIN);
    }
    report_heading (page, "All runs");
    table_runs (page, run, count);
    report_text (page, "Where results from a log of the Parallel Workloads Archive (D. Feitelson, "
                       "Hebrew University) are shown, the archive and the log's site are to be "
                       "acknowledged.");
    if (!rc)
        rc = report_write (page, folder, err);
    report_destroy (page);
    strbuf_free (&sites);
    return rc;
}
