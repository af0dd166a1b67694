/* stream: goes on with a long reply piece by piece, one step per turn of the loop, and waits
 * while the caller does not read. The listings of this folder call it. A step must stay short,
 * and its state belongs to the stream: the cluster may change between two steps. */
#include "local/svc/admin/admin.h"

#include <assert.h>

#include "local/svc/svc_i.h"

static void stream_end (struct admin_stream *s, enum rpc_status status, const char *why)
{
    struct rpccall *call = s->call;
    event_free (s->next);
    s->free_fn (s);
    rpccall_finish (call, status, why);
}

static void on_cancel (void *arg)
{
    stream_end (arg, RPC_CANCELLED, "cancelled");
}

static void pump (struct admin_stream *s)
{
    struct timeval at_once = {0, 0};
    arena_reset (s->svc->call_arena);
    s->blocked = false;
    if (!s->step (s))
        stream_end (s, RPC_OK, NULL);
    else if (!s->blocked)
        event_add (s->next, &at_once);
}

static void on_next (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    pump (arg);
}

static void on_ready (void *arg)
{
    struct admin_stream *s = arg;
    if (s->blocked)
        pump (s);
}

void admin_stream_start (struct svc *svc, struct rpccall *call, struct admin_stream *s)
{
    s->svc = svc;
    s->call = call;
    s->next = evtimer_new (svc->base, on_next, s);
    assert (s->next);
    rpccall_on_cancel (call, on_cancel, s);
    rpccall_on_ready (call, on_ready, s);
    pump (s);
}
