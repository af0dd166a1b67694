/* share: who has how many of the jobs that this metascheduler keeps in memory. Nobody may have more than are free: the
 * first who fills it leaves half of it to others, the second a third. O(users with jobs). */
#ifndef NUI_META_SVC_SHARE_H
#define NUI_META_SVC_SHARE_H

#include "meta/job/job.h"

/* Whether so many more jobs of this submitter are taken. ERR_LIMIT. */
int share_check (const struct metad *metad, const char *submitter, uint32_t count, struct err *err);
/* So many more, or less, of an array that was taken are still to come into memory. */
void share_coming (struct metad *metad, const char *submitter, int64_t more);
extern const struct metad_part share_part;

#endif
