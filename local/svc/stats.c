#include "local/svc/stats.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/explain.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

static const char blob_name[] = "usage";

/* --- time of nodes ------------------------------------------------------------------------ */

static struct stats_node *node_at (struct stats *s, uint32_t id)
{
    if (id >= s->node_count) {
        struct stats_node *more = realloc (s->node, (id + 1) * sizeof *more);
        assert (more);
        memset (more + s->node_count, 0, (id + 1 - s->node_count) * sizeof *more);
        s->node = more;
        s->node_count = id + 1;
    }
    return &s->node[id];
}

void stats_advance (struct svc *svc, time_us now)
{
    struct stats *s = svc->stats;
    int64_t dt = now - s->at;
    if (s->at == 0 || dt <= 0) { /* the first time; a clock that was set back adds nothing */
        s->at = s->at == 0 || dt < 0 ? now : s->at;
        return;
    }
    s->at = now;
    for (uint32_t n = 0; n < svc->node_count; n++) {
        struct stats_node *node = node_at (s, n);
        struct node_view view;
        if (!svc->node_by_id[n]->configured ||
            cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) != 0)
            continue;
        node->total_us += dt;
        int64_t used = view.dedicated.v[RES_PROCS];
        if (view.state == NODE_UP) {
            node->up_us += dt;
            s->node_up_us += dt;
            s->available_ps += dt * view.spec.configured.v[RES_PROCS];
        } else {
            s->available_ps += dt * used; /* drained: what runs there still counts */
        }
        s->dedicated_ps += dt * used;
        if (used > 0) {
            node->busy_us += dt;
            s->node_busy_us += dt;
        }
    }
}

void stats_settle (struct svc *svc)
{
    time_us now = svc_now (svc);
    if (svc->stats && now - svc->stats->at >= US_PER_S / 10)
        stats_advance (svc, now);
}

static void stats_pass (struct svc *svc)
{
    time_us now = svc->pass_at;
    struct stats *s = svc->stats;
    struct resources configured, dedicated;
    stats_advance (svc, now);
    cluster_totals (svc->cluster, &configured, &dedicated);
    if (configured.v[RES_PROCS] <= 0)
        return;
    int32_t ppm = (int32_t)((int64_t)dedicated.v[RES_PROCS] * 1000000 / configured.v[RES_PROCS]);
    if (s->least_ppm < 0 || ppm < s->least_ppm) {
        s->least_ppm = ppm;
        s->least_pass = svc->schedule.iteration + (svc->sim ? 0 : 1); /* it is being counted */
    }
}

int64_t stats_backlog_ps (struct svc *svc)
{
    struct site_job *job, *next;
    int64_t ps = 0;
    HASH_ITER (hh, svc->jobs, job, next)
        if (job->rec.state == STORE_JOB_QUEUED)
            ps += (int64_t)job->rec.procs * (job->rec.walltime / US_PER_S);
    return ps;
}

/* --- on disk ------------------------------------------------------------------------------ */

static int save (struct svc *svc, struct err *err)
{
    struct stats *s = svc->stats;
    struct strbuf b = STRBUF_INIT;
    strbuf_printf (&b, "%lld %lld %lld %lld %lld %lld %lld %d %llu\n", (long long)s->since,
                   (long long)s->available_ps, (long long)s->dedicated_ps,
                   (long long)s->node_up_us, (long long)s->node_busy_us, (long long)s->backlog_us,
                   (long long)s->backlog_ps, s->least_ppm, (unsigned long long)s->least_pass);
    for (uint32_t n = 0; n < s->node_count && n < svc->node_count; n++)
        strbuf_printf (&b, "%s %lld %lld %lld\n", svc->node_by_id[n]->name,
                       (long long)s->node[n].total_us, (long long)s->node[n].up_us,
                       (long long)s->node[n].busy_us);
    int rc = local_store_blob_put (svc->store, blob_name, b.data, b.len, err);
    strbuf_free (&b);
    return rc;
}

static void node_load (struct svc *svc, char *line)
{
    char name[STORE_NAME_MAX];
    long long total, up, busy;
    if (sscanf (line, "%63s %lld %lld %lld", name, &total, &up, &busy) != 4)
        return;
    struct site_node *node;
    HASH_FIND_STR (svc->nodes, name, node);
    if (node)
        *node_at (svc->stats, node->id.v) = (struct stats_node){total, up, busy};
}

