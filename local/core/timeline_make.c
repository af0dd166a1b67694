/* timeline_make: a timeline out of running jobs and reservations, whole or of a few nodes.
 *
 * A pass in which every promise stays as it was asks only of the present moment, of nodes that are
 * open, and of those on which something changed. So it begins with these awake. The lanes of all
 * others are empty, as if their nodes were down, which at the present moment they may as well be:
 * nothing is free there. What is taken meanwhile is noted; timeline_wake makes up for it, and
 * nothing is different from a timeline that was whole from the beginning. */
#include "local/core/timeline_state.h"

#include <string.h>

/* --- running jobs --------------------------------------------------------------------------- */

/* What one placement of a running job gives back at its end. */
static void lane_release (struct timeline *tl, uint32_t node, const struct shape *s, uint32_t tasks,
                          bool first, time_us end, uint32_t bound)
{
    struct lane *lane = &tl->lane[node];
    struct step *last;

    if (lane->count == 0)
        return;
    last = step_at (tl, lane, lane->count - 1);
    if (last->t != end) {
        struct step *next = step_at (tl, lane, lane->count);
        memcpy (next, last, tl->stride);
        next->t = end;
        next->bound = bound;
        lane->count++;
        last = next;
    }
    if (s->req.exclusive) {
        memcpy (last->free, row (tl->c, tl->c->cap, node), tl->dims * sizeof *last->free);
        return;
    }
    for (uint32_t d = 0; d < s->dim_count; d++)
        last->free[s->dim[d]] += (int32_t)tasks * s->req.task.v[s->dim[d]];
    if (tl->c->job_column && first)
        last->free[tl->c->job_column]++;
}

/* Room for the steps of each lane of `only`: now, an end per placement, and some for reservations.
 */
static void lanes_lay_out (struct timeline *tl, const uint64_t *only)
{
    struct cluster *c = tl->c;
    size_t total = 0;
    unsigned char *at;

    for (uint32_t n = 0; n < c->node_count; n++) {
        if (!of_these (only, n))
            continue;
        tl->lane[n].cap = c->node_jobs[n] + 1 + (c->node_jobs[n] ? 1 : 2);
        total += tl->lane[n].cap;
    }
    at = arena_alloc (tl->arena, total * tl->stride + 1);
    for (uint32_t n = 0; n < c->node_count; n++) {
        struct lane *lane = &tl->lane[n];
        struct step *first = (struct step *)(void *)at;
        if (!of_these (only, n))
            continue;
        lane->step = at;
        at += (size_t)lane->cap * tl->stride;
        lane->falls = false;
        lane->count = c->node_state[n] == NODE_UP;
        first->t = tl->now;
        first->bound = 0;
        memcpy (first->free, row (c, c->free, n), tl->dims * sizeof *first->free);
    }
}

/* One running job's nodes come free at `end`; ends are given in ascending order. */
static void running_one (struct timeline *tl, const struct running *r, time_us end,
                         const uint64_t *only)
{
    struct cluster *c = tl->c;
    const struct job *job = job_at (c, r->slot);

    for (uint32_t k = 0; k < job->allocation.count; k++) {
        const struct placement *p = &job->allocation.item[k];
        const struct shape *s = &c->shape[job->shape[p->req]];
        if (!of_these (only, p->node.v))
            continue;
        lane_release (tl, p->node.v, s, p->tasks, first_there (tl, &job->allocation, k), end,
                      bound_intern (tl, end));
        if (tl->who)
            occupant_change (tl, p->node.v, s, job->spec.cred[CRED_USER] + 1, p->tasks, tl->now,
                             end, 1);
    }
}

/* Those past their limits all count as ending at the same moment, which lies among the others'. */
static void running_enter (struct timeline *tl, const uint64_t *only)
{
    const struct cluster *c = tl->c;
    time_us late = effective_end (c, tl->now, tl->now);
    uint32_t over = 0, i;

    while (over < c->run_count && c->run[over].end <= tl->now)
        over++;
    for (i = over; i < c->run_count && c->run[i].end <= late; i++)
        running_one (tl, &c->run[i], c->run[i].end, only);
    for (uint32_t k = 0; k < over; k++)
        running_one (tl, &c->run[k], late, only);
    for (; i < c->run_count; i++)
        running_one (tl, &c->run[i], c->run[i].end, only);
}

