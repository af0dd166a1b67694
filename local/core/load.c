/* load: what is measured on nodes, against what was dedicated there (NODEAVAILABILITYPOLICY,
 * NODELOADPOLICY), and how much of them was used so far (PRIORITYF's USAGE).
 *
 * A measurement is of the present: it keeps jobs off a node until the next poll, not longer. */
#include "local/core/timeline_state.h"

/* --- used so far -------------------------------------------------------------------------------- */

void node_usage_advance (struct cluster *c, uint32_t node)
{
    struct node_usage *u = &c->usage[node];
    const int32_t *cap = row (c, c->cap, node), *left = row (c, c->free, node);

    if (u->since == TIME_US_NONE)
        u->since = u->at = c->now;
    u->proc_us += (double)(cap[RES_PROCS] - left[RES_PROCS]) * (double)(c->now - u->at);
    u->at = c->now;
}

double usage_percent (const struct cluster *c, uint32_t node)
{
    const struct node_usage *u = &c->usage[node];
    const int32_t *cap = row (c, c->cap, node), *left = row (c, c->free, node);
    double used, span;

    if (u->since == TIME_US_NONE || c->now <= u->since)
        return 0;
    used = u->proc_us + (double)(cap[RES_PROCS] - left[RES_PROCS]) * (double)(c->now - u->at);
    span = (double)(c->now - u->since) * cap[RES_PROCS];
    return span > 0 ? 100 * used / span : 0;
}

/* --- measured now ---------------------------------------------------------------------------------- */

/* The most that may be free of a column on the node now; INT32_MAX: nothing is known. */
static int32_t measured_free (const struct cluster *c, uint32_t node, uint32_t column)
{
    const struct policy *p = c->policy;
    int32_t cap = row (c, c->cap, node)[column], used = c->usage[node].used[column];
    int32_t most =
        c->node[node].max_load_milli ? c->node[node].max_load_milli : p->node_max_load_milli;

    if (column == RES_PROCS) {
        int32_t load = c->load_milli[node];
        int32_t busy = (load + 500) / 1000;
        used = used > busy ? used : busy;
        if (most && load >= most)
            return p->node_load_policy == NODELOAD_ADJUSTSTATE ? 0 : cap - busy;
    }
    if (p->node_availability[column] == NODEAVAIL_DEDICATED || used == 0)
        return INT32_MAX;
    return cap > used ? cap - used : 0;
}

/* Of a column that counts by use: dedicated, but not used. */
static int32_t spare_of (const struct cluster *c, uint32_t node, uint32_t column)
{
    if (column == RES_PROCS || !c->usage[node].measured ||
        c->policy->node_availability[column] != NODEAVAIL_UTILIZED)
        return 0;
    return row (c, c->cap, node)[column] - row (c, c->free, node)[column] -
           c->usage[node].used[column];
}

void loads_settle (struct cluster *c)
{
    if (!c->loads_stale)
        return;
    c->loads_stale = c->measured = false;
    for (uint32_t n = 0; c->gauged && !c->measured && n < c->node_count; n++) {
        const int32_t *left = row (c, c->free, n);
        for (uint32_t d = 0; d < RES_GRES0 && c->node_state[n] == NODE_UP; d++)
            c->measured = c->measured || spare_of (c, n, d) > 0 ||
                          (left[d] > 0 && measured_free (c, n, d) < left[d]);
    }
}

/* What is spare is free as well. */
static void spare_give (struct timeline *tl, struct lane *lane, uint32_t node, uint32_t column)
{
    const struct cluster *c = tl->c;
    int32_t cap = row (c, c->cap, node)[column];
    int32_t spare = spare_of (c, node, column);

    for (uint32_t i = 0; spare > 0 && i < lane->count; i++) {
        int32_t *have = &step_at (tl, lane, i)->free[column];
        *have = *have + spare < cap ? *have + spare : cap;
    }
}

void loads_enter (struct timeline *tl)
{
    const struct cluster *c = tl->c;
    time_us until = time_add (tl->now, c->policy->poll_interval);

    for (uint32_t n = 0; c->measured && n < c->node_count; n++) {
        struct lane *lane = &tl->lane[n];
        bool less = false;
        if (lane->count == 0)
            continue;
        for (uint32_t d = 0; d < RES_GRES0; d++) {
            int32_t most = measured_free (c, n, d);
            spare_give (tl, lane, n, d);
            if (step_at (tl, lane, 0)->free[d] <= most)
                continue;
            uint32_t stop = step_split (tl, lane, until);
            for (uint32_t i = 0; i < stop; i++) {
                int32_t *have = &step_at (tl, lane, i)->free[d];
                *have = *have < most ? *have : most;
            }
            less = true;
        }
        if (less) {
            lane->falls = true; /* it rises where no job ends */
            lane_listed (tl, n);
        }
    }
}

bool load_keeps_off (const struct cluster *c, uint32_t node, uint32_t column)
{
    return c->measured && measured_free (c, node, column) < row (c, c->free, node)[column];
}
