/* job: events of jobs (as others see them: job_view.c). What a job is made of, and how it enters the queue and leaves it,
 * is in queue.c. */
#include "local/core/pass.h"

#include <string.h>

/* A job that shares its nodes with its user's jobs only makes it matter for everybody. */
static void sharing_ask (struct cluster *c, const struct job_spec *spec)
{
    for (uint32_t r = 0; r < spec->req_count && !c->sharing; r++) {
        if (spec->req[r].access == ACCESS_SINGLEUSER)
            c->sharing_asked = c->nodes_dirty = true;
    }
}

int cluster_job_submit (struct cluster *c, const struct job_spec *spec, time_us now,
                        struct err *err)
{
    struct job *job;
    uint64_t version;
    uint32_t slot;
    bool beside;
    int rc = job_spec_check (c, spec, err);

    if (rc != 0)
        return rc;
    if (map_find (&c->map, spec->id.v) != SLOT_NONE)
        return err_set (err, ERR_EXISTS, "job %llu is there already",
                        (unsigned long long)spec->id.v);
    if (c->map.count >= JOBS_MAX)
        return err_set (err, ERR_LIMIT, "job %llu: there are %u jobs, at most %d",
                        (unsigned long long)spec->id.v, c->map.count, JOBS_MAX);
    version = c->version;
    sharing_ask (c, spec);
    beside = c->planner->under_way && !c->nodes_dirty; /* a pass that need not know of it */
    if (!beside)
        event_begin (c, now);
    cluster_settle (c);
    c->settled -= !beside && c->version == version; /* what is free when is as it was */
    slot = job_slot_take (c);
    job = job_at (c, slot);
    job->data_first = 0;
    job_spec_take (c, job, spec);
    job->gone = job->pending = job->backfilled = job->kept = false;
    job->eviction = EVICTION_NONE;
    job->resuming = job->held = false;
    job->deferred_until = job->retry_until = TIME_US_NONE;
    job->retry = (struct allocation){0};
    job->stamp = 0;
    job->rate_micro = 0;
    job->allocation = (struct allocation){0};
    map_put (&c->map, spec->id.v, slot);
    c->pj[slot].bypass = 0;
    c->pj[slot].eff_queue_since = spec->submit;
    job_columns_fill (c, slot);
    c->complex_jobs += job_complex (c, job);
    job_enter_idle (c, slot);
    c->version++;
    return 0;
}

