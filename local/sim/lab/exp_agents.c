/* User agents: Bode, Halstead, Kendall, Lei & Jackson 2000, section 7: "a code developer submitting
 * many debug jobs during normal working hours, a heavy user that submits long jobs, a greedy user
 * that submits many jobs which fill gaps", until an amount of work is done. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "local/sim/lab/agents.h"
#include "local/sim/lab/lab.h"

enum { SEEDS = 40, PROCS = 64, DAYS_FIXED = 5, USE_POINTS = 96 };
enum { FIFO, MAUI, NO_BACKFILL, RUNS };
static const char *const label[RUNS] = {"PBS FIFO", "Maui", "Maui without backfill"};
static const double work_proc_h = 64 * 24 * 7;

static const char maui_config[] = "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n"
                                  "BACKFILLPOLICY       FIRSTFIT\n"
                                  "RESERVATIONDEPTH[0]  1\n"
                                  "QUEUETIMEWEIGHT      1\n";
static const char no_backfill_config[] = "NODEALLOCATIONPOLICY FIRSTAVAILABLE\n"
                                         "BACKFILLPOLICY       NONE\n"
                                         "RESERVATIONDEPTH[0]  1\n"
                                         "QUEUETIMEWEIGHT      1\n";

struct agents_exp {
    struct lab *lab;
    uint32_t seeds;
    struct agents_options *options; /* by seed */
    struct lab_run *run;            /* [seed * RUNS + which] */
    double *days[RUNS];             /* until the work was done, by seed */
    double *fixed[RUNS];            /* processor-hours done in the first days, by seed */
    double wait_h[RUNS][AGENT_KINDS], work_h[RUNS][AGENT_KINDS], jobs[RUNS][AGENT_KINDS];
};

/* When the work was done, in days, and how much of it after DAYS_FIXED. */
static double days_for (const struct lab_result *r, double *fixed_out)
{
    double last = lab_last_end_s (r), share;
    lab_use (r, 1, 0, DAYS_FIXED * 86400, 1, &share);
    *fixed_out = share * DAYS_FIXED * 24;
    double low = 0, high = last;
    for (int i = 0; i < 40; i++) { /* the work done by t grows with t */
        double middle = (low + high) / 2;
        lab_use (r, 1, 0, middle, 1, &share);
        if (share * middle / 3600 < work_proc_h)
            low = middle;
        else
            high = middle;
    }
    return high / 86400;
}

static void results_take (struct agents_exp *e)
{
    for (int w = 0; w < RUNS; w++) {
        e->days[w] = lab_numbers (e->lab, e->seeds);
        e->fixed[w] = lab_numbers (e->lab, e->seeds);
        for (uint32_t s = 0; s < e->seeds; s++) {
            const struct lab_result *r = &e->run[s * RUNS + w].result;
            e->days[w][s] = days_for (r, &e->fixed[w][s]);
            for (uint64_t i = 0; i < r->count; i++) {
                const struct lab_job *j = &r->job[i];
                if (!lab_ran (j))
                    continue;
                e->wait_h[w][j->agent] += lab_wait_s (j) / 3600;
                e->work_h[w][j->agent] += (j->end - j->start) * j->procs / 3600;
                e->jobs[w][j->agent]++;
            }
        }
    }
}

static struct interval95 difference (const struct agents_exp *e, const double *a, const double *b)
{
    double *d = lab_numbers (e->lab, e->seeds);
    for (uint32_t s = 0; s < e->seeds; s++)
        d[s] = a[s] - b[s];
    return lab_bootstrap (d, e->seeds, e->lab->options->seed);
}

static double wait_of (const struct agents_exp *e, int run, int kind)
{
    return e->jobs[run][kind] > 0 ? e->wait_h[run][kind] / e->jobs[run][kind] : 0;
}

