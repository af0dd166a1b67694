/* The cost bound that a job is signed with: submit and msub find a price, each of whom it can ask, and sign a multiple
 * of it. Nothing is signed here. */
#include "proto/cli/costbound.h"

#include <stdio.h>

/* A job that is free now may cost something by the time it runs, and 0 would be no bound. */
#define BOUND_LEAST MICRO_PER_CREDIT
#define BOUND_MOST (INT64_C (1000000000000) * MICRO_PER_CREDIT)

credit_micro costbound_of (struct cli_context *ctx, const Nui__Common__V1__Job *job,
                           credit_micro dearest)
{
    int64_t runs = 1 + (job->retry ? (int64_t)job->retry->times : 0);
    __int128 bound = ((__int128)dearest * cli_cost_factor_ppm (ctx) + 999999) / 1000000 * runs;
    if (bound > BOUND_MOST)
        return BOUND_MOST;
    return bound > BOUND_LEAST ? (credit_micro)bound : BOUND_LEAST;
}

static void bound_tell (struct cli_context *ctx, const char *command,
                        const Nui__Common__V1__Job *job, bool array,
                        const struct costbound_price *price)
{
    char bound[QUANTITY_TEXT_MAX], dearest[QUANTITY_TEXT_MAX], factor[QUANTITY_TEXT_MAX],
        runs[64] = "";
    if (job->retry && job->retry->times)
        snprintf (runs, sizeof runs, ", %u runs", job->retry->times + 1);
    fprintf (stderr, "nui %s: %ssigned for at most %s credits (", command, array ? "each " : "",
             credit_format (job->cost_max_micro, bound));
    if (price->none)
        fprintf (stderr, "%s)\n", price->none);
    else
        fprintf (stderr, "estimate %s, times %s%s)\n", credit_format (price->dearest, dearest),
                 credit_format (cli_cost_factor_ppm (ctx), factor), runs);
}

int costbound_set (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                   bool array, struct arena *arena, costbound_ask ask, void *arg)
{
    struct costbound_price price = {0};
    if (job->cost_any)
        fprintf (
            stderr,
            "nui %s: signed without a cost bound: only the account's credits bound what is charged\n",
            command);
    if (job->cost_any || job->cost_max_micro)
        return CLI_OK;
    int code = ask (ctx, command, job, arena, arg, &price);
    if (code != CLI_OK)
        return code;
    job->cost_max_micro = costbound_of (ctx, job, price.none ? 0 : price.dearest);
    job->cost_default = true;
    bound_tell (ctx, command, job, array, &price);
    return CLI_OK;
}
