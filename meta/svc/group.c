#include "meta/svc/group.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/svc/adopt.h"
#include "meta/svc/answers.h"
#include "meta/svc/check.h"
#include "meta/svc/gridlicence.h"
#include "meta/svc/loss.h"
#include "meta/svc/peers.h"
#include "meta/svc/retry.h"
#include "meta/svc/renew.h"
#include "meta/svc/sites.h"
#include "meta/svc/slide.h"
#include "meta/svc/survey.h"
#include "meta/svc/waits.h"

#define ANSWER_TIMEOUT (5 * US_PER_S)

/* One request under way. It names the job by number: the job may be gone when the answer comes. */
struct group_call {
    struct metad *metad;
    uint64_t number;
    uint8_t transaction[16];
    bool slide; /* of a QUERY, which has no transaction yet: whose */
    enum coalloc_action_kind kind;
    uint32_t part;
    uint32_t attempt;
};

static void group_step (struct gridjob *job, struct coalloc_record *record, struct coalloc_event *event);

/* ---- the record and the job's face */

int group_prepare (struct gridjob *job, struct err *err)
{
    struct coalloc_record *record = coalloc_create (job->part_count, err);
    if (!record)
        return ERR_LIMIT;
    record->created = clock_now_us ();
    record->not_before = job->job->not_before_us;
    record->not_after = job->job->not_after_us;
    record->deadline = job->job->deadline_us;
    record->prefer = job_prefer (job->job);
    record->expires = renew_until (job);
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
        job->start_us = record->phase >= COALLOC_READY && record->phase <= COALLOC_LIVE
                            ? record->slot_start
                            : 0;
    if (record->phase == COALLOC_ENDED)
        job->end_us = end ? end : clock_now_us ();
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
            part->dirty = true;
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
    times_set (job);
}

/* ---- answers become events */

static struct gridjob *call_job (const struct group_call *call)
{
    struct gridjob *job = job_live (call->metad, call->number);
    return job && job->record && !job_ended (job) && !call->metad->stopping ? job : NULL;
}

/* Which of its records the answer is for; NULL: none any more. */
static struct coalloc_record *call_record (const struct gridjob *job, const struct group_call *call)
{
    struct coalloc_record *record[] = {job->record, job->slide};
    if (call->kind == COALLOC_DO_QUERY)
        return record[call->slide];
    for (int i = 0; i < 2; i++)
        if (record[i] && memcmp (record[i]->transaction, call->transaction, sizeof call->transaction) == 0)
            return record[i];
    return NULL;
}

static void reason_take (struct coalloc_reason *out, const Nui__Common__V1__Reason *reason)
{
    snprintf (out->code, sizeof out->code, "%s", reason ? reason->code : "");
    snprintf (out->text, sizeof out->text, "%s", reason ? reason->text : "");
}

/* Its hosts as the others will be told of them at START. */
static void peer_take (Nui__Common__V1__Peer **slot, const Nui__Common__V1__Peer *peer)
{
    size_t len = nui__common__v1__peer__get_packed_size (peer);
    uint8_t *bytes = malloc (len + 1);
    if (!bytes)
        abort ();
    nui__common__v1__peer__pack (peer, bytes);
    if (*slot)
        nui__common__v1__peer__free_unpacked (*slot, NULL);
    *slot = nui__common__v1__peer__unpack (NULL, len, bytes);
    free (bytes);
}

static void prepare_answer (struct gridjob *job, const struct group_call *call,
                            struct coalloc_event *event, const Nui__Local__V1__PrepareReply *reply)
{
    struct jobpart *part = &job->part[call->part];
    event->kind = COALLOC_EV_PREPARED;
    event->u.prepared.granted = reply->granted && reply->peer;
    event->u.prepared.next_feasible = reply->next_feasible_us;
    event->u.prepared.lease_left = reply->lease_left_us;
    event->u.prepared.amount = reply->amount_micro;
    reason_take (&event->reason, reply->reason);
    event->u.prepared.unfunded = strcmp (event->reason.code, "InsufficientFunds") == 0;
    if (!event->u.prepared.granted)
        return;
    bool slide = call_record (job, call) == job->slide;
    peer_take (slide ? &part->next_peer : &part->peer, reply->peer);
    snprintf (slide ? part->next_job_id : part->site_job_id, sizeof part->site_job_id, "%s",
              reply->site_job_id);
    part->dirty = true;
}

