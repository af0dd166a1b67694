/* priority: the worked numbers of the manual and the papers; each subcomponent; fast form == table.
 */
#include "tests/unit/local_policy/support.h"

#include <math.h>

#include "local/core/fairshare.h"
#include "local/core/priority.h"

#define NOW (INT64_C (1000000000) * US_PER_S)
#define HOUR (INT64_C (3600) * US_PER_S)

static struct priority_job job_plain (void)
{
    struct priority_job j = {.nodes = 2,
                             .procs = 8,
                             .mem_mb = 100,
                             .swap_mb = 200,
                             .disk_mb = 300,
                             .pe = 8.5,
                             .wclimit_s = 3600,
                             .eff_queue_since = NOW - HOUR};
    for (int k = 0; k < CRED_KINDS; k++)
        j.cred[k] = CRED_NONE;
    return j;
}

static int64_t fast (const struct priority *prio, const struct priority_job *j, time_us now)
{
    return priority_start (prio, j, priority_static (prio, j), now);
}

static void near (double a, double b)
{
    if (fabs (a - b) > 1e-9 * (1 + fabs (b)))
        fail_msg ("%.17g is not %.17g", a, b);
}

/* Paper: 1 proc, 4 GB on 8 procs, 16 GB -> 2. Manual 3.2.1.7: 2 procs, 768 MB on 100 nodes of 4
 * procs, 1 GB -> 3; half the memory of 128 procs -> 64. */
static void test_pe (void **state)
{
    (void)state;
    struct priority_totals small = {.procs = 8, .mem_mb = 16 * 1024};
    near (priority_pe (1, 4 * 1024, 0, 0, &small), 2);
    struct priority_totals cluster = {.procs = 400, .mem_mb = 100 * 1024};
    near (priority_pe (2, 768, 0, 0, &cluster), 3);
    struct priority_totals o2k = {.procs = 128, .mem_mb = 1000, .swap_mb = 10, .disk_mb = 10};
    near (priority_pe (26, 500, 0, 0, &o2k), 64);
    near (priority_pe (1, 1, 5, 0, &o2k), 64);
    near (priority_pe (1, 1, 0, 5, &o2k), 64);
}

/* Manual 5.1.2, table of expansion factors. */
static void test_xfactor_table (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    const int64_t hours[] = {1, 2, 4, 8, 16};
    const double one[] = {2, 3, 5, 9, 17}, four[] = {1.25, 1.5, 2, 3, 5};
    for (int i = 0; i < 5; i++) {
        near (priority_xfactor (p, hours[i] * HOUR, 3600), one[i]);
        near (priority_xfactor (p, hours[i] * HOUR, 4 * 3600), four[i]);
    }
    near (priority_xfactor (p, -5, 60), 1);
    p->xf_min_wclimit_s = 7200; /* XFMINWCLIMIT holds short jobs back */
    near (priority_xfactor (p, 2 * HOUR, 60), 2);
    near (priority_xfactor (p, 2 * HOUR, 4 * 3600), 1.5);
    fixture_free (&f);
}

/* By default queue time in minutes is all there is. */
static void test_default_is_queue_time (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    fixture_seal (&f);
    struct priority *prio = priority_create (f.policy);
    struct priority_job j = job_plain ();
    assert_int_equal (fast (prio, &j, NOW), 60);
    assert_int_equal (fast (prio, &j, NOW + 90 * 60 * US_PER_S), 150);
    assert_int_equal (fast (prio, &j, NOW - 2 * HOUR), 1); /* not negative, and raised to 1 */
    priority_destroy (prio);
    fixture_free (&f);
}

