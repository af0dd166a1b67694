/* steps: the pass itself, in the order of Jackson, Snell & Clement 2001, section 3, step by step.
 *
 * It can stop between any two jobs of its walks, so that a shell with calls to answer need not hold them
 * up. The plan is that of the state at its beginning. Jobs that come to wait meanwhile are none of its
 * business: they are looked at by the next pass, as if they had come after this one. Any other event
 * takes back what was planned so far, and the pass is over without a plan: see README.md. */
#include "local/core/pass.h"

/* --- in order of priority ------------------------------------------------------------------- */

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
        if (priority_xfactor (policy, queued, pj->wclimit_s) < policy->reservation_threshold_value)
            return false;
        break;
    }
    *bucket_out = policy_bucket_of (policy, pj->cred[CRED_QOS]);
    return *bucket_out != UINT32_MAX &&
           p->bucket_used[*bucket_out] < policy->bucket[*bucket_out].depth;
}

/* What became of a job that may have a reservation. */
enum promised { PROMISED, PROMISED_NOT, PROMISED_NEVER /* no moment is there for it */ };

static enum promised promise (struct pass *p, uint32_t i)
{
    uint32_t slot = p->order[i], bucket;

    if (!may_reserve (p, slot, &bucket))
        return PROMISED_NOT;
    if (!space_reserve (p, slot))
        return PROMISED_NEVER;
    if (bucket != UINT32_MAX)
        p->bucket_used[bucket]++;
    p->mark[i] = MARK_RESERVED;
    p->reserved++;
    return PROMISED;
}

static enum promised reserve (struct pass *p, uint32_t i)
{
    uint32_t slot = p->order[i];
    struct reason why = reason_plain (REASON_RESERVED);
    const struct plan_reservation *r;
    enum promised got = promise (p, i);

