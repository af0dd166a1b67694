/* rpcserver: listeners, connections, who may have how many of them, and draining; a single call
 * is rpccall.c's. The daemons' skeleton makes one. No handler runs for a peer whose identity is
 * not known, and no peer can take all the places. */
#include "proto/rpc/rpcserver.h"

#include <assert.h>
#include <errno.h>
#include <arpa/inet.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/health.pb-c.h"
#include "proto/rpc/gatedeleg.h"
#include "proto/rpc/rpcserver_i.h"

enum {
    STREAMS_MAX_DEFAULT = 256,
    AGE_DEFAULT_S = 3600,
    AGE_GRACE_S = 300, /* for calls that run when a connection reaches its age */
    NOTICE_MS = 200,   /* between shutdown notice and GOAWAY: a round trip */
    KEEPALIVE_S = 120,
    ACCEPT_PAUSE_MS = 100, /* when out of file descriptors */
    LISTEN_BACKLOG = 512,
    RESETS_TRUSTED = 1 << 20, /* of a daemon's connection: each deadline is a reset */
    HANDSHAKE_S = 5,
    FILES_KEPT = 64, /* for all that is not a connection */
};

struct rpcserver {
    struct event_base *base;
    struct tlsid *id;
    struct log *log;
    struct evconnlistener *tcp, *local;
    char *unix_path;
    struct stat unix_stat; /* so that only our own socket is unlinked */
    uint16_t port;
    uint32_t streams_max;
    struct connshare *shares;
    struct srvconn *knocking; /* the oldest first */
    duration_us age_max;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option, *option_trusted;
    struct rpcmethod *methods;
    struct srvconn *conns;
    uint32_t conn_count;
    struct gatememo *gates; /* NULL until a gate calls */
    size_t buffered;
    bool draining;
    bool away; /* rpcserver_set_serving (false) */
    const struct sendgate *gate;
    const struct rpcserver_page *page;
    void (*done_fn) (void *arg);
    void *done_arg;
    struct event ev_accept, ev_grace, ev_done;
};

/* ---- connections */

static void after (struct event *ev, duration_us delay)
{
    struct timeval tv = {delay / US_PER_S, delay % US_PER_S};

    event_add (ev, &tv);
}

static void conn_log (const struct srvconn *conn, enum log_level level, const char *event,
                      const char *why)
{
    char uri[PRINCIPAL_URI_MAX], quoted[2 * ERR_TEXT_MAX];

    if (conn->server)
        log_event (conn->server->log, level, "rpc", event, "peer=%s reason=%s",
                   conn->peer.kind ? principal_uri (&conn->peer, uri) : "unknown",
                   log_quote (why, quoted, sizeof (quoted)));
}

static const char the_socket[] = "the local socket";

/* The only form in which a refusal is told. */
static void refused_log (struct rpcserver *server, const char *peer, const char *from,
                         const char *why, uint64_t more)
{
    char quoted[2 * ERR_TEXT_MAX];

    log_event (server->log, LOG_LEVEL_WARN, "rpc", "refused",
               "peer=\"%s\" from=\"%s\" reason=%s and_more=%llu", peer, from,
               log_quote (why, quoted, sizeof (quoted)), (unsigned long long)more);
}

void rpcserver_refusal_log (struct srvconn *conn, const char *why)
{
    struct connshare_party *party = conn->who ? conn->who : conn->address;
    uint64_t more = 0;

    if (party && connshare_tell (party, clock_monotonic_us (), &more))
        refused_log (conn->server, conn->who ? connshare_name (conn->who) : "unknown",
                     conn->address ? connshare_name (conn->address) : the_socket, why, more);
}

/* Its handshake is over, or it is gone. */
static void conn_knocked (struct srvconn *conn)
{
    if (!conn->knocking)
        return;
    conn->knocking = false;
    DL_DELETE2 (conn->server->knocking, conn, knock_prev, knock_next);
    connshare_handshake_over (conn->server->shares, conn->address);
}

