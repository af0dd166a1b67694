/* Backfill in Jackson, Snell & Clement 2001: each job's wait with and without it (figure 2), and
 * the algorithms side by side (figure 4). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "local/sim/lab/lab.h"
#include "local/sim/lab/model.h"

enum { JOBS = 12000, PROCS = 128, USE_POINTS = 120 };
/* Without backfill the model's machine cannot do more than 60 % (see the page): at 50 % both keep
 * up. */
static const double delay_load = .5, overload = 1.5, algorithms_load = .9;

#define CONFIG(algorithm)                                                                          \
    "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nBACKFILLPOLICY       " algorithm "\n"                    \
    "RESERVATIONPOLICY    CURRENTHIGHEST\nRESERVATIONDEPTH[0]  1\nQUEUETIMEWEIGHT      1\n"

static int descending (const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

/* --- figure 2 ------------------------------------------------------------------------------- */

struct delay {
    uint64_t count, longer, shorter;
    double *number, *hours; /* by job: wait with backfill minus without */
    double *sorted, *share; /* descending, and their places as shares of all jobs */
    double lost, gained;    /* hours, sums */
};

static void delay_take (struct lab *lab, const struct lab_result *without,
                        const struct lab_result *with, struct delay *d)
{
    d->count = with->count;
    d->number = lab_numbers (lab, d->count);
    d->hours = lab_numbers (lab, d->count);
    d->share = lab_numbers (lab, d->count);
    for (uint64_t i = 0; i < d->count; i++) {
        double h = (lab_wait_s (&with->job[i]) - lab_wait_s (&without->job[i])) / 3600;
        d->number[i] = (double)(i + 1);
        d->hours[i] = h;
        d->share[i] = 100 * (double)(i + 1) / (double)d->count;
        d->longer += h > 0;
        d->shorter += h < 0;
        d->lost += h > 0 ? h : 0;
        d->gained -= h < 0 ? h : 0;
    }
    d->sorted = arena_memdup (lab->arena, d->hours, d->count * sizeof d->hours[0]);
    qsort (d->sorted, d->count, sizeof d->sorted[0], descending);
}

static void delay_figures (struct lab *lab, const struct delay *d)
{
    struct chart each = {.title = "Wait with backfill minus wait without, each job",
                         .zero_line = true,
                         .y_label = "hours; above 0: backfill made it wait longer",
                         .x_label = "jobs in order of submission"};
    chart_add (&each, NULL, CHART_DOTS, (uint32_t)d->count, d->number, d->hours);
    report_chart_csv (lab->report, "delay.csv", "job", &each);
    report_figure (
        lab->report, &each, "delay.csv",
        "The paper's figure 2: each dot is a job. Jobs sent in the same days share a fate.");
    struct chart sorted = {.title = "The same, sorted",
                           .y_label = "hours",
                           .zero_line = true,
                           .x_label = "% of all jobs"};
    chart_add (&sorted, NULL, CHART_LINE, (uint32_t)d->count, d->share, d->sorted);
    report_figure (lab->report, &sorted, NULL,
                   "Where the line crosses 0 is the share of jobs that wait longer with backfill.");
}

static void delay_findings (struct lab *lab, const struct lab_run *run, const struct delay *d)
{
    struct lab_stats without, with;
    lab_stats_compute (&run[0].result, lab->machine->procs, &without);
    lab_stats_compute (&run[1].result, lab->machine->procs, &with);
    double longer = (double)d->longer / (double)d->count;
    struct finding *f =
        report_finding (lab->report, "few-wait-longer", longer,
                        longer >= .05 && longer <= .15 ? FINDING_HOLDS : FINDING_DIFFERS,
                        "Roughly 10 % of the jobs wait longer with backfill than without.",
                        "%.1f %% wait longer, %.1f %% shorter, %.1f %% the same.", 100 * longer,
                        100 * (double)d->shorter / (double)d->count,
                        100 * (double)(d->count - d->longer - d->shorter) / (double)d->count);
    if (longer < .05)
        finding_why (
            f, "Fewer than the paper's. Without backfill the queue is in strict order here "
               "(BACKFILLPOLICY NONE makes no reservation and passes nobody), and one wide job "
               "holds up all behind it: nearly every job gains. The higher the load, the fewer "
               "lose.");
    else if (longer > .15)
        finding_why (
            f, "More than the paper's: where the queue is often short, a job has little to gain "
               "and more often meets a backfilled one that runs to its limit.");
    struct interval95 mean = lab_bootstrap (d->hours, d->count, lab->options->seed);
    report_finding (
        lab->report, "mean-gain", mean.mean,
        !lab_apart (&mean) ? FINDING_NOISE
        : mean.mean < 0    ? FINDING_HOLDS
                           : FINDING_DIFFERS,
        "A rising tide lifts all ships: turnaround improves for jobs in general.",
        "Mean wait %.2f h with backfill, %.2f h without: %.2f h less (95 %%: %.2f to %.2f); "
        "%.0f h gained for each hour lost.",
        with.mean_wait_s / 3600, without.mean_wait_s / 3600, -mean.mean, -mean.high, -mean.low,
        d->lost > 0 ? d->gained / d->lost : INFINITY);
    double can[2];
    for (int r = 0; r < 2; r++) {
        struct lab_stats full;
        lab_stats_compute (&run[2 + r].result, lab->machine->procs, &full);
        can[r] = full.used_loaded;
    }
    double gain = can[1] / can[0] - 1;
    f = report_finding (
        lab->report, "use-gain", gain, gain >= .1 && gain <= .35 ? FINDING_HOLDS : FINDING_DIFFERS,
        "Backfill raises the use of a large machine by around 20 %.",
        "Given more jobs than it can do (load %.1f), the machine is %.1f %% in use with "
        "backfill and %.1f %% without: %.0f %% more. With the jobs as they were sent, "
        "%.1f and %.1f %%.",
        overload, 100 * can[1], 100 * can[0], 100 * gain, 100 * with.used, 100 * without.used);
    finding_why (
        f,
        "How much is used over a whole log is decided by how much was sent, so that only an "
        "overloaded machine shows what it can do. %s",
        gain > .35
            ? "More than the paper's 20 %: strict order of submission, as BACKFILLPOLICY NONE "
              "has it, makes every wide job empty the machine."
        : gain < .1 ? "Less than the paper's 20 %: most jobs of this log are narrow beside the "
                      "machine, so that little stands empty even in strict order."
                    : "");
}

int exp_delay (struct lab *lab, struct err *err)
{
    static const char *const config[2] = {CONFIG ("NONE"), CONFIG ("FIRSTFIT")};
    static const char *const label[4] = {"without backfill", "FIRSTFIT", "without, overloaded",
                                         "FIRSTFIT, overloaded"};
    struct lab_run run[4];
    struct delay d = {0};
    int rc = lab_workload (lab, JOBS, PROCS, delay_load, err);
    if (rc)
        return rc;
    struct workload *more = model_copy (lab->workload);
    double sent = model_load (more, lab->machine->procs);
    if (sent > 0 && sent < overload)
        model_scale (more, overload / sent);
    for (int r = 0; r < 4; r++)
        run[r] = lab_run_make (lab, label[r], config[r % 2], r < 2 ? lab->workload : more);
    rc = lab_execute (lab, run, 4, err);
    if (!rc) {
        lab->report = report_create ("What backfill does to each job's wait", lab->source);
        report_lead (lab->report,
                     "The same jobs twice, with backfill and without; the difference of each "
                     "job's wait. (Jackson, Snell & Clement 2001, section 4.1, figure 2, on a "
                     "log of the Maui High Performance Computing Center that is not "
                     "published.)");
        delay_take (lab, &run[0].result, &run[1].result, &d);
        delay_findings (lab, run, &d);
        report_heading (lab->report, "Waits");
        delay_figures (lab, &d);
        lab_figure_use (lab, run, 2, "use.csv", "What is gained: the same work, done sooner.");
        lab_table_stats (lab, run, 4, "statistics.csv");
        for (int r = 0; r < 2; r++)
            report_config (lab->report, label[r], config[r]);
        report_config (lab->report, "The command", lab_command (lab, "delay", 0));
    }
    for (int r = 0; r < 4; r++)
        lab_result_free (&run[r].result);
    workload_destroy (more);
    return rc;
}

/* --- figure 4 ------------------------------------------------------------------------------- */

enum { NONE, FIRSTFIT, BESTFIT, GREEDY, ALGORITHMS };

static void algorithm_findings (struct lab *lab, const struct lab_run *run)
{
    struct lab_stats s[ALGORITHMS];
    double least = 1, most = 0, least_wait = INFINITY, most_wait = 0, apart = 0;
    double use[ALGORITHMS][USE_POINTS], from = lab_first_submit_s (&run[0].result);
    double until = lab_last_submit_s (&run[0].result);
    for (int a = 0; a < ALGORITHMS; a++) {
        lab_stats_compute (&run[a].result, lab->machine->procs, &s[a]);
        lab_use (&run[a].result, lab->machine->procs, from, until, USE_POINTS, use[a]);
        if (a == NONE)
            continue;
        least = s[a].used_loaded < least ? s[a].used_loaded : least;
        most = s[a].used_loaded > most ? s[a].used_loaded : most;
        least_wait = s[a].mean_wait_s < least_wait ? s[a].mean_wait_s : least_wait;
        most_wait = s[a].mean_wait_s > most_wait ? s[a].mean_wait_s : most_wait;
    }
    for (int i = 0; i < USE_POINTS; i++) {
        double low = 1, high = 0;
        for (int a = FIRSTFIT; a < ALGORITHMS; a++) {
            low = use[a][i] < low ? use[a][i] : low;
            high = use[a][i] > high ? use[a][i] : high;
        }
        apart += (high - low) / USE_POINTS;
    }
    report_finding (
        lab->report, "same-use", most - least, most - least < .02 ? FINDING_HOLDS : FINDING_DIFFERS,
        "Use of the machine under FIRSTFIT, BESTFIT and GREEDY is so close that it does not "
        "seem to matter which is chosen.",
        "%.2f percentage points between the highest and the lowest over all; %.1f points on "
        "average between the lines at one moment.",
        100 * (most - least), 100 * apart);
    double waits = most_wait / least_wait - 1;
    int best = FIRSTFIT, worst = FIRSTFIT;
    for (int a = BESTFIT; a < ALGORITHMS; a++) {
        best = s[a].mean_wait_s < s[best].mean_wait_s ? a : best;
        worst = s[a].mean_wait_s > s[worst].mean_wait_s ? a : worst;
    }
    uint64_t jobs = run[0].result.count;
    double *longer = lab_numbers (lab, jobs);
    for (uint64_t i = 0; i < jobs; i++)
        longer[i] =
            (lab_wait_s (&run[worst].result.job[i]) - lab_wait_s (&run[best].result.job[i])) / 3600;
    struct interval95 d = lab_bootstrap (longer, jobs, lab->options->seed);
    bool differs = waits >= .1 && lab_apart (&d);
    struct finding *f = report_finding (
        lab->report, "waits-differ", waits, differs ? FINDING_DIFFERS : FINDING_HOLDS,
        "The differences have no significant impact on the overall statistics.",
        "Mean waits %.2f, %.2f and %.2f h: the longest is %.0f %% above the shortest, %.2f h (95 %%: "
        "%.2f to %.2f).",
        s[FIRSTFIT].mean_wait_s / 3600, s[BESTFIT].mean_wait_s / 3600, s[GREEDY].mean_wait_s / 3600,
        100 * waits, d.mean, d.low, d.high);
    if (differs)
        finding_why (f, "Use can hardly differ where all work gets done; waits can. BESTFIT and "
                        "GREEDY prefer what fills the window, so that larger jobs are taken before "
                        "smaller ones and more jobs wait. The paper looked at use alone.");
    struct lab_stats *none = &s[NONE];
    double gain = 1 - s[FIRSTFIT].mean_wait_s / none->mean_wait_s;
    report_finding (lab->report, "against-none", gain, gain > 0 ? FINDING_HOLDS : FINDING_DIFFERS,
                    "Any of them is far better than none.",
                    "FIRSTFIT waits %.0f %% less than no backfill.", 100 * gain);
}

int exp_algorithms (struct lab *lab, struct err *err)
{
    static const char *const config[ALGORITHMS] = {CONFIG ("NONE"), CONFIG ("FIRSTFIT"),
                                                   CONFIG ("BESTFIT"), CONFIG ("GREEDY")};
    static const char *const label[ALGORITHMS] = {"none", "FIRSTFIT", "BESTFIT", "GREEDY"};
    struct lab_run run[ALGORITHMS];
    int rc = lab_workload (lab, JOBS, PROCS, algorithms_load, err);
    if (rc)
        return rc;
    for (int a = 0; a < ALGORITHMS; a++)
        run[a] = lab_run_make (lab, label[a], config[a], lab->workload);
    rc = lab_execute (lab, run, ALGORITHMS, err);
    if (!rc) {
        lab->report = report_create ("Backfill algorithms side by side", lab->source);
        report_lead (lab->report,
                     "The same jobs under each BACKFILLPOLICY. (Jackson, Snell & Clement 2001, "
                     "section 4.2, figure 4.)");
        algorithm_findings (lab, run);
        report_heading (lab->report, "Use of the machine");
        lab_figure_use (lab, &run[FIRSTFIT], ALGORITHMS - 1, "use.csv",
                        "The paper's figure 4: use over the life of the simulation.");
        struct chart waits = {.title = "Mean wait",
                              .y_label = "hours",
                              .x_label = "BACKFILLPOLICY",
                              .category = &label[FIRSTFIT],
                              .category_count = ALGORITHMS - 1,
                              .y_zero = true,
                              .height = 280};
        double *mean = lab_numbers (lab, ALGORITHMS), *low = lab_numbers (lab, ALGORITHMS);
        double *high = lab_numbers (lab, ALGORITHMS);
        for (int a = 0; a < ALGORITHMS; a++) {
            double *wait = lab_numbers (lab, run[a].result.count);
            for (uint64_t i = 0; i < run[a].result.count; i++)
                wait[i] = lab_wait_s (&run[a].result.job[i]) / 3600;
            struct interval95 w = lab_bootstrap (wait, run[a].result.count, lab->options->seed);
            mean[a] = w.mean, low[a] = w.low, high[a] = w.high;
        }
        struct chart_series *bars = chart_add (&waits, NULL, CHART_BARS, ALGORITHMS - 1,
                                               lab_steps (lab, ALGORITHMS, 0, 1), &mean[FIRSTFIT]);
        bars->low = &low[FIRSTFIT];
        bars->high = &high[FIRSTFIT];
        report_figure (
            lab->report, &waits, "statistics.csv",
            "Lines: 95 % intervals of each mean by itself. The jobs are the same in all three, so "
            "that differences are surer than the lines suggest. None is in the table below.");
        lab_table_stats (lab, run, ALGORITHMS, "statistics.csv");
        for (int a = 0; a < ALGORITHMS; a++)
            report_config (lab->report, label[a], config[a]);
        report_config (lab->report, "The command", lab_command (lab, "algorithms", 0));
    }
    for (int a = 0; a < ALGORITHMS; a++)
        lab_result_free (&run[a].result);
    return rc;
}
