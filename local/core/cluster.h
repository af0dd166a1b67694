/* cluster: the state of one site: nodes, jobs, reservations, usage. Pure: no clock, no I/O.
 *
 * State changes only through the event functions below; each takes the present moment. `now` never
 * goes back (an older one counts as the last one seen). On failure an event changes nothing. The
 * cluster owns copies of everything given; readers get pointers that hold until the next event.
 *
 * Every change that could change what may start when adds to cluster_version () ("schedule
 * version"): equal versions mean that the same question gets the same answer at the same moment.
 *
 * Costs: job events O(reqs + nodes it uses); reservations O(nodes touched · reservations there).
 * Limits are those of types.h: past them an event returns ERR_LIMIT. */
#ifndef NUI_LOCAL_CORE_CLUSTER_H
#define NUI_LOCAL_CORE_CLUSTER_H

#include "local/core/fairshare.h"
#include "local/core/limits.h"
#include "local/core/reason.h"
#include "local/core/types.h"
#include "proto/base/err.h"

struct cluster;

struct cluster_options {
    uint32_t gres_kinds; /* columns in use from RES_GRES0 on */
    uint64_t seed;       /* of BFPRIORITYPOLICY RANDOM */
};

/* policy: sealed; must outlive its use (until cluster_policy_set with another, or destroy). */
struct cluster *cluster_create (const struct policy *policy, const struct cluster_options *options,
                                struct err *err);
void cluster_destroy (struct cluster *cluster); /* NULL is a no-op */

/* Takes over another policy on the same names: usage is recounted, priorities are computed anew. */
int cluster_policy_set (struct cluster *cluster, const struct policy *policy, time_us now,
                        struct err *err);
const struct policy *cluster_policy (const struct cluster *cluster);
/* For statistics, saving and restoring; the cluster charges started jobs to it. */
struct fairshare *cluster_fairshare (struct cluster *cluster);

uint64_t cluster_version (const struct cluster *cluster);
/* The latest moment that an event or a pass was told; TIME_US_NONE: none yet. Earlier ones are taken for it. */
time_us cluster_now (const struct cluster *cluster);
/* The clock was ahead and is right now: the schedule counts from here again, as one that was made anew of the same nodes,
 * reservations and jobs would. A plan that was not committed is taken back. No effect unless now is before cluster_now. */
void cluster_clock_back (struct cluster *cluster, time_us now);

/* --- nodes ------------------------------------------------------------------------------- */

int cluster_node_add (struct cluster *cluster, const struct node_spec *spec, time_us now,
                      struct node_id *out, struct err *err);
/* New configuration. What is dedicated there stays so, even if it is now more than there is. */
int cluster_node_update (struct cluster *cluster, struct node_id node, const struct node_spec *spec,
                         time_us now, struct err *err);
int cluster_node_state_set (struct cluster *cluster, struct node_id node, enum node_state state,
                            time_us now, struct err *err);
/* Load average in thousandths: NODEALLOCATIONPOLICY CPULOAD, NODELOADPOLICY, NODEAVAILABILITYPOLICY. */
int cluster_node_load_set (struct cluster *cluster, struct node_id node, int32_t load_milli,
                           time_us now, struct err *err);

/* What is in use there of processors, memory, swap and disk, whoever dedicated it:
 * NODEAVAILABILITYPOLICY. Zero: nothing is known. */
int cluster_node_used_set (struct cluster *cluster, struct node_id node,
                           const struct resources *used, time_us now, struct err *err);

uint32_t cluster_node_count (const struct cluster *cluster);

struct node_view {
    struct node_spec spec;
    enum node_state state;
    struct resources dedicated;
    int32_t load_milli;
    bool measured;         /* `used` is known … */
    struct resources used; /* … as cluster_node_used_set said last */
    uint32_t job_count;    /* that use it now */
};
int cluster_node_get (const struct cluster *cluster, struct node_id node, struct node_view *out,
                      struct err *err);
/* Sum over nodes: configured of those not down, and dedicated. */
void cluster_totals (const struct cluster *cluster, struct resources *configured_out,
                     struct resources *dedicated_out);

/* --- placement: what the site says of nodes, beside the policy ------------------------------- */

