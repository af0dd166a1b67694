/* Jobs and parts in memory, and as the core has them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/job.h"
#include "local/svc/job/fallback.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"

/* As its QoS is now. */
static uint32_t attrs_by_qos (const struct svc *svc, const struct site_job *job)
{
    uint32_t flags = policy_job_flags (svc->settings->policy, job->cred);
    bool evicts = flags & (QOS_PREEMPTOR | QOS_RESTARTPREEMPT);
    bool yields = (flags & QOS_PREEMPTEE) || (job->core_flags & JOB_PREEMPTEE);
    return (evicts ? JOBATTR_PREEMPTOR : 0) | (yields ? JOBATTR_PREEMPTEE : 0) |
           (job->core_flags & JOB_NORESTART ? 0 : JOBATTR_RESTARTABLE);
}

void svc_job_qos_set (struct svc *svc, struct site_job *job, uint32_t qos)
{
    job->cred[CRED_QOS] = qos;
    job->attrs = attrs_by_qos (svc, job);
}

struct rsv_id resv_named (struct svc *svc, const char *name)
{
    if (!name || !*name)
        return (struct rsv_id){0};
    return (struct rsv_id){RSV_NAME_BASE | strtab_intern (svc->rsv_names, name)};
}

struct site_job *svc_job_add (struct svc *svc, const struct store_job *rec,
                              const struct jobspec *spec)
{
    struct site_job *job = calloc (1, sizeof *job);
    assert (job);
    job->rec = *rec;
    memcpy (job->cred, spec->cred, sizeof job->cred);
    job->reqs = calloc (spec->req_count, sizeof *job->reqs);
    assert (job->reqs);
    memcpy (job->reqs, spec->reqs, spec->req_count * sizeof *job->reqs);
    job->req_count = spec->req_count;
    job->reservation = spec->component ? resv_named (svc, spec->component->reservation)
                                       : (struct rsv_id){0}; /* none in a simulation */
    job->licence = calloc (spec->licence_count + 1, sizeof *job->licence);
    assert (job->licence);
    memcpy (job->licence, spec->licence, spec->licence_count * sizeof *job->licence);
    job->licence_count = spec->licence_count;
    job->not_before = spec->job->not_before_us ? spec->job->not_before_us : TIME_US_NONE;
    job->core_flags = spec->core_flags;
    job->attrs = attrs_by_qos (svc, job);
    job->deadline = spec->job->deadline_us;
    job->reserves = spec->job->reserve != NULL;
    job->stages = spec->component && spec->component->n_stage_in > 0;
    job->stages_out = spec->component && spec->component->n_stage_out > 0;
    HASH_ADD (hh, svc->jobs, rec.number, sizeof job->rec.number, job);
    ports_mark (svc, job->rec.port, true);
    return job;
}

int svc_job_signed (struct svc *svc, uint64_t number, const Nui__Common__V1__Envelope *envelope,
                    bool *same_out, struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_envelope (svc->store, number, &bytes, &len, err);
    if (rc != 0)
        return rc;
    Nui__Common__V1__Envelope *kept = nui__common__v1__envelope__unpack (NULL, len, bytes);
    free (bytes);
    *same_out = kept && ((kept->body.len == envelope->body.len &&
                          memcmp (kept->body.data, envelope->body.data, kept->body.len) == 0) ||
                         fallback_is (kept, envelope));
    nui__common__v1__envelope__free_unpacked (kept, NULL);
    return 0;
}

duration_us svc_job_length (const struct svc *svc, const struct site_job *job)
{
    return cluster_job_scaled (svc->cluster, (struct job_id){job->rec.number}, job->rec.walltime);
}

void svc_job_forget (struct svc *svc, struct site_job *job)
{
    SVC_TELL (svc, job_leaves, (svc, job));
    HASH_DEL (svc->jobs, job);
    ports_mark (svc, job->rec.port, false);
    store_job_free (&job->rec);
    free (job->reqs);
    depends_forget (svc, job);
    free (job->licence);
    free (job);
}

