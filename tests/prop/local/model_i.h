/* model_i: what model.c and model_room.c share. */
#ifndef NUI_TESTS_PROP_LOCAL_MODEL_I_H
#define NUI_TESTS_PROP_LOCAL_MODEL_I_H

#include "tests/prop/local/model.h"

#define FOREVER INT64_MAX

enum state { FUTURE, QUEUED, RUNNING, ENDED };

/* What somebody has on one node from when to when: running jobs and promises alike. */
struct taken {
    int node, procs, mem;
    int64_t start, end;
    uint32_t admits; /* bits of users to whom it is nothing */
};

/* Where a waiting job stands in this pass. */
enum mark { OUT, OVER_SOFT, WAITS, PROMISED, TRIED };

struct model {
    const struct model_node *node;
    int node_count;
    struct model_job *job;
    int job_count;
    const struct model_rule *rule;
    enum state *state;
    enum mark *mark;
    int64_t *promise; /* when it is to start, as of the last pass; FOREVER: not said */
    int64_t *until;   /* for limits */
    struct taken *taken;
    int taken_count, taken_running;
    int *owner; /* of taken[i] while running */
    int64_t now, last;
};

enum { NOBODY = -1 }; /* owns what is reserved */

/* --- model_room.c ----------------------------------------------------------------------------- */

int64_t plus (int64_t a, int64_t b);
bool admits (uint32_t users, const struct model_job *j);
/* The reservations that are there now. */
void blocks_take (struct model *m);
/* The k-th of its times, the first that is not over being 0. */
bool block_time (const struct model_block *b, int64_t now, int k, int64_t *start, int64_t *end);
/* Places the job over [start, end), asking for nodes that stay free until `until`; false: no room. */
bool place (struct model *m, int index, int64_t start, int64_t end, int64_t until);
/* The first of `from` and all ends after it at which the job can be placed; it is. */
int64_t earliest (struct model *m, int index, int64_t from);
/* The shortest window of at least `least`, or the longest shorter than `below`: how long idle nodes
 * keep all that is free on them now. */
int64_t window (const struct model *m, int64_t least, int64_t below);
/* Bound late. */
bool late_place (struct model *m, int index, int64_t begin);
int64_t late_earliest (struct model *m, int index, int64_t from);

#endif
