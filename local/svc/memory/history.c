/* A job's end, in its own transaction: a row of the history, and sums by whom it ran for. Called as a listener of ends; nothing of the
 * job is changed. */
#include <stdio.h>
#include <string.h>

#include "local/core/explain.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/memory/memory.h"
#include "local/svc/svc_i.h"

static const char *features_text (struct svc *svc, const struct features *f, struct arena *arena)
{
    const char *text = "";
    for (uint32_t i = 0; i < FEATURES_MAX; i++)
        if (f->word[i / 64] >> (i % 64) & 1)
            text = arena_printf (arena, "%s%s%s", text, *text ? "," : "",
                                 strtab_name (svc->features, i));
    return text;
}

/* "alpha01:2:0,alpha02:1:0" to "alpha01:alpha02". */
static const char *hosts_text (const char *placement, struct arena *arena)
{
    struct strbuf b = STRBUF_INIT;
    char last[STORE_NAME_MAX] = "";
    for (const char *p = placement; p && *p;) {
        char name[STORE_NAME_MAX];
        if (sscanf (p, "%63[^:]", name) != 1)
            break;
        if (strcmp (name, last) != 0)
            strbuf_printf (&b, "%s%s", b.len ? ":" : "", name);
        memcpy (last, name, sizeof last);
        p = strchr (p, ',');
        p = p ? p + 1 : NULL;
    }
    return strbuf_move (&b, arena);
}

static const char *cred_text (struct svc *svc, const struct site_job *job, enum cred_kind kind)
{
    return job->cred[kind] == CRED_NONE ? "" : cred_name (svc->names, kind, job->cred[kind]);
}

/* Were the targets of its QoS met? One without targets is always served. */
static bool qos_met (struct svc *svc, const struct site_job *job, duration_us queued)
{
    const struct policy_cred *cred =
        job->cred[CRED_QOS] == CRED_NONE
            ? NULL
            : policy_cred (svc->settings->policy, CRED_QOS, job->cred[CRED_QOS]);
    if (!cred || !cred->qos)
        return true;
    double target_min = cred->qos->qttarget_min, xf = cred->qos->xftarget;
    double factor = priority_xfactor (svc->settings->policy, queued, job->rec.walltime / US_PER_S);
    return (target_min <= 0 || (double)queued <= target_min * 60e6) && (xf <= 0 || factor <= xf);
}

/* What only the signed job and the core know. */
static void details_fill (struct svc *svc, const struct site_job *job, struct arena *arena,
                          struct history_job *out)
{
    struct jobspec spec;
    struct explained_job more;
    struct job_view view;
    struct job_id id = {job->rec.number};
    if (jobspec_load (svc, &job->rec, &spec, NULL) == 0) {
        out->name = arena_strdup (arena, spec.job->name ? spec.job->name : "");
        if (spec.component->qos && *spec.component->qos)
            out->qos_asked = arena_strdup (arena, spec.component->qos);
        jobspec_free (&spec);
    }
    if (!job->in_cluster)
        return;
    if (explain_job (svc->cluster, id, &more, NULL) == 0)
        out->eligible = more.eligible_since;
    if (cluster_job_get (svc->cluster, id, &view, NULL) == 0) {
        out->bypass = view.bypass;
        out->backfilled = view.backfilled;
    }
}

