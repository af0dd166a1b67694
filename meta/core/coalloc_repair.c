/* coalloc_repair: the steps of REPAIR, for a component that is lost between COMMIT and START.
 * The other files of the state machine call it. Components that are firm and well stay so while
 * the slot can be kept; a lost one is never prepared elsewhere while the first site may still
 * start it. */
#include "meta/core/coalloc_i.h"

#include <string.h>

/* The repair ladder after COMMIT: the site substitutes (READY); else the component is prepared elsewhere for the
 * same common moment, as one more attempt of the same transaction, while the others stay firm; else the group
 * begins anew. What a site keeps and cannot start is released before it is prepared elsewhere, and not before
 * some other site could take it.
 *
 * The choice is proposed to the decision log once more: where a group of coordinators keeps it, whoever takes over
 * learns where the component is. */

static bool is_sought (const struct coalloc_part *part)
{
    return part->state == PART_SEEKING || part->state == PART_DOUBTED;
}

bool coalloc_seeks (const struct coalloc_record *record, uint32_t p)
{
    return record->phase != COALLOC_REPAIR || is_sought (&record->part[p]);
}

static bool any_sought (const struct coalloc_record *record)
{
    return step_any_in (record, PART_SEEKING) || step_any_in (record, PART_DOUBTED);
}

static void seek (struct step *s)
{
    struct coalloc_record *record = s->record;
    if (record->seeking || step_any_in (record, PART_RELEASING) || step_any_in (record, PART_NONE))
        return; /* when that is over */
    record->seeking = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        record->part[p].asked = is_sought (&record->part[p]);
    step_act (s, COALLOC_DO_QUERY, 0);
}

/* The same slot can still be had there, and nothing of the transaction has begun. */
static bool may_repair (const struct step *s, const struct coalloc_part *part)
{
    const struct coalloc_record *record = s->record;
    return (record->phase == COALLOC_COMMIT || record->phase == COALLOC_READY ||
            record->phase == COALLOC_REPAIR) &&
           record->decided && !record->cancel_wanted && !record->ran &&
           s->now->wall + s->now->policy->start_margin < record->slot_start + part->offset &&
           part->attempt <= s->now->policy->reprepares_max;
}

static void begin (struct step *s, struct coalloc_part *part, enum part_state state)
{
    struct coalloc_record *record = s->record;
    if (record->phase != COALLOC_REPAIR) {
        record->phase = COALLOC_REPAIR;
        record->seeking = false;
        for (uint32_t p = 0; p < record->part_count; p++)
            if (record->part[p].state == PART_READY)
                record->part[p].state = PART_FIRM;
    }
    part->state = state;
    part->outstanding = false;
    part->asked = false;
    step_hint (part, 0);
    s->actions->save = true;
    seek (s);
}

void step_repair (struct step *s, struct coalloc_part *part)
{
    if (s->record->phase == COALLOC_READY)
        memcpy (s->record->broke, s->record->reason.text, sizeof s->record->broke);
    if (may_repair (s, part)) {
        begin (s, part, PART_SEEKING);
        return;
    }
    part->state = PART_GONE;
    part->outstanding = false;
    step_undo (s, COALLOC_OPEN); /* without START it never begins */
}

void step_doubt (struct step *s, struct coalloc_part *part)
{
    if (!may_repair (s, part) || part->doubts >= s->now->policy->reprepares_max) {
        step_later (s, part);
        return;
    }
    part->doubts++;
    begin (s, part, PART_DOUBTED);
}

/* Back to what the group is without a repair. */
static void leave (struct step *s)
{
    s->record->phase = COALLOC_COMMIT;
    s->actions->save = true;
    step_firm_check (s);
}

/* Nobody else can take what is sought at that moment. */
static void none_found (struct step *s, const char *why)
{
    struct coalloc_record *record = s->record;
    if (step_any_in (record, PART_SEEKING)) {
        struct coalloc_reason was = record->reason;
        step_reason (&record->reason, was.code, "%s; not elsewhere at that time: %s", was.text,
                     why);
        step_undo (s, COALLOC_OPEN);
        return;
    }
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state == PART_DOUBTED)
            record->part[p].state =
                PART_FIRM; /* its node may come back until the barrier's time is over */
    leave (s);
}