static void findings (struct agents_exp *e)
{
    struct report *report = e->lab->report;
    struct interval95 d = difference (e, e->days[MAUI], e->days[FIFO]);
    struct finding *f = report_finding (
        report, "maui-does-it-sooner", d.mean,
        !lab_apart (&d) ? FINDING_NOISE
        : d.mean < 0    ? FINDING_HOLDS
                        : FINDING_DIFFERS,
        "Is the same work done sooner under Maui than under PBS FIFO when users "
        "answer to their jobs? "
        "(Planned in section 7, not reported.)",
        "%.2f days under Maui, %.2f under FIFO: %+.2f days (95 %%: %+.2f to %+.2f).",
        lab_mean (e->days[MAUI], e->seeds), lab_mean (e->days[FIFO], e->seeds), d.mean, d.low,
        d.high);
    if (lab_apart (&d) && d.mean > 0)
        finding_why (
            f, "FIFO keeps more processors busy by letting what is small go first for a day; the "
               "price is paid by the heavy users, whose wide jobs wait for it.");
    d = difference (e, e->days[MAUI], e->days[NO_BACKFILL]);
    report_finding (report, "backfill-does-it-sooner", d.mean,
                    !lab_apart (&d) ? FINDING_NOISE
                    : d.mean < 0    ? FINDING_HOLDS
                                    : FINDING_DIFFERS,
                    "… and sooner with backfill than without?",
                    "%.2f days with, %.2f without: %+.2f days (95 %%: %+.2f to %+.2f).",
                    lab_mean (e->days[MAUI], e->seeds), lab_mean (e->days[NO_BACKFILL], e->seeds),
                    d.mean, d.low, d.high);
    double developer =
        wait_of (e, MAUI, AGENT_DEVELOPER) / wait_of (e, NO_BACKFILL, AGENT_DEVELOPER);
    report_finding (
        report, "developers-wait", developer, developer < 1 ? FINDING_HOLDS : FINDING_DIFFERS,
        "Backfill gives short, small jobs a quick turnaround.",
        "A developer's job waits %.2f h with backfill, %.2f h without, %.2f h under FIFO.",
        wait_of (e, MAUI, AGENT_DEVELOPER), wait_of (e, NO_BACKFILL, AGENT_DEVELOPER),
        wait_of (e, FIFO, AGENT_DEVELOPER));
    double filler = e->work_h[MAUI][AGENT_FILLER] / e->seeds / work_proc_h;
    report_finding (report, "filler-share", filler, FINDING_NUMBER,
                    "How much does a user get who only fills gaps?",
                    "%.0f %% of all work under Maui, %.0f %% without backfill, %.0f %% under FIFO.",
                    100 * filler,
                    100 * e->work_h[NO_BACKFILL][AGENT_FILLER] / e->seeds / work_proc_h,
                    100 * e->work_h[FIFO][AGENT_FILLER] / e->seeds / work_proc_h);
    double heavy = wait_of (e, FIFO, AGENT_HEAVY) / wait_of (e, MAUI, AGENT_HEAVY);
    report_finding (report, "heavy-waits", heavy, FINDING_NUMBER, "Who pays under FIFO?",
                    "A heavy user's job waits %.1f h under FIFO, %.1f h under Maui, %.1f h without "
                    "backfill.",
                    wait_of (e, FIFO, AGENT_HEAVY), wait_of (e, MAUI, AGENT_HEAVY),
                    wait_of (e, NO_BACKFILL, AGENT_HEAVY));
}

static void figures (struct agents_exp *e)
{
    struct chart days = {.title = "Days until the work was done",
                         .y_label = "days",
                         .x_label = "",
                         .category = label,
                         .category_count = RUNS,
                         .y_zero = true,
                         .height = 280};
    struct chart waits = {.title = "Mean wait by kind of user",
                          .y_label = "hours",
                          .x_label = "",
                          .category = agent_kind_name,
                          .category_count = AGENT_KINDS,
                          .y_zero = true,
                          .height = 300};
    double *x = lab_steps (e->lab, RUNS, 0, 1), *mean = lab_numbers (e->lab, RUNS);
    double *low = lab_numbers (e->lab, RUNS), *high = lab_numbers (e->lab, RUNS);
    struct strbuf rows = STRBUF_INIT;
    strbuf_printf (
        &rows,
        "scheduler\tdays for %.0f processor-hours\tprocessor-hours in %d days\tin use then "
        "%%\tdevelopers' wait h\theavy users' wait h\tgap filler's wait h\tjobs",
        work_proc_h, DAYS_FIXED);
    for (int w = 0; w < RUNS; w++) {
        struct interval95 d = lab_bootstrap (e->days[w], e->seeds, e->lab->options->seed);
        double fixed = lab_mean (e->fixed[w], e->seeds), jobs = 0;
        mean[w] = d.mean, low[w] = d.low, high[w] = d.high;
        double *y = lab_numbers (e->lab, AGENT_KINDS);
        for (int k = 0; k < AGENT_KINDS; k++) {
            y[k] = wait_of (e, w, k);
            jobs += e->jobs[w][k] / e->seeds;
        }
        chart_add (&waits, label[w], CHART_BARS, AGENT_KINDS, x, y);
        strbuf_printf (&rows, "\n%s\t%.2f\t%.0f\t%.1f\t%.2f\t%.2f\t%.2f\t%.0f", label[w], d.mean,
                       fixed, 100 * fixed / (DAYS_FIXED * 24 * PROCS), y[0], y[1], y[2], jobs);
    }
    strbuf_puts (&rows, "\n");
    struct chart_series *bars = chart_add (&days, NULL, CHART_BARS, RUNS, x, mean);
    bars->low = low;
    bars->high = high;
    report_figure (e->lab->report, &days, "summary.csv",
                   "Means over all seeds with their 95 % intervals.");
    report_table (e->lab->report, rows.data, "summary.csv");
    report_chart_csv (e->lab->report, "waits.csv", "user", &waits);
    report_figure (e->lab->report, &waits, "waits.csv", "Who waits, under which scheduler.");
    strbuf_free (&rows);
    struct strbuf *csv = report_file (e->lab->report, "seeds.csv");
    strbuf_puts (csv, "seed,fifo_days,maui_days,no_backfill_days,fifo_proc_h,maui_proc_h,"
                      "no_backfill_proc_h\n");
    for (uint32_t s = 0; s < e->seeds; s++)
        strbuf_printf (csv, "%llu,%.4f,%.4f,%.4f,%.1f,%.1f,%.1f\n",
                       (unsigned long long)e->options[s].seed, e->days[FIFO][s], e->days[MAUI][s],
                       e->days[NO_BACKFILL][s], e->fixed[FIFO][s], e->fixed[MAUI][s],
                       e->fixed[NO_BACKFILL][s]);
}

