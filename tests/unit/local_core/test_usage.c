/* FSPOLICY UTILIZEDPS: what running jobs really use, worked by hand. Windows of 100 s. */
#include "tests/unit/local_core/scene.h"

static void utilized_scene (struct scene *s)
{
    scene_policy (s);
    s->policy->fs_policy = FS_UTILIZEDPS;
    s->policy->fs_interval = 100 * S;
    s->policy->fs_depth = 3;
    scene_nodes (s, 4, 1, 0);
}

static void run_of (struct scene *s, uint64_t id, uint32_t tasks, uint32_t user, int64_t now)
{
    struct req req = scene_req (tasks, 1, 0);
    struct job_spec job = scene_job (id, now, 1000, &req);

    job.cred[CRED_USER] = user;
    assert_int_equal (cluster_job_submit (s->c, &job, now * S, &s->err), 0);
    scene_pass (s, now);
    assert_true (scene_runs (s, id));
}

static void used (struct scene *s, uint64_t id, int64_t cpu_s, int64_t now)
{
    assert_int_equal (cluster_job_used (s->c, (struct job_id){id}, cpu_s * S, -1, now * S, &s->err),
                      0);
}

static void windows_are (struct scene *s, uint32_t user, int64_t now, double w0, double w1)
{
    struct fairshare *fs = cluster_fairshare (s->c);

    fairshare_advance (fs, now * S);
    assert_float_equal (fairshare_window (fs, CRED_USER, user, 0), w0, 1e-6);
    assert_float_equal (fairshare_window (fs, CRED_USER, user, 1), w1, 1e-6);
}

/* Four processors. Not measured: 4 a second. At 60 s it has used 120: 2 a second from then on. At
 * 130 s it has used 35 more, half a processor: 20 of them before the window rolled, 15 after. */
static void test_measured (void **state)
{
    struct scene s;

    (void)state;
    utilized_scene (&s);
    run_of (&s, 1, 4, 1, 0);
    windows_are (&s, 1, 30, 120, 0);
    used (&s, 1, 120, 60);
    windows_are (&s, 1, 60, 120, 0);
    windows_are (&s, 1, 130, 60, 200);
    used (&s, 1, 155, 130);
    windows_are (&s, 1, 130, 15, 140);
    assert_int_equal (scene_view (&s, 1).usage.used_micro, 500000);
    used (&s, 1, 155, 140); /* idle to its end */
    scene_end (&s, 1, 140);
    windows_are (&s, 1, 190, 15, 140);
    assert_float_equal (fairshare_window_total (cluster_fairshare (s.c), 0), 15, 1e-6);
    assert_float_equal (fairshare_window_total (cluster_fairshare (s.c), 1), 140, 1e-6);
    scene_free (&s);
}

/* A simulation knows the average beforehand. */
static void test_known (void **state)
{
    struct scene s;

    (void)state;
    utilized_scene (&s);
    run_of (&s, 1, 2, 1, 0);
    run_of (&s, 2, 2, 2, 0);
    assert_int_equal (cluster_job_used (s.c, (struct job_id){1}, 0, 250000, 0, &s.err), 0);
    scene_end (&s, 1, 80);
    scene_end (&s, 2, 80);
    windows_are (&s, 1, 80, 20, 0);
    windows_are (&s, 2, 80, 160, 0); /* not known: all that it has */
    scene_free (&s);
}

/* Stopped at 60 s with the record of 50 s, back at 90 s: what was guessed in between is put right by
 * the first measurement. A job that began after the record counts from it. */
static void test_restart (void **state)
{
    struct scene s;
    struct fairshare_state saved;
    struct job_usage usage;
    struct arena *arena = arena_create (0);

    (void)state;
    utilized_scene (&s);
    run_of (&s, 1, 2, 1, 0);
    used (&s, 1, 10, 40); /* a quarter of a processor */
    fairshare_advance (cluster_fairshare (s.c), 50 * S);
    fairshare_export (cluster_fairshare (s.c), arena, &saved);
    usage = scene_view (&s, 1).usage;
    scene_free (&s);

    utilized_scene (&s);
    run_of (&s, 1, 2, 1, 90);
    run_of (&s, 2, 1, 2, 90);
    assert_int_equal (cluster_job_usage_restore (s.c, (struct job_id){1}, &usage, &s.err), 0);
    usage = (struct job_usage){0, 50 * S, -1};
    assert_int_equal (cluster_job_usage_restore (s.c, (struct job_id){2}, &usage, &s.err), 0);
    assert_int_equal (fairshare_import (cluster_fairshare (s.c), &saved, &s.err), 0);
    windows_are (&s, 1, 90, 10 + 50 * .25, 0);
    windows_are (&s, 2, 90, 40, 0);
    used (&s, 1, 70, 90);
    used (&s, 2, 3, 90);
    windows_are (&s, 1, 90, 70, 0);
    windows_are (&s, 2, 90, 3, 0);
    scene_free (&s);
    arena_destroy (arena);
}

/* Another policy in between: what was counted by the old rule stays, the new one counts from the next
 * measurement on. */
static void test_policy_changes (void **state)
{
    struct scene s;
    struct policy *dedicated;

    (void)state;
    utilized_scene (&s);
    dedicated = policy_create (&s.names);
    dedicated->fs_policy = FS_DEDICATEDPS;
    dedicated->fs_interval = 100 * S;
    dedicated->fs_depth = 3;
    assert_int_equal (policy_seal (dedicated, &s.err), 0);
    run_of (&s, 1, 2, 1, 0);
    used (&s, 1, 5, 10);
    assert_int_equal (cluster_policy_set (s.c, dedicated, 20 * S, &s.err), 0);
    windows_are (&s, 1, 30, 5 + 5 + 20, 0);
    used (&s, 1, 11, 30); /* measured, but not what counts */
    windows_are (&s, 1, 30, 30, 0);
    assert_int_equal (cluster_policy_set (s.c, s.policy, 40 * S, &s.err), 0);
    windows_are (&s, 1, 40, 50, 0);
    used (&s, 1, 12, 50); /* half a processor was guessed; from here on it is known */
    windows_are (&s, 1, 50, 55, 0);
    used (&s, 1, 20, 60);
    windows_are (&s, 1, 60, 63, 0);
    scene_free (&s);
    policy_destroy (dedicated);
}

static void test_refused (void **state)
{
    struct scene s;

    (void)state;
    utilized_scene (&s);
    scene_submit (&s, 1, 4, 100, 0);
    assert_int_equal (cluster_job_used (s.c, (struct job_id){1}, 0, -1, 0, &s.err), ERR_CONFLICT);
    assert_int_equal (cluster_job_used (s.c, (struct job_id){7}, 0, -1, 0, &s.err), ERR_NOT_FOUND);
    scene_pass (&s, 0);
    assert_int_equal (cluster_job_used (s.c, (struct job_id){1}, -1, -1, 0, &s.err), ERR_INVALID);
    scene_free (&s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_measured), cmocka_unit_test (test_known),
        cmocka_unit_test (test_restart),  cmocka_unit_test (test_policy_changes),
        cmocka_unit_test (test_refused),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
