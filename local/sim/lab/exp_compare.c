/* Policies of a site on its own log: what changes, and whether that is more than chance. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/sim/lab/lab.h"

enum { METRICS = 5, CLASSES = 4, CURVE = 200, USE_DAYS = 200, TEXT_MAX = 1 << 20 };

/* A value for each job, of which the mean is compared. */
static double metric_of (int which, const struct lab_job *j)
{
    double wait = lab_wait_s (j), run = j->end - j->start, bound = run > 10 ? run : 10;
    switch (which) {
    case 0:
        return wait / 3600;
    case 1:
        return (wait + run) / bound > 1 ? (wait + run) / bound : 1;
    case 2:
        return (wait + j->limit) / j->limit;
    case 3:
        return wait > 3600;
    default:
        return wait > 86400;
    }
}

static const char *const metric_name[METRICS] = {
    "mean wait, hours", "mean bounded slowdown", "mean expansion factor",
    "share of jobs that wait over an hour", "share of jobs that wait over a day"};
static const char *const metric_key[METRICS] = {"wait", "slowdown", "xfactor", "over-hour",
                                                "over-day"};

static int text_read (struct lab *lab, const char *path, const char **out, struct err *err)
{
    FILE *f = fopen (path, "r");
    struct strbuf text = STRBUF_INIT;
    char block[4096];
    size_t n;
    if (!f)
        return err_set (err, ERR_NOT_FOUND, "%s cannot be opened", path);
    while ((n = fread (block, 1, sizeof block, f)) > 0 && text.len < TEXT_MAX)
        strbuf_append (&text, block, n);
    bool failed = ferror (f) || text.len >= TEXT_MAX || memchr (strbuf_text (&text), 0, text.len);
    fclose (f);
    if (!failed)
        *out = arena_strdup (lab->arena, strbuf_text (&text));
    strbuf_free (&text);
    return failed ? err_set (err, ERR_INVALID, "%s is no configuration that can be read", path) : 0;
}

static const char *last_part (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Values of jobs that ran under both. */
static uint64_t paired (const struct lab_result *a, const struct lab_result *b, int metric,
                        double *va, double *vb, double *difference)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        if (!lab_ran (&a->job[i]) || !lab_ran (&b->job[i]))
            continue;
        va[count] = metric_of (metric, &a->job[i]);
        vb[count] = metric_of (metric, &b->job[i]);
        difference[count] = vb[count] - va[count];
        count++;
    }
    return count;
}

static const char *with_interval (struct lab *lab, const struct interval95 *v, bool sign)
{
    return lab_words (lab, "%s (%s to %s)", lab_number (lab, v->mean, sign),
                      lab_number (lab, v->low, sign), lab_number (lab, v->high, sign));
}

static void one_against (struct lab *lab, const struct lab_run *today, const struct lab_run *other,
                         uint32_t place, struct strbuf *rows, struct strbuf *csv)
{
    uint64_t jobs = today->result.count;
    double *a = lab_numbers (lab, jobs), *b = lab_numbers (lab, jobs), *d = lab_numbers (lab, jobs);
    for (int m = 0; m < METRICS; m++) {
        uint64_t count = paired (&today->result, &other->result, m, a, b, d);
        struct interval95 change = lab_bootstrap (d, count, lab->options->seed);
        struct interval95 va = lab_bootstrap (a, count, lab->options->seed);
        struct interval95 vb = lab_bootstrap (b, count, lab->options->seed);
        double percent = va.mean != 0 ? 100 * change.mean / va.mean : 0;
        bool apart = lab_apart (&change);
        strbuf_printf (rows, "\n%s\t%s\t%s\t%s\t%s\t%s", metric_name[m], other->label,
                       with_interval (lab, &va, false), with_interval (lab, &vb, false),
                       with_interval (lab, &change, true),
                       !apart            ? "not told from noise"
                       : change.mean < 0 ? "lower"
                                         : "higher");
        strbuf_printf (csv, "\"%s\",%s,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%s\n",
                       metric_name[m], other->label, va.mean, va.low, va.high, vb.mean, vb.low,
                       vb.high, change.mean, change.low, change.high,
                       !apart            ? "not told from noise"
                       : change.mean < 0 ? "lower"
                                         : "higher");
        if (m > 1)
            continue;
        struct finding *f = report_finding (
            lab->report, lab_words (lab, "%s-%u", metric_key[m], place), change.mean,
            !apart            ? FINDING_NOISE
            : change.mean < 0 ? FINDING_LOWER
                              : FINDING_HIGHER,
            lab_words (lab, "%s against %s: %s", other->label, today->label, metric_name[m]),
            "%s instead of %s: %+.1f %%. Change %s (95 %%: %s to %s).",
            lab_number (lab, vb.mean, false), lab_number (lab, va.mean, false), percent,
            lab_number (lab, change.mean, true), lab_number (lab, change.low, true),
            lab_number (lab, change.high, true));
        if (!apart)
            finding_why (f, "The interval holds 0: on this log the two cannot be told apart.");
    }
}

