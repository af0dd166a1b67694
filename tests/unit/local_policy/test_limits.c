/* limits: every kind, soft and hard, DEFAULT, overrides, cross limits, idle limits, per job. */
#include "tests/unit/local_policy/support.h"

#include "local/core/limits.h"

#define NOW_S INT64_C (1000000000)

static struct limits_job job_of (uint32_t user, uint32_t procs)
{
    return (struct limits_job){.cred = {user, CRED_NONE, CRED_NONE, CRED_NONE, CRED_DEFAULT},
                               .nodes = 1,
                               .procs = procs,
                               .mem_mb = 1000,
                               .pe_micro = (int64_t)procs * 1000000,
                               .wclimit_s = 3600};
}

/* Each kind alone: two jobs of (procs 4, nodes 1, 1000 MB, 4 PE, 3600 s) run; what is left of their
 * limits is half. A third just fits the limit, and does not when it is one smaller. */
static void test_each_kind (void **state)
{
    (void)state;
    const struct {
        enum limit_kind kind;
        int64_t usage, request;
    } expected[] = {
        {LIMIT_JOB, 2, 1},
        {LIMIT_PROC, 8, 4},
        {LIMIT_NODE, 2, 1},
        {LIMIT_PS, 2 * 4 * 1800, 4 * 3600},
        {LIMIT_PE, 8000000, 4000000},
        {LIMIT_MEM, 2000, 1000},
        {LIMIT_WC, 2 * 1800, 3600},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        for (int64_t less = 0; less <= 1; less++) {
            struct fixture f = fixture_make ();
            fixture_policy (&f);
            int64_t most = expected[i].usage + expected[i].request - less;
            limit_set (&cred_edit (&f, CRED_USER, "u")->limits, expected[i].kind, most, most);
            fixture_seal (&f);
            struct limits *l = limits_create (f.policy);
            struct limits_job j = job_of (cred_id (&f, CRED_USER, "u"), 4);
            limits_active_add (l, &j, NOW_S + 1800);
            limits_active_add (l, &j, NOW_S + 1800);
            struct limits_violation v;
            int rc = limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v);
            assert_int_equal (rc, less ? ERR_LIMIT : 0);
            if (less) {
                assert_int_equal (v.limit, expected[i].kind);
                assert_int_equal (v.object, CRED_USER);
                assert_int_equal (v.usage, expected[i].usage);
                assert_int_equal (v.request, expected[i].request);
                assert_int_equal (v.value, most);
            }
            limits_active_remove (l, &j, NOW_S + 1800);
            assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), 0);
            struct limits_job other = job_of (cred_id (&f, CRED_USER, "w"), 4);
            limits_active_add (l, &j, NOW_S + 1800);
            assert_int_equal (limits_active_check (l, &other, LIMIT_HARD, NOW_S, &v), 0);
            limits_destroy (l);
            fixture_free (&f);
        }
    }
}

/* A job past its limit has nothing left: it makes no room for others. */
static void test_overrun (void **state)
{
    (void)state;
    const enum limit_kind kind[] = {LIMIT_PS, LIMIT_WC};
    for (int i = 0; i < 2; i++) {
        struct fixture f = fixture_make ();
        fixture_policy (&f);
        limit_set (&cred_edit (&f, CRED_USER, "u")->limits, kind[i], 3600, 3600);
        fixture_seal (&f);
        struct limits *l = limits_create (f.policy);
        struct limits_job j = job_of (cred_id (&f, CRED_USER, "u"), 1);
        limits_active_add (l, &j, NOW_S - 500);
        assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, NULL), 0);
        j.wclimit_s = 3601;
        assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, NULL), ERR_LIMIT);
        assert_int_equal (limits_active_usage (l, CRED_USER, j.cred[CRED_USER], kind[i], NOW_S), 0);
        limits_destroy (l);
        fixture_free (&f);
    }
}