/* Each subcomponent alone, with its weight, against its definition. */
static void test_each_subcomponent (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    uint32_t qos = cred_id (&f, CRED_QOS, "q");
    const struct {
        enum prio_sub sub;
        double factor;
    } expected[] = {
        {PRIO_USER, 11},
        {PRIO_GROUP, 12},
        {PRIO_ACCOUNT, 13},
        {PRIO_CLASS, 14},
        {PRIO_QOS, 15},
        {PRIO_NODE, 2},
        {PRIO_PROC, 8},
        {PRIO_MEM, 100},
        {PRIO_SWAP, 200},
        {PRIO_DISK, 300},
        {PRIO_PS, 28800},
        {PRIO_PE, 8.5},
        {PRIO_WALLTIME, 3600},
        {PRIO_QUEUETIME, 60},
        {PRIO_XFACTOR, 2},
        {PRIO_BYPASS, 5},
        {PRIO_SPVIOLATION, 1},
        {PRIO_TARGETQUEUETIME, 1.0 / 900},
        {PRIO_TARGETXFACTOR, 1.0 / 4},
        {PRIO_FSUSER, 5},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct policy *p = fixture_policy (&f);
        for (int k = 0; k < CRED_KINDS; k++) {
            struct policy_cred *c = cred_edit (&f, (enum cred_kind)k, k == CRED_QOS ? "q" : "x");
            const double prio[CRED_KINDS] = {11, 12, 13, 14, 15};
            c->priority = prio[k];
            c->set |= CRED_SET_PRIORITY;
        }
        struct policy_cred *q = policy_cred_edit (p, CRED_QOS, qos);
        q->qos->qttarget_min = 90;
        q->qos->xftarget = 4;
        q->set |= CRED_SET_QTTARGET | CRED_SET_XFTARGET;
        p->sub_weight[PRIO_QUEUETIME] = 0;
        p->sub_weight[expected[i].sub] = 100;
        fixture_seal (&f);

        struct priority *prio = priority_create (p);
        double user_factor[8] = {5, 5, 5, 5, 5, 5, 5, 5};
        priority_fairshare_set (prio, CRED_USER, user_factor, 8, 0);
        struct priority_job j = job_plain ();
        for (int k = 0; k < CRED_KINDS; k++)
            j.cred[k] = 1;
        j.bypass = 5;
        j.flags = PRIORITY_SPVIOLATION;
        struct priority_explained x;
        priority_explain (prio, &j, NOW, &x);
        near (x.factor[expected[i].sub], expected[i].factor);
        near (x.sum, 100 * expected[i].factor);
        near (x.component[prio_sub_component (expected[i].sub)], 100 * expected[i].factor);
        priority_destroy (prio);
        policy_destroy (p);
        f.policy = NULL;
    }
    fixture_free (&f);
}

