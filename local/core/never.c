/* never: for whom there is no moment at all, as things stand, and why. The pass and questions ask why once they have
 * looked for a moment and found none: it looks at what is free after everything that has an end. Before anybody has
 * looked, the pass asks who is shut out by reservations alone. */
#include "local/core/timeline_state.h"

#include <string.h>

const time_us never_after = TIME_US_MAX / 2; /* what is beyond: endless () */

/* A reservation that keeps the shape off nodes which would suit it: one that comes again, or one without an end on nodes
 * that are up. 0: there is none. */
static struct rsv_id never_barred (const struct cluster *c, const struct shape *s, bool again)
{
    const struct access *a = c->access;

    for (uint32_t i = 0; a && i < a->fenced_count; i++) {
        uint32_t node = a->fenced[i];
        if ((!again && c->node_state[node] != NODE_UP) || !shape_suits (c, s, node))
            continue;
        for (uint32_t k = a->fence_first[node]; k < a->fence_first[node + 1]; k++) {
            const struct fence *f = &a->fence[k];
            const struct rsv_spec *spec = &a->open[f->rsv]->spec;
            if ((again ? spec->again.series != 0 : f->end == TIME_US_MAX) &&
                !access_grant (a, s->access, f->rsv))
                return spec->id;
        }
    }
    return (struct rsv_id){0};
}

/* --- what reservations leave -------------------------------------------------------------------- */

/* What is asked of reservations: who stands in the way of a job that would run from then on for so long. */
struct never_ask {
    time_us before;     /* of those without an end: if they begin before then */
    time_us at;         /* of those that come again: if any of their times meets … */
    duration_us length; /* … [at, at + length), in any week; 0: they are not asked */
};

enum { NEVER_DAY_S = 86400, NEVER_WEEK_DAYS = 7 };
static const duration_us never_day = NEVER_DAY_S * US_PER_S;
static const duration_us never_week = NEVER_WEEK_DAYS * NEVER_DAY_S * US_PER_S;

static bool never_meets (const struct rsv_again *again, const struct never_ask *ask)
{
    for (int64_t day = 0; day < NEVER_WEEK_DAYS; day++) {
        duration_us phase = (again->from + day * never_day - ask->at) % never_week;
        phase += phase < 0 ? never_week : 0;
        if ((again->days >> day & 1) &&
            (phase < ask->length || phase + (again->to - again->from) > never_week))
            return true;
    }
    return false;
}

static bool never_shuts (const struct cluster *c, const struct fence *f, const struct shape *s,
                         const struct never_ask *ask)
{
    const struct rsv *rsv = c->access->open[f->rsv];

    if (rsv->used_by.v == 0 && access_grant (c->access, s->access, f->rsv))
        return false;
    if (endless (f->end))
        return f->start < ask->before;
    return ask->length && rsv->spec.again.series && never_meets (&rsv->spec.again, ask);
}

/* Is it another time of one that was there before? All are on the same nodes. */
static bool never_twin (const struct cluster *c, uint32_t first, uint32_t k)
{
    const struct access *a = c->access;
    uint64_t series = a->open[a->fence[k].rsv]->spec.again.series;

    for (uint32_t i = first; series && i < k; i++) {
        if (a->open[a->fence[i].rsv]->spec.again.series == series)
            return true;
    }
    return false;
}

/* Of the tasks that an idle node takes, how many it does not because of what is kept there. */
static uint32_t never_lost (const void *ask, const struct cluster *c, const struct shape *s,
                            uint32_t node)
{
    const struct access *a = c->access;
    const int32_t *cap = row (c, c->cap, node);
    struct resources left = {0};
    bool any = false;

    memcpy (left.v, cap, c->dims * sizeof *cap);
    for (uint32_t k = a->fence_first[node]; k < a->fence_first[node + 1]; k++) {
        const struct fence *f = &a->fence[k];
        if (!never_shuts (c, f, s, ask) || never_twin (c, a->fence_first[node], k))
            continue;
        if (f->whole)
            return shape_fit (c, s, node, cap);
        any = true;
        for (uint32_t d = 0; d < c->dims; d++)
            left.v[d] = left.v[d] > f->keep.v[d] ? left.v[d] - f->keep.v[d] : 0;
    }
    return any ? shape_fit (c, s, node, cap) - shape_fit (c, s, node, left.v) : 0;
}

