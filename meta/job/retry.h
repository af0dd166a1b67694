/* retry: a job that ended badly is run again, where its owner asked for that (common.v1.Retry): placed
 * anew from the beginning, after a delay that doubles, and as another job of its site.
 *
 * Only ends that a site has told lead to it, so that no run is under way when the next one begins. */
#ifndef NUI_META_JOB_RETRY_H
#define NUI_META_JOB_RETRY_H

#include "meta/job/job.h"

enum { RETRY_TIMES_MAX = 100, RETRY_CODES_MAX = 255 };

int retry_check (const JobMessage *job, struct err *err);
/* Whether it is run again after these ends, and then counted, with its moment and the reason set. why: a
 * sentence. The caller makes it Pending and saves. */
bool retry_takes (struct gridjob *job, const char *why);
/* Until its moment; then the job is woken. */
bool retry_waits (struct gridjob *job, struct coalloc_reason *reason);

#endif
