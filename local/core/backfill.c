/* backfill: jobs of lower priority into what is left, no promise broken.
 *
 * Reservations bound early (Maui's rule): window by window, each as long as some idle nodes stay
 * free. Windows are nested, so that with the widest first a job that fails in its first window
 * would fail in all. Bound late: in one go, each job against every promise. */
#include "local/core/pass.h"

#include <stdlib.h>
#include <string.h>

struct candidate {
    double metric;
    uint32_t at; /* position in the order */
    uint32_t slot;
    duration_us limit;
    bool apart; /* reservations admit it */
};

struct fill {
    struct pass *p;
    struct candidate *list; /* in order of priority: those whose window has not come yet */
    uint32_t count;
    enum limit_level level;
    enum plan_phase phase;
    /* opens another window; false: there is none. NULL: counted_go */
    bool (*next) (struct fill *f);

    /* the window that is being filled, with the n of `own` that may fit in it */
    duration_us length;
    const struct candidate *own;
    uint32_t n, i;
    struct candidate *here; /* room for those */
    bool last;
};

static double metric_of (const struct pass *p, uint32_t slot)
{
    const struct priority_job *pj = &p->c->pj[slot];
    double seconds = (double)p->c->hot[slot].limit / 1e6;

    switch (p->policy->backfill_metric) {
    case BFMETRIC_PROCS:
        return pj->procs;
    case BFMETRIC_PROCSECONDS:
        return pj->procs * seconds;
    case BFMETRIC_SECONDS:
        return seconds;
    case BFMETRIC_NODES:
        return pj->nodes;
    case BFMETRIC_PE:
        return pj->pe;
    case BFMETRIC_PESECONDS:
        return pj->pe * seconds;
    }
    return 0;
}

/* Largest metric first, then the order of priority. */
static int by_metric (const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->metric != y->metric)
        return x->metric > y->metric ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_position (const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* BFCHUNKSIZE: for a while after something came free, small jobs leave it to a large one. */
static uint32_t chunk_procs (struct pass *p)
{
    const struct policy *policy = p->policy;

    if (policy->bf_chunk_procs == 0 || policy->backfill_policy != BACKFILL_FIRSTFIT ||
        p->c->freed_at == TIME_US_NONE ||
        p->now >= time_add (p->c->freed_at, policy->bf_chunk_duration))
        return 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if ((p->mark[i] == MARK_RESERVED || p->mark[i] == MARK_WAITS) &&
            row_at (p, i)->procs >= policy->bf_chunk_procs &&
            (p->mark[i] == MARK_RESERVED || !pass_never (p, i)))
            return policy->bf_chunk_procs;
    }
    return 0;
}

static void tell (struct pass *p, uint32_t i, enum reason_code code, int64_t have, time_us clears)
{
    struct reason why = reason_plain (code);

    why.have = have;
    why.clears = clears;
    p->mark[i] = p->mark[i] == MARK_WAITS ? MARK_TOLD : p->mark[i];
    pass_reason (p, p->order[i], &why);
}

/* Does some reservation let the job in? */
static bool admitted (const struct pass *p, uint32_t slot, const struct job_hot *hot)
{
    return (hot->shape == SLOT_NONE ? job_at (p->c, slot)->access
                                    : p->c->shape[hot->shape].access) != 0;
}

