/* rm: what nui-local wants from a resource manager, as a const struct of functions plus self.
 *
 * Every operation is asynchronous and idempotent: it returns when the wish is durable with the
 * resource manager; what came of it arrives as an event, never from inside an operation. A job is
 * named by (job_id, incarnation): a pair is launched at most once, ever. Arguments are read before a
 * function returns; events' pointers hold during the callback. */
#ifndef NUI_LOCAL_RM_RM_H
#define NUI_LOCAL_RM_RM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct rm_job {
    const char *job_id;        /* "alpha.17" */
    uint32_t incarnation;      /* 0, then one more for each restart */
    const char *local_account; /* of the operating system */
    time_us start;             /* launch then; at once when that is past */
    duration_us walltime;      /* TERM at the limit, KILL after the adapter's grace */
    /* where: hosts in node order, and how many tasks on each */
    uint32_t host_count;
    const char *const *host;
    const uint32_t *host_tasks;
    uint32_t procs; /* of all tasks together */
    int64_t memory_mb; /* of all tasks together; 0: not limited */
    /* what */
    const void *script;
    size_t script_len;
    uint32_t arg_count;
    const char *const *arg;
    uint32_t env_count;
    const char *const *env;  /* NAME=value: the job's own, then (winning) the NUI_ variables */
    const char *stdout_name; /* relative to the job's directory, no ".."; NULL or "": "stdout" */
    const char *stderr_name; /* NULL or "": "stderr" */
};

enum rm_end {
    RM_END_EXITED,       /* exit_code is the job's own */
    RM_END_SIGNALLED,    /* exit_code is 128 + signal */
    RM_END_TIMEOUT,      /* ended at or after its wallclock limit, by us */
    RM_END_CANCELLED,    /* ended by rm_ops.cancel; start 0: it never began */
    RM_END_START_FAILED, /* never ran: no script, no account, exec refused */
    RM_END_NODE_FAILURE, /* lost; whether it finished its work is unknown */
};

struct rm_status {
    bool started;
    bool ended;
    time_us start; /* 0: never */
    time_us end_at;
    enum rm_end end;
    int32_t exit_code;
    char text[256]; /* a sentence for START_FAILED and NODE_FAILURE, else "" */
};

enum rm_event_kind { RM_EVENT_STARTED, RM_EVENT_ENDED, RM_EVENT_NODES };

struct rm_event {
    enum rm_event_kind kind;
    const char *job_id;
    uint32_t incarnation;
    const struct rm_status *status;
};
typedef void (*rm_event_fn) (void *arg, const struct rm_event *event);

struct rm_node {
    const char *name;
    bool up;
};

struct rm_ops {
    const char *type; /* "EMBEDDED" */
    /* Launches. ERR_EXISTS: this (job_id, incarnation) was handed over before, use adopt;
     * ERR_DENIED: the account may not be used here. */
    int (*start) (void *self, const struct rm_job *job, struct err *err);
    /* Looks after a job that was handed over before this adapter was made; its events follow, also
     * those that happened in between. ERR_NOT_FOUND: it was never handed over. */
    int (*adopt) (void *self, const char *job_id, uint32_t incarnation, struct err *err);
    int (*signal) (void *self, const char *job_id, uint32_t incarnation, int signo,
                   struct err *err);
    /* TERM, then KILL after the grace; the end arrives as an event. */
    int (*cancel) (void *self, const char *job_id, uint32_t incarnation, struct err *err);
    /* What is known now. ERR_NOT_FOUND: never handed over. */
    int (*query) (void *self, const char *job_id, uint32_t incarnation, struct rm_status *out,
                  struct err *err);
    /* Path of a file of the job ("stdout", "stderr" by their configured names), malloc'ed, and
     * opened read-only without following links; -1 and ERR_NOT_FOUND while there is none. */
    int (*output_open) (void *self, const char *job_id, uint32_t incarnation, const char *stream,
                        struct err *err);
    /* Asks for everything anew; differences arrive as events. */
    int (*poll) (void *self, struct err *err);
    /* State of a node that the configuration names. */
    bool (*node_up) (void *self, const char *name);
    /* Lets go; jobs run on. */
    void (*destroy) (void *self);
};

struct rm {
    const struct rm_ops *ops;
    void *self;
};

const char *rm_end_name (enum rm_end end); /* "exited", "timeout" … */

#endif