static void test_soft_hard_and_sentence (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    limit_set (&cred_edit (&f, CRED_USER, "bob")->limits, LIMIT_PROC, 16, 20);
    fixture_seal (&f);
    struct limits *l = limits_create (f.policy);
    uint32_t bob = cred_id (&f, CRED_USER, "bob");
    struct limits_job j = job_of (bob, 9), small = job_of (bob, 4), large = job_of (bob, 12);
    limits_active_add (l, &j, NOW_S);
    struct limits_violation v;
    char text[LIMITS_TEXT_MAX];
    assert_int_equal (limits_active_check (l, &small, LIMIT_SOFT, NOW_S, &v), 0);
    assert_int_equal (limits_active_check (l, &j, LIMIT_SOFT, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), 0);
    assert_int_equal (limits_active_check (l, &large, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_string_equal (limits_violation_text (&v, "1009", &f.names, text, sizeof text),
                         "job 1009 violates active HARD MAXPROC limit of 20 for user bob "
                         " (R: 12, U: 9)");
    assert_string_equal (limits_violation_text (&v, "1009", &f.names, text, 12), "job 1009 vi");
    assert_int_equal (limits_active_check (l, &large, LIMIT_SOFT, NOW_S, NULL), ERR_LIMIT);
    limits_destroy (l);
    fixture_free (&f);
}

static void test_default_per_credential (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    limit_set (&cred_edit (&f, CRED_GROUP, "DEFAULT")->limits, LIMIT_NODE, 1, 1);
    limit_set (&cred_edit (&f, CRED_GROUP, "big")->limits, LIMIT_NODE, 3, 3);
    fixture_seal (&f);
    struct limits *l = limits_create (f.policy);
    struct limits_job a = job_of (1, 1), b = job_of (1, 1);
    a.cred[CRED_GROUP] = cred_id (&f, CRED_GROUP, "a");
    b.cred[CRED_GROUP] = cred_id (&f, CRED_GROUP, "b");
    limits_active_add (l, &a, NOW_S);
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, NULL), ERR_LIMIT);
    assert_int_equal (limits_active_check (l, &b, LIMIT_HARD, NOW_S, NULL),
                      0); /* its own counter */
    a.cred[CRED_GROUP] = cred_id (&f, CRED_GROUP, "big");
    limits_active_add (l, &a, NOW_S);
    limits_active_add (l, &a, NOW_S);
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, NULL), 0);
    limits_active_add (l, &a, NOW_S);
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, NULL), ERR_LIMIT);
    limits_destroy (l);
    fixture_free (&f);
}

/* All kinds of credentials must agree; MINPROC; a class's limit binds whoever uses it. */
static void test_every_object (void **state)
{
    (void)state;
    for (uint32_t o = 0; o < LIMIT_OBJECTS; o++) {
        struct fixture f = fixture_make ();
        struct policy *p = fixture_policy (&f);
        struct policy_limits *limits =
            o < CRED_KINDS ? &cred_edit (&f, (enum cred_kind)o, "x")->limits : &p->system_limits;
        limit_set (limits, LIMIT_JOB, 1, 1);
        limit_set (limits, LIMIT_MINPROC, 2, 2);
        fixture_seal (&f);
        struct limits *l = limits_create (p);
        struct limits_job j = job_of (1, 4);
        for (int k = 0; k < CRED_KINDS; k++)
            j.cred[k] = 1; /* "x" where it was named */
        struct limits_violation v;
        assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), 0);
        limits_active_add (l, &j, NOW_S);
        assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
        assert_int_equal (v.object, o);
        limits_clear (l);
        j.procs = 1;
        assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
        assert_int_equal (v.limit, LIMIT_MINPROC);
        limits_destroy (l);
        fixture_free (&f);
    }
}

/* The cluster book: QoS hiprio overrides MAXJOB set elsewhere, and has 150 processors of its own.
 */
