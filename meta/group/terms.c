/* See terms.h. svc/submit.c begins, group.c tells of a restart and of the job's end. A site that took anything is told how
 * it ended until it has answered; nothing is decided unless all parts stand where they were asked. */
#include "meta/group/terms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/job/peers.h"
#include "meta/job/sites.h"
#include "meta/lead/lead.h"
#include "meta/place/survey.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"
#include "proto/rpc/pbcopy.h"

#define QUOTE_TIMEOUT (5 * US_PER_S)
#define TERMS_TIMEOUT (5 * US_PER_S)
#define TERMS_AGAIN (2 * US_PER_S)

struct terms {
    struct gridjob *job;
    uint64_t serial;           /* of this try: an older answer is nobody's */
    EnvelopeMessage *envelope; /* that are wanted; NULL: sites are told what stands */
    JobMessage *body;
    terms_done done; /* NULL: nobody waits any more */
    void *arg;
    uint32_t left;  /* answers */
    struct err why; /* a site's no */
    uint8_t transaction[16];
    uint32_t attempt[COALLOC_PARTS_MAX];
    bool priced; /* the bank has said what they cost */
    credit_micro price[COALLOC_PARTS_MAX];
    bool told[COALLOC_PARTS_MAX];
    struct event *again;
};

struct terms_call {
    struct metad *metad;
    uint64_t number, serial;
    uint32_t part;
};

/* ---- which job */

static int terms_same_parts (const struct gridjob *job, const JobMessage *wanted, struct err *err)
{
    bool same = wanted->n_components == job->part_count && !wanted->n_indexes;
    for (uint32_t p = 0; p < job->part_count && same; p++) {
        const ComponentMessage *a = job->job->components[p], *b = wanted->components[p];
        same = strcmp (a->name, b->name) == 0 && a->offset_us == b->offset_us && b->n_reqs == 1;
    }
    return same ? 0
                : err_set (err, ERR_INVALID,
                           "the components of %s stay what they are; only their tasks may be fewer",
                           job->id);
}

struct gridjob *terms_job (struct metad *metad, const char *submitter, const JobMessage *wanted,
                           struct err *err)
{
    const ProtobufCBinaryData *first = &wanted->reserve->changes;
    struct gridjob *job = NULL;
    struct uuid uuid;
    uint64_t number = 0;
    if (first->len != sizeof uuid.b) {
        err_set (err, ERR_INVALID, "a uuid has %zu bytes", sizeof uuid.b);
        return NULL;
    }
    memcpy (uuid.b, first->data, sizeof uuid.b);
    if (metastore_job_find_uuid (metad->store, submitter, &uuid, &number, err) == 0)
        job = job_get (metad, number, err);
    if (!job)
        return NULL;
    if (job->array || !job->job->reserve)
        err_set (err, ERR_CONFLICT, "%s is %s", job->id,
                 job->array
                     ? "a day of a standing co-reservation: give it up, and reserve that day anew"
                     : "no co-reservation");
    else if (job_ended (job))
        err_set (err, ERR_CONFLICT, "%s has ended", job->id);
    else if (job_led_here (job, err) == 0 && terms_same_parts (job, wanted, err) == 0)
        return job;
    return NULL;
}

/* ---- its end */

static void terms_answer (struct terms *t, const struct err *err)
{
    terms_done done = t->done;
    t->done = NULL;
    if (done)
        done (t->arg, err);
}

static void terms_wanted_free (struct terms *t)
{
    if (t->envelope)
        nui__common__v1__envelope__free_unpacked (t->envelope, NULL);
    if (t->body)
        nui__common__v1__job__free_unpacked (t->body, NULL);
    t->envelope = NULL;
    t->body = NULL;
}

static void terms_free (struct terms *t)
{
    t->job->terms = NULL;
    terms_wanted_free (t);
    if (t->again)
        event_free (t->again);
    free (t);
}

void terms_drop (struct gridjob *job)
{
    struct err err;
    if (!job->terms)
        return;
    err_set (&err, ERR_UNAVAILABLE, "what became of the change is not known: ask again");
    terms_answer (job->terms, &err);
    terms_free (job->terms);
}

/* ---- asking, and telling */

