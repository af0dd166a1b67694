/* group: candidate sets of nodes in time: when has any of them room, and which is the best.
 *
 * One sweep serves all sets: what changes on a node changes the sums of the sets that it is in. */
#include "local/core/timeline_state.h"

#include <stdlib.h>

/* A walk through the moments at which any set's sum changes. */
struct group_walk {
    struct timeline *tl;
    const struct node_group *g;
    struct moves moves;
    duration_us duration;
    time_us from, at;
    uint64_t tasks;
    int64_t *sum;   /* [set] */
    uint32_t ready; /* sets with room enough */
    uint32_t u, d;  /* places in tl->sorted */
};

static void sum_add (struct group_walk *w, uint32_t node, int64_t change)
{
    for (uint32_t i = w->g->first[node]; i < w->g->first[node + 1]; i++) {
        int64_t *sum = &w->sum[w->g->member[i]];
        w->ready -= *sum >= (int64_t)w->tasks;
        *sum += change;
        w->ready += *sum >= (int64_t)w->tasks;
    }
}

static void walk_begin (struct group_walk *w, struct timeline *tl, const struct shape *s,
                        uint64_t tasks, duration_us duration, time_us from, time_us until)
{

    *w = (struct group_walk){.tl = tl,
                             .g = &tl->c->groups.group[s->needs.group - 1],
                             .duration = duration,
                             .from = from,
                             .at = from,
                             .tasks = tasks};
    w->sum = arena_array (tl->arena, w->g->count + 1, sizeof *w->sum);
    w->moves.up = arena_array (tl->arena, tl->bound_count + 1, sizeof *w->moves.up);
    w->moves.down = arena_array (tl->arena, tl->bound_count + 1, sizeof *w->moves.down);
    tl->moves = &w->moves;
    for (uint32_t n = bitset_next (&s->nodes, 0); n < tl->node_count;
         n = bitset_next (&s->nodes, n + 1)) {
        if (tl->lane[n].count && node_allowed (tl, s, n))
            sum_add (w, n, lane_slides (tl, s, n, from, until, duration).fit);
    }
    tl->moves = NULL;
}

static void moves_apply (struct group_walk *w, uint32_t first)
{
    for (uint32_t at = first; at; at = w->moves.list[at - 1].next)
        sum_add (w, w->moves.list[at - 1].node, w->moves.list[at - 1].change);
}

static bool walk_next_moment (struct group_walk *w)
{
    const struct timeline *tl = w->tl;
    time_us up, down;

    while (w->u < tl->bound_count &&
           (tl->bound[tl->sorted[w->u]] <= w->from || w->moves.up[tl->sorted[w->u]] == 0))
        w->u++;
    while (w->d < tl->bound_count && w->moves.down[tl->sorted[w->d]] == 0)
        w->d++;
    up = w->u < tl->bound_count ? tl->bound[tl->sorted[w->u]] : TIME_US_MAX;
    down = w->d < tl->bound_count ? tl->bound[tl->sorted[w->d]] - w->duration + 1 : TIME_US_MAX;
    if (up == TIME_US_MAX && down == TIME_US_MAX)
        return false;
    w->at = up < down ? up : down;
    if (up == w->at)
        moves_apply (w, w->moves.up[tl->sorted[w->u++]]);
    if (down == w->at)
        moves_apply (w, w->moves.down[tl->sorted[w->d++]]);
    return true;
}

static uint64_t walk_most (const struct group_walk *w)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < w->g->count; i++)
        most = w->sum[i] > most ? w->sum[i] : most;
    return (uint64_t)most;
}

bool group_earliest (struct timeline *tl, const struct shape *s, uint64_t tasks,
                     duration_us duration, time_us from, time_us until, time_us *out)
{
    struct group_walk w;

    walk_begin (&w, tl, s, tasks, duration, from, until);
    tl->reach_at = TIME_US_NONE;
    while (w.ready == 0) {
        trail_below (tl, tasks, w.at, walk_most (&w));
        if (!walk_next_moment (&w) || w.at > until)
            break;
    }
    if (w.ready == 0 || w.at > until)
        return false;
    *out = w.at;
    return true;
}

void group_starts (struct timeline *tl, const struct shape *s, uint64_t tasks, duration_us duration,
                   time_us from, time_us until, interval_fn fn, void *self)
{
    struct group_walk w;
    time_us since;
    bool more = true;

    walk_begin (&w, tl, s, tasks, duration, from, until);
    since = w.ready ? from : TIME_US_NONE;
    while (more && walk_next_moment (&w) && w.at <= until) {
        if (since == TIME_US_NONE && w.ready) {
            since = w.at;
        } else if (since != TIME_US_NONE && w.ready == 0) {
            more = fn (self, since, w.at - 1);
            since = TIME_US_NONE;
        }
    }
    if (more && since != TIME_US_NONE && since <= until)
        (void)fn (self, since, until);
}

