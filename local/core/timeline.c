/* timeline: steps of free resources per node, and the questions a pass asks of them: how many,
 * from when, where; timeline_make.c builds it. Every placement on nodes goes through here, so it
 * is the hottest code of the scheduler: questions never allocate by the heap and never sort. */
#include "local/core/timeline_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- steps -------------------------------------------------------------------------------- */

/* first: no other req of the same job is there. */
static void lane_take (struct timeline *tl, uint32_t node, const struct shape *s, uint32_t tasks,
                       bool first, time_us start, time_us end, int sign, bool running)
{
    struct lane *lane = &tl->lane[node];

    if (end <= tl->now)
        return;
    if (tl->who)
        occupant_change (tl, node, s, s->needs.owner, tasks, start, end, sign);
    if (tl->views && tl->c->access->fenced_at[node]) {
        view_take (tl, tl->c->access->fenced_at[node] - 1, s, tasks, first, start, end, sign,
                   running);
        return;
    }
    if (lane->count == 0)
        return;
    lane_subtract (tl, lane, node, s, tasks, first, start, end, sign);
    /* A running job's end is known to the sweep; any other rise must be looked for in the lane. */
    lane->falls = lane->falls || !running || lane_falls (tl, lane);
    lane_listed (tl, node);
}

bool first_there (const struct timeline *tl, const struct allocation *a, uint32_t i)
{
    return tl->c->job_column == 0 || a->item[i].req == 0 || !earlier_req_there (a, i);
}

void lanes_take (struct timeline *tl, const uint32_t *shape, const struct allocation *a,
                 time_us start, time_us end, int sign, bool running, const uint64_t *only)
{
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t node = a->item[i].node.v;
        if (of_these (only, node))
            lane_take (tl, node, &tl->c->shape[shape[a->item[i].req]], a->item[i].tasks,
                       first_there (tl, a, i), start, end, sign, running);
    }
}

/* For nodes that are asleep. */
static void taken_note (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                        time_us start, time_us end, int sign, bool running)
{
    if (tl->awake == NULL)
        return;
    if (tl->taken_count == tl->taken_cap) {
        uint32_t cap = tl->taken_cap ? tl->taken_cap * 2 : 128;
        struct taken *more = arena_alloc (tl->arena, cap * sizeof *more);
        if (tl->taken_count)
            memcpy (more, tl->taken, tl->taken_count * sizeof *more);
        tl->taken = more;
        tl->taken_cap = cap;
    }
    tl->taken[tl->taken_count++] = (struct taken){w->shape, *a, start, end, sign, running};
}

void timeline_take (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                    time_us start, time_us end, int sign)
{
    taken_note (tl, w, a, start, end, sign, false);
    lanes_take (tl, w->shape, a, start, end, sign, false, tl->awake);
    licences_take (tl, w->licence, w->licence_count, start, end, sign);
}

void timeline_run (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                   time_us end)
{
    taken_note (tl, w, a, tl->now, end, 1, true);
    lanes_take (tl, w->shape, a, tl->now, end, 1, true, tl->awake);
    licences_take (tl, w->licence, w->licence_count, tl->now, end, 1);
}

void timeline_restrict (struct timeline *tl, const struct allocation *a)
{
    bool *keep = arena_array (tl->arena, tl->node_count + 1, sizeof *keep);

    for (uint32_t i = 0; i < a->count; i++)
        keep[a->item[i].node.v] = true;
    for (uint32_t n = 0; n < tl->node_count; n++) {
        if (!keep[n])
            tl->lane[n].count = 0;
    }
    if (tl->views)
        tl->views->only = keep;
}

/* --- counting ----------------------------------------------------------------------------- */

uint64_t timeline_count (struct timeline *tl, const struct shape *s, time_us start,
                         duration_us duration, uint64_t enough)
{
    time_us end = time_add (start, duration);
    uint64_t sum = 0;

    assert (tl->awake == NULL || start <= tl->now);
    timeline_view (tl, s->access);
    if (s->needs.group)
        return group_count (tl, s, start, end, enough);
    if (start <= tl->now) {
        uint32_t count;
        const uint32_t *open = open_nodes (tl, &count);
        for (uint32_t i = 0; i < count && sum < enough; i++)
            sum += node_allowed (tl, s, open[i]) ? lane_fit (tl, s, open[i], start, end) : 0;
        return sum;
    }
    for (uint32_t n = next_node (tl, s, start, 0); n < tl->node_count;
         n = next_node (tl, s, start, n + 1)) {
        sum += lane_fit (tl, s, n, start, end);
        if (sum >= enough)
            break;
    }
    return sum;
}

