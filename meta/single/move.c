/* A queued job goes to a better site by four stages (move.h). The new site has it withheld before the first is asked to give it
 * up, so that it never loses its place, and it is let go only when the first certainly has given it up, so that it never runs
 * twice. Called by single.c while a site has the job. */
#include "meta/single/move.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/place/survey.h"
#include "meta/job/check.h"
#include "meta/lead/lead.h"
#include "meta/job/peers.h"
#include "meta/single/single.h"
#include "meta/job/seal.h"
#include "meta/job/sites.h"

#define MOVE_TIMEOUT (10 * US_PER_S)
#define MOVE_AGAIN (2 * US_PER_S)

/* One request under way, for the stage in which it was sent. */
struct move_call {
    struct metad *metad;
    uint64_t number;
    uint32_t attempt;
    enum move_stage stage;
};

static bool save (struct gridjob *job)
{
    struct err err;
    err_clear (&err);
    if (job_save (job, false, &err) == 0)
        return true;
    job_timer (job, MOVE_AGAIN);
    return false;
}

/* Durable, then on with it at the next turn. */
static void stage_set (struct gridjob *job, enum move_stage stage)
{
    log_event (job->metad->log, LOG_LEVEL_INFO, "move", "stage", "job=%s from=%s to=%s stage=%d",
               job->id, job->part[0].site, job->move.site, (int)stage);
    job->move.stage = stage;
    if (save (job) && !job_ended (job))
        job_timer (job, 0);
}

/* Over: what the site that has the job said in the meantime counts now. */
static void move_over (struct gridjob *job)
{
    const JobInfo *info = job->part[0].info;
    job->move.stage = MOVE_NONE;
    if (info && info_ended (info) && info->attempt == job->site_attempt)
        single_heard (job);
    stage_set (job, MOVE_NONE);
}

/* The job when its move still waits for this call. */
static struct gridjob *call_end (struct move_call *call)
{
    struct gridjob *job = job_live (call->metad, call->number);
    if (job && (call->metad->stopping || job_is_elsewhere (job)))
        job = NULL;
    if (job) {
        job->busy = false;
        if (job_ended (job) || job->move.stage != call->stage ||
            job->move.attempt != call->attempt) {
            job_timer (job, 0);
            job = NULL;
        }
    }
    free (call);
    return job;
}

static void call_send (struct gridjob *job, const char *site_name, const char *method,
                       const ProtobufCMessage *request,
                       void (*done) (void *arg, const struct rpc_result *result))
{
    struct site *site = site_find (job->metad, site_name);
    struct move_call *call = malloc (sizeof *call);
    if (!site || !call) {
        free (call);
        job_timer (job, MOVE_AGAIN);
        return;
    }
    *call = (struct move_call){job->metad, job->number, job->move.attempt, job->move.stage};
    job->busy = true;
    link_call (site->link, method, request, MOVE_TIMEOUT, done, call);
}

static bool waits (const struct gridjob *job)
{
    return job->state == NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED && !job->cancel_wanted &&
           !info_ended (job->part[0].info);
}

/* ---- looking */

duration_us move_interval (const struct gridjob *job)
{
    const struct metad_config *config = job->metad->config;
    const ComponentMessage *component = job->job->components[0];
    bool elsewhere = false;
    for (uint32_t i = 0; i < job->metad->site_count; i++) {
        const struct site *site = job->metad->site[i];
        elsewhere = elsewhere || (site->configured && strcmp (site->name, job->site) != 0 &&
                                  component_allows (component, site->name));
    }
    /* A job that came with a hold would be held again. */
    if (!config->move_interval || !elsewhere || job->job->held || job->place != SINGLE_PLACED ||
        !waits (job))
        return INT64_MAX;
    uint64_t random;
    random_bytes (&random, sizeof random);
    return config->move_interval / 2 +
           (duration_us)(random %
                         (uint64_t)(config->move_interval + 1)); /* not all at one moment */
}

/* When the site that has it expects to start it. */
static time_us stays_until (const struct gridjob *job)
{
    const JobInfo *info = job->part[0].info;
    if (info && info->forecast && info->forecast->median_us)
        return info->forecast->median_us;
    return job->start_us ? job->start_us : TIME_US_NONE;
}

