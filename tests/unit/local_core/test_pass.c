/* The pass on small examples, the paper's first. */
#include "tests/unit/local_core/scene.h"

/* Jackson, Snell & Clement 2001, figure 1: six nodes, A on four of them for three hours; B needs
 * five and is reserved at three hours; C (two nodes, three hours) is backfilled. A ends an hour early,
 * and B could start, were it not for C: the pseudo-delay. */
static void test_pseudo_delay (void **state)
{
    struct scene s;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 6, 1, 0);
    scene_submit (&s, 1, 4, 3 * 3600, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 2, 5, 3600, 0);
    scene_submit (&s, 3, 2, 3 * 3600, 0);
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 2).reserved_start, 3 * 3600 * S);
    assert_int_equal (scene_view (&s, 2).reason.code, REASON_RESERVED);
    assert_true (scene_runs (&s, 3));
    assert_true (scene_view (&s, 3).backfilled);
    assert_int_equal (scene_view (&s, 2).bypass, 1);
    scene_end (&s, 1, 2 * 3600);
    scene_pass (&s, 2 * 3600);
    assert_false (scene_runs (&s, 2));
    assert_int_equal (scene_view (&s, 2).reserved_start, 3 * 3600 * S); /* not later either */
    scene_end (&s, 3, 3 * 3600);
    scene_pass (&s, 3 * 3600);
    assert_true (scene_runs (&s, 2));
    scene_free (&s);
}

/* A job whose data is on the way starts no earlier, is promised a place from then on, and is in nobody's way
 * before; when the data comes earlier or later the promise follows. */
static void test_data (void **state)
{
    struct scene s;
    struct req two = scene_req (2, 1, 0);
    struct job_spec job = scene_job (1, 0, 100, &two);

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 1, 0);
    job.data_at = 1000 * S;
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    scene_submit (&s, 2, 2, 2000, 0); /* would be in its way */
    scene_submit (&s, 3, 1, 500, 0);  /* would not */
    scene_pass (&s, 0);
    assert_false (scene_runs (&s, 1));
    assert_int_equal (scene_view (&s, 1).reserved_start, 1000 * S);
    assert_int_equal (scene_view (&s, 1).reason.code, REASON_DATA);
    assert_int_equal (scene_view (&s, 1).reason.clears, 1000 * S);
    assert_false (scene_runs (&s, 2));
    assert_true (scene_runs (&s, 3));
    assert_int_equal (cluster_next_wakeup (s.c, 0), 500 * S);
    job.data_at = 1500 * S;
    assert_int_equal (cluster_job_modify (s.c, &job, 100 * S, &s.err), 0);
    scene_pass (&s, 100);
    assert_int_equal (scene_view (&s, 1).reserved_start, 1500 * S);
    job.data_at = 0; /* it is there */
    assert_int_equal (cluster_job_modify (s.c, &job, 200 * S, &s.err), 0);
    scene_pass (&s, 200);
    assert_int_equal (scene_view (&s, 1).reserved_start, 500 * S);
    assert_int_equal (scene_view (&s, 1).reason.code, REASON_RESERVED);
    scene_end (&s, 3, 500);
    scene_pass (&s, 500);
    assert_true (scene_runs (&s, 1));
    scene_free (&s);
}

/* A source that trickles: its data is always about to come. Nodes are kept for STAGEINGRACE after the first moment at
 * which it was expected; a moment that has passed starts nothing and keeps nothing. */