static void answer_take (struct gridjob *job, const struct group_call *call,
                         struct coalloc_event *event, const ProtobufCMessage *message)
{
    switch (call->kind) {
    case COALLOC_DO_PREPARE:
        prepare_answer (job, call, event, (const Nui__Local__V1__PrepareReply *)message);
        break;
    case COALLOC_DO_COMMIT:
        event->kind = COALLOC_EV_COMMITTED;
        switch (((const Nui__Local__V1__CommitReply *)message)->outcome) {
        case NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM:
            event->u.committed.outcome = COALLOC_FIRM;
            break;
        case NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__EXPIRED:
            event->u.committed.outcome = COALLOC_EXPIRED;
            break;
        case NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__ABORTED:
            event->u.committed.outcome = COALLOC_ABORTED;
            break;
        default:
            event->u.committed.outcome = COALLOC_UNKNOWN;
            break;
        }
        break;
    case COALLOC_DO_ABORT:
        event->kind = COALLOC_EV_ABORTED;
        event->u.aborted.refused_firm =
            ((const Nui__Local__V1__AbortReply *)message)->refused_firm;
        break;
    case COALLOC_DO_READY: {
        const Nui__Local__V1__ReadyReply *reply = (const Nui__Local__V1__ReadyReply *)message;
        event->kind = COALLOC_EV_READIED;
        event->u.readied.yes = reply->ready;
        event->u.readied.started = reply->started;
        if (reply->ready && reply->peer && call_record (job, call) == job->record) {
            peer_take (&job->part[call->part].peer, reply->peer);
            job->part[call->part].dirty = true;
        }
        reason_take (&event->reason, reply->reason);
        break;
    }
    case COALLOC_DO_START: {
        const Nui__Local__V1__StartReply *reply = (const Nui__Local__V1__StartReply *)message;
        event->kind = COALLOC_EV_STARTED;
        event->u.started.yes = reply->accepted;
        reason_take (&event->reason, reply->reason);
        break;
    }
    default:
        event->kind = COALLOC_EV_RELEASED;
        event->u.released.started = ((const Nui__Local__V1__ReleaseReply *)message)->started;
        break;
    }
}

/* A status other than OK. Silence leaves the outcome open; a site that refuses a PREPARE, a READY or
 * a START has said no; what must be acknowledged (COMMIT, ABORT, RELEASE) is sent again. */
static void failure_take (const struct group_call *call, struct coalloc_event *event,
                          const struct rpc_result *result)
{
    bool silent = result->status == RPC_UNAVAILABLE || result->status == RPC_DEADLINE_EXCEEDED ||
                  result->status == RPC_CANCELLED || result->status == RPC_UNKNOWN ||
                  result->status == RPC_INTERNAL;
    event->kind = COALLOC_EV_NO_ANSWER;
    snprintf (event->reason.code, sizeof event->reason.code, "%s", silent ? "SiteDown" : "Refused");
    snprintf (event->reason.text, sizeof event->reason.text, "%s", result->message);
    if (silent)
        return;
    if (call->kind == COALLOC_DO_PREPARE)
        event->kind = COALLOC_EV_PREPARED; /* not granted, nothing feasible here */
    else if (call->kind == COALLOC_DO_READY)
        event->kind = COALLOC_EV_READIED;
    else if (call->kind == COALLOC_DO_START)
        event->kind = COALLOC_EV_STARTED;
}