static int load (struct svc *svc, struct err *err)
{
    struct stats *s = svc->stats;
    long long v[7];
    unsigned long long pass;
    int least;
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_blob_get (svc->store, blob_name, &bytes, &len, err);
    if (rc == ERR_NOT_FOUND) { /* the first start */
        err_clear (err);
        rc = svc_begin (svc, err);
        if (rc == 0)
            rc = save (svc, err);
        return svc_commit (svc, rc, err);
    }
    if (rc != 0)
        return rc;
    char *rest = NULL, *line = strtok_r (bytes, "\n", &rest);
    if (line && sscanf (line, "%lld %lld %lld %lld %lld %lld %lld %d %llu", &v[0], &v[1], &v[2],
                        &v[3], &v[4], &v[5], &v[6], &least, &pass) == 9) {
        s->since = v[0];
        s->available_ps = v[1];
        s->dedicated_ps = v[2];
        s->node_up_us = v[3];
        s->node_busy_us = v[4];
        s->backlog_us = v[5];
        s->backlog_ps = v[6];
        s->least_ppm = least;
        s->least_pass = pass;
        while ((line = strtok_r (NULL, "\n", &rest)))
            node_load (svc, line);
    } else {
        log_event (svc->log, LOG_LEVEL_ERROR, "stats", "usage_unreadable", "bytes=%zu", len);
    }
    free (bytes);
    return 0;
}

static int stats_open (struct svc *svc, struct err *err)
{
    struct stats *s = calloc (1, sizeof *s);
    assert (s);
    svc->stats = s;
    s->since = s->started = s->at = svc_now (svc);
    s->least_ppm = -1;
    return load (svc, err);
}

static void save_now (struct svc *svc)
{
    struct err err = {0};
    char quoted[300];
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = save (svc, &err);
    if (svc_commit (svc, rc, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "stats", "not_saved", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
}

static void stats_close (struct svc *svc)
{
    if (!svc->stats)
        return;
    if (svc->cluster && svc->store) {
        stats_advance (svc, svc_now (svc));
        save_now (svc);
    }
    free (svc->stats->node);
    free (svc->stats);
    svc->stats = NULL;
}

static void stats_poll (struct svc *svc)
{
    struct stats *s = svc->stats;
    time_us now = svc_now (svc);
    int64_t dt = svc->settings->policy->poll_interval;
    stats_advance (svc, now);
    s->backlog_us += dt;
    s->backlog_ps += stats_backlog_ps (svc) * (dt / US_PER_S);
    save_now (svc);
}

int stats_begin_anew (struct svc *svc, const char *who, const char *what, struct err *err)
{
    struct stats *s = svc->stats;
    struct stats before = *s;
    time_us now = svc_now (svc);
    stats_advance (svc, now);
    struct stats_node *kept = s->node;
    s->node = NULL;
    s->node_count = 0;
    s->since = now;
    s->available_ps = s->dedicated_ps = s->node_up_us = s->node_busy_us = 0;
    s->backlog_us = s->backlog_ps = 0;
    s->least_ppm = -1;
    int rc = svc_begin (svc, err);
    if (rc == 0)
        rc = stats_reset (svc->store, err);
    if (rc == 0)
        rc = save (svc, err);
    if (rc == 0)
        rc = local_store_audit (svc->store, now, who, what, err);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) { /* as it was */
        free (s->node);
        *s = before;
        s->node = kept;
        return rc;
    }
    free (kept);
    return 0;
}

/* --- a job's end -------------------------------------------------------------------------- */

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
    const char *text = arena_strdup (arena, strbuf_text (&b));
    strbuf_free (&b);
    return text;
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
        out->dispatch = job->dispatched && job->dispatched <= out->start ? job->dispatched
                                                                         : out->start;
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

static int stats_job_ended (struct svc *svc, const struct site_job *job, duration_us cpu, struct err *err)
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

static int stats_job_preempted (struct svc *svc, const struct site_job *job, time_us start, time_us end,
                         struct err *err)
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

static int stats_job_ends (struct svc *svc, struct site_job *job, const struct job_end *end, struct err *err)
{
    return end->how == JOB_RUNS_AGAIN ? stats_job_preempted (svc, job, job->rec.start, job->rec.end, err)
                                      : stats_job_ended (svc, job, end->cpu, err);
}

const struct svc_listener stats_listener = {.open = stats_open,
                                            .pass_done = stats_pass,
                                            .polled = stats_poll,
                                            .job_ends = stats_job_ends,
                                            .stop = stats_close};
