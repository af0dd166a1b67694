/* The parts of an estimate: run times from history, arrivals, order statistics, the record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "local/estimate/history.h"
#include "local/estimate/record.h"
#include "local/estimate/waits.h"

#define HOUR (3600 * US_PER_S)

static struct job_known job_of (uint32_t user, uint32_t procs, duration_us limit)
{
    struct job_known j = {.procs = procs, .limit = limit};

    for (int k = 0; k < CRED_KINDS; k++)
        j.cred[k] = CRED_NONE;
    j.cred[CRED_USER] = user;
    return j;
}

static void nothing_known_is_the_limit (void **state)
{
    struct history *h = history_create (64);
    struct job_known j = job_of (1, 4, HOUR);
    struct runs runs;
    (void)state;
    history_runs (h, &j, 0, &runs);
    assert_int_equal (runs_quantile (&runs, .5), HOUR);
    history_destroy (h);
}

static void own_jobs_count_most (void **state)
{
    struct history *h = history_create (64);
    struct job_known mine = job_of (1, 4, HOUR), theirs = job_of (2, 4, HOUR);
    struct job_known longer = job_of (1, 8, 4 * HOUR);
    struct runs runs;
    (void)state;
    for (int i = 0; i < 10; i++) {
        history_ended (h, &mine, 600 * US_PER_S);
        history_ended (h, &theirs, 3000 * US_PER_S);
    }
    history_runs (h, &mine, 0, &runs);
    assert_int_equal (runs_quantile (&runs, .5), 600 * US_PER_S);
    history_runs (h, &theirs, 0, &runs);
    assert_int_equal (runs_quantile (&runs, .5), 3000 * US_PER_S);
    history_runs (h, &longer, 0, &runs); /* the same share of another limit */
    assert_int_equal (runs_quantile (&runs, .5), 2400 * US_PER_S);
    history_destroy (h);
}

static void recent_beats_old (void **state)
{
    struct history *h = history_create (256);
    struct job_known j = job_of (1, 4, HOUR);
    struct runs runs;
    (void)state;
    for (int i = 0; i < 100; i++)
        history_ended (h, &j, 3000 * US_PER_S);
    for (int i = 0; i < 12; i++)
        history_ended (h, &j, 60 * US_PER_S);
    history_runs (h, &j, 0, &runs);
    assert_int_equal (runs_quantile (&runs, .5), 60 * US_PER_S);
    history_destroy (h);
}

static void elapsed_is_a_fact (void **state)
{
    struct history *h = history_create (64);
    struct job_known j = job_of (1, 4, HOUR);
    struct runs runs;
    struct rng rng;
    (void)state;
    rng_seed (&rng, 3, 0);
    for (int i = 0; i < 20; i++)
        history_ended (h, &j, (i % 2 ? 60 : 1800) * US_PER_S);
    for (duration_us elapsed = 0; elapsed < HOUR; elapsed += 300 * US_PER_S) {
        history_runs (h, &j, elapsed, &runs);
        for (int i = 0; i < 200; i++) {
            duration_us run = runs_draw (&runs, &j, elapsed, &rng);
            assert_true (run > elapsed || elapsed == 0);
            assert_true (run >= 0 && run <= HOUR);
        }
    }
    history_runs (h, &j, 2 * HOUR, &runs); /* past its limit: any moment */
    assert_true (runs_draw (&runs, &j, 2 * HOUR, &rng) > 2 * HOUR);
    history_destroy (h);
}

/* Far more than is kept, from ever new users: bounded memory, and old chains are not followed. */
static void the_ring_wraps (void **state)
{
    struct history *h = history_create (64);
    struct job_known first = job_of (1, 1, HOUR), j;
    struct runs runs;
    (void)state;
    for (int i = 0; i < 10; i++)
        history_ended (h, &first, 60 * US_PER_S);
    for (uint32_t i = 0; i < 20000; i++) {
        j = job_of (100 + i % 5000, 1, HOUR);
        history_ended (h, &j, 3000 * US_PER_S);
    }
    history_runs (h, &first, 0, &runs);
    assert_int_equal (runs_quantile (&runs, .5), 3000 * US_PER_S);
    assert_int_equal (history_ended_count (h), 20010);
    history_destroy (h);
}

static void days_come_again (void **state)
{
    struct history *h = history_create (1024);
    struct job_known j = job_of (1, 1, HOUR), came;
    struct arrivals a;
    struct rng rng;
    time_us begin = INT64_C (1700000000) * US_PER_S, now = begin + 5 * 24 * HOUR, at, last = now;
    uint32_t count = 0;
    (void)state;
    rng_seed (&rng, 1, 0);
    arrivals_begin (&a, h, now, &rng);
    assert_false (arrivals_next (&a, &rng, &at, &came)); /* nobody ever came */
    for (int day = 0; day < 5; day++) {
        for (int i = 0; i < 10; i++) /* always within one hour of the day */
            history_arrived (h, &j, begin + day * 24 * HOUR + 12 * HOUR + i * 60 * US_PER_S);
    }
    arrivals_begin (&a, h, now, &rng);
    while (arrivals_next (&a, &rng, &at, &came) && at < now + 3 * 24 * HOUR) {
        assert_true (at >= last);
        last = at;
        assert_in_range ((at - begin) % (24 * HOUR), 12 * HOUR, 13 * HOUR);
        count++;
    }
    assert_int_equal (count, 30); /* ten a day */
    history_destroy (h);
}

