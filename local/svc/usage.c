/* What running jobs really use of their processors: from the resource manager to the core, for
 * FSPOLICY UTILIZEDPS. */
#include <stdlib.h>

#include "local/svc/fairshare_file.h"
#include "local/svc/svc_i.h"

enum { AT_ONCE = 32 }; /* a few files of /proc each: the loop has other work in between */

static void measure_one (struct svc *svc, struct job_id id, time_us now)
{
    struct site_job *job = svc_job (svc, id.v);
    char name[SITE_ID_MAX];
    duration_us cpu_time;
    struct err err = {0};
    if (!job || job->rec.state != STORE_JOB_RUNNING)
        return;
    site_id (svc, id.v, name);
    /* A job whose end is on its way cannot be measured: its status will say. */
    if (svc->rm.ops->cpu_time (svc->rm.self, name, job->rec.incarnation, &cpu_time, &err) != 0)
        return;
    if (cluster_job_used (svc->cluster, id, cpu_time, -1, now, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "job=%s error=\"%s\"", name,
                   err.text);
}

static void on_measure (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    time_us now = svc_now (svc);
    uint32_t count = cluster_job_count (svc->cluster, JOB_RUNNING);
    struct job_id *id = calloc (count + 1, sizeof *id);
    (void)fd;
    (void)what;
    if (!id)
        return; /* another time */
    cluster_job_list (svc->cluster, JOB_RUNNING, id, count);
    uint32_t i = 0, done = 0;
    while (i < count && id[i].v <= svc->usage_cursor)
        i++;
    for (; i < count && done < AT_ONCE; i++, done++)
        measure_one (svc, id[i], now);
    svc->usage_cursor = i > 0 ? id[i - 1].v : 0;
    if (i < count)
        event_active (svc->usage_event, EV_TIMEOUT, 0);
    else if (svc->settings->policy->fs_policy == FS_UTILIZEDPS)
        fairshare_file_save (svc);
    free (id);
}

void usage_measure (struct svc *svc)
{
    if (!svc->rm.ops->cpu_time)
        return;
    if (!svc->usage_event)
        svc->usage_event = evtimer_new (svc->base, on_measure, svc);
    svc->usage_cursor = 0;
    event_active (svc->usage_event, EV_TIMEOUT, 0);
}

void usage_final (struct svc *svc, const struct site_job *job, const struct rm_status *status)
{
    struct err err = {0};
    if (!job->in_cluster || !status->cpu_known)
        return;
    if (cluster_job_used (svc->cluster, (struct job_id){job->rec.number}, status->cpu_time, -1,
                          svc_now (svc), &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
}
