/* How what fits on a lane changes over possible starts, as changes at bounds: of all nodes in one sum, or, for candidate
 * sets (group.c), node by node. */
#include <stdlib.h>
#include <string.h>

#include "local/core/timeline_state.h"

enum { STEPS_LOCAL = 64 };

struct fits {
    time_us t;
    uint32_t bound;
    uint32_t fit;
};

static void move_add (struct timeline *tl, uint32_t bound, bool down, uint32_t node, int64_t change)
{
    struct moves *m = tl->moves;
    uint32_t *head = down ? &m->down[bound] : &m->up[bound];

    if (m->count == m->cap) {
        uint32_t cap = m->cap ? m->cap * 2 : 1024;
        struct move *more = arena_alloc (tl->arena, cap * sizeof *more);
        if (m->count)
            memcpy (more, m->list, m->count * sizeof *more);
        m->list = more;
        m->cap = cap;
    }
    m->list[m->count] = (struct move){node, *head, change};
    *head = ++m->count;
}

static void change_add (struct timeline *tl, uint32_t bound, bool down, uint32_t node,
                        int64_t change)
{
    if (tl->moves)
        move_add (tl, bound, down, node, change);
    else if (down)
        tl->down[bound] += change;
    else
        tl->up[bound] += change;
}

static uint32_t least_of (const struct fits *run, uint32_t first, uint32_t last)
{
    uint32_t least = run[first].fit;

    while (++first <= last)
        least = run[first].fit < least ? run[first].fit : least;
    return least;
}

/* Steps of the lane from `from` on, those that begin before `beyond`, into run; steps on which as many fit as
 * on the one before are left out. */
static uint32_t lane_fits (const struct timeline *tl, const struct shape *s, uint32_t node,
                           time_us from, time_us beyond, struct fits *run)
{
    const struct lane *lane = &tl->lane[node];
    uint32_t i = step_find (tl, lane, from), n = 0;
    const struct step *step = step_at (tl, lane, i);

    do {
        uint32_t fit = step_fit (tl, s, node, step);
        if (n == 0 || run[n - 1].fit != fit)
            run[n++] = (struct fits){step->t, step->bound, fit};
        step = step_at (tl, lane, ++i);
    } while (i < lane->count && step->t <= beyond);
    return n;
}

/* Room for that of a long lane: kept, since one question looks at thousands of them. */
static struct fits *fits_room (struct timeline *tl, uint32_t count)
{
    if (count > tl->fits_cap) {
        tl->fits_cap = count * 2;
        tl->fits = arena_alloc (tl->arena, tl->fits_cap * sizeof *tl->fits);
    }
    return tl->fits;
}

/* Any lane: the least over a window of steps that slides from `from` on. Changes go to up[bound]
 * where the window leaves a step, to down[bound] where it reaches one (at bound - duration + 1).
 * Starts after `until` are not looked at. */
struct slide lane_slides (struct timeline *tl, const struct shape *s, uint32_t node, time_us from,
                          time_us until, duration_us duration)
{
    struct fits local[STEPS_LOCAL], *run = local;
    time_us to = time_add (from, duration);
    uint32_t count, first = 0, last = 0, least;
    struct slide slide;

    if (tl->lane[node].count > STEPS_LOCAL)
        run = fits_room (tl, tl->lane[node].count);
    count = lane_fits (tl, s, node, from, time_add (until, duration), run);
    while (last + 1 < count && run[last + 1].t < to)
        last++;
    least = least_of (run, first, last);
    slide = (struct slide){least, false};
    while (first + 1 < count) {
        time_us leaves = run[first + 1].t;
        time_us reaches = last + 1 < count ? run[last + 1].t - duration + 1 : TIME_US_MAX;
        bool leave = leaves <= reaches;
        uint32_t next;
        if (leaves > until && reaches > until)
            break;
        if (leave)
            first++;
        if (reaches <= leaves)
            last++;
        if (last < first)
            last = first;
        if (leave) /* rises only if what was left was the least */
            next = run[first - 1].fit > least && !(reaches <= leaves) ? least
                                                                      : least_of (run, first, last);
        else
            next = run[last].fit < least ? run[last].fit : least;
        if (next == least)
            continue;
        slide.moves = true;
        if (leave)
            change_add (tl, run[first].bound, false, node, (int64_t)next - least);
        else
            change_add (tl, run[last].bound, true, node, (int64_t)next - least);
        least = next;
    }
    return slide;
}