static void terms_on_call (void *arg, const struct rpc_result *result);

static void terms_send (struct terms *t, uint32_t p, bool keep)
{
    struct gridjob *job = t->job;
    struct site *site = site_find (job->metad, job->record->part[p].site);
    Nui__Local__V1__Part part = NUI__LOCAL__V1__PART__INIT;
    Nui__Local__V1__TermsRequest request = NUI__LOCAL__V1__TERMS_REQUEST__INIT;
    struct terms_call *call = malloc (sizeof *call);
    if (!call)
        abort ();
    *call = (struct terms_call){job->metad, job->number, t->serial, p};
    part.transaction = (ProtobufCBinaryData){16, job->record->transaction};
    part.component = job->part[p].name;
    part.attempt = job->record->part[p].attempt;
    part.epoch = job_epoch (job);
    request.part = &part;
    request.envelope = keep ? job->envelope : t->envelope;
    request.keep = keep;
    if (site) {
        link_call (site->link, "Terms", &request.base, TERMS_TIMEOUT, terms_on_call, call);
    } else {
        free (call);
        t->left--; /* taken out of the configuration: told when it is back */
    }
}

static void terms_later (struct terms *t, duration_us delay)
{
    const struct timeval tv = {delay / US_PER_S, 0};
    evtimer_add (t->again, &tv);
}

/* Each site that has not said that it knows. */
static void terms_tell (struct terms *t)
{
    t->serial++;
    t->left = 0;
    for (uint32_t p = 0; p < t->job->part_count; p++)
        if (!t->told[p]) {
            t->left++;
            terms_send (t, p, true);
        }
    if (!t->left)
        terms_later (t, TERMS_AGAIN);
}

static bool terms_stands (const struct coalloc_record *record)
{
    return (record->phase == COALLOC_READY || record->phase == COALLOC_LIVE ||
            record->phase == COALLOC_START) &&
           !record->cancel_wanted;
}

static void terms_on_again (evutil_socket_t fd, short what, void *arg)
{
    struct terms *t = arg;
    struct gridjob *job = t->job;
    (void)fd;
    (void)what;
    if (job_is_elsewhere (job) || job_ended (job))
        terms_free (t);
    else if (!peers_lead (job->metad) || !terms_stands (job->record))
        terms_later (t, TERMS_AGAIN);
    else
        terms_tell (t);
}

static void terms_voted (void *arg, uint64_t as)
{
    struct terms_call *call = arg;
    struct gridjob *job = job_live (call->metad, call->number);
    struct terms *t = job && job->terms && job->terms->serial == call->serial ? job->terms : NULL;
    free (call);
    if (t && as) {
        terms_answer (t, NULL);
        terms_tell (t);
    } else if (t) { /* another leads it, and tells the sites */
        terms_drop (job);
    }
}

/* ---- the decision */

/* The envelope becomes another one, with what its record says of the parts' time. */
static int terms_install (struct terms *t, struct err *err)
{
    struct gridjob *job = t->job;
    EnvelopeMessage *old = job->envelope;
    JobMessage *body = job->job;
    struct arena *arena = arena_create (0);
    size_t len = nui__common__v1__envelope__get_packed_size (t->envelope);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__common__v1__envelope__pack (t->envelope, bytes);
    int rc = metastore_job_envelope_put (job->metad->store, job->number,
                                         &(struct metastore_blob){bytes, len}, err);
    arena_destroy (arena);
    if (rc)
        return rc;
    job->envelope = t->envelope;
    job->job = t->body;
    job->record->cost_max = job->job->cost_max_micro;
    for (uint32_t p = 0; p < job->part_count; p++) {
        job->record->part[p].walltime = job->job->components[p]->walltime_us;
        if (t->priced)
            job->record->part[p].price = t->price[p];
    }
    t->envelope = old;
    t->body = body;
    terms_wanted_free (t);
    lead_envelope_changed (job);
    return job_save (job, true, err);
}

static bool terms_unmoved (const struct terms *t)
{
    const struct coalloc_record *record = t->job->record;
    bool same = terms_stands (record) &&
                memcmp (record->transaction, t->transaction, sizeof t->transaction) == 0;
    for (uint32_t p = 0; p < t->job->part_count && same; p++)
        same = record->part[p].attempt == t->attempt[p];
    return same;
}

