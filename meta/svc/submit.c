/* What happens before a job is taken: who signed it, whether it is sane, what sites and bank say; then it is durable, and its
 * driver goes on with it. Also Estimate, which ends after the answers. Nothing may be acknowledged that is not on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/job/check.h"
#include "meta/svc/array.h"
#include "meta/svc/arrive.h"
#include "meta/svc/estimate.h"
#include "meta/group/group.h"
#include "meta/group/terms.h"
#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/place/gridlicence.h"
#include "meta/place/gridlimits.h"
#include "meta/svc/hooks.h"
#include "meta/lead/lead.h"
#include "meta/job/peers.h"
#include "meta/svc/refusals.h"
#include "meta/svc/share.h"
#include "meta/job/sites.h"
#include "meta/place/survey.h"
#include "meta/place/waits.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/receipt.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"
#include "proto/rpc/pbcopy.h"

#define QUOTE_TIMEOUT (5 * US_PER_S)

/* A Submit or Estimate under way. The call keeps the request alive until it is finished. */
struct asking {
    struct metad *metad;
    struct rpccall *call;
    EnvelopeMessage envelope; /* a view of the request's; the receipt is ours */
    time_us received;         /* when its signature was found good */
    JobMessage *job;
    char submitter[PRINCIPAL_URI_MAX];
    struct survey *survey;
    bool bound_only; /* of an Estimate */
    bool keyed;      /* of a Submit */
    uint64_t array;  /* that was taken */
};

static void asking_free (struct asking *asking)
{
    if (asking->job)
        nui__common__v1__job__free_unpacked (asking->job, NULL);
    survey_destroy (asking->survey);
    free (asking->envelope.receipt.data);
    free (asking);
}

static void asking_fail (struct asking *asking, const struct err *err)
{
    struct metad *metad = asking->metad;
    char text[ERR_TEXT_MAX * 2];
    log_event (metad->log, LOG_LEVEL_INFO, "submit", "refused", "by=%s why=%s", asking->submitter,
               log_quote (err->text, text, sizeof text));
    rpccall_fail (asking->call, err);
    asking_free (asking);
}

/* Signature, grid, and submitter == signer == who is at the other end of the connection. */
static int envelope_check (struct asking *asking, struct err *err)
{
    struct metad *metad = asking->metad;
    const struct principal *peer = rpccall_peer (asking->call);
    struct principal signer;
    char uri[PRINCIPAL_URI_MAX];
    time_us now = clock_now_us ();
    int rc = envelope_verify (metad->id, &asking->envelope, now, &signer, err);
    if (rc)
        return rc;
    asking->received = now;
    asking->job = jobcheck_unpack (&asking->envelope.body, err);
    if (!asking->job)
        return err_prefix (err, "the signed bytes are not a job");
    /* Of an array its first stands for all of it. Which one is meant is nobody's to say but ours. */
    if (element_check (asking->job, err))
        return err->code;
    asking->envelope.element = asking->job->n_indexes ? 1 + element_index (asking->job, 0) : 0;
    if (element_apply (asking->job, asking->envelope.element, err))
        return err->code;
    if (job_check (asking->job, metad->grid, err))
        return ERR_INVALID;
    principal_uri (&signer, asking->submitter);
    if (strcmp (asking->job->submitter, asking->submitter) != 0)
        return err_set (err, ERR_DENIED, "the job says it is by %s, its signature is by %s",
                        asking->job->submitter, asking->submitter);
    if (strcmp (principal_uri (peer, uri), asking->submitter) != 0)
        return err_set (err, ERR_DENIED, "the job is signed by %s, the connection is %s's",
                        asking->submitter, uri);
    return 0;
}

