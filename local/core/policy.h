/* policy: everything an administrator can ask of the scheduling pass, as plain numbers.
 *
 * Pure. A policy is built once (defaults, then edits, then policy_seal) and is read-only from then
 * on, so that a pass, a simulation and a reload can share it; a reload builds a new one on the same
 * names. Names, formulas and defaults are Maui's; where the
 * guide and the source disagree the guide's default is taken, except REJECTNEGPRIOJOBS (FALSE, as
 * real installations show).
 *
 * Credentials are small dense numbers per kind (struct cred_names); number 0 of each kind is
 * "DEFAULT". What is said for DEFAULT holds for every credential of the kind that says nothing of
 * its own; policy_seal resolves this, so that policy_cred () is one load. */
#ifndef NUI_LOCAL_CORE_POLICY_H
#define NUI_LOCAL_CORE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/base/strtab.h"

/* --- credentials ------------------------------------------------------------------------- */

enum cred_kind { CRED_USER, CRED_GROUP, CRED_ACCOUNT, CRED_CLASS, CRED_QOS, CRED_KINDS };

#define CRED_DEFAULT 0u       /* the number of "DEFAULT" in every kind; also the default QoS */
#define CRED_NONE STRTAB_NONE /* a job without an account, … */

/* Names of credentials; shared by cluster, policies and their successors; numbers never change. */
struct cred_names {
    struct strtab *tab[CRED_KINDS];
    /* Names of reservations, which the shell keeps: NULL, or NULL as an answer: their numbers. */
    const char *(*rsv_name) (void *self, uint64_t rsv);
    void *rsv_self;
    struct strtab *partition; /* number n is partition n + 1; "DEFAULT" is partition 1 */
    struct strtab *licence;   /* floating licences */
};

void cred_names_init (struct cred_names *names); /* interns DEFAULT as 0 */
void cred_names_free (struct cred_names *names);
const char *cred_kind_name (enum cred_kind kind); /* "user", "group", "account", "class", "qos" */
/* "DEFAULT", "alice" …; "[NONE]" for CRED_NONE or a number that is not there. */
const char *cred_name (const struct cred_names *names, enum cred_kind kind, uint32_t id);

/* --- priority ---------------------------------------------------------------------------- */

enum prio_component {
    PRIO_CRED,
    PRIO_FS,
    PRIO_RES,
    PRIO_SERV,
    PRIO_TARG,
    PRIO_USAGE, /* active jobs only */
    PRIO_COMPONENTS
};

enum prio_sub {
    PRIO_USER,
    PRIO_GROUP,
    PRIO_ACCOUNT,
    PRIO_CLASS,
    PRIO_QOS,
    PRIO_FSUSER,
    PRIO_FSGROUP,
    PRIO_FSACCOUNT,
    PRIO_FSCLASS,
    PRIO_FSQOS,
    PRIO_NODE,
    PRIO_PROC,
    PRIO_MEM,
    PRIO_SWAP,
    PRIO_DISK,
    PRIO_PS,
    PRIO_PE,
    PRIO_WALLTIME,
    PRIO_UPROC,
    PRIO_UJOB,
    PRIO_QUEUETIME,
    PRIO_XFACTOR,
    PRIO_BYPASS,
    PRIO_SPVIOLATION,
    PRIO_TARGETQUEUETIME,
    PRIO_TARGETXFACTOR,
    PRIO_CONSUMED,
    PRIO_REMAINING,
    PRIO_PERCENT,
    PRIO_EXECUTIONTIME,
    PRIO_SUBS
};

enum job_prio_accrual { ACCRUAL_QUEUEPOLICY, ACCRUAL_FULLPOLICY, ACCRUAL_ALWAYS };

/* --- fairshare --------------------------------------------------------------------------- */

enum fs_policy { FS_NONE, FS_DEDICATEDPS, FS_DEDICATEDPES, FS_UTILIZEDPS };
enum fs_target_type {
    FS_TARGET_NONE,
    FS_TARGET_TARGET,       /* 25.0  */
    FS_TARGET_FLOOR,        /* 25.0+ */
    FS_TARGET_CEILING,      /* 25.0- */
    FS_TARGET_CAP_ABSOLUTE, /* 25.0^ */
    FS_TARGET_CAP_RELATIVE, /* 25.0% */
};
enum { FS_DEPTH_MAX = 32 };

/* --- limits ------------------------------------------------------------------------------ */