/* --- changes of what fits over possible starts ---------------------------------------------- */

/* A lane on which free resources only grow. Returns what fits at `from`. */
static uint32_t lane_rises (struct timeline *tl, const struct shape *s, uint32_t node, time_us from)
{
    const struct lane *lane = &tl->lane[node];
    uint32_t i = step_find (tl, lane, from);
    uint32_t fit = step_fit (tl, s, node, step_at (tl, lane, i)), first = fit;

    while (++i < lane->count) {
        const struct step *step = step_at (tl, lane, i);
        uint32_t next = step_fit (tl, s, node, step);
        tl->up[step->bound] += (int64_t)next - fit;
        fit = next;
    }
    return first;
}

/* Of a lane: from t on so many tasks fit, until the next. */
/* Fills up and down for all lanes; returns what fits at `from`. */
static int64_t changes_fill (struct timeline *tl, const struct shape *s, duration_us duration,
                             time_us from, time_us until)
{
    int64_t sum = 0;

    for (uint32_t n = 0; n < tl->node_count; n++) {
        if (tl->lane[n].count == 0 || !shape_suits (tl->c, s, n))
            continue;
        sum += tl->lane[n].falls ? lane_slides (tl, s, n, from, until, duration).fit
                                 : lane_rises (tl, s, n, from);
    }
    return sum;
}

static void changes_clear (struct timeline *tl)
{
    memset (tl->up, 0, tl->bound_count * sizeof *tl->up);
    memset (tl->down, 0, tl->bound_count * sizeof *tl->down);
}

/* Walks the moments after `from` at which the sum changes, in ascending order. */
struct walk {
    uint32_t u, d;
};

static bool walk_next (const struct timeline *tl, struct walk *w, time_us from,
                       duration_us duration, time_us *at, int64_t *change)
{
    time_us up, down;

    while (w->u < tl->bound_count &&
           (tl->bound[tl->sorted[w->u]] <= from || tl->up[tl->sorted[w->u]] == 0))
        w->u++;
    while (w->d < tl->bound_count && tl->down[tl->sorted[w->d]] == 0)
        w->d++;
    up = w->u < tl->bound_count ? tl->bound[tl->sorted[w->u]] : TIME_US_MAX;
    down = w->d < tl->bound_count ? tl->bound[tl->sorted[w->d]] - duration + 1 : TIME_US_MAX;
    if (up == TIME_US_MAX && down == TIME_US_MAX)
        return false;
    *at = up < down ? up : down;
    *change = 0;
    if (up == *at)
        *change += tl->up[tl->sorted[w->u++]];
    if (down == *at)
        *change += tl->down[tl->sorted[w->d++]];
    return true;
}

/* --- the earliest start, from the present moment on ------------------------------------------ */

enum { AHEAD = 8 };

/* What fits now on open nodes; lanes that fall enter their changes into up and down. */
static int64_t sweep_begin (struct timeline *tl, const struct shape *s, time_us until,
                            duration_us duration)
{
    struct cluster *c = tl->c;
    int64_t sum = 0;

    memcpy (tl->reach, c->open.word, bitset_words (c->node_count) * sizeof *tl->reach);
    for (uint32_t n = next_node (tl, s, tl->now, 0); n < tl->node_count;
         n = next_node (tl, s, tl->now, n + 1)) {
        if (tl->lane[n].count && !tl->lane[n].falls)
            sum += step_fit (tl, s, n, step_at (tl, &tl->lane[n], 0));
    }
    for (uint32_t i = 0; i < tl->falling_count; i++) {
        uint32_t n = tl->falling[i];
        uint64_t bit = UINT64_C (1) << (n & 63);
        struct slide slide;
        if (i + 2 * AHEAD < tl->falling_count) {
            __builtin_prefetch (&tl->lane[tl->falling[i + 2 * AHEAD]]);
            __builtin_prefetch (tl->lane[tl->falling[i + AHEAD]].step);
        }
        if (!tl->lane[n].falls || tl->lane[n].count == 0 || !shape_suits (c, s, n))
            continue;
        slide = lane_slides (tl, s, n, tl->now, until, duration);
        tl->reach[n >> 6] &= ~bit;
        if (slide.fit > 0 || slide.moves)
            tl->reach[n >> 6] |= bit;
        sum += slide.fit;
    }
    return sum;
}