/* --- reservations --------------------------------------------------------------------------- */

/* The job that names it takes its place when it starts (job_started). */
void rsv_take (struct timeline *tl, const struct rsv_spec *spec, const struct allocation *a,
               int sign)
{
    struct cluster *c = tl->c;
    uint32_t shape[REQS_MAX], access = access_of (c, spec->who);
    struct wanted w = {spec->req_count, spec->req, shape, spec->licence_count, spec->licence};

    for (uint32_t r = 0; r < spec->req_count; r++)
        shape[r] = shape_intern (c, &spec->req[r], access, spec->who ? spec->who->cred : NULL);
    timeline_take (tl, &w, a, spec->start, spec->end, sign);
    for (uint32_t r = 0; r < spec->req_count; r++)
        shape_release (c, shape[r]);
}

static void queue_enter (struct timeline *tl)
{
    struct cluster *c = tl->c;

    for (uint32_t i = 0; i < c->idle_count; i++) {
        const struct job *job = job_at (c, c->idle[i]);
        struct allocation chosen = job->reserved;
        struct wanted w = wanted_job (job);
        time_us end;
        if (job->reserved_start == TIME_US_NONE)
            continue;
        for (uint32_t r = 0; r < job->spec.req_count; r++)
            (void)shape_refresh (c, job->shape[r]); /* nodes may have changed since the last pass */
        end = time_add (job->reserved_start, length_on (c, job, &job->reserved));
        if (chosen.count == 0 && /* bound late: nodes that would do, for the answer's sake */
            !timeline_choose (tl, tl->arena, &w, job->reserved_start, job->spec.walltime_limit,
                              CHOICE_BUSY, &chosen))
            continue;
        timeline_take (tl, &w, &chosen, job->reserved_start, end, 1);
    }
}

/* --- all of it ------------------------------------------------------------------------------ */

static struct timeline *make (struct cluster *c, struct arena *arena, time_us now,
                              const uint64_t *awake)
{
    struct timeline *tl = arena_new (arena, struct timeline);

    tl->c = c;
    tl->arena = arena;
    tl->now = now;
    tl->dims = c->dims;
    tl->stride = (uint32_t)((sizeof (struct step) + c->dims * sizeof (int32_t) + 7) / 8 * 8);
    tl->node_count = c->node_count;
    tl->awake = awake;
    tl->lane = arena_array (arena, c->node_count + 1, sizeof *tl->lane);
    tl->falling = arena_alloc (arena, (c->node_count + 1) * sizeof *tl->falling);
    tl->listed = arena_zalloc (arena, c->node_count + 1);
    tl->reach = arena_array (arena, bitset_words (c->node_count) + 1, sizeof *tl->reach);
    tl->falls = arena_array (arena, bitset_words (c->node_count) + 1, sizeof *tl->falls);
    tl->reach_at = TIME_US_NONE;
    tl->latest = now;
    timeline_trail_begin (tl);
    tl->sums = arena_new (arena, struct sums);
    bounds_reserve (tl, c->run_count + 64);
    tl->bound[0] = now;
    tl->sorted[0] = 0;
    tl->bound_count = 1;
    lanes_lay_out (tl, awake);
    if (c->sharing)
        occupants_open (tl);
    licences_open (tl);
    running_enter (tl, awake);
    loads_enter (tl);
    down_enter (tl);
    if (c->access && c->access->count)
        views_make (tl);
    return tl;
}

/* All but one reservation, or but the parts of a co-allocation. */
static struct timeline *make_but (struct cluster *c, struct arena *arena, time_us now, bool queue,
                                  struct rsv_id inside, uint64_t whose)
{
    struct timeline *tl = make (c, arena, now, NULL);

