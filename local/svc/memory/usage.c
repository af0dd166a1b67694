/* What running jobs really use: from the resource manager to the core. Of processors for FSPOLICY
 * UTILIZEDPS; of processors and memory, summed over the jobs of each node, as the node's load and used
 * memory (NODEAVAILABILITYPOLICY, NODEMAXLOAD, CPULOAD). A resource manager that tells of nodes itself is
 * believed instead: rmnodes.c. */
#include <assert.h>
#include <stdlib.h>

#include "local/svc/job.h"
#include "local/svc/memory/memory.h"
#include "local/svc/svc_i.h"

enum { AT_ONCE = 32 }; /* a few files of /proc each: the loop has other work in between */

/* Of the measurements; NULL until the first. */
struct usage {
    struct event *event;
    uint64_t cursor; /* the last job that was measured */
    bool known;      /* some job was measured: nodes have loads */
};

static void measure_one (struct svc *svc, struct job_id id, time_us now)
{
    struct site_job *job = svc_job (svc, id.v);
    char name[SITE_ID_MAX];
    struct rm_used used = {0};
    struct err err = {0};
    if (!job || job->rec.state != STORE_JOB_RUNNING)
        return;
    site_id (svc, id.v, name);
    /* A job whose end is on its way cannot be measured: its status will say. */
    if (svc->rm.ops->used (svc->rm.self, name, job->rec.incarnation, &used, &err) != 0)
        return;
    job->memory_used_mb = used.memory_mb > 0 ? used.memory_mb : 0;
    if (job->memory_used_mb > job->memory_most_mb)
        job->memory_most_mb = job->memory_used_mb;
    job->cpu_used = used.cpu_time > 0 ? used.cpu_time : 0;
    svc->usage->known = true;
    if (cluster_job_used (svc->cluster, id, used.cpu_time, -1, now, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "job=%s error=\"%s\"", name,
                   err.text);
    SVC_TELL (svc, job_measured, (svc, job));
}

static void on_measure (evutil_socket_t fd, short what, void *arg)
{
    struct svc *svc = arg;
    time_us now = svc_now (svc);
    (void)fd;
    (void)what;
    if (svc->pass_under_way) { /* which it would disturb */
        evtimer_add (svc->usage->event, &(struct timeval){.tv_usec = 50000});
        return;
    }
    uint32_t count = cluster_job_count (svc->cluster, JOB_RUNNING);
    struct job_id *id = calloc (count + 1, sizeof *id);
    if (!id)
        return; /* another time */
    cluster_job_list (svc->cluster, JOB_RUNNING, id, count);
    uint32_t i = 0, done = 0;
    while (i < count && id[i].v <= svc->usage->cursor)
        i++;
    for (; i < count && done < AT_ONCE; i++, done++)
        measure_one (svc, id[i], now);
    svc->usage->cursor = i > 0 ? id[i - 1].v : 0;
    if (i < count)
        event_active (svc->usage->event, EV_TIMEOUT, 0);
    else if (svc->settings->policy->fs_policy == FS_UTILIZEDPS)
        fairshare_file_save (svc);
    free (id);
}

static void usage_measure (struct svc *svc)
{
    if (!svc->rm.ops->used)
        return;
    if (!svc->usage) {
        svc->usage = calloc (1, sizeof *svc->usage);
        assert (svc->usage && "out of memory");
        svc->usage->event = evtimer_new (svc->base, on_measure, svc);
    }
    svc->usage->cursor = 0;
    event_active (svc->usage->event, EV_TIMEOUT, 0);
}

/* --- nodes ----------------------------------------------------------------------------------- */

struct node_use {
    int64_t procs_micro;
    double memory_mb;
};

/* The job's use, on each of its nodes as much as it has of it. A stopped one still has its memory. */
static void job_spread (struct svc *svc, struct job_id id, bool runs, struct node_use *of)
{
    const struct site_job *job = svc_job (svc, id.v);
    struct job_view view;
    if (!job || cluster_job_get (svc->cluster, id, &view, NULL) != 0 || view.procs == 0)
        return;
    for (uint32_t i = 0; i < view.allocation.count; i++) {
        const struct placement *p = &view.allocation.item[i];
        int64_t procs = (int64_t)p->tasks * view.spec->req[p->req].task.v[RES_PROCS];
        if (runs && view.usage.used_micro > 0)
            of[p->node.v].procs_micro += view.usage.used_micro * procs / view.procs;
        of[p->node.v].memory_mb += (double)job->memory_used_mb * (double)procs / (double)view.procs;
    }
}

static void node_tell (struct svc *svc, uint32_t node, const struct node_use *use)
{
    enum { LOAD_STEP = 10 }; /* thousandths: less is noise */
    struct node_id id = {node};
    struct resources used = {{0}};
    struct node_view view;
    int64_t load = (use->procs_micro + 500 * LOAD_STEP) / (1000 * LOAD_STEP) * LOAD_STEP;
    used.v[RES_MEM_MB] = use->memory_mb < INT32_MAX ? (int32_t)use->memory_mb : INT32_MAX;
    if (cluster_node_get (svc->cluster, id, &view, NULL) != 0)
        return;
    if (view.load_milli != load)
        (void)cluster_node_load_set (svc->cluster, id, load < INT32_MAX ? (int32_t)load : INT32_MAX,
                                     svc_now (svc), NULL);
    if (view.used.v[RES_MEM_MB] != used.v[RES_MEM_MB])
        (void)cluster_node_used_set (svc->cluster, id, &used, svc_now (svc), NULL);
}

void usage_nodes (struct svc *svc, struct arena *arena)
{
    if (!svc->usage || !svc->usage->known)
        return;
    uint32_t running = cluster_job_count (svc->cluster, JOB_RUNNING);
    uint32_t stopped = cluster_job_count (svc->cluster, JOB_SUSPENDED);
    struct job_id *id = arena_array (arena, running + stopped + 1, sizeof *id);
    struct node_use *of = arena_array (arena, svc->node_count + 1, sizeof *of);
    cluster_job_list (svc->cluster, JOB_RUNNING, id, running);
    cluster_job_list (svc->cluster, JOB_SUSPENDED, id + running, stopped);
    for (uint32_t i = 0; i < running + stopped; i++)
        job_spread (svc, id[i], i < running, of);
    for (uint32_t n = 0; n < svc->node_count; n++)
        node_tell (svc, n, &of[n]);
    svc->usage->known = running + stopped > 0; /* or there is nothing more to say */
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

static void usage_close (struct svc *svc)
{
    if (svc->usage)
        event_free (svc->usage->event);
    free (svc->usage);
}

const struct svc_listener usage_listener = {.polled = usage_measure, .close = usage_close};