static void conn_parties_leave (struct srvconn *conn)
{
    struct connshare *shares = conn->server->shares;

    if (conn->admitted)
        connshare_depart (shares, conn->who, conn->address, conn->trusted);
    if (conn->who)
        connshare_leave (shares, conn->who);
    if (conn->address)
        connshare_leave (shares, conn->address);
    conn->admitted = false;
    conn->who = conn->address = NULL;
}

static int submit_settings (struct srvconn *conn)
{
    nghttp2_session *session = h2conn_session (conn->h2);
    nghttp2_settings_entry iv[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, conn->server->streams_max},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, RPCSERVER_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, RPCSERVER_HEADER_BYTES_MAX},
    };

    if (nghttp2_submit_settings (session, NGHTTP2_FLAG_NONE, iv, 3) != 0)
        return -1;
    return nghttp2_session_set_local_window_size (session, NGHTTP2_FLAG_NONE, 0,
                                                  RPCSERVER_CONNECTION_WINDOW);
}

/* Step by step: the notice lets requests that are on their way still count, GOAWAY ends that, and
 * the connection closes by itself when its last stream does. */
static void drain_step (struct srvconn *conn)
{
    nghttp2_session *session = h2conn_session (conn->h2);

    if (!session)
        return; /* in the handshake: conn_established comes back here */
    if (conn->drain_step == 0) {
        nghttp2_submit_shutdown_notice (session);
        after (&conn->ev_age, NOTICE_MS * 1000);
        conn->drain_step = 1;
    } else if (conn->drain_step == 1) {
        nghttp2_submit_goaway (session, NGHTTP2_FLAG_NONE,
                               nghttp2_session_get_last_proc_stream_id (session), NGHTTP2_NO_ERROR,
                               NULL, 0);
        after (&conn->ev_age, AGE_GRACE_S * US_PER_S);
        conn->drain_step = 2;
    } else {
        h2conn_close (conn->h2, NULL);
        return;
    }
    h2conn_dirty (conn->h2);
}

static void on_age (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    drain_step (arg);
}

/* The defence of nghttp2 against streams that are opened and reset stays on for people. */
static const nghttp2_option *conn_option (void *owner)
{
    struct srvconn *conn = owner;
    SSL *ssl = h2conn_ssl (conn->h2);
    X509 *cert = ssl ? SSL_get0_peer_certificate (ssl) : NULL;
    struct err err;

    if (cert && principal_of_cert (cert, &conn->peer, &err) < 0)
        conn->peer.kind = PRINCIPAL_NONE;
    conn->trusted = conn->local
                        ? conn->uid == 0
                        : conn->peer.kind == PRINCIPAL_SITE || conn->peer.kind == PRINCIPAL_META ||
                              conn->peer.kind == PRINCIPAL_BANK;
    return conn->trusted ? conn->server->option_trusted : conn->server->option;
}

/* Takes a place for it; a refusal goes to the peer in a GOAWAY. */
static int conn_admit (struct srvconn *conn, struct err *err)
{
    nghttp2_session *session = h2conn_session (conn->h2);
    struct connshare *shares = conn->server->shares;
    char uri[PRINCIPAL_URI_MAX], name[PRINCIPAL_URI_MAX + 32];

    if (conn->local)
        snprintf (name, sizeof (name), "local account %s", conn->peer.name);
    else
        snprintf (name, sizeof (name), "%s", principal_uri (&conn->peer, uri));
    conn->who = connshare_party (shares, name, clock_monotonic_us ());
    if (connshare_admit (shares, conn->who, conn->address, conn->trusted, err) < 0) {
        (void)nghttp2_submit_goaway (session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_ENHANCE_YOUR_CALM,
                                     (const uint8_t *)err->text, strlen (err->text));
        return err->code;
    }
    conn->admitted = true;
    conn_knocked (conn);
    return 0;
}

