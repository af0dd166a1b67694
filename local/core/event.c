/* Where every event begins: the clock, and a plan that was not committed is taken back, so that no event meets starts
 * that may never come about. What an event frees voids what passes keep. Called by all that changes a cluster. */
#include <stdlib.h>

#include "local/core/pass.h"

/* One block for most passes, kept between them; what is not touched costs nothing, but that a sanitizer
 * marks all of it, for each of a forecast's many planners. */
#ifdef __SANITIZE_ADDRESS__
enum { SCRATCH_BYTES = 256 << 10 };
#else
enum { SCRATCH_BYTES = 32 << 20 };
#endif

struct planner *planner_create (void)
{
    struct planner *pl = mem_zero (1, sizeof *pl);

    pl->scratch = arena_create (SCRATCH_BYTES);
    return pl;
}

void planner_destroy (struct planner *pl)
{
    if (pl == NULL)
        return;
    arena_destroy (pl->scratch);
    free (pl->order);
    free (pl->mark);
    free (pl->row);
    free (pl->verdict);
    free (pl->started);
    free (pl->promised);
    free (pl->pair);
    free (pl->spare);
    free (pl->within);
    memo_free (pl);
    free (pl->listed.shape);
    free (pl->profile.t);
    free (pl->profile.free);
    free (pl);
}

/* A start that did not come about: idle again, as before. */
void plan_unstart (struct cluster *c, uint32_t slot)
{
    if (job_at (c, slot)->resuming) {
        suspended_again (c, slot);
        return;
    }
    rsv_unuse (c, job_at (c, slot)->spec.id);
    job_leave_running (c, slot);
    job_at (c, slot)->pending = false;
    idle_insert (c, slot);
}

/* The next pass tells the reasons that this one found and nobody heard of. */
static void pass_abandon (struct pass *p)
{
    p->planner->under_way = false;
    space_close (p);
    for (uint32_t i = 0; i < p->plan->reason_count; i++) {
        uint32_t slot = map_find (&p->c->map, p->plan->reason[i].job.v);
        p->c->hot[slot].reason_code = REASON_NOT_PLANNED;
    }
}

void planner_settle (struct cluster *c)
{
    struct planner *pl = c->planner;

    if (pl->under_way)
        pass_abandon (&pl->pass);
    else if (!pl->pending)
        return;
    pl->pending = false;
    memo_void (pl);
    c->settled++;
    for (uint32_t i = pl->started_count; i-- > 0;)
        plan_unstart (c, pl->started[i]);
}

void event_frees (struct cluster *c)
{
    c->planner->frees++;
    c->loads_stale = true;
    memo_void (c->planner);
}

void plan_forget (struct cluster *c)
{
    planner_settle (c);
    event_frees (c);
    c->lasting++;
}

void event_begin (struct cluster *c, time_us now)
{
    planner_settle (c);
    c->settled++;
    if (now > c->now)
        c->now = now;
}
