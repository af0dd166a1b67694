/* inquire: what became of the jobs that a site has, where its numbers show that it or this metascheduler was restored
 * to an earlier moment.
 *
 * A gap (its box begins behind what was heard: those events were acknowledged by what we were before): each job that is
 * there as far as is known here is asked for, and what is told counts as the events that are missing. Its numbers went back
 * (it was restored): likewise, and a job that it does not know is over there: what ran of it the site has ended
 * before it says so. One that had not begun is placed anew; one that may have run has failed (Forgotten), unless its
 * owner has it resubmitted when a site is lost. Until all have been answered no event of the site is taken, and a restart
 * begins again. */
#ifndef NUI_META_SVC_INQUIRE_H
#define NUI_META_SVC_INQUIRE_H

#include "meta/job/job.h"

/* Takes what is told of a part: kept, if it is news, the job saved and, a co-allocated one, stepped. */
typedef void (*inquire_heard_fn) (struct gridjob *job, uint32_t part, const JobInfo *info);
/* The site has reported: whether its events have to wait. acked: what it is told that it has been heard to. */
bool inquire_report (struct metad *metad, struct site *site, const SiteReport *report,
                     inquire_heard_fn heard, uint64_t *acked);
#endif
