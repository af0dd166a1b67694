/* nui deposit, withdraw, transfer, refund, allocation: credits given, moved and given back. */
#include "bank/cli/util.h"

#define FROM_THIS_ONE                                                                              \
    "from this one; else from those that are valid now, in the order in which they end"

static const struct cli_option deposit_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "who gets them"},
    {"start", 0, CLI_OPT_TIME, "TIME", "when they become available (now)", .field = "valid_from"},
    {"end", 0, CLI_OPT_TIME, "TIME", "when they expire (never)", .field = "valid_to"},
    BANK_SCOPE_OPTION,
    {"grant", 0, CLI_OPT_STRING, "GRANT", "more for an earlier grant"},
    {"reference", 0, CLI_OPT_STRING, "TEXT", "an order's number or the like"},
    {"again", 0, CLI_OPT_FLAG, NULL, "another deposit of the same reference"},
    BANK_DESCRIPTION_OPTION,
    {0}};

static const struct cli_form deposit_forms[] = {
    {"-A ACCOUNT AMOUNT [--start TIME] [--end TIME] [--for KIND=NAME]… [--grant GRANT] [--reference TEXT [--again]] "
     "[--description TEXT]",
     .method = "Deposit", .sentence = "deposited {amount} credits to {account}"},
    {0}};

const struct cli_command deposit_command = {
    .name = "deposit",
    .group = CLI_BANK,
    .summary = "grant credits to an account",
    .forms = deposit_forms,
    .options = deposit_options,
    .service = &bank_service,
    .example = "nui deposit -A phys 100000 --end 2027-12-31T00:00 -d 'grant PHY-17'",
};

static const struct cli_option withdraw_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "from whom"},
    {"allocation", 0, CLI_OPT_STRING, "ID", FROM_THIS_ONE},
    BANK_DESCRIPTION_OPTION,
    {0}};

static const struct cli_form withdraw_forms[] = {
    {"-A ACCOUNT AMOUNT [--allocation ID] [--description TEXT]", .method = "Withdraw",
     .sentence = "withdrew {amount} credits from {account}"},
    {0}};

const struct cli_command withdraw_command = {
    .name = "withdraw",
    .group = CLI_BANK,
    .summary = "take back credits that nothing holds",
    .forms = withdraw_forms,
    .options = withdraw_options,
    .service = &bank_service,
    .example = "nui withdraw -A phys 500 -d 'returned to the agency'",
};

static const struct cli_option transfer_options[] = {
    {"from", 0, CLI_OPT_STRING, "ACCOUNT", "who gives them", .field = "from_account"},
    {"to", 0, CLI_OPT_STRING, "ACCOUNT",
     "who gets them; what arrives is valid as long as what left", .field = "to_account"},
    {"allocation", 0, CLI_OPT_STRING, "ID", FROM_THIS_ONE},
    BANK_DESCRIPTION_OPTION,
    {0}};

static const struct cli_form transfer_forms[] = {
    {"--from ACCOUNT --to ACCOUNT AMOUNT [--allocation ID] [--description TEXT]",
     .method = "Transfer",
     .sentence = "moved {amount} credits from {from_account} to {to_account}"},
    {0}};

const struct cli_command transfer_command = {
    .name = "transfer",
    .group = CLI_BANK,
    .summary = "move credits between accounts, with their validity",
    .forms = transfer_forms,
    .options = transfer_options,
    .service = &bank_service,
    .example = "nui transfer --from phys --to chem 500",
};

/* ---- refund ---- */

static int refund_run (struct cli_context *ctx, const struct cli_said *said)
{
    const char *charge = said_operand (said, 0);
    struct err err;
    uint64_t op;
    if (uint_parse (charge, "charge", 1, INT64_MAX, &op, &err) < 0)
        return cli_usage ("refund", "'%s' is not the number of a charge: nui statement shows it",
                          charge);
    return cli_send (ctx, said);
}

static const struct table_column refund_columns[] = {
    {"charge", "Charge", TABLE_TEXT, .from = "charge_op_id"},
    {"refunded", "Refunded", TABLE_CREDITS},
    {"left", "Left", TABLE_CREDITS}};

static const struct cli_option refund_options[] = {
    {"description", 'd', CLI_OPT_STRING, "TEXT", "why, for the statement", .field = "reason"}, {0}};

static const struct cli_form refund_forms[] = {
    {"CHARGE [AMOUNT] [--description TEXT]", refund_run, .method = "Refund",
     .fields = "charge_op_id=CHARGE",
     .sentence = "refunded {refunded} credits of charge {charge_op_id}; {left} are left of it",
     CLI_COLUMNS (refund_columns)},
    {0}};

const struct cli_command refund_command = {
    .name = "refund",
    .group = CLI_BANK,
    .summary = "give a charge back to the allocations that paid it",
    .text =
        "CHARGE is the number of its operation, as nui statement shows it. Without AMOUNT all that is not refunded\n"
        "yet.",
    .forms = refund_forms,
    .options = refund_options,
    .service = &bank_service,
    .example = "nui refund 4711 -d 'node failure'",
};

/* ---- allocation ---- */

static const struct cli_option allocation_options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "of this account only"},
    {"credit-limit", 0, CLI_OPT_CREDITS, "CREDITS", "0: none", .max = INT64_MAX},
    {"until", 0, CLI_OPT_TIME, "TIME", "the end of what is carried forward", .field = "valid_to"},
    {"cap", 0, CLI_OPT_CREDITS, "CREDITS", "at most so much of what is left", .min = 1,
     .max = INT64_MAX},
    BANK_DESCRIPTION_OPTION,
    {0}};

static const struct cli_form allocation_forms[] = {
    {"modify ALLOCATION --credit-limit CREDITS", .method = "AllocationModify",
     .sentence = "{allocation} may go {credit_limit} credits below zero"},
    {"carry-forward ALLOCATION --until TIME [--cap CREDITS] [--description TEXT]",
     .method = "CarryForward", .sentence = "carried {allocation} forward"},
    {"expire ALLOCATION [--description TEXT]", .method = "Expire",
     .sentence = "expired {allocation}"},
    {"list [-A ACCOUNT]", balance_allocations, .method = "Balance"},
    {0}};

const struct cli_command allocation_command = {
    .name = "allocation",
    .group = CLI_BANK,
    .summary = "allocations, how far they may go below zero, and into the next year",
    .forms = allocation_forms,
    .options = allocation_options,
    .service = &bank_service,
    .example = "nui allocation carry-forward alloc.7 --until 2028-01-01T00:00 --cap 1000",
};