static int conn_established (void *owner, struct err *err)
{
    struct srvconn *conn = owner;
    uint32_t jitter;

    if (conn->peer.kind == PRINCIPAL_NONE)
        return err_set (err, ERR_UNAUTHENTIC, "the client's certificate has no identity");
    if (submit_settings (conn) != 0)
        return err_set (err, ERR_NOMEM, "out of memory for HTTP/2 settings");
    if (conn_admit (conn, err) < 0)
        return err->code;
    random_bytes (&jitter, sizeof (jitter));
    if (conn->server->draining)
        drain_step (conn);
    else /* within 10 %, so that peers that came together do not all come again together */
        after (&conn->ev_age,
               conn->server->age_max - conn->server->age_max / 10 * (jitter % 1000) / 1000);
    return 0;
}

static void conn_turn (void *owner)
{
    rpccall_turn (owner);
}

static void conn_ended (void *owner, const struct err *why)
{
    struct srvconn *conn = owner;

    conn->ended = true;
    event_del (&conn->ev_age);
    if (conn->server && (why->code == ERR_UNAUTHENTIC || !conn->admitted))
        rpcserver_refusal_log (conn, why->text);
    else
        conn_log (conn, LOG_LEVEL_DEBUG, "disconnected", why->text);
    rpccall_detach_all (conn);
}

static void conn_freed (void *owner)
{
    struct srvconn *conn = owner;
    struct rpcserver *server = conn->server;

    event_del (&conn->ev_age);
    rpccall_detach_all (conn);
    if (server) {
        conn_knocked (conn);
        conn_parties_leave (conn);
        DL_DELETE (server->conns, conn);
        server->conn_count--;
        if (server->draining && server->conn_count == 0)
            event_active (&server->ev_done, EV_TIMEOUT, 0);
    }
    free (conn);
}

static const struct h2conn_ops conn_ops = {.option = conn_option,
                                           .established = conn_established,
                                           .turn = conn_turn,
                                           .ended = conn_ended,
                                           .freed = conn_freed};

/* An address and its port less: of IPv6 the network of a subscriber. */
static void address_name (const struct sockaddr *sa, char out[96])
{
    char text[INET6_ADDRSTRLEN] = "?";

    if (sa->sa_family == AF_INET) {
        inet_ntop (AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, text,
                   sizeof (text));
    } else if (sa->sa_family == AF_INET6) {
        struct in6_addr net = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED (&net))
            memset (net.s6_addr + 8, 0, 8);
        inet_ntop (AF_INET6, &net, text, sizeof (text));
    }
    snprintf (out, 96, "address %s", text);
}

/* It goes into the pot of handshakes; the oldest there, of its own address first, gives way. */
static void conn_knock (struct srvconn *conn, const struct sockaddr *sa)
{
    struct rpcserver *server = conn->server;
    struct srvconn *old;
    struct err why;
    char name[96];
    bool own;

    address_name (sa, name);
    conn->address = connshare_party (server->shares, name, clock_monotonic_us ());
    conn->knocking = true;
    DL_APPEND2 (server->knocking, conn, knock_prev, knock_next);
    if (!connshare_handshake (server->shares, conn->address, &own))
        return;
    for (old = server->knocking; own && old->address != conn->address; old = old->knock_next)
        ;
    err_set (&why, ERR_LIMIT, "too many TLS handshakes are not finished: the oldest gives way");
    if (!old->ended)
        rpcserver_refusal_log (old, why.text);
    h2conn_kill (old->h2);
}

