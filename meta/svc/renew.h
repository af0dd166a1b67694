/* renew: a job's owner lets the metascheduler go on with it after its signature has expired. The delegation
 * (proto/job/delegation.h) is kept in the job's envelope, goes out with every request from then on, and is told
 * to the site in whose queue the job waits, again and again until it has it. */
#ifndef NUI_META_SVC_RENEW_H
#define NUI_META_SVC_RENEW_H

#include "meta/svc/job.h"

/* Until when sites take the job, by its signature or its delegation. */
time_us renew_until (const struct gridjob *job);
/* The job came from the store: whether its site was told nobody knows. */
void renew_loaded (struct gridjob *job);
/* Every site that has a job is to be given another hand-over. */
void renew_all (struct metad *metad);
void renew_close (struct metad *metad);

#endif
