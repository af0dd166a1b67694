#include "meta/core/coalloc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step {
    struct coalloc_record *record;
    struct coalloc_event *event;
    const struct coalloc_now *now;
    struct coalloc_actions *actions;
};

/* ---- records */

struct coalloc_record *coalloc_create (uint32_t part_count, struct err *err)
{
    if (part_count == 0 || part_count > COALLOC_PARTS_MAX) {
        err_set (err, ERR_LIMIT, "coalloc: %u components, allowed are 1 to %d", part_count,
                 COALLOC_PARTS_MAX);
        return NULL;
    }
    struct coalloc_record *record = calloc (1, sizeof *record);
    struct coalloc_part *part = calloc (part_count, sizeof *part);
    if (!record || !part) {
        free (record);
        free (part);
        err_set (err, ERR_NOMEM, "coalloc: no memory for %u components", part_count);
        return NULL;
    }
    record->part = part;
    record->part_count = part_count;
    return record;
}

struct coalloc_record *coalloc_copy (const struct coalloc_record *record)
{
    struct coalloc_record *copy = coalloc_create (record->part_count, NULL);
    if (!copy)
        return NULL;
    struct coalloc_part *part = copy->part;
    *copy = *record;
    copy->part = part;
    memcpy (part, record->part, record->part_count * sizeof *part);
    return copy;
}

void coalloc_destroy (struct coalloc_record *record)
{
    if (!record)
        return;
    free (record->part);
    free (record);
}

/* ---- names */

const char *coalloc_phase_name (enum coalloc_phase phase)
{
    static const char *const name[] = {"NEW",    "QUERY", "BACKOFF", "PREPARE", "DECIDE", "COMMIT",
                                       "READY", "START", "LIVE",    "UNDO",    "ENDED"};
    return (unsigned)phase < sizeof name / sizeof *name ? name[phase] : "?";
}

const char *part_state_name (enum part_state state)
{
    static const char *const name[] = {"NONE",  "PREPARING", "PREPARED", "REFUSED",
                                       "COMMITTING", "FIRM", "READY",    "STARTING",
                                       "STARTED",    "ENDED", "ABORTING", "RELEASING",
                                       "GONE"};
    return (unsigned)state < sizeof name / sizeof *name ? name[state] : "?";
}

const char *coalloc_event_name (enum coalloc_event_kind kind)
{
    static const char *const name[] = {"?",        "BEGIN",    "RECOVER",   "TICK",
                                       "QUERIED",  "PREPARED", "DECIDED",   "COMMITTED",
                                       "ABORTED",  "READIED",  "STARTED",   "RELEASED",
                                       "NO_ANSWER", "RUNNING", "PART_ENDED", "CANCEL", "SITE_LOST"};
    return (unsigned)kind < sizeof name / sizeof *name ? name[kind] : "?";
}

/* ---- small things */

duration_us coalloc_backoff (duration_us base, duration_us max, uint32_t tries, duration_us age,
                             duration_us age_unit, uint64_t random)
{
    duration_us ceiling = base > 0 ? base : 1;
    for (uint32_t i = 1; i < tries && ceiling < max; i++)
        ceiling *= 2;
    if (ceiling > max)
        ceiling = max;
    if (age > 0 && age_unit > 0)
        ceiling = ceiling / (1 + age / age_unit);
    if (ceiling < 1)
        ceiling = 1;
    return (duration_us)(random % (uint64_t)ceiling);
}

static void reason_set (struct coalloc_reason *reason, const char *code, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static void reason_set (struct coalloc_reason *reason, const char *code, const char *fmt, ...)
{
    struct coalloc_reason fresh;
    va_list ap;
    snprintf (fresh.code, sizeof fresh.code, "%s", code);
    va_start (ap, fmt);
    vsnprintf (fresh.text, sizeof fresh.text, fmt, ap);
    va_end (ap);
    *reason = fresh; /* the arguments may point into the old one */
}

static void act (struct step *s, enum coalloc_action_kind kind, uint32_t part)
{
    struct coalloc_actions *actions = s->actions;
    assert (actions->count < COALLOC_ACTIONS_MAX);
    struct coalloc_action *action = &actions->action[actions->count++];
    memset (action, 0, sizeof *action);
    action->kind = kind;
    action->part = part;
    if (kind != COALLOC_DO_QUERY && kind != COALLOC_DO_DECIDE)
        action->attempt = s->record->part[part].attempt;
}

static duration_us offset_min (const struct coalloc_record *record)
{
    duration_us min = record->part[0].offset;
    for (uint32_t p = 1; p < record->part_count; p++)
        if (record->part[p].offset < min)
            min = record->part[p].offset;
    return min;
}

/* When the first part starts. */
static time_us slot_first (const struct coalloc_record *record)
{
    return record->slot_start + offset_min (record);
}

static bool all_in (const struct coalloc_record *record, enum part_state state)
{
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state != state)
            return false;
    return true;
}

