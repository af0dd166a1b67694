/* The price of which a job's cost bound is made (proto/cli/costbound.h): the dearest that the metascheduler has. Nothing
 * may be held or run for what is signed to ask for it. */
#include "meta/cli/grid.h"
#include "proto/rpc/envelope.h"

static int bound_ask (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                      struct arena *arena, void *arg, struct costbound_price *out)
{
    Nui__Meta__V1__EstimateRequest request = NUI__META__V1__ESTIMATE_REQUEST__INIT;
    Nui__Common__V1__Envelope *envelope = NULL;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    (void)arg;
    job->question = true;
    int code = job_sign (ctx, command, job, arena, &envelope);
    job->question = false;
    if (code != CLI_OK)
        return code;
    request.envelope = envelope;
    request.bound_only = true;
    if (grid_call (ctx, "Estimate", &request.base, &reply, &err) == 0) {
        const Nui__Meta__V1__EstimateReply *answer = (const Nui__Meta__V1__EstimateReply *)reply;
        out->dearest = answer->price_most_micro;
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
    return costbound_set (ctx, command, job, array, arena, bound_ask, NULL);
}
