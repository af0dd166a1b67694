#include "meta/svc/job.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/svc/group.h"
#include "meta/svc/gridlicence.h"
#include "meta/svc/lead.h"
#include "meta/svc/loss.h"
#include "meta/svc/hooks.h"
#include "meta/svc/peers.h"
#include "meta/svc/single.h"
#include "meta/svc/renew.h"
#include "meta/svc/sites.h"
#include "meta/svc/slide.h"
#include "meta/svc/survey.h"
#include "meta/svc/waits.h"
#include "proto/base/text.h"
#include "proto/rpc/pbguard.h"

struct watcher {
    struct gridjob *job;
    struct rpccall *call;
    struct watcher *next;
    bool full;      /* stop until the ready hook */
    bool behind;    /* changed while full */
    bool told;
    uint64_t change; /* what it was told last */
};

static void watchers_tell (struct gridjob *job);

/* ---- making and freeing */

bool job_ended (const struct gridjob *job)
{
    return job->state >= NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
}

bool job_over (const struct gridjob *job)
{
    return job_ended (job) && !lead_untold (job);
}

Nui__Meta__V1__GridJobState job_state (const struct gridjob *job)
{
    return lead_untold (job) ? job->lead->before : job->state;
}

bool job_is_group (const struct gridjob *job)
{
    return job->part_count > 1 || job->record;
}

bool info_ended (const JobInfo *info)
{
    return info && info->state >= NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED;
}

/* Nothing is to be done with it here. One of another's that asks for licences counts in the share of who took it. */
static bool is_kept_on_disk (const struct gridjob *job)
{
    if (lead_is_elsewhere (job))
        return job_ended (job) || !job->licensed || !lead_is_own (job);
    return job_ended (job) && !lead_waits (job);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct gridjob *job = arg;
    struct err err;
    (void)fd;
    (void)what;
    err_clear (&err);
    if (job->unsaved && !job_is_group (job) && job_save (job, false, &err)) {
        job_timer (job, US_PER_S);
        return;
    }
    if (is_kept_on_disk (job)) {
        if (!job->watchers)
            job_destroy (job);
    } else if (job_ended (job) || lead_is_elsewhere (job)) {
        return;
    } else if (job_is_group (job) && job->reloaded) {
        job->reloaded = false;
        group_recover (job);
    } else if (job_is_group (job)) {
        group_wake (job);
    } else {
        job->reloaded = false;
        single_wake (job);
    }
}

struct gridjob *job_create (struct metad *metad, EnvelopeMessage *envelope, JobMessage *body,
                            const char *submitter, struct err *err)
{
    struct gridjob *job = calloc (1, sizeof *job);
    if (job) {
        job->metad = metad;
        job->envelope = envelope;
        job->job = body;
        job->part_count = (uint32_t)body->n_components;
        job->part = calloc (body->n_components, sizeof *job->part);
        job->timer = evtimer_new (metad->base, on_timer, job);
    } else {
        nui__common__v1__envelope__free_unpacked (envelope, NULL);
        nui__common__v1__job__free_unpacked (body, NULL);
    }
    if (!job || !job->part || !job->timer) {
        err_set (err, ERR_NOMEM, "no memory for a job");
        job_destroy (job);
        return NULL;
    }
    snprintf (job->submitter, sizeof job->submitter, "%s", submitter);
    for (uint32_t p = 0; p < job->part_count; p++)
        snprintf (job->part[p].name, sizeof job->part[p].name, "%s", body->components[p]->name);
    job->state = NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
    return job;
}

void job_destroy (struct gridjob *job)
{
    if (!job)
        return;
    if (job->number) {
        HASH_DEL (job->metad->jobs, job);
        gridlicence_job_remove (job);
    }
    lead_free (job);
    for (uint32_t p = 0; job->part && p < job->part_count; p++) {
        if (job->part[p].info)
            nui__local__v1__job_info__free_unpacked (job->part[p].info, NULL);
        if (job->part[p].peer)
            nui__common__v1__peer__free_unpacked (job->part[p].peer, NULL);
        if (job->part[p].next_peer)
            nui__common__v1__peer__free_unpacked (job->part[p].next_peer, NULL);
        if (job->part[p].answers)
            nui__meta__v1__site_answers__free_unpacked (job->part[p].answers, NULL);
    }
    job_unwatch (job);
    free (job->part);
    free (job->refused_by);
    survey_destroy (job->survey);
    coalloc_destroy (job->record);
    coalloc_destroy (job->slide);
    if (job->timer)
        event_free (job->timer);
    nui__common__v1__envelope__free_unpacked (job->envelope, NULL);
    nui__common__v1__job__free_unpacked (job->job, NULL);
    free (job);
}

