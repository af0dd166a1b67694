/* forward: kinds of waiting jobs, a profile of free processors, and the walk of the pass over
 * them. simulate.c makes its draws with it where processors are all that counts. It must follow
 * the core's pass exactly: what the core changes in order, reservations or backfill changes here
 * too. */
#include "local/estimate/forward.h"

#include <stdlib.h>
#include <string.h>

#include "local/estimate/endings.h"
#include "proto/base/mem.h"

enum { BLOCK = 32 }; /* jobs of the queue under one note of the smallest */

struct waiting {
    duration_us limit;
    duration_us run;
    uint32_t procs;
    uint32_t which; /* place in setup.job; UINT32_MAX: came later */
    uint32_t next;  /* of the same kind, further back; UINT32_MAX: none */
    uint32_t skip;  /* of one that has started: a place further back, all between have too */
    double prio, slope;
};

/* Waiting jobs that are alike to the pass: where one does not fit, none does. */
struct kind {
    uint32_t procs;
    duration_us limit;
    uint32_t head, tail; /* in the queue; head may have started already; UINT32_MAX: none */
};

struct active { /* sorted by limit_end */
    time_us limit_end;
    uint32_t procs;
    uint32_t id;
};

struct entered { /* by id */
    time_us limit_end;
    uint32_t procs;
};

struct forward {
    const struct forward_setup *s;
    time_us now;
    int64_t free;
    struct waiting *queue;
    uint32_t count, cap;
    bool by_kind; /* the order is fixed: look at kinds, not at all jobs */
    struct kind *kind;
    uint32_t kind_count, kind_cap;
    uint32_t *table; /* kinds + 1, by what they are */
    uint32_t table_size;
    uint32_t *small; /* kinds by processors, the smallest first */
    uint32_t small_cap;
    uint32_t *fit; /* kinds with something that fits */
    uint32_t fit_cap;
    uint32_t *least; /* processors, by block */
    uint32_t least_cap;
    struct active *active;
    uint32_t active_count, active_cap;
    struct endings endings;
    struct entered *entered;
    uint32_t entered_count, entered_cap;
    /* promises of this pass: with one, shadow and extra; else the profile */
    uint32_t promised;
    time_us shadow;
    int64_t extra;
    bool profiled;
    time_us *t;
    int64_t *have;
    uint32_t steps, steps_cap;
    time_us ordered; /* when the order was last made */
    bool stale;      /* notes of blocks are out of date */
    time_us *starts;
    time_us found;
    uint32_t first;  /* the first of the queue that waits */
    uint32_t gone;   /* places of the queue whose job has started */
    uint32_t left;   /* of the queue given, still waiting */
    uint32_t ghosts; /* still to come */
    uint64_t work;
    struct forward_job coming;
    time_us arrival;
};

enum { GONE = UINT32_MAX }; /* waiting.procs of a job that has started */

struct forward *forward_create (void)
{
    struct forward *f = mem_zero (1, sizeof *f);

    return f;
}

void forward_destroy (struct forward *f)
{
    if (f == NULL)
        return;
    free (f->queue);
    free (f->least);
    free (f->kind);
    free (f->table);
    free (f->small);
    free (f->fit);
    free (f->active);
    endings_free (&f->endings);
    free (f->entered);
    free (f->t);
    free (f->have);
    free (f);
}

/* --- running jobs ------------------------------------------------------------------------- */

