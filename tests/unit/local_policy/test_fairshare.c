/* fairshare: windows and effective usage, targets, caps, rolling over gaps and restarts. */
#include "tests/unit/local_policy/support.h"

#include <math.h>

#include "local/core/fairshare.h"

#define HOUR (INT64_C (3600) * US_PER_S)
#define DAY (24 * HOUR)
#define START (INT64_C (11000) * DAY) /* a boundary of every interval used here */

static const uint32_t no_cred[CRED_KINDS] = {CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE};

static void near (double a, double b)
{
    if (fabs (a - b) > 1e-9 * (1 + fabs (b)))
        fail_msg ("%.17g is not %.17g", a, b);
}

static void target_set (struct fixture *f, enum cred_kind kind, const char *name, double target,
                        enum fs_target_type type)
{
    struct policy_cred *c = cred_edit (f, kind, name);
    c->fs_target = target;
    c->fs_target_type = type;
    c->set |= CRED_SET_FSTARGET;
}

static struct policy *fs_policy_make (struct fixture *f, uint32_t depth, duration_us interval,
                                      double decay)
{
    struct policy *p = fixture_policy (f);
    p->fs_policy = FS_DEDICATEDPS;
    p->fs_depth = depth;
    p->fs_interval = interval;
    p->fs_decay = decay;
    return p;
}

static void charge (struct fairshare *fs, enum cred_kind kind, uint32_t id, double amount)
{
    uint32_t cred[CRED_KINDS];
    memcpy (cred, no_cred, sizeof cred);
    cred[kind] = id;
    fairshare_charge (fs, cred, amount);
}

/* Windows 60, 0, 10, 50 of 110, 125, 100, 150 with decay .5. */
static void test_effective_usage (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 4, HOUR, .5);
    uint32_t u = cred_id (&f, CRED_USER, "u");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    const double own[] = {50, 10, 0, 60}, total[] = {150, 100, 125, 110};
    for (int i = 0; i < 4; i++) { /* oldest first */
        fairshare_advance (fs, START + i * HOUR + 5);
        charge (fs, CRED_USER, u, own[i]);
        fairshare_charge (fs, no_cred, total[i] - own[i]);
    }
    for (uint32_t n = 0; n < 4; n++) {
        near (fairshare_window (fs, CRED_USER, u, n), own[3 - n]);
        near (fairshare_window_total (fs, n), total[3 - n]);
    }
    near (fairshare_effective (fs, CRED_USER, u), 60 + 0 + 2.5 + 6.25);
    near (fairshare_effective_total (fs), 110 + 62.5 + 25 + 18.75);
    near (fairshare_percent (fs, CRED_USER, u),
          100 * (60 + 0 + 2.5 + 6.25) / (110 + 62.5 + 25 + 18.75));
    fairshare_destroy (fs);
    fixture_free (&f);
}

/* Figure 6 of the paper: 8 windows of 24 hours, decay .75; window n counts .75^n. */
static void test_figure_6 (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 8, DAY, .75);
    uint32_t u = cred_id (&f, CRED_USER, "u");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    for (int i = 0; i < 10; i++) { /* the first two days fall out of the eight */
        fairshare_advance (fs, START + i * DAY + HOUR);
        charge (fs, CRED_USER, u, i + 1);
    }
    double expected = 0, weight = 1;
    for (int n = 0; n < 8; n++) {
        near (fairshare_window (fs, CRED_USER, u, (uint32_t)n), 10 - n);
        expected += (10 - n) * weight;
        weight *= .75;
    }
    near (fairshare_effective (fs, CRED_USER, u), expected);
    near (fairshare_window (fs, CRED_USER, u, 8), 0);
    fairshare_destroy (fs);
    fixture_free (&f);
}