/* A component whose allowed sites are unknown, or all too small by what they report. */
static int sites_check (struct asking *asking, struct err *err)
{
    struct metad *metad = asking->metad;
    for (size_t c = 0; c < asking->job->n_components; c++) {
        const ComponentMessage *component = asking->job->components[c];
        struct err why, one;
        bool possible = false;
        uint32_t largest = 0;
        err_set (&why, ERR_LIMIT, "no site is configured");
        for (size_t i = 0; i < component->n_sites; i++)
            if (!site_find (metad, component->sites[i]))
                return err_set (err, ERR_INVALID, "component %s: there is no site %s in this grid",
                                component->name, component->sites[i]);
        for (uint32_t i = 0; i < metad->site_count && !possible; i++) {
            const struct site *site = metad->site[i];
            if (!site->configured || !component_allows (component, site->name))
                continue;
            possible = component_fits_some (component, site, &one) == 0;
            if (!possible && site->procs >= largest) { /* its sentence says how large that is */
                largest = site->procs;
                why = one;
            }
        }
        if (!possible)
            return err_set (err, ERR_LIMIT, "component %s is larger than any allowed site: %s",
                            component->name, why.text);
    }
    return 0;
}

static struct asking *asking_begin (struct metad *metad, struct rpccall *call,
                                    const EnvelopeMessage *envelope)
{
    struct err err;
    struct asking *asking = calloc (1, sizeof *asking);
    if (!asking) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "no memory");
        return NULL;
    }
    asking->metad = metad;
    asking->call = call;
    principal_uri (rpccall_peer (call), asking->submitter);
    err_clear (&err);
    if (envelope) {
        asking->envelope = *envelope;
        asking->envelope.receipt = (ProtobufCBinaryData){0, NULL};
    } else {
        err_set (&err, ERR_INVALID, "the request carries no signed job");
    }
    if (err.code || envelope_check (asking, &err)) {
        asking_fail (asking, &err);
        return NULL;
    }
    return asking;
}

static void survey_ask (struct asking *asking, void (*done) (void *arg, struct survey *survey))
{
    struct arena *arena = arena_create (0);
    struct survey_pair *pair = NULL;
    uint32_t count = survey_candidates (asking->metad, asking->job, NULL, 0, arena, &pair);
    survey_start (asking->metad, &asking->envelope, asking->job, pair, count, 0, done, asking);
    arena_destroy (arena);
}

/* ---- Submit */

static void submit_answer (struct asking *asking, const char *id)
{
    Nui__Meta__V1__SubmitReply reply = NUI__META__V1__SUBMIT_REPLY__INIT;
    struct err err;
    reply.grid_job_id = (char *)(uintptr_t)id;
    reply.note = (char *)(uintptr_t)hooks_note (asking->metad, asking->job, &err);
    rpccall_reply (asking->call, &reply.base);
    asking_free (asking);
}

static void submit_unvoted (struct asking *asking)
{
    rpccall_finish (asking->call, RPC_UNAVAILABLE,
                    "the group of metaschedulers has not taken the job yet: try again");
    asking_free (asking);
}

static void submit_voted (void *arg, uint64_t as)
{
    struct asking *asking = arg;
    char id[32];
    snprintf (id, sizeof id, "grid.%llu", (unsigned long long)as);
    if (as)
        submit_answer (asking, id);
    else
        submit_unvoted (asking);
}

/* Of an array: when the group has all of it. */
static void submit_array_voted (void *arg, bool stands)
{
    struct asking *asking = arg;
    struct err err;
    if (!stands) {
        submit_unvoted (asking);
        return;
    }
    err_clear (&err);
    const struct gridjob *job = job_get (asking->metad, asking->array, &err);
    if (!job) {
        asking_fail (asking, &err);
        return;
    }
    struct arena *arena = arena_create (0);
    submit_answer (asking, job_array_id (job, arena));
    arena_destroy (arena);
}

/* All of it is there. */
static void submit_array_whole (void *arg, bool whole)
{
    struct asking *asking = arg;
    struct metad *metad = asking->metad;
    struct element_row *row = NULL;
    uint32_t count = 0;
    if (!whole) {
        rpccall_finish (asking->call, RPC_UNAVAILABLE,
                        "not all jobs of the array can be written now: try again");
        asking_free (asking);
        return;
    }
    struct arena *arena = arena_create (0);
    struct votes_join *votes = votes_begin (submit_array_voted, asking);
    if (metad->peers)
        (void)metastore_array_list (metad->store, asking->array, arena, &row, &count, NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct gridjob *job = job_live (metad, row[i].number);
        if (job && !(job->lead && job->lead->stands))
            votes_add (votes, job);
    }
    arena_destroy (arena);
    votes_close (votes);
}

