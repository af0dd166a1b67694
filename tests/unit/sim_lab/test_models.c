/* Workloads that no site recorded: their distributions, bounds and determinism. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "local/sim/lab/mix.h"
#include "local/sim/lab/model.h"

static struct cred_names names;

static int setup (void **state)
{
    (void)state;
    cred_names_init (&names);
    return 0;
}

static int teardown (void **state)
{
    (void)state;
    cred_names_free (&names);
    return 0;
}

static bool near (double value, double wanted, double share)
{
    if (fabs (value - wanted) <= share * fabs (wanted))
        return true;
    print_error ("%g is not within %g %% of %g\n", value, 100 * share, wanted);
    return false;
}

static void random_moments (void **state)
{
    static const double shape[] = {.3, 1, 4.2, 312};
    struct rng rng, again, other;
    (void)state;
    rng_seed (&rng, 7, 1);
    rng_seed (&again, 7, 1);
    rng_seed (&other, 7, 2);
    assert_int_equal (rng_next (&rng), rng_next (&again));
    assert_int_not_equal (rng_next (&rng), rng_next (&other));
    for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
        enum { DRAWS = 200000 };
        double sum = 0, square = 0;
        for (int i = 0; i < DRAWS; i++) {
            double x = rng_gamma (&rng, shape[k], 2);
            sum += x;
            square += x * x;
        }
        double mean = sum / DRAWS;
        assert_true (near (mean, 2 * shape[k], .02));
        assert_true (near (square / DRAWS - mean * mean, 4 * shape[k], .05));
    }
    double sum = 0;
    for (int i = 0; i < 100000; i++)
        sum += rng_exponential (&rng, 3);
    assert_true (near (sum / 100000, 3, .02));
}

static void lublin_shape (void **state)
{
    struct lublin_options o = {.seed = 3, .jobs = 20000, .procs = 128, .users = 16, .load = .8};
    struct workload *w = model_lublin (&o, &names), *same = model_lublin (&o, &names);
    double serial = 0, power = 0, log_run = 0, by_hour[24] = {0};
    (void)state;
    assert_int_equal (w->count, o.jobs);
    assert_int_equal (w->header_procs, 128);
    assert_true (near (model_load (w, 128), .8, .01));
    for (uint64_t i = 0; i < w->count; i++) {
        const struct workload_job *j = &w->job[i];
        assert_in_range (j->procs, 1, 128);
        assert_true (j->run >= US_PER_S && j->run <= j->limit);
        assert_true (j->run <= (duration_us)(exp (12) * 1e6));
        assert_true (i == 0 || j->submit >= w->job[i - 1].submit);
        assert_int_equal (j->number, i + 1);
        assert_int_equal (j->submit, same->job[i].submit);
        assert_int_equal (j->run, same->job[i].run);
        assert_int_equal (j->procs, same->job[i].procs);
        serial += j->procs == 1;
        power += j->procs > 1 && (j->procs & (j->procs - 1)) == 0;
        log_run += log ((double)j->run / 1e6);
        by_hour[j->submit / US_PER_S / 3600 % 24]++;
    }
    /* The model's own: 24.4 % serial, 57.6 % powers of two (others reach one by chance). */
    assert_true (near (serial / 20000, .244, .05));
    assert_true (power / 20000 > .55 && power / 20000 < .68);
    /* Means of the two gammas, 3.95 and 9.36, mixed with p between 0.09 and 0.775. */
    assert_true (log_run / 20000 > 4.5 && log_run / 20000 < 6.5);
    /* The day under any load. By the density of gamma (8.17, 3.96) over half hours: 29.5 % between
     * 13 and 17 h, 3.9 % between 2 and 6 h (computed apart from this code). */
    double afternoon = 0, night = 0;
    for (int h = 0; h < 4; h++) {
        afternoon += by_hour[13 + h];
        night += by_hour[2 + h];
    }
    print_message ("13 to 17 h: %.3f of the jobs, 2 to 6 h: %.3f\n", afternoon / 20000,
                   night / 20000);
    assert_true (near (afternoon / 20000, .2946, .06) && near (night / 20000, .039, .25));
    workload_destroy (w);
    workload_destroy (same);
    o.seed = 4;
    struct workload *other = model_lublin (&o, &names);
    o.seed = 3;
    same = model_lublin (&o, &names);
    assert_int_not_equal (other->job[100].run, same->job[100].run);
    workload_destroy (other);
    workload_destroy (same);
}

