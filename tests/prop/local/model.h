/* model: the same rules as the core's pass, as plainly as they can be written, for comparison.
 *
 * Every question is answered by trying: each moment, each node, each resource, each limit. One req per
 * job, processors and memory, lowest-numbered nodes first (among them those of reservations that admit
 * the job), order of submission. Slow on purpose, and nothing of the core's is used. */
#ifndef NUI_TESTS_PROP_LOCAL_MODEL_H
#define NUI_TESTS_PROP_LOCAL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_node {
    int procs, mem;
};

/* A reservation of whole nodes, once or recurring; of a recurring one so many times are there at once:
 * the one that is going on or comes next, and those after it. */
struct model_block {
    uint32_t nodes;     /* bits */
    uint32_t admits;    /* bits of users */
    int64_t start, end; /* INT64_MAX: no end */
    int64_t period;     /* 0: once */
    int depth;
};

enum model_cred { MODEL_USER, MODEL_GROUP, MODEL_ACCOUNT, MODEL_CLASS, MODEL_QOS, MODEL_CREDS };

/* What a limit counts; of PS and WC, what is left of the limits of jobs that run. */
enum model_what {
    MODEL_JOB,
    MODEL_PROC,
    MODEL_NODE,
    MODEL_PS,
    MODEL_PE, /* millionths */
    MODEL_MEM,
    MODEL_WC,
    MODEL_MINPROC, /* of the job itself, at least */
    MODEL_WHATS
};

enum { /* whose a limit is, beside enum model_cred */
       MODEL_SYSTEM = MODEL_CREDS,
       MODEL_EACH_JOB, /* no sum: of any one job */
       MODEL_OVERRIDE, /* of a QoS, in place of those of users, groups, accounts and classes */
};
enum { MODEL_EACH = -1 /* whoever has none of his own; of other_id: of each */ };

struct model_limit {
    int whose, id;
    enum model_what what;
    bool idle;                /* of those that wait and are looked at; hard counts */
    int other_kind, other_id; /* of these jobs, those of one more credential; kind -1: all */
    int64_t soft, hard;
};

struct model_job { /* in order of submission */
    int64_t submit, limit, run;
    int tasks, procs, mem; /* per task */
    int cred[MODEL_CREDS]; /* -1: none; QoS 0 is DEFAULT */
    int64_t start;         /* out; -1: never */
};

enum model_backfill { MODEL_NONE, MODEL_FIRSTFIT, MODEL_BESTFIT };

struct model_rule {
    enum model_backfill backfill;
    bool late; /* one-processor tasks without memory only */
    bool longest_first;
    int depth;
    const struct model_block *block; /* not with late */
    int block_count;
    const struct model_limit *limit;
    int limit_count;
    uint32_t free_qos; /* bits: jobs of these keep no credential's limit */
    int64_t poll;      /* looks so often where time alone brings jobs within limits */
    int64_t patience;  /* and gives up so long after the last event, when nothing runs */
};

void model_run (const struct model_node *node, int node_count, struct model_job *job, int job_count,
                const struct model_rule *rule);

/* --- model_limit.c --------------------------------------------------------------------------- */

/* The machine as limits count it, and who counts at a moment: of each job, when it ends by its limit;
 * 0: it does not count. */
struct model_crowd {
    const struct model_node *node;
    int node_count;
    const struct model_job *job;
    int job_count;
    const struct model_rule *rule;
    const int64_t *until;
    int64_t at;
};

/* Would it break no limit? of_idle: those of idle jobs (until then says only who counts). */
bool model_within (const struct model_crowd *crowd, int index, bool of_idle, bool soft);
/* Nor one that looks at no other job? */
bool model_alone (const struct model_crowd *crowd, int index);
/* Does time alone change what is within limits? */
bool model_timed (const struct model_rule *rule);

#endif
