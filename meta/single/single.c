/* An ordinary job's way: CHOOSE, SENDING, PLACED (single.h). A choice is durable before the job is sent, with a number of its
 * own (site_attempt), since an answer that is lost must not lead to a second site: the same number is asked for again at the
 * same site, and only its refusal leads to another. */
#include "meta/single/single.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/place/survey.h"
#include "meta/job/check.h"
#include "meta/lead/lead.h"
#include "meta/job/loss.h"
#include "meta/single/move.h"
#include "meta/job/retry.h"
#include "meta/job/seal.h"
#include "meta/job/sites.h"
#include "meta/place/waits.h"
#include "proto/base/text.h"
#include "proto/job/jobcheck.h"

#define SUBMIT_TIMEOUT (10 * US_PER_S)

struct single_call {
    struct metad *metad;
    uint64_t number;
    uint32_t attempt;
};

static void choose_now (struct gridjob *job);

static struct single_call *call_new (struct gridjob *job)
{
    struct single_call *call = malloc (sizeof *call);
    if (!call)
        abort ();
    *call = (struct single_call){job->metad, job->number, job->site_attempt};
    return call;
}

/* The job a call was made for, when it still waits for that call; NULL otherwise. Frees the call. */
static struct gridjob *call_end (struct single_call *call)
{
    struct gridjob *job = job_live (call->metad, call->number);
    if (job && (job_ended (job) || job->site_attempt != call->attempt || call->metad->stopping ||
                job_is_elsewhere (job)))
        job = NULL;
    if (job)
        job->busy = false;
    free (call);
    return job;
}

static void again_later (struct gridjob *job)
{
    uint64_t random;
    random_bytes (&random, sizeof random);
    duration_us ceiling = US_PER_S << (job->failures < 4 ? job->failures : 4);
    job->failures++;
    job_timer (job, ceiling / 2 + (duration_us)(random % (uint64_t)(ceiling / 2 + 1)));
}

static bool save (struct gridjob *job)
{
    struct err err;
    err_clear (&err);
    if (job_save (job, false, &err) == 0)
        return true;
    again_later (job);
    return false;
}

static void refuse (struct gridjob *job, const struct coalloc_reason *reason)
{
    job->reason = *reason;
    job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED);
    save (job);
}

static const char cancelled_text[] = "cancelled by ";

/* For whom, as job_reason has it since single_cancel, whatever its site has said to it since; "": nobody. */
static void cancelled_by (const struct gridjob *job, char out[COALLOC_TEXT_MAX])
{
    enum { SAID = sizeof cancelled_text - 1 };
    bool said = job->cancel_wanted && strcmp (job->reason.code, "Cancelled") == 0 &&
                strncmp (job->reason.text, cancelled_text, SAID) == 0;
    snprintf (out, COALLOC_TEXT_MAX, "%s", said ? job->reason.text + SAID : "");
    out[strcspn (out, ";")] = '\0';
}

static void wait_for_reason (struct gridjob *job, const struct coalloc_reason *reason)
{
    struct coalloc_reason said = *reason;
    char by[COALLOC_TEXT_MAX];
    if (job->cancel_wanted) {
        cancelled_by (job, by);
        said = (struct coalloc_reason){"Cancelled", ""};
        text_printf (said.text, sizeof said.text, "%s%.150s; not yet at %s: %.150s", cancelled_text,
                     by, job->site, reason->text);
    }
    if (memcmp (&job->reason, &said, sizeof said) != 0) {
        job->reason = said;
        if (!save (job))
            return;
    }
    again_later (job);
}

/* ---- SENDING */

/* The site has heard of a newer leader: it is asked who that is. */
static bool is_fenced (struct gridjob *job, const struct rpc_result *result)
{
    bool fenced = job->lead && result->status == RPC_ABORTED;
    if (fenced)
        lead_take (job->metad, job->number);
    return fenced;
}

bool single_uncertain (enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_CANCELLED || status == RPC_UNKNOWN || status == RPC_INTERNAL ||
           status == RPC_ABORTED;
}

