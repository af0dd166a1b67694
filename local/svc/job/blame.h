/* blame: nodes that fail one job after another, whoever's they are (NODEFAILUREUSERS). */
#ifndef NUI_LOCAL_SVC_JOB_BLAME_H
#define NUI_LOCAL_SVC_JOB_BLAME_H

#include "local/svc/job.h"

/* What the resource manager says of a job's end, before anything is made of it. May drain a node, never touches the job. */
void blame_ended (struct svc *svc, const struct site_job *job, const struct rm_status *status);

#endif
