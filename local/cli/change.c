/* sethold, releasehold, setspri, runjob, mjobctl: changes of waiting jobs. */
#include <string.h>
#include <strings.h>

#include "local/cli/local_cli.h"
#include "proto/base/hostlist.h"
#include "proto/nui/v1/meta.pb-c.h"

enum { GRID_TIMEOUT_S = 60 };

struct change_args {
    bool user, system, batch, all, relative, force, past_promises, clear, cancel, run, requeue,
        suspend, resume;
    const char *hold, *unhold, *priority, *modify, *query, *nodes, *partition, *site;
};

#define AT(field) offsetof (struct change_args, field)

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
    char **job_field;     /* of the request */
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
    struct change c = {command,       "SetHold",       site,
                       &request.base, &request.job_id, "job holds adjusted"};
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
    {"batch", 'b', CLI_OPT_FLAG, NULL,
     "a batch hold (default), -s a system hold: for ADMIN1 and ADMIN2", AT (batch)},
    {"system", 's', CLI_OPT_FLAG, NULL, "", AT (system)},
    {"user", 'u', CLI_OPT_FLAG, NULL, "a user hold: anyone, on one's own jobs", AT (user)},
    SITE_OPTION (struct change_args),
    {0},
};

static const struct cli_option releasehold_options[] = {
    {"all", 'a', CLI_OPT_FLAG, NULL, "all its holds", AT (all)},
    {"batch", 'b', CLI_OPT_FLAG, NULL, "the batch hold (default)", AT (batch)},
    {"system", 's', CLI_OPT_FLAG, NULL, "the system hold", AT (system)},
    {"user", 'u', CLI_OPT_FLAG, NULL, "the user hold", AT (user)},
    SITE_OPTION (struct change_args),
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

static int holds_at_grid (struct cli_context *ctx, const char *command, bool set, char **job,
                          int count)
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

static int sethold_run (struct cli_context *ctx, int argc, char **argv)
{
    return holds_command (ctx, argc, argv, true);
}

const struct cli_command sethold_command = {
    .name = "sethold",
    .group = CLI_CLUSTER,
    .summary = "keep waiting jobs from starting",
    .run = sethold_run,
    .help = "nui sethold [-b | -s | -u] [--site NAME] JOB...",
    .options = sethold_options,
    .example = "nui sethold -u alpha.17",
};

static int releasehold_run (struct cli_context *ctx, int argc, char **argv)
{
    return holds_command (ctx, argc, argv, false);
}

const struct cli_command releasehold_command = {
    .name = "releasehold",
    .group = CLI_CLUSTER,
    .summary = "let held jobs start",
    .run = releasehold_run,
    .help = "nui releasehold [-a | -b | -s | -u] [--site NAME] JOB...",
    .options = releasehold_options,
    .example = "nui releasehold -a alpha.17",
};

/* --- priority ----------------------------------------------------------------------------- */

static int priority_send (struct cli_context *ctx, const char *command, const char *site,
                          const char *value, bool relative, char **job, int jobs)
{
    Nui__Local__V1__SetPriorityRequest request = NUI__LOCAL__V1__SET_PRIORITY_REQUEST__INIT;
    struct change c = {command,       "SetPriority",   site,
                       &request.base, &request.job_id, "job system priority adjusted"};
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
    {"relative", 'r', CLI_OPT_FLAG, NULL,
     "add PRIORITY, which may be negative, to what the job has", AT (relative)},
    SITE_OPTION (struct change_args),
    {0},
};

static int setspri_run (struct cli_context *ctx, int argc, char **argv)
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

const struct cli_command setspri_command = {
    .name = "setspri",
    .group = CLI_CLUSTER,
    .summary = "set a system priority on waiting jobs",
    .run = setspri_run,
    .help = "nui setspri [-r] [--site NAME] PRIORITY JOB...",
    .text =
        "PRIORITY from 1 to 1000 puts a job above every one without, 0 takes that back. For ADMIN1\n"
        "and ADMIN2.",
    .options = setspri_options,
    .example = "nui setspri 10 alpha.17",
};

/* --- runjob ------------------------------------------------------------------------------- */

/* The hosts of -n, each by its name. */
struct named_hosts {
    char **host;
    uint32_t host_count;
};

static int hosts_of (const char *list, struct arena *arena, struct named_hosts *out,
                     struct err *err)
{
    char *text = arena_strdup (arena, list);
    const char **name;
    for (char *c = text; *c; c++) /* Maui parts them by colons, too */
        if (*c == ':')
            *c = ',';
    int rc = hostlist_expand (text, arena, &name, &out->host_count, err);
    out->host = (char **)(void *)(uintptr_t)name;
    return rc;
}

static int run_one (struct cli_context *ctx, const char *command, const struct change_args *args,
                    const struct named_hosts *on, char *job, struct table *t)
{
    Nui__Local__V1__RunJobRequest request = NUI__LOCAL__V1__RUN_JOB_REQUEST__INIT;
    Nui__Local__V1__ChangeReply *reply = NULL;
    struct strbuf nodes = STRBUF_INIT;
    struct err err = {0};
    request.job_id = job;
    request.force = args->force;
    request.past_promises = args->past_promises;
    request.clear = args->clear;
    if (args->partition)
        request.partition = (char *)args->partition;
    request.nodes = on->host;
    request.n_nodes = on->host_count;
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
    struct arena *arena = arena_create (0);
    struct named_hosts hosts = {0};
    struct err err = {0};
    int all = CLI_OK;
    if (args->nodes && hosts_of (args->nodes, arena, &hosts, &err) != 0) {
        arena_destroy (arena);
        return cli_usage (command, "-n: %s", err.text);
    }
    struct table *t = table_create (columns, 2);
    for (int i = 0; i < ops->count; i++)
        all = worse (all, run_one (ctx, command, args, &hosts, ops->item[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    table_destroy (t);
    arena_destroy (arena);
    return all;
}

static int control_all (struct cli_context *ctx, const char *command,
                        const struct change_args *args, const struct cli_operands *ops)
{
    Nui__Local__V1__ControlJobRequest request = NUI__LOCAL__V1__CONTROL_JOB_REQUEST__INIT;
    struct change c = {command,
                       "ControlJob",
                       args->site,
                       &request.base,
                       &request.job_id,
                       args->requeue   ? "jobs requeued"
                       : args->suspend ? "jobs suspended"
                                       : "jobs resumed"};
    request.act = args->requeue   ? NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__REQUEUE
                  : args->suspend ? NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__SUSPEND
                                  : NUI__LOCAL__V1__CONTROL_JOB_REQUEST__ACT__RESUME;
    return change_all (ctx, &c, ops->item, ops->count);
}

static const struct cli_option runjob_options[] = {
    {"force", 'f', CLI_OPT_FLAG, NULL, "past limits", AT (force)},
    {"past-promises", 'x', CLI_OPT_FLAG, NULL,
     "past limits, and past what the schedule promised to waiting jobs", AT (past_promises)},
    {"nodes", 'n', CLI_OPT_STRING, "HOSTS", "on these nodes only: n1,n2, n1:n2 or n[1-2]",
     AT (nodes)},
    {"partition", 'p', CLI_OPT_STRING, "NAME", "on nodes of this partition only", AT (partition)},
    {"clear", 'c', CLI_OPT_FLAG, NULL, "forget earlier starts that failed", AT (clear)},
    {"suspend", 's', CLI_OPT_FLAG, NULL, "suspend a running one instead, as mjobctl -s",
     AT (suspend)},
    SITE_OPTION (struct change_args),
    {0},
};

static int runjob_run (struct cli_context *ctx, int argc, char **argv)
{
    struct change_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, runjob_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count < 1)
        return cli_usage ("runjob", "name at least one job");
    if (args.suspend &&
        (args.force || args.past_promises || args.nodes || args.partition || args.clear))
        return cli_usage ("runjob", "-s suspends: without the other options");
    if (args.suspend)
        return control_all (ctx, "runjob", &args, &ops);
    return run_all (ctx, "runjob", &args, &ops);
}

const struct cli_command runjob_command = {
    .name = "runjob",
    .group = CLI_CLUSTER,
    .summary = "start waiting jobs now",
    .run = runjob_run,
    .help = "nui runjob [-f | -x] [-n HOSTS] [-p PARTITION] [-c] [--site NAME] JOB...\n"
            "       nui runjob -s [--site NAME] JOB...",
    .text =
        "Where there is room that nobody was promised, within the limits. For ADMIN1 and ADMIN2. A\n"
        "held job is not started, and no reservation of a co-allocation is broken.",
    .options = runjob_options,
    .example = "nui runjob alpha.17",
};

/* --- mjobctl ------------------------------------------------------------------------------ */

static const struct cli_option mjobctl_options[] = {
    {"cancel", 'c', CLI_OPT_FLAG, NULL, "as canceljob", AT (cancel)},
    {"hold", 'h', CLI_OPT_STRING, "TYPE", "as sethold: user, system, batch or all", AT (hold)},
    {"unhold", 'u', CLI_OPT_STRING, "TYPE", "as releasehold: user, system, batch or all",
     AT (unhold)},
    {"priority", 'p', CLI_OPT_STRING, "N", "as setspri; +N or -N is relative", AT (priority)},
    {"run", 'x', CLI_OPT_FLAG, NULL, "as runjob", AT (run)},
    {"modify", 'm', CLI_OPT_STRING, "A=VALUE",
     "of waiting jobs: qos, class, account, wclimit, starttime, deadline, hold, priority; wclimit+=1:00:00 and "
     "wclimit-=, priority+=, hold+=user and hold-=. One's own; everybody's, and a longer limit, for ADMIN1 and "
     "ADMIN2",
     AT (modify)},
    {"query", 'q', CLI_OPT_STRING, "ATTRIBUTE",
     "diag: all of it, as checkjob -v; or say one: account, class, group, holds, hostlist, priority, procs, qos, reason, starttime, state, "
     "submittime, user, wclimit",
     AT (query)},
    {"requeue", 'R', CLI_OPT_FLAG, NULL,
     "a running job back to the queue; what it did is charged and lost", AT (requeue)},
    {"suspend", 's', CLI_OPT_FLAG, NULL,
     "stop a running job until -r; its processors are free for others", AT (suspend)},
    {"resume", 'r', CLI_OPT_FLAG, NULL, "let it go on", AT (resume)},
    SITE_OPTION (struct change_args),
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

static int mjobctl_modify (struct cli_context *ctx, const struct change_args *args,
                           const struct cli_operands *ops)
{
    char attribute[32];
    const char *value;
    if (!modify_split (args->modify, attribute, &value) || !*value)
        return cli_usage ("mjobctl", "-m '%s': wanted ATTRIBUTE=VALUE, += or -=", args->modify);
    char *last = attribute + strlen (attribute) - 1;
    bool more = *last == '+', less = *last == '-';
    if (more || less)
        *last = 0;
    if (strcasecmp (attribute, "hold") == 0) {
        struct change_args hold = {
            .hold = less ? NULL : value, .unhold = less ? value : NULL, .site = args->site};
        return mjobctl_hold (ctx, &hold, ops);
    }
    bool priority =
        strcasecmp (attribute, "priority") == 0 || strcasecmp (attribute, "sysprio") == 0;
    bool limit = strcasecmp (attribute, "wclimit") == 0 || strcasecmp (attribute, "walltime") == 0;
    if ((more || less) && !priority && !limit)
        return cli_usage ("mjobctl", "-m %s%c=: only wclimit, priority and hold can be added to",
                          attribute, more ? '+' : '-');
    char changed[128];
    snprintf (changed, sizeof changed, "%s%.100s", more ? "+" : less ? "-" : "", value);
    if (priority)
        return priority_send (ctx, "mjobctl", args->site, changed, more || less, ops->item,
                              ops->count);
    if (limit)
        return modify_all (ctx, "mjobctl", args->site, "wclimit", changed, ops->item, ops->count,
                           "jobs modified");
    return modify_all (ctx, "mjobctl", args->site, attribute, value, ops->item, ops->count,
                       "jobs modified");
}

/* -q diag */
static int diag_all (struct cli_context *ctx, const struct change_args *args,
                     const struct cli_operands *ops)
{
    int all = CLI_OK;
    for (int i = 0; i < ops->count; i++) {
        Nui__Local__V1__JobDetail *detail = NULL;
        struct err err = {0};
        if (checkjob_fetch (ctx, args->site, ops->item[i], true, &detail, &err) < 0) {
            all = worse (all, cli_fail ("mjobctl", &err));
            continue;
        }
        all = worse (all, checkjob_print (ctx, detail));
        nui__local__v1__job_detail__free_unpacked (detail, NULL);
    }
    return all;
}

static int mjobctl_run (struct cli_context *ctx, int argc, char **argv)
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
    if (args.query && strcmp (args.query, "diag") == 0)
        return diag_all (ctx, &args, &ops);
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
        return control_all (ctx, "mjobctl", &args, &ops);
    if (args.modify)
        return mjobctl_modify (ctx, &args, &ops);
    return mjobctl_hold (ctx, &args, &ops);
}

const struct cli_command mjobctl_command = {
    .name = "mjobctl",
    .group = CLI_CLUSTER,
    .summary = "change jobs: cancel, hold, release, priority, run",
    .run = mjobctl_run,
    .help = "nui mjobctl -c | -x | -h TYPE | -u TYPE | -p [+|-]PRIORITY | -m ATTRIBUTE[+|-]=VALUE\n"
            "            | -q ATTRIBUTE | -R | -s | -r [--site NAME] JOB...",
    .options = mjobctl_options,
    .example = "nui mjobctl -h user alpha.17",
};