void single_refused_add (struct gridjob *job, const char *site)
{
    void *grown = realloc (job->refused_by, (job->refused_count + 1) * sizeof *job->refused_by);
    if (!grown)
        return;
    job->refused_by = grown;
    snprintf (job->refused_by[job->refused_count++], COALLOC_NAME_MAX, "%s", site);
}

/* The site certainly has no job: others may be tried. */
static void site_refused (struct gridjob *job, const char *code, const char *text)
{
    single_refused_add (job, job->site);
    job_reason (job, code && code[0] ? code : "Refused", "%s refused: %s", job->site, text);
    job->place = SINGLE_CHOOSE;
    job->state = NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
    job->part[0].site[0] = '\0';
    job->part[0].site_job_id[0] = '\0';
    job->part[0].dirty = true;
    if (job->cancel_wanted)
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    else if (++job->refusals >= job->metad->config->policy.tries_max)
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED);
    job->site[0] = '\0';
    if (save (job) && !job_ended (job))
        job_timer (job, 0);
}

/* What is to be looked at while a site has the job. */
static void placed_timer (struct gridjob *job)
{
    duration_us delay = move_interval (job);
    if (job->job->not_after_us && job->state == NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED) {
        duration_us left = job->job->not_after_us - clock_now_us ();
        left = left > 0 ? left + 1 : US_PER_S;
        delay = left < delay ? left : delay;
    }
    duration_us now = clock_monotonic_us (), lost = loss_due (job, job->site);
    if (delay != INT64_MAX && (job->look_mono <= now || now + delay < job->look_mono))
        job->look_mono = now + delay;
    if (delay != INT64_MAX || lost != INT64_MAX)
        job_timer (job,
                   delay != INT64_MAX && job->look_mono - now < lost ? job->look_mono - now : lost);
}

static void submit_done (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    if (!job || job->place != SINGLE_SENDING || is_fenced (job, result))
        return;
    if (result->status != RPC_OK && single_uncertain (result->status)) {
        struct coalloc_reason reason = {"SiteDown", ""};
        text_printf (reason.text, sizeof reason.text,
                     "site %s does not answer; it may have the job", job->site);
        wait_for_reason (job, &reason);
        return;
    }
    if (result->status != RPC_OK) {
        site_refused (job, "Refused", result->message);
        return;
    }
    const Nui__Local__V1__SubmitReply *reply = (const Nui__Local__V1__SubmitReply *)result->reply;
    if (!reply->accepted) {
        site_refused (job, reply->reason ? reply->reason->code : NULL,
                      reply->reason ? reply->reason->text : "no reason given");
        return;
    }
    job->place = SINGLE_PLACED;
    job->failures = 0;
    job->state = NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED;
    snprintf (job->part[0].site_job_id, sizeof job->part[0].site_job_id, "%s", reply->site_job_id);
    job->part[0].dirty = true;
    if (reply->start_estimate_us) {
        job->start_us = reply->start_estimate_us;
        job->start_is_estimate = true;
    }
    if (!job->cancel_wanted)
        job_reason (job, "", "%s", "");
    if (save (job) && job->cancel_wanted)
        job_timer (job, 0);
    else
        placed_timer (job);
}

static void submit_send (struct gridjob *job)
{
    struct site *site = site_find (job->metad, job->site);
    if (!site) {
        struct coalloc_reason reason = {"SiteDown", ""};
        text_printf (reason.text, sizeof reason.text,
                     "site %s may have the job and is not configured any more", job->site);
        wait_for_reason (job, &reason);
        return;
    }
    struct arena *arena = arena_create (0);
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    request.envelope = seal_envelope (job, 0, job->site, SEAL_LONGEST, arena);
    if (!request.envelope) { /* the site could not have it paid for */
        struct coalloc_reason reason = {"BankDown", SEAL_KEYLESS};
        arena_destroy (arena);
        wait_for_reason (job, &reason);
        return;
    }
    request.component = job->part[0].name;
    request.grid_job_id = job->id;
    request.attempt = job->site_attempt;
    request.shape = job->shape;
    request.depends_met = true;
    request.contact_us = job->contact_us;
    request.released = job->retries > 0 || job->held == JOB_RELEASED;
    request.epoch = job->lead ? job_epoch (job) : 0;
    job->busy = true;
    link_call (site->link, "Submit", &request.base, SUBMIT_TIMEOUT, submit_done, call_new (job));
    arena_destroy (arena);
}

