/* Hold: an owner keeps a waiting job from starting, and lets it go. Before it has a site the hold is
 * here; in a site's queue it is the site's, so that the job keeps its place there. */
#include <stdlib.h>

#include "meta/svc/group.h"
#include "meta/svc/handlers.h"
#include "meta/svc/job.h"
#include "meta/svc/sites.h"
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

static void hold_at_site (struct gridjob *job, struct rpccall *call, bool held)
{
    struct site *site = site_find (job->metad, job->site);
    Nui__Local__V1__HoldJobRequest request = NUI__LOCAL__V1__HOLD_JOB_REQUEST__INIT;
    struct hold_call *hold = malloc (sizeof *hold);
    char uri[PRINCIPAL_URI_MAX];
    if (!site || !hold) {
        free (hold);
        rpccall_finish (call, RPC_UNAVAILABLE, "the job's site is not configured any more");
        return;
    }
    *hold = (struct hold_call){call, held};
    request.job_id = job->part[0].site_job_id;
    request.held = held;
    request.by = (char *)principal_uri (rpccall_peer (call), uri);
    link_call (site->link, "Hold", &request.base, HOLD_TIMEOUT, site_answered, hold);
}

void on_hold (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__HoldRequest *request = (const Nui__Meta__V1__HoldRequest *)message;
    struct metad *metad = self;
    struct err err;
    err_clear (&err);
    struct gridjob *job = job_of_request (metad, call, request->grid_job_id, &err);
    if (!job) {
        rpccall_fail (call, &err);
        return;
    }
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
        hold_at_site (job, call, request->held);
        return;
    }
    bool before = job->held;
    job->held = request->held;
    if (job_save (job, false, &err)) {
        job->held = before;
        rpccall_fail (call, &err);
        return;
    }
    job_timer (job, 0);
    hold_reply (call, request->held);
}
