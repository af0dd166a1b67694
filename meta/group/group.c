/* Drives the coordinator's state machine (meta/core/coalloc): one event at a time, the record durable, then its actions. An
 * action before its record is on disk would be unknown after a crash. Called by the job's timer, by reports and by a cancel. */
#include "meta/group/group_i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/group/terms.h"
#include "meta/place/survey.h"
#include "meta/job/check.h"
#include "meta/place/gridlicence.h"
#include "meta/lead/lead.h"
#include "meta/job/loss.h"
#include "meta/job/peers.h"
#include "meta/job/retry.h"
#include "meta/place/waits.h"
#include "proto/base/text.h"

/* ---- the record and the job's face */

static int group_prepare (struct gridjob *job, struct err *err)
{
    struct coalloc_record *record = coalloc_create (job->part_count, err);
    if (!record)
        return ERR_LIMIT;
    record->created = clock_now_us ();
    record->not_before = job->job->not_before_us;
    record->not_after = job->job->not_after_us;
    record->deadline = job->job->deadline_us;
    record->prefer = job_prefer (job->job);
    record->expires = job_expires (job);
    record->cost_max = job->job->cost_max_micro;
    for (uint32_t p = 0; p < job->part_count; p++) {
        const ComponentMessage *component = job->job->components[p];
        snprintf (record->part[p].name, sizeof record->part[p].name, "%s", component->name);
        record->part[p].offset = component->offset_us;
        record->part[p].walltime = component->walltime_us;
    }
    job->record = record;
    return 0;
}

int group_made (struct gridjob *job, struct err *err)
{
    bool needs = job->part_count > 1 || gridlicence_asked (job->metad, job->job);
    if (needs && group_prepare (job, err))
        return err->code;
    job->held = needs && job->job->held ? JOB_HELD : JOB_HOLD_AS_SIGNED;
    return 0;
}

static Nui__Meta__V1__GridJobState state_of (const struct coalloc_record *record)
{
    switch (record->phase) {
    case COALLOC_READY:
    case COALLOC_START:
    case COALLOC_LIVE:
        return record->ran ? NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING
                           : NUI__META__V1__GRID_JOB_STATE__GRID_RESERVED;
    case COALLOC_ENDED:
        switch (record->outcome) {
        case COALLOC_COMPLETED:
            return NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
        case COALLOC_CANCELLED:
            return NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED;
        case COALLOC_REFUSED:
            return NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED;
        default:
            return NUI__META__V1__GRID_JOB_STATE__GRID_FAILED;
        }
    default:
        return NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
    }
}

/* First start and last end of what the sites have said. */
static void times_set (struct gridjob *job)
{
    const struct coalloc_record *record = job->record;
    time_us start = 0, end = 0;
    for (uint32_t p = 0; p < job->part_count; p++) {
        const JobInfo *info = job->part[p].info;
        if (!info || info->transaction.len != 16 ||
            memcmp (info->transaction.data, record->transaction, 16) != 0)
            continue;
        if (info->start_us && (!start || info->start_us < start))
            start = info->start_us;
        if (info->end_us > end)
            end = info->end_us;
    }
    job->start_is_estimate = !start && record->phase != COALLOC_ENDED;
    if (start)
        job->start_us = start;
    else
        job->start_us = (record->phase >= COALLOC_READY && record->phase <= COALLOC_LIVE) ||
                                record->phase == COALLOC_REPAIR
                            ? record->slot_start
                            : 0;
    if (record->phase == COALLOC_ENDED)
        job->end_us = end ? end : clock_now_us ();
}

/* What was said of it where it was. */
static void place_drop (struct jobpart *part)
{
    if (part->info)
        nui__local__v1__job_info__free_unpacked (part->info, NULL);
    if (part->peer)
        nui__common__v1__peer__free_unpacked (part->peer, NULL);
    part->info = NULL;
    part->peer = NULL;
    part->dirty = true;
}

static void face_set (struct gridjob *job)
{
    const struct coalloc_record *record = job->record;
    credit_micro price = 0;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct jobpart *part = &job->part[p];
        if (strcmp (part->site, record->part[p].site) != 0) {
            snprintf (part->site, sizeof part->site, "%s", record->part[p].site);
            part->site_job_id[0] = '\0';
            place_drop (part);
        }
        price += record->part[p].price;
    }
    if (record->phase >= COALLOC_PREPARE)
        job->price = price;
    job->reason = record->reason;
    job->attempts = record->tries;
    job->cancel_wanted = record->cancel_wanted;
    Nui__Meta__V1__GridJobState before = job->state;
    job->state = state_of (record);
    if (job_ended (job) && job->slide) /* not before the other one holds nothing */
        job->state = before;
    job_files_reason (job);
    times_set (job);
}

/* ---- its records on disk */