/* ---- CHOOSE */

/* Why no candidate is good enough, and whether that is final. */
static void none_chosen (struct gridjob *job, const struct survey *survey)
{
    struct coalloc_reason reason = {"", ""};
    bool any = false, funded = false, cheap = false;
    if (job->refused_count) { /* nobody else has it: what a site refused for may have passed */
        job->refused_count = 0;
        again_later (job);
        return;
    }
    enum survey_verdict verdict = survey_part (survey, 0, &reason);
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        if (!offer->answered || !offer->feasible)
            continue;
        any = true;
        funded = funded || offer->funded;
        cheap = cheap || !job->job->cost_max_micro || offer->price <= job->job->cost_max_micro;
    }
    if (verdict == SURVEY_NEVER) {
        refuse (job, &reason);
        return;
    }
    if (verdict == SURVEY_POSSIBLE && any && !survey->priced) {
        wait_for_reason (job, &survey->bank);
        return;
    }
    if (any && !funded) {
        refuse (job, &survey->bank);
        return;
    }
    if (any && !cheap) {
        struct coalloc_reason dear = {"TooExpensive", "every site costs more than the job's bound"};
        refuse (job, &dear);
        return;
    }
    if (any) {
        struct coalloc_reason late = {
            "NoResources", "no site offers a start within its horizon and the job's bounds"};
        wait_for_reason (job, &late);
        return;
    }
    if (!reason.code[0]) {
        snprintf (reason.code, sizeof reason.code, "SiteDown");
        snprintf (reason.text, sizeof reason.text, "no allowed site answers");
    }
    wait_for_reason (job, &reason);
}

const struct survey_offer *single_best (struct gridjob *job, const struct survey *survey,
                                        time_us *start_out)
{
    struct arena *arena = arena_create (0);
    struct choose_candidate *candidate =
        arena_array (arena, survey->offer_count + 1u, sizeof *candidate);
    uint32_t *from = arena_array (arena, survey->offer_count + 1u, sizeof *from);
    uint32_t count = 0;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        time_us promised = survey_start_of (offer, job->job->not_before_us);
        if (!offer->answered || !offer->feasible || !offer->priced || !promised)
            continue;
        bool bound = job->job->deadline_us || job->job->not_after_us;
        time_us start = bound /* what is only expected keeps no deadline */
                            ? promised
                            : survey_expected_of (survey, offer, job->job->not_before_us);
        const SiteReport *report = survey->metad->site[offer->site]->report;
        from[count] = i;
        candidate[count++] = (struct choose_candidate){
            offer->site,  start,         jobshape_walltime (job->job->components[0], offer->shape),
            offer->price, offer->funded, report ? report->procs_free : 0};
    }
    struct choose_bounds bounds = {job->job->not_after_us, job->job->deadline_us,
                                   job->job->cost_max_micro, job_prefer (job->job)};
    uint32_t best = choose_single (candidate, count, &bounds);
    const struct survey_offer *offer = NULL;
    if (best != UINT32_MAX) {
        offer = &survey->offer[from[best]];
        *start_out = candidate[best].start;
    }
    arena_destroy (arena);
    return offer;
}

static void surveyed (struct gridjob *job, struct survey *survey)
{
    time_us start = TIME_US_NONE;
    const struct survey_offer *offer = single_best (job, survey, &start);
    answers_take (job, survey);
    if (offer) {
        snprintf (job->site, sizeof job->site, "%s", offer->site_name);
        snprintf (job->part[0].site, sizeof job->part[0].site, "%s", offer->site_name);
        job->part[0].dirty = true;
        loss_begin (job);
        job->site_attempt = ++job->attempt_last;
        job->place = SINGLE_SENDING;
        job->shape = offer->shape;
        job->price = offer->price;
        job->start_us = start;
        job->start_is_estimate = true;
        job_reason (job, "Placing", "sending to %s", job->site);
        if (save (job))
            single_wake (job); /* sends it */
    } else {
        none_chosen (job, survey);
    }
    survey_destroy (survey);
}