/* The request that a part in this state waits to see answered; 0: none. */
static enum coalloc_action_kind pending_of (const struct coalloc_record *record,
                                            const struct coalloc_part *part)
{
    switch (part->state) {
    case PART_PREPARING:
        return COALLOC_DO_PREPARE;
    case PART_COMMITTING:
        return COALLOC_DO_COMMIT;
    case PART_FIRM:
        return record->phase == COALLOC_READY ? COALLOC_DO_READY : 0;
    case PART_STARTING:
        return COALLOC_DO_START;
    case PART_ABORTING:
        return COALLOC_DO_ABORT;
    case PART_RELEASING:
        return COALLOC_DO_RELEASE;
    default:
        return 0;
    }
}

/* Puts a part into a state and sends the request that belongs to it. */
static void part_enter (struct step *s, uint32_t p, enum part_state state)
{
    struct coalloc_part *part = &s->record->part[p];
    part->state = state;
    part->resends = 0;
    part->resend_mono = 0;
    part->outstanding = false;
    enum coalloc_action_kind kind = pending_of (s->record, part);
    if (!kind)
        return;
    if (kind == COALLOC_DO_PREPARE)
        part->sent_mono = s->now->mono;
    if (kind == COALLOC_DO_READY) { /* asked when the barrier opens */
        part->resend_mono = s->now->mono;
        return;
    }
    part->outstanding = true;
    act (s, kind, p);
}

static void part_later (struct step *s, struct coalloc_part *part)
{
    duration_us wait = s->now->policy->resend_first;
    for (uint32_t i = 0; i < part->resends && wait < s->now->policy->resend_max; i++)
        wait *= 2;
    if (wait > s->now->policy->resend_max)
        wait = s->now->policy->resend_max;
    part->resends++;
    part->outstanding = false;
    part->resend_mono = s->now->mono + wait;
}

/* ---- ends, retries, undo */

static void end (struct step *s, enum coalloc_outcome outcome)
{
    assert (outcome != COALLOC_OPEN);
    s->record->phase = COALLOC_ENDED;
    s->record->outcome = outcome;
    s->record->wake_mono = 0;
    memset (s->record->start_token, 0, sizeof s->record->start_token);
    s->actions->save = true;
}

static void query_begin (struct step *s)
{
    struct coalloc_record *record = s->record;
    record->phase = COALLOC_QUERY;
    record->decided = false;
    record->wake_mono = 0;
    memset (record->transaction, 0, sizeof record->transaction);
    memset (record->start_token, 0, sizeof record->start_token);
    record->slot_start = 0;
    record->start_at = 0;
    for (uint32_t p = 0; p < record->part_count; p++) {
        record->part[p].state = PART_NONE;
        record->part[p].outstanding = false;
        record->part[p].resend_mono = 0;
        record->part[p].site[0] = '\0';
        record->part[p].attempt = 0;
    }
    act (s, COALLOC_DO_QUERY, 0);
    s->actions->save = true;
}

static void wait_for (struct step *s, duration_us wait)
{
    s->record->phase = COALLOC_BACKOFF;
    s->record->wake_mono = s->now->mono + (wait > 0 ? wait : 1);
    s->actions->save = true;
}

/* Another try at the whole group, unless the attempts are used up. */
static void retry (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_policy *policy = s->now->policy;
    if (record->tries >= policy->tries_max) {
        reason_set (&record->reason, record->reason.code, "no co-reservation in %u tries; last: %s",
                    record->tries, record->reason.text);
        end (s, COALLOC_REFUSED);
        return;
    }
    wait_for (s, coalloc_backoff (record->prepare_rtt, policy->backoff_max, record->tries,
                                  s->now->wall - record->created, policy->age_unit,
                                  s->now->random));
}

static void undo_finish (struct step *s)
{
    struct coalloc_record *record = s->record;
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state == PART_ABORTING || record->part[p].state == PART_RELEASING)
            return;
    if (record->outcome == COALLOC_OPEN)
        retry (s);
    else
        end (s, record->outcome);
}

/* Gives back everything that may be held. A part whose COMMIT may or may not have arrived is
 * aborted first; the site says so if it is firm, and then it is released.
 * outcome COALLOC_OPEN: then try again. record->reason has been set. */
