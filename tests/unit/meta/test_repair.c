/* Unit tests of meta/core/coalloc: parts that are lost and replaced, and a coordinator that is. */
#include "tests/unit/meta/coalloc_case.h"

/* Offers of both parts at both sites; the step takes those of the parts that are sought. */
static void requeried (struct fixture *f)
{
    static const struct choose_part parts[] = {{"left", 0, 60 * SEC, 0}, {"right", 0, 60 * SEC, 0}};
    struct choose_offer offers[4];
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 4};
    struct coalloc_event event = {.kind = COALLOC_EV_QUERIED};
    for (uint32_t o = 0; o < 4; o++)
        offers[o] = (struct choose_offer){.part = o / 2,
                                          .site = o % 2,
                                          .procs = 1,
                                          .price = 10,
                                          .not_before = TIME_US_NONE,
                                          .starts = whenever,
                                          .start_count = 1};
    event.u.queried.problem = &problem;
    event.u.queried.site_name = names;
    step (f, &event);
}

static void to_firm_for_later (struct fixture *f)
{
    f->record->not_before = f->now.wall + 1000 * SEC;
    to_ready (f);
}

static void seen (struct fixture *f, uint32_t part, bool unable, bool gone)
{
    struct coalloc_event event = for_part (f, COALLOC_EV_READIED, part);
    event.u.readied.unable = unable;
    event.u.readied.gone = gone;
    strcpy (event.reason.text, "a node is down");
    step (f, &event);
}

/* Part 0 is at beta, as its second attempt; part 1 has stayed where it was. */
static void expect_repaired (struct fixture *f, const uint8_t transaction[16], time_us slot)
{
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 1); /* whoever takes over must know */
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 0);
    decided (f, DECISION_COMMIT);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 1);
    assert_int_equal (f->record->part[0].attempt, 2);
    assert_string_equal (f->record->part[0].site, "beta");
    prepared (f, 0, true, 0);
    assert_int_equal (asked (f, COALLOC_DO_COMMIT), 1);
    committed (f, 0, COALLOC_FIRM);
    assert_int_equal (f->record->phase, COALLOC_READY);
    assert_int_equal (f->record->part[1].attempt, 1);
    assert_int_equal (f->record->slot_start, slot);
    assert_memory_equal (f->record->transaction, transaction, 16);
    assert_int_equal (f->record->tries, 1);
}

static void a_part_lost_when_firm_is_prepared_elsewhere (void **state)
{
    struct fixture *f = *state;
    uint8_t transaction[16];
    to_firm_for_later (f);
    time_us slot = f->record->slot_start;
    memcpy (transaction, f->record->transaction, 16);
    part_ended (f, 0, COALLOC_FAILED, true);
    assert_int_equal (f->record->phase, COALLOC_REPAIR);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 1);
    assert_true (coalloc_seeks (f->record, 0) && !coalloc_seeks (f->record, 1));
    assert_int_equal (f->record->part[1].state, PART_FIRM);
    requeried (f);
    expect_repaired (f, transaction, slot);
}

static void a_site_lost_before_the_barrier_is_replaced (void **state)
{
    struct fixture *f = *state;
    uint8_t transaction[16];
    to_firm_for_later (f);
    time_us slot = f->record->slot_start;
    memcpy (transaction, f->record->transaction, 16);
    struct coalloc_event lost = for_part (f, COALLOC_EV_SITE_LOST, 0);
    step (f, &lost);
    assert_int_equal (f->record->phase, COALLOC_REPAIR);
    requeried (f);
    expect_repaired (f, transaction, slot);
}

/* What its site still holds is given back once another could take it, and not before. */
static void what_cannot_be_started_is_released_first (void **state)
{
    struct fixture *f = *state;
    uint8_t transaction[16];
    to_firm_for_later (f);
    time_us slot = f->record->slot_start;
    memcpy (transaction, f->record->transaction, 16);
    seen (f, 0, true, false);
    assert_int_equal (f->record->part[0].state, PART_DOUBTED);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 1);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 0);
    requeried (f);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 0);
    answered (f, COALLOC_EV_RELEASED, 0, true);
    assert_int_equal (f->record->phase, COALLOC_REPAIR);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 1);
    requeried (f);
    expect_repaired (f, transaction, slot);
}

static void what_cannot_be_started_stays_where_no_other_can (void **state)
{
    struct fixture *f = *state;
    to_firm_for_later (f);
    seen (f, 0, true, false);
    struct coalloc_event none = {.kind = COALLOC_EV_QUERIED};
    none.u.queried.found = COALLOC_QUERY_SITE_DOWN;
    step (f, &none);
    assert_int_equal (f->record->phase, COALLOC_READY);
    assert_int_equal (f->record->part[0].state, PART_FIRM);
    seen (f, 0, true, false); /* as often as may be prepared anew; then it is only looked at */
    assert_int_equal (f->record->phase, COALLOC_READY);
}

static void two_lost_one_after_the_other (void **state)
{
    struct fixture *f = *state;
    to_firm_for_later (f);
    seen (f, 0, false, true);
    seen (f, 1, false, true); /* in REPAIR nobody is asked READY: ignored */
    assert_int_equal (f->record->part[1].state, PART_FIRM);
    part_ended (f, 1, COALLOC_FAILED, true);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 0); /* the one under way first */
    requeried (f);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 1); /* it was not about part 1 */
    requeried (f);
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 1);
    assert_string_equal (f->record->part[0].site, "beta");
    assert_string_equal (f->record->part[1].site, "alpha");
    decided (f, DECISION_COMMIT);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 2);
}