/* When the group has it. */
static void submit_reply (struct asking *asking, struct gridjob *job)
{
    if (job->array) {
        asking->array = job->array;
        arrive_then (asking->metad, job->array, submit_array_whole, asking);
    } else if (job->lead && job->lead->stands) {
        submit_voted (asking, job->number);
    } else {
        lead_then (job, submit_voted, asking);
    }
}

/* The same uuid again: the same content gets the same id, other content is refused, unless the user says that the uuid
 * is the request. */
static void submit_known (struct asking *asking, uint64_t number)
{
    struct err err;
    struct gridjob *job = job_get (asking->metad, number, &err);
    if (!job) {
        asking_fail (asking, &err);
        return;
    }
    const ProtobufCBinaryData *a = &job->envelope->body;
    const ProtobufCBinaryData *b = &asking->envelope.body;
    if (asking->keyed || (a->len == b->len && memcmp (a->data, b->data, a->len) == 0)) {
        submit_reply (asking, job);
        return;
    }
    err_set (&err, ERR_EXISTS, "another job with this uuid is %s", job->id);
    asking_fail (asking, &err);
}

static void submit_refuse (struct asking *asking, const struct err *err)
{
    refusals_add (asking->metad, &asking->envelope.body, err);
    asking_fail (asking, err);
}

/* A copy of this request may have been quicker: what it was told goes for this one, too. */
static bool answered_before (struct asking *asking)
{
    struct err err;
    struct uuid uuid;
    uint64_t number = 0;
    err_clear (&err);
    memcpy (uuid.b, asking->job->uuid.data, sizeof uuid.b);
    int rc =
        metastore_job_find_uuid (asking->metad->store, asking->submitter, &uuid, &number, &err);
    if (rc == 0)
        submit_known (asking, number);
    else if (rc != ERR_NOT_FOUND || refusals_find (asking->metad, &asking->envelope.body, &err))
        asking_fail (asking, &err);
    else
        return false;
    return true;
}

/* What is taken is kept and passed on for longer than its signer's certificate may last (receipt.h). */
static int receipt_add (struct asking *asking, struct err *err)
{
    return receipt_make (asking->metad->id, &asking->envelope, asking->received,
                         &asking->envelope.receipt, err);
}

/* NULL: out of memory. */
static struct gridjob *job_alone (struct asking *asking, struct err *err)
{
    EnvelopeMessage *envelope = (EnvelopeMessage *)pbcopy (&asking->envelope.base);
    JobMessage *body = envelope ? element_unpack (envelope, err) : NULL;
    if (body)
        return job_create (asking->metad, envelope, body, asking->submitter, err);
    if (envelope)
        nui__common__v1__envelope__free_unpacked (envelope, NULL);
    err_set (err, ERR_NOMEM, "no memory for a job");
    return NULL;
}

/* NULL: out of memory, or it cannot be. */
static struct gridjob *job_make (struct asking *asking, struct err *err)
{
    struct gridjob *job = job_alone (asking, err);
    if (!job)
        return NULL;
    if (group_made (job, err)) {
        job_destroy (job);
        return NULL;
    }
    job_reason (job, "Pending", "choosing %s", job_is_group (job) ? "sites" : "a site");
    return job;
}

static void job_taken (struct asking *asking, struct gridjob *job)
{
    log_event (asking->metad->log, LOG_LEVEL_INFO, "submit", "accepted",
               "job=%s by=%s components=%u array=%u", job->id, job->submitter, job->part_count,
               element_count (job->job));
    job->survey = asking->survey;
    asking->survey = NULL;
    bool alone = !job->array;
    submit_reply (asking, job);
    if (alone) /* of an array each has its turn */
        job_driver (job)->wake (job);
}

static int job_take (struct asking *asking, uint64_t *number_out, struct err *err)
{
    struct gridjob *job = job_make (asking, err);
    int rc = job ? job_insert (&job, 1, number_out, err) : err->code;
    if (rc && job)
        job_destroy (job);
    return rc;
}

