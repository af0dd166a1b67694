/* See soon.h. place/survey.c and group/group_call.c add to it; svc/metad.c ends it, when no link answers any more and the jobs
 * are still there. It must never call anybody from within soon_call. */
#include "meta/job/soon.h"

#include <stdlib.h>
#include <sys/queue.h>

struct soon_item {
    STAILQ_ENTRY (soon_item) link;
    void (*call) (void *arg);
    void *arg;
};

struct soon {
    struct event *event;
    STAILQ_HEAD (, soon_item) queue;
};

static void soon_first (struct soon *soon)
{
    struct soon_item item = *STAILQ_FIRST (&soon->queue), *first = STAILQ_FIRST (&soon->queue);
    STAILQ_REMOVE_HEAD (&soon->queue, link);
    free (first);
    item.call (item.arg);
}

/* The first of them; the others have turns of their own, in between those of whatever else happens. */
static void soon_on_event (evutil_socket_t fd, short what, void *arg)
{
    struct soon *soon = arg;
    (void)fd;
    (void)what;
    if (STAILQ_EMPTY (&soon->queue))
        return;
    soon_first (soon);
    if (!STAILQ_EMPTY (&soon->queue))
        event_active (soon->event, EV_TIMEOUT, 0);
}

struct soon *soon_create (struct event_base *base)
{
    struct soon *soon = calloc (1, sizeof *soon);
    if (!soon || !(soon->event = event_new (base, -1, 0, soon_on_event, soon)))
        abort ();
    STAILQ_INIT (&soon->queue);
    return soon;
}

void soon_call (struct soon *soon, void (*call) (void *arg), void *arg)
{
    struct soon_item *item = malloc (sizeof *item);
    if (!item)
        abort ();
    *item = (struct soon_item){.call = call, .arg = arg};
    STAILQ_INSERT_TAIL (&soon->queue, item, link);
    event_active (soon->event, EV_TIMEOUT, 0);
}

void soon_end (struct soon *soon)
{
    if (!soon)
        return;
    while (!STAILQ_EMPTY (&soon->queue))
        soon_first (soon);
    event_free (soon->event);
    free (soon);
}