static void begin (struct gridjob *job, const struct survey_offer *offer)
{
    snprintf (job->move.site, sizeof job->move.site, "%s", offer->site_name);
    job->move.site_job_id[0] = '\0';
    job->move.attempt = ++job->attempt_last;
    job->move.shape = offer->shape;
    job->move.price = offer->price;
    stage_set (job, MOVE_SENDING);
}

static void surveyed (void *arg, struct survey *survey)
{
    struct gridjob *job = call_end (arg);
    const struct metad_config *config = survey->metad->config;
    struct choose_move_policy policy = {config->move_gain, config->move_share * INT64_C (10000)};
    time_us start = TIME_US_NONE;
    const struct survey_offer *offer = NULL;
    if (job && job->place == SINGLE_PLACED && waits (job)) {
        answers_take (job, survey);
        offer = single_best (job, survey, &start);
    }
    bool dearer = offer && job_prefer (job->job) == CHOOSE_CHEAPEST && offer->price > job->price;
    if (offer && !dearer && choose_moves (stays_until (job), start, clock_now_us (), &policy))
        begin (job, offer);
    else if (job)
        single_wake (job);
    survey_destroy (survey);
}

void move_look (struct gridjob *job)
{
    struct arena *arena = arena_create (0);
    struct survey_pair *pair = NULL;
    char (*not_these)[COALLOC_NAME_MAX] =
        arena_array (arena, job->refused_count + 1u, sizeof *not_these);
    struct move_call *call = malloc (sizeof *call);
    if (!call)
        abort ();
    for (uint32_t i = 0; i < job->refused_count; i++)
        memcpy (not_these[i], job->refused_by[i], sizeof *not_these);
    memcpy (not_these[job->refused_count], job->site, sizeof *not_these);
    uint32_t count =
        survey_candidates (job->metad, job->job, (const char (*)[COALLOC_NAME_MAX])not_these,
                           job->refused_count + 1, arena, &pair);
    *call = (struct move_call){job->metad, job->number, job->move.attempt, MOVE_NONE};
    job->busy = true;
    survey_start (job->metad, job->envelope, job->job, pair, count, 0, surveyed, call);
    arena_destroy (arena);
}

/* ---- SENDING */

static void sent (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    const Nui__Local__V1__SubmitReply *reply = (const Nui__Local__V1__SubmitReply *)result->reply;
    if (!job)
        return;
    if (result->status != RPC_OK && single_uncertain (result->status)) {
        job_timer (job, MOVE_AGAIN);
    } else if (result->status != RPC_OK || !reply->accepted) {
        single_refused_add (job, job->move.site);
        move_over (job);
    } else {
        snprintf (job->move.site_job_id, sizeof job->move.site_job_id, "%s", reply->site_job_id);
        stage_set (job, waits (job) ? MOVE_WITHDRAWING : MOVE_UNDOING);
    }
}

static void send_withheld (struct gridjob *job)
{
    struct arena *arena = arena_create (0);
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    request.envelope = seal_envelope (job, 0, job->move.site, SEAL_LONGEST, arena);
    if (!request.envelope) {
        arena_destroy (arena);
        job_timer (job, MOVE_AGAIN);
        return;
    }
    request.component = job->part[0].name;
    request.grid_job_id = job->id;
    request.attempt = job->move.attempt;
    request.shape = job->move.shape;
    request.depends_met = true;
    request.withheld = true;
    request.contact_us = job->contact_us;
    request.released = job->retries > 0 || job->held == JOB_RELEASED;
    request.epoch = job->lead ? job_epoch (job) : 0;
    call_send (job, job->move.site, "Submit", &request.base, sent);
    arena_destroy (arena);
}

/* ---- WITHDRAWING */

/* The first site has given it up: the caller saves. */
static void switch_over (struct gridjob *job)
{
    struct jobpart *part = &job->part[0];
    job_reason (job, "Moved", "moved from %s to %s, where it starts sooner", job->site,
                job->move.site);
    memcpy (job->site, job->move.site, sizeof job->site);
    memcpy (part->site, job->move.site, sizeof part->site);
    memcpy (part->site_job_id, job->move.site_job_id, sizeof part->site_job_id);
    if (part->info)
        nui__local__v1__job_info__free_unpacked (part->info, NULL);
    part->info = NULL;
    part->dirty = true;
    job->site_attempt = job->move.attempt;
    job->shape = job->move.shape;
    job->price = job->move.price;
    job->state = NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED;
    job->start_us = job->end_us = 0;
    job->move.stage = MOVE_GOING;
}

