/* rpcserver: gRPC over HTTP/2 with mutual TLS, on one libevent loop.
 *
 * Methods come from protobuf-c service descriptors plus a table beside them that gives, per method,
 * the handler, whether it streams, the size limit and who may call. A method without an entry
 * answers UNIMPLEMENTED; a caller whose kind is not in `allow` gets PERMISSION_DENIED. The health
 * service (grpc.health.v1) is built in and open to every authenticated peer.
 *
 * One thread. A handler may answer at once or keep the call and answer later; it holds one
 * reference until rpccall_finish. */
#ifndef NUI_RPC_RPCSERVER_H
#define NUI_RPC_RPCSERVER_H

#include <event2/event.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/log.h"
#include "proto/base/quantity.h"
#include "proto/metrics/metrics.h"
#include "proto/rpc/connshare.h"
#include "proto/rpc/sendgate.h"
#include "proto/rpc/tlsid.h"

/* gRPC status codes, numbers as in the specification. */
enum rpc_status {
    RPC_OK = 0,
    RPC_CANCELLED = 1,
    RPC_UNKNOWN = 2,
    RPC_INVALID_ARGUMENT = 3,
    RPC_DEADLINE_EXCEEDED = 4,
    RPC_NOT_FOUND = 5,
    RPC_ALREADY_EXISTS = 6,
    RPC_PERMISSION_DENIED = 7,
    RPC_RESOURCE_EXHAUSTED = 8,
    RPC_FAILED_PRECONDITION = 9,
    RPC_ABORTED = 10,
    RPC_OUT_OF_RANGE = 11,
    RPC_UNIMPLEMENTED = 12,
    RPC_INTERNAL = 13,
    RPC_UNAVAILABLE = 14,
    RPC_DATA_LOSS = 15,
    RPC_UNAUTHENTICATED = 16,
};

/* enum err_code <-> status, one table (ERR_FUNDS is FAILED_PRECONDITION with "funds: " text prefix). */
enum rpc_status rpc_status_of_err (int err_code);
int rpc_err_of_status (enum rpc_status status);
/* Whether who answered so would answer the same request so for ever: it may be set aside. Others pass
 * (silence, limits, faults). Only of an answer that came from the peer (rpc_result.answered). */
bool rpc_status_is_final (enum rpc_status status);

struct rpcserver;
struct rpccall; /* one incoming call */

#define RPC_ALLOW(kind) (1u << (kind)) /* RPC_ALLOW (PRINCIPAL_USER) | … */
#define RPC_ALLOW_ANY 0xffffffffu      /* every authenticated principal of this grid */
/* Beside those: a gate, for a user who is among them and by his delegation (gatedeleg.h), to look or to change something. */
#define RPC_GATE_READ (1u << 16)
#define RPC_GATE_CHANGE (1u << 17)

struct rpc_method {
    const char *name;           /* as in the .proto: "Prepare" */
    uint32_t allow;             /* RPC_ALLOW bits; 0 refuses everyone */
    bool server_streaming;      /* the handler may send several messages */
    uint32_t request_bytes_max; /* 0: 64 KiB; over 2 MiB it is a list, of many small parts
                                   (rpcrequest.h) */
    /* request is valid until the call is finished. self is what rpcserver_add_service was given. */
    void (*handler) (void *self, struct rpccall *call, const ProtobufCMessage *request);
};

struct rpcserver_config {
    struct event_base *base;
    struct tlsid *id;
    struct log *log;
    const char *listen;    /* "127.0.0.1:0": port 0 picks a free one */
    const char *unix_path; /* also (or only) a Unix socket, peer credentials; NULL: none */
    const struct connshare_limits *limits; /* NULL: RPCSERVER_LIMITS_DEFAULT */
    uint32_t streams_max;                  /* concurrent streams per connection; 0: 256 */
    duration_us connection_age_max;        /* 0: 1 h; so that revocation bites */
};