static void history_fill (struct svc *svc, const struct site_job *job, duration_us cpu,
                          struct arena *arena, struct history_job *out)
{
    const struct store_job *rec = &job->rec;
    *out = (struct history_job){
        .number = rec->number,
        .grid_job_id = rec->grid_job_id,
        .name = "",
        .submitter = rec->submitter ? rec->submitter : "",
        .user = rec->local_account,
        .group = cred_text (svc, job, CRED_GROUP),
        .account = *rec->pay_account ? rec->pay_account : cred_text (svc, job, CRED_ACCOUNT),
        .class_name = cred_text (svc, job, CRED_CLASS),
        .qos_asked = "",
        .qos = cred_text (svc, job, CRED_QOS),
        .state = rec->state,
        .reason_code = rec->reason_code,
        .exit_code = rec->exit_code,
        .procs = rec->procs,
        .walltime = rec->walltime,
        .submit = rec->submit,
        .eligible = rec->submit,
        .start = rec->start,
        .end = rec->end,
        .not_before = job->not_before == TIME_US_NONE ? 0 : job->not_before,
        .features = "",
        .starts = rec->start ? rec->incarnation + 1 : rec->incarnation,
        .cpu = cpu,
        .partition = "DEFAULT",
        .hosts = rec->start ? hosts_text (rec->placement, arena) : "",
        .rm = svc->rm.ops->type,
        .reservation = "",
    };
    for (uint32_t r = 0; r < job->req_count; r++)
        out->tasks += job->reqs[r].tasks;
    if (job->req_count > 0) {
        const struct req *first = &job->reqs[0];
        out->tasks_per_node = first->tasks_per_node;
        out->nodes = first->tasks_per_node ? first->tasks / first->tasks_per_node : 0;
        out->task_procs = first->task.v[RES_PROCS];
        out->mem_mb = first->task.v[RES_MEM_MB];
        out->swap_mb = first->task.v[RES_SWAP_MB];
        out->disk_mb = first->task.v[RES_DISK_MB];
        out->features = features_text (svc, &first->features, arena);
    }
    details_fill (svc, job, arena, out);
    if (out->start)
        out->dispatch =
            job->dispatched && job->dispatched <= out->start ? job->dispatched : out->start;
    duration_us queued = out->start > out->eligible ? out->start - out->eligible : 0;
    out->qos_met = qos_met (svc, job, queued);
}

/* To everybody's sums that it belongs to: names by stats_kind. */
static int sums_put (struct svc *svc, const struct history_job *h, const struct stats_sums *add,
                     struct err *err)
{
    const char *const name[] = {h->user, h->group, h->account, h->class_name, h->qos};
    uint32_t row, column;
    char cell[24];
    int rc = stats_add (svc->store, STATS_TOTAL, "", add, err);
    for (int k = STATS_USER; rc == 0 && k <= STATS_QOS; k++)
        if (*name[k])
            rc = stats_add (svc->store, (enum stats_kind)k, name[k], add, err);
    stats_grid_place (h->procs, h->walltime, &row, &column);
    snprintf (cell, sizeof cell, "%u %u", row, column);
    return rc == 0 ? stats_add (svc->store, STATS_GRID, cell, add, err) : rc;
}

static int stats_job_ended (struct svc *svc, const struct site_job *job, duration_us cpu,
                            struct err *err)
{
    struct arena *arena = arena_create (0);
    struct history_job h;
    struct stats_sums add;
    history_fill (svc, job, cpu, arena, &h);
    int rc = history_add (svc->store, &h, err);
    if (rc == 0 && h.start) {
        stats_of_job (&h, &add);
        rc = sums_put (svc, &h, &add, err);
    }
    arena_destroy (arena);
    if (rc == 0)
        statdir_wake (svc);
    return rc;
}

static int stats_job_preempted (struct svc *svc, const struct site_job *job, time_us start,
                                time_us end, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct history_job h;
    struct stats_sums add = {.preempted = 1,
                             .ps_lost = end > start ? (end - start) * job->rec.procs : 0};
    history_fill (svc, job, -1, arena, &h);
    int rc = sums_put (svc, &h, &add, err);
    arena_destroy (arena);
    return rc;
}

static int stats_job_ends (struct svc *svc, struct site_job *job, const struct job_end *end,
                           struct err *err)
{
    return end->how == JOB_RUNS_AGAIN
               ? stats_job_preempted (svc, job, job->rec.start, job->rec.end, err)
               : stats_job_ended (svc, job, end->cpu, err);
}

const struct svc_listener history_listener = {.job_ends = stats_job_ends};
