/* plan: why jobs wait for room, and the commit; the pass itself is in steps.c, what its parts report in report.c. Nothing
 * in this folder but the door (plan.h) leads here. */
#include "local/core/pass.h"

#include <string.h>

/* What could have started at the end of the last pass in which such a job waited for room. */
static int64_t room_had (const struct cluster *c, const struct job_hot *hot)
{
    const struct planner *pl = c->planner;

    if (hot->gate & GATE_RSV)
        return 0; /* none inside what it names */
    return pl->have_common || hot->shape == SLOT_NONE ? pl->have : c->shape[hot->shape].had;
}

struct reason room_reason (const struct cluster *c, uint32_t slot)
{
    const struct job_hot *hot = &c->hot[slot];
    const struct planner *pl = c->planner;
    struct reason why = reason_plain (REASON_RESOURCES);

    why.need = hot->shape == SLOT_NONE ? hot->procs : hot->tasks;
    why.have = room_had (c, hot);
    if (why.have < why.need &&
        access_barred (c, hot->shape, (uint64_t)(why.need - why.have), &why.rsv))
        why.code = REASON_BARRED;
    if (why.have < why.need && hot->shape != SLOT_NONE && shape_in_set (c, &c->shape[hot->shape]))
        why.code = REASON_NODE_SET;
    if (why.have >= why.need) {
        why.code = pl->strict ? REASON_BEHIND : REASON_PROMISED;
        why.other = pl->head;
        why.length = hot->limit;
    }
    return why;
}

/* --- commit --------------------------------------------------------------------------------- */

static void bypass_store (struct cluster *c)
{
    struct planner *pl = c->planner;
    uint32_t jumpers = 0;

    for (uint32_t i = pl->order_count; i-- > 0;) {
        uint32_t slot = pl->order[i];
        if (jumpers)
            __builtin_prefetch (&c->pj[pl->order[i < AHEAD ? i : i - AHEAD]].bypass, 1);
        if (pl->mark[i] == MARK_FILLED)
            jumpers += job_at (c, slot)->state != JOB_IDLE;
        else if (jumpers && (pl->mark[i] == MARK_WAITS || pl->mark[i] == MARK_RESERVED ||
                             pl->mark[i] == MARK_SOFT || pl->mark[i] == MARK_TOLD))
            c->pj[slot].bypass += jumpers;
    }
}

static bool reserved_same (const struct job *job, const struct plan_reservation *r)
{
    return job->reserved_start == r->start && job->reserved.count == r->allocation.count &&
           (r->allocation.count == 0 ||
            memcmp (job->reserved.item, r->allocation.item,
                    r->allocation.count * sizeof *r->allocation.item) == 0);
}

/* The reservations of this plan in place of those of the last; true: something is different. */
static bool reservations_store (struct cluster *c, const struct plan *plan)
{
    struct planner *pl = c->planner;
    bool changed = pl->promised_count != plan->reservation_count;
    uint64_t stamp = ++pl->stamp;

    for (uint32_t i = 0; i < plan->reservation_count; i++) {
        const struct plan_reservation *r = &plan->reservation[i];
        struct job *job = job_at (c, map_find (&c->map, r->job.v));
        job->stamp = stamp;
        job->kept = true;
        if (reserved_same (job, r))
            continue;
        changed = true;
        job->reserved_start = r->start;
        if (r->allocation.count)
            job->reserved.item = mem_grow (job->reserved.item, &job->reserved_cap,
                                           r->allocation.count, sizeof *job->reserved.item);
        job->reserved.count = r->allocation.count;
        if (r->allocation.count)
            memcpy (job->reserved.item, r->allocation.item,
                    r->allocation.count * sizeof *job->reserved.item);
    }
    for (uint32_t i = 0; i < pl->promised_count; i++) {
        struct job *job = job_at (c, pl->promised[i]);
        if (job->stamp == stamp || job->spec.id.v == 0)
            continue;
        job->reserved_start = TIME_US_NONE;
        job->reserved.count = 0;
    }
    pl->promised = mem_grow (pl->promised, &pl->promised_cap, plan->reservation_count + 1,
                             sizeof *pl->promised);
    for (uint32_t i = 0; i < plan->reservation_count; i++)
        pl->promised[i] = map_find (&c->map, plan->reservation[i].job.v);
    pl->promised_count = plan->reservation_count;
    return changed;
}

int plan_commit (struct cluster *c, const struct plan *plan, struct err *err)
{
    struct planner *pl = c->planner;
    bool changed = false, refused = false;

    if (!pl->pending || plan->version != c->version || plan->hash != pl->plan.hash)
        return err_set (err, ERR_CONFLICT, "plan: the cluster has changed since it was made");
    pl->pending = false;
    c->settled++;
    for (uint32_t i = 0; i < plan->start_count; i++) {
        uint32_t slot = pl->started[i];
        if (plan->start[i].refused) {
            refused = true;
            plan_unstart (c, slot);
            continue;
        }
        changed = true;
        if (job_at (c, slot)->resuming) {
            suspended_over (c, slot);
            continue;
        }
        job_leave_idle (c, slot);
        job_started (c, slot, JOB_STARTING);
        changed = true;
    }
    if (plan->preempt_count)
        job_claim (c, map_find (&c->map, plan->preempt_for.v), &plan->preempt_nodes);
    verdicts_store (c, plan->now);
    if (plan->bypassed)
        bypass_store (c);
    if (reservations_store (c, plan) || changed)
        c->version++;
    if (pl->memo_next_count != plan->reservation_count || plan->reservation_count == 0 ||
        pl->fences_moved || refused) { /* what a refused job was to have is gone */
        memo_void (pl);
        return 0;
    }
    memo_keep (pl);
    for (uint32_t i = 0; i < plan->start_count; i++) {
        const struct job *job = job_at (c, pl->started[i]);
        memo_changed (pl, &job->allocation, job->limit_end, false);
        memo_licences (pl, job->spec.licence, job->spec.licence_count);
    }
    return 0;
}

uint32_t planner_starts (const struct cluster *c)
{
    const struct planner *pl = c->planner;

    return pl->under_way || pl->pending ? pl->started_count : 0;
}

uint32_t planner_idle_list (const struct cluster *c, struct job_id *out, uint32_t cap)
{
    const struct planner *pl = c->planner;
    uint32_t n = 0;

    for (uint32_t pass = 0; pass < 2; pass++) { /* in the last order; then those not seen */
        uint32_t count = pass ? c->idle_count : pl->order_count;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t slot = pass ? c->idle[i] : pl->order[i];
            const struct job *job = job_at (c, slot);
            bool seen = job->entered < pl->serial;
            if (job->gone || job->state != JOB_IDLE || seen == (pass == 1))
                continue;
            if (n < cap)
                out[n] = job->spec.id;
            n++;
        }
    }
    return n;
}
