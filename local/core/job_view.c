/* job_view: jobs as others see them. */
#include "local/core/pass.h"

#include <stdlib.h>
#include <string.h>

int cluster_job_get (const struct cluster *c, struct job_id id, struct job_view *out,
                     struct err *err)
{
    uint32_t slot;
    const struct job *job;
    int rc = job_find (c, id, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    memset (out, 0, sizeof *out);
    out->spec = &job->spec;
    out->state = job->state;
    out->procs = job->procs;
    out->bypass = c->pj[slot].bypass;
    out->deferred_until = job->deferred_until;
    out->start = job->start;
    out->limit_end = job->limit_end;
    out->allocation = job->allocation;
    out->backfilled = job->backfilled;
    out->usage = job->usage;
    out->priority = job_priority (c, slot);
    out->reason = job->state == JOB_IDLE && c->hot[slot].reason_code == REASON_RESOURCES
                      ? room_reason (c, slot)
                      : job->reason;
    out->reserved_start = job->reserved_start;
    out->reserved_end = job->reserved_start == TIME_US_NONE
                            ? TIME_US_NONE
                            : time_add (job->reserved_start, length_on (c, job, &job->reserved));
    out->reserved = job->reserved;
    return 0;
}

uint32_t cluster_job_count (const struct cluster *c, enum job_state state)
{
    uint32_t planned = planner_starts (c), resumed = 0;

    for (uint32_t i = 0; planned && i < c->suspended_count; i++)
        resumed += job_at (c, c->suspended[i])->resuming;
    if (state == JOB_IDLE)
        return c->idle_count + planned - resumed;
    if (state == JOB_SUSPENDED)
        return c->suspended_count;
    return state == JOB_STARTING ? c->starting_count : c->run_count - c->starting_count - planned;
}

static int id_compare (const void *a, const void *b)
{
    const struct job_id *x = a, *y = b;

    return (x->v > y->v) - (x->v < y->v);
}

uint32_t cluster_job_list (const struct cluster *c, enum job_state state, struct job_id *out,
                           uint32_t cap)
{
    uint32_t n = 0;

    if (state == JOB_IDLE)
        return planner_idle_list (c, out, cap);
    for (uint32_t i = 0; i < (state == JOB_SUSPENDED ? c->suspended_count : c->run_count); i++) {
        const struct job *job =
            job_at (c, state == JOB_SUSPENDED ? c->suspended[i] : c->run[i].slot);
        if (job->state != state)
            continue;
        if (n < cap)
            out[n] = job->spec.id;
        n++;
    }
    qsort (out, n < cap ? n : cap, sizeof *out, id_compare);
    return n;
}
