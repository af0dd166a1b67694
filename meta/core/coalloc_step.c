/* coalloc_step: what the steps share: entering a phase, listing an action, undoing, trying
 * again, ending. The other files of the state machine call it. It never forgets a part that may
 * be held somewhere: UNDO goes on until each site has answered or its lease is over. */
#include "meta/core/coalloc_i.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/text.h"

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

void coalloc_reason_set (struct coalloc_reason *reason, const char *code, const char *fmt,
                         va_list ap)
{
    struct coalloc_reason fresh;
    snprintf (fresh.code, sizeof fresh.code, "%s", code);
    text_vprintf (fresh.text, sizeof fresh.text, fmt, ap);
    *reason = fresh;
}

void step_reason (struct coalloc_reason *reason, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    coalloc_reason_set (reason, code, fmt, ap);
    va_end (ap);
}

void step_act (struct step *s, enum coalloc_action_kind kind, uint32_t part)
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

duration_us step_offset_min (const struct coalloc_record *record)
{
    duration_us min = record->part[0].offset;
    for (uint32_t p = 1; p < record->part_count; p++)
        if (record->part[p].offset < min)
            min = record->part[p].offset;
    return min;
}

/* When the first part starts. */
time_us step_slot_first (const struct coalloc_record *record)
{
    return record->slot_start + step_offset_min (record);
}

bool step_all_in (const struct coalloc_record *record, enum part_state state)
{
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state != state)
            return false;
    return true;
}

bool step_any_in (const struct coalloc_record *record, enum part_state state)
{
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state == state)
            return true;
    return false;
}

enum coalloc_action_kind step_pending (const struct coalloc_record *record,
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

bool coalloc_awaits (const struct coalloc_record *record, const struct coalloc_action *action)
{
    const struct coalloc_part *part = &record->part[action->part];
    return part->outstanding && part->attempt == action->attempt &&
           step_pending (record, part) == action->kind;
}

/* Puts a part into a state and sends the request that belongs to it. */
void step_enter (struct step *s, uint32_t p, enum part_state state)
{
    struct coalloc_part *part = &s->record->part[p];
    part->state = state;
    part->resends = 0;
    part->resend_mono = 0;
    part->outstanding = false;
    enum coalloc_action_kind kind = step_pending (s->record, part);
    if (!kind)
        return;
    if (kind == COALLOC_DO_PREPARE)
        part->sent_mono = s->now->mono;
    if (kind == COALLOC_DO_READY) {
        part->resend_mono = s->now->mono + step_look (s);
        return;
    }
    part->outstanding = true;
    step_act (s, kind, p);
}

void step_later (struct step *s, struct coalloc_part *part)
{
    duration_us wait = s->now->policy->resend_first;
    if (step_pending (s->record, part) == COALLOC_DO_READY &&
        step_look (s) > 0) { /* there is time */
        step_enter (s, (uint32_t)(part - s->record->part), PART_FIRM);
        return;
    }
    for (uint32_t i = 0; i < part->resends && wait < s->now->policy->resend_max; i++)
        wait *= 2;
    if (wait > s->now->policy->resend_max)
        wait = s->now->policy->resend_max;
    part->resends++;
    part->outstanding = false;
    part->resend_mono = s->now->mono + wait;
}

/* ---- ends, retries, undo */

void step_end (struct step *s, enum coalloc_outcome outcome)
{
    assert (outcome != COALLOC_OPEN);
    s->record->phase = COALLOC_ENDED;
    s->record->outcome = outcome;
    s->record->wake_mono = 0;
    memset (s->record->start_token, 0, sizeof s->record->start_token);
    s->actions->save = true;
}

void step_query (struct step *s)
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
        record->part[p].doubts = 0;
    }
    step_act (s, COALLOC_DO_QUERY, 0);
    s->actions->save = true;
}

void step_wait (struct step *s, duration_us wait)
{
    s->record->phase = COALLOC_BACKOFF;
    s->record->wake_mono = s->now->mono + (wait > 0 ? wait : 1);
    s->actions->save = true;
}

/* Another try at the whole group, unless too many ended in a way that nobody explains. */
void step_retry (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_policy *policy = s->now->policy;
    record->unexplained += !record->explained;
    if (record->unexplained >= policy->tries_max) {
        step_reason (&record->reason, record->reason.code,
                     "no co-reservation in %u tries; last: %s", record->tries, record->reason.text);
        step_end (s, COALLOC_REFUSED);
        return;
    }
    /* Age is a claim to be first among rivals; who comes that often is kept by something else. */
    duration_us age = record->tries > policy->tries_max ? 0 : s->now->wall - record->created;
    step_wait (s, coalloc_backoff (record->prepare_rtt, policy->backoff_max, record->tries, age,
                                   policy->age_unit, s->now->random));
}

void step_undo_finish (struct step *s)
{
    struct coalloc_record *record = s->record;
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state == PART_ABORTING || record->part[p].state == PART_RELEASING)
            return;
    if (record->outcome == COALLOC_OPEN)
        step_retry (s);
    else
        step_end (s, record->outcome);
}

/* Gives back everything that may be held. A part whose COMMIT may or may not have arrived is
 * aborted first; the site says so if it is firm, and then it is released.
 * outcome COALLOC_OPEN: then try again. record->reason has been set. */
void step_undo (struct step *s, enum coalloc_outcome outcome)
{
    struct coalloc_record *record = s->record;
    record->phase = COALLOC_UNDO;
    record->outcome = record->cancel_wanted ? COALLOC_CANCELLED : outcome;
    if (record->outcome == COALLOC_OPEN && record->ran)
        record->outcome = COALLOC_FAILED; /* what ran does not run again */
    /* What was never decided is gone at the latest with its lease: do not wait for the dead. */
    record->wake_mono = s->now->mono + s->now->policy->lease + s->now->policy->lease_margin;
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++) {
        switch (record->part[p].state) {
        case PART_PREPARING:
        case PART_PREPARED:
        case PART_COMMITTING:
            step_enter (s, p, PART_ABORTING);
            break;
        case PART_FIRM:
        case PART_READY:
        case PART_STARTING:
        case PART_STARTED:
        case PART_DOUBTED:
            step_enter (s, p, PART_RELEASING);
            break;
        case PART_NONE:
        case PART_REFUSED:
        case PART_SEEKING:
            record->part[p].state = PART_GONE;
            break;
        case PART_ENDED:
        case PART_ABORTING:
        case PART_RELEASING:
        case PART_GONE:
            break;
        }
    }
    step_undo_finish (s);
}
void step_on_aborted (struct step *s, struct coalloc_part *part)
{
    if (part->state != PART_ABORTING)
        return;
    if (s->event->u.aborted.refused_firm) {
        step_enter (s, (uint32_t)(part - s->record->part), PART_RELEASING);
        s->actions->save = true;
        return;
    }
    part->state = PART_GONE;
    part->outstanding = false;
    step_undo_finish (s);
}

void step_on_released (struct step *s, struct coalloc_part *part)
{
    if (part->state != PART_RELEASING)
        return;
    if (s->record->phase == COALLOC_REPAIR) {
        step_repair_released (s, part);
        return;
    }
    part->state = PART_GONE;
    part->outstanding = false;
    if (s->event->u.released.started && s->record->outcome == COALLOC_OPEN) {
        s->record->ran = true;
        s->record->outcome = COALLOC_FAILED;
    }
    step_undo_finish (s);
}