enum limit_kind {
    LIMIT_JOB,
    LIMIT_PROC,
    LIMIT_NODE,
    LIMIT_PS,      /* remaining processor-seconds */
    LIMIT_PE,      /* millionths of a processor equivalent */
    LIMIT_MEM,     /* MB */
    LIMIT_WC,      /* remaining wallclock seconds */
    LIMIT_MINPROC, /* a job needs at least this many */
    LIMIT_KINDS
};
enum limit_level { LIMIT_SOFT, LIMIT_HARD, LIMIT_LEVELS };

/* Objects that carry limits: the five kinds of credentials and the system (SYSCFG). */
enum { LIMIT_OBJECT_SYSTEM = CRED_KINDS, LIMIT_OBJECTS };

enum {
    LIMIT_OBJECT_PARTITION = LIMIT_OBJECTS
}; /* PARCFG: partition.c, not limits.c, keeps these */

#define LIMIT_UNLIMITED INT64_MAX /* said with -1: no limit, whatever DEFAULT says */

/* Values count only where the mask has bit 1u << limit_kind. */
struct policy_limits {
    uint32_t active_mask;
    uint32_t idle_mask;
    uint32_t per_job_mask; /* MAXPROCPERJOB, MAXNODEPERJOB, MAXPSPERJOB, MAXWCPERJOB */
    int64_t active[LIMIT_LEVELS][LIMIT_KINDS];
    int64_t idle[LIMIT_KINDS];
    int64_t per_job[LIMIT_KINDS];
};

/* `CLASSCFG[x] MAXJOB[USER]=n`, `MAXPROC[USER:steve]=n`: of the jobs of this object, those of each
 * (other_id == CRED_NONE) or one credential of other_kind. Idle ones have value[LIMIT_HARD] only.
 */
struct policy_cross {
    bool idle;
    enum limit_kind limit;
    enum cred_kind other_kind;
    uint32_t other_id;
    int64_t value[LIMIT_LEVELS];
};

/* --- quality of service ------------------------------------------------------------------ */

enum qos_flag {
    QOS_RESERVEALWAYS = 1 << 0,
    QOS_NORESERVATION = 1 << 1,
    QOS_NOBF = 1 << 2,
    QOS_IGNSYSTEM = 1 << 3, /* the per-job limits of the system */
    QOS_IGNUSER = 1 << 4,   /* every limit of the five kinds of credentials */
    QOS_IGNALL = 1 << 5,
    QOS_PREEMPTOR = 1 << 6,      /* may evict jobs that are preemptible and of lower priority */
    QOS_PREEMPTEE = 1 << 7,      /* is preemptible */
    QOS_PREEMPTSPV = 1 << 8,     /* is preemptible while its credentials are over a soft limit */
    QOS_RESTARTPREEMPT = 1 << 9, /* may evict any restartable job of lower priority */
    QOS_NTR = 1 << 10,           /* next to run: before all others, and nobody past it */
    QOS_RUNNOW = 1 << 11,        /* before all others, preemptor, no limits */
    QOS_DEDICATED = 1 << 12,     /* whole nodes */
    QOS_IGNSRMAXTIME = 1 << 13,  /* how long its jobs are is no matter to reservations */
    QOS_USERESERVED = 1 << 14, /* its jobs run inside reservations that admit them, nowhere else */
    QOS_IGNHOSTLIST = 1 << 15, /* a class's HOSTLIST does not bind its jobs */
    QOS_SPAN = 1 << 16,        /* its jobs may use several partitions at once */
};

/* Bits 1u << limit_kind of limits that jobs of the QoS need not keep, per kind of object. */
struct policy_qos {
    uint32_t flags;
    const char *use_reserved;      /* USERESERVED:name; NULL: any reservation */
    const char *features;          /* QOSFEATURES: "a,b": of every node of its jobs; NULL: any node.
                                      Text: the shell gives it to the core (cluster_qos_set) */
    double qtweight;               /* added to QUEUETIMEWEIGHT */
    double xfweight;               /* added to XFACTORWEIGHT */
    double qttarget_min;           /* minutes; 0: none */
    double xftarget;               /* 0: none */
    uint32_t ignore_job;           /* bits of limits per job that it need not keep */
    struct policy_limits override; /* OMAX…: in place of users', groups', accounts', classes' */
    uint32_t ignore_active[LIMIT_OBJECTS];
    uint32_t ignore_idle[LIMIT_OBJECTS];
    uint32_t job_override_mask; /* OMAXJPROC, OMAXJWC, OMAXJPS in place of SYSTEMMAX… */
    int64_t job_override[LIMIT_KINDS];
};

