/* preempt: whom the first waiting job sends back to the queue (BACKFILLPOLICY PREEMPT).
 *
 * Backfilled jobs are preemptible while the first waiting job has a higher priority than they had at
 * their start (reference a4, a8). The plan
 * only names them: the shell requeues them and passes again, and then that job, being first, starts.
 * So nothing here lasts: victims are taken out of the cluster on trial, asked whether there is room
 * now, and put back. */
#include "local/core/pass.h"

#include <stdlib.h>

enum { EXACT_MAX = 64 }; /* exact questions for one job: they build a timeline each */

struct victim {
    double worth; /* run priority per processor */
    uint64_t id;
    uint32_t slot;
    bool out; /* of the cluster, on trial */
};

struct trial {
    struct pass *p;
    const struct job *job; /* that would start */
    struct victim *list;
    uint32_t count;
    uint32_t asked;
};

/* Least worth first; of equals the one that came last. */
static int by_worth (const void *a, const void *b)
{
    const struct victim *x = a, *y = b;

    if (x->worth != y->worth)
        return x->worth < y->worth ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

static int64_t priority_at (const struct cluster *c, uint32_t slot, time_us when)
{
    return priority_start (c->priority, &c->pj[slot], c->prio_static[slot], when);
}

static double worth_of (const struct cluster *c, uint32_t slot, time_us now)
{
    const struct job *job = job_at (c, slot);
    struct priority_usage usage = {
        .start_priority = priority_at (c, slot, job->start),
        .procs = job->procs,
        .used_s = (now - job->start) / US_PER_S,
        .wclimit_s = c->pj[slot].wclimit_s,
    };

    return (double)priority_run (c->priority, &usage) / (job->procs ? job->procs : 1);
}

static void victims_gather (struct trial *t, uint32_t slot)
{
    struct cluster *c = t->p->c;
    int64_t own = priority_at (c, slot, t->p->now);

    t->list = arena_alloc (t->p->scratch, (c->run_count + 1) * sizeof *t->list);
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t other = c->run[i].slot;
        const struct job *job = job_at (c, other);
        if (!job->backfilled || job->pending ||
            priority_at (c, other, job->start) >= own)
            continue;
        t->list[t->count++] =
            (struct victim){worth_of (c, other, t->p->now), job->spec.id.v, other, false};
    }
    qsort (t->list, t->count, sizeof *t->list, by_worth);
}

static void take_out (struct trial *t, uint32_t i)
{
    struct cluster *c = t->p->c;
    const struct job *job = job_at (c, t->list[i].slot);

    run_remove (c, t->list[i].slot);
    nodes_apply (c, job, &job->allocation, 1);
    t->list[i].out = true;
}

static void put_back (struct trial *t, uint32_t i)
{
    struct cluster *c = t->p->c;
    const struct job *job = job_at (c, t->list[i].slot);

    nodes_apply (c, job, &job->allocation, -1);
    run_insert (c, t->list[i].slot);
    t->list[i].out = false;
}

static bool room_now (struct trial *t)
{
    struct cluster *c = t->p->c;
    struct allocation nodes;
    struct timeline *tl;

    if (c->up_free < (int64_t)t->job->procs)
        return false;
    t->asked++;
    tl = timeline_make (c, t->p->scratch, t->p->now, false, (struct rsv_id){0});
    return timeline_choose (tl, t->p->scratch, t->job->spec.req, t->job->shape,
                            t->job->spec.req_count, t->p->now, t->job->spec.walltime_limit,
                            CHOICE_POLICY, &nodes);
}

/* Takes out as few as it needs, in order of worth; then puts back whom it did not need after all. */
static bool victims_choose (struct trial *t)
{
    uint32_t n = 0;
    bool room = false;

    while (n < t->count && !room && t->asked < EXACT_MAX) {
        take_out (t, n++);
        room = room_now (t);
    }
    for (uint32_t i = 0; room && i + 1 < n && t->asked < 2 * EXACT_MAX; i++) {
        put_back (t, i);
        if (!room_now (t))
            take_out (t, i);
    }
    return room;
}

void preempt_name (struct pass *p, uint32_t slot)
{
    struct trial t = {.p = p, .job = job_at (p->c, slot)};
    struct plan *plan = p->plan;
    bool room;

    for (uint32_t r = 0; r < t.job->spec.req_count; r++)
        (void)shape_refresh (p->c, t.job->shape[r]);
    victims_gather (&t, slot);
    room = victims_choose (&t);
    if (room)
        plan->preempt = arena_array (p->arena, t.count, sizeof *plan->preempt);
    for (uint32_t i = 0; i < t.count; i++) {
        if (!t.list[i].out)
            continue;
        if (room)
            plan->preempt[plan->preempt_count++] = (struct job_id){t.list[i].id};
        put_back (&t, i);
    }
}
