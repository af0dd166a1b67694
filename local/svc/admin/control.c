/* mjobctl -R, -s, -r: a running job goes back to the queue, is stopped, goes on.
 *
 * A job that an administrator suspended has a system hold, so that no pass lets it go on; the hold is
 * durable, as that of sethold. It keeps its nodes' memory, not their processors. */
#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

#define ACT(name) NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__##name

static int hold_write (struct svc *svc, const struct site_job *job, uint32_t holds, struct err *err)
{
    struct store_job_admin set;
    int rc = local_store_job_admin_get (svc->store, job->rec.number, &set, err);
    set.holds = holds;
    if (rc == 0)
        rc = svc_begin (svc, err);
    if (rc != 0)
        return rc;
    return svc_commit (svc, local_store_job_admin_put (svc->store, job->rec.number, &set, err),
                       err);
}

static int suspend (struct svc *svc, struct site_job *job, const char *why, struct err *err)
{
    int rc = evict_suspend (svc, job, why, err);
    if (rc == 0)
        rc = hold_write (svc, job, HOLD_SYSTEM, err);
    if (rc == 0)
        rc = cluster_job_suspended_hold (svc->cluster, (struct job_id){job->rec.number},
                                         HOLD_SYSTEM, svc_now (svc), err);
    return rc;
}

/* The next pass lets it go on, where its nodes are free. One that somebody suspended at the resource manager
 * has kept them. */
static int resume (struct svc *svc, struct site_job *job, struct err *err)
{
    char id[SITE_ID_MAX];
    if (job->suspended && !job->rec.suspended_at)
        return svc->rm.ops->suspend (svc->rm.self, site_id (svc, job->rec.number, id),
                                     job->rec.incarnation, false, err);
    int rc = cluster_job_suspended_hold (svc->cluster, (struct job_id){job->rec.number}, 0,
                                         svc_now (svc), err);
    if (rc == 0)
        rc = hold_write (svc, job, 0, err);
    pass_wake (svc);
    return rc;
}

static int act_do (struct svc *svc, const struct admin_caller *caller, struct site_job *job,
                   int act, struct err *err)
{
    static const char *const name[] = {"", "mjobctl -R", "mjobctl -s", "mjobctl -r"};
    char why[PRINCIPAL_URI_MAX + 40], id[SITE_ID_MAX];
    int rc = admin_audit (svc, caller, err, "%s %s", name[act], site_id (svc, job->rec.number, id));
    if (rc != 0)
        return rc;
    if (act == ACT (REQUEUE)) {
        text_printf (why, sizeof why, "sent back to the queue by %s", caller->name);
        return evict_requeue (svc, job, why, err);
    }
    if (act == ACT (RESUME))
        return resume (svc, job, err);
    text_printf (why, sizeof why, "suspended by %s", caller->name);
    return suspend (svc, job, why, err);
}

void admin_control_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ControlJobRequest *r = (const Nui__Local__V1__ControlJobRequest *)request;
    struct admin_caller caller;
    struct store_job rec;
    struct site_job *job = NULL;
    struct err err = {0};
    admin_who (svc, call, &caller);
    int rc = admin_require (&caller, ADMIN_JOBS, "steering running jobs", &err);
    if (rc == 0 && (r->act < ACT (REQUEUE) || r->act > ACT (RESUME)))
        rc = err_set (&err, ERR_INVALID, "act %d is not known", (int)r->act);
    if (rc == 0)
        rc = admin_job (svc, &caller, r->job_id, ADMIN_JOBS, &rec, &job, &err);
    if (rc == 0) {
        store_job_free (&rec);
        rc = job ? act_do (svc, &caller, job, r->act, &err)
                 : err_set (&err, ERR_CONFLICT, "job %.80s has ended", r->job_id);
    }
    admin_answer (svc, call, job, rc, &err);
}
