/* simulate: SIMULATION. A virtual clock, jobs that come from a log and run nowhere (rm_trace), and the
 * iterations of schedctl(1): the n-th is the pass at begin + (n - 1) · RMPOLLINTERVAL. What happens in
 * between, happens at its own moment, with a pass, as it would under NORMAL.
 *
 * It begins when SIMINITIALQUEUEDEPTH jobs of the log have come. With NORMAL submission they keep
 * their times; with the constant depths a job comes, as of now, whenever too little waits. Between
 * iterations the loop is free: every command works, as of the moment the simulation is at.
 *
 * State is a scratch file in STATEDIR, begun anew each time. */
#ifndef NUI_LOCAL_SVC_SIMULATE_H
#define NUI_LOCAL_SVC_SIMULATE_H

#include "local/svc/svc_i.h"

struct simulation;

int simulate_create (struct svc *svc, const struct settings *settings, struct err *err);
void simulate_destroy (struct simulation *sim); /* NULL is a no-op */
/* The same log again, read by a reload. ERR_CONFLICT when it is another one. */
int simulate_reload (struct simulation *sim, const struct settings *settings, struct err *err);
/* The service is whole: it may begin to run, unless it is stopped. Also after schedctl. */
void simulate_run (struct simulation *sim);
/* Nothing is left that could happen by itself; or jobs wait, and for HORIZON none has run or come. */
bool simulate_over (const struct simulation *sim);

#endif
