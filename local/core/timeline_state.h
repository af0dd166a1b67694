/* timeline_state: the inside of a timeline. Internal to local/core: lane.c and changes.c (one node), view.c (through an ACL
 * class's eyes), timeline.c (all nodes), timeline_make.c (how it comes about), choose.c and pick.c (which nodes). */
#ifndef NUI_LOCAL_CORE_TIMELINE_STATE_H
#define NUI_LOCAL_CORE_TIMELINE_STATE_H

#include "local/core/timeline.h"

struct step {
    time_us t;
    uint32_t bound;
    uint32_t pad;
    int32_t free[]; /* dims */
};

struct lane {       /* one node */
    uint32_t count; /* 0: not up */
    uint32_t cap;
    bool falls; /* something free now, or later, is not so for good */
    unsigned char *step;
};

/* A node that could take some tasks, and how much it is wanted: smaller keys first, then smaller
 * node numbers. */
struct candidate {
    int64_t key;
    uint32_t node;
    uint32_t fit;
};

/* A node that ACL reservations fence: what is there, and what class 0 sees of it. */
struct view_node {
    uint32_t node;
    uint32_t version;        /* of plain and of what the fences keep */
    uint32_t closed_version; /* of which closed is */
    uint32_t round;          /* of timeline_view, in which it was shown last */
    struct lane plain;
    struct lane closed;
};

struct views {
    uint32_t class; /* that lanes are shown to */
    uint32_t round;
    struct view_node *node; /* by place in access.fenced */
    struct lane *part;      /* by fence.part: what the reservation still keeps from others */
    const bool *only;       /* of timeline_restrict; NULL: all */
};

/* Free licences from t on. */
struct licence_step {
    time_us t;
    int32_t *free; /* [kinds] */
};

/* Who is on a node, and until when; a list per node. Only where it matters (cluster.sharing). */
struct occupant {
    uint32_t owner; /* user + 1; 0: nobody */
    uint32_t procs;
    uint32_t access; /* enum node_access */
    uint32_t next;   /* + 1; 0: the last */
    time_us start, end;
};

struct occupants {
    uint32_t *head; /* [node]: + 1; 0: nobody */
    struct occupant *list;
    uint32_t count, cap;
    uint32_t spare; /* + 1: given back */
};

/* Where and when running jobs end, as an array: jobs, their nodes and those's lanes lie all over. */
struct ends {
    uint64_t serial; /* cluster.run_serial of which it is */
    struct end_at {
        time_us t;
        uint32_t beyond; /* where its nodes end in node[]; they begin where the one before ends */
    } * at;
    uint32_t *node; /* those of one moment are there once each */
    uint32_t count, at_cap, node_cap;
};

struct sums {
    uint64_t *sum; /* [set] */
    uint32_t cap;
};

/* What was taken while nodes were asleep. Nothing here is owned. */
struct taken {
    const uint32_t *shape; /* by req */
    struct allocation allocation;
    time_us start, end;
    int sign;
    bool running;
};

/* Changes of what fits, node by node. */
struct move {
    uint32_t node;
    uint32_t next; /* + 1 */
    int64_t change;
};

struct moves {
    uint32_t *up, *down; /* [bound]: the first of its moves, + 1 */
    struct move *list;
    uint32_t count, cap;
};

struct timeline {
    struct cluster *c;
    struct arena *arena;
    time_us now;
    uint32_t dims;
    uint32_t stride;
    uint32_t node_count;
    struct lane *lane;
    time_us *bound; /* by number */
    uint32_t bound_count;
    uint32_t bound_cap;
    uint32_t *sorted;  /* bound numbers by time */
    int64_t *up;       /* per bound; zero between questions */
    int64_t *down;     /* at bound - duration + 1 */
    uint32_t *falling; /* lanes that fall, each once (it may have ceased to) */
    uint32_t falling_count;
    uint8_t *listed; /* in falling */
    uint64_t *falls; /* the same as bits */
    uint32_t *open;  /* nodes that were open when run_count was open_run; NULL: not yet asked */
    uint32_t open_count, open_run;
    struct ends ends;
    time_us latest;              /* the latest start that a question was answered with */
    uint64_t *reach;             /* nodes that could have room at reach_at */
    time_us reach_at;            /* TIME_US_NONE: of no use */
    struct candidate *candidate; /* room for one per node, once needed */
    struct fits *fits;           /* of a lane with many steps, while it is looked at */
    uint32_t fits_cap;
    struct moves *moves;          /* while changes are wanted node by node */
    struct sums *sums;            /* group.c */
    const struct bitset *only;    /* while a candidate set is tried: no other nodes */
    struct occupants *who;        /* NULL: it does not matter */
    struct licence_step *licence; /* at least one where there are kinds */
    uint32_t licence_count, licence_cap;
    struct place_trail trail;
    struct views *views;   /* NULL: no reservation has an ACL */
    const uint64_t *awake; /* nodes whose lanes are made, as bits; NULL: all. See timeline_make.c */
    struct taken *taken;   /* while some are not */
    uint32_t taken_count, taken_cap;
};