#define RPCSERVER_LIMITS_DEFAULT                                                                   \
    (struct connshare_limits)                                                                      \
    {                                                                                              \
        .connections = 1024, .per_principal = 64, .per_address = 512, .handshakes = 128,           \
        .handshakes_per_address = 64, .calls_per_s = 2000, .resets_per_s = 33, .unread = 64 << 20, \
        .unread_each = 24 << 20                                                                    \
    }

struct rpcserver *rpcserver_create (const struct rpcserver_config *config, struct err *err);
/* methods ends with name NULL; kept by pointer (static). */
int rpcserver_add_service (struct rpcserver *server, const ProtobufCServiceDescriptor *descriptor,
                           const struct rpc_method *methods, void *self, struct err *err);
uint16_t rpcserver_port (const struct rpcserver *server);
/* What the health service says while it is not draining; SERVING at first. For programs that can do
 * nothing while something of theirs is away (a database). */
void rpcserver_set_serving (struct rpcserver *server, bool serving);
/* For what comes from now on. More connections than the process may have files are not admitted. */
void rpcserver_set_limits (struct rpcserver *server, const struct connshare_limits *limits);
/* A page for GET over HTTP/2, beside the methods: the same shares of connections and calls. The text holds until the
 * loop's next turn. One a server; kept by pointer. */
struct rpcserver_page {
    const char *path; /* "/metrics" */
    uint32_t allow;   /* RPC_ALLOW bits; others get 403 */
    const char *(*text) (void *arg, enum metrics_form form, size_t *len);
    void *arg;
};
void rpcserver_set_page (struct rpcserver *server, const struct rpcserver_page *page);
/* Connections, and how long unary calls took by method and status. */
void rpcserver_metrics (const struct rpcserver *server, struct metrics_page *page);
/* For the connections that come from now on; the gate outlives them. */
void rpcserver_set_gate (struct rpcserver *server, const struct sendgate *gate);
/* After tlsid_reload: closes connections whose peer certificate is no longer valid. */
void rpcserver_recheck_peers (struct rpcserver *server);
/* Graceful: GOAWAY, finish what runs, then done_fn; after `grace` what is left is cut. */
void rpcserver_drain (struct rpcserver *server, duration_us grace, void (*done_fn) (void *arg),
                      void *arg);
void rpcserver_destroy (struct rpcserver *server);

/* Who calls; of a gate the user for whom it does. */
const struct principal *rpccall_peer (const struct rpccall *call);
/* The request that the handler was given: from now on the caller's, who frees it with
 * protobuf_c_message_free_unpacked. Once. */
ProtobufCMessage *rpccall_take (struct rpccall *call);
/* True for the local socket, where peer is {PRINCIPAL_USER, grid, login name}; uid_out may be NULL. */
bool rpccall_is_local (const struct rpccall *call, uint32_t *uid_out);
/* Called once if the client cancels, the deadline passes or the connection goes before finish;
 * the call object stays valid (sends are no-ops) until rpccall_finish. */
void rpccall_on_cancel (struct rpccall *call, void (*fn) (void *arg), void *arg);
/* Streaming: queues one message. Returns false when more than 256 KiB are queued: stop producing
 * until the ready hook is called (or the call is cancelled). */
bool rpccall_send (struct rpccall *call, const ProtobufCMessage *message);
void rpccall_on_ready (struct rpccall *call, void (*fn) (void *arg), void *arg);
/* Unary answer; finishes the call. */
void rpccall_reply (struct rpccall *call, const ProtobufCMessage *message);
/* Ends the call with a status; message NULL or a sentence (percent-encoded on the wire). */
void rpccall_finish (struct rpccall *call, enum rpc_status status, const char *message);
void rpccall_fail (struct rpccall *call, const struct err *err); /* status from err->code */
/* One of both: rc 0 replies, anything else fails. */
static inline void rpccall_answer (struct rpccall *call, int rc, const ProtobufCMessage *message,
                                   const struct err *err)
{
    if (rc == 0)
        rpccall_reply (call, message);
    else
        rpccall_fail (call, err);
}

#endif
