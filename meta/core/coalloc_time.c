/* coalloc_time: the deadlines of each phase, what is sent again, and how a record goes on after
 * a crash. coalloc_step calls it after each event, and with RECOVER. Without a COMMIT in the
 * decision log it must never go forward: absence means abort. */
#include "meta/core/coalloc_i.h"

#include <string.h>

/* ---- time */

/* A no-show releases every site and is counted against the late party (its name is the reason). */
static void no_show (struct step *s, enum coalloc_outcome outcome, const char *what)
{
    struct coalloc_record *record = s->record;
    for (uint32_t p = 0; p < record->part_count; p++) {
        const struct coalloc_part *part = &record->part[p];
        if (part->state == PART_COMMITTING || part->state == PART_PREPARING ||
            part->state == PART_FIRM || part->state == PART_STARTING ||
            part->state == PART_RELEASING) {
            if (strcmp (record->reason.code, "Licence") == 0)
                break;
            if (strcmp (record->reason.code, "NotReady") == 0)
                step_reason (&record->reason, "NoShow", "%s", record->reason.text);
            else
                step_reason (&record->reason, "NoShow", "component %s: site %s did not answer %s",
                             part->name, part->site, what);
            break;
        }
    }
    step_undo (s, outcome);
}

/* When COMMIT and the barrier are too late. Who comes to it after the slot's start finds out first
 * what runs already. */
static time_us step_late (const struct step *s)
{
    time_us from = step_slot_first (s->record);
    if (s->record->resumed > from)
        from = s->record->resumed;
    return from + s->now->policy->barrier_timeout;
}

/* Returns true when a deadline of the phase passed and the phase was left. */
bool step_deadlines (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_now *now = s->now;
    time_us late = step_late (s);
    switch (record->phase) {
    case COALLOC_BACKOFF:
        if (now->mono < record->wake_mono)
            return false;
        step_query (s);
        return true;
    case COALLOC_PREPARE:
        for (uint32_t p = 0; p < record->part_count; p++) {
            if (step_overdue (s, &record->part[p])) {
                step_gave_up (s, &record->part[p]);
                return true;
            }
        }
        return false;
    case COALLOC_COMMIT:
    case COALLOC_REPAIR:
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
        if (now->wall < record->start_at + step_offset_min (record) + now->policy->barrier_timeout)
            return false;
        no_show (s, COALLOC_FAILED, "START");
        return true;
    case COALLOC_UNDO:
        if (record->decided || now->mono < record->wake_mono)
            return false;
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_ABORTING)
                record->part[p].state = PART_GONE; /* its lease has ended */
        step_undo_finish (s);
        return true;
    default:
        return false;
    }
}

void step_resend (struct step *s)
{
    struct coalloc_record *record = s->record;
    for (uint32_t p = 0; p < record->part_count; p++) {
        struct coalloc_part *part = &record->part[p];
        enum coalloc_action_kind kind = step_pending (record, part);
        bool opens = kind == COALLOC_DO_READY && part->resends == 0 && step_look (s) == 0;
        if (!kind || part->outstanding || (part->resend_mono > s->now->mono && !opens))
            continue;
        part->outstanding = true;
        step_act (s, kind, p);
    }
}

void step_on_recover (struct step *s)
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
        part->doubts = 0;
    }
    switch (record->phase) {
    case COALLOC_NEW:
    case COALLOC_QUERY:
    case COALLOC_BACKOFF:
        step_query (s);
        break;
    case COALLOC_PREPARE:
    case COALLOC_DECIDE:
        /* No COMMIT record means abort; sends after the last save are aborted too. */
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_NONE)
                record->part[p].state = PART_PREPARING;
        step_decide (s, DECISION_ABORT);
        break;
    case COALLOC_READY:
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_READY || record->part[p].state == PART_FIRM)
                step_enter (s, p, PART_FIRM);
        break;
    case COALLOC_REPAIR:
        step_repair_recover (s);
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
    case COALLOC_REPAIR:
        return until (step_late (s), now->wall);
    case COALLOC_READY:
        if (now->wall < step_barrier (s))
            return until (step_barrier (s), now->wall);
        return until (step_late (s), now->wall);
    case COALLOC_START:
        return until (record->start_at + step_offset_min (record) + barrier, now->wall);
    default:
        return INT64_MAX;
    }
}

void step_wake (struct step *s)
{
    const struct coalloc_record *record = s->record;
    duration_us wake = wake_phase (s);
    for (uint32_t p = 0; p < record->part_count; p++) {
        const struct coalloc_part *part = &record->part[p];
        if (step_pending (record, part) && !part->outstanding) {
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
