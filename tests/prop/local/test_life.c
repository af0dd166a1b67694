/* A random life of a site, twice: one cluster passes incrementally, its twin forgets everything before
 * each pass (and never counts or uses bit sets where nodes are bound early). After every pass: the
 * same plan, the same reasons; no node over-committed in any resource at any moment, promises
 * included; nobody started before his date, nor started or promised where a reservation does not admit him; the first
 * reserved job is not delayed by anything that was backfilled. Now and then the clock was ahead, and is set back. */
#include "tests/prop/local/life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_dates (const struct life *l)
{
    for (uint32_t i = 0; i < l->plan[0].start_count; i++) {
        struct job_view view;
        assert_int_equal (cluster_job_get (l->twin[0], l->plan[0].start[i].job, &view, NULL), 0);
        assert_true (view.spec->not_before == TIME_US_NONE || view.spec->not_before <= l->now);
    }
}

static void compare_twins (const struct life *l)
{
    struct job_id list[ACTIVE_MOST];
    uint32_t n = cluster_job_list (l->twin[0], JOB_IDLE, list, ACTIVE_MOST);

    assert_int_equal (l->plan[0].hash, l->plan[1].hash);
    assert_int_equal (n, cluster_job_count (l->twin[1], JOB_IDLE));
    for (uint32_t i = 0; i < n && i < ACTIVE_MOST; i++) {
        struct job_view a, b;
        assert_int_equal (cluster_job_get (l->twin[0], list[i], &a, NULL), 0);
        assert_int_equal (cluster_job_get (l->twin[1], list[i], &b, NULL), 0);
        assert_int_equal (a.priority, b.priority);
        assert_int_equal (a.bypass, b.bypass);
        assert_int_equal (a.reserved_start, b.reserved_start);
        assert_int_equal (a.reason.code, b.reason.code);
        assert_int_equal (a.reason.need, b.reason.need);
        assert_int_equal (a.reason.have, b.reason.have);
        assert_int_equal (a.reason.clears, b.reason.clears);
        assert_true (a.reason.code != REASON_NONE && a.reason.code != REASON_NOT_PLANNED);
    }
}

/* Did something start in a SINGLEUSE reservation, which is closed to all others then, whatever they were
 * promised in it? */
static bool single_used (const struct life *l)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t r = 0; r < c->rsv_count; r++) {
        for (uint32_t i = 0; i < l->plan[0].start_count; i++) {
            if (c->rsv[r]->used_by.v == l->plan[0].start[i].job.v)
                return true;
        }
    }
    return false;
}

/* Asked again at once, the first reserved job must not be worse off for what was just backfilled.
 * Only where the order cannot have changed (bypass counts and limits move it). */
static void check_no_delay (struct life *l)
{
    struct arena *arena = arena_create (0);
    struct plan again;
    struct err err = {0};

    if (l->policy->sub_weight[PRIO_BYPASS] != 0 || single_used (l) ||
        l->policy->partitions_limited ||
        policy_cred (l->policy, CRED_USER, CRED_DEFAULT)->limits.active_mask != 0)
        goto done;
    assert_int_equal (plan_compute (l->twin[1], l->now, arena, &again, &err), 0);
    if (l->plan[1].reservation_count && again.reservation_count &&
        again.reservation[0].job.v == l->plan[1].reservation[0].job.v)
        assert_true (again.reservation[0].start <= l->plan[1].reservation[0].start);
done:
    arena_destroy (arena);
}

/* In steps of one job, of some, or in one; who asks in between learns nothing that is not so, and the plan
 * is the twin's, which is made in one. */
static int plan_in_steps (struct life *l, struct err *err)
{
    static const uint32_t most[] = {1, 20, UINT32_MAX};
    uint32_t at_most = most[life_pick (l, 0, 2)], step = 0;
    bool more = true;
    int rc = plan_begin (l->twin[0], l->now, l->arena[0], &l->plan[0], err);

    while (rc == 0 && more) {
        rc = plan_step (l->twin[0], at_most, &more, err);
        if (step++ % 16 == 3)
            life_check_question (l);
    }
    return rc;
}

