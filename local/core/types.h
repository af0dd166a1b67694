/* types: the plain values that the local core and its callers share. Pure; header only.
 *
 * Identities are struct types so that they cannot be swapped. Names (hosts, users, features) are
 * small numbers here; the shell keeps the names. Times are time_us (microseconds, UTC) and always
 * arguments; ends are exclusive: what ends at t is free at t. */
#ifndef NUI_LOCAL_CORE_TYPES_H
#define NUI_LOCAL_CORE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "local/core/policy.h"
#include "proto/base/quantity.h"

/* Given by the caller, never 0, never used twice. The last tie-break of every order: smaller
 * first, so numbers should grow with submission. */
struct job_id {
    uint64_t v;
};
/* Dense, given by cluster_node_add in the resource manager's order: "first available" is by it. */
struct node_id {
    uint32_t v;
};
/* Given by the caller, never 0 (0: none), never used twice. */
struct rsv_id {
    uint64_t v;
};

/* --- resources --------------------------------------------------------------------------- */

/* What a node has and a task takes. Columns from RES_GRES0 on are the site's generic resources
 * (and whatever else is counted per node: class initiators, jobs); how many are in use is said at
 * cluster_create or, when there are more, by cluster_gres_kinds_set. */
enum {
    RES_PROCS,
    RES_MEM_MB,
    RES_SWAP_MB,
    RES_DISK_MB,
    RES_GRES0,
    RES_MAX = 32,
};

struct resources {
    int32_t v[RES_MAX];
};

enum { FEATURES_MAX = 128 };

struct features { /* a set of at most FEATURES_MAX features by number */
    uint64_t word[FEATURES_MAX / 64];
};

enum { PARTITION_ANY = 0, PARTITIONS_MAX = 63 }; /* nodes have 1..; a req may name one */

static inline uint64_t partition_bit (uint32_t partition)
{
    return UINT64_C (1) << (partition - 1);
}

/* Who else may be on a node (NODEACCESSPOLICY). A running job's policy binds those that come. */
enum node_access {
    ACCESS_SITE, /* of a req: what its class or the site says */
    ACCESS_SHARED,
    ACCESS_SINGLEUSER, /* jobs of one user only */
    ACCESS_SINGLEJOB,  /* nobody else */
    ACCESS_SINGLETASK, /* nobody else, and one task */
};

/* Beside the ids of cluster_nodeset_define. */
#define NODESET_SITE 0u
#define NODESET_NONE UINT32_MAX

/* One shape of tasks. A task is atomic: all of it on one node. All fields but tasks, task and
 * tasks_per_node may be zero: nothing asked. */
struct req {
    uint32_t tasks;           /* 1..TASKS_MAX */
    uint32_t tasks_per_node;  /* exactly so many on each node used; 0: any number */
    struct resources task;    /* per task; procs >= 1 */
    struct features features; /* the node has all of these */
    struct features exclude;  /* … and none of these */
    struct features prefer;   /* PRIORITYF's PREF: nodes with all of these are liked better */
    uint32_t partition;       /* PARTITION_ANY or one */
    bool exclusive;           /* whole nodes that nobody else uses */
    uint8_t access;           /* enum node_access */
    uint32_t node_procs;      /* nodes of exactly so many processors (EXACTPROC) */
    uint32_t hosts;           /* only nodes of this list: cluster_hosts_define */
    uint32_t nodeset;         /* NODESET_SITE, NODESET_NONE or an id */
    uint64_t partitions;      /* only these: partition_bit */
};

/* So many of a floating licence (not tied to a node) for the whole job. */
struct licence {
    uint32_t kind; /* < the kinds of cluster_licences_set */
    int32_t count; /* > 0 */
};

enum {
    TASKS_MAX = (1 << 24) - 1,
    REQS_MAX = 64,
    NODES_MAX = 1 << 20,
    JOBS_MAX = 1 << 24, /* in the queue or running at one time */
    LICENCES_MAX = 64,  /* kinds */
};

/* tasks of req (index within the job) on one node. */
struct placement {
    struct node_id node;
    uint32_t tasks : 24;
    uint32_t req : 8;
};

struct allocation {
    uint32_t count;
    struct placement *item; /* by req, then in order of choice; owner as stated where it is used */
};

/* --- nodes ------------------------------------------------------------------------------- */

enum node_state {
    NODE_UP,
    NODE_DRAINED, /* running jobs finish, nothing new starts or is promised */
    NODE_DOWN,    /* the same, and what runs there is the shell's to end */
};