/* The site has heard of a newer leader. (A PREPARE may be refused so for other reasons.) */
static bool fenced (const struct gridjob *job, const struct group_call *call,
                    const struct rpc_result *result)
{
    return job->metad->peers && result->status == RPC_ABORTED && call->kind != COALLOC_DO_PREPARE &&
           memcmp (call->transaction, job->record->transaction, sizeof call->transaction) == 0;
}

static void call_done (void *arg, const struct rpc_result *result)
{
    struct group_call *call = arg;
    struct gridjob *job = call_job (call);
    struct coalloc_record *record = job ? call_record (job, call) : NULL;
    if (record && fenced (job, call, result)) {
        adopt_fenced (job);
    } else if (record) {
        struct coalloc_event event = {.transaction = call->transaction, .part = call->part,
                                      .attempt = call->attempt};
        if (result->status == RPC_OK)
            answer_take (job, call, &event, result->reply);
        else
            failure_take (call, &event, result);
        if (result->status != RPC_OK)
            log_event (job->metad->log, LOG_LEVEL_INFO, "coalloc", "no_answer",
                       "job=%s part=%u kind=%d status=%d", job->id, call->part, (int)call->kind,
                       (int)result->status);
        group_step (job, record, &event);
    }
    free (call);
}

/* ---- actions */

static struct group_call *call_new (struct gridjob *job, const struct coalloc_record *record,
                                    const struct coalloc_action *action)
{
    struct group_call *call = calloc (1, sizeof *call);
    if (!call)
        abort ();
    call->metad = job->metad;
    call->number = job->number;
    memcpy (call->transaction, record->transaction, sizeof call->transaction);
    call->slide = record == job->slide;
    call->kind = action->kind;
    call->part = action->part;
    call->attempt = action->attempt;
    return call;
}

static void no_site (evutil_socket_t fd, short what, void *arg)
{
    struct rpc_result result = {RPC_UNAVAILABLE, "the site is not configured any more", NULL};
    (void)fd;
    (void)what;
    call_done (arg, &result);
}

static void part_send (struct gridjob *job, const struct coalloc_record *record,
                       const struct coalloc_action *action, const char *method,
                       const ProtobufCMessage *request)
{
    struct site *site = site_find (job->metad, record->part[action->part].site);
    struct group_call *call = call_new (job, record, action);
    if (site) {
        link_call (site->link, method, request, ANSWER_TIMEOUT, call_done, call);
    } else {
        struct timeval now = {0, 0};
        event_base_once (job->metad->base, -1, EV_TIMEOUT, no_site, call, &now);
    }
}

static void prepare_send (struct gridjob *job, const struct coalloc_record *record,
                          const struct coalloc_action *action, Nui__Local__V1__Part *part)
{
    Nui__Local__V1__PrepareRequest request = NUI__LOCAL__V1__PREPARE_REQUEST__INIT;
    uint8_t hash[SHA256_DIGEST_LENGTH];
    SHA256 (record->start_token, sizeof record->start_token, hash);
    request.part = part;
    request.envelope = job->envelope;
    request.grid_job_id = job->id;
    request.slot_start_us = record->slot_start + record->part[action->part].offset;
    request.lease_us = job->metad->config->policy.lease;
    request.contact_us = job->contact_us;
    request.shape = record->part[action->part].shape;
    request.start_token_hash = (ProtobufCBinaryData){sizeof hash, hash};
    struct arena *arena = arena_create (0);
    request.grid_licences = gridlicence_named (job->metad, job->job->components[action->part], arena,
                                            &request.n_grid_licences);
    part_send (job, record, action, "Prepare", &request.base);
    arena_destroy (arena);
}

