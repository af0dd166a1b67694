/* policy: defaults, DEFAULT records, buckets, which QoS a job gets. */
#include "tests/unit/local_policy/support.h"

static void test_defaults (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    fixture_seal (&f);
    assert_true (p->component_weight[PRIO_SERV] == 1);
    assert_true (p->sub_weight[PRIO_QUEUETIME] == 1);
    assert_true (p->sub_weight[PRIO_XFACTOR] == 0);
    assert_int_equal (p->fs_interval, 24 * 3600 * US_PER_S);
    assert_int_equal (p->fs_depth, 7);
    assert_true (p->fs_decay == 1.0);
    assert_int_equal (p->reservation_policy, RESERVATION_CURRENTHIGHEST);
    assert_int_equal (p->bucket_count, 1);
    assert_int_equal (p->bucket[0].depth, 1);
    assert_int_equal (p->backfill_policy, BACKFILL_FIRSTFIT);
    assert_int_equal (p->backfill_max_schedules, 10000);
    assert_int_equal (p->node_allocation, NODEALLOC_LASTAVAILABLE);
    assert_int_equal (p->reservation_binding, BINDING_EARLY);
    assert_int_equal (p->poll_interval, 60 * US_PER_S);
    assert_int_equal (p->defer_count, 24);
    assert_int_equal (p->accrual, ACCRUAL_QUEUEPOLICY);
    assert_int_equal (p->system_max_proc_per_job, -1);
    fixture_free (&f);
}

static void test_default_record (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    struct policy_cred *d = cred_edit (&f, CRED_USER, "DEFAULT");
    d->priority = 7;
    d->set = CRED_SET_PRIORITY;
    limit_set (&d->limits, LIMIT_JOB, 2, 4);
    struct policy_cred *bob = cred_edit (&f, CRED_USER, "bob");
    limit_set (&bob->limits, LIMIT_PROC, 16, 20);
    struct policy_cred *eve = cred_edit (&f, CRED_USER, "eve");
    eve->priority = -3;
    eve->set = CRED_SET_PRIORITY;
    limit_set (&eve->limits, LIMIT_JOB, LIMIT_UNLIMITED, LIMIT_UNLIMITED);
    uint32_t ann = cred_id (&f, CRED_USER, "ann");
    fixture_seal (&f);

    const struct policy_cred *c = policy_cred (f.policy, CRED_USER, cred_id (&f, CRED_USER, "bob"));
    assert_true (c->priority == 7);
    assert_int_equal (c->limits.active_mask, 1u << LIMIT_JOB | 1u << LIMIT_PROC);
    assert_int_equal (c->limits.active[LIMIT_HARD][LIMIT_JOB], 4);
    assert_int_equal (c->limits.active[LIMIT_SOFT][LIMIT_JOB], 2);
    assert_int_equal (c->limits.active[LIMIT_SOFT][LIMIT_PROC], 16);
    c = policy_cred (f.policy, CRED_USER, cred_id (&f, CRED_USER, "eve"));
    assert_true (c->priority == -3);
    assert_true (c->limits.active[LIMIT_HARD][LIMIT_JOB] == LIMIT_UNLIMITED);
    c = policy_cred (f.policy, CRED_USER, ann); /* never named in the policy */
    assert_true (c->priority == 7);
    c = policy_cred (f.policy, CRED_USER, 1000000); /* interned after the policy was made */
    assert_int_equal (c->limits.active[LIMIT_SOFT][LIMIT_JOB], 2);
    fixture_free (&f);
}

static void test_refused (void **state)
{
    (void)state;
    struct err err;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    limit_set (&cred_edit (&f, CRED_GROUP, "staff")->limits, LIMIT_NODE, 30, 20);
    assert_int_equal (policy_seal (f.policy, &err), ERR_INVALID);
    assert_string_equal (err.text,
                         "group staff: the soft MAXNODE limit is looser than the hard one");
    policy_destroy (f.policy);
    fixture_policy (&f)->fs_depth = FS_DEPTH_MAX + 1;
    assert_int_equal (policy_seal (f.policy, &err), ERR_INVALID);
    assert_string_equal (err.text, "FSDEPTH must be 1 to 32");
    fixture_free (&f);
}

