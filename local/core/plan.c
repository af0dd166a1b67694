/* plan: the pass itself, in the order of Jackson, Snell & Clement 2001, section 3 */
#include "local/core/pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* One block for most passes, kept between them; what is not touched costs nothing. */
enum { SCRATCH_BYTES = 32 << 20 };

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
    free (pl->fresh);
    free (pl->within);
    memo_free (pl);
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

void planner_settle (struct cluster *c)
{
    struct planner *pl = c->planner;

    if (!pl->pending)
        return;
    pl->pending = false;
    memo_void (pl);
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

/* Numbers that change with every start are kept per shape: see room_reason. */
static void pass_waits (struct pass *p, uint32_t i)
{
    struct reason why;

    if (row_at (p, i)->reason_code == REASON_RESOURCES)
        return;
    why = reason_plain (REASON_RESOURCES);
    pass_reason (p, p->order[i], &why);
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

static void hash_in (uint64_t *hash, uint64_t value)
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
    pl->started = grow (pl->started, &pl->started_cap, plan->start_count + 1,
                        sizeof *pl->started);
    pl->started[plan->start_count] = slot;
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
    hash_in (&plan->hash, job->spec.id.v);
    hash_in (&plan->hash, (uint64_t)start);
    hash_allocation (&plan->hash, &r->allocation);
}

/* --- step 3: jobs whose own reservation is due ---------------------------------------------- */

/* A timeline of nothing but one reservation, kept while jobs that name it follow one another. */
struct inside {
    struct rsv_id rsv;
    struct timeline *tl;
};

/* Nodes inside the reservation for the job; false: too few are free. */
static bool bound_choose (struct pass *p, struct inside *in, const struct job *job,
                          const struct rsv *rsv, struct allocation *out)
{
    struct wanted w = wanted_job (job);

    if (in->tl == NULL || in->rsv.v != rsv->spec.id.v) {
        in->rsv = rsv->spec.id;
        in->tl = timeline_make (p->c, p->scratch, p->now, false, rsv->spec.id);
        timeline_restrict (in->tl, &rsv->allocation);
    }
    for (uint32_t r = 0; r < job->spec.req_count; r++)
        (void)shape_refresh (p->c, job->shape[r]);
    if (rsv->spec.kind == RSV_FIRM) /* a slot, promised as it is */
        return timeline_choose (in->tl, p->scratch, &w, p->now, job->spec.walltime_limit,
                                CHOICE_POLICY, out);
    return narrow_choose (in->tl, p->scratch, &w,
                          partition_closing (p, map_find (&p->c->map, job->spec.id.v), p->level),
                          p->now, job->spec.walltime_limit, 0, CHOICE_POLICY, out);
}

/* May the job that names the reservation use it? *affinity_out is of no interest. */
static bool rsv_lets_in (const struct cluster *c, const struct rsv *rsv, const struct job *job)
{
    struct who who = access_who (c, job);
    uint8_t affinity;

    if (rsv->spec.kind == RSV_FIRM)
        return true;
    return rsv->spec.kind == RSV_ADMIN && rsv->used_by.v == 0 &&
           access_admits (&rsv->spec, &who, &affinity);
}

static void bound_begin (struct pass *p, uint32_t i, struct inside *in,
                         const struct allocation *chosen)
{
    uint32_t slot = p->order[i];
    struct job *job = job_at (p->c, slot);
    const struct rsv *rsv = rsv_find (p->c, in->rsv);
    time_us end = time_add (p->now, length_on (p->c, job, chosen));
    struct allocation own = *chosen;
    struct wanted w = wanted_job (job);

    memo_changed (p->planner, chosen, end, false);
    memo_licences (p->planner, w.licence, w.licence_count);
    timeline_run (in->tl, &w, chosen, end);
    if (p->tl && rsv->spec.kind == RSV_ADMIN) /* a firm one stands there for it until the commit */
        timeline_run (p->tl, &w, chosen, end);
    own.item = heap_copy (own.item, own.count * sizeof *own.item);
    job_enter_running (p->c, slot, own, p->now);
    pass_started (p, slot, PLAN_RESERVED);
    if (rsv->spec.kind != RSV_ADMIN)
        in->tl = NULL; /* used up */
    p->mark[i] = MARK_STARTED;
}

/* Is it the one that the job names, or, where it names none, one of the administrators' at all? */
static bool rsv_meant (const struct rsv *rsv, const struct job *job)
{
    uint64_t named = job->spec.reservation.v;

    if (named == 0)
        return rsv->spec.kind == RSV_ADMIN;
    return rsv->spec.id.v == named || rsv->spec.group == named;
}

/* Tried in order of their numbers: the one that is named, a group's, or all that admit it. */
static void bound_one (struct pass *p, uint32_t i, struct inside *in)
{
    struct cluster *c = p->c;
    uint32_t slot = p->order[i];
    const struct job *job = job_at (c, slot);
    struct reason why = reason_plain (REASON_RESERVATION_GONE);
    struct allocation chosen;

    p->mark[i] = MARK_OUT;
    why.rsv = job->spec.reservation;
    for (uint32_t r = 0; r < c->rsv_count; r++) {
        const struct rsv *rsv = c->rsv[r];
        if (!rsv_meant (rsv, job) || rsv->spec.end <= p->now)
            continue;
        if (!rsv_lets_in (c, rsv, job)) {
            if (why.code == REASON_RESERVATION_GONE && why.rsv.v)
                why.code = rsv->spec.kind == RSV_ADMIN ? REASON_BARRED : REASON_RESERVATION;
        } else if (rsv->spec.start > p->now) {
            if (why.code == REASON_RESOURCES)
                continue;
            why.clears = why.code == REASON_RESERVATION && why.clears < rsv->spec.start
                             ? why.clears
                             : rsv->spec.start;
            why.code = REASON_RESERVATION;
        } else if (bound_choose (p, in, job, rsv, &chosen)) {
            bound_begin (p, i, in, &chosen);
            return;
        } else {
            why.code = REASON_RESOURCES; /* there may be room in another */
            why.clears = TIME_US_NONE;
        }
    }
    pass_reason (p, slot, &why);
}

static void bound_start (struct pass *p)
{
    struct inside in = {{0}, NULL};

    for (uint32_t i = 0; i < p->count && p->c->gated > 0; i++) {
        if ((p->c->hot[p->order[i]].gate & GATE_RSV) && p->mark[i] != MARK_OUT)
            bound_one (p, i, &in);
    }
}

/* --- step 6: in order of priority ------------------------------------------------------------ */

/* Does the policy let this job have a reservation now? bucket_out: in which it counts. */
static bool may_reserve (struct pass *p, uint32_t slot, uint32_t *bucket_out)
{
    const struct policy *policy = p->policy;
    const struct priority_job *pj = &p->c->pj[slot];
    uint32_t flags = qos_flags (p, slot);
    bool kept = policy->reservation_policy == RESERVATION_HIGHEST && job_at (p->c, slot)->kept;
    duration_us queued = p->now - pj->eff_queue_since;

    *bucket_out = UINT32_MAX;
    if (policy->backfill_policy == BACKFILL_NONE || policy->backfill_policy == BACKFILL_PREEMPT ||
        policy->reservation_policy == RESERVATION_NEVER || (flags & QOS_NORESERVATION))
        return false;
    if ((flags & QOS_RESERVEALWAYS) || kept || job_at (p->c, slot)->spec.deadline)
        return true;
    switch (policy->reservation_threshold) {
    case THRESHOLD_NONE:
        break;
    case THRESHOLD_BYPASS:
        if (pj->bypass < policy->reservation_threshold_value)
            return false;
        break;
    case THRESHOLD_QUEUETIME:
        if ((double)queued / 1e6 < policy->reservation_threshold_value)
            return false;
        break;
    case THRESHOLD_XFACTOR:
        if (priority_xfactor (policy, queued, pj->wclimit_s) <
            policy->reservation_threshold_value)
            return false;
        break;
    }
    *bucket_out = policy_bucket_of (policy, pj->cred[CRED_QOS]);
    return *bucket_out != UINT32_MAX &&
           p->bucket_used[*bucket_out] < policy->bucket[*bucket_out].depth;
}

static bool reserve (struct pass *p, uint32_t i)
{
    uint32_t slot = p->order[i], bucket;
    struct reason why = reason_plain (REASON_RESERVED);
    const struct plan_reservation *r;

    if (!may_reserve (p, slot, &bucket) || !space_reserve (p, slot))
        return false;
    if (bucket != UINT32_MAX)
        p->bucket_used[bucket]++;
    r = &p->plan->reservation[p->plan->reservation_count - 1];
    p->mark[i] = MARK_RESERVED;
    p->reserved++;
    why.need = job_at (p->c, slot)->spec.req[0].tasks;
    why.have = p->c->hot[slot].shape == SLOT_NONE ? 0 : (int64_t)space_now (p, p->c->hot[slot].shape);
    why.clears = r->start;
    pass_reason (p, slot, &why);
    return true;
}

/* Is there anyone whom another bucket would still reserve for? */
static bool any_bucket_left (const struct pass *p)
{
    uint32_t used = 0, left = 0;

    for (uint32_t b = 0; b < p->policy->bucket_count; b++) {
        used += p->policy->bucket[b].used;
        left += p->policy->bucket[b].used && p->bucket_used[b] < p->policy->bucket[b].depth;
    }
    return used > 1 && left > 0;
}

/* Starts or reserves until the first job that can have neither. Where there are several buckets,
 * privileged or kept reservations, or where that job wants none, they go on being made behind it. */
static void priority_phase (struct pass *p)
{
    bool only_reserve = false;

    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t slot = p->order[i], bucket;
        if (p->mark[i] != MARK_WAITS)
            continue;
        if (only_reserve && !may_reserve (p, slot, &bucket))
            continue;
        if (p->c->deadlines)
            deadline_turn (p, slot);
        if (!eligible_still (p, slot, LIMIT_SOFT)) {
            p->mark[i] = MARK_SOFT;
            continue;
        }
        if (space_start (p, slot, 0, p->head.v ? PLAN_BACKFILL_SOFT : PLAN_PRIORITY)) {
            p->mark[i] = p->head.v ? MARK_FILLED : MARK_STARTED; /* past one that waits? */
            continue;
        }
        if (p->head.v == 0)
            p->head = job_at (p->c, slot)->spec.id;
        p->closed = (preempt_may (p, slot) && preempt_name (p, slot)) ||
                    (qos_flags (p, slot) & QOS_NTR);
        if ((reserve (p, i) || only_reserve) && !p->closed)
            continue;
        p->first_free = i;
        only_reserve = p->privileged || any_bucket_left (p) ||
                       (qos_flags (p, slot) & QOS_NORESERVATION);
        if (!only_reserve || p->closed)
            return;
    }
}

