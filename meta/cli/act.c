/* cancel, jobhold, jobrelease: something is done to the jobs that are named, or that are like what the options say. One call for
 * each job, and for several of an array. */
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "meta/cli/select.h"

static const struct cli_option act_options[] = {SELECT_FILTERS, SELECT_YES, {0}};

/* What is done to one id: how many jobs it was, in *count_out. */
struct act {
    const char *what, *done; /* "cancel", "cancelled" */
    int (*send) (struct cli_context *ctx, char *id, uint32_t *count_out, struct err *err);
};

static const struct table_column act_columns[] = {
    {"job_id", "JOB", TABLE_TEXT, 0},
    {"jobs", "JOBS", TABLE_INT, 0},
};

static int act_one (struct cli_context *ctx, const char *command, const struct act *act, char *id,
                    bool filtered, struct table *table)
{
    struct err err;
    uint32_t count = 0;
    err_clear (&err);
    int rc = act->send (ctx, id, &count, &err);
    if (rc == ERR_CONFLICT && filtered) /* it ended, or began, since it was listed */
        return CLI_OK;
    if (rc)
        return cli_fail (command, &err);
    table_text (table, id);
    table_int (table, count);
    table_end_row (table);
    if (cli_format (ctx) != CLI_TABLE)
        return CLI_OK;
    if (count > 1)
        printf ("%s: %u jobs %s\n", id, count, act->done);
    else
        printf ("job %s %s\n", id, act->done);
    return CLI_OK;
}

static int act_run (struct cli_context *ctx, int argc, char **argv, const struct act *act)
{
    struct select_args args = {0};
    struct cli_operands operands;
    struct selection selection;
    int code;
    if (!cli_options (ctx, act_options, 0, &args, argc, argv, &operands, &code))
        return code;
    struct arena *arena = arena_create (0);
    struct table *table = TABLE_CREATE (act_columns);
    code = select_jobs (ctx, argv[0], &args, &operands, SELECT_WAITING_FIRST, false, arena,
                        &selection);
    if (code == CLI_OK)
        code = select_confirm (argv[0], act->what, &args, &selection);
    const uint32_t count = code == CLI_OK ? selection.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        int one = act_one (ctx, argv[0], act, selection.id[i], selection.filtered, table);
        code = code == CLI_OK ? one : code;
    }
    if (cli_format (ctx) != CLI_TABLE && code == CLI_OK)
        code = table_print (table, ctx);
    table_destroy (table);
    arena_destroy (arena);
    return code;
}

/* ---- cancel */

static int cancel_send (struct cli_context *ctx, char *id, uint32_t *count_out, struct err *err)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.grid_job_id = id;
    if (grid_call (ctx, "Cancel", &request.base, &reply, err) < 0)
        return err->code;
    bool cancelled = ((Nui__Meta__V1__CancelReply *)reply)->cancelled;
    *count_out = ((Nui__Meta__V1__CancelReply *)reply)->count;
    protobuf_c_message_free_unpacked (reply, NULL);
    return cancelled ? 0 : err_set (err, ERR_CONFLICT, "job %s has ended before", id);
}

static int cancel_run (struct cli_context *ctx, int argc, char **argv)
{
    static const struct act cancel = {"cancel", "cancelled", cancel_send};
    return act_run (ctx, argc, argv, &cancel);
}

const struct cli_command cancel_command = {
    .name = "cancel",
    .group = CLI_USERS,
    .summary = "cancel jobs",
    .run = cancel_run,
    .help = "nui cancel [options] [JOB...]",
    .text =
        "In whatever state: a co-allocated job gives back all its parts. Those that wait are ended before\n"
        "those that run. Options say which, of those that are named or of all of yours; before more than\n"
        "ten that were not named you are asked.",
    .options = act_options,
    .example = "nui cancel grid.42 'grid.43[7-20]'\n"
               "nui cancel --name 'run-*' --state Pending,Queued",
};

/* ---- holds */

static int hold_send (struct cli_context *ctx, char *id, bool held, uint32_t *count_out,
                      struct err *err)
{
    Nui__Meta__V1__HoldRequest request = NUI__META__V1__HOLD_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.grid_job_id = id;
    request.held = held;
    if (grid_call (ctx, "Hold", &request.base, &reply, err) < 0)
        return err->code;
    *count_out = ((Nui__Meta__V1__HoldReply *)reply)->count;
    protobuf_c_message_free_unpacked (reply, NULL);
    return 0;
}

static int set_send (struct cli_context *ctx, char *id, uint32_t *count_out, struct err *err)
{
    return hold_send (ctx, id, true, count_out, err);
}

static int release_send (struct cli_context *ctx, char *id, uint32_t *count_out, struct err *err)
{
    return hold_send (ctx, id, false, count_out, err);
}

static int jobhold_run (struct cli_context *ctx, int argc, char **argv)
{
    static const struct act hold = {"hold", "held", set_send};
    return act_run (ctx, argc, argv, &hold);
}

const struct cli_command jobhold_command = {
    .name = "jobhold",
    .group = CLI_USERS,
    .summary = "keep waiting jobs of the grid from starting",
    .run = jobhold_run,
    .help = "nui jobhold [options] [JOB...]",
    .text =
        "A user hold, wherever the job waits; it keeps its place. Options say which, as of nui cancel.",
    .options = act_options,
    .example = "nui jobhold --name 'run-*'",
};

static int jobrelease_run (struct cli_context *ctx, int argc, char **argv)
{
    static const struct act release = {"release", "released", release_send};
    return act_run (ctx, argc, argv, &release);
}

const struct cli_command jobrelease_command = {
    .name = "jobrelease",
    .group = CLI_USERS,
    .summary = "let jobs start that were held",
    .run = jobrelease_run,
    .help = "nui jobrelease [options] [JOB...]",
    .text = "Takes user holds away, which nui jobhold or the submission has set.",
    .options = act_options,
    .example = "nui jobrelease --all",
};
