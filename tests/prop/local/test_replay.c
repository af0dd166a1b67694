/* Real logs through the daemon's own core: start times equal, job for job, those of simulators that
 * are not ours and those of Maui itself (README of the shared traces). A made-up log in tests/data
 * stands in where the shared folder is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/local/trace.h"

struct replay {
    const char *log;
    uint64_t first;
    const char *expected;
    enum backfill_policy backfill;
    enum reservation_binding binding;
    uint32_t depth;
    bool pass_per_event;
    uint64_t allowed;   /* jobs that may differ */
    double mean_within; /* of the mean wait, where jobs may differ */
};

enum { DEEP = 1000000 };

static const struct replay equal[] = {
    {"KTH-SP2", 0, "KTH-SP2-fcfs.pyss-predictsim", BACKFILL_NONE, BINDING_LATE, 1, false, 0, 0},
    {"CTC-SP2-first20000", 0, "CTC-SP2-first20000-fcfs.pyss-predictsim", BACKFILL_NONE,
     BINDING_LATE, 1, false, 0, 0},
    {"HPC2N-first20000", 0, "HPC2N-first20000-fcfs.pyss-predictsim", BACKFILL_NONE, BINDING_EARLY,
     1, false, 0, 0},
    {"SDSC-BLUE-first5000", 0, "SDSC-BLUE-first5000-fcfs.pyss-predictsim", BACKFILL_NONE,
     BINDING_EARLY, 1, false, 0, 0},
    {"KTH-SP2", 0, "KTH-SP2-easy.pyss-sbacpad22", BACKFILL_FIRSTFIT, BINDING_LATE, 1, false, 0, 0},
    {"CTC-SP2-first20000", 0, "CTC-SP2-first20000-easy.pyss-sbacpad22", BACKFILL_FIRSTFIT,
     BINDING_LATE, 1, false, 0, 0},
    {"HPC2N-first20000", 0, "HPC2N-first20000-easy.pyss-sbacpad22", BACKFILL_FIRSTFIT, BINDING_LATE,
     1, false, 0, 0},
    {"SDSC-BLUE-first5000", 0, "SDSC-BLUE-first5000-easy.pyss-sbacpad22", BACKFILL_FIRSTFIT,
     BINDING_LATE, 1, false, 0, 0},
    {"KTH-SP2", 20000, "KTH-SP2-first20000-firstfit.maui", BACKFILL_FIRSTFIT, BINDING_EARLY, 1,
     false, 0, 0},
    {"KTH-SP2", 20000, "KTH-SP2-first20000-bestfit.maui", BACKFILL_BESTFIT, BINDING_EARLY, 1, false,
     0, 0},
    {"KTH-SP2", 5000, "KTH-SP2-first5000-firstfit-depth4.maui", BACKFILL_FIRSTFIT, BINDING_EARLY, 4,
     false, 0, 0},
    {"CTC-SP2-first20000", 0, "CTC-SP2-first20000-firstfit.maui", BACKFILL_FIRSTFIT, BINDING_EARLY,
     1, false, 0, 0},
    {"CTC-SP2-first20000", 0, "CTC-SP2-first20000-bestfit.maui", BACKFILL_BESTFIT, BINDING_EARLY, 1,
     false, 0, 0},
};

/* Conservative backfill. The other simulator makes a pass after each end and each arrival, and in each
 * of these a job that has reached its limit counts as free at this instant even if its end is the next
 * event of the same instant. The first four do both and are equal, job for job. (CTC 19472 is where the
 * second half of the rule shows: 19393 and 19401 reach their limits together at second 7387713; between
 * the two ends 19426, of 16 processors, is counted on all 22 that will be free and the small job waits;
 * were 19401 counted as running still, 19426 would be promised the next moment and 19472 start.)
 *
 * Ours is one pass per instant, all ends and arrivals seen. The last four list every job that starts at
 * another time for it: see explain. */
