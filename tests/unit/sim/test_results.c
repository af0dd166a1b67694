/* What a simulation tells: statistics, series, picture, files that are there whole or not at all;
 * and the six nodes of the paper's figure 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/sim/outfile.h"
#include "local/sim/plot.h"
#include "local/sim/simrun.h"

#define HOUR (3600 * US_PER_S)

static void near (double a, double b)
{
    if (a - b > 1e-9 || b - a > 1e-9)
        fail_msg ("%.17g is not %.17g", a, b);
}

static void test_stats (void **state)
{
    (void)state;
    struct workload_job job[4] = {
        {.submit = 100 * US_PER_S, .procs = 2, .limit = HOUR, .run = 100 * US_PER_S},
        {.submit = 100 * US_PER_S, .procs = 4, .limit = HOUR, .run = 5 * US_PER_S},
        {.submit = 200 * US_PER_S, .procs = 1, .limit = HOUR, .run = 0},
        {.submit = 300 * US_PER_S, .procs = 1, .limit = HOUR, .run = 1},
    };
    struct engine_result result[4] = {
        {.start = 100 * US_PER_S, .end = 200 * US_PER_S},
        {.start = 200 * US_PER_S, .end = 205 * US_PER_S, .backfilled = true},
        {.start = 220 * US_PER_S, .end = 220 * US_PER_S},
        {.start = TIME_US_NONE, .end = TIME_US_NONE},
    };
    struct workload w = {.job = job, .count = 4};
    struct engine_summary summary = {.passes = 9};
    struct simstats s;
    simstats_compute (&w, result, &summary, 4, &s);
    assert_int_equal (s.jobs, 3);
    assert_int_equal (s.not_started, 1);
    assert_int_equal (s.backfilled, 1);
    assert_int_equal (s.passes, 9);
    near (s.mean_wait_s, (0 + 100 + 20) / 3.0);
    near (s.median_wait_s, 20);
    near (s.max_wait_s, 100);
    near (s.makespan_s, 120);
    /* 100/100; (100+5)/10, as shorter than the threshold; (20+0)/10 */
    near (s.mean_bounded_slowdown, (1 + 10.5 + 2) / 3);
    near (s.utilisation, (2 * 100 + 4 * 5) / (4.0 * 120));
}

static void test_series (void **state)
{
    (void)state;
    struct series *s = series_create ();
    struct series_point p[4];
    series_add (s, 1000, 10, 0);
    series_add (s, 1000 + HOUR, 20, 7);    /* second quarter */
    series_add (s, 1000 + 2 * HOUR, 0, 2); /* second half */
    series_add (s, 1000 + 4 * HOUR, 0, 0);
    series_resample (s, 4, p);
    const double procs[] = {10, 20, 0, 0}, queued[] = {0, 7, 2, 2};
    for (int i = 0; i < 4; i++) {
        /* a bucket may lie across two quarters */
        assert_true (p[i].procs > procs[i] - .2 && p[i].procs < procs[i] + .2);
        assert_true (p[i].queued > queued[i] - .1 && p[i].queued < queued[i] + .1);
    }
    near (p[1].queued_max, 7);
    series_resample (s, 1, p);
    near (p[0].procs, 7.5);
    for (int i = 0; i < 100000; i++) /* eleven years: bounded memory, the mean stays right */
        series_add (s, 1000 + (4 + i) * HOUR, 3, (uint32_t)i % 2);
    series_resample (s, 1, p);
    assert_true (p[0].procs > 2.99 && p[0].procs < 3.01);
    series_destroy (s);
}

/* Figure 1: six nodes; A holds four of them, says three hours and takes two; B needs five; C needs
 * two for three hours. */
static void figure_1 (enum backfill_policy backfill, enum reservation_binding binding,
                      struct simrun *out)
{
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct policy *p = policy_create (&names);
    p->backfill_policy = backfill;
    p->reservation_binding = binding;
    assert_int_equal (policy_seal (p, &err), 0);
    const uint32_t procs[] = {4, 5, 2};
    const duration_us limit[] = {3 * HOUR, HOUR, 3 * HOUR};
    const duration_us run[] = {2 * HOUR, HOUR, 3 * HOUR};
    struct workload_job job[3] = {0};
    for (int i = 0; i < 3; i++) {
        job[i].number = (uint64_t)i + 1;
        job[i].procs = job[i].req.tasks = procs[i];
        job[i].req.task.v[RES_PROCS] = 1;
        job[i].limit = limit[i];
        job[i].run = run[i];
        for (int k = 0; k < CRED_KINDS; k++)
            job[i].cred[k] = CRED_NONE;
    }
    struct workload w = {.job = job, .count = 3};
    struct machine *m = machine_uniform (6, 1, &err);
    if (simrun_replay (&w, m, p, NULL, 0, 0, NULL, NULL, out, &err))
        fail_msg ("%s", err.text);
    machine_destroy (m);
    policy_destroy (p);
    cred_names_free (&names);
}