int job_find (const struct cluster *c, struct job_id id, uint32_t *slot_out, struct err *err)
{
    *slot_out = id.v == 0 || id.v == UINT64_MAX ? SLOT_NONE : map_find (&c->map, id.v);
    if (*slot_out == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    return 0;
}

/* An idle job for a change; what passes knew is void. */
static int find_idle (struct cluster *c, struct job_id id, time_us now, uint32_t *slot_out,
                      struct err *err)
{
    int rc = job_find (c, id, slot_out, err);

    if (rc != 0)
        return rc;
    if (job_at (c, *slot_out)->state != JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu is not idle", (unsigned long long)id.v);
    event_begin (c, now);
    event_frees (c);
    c->version++;
    return 0;
}

int cluster_job_modify (struct cluster *c, const struct job_spec *spec, time_us now,
                        struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = job_spec_check (c, spec, err);

    if (rc == 0)
        rc = find_idle (c, spec->id, now, &slot, err);
    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    sharing_ask (c, spec);
    cluster_settle (c);
    job_leave_idle (c, slot);
    idle_remove (c, slot);
    c->complex_jobs -= job_complex (c, job);
    job_spec_drop (c, job);
    job_spec_take (c, job, spec);
    job_columns_fill (c, slot);
    c->complex_jobs += job_complex (c, job);
    job_enter_idle (c, slot);
    return 0;
}

int cluster_job_hold_set (struct cluster *c, struct job_id id, uint32_t holds, time_us now,
                          struct err *err)
{
    uint32_t slot;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_at (c, slot)->spec.holds = holds;
    gate_update (c, slot);
    return 0;
}

int cluster_job_defer (struct cluster *c, struct job_id id, time_us until, time_us now,
                       struct err *err)
{
    uint32_t slot;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_retry_drop (job_at (c, slot));
    job_at (c, slot)->deferred_until = until;
    gate_update (c, slot);
    return 0;
}

int cluster_job_retry_keep (struct cluster *c, struct job_id id, const struct allocation *a,
                            time_us until, time_us now, struct err *err)
{
    uint32_t slot;
    const struct job *job;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    rc = allocation_check (c, job->spec.req, job->spec.req_count, a, err);
    if (rc != 0)
        return rc;
    job_retry_take (job_at (c, slot), a, until);
    gate_update (c, slot);
    return 0;
}

int cluster_job_system_priority_set (struct cluster *c, struct job_id id, int32_t priority,
                                     bool absolute, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    job->spec.system_priority = priority;
    job->spec.flags &= ~(uint32_t)JOB_SYSTEM_PRIORITY;
    if (absolute)
        job->spec.flags |= JOB_SYSTEM_PRIORITY;
    c->system_prioritised -= c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
    c->pj[slot].flags = job_system_flags (c, &job->spec);
    c->pj[slot].system_priority = priority;
    c->system_prioritised += c->pj[slot].flags & PRIORITY_SYSTEM ? 1 : 0;
    return 0;
}

int cluster_job_remove (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_leave_idle (c, slot);
    idle_remove (c, slot);
    job_gone (c, slot);
    return 0;
}

/* --- running ------------------------------------------------------------------------------ */

/* Is there enough left on the nodes right now? */
int room_check (const struct cluster *c, const struct job *job, const struct allocation *a,
                struct err *err)
{
    int32_t left[RES_MAX];

    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t node = a->item[i].node.v;
        memcpy (left, row (c, c->free, node), c->dims * sizeof *left);
        for (uint32_t j = 0; j < i && job->spec.req_count > 1; j++) {
            const struct req *other = &c->shape[job->shape[a->item[j].req]].req;
            for (uint32_t d = 0; d < c->dims && a->item[j].node.v == node; d++)
                left[d] -= (int32_t)a->item[j].tasks * other->task.v[d];
        }
        if (shape_fit (c, &c->shape[job->shape[a->item[i].req]], node, left) < a->item[i].tasks)
            return err_set (err, ERR_CONFLICT, "job %llu: node %u has too little left for %u tasks",
                            (unsigned long long)job->spec.id.v, node, a->item[i].tasks);
    }
    return licences_left (c, job->spec.licence, job->spec.licence_count, err);
}

void job_started (struct cluster *c, uint32_t slot, enum job_state state)
{
    struct job *job = job_at (c, slot);
    const struct rsv *rsv = job->spec.reservation.v ? rsv_find (c, job->spec.reservation) : NULL;

    job->pending = false;
    job->state = state;
    c->starting_count += state == JOB_STARTING;
    job->reason = (struct reason){.code = REASON_NONE, .clears = TIME_US_NONE};
    if (rsv && rsv->spec.kind == RSV_FIRM)
        (void)cluster_rsv_release (c, rsv->spec.id, c->now, NULL); /* used up */
}

int cluster_job_start (struct cluster *c, struct job_id id, const struct allocation *allocation,
                       time_us started, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    struct allocation copy = {0};
    int rc = find_idle (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    rc = allocation_check (c, job->spec.req, job->spec.req_count, allocation, err);
    if (rc == 0)
        rc = room_check (c, job, allocation, err);
    if (rc != 0)
        return rc;
    cluster_settle (c);
    copy.count = allocation->count;
    copy.item = mem_copy (allocation->item, allocation->count * sizeof *allocation->item);
    job_leave_idle (c, slot);
    job_enter_running (c, slot, copy, started);
    job->backfilled = false;
    job->eviction = EVICTION_NONE;
    (void)rsv_use (c, job, NULL);
    job_started (c, slot, JOB_STARTING);
    event_frees (c);
    return 0;
}

static int find_active (struct cluster *c, struct job_id id, time_us now, uint32_t *slot_out,
                        struct err *err)
{
    int rc = job_find (c, id, slot_out, err);

    if (rc != 0)
        return rc;
    event_begin (c, now);
    if (job_at (c, *slot_out)->state == JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu does not run", (unsigned long long)id.v);
    return 0;
}

static void start_set (struct cluster *c, uint32_t slot, time_us started)
{
    struct job *job = job_at (c, slot);
    bool limited = (c->hot[slot].limited & LIMITED_ACTIVE) != 0;

    run_remove (c, slot);
    if (limited)
        limits_active_remove (c->limits, &c->lj[slot], job->limit_end / US_PER_S);
    job->start = started;
    job->limit_end = time_add (started, length_on (c, job, &job->allocation));
    run_insert (c, slot);
    if (limited)
        limits_active_add (c->limits, &c->lj[slot], job->limit_end / US_PER_S);
    c->version++;
    event_frees (c);
}

int cluster_job_running (struct cluster *c, struct job_id id, time_us started, time_us now,
                         struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    if (job->state == JOB_SUSPENDED)
        return err_set (err, ERR_CONFLICT, "job %llu is suspended", (unsigned long long)id.v);
    if (job->state == JOB_STARTING) {
        job->state = JOB_RUNNING;
        c->starting_count--;
    }
    if (started != job->start)
        start_set (c, slot, started);
    return 0;
}

int cluster_job_delayed (struct cluster *c, struct job_id id, const struct who *who, time_us now,
                         struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    struct job *job = job_at (c, slot);
    struct rsv_spec spec = {.id = {id.v},
                            .kind = RSV_COURTESY,
                            .start = now,
                            .who = who,
                            .end = time_add (now, length_on (c, job, &job->allocation)),
                            .req_count = job->spec.req_count,
                            .req = job->spec.req,
                            .licence_count = job->spec.licence_count,
                            .licence = job->spec.licence};
    run_remove (c, slot); /* it is not in its own way */
    nodes_apply (c, job, &job->allocation, 1);
    rc = timeline_conflict (c, &spec, &job->allocation, now, err);
    nodes_apply (c, job, &job->allocation, -1);
    run_insert (c, slot);
    if (rc == 0)
        start_set (c, slot, now);
    return rc;
}

/* A running job is idle again. keep: its nodes stay its own for RESERVATIONRETRYTIME. */
static void job_back (struct cluster *c, uint32_t slot, time_us until, bool keep)
{
    struct job *job = job_at (c, slot);

    c->starting_count -= job->state == JOB_STARTING;
    job->eviction = EVICTION_NONE;
    if (keep)
        job_retry_take (job, &job->allocation, time_add (c->now, c->policy->reservation_retry));
    rsv_unuse (c, job->spec.id);
    if (job->state == JOB_SUSPENDED)
        suspended_forget (c, slot);
    else
        job_leave_running (c, slot);
    job_reshape (c, slot);
    job->backfilled = false;
    job->deferred_until = until > c->now ? until : TIME_US_NONE;
    job_enter_idle (c, slot);
    c->freed_at = c->now;
    c->version++;
    event_frees (c);
}

int cluster_job_requeue (struct cluster *c, struct job_id id, time_us until, time_us now,
                         struct err *err)
{
    const struct job *job;
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    job_back (c, slot, until,
              job->state == JOB_STARTING && c->policy->reservation_retry > 0 &&
                  job->spec.reservation.v == 0);
    return 0;
}

int cluster_job_preempt (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    c->pj[slot].eff_queue_since = c->now;
    job_back (c, slot, TIME_US_NONE, false);
    return 0;
}

int cluster_job_eviction_set (struct cluster *c, struct job_id id, enum eviction eviction,
                              time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_at (c, slot)->eviction = (uint8_t)eviction;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_job_backfilled_set (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job_at (c, slot)->backfilled = true;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_job_end (struct cluster *c, struct job_id id, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    int rc = find_active (c, id, now, &slot, err);

    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    rsv_used_up (c, id);
    c->starting_count -= job->state == JOB_STARTING;
    if (job->state == JOB_SUSPENDED) {
        suspended_forget (c, slot);
        job_gone (c, slot);
        c->version++;
        return 0;
    }
    if (job->limit_end > c->now) {
        memo_changed (c->planner, &job->allocation, job->limit_end, true);
        memo_licences (c->planner, job->spec.licence, job->spec.licence_count);
    } else if (job->limit_end < c->now) {
        memo_void (c->planner);
    }
    job_leave_running (c, slot);
    job_gone (c, slot);
    c->freed_at = c->now;
    c->version++;
    c->planner->frees++;
    return 0;
}

/* --- what running jobs have used ---------------------------------------------------------------- */

static int find_running (const struct cluster *c, struct job_id id, uint32_t *slot_out,
                         struct err *err)
{
    int rc = job_find (c, id, slot_out, err);

    if (rc != 0)
        return rc;
    if (job_at (c, *slot_out)->state == JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu does not run", (unsigned long long)id.v);
    return 0;
}

int cluster_job_used (struct cluster *c, struct job_id id, duration_us cpu_time, int64_t used_micro,
                      time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    duration_us elapsed, used;

    if (cpu_time < 0)
        return err_set (err, ERR_INVALID, "job %llu: %lld us of processor time",
                        (unsigned long long)id.v, (long long)cpu_time);
    event_begin (c, now);
    int rc = find_running (c, id, &slot, err);
    if (rc != 0)
        return rc;
    job = job_at (c, slot);
    /* What another process waited for can be counted late, never back. */
    used = cpu_time > job->usage.cpu_time ? cpu_time - job->usage.cpu_time : 0;
    elapsed = job->usage.at == TIME_US_NONE ? 0 : c->now - job->usage.at;
    if (c->policy->fs_policy != FS_NONE)
        fairshare_advance (c->fairshare, c->now);
    if (c->policy->fs_policy == FS_UTILIZEDPS && job->usage.at != TIME_US_NONE)
        fairshare_charge_over (c->fairshare, job->spec.cred, job->usage.at,
                               (double)used * 1e-6 -
                                   (double)job->rate_micro * 1e-6 * ((double)elapsed * 1e-6));
    if (used_micro >= 0)
        job->usage.used_micro = used_micro;
    else if (elapsed >= US_PER_S) /* less says little */
        job->usage.used_micro = (int64_t)((double)used * 1e6 / (double)elapsed);
    job->usage.cpu_time += used;
    job->usage.at = c->now;
    if (c->policy->fs_policy == FS_UTILIZEDPS)
        usage_rate_set (c, slot);
    return 0;
}

int cluster_job_usage_restore (struct cluster *c, struct job_id id, const struct job_usage *usage,
                               struct err *err)
{
    uint32_t slot;
    int rc = find_running (c, id, &slot, err);

    if (rc != 0)
        return rc;
    event_begin (c, c->now);
    job_at (c, slot)->usage = *usage;
    if (c->policy->fs_policy != FS_NONE)
        usage_rate_set (c, slot);
    return 0;
}