static void undo (struct step *s, enum coalloc_outcome outcome)
{
    struct coalloc_record *record = s->record;
    record->phase = COALLOC_UNDO;
    record->outcome = record->cancel_wanted ? COALLOC_CANCELLED : outcome;
    if (record->outcome == COALLOC_OPEN && record->ran)
        record->outcome = COALLOC_FAILED; /* what ran does not run again */
    /* What was never decided is gone at the latest with its lease: do not wait for the dead. */
    record->wake_mono =
        s->now->mono + s->now->policy->lease + s->now->policy->lease_margin;
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++) {
        switch (record->part[p].state) {
        case PART_PREPARING:
        case PART_PREPARED:
        case PART_COMMITTING:
            part_enter (s, p, PART_ABORTING);
            break;
        case PART_FIRM:
        case PART_READY:
        case PART_STARTING:
        case PART_STARTED:
            part_enter (s, p, PART_RELEASING);
            break;
        case PART_NONE:
        case PART_REFUSED:
            record->part[p].state = PART_GONE;
            break;
        case PART_ENDED:
        case PART_ABORTING:
        case PART_RELEASING:
        case PART_GONE:
            break;
        }
    }
    undo_finish (s);
}

/* ---- QUERY and CHOOSE */

static void prepare_next (struct step *s)
{
    struct coalloc_record *record = s->record;
    uint32_t next = UINT32_MAX;
    for (uint32_t p = 0; p < record->part_count; p++) {
        if (record->part[p].state != PART_NONE)
            continue;
        if (record->tries == 1) {
            part_enter (s, p, PART_PREPARING);
            continue;
        }
        if (next == UINT32_MAX || strcmp (record->part[p].site, record->part[next].site) < 0)
            next = p;
    }
    if (next != UINT32_MAX)
        part_enter (s, next, PART_PREPARING);
}

static void chosen (struct step *s, const struct choose_result *result)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    const struct choose_problem *problem = event->u.queried.problem;
    record->phase = COALLOC_PREPARE;
    record->slot_start = result->start;
    memcpy (record->transaction, event->u.queried.transaction, sizeof record->transaction);
    memcpy (record->start_token, event->u.queried.start_token, sizeof record->start_token);
    reason_set (&record->reason, "Preparing", "asking the sites for a common slot");
    for (uint32_t p = 0; p < record->part_count; p++) {
        struct coalloc_part *part = &record->part[p];
        const struct choose_offer *offer = &problem->offer[result->offer[p]];
        snprintf (part->site, sizeof part->site, "%s", event->u.queried.site_name[offer->site]);
        part->price = offer->price;
        part->shape = offer->shape;
        if (offer->walltime)
            part->walltime = offer->walltime;
        part->attempt = 1;
        part->state = PART_NONE;
        part->ended = COALLOC_OPEN;
        part->hint_site[0] = '\0';
    }
    s->actions->save = true;
    prepare_next (s);
}

static void problem_complete (struct step *s, struct choose_problem *problem)
{
    const struct coalloc_record *record = s->record;
    const struct coalloc_policy *policy = s->now->policy;
    duration_us lead = policy->lead;
    if (record->tries > 1) /* one site after the other needs that much longer */
        lead += record->prepare_rtt * (duration_us)record->part_count;
    problem->now = s->now->wall + lead;
    problem->not_before = record->not_before;
    problem->deadline = record->deadline;
    problem->not_after = record->not_after;
    problem->cost_max = record->cost_max;
    problem->prefer = record->prefer;
    for (uint32_t o = 0; o < problem->offer_count; o++) {
        struct choose_offer *offer = &problem->offer[o];
        const struct coalloc_part *part = &record->part[offer->part];
        offer->not_before = TIME_US_NONE;
        if (part->hint_site[0] &&
            strcmp (part->hint_site, s->event->u.queried.site_name[offer->site]) == 0)
            offer->not_before = part->hint_start;
    }
}

static void on_queried (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    struct choose_result result;
    struct err why;
    if (record->phase != COALLOC_QUERY)
        return;
    if (record->expires && s->now->wall > record->expires) {
        reason_set (&record->reason, "Expired", "the job's time for a first acceptance has passed%s%s",
                    record->reason.text[0] ? "; last: " : "", record->reason.text);
        end (s, COALLOC_REFUSED);
        return;
    }
    if (event->u.queried.found == COALLOC_QUERY_NEVER) {
        record->reason = event->reason;
        end (s, COALLOC_REFUSED);
        return;
    }
    if (event->u.queried.found == COALLOC_QUERY_SITE_DOWN) {
        record->reason = event->reason;
        wait_for (s, s->now->policy->wait_site_down / 2 +
                         (duration_us)(s->now->random %
                                       (uint64_t)(s->now->policy->wait_site_down / 2 + 1)));
        return;
    }
    record->tries++;
    problem_complete (s, event->u.queried.problem);
    err_clear (&why);
    if (choose_group (event->u.queried.problem, &result, &why) == 0) {
        chosen (s, &result);
        return;
    }
    for (uint32_t p = 0; p < record->part_count; p++)
        record->part[p].hint_site[0] = '\0';
    reason_set (&record->reason, "NoCommonSlot", "%s", why.text);
    if (record->prepare_rtt < s->now->policy->resend_first)
        record->prepare_rtt = s->now->policy->resend_first;
    retry (s);
}

