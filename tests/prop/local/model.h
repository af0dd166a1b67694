/* model: the same rules as the core's pass, as plainly as they can be written, for comparison.
 *
 * Every question is answered by trying: each moment, each node, each resource. One req per job,
 * processors and memory, lowest-numbered nodes first, order of submission. Slow on purpose. */
#ifndef NUI_TESTS_PROP_LOCAL_MODEL_H
#define NUI_TESTS_PROP_LOCAL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

struct model_node {
    int procs, mem;
};

/* A reservation that admits nobody, on one node. */
struct model_block {
    int node;
    int64_t start, end; /* INT64_MAX: no end */
};

struct model_job { /* in order of submission */
    int64_t submit, limit, run;
    int tasks, procs, mem; /* per task */
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
};

void model_run (const struct model_node *node, int node_count, struct model_job *job, int job_count,
                const struct model_rule *rule);

#endif
