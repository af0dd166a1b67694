/* past: jobs that the metascheduler has forgotten (JOBHISTORYTIME), as the bank was charged for them. */
#ifndef NUI_META_CLI_PAST_H
#define NUI_META_CLI_PAST_H

#include "meta/cli/select.h"

/* One more page behind those that were read, the oldest: jobs of the filter's period that ended by `forgotten` and are on none
 * of them. The bank knows neither name nor state nor exit code, nor when they were submitted; one of an array is a job of its
 * own. *found_out: those that the filter wants. */
int past_read (struct cli_context *ctx, const struct job_filter *filter, bool all,
               time_us forgotten, struct job_pages *pages, uint64_t *found_out, struct err *err);

#endif
