/* job: events of jobs (as others see them: job_view.c) */
#include "local/core/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *heap_copy (const void *bytes, size_t len)
{
    void *copy = malloc (len ? len : 1);

    assert (copy && "out of memory");
    if (len)
        memcpy (copy, bytes, len);
    return copy;
}

#define PRIORITY_SYSTEM (PRIORITY_SYSTEM_ABSOLUTE | PRIORITY_SYSTEM_RELATIVE)

/* --- slots -------------------------------------------------------------------------------- */

static uint32_t slot_take (struct cluster *c)
{
    uint32_t slot;

    if (c->slot_free_count)
        return c->slot_free[--c->slot_free_count];
    slot = c->slot_count++;
    if (slot / JOB_CHUNK == c->chunk_count) {
        c->chunk = realloc (c->chunk, (c->chunk_count + 1) * sizeof *c->chunk);
        assert (c->chunk && "out of memory");
        c->chunk[c->chunk_count] = calloc (JOB_CHUNK, sizeof **c->chunk);
        assert (c->chunk[c->chunk_count] && "out of memory");
        c->chunk_count++;
    }
    if (slot >= c->slot_cap) {
        uint32_t cap = c->slot_cap ? c->slot_cap * 2 : JOB_CHUNK, hot_cap = c->slot_cap;
        c->hot = grow_lines (c->hot, &hot_cap, cap, sizeof *c->hot);
        c->pj = realloc (c->pj, cap * sizeof *c->pj);
        c->lj = realloc (c->lj, cap * sizeof *c->lj);
        c->prio_static = realloc (c->prio_static, cap * sizeof *c->prio_static);
        c->prio_key = realloc (c->prio_key, cap * sizeof *c->prio_key);
        c->slot_free = realloc (c->slot_free, cap * sizeof *c->slot_free);
        assert (c->hot && c->pj && c->lj && c->prio_static && c->prio_key && c->slot_free && "out of memory");
        c->slot_cap = cap;
    }
    return slot;
}

static void slot_give (struct cluster *c, uint32_t slot)
{
    planner_forget_job (c, slot);
    c->slot_free[c->slot_free_count++] = slot;
}

/* --- derived columns ---------------------------------------------------------------------- */

/* Nodes that the job needs at least, for NODEWEIGHT and MAXNODE. */
static uint32_t nodes_asked (const struct cluster *c, const struct job *job)
{
    uint64_t nodes = 0;

    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        const struct req *req = &job->spec.req[r];
        int32_t most = 1;
        if (req->tasks_per_node) {
            nodes += req->tasks / req->tasks_per_node;
            continue;
        }
        most = c->largest_node / req->task.v[RES_PROCS];
        nodes += most > 1 ? (req->tasks + (uint32_t)most - 1) / (uint32_t)most : req->tasks;
    }
    return nodes > UINT32_MAX ? UINT32_MAX : (uint32_t)nodes;
}

static void job_totals (struct cluster *c, uint32_t slot)
{
    const struct job *job = job_at (c, slot);
    struct priority_job *pj = &c->pj[slot];

    pj->pe = priority_pe (pj->procs, pj->mem_mb, pj->swap_mb, pj->disk_mb, &c->totals);
    pj->nodes = nodes_asked (c, job);
    c->lj[slot].pe_micro = (int64_t)(pj->pe * 1e6 + 0.5);
    c->lj[slot].nodes = pj->nodes;
    c->prio_static[slot] = priority_static (c->priority, pj);
}

void jobs_totals_changed (struct cluster *c)
{
    c->largest_node = 0;
    for (uint32_t n = 0; n < c->node_count; n++) {
        if (c->node_state[n] != NODE_DOWN && row (c, c->cap, n)[RES_PROCS] > c->largest_node)
            c->largest_node = row (c, c->cap, n)[RES_PROCS];
    }
    for (uint32_t i = 0; i < c->idle_count; i++)
        job_totals (c, c->idle[i]);
    for (uint32_t i = 0; i < c->suspended_count; i++)
        job_totals (c, c->suspended[i]);
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t slot = c->run[i].slot;
        int64_t end_s = job_at (c, slot)->limit_end / US_PER_S;
        if (c->hot[slot].limited & LIMITED_ACTIVE)
            limits_active_remove (c->limits, &c->lj[slot], end_s);
        job_totals (c, slot);
        if (c->hot[slot].limited & LIMITED_ACTIVE)
            limits_active_add (c->limits, &c->lj[slot], end_s);
    }
}

