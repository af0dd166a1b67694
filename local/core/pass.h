/* pass: one scheduling pass in the making. Internal: steps.c drives, order.c sorts, eligible.c filters,
 * space.c knows where and when there is room, backfill.c fills what is left. */
#ifndef NUI_LOCAL_CORE_PASS_H
#define NUI_LOCAL_CORE_PASS_H

#include "local/core/timeline.h"

/* What became of the job at a position of the order. */
enum mark {
    MARK_WAITS,    /* eligible under soft limits */
    MARK_SOFT,     /* over a soft limit: for the hard backfill only */
    MARK_OUT,      /* not eligible in this pass */
    MARK_RESERVED, /* waits, with a reservation */
    MARK_TOLD,     /* waits, and the reason was given */
    MARK_STARTED,  /* in the order of priority */
    MARK_FILLED,   /* by backfill */
};

/* Free processors as a step function, where any free processor is as good as another. */
struct profile {
    time_us *t;
    int64_t *free;
    uint32_t count;
    uint32_t cap;
};

/* A reservation on nodes of one processor. */
struct promise {
    time_us start, end;
    uint64_t *node; /* bits */
};

/* What soft limits made of a promise: there was room from start on, but they did not allow it before
 * from. */
struct detour {
    time_us start, from;
};
enum { DETOURS_MAX = 4 };

struct units {
    uint32_t words;
    struct promise *promise;
    uint32_t count, cap;
    uint64_t *avail, *some; /* working space */
};

/* How a pass knows where there is room; see space.c. The timeline serves all; the others are kept for what bench_sim shows:
 * without COUNTED its 5 s of CPU become more than 200 s; without UNITS, Maui's FIRSTFIT and BESTFIT over KTH-SP2 go from 415
 * times faster than Maui to 165 (floor 200). */
enum room {
    ROOM_COUNTED,
    ROOM_UNITS,
    ROOM_TIMELINE,
};

/* Where a pass goes on: see steps.c. */
enum pass_step {
    STEP_FIRST, /* jobs whose own reservation is due, retries, those that go on, deadlines */
    STEP_PRIORITY,
    STEP_SOFT, /* backfill under soft limits */
    STEP_HARD,
    STEP_CLOSE, /* reasons, counts */
};

/* What a step looks at is counted in jobs; to ask where one has room counts as so many. */
enum { WORK_PLACE = 256 };

struct fill; /* backfill.c */

struct pass {
    struct cluster *c;
    const struct policy *policy;
    struct planner *planner;
    time_us now;
    int64_t now_s;
    struct arena *arena; /* the caller's: what the plan holds */
    struct arena *scratch;
    struct plan *plan;
    uint32_t start_cap;
    uint32_t reservation_cap;
    uint32_t *promised_slot; /* of the plan's reservations, as many */
    uint32_t reason_cap;
    uint32_t defer_cap, lapsed_cap;

    uint32_t *order; /* idle slots by priority */
    uint8_t *mark;
    struct job_hot *row; /* by position, as in the order; NULL (plain): see row_at */
    uint32_t count;
    uint32_t first_free;   /* position after which only backfill goes on */
    const uint8_t *within; /* by slot: within all soft limits; NULL: not known beforehand */
    bool plain;            /* no limit, cap, gate: everybody is eligible who fits at all */
    bool unhindered;       /* no fairshare cap, and no priority is too low */

    struct partition_use *partition_use; /* NULL: no partition has a limit */
    enum limit_level level;              /* of the limits that hold for those looked at now */

    /* room */
    enum room room;
    bool late;
    struct timeline *tl;    /* ROOM_TIMELINE */
    struct units units;     /* ROOM_UNITS */
    struct profile profile; /* ROOM_COUNTED, with more than one reservation */
    uint32_t *counted;      /* by shape: what space_now says and one, where that is known … */
    uint32_t counted_cap;
    uint64_t counted_serial; /* … until somebody starts */
    bool shadowed;           /* ROOM_COUNTED, exactly one reservation: the next two hold */
    time_us shadow;
    int64_t extra;
    bool profiled;