/* The problem of the sought parts alone, at the group's moment and within what the others leave of its bound. */
static bool problem_reduce (struct step *s, struct choose_part part[COALLOC_PARTS_MAX])
{
    const struct coalloc_record *record = s->record;
    struct choose_problem *problem = s->event->u.queried.problem;
    uint32_t place[COALLOC_PARTS_MAX], offers = 0;
    credit_micro kept = 0;
    problem->part_count = 0;
    for (uint32_t p = 0; p < record->part_count; p++) {
        place[p] = problem->part_count;
        if (is_sought (&record->part[p]))
            part[problem->part_count++] = problem->part[p];
        else
            kept += record->part[p].price;
    }
    problem->part = part;
    for (uint32_t o = 0; o < problem->offer_count; o++) {
        struct choose_offer offer = problem->offer[o];
        if (!is_sought (&record->part[offer.part]))
            continue;
        step_hinted (s, &offer);
        offer.part = place[offer.part];
        problem->offer[offers++] = offer;
    }
    problem->offer_count = offers;
    problem->now = s->now->wall + s->now->policy->start_margin;
    problem->not_before = problem->not_after = record->slot_start;
    problem->deadline = record->deadline;
    problem->prefer = record->prefer;
    problem->cost_max = record->cost_max ? record->cost_max - kept : 0;
    return !record->cost_max || kept < record->cost_max;
}

/* What doubted sites keep is given back first; then it is asked once more. */
static bool doubts_release (struct step *s)
{
    struct coalloc_record *record = s->record;
    bool any = false;
    for (uint32_t p = 0; p < record->part_count; p++) {
        if (record->part[p].state != PART_DOUBTED)
            continue;
        any = true;
        step_enter (s, p, PART_RELEASING);
    }
    s->actions->save = s->actions->save || any;
    return any;
}

void step_repair_queried (struct step *s)
{
    struct coalloc_record *record = s->record;
    struct choose_part part[COALLOC_PARTS_MAX];
    struct choose_result result;
    struct err why;
    uint32_t sought = 0;
    record->seeking = false;
    if (!any_sought (record))
        return;
    for (uint32_t p = 0; p < record->part_count; p++)
        if (is_sought (&record->part[p]) && !record->part[p].asked) { /* lost meanwhile */
            seek (s);
            return;
        }
    err_clear (&why);
    if (s->event->u.queried.found != COALLOC_QUERY_OFFERS) {
        none_found (s, s->event->reason.text);
    } else if (!problem_reduce (s, part)) {
        none_found (s, "its bound on the cost");
    } else if (choose_group (s->event->u.queried.problem, &result, &why)) {
        none_found (s, why.text);
    } else if (!doubts_release (s)) {
        for (uint32_t p = 0; p < record->part_count; p++)
            if (is_sought (&record->part[p]))
                step_place (s, &record->part[p],
                            &s->event->u.queried.problem->offer[result.offer[sought++]],
                            record->part[p].attempt + 1);
        s->actions->save = true;
        step_act (s, COALLOC_DO_DECIDE, 0);
        s->actions->action[s->actions->count - 1].proposal = DECISION_COMMIT;
    }
}

void step_repair_decided (struct step *s)
{
    struct coalloc_record *record = s->record;
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        if (record->part[p].state == PART_NONE)
            step_enter (s, p, PART_PREPARING);
    if (any_sought (record))
        seek (s);
    else if (!step_any_in (record, PART_RELEASING))
        leave (s);
}

void step_repair_released (struct step *s, struct coalloc_part *part)
{
    part->state = PART_SEEKING;
    part->outstanding = false;
    part->asked = false;
    s->actions->save = true;
    seek (s);
}

void step_repair_recover (struct step *s)
{
    struct coalloc_record *record = s->record;
    record->seeking = false;
    if (step_any_in (record, PART_NONE)) { /* what is sought besides is asked for after it */
        step_act (s, COALLOC_DO_DECIDE, 0);
        s->actions->action[s->actions->count - 1].proposal = DECISION_COMMIT;
    } else if (any_sought (record)) {
        seek (s);
    }
}
