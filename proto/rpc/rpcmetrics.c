/* How long calls took, and how many connections there are: what a server tells of itself. rpccall.c counts here when a
 * call's status is decided; the daemons' collector asks for the page. It must stay cheap: it runs for each call. */
#include <stdlib.h>
#include <string.h>

#include "proto/rpc/rpcserver_i.h"

enum { RPCMETRICS_STATUSES = RPC_UNAUTHENTICATED + 1 };

/* The words of the specification, as tools that read gRPC's metrics know them. */
static const char *const status_words[RPCMETRICS_STATUSES] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

void rpcmetrics_count (struct rpcmethod *method, enum rpc_status status, duration_us took)
{
    if (!method->times)
        method->times = calloc (RPCMETRICS_STATUSES, sizeof *method->times);
    if (method->times) /* without memory a call is not counted, and goes on */
        metrics_observe (&method->times[status], took);
}

void rpcserver_metrics (const struct rpcserver *server, struct metrics_page *page)
{
    metrics_one (page, "nui_connections", METRICS_GAUGE, "Connections that are open",
                 rpcserver_connections (server));
    metrics_family (page, "nui_rpc_seconds", METRICS_HISTOGRAM,
                    "How long unary calls took until their answer was decided");
    for (const struct rpcmethod *m = rpcserver_methods (server); m; m = m->hh.next)
        for (int s = 0; m->times && s < RPCMETRICS_STATUSES; s++)
            if (metrics_observed (&m->times[s]))
                metrics_times (page, &m->times[s],
                               METRICS_LABELS ("method", m->path + 1, "code", status_words[s]));
}
