/* setqos, changeparam, mnodectl: what else administrators change. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/local_cli.h"
#include "proto/base/hostlist.h"

struct modify_args {
    const char *site, *modify;
};

#define AT(field) offsetof (struct modify_args, field)

static const struct table_column object_columns[] = {
    {"name", "Name", TABLE_TEXT, 0},
    {"attribute", "Attribute", TABLE_TEXT, 0},
    {"value", "Value", TABLE_TEXT, 0},
    {"done", "Done", TABLE_BOOL, 0},
};

/* --- jobs --------------------------------------------------------------------------------- */

static int modify_one (struct cli_context *ctx, const char *command, const char *site, char *job,
                       const char *attribute, const char *value, struct table *t)
{
    Nui__Local__V1__ModifyJobRequest request = NUI__LOCAL__V1__MODIFY_JOB_REQUEST__INIT;
    Nui__Local__V1__ChangeReply *reply = NULL;
    struct err err = {0};
    request.job_id = job;
    request.attribute = (char *)attribute;
    request.value = (char *)value;
    if (site_admin (ctx, site, "ModifyJob", &request, false, &reply, &err) < 0)
        return cli_fail (command, &err);
    table_text (t, reply->job_id);
    table_text (t, attribute);
    table_text (t, value);
    table_bool (t, true);
    table_end_row (t);
    nui__local__v1__change_reply__free_unpacked (reply, NULL);
    return CLI_OK;
}

