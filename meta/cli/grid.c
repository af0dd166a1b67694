#include "meta/cli/grid.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"

enum { JOB_VALID_DAYS = 30 };

int grid_call (struct cli_context *ctx, const char *method, const ProtobufCMessage *request,
               bool idempotent, ProtobufCMessage **reply_out, struct err *err)
{
    struct rpcclient *meta = cli_meta (ctx, err);
    if (!meta)
        return err->code;
    return rpcclient_call (meta, &nui__meta__v1__meta__descriptor, method, request,
                           GRID_CALL_TIMEOUT_S * US_PER_S, idempotent, reply_out, err);
}

/* ---- options */

#define JOB_TEXT(name, letter, index)                                                              \
    {                                                                                              \
        name, letter, CLI_OPT_STRING, offsetof (struct grid_job_options, text[index]), 0, 0        \
    }

static const char *const job_key[] = {
    "account",        "qos",  "class",  "tasks",    "nodes",    "tpn",
    "procs-per-task", "mem",  "time",   "features", "site",     "after",
    "deadline",       "name", "output", "error",    "max-cost",
};

#define JOB_OPTIONS                                                                                \
    JOB_TEXT ("account", 'A', 0), JOB_TEXT ("qos", 'q', 1), JOB_TEXT ("class", 'p', 2),            \
        JOB_TEXT ("tasks", 'n', 3), JOB_TEXT ("nodes", 'N', 4), JOB_TEXT ("tpn", 0, 5),            \
        JOB_TEXT ("procs-per-task", 0, 6), JOB_TEXT ("mem", 0, 7), JOB_TEXT ("time", 't', 8),      \
        JOB_TEXT ("features", 'C', 9), JOB_TEXT ("site", 0, 10), JOB_TEXT ("after", 0, 11),        \
        JOB_TEXT ("deadline", 0, 12), JOB_TEXT ("name", 0, 13), JOB_TEXT ("output", 'o', 14),      \
        JOB_TEXT ("error", 'e', 15), JOB_TEXT ("max-cost", 0, 16),                                 \
        {"component", 0, CLI_OPT_LIST, offsetof (struct grid_job_options, components), 0, 0},      \
        {"env", 0, CLI_OPT_LIST, offsetof (struct grid_job_options, env), 0, 0},                   \
    {                                                                                              \
        "file", 0, CLI_OPT_STRING, offsetof (struct grid_job_options, file), 0, 0                  \
    }

const struct cli_option grid_submit_options[] = {
    JOB_OPTIONS,
    {"wait", 0, CLI_OPT_FLAG, offsetof (struct grid_job_options, wait), 0, 0},
    {0},
};
const struct cli_option grid_estimate_options[] = {JOB_OPTIONS, {0}};

static int options_into_spec (const struct grid_job_options *options, struct jobspec *spec,
                              struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof job_key / sizeof *job_key && rc == 0; i++)
        if (options->text[i])
            rc = jobspec_set (spec, job_key[i], options->text[i], err);
    for (uint32_t i = 0; i < options->env.count && rc == 0; i++)
        rc = jobspec_set (spec, "env", options->env.item[i], err);
    for (uint32_t i = 0; i < options->components.count && rc == 0; i++)
        rc = jobspec_component (spec, options->components.item[i], err);
    return rc;
}

static int spec_read (struct cli_context *ctx, const struct grid_job_options *options,
                      const struct cli_operands *operands, bool script_optional,
                      struct jobspec *spec, Nui__Common__V1__Job **job_out, struct err *err)
{
    int rc = options_into_spec (options, spec, err);
    if (rc == 0 && operands->count > 0)
        rc = jobspec_script (spec, operands->item[0], operands->item + 1, operands->count - 1, err);
    if (rc == 0 && options->file)
        rc = jobspec_json (spec, options->file, err);
    if (rc == 0)
        rc = jobspec_directives (spec, stderr, err);
    if (rc == 0 && cli_account (ctx))
        rc = jobspec_set (spec, "account", cli_account (ctx), err);
    return rc < 0 ? rc : jobspec_build (spec, script_optional, job_out, err);
}

int grid_job_sign (struct cli_context *ctx, const char *command,
                   const struct grid_job_options *options, const struct cli_operands *operands,
                   bool script_optional, struct arena *arena, Nui__Common__V1__Envelope **out,
                   Nui__Common__V1__Job **job_out)
{
    struct err err;
    err_clear (&err);
    Nui__Common__V1__Job *job;
    if (cli_config (ctx, &err) < 0)
        return cli_fail (command, &err);
    struct jobspec *spec = jobspec_create (arena, clock_now_us ());
    if (spec_read (ctx, options, operands, script_optional, spec, &job, &err) < 0)
        return err.code == ERR_INVALID ? cli_usage (command, "%s", err.text)
                                       : cli_fail (command, &err);
    struct tlsid *me = cli_identity (ctx, &err);
    if (!me)
        return cli_fail (command, &err);
    char uri[PRINCIPAL_URI_MAX];
    job->grid = arena_strdup (arena, tlsid_self (me)->grid);
    job->submitter = arena_strdup (arena, principal_uri (tlsid_self (me), uri));
    struct uuid *uuid = arena_new (arena, struct uuid);
    uuid_make (uuid);
    job->uuid.data = uuid->b;
    job->uuid.len = sizeof uuid->b;
    job->created_us = clock_now_us ();
    job->expires_us = job->created_us + INT64_C (86400) * JOB_VALID_DAYS * US_PER_S;
    size_t len = nui__common__v1__job__get_packed_size (job);
    if (len > ENVELOPE_BODY_MAX) {
        err_set (&err, ERR_LIMIT, "the job with its scripts has %zu bytes; %d are allowed", len,
                 ENVELOPE_BODY_MAX);
        return cli_fail (command, &err);
    }
    uint8_t *body = arena_alloc (arena, len);
    nui__common__v1__job__pack (job, body);
    if (envelope_sign (me, body, len, out, &err) < 0)
        return cli_fail (command, &err);
    if (job_out)
        *job_out = job;
    return CLI_OK;
}

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
