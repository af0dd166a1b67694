/* scene: reads running and waiting jobs from a cluster once per change of it. estimator.c and
 * the daemon's forecast call it. It never changes the cluster, and what it read is of one
 * moment: whoever asks after a change reads anew. */
#include "local/estimate/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/copy.h"
#include "local/core/priority.h"
#include "proto/base/mem.h"

enum { AHEAD_S = 3600 };

void scene_init (struct scene *s)
{
    memset (s, 0, sizeof *s);
}

void scene_free (struct scene *s)
{
    free (s->running);
    free (s->waiting);
    priority_destroy (s->priority);
    limits_destroy (s->limits);
    memset (s, 0, sizeof *s);
}

static struct scene_job *list_add (struct scene_job **list, uint32_t *count, uint32_t *cap)
{
    *list = mem_grow (*list, cap, *count + 1, sizeof **list);
    return memset (&(*list)[(*count)++], 0, sizeof **list);
}

static uint32_t procs_of (const struct job_spec *spec)
{
    uint64_t procs = 0;

    for (uint32_t r = 0; r < spec->req_count; r++)
        procs += (uint64_t)spec->req[r].tasks * (uint64_t)spec->req[r].task.v[RES_PROCS];
    return procs > UINT32_MAX ? UINT32_MAX : (uint32_t)procs;
}

void scene_job_known (const struct job_spec *spec, struct job_known *out)
{
    memcpy (out->cred, spec->cred, sizeof out->cred);
    out->procs = procs_of (spec);
    out->limit = spec->walltime_limit;
}

static void job_of (const struct job_spec *spec, struct scene_job *out)
{
    scene_job_known (spec, &out->job);
    out->id = spec->id;
    out->submit = spec->submit;
    out->start = TIME_US_NONE;
}

/* --- priority ------------------------------------------------------------------------------ */

static void priority_ready (struct scene *s, struct cluster *cluster)
{
    const struct policy *policy = cluster_policy (cluster);
    struct fairshare *fs = cluster_fairshare (cluster);
    double *factor = NULL;

    if (policy != s->policy) {
        priority_destroy (s->priority);
        s->priority = priority_create (policy);
        limits_destroy (s->limits);
        s->limits = limits_create (policy);
        s->policy = policy;
    }
    if (policy->fs_policy == FS_NONE)
        return;
    for (uint32_t kind = 0; kind < CRED_KINDS; kind++) {
        uint32_t count = fairshare_count (fs, (enum cred_kind)kind);
        factor = mem_resize (factor, (count + 1) * sizeof *factor);
        fairshare_factors (fs, (enum cred_kind)kind, factor, count);
        priority_fairshare_set (s->priority, (enum cred_kind)kind, factor, count,
                                fairshare_factor_other (fs, (enum cred_kind)kind));
    }
    free (factor);
}

/* Now, and what an hour more adds: an age or a ratio of ages, which is all that time changes. */
static void prio_fill (const struct scene *s, struct scene_job *j, const struct job_spec *spec,
                       uint32_t bypass)
{
    struct priority_job pj = {.bypass = bypass,
                              .procs = j->job.procs,
                              .nodes = j->job.procs,
                              .pe = j->job.procs,
                              .wclimit_s = j->job.limit / US_PER_S,
                              .eff_queue_since = j->submit};
    time_us at = j->submit > s->now ? j->submit : s->now;
    double fixed;
    int64_t now, later;

    memcpy (pj.cred, j->job.cred, sizeof pj.cred);
    for (uint32_t r = 0; spec && r < spec->req_count; r++) {
        pj.mem_mb += (int64_t)spec->req[r].tasks * spec->req[r].task.v[RES_MEM_MB];
        pj.swap_mb += (int64_t)spec->req[r].tasks * spec->req[r].task.v[RES_SWAP_MB];
        pj.disk_mb += (int64_t)spec->req[r].tasks * spec->req[r].task.v[RES_DISK_MB];
    }
    if (spec && spec->system_priority) {
        pj.system_priority = spec->system_priority;
        pj.flags =
            spec->flags & JOB_SYSTEM_PRIORITY ? PRIORITY_SYSTEM_ABSOLUTE : PRIORITY_SYSTEM_RELATIVE;
    }
    fixed = priority_static (s->priority, &pj);
    now = priority_start (s->priority, &pj, fixed, at);
    later = priority_start (s->priority, &pj, fixed, at + AHEAD_S * US_PER_S);
    j->prio = (double)now;
    j->slope = (double)(later - now) / AHEAD_S;
}

