/* msub: a job for one cluster alone, without a grid. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/local_cli.h"
#include "proto/cli/joboptions.h"
#include "proto/rpc/envelope.h"

static const struct cli_option msub_options[] = {
    JOB_TEXT ("account", 'A', JOB_ACCOUNT),
    JOB_TEXT ("class", 'q', JOB_CLASS),
    JOB_TEXT ("qos", 0, JOB_QOS),
    JOB_TEXT ("name", 'N', JOB_NAME),
    JOB_TEXT ("output", 'o', JOB_OUTPUT),
    JOB_TEXT ("error", 'e', JOB_ERROR),
    JOB_TEXT ("after", 'a', JOB_AFTER),
    JOB_TEXT ("tasks", 0, JOB_TASKS),
    JOB_TEXT ("nodes", 0, JOB_NODES),
    JOB_TEXT ("tpn", 0, JOB_TPN),
    JOB_TEXT ("procs-per-task", 0, JOB_PROCS_PER_TASK),
    JOB_TEXT ("mem", 0, JOB_MEM),
    JOB_TEXT ("swap", 0, JOB_SWAP),
    JOB_TEXT ("disk", 0, JOB_DISK),
    JOB_TEXT ("like", 0, JOB_LIKE),
    JOB_TEXT ("time", 't', JOB_TIME),
    JOB_TEXT ("features", 0, JOB_FEATURES),
    JOB_TEXT ("gres", 0, JOB_GRES),
    JOB_TEXT ("licence", 0, JOB_LICENCE),
    JOB_TEXT ("partition", 0, JOB_PARTITION),
    JOB_TEXT ("nodeset", 0, JOB_NODESET),
    JOB_TEXT ("hosts", 'w', JOB_HOSTS),
    JOB_TEXT ("exclude", 'x', JOB_EXCLUDE),
    JOB_TEXT ("node-access", 0, JOB_NODE_ACCESS),
    JOB_TEXT ("procs-max", 0, JOB_PROCS_MAX),
    JOB_TEXT ("reservation", 0, JOB_RESERVATION),
    {"req", 0, CLI_OPT_LIST, offsetof (struct job_options, reqs), 0, 0},
    JOB_TEXT ("deadline", 0, JOB_DEADLINE),
    JOB_TEXT ("max-cost", 0, JOB_MAX_COST),
    JOB_TEXT ("quote", 0, JOB_QUOTE),
    JOB_TEXT ("depend", 0, JOB_DEPEND),
    JOB_TEXT ("flags", 0, JOB_FLAGS),
    {"array", 0, CLI_OPT_STRING, offsetof (struct job_options, array), 0, 0},
    {"resources", 'l', CLI_OPT_STRING, offsetof (struct job_options, resources), 0, 0},
    {"env", 'v', CLI_OPT_LIST, offsetof (struct job_options, env), 0, 0},
    {"stage-in", 0, CLI_OPT_LIST, offsetof (struct job_options, stage_in), 0, 0},
    {"stage-out", 0, CLI_OPT_LIST, offsetof (struct job_options, stage_out), 0, 0},
    {"file", 0, CLI_OPT_STRING, offsetof (struct job_options, file), 0, 0},
    {"hold", 'h', CLI_OPT_FLAG, offsetof (struct job_options, hold), 0, 0},
    {"site", 0, CLI_OPT_STRING, offsetof (struct job_options, site), 0, 0},
    {0},
};

/* Who has a certificate signs; who has none is told apart by the cluster's socket. No metascheduler hands the job
 * over, so what is signed is for this site only: the bank pays no other for it. */
static int envelope_make (struct cli_context *ctx, const char *site, Nui__Common__V1__Job *job, struct arena *arena,
                          Nui__Common__V1__Envelope **out, bool *owned)
{
    struct err err = {0};
    const char *name = cli_site_name (ctx, site, &err);
    *owned = cli_has_identity (ctx);
    if (!*owned)
        return job_unsigned ("msub", job, arena, out);
    if (!name)
        return cli_fail ("msub", &err);
    for (size_t i = 0; i < job->n_components; i++) {
        job->components[i]->n_sites = 1;
        job->components[i]->sites = arena_array (arena, 1, sizeof *job->components[i]->sites);
        job->components[i]->sites[0] = arena_strdup (arena, name);
    }
    return job_sign (ctx, "msub", job, arena, out);
}

static int submission_send (struct cli_context *ctx, const struct job_options *options,
                 Nui__Common__V1__Envelope *envelope)
{
    static const struct table_column columns[] = {
        {"job_id", "JobName", TABLE_TEXT, 0},
        {"start_estimate", "StartEstimate", TABLE_TIME, 0},
    };
    Nui__Local__V1__SubmitJobRequest request = NUI__LOCAL__V1__SUBMIT_JOB_REQUEST__INIT;
    Nui__Local__V1__SubmitJobReply *reply = NULL;
    struct err err = {0};
    int code = CLI_OK;
    request.envelope = envelope;
    if (site_admin (ctx, options->site, "SubmitJob", &request, true, &reply, &err) < 0)
        return cli_fail ("msub", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        printf ("%s\n", reply->job_id);
    } else {
        struct table *t = table_create (columns, 2);
        table_text (t, reply->job_id);
        cell_moment (t, reply->start_estimate_us);
        table_end_row (t);
        code = table_print (t, ctx);
        table_destroy (t);
    }
    nui__local__v1__submit_job_reply__free_unpacked (reply, NULL);
    return code;
}

static int submissions (struct cli_context *ctx, const struct job_options *options,
                        const struct jobarray *array, Nui__Common__V1__Job *job,
                        struct arena *arena)
{
    int code = CLI_OK;
    for (uint32_t i = 0; i < (array->count ? array->count : 1) && code == CLI_OK; i++) {
        Nui__Common__V1__Envelope *envelope = NULL;
        bool owned = false;
        code = envelope_make (ctx, options->site, jobarray_element (array, i, arena, job), arena, &envelope,
                              &owned);
        if (code == CLI_OK)
            code = submission_send (ctx, options, envelope);
        if (owned)
            envelope_free (envelope);
    }
    return code;
}

int cmd_msub (struct cli_context *ctx, int argc, char **argv)
{
    struct job_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Job *job;
    struct cli_operands operands;
    struct jobarray array;
    struct err err = {0};
    int code;
    if (!options)
        return CLI_FAILED;
    if (cli_options (ctx, msub_options, CLI_STOP_AT_OPERAND, options, argc, argv, &operands,
                     &code)) {
        code = jobarray_parse (options->array, arena, &array, &err) == 0
                   ? CLI_OK
                   : cli_usage ("msub", "%s", err.text);
        if (code == CLI_OK && array.count && cli_format (ctx) != CLI_TABLE)
            code = cli_usage ("msub", "--array prints ids: no --json, no --csv");
        if (code == CLI_OK && (options->text[JOB_AFTER] || options->text[JOB_DEADLINE]) &&
            site_time (ctx, options->site, "now", &options->now, &err) != 0)
            code = cli_fail ("msub", &err);
        options->site_walltime = true;
        if (code == CLI_OK)
            code = job_options_build (ctx, "msub", options, &operands, false, arena, &job);
        if (code == CLI_OK)
            code = submissions (ctx, options, &array, job, arena);
    }
    arena_destroy (arena);
    free (options);
    return code;
}
