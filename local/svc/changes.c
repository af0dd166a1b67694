/* What administrators and owners have changed of a job, put into the core again: after a restart, and where a job comes with a
 * hold. Called by recovery and by jobs that enter; the changes themselves are made in admin/. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/svc_i.h"

const char *const change_attr_names[ATTRS + 1] = {[ATTR_QOS] = "qos",
                                                  [ATTR_CLASS] = "class",
                                                  [ATTR_ACCOUNT] = "account",
                                                  [ATTR_WCLIMIT] = "wclimit",
                                                  [ATTR_STARTTIME] = "starttime",
                                                  [ATTR_DEADLINE] = "deadline",
                                                  [ATTRS] = NULL};

int changes_apply (struct svc *svc, const struct site_job *job, uint32_t other_holds,
                   const struct store_job_admin *set, struct err *err)
{
    struct job_id id = {job->rec.number};
    time_us now = svc_now (svc);
    int rc = cluster_job_hold_set (svc->cluster, id, other_holds | set->holds, now, err);
    if (rc == 0)
        rc = cluster_job_system_priority_set (svc->cluster, id, set->priority, set->absolute, now,
                                              err);
    return rc;
}

int changes_restore (struct svc *svc, struct site_job *job, struct err *err)
{
    struct store_job_admin set;
    int rc = local_store_job_admin_get (svc->store, job->rec.number, &set, err);
    if (rc != 0 || (!set.holds && !set.priority && !set.absolute))
        return rc;
    return changes_apply (svc, job, job->depends ? HOLD_DEPENDENCY : 0, &set, err);
}

int changes_suspended_restore (struct svc *svc, struct site_job *job, struct err *err)
{
    struct store_job_admin set;
    int rc = local_store_job_admin_get (svc->store, job->rec.number, &set, err);
    if (rc == 0 && set.holds)
        rc = cluster_job_suspended_hold (svc->cluster, (struct job_id){job->rec.number}, set.holds,
                                         svc_now (svc), err);
    return rc;
}

struct restoring {
    struct svc *svc;
    struct site_job *job;
};

/* After a restart, before the job is in the core. */
static void restore_one (void *arg, const char *name, const char *value)
{
    const struct restoring *a = arg;
    struct svc *svc = a->svc;
    struct site_job *job = a->job;
    int attr = 0;
    bool denied; /* the configuration may have changed since */
    while (attr < ATTRS && strcmp (name, change_attr_names[attr]) != 0)
        attr++;
    switch (attr) {
    case ATTR_QOS:
        job->cred[CRED_QOS] = strtab_intern (svc->names->tab[CRED_QOS], value);
        job->cred[CRED_QOS] = policy_qos_resolve (svc->settings->policy, job->cred, &denied);
        break;
    case ATTR_CLASS:
        job->cred[CRED_CLASS] = strtab_intern (svc->names->tab[CRED_CLASS], value);
        break;
    case ATTR_ACCOUNT:
        job->cred[CRED_ACCOUNT] = strtab_intern (svc->names->tab[CRED_ACCOUNT], value);
        break;
    case ATTR_STARTTIME:
        job->not_before = strcmp (value, "0") == 0 ? TIME_US_NONE : strtoll (value, NULL, 10);
        break;
    case ATTR_DEADLINE:
        job->deadline = strtoll (value, NULL, 10);
        break;
    default:
        break; /* the limit is in the job's own row */
    }
}

int changes_sets_restore (struct svc *svc, struct site_job *job, struct err *err)
{
    struct restoring arg = {svc, job};
    char id[SITE_ID_MAX];
    return local_store_sets (svc->store, STORE_SET_JOB, site_id (svc, job->rec.number, id),
                             restore_one, &arg, err);
}