/* Takes over fd. peer NULL: TLS says who it is, and sa where it comes from. */
static void conn_add (struct rpcserver *server, int fd, const struct sockaddr *sa,
                      const struct principal *peer, uint32_t uid)
{
    struct srvconn *conn = NULL;
    SSL *ssl = NULL;
    struct err err;
    char from[96];

    if (sa)
        address_name (sa, from);
    else
        snprintf (from, sizeof (from), "%s", the_socket);
    conn = calloc (1, sizeof (*conn));
    if (!peer) {
        ssl = SSL_new (tlsid_server_ctx (server->id));
        if (!ssl)
            goto fail;
    }
    if (!conn)
        goto fail;
    conn->server = server;
    conn->local = peer != NULL;
    conn->uid = uid;
    if (peer)
        conn->peer = *peer;
    evtimer_assign (&conn->ev_age, server->base, on_age, conn);
    const struct h2conn_config config = {
        .base = server->base,
        .fd = fd,
        .ssl = ssl,
        .server = true,
        .handshake_timeout = HANDSHAKE_S * US_PER_S,
        .keepalive = KEEPALIVE_S * US_PER_S,
        .gate = server->gate,
        .callbacks = server->callbacks,
        .ops = &conn_ops,
        .owner = conn,
        .own_cert = server->id ? sk_X509_value (tlsid_chain (server->id), 0) : NULL};
    conn->h2 = h2conn_create (&config, &err);
    if (!conn->h2) {
        refused_log (server, peer ? peer->name : "unknown", from, err.text, 0);
        free (conn);
        return;
    }
    DL_APPEND (server->conns, conn);
    server->conn_count++;
    if (!peer)
        conn_knock (conn, sa);
    return;

fail:
    refused_log (server, peer ? peer->name : "unknown", from, "out of memory", 0);
    ERR_clear_error ();
    SSL_free (ssl);
    free (conn);
    close (fd);
}

/* ---- listeners */

static void on_accept_tcp (struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa,
                           int len, void *arg)
{
    static const int on = 1, idle = 60, interval = 10, count = 3, unacked_ms = 120000;

    (void)l, (void)len;
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
    setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof (on));
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof (idle));
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof (interval));
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof (count));
    setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof (unacked_ms));
    conn_add (arg, fd, sa, NULL, 0);
}

/* Who a local uid is. A uid without a login name is still somebody: "uid1234". */
static int local_principal (const struct rpcserver *server, uint32_t uid, struct principal *out,
                            struct err *err)
{
    struct passwd pw, *found = NULL;
    char buf[16384];

    *out = (struct principal){.kind = PRINCIPAL_USER};
    snprintf (out->grid, sizeof (out->grid), "%s",
              server->id ? tlsid_self (server->id)->grid : "local");
    if (getpwuid_r (uid, &pw, buf, sizeof (buf), &found) != 0 || !found) {
        snprintf (out->name, sizeof (out->name), "uid%u", uid);
        return 0;
    }
    if (name_check ("login name", found->pw_name, err) < 0)
        return err->code;
    snprintf (out->name, sizeof (out->name), "%s", found->pw_name);
    return 0;
}

static void on_accept_local (struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa,
                             int len, void *arg)
{
    struct rpcserver *server = arg;
    struct ucred cred;
    socklen_t cred_len = sizeof (cred);
    struct principal peer;
    struct err err;

    (void)l, (void)sa, (void)len;
    int rc = getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) < 0
                 ? err_set (&err, ERR_IO, "SO_PEERCRED: %s", strerror (errno))
                 : local_principal (server, cred.uid, &peer, &err);
    if (rc < 0) {
        refused_log (server, "unknown", the_socket, err.text, 0);
        close (fd);
        return;
    }
    conn_add (server, fd, NULL, &peer, cred.uid);
}

static void on_accept_again (evutil_socket_t fd, short what, void *arg)
{
    struct rpcserver *server = arg;

    (void)fd, (void)what;
    if (server->tcp)
        evconnlistener_enable (server->tcp);
    if (server->local)
        evconnlistener_enable (server->local);
}

/* Out of file descriptors: pause, or the loop would spin on a socket that stays readable. */
static void on_accept_error (struct evconnlistener *l, void *arg)
{
    struct rpcserver *server = arg;
    char quoted[256];

    log_event (server->log, LOG_LEVEL_ERROR, "rpc", "accept_failed", "error=%s",
               log_quote (strerror (errno), quoted, sizeof (quoted)));
    evconnlistener_disable (l);
    after (&server->ev_accept, ACCEPT_PAUSE_MS * 1000);
}

static struct evconnlistener *listener_new (struct rpcserver *server, evconnlistener_cb cb, int fd)
{
    struct evconnlistener *l = evconnlistener_new (
        server->base, cb, server, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);

    if (!l)
        close (fd);
    else
        evconnlistener_set_error_cb (l, on_accept_error);
    return l;
}

