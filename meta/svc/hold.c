/* Hold: an owner keeps a waiting job from starting, and lets it go. Before it has a site the hold is
 * here; in a site's queue it is the site's, so that the job keeps its place there. */
#include <stdio.h>
#include <stdlib.h>

#include "meta/lead/forward.h"
#include "meta/group/group.h"
#include "meta/svc/array.h"
#include "meta/svc/handlers.h"
#include "meta/job/job.h"
#include "meta/lead/lead.h"
#include "meta/job/sites.h"
#include "proto/rpc/rpcclient.h"

#define HOLD_TIMEOUT (10 * US_PER_S)

struct hold_call {
    struct rpccall *call;
    bool held;
};

static void hold_reply (struct rpccall *call, bool held)
{
    Nui__Meta__V1__HoldReply reply = NUI__META__V1__HOLD_REPLY__INIT;
    reply.held = held;
    reply.count = 1;
    rpccall_reply (call, &reply.base);
}

static void site_answered (void *arg, const struct rpc_result *result)
{
    struct hold_call *hold = arg;
    if (result->status == RPC_OK)
        hold_reply (hold->call, hold->held);
    else
        rpccall_finish (hold->call, result->status, result->message);
    free (hold);
}

static void hold_voted (void *arg, uint64_t as)
{
    struct hold_call *hold = arg;
    if (as)
        hold_reply (hold->call, hold->held);
    else
        rpccall_finish (hold->call, RPC_UNAVAILABLE,
                        "another metascheduler of the group goes on with the job: ask again");
    free (hold);
}

static void hold_at_site (struct gridjob *job, struct rpccall *call, const char *by, bool held)
{
    struct site *site = site_find (job->metad, job->site);
    Nui__Local__V1__HoldJobRequest request = NUI__LOCAL__V1__HOLD_JOB_REQUEST__INIT;
    struct hold_call *hold = malloc (sizeof *hold);
    if (!site || !hold) {
        free (hold);
        rpccall_finish (call, RPC_UNAVAILABLE, "the job's site is not configured any more");
        return;
    }
    *hold = (struct hold_call){call, held};
    request.job_id = job->part[0].site_job_id;
    request.held = held;
    request.by = (char *)by;
    link_call (site->link, "Hold", &request.base, HOLD_TIMEOUT, site_answered, hold);
}

/* By who leads the job. */
static void hold_here (struct gridjob *job, struct rpccall *call, const char *by, bool held)
{
    struct err err;
    err_clear (&err);
    if (job_is_group (job) ? !group_may_wait (job)
                           : job_ended (job) || job->place == SINGLE_SENDING) {
        err_set (&err, ERR_CONFLICT, "job %s %s", job->id,
                 job_ended (job) ? "has ended"
                 : job->state == NUI__META__V1__GRID_JOB_STATE__GRID_PENDING
                     ? "is just being placed: try again"
                     : "does not wait any more: its sites are reserved");
        rpccall_fail (call, &err);
        return;
    }
    if (!job_is_group (job) && job->place == SINGLE_PLACED) {
        hold_at_site (job, call, by, held);
        return;
    }
    enum job_hold before = job->held;
    job->held = held ? JOB_HELD : JOB_RELEASED;
    if (job_save (job, false, &err)) {
        job->held = before;
        rpccall_fail (call, &err);
        return;
    }
    struct hold_call *hold = malloc (sizeof *hold);
    if (!hold)
        abort ();
    *hold = (struct hold_call){call, held};
    job_timer (job, 0);
    lead_then (job, hold_voted, hold);
}

static void hold (struct gridjob *job, const char *by, bool held, bool forwarded,
                  struct rpccall *call)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    request.by = (char *)by;
    request.held = held;
    if (forward_not (job, "Hold", &request, forwarded, call))
        hold_here (job, call, by, held);
}

/* ---- of an array */

struct array_hold {
    struct metad *metad;
    struct rpccall *call;
    char by[PRINCIPAL_URI_MAX];
    bool held;
    uint32_t left, count;
    struct err why; /* of one that is not: a conflict where none of them waits any more */
};

static void array_hold_not (struct array_hold *all, const struct err *why)
{
    if (all->why.code == ERR_CONFLICT)
        all->why = *why;
}

static void array_hold_end (struct array_hold *all, bool done)
{
    all->count += done;
    if (--all->left)
        return;
    Nui__Meta__V1__HoldReply reply = NUI__META__V1__HOLD_REPLY__INIT;
    reply.held = all->held;
    reply.count = --all->count; /* but for the one that closed it */
    bool well = reply.count && all->why.code == ERR_CONFLICT;
    if (reply.count && !well)
        err_prefix (&all->why, "only %u of them are %s", reply.count,
                    all->held ? "held" : "released");
    if (well)
        rpccall_reply (all->call, &reply.base);
    else
        rpccall_fail (all->call, &all->why);
    free (all);
}