static void use_compare (struct lab *lab, const struct lab_run *run, uint32_t count)
{
    double from = lab_first_submit_s (&run[0].result), until = lab_last_submit_s (&run[0].result);
    if (until <= from)
        return;
    double *a = lab_numbers (lab, USE_DAYS), *b = lab_numbers (lab, USE_DAYS);
    for (uint32_t r = 1; r < count; r++) {
        lab_use (&run[0].result, lab->machine->procs, from, until, USE_DAYS, a);
        lab_use (&run[r].result, lab->machine->procs, from, until, USE_DAYS, b);
        double today = lab_mean (a, USE_DAYS), other = lab_mean (b, USE_DAYS);
        for (int i = 0; i < USE_DAYS; i++)
            b[i] -= a[i];
        struct interval95 change = lab_bootstrap (b, USE_DAYS, lab->options->seed);
        report_finding (lab->report, lab_words (lab, "use-%u", r), change.mean,
                        !lab_apart (&change) ? FINDING_NOISE
                        : change.mean < 0    ? FINDING_LOWER
                                             : FINDING_HIGHER,
                        lab_words (lab, "%s against %s: use of the machine while jobs were sent",
                                   run[r].label, run[0].label),
                        "%.1f %% instead of %.1f %%: %+.2f points (95 %%: %+.2f to %+.2f).",
                        100 * other, 100 * today, 100 * change.mean, 100 * change.low,
                        100 * change.high);
    }
}

/* Limits of a policy may keep jobs out for ever; means are of those that ran. */
static void never_started (struct lab *lab, const struct lab_run *run, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        struct lab_stats s;
        lab_stats_compute (&run[r].result, lab->machine->procs, &s);
        if (s.not_started)
            report_lead (
                lab->report,
                "Under %s %llu jobs never started; comparisons leave them out, which flatters "
                "it.",
                run[r].label, (unsigned long long)s.not_started);
    }
}

static void wait_curves (struct lab *lab, const struct lab_run *run, uint32_t count)
{
    struct chart chart = {.title = "Waits",
                          .y_label = "of the jobs have started",
                          .x_label = "hours since their submission",
                          .y_percent = 1,
                          .y_zero = true,
                          .y_max = 1,
                          .x_log = true};
    double *x = lab_numbers (lab, CURVE);
    for (int i = 0; i < CURVE; i++)
        x[i] = 1. / 60 * pow (30 * 24 * 60, i / (CURVE - 1.)); /* a minute to thirty days */
    for (uint32_t r = 0; r < count; r++) {
        double *y = lab_numbers (lab, CURVE);
        for (uint64_t i = 0; i < run[r].result.count; i++) {
            double h = lab_wait_s (&run[r].result.job[i]) / 3600;
            for (int k = CURVE - 1; k >= 0 && lab_ran (&run[r].result.job[i]) && h <= x[k]; k--)
                y[k] += 1. / (double)run[r].result.count;
        }
        chart_add (&chart, run[r].label, CHART_LINE, CURVE, x, y);
    }
    report_chart_csv (lab->report, "waits.csv", "hours", &chart);
    report_figure (lab->report, &chart, "waits.csv",
                   "Which share of jobs has started after how long.");
}