/* Backfill starts C at once, and A's early end does not help B: it starts when C ends, an hour
 * after it could have. Without backfill B starts at two hours. */
static void test_pseudo_delay (void **state)
{
    (void)state;
    for (int late = 0; late <= 1; late++) {
        enum reservation_binding binding = late ? BINDING_LATE : BINDING_EARLY;
        struct simrun r;
        figure_1 (BACKFILL_FIRSTFIT, binding, &r);
        assert_int_equal (r.result[0].start, 0);
        assert_int_equal (r.result[2].start, 0);        /* C, at once */
        assert_int_equal (r.result[1].start, 3 * HOUR); /* B, when C ends */
        simrun_free (&r);
        figure_1 (BACKFILL_NONE, binding, &r);
        assert_int_equal (r.result[1].start, 2 * HOUR); /* B, when A ends */
        assert_int_equal (r.result[2].start, 3 * HOUR);
        simrun_free (&r);
    }
}

/* PREEMPT: C is backfilled, and goes back to the queue when it alone keeps B from starting. */
static void test_preempt (void **state)
{
    (void)state;
    struct simrun r;
    figure_1 (BACKFILL_PREEMPT, BINDING_EARLY, &r);
    assert_int_equal (r.result[0].start, 0);
    assert_int_equal (r.result[1].start, 2 * HOUR); /* B is not delayed */
    assert_int_equal (r.result[2].start, 3 * HOUR); /* C once more, from its beginning */
    assert_int_equal (r.result[2].end, 6 * HOUR);
    assert_int_equal (r.stats.preempted, 1);
    assert_int_equal (r.stats.not_started, 0);
    simrun_free (&r);
}

static void test_plot (void **state)
{
    (void)state;
    struct series *s = series_create ();
    for (int i = 0; i < 1000; i++)
        series_add (s, i * HOUR, i % 17, (uint32_t)(i * i % 101));
    struct plot_line line[2] = {{"a<b&c.cfg", s, .5}, {"other.cfg", s, .25}};
    struct strbuf out = STRBUF_INIT;
    plot_svg (&out, "log <1>", line, 2, 16);
    const char *text = strbuf_text (&out);
    assert_non_null (strstr (text, "log &lt;1>"));
    assert_non_null (strstr (text, "a&lt;b&amp;c.cfg (50.0 % used)"));
    assert_non_null (strstr (text, "Jobs waiting"));
    assert_non_null (strstr (text, "days since the first submission"));
    assert_null (strstr (text, "nan"));
    assert_null (strstr (text, "inf"));
    unsigned lines = 0;
    for (const char *at = text; (at = strstr (at, "class='line'")) != NULL; at++)
        lines++;
    assert_int_equal (lines, 4); /* two policies in two panels */
    strbuf_clear (&out);
    struct series *empty = series_create (); /* one moment, nothing running */
    series_add (empty, 5, 0, 0);
    line[0].series = empty;
    plot_svg (&out, "empty", line, 1, 16);
    assert_null (strstr (strbuf_text (&out), "nan"));
    strbuf_free (&out);
    series_destroy (s);
    series_destroy (empty);
}

static bool exists (const char *path)
{
    struct stat st;
    return lstat (path, &st) == 0;
}

static void test_outfiles (void **state)
{
    (void)state;
    char folder[] = "/tmp/nui-test-XXXXXX", a[64], b[64];
    struct err err;
    assert_non_null (mkdtemp (folder));
    snprintf (a, sizeof a, "%s/a", folder);
    snprintf (b, sizeof b, "%s/no/b", folder);
    assert_int_equal (outfile_check (a, &err), 0);
    assert_int_equal (outfile_check (b, &err), ERR_NOT_FOUND);
    assert_int_equal (outfile_check (folder, &err), ERR_INVALID);
    assert_int_equal (outfile_check ("", &err), ERR_INVALID);

    struct outfiles files = {0};
    strbuf_puts (outfiles_add (&files, a), "one\n");
    strbuf_puts (outfiles_add (&files, b), "two\n"); /* its folder is not there */
    assert_int_equal (outfiles_commit (&files, &err), ERR_IO);
    assert_false (exists (a)); /* neither of them */
    outfiles_free (&files);
    strbuf_puts (outfiles_add (&files, a), "one\n");
    assert_int_equal (outfiles_commit (&files, &err), 0);
    assert_true (exists (a));
    outfiles_free (&files);
    unlink (a);
    assert_int_equal (rmdir (folder), 0); /* nothing else was left behind */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_stats),        cmocka_unit_test (test_series),
        cmocka_unit_test (test_pseudo_delay), cmocka_unit_test (test_preempt),
        cmocka_unit_test (test_plot),         cmocka_unit_test (test_outfiles),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