static const struct replay conservative[] = {
    {"KTH-SP2", 0, "KTH-SP2-conservative.cqsim", BACKFILL_FIRSTFIT, BINDING_LATE, DEEP, true, 0, 0},
    {"CTC-SP2-first20000", 0, "CTC-SP2-first20000-conservative.cqsim", BACKFILL_FIRSTFIT,
     BINDING_LATE, DEEP, true, 0, 0},
    {"HPC2N-first20000", 0, "HPC2N-first20000-conservative.cqsim", BACKFILL_FIRSTFIT, BINDING_LATE,
     DEEP, true, 0, 0},
    {"SDSC-BLUE-first5000", 0, "SDSC-BLUE-first5000-conservative.cqsim", BACKFILL_FIRSTFIT,
     BINDING_LATE, DEEP, true, 0, 0},
    {"KTH-SP2", 0, "KTH-SP2-conservative.cqsim", BACKFILL_FIRSTFIT, BINDING_LATE, DEEP, false,
     28467 / 20, 0.01},
    {"CTC-SP2-first20000", 0, "CTC-SP2-first20000-conservative.cqsim", BACKFILL_FIRSTFIT,
     BINDING_LATE, DEEP, false, 20000 / 3, 0.05},
    {"HPC2N-first20000", 0, "HPC2N-first20000-conservative.cqsim", BACKFILL_FIRSTFIT, BINDING_LATE,
     DEEP, false, 200, 0.001},
    {"SDSC-BLUE-first5000", 0, "SDSC-BLUE-first5000-conservative.cqsim", BACKFILL_FIRSTFIT,
     BINDING_LATE, DEEP, false, 50, 0.001},
};

static struct engine_result *run (const struct trace *trace, const struct replay *r,
                                  struct engine_summary *summary)
{
    struct cred_names names;
    struct err err = {0};
    struct policy *policy;
    struct engine_result *result;

    cred_names_init (&names);
    policy = trace_policy (&names, r->backfill, r->binding, r->depth);
    if (r->pass_per_event)
        policy->poll_interval = 0; /* its limit is reached: free, though its end is not seen yet */
    assert_int_equal (policy_seal (policy, &err), 0);
    result = trace_run (trace, policy, r->pass_per_event, summary);
    policy_destroy (policy);
    cred_names_free (&names);
    return result;
}

/* --- job by job -------------------------------------------------------------------------------- */

struct difference {
    uint64_t index;
    time_us ours, theirs, first, last; /* starts; the state differs from first on, until last */
};

static int by_first (const void *a, const void *b)
{
    const struct difference *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Ends and arrivals at t, of a history that both share up to then. */
static uint32_t events_at (const struct trace *trace, const struct engine_result *result, time_us t)
{
    uint32_t events = 0;

    for (uint64_t i = 0; i < trace->count; i++)
        events += (trace->job[i].submit == t) + (result[i].start < t && result[i].end == t);
    return events;
}

/* Each job that starts at another time: either the two sites had been in the same state until an
 * instant of several events, between which theirs made passes and ours did not (the stated rule), or
 * they had not, for the sake of a job listed before. Anything else is a failure. */
static void explain (const struct trace *trace, const struct engine_result *result,
                     const int64_t *start, uint64_t differ)
{
    struct difference *list = calloc (differ + 1, sizeof *list);
    time_us until = TIME_US_NONE, next_until = TIME_US_NONE;
    uint64_t n = 0, roots = 0, by = 0, next_by = 0;

    for (uint64_t i = 0; i < trace->count; i++) {
        const struct engine_job *j = &trace->job[i];
        struct difference d = {i, result[i].start, start[i] * US_PER_S, 0, 0};
        if (d.ours == d.theirs)
            continue;
        d.first = d.ours < d.theirs ? d.ours : d.theirs;
        d.last = (d.ours < d.theirs ? d.theirs : d.ours) + (j->run < j->limit ? j->run : j->limit);
        list[n++] = d;
    }
    qsort (list, n, sizeof *list, by_first);
    for (uint64_t i = 0; i < n; i++) {
        const struct difference *d = &list[i];
        unsigned long long number = trace->job[d->index].number;
        if (i > 0 && d->first != list[i - 1].first) { /* only what is earlier explains */
            until = next_until;
            by = next_by;
        }
        printf ("  job %llu: ours %lld, theirs %lld: ", number, (long long)(d->ours / US_PER_S),
                (long long)(d->theirs / US_PER_S));
        if (until != TIME_US_NONE && until >= d->first) {
            printf ("after job %llu\n", (unsigned long long)trace->job[by].number);
        } else {
            uint32_t events = events_at (trace, result, d->first);
            printf ("%u events at %lld\n", events, (long long)(d->first / US_PER_S));
            if (events < 2)
                fail_msg ("job %llu differs and the rule does not say why", number);
            roots++;
        }
        if (d->last > next_until) {
            next_until = d->last;
            next_by = d->index;
        }
    }
    printf ("  %llu at instants of several events, %llu in their wake\n", (unsigned long long)roots,
            (unsigned long long)(n - roots));
    free (list);
}

/* false: not here */
static bool replay_compare (const struct replay *r, const char *log, const char *expected)
{
    struct trace trace = trace_load (log, r->first);
    int64_t *start = trace_expected (expected, &trace);
    struct engine_summary summary;
    struct engine_result *result = run (&trace, r, &summary);
    uint64_t differ = 0, first = 0;
    double wait = 0, wait_expected = 0;

    for (uint64_t i = 0; i < trace.count; i++) {
        assert_true (start[i] != INT64_MIN);
        wait += (double)(result[i].start - trace.job[i].submit) / 1e6;
        wait_expected += (double)start[i] - (double)trace.job[i].submit / 1e6;
        if (result[i].start == start[i] * US_PER_S)
            continue;
        if (differ++ == 0)
            first = trace.job[i].number;
    }
    printf ("%-46s %llu of %llu differ, mean wait %.1f s, theirs %.1f s\n", r->expected,
            (unsigned long long)differ, (unsigned long long)trace.count, wait / (double)trace.count,
            wait_expected / (double)trace.count);
    if (r->allowed)
        explain (&trace, result, start, differ);
    if (differ > r->allowed)
        fail_msg ("%s: %llu jobs start at another time, job %llu first", r->expected,
                  (unsigned long long)differ, (unsigned long long)first);
    if (wait > wait_expected * (1 + r->mean_within) + 1e-3 ||
        wait < wait_expected * (1 - r->mean_within) - 1e-3)
        fail_msg ("%s: the mean wait is too far off", r->expected);
    free (start);
    free (result);
    trace_free (&trace);
    return true;
}

static void replay_all (const struct replay *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char log[512], expected[512], name[512];
        const char *path;
        snprintf (name, sizeof name, "traces/%s.swf.gz", list[i].log);
        path = trace_shared (name);
        if (path == NULL) {
            print_message ("%s is not here: skipped\n", name);
            skip ();
        }
        snprintf (log, sizeof log, "%s", path);
        snprintf (name, sizeof name, "traces/expected/%s.csv.gz", list[i].expected);
        path = trace_shared (name);
        assert_non_null (path);
        snprintf (expected, sizeof expected, "%s", path);
        assert_true (replay_compare (&list[i], log, expected));
    }
}

