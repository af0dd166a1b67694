/* waits: how long jobs of a kind have waited; quantiles of the next wait. Pure.
 *
 * After QBETS (Nurmi, Brevik & Wolski 2007): jobs are binned by processors and limit; within a bin
 * the order statistics of recent waits are the quantiles of the next one, and when several
 * waits in a row lie above the 95 % quantile the past is taken for another regime and dropped. */
#ifndef NUI_LOCAL_ESTIMATE_WAITS_H
#define NUI_LOCAL_ESTIMATE_WAITS_H

#include "local/estimate/history.h"
#include "local/estimate/record.h"

struct waits;
struct waits *waits_create (void); /* never NULL */
void waits_destroy (struct waits *waits);
void waits_add (struct waits *waits, const struct job_known *job, duration_us wait);
void waits_estimate (const struct waits *waits, const struct job_known *job, struct estimate *out);

#endif
