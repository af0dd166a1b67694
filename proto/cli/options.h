/* options: a command's options as a table.
 *
 *     struct args { const char *user; bool all; duration_us length; };
 *     static const struct cli_option options[] = {
 *         {"user", 'u', CLI_OPT_STRING, offsetof (struct args, user)},
 *         {"all", 'a', CLI_OPT_FLAG, offsetof (struct args, all)},
 *         {"duration", 'd', CLI_OPT_DURATION, offsetof (struct args, length)},
 *         {0}};
 *     struct args args = {.length = -1};
 *     struct cli_operands ops;
 *     int exit_code;
 *     if (!cli_options (ctx, options, 0, &args, argc, argv, &ops, &exit_code))
 *         return exit_code;
 *
 * Forms: -u X, -uX, -ru X (flags joined), --user X, --user=X; `--` ends options; options may follow
 * operands; "-5" is an operand unless '5' is an option. Every command also takes --json, --csv,
 * --noheader, --config FILE and --help (-h too where the table has no 'h'). An unknown option is
 * refused with the nearest known one (code 2). A value given twice: the last wins. */
#ifndef NUI_CLI_OPTIONS_H
#define NUI_CLI_OPTIONS_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"
#include "proto/cli/client.h"

enum cli_option_type {
    CLI_OPT_FLAG,     /* bool */
    CLI_OPT_STRING,   /* const char * */
    CLI_OPT_OPTIONAL, /* const char *: the value may be missing (then ""); only joined: -s10,
                       * --stop=10, or the next argument when it starts with a digit or + */
    CLI_OPT_LIST,     /* struct cli_list: may be repeated */
    CLI_OPT_DURATION, /* duration_us */
    CLI_OPT_TIME,     /* time_us, relative to now */
    CLI_OPT_PAST,     /* time_us: a clock time is the last one, up to now */
    CLI_OPT_PERIOD,   /* struct cli_period: a month or a day */
    CLI_OPT_COUNT,    /* uint64_t in [min, max], max 0: any */
    CLI_OPT_INT,      /* int64_t in [min, max] as int64 (both 0: any) */
    CLI_OPT_MEMORY,   /* int64_t MB */
    CLI_OPT_CREDITS,  /* credit_micro in [min, max], both 0: any */
};

struct cli_said;
struct cli_option;

/* Puts what an option said into the request by itself, where that is more than one field. */
typedef int cli_take (struct cli_context *ctx, const struct cli_said *said,
                      const struct cli_option *option, ProtobufCMessage *request, struct err *err);

struct cli_option {
    const char *name; /* long name without dashes; NULL: only a letter */
    char letter;      /* 0: only the long name */
    enum cli_option_type type;
    const char *value; /* what help calls its value: "ACCOUNT"; NULL for a flag */
    const char *help;  /* what it does */
    size_t offset;     /* in the command's values, where it has a struct of them */
    int64_t min, max;
    const char *field; /* of the request, where the option is not called like it: see request.h */
    cli_take *take;
};

enum { CLI_LIST_MAX = 256 };

struct cli_list {
    uint32_t count;
    const char *item[CLI_LIST_MAX]; /* point into argv */
};

/* Give a command --from and --to (CLI_OPT_PAST) and --period on one of these. */
struct cli_period {
    time_us from, to; /* 0: not given */
};

/* Where a command has no struct of its values, each option has one of these, in the table's order. */
union cli_value {
    bool flag;
    const char *text;
    int64_t number;
    uint64_t count;
    struct cli_list list;
    struct cli_period period;
};

struct cli_operands {
    int count;
    char **item; /* argv's own, operands moved together */
};

enum { CLI_STOP_AT_OPERAND = 1 }; /* everything from the first operand on is an operand */

/* table NULL: only those that every command takes. True: go on. False: help was printed or an error told; return *exit_code_out, which
 * is CLI_OK when it is true. argv[0] is the command's name. The table ends with an entry without name and letter. */
bool cli_options (struct cli_context *ctx, const struct cli_option *table, unsigned flags,
                  void *values, int argc, char **argv, struct cli_operands *operands_out,
                  int *exit_code_out);

/* The same into one cli_value for each row; *given_out: a bit for each row that was said (at most 64). */
bool cli_options_values (struct cli_context *ctx, const struct cli_option *table, unsigned flags,
                         union cli_value *values, uint64_t *given_out, int argc, char **argv,
                         struct cli_operands *operands_out, int *exit_code_out);

bool cli_option_ends (const struct cli_option *option); /* the row that ends a table */
/* Text in lines that begin at column `left`, where the first one stands, and a newline. */
void cli_help_wrap (const char *text, size_t left, struct strbuf *out);
/* The table as help prints it: a line or more for each option. */
void cli_options_help (const struct cli_option *table, struct strbuf *out);

#endif