static void test_data_trickles (void **state)
{
    struct scene s;
    struct req two = scene_req (2, 1, 0);
    struct job_spec job = scene_job (1, 0, 100, &two);

    (void)state;
    scene_policy (&s);
    s.policy->data_grace = 300 * S;
    scene_nodes (&s, 2, 1, 0);
    job.data_at = 10 * S;
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    scene_submit (&s, 2, 2, 50, 0);
    for (int64_t now = 0; now <= 300; now += 60) {
        job.data_at = (now + 10) * S; /* ten seconds more, each time */
        assert_int_equal (cluster_job_modify (s.c, &job, now * S, &s.err), 0);
        scene_pass (&s, now);
        assert_false (scene_runs (&s, 2));
        assert_int_equal (scene_view (&s, 1).reserved_start, (now + 10) * S);
    }
    scene_pass (&s, 310); /* that moment has passed: nothing is promised, and it does not start */
    assert_false (scene_runs (&s, 1));
    assert_int_equal (scene_view (&s, 1).reserved_start, TIME_US_NONE);
    assert_true (scene_runs (&s, 2));
    scene_end (&s, 2, 360);
    job.data_at = 370 * S;
    assert_int_equal (cluster_job_modify (s.c, &job, 360 * S, &s.err), 0);
    scene_submit (&s, 3, 2, 50, 360);
    scene_pass (&s, 360);
    assert_int_equal (scene_view (&s, 1).reserved_start, TIME_US_NONE);
    assert_true (scene_runs (&s, 3));
    job.data_at = 0;
    assert_int_equal (cluster_job_modify (s.c, &job, 380 * S, &s.err), 0);
    scene_end (&s, 3, 400);
    scene_pass (&s, 400);
    assert_true (scene_runs (&s, 1));
    scene_free (&s);
}

/* Soft limits hold in order of priority; what is left idle may be used up to the hard ones. */
static void test_soft_hard (void **state)
{
    struct scene s;
    struct policy_cred *any;
    struct req one = scene_req (1, 1, 0);

    (void)state;
    scene_policy (&s);
    any = policy_cred_edit (s.policy, CRED_USER, CRED_DEFAULT);
    any->limits.active_mask = 1u << LIMIT_JOB;
    any->limits.active[LIMIT_SOFT][LIMIT_JOB] = 1;
    any->limits.active[LIMIT_HARD][LIMIT_JOB] = 2;
    scene_nodes (&s, 4, 1, 0);
    for (uint64_t id = 1; id <= 4; id++) {
        struct job_spec job = scene_job (id, 0, 100, &one);
        job.cred[CRED_USER] = id < 4 ? 1 : 2;
        assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    }
    scene_pass (&s, 0);
    assert_int_equal (s.plan.start_count, 3);
    assert_int_equal (s.plan.start[0].job.v, 1);
    assert_int_equal (s.plan.start[1].job.v, 4); /* user 2 before user 1's second */
    assert_int_equal (s.plan.start[2].job.v, 2);
    assert_int_equal (s.plan.start[2].phase, PLAN_BACKFILL_HARD);
    assert_int_equal (scene_view (&s, 3).reason.code, REASON_LIMIT_ACTIVE);
    assert_int_equal (scene_view (&s, 3).reason.which, LIMIT_JOB);
    assert_int_equal (scene_view (&s, 3).reason.have, 2);
    assert_int_equal (scene_view (&s, 3).reason.need, 3);
    scene_free (&s);
}

/* A job past its limit: the promise that counted on its end slides on, by a poll interval at most. */
static void test_overrun (void **state)
{
    struct scene s;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 1, 0);
    scene_submit (&s, 1, 2, 100, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 2, 1, 50, 0);
    scene_pass (&s, 10);
    assert_int_equal (scene_view (&s, 2).reserved_start, 100 * S);
    scene_pass (&s, 130);
    assert_false (scene_runs (&s, 2));
    assert_int_equal (scene_view (&s, 2).reserved_start, 130 * S + s.policy->poll_interval);
    scene_end (&s, 1, 140);
    scene_pass (&s, 140);
    assert_true (scene_runs (&s, 2));
    scene_free (&s);
}