static void start_send (struct gridjob *job, const struct coalloc_record *record,
                        const struct coalloc_action *action, Nui__Local__V1__Part *part)
{
    Nui__Local__V1__StartRequest request = NUI__LOCAL__V1__START_REQUEST__INIT;
    Nui__Common__V1__Peer *peers[COALLOC_PARTS_MAX];
    uint8_t token[COALLOC_TOKEN_LEN];
    memcpy (token, record->start_token, sizeof token);
    for (uint32_t p = 0; p < job->part_count; p++)
        if (job->part[p].peer)
            peers[request.n_peers++] = job->part[p].peer;
    request.part = part;
    request.start_token = (ProtobufCBinaryData){sizeof token, token};
    request.start_us = record->start_at + record->part[action->part].offset;
    request.peers = peers;
    part_send (job, record, action, "Start", &request.base);
}

static void release_send (struct gridjob *job, const struct coalloc_record *record,
                          const struct coalloc_action *action, Nui__Local__V1__Part *part)
{
    Nui__Local__V1__ReleaseRequest request = NUI__LOCAL__V1__RELEASE_REQUEST__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    reason.code = (char *)record->reason.code;
    reason.text = (char *)record->reason.text;
    request.part = part;
    request.reason = &reason;
    part_send (job, record, action, "Release", &request.base);
}

static void part_perform (struct gridjob *job, struct coalloc_record *record,
                          const struct coalloc_action *action)
{
    Nui__Local__V1__Part part = NUI__LOCAL__V1__PART__INIT;
    Nui__Local__V1__CommitRequest commit = NUI__LOCAL__V1__COMMIT_REQUEST__INIT;
    Nui__Local__V1__AbortRequest abort_request = NUI__LOCAL__V1__ABORT_REQUEST__INIT;
    Nui__Local__V1__ReadyRequest ready = NUI__LOCAL__V1__READY_REQUEST__INIT;
    part.transaction = (ProtobufCBinaryData){16, record->transaction};
    part.component = job->part[action->part].name;
    part.attempt = action->attempt;
    part.epoch = adopt_epoch (job);
    switch (action->kind) {
    case COALLOC_DO_PREPARE:
        prepare_send (job, record, action, &part);
        break;
    case COALLOC_DO_COMMIT:
        commit.part = &part;
        part_send (job, record, action, "Commit", &commit.base);
        break;
    case COALLOC_DO_ABORT:
        abort_request.part = &part;
        part_send (job, record, action, "Abort", &abort_request.base);
        break;
    case COALLOC_DO_READY:
        ready.part = &part;
        part_send (job, record, action, "Ready", &ready.base);
        break;
    case COALLOC_DO_START:
        start_send (job, record, action, &part);
        break;
    default:
        release_send (job, record, action, &part);
        break;
    }
}

/* ---- QUERY */

static void survey_take (struct gridjob *job, struct coalloc_record *record, struct survey *survey)
{
    struct arena *arena = arena_create (0);
    struct metad *metad = job->metad;
    struct coalloc_event event = {.kind = COALLOC_EV_QUERIED};
    struct choose_problem problem;
    uint32_t *index = NULL;
    const char **name = arena_array (arena, metad->site_count + 1u, sizeof *name);
    for (uint32_t i = 0; i < metad->site_count; i++)
        name[i] = metad->site[i]->name;
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct coalloc_reason reason = {"", ""};
        enum survey_verdict verdict = survey_part (survey, p, &reason);
        if (verdict == SURVEY_NEVER) {
            event.u.queried.found = COALLOC_QUERY_NEVER;
            event.reason = reason;
            break;
        }
        if (verdict == SURVEY_SILENT) {
            event.u.queried.found = COALLOC_QUERY_SITE_DOWN;
            event.reason = reason;
        }
    }
    if (event.u.queried.found == COALLOC_QUERY_OFFERS && !survey->priced) {
        event.u.queried.found =
            survey->bank_refused ? COALLOC_QUERY_NEVER : COALLOC_QUERY_SITE_DOWN;
        event.reason = survey->bank;
    }
    survey->asker = job->number;
    answers_take (job, survey);
    survey_problem (survey, arena, &problem, &index);
    event.u.queried.problem = &problem;
    event.u.queried.site_name = name;
    random_bytes (event.u.queried.transaction, sizeof event.u.queried.transaction);
    random_bytes (event.u.queried.start_token, sizeof event.u.queried.start_token);
    group_step (job, record, &event);
    survey_destroy (survey);
    arena_destroy (arena);
}

