/* nui balance, statement. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

/* ---- balance ---- */

static const struct table_column allocation_columns[] = {
    {"account", "Account", TABLE_TEXT},
    {"allocation", "Allocation", TABLE_TEXT, .from = "id"},
    {"granted", "Granted", TABLE_CREDITS},
    {"settled", "Settled", TABLE_CREDITS},
    {"held", "InFlight", TABLE_CREDITS},
    {"available", "Available", TABLE_CREDITS},
    {"valid_from", "From", TABLE_TIME},
    {"valid_to", "To", TABLE_TIME},
    {"description", "Description", TABLE_TEXT},
    {"credit_limit", "Credit", TABLE_CREDITS},
    {"frozen", "Frozen", TABLE_TEXT}};

int balance_allocations (struct cli_context *ctx, const struct cli_said *said)
{
    int rc = CLI_OK;
    ProtobufCMessage *request = cli_request (ctx, said, &rc);
    ProtobufCMessage *message = request ? cli_answer (ctx, said, request, &rc) : NULL;
    if (!message)
        return rc;
    const Nui__Bank__V1__BalanceReply *reply = (Nui__Bank__V1__BalanceReply *)message;
    struct table *table = TABLE_CREATE (allocation_columns);
    for (size_t i = 0; i < reply->n_balances; i++)
        for (size_t k = 0; k < reply->balances[i]->n_allocations; k++)
            table_message (table, &reply->balances[i]->allocations[k]->base,
                           &reply->balances[i]->base);
    rc = table_print_done (table, ctx);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

static const struct table_column balance_columns[] = {
    {"account", "Account", TABLE_TEXT},        {"project", "Project", TABLE_TEXT},
    {"granted", "Granted", TABLE_CREDITS},     {"settled", "Settled", TABLE_CREDITS},
    {"held", "InFlight", TABLE_CREDITS},       {"available", "Available", TABLE_CREDITS},
    {"scheduled", "Scheduled", TABLE_CREDITS}, {"frozen", "Frozen", TABLE_TEXT}};

static const struct cli_option balance_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "this account only; else all you may see"},
    {"allocations", 'a', CLI_OPT_FLAG, NULL, "one line per allocation, with its validity"},
    {0}};

static const struct cli_form balance_forms[] = {
    {"[-A ACCOUNT]", .method = "Balance", CLI_COLUMNS (balance_columns)},
    {"--allocations [-A ACCOUNT]", balance_allocations, .method = "Balance"},
    {0}};

const struct cli_command balance_command = {
    .name = "balance",
    .group = CLI_USERS,
    .summary = "what my accounts have: granted, settled, in flight, available, scheduled",
    .forms = balance_forms,
    .options = balance_options,
    .service = &bank_service,
    .example = "nui balance -A phys --json",
};

/* ---- statement ---- */

/* Whose act it was, where it was one by hand. */
static void who_cell (struct table *table, const ProtobufCMessage *message)
{
    const char *who = ((const Nui__Bank__V1__StatementLine *)message)->who;
    table_text (table, strstr (who, "/operator/") ? who : bank_short_name (who));
}

static const struct table_column line_columns[] = {
    {"time", "Time", TABLE_TIME, .from = "at"},
    {"op", "Op", TABLE_INT},
    {"kind", "Kind", TABLE_TEXT},
    {"job", "Job", TABLE_TEXT},
    {"site", "Site", TABLE_TEXT},
    {"posted", "Posted", TABLE_CREDITS, .from = "amount"},
    {"held", "Held", TABLE_CREDITS},
    {"who", "Who", TABLE_TEXT, .cell = who_cell},
    {"description", "Description", TABLE_TEXT}};

/* What stood before the first line, or after the last. */
static void frame_row (struct table *table, const char *kind, time_us at, credit_micro posted,
                       const char *posted_wide, credit_micro held, const char *held_wide)
{
    table_time (table, at ? at : TIME_US_NONE);
    table_null (table);
    table_text (table, kind);
    table_text (table, "");
    table_text (table, "");
    table_credits_wide (table, posted, posted_wide);
    table_credits_wide (table, held, held_wide);
    table_text (table, "");
    table_text (table, "");
    table_end_row (table);
}

static struct table *statement_table (const Nui__Bank__V1__StatementReply *st, bool framed)
{
    struct table *table = TABLE_CREATE (line_columns);
    if (framed)
        frame_row (table, "opening", st->from_us, st->opening_posted_micro, st->opening_posted_wide,
                   st->opening_held_micro, st->opening_held_wide);
    for (size_t i = 0; i < st->n_lines; i++)
        TABLE_ROW (table, st->lines[i]);
    if (framed)
        frame_row (table, "closing", st->to_us, st->closing_posted_micro, st->closing_posted_wide,
                   st->closing_held_micro, st->closing_held_wide);
    return table;
}

static const struct table_column sums_columns[] = {{"account", "Account", TABLE_TEXT},
                                                   {"from", "From", TABLE_TIME},
                                                   {"to", "To", TABLE_TIME},
                                                   {"opening_posted", "Opening", TABLE_CREDITS},
                                                   {"opening_held", "Held", TABLE_CREDITS},
                                                   {"closing_posted", "Closing", TABLE_CREDITS},
                                                   {"closing_held", "Held", TABLE_CREDITS},
                                                   {"granted", "Granted", TABLE_CREDITS},
                                                   {"charged", "Charged", TABLE_CREDITS},
                                                   {"available", "Available", TABLE_CREDITS}};

static void statement_json (const Nui__Bank__V1__StatementReply *st, struct strbuf *out)
{
    struct jsonout j = jsonout_make (out);
    struct table *lines = statement_table (st, false), *sums = TABLE_CREATE (sums_columns);
    TABLE_ROW (sums, st);
    jsonout_object (&j);
    table_to_json_members (sums, 0, &j);
    jsonout_key (&j, "lines");
    table_to_json (lines, &j);
    jsonout_end (&j);
    table_destroy (sums);
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
    table_to_text (table, cli_look (ctx), out);
    table_destroy (table);
    if (cli_noheader (ctx))
        return;
    strbuf_printf (out, "\nAccount %s: granted %s, charged %s in this period.\n", st->account,
                   sum_text (st->granted_micro, st->granted_wide, a),
                   sum_text (st->charged_micro, st->charged_wide, b));
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

static int statement_run (struct cli_context *ctx, const struct cli_said *said)
{
    int rc = CLI_OK;
    Nui__Bank__V1__StatementRequest *request =
        (Nui__Bank__V1__StatementRequest *)cli_request (ctx, said, &rc);
    if (!request || !bank_account (ctx, said, &request->account, &rc))
        return rc;
    ProtobufCMessage *reply = cli_answer (ctx, said, &request->base, &rc);
    if (!reply)
        return rc;
    rc = statement_print (ctx, (Nui__Bank__V1__StatementReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static const struct cli_option statement_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "else ACCOUNT of nui.cfg"},
    BANK_PERIOD_OPTIONS,
    {0}};

static const struct cli_form statement_forms[] = {
    {"[-A ACCOUNT] [--from TIME] [--to TIME | --period PERIOD]", statement_run,
     .method = "Statement"},
    {0}};

const struct cli_command statement_command = {
    .name = "statement",
    .group = CLI_USERS,
    .summary = "what happened on an account over a period",
    .forms = statement_forms,
    .options = statement_options,
    .service = &bank_service,
    .example = "nui statement -A phys --from 2026-11-01T00:00",
};