/* Where a job of this end belongs among the active. */
static uint32_t active_place (const struct forward *f, time_us limit_end)
{
    uint32_t low = 0, high = f->active_count;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (f->active[mid].limit_end < limit_end)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void enter (struct forward *f, uint32_t procs, time_us limit_end, time_us end)
{
    uint32_t at = active_place (f, limit_end), id = f->entered_count++;

    f->active = mem_grow (f->active, &f->active_cap, f->active_count + 1, sizeof *f->active);
    memmove (f->active + at + 1, f->active + at, (f->active_count - at) * sizeof *f->active);
    f->active[at] = (struct active){limit_end, procs, id};
    f->active_count++;
    f->entered = mem_grow (f->entered, &f->entered_cap, f->entered_count, sizeof *f->entered);
    f->entered[id] = (struct entered){limit_end, procs};
    endings_add (&f->endings, end, id);
}

static void leave_first (struct forward *f)
{
    uint64_t id = endings_pop (&f->endings).id;
    uint32_t at = active_place (f, f->entered[id].limit_end);

    while (f->active[at].id != id)
        at++;
    f->active_count--;
    memmove (f->active + at, f->active + at + 1, (f->active_count - at) * sizeof *f->active);
    f->free += f->entered[id].procs;
}

/* --- the queue ---------------------------------------------------------------------------- */

static double prio_now (const struct forward *f, const struct waiting *w)
{
    return w->prio + w->slope * (double)((f->now - f->s->now) / US_PER_S);
}

static uint32_t kind_hash (uint32_t procs, duration_us limit)
{
    uint64_t h = (procs ^ (uint64_t)limit << 20) * UINT64_C (0x9E3779B97F4A7C15);

    return (uint32_t)(h >> 32);
}

static uint32_t *kind_place (struct forward *f, uint32_t procs, duration_us limit)
{
    uint32_t at = kind_hash (procs, limit) & (f->table_size - 1);

    while (f->table[at] &&
           (f->kind[f->table[at] - 1].procs != procs || f->kind[f->table[at] - 1].limit != limit))
        at = (at + 1) & (f->table_size - 1);
    return &f->table[at];
}

static void table_make (struct forward *f, uint32_t size)
{
    free (f->table);
    f->table = mem_zero (size, sizeof *f->table);
    f->table_size = size;
    for (uint32_t k = 0; k < f->kind_count; k++)
        *kind_place (f, f->kind[k].procs, f->kind[k].limit) = k + 1;
}

/* Nobody has waited of this kind yet. */
static void kind_new (struct forward *f, uint32_t procs, duration_us limit)
{
    uint32_t at = f->kind_count;

    f->kind = mem_grow (f->kind, &f->kind_cap, f->kind_count + 1, sizeof *f->kind);
    f->small = mem_grow (f->small, &f->small_cap, f->kind_count + 1, sizeof *f->small);
    f->kind[f->kind_count] = (struct kind){procs, limit, UINT32_MAX, UINT32_MAX};
    for (; at > 0 && f->kind[f->small[at - 1]].procs > procs; at--)
        f->small[at] = f->small[at - 1];
    f->small[at] = f->kind_count++;
}

/* The job at place i of the queue is the last of its kind. */
static void kind_add (struct forward *f, uint32_t i)
{
    struct waiting *w = &f->queue[i];
    uint32_t *place;
    struct kind *k;

    if ((f->kind_count + 1) * 2 > f->table_size)
        table_make (f, f->table_size ? f->table_size * 2 : 256);
    place = kind_place (f, w->procs, w->limit);
    w->next = UINT32_MAX;
    if (*place == 0) {
        kind_new (f, w->procs, w->limit);
        *place = f->kind_count;
    }
    k = &f->kind[*place - 1];
    if (k->head == UINT32_MAX)
        k->head = i;
    else
        f->queue[k->tail].next = i;
    k->tail = i;
}

static void block_note (struct forward *f, uint32_t b)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = b * BLOCK; i < f->count && i < (b + 1) * BLOCK; i++)
        least = f->queue[i].procs < least ? f->queue[i].procs : least;
    f->least[b] = least;
}

/* Closes the gaps and notes all blocks. */
static void queue_tidy (struct forward *f)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < f->count; i++) {
        if (f->queue[i].procs != GONE)
            f->queue[kept++] = f->queue[i];
    }
    f->work += f->count;
    f->count = kept;
    f->gone = f->first = 0;
    f->least = mem_grow (f->least, &f->least_cap, f->count / BLOCK + 1, sizeof *f->least);
    for (uint32_t b = 0; b <= f->count / BLOCK; b++)
        block_note (f, b);
    f->stale = false;
}

static void join (struct forward *f, const struct forward_job *job)
{
    struct waiting w = {job->limit, job->run, job->procs, UINT32_MAX,
                        UINT32_MAX, 0,        job->prio,  job->slope};
    uint32_t at;

    if (f->s->reorders) {
        w.prio -= w.slope * (double)((f->now - f->s->now) / US_PER_S); /* it was for its arrival */
        if (f->gone)
            queue_tidy (f);
    }
    at = f->count;
    f->queue = mem_grow (f->queue, &f->cap, f->count + 1, sizeof *f->queue);
    while (f->s->reorders && at > 0 && prio_now (f, &f->queue[at - 1]) < prio_now (f, &w))
        at--;
    memmove (f->queue + at + 1, f->queue + at, (f->count - at) * sizeof *f->queue);
    f->queue[at] = w;
    f->count++;
    if (f->by_kind) {
        kind_add (f, at);
        return;
    }
    if (at + 1 < f->count) {
        f->stale = true;
        return;
    }
    f->least = mem_grow (f->least, &f->least_cap, f->count / BLOCK + 1, sizeof *f->least);
    if (at % BLOCK == 0 || w.procs < f->least[at / BLOCK])
        f->least[at / BLOCK] = w.procs;
    if (f->count % BLOCK == 0)
        f->least[f->count / BLOCK] = UINT32_MAX;
}