/* The nodes of the i-th running job, wherever they are, into the last moment of `ends`. */
static void ends_add (struct timeline *tl, uint32_t i, uint32_t *last)
{
    const struct cluster *c = tl->c;
    struct ends *ends = &tl->ends;
    const struct allocation *a = &job_at (c, c->run[i].slot)->allocation;
    uint32_t beyond = ends->at[ends->count - 1].beyond;

    if (i + 2 * AHEAD < c->run_count) {
        __builtin_prefetch (&job_at (c, c->run[i + 2 * AHEAD].slot)->allocation);
        __builtin_prefetch (job_at (c, c->run[i + AHEAD].slot)->allocation.item);
    }
    if (beyond + a->count > ends->node_cap) {
        uint32_t *more, cap = 2 * (beyond + a->count) + tl->node_count;
        more = arena_alloc (tl->arena, cap * sizeof *more);
        if (beyond)
            memcpy (more, ends->node, beyond * sizeof *more);
        ends->node = more;
        ends->node_cap = cap;
    }
    for (uint32_t k = 0; k < a->count; k++) {
        uint32_t n = a->item[k].node.v;
        if (last[n] == ends->count)
            continue;
        last[n] = ends->count;
        ends->node[beyond++] = n;
    }
    ends->at[ends->count - 1].beyond = beyond;
}

/* Made anew only if jobs have started or ended since. */
static const struct ends *ends_now (struct timeline *tl)
{
    const struct cluster *c = tl->c;
    struct ends *ends = &tl->ends;
    uint32_t *last; /* per node: the moment, counted from 1, that it was last in */

    if (ends->serial == c->run_serial)
        return ends;
    if (c->run_count > ends->at_cap) {
        ends->at_cap = c->run_count + c->run_count / 4;
        ends->at = arena_alloc (tl->arena, ends->at_cap * sizeof *ends->at);
    }
    last = arena_array (tl->arena, tl->node_count + 1, sizeof *last);
    ends->serial = c->run_serial;
    ends->count = 0;
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t beyond = i ? ends->at[ends->count - 1].beyond : 0;
        if (i == 0 || c->run[i].end != ends->at[ends->count - 1].t)
            ends->at[ends->count++] = (struct end_at){c->run[i].end, beyond};
        ends_add (tl, i, last);
    }
    return ends;
}

/* What the ends of one moment add on lanes that do not fall. */
static int64_t sweep_end (struct timeline *tl, const struct shape *s, const struct ends *ends,
                          uint32_t i)
{
    int64_t sum = 0;
    uint32_t beyond = ends->at[i].beyond;

    for (uint32_t k = i ? ends->at[i - 1].beyond : 0; k < beyond; k++) {
        uint32_t n = ends->node[k], at;
        const struct lane *lane = &tl->lane[n];
        if (k + AHEAD < beyond)
            __builtin_prefetch (tl->lane[ends->node[k + AHEAD]].step);
        if (lane->falls || lane->count == 0 || !shape_suits (tl->c, s, n))
            continue;
        tl->reach[n >> 6] |= UINT64_C (1) << (n & 63);
        at = step_find (tl, lane, ends->at[i].t);
        if (at > 0)
            sum += (int64_t)step_fit (tl, s, n, step_at (tl, lane, at)) -
                   step_fit (tl, s, n, step_at (tl, lane, at - 1));
    }
    return sum;
}

