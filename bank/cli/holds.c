/* nui hold, charge: what sites do by themselves, for an operator to see and to put right. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/cli/util.h"
#include "proto/base/clock.h"

enum { PARTS_MAX = 64 };

static int hold_print (struct cli_context *ctx, const Nui__Bank__V1__HoldListReply *reply)
{
    static const struct table_column columns[] = {
        {"hold", "Hold", TABLE_TEXT, 0},        {"account", "Account", TABLE_TEXT, 0},
        {"user", "User", TABLE_TEXT, 0},        {"site", "Site", TABLE_TEXT, 0},
        {"job", "Job", TABLE_TEXT, 0},          {"site_job", "SiteJob", TABLE_TEXT, 0},
        {"amount", "Amount", TABLE_CREDITS, 0}, {"left", "Left", TABLE_CREDITS, 0},
        {"start", "Start", TABLE_TIME, 0},      {"expires", "Expires", TABLE_TIME, 0},
        {"stale", "Stale", TABLE_BOOL, 0}};
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    for (size_t i = 0; i < reply->n_holds; i++) {
        const Nui__Bank__V1__HoldItem *h = reply->holds[i];
        table_text (table, h->hold_id);
        table_text (table, h->account);
        table_text (table, cli_format (ctx) == CLI_TABLE ? bank_short_name (h->user) : h->user);
        table_text (table, h->site);
        table_text (table, h->grid_job_id);
        table_text (table, h->site_job_id);
        table_credits (table, h->amount_micro);
        table_credits (table, h->left_micro);
        table_time (table, h->start_us);
        table_time (table, h->expires_us);
        table_bool (table, h->stale);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

struct hold_args {
    const char *quote;
    struct cli_list nodes;
    const char *account, *user, *qos, *class_, *machine, *job, *component, *reason;
    duration_us walltime;
    struct cli_list part;
    bool stale;
};

static int hold_list (struct cli_context *ctx, const struct hold_args *args)
{
    struct err err = {0};
    Nui__Bank__V1__HoldListRequest request = NUI__BANK__V1__HOLD_LIST_REQUEST__INIT;
    request.account = bank_text (args->account ? args->account : "");
    request.stale = args->stale;
    ProtobufCMessage *reply = bank_call (ctx, "HoldList", &request.base, &err);
    if (!reply)
        return cli_fail ("hold", &err);
    int rc = hold_print (ctx, (Nui__Bank__V1__HoldListReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

/* Says what was granted, or why not; holds of one request. */
static int hold_outcome (struct cli_context *ctx, bool granted, Nui__Bank__V1__HoldReply **hold,
                         size_t count, char **site, const Nui__Common__V1__Reason *reason)
{
    static const struct table_column columns[] = {
        {"hold", "Hold", TABLE_TEXT, 0},         {"site", "Site", TABLE_TEXT, 0},
        {"amount", "Amount", TABLE_CREDITS, 0},  {"account", "Account", TABLE_TEXT, 0},
        {"fallback", "Fallback", TABLE_BOOL, 0}, {"qos", "QoS", TABLE_TEXT, 0},
        {"expires", "Expires", TABLE_TIME, 0}};
    if (!granted) {
        fprintf (stderr, "nui hold: %s: %s\n", reason->code, reason->text);
        return CLI_FAILED;
    }
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    for (size_t i = 0; i < count; i++) {
        table_text (table, hold[i]->hold_id);
        table_text (table, site[i]);
        table_credits (table, hold[i]->amount_micro);
        table_text (table, hold[i]->account);
        table_bool (table, hold[i]->fallback);
        table_text (table, hold[i]->qos);
        table_time (table, hold[i]->expires_us);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
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

static int parts_read (const struct hold_args *args, struct bank_nodes *nodes, char words[PARTS_MAX][512],
                       Nui__Bank__V1__HoldRequest *item, Nui__Bank__V1__HoldRequest **items,
                       char **site, struct err *err)
{
    if (bank_nodes (&args->nodes, nodes, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < args->part.count; i++) {
        if (i == PARTS_MAX || strlen (args->part.item[i]) >= sizeof (words[i]))
            return err_set (err, ERR_LIMIT, "at most %d parts, of 500 letters each", PARTS_MAX);
        strcpy (words[i], args->part.item[i]);
        nui__bank__v1__hold_request__init (&item[i]);
        if (part_read (words[i], &item[i], err) < 0)
            return err->code;
        item[i].walltime_us = args->walltime;
        item[i].grid_job_id = bank_text (args->job);
        item[i].component = bank_text (args->component);
        item[i].qos = bank_text (args->qos);
        item[i].class_ = bank_text (args->class_);
        item[i].machine = bank_text (args->machine);
        item[i].quote_id = bank_text (args->quote);
        item[i].asked = &nodes->asked;
        items[i] = &item[i];
        site[i] = item[i].site;
    }
    return 0;
}

static int hold_create (struct cli_context *ctx, const struct hold_args *args)
{
    static char words[PARTS_MAX][512];
    Nui__Bank__V1__HoldRequest item[PARTS_MAX], *items[PARTS_MAX];
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    char *site[PARTS_MAX], uri[PRINCIPAL_URI_MAX];
    uint8_t key[16];
    struct bank_nodes nodes;
    struct err err = {0};
    if (parts_read (args, &nodes, words, item, items, site, &err) < 0)
        return cli_usage ("hold", "%s", err.text);
    if (bank_identity (ctx, args->user, uri, &err) < 0)
        return cli_fail ("hold", &err);
    claim.identity = uri;
    claim.account = bank_text (args->account);
    bool one = args->part.count == 1;
    Nui__Bank__V1__HoldGroupRequest group = NUI__BANK__V1__HOLD_GROUP_REQUEST__INIT;
    group.key = item[0].key = bank_key (key);
    group.claim = item[0].claim = &claim;
    group.n_holds = args->part.count;
    group.holds = items;
    ProtobufCMessage *reply =
        bank_call (ctx, one ? "Hold" : "HoldGroup", one ? &item[0].base : &group.base, &err);
    if (!reply)
        return cli_fail ("hold", &err);
    Nui__Bank__V1__HoldReply *single = (Nui__Bank__V1__HoldReply *)reply;
    const Nui__Bank__V1__HoldGroupReply *all = (Nui__Bank__V1__HoldGroupReply *)reply;
    int rc = one ? hold_outcome (ctx, single->granted, &single, 1, site, single->reason)
                 : hold_outcome (ctx, all->granted, all->holds, all->n_holds, site, all->reason);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static int hold_extend (struct cli_context *ctx, const char *hold, duration_us walltime)
{
    static const struct table_column columns[] = {{"hold", "Hold", TABLE_TEXT, 0},
                                                  {"amount", "Amount", TABLE_CREDITS, 0},
                                                  {"added", "Added", TABLE_CREDITS, 0},
                                                  {"expires", "Expires", TABLE_TIME, 0}};
    uint8_t key[16];
    struct err err = {0};
    Nui__Bank__V1__ExtendRequest request = NUI__BANK__V1__EXTEND_REQUEST__INIT;
    request.key = bank_key (key);
    request.hold_id = bank_text (hold);
    request.walltime_us = walltime;
    ProtobufCMessage *message = bank_call (ctx, "Extend", &request.base, &err);
    if (!message)
        return cli_fail ("hold", &err);
    const Nui__Bank__V1__ExtendReply *reply = (Nui__Bank__V1__ExtendReply *)message;
    int rc = CLI_FAILED;
    if (!reply->granted) {
        fprintf (stderr, "nui hold: %s: %s\n", reply->reason->code, reply->reason->text);
    } else {
        struct table *table = table_create (columns, 4);
        table_text (table, hold);
        table_credits (table, reply->amount_micro);
        table_credits (table, reply->added_micro);
        table_time (table, reply->expires_us);
        table_end_row (table);
        rc = table_print (table, ctx);
        table_destroy (table);
    }
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

/* One line of text, or one record. */
static int moved (struct cli_context *ctx, const char *key, const char *id, credit_micro charged,
                  credit_micro released, const char *account)
{
    const struct table_column columns[] = {{key, key, TABLE_TEXT, 0},
                                           {"charged", "Charged", TABLE_CREDITS, 0},
                                           {"released", "Released", TABLE_CREDITS, 0},
                                           {"account", "Account", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, 4);
    table_text (table, id);
    table_credits (table, charged);
    table_credits (table, released);
    table_text (table, account);
    table_end_row (table);
    int rc = table_print_record (table, ctx);
    table_destroy (table);
    return rc;
}

static int hold_release (struct cli_context *ctx, const char *hold, const char *reason)
{
    uint8_t key[16];
    struct err err = {0};
    Nui__Bank__V1__ReleaseRequest request = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    request.key = bank_key (key);
    request.hold_id = bank_text (hold);
    request.reason = bank_text (reason);
    ProtobufCMessage *reply = bank_call (ctx, "Release", &request.base, &err);
    if (!reply)
        return cli_fail ("hold", &err);
    int rc =
        moved (ctx, "hold", hold, 0, ((Nui__Bank__V1__ReleaseReply *)reply)->released_micro, "");
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

int cmd_hold (struct cli_context *ctx, int argc, char **argv)
{
    struct hold_args args = {
        .qos = "", .class_ = "", .machine = "", .job = "", .component = "", .reason = "", .quote = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct hold_args, account), 0, 0},
        {"stale", 0, CLI_OPT_FLAG, offsetof (struct hold_args, stale), 0, 0},
        {"user", 'u', CLI_OPT_STRING, offsetof (struct hold_args, user), 0, 0},
        {"part", 0, CLI_OPT_LIST, offsetof (struct hold_args, part), 0, 0},
        {"walltime", 't', CLI_OPT_DURATION, offsetof (struct hold_args, walltime), 0, 0},
        {"qos", 'q', CLI_OPT_STRING, offsetof (struct hold_args, qos), 0, 0},
        {"class", 'c', CLI_OPT_STRING, offsetof (struct hold_args, class_), 0, 0},
        {"machine", 0, CLI_OPT_STRING, offsetof (struct hold_args, machine), 0, 0},
        {"job", 0, CLI_OPT_STRING, offsetof (struct hold_args, job), 0, 0},
        {"component", 0, CLI_OPT_STRING, offsetof (struct hold_args, component), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct hold_args, reason), 0, 0},
        {"quote", 0, CLI_OPT_STRING, offsetof (struct hold_args, quote), 0, 0},
        {"node-type", 0, CLI_OPT_LIST, offsetof (struct hold_args, nodes), 0, 0},
        {0}};
    struct cli_operands o;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    bool placed = args.part.count || args.user;
    if (strcmp (verb, "list") == 0 && o.count == 1 && !placed && !args.walltime)
        return hold_list (ctx, &args);
    if (strcmp (verb, "create") == 0 && o.count == 1 && args.part.count && args.user &&
        args.account && args.walltime && !args.stale)
        return hold_create (ctx, &args);
    if (strcmp (verb, "extend") == 0 && o.count == 2 && args.walltime && !placed && !args.stale)
        return hold_extend (ctx, o.item[1], args.walltime);
    if (strcmp (verb, "release") == 0 && o.count == 2 && args.reason[0] && !placed && !args.stale)
        return hold_release (ctx, o.item[1], args.reason);
    return cli_usage (argv[0], "say list [-A ACCOUNT] [--stale], create -A ACCOUNT --user USER "
                               "-t WALLTIME --part SITE/JOB/PROCS…, extend HOLD -t WALLTIME or "
                               "release HOLD -d REASON");
}

/* ---- charge ---- */

struct charge_args {
    const char *account, *user, *site, *job, *grid_job, *component, *hold, *qos, *class_, *machine;
    const char *quote;
    struct cli_list nodes;
    uint64_t procs;
    time_us start, end;
    duration_us cpu;
    int64_t incarnation;
    bool partial, failed;
};

static int charge_send (struct cli_context *ctx, const struct charge_args *args)
{
    Nui__Bank__V1__ChargeRequest request = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    char uri[PRINCIPAL_URI_MAX];
    struct bank_nodes nodes;
    uint8_t key[16];
    struct err err = {0};
    if (bank_nodes (&args->nodes, &nodes, &err) < 0)
        return cli_usage ("charge", "%s", err.text);
    request.asked = &nodes.asked;
    request.key = bank_key (key);
    request.hold_id = bank_text (args->hold);
    request.site = bank_text (args->site);
    request.site_job_id = bank_text (args->job);
    request.grid_job_id = bank_text (args->grid_job);
    request.component = bank_text (args->component);
    request.incarnation = (uint32_t)args->incarnation;
    request.procs = args->procs;
    request.start_us = args->start;
    request.end_us = args->end;
    request.cpu_us = args->cpu;
    request.final = !args->partial;
    request.successful = !args->failed;
    request.qos = bank_text (args->qos);
    request.class_ = bank_text (args->class_);
    request.machine = bank_text (args->machine);
    request.quote_id = bank_text (args->quote);
    if (args->user) {
        if (bank_identity (ctx, args->user, uri, &err) < 0)
            return cli_fail ("charge", &err);
        claim.identity = uri;
        claim.account = bank_text (args->account);
        request.claim = &claim;
    }
    ProtobufCMessage *message = bank_call (ctx, "Charge", &request.base, &err);
    if (!message)
        return cli_fail ("charge", &err);
    const Nui__Bank__V1__ChargeReply *reply = (Nui__Bank__V1__ChargeReply *)message;
    int rc =
        moved (ctx, "job", args->job, reply->charged_micro, reply->released_micro, reply->account);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

/* A clock time is the last such moment: what was understood is said before anything is booked. */
static bool charge_times (const struct charge_args *args, int *rc)
{
    char from[QUANTITY_TEXT_MAX], to[QUANTITY_TEXT_MAX], length[QUANTITY_TEXT_MAX];
    time_format_iso (args->start, from);
    time_format_iso (args->end, to);
    if (args->end > clock_now_us () || args->end < args->start) {
        *rc = args->end < args->start
                  ? cli_usage ("charge", "--end %s is before --start %s", to, from)
                  : cli_usage ("charge", "--end %s has not come yet: only what was used is charged", to);
        return false;
    }
    fprintf (stderr, "nui charge: job %s of site %s, %" PRIu64 " processors from %s to %s (%s)\n",
             args->job, args->site, args->procs, from, to,
             duration_format (args->end - args->start, length));
    return true;
}

int cmd_charge (struct cli_context *ctx, int argc, char **argv)
{
    struct charge_args args = {
        .grid_job = "", .component = "", .hold = "", .qos = "", .class_ = "", .machine = "", .quote = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct charge_args, account), 0, 0},
        {"user", 'u', CLI_OPT_STRING, offsetof (struct charge_args, user), 0, 0},
        {"site", 0, CLI_OPT_STRING, offsetof (struct charge_args, site), 0, 0},
        {"site-job", 0, CLI_OPT_STRING, offsetof (struct charge_args, job), 0, 0},
        {"job", 0, CLI_OPT_STRING, offsetof (struct charge_args, grid_job), 0, 0},
        {"component", 0, CLI_OPT_STRING, offsetof (struct charge_args, component), 0, 0},
        {"incarnation", 0, CLI_OPT_INT, offsetof (struct charge_args, incarnation), 0, UINT32_MAX},
        {"hold", 0, CLI_OPT_STRING, offsetof (struct charge_args, hold), 0, 0},
        {"procs", 'n', CLI_OPT_COUNT, offsetof (struct charge_args, procs), 1, 100000000},
        {"start", 0, CLI_OPT_PAST, offsetof (struct charge_args, start), 0, 0},
        {"end", 0, CLI_OPT_PAST, offsetof (struct charge_args, end), 0, 0},
        {"cpu", 0, CLI_OPT_DURATION, offsetof (struct charge_args, cpu), 0, 0},
        {"qos", 'q', CLI_OPT_STRING, offsetof (struct charge_args, qos), 0, 0},
        {"class", 'c', CLI_OPT_STRING, offsetof (struct charge_args, class_), 0, 0},
        {"machine", 0, CLI_OPT_STRING, offsetof (struct charge_args, machine), 0, 0},
        {"quote", 0, CLI_OPT_STRING, offsetof (struct charge_args, quote), 0, 0},
        {"node-type", 0, CLI_OPT_LIST, offsetof (struct charge_args, nodes), 0, 0},
        {"partial", 0, CLI_OPT_FLAG, offsetof (struct charge_args, partial), 0, 0},
        {"failed", 0, CLI_OPT_FLAG, offsetof (struct charge_args, failed), 0, 0},
        {0}};
    struct cli_operands o;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count || !args.site || !args.job || !args.procs || !args.start || !args.end)
        return cli_usage (argv[0], "name --site, --site-job, -n PROCS, --start and --end");
    if (!args.hold[0] == !args.user || !args.user != !args.account)
        return cli_usage (argv[0], "name a hold with --hold, or who pays with --user and -A");
    if (!charge_times (&args, &rc))
        return rc;
    return charge_send (ctx, &args);
}
