/* grid: what the grid commands share: calls to the metascheduler, jobs signed, states as words. */
#ifndef NUI_META_CLI_GRID_H
#define NUI_META_CLI_GRID_H

#include "proto/cli/client.h"
#include "proto/cli/costbound.h"
#include "proto/cli/joboptions.h"
#include "proto/cli/options.h"
#include "proto/cli/table.h"
#include "proto/nui/v1/meta.pb-c.h"

enum { GRID_CALL_TIMEOUT_S = 60 };

/* One unary call of nui.meta.v1.Meta; the reply is the caller's to free. */
int grid_call (struct cli_context *ctx, const char *method, const ProtobufCMessage *request,
               ProtobufCMessage **reply_out, struct err *err);

/* The site of a component, where the metascheduler says that it is; the caller's to destroy. NULL: see err. */
struct rpcclient *grid_site_open (struct cli_context *ctx, const Nui__Meta__V1__ComponentStatus *c,
                                  struct err *err);

/* The job's options of submit and estimate. */
extern const struct cli_option grid_submit_options[];
extern const struct cli_option grid_estimate_options[];

/* costbound_set by the metascheduler's dearest price. */
int grid_bound_set (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                    bool array, struct arena *arena);

const char *grid_state_name (Nui__Meta__V1__GridJobState state);   /* "Running" */
const char *grid_part_state_name (Nui__Local__V1__JobState state); /* "Running" */
/* "Running", of an array "Running:3 Queued:7". */
/* A directory, and the folders in it on the way to a file. ERR_IO. */
int grid_folders_make (const char *dir, const char *path, struct err *err);
/* Of a job that waits in a site's queue, as last heard; of a co-allocated one the moment that its sites
 * have promised. NULL: none. */
const Nui__Common__V1__Forecast *grid_forecast_of (const Nui__Meta__V1__JobStatus *s);
void grid_state_text (const Nui__Meta__V1__JobStatus *s, struct strbuf *out);
bool grid_state_ended (Nui__Meta__V1__GridJobState state);

/* "grid.42", or "42" for it; checked. */
int grid_job_id (struct cli_context *ctx, const char *text, char *out, size_t cap, struct err *err);
/* The same of an operand. CLI_OK, or what the command returns. */
int grid_job_operand (struct cli_context *ctx, const char *command, const char *text, char *out,
                      size_t cap);
enum { GRID_ID_MAX = 1024 }; /* of an id with ranges: "grid.42[3-7,9]" */

/* Whether it is an array, or several of one: the metascheduler knows. A job of a site is none. CLI_OK, or what the command
 * returns. */
int grid_names_array (struct cli_context *ctx, const char *command, const char *text,
                      bool *array_out);

extern const struct cli_command submit_command;
extern const struct cli_command coreserve_command;
extern const struct cli_command estimate_command;
extern const struct cli_command jobs_command;
extern const struct cli_command status_command;
extern const struct cli_command watch_command;
extern const struct cli_command cancel_command;
extern const struct cli_command jobhold_command;
extern const struct cli_command jobrelease_command;
extern const struct cli_command output_command;
extern const struct cli_command renew_command;
extern const struct cli_command delegate_command;
extern const struct cli_command restage_command;
extern const struct cli_command licences_command;
extern const struct cli_command sites_command;
extern const struct cli_command whoami_command;
extern const struct cli_command run_command;
extern const struct cli_command fetch_command;

/* Follows a job on stdout until it has ended; its final state in *state_out. */
int grid_watch (struct cli_context *ctx, const char *command, const char *grid_job_id,
                Nui__Meta__V1__GridJobState *state_out);

/* Both streams of each component into files of the directory, whose names are printed. */
int grid_output_save (struct cli_context *ctx, const char *command, const char *grid_job_id,
                      const char *directory);

/* The files of the job's directory into that one, of several components each into a folder of its name; their names are
 * printed (fetch.c). */
int grid_fetch (struct cli_context *ctx, const char *command, const char *grid_job_id,
                const char *directory);

#endif
