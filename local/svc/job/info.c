/* What the world is told of a job: the JobInfo of JOB, and the same as an event for its metascheduler, in the transaction
 * that changes the job. It reads every room that knows something of a job and changes none. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/files/stageout.h"
#include "local/svc/files/staging.h"
#include "local/svc/forecast/forecast.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

static void waiting_reason (struct svc *svc, struct site_job *job, struct arena *arena,
                            Nui__Local__V1__JobInfo *out)
{
    struct job_view view;
    char text[512];
    if (!job->in_cluster ||
        cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0) {
        jobs_reason (arena, job->rec.reason_code, job->rec.reason_text, &out->reason);
        return;
    }
    if (jobs_own_reason (svc, job, &view, arena, &out->reason))
        return;
    reason_text (&view.reason, svc->names, text, sizeof text);
    jobs_reason (arena, reason_code_name ((enum reason_code)view.reason.code), text, &out->reason);
    if (view.reserved_start != TIME_US_NONE)
        out->start_estimate_us = view.reserved_start;
}

static void hosts_of (const struct store_job *rec, struct arena *arena,
                      Nui__Local__V1__JobInfo *out)
{
    if (!rec->placement || rec->state == STORE_JOB_QUEUED)
        return;
    char *text = arena_strdup (arena, rec->placement);
    size_t cap = 1;
    for (const char *p = text; *p; p++)
        cap += *p == ',';
    out->hosts = arena_array (arena, cap, sizeof *out->hosts);
    char *save = NULL;
    for (char *w = strtok_r (text, ",", &save); w; w = strtok_r (NULL, ",", &save)) {
        w[strcspn (w, ":")] = 0;
        if (out->n_hosts == 0 || strcmp (out->hosts[out->n_hosts - 1], w) != 0)
            out->hosts[out->n_hosts++] = w;
    }
}

void jobs_files (struct svc *svc, const struct store_job *rec, const struct site_job *job,
                 struct arena *arena, Nui__Local__V1__JobInfo *out)
{
    if (job)
        staging_info (svc, job, arena, out);
    else
        stageout_info (svc, rec, arena, out);
}

void jobs_info (struct svc *svc, const struct store_job *rec, struct site_job *job,
                struct arena *arena, Nui__Local__V1__JobInfo *out)
{
    char id[SITE_ID_MAX];
    nui__local__v1__job_info__init (out);
    out->site_job_id = arena_strdup (arena, site_id (svc, rec->number, id));
    out->grid_job_id = arena_strdup (arena, rec->grid_job_id);
    out->metascheduler = arena_strdup (arena, rec->meta);
    out->component = arena_strdup (arena, rec->component);
    out->attempt = rec->attempt;
    out->state = (Nui__Local__V1__JobState)rec->state;
    out->submitter = arena_strdup (arena, rec->submitter ? rec->submitter : "");
    out->local_account = arena_strdup (arena, rec->local_account);
    out->account = arena_strdup (arena, rec->pay_account);
    out->procs = rec->procs;
    out->submit_us = rec->submit;
    out->start_us = rec->start;
    out->end_us = rec->end;
    out->exit_code = rec->exit_code;
    out->held_micro = store_job_ended (rec->state) ? 0 : rec->amount;
    out->walltime_us = rec->walltime;
    out->change = rec->change;
    if (rec->part) {
        out->transaction.data = arena_memdup (arena, rec->transaction, sizeof rec->transaction);
        out->transaction.len = sizeof rec->transaction;
    }
    hosts_of (rec, arena, out);
    if (job && rec->state == STORE_JOB_QUEUED) {
        waiting_reason (svc, job, arena, out);
        out->forecast = forecast_of_job (svc, job, arena);
    } else
        jobs_reason (arena, rec->reason_code, rec->reason_text, &out->reason);
    jobs_files (svc, rec, job, arena, out);
    if (job && job->part && !rec->start) {
        out->start_estimate_us = rec->launch_at ? rec->launch_at : job->part->rec.slot_start;
        out->forecast = forecast_of_job (svc, job, arena);
    }
}

/* In a transaction: metaschedulers hear of it by their outbox. Of parts from COMMIT on: before, they are the
 * coordinator's own knowledge. */
static int jobs_told (struct svc *svc, struct site_job *job, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct uuid key;
    Nui__Local__V1__JobInfo info;
    jobs_info (svc, &job->rec, store_job_ended (job->rec.state) ? NULL : job, arena, &info);
    size_t len = nui__local__v1__job_info__get_packed_size (&info);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__local__v1__job_info__pack (&info, bytes);
    uuid_make (&key);
    int rc = local_store_outbox_put (svc->store, STORE_OUTBOX_META, "job", &key, bytes, len,
                                     svc_now (svc), NULL, err);
    text_printf (job->told_reason, sizeof job->told_reason, "%s",
                 info.reason ? info.reason->code : "");
    arena_destroy (arena);
    if (rc == 0 && svc->meta)
        meta_link_poke (svc->meta);
    return rc;
}

const struct svc_listener job_info_listener = {.job_told = jobs_told};
