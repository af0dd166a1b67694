/* estimate: the answer to Estimate from a survey: each way to run the job, best first, with start,
 * price, funds and, where impossible, the reason. */
#ifndef NUI_META_SVC_ESTIMATE_H
#define NUI_META_SVC_ESTIMATE_H

#include "meta/place/survey.h"

enum { ESTIMATE_COMBINATIONS_MAX = 16 };

/* Takes over the survey and answers the call, now or when the bank has quoted the combinations. bound_only: with
 * the dearest price alone. */
void estimate_answer (struct rpccall *call, struct survey *survey, bool bound_only);

#endif
