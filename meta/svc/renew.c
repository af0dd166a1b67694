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
#include "proto/job/delegation.h"

enum { TELL_PERIOD_S = 5 };
#define TELL_TIMEOUT (10 * US_PER_S)

/* --- telling the site ------------------------------------------------------------------------- */

static void tell_soon (struct metad *metad, duration_us delay);

struct telling {
    struct metad *metad;
    uint64_t number;
    time_us until; /* what was told */
};

static void told (void *arg, const struct rpc_result *result)
{
    struct telling *telling = arg;
    struct gridjob *job = job_live (telling->metad, telling->number);
    bool again = result->status == RPC_UNAVAILABLE || result->status == RPC_DEADLINE_EXCEEDED ||
                 result->status == RPC_CANCELLED;
    if (job && !again && job->move.stage == MOVE_NONE && job_expires (job) == telling->until)
        job->renew_untold = false;
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

static void on_tell (evutil_socket_t fd, short what, void *arg)
{
    struct metad *metad = arg;
    struct gridjob *job, *next;
    bool some = false;
    (void)fd;
    (void)what;
    HASH_ITER (hh, metad->jobs, job, next) {
        some = some || is_to_be_told (job);
        if (is_to_be_told (job) && job->place == SINGLE_PLACED)
            tell (job);
    }
    if (some)
        tell_soon (metad, TELL_PERIOD_S * US_PER_S);
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
    size_t len = nui__common__v1__envelope__get_packed_size (fresh);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__common__v1__envelope__pack (fresh, bytes);
    job->envelope = fresh;
    if (job->record)
        job->record->expires = job_expires (job);
    int rc = metastore_job_envelope_put (metad->store, job->number,
                                         &(struct metastore_blob){bytes, len}, err);
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

/* Of so many, which this is the first of. */
static void renewed (struct rpccall *call, const struct gridjob *job, uint32_t count)
{
    Nui__Meta__V1__RenewReply reply = NUI__META__V1__RENEW_REPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];
    reply.envelope = job->envelope;
    reply.metascheduler = (char *)principal_uri (tlsid_self (job->metad->id), uri);
    reply.until_us = job_expires (job);
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
    renewed (call, job, 1);
}

/* --- of an array ------------------------------------------------------------------------------ */

/* What was signed is the array: leave for all of it is kept once, where the array is. */
static int whole_install (struct gridjob *job, EnvelopeMessage *fresh, struct err *err)
{
    struct arena *arena = arena_create (0);
    size_t len = nui__common__v1__envelope__get_packed_size (fresh);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__common__v1__envelope__pack (fresh, bytes);
    int rc = metastore_job_envelope_put (job->metad->store, job->array,
                                         &(struct metastore_blob){bytes, len}, err);
    arena_destroy (arena);
    if (rc == 0)
        arraybody_renew (job->metad, job->body, &fresh->delegation);
    return rc;
}

/* One that has a record of its own, or a row that others of the group have, is written. */
static int element_renewed (struct gridjob *job, const ProtobufCBinaryData *delegation, bool whole,
                            struct err *err)
{
    int rc = job_led_here (job, err);
    if (rc == 0 && !whole) {
        EnvelopeMessage *fresh = job_envelope_with (job, delegation);
        rc = install (job, fresh, err);
        if (rc)
            job_envelope_free (job, fresh);
    } else if (rc == 0 && job->record) {
        job->record->expires = job_expires (job);
        rc = job_save (job, true, err);
    }
    if (rc == 0)
        job->renew_untold = true;
    return rc;
}

/* Those of it that have not ended. */
static uint32_t array_live (struct metad *metad, const struct element_id *id, struct arena *arena,
                            struct gridjob ***out, struct err *err)
{
    struct element_row *row = NULL;
    uint32_t count = 0, live = 0;
    if (array_named (metad, id, arena, &row, &count, err))
        return 0;
    *out = arena_array (arena, count + 1u, sizeof **out);
    for (uint32_t i = 0; i < count; i++) {
        struct gridjob *job = job_live (metad, row[i].number);
        if (job && !job_ended (job))
            (*out)[live++] = job;
    }
    if (!live)
        err_set (err, ERR_CONFLICT, "all of it has ended");
    return live;
}

static int array_install (struct gridjob **job, uint32_t count, const struct element_id *id,
                          const ProtobufCBinaryData *delegation, struct err *err)
{
    bool whole = !id->range_count && !job[0]->metad->peers && job[0]->body;
    EnvelopeMessage *fresh = job_envelope_with (job[0], delegation);
    int rc = check (job[0], fresh, err);
    if (rc == 0 && whole)
        rc = whole_install (job[0], fresh, err);
    job_envelope_free (job[0], fresh);
    for (uint32_t i = 0; i < count && rc == 0; i++)
        rc = element_renewed (job[i], delegation, whole, err);
    return rc;
}

static void array_renew (struct metad *metad, struct rpccall *call, const struct element_id *id,
                         const ProtobufCBinaryData *delegation)
{
    struct arena *arena = arena_create (0);
    struct gridjob **job = NULL;
    struct err err;
    err_clear (&err);
    uint32_t count = array_live (metad, id, arena, &job, &err);
    if (!count || (delegation->len && array_install (job, count, id, delegation, &err))) {
        rpccall_fail (call, &err);
        arena_destroy (arena);
        return;
    }
    if (delegation->len) {
        log_event (metad->log, LOG_LEVEL_INFO, "submit", "renewed", "job=grid.%llu of=%u",
                   (unsigned long long)id->number, count);
        tell_soon (metad, 0);
    }
    renewed (call, job[0], count);
    arena_destroy (arena);
}

void on_renew (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__RenewRequest *request = (const Nui__Meta__V1__RenewRequest *)message;
    struct element_id id;
    bool array;
    struct gridjob *job = job_or_array (self, call, request->grid_job_id, &id, &array);
    if (job && array)
        array_renew (self, call, &id, &request->delegation);
    else if (job)
        renew (job, &request->delegation, false, call);
}

void on_peer_renew (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const PeerRequest *request = (const PeerRequest *)message;
    struct gridjob *job = forward_job (self, call, request);
    if (job)
        renew (job, &request->delegation, true, call);
}