/* More columns of generic resources (never fewer): nodes have none of them until they are updated. */
int cluster_gres_kinds_set (struct cluster *cluster, uint32_t kinds, time_us now, struct err *err);
/* NODECFG MAXJOB: the column of which each req of a job takes one on every node it uses; 0: none. */
int cluster_job_column_set (struct cluster *cluster, uint32_t column, time_us now, struct err *err);
/* How many there are of each floating licence; fewer than are in use is allowed. */
int cluster_licences_set (struct cluster *cluster, const int32_t *total, uint32_t kinds,
                          time_us now, struct err *err);
/* total, and free now; kind < the kinds set. */
void cluster_licence_get (const struct cluster *cluster, uint32_t kind, int32_t *total_out,
                          int32_t *free_out);
/* A list of nodes for req.hosts: the same list has the same id. No node at all is allowed. */
int cluster_hosts_define (struct cluster *cluster, const struct node_id *node, uint32_t count,
                          uint32_t *id_out, struct err *err);

/* What CLASSCFG and NODECFG CLASS say of one class. */
struct class_spec {
    uint8_t bit;              /* of node_spec.classes; UINT8_MAX: every node serves it */
    uint8_t column;           /* of its initiators, counted from RES_GRES0 on; 0: not counted */
    uint8_t access;           /* enum node_access; ACCESS_SITE: as the site */
    uint8_t zero;             /* in place of padding: specs are compared as bytes */
    int32_t initiators;       /* that each task takes */
    uint32_t hosts;           /* cluster_hosts_define; 0: all */
    uint32_t nodeset;         /* NODESET_SITE: as the site */
    struct features features; /* for reqs that ask for none */
    struct features exclude;  /* nodes with any of these do not serve it */
};
int cluster_class_set (struct cluster *cluster, uint32_t class, const struct class_spec *spec,
                       time_us now, struct err *err);
/* QOSFEATURES: each node of this QoS's jobs has all of them, beside what the job asks for; none: any node. */
int cluster_qos_set (struct cluster *cluster, uint32_t qos, const struct features *features,
                     time_us now, struct err *err);

/* PRIORITYF, for node_spec.priority_fn: the same function has the same id. */
int cluster_priority_fn_define (struct cluster *cluster, const struct node_priority *fn,
                                uint32_t *id_out, struct err *err);

/* Which nodes may be together in a job. */
enum nodeset_policy { NODESET_ONEOF, NODESET_FIRSTOF, NODESET_ANYOF };
enum nodeset_attribute { NODESET_FEATURE, NODESET_SPEED, NODESET_SWITCH };
enum nodeset_priority {
    NODESET_MINLOSS,      /* least difference of speed */
    NODESET_BESTFIT,      /* least room left over */
    NODESET_WORSTFIT,     /* most */
    NODESET_BESTRESOURCE, /* fastest */
    NODESET_LISTED,       /* the first of the list */
};
struct nodeset {
    enum nodeset_policy policy;
    enum nodeset_attribute attribute;
    enum nodeset_priority priority;
    bool mandatory;        /* NODESETDELAY > 0; else other nodes are taken rather than wait */
    int64_t tolerance_ppm; /* speeds up to (1 + tolerance) times the least are the same set */
    uint32_t count;        /* 0: all that nodes have */
    const uint32_t *value; /* features, speeds in ppm, switches; copied */
};
int cluster_nodeset_define (struct cluster *cluster, const struct nodeset *nodeset,
                            uint32_t *id_out, struct err *err);
/* What NODESET_SITE means: an id or NODESET_NONE (as at the beginning). */
int cluster_nodeset_site_set (struct cluster *cluster, uint32_t id, time_us now, struct err *err);
/* The interconnect: sets of nodes, nested; level 0 are the leaves. Replaces what was there. */
struct switch_spec {
    uint32_t level;
    uint32_t count;
    const struct node_id *node;
};
/* Is the node below this one of them (its place in the list)? level_out may be NULL. */
bool cluster_switch_has (const struct cluster *cluster, uint32_t at, struct node_id node,
                         uint32_t *level_out);
int cluster_switches_set (struct cluster *cluster, const struct switch_spec *list, uint32_t count,
                          time_us now, struct err *err);

/* --- jobs -------------------------------------------------------------------------------- */

int cluster_job_submit (struct cluster *cluster, const struct job_spec *spec, time_us now,
                        struct err *err);
/* Replaces what spec says of an idle job (ERR_CONFLICT when it is not idle); the clock of its queue
 * time and its bypass count stay. */
int cluster_job_modify (struct cluster *cluster, const struct job_spec *spec, time_us now,
                        struct err *err);