static void class_bars (struct lab *lab, const struct lab_run *run, uint32_t count)
{
    static const char *const names[CLASSES] = {"small, short", "small, long", "large, short",
                                               "large, long"};
    struct chart chart = {.title = "Mean wait by kind of job",
                          .y_label = "hours",
                          .x_label = "",
                          .category = names,
                          .category_count = CLASSES,
                          .y_zero = true,
                          .height = 300};
    const struct lab_result *r0 = &run[0].result;
    double *procs = lab_numbers (lab, r0->count), *limit = lab_numbers (lab, r0->count);
    for (uint64_t i = 0; i < r0->count; i++)
        procs[i] = r0->job[i].procs, limit[i] = r0->job[i].limit;
    double large = lab_quantile (procs, r0->count, .75),
           is_long = lab_quantile (limit, r0->count, .5);
    for (uint32_t r = 0; r < count; r++) {
        double *value = lab_numbers (lab, r0->count), *y = lab_numbers (lab, CLASSES);
        double *low = lab_numbers (lab, CLASSES), *high = lab_numbers (lab, CLASSES);
        for (int k = 0; k < CLASSES; k++) {
            uint64_t n = 0;
            for (uint64_t i = 0; i < run[r].result.count; i++) {
                const struct lab_job *j = &run[r].result.job[i];
                int kind = 2 * (j->procs > large) + (j->limit > is_long);
                if (kind == k && lab_ran (j))
                    value[n++] = lab_wait_s (j) / 3600;
            }
            struct interval95 mean = lab_bootstrap (value, n, lab->options->seed);
            y[k] = n ? mean.mean : NAN, low[k] = n ? mean.low : NAN, high[k] = n ? mean.high : NAN;
        }
        struct chart_series *s = chart_add (&chart, run[r].label, CHART_BARS, CLASSES,
                                            lab_steps (lab, CLASSES, 0, 1), y);
        s->low = low;
        s->high = high;
    }
    report_chart_csv (lab->report, "classes.csv", "kind", &chart);
    report_figure (
        lab->report, &chart, "classes.csv",
        lab_words (lab,
                   "Large: more than %.0f processors (a quarter of the jobs at most); long: a "
                   "limit above %.2g h. Lines: 95 %% intervals of each mean by itself.",
                   large, is_long / 3600));
}

/* --- who gains, who loses ------------------------------------------------------------------ */

struct user_change {
    uint32_t user;
    uint64_t jobs;
    double before, after; /* mean waits, hours */
    struct interval95 change;
};

static int by_change (const void *a, const void *b)
{
    const struct user_change *x = a, *y = b;
    double left = x->change.mean * (double)x->jobs, right = y->change.mean * (double)y->jobs;
    return left != right ? (left < right ? -1 : 1) : x->user < y->user ? -1 : x->user > y->user;
}

/* Mean waits of each user who has jobs that ran under both; whoever gains most hours in all comes first. */
static uint32_t users_change (struct lab *lab, const struct lab_result *a,
                              const struct lab_result *b, struct user_change **out)
{
    uint32_t count = 0;
    uint64_t kinds = 0;
    for (uint64_t i = 0; i < a->count; i++)
        if (a->job[i].user != CRED_NONE && a->job[i].user >= kinds)
            kinds = a->job[i].user + 1;
    *out = arena_alloc (lab->arena, (kinds + 1) * sizeof **out);
    double *d = lab_numbers (lab, a->count);
    for (uint32_t user = 0; user < kinds; user++) {
        struct user_change u = {.user = user};
        for (uint64_t i = 0; i < a->count; i++) {
            if (a->job[i].user != user || !lab_ran (&a->job[i]) || !lab_ran (&b->job[i]))
                continue;
            double before = lab_wait_s (&a->job[i]) / 3600, after = lab_wait_s (&b->job[i]) / 3600;
            u.before += before;
            u.after += after;
            d[u.jobs++] = after - before;
        }
        if (u.jobs == 0)
            continue;
        u.before /= (double)u.jobs;
        u.after /= (double)u.jobs;
        u.change = lab_bootstrap (d, u.jobs, lab->options->seed);
        (*out)[count++] = u;
    }
    qsort (*out, count, sizeof **out, by_change);
    return count;
}

