/* grid: calls to the metascheduler and the words for its states, for all the commands of this
 * folder. It finds the members of a group through proto/cli/metas.h, and never talks to a site
 * by itself. */
#include "meta/cli/grid.h"
#include "proto/job/element.h"

#include <stdlib.h>
#include <string.h>

int grid_call (struct cli_context *ctx, const char *method, const ProtobufCMessage *request,
               ProtobufCMessage **reply_out, struct err *err)
{
    struct metas *metas = cli_metas (ctx, err);
    if (!metas)
        return err->code;
    return metas_call (metas, &nui__meta__v1__meta__descriptor, method, request,
                       GRID_CALL_TIMEOUT_S * US_PER_S, reply_out, err);
}

/* ---- options */

#define JOB_OPTIONS                                                                                             \
    JOB_TEXT ("account", 'A', JOB_ACCOUNT, "NAME",                                                              \
              "account that pays (default: ACCOUNT of nui.cfg)"),                                               \
        JOB_TEXT ("qos", 'q', JOB_QOS, "NAME", "quality of service at the site"),                               \
        JOB_TEXT ("class", 'p', JOB_CLASS, "NAME", "class (queue) at the site"),                                \
        JOB_TEXT ("tasks", 'n', JOB_TASKS, "N", "tasks; a task stays on one node (default 1)"),                 \
        JOB_TEXT ("nodes", 'N', JOB_NODES, "N", "on exactly so many nodes"),                                    \
        JOB_TEXT ("tpn", 0, JOB_TPN, "N", "tasks on each node"),                                                \
        JOB_TEXT ("procs-per-task", 0, JOB_PROCS_PER_TASK, "N",                                                 \
                  "processors of a task (default 1)"),                                                          \
        JOB_TEXT ("mem", 0, JOB_MEM, "SIZE", "memory of a task: 512, 2G"),                                      \
        JOB_TEXT ("mem-per-node", 0, JOB_MEM_PER_NODE, "SIZE", "memory of all tasks on a node"),                \
        JOB_TEXT ("gpus", 0, JOB_GPUS, "[TYPE:]N",                                                              \
                  "GPUs of the whole job, shared out to its tasks"),                                            \
        JOB_TEXT ("swap", 0, JOB_SWAP, "SIZE", "swap of a task"),                                               \
        JOB_TEXT ("disk", 0, JOB_DISK, "SIZE", "local disk of a task"),                                         \
        JOB_TEXT ("like", 0, JOB_LIKE, "A,B",                                                                   \
                  "rather nodes with these, where the site weighs it (PREF)"),                                  \
        JOB_TEXT ("time", 't', JOB_TIME, "DURATION",                                                            \
                  "wallclock limit: SS, MM:SS, HH:MM:SS, D:HH:MM:SS (needed)"),                                 \
        JOB_TEXT ("features", 'C', JOB_FEATURES, "A,B", "only nodes with all of these"),                        \
        JOB_TEXT ("site", 0, JOB_SITE, "A,B", "only these sites"),                                              \
        JOB_TEXT ("after", 0, JOB_AFTER, "TIME",                                                                \
                  "not before: HH:MM, +DURATION, 2026-11-21T14:30"),                                            \
        JOB_TEXT ("start-by", 0, JOB_START_BY, "TIME", "latest start"),                                         \
        JOB_TEXT (                                                                                              \
            "prefer", 0, JOB_PREFER, "WHAT",                                                                    \
            "earliest (completion, then price) or cheapest (price, then completion). Default: the cheapest "    \
            "with --deadline, else earliest"),                                                                  \
        JOB_TEXT ("valid", 0, JOB_VALID, "TIME",                                                                \
                  "no site takes it for the first time so long after now (30 days)"),                           \
        JOB_TEXT ("trl", 0, JOB_TRL, "8,16@1:00:00",                                                            \
                  "sizes to choose from: 8 tasks, or 16 for an hour at most"),                                  \
        JOB_TEXT ("deadline", 0, JOB_DEADLINE, "TIME", "must have ended by then"),                              \
        JOB_TEXT ("name", 0, JOB_NAME, "NAME", "a name for lists"),                                             \
        JOB_TEXT ("output", 'o', JOB_OUTPUT, "FILE",                                                            \
                  "file of standard output in the job's directory"),                                            \
        JOB_TEXT ("error", 'e', JOB_ERROR, "FILE", "the same for standard error"),                              \
        JOB_TEXT ("chdir", 0, JOB_CHDIR, "DIR",                                                                 \
                  "start in this directory of yours at the site: /PATH, ~/PATH"),                               \
        JOB_TEXT ("quote", 0, JOB_QUOTE, "QUOTE",                                                               \
                  "at the rates that nui quote --keep kept: quote.7"),                                          \
        JOB_TEXT ("max-cost", 0, JOB_MAX_COST, "CREDITS",                                                       \
                  "signed as the most it may cost; else twice the estimate; none"),                             \
        JOB_TEXT (                                                                                              \
            "depend", 0, JOB_DEPEND, "KIND:JOB,...",                                                            \
            "wait for jobs of the grid, or of one site: after, afterany, afterok, afternotok; before... "       \
            "makes a site's jobs wait"),                                                                        \
        JOB_TEXT ("flags", 0, JOB_FLAGS, "A,B",                                                                 \
                  "PREEMPTEE (may be evicted), NORESTART (never run twice)"),                                   \
        {"hold",                                                                                                \
         0,                                                                                                     \
         CLI_OPT_FLAG,                                                                                          \
         NULL,                                                                                                  \
         "with a user hold: releasehold lets it start",                                                         \
         offsetof (struct job_options, hold)},                                                                  \
        JOB_TEXT ("gres", 0, JOB_GRES, "A:N,B", "generic resources of the node, per task"),                     \
        JOB_TEXT ("licence", 'L', JOB_LICENCE, "A:N,B",                                                         \
                  "floating licences, for the whole job: the grid's (nui licences) or a site's"),               \
        JOB_TEXT ("partition", 0, JOB_PARTITION, "A,B", "only these partitions of the site"),                   \
        JOB_TEXT ("nodeset", 0, JOB_NODESET, "SET",                                                             \
                  "nodes that are alike: ONEOF:FEATURE:a:b, ONEOF:PROCSPEED, NONE"),                            \
        JOB_TEXT ("hosts", 'w', JOB_HOSTS, "LIST", "only these nodes of the site: node[1-4],m1"),               \
        JOB_TEXT ("exclude", 'x', JOB_EXCLUDE, "LIST", "not these nodes"),                                      \
        JOB_TEXT ("node-access", 0, JOB_NODE_ACCESS, "HOW",                                                     \
                  "SHARED, SINGLEUSER, SINGLEJOB or SINGLETASK"),                                               \
        JOB_TEXT ("procs-max", 0, JOB_PROCS_MAX, "N",                                                           \
                  "pay for at most so many processors where nodes are given whole"),                            \
        JOB_TEXT ("reservation", 0, JOB_RESERVATION, "NAME",                                                    \
                  "only inside this reservation of the site"),                                                  \
        JOB_TEXT ("retries", 0, JOB_RETRIES, "N",                                                               \
                  "run it again so often when it failed, after 10 s, 20 s, 40 s ..."),                          \
        JOB_TEXT ("retry-on", 0, JOB_RETRY_ON, "CODES",                                                         \
                  "only after these exit codes: 75,100-120"),                                                   \
        JOB_TEXT (                                                                                              \
            "on-site-loss", 0, JOB_ON_SITE_LOSS, "X",                                                           \
            "its site is not heard of any more: report (it stays there) or resubmit (it is given to "           \
            "another, and ended there)"),                                                                       \
        JOB_TEXT ("on-failure", 0, JOB_ON_FAILURE, "X",                                                         \
                  "a component fails: cancel the others (default), or continue"),                               \
        JOB_TEXT ("notify", 0, JOB_NOTIFY, "URL",                                                               \
                  "POST it a line of JSON when the job starts, is run again, ends"),                            \
        JOB_TEXT ("signal", 0, JOB_SIGNAL, "[B:]SIG[@S]",                                                       \
                  "S seconds (60) before its limit: to the tasks of nui run; B: to the script"),                \
        JOB_TEXT ("mail", 0, JOB_MAIL, "A,B",                                                                   \
                  "mail when it: begin, end, fail (ended badly), requeue, all; default end,fail"),              \
        JOB_TEXT ("mail-to", 0, JOB_MAIL_TO, "ADDRESS", "to whom"),                                             \
        JOB_TEXT ("retry-delay", 0, JOB_RETRY_DELAY, "D",                                                       \
                  "before the first; it doubles each time, up to an hour"),                                     \
        {"req",                                                                                                 \
         0,                                                                                                     \
         CLI_OPT_LIST,                                                                                          \
         "KEY=VALUE,..",                                                                                        \
         "more tasks of another kind beside these (repeat it): tasks, nodes, tpn, procs-per-task, mem, swap, "  \
         "disk, gres, features, like",                                                                          \
         offsetof (struct job_options, reqs)},                                                                  \
        {"component",                                                                                           \
         0,                                                                                                     \
         CLI_OPT_LIST,                                                                                          \
         "NAME:KEY=VALUE,...",                                                                                  \
         "a part of a co-allocated job (repeat it): all parts start at the same moment or none. Keys are the "  \
         "long options' names, script=FILE, and offset=-120 to start two minutes earlier",                      \
         offsetof (struct job_options, components)},                                                            \
        {"env",                                                                                                 \
         0,                                                                                                     \
         CLI_OPT_LIST,                                                                                          \
         "NAME[=VALUE]",                                                                                        \
         "pass a variable (may be repeated)",                                                                   \
         offsetof (struct job_options, env)},                                                                   \
        {"input",                                                                                               \
         0,                                                                                                     \
         CLI_OPT_LIST,                                                                                          \
         "FILE|DIR",                                                                                            \
         "(repeat it) a file, or all in a folder, that travels with the job, as arguments that name files do; " \
         "none: not even those",                                                                                \
         offsetof (struct job_options, inputs)},                                                                \
        {"stage-in",                                                                                            \
         0,                                                                                                     \
         CLI_OPT_LIST,                                                                                          \
         "URL=PATH[,sha256=HEX][,bytes=N]",                                                                     \
         "(repeat it) a file that is in the job's directory before it starts: https, sftp, s3 or file (of the " \
         "site)",                                                                                               \
         offsetof (struct job_options, stage_in)},                                                              \
        {"stage-out",                                                                                           \
         0,                                                                                                     \
         CLI_OPT_LIST,                                                                                          \
         "PATH=URL[,always]",                                                                                   \
         "(repeat it) taken there when the job completed; always: also when it failed",                         \
         offsetof (struct job_options, stage_out)},                                                             \
        {"wrap",                                                                                                \
         0,                                                                                                     \
         CLI_OPT_STRING,                                                                                        \
         "COMMAND",                                                                                             \
         "in place of a script: a shell runs this",                                                             \
         offsetof (struct job_options, wrap)},                                                                  \
    {                                                                                                           \
        "file", 0, CLI_OPT_STRING, "JOB.json", "the same as JSON",                                              \
            offsetof (struct job_options, file)                                                                 \
    }

