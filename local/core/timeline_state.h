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

/* Tasks that fit on one node through [start, end). */
uint32_t lane_fit (const struct timeline *tl, const struct shape *s, uint32_t node, time_us start,
                   time_us end);
/* The first node from n on that could take a task of the shape at `start`; node_count: none. */
uint32_t next_node (const struct timeline *tl, const struct shape *s, time_us start, uint32_t n);

#endif
