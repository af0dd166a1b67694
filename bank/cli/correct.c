/* nui withdraw, transfer, refund, allocation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/cli/util.h"

int cmd_withdraw (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account, *allocation, *description;
    } args = {.allocation = "", .description = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"allocation", 0, CLI_OPT_STRING, offsetof (struct args, allocation), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0},
        {0}};
    struct cli_operands o;
    credit_micro amount;
    char sentence[256], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count != 1 || !args.account)
        return cli_usage (argv[0], "say nui withdraw -A ACCOUNT AMOUNT");
    if (!bank_amount (argv[0], o.item[0], &amount, &rc))
        return rc;
    Nui__Bank__V1__WithdrawRequest request = NUI__BANK__V1__WITHDRAW_REQUEST__INIT;
    request.key = bank_key (key);
    request.account = bank_text (args.account);
    request.amount_micro = amount;
    request.allocation_id = bank_text (args.allocation);
    request.description = bank_text (args.description);
    snprintf (sentence, sizeof (sentence), "withdrew %s credits from %s",
              credit_format (amount, text), args.account);
    return bank_do (ctx, argv[0], "Withdraw", &request.base, sentence);
}

int cmd_transfer (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *from, *to, *allocation, *description;
    } args = {.allocation = "", .description = ""};
    static const struct cli_option options[] = {
        {"from", 0, CLI_OPT_STRING, offsetof (struct args, from), 0, 0},
        {"to", 0, CLI_OPT_STRING, offsetof (struct args, to), 0, 0},
        {"allocation", 0, CLI_OPT_STRING, offsetof (struct args, allocation), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0},
        {0}};
    struct cli_operands o;
    credit_micro amount;
    char sentence[512], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count != 1 || !args.from || !args.to)
        return cli_usage (argv[0], "say nui transfer --from ACCOUNT --to ACCOUNT AMOUNT");
    if (!bank_amount (argv[0], o.item[0], &amount, &rc))
        return rc;
    Nui__Bank__V1__TransferRequest request = NUI__BANK__V1__TRANSFER_REQUEST__INIT;
    request.key = bank_key (key);
    request.from_account = bank_text (args.from);
    request.to_account = bank_text (args.to);
    request.amount_micro = amount;
    request.allocation_id = bank_text (args.allocation);
    request.description = bank_text (args.description);
    snprintf (sentence, sizeof (sentence), "moved %s credits from %s to %s",
              credit_format (amount, text), args.from, args.to);
    return bank_do (ctx, argv[0], "Transfer", &request.base, sentence);
}

static int refund_print (struct cli_context *ctx, const char *charge,
                         const Nui__Bank__V1__RefundReply *reply)
{
    static const struct table_column columns[] = {{"charge", "Charge", TABLE_TEXT, 0},
                                                  {"refunded", "Refunded", TABLE_CREDITS, 0},
                                                  {"left", "Left", TABLE_CREDITS, 0}};
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    int rc;
    if (cli_format (ctx) == CLI_TABLE) {
        struct strbuf text = STRBUF_INIT;
        strbuf_printf (&text, "refunded %s credits of charge %s; %s are left of it\n",
                       credit_format (reply->refunded_micro, a), charge,
                       credit_format (reply->left_micro, b));
        rc = cli_output (&text);
        strbuf_free (&text);
        return rc;
    }
    struct table *table = table_create (columns, 3);
    table_text (table, charge);
    table_credits (table, reply->refunded_micro);
    table_credits (table, reply->left_micro);
    table_end_row (table);
    rc = table_print_record (table, ctx);
    table_destroy (table);
    return rc;
}

int cmd_refund (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *reason;
    } args = {.reason = ""};
    static const struct cli_option options[] = {
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, reason), 0, 0}, {0}};
    struct cli_operands o;
    struct err err = {0};
    credit_micro amount = 0;
    uint8_t key[16];
    char *end;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count < 1 || o.count > 2)
        return cli_usage (argv[0], "say nui refund CHARGE [AMOUNT]");
    unsigned long long op = strtoull (o.item[0], &end, 10);
    if (o.item[0][0] < '1' || o.item[0][0] > '9' || *end || op > INT64_MAX)
        return cli_usage (argv[0], "'%s' is not the number of a charge: nui statement shows it",
                          o.item[0]);
    if (o.count == 2 && !bank_amount (argv[0], o.item[1], &amount, &rc))
        return rc;
    Nui__Bank__V1__RefundRequest request = NUI__BANK__V1__REFUND_REQUEST__INIT;
    request.key = bank_key (key);
    request.charge_op_id = op;
    request.amount_micro = amount;
    request.reason = bank_text (args.reason);
    ProtobufCMessage *reply = bank_call (ctx, "Refund", &request.base, &err);
    if (!reply)
        return cli_fail (argv[0], &err);
    rc = refund_print (ctx, o.item[0], (Nui__Bank__V1__RefundReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static int carry_forward (struct cli_context *ctx, const char *allocation, time_us until,
                          const char *cap, const char *description)
{
    char sentence[256];
    uint8_t key[16];
    credit_micro amount = 0;
    int rc;
    if (cap && !bank_amount ("allocation", cap, &amount, &rc))
        return rc;
    Nui__Bank__V1__CarryForwardRequest request = NUI__BANK__V1__CARRY_FORWARD_REQUEST__INIT;
    request.key = bank_key (key);
    request.allocation_id = bank_text (allocation);
    request.cap_micro = amount;
    request.valid_to_us = until;
    request.description = bank_text (description);
    snprintf (sentence, sizeof (sentence), "carried %.64s forward", allocation);
    return bank_do (ctx, "allocation", "CarryForward", &request.base, sentence);
}

static int expire (struct cli_context *ctx, const char *allocation, const char *description)
{
    char sentence[256];
    uint8_t key[16];
    Nui__Bank__V1__ExpireRequest request = NUI__BANK__V1__EXPIRE_REQUEST__INIT;
    request.key = bank_key (key);
    request.allocation_id = bank_text (allocation);
    request.description = bank_text (description);
    snprintf (sentence, sizeof (sentence), "expired %.64s", allocation);
    return bank_do (ctx, "allocation", "Expire", &request.base, sentence);
}

static int limit_set (struct cli_context *ctx, const char *allocation, const char *words)
{
    char sentence[256], text[QUANTITY_TEXT_MAX];
    uint8_t key[16];
    struct err err = {0};
    credit_micro limit;
    if (credit_parse (words, &limit, &err) < 0)
        return cli_usage ("allocation", "%s", err.text);
    if (limit < 0)
        return cli_usage ("allocation", "a credit limit must not be negative");
    Nui__Bank__V1__AllocationModifyRequest request = NUI__BANK__V1__ALLOCATION_MODIFY_REQUEST__INIT;
    request.key = bank_key (key);
    request.allocation_id = bank_text (allocation);
    request.credit_limit_micro = limit;
    snprintf (sentence, sizeof (sentence), "%s may go %s credits below zero", allocation,
              credit_format (limit, text));
    return bank_do (ctx, "allocation", "AllocationModify", &request.base, sentence);
}

int cmd_allocation (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *account, *limit, *cap, *description;
        time_us until;
    } args = {.description = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct args, account), 0, 0},
        {"credit-limit", 0, CLI_OPT_STRING, offsetof (struct args, limit), 0, 0},
        {"until", 0, CLI_OPT_TIME, offsetof (struct args, until), 0, 0},
        {"cap", 0, CLI_OPT_STRING, offsetof (struct args, cap), 0, 0},
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, description), 0, 0},
        {0}};
    struct cli_operands o;
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    const char *verb = o.count ? o.item[0] : "";
    bool carrying = args.until || args.cap, moving = carrying || args.description[0];
    if (strcmp (verb, "list") == 0 && o.count == 1 && !args.limit && !moving)
        return balance_show (ctx, argv[0], args.account, true);
    if (strcmp (verb, "modify") == 0 && o.count == 2 && args.limit && !args.account && !moving)
        return limit_set (ctx, o.item[1], args.limit);
    if (strcmp (verb, "carry-forward") == 0 && o.count == 2 && args.until && !args.account &&
        !args.limit)
        return carry_forward (ctx, o.item[1], args.until, args.cap, args.description);
    if (strcmp (verb, "expire") == 0 && o.count == 2 && !args.account && !args.limit && !carrying)
        return expire (ctx, o.item[1], args.description);
    return cli_usage (argv[0],
                      "say modify ALLOCATION --credit-limit CREDITS, carry-forward ALLOCATION "
                      "--until TIME [--cap CREDITS], expire ALLOCATION or list [-A ACCOUNT]");
}