/* --- classes ------------------------------------------------------------------------------ */

/* A list of credentials of one kind. */
struct policy_list {
    uint32_t count;
    uint32_t *id; /* owned by the policy */
};

/* What CLASSCFG says beside limits and priorities. Names of hosts, features and node sets are text: the
 * shell, which knows the nodes, gives them to the core (cluster_class_set). */
struct policy_class {
    int64_t min_wall_s, max_wall_s; /* of each job; -1: none */
    int64_t min_procs, max_procs;
    int64_t min_nodes, max_nodes;
    int64_t max_ps;
    int64_t default_wall_s;                  /* -1: the site's */
    struct policy_list required[CRED_KINDS]; /* one of these, where there are any */
    struct policy_list excluded[CRED_KINDS];
    const char *host_list;        /* NULL: every node */
    const char *default_features; /* "a,b" */
    const char *exclude_features;
    const char *nodeset; /* "ONEOF:FEATURE:a:b" */
    int node_access;     /* enum node_access of types.h; 0: the site's */
};

enum class_rule { /* what a class refuses a job for */
                  CLASS_ADMITS,
                  CLASS_MIN_WALL,
                  CLASS_MAX_WALL,
                  CLASS_MIN_PROC,
                  CLASS_MAX_PROC,
                  CLASS_MIN_NODE,
                  CLASS_MAX_NODE,
                  CLASS_MAX_PS,
                  CLASS_REQUIRED, /* its user (group …) is not on the list */
                  CLASS_EXCLUDED,
};

/* --- one credential's record ------------------------------------------------------------- */

enum { /* bits of policy_cred.set: said for this credential itself */
       CRED_SET_PRIORITY = 1 << 0,
       CRED_SET_FSTARGET = 1 << 1,
       CRED_SET_QLIST = 1 << 2,
       CRED_SET_QDEF = 1 << 3,
       CRED_SET_QTWEIGHT = 1 << 4,
       CRED_SET_XFWEIGHT = 1 << 5,
       CRED_SET_QTTARGET = 1 << 6,
       CRED_SET_XFTARGET = 1 << 7,
       CRED_SET_QFLAGS = 1 << 8,
       CRED_SET_FEATURES = 1 << 9,
       CRED_SET_PLIST = 1 << 16,
       CRED_SET_PDEF = 1 << 17,
       CRED_SET_FLAGS = 1 << 18,
};
enum qlist_mode { QLIST_UNION, QLIST_INTERSECT /* & */, QLIST_EXCLUSIVE /* ^ */ };

struct policy_cred {
    uint32_t id;
    uint32_t set;
    double priority;
    double fs_target;
    enum fs_target_type fs_target_type;
    struct policy_limits limits;
    enum qlist_mode qlist_mode;
    uint32_t qlist_count;
    uint32_t *qlist; /* numbers of QoS; owned by the policy */
    uint32_t qdef;   /* CRED_NONE: not said */
    enum qlist_mode plist_mode;
    uint64_t plist;             /* partitions: bit number - 1; 0: not said */
    uint32_t pdef;              /* a partition; 0: not said */
    uint32_t flags;             /* FLAGS: QOS_PREEMPTOR, QOS_PREEMPTEE of its jobs */
    struct policy_class *class; /* of kind CRED_CLASS only */
    uint32_t cross_count;
    struct policy_cross *cross; /* owned; own ones first, then those of DEFAULT not replaced */
    struct policy_qos *qos;     /* of kind CRED_QOS only */
};

/* --- reservations, backfill, nodes ------------------------------------------------------- */

enum preempt_policy { PREEMPT_REQUEUE, PREEMPT_SUSPEND, PREEMPT_CHECKPOINT, PREEMPT_CANCEL };
enum wcviolation_action { WCVIOLATION_CANCEL, WCVIOLATION_PREEMPT };

/* RESOURCELIMITPOLICY: what becomes of a job that uses more than it asked for. */
enum resource_limit { RESOURCE_LIMIT_PROC, RESOURCE_LIMIT_MEM, RESOURCE_LIMITS };
enum limit_action { LIMIT_ALLOW, LIMIT_CANCEL, LIMIT_REQUEUE, LIMIT_SUSPEND, LIMIT_NOTIFY };
struct policy_resource_limit {
    enum limit_action action;
    duration_us after; /* above it for so long without a break; 0: at the first measurement */
    bool by_full_name; /* said by RESOURCELIMITPOLICY, which counts more than RESLIMITPOLICY */
};

