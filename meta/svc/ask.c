/* The methods by which users look at jobs and sites, and cancel: Jobs, Status, Watch, Cancel, Sites, WhoAmI. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "meta/lead/forward.h"
#include "meta/group/group.h"
#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/lead/lead.h"
#include "meta/job/peers.h"
#include "meta/job/seal.h"
#include "meta/single/single.h"
#include "meta/job/sites.h"

enum { JOBS_LIMIT_DEFAULT = 1000, JOBS_LIMIT_MAX = 2000 };

static struct gridjob *job_find (struct metad *metad, const struct rpccall *call, const char *id,
                                 struct err *err)
{
    const struct principal *peer = rpccall_peer (call);
    char prefix[PRINCIPAL_NAME_MAX];
    char uri[PRINCIPAL_URI_MAX];
    uint64_t number = 0;
    if (id_parse (id, prefix, sizeof prefix, &number, err))
        return NULL;
    if (strcmp (prefix, "grid") != 0 || number > INT64_MAX) {
        err_set (err, ERR_INVALID, "'%.60s' is not a grid job; those are grid.1, grid.2 …", id);
        return NULL;
    }
    struct gridjob *job = job_get (metad, number, err);
    if (job && peer->kind != PRINCIPAL_OPERATOR &&
        strcmp (principal_uri (peer, uri), job->submitter) != 0)
        job = NULL;
    if (!job && err->code == ERR_NOT_FOUND)
        peers_unsure (metad, number, err);
    if (!job && (err->code == ERR_NONE || err->code == ERR_NOT_FOUND))
        err_set (err, ERR_NOT_FOUND, "there is no job grid.%" PRIu64 ", or it is another's",
                 number);
    return job;
}

struct gridjob *job_of_request (struct metad *metad, struct rpccall *call, const char *id)
{
    struct err err;
    err_clear (&err);
    struct gridjob *job = job_find (metad, call, id, &err);
    if (!job)
        rpccall_fail (call, &err);
    return job;
}

void on_jobs (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobsRequest *request = (const Nui__Meta__V1__JobsRequest *)message;
    struct metad *metad = self;
    const struct principal *peer = rpccall_peer (call);
    char uri[PRINCIPAL_URI_MAX];
    const char *submitter = request->all_users ? NULL : principal_uri (peer, uri);
    struct err err;
    uint64_t *number = NULL;
    uint32_t count = 0, untold = 0;
    uint32_t limit = request->limit ? request->limit : JOBS_LIMIT_DEFAULT;
    err_clear (&err);
    if (request->all_users && peer->kind != PRINCIPAL_OPERATOR) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "only operators see the jobs of all users");
        return;
    }
    if (limit > JOBS_LIMIT_MAX)
        limit = JOBS_LIMIT_MAX;
    struct arena *arena = arena_create (0);
    Nui__Meta__V1__JobsReply reply = NUI__META__V1__JOBS_REPLY__INIT;
    if (metastore_job_list (metad->store, submitter, request->ended, request->before, limit, arena,
                            &number, &count, &err)) {
        rpccall_fail (call, &err);
        arena_destroy (arena);
        return;
    }
    struct gridjob **hidden =
        request->ended || request->before ? NULL : lead_hidden (metad, arena, &untold);
    reply.jobs = arena_array (arena, count + untold + 1u, sizeof *reply.jobs);
    for (uint32_t i = 0; i < untold; i++)
        if (!submitter || strcmp (hidden[i]->submitter, submitter) == 0)
            reply.jobs[reply.n_jobs++] = job_status (hidden[i], arena);
    for (uint32_t i = 0; i < count; i++) {
        struct gridjob *job = job_get (metad, number[i], &err);
        if (job)
            reply.jobs[reply.n_jobs++] = job_status (job, arena);
    }
    rpccall_reply (call, &reply.base);
    arena_destroy (arena);
}

void on_status (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobRequest *request = (const Nui__Meta__V1__JobRequest *)message;
    struct gridjob *job = job_of_request (self, call, request->grid_job_id);
    if (!job)
        return;
    struct arena *arena = arena_create (0);
    rpccall_reply (call, &job_status (job, arena)->base);
    arena_destroy (arena);
}

void on_watch (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobRequest *request = (const Nui__Meta__V1__JobRequest *)message;
    struct gridjob *job = job_of_request (self, call, request->grid_job_id);
    if (job)
        job_watch (job, call);
}

/* ---- cancel */