    for (uint32_t i = 0; i < c->rsv_count; i++) {
        const struct rsv_spec *spec = &c->rsv[i]->spec;
        if (spec->kind != RSV_ADMIN && spec->end > now && !(inside.v && spec->id.v == inside.v) &&
            !(whose && spec->whose == whose))
            rsv_take (tl, spec, &c->rsv[i]->allocation, 1);
    }
    instead_enter (tl, whose);
    if (queue)
        queue_enter (tl);
    return tl;
}

struct timeline *timeline_make (struct cluster *c, struct arena *arena, time_us now, bool queue,
                                struct rsv_id inside)
{
    return make_but (c, arena, now, queue, inside, 0);
}

struct timeline *timeline_without (struct cluster *c, struct arena *arena, time_us now, bool queue,
                                   uint64_t whose)
{
    return make_but (c, arena, now, queue, (struct rsv_id){0}, c->sharing ? 0 : whose);
}

bool timeline_forward (struct timeline *tl, time_us now)
{
    const struct cluster *c = tl->c;

    if (now == tl->now)
        return true;
    if (now < tl->now || c->measured || c->awaited || (c->run_count && c->run[0].end <= now) ||
        timeline_next_bound (tl, tl->bound_count, tl->now, 1) <= now)
        return false; /* loads, downtimes and jobs past their limits last for a while from now on */
    tl->now = tl->bound[0] = now;
    tl->reach_at = TIME_US_NONE;
    for (uint32_t n = 0; n < tl->node_count; n++)
        lane_forward (tl, &tl->lane[n]);
    if (tl->licence_count)
        tl->licence[0].t = now;
    if (tl->views)
        views_forward (tl);
    return true;
}

bool timeline_may_doze (const struct cluster *c)
{
    bool may = !c->sharing && !c->measured && !narrows (c);

    for (uint32_t i = 0; i < c->rsv_count && may; i++)
        may = c->rsv[i]->spec.kind == RSV_ADMIN;
    return may;
}

struct timeline *timeline_doze (struct cluster *c, struct arena *arena, time_us now,
                                const uint64_t *awake)
{
    return make (c, arena, now, awake);
}

void timeline_wake (struct timeline *tl)
{
    uint32_t words = bitset_words (tl->node_count);
    uint64_t *asleep;

    if (tl->awake == NULL)
        return;
    asleep = arena_array (tl->arena, words + 1, sizeof *asleep);
    for (uint32_t w = 0; w < words; w++)
        asleep[w] = ~tl->awake[w];
    tl->awake = NULL;
    lanes_lay_out (tl, asleep);
    running_enter (tl, asleep);
    if (tl->views)
        views_enter (tl, asleep);
    for (uint32_t i = 0; i < tl->taken_count; i++) {
        const struct taken *t = &tl->taken[i];
        lanes_take (tl, t->shape, &t->allocation, t->start, t->end, t->sign, t->running, asleep);
    }
}

int timeline_conflict (struct cluster *c, const struct rsv_spec *spec, const struct allocation *a,
                       time_us now, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct timeline *tl = timeline_make (c, arena, now, false, (struct rsv_id){0});
    uint32_t shape[REQS_MAX], lacks, access = access_of (c, spec->who);
    struct wanted w = {spec->req_count, spec->req, shape, spec->licence_count, spec->licence};
    int rc = 0;

    for (uint32_t r = 0; r < spec->req_count; r++)
        shape[r] = shape_intern (c, &spec->req[r], access, spec->who ? spec->who->cred : NULL);
    instead_spare (tl, spec, a);
    lacks = timeline_lacks (tl, &w, a, spec->start, spec->end);
    if (lacks == a->count)
        rc = err_set (err, ERR_CONFLICT, "reservation %llu: too few licences in that time",
                      (unsigned long long)spec->id.v);
    else if (lacks != UINT32_MAX)
        rc = err_set (err, ERR_CONFLICT,
                      "reservation %llu: node %u has no room for %u tasks in that time",
                      (unsigned long long)spec->id.v, a->item[lacks].node.v, a->item[lacks].tasks);
    for (uint32_t r = 0; r < spec->req_count; r++)
        shape_release (c, shape[r]);
    arena_destroy (arena);
    return rc;
}