/* --- the pass ------------------------------------------------------------------------------- */

static bool is_plain (const struct cluster *c)
{
    const struct policy *p = c->policy;

    return c->gated == 0 && c->limited == 0 && p->fs_policy == FS_NONE && c->aged_apart == 0 &&
           !p->reject_negative && p->partitions_limited == 0;
}

static void pass_open (struct pass *p, struct cluster *c, time_us now, struct arena *arena,
                       struct plan *plan)
{
    memset (p, 0, sizeof *p);
    memset (plan, 0, sizeof *plan);
    p->c = c;
    p->policy = c->policy;
    p->planner = c->planner;
    p->now = now;
    p->now_s = now / US_PER_S;
    p->arena = arena;
    p->scratch = c->planner->scratch;
    p->plan = plan;
    plan->now = now;
    arena_reset (p->scratch);
    for (uint32_t b = 0; b < c->policy->bucket_count; b++)
        p->depth_total += c->policy->bucket[b].used ? c->policy->bucket[b].depth : 0;
    p->privileged = c->qos_reserves || c->deadlines > 0 ||
                    c->policy->reservation_policy == RESERVATION_HIGHEST;
    if (p->privileged)
        p->depth_total = UINT32_MAX;
    p->plain = is_plain (c);
    p->level = LIMIT_SOFT;
    p->partition_use = partition_usage (c, now, p->scratch);
}