/* ---- PREPARE and DECIDE */

static void decide (struct step *s, enum decision proposal)
{
    s->record->phase = COALLOC_DECIDE;
    s->record->decision_outstanding = true;
    s->actions->save = true;
    act (s, COALLOC_DO_DECIDE, 0);
    s->actions->action[s->actions->count - 1].proposal = proposal;
}

/* All said YES: COMMIT only before the earliest lease end, with a margin, and before the slot. */
static void all_prepared (struct step *s)
{
    struct coalloc_record *record = s->record;
    duration_us first_end = INT64_MAX;
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].lease_end_mono < first_end)
            first_end = record->part[p].lease_end_mono;
    if (s->now->mono >= first_end - s->now->policy->lease_margin) {
        reason_set (&record->reason, "LeaseEnded",
                    "the sites' answers took longer than their leases allow");
        undo (s, COALLOC_OPEN);
    } else if (s->now->wall >= slot_first (record)) {
        reason_set (&record->reason, "SlotPassed", "the slot began before every site had answered");
        undo (s, COALLOC_OPEN);
    } else {
        decide (s, DECISION_COMMIT);
    }
}

static void hint_set (struct coalloc_part *part, time_us next_feasible)
{
    memcpy (part->hint_site, part->site, sizeof part->hint_site);
    part->hint_start = next_feasible > 0 ? next_feasible : TIME_US_MAX;
}

static void prepare_refused (struct step *s, struct coalloc_part *part)
{
    const struct coalloc_event *event = s->event;
    struct coalloc_record *record = s->record;
    part->state = PART_REFUSED;
    part->outstanding = false;
    hint_set (part, event->u.prepared.next_feasible);
    if (record->phase == COALLOC_UNDO) { /* a late NO: nothing left to abort there */
        part->state = PART_GONE;
        undo_finish (s);
        return;
    }
    reason_set (&record->reason, event->reason.code[0] ? event->reason.code : "Refused",
                "component %s at %s: %s", part->name, part->site,
                event->reason.text[0] ? event->reason.text : "refused");
    undo (s, event->u.prepared.unfunded ? COALLOC_REFUSED : COALLOC_OPEN);
}

static void on_prepared (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    if (part->state == PART_ABORTING && !event->u.prepared.granted) {
        /* The abort that is under way leaves a tombstone; its answer ends this part. */
        hint_set (part, event->u.prepared.next_feasible);
        return;
    }
    if (part->state != PART_PREPARING)
        return;
    duration_us rtt = s->now->mono - part->sent_mono;
    record->prepare_rtt = record->prepare_rtt ? (7 * record->prepare_rtt + rtt) / 8 : rtt;
    if (!event->u.prepared.granted) {
        prepare_refused (s, part);
        return;
    }
    duration_us lease = s->now->policy->lease;
    if (event->u.prepared.lease_left < lease)
        lease = event->u.prepared.lease_left;
    /* The site counts from receipt, which was not before the first send. */
    part->lease_end_mono = part->sent_mono + lease;
    part->outstanding = false;
    if (event->u.prepared.amount > 0)
        part->price = event->u.prepared.amount;
    if (record->phase == COALLOC_COMMIT) { /* prepared anew after EXPIRED: decided already */
        part_enter (s, (uint32_t)(part - record->part), PART_COMMITTING);
        s->actions->save = true;
        return;
    }
    part->state = PART_PREPARED;
    if (all_in (record, PART_PREPARED))
        all_prepared (s);
    else if (record->tries > 1)
        prepare_next (s);
}

static void on_decided (struct step *s)
{
    struct coalloc_record *record = s->record;
    if (record->phase != COALLOC_DECIDE)
        return;
    record->decision_outstanding = false;
    if (s->event->u.decided.decision != DECISION_COMMIT) {
        if (!record->reason.code[0] || strcmp (record->reason.code, "Preparing") == 0)
            reason_set (&record->reason, "CoordinatorRestarted",
                        "the metascheduler restarted before the decision");
        undo (s, COALLOC_OPEN);
        return;
    }
    record->decided = true;
    if (record->cancel_wanted) {
        undo (s, COALLOC_CANCELLED);
        return;
    }
    record->phase = COALLOC_COMMIT;
    record->resumed = s->now->wall;
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        part_enter (s, p, PART_COMMITTING);
}