static uint32_t licence_of (const struct job_spec *spec)
{
    static_assert (LICENCES_MAX <= 1 << (32 - LICENCE_COUNT_BITS), "a kind fits beside its count");

    if (spec->licence_count != 1 || spec->licence->count < 0 ||
        spec->licence->count >= 1 << LICENCE_COUNT_BITS)
        return LICENCE_LOOK;
    return spec->licence->kind << LICENCE_COUNT_BITS | (uint32_t)spec->licence->count;
}

static void job_limited (struct cluster *c, uint32_t slot)
{
    const struct policy *p = c->policy;
    const struct policy_qos *qos = policy_qos (p, c->lj[slot].cred[CRED_QOS]);
    struct job_hot *hot = &c->hot[slot];

    hot->limited = 0;
    if (limits_any_active (c->limits, c->lj[slot].cred))
        hot->limited |= LIMITED_ACTIVE;
    if (limits_any_idle (c->limits, c->lj[slot].cred))
        hot->limited |= LIMITED_IDLE;
    if (p->system_max_proc_per_job >= 0 || p->system_max_wall_s_per_job >= 0 ||
        p->system_max_ps_per_job >= 0 || (qos && qos->job_override_mask))
        hot->limited |= LIMITED_SYSTEM;
    if (job_at (c, slot)->spec.array && job_at (c, slot)->spec.array_limit)
        hot->limited |= LIMITED_ARRAY;
    if (c->lj[slot].cred[CRED_CLASS] != CRED_NONE &&
        policy_cred (p, CRED_CLASS, c->lj[slot].cred[CRED_CLASS])->class)
        hot->limited |= LIMITED_CLASS;
    if (job_at (c, slot)->spec.licence_count)
        hot->limited |= LIMITED_LICENCE;
    hot->licence = licence_of (&job_at (c, slot)->spec);
}

/* Above all others: by setspri, or by its QoS (next to run, run now). */
static uint32_t system_priority_flags (const struct cluster *c, const struct job_spec *spec)
{
    const struct policy_qos *qos = policy_qos (c->policy, spec->cred[CRED_QOS]);

    if ((spec->flags & JOB_SYSTEM_PRIORITY) || (qos && (qos->flags & (QOS_NTR | QOS_RUNNOW))))
        return PRIORITY_SYSTEM_ABSOLUTE;
    return spec->system_priority ? PRIORITY_SYSTEM_RELATIVE : 0;
}

static void columns_fill (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);
    struct priority_job *pj = &c->pj[slot];
    struct limits_job *lj = &c->lj[slot];
    int64_t sum[RES_GRES0] = {0};

    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        for (uint32_t d = 0; d < RES_GRES0; d++)
            sum[d] += (int64_t)job->spec.req[r].tasks * job->spec.req[r].task.v[d];
    }
    job->procs = (uint32_t)sum[RES_PROCS];
    memcpy (pj->cred, job->spec.cred, sizeof pj->cred);
    pj->flags = system_priority_flags (c, &job->spec);
    pj->procs = job->procs;
    pj->mem_mb = sum[RES_MEM_MB];
    pj->swap_mb = sum[RES_SWAP_MB];
    pj->disk_mb = sum[RES_DISK_MB];
    pj->wclimit_s = (job->spec.walltime_limit + US_PER_S - 1) / US_PER_S;
    pj->system_priority = job->spec.system_priority;
    memcpy (lj->cred, job->spec.cred, sizeof lj->cred);
    lj->procs = job->procs;
    lj->mem_mb = pj->mem_mb;
    lj->wclimit_s = pj->wclimit_s;
    job_totals (c, slot);
    c->hot[slot].limit = job->spec.walltime_limit;
    c->hot[slot].procs = job->procs;
    c->hot[slot].tasks = job->spec.req_count == 1 ? job->spec.req[0].tasks : 0;
    c->hot[slot].shape = job->spec.req_count == 1 ? job->shape[0] : SLOT_NONE;
    c->hot[slot].over_soft = 0;
    c->hot[slot].fits_serial = 0;
    job_limited (c, slot);
}