struct node_spec {
    struct resources configured;
    struct features features;
    uint32_t partition; /* >= 1 */
    int32_t speed_ppm;  /* 1000000: nominal; FASTEST takes the highest first */
    int32_t priority;   /* NODEALLOCATIONPOLICY PRIORITY takes the highest first */
    uint32_t gone; /* 1: the site has it no more; NODEDOWNSTATEDELAYTIME does not bring it back */
    uint64_t classes;           /* bits of cluster_class_set that it serves; 0: all */
    uint32_t max_jobs_per_user; /* 0: any number */
    uint32_t max_procs_per_user;
    int32_t max_load_milli; /* NODELOADPOLICY ADJUSTSTATE: busy from this load on; 0: the site's */
    uint32_t priority_fn;   /* PRIORITYF: cluster_priority_fn_define; 0: plain PRIORITY */
};

/* --- jobs -------------------------------------------------------------------------------- */

enum job_state {
    JOB_IDLE,     /* in the queue; holds and the pass decide */
    JOB_STARTING, /* a plan started it; resources are dedicated, the shell is launching it */
    JOB_RUNNING,
    JOB_SUSPENDED, /* stopped on its nodes, which others may use; goes on there and nowhere else */
};

enum job_hold { /* bits */
                HOLD_USER = 1 << 0,
                HOLD_SYSTEM = 1 << 1,
                HOLD_BATCH = 1 << 2,
                HOLD_DEPENDENCY = 1 << 3, /* what it depends on has not happened */
                HOLD_TOKEN = 1 << 4,      /* a co-allocated part without its start token */
};

enum job_flag {                               /* bits */
                JOB_SYSTEM_PRIORITY = 1 << 0, /* setspri absolute: system_priority counts alone */
                JOB_PREEMPTOR = 1 << 1,       /* as its QoS's flag of that name */
                JOB_PREEMPTEE = 1 << 2,       /* likewise */
                JOB_NORESTART = 1 << 3,       /* must not be run twice: nobody requeues it */
                JOB_FIRM = 1 << 4,            /* a part of a co-allocation: nobody displaces it */
};

/* Measured use of its processors by a running job. */
struct job_usage {
    duration_us cpu_time; /* of all its processes, up to `at` */
    time_us at;           /* TIME_US_NONE: unknown */
    int64_t used_micro;   /* processors in use since, in millionths; -1: never measured */
};

/* What a job is, beside its credentials, for ACLs of type JOBATTR. Bits. */
enum job_attr {
    JOBATTR_GRID = 1 << 0,        /* came through a metascheduler */
    JOBATTR_COALLOCATED = 1 << 1, /* a part of a job that runs on several sites at once */
    JOBATTR_PREEMPTEE = 1 << 2,
    JOBATTR_PREEMPTOR = 1 << 3,
    JOBATTR_INTERACTIVE = 1 << 4,
    JOBATTR_RESTARTABLE = 1 << 5,
};
enum { JOBATTR_COUNT = 6 };

struct job_spec {
    struct job_id id;
    uint32_t cred[CRED_KINDS]; /* CRED_NONE where absent; [CRED_QOS] as resolved by the policy */
    time_us submit;
    time_us not_before;            /* TIME_US_NONE: at once */
    duration_us walltime_limit;    /* > 0 */
    uint32_t req_count;            /* 1..REQS_MAX */
    const struct req *req;         /* copied */
    uint32_t licence_count;        /* at most LICENCES_MAX */
    const struct licence *licence; /* copied; each kind once */
    uint32_t holds;                /* enum job_hold */
    uint32_t flags;                /* enum job_flag */
    int32_t system_priority;       /* setspri: 0 none; see priority.h */
    struct rsv_id reservation;     /* runs inside this reservation only (one's id, or the group of
                                   several); 0: none */
    time_us deadline;              /* must have ended by then; 0: none */
    time_us data_at;      /* its data is not there, and expected then: no start, whatever the time
                        is, until this is 0. A place is promised from then on, until
                        STAGEINGRACE after the first moment at which it was expected */
    uint64_t array;       /* jobs of one array have the same number; 0: none */
    uint32_t array_limit; /* so many of them run at one time; 0: any number */
    uint32_t attrs;       /* enum job_attr */
};

/* --- reservations ------------------------------------------------------------------------ */

