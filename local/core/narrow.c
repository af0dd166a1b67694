/* narrow: a place on fewer nodes than a job's shape allows: where PARCFG's limits close partitions to it for
 * the moment, and where USEMACHINESPEED makes it the longer, the slower its slowest node is. All nodes
 * are tried first, with the time that the slowest of them would need, then those at least so fast. */
#include "local/core/timeline_state.h"

struct narrowed {
    struct wanted w;
    uint32_t shape[REQS_MAX];
};

static void narrow_begin (struct cluster *c, const struct wanted *w, uint64_t partitions,
                          int32_t speed_ppm, struct narrowed *out)
{
    out->w = *w;
    out->w.shape = out->shape;
    for (uint32_t r = 0; r < w->req_count; r++) {
        out->shape[r] = shape_narrowed (c, w->shape[r], partitions, speed_ppm);
        (void)shape_refresh (c, out->shape[r]);
    }
}

static void narrow_end (struct cluster *c, const struct narrowed *n)
{
    for (uint32_t r = 0; r < n->w.req_count; r++)
        shape_release (c, n->shape[r]);
}

/* The speed that the slowest node has at least in this try, and how long the job has its nodes then. */
static int32_t speed_of_try (const struct cluster *c, uint32_t i, duration_us limit,
                             duration_us *length_out)
{
    *length_out = c->speed_count ? speed_length (limit, c->speed[i]) : limit;
    return i ? c->speed[i] : 0;
}

bool narrow_choose (struct timeline *tl, struct arena *arena, const struct wanted *w,
                    uint64_t partitions, time_us start, duration_us limit, duration_us at_least,
                    enum choice choice, struct allocation *out)
{
    struct cluster *c = tl->c;
    struct narrowed n;
    duration_us length;
    bool chosen = false;

    if (c->speed_count == 0 && partitions == 0)
        return timeline_choose (tl, arena, w, start, limit > at_least ? limit : at_least, choice,
                                out);
    for (uint32_t i = 0; !chosen && (i == 0 || i < c->speed_count); i++) {
        narrow_begin (c, w, partitions, speed_of_try (c, i, limit, &length), &n);
        chosen = timeline_choose (tl, arena, &n.w, start, length > at_least ? length : at_least,
                                  choice, out);
        narrow_end (c, &n);
    }
    return chosen;
}

bool narrow_place (struct timeline *tl, struct arena *arena, const struct wanted *w,
                   uint64_t partitions, duration_us limit, time_us from, time_us until,
                   enum choice choice, time_us *start_out, struct allocation *out)
{
    struct cluster *c = tl->c;
    struct narrowed n;
    duration_us length;
    bool placed = false;

    if (c->speed_count == 0 && partitions == 0)
        return timeline_place (tl, arena, w, limit, from, until, choice, start_out, out);
    for (uint32_t i = 0; from <= until && (i == 0 || i < c->speed_count); i++) {
        narrow_begin (c, w, partitions, speed_of_try (c, i, limit, &length), &n);
        if (timeline_place (tl, arena, &n.w, length, from, until, choice, start_out, out)) {
            placed = true;
            until = *start_out - 1; /* only what is earlier is better */
        }
        narrow_end (c, &n);
    }
    return placed;
}
