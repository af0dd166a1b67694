/* a job's owner lets the metascheduler go on with it after its signature has expired. The delegation
 * (proto/job/delegation.h) is kept in the job's envelope, goes out with every request from then on, and is told
 * to the site in whose queue the job waits, again and again until it has it. */
#include <stdlib.h>
#include <string.h>

#include "meta/lead/forward.h"
#include "meta/svc/array.h"
#include "meta/svc/handlers.h"
#include "meta/lead/lead.h"
#include "meta/job/peers.h"
#include "meta/job/seal.h"
#include "meta/job/sites.h"
#include "meta/job/steps.h"
#include "meta/single/single.h"
#include "proto/job/delegation.h"

enum { TELL_PERIOD_S = 5, TELL_LOOKED = 20000 };
#define TELL_TIMEOUT (10 * US_PER_S)

/* --- telling the site ------------------------------------------------------------------------- */

static void tell_soon (struct metad *metad, duration_us delay);

struct telling {
    struct metad *metad;
    uint64_t number;
    time_us until; /* what was told */
};

/* Its site cannot be made to take it by asking again: the job has the old one there, and its owner is told. */
static void renew_refused (struct gridjob *job, const char *message)
{
    struct err err;
    char quoted[2 * ERR_TEXT_MAX];
    err_clear (&err);
    log_event (job->metad->log, LOG_LEVEL_WARN, "site", "renewal_refused", "site=%s job=%s said=%s",
               job->site, job->id, log_quote (message, quoted, sizeof quoted));
    job_reason (job, "NotRenewed", "%s did not take the renewal: %.300s", job->site, message);
    if (job_save (job, false, &err) != 0)
        job_reload (job->metad, job->number);
}

static void told (void *arg, const struct rpc_result *result)
{
    struct telling *telling = arg;
    struct gridjob *job = job_live (telling->metad, telling->number);
    bool again = single_uncertain (result->status) || result->status == RPC_RESOURCE_EXHAUSTED;
    bool same = job && job->move.stage == MOVE_NONE && job_expires (job) == telling->until;
    if (same && !again)
        job->renew_untold = false;
    if (same && !again && result->status != RPC_OK)
        renew_refused (job, result->message);
    free (telling);
}

static void tell (struct gridjob *job)
{
    struct site *site = site_find (job->metad, job->site);
    struct telling *telling = malloc (sizeof *telling);
    Nui__Local__V1__RenewRequest request = NUI__LOCAL__V1__RENEW_REQUEST__INIT;
    if (!site || !telling) {
        free (telling);
        return;
    }
    *telling = (struct telling){job->metad, job->number, job_expires (job)};
    request.grid_job_id = job->id;
    request.component = job->part[0].name;
    struct arena *arena = arena_create (0);
    request.envelope = seal_envelope (job, 0, job->site, SEAL_LONGEST, arena);
    if (!request.envelope)
        request.envelope = job->envelope; /* the one that came with it is still good */
    link_call (site->link, "Renew", &request.base, TELL_TIMEOUT, told, telling);
    arena_destroy (arena);
}

/* Parts of a group have their holds already; what is sent from now on carries it. */
static bool is_to_be_told (const struct gridjob *job)
{
    return job->renew_untold && !job_ended (job) && !job_is_group (job) && !job_is_elsewhere (job);
}

/* So many at a turn of the loop, which goes on with the next one. */
static void on_tell (evutil_socket_t fd, short what, void *arg)
{
    struct metad *metad = arg;
    struct gridjob *job = metad->renew_next ? job_live (metad, metad->renew_next) : NULL;
    size_t bytes = 0;
    (void)fd;
    (void)what;
    if (!job) {
        job = metad->jobs;
        metad->renew_some = false;
    }
    for (uint32_t n = 0, looked = 0;
         job && n < STEPS_JOBS && bytes < STEPS_BYTES && looked < TELL_LOOKED;
         job = job->hh.next, looked++) {
        if (!is_to_be_told (job))
            continue;
        metad->renew_some = true;
        if (job->place != SINGLE_PLACED)
            continue;
        bytes += job->envelope->body.len;
        n++;
        tell (job);
    }
    metad->renew_next = job ? job->number : 0;
    if (job || metad->renew_some)
        tell_soon (metad, job ? 0 : TELL_PERIOD_S * US_PER_S);
}

