/* command: the one client `nui` as tables of commands.
 *
 * local/cli, meta/cli, bank/cli and local/sim each export one table; cli/nui.c joins them.
 * A command of Maui's name is also run when the program is called by that name (a link). */
#ifndef NUI_CLI_COMMAND_H
#define NUI_CLI_COMMAND_H

#include <stdbool.h>

/* The tables of commands, options, forms and columns name in each row what it has; the rest of a row is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "proto/base/err.h"

/* Exit codes of every command (reference: nui(1)). */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* refused or failed */
    CLI_USAGE = 2,
    CLI_DENIED = 3,    /* not authorised */
    CLI_NO_ANSWER = 4, /* no answer from a daemon */
    CLI_NOT_FOUND = 5,
};

struct cli_context; /* see proto/cli/client.h: configuration, connections, output format */

struct cli_option;
struct cli_form;
struct cli_service;

struct cli_command {
    const char *name;    /* "submit" */
    const char *group;   /* heading in `nui help`: CLI_USERS … */
    const char *summary; /* one line */
    /* What it may say; the help is made of these. */
    const struct cli_form *forms;      /* said.h; ends with a row without words */
    const struct cli_option *options;  /* options.h; NULL: none of its own */
    const char *text;                  /* what else there is to know; NULL: nothing */
    const char *example;               /* "nui balance -A phys" */
    const struct cli_service *service; /* of the forms that are one call: request.h */
    unsigned flags;                    /* CLI_STOP_AT_OPERAND */
    /* A command without forms: argv[0] is its name; returns enum cli_exit after printing one sentence on stderr when it is
     * not CLI_OK. help: synopsis and options. */
    int (*run) (struct cli_context *ctx, int argc, char **argv);
    const char *help;
};

#define CLI_USERS "Users, on the grid"
#define CLI_BANK "Bank"
#define CLI_CLUSTER "On a cluster, with Maui's names"
#define CLI_MAM "Bank, with Moab Accounting Manager's names"

/* Tables, each ended by NULL. */
extern const struct cli_command *const meta_commands[];
extern const struct cli_command *const bank_commands[];
extern const struct cli_command *const mam_commands[];
extern const struct cli_command *const local_commands[];
extern const struct cli_command *const sim_commands[];

/* Maps an error to an exit code: DENIED and UNAUTHENTIC 3, UNAVAILABLE and TIMEOUT 4, NOT_FOUND 5,
 * everything else 1. Prints "nui COMMAND: sentence" on stderr. */
int cli_fail (const char *command, const struct err *err);
/* The same with code 2 for wrong usage, naming `nui COMMAND --help`. */
int cli_usage (const char *command, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

#endif
