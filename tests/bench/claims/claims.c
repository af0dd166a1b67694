/* claims: what the core-algorithms paper (Jackson, Snell & Clement 2001, section 4) says of
 * backfill, measured on real logs. Prints the numbers and fails where a claim does not hold.
 *
 *  1. Backfill raises utilisation (the paper: by around 20%) and lowers the wait.
 *  2. It favours small and short jobs.
 *  3. Only a small share of jobs (the paper: roughly 10%) waits longer with it than without.
 *  4. FIRSTFIT, BESTFIT and GREEDY come to nearly the same.
 *
 * Logs are those of $NUI_SHARED/traces; without them it is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/sim/simrun.h"

#ifndef SHARED_DEFAULT
#define SHARED_DEFAULT "../shared"
#endif

enum { NO_BACKFILL, FIRSTFIT, BESTFIT, GREEDY, RUNS };
static const enum backfill_policy backfill[RUNS] = {BACKFILL_NONE, BACKFILL_FIRSTFIT,
                                                    BACKFILL_BESTFIT, BACKFILL_GREEDY};
static const char *const run_name[RUNS] = {"NONE", "FIRSTFIT", "BESTFIT", "GREEDY"};

struct log_case {
    struct cred_names names;
    struct workload *w;
    struct machine *m;
    struct simrun run[RUNS];
};

struct change {
    time_us at;
    int64_t procs;  /* in use from now on: more or less by this */
    int64_t queued; /* waiting: likewise */
};