/* New set of holds (enum job_hold bits; 0 releases). */
int cluster_job_hold_set (struct cluster *cluster, struct job_id job, uint32_t holds, time_us now,
                          struct err *err);
/* Not considered before `until` (DEFERTIME); its reservation is gone. */
int cluster_job_defer (struct cluster *cluster, struct job_id job, time_us until, time_us now,
                       struct err *err);
int cluster_job_system_priority_set (struct cluster *cluster, struct job_id job, int32_t priority,
                                     bool absolute, time_us now, struct err *err);
/* After a restart: an idle job goes on keeping these nodes until then, as after a failed start. */
int cluster_job_retry_keep (struct cluster *cluster, struct job_id job,
                            const struct allocation *allocation, time_us until, time_us now,
                            struct err *err);
/* An idle job leaves the queue (cancelled, refused). */
int cluster_job_remove (struct cluster *cluster, struct job_id job, time_us now, struct err *err);

/* Takes resources for an idle job from now on: decided elsewhere (runjob, recovery after a restart,
 * the start of a co-allocated part). started is when its limit began to count (now for a new
 * start). No check against reservations; ERR_CONFLICT when a node has too little left. A plan's
 * starts do not need it: see plan_commit. */
int cluster_job_start (struct cluster *cluster, struct job_id job,
                       const struct allocation *allocation, time_us started, time_us now,
                       struct err *err);
/* The shell launched it: STARTING -> RUNNING; its limit counts from `started`. */
int cluster_job_running (struct cluster *cluster, struct job_id job, time_us started, time_us now,
                         struct err *err);
/* A starting job's launch comes later than was planned: its start is now, if its nodes are promised to nobody
 * else for all its length from now on; else ERR_CONFLICT, and nothing has changed. Costs a timeline. */
int cluster_job_delayed (struct cluster *cluster, struct job_id job, const struct who *who,
                         time_us now, struct err *err);
/* The launch failed, or the job is requeued: resources are free, it is idle again, and deferred
 * when until > now. Where it was only STARTING, RESERVATIONRETRYTIME keeps its nodes for it so long:
 * nobody else is planned on them, and the job starts there as soon as it may. */
int cluster_job_requeue (struct cluster *cluster, struct job_id job, time_us until, time_us now,
                         struct err *err);
/* The same for a job that a plan preempts: what it did is lost, and its queue time begins anew. */
int cluster_job_preempt (struct cluster *cluster, struct job_id job, time_us now, struct err *err);
/* LEAVING: it is being ended or stopped for another, which takes a while: passes count on its nodes.
 * REFUSED: it could not be (its checkpoint failed): nobody asks for it again while it runs. */
enum eviction { EVICTION_NONE, EVICTION_LEAVING, EVICTION_REFUSED };
int cluster_job_eviction_set (struct cluster *cluster, struct job_id job, enum eviction eviction,
                              time_us now, struct err *err);
/* It was started past others that wait, before a restart: BACKFILLPOLICY PREEMPT counts on that. */
int cluster_job_backfilled_set (struct cluster *cluster, struct job_id job, time_us now,
                                struct err *err);
/* Stopped: its nodes are free; a plan lets it go on there (PLAN_RESUMED) when they are free again. */
int cluster_job_suspend (struct cluster *cluster, struct job_id job, time_us now, struct err *err);
/* A suspended job with a hold does not go on; 0: it may again. */
int cluster_job_suspended_hold (struct cluster *cluster, struct job_id job, uint32_t holds,
                                time_us now, struct err *err);
/* Somebody else let it go on: it runs, and has no hold. ERR_CONFLICT: it is not suspended, or its nodes have
 * no room for it by now. */
int cluster_job_resumed (struct cluster *cluster, struct job_id job, time_us now, struct err *err);
/* After a restart: an idle job was suspended on these nodes at `since`, having used so much of its
 * limit. */
int cluster_job_suspended_set (struct cluster *cluster, struct job_id job,
                               const struct allocation *allocation, duration_us used, time_us since,
                               time_us now, struct err *err);
/* A starting or running job has ended: resources are free, the job is forgotten. */
int cluster_job_end (struct cluster *cluster, struct job_id job, time_us now, struct err *err);

/* What its processes have really used: cpu_time of all of them since they began (it never falls) and,
 * from now on, used_micro processors in use, in millionths; -1: as many as since the last time. For
 * FSPOLICY UTILIZEDPS, which counts a job that was never measured as using all that it has. */
