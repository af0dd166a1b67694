/* Who waits, who runs, who is suspended, and what is dedicated to them on the nodes. Called by events and by passes; no
 * policy is asked here. */
#include "local/core/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the idle list ------------------------------------------------------------------------ */

static bool idle_before (const struct cluster *c, uint32_t slot, time_us submit, uint64_t id)
{
    const struct job *job = job_at (c, slot);

    if (job->spec.submit != submit)
        return job->spec.submit < submit;
    return job->spec.id.v < id;
}

/* Position of (submit, id) in the idle list: where it is or would be. */
static uint32_t idle_position (const struct cluster *c, time_us submit, uint64_t id)
{
    uint32_t low = 0, high = c->idle_count;

    if (high == 0 || idle_before (c, c->idle[high - 1], submit, id))
        return high; /* the usual arrival */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (idle_before (c, c->idle[mid], submit, id))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void idle_insert (struct cluster *c, uint32_t slot)
{
    const struct job *job = job_at (c, slot);
    uint32_t at = idle_position (c, job->spec.submit, job->spec.id.v);

    c->idle = mem_grow (c->idle, &c->idle_cap, c->idle_count + 1, sizeof *c->idle);
    memmove (c->idle + at + 1, c->idle + at, (c->idle_count - at) * sizeof *c->idle);
    c->idle[at] = slot;
    c->idle_count++;
}

void idle_remove (struct cluster *c, uint32_t slot)
{
    const struct job *job = job_at (c, slot);
    uint32_t at = idle_position (c, job->spec.submit, job->spec.id.v);

    assert (at < c->idle_count && c->idle[at] == slot);
    c->idle_count--;
    memmove (c->idle + at, c->idle + at + 1, (c->idle_count - at) * sizeof *c->idle);
}

/* --- the running list --------------------------------------------------------------------- */

static uint32_t run_position (const struct cluster *c, time_us end, uint64_t id)
{
    uint32_t low = 0, high = c->run_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct running *r = &c->run[mid];
        if (r->end < end || (r->end == end && r->id < id))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void run_insert (struct cluster *c, uint32_t slot)
{
    const struct job *job = job_at (c, slot);
    uint32_t at = run_position (c, job->limit_end, job->spec.id.v);

    c->run = mem_grow (c->run, &c->run_cap, c->run_count + 1, sizeof *c->run);
    memmove (c->run + at + 1, c->run + at, (c->run_count - at) * sizeof *c->run);
    c->run[at] = (struct running){job->limit_end, job->spec.id.v, slot, job->procs};
    c->run_count++;
    c->run_serial++;
    c->lasting += endless (job->limit_end);
}

void run_remove (struct cluster *c, uint32_t slot)
{
    const struct job *job = job_at (c, slot);
    uint32_t at = run_position (c, job->limit_end, job->spec.id.v);

    assert (at < c->run_count && c->run[at].slot == slot);
    c->run_count--;
    c->run_serial++;
    c->lasting += endless (job->limit_end);
    memmove (c->run + at, c->run + at + 1, (c->run_count - at) * sizeof *c->run);
}

/* --- running: what is dedicated ----------------------------------------------------------- */

static void open_update (struct cluster *c, uint32_t node, int32_t procs_before)
{
    int32_t procs = row (c, c->free, node)[RES_PROCS];

    if (c->node_state[node] != NODE_UP)
        return;
    c->up_free += (procs > 0 ? procs : 0) - (procs_before > 0 ? procs_before : 0);
    if (procs > 0)
        bitset_set (&c->open, node);
    else
        bitset_clear (&c->open, node);
}

bool earlier_req_there (const struct allocation *a, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (a->item[j].node.v == a->item[i].node.v)
            return true;
    }
    return false;
}

/* One processor per task and nothing else, on nodes of one processor: the usual case of a replay, so
 * in one tight loop. */
static void nodes_apply_units (struct cluster *c, const struct allocation *a, int sign)
{
    const struct placement *item = a->item;
    uint32_t *node_jobs = c->node_jobs;
    uint64_t *open = c->open.word;
    int32_t *procs = c->free + RES_PROCS;
    size_t dims = c->dims;

    for (uint32_t i = 0, count = a->count; i < count; i++) {
        uint32_t node = item[i].node.v;
        procs[node * dims] += sign;
        node_jobs[node] -= (uint32_t)sign;
        open[node >> 6] ^= UINT64_C (1) << (node & 63);
    }
    c->up_free += sign * (int64_t)a->count;
}

/* first: no other req of the job is there. */
static void node_apply (struct cluster *c, const struct shape *shape, uint32_t node, uint32_t tasks,
                        bool first, int sign)
{
    int32_t *free_row = row (c, c->free, node);
    const int32_t *cap_row = row (c, c->cap, node);

    if (shape->req.exclusive) { /* nobody else is there: all of it, as it is now */
        for (uint32_t d = 0; d < c->dims; d++)
            free_row[d] = sign > 0 ? cap_row[d] : 0;
        return;
    }
    for (uint32_t d = 0; d < shape->dim_count; d++) {
        uint8_t column = shape->dim[d];
        free_row[column] += sign * (int32_t)tasks * shape->req.task.v[column];
    }
    if (c->job_column && first)
        free_row[c->job_column] += sign;
}

void nodes_apply (struct cluster *c, const struct job *job, const struct allocation *a, int sign)
{
    c->loads_stale = true;
    if (job->spec.licence_count)
        licences_apply (c, job, sign);
    for (uint32_t i = 0; c->usage_terms && i < a->count; i++)
        node_usage_advance (c, a->item[i].node.v);
    if (c->units_exact && job->spec.req_count == 1 && c->shape[job->shape[0]].simple) {
        nodes_apply_units (c, a, sign);
        return;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t node = a->item[i].node.v;
        int32_t before = row (c, c->free, node)[RES_PROCS];
        bool first = a->item[i].req == 0 || !earlier_req_there (a, i);
        node_apply (c, &c->shape[job->shape[a->item[i].req]], node, a->item[i].tasks, first, sign);
        if (first)
            c->node_jobs[node] -= (uint32_t)sign;
        open_update (c, node, before);
    }
}

/* Nodes that are not up count as in the way of plain counting while anything runs on them. */
static void busy_not_up_update (struct cluster *c)
{
    c->busy_not_up = 0;
    for (uint32_t n = 0; n < c->node_count; n++)
        c->busy_not_up += c->node_state[n] != NODE_UP && c->node_jobs[n] > 0;
}

static int64_t seconds (time_us t)
{
    return t / US_PER_S;
}

/* So many more, or fewer, of the job's array run. */
static void array_count (struct cluster *c, const struct job *job, int change)
{
    uint32_t running;

    if (job->spec.array == 0)
        return;
    running = map_find (&c->array_running, job->spec.array);
    if (running != SLOT_NONE)
        map_remove (&c->array_running, job->spec.array);
    running = (running == SLOT_NONE ? 0 : running) + (uint32_t)change;
    if (running > 0)
        map_put (&c->array_running, job->spec.array, running);
}

void job_enter_running (struct cluster *c, uint32_t slot, struct allocation allocation,
                        time_us start)
{
    struct job *job = job_at (c, slot);

    if (job->state == JOB_IDLE && !job->pending)
        idle_remove (c, slot);
    job->allocation = allocation;
    job->start = start;
    job->limit_end = time_add (start, length_on (c, job, &allocation));
    nodes_apply (c, job, &allocation, -1);
    run_insert (c, slot);
    array_count (c, job, 1);
    if (c->hot[slot].limited & LIMITED_ACTIVE)
        limits_active_add (c->limits, &c->lj[slot], seconds (job->limit_end));
    usage_open (c, slot);
}

void job_leave_running (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    run_remove (c, slot);
    array_count (c, job, -1);
    nodes_apply (c, job, &job->allocation, 1);
    if (c->hot[slot].limited & LIMITED_ACTIVE)
        limits_active_remove (c->limits, &c->lj[slot], seconds (job->limit_end));
    usage_close (c, slot);
    free (job->allocation.item);
    job->allocation = (struct allocation){0};
    if (c->busy_not_up)
        busy_not_up_update (c);
}

/* --- the suspended list ------------------------------------------------------------------- */

static void suspended_remove (struct cluster *c, uint32_t slot)
{
    uint32_t at = 0;

    while (c->suspended[at] != slot)
        at++;
    c->suspended_count--;
    memmove (c->suspended + at, c->suspended + at + 1,
             (c->suspended_count - at) * sizeof *c->suspended);
}

void suspended_forget (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    suspended_remove (c, slot);
    free (job->allocation.item);
    job->allocation = (struct allocation){0};
}

static const duration_us suspended_least = 10 * US_PER_S;

time_us suspended_wakeup (const struct cluster *c, uint32_t i)
{
    const struct job *job = job_at (c, c->suspended[i]);
    return job->spec.holds ? TIME_US_MAX : time_add (job->suspended_at, suspended_least);
}

/* The start was refused, or the plan given up. */
void suspended_again (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);
    struct allocation kept = {job->allocation.count, NULL};

    kept.item = mem_copy (job->allocation.item, kept.count * sizeof *kept.item);
    job_leave_running (c, slot);
    job->allocation = kept;
    job->resuming = job->pending = false;
}

void suspended_over (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    suspended_remove (c, slot);
    job->resuming = job->pending = false;
    job->state = JOB_RUNNING;
}