/* Taken out of the first site's queue by this metascheduler, or its group, and by nobody else. */
static bool given_up (const struct gridjob *job, const JobInfo *info)
{
    static const char by[] = "cancelled by ";
    return info->state == NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED && !info->start_us &&
           info->reason && strncmp (info->reason->text, by, sizeof by - 1) == 0 &&
           peers_is_us (job->metad, info->reason->text + sizeof by - 1);
}

static void asked_how_it_ended (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    const JobInfo *info = (const JobInfo *)result->reply;
    if (!job)
        return;
    if (result->status == RPC_OK && !info_ended (info)) {
        job_timer (job, MOVE_AGAIN);
    } else if (result->status == RPC_OK && !given_up (job, info)) {
        stage_set (job, MOVE_UNDOING);
    } else if (result->status == RPC_OK || result->status == RPC_NOT_FOUND) {
        switch_over (job);
        stage_set (job, MOVE_GOING);
    } else {
        job_timer (job, MOVE_AGAIN);
    }
}

static void withdrawn (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    const Nui__Local__V1__CancelReply *reply = (const Nui__Local__V1__CancelReply *)result->reply;
    if (!job)
        return;
    if (result->status == RPC_OK && reply->cancelled) {
        switch_over (job);
        stage_set (job, MOVE_GOING);
    } else if (result->status == RPC_OK && reply->kept) {
        stage_set (job, MOVE_UNDOING);
    } else if (result->status == RPC_OK || result->status == RPC_NOT_FOUND) {
        /* Ended before: by us, when that answer was lost, or by itself. */
        Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
        request.job_id = job->part[0].site_job_id;
        call_send (job, job->site, "Job", &request.base, asked_how_it_ended);
    } else {
        job_timer (job, MOVE_AGAIN);
    }
}

static void withdraw (struct gridjob *job)
{
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    request.job_id = job->part[0].site_job_id;
    request.waiting_only = request.moving = true;
    call_send (job, job->site, "Cancel", &request.base, withdrawn);
}

/* ---- GOING and UNDOING */

static void gone (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    if (!job)
        return;
    if (result->status != RPC_OK && single_uncertain (result->status))
        job_timer (job, MOVE_AGAIN);
    else /* or it does not wait there any more: its events say what became of it */
        move_over (job);
}

static void go (struct gridjob *job)
{
    Nui__Local__V1__HoldJobRequest request = NUI__LOCAL__V1__HOLD_JOB_REQUEST__INIT;
    request.job_id = job->part[0].site_job_id;
    request.withheld = true;
    request.by = (char *)"the move of the job";
    call_send (job, job->site, "Hold", &request.base, gone);
}

static void undo (struct gridjob *job)
{
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    request.job_id = job->move.site_job_id;
    call_send (job, job->move.site, "Cancel", &request.base, gone);
}

/* ---- the move's life */

void move_from_lost (struct gridjob *job)
{
    if (job->move.stage == MOVE_WITHDRAWING)
        switch_over (job);
    job_timer (job, 0);
}

void move_wake (struct gridjob *job)
{
    switch (job->move.stage) {
    case MOVE_SENDING:
        send_withheld (job);
        break;
    case MOVE_WITHDRAWING:
        if (waits (job))
            withdraw (job);
        else
            stage_set (job, MOVE_UNDOING);
        break;
    case MOVE_GOING:
        if (job->cancel_wanted)
            move_over (job); /* it is cancelled there, as it is */
        else
            go (job);
        break;
    case MOVE_UNDOING:
        undo (job);
        break;
    case MOVE_NONE:
        break;
    }
}

bool move_heard (struct gridjob *job)
{
    const JobInfo *info = job->part[0].info;
    if (job->move.stage == MOVE_NONE || job->move.stage == MOVE_GOING || !info_ended (info))
        return false;
    if (job->move.stage == MOVE_WITHDRAWING) {
        if (given_up (job, info) && !job->cancel_wanted)
            switch_over (job);
        else
            job->move.stage = MOVE_UNDOING;
    }
    job_timer (job, 0);
    return true;
}