static void candidates_gather (struct fill *f)
{
    struct pass *p = f->p;
    uint32_t chunk = chunk_procs (p), looked = 0;
    uint8_t wanted = f->level == LIMIT_SOFT ? MARK_WAITS : MARK_SOFT;

    f->list = arena_alloc (p->scratch, (p->count + 1) * sizeof *f->list);
    f->count = 0;
    if (p->c->up_free > 0)
        space_now_all (p);
    /* Those over a soft limit were passed over wherever the walk by priority ended. */
    for (uint32_t i = f->level == LIMIT_SOFT ? p->first_free : 0; i < p->count && p->c->up_free > 0;
         i++) {
        uint32_t slot = p->order[i];
        const struct job_hot *hot = row_at (p, i);
        if (p->mark[i] != wanted || data_awaited (p, slot))
            continue;
        looked++;
        if (p->policy->backfill_depth && looked <= p->policy->backfill_depth && pass_never (p, i)) {
            looked--; /* who can never run takes nobody's place */
            continue;
        }
        if (p->policy->backfill_depth && looked > p->policy->backfill_depth) {
            tell (p, i, REASON_DEPTH, p->policy->backfill_depth, TIME_US_NONE);
            continue;
        }
        if (space_lacks (p, hot) ||
            space_unlicensed (p, slot, hot)) /* too little even for a moment */
            continue;
        if (qos_flags (p, slot) & QOS_NOBF) {
            tell (p, i, REASON_NO_BACKFILL, 0, TIME_US_NONE);
            continue;
        }
        if (hot->procs < chunk) {
            tell (p, i, REASON_CHUNK, chunk,
                  time_add (p->c->freed_at, p->policy->bf_chunk_duration));
            continue;
        }
        f->list[f->count++] = (struct candidate){0, i, slot, length_least (p->c, hot->limit),
                                                 admitted (p, slot, hot)};
    }
}

/* A window says how long nodes stay free for those whom no reservation admits; others need their own
 * limit only. True when it started. */
static bool fill_one (struct fill *f, const struct candidate *one)
{
    struct pass *p = f->p;
    duration_us at_least = one->apart ? 0 : f->length;

    if (!eligible_still (p, one->slot, f->level)) {
        p->mark[one->at] = MARK_TOLD;
        return false;
    }
    if (space_hopeless (p, row_at (p, one->at), at_least))
        return false;
    pass_spend (p, WORK_PLACE);
    if (!space_start (p, one->slot, at_least, f->phase))
        return false;
    p->mark[one->at] = MARK_FILLED;
    return true;
}

/* --- GREEDY: the combination with the largest sum --------------------------------------------- */

struct greedy {
    const struct candidate *list;
    const struct pass *p;
    uint32_t count;
    uint32_t tries;
    uint8_t *taken, *best;
    double best_sum;
    double *rest; /* sum of metrics from i on */
};

static void greedy_try (struct greedy *g, uint32_t i, int64_t room, double sum)
{
    if (sum > g->best_sum) {
        g->best_sum = sum;
        memcpy (g->best, g->taken, g->count);
    }
    if (i == g->count || g->tries == 0 || sum + g->rest[i] <= g->best_sum)
        return;
    if (g->p->c->hot[g->list[i].slot].procs <= room) {
        g->tries--;
        g->taken[i] = 1;
        greedy_try (g, i + 1, room - g->p->c->hot[g->list[i].slot].procs, sum + g->list[i].metric);
        g->taken[i] = 0;
    }
    greedy_try (g, i + 1, room, sum);
}

/* Keeps of list (sorted by metric) the best combination of at most room processors. */
static uint32_t greedy_select (struct pass *p, struct candidate *list, uint32_t count, int64_t room)
{
    enum { DEEPEST = 256 }; /* of recursion; later ones only fill what is left */
    struct greedy g = {
        list, p,   count < DEEPEST ? count : DEEPEST, p->policy->backfill_max_schedules, NULL, NULL,
        -1,   NULL};
    uint32_t kept = 0;

    g.taken = arena_zalloc (p->scratch, g.count + 1);
    g.best = arena_zalloc (p->scratch, g.count + 1);
    g.rest = arena_array (p->scratch, g.count + 1, sizeof *g.rest);
    for (uint32_t i = g.count; i-- > 0;)
        g.rest[i] = g.rest[i + 1] + list[i].metric;
    greedy_try (&g, 0, room, 0);
    for (uint32_t i = 0; i < g.count; i++) {
        if (g.best[i])
            list[kept++] = list[i];
    }
    qsort (list, kept, sizeof *list, by_position);
    return kept;
}

