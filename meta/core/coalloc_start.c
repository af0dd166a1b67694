/* coalloc_start: the steps from COMMIT over the barrier to LIVE. coalloc_step and the timers
 * call it. START, and the start token with it, must never leave before every component is firm
 * and has passed the barrier. */
#include "meta/core/coalloc_i.h"

#include <string.h>

/* ---- COMMIT */

void step_firm_check (struct step *s)
{
    struct coalloc_record *record = s->record;
    if (record->phase != COALLOC_COMMIT || !step_all_in (record, PART_FIRM))
        return;
    record->phase = COALLOC_READY;
    step_reason (&record->reason, "Reserved",
                 "all components are firm; waiting for their start%s%s",
                 record->broke[0] ? "; again, after " : "", record->broke);
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        step_enter (s, p, PART_FIRM);
}

/* The lease had ended (or the hold is unknown): the same slot anew, or everything again. */
static void commit_lost (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_policy *policy = s->now->policy;
    uint32_t p = (uint32_t)(part - record->part);
    bool ahead = s->now->wall < step_slot_first (record);
    if (ahead && part->attempt <= policy->reprepares_max) {
        part->attempt++;
        s->actions->save = true;
        step_enter (s, p, PART_PREPARING);
        return;
    }
    step_reason (&record->reason, "LeaseExpired",
                 "component %s at %s: its hold ended before COMMIT", part->name, part->site);
    step_repair (s, part);
}

void step_on_committed (struct step *s, struct coalloc_part *part)
{
    if (part->state != PART_COMMITTING)
        return;
    if (s->event->u.committed.outcome != COALLOC_FIRM) {
        commit_lost (s, part);
        return;
    }
    part->state = PART_FIRM;
    part->outstanding = false;
    step_firm_check (s);
}

/* ---- READY and START */

time_us step_barrier (const struct step *s)
{
    return step_slot_first (s->record) - s->now->policy->lead;
}

duration_us step_look (const struct step *s)
{
    duration_us left = step_barrier (s) - s->now->wall;
    if (left <= 0)
        return 0;
    return left / 2 > s->now->policy->resend_max ? left / 2 : left;
}

void step_on_readied (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    if (record->phase != COALLOC_READY || part->state != PART_FIRM)
        return;
    if (s->event->u.readied.started && !record->ran) {
        record->ran = true;
        s->actions->save = true;
    }
    if (!s->event->u.readied.yes) {
        step_reason (&record->reason, "NotReady", "component %s at %s: %s", part->name, part->site,
                     s->event->reason.text);
        if (s->event->u.readied.gone)
            step_repair (s, part);
        else if (s->event->u.readied.unable)
            step_doubt (s, part);
        else
            step_later (s, part);
        return;
    }
    if (s->now->wall < step_barrier (s) && !s->event->u.readied.started) { /* only looked after */
        step_enter (s, (uint32_t)(part - record->part), PART_FIRM);
        return;
    }
    part->state = PART_READY;
    part->outstanding = false;
    if (!step_all_in (record, PART_READY))
        return;
    if (s->now->withhold) { /* asked again until it is there, or the barrier closes */
        part->state = PART_FIRM;
        if (strcmp (record->reason.code, "Licence") != 0)
            s->actions->save = true;
        step_reason (&record->reason, "Licence", "its licences are still used by others");
        step_later (s, part);
        return;
    }
    time_us soonest = s->now->wall + s->now->policy->start_margin - step_offset_min (record);
    record->start_at = record->slot_start > soonest ? record->slot_start : soonest;
    record->phase = COALLOC_START;
    step_reason (&record->reason, "Starting", "all components are ready");
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        step_enter (s, p, PART_STARTING);
}

void step_live (struct step *s)
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
        step_end (s, worst);
}

void step_on_started (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    if (part->state != PART_STARTING)
        return;
    part->outstanding = false;
    if (s->event->u.started.yes) {
        part->state = PART_STARTED;
        step_live (s);
        return;
    }
    bool none_ran = !record->ran && s->now->wall < record->start_at + step_offset_min (record);
    step_reason (&record->reason, "StartRefused", "component %s at %s: %s", part->name, part->site,
                 s->event->reason.text);
    step_undo (s, none_ran ? COALLOC_OPEN : COALLOC_FAILED);
}
