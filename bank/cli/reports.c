/* nui usage. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

enum { KEYS = 9, PERIODS = 3, BY_MAX = KEYS + PERIODS };

/* A period has one column, whichever of the last three it is. */
static const char *const key_name[] = {"user", "project", "site", "account", "funder", "grant",
                                       "qos",  "machine", "day",  "week",    "month"};

/* Which column a word is for; -1: none. */
static int key_of (const char *word)
{
    for (int k = 0; k < KEYS + PERIODS - 1; k++)
        if (strcmp (word, key_name[k]) == 0)
            return k < KEYS - 1 ? k : KEYS - 1;
    return -1;
}

static const char *by_of (char *const *by, int count, int key)
{
    for (int i = 0; i < count; i++)
        if (key_of (by[i]) == key)
            return by[i];
    return NULL;
}

static int usage_print (struct cli_context *ctx, char *const *by, int count,
                        const Nui__Bank__V1__UsageReply *reply)
{
    static const struct table_column key[] = {
        {"user", "User", TABLE_TEXT, 0},     {"project", "Project", TABLE_TEXT, 0},
        {"site", "Site", TABLE_TEXT, 0},     {"account", "Account", TABLE_TEXT, 0},
        {"funder", "Funder", TABLE_TEXT, 0}, {"grant", "Grant", TABLE_TEXT, 0},
        {"qos", "QoS", TABLE_TEXT, 0},       {"machine", "Machine", TABLE_TEXT, 0},
        {"from", "From", TABLE_TEXT, 0}};
    static const struct table_column sum[] = {{"jobs", "Jobs", TABLE_INT, 0},
                                              {"charged", "Charged", TABLE_CREDITS, 0},
                                              {"refunded", "Refunded", TABLE_CREDITS, 0},
                                              {"net", "Net", TABLE_CREDITS, 0}};
    struct table_column columns[KEYS + 4];
    size_t n = 0;
    for (int k = 0; k < KEYS; k++)
        if (by_of (by, count, k))
            columns[n++] = key[k];
    for (int k = 0; k < 4; k++)
        columns[n++] = sum[k];
    struct table *table = table_create (columns, n);
    for (size_t i = 0; i < reply->n_lines; i++) {
        const Nui__Bank__V1__UsageLine *line = reply->lines[i];
        const char *value[] = {cli_format (ctx) == CLI_TABLE && !strstr (line->user, "/operator/")
                                   ? bank_short_name (line->user)
                                   : line->user,
                               line->project,
                               line->site,
                               line->account,
                               line->funder,
                               line->grant,
                               line->qos,
                               line->machine,
                               line->period};
        for (int k = 0; k < KEYS; k++)
            if (by_of (by, count, k))
                table_text (table, value[k]);
        table_int (table, (int64_t)line->jobs);
        credit_micro net = 0;
        if (!line->net_wide[0])
            __builtin_sub_overflow (line->charged_micro, line->refunded_micro, &net);
        table_credits_wide (table, line->charged_micro, line->charged_wide);
        table_credits_wide (table, line->refunded_micro, line->refunded_wide);
        table_credits_wide (table, net, line->net_wide);
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
        struct cli_period period;
    } args = {.account = "", .by = "account,user"};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"by", 0, CLI_OPT_STRING, offsetof (struct args, by), 0, 0},
        {"from", 0, CLI_OPT_PAST, offsetof (struct args, period.from), 0, 0},
        {"to", 0, CLI_OPT_PAST, offsetof (struct args, period.to), 0, 0},
        {"period", 0, CLI_OPT_PERIOD, offsetof (struct args, period), 0, 0},
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
        if (key_of (by[i]) < 0)
            count = -1;
    if (count < 1)
        return cli_usage (argv[0], "--by takes one or more of user,project,site,account,funder,"
                                   "grant,qos,machine, and one of day,week,month");
    Nui__Bank__V1__UsageRequest request = NUI__BANK__V1__USAGE_REQUEST__INIT;
    request.account = bank_text (args.account);
    request.from_us = args.period.from;
    request.to_us = args.period.to;
    request.n_by = (size_t)count;
    request.by = by;
    ProtobufCMessage *reply = bank_call (ctx, "Usage", &request.base, &err);
    if (!reply)
        return cli_fail (argv[0], &err);
    rc = usage_print (ctx, by, count, (Nui__Bank__V1__UsageReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}
