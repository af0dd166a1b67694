/* down: nodes that are down and are taken to be back NODEDOWNSTATEDELAYTIME from now. Nothing starts
 * there; what is promised there slides on with every pass, until they are back. */
#include "local/core/timeline_state.h"

#include <string.h>

/* When the last job that still has something of the node is taken to end; at `back` at the earliest. */
static time_us left_at (const struct cluster *c, uint32_t node, time_us now, time_us back)
{
    time_us last = back;

    for (uint32_t i = c->node_jobs[node] ? c->run_count : 0; i-- > 0;) {
        const struct allocation *a = &job_at (c, c->run[i].slot)->allocation;
        time_us end = effective_end (c, c->run[i].end, now);
        for (uint32_t k = 0; k < a->count; k++) {
            if (a->item[k].node.v == node && end > last)
                last = end;
        }
    }
    return last;
}

void down_enter (struct timeline *tl)
{
    const struct cluster *c = tl->c;
    time_us back = time_add (tl->now, c->policy->node_down_delay);

    for (uint32_t n = 0; c->awaited && n < c->node_count; n++) {
        struct lane *lane = &tl->lane[n];
        uint32_t i;
        if (c->node_state[n] == NODE_UP || !node_plannable (c, n))
            continue;
        lane->count = 1;
        memcpy (step_at (tl, lane, 0)->free, row (c, c->cap, n), tl->dims * sizeof (int32_t));
        i = step_split (tl, lane, left_at (c, n, tl->now, back));
        for (; i-- > 0;)
            memset (step_at (tl, lane, i)->free, 0, tl->dims * sizeof (int32_t));
        lane->falls = true; /* it rises where no job ends */
        lane_listed (tl, n);
    }
}
