/* site: what a maui.cfg says of the place, beside its policy, in a simulation: NODECFG, TOPOLOGYFILE,
 * classes' hosts, node sets, partitions, initiators, SRCFG. The same calls as the daemon's (local/conf).
 *
 * Nodes come from the machine (a resource trace, or so many equal ones named node1, node2 …), and lines
 * of NODECFG with their names add to them, or they are NODECFG's own. One site serves one run at a time;
 * it must outlive the run. */
#ifndef NUI_LOCAL_SIM_SITE_H
#define NUI_LOCAL_SIM_SITE_H

#include "local/conf/nodeconf.h"
#include "local/sim/engine.h"
#include "local/trace/workload.h"

struct simsite;

/* The machine that NODECFG describes: of its nodes only processors are asked. */
struct machine *simsite_machine (const struct nodeconf *nodes);

/* Does the file say anything of the place? Else the engine's own way is the same, and quicker. */
bool simsite_needed (const struct nodeconf *nodes, const struct policy *policy);

/* Nothing given is owned, all must outlive it. note: told about reservations that cannot be made; may be
 * NULL. */
struct simsite *simsite_create (const struct nodeconf *nodes, const struct policy *policy,
                                const struct workload *workload, const struct machine *machine,
                                void (*note) (void *self, const char *sentence), void *self);
void simsite_destroy (struct simsite *site); /* NULL is a no-op */

/* The name of a standing reservation, for struct cred_names.rsv_name. */
const char *simsite_rsv_name (void *self, uint64_t rsv);

/* For engine_setup.site. */
const struct engine_site *simsite_engine (struct simsite *site);

#endif