/* Manual 5.1.2: job X. The weights named there, and ACCOUNT's 30 as in its sum. */
static void test_job_x (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    const struct {
        enum cred_kind kind;
        const char *name;
        double target;
        enum fs_target_type type;
        double usage, weight;
        enum prio_sub sub;
    } cred[] = {
        {CRED_USER, "A", 50, FS_TARGET_TARGET, 45, 10, PRIO_FSUSER},
        {CRED_GROUP, "B", 0, FS_TARGET_NONE, 65, 20, PRIO_FSGROUP},
        {CRED_ACCOUNT, "C", 25, FS_TARGET_TARGET, 35, 30, PRIO_FSACCOUNT},
        {CRED_QOS, "D", 10, FS_TARGET_FLOOR, 25, 40, PRIO_FSQOS},
        {CRED_CLASS, "E", 0, FS_TARGET_NONE, 20, 0, PRIO_FSCLASS},
    };
    struct priority_job j = job_plain ();
    p->fs_policy = FS_DEDICATEDPS;
    p->component_weight[PRIO_FS] = 100;
    p->sub_weight[PRIO_QUEUETIME] = 0;
    p->enable_negative = true;
    for (size_t i = 0; i < 5; i++) {
        struct policy_cred *c = cred_edit (&f, cred[i].kind, cred[i].name);
        c->fs_target = cred[i].target;
        c->fs_target_type = cred[i].type;
        c->set |= CRED_SET_FSTARGET;
        p->sub_weight[cred[i].sub] = cred[i].weight;
        j.cred[cred[i].kind] = cred_id (&f, cred[i].kind, cred[i].name);
    }
    fixture_seal (&f);

    struct fairshare *fs = fairshare_create (p, NOW);
    uint32_t none[CRED_KINDS] = {CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE};
    double rest = 0; /* the total is 100, however much each credential used */
    for (size_t i = 0; i < 5; i++) {
        uint32_t only[CRED_KINDS];
        memcpy (only, none, sizeof only);
        only[cred[i].kind] = j.cred[cred[i].kind];
        fairshare_charge (fs, only, cred[i].usage);
        rest += cred[i].usage;
    }
    fairshare_charge (fs, none, 100 - rest);

    struct priority *prio = priority_create (p);
    for (int k = 0; k < CRED_KINDS; k++) {
        double all[64];
        uint32_t count = fairshare_count (fs, (enum cred_kind)k);
        assert_true (count <= 64);
        fairshare_factors (fs, (enum cred_kind)k, all, count);
        priority_fairshare_set (prio, (enum cred_kind)k, all, count,
                                fairshare_factor_other (fs, (enum cred_kind)k));
    }
    struct priority_explained x;
    priority_explain (prio, &j, NOW, &x);
    near (x.sub[PRIO_FSUSER], 10 * 5);
    near (x.sub[PRIO_FSGROUP], 20 * 0);
    near (x.sub[PRIO_FSACCOUNT], 30 * -10);
    near (x.sub[PRIO_FSQOS], 40 * 0);
    near (x.sub[PRIO_FSCLASS], 0);
    near (x.component[PRIO_FS], 100 * (10 * 5 + 30 * -10));
    assert_int_equal (fast (prio, &j, NOW), -25000);
    priority_destroy (prio);
    fairshare_destroy (fs);
    fixture_free (&f);
}

/* What a real Maui printed (`diagnose -p`, `diagnose -f` of the sample outputs): FSUSERWEIGHT 10,
 * XFACTORWEIGHT 10, PROCWEIGHT 2; dave used 11.30 of his 25 percent, bob 47.09 of at most 20. */
static void test_as_maui_printed (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    p->fs_policy = FS_DEDICATEDPS;
    p->sub_weight[PRIO_FSUSER] = 10;
    p->sub_weight[PRIO_XFACTOR] = 10;
    p->sub_weight[PRIO_PROC] = 2;
    p->enable_negative = true;
    struct policy_cred *d = cred_edit (&f, CRED_USER, "DEFAULT");
    d->fs_target = 25;
    d->fs_target_type = FS_TARGET_TARGET;
    d->set |= CRED_SET_FSTARGET;
    struct policy_cred *b = cred_edit (&f, CRED_USER, "bob");
    b->fs_target = 20;
    b->fs_target_type = FS_TARGET_CEILING;
    b->set |= CRED_SET_FSTARGET;
    uint32_t bob = cred_id (&f, CRED_USER, "bob"), dave = cred_id (&f, CRED_USER, "dave");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (p, NOW);
    uint32_t cred[CRED_KINDS] = {dave, CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE};
    fairshare_charge (fs, cred, 11.30);
    cred[CRED_USER] = bob;
    fairshare_charge (fs, cred, 47.09);
    cred[CRED_USER] = CRED_NONE;
    fairshare_charge (fs, cred, 100 - 11.30 - 47.09);
    double all[32];
    uint32_t count = fairshare_count (fs, CRED_USER);
    assert_true (count <= 32);
    fairshare_factors (fs, CRED_USER, all, count);
    struct priority *prio = priority_create (p);
    priority_fairshare_set (prio, CRED_USER, all, count, fairshare_factor_other (fs, CRED_USER));

    const struct {
        uint32_t user, procs;
        int64_t wclimit_s, queued_s, priority;
        double fs, queue_time, xfactor, proc;
    } printed[] = {
        {dave, 12, 7200, 25 * 60 + 7, 198, 137.0, 25.1, 12.1, 24.0},   /* job 1030 */
        {bob, 2, 3600, 42 * 60 + 2, -208, -270.9, 42.0, 17.0, 4.0},    /* job 1023 */
        {bob, 2, 4 * 3600, 2 * 60 + 34, -254, -270.9, 2.6, 10.1, 4.0}, /* job 1036 */
    };
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        struct priority_job j = job_plain ();
        struct priority_explained x;
        j.cred[CRED_USER] = printed[i].user;
        j.procs = printed[i].procs;
        j.wclimit_s = printed[i].wclimit_s;
        j.eff_queue_since = NOW - printed[i].queued_s * US_PER_S;
        priority_explain (prio, &j, NOW, &x);
        assert_true (fabs (x.sub[PRIO_FSUSER] - printed[i].fs) < .051);
        assert_true (fabs (x.sub[PRIO_QUEUETIME] - printed[i].queue_time) < .051);
        assert_true (fabs (x.sub[PRIO_XFACTOR] - printed[i].xfactor) < .051);
        assert_true (fabs (x.sub[PRIO_PROC] - printed[i].proc) < .051);
        assert_int_equal (x.priority, printed[i].priority);
    }
    priority_destroy (prio);
    fairshare_destroy (fs);
    fixture_free (&f);
}

