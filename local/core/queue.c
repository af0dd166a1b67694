/* The queue: slots and their columns, what is derived of a job by the policy and the nodes that there are, how jobs enter
 * it and leave. Called by events of jobs (job.c) and where nodes or policies change; begins no event itself. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/pass.h"

static const duration_us claim_longest =
    300 * US_PER_S; /* that a job waits for nodes that were made free for it */

uint32_t job_slot_take (struct cluster *c)
{
    uint32_t slot;

    if (c->slot_free_count)
        return c->slot_free[--c->slot_free_count];
    slot = c->slot_count++;
    if (slot / JOB_CHUNK == c->chunk_count) {
        c->chunk = mem_resize (c->chunk, (c->chunk_count + 1) * sizeof *c->chunk);
        c->chunk[c->chunk_count] = mem_alloc (JOB_CHUNK * sizeof **c->chunk);
        c->chunk_count++;
    }
    *job_at (c, slot) =
        (struct job){0}; /* one by one: copies of small sites are made all the time */
    if (slot >= c->slot_cap) {
        uint32_t cap = c->slot_cap ? c->slot_cap * 2 : JOB_CHUNK, hot_cap = c->slot_cap;
        c->hot = grow_lines (c->hot, &hot_cap, cap, sizeof *c->hot);
        c->pj = mem_resize (c->pj, cap * sizeof *c->pj);
        c->lj = mem_resize (c->lj, cap * sizeof *c->lj);
        c->prio_static = mem_resize (c->prio_static, cap * sizeof *c->prio_static);
        c->prio_key = mem_resize (c->prio_key, cap * sizeof *c->prio_key);
        c->slot_free = mem_resize (c->slot_free, cap * sizeof *c->slot_free);
        c->slot_cap = cap;
    }
    return slot;
}

static void slot_give (struct cluster *c, uint32_t slot)
{
    c->slot_free[c->slot_free_count++] = slot;
}

uint32_t reqs_nodes (const struct cluster *c, const struct req *reqs, uint32_t count)
{
    uint64_t nodes = 0;

    for (uint32_t r = 0; r < count; r++) {
        const struct req *req = &reqs[r];
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
    pj->nodes = reqs_nodes (c, job->spec.req, job->spec.req_count);
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
    struct job_hot *hot = &c->hot[slot];

    hot->limited = 0;
    if (limits_any_active (c->limits, c->lj[slot].cred))
        hot->limited |= LIMITED_ACTIVE;
    if (limits_any_idle (c->limits, c->lj[slot].cred))
        hot->limited |= LIMITED_IDLE;
    if (limits_any_job (c->limits, c->lj[slot].cred))
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
uint32_t job_system_flags (const struct cluster *c, const struct job_spec *spec)
{
    const struct policy_qos *qos = policy_qos (c->policy, spec->cred[CRED_QOS]);

    if ((spec->flags & JOB_SYSTEM_PRIORITY) || (qos && (qos->flags & (QOS_NTR | QOS_RUNNOW))))
        return PRIORITY_SYSTEM_ABSOLUTE;
    return spec->system_priority ? PRIORITY_SYSTEM_RELATIVE : 0;
}

void job_columns_fill (struct cluster *c, uint32_t slot)
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
    pj->flags = job_system_flags (c, &job->spec);
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

bool job_complex (const struct cluster *c, const struct job *job)
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
           (job->spec.not_before != TIME_US_NONE && job->spec.not_before > c->now ? GATE_DATE : 0) |
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

/* By its QoS: QFLAGS DEDICATED, as it is when the job comes. */
static bool whole_nodes (const struct cluster *c, const struct job_spec *spec)
{
    const struct policy_qos *qos = policy_qos (c->policy, spec->cred[CRED_QOS]);

    return qos && (qos->flags & QOS_DEDICATED);
}

void job_spec_take (struct cluster *c, struct job *job, const struct job_spec *spec)
{
    if (spec->data_at == 0 || job->data_first == 0 || spec->data_at < job->data_first)
        job->data_first = spec->data_at;
    job->spec = *spec;
    job->ever_serial = job->why_serial = job->again_serial = 0;
    if (spec->req_count == 1) {
        job->one = spec->req[0];
        job->spec.req = &job->one;
        job->shape = &job->one_shape;
    } else {
        job->spec.req = mem_copy (spec->req, spec->req_count * sizeof *spec->req);
        job->shape = mem_alloc (spec->req_count * sizeof *job->shape);
    }
    job->spec.licence = spec->licence_count
                            ? mem_copy (spec->licence, spec->licence_count * sizeof *spec->licence)
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

/* Its shapes as the site's policy is now. */
void job_reshape (struct cluster *c, uint32_t slot)
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

void job_spec_drop (struct cluster *c, struct job *job)
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

void job_enter_idle (struct cluster *c, uint32_t slot)
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

void job_retry_drop (struct job *job)
{
    free (job->retry.item);
    job->retry = (struct allocation){0};
    job->retry_until = TIME_US_NONE;
}

void job_claim (struct cluster *c, uint32_t slot, const struct allocation *a)
{
    struct job *job = job_at (c, slot);

    job_retry_drop (job);
    job->retry.count = a->count;
    job->retry.item = mem_copy (a->item, a->count * sizeof *a->item);
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
    job_retry_drop (job);
    job->reserved_start = TIME_US_NONE;
    job->reserved.count = 0;
}

void job_gone (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    c->complex_jobs -= job_complex (c, job);
    map_remove (&c->map, job->spec.id.v);
    job_spec_drop (c, job);
    job_retry_drop (job);
    free (job->reserved.item);
    job->reserved.item = NULL;
    job->reserved_cap = 0;
    job->gone = true;
    slot_give (c, slot);
}

void job_retry_take (struct job *job, const struct allocation *a, time_us until)
{
    struct placement *item = mem_copy (a->item, a->count * sizeof *a->item);

    job_retry_drop (job);
    job->retry = (struct allocation){a->count, item};
    job->retry_until = until;
}

static void system_flags_renew (struct cluster *c, uint32_t slot)
{
    struct priority_job *pj = &c->pj[slot];

    pj->flags =
        (pj->flags & ~(uint32_t)PRIORITY_SYSTEM) | job_system_flags (c, &job_at (c, slot)->spec);
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
