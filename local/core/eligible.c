/* eligible: who may be scheduled at all in this pass (steps 2 to 4 of an iteration) */
#include "local/core/pass.h"

#include <string.h>

uint32_t qos_flags (const struct pass *p, uint32_t slot)
{
    return p->c->qos_flagged ? policy_job_flags (p->policy, p->c->pj[slot].cred) : 0;
}

/* A deadline that is lost, holds, deferrals, dates. True: something is in the way. */
static bool gated (struct pass *p, uint32_t slot, struct reason *why)
{
    struct cluster *c = p->c;
    struct job *job = job_at (c, slot);

    if (job->spec.deadline &&
        time_add (p->now, length_least (c, job->spec.walltime_limit)) > job->spec.deadline) {
        *why = reason_plain (REASON_DEADLINE);
        why->clears = job->spec.deadline;
        return true;
    }
    if (job->spec.holds) {
        *why = reason_plain (REASON_HOLD);
        why->need = job->spec.holds;
        return true;
    }
    if (job->deferred_until != TIME_US_NONE && job->deferred_until > p->now) {
        *why = reason_plain (REASON_DEFERRED);
        why->clears = job->deferred_until;
        return true;
    }
    if (job->spec.not_before != TIME_US_NONE && job->spec.not_before > p->now) {
        *why = reason_plain (REASON_NOT_BEFORE);
        why->clears = job->spec.not_before;
        return true;
    }
    gate_update (c, slot);
    return false;
}

/* Do as many jobs of its array run as may? */
static bool array_full (const struct pass *p, uint32_t slot, struct reason *why)
{
    const struct job_spec *spec = &job_at (p->c, slot)->spec;
    uint32_t running = map_find (&p->c->array_running, spec->array);

    if (running == SLOT_NONE || running < spec->array_limit)
        return false;
    *why = reason_plain (REASON_ARRAY_LIMIT);
    why->have = running;
    return true;
}

/* More than all suitable nodes have, or than there are. */
static bool never_fits (struct pass *p, uint32_t slot, struct reason *why)
{
    struct job_hot *hot = &p->c->hot[slot];
    const struct job *job;

    if (hot->fits_serial == p->c->node_serial)
        return false;
    job = job_at (p->c, slot);
    if (job->spec.licence_count) {
        *why = licences_reason (p->c, job->spec.licence, job->spec.licence_count);
        if (why->code == REASON_NEVER_LICENCES)
            return true;
    }
    for (uint32_t r = 0; r < job->spec.req_count; r++) {
        const struct shape *s = shape_refresh (p->c, job->shape[r]);
        if (s->fit_max >= job->spec.req[r].tasks)
            continue;
        *why = reason_plain (REASON_NEVER_FITS);
        why->which = (uint8_t)r;
        why->need = job->spec.req[r].tasks;
        why->have = (int64_t)s->fit_max;
        return true;
    }
    hot->fits_serial = p->c->node_serial;
    return false;
}

struct reason reason_of_limit (enum reason_code code, const struct limits_violation *v)
{
    struct reason why = reason_plain (code);

    why.which = (uint8_t)v->limit;
    why.object = (uint8_t)v->object;
    why.cred = v->id;
    why.need = v->usage + v->request;
    why.have = v->value;
    return why;
}

bool reason_of_class (const struct policy *policy, const uint32_t cred[CRED_KINDS], int64_t wall_s,
                      uint32_t procs, uint32_t nodes, struct reason *why)
{
    enum cred_kind kind = CRED_USER;
    int64_t bound = 0;
    enum class_rule rule =
        policy_class_check (policy, cred, wall_s, (int64_t)procs, (int64_t)nodes, &bound, &kind);

    if (rule == CLASS_ADMITS)
        return false;
    *why = reason_plain (REASON_CLASS);
    why->which = (uint8_t)rule;
    why->object = (uint8_t)kind;
    why->cred = cred[CRED_CLASS];
    why->need = rule == CLASS_MIN_WALL || rule == CLASS_MAX_WALL   ? wall_s
                : rule == CLASS_MIN_NODE || rule == CLASS_MAX_NODE ? (int64_t)nodes
                : rule == CLASS_MAX_PS                             ? wall_s * procs
                                                                   : (int64_t)procs;
    why->have = bound;
    return true;
}

