/* bound: jobs that run inside a reservation, which they name or their QoS does (step 3 of a pass) */
#include "local/core/pass.h"

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
    own.item = mem_copy (own.item, own.count * sizeof *own.item);
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

void bound_start (struct pass *p)
{
    struct inside in = {{0}, NULL};

    for (uint32_t i = 0; i < p->count && p->c->gated > 0; i++) {
        if ((p->c->hot[p->order[i]].gate & GATE_RSV) && p->mark[i] != MARK_OUT &&
            !data_awaited (p, p->order[i]))
            bound_one (p, i, &in);
    }
}
