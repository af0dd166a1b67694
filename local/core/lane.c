/* A node in time: the lane of its steps, how it is split and changed, what fits on it. All that a timeline is asked comes
 * down to this; what looks at several nodes is in timeline.c and above. */
#include <string.h>

#include "local/core/timeline_state.h"

time_us free_until (const struct timeline *tl, const struct shape *s, uint32_t node, time_us end,
                    uint32_t fit)
{
    const struct lane *lane = &tl->lane[node];

    for (uint32_t i = lane->falls ? step_find (tl, lane, end - 1) + 1 : lane->count;
         i < lane->count; i++) {
        if (step_fit (tl, s, node, step_at (tl, lane, i)) < fit)
            return step_at (tl, lane, i)->t;
    }
    return TIME_US_MAX;
}

void bounds_reserve (struct timeline *tl, uint32_t need)
{
    uint32_t cap = tl->bound_cap ? tl->bound_cap : 64;

    if (need <= tl->bound_cap)
        return;
    while (cap < need)
        cap *= 2;
    time_us *bound = arena_array (tl->arena, cap, sizeof *bound);
    uint32_t *sorted = arena_array (tl->arena, cap, sizeof *sorted);
    if (tl->bound_count) {
        memcpy (bound, tl->bound, tl->bound_count * sizeof *bound);
        memcpy (sorted, tl->sorted, tl->bound_count * sizeof *sorted);
    }
    tl->bound = bound;
    tl->sorted = sorted;
    tl->up = arena_array (tl->arena, cap, sizeof *tl->up);
    tl->down = arena_array (tl->arena, cap, sizeof *tl->down);
    tl->bound_cap = cap;
}

uint32_t bound_intern (struct timeline *tl, time_us t)
{
    uint32_t low = 0, high = tl->bound_count;

    if (high && tl->bound[tl->sorted[high - 1]] <= t) /* ends come in ascending order */
        low = tl->bound[tl->sorted[high - 1]] == t ? high - 1 : high;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (tl->bound[tl->sorted[mid]] < t)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < tl->bound_count && tl->bound[tl->sorted[low]] == t)
        return tl->sorted[low];
    bounds_reserve (tl, tl->bound_count + 1);
    memmove (tl->sorted + low + 1, tl->sorted + low, (tl->bound_count - low) * sizeof *tl->sorted);
    tl->sorted[low] = tl->bound_count;
    tl->bound[tl->bound_count] = t;
    return tl->bound_count++;
}

uint32_t step_split (struct timeline *tl, struct lane *lane, time_us t)
{
    uint32_t i = step_find (tl, lane, t);

    if (step_at (tl, lane, i)->t >= t)
        return i;
    if (lane->count == lane->cap) {
        uint32_t cap = lane->cap * 2 + 2;
        unsigned char *step = arena_alloc (tl->arena, (size_t)cap * tl->stride);
        memcpy (step, lane->step, (size_t)lane->count * tl->stride);
        lane->step = step;
        lane->cap = cap;
    }
    memmove (lane->step + (size_t)(i + 1) * tl->stride, lane->step + (size_t)i * tl->stride,
             (size_t)(lane->count - i) * tl->stride);
    lane->count++;
    step_at (tl, lane, i + 1)->t = t;
    step_at (tl, lane, i + 1)->bound = bound_intern (tl, t);
    return i + 1;
}

bool lane_falls (const struct timeline *tl, const struct lane *lane)
{
    for (uint32_t i = 1; i < lane->count; i++) {
        const struct step *a = step_at (tl, lane, i - 1), *b = step_at (tl, lane, i);
        for (uint32_t d = 0; d < tl->dims; d++) {
            if (b->free[d] < a->free[d])
                return true;
        }
    }
    return false;
}

void occupant_change (struct timeline *tl, uint32_t node, const struct shape *s, uint32_t owner,
                      uint32_t tasks, time_us start, time_us end, int sign)
{
    struct occupant one = {.owner = owner,
                           .procs = tasks * (uint32_t)s->procs,
                           .access = s->needs.access,
                           .start = start > tl->now ? start : tl->now,
                           .end = end};

    if (sign > 0)
        occupant_add (tl, node, &one);
    else
        occupant_remove (tl, node, &one);
}