static void test_caps (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    p->sub_cap[PRIO_QUEUETIME] = 45; /* of 60 minutes */
    p->sub_weight[PRIO_PROC] = 10;   /* 80 … */
    p->sub_weight[PRIO_NODE] = 10;   /* … + 20 */
    p->component_cap[PRIO_RES] = 70; /* … of which 70 count */
    p->component_weight[PRIO_RES] = 2;
    fixture_seal (&f);
    struct priority *prio = priority_create (p);
    struct priority_job j = job_plain ();
    assert_int_equal (fast (prio, &j, NOW), 45 + 2 * 70);
    priority_destroy (prio);
    fixture_free (&f);
}

/* QOSCFG QTWEIGHT and XFWEIGHT add to the weights. */
static void test_qos_weights (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    struct policy_cred *special = cred_edit (&f, CRED_QOS, "special");
    special->qos->qtweight = 5000;
    special->qos->xfweight = 7;
    special->set |= CRED_SET_QTWEIGHT | CRED_SET_XFWEIGHT;
    fixture_seal (&f);
    struct priority *prio = priority_create (p);
    struct priority_job j = job_plain ();
    assert_int_equal (fast (prio, &j, NOW), 60);
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "special");
    assert_int_equal (fast (prio, &j, NOW), 5001 * 60 + 7 * 2);
    priority_destroy (prio);
    fixture_free (&f);
}

/* The target factor is small, grows as the target comes near, is 1e8 from there on, and never more.
 */
static void test_targets (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    p->sub_weight[PRIO_QUEUETIME] = 0;
    p->sub_weight[PRIO_TARGETQUEUETIME] = 1;
    struct policy_cred *q = cred_edit (&f, CRED_QOS, "q");
    q->qos->qttarget_min = 61;
    q->set |= CRED_SET_QTTARGET;
    fixture_seal (&f);
    struct priority *prio = priority_create (p);
    struct priority_job j = job_plain ();
    struct priority_explained x;
    priority_explain (prio, &j, NOW, &x);
    near (x.component[PRIO_TARG], 0); /* no target for the default QoS */
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "q");
    priority_explain (prio, &j, NOW, &x);
    near (x.component[PRIO_TARG], 1);
    priority_explain (prio, &j, NOW + 54 * US_PER_S, &x); /* a tenth of a minute left */
    assert_true (fabs (x.component[PRIO_TARG] - 100) < 1e-6);
    priority_explain (prio, &j, NOW + 60 * US_PER_S - 30000, &x); /* .0005 of a minute */
    assert_true (fabs (x.component[PRIO_TARG] - 4e6) < 1);
    priority_explain (prio, &j, NOW + 10 * HOUR, &x);
    assert_true (fabs (x.component[PRIO_TARG] - 1e8) < 1e-3);
    priority_destroy (prio);
    fixture_free (&f);
}