/* A plan that is not committed, or refused, leaves everything as it was. */
static void test_refused (void **state)
{
    struct scene s;
    struct plan first;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 1, 0);
    scene_submit (&s, 1, 2, 100, 0);
    scene_compute (&s, 0);
    first = s.plan;
    assert_int_equal (first.start_count, 1);
    scene_submit (&s, 2, 1, 100, 0);
    assert_int_equal (plan_commit (s.c, &first, &s.err), ERR_CONFLICT);
    assert_false (scene_runs (&s, 1));
    scene_compute (&s, 0);
    s.plan.start[0].refused = true;
    assert_int_equal (plan_commit (s.c, &s.plan, &s.err), 0);
    assert_false (scene_runs (&s, 1));
    assert_int_equal (cluster_job_count (s.c, JOB_IDLE), 2);
    scene_pass (&s, 1);
    assert_true (scene_runs (&s, 1));
    scene_free (&s);
}

/* Nodes down or drained take nothing; a job that needs more than is up is told so. */
static void test_nodes (void **state)
{
    struct scene s;
    char text[256];

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 3, 2, 0);
    assert_int_equal (cluster_node_state_set (s.c, (struct node_id){0}, NODE_DOWN, 0, &s.err), 0);
    assert_int_equal (cluster_node_state_set (s.c, (struct node_id){1}, NODE_DRAINED, 0, &s.err),
                      0);
    scene_submit (&s, 1, 3, 100, 0);
    scene_submit (&s, 2, 2, 100, 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 2));
    assert_int_equal (scene_view (&s, 2).allocation.item[0].node.v, 2);
    struct job_view v = scene_view (&s, 1);
    assert_int_equal (v.reason.code, REASON_NEVER_FITS);
    assert_string_equal (reason_text (&v.reason, NULL, text, sizeof text),
                         "needs 3 tasks (req 0), all nodes that are up hold 2");
    assert_int_equal (cluster_node_state_set (s.c, (struct node_id){1}, NODE_UP, 5, &s.err), 0);
    scene_pass (&s, 5);
    assert_int_equal (scene_view (&s, 1).reserved_start, 100 * S);
    scene_free (&s);
}

/* BFCHUNKSIZE: for a while what came free is left to the large job. */
static void test_chunk (void **state)
{
    struct scene s;

    (void)state;
    scene_policy (&s);
    s.policy->bf_chunk_procs = 3;
    s.policy->bf_chunk_duration = 60 * S;
    scene_nodes (&s, 4, 1, 0);
    scene_submit (&s, 1, 2, 1000, 0);
    scene_submit (&s, 2, 2, 100, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 3, 4, 100, 0);
    scene_submit (&s, 5, 4, 100, 0); /* ends the walk by priority: the rest is backfill */
    scene_submit (&s, 6, 1, 100, 0);
    scene_end (&s, 2, 10);
    scene_pass (&s, 10);
    assert_false (scene_runs (&s, 6));
    assert_int_equal (scene_view (&s, 6).reason.code, REASON_CHUNK);
    assert_int_equal (scene_view (&s, 6).reason.clears, 70 * S);
    assert_int_equal (cluster_next_wakeup (s.c, 10 * S), 70 * S);
    scene_pass (&s, 70);
    assert_true (scene_runs (&s, 6));
    scene_free (&s);
}

/* GREEDY takes the combination with the largest sum where BESTFIT takes the largest first. */
static void test_greedy (void **state)
{
    for (int how = 0; how < 2; how++) {
        struct scene s;
        scene_policy (&s);
        s.policy->backfill_policy = how ? BACKFILL_GREEDY : BACKFILL_BESTFIT;
        scene_nodes (&s, 9, 1, 0);
        scene_submit (&s, 1, 1, 1000, 0);
        scene_pass (&s, 0);
        scene_submit (&s, 2, 9, 1000, 0); /* reserved */
        scene_submit (&s, 6, 9, 1000, 0); /* ends the walk by priority */
        scene_submit (&s, 7, 5, 100, 0);
        scene_submit (&s, 8, 4, 100, 0);
        scene_submit (&s, 9, 4, 100, 0);
        scene_pass (&s, 0);
        assert_int_equal (scene_runs (&s, 7), how == 0); /* 5 of 8 … */
        assert_int_equal (scene_runs (&s, 8), how == 1); /* … or 4 + 4 */
        assert_int_equal (scene_runs (&s, 9), how == 1);
        scene_free (&s);
    }
    (void)state;
}

