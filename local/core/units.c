/* units: room on nodes of one processor each, for jobs of one-processor tasks: a node is free or
 * not, and sets of nodes are bits. The same answers as a timeline's, without one. */
#include "local/core/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t count_bits (const uint64_t *word, uint32_t words)
{
    uint64_t n = 0;

    for (uint32_t w = 0; w < words; w++)
        n += (uint64_t)__builtin_popcountll (word[w]);
    return n;
}

static void drop_bits (uint64_t *word, const uint64_t *other, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        word[w] &= ~other[w];
}

static uint64_t *bits_make (struct pass *p)
{
    return arena_alloc (p->scratch, (p->units.words + 1) * sizeof (uint64_t));
}

bool units_possible (const struct cluster *c, time_us now)
{
    return c->unit_nodes && c->complex_jobs == 0 && c->rsv_count == 0 && c->busy_not_up == 0 &&
           c->policy->node_allocation != NODEALLOC_CPULOAD && places_simply (c) && !narrows (c) &&
           (c->run_count == 0 || c->run[0].end > now);
}

void units_open (struct pass *p)
{
    p->units.words = bitset_words (p->c->node_count);
    p->units.avail = bits_make (p);
    p->units.some = bits_make (p);
}

/* Of these nodes, those without a promise that overlaps [start, end). */
static uint64_t *available (struct pass *p, const uint64_t *from, time_us start, time_us end)
{
    struct units *u = &p->units;

    memcpy (u->avail, from, u->words * sizeof *u->avail);
    for (uint32_t i = 0; i < u->count; i++) {
        if (u->promise[i].start < end && u->promise[i].end > start)
            drop_bits (u->avail, u->promise[i].node, u->words);
    }
    return u->avail;
}

uint64_t units_count (struct pass *p, duration_us duration)
{
    if (p->units.count == 0)
        return (uint64_t)p->c->up_free;
    return count_bits (available (p, p->c->open.word, p->now, time_add (p->now, duration)),
                       p->units.words);
}

/* --- choosing ----------------------------------------------------------------------------- */

static uint32_t take_lowest (const uint64_t *word, uint32_t words, struct placement *item,
                             uint32_t count, uint32_t most)
{
    for (uint32_t w = 0; w < words && count < most; w++) {
        for (uint64_t bits = word[w]; bits && count < most; bits &= bits - 1)
            item[count++] = (struct placement){{w * 64 + (uint32_t)__builtin_ctzll (bits)}, 1, 0};
    }
    return count;
}

static uint32_t take_ranked (const struct pass *p, const uint64_t *word, const uint32_t *order,
                             struct placement *item, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t i = 0; count < most; i++) {
        if (word[order[i] >> 6] >> (order[i] & 63) & 1)
            item[count++] = (struct placement){{order[i]}, 1, 0};
    }
    (void)p;
    return count;
}

/* Those that are promised to somebody soonest first, then those that are promised to nobody. */
static uint32_t take_soonest (struct pass *p, uint64_t *avail, time_us end, struct placement *item,
                              uint32_t most)
{
    struct units *u = &p->units;
    time_us after = TIME_US_NONE;
    uint32_t count = 0;

    while (count < most) {
        time_us next = TIME_US_MAX;
        for (uint32_t i = 0; i < u->count; i++) {
            if (u->promise[i].start >= end && u->promise[i].start > after &&
                u->promise[i].start < next)
                next = u->promise[i].start;
        }
        if (next == TIME_US_MAX)
            return take_lowest (avail, u->words, item, count, most);
        memset (u->some, 0, u->words * sizeof *u->some);
        for (uint32_t i = 0; i < u->count; i++) {
            for (uint32_t w = 0; u->promise[i].start == next && w < u->words; w++)
                u->some[w] |= avail[w] & u->promise[i].node[w];
        }
        count = take_lowest (u->some, u->words, item, count, most);
        drop_bits (avail, u->some, u->words);
        after = next;
    }
    return count;
}

static void take (struct pass *p, uint64_t *avail, time_us end, struct placement *item,
                  uint32_t tasks)
{
    const uint32_t *order = rank_order (p->c);
    uint32_t count;

    if (order)
        count = take_ranked (p, avail, order, item, tasks);
    else if (p->policy->node_allocation == NODEALLOC_LASTAVAILABLE && p->units.count)
        count = take_soonest (p, avail, end, item, tasks);
    else
        count = take_lowest (avail, p->units.words, item, 0, tasks);
    assert (count == tasks);
}

