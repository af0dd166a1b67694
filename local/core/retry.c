/* retry: RESERVATIONRETRYTIME of maui.cfg(5). A job whose start failed keeps the nodes it was given
 * for that long: it starts there as soon as it may, and while it is deferred nobody else is planned
 * on them. Nodes that are lost (down, or promised to a reservation made since) end that, as does
 * anything that stands in the job's way beside its deferral; it waits like any other then. */
#include "local/core/pass.h"

/* Held back by nothing but its deferral? Other gates come first in what eligible.c finds. */
static bool only_deferred (const struct pass *p, uint32_t slot)
{
    return (p->c->hot[slot].gate & (GATE_HOLD | GATE_DEFER | GATE_DATE | GATE_RSV)) == GATE_DEFER;
}

static void keep (struct pass *p, uint32_t i)
{
    uint32_t slot = p->order[i];
    const struct job *job = job_at (p->c, slot);
    time_us start = job->deferred_until;
    struct allocation a = job->retry;
    time_us end = time_add (start, length_on (p->c, job, &a));
    struct wanted w = wanted_job (job);

    if (timeline_lacks (p->tl, &w, &a, p->now, end) != UINT32_MAX)
        return;
    a.item = arena_memdup (p->arena, a.item, a.count * sizeof *a.item);
    timeline_take (p->tl, &w, &a, p->now, end, 1);
    pass_reserved (p, slot, start, &a);
}

void retry_run (struct pass *p)
{
    p->chain = false;
    memo_void (p->planner); /* it does not follow these */
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t slot = p->order[i];
        if (!retry_holds (p, slot))
            continue;
        for (uint32_t r = 0; r < job_at (p->c, slot)->spec.req_count; r++)
            (void)shape_refresh (p->c, job_at (p->c, slot)->shape[r]);
        if (data_awaited (p, slot))
            continue;
        if (p->mark[i] == MARK_OUT && only_deferred (p, slot)) {
            keep (p, i);
        } else if (p->mark[i] == MARK_WAITS && eligible_still (p, slot, LIMIT_SOFT) &&
                   space_holds (p, slot, &job_at (p->c, slot)->retry)) {
            space_start_at (p, slot, &job_at (p->c, slot)->retry, PLAN_RESERVED);
            p->mark[i] = MARK_STARTED;
        }
    }
}