static void tell_soon (struct metad *metad, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    if (!metad->renew_timer)
        metad->renew_timer = evtimer_new (metad->base, on_tell, metad);
    if (metad->renew_timer)
        evtimer_add (metad->renew_timer, &t);
}

/* Whether its site was told nobody knows. */
static int renew_job_loaded (struct gridjob *job, struct arena *arena, struct err *err)
{
    (void)arena;
    (void)err;
    if (job->envelope->delegation.len == 0 || job_ended (job))
        return 0;
    job->renew_untold = true;
    tell_soon (job->metad, TELL_PERIOD_S * US_PER_S);
    return 0;
}

/* Every site that has a job is to be given another hand-over. */
static void renew_keys_changed (struct metad *metad)
{
    struct gridjob *job, *next;
    HASH_ITER (hh, metad->jobs, job, next) {
        job->renew_untold = job->renew_untold || (!job_ended (job) && !job_is_group (job));
    }
    tell_soon (metad, TELL_PERIOD_S * US_PER_S);
}

static void renew_close (struct metad *metad)
{
    if (metad->renew_timer)
        event_free (metad->renew_timer);
    metad->renew_timer = NULL;
}

const struct metad_part renew_part = {
    .close = renew_close,
    .job_loaded = renew_job_loaded,
    .keys_changed = renew_keys_changed,
};

/* --- from the owner --------------------------------------------------------------------------- */

/* Signed by the owner, for this job and for us or one of the group (sites take them for the same), and good for
 * longer than what is there. */
static int check (struct gridjob *job, const EnvelopeMessage *envelope, struct err *err)
{
    struct delegation delegation;
    struct principal signer;
    char uri[PRINCIPAL_URI_MAX];
    int rc =
        delegation_verify (job->metad->id, envelope, clock_now_us (), &signer, &delegation, err);
    if (rc == 0 && !delegation.good)
        return err_set (err, ERR_UNAUTHENTIC, "%s", delegation.why);
    if (rc == 0 && !peers_is_us (job->metad, delegation.delegate))
        return err_set (err, ERR_INVALID, "the delegation is for %.200s, this is %s",
                        delegation.delegate, principal_uri (tlsid_self (job->metad->id), uri));
    if (rc == 0 && delegation.expires <= job_expires (job))
        return err_set (err, ERR_CONFLICT, "job %s may go on for longer than that already",
                        job->id);
    return rc;
}

static int install (struct gridjob *job, EnvelopeMessage *fresh, struct err *err)
{
    struct metad *metad = job->metad;
    EnvelopeMessage *old = job->envelope;
    time_us expires = job->record ? job->record->expires : 0;
    struct arena *arena = arena_create (0);
    struct metastore_blob bytes = job_envelope_pack (job, fresh, arena);
    job->envelope = fresh;
    if (job->record)
        job->record->expires = job_expires (job);
    int rc = metastore_job_envelope_put (metad->store, job->number, &bytes, err);
    if (rc == 0) {
        lead_envelope_changed (job);
        rc = job_save (job, job->record != NULL, err);
    }
    arena_destroy (arena);
    if (rc != 0) {
        job->envelope = old;
        if (job->record)
            job->record->expires = expires;
        return rc;
    }
    job_envelope_free (job, old);
    return 0;
}

/* Of so many, which this is the first of. until: what another of the group has said. */
static void renewed (struct rpccall *call, const struct gridjob *job, uint32_t count, time_us until)
{
    Nui__Meta__V1__RenewReply reply = NUI__META__V1__RENEW_REPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];
    reply.envelope = job->envelope;
    reply.metascheduler = (char *)principal_uri (tlsid_self (job->metad->id), uri);
    reply.until_us = job_expires (job) > until ? job_expires (job) : until;
    reply.count = count;
    rpccall_reply (call, &reply.base);
}