/* --- reading ------------------------------------------------------------------------------- */

static int by_priority (const void *a, const void *b)
{
    const struct scene_job *x = a, *y = b;

    if (x->prio != y->prio)
        return x->prio > y->prio ? -1 : 1;
    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    return (x->id.v > y->id.v) - (x->id.v < y->id.v);
}

static int by_limit_end (const void *a, const void *b)
{
    const struct scene_job *x = a, *y = b;

    if (x->limit_end != y->limit_end)
        return x->limit_end < y->limit_end ? -1 : 1;
    return (x->id.v > y->id.v) - (x->id.v < y->id.v);
}

static void slopes_compare (struct scene *s)
{
    const double rounding = 2. / AHEAD_S; /* priorities are whole numbers */

    s->reorders = false;
    for (uint32_t i = 1; i < s->waiting_count && !s->reorders; i++)
        s->reorders = fabs (s->waiting[i].slope - s->waiting[0].slope) > rounding;
}

/* Tasks of one processor and nothing else that anybody could mean. */
static bool plain_req (const struct job_spec *spec)
{
    struct req plain;

    memset (&plain, 0, sizeof plain);
    plain.tasks = spec->req->tasks;
    plain.task.v[RES_PROCS] = 1;
    return spec->req_count == 1 && memcmp (&plain, spec->req, sizeof plain) == 0 &&
           spec->licence_count == 0 && spec->deadline == 0 && spec->array_limit == 0 &&
           (spec->flags & JOB_PREEMPTOR) == 0 && spec->cred[CRED_CLASS] == CRED_NONE;
}

/* Limits that could concern it. */
static bool is_limited (const struct scene *s, const struct job_spec *spec)
{
    return limits_any_active (s->limits, spec->cred) || limits_any_idle (s->limits, spec->cred);
}

/* It waits for a reservation, not for the queue. */
static bool inside_only (const struct scene *s, const struct job_spec *spec)
{
    const struct policy_qos *qos = policy_qos (s->policy, spec->cred[CRED_QOS]);

    return spec->reservation.v || (qos && (qos->flags & QOS_USERESERVED));
}

static int states_read (struct scene *s, struct cluster *cluster, enum job_state state,
                        struct err *err)
{
    uint32_t count = cluster_job_count (cluster, state);
    struct job_id *id = mem_alloc ((count + 1) * sizeof *id);
    int rc = 0;

    count = cluster_job_list (cluster, state, id, count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct job_view v;
        struct scene_job *j;
        rc = cluster_job_get (cluster, id[i], &v, err);
        if (rc)
            break;
        if (state == JOB_IDLE &&
            (v.spec->holds || v.deferred_until > s->now || v.spec->not_before > s->now ||
             v.spec->data_at > s->now || inside_only (s, v.spec)))
            continue;
        j = state == JOB_IDLE ? list_add (&s->waiting, &s->waiting_count, &s->waiting_cap)
                              : list_add (&s->running, &s->running_count, &s->running_cap);
        job_of (v.spec, j);
        s->counted = s->counted && (v.spec->flags & JOB_PREEMPTOR) == 0;
        if (state == JOB_IDLE) {
            prio_fill (s, j, v.spec, v.bypass);
            continue;
        }
        j->start = v.start;
        j->limit_end = v.limit_end > s->now ? v.limit_end : s->now + s->policy->poll_interval;
    }
    free (id);
    return rc;
}