/* The rest comes at the next turns of the loop (arrive.h). */
static int array_take (struct asking *asking, uint64_t *number_out, struct err *err)
{
    EnvelopeMessage *envelope = (EnvelopeMessage *)pbcopy (&asking->envelope.base);
    struct arraybody *body = envelope ? arraybody_create (envelope, err) : NULL;
    int rc = body ? arrive_begin (asking->metad, body, asking->submitter, number_out, err)
                  : err_set (err, ERR_NOMEM, "no memory for an array");
    arraybody_drop (asking->metad, body);
    return rc;
}

/* The job, or all of an array. */
static void accept_job (struct asking *asking)
{
    struct err err;
    uint64_t number = 0;
    err_clear (&err);
    int rc = receipt_add (asking, &err);
    if (rc == 0)
        rc = asking->job->n_indexes ? array_take (asking, &number, &err)
                                    : job_take (asking, &number, &err);
    if (rc == 0)
        job_taken (asking, job_live (asking->metad, number));
    else if (rc == ERR_EXISTS)
        submit_known (asking, number);
    else
        asking_fail (asking, &err);
}

/* Nobody can pay, or there is no price to be paid. */
static int unpaid (const struct coalloc_reason *why, struct err *err)
{
    return strcmp (why->code, "InsufficientFunds") == 0
               ? err_set (err, ERR_FUNDS, "insufficient funds: %s", why->text)
               : err_set (err, ERR_CONFLICT, "%s", why->text);
}

static void group_funds (struct asking *asking, bool funded, credit_micro total,
                         const struct coalloc_reason *why)
{
    struct err err;
    char price[QUANTITY_TEXT_MAX];
    if (funded) {
        accept_job (asking);
        return;
    }
    if (strcmp (why->code, "InsufficientFunds") == 0 && total)
        err_set (&err, ERR_FUNDS, "insufficient funds for %s credits: %s",
                 credit_format (total, price), why->text);
    else
        unpaid (why, &err);
    submit_refuse (asking, &err);
}

/* The group's price is quoted as a whole, at the cheapest site of each component. */
static void group_quoted (void *arg, const struct rpc_result *result)
{
    struct asking *asking = arg;
    struct err err;
    if (answered_before (asking))
        return;
    if (result->status != RPC_OK) {
        err_set (&err, rpc_err_of_status (result->status), "bank: %s", result->message);
        submit_refuse (asking, &err);
        return;
    }
    const Nui__Bank__V1__QuoteReply *reply = (const Nui__Bank__V1__QuoteReply *)result->reply;
    struct coalloc_reason reason = {"", ""};
    if (!reply->funded)
        funding_text (reply, &reason);
    group_funds (asking, reply->funded, reply->total_micro, &reason);
}

static const struct survey_offer *cheapest (const struct survey *survey, uint32_t part)
{
    const struct survey_offer *best = NULL;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        if (offer->part == part && offer->priced && (!best || offer->price < best->price))
            best = offer;
    }
    return best;
}

static void group_quote (struct asking *asking)
{
    Nui__Bank__V1__QuoteRequest request = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    struct arena *arena = arena_create (0);
    request.items = arena_array (arena, asking->job->n_components, sizeof *request.items);
    request.envelope = &asking->envelope;
    request.all_of = true;
    for (uint32_t p = 0; p < asking->job->n_components; p++) {
        const struct survey_offer *offer = cheapest (asking->survey, p);
        if (offer)
            request.items[request.n_items++] = price_item (asking->job, offer, arena);
    }
    link_call (asking->metad->bank, "Quote", &request.base, QUOTE_TIMEOUT, group_quoted, asking);
    arena_destroy (arena);
}