static void survey_done (void *arg, struct survey *survey)
{
    struct gridjob *job = call_end (arg);
    if (!job || job->place != SINGLE_CHOOSE || job->held == JOB_HELD) {
        survey_destroy (survey);
        if (job)
            job_timer (job, 0);
        return;
    }
    surveyed (job, survey);
}

static void choose_now (struct gridjob *job)
{
    struct metad *metad = job->metad;
    if (job_expires (job) <= clock_now_us ()) {
        struct coalloc_reason reason = {"Expired",
                                        "the job's time for a first acceptance has passed"};
        refuse (job, &reason);
        return;
    }
    if (job->job->deadline_us &&
        clock_now_us () > job->job->deadline_us - jobshape_walltime_min (job->job->components[0])) {
        struct coalloc_reason reason = {"Deadline", "it can no longer end before its deadline"};
        refuse (job, &reason);
        return;
    }
    if (job->job->not_after_us && clock_now_us () > job->job->not_after_us) {
        struct coalloc_reason reason = {"TooLate", "it did not get a start before its latest one"};
        refuse (job, &reason);
        return;
    }
    struct coalloc_reason waits = {"", ""};
    if (waits_for (job, &waits)) {
        answers_forget (job);
        if (waits_never (&waits)) {
            refuse (job, &waits);
            return;
        }
        if (memcmp (&waits, &job->reason, sizeof waits) != 0) {
            job->reason = waits;
            save (job);
        }
        return;
    }
    if (job->survey) {
        struct survey *survey = job->survey;
        job->survey = NULL;
        surveyed (job, survey);
        return;
    }
    struct arena *arena = arena_create (0);
    struct survey_pair *pair = NULL;
    uint32_t count =
        survey_candidates (metad, job->job, (const char (*)[COALLOC_NAME_MAX])job->refused_by,
                           job->refused_count, arena, &pair);
    job->busy = true;
    survey_start (metad, job->envelope, job->job, pair, count, 0, survey_done, call_new (job));
    arena_destroy (arena);
}

/* ---- cancel */

static void cancel_done (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    if (!job)
        return;
    if (result->status == RPC_OK) {
        /* The site's event says how it ended; ask again if none comes. */
        job->failures = 4;
        again_later (job);
    } else if (result->status == RPC_NOT_FOUND) {
        job_reason (job, "Cancelled", "cancelled; %s has no such job", job->site);
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
        save (job);
    } else {
        struct coalloc_reason reason = {"", ""};
        text_printf (reason.text, sizeof reason.text, "%.300s", result->message);
        wait_for_reason (job, &reason);
    }
}

static void cancel_send (struct gridjob *job, bool waiting_only,
                         void (*done) (void *arg, const struct rpc_result *result))
{
    struct site *site = site_find (job->metad, job->site);
    if (!site) {
        again_later (job);
        return;
    }
    char by[COALLOC_TEXT_MAX];
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    request.job_id = job->part[0].site_job_id[0] ? job->part[0].site_job_id : job->id;
    request.waiting_only = waiting_only;
    cancelled_by (job, by);
    request.by = by;
    job->busy = true;
    link_call (site->link, "Cancel", &request.base, SUBMIT_TIMEOUT, done, call_new (job));
}

static void cancel_mark (struct gridjob *job, const char *who)
{
    job->cancel_wanted = true;
    job_reason (job, "Cancelled", "%s%s", cancelled_text, who);
    if (job->place == SINGLE_CHOOSE)
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
}

/* It is durable. In a move it belongs to one site again first. */
static void cancel_go (struct gridjob *job)
{
    if (job->place == SINGLE_PLACED && !job->busy)
        single_wake (job);
}

