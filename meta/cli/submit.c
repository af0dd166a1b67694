/* submit and estimate: a job is written, signed and sent. */
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"

static int submitted (struct cli_context *ctx, const char *id)
{
    struct strbuf out = STRBUF_INIT;
    if (cli_format (ctx) == CLI_JSON) {
        struct jsonout json = jsonout_make (&out);
        jsonout_object (&json);
        jsonout_key (&json, "job_id");
        jsonout_text (&json, id);
        jsonout_end (&json);
    } else
        strbuf_printf (
            &out, cli_format (ctx) == CLI_CSV && !cli_noheader (ctx) ? "job_id\n%s\n" : "%s\n", id);
    int code = cli_output (&out);
    fflush (stdout);
    strbuf_free (&out);
    return code;
}

int cmd_submit (struct cli_context *ctx, int argc, char **argv)
{
    struct job_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Envelope *envelope = NULL;
    ProtobufCMessage *reply = NULL;
    struct cli_operands operands;
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, grid_submit_options, CLI_STOP_AT_OPERAND, options, argc, argv, &operands,
                      &code))
        goto out;
    code = grid_job_sign (ctx, argv[0], options, &operands, false, arena, &envelope, NULL);
    if (code != CLI_OK)
        goto out;
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    request.envelope = envelope;
    if (grid_call (ctx, "Submit", &request.base, true, &reply, &err) < 0) {
        code = cli_fail (argv[0], &err);
        goto out;
    }
    const char *id = ((Nui__Meta__V1__SubmitReply *)reply)->grid_job_id;
    code = submitted (ctx, id);
    if (code == CLI_OK && options->wait) {
        Nui__Meta__V1__GridJobState state;
        code = grid_watch (ctx, argv[0], id, &state);
        if (code == CLI_OK && state != NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED)
            code = CLI_FAILED;
    }
out:
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (envelope);
    arena_destroy (arena);
    free (options);
    return code;
}

static const struct table_column estimate_columns[] = {
    {"sites", "SITES", TABLE_TEXT, 0},     {"start", "START", TABLE_TIME, 0},
    {"wait", "WAIT", TABLE_DURATION, 0},   {"completion", "COMPLETION", TABLE_TIME, 0},
    {"price", "PRICE", TABLE_CREDITS, 0},  {"free_procs", "FREE", TABLE_INT, 0},
    {"account", "ACCOUNT", TABLE_TEXT, 0}, {"reason", "REASON", TABLE_TEXT, 0},
};

static void estimate_row (struct table *table, const Nui__Meta__V1__Candidate *c, time_us now)
{
    struct strbuf sites = STRBUF_INIT;
    for (size_t i = 0; i < c->n_sites; i++)
        strbuf_printf (&sites, "%s%s", i ? "+" : "", c->sites[i]);
    table_text (table, strbuf_text (&sites));
    strbuf_free (&sites);
    if (c->feasible) {
        table_time (table, c->start_us);
        table_duration (table, c->start_us > now ? c->start_us - now : 0);
        table_time (table, c->completion_us);
        table_credits (table, c->price_micro);
    } else
        for (int i = 0; i < 4; i++)
            table_null (table);
    table_int (table, c->free_procs);
    table_text (table, c->funded && c->account ? c->account : NULL);
    const char *why = c->reason ? c->reason->text : "";
    const char *funds = c->funds_reason ? c->funds_reason->text : "";
    if (*why && *funds)
        table_printf (table, "%s; %s", why, funds);
    else
        table_text (table, *why ? why : *funds ? funds : NULL);
    table_end_row (table);
}

int cmd_estimate (struct cli_context *ctx, int argc, char **argv)
{
    struct job_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Envelope *envelope = NULL;
    ProtobufCMessage *reply = NULL;
    struct table *table = NULL;
    struct cli_operands operands;
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, grid_estimate_options, CLI_STOP_AT_OPERAND, options, argc, argv,
                      &operands, &code))
        goto out;
    code = grid_job_sign (ctx, argv[0], options, &operands, true, arena, &envelope, NULL);
    if (code != CLI_OK)
        goto out;
    Nui__Meta__V1__EstimateRequest request = NUI__META__V1__ESTIMATE_REQUEST__INIT;
    request.envelope = envelope;
    if (grid_call (ctx, "Estimate", &request.base, true, &reply, &err) < 0) {
        code = cli_fail (argv[0], &err);
        goto out;
    }
    const Nui__Meta__V1__EstimateReply *answer = (const Nui__Meta__V1__EstimateReply *)reply;
    table = table_create (estimate_columns, sizeof estimate_columns / sizeof *estimate_columns);
    bool feasible = false;
    for (size_t i = 0; i < answer->n_candidates; i++) {
        feasible |= answer->candidates[i]->feasible;
        estimate_row (table, answer->candidates[i], clock_now_us ());
    }
    code = table_print (table, ctx);
    if (code == CLI_OK && !feasible) {
        err_set (&err, ERR_CONFLICT, "no site, or combination of sites, can run this job");
        code = cli_fail (argv[0], &err);
    }
out:
    table_destroy (table);
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (envelope);
    arena_destroy (arena);
    free (options);
    return code;
}
