/* choose: which nodes a job gets (NODEALLOCATIONPOLICY). */
#include "local/core/timeline_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int candidate_compare (const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* --- static orders ------------------------------------------------------------------------ */

struct ranked {
    int64_t key[4];
    uint32_t node;
};

static int ranked_compare (const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    for (uint32_t i = 0; i < 4; i++) {
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

/* PRIORITYF where it looks at configuration only. */
static double static_worth (const struct cluster *c, uint32_t node)
{
    struct timeline none = {.c = (struct cluster *)(uintptr_t)c, .now = TIME_US_NONE};

    return c->worth_moves ? 0 : node_worth (&none, NULL, node, 0, 0);
}

static struct ranked ranked_make (const struct cluster *c, uint32_t node)
{
    struct ranked r = {{0}, node};

    switch (c->policy->node_allocation) {
    case NODEALLOC_MINRESOURCE: /* the least equipped first */
        for (uint32_t d = 0; d < RES_GRES0; d++)
            r.key[d] = row (c, c->cap, node)[d];
        break;
    case NODEALLOC_PRIORITY:
        r.key[0] = -(int64_t)(static_worth (c, node) * 1000);
        break;
    case NODEALLOC_FASTEST:
        r.key[0] = -(int64_t)c->node[node].speed_ppm;
        break;
    default:
        break;
    }
    return r;
}

const uint32_t *rank_order (struct cluster *c)
{
    enum node_allocation policy = c->policy->node_allocation;
    struct ranked *ranked;

    if (c->rank || (policy != NODEALLOC_MINRESOURCE && policy != NODEALLOC_PRIORITY &&
                    policy != NODEALLOC_FASTEST))
        return c->rank;
    ranked = mem_alloc ((c->node_count + 1) * sizeof *ranked);
    c->rank = mem_alloc ((c->node_count + 1) * sizeof *c->rank);
    for (uint32_t n = 0; n < c->node_count; n++)
        ranked[n] = ranked_make (c, n);
    qsort (ranked, c->node_count, sizeof *ranked, ranked_compare);
    for (uint32_t n = 0; n < c->node_count; n++)
        c->rank[n] = ranked[n].node;
    free (ranked);
    return c->rank;
}

/* --- one req ------------------------------------------------------------------------------ */

/* By node number or by a static order. */
static void pick_in_order (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                           const uint32_t *order, struct pick *pick)
{
    if (order == NULL) {
        for (uint32_t n = next_node (tl, s, start, 0); n < tl->node_count && pick->left > 0;
             n = next_node (tl, s, start, n + 1))
            pick_node (pick, n, lane_fit (tl, s, n, start, end));
        return;
    }
    for (uint32_t i = 0; i < tl->node_count && pick->left > 0; i++) {
        if (node_allowed (tl, s, order[i]))
            pick_node (pick, order[i], lane_fit (tl, s, order[i], start, end));
    }
}

/* lane_fit and free_until in one go. */
static uint32_t fit_and_until (const struct timeline *tl, const struct shape *s, uint32_t node,
                               time_us start, time_us end, int64_t *until)
{
    const struct lane *lane = &tl->lane[node];
    uint32_t i, fit;

    *until = TIME_US_MAX;
    if (lane->count == 0)
        return 0;
    i = step_find (tl, lane, start);
    fit = step_fit (tl, s, node, step_at (tl, lane, i));
    if (!lane->falls)
        return fit;
    for (i++; fit > 0 && i < lane->count; i++) {
        const struct step *step = step_at (tl, lane, i);
        uint32_t next = step_fit (tl, s, node, step);
        if (next >= fit)
            continue;
        if (step->t >= end) {
            *until = step->t;
            break;
        }
        fit = next;
    }
    return fit;
}

/* Since when the node has been able to run so many tasks. */
static time_us free_since (const struct timeline *tl, const struct shape *s, uint32_t node,
                           time_us start, uint32_t fit)
{
    const struct lane *lane = &tl->lane[node];
    uint32_t i = step_find (tl, lane, start);

    while (i > 0 && step_fit (tl, s, node, step_at (tl, lane, i - 1)) >= fit)
        i--;
    return step_at (tl, lane, i)->t;
}

static int64_t cpu_left (const struct cluster *c, uint32_t node)
{
    int64_t procs = row (c, c->cap, node)[RES_PROCS];
    int64_t dedicated = procs - row (c, c->free, node)[RES_PROCS];
    int64_t load = c->load_milli[node];

    return procs * 1000 - (dedicated * 1000 > load ? dedicated * 1000 : load);
}

/* Those of the key INT64_MAX, by number: of list[node_count - 1 … high] what fits is known; lazy:
 * lanes that do not fall are not in the list. */
static void pick_worst (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                        const struct candidate *list, uint32_t high, bool lazy, struct pick *pick)
{
    uint32_t i = tl->node_count;

    for (uint32_t n = lazy ? next_node (tl, s, start, 0) : tl->node_count;
         n < tl->node_count && pick->left > 0; n = next_node (tl, s, start, n + 1)) {
        if (!tl->lane[n].falls)
            pick_node (pick, n, lane_fit (tl, s, n, start, end));
        else if (i > high && list[i - 1].node == n)
            pick_node (pick, n, list[--i].fit);
    }
    for (; !lazy && i > high && pick->left > 0; i--)
        pick_node (pick, list[i - 1].node, list[i - 1].fit);
}

/* The one at `at` of a heap goes down to where it belongs. */
static void heap_sink (struct candidate *heap, uint32_t count, uint32_t at)
{
    struct candidate one = heap[at];

    for (uint32_t child = at * 2 + 1; child < count; child = at * 2 + 1) {
        if (child + 1 < count && candidate_compare (&heap[child + 1], &heap[child]) < 0)
            child++;
        if (candidate_compare (&one, &heap[child]) <= 0)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = one;
}

/* In order of the key as far as need be: most jobs take few of the nodes that would do. */
static void pick_best (struct timeline *tl, struct candidate *list, uint32_t count,
                       struct pick *pick)
{
    for (uint32_t i = count / 2; i-- > 0;)
        heap_sink (list, count, i);
    while (count > 0 && pick->left > 0) {
        tl->trail.worst_key = list[0].key;
        pick_node (pick, list[0].node, list[0].fit);
        list[0] = list[--count];
        heap_sink (list, count, 0);
    }
}

/* The next node from n on that falls and could have room at start. */
static uint32_t next_falling (const struct timeline *tl, const struct shape *s, time_us start,
                              uint32_t n)
{
    return next_of (tl, s, tl->falls,
                    start <= tl->now        ? tl->c->open.word
                    : start == tl->reach_at ? tl->reach
                                            : NULL,
                    n);
}

enum { AHEAD = 8 };

/* By a key that depends on the moment. Nodes with the same, worst key INT64_MAX are not sorted. */
static void pick_by_key (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                         enum choice choice, struct pick *pick)
{
    struct candidate *list;
    uint32_t low = 0, high = tl->node_count; /* with a key from below, without from above */
    /* A lane that does not fall stays free: the worst key, and perhaps it need not be looked at. */
    bool lazy =
        choice == CHOICE_SOON_ENDING ||
        (choice == CHOICE_POLICY && tl->c->policy->node_allocation == NODEALLOC_LASTAVAILABLE);

    if (tl->candidate == NULL)
        tl->candidate = arena_alloc (tl->arena, (tl->node_count + 1) * sizeof *list);
    list = tl->candidate;

    for (uint32_t n = lazy ? next_falling (tl, s, start, 0) : next_node (tl, s, start, 0);
         n < tl->node_count;
         n = lazy ? next_falling (tl, s, start, n + 1) : next_node (tl, s, start, n + 1)) {
        struct candidate one = {INT64_MAX, n, 0};
        __builtin_prefetch (tl->lane[n + AHEAD < tl->node_count ? n + AHEAD : n].step);
        one.fit = fit_and_until (tl, s, n, start, end, &one.key);
        if (one.fit == 0)
            continue;
        if (choice == CHOICE_BUSY)
            one.key = -free_since (tl, s, n, start, one.fit);
        else if (choice == CHOICE_POLICY && tl->c->policy->node_allocation == NODEALLOC_CPULOAD)
            one.key = -cpu_left (tl->c, n);
        else if (choice == CHOICE_POLICY && tl->c->policy->node_allocation == NODEALLOC_PRIORITY)
            one.key = -(int64_t)(node_worth (tl, s, n, start, end) * 1000);
        list[one.key == INT64_MAX ? --high : low++] = one;
    }
    tl->trail.worst_key = INT64_MAX;
    pick_best (tl, list, low, pick);
    if (pick->left > 0)
        tl->trail.worst_key = INT64_MAX;
    if (pick->left > 0)
        pick_worst (tl, s, start, end, list, high, lazy, pick);
}

/* Nodes of one shape in the order of the policy. */
static void pick_by_order (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                           enum choice choice, struct pick *pick)
{
    enum node_allocation policy = tl->c->policy->node_allocation;

    if (choice != CHOICE_POLICY || policy == NODEALLOC_LASTAVAILABLE ||
        (policy == NODEALLOC_CPULOAD && start <= tl->now) ||
        (policy == NODEALLOC_PRIORITY && tl->c->worth_moves))
        pick_by_key (tl, s, start, end, choice, pick);
    else
        pick_in_order (tl, s, start, end, rank_order (tl->c), pick);
}

static void pick_by_policy (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                            enum choice choice, struct pick *pick)
{
    const struct policy *p = tl->c->policy;
    struct pick all = {NULL, 0, TASKS_MAX, pick->req};

    if (p->node_allocation == NODEALLOC_CONTIGUOUS) {
        (void)pick_contiguous (tl, s, start, end, pick);
    } else if (choice == CHOICE_POLICY && p->node_allocation == NODEALLOC_MAXBALANCE) {
        pick_balanced (tl, s, start, end, pick);
    } else if (choice == CHOICE_POLICY &&
               (p->node_allocation == NODEALLOC_LOCAL || p->task_distribution == TASKDIST_LOCAL)) {
        pick_local (tl, s, start, end, pick);
    } else if (p->task_distribution == TASKDIST_PACK ||
               p->task_distribution == TASKDIST_ROUNDROBIN) {
        all.item = arena_alloc (tl->arena, (tl->node_count + 1) * sizeof *all.item);
        pick_by_order (tl, s, start, end, choice, &all);
        pick_laid_out (tl, &all, p->task_distribution, pick);
    } else {
        pick_by_order (tl, s, start, end, choice, pick);
    }
}

/* Those whom reservations admit: nodes that attract them first, those they should rather leave last
 * (NODEALLOCATIONPOLICY of maui.cfg(5): inside each of these, the policy). */
static void pick_by_affinity (struct timeline *tl, const struct shape *s, time_us start,
                              time_us end, enum choice choice, struct pick *pick)
{
    const struct access *a = tl->c->access;
    const struct access_class *class = &a->class[s->access];
    uint32_t words = bitset_words (tl->node_count);
    uint64_t *of[AFFINITIES];
    struct shape part = *s;

    for (int f = 0; f < AFFINITIES; f++)
        of[f] = arena_array (tl->arena, words + 1, sizeof **of);
    for (uint32_t w = 0; w < words; w++)
        of[AFFINITY_UNRESERVED][w] = s->everywhere ? UINT64_MAX : s->nodes.word[w];
    for (uint32_t g = 0; g < class->count; g++) {
        const struct allocation *nodes = &a->open[class->grant[g].rsv]->allocation;
        for (uint32_t i = 0; i < nodes->count; i++) {
            uint32_t n = nodes->item[i].node.v;
            uint64_t bit = UINT64_C (1) << (n & 63);
            enum affinity f = view_affinity (tl, s->access, n, start, end);
            if (!(of[AFFINITY_UNRESERVED][n >> 6] & bit) || f == AFFINITY_UNRESERVED)
                continue;
            of[AFFINITY_UNRESERVED][n >> 6] &= ~bit;
            of[f][n >> 6] |= bit;
        }
    }
    part.everywhere = false;
    part.nodes.bit_count = tl->node_count;
    for (int f = 0; f < AFFINITIES && pick->left > 0; f++) {
        part.nodes.word = of[f];
        tl->trail.worst_affinity = (enum affinity)f;
        pick_by_policy (tl, &part, start, end, choice, pick);
    }
}

static bool choose_req (struct timeline *tl, struct arena *arena, const struct shape *s,
                        uint32_t tasks, uint32_t req, time_us start, duration_us duration,
                        enum choice choice, struct allocation *out)
{
    time_us end = time_add (start, duration);
    uint32_t most = tasks < tl->node_count ? tasks : tl->node_count;
    struct pick pick = {arena_alloc (arena, most * sizeof (struct placement)), 0, tasks, req};

    timeline_view (tl, s->access);
    if (s->access && tl->views)
        pick_by_affinity (tl, s, start, end, choice, &pick);
    else
        pick_by_policy (tl, s, start, end, choice, &pick);
    *out = (struct allocation){pick.count, pick.item};
    tl->trail.worst_node = pick.count ? pick.item[pick.count - 1].node.v : 0;
    return pick.left == 0;
}

/* CONTIGUOUS: there may be room enough, but not side by side. */
static bool choice_may_fail (const struct timeline *tl)
{
    return tl->c->policy->node_allocation == NODEALLOC_CONTIGUOUS;
}

bool timeline_countable (const struct timeline *tl, const struct wanted *w)
{
    return w->req_count == 1 && w->licence_count == 0 && !choice_may_fail (tl);
}

/* --- all reqs ----------------------------------------------------------------------------- */

/* The nodes that are allowed now but for these, in the arena. */
static struct bitset *nodes_but (struct timeline *tl, const struct bitset *now,
                                 const struct allocation *these)
{
    struct bitset *left = arena_new (tl->arena, struct bitset);

    left->bit_count = tl->node_count;
    left->word = arena_alloc (tl->arena, (bitset_words (tl->node_count) + 1) * sizeof *left->word);
    for (uint32_t w = 0; w < bitset_words (tl->node_count); w++)
        left->word[w] = now && w < bitset_words (now->bit_count) ? now->word[w]
                        : now                                    ? 0
                                                                 : UINT64_MAX;
    for (uint32_t i = 0; i < these->count; i++)
        bitset_clear (left, these->item[i].node.v);
    return left;
}

/* All reqs, one after the other, on nodes that are allowed now. */
static bool choose_all (struct timeline *tl, struct arena *arena, const struct wanted *w,
                        time_us start, duration_us duration, enum choice choice,
                        struct allocation *out)
{
    struct allocation part[REQS_MAX];
    time_us end = time_add (start, duration);
    struct wanted nodes = {w->req_count, w->req, w->shape, 0, NULL};
    const struct bitset *allowed = tl->only;
    uint32_t total = 0, done;
    bool fits = true;

    if (w->req_count == 1)
        return choose_req (tl, arena, &tl->c->shape[w->shape[0]], w->req[0].tasks, 0, start,
                           duration, choice, out);
    for (done = 0; done < w->req_count && fits; done++) {
        fits = choose_req (tl, arena, &tl->c->shape[w->shape[done]], w->req[done].tasks, done,
                           start, duration, choice, &part[done]);
        if (!fits)
            break;
        timeline_take (tl, &nodes, &part[done], start, end, 1);
        total += part[done].count;
        if (tl->c->policy->task_distribution == TASKDIST_ARBGEO)
            tl->only = nodes_but (tl, tl->only, &part[done]);
    }
    tl->only = allowed;
    for (uint32_t r = 0; r < done; r++)
        timeline_take (tl, &nodes, &part[r], start, end, -1);
    if (!fits)
        return false;
    out->count = 0;
    out->item = arena_alloc (arena, total * sizeof *out->item);
    for (uint32_t r = 0; r < w->req_count; r++) {
        memcpy (out->item + out->count, part[r].item, part[r].count * sizeof *out->item);
        out->count += part[r].count;
    }
    return true;
}

static bool choose_at (struct timeline *tl, struct arena *arena, const struct wanted *w,
                       time_us start, duration_us duration, enum choice choice,
                       struct allocation *out)
{
    const struct node_group_set **set;
    uint32_t sets;
    bool chosen = false;

    assert (tl->awake == NULL || start <= tl->now);
    if (!timeline_licensed (tl, w, start, time_add (start, duration)))
        return false;
    if (tl->c->shape[w->shape[0]].needs.group == 0)
        return choose_all (tl, arena, w, start, duration, choice, out);
    sets = group_order (tl, w, start, time_add (start, duration), &set);
    for (uint32_t i = 0; i < sets && !chosen; i++) {
        tl->only = &set[i]->nodes;
        chosen = choose_all (tl, arena, w, start, duration, choice, out);
        tl->only = NULL;
    }
    return chosen;
}

bool timeline_choose (struct timeline *tl, struct arena *arena, const struct wanted *w,
                      time_us start, duration_us duration, enum choice choice,
                      struct allocation *out)
{
    tl->reach_at = TIME_US_NONE; /* of another question */
    return choose_at (tl, arena, w, start, duration, choice, out);
}

bool timeline_choose_again (struct timeline *tl, struct arena *arena, const struct wanted *w,
                            time_us start, duration_us duration, const struct bitset *few,
                            struct allocation *out)
{
    struct place_trail *trail = timeline_trail (tl);
    struct place_trail before = *trail;
    bool chosen;

    if (!orders_simply (tl->c, &tl->c->shape[w->shape[0]]) ||
        !timeline_licensed (tl, w, start, time_add (start, duration)))
        return false;
    tl->reach_at = TIME_US_NONE;
    tl->only = few;
    chosen = choose_all (tl, arena, w, start, duration, CHOICE_POLICY, out);
    tl->only = NULL;
    return chosen &&
           !trail_worse (tl, &before, trail->worst_affinity, trail->worst_key, trail->worst_node);
}

/* The first moment from `at` on at which each req alone, and the licences, would do: necessary. */
static bool each_alone (struct timeline *tl, const struct wanted *w, duration_us duration,
                        time_us until, time_us *at)
{
    for (;;) {
        time_us moved = *at, before = *at;
        for (uint32_t r = 0; r < w->req_count; r++) {
            if (!timeline_earliest (tl, &tl->c->shape[w->shape[r]], w->req[r].tasks, duration,
                                    moved, until, &moved))
                return false;
        }
        *at = timeline_licences_from (tl, w, moved, duration);
        if (*at > until || *at == TIME_US_MAX) /* there are not so many */
            return false;
        if (*at == before || (w->req_count == 1 && *at == moved))
            return true;
    }
}

bool timeline_place (struct timeline *tl, struct arena *arena, const struct wanted *w,
                     duration_us duration, time_us from, time_us until, enum choice choice,
                     time_us *start_out, struct allocation *out)
{
    time_us at = from < tl->now ? tl->now : from;
    uint32_t bounds = tl->bound_count;

    for (;;) {
        if (!each_alone (tl, w, duration, until, &at))
            return false;
        if (w->req_count > 1)
            tl->reach_at = TIME_US_NONE; /* of one of the reqs */
        if (choose_at (tl, arena, w, at, duration, choice, out)) {
            *start_out = at;
            return true;
        }
        assert ((w->req_count > 1 || choice_may_fail (tl)) && "what was counted can be chosen");
        at = timeline_next_bound (tl, bounds, at, duration);
        if (at == TIME_US_MAX || at > until)
            return false;
    }
}
