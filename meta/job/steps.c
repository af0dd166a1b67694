/* Long work by turns of the loop: see steps.h. Who calls: what is done with a whole array. What is done in a turn is durable
 * by the gate, as anything else is; a metascheduler that is killed between two turns has done some of it. */
#include "meta/job/steps.h"

#include <stdlib.h>
#include <utlist.h>

struct steps_run {
    struct metad *metad;
    struct steps what;
    uint32_t from;
    struct event *turn; /* NULL until a second one is needed */
    struct steps_run *prev, *next;
};

static void steps_end (struct steps_run *run, int rc, const struct err *err)
{
    struct steps what = run->what;
    if (run->turn) {
        DL_DELETE (run->metad->steps, run);
        event_free (run->turn);
    }
    free (run);
    what.done (what.arg, rc, err);
}

/* Whether there is more. */
static bool steps_turn (struct steps_run *run)
{
    const struct steps *what = &run->what;
    uint32_t n = what->count - run->from;
    struct err err;
    int rc = 0;
    err_clear (&err);
    n = n > what->at_once ? what->at_once : n;
    if (n)
        rc = what->some (what->arg, run->from, n, &err);
    run->from += n;
    if (rc == 0 && run->from < what->count)
        return true;
    steps_end (run, rc, &err);
    return false;
}

static void steps_soon (struct steps_run *run)
{
    const struct timeval at_once = {0, 0};
    evtimer_add (run->turn, &at_once);
}

static void steps_on_turn (evutil_socket_t fd, short what, void *arg)
{
    struct steps_run *run = arg;
    (void)fd;
    (void)what;
    if (steps_turn (run))
        steps_soon (run);
}

void steps_begin (struct metad *metad, const struct steps *steps)
{
    struct steps_run *run = calloc (1, sizeof *run);
    if (!run)
        abort ();
    run->metad = metad;
    run->what = *steps;
    if (!steps_turn (run))
        return;
    run->turn = evtimer_new (metad->base, steps_on_turn, run);
    if (!run->turn)
        abort ();
    DL_APPEND (metad->steps, run);
    steps_soon (run);
}

static void steps_close (struct metad *metad)
{
    struct err err;
    err_set (&err, ERR_UNAVAILABLE, "the metascheduler stops");
    while (metad->steps)
        steps_end (metad->steps, ERR_UNAVAILABLE, &err);
}

const struct metad_part steps_part = {.close = steps_close};