struct site_part *svc_part_add (struct svc *svc, const struct store_part *rec, struct site_job *job)
{
    struct site_part *part = calloc (1, sizeof *part);
    assert (part);
    part->svc = svc;
    part->rec = *rec;
    part->job = job;
    job->part = part;
    HASH_ADD (hh, svc->parts, rec.job, sizeof part->rec.job, part);
    return part;
}

duration_us svc_part_duration (const struct svc *svc, duration_us walltime)
{
    return walltime + svc->settings->start_grace;
}

void svc_part_forget (struct svc *svc, struct site_part *part)
{
    HASH_DEL (svc->parts, part);
    if (part->job)
        part->job->part = NULL;
    if (part->timer)
        event_free (part->timer);
    store_part_free (&part->rec);
    free (part);
}

/* Every job came through a metascheduler that has the grid's id; others are the site's own. */
static uint32_t attrs_of (const struct site_job *job)
{
    return (*job->rec.grid_job_id ? JOBATTR_GRID : 0) | (job->rec.part ? JOBATTR_COALLOCATED : 0) |
           job->attrs;
}

struct rsv_id svc_reservation_of (struct svc *svc, struct rsv_id asked, uint32_t qos)
{
    const struct policy_qos *of = policy_qos (svc->settings->policy, qos);
    return asked.v || !of || !of->use_reserved ? asked : resv_named (svc, of->use_reserved);
}

struct who svc_who (struct svc *svc, const struct site_job *job)
{
    struct who who = {.walltime = job->rec.walltime,
                      .procs = job->rec.procs,
                      .attrs = attrs_of (job),
                      .named = svc_reservation_of (svc, job->reservation, job->cred[CRED_QOS])};
    memcpy (who.cred, job->cred, sizeof who.cred);
    return who;
}

struct query svc_query_of (struct svc *svc, const struct site_job *job, time_us from, time_us until,
                           bool queue, struct who *who_out)
{
    *who_out = svc_who (svc, job);
    return (struct query){.req_count = job->req_count,
                          .req = job->reqs,
                          .licence_count = job->licence_count,
                          .licence = job->licence,
                          .duration = job->rec.walltime,
                          .from = from,
                          .until = until,
                          .queue = queue,
                          .who = who_out};
}

static struct job_spec core_spec_of (struct svc *svc, const struct site_job *job)
{
    struct job_spec spec = {
        .id = {job->rec.number},
        .submit = job->rec.submit,
        .not_before = job->not_before,
        .walltime_limit = job->rec.walltime,
        .req_count = job->req_count,
        .licence_count = job->licence_count,
        .licence = job->licence,
        .req = job->reqs,
        .reservation = svc_reservation_of (svc, job->reservation, job->cred[CRED_QOS]),
        .attrs = attrs_of (job),
    };
    memcpy (spec.cred, job->cred, sizeof spec.cred);
    spec.holds = job->depends ? HOLD_DEPENDENCY : 0;
    spec.flags = job->core_flags | (job->part ? JOB_FIRM : 0);
    spec.deadline = job->deadline;
    spec.data_at = job->data_at;
    spec.array = job->rec.array;
    spec.array_limit = job->rec.array_limit;
    return spec;
}

int svc_cluster_modify (struct svc *svc, struct site_job *job, struct err *err)
{
    struct job_spec spec = core_spec_of (svc, job);
    struct job_view view;
    int rc = cluster_job_get (svc->cluster, spec.id, &view, err);
    if (rc != 0)
        return rc;
    spec.holds = view.spec->holds;
    spec.flags = view.spec->flags;
    spec.system_priority = view.spec->system_priority;
    return cluster_job_modify (svc->cluster, &spec, svc_now (svc), err);
}

int svc_cluster_submit (struct svc *svc, struct site_job *job, struct err *err)
{
    struct job_spec spec = core_spec_of (svc, job);
    int rc = cluster_job_submit (svc->cluster, &spec, svc_now (svc), err);
    job->in_cluster = rc == 0;
    if (rc == 0)
        SVC_TELL (svc, job_entered, (svc, job));
    return rc;
}
