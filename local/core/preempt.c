/* preempt: whom a waiting job evicts (Maui's PREEMPTPOLICY).
 *
 * A preemptor evicts preemptible jobs that had a lower priority at their start; with BACKFILLPOLICY
 * PREEMPT whoever waits evicts backfilled ones. The plan only names them: the shell requeues, stops or
 * ends them (PREEMPTPOLICY) and passes again, and then that job starts. Until then nothing of lower
 * priority does. So nothing here lasts: victims are taken out of the cluster on trial, asked whether
 * there is room now beside what this pass has promised, and put back. A part of a co-allocation is
 * never a victim, nor a job inside a reservation of its own. */
#include "local/core/pass.h"

#include <stdlib.h>

enum {
    EXACT_MAX = 64, /* exact questions for one job: they build a timeline each */
    TRIED_MAX = 16, /* jobs that a pass looks for victims for, in vain */
};

struct victim {
    double worth; /* run priority per processor */
    uint64_t id;
    uint32_t slot;
    bool leaving; /* named before */
    bool out;     /* of the cluster, on trial */
};

struct trial {
    struct pass *p;
    const struct job *job; /* that would start */
    struct victim *list;
    uint32_t count;
    uint32_t asked;
    struct allocation nodes; /* of the last time there was room */
};

/* Least worth first; of equals the one that came last. Those that leave anyway come before all. */
static int by_worth (const void *a, const void *b)
{
    const struct victim *x = a, *y = b;

    if (x->leaving != y->leaving)
        return x->leaving ? -1 : 1;
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

/* --- who may evict whom ---------------------------------------------------------------------- */

static bool evicts_marked (const struct pass *p, uint32_t slot)
{
    return (qos_flags (p, slot) & QOS_PREEMPTOR) ||
           (job_at (p->c, slot)->spec.flags & JOB_PREEMPTOR);
}

bool preempt_may (const struct pass *p, uint32_t slot)
{
    return p->policy->backfill_policy == BACKFILL_PREEMPT || evicts_marked (p, slot) ||
           access_owner (p->c, job_at (p->c, slot)) || (qos_flags (p, slot) & QOS_RESTARTPREEMPT);
}

/* Its credentials use more than their soft limits. */
static bool over_soft (const struct pass *p, uint32_t slot)
{
    struct cluster *c = p->c;
    int64_t end_s = job_at (c, slot)->limit_end / US_PER_S;
    bool over;

    if (!(c->hot[slot].limited & LIMITED_ACTIVE) || job_at (c, slot)->state == JOB_SUSPENDED)
        return false;
    limits_active_remove (c->limits, &c->lj[slot], end_s);
    over = limits_active_check (c->limits, &c->lj[slot], LIMIT_SOFT, p->now_s, NULL) != 0;
    limits_active_add (c->limits, &c->lj[slot], end_s);
    return over;
}

bool preempt_could (const struct pass *p, uint32_t slot, uint32_t victim)
{
    const struct job *job = job_at (p->c, victim);
    enum preempt_policy how = p->policy->preempt_policy;
    uint32_t flags = qos_flags (p, victim);

    if ((job->spec.flags & JOB_FIRM) || job->eviction == EVICTION_REFUSED ||
        job->spec.reservation.v ||
        ((job->spec.flags & JOB_NORESTART) &&
         (how == PREEMPT_REQUEUE || how == PREEMPT_CHECKPOINT)))
        return false;
    if (p->policy->backfill_policy == BACKFILL_PREEMPT && job->backfilled)
        return true;
    if (evicts_marked (p, slot) && ((flags & QOS_PREEMPTEE) || (job->spec.flags & JOB_PREEMPTEE) ||
                                    ((flags & QOS_PREEMPTSPV) && over_soft (p, victim))))
        return true;
    return (qos_flags (p, slot) & QOS_RESTARTPREEMPT) && !(job->spec.flags & JOB_NORESTART);
}

/* An owner from its reservation: whatever the priorities are. */
static bool owner_could (const struct pass *p, uint32_t slot, uint32_t victim)
{
    const struct job *job = job_at (p->c, victim);

    return !(job->spec.flags & JOB_FIRM) && job->eviction != EVICTION_REFUSED &&
           !((job->spec.flags & JOB_NORESTART) &&
             (p->policy->preempt_policy == PREEMPT_REQUEUE ||
              p->policy->preempt_policy == PREEMPT_CHECKPOINT)) &&
           access_owner_evicts (p->c, job_at (p->c, slot), job);
}

static void victims_gather (struct trial *t, uint32_t slot)
{
    struct cluster *c = t->p->c;
    int64_t own = priority_at (c, slot, t->p->now);

    t->list = arena_alloc (t->p->scratch, (c->run_count + 1) * sizeof *t->list);
    for (uint32_t i = 0; i < c->run_count; i++) {
        uint32_t other = c->run[i].slot;
        const struct job *job = job_at (c, other);
        bool evicts =
            job->eviction == EVICTION_LEAVING || owner_could (t->p, slot, other) ||
            (priority_at (c, other, job->start) < own && preempt_could (t->p, slot, other));
        if (job->pending || !evicts)
            continue;
        t->list[t->count++] = (struct victim){worth_of (c, other, t->p->now), job->spec.id.v, other,
                                              job->eviction == EVICTION_LEAVING, false};
    }
    qsort (t->list, t->count, sizeof *t->list, by_worth);
}

/* --- on trial -------------------------------------------------------------------------------- */

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
    struct wanted w = wanted_job (t->job);
    struct timeline *tl;

    if (c->up_free < (int64_t)t->job->procs)
        return false;
    t->asked++;
    tl = timeline_make (c, t->p->scratch, t->p->now, false, (struct rsv_id){0});
    for (uint32_t i = 0; i < t->p->plan->reservation_count; i++) {
        const struct plan_reservation *r = &t->p->plan->reservation[i];
        struct wanted other = wanted_job (job_at (c, map_find (&c->map, r->job.v)));
        timeline_take (tl, &other, &r->allocation, r->start, r->end, 1);
    }
    return narrow_choose (
        tl, t->p->scratch, &w,
        partition_closing (t->p, map_find (&c->map, t->job->spec.id.v), t->p->level), t->p->now,
        t->job->spec.walltime_limit, 0, CHOICE_POLICY, &t->nodes);
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

bool preempt_name (struct pass *p, uint32_t slot)
{
    struct trial t = {.p = p, .job = job_at (p->c, slot)};
    struct plan *plan = p->plan;
    bool room;

    if (p->evictions_tried == TRIED_MAX)
        return false;
    p->evictions_tried++;
    for (uint32_t r = 0; r < t.job->spec.req_count; r++)
        (void)shape_refresh (p->c, t.job->shape[r]);
    victims_gather (&t, slot);
    room = victims_choose (&t) && room_now (&t);
    if (room) {
        plan->preempt_nodes.count = t.nodes.count;
        plan->preempt_nodes.item =
            arena_memdup (p->arena, t.nodes.item, t.nodes.count * sizeof *t.nodes.item);
        plan->preempt = arena_array (p->arena, t.count, sizeof *plan->preempt);
        plan->preempt_for = t.job->spec.id;
    }
    for (uint32_t i = 0; i < t.count; i++) {
        if (!t.list[i].out)
            continue;
        if (room && !t.list[i].leaving)
            plan->preempt[plan->preempt_count++] = (struct job_id){t.list[i].id};
        put_back (&t, i);
    }
    return room;
}
