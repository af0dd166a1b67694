/* answers: what sites said of a job's components when they were asked last, kept for nui status: why it
 * does not start sooner, there and elsewhere. */
#ifndef NUI_META_SVC_ANSWERS_H
#define NUI_META_SVC_ANSWERS_H

#include "meta/svc/job.h"
#include "meta/svc/survey.h"

/* Into the job's parts, which are dirty then (job_save). What sites that were not asked this time said
 * before stays. */
void answers_take (struct gridjob *job, const struct survey *survey);
/* Those that are at hand from its Submit are too old by now. */
void answers_forget (struct gridjob *job);

extern const struct metad_part answers_part;

#endif