    uint32_t bucket_used[POLICY_BUCKETS_MAX];
    uint32_t depth_total; /* reservations that could be made at most */
    uint32_t reserved;
    struct detour detour[DETOURS_MAX]; /* of the promise that is being made */
    uint32_t detours;
    bool endless;            /* somebody is promised nodes for ever from a later moment on */
    bool chain;              /* what is other than in the last plan is followed: memo.c */
    uint32_t memo_at;        /* of its reservations so many are behind us */
    const struct memo *memo; /* that of the job in turn; NULL: it had none, or chain is false */
    uint32_t retries;        /* jobs that keep their nodes after a failed start */
    uint32_t expecting;      /* jobs that wait for data, among others perhaps */
    bool privileged;         /* some jobs may be reserved for outside the buckets */
    struct job_id head;      /* the first that waits */
    uint32_t evictions_tried;
    bool closed; /* nothing starts any more: room is being made, or the next to run waits */

    enum pass_step step;
    uint32_t left;     /* that it may look at before it stops */
    uint32_t at;       /* position in the order that the walk by priority has reached */
    bool only_reserve; /* the walk goes on for those who get reservations nevertheless */
    struct fill *fill; /* NULL: nothing to do in this step */
};

static inline void pass_spend (struct pass *p, uint32_t work)
{
    p->left -= work < p->left ? work : p->left;
}

enum { AHEAD = 12 }; /* how far to fetch: neighbours in the order are not neighbours in memory */

static inline const struct job_hot *row_at (const struct pass *p, uint32_t i)
{
    return p->row ? &p->row[i] : &p->c->hot[p->order[i]];
}

/* --- order.c ------------------------------------------------------------------------------ */

void order_make (struct pass *p);

/* --- eligible.c --------------------------------------------------------------------------- */

void eligible_mark (struct pass *p);
void verdicts_store (struct cluster *c, time_us now);
/* Limits once more, now that others have started. */
bool eligible_still (struct pass *p, uint32_t slot, enum limit_level level);
/* BFCHUNK, NOBF and the like are backfill's; this is what the job's QoS says. */
uint32_t qos_flags (const struct pass *p, uint32_t slot);

/* --- space.c ------------------------------------------------------------------------------ */

void space_open (struct pass *p);
/* Could it run now for its whole limit, every promise kept? */
/* Starts it if it fits through [now, now + at_least) (0: its limit), choosing nodes. */
bool space_start (struct pass *p, uint32_t slot, duration_us at_least, enum plan_phase phase);
/* Promises it the earliest moment; false: there is none. */
bool space_reserve (struct pass *p, uint32_t slot);
/* Is there no moment at which it would have room, with all that stands and is promised? why: then, what
 * of it. */
bool space_never (struct pass *p, uint32_t slot, struct reason *why);
void space_close (struct pass *p);
/* Timeline only: may the job run on just these nodes from now on? */
bool space_holds (struct pass *p, uint32_t slot, const struct allocation *a);
/* Then: starts it there (the allocation is copied). */
void space_start_at (struct pass *p, uint32_t slot, const struct allocation *a,
                     enum plan_phase phase);
/* Tasks of the shape that could start now, if only for a moment. Exact at the time of the call; cached per
 * shape until the next start. */
uint64_t space_now (struct pass *p, uint32_t shape);
/* Asks that for all that wait, one access class after the other: to see with the eyes of another class
 * costs more than to count, and most classes see nothing now that others do not. Changes no answer. */
void space_now_all (struct pass *p);
/* Are there too few processors or tasks free even for a moment? Several reqs: false. */
bool space_lacks (struct pass *p, const struct job_hot *row);
/* Is it known already that space_start would find too little? Looks at no more than the row. */
bool space_hopeless (const struct pass *p, const struct job_hot *row, duration_us at_least);
/* Are there too few licences free at this moment? */
bool space_unlicensed (const struct pass *p, uint32_t slot, const struct job_hot *row);

/* Backfill windows: the shortest of at least `least`, TIME_US_MAX when nothing begins any more; the
 * longest below `below`, 0 when there is none. */
duration_us space_window (struct pass *p, duration_us least);
duration_us space_window_below (struct pass *p, duration_us below);
/* Processors free for so long from now on. */
int64_t space_procs (struct pass *p, duration_us length);

/* --- units.c ------------------------------------------------------------------------------ */

bool units_possible (const struct cluster *c, time_us now);
void units_open (struct pass *p);
/* Nodes free through [now, now + duration). */
uint64_t units_count (struct pass *p, duration_us duration);
/* Nodes for a start now (heap). */
bool units_choose (struct pass *p, uint32_t tasks, duration_us duration, struct allocation *out);
/* The earliest promise (arena). */
bool units_reserve (struct pass *p, uint32_t tasks, duration_us duration, time_us from,
                    time_us *start_out, struct allocation *out);
