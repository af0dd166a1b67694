/* Jobs that cannot be run as they are: deferred, and held once that was too often (core/defer.h). The
 * count, the hold and why are in the store before anything is said. */
#include <stdio.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

const struct deferral deferral_none = {TIME_US_NONE, false};

/* In a transaction: the count, the moment or the batch hold. Reason set before. */

time_us deferral_retry_at (const struct svc *svc, duration_us longest)
{
    duration_us poll = svc->settings->policy->poll_interval;
    return svc_now (svc) + (poll < longest ? poll : longest);
}

int deferral_write (struct svc *svc, struct site_job *job, struct deferral d, struct err *err)
{
    struct store_job_admin set;
    int rc = 0;
    if (d.until == TIME_US_NONE)
        return 0;
    job->rec.defer_count++;
    job->rec.start_failures = 0;
    if (!d.batch_hold) {
        job->rec.deferred_until = d.until;
        return 0;
    }
    job->rec.deferred_until = 0;
    rc = local_store_job_admin_get (svc->store, job->rec.number, &set, err);
    set.holds |= HOLD_BATCH;
    return rc != 0 ? rc : local_store_job_admin_put (svc->store, job->rec.number, &set, err);
}

bool deferral_holds (const struct site_job *job, uint32_t holds)
{
    bool by_admin = strcmp (job->rec.reason_code, defer_reason_name (DEFER_ADMIN)) == 0;
    return *job->rec.reason_code && ((holds & HOLD_BATCH) || ((holds & HOLD_SYSTEM) && by_admin));
}

/* After the commit: the core knows it as well. */
void deferral_apply (struct svc *svc, struct site_job *job, struct deferral d)
{
    struct job_id id = {job->rec.number};
    struct job_view view;
    struct err err = {0};
    char text[SITE_ID_MAX];
    int rc = 0;
    if (d.until == TIME_US_NONE)
        return;
    if (d.batch_hold)
        rc = cluster_job_get (svc->cluster, id, &view, &err);
    if (d.batch_hold && rc == 0)
        rc = cluster_job_hold_set (svc->cluster, id, view.spec->holds | HOLD_BATCH, svc_now (svc),
                                   &err);
    if (!d.batch_hold)
        rc = cluster_job_defer (svc->cluster, id, d.until, svc_now (svc), &err);
    log_event (svc->log, rc == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "svc", "job_deferred",
               "job=%s reason=%s count=%u held=%d%s%s", site_id (svc, job->rec.number, text),
               job->rec.reason_code, job->rec.defer_count, d.batch_hold, rc ? " error=" : "",
               rc ? err.text : "");
}

static const char *sentence (enum defer_reason reason)
{
    switch (reason) {
    case DEFER_NO_RESOURCES:
        return "needs more than the whole cluster has";
    case DEFER_SYSTEM_LIMITS:
        return "is over a limit per job";
    default:
        return "its reservation was due, and it was over a limit";
    }
}

/* Deferred for this, and in the store with it; when that fails, as if nothing had been decided. */
static void defer_for (struct svc *svc, struct site_job *job, enum defer_reason why,
                       const char *text)
{
    struct err err = {0};
    struct store_job before = job->rec;
    struct deferral d = defer_next (svc->settings->policy, job->rec.defer_count, svc_now (svc));
    if (d.until == TIME_US_NONE)
        return;
    before.reason_text = before.reason_text ? strdup (before.reason_text) : NULL;
    svc_reason (job, defer_reason_name (why), "%s%s", text,
                d.batch_hold ? "; held, since it was deferred DEFERCOUNT times" : "");
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = deferral_write (svc, job, d, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) == 0) {
        deferral_apply (svc, job, d);
        free (before.reason_text);
        return;
    }
    log_event (svc->log, LOG_LEVEL_ERROR, "svc", "not_deferred", "job=%llu error=\"%s\"",
               (unsigned long long)job->rec.number, err.text);
    free (job->rec.reason_text);
    job->rec = before;
}

/* What a plan says of idle jobs. */
void deferral_plan (struct svc *svc, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->defer_count; i++) {
        struct site_job *job = svc_job (svc, plan->defer[i].job.v);
        if (job && !job->part && job->rec.state == STORE_JOB_QUEUED)
            defer_for (svc, job, plan->defer[i].reason, sentence (plan->defer[i].reason));
    }
}

static void deferral_qos_changed (struct svc *svc)
{
    const struct policy *policy = svc->settings->policy;
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next) {
        struct err err = {0};
        char text[200];
        uint32_t had = job->cred[CRED_QOS];
        bool denied;
        if (!job->in_cluster || job->part || job->rec.state != STORE_JOB_QUEUED ||
            had == CRED_NONE || had == CRED_DEFAULT)
            continue;
        uint32_t qos = policy_qos_resolve (policy, job->cred, &denied);
        if (!denied || qos == had)
            continue;
        job->cred[CRED_QOS] = qos;
        if (svc_cluster_modify (svc, job, &err) != 0) { /* it starts at this moment: as it was */
            job->cred[CRED_QOS] = had;
            continue;
        }
        text_printf (text, sizeof text,
                     "QoS %.60s is not for its credentials any more; it has %.60s",
                     cred_name (svc->names, CRED_QOS, had), cred_name (svc->names, CRED_QOS, qos));
        defer_for (svc, job, DEFER_QOS_ACCESS, text);
    }
}

/* Nodes have come: what was too much may not be any more. */
void deferral_nodes_changed (struct svc *svc)
{
    struct site_job *job, *next;
    HASH_ITER (hh, svc->jobs, job, next) {
        struct err err = {0};
        if (!job->in_cluster || job->rec.state != STORE_JOB_QUEUED ||
            job->rec.deferred_until <= svc_now (svc) ||
            strcmp (job->rec.reason_code, defer_reason_name (DEFER_NO_RESOURCES)) != 0)
            continue;
        job->rec.deferred_until = 0; /* written with the next change of the job */
        (void)cluster_job_defer (svc->cluster, (struct job_id){job->rec.number}, svc_now (svc),
                                 svc_now (svc), &err);
    }
}

static void deferral_reloaded (struct svc *svc)
{
    deferral_nodes_changed (svc);
    deferral_qos_changed (svc);
}

const struct svc_listener deferral_listener = {.reloaded = deferral_reloaded};