/* Those whom reservations admit have room of their own: they are chosen apart. */
static uint32_t greedy_apart (struct pass *p, struct candidate *list, uint32_t count,
                              duration_us length)
{
    struct candidate *other = arena_alloc (p->scratch, (count + 1) * sizeof *other);
    uint32_t kept = 0, others = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (list[i].apart)
            other[others++] = list[i];
        else
            list[kept++] = list[i];
    }
    kept = greedy_select (p, list, kept, space_procs (p, length));
    if (others == 0)
        return kept;
    others = greedy_select (p, other, others, p->c->up_free);
    memcpy (list + kept, other, others * sizeof *other);
    kept += others;
    qsort (list, kept, sizeof *list, by_position);
    return kept;
}

/* --- one window ------------------------------------------------------------------------------- */

static bool waits (const struct pass *p, const struct candidate *one)
{
    return p->mark[one->at] == MARK_WAITS || p->mark[one->at] == MARK_SOFT;
}

/* Those of the list, which is in order of priority, in the order in which they are to be tried. */
static void window_open (struct fill *f, const struct candidate *list, uint32_t count,
                         duration_us length)
{
    struct pass *p = f->p;
    enum backfill_policy how = p->policy->backfill_policy;
    struct candidate *own;
    uint32_t n = 0;

    f->length = length;
    f->own = list;
    f->n = count;
    f->i = 0;
    if (how == BACKFILL_FIRSTFIT || how == BACKFILL_PREEMPT)
        return;
    f->own = own = arena_alloc (p->scratch, (count + 1) * sizeof *own);
    for (uint32_t i = 0; i < count; i++) {
        if (!waits (p, &list[i]))
            continue;
        own[n] = list[i];
        own[n++].metric = metric_of (p, list[i].slot);
    }
    qsort (own, n, sizeof *own, by_metric);
    f->n = how == BACKFILL_GREEDY ? greedy_apart (p, own, n, length) : n;
}

static void window_go (struct fill *f)
{
    struct pass *p = f->p;

    for (; f->i < f->n && p->left > 0; f->i++) {
        uint32_t ahead = f->own[f->i + AHEAD < f->n ? f->i + AHEAD : f->i].slot;
        __builtin_prefetch (&p->c->lj[ahead]);
        __builtin_prefetch (&p->c->hot[ahead]);
        pass_spend (p, 1);
        if (waits (p, &f->own[f->i]))
            (void)fill_one (f, &f->own[f->i]);
    }
}

/* Ascending windows: each candidate is looked at in the first one that is long enough. */
static bool next_widest (struct fill *f)
{
    struct pass *p = f->p;
    duration_us length;
    uint32_t n = 0, left = 0;

    if (f->count == 0 || p->c->up_free <= 0 || f->last)
        return false;
    length = space_window (p, f->length + 1);
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->list[i].limit <= length)
            f->here[n++] = f->list[i];
        else
            f->list[left++] = f->list[i];
    }
    f->count = left;
    f->last = length == TIME_US_MAX;
    window_open (f, f->here, n, length);
    return true;
}

static bool next_longest (struct fill *f)
{
    struct pass *p = f->p;
    duration_us length = f->length ? space_window_below (p, f->length) : TIME_US_MAX;
    uint32_t n = 0;

    if (length <= 0 || p->c->up_free <= 0)
        return false;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->list[i].limit <= length)
            f->here[n++] = f->list[i];
    }
    window_open (f, f->here, n, length);
    return true;
}

/* Bound late: one window for all, each of whom needs its own limit. */
static bool next_late (struct fill *f)
{
    if (f->last)
        return false;
    f->last = true;
    window_open (f, f->list, f->count, 0);
    return true;
}

