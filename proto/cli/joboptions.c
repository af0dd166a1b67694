/* joboptions: gathers a job's options from line, file, script and defaults, has jobspec check
 * them, and signs the result. submit, estimate and msub call it. It sends nothing: the signed
 * job is the caller's to send. */
#include "proto/cli/joboptions.h"

#include "proto/base/clock.h"
#include "proto/cli/inputs.h"
#include "proto/rpc/envelope.h"
#include "proto/job/jobcheck.h"

static const char *const job_key[JOB_TEXTS] = {
    [JOB_ACCOUNT] = "account",
    [JOB_QOS] = "qos",
    [JOB_CLASS] = "class",
    [JOB_TASKS] = "tasks",
    [JOB_NODES] = "nodes",
    [JOB_TPN] = "tpn",
    [JOB_PROCS_PER_TASK] = "procs-per-task",
    [JOB_MEM] = "mem",
    [JOB_SWAP] = "swap",
    [JOB_DISK] = "disk",
    [JOB_LIKE] = "like",
    [JOB_TIME] = "time",
    [JOB_FEATURES] = "features",
    [JOB_SITE] = "site",
    [JOB_AFTER] = "after",
    [JOB_DEADLINE] = "deadline",
    [JOB_START_BY] = "start-by",
    [JOB_VALID] = "valid",
    [JOB_PREFER] = "prefer",
    [JOB_TRL] = "trl",
    [JOB_NAME] = "name",
    [JOB_OUTPUT] = "output",
    [JOB_ERROR] = "error",
    [JOB_MAX_COST] = "max-cost",
    [JOB_QUOTE] = "quote",
    [JOB_DEPEND] = "depend",
    [JOB_FLAGS] = "flags",
    [JOB_GRES] = "gres",
    [JOB_LICENCE] = "licence",
    [JOB_PARTITION] = "partition",
    [JOB_NODESET] = "nodeset",
    [JOB_HOSTS] = "hosts",
    [JOB_EXCLUDE] = "exclude",
    [JOB_NODE_ACCESS] = "node-access",
    [JOB_PROCS_MAX] = "procs-max",
    [JOB_RESERVATION] = "reservation",
    [JOB_RETRIES] = "retries",
    [JOB_RETRY_ON] = "retry-on",
    [JOB_RETRY_DELAY] = "retry-delay",
    [JOB_ON_SITE_LOSS] = "on-site-loss",
    [JOB_ON_FAILURE] = "on-failure",
    [JOB_NOTIFY] = "notify",
    [JOB_CHDIR] = "chdir",
    [JOB_MAIL] = "mail",
    [JOB_MAIL_TO] = "mail-to",
    [JOB_ARRAY] = "array",
    [JOB_GPUS] = "gpus",
    [JOB_MEM_PER_NODE] = "mem-per-node",
    [JOB_SIGNAL] = "signal",
};

static int options_into_spec (const struct job_options *options, struct jobspec *spec,
                              struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < JOB_TEXTS && rc == 0; i++)
        if (options->text[i])
            rc = jobspec_set (spec, job_key[i], options->text[i], err);
    if (rc == 0 && options->hold)
        rc = jobspec_set (spec, "hold", "", err);
    if (rc == 0 && options->env_all)
        rc = jobspec_set (spec, "env-all", "", err);
    if (rc == 0 && options->resources)
        rc = jobspec_resources (spec, options->resources, stderr, err);
    for (uint32_t i = 0; i < options->reqs.count && rc == 0; i++)
        rc = jobspec_set (spec, "req", options->reqs.item[i], err);
    for (uint32_t i = 0; i < options->env.count && rc == 0; i++)
        rc = jobspec_set (spec, "env", options->env.item[i], err);
    for (uint32_t i = 0; i < options->inputs.count && rc == 0; i++)
        rc = jobspec_set (spec, "input", options->inputs.item[i], err);
    for (uint32_t i = 0; i < options->stage_in.count && rc == 0; i++)
        rc = jobspec_set (spec, "stage-in", options->stage_in.item[i], err);
    for (uint32_t i = 0; i < options->stage_out.count && rc == 0; i++)
        rc = jobspec_set (spec, "stage-out", options->stage_out.item[i], err);
    for (uint32_t i = 0; i < options->components.count && rc == 0; i++)
        rc = jobspec_component (spec, options->components.item[i], err);
    return rc;
}

