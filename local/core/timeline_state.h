/* timeline_state: the inside of a timeline, for timeline.c and choose.c only. */
#ifndef NUI_LOCAL_CORE_TIMELINE_STATE_H
#define NUI_LOCAL_CORE_TIMELINE_STATE_H

#include "local/core/timeline.h"

struct step {
    time_us t;
    uint32_t bound;
    uint32_t pad;
    int32_t free[]; /* dims */
};

struct lane { /* one node */
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
    struct lane *part; /* by fence.part: what the reservation still keeps from others */
    const bool *only;  /* of timeline_restrict; NULL: all */
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
    uint32_t *sorted; /* bound numbers by time */
    int64_t *up;      /* per bound; zero between questions */
    int64_t *down;    /* at bound - duration + 1 */
    uint32_t *falling; /* lanes that fall, each once (it may have ceased to) */
    uint32_t falling_count;
    uint8_t *listed;   /* in falling */
    uint64_t *falls;   /* the same as bits */
    uint32_t *seen;    /* per node: the bound last counted, in this question */
    uint32_t question;
    uint64_t *reach;   /* nodes that could have room at reach_at */
    time_us reach_at;  /* TIME_US_NONE: of no use */
    struct candidate *candidate; /* room for one per node, once needed */
    uint64_t most_below; /* of the last sweep: the most that fitted before what was found */
    int64_t worst_key;   /* of the last choice: the last node taken, … */
    uint32_t worst_node; /* … which others would have to beat */
    struct views *views; /* NULL: no reservation has an ACL */
};

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

/* --- timeline.c, for view.c --------------------------------------------------------------- */

/* Makes a step begin at t; returns its index. */
uint32_t step_split (struct timeline *tl, struct lane *lane, time_us t);
/* Takes from (gives back to) any lane of the node; bounds grow. */
void lane_subtract (struct timeline *tl, struct lane *lane, uint32_t node, const struct shape *s,
                    uint32_t tasks, time_us start, time_us end, int sign);
bool lane_falls (const struct timeline *tl, const struct lane *lane);
/* The lane of the node is in the list and the bits of those that fall, or not, as its flag says. */
void lane_listed (struct timeline *tl, uint32_t node);

/* --- view.c ------------------------------------------------------------------------------- */

void views_make (struct timeline *tl);
/* As lane_take, on a node with fences. */
void view_take (struct timeline *tl, uint32_t place, const struct shape *s, uint32_t tasks,
                time_us start, time_us end, int sign, bool running);
/* What the node is to this class over [start, end). */
enum affinity view_affinity (const struct timeline *tl, uint32_t class, uint32_t node,
                             time_us start, time_us end);

/* Tasks that fit on one node through [start, end). */
uint32_t lane_fit (const struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                   time_us end);
/* The first node from n on that could take a task of the shape at `start`; node_count: none. */
uint32_t next_node (const struct timeline *tl, const struct shape *s, time_us start, uint32_t n);

#endif
