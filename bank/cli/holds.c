/* nui hold, charge: what sites do by themselves, for an operator to see and to put right. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/cli/util.h"
#include "proto/base/clock.h"

enum { PARTS_MAX = 64 };

/* ---- hold ---- */

static const struct table_column hold_columns[] = {{"hold", "Hold", TABLE_TEXT},
                                                   {"account", "Account", TABLE_TEXT},
                                                   {"user", "User", TABLE_IDENTITY},
                                                   {"site", "Site", TABLE_TEXT},
                                                   {"job", "Job", TABLE_TEXT, .from = "grid_job"},
                                                   {"site_job", "SiteJob", TABLE_TEXT},
                                                   {"amount", "Amount", TABLE_CREDITS},
                                                   {"left", "Left", TABLE_CREDITS},
                                                   {"start", "Start", TABLE_TIME},
                                                   {"expires", "Expires", TABLE_TIME},
                                                   {"stale", "Stale", TABLE_BOOL}};

static int hold_refused (const Nui__Common__V1__Reason *reason)
{
    fprintf (stderr, "nui hold: %s: %s\n", reason->code, reason->text);
    return CLI_FAILED;
}

/* "SITE/JOB/PROCS" in place. */
static int part_read (char *text, Nui__Bank__V1__HoldRequest *m, struct err *err)
{
    char *job = strchr (text, '/'), *procs = job ? strrchr (text, '/') : NULL, *end = text;
    if (job && procs > job + 1) {
        *job++ = *procs++ = '\0';
        m->site = text;
        m->site_job_id = job;
        m->procs = procs[0] >= '1' && procs[0] <= '9' ? strtoull (procs, &end, 10) : 0;
    }
    if (m->procs == 0 || *end)
        return err_set (err, ERR_INVALID, "--part takes SITE/JOB/PROCESSORS");
    return 0;
}

