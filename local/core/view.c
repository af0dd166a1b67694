/* view: what each access class sees of nodes with ACL reservations (access.h).
 *
 * A fence is what one reservation keeps on one node over its time: all of it, or a part. A class that
 * the reservation admits sees through it; every other class finds it taken. So a lane exists in as
 * many forms as there are classes that its fences tell apart; those of the class that is being asked
 * for are in the timeline's lanes, and questions know nothing of all this.
 *
 * Of a part, what its own people use is not kept twice: it is charged to the first such fence there at the moment. */
#include "local/core/timeline_state.h"

#include <string.h>

static const struct fence *fences_of (const struct timeline *tl, uint32_t node, uint32_t *count)
{
    const struct access *a = tl->c->access;

    *count = a->fence_first[node + 1] - a->fence_first[node];
    return a->fence + a->fence_first[node];
}

static bool closed_to (const struct timeline *tl, const struct fence *f, uint32_t class)
{
    const struct access *a = tl->c->access;

    return f->end > tl->now &&
           (a->open[f->rsv]->used_by.v != 0 || access_grant (a, class, f->rsv) == NULL);
}

/* --- one lane as a class sees it ------------------------------------------------------------ */

static struct lane lane_copy (struct timeline *tl, const struct lane *from, uint32_t more)
{
    struct lane lane = *from;

    lane.cap = from->count + more;
    lane.step = arena_alloc (tl->arena, (size_t)lane.cap * tl->stride);
    memcpy (lane.step, from->step, (size_t)from->count * tl->stride);
    return lane;
}

static void close_whole (struct timeline *tl, struct lane *lane, const struct fence *f)
{
    uint32_t i = f->start <= tl->now ? 0 : step_split (tl, lane, f->start);
    uint32_t stop = f->end == TIME_US_MAX ? lane->count : step_split (tl, lane, f->end);

    for (; i < stop; i++) {
        struct step *step = step_at (tl, lane, i);
        for (uint32_t d = 0; d < tl->dims; d++) {
            if (step->free[d] > 0)
                step->free[d] = 0;
        }
    }
}

/* What the part's lane says is still kept, taken from every step while it is. */
static void close_part (struct timeline *tl, struct lane *lane, const struct lane *part)
{
    for (uint32_t p = 0; p < part->count; p++) {
        const struct step *kept = step_at (tl, part, p);
        uint32_t i = step_split (tl, lane, kept->t);
        uint32_t stop =
            p + 1 < part->count ? step_split (tl, lane, step_at (tl, part, p + 1)->t) : lane->count;
        for (; i < stop; i++) {
            struct step *step = step_at (tl, lane, i);
            for (uint32_t d = 0; d < tl->dims; d++)
                step->free[d] -= kept->free[d] > 0 ? kept->free[d] : 0;
        }
    }
}

static struct lane lane_for (struct timeline *tl, const struct view_node *v, uint32_t class)
{
    uint32_t count, more = 0, closed = 0;
    const struct fence *f = fences_of (tl, v->node, &count);
    struct lane lane = v->plain;

    if (lane.count == 0)
        return lane;
    for (uint32_t i = 0; i < count; i++) {
        if (!closed_to (tl, &f[i], class))
            continue;
        if (f[i].whole && f[i].start <= tl->now && f[i].end == TIME_US_MAX) {
            lane.count = 0; /* not there, for this class */
            lane.falls = false;
            return lane;
        }
        closed++;
        more += f[i].whole ? 2 : tl->views->part[f[i].part].count + 1;
    }
    if (closed == 0)
        return lane;
    lane = lane_copy (tl, &v->plain, more);
    for (uint32_t i = 0; i < count; i++) {
        if (!closed_to (tl, &f[i], class))
            continue;
        if (f[i].whole)
            close_whole (tl, &lane, &f[i]);
        else
            close_part (tl, &lane, &tl->views->part[f[i].part]);
    }
    lane.falls = true; /* it may also rise where no job ends */
    return lane;
}

/* --- showing ------------------------------------------------------------------------------- */

static bool opens (const struct timeline *tl, uint32_t node, uint32_t class)
{
    uint32_t count;
    const struct fence *f = fences_of (tl, node, &count);

    for (uint32_t i = 0; class != 0 && i < count; i++) {
        if (access_grant (tl->c->access, class, f[i].rsv))
            return true;
    }
    return false;
}