    if (got != PROMISED)
        return got;
    r = &p->plan->reservation[p->plan->reservation_count - 1];
    why.need = job_at (p->c, slot)->spec.req[0].tasks;
    why.have =
        p->c->hot[slot].shape == SLOT_NONE ? 0 : (int64_t)space_now (p, p->c->hot[slot].shape);
    why.clears = r->start;
    pass_reason (p, slot, &why);
    return PROMISED;
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

static void data_tell (struct pass *p, uint32_t i)
{
    struct reason why = reason_plain (REASON_DATA);
    time_us at = job_at (p->c, p->order[i])->spec.data_at;

    why.clears = at > p->now ? at : TIME_US_NONE;
    pass_reason (p, p->order[i], &why);
}

/* Its data is on the way: it holds nobody up, but is promised a place from then on, within bounds. */
static void data_turn (struct pass *p, uint32_t i)
{
    p->mark[i] = MARK_TOLD;
    if (data_kept (p, p->order[i]) && eligible_still (p, p->order[i], LIMIT_SOFT))
        (void)promise (p, i);
    data_tell (p, i);
}

/* Would the job at its turn keep those behind it from anything, other than by what is promised to it? */
static bool stands_before_others (const struct pass *p, uint32_t slot)
{
    return p->policy->backfill_policy == BACKFILL_NONE || (qos_flags (p, slot) & QOS_NTR) ||
           preempt_may (p, slot);
}

/* The job at this position in its turn. True: nobody behind it is looked at. */
static bool priority_one (struct pass *p, uint32_t i)
{
    uint32_t slot = p->order[i], bucket;
    enum promised got;

    if (p->only_reserve && !may_reserve (p, slot, &bucket))
        return false;
    if (p->c->deadlines)
        deadline_turn (p, slot);
    if (data_awaited (p, slot)) {
        data_turn (p, i);
        return false;
    }
    if (!eligible_still (p, slot, LIMIT_SOFT)) {
        p->mark[i] = MARK_SOFT;
        return false;
    }
    pass_spend (p, WORK_PLACE);
    if (space_start (p, slot, 0, p->head.v ? PLAN_BACKFILL_SOFT : PLAN_PRIORITY)) {
        p->mark[i] = p->head.v ? MARK_FILLED : MARK_STARTED; /* past one that waits? */
        return false;
    }
    if (stands_before_others (p, slot) && pass_never (p, i))
        return false;
    if (preempt_may (p, slot) && preempt_name (p, slot))
        p->closed = true;
    got = reserve (p, i);
    if (got == PROMISED_NEVER && !p->closed) {
        (void)pass_never (p, i);
        return false;
    }
    if (p->head.v == 0)
        p->head = job_at (p->c, slot)->spec.id;
    p->closed = p->closed || (qos_flags (p, slot) & QOS_NTR);
    if ((got == PROMISED || p->only_reserve) && !p->closed)
        return false;
    p->first_free = i;
    p->only_reserve =
        p->privileged || any_bucket_left (p) || (qos_flags (p, slot) & QOS_NORESERVATION);
    return !p->only_reserve || p->closed;
}

/* Starts or reserves until the first job that may have neither; one for which no reservation can be made,
 * though it may have one, does not end the walk, nor does it use up the depth. Where there are several buckets,
 * privileged or kept reservations, or where that job wants none, they go on being made behind it. */
static bool priority_go (struct pass *p)
{
    while (p->at < p->count && p->left > 0) {
        uint32_t i = p->at++;
        pass_spend (p, 1);
        if (p->mark[i] == MARK_WAITS && priority_one (p, i))
            return true;
    }
    return p->at == p->count;
}

/* --- beginning ------------------------------------------------------------------------------ */

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
    p->privileged =
        c->qos_reserves || c->deadlines > 0 || c->policy->reservation_policy == RESERVATION_HIGHEST;
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

/* Numbers that change with every start are kept per shape: see room_reason. */
static void pass_waits (struct pass *p, uint32_t i)
{
    struct reason why;

    if (row_at (p, i)->reason_code == REASON_RESOURCES)
        return;
    why = reason_plain (REASON_RESOURCES);
    pass_reason (p, p->order[i], &why);
}

/* Those that wait for room, and nothing else. */
static void waiting_reasons (struct pass *p)
{
    bool *known; /* by shape */

    p->planner->strict = p->policy->backfill_policy == BACKFILL_NONE;
    p->planner->head = p->head;
    p->planner->have_common = p->plain && p->room != ROOM_TIMELINE;
    p->planner->have = p->c->up_free;
    space_now_all (p);
    known = arena_zalloc (p->scratch, p->c->shape_count + 1);
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t shape = row_at (p, i)->shape;
        if (p->mark[i] == MARK_WAITS && data_awaited (p, p->order[i])) {
            data_tell (p, i);
            continue;
        }
        if (p->mark[i] != MARK_WAITS || lacks_licences (p, i))
            continue;
        if (!p->planner->have_common && shape != SLOT_NONE && !known[shape]) {
            uint64_t had = space_now (p, shape);
            p->c->shape[shape].had = had > UINT32_MAX ? UINT32_MAX : (uint32_t)had;
            known[shape] = true;
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

int plan_begin (struct cluster *c, time_us now, struct arena *arena, struct plan *plan,
                struct err *err)
{
    struct planner *pl = c->planner;
    struct pass *p = &pl->pass;

    (void)err;
    event_begin (c, now);
    cluster_settle (c);
    pl->serial++;
    pl->started_count = 0;
    pass_open (p, c, c->now, arena, plan);
    order_make (p);
    eligible_mark (p);
    space_open (p);
    pl->under_way = true;
    return 0;
}

/* --- on its way ------------------------------------------------------------------------------ */

/* Those whose place is settled before it is anybody's turn. */
static void settled_first (struct pass *p)
{
    const struct cluster *c = p->c;

    if (c->rsv_count || c->gated)
        bound_start (p);
    if (p->retries || p->expecting)
        retry_run (p);
    if (c->suspended_count)
        suspended_resume (p);
    if (c->deadlines)
        deadline_hold (p);
}

static void fill_open (struct pass *p, bool hard)
{
    bool fills = p->policy->backfill_policy != BACKFILL_NONE && !p->closed && !(hard && p->plain);

    p->fill = fills ? backfill_open (p, hard) : NULL;
}

static void walk_close (struct pass *p)
{
    if (p->c->deadlines)
        deadline_rest (p);
    for (uint32_t i = 0; i < p->plan->preempt_count; i++)
        hash_in (&p->plan->hash, p->plan->preempt[i].v);
}

static void pass_close (struct pass *p)
{
    struct planner *pl = p->planner;
    struct plan *plan = p->plan;

    space_close (p);
    violations_gather (p);
    waiting_reasons (p);
    bypass_count (p);
    plan->version = p->c->version;
    hash_in (&plan->hash, (uint64_t)plan->start_count << 32 | plan->reservation_count);
    pl->under_way = false;
    pl->pending = true;
    pl->plan = *plan;
}

/* Goes on where it is until that is done, or as much as may be looked at was. */
static void pass_go (struct pass *p)
{
    switch (p->step) {
    case STEP_FIRST:
        settled_first (p);
        p->step = STEP_PRIORITY;
        break;
    case STEP_PRIORITY:
        if (!priority_go (p))
            break;
        walk_close (p);
        fill_open (p, false);
        p->step = STEP_SOFT;
        break;
    case STEP_SOFT:
        if (!backfill_go (p))
            break;
        fill_open (p, true);
        p->step = STEP_HARD;
        break;
    case STEP_HARD:
        if (backfill_go (p))
            p->step = STEP_CLOSE;
        break;
    case STEP_CLOSE:
        pass_close (p);
        break;
    }
}

int plan_step (struct cluster *c, uint32_t most, bool *more_out, struct err *err)
{
    struct planner *pl = c->planner;

    if (!pl->under_way)
        return err_set (err, ERR_CONFLICT, "plan: the cluster has changed since it was begun");
    pl->pass.left = most ? most : 1;
    pass_go (&pl->pass);
    *more_out = pl->under_way;
    return 0;
}

int plan_compute (struct cluster *c, time_us now, struct arena *arena, struct plan *plan,
                  struct err *err)
{
    bool more = true;
    int rc = plan_begin (c, now, arena, plan, err);

    while (rc == 0 && more)
        rc = plan_step (c, UINT32_MAX, &more, err);
    return rc;
}