static int hold_create (struct cli_context *ctx, const struct cli_said *said)
{
    static const struct table_column columns[] = {
        {"hold", "Hold", TABLE_TEXT},         {"site", "Site", TABLE_TEXT},
        {"amount", "Amount", TABLE_CREDITS},  {"account", "Account", TABLE_TEXT},
        {"fallback", "Fallback", TABLE_BOOL}, {"qos", "QoS", TABLE_TEXT},
        {"expires", "Expires", TABLE_TIME}};
    const struct cli_list *parts = said_list (said, "part");
    Nui__Bank__V1__HoldRequest *item[PARTS_MAX];
    Nui__Bank__V1__HoldGroupRequest group = NUI__BANK__V1__HOLD_GROUP_REQUEST__INIT;
    bool one = parts->count == 1;
    struct err err = {0};
    int rc = CLI_OK;
    if (parts->count > PARTS_MAX)
        return cli_usage ("hold", "at most %d parts", PARTS_MAX);
    for (uint32_t i = 0; i < parts->count; i++) {
        item[i] = (Nui__Bank__V1__HoldRequest *)cli_request (ctx, said, &rc);
        if (!item[i])
            return rc;
        if (part_read (arena_strdup (said->arena, parts->item[i]), item[i], &err) < 0)
            return cli_usage ("hold", "%s", err.text);
        if (i > 0) { /* the group's are for all */
            item[i]->key = (ProtobufCBinaryData){0};
            item[i]->claim = NULL;
        }
    }
    group.key = item[0]->key;
    group.claim = item[0]->claim;
    group.n_holds = parts->count;
    group.holds = item;
    ProtobufCMessage *reply =
        bank_call (ctx, one ? "Hold" : "HoldGroup", one ? &item[0]->base : &group.base, &err);
    if (!reply)
        return cli_fail ("hold", &err);
    Nui__Bank__V1__HoldReply *single = (Nui__Bank__V1__HoldReply *)reply;
    const Nui__Bank__V1__HoldGroupReply *all = (Nui__Bank__V1__HoldGroupReply *)reply;
    if (one ? single->granted : all->granted) {
        struct table *table = TABLE_CREATE (columns);
        for (size_t i = 0; i < parts->count && (one || i < all->n_holds); i++)
            table_message (table, one ? reply : &all->holds[i]->base, &item[i]->base);
        rc = table_print_done (table, ctx);
    } else {
        rc = hold_refused (one ? single->reason : all->reason);
    }
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static int hold_extend (struct cli_context *ctx, const struct cli_said *said)
{
    static const struct table_column columns[] = {{"hold", "Hold", TABLE_TEXT},
                                                  {"amount", "Amount", TABLE_CREDITS},
                                                  {"added", "Added", TABLE_CREDITS},
                                                  {"expires", "Expires", TABLE_TIME}};
    int rc = CLI_OK;
    ProtobufCMessage *request = cli_request (ctx, said, &rc);
    ProtobufCMessage *message = request ? cli_answer (ctx, said, request, &rc) : NULL;
    if (!message)
        return rc;
    const Nui__Bank__V1__ExtendReply *reply = (Nui__Bank__V1__ExtendReply *)message;
    if (reply->granted) {
        struct table *table = TABLE_CREATE (columns);
        table_message (table, message, request);
        rc = table_print_done (table, ctx);
    } else {
        rc = hold_refused (reply->reason);
    }
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

static const struct table_column release_columns[] = {
    {"hold", "hold", TABLE_TEXT},
    {"charged", "Charged", TABLE_CREDITS, .from = ""},
    {"released", "Released", TABLE_CREDITS},
    {"account", "Account", TABLE_TEXT, .from = ""}};

static const struct cli_option hold_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "of this account only; else all you may see"},
    {"stale", 0, CLI_OPT_FLAG, NULL, "only those past their expiry"},
    {"part", 0, CLI_OPT_LIST, "SITE/JOB/PROCS",
     "a job of a site; several: all of them on one account, or none"},
    {"user", 'u', CLI_OPT_STRING, "USER", "whose job it is", .take = bank_take_claim},
    {"walltime", 't', CLI_OPT_DURATION, "TIME", "of the jobs; extend: the whole of it"},
    {"job", 0, CLI_OPT_STRING, "NAME", "of the grid", .field = "grid_job"},
    {"component", 0, CLI_OPT_STRING, "NAME", "of that job"},
    BANK_JOB_OPTIONS,
    {"quote", 0, CLI_OPT_STRING, "QUOTE", "at the rates that it keeps for the user"},
    {"description", 'd', CLI_OPT_STRING, "TEXT", "why it is released", .field = "reason"},
    {0}};

static const struct cli_form hold_forms[] = {
    {"list [-A ACCOUNT] [--stale]", .method = "HoldList", CLI_COLUMNS (hold_columns)},
    {"create -A ACCOUNT --user USER -t WALLTIME --part SITE/JOB/PROCS… [--job NAME] [--component NAME] [-q QOS] "
     "[-c CLASS] [--machine NAME] [--node-type NAME=PROCS]… [--quote QUOTE]",
     hold_create, .method = "Hold"},
    {"extend HOLD -t WALLTIME", hold_extend, .method = "Extend"},
    {"release HOLD -d REASON", .method = "Release", CLI_COLUMNS (release_columns)},
    {0}};

const struct cli_command hold_command = {
    .name = "hold",
    .group = CLI_BANK,
    .summary = "what jobs hold; to place, lengthen and release holds by hand",
    .forms = hold_forms,
    .options = hold_options,
    .service = &bank_service,
    .example = "nui hold list --stale",
};

/* ---- charge ---- */

