/* workload: jobs and machine of a simulation, as read from the user's files.
 *
 * Two formats, told apart by their first line: the Standard Workload Format (18 fields; Feitelson's
 * archive) and Maui's own workload trace (44 fields, `VERSION 230`). A machine is so many equal
 * nodes or Maui's resource trace (21 fields). Everything lives in one arena until workload_destroy.
 *
 * A job that cannot be simulated (no run time, no processors, larger than the machine …) is skipped
 * and counted by reason; a line that cannot be understood is an error, with file and line. */
#ifndef NUI_LOCAL_TRACE_WORKLOAD_H
#define NUI_LOCAL_TRACE_WORKLOAD_H

#include "local/core/types.h"

/* Of a line of Maui's workload trace; and the end date of a job that has none. */
enum { MAUITRACE_FIELDS = 44, MAUITRACE_NO_END_S = 2140000000 };

enum workload_skip {
    SKIP_NO_RUN_TIME,
    SKIP_NO_PROCESSORS,
    SKIP_NO_SUBMIT_TIME,
    SKIP_TOO_LARGE, /* for the whole machine */
    SKIP_NO_NODES,  /* no set of nodes has what its tasks ask */
    SKIP_PLACE,     /* asks for hosts by name or for a reservation */
    SKIP_REASONS
};
const char *workload_skip_text (enum workload_skip reason); /* "larger than the machine" … */

/* A job of the log. Fields of Maui's trace that an SWF log does not have are empty there. */
struct workload_job {
    uint64_t number;  /* SWF's, or the place in Maui's trace, from 1 */
    const char *name; /* "17", "j16" */
    time_us submit;
    duration_us run;
    time_us began; /* as the log has it; TIME_US_NONE: it does not say */
    duration_us limit;
    time_us deadline;          /* it is to have ended by then; 0: none */
    uint32_t cred[CRED_KINDS]; /* [CRED_QOS] is what was asked for; CRED_NONE: nothing */
    uint32_t procs;            /* all tasks together */
    struct req req;
    bool used_known;
    int64_t used_micro; /* processors in use on the average, in millionths; at most procs */
};

struct workload {
    struct arena *arena;
    struct cred_names *names; /* not owned; credentials are added as they appear */
    struct workload_job *job; /* by submit time, then number */
    uint64_t count;
    uint64_t read; /* jobs in the file, within the range asked for */
    uint64_t skipped[SKIP_REASONS];
    /* What tasks ask of a node, each as a feature number: "bigmem", "opsys:Linux", "mem>=512". */
    const char *constraint[FEATURES_MAX];
    uint32_t constraint_count;
    int64_t header_procs; /* MaxProcs of an SWF header; 0: not said */
};

struct workload_range { /* places in the file, from 1; last UINT64_MAX: to the end */
    uint64_t first;
    uint64_t last;
};

/* "A..B", "A..", "..B" or NULL for all. */
int workload_range_parse (const char *text, struct workload_range *out, struct err *err);
/* NULL with err: ERR_NOT_FOUND, ERR_IO, ERR_INVALID with file and line. */
struct workload *workload_read (const char *path, const struct workload_range *range,
                                struct cred_names *names, struct err *err);
void workload_destroy (struct workload *workload); /* NULL is a no-op */

/* --- machines ---------------------------------------------------------------------------- */

struct machine_group {
    struct node_spec spec;
    uint32_t copies;
};

struct machine {
    struct arena *arena;
    struct machine_group *group; /* in node order */
    uint32_t group_count;
    uint32_t node_count;
    int64_t procs;
    bool described; /* by a trace; without one only processors are known, and only they are asked */
    const char **name;     /* of each node, as the trace has them; NULL: machine_uniform */
    const char **features; /* of each: the trace's own, "std,bigmem"; "" none */
    /* Classes with fewer initiators than processors on some node: each task takes one of column
     * RES_GRES0 + i. */
    uint32_t gres_kinds;
    uint32_t gres_class[RES_MAX - RES_GRES0];
};

struct machine *machine_uniform (uint32_t nodes, uint32_t procs_per_node, struct err *err);
/* Maui's resource trace. Nodes get the features that the workload asks for and they have, so the
 * workload is read first. */
struct machine *machine_read (const char *path, const struct workload *workload, struct err *err);
void machine_destroy (struct machine *machine); /* NULL is a no-op */
/* The classes that a node takes with their initiators, as NODECFG's CLASS has them: "batch:4,short:2"; malloc'ed. NULL: the
 * trace restricts none. */
char *machine_classes (const struct machine *machine, const struct node_spec *node,
                       const struct cred_names *names);

/* Drops the jobs that this machine can never run, counting why. */
void workload_fit (struct workload *workload, const struct machine *machine);

#endif
