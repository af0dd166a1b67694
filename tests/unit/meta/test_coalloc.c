/* Unit tests of meta/core/coalloc: each transition of the coordinator. */
#include "tests/unit/meta/coalloc_case.h"

/* ---- the straight way */

static void straight_to_the_end (void **state)
{
    struct fixture *f = *state;
    simple (f, COALLOC_EV_BEGIN);
    assert_true (f->actions.save);
    queried (f);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 2); /* parallel on the first try */
    assert_int_equal (f->record->slot_start, f->now.wall + policy.lead);
    assert_string_equal (f->record->part[1].site, "beta");
    prepared (f, 0, true, 0);
    assert_int_equal (f->actions.count, 0);
    prepared (f, 1, true, 0);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 1);
    assert_int_equal (f->actions.action[0].proposal, DECISION_COMMIT);
    decided (f, DECISION_COMMIT);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_COMMIT), 2);
    committed (f, 1, COALLOC_FIRM);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
    committed (f, 0, COALLOC_FIRM);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_READY), 2); /* the slot is within the lead */
    answered (f, COALLOC_EV_READIED, 0, true);
    assert_int_equal (asked (f, COALLOC_DO_START), 0);
    answered (f, COALLOC_EV_READIED, 1, true);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_START), 2);
    assert_int_equal (f->record->start_at, f->record->slot_start);
    answered (f, COALLOC_EV_STARTED, 1, true);
    answered (f, COALLOC_EV_STARTED, 0, true);
    assert_int_equal (f->record->phase, COALLOC_LIVE);
    part_ended (f, 0, COALLOC_COMPLETED, false);
    assert_int_equal (f->record->phase, COALLOC_LIVE);
    part_ended (f, 1, COALLOC_COMPLETED, false);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_int_equal (f->record->outcome, COALLOC_COMPLETED);
}

static void repeated_answers_change_nothing (void **state)
{
    struct fixture *f = *state;
    to_commit (f);
    struct coalloc_event late = for_part (f, COALLOC_EV_PREPARED, 0);
    late.u.prepared.granted = false;
    step (f, &late);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
    committed (f, 0, COALLOC_FIRM);
    committed (f, 0, COALLOC_EXPIRED); /* reordered: the first answer stands */
    assert_int_equal (f->record->part[0].state, PART_FIRM);
    decided (f, DECISION_ABORT);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
    uint8_t other[16] = {9};
    struct coalloc_event foreign = for_part (f, COALLOC_EV_COMMITTED, 1);
    foreign.transaction = other;
    foreign.u.committed.outcome = COALLOC_FIRM;
    step (f, &foreign);
    assert_int_equal (f->record->part[1].state, PART_COMMITTING);
    foreign.transaction = f->record->transaction;
    foreign.attempt = 7;
    step (f, &foreign);
    assert_int_equal (f->record->part[1].state, PART_COMMITTING);
}

/* ---- PREPARE says NO */

static void no_aborts_and_its_hint_feeds_the_next_choice (void **state)
{
    struct fixture *f = *state;
    time_us next = f->now.wall + 500 * SEC;
    to_prepare (f);
    prepared (f, 1, false, next);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_ABORT), 1); /* part 0, though it has not answered */
    assert_int_equal (f->actions.action[0].part, 0);
    answered (f, COALLOC_EV_ABORTED, 0, false);
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
    assert_true (f->actions.wake < 10 * SEC);
    later (f, 11 * SEC);
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (f->record->phase, COALLOC_QUERY);
    queried (f);
    assert_int_equal (f->record->slot_start, next);
    /* on a retry one site after the other, in canonical order */
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 1);
    assert_string_equal (f->record->part[f->actions.action[0].part].site, "alpha");
    prepared (f, 0, true, 0);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 1);
    assert_int_equal (f->actions.action[0].part, 1);
    prepared (f, 1, true, 0);
    assert_int_equal (f->record->phase, COALLOC_DECIDE);
}