static void scaling (void **state)
{
    struct lublin_options o = {.seed = 1, .jobs = 500, .procs = 64, .users = 4, .load = .5};
    struct workload *w = model_lublin (&o, &names), *copy = model_copy (w);
    (void)state;
    model_scale (copy, 1.5);
    assert_true (near (model_load (copy, 64), 1.5 * model_load (w, 64), .001));
    for (uint64_t i = 0; i < w->count; i++) {
        assert_int_equal (copy->job[i].run, w->job[i].run);
        assert_int_equal (copy->job[i].procs, w->job[i].procs);
    }
    assert_int_equal (copy->job[0].submit, w->job[0].submit);
    struct workload *exact = model_exact (w);
    for (uint64_t i = 0; i < w->count; i++)
        assert_int_equal (exact->job[i].limit, w->job[i].run);
    workload_destroy (w);
    workload_destroy (copy);
    workload_destroy (exact);
}

static void names_of_models (void **state)
{
    uint64_t jobs;
    (void)state;
    assert_true (model_named ("model:lublin", &jobs));
    assert_int_equal (jobs, 0);
    assert_true (model_named ("model:lublin:300", &jobs));
    assert_int_equal (jobs, 300);
    assert_false (model_named ("model:lublin:", &jobs));
    assert_false (model_named ("model:lublin:0", &jobs));
    assert_false (model_named ("model:lublin:3x", &jobs));
    assert_false (model_named ("model:lublinx", &jobs));
    assert_false (model_named ("log.swf", &jobs));
}

/* Section 5.1, bound by bound; 64 processors. */
static void mix_classes (void **state)
{
    (void)state;
    assert_int_equal (mix_classify (33, 70, 100), MIX_LARGE);
    assert_int_equal (mix_classify (32, 70, 100), MIX_MEDIUM);
    assert_int_equal (mix_classify (10, 100, 100), MIX_MEDIUM); /* 15.6 % */
    assert_int_equal (mix_classify (9, 100, 100), MIX_SMALL);   /* 14.1 % */
    assert_int_equal (mix_classify (2, 70, 100), MIX_SMALL);
    assert_int_equal (mix_classify (1, 70, 100), MIX_DEBUG); /* 1.6 %: too small for Small */
    assert_int_equal (mix_classify (6, 41, 100), MIX_DEBUG);
    assert_int_equal (mix_classify (6, 40, 100), MIX_CLASSES); /* not more than 40 % */
    assert_int_equal (mix_classify (7, 50, 100), MIX_CLASSES); /* 10.9 %: too large for Debug */
    assert_int_equal (mix_classify (64, 19, 100), MIX_FAILED);
    assert_int_equal (mix_classify (64, 20, 100), MIX_CLASSES);
    assert_int_equal (mix_classify (33, 69, 100), MIX_CLASSES);
    assert_int_equal (mix_classify (33, 101, 100), MIX_CLASSES); /* more work than the limit */
}

static void mix_bounds (void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        enum mix_class class[MIX_JOBS];
        uint32_t count[MIX_CLASSES] = {0};
        uint64_t drawn;
        struct workload *w = mix_generate (seed, &names, class, &drawn);
        assert_int_equal (w->count, MIX_JOBS);
        assert_true (drawn > 300 && drawn < 3000);
        for (uint32_t i = 0; i < MIX_JOBS; i++) {
            const struct workload_job *j = &w->job[i];
            assert_in_range (j->procs, 1, MIX_PROCS);
            assert_in_range (j->submit / US_PER_S, 0, 180 * 60);
            assert_true (j->run <= j->limit);
            assert_int_equal (class[i], mix_classify (j->procs, (double)j->run, (double)j->limit));
            count[class[i]]++;
        }
        /* In actual numbers: 22 Large, 31 Medium, 15 Small, 4 Debug, 4 Failed. */
        static const uint32_t wanted[MIX_CLASSES] = {22, 31, 15, 4, 4};
        assert_memory_equal (count, wanted, sizeof wanted);
        workload_destroy (w);
    }
}

static void mix_orders (void **state)
{
    struct workload *w = model_workload (&names);
    static const uint32_t forth[] = {0, 1, 2, 3}, better[] = {0, 2, 1, 3};
    (void)state;
    model_job (w, 0, 3600, 3600, 40, -1);
    model_job (w, 0, 3600, 3600, 40, -1);
    model_job (w, 0, 3600, 3600, 24, -1);
    model_job (w, 0, 7200, 7200, 24, -1);
    /* 40 | 40+24 | 24 from hour 2 to 4; the other way 40+24 | 40+24 until 3. */
    assert_true (near (mix_in_order_h (w, forth), 4, 1e-9));
    assert_true (near (mix_in_order_h (w, better), 3, 1e-9));
    assert_true (near (mix_sequential_h (w), 5, 1e-9));
    assert_true (near (mix_minimum_h (w), (40 + 40 + 24 + 48) / 64., 1e-9));
    workload_destroy (w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (random_moments), cmocka_unit_test (lublin_shape),
        cmocka_unit_test (scaling),        cmocka_unit_test (names_of_models),
        cmocka_unit_test (mix_classes),    cmocka_unit_test (mix_bounds),
        cmocka_unit_test (mix_orders),
    };
    return cmocka_run_group_tests (tests, setup, teardown);
}