/* Fifty jobs in ten seconds are what is known of a site: that is no rate to carry on for days. */
static void a_young_site_is_not_flooded (void **state)
{
    struct history *h = history_create (64);
    struct job_known j = job_of (1, 4, HOUR);
    time_us now = 1000 * HOUR, at, last = now;
    struct arrivals a;
    struct rng rng;
    (void)state;
    for (int i = 0; i < 50; i++)
        history_arrived (h, &j, now - (10 * US_PER_S) + i * US_PER_S / 5);
    rng_seed (&rng, 5, 0);
    arrivals_begin (&a, h, now, &rng);
    for (int i = 0; i < 500; i++) { /* an hour's worth each: ten hours */
        assert_true (arrivals_next (&a, &rng, &at, &j));
        assert_true (at >= last);
        last = at;
    }
    assert_in_range (last - now, 9 * HOUR, 11 * HOUR);
    history_destroy (h);
}

static void order_statistics_and_change (void **state)
{
    struct waits *w = waits_create ();
    struct job_known j = job_of (1, 4, HOUR);
    struct estimate e;
    (void)state;
    waits_estimate (w, &j, &e);
    assert_int_equal (e.median, 0);
    for (int i = 0; i < 400; i++)
        waits_add (w, &j, (i * 37 % 100) * US_PER_S);
    waits_estimate (w, &j, &e);
    assert_in_range (e.median, 48 * US_PER_S, 52 * US_PER_S);
    assert_in_range (e.high95, 95 * US_PER_S, 99 * US_PER_S);
    for (int i = 0; i < 62; i++) /* another regime */
        waits_add (w, &j, 5000 * US_PER_S);
    waits_estimate (w, &j, &e);
    assert_int_equal (e.median, 5000 * US_PER_S);
    waits_destroy (w);
}

/* Whatever is wrong with the raw interval, the corrected one holds as often as it says. */
static void control_covers (void **state)
{
    struct control c;
    struct rng rng;
    uint32_t in50 = 0, in95 = 0;
    enum { JOBS = 8000, WARM = 1000 };
    (void)state;
    rng_seed (&rng, 9, 0);
    control_init (&c);
    for (int i = 0; i < JOBS; i++) {
        duration_us spread = (duration_us)(rng_exponential (&rng, 3600) * US_PER_S);
        struct estimate raw = {.median = 7200 * US_PER_S, .draws = 10}, said;
        duration_us wait = spread * (1 + i / 4000); /* and the world changes half way */
        raw.low50 = raw.low95 = 7100 * US_PER_S;    /* far too narrow */
        raw.high50 = raw.high95 = 7300 * US_PER_S;
        control_apply (&c, &raw, &said);
        assert_true (said.low95 <= said.low50 && said.low50 <= said.median);
        assert_true (said.median <= said.high50 && said.high50 <= said.high95);
        if (i >= WARM) {
            in50 += wait >= said.low50 && wait <= said.high50;
            in95 += wait >= said.low95 && wait <= said.high95;
        }
        control_learn (&c, &raw, wait);
    }
    assert_in_range (in95, (JOBS - WARM) * 93 / 100, (JOBS - WARM) * 975 / 1000);
    assert_in_range (in50, (JOBS - WARM) * 45 / 100, (JOBS - WARM) * 56 / 100);
}

static void certain_is_left_alone (void **state)
{
    struct control c, before;
    struct estimate raw = {.certain = true, .draws = 3}, said;
    (void)state;
    control_init (&c);
    before = c;
    control_learn (&c, &raw, 5 * HOUR);
    assert_memory_equal (&c, &before, sizeof c);
    control_apply (&c, &raw, &said);
    assert_int_equal (said.high95, 0);
}

static void words_are_earned (void **state)
{
    static struct recent r;
    struct recent_summary s;
    struct estimate e = {
        .median = HOUR, .low50 = HOUR / 2, .high50 = 2 * HOUR, .low95 = 0, .high95 = 3 * HOUR};
    time_us now = 100 * 24 * HOUR;
    (void)state;
    for (int i = 0; i < 39; i++)
        recent_add (&r, now, &e, HOUR / 2);
    recent_summarise (&r, now, &s);
    assert_false (recent_earned (&s)); /* too few */
    recent_add (&r, now, &e, HOUR / 2);
    recent_summarise (&r, now, &s);
    assert_true (recent_earned (&s));
    assert_true (s.bias_s > 1799 && s.bias_s < 1801 && s.median_error_s > 1799);
    for (int i = 0; i < 10; i++)
        recent_add (&r, now, &e, 9 * HOUR); /* misses */
    recent_summarise (&r, now, &s);
    assert_false (recent_earned (&s));
    recent_summarise (&r, now + (RECENT_DAYS + 1) * 24 * HOUR, &s); /* long ago */
    assert_int_equal (s.count, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (nothing_known_is_the_limit),
        cmocka_unit_test (own_jobs_count_most),
        cmocka_unit_test (recent_beats_old),
        cmocka_unit_test (elapsed_is_a_fact),
        cmocka_unit_test (the_ring_wraps),
        cmocka_unit_test (days_come_again),
        cmocka_unit_test (a_young_site_is_not_flooded),
        cmocka_unit_test (order_statistics_and_change),
        cmocka_unit_test (control_covers),
        cmocka_unit_test (certain_is_left_alone),
        cmocka_unit_test (words_are_earned),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
