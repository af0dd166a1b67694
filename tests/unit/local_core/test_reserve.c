/* Who gets a reservation, worked by hand: RESERVATIONPOLICY, RESERVATIONDEPTH[n] with
 * RESERVATIONQOSLIST[n], thresholds, RESERVEALWAYS and NORESERVATION; and generic resources in a req. */
#include "tests/unit/local_core/scene.h"

static void submit_as (struct scene *s, uint64_t id, uint32_t tasks, int64_t limit, uint32_t qos,
                       int64_t now)
{
    struct req req = scene_req (tasks, 1, 0);
    struct job_spec spec = scene_job (id, now, limit, &req);

    spec.cred[CRED_QOS] = qos;
    assert_int_equal (cluster_job_submit (s->c, &spec, now * S, &s->err), 0);
}

static int64_t reserved_at (struct scene *s, uint64_t id)
{
    time_us start = scene_view (s, id).reserved_start;

    return start == TIME_US_NONE ? -1 : start / S;
}

/* Four processors taken until 100 s, depth 1. The second job is reserved; ten seconds later a third of
 * the highest priority comes. */
static void policy_case (enum reservation_policy policy, int64_t second, int64_t third,
                         int64_t second_after)
{
    struct scene s;

    scene_policy (&s);
    s.policy->reservation_policy = policy;
    scene_nodes (&s, 4, 1, 0);
    scene_submit (&s, 1, 4, 100, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 2, 4, 50, 0);
    scene_pass (&s, 0);
    assert_int_equal (reserved_at (&s, 2), second);
    scene_submit (&s, 3, 4, 70, 10);
    assert_int_equal (
        cluster_job_system_priority_set (s.c, (struct job_id){3}, 5, true, 10 * S, &s.err), 0);
    scene_pass (&s, 10);
    assert_int_equal (reserved_at (&s, 3), third);
    assert_int_equal (reserved_at (&s, 2), second_after);
    scene_end (&s, 1, 60); /* sooner than promised: both slide forward, in order of priority */
    scene_pass (&s, 60);
    assert_true (scene_runs (&s, 3));
    scene_pass (&s, 61);
    assert_int_equal (reserved_at (&s, 2), second < 0 ? -1 : 130);
    scene_free (&s);
}

static void test_policies (void **state)
{
    (void)state;
    policy_case (RESERVATION_CURRENTHIGHEST, 100, 100, -1); /* its place is the other's now */
    policy_case (RESERVATION_HIGHEST, 100, 100, 170); /* what had one keeps one, beside the count */
    policy_case (RESERVATION_NEVER, -1, -1, -1);
}

/* NEVER: whatever fits goes past the large job, again and again; what can never fit is told so. */
static void test_never (void **state)
{
    struct scene s;

    (void)state;
    scene_policy (&s);
    s.policy->reservation_policy = RESERVATION_NEVER;
    scene_nodes (&s, 4, 1, 0);
    scene_submit (&s, 1, 2, 100, 0);
    scene_submit (&s, 2, 4, 10, 0);
    scene_submit (&s, 3, 2, 150, 0); /* past 100 s: would delay a reserved job */
    scene_submit (&s, 4, 5, 10, 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 1) && scene_runs (&s, 3));
    assert_int_equal (scene_view (&s, 2).reason.code, REASON_RESOURCES);
    assert_int_equal (scene_view (&s, 2).bypass, 1);
    assert_int_equal (scene_view (&s, 4).reason.code, REASON_NEVER_FITS);
    scene_free (&s);
}

/* Two buckets: QoS hi has one place, everybody two. A job counts in the first that lists its QoS, so
 * the second of hi has none, whatever is left of the common places. */