bool units_choose (struct pass *p, uint32_t tasks, duration_us duration, struct allocation *out)
{
    time_us end = time_add (p->now, duration);
    uint64_t *avail;

    if (tasks > p->c->up_free)
        return false;
    avail = available (p, p->c->open.word, p->now, end);
    if (p->units.count && count_bits (avail, p->units.words) < tasks)
        return false;
    out->count = tasks;
    out->item = mem_alloc (tasks * sizeof *out->item);
    take (p, avail, end, out->item, tasks);
    return true;
}

/* --- promises ----------------------------------------------------------------------------- */

static void promise_add (struct pass *p, time_us start, time_us end, const struct allocation *a)
{
    struct units *u = &p->units;
    struct promise *own;

    if (u->count == u->cap) {
        uint32_t cap = u->cap ? u->cap * 2 : 8;
        struct promise *more = arena_alloc (p->scratch, cap * sizeof *more);
        if (u->count)
            memcpy (more, u->promise, u->count * sizeof *more);
        u->promise = more;
        u->cap = cap;
    }
    own = &u->promise[u->count++];
    *own = (struct promise){start, end, bits_make (p)};
    memset (own->node, 0, u->words * sizeof *own->node);
    for (uint32_t i = 0; i < a->count; i++)
        own->node[a->item[i].node.v >> 6] |= UINT64_C (1) << (a->item[i].node.v & 63);
}

/* The next end of a running job or a promise after t. */
static time_us next_end (const struct pass *p, uint32_t run_at, time_us t)
{
    const struct cluster *c = p->c;
    time_us next = run_at < c->run_count ? c->run[run_at].end : TIME_US_MAX;

    for (uint32_t i = 0; i < p->units.count; i++) {
        if (p->units.promise[i].end > t && p->units.promise[i].end < next)
            next = p->units.promise[i].end;
    }
    return next;
}

void units_promise (struct pass *p, time_us start, duration_us duration, const struct allocation *a)
{
    promise_add (p, start, time_add (start, duration), a);
}

bool units_reserve (struct pass *p, uint32_t tasks, duration_us duration, time_us from,
                    time_us *start_out, struct allocation *out)
{
    struct cluster *c = p->c;
    struct units *u = &p->units;
    uint64_t *free_by = bits_make (p), *avail;
    uint64_t count = (uint64_t)c->up_free;
    uint32_t i = 0;
    time_us t = p->now;

    memcpy (free_by, c->open.word, u->words * sizeof *free_by);
    while ((t = next_end (p, i, t)) != TIME_US_MAX) {
        for (; i < c->run_count && c->run[i].end == t; i++) {
            const struct job *job = job_at (c, c->run[i].slot);
            for (uint32_t k = 0; k < job->allocation.count; k++) {
                uint32_t node = job->allocation.item[k].node.v;
                free_by[node >> 6] |= UINT64_C (1) << (node & 63);
            }
            count += c->run[i].procs;
        }
        if (count < tasks || t < from)
            continue;
        avail = available (p, free_by, t, time_add (t, duration));
        if (u->count && count_bits (avail, u->words) < tasks)
            continue;
        out->count = tasks;
        out->item = arena_alloc (p->arena, tasks * sizeof *out->item);
        take (p, avail, time_add (t, duration), out->item, tasks);
        *start_out = t;
        return true;
    }
    return false;
}

/* --- windows ------------------------------------------------------------------------------ */

/* Does the i-th promise begin on an idle node that nobody else was promised before? */
static bool ends_window (struct pass *p, uint32_t i)
{
    struct units *u = &p->units;

    for (uint32_t w = 0; w < u->words; w++) {
        uint64_t bits = p->c->open.word[w] & u->promise[i].node[w];
        for (uint32_t k = 0; k < u->count && bits; k++) {
            if (u->promise[k].start < u->promise[i].start)
                bits &= ~u->promise[k].node[w];
        }
        if (bits)
            return true;
    }
    return false;
}

duration_us units_window (struct pass *p, duration_us least, duration_us below)
{
    duration_us best = below ? 0 : TIME_US_MAX;

    for (uint32_t i = 0; i < p->units.count; i++) {
        duration_us length = p->units.promise[i].start - p->now;
        bool better = below ? length < below && length > best : length >= least && length < best;
        if (better && ends_window (p, i))
            best = length;
    }
    return best;
}