static void pass (struct life *l)
{
    for (int t = 0; t < 2; t++) {
        struct err err = {0};
        arena_reset (l->arena[t]);
        if (t == 1)
            plan_forget (l->twin[t]);
        if ((t == 0 ? plan_in_steps (l, &err)
                    : plan_compute (l->twin[t], l->now, l->arena[t], &l->plan[t], &err)) != 0 ||
            plan_commit (l->twin[t], &l->plan[t], &err) != 0)
            fail_msg ("%s", err.text);
    }
    compare_twins (l);
    check_dates (l);
    life_check_limits (l);
    life_check_soft_promises (l);
    if (l->policy->reservation_binding == BINDING_EARLY)
        life_check_over_commitment (l);
    life_check_access (l);
    life_check_partitions (l);
    life_check_down (l);
    if (l->rich) {
        life_check_inside (l);
        life_check_sets (l);
    }
    check_no_delay (l);
}

/* What was over by the clock that was ahead is gone, as nui-local has it. */
static void set_back (struct life *l)
{
    struct cluster *one = l->twin[0];

    for (uint32_t r = one->rsv_count; r-- > 0;) {
        struct rsv_id id = one->rsv[r]->spec.id;
        if (one->rsv[r]->spec.end > l->now)
            continue;
        for (int t = 0; t < 2; t++)
            assert_int_equal (cluster_rsv_release (l->twin[t], id, l->now, NULL), 0);
    }
    l->now -= life_pick (l, 2, 60) * US_PER_S;
    for (int t = 0; t < 2; t++)
        cluster_clock_back (l->twin[t], l->now);
}

static void live (uint64_t seed, bool rich)
{
    struct life life = {.seed = seed,
                        .next_job = 1,
                        .next_rsv = 1,
                        .now = 1000 * US_PER_S,
                        .rich = rich,
                        .dims = rich ? RICH_DIMS : DIMS};
    struct life *l = &life;

    cred_names_init (&l->names);
    for (int i = 1; i < 8; i++) {
        char name[16];
        snprintf (name, sizeof name, "u%d", i);
        strtab_intern (l->names.tab[CRED_USER], name);
    }
    life_policy_make (l);
    if (rich)
        strtab_intern (l->names.tab[CRED_CLASS], "c1");
    life_site_make (l);
    if (rich)
        life_site_enrich (l);
    for (int step = 0; step < 120; step++) {
        for (int64_t k = life_pick (l, 1, 3); k > 0; k--) {
            life_event (l);
            life_check_question (l);
        }
        pass (l);
        life_check_question (l);
        if (life_pick (l, 0, 19) == 0) /* the clock was ahead */
            set_back (l);
        l->now += life_pick (l, 0, 3) ? life_pick (l, 0, 9) * US_PER_S : 0;
    }
    for (int t = 0; t < 2; t++) {
        cluster_destroy (l->twin[t]);
        arena_destroy (l->arena[t]);
    }
    policy_destroy (l->policy);
    cred_names_free (&l->names);
}

static void lives (bool rich)
{
    const char *from = getenv ("NUI_SEED"), *many = getenv ("NUI_SEEDS");
    uint64_t first = from ? strtoull (from, NULL, 10) : 1;
    uint64_t count = many ? strtoull (many, NULL, 10) : from ? 1 : 150;

    for (uint64_t seed = first; seed < first + count; seed++) {
        print_message ("\rseed %llu ", (unsigned long long)seed);
        live (seed, rich);
    }
    if (!from && !many && !rich)
        live (816, rich); /* two reservations, one after the other, admit who runs through both */
    if (!from && !many && !rich)
        live (
            951,
            rich); /* what is known of a shape for good, and its access class has another number */
    print_message ("\n");
}

static void test_lives (void **state)
{
    (void)state;
    lives (false);
}

static void test_rich_lives (void **state)
{
    (void)state;
    lives (true);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_lives),
                                       cmocka_unit_test (test_rich_lives)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