enum reservation_policy { RESERVATION_CURRENTHIGHEST, RESERVATION_HIGHEST, RESERVATION_NEVER };
enum reservation_threshold {
    THRESHOLD_NONE,
    THRESHOLD_BYPASS,
    THRESHOLD_QUEUETIME,
    THRESHOLD_XFACTOR
};
enum reservation_binding { BINDING_EARLY, BINDING_LATE };
enum backfill_policy {
    BACKFILL_FIRSTFIT,
    BACKFILL_BESTFIT,
    BACKFILL_GREEDY,
    BACKFILL_PREEMPT,
    BACKFILL_NONE
};
enum backfill_metric {
    BFMETRIC_PROCS,
    BFMETRIC_PROCSECONDS,
    BFMETRIC_SECONDS,
    BFMETRIC_NODES,
    BFMETRIC_PE,
    BFMETRIC_PESECONDS
};
enum backfill_window_order { BFWINDOW_WIDESTFIRST, BFWINDOW_LONGESTFIRST };
enum backfill_priority {
    BFPRIORITY_NONE,
    BFPRIORITY_RANDOM,
    BFPRIORITY_DURATION,
    BFPRIORITY_HWDURATION
};
enum node_allocation {
    NODEALLOC_LASTAVAILABLE,
    NODEALLOC_FIRSTAVAILABLE,
    NODEALLOC_MINRESOURCE,
    NODEALLOC_CPULOAD,
    NODEALLOC_PRIORITY,
    NODEALLOC_CONTIGUOUS,
    NODEALLOC_MAXBALANCE,
    NODEALLOC_FASTEST,
    NODEALLOC_LOCAL
};

/* How tasks are laid out over the nodes that the allocation policy prefers. */
enum task_distribution {
    TASKDIST_DEFAULT,    /* as many as fit on each node in turn */
    TASKDIST_PACK,       /* nodes that take the most tasks first: few nodes */
    TASKDIST_ROUNDROBIN, /* one on each node in turn, then another: many nodes */
    TASKDIST_LOCAL,      /* as DEFAULT, whole switches first */
    TASKDIST_ARBGEO,     /* as DEFAULT, each req of a job on nodes of its own: any geometry */
};
enum node_match { NODEMATCH_NONE, NODEMATCH_EXACTNODE, NODEMATCH_EXACTPROC };
enum node_availability { NODEAVAIL_COMBINED, NODEAVAIL_DEDICATED, NODEAVAIL_UTILIZED };
enum node_load_policy { NODELOAD_ADJUSTSTATE, NODELOAD_ADJUSTPROCS };

/* PRIORITYF: a sum of terms, each with its weight. */
enum node_term {
    TERM_CPROCS,
    TERM_CMEM,
    TERM_CSWAP,
    TERM_CDISK, /* configured */
    TERM_APROCS,
    TERM_AMEM,
    TERM_ASWAP,
    TERM_ADISK, /* not dedicated now */
    TERM_JOBCOUNT,
    TERM_LOAD,     /* load average */
    TERM_PREF,     /* 1 where the job prefers the node */
    TERM_PRIORITY, /* NODECFG PRIORITY */
    TERM_RESAFFINITY,
    TERM_SPEED,
    TERM_USAGE, /* percent of its processors dedicated over its time so far */
    TERM_ONE,   /* a constant */
    NODE_TERMS
};
struct node_priority {
    double weight[NODE_TERMS];
};
bool node_term_dynamic (enum node_term term); /* counts only for starts at the present moment */
const char *node_term_name (enum node_term term);

enum { POLICY_BUCKETS_MAX = 32 };

/* RESERVATIONDEPTH[n] with RESERVATIONQOSLIST[n]. A job counts in the first bucket that lists its
 * QoS (qos_count 0: ALL). */
struct policy_bucket {
    bool used;
    uint32_t depth;
    uint32_t qos_count;
    uint32_t *qos; /* owned by the policy */
};

/* --- the whole --------------------------------------------------------------------------- */

struct policy_standing;

struct policy {
    /* priority: see priority.h */
    double component_weight[PRIO_COMPONENTS];
    double component_cap[PRIO_COMPONENTS]; /* <= 0: none */
    double sub_weight[PRIO_SUBS];
    double sub_cap[PRIO_SUBS];
    int64_t xf_min_wclimit_s; /* -1: none */
    enum job_prio_accrual accrual;
    bool reject_negative;
    bool enable_negative;