static void use_figure (struct agents_exp *e)
{
    struct chart use = {.title = "Processors in use through the week",
                        .y_label = "of 64 processors",
                        .x_label = "hours since Monday, midnight",
                        .y_percent = 1,
                        .y_zero = true,
                        .y_max = 1};
    double width = 7. * 24 / USE_POINTS;
    double *t = lab_steps (e->lab, USE_POINTS, width / 2, width);
    for (int w = 0; w < RUNS; w++) {
        double *y = lab_numbers (e->lab, USE_POINTS), one[USE_POINTS];
        for (uint32_t s = 0; s < e->seeds; s++) {
            lab_use (&e->run[s * RUNS + w].result, PROCS, 0, 7 * 86400, USE_POINTS, one);
            for (int i = 0; i < USE_POINTS; i++)
                y[i] += one[i] / e->seeds;
        }
        chart_add (&use, label[w], CHART_LINE, USE_POINTS, t, y);
    }
    report_chart_csv (e->lab->report, "use.csv", "hour", &use);
    report_figure (e->lab->report, &use, "use.csv", "Means over all seeds, first week.");
}

int exp_agents (struct lab *lab, struct err *err)
{
    struct agents_exp e = {.lab = lab, .seeds = lab->options->seeds ? lab->options->seeds : SEEDS};
    lab->machine = machine_uniform (PROCS, 1, err);
    if (lab->options->workload || lab->options->nodes || lab->options->load > 0 || !lab->machine)
        return err_set (
            err, ERR_INVALID,
            "the agents make their own jobs on 64 processors: --workload, --nodes and --load "
            "do not go with them");
    e.options = arena_array (lab->arena, e.seeds, sizeof e.options[0]);
    e.run = arena_array (lab->arena, (size_t)e.seeds * RUNS, sizeof e.run[0]);
    for (uint32_t s = 0; s < e.seeds; s++) {
        e.options[s] = (struct agents_options){.seed = lab->options->seed + s,
                                               .count = {6, 3, 1},
                                               .work_proc_h = work_proc_h,
                                               .until_s = 60 * 86400};
        for (int w = 0; w < RUNS; w++) {
            struct lab_run *run = &e.run[s * RUNS + w];
            *run = lab_run_make (lab, label[w], w == NO_BACKFILL ? no_backfill_config : maui_config,
                                 NULL);
            run->agents = &e.options[s];
            run->scheduler = w == FIFO ? LAB_PBSFIFO : LAB_CORE;
        }
    }
    int rc = lab_execute (lab, e.run, e.seeds * RUNS, err);
    if (!rc) {
        lab->report =
            report_create ("User agents: developers, heavy users and a gap filler",
                           lab_words (lab,
                                      "Bode, Halstead, Kendall, Lei & Jackson 2000, section "
                                      "7, over %u seeds",
                                      e.seeds));
        report_lead (
            lab->report,
            "64 processors. Six developers send one debug job after another in working hours (at "
            "most a tenth of the machine and half an hour); three heavy users keep two jobs each "
            "in "
            "the system (15 to 75 %% of the machine, 2 to 12 h); a gap filler looks every ten "
            "minutes at what is free and asks for just that. They stop once %.0f processor-hours, "
            "a "
            "full week of the machine, are done. The paper planned this and gives no result.",
            work_proc_h);
        results_take (&e);
        findings (&e);
        report_heading (lab->report, "What was done, and who waited");
        figures (&e);
        use_figure (&e);
        report_config (lab->report, "Maui", maui_config);
        report_config (lab->report, "Maui without backfill", no_backfill_config);
        report_config (lab->report, "PBS FIFO",
                       "whatever fits, in order of submission; starving after 24:00:00\n");
        report_config (lab->report, "The command", lab_command (lab, "agents", e.seeds));
    }
    for (uint32_t i = 0; i < e.seeds * RUNS; i++)
        lab_result_free (&e.run[i].result);
    return rc;
}
