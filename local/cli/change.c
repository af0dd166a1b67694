/* sethold, releasehold, setspri, runjob, mjobctl: changes of waiting jobs. */
#include <string.h>

#include "local/cli/local_cli.h"
#include "proto/nui/v1/meta.pb-c.h"

enum { GRID_TIMEOUT_S = 60 };

struct change_args {
    bool user, system, batch, all, relative, force, cancel, run, requeue, suspend, resume;
    const char *hold, *unhold, *priority, *modify, *query, *site;
};

#define AT(field) offsetof (struct change_args, field)
#define SITE_OPTION {"site", 0, CLI_OPT_STRING, AT (site), 0, 0}

static const struct table_column change_columns[] = {
    {"job_id", "JobName", TABLE_TEXT, 0},
    {"done", "Done", TABLE_BOOL, 0},
};

/* What one command does to one job. */
struct change {
    const char *command;
    const char *method;
    const char *site;
    const ProtobufCMessage *request;
    char **job_field; /* of the request */
    const char *sentence; /* printed once in tables when all went well */
};

static int change_one (struct cli_context *ctx, const struct change *c, char *job, struct table *t)
{
    Nui__Local__V1__ChangeReply *reply = NULL;
    struct err err = {0};
    *c->job_field = job;
    if (site_admin (ctx, c->site, c->method, c->request, false, &reply, &err) < 0)
        return cli_fail (c->command, &err);
    table_text (t, reply->job_id);
    table_bool (t, true);
    table_end_row (t);
    nui__local__v1__change_reply__free_unpacked (reply, NULL);
    return CLI_OK;
}