static int group_job_inserting (struct gridjob *job, struct err *err)
{
    return job->record ? metastore_coalloc_save (job->metad->store, job->number, METASTORE_PRESENT,
                                                 job->record, err)
                       : 0;
}

static int group_job_saving (struct gridjob *job, bool with_record, struct err *err)
{
    struct metastore *store = job->metad->store;
    if (!with_record || !job->record)
        return 0;
    int rc = metastore_coalloc_save (store, job->number, METASTORE_PRESENT, job->record, err);
    if (rc == 0 && slide_durable (job))
        rc = metastore_coalloc_save (store, job->number, METASTORE_SLIDE, job->slide, err);
    else if (rc == 0 && job->slide_stored)
        rc = metastore_coalloc_drop (store, job->number, METASTORE_SLIDE, err);
    return rc;
}

static void group_job_saved (struct gridjob *job, bool with_record)
{
    if (with_record)
        job->slide_stored = slide_durable (job);
}

static int group_job_loaded (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct metastore *store = job->metad->store;
    (void)arena;
    if (job->part_count == 1 && !job->licensed)
        return 0;
    int rc = metastore_coalloc_load (store, job->number, METASTORE_PRESENT, &job->record, err);
    if (rc == ERR_NOT_FOUND && job->part_count == 1)
        return 0; /* its licences were a site's when it was taken */
    if (rc)
        return rc;
    rc = metastore_coalloc_load (store, job->number, METASTORE_SLIDE, &job->slide, err);
    job->slide_stored = rc == 0;
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

static void group_job_freed (struct gridjob *job)
{
    terms_drop (job);
    coalloc_destroy (job->record);
    coalloc_destroy (job->slide);
    job->record = job->slide = NULL;
}

const struct metad_part group_part = {
    .job_inserting = group_job_inserting,
    .job_saving = group_job_saving,
    .job_saved = group_job_saved,
    .job_loaded = group_job_loaded,
    .job_freed = group_job_freed,
    .job_unlisted = slide_unlist,
};

/* ---- the step */

static void group_wake (struct gridjob *job);

static void step_log (const struct gridjob *job, const struct coalloc_record *record, bool other,
                      const struct coalloc_event *event, enum coalloc_phase before)
{
    char quoted[COALLOC_TEXT_MAX * 2];
    if (before == record->phase)
        return;
    log_event (job->metad->log, LOG_LEVEL_INFO, "coalloc", "phase",
               "job=%s%s event=%s from=%s to=%s try=%u code=%s reason=%s", job->id,
               other ? " other_slot=1" : "", coalloc_event_name (event->kind),
               coalloc_phase_name (before), coalloc_phase_name (record->phase), record->tries,
               record->reason.code[0] ? record->reason.code : "-",
               log_quote (record->reason.text, quoted, sizeof quoted));
}

/* It ran, failed, and is run again: with a record of its own, from the beginning. */
static bool begin_again (struct gridjob *job)
{
    struct coalloc_record *old = job->record;
    struct err err;
    bool lost = job->contact_us && !job->cancel_wanted && strcmp (old->reason.code, LOSS_CODE) == 0;
    if (old->phase != COALLOC_ENDED || old->outcome != COALLOC_FAILED)
        return false;
    if (lost)
        job->reason = old->reason;
    else if (!retry_takes (job, old->reason.text))
        return false;
    if (group_prepare (job, &err))
        return false;
    job->record->reason = job->reason;
    coalloc_destroy (old);
    for (uint32_t p = 0; p < job->part_count; p++)
        place_drop (&job->part[p]);
    return true;
}

/* Not while another leads it, nor while too few of the group answer to know that none does: then what
 * happens is as lost as in a crash, and it is recovered afterwards. */
static bool may_step (struct gridjob *job)
{
    if (job_is_elsewhere (job))
        return false;
    if (peers_lead (job->metad))
        return true;
    job->reloaded = true;
    job_timer (job, US_PER_S);
    return false;
}

/* How long until the part's site is lost to it; INT64_MAX: never, or it does not matter any more. */
static duration_us part_lost_in (const struct gridjob *job, const struct coalloc_record *record,
                                 uint32_t p)
{
    return record && coalloc_minds_site (record->part[p].state)
               ? loss_due (job, record->part[p].site)
               : INT64_MAX;
}

/* The next moment at which there is something to do. */
static void timer_set (struct gridjob *job)
{
    duration_us now = clock_monotonic_us (), wait = slide_due (job);
    const duration_us wake[] = {job->wake_mono, job->slide_wake_mono};
    for (size_t i = 0; i < sizeof wake / sizeof *wake; i++)
        if (wake[i] && wake[i] - now < wait)
            wait = wake[i] > now ? wake[i] - now : 0;
    for (uint32_t p = 0; p < job->part_count; p++) {
        duration_us lost = part_lost_in (job, job->record, p),
                    other = part_lost_in (job, job->slide, p);
        lost = other < lost ? other : lost;
        wait = lost < wait ? lost : wait;
    }
    if (wait != INT64_MAX)
        job_timer (job, wait);
}

/* An earlier slot that is not wanted any more is given up. */
static void surplus_drop (struct gridjob *job)
{
    struct coalloc_event event = {.kind = COALLOC_EV_CANCEL,
                                  .reason = {"Moved", "the group has another slot"}};
    if (slide_surplus (job))
        group_step (job, job->slide, &event);
}

/* The record's step is durable: what it asks for is done. */
static void step_perform (struct gridjob *job, struct coalloc_record *record, duration_us now,
                          const struct coalloc_actions *actions)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    duration_us *wake = record == job->slide ? &job->slide_wake_mono : &job->wake_mono;
    *wake = record->phase == COALLOC_ENDED || actions->wake == INT64_MAX ? 0 : now + actions->wake;
    slide_list (job);
    timer_set (job);
    if (record->phase != COALLOC_ENDED)
        group_perform (job, record, actions);
    if (job_live (metad, number) == job && !job_ended (job))
        surplus_drop (job);
}

