/* pick: node allocation policies that look at many nodes together, and how tasks are laid out. */
#include "local/core/timeline_state.h"

#include <stdlib.h>

/* --- who could take tasks ---------------------------------------------------------------------- */

/* All nodes with room over [start, end), by number; in the arena. */
static struct candidate *gather (struct timeline *tl, const struct shape *s, time_us start,
                                 time_us end, uint32_t *count)
{
    struct candidate *list = arena_alloc (tl->arena, (tl->node_count + 1) * sizeof *list);
    uint32_t n = 0;

    for (uint32_t node = next_node (tl, s, start, 0); node < tl->node_count;
         node = next_node (tl, s, start, node + 1)) {
        uint32_t fit = lane_fit (tl, s, node, start, end);
        if (fit)
            list[n++] = (struct candidate){0, node, fit};
    }
    *count = n;
    return list;
}

static int by_key (const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* --- CONTIGUOUS ---------------------------------------------------------------------------------- */

bool pick_contiguous (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                      struct pick *pick)
{
    uint32_t count, first = 0;
    struct candidate *list = gather (tl, s, start, end, &count);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (i > first && list[i].node != list[i - 1].node + 1) {
            first = i;
            sum = 0;
        }
        sum += list[i].fit;
        if (sum < pick->left)
            continue;
        for (uint32_t k = first; k <= i; k++)
            pick_node (pick, list[k].node, list[k].fit);
        return true;
    }
    return false;
}

/* --- MAXBALANCE ---------------------------------------------------------------------------------- */

/* The nodes whose speeds differ least; of equals the fastest. */
void pick_balanced (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                    struct pick *pick)
{
    uint32_t count, low = 0, best_low = 0, best_high = 0;
    struct candidate *list = gather (tl, s, start, end, &count);
    int64_t best = INT64_MAX;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count; i++) /* fastest first, then by number */
        list[i].key = -(int64_t)tl->c->node[list[i].node].speed_ppm;
    qsort (list, count, sizeof *list, by_key);
    for (uint32_t high = 0; high < count; high++) {
        sum += list[high].fit;
        while (sum - list[low].fit >= pick->left)
            sum -= list[low++].fit;
        if (sum >= pick->left && list[high].key - list[low].key < best) {
            best = list[high].key - list[low].key;
            best_low = low;
            best_high = high;
        }
    }
    if (best == INT64_MAX && count) /* too few: all of them, others follow */
        best_high = count - 1;
    for (uint32_t i = best_low; count && i <= best_high; i++)
        pick_node (pick, list[i].node, list[i].fit);
}

/* --- LOCAL ---------------------------------------------------------------------------------------- */

/* Few leaf switches: while no single one has room for what is left, the one with the most; then, of
 * those that do, the one with the least. Nodes below no switch are a last one. */
void pick_local (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                 struct pick *pick)
{
    const struct group_table *t = &tl->c->groups;
    uint32_t count, none = t->switch_count;
    struct candidate *list = gather (tl, s, start, end, &count);
    uint64_t *room = arena_array (tl->arena, none + 1, sizeof *room);
    bool *used = arena_array (tl->arena, none + 1, sizeof *used);

    for (uint32_t i = 0; i < count; i++) { /* key: the leaf */
        list[i].key = none;
        for (uint32_t k = 0; k < none && list[i].key == none; k++) {
            if (t->switches[k].level == 0 && list[i].node < t->switches[k].nodes.bit_count &&
                bitset_test (&t->switches[k].nodes, list[i].node))
                list[i].key = k;
        }
        room[list[i].key] += list[i].fit;
    }
    while (pick->left > 0) {
        uint32_t best = UINT32_MAX;
        for (uint32_t k = 0; k <= none; k++) {
            bool enough = room[k] >= pick->left;
            if (used[k] || room[k] == 0)
                continue;
            if (best == UINT32_MAX || (enough && room[best] < pick->left) ||
                (enough ? room[k] < room[best] : room[best] < pick->left && room[k] > room[best]))
                best = k;
        }
        if (best == UINT32_MAX)
            return;
        used[best] = true;
        for (uint32_t i = 0; i < count && pick->left > 0; i++) {
            if (list[i].key == best)
                pick_node (pick, list[i].node, list[i].fit);
        }
    }
}