static void renew (struct gridjob *job, const ProtobufCBinaryData *delegation, bool forwarded,
                   struct rpccall *call)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    struct metad *metad = job->metad;
    struct err err;
    err_clear (&err);
    request.delegation = *delegation;
    if (!forward_not (job, "Renew", &request, forwarded, call))
        return;
    int rc = job_ended (job) ? err_set (&err, ERR_CONFLICT, "job %s has ended", job->id) : 0;
    if (rc == 0 && delegation->len > 0) {
        EnvelopeMessage *fresh = job_envelope_with (job, delegation);
        rc = check (job, fresh, &err);
        if (rc == 0)
            rc = install (job, fresh, &err);
        if (rc != 0)
            job_envelope_free (job, fresh);
    }
    if (rc != 0) {
        rpccall_fail (call, &err);
        return;
    }
    if (delegation->len > 0) {
        log_event (metad->log, LOG_LEVEL_INFO, "submit", "renewed", "job=%s", job->id);
        job->renew_untold = true;
        tell_soon (metad, 0);
    }
    renewed (call, job, 1, 0);
}

/* --- of an array ------------------------------------------------------------------------------ */

/* What was signed is the array: leave for all of it is kept once, where the array is. */
static int whole_install (struct gridjob *job, EnvelopeMessage *fresh, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct metastore_blob bytes = job_envelope_pack (job, fresh, arena);
    int rc = metastore_job_envelope_put (job->metad->store, job->array, &bytes, err);
    arena_destroy (arena);
    if (rc == 0)
        arraybody_renew (job->metad, job->body, &fresh->delegation);
    return rc;
}

/* One that has a record of its own, or a row that others of the group have, is written. */
static int element_renewed (struct gridjob *job, const ProtobufCBinaryData *delegation, bool whole,
                            struct err *err)
{
    int rc = 0;
    if (!whole) {
        EnvelopeMessage *fresh = job_envelope_with (job, delegation);
        rc = install (job, fresh, err);
        if (rc)
            job_envelope_free (job, fresh);
    } else if (job->record) {
        job->record->expires = job_expires (job);
        rc = job_save (job, true, err);
    }
    if (rc == 0)
        job->renew_untold = true;
    return rc;
}

struct array_renew {
    struct metad *metad;
    struct rpccall *call;
    uint64_t array, first; /* any of those that are renewed */
    uint32_t count, left;
    bool whole;
    time_us until;  /* of those that others of the group lead */
    struct err why; /* of one that is not renewed; a conflict: it needs none */
    const ProtobufCBinaryData *delegation; /* of the request, which lives as long as the call */
};

/* Those of it that have not ended, to the front. */
static uint32_t array_live (struct metad *metad, struct element_row *row, uint32_t count)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct gridjob *job = job_live (metad, row[i].number);
        bool elsewhere =
            !job && metad->peers && row[i].state < NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
        if (elsewhere || (job && !job_ended (job)))
            row[live++] = row[i];
    }
    return live;
}

/* Whether it is good for all of it; of the whole it is installed where the array is. */
static int array_renew_check (struct array_renew *renew, struct gridjob *first, struct err *err)
{
    EnvelopeMessage *fresh = job_envelope_with (first, renew->delegation);
    int rc = check (first, fresh, err);
    if (rc == 0 && renew->whole)
        rc = whole_install (first, fresh, err);
    job_envelope_free (first, fresh);
    return rc;
}

/* Once all have answered. */
static void array_renew_end (struct array_renew *renew)
{
    struct metad *metad = renew->metad;
    if (--renew->left)
        return;
    bool all = !renew->why.code || (renew->why.code == ERR_CONFLICT && renew->count);
    const struct gridjob *first = all ? job_get (metad, renew->first, &renew->why) : NULL;
    if (!first) {
        rpccall_fail (renew->call, &renew->why);
        free (renew);
        return;
    }
    if (renew->delegation->len) {
        log_event (metad->log, LOG_LEVEL_INFO, "submit", "renewed", "job=grid.%llu of=%u",
                   (unsigned long long)renew->array, renew->count);
        tell_soon (metad, 0);
    }
    renewed (renew->call, first, renew->count, renew->until);
    free (renew);
}