/* RESERVATIONRETRYTIME: a job whose start failed keeps its nodes for so long, and starts there. */
static void test_retry (void **state)
{
    for (int how = 0; how < 3; how++) { /* as it should go; the time runs out; its node is lost */
        struct scene s;
        scene_policy (&s);
        s.policy->reservation_retry = 60 * S;
        scene_nodes (&s, 4, 1, 0);
        scene_submit (&s, 1, 2, 1000, 0);
        scene_pass (&s, 0);
        assert_int_equal (
            cluster_job_requeue (s.c, (struct job_id){1}, (how == 1 ? 100 : 15) * S, 5 * S, &s.err),
            0);
        scene_submit (&s, 2, 3, 1000, 5);
        scene_pass (&s, 5);
        assert_false (scene_runs (&s, 2)); /* four are free, two of them kept */
        assert_int_equal (scene_view (&s, 1).reserved_start, (how == 1 ? 100 : 15) * S);
        assert_int_equal (scene_view (&s, 1).reserved.item[0].node.v, 0);
        scene_submit (&s, 3, 2, 1000, 6);
        scene_pass (&s, 6);
        assert_int_equal (scene_view (&s, 3).allocation.item[0].node.v, 2);
        if (how == 1) {
            assert_int_equal (cluster_next_wakeup (s.c, 6 * S), 65 * S);
            scene_end (&s, 3, 64);
            scene_pass (&s, 64);
            assert_false (scene_runs (&s, 2));
            scene_pass (&s, 65);
            assert_true (scene_runs (&s, 2));
            assert_int_equal (scene_view (&s, 2).allocation.item[0].node.v, 0);
        } else if (how == 2) {
            scene_end (&s, 3, 7);
            assert_int_equal (
                cluster_node_state_set (s.c, (struct node_id){1}, NODE_DOWN, 7 * S, &s.err), 0);
            scene_pass (&s, 7);
            assert_true (scene_runs (&s, 2));
        } else {
            scene_pass (&s, 15);
            assert_true (scene_runs (&s, 1));
            assert_int_equal (s.plan.start[0].phase, PLAN_RESERVED);
            assert_int_equal (scene_view (&s, 1).allocation.item[0].node.v, 0);
        }
        scene_free (&s);
    }
    (void)state;
}

/* Without the parameter, or for a job that had run or is preempted, nothing is kept. */
static void test_no_retry (void **state)
{
    for (int how = 0; how < 3; how++) {
        struct scene s;
        scene_policy (&s);
        s.policy->reservation_retry = how == 0 ? 0 : 60 * S;
        scene_nodes (&s, 4, 1, 0);
        scene_submit (&s, 1, 2, 1000, 0);
        scene_pass (&s, 0);
        if (how == 1)
            assert_int_equal (cluster_job_running (s.c, (struct job_id){1}, 0, S, &s.err), 0);
        if (how == 2)
            assert_int_equal (cluster_job_preempt (s.c, (struct job_id){1}, 5 * S, &s.err), 0);
        else
            assert_int_equal (cluster_job_requeue (s.c, (struct job_id){1}, 15 * S, 5 * S, &s.err),
                              0);
        if (how == 2)
            assert_int_equal (
                cluster_job_hold_set (s.c, (struct job_id){1}, HOLD_USER, 5 * S, &s.err), 0);
        scene_submit (&s, 2, 3, 1000, 5);
        scene_pass (&s, 5);
        assert_true (scene_runs (&s, 2));
        scene_free (&s);
    }
    (void)state;
}

