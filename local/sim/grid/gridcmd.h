/* gridcmd: the part of `nui sim` that is about several sites: --grid. */
#ifndef NUI_LOCAL_SIM_GRID_GRIDCMD_H
#define NUI_LOCAL_SIM_GRID_GRIDCMD_H

#include "local/sim/grid/grid.h"
#include "proto/cli/options.h"

enum { GRID_SHARES_MAX = 16, GRID_RUNS_MAX = 5 + GRID_SHARES_MAX };

struct gridcmd_args {
    const char *grid;                 /* the file */
    const char *coallocate;           /* "5,10,20": per cent; NULL: none */
    const char *report;               /* a folder; NULL: no page */
    const char *jobs_out, *stats_out; /* or NULL */
    uint64_t seed;
};

/* Returns an exit code, having said why when it is not CLI_OK. */
int gridcmd_run (struct cli_context *ctx, const struct gridcmd_args *args);

/* What was found, as a page in folder. run[0 … 3] are isolated, pool, placed, moved; others have
 * shares, ascending. */
int gridpage_write (const struct grid *grid, const char *source, const struct grid_run *run,
                    uint32_t count, const char *folder, struct err *err);

#endif
