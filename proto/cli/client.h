/* client: what every command of `nui` stands on: the configuration, who I am, connections made
 * when first needed, and the output format.
 *
 * Configuration: --config FILE, else $NUI_CONFIG, else ~/.config/nui/nui.cfg, else
 * /etc/nui/nui.cfg; keys in nui.cfg(5). Everything is owned by the context and lives as long. */
#ifndef NUI_CLI_CLIENT_H
#define NUI_CLI_CLIENT_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>

#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"
#include "proto/cli/command.h"
#include "proto/cli/metas.h"
#include "proto/conf/conf.h"
#include "proto/rpc/rpcclient.h"
#include "proto/rpc/tlsid.h"

struct cli_context;

enum cli_format { CLI_TABLE = 0, CLI_JSON, CLI_CSV };

struct cli_context *cli_context_create (void);
void cli_context_destroy (struct cli_context *ctx);

/* Set by the options every command takes (see options.h). */
void cli_set_config (struct cli_context *ctx, const char *path);
void cli_set_format (struct cli_context *ctx, enum cli_format format);
void cli_set_noheader (struct cli_context *ctx, bool noheader);
enum cli_format cli_format (const struct cli_context *ctx);
bool cli_noheader (const struct cli_context *ctx);
/* stdout is a terminal and NO_COLOR is not set. */
bool cli_colour (const struct cli_context *ctx);
/* The command being run; its help is what --help prints. */
void cli_set_command (struct cli_context *ctx, const struct cli_command *command);
const struct cli_command *cli_command (const struct cli_context *ctx);
/* What the command is asked about; argv's own. */
struct cli_operands;
void cli_set_operands (struct cli_context *ctx, const struct cli_operands *operands);

/* Prints the help of one command on stdout, with the options every command takes. */
void cli_print_help (const struct cli_command *command);
/* The same without its name and what every command takes. */
void cli_help_text (const struct cli_command *command, struct strbuf *out);

/* Runs `nui`: argv[0] or the first word names a command of the tables, which end with NULL.
 * links: the table whose commands are installed as links of their own (Maui's), or NULL. Returns
 * the exit code. */
int cli_main (const struct cli_command *const *const *tables,
              const struct cli_command *const *links, int argc, char **argv);

/* Reads the configuration once. ERR_NOT_FOUND names the places looked at. */
int cli_config (struct cli_context *ctx, struct err *err);
/* Values of it; cli_config first (the functions do so themselves and return NULL on failure). */
const char *cli_grid (struct cli_context *ctx, struct err *err);
const char *cli_account (struct cli_context *ctx); /* ACCOUNT, or NULL */
/* COSTFACTOR: so many times the estimate is signed as the most that a job may cost. Twice: a job that was evicted and
 * ran anew, or that found the dearer rates of another day, is still paid; what nobody asked for is not. */
#define CLI_COST_FACTOR_PPM INT64_C (2000000)
int64_t cli_cost_factor_ppm (struct cli_context *ctx);
/* Names of SITECFG[…], in the file's order; ends with NULL. */
const char *const *cli_site_names (struct cli_context *ctx, struct err *err);

/* The configuration names a certificate and its key. */
bool cli_has_identity (struct cli_context *ctx);
/* The configuration names a bank. */
bool cli_has_bank (struct cli_context *ctx);
/* My certificate and key. */
struct tlsid *cli_identity (struct cli_context *ctx, struct err *err);

/* Connections (made on the first call). The server must have the right kind and, for a site, name.
 * site NULL: the site of the jobs among the operands (alpha.3), else the one named by SITE, else the only one with a local socket, else the only one.
 * A site whose SOCKET exists on this host is reached through it, without a certificate. */
struct metas *cli_metas (struct cli_context *ctx, struct err *err); /* META's: metas.h */
struct rpcclient *cli_bank (struct cli_context *ctx, struct err *err);
struct rpcclient *cli_site (struct cli_context *ctx, const char *site, struct err *err);
/* The name that cli_site (ctx, site) would use. */
const char *cli_site_name (struct cli_context *ctx, const char *site, struct err *err);
struct event_base *cli_base (struct cli_context *ctx);

/* Columns of the terminal that stdout is; 0: it is none. */
unsigned cli_columns (const struct cli_context *ctx);

/* Progress on stderr: nothing unless stderr is a terminal and more than a second has gone by, then
 * one line "label done/total rate left", redrawn at most ten times a second. total 0: unknown. */
struct cli_progress;
struct cli_progress *cli_progress_start (const char *label, uint64_t total);
void cli_progress_update (struct cli_progress *progress, uint64_t done);
void cli_progress_end (struct cli_progress *progress); /* wipes the line, frees */

#endif
