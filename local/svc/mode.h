/* mode: what becomes of what a pass decides. NORMAL and SIMULATION act. TEST writes down what it would
 * have done and does nothing. INTERACTIVE asks on the administrator's terminal, one act at a time:
 *
 *     Command: start job alpha.3 on node list alpha01,alpha02
 *     Accept: (y/n) [default: n]?
 *
 * What is accepted is done by the next pass that decides the same again; a question that a later pass
 * would not ask any more is withdrawn. What is declined is not asked again before RMPOLLINTERVAL. Where
 * nobody can answer (no terminal, end of file) everything is declined. What an administrator orders
 * himself (runjob, canceljob) is not asked, and under TEST it starts nothing. */
#ifndef NUI_LOCAL_SVC_MODE_H
#define NUI_LOCAL_SVC_MODE_H

#include "local/svc/svc_i.h"

struct mode;

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

#endif
