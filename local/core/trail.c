/* trail: what placing a job tells of the next time: would a change give it an earlier start, or
 * other nodes? */
#include "local/core/timeline_state.h"

#include <assert.h>
#include <string.h>

void timeline_trail_begin (struct timeline *tl)
{
    tl->trail.below[0] = (struct below){INT64_MIN, 0};
    tl->trail.below_count = 1;
}

struct place_trail *timeline_trail (struct timeline *tl)
{
    return &tl->trail;
}

/* Binary digits of what is missing: the less, the more exactly it is to be known. */
static int lacking (uint64_t tasks, uint64_t sum)
{
    return sum >= tasks ? 0 : 64 - __builtin_clzll (tasks - sum);
}

void trail_below (struct timeline *tl, uint64_t tasks, time_us t, uint64_t sum)
{
    struct place_trail *trail = &tl->trail;
    struct below *last = &trail->below[trail->below_count - 1];

    if (sum <= last->most)
        return;
    if (lacking (tasks, sum) == lacking (tasks, last->most) || t <= last->from) {
        last->most = sum;
        return;
    }
    if (trail->below_count == BELOW_MAX) { /* the earliest matter least */
        trail->below[0].most = trail->below[1].most;
        memmove (&trail->below[1], &trail->below[2], (BELOW_MAX - 2) * sizeof *last);
        trail->below_count--;
    }
    trail->below[trail->below_count++] = (struct below){t, sum};
}

uint32_t timeline_most (struct timeline *tl, const struct shape *s, uint32_t node, time_us before,
                        duration_us duration)
{
    const struct lane *lane = &tl->lane[node];
    uint32_t most = 0;

    assert (of_these (tl->awake, node));
    timeline_view (tl, s->access);
    /* Of all moments within a step its first is the best: later ones reach further. */
    for (uint32_t i = 0; i < lane->count && step_at (tl, lane, i)->t < before; i++) {
        time_us end = time_add (step_at (tl, lane, i)->t, duration);
        uint32_t fit = step_fit (tl, s, node, step_at (tl, lane, i));
        for (uint32_t k = i + 1; fit > most && k < lane->count && step_at (tl, lane, k)->t < end;
             k++) {
            uint32_t next = step_fit (tl, s, node, step_at (tl, lane, k));
            fit = next < fit ? next : fit;
        }
        most = fit > most ? fit : most;
    }
    return most;
}

bool orders_simply (const struct cluster *c, const struct shape *s)
{
    return s->needs.group == 0 && c->policy->task_distribution == TASKDIST_DEFAULT &&
           (c->policy->node_allocation == NODEALLOC_FIRSTAVAILABLE ||
            c->policy->node_allocation == NODEALLOC_LASTAVAILABLE);
}

bool trail_worse (const struct timeline *tl, const struct place_trail *trail,
                  enum affinity affinity, int64_t key, uint32_t node)
{
    if (affinity != trail->worst_affinity)
        return affinity > trail->worst_affinity;
    if (tl->c->policy->node_allocation == NODEALLOC_LASTAVAILABLE && key != trail->worst_key)
        return key > trail->worst_key;
    return node > trail->worst_node;
}

bool timeline_preferred (struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                         duration_us duration, const struct place_trail *trail)
{
    time_us end = time_add (start, duration);
    enum affinity affinity = trail->worst_affinity;
    uint32_t fit;

    assert (of_these (tl->awake, node));
    timeline_view (tl, s->access);
    fit = lane_fit (tl, s, node, start, end);
    if (fit == 0 || !orders_simply (tl->c, s))
        return fit > 0; /* for all that is known here */
    if (s->access && tl->views)
        affinity = view_affinity (tl, s->access, node, start, end);
    return !trail_worse (tl, trail, affinity, free_until (tl, s, node, end, fit), node);
}