static void show (struct timeline *tl, uint32_t place)
{
    struct views *views = tl->views;
    struct view_node *v = &views->node[place];

    if (!of_these (tl->awake, v->node))
        return;
    if (opens (tl, v->node, views->class)) {
        tl->lane[v->node] = lane_for (tl, v, views->class);
    } else {
        if (v->closed_version != v->version)
            v->closed = lane_for (tl, v, 0);
        v->closed_version = v->version;
        tl->lane[v->node] = v->closed;
    }
    if (views->only && !views->only[v->node])
        tl->lane[v->node].count = 0;
    lane_listed (tl, v->node);
}

static void show_all_of (struct timeline *tl, uint32_t class)
{
    const struct access *a = tl->c->access;
    const struct access_class *own = &a->class[class];

    for (uint32_t g = 0; g < own->count; g++) {
        const struct allocation *nodes = &a->open[own->grant[g].rsv]->allocation;
        for (uint32_t i = 0; i < nodes->count; i++) {
            uint32_t place = a->fenced_at[nodes->item[i].node.v] - 1;
            if (tl->views->node[place].round != tl->views->round)
                show (tl, place);
            tl->views->node[place].round = tl->views->round;
        }
    }
}

void timeline_view (struct timeline *tl, uint32_t class)
{
    uint32_t before;

    if (tl->views == NULL || tl->views->class == class)
        return;
    before = tl->views->class;
    tl->views->class = class;
    tl->views->round++;
    tl->reach_at = TIME_US_NONE;
    show_all_of (tl, before);
    show_all_of (tl, class);
}

void timeline_fences_changed (struct timeline *tl, const struct allocation *nodes)
{
    for (uint32_t i = 0; tl->views && i < nodes->count; i++) {
        uint32_t at = tl->c->access->fenced_at[nodes->item[i].node.v];
        if (at == 0)
            continue;
        tl->views->node[at - 1].version++;
        show (tl, at - 1);
    }
}

/* --- what is kept of a part ------------------------------------------------------------------ */

static void part_make (struct timeline *tl, const struct fence *f)
{
    struct lane *lane = &tl->views->part[f->part];
    struct step *first;
    uint32_t i, stop;

    *lane = (struct lane){.count = 1, .cap = 4};
    lane->step = arena_zalloc (tl->arena, (size_t)lane->cap * tl->stride);
    first = step_at (tl, lane, 0);
    first->t = tl->now;
    if (f->end <= tl->now)
        return;
    i = f->start <= tl->now ? 0 : step_split (tl, lane, f->start);
    stop = f->end == TIME_US_MAX ? lane->count : step_split (tl, lane, f->end);
    for (; i < stop; i++)
        memcpy (step_at (tl, lane, i)->free, f->keep.v, tl->dims * sizeof (int32_t));
}

/* From t on, the next moment at which an earlier fence that admits the class begins or ends; *charged: one has t. */
static time_us charged_until (const struct timeline *tl, const struct fence *f, uint32_t i,
                              uint32_t class, time_us t, bool *charged)
{
    time_us until = TIME_US_MAX;

    *charged = false;
    for (uint32_t k = 0; k < i; k++) {
        if (f[k].whole || f[k].end <= t || !access_grant (tl->c->access, class, f[k].rsv))
            continue;
        *charged = *charged || f[k].start <= t;
        until = f[k].start > t && f[k].start < until ? f[k].start : until;
        until = f[k].end < until ? f[k].end : until;
    }
    return until;
}

static void charge (struct timeline *tl, uint32_t node, const struct shape *s, uint32_t tasks,
                    bool first, time_us start, time_us end, int sign)
{
    uint32_t count;
    const struct fence *f = fences_of (tl, node, &count);

    for (uint32_t i = 0; s->access != 0 && i < count; i++) {
        time_us t = start > f[i].start ? start : f[i].start, to = end < f[i].end ? end : f[i].end;
        if (f[i].whole || to <= tl->now ||
            access_grant (tl->c->access, s->access, f[i].rsv) == NULL)
            continue;
        while (t < to) {
            bool charged;
            time_us until = charged_until (tl, f, i, s->access, t, &charged);
            until = until < to ? until : to;
            if (!charged && until > tl->now)
                lane_subtract (tl, &tl->views->part[f[i].part], node, s, tasks, first, t, until,
                               sign);
            t = until;
        }
    }
}

