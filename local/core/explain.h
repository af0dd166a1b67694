/* explain: what an administrator asks about one job: priority, limits, nodes. Pure.
 *
 * Nothing here changes what the next pass decides. Costs: priority and limits O(limits + running
 * jobs); nodes O(nodes + placements). */
#ifndef NUI_LOCAL_CORE_EXPLAIN_H
#define NUI_LOCAL_CORE_EXPLAIN_H

#include "local/core/cluster.h"
#include "local/core/priority.h"
#include "proto/base/arena.h"

struct explained_job {
    time_us eligible_since; /* its queue time counts from here */
    double pe;              /* processor equivalents */
    int32_t system_priority;
    bool system_absolute;
};
int explain_job (const struct cluster *cluster, struct job_id job, struct explained_job *out,
                 struct err *err);

/* Every factor and contribution, of the present moment, with the fairshare of the last pass. weight
 * (may be NULL): the weights in force for this job's QoS. */
int explain_priority (const struct cluster *cluster, struct job_id job, time_us now,
                      struct priority_explained *out, double weight[PRIO_SUBS], struct err *err);

/* The active limit of this level that an idle job would break if it started now. */
struct explained_limit {
    struct limits_violation violation;
    time_us clears; /* when enough running jobs have reached their limits; TIME_US_NONE: unknown */
};
/* True: it would break one. */
bool explain_limit (const struct cluster *cluster, struct job_id job, enum limit_level level,
                    time_us now, struct explained_limit *out);

/* The HARD active limit that keeps people of these credentials from one more processor now. */
bool explain_cred_limit (const struct cluster *cluster, const uint32_t cred[CRED_KINDS],
                         time_us now, struct explained_limit *out);

/* Would its class never let such a job start, whatever else runs? By one of its rules, or a HARD limit of the class that
 * it breaks all by itself; *why says which. (Other people's limits change; what they forbid waits.) cred: resolved.
 * Cost: O(credentials of the policy). */
bool explain_class_never (const struct cluster *cluster, const uint32_t cred[CRED_KINDS],
                          const struct req *req, uint32_t req_count, duration_us walltime,
                          struct reason *why);

/* Why a node does not take tasks of an idle job now; in the order they are looked at. */
enum node_verdict {
    NODE_ACCEPTS,
    NODE_REJECT_STATE, /* down, drained, or nothing free */
    NODE_REJECT_PARTITION,
    NODE_REJECT_FEATURES,
    NODE_REJECT_CPU, /* configured: never enough for one task */
    NODE_REJECT_MEMORY,
    NODE_REJECT_SWAP,
    NODE_REJECT_DISK,
    NODE_REJECT_RESOURCES, /* a generic resource */
    NODE_REJECT_BUSY,      /* has enough, but others use it now */
    NODE_REJECT_RESERVED,  /* free now, but promised before the job's limit would end */
    NODE_REJECT_CLASS,     /* it does not serve the job's class, or has too few initiators of it */
    NODE_REJECT_HOSTS,     /* not in the host list of the job or its class */
    NODE_REJECT_SET,       /* in none of the node sets that the job may be in */
    NODE_REJECT_ACCESS,    /* NODEACCESSPOLICY, MAXJOB, MAXJOBPERUSER …: others are there */
    NODE_REJECT_NOT_ADMITTED, /* reserved now, and the reservation's access list lacks the job */
    NODE_REJECT_LOAD,         /* what is measured there leaves too little */
    NODE_VERDICTS
};
const char *node_verdict_name (enum node_verdict verdict); /* "State", "ReserveTime" … */

struct explained_nodes {
    uint32_t req;                  /* the job's req with the least room; what follows is of it */
    uint32_t count[NODE_VERDICTS]; /* nodes */
    int64_t idle_procs;            /* free on nodes that are up */
    int64_t feasible_procs;        /* of them, those this req could use for the job's whole limit */
    uint8_t *verdict;              /* [node]; in the arena */
    uint32_t *tasks;               /* [node]: how many could start */
    time_us earliest; /* start of the whole job, not before `from`; TIME_US_NONE: never */
};
/* An idle job against all nodes; its own reservation does not stand in its way. */
int explain_nodes (struct cluster *cluster, struct job_id job, time_us from, time_us now,
                   struct arena *arena, struct explained_nodes *out, struct err *err);

/* What stands on a node beside its running jobs: idle jobs' reservations. Calls back for each, in
 * order of time as the last plan made them. */
void explain_reserved (const struct cluster *cluster,
                       void (*fn) (void *arg, struct job_id job, time_us start, time_us end,
                                   const struct allocation *allocation),
                       void *arg);

#endif
