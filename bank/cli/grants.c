/* nui grant, split: what funders give, and what is passed on of it. */
#include "bank/cli/util.h"

static int grant_statement (struct cli_context *ctx, const struct cli_said *said)
{
    const char *html = said_text (said, "html"), *pdf = said_text (said, "pdf");
    int rc = CLI_OK;
    ProtobufCMessage *request = cli_request (ctx, said, &rc);
    ProtobufCMessage *message = request ? cli_answer (ctx, said, request, &rc) : NULL;
    if (!message)
        return rc;
    const Nui__Bank__V1__GrantStatementReply *st = (Nui__Bank__V1__GrantStatementReply *)message;
    if (html)
        rc = funder_page (st, html);
    if (pdf && rc == CLI_OK)
        rc = funder_pdf (st, pdf);
    if (!html && !pdf)
        rc = funder_table (ctx, st);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

static const struct cli_option grant_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "who gets it; nui split passes parts on"},
    {"funder", 0, CLI_OPT_STRING, "NAME", "an agency's is its own"},
    {"reference", 0, CLI_OPT_STRING, "TEXT", "the funder's number or title"},
    {"again", 0, CLI_OPT_FLAG, NULL, "another grant of the same reference"},
    {"start", 0, CLI_OPT_TIME, "TIME", "when it begins to be valid (now)", .field = "valid_from"},
    {"end", 0, CLI_OPT_TIME, "TIME", "when it ends (never)", .field = "valid_to"},
    {"reason", 0, CLI_OPT_STRING, "TEXT", "why it ends later, is of another amount, or is no more"},
    BANK_SCOPE_OPTION,
    BANK_DESCRIPTION_OPTION,
    BANK_PERIOD_OPTIONS,
    {"html", 0, CLI_OPT_STRING, "FILE", "a page to be printed, with the burn-down as a plot"},
    {"pdf", 0, CLI_OPT_STRING, "FILE", "the same as PDF, by weasyprint"},
    {0}};

static const struct table_column grant_columns[] = {
    {"grant", "Grant", TABLE_TEXT},         {"funder", "Funder", TABLE_TEXT},
    {"reference", "Reference", TABLE_TEXT}, {"account", "Account", TABLE_TEXT},
    {"granted", "Granted", TABLE_CREDITS},  {"settled", "Settled", TABLE_CREDITS},
    {"held", "InFlight", TABLE_CREDITS},    {"left", "Left", TABLE_CREDITS},
    {"ended", "Ended", TABLE_CREDITS},      {"valid_from", "From", TABLE_TIME},
    {"valid_to", "To", TABLE_TIME},         {"accounts", "Accounts", TABLE_INT},
    {"frozen", "Frozen", TABLE_TEXT},       {"revoked", "Revoked", TABLE_TEXT}};

static const struct cli_form grant_forms[] = {
    {"create AMOUNT -A ACCOUNT --reference TEXT [--funder NAME] [--start TIME] [--end TIME] [--for KIND=NAME]… "
     "[--description TEXT] [--again]",
     .method = "Grant", .sentence = "granted {amount} credits to {account}"},
    {"list [--funder NAME]", .method = "GrantList", CLI_COLUMNS (grant_columns)},
    {"extend GRANT --end TIME --reason TEXT", .method = "GrantExtend",
     .sentence = "{grant} ends {valid_to} now"},
    {"amend GRANT AMOUNT --reason TEXT", .method = "GrantAmend",
     .sentence = "{grant} is of {amount} credits now"},
    {"revoke GRANT --reason TEXT", .method = "GrantRevoke",
     .sentence = "{grant} is revoked: what jobs hold pays for them, the rest went back"},
    {"statement GRANT [--from TIME] [--to TIME | --period PERIOD] [--html FILE] [--pdf FILE]",
     grant_statement, .method = "GrantStatement"},
    {0}};

const struct cli_command grant_command = {
    .name = "grant",
    .group = CLI_BANK,
    .summary = "grants of funders, and how they burn down",
    .forms = grant_forms,
    .options = grant_options,
    .service = &bank_service,
    .example = "nui grant statement grant.1 --from 2026-01-01T00:00 --html phy17.html",
};

/* ---- split ---- */

static const struct cli_option split_options[] = {
    {"from", 0, CLI_OPT_STRING, "ACCOUNT", "who passes it on", .field = "from_account"},
    {"to", 0, CLI_OPT_STRING, "ACCOUNT", "who gets it", .field = "to_account"},
    {"allocation", 0, CLI_OPT_STRING, "ID",
     "of this one; else of those that are valid now, in the order in which they end"},
    {"start", 0, CLI_OPT_TIME, "TIME", "within what it comes from (the same)",
     .field = "valid_from"},
    {"end", 0, CLI_OPT_TIME, "TIME", "likewise", .field = "valid_to"},
    BANK_DESCRIPTION_OPTION,
    {0}};

static const struct cli_form split_forms[] = {
    {"--from ACCOUNT --to ACCOUNT AMOUNT [--allocation ID] [--start TIME] [--end TIME] [--description TEXT]",
     .method = "Split", .sentence = "gave {amount} credits of {from_account} to {to_account}"},
    {"back ALLOCATION [AMOUNT] [--description TEXT]", .method = "SplitBack",
     .sentence = "took back {amount|what is not used} of {allocation}"},
    {0}};

const struct cli_command split_command = {
    .name = "split",
    .group = CLI_BANK,
    .summary = "pass a part of a grant to an account of the same project or one below it",
    .text = "Back: what is neither spent nor held of it goes back to where it came from.",
    .forms = split_forms,
    .options = split_options,
    .service = &bank_service,
    .example = "nui split --from phys --to lasers 5000 --end 2027-01-01T00:00",
};
