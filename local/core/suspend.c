/* suspend: jobs that are stopped and go on later (PREEMPTPOLICY SUSPEND).
 *
 * A suspended job keeps its place (it can go on nowhere else) but nothing of what is counted: its
 * nodes are free for others, memory too, which is the operating system's to page out. It goes on as
 * soon as all its nodes have room for what is left of its limit, before any idle job, but not within
 * ten seconds, and not while a preemptor of higher priority waits that would stop it again. */
#include "local/core/pass.h"

static void suspended_add (struct cluster *c, uint32_t slot, time_us since)
{
    struct job *job = job_at (c, slot);

    job->state = JOB_SUSPENDED;
    job->suspended_at = since;
    job->eviction = EVICTION_NONE;
    c->suspended =
        mem_grow (c->suspended, &c->suspended_cap, c->suspended_count + 1, sizeof *c->suspended);
    c->suspended[c->suspended_count++] = slot;
    c->version++;
    event_frees (c);
}

int cluster_job_suspended_hold (struct cluster *c, struct job_id id, uint32_t holds, time_us now,
                                struct err *err)
{
    uint32_t slot = map_find (&c->map, id.v);

    if (slot == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    if (job_at (c, slot)->state != JOB_SUSPENDED)
        return err_set (err, ERR_CONFLICT, "job %llu is not suspended", (unsigned long long)id.v);
    event_begin (c, now);
    job_at (c, slot)->spec.holds = holds;
    return 0;
}

int cluster_job_suspend (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot = map_find (&c->map, id.v);
    struct job *job;
    struct allocation kept;

    if (slot == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    event_begin (c, now);
    job = job_at (c, slot);
    if (job->state != JOB_RUNNING && job->state != JOB_STARTING)
        return err_set (err, ERR_CONFLICT, "job %llu does not run", (unsigned long long)id.v);
    c->starting_count -= job->state == JOB_STARTING;
    kept.count = job->allocation.count;
    kept.item = mem_copy (job->allocation.item, kept.count * sizeof *kept.item);
    job->used = c->now > job->start ? c->now - job->start : 0;
    job_leave_running (c, slot);
    job->allocation = kept;
    suspended_add (c, slot, c->now);
    c->freed_at = c->now;
    return 0;
}

int cluster_job_resumed (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot = map_find (&c->map, id.v);
    struct job *job;
    int rc;

    if (slot == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    event_begin (c, now);
    job = job_at (c, slot);
    if (job->state != JOB_SUSPENDED)
        return err_set (err, ERR_CONFLICT, "job %llu is not suspended", (unsigned long long)id.v);
    for (uint32_t r = 0; r < job->spec.req_count; r++)
        (void)shape_refresh (c, job->shape[r]);
    rc = room_check (c, job, &job->allocation, err);
    if (rc != 0)
        return rc;
    cluster_settle (c);
    job_enter_running (c, slot, job->allocation, c->now - job->used);
    suspended_over (c, slot);
    job->spec.holds = 0;
    c->version++;
    event_frees (c); /* what is promised there is to be looked at again */
    return 0;
}

int cluster_job_suspended_set (struct cluster *c, struct job_id id, const struct allocation *a,
                               duration_us used, time_us since, time_us now, struct err *err)
{
    uint32_t slot = map_find (&c->map, id.v);
    struct job *job;
    int rc;

    if (slot == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    event_begin (c, now);
    job = job_at (c, slot);
    if (job->state != JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu is not idle", (unsigned long long)id.v);
    rc = allocation_check (c, job->spec.req, job->spec.req_count, a, err);
    if (rc != 0)
        return rc;
    job_leave_idle (c, slot);
    idle_remove (c, slot);
    job->allocation.count = a->count;
    job->allocation.item = mem_copy (a->item, a->count * sizeof *a->item);
    job->start = since - used;
    job->used = used;
    suspended_add (c, slot, since);
    return 0;
}

/* --- in a pass ---------------------------------------------------------------------------- */

static int64_t start_priority (const struct cluster *c, uint32_t slot)
{
    return priority_start (c->priority, &c->pj[slot], c->prio_static[slot],
                           job_at (c, slot)->start);
}

/* Would someone who waits stop it again at once? */
static bool preemptor_waits (struct pass *p, uint32_t slot)
{
    int64_t own = start_priority (p->c, slot);

    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t other = p->order[i];
        if (p->mark[i] == MARK_WAITS && !data_awaited (p, other) && preempt_may (p, other) &&
            job_priority (p->c, other) > own && preempt_could (p, other, slot))
            return true;
    }
    return false;
}

static void resume_one (struct pass *p, uint32_t slot)
{
    struct cluster *c = p->c;
    struct job *job = job_at (c, slot);
    time_us start = p->now - job->used;
    struct allocation a = job->allocation;
    time_us end = time_add (start, length_on (c, job, &a));
    struct wanted w = wanted_job (job);

    for (uint32_t r = 0; r < job->spec.req_count; r++)
        (void)shape_refresh (c, job->shape[r]);
    if (end <= p->now)
        end = p->now + US_PER_S;
    if (timeline_lacks (p->tl, &w, &a, p->now, end) != UINT32_MAX)
        return;
    timeline_run (p->tl, &w, &a, end);
    job->resuming = true;
    job_enter_running (c, slot, a, start);
    pass_started (p, slot, PLAN_RESUMED);
}

/* Highest priority first, then the one stopped first, then the smaller number. */
static bool goes_before (const struct cluster *c, uint32_t a, uint32_t b)
{
    const struct job *x = job_at (c, a), *y = job_at (c, b);
    int64_t px = start_priority (c, a), py = start_priority (c, b);

    if (px != py)
        return px > py;
    if (x->suspended_at != y->suspended_at)
        return x->suspended_at < y->suspended_at;
    return x->spec.id.v < y->spec.id.v;
}

void suspended_resume (struct pass *p)
{
    struct cluster *c = p->c;
    uint32_t *list = arena_array (p->scratch, c->suspended_count, sizeof *list);
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->suspended_count; i++) {
        uint32_t at = n;
        if (suspended_wakeup (c, i) > p->now)
            continue;
        for (; at > 0 && goes_before (c, c->suspended[i], list[at - 1]); at--)
            list[at] = list[at - 1];
        list[at] = c->suspended[i];
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!preemptor_waits (p, list[i]))
            resume_one (p, list[i]);
    }
}