const struct cli_option grid_submit_options[] = {
    JOB_OPTIONS,
    JOB_TEXT ("array", 0, JOB_ARRAY, "1-10%3",
              "ten jobs, NUI_ARRAY_INDEX 1 to 10, three at one time"),
    {"env-all", 'V', CLI_OPT_FLAG, NULL, "pass all variables but those of the session and the site",
     offsetof (struct job_options, env_all)},
    {"wait", 0, CLI_OPT_FLAG, NULL,
     "follow the job, or each of an array; exit 0 only if all complete",
     offsetof (struct job_options, wait)},
    {"key", 0, CLI_OPT_STRING, "KEY",
     "your name for this request: sent again with the same one it is the same job, whatever else it says",
     offsetof (struct job_options, key)},
    {"save", 0, CLI_OPT_STRING, "DIR", "the same, and bring what they printed into DIR",
     offsetof (struct job_options, save)},
    {"output-dir", 0, CLI_OPT_STRING, "DIR",
     "the same, and bring all files of the job's directory into DIR, as nui fetch does",
     offsetof (struct job_options, output_dir)},
    {0},
};
const struct cli_option grid_estimate_options[] = {JOB_OPTIONS, {0}};

struct rpcclient *grid_site_open (struct cli_context *ctx, const Nui__Meta__V1__ComponentStatus *c,
                                  struct err *err)
{
    struct rpcclient_config config = {.base = cli_base (ctx),
                                      .id = cli_identity (ctx, err),
                                      .target = c->site_server,
                                      .expect_kind = PRINCIPAL_SITE,
                                      .expect_name = c->site};
    return config.id ? rpcclient_create (&config, err) : NULL;
}