/* Whether the answers leave a way to start and end in time. Silent sites may still offer one. */
static int bounds_check (const struct asking *asking, struct err *err)
{
    const struct survey *survey = asking->survey;
    const JobMessage *job = asking->job;
    struct arena *arena = arena_create (0);
    struct choose_problem problem;
    struct choose_result result;
    uint32_t *index = NULL;
    bool possible = false;
    int rc = 0;
    for (uint32_t i = 0; i < survey->offer_count; i++) {
        const struct survey_offer *offer = &survey->offer[i];
        time_us start = survey_start_of (offer, job->not_before_us);
        possible =
            possible || !offer->answered ||
            (offer->feasible && start &&
             (!job->cost_max_micro || offer->price <= job->cost_max_micro) &&
             (!job->not_after_us || start <= job->not_after_us) &&
             (!job->deadline_us ||
              start + jobshape_walltime (job->components[0], offer->shape) <= job->deadline_us));
    }
    if (job->n_components == 1 && !gridlicence_asked (asking->metad, job)) {
        if (!possible)
            rc = err_set (
                err, ERR_LIMIT,
                job->deadline_us
                    ? "no site can complete the job before its deadline within its bounds"
                    : "no site can start the job before its latest start within its bounds");
        goto out;
    }
    for (uint32_t i = 0; i < survey->offer_count; i++)
        if (!survey->offer[i].answered)
            goto out;
    survey_problem (survey, arena, &problem, &index);
    problem.now = clock_now_us () + asking->metad->config->policy.lead;
    problem.not_before = job->not_before_us;
    problem.not_after = job->not_after_us;
    problem.cost_max = job->cost_max_micro;
    problem.deadline = job->deadline_us;
    struct err why;
    if (choose_group (&problem, &result, &why))
        rc = err_set (err, ERR_LIMIT, "%s", why.text);
out:
    arena_destroy (arena);
    return rc;
}

/* What the exact answers forbid at once. */
static int answers_check (const struct asking *asking, struct err *err)
{
    const struct survey *survey = asking->survey;
    const JobMessage *job = asking->job;
    bool funded = false;
    credit_micro least = 0;
    for (uint32_t p = 0; p < job->n_components; p++) {
        struct coalloc_reason reason = {"", ""};
        if (survey_part (survey, p, &reason) == SURVEY_NEVER)
            return err_set (err, ERR_LIMIT, "%s", reason.text);
    }
    if (!survey_may_run (survey))
        return 0; /* who might run it does not answer now: it waits, and is priced when it is placed
                   */
    if (!survey->priced)
        return err_set (err, survey->bank_refused ? ERR_DENIED : ERR_UNAVAILABLE, "%s",
                        survey->bank.text);
    for (uint32_t i = 0; i < survey->offer_count; i++)
        funded = funded || survey->offer[i].funded;
    for (uint32_t p = 0; p < job->n_components; p++) {
        const struct survey_offer *offer = cheapest (survey, p);
        least += offer ? offer->price : 0;
    }
    if (job->cost_max_micro && least > job->cost_max_micro) {
        char price[QUANTITY_TEXT_MAX], bound[QUANTITY_TEXT_MAX];
        return err_set (err, ERR_LIMIT, "the cheapest way costs %s, the job's bound is %s",
                        credit_format (least, price), credit_format (job->cost_max_micro, bound));
    }
    if (!funded && !survey->group_quoted)
        return unpaid (&survey->bank, err);
    return job->deadline_us || job->not_after_us ? bounds_check (asking, err) : 0;
}

static void submit_surveyed (void *arg, struct survey *survey)
{
    struct asking *asking = arg;
    struct err err;
    err_clear (&err);
    asking->survey = survey;
    if (answered_before (asking))
        return;
    if (answers_check (asking, &err))
        submit_refuse (asking, &err);
    else if (survey->group_quoted)
        group_funds (asking, survey->group_funded, survey->group_price, &survey->bank);
    else if (asking->job->n_components > 1 && survey->priced)
        group_quote (asking);
    else
        accept_job (asking);
}

static int room_check (const struct metad *metad, const char *submitter, uint32_t count,
                       struct err *err)
{
    int rc = metad->takes_work ? metad->takes_work (metad->failed_arg, err) : 0;
    if (rc != 0)
        return rc;
    return share_check (metad, submitter, count, err);
}

