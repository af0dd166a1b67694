/* engine: a heap of ends, a source of arrivals, and the core's pass at each moment. simrun.c,
 * the laboratory and the simulator of the grid call it. It decides nothing about jobs, the core
 * does; and it reads no clock, so that the same input always gives the same rows. */
#include "local/sim/engine.h"

#include "local/core/defer.h"
#include "proto/base/fnv.h"
#include "proto/base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Ends of running jobs, earliest first; ties in order of start. */
struct ending {
    time_us at;
    uint64_t seq;
    uint64_t index;
};

/* What a suspended job has left to do, since when it is stopped, and for how long it was before. */
struct halt {
    duration_us left;
    time_us since;
    duration_us before;
};

struct engine {
    const struct engine_setup *setup;
    const struct engine_job *job;
    uint64_t count;
    struct engine_result *result;
    struct engine_summary *summary;
    struct cluster *cluster;
    struct arena *arena;
    struct halt *halt;    /* [index]; NULL while nothing was suspended */
    uint32_t *deferred;   /* [index]: how many times; NULL while nothing was */
    duration_us patience; /* with nothing running and nobody to come */
    struct ending *heap;
    uint32_t heap_count, heap_cap;
    uint64_t seq;
    uint64_t next; /* the next to arrive */
    uint64_t done;
    int64_t procs_used, procs_total;
    bool polled;   /* what may start changes as time goes by, with no event: every RMPOLLINTERVAL */
    bool windowed; /* … at boundaries of fairshare windows */
    bool dated;    /* some job has a deadline */
    bool again;  /* a pass that started somebody may leave room or right for others: another follows
                 */
    time_us now; /* of the last turn */
    time_us last;        /* the last end or arrival */
    uint64_t *index_key; /* job number -> index, open addressing */
    uint64_t *index_value;
    uint64_t index_mask;
};

/* --- heap --------------------------------------------------------------------------------- */