static bool capped (struct pass *p, uint32_t slot, struct reason *why)
{
    struct fairshare_block block;
    const struct priority_job *job = &p->c->pj[slot];
    int64_t rate = fairshare_rate_micro (p->policy, job->procs, job->pe, job->procs);
    double amount = (double)rate / 1e6 * (double)job->wclimit_s;

    if (!fairshare_blocked (p->c->fairshare, job->cred, amount, &block))
        return false;
    *why = reason_plain (REASON_FS_CAP);
    why->object = (uint8_t)block.kind;
    why->cred = block.id;
    why->need = (int64_t)(block.value * 1e4);
    why->have = (int64_t)(block.target * 1e4);
    return true;
}

static bool class_refuses (struct pass *p, uint32_t slot, struct reason *why)
{
    const struct priority_job *pj = &p->c->pj[slot];

    return reason_of_class (p->policy, pj->cred, pj->wclimit_s, pj->procs, pj->nodes, why);
}

/* Limits on what is active; for any of the partitions it may use. *v: the first that it would break. */
static bool within_active (const struct pass *p, uint32_t slot, enum limit_level level,
                           struct limits_violation *v)
{
    const struct cluster *c = p->c;

    if ((c->hot[slot].limited & LIMITED_ACTIVE) &&
        limits_active_check (c->limits, &c->lj[slot], level, p->now_s, v) != 0)
        return false;
    return p->partition_use == NULL || partition_open (c, p->partition_use, slot, level, v) != 0;
}

/* Is it over a hard limit all by itself, or kept out for ever? Such a job takes nobody's place among idle ones. */
static bool never_runs (const struct pass *p, uint32_t slot)
{
    struct limits_violation v;

    return ((p->c->hot[slot].limited & LIMITED_ACTIVE) &&
            limits_never_check (p->c->limits, &p->c->lj[slot], &v) != 0) ||
           never_shut_out (p->c, job_at (p->c, slot)) || never_recurs (p->c, job_at (p->c, slot));
}

/* Everything that may stand in the way of one job; its mark, and the reason where it is out. */
static enum mark eligible_one (struct pass *p, uint32_t slot, uint32_t *blocks, struct reason *why)
{
    struct cluster *c = p->c;
    const struct job_hot *hot = &c->hot[slot];
    const struct limits_job *lj = &c->lj[slot];
    struct limits_violation v;

    if (!hot->gate && (hot->limited & ~(LIMITED_ACTIVE | LIMITED_LICENCE)) == 0 && p->within &&
        p->within[slot] && p->unhindered && hot->fits_serial == c->node_serial &&
        p->partition_use == NULL)
        return MARK_WAITS; /* most of them */
    if (hot->gate && gated (p, slot, why)) {
        *blocks |= why->code == REASON_HOLD ? ACCRUAL_BLOCK_HOLD : 0;
        return MARK_OUT;
    }
    if ((hot->limited & LIMITED_SYSTEM) && limits_job_check (c->limits, lj, &v) != 0) {
        *why = reason_of_limit (REASON_SYSTEM_LIMIT, &v);
        *blocks |= ACCRUAL_BLOCK_LIMIT_SYSTEM;
        return MARK_OUT;
    }
    if ((hot->limited & LIMITED_CLASS) && class_refuses (p, slot, why))
        return MARK_OUT;
    if (c->fs_capped && capped (p, slot, why)) {
        *blocks |= ACCRUAL_BLOCK_FSCAP;
        return MARK_OUT;
    }
    if (never_fits (p, slot, why))
        return MARK_OUT;
    if ((hot->limited & LIMITED_IDLE) && !never_runs (p, slot)) {
        if (limits_idle_check (c->limits, lj, &v) != 0) {
            *why = reason_of_limit (REASON_LIMIT_IDLE, &v);
            *blocks |= ACCRUAL_BLOCK_LIMIT_IDLE;
            return MARK_OUT;
        }
        limits_idle_add (c->limits, lj);
    }
    if ((hot->limited & LIMITED_ARRAY) && array_full (p, slot, why))
        return MARK_OUT;
    if (!c->by_age && priority_rejected (c->priority, job_priority (c, slot))) {
        *why = reason_plain (REASON_NEGATIVE_PRIORITY);
        return MARK_OUT;
    }
    if ((p->within && p->within[slot] && p->partition_use == NULL) ||
        within_active (p, slot, LIMIT_SOFT, &v))
        return MARK_WAITS;
    *why = reason_of_limit (REASON_LIMIT_ACTIVE, &v);
    if (within_active (p, slot, LIMIT_HARD, &v))
        return MARK_SOFT;
    *why = reason_of_limit (REASON_LIMIT_ACTIVE, &v);
    why->never = v.limit == LIMIT_MINPROC ? v.request < v.value : v.request > v.value;
    why->need = why->never ? v.request : why->need;
    *blocks |= ACCRUAL_BLOCK_LIMIT_ACTIVE;
    return MARK_OUT;
}