/* A number that depends on seed, moment and job only. */
static double drawn (const struct pass *p, uint32_t slot)
{
    uint64_t x = p->c->seed ^ (uint64_t)p->now * UINT64_C (0x9E3779B97F4A7C15) ^
                 job_at (p->c, slot)->spec.id.v * UINT64_C (0xBF58476D1CE4E5B9);

    x = (x ^ x >> 30) * UINT64_C (0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C (0x94D049BB133111EB);
    return (double)((x ^ x >> 31) >> 11);
}

/* BFPRIORITYPOLICY: shortest first, least work (processors times time) first, or drawn. */
static void preempt_order (struct fill *f)
{
    const struct pass *p = f->p;

    if (p->policy->backfill_priority == BFPRIORITY_NONE)
        return;
    for (uint32_t i = 0; i < f->count; i++) {
        struct candidate *x = &f->list[i];
        double limit = (double)x->limit;
        switch (p->policy->backfill_priority) {
        case BFPRIORITY_DURATION:
            x->metric = -limit;
            break;
        case BFPRIORITY_HWDURATION:
            x->metric = -limit * p->c->pj[x->slot].procs;
            break;
        default:
            x->metric = drawn (p, x->slot);
            break;
        }
    }
    qsort (f->list, f->count, sizeof *f->list, by_metric);
}

/* Nothing but processors counts, so that the walk needs no list. */
static bool counts_only (const struct pass *p)
{
    return p->plain && p->room == ROOM_COUNTED && !p->c->qos_flagged &&
           p->policy->backfill_policy == BACKFILL_FIRSTFIT && p->policy->backfill_depth == 0 &&
           p->policy->bf_chunk_procs == 0;
}

static bool counted_go (struct fill *f)
{
    struct pass *p = f->p;
    const struct cluster *c = p->c;

    for (; f->i < p->count && c->up_free > 0 && p->left > 0; f->i++) {
        uint32_t slot = p->order[f->i];
        pass_spend (p, 1);
        if (c->hot[slot].procs > c->up_free || p->mark[f->i] != MARK_WAITS)
            continue;
        pass_spend (p, WORK_PLACE);
        if (space_start (p, slot, 0, PLAN_BACKFILL_SOFT))
            p->mark[f->i] = MARK_FILLED;
    }
    return f->i == p->count || c->up_free <= 0;
}

struct fill *backfill_open (struct pass *p, bool hard)
{
    struct fill *f = arena_new (p->scratch, struct fill);

    *f = (struct fill){.p = p,
                       .level = hard ? LIMIT_HARD : LIMIT_SOFT,
                       .phase = hard ? PLAN_BACKFILL_HARD : PLAN_BACKFILL_SOFT};
    if (p->count == 0)
        return NULL;
    p->level = f->level;
    if (counts_only (p)) {
        f->i = p->first_free;
        return f;
    }
    candidates_gather (f);
    if (f->count == 0)
        return NULL;
    if (p->policy->backfill_policy == BACKFILL_PREEMPT)
        preempt_order (f);
    f->here = arena_alloc (p->scratch, (f->count + 1) * sizeof *f->here);
    f->next = p->late                                                     ? next_late
              : p->policy->backfill_window_order == BFWINDOW_LONGESTFIRST ? next_longest
                                                                          : next_widest;
    return f;
}

bool backfill_go (struct pass *p)
{
    struct fill *f = p->fill;

    if (f == NULL)
        return true;
    if (f->next == NULL)
        return counted_go (f);
    while (p->left > 0) {
        window_go (f);
        if (f->i == f->n && !f->next (f))
            return true;
    }
    return false;
}

bool pass_never (struct pass *p, uint32_t i)
{
    struct reason why;

    if (!space_never (p, p->order[i], &why))
        return false;
    pass_reason (p, p->order[i], &why);
    p->mark[i] = MARK_TOLD;
    return true;
}