int cluster_job_used (struct cluster *cluster, struct job_id job, duration_us cpu_time,
                      int64_t used_micro, time_us now, struct err *err);
/* What job_view.usage said when fairshare was exported, for a job that has been running since; before
 * fairshare is advanced to the present. `at` TIME_US_NONE: counts from the next measurement on. */
int cluster_job_usage_restore (struct cluster *cluster, struct job_id job,
                               const struct job_usage *usage, struct err *err);

struct job_view { /* pointers hold until the next event */
    const struct job_spec *spec;
    enum job_state state;
    uint32_t procs; /* dedicated or asked, all reqs together */
    uint32_t bypass;
    time_us deferred_until; /* TIME_US_NONE */
    /* running or starting */
    time_us start;
    time_us limit_end;
    struct allocation allocation;
    bool backfilled; /* started past a job of higher priority that waits */
    struct job_usage usage;
    /* idle, as of the last committed plan */
    int64_t priority;
    struct reason reason;
    time_us reserved_start; /* TIME_US_NONE: the pass made no reservation for it */
    time_us reserved_end;
    struct allocation reserved; /* count 0 with RESERVATIONBINDING LATE: chosen at the start */
};
int cluster_job_get (const struct cluster *cluster, struct job_id job, struct job_view *out,
                     struct err *err);
/* USEMACHINESPEED: how long what takes d on nodes of speed 1 takes where the job runs; d of idle jobs and of
 * parts of co-allocations, whose slots last as long as they last. */
duration_us cluster_job_scaled (const struct cluster *cluster, struct job_id job, duration_us d);
uint32_t cluster_job_count (const struct cluster *cluster, enum job_state state);
/* Jobs in a state: idle ones in the order of the last plan, then those it has not seen by id;
 * others by id. Writes at most cap ids; returns how many there are. */
uint32_t cluster_job_list (const struct cluster *cluster, enum job_state state, struct job_id *out,
                           uint32_t cap);

/* --- reservations ------------------------------------------------------------------------ */

/* Binds resources on the nodes of the allocation over [start, end). ERR_CONFLICT, naming the first
 * node, when a running job's limit or another reservation already has them in that time (with
 * RSV_FORCED only: when a co-allocated part has them that it does not admit); idle jobs' reservations
 * made by the pass never stand in its way (the next pass makes them anew). An ACL reservation
 * (RSV_ADMIN) has one req, may have no node at all, and names each node once. */
int cluster_rsv_create (struct cluster *cluster, const struct rsv_spec *spec,
                        const struct allocation *allocation, time_us now, struct err *err);
/* Courtesy hold to firm reservation. Idempotent. */
int cluster_rsv_commit (struct cluster *cluster, struct rsv_id rsv, time_us now, struct err *err);
/* Gone (lease ended, aborted, used up). Jobs that run inside it go on. */
int cluster_rsv_release (struct cluster *cluster, struct rsv_id rsv, time_us now, struct err *err);

/* Other nodes and tasks for an ACL reservation, whatever else is there but co-allocated parts: it lost
 * some, or gets back what it lost. */
int cluster_rsv_move (struct cluster *cluster, struct rsv_id rsv, uint32_t tasks,
                      const struct allocation *allocation, time_us now, struct err *err);

/* Another end and other rights for an ACL reservation; what is inside goes on. A later end: ERR_CONFLICT, naming the first node,
 * when others have its nodes between the two ends, as with cluster_rsv_create. */
int cluster_rsv_change (struct cluster *cluster, struct rsv_id rsv, time_us end, uint32_t acl_count,
                        const struct acl_entry *acl, time_us now, struct err *err);

struct rsv_view { /* pointers hold until the next event */
    const struct rsv_spec *spec;
    struct allocation allocation;
    struct job_id used_by; /* RSV_SINGLEUSE: the job that used it; 0: none yet */
};
int cluster_rsv_get (const struct cluster *cluster, struct rsv_id rsv, struct rsv_view *out,
                     struct err *err);
/* All, by id. */
uint32_t cluster_rsv_list (const struct cluster *cluster, struct rsv_id *out, uint32_t cap);

/* The next moment at which a pass could do something new with no event before it: a limit end, a
 * reservation's boundary, a deferral's, not_before's or retry's end, a promised start. TIME_US_MAX: none. */
time_us cluster_next_wakeup (const struct cluster *cluster, time_us now);

#endif
