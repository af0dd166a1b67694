/* coalloc_case: a co-allocation of two parts for the tests of meta/core/coalloc, brought to each of its phases by the answers of
 * its sites. */
#ifndef TESTS_UNIT_META_COALLOC_CASE_H
#define TESTS_UNIT_META_COALLOC_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "meta/core/coalloc.h"

#define SEC US_PER_S

static const struct coalloc_policy policy = {
    .lease = 30 * SEC,
    .lease_margin = SEC,
    .lead = 2 * SEC,
    .start_margin = SEC / 4,
    .barrier_timeout = 60 * SEC,
    .prepare_timeout = 10 * SEC,
    .backoff_max = 10 * SEC,
    .wait_site_down = 4 * SEC,
    .wait_slot = 60 * SEC,
    .resend_first = SEC / 10,
    .resend_max = 5 * SEC,
    .age_unit = 60 * SEC,
    .tries_max = 3,
    .reprepares_max = 1,
};

struct fixture {
    struct coalloc_record *record;
    struct coalloc_now now;
    struct coalloc_actions actions;
    uint8_t next_txn;
};

static const struct choose_interval whenever[] = {{0, INT64_MAX / 2}};
static const char *const names[] = {"alpha", "beta"};

static inline int setup (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    f->record = coalloc_create (2, NULL);
    f->now = (struct coalloc_now){1000 * SEC, 50 * SEC, 12345, &policy, false, false};
    f->record->created = f->now.wall;
    strcpy (f->record->part[0].name, "left");
    strcpy (f->record->part[1].name, "right");
    f->record->part[0].walltime = f->record->part[1].walltime = 60 * SEC;
    *state = f;
    return 0;
}

static inline int teardown (void **state)
{
    struct fixture *f = *state;
    coalloc_destroy (f->record);
    free (f);
    return 0;
}

static inline void step (struct fixture *f, struct coalloc_event *event)
{
    struct err err;
    assert_int_equal (coalloc_step (f->record, event, &f->now, &f->actions, &err), 0);
}

static inline void simple (struct fixture *f, enum coalloc_event_kind kind)
{
    struct coalloc_event event = {.kind = kind};
    step (f, &event);
}

static inline void later (struct fixture *f, duration_us by)
{
    f->now.wall += by;
    f->now.mono += by;
}

/* How many actions of a kind the last step asked for. */
static inline uint32_t asked (const struct fixture *f, enum coalloc_action_kind kind)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < f->actions.count; a++)
        n += f->actions.action[a].kind == kind;
    return n;
}

static inline struct coalloc_event for_part (const struct fixture *f, enum coalloc_event_kind kind,
                                             uint32_t part)
{
    return (struct coalloc_event){.kind = kind,
                                  .part = part,
                                  .attempt = f->record->part[part].attempt,
                                  .transaction = f->record->transaction};
}

static inline void queried (struct fixture *f)
{
    static const struct choose_part parts[] = {{"left", 0, 60 * SEC, 0}, {"right", 0, 60 * SEC, 0}};
    struct choose_offer offers[2];
    struct choose_problem problem = {
        .part = parts, .part_count = 2, .offer = offers, .offer_count = 2};
    struct coalloc_event event = {.kind = COALLOC_EV_QUERIED};
    for (uint32_t p = 0; p < 2; p++)
        offers[p] = (struct choose_offer){.part = p,
                                          .site = p,
                                          .procs = 1,
                                          .price = 10,
                                          .not_before = TIME_US_NONE,
                                          .starts = whenever,
                                          .start_count = 1};
    event.u.queried.problem = &problem;
    event.u.queried.site_name = names;
    memset (event.u.queried.transaction, ++f->next_txn, 16);
    memset (event.u.queried.start_token, 0x55, COALLOC_TOKEN_LEN);
    step (f, &event);
}

static inline void prepared (struct fixture *f, uint32_t part, bool granted, time_us next_feasible)
{
    struct coalloc_event event = for_part (f, COALLOC_EV_PREPARED, part);
    event.u.prepared.granted = granted;
    event.u.prepared.next_feasible = next_feasible;
    event.u.prepared.lease_left = policy.lease;
    strcpy (event.reason.text, "no room");
    step (f, &event);
}

static inline void decided (struct fixture *f, enum decision decision)
{
    struct coalloc_event event = {.kind = COALLOC_EV_DECIDED,
                                  .transaction = f->record->transaction};
    event.u.decided.decision = decision;
    step (f, &event);
}

static inline void committed (struct fixture *f, uint32_t part, enum coalloc_commit outcome)
{
    struct coalloc_event event = for_part (f, COALLOC_EV_COMMITTED, part);
    event.u.committed.outcome = outcome;
    step (f, &event);
}

static inline void answered (struct fixture *f, enum coalloc_event_kind kind, uint32_t part,
                             bool yes)
{
    struct coalloc_event event = for_part (f, kind, part);
    if (kind == COALLOC_EV_READIED)
        event.u.readied.yes = yes;
    else if (kind == COALLOC_EV_STARTED)
        event.u.started.yes = yes;
    else if (kind == COALLOC_EV_ABORTED)
        event.u.aborted.refused_firm = yes;
    step (f, &event);
}

static inline void to_prepare (struct fixture *f)
{
    simple (f, COALLOC_EV_BEGIN);
    assert_int_equal (asked (f, COALLOC_DO_QUERY), 1);
    queried (f);
    assert_int_equal (f->record->phase, COALLOC_PREPARE);
}

static inline void to_commit (struct fixture *f)
{
    to_prepare (f);
    prepared (f, 0, true, 0);
    prepared (f, 1, true, 0);
    assert_int_equal (f->record->phase, COALLOC_DECIDE);
    decided (f, DECISION_COMMIT);
    assert_int_equal (f->record->phase, COALLOC_COMMIT);
}

static inline void to_ready (struct fixture *f)
{
    to_commit (f);
    committed (f, 0, COALLOC_FIRM);
    committed (f, 1, COALLOC_FIRM);
    assert_int_equal (f->record->phase, COALLOC_READY);
}

static inline void to_start (struct fixture *f)
{
    to_ready (f);
    answered (f, COALLOC_EV_READIED, 0, true);
    answered (f, COALLOC_EV_READIED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_START);
}

static inline void to_live (struct fixture *f)
{
    to_start (f);
    answered (f, COALLOC_EV_STARTED, 0, true);
    answered (f, COALLOC_EV_STARTED, 1, true);
    assert_int_equal (f->record->phase, COALLOC_LIVE);
}

static inline void part_ended (struct fixture *f, uint32_t part, enum coalloc_outcome outcome,
                               bool lost)
{
    struct coalloc_event event = for_part (f, COALLOC_EV_PART_ENDED, part);
    event.u.ended.outcome = outcome;
    event.u.ended.lost = lost;
    step (f, &event);
}

#endif