/* A clock time is the last such moment: what was understood is said before anything is booked. */
static bool charge_times (const Nui__Bank__V1__ChargeRequest *r, int *rc)
{
    char from[QUANTITY_TEXT_MAX], to[QUANTITY_TEXT_MAX], length[QUANTITY_TEXT_MAX];
    time_format_iso (r->start_us, from);
    time_format_iso (r->end_us, to);
    if (r->end_us > clock_now_us () || r->end_us < r->start_us) {
        *rc = r->end_us < r->start_us
                  ? cli_usage ("charge", "--end %s is before --start %s", to, from)
                  : cli_usage ("charge", "--end %s has not come yet: only what was used is charged",
                               to);
        return false;
    }
    fprintf (stderr, "nui charge: job %s of site %s, %" PRIu64 " processors from %s to %s (%s)\n",
             r->site_job_id, r->site, r->procs, from, to,
             duration_format (r->end_us - r->start_us, length));
    return true;
}

static int charge_run (struct cli_context *ctx, const struct cli_said *said)
{
    bool hold = said_given (said, "hold"), user = said_given (said, "user");
    int rc;
    if (hold == user || user != said_given (said, "account"))
        return cli_usage ("charge", "name a hold with --hold, or who pays with --user and -A");
    Nui__Bank__V1__ChargeRequest *request =
        (Nui__Bank__V1__ChargeRequest *)cli_request (ctx, said, &rc);
    if (!request || !charge_times (request, &rc))
        return rc;
    request->final = !said_flag (said, "partial");
    request->successful = !said_flag (said, "failed");
    return cli_send_request (ctx, said, &request->base, NULL);
}

static const struct table_column charge_columns[] = {{"job", "job", TABLE_TEXT, .from = "site_job"},
                                                     {"charged", "Charged", TABLE_CREDITS},
                                                     {"released", "Released", TABLE_CREDITS},
                                                     {"account", "Account", TABLE_TEXT}};

static const struct cli_option charge_options[] = {
    {"site", 0, CLI_OPT_STRING, "SITE", "where it ran"},
    {"site-job", 0, CLI_OPT_STRING, "JOB", "its name there"},
    {"hold", 0, CLI_OPT_STRING, "HOLD", "that pays"},
    {"user", 'u', CLI_OPT_STRING, "USER", "who pays, where there is no hold",
     .take = bank_take_claim},
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "and of what"},
    {"procs", 'n', CLI_OPT_COUNT, "N", "it had", .min = 1, .max = 100000000},
    {"start", 0, CLI_OPT_PAST, "TIME",
     "a clock time is the last one: 23:00 in the morning is yesterday's"},
    {"end", 0, CLI_OPT_PAST, "TIME", "likewise"},
    {"partial", 0, CLI_OPT_FLAG, NULL, "more will follow; else it is the job's last charge"},
    {"failed", 0, CLI_OPT_FLAG, NULL, "the job did not end well"},
    {"incarnation", 0, CLI_OPT_INT, "N", "which run of the job it was", .max = UINT32_MAX},
    {"cpu", 0, CLI_OPT_DURATION, "TIME", "processor time that it used"},
    {"job", 0, CLI_OPT_STRING, "NAME", "of the grid", .field = "grid_job"},
    {"component", 0, CLI_OPT_STRING, "NAME", "of that job"},
    BANK_JOB_OPTIONS,
    {"quote", 0, CLI_OPT_STRING, "QUOTE", "at the rates that it keeps"},
    {0}};

static const struct cli_form charge_forms[] = {
    {"--site SITE --site-job JOB -n PROCS --start TIME --end TIME [--hold HOLD | --user USER] [-A ACCOUNT] [--partial] "
     "[--failed] [--incarnation N] [--cpu TIME] [--job NAME] [--component NAME] [-q QOS] [-c CLASS] [--machine NAME] "
     "[--node-type NAME=PROCS]… [--quote QUOTE]",
     charge_run, .method = "Charge", CLI_COLUMNS (charge_columns)},
    {0}};

const struct cli_command charge_command = {
    .name = "charge",
    .group = CLI_BANK,
    .summary = "charge a job by hand, as its site would have",
    .forms = charge_forms,
    .options = charge_options,
    .service = &bank_service,
    .example =
        "nui charge --site alpha --site-job alpha.17 --hold hold.4 -n 8 --start 09:00 --end 09:30",
};
