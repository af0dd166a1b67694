/* A job of the grid in memory: made, found, timed, changed and freed. It is the hub of the rooms around it: it knows none
 * of them by name, and tells them of what happens to a job by the table of listeners (struct metad_part), and the one
 * that drives it by its struct job_driver. job_store.c is its way to disk, job_watch.c what users see of it. */
#include "meta/job/job_i.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/job/peers.h"
#include "proto/job/delegation.h"
#include "proto/job/element.h"
#include "proto/rpc/pbcopy.h"

/* ---- what it is */

bool job_ended (const struct gridjob *job)
{
    return job->state >= NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
}

/* ---- who leads it */

bool job_is_elsewhere (const struct gridjob *job)
{
    return job->lead && strcmp (job->lead->leader, peers_self (job->metad->peers)) != 0;
}

bool job_is_own (const struct gridjob *job)
{
    const struct peers *peers = job->metad->peers;
    return !job->lead || (job->number - 1) % peers->count == peers->self;
}

uint64_t job_epoch (const struct gridjob *job)
{
    uint64_t ballot = job->lead ? job->lead->ballot : 0;
    return ballot << 32 | metastore_epoch (job->metad->store);
}

/* Votes for it are being asked for. */
static bool job_unvoted (const struct gridjob *job)
{
    return job->lead && job->lead->listed;
}

bool job_untold (const struct gridjob *job)
{
    return job->lead && job->lead->open && job_ended (job);
}

int job_led_here (const struct gridjob *job, struct err *err)
{
    const struct peers *peers = job->metad->peers;
    if (!job_is_elsewhere (job) && job_untold (job))
        return err_set (err, ERR_UNAVAILABLE, "job %s may have ended: try again", job->id);
    if (!job_is_elsewhere (job) || job_over (job))
        return 0;
    if (peers_silent (peers, job->lead->leader))
        return err_set (
            err, ERR_UNAVAILABLE,
            "metascheduler %s led %s and is silent; another will go on with it: try again",
            job->lead->leader, job->id);
    return err_set (err, ERR_CONFLICT, "metascheduler %s of the group goes on with %s: ask there",
                    job->lead->leader, job->id);
}

bool job_over (const struct gridjob *job)
{
    return job_ended (job) && !job_untold (job);
}

Nui__Meta__V1__GridJobState job_state (const struct gridjob *job)
{
    return job_untold (job) ? job->lead->before : job->state;
}

bool job_is_group (const struct gridjob *job)
{
    return job->part_count > 1 || job->record;
}

time_us job_expires (const struct gridjob *job)
{
    time_us more = delegation_says (job->envelope);
    return more > job->job->expires_us ? more : job->job->expires_us;
}

const struct job_driver *job_driver (const struct gridjob *job)
{
    return job_is_group (job) ? job->metad->group : job->metad->single;
}

bool info_ended (const JobInfo *info)
{
    return info && info->state >= NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED;
}

/* ---- making and freeing */

/* Nothing is to be done with it here. One of another's that asks for licences counts in the share of who took it. */
static bool is_kept_on_disk (const struct gridjob *job)
{
    if (job_is_elsewhere (job))
        return job_ended (job) || !job->licensed || !job_is_own (job);
    return job_ended (job) && !job_unvoted (job);
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
    } else if (job_ended (job) || job_is_elsewhere (job)) {
        return;
    } else if (job->reloaded) {
        job->reloaded = false;
        job_driver (job)->recover (job);
    } else {
        job_driver (job)->wake (job);
    }
}

static void signed_free (const struct arraybody *array, EnvelopeMessage *envelope, JobMessage *body)
{
    if (array) {
        arraybody_envelope_free (array, envelope);
        element_view_free (body);
    } else {
        nui__common__v1__envelope__free_unpacked (envelope, NULL);
        nui__common__v1__job__free_unpacked (body, NULL);
    }
}