/* Goes through ends and reservations in order of time, no further than need be. */
static bool sweep (struct timeline *tl, const struct shape *s, uint64_t tasks, duration_us duration,
                   time_us from, time_us until, time_us *out)
{
    const struct ends *ends = ends_now (tl);
    int64_t sum = sweep_begin (tl, s, until, duration);
    struct walk w = {0};
    uint32_t i = 0;
    time_us at = tl->now, next = tl->now, since = tl->now;
    int64_t change = 0;
    bool more = true, found = from <= tl->now && sum >= 0 && (uint64_t)sum >= tasks;

    if (!found)
        more = walk_next (tl, &w, tl->now, duration, &next, &change);
    while (!found && (more || i < ends->count)) {
        at = i < ends->count ? ends->at[i].t : TIME_US_MAX;
        if (more && next < at)
            at = next;
        if (at > from && sum >= 0 && (uint64_t)sum >= tasks) {
            at = from; /* there was room before, and still is */
            found = true;
            break;
        }
        if (at > from && sum > 0)
            trail_below (tl, tasks, since, (uint64_t)sum);
        if (at > until)
            break;
        since = at;
        if (i < ends->count && ends->at[i].t == at)
            sum += sweep_end (tl, s, ends, i++);
        if (more && next == at) {
            sum += change;
            more = walk_next (tl, &w, tl->now, duration, &next, &change);
        }
        found = at >= from && sum >= 0 && (uint64_t)sum >= tasks;
    }
    if (!found && !more && i == ends->count && from > at && from <= until && sum >= 0 &&
        (uint64_t)sum >= tasks) {
        at = from; /* after all that is known */
        found = true;
    }
    changes_clear (tl);
    tl->reach_at = found ? at : TIME_US_NONE;
    if (found)
        *out = at;
    return found;
}

/* The same where jobs are past their limits, which end neither when they should nor now. */
static bool scan (struct timeline *tl, const struct shape *s, uint64_t tasks, duration_us duration,
                  time_us from, time_us until, time_us *out)
{
    struct walk w = {0};
    int64_t change, sum;
    time_us at = from;
    bool found;

    tl->reach_at = TIME_US_NONE;
    trail_below (tl, tasks, tl->now, UINT64_MAX);
    sum = changes_fill (tl, s, duration, at, until);
    found = (uint64_t)sum >= tasks;
    while (!found && walk_next (tl, &w, from, duration, &at, &change) && at <= until) {
        sum += change;
        found = sum >= 0 && (uint64_t)sum >= tasks;
    }
    changes_clear (tl);
    if (found)
        *out = at;
    return found;
}

static bool earliest (struct timeline *tl, const struct shape *s, uint64_t tasks,
                      duration_us duration, time_us from, time_us until, time_us *out)
{
    if (s->needs.group)
        return group_earliest (tl, s, tasks, duration, from, until, out);
    if (tl->c->run_count == 0 || tl->c->run[0].end > tl->now)
        return sweep (tl, s, tasks, duration, from, until, out);
    return scan (tl, s, tasks, duration, from, until, out);
}

bool timeline_earliest (struct timeline *tl, const struct shape *s, uint64_t tasks,
                        duration_us duration, time_us from, time_us until, time_us *out)
{
    time_us begin = from < tl->now ? tl->now : from;
    time_us soon = time_add (tl->latest, (tl->latest - tl->now) / 4);
    struct place_trail before;
    bool found = false;

    assert (tl->awake == NULL && "asked of later moments");
    timeline_view (tl, s->access);
    /* Most answers lie among those of other questions, and what is later need not be looked at. */
    if (soon > begin && soon < until) {
        before = tl->trail;
        found = earliest (tl, s, tasks, duration, begin, soon, out);
        if (!found)
            tl->trail = before;
    }
    found = found || earliest (tl, s, tasks, duration, begin, until, out);
    if (found && *out > tl->latest)
        tl->latest = *out;
    return found;
}

void timeline_starts (struct timeline *tl, const struct shape *s, uint64_t tasks,
                      duration_us duration, time_us from, time_us until, interval_fn fn, void *self)
{
    struct walk w = {0};
    int64_t change;
    time_us at = from < tl->now ? tl->now : from, begin = at, since = TIME_US_NONE;
    int64_t sum;
    bool more = true;

    assert (tl->awake == NULL && "asked of later moments");
    timeline_view (tl, s->access);
    if (s->needs.group) {
        group_starts (tl, s, tasks, duration, at, until, fn, self);
        return;
    }
    sum = changes_fill (tl, s, duration, at, until);

    if ((uint64_t)sum >= tasks)
        since = at;
    while (more && walk_next (tl, &w, begin, duration, &at, &change) && at <= until) {
        sum += change;
        if (since == TIME_US_NONE && (uint64_t)sum >= tasks) {
            since = at;
        } else if (since != TIME_US_NONE && (uint64_t)sum < tasks) {
            more = fn (self, since, at - 1);
            since = TIME_US_NONE;
        }
    }
    if (more && since != TIME_US_NONE && since <= until)
        (void)fn (self, since, until);
    changes_clear (tl);
}