void view_take (struct timeline *tl, uint32_t place, const struct shape *s, uint32_t tasks,
                bool first, time_us start, time_us end, int sign, bool running)
{
    struct view_node *v = &tl->views->node[place];

    if (v->plain.count == 0)
        return;
    lane_subtract (tl, &v->plain, v->node, s, tasks, first, start, end, sign);
    v->plain.falls = v->plain.falls || !running || lane_falls (tl, &v->plain);
    charge (tl, v->node, s, tasks, first, start, end, sign);
    v->version++;
    show (tl, place);
}

/* What running jobs already use of what is kept for them, on these nodes. */
static void running_charge (struct timeline *tl, const uint64_t *only)
{
    struct cluster *c = tl->c;

    for (uint32_t i = 0; c->access->part_count && i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        time_us end = effective_end (c, job->limit_end, tl->now);
        for (uint32_t k = 0; job->access && k < job->allocation.count; k++) {
            const struct placement *p = &job->allocation.item[k];
            if (of_these (only, p->node.v))
                charge (tl, p->node.v, &c->shape[job->shape[p->req]], p->tasks,
                        job->spec.req_count == 1 || !earlier_req_there (&job->allocation, k),
                        tl->now, end, 1);
        }
    }
}

void views_enter (struct timeline *tl, const uint64_t *only)
{
    const struct access *a = tl->c->access;
    struct views *views = tl->views;

    for (uint32_t n = 0; n < a->fenced_count; n++) {
        uint32_t count, node = a->fenced[n];
        const struct fence *f = fences_of (tl, node, &count);
        if (!of_these (only, node))
            continue;
        for (uint32_t i = 0; i < count; i++) {
            if (!f[i].whole)
                part_make (tl, &f[i]);
        }
        views->node[n].version++;
        views->node[n].plain = tl->lane[node];
    }
    running_charge (tl, only);
    for (uint32_t n = 0; n < a->fenced_count; n++) {
        if (of_these (only, a->fenced[n]))
            show (tl, n);
    }
}

void views_make (struct timeline *tl)
{
    const struct access *a = tl->c->access;
    struct views *views = arena_zalloc (tl->arena, sizeof *views);

    views->node = arena_zalloc (tl->arena, (a->fenced_count + 1) * sizeof *views->node);
    views->part = arena_alloc (tl->arena, (a->part_count + 1) * sizeof *views->part);
    views->round = 1;
    tl->views = views;
    for (uint32_t n = 0; n < a->fenced_count; n++)
        views->node[n].node = a->fenced[n];
    views_enter (tl, tl->awake);
}

void views_forward (struct timeline *tl)
{
    struct views *views = tl->views;

    for (uint32_t n = 0; n < tl->c->access->fenced_count; n++) {
        lane_forward (tl, &views->node[n].plain);
        lane_forward (tl, &views->node[n].closed);
    }
    for (uint32_t i = 0; i < tl->c->access->part_count; i++)
        lane_forward (tl, &views->part[i]);
}

/* --- affinity ------------------------------------------------------------------------------- */

enum affinity view_affinity (const struct timeline *tl, uint32_t class, uint32_t node,
                             time_us start, time_us end)
{
    uint32_t count;
    const struct fence *f = fences_of (tl, node, &count);
    enum affinity best = AFFINITY_UNRESERVED, worst = AFFINITY_UNRESERVED;
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct grant *g = f[i].start < end && f[i].end > start
                                    ? access_grant (tl->c->access, class, f[i].rsv)
                                    : NULL;
        if (g == NULL)
            continue;
        any = true;
        best = g->affinity < best ? (enum affinity)g->affinity : best;
        worst = g->affinity > worst ? (enum affinity)g->affinity : worst;
    }
    if (!any)
        return AFFINITY_UNRESERVED;
    return worst > AFFINITY_UNRESERVED ? worst : best; /* rather not, if one of them says so */
}
