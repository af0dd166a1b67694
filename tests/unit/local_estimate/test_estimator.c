/* The estimator on small clusters whose answers can be worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "local/core/plan.h"
#include "local/estimate/estimator.h"

#define HOUR (3600 * US_PER_S)
static const time_us noon = INT64_C (1700000000) * US_PER_S;

struct site {
    struct cred_names names;
    struct policy *policy;
    struct cluster *cluster;
    struct estimator *estimator;
    struct arena *arena;
};

static void site_make (struct site *s, uint32_t nodes, int32_t procs, int32_t mem)
{
    struct node_spec spec = {.partition = 1, .speed_ppm = 1000000};
    struct cluster_options options = {0, 0};
    struct err err;
    cred_names_init (&s->names);
    s->policy = policy_create (&s->names);
    assert_int_equal (policy_seal (s->policy, &err), 0);
    s->cluster = cluster_create (s->policy, &options, &err);
    spec.configured.v[RES_PROCS] = procs;
    spec.configured.v[RES_MEM_MB] = mem;
    for (uint32_t i = 0; i < nodes; i++)
        assert_int_equal (cluster_node_add (s->cluster, &spec, noon - 9 * HOUR, NULL, &err), 0);
    s->estimator = estimator_create (NULL);
    s->arena = arena_create (0);
}

static void site_free (struct site *s)
{
    estimator_destroy (s->estimator);
    cluster_destroy (s->cluster);
    policy_destroy (s->policy);
    cred_names_free (&s->names);
    arena_destroy (s->arena);
}

static struct job_spec job_of (uint64_t id, uint32_t user, struct req *req, duration_us limit,
                               time_us submit)
{
    struct job_spec spec = {.id = {id},
                            .submit = submit,
                            .not_before = TIME_US_NONE,
                            .walltime_limit = limit,
                            .req_count = 1,
                            .req = req};
    for (int k = 0; k < CRED_KINDS; k++)
        spec.cred[k] = CRED_NONE;
    spec.cred[CRED_USER] = user;
    spec.cred[CRED_QOS] = CRED_DEFAULT;
    return spec;
}

static void submit (struct site *s, uint64_t id, uint32_t user, uint32_t tasks, int32_t mem,
                    duration_us limit, time_us now)
{
    struct req req = {.tasks = tasks};
    struct job_spec spec = job_of (id, user, &req, limit, now);
    struct err err;
    req.task.v[RES_PROCS] = 1;
    req.task.v[RES_MEM_MB] = mem;
    assert_int_equal (cluster_job_submit (s->cluster, &spec, now, &err), 0);
}

static void pass (struct site *s, time_us now)
{
    struct plan plan;
    struct err err;
    assert_int_equal (plan_compute (s->cluster, now, s->arena, &plan, &err), 0);
    assert_int_equal (plan_commit (s->cluster, &plan, &err), 0);
}

static struct estimate ask (struct site *s, enum estimate_method method, uint64_t id, time_us now)
{
    struct estimate e;
    struct err err;
    assert_int_equal (estimator_see (s->estimator, s->cluster, now, &err), 0);
    assert_int_equal (
        estimator_ask (s->estimator, method, s->cluster, (struct job_id){id}, NULL, &e, &err), 0);
    return e;
}

/* User 7 asks for two hours and needs half an hour. */
static void history_fill (struct site *s, uint32_t procs)
{
    struct job_known j = {.procs = procs, .limit = 2 * HOUR};
    for (int k = 0; k < CRED_KINDS; k++)
        j.cred[k] = CRED_NONE;
    j.cred[CRED_USER] = 7;
    j.cred[CRED_QOS] = CRED_DEFAULT;
    for (int i = 0; i < 30; i++)
        estimator_ended (s->estimator, &j, HOUR / 2);
}

static void free_now_is_certain (void **state)
{
    struct site s;
    struct estimate e;
    (void)state;
    site_make (&s, 4, 1, 0);
    submit (&s, 1, 7, 4, 0, HOUR, noon);
    e = ask (&s, ESTIMATE_SIMULATION, 1, noon);
    assert_true (e.certain);
    assert_int_equal (e.median, 0);
    assert_int_equal (e.high95, 0);
    site_free (&s);
}

static void behind_one (int32_t mem)
{
    struct site s;
    struct estimate e;
    site_make (&s, 4, 1, mem);
    history_fill (&s, 4);
    submit (&s, 1, 7, 4, mem, 2 * HOUR, noon);
    pass (&s, noon);
    submit (&s, 2, 7, 4, mem, 2 * HOUR, noon);
    e = ask (&s, ESTIMATE_LIMITS, 2, noon);
    assert_int_equal (e.median, 2 * HOUR); /* Maui's answer */
    e = ask (&s, ESTIMATE_SIMULATION, 2, noon);
    assert_in_range (e.median, 25 * 60 * US_PER_S, 35 * 60 * US_PER_S);
    assert_false (e.certain);
    assert_true (e.draws >= DRAWS_LEAST);
    /* a quarter of an hour on it is nearer, although nothing was decided since */
    e = ask (&s, ESTIMATE_SIMULATION, 2, noon + HOUR / 4);
    assert_in_range (e.median, 10 * 60 * US_PER_S, 20 * 60 * US_PER_S);
    e = ask (&s, ESTIMATE_PRIORITY, 2, noon);
    assert_in_range (e.median, 25 * 60 * US_PER_S, 55 * 60 * US_PER_S);
    site_free (&s);
}