static void terms_refused (struct terms *t, const struct err *err)
{
    struct err why = *err;
    terms_wanted_free (t);
    terms_answer (t, &why);
    terms_tell (t); /* by the old ones they give back what they took */
}

static void terms_decide (struct terms *t)
{
    struct gridjob *job = t->job;
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    struct err err = t->why;
    if (!err.code && !terms_unmoved (t))
        err_set (&err, ERR_CONFLICT, "%s is just being placed anew: try again", job->id);
    if (err.code) {
        terms_refused (t, &err);
        return;
    }
    if (terms_install (t, &err)) { /* what is on disk counts */
        job_reload (metad, number);
        return;
    }
    log_event (metad->log, LOG_LEVEL_INFO, "coalloc", "terms", "job=%s", job->id);
    struct terms_call *call = malloc (sizeof *call);
    if (!call)
        abort ();
    *call = (struct terms_call){metad, number, ++t->serial, 0};
    lead_then (job, terms_voted, call);
}

static void terms_heard (struct terms *t, uint32_t p, const struct rpc_result *result)
{
    const Nui__Local__V1__TermsReply *reply =
        result->status == RPC_OK ? (const Nui__Local__V1__TermsReply *)result->reply : NULL;
    if (!t->envelope) {
        t->told[p] = reply != NULL;
        bool all = true;
        for (uint32_t k = 0; k < t->job->part_count; k++)
            all = all && t->told[k];
        if (all)
            terms_free (t);
        else if (--t->left == 0)
            terms_later (t, TERMS_AGAIN);
        return;
    }
    if (!reply)
        err_set (&t->why, rpc_err_of_status (result->status), "site %.60s: %.300s",
                 t->job->record->part[p].site, result->message);
    else if (!reply->done)
        err_set (&t->why, ERR_CONFLICT, "site %.60s: %.300s", t->job->record->part[p].site,
                 reply->reason ? reply->reason->text : "no");
    if (--t->left == 0)
        terms_decide (t);
}

static void terms_on_call (void *arg, const struct rpc_result *result)
{
    struct terms_call *call = arg;
    struct gridjob *job = call->metad->stopping ? NULL : job_live (call->metad, call->number);
    if (job && job->terms && job->terms->serial == call->serial)
        terms_heard (job->terms, call->part, result);
    free (call);
}

/* ---- a beginning */

static struct terms *terms_make (struct gridjob *job)
{
    struct terms *t = calloc (1, sizeof *t);
    if (!t || !(t->again = evtimer_new (job->metad->base, terms_on_again, t)))
        abort ();
    random_bytes (&t->serial, sizeof t->serial);
    t->job = job;
    job->terms = t;
    return t;
}

/* Each site takes what it needs besides for them, or says no. */
static void terms_ask (struct terms *t)
{
    struct gridjob *job = t->job;
    t->left = job->part_count + 1;
    for (uint32_t p = 0; p < job->part_count; p++) {
        if (!site_find (job->metad, job->record->part[p].site))
            err_set (&t->why, ERR_UNAVAILABLE, "site %.60s is not configured any more",
                     job->record->part[p].site);
        terms_send (t, p, false);
    }
    if (--t->left == 0)
        terms_decide (t);
}

/* ---- what they cost */

/* More than what stands was signed for, or for less. Tasks can only be fewer, which the sites see to. */
static bool terms_dearer (const struct terms *t)
{
    const struct gridjob *job = t->job;
    credit_micro is = job->job->cost_max_micro, most = t->body->cost_max_micro;
    bool longer = false;
    for (uint32_t p = 0; p < job->part_count; p++)
        longer = longer || t->body->components[p]->walltime_us > job->record->part[p].walltime;
    return most && (longer || !is || most < is);
}