/* ---- COMMIT */

static void all_firm (struct step *s)
{
    struct coalloc_record *record = s->record;
    record->phase = COALLOC_READY;
    reason_set (&record->reason, "Reserved", "all components are firm; waiting for their start");
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        part_enter (s, p, PART_FIRM);
}

/* The lease had ended (or the hold is unknown): the same slot anew, or everything again. */
static void commit_lost (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_policy *policy = s->now->policy;
    uint32_t p = (uint32_t)(part - record->part);
    bool ahead = s->now->wall < slot_first (record);
    if (ahead && part->attempt <= policy->reprepares_max) {
        part->attempt++;
        s->actions->save = true;
        part_enter (s, p, PART_PREPARING);
        return;
    }
    part->state = PART_GONE;
    part->outstanding = false;
    reason_set (&record->reason, "LeaseExpired", "component %s at %s: its hold ended before COMMIT",
                part->name, part->site);
    undo (s, COALLOC_OPEN);
}

static void on_committed (struct step *s, struct coalloc_part *part)
{
    if (part->state != PART_COMMITTING)
        return;
    if (s->event->u.committed.outcome != COALLOC_FIRM) {
        commit_lost (s, part);
        return;
    }
    part->state = PART_FIRM;
    part->outstanding = false;
    if (all_in (s->record, PART_FIRM))
        all_firm (s);
}

/* ---- READY and START */

static time_us barrier_open (const struct step *s)
{
    return slot_first (s->record) - s->now->policy->lead;
}

static void on_readied (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    if (record->phase != COALLOC_READY || part->state != PART_FIRM)
        return;
    if (s->event->u.readied.started && !record->ran) {
        record->ran = true;
        s->actions->save = true;
    }
    if (!s->event->u.readied.yes) {
        reason_set (&record->reason, "NotReady", "component %s at %s: %s", part->name, part->site,
                    s->event->reason.text);
        part_later (s, part);
        return;
    }
    part->state = PART_READY;
    part->outstanding = false;
    if (!all_in (record, PART_READY))
        return;
    if (s->now->withhold) { /* asked again until it is there, or the barrier closes */
        part->state = PART_FIRM;
        if (strcmp (record->reason.code, "Licence") != 0)
            s->actions->save = true;
        reason_set (&record->reason, "Licence", "its licences are still used by others");
        part_later (s, part);
        return;
    }
    time_us soonest = s->now->wall + s->now->policy->start_margin - offset_min (record);
    record->start_at = record->slot_start > soonest ? record->slot_start : soonest;
    record->phase = COALLOC_START;
    reason_set (&record->reason, "Starting", "all components are ready");
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        part_enter (s, p, PART_STARTING);
}

static void live_check (struct step *s)
{
    struct coalloc_record *record = s->record;
    enum coalloc_outcome worst = COALLOC_COMPLETED;
    bool ended = true;
    for (uint32_t p = 0; p < record->part_count; p++) {
        const struct coalloc_part *part = &record->part[p];
        if (part->state != PART_STARTED && part->state != PART_ENDED)
            return;
        if (part->state != PART_ENDED)
            ended = false;
        else if (part->ended != COALLOC_COMPLETED)
            worst = COALLOC_FAILED;
    }
    if (record->phase == COALLOC_START) {
        record->phase = COALLOC_LIVE;
        if (strcmp (record->reason.code, "Starting") == 0)
            memset (&record->reason, 0, sizeof record->reason);
        s->actions->save = true;
    }
    if (ended)
        end (s, worst);
}

static void on_started (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    if (part->state != PART_STARTING)
        return;
    part->outstanding = false;
    if (s->event->u.started.yes) {
        part->state = PART_STARTED;
        live_check (s);
        return;
    }
    bool none_ran = !record->ran && s->now->wall < record->start_at + offset_min (record);
    reason_set (&record->reason, "StartRefused", "component %s at %s: %s", part->name, part->site,
                s->event->reason.text);
    undo (s, none_ran ? COALLOC_OPEN : COALLOC_FAILED);
}

/* ---- UNDO */

static void on_aborted (struct step *s, struct coalloc_part *part)
{
    if (part->state != PART_ABORTING)
        return;
    if (s->event->u.aborted.refused_firm) {
        part_enter (s, (uint32_t)(part - s->record->part), PART_RELEASING);
        s->actions->save = true;
        return;
    }
    part->state = PART_GONE;
    part->outstanding = false;
    undo_finish (s);
}

