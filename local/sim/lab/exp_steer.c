/* What a site steers with in Jackson, Snell & Clement 2001: fairshare targets (section 6) and how
 * many jobs get reservations (section 4.2). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "local/sim/lab/lab.h"
#include "proto/base/mem.h"

/* --- fairshare ------------------------------------------------------------------------------ */

enum { FS_JOBS = 20000, FS_PROCS = 128, ACCOUNTS = 4, WEEKS_MAX = 104, SETTLED = 1 };
enum { PLAIN, STEERED, ABSENT, FS_RUNS };
static const double fs_load = 1.8;
static const double target[ACCOUNTS] = {.4, .3, .2, .1};
static const char *const account_name[ACCOUNTS] = {"A", "B", "C", "D"};

#define FS_COMMON                                                                                  \
    "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nBACKFILLPOLICY       FIRSTFIT\nRESERVATIONDEPTH[0]  1\n" \
    "QUEUETIMEWEIGHT      1\n"
static const char plain_config[] = FS_COMMON;
static const char steered_config[] = FS_COMMON "FSPOLICY             DEDICATEDPS\n"
                                               "FSINTERVAL           24:00:00\n"
                                               "FSDEPTH              7\n"
                                               "FSDECAY              0.80\n"
                                               "FSWEIGHT             10\n"
                                               "FSACCOUNTWEIGHT      1000\n"
                                               "ACCOUNTCFG[A]        FSTARGET=40.0\n"
                                               "ACCOUNTCFG[B]        FSTARGET=30.0\n"
                                               "ACCOUNTCFG[C]        FSTARGET=20.0\n"
                                               "ACCOUNTCFG[D]        FSTARGET=10.0\n";

struct fs_user {
    uint32_t id;
    double work;
};