/* A running job fills exactly the windows it runs in, whenever they are looked at. */
static void test_rates_split_at_boundaries (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 4, HOUR, 1);
    uint32_t cred[CRED_KINDS] = {1, 2, 3, CRED_NONE, 0};
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START + 30 * 60 * US_PER_S);
    int64_t rate = fairshare_rate_micro (f.policy, 8, 0, 0);
    assert_int_equal (rate, 8000000);
    fairshare_rate_add (fs, cred, rate);
    fairshare_advance (fs,
                       START + 3 * HOUR + 60 * US_PER_S); /* in one step over three boundaries */
    fairshare_rate_add (fs, cred, -rate);
    fairshare_advance (fs, START + 3 * HOUR + 10 * 60 * US_PER_S);
    const double expected[] = {8 * 60, 8 * 3600, 8 * 3600, 8 * 1800};
    for (uint32_t n = 0; n < 4; n++) {
        near (fairshare_window (fs, CRED_USER, 1, n), expected[n]);
        near (fairshare_window (fs, CRED_GROUP, 2, n), expected[n]);
        near (fairshare_window (fs, CRED_ACCOUNT, 3, n), expected[n]);
        near (fairshare_window (fs, CRED_QOS, 0, n), expected[n]);
        near (fairshare_window_total (fs, n), expected[n]);
    }
    fairshare_advance (fs, START); /* the past changes nothing */
    near (fairshare_window (fs, CRED_USER, 1, 0), 8 * 60);
    fairshare_destroy (fs);
    fixture_free (&f);
}

static void test_long_gap (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 4, HOUR, 1);
    uint32_t u = cred_id (&f, CRED_USER, "u");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    charge (fs, CRED_USER, u, 77);
    fairshare_advance (fs, START + 3 * HOUR);
    near (fairshare_window (fs, CRED_USER, u, 3), 77);
    near (fairshare_effective (fs, CRED_USER, u), 77);
    fairshare_advance (fs, START + 4 * HOUR);
    near (fairshare_effective (fs, CRED_USER, u), 0);
    charge (fs, CRED_USER, u, 5);
    uint32_t cred[CRED_KINDS] = {u, CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE};
    fairshare_rate_add (fs, cred, 1000000);
    fairshare_advance (fs,
                       START + 10000 * HOUR + 60 * US_PER_S); /* the machine ran on for a year */
    near (fairshare_window (fs, CRED_USER, u, 0), 60);
    for (uint32_t n = 1; n < 4; n++)
        near (fairshare_window (fs, CRED_USER, u, n), 3600);
    near (fairshare_effective (fs, CRED_USER, u), 60 + 3 * 3600);
    fairshare_destroy (fs);
    fixture_free (&f);
}

/* One long step is the same as many short ones, however long. */
static void test_gap_of_any_length (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 4, HOUR, .9);
    fixture_seal (&f);
    for (int gap = 0; gap < 24; gap++) {
        struct fairshare *one = fairshare_create (f.policy, START);
        struct fairshare *many = fairshare_create (f.policy, START);
        uint32_t cred[CRED_KINDS] = {1, 2, 3, 4, 0};
        time_us end = START + gap * HOUR + HOUR / 3;
        fairshare_charge (one, cred, 1000);
        fairshare_charge (many, cred, 1000);
        fairshare_rate_add (one, cred, 2000000);
        fairshare_rate_add (many, cred, 2000000);
        fairshare_advance (one, end);
        for (time_us t = START; t < end; t += HOUR / 4)
            fairshare_advance (many, t);
        fairshare_advance (many, end);
        for (uint32_t n = 0; n < 4; n++)
            near (fairshare_window (one, CRED_USER, 1, n),
                  fairshare_window (many, CRED_USER, 1, n));
        near (fairshare_effective (one, CRED_USER, 1), fairshare_effective (many, CRED_USER, 1));
        fairshare_destroy (one);
        fairshare_destroy (many);
    }
    fixture_free (&f);
}

/* Saved, restored later: the windows have rolled as if it had never stopped. */
static void test_restart (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 4, HOUR, .5);
    uint32_t u = cred_id (&f, CRED_USER, "u"), g = cred_id (&f, CRED_GROUP, "g");
    fixture_seal (&f);
    struct fairshare *one = fairshare_create (f.policy, START);
    uint32_t cred[CRED_KINDS] = {u, g, CRED_NONE, CRED_NONE, 0};
    for (int i = 0; i < 3; i++) {
        fairshare_advance (one, START + i * HOUR + 7 * US_PER_S);
        fairshare_charge (one, cred, 10 + i);
    }
    struct arena *arena = arena_create (0);
    struct fairshare_state saved;
    fairshare_export (one, arena, &saved);
    assert_int_equal (saved.row_count, 4); /* user, group, QoS and the total */

    struct fairshare *two = fairshare_create (f.policy, START + 4 * HOUR);
    charge (two, CRED_USER, u, 1e6); /* replaced */
    struct err err;
    assert_int_equal (fairshare_import (two, &saved, &err), 0);
    fairshare_advance (one, START + 4 * HOUR);
    fairshare_advance (two, START + 4 * HOUR);
    for (uint32_t n = 0; n < 4; n++) {
        assert_true (fairshare_window (one, CRED_USER, u, n) ==
                     fairshare_window (two, CRED_USER, u, n));
        assert_true (fairshare_window (one, CRED_GROUP, g, n) ==
                     fairshare_window (two, CRED_GROUP, g, n));
        assert_true (fairshare_window_total (one, n) == fairshare_window_total (two, n));
    }
    near (fairshare_window (two, CRED_USER, u, 2), 12);
    assert_true (fairshare_effective (one, CRED_USER, u) ==
                 fairshare_effective (two, CRED_USER, u));

    saved.row[0].window[1] = -4;
    assert_int_equal (fairshare_import (two, &saved, &err), ERR_INVALID);
    near (fairshare_window (two, CRED_USER, u, 2), 12); /* as it was */
    arena_destroy (arena);
    fairshare_destroy (one);
    fairshare_destroy (two);
    fixture_free (&f);
}