static void test_buckets (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    uint32_t hi = cred_id (&f, CRED_QOS, "hi"), lo = cred_id (&f, CRED_QOS, "lo");
    policy_bucket_set (f.policy, 0, 10, &hi, 1);
    policy_bucket_set (f.policy, 2, 3, &lo, 1);
    fixture_seal (&f);
    assert_int_equal (policy_bucket_of (f.policy, hi), 0);
    assert_int_equal (policy_bucket_of (f.policy, lo), 2);
    assert_int_equal (policy_bucket_of (f.policy, CRED_DEFAULT), UINT32_MAX);
    fixture_free (&f);
}

/* The example of the cluster book: john may use hiprio (his default) and normal, group bio hiprio,
 * medprio and development, with medprio as default. */
static void test_qos_access (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    uint32_t hi = cred_id (&f, CRED_QOS, "hiprio"), med = cred_id (&f, CRED_QOS, "medprio");
    uint32_t normal = cred_id (&f, CRED_QOS, "normal"), dev = cred_id (&f, CRED_QOS, "development");
    uint32_t john_list[] = {hi, normal}, bio_list[] = {hi, med, dev};
    struct policy_cred *john = cred_edit (&f, CRED_USER, "john");
    policy_qlist_set (f.policy, john, john_list, 2, QLIST_UNION);
    john->qdef = hi;
    john->set |= CRED_SET_QDEF;
    struct policy_cred *bio = cred_edit (&f, CRED_GROUP, "bio");
    policy_qlist_set (f.policy, bio, bio_list, 3, QLIST_UNION);
    bio->qdef = med;
    bio->set |= CRED_SET_QDEF;
    fixture_seal (&f);

    bool denied;
    uint32_t john_id = cred_id (&f, CRED_USER, "john"), bio_id = cred_id (&f, CRED_GROUP, "bio");
    uint32_t cred[CRED_KINDS] = {john_id, CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE};
    assert_int_equal (policy_qos_resolve (f.policy, cred, &denied), hi);
    assert_false (denied);
    cred[CRED_QOS] = dev; /* not his … */
    assert_int_equal (policy_qos_resolve (f.policy, cred, &denied), hi);
    assert_true (denied);
    cred[CRED_GROUP] = bio_id; /* … but his group's */
    assert_int_equal (policy_qos_resolve (f.policy, cred, &denied), dev);
    assert_false (denied);
    cred[CRED_USER] = cred_id (&f, CRED_USER, "ann");
    cred[CRED_QOS] = CRED_NONE;
    assert_int_equal (policy_qos_resolve (f.policy, cred, &denied), med);
    cred[CRED_GROUP] = CRED_NONE;
    assert_int_equal (policy_qos_resolve (f.policy, cred, &denied), CRED_DEFAULT);
    fixture_free (&f);
}

static void test_qos_modes (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    uint32_t a = cred_id (&f, CRED_QOS, "a"), b = cred_id (&f, CRED_QOS, "b");
    uint32_t both[] = {a, b};
    policy_qlist_set (f.policy, cred_edit (&f, CRED_USER, "u"), both, 2, QLIST_UNION);
    policy_qlist_set (f.policy, cred_edit (&f, CRED_GROUP, "and"), &b, 1, QLIST_INTERSECT);
    policy_qlist_set (f.policy, cred_edit (&f, CRED_ACCOUNT, "only"), &a, 1, QLIST_EXCLUSIVE);
    fixture_seal (&f);
    bool denied;
    uint32_t cred[CRED_KINDS] = {cred_id (&f, CRED_USER, "u"), cred_id (&f, CRED_GROUP, "and"),
                                 CRED_NONE, CRED_NONE, a};
    policy_qos_resolve (f.policy, cred, &denied);
    assert_true (denied); /* the group's list does not have it */
    cred[CRED_QOS] = b;
    policy_qos_resolve (f.policy, cred, &denied);
    assert_false (denied);
    cred[CRED_ACCOUNT] = cred_id (&f, CRED_ACCOUNT, "only");
    policy_qos_resolve (f.policy, cred, &denied);
    assert_true (denied); /* the account's list alone decides */
    cred[CRED_QOS] = a;
    policy_qos_resolve (f.policy, cred, &denied);
    assert_false (denied);
    fixture_free (&f);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_defaults),   cmocka_unit_test (test_default_record),
        cmocka_unit_test (test_refused),    cmocka_unit_test (test_buckets),
        cmocka_unit_test (test_qos_access), cmocka_unit_test (test_qos_modes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