uint32_t timeline_bounds (const struct timeline *tl)
{
    return tl->bound_count;
}

time_us timeline_next_bound (const struct timeline *tl, uint32_t bounds, time_us t,
                             duration_us duration)
{
    time_us next = TIME_US_MAX;

    for (uint32_t i = 0; i < bounds; i++) {
        time_us up = tl->bound[i], down = tl->bound[i] - duration + 1;
        if (up > t && up < next)
            next = up;
        if (down > t && down < next)
            next = down;
    }
    for (uint32_t i = 0; i < tl->licence_count; i++) {
        time_us up = tl->licence[i].t, down = up - duration + 1;
        if (up > t && up < next)
            next = up;
        if (down > t && down < next)
            next = down;
    }
    return next;
}

/* --- windows ------------------------------------------------------------------------------ */

/* Calls for each moment at which free resources of a node that is open now become fewer. */
static duration_us window_scan (const struct timeline *tl, duration_us least, duration_us below)
{
    duration_us best = below ? 0 : TIME_US_MAX;

    for (uint32_t n = 0; n < tl->node_count; n++) {
        const struct lane *lane = &tl->lane[n];
        if (!lane->falls || step_at (tl, lane, 0)->free[RES_PROCS] <= 0)
            continue;
        for (uint32_t i = 1; i < lane->count; i++) {
            const struct step *a = step_at (tl, lane, i - 1), *b = step_at (tl, lane, i);
            duration_us length = b->t - tl->now;
            bool fewer = false;
            for (uint32_t d = 0; d < tl->dims; d++)
                fewer = fewer || b->free[d] < a->free[d];
            if (tl->who && occupants_begin (tl, n, b->t))
                fewer = true;
            if (!fewer)
                continue;
            if (below ? length < below && length > best : length >= least && length < best)
                best = length;
            if (b->free[RES_PROCS] <= 0)
                break;
        }
    }
    return best;
}

duration_us timeline_window (const struct timeline *tl, duration_us least)
{
    return window_scan (tl, least, 0);
}

duration_us timeline_window_below (const struct timeline *tl, duration_us below)
{
    return window_scan (tl, 0, below);
}

void timeline_free (const struct timeline *tl, duration_us length, uint32_t *nodes_out,
                    uint64_t *procs_out)
{
    time_us end = time_add (tl->now, length);

    *nodes_out = 0;
    *procs_out = 0;
    for (uint32_t n = 0; n < tl->node_count; n++) {
        const struct lane *lane = &tl->lane[n];
        int32_t least = lane->count ? step_at (tl, lane, 0)->free[RES_PROCS] : 0;
        for (uint32_t i = 1; lane->falls && i < lane->count && step_at (tl, lane, i)->t < end;
             i++) {
            if (step_at (tl, lane, i)->free[RES_PROCS] < least)
                least = step_at (tl, lane, i)->free[RES_PROCS];
        }
        if (least > 0) {
            *nodes_out += 1;
            *procs_out += (uint64_t)least;
        }
    }
}

/* --- conflicts ---------------------------------------------------------------------------- */

uint32_t timeline_lacks (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                         time_us start, time_us end)
{
    uint32_t i, lacks = UINT32_MAX;
    time_us from = start > tl->now ? start : tl->now;

    assert (tl->awake == NULL && "asked of later moments");
    if (a->count)
        timeline_view (tl, tl->c->shape[w->shape[a->item[0].req]].access);
    if (!timeline_licensed (tl, w, from, end))
        return a->count;
    for (i = 0; i < a->count && lacks == UINT32_MAX; i++) {
        struct allocation one = {1, &a->item[i]};
        const struct shape *s = &tl->c->shape[w->shape[a->item[i].req]];
        if (lane_fit (tl, s, a->item[i].node.v, from, end) < a->item[i].tasks)
            lacks = i;
        else
            lanes_take (tl, w->shape, &one, start, end, 1, false, NULL);
    }
    for (uint32_t k = 0; k < (lacks == UINT32_MAX ? a->count : lacks); k++) {
        struct allocation one = {1, &a->item[k]};
        lanes_take (tl, w->shape, &one, start, end, -1, false, NULL);
    }
    return lacks;
}
