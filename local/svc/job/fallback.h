/* fallback: the second account that a cluster's own job is signed for. */
#ifndef NUI_LOCAL_SVC_JOB_FALLBACK_H
#define NUI_LOCAL_SVC_JOB_FALLBACK_H

#include "local/svc/job/jobspec.h"

struct svc;
struct site_job;

/* The account that this job's user is to sign for as well; "": none. */
const char *fallback_wanted (const struct svc *svc, const struct jobspec *spec,
                             const Nui__Common__V1__Envelope *envelope);
/* What came for it is by the same person, of the same job, for the site's account. 0 without one. */
int fallback_check (struct svc *svc, const struct jobspec *spec,
                    const Nui__Common__V1__Envelope *envelope, struct err *err);
/* Of a job that was taken without it. */
int fallback_keep (struct svc *svc, uint64_t number, const Nui__Common__V1__Envelope *envelope,
                   struct err *err);
/* Is this the one of the two that the stored one has inside? */
bool fallback_is (const Nui__Common__V1__Envelope *stored,
                  const Nui__Common__V1__Envelope *envelope);
/* The job has the other account from now on, on disk too; the core's job is still as it was. False: there is none, or it has
 * it. */
bool fallback_take (struct svc *svc, struct site_job *job);
/* A stored envelope as others get it: with one account. NULL where it cannot be read. */
Nui__Common__V1__Envelope *fallback_bare (const void *bytes, size_t len);

#endif
