/* What a step of a record asks for: QUERY, PREPARE, COMMIT, START and the rest are sent from here, and each answer becomes an
 * event for group.c. A call names the job by number and the record by transaction: either may be gone when the answer comes. */
#include "meta/group/group_i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/place/survey.h"
#include "meta/place/gridlicence.h"
#include "meta/lead/lead.h"
#include "meta/job/metrics.h"
#include "meta/job/seal.h"
#include "meta/job/sites.h"
#include "meta/job/soon.h"
#include "proto/base/text.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/pbcopy.h"

#define ANSWER_TIMEOUT (5 * US_PER_S)
enum { WAVE_MAX = 5 }; /* everybody has been asked by then */

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
        if (record[i] &&
            memcmp (record[i]->transaction, call->transaction, sizeof call->transaction) == 0)
            return record[i];
    return NULL;
}

void group_reason (struct coalloc_reason *out, const Nui__Common__V1__Reason *reason)
{
    snprintf (out->code, sizeof out->code, "%s", reason ? reason->code : "");
    text_printf (out->text, sizeof out->text, "%s", reason ? reason->text : "");
}

/* Its hosts as the others will be told of them at START. */
static void peer_take (Nui__Common__V1__Peer **slot, const Nui__Common__V1__Peer *peer)
{
    Nui__Common__V1__Peer *copy = (Nui__Common__V1__Peer *)pbcopy (&peer->base);
    if (!copy)
        abort ();
    if (*slot)
        nui__common__v1__peer__free_unpacked (*slot, NULL);
    *slot = copy;
}

static void prepare_answer (struct gridjob *job, const struct group_call *call,
                            struct coalloc_event *event, const Nui__Local__V1__PrepareReply *reply)
{
    struct jobpart *part = &job->part[call->part];
    metrics_prepared (job->metad,
                      clock_monotonic_us () - call_record (job, call)->part[call->part].sent_mono);
    event->kind = COALLOC_EV_PREPARED;
    event->u.prepared.granted = reply->granted && reply->peer;
    event->u.prepared.next_feasible = reply->next_feasible_us;
    event->u.prepared.lease_left = reply->lease_left_us;
    event->u.prepared.amount = reply->amount_micro;
    group_reason (&event->reason, reply->reason);
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
        event->u.aborted.refused_firm = ((const Nui__Local__V1__AbortReply *)message)->refused_firm;
        break;
    case COALLOC_DO_READY: {
        const Nui__Local__V1__ReadyReply *reply = (const Nui__Local__V1__ReadyReply *)message;
        event->kind = COALLOC_EV_READIED;
        event->u.readied.yes = reply->ready;
        event->u.readied.started = reply->started;
        if (reply->ready && reply->peer && call_record (job, call) == job->record) {
            struct jobpart *part = &job->part[call->part];
            peer_take (&part->peer, reply->peer);
            if (reply->site_job_id[0])
                snprintf (part->site_job_id, sizeof part->site_job_id, "%s", reply->site_job_id);
            part->dirty = true;
        }
        group_reason (&event->reason, reply->reason);
        event->u.readied.unable = strcmp (event->reason.code, "NodeDown") == 0;
        event->u.readied.gone = strcmp (event->reason.code, "Unknown") == 0;
        break;
    }
    case COALLOC_DO_START: {
        const Nui__Local__V1__StartReply *reply = (const Nui__Local__V1__StartReply *)message;
        event->kind = COALLOC_EV_STARTED;
        event->u.started.yes = reply->accepted;
        group_reason (&event->reason, reply->reason);
        break;
    }
    default:
        event->kind = COALLOC_EV_RELEASED;
        event->u.released.started = ((const Nui__Local__V1__ReleaseReply *)message)->started;
        break;
    }
}

static bool is_silent (enum rpc_status status)
{
    return status == RPC_UNAVAILABLE || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_CANCELLED || status == RPC_UNKNOWN || status == RPC_INTERNAL;
}

/* A status other than OK. Silence leaves the outcome open; a site that refuses a PREPARE, a READY or
 * a START has said no; what must be acknowledged (COMMIT, ABORT, RELEASE) is sent again. */
static void failure_take (const struct group_call *call, struct coalloc_event *event,
                          const struct rpc_result *result)
{
    bool silent = is_silent (result->status);
    event->kind = COALLOC_EV_NO_ANSWER;
    snprintf (event->reason.code, sizeof event->reason.code, "%s", silent ? "SiteDown" : "Refused");
    text_printf (event->reason.text, sizeof event->reason.text, "%s", result->message);
    if (silent)
        return;
    if (call->kind == COALLOC_DO_PREPARE)
        event->kind = COALLOC_EV_PREPARED; /* not granted, nothing feasible here */
    else if (call->kind == COALLOC_DO_READY)
        event->kind = COALLOC_EV_READIED;
    else if (call->kind == COALLOC_DO_START)
        event->kind = COALLOC_EV_STARTED;
}