    /* fairshare: see fairshare.h */
    enum fs_policy fs_policy;
    bool fs_ratio; /* FSPOLICY with a trailing %: factor 1 - usage/target */
    duration_us fs_interval;
    uint32_t fs_depth;
    double fs_decay;

    /* limits: see limits.h; per job, -1: none */
    int64_t system_max_proc_per_job;
    int64_t system_max_wall_s_per_job;
    int64_t system_max_ps_per_job;
    int64_t default_wall_s;             /* SYSTEMDEFAULTJOBWALLTIME */
    struct policy_limits system_limits; /* SYSCFG */
    uint32_t system_qlist_count;        /* SYSCFG QLIST: for everybody, beside what others say */
    uint32_t *system_qlist;             /* in the arena */
    uint32_t system_qdef;               /* CRED_NONE: not said */

    /* job reservations */
    enum reservation_policy reservation_policy;
    struct policy_bucket bucket[POLICY_BUCKETS_MAX]; /* default: [0], depth 1, ALL */
    uint32_t bucket_count;                           /* one past the last used */
    enum reservation_threshold reservation_threshold;
    double reservation_threshold_value; /* times bypassed; seconds; factor */
    duration_us reservation_retry;
    duration_us data_grace; /* how long nodes are kept for data that was to be there */
    enum reservation_binding reservation_binding;

    /* backfill */
    enum backfill_policy backfill_policy;
    enum backfill_metric backfill_metric;
    uint32_t backfill_depth;         /* 0: whole queue */
    uint32_t backfill_max_schedules; /* GREEDY */
    enum backfill_window_order backfill_window_order;
    enum backfill_priority backfill_priority; /* PREEMPT */
    uint32_t bf_chunk_procs;
    duration_us bf_chunk_duration;

    /* nodes */
    enum node_allocation node_allocation;
    int node_access; /* enum node_access of types.h */
    enum task_distribution task_distribution;
    enum node_match node_match;
    enum node_availability node_availability[4]; /* processors, memory, swap, disk */
    bool node_availability_said;
    enum node_load_policy node_load_policy;
    int32_t node_max_load_milli; /* NODEMAXLOAD; 0: none */
    duration_us node_down_delay; /* NODEDOWNSTATEDELAYTIME: a node that is down stays so for this
                                    long from now, as far as promises go; 0: until it is back */
    bool use_machine_speed;      /* USEMACHINESPEED: limits are for nodes of speed 1 */
    struct policy_limits *partition_limits; /* PARCFG, by partition; in the arena */
    uint64_t partitions_limited;            /* those that have any: bits number - 1 */
    uint64_t system_plist;                  /* SYSCFG PLIST, PDEF */
    enum qlist_mode system_plist_mode;
    uint32_t system_pdef;
    /* node sets as text, for the shell: cluster_nodeset_define */
    const char *nodeset_policy;    /* "ONEOF"; NULL: none */
    const char *nodeset_attribute; /* "FEATURE" */
    const char *nodeset_list;      /* words; NULL: all there are */
    const char *nodeset_priority;
    int64_t nodeset_tolerance_ppm;
    duration_us nodeset_delay; /* 0: best effort */

    /* standing reservations: standing.h */
    struct policy_standing *standing;
    uint32_t standing_count;

    /* iteration */
    duration_us poll_interval;        /* RMPOLLINTERVAL */
    duration_us job_aggregation_time; /* JOBAGGREGATIONTIME */
    duration_us defer_time;           /* 0: never defer */
    uint32_t defer_count;
    uint32_t defer_start_count;

    /* running jobs */
    enum preempt_policy preempt_policy;
    enum wcviolation_action wcviolation_action; /* past limit and … */
    duration_us max_overrun;                    /* JOBMAXOVERRUN; TIME_US_MAX: never */
    struct policy_resource_limit resource_limit[RESOURCE_LIMITS];

    /* credentials: use policy_cred () */
    const struct cred_names *names; /* not owned */
    struct policy_cred *cred[CRED_KINDS];
    uint32_t cred_count[CRED_KINDS];
    uint32_t cred_cap[CRED_KINDS];
    uint32_t *cred_index[CRED_KINDS]; /* number -> place in cred[], 0 (DEFAULT's) where not named */
    uint32_t cred_index_count[CRED_KINDS];
    struct arena *arena; /* holds all of the above */
    bool flags_said;     /* somebody's FLAGS */
    bool sealed;
};