static int spec_read (struct cli_context *ctx, const struct job_options *options,
                      const struct cli_operands *operands, struct arena *arena,
                      struct jobspec *spec, struct jobarray *array, Nui__Common__V1__Job **job_out,
                      struct err *err)
{
    int rc = options_into_spec (options, spec, err);
    if (rc == 0 && operands->count > 0)
        rc = jobspec_script (spec, operands->item[0], operands->item + 1, operands->count - 1, err);
    if (rc == 0 && options->file)
        rc = jobspec_json (spec, options->file, err);
    if (rc == 0 && options->wrap)
        rc = jobspec_wrap (spec, options->wrap, err);
    if (rc == 0)
        rc = jobspec_directives (spec, stderr, err);
    if (rc == 0 && cli_account (ctx))
        rc = jobspec_set (spec, "account", cli_account (ctx), err);
    if (rc == 0 && array)
        rc = jobarray_parse (jobspec_array (spec), arena, array, err);
    if (rc == 0)
        rc = jobspec_build (spec, array == NULL, job_out, err);
    return rc;
}

int job_options_build (struct cli_context *ctx, const char *command,
                       const struct job_options *options, const struct cli_operands *operands,
                       struct arena *arena, struct jobarray *array, Nui__Common__V1__Job **out)
{
    struct err err = {0};
    Nui__Common__V1__Job *job;
    const char *grid = cli_grid (ctx, &err);
    if (!grid)
        return cli_fail (command, &err);
    struct jobspec *spec = jobspec_create (arena, options->now ? options->now : clock_now_us ());
    jobspec_inputs (spec, options->travel ? options->travel : inputs_create (arena));
    if (options->site_walltime)
        jobspec_walltime_optional (spec);
    if (spec_read (ctx, options, operands, arena, spec, array, &job, &err) < 0)
        return err.code == ERR_INVALID ? cli_usage (command, "%s", err.text)
                                       : cli_fail (command, &err);
    struct uuid *uuid = arena_new (arena, struct uuid);
    uuid_make (uuid);
    job->grid = arena_strdup (arena, grid);
    job->submitter = arena_strdup (arena, "");
    job->uuid.data = uuid->b;
    job->uuid.len = sizeof uuid->b;
    job->created_us = clock_now_us ();
    job->expires_us =
        job->created_us +
        (job->expires_us ? job->expires_us : JOB_VALID_MAX_DAYS * INT64_C (86400) * US_PER_S);
    *out = job;
    return CLI_OK;
}

static int body_pack (const Nui__Common__V1__Job *job, struct arena *arena, uint8_t **body,
                      size_t *len, struct err *err)
{
    *len = nui__common__v1__job__get_packed_size (job);
    if (*len > ENVELOPE_BODY_MAX) /* the sentence knows what makes a job large */
        return err_set (err, ERR_LIMIT, "the job with its scripts has %zu bytes; %d are allowed",
                        *len, ENVELOPE_BODY_MAX);
    *body = arena_alloc (arena, *len);
    nui__common__v1__job__pack (job, *body);
    return jobcheck_bytes (*body, *len, err);
}

int job_sign (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
              struct arena *arena, Nui__Common__V1__Envelope **out)
{
    struct err err = {0};
    char uri[PRINCIPAL_URI_MAX];
    uint8_t *body = NULL;
    size_t len = 0;
    struct tlsid *me = cli_identity (ctx, &err);
    if (!me)
        return cli_fail (command, &err);
    job->submitter = arena_strdup (arena, principal_uri (tlsid_self (me), uri));
    if (body_pack (job, arena, &body, &len, &err) < 0 ||
        envelope_sign (me, body, len, out, &err) < 0)
        return cli_fail (command, &err);
    return CLI_OK;
}

int job_unsigned (const char *command, const Nui__Common__V1__Job *job, struct arena *arena,
                  Nui__Common__V1__Envelope **out)
{
    struct err err = {0};
    *out = arena_new (arena, Nui__Common__V1__Envelope);
    nui__common__v1__envelope__init (*out);
    if (body_pack (job, arena, &(*out)->body.data, &(*out)->body.len, &err) < 0)
        return cli_fail (command, &err);
    return CLI_OK;
}
