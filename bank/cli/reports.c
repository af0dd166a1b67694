/* nui usage. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/usageexport.h"
#include "bank/cli/util.h"

enum { KEYS = 10, PERIODS = 3, BY_MAX = KEYS + PERIODS };

/* A period has one column, whichever of the last three it is. */
static const char *const key_name[] = {"user", "project", "site", "account", "funder", "grant",
                                       "qos",  "machine", "job",  "day",     "week",   "month"};

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

static void net_cell (struct table *table, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__UsageLine *line = (const Nui__Bank__V1__UsageLine *)message;
    credit_micro net = 0;
    if (!line->net_wide[0])
        __builtin_sub_overflow (line->charged_micro, line->refunded_micro, &net);
    table_credits_wide (table, net, line->net_wide);
}

static void hours_cell (struct table *table, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__UsageLine *line = (const Nui__Bank__V1__UsageLine *)message;
    table_ppm (table, (line->proc_seconds * 10000 + 18) / 36);
}

static int usage_print (struct cli_context *ctx, char *const *by, int count,
                        const Nui__Bank__V1__UsageReply *reply)
{
    static const struct table_column key[] = {
        {"user", "User", TABLE_IDENTITY}, {"project", "Project", TABLE_TEXT},
        {"site", "Site", TABLE_TEXT},     {"account", "Account", TABLE_TEXT},
        {"funder", "Funder", TABLE_TEXT}, {"grant", "Grant", TABLE_TEXT},
        {"qos", "QoS", TABLE_TEXT},       {"machine", "Machine", TABLE_TEXT},
        {"job", "Job", TABLE_TEXT},       {"from", "From", TABLE_TEXT, .from = "period"}};
    static const struct table_column sum[] = {
        {"jobs", "Jobs", TABLE_INT},
        {"charged", "Charged", TABLE_CREDITS},
        {"refunded", "Refunded", TABLE_CREDITS},
        {"net", "Net", TABLE_CREDITS, .cell = net_cell},
        {"proc_hours", "ProcHours", TABLE_PPM, 2, .cell = hours_cell}};
    enum { SUMS = sizeof sum / sizeof *sum };
    struct table_column columns[KEYS + SUMS];
    uint32_t n = 0;
    for (int k = 0; k < KEYS; k++)
        if (by_of (by, count, k))
            columns[n++] = key[k];
    for (int k = 0; k < SUMS; k++)
        columns[n++] = sum[k];
    return table_show (ctx, columns, n, reply->lines, reply->n_lines);
}

static int usage_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *words = said_text (said, "by");
    char *by[BY_MAX];
    int rc,
        count = bank_split (arena_strdup (said->arena, words ? words : "account,user"), by, BY_MAX);
    for (int i = 0; i < count; i++)
        if (key_of (by[i]) < 0)
            count = -1;
    if (count < 1)
        return cli_usage ("usage", "--by takes one or more of user,project,site,account,funder,"
                                   "grant,qos,machine,job, and one of day,week,month");
    Nui__Bank__V1__UsageRequest *request =
        (Nui__Bank__V1__UsageRequest *)cli_request (ctx, said, &rc);
    if (!request)
        return rc;
    request->n_by = (size_t)count;
    request->by = by;
    ProtobufCMessage *reply = cli_answer (ctx, said, &request->base, &rc);
    if (!reply)
        return rc;
    rc = usage_print (ctx, by, count, (Nui__Bank__V1__UsageReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static const struct cli_option usage_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "of this account only; else all you may see"},
    {"by", 0, CLI_OPT_STRING, "KEYS",
     "one or more of user,project,site,account,funder,grant,qos,machine,job, and one of day,week,month (account,user)",
     .field = "-"},
    {"format", 0, CLI_OPT_STRING, "FORMAT",
     "each charge and refund for another system: apel, apel-summary, xdmod, access, csv, json",
     .field = "-"},
    {"site", 0, CLI_OPT_STRING, "SITE", "of this site only"},
    {"as", 0, CLI_OPT_STRING, "NAME", "the site's name there", .field = "-"},
    {"benchmark", 0, CLI_OPT_STRING, "TYPE=NUMBER",
     "of the site's processors: hepscore23, hepspec or si2k", .field = "-"},
    {"output", 'o', CLI_OPT_STRING, "FOLDER", "messages as files there; else to standard output",
     .field = "-"},
    BANK_PERIOD_OPTIONS,
    {0}};

static const struct cli_form usage_forms[] = {
    {"[-A ACCOUNT] [--by KEY,KEY] [--from TIME] [--to TIME | --period PERIOD]", usage_run,
     .method = "Usage"},
    {"--format FORMAT [-A ACCOUNT] [--site SITE] [--as NAME] [--benchmark TYPE=NUMBER] "
     "[-o FOLDER] [--from TIME] [--to TIME | --period PERIOD]",
     usage_export, .method = "UsageRecords"},
    {0}};

const struct cli_command usage_command = {
    .name = "usage",
    .group = CLI_USERS,
    .summary = "what was charged over a period, by user, project, site or account",
    .forms = usage_forms,
    .options = usage_options,
    .service = &bank_service,
    .example = "nui usage --by site --period 2026-11 --csv",
};
