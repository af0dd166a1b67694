/* plan: what passes keep, what they report, and the commit; the pass itself is in steps.c */
#include "local/core/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One block for most passes, kept between them; what is not touched costs nothing, but that a sanitizer
 * marks all of it, for each of a forecast's many planners. */
#ifdef __SANITIZE_ADDRESS__
enum { SCRATCH_BYTES = 256 << 10 };
#else
enum { SCRATCH_BYTES = 32 << 20 };
#endif

struct planner *planner_create (void)
{
    struct planner *pl = calloc (1, sizeof *pl);

    assert (pl && "out of memory");
    pl->scratch = arena_create (SCRATCH_BYTES);
    return pl;
}

void planner_destroy (struct planner *pl)
{
    if (pl == NULL)
        return;
    arena_destroy (pl->scratch);
    free (pl->order);
    free (pl->mark);
    free (pl->row);
    free (pl->verdict);
    free (pl->started);
    free (pl->promised);
    free (pl->pair);
    free (pl->spare);
    free (pl->within);
    memo_free (pl);
    free (pl->listed.shape);
    free (pl->profile.t);
    free (pl->profile.free);
    free (pl);
}

/* A start that did not come about: idle again, as before. */
static void unstart (struct cluster *c, uint32_t slot)
{
    if (job_at (c, slot)->resuming) {
        suspended_again (c, slot);
        return;
    }
    rsv_unuse (c, job_at (c, slot)->spec.id);
    job_leave_running (c, slot);
    job_at (c, slot)->pending = false;
    idle_insert (c, slot);
}

/* The next pass tells the reasons that this one found and nobody heard of. */
static void pass_abandon (struct pass *p)
{
    p->planner->under_way = false;
    space_close (p);
    for (uint32_t i = 0; i < p->plan->reason_count; i++) {
        uint32_t slot = map_find (&p->c->map, p->plan->reason[i].job.v);
        p->c->hot[slot].reason_code = REASON_NOT_PLANNED;
    }
}

void planner_settle (struct cluster *c)
{
    struct planner *pl = c->planner;

    if (pl->under_way)
        pass_abandon (&pl->pass);
    else if (!pl->pending)
        return;
    pl->pending = false;
    memo_void (pl);
    c->settled++;
    for (uint32_t i = pl->started_count; i-- > 0;)
        unstart (c, pl->started[i]);
}

void event_frees (struct cluster *c)
{
    c->planner->frees++;
    c->loads_stale = true;
    memo_void (c->planner);
}

void planner_forget_job (struct cluster *c, uint32_t slot)
{
    (void)c;
    (void)slot;
}

void plan_forget (struct cluster *c)
{
    planner_settle (c);
    event_frees (c);
    c->lasting++;
}

/* --- what the parts of a pass report ------------------------------------------------------- */

void pass_reason (struct pass *p, uint32_t slot, const struct reason *reason)
{
    struct cluster *c = p->c;
    struct job *job = job_at (c, slot);
    struct plan *plan = p->plan;

    job->reason = *reason;
    if (c->hot[slot].reason_code == reason->code)
        return;
    c->hot[slot].reason_code = (uint8_t)reason->code;
    if (plan->reason_count == p->reason_cap) {
        uint32_t cap = p->reason_cap ? p->reason_cap * 2 : 32;
        struct plan_reason *list = arena_alloc (p->arena, cap * sizeof *list);
        if (plan->reason_count)
            memcpy (list, plan->reason, plan->reason_count * sizeof *list);
        plan->reason = list;
        p->reason_cap = cap;
    }
    plan->reason[plan->reason_count++] =
        (struct plan_reason){job->spec.id, job_priority (c, slot), *reason};
}

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
    if (why.have < why.need && access_barred (c, hot->shape, (uint64_t)(why.need - why.have), &why.rsv))
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

void hash_in (uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * UINT64_C (0x9E3779B97F4A7C15);
    *hash ^= *hash >> 29;
}

static void hash_allocation (uint64_t *hash, const struct allocation *a)
{
    for (uint32_t i = 0; i < a->count; i++)
        hash_in (hash, (uint64_t)a->item[i].node.v << 32 | (uint64_t)a->item[i].req << 24 |
                           a->item[i].tasks);
}

void pass_started (struct pass *p, uint32_t slot, enum plan_phase phase)
{
    struct cluster *c = p->c;
    struct job *job = job_at (c, slot);
    struct plan *plan = p->plan;
    struct planner *pl = p->planner;

    if (rsv_use (c, job, p->tl))
        pl->fences_moved = true;
    partition_started (p, slot);
    job->pending = true;
    if (phase != PLAN_RESUMED)
        job->backfilled = phase == PLAN_BACKFILL_SOFT || phase == PLAN_BACKFILL_HARD;
    pl->started = grow (pl->started, &pl->started_cap, pl->started_count + 1,
                        sizeof *pl->started);
    pl->started[pl->started_count++] = slot;
    c->settled++;
    if (plan->start_count == p->start_cap) {
        uint32_t cap = p->start_cap ? p->start_cap * 2 : 8;
        struct plan_start *list = arena_alloc (p->arena, cap * sizeof *list);
        if (plan->start_count)
            memcpy (list, plan->start, plan->start_count * sizeof *list);
        plan->start = list;
        p->start_cap = cap;
    }
    plan->start[plan->start_count++] =
        (struct plan_start){job->spec.id, phase, false, job->allocation};
    hash_in (&plan->hash, job->spec.id.v * 4 + (uint64_t)phase);
    hash_allocation (&plan->hash, &job->allocation);
}

void pass_reserved (struct pass *p, uint32_t slot, time_us start,
                    const struct allocation *allocation)
{
    struct job *job = job_at (p->c, slot);
    struct plan *plan = p->plan;
    struct plan_reservation *r;

    if (plan->reservation_count == p->reservation_cap) {
        uint32_t cap = p->reservation_cap ? p->reservation_cap * 2 : 8;
        struct plan_reservation *list = arena_alloc (p->arena, cap * sizeof *list);
        if (plan->reservation_count)
            memcpy (list, plan->reservation, plan->reservation_count * sizeof *list);
        uint32_t *slots = arena_alloc (p->arena, cap * sizeof *slots);
        if (plan->reservation_count)
            memcpy (slots, p->promised_slot, plan->reservation_count * sizeof *slots);
        plan->reservation = list;
        p->promised_slot = slots;
        p->reservation_cap = cap;
    }
    p->promised_slot[plan->reservation_count] = slot;
    r = &plan->reservation[plan->reservation_count++];
    *r = (struct plan_reservation){.job = job->spec.id, .start = start};
    if (allocation)
        r->allocation = *allocation;
    r->end = time_add (start, length_on (p->c, job, &r->allocation));
    p->endless = p->endless || endless (r->end);
    hash_in (&plan->hash, job->spec.id.v);
    hash_in (&plan->hash, (uint64_t)start);
    hash_allocation (&plan->hash, &r->allocation);
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
            job->reserved.item = grow (job->reserved.item, &job->reserved_cap,
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
    pl->promised = grow (pl->promised, &pl->promised_cap, plan->reservation_count + 1,
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
            unstart (c, slot);
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
