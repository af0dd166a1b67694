/* model: workloads that no site recorded: made from a published model, or a real log under more
 * load.
 *
 * Pure given the seed. Workloads are those of workload.h, destroyed by workload_destroy. */
#ifndef NUI_LOCAL_SIM_LAB_MODEL_H
#define NUI_LOCAL_SIM_LAB_MODEL_H

#include "local/trace/workload.h"
#include "proto/base/rng.h"

/* An empty workload to be filled. names is not owned. */
struct workload *model_workload (struct cred_names *names);
/* One more job; number is its place from 1, times in seconds, user 0…: "u1"…; -1: nobody's. */
struct workload_job *model_job (struct workload *workload, double submit_s, double run_s,
                                double limit_s, uint32_t procs, int user);

/* Lublin & Feitelson 2003, "The workload on parallel supercomputers: modeling the characteristics
 * of rigid jobs", the parameters for all jobs together (their table and program lublin99): size by
 * a two-stage uniform of its logarithm, run time by a hyper-gamma of its logarithm that depends on
 * the size, arrivals by a gamma of the logarithm with a daily cycle.
 *
 * The model knows neither limits nor users. A limit is what a person would write: the run time over
 * an accuracy uniform in (0, 1), raised to the next of twenty customary values, at most the model's
 * longest run (one job in ten is exact). Users are drawn by Zipf's law. Both are ours. */
struct lublin_options {
    uint64_t seed;
    uint32_t jobs;
    uint32_t procs; /* of the machine; the largest job has as many */
    uint32_t users;
    /* Offered: processor-seconds asked for over those there are, > 0; met to about a hundredth. All
     * gaps between submissions are drawn longer or shorter; a day of the model stays a day. */
    double load;
};
struct workload *model_lublin (const struct lublin_options *options, struct cred_names *names);

/* More or less load from the same jobs: the time between submissions is divided by factor (> 0), so
 * that the offered load is multiplied by it. Run times, sizes and order stay. */
void model_scale (struct workload *workload, double factor);
/* Run times of all jobs over processors times the time from the first to the last submission. */
double model_load (const struct workload *workload, int64_t procs);
struct workload *model_copy (const struct workload *workload);
/* A copy in which every job runs exactly as long as it asked for (efficiency 100 %). */
struct workload *model_exact (const struct workload *workload);

/* "model:lublin", "model:lublin:5000" in place of a log's name; jobs 0 when not said. */
bool model_named (const char *text, uint64_t *jobs_out);

#endif
