/* rpcclient_i: what rpcclient.c (calls, queue, back-off) and rpclink.c (one connection) share. */
#ifndef NUI_RPC_RPCCLIENT_I_H
#define NUI_RPC_RPCCLIENT_I_H

#include <event2/dns.h>
#include <event2/event_struct.h>
#include <nghttp2/nghttp2.h>

#include "proto/rpc/grpcwire.h"
#include "proto/rpc/h2conn.h"
#include "proto/rpc/rpcclient.h"

struct rpclink;

struct rpccallout {
    struct rpcclient *client;
    struct rpclink *link; /* NULL: waiting, or done */
    int32_t stream_id;
    char path[GRPCWIRE_PATH_MAX];
    const ProtobufCMessageDescriptor *output;
    char *delegation; /* NULL: none */
    uint8_t *request; /* prefix and message, kept for a resend */
    size_t request_len, request_off;
    duration_us deadline; /* monotonic, or INT64_MAX */
    struct event ev_deadline;
    bool idempotent, streaming;
    bool begun;     /* HEADERS may have left: the server may have seen it */
    bool answered;  /* the status came from the server */
    bool ever_sent; /* on some connection before: waits for the server to come back */
    unsigned resends;
    /* answer */
    size_t header_bytes;
    int http_status;
    bool grpc_content, has_status, has_message;
    int status;
    char *message;
    struct grpcwire_reader reader;
    uint8_t *body; /* the unary answer, taken from the reader */
    size_t body_len;
    ProtobufCMessage *reply;
    void (*on_message) (void *arg, const ProtobufCMessage *message);
    void (*done) (void *arg, const struct rpc_result *result);
    void *arg;
    struct rpccallout *prev, *next; /* in waiting, finished or the link's calls */
};

struct rpcclient {
    struct event_base *base;
    struct tlsid *id;
    struct log *log;
    char *target;
    char *host, *port; /* NULL with a unix: target */
    const char *unix_path;
    enum principal_kind expect_kind;
    char *expect_name;
    duration_us backoff_first, backoff_max;
    const struct sendgate *gate;
    void (*lost) (void *arg);
    void *arg;
    void (*slow) (const char *target);
    bool mend_text;
    struct principal server;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    struct evdns_base *dns;
    struct rpclink *current; /* takes new calls, perhaps once it is up; NULL: none */
    struct rpclink *links;   /* all, also those that only finish their calls */
    struct rpccallout *waiting, *finished;
    struct event ev_finished, ev_retry;
    unsigned failures;    /* in a row */
    duration_us retry_at; /* monotonic: not before */
    struct err last;      /* why the last attempt failed; code 0: it did not */
    unsigned depth;       /* delivering results */
    bool destroyed;
};

struct rpclink {
    struct rpcclient *client; /* NULL once the client is destroyed */
    struct h2conn *h2;        /* NULL while resolving and between addresses */
    struct evdns_getaddrinfo_request *resolving;
    struct evutil_addrinfo *addresses, *address; /* the next to try */
    bool reached;                                /* TCP came up once in this attempt */
    bool up;                                     /* calls may be submitted */
    bool proven;            /* the server has sent something: it did accept us */
    bool going;             /* GOAWAY, ids used up: no new calls */
    bool ending;            /* we said GOAWAY ourselves */
    struct err turned_away; /* the server had no place for us, and said why */
    struct rpccallout *calls;
    struct rpclink *prev, *next;
};

/* rpclink.c */
nghttp2_session_callbacks *rpclink_callbacks (void);
/* Begins an attempt; the result comes back through client_link_up or client_link_down. */
void rpclink_open (struct rpcclient *client);
/* Opens a stream for the call. False when this link takes no more (it is then `going`). */
bool rpclink_submit (struct rpclink *link, struct rpccallout *call);
/* Takes the call off its stream, resetting that if it is still open. */
void rpclink_drop (struct rpccallout *call);
void rpclink_kill (struct rpclink *link);

/* rpcclient.c, called by rpclink.c; message may be NULL. */
void client_link_up (struct rpclink *link);
/* No longer takes calls, though those it has go on. */
void client_link_going (struct rpclink *link);
void client_link_down (struct rpclink *link, const struct err *why);
void client_call_finish (struct rpccallout *call, enum rpc_status status, const char *message);
/* Certainly unprocessed: again, on a connection that takes it. */
void client_call_resend (struct rpccallout *call);
void client_deliver (struct rpcclient *client);

/* For tests: the HTTP/2 session in use, or NULL. */
nghttp2_session *rpcclient_session (struct rpcclient *client);

#endif
