/* notify: webhooks hear how jobs fare: one of the grid's operators (NOTIFICATIONURL), and the one a user
 * named for a job (nui submit --notify).
 *
 * A notice is written with the change it tells of (job_save), so that none is lost, and is POSTed until it is
 * taken: again after 1 s, 2 s, 4 s … at most an hour, for a day; a refusal (HTTP 4xx) ends it. Of one URL in
 * order, one at a time; several URLs beside each other. */
#ifndef NUI_META_SVC_NOTIFY_H
#define NUI_META_SVC_NOTIFY_H

#include "meta/svc/job.h"

enum notify_event { /* bits of metad_config.notify_events */
    NOTIFY_JOB_START = 1 << 0,
    NOTIFY_JOB_END = 1 << 1,
    NOTIFY_JOB_RETRY = 1 << 2,
    NOTIFY_SITE_LOST = 1 << 3,
    NOTIFY_ALL = (1 << 4) - 1,
};
/* "JOBSTART" …, "ALL"; 0: unknown. */
unsigned notify_event_parse (const char *word);

int notify_open (struct metad *metad, struct err *err);
void notify_close (struct metad *metad);
/* Whether users may name this URL (NOTIFICATIONALLOW). */
int notify_check (const struct metad *metad, const JobMessage *job, struct err *err);
/* In the transaction that saves the job: what has happened since it was saved last. */
int notify_job (struct gridjob *job, struct err *err);

#endif