static bool job_complex (const struct cluster *c, const struct job *job)
{
    return job->spec.req_count != 1 || !c->shape[job->shape[0]].simple ||
           job->spec.licence_count > 0;
}

/* By name, or any that admits it: its QoS says QFLAGS USERESERVED. */
static bool bound_to_reservations (const struct cluster *c, const struct job *job)
{
    const struct policy_qos *qos = policy_qos (c->policy, job->spec.cred[CRED_QOS]);

    return job->spec.reservation.v || (qos && (qos->flags & QOS_USERESERVED));
}

static uint8_t gates (const struct cluster *c, const struct job *job)
{
    return (job->spec.holds ? GATE_HOLD : 0) |
           (job->deferred_until != TIME_US_NONE && job->deferred_until > c->now ? GATE_DEFER : 0) |
           (job->spec.not_before != TIME_US_NONE && job->spec.not_before > c->now ? GATE_DATE
                                                                                 : 0) |
           (bound_to_reservations (c, job) ? GATE_RSV : 0) |
           (job->retry_until != TIME_US_NONE && job->retry_until > c->now ? GATE_RETRY : 0) |
           (job->spec.deadline ? GATE_DEADLINE : 0) | (job->spec.data_at ? GATE_DATA : 0);
}

void gate_update (struct cluster *c, uint32_t slot)
{
    uint8_t gate = gates (c, job_at (c, slot));

    c->gated += (gate != 0) - (c->hot[slot].gate != 0);
    c->hot[slot].gate = gate;
}

/* --- entering and leaving ----------------------------------------------------------------- */

/* By its QoS: QFLAGS DEDICATED, as it is when the job comes. */
static bool whole_nodes (const struct cluster *c, const struct job_spec *spec)
{
    const struct policy_qos *qos = policy_qos (c->policy, spec->cred[CRED_QOS]);

    return qos && (qos->flags & QOS_DEDICATED);
}

static void spec_take (struct cluster *c, struct job *job, const struct job_spec *spec)
{
    if (spec->data_at == 0 || job->data_first == 0 || spec->data_at < job->data_first)
        job->data_first = spec->data_at;
    job->spec = *spec;
    job->ever_serial = job->why_serial = 0;
    if (spec->req_count == 1) {
        job->one = spec->req[0];
        job->spec.req = &job->one;
        job->shape = &job->one_shape;
    } else {
        job->spec.req = heap_copy (spec->req, spec->req_count * sizeof *spec->req);
        job->shape = malloc (spec->req_count * sizeof *job->shape);
        assert (job->shape && "out of memory");
    }
    job->spec.licence = spec->licence_count
                            ? heap_copy (spec->licence,
                                         spec->licence_count * sizeof *spec->licence)
                            : NULL;
    if (whole_nodes (c, spec)) {
        for (uint32_t r = 0; r < spec->req_count; r++)
            ((struct req *)job->spec.req)[r].exclusive = true;
    }
    job->procs = 0;
    for (uint32_t r = 0; r < spec->req_count; r++)
        job->procs += spec->req[r].tasks * (uint32_t)spec->req[r].task.v[RES_PROCS];
    job->access = access_of_job (c, job);
    for (uint32_t r = 0; r < spec->req_count; r++)
        job->shape[r] = shape_intern (c, &job->spec.req[r], job->access, job->spec.cred);
}

/* A job that shares its nodes with its user's jobs only makes it matter for everybody. */
static void sharing_ask (struct cluster *c, const struct job_spec *spec)
{
    for (uint32_t r = 0; r < spec->req_count && !c->sharing; r++) {
        if (spec->req[r].access == ACCESS_SINGLEUSER)
            c->sharing_asked = c->nodes_dirty = true;
    }
}

/* Its shapes as the site's policy is now. */
static void job_reshape (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    c->complex_jobs -= job_complex (c, job);
    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        uint32_t old = job->shape[r];
        job->shape[r] = shape_intern (c, &job->spec.req[r], job->access, job->spec.cred);
        shape_release (c, old);
    }
    c->complex_jobs += job_complex (c, job);
    c->hot[slot].fits_serial = 0;
    if (job->spec.req_count == 1)
        c->hot[slot].shape = job->shape[0];
}