void group_step (struct gridjob *job, struct coalloc_record *record, struct coalloc_event *event)
{
    struct metad *metad = job->metad;
    struct coalloc_now now = {clock_now_us (),
                              clock_monotonic_us (),
                              0,
                              &metad->config->policy,
                              event->kind == COALLOC_EV_READIED &&
                                  gridlicence_withhold (job, record),
                              job_goes_on (job->job)};
    struct coalloc_actions actions;
    enum coalloc_phase before = record->phase;
    bool decided_before = record->decided;
    uint8_t transaction[16];
    struct err err;
    if (!may_step (job))
        return;
    memcpy (transaction, record->transaction, sizeof transaction);
    random_bytes (&now.random, sizeof now.random);
    err_clear (&err);
    if (coalloc_step (record, event, &now, &actions, &err)) {
        log_event (metad->log, LOG_LEVEL_ERROR, "coalloc", "bad_event", "job=%s", job->id);
        return;
    }
    bool over = before != record->phase &&
                (record->phase == COALLOC_ENDED || record->phase == COALLOC_BACKOFF);
    const struct coalloc_record seen =
        *record; /* for the log: it may be forgotten before it is durable */
    const bool other = record == job->slide;
    bool again = actions.save && record == job->record && begin_again (job);
    if (actions.save) {
        slide_settle (job);
        bool held = slide_durable (job) || job->slide_stored;
        face_set (job);
        if ((record != job->slide || held) && job_save (job, true, &err)) {
            job_reload (metad, job->number);
            return;
        }
    }
    step_log (job, &seen, other, event, before);
    if (decided_before && over)
        metad->decisions.ops->forget (metad->decisions.self, transaction);
    if (again)
        group_wake (job);
    else if (record == job->record || record == job->slide)
        step_perform (job, record, now.mono, &actions);
    else
        timer_set (job);
}

/* ---- events from elsewhere */

/* Not begun, or between two tries, and something that is not the sites' matter keeps it. */
static bool group_waits (struct gridjob *job)
{
    struct coalloc_reason waits = {"", ""};
    struct err err;
    if (job->record->phase != COALLOC_NEW && job->record->phase != COALLOC_BACKOFF)
        return false;
    if (job->record->cancel_wanted || !waits_for (job, &waits))
        return false;
    answers_forget (job);
    if (waits_never (&waits)) {
        struct coalloc_event event = {.kind = COALLOC_EV_CANCEL, .reason = waits};
        group_step (job, job->record, &event);
        return true;
    }
    if (memcmp (&waits, &job->reason, sizeof waits) != 0) {
        job->reason = waits;
        job_save (job, false, &err);
    }
    return true;
}

static void group_begin (struct gridjob *job)
{
    loss_begin (job);
    struct coalloc_event event = {.kind = COALLOC_EV_BEGIN};
    if (!group_waits (job))
        group_step (job, job->record, &event);
}

bool group_may_wait (const struct gridjob *job)
{
    return job->record->phase == COALLOC_NEW || job->record->phase == COALLOC_BACKOFF;
}

void group_room (struct metad *metad, const struct site *site)
{
    struct gridjob *job, *next;
    DL_FOREACH_SAFE2 (metad->firm, job, next, firm_next)
    if (!job->reloaded && slide_hear (job, site))
        timer_set (job);
}

/* One event for the second record. Whether the job is still the same then. */
static bool slide_event (struct gridjob *job, enum coalloc_event_kind kind)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    struct coalloc_event event = {.kind = kind};
    if (job->slide)
        group_step (job, job->slide, &event);
    return job_live (metad, number) == job && !job->reloaded;
}