static void on_released (struct step *s, struct coalloc_part *part)
{
    if (part->state != PART_RELEASING)
        return;
    part->state = PART_GONE;
    part->outstanding = false;
    if (s->event->u.released.started && s->record->outcome == COALLOC_OPEN) {
        s->record->ran = true;
        s->record->outcome = COALLOC_FAILED;
    }
    undo_finish (s);
}

/* ---- reports, cancel, silence */

static void on_running (struct step *s)
{
    if (s->record->ran || s->record->phase < COALLOC_START || s->record->phase > COALLOC_LIVE)
        return;
    s->record->ran = true;
    s->actions->save = true;
}

static void on_part_ended (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    bool started = part->state == PART_STARTING || part->state == PART_STARTED;
    bool firm = part->state == PART_FIRM || part->state == PART_READY;
    if (!started && !firm)
        return;
    s->actions->save = true;
    part->outstanding = false;
    if (event->u.ended.outcome != COALLOC_COMPLETED)
        reason_set (&record->reason, event->reason.code[0] ? event->reason.code : "ComponentFailed",
                    "component %s at %s: %s", part->name, part->site, event->reason.text);
    if (firm) { /* taken away before the start: it must not start elsewhere either */
        part->state = PART_GONE;
        undo (s, COALLOC_OPEN);
        return;
    }
    part->state = PART_ENDED;
    part->ended = event->u.ended.outcome;
    if (event->u.ended.lost) {
        undo (s, event->u.ended.outcome == COALLOC_CANCELLED ? COALLOC_CANCELLED : COALLOC_FAILED);
        return;
    }
    live_check (s);
}

static void on_cancel (struct step *s)
{
    struct coalloc_record *record = s->record;
    if (record->phase == COALLOC_ENDED || record->cancel_wanted)
        return;
    record->cancel_wanted = true;
    record->reason = s->event->reason;
    s->actions->save = true;
    switch (record->phase) {
    case COALLOC_NEW:
    case COALLOC_QUERY:
    case COALLOC_BACKOFF:
        end (s, COALLOC_CANCELLED);
        break;
    case COALLOC_DECIDE: /* the log's answer comes first */
        break;
    case COALLOC_UNDO:
        if (record->outcome == COALLOC_OPEN)
            record->outcome = COALLOC_CANCELLED;
        break;
    default:
        undo (s, COALLOC_CANCELLED);
        break;
    }
}

bool coalloc_minds_site (enum part_state state)
{
    return (state >= PART_COMMITTING && state <= PART_STARTED) || state == PART_ABORTING ||
           state == PART_RELEASING;
}

/* What runs elsewhere is ended, what only waited is tried anew; nothing is awaited of that site. */
static void on_site_lost (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    bool undoing = part->state == PART_ABORTING || part->state == PART_RELEASING;
    bool started = part->state == PART_STARTING || part->state == PART_STARTED;
    if (!coalloc_minds_site (part->state)) /* given up when its lease or patience is over */
        return;
    part->state = PART_GONE;
    part->outstanding = false;
    s->actions->save = true;
    if (undoing) {
        undo_finish (s);
        return;
    }
    reason_set (&record->reason, s->event->reason.code, "component %s: %s", part->name,
                s->event->reason.text);
    undo (s, started ? COALLOC_FAILED : COALLOC_OPEN); /* without START it never begins */
}

static bool prepare_overdue (const struct step *s, const struct coalloc_part *part)
{
    return part->state == PART_PREPARING &&
           s->now->mono >= part->sent_mono + s->now->policy->prepare_timeout;
}

static void prepare_gave_up (struct step *s, struct coalloc_part *part)
{
    reason_set (&s->record->reason, "SiteDown", "component %s: site %s did not answer PREPARE",
                part->name, part->site);
    hint_set (part, 0);
    undo (s, COALLOC_OPEN);
}

static void on_no_answer (struct step *s, struct coalloc_part *part)
{
    if (!pending_of (s->record, part) || !part->outstanding)
        return;
    if (prepare_overdue (s, part))
        prepare_gave_up (s, part);
    else
        part_later (s, part);
}

/* ---- time */

/* A no-show releases every site and is counted against the late party (its name is the reason). */
static void no_show (struct step *s, enum coalloc_outcome outcome, const char *what)
{
    struct coalloc_record *record = s->record;
    for (uint32_t p = 0; p < record->part_count; p++) {
        const struct coalloc_part *part = &record->part[p];
        if (part->state == PART_COMMITTING || part->state == PART_PREPARING ||
            part->state == PART_FIRM || part->state == PART_STARTING) {
            if (strcmp (record->reason.code, "Licence") == 0)
                break;
            if (strcmp (record->reason.code, "NotReady") == 0)
                reason_set (&record->reason, "NoShow", "%s", record->reason.text);
            else
                reason_set (&record->reason, "NoShow", "component %s: site %s did not answer %s",
                            part->name, part->site, what);
            break;
        }
    }
    undo (s, outcome);
}

