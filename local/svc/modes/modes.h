/* modes: NORMAL, TEST, INTERACTIVE and SIMULATION. What becomes of what a pass decides (mode.c), where jobs come from and
 * what time it is (simulate.c), and whose queue it is (follow.c). The rest asks svc_now and svc_may_act and knows no mode. */
#ifndef NUI_LOCAL_SVC_MODES_H
#define NUI_LOCAL_SVC_MODES_H

#include "local/svc/svc_i.h"

/* --- mode.c ------------------------------------------------------------------------------- */

/* Before the plan is committed: takes out of it what may not be done (now). */
void mode_filter (struct svc *svc, struct plan *plan);
/* What would have been done, or waits for an answer, in order: "start job alpha.3 on node list …".
 * NULL after the last. */
const char *mode_act (const struct svc *svc, uint32_t at);
/* TEST beside a resource manager that starts jobs by itself: it has started this one on these nodes
 * ("n1:2,n2:1"). The core still has it as waiting. False: not this mode. */
bool mode_started_there (struct svc *svc, const struct site_job *job, const char *placement,
                         time_us start);
/* How that compares so far. */
void mode_compared (const struct svc *svc, uint64_t *started_out, uint64_t *alike_out);
/* The differences, the oldest first; NULL after the last. */
const char *mode_difference (const struct svc *svc, uint32_t at);
/* 0, or ERR_CONFLICT: in this mode nothing is started by hand either. */
int mode_may_start (const struct svc *svc, struct err *err);

/* --- simulate.c --------------------------------------------------------------------------- */

int simulate_create (struct svc *svc, const struct settings *settings, struct err *err);
void simulate_destroy (struct simulation *sim); /* NULL is a no-op */
/* The same log again, read by a reload. ERR_CONFLICT when it is another one. */
int simulate_reload (struct simulation *sim, const struct settings *settings, struct err *err);
/* The service is whole: it may begin to run, unless it is stopped. Also after schedctl. */
void simulate_run (struct simulation *sim);
/* Nothing is left that could happen by itself; or jobs wait, and for HORIZON none has run or come. */
bool simulate_over (const struct simulation *sim);

/* --- follow.c ----------------------------------------------------------------------------- */

/* 0 without PRODUCTION. */
int follow_open (struct svc *svc, const struct settings *settings, struct err *err);

#endif
