/* deadline: promises to jobs that have a deadline. They outlive the pass that made them: before anyone
 * is looked at, the nodes promised are taken; when the job's turn comes they are given back, and it
 * starts, or is promised an earlier moment, or the same once more. */
#include "local/core/pass.h"

static time_us promised_end (const struct cluster *c, const struct job *job)
{
    return time_add (job->reserved_start, length_on (c, job, &job->reserved));
}

void deadline_hold (struct pass *p)
{
    p->chain = false;
    memo_void (p->planner); /* it does not follow these */
    for (uint32_t i = 0; i < p->count; i++) {
        struct job *job = job_at (p->c, p->order[i]);
        struct wanted w = wanted_job (job);
        job->held = false;
        if (job->spec.deadline == 0 || p->mark[i] != MARK_WAITS || job->reserved.count == 0 ||
            job->reserved_start == TIME_US_NONE)
            continue;
        for (uint32_t r = 0; r < job->spec.req_count; r++)
            (void)shape_refresh (p->c, job->shape[r]);
        if (job->reserved_start < p->now ||
            timeline_lacks (p->tl, &w, &job->reserved, job->reserved_start,
                            promised_end (p->c, job)) != UINT32_MAX)
            continue;
        timeline_take (p->tl, &w, &job->reserved, job->reserved_start, promised_end (p->c, job), 1);
        job->held = true;
    }
}

void deadline_turn (struct pass *p, uint32_t slot)
{
    struct job *job = job_at (p->c, slot);
    struct wanted w = wanted_job (job);

    if (!job->held)
        return;
    job->held = false;
    timeline_take (p->tl, &w, &job->reserved, job->reserved_start, promised_end (p->c, job), -1);
    for (uint32_t i = 0; i < p->c->shape_count; i++) /* what was too little before may be enough */
        p->c->shape[i].late_serial = p->c->shape[i].now_serial = 0;
}

void deadline_rest (struct pass *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        struct job *job = job_at (p->c, p->order[i]);
        struct allocation a = job->reserved;
        if (!job->held || p->mark[i] != MARK_WAITS)
            continue;
        job->held = false;
        a.item = arena_memdup (p->arena, a.item, a.count * sizeof *a.item);
        p->mark[i] = MARK_RESERVED;
        p->reserved++;
        pass_reserved (p, p->order[i], job->reserved_start, &a);
    }
}