static void cancel_answer (struct rpccall *call, uint64_t as, bool cancelled)
{
    Nui__Meta__V1__CancelReply reply = NUI__META__V1__CANCEL_REPLY__INIT;
    reply.cancelled = cancelled;
    if (as)
        rpccall_reply (call, &reply.base);
    else
        rpccall_finish (call, RPC_UNAVAILABLE,
                        "another metascheduler of the group goes on with the job: try again");
}

static void cancel_voted (void *arg, uint64_t as)
{
    cancel_answer (arg, as, true);
}

/* It ended before it was cancelled. */
static void cancel_late (void *arg, uint64_t as)
{
    cancel_answer (arg, as, false);
}

static void cancel_here (struct gridjob *job, const char *by, struct rpccall *call)
{
    struct metad *metad = job->metad;
    uint64_t number = job->number;
    log_event (metad->log, LOG_LEVEL_INFO, "submit", "cancel", "job=%s by=%s", job->id, by);
    if (job_is_group (job))
        group_cancel (job, by);
    else
        single_cancel (job, by);
    job = job_live (metad, number);
    if (job && job->cancel_wanted)
        lead_then (job, cancel_voted, call);
    else if (job && job->reloaded) /* it could not be written down */
        rpccall_finish (call, RPC_UNAVAILABLE,
                        "too few metaschedulers of the group answer now: try again");
    else
        rpccall_finish (call, RPC_UNAVAILABLE, "the metascheduler cannot write its state");
}

static void cancel (struct gridjob *job, const char *by, bool forwarded, struct rpccall *call)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    request.by = (char *)by;
    if (job_over (job))
        cancel_answer (call, job->number, false);
    else if (job_untold (job) && !job_is_elsewhere (job))
        lead_then (job, cancel_late, call);
    else if (forward_not (job, "Cancel", &request, forwarded, call))
        cancel_here (job, by, call);
}

void on_cancel (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__JobRequest *request = (const Nui__Meta__V1__JobRequest *)message;
    char uri[PRINCIPAL_URI_MAX];
    struct gridjob *job = job_of_request (self, call, request->grid_job_id);
    if (job)
        cancel (job, principal_uri (rpccall_peer (call), uri), false, call);
}

void on_peer_cancel (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const PeerRequest *request = (const PeerRequest *)message;
    struct gridjob *job = forward_job (self, call, request);
    if (job)
        cancel (job, request->by, true, call);
}

void on_sites (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    struct metad *metad = self;
    struct arena *arena = arena_create (0);
    Nui__Meta__V1__SitesReply reply = NUI__META__V1__SITES_REPLY__INIT;
    (void)message;
    reply.sites = arena_array (arena, metad->site_count + 1u, sizeof *reply.sites);
    reply.bank_clock_ahead_us = seal_bank_clock (metad);
    for (uint32_t i = 0; i < metad->site_count; i++) {
        struct site *site = metad->site[i];
        if (!site->configured)
            continue;
        Nui__Meta__V1__SiteState *state = arena_new (arena, Nui__Meta__V1__SiteState);
        nui__meta__v1__site_state__init (state);
        state->name = site->name;
        state->server = arena_strdup (arena, site_server (site));
        state->up = site_up (site);
        state->reported_us = site->reported_us;
        state->clock_ahead_us = site->clock_ahead;
        state->report = site->report;
        reply.sites[reply.n_sites++] = state;
    }
    rpccall_reply (call, &reply.base);
    arena_destroy (arena);
}

void on_whoami (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const struct principal *peer = rpccall_peer (call);
    Nui__Meta__V1__WhoAmIReply reply = NUI__META__V1__WHO_AM_IREPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];
    (void)self;
    (void)message;
    reply.identity = principal_uri (peer, uri);
    reply.kind = (char *)principal_kind_name (peer->kind);
    reply.grid = (char *)peer->grid;
    rpccall_reply (call, &reply.base);
}