static void terms_on_price (void *arg, const struct rpc_result *result)
{
    struct terms_call *call = arg;
    struct gridjob *job = call->metad->stopping ? NULL : job_live (call->metad, call->number);
    struct terms *t = job && job->terms && job->terms->serial == call->serial ? job->terms : NULL;
    const Nui__Bank__V1__QuoteReply *reply =
        result->status == RPC_OK ? (const Nui__Bank__V1__QuoteReply *)result->reply : NULL;
    char price[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];
    struct err err = {0};
    free (call);
    if (!t)
        return;
    if (!reply)
        err_set (&err, rpc_err_of_status (result->status), "the bank has no price for it: %.300s",
                 result->message);
    else if (reply->n_prices != job->part_count)
        err_set (&err, ERR_UNAVAILABLE, "the bank did not price all of it");
    else if (reply->total_micro > t->body->cost_max_micro)
        err_set (&err, ERR_LIMIT, "%s would cost %s, its bound is %s (--max-cost)", job->id,
                 credit_format (reply->total_micro, price),
                 credit_format (t->body->cost_max_micro, most));
    else if (!terms_unmoved (t))
        err_set (&err, ERR_CONFLICT, "%s is just being placed anew: try again", job->id);
    for (size_t p = 0; p < job->part_count && !err.code; p++) {
        const Nui__Common__V1__Reason *why = reply->prices[p]->reason;
        t->price[p] = reply->prices[p]->amount_micro;
        if (why && *why->code)
            err_set (&err, ERR_DENIED, "component %.60s has no price: %.300s", job->part[p].name,
                     why->text);
    }
    if (err.code) { /* no site has been asked */
        terms_answer (t, &err);
        terms_free (t);
        return;
    }
    t->priced = true;
    terms_ask (t);
}

/* All of it at where it is, for all of its time. */
static void terms_price (struct terms *t)
{
    struct gridjob *job = t->job;
    Nui__Bank__V1__QuoteRequest request = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    struct arena *arena = arena_create (0);
    struct terms_call *call = malloc (sizeof *call);
    if (!call)
        abort ();
    *call = (struct terms_call){job->metad, job->number, t->serial, 0};
    request.envelope = t->envelope;
    request.all_of = true;
    request.n_items = job->part_count;
    request.items = arena_array (arena, job->part_count, sizeof *request.items);
    for (uint32_t p = 0; p < job->part_count; p++) {
        const struct site *site = site_find (job->metad, job->record->part[p].site);
        struct survey_offer offer = {.part = p, .shape = job->record->part[p].shape};
        snprintf (offer.site_name, sizeof offer.site_name, "%s", job->record->part[p].site);
        offer.procs = (uint32_t)jobcheck_procs (t->body->components[p], offer.shape);
        if (site)
            snprintf (offer.machine, sizeof offer.machine, "%s", site->machine);
        request.items[p] = price_item (t->body, &offer, arena);
    }
    link_call (job->metad->bank, "Quote", &request.base, QUOTE_TIMEOUT, terms_on_price, call);
    arena_destroy (arena);
}

void terms_begin (struct gridjob *job, const EnvelopeMessage *envelope, terms_done done, void *arg)
{
    struct err err = {0};
    bool again = envelope->body.len == job->envelope->body.len &&
                 memcmp (envelope->body.data, job->envelope->body.data, envelope->body.len) == 0;
    if (!again && job->terms)
        err_set (&err, ERR_UNAVAILABLE, "other terms of %s are just being agreed on: try again",
                 job->id);
    else if (!again && !terms_stands (job->record))
        err_set (&err, ERR_CONFLICT, "%s does not stand now: try again when it is Reserved",
                 job->id);
    if (again || err.code) {
        done (arg, err.code ? &err : NULL);
        return;
    }
    struct terms *t = terms_make (job);
    t->envelope = (EnvelopeMessage *)pbcopy (&envelope->base);
    t->body = t->envelope ? element_unpack (t->envelope, &err) : NULL;
    if (!t->body)
        abort (); /* it was read before */
    t->done = done;
    t->arg = arg;
    memcpy (t->transaction, job->record->transaction, sizeof t->transaction);
    for (uint32_t p = 0; p < job->part_count; p++)
        t->attempt[p] = job->record->part[p].attempt;
    if (terms_dearer (t))
        terms_price (t);
    else
        terms_ask (t);
}

void terms_recover (struct gridjob *job)
{
    if (!job->job->reserve || job->terms || job_ended (job))
        return;
    terms_later (terms_make (job), 0);
}
