/* Events of nodes, and all that is a sum over them, made anew before anything is asked (nodes_settle). */
#include <stdlib.h>
#include <string.h>

#include "local/core/state.h"

static int node_spec_check (const struct cluster *c, const struct node_spec *spec, struct err *err)
{
    if (spec->configured.v[RES_PROCS] < 1)
        return err_set (err, ERR_INVALID, "node: %d processors configured, at least 1",
                        spec->configured.v[RES_PROCS]);
    for (uint32_t d = 0; d < RES_MAX; d++) {
        if (spec->configured.v[d] < 0 || (d >= c->dims && spec->configured.v[d] != 0))
            return err_set (err, ERR_INVALID, "node: %d of resource %u, which is %s",
                            spec->configured.v[d], d, d >= c->dims ? "not in use" : "negative");
    }
    if (spec->partition == PARTITION_ANY || spec->partition > PARTITIONS_MAX)
        return err_set (err, ERR_INVALID, "node: partition %u, must be 1 to %d", spec->partition,
                        PARTITIONS_MAX);
    if (spec->priority_fn > c->priority_fn_count)
        return err_set (err, ERR_INVALID, "node: priority function %u of %u", spec->priority_fn,
                        c->priority_fn_count);
    if (spec->speed_ppm <= 0)
        return err_set (err, ERR_INVALID, "node: speed %d millionths, must be positive",
                        spec->speed_ppm);
    return 0;
}

static int node_check (const struct cluster *c, struct node_id node, struct err *err)
{
    if (node.v >= c->node_count)
        return err_set (err, ERR_NOT_FOUND, "node %u: there are %u", node.v, c->node_count);
    return 0;
}

static void nodes_grow (struct cluster *c)
{
    uint32_t cap = c->node_cap ? c->node_cap * 2 : 64;

    c->node = mem_resize (c->node, cap * sizeof *c->node);
    c->node_state = mem_resize (c->node_state, cap);
    c->load_milli = mem_resize (c->load_milli, cap * sizeof *c->load_milli);
    c->usage = mem_resize (c->usage, cap * sizeof *c->usage);
    c->cap = mem_resize (c->cap, (size_t)cap * c->dims * sizeof *c->cap);
    c->free = mem_resize (c->free, (size_t)cap * c->dims * sizeof *c->free);
    c->node_jobs = mem_resize (c->node_jobs, cap * sizeof *c->node_jobs);
    c->open.word = mem_resize (c->open.word, bitset_words (cap) * sizeof *c->open.word);
    memset (c->open.word + bitset_words (c->node_cap), 0,
            (bitset_words (cap) - bitset_words (c->node_cap)) * sizeof *c->open.word);
    c->open.bit_count = cap;
    c->node_cap = cap;
}

static void partitions_changed (struct cluster *c)
{
    uint64_t mask = 0;

    for (uint32_t n = 0; n < c->node_count; n++)
        mask |= partition_bit (c->node[n].partition);
    c->needs_stale = c->needs_stale || mask != c->partition_mask;
    c->partition_mask = mask;
}

/* Everything that is a sum over nodes, anew. */
static void nodes_changed (struct cluster *c)
{
    if (c->access)
        c->access->fences_dirty = true;
    c->node_serial++;
    c->lasting++;
    c->version++;
    c->up_procs = c->up_free = 0;
    c->busy_not_up = 0;
    c->awaited = false;
    c->unit_nodes = true;
    c->units_exact = true;
    c->totals = (struct priority_totals){0};
    partitions_changed (c);
    speeds_settle (c);
    needs_sharing (c);
    free (c->rank);
    c->rank = NULL;
    for (uint32_t n = 0; n < c->node_count; n++) {
        const int32_t *cap = row (c, c->cap, n), *left = row (c, c->free, n);
        if (c->node_state[n] != NODE_DOWN) {
            c->totals.procs += cap[RES_PROCS];
            c->totals.mem_mb += cap[RES_MEM_MB];
            c->totals.swap_mb += cap[RES_SWAP_MB];
            c->totals.disk_mb += cap[RES_DISK_MB];
        }
        bitset_clear (&c->open, n);
        if (c->node_state[n] != NODE_UP) {
            c->units_exact = false;
            c->busy_not_up += c->node_jobs[n] > 0;
            c->awaited = c->awaited || node_plannable (c, n);
            continue;
        }
        c->up_procs += cap[RES_PROCS];
        if (left[RES_PROCS] > 0) {
            c->up_free += left[RES_PROCS];
            bitset_set (&c->open, n);
        }
        c->unit_nodes = c->unit_nodes && cap[RES_PROCS] == 1;
        c->units_exact = c->units_exact && c->unit_nodes && left[RES_PROCS] >= 0;
    }
    jobs_totals_changed (c);
}

int cluster_node_add (struct cluster *c, const struct node_spec *spec, time_us now,
                      struct node_id *out, struct err *err)
{
    uint32_t n = c->node_count;