/* Others are planned around it from now on. */
void units_promise (struct pass *p, time_us start, duration_us duration,
                    const struct allocation *a);
/* below 0: the shortest of at least `least`; else the longest below `below`. */
duration_us units_window (struct pass *p, duration_us least, duration_us below);

/* --- memo.c ------------------------------------------------------------------------------- */

void memo_void (struct planner *pl);
void memo_free (struct planner *pl);
/* These nodes have changed since the last pass. */
void memo_changed (struct planner *pl, const struct allocation *a, time_us until, bool freed);
/* So have these licences. */
void memo_licences (struct planner *pl, const struct licence *list, uint32_t count);
void memo_open (struct pass *p);
/* Nodes that are open or have changed, as bits: all that memo_reuse looks at before it wakes others. */
const uint64_t *memo_awake (struct pass *p);
/* Gives the job the reservation it had, if that is what it would get. */
bool memo_reuse (struct pass *p, uint32_t slot);
/* A start that the job surely can have, as it had it last time; TIME_US_MAX: none is known. */
time_us memo_bound (const struct pass *p);
/* Remembers one that was made anew, after pass.detours (before pass_reserved). */
void memo_made (struct pass *p, uint32_t slot, time_us start, const struct allocation *a);
/* There is no promise for the job in turn any more. */
void memo_lost (struct pass *p);
/* The plan is committed: what it made is what the next one may reuse. */
void memo_keep (struct planner *pl);

/* --- softstart.c -------------------------------------------------------------------------- */

/* The first moment from `from` on at which the job, which is within its soft limits now, is so with
 * what runs and is promised then; TIME_US_MAX: never. */
time_us softstart_from (struct pass *p, uint32_t slot, time_us from);

/* --- partition.c -------------------------------------------------------------------------- */

/* It has started in this pass. */
void partition_started (struct pass *p, uint32_t slot);
/* The partitions that are left to the waiting job where the limits close some; 0: they close none. */
uint64_t partition_closing (const struct pass *p, uint32_t slot, enum limit_level level);
/* May it have just these nodes? */
bool partition_allows (const struct pass *p, uint32_t slot, const struct allocation *a,
                       enum limit_level level);

/* Is its data not there yet? Such a job is not started. */
static inline bool data_due (const struct pass *p, uint32_t slot)
{
    return (p->c->hot[slot].gate & GATE_DATA) != 0;
}
/* May nodes be kept for it nevertheless? Not for an expectation that has passed, nor for one that has been put
 * off for longer than STAGEINGRACE: a source that trickles would keep them idle for as long as it likes. */
static inline bool data_kept (const struct pass *p, uint32_t slot)
{
    const struct job *job = job_at (p->c, slot);

    return job->spec.data_at > p->now &&
           p->now <= time_add (job->data_first, p->policy->data_grace);
}
/* The same, of jobs that eligible_mark has seen: for loops over all of them. */
static inline bool data_awaited (const struct pass *p, uint32_t slot)
{
    return p->expecting && data_due (p, slot);
}

/* --- retry.c ------------------------------------------------------------------------------ */

static inline bool retry_holds (const struct pass *p, uint32_t slot)
{
    return (p->c->hot[slot].gate & GATE_RETRY) && job_at (p->c, slot)->retry_until > p->now;
}
/* Jobs whose start failed lately: on the nodes they had, or these kept from others. */
void retry_run (struct pass *p);

/* --- backfill.c --------------------------------------------------------------------------- */

/* Whom to look at: those that wait, or in the hard pass those over a soft limit. NULL: nobody. */
struct fill *backfill_open (struct pass *p, bool hard);
/* Goes on with pass.fill as far as pass.left reaches. True: that is done. */
bool backfill_go (struct pass *p);
/* Is there no room ever, as things stand, for the job at this position? It is told so then, and holds
 * nobody up. */
bool pass_never (struct pass *p, uint32_t i);

/* --- deadline.c --------------------------------------------------------------------------- */

/* Takes what was promised to jobs with a deadline, if it still stands. */
void deadline_hold (struct pass *p);
/* The job's turn has come: gives back what it was promised. */
void deadline_turn (struct pass *p, uint32_t slot);
/* Those whose turn did not come keep it. */
void deadline_rest (struct pass *p);

/* --- preempt.c ---------------------------------------------------------------------------- */

