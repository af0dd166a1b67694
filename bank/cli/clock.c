/* nui clock: the bank's clock, and an operator's word that it is right though it seems ahead. */
#include "bank/cli/util.h"

static const struct table_column clock_columns[] = {
    {"now", "Now", TABLE_TIME},
    {"last_moment", "LastMoment", TABLE_TIME, .from = "moment"},
    {"ahead", "Ahead", TABLE_DURATION}};

static const struct cli_option clock_options[] = {
    {"description", 'd', CLI_OPT_STRING, "TEXT",
     "why it is right, though it is ahead of what the bank can believe", .field = "reason"},
    {0}};

static const struct cli_form clock_forms[] = {
    {"", .method = "Clock", CLI_COLUMNS (clock_columns)},
    {"accept -d REASON", .method = "ClockAccept", .sentence = "the bank's clock is accepted"},
    {0}};

const struct cli_command clock_command = {
    .name = "clock",
    .group = CLI_BANK,
    .summary = "the bank's clock, and an operator's word that it is right",
    .forms = clock_forms,
    .options = clock_options,
    .service = &bank_service,
    .example = "nui clock accept -d 'the database host had stood still'",
};
