/* stats_cli: showstats, showgrid, profiler, resetstats, showaudit and the rest of diagnose: what
 * nui.local.v1.Stats answers. As in local_cli.h, texts are made by pure functions. */
#ifndef NUI_LOCAL_CLI_STATS_CLI_H
#define NUI_LOCAL_CLI_STATS_CLI_H

#include "local/cli/local_cli.h"
#include "proto/nui/v1/stats.pb-c.h"

/* A unary call to the site's Stats service. */
int site_stats (struct cli_context *ctx, const char *site, const char *method, const void *request,
                bool idempotent, void *reply_out, struct err *err);
int site_stats_stream (struct cli_context *ctx, const char *site, const char *method,
                       const void *request, void (*fn) (void *arg, const ProtobufCMessage *message),
                       void *arg, struct err *err);

/* --- sums.c ------------------------------------------------------------------------------- */

double hours_of (int64_t us);                           /* 3600e6 us are 1 */
double share_of (double part, double whole);            /* percent; 0 of nothing */
double sums_xfactor (const Nui__Local__V1__JobSums *s); /* mean over jobs, as below */
double sums_queue_hours (const Nui__Local__V1__JobSums *s);
double sums_accuracy (const Nui__Local__V1__JobSums *s);   /* percent, mean over jobs */
double sums_efficiency (const Nui__Local__V1__JobSums *s); /* percent */
void sums_add (Nui__Local__V1__JobSums *sum, const Nui__Local__V1__JobSums *more);
/* Cells of a row: jobs, successful, shares of total, hours, factors … in the order of sums_columns. */
enum { SUMS_COLUMNS = 17 };
extern const struct table_column sums_columns[SUMS_COLUMNS];
void sums_cells (struct table *table, const Nui__Local__V1__JobSums *s,
                 const Nui__Local__V1__JobSums *total);

/* --- showstats.c -------------------------------------------------------------------------- */

void summary_text (const Nui__Local__V1__SummaryReply *reply, bool verbose, struct strbuf *out);
/* kind: "user", "group", "account", "class", "qos" */
void sums_text (const Nui__Local__V1__SumsReply *reply, const char *kind, bool noheader,
                struct strbuf *out);
struct node_sums {
    struct arena *arena;
    int64_t since_us;
    Nui__Local__V1__NodeSumsRow *row;
    uint32_t count, cap;
};
extern const struct cli_command showstats_command;
extern const struct cli_command resetstats_command;

/* --- showgrid.c --------------------------------------------------------------------------- */

enum { GRID_ROWS = 10, GRID_COLUMNS = 12, GRID_MAX = 32 };
/* Cells by row and column; more rows and columns than Maui's are printed where there are jobs. */
struct grid {
    int64_t since_us;
    Nui__Local__V1__JobSums cell[GRID_MAX][GRID_MAX];
};
void grid_clear (struct grid *grid);
void grid_add (struct grid *grid, uint32_t row, uint32_t column,
               const Nui__Local__V1__JobSums *sums);
/* "AVGXFACTOR" …, in any case; -1: unknown. */
int grid_stat_find (const char *name);
const char *grid_stat_names (void); /* for help and errors */
bool grid_stat_is_start (int stat); /* it is of jobs to come, not of those that ended */
void grid_text (const struct grid *grid, int stat, bool noheader, struct strbuf *out);
int grid_print (struct cli_context *ctx, const struct grid *grid, int stat);
extern const struct cli_command showgrid_command;
int showgrid_print (struct cli_context *ctx, const char *command, const char *site,
                    const char *stat);

/* --- profiler.c --------------------------------------------------------------------------- */

extern const struct cli_command profiler_command;
int profile_days (struct cli_context *ctx, const char *site);
extern const struct cli_command showaudit_command;

/* --- diagnose_more.c ---------------------------------------------------------------------- */

int diagnose_scheduler (struct cli_context *ctx, const char *site);
int diagnose_estimates (struct cli_context *ctx, const char *site);
int diagnose_managers (struct cli_context *ctx, const char *site);
/* kind: as of credentials; NULL: all. */
int diagnose_fairshare (struct cli_context *ctx, const char *site, const char *kind);
int diagnose_grid (struct cli_context *ctx, const char *site);
int diagnose_memory (struct cli_context *ctx, const char *site);
int diagnose_partitions (struct cli_context *ctx, const char *site);

#endif
