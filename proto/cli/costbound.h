/* costbound: the most that a job may cost, as every job is signed where there is a price. submit and msub sign it where
 * the user has named none; estimate shows it. It is no choice of the user's, so no site is preferred for it
 * (Job.cost_default): it only ends what a site or a metascheduler could take. */
#ifndef NUI_CLI_COSTBOUND_H
#define NUI_CLI_COSTBOUND_H

#include "proto/base/arena.h"
#include "proto/cli/client.h"
#include "proto/nui/v1/common.pb-c.h"

/* What is signed where the user has said nothing: the dearest price times COSTFACTOR (nui.cfg), for each run that the
 * job may have; a credit at least. */
credit_micro costbound_of (struct cli_context *ctx, const Nui__Common__V1__Job *job,
                           credit_micro dearest);

struct costbound_price {
    credit_micro dearest; /* of one run */
    const char
        *none; /* why there is none: the least is signed, and this told; NULL: dearest is one */
};
/* Finds the price of a job that has no bound yet. CLI_OK, or what the command returns, having told why. */
typedef int (*costbound_ask) (struct cli_context *ctx, const char *command,
                              Nui__Common__V1__Job *job, struct arena *arena, void *arg,
                              struct costbound_price *out);

/* Gives the job its bound and tells the user of it on stderr; asks once, and only where the user has said nothing.
 * array: told as that of each. CLI_OK, or what the command returns. */
int costbound_set (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                   bool array, struct arena *arena, costbound_ask ask, void *arg);

#endif
