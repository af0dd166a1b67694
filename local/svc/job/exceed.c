/* Running jobs that use more than they asked for, as RESOURCELIMITPOLICY says: ended, sent back to the queue, suspended, or
 * told of. Hears of each measurement (memory/usage.c). How long a job has been above its request is kept in memory: a
 * restart counts from its own first measurement. */
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"

/* Measured between two clock ticks of each process, so a full processor may look like a little more. */
enum { PROCS_SLACK_PERCENT = 5 };

static int64_t memory_asked (const struct site_job *job)
{
    int64_t mb = 0;
    for (uint32_t r = 0; r < job->req_count; r++)
        mb += (int64_t)job->reqs[r].tasks * job->reqs[r].task.v[RES_MEM_MB];
    return mb;
}

/* Does it use more than it asked for, now? The sentence says how much. */
static bool is_above (struct svc *svc, const struct site_job *job, enum resource_limit which,
                      char *text, size_t cap)
{
    struct job_view view;
    if (which == RESOURCE_LIMIT_MEM) {
        int64_t asked = memory_asked (job);
        snprintf (text, cap, "uses %lld MB of memory, %lld MB were asked for",
                  (long long)job->memory_used_mb, (long long)asked);
        return asked > 0 && job->memory_used_mb > asked;
    }
    if (cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0)
        return false;
    int64_t used = view.usage.used_micro, asked = (int64_t)view.procs * 1000000;
    snprintf (text, cap, "uses %.2f processors, %u were asked for", (double)used / 1e6, view.procs);
    return used > asked / 100 * (100 + PROCS_SLACK_PERCENT);
}

static int act (struct svc *svc, struct site_job *job, enum limit_action action, const char *code,
                const char *text, struct err *err)
{
    switch (action) {
    case LIMIT_CANCEL:
        return life_cancel (svc, job, code, text, err);
    case LIMIT_REQUEUE:
        return evict_requeue (svc, job, text, err);
    case LIMIT_SUSPEND:
        return evict_suspend (svc, job, text, err);
    case LIMIT_NOTIFY:
    case LIMIT_ALLOW:
        break;
    }
    return 0;
}

static void exceeds (struct svc *svc, struct site_job *job, enum resource_limit which,
                     const char *text)
{
    static const char *const verb[] = {[LIMIT_CANCEL] = "ended",
                                       [LIMIT_REQUEUE] = "sent back to the queue",
                                       [LIMIT_SUSPEND] = "suspended",
                                       [LIMIT_NOTIFY] = "told of",
                                       [LIMIT_ALLOW] = "left alone"};
    enum limit_action action = svc->settings->policy->resource_limit[which].action;
    char id[SITE_ID_MAX], why[300];
    struct err err = {0};
    if (action == LIMIT_NOTIFY && job->exceeds_told)
        return;
    snprintf (why, sizeof why, "%s by RESOURCELIMITPOLICY: it %s", verb[action], text);
    log_event (svc->log, LOG_LEVEL_WARN, "svc", "job_exceeds", "job=%s text=\"%s\"",
               site_id (svc, job->rec.number, id), why);
    if (!job->exceeds_told)
        SVC_TELL (svc, job_exceeds, (svc, job, why));
    job->exceeds_told = true;
    job->exceeds_since[which] = 0; /* should it go on: from then */
    const char *code = which == RESOURCE_LIMIT_MEM ? "MemoryLimit" : "ProcessorLimit";
    if (act (svc, job, action, code, why, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "limit_not_kept", "job=%s error=\"%s\"", id,
                   err.text);
}

static void exceed_measured (struct svc *svc, struct site_job *job)
{
    time_us now = svc_now (svc);
    for (int i = 0; i < RESOURCE_LIMITS; i++) {
        const struct policy_resource_limit *limit = &svc->settings->policy->resource_limit[i];
        char text[160];
        if (limit->action == LIMIT_ALLOW || job->rec.state != STORE_JOB_RUNNING ||
            job->rec.stop != STORE_STOP_NONE || job->rec.suspended_at || job->suspended)
            continue;
        if (!is_above (svc, job, (enum resource_limit)i, text, sizeof text)) {
            job->exceeds_since[i] = 0;
            continue;
        }
        if (!job->exceeds_since[i])
            job->exceeds_since[i] = now;
        if (now - job->exceeds_since[i] >= limit->after)
            exceeds (svc, job, (enum resource_limit)i, text);
    }
}

static void exceed_begins (struct svc *svc, struct site_job *job)
{
    (void)svc;
    memset (job->exceeds_since, 0, sizeof job->exceeds_since);
    job->exceeds_told = false;
}

const struct svc_listener exceed_listener = {.job_measured = exceed_measured,
                                             .job_launched = exceed_begins};