/* Tasks that all nodes, or the best of the candidate sets of them, take once everything else has ended. */
static uint64_t never_left (struct cluster *c, const struct shape *s, const struct never_ask *ask)
{
    const struct access *a = c->access;
    uint64_t left = s->fit_max;

    if (a == NULL || a->count == 0)
        return left;
    if (s->needs.group)
        return shape_group_most (c, s, group_refresh (c, s->needs.group), never_lost, ask);
    for (uint32_t i = 0; i < a->fenced_count; i++) {
        if (shape_suits (c, s, a->fenced[i]))
            left -= never_lost (ask, c, s, a->fenced[i]);
    }
    return left;
}

static uint64_t never_room (struct cluster *c, struct shape *s, time_us before)
{
    if (s->shut_serial == c->lasting && s->shut_before == before)
        return s->shut_room;
    s->shut_serial = c->lasting;
    s->shut_before = before;
    s->shut_room = never_left (c, s, &(struct never_ask){.before = before});
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

/* --- those that come again ---------------------------------------------------------------------- */

/* What meets least begins at an end of one of their times: so these moments are all there is to look at. 0: none comes
 * again, or too many do. */
static uint32_t never_moments (const struct cluster *c,
                               time_us out[NEVER_SERIES_MAX * NEVER_WEEK_DAYS])
{
    const struct access *a = c->access;
    uint64_t seen[NEVER_SERIES_MAX];
    uint32_t series = 0, count = 0;

    for (uint32_t i = 0; a && i < a->count; i++) {
        const struct rsv_again *again = &a->open[i]->spec.again;
        uint32_t k = 0;
        while (k < series && seen[k] != again->series)
            k++;
        if (again->series == 0 || k < series)
            continue;
        if (series == NEVER_SERIES_MAX)
            return 0;
        seen[series++] = again->series;
        for (int64_t day = 0; day < NEVER_WEEK_DAYS; day++) {
            if (again->days >> day & 1)
                out[count++] = again->to + day * never_day;
        }
    }
    return count;
}

/* The best of all moments for this req; and whether one of them does for all of them. */
static bool never_moment (struct cluster *c, const struct wanted *w, duration_us length,
                          uint64_t best[REQS_MAX])
{
    time_us moment[NEVER_SERIES_MAX * NEVER_WEEK_DAYS];
    uint32_t count = never_moments (c, moment);
    bool some = count == 0;

    memset (best, 0, REQS_MAX * sizeof *best);
    for (uint32_t m = 0; m < count && !some; m++) {
        struct never_ask ask = {c->now, moment[m], length};
        some = true;
        for (uint32_t r = 0; r < w->req_count; r++) {
            uint64_t left = never_left (c, shape_refresh (c, w->shape[r]), &ask);
            best[r] = left > best[r] ? left : best[r];
            some = some && left >= w->req[r].tasks;
        }
    }
    return some;
}

bool never_recurs (struct cluster *c, struct job *job)
{
    uint64_t best[REQS_MAX];
    struct wanted w = wanted_job (job);

    if (job->again_serial == c->lasting)
        return job->again_shut;
    job->again_serial = c->lasting;
    job->again_shut = !never_moment (c, &w, length_least (c, job->spec.walltime_limit), best);
    return job->again_shut;
}

bool never_recurs_why (struct cluster *c, const struct wanted *w, duration_us length,
                       struct reason *why)
{
    uint64_t best[REQS_MAX];
    uint32_t r = 0;

    if (never_moment (c, w, length_least (c, length), best))
        return false;
    while (r + 1 < w->req_count && best[r] >= w->req[r].tasks)
        r++;
    *why = (struct reason){.code = REASON_NEVER_FREE,
                           .clears = TIME_US_NONE,
                           .which = (uint8_t)r,
                           .need = w->req[r].tasks,
                           .have = (int64_t)best[r],
                           .length = length,
                           .rsv = never_barred (c, &c->shape[w->shape[r]], true)};
    return true;
}

/* --- with a timeline ---------------------------------------------------------------------------- */

struct reason never_why (struct timeline *tl, const struct wanted *w)
{
    struct reason why = {.code = REASON_NEVER_FREE, .clears = TIME_US_NONE};
    uint64_t room[REQS_MAX];

    for (uint32_t r = 0; r < w->req_count; r++)
        room[r] = never_room (tl->c, &tl->c->shape[w->shape[r]], TIME_US_MAX);
    for (uint32_t r = 0; r < w->req_count; r++) {
        const struct shape *s = &tl->c->shape[w->shape[r]];
        why.which = (uint8_t)r;
        why.need = w->req[r].tasks;
        why.have = (int64_t)timeline_count (tl, s, never_after, 1, UINT64_MAX);
        if (s->needs.group && room[r] < (uint64_t)why.have)
            why.have = (int64_t)room[r]; /* in the best of its sets */
        why.rsv = never_barred (tl->c, s, false);
        if (why.have < why.need)
            return why;
    }
    return why;
}