void jobs_needs_changed (struct cluster *c)
{
    for (uint32_t i = 0; i < c->idle_count; i++)
        job_reshape (c, c->idle[i]);
}

static void spec_drop (struct cluster *c, struct job *job)
{
    for (uint32_t r = 0; r < job->spec.req_count; r++)
        shape_release (c, job->shape[r]);
    if (job->spec.req != &job->one)
        free ((void *)job->spec.req);
    if (job->shape != &job->one_shape)
        free (job->shape);
    free ((void *)job->spec.licence);
    job->spec.licence = NULL;
}

static void job_enter_idle (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    job->state = JOB_IDLE;
    c->hot[slot].gate = 0;
    gate_update (c, slot);
    idle_insert (c, slot);
    c->aged_apart += c->pj[slot].eff_queue_since != job->spec.submit;
    c->system_prioritised += c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
    c->limited += c->hot[slot].limited != 0;
    c->deadlines += job->spec.deadline != 0;
    c->prio_key[slot] = priority_key (0);
    if (priority_use_weighs (c->policy)) /* what its user runs may have changed since */
        c->prio_static[slot] = priority_static (c->priority, &c->pj[slot]);
    job->entered = c->planner->serial;
    job->reason = (struct reason){.code = REASON_NOT_PLANNED, .clears = TIME_US_NONE};
    c->hot[slot].reason_code = REASON_NOT_PLANNED;
    job->reserved_start = TIME_US_NONE;
    job->reserved.count = 0;
}

static const duration_us claim_longest = 300 * US_PER_S;

static void retry_drop (struct job *job)
{
    free (job->retry.item);
    job->retry = (struct allocation){0};
    job->retry_until = TIME_US_NONE;
}

void job_claim (struct cluster *c, uint32_t slot, const struct allocation *a)
{
    struct job *job = job_at (c, slot);

    retry_drop (job);
    job->retry.count = a->count;
    job->retry.item = heap_copy (a->item, a->count * sizeof *a->item);
    job->retry_until = time_add (c->now, claim_longest);
    gate_update (c, slot);
}

/* Takes a job out of everything that only idle jobs are in, but for the idle list. */
void job_leave_idle (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    c->gated -= c->hot[slot].gate != 0;
    c->limited -= c->hot[slot].limited != 0;
    c->deadlines -= job->spec.deadline != 0;
    c->aged_apart -= c->pj[slot].eff_queue_since != job->spec.submit;
    c->system_prioritised -= c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
    c->hot[slot].gate = 0;
    retry_drop (job);
    job->reserved_start = TIME_US_NONE;
    job->reserved.count = 0;
}

static void job_gone (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    c->complex_jobs -= job_complex (c, job);
    map_remove (&c->map, job->spec.id.v);
    spec_drop (c, job);
    retry_drop (job);
    free (job->reserved.item);
    job->reserved.item = NULL;
    job->reserved_cap = 0;
    job->gone = true;
    slot_give (c, slot);
}

int cluster_job_submit (struct cluster *c, const struct job_spec *spec, time_us now,
                        struct err *err)
{
    struct job *job;
    uint64_t version;
    uint32_t slot;
    bool beside;
    int rc = job_spec_check (c, spec, err);

    if (rc != 0)
        return rc;
    if (map_find (&c->map, spec->id.v) != SLOT_NONE)
        return err_set (err, ERR_EXISTS, "job %llu is there already",
                        (unsigned long long)spec->id.v);
    if (c->map.count >= JOBS_MAX)
        return err_set (err, ERR_LIMIT, "job %llu: there are %u jobs, at most %d",
                        (unsigned long long)spec->id.v, c->map.count, JOBS_MAX);
    version = c->version;
    sharing_ask (c, spec);
    beside = c->planner->under_way && !c->nodes_dirty; /* a pass that need not know of it */
    if (!beside)
        event_begin (c, now);
    cluster_settle (c);
    c->settled -= !beside && c->version == version; /* what is free when is as it was */
    slot = slot_take (c);
    job = job_at (c, slot);
    job->data_first = 0;
    spec_take (c, job, spec);
    job->gone = job->pending = job->backfilled = job->kept = false;
    job->eviction = EVICTION_NONE;
    job->resuming = job->held = false;
    job->deferred_until = job->retry_until = TIME_US_NONE;
    job->retry = (struct allocation){0};
    job->stamp = 0;
    job->rate_micro = 0;
    job->allocation = (struct allocation){0};
    map_put (&c->map, spec->id.v, slot);
    c->pj[slot].bypass = 0;
    c->pj[slot].eff_queue_since = spec->submit;
    columns_fill (c, slot);
    c->complex_jobs += job_complex (c, job);
    job_enter_idle (c, slot);
    c->version++;
    return 0;
}

