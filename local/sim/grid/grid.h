/* grid: what `nui sim --grid FILE` is about: sites with their logs, read from a file, and the runs
 * that are compared.
 *
 *     SITECFG[kth]  WORKLOAD=KTH-SP2.swf.gz CONFIG=kth.cfg
 *     SITECFG[ctc]  WORKLOAD=CTC-SP2.swf.gz CONFIG=ctc.cfg NODES=338
 *     POOLCONFIG    kth.cfg
 *
 * All logs begin at one moment, and only what was submitted before the shortest of them ends counts:
 * beyond that some site would have nothing to do of its own. */
#ifndef NUI_LOCAL_SIM_GRID_GRID_H
#define NUI_LOCAL_SIM_GRID_GRID_H

#include "local/sim/grid/gridsim.h"

struct conf;
struct grid_site {
    char name[64];
    const char *workload_path, *config_path, *resources_path;
    int64_t nodes, procs_per_node; /* 0: not said */
    const char *jobs;              /* "A..B", or NULL: all */
    const char *silent;            /* "D..D" from the beginning, or NULL: never */
    duration_us silent_from, silent_until;
    struct cred_names names;
    struct policy *policy;
    struct workload *workload;
    struct machine *machine;
    uint64_t jobs_count; /* of the common period */
};

struct grid {
    struct conf *conf;
    struct grid_site *site;
    uint32_t site_count;
    const char *pool_config;
    struct choose_move_policy moves;
    bool slide;
    struct gridsim_job *job; /* all, by submission */
    uint64_t count;
    uint64_t left_out; /* submitted after the shortest log ended */
    time_us period;
};

/* Reads the file and all that it names. NULL with err. Notes of the policies go to `note` (may be
 * NULL). */
struct grid *grid_read (const char *path, void (*note) (void *self, const char *text), void *self,
                        struct err *err);
void grid_destroy (struct grid *grid); /* NULL is a no-op */

enum grid_kind {
    GRID_ISOLATED, /* every job at home */
    GRID_POOL,     /* one machine of all processors, under POOLCONFIG */
    GRID_PLACED,   /* by the metascheduler, once */
    GRID_MOVED,    /* … and moved while they wait */
    GRID_SHARED,   /* every ordinary job at home, a share co-allocated */
};

struct grid_run {
    enum grid_kind kind;
    double share; /* of GRID_SHARED */
    char label[64];
    struct gridsim_result *result;
    struct gridsim_summary summary;
    /* Over jobs that ended; seconds. */
    uint64_t ended;
    double mean_wait_s, mean_slowdown, p95_wait_s; /* all */
    double group_wait_s, group_response_s;         /* the co-allocated; 0: none */
    double local_wait_s;                           /* the others */
    double local_extra_s; /* … more than the same jobs waited without co-allocation */
    double wall_s;        /* real time */
};

/* base: the run without co-allocation, for GRID_SHARED with a share > 0; else NULL. */
int grid_run (const struct grid *grid, enum grid_kind kind, double share,
              const struct grid_run *base, uint64_t seed,
              void (*progress) (void *self, uint64_t jobs_done), void *self, struct grid_run *out,
              struct err *err);
void grid_run_free (struct grid_run *run);

#endif