static int by_time (const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Utilisation while at least one job waits: at other times there is nothing to schedule, and over
 * all of a log it is the load that decides. */
static double used_while_waiting (const struct log_case *c, const struct simrun *run)
{
    struct change *change = calloc (3 * c->w->count, sizeof change[0]);
    assert_non_null (change);
    for (uint64_t i = 0; i < c->w->count; i++) {
        int64_t procs = c->w->job[i].procs;
        change[3 * i] = (struct change){c->w->job[i].submit, 0, 1};
        change[3 * i + 1] = (struct change){run->result[i].start, procs, -1};
        change[3 * i + 2] = (struct change){run->result[i].end, -procs, 0};
    }
    qsort (change, 3 * c->w->count, sizeof change[0], by_time);
    double used = 0, time = 0;
    int64_t procs = 0, queued = 0;
    for (uint64_t i = 0; i + 1 < 3 * c->w->count; i++) {
        procs += change[i].procs;
        queued += change[i].queued;
        if (queued > 0) {
            double length = (double)(change[i + 1].at - change[i].at);
            time += length;
            used += length * (double)procs;
        }
    }
    free (change);
    return used / (time * (double)c->m->procs);
}

/* Whether job i started while one submitted before it still waited. */
static bool *out_of_order (const struct log_case *c, const struct simrun *run)
{
    bool *is = calloc (c->w->count, sizeof is[0]);
    time_us latest = TIME_US_NONE;
    assert_non_null (is);
    for (uint64_t i = 0; i < c->w->count; i++) {
        is[i] = latest > run->result[i].start;
        if (run->result[i].start > latest)
            latest = run->result[i].start;
    }
    return is;
}

static void replay (struct log_case *c, int which)
{
    struct err err = {0};
    struct policy *p = policy_create (&c->names);
    p->backfill_policy = backfill[which];
    p->node_allocation = NODEALLOC_FIRSTAVAILABLE;
    if (policy_seal (p, &err) ||
        simrun_replay (c->w, c->m, p, NULL, 0, 0, NULL, NULL, &c->run[which], &err))
        fail_msg ("%s: %s", run_name[which], err.text);
    policy_destroy (p);
}

static double waits_longer (const struct log_case *c)
{
    uint64_t longer = 0;
    for (uint64_t i = 0; i < c->w->count; i++)
        longer += c->run[FIRSTFIT].result[i].start > c->run[NO_BACKFILL].result[i].start;
    return (double)longer / (double)c->w->count;
}

static int ascending (const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double area_of (const struct workload_job *job)
{
    return (double)job->procs * (double)job->limit;
}

/* Share of jobs started out of order: of all, of the quarter that asks least (processors times
 * limit), of the quarter that asks most. */
static void shares (const struct log_case *c, double share[3])
{
    uint64_t jobs[3] = {0}, moved[3] = {0}, count = c->w->count;
    bool *is = out_of_order (c, &c->run[FIRSTFIT]);
    double *area = calloc (count, sizeof area[0]);
    assert_non_null (area);
    for (uint64_t i = 0; i < count; i++)
        area[i] = area_of (&c->w->job[i]);
    qsort (area, count, sizeof area[0], ascending);
    for (uint64_t i = 0; i < count; i++) {
        double own = area_of (&c->w->job[i]);
        const bool in[3] = {true, own <= area[count / 4], own >= area[count - count / 4]};
        for (int g = 0; g < 3; g++) {
            jobs[g] += in[g];
            moved[g] += in[g] && is[i];
        }
    }
    for (int g = 0; g < 3; g++)
        share[g] = jobs[g] ? (double)moved[g] / (double)jobs[g] : 0;
    free (is);
    free (area);
}

static void report (const struct log_case *c, const char *name, const double used[RUNS],
                    const double share[3], double longer)
{
    printf ("%s, %llu jobs, %lld processors\n", name, (unsigned long long)c->w->count,
            (long long)c->m->procs);
    for (int r = 0; r < RUNS; r++)
        printf ("  %-9s used while jobs wait %5.2f %%  mean wait %9.0f s  slowdown %8.1f  makespan "
                "%9.0f s\n",
                run_name[r], 100 * used[r], c->run[r].stats.mean_wait_s,
                c->run[r].stats.mean_bounded_slowdown, c->run[r].stats.makespan_s);
    printf ("  gain from backfill: utilisation %+.1f %% (of itself), mean wait / %.1f\n",
            100 * (used[FIRSTFIT] / used[NO_BACKFILL] - 1),
            c->run[NO_BACKFILL].stats.mean_wait_s / c->run[FIRSTFIT].stats.mean_wait_s);
    printf (
        "  started out of order: %.1f %% of all jobs, %.1f %% of the smallest quarter, %.1f %% of "
        "the largest\n",
        100 * share[0], 100 * share[1], 100 * share[2]);
    printf ("  wait longer with backfill: %.2f %% of all jobs\n", 100 * longer);
}

static void measure (const char *file)
{
    const char *shared = getenv ("NUI_SHARED") ? getenv ("NUI_SHARED") : SHARED_DEFAULT;
    char path[4096];
    struct log_case c = {0};
    struct err err = {0};
    const struct workload_range all = {1, UINT64_MAX};
    snprintf (path, sizeof path, "%s/traces/%s", shared, file);
    if (access (path, R_OK) != 0) {
        print_message ("%s is not here: skipped\n", path);
        skip ();
    }
    cred_names_init (&c.names);
    c.w = workload_read (path, &all, &c.names, &err);
    if (!c.w)
        fail_msg ("%s", err.text);
    c.m = machine_uniform ((uint32_t)c.w->header_procs, 1, &err);
    workload_fit (c.w, c.m);
    double used[RUNS], share[3];
    for (int r = 0; r < RUNS; r++) {
        replay (&c, r);
        assert_int_equal (c.run[r].stats.not_started, 0);
        used[r] = used_while_waiting (&c, &c.run[r]);
    }
    shares (&c, share);
    double longer = waits_longer (&c);
    report (&c, file, used, share, longer);

    /* 1 */
    assert_true (used[FIRSTFIT] > used[NO_BACKFILL] * 1.01);
    assert_true (c.run[FIRSTFIT].stats.mean_wait_s < c.run[NO_BACKFILL].stats.mean_wait_s);
    /* 2 */
    assert_true (share[1] > share[2]);
    /* 3 */
    assert_true (longer < .15);
    /* 4: within 1.5 points of utilisation of each other */
    for (int r = BESTFIT; r <= GREEDY; r++)
        assert_true (used[r] - used[FIRSTFIT] < .015 && used[FIRSTFIT] - used[r] < .015);

    for (int r = 0; r < RUNS; r++)
        simrun_free (&c.run[r]);
    machine_destroy (c.m);
    workload_destroy (c.w);
    cred_names_free (&c.names);
}

static void test_kth (void **state)
{
    (void)state;
    measure ("KTH-SP2.swf.gz");
}

static void test_ctc (void **state)
{
    (void)state;
    measure ("CTC-SP2-first20000.swf.gz");
}

static void test_hpc2n (void **state)
{
    (void)state;
    measure ("HPC2N-first20000.swf.gz");
}

static void test_blue (void **state)
{
    (void)state;
    measure ("SDSC-BLUE-first5000.swf.gz");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_kth),
        cmocka_unit_test (test_ctc),
        cmocka_unit_test (test_hpc2n),
        cmocka_unit_test (test_blue),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
