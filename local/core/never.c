/* never: why there is no moment at all for a job, as things stand. Called by the pass and by questions, once they
 * have looked for a moment and found none; it looks at what is free after everything that has an end. */
#include "local/core/timeline_state.h"

const time_us never_after = TIME_US_MAX / 2; /* what is beyond: endless () */

/* A reservation without an end that keeps the shape off nodes which would suit it; 0: there is none. */
static struct rsv_id never_barred (const struct cluster *c, const struct shape *s)
{
    const struct access *a = c->access;

    for (uint32_t i = 0; a && i < a->fenced_count; i++) {
        uint32_t node = a->fenced[i];
        if (c->node_state[node] != NODE_UP || !shape_suits (c, s, node))
            continue;
        for (uint32_t k = a->fence_first[node]; k < a->fence_first[node + 1]; k++) {
            const struct fence *f = &a->fence[k];
            if (f->end == TIME_US_MAX && !access_grant (a, s->access, f->rsv))
                return a->open[f->rsv]->spec.id;
        }
    }
    return (struct rsv_id){0};
}

struct reason never_why (struct timeline *tl, const struct wanted *w)
{
    struct reason why = {.code = REASON_NEVER_FREE, .clears = TIME_US_NONE};

    for (uint32_t r = 0; r < w->req_count; r++) {
        const struct shape *s = &tl->c->shape[w->shape[r]];
        why.which = (uint8_t)r;
        why.need = w->req[r].tasks;
        why.have = (int64_t)timeline_count (tl, s, never_after, 1, UINT64_MAX);
        why.rsv = never_barred (tl->c, s);
        if (why.have < why.need)
            return why;
    }
    return why;
}