/* One try that ends with a NO of part 0, and the wait after it. */
static void refused_once (struct fixture *f, time_us next_feasible)
{
    assert_int_equal (f->record->phase, COALLOC_QUERY);
    queried (f);
    if (f->record->phase == COALLOC_PREPARE) {
        prepared (f, 0, false, next_feasible);
        if (f->record->part[1].state == PART_ABORTING)
            answered (f, COALLOC_EV_ABORTED, 1, false);
    }
    later (f, 61 * SEC);
    simple (f, COALLOC_EV_TICK);
}

/* A site that says yes when it is asked, and no without a word of when: that is counted. */
static void unexplained_refusals_are_bounded (void **state)
{
    struct fixture *f = *state;
    simple (f, COALLOC_EV_BEGIN);
    /* After each the next choice is without that site, and finds nothing: which is not counted. */
    for (uint32_t i = 0; i + 1 < 2 * policy.tries_max; i++)
        refused_once (f, 0);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_int_equal (f->record->outcome, COALLOC_REFUSED);
    assert_non_null (strstr (f->record->reason.text, "no room"));
}

static void explained_refusals_are_not_counted (void **state)
{
    struct fixture *f = *state;
    simple (f, COALLOC_EV_BEGIN);
    for (uint32_t i = 0; i < 5 * policy.tries_max; i++)
        refused_once (f, f->now.wall + 100 * SEC);
    assert_int_equal (f->record->phase, COALLOC_QUERY);
    queried (f);
    assert_int_equal (f->record->phase, COALLOC_PREPARE);
}

/* Offers of both parts at alpha, which has room for `procs` in all. */
static void queried_small (struct fixture *f, const struct choose_interval *starts, uint32_t procs,
                           bool complete)
{
    static const struct choose_part parts[] = {{"left", 0, 60 * SEC, 0}, {"right", 0, 60 * SEC, 0}};
    struct choose_offer offers[2];
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2};
    struct coalloc_event event = {.kind = COALLOC_EV_QUERIED};
    for (uint32_t p = 0; p < 2; p++)
        offers[p] = (struct choose_offer){.part = p,
                                          .walltime = 60 * SEC,
                                          .procs = 1,
                                          .site_procs = procs,
                                          .not_before = TIME_US_NONE,
                                          .starts = starts,
                                          .start_count = starts ? 1 : 0};
    event.u.queried.problem = &problem;
    event.u.queried.site_name = names;
    event.u.queried.complete = complete;
    step (f, &event);
}

/* It would fit later: it is kept, for as long as its own bounds allow. */
static void no_common_slot_is_waited_for (void **state)
{
    struct fixture *f = *state;
    simple (f, COALLOC_EV_BEGIN);
    f->record->not_after = f->now.wall + 3600 * SEC;
    for (uint32_t i = 0; i < 5 * policy.tries_max; i++) {
        queried_small (f, NULL, 2, true);
        assert_int_equal (f->record->phase, COALLOC_BACKOFF);
        assert_string_equal (f->record->reason.code, "NoCommonSlot");
        assert_non_null (strstr (f->record->reason.text, "left at no time in the horizon"));
        later (f, 61 * SEC);
        simple (f, COALLOC_EV_TICK);
        assert_int_equal (f->record->phase, COALLOC_QUERY);
    }
    later (f, 3600 * SEC);
    queried_small (f, NULL, 2, true);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_int_equal (f->record->outcome, COALLOC_REFUSED);
}

/* Each fits there, and both never: that is known when all have answered. */
static void what_is_never_possible_is_refused (void **state)
{
    struct fixture *f = *state;
    simple (f, COALLOC_EV_BEGIN);
    queried_small (f, whenever, 1, false); /* another site may take one of them */
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
    later (f, 61 * SEC);
    simple (f, COALLOC_EV_TICK);
    queried_small (f, whenever, 1, true);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_string_equal (f->record->reason.code, "Infeasible");
}