/* One that would have room but for its licences, or has neither. */
static bool lacks_licences (struct pass *p, uint32_t i)
{
    const struct job *job = NULL;
    struct reason why;

    if (!space_unlicensed (p, p->order[i], row_at (p, i)))
        return false;
    job = job_at (p->c, p->order[i]);
    why = licences_reason (p->c, job->spec.licence, job->spec.licence_count);
    pass_reason (p, p->order[i], &why);
    return true;
}

/* Those that wait for room, and nothing else. */
static void waiting_reasons (struct pass *p)
{
    p->planner->strict = p->policy->backfill_policy == BACKFILL_NONE;
    p->planner->head = p->head;
    p->planner->have_common = p->plain && p->room != ROOM_TIMELINE;
    p->planner->have = p->c->up_free;
    space_now_all (p);
    for (uint32_t i = p->first_free; i < p->count; i++) {
        uint32_t shape = row_at (p, i)->shape;
        if (p->mark[i] != MARK_WAITS || lacks_licences (p, i))
            continue;
        if (!p->planner->have_common && shape != SLOT_NONE) {
            uint64_t had = space_now (p, shape);
            p->c->shape[shape].had = had > UINT32_MAX ? UINT32_MAX : (uint32_t)had;
        }
        pass_waits (p, i);
    }
}

