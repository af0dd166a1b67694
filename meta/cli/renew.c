/* renew: leave to go on with a job after its signature has expired. */
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "proto/base/clock.h"
#include "proto/job/delegation.h"
#include "proto/job/jobcheck.h"

#define FOR_DEFAULT_US (7 * 86400 * US_PER_S)

struct renew_options {
    duration_us length;
};

static const struct cli_option options[] = {
    {"for", 0, CLI_OPT_DURATION, "TIME", "so long from now (default 7 days, at most 30)",
     offsetof (struct renew_options, length)},
    {0},
};

static int call_renew (struct cli_context *ctx, const char *id,
                       const ProtobufCBinaryData *delegation, Nui__Meta__V1__RenewReply **out,
                       struct err *err)
{
    Nui__Meta__V1__RenewRequest request = NUI__META__V1__RENEW_REQUEST__INIT;
    request.grid_job_id = (char *)(uintptr_t)id;
    request.delegation = *delegation;
    return grid_call (ctx, "Renew", &request.base, (ProtobufCMessage **)out, err);
}

/* What the metascheduler says is the job must be what I signed, and it must be one. */
static int believe (struct tlsid *me, const Nui__Meta__V1__RenewReply *reply, struct err *err)
{
    struct principal signer, delegate;
    char mine[PRINCIPAL_URI_MAX], uri[PRINCIPAL_URI_MAX];
    if (!reply->envelope)
        return err_set (err, ERR_UNAUTHENTIC, "the metascheduler does not show the signed job");
    Nui__Common__V1__Job *job = jobcheck_unpack (&reply->envelope->body, err);
    int rc = job ? envelope_verify (me, reply->envelope, job->created_us, &signer, err)
                 : err_prefix (err, "what the metascheduler shows is no job");
    if (rc == 0 &&
        strcmp (principal_uri (&signer, uri), principal_uri (tlsid_self (me), mine)) != 0)
        rc = err_set (err, ERR_DENIED, "%s signed the job; only its owner can renew it", uri);
    if (rc == 0 && (principal_parse (reply->metascheduler, &delegate, err) < 0 ||
                    delegate.kind != PRINCIPAL_META))
        rc = err_set (err, ERR_UNAUTHENTIC, "'%.100s' is no metascheduler", reply->metascheduler);
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    return rc;
}

static int renew (struct cli_context *ctx, const char *id, duration_us length, struct err *err)
{
    Nui__Meta__V1__RenewReply *shown = NULL, *done = NULL;
    ProtobufCBinaryData delegation = {0, NULL};
    char when[QUANTITY_TEXT_MAX];
    struct tlsid *me = cli_identity (ctx, err);
    int rc = me ? call_renew (ctx, id, &delegation, &shown, err) : err->code;
    if (rc == 0)
        rc = believe (me, shown, err);
    if (rc == 0)
        rc = delegation_make (me, shown->envelope, shown->metascheduler, clock_now_us (), length,
                              &delegation, err);
    if (rc == 0)
        rc = call_renew (ctx, id, &delegation, &done, err);
    if (rc == 0 && done->count > 1)
        printf ("%s: %u jobs may go on until %s\n", id, done->count,
                time_format_iso (done->until_us, when));
    else if (rc == 0)
        printf ("job %s may go on until %s\n", id, time_format_iso (done->until_us, when));
    free (delegation.data);
    if (shown)
        nui__meta__v1__renew_reply__free_unpacked (shown, NULL);
    if (done)
        nui__meta__v1__renew_reply__free_unpacked (done, NULL);
    return rc;
}

static int renew_run (struct cli_context *ctx, int argc, char **argv)
{
    struct renew_options given = {FOR_DEFAULT_US};
    struct cli_operands operands;
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, options, 0, &given, argc, argv, &operands, &code))
        return code;
    if (!operands.count)
        return cli_usage (argv[0], "at least one job is needed, as in nui renew grid.42");
    for (int i = 0; i < operands.count; i++) {
        char id[GRID_ID_MAX];
        if (grid_job_id (ctx, operands.item[i], id, sizeof id, &err) < 0)
            return cli_usage (argv[0], "%s", err.text);
        if (renew (ctx, id, given.length, &err) < 0)
            return cli_fail (argv[0], &err);
    }
    return CLI_OK;
}

const struct cli_command renew_command = {
    .name = "renew",
    .group = CLI_USERS,
    .summary = "let a job go on after its signature has expired",
    .run = renew_run,
    .help = "nui renew [options] JOB...",
    .text = "Signs leave for the metascheduler to go on with these jobs, and with nothing else.",
    .options = options,
};
