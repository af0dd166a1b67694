/* coalloc_slot: the steps that find a common slot and take it: QUERY, CHOOSE, PREPARE, DECIDE.
 * coalloc_step, the timers and REPAIR call it. It never decides COMMIT unless every site has
 * said YES and the earliest of their leases has time left. */
#include "meta/core/coalloc_i.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/text.h"

/* ---- QUERY and CHOOSE */

static void prepare_next (struct step *s)
{
    struct coalloc_record *record = s->record;
    uint32_t next = UINT32_MAX;
    for (uint32_t p = 0; p < record->part_count; p++) {
        if (record->part[p].state != PART_NONE)
            continue;
        if (record->tries == 1) {
            step_enter (s, p, PART_PREPARING);
            continue;
        }
        if (next == UINT32_MAX || strcmp (record->part[p].site, record->part[next].site) < 0)
            next = p;
    }
    if (next != UINT32_MAX)
        step_enter (s, next, PART_PREPARING);
}

void step_place (struct step *s, struct coalloc_part *part, const struct choose_offer *offer,
                 uint32_t attempt)
{
    snprintf (part->site, sizeof part->site, "%s", s->event->u.queried.site_name[offer->site]);
    part->price = offer->price;
    part->shape = offer->shape;
    if (offer->walltime)
        part->walltime = offer->walltime;
    part->attempt = attempt;
    part->state = PART_NONE;
    part->hint_site[0] = '\0';
}

static void hinted (const struct coalloc_record *record, const char *const *site_name,
                    struct choose_offer *offer)
{
    const struct coalloc_part *part = &record->part[offer->part];
    offer->not_before = TIME_US_NONE;
    if (part->hint_site[0] && strcmp (part->hint_site, site_name[offer->site]) == 0)
        offer->not_before = part->hint_start;
}

void step_hinted (const struct step *s, struct choose_offer *offer)
{
    hinted (s->record, s->event->u.queried.site_name, offer);
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
    step_reason (&record->reason, "Preparing", "asking the sites for a common slot");
    for (uint32_t p = 0; p < record->part_count; p++) {
        step_place (s, &record->part[p], &problem->offer[result->offer[p]], 1);
        record->part[p].ended = COALLOC_OPEN;
    }
    s->actions->save = true;
    prepare_next (s);
}

void coalloc_problem (const struct coalloc_record *record, const struct coalloc_now *now,
                      const char *const *site_name, struct choose_problem *problem)
{
    duration_us lead = now->policy->lead;
    if (record->prepare_rtt && record->tries) /* one site after the other needs that much longer */
        lead += record->prepare_rtt * (duration_us)record->part_count;
    problem->now = now->wall + lead;
    problem->not_before = record->not_before;
    problem->deadline = record->deadline;
    problem->not_after = record->not_after;
    problem->cost_max = record->cost_max;
    problem->prefer = record->prefer;
    for (uint32_t o = 0; o < problem->offer_count; o++)
        hinted (record, site_name, &problem->offer[o]);
}

/* No moment from now on keeps the job's own bounds, in whatever size. */
static bool out_of_time (const struct coalloc_record *record, const struct choose_problem *problem,
                         time_us now)
{
    time_us begin = record->not_before > now ? record->not_before : now;
    bool late = record->not_after && begin > record->not_after;
    for (uint32_t p = 0; p < record->part_count && record->deadline; p++) {
        duration_us least = INT64_MAX;
        for (uint32_t o = 0; o < problem->offer_count; o++)
            if (problem->offer[o].part == p && problem->offer[o].walltime < least)
                least = problem->offer[o].walltime;
        late = late ||
               (least != INT64_MAX && begin + record->part[p].offset > record->deadline - least);
    }
    return late;
}

/* "left from Mon … at alpha, right at no time in the horizon": what is waited for. */
static void earliest_text (const struct step *s, char *out, size_t cap)
{
    const struct choose_problem *problem = s->event->u.queried.problem;
    char when[QUANTITY_TEXT_MAX];
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t p = 0; p < problem->part_count && len + 1 < cap; p++) {
        const struct choose_offer *best = NULL;
        for (uint32_t o = 0; o < problem->offer_count; o++) {
            const struct choose_offer *offer = &problem->offer[o];
            if (offer->part == p && offer->start_count &&
                (!best || offer->starts[0].begin < best->starts[0].begin))
                best = offer;
        }
        text_printf (out + len, cap - len, "%s%.63s %s%s%s%.63s", p ? ", " : "",
                     s->record->part[p].name, best ? "from " : "at no time in the horizon",
                     best ? time_format_table (best->starts[0].begin, when) : "",
                     best ? " at " : "", best ? s->event->u.queried.site_name[best->site] : "");
        len = strlen (out);
    }
}

/* No choice: it waits for one, unless there will never be any. */
static void none_chosen (struct step *s, const struct err *why)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    char earliest[COALLOC_TEXT_MAX];
    for (uint32_t p = 0; p < record->part_count; p++)
        record->part[p].hint_site[0] = '\0';
    earliest_text (s, earliest, sizeof earliest);
    step_reason (&record->reason, "NoCommonSlot", "%s: alone %s", why->text, earliest);
    if (record->prepare_rtt < s->now->policy->resend_first)
        record->prepare_rtt = s->now->policy->resend_first;
    if (out_of_time (record, event->u.queried.problem, s->now->wall)) {
        step_end (s, COALLOC_REFUSED);
    } else if (event->u.queried.complete && !choose_conceivable (event->u.queried.problem)) {
        step_reason (&record->reason, "Infeasible",
                     "the allowed sites are too small for all components together");
        step_end (s, COALLOC_REFUSED);
    } else if (why->code == ERR_NOT_FOUND) {
        step_wait (s, coalloc_backoff (s->now->policy->wait_slot / 60, s->now->policy->wait_slot,
                                       record->tries, 0, 0, s->now->random));
    } else {
        step_retry (s);
    }
}