/* A site that says no to what must be acknowledged is the operator's affair: it is asked again all the same. */
static void no_answer_log (const struct gridjob *job, const struct coalloc_record *record,
                           const struct group_call *call, const struct rpc_result *result,
                           const char *said)
{
    bool ends = call->kind == COALLOC_DO_ABORT || call->kind == COALLOC_DO_RELEASE ||
                call->kind == COALLOC_DO_COMMIT;
    char quoted[2 * COALLOC_TEXT_MAX];
    log_event (job->metad->log,
               ends && !is_silent (result->status) ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "coalloc",
               "no_answer", "job=%s part=%u kind=%d status=%d site=%s said=%s", job->id, call->part,
               (int)call->kind, (int)result->status, record->part[call->part].site,
               log_quote (said, quoted, sizeof quoted));
}

/* The site has heard of a newer leader. (A PREPARE may be refused so for other reasons.) */
static bool fenced (const struct gridjob *job, const struct group_call *call,
                    const struct rpc_result *result)
{
    return job->lead && result->status == RPC_ABORTED && call->kind != COALLOC_DO_PREPARE;
}

static void call_done (void *arg, const struct rpc_result *result)
{
    struct group_call *call = arg;
    struct gridjob *job = call_job (call);
    struct coalloc_record *record = job ? call_record (job, call) : NULL;
    if (record && fenced (job, call, result)) {
        lead_take (call->metad, call->number); /* or hears who does */
    } else if (record) {
        struct coalloc_event event = {
            .transaction = call->transaction, .part = call->part, .attempt = call->attempt};
        if (result->status == RPC_OK)
            answer_take (job, call, &event, result->reply);
        else
            failure_take (call, &event, result);
        if (result->status != RPC_OK)
            no_answer_log (job, record, call, result, event.reason.text);
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

static void no_site (void *arg)
{
    struct rpc_result result = {.status = RPC_UNAVAILABLE,
                                .message = "the site is not configured any more"};
    call_done (arg, &result);
}

/* Its key has ended since the QUERY, which waits for one: the part cannot be had now, and the site is not to blame. The
 * next QUERY says BankDown as well, until there is a key. */
static void keyless (void *arg)
{
    struct group_call *call = arg;
    struct gridjob *job = call_job (call);
    struct coalloc_record *record = job ? call_record (job, call) : NULL;
    if (record) {
        struct coalloc_event event = {.kind = COALLOC_EV_PREPARED,
                                      .transaction = call->transaction,
                                      .part = call->part,
                                      .attempt = call->attempt,
                                      .reason = {"BankDown", SEAL_KEYLESS}};
        event.u.prepared.next_feasible = record->slot_start + record->part[call->part].offset;
        group_step (job, record, &event);
    }
    free (call);
}

/* An answer that needs no call; never from inside the step that asks for it. */
static void answer_soon (struct gridjob *job, const struct coalloc_record *record,
                         const struct coalloc_action *action, void (*answer) (void *arg))
{
    soon_call (job->metad->soon, answer, call_new (job, record, action));
}

static void part_send (struct gridjob *job, const struct coalloc_record *record,
                       const struct coalloc_action *action, const char *method,
                       const ProtobufCMessage *request)
{
    struct site *site = site_find (job->metad, record->part[action->part].site);
    if (site)
        link_call (site->link, method, request, ANSWER_TIMEOUT, call_done,
                   call_new (job, record, action));
    else
        answer_soon (job, record, action, no_site);
}

static void prepare_send (struct gridjob *job, const struct coalloc_record *record,
                          const struct coalloc_action *action, Nui__Local__V1__Part *part)
{
    Nui__Local__V1__PrepareRequest request = NUI__LOCAL__V1__PREPARE_REQUEST__INIT;
    uint8_t hash[SHA256_BYTES];
    struct arena *arena = arena_create (0);
    sha256 (record->start_token, sizeof record->start_token, hash);
    request.part = part;
    request.envelope = seal_envelope (job, action->part, record->part[action->part].site,
                                      clock_now_us () + SEAL_PREPARE, arena);
    if (!request.envelope) {
        answer_soon (job, record, action, keyless);
        arena_destroy (arena);
        return;
    }
    request.grid_job_id = job->id;
    request.slot_start_us = record->slot_start + record->part[action->part].offset;
    request.lease_us = job->metad->config->policy.lease;
    request.contact_us = job->contact_us;
    if (record == job->slide) /* a try of it is over before the two change places */
        request.replaces = (ProtobufCBinaryData){16, job->record->transaction};
    request.shape = record->part[action->part].shape;
    request.start_token_hash = (ProtobufCBinaryData){sizeof hash, hash};
    request.grid_licences = gridlicence_named (job->metad, job->job->components[action->part],
                                               arena, &request.n_grid_licences);
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
    request.until_ended = job->licensed; /* by then nobody uses them there */
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
    part.epoch = job_epoch (job);
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

static void survey_done (void *arg, struct survey *survey);

/* What the answers are for the parts that are sought. */
static void verdict_take (struct gridjob *job, const struct coalloc_record *record,
                          const struct survey *survey, struct coalloc_event *event)
{
    struct err none;
    err_clear (&none);
    event->u.queried.complete = true;
    if (gridlicence_check (job->metad, job->job, &none)) { /* whoever took it gives out more */
        event->u.queried.found = COALLOC_QUERY_NEVER;
        snprintf (event->reason.code, sizeof event->reason.code, "Licence");
        text_printf (event->reason.text, sizeof event->reason.text, "%s", none.text);
        return;
    }
    for (uint32_t p = 0; p < job->part_count; p++) {
        struct coalloc_reason reason = {"", ""};
        if (!coalloc_seeks (record, p))
            continue;
        enum survey_verdict verdict = survey_part (survey, p, &reason);
        event->u.queried.complete = event->u.queried.complete && survey_complete (survey, p);
        if (verdict == SURVEY_POSSIBLE)
            continue;
        event->u.queried.found =
            verdict == SURVEY_NEVER ? COALLOC_QUERY_NEVER : COALLOC_QUERY_SITE_DOWN;
        event->reason = reason;
        if (verdict == SURVEY_NEVER)
            return;
    }
    if (event->u.queried.found != COALLOC_QUERY_OFFERS)
        return;
    if (!survey->priced) {
        event->u.queried.found =
            survey->bank_refused ? COALLOC_QUERY_NEVER : COALLOC_QUERY_SITE_DOWN;
        event->reason = survey->bank;
    } else if (!seal_has_key (job->metad)) { /* no site could hold for it */
        event->u.queried.found = COALLOC_QUERY_SITE_DOWN;
        event->reason = (struct coalloc_reason){"BankDown", SEAL_KEYLESS};
    }
}

/* Sites that would get several parts are asked whether these fit together. False: nothing is in doubt. */
static bool doubts_asked (struct gridjob *job, struct coalloc_record *record, struct survey *survey,
                          struct choose_problem *problem, const char *const *name)
{
    struct coalloc_now now = {.wall = clock_now_us (), .policy = &job->metad->config->policy};
    struct coalloc_action action = {.kind = COALLOC_DO_QUERY};
    struct survey_choice choice = {.problem = problem};
    if (record->phase != COALLOC_QUERY)
        return false;
    coalloc_problem (record, &now, name, problem);
    if (choose_group (problem, &choice.result, NULL) != 0)
        return false;
    struct group_call *call = call_new (job, record, &action);
    if (survey_together (survey, &choice, 1, record->tries == 0, survey_done, call))
        return true;
    free (call);
    return false;
}

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
    verdict_take (job, record, survey, &event);
    survey->asker = job->number;
    answers_take (job, survey);
    survey_problem (survey, arena, &problem, &index);
    if (event.u.queried.found == COALLOC_QUERY_OFFERS &&
        doubts_asked (job, record, survey, &problem, name)) {
        arena_destroy (arena);
        return;
    }
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
    uint32_t count = 0, all = survey_candidates (job->metad, job->job, NULL, 0, arena, &pair);
    for (uint32_t i = 0; i < all; i++)
        if (coalloc_seeks (record, pair[i].part))
            pair[count++] = pair[i];
    survey_start_instead (job->metad, job->envelope, job->job, pair, count,
                          record->tries < WAVE_MAX ? record->tries : WAVE_MAX,
                          record == job->slide ? job->record->transaction : NULL, survey_done,
                          call_new (job, record, &action));
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
        struct coalloc_event event = {.kind = COALLOC_EV_DECIDED, .transaction = call->transaction};
        event.u.decided.decision = decision;
        group_step (job, record, &event);
    }
    free (call);
}

static void decide_perform (struct gridjob *job, const struct coalloc_record *record,
                            const struct coalloc_action *action)
{
    struct metad *metad = job->metad;
    struct decision_ask ask = {record->transaction, action->proposal};
    metad->decisions.ops->propose (metad->decisions.self, &ask, decided,
                                   call_new (job, record, action));
}

/* ---- all of a step */

/* A majority has the record that asks for it; unless it does not any more. */
static void part_voted (void *arg, uint64_t as)
{
    struct group_call *call = arg;
    struct gridjob *job = as ? call_job (call) : NULL;
    struct coalloc_record *record = job ? call_record (job, call) : NULL;
    struct coalloc_action action = {
        .kind = call->kind, .part = call->part, .attempt = call->attempt};
    if (record && coalloc_awaits (record, &action))
        part_perform (job, record, &action);
    free (call);
}

void group_perform (struct gridjob *job, struct coalloc_record *record,
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
            lead_then (job, part_voted, call_new (job, record, action));
            break;
        }
        /* A nested step may have reloaded it. */
        if (job_live (metad, number) != job || (record != job->record && record != job->slide))
            return;
    }
}