EnvelopeMessage *job_envelope_with (const struct gridjob *job,
                                    const ProtobufCBinaryData *delegation)
{
    EnvelopeMessage with = *job->envelope;
    if (job->body)
        return arraybody_envelope (job->body, job->element, delegation);
    with.delegation = *delegation;
    EnvelopeMessage *copy = (EnvelopeMessage *)pbcopy (&with.base);
    if (!copy)
        abort ();
    return copy;
}

void job_envelope_free (const struct gridjob *job, EnvelopeMessage *envelope)
{
    signed_free (job->body, envelope, NULL);
}

/* array: what envelope and body are views of; NULL: of nothing. */
static struct gridjob *create (struct metad *metad, struct arraybody *array,
                               EnvelopeMessage *envelope, JobMessage *body, const char *submitter,
                               struct err *err)
{
    struct gridjob *job = calloc (1, sizeof *job);
    if (job) {
        job->metad = metad;
        job->envelope = envelope;
        job->job = body;
        job->body = array;
        if (array)
            arraybody_hold (array);
        job->part_count = (uint32_t)body->n_components;
        job->part = calloc (body->n_components, sizeof *job->part);
        job->timer = evtimer_new (metad->base, on_timer, job);
    } else {
        signed_free (array, envelope, body);
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

struct gridjob *job_create (struct metad *metad, EnvelopeMessage *envelope, JobMessage *body,
                            const char *submitter, struct err *err)
{
    return create (metad, NULL, envelope, body, submitter, err);
}

struct gridjob *job_create_element (struct metad *metad, struct arraybody *body, uint32_t element,
                                    const ProtobufCBinaryData *delegation, const char *submitter,
                                    struct err *err)
{
    JobMessage *view = arraybody_job (body, element, err);
    if (!view)
        return NULL;
    struct gridjob *job =
        create (metad, body, arraybody_envelope (body, element, delegation), view, submitter, err);
    if (job)
        job->element = element;
    return job;
}

void job_destroy (struct gridjob *job)
{
    if (!job)
        return;
    job_unlist (job);
    parts_tell (job->metad, job_freed, job);
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
    if (job->timer)
        event_free (job->timer);
    signed_free (job->body, job->envelope, job->job);
    arraybody_drop (job->metad, job->body);
    free (job);
}

void jobs_destroy (struct metad *metad)
{
    struct gridjob *job, *next;
    HASH_ITER (hh, metad->jobs, job, next) {
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

void job_list (struct gridjob *job, uint64_t number)
{
    job->number = number;
    if (number > job->metad->number_max)
        job->metad->number_max = number;
    if (job->array)
        snprintf (job->id, sizeof job->id, "grid.%llu[%u]", (unsigned long long)job->array,
                  job->element - 1);
    else
        snprintf (job->id, sizeof job->id, "grid.%llu", (unsigned long long)number);
    if (job->body)
        arraybody_list (job->metad, job->body, job->array);
    HASH_ADD (hh, job->metad->jobs, number, sizeof job->number, job);
    parts_tell (job->metad, job_listed, job);
}

void job_unlist (struct gridjob *job)
{
    if (!job->number)
        return;
    HASH_DEL (job->metad->jobs, job);
    parts_tell (job->metad, job_unlisted, job);
    job->number = 0;
}

void job_tell (struct gridjob *job)
{
    job_watchers_tell (job);
    parts_tell (job->metad, job_told, job->metad, job->number);
    job_retire (job);
}

struct gridjob *job_live (struct metad *metad, uint64_t number)
{
    struct gridjob *job = NULL;
    HASH_FIND (hh, metad->jobs, &number, sizeof number, job);
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
    job_watchers_take (metad, job, watchers, &err);
    if (job && !job_ended (job) && !job_is_elsewhere (job))
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
        job_reason (job, "StageOutFailed", "component %s at %s: %s", failed->name, failed->site,
                    why);
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
