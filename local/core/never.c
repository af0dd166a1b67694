/* never: for whom there is no moment at all, as things stand, and why. The pass and questions ask why once they have
 * looked for a moment and found none: it looks at what is free after everything that has an end. Before anybody has
 * looked, the pass asks who is shut out by reservations alone. */
#include "local/core/timeline_state.h"

#include <string.h>

const time_us never_after = TIME_US_MAX / 2; /* what is beyond: endless () */

/* A reservation without an end that keeps the shape off nodes which would suit it; 0: there is none. */
static struct rsv_id never_barred (const struct cluster *c, const struct shape *s)
{
    const struct access *a = c->access;

    for (uint32_t i = 0; a && i < a->fenced_count; i++) {
        uint32_t node = a->fenced[i];
        if (c->node_state[node] != NODE_UP || !shape_suits (c, s, node))
            continue;
        for (uint32_t k = a->fence_first[node]; k < a->fence_first[node + 1]; k++) {
            const struct fence *f = &a->fence[k];
            if (f->end == TIME_US_MAX && !access_grant (a, s->access, f->rsv))
                return a->open[f->rsv]->spec.id;
        }
    }
    return (struct rsv_id){0};
}

struct reason never_why (struct timeline *tl, const struct wanted *w)
{
    struct reason why = {.code = REASON_NEVER_FREE, .clears = TIME_US_NONE};

    for (uint32_t r = 0; r < w->req_count; r++) {
        const struct shape *s = &tl->c->shape[w->shape[r]];
        why.which = (uint8_t)r;
        why.need = w->req[r].tasks;
        why.have = (int64_t)timeline_count (tl, s, never_after, 1, UINT64_MAX);
        why.rsv = never_barred (tl->c, s);
        if (why.have < why.need)
            return why;
    }
    return why;
}

/* --- before there is a timeline ---------------------------------------------------------------- */

static bool never_shuts (const struct cluster *c, const struct fence *f, const struct shape *s,
                         time_us before)
{
    return endless (f->end) && f->start < before &&
           (c->access->open[f->rsv]->used_by.v || !access_grant (c->access, s->access, f->rsv));
}

/* Of the tasks that an idle node takes, how many it does not because of what is kept there for ever. */
static uint32_t never_lost (const struct cluster *c, const struct shape *s, uint32_t node,
                            time_us before)
{
    const struct access *a = c->access;
    const int32_t *cap = row (c, c->cap, node);
    struct resources left = {0};
    bool any = false;

    memcpy (left.v, cap, c->dims * sizeof *cap);
    for (uint32_t k = a->fence_first[node]; k < a->fence_first[node + 1]; k++) {
        const struct fence *f = &a->fence[k];
        if (!never_shuts (c, f, s, before))
            continue;
        if (f->whole)
            return shape_fit (c, s, node, cap);
        any = true;
        for (uint32_t d = 0; d < c->dims; d++)
            left.v[d] = left.v[d] > f->keep.v[d] ? left.v[d] - f->keep.v[d] : 0;
    }
    return any ? shape_fit (c, s, node, cap) - shape_fit (c, s, node, left.v) : 0;
}

/* Of a candidate set of nodes only its own count: those stay in doubt, and have their moment looked for. */
static uint64_t never_room (struct cluster *c, struct shape *s, time_us before)
{
    const struct access *a = c->access;

    if (s->needs.group)
        return s->fit_max;
    if (s->shut_serial == c->lasting && s->shut_before == before)
        return s->shut_room;
    s->shut_serial = c->lasting;
    s->shut_before = before;
    s->shut_room = s->fit_max;
    for (uint32_t i = 0; i < a->fenced_count; i++) {
        if (shape_suits (c, s, a->fenced[i]))
            s->shut_room -= never_lost (c, s, a->fenced[i], before);
    }
    return s->shut_room;
}

bool never_shut_out (struct cluster *c, const struct job *job)
{
    const struct access *a = c->access;
    bool any = false, to_come = false;
    time_us before;

    for (uint32_t i = 0; a && i < a->count; i++) {
        bool for_ever = endless (a->open[i]->spec.end);
        any = any || for_ever;
        to_come = to_come || (for_ever && a->open[i]->spec.start > c->now);
    }
    if (!any)
        return false;
    before = to_come ? time_add (c->now, length_least (c, job->spec.walltime_limit)) : TIME_US_MAX;
    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        if (never_room (c, shape_refresh (c, job->shape[r]), before) < job->spec.req[r].tasks)
            return true;
    }
    return false;
}