/* Is it one of these? NULL: all are. */
static inline bool of_these (const uint64_t *these, uint32_t node)
{
    return these == NULL || (these[node >> 6] >> (node & 63) & 1);
}

static inline struct step *step_at (const struct timeline *tl, const struct lane *lane, uint32_t i)
{
    return (struct step *)(void *)(lane->step + (size_t)i * tl->stride);
}

/* The step that holds at t (t >= now). */
static inline uint32_t step_find (const struct timeline *tl, const struct lane *lane, time_us t)
{
    uint32_t low = 0, high = lane->count; /* high >= 1; the answer is in [low, high) */

    if (high < 2 || step_at (tl, lane, 1)->t > t)
        return 0;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (step_at (tl, lane, mid)->t <= t)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* The lane's first step begins now. */
static inline void lane_forward (const struct timeline *tl, const struct lane *lane)
{
    if (lane->count)
        step_at (tl, lane, 0)->t = tl->now;
}

/* --- lane.c ------------------------------------------------------------------------------- */

/* Makes a step begin at t; returns its index. */
uint32_t step_split (struct timeline *tl, struct lane *lane, time_us t);
/* Takes from (gives back to) any lane of the node; bounds grow. */
void lane_subtract (struct timeline *tl, struct lane *lane, uint32_t node, const struct shape *s,
                    uint32_t tasks, bool first, time_us start, time_us end, int sign);
bool lane_falls (const struct timeline *tl, const struct lane *lane);
/* Makes sure that there is such a bound; returns its number. */
uint32_t bound_intern (struct timeline *tl, time_us t);
void bounds_reserve (struct timeline *tl, uint32_t need);
/* start counts from now at the earliest, so that what is taken and given back is the same. */
void occupant_change (struct timeline *tl, uint32_t node, const struct shape *s, uint32_t owner,
                      uint32_t tasks, time_us start, time_us end, int sign);
/* The lane of the node is in the list and the bits of those that fall, or not, as its flag says. */
void lane_listed (struct timeline *tl, uint32_t node);
/* When the node stops being able to run so many tasks. */
time_us free_until (const struct timeline *tl, const struct shape *s, uint32_t node, time_us end,
                    uint32_t fit);
/* Tasks that fit on one node through [start, end). */
uint32_t lane_fit (const struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                   time_us end);
/* All nodes that may have room at the present moment, by number; some may have none by now. */
const uint32_t *open_nodes (struct timeline *tl, uint32_t *count);
/* The next node of these, as bits (NULL: all), that may be taken at all; node_count: none. */
uint32_t next_of (const struct timeline *tl, const struct shape *s, const uint64_t *one,
                  const uint64_t *other, uint32_t n);
/* The first node from n on that could take a task of the shape at `start`; node_count: none. */
uint32_t next_node (const struct timeline *tl, const struct shape *s, time_us start, uint32_t n);

/* --- timeline_make.c ---------------------------------------------------------------------- */

/* A reservation's place, taken or (sign -1) given back. */
void rsv_take (struct timeline *tl, const struct rsv_spec *spec, const struct allocation *a,
               int sign);

/* --- instead.c ---------------------------------------------------------------------------- */

/* All reservations are entered: those that come instead of others take only what these leave. without: of those
 * that come instead of that co-allocation nothing is spared, since it is not there. */
void instead_enter (struct timeline *tl, uint64_t without);
/* The same for one that is to be made, for as long as this timeline is looked at. */
void instead_spare (struct timeline *tl, const struct rsv_spec *spec, const struct allocation *a);

/* --- changes.c ---------------------------------------------------------------------------- */

/* What fits at the first of the possible starts, and is it ever more or less? */
struct slide {
    uint32_t fit;
    bool moves;
};
struct slide lane_slides (struct timeline *tl, const struct shape *s, uint32_t node, time_us from,
                          time_us until, duration_us duration);

/* --- view.c ------------------------------------------------------------------------------- */

void views_make (struct timeline *tl);
void views_forward (struct timeline *tl); /* timeline_forward */
/* For nodes that have just woken up. */
void views_enter (struct timeline *tl, const uint64_t *only);
/* As lane_take, on a node with fences. */
void view_take (struct timeline *tl, uint32_t place, const struct shape *s, uint32_t tasks,
                bool first, time_us start, time_us end, int sign, bool running);
/* What the node is to this class over [start, end). */
enum affinity view_affinity (const struct timeline *tl, uint32_t class, uint32_t node,
                             time_us start, time_us end);

/* --- occupy.c ----------------------------------------------------------------------------- */

void occupants_open (struct timeline *tl);
void occupant_add (struct timeline *tl, uint32_t node, const struct occupant *one);
void occupant_remove (struct timeline *tl, uint32_t node, const struct occupant *one);
/* What is left of `fit` at t. */
uint32_t occupants_fit (const struct timeline *tl, const struct shape *s, uint32_t node, time_us t,
                        uint32_t fit);
/* Does somebody come at t? */
bool occupants_begin (const struct timeline *tl, uint32_t node, time_us t);

/* Tasks that fit as things are in this step. */
static inline uint32_t step_fit (const struct timeline *tl, const struct shape *s, uint32_t node,
                                 const struct step *step)
{
    uint32_t fit = shape_fit (tl->c, s, node, step->free);

    if (__builtin_expect (tl->who != NULL, 0) && fit > 0)
        fit = occupants_fit (tl, s, node, step->t, fit);
    return fit;
}

/* May the node be taken at all, now? */
static inline bool node_allowed (const struct timeline *tl, const struct shape *s, uint32_t node)
{
    return shape_suits (tl->c, s, node) &&
           (tl->only == NULL || (tl->only->word[node >> 6] >> (node & 63) & 1));
}

/* --- licence.c ---------------------------------------------------------------------------- */

void licences_open (struct timeline *tl);
void licences_take (struct timeline *tl, const struct licence *list, uint32_t count, time_us start,
                    time_us end, int sign);

/* --- trail.c ------------------------------------------------------------------------------- */

/* From t on so many of the tasks that are wanted fit. */
void trail_below (struct timeline *tl, uint64_t tasks, time_us t, uint64_t sum);
/* Are nodes for the shape taken one by one, each by what it is itself? */
bool orders_simply (const struct cluster *c, const struct shape *s);
/* Then: would a node like this come after the least wanted one of the trail? */
bool trail_worse (const struct timeline *tl, const struct place_trail *trail,
                  enum affinity affinity, int64_t key, uint32_t node);

/* --- choose.c, pick.c ---------------------------------------------------------------------- */

struct pick {
    struct placement *item;
    uint32_t count;
    uint32_t left; /* tasks still to place */
    uint32_t req;
};

static inline void pick_node (struct pick *pick, uint32_t node, uint32_t fit)
{
    uint32_t tasks = fit < pick->left ? fit : pick->left;

    if (tasks == 0)
        return;
    pick->item[pick->count++] = (struct placement){{node}, tasks & TASKS_MAX, pick->req & 0xFF};
    pick->left -= tasks;
}

bool pick_contiguous (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                      struct pick *pick);
void pick_balanced (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                    struct pick *pick);
void pick_local (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                 struct pick *pick);
/* Tasks over nodes that are all in `all`, with what each could take. */
void pick_laid_out (struct timeline *tl, const struct pick *all, enum task_distribution how,
                    struct pick *pick);
/* NODEALLOCATIONPOLICY PRIORITY: the highest first. */
double node_worth (const struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                   time_us end);

/* --- load.c ------------------------------------------------------------------------------- */

void loads_enter (struct timeline *tl);

/* --- down.c ------------------------------------------------------------------------------- */

void down_enter (struct timeline *tl);

/* --- group.c: candidate sets ---------------------------------------------------------------- */

/* As timeline_count, timeline_earliest and timeline_starts, for the best of the candidate sets. */
uint64_t group_count (struct timeline *tl, const struct shape *s, time_us start, time_us end,
                      uint64_t enough);
bool group_earliest (struct timeline *tl, const struct shape *s, uint64_t tasks,
                     duration_us duration, time_us from, time_us until, time_us *out);
void group_starts (struct timeline *tl, const struct shape *s, uint64_t tasks, duration_us duration,
                   time_us from, time_us until, interval_fn fn, void *self);
/* The sets in which there is room for all reqs over [start, end), the best first; in the arena. */
uint32_t group_order (struct timeline *tl, const struct wanted *w, time_us start, time_us end,
                      const struct node_group_set ***out);

/* --- timeline.c ------------------------------------------------------------------------------ */

/* Is this the first req of the allocation on its node? (Only where jobs are counted per node.) */
bool first_there (const struct timeline *tl, const struct allocation *a, uint32_t i);
/* Takes (gives back) on nodes of the allocation that are of these; NULL: on all. */
void lanes_take (struct timeline *tl, const uint32_t *shape, const struct allocation *a,
                 time_us start, time_us end, int sign, bool running, const uint64_t *only);

#endif