/* Almost in order: insertion. */
static void reorder (struct forward *f)
{
    f->ordered = f->now;
    if (f->gone)
        queue_tidy (f);
    f->work += f->count;
    for (uint32_t i = 1; i < f->count; i++) {
        struct waiting w = f->queue[i];
        double prio = prio_now (f, &w);
        uint32_t at = i;
        if (prio_now (f, &f->queue[at - 1]) >= prio)
            continue;
        for (; at > 0 && prio_now (f, &f->queue[at - 1]) < prio; at--)
            f->queue[at] = f->queue[at - 1];
        f->queue[at] = w;
        f->stale = true;
    }
}

/* --- promises ----------------------------------------------------------------------------- */

static void step_add (struct forward *f, uint32_t at, time_us t, int64_t have)
{
    uint32_t cap = f->steps_cap;

    f->t = mem_grow (f->t, &cap, f->steps + 1, sizeof *f->t);
    f->have = mem_grow (f->have, &f->steps_cap, f->steps + 1, sizeof *f->have);
    memmove (f->t + at + 1, f->t + at, (f->steps - at) * sizeof *f->t);
    memmove (f->have + at + 1, f->have + at, (f->steps - at) * sizeof *f->have);
    f->t[at] = t;
    f->have[at] = have;
    f->steps++;
}

static uint32_t step_split (struct forward *f, time_us t)
{
    uint32_t low = 0, high = f->steps;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (f->t[mid] <= t)
            low = mid;
        else
            high = mid;
    }
    if (f->t[low] == t)
        return low;
    step_add (f, low + 1, t, f->have[low]);
    return low + 1;
}

static time_us after (time_us t, duration_us d)
{
    return d > TIME_US_MAX - t ? TIME_US_MAX : t + d;
}

static void profile_take (struct forward *f, time_us start, time_us end, int64_t procs)
{
    uint32_t i = step_split (f, start), stop = step_split (f, end);

    for (; i < stop; i++)
        f->have[i] -= procs;
}

static void profile_make (struct forward *f)
{
    f->steps = 0;
    step_add (f, 0, f->now, f->free);
    for (uint32_t i = 0; i < f->active_count; i++) {
        uint32_t last = f->steps - 1;
        if (f->active[i].limit_end > f->t[last])
            step_add (f, f->steps, f->active[i].limit_end, f->have[last] + f->active[i].procs);
        else
            f->have[last] += f->active[i].procs;
    }
    f->profiled = true;
}

static bool fits (const struct forward *f, const struct waiting *w)
{
    time_us end = after (f->now, w->limit);

    if (w->procs > f->free)
        return false;
    if (f->profiled) {
        for (uint32_t i = 0; i < f->steps && f->t[i] < end; i++) {
            if (f->have[i] < w->procs)
                return false;
        }
        return true;
    }
    return f->promised == 0 || end <= f->shadow || w->procs <= f->extra;
}

/* False: nothing that runs will ever leave enough. */
static bool promise (struct forward *f, const struct waiting *w)
{
    if (f->s->depth == 1) {
        int64_t sum = f->free;
        for (uint32_t i = 0; i < f->active_count; i++) {
            sum += f->active[i].procs;
            if (sum < w->procs ||
                (i + 1 < f->active_count && f->active[i + 1].limit_end == f->active[i].limit_end))
                continue;
            f->shadow = f->active[i].limit_end;
            f->extra = sum - w->procs;
            f->promised++;
            return true;
        }
        return false;
    }
    if (!f->profiled)
        profile_make (f);
    for (uint32_t i = 0; i < f->steps;) {
        time_us end = after (f->t[i], w->limit);
        uint32_t j = i;
        while (j < f->steps && f->have[j] >= w->procs && f->t[j] < end)
            j++;
        if (j > i && (j == f->steps || f->t[j] >= end)) {
            profile_take (f, f->t[i], end, w->procs);
            f->promised++;
            return true;
        }
        i = j + 1;
    }
    return false;
}

/* --- the pass ----------------------------------------------------------------------------- */