static void run_times_are_history (void **state)
{
    (void)state;
    behind_one (0);    /* processors are all: compact */
    behind_one (1024); /* memory counts: the core on a copy */
}

static void a_shape_is_not_left_behind (void **state)
{
    struct site s;
    struct req req = {.tasks = 2};
    struct job_spec spec;
    struct estimate e, again;
    struct err err;
    (void)state;
    site_make (&s, 2, 1, 512);
    history_fill (&s, 2);
    submit (&s, 1, 7, 2, 0, 2 * HOUR, noon);
    pass (&s, noon);
    req.task.v[RES_PROCS] = 1;
    for (int32_t mem = 0; mem <= 256; mem += 256) {
        uint64_t version = cluster_version (s.cluster);
        req.task.v[RES_MEM_MB] = mem;
        spec = job_of (99, 7, &req, 2 * HOUR, noon);
        assert_int_equal (estimator_see (s.estimator, s.cluster, noon, &err), 0);
        assert_int_equal (estimator_ask (s.estimator, ESTIMATE_SIMULATION, s.cluster,
                                         (struct job_id){0}, &spec, &e, &err),
                          0);
        assert_in_range (e.median, 25 * 60 * US_PER_S, 35 * 60 * US_PER_S);
        assert_int_equal (cluster_version (s.cluster), version);
        assert_int_equal (estimator_scene (s.estimator)->waiting_count, 0);
        assert_int_equal (estimator_ask (s.estimator, ESTIMATE_SIMULATION, s.cluster,
                                         (struct job_id){0}, &spec, &again, &err),
                          0);
    }
    site_free (&s);
}

/* Twelve jobs wait behind a full machine, and more will come. */
static void crowd_make (struct site *s, int32_t mem)
{
    site_make (s, 4, 1, mem);
    history_fill (s, 2);
    for (int i = 0; i < 60; i++) {
        struct job_known j = {.procs = 1 + i % 3, .limit = 2 * HOUR};
        for (int k = 0; k < CRED_KINDS; k++)
            j.cred[k] = CRED_NONE;
        j.cred[CRED_USER] = 7;
        estimator_arrived (s->estimator, &j, noon - 30 * HOUR + i * HOUR / 2);
    }
    submit (s, 1, 7, 4, mem, 2 * HOUR, noon);
    pass (s, noon);
    for (uint64_t id = 2; id < 14; id++)
        submit (s, id, 7 + id % 2, 1 + id % 4, mem, (1 + id % 3) * HOUR, noon);
}

/* However a simulation is interrupted, in the middle of copies and draws: the same answers. */
static void slices_change_nothing (void **state)
{
    static const uint64_t slices[] = {UINT64_MAX / 4, 1, 37, 1000};
    (void)state;
    for (int32_t mem = 0; mem <= 64; mem += 64) {
        struct estimate whole[14], sliced;
        struct site s;
        struct err err;
        crowd_make (&s, mem);
        assert_int_equal (estimator_see (s.estimator, s.cluster, noon, &err), 0);
        const struct scene *scene = estimator_scene (s.estimator);
        assert_int_equal (scene->waiting_count, 12);
        for (uint32_t k = 0; k < sizeof slices / sizeof *slices; k++) {
            struct forward_ghost shape[1] = {{4, HOUR, 0}};
            struct simulate_options options = {.draws = 4, .seed = 11};
            struct simulation *sim = simulation_create ();
            uint32_t calls = 1;
            assert_int_equal (simulation_begin (sim, scene, estimator_history (s.estimator),
                                                s.cluster, UINT32_MAX, shape, 1, &options, &err),
                              0);
            while (!simulation_go (sim, slices[k]))
                calls++;
            assert_int_equal (simulation_status (sim, &err), 0);
            assert_true (k == 0 ? calls == 1 : calls > 4);
            for (uint32_t i = 0; i <= scene->waiting_count; i++) {
                simulation_estimate (sim, i, k ? &sliced : &whole[i]);
                assert_true (k || whole[i].draws == 4);
                if (k)
                    assert_memory_equal (&sliced, &whole[i], sizeof sliced);
            }
            assert_true (whole[11].high95 > whole[11].low95); /* there was something to differ */
            simulation_destroy (sim);
        }
        site_free (&s);
    }
}

