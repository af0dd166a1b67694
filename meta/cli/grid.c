#include "meta/cli/grid.h"

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

#define JOB_OPTIONS                                                                                \
    JOB_TEXT ("account", 'A', JOB_ACCOUNT), JOB_TEXT ("qos", 'q', JOB_QOS),                        \
        JOB_TEXT ("class", 'p', JOB_CLASS), JOB_TEXT ("tasks", 'n', JOB_TASKS),                    \
        JOB_TEXT ("nodes", 'N', JOB_NODES), JOB_TEXT ("tpn", 0, JOB_TPN),                          \
        JOB_TEXT ("procs-per-task", 0, JOB_PROCS_PER_TASK), JOB_TEXT ("mem", 0, JOB_MEM),          \
        JOB_TEXT ("swap", 0, JOB_SWAP), JOB_TEXT ("disk", 0, JOB_DISK),                            \
        JOB_TEXT ("like", 0, JOB_LIKE),                                                            \
        JOB_TEXT ("time", 't', JOB_TIME), JOB_TEXT ("features", 'C', JOB_FEATURES),                \
        JOB_TEXT ("site", 0, JOB_SITE), JOB_TEXT ("after", 0, JOB_AFTER),                          \
        JOB_TEXT ("start-by", 0, JOB_START_BY), JOB_TEXT ("prefer", 0, JOB_PREFER),                \
        JOB_TEXT ("valid", 0, JOB_VALID),                                                          \
        JOB_TEXT ("trl", 0, JOB_TRL),                                                              \
        JOB_TEXT ("deadline", 0, JOB_DEADLINE), JOB_TEXT ("name", 0, JOB_NAME),                    \
        JOB_TEXT ("output", 'o', JOB_OUTPUT), JOB_TEXT ("error", 'e', JOB_ERROR),                  \
        JOB_TEXT ("quote", 0, JOB_QUOTE),                                                          \
        JOB_TEXT ("max-cost", 0, JOB_MAX_COST), JOB_TEXT ("depend", 0, JOB_DEPEND),                \
        JOB_TEXT ("flags", 0, JOB_FLAGS),                                                          \
        {"hold", 0, CLI_OPT_FLAG, offsetof (struct job_options, hold), 0, 0},                      \
        JOB_TEXT ("gres", 0, JOB_GRES),                                                            \
        JOB_TEXT ("licence", 'L', JOB_LICENCE), JOB_TEXT ("partition", 0, JOB_PARTITION),          \
        JOB_TEXT ("nodeset", 0, JOB_NODESET), JOB_TEXT ("hosts", 'w', JOB_HOSTS),                  \
        JOB_TEXT ("exclude", 'x', JOB_EXCLUDE),                                                    \
        JOB_TEXT ("node-access", 0, JOB_NODE_ACCESS), JOB_TEXT ("procs-max", 0, JOB_PROCS_MAX),    \
        JOB_TEXT ("reservation", 0, JOB_RESERVATION),                                              \
        JOB_TEXT ("retries", 0, JOB_RETRIES), JOB_TEXT ("retry-on", 0, JOB_RETRY_ON),              \
        JOB_TEXT ("on-site-loss", 0, JOB_ON_SITE_LOSS), JOB_TEXT ("notify", 0, JOB_NOTIFY),        \
        JOB_TEXT ("retry-delay", 0, JOB_RETRY_DELAY),                                              \
        {"req", 0, CLI_OPT_LIST, offsetof (struct job_options, reqs), 0, 0},                       \
        {"component", 0, CLI_OPT_LIST, offsetof (struct job_options, components), 0, 0},           \
        {"env", 0, CLI_OPT_LIST, offsetof (struct job_options, env), 0, 0},                        \
        {"stage-in", 0, CLI_OPT_LIST, offsetof (struct job_options, stage_in), 0, 0},              \
        {"stage-out", 0, CLI_OPT_LIST, offsetof (struct job_options, stage_out), 0, 0},            \
    {                                                                                              \
        "file", 0, CLI_OPT_STRING, offsetof (struct job_options, file), 0, 0                       \
    }

const struct cli_option grid_submit_options[] = {
    JOB_OPTIONS,
    {"array", 0, CLI_OPT_STRING, offsetof (struct job_options, array), 0, 0},
    {"wait", 0, CLI_OPT_FLAG, offsetof (struct job_options, wait), 0, 0},
    {"save", 0, CLI_OPT_STRING, offsetof (struct job_options, save), 0, 0},
    {0},
};
const struct cli_option grid_estimate_options[] = {JOB_OPTIONS, {0}};

/* ---- words */

const char *grid_state_name (Nui__Meta__V1__GridJobState state)
{
    static const char *const name[] = {"Unknown",   "Pending", "Queued",    "Reserved", "Running",
                                       "Completed", "Failed",  "Cancelled", "Refused"};
    return (unsigned)state < sizeof name / sizeof *name ? name[state] : name[0];
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
    char prefix[PRINCIPAL_NAME_MAX];
    if (id_parse (text, prefix, sizeof prefix, &number, err) < 0)
        return err_set (err, ERR_INVALID, "'%s' is not the id of a job (as in grid.42)", text);
    if ((size_t)snprintf (out, cap, "%s", text) >= cap)
        return err_set (err, ERR_LIMIT, "'%s' is too long for the id of a job", text);
    return 0;
}
