/* labcmd: the part of `nui sim` that makes pages: --experiment, and --compare with --report. */
#ifndef NUI_LOCAL_SIM_LAB_LABCMD_H
#define NUI_LOCAL_SIM_LAB_LABCMD_H

#include "local/trace/workload.h"
#include "proto/cli/options.h"

struct labcmd_args {
    const char *experiment; /* NULL: a comparison */
    const char *report;     /* a folder; NULL: only the findings, on standard output */
    const char *workload, *resources, *config;
    const struct cli_list *compare;
    const struct cli_operands *more; /* files after the first of --compare */
    struct workload_range range;
    uint64_t nodes, procs_per_node, seed, seeds, workers;
    double load; /* 0: not given */
};

/* Returns an exit code, having said why when it is not CLI_OK. */
int labcmd_run (struct cli_context *ctx, const struct labcmd_args *args);
/* "1.25" as a factor in (0, 1000]. */
int labcmd_load_parse (const char *text, double *out, struct err *err);

#endif
