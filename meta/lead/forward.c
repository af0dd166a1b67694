/* Hands what is asked about a job on to the member of the group that leads it, once. Called by the methods that change a job. */
#include "meta/lead/forward.h"

#include "meta/lead/lead.h"
#include "meta/job/peers.h"
#include "proto/rpc/rpcclient.h"

#define FORWARD_TIMEOUT (10 * US_PER_S)

static void answered (void *arg, const struct rpc_result *result)
{
    if (result->status == RPC_OK)
        rpccall_reply (arg, result->reply);
    else
        rpccall_finish (arg, result->status, result->message);
}

void forward_send (struct gridjob *job, const char *method, PeerRequest *request, link_done_fn done,
                   void *arg)
{
    struct peers *peers = job->metad->peers;
    request->job = job->number;
    link_call (peers->member[peers_index (peers, job->lead->leader)].link, method, &request->base,
               FORWARD_TIMEOUT, done, arg);
}

bool forward_not (struct gridjob *job, const char *method, PeerRequest *request, bool forwarded,
                  struct rpccall *call)
{
    struct err err;
    err_clear (&err);
    if (job_led_here (job, &err) == 0)
        return true;
    if (forwarded || err.code != ERR_CONFLICT) {
        rpccall_finish (call, RPC_UNAVAILABLE, err.text);
        return false;
    }
    forward_send (job, method, request, answered, call);
    return false;
}

struct gridjob *forward_job (struct metad *metad, struct rpccall *call, const PeerRequest *request)
{
    struct err err;
    err_clear (&err);
    if (peers_caller (metad, call) == UINT32_MAX)
        return NULL;
    struct gridjob *job = job_get (metad, request->job, &err);
    if (!job)
        rpccall_fail (call, &err);
    return job;
}