/* Another FSINTERVAL: the usage stays where it was in time. */
static void test_other_interval (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *hourly = fs_policy_make (&f, 6, HOUR, 1);
    uint32_t u = cred_id (&f, CRED_USER, "u");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (hourly, START);
    for (int i = 0; i < 6; i++) {
        fairshare_advance (fs, START + i * HOUR);
        charge (fs, CRED_USER, u, 1 << i); /* 1 2 4 8 16 32, oldest first */
    }
    struct policy *two_hourly = fs_policy_make (&f, 2, 2 * HOUR, 1);
    fixture_seal (&f);
    fairshare_policy_set (fs, two_hourly);
    near (fairshare_window (fs, CRED_USER, u, 0), 16 + 32);
    near (fairshare_window (fs, CRED_USER, u, 1), 4 + 8);
    near (fairshare_effective (fs, CRED_USER, u), 60); /* the oldest two are out of reach */
    struct policy *half = fs_policy_make (&f, 8, HOUR / 2, 1);
    fixture_seal (&f);
    fairshare_policy_set (fs, half);
    near (fairshare_effective (fs, CRED_USER, u), fairshare_effective_total (fs));
    near (fairshare_effective (fs, CRED_USER, u), 60);
    fairshare_destroy (fs);
    policy_destroy (hourly);
    policy_destroy (two_hourly);
    fixture_free (&f);
}

static void test_factors (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 2, HOUR, 1);
    target_set (&f, CRED_USER, "DEFAULT", 25, FS_TARGET_TARGET);
    target_set (&f, CRED_USER, "floor", 10, FS_TARGET_FLOOR);
    target_set (&f, CRED_USER, "floor2", 50, FS_TARGET_FLOOR);
    target_set (&f, CRED_USER, "ceiling", 10, FS_TARGET_CEILING);
    target_set (&f, CRED_USER, "ceiling2", 50, FS_TARGET_CEILING);
    target_set (&f, CRED_USER, "cap", 1, FS_TARGET_CAP_RELATIVE);
    uint32_t other = cred_id (&f, CRED_USER, "other");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    near (fairshare_factor (fs, CRED_USER, other), 25); /* nothing used: all below target */
    const char *const name[] = {"floor", "floor2", "ceiling", "ceiling2", "cap"};
    for (int i = 0; i < 5; i++)
        charge (fs, CRED_USER, cred_id (&f, CRED_USER, name[i]), 20);
    const double expected[] = {0, 30, -10, 0, 0};
    for (int i = 0; i < 5; i++)
        near (fairshare_factor (fs, CRED_USER, cred_id (&f, CRED_USER, name[i])), expected[i]);
    near (fairshare_factor (fs, CRED_USER, other), 25);
    near (fairshare_factor_other (fs, CRED_USER), 25);
    near (fairshare_factor (fs, CRED_GROUP, 3), 0); /* no target for groups */
    double all[8];
    fairshare_factors (fs, CRED_USER, all, 8);
    for (uint32_t id = 0; id < 8; id++)
        assert_true (all[id] == fairshare_factor (fs, CRED_USER, id));
    fairshare_destroy (fs);
    fixture_free (&f);
}

