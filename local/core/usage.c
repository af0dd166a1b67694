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
