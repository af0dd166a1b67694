/* waits: what keeps a job from being placed though sites could take it: jobs of the grid that it waits
 * for, wherever they run, its owner's hold, and the delay before it is run again.
 *
 * Who waits for whom is known from the signed jobs and built again after a restart; whether it has
 * happened is read from the jobs' own durable states. */
#ifndef NUI_META_PLACE_WAITS_H
#define NUI_META_PLACE_WAITS_H

#include "meta/job/job.h"

/* At submission: each is a kind we know and a job of the same owner. ERR_INVALID, ERR_NOT_FOUND. */
int waits_check (struct metad *metad, const JobMessage *job, const char *submitter,
                 struct err *err);
/* Whether it has to wait, and why; it is then woken (job_timer) when that may have changed. */
bool waits_for (struct gridjob *job, struct coalloc_reason *reason);
/* What it waits for can never be: it is ended with that reason. */
bool waits_never (const struct coalloc_reason *reason);
extern const struct metad_part waits_part;

#endif
