/* lab: experiments with policies, each a page of findings and figures.
 *
 * An experiment makes its runs, has them done (pool.h), computes numbers and fills a report. It
 * reads no clock and draws only from its seed: the same options give the same numbers. */
#ifndef NUI_LOCAL_SIM_LAB_LAB_H
#define NUI_LOCAL_SIM_LAB_LAB_H

#include "local/sim/lab/labstats.h"
#include "local/sim/lab/pool.h"
#include "local/sim/lab/report.h"

enum { LAB_CONFIGS_MAX = 8 };
#define LAB_PBSFIFO_NAME "pbs:fifo"
#define LAB_LOG_NAME                                                                               \
    "log:" /* the first, in place of a file: when the log's own scheduler started them */

struct lab_options {
    const char *experiment; /* a name of lab_experiment (); NULL: compare the configurations */
    const char *workload;   /* a log, "model:lublin[:JOBS]", or NULL: the experiment's own */
    const char *resources;  /* Maui's resource trace, or NULL */
    uint32_t nodes, procs_per_node; /* 0: MaxProcs of the log, one processor each */
    struct workload_range range;    /* last 0: all */
    double load;                    /* of the log's own; 0: as it is */
    uint64_t seed;
    uint32_t seeds; /* how many, for experiments over many seeds; 0: the experiment's own */
    /* Files to compare, the first is the one of today (or LAB_LOG_NAME); LAB_PBSFIFO_NAME among the others is the
     * comparator. */
    const char *config[LAB_CONFIGS_MAX];
    uint32_t config_count;
    const char *folder; /* for results and page; NULL: nothing is kept */
    uint32_t workers;
    void *self;
    void (*progress) (void *self, uint64_t jobs_done, uint64_t jobs_total);
};

struct lab {
    const struct lab_options *options;
    struct cred_names names;
    struct workload *workload;
    struct machine *machine;
    struct arena *arena; /* texts and arrays that the report points to */
    struct report *report;
    struct pool_summary runs;
    const char *source; /* what the jobs are, in words */
    bool from_log;      /* not made by a model */
};

struct lab_experiment {
    const char *name, *title, *summary;
    int (*run) (struct lab *lab, struct err *err);
};
/* Makes, runs and reports; writes the page where options->folder is given. ERR_NOT_FOUND names the
 * experiments there are. *lab_out is set only on success. */
int lab_perform (const struct lab_options *options, struct lab **lab_out, struct err *err);
void lab_destroy (struct lab *lab); /* NULL is a no-op */

/* --- for experiments ------------------------------------------------------------------------ */

/* Reads the log that was named, or makes one by the model; the machine too. load: what the model
 * offers where no log is named. */
int lab_workload (struct lab *lab, uint32_t jobs, uint32_t procs, double load, struct err *err);
struct lab_run lab_run_make (struct lab *lab, const char *label, const char *config,
                             const struct workload *workload);
/* All of them, through the pool. */
int lab_execute (struct lab *lab, struct lab_run *run, uint32_t count, struct err *err);
double *lab_numbers (struct lab *lab, uint64_t count);
/* i * step + from, for x axes */
double *lab_steps (struct lab *lab, uint32_t count, double from, double step);
const char *lab_words (struct lab *lab, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* The command that makes this page again; with the seeds where there are several. */
const char *lab_command (struct lab *lab, const char *experiment, uint32_t seeds);
/* Three digits or more, never an exponent; with a sign where asked. */
const char *lab_number (struct lab *lab, double value, bool sign);

/* Part of several pages: use of the machine over time, a line for each run. */
void lab_figure_use (struct lab *lab, const struct lab_run *run, uint32_t count,
                     const char *csv_name, const char *caption);
/* A row of statistics for each run. */
void lab_table_stats (struct lab *lab, const struct lab_run *run, uint32_t count,
                      const char *csv_name);

int exp_mix (struct lab *lab, struct err *err);
int exp_agents (struct lab *lab, struct err *err);
int exp_delay (struct lab *lab, struct err *err);
int exp_algorithms (struct lab *lab, struct err *err);
int exp_fairshare (struct lab *lab, struct err *err);
int exp_depth (struct lab *lab, struct err *err);
int exp_compare (struct lab *lab, struct err *err);

#endif
