/* simrun: one workload on one machine under one policy, replayed by the engine. */
#ifndef NUI_LOCAL_SIM_SIMRUN_H
#define NUI_LOCAL_SIM_SIMRUN_H

#include "local/sim/engine.h"
#include "local/sim/series.h"
#include "local/sim/simstats.h"
#include "local/trace/workload.h"

struct simrun {
    struct engine_result *result; /* of workload->job[i] */
    uint32_t *qos;                /* that job i ran under */
    struct engine_summary summary;
    struct simstats stats;
    struct series *series;
};

/* Told after every pass; may be NULL. */
typedef void simrun_progress (void *self, uint64_t jobs_done);

int simrun_replay (const struct workload *workload, const struct machine *machine,
                   const struct policy *policy, const struct engine_site *site, duration_us tick,
                   uint64_t seed, simrun_progress *progress, void *self, struct simrun *out,
                   struct err *err);
/* The same with more hooks (but `sample`, which is its own); out->qos is filled before the first. */
int simrun_replay_hooked (const struct workload *workload, const struct machine *machine,
                          const struct policy *policy, const struct engine_site *site,
                          duration_us tick, uint64_t seed, simrun_progress *progress, void *self,
                          const struct engine_hooks *hooks, struct simrun *out, struct err *err);
void simrun_free (struct simrun *run);

#endif