void single_cancel (struct gridjob *job, const char *who)
{
    cancel_mark (job, who);
    if (save (job))
        cancel_go (job);
}

int single_cancel_all (struct metad *metad, const uint64_t *number, uint32_t count, const char *who,
                       struct err *err)
{
    uint32_t marked = 0;
    int rc = metastore_begin (metad->store, err);
    if (rc)
        return rc;
    metad->in_report = true;
    for (; marked < count && rc == 0; marked++) {
        struct gridjob *job = job_live (metad, number[marked]);
        cancel_mark (job, who);
        rc = job_save (job, false, err);
    }
    if (rc == 0)
        rc = metastore_commit (metad->store, err);
    if (rc)
        metastore_rollback (metad->store);
    metad->in_report = false;
    for (uint32_t i = 0; i < marked; i++) {
        struct gridjob *job = job_live (metad, number[i]);
        if (rc) {
            job_reload (metad, number[i]);
        } else {
            job_tell (job);
            cancel_go (job);
        }
    }
    return rc;
}

/* ---- a latest start */

/* In a site's queue past its latest start. */
static bool is_late (const struct gridjob *job)
{
    return job->job->not_after_us && job->place == SINGLE_PLACED &&
           job->state == NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED &&
           clock_now_us () > job->job->not_after_us;
}

static void late_end (struct gridjob *job)
{
    job_reason (job, "TooLate", "%s did not start it before its latest start", job->site);
    job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED);
}

static void taken_back (void *arg, const struct rpc_result *result)
{
    struct gridjob *job = call_end (arg);
    if (!job)
        return;
    const Nui__Local__V1__CancelReply *reply = (const Nui__Local__V1__CancelReply *)result->reply;
    if (result->status == RPC_OK && reply->kept)
        return; /* in time after all; the site's event says when */
    if (result->status == RPC_NOT_FOUND || (result->status == RPC_OK && reply->cancelled)) {
        late_end (job);
        save (job);
    } else { /* where it had ended before, perhaps after it ran, the site's event says how */
        again_later (job);
    }
}

/* ---- the job's life */

static bool look_due (struct gridjob *job)
{
    if (!job->look_mono || clock_monotonic_us () < job->look_mono ||
        move_interval (job) == INT64_MAX)
        return false;
    job->look_mono = 0;
    return true;
}

/* No site has it: the next wake-up chooses. The caller saves. */
static void place_again (struct gridjob *job)
{
    struct jobpart *part = &job->part[0];
    if (part->info)
        nui__local__v1__job_info__free_unpacked (part->info, NULL);
    part->info = NULL;
    part->site[0] = part->site_job_id[0] = job->site[0] = '\0';
    part->dirty = true;
    job->place = SINGLE_CHOOSE;
    job->state = NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
    job->start_us = job->end_us = 0;
    job_timer (job, 0);
}

static void lost_again (struct gridjob *job, const char *why)
{
    log_event (job->metad->log, LOG_LEVEL_WARN, "loss", "again", "job=%s site=%s", job->id,
               job->site);
    job_reason (job, LOSS_CODE, "site %s %s: given to another", job->site, why);
    place_again (job);
}

void single_forgotten (struct gridjob *job)
{
    lost_again (job, "was restored, and has forgotten it");
    save (job);
}

/* Its site has been silent for so long that it has ended the job itself, or is gone. */
static bool lost_take (struct gridjob *job)
{
    if (job->place == SINGLE_CHOOSE || loss_due (job, job->site) > 0)
        return false;
    if (job->move.stage == MOVE_SENDING || job->move.stage == MOVE_UNDOING)
        return false; /* until the other site has it for certain, or has not */
    if (job->move.stage)
        move_from_lost (job);
    else if (job->cancel_wanted)
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    else
        lost_again (job, "has been silent for too long");
    save (job);
    return true;
}