static int listen_tcp (struct rpcserver *server, const char *where, struct err *err)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai = NULL;
    struct sockaddr_storage ss;
    socklen_t len = sizeof (ss);
    char host[256];
    const char *colon = strrchr (where, ':');
    const int on = 1;
    int fd = -1, rc;

    if (!colon || (size_t)(colon - where) >= sizeof (host))
        return err_set (err, ERR_INVALID, "listen \"%s\": not of the form host:port", where);
    memcpy (host, where, (size_t)(colon - where));
    host[colon - where] = '\0';
    size_t n = strlen (host);
    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        memmove (host, host + 1, n - 2);
        host[n - 2] = '\0';
    }
    rc = getaddrinfo (host[0] && strcmp (host, "*") != 0 ? host : NULL, colon + 1, &hints, &ai);
    if (rc != 0)
        return err_set (err, ERR_INVALID, "listen \"%s\": %s", where, gai_strerror (rc));
    fd = socket (ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* SO_REUSEPORT: the successor may listen before the predecessor stops, so that a restart
     * refuses nobody. */
    if (fd < 0 || setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on)) < 0 ||
        setsockopt (fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof (on)) < 0 ||
        bind (fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen (fd, LISTEN_BACKLOG) < 0 ||
        getsockname (fd, (struct sockaddr *)&ss, &len) < 0) {
        rc = err_set (err, ERR_IO, "listen \"%s\": %s", where, strerror (errno));
        if (fd >= 0)
            close (fd);
    } else {
        server->port = ntohs (ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
                                                       : ((struct sockaddr_in *)&ss)->sin_port);
        server->tcp = listener_new (server, on_accept_tcp, fd);
        rc = server->tcp ? 0 : err_set (err, ERR_NOMEM, "listen \"%s\": out of memory", where);
    }
    freeaddrinfo (ai);
    return rc;
}

/* Removes the socket of a predecessor that is gone; one that still answers is left alone. */
static int clear_stale (const struct sockaddr_un *sun, struct err *err)
{
    struct stat st;
    int fd, rc;

    if (lstat (sun->sun_path, &st) < 0)
        return 0;
    if (!S_ISSOCK (st.st_mode))
        return err_set (err, ERR_EXISTS, "%s exists and is not a socket", sun->sun_path);
    fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set (err, ERR_IO, "socket: %s", strerror (errno));
    rc = connect (fd, (const struct sockaddr *)sun, sizeof (*sun));
    int e = errno;
    close (fd);
    if (rc == 0 || e == EAGAIN)
        return err_set (err, ERR_EXISTS, "%s: another program is listening there", sun->sun_path);
    if (unlink (sun->sun_path) < 0 && errno != ENOENT)
        return err_set (err, ERR_IO, "%s: %s", sun->sun_path, strerror (errno));
    return 0;
}

static int listen_unix (struct rpcserver *server, const char *path, struct err *err)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    int fd, rc;

    if (strlen (path) >= sizeof (sun.sun_path))
        return err_set (err, ERR_INVALID, "socket %s: at most %zu characters", path,
                        sizeof (sun.sun_path) - 1);
    strcpy (sun.sun_path, path);
    if ((rc = clear_stale (&sun, err)) < 0)
        return rc;
    fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Everyone may connect: the kernel says who it is. */
    if (fd < 0 || bind (fd, (struct sockaddr *)&sun, sizeof (sun)) < 0 || chmod (path, 0666) < 0 ||
        lstat (path, &server->unix_stat) < 0 || listen (fd, LISTEN_BACKLOG) < 0) {
        rc = err_set (err, ERR_IO, "socket %s: %s", path, strerror (errno));
        if (fd >= 0)
            close (fd);
        return rc;
    }
    server->unix_path = strdup (path);
    server->local = listener_new (server, on_accept_local, fd);
    if (!server->local || !server->unix_path)
        return err_set (err, ERR_NOMEM, "socket %s: out of memory", path);
    return 0;
}

