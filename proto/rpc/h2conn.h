/* h2conn: one connection that carries an HTTP/2 session, in either role: connect, TLS handshake,
 * reading, flushing, keep-alive, lingering close. It knows nothing of gRPC.
 *
 * The owner gives callbacks for the nghttp2 session and ops for the connection. Rules that keep
 * nghttp2 and OpenSSL happy are kept here, in one place:
 *  - mem_send, mem_recv and session_del are never called inside a callback of nghttp2;
 *  - what was submitted is flushed once per turn of the loop, 16 KiB per SSL_write;
 *  - after a failed handshake, and after GOAWAY, the write side is shut and the rest drained for
 *    up to 1 s, so that the alert or the GOAWAY arrives.
 * One thread. Memory: about 16 KiB here, plus OpenSSL's and nghttp2's own. */
#ifndef NUI_RPC_H2CONN_H
#define NUI_RPC_H2CONN_H

#include <event2/event.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/rpc/sendgate.h"

struct h2conn;

struct h2conn_ops {
    /* TLS (if any) is up, so that the peer is known: with which options may it have a session? NULL: the
     * config's. */
    const nghttp2_option *(*option) (void *owner);
    /* TLS (if any) is up and the session exists: submit settings. A failure closes. */
    int (*established) (void *owner, struct err *err);
    /* Bytes were taken in; we are outside nghttp2's callbacks. Run what they caused. */
    void (*turn) (void *owner);
    /* The session is over and unusable. Called once at most, not after h2conn_kill. */
    void (*ended) (void *owner, const struct err *why);
    /* Last call, always made: the h2conn is freed when it returns. */
    void (*freed) (void *owner);
};

struct h2conn_config {
    struct event_base *base;
    int fd;   /* non-blocking; owned from now on, also on failure */
    SSL *ssl; /* owned from now on; NULL: plain HTTP/2 with prior knowledge */
    bool server;
    bool connecting;               /* connect() said EINPROGRESS */
    X509 *own_cert;                /* for sentences about our certificate; not owned, may be NULL */
    duration_us handshake_timeout; /* 0: 10 s; covers connecting too */
    duration_us keepalive;         /* silence before a PING */
    const struct sendgate *gate;   /* outlives the connection; NULL: none */
    const nghttp2_session_callbacks *callbacks; /* this and the option outlive the handshake */
    const nghttp2_option *option;
    const struct h2conn_ops *ops;
    void *owner;
};

struct h2conn *h2conn_create (const struct h2conn_config *config, struct err *err);
/* NULL before established and after ended. */
nghttp2_session *h2conn_session (struct h2conn *conn);
SSL *h2conn_ssl (struct h2conn *conn);
/* A connecting h2conn found somebody there (who may then have gone away during the handshake). */
bool h2conn_reached (const struct h2conn *conn);
/* Something was submitted: flush before the loop sleeps. */
void h2conn_dirty (struct h2conn *conn);
/* Ends the session now, with linger: ops->ended and, later, ops->freed. why NULL: no error. */
void h2conn_close (struct h2conn *conn, const struct err *why);
/* Frees at once (or on leaving the current callback) without linger; only ops->freed follows. */
void h2conn_kill (struct h2conn *conn);

#endif