/* The job at place i of the queue starts. */
static void start (struct forward *f, uint32_t i)
{
    struct waiting *w = &f->queue[i];
    time_us limit_end = after (f->now, w->limit);

    if (f->profiled)
        profile_take (f, f->now, limit_end, w->procs);
    else if (f->promised && limit_end > f->shadow)
        f->extra -= w->procs;
    f->free -= w->procs;
    enter (f, w->procs, limit_end, after (f->now, w->run < w->limit ? w->run : w->limit));
    if (w->which != UINT32_MAX) {
        f->left--;
        if (f->starts)
            f->starts[w->which] = f->now;
        if (w->which == f->s->target)
            f->found = f->now;
    }
    if (!f->by_kind && f->least[i / BLOCK] == w->procs) {
        w->procs = GONE;
        block_note (f, i / BLOCK);
    }
    w->procs = GONE;
    w->skip = i + 1;
    f->gone++;
}

/* The first at or behind i that waits. */
static uint32_t waiting_from (struct forward *f, uint32_t i)
{
    while (i < f->count && f->queue[i].procs == GONE) {
        uint32_t next = f->queue[i].skip;
        if (next < f->count && f->queue[next].procs == GONE)
            f->queue[i].skip = f->queue[next].skip;
        i = next;
    }
    return i;
}

static void backfill_best (struct forward *f, uint32_t from)
{
    for (;;) {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = from; i < f->count; i++) {
            if (f->queue[i].procs != GONE &&
                (best == UINT32_MAX || f->queue[i].procs > f->queue[best].procs) &&
                fits (f, &f->queue[i]))
                best = i;
        }
        f->work += f->count - from;
        if (best == UINT32_MAX)
            return;
        start (f, best);
    }
}

/* Are there not so many processors at all? */
static bool never (const struct forward *f, const struct waiting *w)
{
    int64_t sum = f->free;

    for (uint32_t i = 0; i < f->active_count; i++)
        sum += f->active[i].procs;
    return sum < w->procs;
}

/* Starts or promises in the order of priority; the first place that may have neither. One for which there
 * is never room holds nobody up. */
static uint32_t priority_walk (struct forward *f)
{
    f->first = waiting_from (f, f->first);
    for (uint32_t i = f->first; i < f->count && f->free > 0; i = waiting_from (f, i + 1)) {
        f->work++;
        if (fits (f, &f->queue[i]))
            start (f, i);
        else if (f->s->backfill && f->promised < f->s->depth)
            (void)promise (f, &f->queue[i]);
        else if (f->s->backfill || !never (f, &f->queue[i]))
            return i;
    }
    return UINT32_MAX;
}

/* Looks at every job behind `from`; blocks of the queue in which all are too large are passed over.
 */
static void backfill_blocks (struct forward *f, uint32_t from)
{
    for (uint32_t i = from; i < f->count && f->free > 0; i++) {
        f->work++;
        if (i % BLOCK == 0 && f->least[i / BLOCK] > f->free)
            i += BLOCK - 1;
        else if (f->queue[i].procs != GONE && fits (f, &f->queue[i]))
            start (f, i);
    }
}

/* The first waiting job of the kind behind `from`. Those ahead wait with a promise, and are few; those
 * that have started are taken out of the chain. */
static uint32_t kind_first (struct forward *f, struct kind *k, uint32_t from)
{
    uint32_t *link = &k->head, before = UINT32_MAX;

    while (*link != UINT32_MAX) {
        uint32_t i = *link;
        if (f->queue[i].procs == GONE) {
            *link = f->queue[i].next;
            k->tail = *link == UINT32_MAX ? before : k->tail;
        } else if (i < from) {
            before = i;
            link = &f->queue[i].next;
        } else {
            return i;
        }
    }
    return UINT32_MAX;
}

/* The same start by start, through the first of each kind: starts only take, so what does not fit
 * once does not fit later in the pass. */
static void backfill_kinds (struct forward *f, uint32_t from)
{
    uint32_t count = 0, seen = 0;

    f->fit = mem_grow (f->fit, &f->fit_cap, f->kind_count, sizeof *f->fit);
    for (; seen < f->kind_count && f->kind[f->small[seen]].procs <= f->free; seen++) {
        struct kind *k = &f->kind[f->small[seen]];
        struct waiting as = {.limit = k->limit, .procs = k->procs};
        if (k->head != UINT32_MAX && fits (f, &as) && kind_first (f, k, from) != UINT32_MAX)
            f->fit[count++] = f->small[seen];
    }
    f->work += seen / 2 + 1;
    while (count > 0) {
        uint32_t best = UINT32_MAX, kept = 0;
        for (uint32_t n = 0; n < count; n++) {
            struct kind *k = &f->kind[f->fit[n]];
            struct waiting as = {.limit = k->limit, .procs = k->procs};
            uint32_t i = fits (f, &as) ? kind_first (f, k, from) : UINT32_MAX;
            if (i == UINT32_MAX)
                continue;
            f->fit[kept++] = f->fit[n];
            best = i < best ? i : best;
        }
        f->work += count;
        count = kept;
        if (best != UINT32_MAX)
            start (f, best);
    }
}