void jobs_destroy (struct metad *metad)
{
    struct gridjob *job, *next;
    HASH_ITER (hh, metad->jobs, job, next)
    {
        job_destroy (job);
    }
}

void job_timer (struct gridjob *job, duration_us delay)
{
    struct timeval tv;
    duration_us max = 30 * US_PER_S; /* so that a clock that steps is noticed */
    delay = delay > max ? max : delay;
    tv.tv_sec = (time_t)(delay / US_PER_S);
    tv.tv_usec = (suseconds_t)(delay % US_PER_S);
    evtimer_add (job->timer, &tv);
}

void job_retire (struct gridjob *job)
{
    if (is_kept_on_disk (job) && !job->watchers)
        job_timer (job, 0);
}

static void job_number (struct gridjob *job, uint64_t number)
{
    job->number = number;
    if (number > job->metad->number_max)
        job->metad->number_max = number;
    snprintf (job->id, sizeof job->id, "grid.%llu", (unsigned long long)number);
    HASH_ADD (hh, job->metad->jobs, number, sizeof job->number, job);
    gridlicence_job_add (job);
}

/* ---- disk */

static struct metastore_blob pack (const ProtobufCMessage *message, struct arena *arena)
{
    struct metastore_blob blob = {NULL, 0};
    if (!message)
        return blob;
    blob.len = protobuf_c_message_get_packed_size (message);
    uint8_t *bytes = arena_alloc (arena, blob.len);
    protobuf_c_message_pack (message, bytes);
    blob.bytes = bytes;
    return blob;
}

static int parts_save (struct gridjob *job, bool all, struct arena *arena, struct err *err)
{
    int rc = 0;
    for (uint32_t p = 0; p < job->part_count && rc == 0; p++) {
        struct jobpart *part = &job->part[p];
        if (!part->dirty && !all)
            continue;
        struct component_row row = {.index = p, .name = part->name, .site = part->site,
                                    .site_job_id = part->site_job_id,
                                    .next_job_id = part->next_job_id};
        row.info = pack (part->info ? &part->info->base : NULL, arena);
        row.peer = pack (part->peer ? &part->peer->base : NULL, arena);
        row.next_peer = pack (part->next_peer ? &part->next_peer->base : NULL, arena);
        row.answers = pack (part->answers ? &part->answers->base : NULL, arena);
        rc = metastore_component_save (job->metad->store, job->number, &row, err);
    }
    return rc;
}

static struct job_row row_of (const struct gridjob *job)
{
    struct job_row row = {
        .number = job->number,
        .submitter = job->submitter,
        .name = job->job->name,
        .account = job->job->account,
        .submit_us = job->submit_us,
        .state = (int32_t)job->state,
        .ended = job_ended (job),
        .reason_code = job->reason.code,
        .reason_text = job->reason.text,
        .start_us = job->start_us,
        .start_is_estimate = job->start_is_estimate,
        .end_us = job->end_us,
        .price = job->price,
        .attempts = job->attempts,
        .change = job->change,
        .cancel_wanted = job->cancel_wanted,
        .site = job->site,
        .site_attempt = job->site_attempt,
        .place = (int32_t)job->place,
        .shape = job->shape,
        .held = job->held,
        .attempt_last = job->attempt_last,
        .retries = job->retries,
        .retry_us = job->retry_us,
        .contact_us = job->contact_us,
        .move_stage = (int32_t)job->move.stage,
        .move_site = job->move.site,
        .move_job_id = job->move.site_job_id,
        .move_attempt = job->move.attempt,
        .move_shape = job->move.shape,
        .move_price = job->move.price,
    };
    memcpy (row.uuid.b, job->job->uuid.data, sizeof row.uuid.b);
    return row;
}