/* All defaults, no credential but DEFAULT. names must outlive the policy. Never NULL: out of memory
 * aborts, as in arena.h. */
struct policy *policy_create (const struct cred_names *names);
void policy_destroy (struct policy *policy); /* NULL is a no-op */

/* The record of one credential for edits, made when new; the pointer holds until the next such
 * call. Only before policy_seal. Set the bit in .set (or the limit's mask) of what is edited. */
struct policy_cred *policy_cred_edit (struct policy *policy, enum cred_kind kind, uint32_t id);
/* The class's own record of what only classes have, made when new. */
struct policy_class *policy_class_edit (struct policy *policy, struct policy_cred *cred);
/* policy_seal's part for classes. */
void policy_class_inherit (struct policy_cred *own, const struct policy_cred *from);
/* Copies; replaces what was there. */
void policy_qlist_set (struct policy *policy, struct policy_cred *cred, const uint32_t *qos,
                       uint32_t count, enum qlist_mode mode);
/* Adds or replaces the rule for the same limit and other credential. */
void policy_cross_set (struct policy *policy, struct policy_cred *cred,
                       const struct policy_cross *cross);
void policy_bucket_set (struct policy *policy, uint32_t bucket, uint32_t depth, const uint32_t *qos,
                        uint32_t qos_count);

/* Checks what belongs together (ranges, soft <= hard, depth of fairshare), resolves DEFAULT.
 * On an error the policy is of no use but to be destroyed. */
int policy_seal (struct policy *policy, struct err *err);

/* The resolved record of a credential; DEFAULT's for one that was never named. id may be CRED_NONE
 * (DEFAULT's: callers skip absent credentials themselves). Sealed policies only. */
static inline const struct policy_cred *policy_cred (const struct policy *policy,
                                                     enum cred_kind kind, uint32_t id)
{
    uint32_t at = id < policy->cred_index_count[kind] ? policy->cred_index[kind][id] : 0;
    return &policy->cred[kind][at];
}

static inline const struct policy_qos *policy_qos (const struct policy *policy, uint32_t qos)
{
    return policy_cred (policy, CRED_QOS, qos)->qos;
}

/* QFLAGS of a job's QoS, and PREEMPTOR and PREEMPTEE where FLAGS of another credential of its says so. */
uint32_t policy_job_flags (const struct policy *policy, const uint32_t cred[CRED_KINDS]);

/* The bucket in which a job of this QoS counts; UINT32_MAX when none lists it. O(buckets). */
uint32_t policy_bucket_of (const struct policy *policy, uint32_t qos);

/* Which QoS a job gets: the one asked for where its credentials or the system allow it,
 * else the first QDEF of user, group, account, class (own, then DEFAULT's), system, else DEFAULT. cred[CRED_QOS] is
 * what was asked (CRED_NONE: nothing). *denied_out says that an asked one was refused. */
uint32_t policy_qos_resolve (const struct policy *policy, const uint32_t cred[CRED_KINDS],
                             bool *denied_out);

/* Partitions that a job of these credentials may use (bits), and the one to try first in *pdef_out
 * (0: none). The lists of user, group, account, class, QoS and system together; 0: nothing is said,
 * all. ALL bits absent after an intersection: *none_out. */
uint64_t policy_partitions (const struct policy *policy, const uint32_t cred[CRED_KINDS],
                            uint32_t *pdef_out, bool *none_out);
/* May the job run in its class? *bound_out: the bound it breaks; *kind_out: of whose list. */
enum class_rule policy_class_check (const struct policy *policy, const uint32_t cred[CRED_KINDS],
                                    int64_t wall_s, int64_t procs, int64_t nodes,
                                    int64_t *bound_out, enum cred_kind *kind_out);
const char *class_rule_name (enum class_rule rule); /* "MAX.PROC" … */
/* The wallclock limit of a job that states none: its class's, else the site's. */
int64_t policy_default_wall_s (const struct policy *policy, uint32_t class);

/* Names as in maui.cfg, for messages and tables: "QUEUETIME", "FSUSER", "SERV", "MAXPROC" … */
const char *prio_component_name (enum prio_component component);
const char *prio_sub_name (enum prio_sub sub);
enum prio_component prio_sub_component (enum prio_sub sub);
const char *limit_kind_name (enum limit_kind kind); /* "MAXJOB" … "MINPROC" */

#endif
