/* loss: a job at a site that has not been heard of for SITELOSTTIME, by its owner's choice.
 *
 *   report    it stays with that site; its status and a notification say so
 *   resubmit  it is given to another site. The site that had it has been told with the job to end it before
 *             (local/svc/grid): the metascheduler waits a tenth and some seconds longer than the site, each on its
 *             own monotonic clock, the site from a moment that was no later. So it runs in one place at a time.
 *
 * For how long a job is given to its sites is fixed when it is placed first (gridjob.contact_us). */
#ifndef NUI_META_JOB_LOSS_H
#define NUI_META_JOB_LOSS_H

#include "meta/job/job.h"

#define LOSS_CODE "SiteLost"
#define LOSS_FORGOTTEN "Forgotten" /* its site, or we, were restored: svc/inquire.h */

int loss_check (const JobMessage *job, struct err *err);
/* What the sites are told; before the job is given to one. */
void loss_begin (struct gridjob *job);
/* How long until that site's job may be given to another: 0: now; INT64_MAX: never. */
duration_us loss_due (const struct gridjob *job, const char *site);
/* The site has ended it itself, since it had not heard of us. */
bool loss_ended (const JobInfo *info);
/* Not heard of for so long that it is reported as lost. */
bool loss_reported (const struct gridjob *job, const char *site);

#endif
