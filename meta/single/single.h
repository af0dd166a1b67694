/* single: an ordinary job, placed at the site where it is estimated to complete first.
 *
 * CHOOSE: candidates by their reports, exact answers and prices by survey, the best by estimated
 * completion, then price. SENDING: the choice is durable, then Submit goes out as (grid job id,
 * attempt); an answer that is lost is asked for again with the same attempt. Only a refusal by the
 * site leads to another site, as the next attempt. PLACED: states follow the site's events. */
#ifndef NUI_META_SINGLE_SINGLE_H
#define NUI_META_SINGLE_SINGLE_H

#include "meta/job/job.h"

/* Goes on from where the job is: after Submit, after a restart, when its timer fires. */
void single_wake (struct gridjob *job);
extern const struct job_driver single_driver;
void single_cancel (struct gridjob *job, const char *who);
/* All of these, which are in memory and have not ended, in one transaction and in this order; or none of them, with err. */
int single_cancel_all (struct metad *metad, const uint64_t *number, uint32_t count, const char *who,
                       struct err *err);
/* The site's word on the job; part[0].info is already the new one. The caller saves. */
void single_heard (struct gridjob *job);

/* Its site was restored to a moment before the job came, and nothing of it runs there: it is placed anew. */
void single_forgotten (struct gridjob *job);

/* The best of the answers for this job and when it would start there; NULL: none within its bounds. */
struct survey;
struct survey_offer;
const struct survey_offer *single_best (struct gridjob *job, const struct survey *survey,
                                        time_us *start_out);
/* Whether a call that ended so may have been acted on. */
bool single_uncertain (enum rpc_status status);
/* The job is not to be given to that site again. */
void single_refused_add (struct gridjob *job, const char *site);

#endif