/* What becomes of the job's clock and flags when the plan is committed. */
static void remember (struct pass *p, uint32_t slot, uint32_t blocks, bool over_soft)
{
    struct planner *pl = p->planner;

    pl->verdict =
        mem_grow (pl->verdict, &pl->verdict_cap, pl->verdict_count + 1, sizeof *pl->verdict);
    pl->verdict[pl->verdict_count++] = (struct verdict){slot, (uint8_t)blocks, over_soft};
}

void verdicts_store (struct cluster *c, time_us now)
{
    const struct planner *pl = c->planner;

    for (uint32_t i = 0; i < pl->verdict_count; i++) {
        const struct verdict *v = &pl->verdict[i];
        struct priority_job *pj = &c->pj[v->slot];
        time_us submit, since;
        if (job_at (c, v->slot)->state != JOB_IDLE)
            continue;
        if (v->over_soft != c->hot[v->slot].over_soft) {
            c->hot[v->slot].over_soft = v->over_soft;
            pj->flags ^= PRIORITY_SPVIOLATION;
        }
        submit = job_at (c, v->slot)->spec.submit;
        since = priority_accrue (c->policy->accrual, submit, pj->eff_queue_since, v->blocks, now);
        c->aged_apart += (since != submit) - (pj->eff_queue_since != submit);
        pj->eff_queue_since = since;
    }
}

/* What stands in its way is its own: is it to be deferred for it? */
static enum defer_reason deferral_of (const struct pass *p, uint32_t slot, const struct reason *why)
{
    time_us due = job_at (p->c, slot)->reserved_start;

    switch ((enum reason_code)why->code) {
    case REASON_NEVER_FITS:
        return DEFER_NO_RESOURCES;
    case REASON_SYSTEM_LIMIT:
        return DEFER_SYSTEM_LIMITS;
    case REASON_LIMIT_ACTIVE: /* soft or hard */
        return due != TIME_US_NONE && due <= p->now ? DEFER_POLICY_VIOLATION : DEFER_NOT;
    default:
        return DEFER_NOT;
    }
}

static void defer_name (struct pass *p, uint32_t slot, const struct reason *why)
{
    struct plan *plan = p->plan;
    enum defer_reason reason = deferral_of (p, slot, why);

    if (reason == DEFER_NOT || p->policy->defer_time == 0)
        return;
    if (plan->defer_count == p->defer_cap) {
        uint32_t cap = p->defer_cap ? p->defer_cap * 2 : 16;
        struct plan_deferral *list = arena_array (p->arena, cap, sizeof *list);
        if (plan->defer_count)
            memcpy (list, plan->defer, plan->defer_count * sizeof *list);
        plan->defer = list;
        p->defer_cap = cap;
    }
    plan->defer[plan->defer_count++] = (struct plan_deferral){job_at (p->c, slot)->spec.id, reason};
}

