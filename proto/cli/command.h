/* command: the one client `nui` as tables of commands.
 *
 * local/cli, meta/cli, bank/cli and local/sim each export one table; proto/cli/nui.c joins them.
 * A command of Maui's name is also run when the program is called by that name (a link). */
#ifndef NUI_CLI_COMMAND_H
#define NUI_CLI_COMMAND_H

#include <stdbool.h>

#include "proto/base/err.h"

/* Exit codes of every command (reference: nui(1)). */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,       /* refused or failed */
    CLI_USAGE = 2,
    CLI_DENIED = 3,       /* not authorised */
    CLI_NO_ANSWER = 4,    /* no answer from a daemon */
    CLI_NOT_FOUND = 5,
};

struct cli_context; /* see proto/cli/client.h: configuration, connections, output format */

struct cli_command {
    const char *name;    /* "submit" */
    const char *group;   /* heading in `nui help`: "Users, on the grid" */
    const char *summary; /* one line */
    /* argv[0] is the command's name; returns enum cli_exit after printing one sentence on stderr
     * when it is not CLI_OK. */
    int (*run) (struct cli_context *ctx, int argc, char **argv);
    const char *help;    /* text of --help: synopsis, options, one example */
};

/* Tables, each ended by an entry with name NULL. */
extern const struct cli_command meta_commands[];
extern const struct cli_command bank_commands[];
extern const struct cli_command local_commands[];
extern const struct cli_command sim_commands[];

/* Maps an error to an exit code: DENIED and UNAUTHENTIC 3, UNAVAILABLE and TIMEOUT 4, NOT_FOUND 5,
 * everything else 1. Prints "nui COMMAND: sentence" on stderr. */
int cli_fail (const char *command, const struct err *err);
/* The same with code 2 for wrong usage, naming `nui COMMAND --help`. */
int cli_usage (const char *command, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

#endif