static int change_all (struct cli_context *ctx, const struct change *c, char **job, int count)
{
    int all = CLI_OK;
    struct table *t = table_create (change_columns, 2);
    for (int i = 0; i < count; i++)
        all = worse (all, change_one (ctx, c, job[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    else if (table_row_count (t) > 0)
        printf ("\n%s\n", c->sentence);
    table_destroy (t);
    return all;
}

/* --- holds -------------------------------------------------------------------------------- */

static size_t holds_of (const struct change_args *args, bool by_default, char *out[3])
{
    size_t n = 0;
    bool none = !args->user && !args->system && !args->batch && !args->all;
    if (args->user || args->all)
        out[n++] = (char *)"User";
    if (args->system || args->all)
        out[n++] = (char *)"System";
    if (args->batch || args->all || (none && by_default))
        out[n++] = (char *)"Batch";
    return n;
}

static int hold_send (struct cli_context *ctx, const char *command, const char *site, bool set,
                      char **holds, size_t count, char **job, int jobs)
{
    Nui__Local__V1__SetHoldRequest request = NUI__LOCAL__V1__SET_HOLD_REQUEST__INIT;
    struct change c = {command, "SetHold", site, &request.base, &request.job_id,
                       "job holds adjusted"};
    if (set) {
        request.set = holds;
        request.n_set = count;
    } else {
        request.clear = holds;
        request.n_clear = count;
    }
    return change_all (ctx, &c, job, jobs);
}

static const struct cli_option sethold_options[] = {
    {"batch", 'b', CLI_OPT_FLAG, AT (batch), 0, 0},
    {"system", 's', CLI_OPT_FLAG, AT (system), 0, 0},
    {"user", 'u', CLI_OPT_FLAG, AT (user), 0, 0},
    SITE_OPTION,
    {0},
};

static const struct cli_option releasehold_options[] = {
    {"all", 'a', CLI_OPT_FLAG, AT (all), 0, 0},
    {"batch", 'b', CLI_OPT_FLAG, AT (batch), 0, 0},
    {"system", 's', CLI_OPT_FLAG, AT (system), 0, 0},
    {"user", 'u', CLI_OPT_FLAG, AT (user), 0, 0},
    SITE_OPTION,
    {0},
};

/* A job of the grid: the metascheduler knows where it is. */
static int hold_at_grid (struct cli_context *ctx, const char *command, bool set, char *job,
                         struct table *t)
{
    Nui__Meta__V1__HoldRequest request = NUI__META__V1__HOLD_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    struct metas *metas = cli_metas (ctx, &err);
    request.grid_job_id = job;
    request.held = set;
    if (!metas || metas_call (metas, &nui__meta__v1__meta__descriptor, "Hold", &request.base,
                              GRID_TIMEOUT_S * US_PER_S, &reply, &err) < 0)
        return cli_fail (command, &err);
    protobuf_c_message_free_unpacked (reply, NULL);
    table_text (t, job);
    table_bool (t, true);
    table_end_row (t);
    return CLI_OK;
}

static int holds_at_grid (struct cli_context *ctx, const char *command, bool set, char **job, int count)
{
    int all = CLI_OK;
    struct table *t = table_create (change_columns, 2);
    for (int i = 0; i < count; i++)
        all = worse (all, hold_at_grid (ctx, command, set, job[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    else if (table_row_count (t) > 0)
        printf ("\njob holds adjusted\n");
    table_destroy (t);
    return all;
}

static int holds_command (struct cli_context *ctx, int argc, char **argv, bool set)
{
    struct change_args args = {0};
    struct cli_operands ops;
    char *holds[3];
    int exit_code;
    const char *command = set ? "sethold" : "releasehold";
    if (!cli_options (ctx, set ? sethold_options : releasehold_options, 0, &args, argc, argv, &ops,
                      &exit_code))
        return exit_code;
    if (ops.count < 1)
        return cli_usage (command, "name at least one job");
    int of_grid = 0;
    for (int i = 0; i < ops.count; i++)
        of_grid += strncmp (ops.item[i], "grid.", 5) == 0;
    if (args.user && !args.system && !args.batch && !args.site && of_grid == ops.count)
        return holds_at_grid (ctx, command, set, ops.item, ops.count);
    size_t n = holds_of (&args, true, holds);
    return hold_send (ctx, command, args.site, set, holds, n, ops.item, ops.count);
}

int cmd_sethold (struct cli_context *ctx, int argc, char **argv)
{
    return holds_command (ctx, argc, argv, true);
}

int cmd_releasehold (struct cli_context *ctx, int argc, char **argv)
{
    return holds_command (ctx, argc, argv, false);
}

/* --- priority ----------------------------------------------------------------------------- */

static int priority_send (struct cli_context *ctx, const char *command, const char *site,
                          const char *value, bool relative, char **job, int jobs)
{
    Nui__Local__V1__SetPriorityRequest request = NUI__LOCAL__V1__SET_PRIORITY_REQUEST__INIT;
    struct change c = {command, "SetPriority", site, &request.base, &request.job_id,
                       "job system priority adjusted"};
    struct err err = {0};
    int64_t n;
    if (int_parse (*value == '+' ? value + 1 : value, "priority", -1000000000, 1000000000, &n,
                   &err) < 0)
        return cli_usage (command, "%s", err.text);
    request.priority = (int32_t)n;
    request.relative = relative;
    return change_all (ctx, &c, job, jobs);
}

static const struct cli_option setspri_options[] = {
    {"relative", 'r', CLI_OPT_FLAG, AT (relative), 0, 0},
    SITE_OPTION,
    {0},
};

int cmd_setspri (struct cli_context *ctx, int argc, char **argv)
{
    struct change_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, setspri_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count < 2)
        return cli_usage ("setspri", "name a priority and at least one job");
    return priority_send (ctx, "setspri", args.site, ops.item[0], args.relative, ops.item + 1,
                          ops.count - 1);
}

/* --- runjob ------------------------------------------------------------------------------- */

static int run_one (struct cli_context *ctx, const char *command, const struct change_args *args,
                    char *job, struct table *t)
{
    Nui__Local__V1__RunJobRequest request = NUI__LOCAL__V1__RUN_JOB_REQUEST__INIT;
    Nui__Local__V1__ChangeReply *reply = NULL;
    struct strbuf nodes = STRBUF_INIT;
    struct err err = {0};
    request.job_id = job;
    request.force = args->force;
    if (site_admin (ctx, args->site, "RunJob", &request, false, &reply, &err) < 0)
        return cli_fail (command, &err);
    for (size_t i = 0; i < reply->n_nodes; i++)
        strbuf_printf (&nodes, "%s%s", i ? "," : "", reply->nodes[i]);
    table_text (t, reply->job_id);
    table_text (t, strbuf_text (&nodes));
    table_end_row (t);
    if (cli_format (ctx) == CLI_TABLE)
        printf ("\n\njob %s successfully started\n\n", reply->job_id);
    strbuf_free (&nodes);
    nui__local__v1__change_reply__free_unpacked (reply, NULL);
    return CLI_OK;
}

static int run_all (struct cli_context *ctx, const char *command, const struct change_args *args,
                    const struct cli_operands *ops)
{
    static const struct table_column columns[] = {
        {"job_id", "JobName", TABLE_TEXT, 0},
        {"nodes", "Nodes", TABLE_TEXT, 0},
    };
    int all = CLI_OK;
    struct table *t = table_create (columns, 2);
    for (int i = 0; i < ops->count; i++)
        all = worse (all, run_one (ctx, command, args, ops->item[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    table_destroy (t);
    return all;
}

static const struct cli_option runjob_options[] = {
    {"force", 'f', CLI_OPT_FLAG, AT (force), 0, 0},
    SITE_OPTION,
    {0},
};

int cmd_runjob (struct cli_context *ctx, int argc, char **argv)
{
    struct change_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, runjob_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count < 1)
        return cli_usage ("runjob", "name at least one job");
    return run_all (ctx, "runjob", &args, &ops);
}

/* --- mjobctl ------------------------------------------------------------------------------ */

static const struct cli_option mjobctl_options[] = {
    {"cancel", 'c', CLI_OPT_FLAG, AT (cancel), 0, 0},
    {"hold", 'h', CLI_OPT_STRING, AT (hold), 0, 0},
    {"unhold", 'u', CLI_OPT_STRING, AT (unhold), 0, 0},
    {"priority", 'p', CLI_OPT_STRING, AT (priority), 0, 0},
    {"run", 'x', CLI_OPT_FLAG, AT (run), 0, 0},
    {"modify", 'm', CLI_OPT_STRING, AT (modify), 0, 0},
    {"query", 'q', CLI_OPT_STRING, AT (query), 0, 0},
    {"requeue", 'R', CLI_OPT_FLAG, AT (requeue), 0, 0},
    {"suspend", 's', CLI_OPT_FLAG, AT (suspend), 0, 0},
    {"resume", 'r', CLI_OPT_FLAG, AT (resume), 0, 0},
    SITE_OPTION,
    {0},
};

static int mjobctl_hold (struct cli_context *ctx, const struct change_args *args,
                         const struct cli_operands *ops)
{
    const char *name = args->hold ? args->hold : args->unhold;
    char *holds[3] = {(char *)name};
    struct change_args every = {.all = strcmp (name, "all") == 0};
    size_t n = every.all ? holds_of (&every, false, holds) : 1;
    return hold_send (ctx, "mjobctl", args->site, args->hold != NULL, holds, n, ops->item,
                      ops->count);
}

static int mjobctl_control (struct cli_context *ctx, const struct change_args *args,
                            const struct cli_operands *ops)
{
    Nui__Local__V1__ControlJobRequest request = NUI__LOCAL__V1__CONTROL_JOB_REQUEST__INIT;
    struct change c = {"mjobctl", "ControlJob", args->site, &request.base, &request.job_id,
                       args->requeue   ? "jobs requeued"
                       : args->suspend ? "jobs suspended"
                                       : "jobs resumed"};
    request.act = args->requeue   ? NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__REQUEUE
                  : args->suspend ? NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__SUSPEND
                                  : NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__RESUME;
    return change_all (ctx, &c, ops->item, ops->count);
}

static int mjobctl_modify (struct cli_context *ctx, const struct change_args *args,
                           const struct cli_operands *ops)
{
    char attribute[32];
    const char *value;
    if (!modify_split (args->modify, attribute, &value) || !*value)
        return cli_usage ("mjobctl", "-m '%s': wanted ATTRIBUTE=VALUE", args->modify);
    return modify_all (ctx, "mjobctl", args->site, attribute, value, ops->item, ops->count,
                       "jobs modified");
}

int cmd_mjobctl (struct cli_context *ctx, int argc, char **argv)
{
    struct change_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, mjobctl_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    int wishes = args.cancel + args.run + (args.hold != NULL) + (args.unhold != NULL) +
                 (args.priority != NULL) + (args.modify != NULL) + args.requeue + args.suspend +
                 args.resume + (args.query != NULL);
    if (wishes != 1)
        return cli_usage ("mjobctl", "say one of -c, -h, -m, -p, -q, -r, -R, -s, -u and -x");
    if (ops.count < 1)
        return cli_usage ("mjobctl", "name at least one job");
    if (args.query)
        return query_all (ctx, args.site, args.query, ops.item, ops.count);
    if (args.cancel)
        return cancel_all (ctx, "mjobctl", args.site, ops.item, ops.count);
    if (args.run)
        return run_all (ctx, "mjobctl", &args, &ops);
    if (args.priority)
        return priority_send (ctx, "mjobctl", args.site, args.priority,
                              *args.priority == '+' || *args.priority == '-', ops.item, ops.count);
    if (args.requeue || args.suspend || args.resume)
        return mjobctl_control (ctx, &args, &ops);
    if (args.modify)
        return mjobctl_modify (ctx, &args, &ops);
    return mjobctl_hold (ctx, &args, &ops);
}
