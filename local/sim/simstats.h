/* simstats: what a simulated workload came to. Pure. */
#ifndef NUI_LOCAL_SIM_SIMSTATS_H
#define NUI_LOCAL_SIM_SIMSTATS_H

#include "local/sim/engine.h"
#include "local/trace/workload.h"

enum { SIMSTATS_SLOWDOWN_THRESHOLD_S = 10 };

struct simstats {
    uint64_t jobs;        /* simulated: started and ended */
    uint64_t not_started; /* still waiting when nothing more could happen */
    uint64_t backfilled;
    uint64_t preempted; /* times that a job was sent back to the queue */
    uint64_t passes;
    double mean_wait_s;
    double median_wait_s;
    double p95_wait_s;
    double max_wait_s;
    double mean_bounded_slowdown; /* mean of max (1, (wait + run) / max (run, 10 s)) */
    double utilisation;           /* of all processors from the first submission to the last end */
    double makespan_s;
    double wall_s; /* real time of the replay */
};

void simstats_compute (const struct workload *workload, const struct engine_result *result,
                       const struct engine_summary *summary, int64_t procs_total,
                       struct simstats *out);

#endif