static void without_another_site_the_group_begins_anew (void **state)
{
    struct fixture *f = *state;
    to_firm_for_later (f);
    part_ended (f, 0, COALLOC_FAILED, true);
    struct coalloc_event none = {.kind = COALLOC_EV_QUERIED};
    none.u.queried.found = COALLOC_QUERY_NEVER;
    strcpy (none.reason.text, "component left can never run");
    step (f, &none);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_non_null (strstr (f->record->reason.text, "can never run"));
    answered (f, COALLOC_EV_RELEASED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
}

static void the_repair_keeps_within_the_bound_on_the_cost (void **state)
{
    struct fixture *f = *state;
    f->record->cost_max = 25;
    to_firm_for_later (f);
    f->record->part[1].price = 16; /* 10 more is too much */
    part_ended (f, 0, COALLOC_FAILED, true);
    requeried (f);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
}

static void a_refused_repair_is_tried_no_further_than_allowed (void **state)
{
    struct fixture *f = *state;
    to_firm_for_later (f);
    part_ended (f, 0, COALLOC_FAILED, true);
    requeried (f);
    decided (f, DECISION_COMMIT);
    prepared (f, 0, false, 0); /* reprepares_max is 1 */
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (f->actions.action[0].part, 1);
}

static void cancelled_in_a_repair (void **state)
{
    struct fixture *f = *state;
    to_firm_for_later (f);
    seen (f, 0, true, false);
    simple (f, COALLOC_EV_CANCEL);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 2); /* the doubted one is held, too */
    requeried (f);                                       /* late */
    assert_int_equal (f->record->phase, COALLOC_UNDO);
}

static void recovered_in_a_repair (void **state)
{
    struct fixture *f = *state;
    to_firm_for_later (f);
    part_ended (f, 0, COALLOC_FAILED, true);
    simple (f, COALLOC_EV_RECOVER);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 1);
    requeried (f);
    simple (f, COALLOC_EV_RECOVER); /* chosen, and perhaps not proposed */
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 1);
    assert_int_equal (f->actions.action[0].proposal, DECISION_COMMIT);
    decided (f, DECISION_COMMIT);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 1);
}

/* ---- recovery */

static void recover (struct fixture *f)
{
    struct coalloc_record *copy = coalloc_copy (f->record);
    coalloc_destroy (f->record);
    f->record = copy;
    f->now.mono = 7; /* a reboot: monotonic moments mean nothing */
    simple (f, COALLOC_EV_RECOVER);
}

static void recovery_before_the_decision_asks_the_log (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    recover (f);
    assert_int_equal (f->record->phase, COALLOC_DECIDE);
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 1);
    assert_int_equal (f->actions.action[0].proposal, DECISION_ABORT);
    decided (f, DECISION_ABORT);
    assert_int_equal (asked (f, COALLOC_DO_ABORT), 2);
}

static void recovery_finds_a_commit_in_the_log (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    prepared (f, 0, true, 0);
    prepared (f, 1, true, 0);
    recover (f);
    decided (f, DECISION_COMMIT);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
    assert_int_equal (asked (f, COALLOC_DO_COMMIT), 2);
}

static void recovery_after_the_decision_resends (void **state)
{
    struct fixture *f = *state;
    to_commit (f);
    committed (f, 0, COALLOC_FIRM);
    recover (f);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
    assert_int_equal (asked (f, COALLOC_DO_COMMIT), 1);
    committed (f, 1, COALLOC_FIRM);
    answered (f, COALLOC_EV_READIED, 0, true);
    recover (f); /* the barrier is asked again */
    assert_int_equal (asked (f, COALLOC_DO_READY), 2);
    answered (f, COALLOC_EV_READIED, 0, true);
    answered (f, COALLOC_EV_READIED, 1, true);
    answered (f, COALLOC_EV_STARTED, 0, true);
    recover (f);
    assert_int_equal (asked (f, COALLOC_DO_START), 1);
    assert_int_equal (f->actions.action[0].part, 1);
}

static void recovery_of_an_undo_goes_on (void **state)
{
    struct fixture *f = *state;
    to_ready (f);
    struct coalloc_event cancel = {.kind = COALLOC_EV_CANCEL};
    step (f, &cancel);
    recover (f);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (recovery_before_the_decision_asks_the_log),
        TEST (recovery_finds_a_commit_in_the_log),
        TEST (recovery_after_the_decision_resends),
        TEST (recovery_of_an_undo_goes_on),
        TEST (a_part_lost_when_firm_is_prepared_elsewhere),
        TEST (a_site_lost_before_the_barrier_is_replaced),
        TEST (what_cannot_be_started_is_released_first),
        TEST (what_cannot_be_started_stays_where_no_other_can),
        TEST (two_lost_one_after_the_other),
        TEST (without_another_site_the_group_begins_anew),
        TEST (the_repair_keeps_within_the_bound_on_the_cost),
        TEST (a_refused_repair_is_tried_no_further_than_allowed),
        TEST (cancelled_in_a_repair),
        TEST (recovered_in_a_repair),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
