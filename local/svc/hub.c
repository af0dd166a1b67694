/* hub: what every room of the service stands on: names, transactions, the wish for a pass, and the events that the
 * rooms listen for (struct svc_listener). Everything in local/svc may call it; it knows no room by name and calls them
 * by their listeners alone, in the order of the table in svc.c. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

char *site_id (const struct svc *svc, uint64_t number, char out[SITE_ID_MAX])
{
    snprintf (out, SITE_ID_MAX, "%s.%llu", svc->site, (unsigned long long)number);
    return out;
}

struct site_job *svc_job (struct svc *svc, uint64_t number)
{
    struct site_job *job;
    HASH_FIND (hh, svc->jobs, &number, sizeof number, job);
    return job;
}

void svc_reason (struct site_job *job, const char *code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start (ap, fmt);
    text_vprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    snprintf (job->rec.reason_code, sizeof job->rec.reason_code, "%s", code);
    free (job->rec.reason_text);
    job->rec.reason_text = *text ? strdup (text) : NULL;
}

/* --- the mode ---------------------------------------------------------------------------- */

int svc_may_act (const struct svc *svc, struct err *err)
{
    if (svc->follow)
        return err_set (err, ERR_CONFLICT,
                        "mode TEST: its jobs are those of the production scheduler, ask there");
    return 0;
}

/* --- the store ---------------------------------------------------------------------------- */

int svc_begin (struct svc *svc, struct err *err)
{
    return local_store_begin (svc->store, err);
}

int svc_commit (struct svc *svc, int rc, struct err *err)
{
    struct err local = {0};
    if (!err)
        err = &local;
    if (rc == 0)
        rc = local_store_commit (svc->store, err);
    if (rc != 0) {
        local_store_rollback (svc->store);
        log_event (svc->log, LOG_LEVEL_ERROR, "store", "not_written", "error=\"%s\"", err->text);
    }
    return rc;
}

int svc_job_write (struct svc *svc, struct site_job *job, bool tell, const void *envelope,
                   size_t envelope_len, struct err *err)
{
    uint64_t change;
    int rc = local_store_next (svc->store, "change", &change, err);
    if (rc != 0)
        return rc;
    job->rec.change = change;
    tell = tell && *job->rec.grid_job_id;
    if (tell)
        job->rec.ever_told = true;
    rc = local_store_job_put (svc->store, &job->rec, envelope, envelope_len, err);
    if (tell)
        SVC_TRY (svc, rc, job_told, (svc, job, err));
    return rc;
}

/* --- the next pass ------------------------------------------------------------------------ */

void pass_wake (struct svc *svc)
{
    if (svc->closing)
        return;
    if (svc->sim || svc->pass_under_way) { /* which looks when it has done what it is at */
        svc->pass_wanted = true;
        return;
    }
    duration_us gap = svc->settings->policy->job_aggregation_time;
    gap = svc->pass_gap > gap ? svc->pass_gap : gap;
    time_us now = svc_now (svc);
    time_us at = svc->pass_at + gap;
    /* A clock that was set back must not put the pass off. */
    duration_us d = at > now && svc->pass_at <= now ? at - now : 0;
    event_add (svc->pass_event, &(struct timeval){.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S});
}
