/* jobsignal: the signal that a job wants before its limit: "USR1", "B:USR1@120". Pure. */
#ifndef NUI_JOB_JOBSIGNAL_H
#define NUI_JOB_JOBSIGNAL_H

#include <stdbool.h>

#include "proto/base/quantity.h"

enum { JOBSIGNAL_BEFORE_S = 60, JOBSIGNAL_BEFORE_S_MAX = 65535 }; /* where nothing is said */

struct jobsignal {
    int number;  /* 0: none is wanted */
    bool script; /* it goes to the script's own process, not to the tasks that nui run started */
    duration_us before; /* its limit */
};

/* "" is none. HUP, INT, TERM, USR1 and USR2, also as SIGUSR1 or 10: those which nui run passes on. ERR_INVALID. */
int jobsignal_parse (const char *text, struct jobsignal *out, struct err *err);
/* The same, and it comes later than the start of a job with that limit; 0: the limit is not known yet. */
int jobsignal_check (const char *text, duration_us walltime, struct err *err);

#endif