/* Below five jobs an interval says nothing. */
static const char *user_verdict (const struct user_change *u)
{
    enum { JOBS_FEW = 5 };
    return u->jobs < JOBS_FEW        ? "few jobs"
           : !lab_apart (&u->change) ? "not told from noise"
           : u->change.mean < 0      ? "gains"
                                     : "loses";
}

static void users_figure (struct lab *lab, const struct user_change *user, uint32_t count,
                          const char *label)
{
    enum { SHOWN = 10 }; /* of those who gain, and of those who lose */
    uint32_t shown = count < 2 * SHOWN ? count : 2 * SHOWN;
    const char **name = arena_alloc (lab->arena, (shown + 1) * sizeof *name);
    double *y = lab_numbers (lab, shown), *low = lab_numbers (lab, shown),
           *high = lab_numbers (lab, shown);
    for (uint32_t i = 0; i < shown; i++) {
        const struct user_change *u = &user[i < (shown + 1) / 2 ? i : count - shown + i];
        name[i] = arena_strdup (lab->arena, cred_name (&lab->names, CRED_USER, u->user));
        y[i] = u->change.mean, low[i] = u->change.low, high[i] = u->change.high;
    }
    struct chart chart = {.title = lab_words (lab, "Who gains and who loses under %s", label),
                          .y_label = "hours of wait, change of the mean",
                          .x_label = "",
                          .category = name,
                          .category_count = shown,
                          .zero_line = true,
                          .height = 320};
    struct chart_series *s =
        chart_add (&chart, NULL, CHART_BARS, shown, lab_steps (lab, shown, 0, 1), y);
    s->low = low;
    s->high = high;
    report_figure (lab->report, &chart, "users.csv",
                   "Users by the hours that all of their jobs wait less or more; below 0 is a "
                   "gain. Lines: 95 % intervals.");
}

static void users_compare (struct lab *lab, const struct lab_run *run, uint32_t count)
{
    struct strbuf *csv = report_file (lab->report, "users.csv"), rows = STRBUF_INIT;
    strbuf_puts (csv, "user,policy,jobs,before,after,change,change_low,change_high,verdict\n");
    strbuf_puts (&rows, "user\tpolicy\tjobs\tmean wait, hours\tthen\tchange\tverdict");
    report_heading (lab->report, "Who gains, who loses");
    for (uint32_t r = 1; r < count; r++) {
        struct user_change *user;
        uint32_t users = users_change (lab, &run[0].result, &run[r].result, &user), told = 0;
        for (uint32_t i = 0; i < users; i++) {
            const struct user_change *u = &user[i];
            const char *name = cred_name (&lab->names, CRED_USER, u->user),
                       *verdict = user_verdict (u);
            told += strcmp (verdict, "gains") == 0 || strcmp (verdict, "loses") == 0;
            strbuf_printf (csv, "%s,%s,%llu,%.6g,%.6g,%.6g,%.6g,%.6g,%s\n", name, run[r].label,
                           (unsigned long long)u->jobs, u->before, u->after, u->change.mean,
                           u->change.low, u->change.high, verdict);
            strbuf_printf (&rows, "\n%s\t%s\t%llu\t%s\t%s\t%s\t%s", name, run[r].label,
                           (unsigned long long)u->jobs, lab_number (lab, u->before, false),
                           lab_number (lab, u->after, false), with_interval (lab, &u->change, true),
                           verdict);
        }
        report_text (lab->report, "%s: %u users, of %u the change is more than chance.",
                     run[r].label, users, told);
        if (users > 0)
            users_figure (lab, user, users, run[r].label);
    }
    strbuf_puts (&rows, "\n");
    report_table (lab->report, rows.data, NULL);
    strbuf_free (&rows);
}