static void test_qos_override (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    limit_set (&cred_edit (&f, CRED_USER, "john")->limits, LIMIT_JOB, 2, 2);
    struct policy_cred *hiprio = cred_edit (&f, CRED_QOS, "hiprio");
    limit_set (&hiprio->limits, LIMIT_PROC, 150, 150);
    limit_set (&hiprio->qos->override, LIMIT_JOB, 4, 4);
    limit_set (&hiprio->qos->override, LIMIT_PROC, 1000, 1000); /* not in place of its own */
    fixture_seal (&f);
    struct limits *l = limits_create (f.policy);
    struct limits_job plain = job_of (cred_id (&f, CRED_USER, "john"), 40), high = plain;
    high.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "hiprio");
    limits_active_add (l, &plain, NOW_S);
    limits_active_add (l, &plain, NOW_S);
    struct limits_violation v;
    assert_int_equal (limits_active_check (l, &plain, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (limits_active_check (l, &high, LIMIT_HARD, NOW_S, &v), 0);
    limits_active_add (l, &high, NOW_S);
    limits_active_add (l, &high, NOW_S);
    assert_int_equal (limits_active_check (l, &high, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_true (v.by_override);
    assert_int_equal (v.value, 4);
    limits_active_remove (l, &plain, NOW_S);
    limits_active_remove (l, &plain, NOW_S);
    limits_active_add (l, &high, NOW_S);
    assert_int_equal (limits_active_check (l, &high, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (v.object, CRED_QOS);
    assert_int_equal (v.value, 150);
    assert_int_equal (v.usage, 120);

    limits_clear (l); /* it counts as well where nothing is set */
    struct limits_job free_user = job_of (cred_id (&f, CRED_USER, "free"), 1);
    free_user.cred[CRED_QOS] = high.cred[CRED_QOS];
    for (int i = 0; i < 4; i++)
        limits_active_add (l, &free_user, NOW_S);
    assert_int_equal (limits_active_check (l, &free_user, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (v.object, CRED_USER);
    free_user.cred[CRED_QOS] = CRED_DEFAULT;
    assert_int_equal (limits_active_check (l, &free_user, LIMIT_HARD, NOW_S, &v), 0);
    limits_destroy (l);
    fixture_free (&f);
}

static void test_qos_ignores (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    limit_set (&cred_edit (&f, CRED_USER, "u")->limits, LIMIT_JOB, 0, 0);
    limit_set (&cred_edit (&f, CRED_CLASS, "c")->limits, LIMIT_PROC, 1, 1);
    p->system_max_proc_per_job = 2;
    struct policy_cred *a = cred_edit (&f, CRED_QOS, "a");
    a->qos->ignore_active[CRED_USER] = 1u << LIMIT_JOB; /* IGNJOBPERUSER */
    a->set |= CRED_SET_QFLAGS;
    struct policy_cred *b = cred_edit (&f, CRED_QOS, "b");
    b->qos->flags = QOS_IGNUSER;
    b->set |= CRED_SET_QFLAGS;
    struct policy_cred *c = cred_edit (&f, CRED_QOS, "c");
    c->qos->flags = QOS_IGNSYSTEM;
    c->set |= CRED_SET_QFLAGS;
    fixture_seal (&f);
    struct limits *l = limits_create (p);
    struct limits_job j = job_of (cred_id (&f, CRED_USER, "u"), 4);
    struct limits_violation v;
    assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "a");
    assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), 0);
    j.cred[CRED_CLASS] = cred_id (&f, CRED_CLASS, "c");
    assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (limits_job_check (l, &j, &v), ERR_LIMIT);
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "b");
    assert_int_equal (limits_active_check (l, &j, LIMIT_HARD, NOW_S, &v), 0);
    assert_int_equal (limits_job_check (l, &j, &v), ERR_LIMIT);
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "c");
    assert_int_equal (limits_job_check (l, &j, &v), 0);
    limits_destroy (l);
    fixture_free (&f);
}

static void cross (struct fixture *f, enum cred_kind kind, const char *name, enum limit_kind limit,
                   enum cred_kind other_kind, const char *other, int64_t soft, int64_t hard)
{
    struct policy_cross x = {.limit = limit,
                             .other_kind = other_kind,
                             .other_id = other ? cred_id (f, other_kind, other) : CRED_NONE,
                             .value = {soft, hard}};
    policy_cross_set (f->policy, cred_edit (f, kind, name), &x);
}

/* CLASSCFG[batch] MAXJOB[USER]=2 MAXJOB[USER:steve]=3, CLASSCFG[DEFAULT] MAXPROC[USER]=8, and the
 * same from the other side: USERCFG[ann] MAXJOB[CLASS:long]=1; account within QoS. */
static void test_cross (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    cross (&f, CRED_CLASS, "batch", LIMIT_JOB, CRED_USER, NULL, 1, 2);
    cross (&f, CRED_CLASS, "batch", LIMIT_JOB, CRED_USER, "steve", 3, 3);
    cross (&f, CRED_CLASS, "DEFAULT", LIMIT_PROC, CRED_USER, NULL, 8, 8);
    cross (&f, CRED_CLASS, "DEFAULT", LIMIT_JOB, CRED_USER, "ann", 1, 1); /* not in batch */
    cross (&f, CRED_USER, "ann", LIMIT_JOB, CRED_CLASS, "long", 1, 1);
    cross (&f, CRED_QOS, "hi", LIMIT_NODE, CRED_ACCOUNT, NULL, 1, 1);
    fixture_seal (&f);
    struct limits *l = limits_create (f.policy);
    uint32_t ann = cred_id (&f, CRED_USER, "ann"), steve = cred_id (&f, CRED_USER, "steve");
    uint32_t batch = cred_id (&f, CRED_CLASS, "batch"), lng = cred_id (&f, CRED_CLASS, "long");
    struct limits_job a = job_of (ann, 1), s = job_of (steve, 1);
    a.cred[CRED_CLASS] = s.cred[CRED_CLASS] = batch;
    struct limits_violation v;
    char text[LIMITS_TEXT_MAX];

    limits_active_add (l, &a, NOW_S);
    limits_active_add (l, &s, NOW_S);
    assert_int_equal (limits_active_check (l, &a, LIMIT_SOFT, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, &v), 0);
    limits_active_add (l, &a, NOW_S);
    limits_active_add (l, &s, NOW_S);
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_string_equal (limits_violation_text (&v, "7", &f.names, text, sizeof text),
                         "job 7 violates active HARD MAXJOB limit of 2 for class batch, user ann "
                         " (R: 1, U: 2)");
    assert_int_equal (limits_active_check (l, &s, LIMIT_HARD, NOW_S, &v), 0); /* steve's own */
    limits_active_add (l, &s, NOW_S);
    assert_int_equal (limits_active_check (l, &s, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);

    a.cred[CRED_CLASS] = lng; /* another counter; DEFAULT's rule of 8 processors per user */
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, &v), 0);
    a.procs = 9;
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (v.limit, LIMIT_PROC);
    a.procs = 1;
    limits_active_add (l, &a, NOW_S);
    assert_int_equal (limits_active_check (l, &a, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    assert_int_equal (v.object, CRED_USER); /* ann's rule about the class */
    assert_int_equal (v.other_kind, CRED_CLASS);
    s.cred[CRED_CLASS] = lng;
    assert_int_equal (limits_active_check (l, &s, LIMIT_HARD, NOW_S, &v), 0);

    struct limits_job h = job_of (steve, 1);
    h.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "hi");
    assert_int_equal (limits_active_check (l, &h, LIMIT_HARD, NOW_S, &v), 0);
    h.nodes = 2; /* without an account the rule is about nobody */
    assert_int_equal (limits_active_check (l, &h, LIMIT_HARD, NOW_S, &v), 0);
    h.cred[CRED_ACCOUNT] = cred_id (&f, CRED_ACCOUNT, "p1");
    assert_int_equal (limits_active_check (l, &h, LIMIT_HARD, NOW_S, &v), ERR_LIMIT);
    limits_destroy (l);
    fixture_free (&f);
}

static void test_idle (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    struct policy_limits *d = &cred_edit (&f, CRED_USER, "DEFAULT")->limits;
    d->idle_mask = 1u << LIMIT_JOB | 1u << LIMIT_PS;
    d->idle[LIMIT_JOB] = 2;
    d->idle[LIMIT_PS] = 3 * 3600;
    struct policy_qos *q = cred_edit (&f, CRED_QOS, "many")->qos;
    q->override.idle_mask = 1u << LIMIT_JOB | 1u << LIMIT_PS;
    q->override.idle[LIMIT_JOB] = 100;
    q->override.idle[LIMIT_PS] = LIMIT_UNLIMITED;
    fixture_seal (&f);
    struct limits *l = limits_create (f.policy);
    struct limits_job j = job_of (1, 1);
    struct limits_violation v;
    char text[LIMITS_TEXT_MAX];
    assert_true (limits_any_idle (l, j.cred));
    assert_false (limits_any_active (l, j.cred));
    limits_idle_add (l, &j);
    assert_int_equal (limits_idle_check (l, &j, &v), 0);
    struct limits_job big = job_of (1, 3);
    assert_int_equal (limits_idle_check (l, &big, &v), ERR_LIMIT);
    assert_int_equal (v.limit, LIMIT_PS);
    limits_idle_add (l, &j);
    assert_int_equal (limits_idle_check (l, &j, &v), ERR_LIMIT);
    assert_string_equal (
        limits_violation_text (&v, "9", &f.names, text, sizeof text),
        "job 9 violates idle HARD MAXIJOB limit of 2 for user [NONE]  (R: 1, U: 2)");
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "many");
    assert_int_equal (limits_idle_check (l, &j, &v), 0);
    j.cred[CRED_QOS] = CRED_DEFAULT;
    limits_idle_remove (l, &j);
    assert_int_equal (limits_idle_check (l, &j, &v), 0);
    limits_idle_clear (l);
    assert_int_equal (limits_active_usage (l, CRED_USER, 1, LIMIT_JOB, NOW_S), 0);
    limits_destroy (l);
    fixture_free (&f);
}

static void test_per_job (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    p->system_max_proc_per_job = 64;
    p->system_max_wall_s_per_job = 86400;
    p->system_max_ps_per_job = 64 * 3600;
    struct policy_qos *q = cred_edit (&f, CRED_QOS, "huge")->qos;
    q->job_override_mask = 1u << LIMIT_PROC;
    q->job_override[LIMIT_PROC] = 1000;
    fixture_seal (&f);
    struct limits *l = limits_create (p);
    struct limits_job j = job_of (1, 64);
    struct limits_violation v;
    char text[LIMITS_TEXT_MAX];
    assert_int_equal (limits_job_check (l, &j, &v), 0);
    j.procs = 65;
    assert_int_equal (limits_job_check (l, &j, &v), ERR_LIMIT);
    assert_string_equal (
        limits_violation_text (&v, "9", &f.names, text, sizeof text),
        "job 9 violates system HARD SYSTEMMAXPROCPERJOB limit of 64 for the system "
        " (R: 65, U: 0)");
    j.cred[CRED_QOS] = cred_id (&f, CRED_QOS, "huge");
    assert_int_equal (limits_job_check (l, &j, &v), ERR_LIMIT);
    assert_int_equal (v.limit, LIMIT_PS);
    j.wclimit_s = 100;
    assert_int_equal (limits_job_check (l, &j, &v), 0);
    j.procs = 1;
    j.wclimit_s = 86401;
    assert_int_equal (limits_job_check (l, &j, &v), ERR_LIMIT);
    assert_int_equal (v.limit, LIMIT_WC);
    limits_destroy (l);
    fixture_free (&f);
}

/* Added and removed in any order, nothing stays behind. */
static void test_sums_return_to_zero (void **state)
{
    (void)state;
    enum { JOBS = 500 };
    struct fixture f = fixture_make ();
    fixture_policy (&f);
    cross (&f, CRED_CLASS, "DEFAULT", LIMIT_JOB, CRED_USER, NULL, 10000, 10000);
    fixture_seal (&f);
    struct limits *l = limits_create (f.policy);
    struct limits_job job[JOBS];
    int64_t end[JOBS];
    uint64_t seed = 3;
    for (int i = 0; i < JOBS; i++) {
        seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407u;
        uint32_t r = (uint32_t)(seed >> 33);
        job[i] = job_of (r % 90, 1 + r % 17);
        job[i].cred[CRED_CLASS] = r % 5;
        end[i] = NOW_S + r % 10000;
        limits_active_add (l, &job[i], end[i]);
    }
    int64_t procs = 0;
    for (int i = 0; i < JOBS; i++)
        procs += job[i].procs;
    assert_int_equal (limits_active_usage (l, LIMIT_OBJECT_SYSTEM, 0, LIMIT_PROC, NOW_S), procs);
    for (int i = 0; i < JOBS; i++) {
        int at = (i * 347) % JOBS; /* 347 and 500 share no divisor */
        limits_active_remove (l, &job[at], end[at]);
    }
    for (uint32_t u = 0; u < 90; u++) {
        for (int k = 0; k < LIMIT_KINDS; k++)
            assert_int_equal (limits_active_usage (l, CRED_USER, u, (enum limit_kind)k, NOW_S), 0);
    }
    for (int k = 0; k < LIMIT_KINDS; k++)
        assert_int_equal (
            limits_active_usage (l, LIMIT_OBJECT_SYSTEM, 0, (enum limit_kind)k, NOW_S), 0);
    limits_destroy (l);
    fixture_free (&f);
}

/* A policy at random; special adds a QoS with a privilege that no job has, which turns off the
 * quick way through a check. */
static void random_limits (struct fixture *f, uint64_t seed, bool special)
{
    struct policy *p = fixture_policy (f);
    for (int k = 0; k < CRED_KINDS; k++) {
        for (uint32_t id = 0; id < 6; id++) {
            struct policy_limits *l = &policy_cred_edit (p, (enum cred_kind)k, id)->limits;
            for (int kind = 0; kind < LIMIT_KINDS; kind++) {
                seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407u;
                uint32_t r = (uint32_t)(seed >> 33);
                int64_t scale = kind == LIMIT_PS    ? 50000
                                : kind == LIMIT_PE  ? 1000000
                                : kind == LIMIT_WC  ? 5000
                                : kind == LIMIT_MEM ? 1000
                                                    : 1;
                int64_t hard = kind == LIMIT_MINPROC ? r % 3 : scale * (5 + r % 90);
                if (r % 5 == 0)
                    limit_set (l, (enum limit_kind)kind,
                               kind == LIMIT_MINPROC ? hard + 1 : hard / 2, hard);
                if (r % 7 == 0)
                    limit_set (l, (enum limit_kind)kind, LIMIT_UNLIMITED, LIMIT_UNLIMITED);
                if (r % 11 == 0 && kind != LIMIT_MINPROC) {
                    l->idle_mask |= 1u << kind;
                    l->idle[kind] = hard;
                }
            }
        }
    }
    if (special)
        policy_cred_edit (p, CRED_QOS, 77)->qos->flags = QOS_IGNALL;
    fixture_seal (f);
}

static void test_quick_way_is_the_same (void **state)
{
    (void)state;
    unsigned refused = 0, allowed = 0;
    for (uint64_t round = 1; round <= 40; round++) {
        struct fixture f = fixture_make (), g = fixture_make ();
        random_limits (&f, round, false);
        random_limits (&g, round, true);
        struct limits *quick = limits_create (f.policy), *slow = limits_create (g.policy);
        uint64_t seed = round;
        for (int i = 0; i < 300; i++) {
            seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407u;
            uint32_t r = (uint32_t)(seed >> 33);
            struct limits_job j = job_of (r % 8, 1 + r % 5);
            j.cred[CRED_GROUP] = r % 3 ? r % 7 : CRED_NONE;
            j.cred[CRED_CLASS] = r % 4;
            j.nodes = 1 + r % 4;
            j.wclimit_s = 100 + r % 5000;
            struct limits_violation a, b;
            for (int level = 0; level < LIMIT_LEVELS; level++) {
                int rc = limits_active_check (quick, &j, (enum limit_level)level, NOW_S + i, &a);
                assert_int_equal (
                    rc, limits_active_check (slow, &j, (enum limit_level)level, NOW_S + i, &b));
                if (rc) {
                    assert_int_equal (a.limit, b.limit);
                    assert_int_equal (a.object, b.object);
                    assert_int_equal (a.value, b.value);
                    assert_int_equal (a.usage, b.usage);
                }
                refused += rc != 0;
                allowed += rc == 0;
            }
            assert_int_equal (limits_idle_check (quick, &j, &a), limits_idle_check (slow, &j, &b));
            if (limits_active_check (quick, &j, LIMIT_HARD, NOW_S + i, NULL) == 0) {
                limits_active_add (quick, &j, NOW_S + i + j.wclimit_s);
                limits_active_add (slow, &j, NOW_S + i + j.wclimit_s);
            } else {
                limits_idle_add (quick, &j);
                limits_idle_add (slow, &j);
            }
        }
        limits_destroy (quick);
        limits_destroy (slow);
        fixture_free (&f);
        fixture_free (&g);
    }
    assert_true (refused > 1000 && allowed > 1000); /* both were met often */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_each_kind),
        cmocka_unit_test (test_overrun),
        cmocka_unit_test (test_soft_hard_and_sentence),
        cmocka_unit_test (test_default_per_credential),
        cmocka_unit_test (test_every_object),
        cmocka_unit_test (test_qos_override),
        cmocka_unit_test (test_qos_ignores),
        cmocka_unit_test (test_cross),
        cmocka_unit_test (test_idle),
        cmocka_unit_test (test_per_job),
        cmocka_unit_test (test_sums_return_to_zero),
        cmocka_unit_test (test_quick_way_is_the_same),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
