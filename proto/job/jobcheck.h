/* jobcheck: is a job sane by itself? One answer for the grid and for a site's own jobs. With the sizes that a component may be
 * run in (jobshape.c) and the files that are brought to its site and taken away (jobstage.c). Pure. */
#ifndef NUI_JOB_JOBCHECK_H
#define NUI_JOB_JOBCHECK_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"

enum {
    JOB_REQS_MAX = 16,
    JOB_TASKS_MAX = 10000000,
    JOB_SITES_MAX = 1000,
    JOB_ARGS_MAX = 1024, /* and as many variables */
    JOB_NAME_MAX = 255,
    JOB_DIRECTORY_MAX = 1000,
    JOB_SCRIPT_MAX = 1 << 20,
};

/* The job in signed bytes, guarded and within bounds (ENVELOPE_BODY_MAX, PBGUARD_FIELDS). NULL with err. */
Nui__Common__V1__Job *jobcheck_unpack (const ProtobufCBinaryData *body, struct err *err);
/* The same look at bytes that are to be signed. */
int jobcheck_bytes (const void *body, size_t len, struct err *err);
/* Its name and its account: of a job that comes for the first time. */
int jobcheck_name (const Nui__Common__V1__Job *job, struct err *err);
/* What a component is called for and run with: class, QoS, reservation, arguments, variables. */
int jobcheck_words (const Nui__Common__V1__Component *c, struct err *err);
/* Limits and names, jobcheck_words too; the sentence names the component and the bound. Without walltime_wanted it may have
 * no wallclock limit: its class has one. */
int jobcheck_component (const Nui__Common__V1__Component *c, bool walltime_wanted, struct err *err);
/* A job without processes: two components or more, each of one kind of tasks, without what only a process needs. */
int jobcheck_reserve (const Nui__Common__V1__Job *job, struct err *err);
/* Its moments: not for a job that was taken before and comes again. One that nobody signed need not expire. */
int jobcheck_times (const Nui__Common__V1__Job *job, bool is_signed, time_us now, struct err *err);
uint64_t jobcheck_per_task (const Nui__Common__V1__Req *req); /* processors */
/* Of one of its sizes. */
uint64_t jobcheck_procs (const Nui__Common__V1__Component *component, uint32_t shape);

/* --- jobshape.c ---------------------------------------------------------------------------
 * Shape 0 is what the component itself says; shape i > 0 is shapes[i - 1]: other tasks in the first
 * req and, where it has one, another walltime. Everything else of the component holds for each. */

enum { JOB_SHAPES_MAX = 16 };

/* Too many, none, as many tasks as another, or so many that a node count does not divide:
 * ERR_INVALID. */
int jobshape_check (const Nui__Common__V1__Component *component, uint32_t shape, struct err *err);
/* Of a shape that was checked. */
uint32_t jobshape_tasks (const Nui__Common__V1__Component *component, uint32_t shape, size_t req);
duration_us jobshape_walltime (const Nui__Common__V1__Component *component, uint32_t shape);
/* The shortest of all shapes. */
duration_us jobshape_walltime_min (const Nui__Common__V1__Component *component);
/* Checks, then makes the component say what that shape says. */
int jobshape_apply (Nui__Common__V1__Component *component, uint32_t shape, struct err *err);

/* --- jobstage.c ---------------------------------------------------------------------------
 * What client, metascheduler and site hold a list of transfers to: at most JOB_STAGE_IN_MAX in
 * and JOB_TRANSFERS_MAX out; URLs and paths as stagespec.h has them; of what is brought in no path twice, none inside
 * another, and none that the site itself writes. */

enum { JOB_TRANSFERS_MAX = 64, JOB_STAGE_IN_MAX = 256 };

/* ERR_INVALID or ERR_LIMIT: one sentence that names the component and what is wrong. */
int jobstage_check (const Nui__Common__V1__Component *component, struct err *err);

#endif