static void survey_done (void *arg, struct survey *survey)
{
    struct group_call *call = arg;
    struct gridjob *job = call_job (call);
    struct coalloc_record *record = job ? call_record (job, call) : NULL;
    free (call);
    if (record)
        survey_take (job, record, survey);
    else
        survey_destroy (survey);
}

static void query_perform (struct gridjob *job, const struct coalloc_record *record)
{
    struct arena *arena = arena_create (0);
    struct survey_pair *pair = NULL;
    struct coalloc_action action = {.kind = COALLOC_DO_QUERY};
    uint32_t count = survey_candidates (job->metad, job->job, NULL, 0, arena, &pair);
    survey_start (job->metad, job->envelope, job->job, pair, count, record->tries,
                  survey_done, call_new (job, record, &action));
    arena_destroy (arena);
}

/* ---- DECIDE */

static void decided (void *arg, enum decision decision, bool failed)
{
    struct group_call *call = arg;
    struct gridjob *job = call_job (call);
    struct coalloc_record *record = job ? call_record (job, call) : NULL;
    if (record && failed) { /* nothing is known: take what is on disk and ask again */
        job_reload (call->metad, call->number);
    } else if (record) {
        struct coalloc_event event = {.kind = COALLOC_EV_DECIDED,
                                      .transaction = call->transaction};
        event.u.decided.decision = decision;
        group_step (job, record, &event);
    }
    free (call);
}

static void decide_perform (struct gridjob *job, const struct coalloc_record *record,
                            const struct coalloc_action *action)
{
    struct metad *metad = job->metad;
    struct arena *arena = arena_create (0);
    struct metastore_blob transfer = adopt_transfer (job, arena);
    struct decision_ask ask = {record->transaction, action->proposal, transfer.bytes,
                               transfer.len};
    metad->decisions.ops->propose (metad->decisions.self, &ask, decided, call_new (job, record, action));
    arena_destroy (arena);
}

/* ---- the step */

static void perform (struct gridjob *job, struct coalloc_record *record,
                     const struct coalloc_actions *actions)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    for (uint32_t a = 0; a < actions->count; a++) {
        const struct coalloc_action *action = &actions->action[a];
        switch (action->kind) {
        case COALLOC_DO_QUERY:
            if (job->survey && record == job->record) {
                struct survey *survey = job->survey;
                job->survey = NULL;
                survey_take (job, record, survey);
            } else {
                query_perform (job, record);
            }
            break;
        case COALLOC_DO_DECIDE:
            decide_perform (job, record, action);
            break;
        default:
            part_perform (job, record, action);
            break;
        }
        /* A nested step may have reloaded it. */
        if (job_live (metad, number) != job || (record != job->record && record != job->slide))
            return;
    }
}