void step_on_queried (struct step *s)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    struct choose_result result;
    struct err why;
    if (record->phase == COALLOC_REPAIR)
        step_repair_queried (s);
    if (record->phase != COALLOC_QUERY)
        return;
    if (record->expires && s->now->wall > record->expires) {
        step_reason (&record->reason, "Expired",
                     "the job's time for a first acceptance has passed%s%s",
                     record->reason.text[0] ? "; last: " : "", record->reason.text);
        step_end (s, COALLOC_REFUSED);
        return;
    }
    if (event->u.queried.found == COALLOC_QUERY_NEVER) {
        record->reason = event->reason;
        step_end (s, COALLOC_REFUSED);
        return;
    }
    if (event->u.queried.found == COALLOC_QUERY_SITE_DOWN) {
        record->reason = event->reason;
        step_wait (s, s->now->policy->wait_site_down / 2 +
                          (duration_us)(s->now->random %
                                        (uint64_t)(s->now->policy->wait_site_down / 2 + 1)));
        return;
    }
    coalloc_problem (record, s->now, event->u.queried.site_name, event->u.queried.problem);
    record->tries++;
    record->explained = false;
    err_clear (&why);
    if (choose_group (event->u.queried.problem, &result, &why) == 0)
        chosen (s, &result);
    else
        none_chosen (s, &why);
}

/* ---- PREPARE and DECIDE */

void step_decide (struct step *s, enum decision proposal)
{
    s->record->phase = COALLOC_DECIDE;
    s->actions->save = true;
    step_act (s, COALLOC_DO_DECIDE, 0);
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
        step_reason (&record->reason, "LeaseEnded",
                     "the sites' answers took longer than their leases allow");
        step_undo (s, COALLOC_OPEN);
    } else if (s->now->wall >= step_slot_first (record)) {
        step_reason (&record->reason, "SlotPassed",
                     "the slot began before every site had answered");
        step_undo (s, COALLOC_OPEN);
    } else {
        step_decide (s, DECISION_COMMIT);
    }
}

void step_hint (struct coalloc_part *part, time_us next_feasible)
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
    step_hint (part, event->u.prepared.next_feasible);
    record->explained = record->explained || event->u.prepared.next_feasible > 0;
    if (record->phase == COALLOC_UNDO) { /* a late NO: nothing left to abort there */
        part->state = PART_GONE;
        step_undo_finish (s);
        return;
    }
    step_reason (&record->reason, event->reason.code[0] ? event->reason.code : "Refused",
                 "component %s at %s: %s", part->name, part->site,
                 event->reason.text[0] ? event->reason.text : "refused");
    if (record->decided && !event->u.prepared.unfunded)
        step_repair (s, part);
    else
        step_undo (s, event->u.prepared.unfunded ? COALLOC_REFUSED : COALLOC_OPEN);
}

void step_on_prepared (struct step *s, struct coalloc_part *part)
{
    struct coalloc_record *record = s->record;
    const struct coalloc_event *event = s->event;
    if (part->state == PART_ABORTING && !event->u.prepared.granted) {
        /* The abort that is under way leaves a tombstone; its answer ends this part. */
        step_hint (part, event->u.prepared.next_feasible);
        record->explained = record->explained || event->u.prepared.next_feasible > 0;
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
    if (record->decided) { /* prepared anew after EXPIRED, or elsewhere */
        step_enter (s, (uint32_t)(part - record->part), PART_COMMITTING);
        s->actions->save = true;
        return;
    }
    part->state = PART_PREPARED;
    if (step_all_in (record, PART_PREPARED))
        all_prepared (s);
    else if (record->tries > 1)
        prepare_next (s);
}

void step_on_decided (struct step *s)
{
    struct coalloc_record *record = s->record;
    if (record->phase != COALLOC_DECIDE && record->phase != COALLOC_REPAIR)
        return;
    if (s->event->u.decided.decision != DECISION_COMMIT) {
        if (!record->reason.code[0] || strcmp (record->reason.code, "Preparing") == 0)
            step_reason (&record->reason, "CoordinatorRestarted",
                         "the metascheduler restarted before the decision");
        step_undo (s, COALLOC_OPEN);
        return;
    }
    if (record->phase == COALLOC_REPAIR) {
        step_repair_decided (s);
        return;
    }
    record->decided = true;
    if (record->cancel_wanted) {
        step_undo (s, COALLOC_CANCELLED);
        return;
    }
    record->phase = COALLOC_COMMIT;
    record->resumed = s->now->wall;
    s->actions->save = true;
    for (uint32_t p = 0; p < record->part_count; p++)
        step_enter (s, p, PART_COMMITTING);
}

bool step_overdue (const struct step *s, const struct coalloc_part *part)
{
    return part->state == PART_PREPARING &&
           s->now->mono >= part->sent_mono + s->now->policy->prepare_timeout;
}

void step_gave_up (struct step *s, struct coalloc_part *part)
{
    step_reason (&s->record->reason, "SiteDown", "component %s: site %s did not answer PREPARE",
                 part->name, part->site);
    s->record->explained = true;
    step_hint (part, 0);
    if (s->record->decided) /* should it hold something after all, then until its lease ends */
        step_repair (s, part);
    else
        step_undo (s, COALLOC_OPEN);
}