/* What the policy has of more than an order, a depth and a kind of backfill asks for the core
 * itself. */
static void policy_read (struct scene *s, struct cluster *cluster)
{
    const struct policy *p = s->policy;
    bool plain =
        p->reservation_threshold == THRESHOLD_NONE && p->bf_chunk_procs == 0 &&
        p->backfill_depth == 0 && p->reservation_policy != RESERVATION_HIGHEST &&
        (p->backfill_policy == BACKFILL_FIRSTFIT || p->backfill_policy == BACKFILL_NONE ||
         (p->backfill_policy == BACKFILL_BESTFIT && p->backfill_metric == BFMETRIC_PROCS)) &&
        p->bucket_count == 1 && p->bucket[0].qos_count == 0 &&
        cluster_counts_processors (cluster) && !priority_use_weighs (p) && !p->flags_said;

    for (uint32_t i = 0; i < p->cred_count[CRED_QOS]; i++)
        plain = plain && (p->cred[CRED_QOS][i].qos == NULL || p->cred[CRED_QOS][i].qos->flags == 0);
    s->depth = p->reservation_policy == RESERVATION_NEVER ? 0 : p->bucket[0].depth;
    s->counted = plain;
}

int scene_read (struct scene *s, struct cluster *cluster, time_us now, struct err *err)
{
    struct resources configured, dedicated;
    int rc;

    s->now = now;
    s->running_count = s->waiting_count = 0;
    priority_ready (s, cluster);
    policy_read (s, cluster);
    cluster_totals (cluster, &configured, &dedicated);
    s->procs_up = configured.v[RES_PROCS];
    s->procs_free = s->procs_up - dedicated.v[RES_PROCS];
    rc = states_read (s, cluster, JOB_STARTING, err);
    if (rc == 0)
        rc = states_read (s, cluster, JOB_RUNNING, err);
    if (rc == 0)
        rc = states_read (s, cluster, JOB_IDLE, err);
    if (rc)
        return rc;
    if (s->running_count)
        qsort (s->running, s->running_count, sizeof *s->running, by_limit_end);
    if (s->waiting_count)
        qsort (s->waiting, s->waiting_count, sizeof *s->waiting, by_priority);
    slopes_compare (s);
    s->version = cluster_version (cluster);
    return 0;
}

/* --- the job in question ------------------------------------------------------------------- */

uint32_t scene_find (const struct scene *s, struct job_id id)
{
    for (uint32_t i = s->waiting_count; i-- > 0;) { /* it has mostly come last */
        if (s->waiting[i].id.v == id.v)
            return i;
    }
    return UINT32_MAX;
}

void scene_prio (const struct scene *s, const struct job_known *job, time_us submit, double *prio,
                 double *slope)
{
    struct scene_job one = {.job = *job, .submit = submit};

    prio_fill (s, &one, NULL, 0);
    *prio = one.prio;
    *slope = one.slope;
}

uint32_t scene_insert (struct scene *s, const struct job_spec *spec)
{
    struct scene_job one;
    uint32_t at;

    memset (&one, 0, sizeof one);
    job_of (spec, &one);
    prio_fill (s, &one, spec, 0);
    s->counted = s->counted && plain_req (spec) && !is_limited (s, spec);
    s->asked = spec;
    (void)list_add (&s->waiting, &s->waiting_count, &s->waiting_cap);
    for (at = s->waiting_count - 1; at > 0 && s->waiting[at - 1].prio < one.prio; at--)
        s->waiting[at] = s->waiting[at - 1];
    s->waiting[at] = one;
    slopes_compare (s);
    return at;
}

void scene_drop (struct scene *s, uint32_t place)
{
    s->asked = NULL;
    s->waiting_count--;
    memmove (&s->waiting[place], &s->waiting[place + 1],
             (s->waiting_count - place) * sizeof *s->waiting);
}
