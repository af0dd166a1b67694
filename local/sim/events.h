/* events: what happens in a replay, as rows for other programs, and why jobs never ran; and its jobs as Maui's trace. */
#ifndef NUI_LOCAL_SIM_EVENTS_H
#define NUI_LOCAL_SIM_EVENTS_H

#include "local/sim/engine.h"
#include "local/trace/workload.h"
#include "proto/base/strbuf.h"

struct events;
/* rows: also of starts, promises and ends, not only why. Nothing given is owned, all must outlive it. */
struct events *events_create (const struct workload *workload, const struct machine *machine,
                              const struct cred_names *names, bool rows);
void events_destroy (struct events *events); /* NULL is a no-op */
/* For one replay, of whose engine_setup they are the hooks. */
struct engine_hooks events_hooks (struct events *events);

/* time,event,job,at,hosts: lines under this heading, in the order of what happened. */
void events_csv (const struct events *events, struct strbuf *out);
/* Why the job at this place never ran; NULL: it ran. */
const char *events_never (const struct events *events, uint64_t index);

/* mauitrace_write.c: the workload in Maui's own trace format. result[i] is of workload->job[i]; qos[i] the QoS it ran under. */
void mauitrace_write (struct strbuf *out, const struct workload *workload,
                      const struct engine_result *result, const uint32_t *qos);

#endif
