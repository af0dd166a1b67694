/* gridlimits: how much a user may have with sites at one time, over the whole grid (GRIDUSERCFG MAXJOB, MAXPROC). A job over
 * the limit waits here, is told why, and is placed when others of its user have ended; those that fit go past one that does not.
 *
 * Nobody is asked at a start: in a group of metaschedulers each gives out its share of a limit, as it does of the grid's
 * licences. What counts follows from the durable states of the jobs in memory that are led here. */
#ifndef NUI_META_PLACE_GRIDLIMITS_H
#define NUI_META_PLACE_GRIDLIMITS_H

#include "meta/job/job.h"

/* At submission: a job that no limit can ever admit. ERR_LIMIT. */
int gridlimits_check (const struct metad *metad, const JobMessage *job, const char *submitter,
                      struct err *err);
/* Whether it may be placed now; if not, why, and it is woken when that may have changed. */
bool gridlimits_admit (struct gridjob *job, struct coalloc_reason *reason);
extern const struct metad_part gridlimits_part;

#endif
