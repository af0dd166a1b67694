/* jobcheck: is a job sane by itself? One answer for the grid and for a site's own jobs. Pure. */
#ifndef NUI_RPC_JOBCHECK_H
#define NUI_RPC_JOBCHECK_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"

enum {
    JOB_REQS_MAX = 16,
    JOB_TASKS_MAX = 10000000,
    JOB_SITES_MAX = 1000,
    JOB_ARGS_MAX = 4096,
    JOB_SCRIPT_MAX = 1 << 20,
};

/* The job in signed bytes, guarded and within bounds (ENVELOPE_BODY_MAX, PBGUARD_FIELDS). NULL with err. */
Nui__Common__V1__Job *jobcheck_unpack (const ProtobufCBinaryData *body, struct err *err);
/* The same look at bytes that are to be signed. */
int jobcheck_bytes (const void *body, size_t len, struct err *err);
/* Limits and names; the sentence names the component and the bound. Without walltime_wanted it may have
 * no wallclock limit: its class has one. */
int jobcheck_component (const Nui__Common__V1__Component *c, bool walltime_wanted, struct err *err);
/* Its moments: not for a job that was taken before and comes again. One that nobody signed need not expire. */
int jobcheck_times (const Nui__Common__V1__Job *job, bool is_signed, time_us now, struct err *err);
uint64_t jobcheck_per_task (const Nui__Common__V1__Req *req); /* processors */
/* Of one of its sizes (jobshape.h). */
uint64_t jobcheck_procs (const Nui__Common__V1__Component *component, uint32_t shape);

#endif