static void test_buckets (void **state)
{
    enum { HI = 1, LO = 2 };
    static const uint32_t hi[] = {HI};
    struct scene s;

    (void)state;
    for (uint32_t common = 2; common <= 3; common++) {
        scene_policy (&s);
        assert_int_equal (strtab_intern (s.names.tab[CRED_QOS], "hi"), HI);
        assert_int_equal (strtab_intern (s.names.tab[CRED_QOS], "lo"), LO);
        policy_bucket_set (s.policy, 0, 1, hi, 1);
        policy_bucket_set (s.policy, 1, common, NULL, 0);
        scene_nodes (&s, 4, 1, 0);
        scene_submit (&s, 1, 4, 100, 0);
        scene_pass (&s, 0);
        submit_as (&s, 2, 4, 10, LO, 1);
        submit_as (&s, 3, 4, 10, LO, 2);
        submit_as (&s, 4, 4, 10, LO, 3);
        submit_as (&s, 5, 4, 10, HI, 4);
        submit_as (&s, 6, 4, 10, HI, 5);
        scene_pass (&s, 5);
        assert_int_equal (reserved_at (&s, 2), 100);
        assert_int_equal (reserved_at (&s, 3), 110);
        assert_int_equal (reserved_at (&s, 4), common == 3 ? 120 : -1);
        assert_int_equal (reserved_at (&s, 5), common == 3 ? 130 : 120);
        assert_int_equal (reserved_at (&s, 6), -1);
        scene_free (&s);
    }
}

/* A bucket that lists some QoS only: the others have no reservation at all. */
static void test_listed_only (void **state)
{
    enum { HI = 1, LO = 2 };
    static const uint32_t hi[] = {HI};
    struct scene s;

    (void)state;
    scene_policy (&s);
    (void)strtab_intern (s.names.tab[CRED_QOS], "hi");
    (void)strtab_intern (s.names.tab[CRED_QOS], "lo");
    policy_bucket_set (s.policy, 0, 5, hi, 1);
    scene_nodes (&s, 4, 1, 0);
    scene_submit (&s, 1, 4, 100, 0);
    scene_pass (&s, 0);
    submit_as (&s, 2, 4, 10, LO, 1);
    scene_pass (&s, 1);
    assert_int_equal (reserved_at (&s, 2), -1);
    assert_int_equal (scene_view (&s, 2).reason.code, REASON_RESOURCES);
    scene_free (&s);
}

/* QoS flags: RESERVEALWAYS beside any depth; NORESERVATION never, and the next in line has the place.
 */
static void flags_case (bool always)
{
    enum { ALWAYS = 1, NEVER = 2 };
    struct scene s;

    scene_policy (&s);
    (void)strtab_intern (s.names.tab[CRED_QOS], "always");
    (void)strtab_intern (s.names.tab[CRED_QOS], "never");
    if (always) {
        policy_cred_edit (s.policy, CRED_QOS, ALWAYS)->qos->flags = QOS_RESERVEALWAYS;
        policy_cred_edit (s.policy, CRED_QOS, ALWAYS)->set |= CRED_SET_QFLAGS;
    }
    policy_cred_edit (s.policy, CRED_QOS, NEVER)->qos->flags = QOS_NORESERVATION;
    policy_cred_edit (s.policy, CRED_QOS, NEVER)->set |= CRED_SET_QFLAGS;
    scene_nodes (&s, 4, 1, 0);
    scene_submit (&s, 1, 4, 100, 0);
    scene_pass (&s, 0);
    submit_as (&s, 2, 4, 10, NEVER, 1);
    submit_as (&s, 3, 4, 10, CRED_DEFAULT, 2);
    submit_as (&s, 4, 4, 10, CRED_DEFAULT, 3);
    submit_as (&s, 5, 4, 10, always ? ALWAYS : CRED_DEFAULT, 4);
    submit_as (&s, 6, 4, 10, always ? ALWAYS : CRED_DEFAULT, 5);
    scene_pass (&s, 5);
    assert_int_equal (reserved_at (&s, 2), -1);
    assert_int_equal (reserved_at (&s, 3), 100);
    assert_int_equal (reserved_at (&s, 4), -1);
    assert_int_equal (reserved_at (&s, 5), always ? 110 : -1);
    assert_int_equal (reserved_at (&s, 6), always ? 120 : -1);
    scene_free (&s);
}

