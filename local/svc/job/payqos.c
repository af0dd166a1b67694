/* The QoS that a fallback account pays for: the job runs with it, and has its own again when it returns
 * to the queue. Kept as one of the job's set values, "payqos", so that a restart knows it. */
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/memory/memory.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

static const char name[] = "payqos";

bool payqos_refused (struct svc *svc, const struct site_job *job, const struct bank_answer *answer,
                     char *why, size_t cap)
{
    uint32_t cred[CRED_KINDS];
    bool denied = true;
    uint32_t known = strtab_find (svc->names->tab[CRED_QOS], answer->qos);
    memcpy (cred, job->cred, sizeof cred);
    cred[CRED_QOS] = known;
    if (known != STRTAB_NONE)
        policy_qos_resolve (svc->settings->policy, cred, &denied);
    if (denied)
        text_printf (why, cap,
                     "account %.60s would pay for it with QoS %.60s, which it may not have here",
                     answer->account, answer->qos);
    return denied;
}

static int kept_put (struct svc *svc, const struct site_job *job, const char *value,
                     struct err *err)
{
    char id[SITE_ID_MAX];
    return local_store_set_put (svc->store, STORE_SET_JOB, site_id (svc, job->rec.number, id), name,
                                value, err);
}

static void take (struct svc *svc, struct site_job *job, const char *qos)
{
    job->own_qos = job->cred[CRED_QOS];
    job->payqos = true;
    svc_job_qos_set (svc, job, strtab_intern (svc->names->tab[CRED_QOS], qos));
}

int payqos_take (struct svc *svc, struct site_job *job, const char *qos, struct err *err)
{
    if (!*qos)
        return 0;
    take (svc, job, qos);
    return kept_put (svc, job, qos, err);
}

int payqos_drop (struct svc *svc, struct site_job *job, struct err *err)
{
    if (!job->payqos)
        return 0;
    job->payqos = false;
    svc_job_qos_set (svc, job, job->own_qos);
    return kept_put (svc, job, "", err);
}

static void restore_one (void *arg, const char *set, const char *value)
{
    if (strcmp (set, name) == 0)
        snprintf (arg, STORE_NAME_MAX, "%s", value);
}

int payqos_restore (struct svc *svc, struct site_job *job, struct err *err)
{
    char id[SITE_ID_MAX], qos[STORE_NAME_MAX] = "";
    int rc = local_store_sets (svc->store, STORE_SET_JOB, site_id (svc, job->rec.number, id),
                               restore_one, qos, err);
    if (rc == 0 && *qos)
        take (svc, job, qos);
    return rc;
}

/* The core changes what waits only: in the same moment it is sent back and started where it was. */
void payqos_core (struct svc *svc, struct site_job *job)
{
    struct job_id id = {job->rec.number};
    struct err err = {0};
    char text[SITE_ID_MAX];
    time_us now = svc_now (svc);
    if (!job->payqos)
        return;
    arena_reset (svc->call_arena);
    struct allocation a = placement_parse (svc, job->rec.placement, svc->call_arena);
    stats_settle (svc);
    if (cluster_job_requeue (svc->cluster, id, 0, now, &err) != 0 ||
        svc_cluster_modify (svc, job, &err) != 0 ||
        cluster_job_start (svc->cluster, id, &a, now, now, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "job=%s error=\"%s\"",
                   site_id (svc, job->rec.number, text), err.text);
}