static void test_bad_jobs (void **state)
{
    struct scene s;
    struct req one = scene_req (1, 1, 0), none = scene_req (1, 0, 0), gres = scene_req (1, 1, 0);
    struct job_spec job;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 1, 1, 0);
    job = scene_job (0, 0, 10, &one);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), ERR_INVALID);
    job = scene_job (1, 0, 0, &one);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), ERR_INVALID);
    job = scene_job (1, 0, 10, &none);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), ERR_INVALID);
    gres.task.v[RES_GRES0] = 1;
    job = scene_job (1, 0, 10, &gres);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), ERR_INVALID);
    job = scene_job (1, 0, 10, &one);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), ERR_EXISTS);
    assert_int_equal (cluster_job_end (s.c, (struct job_id){1}, 0, &s.err), ERR_CONFLICT);
    assert_int_equal (cluster_job_remove (s.c, (struct job_id){2}, 0, &s.err), ERR_NOT_FOUND);
    scene_free (&s);
}

/* Four processors, all Bob's until 100 s; MAXJOB=1,2 for everybody. Ann's two jobs (two processors,
 * 50 s each) and Carl's wait, three reservations. At 100 s there would be room for both of Ann's, but
 * her second would be over her soft limit then: Carl is promised 100 s, she 150 s. Once her first runs
 * she is over it now: no promise, and what is idle she may still use. */
static void test_soft_promises (void **state)
{
    struct scene s;
    struct policy_cred *any;
    struct req two = scene_req (2, 1, 0), four = scene_req (4, 1, 0);

    (void)state;
    for (int late = 0; late < 2; late++) {
        scene_policy (&s);
        s.policy->reservation_binding = late ? BINDING_LATE : BINDING_EARLY;
        policy_bucket_set (s.policy, 0, 3, NULL, 0);
        any = policy_cred_edit (s.policy, CRED_USER, CRED_DEFAULT);
        any->limits.active_mask = 1u << LIMIT_JOB;
        any->limits.active[LIMIT_SOFT][LIMIT_JOB] = 1;
        any->limits.active[LIMIT_HARD][LIMIT_JOB] = 2;
        scene_nodes (&s, 4, 1, 0);
        for (uint64_t id = 1; id <= 4; id++) {
            struct job_spec job =
                scene_job (id, (int64_t)id, id == 1 ? 100 : 50, id == 1 ? &four : &two);
            job.cred[CRED_USER] = id == 1 ? 1 : id < 4 ? 2 : 3;
            assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
        }
        scene_pass (&s, 0);
        assert_int_equal (scene_view (&s, 2).reserved_start, 100 * S);
        assert_int_equal (scene_view (&s, 3).reserved_start, 150 * S);
        assert_int_equal (scene_view (&s, 4).reserved_start, 100 * S);
        scene_end (&s, 1, 80);
        scene_pass (&s, 80);
        assert_true (scene_runs (&s, 2) && scene_runs (&s, 4));
        assert_false (scene_runs (&s, 3));
        assert_int_equal (scene_view (&s, 3).reserved_start, TIME_US_NONE);
        assert_int_equal (scene_view (&s, 3).reason.code, REASON_LIMIT_ACTIVE);
        scene_end (&s, 4, 90);
        scene_pass (&s, 90);
        assert_true (scene_runs (&s, 3)); /* idle otherwise, and within the hard limit */
        scene_free (&s);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_pseudo_delay),  cmocka_unit_test (test_data),
        cmocka_unit_test (test_data_trickles), cmocka_unit_test (test_soft_hard),
        cmocka_unit_test (test_soft_promises), cmocka_unit_test (test_overrun),
        cmocka_unit_test (test_refused),       cmocka_unit_test (test_nodes),
        cmocka_unit_test (test_chunk),         cmocka_unit_test (test_greedy),
        cmocka_unit_test (test_retry),         cmocka_unit_test (test_no_retry),
        cmocka_unit_test (test_bad_jobs),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