static void test_bounds_and_system_priority (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    p->sub_weight[PRIO_PROC] = -100;
    fixture_seal (&f);
    struct priority *prio = priority_create (p);
    struct priority_job j = job_plain ();
    assert_int_equal (fast (prio, &j, NOW), 1); /* 60 - 800 */
    assert_false (priority_rejected (prio, -740));
    p->enable_negative = true;
    assert_int_equal (fast (prio, &j, NOW), -740);
    assert_false (priority_rejected (prio, -740));
    p->enable_negative = false;
    p->reject_negative = true;
    assert_int_equal (fast (prio, &j, NOW), -740);
    assert_true (priority_rejected (prio, -740));

    j.flags = PRIORITY_SYSTEM_RELATIVE;
    j.system_priority = 1000;
    assert_int_equal (fast (prio, &j, NOW), 260);
    j.flags = PRIORITY_SYSTEM_ABSOLUTE;
    assert_int_equal (fast (prio, &j, NOW), 1000001000);
    j.flags = 0;
    p->sub_weight[PRIO_PS] = 1e12;
    assert_int_equal (fast (prio, &j, NOW), PRIORITY_MAX); /* below every absolute one */
    priority_destroy (prio);
    fixture_free (&f);
}

static void test_run_priority (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    p->sub_weight[PRIO_CONSUMED] = 1;
    p->sub_weight[PRIO_REMAINING] = 10;
    p->sub_weight[PRIO_PERCENT] = 1000;
    p->sub_weight[PRIO_EXECUTIONTIME] = 2;
    p->component_weight[PRIO_USAGE] = 3;
    fixture_seal (&f);
    struct priority *prio = priority_create (p);
    struct priority_usage u = {
        .start_priority = 500, .preempt_margin = 7, .procs = 4, .used_s = 25, .wclimit_s = 100};
    /* PERCENT is of the limit (25), not of what remains (33). */
    assert_int_equal (priority_run (prio, &u), 500 + 7 + 3 * (100 + 10 * 300 + 1000 * 25 + 2 * 25));
    priority_destroy (prio);
    fixture_free (&f);
}

static void test_accrual (void **state)
{
    (void)state;
    time_us submit = NOW - 5 * HOUR, since = NOW - HOUR;
    assert_int_equal (priority_accrue (ACCRUAL_ALWAYS, submit, since, ~0u, NOW), submit);
    assert_int_equal (priority_accrue (ACCRUAL_QUEUEPOLICY, submit, since, 0, NOW), since);
    assert_int_equal (priority_accrue (ACCRUAL_QUEUEPOLICY, submit, since, ACCRUAL_BLOCK_HOLD, NOW),
                      since);
    assert_int_equal (
        priority_accrue (ACCRUAL_QUEUEPOLICY, submit, since, ACCRUAL_BLOCK_LIMIT_IDLE, NOW), NOW);
    assert_int_equal (
        priority_accrue (ACCRUAL_QUEUEPOLICY, submit, since, ACCRUAL_BLOCK_LIMIT_ACTIVE, NOW), NOW);
    assert_int_equal (
        priority_accrue (ACCRUAL_QUEUEPOLICY, submit, since, ACCRUAL_BLOCK_LIMIT_SYSTEM, NOW), NOW);
    assert_int_equal (priority_accrue (ACCRUAL_FULLPOLICY, submit, since, 0, NOW), since);
    const uint32_t any[] = {ACCRUAL_BLOCK_HOLD, ACCRUAL_BLOCK_DEPENDENCY, ACCRUAL_BLOCK_CLASS,
                            ACCRUAL_BLOCK_FSCAP, ACCRUAL_BLOCK_LIMIT_IDLE};
    for (int i = 0; i < 5; i++)
        assert_int_equal (priority_accrue (ACCRUAL_FULLPOLICY, submit, since, any[i], NOW), NOW);
}