/* Its deadline is lost: no time that comes helps it. */
static void lapse_name (struct pass *p, uint32_t slot)
{
    struct plan *plan = p->plan;

    if (plan->lapsed_count == p->lapsed_cap) {
        uint32_t cap = p->lapsed_cap ? p->lapsed_cap * 2 : 16;
        struct job_id *list = arena_array (p->arena, cap, sizeof *list);
        if (plan->lapsed_count)
            memcpy (list, plan->lapsed, plan->lapsed_count * sizeof *list);
        plan->lapsed = list;
        p->lapsed_cap = cap;
    }
    plan->lapsed[plan->lapsed_count++] = job_at (p->c, slot)->spec.id;
}

/* Soft limits of all slots in the order of memory, which is quicker than in that of priority. */
static void within_fill (struct pass *p)
{
    struct cluster *c = p->c;
    struct planner *pl = p->planner;

    if (p->plain || c->limited == 0 || c->slot_count / 2 > c->idle_count)
        return;
    pl->within = mem_grow (pl->within, &pl->within_cap, c->slot_count + 1, sizeof *pl->within);
    limits_active_check_many (c->limits, c->lj, c->slot_count, LIMIT_SOFT, p->now_s, pl->within);
    p->within = pl->within;
}

/* Nothing is in the way of anybody who fits at all. */
static void plain_mark (struct pass *p)
{
    const struct cluster *c = p->c;
    struct reason why;

    p->plan->considered = p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t slot = p->order[i];
        p->mark[i] = MARK_WAITS;
        if (c->hot[slot].fits_serial == c->node_serial || !never_fits (p, slot, &why))
            continue;
        p->mark[i] = MARK_OUT;
        p->plan->considered--;
        pass_reason (p, slot, &why);
        defer_name (p, slot, &why);
    }
}

void eligible_mark (struct pass *p)
{
    struct cluster *c = p->c;
    struct reason why;

    limits_idle_clear (c->limits);
    within_fill (p);
    p->unhindered = !c->fs_capped && (c->by_age || !p->policy->reject_negative);
    p->planner->verdict_count = 0;
    if (p->plain) {
        plain_mark (p);
        return;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t slot = p->order[i], blocks = 0;
        uint32_t ahead = p->order[i + AHEAD < p->count ? i + AHEAD : i];
        __builtin_prefetch (&c->hot[ahead]);
        __builtin_prefetch (p->within ? (const void *)&p->within[ahead] : &c->lj[ahead]);
        p->row[i] = c->hot[slot];
        p->mark[i] = (uint8_t)eligible_one (p, slot, &blocks, &why);
        if (blocks || (p->mark[i] == MARK_SOFT) != p->row[i].over_soft)
            remember (p, slot, blocks, p->mark[i] == MARK_SOFT);
        p->retries += p->row[i].gate && retry_holds (p, slot);
        p->expecting += p->row[i].gate && p->mark[i] != MARK_OUT && data_due (p, slot);
        if (p->mark[i] == MARK_OUT || p->mark[i] == MARK_SOFT) {
            pass_reason (p, slot, &why);
            defer_name (p, slot, &why);
            if (why.code == REASON_DEADLINE)
                lapse_name (p, slot);
        }
        if (p->mark[i] != MARK_OUT)
            p->plan->considered++;
    }
}

bool eligible_still (struct pass *p, uint32_t slot, enum limit_level level)
{
    struct limits_violation v;
    struct reason why;

    if (!p->plain && (p->c->hot[slot].limited & LIMITED_ARRAY) && array_full (p, slot, &why)) {
        pass_reason (p, slot, &why);
        return false;
    }
    if (p->plain || within_active (p, slot, level, &v))
        return true;
    why = reason_of_limit (REASON_LIMIT_ACTIVE, &v);
    pass_reason (p, slot, &why);
    return false;
}