void lane_subtract (struct timeline *tl, struct lane *lane, uint32_t node, const struct shape *s,
                    uint32_t tasks, bool first, time_us start, time_us end, int sign)
{
    uint32_t i = start <= tl->now ? 0 : step_split (tl, lane, start);
    uint32_t stop = end == TIME_US_MAX ? lane->count : step_split (tl, lane, end);

    for (; i < stop; i++) {
        struct step *step = step_at (tl, lane, i);
        if (s->req.exclusive) {
            const int32_t *cap = row (tl->c, tl->c->cap, node);
            for (uint32_t d = 0; d < tl->dims; d++)
                step->free[d] -= sign * cap[d];
            continue;
        }
        for (uint32_t d = 0; d < s->dim_count; d++)
            step->free[s->dim[d]] -= sign * (int32_t)tasks * s->req.task.v[s->dim[d]];
        if (tl->c->job_column && first)
            step->free[tl->c->job_column] -= sign;
    }
}

void lane_listed (struct timeline *tl, uint32_t node)
{
    uint64_t bit = UINT64_C (1) << (node & 63);

    if (!tl->lane[node].falls) {
        tl->falls[node >> 6] &= ~bit;
        return;
    }
    tl->falls[node >> 6] |= bit;
    if (!tl->listed[node]) {
        tl->listed[node] = 1;
        tl->falling[tl->falling_count++] = node;
    }
}

uint32_t lane_fit (const struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                   time_us end)
{
    const struct lane *lane = &tl->lane[node];
    uint32_t i, fit;

    if (lane->count == 0)
        return 0;
    i = step_find (tl, lane, start);
    fit = step_fit (tl, s, node, step_at (tl, lane, i));
    if (!lane->falls)
        return fit;
    while (fit > 0 && ++i < lane->count && step_at (tl, lane, i)->t < end) {
        uint32_t next = step_fit (tl, s, node, step_at (tl, lane, i));
        if (next < fit)
            fit = next;
    }
    return fit;
}

uint32_t next_of (const struct timeline *tl, const struct shape *s, const uint64_t *one,
                  const uint64_t *other, uint32_t n)
{
    const uint64_t *only = tl->only ? tl->only->word : NULL;
    const uint64_t *suits = s->everywhere ? NULL : s->nodes.word;

    for (uint32_t w = n >> 6; w < bitset_words (tl->node_count); w++) {
        uint64_t word = (one ? one[w] : UINT64_MAX) & (other ? other[w] : UINT64_MAX) &
                        (only ? only[w] : UINT64_MAX) & (suits ? suits[w] : UINT64_MAX);
        for (word &= w == n >> 6 ? UINT64_MAX << (n & 63) : UINT64_MAX; word; word &= word - 1) {
            uint32_t node = w * 64 + (uint32_t)__builtin_ctzll (word);
            if (node >= tl->node_count)
                break;
            if (node_plannable (tl->c, node))
                return node;
        }
    }
    return tl->node_count;
}

/* At the present moment only open nodes come into question. */
uint32_t next_node (const struct timeline *tl, const struct shape *s, time_us start, uint32_t n)
{
    return next_of (tl, s,
                    start <= tl->now        ? tl->c->open.word
                    : start == tl->reach_at ? tl->reach
                                            : NULL,
                    NULL, n);
}

const uint32_t *open_nodes (struct timeline *tl, uint32_t *count)
{
    const struct cluster *c = tl->c;

    if (tl->open == NULL || c->run_count > tl->open_run + tl->open_count / 64) {
        if (tl->open == NULL)
            tl->open = arena_alloc (tl->arena, (tl->node_count + 1) * sizeof *tl->open);
        tl->open_run = c->run_count;
        tl->open_count = 0;
        for (uint32_t w = 0; w < bitset_words (tl->node_count); w++) {
            for (uint64_t bits = c->open.word[w]; bits; bits &= bits - 1)
                tl->open[tl->open_count++] = w * 64 + (uint32_t)__builtin_ctzll (bits);
        }
    }
    *count = tl->open_count;
    return tl->open;
}