/* While the copy is being made jobs leave the site: the others have their answers all the same. */
static void jobs_leave_meanwhile (void **state)
{
    struct simulate_options options = {.draws = 4, .seed = 11};
    struct simulation *sim = simulation_create ();
    struct site s;
    struct estimate e;
    struct err err;
    (void)state;
    crowd_make (&s, 64);
    assert_int_equal (estimator_see (s.estimator, s.cluster, noon, &err), 0);
    const struct scene *scene = estimator_scene (s.estimator);
    assert_false (scene->counted);
    assert_int_equal (simulation_begin (sim, scene, estimator_history (s.estimator), s.cluster,
                                        UINT32_MAX, NULL, 0, &options, &err),
                      0);
    assert_false (simulation_go (sim, 1));
    assert_int_equal (cluster_job_end (s.cluster, (struct job_id){1}, noon, &err), 0);
    assert_int_equal (cluster_job_remove (s.cluster, (struct job_id){5}, noon, &err), 0);
    while (!simulation_go (sim, 1))
        ;
    assert_int_equal (simulation_status (sim, &err), 0);
    simulation_estimate (sim, scene_find (scene, (struct job_id){2}), &e);
    assert_int_equal (e.draws, 4);
    assert_in_range (e.median, 0, 100 * HOUR);
    simulation_destroy (sim);
    site_free (&s);
}

/* A question that may cost no more than so much is not answered where that is not enough. */
static void bounded_questions (void **state)
{
    struct estimator_options options = {.work = 10, .bounded = true};
    struct site s;
    struct estimate e;
    struct err err;
    (void)state;
    crowd_make (&s, 64);
    estimator_destroy (s.estimator);
    s.estimator = estimator_create (&options);
    assert_int_equal (estimator_see (s.estimator, s.cluster, noon, &err), 0);
    assert_int_equal (estimator_ask (s.estimator, ESTIMATE_SIMULATION, s.cluster,
                                     (struct job_id){13}, NULL, &e, &err),
                      ERR_LIMIT);
    site_free (&s);
}

static void held_jobs_have_no_estimate (void **state)
{
    struct site s;
    struct estimate e;
    struct err err;
    (void)state;
    site_make (&s, 2, 1, 0);
    submit (&s, 1, 7, 1, 0, HOUR, noon);
    assert_int_equal (cluster_job_hold_set (s.cluster, (struct job_id){1}, HOLD_USER, noon, &err),
                      0);
    assert_int_equal (estimator_see (s.estimator, s.cluster, noon, &err), 0);
    assert_int_equal (estimator_ask (s.estimator, ESTIMATE_SIMULATION, s.cluster,
                                     (struct job_id){1}, NULL, &e, &err),
                      ERR_NOT_FOUND);
    site_free (&s);
}

/* The whole queue and a table of shapes at once say what single questions say. */
static void all_at_once (void **state)
{
    struct site s;
    struct forward_ghost shape[2] = {{2, HOUR, 0}, {1, 60 * US_PER_S, 0}};
    struct simulate_options options = {20, 0, 5, true, false};
    struct simulation *sim = simulation_create ();
    struct estimate e;
    struct err err;
    (void)state;
    for (int32_t mem = 0; mem <= 1; mem++) {
        site_make (&s, 2, 1, mem);
        history_fill (&s, 2);
        submit (&s, 1, 7, 2, mem, 2 * HOUR, noon);
        pass (&s, noon);
        submit (&s, 2, 7, 2, mem, 2 * HOUR, noon);
        submit (&s, 3, 7, 2, mem, 2 * HOUR, noon);
        assert_int_equal (estimator_see (s.estimator, s.cluster, noon, &err), 0);
        const struct scene *scene = estimator_scene (s.estimator);
        assert_int_equal (scene->counted, mem == 0);
        assert_int_equal (simulation_begin (sim, scene, estimator_history (s.estimator), s.cluster,
                                            UINT32_MAX, shape, 2, &options, &err),
                          0);
        int slices = 0;
        while (!simulation_go (sim, 100))
            slices++;
        assert_true (slices > 3); /* it did stop in between */
        simulation_estimate (sim, scene_find (scene, (struct job_id){2}), &e);
        assert_in_range (e.median, 25 * 60 * US_PER_S, 35 * 60 * US_PER_S);
        simulation_estimate (sim, scene_find (scene, (struct job_id){3}), &e);
        assert_in_range (e.median, 50 * 60 * US_PER_S, 70 * 60 * US_PER_S);
        simulation_shape (sim, 0, &e);
        assert_in_range (e.median, 80 * 60 * US_PER_S, 100 * 60 * US_PER_S);
        site_free (&s);
    }
    simulation_destroy (sim);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (free_now_is_certain),
        cmocka_unit_test (run_times_are_history),
        cmocka_unit_test (a_shape_is_not_left_behind),
        cmocka_unit_test (held_jobs_have_no_estimate),
        cmocka_unit_test (all_at_once),
        cmocka_unit_test (slices_change_nothing),
        cmocka_unit_test (jobs_leave_meanwhile),
        cmocka_unit_test (bounded_questions),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
