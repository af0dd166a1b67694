/* rpcclient: calls to a gRPC server over one HTTP/2 connection that is made on demand, kept, and
 * made again with back-off. On one libevent loop; rpcclient_wait is the blocking form for tools.
 *
 * A call that certainly was not processed (REFUSED_STREAM, beyond GOAWAY's last id, never written)
 * is resent within its deadline. One whose connection was lost after sending ends UNAVAILABLE:
 * outcome unknown; it is retried only when `idempotent` is set (the request carries a key). */
#ifndef NUI_RPC_RPCCLIENT_H
#define NUI_RPC_RPCCLIENT_H

#include "proto/rpc/rpcserver.h" /* status codes */
#include "proto/rpc/sendgate.h"

struct rpcclient;
struct rpccallout; /* one outgoing call */

#define RPCCLIENT_SLOW_US (3 * US_PER_S)

struct rpcclient_config {
    struct event_base *base;
    struct tlsid *id; /* NULL with a unix: target */
    struct log *log;
    const char *target;              /* "host:port" or "unix:/path" */
    enum principal_kind expect_kind; /* the server must be this; PRINCIPAL_NONE: any of the grid */
    const char *expect_name;         /* and have this name; NULL: any */
    duration_us backoff_first;       /* 0: 100 ms; doubles with full jitter */
    duration_us backoff_max;         /* 0: 10 s */
    const struct sendgate *gate;     /* outlives the client's connections; NULL: none */
    void (*lost) (
        void *arg); /* a connection over which the server had spoken is gone; may be NULL */
    void *arg;
    /* Of a tool: nothing has come to a blocking call for RPCCLIENT_SLOW_US; once. May be NULL. */
    void (*slow) (const char *target);
    bool mend_text; /* a daemon's: text that is not UTF-8 is mended, not refused, and told in the
                       log */
};

struct rpcclient *rpcclient_create (const struct rpcclient_config *config, struct err *err);
/* Ends every call with CANCELLED (their done functions are called). */
void rpcclient_destroy (struct rpcclient *client);
bool rpcclient_connected (const struct rpcclient *client);
/* By the certificate that the server showed last; all empty before, and on a local socket. */
const struct principal *rpcclient_server (const struct rpcclient *client);

struct rpc_result {
    enum rpc_status status;
    const char *message;           /* never NULL; valid during the callback */
    const ProtobufCMessage *reply; /* unary and OK: the answer; valid during the callback */
    bool answered; /* the status is the server's own word, not the client's for want of one */
};

struct rpccallout_config {
    const ProtobufCServiceDescriptor *service;
    const char *method;
    const ProtobufCMessage *request; /* packed before the function returns */
    duration_us timeout;             /* sent as grpc-timeout; 0: 30 s; INT64_MAX: none */
    bool idempotent;
    uint32_t reply_bytes_max; /* 0: 4 MiB */
    const char *delegation;   /* of a gate: base64, for whom it calls; copied. NULL: none */
    /* Server streaming: each message; NULL for unary. */
    void (*on_message) (void *arg, const ProtobufCMessage *message);
    /* exactly once, never inside start */
    void (*done) (void *arg, const struct rpc_result *result);
    void *arg;
};

struct rpccallout *rpcclient_start (struct rpcclient *client,
                                    const struct rpccallout_config *config);
void rpccallout_cancel (struct rpccallout *callout); /* done is called with CANCELLED */

/* Blocking: runs the loop until the call ends. reply_out (may be NULL) gets an unpacked message to
 * be freed with protobuf_c_message_free_unpacked. Fills err from the status (rpc_err_of_status). */
int rpcclient_call (struct rpcclient *client, const ProtobufCServiceDescriptor *service,
                    const char *method, const ProtobufCMessage *request, duration_us timeout,
                    bool idempotent, ProtobufCMessage **reply_out, struct err *err);
/* Blocking server-streaming: on_message per message until the end. */
int rpcclient_stream (struct rpcclient *client, const ProtobufCServiceDescriptor *service,
                      const char *method, const ProtobufCMessage *request, duration_us timeout,
                      void (*on_message) (void *arg, const ProtobufCMessage *message), void *arg,
                      struct err *err);

#endif