static void array_hold_voted (void *arg, uint64_t as)
{
    struct array_hold *all = arg;
    struct err err;
    if (!as) {
        err_set (&err, ERR_UNAVAILABLE,
                 "another metascheduler of the group goes on with some of them: ask again");
        array_hold_not (all, &err);
    }
    array_hold_end (all, as != 0);
}

static void array_hold_answered (void *arg, const struct rpc_result *result)
{
    struct array_hold *all = arg;
    struct err err;
    if (result->status != RPC_OK) {
        err_set (&err, rpc_err_of_status (result->status), "%.300s", result->message);
        array_hold_not (all, &err);
    }
    array_hold_end (all, result->status == RPC_OK);
}

/* By who leads it. */
static void array_hold_there (struct array_hold *all, struct gridjob *job)
{
    PeerRequest request = NUI__META__V1__PEER_REQUEST__INIT;
    request.by = all->by;
    request.held = all->held;
    all->left++;
    forward_send (job, "Hold", &request, array_hold_answered, all);
}

/* Those that have not begun: here, or at the site that has them. */
static void array_hold_one (struct array_hold *all, struct gridjob *job, const char *by)
{
    struct site *site = site_find (job->metad, job->site);
    struct err err;
    if (!job_is_group (job) && job->place == SINGLE_SENDING) { /* with the hold that it has */
        err_set (&err, ERR_UNAVAILABLE, "job %s is just being placed: try again", job->id);
        array_hold_not (all, &err);
        return;
    }
    if (job_is_group (job) ? !group_may_wait (job) : job->place == SINGLE_PLACED && !site)
        return;
    all->left++;
    if (job->place == SINGLE_PLACED) {
        Nui__Local__V1__HoldJobRequest request = NUI__LOCAL__V1__HOLD_JOB_REQUEST__INIT;
        request.job_id = job->part[0].site_job_id;
        request.held = all->held;
        request.by = (char *)by;
        link_call (site->link, "Hold", &request.base, HOLD_TIMEOUT, array_hold_answered, all);
        return;
    }
    enum job_hold before = job->held;
    job->held = all->held ? JOB_HELD : JOB_RELEASED;
    if (job_save (job, false, &err)) {
        job->held = before;
        array_hold_not (all, &err);
        array_hold_end (all, false);
        return;
    }
    job_timer (job, 0);
    lead_then (job, array_hold_voted, all);
}

static int array_hold_some (void *arg, const struct element_row *row, uint32_t count,
                            struct err *err)
{
    struct array_hold *all = arg;
    for (uint32_t i = 0; i < count; i++) {
        struct gridjob *job = array_job (all->metad, &row[i]);
        err_clear (err);
        if (!job || job_ended (job) || job->state == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING)
            continue;
        if (job_led_here (job, err) == 0)
            array_hold_one (all, job, all->by);
        else if (err->code == ERR_CONFLICT)
            array_hold_there (all, job);
        else
            array_hold_not (all, err);
    }
    return 0;
}

static void array_hold_done (void *arg, int rc, const struct err *err)
{
    struct array_hold *all = arg;
    if (rc)
        all->why = *err;
    array_hold_end (all, true);
}

static void array_hold (struct metad *metad, struct rpccall *call, const struct element_id *id,
                        const char *by, bool held)
{
    struct arena *arena = arena_create (0);
    struct array_hold *all = calloc (1, sizeof *all);
    struct element_row *row = NULL;
    uint32_t count = 0;
    if (!all)
        abort ();
    *all = (struct array_hold){.metad = metad, .call = call, .held = held, .left = 1};
    snprintf (all->by, sizeof all->by, "%s", by);
    err_set (&all->why, ERR_CONFLICT, "none of them waits any more");
    (void)array_named (metad, id, arena, &row, &count, &all->why);
    struct array_work work = {.some = array_hold_some, .done = array_hold_done, .arg = all};
    array_each (metad, &work, row, count);
    arena_destroy (arena);
}

void on_hold (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__HoldRequest *request = (const Nui__Meta__V1__HoldRequest *)message;
    char uri[PRINCIPAL_URI_MAX];
    struct element_id id;
    bool array;
    struct gridjob *job = job_or_array (self, call, request->grid_job_id, &id, &array);
    if (!job)
        return;
    principal_uri (rpccall_peer (call), uri);
    if (array)
        array_hold (self, call, &id, uri, request->held);
    else
        hold (job, uri, request->held, false, call);
}

void on_peer_hold (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const PeerRequest *request = (const PeerRequest *)message;
    struct gridjob *job = forward_job (self, call, request);
    if (job)
        hold (job, request->by, request->held, true, call);
}
