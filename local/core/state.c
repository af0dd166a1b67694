#include "local/core/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t grown_cap (uint32_t cap, uint32_t need)
{
    uint32_t wanted = cap ? cap : 16;

    while (wanted < need)
        wanted *= 2;
    return wanted;
}

void *grow (void *old, uint32_t *cap, uint32_t need, size_t size)
{
    if (need <= *cap)
        return old;
    *cap = grown_cap (*cap, need);
    void *grown = realloc (old, (size_t)*cap * size);
    assert (grown && "out of memory");
    return grown;
}

void *grow_lines (void *old, uint32_t *cap, uint32_t need, size_t size)
{
    if (need <= *cap)
        return old;
    size_t used = (size_t)*cap * size;
    *cap = grown_cap (*cap, need);
    size_t lines = ((size_t)*cap * size + CACHE_LINE - 1) / CACHE_LINE;
    void *grown = aligned_alloc (CACHE_LINE, lines * CACHE_LINE);
    assert (grown && "out of memory");
    if (used)
        memcpy (grown, old, used);
    free (old);
    return grown;
}

/* --- job numbers to slots ----------------------------------------------------------------- */

#define MAP_GONE UINT64_MAX

static uint32_t map_home (const struct id_map *map, uint64_t key)
{
    return (uint32_t)(key * UINT64_C (0x9E3779B97F4A7C15) >> 32) & (map->capacity - 1);
}

uint32_t map_find (const struct id_map *map, uint64_t key)
{
    if (map->capacity == 0)
        return SLOT_NONE;
    for (uint32_t i = map_home (map, key);; i = (i + 1) & (map->capacity - 1)) {
        if (map->key[i] == key)
            return map->slot[i];
        if (map->key[i] == 0)
            return SLOT_NONE;
    }
}

static void map_place (struct id_map *map, uint64_t key, uint32_t slot)
{
    uint32_t i = map_home (map, key);

    while (map->key[i] != 0 && map->key[i] != MAP_GONE)
        i = (i + 1) & (map->capacity - 1);
    map->used += map->key[i] == 0;
    map->key[i] = key;
    map->slot[i] = slot;
}

static void map_rebuild (struct id_map *map)
{
    struct id_map old = *map;
    uint32_t capacity = 64;

    while (capacity < old.count * 4)
        capacity *= 2;
    map->capacity = capacity;
    map->key = calloc (capacity, sizeof *map->key);
    map->slot = malloc (capacity * sizeof *map->slot);
    assert (map->key && map->slot && "out of memory");
    map->used = 0;
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.key[i] != 0 && old.key[i] != MAP_GONE)
            map_place (map, old.key[i], old.slot[i]);
    }
    free (old.key);
    free (old.slot);
}

void map_put (struct id_map *map, uint64_t key, uint32_t slot)
{
    if (map->used * 4 >= map->capacity * 3)
        map_rebuild (map);
    map_place (map, key, slot);
    map->count++;
}

void map_remove (struct id_map *map, uint64_t key)
{
    uint32_t mask = map->capacity - 1;
    uint32_t i = map_home (map, key);

    while (map->key[i] != key)
        i = (i + 1) & mask;
    if (map->key[(i + 1) & mask] == 0) {
        map->key[i] = 0; /* the end of its chain: really empty again */
        map->used--;
    } else {
        map->key[i] = MAP_GONE;
    }
    map->count--;
}

/* --- the idle list ------------------------------------------------------------------------ */

static bool idle_before (const struct cluster *c, uint32_t slot, time_us submit, uint64_t id)
{
    const struct job *job = job_at (c, slot);

    if (job->spec.submit != submit)
        return job->spec.submit < submit;
    return job->spec.id.v < id;
}

uint32_t idle_position (const struct cluster *c, time_us submit, uint64_t id)
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

    c->idle = grow (c->idle, &c->idle_cap, c->idle_count + 1, sizeof *c->idle);
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

    c->run = grow (c->run, &c->run_cap, c->run_count + 1, sizeof *c->run);
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

/* --- events ------------------------------------------------------------------------------- */

void event_begin (struct cluster *c, time_us now)
{
    planner_settle (c);
    c->settled++;
    if (now > c->now)
        c->now = now;
}

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
static void node_apply (struct cluster *c, const struct shape *shape, uint32_t node,
                        uint32_t tasks, bool first, int sign)
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
        node_apply (c, &c->shape[job->shape[a->item[i].req]], node, a->item[i].tasks, first,
                    sign);
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
