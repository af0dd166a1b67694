/* rm: what nui-local wants from a resource manager, as a const struct of functions plus self.
 *
 * Every operation is asynchronous and idempotent: it returns when the wish is durable with the
 * resource manager; what came of it arrives as an event, never from inside an operation. A job is
 * named by (job_id, incarnation): a pair is launched at most once, ever. Arguments are read before a
 * function returns; events' pointers hold during the callback.
 *
 * Numbers begin anew with a new state directory, and go back with a restored one, while directories and
 * the resource manager's records stay. So a job also has a mark, of letters and digits, that no other
 * submission has: what is found under its name and has another mark is not this job's. */
#ifndef NUI_LOCAL_RM_RM_H
#define NUI_LOCAL_RM_RM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum { RM_MARK_MAX = 65 }; /* with its NUL */

struct rm_job {
    const char *job_id;        /* "alpha.17" */
    uint32_t incarnation;      /* 0, then one more for each restart */
    const char *mark;          /* which submission it is (see below); NULL or "": none */
    const char *hold;          /* of the bank, for it; NULL or "": none */
    const char *local_account; /* of the operating system */
    time_us start;             /* launch then; at once when that is past */
    duration_us walltime;      /* TERM at the limit, KILL after the adapter's grace */
    /* where: hosts in node order, and how many tasks on each */
    uint32_t host_count;
    const char *const *host;
    const uint32_t *host_tasks;
    uint32_t procs;    /* of all tasks together */
    int64_t memory_mb; /* of all tasks together; 0: not limited */
    /* what */
    const void *script;
    size_t script_len;
    uint32_t arg_count;
    const char *const *arg;
    uint32_t env_count;
    const char *const *env; /* NAME=value: the job's own, then (winning) the NUI_ variables */
    /* more names, each list NULL at its end or none at all, for what only the adapter knows: the job's directory
     * and the file with a host for each task (NUI_NODEFILE) */
    const char *const *directory_names;
    const char *const *nodefile_names;
    const char *stdout_name; /* relative to the job's directory, no ".."; NULL or "": "stdout" */
    const char *stderr_name; /* NULL or "": "stderr" */
    const char *directory; /* where it starts: "/p" or "~/p", the account's; NULL or "": its own */
    /* Where ops->warns: this signal when it has run so long; 0: none. To the script's first process, else to the tasks
     * that it has started (nui run, srun). */
    int signal;
    bool signal_script;
    duration_us signal_after;
    /* for resource managers that know of such things; NULL or "": not said */
    const char *class_name;
    const char *account;
    const char *qos;
    /* below the jobs' directory: this one becomes the job's own; NULL: it is made */
    const char *staged;
    /* Not NULL: the resource manager has the job already, under this name (see bind); it is to run
     * it on these hosts, and of the rest only job_id, incarnation and procs count. */
    const char *rm_id;
};

enum rm_end {
    RM_END_EXITED,       /* exit_code is the job's own */
    RM_END_SIGNALLED,    /* exit_code is 128 + signal */
    RM_END_TIMEOUT,      /* ended at or after its wallclock limit, by us */
    RM_END_CANCELLED,    /* ended by rm_ops.cancel; start 0: it never began */
    RM_END_START_FAILED, /* never ran: it could not be started */
    RM_END_REFUSED,      /* never ran: it is not wanted there */
    RM_END_MISTAKE,      /* never ran, by its own fault (mistake.h): it would not another time */
    RM_END_OUTPUT,       /* ended by us: its output grew past the limit */
    RM_END_NODE_FAILURE, /* lost; whether it finished its work is unknown */
    RM_END_REQUEUED,     /* ended, and waits at the resource manager again under the same rm_id */
};

struct rm_status {
    bool started;
    bool ended;
    time_us start; /* 0: never */
    time_us end_at;
    enum rm_end end;
    int32_t exit_code;
    bool cpu_known;       /* once ended: the next says something */
    duration_us cpu_time; /* of all its processes */
    char text[256]; /* a sentence for START_FAILED, REFUSED, MISTAKE, OUTPUT and NODE_FAILURE, else
                       "" */
};

/* A job that was given to the resource manager itself (sbatch), as it is there now. Strings are ""
 * where nothing is said, lists are as the resource manager writes them. */
enum rm_native_state { RM_NATIVE_PENDING, RM_NATIVE_RUNNING };