int job_insert (struct gridjob *job, uint64_t *number_out, struct err *err)
{
    struct metastore *store = job->metad->store;
    struct arena *arena = arena_create (0);
    if (!job->submit_us)
        job->submit_us = clock_now_us ();
    const struct peers *peers = job->metad->peers;
    if (peers)
        job->change = 1; /* the first version that there is */
    struct job_row row = row_of (job);
    row.envelope = pack (&job->envelope->base, arena);
    int rc = metastore_begin (store, err);
    if (rc)
        goto out;
    if (peers)
        rc = metastore_job_number (store, peers->count, peers->self, &row.number, err);
    if (rc == 0)
        rc = metastore_job_insert (store, &row, number_out, err);
    if (rc == 0) {
        job_number (job, *number_out);
        rc = parts_save (job, true, arena, err);
        if (rc == 0 && job->record)
            rc = metastore_coalloc_save (store, job->number, METASTORE_PRESENT, job->record, err);
        if (rc == 0)
            rc = lead_begin (job, err);
    }
    if (rc == 0)
        rc = metastore_commit (store, err);
    if (rc && job->number) {
        HASH_DEL (job->metad->jobs, job);
        gridlicence_job_remove (job);
        job->number = 0;
    }
    if (rc)
        metastore_rollback (store);
    else
        lead_saved (job);
out:
    arena_destroy (arena);
    return rc;
}

static int records_save (struct gridjob *job, struct err *err)
{
    struct metastore *store = job->metad->store;
    int rc = metastore_coalloc_save (store, job->number, METASTORE_PRESENT, job->record, err);
    if (rc == 0 && slide_durable (job))
        rc = metastore_coalloc_save (store, job->number, METASTORE_SLIDE, job->slide, err);
    else if (rc == 0 && job->slide_stored)
        rc = metastore_coalloc_drop (store, job->number, METASTORE_SLIDE, err);
    return rc;
}

/* Nests in a transaction that the caller has begun (a report). */
int job_save (struct gridjob *job, bool with_record, struct err *err)
{
    struct metad *metad = job->metad;
    struct arena *arena = arena_create (0);
    bool nested = metad->in_report;
    job->change += !lead_is_elsewhere (job); /* else its version is another's to give */
    struct job_row row = row_of (job);
    int rc = nested ? 0 : metastore_begin (metad->store, err);
    if (rc)
        goto out;
    rc = metastore_job_update (metad->store, &row, err);
    if (rc == 0)
        rc = parts_save (job, false, arena, err);
    if (rc == 0 && with_record && job->record)
        rc = records_save (job, err);
    if (rc == 0)
        rc = lead_save (job, err);
    if (rc == 0)
        rc = hooks_job (job, err);
    if (rc == 0 && !nested)
        rc = metastore_commit (metad->store, err);
    if (rc && !nested)
        metastore_rollback (metad->store);
out:
    job->unsaved = rc != 0;
    if (rc == 0) {
        if (job_ended (job) && job->saved_state != job->state)
            gridlicence_freed (job);
        job->saved_state = job->state;
        job->saved_retries = job->retries;
        for (uint32_t p = 0; p < job->part_count; p++)
            job->part[p].dirty = false;
        if (with_record)
            job->slide_stored = slide_durable (job);
        lead_saved (job);
        if (!nested)
            job_tell (job);
    } else {
        char text[ERR_TEXT_MAX * 2];
        log_event (metad->log, LOG_LEVEL_ERROR, "store", "save_failed", "job=%s why=%s", job->id,
                   log_quote (err ? err->text : "", text, sizeof text));
    }
    arena_destroy (arena);
    return rc;
}

void job_tell (struct gridjob *job)
{
    watchers_tell (job);
    waits_happened (job->metad, job->number);
    job_retire (job);
}

struct gridjob *job_live (struct metad *metad, uint64_t number)
{
    struct gridjob *job = NULL;
    HASH_FIND (hh, metad->jobs, &number, sizeof number, job);
    return job;
}

/* Guarded: of a group's job the rows may be another member's. NULL: there is none, or it cannot be read. */
static ProtobufCMessage *blob_unpack (const ProtobufCMessageDescriptor *d, const struct metastore_blob *blob)
{
    return blob->len ? pbguard_unpack (d, blob->bytes, blob->len, NULL) : NULL;
}

static int parts_load (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct component_row *rows = NULL;
    uint32_t count = 0;
    int rc = metastore_component_load (job->metad->store, job->number, arena, &rows, &count, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        const struct component_row *row = &rows[i];
        if (row->index >= job->part_count)
            return err_set (err, ERR_IO, "%s: its components on disk are damaged", job->id);
        struct jobpart *part = &job->part[row->index];
        snprintf (part->site, sizeof part->site, "%s", row->site);
        snprintf (part->site_job_id, sizeof part->site_job_id, "%s", row->site_job_id);
        part->info = (JobInfo *)blob_unpack (&nui__local__v1__job_info__descriptor, &row->info);
        part->peer = (Nui__Common__V1__Peer *)blob_unpack (&nui__common__v1__peer__descriptor, &row->peer);
        snprintf (part->next_job_id, sizeof part->next_job_id, "%s", row->next_job_id);
        part->next_peer = (Nui__Common__V1__Peer *)blob_unpack (&nui__common__v1__peer__descriptor, &row->next_peer);
        part->answers =
            (Nui__Meta__V1__SiteAnswers *)blob_unpack (&nui__meta__v1__site_answers__descriptor, &row->answers);
    }
    return 0;
}

