/* coalloc: records, names, and coalloc_step, which hands each event to the step it belongs to
 * (slot, start, repair, time; what they share is in coalloc_step.c). meta/group calls it. A step
 * only changes the record and lists actions: nothing is sent from here, and none may leave
 * before the record is on disk. */
#include "meta/core/coalloc_i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    static const char *const name[] = {"NEW",   "QUERY", "BACKOFF", "PREPARE", "DECIDE", "COMMIT",
                                       "READY", "START", "LIVE",    "UNDO",    "ENDED",  "REPAIR"};
    return (unsigned)phase < sizeof name / sizeof *name ? name[phase] : "?";
}

const char *coalloc_event_name (enum coalloc_event_kind kind)
{
    static const char *const name[] = {"?",        "BEGIN",    "RECOVER",   "TICK",    "QUERIED",
                                       "PREPARED", "DECIDED",  "COMMITTED", "ABORTED", "READIED",
                                       "STARTED",  "RELEASED", "NO_ANSWER", "RUNNING", "PART_ENDED",
                                       "CANCEL",   "SITE_LOST"};
    return (unsigned)kind < sizeof name / sizeof *name ? name[kind] : "?";
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
    bool firm =
        part->state == PART_FIRM || part->state == PART_READY || part->state == PART_DOUBTED;
    if (!started && !firm)
        return;
    s->actions->save = true;
    part->outstanding = false;
    if (event->u.ended.outcome != COALLOC_COMPLETED)
        step_reason (&record->reason,
                     event->reason.code[0] ? event->reason.code : "ComponentFailed",
                     "component %s at %s: %s", part->name, part->site, event->reason.text);
    if (firm && event->u.ended.outcome == COALLOC_FAILED && !event->u.ended.lost) {
        part->state =
            PART_GONE; /* it failed before the start (its files did not come), and would again */
        step_undo (s, COALLOC_FAILED);
        return;
    }
    if (firm) { /* taken away before the start */
        step_repair (s, part);
        return;
    }
    part->state = PART_ENDED;
    part->ended = event->u.ended.outcome;
    const bool failed = part->ended != COALLOC_COMPLETED && record->part_count > 1;
    if (failed && !event->u.ended.lost && !s->now->goes_on) {
        step_undo (s, COALLOC_FAILED);
        return;
    }
    if (event->u.ended.lost) {
        step_undo (s, event->u.ended.outcome == COALLOC_CANCELLED ? COALLOC_CANCELLED
                                                                  : COALLOC_FAILED);
        return;
    }
    step_live (s);
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
        step_end (s, COALLOC_CANCELLED);
        break;
    case COALLOC_DECIDE: /* the log's answer comes first */
        break;
    case COALLOC_UNDO:
        if (record->outcome == COALLOC_OPEN)
            record->outcome = COALLOC_CANCELLED;
        break;
    default:
        step_undo (s, COALLOC_CANCELLED);
        break;
    }
}

bool coalloc_minds_site (enum part_state state)
{
    return (state >= PART_COMMITTING && state <= PART_STARTED) || state == PART_ABORTING ||
           state == PART_RELEASING || state == PART_DOUBTED;
}

/* What runs elsewhere is ended, what only waited is tried anew; nothing is awaited of that site. */
static void on_site_lost (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    bool undoing = part->state == PART_ABORTING || part->state == PART_RELEASING;
    bool started = part->state == PART_STARTING || part->state == PART_STARTED;
    if (!coalloc_minds_site (part->state)) /* given up when its lease or patience is over */
        return;
    s->actions->save = true;
    if (undoing && record->phase == COALLOC_REPAIR) {
        step_repair_released (s, part);
        return;
    }
    if (!undoing)
        step_reason (&record->reason, s->event->reason.code, "component %s: %s", part->name,
                     s->event->reason.text);
    if (!undoing && !started) {
        step_repair (s, part);
        return;
    }
    part->state = PART_GONE;
    part->outstanding = false;
    if (undoing)
        step_undo_finish (s);
    else
        step_undo (s, COALLOC_FAILED);
}

static void on_no_answer (struct step *s, struct coalloc_part *part)
{
    if (!step_pending (s->record, part) || !part->outstanding)
        return;
    if (step_overdue (s, part))
        step_gave_up (s, part);
    else
        step_later (s, part);
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
        step_query (s);
        break;
    case COALLOC_EV_RECOVER:
        step_on_recover (s);
        break;
    case COALLOC_EV_TICK:
        break;
    case COALLOC_EV_QUERIED:
        step_on_queried (s);
        break;
    case COALLOC_EV_PREPARED:
        step_on_prepared (s, part);
        break;
    case COALLOC_EV_DECIDED:
        step_on_decided (s);
        break;
    case COALLOC_EV_COMMITTED:
        step_on_committed (s, part);
        break;
    case COALLOC_EV_ABORTED:
        step_on_aborted (s, part);
        break;
    case COALLOC_EV_READIED:
        step_on_readied (s, part);
        break;
    case COALLOC_EV_STARTED:
        step_on_started (s, part);
        break;
    case COALLOC_EV_RELEASED:
        step_on_released (s, part);
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
        step_deadlines (&s);
        step_resend (&s);
    }
    if (record->phase != COALLOC_ENDED)
        step_wake (&s);
    return 0;
}