struct rm_native {
    const char *rm_id; /* "12", a task of an array "12_3" */
    time_us submit;    /* with rm_id: never twice */
    enum rm_native_state state;
    const char *job_id; /* as bound; NULL: not yet */
    const char *name, *user, *group, *account, *qos, *class_name;
    uint32_t nodes_min, nodes_max;  /* 0: not said */
    uint32_t tasks, tasks_per_node; /* 0: not said */
    uint32_t procs;                 /* of all tasks together */
    uint32_t procs_per_node_min;
    int64_t memory_per_node_mb, memory_per_proc_mb; /* 0: not said */
    bool exclusive;
    duration_us walltime; /* 0: no limit */
    time_us begin;        /* 0: at once */
    const char *features, *licences, *hosts, *hosts_excluded;
    const char *gres_per_node, *gres_per_task, *gres_per_job; /* as in rm_node */
    const char *dependency; /* what it still waits for; "" nothing */
    const char *array_id;   /* "" no array */
    uint32_t array_limit;   /* tasks of it that may run at a time; 0: all */
    bool held_user, held_admin;
    time_us start;         /* 0: does not run */
    const char *placement; /* "n1:2,n2:1": processors on each node, while it runs */
    bool unasked;          /* it runs, and nobody here asked for that */
};

/* What of it matters to whoever is told; never 0. */
uint64_t rm_native_digest (const struct rm_native *native);

enum rm_event_kind {
    RM_EVENT_STARTED,
    RM_EVENT_SUSPENDED, /* or goes on: suspended; by whomever */
    RM_EVENT_ENDED,
    RM_EVENT_NODES,   /* states or configuration: ask node_up, nodes */
    RM_EVENT_LOADS,   /* nothing of that, but what nodes says of their load and memory */
    RM_EVENT_NATIVE,  /* new and changed native jobs */
    RM_EVENT_HANDED,  /* rm_id: under this name it has the job that start handed over */
    RM_EVENT_UNKNOWN, /* an adopted or bound job is not there, nor any record of its end */
    RM_EVENT_REACH,   /* fresh () changed */
};

struct rm_event {
    enum rm_event_kind kind;
    const char *job_id;
    uint32_t incarnation;
    const struct rm_status *status;
    const char *placement; /* STARTED, where the resource manager chose itself: "n1:2,n2:1"; NULL */
    bool unasked;          /* STARTED: nobody here asked for it */
    bool suspended;
    const char *rm_id; /* HANDED */
    time_us submit;    /* ENDED, of the resource manager's own jobs: as it says now; 0: unknown */
    const struct rm_native *native;
    uint32_t native_count;
};
/* All of it, to be looked at when the callback is over. In the arena. */
void rm_event_copy (const struct rm_event *event, struct arena *arena, struct rm_event *out);
typedef void (*rm_event_fn) (void *arg, const struct rm_event *event);

/* What all processes of a running job use. */
struct rm_used {
    duration_us cpu_time; /* so far */
    int64_t memory_mb;    /* now, resident; -1: unknown */
};

/* What keeps a running job within a limit. */
enum rm_keeper {
    RM_KEPT_BY_NOTHING, /* or it has no such limit */
    RM_KEPT_BY_CGROUP,  /* all of its processes together */
    RM_KEPT_BY_RLIMIT,  /* each process by itself; of processes, all of its account's */
};

struct rm_limits {
    enum rm_keeper memory, processors, cpu_time, processes;
};

enum rm_node_state { RM_NODE_UP, RM_NODE_DRAINED, RM_NODE_DOWN };

struct rm_node {
    const char *name;
    enum rm_node_state state;
    const char *reason; /* why drained or down; "" */
    uint32_t procs;
    int64_t memory_mb, disk_mb;
    int64_t weight;         /* the lowest is preferred */
    int32_t load_milli;     /* load average in thousandths; -1: unknown */
    int64_t memory_used_mb; /* by whatever runs there; -1: unknown */
    const char *features;   /* "a,b" */
    const char *gres;       /* "gpu:2,gpu.tesla:2,fpga:1": all of a kind, then each type */
    const char *classes;    /* "batch,debug" */
    const char *address;    /* "": not said */
};

/* Nodes that are promised to somebody. */
struct rm_reservation {
    const char *name;   /* of letters, digits, '.', '_' and '-' */
    time_us start, end; /* end TIME_US_MAX: none */
    uint32_t host_count;
    const char *const *host;
    const uint32_t *host_procs; /* of each */
    const char *user;           /* local account that it is for; NULL: whoever is started there */
};

enum rm_hold { RM_HOLD_USER, RM_HOLD_ADMIN };

struct rm_gone {
    const char *job_id;
    uint32_t incarnation;
    const char *mark; /* what has another one stays */
};

enum { RM_GONE_MAX = 200 }; /* of one forget */

