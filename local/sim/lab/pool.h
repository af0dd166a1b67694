/* pool: the runs of an experiment, one process for each at a time and as many at once as there are
 * cores.
 *
 * With a folder, each finished run is written there under its key at once, and a run whose file is
 * there already is not done again: what was stopped goes on where it was. SIGINT and SIGTERM end
 * the processes; the call returns ERR_UNAVAILABLE and what was finished stays. Once it returns,
 * none of its processes is left. */
#ifndef NUI_LOCAL_SIM_LAB_POOL_H
#define NUI_LOCAL_SIM_LAB_POOL_H

#include "local/sim/lab/labrun.h"

struct pool_options {
    uint32_t workers;   /* 0: one for each core */
    const char *folder; /* NULL: nothing is kept */
    void *self;
    void (*progress) (void *self, uint64_t jobs_done, uint64_t jobs_total); /* or NULL */
};

struct pool_summary {
    uint32_t simulated;
    uint32_t kept; /* taken from the folder */
};

/* Fills run[i].result. ERR_IO, or the error of the first run that failed. */
int pool_run (struct lab_run *run, uint32_t count, const struct pool_options *options,
              struct pool_summary *summary_out, struct err *err);

#endif