/* Parts at sites that are lost. Whether the job is still the same then. */
static bool lost_parts (struct gridjob *job)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct coalloc_record *record[] = {job->record, job->slide};
        for (int r = 0; r < 2; r++) {
            struct coalloc_event event = {.kind = COALLOC_EV_SITE_LOST, .part = p};
            if ((record[r] != job->record && record[r] != job->slide) ||
                part_lost_in (job, record[r], p) > 0)
                continue;
            snprintf (event.reason.code, sizeof event.reason.code, LOSS_CODE);
            text_printf (event.reason.text, sizeof event.reason.text,
                         "site %s has been silent for too long", record[r]->part[p].site);
            group_step (job, record[r], &event);
            if (job_live (metad, number) != job || job->reloaded || job_ended (job))
                return false;
        }
    }
    return true;
}

static void group_wake (struct gridjob *job)
{
    struct coalloc_event event = {.kind = COALLOC_EV_TICK};
    if (!slide_event (job, COALLOC_EV_TICK) || !lost_parts (job))
        return;
    if (job->record->phase == COALLOC_NEW) {
        group_begin (job);
        return;
    }
    if (group_waits (job))
        return;
    if (slide_due (job) == 0 && slide_prepare (job) && !slide_event (job, COALLOC_EV_BEGIN))
        return;
    group_step (job, job->record, &event);
}

void group_cancel (struct gridjob *job, const char *who)
{
    struct coalloc_event event = {.kind = COALLOC_EV_CANCEL};
    snprintf (event.reason.code, sizeof event.reason.code, "Cancelled");
    text_printf (event.reason.text, sizeof event.reason.text, "cancelled by %.300s", who);
    group_step (job, job->record, &event);
}

static bool ended_event (const JobInfo *info, struct coalloc_event *event)
{
    event->kind = COALLOC_EV_PART_ENDED;
    group_reason (&event->reason, info->reason);
    switch (info->state) {
    case NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED:
        event->u.ended.outcome = COALLOC_COMPLETED;
        return true;
    case NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED:
        /* Where START came too late, or the site had no contact, nobody has cancelled it. */
        event->u.ended.outcome = strcmp (event->reason.code, "NoShow") == 0 || loss_ended (info)
                                     ? COALLOC_FAILED
                                     : COALLOC_CANCELLED;
        if (loss_ended (info))
            snprintf (event->reason.code, sizeof event->reason.code, LOSS_CODE);
        event->u.ended.lost = true;
        break;
    case NUI__LOCAL__V1__JOB_STATE__JOB_REFUSED:
        event->u.ended.outcome = COALLOC_FAILED;
        event->u.ended.lost = true;
        break;
    case NUI__LOCAL__V1__JOB_STATE__JOB_FAILED:
    case NUI__LOCAL__V1__JOB_STATE__JOB_TIMEOUT:
        event->u.ended.outcome = COALLOC_FAILED;
        event->u.ended.lost = strcmp (event->reason.code, "NodeFailure") == 0 ||
                              strcmp (event->reason.code, LOSS_FORGOTTEN) == 0;
        break;
    default:
        return false;
    }
    if (!event->reason.text[0])
        text_printf (event->reason.text, sizeof event->reason.text, "%s, exit code %d",
                     info->state == NUI__LOCAL__V1__JOB_STATE__JOB_TIMEOUT
                         ? "ran into its wallclock limit"
                         : "ended",
                     info->exit_code);
    return true;
}

void group_heard (struct gridjob *job, uint32_t p)
{
    const JobInfo *info = job->part[p].info;
    if (job_ended (job) || !info || info->transaction.len != 16)
        return;
    if (job->reloaded) /* its record is as on disk; it is recovered first, and then hears of it */
        return;
    struct coalloc_event event = {.part = p, .transaction = info->transaction.data};
    if (info->state == NUI__LOCAL__V1__JOB_STATE__JOB_RUNNING)
        event.kind = COALLOC_EV_RUNNING;
    else if (!ended_event (info, &event))
        return;
    uint8_t transaction[16];
    memcpy (transaction, info->transaction.data, sizeof transaction);
    event.transaction = transaction;
    group_step (job, job->record, &event);
}

static void group_recover (struct gridjob *job)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    struct coalloc_event event = {.kind = COALLOC_EV_RECOVER};
    if (!slide_event (job, COALLOC_EV_RECOVER))
        return;
    if (job->record->phase == COALLOC_NEW || group_waits (job)) {
        group_wake (job);
        return;
    }
    terms_recover (job);
    group_step (job, job->record, &event);
    /* What was heard before the crash, but perhaps not yet stepped. */
    for (uint32_t p = 0; job_live (metad, number) == job && !job->reloaded && p < job->part_count;
         p++)
        if (job->part[p].info)
            group_heard (job, p);
}

const struct job_driver group_driver = {.wake = group_wake, .recover = group_recover};
