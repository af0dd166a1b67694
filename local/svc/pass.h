/* pass: when a pass is made, and what its decisions lead to. Only the service's own wiring, SIMULATION and a start by hand
 * call it; what wants a pass says so with pass_wake (svc_i.h). */
#ifndef NUI_LOCAL_SVC_PASS_H
#define NUI_LOCAL_SVC_PASS_H

#include "local/svc/job.h"

void pass_run (
    struct svc *svc); /* now, and at once: for simulations, which have nobody to answer */
void pass_init (struct svc *svc);
void pass_close (struct svc *svc);
/* Starts an idle job on these nodes, as a pass would: the hold is asked for, then it is launched.
 * Nothing is changed when it fails. err is not NULL. */
int pass_start (struct svc *svc, struct site_job *job, const struct allocation *allocation,
                struct err *err);
/* All of it, once, before anything is served. */
int svc_recover (struct svc *svc, struct err *err);

#endif
