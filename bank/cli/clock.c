/* nui clock: the bank's clock, and an operator's word that it is right though it seems ahead. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"

static int clock_show (struct cli_context *ctx)
{
    static const struct table_column columns[] = {{"now", "Now", TABLE_TIME, 0},
                                                  {"last_moment", "LastMoment", TABLE_TIME, 0},
                                                  {"ahead", "Ahead", TABLE_DURATION, 0}};
    Nui__Bank__V1__ClockRequest request = NUI__BANK__V1__CLOCK_REQUEST__INIT;
    struct err err = {0};
    ProtobufCMessage *message = bank_call (ctx, "Clock", &request.base, &err);
    if (!message)
        return cli_fail ("clock", &err);
    const Nui__Bank__V1__ClockReply *reply = (Nui__Bank__V1__ClockReply *)message;
    struct table *table = table_create (columns, 3);
    table_time (table, reply->now_us);
    table_time (table, reply->moment_us ? reply->moment_us : TIME_US_NONE);
    table_duration (table, reply->ahead_us);
    table_end_row (table);
    int rc = table_print_record (table, ctx);
    table_destroy (table);
    protobuf_c_message_free_unpacked (message, NULL);
    return rc;
}

int cmd_clock (struct cli_context *ctx, int argc, char **argv)
{
    struct args {
        const char *reason;
    } args = {0};
    static const struct cli_option options[] = {
        {"description", 'd', CLI_OPT_STRING, offsetof (struct args, reason), 0, 0}, {0}};
    Nui__Bank__V1__ClockAcceptRequest request = NUI__BANK__V1__CLOCK_ACCEPT_REQUEST__INIT;
    struct cli_operands o;
    uint8_t key[16];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &o, &rc))
        return rc;
    if (o.count == 0 && !args.reason)
        return clock_show (ctx);
    if (o.count != 1 || strcmp (o.item[0], "accept") != 0 || !args.reason)
        return cli_usage (argv[0], "say nothing, or accept -d REASON");
    request.key = bank_key (key);
    request.reason = bank_text (args.reason);
    return bank_do (ctx, argv[0], "ClockAccept", &request.base, "the bank's clock is accepted");
}
