/* h2conn: the socket, TLS and nghttp2 of one connection, as a state machine in the loop.
 * rpcserver.c and rpclink.c own one per peer. It never blocks, gives up its turn after a few
 * rounds so that others are served, and tells its owner of the end exactly once. */
#include "proto/rpc/h2conn.h"

#include <assert.h>
#include <errno.h>
#include <event2/event_struct.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/rpc/tlsreason.h"

enum {
    OUT_BYTES = 16384,  /* one TLS record */
    READS_PER_TURN = 2, /* then others get a turn: some twenty signed jobs are 2 ms of verifying */
    ROUNDS_PER_TURN = 8,
    HANDSHAKE_S = 10,
    LINGER_S = 1,
    PING_ANSWER_S = 20,
};

enum state { CONNECTING, HANDSHAKE, OPEN, LINGER, DEAD };

struct h2conn {
    struct event_base *base;
    int fd;
    SSL *ssl;
    BIO_METHOD *bio_method;
    nghttp2_session *session;
    const struct h2conn_ops *ops;
    void *owner;
    X509 *own_cert;
    duration_us keepalive;
    const struct sendgate *gate;
    const nghttp2_session_callbacks *callbacks; /* until the session is made */
    const nghttp2_option *option;
    enum state state;
    unsigned depth; /* of our own callbacks on the stack */
    int io_errno;   /* of the last recv or send that failed */
    bool server;
    bool dirty;
    bool drained; /* the last recv left the socket empty */
    bool eof;
    bool write_failed; /* reading may still say why */
    bool blocked;      /* waiting for ev_write */
    bool ended;        /* ops->ended was called */
    bool rx_seen, ping_out;
    bool reached;
    struct event ev_read, ev_write, ev_flush, ev_timer;
    const uint8_t *chunk; /* nghttp2's, valid until the next mem_send */
    size_t chunk_len;
    size_t out_len, out_off;
    uint8_t out[OUT_BYTES];
};

/* ---- the socket under OpenSSL: as BIO_s_socket, but a short recv says that the socket is empty,
 * which saves the recv that would return EAGAIN, and send never raises SIGPIPE. */

