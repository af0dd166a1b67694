/* nui funder, grant, split, role. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

int cmd_funder (struct cli_context *ctx, int argc, char **argv)
{
    static const struct table_column columns[] = {{"name", "Funder", TABLE_TEXT, 0},
                                                  {"detail", "Detail", TABLE_TEXT, 0}};
    struct args {
        const char *description;
    } args = {.description = ""};
    static const struct cli_option options[] = {
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0}, {0}};
    struct cli_operands o;
    char sentence[256];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    if (strcmp (verb, "list") == 0 && o.count == 1 && !args.description[0])
        return bank_list (ctx, argv[0], "funder", columns, 2);
    if (strcmp (verb, "create") != 0 || o.count != 2)
        return cli_usage (argv[0], "say create NAME [--description TEXT] or list");
    Nui__Bank__V1__FunderCreateRequest request = NUI__BANK__V1__FUNDER_CREATE_REQUEST__INIT;
    request.key = bank_key (key);
    request.name = o.item[1];
    request.description = bank_text (args.description);
    snprintf (sentence, sizeof (sentence), "created funder %.64s", o.item[1]);
    return bank_do (ctx, argv[0], "FunderCreate", &request.base, sentence);
}

/* ---- grant ---- */

struct grant_args {
    const char *funder, *reference, *account, *description, *html, *pdf, *reason;
    struct cli_list scope;
    time_us start, end;
    struct cli_period period;
    bool again;
};