/* When COMMIT and the barrier are too late. Who comes to it after the slot's start finds out first
 * what runs already. */
static time_us late_at (const struct step *s)
{
    time_us from = slot_first (s->record);
    if (s->record->resumed > from)
        from = s->record->resumed;
    return from + s->now->policy->barrier_timeout;
}

/* Returns true when a deadline of the phase passed and the phase was left. */
static bool deadlines_check (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_now *now = s->now;
    time_us late = late_at (s);
    switch (record->phase) {
    case COALLOC_BACKOFF:
        if (now->mono < record->wake_mono)
            return false;
        query_begin (s);
        return true;
    case COALLOC_PREPARE:
        for (uint32_t p = 0; p < record->part_count; p++) {
            if (prepare_overdue (s, &record->part[p])) {
                prepare_gave_up (s, &record->part[p]);
                return true;
            }
        }
        return false;
    case COALLOC_COMMIT:
        if (now->wall < late)
            return false;
        no_show (s, COALLOC_OPEN, "COMMIT");
        return true;
    case COALLOC_READY:
        if (now->wall < late)
            return false;
        no_show (s, COALLOC_OPEN, "READY");
        return true;
    case COALLOC_START:
        if (now->wall < record->start_at + offset_min (record) + now->policy->barrier_timeout)
            return false;
        no_show (s, COALLOC_FAILED, "START");
        return true;
    case COALLOC_UNDO:
        if (record->decided || now->mono < record->wake_mono)
            return false;
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_ABORTING)
                record->part[p].state = PART_GONE; /* its lease has ended */
        undo_finish (s);
        return true;
    default:
        return false;
    }
}

static void resend_due (struct step *s)
{
    struct coalloc_record *record = s->record;
    for (uint32_t p = 0; p < record->part_count; p++) {
        struct coalloc_part *part = &record->part[p];
        enum coalloc_action_kind kind = pending_of (record, part);
        if (!kind || part->outstanding || part->resend_mono > s->now->mono)
            continue;
        if (kind == COALLOC_DO_READY && s->now->wall < barrier_open (s))
            continue;
        part->outstanding = true;
        act (s, kind, p);
    }
}

static void on_recover (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_now *now = s->now;
    record->prepare_rtt = 0;
    record->resumed = now->wall;
    for (uint32_t p = 0; p < record->part_count; p++) {
        struct coalloc_part *part = &record->part[p];
        part->outstanding = false;
        part->resends = 0;
        part->resend_mono = now->mono;
        part->sent_mono = now->mono;
        part->lease_end_mono = 0;
    }
    switch (record->phase) {
    case COALLOC_NEW:
    case COALLOC_QUERY:
    case COALLOC_BACKOFF:
        query_begin (s);
        break;
    case COALLOC_PREPARE:
    case COALLOC_DECIDE:
        /* No COMMIT record means abort; sends after the last save are aborted too. */
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_NONE)
                record->part[p].state = PART_PREPARING;
        decide (s, DECISION_ABORT);
        break;
    case COALLOC_READY:
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_READY)
                record->part[p].state = PART_FIRM;
        break;
    case COALLOC_UNDO:
        record->wake_mono = now->mono + now->policy->lease + now->policy->lease_margin;
        break;
    default:
        break;
    }
}

static duration_us until (time_us at, time_us now)
{
    return at > now ? at - now : 0;
}

static duration_us wake_phase (const struct step *s)
{
    const struct coalloc_record *record = s->record;
    const struct coalloc_now *now = s->now;
    duration_us barrier = now->policy->barrier_timeout;
    switch (record->phase) {
    case COALLOC_BACKOFF:
        return until (record->wake_mono, now->mono);
    case COALLOC_UNDO:
        return record->decided ? INT64_MAX : until (record->wake_mono, now->mono);
    case COALLOC_COMMIT:
        return until (late_at (s), now->wall);
    case COALLOC_READY:
        if (now->wall < barrier_open (s))
            return until (barrier_open (s), now->wall);
        return until (late_at (s), now->wall);
    case COALLOC_START:
        return until (record->start_at + offset_min (record) + barrier, now->wall);
    default:
        return INT64_MAX;
    }
}

