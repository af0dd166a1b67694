/* hooks: webhooks hear how jobs fare: one of the grid's operators (NOTIFICATIONURL), and the one a user
 * named for a job (nui submit --notify).
 *
 * A notice is written with the change it tells of (job_save), so that none is lost, and is POSTed until it is
 * taken: again after 1 s, 2 s, 4 s … at most an hour, for a day; a refusal (HTTP 4xx) ends it. Of one URL in
 * order, one at a time; several URLs beside each other. */
#ifndef NUI_META_SVC_HOOKS_H
#define NUI_META_SVC_HOOKS_H

#include "meta/svc/job.h"

enum hook_event { /* bits of metad_config.notify_events */
    HOOK_JOB_START = 1 << 0,
    HOOK_JOB_END = 1 << 1,
    HOOK_JOB_RETRY = 1 << 2,
    HOOK_SITE_LOST = 1 << 3,
    HOOK_ALL = (1 << 4) - 1,
};
/* "JOBSTART" …, "ALL"; 0: unknown. */
unsigned hooks_event_parse (const char *word);

int hooks_open (struct metad *metad, struct err *err);
void hooks_close (struct metad *metad);
/* Whether users may name this URL (NOTIFICATIONALLOW). */
int hooks_check (const struct metad *metad, const JobMessage *job, struct err *err);
/* In the transaction that saves the job: what has happened since it was saved last, its end only if that may be told. */
int hooks_job (struct gridjob *job, struct err *err);
/* In the transaction after which its end may be told. */
int hooks_over (struct gridjob *job, struct err *err);
/* In such a transaction: the files of a component that has ended are where they were to go, or could not be taken
 * there. */
int hooks_files (struct gridjob *job, uint32_t part, struct err *err);

#endif