static void unfunded_is_final (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    struct coalloc_event event = for_part (f, COALLOC_EV_PREPARED, 0);
    event.u.prepared.unfunded = true;
    step (f, &event);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    answered (f, COALLOC_EV_ABORTED, 1, false);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_int_equal (f->record->outcome, COALLOC_REFUSED);
}

static void silence_is_asked_again_then_taken_as_no (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    prepared (f, 0, true, 0);
    struct coalloc_event silent = for_part (f, COALLOC_EV_NO_ANSWER, 1);
    step (f, &silent);
    assert_int_equal (f->record->phase, COALLOC_PREPARE);
    later (f, SEC);
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 1); /* the same attempt again */
    assert_int_equal (f->actions.action[0].attempt, 1);
    later (f, policy.prepare_timeout);
    step (f, &silent);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_ABORT), 2);
    answered (f, COALLOC_EV_ABORTED, 0, false);
    /* the dead one's abort is not waited for beyond its lease */
    later (f, policy.lease + policy.lease_margin);
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
}

static void no_decision_after_the_lease (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    prepared (f, 0, true, 0);
    f->now.mono += policy.lease - policy.lease_margin; /* the wall clock did not move: no matter */
    f->record->part[1].sent_mono = f->now.mono;
    prepared (f, 1, true, 0);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_DECIDE), 0);
    assert_string_equal (f->record->reason.code, "LeaseEnded");
}

static void no_decision_after_the_slot (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    prepared (f, 0, true, 0);
    f->now.wall = f->record->slot_start;
    prepared (f, 1, true, 0);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
}

/* ---- DECIDE, COMMIT */

static void the_log_may_decide_abort (void **state)
{
    struct fixture *f = *state;
    to_prepare (f);
    prepared (f, 0, true, 0);
    prepared (f, 1, true, 0);
    decided (f, DECISION_ABORT);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_ABORT), 2);
}

static void expired_prepares_the_same_slot_anew (void **state)
{
    struct fixture *f = *state;
    to_commit (f);
    time_us slot = f->record->slot_start;
    committed (f, 0, COALLOC_FIRM);
    committed (f, 1, COALLOC_EXPIRED);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
    assert_true (f->actions.save);
    assert_int_equal (asked (f, COALLOC_DO_PREPARE), 1);
    assert_int_equal (f->actions.action[0].attempt, 2);
    assert_int_equal (f->record->slot_start, slot);
    prepared (f, 1, true, 0);
    assert_int_equal (asked (f, COALLOC_DO_COMMIT), 1);
    committed (f, 1, COALLOC_FIRM);
    assert_int_equal (f->record->phase, COALLOC_READY);
}

static void expired_twice_releases_the_firm (void **state)
{
    struct fixture *f = *state;
    to_commit (f);
    committed (f, 0, COALLOC_FIRM);
    committed (f, 1, COALLOC_EXPIRED);
    prepared (f, 1, true, 0);
    committed (f, 1, COALLOC_UNKNOWN);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (f->actions.action[0].part, 0);
    /* a firm part must be acknowledged, however long it takes */
    later (f, 3600 * SEC);
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    answered (f, COALLOC_EV_RELEASED, 0, true);
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
}

static void prepared_anew_but_refused (void **state)
{
    struct fixture *f = *state;
    to_commit (f);
    committed (f, 0, COALLOC_FIRM);
    committed (f, 1, COALLOC_EXPIRED);
    prepared (f, 1, false, 0);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
}