static void wake_set (struct step *s)
{
    const struct coalloc_record *record = s->record;
    duration_us wake = wake_phase (s);
    bool closed = record->phase == COALLOC_READY && s->now->wall < barrier_open (s);
    for (uint32_t p = 0; p < record->part_count && !closed; p++) {
        const struct coalloc_part *part = &record->part[p];
        if (pending_of (record, part) && !part->outstanding) {
            duration_us wait = until (part->resend_mono, s->now->mono);
            wake = wait < wake ? wait : wake;
        }
        if (part->state == PART_PREPARING && record->phase == COALLOC_PREPARE) {
            duration_us wait =
                until (part->sent_mono + s->now->policy->prepare_timeout, s->now->mono);
            wake = wait < wake ? wait : wake;
        }
    }
    s->actions->wake = wake;
}

/* ---- the step */

static bool names_part (enum coalloc_event_kind kind)
{
    switch (kind) {
    case COALLOC_EV_PREPARED:
    case COALLOC_EV_COMMITTED:
    case COALLOC_EV_ABORTED:
    case COALLOC_EV_READIED:
    case COALLOC_EV_STARTED:
    case COALLOC_EV_RELEASED:
    case COALLOC_EV_NO_ANSWER:
    case COALLOC_EV_RUNNING:
    case COALLOC_EV_PART_ENDED:
    case COALLOC_EV_SITE_LOST:
        return true;
    default:
        return false;
    }
}

static bool is_present (const struct coalloc_record *record, const struct coalloc_event *event)
{
    if (event->transaction &&
        memcmp (event->transaction, record->transaction, sizeof record->transaction) != 0)
        return false;
    if (!names_part (event->kind))
        return true;
    if (event->kind == COALLOC_EV_RUNNING || event->kind == COALLOC_EV_PART_ENDED ||
        event->kind == COALLOC_EV_SITE_LOST)
        return true; /* the transaction is enough: one incarnation per site */
    return event->attempt == record->part[event->part].attempt;
}

static void dispatch (struct step *s)
{
    struct coalloc_part *part =
        names_part (s->event->kind) ? &s->record->part[s->event->part] : NULL;
    switch (s->event->kind) {
    case COALLOC_EV_BEGIN:
        query_begin (s);
        break;
    case COALLOC_EV_RECOVER:
        on_recover (s);
        break;
    case COALLOC_EV_TICK:
        break;
    case COALLOC_EV_QUERIED:
        on_queried (s);
        break;
    case COALLOC_EV_PREPARED:
        on_prepared (s, part);
        break;
    case COALLOC_EV_DECIDED:
        on_decided (s);
        break;
    case COALLOC_EV_COMMITTED:
        on_committed (s, part);
        break;
    case COALLOC_EV_ABORTED:
        on_aborted (s, part);
        break;
    case COALLOC_EV_READIED:
        on_readied (s, part);
        break;
    case COALLOC_EV_STARTED:
        on_started (s, part);
        break;
    case COALLOC_EV_RELEASED:
        on_released (s, part);
        break;
    case COALLOC_EV_NO_ANSWER:
        on_no_answer (s, part);
        break;
    case COALLOC_EV_RUNNING:
        on_running (s);
        break;
    case COALLOC_EV_PART_ENDED:
        on_part_ended (s, part);
        break;
    case COALLOC_EV_CANCEL:
        on_cancel (s);
        break;
    case COALLOC_EV_SITE_LOST:
        on_site_lost (s, part);
        break;
    }
}

int coalloc_step (struct coalloc_record *record, struct coalloc_event *event,
                  const struct coalloc_now *now, struct coalloc_actions *actions, struct err *err)
{
    struct step s = {record, event, now, actions};
    actions->save = false;
    actions->count = 0;
    actions->wake = INT64_MAX;
    if (event->kind < COALLOC_EV_BEGIN || event->kind > COALLOC_EV_SITE_LOST)
        return err_set (err, ERR_INVALID, "coalloc: event %d is unknown", (int)event->kind);
    if (names_part (event->kind) && event->part >= record->part_count)
        return err_set (err, ERR_INVALID, "coalloc: %s names part %u of %u",
                        coalloc_event_name (event->kind), event->part, record->part_count);
    if (event->kind == COALLOC_EV_BEGIN && record->phase != COALLOC_NEW)
        return err_set (err, ERR_INVALID, "coalloc: BEGIN in phase %s",
                        coalloc_phase_name (record->phase));
    if (record->phase != COALLOC_ENDED && is_present (record, event)) {
        dispatch (&s);
        deadlines_check (&s);
        resend_due (&s);
    }
    if (record->phase != COALLOC_ENDED)
        wake_set (&s);
    return 0;
}
