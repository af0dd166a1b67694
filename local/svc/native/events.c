/* What the resource manager tells of its own accord: starts, ends, nodes, jobs that were given to it itself. Each event
 * goes to who it concerns; those that come while a pass is being made wait until that is over, since they would take
 * back what is planned. */
#include <assert.h>
#include <stdlib.h>

#include "local/svc/job.h"
#include "local/svc/job/blame.h"
#include "local/svc/job/life.h"
#include "local/svc/native/native.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"

/* What came during the pass, in order. */
struct rm_waiting {
    struct arena *arena;
    struct rm_later *first, **end;
};

struct rm_later {
    struct rm_event event;
    struct rm_later *next;
};

static bool put_off (struct svc *svc, const struct rm_event *event)
{
    struct rm_waiting *w = svc->waiting;
    if (!svc->pass_under_way)
        return false;
    if (!w) {
        w = svc->waiting = calloc (1, sizeof *w);
        assert (w && "out of memory");
        w->arena = arena_create (0);
        w->end = &w->first;
    }
    struct rm_later *later = arena_new (w->arena, struct rm_later);
    rm_event_copy (event, w->arena, &later->event);
    *w->end = later;
    w->end = &later->next;
    return true;
}

static struct site_job *job_of_event (struct svc *svc, const struct rm_event *event)
{
    char prefix[STORE_NAME_MAX];
    uint64_t number;
    if (id_parse (event->job_id, prefix, sizeof prefix, &number, NULL) != 0)
        return NULL;
    struct site_job *job = svc_job (svc, number);
    return job && job->rec.incarnation == event->incarnation ? job : NULL;
}

void rm_event_on (void *arg, const struct rm_event *event)
{
    struct svc *svc = arg;
    if (put_off (svc, event))
        return;
    if (event->kind == RM_EVENT_NODES) {
        svc_nodes_changed (svc);
        deferral_nodes_changed (svc);
        pass_wake (svc);
        return;
    }
    if (event->kind == RM_EVENT_LOADS) {
        rmnodes_loads (svc);
        return;
    }
    if (event->kind == RM_EVENT_REACH) {
        if (svc->rm.ops->fresh (svc->rm.self))
            pass_wake (svc);
        return;
    }
    if (event->kind == RM_EVENT_NATIVE) {
        native_take (svc, event->native, event->native_count);
        return;
    }
    struct site_job *job = job_of_event (svc, event);
    if (!job) {
        SVC_TELL (svc, rm_unknown, (svc, event));
        log_event (svc->log, LOG_LEVEL_WARN, "rm", "event_of_unknown_job", "job=%s", event->job_id);
        return;
    }
    switch (event->kind) {
    case RM_EVENT_STARTED:
        if (job->rec.state == STORE_JOB_QUEUED && event->unasked)
            native_started (svc, job, event);
        else
            life_started (svc, job, event->status->start);
        if (event->placement && *event->placement)
            native_placed (svc, job, event->placement);
        break;
    case RM_EVENT_SUSPENDED:
        native_suspended (svc, job, event->suspended);
        break;
    case RM_EVENT_HANDED:
        native_handed (svc, job, event->rm_id);
        break;
    case RM_EVENT_UNKNOWN:
        native_unknown (svc, job);
        break;
    default:
        native_submit_follow (svc, job, event->submit);
        blame_ended (svc, job, event->status);
        life_ended (svc, job, event->status);
        break;
    }
}

void rm_events_release (struct svc *svc)
{
    struct rm_waiting *w = svc->waiting;
    if (!w)
        return;
    for (struct rm_later *later = w->first; later && !svc->closing; later = later->next)
        rm_event_on (svc, &later->event);
    w->first = NULL;
    w->end = &w->first;
    arena_reset (w->arena);
}

static void rm_events_close (struct svc *svc)
{
    if (svc->waiting)
        arena_destroy (svc->waiting->arena);
    free (svc->waiting);
}

const struct svc_listener rm_events_listener = {.close = rm_events_close};
