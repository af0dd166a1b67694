/* timeline: for each node, what is free from when to when. Internal to local/core.
 *
 * Made for one pass or one query, in an arena, from running jobs (until their limits), reservations
 * and, if asked, idle jobs' reservations. A node's row is a short list of steps: from step.t on, so
 * much of each resource is free. All moments at which anything changes are the bounds; steps name
 * theirs, so that "how many tasks fit from when on" is a sum over bounds without sorting.
 *
 * Costs: making O(nodes + placements); a question O(steps + bounds); a reservation O(nodes it touches
 * * steps there). */
#ifndef NUI_LOCAL_CORE_TIMELINE_H
#define NUI_LOCAL_CORE_TIMELINE_H

#include "local/core/query.h"
#include "local/core/state.h"

struct timeline;

/* What is to be placed together: a job, a question, a reservation. Nothing here is owned. */
struct wanted {
    uint32_t req_count;
    const struct req *req;
    const uint32_t *shape; /* of each req, refreshed */
    uint32_t licence_count;
    const struct licence *licence;
};

static inline struct wanted wanted_job (const struct job *job)
{
    return (struct wanted){job->spec.req_count, job->spec.req, job->shape, job->spec.licence_count,
                           job->spec.licence};
}

/* queue: with the reservations of the last committed plan for idle jobs; inside: a reservation whose
 * resources count as free (0: none). */
struct timeline *timeline_make (struct cluster *c, struct arena *arena, time_us now, bool queue,
                                struct rsv_id inside);
/* The same for what is to come instead of that co-allocation (rsv_spec.whose): its parts are not there. */
struct timeline *timeline_without (struct cluster *c, struct arena *arena, time_us now, bool queue,
                                   uint64_t whose);

/* Made the timeline as of `now`, of a cluster that is as it was. False: not possible, since something in it
 * changes by itself until then; nothing is changed. */
bool timeline_forward (struct timeline *tl, time_us now);

/* A timeline of which only the nodes whose bits are set are there at first: all that are open, at least.
 * Until timeline_wake it may be asked only of the present moment (count, choose, windows, free), and of
 * nodes that are awake; what is taken counts on all. `awake` is kept, as are shapes and allocations that
 * are taken. May this cluster have one? Not where nodes are shared by who is there, or measured. */
bool timeline_may_doze (const struct cluster *c);
struct timeline *timeline_doze (struct cluster *c, struct arena *arena, time_us now,
                                const uint64_t *awake);
/* Nothing is asleep any more. */
void timeline_wake (struct timeline *tl);

/* From now on it is seen through the eyes of this class (access.h). Questions about a shape do this by
 * themselves; windows and lanes are those of the class that was shown last. */
void timeline_view (struct timeline *tl, uint32_t access);

/* Who may use reservations on these nodes has changed. */
void timeline_fences_changed (struct timeline *tl, const struct allocation *nodes);

/* Only the nodes of the allocation are there any more. */
void timeline_restrict (struct timeline *tl, const struct allocation *a);

/* Takes (or, negative sign, gives back) what the allocation uses over [start, end), licences too. */
void timeline_take (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                    time_us start, time_us end, int sign);

/* The same for a job that runs from now on and is in the cluster's running list. */
void timeline_run (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                   time_us end);

/* Are these very nodes free for all of the allocation over [start, end)? UINT32_MAX: yes; else the
 * first item for which there is no room (one past the last: licences are missing). Changes nothing. */
uint32_t timeline_lacks (struct timeline *tl, const struct wanted *w, const struct allocation *a,
                         time_us start, time_us end);

/* Tasks of one shape that could run through [start, start + duration); stops counting at enough. */
uint64_t timeline_count (struct timeline *tl, const struct shape *s, time_us start,
                         duration_us duration, uint64_t enough);

/* The most tasks of the shape that the node has room for over any [t, t + duration) with t < before. */
uint32_t timeline_most (struct timeline *tl, const struct shape *s, uint32_t node, time_us before,
                        duration_us duration);

/* Earliest moment in [from, until] from which on `tasks` of the shape fit; false: never. */
bool timeline_earliest (struct timeline *tl, const struct shape *s, uint64_t tasks,
                        duration_us duration, time_us from, time_us until, time_us *out);

/* From `from` until the next of these, no more tasks than so many would have fitted. */
struct below {
    time_us from;
    uint64_t most; /* UINT64_MAX: not known */
};

/* What timeline_place found out beside its answer: how many tasks fitted earlier (moments at which licences
 * were missing, and those before its `from`, aside), and the least wanted node that it took. */
enum { BELOW_MAX = 12 };
struct place_trail {
    struct below below[BELOW_MAX]; /* ascending in both; the first is from the beginning of time */
    uint32_t below_count;
    uint32_t worst_node;
    int64_t worst_key;
    enum affinity worst_affinity;
};
/* Forgets what fitted earlier: several timeline_place after it, each later than the last, add to it. */
void timeline_trail_begin (struct timeline *tl);
struct place_trail *timeline_trail (struct timeline *tl);
/* Would the node be wanted before the least wanted one of the trail, for [start, start + duration)? May
 * say yes for all that it knows. */