static void step_log (const struct gridjob *job, const struct coalloc_record *record, bool other,
                      const struct coalloc_event *event, enum coalloc_phase before)
{
    char quoted[COALLOC_TEXT_MAX * 2];
    if (before == record->phase)
        return;
    log_event (job->metad->log, LOG_LEVEL_INFO, "coalloc", "phase",
               "job=%s%s event=%s from=%s to=%s try=%u code=%s reason=%s", job->id,
               other ? " other_slot=1" : "",
               coalloc_event_name (event->kind), coalloc_phase_name (before),
               coalloc_phase_name (record->phase), record->tries,
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
    for (uint32_t p = 0; p < job->part_count; p++) {
        if (job->part[p].info)
            nui__local__v1__job_info__free_unpacked (job->part[p].info, NULL);
        job->part[p].info = NULL;
        job->part[p].dirty = true;
    }
    return true;
}

/* Not while another leads it, nor while too few of the group answer to know that none does: then what
 * happens is as lost as in a crash, and it is recovered afterwards. */
static bool may_step (struct gridjob *job)
{
    if (adopt_is_led_elsewhere (job))
        return false;
    if (peers_lead (job->metad))
        return true;
    job->reloaded = true;
    job_timer (job, US_PER_S);
    return false;
}

/* How long until the part's site is lost to it; INT64_MAX: never, or it does not matter any more. */
static duration_us part_lost_in (const struct gridjob *job, const struct coalloc_record *record, uint32_t p)
{
    return record && coalloc_minds_site (record->part[p].state) ? loss_due (job, record->part[p].site)
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
        duration_us lost = part_lost_in (job, job->record, p), other = part_lost_in (job, job->slide, p);
        lost = other < lost ? other : lost;
        wait = lost < wait ? lost : wait;
    }
    if (wait != INT64_MAX)
        job_timer (job, wait);
}

/* An earlier slot that is not wanted any more is given up. */
static void surplus_drop (struct gridjob *job)
{
    struct coalloc_event event = {.kind = COALLOC_EV_CANCEL, .reason = {"Moved", "the group has another slot"}};
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
    timer_set (job);
    if (record->phase != COALLOC_ENDED)
        perform (job, record, actions);
    if (job_live (metad, number) == job && !job_ended (job))
        surplus_drop (job);
}

static void group_step (struct gridjob *job, struct coalloc_record *record, struct coalloc_event *event)
{
    struct metad *metad = job->metad;
    struct coalloc_now now = {clock_now_us (), clock_monotonic_us (), 0, &metad->config->policy,
                              event->kind == COALLOC_EV_READIED && gridlicence_withhold (job, record)};
    struct coalloc_actions actions;
    enum coalloc_phase before = record->phase;
    bool decided_before = record->decided || metad->peers;
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
    const struct coalloc_record seen = *record; /* for the log: it may be forgotten before it is durable */
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
    survey_destroy (job->survey); /* by then it is old */
    job->survey = NULL;
    if (memcmp (&waits, &job->reason, sizeof waits) != 0) {
        job->reason = waits;
        job_save (job, false, &err);
    }
    return true;
}

void group_begin (struct gridjob *job)
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
            if ((record[r] != job->record && record[r] != job->slide) || part_lost_in (job, record[r], p) > 0)
                continue;
            snprintf (event.reason.code, sizeof event.reason.code, LOSS_CODE);
            snprintf (event.reason.text, sizeof event.reason.text, "site %s has been silent for too long",
                      record[r]->part[p].site);
            group_step (job, record[r], &event);
            if (job_live (metad, number) != job || job->reloaded || job_ended (job))
                return false;
        }
    }
    return true;
}

void group_wake (struct gridjob *job)
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
    snprintf (event.reason.text, sizeof event.reason.text, "cancelled by %.300s", who);
    group_step (job, job->record, &event);
}

void group_decided (struct gridjob *job, enum decision decision)
{
    struct coalloc_event event = {.kind = COALLOC_EV_DECIDED};
    event.u.decided.decision = decision;
    group_step (job, job->record, &event);
}

static bool ended_event (const JobInfo *info, struct coalloc_event *event)
{
    event->kind = COALLOC_EV_PART_ENDED;
    reason_take (&event->reason, info->reason);
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
        event->u.ended.lost = strcmp (event->reason.code, "NodeFailure") == 0;
        break;
    default:
        return false;
    }
    if (!event->reason.text[0])
        snprintf (event->reason.text, sizeof event->reason.text, "%s, exit code %d",
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

void group_recover (struct gridjob *job)
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
    group_step (job, job->record, &event);
    /* What was heard before the crash, but perhaps not yet stepped. */
    for (uint32_t p = 0; job_live (metad, number) == job && !job->reloaded && p < job->part_count; p++)
        if (job->part[p].info)
            group_heard (job, p);
}
