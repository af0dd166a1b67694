/* space: where and when a pass has room for a job.
 *
 * Two ways. With a timeline: node by node, every resource, reservations bound to nodes (early), or
 * bound to the nodes that matter least (late). By counting: late binding where any free processor is
 * as good as another, so that a promise is a number of processors; then one promise is a shadow time
 * and what is left of it, several are a profile. Both give the same where both apply and depth is 1;
 * counting leaves deeper queues more freedom, because no promise is tied to nodes. */
#include "local/core/pass.h"
#include "local/core/timeline_state.h"

#include <stdlib.h>
#include <string.h>

/* --- counting ----------------------------------------------------------------------------- */

static void profile_insert (struct profile *f, uint32_t at, time_us t, int64_t count)
{
    if (f->count == f->cap) {
        uint32_t cap = f->cap;
        f->t = mem_grow (f->t, &cap, f->count + 1, sizeof *f->t);
        f->free = mem_grow (f->free, &f->cap, f->count + 1, sizeof *f->free);
    }
    memmove (f->t + at + 1, f->t + at, (f->count - at) * sizeof *f->t);
    memmove (f->free + at + 1, f->free + at, (f->count - at) * sizeof *f->free);
    f->t[at] = t;
    f->free[at] = count;
    f->count++;
}

