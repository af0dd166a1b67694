/* ranking: what survey_candidates (survey.h) knows of sites by their reports, and keeps between jobs of the same kind. */
#ifndef NUI_META_SVC_RANKING_H
#define NUI_META_SVC_RANKING_H

#include "meta/svc/survey.h"

/* When an ordinary job would be complete there by the site's report, begun no sooner than now and its own
 * not_before; TIME_US_MAX: the report says nothing of its size. */
time_us ranking_completion (const struct metad *metad, const JobMessage *job, const struct survey_pair *pair);

extern const struct metad_part ranking_part;

#endif