/* Freed, not disabled: a disabled listener lets the kernel go on accepting. */
static void stop_listening (struct rpcserver *server)
{
    struct stat st;

    if (server->unix_path && lstat (server->unix_path, &st) == 0 &&
        st.st_ino == server->unix_stat.st_ino && st.st_dev == server->unix_stat.st_dev)
        unlink (server->unix_path);
    free (server->unix_path);
    server->unix_path = NULL;
    if (server->tcp)
        evconnlistener_free (server->tcp);
    if (server->local)
        evconnlistener_free (server->local);
    server->tcp = server->local = NULL;
    event_del (&server->ev_accept);
}

/* ---- the health service */

static bool has_service (const struct rpcserver *server, const char *name)
{
    size_t len = strlen (name);

    for (const struct rpcmethod *m = server->methods; m; m = m->hh.next) {
        if (strncmp (m->path + 1, name, len) == 0 && m->path[1 + len] == '/')
            return true;
    }
    return false;
}

static void health_check (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const struct rpcserver *server = self;
    const Grpc__Health__V1__HealthCheckRequest *req = (const void *)request;
    Grpc__Health__V1__HealthCheckResponse reply = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    if (req->service[0] && !has_service (server, req->service)) {
        rpccall_finish (call, RPC_NOT_FOUND, "no such service here");
        return;
    }
    reply.status = server->draining || server->away
                       ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
                       : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method health_methods[] = {
    {.name = "Check", .allow = RPC_ALLOW_ANY, .handler = health_check},
    {.name = NULL},
};

/* ---- what rpccall.c asks */

struct rpcmethod *rpcserver_methods (const struct rpcserver *server)
{
    return server->methods;
}

void rpcserver_set_page (struct rpcserver *server, const struct rpcserver_page *page)
{
    server->page = page;
}

const struct rpcserver_page *rpcserver_page_at (const struct rpcserver *server, const char *path,
                                                size_t len)
{
    return server->page && strlen (server->page->path) == len &&
                   memcmp (server->page->path, path, len) == 0
               ? server->page
               : NULL;
}

struct rpcmethod *rpcserver_find (struct rpcserver *server, const char *path, size_t len)
{
    struct rpcmethod *m;

    HASH_FIND (hh, server->methods, path, len, m);
    return m;
}

struct event_base *rpcserver_base (const struct rpcserver *server)
{
    return server->base;
}

struct log *rpcserver_log (const struct rpcserver *server)
{
    return server->log;
}

struct connshare *rpcserver_shares (struct rpcserver *server)
{
    return server->shares;
}

void rpcserver_each (struct rpcserver *server, void (*fn) (struct srvconn *conn, void *arg),
                     void *arg)
{
    struct srvconn *conn, *tmp;

    DL_FOREACH_SAFE (server->conns, conn, tmp)
        fn (conn, arg);
}

bool rpcserver_buffer (struct rpcserver *server, size_t more)
{
    if (more > RPCSERVER_BUFFERED_MAX - server->buffered)
        return false;
    server->buffered += more;
    return true;
}

void rpcserver_unbuffer (struct rpcserver *server, size_t less)
{
    assert (less <= server->buffered);
    server->buffered -= less;
}

size_t rpcserver_buffered (const struct rpcserver *server)
{
    return server->buffered;
}

uint32_t rpcserver_connections (const struct rpcserver *server)
{
    return server->conn_count;
}

/* ---- the interface */

static void on_done (evutil_socket_t fd, short what, void *arg)
{
    struct rpcserver *server = arg;
    void (*fn) (void *) = server->done_fn;

    (void)fd, (void)what;
    event_del (&server->ev_grace);
    server->done_fn = NULL;
    if (fn)
        fn (server->done_arg); /* may destroy the server */
}

static void on_grace (evutil_socket_t fd, short what, void *arg)
{
    struct rpcserver *server = arg;
    struct srvconn *conn, *tmp;

    (void)fd, (void)what;
    DL_FOREACH_SAFE (server->conns, conn, tmp)
        h2conn_kill (conn->h2);
}

struct rpcserver *rpcserver_create (const struct rpcserver_config *config, struct err *err)
{
    struct rpcserver *s = calloc (1, sizeof (*s));

    assert (config->base && (config->listen || config->unix_path) &&
            (config->id || !config->listen));
    if (!s) {
        err_set (err, ERR_NOMEM, "out of memory");
        return NULL;
    }
    s->base = config->base;
    s->id = config->id;
    s->log = config->log;
    s->shares = connshare_create (&RPCSERVER_LIMITS_DEFAULT);
    if (config->limits)
        rpcserver_set_limits (s, config->limits);
    s->streams_max = config->streams_max ? config->streams_max : STREAMS_MAX_DEFAULT;
    s->age_max = config->connection_age_max ? config->connection_age_max : AGE_DEFAULT_S * US_PER_S;
    evtimer_assign (&s->ev_accept, s->base, on_accept_again, s);
    evtimer_assign (&s->ev_grace, s->base, on_grace, s);
    evtimer_assign (&s->ev_done, s->base, on_done, s);
    s->callbacks = rpccall_callbacks ();
    if (!s->callbacks || nghttp2_option_new (&s->option) != 0 ||
        nghttp2_option_new (&s->option_trusted) != 0) {
        err_set (err, ERR_NOMEM, "out of memory");
        goto fail;
    }
    nghttp2_option_set_stream_reset_rate_limit (s->option_trusted, RESETS_TRUSTED, RESETS_TRUSTED);
    nghttp2_option_set_no_closed_streams (s->option, 1);
    nghttp2_option_set_no_closed_streams (s->option_trusted, 1);
    if (rpcserver_add_service (s, &grpc__health__v1__health__descriptor, health_methods, s, err) <
        0)
        goto fail;
    if (config->listen && listen_tcp (s, config->listen, err) < 0)
        goto fail;
    if (config->unix_path && listen_unix (s, config->unix_path, err) < 0)
        goto fail;
    return s;

fail:
    rpcserver_destroy (s);
    return NULL;
}

static int add_method (struct rpcserver *server, const ProtobufCServiceDescriptor *descriptor,
                       const struct rpc_method *info, void *self, struct err *err)
{
    const ProtobufCMethodDescriptor *d =
        protobuf_c_service_descriptor_get_method_by_name (descriptor, info->name);
    struct rpcmethod *m, *found;
    char path[GRPCWIRE_PATH_MAX];

    if (!d)
        return err_set (err, ERR_INVALID, "service %s: has no method %s", descriptor->name,
                        info->name);
    int len = snprintf (path, sizeof (path), "/%s/%s", descriptor->name, info->name);
    if (len < 0 || (size_t)len >= sizeof (path))
        return err_set (err, ERR_LIMIT, "service %s: name of method %s is too long",
                        descriptor->name, info->name);
    HASH_FIND (hh, server->methods, path, (size_t)len, found);
    if (found)
        return err_set (err, ERR_EXISTS, "method %s: added twice", path);
    m = calloc (1, sizeof (*m));
    if (!m || !(m->path = strdup (path))) {
        free (m);
        return err_set (err, ERR_NOMEM, "out of memory");
    }
    m->info = info;
    m->descriptor = d;
    m->self = self;
    HASH_ADD_KEYPTR (hh, server->methods, m->path, (size_t)len, m);
    return 0;
}

int rpcserver_add_service (struct rpcserver *server, const ProtobufCServiceDescriptor *descriptor,
                           const struct rpc_method *methods, void *self, struct err *err)
{
    for (const struct rpc_method *info = methods; info->name; info++) {
        int rc = add_method (server, descriptor, info, self, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

uint16_t rpcserver_port (const struct rpcserver *server)
{
    return server->port;
}

/* The peer's certificate against the store as it is now. */
static bool still_valid (struct rpcserver *server, SSL *ssl)
{
    X509 *cert = SSL_get0_peer_certificate (ssl);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new ();
    bool ok = cert && ctx &&
              X509_STORE_CTX_init (ctx, tlsid_store (server->id), cert,
                                   SSL_get_peer_cert_chain (ssl)) == 1 &&
              X509_STORE_CTX_set_default (ctx, "ssl_client") == 1 && X509_verify_cert (ctx) == 1;

    ERR_clear_error ();
    X509_STORE_CTX_free (ctx);
    return ok;
}

void rpcserver_set_serving (struct rpcserver *server, bool serving)
{
    server->away = !serving;
}

void rpcserver_set_limits (struct rpcserver *server, const struct connshare_limits *limits)
{
    struct connshare_limits l = *limits;
    struct rlimit files;

    if (getrlimit (RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY &&
        files.rlim_cur < (rlim_t)l.connections + l.handshakes + FILES_KEPT) {
        rlim_t room = files.rlim_cur > 2 * FILES_KEPT ? files.rlim_cur - FILES_KEPT : FILES_KEPT;
        if (l.handshakes > room / 4)
            l.handshakes = (uint32_t)(room / 4);
        l.connections = (uint32_t)room - l.handshakes;
        log_event (server->log, LOG_LEVEL_WARN, "rpc", "connections_bounded",
                   "files=%llu connections=%u handshakes=%u", (unsigned long long)files.rlim_cur,
                   l.connections, l.handshakes);
    }
    connshare_set_limits (server->shares, &l);
}

void rpcserver_set_gate (struct rpcserver *server, const struct sendgate *gate)
{
    server->gate = gate;
}

void rpcserver_recheck_peers (struct rpcserver *server)
{
    struct srvconn *conn, *tmp;
    struct err why;

    if (server->gates)
        gatememo_forget (server->gates);
    DL_FOREACH_SAFE (server->conns, conn, tmp) {
        if (conn->local || conn->ended || !h2conn_session (conn->h2) ||
            still_valid (server, h2conn_ssl (conn->h2)))
            continue;
        err_set (&why, ERR_UNAUTHENTIC, "its certificate is no longer valid");
        h2conn_close (conn->h2, &why);
    }
}

void rpcserver_drain (struct rpcserver *server, duration_us grace, void (*done_fn) (void *arg),
                      void *arg)
{
    struct srvconn *conn, *tmp;

    server->done_fn = done_fn;
    server->done_arg = arg;
    if (!server->draining) {
        server->draining = true;
        stop_listening (server);
        DL_FOREACH_SAFE (server->conns, conn, tmp) {
            if (!conn->ended && conn->drain_step == 0)
                drain_step (conn);
        }
    }
    after (&server->ev_grace, grace > 0 ? grace : 0);
    if (server->conn_count == 0)
        event_active (&server->ev_done, EV_TIMEOUT, 0);
}

void rpcserver_destroy (struct rpcserver *server)
{
    struct srvconn *conn, *tmp;
    struct rpcmethod *m, *mtmp;

    if (!server)
        return;
    stop_listening (server);
    event_del (&server->ev_accept);
    event_del (&server->ev_grace);
    event_del (&server->ev_done);
    DL_FOREACH_SAFE (server->conns, conn, tmp) {
        rpccall_detach_all (conn);
        conn_knocked (conn);
        conn_parties_leave (conn);
        conn->server = NULL;
        h2conn_kill (conn->h2);
    }
    HASH_ITER (hh, server->methods, m, mtmp) {
        HASH_DEL (server->methods, m);
        free (m->path);
        free (m->times);
        free (m);
    }
    nghttp2_session_callbacks_del (server->callbacks);
    nghttp2_option_del (server->option);
    nghttp2_option_del (server->option_trusted);
    connshare_destroy (server->shares);
    gatememo_destroy (server->gates);
    free (server);
}

int rpcserver_gate_user (struct rpcserver *server, const char *header, size_t len,
                         const struct principal *gate, struct principal *user_out, bool *change_out,
                         struct err *err)
{
    if (!server->gates && !(server->gates = gatememo_create ()))
        return err_set (err, ERR_NOMEM, "out of memory");
    return gatememo_check (server->gates, server->id, header, len, gate, clock_now_us (), user_out,
                           change_out, err);
}
