/* nui balance, statement, deposit. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

/* ---- balance ---- */

static int balance_allocations (struct cli_context *ctx, const Nui__Bank__V1__BalanceReply *reply)
{
    static const struct table_column columns[] = {{"account", "Account", TABLE_TEXT, 0},
                                                  {"allocation", "Allocation", TABLE_TEXT, 0},
                                                  {"granted", "Granted", TABLE_CREDITS, 0},
                                                  {"settled", "Settled", TABLE_CREDITS, 0},
                                                  {"held", "InFlight", TABLE_CREDITS, 0},
                                                  {"available", "Available", TABLE_CREDITS, 0},
                                                  {"valid_from", "From", TABLE_TIME, 0},
                                                  {"valid_to", "To", TABLE_TIME, 0},
                                                  {"description", "Description", TABLE_TEXT, 0},
                                                  {"credit_limit", "Credit", TABLE_CREDITS, 0},
                                                  {"frozen", "Frozen", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    for (size_t i = 0; i < reply->n_balances; i++)
        for (size_t k = 0; k < reply->balances[i]->n_allocations; k++) {
            const Nui__Bank__V1__Allocation *a = reply->balances[i]->allocations[k];
            table_text (table, reply->balances[i]->account);
            table_text (table, a->id);
            table_credits (table, a->granted_micro);
            table_credits (table, a->settled_micro);
            table_credits (table, a->held_micro);
            table_credits (table, a->available_micro);
            table_time (table, a->valid_from_us);
            table_time (table, a->valid_to_us ? a->valid_to_us : TIME_US_NONE);
            table_text (table, a->description);
            table_credits (table, a->credit_limit_micro);
            table_text (table, a->frozen[0] ? a->frozen : NULL);
            table_end_row (table);
        }
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

static int balance_accounts (struct cli_context *ctx, const Nui__Bank__V1__BalanceReply *reply)
{
    static const struct table_column columns[] = {
        {"account", "Account", TABLE_TEXT, 0},       {"project", "Project", TABLE_TEXT, 0},
        {"granted", "Granted", TABLE_CREDITS, 0},    {"settled", "Settled", TABLE_CREDITS, 0},
        {"held", "InFlight", TABLE_CREDITS, 0},      {"available", "Available", TABLE_CREDITS, 0},
        {"scheduled", "Scheduled", TABLE_CREDITS, 0}, {"frozen", "Frozen", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    for (size_t i = 0; i < reply->n_balances; i++) {
        const Nui__Bank__V1__Balance *b = reply->balances[i];
        table_text (table, b->account);
        table_text (table, b->project);
        table_credits_wide (table, b->granted_micro, b->granted_wide);
        table_credits_wide (table, b->settled_micro, b->settled_wide);
        table_credits_wide (table, b->held_micro, b->held_wide);
        table_credits_wide (table, b->available_micro, b->available_wide);
        table_credits_wide (table, b->scheduled_micro, b->scheduled_wide);
        table_text (table, b->frozen[0] ? b->frozen : NULL);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

int balance_show (struct cli_context *ctx, const char *command, const char *account,
                  bool allocations)
{
    struct err err = {0};
    Nui__Bank__V1__BalanceRequest request = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    request.account = bank_text (account ? account : "");
    ProtobufCMessage *reply = bank_call (ctx, "Balance", &request.base, &err);
    if (!reply)
        return cli_fail (command, &err);
    int rc = allocations ? balance_allocations (ctx, (Nui__Bank__V1__BalanceReply *)reply)
                         : balance_accounts (ctx, (Nui__Bank__V1__BalanceReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

int cmd_balance (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account;
        bool allocations;
    } args = {0};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"allocations", 'a', CLI_OPT_FLAG, offsetof (struct args, allocations), 0, 0},
        {0}};
    struct cli_operands operands;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &operands, &rc))
        return rc;
    if (operands.count)
        return cli_usage (argv[0], "'%s' is one word too many", operands.item[0]);
    return balance_show (ctx, argv[0], args.account, args.allocations);
}

/* ---- statement ---- */

static struct table *statement_table (const Nui__Bank__V1__StatementReply *st, bool framed)
{
    static const struct table_column columns[] = {{"time", "Time", TABLE_TIME, 0},
                                                  {"op", "Op", TABLE_INT, 0},
                                                  {"kind", "Kind", TABLE_TEXT, 0},
                                                  {"job", "Job", TABLE_TEXT, 0},
                                                  {"site", "Site", TABLE_TEXT, 0},
                                                  {"posted", "Posted", TABLE_CREDITS, 0},
                                                  {"held", "Held", TABLE_CREDITS, 0},
                                                  {"who", "Who", TABLE_TEXT, 0},
                                                  {"description", "Description", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    for (size_t i = 0; i < st->n_lines + 2; i++) {
        bool opening = i == 0, closing = i == st->n_lines + 1;
        const Nui__Bank__V1__StatementLine *line = opening || closing ? NULL : st->lines[i - 1];
        if (!line && !framed)
            continue;
        table_time (table, line      ? line->at_us
                           : opening ? (st->from_us ? st->from_us : TIME_US_NONE)
                                     : st->to_us);
        if (line)
            table_int (table, (int64_t)line->op_id);
        else
            table_null (table);
        table_text (table, line ? line->kind : opening ? "opening" : "closing");
        table_text (table, line ? line->job : "");
        table_text (table, line ? line->site : "");
        if (line) {
            table_credits_wide (table, line->amount_micro, line->amount_wide);
            table_credits_wide (table, line->held_micro, line->held_wide);
        } else if (opening) {
            table_credits_wide (table, st->opening_posted_micro, st->opening_posted_wide);
            table_credits_wide (table, st->opening_held_micro, st->opening_held_wide);
        } else {
            table_credits_wide (table, st->closing_posted_micro, st->closing_posted_wide);
            table_credits_wide (table, st->closing_held_micro, st->closing_held_wide);
        }
        /* Whose act it was, where it was one by hand. */
        table_text (table, !line ? "" : strstr (line->who, "/operator/") ? line->who : bank_short_name (line->who));
        table_text (table, line ? line->description : "");
        table_end_row (table);
    }
    return table;
}

static void statement_json (const Nui__Bank__V1__StatementReply *st, struct strbuf *out)
{
    struct jsonout j = jsonout_make (out);
    struct table *lines = statement_table (st, false);
    jsonout_object (&j);
    jsonout_key (&j, "account");
    jsonout_text (&j, st->account);
    jsonout_key (&j, "from");
    jsonout_time (&j, st->from_us ? st->from_us : TIME_US_NONE);
    jsonout_key (&j, "to");
    jsonout_time (&j, st->to_us);
    jsonout_key (&j, "opening_posted");
    jsonout_credits_wide (&j, st->opening_posted_micro, st->opening_posted_wide);
    jsonout_key (&j, "opening_held");
    jsonout_credits_wide (&j, st->opening_held_micro, st->opening_held_wide);
    jsonout_key (&j, "lines");
    table_to_json (lines, &j);
    jsonout_key (&j, "closing_posted");
    jsonout_credits_wide (&j, st->closing_posted_micro, st->closing_posted_wide);
    jsonout_key (&j, "closing_held");
    jsonout_credits_wide (&j, st->closing_held_micro, st->closing_held_wide);
    jsonout_key (&j, "granted");
    jsonout_credits_wide (&j, st->granted_micro, st->granted_wide);
    jsonout_key (&j, "charged");
    jsonout_credits_wide (&j, st->charged_micro, st->charged_wide);
    jsonout_key (&j, "available");
    jsonout_credits_wide (&j, st->available_micro, st->available_wide);
    jsonout_end (&j);
    table_destroy (lines);
}

static const char *sum_text (credit_micro amount, const char *wide, char buf[QUANTITY_TEXT_MAX])
{
    return wide[0] ? wide : credit_format (amount, buf);
}

static void statement_text (struct cli_context *ctx, const Nui__Bank__V1__StatementReply *st,
                            struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX], d[QUANTITY_TEXT_MAX];
    struct table *table = statement_table (st, true);
    table_to_text (table, cli_noheader (ctx), cli_colour (ctx), out);
    table_destroy (table);
    if (cli_noheader (ctx))
        return;
    strbuf_printf (out, "\nAccount %s: granted %s, charged %s in this period.\n", st->account,
                   sum_text (st->granted_micro, st->granted_wide, a), sum_text (st->charged_micro, st->charged_wide, b));
    strbuf_printf (out, "At the end: posted %s - held %s = available %s.\n",
                   sum_text (st->closing_posted_micro, st->closing_posted_wide, b),
                   sum_text (st->closing_held_micro, st->closing_held_wide, c),
                   sum_text (st->available_micro, st->available_wide, d));
}

static int statement_print (struct cli_context *ctx, const Nui__Bank__V1__StatementReply *st)
{
    struct strbuf out = STRBUF_INIT;
    switch (cli_format (ctx)) {
    case CLI_JSON:
        statement_json (st, &out);
        break;
    case CLI_CSV: {
        struct table *table = statement_table (st, true);
        table_to_csv (table, cli_noheader (ctx), &out);
        table_destroy (table);
        break;
    }
    default:
        statement_text (ctx, st, &out);
    }
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

int cmd_statement (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account;
        struct cli_period period;
    } args = {0};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"from", 0, CLI_OPT_PAST, offsetof (struct args, period.from), 0, 0},
        {"to", 0, CLI_OPT_PAST, offsetof (struct args, period.to), 0, 0},
        {"period", 0, CLI_OPT_PERIOD, offsetof (struct args, period), 0, 0},
        {0}};
    struct cli_operands operands;
    struct err err = {0};
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &operands, &rc))
        return rc;
    if (operands.count)
        return cli_usage (argv[0], "'%s' is one word too many", operands.item[0]);
    if (cli_config (ctx, &err) < 0)
        return cli_fail (argv[0], &err);
    if (!args.account)
        args.account = cli_account (ctx);
    if (!args.account)
        return cli_usage (argv[0], "name an account with -A");
    Nui__Bank__V1__StatementRequest request = NUI__BANK__V1__STATEMENT_REQUEST__INIT;
    request.account = bank_text (args.account);
    request.from_us = args.period.from;
    request.to_us = args.period.to;
    ProtobufCMessage *reply = bank_call (ctx, "Statement", &request.base, &err);
    if (!reply)
        return cli_fail (argv[0], &err);
    rc = statement_print (ctx, (Nui__Bank__V1__StatementReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

/* ---- deposit ---- */

int cmd_deposit (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account, *description, *grant, *reference;
        time_us start, end;
        struct cli_list scope;
        bool again;
    } args = {.description = "", .grant = "", .reference = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0},
        {"grant", 0, CLI_OPT_STRING, offsetof (struct args, grant), 0, 0},
        {"reference", 0, CLI_OPT_STRING, offsetof (struct args, reference), 0, 0},
        {"again", 0, CLI_OPT_FLAG, offsetof (struct args, again), 0, 0},
        {"for", 0, CLI_OPT_LIST, offsetof (struct args, scope), 0, 0},
        {"start", 0, CLI_OPT_TIME, offsetof (struct args, start), 0, 0},
        {"end", 0, CLI_OPT_TIME, offsetof (struct args, end), 0, 0},
        {0}};
    struct cli_operands operands;
    struct bank_scopes scopes;
    struct err err = {0};
    credit_micro amount;
    char sentence[256], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &operands, &rc))
        return rc;
    if (operands.count != 1 || !args.account || (args.again && !args.reference[0]))
        return cli_usage (argv[0], "say nui deposit -A ACCOUNT AMOUNT [--reference TEXT [--again]]");
    if (!bank_amount (argv[0], operands.item[0], &amount, &rc))
        return rc;
    if (bank_scopes (ctx, &args.scope, &scopes, &err) < 0)
        return cli_usage (argv[0], "%s", err.text);
    Nui__Bank__V1__DepositRequest request = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    request.key = bank_key (key);
    request.account = bank_text (args.account);
    request.amount_micro = amount;
    request.valid_from_us = args.start;
    request.valid_to_us = args.end;
    request.description = bank_text (args.description);
    request.grant_id = bank_text (args.grant);
    request.reference = bank_text (args.reference);
    request.again = args.again;
    request.n_scopes = scopes.count;
    request.scopes = scopes.message;
    snprintf (sentence, sizeof (sentence), "deposited %s credits to %s",
              credit_format (amount, text), args.account);
    return bank_do (ctx, argv[0], "Deposit", &request.base, sentence);
}