struct rm_ops {
    const char *type; /* as its rm_kind is called */
    bool here;        /* jobs are processes of this machine */
    bool warns;       /* sends rm_job.signal */
    bool simulated;   /* nothing is run: start needs no script, account or environment */
    /* Launches. ERR_EXISTS: this (job_id, incarnation) was handed over before, use adopt;
     * ERR_DENIED: the account may not be used here; ERR_INVALID: the job as it is cannot be run,
     * its own fault. */
    int (*start) (void *self, const struct rm_job *job, struct err *err);
    /* Looks after a job that was handed over before this adapter was made; its events follow, also
     * those that happened in between. ERR_NOT_FOUND: it was never handed over. */
    int (*adopt) (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                  struct err *err);
    int (*signal) (void *self, const char *job_id, uint32_t incarnation, int signo,
                   struct err *err);
    /* Whether a job could be started as this account, with a sentence why not. May be NULL: the resource manager knows. */
    int (*account_check) (const char *local_account, struct err *err);
    /* TERM, then KILL after the grace; the end arrives as an event. */
    int (*cancel) (void *self, const char *job_id, uint32_t incarnation, struct err *err);
    /* What a running job really uses. May be NULL: never known. ERR_NOT_FOUND: it does not run, or is
     * not to be measured. */
    int (*used) (void *self, const char *job_id, uint32_t incarnation, struct rm_used *out,
                 struct err *err);
    /* What a running job is kept within, as it was started. May be NULL: the resource manager's own affair.
     * ERR_NOT_FOUND: it does not run. */
    int (*limits) (void *self, const char *job_id, uint32_t incarnation, struct rm_limits *out,
                   struct err *err);
    /* Path of a file of the job ("stdout", "stderr" by their configured names), malloc'ed, and
     * opened read-only without following links; -1 and ERR_NOT_FOUND while there is none. */
    int (*output_open) (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                        const char *stream, struct err *err);
    /* Asks for everything anew; differences arrive as events. */
    int (*poll) (void *self, struct err *err);
    /* Removes what is kept of jobs that ended (their files, output among them): each with all its
     * incarnations up to the one given. Asynchronous; done comes from the loop, ok false when
     * something is left. One at a time (ERR_EXISTS). NULL: nothing is kept. */
    int (*forget) (void *self, const struct rm_gone *jobs, uint32_t count,
                   void (*done) (void *arg, bool ok), void *arg, struct err *err);
    /* State of a node that the configuration names. */
    bool (*node_up) (void *self, const char *name);
    /* Why it is not up, or up and yet to get no work (*drained_out); NULL: neither. May be NULL: nobody knows. Holds until the
     * next call or event. */
    const char *(*node_why) (void *self, const char *name, bool *drained_out);
    /* Lets go; jobs run on. */
    void (*destroy) (void *self);

    /* The rest is NULL where a resource manager has nothing of the kind. */

    /* Whether what it last said is new enough to decide by. NULL: always. */
    bool (*fresh) (void *self);
    /* Every job of its own that ended before that moment was told of. To be kept over a restart; 0:
     * not known. */
    time_us (*settled) (void *self);
    /* Nodes it has, in its order; hold until the next call or event. */
    const struct rm_node *(*nodes) (void *self, uint32_t *count_out);
    /* These, and no others of ours, are to be kept from whoever else uses the resource manager. Jobs that
     * are started on their nodes are started inside them. */
    int (*reserve) (void *self, const struct rm_reservation *list, uint32_t count, struct err *err);
    /* Floating licences, "matlab:4,ansys:2"; hold until the next call or event. */
    const char *(*licences) (void *self);
    /* From now on its job rm_id, submitted then, is this one: STARTED, SUSPENDED, ENDED and UNKNOWN
     * follow. started: the run that was told of before a restart (0: none), whose end follows even if
     * the job waits or runs again by now. */
    int (*bind) (void *self, const char *rm_id, time_us submit, const char *job_id,
                 uint32_t incarnation, time_us started, struct err *err);
    /* Wishes about a bound or handed over job; what came of it shows in NATIVE events. */
    int (*hold) (void *self, const char *job_id, uint32_t incarnation, enum rm_hold kind, bool on,
                 struct err *err);
    int (*requeue) (void *self, const char *job_id, uint32_t incarnation, struct err *err);
    /* Stops its processes and the clock of its limit, or lets them go on. Idempotent. */
    int (*suspend) (void *self, const char *job_id, uint32_t incarnation, bool on, struct err *err);
};

struct rm {
    const struct rm_ops *ops;
    void *self;
};

const char *rm_keeper_name (enum rm_keeper keeper); /* "nothing", "cgroup", "rlimit" */
uint32_t rm_job_tasks (const struct rm_job *job);   /* on all its hosts */
const char *rm_end_name (enum rm_end end);          /* "exited", "timeout" … */

#endif
