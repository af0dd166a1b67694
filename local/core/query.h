/* query: when and where something could start, given everything that is promised. Pure.
 *
 * Promised are: running jobs until their limits (one past its limit: a little longer, always),
 * reservations, and, where queue is true, the reservations that the last committed plan made for
 * idle jobs. Answers are exact at the node level and hold for one cluster_version (). Results live
 * in the arena. Cost of one question: O(nodes · boundaries on a node + boundaries). */
#ifndef NUI_LOCAL_CORE_QUERY_H
#define NUI_LOCAL_CORE_QUERY_H

#include "local/core/cluster.h"
#include "proto/base/arena.h"

struct query {
    uint32_t req_count;
    const struct req *req;
    duration_us duration; /* > 0 */
    time_us from;         /* no start before max (from, now) */
    time_us until;        /* no start after; TIME_US_MAX: no bound */
    bool queue;           /* leave the idle jobs' reservations alone */
    struct rsv_id inside; /* may use this reservation's resources; 0: none */
    uint64_t instead; /* of which co-allocation (rsv_spec.whose) it is to come instead; 0: none */
    /* For whom: whose classes, partitions and access policies count, and whom reservations' ACLs may
     * admit; NULL: nobody in particular. */
    const struct who *who;
    uint32_t licence_count;
    const struct licence *licence;
};

struct slot {
    time_us start; /* TIME_US_NONE: never, within [from, until] */
    struct allocation allocation;
    struct reason reason; /* of the first moment asked for, when it is not the start */
};

/* The earliest start and nodes for it, by the site's node allocation policy; of a job, so that with
 * USEMACHINESPEED it has its nodes for as long as the slowest needs. The other questions are about
 * slots, which last exactly `duration`. */
int query_earliest (struct cluster *cluster, const struct query *query, time_us now,
                    struct arena *arena, struct slot *out, struct err *err);

/* Exactly at `start`: nodes, or out->start = the next moment at which it would be possible (a
 * counter-offer; TIME_US_NONE: none until query->until) and *granted_out false with a reason. */
int query_slot (struct cluster *cluster, const struct query *query, time_us start, time_us now,
                struct arena *arena, bool *granted_out, struct slot *out, struct err *err);

struct interval {
    time_us begin;
    time_us end; /* inclusive: the last moment at which a start is possible */
};
/* All intervals within [from, until] in which it could start, ascending, disjoint, not touching;
 * at most max (the earliest ones). */
int query_intervals (struct cluster *cluster, const struct query *query, time_us now, uint32_t max,
                     struct arena *arena, struct interval **out, uint32_t *count_out,
                     struct err *err);

/* Several that start at one common moment, each so long after it. */
struct query_member {
    struct query
        query; /* its from and until are not looked at; queue, and instead as the first one's */
    duration_us offset;
};
struct query_step {
    time_us begin, end; /* of the common moment; end inclusive */
    uint32_t members;   /* > 0: so many of the first fit together then */
};
struct query_set {
    struct query_step *step; /* ascending, disjoint; where there is none nothing fits */
    uint32_t count;
    uint32_t looked; /* the first so many members were looked at */
    time_us until;   /* after that nothing was looked at */
};
/* How many of the members, taken in their order as one PREPARE after the other would take them, fit together when the
 * common moment is `from` or later, up to `until`. Ends sooner after `enough` spans at which all fit, or
 * QUERY_SET_WORK nodes looked at: O(that), and one moment of the first two members at least. */
enum { QUERY_SET_WORK = 200000 };
int query_set (struct cluster *cluster, const struct query_member *member, uint32_t count,
               time_us from, time_us until, uint32_t enough, time_us now, struct arena *arena,
               struct query_set *out, struct err *err);

/* Backfill windows now: for each distinct time until which something stays free, what is free that
 * long (nested, overlapping), shortest and widest first. */
struct window {
    duration_us length; /* TIME_US_MAX: no limit */
    uint32_t nodes;     /* with at least one processor free that long */
    uint64_t procs;
};
int query_windows (struct cluster *cluster, const struct who *who, bool queue, time_us now,
                   struct arena *arena, struct window **out, uint32_t *count_out, struct err *err);

/* The same over these nodes alone (tasks do not matter). only NULL: all. */
int query_windows_on (struct cluster *cluster, const struct who *who, const struct allocation *only,
                      bool queue, time_us now, struct arena *arena, struct window **out,
                      uint32_t *count_out, struct err *err);

/* Start estimates for one-processor tasks: start_out[s * duration_count + d] for sizes[s] tasks of
 * one processor (and mem_mb each) over durations[d], for whoever no ACL admits; TIME_US_NONE: never. */
int query_table (struct cluster *cluster, const uint32_t *sizes, uint32_t size_count,
                 const duration_us *durations, uint32_t duration_count, int32_t mem_mb, bool queue,
                 time_us now, time_us *start_out, struct err *err);

#endif
