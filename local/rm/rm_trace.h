/* rm_trace: a resource manager of the mind, for SIMULATION. Jobs run nowhere: each ends when its run
 * time is over by the clock that the caller keeps.
 *
 * What is started or ended by a call is told at the next rm_trace_advance, which the caller makes
 * whenever its clock has moved and after each batch of decisions; `wake` says that there is something
 * to tell though the clock stands. Suspended jobs keep what is left of their run time until they are
 * resumed. All nodes are up, and every job uses all its processors. A pair (job, incarnation) runs at most once, as with any other. One
 * thread; O(log jobs) per event. */
#ifndef NUI_LOCAL_RM_RM_TRACE_H
#define NUI_LOCAL_RM_RM_TRACE_H

#include "local/rm/rm.h"

struct rm_trace_config {
    time_us (*now) (void *arg);
    /* How long a job of this limit runs; what is past its limit is cut off there (TIMEOUT). */
    duration_us (*run_of) (void *arg, const char *job_id, duration_us walltime);
    void (*wake) (void *arg);
    rm_event_fn on_event;
    void *arg;
};

/* Fills *out. */
int rm_trace_create (const struct rm_trace_config *config, struct rm *out, struct err *err);
/* Tells what has been started, and what ends until now, oldest first. */
void rm_trace_advance (struct rm *rm, time_us now);
/* The earliest end to come, or now when something waits to be told; TIME_US_MAX: nothing runs. */
time_us rm_trace_next (const struct rm *rm);

#endif