static void commit_is_repeated_until_acknowledged (void **state)
{
    struct fixture *f = *state;
    to_commit (f);
    committed (f, 0, COALLOC_FIRM);
    for (int i = 0; i < 5; i++) {
        struct coalloc_event silent = for_part (f, COALLOC_EV_NO_ANSWER, 1);
        step (f, &silent);
        assert_true (f->actions.wake <= policy.resend_max);
        later (f, f->actions.wake);
        simple (f, COALLOC_EV_TICK);
        assert_int_equal (asked (f, COALLOC_DO_COMMIT), 1);
    }
    later (f, policy.barrier_timeout + policy.lead);
    simple (f, COALLOC_EV_TICK); /* partition during COMMIT: the slot has gone by */
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (asked (f, COALLOC_DO_ABORT), 1);
    answered (f, COALLOC_EV_ABORTED, 1, true); /* it was firm after all */
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (f->actions.action[0].part, 1);
    answered (f, COALLOC_EV_RELEASED, 0, true);
    answered (f, COALLOC_EV_RELEASED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
}

/* ---- READY, START, LIVE */

static void barrier_waits_and_times_out (void **state)
{
    struct fixture *f = *state;
    to_ready (f);
    answered (f, COALLOC_EV_READIED, 0, true);
    struct coalloc_event no = for_part (f, COALLOC_EV_READIED, 1);
    strcpy (no.reason.text, "still staging");
    step (f, &no);
    assert_int_equal (f->record->phase, COALLOC_READY);
    later (f, f->actions.wake);
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (asked (f, COALLOC_DO_READY), 1);
    later (f, policy.barrier_timeout + policy.lead);
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 2);
    assert_string_equal (f->record->reason.code, "NoShow");
    assert_non_null (strstr (f->record->reason.text, "right at beta: still staging"));
}

static void barrier_opens_before_the_slot (void **state)
{
    struct fixture *f = *state;
    f->record->not_before = f->now.wall + 1000 * SEC;
    to_ready (f);
    assert_int_equal (asked (f, COALLOC_DO_READY), 0);
    assert_int_equal (f->actions.wake, (1000 * SEC - policy.lead) / 2);
    /* Looked after meanwhile: what is ready then is asked again at the barrier. */
    for (uint32_t looks = 1; f->now.wall < f->record->slot_start - policy.lead; looks++) {
        assert_true (looks < 12);
        later (f, f->actions.wake);
        simple (f, COALLOC_EV_TICK);
        assert_int_equal (asked (f, COALLOC_DO_READY), 2);
        if (f->now.wall < f->record->slot_start - policy.lead) {
            answered (f, COALLOC_EV_READIED, 0, true);
            answered (f, COALLOC_EV_READIED, 1, true);
        }
        assert_int_equal (f->record->phase, COALLOC_READY);
    }
    answered (f, COALLOC_EV_READIED, 0, true);
    answered (f, COALLOC_EV_READIED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_START);
}

static void a_clock_that_steps_opens_the_barrier (void **state)
{
    struct fixture *f = *state;
    f->record->not_before = f->now.wall + 1000 * SEC;
    to_ready (f);
    f->now.wall += 1000 * SEC;
    simple (f, COALLOC_EV_TICK);
    assert_int_equal (asked (f, COALLOC_DO_READY), 2);
}

static void a_late_barrier_moves_the_start (void **state)
{
    struct fixture *f = *state;
    to_ready (f);
    later (f, 10 * SEC);
    answered (f, COALLOC_EV_READIED, 0, true);
    answered (f, COALLOC_EV_READIED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_START);
    assert_int_equal (f->record->start_at, f->now.wall + policy.start_margin);
}

static void start_refused_before_the_moment_tries_again (void **state)
{
    struct fixture *f = *state;
    to_start (f);
    answered (f, COALLOC_EV_STARTED, 0, true);
    answered (f, COALLOC_EV_STARTED, 1, false);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (f->record->outcome, COALLOC_OPEN);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 2);
}