/* What is refused before anybody is asked. */
static int submit_check (struct asking *asking, struct err *err)
{
    struct metad *metad = asking->metad;
    uint32_t count = asking->job->n_indexes ? element_count (asking->job) : 1;
    if (room_check (metad, asking->submitter, count, err) ||
        jobcheck_times (asking->job, true, clock_now_us (), err) ||
        job_check_runnable (asking->job, err) || sites_check (asking, err) ||
        gridlicence_check (metad, asking->job, err) ||
        gridlimits_check (metad, asking->job, asking->submitter, err) ||
        hooks_check (metad, asking->job, err))
        return err->code;
    return waits_check (metad, asking->job, asking->submitter, err);
}

/* ---- other terms for a co-reservation */

static void terms_answered (void *arg, const struct err *err)
{
    struct asking *asking = arg;
    char id[32];
    snprintf (id, sizeof id, "grid.%llu", (unsigned long long)asking->array);
    if (err)
        asking_fail (asking, err);
    else
        submit_answer (asking, id);
}

/* The co-reservation keeps its id. */
static void terms_submit (struct asking *asking)
{
    struct metad *metad = asking->metad;
    struct gridjob *job = NULL;
    struct err err = {0};
    if (asking->job->question)
        err_set (&err, ERR_INVALID, "the job was signed as a question only");
    else if (jobcheck_times (asking->job, true, clock_now_us (), &err) == 0 &&
             job_check_runnable (asking->job, &err) == 0)
        job = terms_job (metad, asking->submitter, asking->job, &err);
    if (!job || receipt_add (asking, &err)) {
        asking_fail (asking, &err);
        return;
    }
    asking->array = job->number;
    terms_begin (job, &asking->envelope, terms_answered, asking);
}

void on_submit (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__SubmitRequest *request = (const Nui__Meta__V1__SubmitRequest *)message;
    struct metad *metad = self;
    struct asking *asking = asking_begin (metad, call, request->envelope);
    struct err err;
    if (asking)
        asking->keyed = request->keyed;
    if (!asking ||
        answered_before (asking)) /* first: what was taken once is not refused for its age */
        return;
    err_clear (&err);
    if (!peers_lead (metad)) {
        err_set (&err, ERR_UNAVAILABLE,
                 "too few metaschedulers of the group answer now: try again");
        asking_fail (asking, &err);
        return;
    }
    if (asking->job->reserve && asking->job->reserve->changes.len) {
        terms_submit (asking);
        return;
    }
    if (inputs_here (metad, asking->job, asking->submitter, &err)) {
        asking_fail (asking, &err); /* the same job may come again when it is */
        return;
    }
    if (asking->job->question)
        err_set (&err, ERR_INVALID, "the job was signed as a question only");
    if (err.code || submit_check (asking, &err))
        submit_refuse (asking, &err);
    else
        survey_ask (asking, submit_surveyed);
}

/* ---- Estimate */

static void estimate_surveyed (void *arg, struct survey *survey)
{
    struct asking *asking = arg;
    struct rpccall *call = asking->call;
    struct err err;
    bool bound_only = asking->bound_only;
    err_clear (&err);
    asking->survey = survey;
    if (bound_only && answers_check (asking, &err)) {
        asking_fail (asking, &err);
        return;
    }
    asking->survey = NULL;
    asking_free (asking);
    estimate_answer (call, survey, bound_only);
}

void on_estimate (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__EstimateRequest *request = (const Nui__Meta__V1__EstimateRequest *)message;
    struct asking *asking = asking_begin (self, call, request->envelope);
    struct err err;
    if (!asking)
        return;
    err_clear (&err);
    asking->bound_only = request->bound_only;
    /* Other terms are no other job, which limits would count. */
    bool whole = asking->bound_only && !(asking->job->reserve && asking->job->reserve->changes.len);
    if (whole ? submit_check (asking, &err)
              : jobcheck_times (asking->job, true, clock_now_us (), &err) ||
                    sites_check (asking, &err) ||
                    gridlicence_check (asking->metad, asking->job, &err))
        asking_fail (asking, &err);
    else
        survey_ask (asking, estimate_surveyed);
}