enum rsv_kind {
    RSV_COURTESY, /* a lease: while it stands nobody may use it, whatever its ACL (none) says */
    RSV_FIRM,     /* committed: for the jobs that name it (struct job_spec.reservation) */
    RSV_ADMIN,    /* an administrator's or a standing one: for whom its ACL admits */
};

/* Who asks for room, as ACLs see it. */
struct who {
    uint32_t cred[CRED_KINDS]; /* CRED_NONE where absent */
    duration_us walltime;
    uint32_t procs;
    uint32_t attrs;      /* enum job_attr */
    struct rsv_id named; /* the reservation it asks for; 0: none */
};

enum acl_type { /* the kinds of credentials come first, with their own numbers */
                ACL_JOBATTR = CRED_KINDS,
                ACL_DURATION, /* the job's wallclock limit */
                ACL_PROCS,
                ACL_TYPES
};
enum acl_compare { ACL_LE, ACL_LT, ACL_EQ, ACL_NE, ACL_GE, ACL_GT };
enum affinity { /* smaller: taken first */
                AFFINITY_POSITIVE,
                AFFINITY_NEUTRAL,
                AFFINITY_UNRESERVED, /* of nodes, not of entries */
                AFFINITY_NEGATIVE,
                AFFINITY_PREEMPTIBLE, /* a preemptor in a reservation with the flag PREEMPTEE */
                AFFINITIES
};

/* One line of an access list. A list admits whom no entry with deny matches, every required one
 * matches, and, where there are others, at least one of those. One that is empty, or only denies, admits
 * nobody. */
struct acl_entry {
    uint8_t type;     /* cred_kind or acl_type */
    uint8_t compare;  /* enum acl_compare, of ACL_DURATION and ACL_PROCS */
    uint8_t affinity; /* POSITIVE, NEUTRAL or NEGATIVE */
    bool deny;
    bool required;
    int64_t value; /* a credential's number, bits of job_attr, microseconds, processors */
};

enum rsv_flag {                         /* bits; Maui's names */
                RSV_SINGLEUSE = 1 << 0, /* gone with the end of the first job that used it */
                RSV_BYNAME = 1 << 1,    /* admits only jobs that name it, within its ACL */
                RSV_META = 1 << 2,      /* admits only grid jobs, within its ACL */
                RSV_PREEMPTEE = 1 << 3, /* preemptors may use it, last of all */
                RSV_TIMEFLEX =
                    1 << 4, /* may begin later than asked for, if there is no room before */
                RSV_SPACEFLEX = 1 << 5,     /* nodes that are lost are replaced by others */
                RSV_DEDICATEDNODE = 1 << 6, /* whole nodes, and no other reservation on them */
                RSV_DEDICATEDRESOURCE = 1
                                        << 7, /* on nothing that a job or another reservation has */
                RSV_FORCED = 1 << 8, /* whatever runs or is reserved there; never what is promised
                                       to co-allocations */
                RSV_OWNERPREEMPT = 1 << 9, /* its owner's jobs may evict others' from it */
                RSV_SHARED = 1 << 10,      /* ACCESS=SHARED: may lie over another that is shared */
                RSV_STANDING = 1 << 11,    /* made by SRCFG */
};

/* Of one that comes again each week, on the same nodes each time. */
struct rsv_again {
    uint64_t series;  /* those of the same are one another's times; 0: it does not come again */
    uint32_t days;    /* bit i: i days after `from`; bit 0 is set */
    time_us from, to; /* this time, even if the reservation was made in the midst of it */
};

struct rsv_spec {
    struct rsv_id id;
    enum rsv_kind kind;
    time_us start;
    time_us end;           /* > start; TIME_US_MAX: no end */
    uint32_t req_count;    /* what its allocation was placed for */
    const struct req *req; /* copied */
    /* COURTESY and FIRM: for whom, so that ACLs can admit it and its class counts; NULL: nobody */
    const struct who *who; /* copied */
    uint32_t licence_count;
    const struct licence *licence; /* copied */
    /* COURTESY and FIRM: which co-allocation it is a part of, and of which it comes instead: only one of the two
     * is ever used (instead.c). 0: none */
    uint64_t whose, instead;
    /* ADMIN */
    uint32_t flags; /* enum rsv_flag */
    uint32_t acl_count;
    const struct acl_entry *acl; /* copied */
    uint64_t group;              /* what jobs may name instead of its id; 0: none */
    bool owned;
    struct acl_entry owner; /* a credential */
    struct rsv_again again;
    bool placed; /* by cluster_rsv_place, or once before: only co-allocated parts are looked
                    at when it is made */
};

#endif