bool timeline_preferred (struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                         duration_us duration, const struct place_trail *trail);

/* How nodes are to be preferred. */
enum choice {
    CHOICE_POLICY,      /* NODEALLOCATIONPOLICY */
    CHOICE_SOON_ENDING, /* those whose free time ends soonest: leave the long ones to others */
    CHOICE_BUSY,        /* those that come free last: leave the idle ones to others */
};

/* Nodes for all reqs of a job over [start, start + duration), into the arena; false: they do not fit
 * together. Changes nothing. */
bool timeline_choose (struct timeline *tl, struct arena *arena, const struct wanted *w,
                      time_us start, duration_us duration, enum choice choice,
                      struct allocation *out);

/* The same for one req, when all that may have changed since the trail was made are `few` nodes, and these
 * have those that it took then: false: others may be wanted as well, or it is not known. The timeline's
 * trail is to be the old one; it has the new one's least wanted node then. */
bool timeline_choose_again (struct timeline *tl, struct arena *arena, const struct wanted *w,
                            time_us start, duration_us duration, const struct bitset *few,
                            struct allocation *out);

/* The earliest moment at which all reqs fit together, and nodes. */
bool timeline_place (struct timeline *tl, struct arena *arena, const struct wanted *w,
                     duration_us duration, time_us from, time_us until, enum choice choice,
                     time_us *start_out, struct allocation *out);

/* timeline_choose and timeline_place for a job of this limit: it has its nodes for as long as the slowest
 * needs (USEMACHINESPEED), and at_least at all events. partitions: only these; 0: all that the shapes
 * allow. */
bool narrow_choose (struct timeline *tl, struct arena *arena, const struct wanted *w,
                    uint64_t partitions, time_us start, duration_us limit, duration_us at_least,
                    enum choice choice, struct allocation *out);
bool narrow_place (struct timeline *tl, struct arena *arena, const struct wanted *w,
                   uint64_t partitions, duration_us limit, time_us from, time_us until,
                   enum choice choice, time_us *start_out, struct allocation *out);

/* --- never.c ------------------------------------------------------------------------------- */

/* A moment after everything that has an end. */
extern const time_us never_after;
/* For what has no moment at all, though there are nodes enough: what stands in its way without an end. */
struct reason never_why (struct timeline *tl, const struct wanted *w);
/* Do reservations of others that have no end leave it too little, however early all else ended? Such a job can never run. Not
 * all that have no moment are found, only what costs no search. O(reservations), and of each kind of tasks O(nodes reserved)
 * once. */
bool never_shut_out (struct cluster *c, const struct job *job);
/* Do reservations of others that come again each week on the same nodes leave it no moment, though each of them ends?
 * O(times in a week · nodes reserved), once until any of them changes; past NEVER_SERIES_MAX of them they are not asked. */
enum { NEVER_SERIES_MAX = 16 };
bool never_recurs (struct cluster *c, struct job *job);
/* The same of anything wanted for so long, at the cost of a look; and which rule forbids it. */
bool never_recurs_why (struct cluster *c, const struct wanted *w, duration_us length,
                       struct reason *why);

/* Start intervals of one shape: timeline_starts calls back in ascending order. */
typedef bool (*interval_fn) (void *self, time_us begin, time_us end);
void timeline_starts (struct timeline *tl, const struct shape *s, uint64_t tasks,
                      duration_us duration, time_us from, time_us until, interval_fn fn,
                      void *self);

/* The next moment after t at which what fits for so long could be more or less, by the first
 * `bounds` bounds (trying to place several reqs adds some of its own); TIME_US_MAX: none. */
time_us timeline_next_bound (const struct timeline *tl, uint32_t bounds, time_us t,
                             duration_us duration);
uint32_t timeline_bounds (const struct timeline *tl);

/* The shortest backfill window of at least `least`: how long (TIME_US_MAX: no end) the nodes that
 * are idle now stay free before something on any of them begins. */
duration_us timeline_window (const struct timeline *tl, duration_us least);
/* The longest one shorter than `below`; 0: none. */
duration_us timeline_window_below (const struct timeline *tl, duration_us below);

/* --- licence.c: floating licences as a lane of their own -------------------------------------- */

/* Are so many of each free over [start, end)? */
bool timeline_licensed (const struct timeline *tl, const struct wanted *w, time_us start,
                        time_us end);
/* The first moment from `from` on at which they are for so long; TIME_US_MAX: never. */
time_us timeline_licences_from (const struct timeline *tl, const struct wanted *w, time_us from,
                                duration_us duration);
/* Is counting tasks enough to know that they can be placed? Not where licences are wanted as well, there
 * are several reqs, or nodes have to lie side by side. */
bool timeline_countable (const struct timeline *tl, const struct wanted *w);

/* Processors and nodes free through [now, now + length). */
void timeline_free (const struct timeline *tl, duration_us length, uint32_t *nodes_out,
                    uint64_t *procs_out);

#endif