int job_find (const struct cluster *c, struct job_id id, uint32_t *slot_out, struct err *err)
{
    *slot_out = id.v == 0 || id.v == UINT64_MAX ? SLOT_NONE : map_find (&c->map, id.v);
    if (*slot_out == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    return 0;
}

/* An idle job for a change; what passes knew is void. */
static int find_idle (struct cluster *c, struct job_id id, time_us now, uint32_t *slot_out,
                      struct err *err)
{
    int rc = job_find (c, id, slot_out, err);

    if (rc != 0)
        return rc;
    if (job_at (c, *slot_out)->state != JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu is not idle", (unsigned long long)id.v);
    event_begin (c, now);
    event_frees (c);
    c->version++;
    return 0;
}

int cluster_job_modify (struct cluster *c, const struct job_spec *spec, time_us now,
                        struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = job_spec_check (c, spec, err);

    if (rc == 0)
        rc = find_idle (c, spec->id, now, &slot, err);
    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    sharing_ask (c, spec);
    cluster_settle (c);
    job_leave_idle (c, slot);
    idle_remove (c, slot);
    c->complex_jobs -= job_complex (c, job);
    spec_drop (c, job);
    spec_take (c, job, spec);
    columns_fill (c, slot);
    c->complex_jobs += job_complex (c, job);
    job_enter_idle (c, slot);
    return 0;
}

int cluster_job_hold_set (struct cluster *c, struct job_id id, uint32_t holds, time_us now,
                          struct err *err)
{
    uint32_t slot;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_at (c, slot)->spec.holds = holds;
    gate_update (c, slot);
    return 0;
}

int cluster_job_defer (struct cluster *c, struct job_id id, time_us until, time_us now,
                       struct err *err)
{
    uint32_t slot;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    retry_drop (job_at (c, slot));
    job_at (c, slot)->deferred_until = until;
    gate_update (c, slot);
    return 0;
}

static void retry_take (struct job *job, const struct allocation *a, time_us until)
{
    struct placement *item = heap_copy (a->item, a->count * sizeof *a->item);

    retry_drop (job);
    job->retry = (struct allocation){a->count, item};
    job->retry_until = until;
}

int cluster_job_retry_keep (struct cluster *c, struct job_id id, const struct allocation *a,
                            time_us until, time_us now, struct err *err)
{
    uint32_t slot;
    const struct job *job;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    rc = allocation_check (c, job->spec.req, job->spec.req_count, a, err);
    if (rc != 0)
        return rc;
    retry_take (job_at (c, slot), a, until);
    gate_update (c, slot);
    return 0;
}

int cluster_job_system_priority_set (struct cluster *c, struct job_id id, int32_t priority,
                                     bool absolute, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    job->spec.system_priority = priority;
    job->spec.flags &= ~(uint32_t)JOB_SYSTEM_PRIORITY;
    if (absolute)
        job->spec.flags |= JOB_SYSTEM_PRIORITY;
    c->system_prioritised -= c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
    c->pj[slot].flags = system_priority_flags (c, &job->spec);
    c->pj[slot].system_priority = priority;
    c->system_prioritised += c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
    return 0;
}

int cluster_job_remove (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_leave_idle (c, slot);
    idle_remove (c, slot);
    job_gone (c, slot);
    return 0;
}

/* --- running ------------------------------------------------------------------------------ */

/* Is there enough left on the nodes right now? */
int room_check (const struct cluster *c, const struct job *job, const struct allocation *a,
                struct err *err)
{
    int32_t left[RES_MAX];

    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t node = a->item[i].node.v;
        memcpy (left, row (c, c->free, node), c->dims * sizeof *left);
        for (uint32_t j = 0; j < i && job->spec.req_count > 1; j++) {
            const struct req *other = &c->shape[job->shape[a->item[j].req]].req;
            for (uint32_t d = 0; d < c->dims && a->item[j].node.v == node; d++)
                left[d] -= (int32_t)a->item[j].tasks * other->task.v[d];
        }
        if (shape_fit (c, &c->shape[job->shape[a->item[i].req]], node, left) < a->item[i].tasks)
            return err_set (err, ERR_CONFLICT,
                            "job %llu: node %u has too little left for %u tasks",
                            (unsigned long long)job->spec.id.v, node, a->item[i].tasks);
    }
    return licences_left (c, job->spec.licence, job->spec.licence_count, err);
}

void job_started (struct cluster *c, uint32_t slot, enum job_state state)
{
    struct job *job = job_at (c, slot);
    const struct rsv *rsv = job->spec.reservation.v ? rsv_find (c, job->spec.reservation) : NULL;

    job->pending = false;
    job->state = state;
    c->starting_count += state == JOB_STARTING;
    job->reason = (struct reason){.code = REASON_NONE, .clears = TIME_US_NONE};
    if (rsv && rsv->spec.kind == RSV_FIRM)
        (void)cluster_rsv_release (c, rsv->spec.id, c->now, NULL); /* used up */
}

int cluster_job_start (struct cluster *c, struct job_id id, const struct allocation *allocation,
                       time_us started, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    struct allocation copy = {0};
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    rc = allocation_check (c, job->spec.req, job->spec.req_count, allocation, err);
    if (rc == 0)
        rc = room_check (c, job, allocation, err);
    if (rc != 0)
        return rc;
    cluster_settle (c);
    copy.count = allocation->count;
    copy.item = heap_copy (allocation->item, allocation->count * sizeof *allocation->item);
    job_leave_idle (c, slot);
    job_enter_running (c, slot, copy, started);
    job->backfilled = false;
    job->eviction = EVICTION_NONE;
    (void)rsv_use (c, job, NULL);
    job_started (c, slot, JOB_STARTING);
    event_frees (c);
    return 0;
}

static int find_active (struct cluster *c, struct job_id id, time_us now, uint32_t *slot_out,
                        struct err *err)
{
    int rc = job_find (c, id, slot_out, err);

    if (rc != 0)
        return rc;
    event_begin (c, now);
    if (job_at (c, *slot_out)->state == JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu does not run", (unsigned long long)id.v);
    return 0;
}

static void start_set (struct cluster *c, uint32_t slot, time_us started)
{
    struct job *job = job_at (c, slot);
    bool limited = (c->hot[slot].limited & LIMITED_ACTIVE) != 0;

    run_remove (c, slot);
    if (limited)
        limits_active_remove (c->limits, &c->lj[slot], job->limit_end / US_PER_S);
    job->start = started;
    job->limit_end = time_add (started, length_on (c, job, &job->allocation));
    run_insert (c, slot);
    if (limited)
        limits_active_add (c->limits, &c->lj[slot], job->limit_end / US_PER_S);
    c->version++;
    event_frees (c);
}

int cluster_job_running (struct cluster *c, struct job_id id, time_us started, time_us now,
                         struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    if (job->state == JOB_SUSPENDED)
        return err_set (err, ERR_CONFLICT, "job %llu is suspended", (unsigned long long)id.v);
    if (job->state == JOB_STARTING) {
        job->state = JOB_RUNNING;
        c->starting_count--;
    }
    if (started != job->start)
        start_set (c, slot, started);
    return 0;
}

int cluster_job_delayed (struct cluster *c, struct job_id id, const struct who *who, time_us now,
                         struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    struct job *job = job_at (c, slot);
    struct rsv_spec spec = {.id = {id.v}, .kind = RSV_COURTESY, .start = now, .who = who,
                            .end = time_add (now, length_on (c, job, &job->allocation)),
                            .req_count = job->spec.req_count, .req = job->spec.req,
                            .licence_count = job->spec.licence_count, .licence = job->spec.licence};
    run_remove (c, slot); /* it is not in its own way */
    nodes_apply (c, job, &job->allocation, 1);
    rc = timeline_conflict (c, &spec, &job->allocation, now, err);
    nodes_apply (c, job, &job->allocation, -1);
    run_insert (c, slot);
    if (rc == 0)
        start_set (c, slot, now);
    return rc;
}

/* A running job is idle again. keep: its nodes stay its own for RESERVATIONRETRYTIME. */
static void job_back (struct cluster *c, uint32_t slot, time_us until, bool keep)
{
    struct job *job = job_at (c, slot);

    c->starting_count -= job->state == JOB_STARTING;
    job->eviction = EVICTION_NONE;
    if (keep)
        retry_take (job, &job->allocation, time_add (c->now, c->policy->reservation_retry));
    rsv_unuse (c, job->spec.id);
    if (job->state == JOB_SUSPENDED)
        suspended_forget (c, slot);
    else
        job_leave_running (c, slot);
    job_reshape (c, slot);
    job->backfilled = false;
    job->deferred_until = until > c->now ? until : TIME_US_NONE;
    job_enter_idle (c, slot);
    c->freed_at = c->now;
    c->version++;
    event_frees (c);
}

int cluster_job_requeue (struct cluster *c, struct job_id id, time_us until, time_us now,
                         struct err *err)
{
    const struct job *job;
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    job_back (c, slot, until,
              job->state == JOB_STARTING && c->policy->reservation_retry > 0 &&
                  job->spec.reservation.v == 0);
    return 0;
}

int cluster_job_preempt (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    c->pj[slot].eff_queue_since = c->now;
    job_back (c, slot, TIME_US_NONE, false);
    return 0;
}

int cluster_job_eviction_set (struct cluster *c, struct job_id id, enum eviction eviction,
                              time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_at (c, slot)->eviction = (uint8_t)eviction;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_job_backfilled_set (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_at (c, slot)->backfilled = true;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_job_end (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    rsv_used_up (c, id);
    c->starting_count -= job->state == JOB_STARTING;
    if (job->state == JOB_SUSPENDED) {
        suspended_forget (c, slot);
        job_gone (c, slot);
        c->version++;
        return 0;
    }
    if (job->limit_end > c->now) {
        memo_changed (c->planner, &job->allocation, job->limit_end, true);
        memo_licences (c->planner, job->spec.licence, job->spec.licence_count);
    } else if (job->limit_end < c->now) {
        memo_void (c->planner);
    }
    job_leave_running (c, slot);
    job_gone (c, slot);
    c->freed_at = c->now;
    c->version++;
    c->planner->frees++;
    return 0;
}

/* --- another policy --------------------------------------------------------------------------- */

static void system_flags_renew (struct cluster *c, uint32_t slot)
{
    struct priority_job *pj = &c->pj[slot];

    pj->flags = (pj->flags & ~(uint32_t)PRIORITY_SYSTEM) |
                system_priority_flags (c, &job_at (c, slot)->spec);
}

void jobs_policy_changed (struct cluster *c)
{
    for (uint32_t i = 0; i < c->idle_count; i++) {
        uint32_t slot = c->idle[i];
        c->limited -= c->hot[slot].limited != 0;
        job_totals (c, slot);
        job_limited (c, slot);
        c->limited += c->hot[slot].limited != 0;
        c->system_prioritised -= c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
        system_flags_renew (c, slot);
        c->system_prioritised += c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
        gate_update (c, slot);
    }
    for (uint32_t i = 0; i < c->suspended_count; i++) {
        job_totals (c, c->suspended[i]);
        job_limited (c, c->suspended[i]);
        system_flags_renew (c, c->suspended[i]);
    }
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t slot = c->run[i].slot;
        struct job *job = job_at (c, slot);
        job_totals (c, slot);
        job_limited (c, slot);
        system_flags_renew (c, slot);
        if (c->hot[slot].limited & LIMITED_ACTIVE)
            limits_active_add (c->limits, &c->lj[slot], job->limit_end / US_PER_S);
        usage_policy_changed (c, slot);
    }
}
