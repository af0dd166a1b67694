/* gridpolicy: whether this site lets a metascheduler have what it asks (GRIDCFG).
 *
 * Every refusal is one sentence that names the rule and its value, so that a user who reads it in `nui status`
 * knows whom to ask. */
#ifndef NUI_LOCAL_SVC_GRIDPOLICY_H
#define NUI_LOCAL_SVC_GRIDPOLICY_H

#include "local/svc/svc_i.h"

/* Of any job: who, which QoS, account and class, how large and how long. ERR_DENIED. */
int gridpolicy_job (const struct svc *svc, const char *meta, const struct jobspec *spec,
                    struct err *err);
/* Of a slot, beside that: lease, how far ahead, and what the metascheduler would have at one moment with
 * what it has. ERR_DENIED. O(live jobs · log) where SHARE or MAXPROC is said. */
int gridpolicy_slot (struct svc *svc, const char *meta, const struct jobspec *spec, time_us start,
                     duration_us lease, struct err *err);
/* Of what a pass would start from the queue, beside what the metascheduler has then: what is over MAXPROC or
 * SHARE is refused in the plan, with its reason; and, once the plan is committed, does not come again at once. */
void gridpolicy_starts (struct svc *svc, struct plan *plan);
void gridpolicy_defer (struct svc *svc, const struct plan *plan);
/* What the bank holds for the job is less than MINPRICE asks; the sentence. */
bool gridpolicy_too_cheap (const struct svc *svc, const struct site_job *job, credit_micro amount,
                           char *why, size_t cap);

#endif