static void test_flags (void **state)
{
    (void)state;
    flags_case (true);
    flags_case (false);
}

static void threshold_scene (struct scene *s, enum reservation_threshold type, double value)
{
    scene_policy (s);
    s->policy->reservation_threshold = type;
    s->policy->reservation_threshold_value = value;
    scene_nodes (s, 4, 1, 0);
    scene_submit (s, 1, 2, 10000, 0);
    scene_pass (s, 0);
    scene_submit (s, 2, 4, 100, 0);
}

/* QUEUETIME 300: in seconds. XFACTOR 4 with a limit of 100 s: 1 + 300/100. */
static void test_thresholds_of_time (void **state)
{
    struct scene s;

    (void)state;
    for (int how = 0; how < 2; how++) {
        threshold_scene (&s, how ? THRESHOLD_XFACTOR : THRESHOLD_QUEUETIME, how ? 4 : 300);
        scene_pass (&s, 0);
        assert_int_equal (reserved_at (&s, 2), -1);
        scene_pass (&s, 299);
        assert_int_equal (reserved_at (&s, 2), -1);
        scene_pass (&s, 300);
        assert_int_equal (reserved_at (&s, 2), 10000);
        scene_submit (&s, 3, 2, 10000, 301); /* would delay it now */
        scene_pass (&s, 301);
        assert_false (scene_runs (&s, 3));
        scene_free (&s);
    }
}

/* BYPASS 2: reserved once two jobs went past it. */
static void test_threshold_bypass (void **state)
{
    struct scene s;

    (void)state;
    threshold_scene (&s, THRESHOLD_BYPASS, 2);
    for (uint64_t id = 3; id <= 5; id++) {
        scene_submit (&s, id, 2, 50, (int64_t)id * 10);
        scene_pass (&s, (int64_t)id * 10);
        assert_true (scene_runs (&s, id));
        assert_int_equal (reserved_at (&s, 2), id < 5 ? -1 : 10000);
        assert_int_equal (scene_view (&s, 2).bypass, id - 2);
        scene_end (&s, id, (int64_t)id * 10 + 5);
    }
    scene_free (&s);
}

/* A node has four processors and two licences of one kind. Three tasks with a licence each do not fit
 * before the first job gives its own back; tasks without one fit at once, and do not delay it. */
static void test_gres (void **state)
{
    struct scene s;
    struct cluster_options options = {.gres_kinds = 1};
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    struct req licensed = scene_req (1, 1, 0), plain = scene_req (2, 1, 0);
    struct job_spec job;

    (void)state;
    scene_policy (&s);
    assert_int_equal (policy_seal (s.policy, &s.err), 0);
    s.c = cluster_create (s.policy, &options, &s.err);
    node.configured.v[RES_PROCS] = 4;
    node.configured.v[RES_GRES0] = 2;
    assert_int_equal (cluster_node_add (s.c, &node, 0, NULL, &s.err), 0);
    licensed.task.v[RES_GRES0] = 1;
    job = scene_job (1, 0, 100, &licensed);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    licensed.tasks = 2;
    job = scene_job (2, 0, 100, &licensed);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    job = scene_job (3, 0, 500, &plain);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    licensed.tasks = 3;
    job = scene_job (4, 0, 100, &licensed);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 1));
    assert_int_equal (reserved_at (&s, 2), 100);
    assert_int_equal (scene_view (&s, 2).reason.have, 1); /* task that could start */
    assert_true (scene_runs (&s, 3));
    assert_int_equal (scene_view (&s, 4).reason.code, REASON_NEVER_FITS);
    scene_end (&s, 1, 40);
    scene_pass (&s, 40);
    assert_true (scene_runs (&s, 2));
    scene_free (&s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_policies),
        cmocka_unit_test (test_never),
        cmocka_unit_test (test_buckets),
        cmocka_unit_test (test_listed_only),
        cmocka_unit_test (test_flags),
        cmocka_unit_test (test_thresholds_of_time),
        cmocka_unit_test (test_threshold_bypass),
        cmocka_unit_test (test_gres),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