void single_wake (struct gridjob *job)
{
    if (job->busy || job_ended (job) || !lead_may_send (job) || lost_take (job))
        return;
    switch (job->place) {
    case SINGLE_CHOOSE:
        choose_now (job);
        break;
    case SINGLE_SENDING:
        submit_send (job);
        break;
    case SINGLE_PLACED:
        if (job->move.stage)
            move_wake (job);
        else if (job->cancel_wanted)
            cancel_send (job, false, cancel_done);
        else if (is_late (job))
            cancel_send (job, true, taken_back);
        else if (look_due (job))
            move_look (job);
        else
            placed_timer (job);
        break;
    }
}

static void failed_take (struct gridjob *job, const JobInfo *info)
{
    const char *text = info->reason ? info->reason->text : "";
    const char *code =
        info->reason && text[0] && info->reason->code[0] ? info->reason->code : "ExitCode";
    char why[COALLOC_TEXT_MAX];
    if (text[0])
        text_printf (why, sizeof why, "%.300s", text);
    else
        snprintf (why, sizeof why, "exit code %d", info->exit_code);
    char where[COALLOC_TEXT_MAX];
    text_printf (where, sizeof where, "%s, exit code %d: %.200s", info->site_job_id,
                 info->exit_code, why);
    if (retry_takes (job, where)) {
        place_again (job);
        return;
    }
    job_reason (job, code, "%s", why);
    job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
}

static void ended_take (struct gridjob *job, const JobInfo *info)
{
    if (loss_ended (info) && !job->cancel_wanted) {
        lost_again (job, "had no contact and ended it");
        return;
    }
    if (info->state == NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED && !info->start_us &&
        is_late (job) && !job->cancel_wanted) {
        late_end (job);
        return;
    }
    const char *text = info->reason ? info->reason->text : "";
    const char *code = info->reason ? info->reason->code : "";
    job->start_us = info->start_us;
    job->end_us = info->end_us;
    switch (info->state) {
    case NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED:
        job_reason (job, code, "%s", text);
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED);
        break;
    case NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED:
        job_reason (job, code[0] ? code : "Cancelled", "%s", text[0] ? text : job->reason.text);
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
        break;
    case NUI__LOCAL__V1__JOB_STATE__JOB_TIMEOUT:
        job_reason (job, code[0] ? code : "TimeLimit", "%s",
                    text[0] ? text : "ran into its wallclock limit");
        job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
        break;
    default:
        failed_take (job, info);
        break;
    }
}

void single_heard (struct gridjob *job)
{
    const JobInfo *info = job->part[0].info;
    if (job_ended (job) || info->attempt != job->site_attempt || job->place == SINGLE_CHOOSE)
        return;
    snprintf (job->part[0].site_job_id, sizeof job->part[0].site_job_id, "%s", info->site_job_id);
    if (move_heard (job))
        return;
    if (info->state == NUI__LOCAL__V1__JOB_STATE__JOB_REFUSED) {
        /* Not ended for the grid: others may run it. The wake-up goes on from CHOOSE. */
        single_refused_add (job, job->site);
        job_reason (job, info->reason ? info->reason->code : "Refused", "%s refused: %s", job->site,
                    info->reason ? info->reason->text : "");
        job->place = SINGLE_CHOOSE;
        job->state = NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
        if (job->cancel_wanted)
            job_end (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
        else
            job_timer (job, 0);
        return;
    }
    job->place = SINGLE_PLACED;
    if (info_ended (info)) {
        ended_take (job, info);
        return;
    }
    if (job->cancel_wanted && !job->busy)
        job_timer (job, 0);
    bool runs = info->state == NUI__LOCAL__V1__JOB_STATE__JOB_RUNNING;
    job->state = runs ? NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING
                      : NUI__META__V1__GRID_JOB_STATE__GRID_QUEUED;
    job->start_us = runs ? info->start_us : info->start_estimate_us;
    job->start_is_estimate = !runs;
    if (!job->cancel_wanted) /* else it says by whom */
        job_reason (job, info->reason ? info->reason->code : "", "%s",
                    info->reason ? info->reason->text : "");
    if (!job->cancel_wanted && !job->move.stage)
        placed_timer (job);
}

const struct job_driver single_driver = {.wake = single_wake, .recover = single_wake};