static void row_take (struct gridjob *job, const struct job_row *row)
{
    job->submit_us = row->submit_us;
    job->state = job->saved_state = (Nui__Meta__V1__GridJobState)row->state;
    snprintf (job->reason.code, sizeof job->reason.code, "%s", row->reason_code);
    text_printf (job->reason.text, sizeof job->reason.text, "%s", row->reason_text);
    job->start_us = row->start_us;
    job->start_is_estimate = row->start_is_estimate;
    job->end_us = row->end_us;
    job->price = row->price;
    job->attempts = row->attempts;
    job->change = row->change;
    job->cancel_wanted = row->cancel_wanted;
    snprintf (job->site, sizeof job->site, "%s", row->site);
    job->site_attempt = row->site_attempt;
    job->place = (enum single_phase)row->place;
    job->shape = row->shape;
    job->held = row->held;
    job->attempt_last = row->attempt_last;
    job->retries = job->saved_retries = row->retries;
    job->retry_us = row->retry_us;
    job->contact_us = row->contact_us;
    job->move.stage = (enum move_stage)row->move_stage;
    snprintf (job->move.site, sizeof job->move.site, "%s", row->move_site);
    snprintf (job->move.site_job_id, sizeof job->move.site_job_id, "%s", row->move_job_id);
    job->move.attempt = row->move_attempt;
    job->move.shape = row->move_shape;
    job->move.price = row->move_price;
}