static int grant_create (struct cli_context *ctx, const struct grant_args *args, const char *text)
{
    struct bank_scopes scopes;
    struct err err = {0};
    credit_micro amount;
    char sentence[256], number[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    int rc;
    if (!bank_amount ("grant", text, &amount, &rc))
        return rc;
    if (bank_scopes (ctx, &args->scope, &scopes, &err) < 0)
        return cli_usage ("grant", "%s", err.text);
    Nui__Bank__V1__GrantRequest request = NUI__BANK__V1__GRANT_REQUEST__INIT;
    request.key = bank_key (key);
    request.funder = bank_text (args->funder);
    request.again = args->again;
    request.reference = bank_text (args->reference);
    request.account = bank_text (args->account);
    request.amount_micro = amount;
    request.valid_from_us = args->start;
    request.valid_to_us = args->end;
    request.description = bank_text (args->description);
    request.n_scopes = scopes.count;
    request.scopes = scopes.message;
    snprintf (sentence, sizeof (sentence), "granted %s credits to %.64s",
              credit_format (amount, number), args->account);
    return bank_do (ctx, "grant", "Grant", &request.base, sentence);
}

static int grant_list (struct cli_context *ctx, const char *funder)
{
    static const struct table_column columns[] = {
        {"grant", "Grant", TABLE_TEXT, 0},         {"funder", "Funder", TABLE_TEXT, 0},
        {"reference", "Reference", TABLE_TEXT, 0}, {"account", "Account", TABLE_TEXT, 0},
        {"granted", "Granted", TABLE_CREDITS, 0},  {"settled", "Settled", TABLE_CREDITS, 0},
        {"held", "InFlight", TABLE_CREDITS, 0},    {"left", "Left", TABLE_CREDITS, 0},
        {"ended", "Ended", TABLE_CREDITS, 0},      {"valid_from", "From", TABLE_TIME, 0},
        {"valid_to", "To", TABLE_TIME, 0},         {"accounts", "Accounts", TABLE_INT, 0},
        {"frozen", "Frozen", TABLE_TEXT, 0},       {"revoked", "Revoked", TABLE_TEXT, 0}};
    struct err err = {0};
    Nui__Bank__V1__GrantListRequest request = NUI__BANK__V1__GRANT_LIST_REQUEST__INIT;
    request.funder = bank_text (funder);
    ProtobufCMessage *message = bank_call (ctx, "GrantList", &request.base, &err);
    if (!message)
        return cli_fail ("grant", &err);
    const Nui__Bank__V1__GrantListReply *reply = (Nui__Bank__V1__GrantListReply *)message;
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    for (size_t i = 0; i < reply->n_grants; i++) {
        const Nui__Bank__V1__GrantItem *g = reply->grants[i];
        table_text (table, g->grant_id);
        table_text (table, g->funder);
        table_text (table, g->reference);
        table_text (table, g->account);
        table_credits_wide (table, g->granted_micro, g->granted_wide);
        table_credits_wide (table, g->settled_micro, g->settled_wide);
        table_credits_wide (table, g->held_micro, g->held_wide);
        table_credits_wide (table, g->left_micro, g->left_wide);
        table_credits_wide (table, g->ended_micro, g->ended_wide);
        table_time (table, g->valid_from_us);
        table_time (table, g->valid_to_us ? g->valid_to_us : TIME_US_NONE);
        table_int (table, g->accounts);
        table_text (table, g->frozen[0] ? g->frozen : NULL);
        table_text (table, g->revoked[0] ? g->revoked : NULL);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

static int grant_statement (struct cli_context *ctx, const struct grant_args *args,
                            const char *grant)
{
    struct err err = {0};
    Nui__Bank__V1__GrantStatementRequest request = NUI__BANK__V1__GRANT_STATEMENT_REQUEST__INIT;
    request.grant_id = bank_text (grant);
    request.from_us = args->period.from;
    request.to_us = args->period.to;
    ProtobufCMessage *message = bank_call (ctx, "GrantStatement", &request.base, &err);
    if (!message)
        return cli_fail ("grant", &err);
    const Nui__Bank__V1__GrantStatementReply *st = (Nui__Bank__V1__GrantStatementReply *)message;
    int rc = CLI_OK;
    if (args->html)
        rc = funder_page (st, args->html);
    if (args->pdf && rc == CLI_OK)
        rc = funder_pdf (st, args->pdf);
    if (!args->html && !args->pdf)
        rc = funder_table (ctx, st);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

static int grant_extend (struct cli_context *ctx, const struct grant_args *args, const char *grant)
{
    char sentence[256], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    Nui__Bank__V1__GrantExtendRequest request = NUI__BANK__V1__GRANT_EXTEND_REQUEST__INIT;
    request.key = bank_key (key);
    request.grant_id = bank_text (grant);
    request.valid_to_us = args->end;
    request.reason = bank_text (args->reason);
    snprintf (sentence, sizeof (sentence), "%.64s ends %s now", grant, time_format_iso (args->end, text));
    return bank_do (ctx, "grant", "GrantExtend", &request.base, sentence);
}

static int grant_amend (struct cli_context *ctx, const struct grant_args *args, const char *grant, const char *words)
{
    char sentence[256], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    credit_micro amount;
    int rc;
    if (!bank_amount ("grant", words, &amount, &rc))
        return rc;
    Nui__Bank__V1__GrantAmendRequest request = NUI__BANK__V1__GRANT_AMEND_REQUEST__INIT;
    request.key = bank_key (key);
    request.grant_id = bank_text (grant);
    request.amount_micro = amount;
    request.reason = bank_text (args->reason);
    snprintf (sentence, sizeof (sentence), "%.64s is of %s credits now", grant, credit_format (amount, text));
    return bank_do (ctx, "grant", "GrantAmend", &request.base, sentence);
}

static int grant_revoke (struct cli_context *ctx, const struct grant_args *args, const char *grant)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__GrantRevokeRequest request = NUI__BANK__V1__GRANT_REVOKE_REQUEST__INIT;
    request.key = bank_key (key);
    request.grant_id = bank_text (grant);
    request.reason = bank_text (args->reason);
    snprintf (sentence, sizeof (sentence), "%.64s is revoked: what jobs hold pays for them, the rest went back", grant);
    return bank_do (ctx, "grant", "GrantRevoke", &request.base, sentence);
}

/* extend, amend, revoke; -1: none of them. */
static int grant_change (struct cli_context *ctx, const struct grant_args *args, const struct cli_operands *o)
{
    const char *verb = o->count ? o->item[0] : "";
    bool only_end = !args->reference && !args->account && !args->scope.count && !args->start && !args->again &&
                    !args->description[0] && !args->funder[0];
    if (!args->reason || !only_end)
        return -1;
    if (strcmp (verb, "extend") == 0 && o->count == 2 && args->end)
        return grant_extend (ctx, args, o->item[1]);
    if (strcmp (verb, "amend") == 0 && o->count == 3 && !args->end)
        return grant_amend (ctx, args, o->item[1], o->item[2]);
    if (strcmp (verb, "revoke") == 0 && o->count == 2 && !args->end)
        return grant_revoke (ctx, args, o->item[1]);
    return -1;
}

int cmd_grant (struct cli_context *ctx, int argc, char **argv)
{
    struct grant_args args = {.funder = "", .description = ""};
    static const struct cli_option options[] = {
        {"funder", 0, CLI_OPT_STRING, offsetof (struct grant_args, funder), 0, 0},
        {"reference", 0, CLI_OPT_STRING, offsetof (struct grant_args, reference), 0, 0},
        {"account", 'A', CLI_OPT_STRING, offsetof (struct grant_args, account), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct grant_args, description), 0, 0},
        {"reason", 0, CLI_OPT_STRING, offsetof (struct grant_args, reason), 0, 0},
        {"again", 0, CLI_OPT_FLAG, offsetof (struct grant_args, again), 0, 0},
        {"for", 0, CLI_OPT_LIST, offsetof (struct grant_args, scope), 0, 0},
        {"start", 0, CLI_OPT_TIME, offsetof (struct grant_args, start), 0, 0},
        {"end", 0, CLI_OPT_TIME, offsetof (struct grant_args, end), 0, 0},
        {"from", 0, CLI_OPT_PAST, offsetof (struct grant_args, period.from), 0, 0},
        {"to", 0, CLI_OPT_PAST, offsetof (struct grant_args, period.to), 0, 0},
        {"period", 0, CLI_OPT_PERIOD, offsetof (struct grant_args, period), 0, 0},
        {"html", 0, CLI_OPT_STRING, offsetof (struct grant_args, html), 0, 0},
        {"pdf", 0, CLI_OPT_STRING, offsetof (struct grant_args, pdf), 0, 0},
        {0}};
    struct cli_operands o;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    bool making = args.reference || args.account || args.scope.count || args.start || args.end || args.again ||
                  args.description[0];
    bool reporting = args.period.from || args.period.to || args.html || args.pdf;
    rc = reporting ? -1 : grant_change (ctx, &args, &o);
    if (rc >= 0)
        return rc;
    reporting |= args.reason != NULL;
    if (strcmp (verb, "list") == 0 && o.count == 1 && !making && !reporting)
        return grant_list (ctx, args.funder);
    if (strcmp (verb, "create") == 0 && o.count == 2 && args.reference && args.account &&
        !reporting)
        return grant_create (ctx, &args, o.item[1]);
    if (strcmp (verb, "statement") == 0 && o.count == 2 && !making && !args.funder[0] && !args.reason)
        return grant_statement (ctx, &args, o.item[1]);
    return cli_usage (argv[0],
                      "say create AMOUNT -A ACCOUNT --reference TEXT [--funder NAME], list "
                      "[--funder NAME], statement GRANT [--html FILE] [--pdf FILE], and with --reason TEXT: "
                      "extend GRANT --end TIME, amend GRANT AMOUNT or revoke GRANT");
}

/* ---- split ---- */

static int split_back (struct cli_context *ctx, const char *allocation, const char *words, const char *description)
{
    char sentence[512];
    uint8_t key[16];
    credit_micro amount = 0;
    int rc;
    if (words && !bank_amount ("split", words, &amount, &rc))
        return rc;
    Nui__Bank__V1__SplitBackRequest request = NUI__BANK__V1__SPLIT_BACK_REQUEST__INIT;
    request.key = bank_key (key);
    request.allocation_id = bank_text (allocation);
    request.amount_micro = amount;
    request.description = bank_text (description);
    snprintf (sentence, sizeof (sentence), "took back %.64s of %.64s", words ? words : "what is not used", allocation);
    return bank_do (ctx, "split", "SplitBack", &request.base, sentence);
}

int cmd_split (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *from, *to, *allocation, *description;
        time_us start, end;
    } args = {.allocation = "", .description = ""};
    static const struct cli_option options[] = {
        {"from", 0, CLI_OPT_STRING, offsetof (struct args, from), 0, 0},
        {"to", 0, CLI_OPT_STRING, offsetof (struct args, to), 0, 0},
        {"allocation", 0, CLI_OPT_STRING, offsetof (struct args, allocation), 0, 0},
        {"start", 0, CLI_OPT_TIME, offsetof (struct args, start), 0, 0},
        {"end", 0, CLI_OPT_TIME, offsetof (struct args, end), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0},
        {0}};
    struct cli_operands o;
    credit_micro amount;
    char sentence[512], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if ((o.count == 2 || o.count == 3) && strcmp (o.item[0], "back") == 0 && !args.from && !args.to &&
        !args.allocation[0] && !args.start && !args.end)
        return split_back (ctx, o.item[1], o.count == 3 ? o.item[2] : NULL, args.description);
    if (o.count != 1 || !args.from || !args.to)
        return cli_usage (argv[0], "say nui split --from ACCOUNT --to ACCOUNT AMOUNT or back ALLOCATION [AMOUNT]");
    if (!bank_amount (argv[0], o.item[0], &amount, &rc))
        return rc;
    Nui__Bank__V1__SplitRequest request = NUI__BANK__V1__SPLIT_REQUEST__INIT;
    request.key = bank_key (key);
    request.from_account = bank_text (args.from);
    request.to_account = bank_text (args.to);
    request.amount_micro = amount;
    request.allocation_id = bank_text (args.allocation);
    request.valid_from_us = args.start;
    request.valid_to_us = args.end;
    request.description = bank_text (args.description);
    snprintf (sentence, sizeof (sentence), "gave %s credits of %.64s to %.64s",
              credit_format (amount, text), args.from, args.to);
    return bank_do (ctx, argv[0], "Split", &request.base, sentence);
}

/* ---- role ---- */

static int role_list (struct cli_context *ctx)
{
    static const struct table_column columns[] = {{"identity", "Identity", TABLE_TEXT, 0},
                                                  {"role", "Role", TABLE_TEXT, 0}};
    struct err err = {0};
    Nui__Bank__V1__RoleListRequest request = NUI__BANK__V1__ROLE_LIST_REQUEST__INIT;
    ProtobufCMessage *message = bank_call (ctx, "RoleList", &request.base, &err);
    if (!message)
        return cli_fail ("role", &err);
    const Nui__Bank__V1__RoleListReply *reply = (Nui__Bank__V1__RoleListReply *)message;
    struct table *table = table_create (columns, 2);
    for (size_t i = 0; i < reply->n_roles; i++) {
        table_text (table, reply->roles[i]->identity);
        table_text (table, reply->roles[i]->role);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

int cmd_role (struct cli_context *ctx, int argc, char **argv)
{
    static const struct cli_option options[] = {{0}};
    struct cli_operands o;
    struct err err = {0};
    char uri[PRINCIPAL_URI_MAX], sentence[512];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, NULL, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    bool revoke = strcmp (verb, "revoke") == 0;
    if (strcmp (verb, "list") == 0 && o.count == 1)
        return role_list (ctx);
    if ((!revoke && strcmp (verb, "grant") != 0) || o.count != 3)
        return cli_usage (argv[0], "say grant USER manager|auditor, revoke USER manager|auditor or "
                                   "list");
    if (bank_identity (ctx, o.item[1], uri, &err) < 0)
        return cli_fail (argv[0], &err);
    Nui__Bank__V1__RoleSetRequest request = NUI__BANK__V1__ROLE_SET_REQUEST__INIT;
    request.key = bank_key (key);
    request.identity = uri;
    request.role = o.item[2];
    request.remove = revoke;
    snprintf (sentence, sizeof (sentence), "%s %s %.32s of the bank", uri,
              revoke ? "is no longer" : "is", o.item[2]);
    return bank_do (ctx, argv[0], "RoleSet", &request.base, sentence);
}