/* The step that holds at t. */
static uint32_t profile_find (const struct profile *f, time_us t)
{
    uint32_t low = 0, high = f->count;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (f->t[mid] <= t)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static uint32_t profile_split (struct profile *f, time_us t)
{
    uint32_t i = profile_find (f, t);

    if (f->t[i] == t)
        return i;
    profile_insert (f, i + 1, t, f->free[i]);
    return i + 1;
}

static void profile_take (struct profile *f, time_us start, time_us end, int64_t count)
{
    uint32_t i = profile_split (f, start);
    uint32_t stop = end == TIME_US_MAX ? f->count : profile_split (f, end);

    for (; i < stop; i++)
        f->free[i] -= count;
}

static bool profile_fits (const struct profile *f, uint32_t i, time_us end, int64_t count)
{
    for (; i < f->count && f->t[i] < end; i++) {
        if (f->free[i] < count)
            return false;
    }
    return true;
}

/* From a moment on at which a step begins. */
static bool profile_earliest (const struct profile *f, int64_t count, duration_us duration,
                              time_us from, time_us *out)
{
    uint32_t i = profile_find (f, from);

    while (i < f->count) {
        time_us end = time_add (f->t[i], duration);
        uint32_t j = i;
        while (j < f->count && f->free[j] >= count && f->t[j] < end)
            j++;
        if (j > i && (j == f->count || f->t[j] >= end)) {
            *out = f->t[i];
            return true;
        }
        i = j + 1;
    }
    return false;
}

static void profile_build (struct pass *p)
{
    struct cluster *c = p->c;
    struct profile *f = &p->profile;

    f->count = 0;
    profile_insert (f, 0, p->now, c->up_free);
    for (uint32_t i = 0; i < c->run_count; i++) {
        time_us end = effective_end (c, c->run[i].end, p->now);
        uint32_t last = f->count - 1;
        if (end > f->t[last])
            profile_insert (f, f->count, end, f->free[last] + c->run[i].procs);
        else
            profile_take (f, end, TIME_US_MAX, -(int64_t)c->run[i].procs);
    }
    p->profiled = true;
}

static bool counted_fits (const struct pass *p, int64_t procs, duration_us limit)
{
    time_us end = time_add (p->now, limit);

    if (procs > p->c->up_free)
        return false;
    if (p->shadowed)
        return end <= p->shadow || procs <= p->extra;
    return !p->profiled || profile_fits (&p->profile, 0, end, procs);
}

static void counted_take (struct pass *p, int64_t procs, duration_us limit)
{
    time_us end = time_add (p->now, limit);

    if (p->shadowed && end > p->shadow)
        p->extra -= procs;
    if (p->profiled)
        profile_take (&p->profile, p->now, end, procs);
}

/* The only reservation there will be: when enough processors are free, and how many more. */
static bool shadow_find (struct pass *p, int64_t procs, time_us from)
{
    const struct cluster *c = p->c;
    int64_t sum = c->up_free;

    for (uint32_t i = 0; i < c->run_count; i++) {
        sum += c->run[i].procs;
        if (sum < procs || c->run[i].end < from ||
            (i + 1 < c->run_count && c->run[i + 1].end == c->run[i].end))
            continue;
        p->shadow = c->run[i].end;
        p->extra = sum - procs;
        p->shadowed = true;
        return true;
    }
    return false;
}

/* One promise at most, and no job past its limit: the shadow will do. */
static bool shadow_enough (const struct pass *p)
{
    return p->depth_total == 1 && !p->profiled &&
           (p->c->run_count == 0 || p->c->run[0].end > p->now);
}

static bool counted_earliest (struct pass *p, uint32_t slot, time_us from, time_us *start)
{
    const struct job_hot *hot = &p->c->hot[slot];

    if (shadow_enough (p)) {
        bool found = shadow_find (p, hot->procs, from);
        *start = p->shadow;
        return found;
    }
    if (!p->profiled)
        profile_build (p);
    return profile_earliest (&p->profile, hot->procs, hot->limit, from, start);
}

/* Any free processors, in the policy's order of nodes. */
static struct allocation counted_choose (struct pass *p, uint32_t tasks)
{
    struct cluster *c = p->c;
    const uint32_t *order = rank_order (c);
    uint32_t most = tasks < c->node_count ? tasks : c->node_count;
    struct pick pick = {mem_alloc (most * sizeof *pick.item), 0, tasks, 0};

    for (uint32_t i = 0; order && pick.left > 0; i++) {
        if (bitset_test (&c->open, order[i]))
            pick_node (&pick, order[i], (uint32_t)row (c, c->free, order[i])[RES_PROCS]);
    }
    for (uint32_t w = 0; pick.left > 0; w++) {
        for (uint64_t bits = c->open.word[w]; bits && pick.left > 0; bits &= bits - 1) {
            uint32_t node = w * 64 + (uint32_t)__builtin_ctzll (bits);
            pick_node (&pick, node, (uint32_t)row (c, c->free, node)[RES_PROCS]);
        }
    }
    return (struct allocation){pick.count, pick.item};
}

/* --- both --------------------------------------------------------------------------------- */

/* Late binding is counting where processors are all there is to promise. */
static bool countable (const struct cluster *c)
{
    enum node_allocation policy = c->policy->node_allocation;

    return c->complex_jobs == 0 && c->rsv_count == 0 && c->busy_not_up == 0 &&
           policy != NODEALLOC_CPULOAD && places_simply (c) && !narrows (c);
}

/* While promises may yet turn out to be those of the last pass, with most of it asleep: bench_pass guarded, the pass after one
 * job ended, takes 10 ms so and 32 ms awake (floor 20). */
static struct timeline *timeline_open (struct pass *p)
{
    const struct cluster *c = p->c;

    if (!p->chain || p->retries || p->expecting || c->suspended_count || c->deadlines ||
        !timeline_may_doze (c))
        return timeline_make (p->c, p->scratch, p->now, false, (struct rsv_id){0});
    return timeline_doze (p->c, p->scratch, p->now, memo_awake (p));
}

void space_open (struct pass *p)
{
    p->late = p->policy->reservation_binding == BINDING_LATE;
    p->profile = p->planner->profile;
    p->room = ROOM_TIMELINE;
    if (p->retries || p->c->suspended_count || p->c->deadlines)
        p->room = ROOM_TIMELINE; /* what they keep, or go on on, is nodes, from now on */
    else if (p->expecting)
        p->room = ROOM_TIMELINE; /* they are promised moments at which nothing need end */
    else if (!p->planner->plain_room && p->late && countable (p->c))
        p->room = ROOM_COUNTED;
    else if (!p->planner->plain_room && !p->late && units_possible (p->c, p->now))
        p->room = ROOM_UNITS;
    if (p->room == ROOM_UNITS)
        units_open (p);
    memo_open (p);
    if (p->room == ROOM_TIMELINE)
        p->tl = timeline_open (p);
}

void space_close (struct pass *p)
{
    p->planner->profile = p->profile;
}

static duration_us limit_of (const struct pass *p, uint32_t slot)
{
    return p->c->hot[slot].limit;
}

/* How long it has these nodes. */
static duration_us length_of (const struct pass *p, uint32_t slot, const struct allocation *a)
{
    return length_on (p->c, job_at (p->c, slot), a);
}

bool space_holds (struct pass *p, uint32_t slot, const struct allocation *a)
{
    struct wanted w = wanted_job (job_at (p->c, slot));

    return partition_allows (p, slot, a, p->level) &&
           timeline_lacks (p->tl, &w, a, p->now, time_add (p->now, length_of (p, slot, a))) ==
               UINT32_MAX;
}

void space_start_at (struct pass *p, uint32_t slot, const struct allocation *a,
                     enum plan_phase phase)
{
    time_us end = time_add (p->now, length_of (p, slot, a));
    struct allocation own = {a->count, mem_copy (a->item, a->count * sizeof *a->item)};
    struct wanted w = wanted_job (job_at (p->c, slot));

    timeline_run (p->tl, &w, a, end);
    job_enter_running (p->c, slot, own, p->now);
    pass_started (p, slot, phase);
}

/* Of what holds until somebody starts. */
static uint64_t now_serial (const struct pass *p)
{
    return p->planner->serial << 24 | p->plan->start_count;
}

uint64_t space_now (struct pass *p, uint32_t shape)
{
    uint64_t serial = now_serial (p);
    struct shape *s;

    if (p->room != ROOM_TIMELINE)
        return (uint64_t)p->c->up_free; /* promises begin later */
    if (p->counted_serial == serial && shape < p->counted_cap && p->counted[shape])
        return p->counted[shape] - 1;
    s = shape_refresh (p->c, shape);
    if (s->now_serial != serial) {
        s->now_serial = serial;
        s->now_count = timeline_count (p->tl, s, p->now, 1, UINT64_MAX);
    }
    return s->now_count;
}

/* All shapes, one access class after the other. */
static void shapes_list (struct pass *p)
{
    const struct cluster *c = p->c;
    struct planner *pl = p->planner;
    uint32_t classes = c->access->class_count;
    uint32_t *at = arena_array (p->scratch, classes + 1, sizeof *at);

    if (pl->listed.serial == c->shape_serial)
        return;
    pl->listed.serial = c->shape_serial;
    pl->listed.shape =
        mem_grow (pl->listed.shape, &pl->listed.cap, c->shape_count, sizeof (uint32_t));
    for (uint32_t shape = 0; shape < c->shape_count; shape++)
        at[c->shape[shape].access + 1] += c->shape[shape].refs > 0;
    for (uint32_t k = 0; k < classes; k++)
        at[k + 1] += at[k];
    pl->listed.count = at[classes];
    for (uint32_t shape = 0; shape < c->shape_count; shape++) {
        if (c->shape[shape].refs > 0)
            pl->listed.shape[at[c->shape[shape].access]++] = shape;
    }
}

/* Does no reservation open to the class a node where something is free? Then it sees of this moment what
 * class 0 does. */
static bool sees_nothing_more (const struct cluster *c, uint32_t class)
{
    const struct access_class *own = &c->access->class[class];

    for (uint32_t g = 0; g < own->count; g++) {
        const struct allocation *nodes = &c->access->open[own->grant[g].rsv]->allocation;
        for (uint32_t i = 0; i < nodes->count; i++) {
            if (bitset_test (&c->open, nodes->item[i].node.v))
                return false;
        }
    }
    return true;
}

void space_now_all (struct pass *p)
{
    const struct cluster *c = p->c;
    const struct planner *pl = p->planner;
    uint32_t class = 0;
    bool as_any = false;

    if (p->room != ROOM_TIMELINE || c->access == NULL || c->access->count == 0 ||
        p->planner->plain_counts || p->counted_serial == now_serial (p))
        return;
    shapes_list (p);
    if (p->counted_cap < c->shape_count) {
        p->counted = arena_array (p->scratch, c->shape_count, sizeof *p->counted);
        p->counted_cap = c->shape_count;
    }
    p->counted_serial = 0;
    for (uint32_t i = 0; i < pl->listed.count; i++) {
        uint32_t shape = pl->listed.shape[i];
        const struct shape *s = &c->shape[shape];
        uint64_t now;
        __builtin_prefetch (
            &c->shape[pl->listed.shape[i + AHEAD < pl->listed.count ? i + AHEAD : i]]);
        if (s->refs == 0)
            continue;
        (void)shape_refresh (p->c, shape);
        if (s->access != class) {
            class = s->access;
            as_any = sees_nothing_more (c, class);
        }
        now = space_now (p, as_any ? s->twin : shape);
        p->counted[shape] = now < UINT32_MAX ? (uint32_t)now + 1 : UINT32_MAX;
    }
    p->counted_serial = now_serial (p);
}

bool space_unlicensed (const struct pass *p, uint32_t slot, const struct job_hot *row)
{
    const struct job *job;

    if (!(row->limited & LIMITED_LICENCE))
        return false;
    if (row->licence != LICENCE_LOOK)
        return p->c->licence_free[row->licence >> LICENCE_COUNT_BITS] <
               (int32_t)(row->licence & ((1u << LICENCE_COUNT_BITS) - 1));
    job = job_at (p->c, slot);
    return licences_lack (p->c, job->spec.licence, job->spec.licence_count) != UINT32_MAX;
}

bool space_hopeless (const struct pass *p, const struct job_hot *row, duration_us at_least)
{
    duration_us least = length_least (p->c, row->limit);
    const struct shape *s;

    if (row->procs > p->c->up_free)
        return true;
    if (p->room != ROOM_TIMELINE || row->shape == SLOT_NONE)
        return false;
    s = &p->c->shape[row->shape];
    return s->late_serial == p->planner->serial && s->late_count < row->tasks &&
           (at_least > least ? at_least : least) >= s->late_duration;
}

bool space_lacks (struct pass *p, const struct job_hot *row)
{
    if (row->procs > p->c->up_free)
        return true;
    return row->shape != SLOT_NONE && space_now (p, row->shape) < row->tasks;
}

static void refresh_shapes (struct pass *p, const struct job *job)
{
    for (uint32_t r = 0; r < job->spec.req_count; r++)
        (void)shape_refresh (p->c, job->shape[r]);
}

/* Are there tasks enough of the job's shape? What is found to be too little holds for all that are
 * alike, until the pass ends: starts only take. */
static bool shape_may (struct pass *p, uint32_t slot, duration_us duration)
{
    struct shape *s = &p->c->shape[p->c->hot[slot].shape];
    uint32_t tasks = p->c->hot[slot].tasks;
    uint64_t count;

    if (s->late_serial == p->planner->serial && duration >= s->late_duration &&
        s->late_count < tasks)
        return false;
    count = timeline_count (p->tl, s, p->now, duration, tasks);
    if (count >= tasks)
        return true;
    s->late_serial = p->planner->serial;
    s->late_duration = duration;
    s->late_count = count;
    return false;
}

static bool tl_choose_now (struct pass *p, uint32_t slot, duration_us at_least,
                           struct allocation *out)
{
    duration_us limit = limit_of (p, slot), least = length_least (p->c, limit);
    const struct job *job = job_at (p->c, slot);
    struct wanted w = wanted_job (job);

    if (p->c->hot[slot].procs > p->c->up_free || space_unlicensed (p, slot, &p->c->hot[slot]))
        return false;
    refresh_shapes (p, job);
    if (job->spec.req_count == 1 && !shape_may (p, slot, at_least > least ? at_least : least))
        return false;
    return narrow_choose (p->tl, p->scratch, &w, partition_closing (p, slot, p->level), p->now,
                          limit, at_least, p->late ? CHOICE_SOON_ENDING : CHOICE_POLICY, out);
}

bool space_start (struct pass *p, uint32_t slot, duration_us at_least, enum plan_phase phase)
{
    struct cluster *c = p->c;
    const struct job *job = job_at (c, slot);
    duration_us limit = limit_of (p, slot);
    struct allocation chosen;

    if (p->room == ROOM_COUNTED) {
        if (!counted_fits (p, c->hot[slot].procs, limit))
            return false;
        counted_take (p, c->hot[slot].procs, limit);
        chosen = counted_choose (p, c->hot[slot].tasks);
    } else if (p->room == ROOM_UNITS) {
        if (!units_choose (p, c->hot[slot].tasks, at_least > limit ? at_least : limit, &chosen))
            return false;
    } else {
        struct wanted w = wanted_job (job);
        if (!tl_choose_now (p, slot, at_least, &chosen))
            return false;
        limit = length_of (p, slot, &chosen);
        memo_changed (p->planner, &chosen, time_add (p->now, limit), false);
        memo_licences (p->planner, w.licence, w.licence_count);
        timeline_run (p->tl, &w, &chosen, time_add (p->now, limit));
        chosen.item = mem_copy (chosen.item, chosen.count * sizeof *chosen.item);
    }
    job_enter_running (c, slot, chosen, p->now);
    pass_started (p, slot, phase);
    return true;
}

/* Several reqs are placed one after the other, which is not always the best way: what the job was
 * promised last time, if it still stands and is earlier, is kept. A promise never slides back. */
static void keep_earlier (struct pass *p, uint32_t slot, time_us *start, struct allocation *chosen)
{
    const struct job *job = job_at (p->c, slot);
    struct wanted w = wanted_job (job);

    if (job->spec.req_count == 1 || job->reserved_start == TIME_US_NONE ||
        job->reserved_start >= *start || job->reserved_start <= p->now ||
        job->reserved_start < job->spec.data_at || job->reserved.count == 0 ||
        softstart_from (p, slot, job->reserved_start) != job->reserved_start ||
        timeline_lacks (p->tl, &w, &job->reserved, job->reserved_start,
                        time_add (job->reserved_start, length_of (p, slot, &job->reserved))) !=
            UINT32_MAX)
        return;
    *start = job->reserved_start;
    chosen->count = job->reserved.count;
    chosen->item =
        arena_memdup (p->arena, job->reserved.item, job->reserved.count * sizeof *chosen->item);
}

/* When and where from `from` on, soft limits aside. Nothing is taken yet. */
static bool room_earliest (struct pass *p, uint32_t slot, time_us from, time_us *start,
                           struct allocation *chosen)
{
    const struct job *job = job_at (p->c, slot);
    struct wanted w = wanted_job (job);
    enum choice choice = p->late ? CHOICE_BUSY : CHOICE_POLICY;
    struct place_trail before;
    uint64_t partitions;
    time_us until;

    if (p->room == ROOM_COUNTED)
        return counted_earliest (p, slot, from, start);
    if (p->room == ROOM_UNITS)
        return units_reserve (p, p->c->hot[slot].tasks, limit_of (p, slot), from, start, chosen);
    timeline_wake (p->tl);
    partitions = partition_closing (p, slot, p->level);
    until = memo_bound (p); /* need not look further, if that is right */
    before = *timeline_trail (p->tl);
    if (until != TIME_US_MAX && until >= from &&
        narrow_place (p->tl, p->arena, &w, partitions, limit_of (p, slot), from, until, choice,
                      start, chosen))
        return true;
    *timeline_trail (p->tl) = before;
    return narrow_place (p->tl, p->arena, &w, partitions, limit_of (p, slot), from, TIME_US_MAX,
                         choice, start, chosen);
}

static void room_take (struct pass *p, uint32_t slot, time_us start,
                       const struct allocation *chosen)
{
    struct wanted w = wanted_job (job_at (p->c, slot));
    duration_us limit = limit_of (p, slot);

    if (p->room == ROOM_UNITS)
        units_promise (p, start, limit, chosen);
    else if (p->room == ROOM_TIMELINE)
        timeline_take (p->tl, &w, chosen, start, time_add (start, length_of (p, slot, chosen)), 1);
    else if (p->profiled)
        profile_take (&p->profile, start, time_add (start, limit), p->c->hot[slot].procs);
}

/* --- for whom there is no room ever ------------------------------------------------------------
 *
 * Whoever has room at the end of all days has a moment. Whoever has none then has none before either, unless
 * something without end is still to begin; that alone makes a search necessary. (Several reqs are placed one
 * after the other, which may succeed earlier by good luck; such a job is promised nothing, and starts when it can.)
 * What is found is kept until something changes that has no end by itself (cluster.lasting), for the job and,
 * of the simplest, for all that are alike. */

enum ever { EVER_UNKNOWN, EVER_SOME, EVER_NONE };

/* Is a shape all that matters of the job? */
static bool never_shared (const struct cluster *c, uint32_t slot)
{
    const struct job_spec *spec = &job_at (c, slot)->spec;

    return spec->req_count == 1 && spec->licence_count == 0;
}

/* In a pass room only grows less, but where jobs with deadlines give theirs back. */
static bool never_alike (const struct pass *p, uint32_t slot)
{
    const struct job_hot *hot = &p->c->hot[slot];
    const struct shape *s;

    if (!never_shared (p->c, slot))
        return false;
    s = &p->c->shape[hot->shape];
    if (s->never_serial == 0 || hot->tasks < s->never_tasks)
        return false;
    return s->never_limit ? s->never_serial == (uint32_t)p->planner->serial &&
                                hot->limit >= s->never_limit && p->c->deadlines == 0
                          : s->never_serial == (uint32_t)p->c->lasting;
}

static enum ever ever_known (const struct pass *p, uint32_t slot)
{
    struct job *job = job_at (p->c, slot);

    if (p->room != ROOM_TIMELINE) /* what is not counted there has an end */
        return EVER_SOME;
    if (never_recurs (p->c, job))
        return EVER_NONE;
    if (job->ever_serial == p->c->lasting &&
        (job->ever == EVER_NONE || (job->ever == EVER_SOME && !p->endless)))
        return (enum ever)job->ever;
    return never_alike (p, slot) ? EVER_NONE : EVER_UNKNOWN;
}

static void never_note (struct pass *p, uint32_t slot, bool lasts)
{
    const struct job_hot *hot = &p->c->hot[slot];
    struct shape *s;

    if (!never_shared (p->c, slot))
        return;
    s = &p->c->shape[hot->shape];
    s->never_serial = lasts ? (uint32_t)p->c->lasting : (uint32_t)p->planner->serial;
    s->never_tasks = hot->tasks;
    s->never_limit = lasts ? 0 : hot->limit;
}

static bool fits_at_the_end (struct pass *p, uint32_t slot, const struct wanted *w)
{
    uint32_t tasks = p->c->hot[slot].tasks;
    struct allocation ignored;

    if (timeline_countable (p->tl, w))
        return timeline_count (p->tl, &p->c->shape[w->shape[0]], never_after, 1, tasks) >= tasks;
    return narrow_choose (p->tl, p->scratch, w, 0, never_after, limit_of (p, slot), 0,
                          CHOICE_POLICY, &ignored);
}

/* Will there be less room some day than now, for good? */
static bool endless_to_come (const struct pass *p)
{
    bool any = p->endless;

    for (uint32_t i = 0; i < p->c->rsv_count && !any; i++)
        any = endless (p->c->rsv[i]->spec.end) && p->c->rsv[i]->spec.start > p->now;
    return any;
}

/* lasts_out: it is not of this pass alone. */
static bool never_look (struct pass *p, uint32_t slot, bool *lasts_out)
{
    struct wanted w = wanted_job (job_at (p->c, slot));
    bool to_come = endless_to_come (p);
    struct allocation ignored;
    time_us start;

    timeline_wake (p->tl);
    refresh_shapes (p, job_at (p->c, slot));
    *lasts_out = !p->endless;
    if (fits_at_the_end (p, slot, &w))
        return false;
    *lasts_out = !to_come;
    return !to_come ||
           !narrow_place (p->tl, p->scratch, &w, 0, limit_of (p, slot), p->now, TIME_US_MAX,
                          p->late ? CHOICE_BUSY : CHOICE_POLICY, &start, &ignored);
}

static enum ever ever_find (struct pass *p, uint32_t slot)
{
    struct job *job = job_at (p->c, slot);
    enum ever ever = ever_known (p, slot);
    bool lasts;

    if (ever != EVER_UNKNOWN)
        return ever;
    ever = never_look (p, slot, &lasts) ? EVER_NONE : EVER_SOME;
    if (ever == EVER_NONE)
        never_note (p, slot, lasts);
    if (lasts) {
        job->ever_serial = p->c->lasting;
        job->ever = (uint8_t)ever;
    }
    return ever;
}

bool space_never (struct pass *p, uint32_t slot, struct reason *why)
{
    struct job *job = job_at (p->c, slot);
    struct wanted w = wanted_job (job);

    if (ever_find (p, slot) != EVER_NONE)
        return false;
    if (job->why_serial == p->c->lasting && job->reason.code == REASON_NEVER_FREE) {
        *why = job->reason;
        return true;
    }
    timeline_wake (p->tl);
    refresh_shapes (p, job);
    if (!never_recurs_why (p->c, &w, job->spec.walltime_limit, why))
        *why = never_why (p->tl, &w);
    job->why_serial = p->c->lasting;
    return true;
}

/* The earliest moment with room at which soft limits are kept, too. */
static bool reserve_earliest (struct pass *p, uint32_t slot, time_us *start,
                              struct allocation *chosen)
{
    time_us from = data_due (p, slot) ? job_at (p->c, slot)->spec.data_at : p->now;
    time_us deadline = job_at (p->c, slot)->spec.deadline;

    p->detours = 0;
    if ((job_at (p->c, slot)->spec.req_count > 1 ? ever_find (p, slot) : ever_known (p, slot)) ==
        EVER_NONE)
        return false;
    while (room_earliest (p, slot, from, start, chosen)) {
        if (deadline && time_add (*start, length_least (p->c, limit_of (p, slot))) > deadline)
            return false; /* it would keep nodes for nothing */
        from = softstart_from (p, slot, *start);
        if (from == *start)
            return true;
        if (from == TIME_US_MAX)
            return false;
        if (p->detours < DETOURS_MAX && p->room == ROOM_TIMELINE)
            p->detour[p->detours] = (struct detour){*start, from};
        p->detours += p->detours < DETOURS_MAX;
    }
    return false;
}

bool space_reserve (struct pass *p, uint32_t slot)
{
    struct allocation chosen = {0};
    time_us start;

    if (p->room == ROOM_TIMELINE) {
        refresh_shapes (p, job_at (p->c, slot));
        if (memo_reuse (p, slot))
            return true;
        timeline_trail_begin (p->tl);
    }
    if (!reserve_earliest (p, slot, &start, &chosen)) {
        memo_lost (p);
        return false;
    }
    if (p->room == ROOM_TIMELINE && p->detours == 0)
        keep_earlier (p, slot, &start, &chosen);
    room_take (p, slot, start, &chosen);
    if (p->room == ROOM_TIMELINE)
        memo_made (p, slot, start, &chosen);
    pass_reserved (p, slot, start, p->room == ROOM_COUNTED ? NULL : &chosen);
    return true;
}

/* Windows are those of people whom no reservation admits: see backfill.c. */
duration_us space_window (struct pass *p, duration_us least)
{
    if (p->tl)
        timeline_view (p->tl, 0);
    return p->room == ROOM_UNITS ? units_window (p, least, 0) : timeline_window (p->tl, least);
}

duration_us space_window_below (struct pass *p, duration_us below)
{
    if (p->tl)
        timeline_view (p->tl, 0);
    return p->room == ROOM_UNITS ? units_window (p, 0, below)
                                 : timeline_window_below (p->tl, below);
}

int64_t space_procs (struct pass *p, duration_us length)
{
    uint32_t nodes;
    uint64_t procs;

    if (p->room == ROOM_COUNTED)
        return p->c->up_free;
    if (p->room == ROOM_UNITS)
        return (int64_t)units_count (p, length ? length : 1);
    timeline_view (p->tl, 0);
    timeline_free (p->tl, length ? length : 1, &nodes, &procs);
    return (int64_t)procs;
}