/* May the job evict anybody at all? */
bool preempt_may (const struct pass *p, uint32_t slot);
/* This one, priorities aside? */
bool preempt_could (const struct pass *p, uint32_t slot, uint32_t victim);
/* Names in the plan whom the waiting job at slot needs gone; true: it starts once they are (they may
 * be on their way already), so nothing else may. False where that would not help. */
bool preempt_name (struct pass *p, uint32_t slot);

/* --- suspend.c ---------------------------------------------------------------------------- */

void suspended_resume (struct pass *p);

/* --- bound.c ------------------------------------------------------------------------------ */

void bound_start (struct pass *p);

/* --- event.c ------------------------------------------------------------------------------ */

/* A start that did not come about: idle again, as before. */
void plan_unstart (struct cluster *c, uint32_t slot);

/* --- report.c ----------------------------------------------------------------------------- */

void hash_in (uint64_t *hash, uint64_t value);
void pass_reason (struct pass *p, uint32_t slot, const struct reason *reason);
void pass_started (struct pass *p, uint32_t slot, enum plan_phase phase);
void pass_reserved (struct pass *p, uint32_t slot, time_us start,
                    const struct allocation *allocation);

static inline struct reason reason_plain (enum reason_code code)
{
    struct reason r = {0};

    r.code = (uint16_t)code;
    r.clears = TIME_US_NONE;
    return r;
}

/* A reservation of the last committed plan: see memo.c. Its nodes are in job.reserved. */
struct memo {
    struct job_id job;
    time_us start;
    struct place_trail trail;
    uint32_t detours;
    struct detour detour[DETOURS_MAX];
};

/* A node on which more (freed) or less is free than the last pass knew, until some moment. */
struct changed_node {
    uint32_t node;
    time_us until;
    bool freed;
};

/* Why a job's clock does not run, and whether it is over a soft limit: for the commit. */
struct verdict {
    uint32_t slot;
    uint8_t blocks; /* enum accrual_block */
    bool over_soft;
};

struct ranked_slot {
    uint32_t key;
    uint32_t slot;
};

struct planner {
    struct arena *scratch;
    struct pass pass;
    bool under_way;   /* the pass has begun and is not over */
    bool pending;     /* the starts of the last plan are applied, not committed */
    uint64_t serial;  /* grows with each computed plan */
    struct plan plan; /* the last one; arrays hold while pending */
    uint32_t *order;
    uint8_t *mark;
    struct job_hot *row;
    uint32_t order_cap;
    uint32_t order_count;
    uint32_t *started;
    uint32_t started_count; /* of the pass under way, or of the last plan */
    uint32_t started_cap;
    uint32_t *promised; /* slots with a reservation of the last committed plan */
    uint32_t promised_count;
    uint32_t promised_cap;
    /* order.c */
    struct ranked_slot *pair, *spare;
    uint32_t pair_cap;
    /* eligible.c */
    uint8_t *within; /* by slot: within its soft limits; of use where pass.within is set */
    uint32_t within_cap;
    /* space.c */
    struct profile profile;
    struct { /* all shapes that are in use (some others may be there, too), by access class */
        uint64_t serial; /* cluster.shape_serial of which it is */
        uint32_t *shape, count, cap;
    } listed;
    bool plain_room;   /* for tests: timelines always */
    bool plain_counts; /* for tests: space_now_all does nothing, each shape is counted for itself */
    struct verdict *verdict;
    uint32_t verdict_count, verdict_cap;
    struct memo *memo, *memo_next;
    uint32_t memo_count, memo_cap, memo_next_count, memo_next_cap;
    bool memo_valid;
    bool fences_moved; /* in this pass: some reservation belongs to one job from now on */
    struct changed_node *changed;
    uint32_t changed_count, changed_cap;
    struct { /* reservations so far: taken over as they were, on partly other nodes, made anew */
        uint64_t same, moved, made;
    } kept;
    uint64_t licences_changed; /* kinds, as bits */
    uint32_t *changed_at;      /* by node and direction: where in changed, if it is there */
    uint32_t changed_at_cap;
    /* what is common to all that wait for room: see room_reason */
    bool have_common; /* any free processor will do: `have` is everybody's number */
    int64_t have;     /* free processors at the end of the last pass */
    struct job_id head;
    bool strict;    /* no backfill */
    uint64_t frees; /* events that may let others start */
    uint64_t stamp; /* of the last committed reservations */
};

#endif
