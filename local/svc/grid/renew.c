/* RENEW: a job that waits here may start after its signature has expired, since its owner signed so. */
#include <stdlib.h>
#include <string.h>

#include "local/store/signed.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"
#include "proto/job/delegation.h"

/* Nothing that was signed is changed, and the bank looks at the hand-over: what is kept of the job gets it. */
static int handover_write (struct svc *svc, struct site_job *job,
                           const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_envelope (svc->store, job->rec.number, &bytes, &len, err);
    if (rc != 0)
        return rc;
    Nui__Common__V1__Envelope *kept = nui__common__v1__envelope__unpack (NULL, len, bytes);
    free (bytes);
    assert (kept); /* it has been read once */
    Nui__Common__V1__HandOver *before = kept->handover;
    kept->handover = envelope->handover;
    len = nui__common__v1__envelope__get_packed_size (kept);
    bytes = malloc (len + 1);
    assert (bytes);
    nui__common__v1__envelope__pack (kept, bytes);
    kept->handover = before;
    envelope_free (kept);
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, bytes, len, err);
    free (bytes);
    return svc_commit (svc, rc, err);
}

/* Envelope and until when, and, if the bank had refused it for its expiry, a try now. */
static int renew_write (struct svc *svc, struct site_job *job, const struct jobspec *spec,
                        const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    size_t len = nui__common__v1__envelope__get_packed_size (envelope);
    uint8_t *bytes = malloc (len + 1);
    assert (bytes);
    nui__common__v1__envelope__pack (envelope, bytes);
    bool waits = job->rec.state == STORE_JOB_QUEUED && job->rec.deferred_until > 0 &&
                 strcmp (job->rec.reason_code, "JobExpired") == 0;
    time_us before = job->rec.deferred_until, now = svc_now (svc);
    if (waits)
        job->rec.deferred_until = now;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, bytes, len, err);
    if (rc == 0)
        rc = replay_keep (svc, spec, job->rec.meta, job->rec.grid_job_id, err);
    free (bytes);
    rc = svc_commit (svc, rc, err);
    if (rc == 0 && waits)
        rc = cluster_job_defer (svc->cluster, (struct job_id){job->rec.number}, now, now, err);
    else if (waits)
        job->rec.deferred_until = before;
    return rc;
}

void renew_handle (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__RenewRequest *r = (const Nui__Local__V1__RenewRequest *)request;
    Nui__Local__V1__RenewReply reply = NUI__LOCAL__V1__RENEW_REPLY__INIT;
    const char *meta = rpccall_peer (call)->name;
    struct jobspec spec = {0};
    struct store_job rec = {0};
    struct err err = {0};
    bool same = false;
    arena_reset (svc->call_arena);
    int rc = r->envelope ? jobs_find (svc, call, r->grid_job_id, r->component, &rec, &err)
                         : err_set (&err, ERR_INVALID, "the request carries no signed job");
    struct site_job *job = rc == 0 ? svc_job (svc, rec.number) : NULL;
    if (rc == 0 && !job)
        rc = err_set (&err, ERR_CONFLICT, "job %s has ended here", r->grid_job_id);
    if (rc == 0)
        rc = svc_job_signed (svc, rec.number, r->envelope, &same, &err);
    if (rc == 0 && !same)
        rc = err_set (&err, ERR_UNAUTHENTIC, "this is not what was signed of that job");
    bool handover_only = rc == 0 && r->envelope->delegation.len == 0 && r->envelope->handover;
    if (handover_only && jobs_allowed (svc, call, &rec, JOBS_META, &err) == 0)
        rc = handover_write (svc, job, r->envelope, &err);
    else if (handover_only)
        rc = err.code;
    if (rc == 0 && !handover_only)
        rc = jobspec_verify (svc, r->envelope, meta, r->component, rec.shape, false, &spec, &err);
    if (rc == 0 && !handover_only && replay_delegated_until (svc, &spec, meta) == 0)
        rc = err_set (&err, ERR_UNAUTHENTIC, "%s",
                      *spec.delegation.why ? spec.delegation.why
                                           : "no delegation to this metascheduler came with it");
    if (rc == 0 && !handover_only)
        rc = renew_write (svc, job, &spec, r->envelope, &err);
    jobspec_free (&spec);
    store_job_free (&rec);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    pass_wake (svc);
    reply.done = true;
    rpccall_reply (call, &reply.base);
}