static void pass (struct forward *f)
{
    uint32_t from;

    f->promised = 0;
    f->profiled = false;
    if (f->s->reorders && (f->count < 256 || f->now - f->ordered > 900 * US_PER_S))
        reorder (f);
    if (!f->by_kind && (f->stale || f->gone * 4 > f->count + 64))
        queue_tidy (f);
    from = priority_walk (f);
    if (from == UINT32_MAX || !f->s->backfill)
        return;
    if (f->s->best_fit)
        backfill_best (f, from);
    else if (f->by_kind)
        backfill_kinds (f, from);
    else
        backfill_blocks (f, from);
}

/* Behind everybody: after the pass, what would still fit. */
static void ghosts_look (struct forward *f)
{
    bool blocked = !f->s->backfill && f->gone < f->count;

    for (uint32_t i = 0; i < f->s->ghost_count && f->free > 0 && !blocked; i++) {
        struct forward_ghost *g = &f->s->ghost[i];
        struct waiting w = {.limit = g->limit, .procs = g->procs};
        if (g->start != TIME_US_NONE || !fits (f, &w))
            continue;
        g->start = f->now;
        f->ghosts--;
    }
    f->work += f->s->ghost_count / 4;
}

/* --- one draw ----------------------------------------------------------------------------- */

static void arrival_take (struct forward *f)
{
    if (f->s->next == NULL || !f->s->next (f->s->self, &f->arrival, &f->coming))
        f->arrival = TIME_US_MAX;
}

void forward_begin (struct forward *f, const struct forward_setup *s, time_us *starts)
{
    f->s = s;
    f->now = s->now;
    f->free = s->procs_free;
    f->active_count = f->endings.count = f->entered_count = 0;
    f->active = mem_grow (f->active, &f->active_cap, s->run_count + 1, sizeof *f->active);
    for (uint32_t i = 0; i < s->run_count; i++)
        enter (f, s->run[i].procs, s->run[i].limit_end, s->run[i].end);
    f->count = f->left = s->job_count;
    f->queue = mem_grow (f->queue, &f->cap, s->job_count + 1, sizeof *f->queue);
    for (uint32_t i = 0; i < s->job_count; i++) {
        const struct forward_job *j = &s->job[i];
        f->queue[i] =
            (struct waiting){j->limit, j->run, j->procs, i, UINT32_MAX, 0, j->prio, j->slope};
        if (starts)
            starts[i] = TIME_US_NONE;
    }
    for (uint32_t i = 0; i < s->ghost_count; i++)
        s->ghost[i].start = TIME_US_NONE;
    f->ghosts = s->ghost_count;
    f->ordered = s->now;
    f->starts = starts;
    f->found = TIME_US_NONE;
    f->work = s->run_count + s->job_count;
    f->by_kind = !s->reorders && s->backfill && !s->best_fit;
    f->gone = f->first = f->kind_count = 0;
    if (f->by_kind) {
        table_make (f, 256);
        for (uint32_t i = 0; i < f->count; i++)
            kind_add (f, i);
    } else {
        queue_tidy (f);
    }
    arrival_take (f);
    pass (f);
    ghosts_look (f);
}

static bool is_over (const struct forward *f)
{
    if (f->s->target != UINT32_MAX)
        return f->found != TIME_US_NONE;
    return f->left == 0 && f->ghosts == 0;
}

bool forward_go (struct forward *f, uint64_t work)
{
    uint64_t enough = f->work + work;

    while (!is_over (f)) {
        time_us at = endings_next (&f->endings);
        at = f->arrival < at ? f->arrival : at;
        if (at == TIME_US_MAX || at > f->s->until)
            return true;
        if (f->work >= enough)
            return false;
        f->now = at > f->now ? at : f->now;
        for (; endings_next (&f->endings) <= f->now; f->work += 4)
            leave_first (f);
        for (; f->arrival <= f->now; f->work += 16) {
            join (f, &f->coming);
            arrival_take (f);
        }
        pass (f);
        ghosts_look (f);
        f->work += 4;
    }
    return true;
}

uint64_t forward_work (const struct forward *f)
{
    return f->work;
}

time_us forward_found (const struct forward *f)
{
    return f->found;
}
