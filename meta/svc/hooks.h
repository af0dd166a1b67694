/* hooks: webhooks hear how jobs fare: one of the grid's operators (NOTIFICATIONURL), and the one a user
 * named for a job (nui submit --notify).
 *
 * A notice is written with the change it tells of (job_save), so that none is lost, and is POSTed until it is
 * taken: again after 1 s, 2 s, 4 s … at most an hour, for a day; a refusal (HTTP 4xx) ends it. Of one URL in
 * order, one at a time; several URLs beside each other. */
#ifndef NUI_META_SVC_HOOKS_H
#define NUI_META_SVC_HOOKS_H

#include "meta/job/job.h"

extern const struct metad_part hooks_part;
/* Whether users may name this URL (NOTIFICATIONALLOW). */
int hooks_check (const struct metad *metad, const JobMessage *job, struct err *err);
/* What its user is told of mail that a job may go without: "" or a sentence, in *err. */
const char *hooks_note (const struct metad *metad, const JobMessage *job, struct err *err);
/* In the transaction that saves the job: the files of a component that has ended are where they were to go, or could not be taken
 * there. */
int hooks_files (struct gridjob *job, uint32_t part, struct err *err);

#endif
