/* rpcserver_i: what rpcserver.c (listeners, connections, drain) and rpccall.c (streams) share. */
#ifndef NUI_RPC_RPCSERVER_I_H
#define NUI_RPC_RPCSERVER_I_H

#include <event2/event_struct.h>
#include <nghttp2/nghttp2.h>
#include <uthash.h>

#include "proto/metrics/metrics.h"
#include "proto/rpc/connshare.h"
#include "proto/rpc/grpcwire.h"
#include "proto/rpc/h2conn.h"
#include "proto/rpc/rpcserver.h"

enum {
    RPCSERVER_HEADER_BYTES_MAX = 16 * 1024, /* per request, counted as RFC 9113 10.5.1 */
    RPCSERVER_STREAM_WINDOW = 256 * 1024,
    RPCSERVER_CONNECTION_WINDOW = 1024 * 1024,
    RPCSERVER_QUEUED_MAX = 256 * 1024, /* per call: rpccall_send says stop */
    RPCSERVER_QUEUED_HARD_MAX =
        16 * 1024 * 1024,                       /* per call: a handler that does not stop is cut */
    RPCSERVER_BUFFERED_MAX = 256 * 1024 * 1024, /* request bytes of the whole server */
};

/* One method that was added; found by its path. */
struct rpcmethod {
    char *path; /* "/package.Service/Method" */
    const struct rpc_method *info;
    const ProtobufCMethodDescriptor *descriptor;
    void *self;
    struct metrics_times *times; /* [status] of unary calls; NULL until the first has ended */
    UT_hash_handle hh;
};

struct srvconn {
    struct rpcserver *server; /* NULL once the server is destroyed */
    struct h2conn *h2;
    struct principal peer;
    uint32_t uid;
    bool local;
    bool trusted; /* a daemon of the grid, or root on the local socket */
    bool ended;
    bool admitted; /* it has a place */
    bool knocking; /* in the pot of handshakes; also one that was refused, until it is gone */
    struct connshare_party *who, *address; /* NULL before it is known, and on the local socket */
    struct srvconn *knock_prev, *knock_next;
    uint8_t drain_step; /* 0 none, 1 notice sent, 2 GOAWAY sent */
    struct event ev_age;
    struct rpccall *calls;            /* open streams */
    struct rpccall *todo, *todo_tail; /* work for the end of the turn */
    struct srvconn *prev, *next;
};

/* Callbacks of nghttp2 for struct srvconn. */
nghttp2_session_callbacks *rpccall_callbacks (void);
/* The methods' work that callbacks put off: dispatch, cancel and ready hooks. */
void rpccall_turn (struct srvconn *conn);
/* The connection is gone: every open call loses its stream and hears of it. */
void rpccall_detach_all (struct srvconn *conn);

struct rpcmethod *rpcserver_find (struct rpcserver *server, const char *path, size_t len);
struct rpcmethod *rpcserver_methods (const struct rpcserver *server); /* the first, by hh.next */
/* The page at that path for such a caller; NULL: there is none. */
const struct rpcserver_page *rpcserver_page_at (const struct rpcserver *server, const char *path,
                                                size_t len);
/* A unary call of it has ended. */
void rpcmetrics_count (struct rpcmethod *method, enum rpc_status status, duration_us took);
struct event_base *rpcserver_base (const struct rpcserver *server);
struct log *rpcserver_log (const struct rpcserver *server);
/* Counts request bytes held; false when the server holds too many. */
bool rpcserver_buffer (struct rpcserver *server, size_t more);
void rpcserver_unbuffer (struct rpcserver *server, size_t less);
size_t rpcserver_buffered (const struct rpcserver *server);
struct connshare *rpcserver_shares (struct rpcserver *server);
/* For which user a gate calls, by the header that it brought. */
int rpcserver_gate_user (struct rpcserver *server, const char *header, size_t len,
                         const struct principal *gate, struct principal *user_out, bool *change_out,
                         struct err *err);
/* One line a second for whom it concerns. */
void rpcserver_refusal_log (struct srvconn *conn, const char *why);
void rpcserver_each (struct rpcserver *server, void (*fn) (struct srvconn *conn, void *arg),
                     void *arg);
/* Connections, also those that are lingering. For tests. */
uint32_t rpcserver_connections (const struct rpcserver *server);

#endif