static int records_load (struct gridjob *job, struct err *err)
{
    struct metastore *store = job->metad->store;
    int rc = metastore_coalloc_load (store, job->number, METASTORE_PRESENT, &job->record, err);
    if (rc == ERR_NOT_FOUND && job->part_count == 1)
        return 0; /* its licences were a site's when it was taken */
    if (rc)
        return rc;
    rc = metastore_coalloc_load (store, job->number, METASTORE_SLIDE, &job->slide, err);
    job->slide_stored = rc == 0;
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

static struct gridjob *job_load (struct metad *metad, uint64_t number, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct gridjob *job = NULL;
    struct job_row row;
    if (metastore_job_load (metad->store, number, arena, &row, err))
        goto out;
    EnvelopeMessage *envelope =
        (EnvelopeMessage *)blob_unpack (&nui__common__v1__envelope__descriptor, &row.envelope);
    JobMessage *body = envelope ? (JobMessage *)pbguard_unpack (&nui__common__v1__job__descriptor, envelope->body.data,
                                                                envelope->body.len, NULL)
                                : NULL;
    if (!body || body->n_components == 0) {
        err_set (err, ERR_IO, "grid.%llu: its envelope on disk is damaged",
                 (unsigned long long)number);
        if (envelope)
            nui__common__v1__envelope__free_unpacked (envelope, NULL);
        if (body)
            nui__common__v1__job__free_unpacked (body, NULL);
        goto out;
    }
    job = job_create (metad, envelope, body, row.submitter, err);
    if (!job)
        goto out;
    job_number (job, number);
    row_take (job, &row);
    renew_loaded (job);
    int rc = parts_load (job, arena, err);
    if (rc == 0 && (job->part_count > 1 || job->licensed))
        rc = records_load (job, err);
    if (rc == 0)
        rc = lead_load (job, arena, err);
    if (rc) {
        job_destroy (job);
        job = NULL;
    }
out:
    arena_destroy (arena);
    return job;
}

struct gridjob *job_get (struct metad *metad, uint64_t number, struct err *err)
{
    struct gridjob *job = job_live (metad, number);
    if (job)
        return job;
    job = job_load (metad, number, err);
    if (job)
        job_retire (job);
    return job;
}

void job_reload (struct metad *metad, uint64_t number)
{
    struct gridjob *old = job_live (metad, number);
    struct watcher *watchers = NULL;
    struct err err;
    if (old) {
        watchers = old->watchers;
        old->watchers = NULL;
        job_destroy (old);
    }
    err_clear (&err);
    struct gridjob *job = job_load (metad, number, &err);
    for (struct watcher *next; watchers; watchers = next) {
        next = watchers->next;
        if (!job) {
            rpccall_on_cancel (watchers->call, NULL, NULL);
            rpccall_on_ready (watchers->call, NULL, NULL);
            rpccall_fail (watchers->call, &err);
            metad->watchers--;
            free (watchers);
            continue;
        }
        watchers->job = job;
        watchers->next = job->watchers;
        job->watchers = watchers;
    }
    if (job && !job_ended (job) && !lead_is_elsewhere (job))
        job->reloaded = true;
    if (job)
        job_timer (job, US_PER_S); /* what could not be written then may be written now */
}

/* ---- changing */

void job_reason (struct gridjob *job, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    coalloc_reason_set (&job->reason, code, fmt, ap);
    va_end (ap);
}

void job_files_reason (struct gridjob *job)
{
    const struct jobpart *failed = NULL;
    if (job->state != NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED ||
        (job->reason.code[0] && strncmp (job->reason.code, "StageOut", 8) != 0))
        return;
    job_reason (job, "", "%s", "");
    for (uint32_t p = 0; p < job->part_count; p++) {
        const JobInfo *info = job->part[p].info;
        if (info && strcmp (info->stage_out, "Leaving") == 0) {
            job_reason (job, "StageOut", "its files are being taken away");
            return;
        }
        if (!failed && info && strcmp (info->stage_out, "Failed") == 0)
            failed = &job->part[p];
    }
    if (!failed)
        return;
    const char *why = failed->info->reason ? failed->info->reason->text : "";
    if (job->part_count > 1)
        job_reason (job, "StageOutFailed", "component %s at %s: %s", failed->name, failed->site, why);
    else
        job_reason (job, "StageOutFailed", "%s", why);
}

void job_end (struct gridjob *job, Nui__Meta__V1__GridJobState state)
{
    job->state = state;
    if (!job->end_us)
        job->end_us = clock_now_us ();
    job->start_is_estimate = false;
    assert (job_ended (job));
}

uint32_t job_part (const struct gridjob *job, const char *name)
{
    for (uint32_t p = 0; p < job->part_count; p++)
        if (strcmp (job->part[p].name, name) == 0)
            return p;
    return UINT32_MAX;
}

/* ---- telling */

static Nui__Common__V1__Reason *reason_message (const char *code, const char *text,
                                                struct arena *arena)
{
    Nui__Common__V1__Reason *reason = arena_new (arena, Nui__Common__V1__Reason);
    nui__common__v1__reason__init (reason);
    reason->code = arena_strdup (arena, code);
    reason->text = arena_strdup (arena, text);
    return reason;
}

/* A site that holds a part of a live job and does not report is what the user should hear of. */
static const char *silent_site (const struct gridjob *job)
{
    if (job_ended (job))
        return NULL;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct site *site =
            job->part[p].site[0] ? site_find (job->metad, job->part[p].site) : NULL;
        bool silent = site && !site_up (site) &&
                      !site_worth_asking (job->metad, site, clock_monotonic_us ());
        if ((silent || (site && loss_reported (job, job->part[p].site))) &&
            !info_ended (job->part[p].info))
            return job->part[p].site;
    }
    return NULL;
}