static void test_equal (void **state)
{
    (void)state;
    replay_all (equal, sizeof equal / sizeof *equal);
}

static void test_conservative (void **state)
{
    (void)state;
    replay_all (conservative, sizeof conservative / sizeof *conservative);
}

/* What tests/data keeps: a made-up log and the start times the rules give, found with the slow model
 * of this folder (model.c) and stored so that both can be seen to change. */
static void test_kept (void **state)
{
    static const struct replay kept[] = {
        {"made-up", 0, "made-up-fcfs", BACKFILL_NONE, BINDING_EARLY, 1, false, 0, 0},
        {"made-up", 0, "made-up-easy", BACKFILL_FIRSTFIT, BINDING_LATE, 1, false, 0, 0},
        {"made-up", 0, "made-up-firstfit", BACKFILL_FIRSTFIT, BINDING_EARLY, 1, false, 0, 0},
        {"made-up", 0, "made-up-bestfit-depth4", BACKFILL_BESTFIT, BINDING_EARLY, 4, false, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char log[512], expected[512];
        snprintf (log, sizeof log, "%s/tests/data/local/%s.swf", NUI_SOURCE_DIR, kept[i].log);
        snprintf (expected, sizeof expected, "%s/tests/data/local/%s.csv", NUI_SOURCE_DIR,
                  kept[i].expected);
        assert_true (replay_compare (&kept[i], log, expected));
    }
}

/* The same input gives the same plans, hash for hash. */
static void test_deterministic (void **state)
{
    struct trace trace = trace_generate (2000, 64, 1.1, 7);
    struct replay r = equal[8];
    struct engine_summary one, two;
    struct engine_result *a = run (&trace, &r, &one), *b = run (&trace, &r, &two);

    (void)state;
    assert_int_equal (one.plan_hash, two.plan_hash);
    assert_int_equal (one.passes, two.passes);
    assert_memory_equal (a, b, trace.count * sizeof *a);
    r.depth = 2;
    free (b);
    b = run (&trace, &r, &two);
    assert_true (one.plan_hash != two.plan_hash);
    free (a);
    free (b);
    trace_free (&trace);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_kept),
        cmocka_unit_test (test_deterministic),
        cmocka_unit_test (test_equal),
        cmocka_unit_test (test_conservative),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