/* --- TASKDISTRIBUTIONPOLICY ---------------------------------------------------------------------- */

static int by_fit (const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->fit != y->fit)
        return x->fit > y->fit ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* all: every node with all that it could take, in the order of the policy. */
void pick_laid_out (struct timeline *tl, const struct pick *all, enum task_distribution how,
                    struct pick *pick)
{
    struct candidate *list = arena_alloc (tl->arena, (all->count + 1) * sizeof *list);
    uint32_t *given = arena_array (tl->arena, all->count + 1, sizeof *given);
    uint32_t left = pick->left, n = all->count;

    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct candidate){i, all->item[i].node.v, all->item[i].tasks};
    if (how == TASKDIST_PACK)
        qsort (list, n, sizeof *list, by_fit);
    for (uint32_t round = how == TASKDIST_ROUNDROBIN ? 1 : UINT32_MAX, before = UINT32_MAX;
         left > 0 && before != left; round += round != UINT32_MAX) {
        before = left;
        for (uint32_t i = 0; i < n && left > 0; i++) {
            uint32_t most = list[i].fit < round ? list[i].fit : round;
            uint32_t more = most > given[i] ? most - given[i] : 0;
            more = more < left ? more : left;
            given[i] += more;
            left -= more;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        pick_node (pick, list[i].node, given[i]);
}

/* --- PRIORITYF ------------------------------------------------------------------------------------ */

static double term_value (const struct timeline *tl, const struct shape *s, uint32_t node,
                          enum node_term term, time_us start, time_us end)
{
    const struct cluster *c = tl->c;
    const int32_t *cap = row (c, c->cap, node), *left = row (c, c->free, node);

    switch (term) {
    case TERM_CPROCS:
    case TERM_CMEM:
    case TERM_CSWAP:
    case TERM_CDISK:
        return cap[RES_PROCS + (int)(term - TERM_CPROCS)];
    case TERM_APROCS:
    case TERM_AMEM:
    case TERM_ASWAP:
    case TERM_ADISK:
        return left[RES_PROCS + (int)(term - TERM_APROCS)];
    case TERM_JOBCOUNT:
        return c->node_jobs[node];
    case TERM_LOAD:
        return c->load_milli[node] / 1000.0;
    case TERM_PREF:
        for (uint32_t w = 0; w < FEATURES_MAX / 64; w++) {
            if (s->req.prefer.word[w] & ~c->node[node].features.word[w])
                return 0;
        }
        return s->prefers ? 1 : 0;
    case TERM_PRIORITY:
        return c->node[node].priority;
    case TERM_RESAFFINITY:
        if (tl->views == NULL)
            return 0;
        switch (view_affinity (tl, s->access, node, start, end)) {
        case AFFINITY_POSITIVE:
            return 1;
        case AFFINITY_NEGATIVE:
        case AFFINITY_PREEMPTIBLE:
            return -1;
        default:
            return 0;
        }
    case TERM_SPEED:
        return c->node[node].speed_ppm / 1e6;
    case TERM_USAGE:
        return usage_percent (c, node);
    case TERM_ONE:
        return 1;
    case NODE_TERMS:
        break;
    }
    return 0;
}

double node_worth (const struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                   time_us end)
{
    const struct cluster *c = tl->c;
    uint32_t fn = c->node[node].priority_fn;
    double sum = 0;

    if (fn == 0)
        return c->node[node].priority;
    for (int t = 0; t < NODE_TERMS; t++) {
        double weight = c->priority_fn[fn - 1].weight[t];
        if (weight == 0 || (node_term_dynamic ((enum node_term)t) && start > tl->now))
            continue;
        sum += weight * term_value (tl, s, node, (enum node_term)t, start, end);
    }
    return sum;
}
