/* mauitrace: writes a simulated workload in Maui's own trace format (44 fields, VERSION 230), so
 * that a result can be the input of another simulation, ours or Maui's. */
#ifndef NUI_LOCAL_SIM_MAUITRACE_H
#define NUI_LOCAL_SIM_MAUITRACE_H

#include "local/sim/engine.h"
#include "local/sim/workload.h"
#include "proto/base/strbuf.h"

/* result[i] is of workload->job[i]; qos[i] the QoS it ran under. */
void mauitrace_write (struct strbuf *out, const struct workload *workload,
                      const struct engine_result *result, const uint32_t *qos);

#endif
