/* What the parts of a pass report: who starts, who is promised what, and why the others wait. All of it goes into the
 * plan; a start also makes single-use reservations the job's own. */
#include <string.h>

#include "local/core/pass.h"

bool rsv_use (struct cluster *c, const struct job *job, struct timeline *tl)
{
    const struct access *a = c->access;
    bool any = false;

    for (uint32_t i = 0; a && i < a->single_count; i++) {
        struct rsv *rsv = a->open[a->single[i]];
        if (rsv->used_by.v != 0 || rsv->spec.start >= job->limit_end ||
            rsv->spec.end <= job->start || !access_grant (a, job->access, a->single[i]) ||
            !rsv_lies_on (rsv, job))
            continue;
        rsv->used_by = job->spec.id;
        c->lasting += endless (rsv->spec.end);
        any = true;
        if (tl)
            timeline_fences_changed (tl, &rsv->allocation);
    }
    return any;
}

void rsv_unuse (struct cluster *c, struct job_id job)
{
    for (uint32_t i = 0; c->access && i < c->rsv_count; i++) {
        if (c->rsv[i]->used_by.v != job.v)
            continue;
        c->rsv[i]->used_by = (struct job_id){0};
        c->lasting += endless (c->rsv[i]->spec.end);
    }
}

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
    pl->started =
        mem_grow (pl->started, &pl->started_cap, pl->started_count + 1, sizeof *pl->started);
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
