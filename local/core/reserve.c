/* reserve: looks for nodes and, if the start may move, for a moment; the best-suited nodes
 * first. The daemon's reservations and SRCFG call it. It changes nothing: whoever called makes
 * the reservation with what was found. */
#include "local/core/reserve.h"

#include <stdlib.h>
#include <string.h>

#include "local/core/timeline_state.h"

struct option {   /* a node and how many tasks it could take */
    time_us from; /* when it is free: at the start, or a little later */
    int64_t key[RES_GRES0];
    bool kept;
    uint32_t node, fit;
};

struct placing {
    struct cluster *c;
    const struct rsv_ask *ask;
    struct arena *arena;
    struct timeline *tl;
    struct shape *shape;
    struct rsv_spec probe; /* to ask about co-allocated parts */
    struct req probe_req;
};

/* Kept ones first, free ones before those that come free later, then the least equipped. */
static int by_wish (const void *a, const void *b)
{
    const struct option *x = a, *y = b;

    if (x->kept != y->kept)
        return x->kept ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    for (int d = 0; d < RES_GRES0; d++) {
        if (x->key[d] != y->key[d])
            return x->key[d] < y->key[d] ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

static bool kept_already (const struct rsv_ask *ask, uint32_t node, uint32_t *tasks)
{
    for (uint32_t i = 0; i < ask->keep.count; i++) {
        if (ask->keep.item[i].node.v == node) {
            *tasks = ask->keep.item[i].tasks;
            return true;
        }
    }
    return false;
}

/* Parts of co-allocated jobs are never in its way twice: neither displaced nor counted as free. */
static bool spares_parts (struct placing *p, uint32_t node, uint32_t tasks)
{
    struct placement item = {{node}, tasks & TASKS_MAX, 0};
    struct allocation one = {1, &item};

    return rsv_spares_parts (p->c, &p->probe, &one, NULL) == 0;
}

/* What the whole node or the tasks that are asked for find there over [start, end). */
static uint32_t fit_at (struct placing *p, uint32_t node, time_us start, time_us end)
{
    if (p->ask->flags & RSV_FORCED)
        return shape_fit (p->c, p->shape, node, row (p->c, p->c->cap, node));
    return lane_fit (p->tl, p->shape, node, start, end);
}

/* When a busy node comes free for good, no later than the latest. */
static time_us frees_at (struct placing *p, uint32_t node, time_us start, time_us latest,
                         time_us end, uint32_t *fit)
{
    const struct lane *lane = &p->tl->lane[node];

    for (uint32_t i = 1; i < lane->count; i++) {
        time_us t = step_at (p->tl, lane, i)->t;
        if (t <= start)
            continue;
        if (t > latest || t >= end)
            break;
        *fit = lane_fit (p->tl, p->shape, node, t, end);
        if (*fit > 0)
            return t;
    }
    return TIME_US_MAX;
}

static bool option_of (struct placing *p, uint32_t node, time_us start, time_us end,
                       struct option *out)
{
    const struct rsv_ask *ask = p->ask;
    uint32_t tasks = 0;

    memset (out, 0, sizeof *out);
    out->node = node;
    out->from = start;
    if ((ask->host && !ask->host[node]) || p->c->node_state[node] != NODE_UP ||
        !shape_suits (p->c, p->shape, node))
        return false;
    if (kept_already (ask, node, &tasks)) {
        out->kept = true;
        out->fit = tasks;
    } else {
        out->fit = fit_at (p, node, start, end);
        if (out->fit == 0 && ask->busy > 0 && !(ask->flags & RSV_FORCED))
            out->from = frees_at (p, node, start, time_add (start, ask->busy), end, &out->fit);
    }
    for (int d = 0; d < RES_GRES0; d++)
        out->key[d] = row (p->c, p->c->cap, node)[d];
    return out->fit > 0;
}

static uint32_t procs_of (const struct placing *p, uint32_t node)
{
    return (uint32_t)row (p->c, p->c->cap, node)[RES_PROCS];
}

/* As many as there are of what is asked for, at one start. */
static void place_at (struct placing *p, time_us start, time_us end, struct rsv_place *out)
{
    const struct rsv_ask *ask = p->ask;
    struct option *list = arena_alloc (p->arena, (p->c->node_count + 1) * sizeof *list);
    uint32_t count = 0;

    *out = (struct rsv_place){.start = start, .end = end};
    if (p->tl)
        timeline_view (p->tl, p->shape->access);
    p->probe.start = start;
    p->probe.end = end;
    for (uint32_t n = 0; n < p->c->node_count; n++)
        count += option_of (p, n, start, end, &list[count]);
    qsort (list, count, sizeof *list, by_wish);
    out->allocation.item = arena_array (p->arena, count + 1, sizeof *out->allocation.item);
    for (uint32_t i = 0; i < count && (ask->all || out->tasks < ask->req.tasks); i++) {
        uint32_t left = ask->all ? UINT32_MAX : ask->req.tasks - out->tasks;
        uint32_t tasks = ask->whole           ? procs_of (p, list[i].node)
                         : list[i].fit < left ? list[i].fit
                                              : left;
        if (!spares_parts (p, list[i].node, tasks))
            continue;
        out->allocation.item[out->allocation.count++] =
            (struct placement){{list[i].node}, tasks & TASKS_MAX, 0};
        out->tasks += ask->whole ? 1 : tasks;
        out->task_sum += tasks;
    }
}

static void place (struct placing *p, struct rsv_place *out)
{
    const struct rsv_ask *ask = p->ask;
    duration_us length = ask->end == TIME_US_MAX ? TIME_US_MAX : ask->end - ask->start;
    time_us at = ask->start;

    place_at (p, at, ask->end, out);
    while (out->tasks < ask->req.tasks && (ask->flags & RSV_TIMEFLEX) && p->tl) {
        at = timeline_next_bound (p->tl, timeline_bounds (p->tl), at, length);
        if (at == TIME_US_MAX) {
            place_at (p, ask->start, ask->end, out);
            return;
        }
        place_at (p, at, time_add (at, length), out);
    }
}

static int ask_check (const struct cluster *c, const struct rsv_ask *ask, struct err *err)
{
    if (ask->end <= ask->start)
        return err_set (err, ERR_INVALID, "a reservation must end after it starts");
    return req_check (c, &ask->req, 0, err);
}

int cluster_rsv_place (struct cluster *c, const struct rsv_ask *ask, time_us now,
                       struct arena *arena, struct rsv_place *out, struct err *err)
{
    struct placing p = {.c = c, .ask = ask, .arena = arena};
    struct req req = ask->req;
    uint32_t shape;

    if (ask_check (c, ask, err) != 0)
        return err ? err->code : ERR_INVALID;
    cluster_settle (c);
    if (now < c->now)
        now = c->now;
    if (ask->whole || (ask->flags & RSV_DEDICATEDNODE))
        req.exclusive = true;
    shape = shape_intern (c, &req, ask->flags & RSV_SHARED ? access_shared (c) : 0, NULL);
    p.probe_req = req;
    p.probe_req.tasks = 1;
    p.probe = (struct rsv_spec){
        .kind = RSV_ADMIN, .req_count = 1, .req = &p.probe_req, .flags = ask->flags};
    if (!(ask->flags & RSV_FORCED))
        p.tl = timeline_make (c, arena, now, (ask->flags & RSV_DEDICATEDRESOURCE) != 0,
                              (struct rsv_id){0});
    p.shape = shape_refresh (c, shape); /* a timeline may bring new ones, and they move */
    place (&p, out);
    shape_release (c, shape);
    return 0;
}
