/* nui usage, hold. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

enum { BY_MAX = 4 };

static bool named (char *const *by, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp (by[i], name) == 0)
            return true;
    return false;
}

static int usage_print (struct cli_context *ctx, char *const *by, int count,
                        const Nui__Bank__V1__UsageReply *reply)
{
    static const struct table_column key[] = {{"user", "User", TABLE_TEXT, 0},
                                              {"project", "Project", TABLE_TEXT, 0},
                                              {"site", "Site", TABLE_TEXT, 0},
                                              {"account", "Account", TABLE_TEXT, 0}};
    static const struct table_column sum[] = {{"jobs", "Jobs", TABLE_INT, 0},
                                              {"charged", "Charged", TABLE_CREDITS, 0},
                                              {"refunded", "Refunded", TABLE_CREDITS, 0},
                                              {"net", "Net", TABLE_CREDITS, 0}};
    struct table_column columns[8];
    size_t n = 0;
    for (int k = 0; k < 4; k++)
        if (named (by, count, key[k].key))
            columns[n++] = key[k];
    for (int k = 0; k < 4; k++)
        columns[n++] = sum[k];
    struct table *table = table_create (columns, n);
    for (size_t i = 0; i < reply->n_lines; i++) {
        const Nui__Bank__V1__UsageLine *line = reply->lines[i];
        const char *value[] = {cli_format (ctx) == CLI_TABLE ? bank_short_name (line->user)
                                                             : line->user,
                               line->project, line->site, line->account};
        for (int k = 0; k < 4; k++)
            if (named (by, count, key[k].key))
                table_text (table, value[k]);
        table_int (table, (int64_t)line->jobs);
        table_credits (table, line->charged_micro);
        table_credits (table, line->refunded_micro);
        table_credits (table, line->charged_micro - line->refunded_micro);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

int cmd_usage (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account, *by;
        time_us from, to;
    } args = {.account = "", .by = "account,user"};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"by", 0, CLI_OPT_STRING, offsetof (struct args, by), 0, 0},
        {"from", 0, CLI_OPT_TIME, offsetof (struct args, from), 0, 0},
        {"to", 0, CLI_OPT_TIME, offsetof (struct args, to), 0, 0},
        {0}};
    struct cli_operands o;
    struct err err = {0};
    char list[64] = "", *by[BY_MAX];
    int rc, count = -1;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count)
        return cli_usage (argv[0], "'%s' is one word too many", o.item[0]);
    if (strlen (args.by) < sizeof (list))
        count = bank_split (memcpy (list, args.by, strlen (args.by) + 1), by, BY_MAX);
    for (int i = 0; i < count; i++)
        if (strcmp (by[i], "user") != 0 && strcmp (by[i], "project") != 0 &&
            strcmp (by[i], "site") != 0 && strcmp (by[i], "account") != 0)
            count = -1;
    if (count < 1)
        return cli_usage (argv[0], "--by takes one or more of user,project,site,account");
    Nui__Bank__V1__UsageRequest request = NUI__BANK__V1__USAGE_REQUEST__INIT;
    request.account = bank_text (args.account);
    request.from_us = args.from;
    request.to_us = args.to;
    request.n_by = (size_t)count;
    request.by = by;
    ProtobufCMessage *reply = bank_call (ctx, "Usage", &request.base, &err);
    if (!reply)
        return cli_fail (argv[0], &err);
    rc = usage_print (ctx, by, count, (Nui__Bank__V1__UsageReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

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

int cmd_hold (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account;
        bool stale;
    } args = {.account = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"stale", 0, CLI_OPT_FLAG, offsetof (struct args, stale), 0, 0},
        {0}};
    struct cli_operands o;
    struct err err = {0};
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count != 1 || strcmp (o.item[0], "list") != 0)
        return cli_usage (argv[0], "say list [-A ACCOUNT] [--stale]");
    Nui__Bank__V1__HoldListRequest request = NUI__BANK__V1__HOLD_LIST_REQUEST__INIT;
    request.account = bank_text (args.account);
    request.stale = args.stale;
    ProtobufCMessage *reply = bank_call (ctx, "HoldList", &request.base, &err);
    if (!reply)
        return cli_fail (argv[0], &err);
    rc = hold_print (ctx, (Nui__Bank__V1__HoldListReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}