int exp_compare (struct lab *lab, struct err *err)
{
    const struct lab_options *o = lab->options;
    struct lab_run run[LAB_CONFIGS_MAX];
    struct strbuf rows = STRBUF_INIT;
    if (!o->workload || o->config_count < 2)
        return err_set (err, ERR_INVALID,
                        "a comparison needs --workload and two configurations or more");
    int rc = lab_workload (lab, 3000, o->nodes ? 0 : 128, .9, err);
    for (uint32_t r = 0; r < o->config_count && !rc; r++) {
        const char *text = "";
        bool fifo = r > 0 && strcmp (o->config[r], LAB_PBSFIFO_NAME) == 0;
        bool as_was = r == 0 && strcmp (o->config[r], LAB_LOG_NAME) == 0;
        const char *file = o->config[as_was ? 1 : fifo ? 0 : r]; /* what the site is */
        if (as_was && strncmp (o->workload, "model:", 6) == 0)
            rc = err_set (err, ERR_INVALID, "%s needs a log of what was, and %s is a model",
                          LAB_LOG_NAME, o->workload);
        if (fifo && strcmp (file, LAB_LOG_NAME) == 0)
            rc = err_set (err, ERR_INVALID, "%s needs a configuration as the first, not %s",
                          LAB_PBSFIFO_NAME, LAB_LOG_NAME);
        rc = rc ? rc : text_read (lab, file, &text, err);
        if (!rc)
            run[r] = lab_run_make (lab,
                                   fifo     ? "PBS FIFO"
                                   : as_was ? "as it was"
                                            : last_part (file),
                                   text, lab->workload);
        if (!rc)
            run[r].config_path = file;
        if (!rc)
            run[r].scheduler = fifo ? LAB_PBSFIFO : as_was ? LAB_LOG : LAB_CORE;
    }
    if (rc)
        return rc;
    rc = lab_execute (lab, run, o->config_count, err);
    if (!rc) {
        lab->report = report_create ("Policies on one log", lab->source);
        report_lead (
            lab->report,
            "The same jobs under each policy; %s is what the others are compared with. Intervals "
            "are 95 %% bootstrap intervals over blocks of neighbouring jobs (a fortieth of the log "
            "each), since neighbours wait for the same reasons; a change whose interval holds 0 "
            "cannot be told from noise. One log is one history: people who wait less send other "
            "jobs, which no replay knows.",
            run[0].label);
        if (run[0].scheduler == LAB_LOG)
            report_lead (
                lab->report,
                "\"As it was\" is when the jobs did start, as the log has it. The replay "
                "begins with an empty machine and knows of no job that is not in the log.");
        strbuf_puts (&rows, "what\tpolicy\ttoday\tthen\tchange\tverdict");
        struct strbuf *csv = report_file (lab->report, "changes.csv");
        strbuf_puts (
            csv, "what,policy,today,today_low,today_high,then,then_low,then_high,change,change_low,"
                 "change_high,verdict\n");
        for (uint32_t r = 1; r < o->config_count; r++)
            one_against (lab, &run[0], &run[r], r, &rows, csv);
        use_compare (lab, run, o->config_count);
        never_started (lab, run, o->config_count);
        report_heading (lab->report, "In numbers");
        lab_table_stats (lab, run, o->config_count, "statistics.csv");
        strbuf_puts (&rows, "\n");
        report_table (lab->report, rows.data, NULL);
        users_compare (lab, run, o->config_count);
        report_heading (lab->report, "In pictures");
        lab_figure_use (lab, run, o->config_count, "use.csv", "Use of the machine over the log.");
        wait_curves (lab, run, o->config_count);
        class_bars (lab, run, o->config_count);
        for (uint32_t r = 0; r < o->config_count; r++)
            report_config (lab->report, o->config[r],
                           run[r].scheduler == LAB_PBSFIFO
                               ? "whatever fits, in order of submission; starving after 24:00:00\n"
                           : run[r].scheduler == LAB_LOG ? "the log's own scheduler\n"
                                                         : run[r].config);
        report_config (lab->report, "The jobs",
                       lab_words (lab, "--workload %s%s --seed %llu\n", o->workload,
                                  o->load > 0 ? lab_words (lab, " --load %g", o->load) : "",
                                  (unsigned long long)o->seed));
    }
    for (uint32_t r = 0; r < o->config_count; r++)
        lab_result_free (&run[r].result);
    strbuf_free (&rows);
    return rc;
}