static int sock_read (struct h2conn *c, void *buf, size_t len)
{
    if (c->drained) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t n;
    do {
        n = recv (c->fd, buf, len, 0);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        c->eof = true;
    else if (n < 0 || (size_t)n < len)
        c->drained = true;
    if (n < 0 && errno != EAGAIN)
        c->io_errno = errno;
    return (int)n;
}

static int sock_write (struct h2conn *c, const void *buf, size_t len)
{
    ssize_t n;

    do {
        n = send (c->fd, buf, len, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        c->io_errno = errno;
    return (int)n;
}

static int bio_read (BIO *bio, char *buf, int len)
{
    int n = sock_read (BIO_get_data (bio), buf, (size_t)len);

    BIO_clear_retry_flags (bio);
    if (n < 0 && errno == EAGAIN)
        BIO_set_retry_read (bio);
    return n;
}

static int bio_write (BIO *bio, const char *buf, int len)
{
    int n = sock_write (BIO_get_data (bio), buf, (size_t)len);

    BIO_clear_retry_flags (bio);
    if (n < 0 && errno == EAGAIN)
        BIO_set_retry_write (bio);
    return n;
}

static long bio_ctrl (BIO *bio, int cmd, long num, void *ptr)
{
    const struct h2conn *c = BIO_get_data (bio);

    (void)num, (void)ptr;
    if (cmd == BIO_CTRL_EOF)
        return c->eof;
    return cmd == BIO_CTRL_FLUSH;
}

static bool attach_bio (struct h2conn *c)
{
    BIO *bio;

    c->bio_method = BIO_meth_new (BIO_TYPE_SOURCE_SINK | 127, "h2conn");
    if (!c->bio_method || !BIO_meth_set_read (c->bio_method, bio_read) ||
        !BIO_meth_set_write (c->bio_method, bio_write) ||
        !BIO_meth_set_ctrl (c->bio_method, bio_ctrl) || !(bio = BIO_new (c->bio_method)))
        return false;
    BIO_set_data (bio, c);
    BIO_set_init (bio, 1);
    SSL_set_bio (c->ssl, bio, bio);
    return true;
}

/* ---- lifetime */

static void conn_free (struct h2conn *c)
{
    c->ops->freed (c->owner);
    event_del (&c->ev_read);
    event_del (&c->ev_write);
    event_del (&c->ev_flush);
    event_del (&c->ev_timer);
    nghttp2_session_del (c->session);
    SSL_free (c->ssl);
    BIO_meth_free (c->bio_method);
    close (c->fd);
    free (c);
}

static void enter (struct h2conn *c)
{
    c->depth++;
}

static void leave (struct h2conn *c)
{
    if (--c->depth == 0 && c->state == DEAD)
        conn_free (c);
}

static void arm (struct h2conn *c, duration_us after)
{
    struct timeval tv = {after / US_PER_S, after % US_PER_S};

    event_add (&c->ev_timer, &tv);
}

/* The end, once: tells the owner, then lingers or dies. Depth must be above 0. */
static void end (struct h2conn *c, const struct err *why, bool linger)
{
    static const struct err none = {0, "closed"};

    assert (c->depth > 0);
    if (c->state == LINGER || c->state == DEAD)
        return;
    bool open = c->state == OPEN;
    c->state = linger && !c->eof ? LINGER : DEAD;
    event_del (&c->ev_write);
    event_del (&c->ev_timer);
    if (c->state == LINGER) {
        if (c->ssl && open) {
            ERR_clear_error ();
            SSL_shutdown (c->ssl);
        }
        shutdown (c->fd, SHUT_WR);
        event_add (&c->ev_read, NULL);
        arm (c, LINGER_S * US_PER_S);
    }
    c->ended = true;
    c->ops->ended (c->owner, why ? why : &none);
}

static void end_text (struct h2conn *c, const char *text)
{
    struct err why;

    err_set (&why, ERR_UNAVAILABLE, "%s", text);
    end (c, &why, false);
}

/* ---- reading and writing through TLS or plainly: > 0 bytes, 0 try again later, -1 over. */

static int h2_read (struct h2conn *c, uint8_t *buf, size_t len)
{
    if (!c->ssl) {
        int n = sock_read (c, buf, len);
        return n > 0 ? n : n < 0 && errno == EAGAIN ? 0 : -1;
    }
    ERR_clear_error ();
    int n = SSL_read (c->ssl, buf, (int)len);
    if (n > 0)
        return n;
    int e = SSL_get_error (c->ssl, n);
    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static int h2_write (struct h2conn *c, const uint8_t *buf, size_t len)
{
    if (!c->ssl) {
        int n = sock_write (c, buf, len);
        return n > 0 ? n : n < 0 && errno == EAGAIN ? 0 : -1;
    }
    ERR_clear_error ();
    int n = SSL_write (c->ssl, buf, (int)len);
    if (n > 0)
        return n;
    int e = SSL_get_error (c->ssl, n);
    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

/* Reading or the handshake failed: find the sentence. */
static void io_failed (struct h2conn *c)
{
    const char *peer = c->server ? "client" : "server";
    struct err why;

    if (c->io_errno) {
        ERR_clear_error ();
        err_set (&why, ERR_UNAVAILABLE, "connection lost: %s", strerror (c->io_errno));
    } else if (c->ssl) {
        tlsreason_of_ssl (c->ssl, peer, c->own_cert, &why);
    } else {
        err_set (&why, ERR_UNAVAILABLE, "the %s closed the connection", peer);
    }
    end (c, &why, c->state == HANDSHAKE);
}

static void flush (struct h2conn *c);

/* Feeds the session what has arrived; the caller settles afterwards. */
static void read_some (struct h2conn *c)
{
    uint8_t buf[OUT_BYTES];
    struct err why;
    int n = 1;

    c->drained = false;
    for (int i = 0; i < READS_PER_TURN && n > 0 && c->state == OPEN; i++) {
        n = h2_read (c, buf, sizeof (buf));
        if (n <= 0)
            break;
        c->rx_seen = true;
        c->ping_out = false;
        ssize_t rv = nghttp2_session_mem_recv (c->session, buf, (size_t)n);
        if (rv < 0) {
            err_set (&why, ERR_UNAVAILABLE, "HTTP/2: %s", nghttp2_strerror ((int)rv));
            flush (c); /* a GOAWAY may be waiting */
            end (c, &why, true);
            return;
        }
    }
    if (c->state == OPEN && (n < 0 || (n == 0 && c->write_failed)))
        io_failed (c);
    else if (n > 0 && c->state == OPEN) /* bytes may wait inside OpenSSL, unseen by the kernel */
        event_active (&c->ev_read, EV_READ, 0);
}

/* Fills out from the session. False when the session is broken. */
static bool fill (struct h2conn *c)
{
    while (c->out_len < OUT_BYTES) {
        if (c->chunk_len == 0) {
            ssize_t n = nghttp2_session_mem_send (c->session, &c->chunk);
            if (n < 0)
                return false;
            if (n == 0)
                break;
            c->chunk_len = (size_t)n;
        }
        size_t take = OUT_BYTES - c->out_len;
        if (take > c->chunk_len)
            take = c->chunk_len;
        memcpy (c->out + c->out_len, c->chunk, take);
        c->out_len += take;
        c->chunk += take;
        c->chunk_len -= take;
    }
    return true;
}

static void flush (struct h2conn *c)
{
    while (c->state == OPEN && !c->write_failed && !c->blocked) {
        /* A record that was begun must be repeated as it is: fill only when all is out. */
        if (c->out_len == 0 && !fill (c)) {
            end_text (c, "HTTP/2: out of memory");
            return;
        }
        if (c->out_len == 0)
            break;
        struct err why = {0};
        if (c->gate && c->gate->open (c->gate->self, &why) < 0) {
            end (c, &why, false);
            return;
        }
        int n = h2_write (c, c->out + c->out_off, c->out_len - c->out_off);
        if (n == 0) {
            c->blocked = true;
            event_add (&c->ev_write, NULL);
            return;
        }
        if (n < 0) { /* an alert may be waiting to be read: it says more than EPIPE */
            c->write_failed = true;
            event_active (&c->ev_read, EV_READ, 0);
            return;
        }
        c->out_off += (size_t)n;
        if (c->out_off == c->out_len)
            c->out_off = c->out_len = 0;
    }
}

static bool gate_shut (const struct h2conn *c)
{
    return c->gate && c->gate->shut (c->gate->self);
}

/* Runs what the bytes caused, sends what that submitted, and again while sending causes more (a
 * stream that became ready to produce), but not for ever: others wait. Before a shut gate all wait for on_flush,
 * which the loop runs after what else has arrived. */
static void settle (struct h2conn *c, bool from_loop)
{
    for (int i = 0; i < ROUNDS_PER_TURN && c->state == OPEN; i++) {
        c->ops->turn (c->owner);
        c->dirty = !from_loop && gate_shut (c);
        if (c->dirty)
            break;
        if (c->state == OPEN)
            flush (c);
        if (!c->dirty)
            break;
    }
    if (c->dirty)
        event_active (&c->ev_flush, EV_TIMEOUT, 0);
    if (c->state == OPEN && !c->blocked && !nghttp2_session_want_read (c->session) &&
        !nghttp2_session_want_write (c->session))
        end (c, NULL, true);
}

/* ---- coming up */

static bool session_make (struct h2conn *c)
{
    const nghttp2_option *option = c->ops->option ? c->ops->option (c->owner) : c->option;
    int rv = c->server ? nghttp2_session_server_new2 (&c->session, c->callbacks, c->owner, option)
                       : nghttp2_session_client_new2 (&c->session, c->callbacks, c->owner, option);

    return rv == 0;
}

static void open_session (struct h2conn *c)
{
    struct err why = {0};

    event_del (&c->ev_timer);
    if (!session_make (c)) {
        end_text (c, "HTTP/2: out of memory");
        return;
    }
    c->state = OPEN;
    if (c->ops->established (c->owner, &why) < 0) {
        flush (c); /* a GOAWAY that says why may be waiting */
        end (c, &why, true);
        return;
    }
    if (c->keepalive > 0)
        arm (c, c->keepalive);
    read_some (c); /* what came along with the end of the handshake */
    settle (c, false);
}

static void handshake (struct h2conn *c)
{
    const unsigned char *alpn;
    unsigned alpn_len;
    struct err why;

    c->drained = false;
    ERR_clear_error ();
    int n = SSL_do_handshake (c->ssl);
    if (n == 1) {
        SSL_get0_alpn_selected (c->ssl, &alpn, &alpn_len);
        if (alpn_len == 2 && memcmp (alpn, "h2", 2) == 0) {
            open_session (c);
            return;
        }
        err_set (&why, ERR_UNAVAILABLE, "the %s does not speak HTTP/2 here",
                 c->server ? "client" : "server");
        end (c, &why, true);
        return;
    }
    int e = SSL_get_error (c->ssl, n);
    if (e == SSL_ERROR_WANT_WRITE)
        event_add (&c->ev_write, NULL);
    else if (e != SSL_ERROR_WANT_READ)
        io_failed (c);
}

static void connected (struct h2conn *c)
{
    int e = 0;
    socklen_t len = sizeof (e);
    struct err why;

    if (getsockopt (c->fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0)
        e = errno;
    c->reached = e == 0 || e == ECONNRESET;
    if (e != 0) {
        err_set (&why, ERR_UNAVAILABLE, "%s",
                 e == ECONNREFUSED ? "connection refused" : strerror (e));
        end (c, &why, false);
        return;
    }
    event_add (&c->ev_read, NULL);
    c->state = HANDSHAKE;
    if (c->ssl)
        handshake (c);
    else
        open_session (c);
}

static void on_read (evutil_socket_t fd, short what, void *arg)
{
    struct h2conn *c = arg;
    uint8_t waste[4096];

    (void)fd, (void)what;
    enter (c);
    if (c->state == HANDSHAKE) {
        handshake (c);
    } else if (c->state == OPEN) {
        read_some (c);
        settle (c, false);
    } else if (c->state == LINGER) {
        ssize_t n = recv (c->fd, waste, sizeof (waste), 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            c->state = DEAD;
    }
    leave (c);
}

static void on_write (evutil_socket_t fd, short what, void *arg)
{
    struct h2conn *c = arg;

    (void)fd, (void)what;
    enter (c);
    c->blocked = false;
    if (c->state == CONNECTING)
        connected (c);
    else if (c->state == HANDSHAKE)
        handshake (c);
    else
        settle (c, false);
    leave (c);
}

static void on_flush (evutil_socket_t fd, short what, void *arg)
{
    struct h2conn *c = arg;

    (void)fd, (void)what;
    enter (c);
    settle (c, true);
    leave (c);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct h2conn *c = arg;

    (void)fd, (void)what;
    enter (c);
    if (c->state == LINGER) {
        c->state = DEAD;
    } else if (c->state == CONNECTING) {
        end_text (c, "no answer to the connection attempt in time");
    } else if (c->state == HANDSHAKE) {
        end_text (c, "the TLS handshake was not finished in time");
    } else if (c->state == OPEN && c->ping_out && !c->rx_seen) {
        end_text (c, "the other side no longer answers");
    } else if (c->state == OPEN) {
        bool silent = !c->rx_seen;
        c->rx_seen = false;
        c->ping_out = silent;
        if (silent)
            nghttp2_submit_ping (c->session, NGHTTP2_FLAG_NONE, NULL);
        arm (c, silent ? PING_ANSWER_S * US_PER_S : c->keepalive);
        settle (c, false);
    }
    leave (c);
}

/* ---- the interface */

struct h2conn *h2conn_create (const struct h2conn_config *config, struct err *err)
{
    struct h2conn *c = calloc (1, sizeof (*c));

    if (!c)
        goto nomem;
    *c = (struct h2conn){.base = config->base,
                         .fd = config->fd,
                         .ssl = config->ssl,
                         .ops = config->ops,
                         .owner = config->owner,
                         .server = config->server,
                         .own_cert = config->own_cert,
                         .keepalive = config->keepalive,
                         .gate = config->gate,
                         .callbacks = config->callbacks,
                         .option = config->option};
    event_assign (&c->ev_read, c->base, c->fd, EV_READ | EV_PERSIST, on_read, c);
    event_assign (&c->ev_write, c->base, c->fd, EV_WRITE, on_write, c);
    event_assign (&c->ev_flush, c->base, -1, 0, on_flush, c);
    evtimer_assign (&c->ev_timer, c->base, on_timer, c);
    if (c->ssl && !attach_bio (c))
        goto nomem;
    if (c->ssl && config->server)
        SSL_set_accept_state (c->ssl);
    else if (c->ssl)
        SSL_set_connect_state (c->ssl);
    arm (c, config->handshake_timeout ? config->handshake_timeout : HANDSHAKE_S * US_PER_S);
    c->state = config->connecting || !config->server ? CONNECTING : HANDSHAKE;
    /* Start from the loop, never from inside create: the owner is not ready yet. */
    if (c->state == CONNECTING) {
        event_add (&c->ev_write, NULL);
    } else {
        event_add (&c->ev_read, NULL);
        if (!c->ssl) {
            c->state = CONNECTING; /* plain: `connected` finds no error and opens the session */
            event_active (&c->ev_write, EV_WRITE, 0);
        }
    }
    return c;

nomem:
    if (c) {
        BIO_meth_free (c->bio_method);
    }
    SSL_free (config->ssl);
    close (config->fd);
    free (c);
    err_set (err, ERR_NOMEM, "out of memory for a connection");
    return NULL;
}

nghttp2_session *h2conn_session (struct h2conn *conn)
{
    return conn->state == OPEN ? conn->session : NULL;
}

SSL *h2conn_ssl (struct h2conn *conn)
{
    return conn->ssl;
}

bool h2conn_reached (const struct h2conn *conn)
{
    return conn->reached;
}

void h2conn_dirty (struct h2conn *conn)
{
    if (conn->dirty || conn->state != OPEN)
        return;
    conn->dirty = true;
    if (conn->depth == 0) /* else the callback we are in ends with settle */
        event_active (&conn->ev_flush, EV_TIMEOUT, 0);
}

void h2conn_close (struct h2conn *conn, const struct err *why)
{
    enter (conn);
    end (conn, why, true);
    leave (conn);
}

void h2conn_kill (struct h2conn *conn)
{
    enter (conn);
    conn->state = DEAD;
    event_del (&conn->ev_read);
    leave (conn);
}