/* A small generator, so that the case is the same everywhere. */
static uint32_t next (uint64_t *seed)
{
    *seed = *seed * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

static void random_policy (struct fixture *f, uint64_t *seed)
{
    struct policy *p = fixture_policy (f);
    for (int s = 0; s < PRIO_SUBS; s++) {
        p->sub_weight[s] = next (seed) % 3 ? (double)(next (seed) % 2000) / 7 - 100 : 0;
        p->sub_cap[s] = next (seed) % 4 ? 0 : next (seed) % 1000;
    }
    for (int c = 0; c < PRIO_COMPONENTS; c++) {
        p->component_weight[c] = next (seed) % 20;
        p->component_cap[c] = next (seed) % 4 ? 0 : next (seed) % 100000;
    }
    p->enable_negative = next (seed) % 2;
    p->xf_min_wclimit_s = (int64_t)(next (seed) % 1000) - 1;
    for (int k = 0; k < CRED_KINDS; k++) {
        for (uint32_t id = 0; id < 4; id++) {
            struct policy_cred *c = policy_cred_edit (p, (enum cred_kind)k, id);
            c->priority = next (seed) % 500;
            c->set |= CRED_SET_PRIORITY;
            if (c->qos) {
                c->qos->qtweight = next (seed) % 100;
                c->qos->xfweight = next (seed) % 100;
                c->qos->qttarget_min = next (seed) % 200;
                c->qos->xftarget = next (seed) % 5;
                c->set |=
                    CRED_SET_QTWEIGHT | CRED_SET_XFWEIGHT | CRED_SET_QTTARGET | CRED_SET_XFTARGET;
            }
        }
    }
    fixture_seal (f);
}

static void test_fast_equals_table (void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < 50; round++) {
        struct fixture f = fixture_make ();
        random_policy (&f, &seed);
        struct priority *prio = priority_create (f.policy);
        for (int k = 0; k < CRED_KINDS; k++) {
            double factor[3] = {1.5 - next (&seed) % 50, next (&seed) % 60, 0.25};
            priority_fairshare_set (prio, (enum cred_kind)k, factor, 3, -7.5);
        }
        for (int n = 0; n < 200; n++) {
            struct priority_job j = job_plain ();
            for (int k = 0; k < CRED_KINDS; k++)
                j.cred[k] = next (&seed) % 6 ? next (&seed) % 5 : CRED_NONE;
            j.procs = next (&seed) % 512;
            j.mem_mb = next (&seed) % 100000;
            j.wclimit_s = next (&seed) % 100000;
            j.bypass = next (&seed) % 9;
            j.flags = next (&seed) % 8;
            j.flags &= ~(j.flags & PRIORITY_SYSTEM_ABSOLUTE ? PRIORITY_SYSTEM_RELATIVE : 0u);
            j.system_priority = next (&seed) % 1000;
            j.eff_queue_since = NOW - (int64_t)(next (&seed) % 100000) * US_PER_S;
            struct priority_explained x;
            priority_explain (prio, &j, NOW, &x);
            double fixed = priority_static (prio, &j);
            int64_t many;
            priority_start_many (prio, &j, &fixed, 1, NOW, &many);
            assert_int_equal (x.priority, priority_start (prio, &j, fixed, NOW));
            assert_int_equal (x.priority, many);
            double sum = 0;
            for (int c = 0; c < PRIO_COMPONENTS; c++)
                sum += x.component[c];
            near (sum, x.sum);
        }
        priority_destroy (prio);
        fixture_free (&f);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_pe),
        cmocka_unit_test (test_xfactor_table),
        cmocka_unit_test (test_default_is_queue_time),
        cmocka_unit_test (test_each_subcomponent),
        cmocka_unit_test (test_job_x),
        cmocka_unit_test (test_as_maui_printed),
        cmocka_unit_test (test_caps),
        cmocka_unit_test (test_qos_weights),
        cmocka_unit_test (test_targets),
        cmocka_unit_test (test_bounds_and_system_priority),
        cmocka_unit_test (test_run_priority),
        cmocka_unit_test (test_accrual),
        cmocka_unit_test (test_fast_equals_table),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