Nui__Meta__V1__JobStatus *job_status (struct gridjob *job, struct arena *arena)
{
    Nui__Meta__V1__JobStatus *status = arena_new (arena, Nui__Meta__V1__JobStatus);
    nui__meta__v1__job_status__init (status);
    const char *silent = silent_site (job);
    status->grid_job_id = job->id;
    status->state = job_state (job);
    if (job->lead && !job_over (job) && !peers_lead (job->metad))
        status->reason = reason_message (
            "Alone", "this metascheduler reaches too few of its group: another may have gone on with the job", arena);
    else if (lead_untold (job))
        status->reason = reason_message ("Ending", "its end is being made known to the group", arena);
    else if (silent && loss_reported (job, silent))
        status->reason = reason_message (
            LOSS_CODE, arena_printf (arena, "site %s is lost: it has not reported for more than %lld s; the job %s", silent,
                                     (long long)(job->metad->config->site_lost / US_PER_S),
                                     job->contact_us ? "is given to another" : "stays with it"),
            arena);
    else if (silent)
        status->reason = reason_message (
            "SiteDown", arena_printf (arena, "site %s has not reported for %d s", silent, SITE_UP_S),
            arena);
    else
        status->reason = reason_message (job->reason.code, job->reason.text, arena);
    status->name = job->job->name;
    status->submitter = job->submitter;
    status->account = job->job->account;
    status->submit_us = job->submit_us;
    status->start_us = job->start_us;
    status->end_us = lead_untold (job) ? 0 : job->end_us;
    status->price_micro = job->price;
    status->cost_max_micro = job->job->cost_max_micro;
    status->attempts = job->attempts;
    status->retries = job->retries;
    status->change = job->change;
    status->start_is_estimate = job->start_is_estimate;
    status->n_components = job->part_count;
    status->components = arena_array (arena, job->part_count, sizeof *status->components);
    for (uint32_t p = 0; p < job->part_count; p++) {
        Nui__Meta__V1__ComponentStatus *c = arena_new (arena, Nui__Meta__V1__ComponentStatus);
        nui__meta__v1__component_status__init (c);
        const struct site *site =
            job->part[p].site[0] ? site_find (job->metad, job->part[p].site) : NULL;
        c->name = job->part[p].name;
        c->site = job->part[p].site;
        if (site)
            c->site_server = arena_strdup (arena, site_server (site));
        c->job = job->part[p].info;
        if (job->part[p].answers) {
            c->n_answers = job->part[p].answers->n_answers;
            c->answers = job->part[p].answers->answers;
        }
        status->components[p] = c;
    }
    return status;
}

static void watcher_free (struct watcher *watcher)
{
    struct gridjob *job = watcher->job;
    struct watcher **at = &job->watchers;
    while (*at != watcher)
        at = &(*at)->next;
    *at = watcher->next;
    job->metad->watchers--;
    free (watcher);
}

static void watcher_send (struct watcher *watcher)
{
    struct arena *arena;
    if (watcher->told && watcher->change == watcher->job->change)
        return;
    if (watcher->full) {
        watcher->behind = true;
        return;
    }
    arena = arena_create (0);
    watcher->behind = false;
    watcher->told = true;
    watcher->change = lead_untold (watcher->job) ? 0 : watcher->job->change; /* its end is told under the same number */
    watcher->full = !rpccall_send (watcher->call, &job_status (watcher->job, arena)->base);
    arena_destroy (arena);
}

static void watcher_cancelled (void *arg)
{
    struct watcher *watcher = arg;
    struct gridjob *job = watcher->job;
    struct rpccall *call = watcher->call;
    watcher_free (watcher);
    rpccall_finish (call, RPC_CANCELLED, NULL);
    job_retire (job);
}

static void watcher_end (struct watcher *watcher)
{
    struct rpccall *call = watcher->call;
    rpccall_on_cancel (call, NULL, NULL);
    rpccall_on_ready (call, NULL, NULL);
    watcher_free (watcher);
    rpccall_finish (call, RPC_OK, NULL);
}

static void watcher_ready (void *arg)
{
    struct watcher *watcher = arg;
    struct gridjob *job = watcher->job;
    watcher->full = false;
    if (watcher->behind)
        watcher_send (watcher);
    if (job_over (job) && !watcher->behind) {
        watcher_end (watcher);
        job_retire (job);
    }
}

static void watchers_tell (struct gridjob *job)
{
    struct watcher *next;
    for (struct watcher *watcher = lead_untold (job) ? NULL : job->watchers; watcher; watcher = next) {
        next = watcher->next;
        watcher_send (watcher);
        if (job_over (job) && !watcher->behind)
            watcher_end (watcher);
    }
}

void job_unwatch (struct gridjob *job)
{
    while (job->watchers) {
        struct rpccall *call = job->watchers->call;
        rpccall_on_cancel (call, NULL, NULL);
        rpccall_on_ready (call, NULL, NULL);
        watcher_free (job->watchers);
        rpccall_finish (call, RPC_UNAVAILABLE, "the metascheduler stops");
    }
}

void job_watch (struct gridjob *job, struct rpccall *call)
{
    struct watcher *watcher = calloc (1, sizeof *watcher);
    if (!watcher) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "no memory to watch a job");
        return;
    }
    watcher->job = job;
    watcher->call = call;
    watcher->next = job->watchers;
    job->watchers = watcher;
    job->metad->watchers++;
    rpccall_on_cancel (call, watcher_cancelled, watcher);
    rpccall_on_ready (call, watcher_ready, watcher);
    watcher_send (watcher);
    if (job_over (job) && !watcher->behind) {
        watcher_end (watcher);
        job_retire (job);
    }
}
