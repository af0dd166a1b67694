/* The cost bound that every job is signed with. submit asks for it where the user has named none; estimate shows it.
 * It is no choice of the user's, so no site is preferred for it (Job.cost_default): it only ends what a site or a
 * metascheduler could take. */
#include <stdlib.h>

#include "meta/cli/grid.h"
#include "proto/rpc/envelope.h"

/* A job that is free now may cost something by the time it runs, and 0 would be no bound. */
#define BOUND_LEAST MICRO_PER_CREDIT
#define BOUND_MOST (INT64_C (1000000000000) * MICRO_PER_CREDIT)

credit_micro grid_bound (struct cli_context *ctx, const Nui__Common__V1__Job *job,
                         credit_micro dearest)
{
    int64_t runs = 1 + (job->retry ? (int64_t)job->retry->times : 0);
    __int128 bound = ((__int128)dearest * cli_cost_factor_ppm (ctx) + 999999) / 1000000 * runs;
    if (bound > BOUND_MOST)
        return BOUND_MOST;
    return bound > BOUND_LEAST ? (credit_micro)bound : BOUND_LEAST;
}

static void bound_tell (struct cli_context *ctx, const char *command,
                        const Nui__Common__V1__Job *job, bool array, credit_micro dearest)
{
    char bound[QUANTITY_TEXT_MAX], price[QUANTITY_TEXT_MAX], factor[QUANTITY_TEXT_MAX],
        runs[64] = "";
    if (job->retry && job->retry->times)
        snprintf (runs, sizeof runs, ", %u runs", job->retry->times + 1);
    fprintf (stderr, "nui %s: %ssigned for at most %s credits (estimate %s, times %s%s)\n", command,
             array ? "each " : "", credit_format (job->cost_max_micro, bound),
             credit_format (dearest, price), credit_format (cli_cost_factor_ppm (ctx), factor),
             runs);
}

/* The dearest price, of those that the metascheduler has. */
static int bound_ask (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                      struct arena *arena, credit_micro *dearest)
{
    Nui__Meta__V1__EstimateRequest request = NUI__META__V1__ESTIMATE_REQUEST__INIT;
    Nui__Common__V1__Envelope *envelope = NULL;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    job->question = true;
    int code = job_sign (ctx, command, job, arena, &envelope);
    job->question = false;
    if (code != CLI_OK)
        return code;
    request.envelope = envelope;
    request.bound_only = true;
    if (grid_call (ctx, "Estimate", &request.base, &reply, &err) == 0) {
        const Nui__Meta__V1__EstimateReply *answer = (const Nui__Meta__V1__EstimateReply *)reply;
        *dearest = answer->price_most_micro;
        if (!answer->priced)
            err_set (
                &err, ERR_UNAVAILABLE,
                "no site that could run the job answers, so it has no price and nothing was "
                "signed; say --max-cost CREDITS to sign a bound of your own, or --max-cost none");
    }
    if (err.code)
        code = cli_fail (command, &err);
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (envelope);
    return code;
}

int grid_bound_set (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                    bool array, struct arena *arena)
{
    credit_micro dearest = 0;
    if (job->cost_any)
        fprintf (
            stderr,
            "nui %s: signed without a cost bound: only the account's credits bound what is charged\n",
            command);
    if (job->cost_any || job->cost_max_micro)
        return CLI_OK;
    int code = bound_ask (ctx, command, job, arena, &dearest);
    if (code != CLI_OK)
        return code;
    job->cost_max_micro = grid_bound (ctx, job, dearest);
    job->cost_default = true;
    bound_tell (ctx, command, job, array, dearest);
    return CLI_OK;
}
