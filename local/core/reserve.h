/* reserve: where an administrator's reservation finds its nodes. Pure.
 *
 * Nodes are taken with the fewest resources first, after those it has already. Nothing
 * is changed: cluster_rsv_create or cluster_rsv_move follow, with rsv_spec.placed. Cost: O(nodes · steps),
 * times the boundaries tried where it is flexible in time. */
#ifndef NUI_LOCAL_CORE_RESERVE_H
#define NUI_LOCAL_CORE_RESERVE_H

#include "local/core/cluster.h"
#include "proto/base/arena.h"

struct rsv_ask {
    struct req req; /* tasks: how many at least; task, features, partition, tasks_per_node */
    bool whole;     /* a task is a whole node, whatever it has; placements are in processors then */
    bool all;       /* every task there is room for: TASKS>=n, host lists */
    const bool *host; /* [node]: only these; NULL: any */
    time_us start;
    time_us end;
    /* RSV_FORCED: whatever runs or is reserved there; RSV_TIMEFLEX: later, if need be, for as long;
     * RSV_DEDICATEDNODE: on nodes with nothing else; RSV_SHARED: over others that are shared;
     * RSV_DEDICATEDRESOURCE: nor where a waiting job was promised something */
    uint32_t flags;
    duration_us busy; /* where free nodes do not suffice: those that jobs leave by start + busy */
    struct allocation keep; /* what it has now: kept as far as it is up */
};

struct rsv_place {
    time_us start, end;
    uint32_t tasks;               /* as asked for: nodes where whole; may be fewer than req.tasks */
    uint32_t task_sum;            /* of the placements: what rsv_spec.req.tasks must be */
    struct allocation allocation; /* in the arena */
};

int cluster_rsv_place (struct cluster *cluster, const struct rsv_ask *ask, time_us now,
                       struct arena *arena, struct rsv_place *out, struct err *err);

#endif
