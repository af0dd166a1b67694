/* Why a job waits, as its owner and metaschedulers are told: what the service knows better than the core (put off or held
 * for a failure, waits for others or for its files). It decides nothing. */
#include <string.h>

#include "local/core/explain.h"
#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"

void jobs_reason (struct arena *arena, const char *code, const char *text,
                  Nui__Common__V1__Reason **out)
{
    if (!code || !*code) {
        *out = NULL;
        return;
    }
    Nui__Common__V1__Reason *reason = arena_new (arena, Nui__Common__V1__Reason);
    nui__common__v1__reason__init (reason);
    reason->code = arena_strdup (arena, code);
    reason->text = arena_strdup (arena, text ? text : "");
    *out = reason;
}

/* While it waits the core knows best, unless the shell put it off itself. */
bool jobs_own_reason (struct svc *svc, const struct site_job *job, const struct job_view *view,
                      struct arena *arena, Nui__Common__V1__Reason **out)
{
    char text[512];
    bool never;
    if (job->depends && view->spec->holds == HOLD_DEPENDENCY) {
        depends_text (svc, job, text, sizeof text, &never);
        jobs_reason (arena, never ? "DependencyNeverMet" : "Dependency", text, out);
        return true;
    }
    if (!staging_ready (job) && view->spec->holds == 0 &&
        job->rec.deferred_until <= svc_now (svc)) {
        jobs_reason (arena, "StageIn", staging_text (job, arena), out);
        return true;
    }
    if (!deferral_holds (job, view->spec->holds) &&
        (!*job->rec.reason_code || job->rec.deferred_until <= svc_now (svc)))
        return false;
    jobs_reason (arena, job->rec.reason_code, job->rec.reason_text, out);
    return true;
}

time_us jobs_startable (struct svc *svc, const struct site_job *job, time_us now)
{
    struct explained_limit hit;
    time_us from = now;
    if (job->not_before != TIME_US_NONE && job->not_before > from)
        from = job->not_before;
    if (job->rec.deferred_until > from)
        from = job->rec.deferred_until;
    if (job->data_at > from)
        from = job->data_at;
    if (job->in_cluster &&
        explain_limit (svc->cluster, (struct job_id){job->rec.number}, LIMIT_HARD, now, &hit) &&
        hit.clears != TIME_US_NONE && hit.clears > from)
        from = hit.clears;
    return from;
}

bool jobs_never (const struct site_job *job, const struct job_view *view)
{
    const char *deferred = job->rec.reason_code;
    switch ((enum reason_code)view->reason.code) {
    case REASON_NEVER_FREE:
    case REASON_CLASS:
    case REASON_SYSTEM_LIMIT:
    case REASON_DEADLINE:
        return true;
    case REASON_LIMIT_ACTIVE:
        return view->reason.never;
    case REASON_DEFERRED:
    case REASON_HOLD:
        return strcmp (deferred, defer_reason_name (DEFER_SYSTEM_LIMITS)) == 0;
    default:
        return false;
    }
}