    if (n >= NODES_MAX)
        return err_set (err, ERR_LIMIT, "node: there are %u, at most %d", n, NODES_MAX);
    if (node_spec_check (c, spec, err) != 0)
        return err->code;
    event_begin (c, now);
    if (n == c->node_cap)
        nodes_grow (c);
    c->node_count++;
    c->node[n] = *spec;
    c->node_state[n] = NODE_UP;
    c->load_milli[n] = 0;
    c->usage[n] = (struct node_usage){.since = TIME_US_NONE, .at = TIME_US_NONE};
    c->node_jobs[n] = 0;
    c->units_exact = false;
    memcpy (row (c, c->cap, n), spec->configured.v, c->dims * sizeof *c->cap);
    memcpy (row (c, c->free, n), spec->configured.v, c->dims * sizeof *c->free);
    c->nodes_dirty = true;
    c->version++;
    event_frees (c);
    if (out)
        *out = (struct node_id){n};
    return 0;
}

void nodes_settle (struct cluster *c)
{
    if (c->nodes_dirty) {
        c->nodes_dirty = false;
        nodes_changed (c);
        if (c->needs_stale)
            jobs_needs_changed (c);
        c->needs_stale = false;
    }
}

void cluster_settle (struct cluster *c)
{
    nodes_settle (c);
    access_settle (c);
    loads_settle (c);
}

int cluster_node_update (struct cluster *c, struct node_id node, const struct node_spec *spec,
                         time_us now, struct err *err)
{
    int32_t *cap = row (c, c->cap, node.v), *left = row (c, c->free, node.v);

    if (node_check (c, node, err) != 0 || node_spec_check (c, spec, err) != 0)
        return err->code;
    event_begin (c, now);
    if (memcmp (&c->node[node.v], spec, sizeof *spec) == 0)
        return 0;
    for (uint32_t d = 0; d < c->dims; d++) {
        left[d] += spec->configured.v[d] - cap[d];
        cap[d] = spec->configured.v[d];
    }
    c->node[node.v] = *spec;
    c->nodes_dirty = true;
    c->units_exact = false;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_node_state_set (struct cluster *c, struct node_id node, enum node_state state,
                            time_us now, struct err *err)
{
    if (node_check (c, node, err) != 0)
        return err->code;
    event_begin (c, now);
    if (c->node_state[node.v] == state)
        return 0;
    c->node_state[node.v] = (uint8_t)state;
    c->nodes_dirty = true;
    c->units_exact = false; /* until they are settled */
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_node_load_set (struct cluster *c, struct node_id node, int32_t load_milli, time_us now,
                           struct err *err)
{
    if (node_check (c, node, err) != 0)
        return err->code;
    if (load_milli < 0)
        return err_set (err, ERR_INVALID, "node %u: load %d thousandths is negative", node.v,
                        load_milli);
    event_begin (c, now);
    if (c->load_milli[node.v] != load_milli)
        event_frees (c);
    c->load_milli[node.v] = load_milli;
    c->gauged = c->gauged || load_milli > 0;
    return 0;
}

uint32_t cluster_node_count (const struct cluster *c)
{
    return c->node_count;
}

int cluster_node_get (const struct cluster *c, struct node_id node, struct node_view *out,
                      struct err *err)
{
    if (node_check (c, node, err) != 0)
        return err->code;
    memset (out, 0, sizeof *out);
    out->spec = c->node[node.v];
    out->state = (enum node_state)c->node_state[node.v];
    for (uint32_t d = 0; d < c->dims; d++)
        out->dedicated.v[d] = row (c, c->cap, node.v)[d] - row (c, c->free, node.v)[d];
    out->load_milli = c->load_milli[node.v];
    out->measured = c->usage[node.v].measured;
    memset (&out->used, 0, sizeof out->used);
    memcpy (out->used.v, c->usage[node.v].used, sizeof c->usage[node.v].used);
    out->job_count = c->node_jobs[node.v];
    return 0;
}

void cluster_totals (const struct cluster *c, struct resources *configured,
                     struct resources *dedicated)
{
    int64_t cap[RES_MAX] = {0}, used[RES_MAX] = {0};

    for (uint32_t n = 0; n < c->node_count; n++) {
        for (uint32_t d = 0; d < c->dims; d++) {
            int32_t have = row (c, c->cap, n)[d];
            if (c->node_state[n] != NODE_DOWN)
                cap[d] += have;
            used[d] += have - row (c, c->free, n)[d];
        }
    }
    for (uint32_t d = 0; d < RES_MAX; d++) {
        configured->v[d] = cap[d] > INT32_MAX ? INT32_MAX : (int32_t)cap[d];
        dedicated->v[d] = used[d] > INT32_MAX ? INT32_MAX : (int32_t)used[d];
    }
}

int cluster_node_used_set (struct cluster *c, struct node_id node, const struct resources *used,
                           time_us now, struct err *err)
{
    if (node.v >= c->node_count)
        return err_set (err, ERR_NOT_FOUND, "node %u: there are %u", node.v, c->node_count);
    for (uint32_t d = 0; d < RES_GRES0; d++) {
        if (used->v[d] < 0)
            return err_set (err, ERR_INVALID, "node %u: %d of resource %u in use", node.v,
                            used->v[d], d);
    }
    event_begin (c, now);
    if (c->usage[node.v].measured &&
        memcmp (c->usage[node.v].used, used->v, sizeof c->usage[node.v].used) == 0)
        return 0;
    memcpy (c->usage[node.v].used, used->v, sizeof c->usage[node.v].used);
    c->usage[node.v].measured = true;
    c->gauged = true;
    event_frees (c);
    return 0;
}