static void array_renew_answered (void *arg, const struct rpc_result *result)
{
    struct array_renew *renew = arg;
    const Nui__Meta__V1__RenewReply *reply = (const Nui__Meta__V1__RenewReply *)result->reply;
    if (result->status == RPC_OK) {
        renew->until = reply->until_us;
        renew->count++;
    } else {
        err_set (&renew->why, rpc_err_of_status (result->status), "%.300s", result->message);
    }
    array_renew_end (renew);
}

/* By who leads it. */
static void array_renew_there (struct array_renew *renew, struct gridjob *job)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    request.delegation = *renew->delegation;
    renew->left++;
    forward_send (job, "Renew", &request, array_renew_answered, renew);
}

static int array_renew_some (void *arg, const struct element_row *row, uint32_t count,
                             struct err *err)
{
    struct array_renew *renew = arg;
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct gridjob *job = renew->delegation->len ? array_job (renew->metad, &row[i]) : NULL;
        if (!job || job_ended (job))
            continue;
        rc = job_led_here (job, err);
        if (rc == ERR_CONFLICT) {
            array_renew_there (renew, job);
            rc = 0;
        } else if (rc == 0) {
            rc = element_renewed (job, renew->delegation, renew->whole, err);
            renew->count += rc == 0;
        }
    }
    return rc;
}

static void array_renew_done (void *arg, int rc, const struct err *why)
{
    struct array_renew *renew = arg;
    if (rc)
        renew->why = *why;
    array_renew_end (renew);
}

static void array_renew (struct metad *metad, struct rpccall *call, const struct element_id *id,
                         const ProtobufCBinaryData *delegation)
{
    struct arena *arena = arena_create (0);
    struct array_renew *renew = calloc (1, sizeof *renew);
    struct element_row *row = NULL;
    uint32_t count = 0;
    struct err err;
    err_clear (&err);
    if (!renew)
        abort ();
    int rc = array_named (metad, id, arena, &row, &count, &err);
    uint32_t live = rc ? 0 : array_live (metad, row, count);
    struct gridjob *first = live ? job_get (metad, row[0].number, &err) : NULL;
    if (rc == 0 && !live)
        rc = err_set (&err, ERR_CONFLICT, "all of it has ended");
    if (rc == 0 && !first)
        rc = err.code;
    *renew = (struct array_renew){
        .metad = metad, .call = call, .array = id->number, .left = 1, .delegation = delegation};
    if (rc == 0) {
        renew->first = first->number;
        renew->count = delegation->len ? 0 : live;
        renew->whole = !id->range_count && !metad->peers && first->body;
    }
    if (rc == 0 && delegation->len)
        rc = array_renew_check (renew, first, &err);
    if (rc) {
        rpccall_fail (call, &err);
        free (renew);
    } else {
        struct array_work work = {.bytes = renew->whole ? 0 : first->envelope->body.len,
                                  .some = array_renew_some,
                                  .done = array_renew_done,
                                  .arg = renew};
        array_each (metad, &work, row, live);
    }
    arena_destroy (arena);
}

/* What its owner sent, with the moment at which it came; false, with the call answered, when that cannot be signed. */
static bool received (struct metad *metad, struct rpccall *call,
                      const ProtobufCBinaryData *delegation)
{
    struct err err = {0};
    /* of the request, which is this call's own */
    if (delegation_receive (metad->id, (ProtobufCBinaryData *)(uintptr_t)delegation,
                            clock_now_us (), &err) == 0)
        return true;
    rpccall_fail (call, &err);
    return false;
}

void on_renew (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__RenewRequest *request = (const Nui__Meta__V1__RenewRequest *)message;
    struct element_id id;
    bool array;
    struct gridjob *job = job_or_array (self, call, request->grid_job_id, &id, &array);
    if (!job || !received (self, call, &request->delegation))
        return;
    if (array)
        array_renew (self, call, &id, &request->delegation);
    else
        renew (job, &request->delegation, false, call);
}

void on_peer_renew (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const PeerRequest *request = (const PeerRequest *)message;
    struct gridjob *job = forward_job (self, call, request);
    if (job)
        renew (job, &request->delegation, true, call);
}