static void start_refused_when_one_ran_fails_the_group (void **state)
{
    struct fixture *f = *state;
    to_start (f);
    answered (f, COALLOC_EV_STARTED, 0, true);
    struct coalloc_event running = for_part (f, COALLOC_EV_RUNNING, 0);
    step (f, &running);
    assert_true (f->record->ran);
    answered (f, COALLOC_EV_STARTED, 1, false);
    assert_int_equal (f->record->outcome, COALLOC_FAILED);
    answered (f, COALLOC_EV_RELEASED, 0, true);
    answered (f, COALLOC_EV_RELEASED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
}

static void a_failed_part_ends_the_other (void **state)
{
    struct fixture *f = *state;
    to_live (f);
    part_ended (f, 0, COALLOC_FAILED, false);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (f->actions.action[0].part, 1);
    assert_non_null (strstr (f->record->reason.text, "component left at"));
    part_ended (f, 1, COALLOC_COMPLETED, false); /* it ended by itself before it was asked to */
    answered (f, COALLOC_EV_RELEASED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_int_equal (f->record->outcome, COALLOC_FAILED);
}

static void a_failed_part_lets_the_other_end (void **state)
{
    struct fixture *f = *state;
    to_live (f);
    f->now.goes_on = true;
    part_ended (f, 0, COALLOC_FAILED, false);
    assert_int_equal (f->record->phase, COALLOC_LIVE);
    part_ended (f, 1, COALLOC_COMPLETED, false);
    assert_int_equal (f->record->outcome, COALLOC_FAILED);
}

static void a_lost_part_releases_the_other (void **state)
{
    struct fixture *f = *state;
    to_live (f);
    part_ended (f, 0, COALLOC_CANCELLED, true);
    assert_int_equal (f->record->phase, COALLOC_UNDO);
    assert_int_equal (asked (f, COALLOC_DO_RELEASE), 1);
    assert_int_equal (f->actions.action[0].part, 1);
    answered (f, COALLOC_EV_RELEASED, 1, true);
    assert_int_equal (f->record->outcome, COALLOC_CANCELLED);
}
/* ---- query results, cancel */

static void query_results (void **state)
{
    struct fixture *f = *state;
    struct coalloc_event event = {.kind = COALLOC_EV_QUERIED};
    simple (f, COALLOC_EV_BEGIN);
    event.u.queried.found = COALLOC_QUERY_SITE_DOWN;
    strcpy (event.reason.code, "SiteDown");
    step (f, &event);
    assert_int_equal (f->record->phase, COALLOC_BACKOFF);
    assert_int_equal (f->record->tries, 0); /* does not count */
    assert_string_equal (f->record->reason.code, "SiteDown");
    later (f, policy.wait_site_down);
    simple (f, COALLOC_EV_TICK);
    event.u.queried.found = COALLOC_QUERY_NEVER;
    step (f, &event);
    assert_int_equal (f->record->outcome, COALLOC_REFUSED);
}

static void expired_job_is_refused (void **state)
{
    struct fixture *f = *state;
    f->record->expires = f->now.wall + SEC;
    simple (f, COALLOC_EV_BEGIN);
    later (f, 2 * SEC);
    queried (f);
    assert_int_equal (f->record->outcome, COALLOC_REFUSED);
    assert_string_equal (f->record->reason.code, "Expired");
}

static void cancel_in (struct fixture *f, enum coalloc_phase phase)
{
    struct coalloc_event cancel = {.kind = COALLOC_EV_CANCEL};
    switch (phase) {
    case COALLOC_QUERY:
        simple (f, COALLOC_EV_BEGIN);
        break;
    case COALLOC_PREPARE:
        to_prepare (f);
        break;
    case COALLOC_DECIDE:
        to_prepare (f);
        prepared (f, 0, true, 0);
        prepared (f, 1, true, 0);
        break;
    case COALLOC_COMMIT:
        to_commit (f);
        break;
    case COALLOC_READY:
        to_ready (f);
        break;
    case COALLOC_START:
        to_start (f);
        break;
    default:
        to_live (f);
        break;
    }
    assert_int_equal (f->record->phase, phase);
    step (f, &cancel);
    assert_true (f->actions.save);
    if (phase == COALLOC_DECIDE) {
        assert_int_equal (f->record->phase, COALLOC_DECIDE);
        decided (f, DECISION_COMMIT); /* even so */
    }
    for (uint32_t p = 0; p < 2; p++) {
        if (f->record->part[p].state == PART_ABORTING)
            answered (f, COALLOC_EV_ABORTED, p, false);
        if (f->record->part[p].state == PART_RELEASING)
            answered (f, COALLOC_EV_RELEASED, p, true);
    }
    assert_int_equal (f->record->phase, COALLOC_ENDED);
    assert_int_equal (f->record->outcome, COALLOC_CANCELLED);
}

static void cancel_at_any_state (void **state)
{
    static const enum coalloc_phase phases[] = {COALLOC_QUERY,  COALLOC_PREPARE, COALLOC_DECIDE,
                                                COALLOC_COMMIT, COALLOC_READY,   COALLOC_START,
                                                COALLOC_LIVE};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        struct fixture *f = *state;
        cancel_in (f, phases[i]);
        teardown (state);
        setup (state);
    }
}

static void bad_events (void **state)
{
    struct fixture *f = *state;
    struct coalloc_event event = {.kind = COALLOC_EV_PREPARED, .part = 2};
    assert_int_equal (coalloc_step (f->record, &event, &f->now, &f->actions, NULL), ERR_INVALID);
    event.kind = COALLOC_EV_BEGIN;
    step (f, &event);
    assert_int_equal (coalloc_step (f->record, &event, &f->now, &f->actions, NULL), ERR_INVALID);
    event.kind = 99;
    assert_int_equal (coalloc_step (f->record, &event, &f->now, &f->actions, NULL), ERR_INVALID);
    assert_null (coalloc_create (0, NULL));
    assert_null (coalloc_create (COALLOC_PARTS_MAX + 1, NULL));
}

static void backoff_is_full_jitter_and_ages (void **state)
{
    duration_us seen_max = 0;
    (void)state;
    for (uint64_t random = 0; random < 100000; random += 7) {
        duration_us wait = coalloc_backoff (1000, 16000, 4, 0, 60 * SEC, random);
        assert_true (wait >= 0 && wait < 8000);
        seen_max = wait > seen_max ? wait : seen_max;
    }
    assert_true (seen_max > 7900);
    assert_true (coalloc_backoff (1000, 16000, 40, 0, 60 * SEC, UINT64_MAX) < 16000);
    /* three age units: a quarter of the ceiling */
    for (uint64_t random = 0; random < 100000; random += 7)
        assert_true (coalloc_backoff (1000, 16000, 4, 180 * SEC, 60 * SEC, random) < 2000);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (straight_to_the_end),
        TEST (repeated_answers_change_nothing),
        TEST (no_aborts_and_its_hint_feeds_the_next_choice),
        TEST (unexplained_refusals_are_bounded),
        TEST (explained_refusals_are_not_counted),
        TEST (no_common_slot_is_waited_for),
        TEST (what_is_never_possible_is_refused),
        TEST (unfunded_is_final),
        TEST (silence_is_asked_again_then_taken_as_no),
        TEST (no_decision_after_the_lease),
        TEST (no_decision_after_the_slot),
        TEST (the_log_may_decide_abort),
        TEST (expired_prepares_the_same_slot_anew),
        TEST (expired_twice_releases_the_firm),
        TEST (prepared_anew_but_refused),
        TEST (commit_is_repeated_until_acknowledged),
        TEST (barrier_waits_and_times_out),
        TEST (barrier_opens_before_the_slot),
        TEST (a_late_barrier_moves_the_start),
        TEST (start_refused_before_the_moment_tries_again),
        TEST (start_refused_when_one_ran_fails_the_group),
        TEST (a_failed_part_ends_the_other),
        TEST (a_failed_part_lets_the_other_end),
        TEST (a_lost_part_releases_the_other),
        TEST (query_results),
        TEST (expired_job_is_refused),
        TEST (cancel_at_any_state),
        TEST (bad_events),
        cmocka_unit_test (backoff_is_full_jitter_and_ages),
        TEST (a_clock_that_steps_opens_the_barrier),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
