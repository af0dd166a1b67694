/* completion: the shell's completion, made from the tables of commands. Pure.
 *
 * Options are taken from the help texts ("--walltime", "-t"), so that there is one source. */
#ifndef NUI_CLI_COMPLETION_H
#define NUI_CLI_COMPLETION_H

#include "proto/base/strbuf.h"
#include "proto/cli/command.h"

void cli_completion_bash (const struct cli_command *const *const *tables,
                          const struct cli_command *const *links, struct strbuf *out);
void cli_completion_zsh (const struct cli_command *const *const *tables,
                         const struct cli_command *const *links, struct strbuf *out);
void cli_completion_fish (const struct cli_command *const *const *tables, struct strbuf *out);

#endif
