/* usage: what running jobs really use of their processors, for FSPOLICY UTILIZEDPS.
 *
 * Fairshare holds a rate for each running job. Where use is counted it is the job's last measured
 * one (all that is dedicated to it until then), and each measurement puts right what was guessed
 * since the one before, in the windows in which it was guessed. */
#include "local/core/state.h"

static int64_t rate_micro (const struct cluster *c, const struct job *job, double pe)
{
    double used = job->usage.used_micro >= 0 ? (double)job->usage.used_micro * 1e-6 : job->procs;

    return fairshare_rate_micro (c->policy, job->procs, pe, used);
}

void usage_rate_set (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);
    int64_t rate = rate_micro (c, job, c->pj[slot].pe);

    fairshare_rate_add (c->fairshare, job->spec.cred, rate - job->rate_micro);
    job->rate_micro = rate;
}

void usage_open (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    job->usage = (struct job_usage){0, c->now, -1};
    if (c->policy->fs_policy == FS_NONE)
        return;
    fairshare_advance (c->fairshare, c->now);
    usage_rate_set (c, slot);
}

void usage_close (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    if (job->rate_micro == 0)
        return;
    fairshare_advance (c->fairshare, c->now);
    fairshare_rate_add (c->fairshare, job->spec.cred, -job->rate_micro);
    job->rate_micro = 0;
}

void usage_policy_changed (struct cluster *c, uint32_t slot)
{
    struct job *job = job_at (c, slot);

    int64_t before = job->rate_micro;

    usage_rate_set (c, slot);
    if (job->rate_micro != before) /* what was guessed, or not, until now was by another rule */
        job->usage.at = TIME_US_NONE;
}

static int find_active (struct cluster *c, struct job_id id, uint32_t *slot_out, struct err *err)
{
    *slot_out = id.v == 0 || id.v == UINT64_MAX ? SLOT_NONE : map_find (&c->map, id.v);
    if (*slot_out == SLOT_NONE)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not here", (unsigned long long)id.v);
    if (job_at (c, *slot_out)->state == JOB_IDLE)
        return err_set (err, ERR_CONFLICT, "job %llu does not run", (unsigned long long)id.v);
    return 0;
}

int cluster_job_used (struct cluster *c, struct job_id id, duration_us cpu_time,
                      int64_t used_micro, time_us now, struct err *err)
{
    uint32_t slot;
    struct job *job;
    duration_us elapsed, used;

    if (cpu_time < 0)
        return err_set (err, ERR_INVALID, "job %llu: %lld us of processor time",
                        (unsigned long long)id.v, (long long)cpu_time);
    event_begin (c, now);
    int rc = find_active (c, id, &slot, err);
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
    int rc = find_active (c, id, &slot, err);

    if (rc != 0)
        return rc;
    event_begin (c, c->now);
    job_at (c, slot)->usage = *usage;
    if (c->policy->fs_policy != FS_NONE)
        usage_rate_set (c, slot);
    return 0;
}