static void test_ratio (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 2, HOUR, 1)->fs_ratio = true;
    target_set (&f, CRED_USER, "u", 50, FS_TARGET_TARGET);
    uint32_t u = cred_id (&f, CRED_USER, "u");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    charge (fs, CRED_USER, u, 30);
    fairshare_charge (fs, no_cred, 70);
    near (fairshare_factor (fs, CRED_USER, u), 1 - 30.0 / 50);
    fairshare_destroy (fs);
    fixture_free (&f);
}

static void test_caps (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 2, HOUR, 1);
    target_set (&f, CRED_CLASS, "interactive", 15, FS_TARGET_CAP_RELATIVE);
    target_set (&f, CRED_ACCOUNT, "small", 1000, FS_TARGET_CAP_ABSOLUTE);
    uint32_t interactive = cred_id (&f, CRED_CLASS, "interactive");
    uint32_t small = cred_id (&f, CRED_ACCOUNT, "small");
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    uint32_t cred[CRED_KINDS] = {1, CRED_NONE, CRED_NONE, interactive, 0};
    struct fairshare_block block;
    assert_false (fairshare_blocked (fs, cred, 1e9, &block)); /* nothing delivered yet */
    fairshare_charge (fs, no_cred, 900);
    fairshare_charge (fs, cred, 100);
    assert_false (fairshare_blocked (fs, cred, 50, &block));
    assert_true (fairshare_blocked (fs, cred, 51, &block));
    assert_int_equal (block.kind, CRED_CLASS);
    assert_int_equal (block.id, interactive);
    near (block.value, 15.1);
    near (block.target, 15);

    uint32_t acct[CRED_KINDS] = {1, CRED_NONE, small, CRED_NONE, 0};
    assert_false (fairshare_blocked (fs, acct, 1000, &block));
    charge (fs, CRED_ACCOUNT, small, 1);
    assert_true (fairshare_blocked (fs, acct, 1000, &block));
    assert_int_equal (block.type, FS_TARGET_CAP_ABSOLUTE);
    near (block.value, 1001);
    fairshare_destroy (fs);
    fixture_free (&f);
}

/* Whatever happens, the users' usage adds up to the total, window by window. */
static void test_conserved (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    fs_policy_make (&f, 5, HOUR, .8);
    fixture_seal (&f);
    struct fairshare *fs = fairshare_create (f.policy, START);
    uint64_t seed = 7;
    int64_t rate[40] = {0};
    time_us now = START;
    for (int step = 0; step < 3000; step++) {
        seed = seed * UINT64_C (6364136223846793005) + 1442695040888963407u;
        uint32_t r = (uint32_t)(seed >> 33), user = r % 40;
        now += (int64_t)(r % 977) * US_PER_S;
        fairshare_advance (fs, now);
        uint32_t cred[CRED_KINDS] = {user, user % 7, user % 3, user % 2, 0};
        int64_t change = rate[user] ? -rate[user] : (int64_t)(1 + r % 64) * 1000000;
        rate[user] += change;
        fairshare_rate_add (fs, cred, change);
        if (step % 50)
            continue;
        for (uint32_t n = 0; n < 5; n++) {
            for (int k = 0; k < CRED_KINDS; k++) {
                double sum = 0;
                for (uint32_t id = 0; id < 40; id++)
                    sum += fairshare_window (fs, (enum cred_kind)k, id, n);
                near (sum, fairshare_window_total (fs, n));
            }
        }
    }
    fairshare_destroy (fs);
    fixture_free (&f);
}

static void test_metrics (void **state)
{
    (void)state;
    struct fixture f = fixture_make ();
    struct policy *p = fixture_policy (&f);
    assert_int_equal (fairshare_rate_micro (p, 8, 12.5, 3.25), 0);
    p->fs_policy = FS_DEDICATEDPES;
    assert_int_equal (fairshare_rate_micro (p, 8, 12.5, 3.25), 12500000);
    p->fs_policy = FS_UTILIZEDPS;
    assert_int_equal (fairshare_rate_micro (p, 8, 12.5, 3.25), 3250000);
    fixture_free (&f);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_effective_usage),
        cmocka_unit_test (test_figure_6),
        cmocka_unit_test (test_rates_split_at_boundaries),
        cmocka_unit_test (test_long_gap),
        cmocka_unit_test (test_gap_of_any_length),
        cmocka_unit_test (test_restart),
        cmocka_unit_test (test_other_interval),
        cmocka_unit_test (test_factors),
        cmocka_unit_test (test_ratio),
        cmocka_unit_test (test_caps),
        cmocka_unit_test (test_conserved),
        cmocka_unit_test (test_metrics),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