/* --- at one moment ---------------------------------------------------------------------------- */

/* A place for a sum per set, used again and again. */
static uint64_t *sums_clear (const struct timeline *tl, uint32_t count)
{
    struct sums *sums = tl->sums;

    if (count > sums->cap) {
        sums->cap = count * 2;
        sums->sum = arena_alloc (tl->arena, sums->cap * sizeof *sums->sum);
    }
    memset (sums->sum, 0, count * sizeof *sums->sum);
    return sums->sum;
}

static inline uint64_t sums_add (const struct node_group *g, uint32_t node, uint32_t fit,
                                 uint64_t most, uint64_t *sum)
{
    for (uint32_t i = g->first[node]; fit && i < g->first[node + 1]; i++) {
        uint64_t here = sum[g->member[i]] += fit;
        most = here > most ? here : most;
    }
    return most;
}

/* Sums over nodes that are open then; stops when any set has enough (0: never). */
static uint64_t sums_fill (struct timeline *tl, const struct shape *s, const struct node_group *g,
                           time_us start, time_us end, uint64_t enough, uint64_t *sum)
{
    uint64_t most = 0;
    uint32_t open;

    timeline_view (tl, s->access);
    if (start <= tl->now) {
        const uint32_t *node = open_nodes (tl, &open);
        for (uint32_t i = 0; i < open && (enough == 0 || most < enough); i++) {
            if (node_allowed (tl, s, node[i]))
                most = sums_add (g, node[i], lane_fit (tl, s, node[i], start, end), most, sum);
        }
        return most;
    }
    for (uint32_t n = next_node (tl, s, start, 0); n < tl->node_count;
         n = next_node (tl, s, start, n + 1)) {
        most = sums_add (g, n, lane_fit (tl, s, n, start, end), most, sum);
        if (enough && most >= enough)
            break;
    }
    return most;
}

uint64_t group_count (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                      uint64_t enough)
{
    const struct node_group *g = &tl->c->groups.group[s->needs.group - 1];
    uint64_t *sum = sums_clear (tl, g->count);

    return sums_fill (tl, s, g, start, end, enough, sum);
}

struct ranked_set {
    uint32_t rank;
    int64_t key[2];
    uint32_t at;
};

static int ranked_set_compare (const void *a, const void *b)
{
    const struct ranked_set *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    for (int k = 0; k < 2; k++) {
        if (x->key[k] != y->key[k])
            return x->key[k] < y->key[k] ? -1 : 1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

static struct ranked_set ranked_set_make (const struct node_group *g, uint32_t at, uint64_t room)
{
    const struct node_group_set *set = &g->set[at];
    struct ranked_set r = {set->rank, {0, g->named ? 0 : (int64_t)room}, at};

    if (g->first_of || g->nodeset == NODESET_NONE || g->priority == NODESET_LISTED)
        return (struct ranked_set){set->rank, {0, 0}, at};
    switch (g->priority) {
    case NODESET_MINLOSS:
        r.key[0] = set->loss_ppm;
        break;
    case NODESET_BESTFIT:
        r.key[1] = (int64_t)room;
        break;
    case NODESET_WORSTFIT:
        r.key[1] = -(int64_t)room;
        break;
    case NODESET_BESTRESOURCE:
        r.key[0] = -(int64_t)set->slowest_ppm;
        break;
    case NODESET_LISTED:
        break;
    }
    return r;
}

uint32_t group_order (struct timeline *tl, const struct wanted *w, time_us start, time_us end,
                      const struct node_group_set ***out)
{
    const struct node_group *g = &tl->c->groups.group[tl->c->shape[w->shape[0]].needs.group - 1];
    uint64_t *room = arena_array (tl->arena, g->count + 1, sizeof *room);
    struct ranked_set *ranked = arena_alloc (tl->arena, (g->count + 1) * sizeof *ranked);
    bool *lacks = arena_array (tl->arena, g->count + 1, sizeof *lacks);
    uint32_t n = 0;

    for (uint32_t r = 0; r < w->req_count; r++) {
        uint64_t *sum = sums_clear (tl, g->count);
        (void)sums_fill (tl, &tl->c->shape[w->shape[r]], g, start, end, 0, sum);
        for (uint32_t i = 0; i < g->count; i++) {
            lacks[i] = lacks[i] || sum[i] < w->req[r].tasks;
            room[i] += sum[i];
        }
    }
    for (uint32_t i = 0; i < g->count; i++) {
        if (!lacks[i])
            ranked[n++] = ranked_set_make (g, i, room[i]);
    }
    qsort (ranked, n, sizeof *ranked, ranked_set_compare);
    *out = arena_alloc (tl->arena, (n + 1) * sizeof **out);
    for (uint32_t i = 0; i < n; i++)
        (*out)[i] = &g->set[ranked[i].at];
    return n;
}