/* BYPASS++ for each waiting job that a backfilled one of lower priority jumped. */
static void bypass_count (struct pass *p)
{
    uint32_t jumpers = 0;

    for (uint32_t i = p->plan->start_count ? p->count : 0; i-- > 0;) {
        if (p->mark[i] == MARK_FILLED)
            jumpers++;
        else if (jumpers && (p->mark[i] == MARK_WAITS || p->mark[i] == MARK_RESERVED ||
                             p->mark[i] == MARK_SOFT || p->mark[i] == MARK_TOLD))
            p->plan->bypassed++;
    }
}

/* Jobs that are past their limit for longer than they may be. */
static void violations_gather (struct pass *p)
{
    const struct cluster *c = p->c;
    duration_us more = p->policy->max_overrun;
    struct plan *plan = p->plan;

    for (uint32_t i = 0; i < c->run_count && more != TIME_US_MAX; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        if (time_add (c->run[i].end, more) > p->now)
            return;
        if (job->pending || job->eviction != EVICTION_NONE)
            continue;
        if (plan->violation_count == 0)
            plan->violation = arena_array (p->arena, c->run_count, sizeof *plan->violation);
        plan->violation[plan->violation_count++] = job->spec.id;
    }
}

int plan_compute (struct cluster *c, time_us now, struct arena *arena, struct plan *plan,
                  struct err *err)
{
    struct pass p;

    (void)err;
    event_begin (c, now);
    cluster_settle (c);
    c->planner->serial++;
    pass_open (&p, c, c->now, arena, plan);
    order_make (&p);
    eligible_mark (&p);
    space_open (&p);
    if (c->rsv_count || c->gated)
        bound_start (&p);
    if (p.retries)
        retry_run (&p);
    if (c->suspended_count)
        suspended_resume (&p);
    if (c->deadlines)
        deadline_hold (&p);
    priority_phase (&p);
    if (c->deadlines)
        deadline_rest (&p);
    for (uint32_t i = 0; i < plan->preempt_count; i++)
        hash_in (&plan->hash, plan->preempt[i].v);
    if (c->policy->backfill_policy != BACKFILL_NONE && !p.closed) {
        backfill_run (&p, false);
        if (!p.plain)
            backfill_run (&p, true);
    }
    space_close (&p);
    violations_gather (&p);
    waiting_reasons (&p);
    bypass_count (&p);
    plan->version = c->version;
    hash_in (&plan->hash, (uint64_t)plan->start_count << 32 | plan->reservation_count);
    c->planner->started_count = plan->start_count;
    c->planner->pending = true;
    c->planner->plan = *plan;
    return 0;
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
            if (job->gone || job->state != JOB_IDLE || job->pending || seen == (pass == 1))
                continue;
            if (n < cap)
                out[n] = job->spec.id;
            n++;
        }
    }
    return n;
}