static int by_work (const void *a, const void *b)
{
    const struct fs_user *x = a, *y = b;
    if (x->work != y->work)
        return x->work > y->work ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Users in order of their work go to the account that has least so far: four accounts that ask for
 * about the same. Jobs of nobody are dealt out in turn. */
static void accounts_give (struct workload *w)
{
    uint32_t account[ACCOUNTS], users = 1, id;
    for (uint64_t i = 0; i < w->count; i++) {
        id = w->job[i].cred[CRED_USER];
        users = id != CRED_NONE && id >= users ? id + 1 : users;
    }
    struct fs_user *user = mem_zero (users, sizeof user[0]);
    uint32_t *of = mem_zero (users, sizeof of[0]);
    double has[ACCOUNTS] = {0};
    for (uint64_t i = 0; i < w->count; i++) {
        id = w->job[i].cred[CRED_USER];
        if (id != CRED_NONE)
            user[id].work += (double)w->job[i].run / US_PER_S * w->job[i].procs;
    }
    for (uint32_t u = 0; u < users; u++)
        user[u].id = u;
    qsort (user, users, sizeof user[0], by_work);
    for (int a = 0; a < ACCOUNTS; a++)
        account[a] = strtab_intern (w->names->tab[CRED_ACCOUNT], account_name[a]);
    for (uint32_t u = 0; u < users; u++) {
        int least = 0;
        for (int a = 1; a < ACCOUNTS; a++)
            least = has[a] < has[least] ? a : least;
        of[user[u].id] = (uint32_t)least;
        has[least] += user[u].work;
    }
    for (uint64_t i = 0; i < w->count; i++) {
        id = w->job[i].cred[CRED_USER];
        w->job[i].cred[CRED_ACCOUNT] = account[id != CRED_NONE ? of[id] : i % ACCOUNTS];
    }
    free (user);
    free (of);
}

/* The same jobs without those of account A in the second half. */
static struct workload *without_first_account (const struct workload *from)
{
    struct workload *w = mem_zero (1, sizeof *w);
    uint32_t gone = from->job[0].cred[CRED_ACCOUNT];
    time_us half =
        from->job[0].submit + (from->job[from->count - 1].submit - from->job[0].submit) / 2;
    w->arena = arena_create (0);
    w->names = from->names;
    w->job = mem_zero (from->count + 1, sizeof w->job[0]);
    for (uint64_t i = 0; i < from->count; i++) {
        if (strcmp (cred_name (from->names, CRED_ACCOUNT, from->job[i].cred[CRED_ACCOUNT]), "A") ==
            0)
            gone = from->job[i].cred[CRED_ACCOUNT];
    }
    for (uint64_t i = 0; i < from->count; i++) {
        if (from->job[i].cred[CRED_ACCOUNT] != gone || from->job[i].submit < half)
            w->job[w->count++] = from->job[i];
    }
    w->read = w->count;
    return w;
}

struct shares {
    uint32_t weeks;
    double share[ACCOUNTS][WEEKS_MAX];
    double off; /* mean over settled weeks of the mean distance from the targets */
};

static void shares_take (const struct lab *lab, const struct lab_result *r, struct shares *out)
{
    static const double week_s = 7 * 86400;
    double from = lab_first_submit_s (r), until = lab_last_submit_s (r);
    memset (out, 0, sizeof *out);
    out->weeks = (uint32_t)((until - from) / week_s);
    out->weeks = out->weeks > WEEKS_MAX ? WEEKS_MAX : out->weeks;
    for (uint64_t i = 0; i < r->count; i++) {
        const struct lab_job *j = &r->job[i];
        const char *name = cred_name (&lab->names, CRED_ACCOUNT, j->account);
        if (!lab_ran (j) || name[0] < 'A' || name[0] >= 'A' + ACCOUNTS)
            continue;
        for (uint32_t w = 0; w < out->weeks; w++) {
            double low = from + w * week_s, high = low + week_s;
            double begin = j->start > low ? j->start : low, end = j->end < high ? j->end : high;
            if (end > begin)
                out->share[name[0] - 'A'][w] += (end - begin) * j->procs;
        }
    }
    uint32_t counted = 0;
    for (uint32_t w = 0; w < out->weeks; w++) {
        double all = 0, off = 0;
        for (int a = 0; a < ACCOUNTS; a++)
            all += out->share[a][w];
        for (int a = 0; a < ACCOUNTS; a++) {
            out->share[a][w] = all > 0 ? out->share[a][w] / all : 0;
            off += fabs (out->share[a][w] - target[a]) / ACCOUNTS;
        }
        if (w >= SETTLED && all > 0) {
            out->off += off;
            counted++;
        }
    }
    out->off = counted ? out->off / counted : 0;
}

static double mean_share (const struct shares *s, int account, uint32_t from)
{
    return s->weeks > from ? lab_mean (&s->share[account][from], s->weeks - from) : 0;
}

static void shares_figure (struct lab *lab, const struct shares *s, const char *title,
                           const char *csv_name, const char *caption)
{
    struct chart chart = {.title = title,
                          .y_label = "of the processor time delivered in the week",
                          .x_label = "week",
                          .x_whole = true,
                          .y_percent = 1,
                          .y_zero = true,
                          .height = 300};
    double *x = lab_steps (lab, s->weeks, 1, 1);
    for (int a = 0; a < ACCOUNTS; a++)
        chart_add (&chart, lab_words (lab, "account %s", account_name[a]), CHART_POINTS, s->weeks,
                   x, s->share[a]);
    for (int a = 0; a < ACCOUNTS; a++) {
        double *y = lab_numbers (lab, s->weeks);
        for (uint32_t w = 0; w < s->weeks; w++)
            y[w] = target[a];
        struct chart_series *line = chart_add (&chart, NULL, CHART_LINE, s->weeks, x, y);
        line->colour = (uint32_t)a;
        line->thin = true;
    }
    struct chart numbers = chart;
    numbers.series_count = ACCOUNTS;
    report_chart_csv (lab->report, csv_name, "week", &numbers);
    report_figure (lab->report, &chart, csv_name, caption);
}

static void fairshare_findings (struct lab *lab, const struct shares s[FS_RUNS],
                                const struct lab_run *run)
{
    struct lab_stats stats[FS_RUNS];
    for (int r = 0; r < FS_RUNS; r++)
        lab_stats_compute (&run[r].result, lab->machine->procs, &stats[r]);
    double closer = s[STEERED].off / s[PLAIN].off;
    struct finding *f = report_finding (
        lab->report, "steers", closer, closer < .8 ? FINDING_HOLDS : FINDING_DIFFERS,
        "Fairshare steers usage towards its targets over days to weeks.",
        "From week 2 on, shares are %.1f percentage points from their targets on average, without "
        "fairshare %.1f.",
        100 * s[STEERED].off, 100 * s[PLAIN].off);
    if (closer >= .8)
        finding_why (
            f, "Priority decides between jobs that wait together. Where the queue is short most "
               "of the time, everything runs soon whatever its priority, and shares are what "
               "people sent. Try a higher --load.");
    double order = mean_share (&s[STEERED], 0, SETTLED) - mean_share (&s[STEERED], 3, SETTLED);
    double before = mean_share (&s[PLAIN], 0, SETTLED) - mean_share (&s[PLAIN], 3, SETTLED);
    f = report_finding (
        lab->report, "highest-over-lowest", order - before,
        order > before + .02 ? FINDING_HOLDS : FINDING_DIFFERS,
        "Jobs below their target are favoured over those above it.",
        "A (40 %%) gets %.0f %%, D (10 %%) gets %.0f %%; without fairshare %.0f and %.0f %%.",
        100 * mean_share (&s[STEERED], 0, SETTLED), 100 * mean_share (&s[STEERED], 3, SETTLED),
        100 * mean_share (&s[PLAIN], 0, SETTLED), 100 * mean_share (&s[PLAIN], 3, SETTLED));
    if (order <= before + .02)
        finding_why (
            f, "Everyone got what he sent: there were too few moments at which jobs of several "
               "accounts waited together.");
    uint32_t late = s[ABSENT].weeks * 3 / 4;
    double left = mean_share (&s[ABSENT], 0, late);
    f = report_finding (
        lab->report, "cannot-force", left, left < target[0] / 2 ? FINDING_HOLDS : FINDING_DIFFERS,
        "It cannot force a target: whoever sends no jobs gets no share, however high his "
        "target, and others use the machine.",
        "Account A sends nothing in the second half: in the last quarter it gets %.0f %% of "
        "what is delivered; %.0f %% of the machine is in use over the whole time, with A's jobs "
        "%.0f %%.",
        100 * left, 100 * stats[ABSENT].used_loaded, 100 * stats[STEERED].used_loaded);
    if (left >= target[0] / 2)
        finding_why (
            f,
            "What A sent in the first half was still waiting in the last quarter: the load is so "
            "far above what the machine can do that its queue outlives its absence.");
    double cost = stats[STEERED].mean_wait_s / stats[PLAIN].mean_wait_s - 1;
    report_finding (
        lab->report, "cost", cost, FINDING_NUMBER, "What does it cost?",
        "Mean wait %.1f h instead of %.1f h (%+.0f %%), use %.1f %% instead of %.1f %%.",
        stats[STEERED].mean_wait_s / 3600, stats[PLAIN].mean_wait_s / 3600, 100 * cost,
        100 * stats[STEERED].used_loaded, 100 * stats[PLAIN].used_loaded);
}

int exp_fairshare (struct lab *lab, struct err *err)
{
    static const char *const label[FS_RUNS] = {"no fairshare", "fairshare", "fairshare, A stops"};
    struct lab_run run[FS_RUNS];
    int rc = lab_workload (lab, FS_JOBS, FS_PROCS, fs_load, err);
    if (rc)
        return rc;
    double weeks = (double)(lab->workload->job[lab->workload->count - 1].submit -
                            lab->workload->job[0].submit) /
                   US_PER_S / (7 * 86400);
    if (weeks < SETTLED + 2)
        return err_set (err, ERR_INVALID,
                        "the jobs were sent within %.1f weeks; fairshare needs at least "
                        "%d to be seen",
                        weeks, SETTLED + 2);
    accounts_give (lab->workload);
    struct workload *absent = without_first_account (lab->workload);
    struct shares *s = arena_array (lab->arena, FS_RUNS, sizeof s[0]);
    run[PLAIN] = lab_run_make (lab, label[PLAIN], plain_config, lab->workload);
    run[STEERED] = lab_run_make (lab, label[STEERED], steered_config, lab->workload);
    run[ABSENT] = lab_run_make (lab, label[ABSENT], steered_config, absent);
    rc = lab_execute (lab, run, FS_RUNS, err);
    for (int r = 0; r < FS_RUNS && !rc; r++)
        shares_take (lab, &run[r].result, &s[r]);
    if (!rc) {
        lab->report = report_create ("Fairshare steering usage to its targets", lab->source);
        report_lead (
            lab->report,
            "The log's users are put into four accounts that ask for about the same; their "
            "targets are 40, 30, 20 and 10 %%. Usage counts over 7 days, each worth 0.8 of the one "
            "after it. (Jackson, Snell & Clement 2001, section 6.)");
        fairshare_findings (lab, s, run);
        report_heading (lab->report, "Shares by week");
        shares_figure (lab, &s[PLAIN], "Without fairshare", "plain.csv",
                       "Each account gets what it sends. Thin lines: the targets, unused here.");
        shares_figure (lab, &s[STEERED], "With fairshare targets", "steered.csv",
                       "Thin lines: the targets.");
        shares_figure (lab, &s[ABSENT], "With targets, account A sends nothing in the second half",
                       "absent.csv", "Its target stays at 40 %; the others share what it leaves.");
        lab_table_stats (lab, run, FS_RUNS, "statistics.csv");
        report_config (lab->report, label[PLAIN], plain_config);
        report_config (lab->report, label[STEERED], steered_config);
        report_config (lab->report, "The command", lab_command (lab, "fairshare", 0));
    }
    for (int r = 0; r < FS_RUNS; r++)
        lab_result_free (&run[r].result);
    workload_destroy (absent);
    return rc;
}

/* --- reservation depth ---------------------------------------------------------------------- */

enum { DEPTH_JOBS = 10000, DEPTH_PROCS = 128, DEPTHS = 7 };
static const double depth_load = .9;
static const uint32_t depth_of[DEPTHS] = {0, 1, 2, 4, 8, 16, 64};

struct depth_row {
    struct lab_stats s;
    double large_h; /* mean wait of the tenth of jobs with most processors */
};

static double large_wait_h (struct lab *lab, const struct lab_result *r)
{
    double *procs = lab_numbers (lab, r->count), sum = 0, jobs = 0;
    for (uint64_t i = 0; i < r->count; i++)
        procs[i] = r->job[i].procs;
    double least = lab_quantile (procs, r->count, .9);
    for (uint64_t i = 0; i < r->count; i++) {
        if (r->job[i].procs >= least && lab_ran (&r->job[i])) {
            sum += lab_wait_s (&r->job[i]) / 3600;
            jobs++;
        }
    }
    return jobs > 0 ? sum / jobs : 0;
}

static struct interval95 wait_change (struct lab *lab, const struct lab_result *a,
                                      const struct lab_result *b)
{
    double *d = lab_numbers (lab, a->count);
    for (uint64_t i = 0; i < a->count; i++)
        d[i] = (lab_wait_s (&a->job[i]) - lab_wait_s (&b->job[i])) / 3600;
    return lab_bootstrap (d, a->count, lab->options->seed);
}

static void depth_findings (struct lab *lab, const struct depth_row *row, const struct lab_run *run)
{
    const struct depth_row *one = &row[1], *deep = &row[DEPTHS - 1];
    struct interval95 d = wait_change (lab, &run[DEPTHS - 1].result, &run[1].result);
    struct finding *f = report_finding (
        lab->report, "shallow-waits-less", d.mean,
        !lab_apart (&d) ? FINDING_NOISE
        : d.mean > 0    ? FINDING_HOLDS
                        : FINDING_DIFFERS,
        "One reservation leaves the scheduler more freedom than many: turnaround is better.",
        "Mean wait %.2f h at depth 1, %.2f h at depth 64: %.2f h more (95 %%: %.2f to %.2f).",
        one->s.mean_wait_s / 3600, deep->s.mean_wait_s / 3600, d.mean, d.low, d.high);
    if (lab_apart (&d) && d.mean <= 0)
        finding_why (
            f,
            "Of the two ways in which a reservation acts, keeping backfilled jobs out of the way "
            "of those that waited longer counts for more on these jobs.");
    double use = deep->s.used_loaded - one->s.used_loaded;
    f = report_finding (lab->report, "use", use,
                        fabs (use) < .02 ? FINDING_NOISE
                        : use < 0        ? FINDING_HOLDS
                                         : FINDING_DIFFERS,
                        "… and potentially the use of the machine.",
                        "%.1f %% at depth 1, %.1f %% at depth 64.", 100 * one->s.used_loaded,
                        100 * deep->s.used_loaded);
    if (use >= .02)
        finding_why (f, "Deeper reservations kept wide jobs from piling up at the end of the log.");
    if (fabs (use) < .02)
        finding_why (f,
                     "All work is done in the end under any depth, so that use over the whole log "
                     "hardly moves; waits show what depth does.");
    double xf = deep->s.xfactor / one->s.xfactor - 1;
    report_finding (
        lab->report, "expansion-factor", xf, FINDING_NUMBER,
        "Expansion factor, (wait + limit) / limit",
        "%.2f without reservations, %.2f at depth 1, %.2f at depth 64 (%+.0f %% from 1 to 64).",
        row[0].s.xfactor, one->s.xfactor, deep->s.xfactor, 100 * xf);
    double large = row[0].large_h / one->large_h;
    f = report_finding (
        lab->report, "reservation-protects-large", large,
        large > 1 ? FINDING_HOLDS : FINDING_DIFFERS,
        "A reservation protects what is large: without any, large jobs starve.",
        "The widest tenth of jobs waits %.1f h without reservations, %.1f h with one, %.1f h at "
        "depth 64; the longest wait is %.0f, %.0f and %.0f h.",
        row[0].large_h, one->large_h, deep->large_h, row[0].s.max_wait_s / 3600,
        one->s.max_wait_s / 3600, deep->s.max_wait_s / 3600);
    if (large <= 1)
        finding_why (
            f, "The queue empties often enough on these jobs for wide ones to get their turn.");
}

static void depth_figures (struct lab *lab, const struct depth_row *row)
{
    static const char *const names[DEPTHS] = {"0", "1", "2", "4", "8", "16", "64"};
    double *x = lab_steps (lab, DEPTHS, 0, 1), *y[6];
    for (int i = 0; i < 6; i++)
        y[i] = lab_numbers (lab, DEPTHS);
    for (int d = 0; d < DEPTHS; d++) {
        y[0][d] = row[d].s.used_loaded;
        y[1][d] = row[d].s.xfactor;
        y[2][d] = row[d].s.mean_wait_s / 3600;
        y[3][d] = row[d].large_h;
        y[4][d] = row[d].s.p95_wait_s / 3600;
        y[5][d] = row[d].s.slowdown;
    }
    struct chart factor = {.title = "Expansion factor",
                           .y_label = "mean of (wait + limit) / limit",
                           .x_label = "RESERVATIONDEPTH",
                           .category = names,
                           .category_count = DEPTHS,
                           .y_zero = true,
                           .height = 270};
    chart_add (&factor, NULL, CHART_POINTS, DEPTHS, x, y[1]);
    struct chart use = {.title = "Processors in use while jobs were sent",
                        .y_label = "of all processors",
                        .x_label = "RESERVATIONDEPTH",
                        .category = names,
                        .category_count = DEPTHS,
                        .y_zero = true,
                        .y_percent = 1,
                        .y_max = 1,
                        .height = 270};
    chart_add (&use, NULL, CHART_POINTS, DEPTHS, x, y[0]);
    struct chart wait = {.title = "Waits",
                         .y_label = "hours",
                         .x_label = "RESERVATIONDEPTH",
                         .category = names,
                         .category_count = DEPTHS,
                         .y_zero = true,
                         .height = 300};
    chart_add (&wait, "all jobs", CHART_POINTS, DEPTHS, x, y[2]);
    chart_add (&wait, "the widest tenth", CHART_POINTS, DEPTHS, x, y[3]);
    chart_add (&wait, "95 % of jobs wait less", CHART_POINTS, DEPTHS, x, y[4]);
    struct chart all = wait;
    chart_add (&all, "in use", CHART_POINTS, DEPTHS, x, y[0]);
    chart_add (&all, "expansion factor", CHART_POINTS, DEPTHS, x, y[1]);
    chart_add (&all, "slowdown", CHART_POINTS, DEPTHS, x, y[5]);
    report_chart_csv (lab->report, "depth.csv", "depth", &all);
    report_figure (lab->report, &factor, "depth.csv", "0: RESERVATIONPOLICY NEVER.");
    report_figure (lab->report, &use, "depth.csv", "From the first submission to the last.");
    report_figure (lab->report, &wait, "depth.csv",
                   "Waits of all jobs and of those that need most.");
}

int exp_depth (struct lab *lab, struct err *err)
{
    struct lab_run run[DEPTHS];
    struct depth_row row[DEPTHS];
    int rc = lab_workload (lab, DEPTH_JOBS, DEPTH_PROCS, depth_load, err);
    if (rc)
        return rc;
    for (int d = 0; d < DEPTHS; d++) {
        const char *config = lab_words (
            lab,
            "NODEALLOCATIONPOLICY FIRSTAVAILABLE\nBACKFILLPOLICY       FIRSTFIT\n"
            "QUEUETIMEWEIGHT      1\nRESERVATIONPOLICY    %s\n%s",
            depth_of[d] ? "CURRENTHIGHEST" : "NEVER",
            depth_of[d] ? lab_words (lab, "RESERVATIONDEPTH[0]  %u\n", depth_of[d]) : "");
        run[d] =
            lab_run_make (lab, lab_words (lab, "depth %u", depth_of[d]), config, lab->workload);
    }
    rc = lab_execute (lab, run, DEPTHS, err);
    if (!rc) {
        lab->report =
            report_create ("Reservation depth against use and expansion factor", lab->source);
        report_lead (lab->report,
                     "The same jobs with reservations for the first 0 to 64 jobs of "
                     "the queue: from the most "
                     "liberal backfill to a nearly conservative one. (Jackson, Snell & "
                     "Clement 2001, section "
                     "4.2.)");
        for (int d = 0; d < DEPTHS; d++) {
            lab_stats_compute (&run[d].result, lab->machine->procs, &row[d].s);
            row[d].large_h = large_wait_h (lab, &run[d].result);
        }
        depth_findings (lab, row, run);
        report_heading (lab->report, "Depth");
        depth_figures (lab, row);
        lab_table_stats (lab, run, DEPTHS, "statistics.csv");
        report_config (lab->report, "depth 4, the others alike", run[3].config);
        report_config (lab->report, "The command", lab_command (lab, "depth", 0));
    }
    for (int d = 0; d < DEPTHS; d++)
        lab_result_free (&run[d].result);
    return rc;
}