int modify_all (struct cli_context *ctx, const char *command, const char *site,
                const char *attribute, const char *value, char **job, int count,
                const char *sentence)
{
    int all = CLI_OK;
    struct table *t = table_create (object_columns, 4);
    for (int i = 0; i < count; i++)
        all = worse (all, modify_one (ctx, command, site, job[i], attribute, value, t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    else if (table_row_count (t) > 0)
        printf ("\n%s\n", sentence);
    table_destroy (t);
    return all;
}

static const struct cli_option setqos_options[] = {SITE_OPTION (struct modify_args), {0}};

static int setqos_run (struct cli_context *ctx, int argc, char **argv)
{
    struct modify_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, setqos_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count < 2)
        return cli_usage ("setqos", "name a QoS and at least one job");
    return modify_all (ctx, "setqos", args.site, "qos", ops.item[0], ops.item + 1, ops.count - 1,
                       "job QOS adjusted");
}

const struct cli_command setqos_command = {
    .name = "setqos",
    .group = CLI_CLUSTER,
    .summary = "give waiting jobs another quality of service",
    .run = setqos_run,
    .help = "nui setqos [--site NAME] QOS JOB...",
    .text =
        "One that the job's credentials give access to. One's own jobs; everybody's for ADMIN1 and\n"
        "ADMIN2.",
    .options = setqos_options,
    .example = "nui setqos hi alpha.17",
};

/* --- nodes -------------------------------------------------------------------------------- */

static const struct cli_option mnodectl_options[] = {
    {"modify", 'm', CLI_OPT_STRING, "A=VALUE",
     "state=drained (what runs there goes on, nothing starts), state=down (it has failed: "
     "JOBACTIONONNODEFAILURE) or state=up; features=A,B or features=+A,-B; priority=N; speed=X. An "
     "empty value goes back to what is configured",
     AT (modify)},
    SITE_OPTION (struct modify_args),
    {0},
};

bool modify_split (const char *text, char attribute[32], const char **value)
{
    const char *equals = strchr (text, '=');
    if (!equals || equals == text || equals - text > 31)
        return false;
    snprintf (attribute, 32, "%.*s", (int)(equals - text), text);
    *value = equals + 1;
    return true;
}

static int node_change (struct cli_context *ctx, const struct modify_args *args, const char *node,
                        const char *attribute, const char *value, struct table *t)
{
    Nui__Local__V1__SetNodeRequest request = NUI__LOCAL__V1__SET_NODE_REQUEST__INIT;
    Nui__Local__V1__ChangeReply *reply = NULL;
    struct err err = {0};
    request.node = (char *)node;
    request.attribute = (char *)attribute;
    request.value = (char *)value;
    if (site_admin (ctx, args->site, "SetNode", &request, false, &reply, &err) < 0)
        return cli_fail ("mnodectl", &err);
    table_text (t, node);
    table_text (t, attribute);
    table_text (t, value);
    table_bool (t, true);
    table_end_row (t);
    if (cli_format (ctx) == CLI_TABLE)
        printf ("node %s: %s set to '%s'\n", node, attribute, value);
    nui__local__v1__change_reply__free_unpacked (reply, NULL);
    return CLI_OK;
}

static int mnodectl_run (struct cli_context *ctx, int argc, char **argv)
{
    struct modify_args args = {0};
    struct cli_operands ops;
    char attribute[32];
    const char *value;
    int exit_code, all = CLI_OK;
    if (!cli_options (ctx, mnodectl_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (!args.modify || !modify_split (args.modify, attribute, &value))
        return cli_usage ("mnodectl", "say what to change: -m ATTRIBUTE=VALUE");
    if (ops.count < 1)
        return cli_usage ("mnodectl", "name at least one node");
    struct table *t = table_create (object_columns, 4);
    struct arena *arena = arena_create (0);
    for (int i = 0; i < ops.count; i++) {
        const char **name;
        uint32_t count;
        struct err err = {0};
        if (hostlist_expand (ops.item[i], arena, &name, &count, &err) != 0) {
            all = worse (all, cli_fail ("mnodectl", &err));
            continue;
        }
        for (uint32_t k = 0; k < count; k++)
            all = worse (all, node_change (ctx, &args, name[k], attribute, value, t));
    }
    arena_destroy (arena);
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    table_destroy (t);
    return all;
}

const struct cli_command mnodectl_command = {
    .name = "mnodectl",
    .group = CLI_CLUSTER,
    .summary = "change nodes: drain them, bring them back, their attributes",
    .run = mnodectl_run,
    .help = "nui mnodectl -m ATTRIBUTE=VALUE [--site NAME] NODE...",
    .text = "Holds over restarts and reloads, and is in the audit log. For ADMIN1.",
    .options = mnodectl_options,
    .example = "nui mnodectl -m state=drained 'alpha[01-02]' beta01",
};

/* --- parameters --------------------------------------------------------------------------- */

int param_change (struct cli_context *ctx, const char *command, const char *site, const char *line)
{
    static const struct table_column columns[] = {
        {"parameter", "Parameter", TABLE_TEXT, 0},
        {"value", "Value", TABLE_TEXT, 0},
    };
    Nui__Local__V1__ChangeParamRequest request = NUI__LOCAL__V1__CHANGE_PARAM_REQUEST__INIT;
    Nui__Local__V1__ChangeReply *reply = NULL;
    struct err err = {0};
    size_t name = strcspn (line, " ");
    request.line = (char *)line;
    if (site_admin (ctx, site, "ChangeParam", &request, false, &reply, &err) < 0)
        return cli_fail (command, &err);
    nui__local__v1__change_reply__free_unpacked (reply, NULL);
    if (cli_format (ctx) == CLI_TABLE) {
        printf ("\n\nparameters modified\n\n");
        return CLI_OK;
    }
    struct table *t = table_create (columns, 2);
    table_printf (t, "%.*s", (int)name, line);
    table_text (t, line + name + strspn (line + name, " "));
    table_end_row (t);
    int code = table_print (t, ctx);
    table_destroy (t);
    return code;
}

static int changeparam_run (struct cli_context *ctx, int argc, char **argv)
{
    struct modify_args args = {0};
    struct cli_operands ops;
    struct strbuf line = STRBUF_INIT;
    int exit_code;
    if (!cli_options (ctx, setqos_options, CLI_STOP_AT_OPERAND, &args, argc, argv, &ops,
                      &exit_code))
        return exit_code;
    if (ops.count < 2)
        return cli_usage ("changeparam", "name a parameter and its value");
    for (int i = 0; i < ops.count; i++)
        strbuf_printf (&line, "%s%s", i ? " " : "", ops.item[i]);
    int code = param_change (ctx, "changeparam", args.site, strbuf_text (&line));
    strbuf_free (&line);
    return code;
}

const struct cli_command changeparam_command = {
    .name = "changeparam",
    .group = CLI_CLUSTER,
    .summary = "change a parameter of the policy at once",
    .run = changeparam_run,
    .help = "nui changeparam [--site NAME] PARAMETER VALUE...",
    .text =
        "As a line at the end of the configuration, checked like the whole: taken, or refused with\n"
        "nothing changed. It holds until the file is read again (edited, SIGHUP, restart): what is to\n"
        "last belongs there. For ADMIN1.",
    .options = setqos_options,
    .example = "nui changeparam RESERVATIONDEPTH[0] 2\n"
               "nui changeparam USERCFG[john] MAXJOB=4 PRIORITY=100",
};
