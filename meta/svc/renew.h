/* renew: a job's owner lets the metascheduler go on with it after its signature has expired. The delegation
 * (proto/job/delegation.h) is kept in the job's envelope, goes out with every request from then on, and is told
 * to the site in whose queue the job waits, again and again until it has it. */
#ifndef NUI_META_SVC_RENEW_H
#define NUI_META_SVC_RENEW_H

#include "meta/svc/job.h"

extern const struct metad_part renew_part;

#endif