static bool ends_before (const struct ending *a, const struct ending *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void heap_push (struct engine *e, struct ending one)
{
    uint32_t i = e->heap_count++;

    e->heap = mem_grow (e->heap, &e->heap_cap, e->heap_count, sizeof *e->heap);
    while (i > 0 && ends_before (&one, &e->heap[(i - 1) / 2])) {
        e->heap[i] = e->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->heap[i] = one;
}

static struct ending heap_pop (struct engine *e)
{
    struct ending top = e->heap[0], last = e->heap[--e->heap_count];
    uint32_t i = 0, child;

    while ((child = 2 * i + 1) < e->heap_count) {
        if (child + 1 < e->heap_count && ends_before (&e->heap[child + 1], &e->heap[child]))
            child++;
        if (!ends_before (&e->heap[child], &last))
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    e->heap[i] = last;
    return top;
}

/* --- numbers ------------------------------------------------------------------------------ */

static int index_build (struct engine *e, struct err *err)
{
    uint64_t size = 64;

    while (size < e->count * 2)
        size *= 2;
    e->index_mask = size - 1;
    e->index_key = mem_zero (size, sizeof *e->index_key);
    e->index_value = mem_alloc (size * sizeof *e->index_value);
    for (uint64_t i = 0; i < e->count; i++) {
        uint64_t at = e->job[i].number * UINT64_C (0x9E3779B97F4A7C15) >> 20 & e->index_mask;
        if (e->job[i].number == 0 || e->job[i].number == UINT64_MAX)
            return err_set (err, ERR_INVALID, "job %llu of the log: number %llu is not allowed",
                            (unsigned long long)i + 1, (unsigned long long)e->job[i].number);
        for (; e->index_key[at]; at = (at + 1) & e->index_mask) {
            if (e->index_key[at] == e->job[i].number)
                return err_set (err, ERR_EXISTS, "job number %llu is in the log twice",
                                (unsigned long long)e->job[i].number);
        }
        e->index_key[at] = e->job[i].number;
        e->index_value[at] = i;
    }
    return 0;
}

static uint64_t index_of (const struct engine *e, uint64_t number)
{
    uint64_t at = number * UINT64_C (0x9E3779B97F4A7C15) >> 20 & e->index_mask;

    while (e->index_key[at] != number)
        at = (at + 1) & e->index_mask;
    return e->index_value[at];
}

/* --- events ------------------------------------------------------------------------------- */

static int machine_build (struct engine *e, struct err *err)
{
    const struct engine_setup *s = e->setup;
    struct node_view view;

    if (s->site) {
        int rc = s->site->furnish (s->site->self, e->cluster, TIME_US_NONE, err);
        for (uint32_t n = 0; rc == 0 && n < cluster_node_count (e->cluster); n++) {
            rc = cluster_node_get (e->cluster, (struct node_id){n}, &view, err);
            e->procs_total += view.spec.configured.v[RES_PROCS];
        }
        return rc;
    }
    for (uint32_t g = 0; g < s->node_group_count; g++) {
        for (uint32_t i = 0; i < s->node_copies[g]; i++) {
            int rc = cluster_node_add (e->cluster, &s->node[g], TIME_US_NONE, NULL, err);
            if (rc != 0)
                return rc;
            e->procs_total += s->node[g].configured.v[RES_PROCS];
        }
    }
    return 0;
}

static int arrive (struct engine *e, const struct engine_job *j, time_us now, struct err *err)
{
    struct req own = {.tasks = j->procs};
    struct job_spec spec = {.id = {j->number},
                            .submit = j->submit,
                            .not_before = TIME_US_NONE,
                            .walltime_limit = j->limit,
                            .deadline = j->deadline,
                            .req_count = j->req_count,
                            .req = j->req,
                            .reservation = j->inside,
                            .flags = j->inside.v ? JOB_FIRM : 0};

    if (j->req_count == 0) {
        own.task.v[RES_PROCS] = 1;
        spec.req_count = 1;
        spec.req = &own;
    }
    memcpy (spec.cred, j->cred, sizeof spec.cred);
    return cluster_job_submit (e->cluster, &spec, now, err);
}

static uint32_t procs_of (const struct engine_job *j)
{
    uint32_t procs = j->req_count ? 0 : j->procs;

    for (uint32_t r = 0; r < j->req_count; r++)
        procs += j->req[r].tasks * (uint32_t)j->req[r].task.v[RES_PROCS];
    return procs;
}

static int finish_one (struct engine *e, time_us now, struct err *err)
{
    struct ending end = heap_pop (e);
    const struct engine_job *j = &e->job[end.index];
    uint32_t procs = procs_of (j);
    duration_us ran =
        end.at - e->result[end.index].start - (e->halt ? e->halt[end.index].before : 0);
    int64_t used;

    e->result[end.index].end = now;
    e->done++;
    e->procs_used -= procs;
    if (now > e->summary->last_end || e->summary->last_end == TIME_US_NONE)
        e->summary->last_end = now;
    if (e->setup->source)
        e->setup->source->ended (e->setup->source->self, end.index, now);
    if (e->setup->hooks.ended)
        e->setup->hooks.ended (e->setup->hooks.self, end.index, now);
    if (__builtin_mul_overflow (ran, (int64_t)procs, &used) ||
        __builtin_add_overflow (e->summary->proc_us_used, used, &e->summary->proc_us_used))
        e->summary->proc_us_used = INT64_MAX;
    return cluster_job_end (e->cluster, (struct job_id){j->number}, now, err);
}

/* Its end is not ahead of it any more. */
static struct ending ending_take (struct engine *e, uint64_t index)
{
    struct ending own;
    uint32_t i = 0;

    while (e->heap[i].index != index)
        i++;
    own = e->heap[i];
    e->heap[i].at = TIME_US_NONE; /* to the top and out */
    for (; i > 0 && ends_before (&e->heap[i], &e->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        struct ending moved = e->heap[i];
        e->heap[i] = e->heap[(i - 1) / 2];
        e->heap[(i - 1) / 2] = moved;
    }
    (void)heap_pop (e);
    return own;
}

/* By PREEMPTPOLICY: back to the queue, to run from its beginning another time (a checkpoint is not
 * simulated); stopped; or ended. */
static int preempt_one (struct engine *e, struct job_id id, time_us now, struct err *err)
{
    uint64_t index = index_of (e, id.v);
    struct ending end = ending_take (e, index);

    e->summary->preempted++;
    if (e->setup->policy->preempt_policy == PREEMPT_CANCEL) {
        end.at = TIME_US_NONE; /* to the top */
        heap_push (e, end);
        e->heap[0].at = now;
        return finish_one (e, now, err);
    }
    e->procs_used -= procs_of (&e->job[index]);
    if (e->setup->policy->preempt_policy == PREEMPT_SUSPEND) {
        if (!e->halt) {
            e->halt = mem_zero (e->count, sizeof *e->halt);
        }
        e->halt[index].left = end.at - now;
        e->halt[index].since = now;
        return cluster_job_suspend (e->cluster, id, now, err);
    }
    e->summary->backfilled -= e->result[index].backfilled;
    e->result[index] = (struct engine_result){TIME_US_NONE, TIME_US_NONE, false};
    return cluster_job_preempt (e->cluster, id, now, err);
}

static int decide (struct engine *e, time_us now, struct plan *plan, struct err *err)
{
    const struct engine_scheduler *other = e->setup->scheduler;
    int rc;

    if (other)
        return other->pass (other->self, e->cluster, now, e->arena, plan, err);
    rc = plan_compute (e->cluster, now, e->arena, plan, err);
    return rc ? rc : plan_commit (e->cluster, plan, err);
}

/* Under FSPOLICY UTILIZEDPS the core is told what the log says of the job's use of processors. */
static int use_one (struct engine *e, const struct plan_start *start, time_us now, struct err *err)
{
    const struct engine_job *j = &e->job[index_of (e, start->job.v)];

    if (!j->used_known || e->setup->policy->fs_policy != FS_UTILIZEDPS)
        return 0;
    return cluster_job_used (e->cluster, start->job, 0, j->used_micro, now, err);
}

static void start_one (struct engine *e, const struct plan_start *start, time_us now)
{
    uint64_t index = index_of (e, start->job.v);
    const struct engine_job *j = &e->job[index];
    duration_us run =
        cluster_job_scaled (e->cluster, start->job, j->run < j->limit ? j->run : j->limit);

    if (start->phase == PLAN_RESUMED) {
        struct halt *halt = &e->halt[index];
        halt->before += now - halt->since;
        e->procs_used += procs_of (j);
        heap_push (e, (struct ending){now + halt->left, e->seq++, index});
        return;
    }
    e->result[index].start = now;
    e->result[index].backfilled = start->phase >= PLAN_BACKFILL_SOFT;
    e->summary->backfilled += e->result[index].backfilled;
    e->procs_used += procs_of (j);
    heap_push (e, (struct ending){now + run, e->seq++, index});
    if (e->setup->source)
        e->setup->source->started (e->setup->source->self, index, now);
    if (e->setup->hooks.started)
        e->setup->hooks.started (e->setup->hooks.self, index, now);
}

/* The plan says that it cannot be run as it is: nobody looks at it for DEFERTIME, or never again. */
static int defer_one (struct engine *e, struct job_id id, time_us now, struct err *err)
{
    uint64_t index = index_of (e, id.v);
    struct deferral d;

    if (!e->deferred) {
        e->deferred = mem_zero (e->count, sizeof *e->deferred);
    }
    d = defer_next (e->setup->policy, e->deferred[index]++, now);
    if (d.batch_hold)
        return cluster_job_hold_set (e->cluster, id, HOLD_BATCH, now, err);
    return d.until == TIME_US_NONE ? 0 : cluster_job_defer (e->cluster, id, d.until, now, err);
}

/* It cannot end by its deadline any more. */
static int lapse_one (struct engine *e, struct job_id id, time_us now, struct err *err)
{
    if (e->setup->hooks.lapsed)
        e->setup->hooks.lapsed (e->setup->hooks.self, e, index_of (e, id.v), now);
    return cluster_job_remove (e->cluster, id, now, err);
}

/* One pass, and another for each that sent jobs back to the queue or put some off. */
static int pass_run (struct engine *e, time_us now, struct err *err)
{
    struct plan plan;
    int rc;

    if (e->setup->site && e->setup->site->roll)
        e->setup->site->roll (e->setup->site->self, e->cluster, now);
    do {
        rc = decide (e, now, &plan, err);
        for (uint32_t i = 0; i < plan.start_count && rc == 0; i++) {
            start_one (e, &plan.start[i], now);
            rc = use_one (e, &plan.start[i], now, err);
        }
        for (uint32_t i = 0; i < plan.preempt_count && rc == 0; i++)
            rc = preempt_one (e, plan.preempt[i], now, err);
        for (uint32_t i = 0; i < plan.defer_count && rc == 0; i++)
            rc = defer_one (e, plan.defer[i].job, now, err);
        for (uint32_t i = 0; i < plan.lapsed_count && rc == 0; i++)
            rc = lapse_one (e, plan.lapsed[i], now, err);
        if (rc == 0 && e->setup->hooks.planned)
            e->setup->hooks.planned (e->setup->hooks.self, e, &plan);
        e->summary->passes++;
        e->summary->plan_hash = fnv_word (e->summary->plan_hash, plan.hash);
        arena_reset (e->arena);
    } while (rc == 0 && (plan.preempt_count || plan.defer_count || plan.lapsed_count ||
                         (e->again && plan.start_count)));
    return rc;
}

static void sample (struct engine *e, time_us now)
{
    struct engine_sample s = {now,
                              cluster_job_count (e->cluster, JOB_IDLE),
                              e->heap_count,
                              e->procs_used,
                              e->procs_total,
                              e->done,
                              e->summary->passes};

    e->setup->hooks.sample (e->setup->hooks.self, &s);
}

/* --- what time alone changes ------------------------------------------------------------------ */

static bool remaining_limited (const struct policy_limits *limits)
{
    return limits->active_mask & (1u << LIMIT_PS | 1u << LIMIT_WC);
}

static bool cred_polled (const struct policy *p, const struct policy_cred *cred)
{
    bool polled = remaining_limited (&cred->limits) ||
                  (cred->qos && remaining_limited (&cred->qos->override));

    for (uint32_t i = 0; i < cred->cross_count; i++)
        polled = polled || (!cred->cross[i].idle &&
                            (cred->cross[i].limit == LIMIT_PS || cred->cross[i].limit == LIMIT_WC));
    return polled || (p->fs_policy != FS_NONE && (cred->fs_target_type == FS_TARGET_CAP_ABSOLUTE ||
                                                  cred->fs_target_type == FS_TARGET_CAP_RELATIVE));
}

/* Limits on what is left of running jobs, fairshare caps, reservation thresholds of time. */
static bool policy_polled (const struct policy *p)
{
    bool polled = remaining_limited (&p->system_limits) ||
                  p->reservation_threshold == THRESHOLD_QUEUETIME ||
                  p->reservation_threshold == THRESHOLD_XFACTOR;

    for (int kind = 0; kind < CRED_KINDS; kind++) {
        for (uint32_t i = 0; i < p->cred_count[kind] && !polled; i++)
            polled = cred_polled (p, &p->cred[kind][i]);
    }
    return polled;
}

static bool cred_limited (const struct policy_cred *cred)
{
    return cred->limits.active_mask || cred->limits.idle_mask || cred->limits.per_job_mask ||
           cred->cross_count ||
           (cred->qos && (cred->qos->override.active_mask || cred->qos->override.idle_mask));
}

static bool policy_limited (const struct policy *p)
{
    bool limited = p->system_limits.active_mask || p->system_limits.idle_mask ||
                   p->system_limits.per_job_mask || p->system_max_proc_per_job >= 0 ||
                   p->system_max_wall_s_per_job >= 0 || p->system_max_ps_per_job >= 0;

    for (int kind = 0; kind < CRED_KINDS; kind++) {
        for (uint32_t i = 0; i < p->cred_count[kind] && !limited; i++)
            limited = cred_limited (&p->cred[kind][i]);
    }
    return limited;
}

/* Limits stop the clocks of those whom they block, as of the pass that finds it so. */
static bool policy_stops_clocks (const struct policy *p)
{
    return p->accrual != ACCRUAL_ALWAYS && (policy_limited (p) || p->fs_policy != FS_NONE);
}

/* Does one waiting job overtake another as time goes by? */
static bool policy_reorders (const struct policy *p)
{
    bool moves = p->sub_weight[PRIO_XFACTOR] != 0 || p->sub_weight[PRIO_TARGETQUEUETIME] != 0 ||
                 p->sub_weight[PRIO_TARGETXFACTOR] != 0 || p->fs_policy != FS_NONE;

    for (uint32_t i = 0; i < p->cred_count[CRED_QOS] && !moves; i++) {
        const struct policy_qos *q = p->cred[CRED_QOS][i].qos;
        moves = q && (q->qtweight != 0 || q->xfweight != 0);
    }
    return moves;
}

/* With nothing running and nobody to come: sixty days, in which standing reservations come and go and
 * deferrals pass, and all windows of fairshare. */
static duration_us patience_of (const struct policy *p)
{
    duration_us days = INT64_C (60) * 86400 * US_PER_S;
    duration_us windows =
        p->fs_policy == FS_NONE ? 0 : ((duration_us)p->fs_depth + 2) * p->fs_interval;

    return days > windows ? days : windows;
}

/* The next moment at which time alone may let a waiting job start. */
static time_us next_by_time (const struct engine *e, time_us now, time_us arrival)
{
    const struct policy *p = e->setup->policy;
    time_us at = TIME_US_MAX;

    if (e->heap_count == 0 && arrival == TIME_US_MAX && now - e->last > e->patience)
        return TIME_US_MAX;
    if (cluster_job_count (e->cluster, JOB_SUSPENDED) || e->dated ||
        (((e->setup->site && e->setup->site->roll) || e->deferred) &&
         cluster_job_count (e->cluster, JOB_IDLE)))
        at = cluster_next_wakeup (e->cluster, now);
    if (!(e->polled || e->windowed || p->bf_chunk_procs) ||
        cluster_job_count (e->cluster, JOB_IDLE) == 0)
        return at;
    if (e->polled || p->bf_chunk_procs)
        at = cluster_next_wakeup (e->cluster, now);
    if (e->polled && p->poll_interval > 0) {
        time_us begun = e->summary->first_submit == TIME_US_NONE ? 0 : e->summary->first_submit;
        time_us poll = begun + ((now - begun) / p->poll_interval + 1) * p->poll_interval;
        at = poll < at ? poll : at;
    }
    if (e->windowed) {
        time_us roll = (now / p->fs_interval + 1) * p->fs_interval;
        at = roll < at ? roll : at;
    }
    return at;
}

/* When the next job comes; TIME_US_MAX: none will, as far as is known. */
static time_us next_arrival (const struct engine *e)
{
    if (e->next == e->count)
        return TIME_US_MAX;
    return e->setup->source ? e->setup->source->next (e->setup->source->self)
                            : e->job[e->next].submit;
}

static int arrive_next (struct engine *e, time_us now, struct err *err)
{
    const struct engine_source *source = e->setup->source;
    bool taken = true;
    int rc = source ? source->take (source->self, e->cluster, now, e->next, &taken, err) : 0;

    if (rc != 0 || !taken)
        return rc;
    e->dated |= e->job[e->next].deadline != 0;
    rc = arrive (e, &e->job[e->next++], now, err);
    if (rc == 0 && e->setup->hooks.arrived)
        e->setup->hooks.arrived (e->setup->hooks.self, e->cluster, e->next - 1, now);
    return rc;
}

/* The next moment at which something happens; TIME_US_MAX: nothing will. */
static time_us next_moment (const struct engine *e, time_us now)
{
    time_us at = next_arrival (e), by_time = next_by_time (e, now, at);
    duration_us tick = e->setup->tick;

    if (e->heap_count && e->heap[0].at < at)
        at = e->heap[0].at;
    if (by_time < at)
        at = by_time;
    if (at == TIME_US_MAX || tick <= 0)
        return at;
    at = (at + tick - 1) / tick * tick; /* seen at the first tick not before it */
    return at <= now ? now + tick : at;
}

/* One event of this instant, ends before arrivals; false: none is left. */
static bool one_event (struct engine *e, time_us now, int *rc, struct err *err)
{
    if (e->heap_count && e->heap[0].at <= now)
        *rc = finish_one (e, now, err);
    else if (next_arrival (e) <= now)
        *rc = arrive_next (e, now, err);
    else
        return false;
    e->summary->events++;
    e->last = now;
    return *rc == 0;
}

time_us engine_next (const struct engine *e)
{
    return next_moment (e, e->now);
}

int engine_turn (struct engine *e, time_us now, struct err *err)
{
    int rc = 0;

    e->now = now;
    while (one_event (e, now, &rc, err)) {
        if (e->setup->pass_per_event)
            rc = pass_run (e, now, err);
    }
    if (rc == 0 && !e->setup->pass_per_event)
        rc = pass_run (e, now, err);
    if (rc == 0 && e->setup->hooks.sample)
        sample (e, now);
    return rc;
}

struct cluster *engine_cluster (struct engine *e)
{
    return e->cluster;
}

uint64_t engine_index (const struct engine *e, struct job_id job)
{
    return index_of (e, job.v);
}

int engine_withdraw (struct engine *e, uint64_t index, time_us now, struct err *err)
{
    return cluster_job_remove (e->cluster, (struct job_id){e->job[index].number}, now, err);
}

static void stuck_report (struct engine *e)
{
    struct job_view view;

    for (uint64_t i = 0; i < (e->setup->source ? e->next : e->count); i++) {
        if (e->result[i].start != TIME_US_NONE)
            continue;
        e->summary->never_started++;
        if (e->setup->hooks.stuck &&
            cluster_job_get (e->cluster, (struct job_id){e->job[i].number}, &view, NULL) == 0)
            e->setup->hooks.stuck (e->setup->hooks.self, e, i, &view);
    }
}

static int jobs_check (const struct engine_job *job, uint64_t count, struct err *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (job[i].limit <= 0 || job[i].run < 0)
            return err_set (err, ERR_INVALID, "job %llu: limit and run time must not be negative",
                            (unsigned long long)job[i].number);
        if (i > 0 && job[i].submit < job[i - 1].submit)
            return err_set (err, ERR_INVALID, "job %llu was submitted before the one above it",
                            (unsigned long long)job[i].number);
    }
    return 0;
}

struct engine *engine_create (const struct engine_setup *setup, const struct engine_job *job,
                              uint64_t count, struct engine_result *results,
                              struct engine_summary *summary, struct err *err)
{
    struct cluster_options options = {setup->gres_kinds, setup->seed};
    struct engine *e;

    if (!setup->source && jobs_check (job, count, err) != 0)
        return NULL;
    e = mem_zero (1, sizeof *e);
    *e = (struct engine){.setup = setup,
                         .job = job,
                         .count = count,
                         .result = results,
                         .summary = summary,
                         .now = TIME_US_NONE};
    memset (summary, 0, sizeof *summary);
    summary->first_submit = count && !setup->source ? job[0].submit : TIME_US_NONE;
    summary->last_end = TIME_US_NONE;
    for (uint64_t i = 0; i < count; i++)
        results[i] = (struct engine_result){TIME_US_NONE, TIME_US_NONE, false};
    e->polled = (policy_polled (setup->policy) || policy_stops_clocks (setup->policy) ||
                 policy_reorders (setup->policy)) &&
                !setup->scheduler && !setup->pass_per_event;
    e->again = !setup->scheduler && !setup->pass_per_event &&
               (e->polled || setup->site || policy_limited (setup->policy) ||
                setup->policy->node_allocation != NODEALLOC_FIRSTAVAILABLE);
    e->windowed = setup->policy->fs_policy != FS_NONE && setup->policy->fs_interval > 0 &&
                  !setup->scheduler && !setup->pass_per_event;
    e->patience = patience_of (setup->policy);
    e->arena = arena_create (0);
    e->cluster = cluster_create (setup->policy, &options, err);
    if (e->cluster == NULL || index_build (e, err) != 0 || machine_build (e, err) != 0) {
        engine_destroy (e);
        return NULL;
    }
    return e;
}

void engine_destroy (struct engine *e)
{
    if (!e)
        return;
    cluster_destroy (e->cluster);
    arena_destroy (e->arena);
    free (e->heap);
    free (e->halt);
    free (e->deferred);
    free (e->index_key);
    free (e->index_value);
    free (e);
}

int engine_run (const struct engine_setup *setup, const struct engine_job *job, uint64_t count,
                struct engine_result *results, struct engine_summary *summary, struct err *err)
{
    struct err own = {0};
    struct engine *e = engine_create (setup, job, count, results, summary, err ? err : &own);
    time_us at;
    int rc = 0;

    if (!e)
        return err ? err->code : own.code;
    while (rc == 0 && (at = engine_next (e)) != TIME_US_MAX)
        rc = engine_turn (e, at, err);
    if (rc == 0)
        stuck_report (e);
    engine_destroy (e);
    return rc;
}
