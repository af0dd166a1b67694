/* When a site is lost to a job, and what its owner wants then. Called by the drivers of jobs, who act on it; silence alone
 * proves nothing of what the site does, so a job is given away only when the site must have ended it by itself. */
#include "meta/job/loss.h"

#include <string.h>

#include "meta/job/peers.h"
#include "meta/job/sites.h"

#define MARGIN (10 * US_PER_S) /* beside a tenth: what killing and the clocks' rates may take */

static bool resubmits (const JobMessage *job)
{
    return strcmp (job->on_site_loss, "resubmit") == 0;
}

int loss_check (const JobMessage *job, struct err *err)
{
    if (job->on_site_loss[0] && !resubmits (job) && strcmp (job->on_site_loss, "report") != 0)
        return err_set (err, ERR_INVALID,
                        "'%.40s' is not what is done when a site is lost: report or resubmit",
                        job->on_site_loss);
    for (size_t i = 0; i < job->n_flags && resubmits (job); i++)
        if (strcmp (job->flags[i], "NORESTART") == 0)
            return err_set (
                err, ERR_INVALID,
                "a job that must not be run twice (NORESTART) is not resubmitted when a site is lost");
    return 0;
}

void loss_begin (struct gridjob *job)
{
    if (resubmits (job->job) && !job->contact_us)
        job->contact_us = job->metad->config->site_lost;
}

static duration_us silent_for (struct metad *metad, const char *name)
{
    const struct site *site = site_find (metad, name);
    return site ? site_silent_for (metad, site) : 0; /* one that is not configured may not report */
}

duration_us loss_due (const struct gridjob *job, const char *site)
{
    if (!job->contact_us || !site[0])
        return INT64_MAX;
    duration_us silent = silent_for (job->metad, site);
    if (job->lead) /* the site counts whom of the group it reaches, too */
        silent = peers_site_silent (job->metad->peers, site, silent);
    duration_us left = job->contact_us + job->contact_us / 10 + MARGIN - silent;
    return left > 0 ? left : 0;
}

bool loss_ended (const JobInfo *info)
{
    return info->state == NUI__LOCAL__V1__JOB_STATE__JOB_CANCELLED && info->reason &&
           strcmp (info->reason->code, "ContactLost") == 0;
}

bool loss_reported (const struct gridjob *job, const char *site)
{
    return silent_for (job->metad, site) > job->metad->config->site_lost;
}