/* ---- words */

const char *grid_state_name (Nui__Meta__V1__GridJobState state)
{
    static const char *const name[] = {"Unknown",   "Pending", "Queued",    "Reserved", "Running",
                                       "Completed", "Failed",  "Cancelled", "Refused"};
    return (unsigned)state < sizeof name / sizeof *name ? name[state] : name[0];
}

void grid_state_text (const Nui__Meta__V1__JobStatus *s, struct strbuf *out)
{
    for (size_t i = 0; s->array && i < s->array->n_counts; i++)
        strbuf_printf (out, "%s%s:%u", i ? " " : "", grid_state_name (s->array->counts[i]->state),
                       s->array->counts[i]->count);
    if (!s->array)
        strbuf_printf (out, "%s", grid_state_name (s->state));
}

const char *grid_part_state_name (Nui__Local__V1__JobState state)
{
    static const char *const name[] = {"-",         "Queued", "Reserved",  "Starting", "Running",
                                       "Completed", "Failed", "Cancelled", "Timeout",  "Refused"};
    return (unsigned)state < sizeof name / sizeof *name ? name[state] : name[0];
}

bool grid_state_ended (Nui__Meta__V1__GridJobState state)
{
    return state >= NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED;
}

int grid_job_id (struct cli_context *ctx, const char *text, char *out, size_t cap, struct err *err)
{
    uint64_t number;
    if (*text && strspn (text, "0123456789") == strlen (text)) {
        const char *grid = cli_grid (ctx, err);
        if (!grid)
            return err->code;
        if (uint_parse (text, "job", 1, UINT64_MAX, &number, err) < 0)
            return err->code;
        snprintf (out, cap, "grid.%llu", (unsigned long long)number);
        return 0;
    }
    struct element_id id;
    if (element_id_parse (text, &id, err) < 0)
        return strchr (text, '[') ? err->code
                                  : err_set (err, ERR_INVALID,
                                             "'%s' is not the id of a job (as in grid.42)", text);
    if ((size_t)snprintf (out, cap, "%s", text) >= cap)
        return err_set (err, ERR_LIMIT, "'%s' is too long for the id of a job", text);
    return 0;
}

int grid_job_operand (struct cli_context *ctx, const char *command, const char *text, char *out,
                      size_t cap)
{
    struct err err;
    err_clear (&err);
    if (grid_job_id (ctx, text, out, cap, &err) == 0)
        return CLI_OK;
    return err.code == ERR_INVALID ? cli_usage (command, "%s", err.text) : cli_fail (command, &err);
}

int grid_names_array (struct cli_context *ctx, const char *command, const char *text,
                      bool *array_out)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    char id[GRID_ID_MAX];
    struct err err;
    err_clear (&err);
    *array_out = false;
    int code = grid_job_operand (ctx, command, text, id, sizeof id);
    if (code != CLI_OK)
        return code;
    if (strncmp (id, "grid.", 5) != 0)
        return CLI_OK;
    request.grid_job_id = id;
    if (grid_call (ctx, "Status", &request.base, &reply, &err) < 0)
        return cli_fail (command, &err);
    *array_out = ((Nui__Meta__V1__JobStatus *)reply)->array != NULL;
    protobuf_c_message_free_unpacked (reply, NULL);
    return CLI_OK;
}
