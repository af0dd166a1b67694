/* One connection of a client, from the name of the server to the streams on it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/rpc/gatedeleg.h"
#include "proto/rpc/pbguard.h"
#include "proto/rpc/rpcclient_i.h"

enum {
    STREAM_WINDOW = 256 * 1024,
    CONNECTION_WINDOW = 1024 * 1024,
    HEADER_BYTES_MAX = 16 * 1024,
    /* A gRPC server calls pings more often than every 5 min a misuse. Dead hosts are found by TCP's
     * own keep-alive and user timeout. */
    KEEPALIVE_S = 310,
};

/* ---- connecting */

static void try_next (struct rpclink *link);

static int link_established (void *owner, struct err *err)
{
    struct rpclink *link = owner;
    struct rpcclient *client = link->client;
    nghttp2_session *session = h2conn_session (link->h2);
    SSL *ssl = h2conn_ssl (link->h2);
    struct principal peer;
    char uri[PRINCIPAL_URI_MAX];
    const nghttp2_settings_entry iv[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
                                         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_BYTES_MAX}};

    if (ssl) {
        X509 *cert = SSL_get0_peer_certificate (ssl);
        if (!cert || principal_of_cert (cert, &peer, err) < 0)
            return err_set (err, ERR_UNAUTHENTIC, "the server's certificate has no identity");
        principal_uri (&peer, uri);
        if (client->expect_kind != PRINCIPAL_NONE && peer.kind != client->expect_kind)
            return err_set (err, ERR_UNAUTHENTIC, "the server there is %s, not a %s", uri,
                            principal_kind_name (client->expect_kind));
        if (client->expect_name && strcmp (peer.name, client->expect_name) != 0)
            return err_set (err, ERR_UNAUTHENTIC, "the server there is %s, its name should be %s",
                            uri, client->expect_name);
    }
    if (nghttp2_submit_settings (session, NGHTTP2_FLAG_NONE, iv, 3) != 0 ||
        nghttp2_session_set_local_window_size (session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) !=
            0)
        return err_set (err, ERR_NOMEM, "out of memory for HTTP/2 settings");
    if (ssl)
        client->server = peer;
    link->up = true;
    client_link_up (link);
    return 0;
}

static void link_turn (void *owner)
{
    struct rpclink *link = owner;

    if (link->client)
        client_deliver (link->client);
    if (link->going && !link->calls && !link->ending && h2conn_session (link->h2)) {
        link->ending = true;
        (void)nghttp2_session_terminate_session (h2conn_session (link->h2), NGHTTP2_NO_ERROR);
    }
}

static void link_ended (void *owner, const struct err *why)
{
    struct rpclink *link = owner;

    link->reached |= link->h2 && h2conn_reached (link->h2);
    if (link->turned_away.code)
        why = &link->turned_away;
    if (link->client && (link->up || !link->address || why->code == ERR_UNAUTHENTIC))
        client_link_down (link, why);
}

static void link_free (struct rpclink *link)
{
    assert (!link->calls);
    if (link->client) {
        DL_DELETE (link->client->links, link);
        assert (link->client->current != link);
    }
    if (link->addresses)
        evutil_freeaddrinfo (link->addresses);
    free (link);
}

static void link_freed (void *owner)
{
    struct rpclink *link = owner;

    link->h2 = NULL;
    /* This address failed and another is left: link_ended did not report. */
    if (link->client && link->client->current == link && !link->up)
        try_next (link);
    else
        link_free (link);
}

static const struct h2conn_ops link_ops = {
    .established = link_established, .turn = link_turn, .ended = link_ended, .freed = link_freed};

/* Before there is an h2conn: report and free. */
static void fail_early (struct rpclink *link, const char *text)
{
    struct err why;

    err_set (&why, ERR_UNAVAILABLE, "%s", text);
    client_link_down (link, &why);
    link_free (link);
}

static void connect_to (struct rpclink *link, const struct sockaddr *sa, socklen_t len)
{
    static const int on = 1, idle = 60, interval = 10, count = 3, unacked_ms = 30000;
    struct rpcclient *client = link->client;
    SSL *ssl = NULL;
    struct err err;
    int fd = socket (sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        fail_early (link, strerror (errno));
        return;
    }
    if (sa->sa_family != AF_UNIX) {
        setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
        setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof (on));
        setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof (idle));
        setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof (interval));
        setsockopt (fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof (count));
        setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof (unacked_ms));
        ssl = SSL_new (tlsid_client_ctx (client->id));
        if (!ssl) { /* never go on in the clear */
            ERR_clear_error ();
            close (fd);
            fail_early (link, "out of memory for TLS");
            return;
        }
    }
    if (connect (fd, sa, len) < 0 && errno != EINPROGRESS) {
        const char *text = errno == ECONNREFUSED ? "connection refused"
                           : errno == ENOENT     ? "no such socket (is the daemon running?)"
                                                 : strerror (errno);
        SSL_free (ssl);
        close (fd);
        if (link->address)
            try_next (link);
        else
            fail_early (link, text);
        return;
    }
    const struct h2conn_config config = {
        .base = client->base,
        .fd = fd,
        .ssl = ssl,
        .connecting = true,
        .keepalive = KEEPALIVE_S * US_PER_S,
        .gate = client->gate,
        .callbacks = client->callbacks,
        .option = client->option,
        .ops = &link_ops,
        .owner = link,
        .own_cert = client->id ? sk_X509_value (tlsid_chain (client->id), 0) : NULL};
    link->h2 = h2conn_create (&config, &err);
    if (!link->h2)
        fail_early (link, err.text);
}

/* link->address is the next one; it is moved on before connecting, so that NULL means none left. */
static void try_next (struct rpclink *link)
{
    const struct evutil_addrinfo *ai = link->address;

    assert (ai);
    link->address = ai->ai_next;
    connect_to (link, ai->ai_addr, ai->ai_addrlen);
}

static void on_resolved (int result, struct evutil_addrinfo *ai, void *arg)
{
    struct rpclink *link = arg;
    char text[512];

    link->resolving = NULL;
    if (!link->client) { /* cancelled by rpclink_kill */
        if (ai)
            evutil_freeaddrinfo (ai);
        link_free (link);
        return;
    }
    if (result != 0 || !ai) {
        text_printf (text, sizeof (text), "cannot find the host: %s", evutil_gai_strerror (result));
        fail_early (link, text);
        return;
    }
    link->addresses = link->address = ai;
    try_next (link);
}

static void resolve (struct rpclink *link)
{
    struct rpcclient *client = link->client;
    struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_protocol = IPPROTO_TCP,
                                    .ai_flags = EVUTIL_AI_NUMERICHOST};
    struct evutil_addrinfo *ai = NULL;

    if (evutil_getaddrinfo (client->host, client->port, &hints, &ai) == 0 && ai) {
        on_resolved (0, ai, link);
        return;
    }
    if (!client->dns)
        client->dns = evdns_base_new (client->base, EVDNS_BASE_INITIALIZE_NAMESERVERS |
                                                        EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    if (!client->dns) {
        fail_early (link, "cannot find the host: no name server is configured");
        return;
    }
    hints.ai_flags = 0;
    /* May call back at once; then it returns NULL. */
    struct evdns_getaddrinfo_request *request =
        evdns_getaddrinfo (client->dns, client->host, client->port, &hints, on_resolved, link);
    if (request)
        link->resolving = request;
}

void rpclink_open (struct rpcclient *client)
{
    struct rpclink *link = calloc (1, sizeof (*link));
    struct sockaddr_un sun = {.sun_family = AF_UNIX};

    if (!link)
        return; /* tried again after the back-off */
    link->client = client;
    DL_APPEND (client->links, link);
    client->current = link;
    if (client->unix_path) {
        strcpy (sun.sun_path, client->unix_path); /* length checked at rpcclient_create */
        connect_to (link, (const struct sockaddr *)&sun, sizeof (sun));
    } else {
        resolve (link);
    }
}

void rpclink_kill (struct rpclink *link)
{
    DL_DELETE (link->client->links, link);
    if (link->client->current == link)
        link->client->current = NULL;
    link->client = NULL;
    if (link->resolving)
        evdns_getaddrinfo_cancel (link->resolving); /* calls back later, see on_resolved */
    else if (link->h2)
        h2conn_kill (link->h2);
    else
        link_free (link);
}

/* ---- streams */

static ssize_t on_produce (nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t cap,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct rpccallout *call = nghttp2_session_get_stream_user_data (session, stream_id);
    size_t n;

    (void)source, (void)user_data;
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    n = call->request_len - call->request_off;
    if (n > cap)
        n = cap;
    memcpy (buf, call->request + call->request_off, n);
    call->request_off += n;
    if (call->request_off == call->request_len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(n), (uint8_t *)(v), sizeof (n) - 1, sizeof (v) - 1,                            \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                           \
    }

static nghttp2_nv nv_text (const char *name, const char *value, uint8_t flags)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen (name), strlen (value),
                        (uint8_t)(NGHTTP2_NV_FLAG_NO_COPY_NAME | flags)};
}

bool rpclink_submit (struct rpclink *link, struct rpccallout *call)
{
    static const nghttp2_nv fixed[] = {
        NV (":method", "POST"), NV ("te", "trailers"), NV ("content-type", "application/grpc"),
        NV ("user-agent", "nui/" NUI_VERSION), NV ("grpc-accept-encoding", "identity")};
    nghttp2_session *session = h2conn_session (link->h2);
    nghttp2_data_provider provider = {.read_callback = on_produce};
    char timeout[GRPCWIRE_TIMEOUT_MAX];
    nghttp2_nv nv[10];
    size_t n = 0;

    if (!session || link->going)
        return false;
    nv[n++] = fixed[0];
    nv[n++] = link->client->unix_path ? (nghttp2_nv)NV (":scheme", "http")
                                      : (nghttp2_nv)NV (":scheme", "https");
    nv[n++] = nv_text (":path", call->path, 0);
    nv[n++] =
        nv_text (":authority", link->client->unix_path ? "localhost" : link->client->target, 0);
    nv[n++] = fixed[1];
    nv[n++] = fixed[2];
    nv[n++] = fixed[3];
    nv[n++] = fixed[4];
    if (call->deadline != INT64_MAX)
        nv[n++] =
            nv_text ("grpc-timeout",
                     grpcwire_timeout_format (call->deadline - clock_monotonic_us (), timeout),
                     NGHTTP2_NV_FLAG_NO_INDEX);
    if (call->delegation)
        nv[n++] = nv_text (GATEDELEG_HEADER, call->delegation, 0);
    call->request_off = 0;
    call->begun = false;
    int32_t id = nghttp2_submit_request (session, NULL, nv, n, &provider, call);
    if (id < 0) { /* ids used up: as good as a GOAWAY */
        client_link_going (link);
        h2conn_dirty (link->h2);
        return false;
    }
    call->stream_id = id;
    call->link = link;
    DL_APPEND (link->calls, call);
    h2conn_dirty (link->h2);
    return true;
}

static void unlink_call (struct rpccallout *call)
{
    DL_DELETE (call->link->calls, call);
    call->link = NULL;
}

void rpclink_drop (struct rpccallout *call)
{
    struct rpclink *link = call->link;
    nghttp2_session *session;

    if (!link)
        return;
    session = link->h2 ? h2conn_session (link->h2) : NULL;
    if (session) {
        nghttp2_session_set_stream_user_data (session, call->stream_id, NULL);
        (void)nghttp2_submit_rst_stream (session, NGHTTP2_FLAG_NONE, call->stream_id,
                                         NGHTTP2_CANCEL);
        h2conn_dirty (link->h2);
    }
    unlink_call (call);
}

/* The server has said all it will: what does it amount to? grpc-status beats everything. */
static void conclude (struct rpccallout *call, uint32_t reset)
{
    char text[128];

    if (call->has_status && call->status == RPC_OK && !call->streaming &&
        !(call->has_message && grpcwire_reader_idle (&call->reader))) {
        client_call_finish (call, RPC_INTERNAL, "the server answered OK without a whole message");
    } else if (call->has_status && call->status == RPC_OK && call->streaming &&
               !grpcwire_reader_idle (&call->reader)) {
        client_call_finish (call, RPC_INTERNAL, "the server's last message is cut short");
    } else if (call->has_status) {
        call->answered = true;
        client_call_finish (call, (enum rpc_status)call->status, NULL);
    } else if (call->http_status != 0 && call->http_status != 200) {
        snprintf (text, sizeof (text), "the server answered with HTTP status %d",
                  call->http_status);
        client_call_finish (call, (enum rpc_status)grpcwire_status_of_http (call->http_status),
                            text);
    } else if (call->http_status == 200 && !call->grpc_content) {
        client_call_finish (call, RPC_UNKNOWN, "the server's answer is not gRPC");
    } else if (reset == NGHTTP2_CANCEL && clock_monotonic_us () >= call->deadline) {
        client_call_finish (call, RPC_DEADLINE_EXCEEDED, "the deadline passed");
    } else if (reset != NGHTTP2_NO_ERROR) {
        text_printf (text, sizeof (text), "the server reset the call: %s",
                     nghttp2_http2_strerror (reset));
        client_call_finish (call, (enum rpc_status)grpcwire_status_of_reset (reset), text);
    } else {
        client_call_finish (call, RPC_UNKNOWN, "the server ended the call without a status");
    }
}

static int on_before_send (nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct rpccallout *call;

    (void)user_data;
    if (frame->hd.type == NGHTTP2_HEADERS &&
        (call = nghttp2_session_get_stream_user_data (session, frame->hd.stream_id)))
        call->begun = true;
    return 0;
}

static bool is (const uint8_t *text, size_t len, const char *want)
{
    return strlen (want) == len && memcmp (text, want, len) == 0;
}

static int on_header (nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                      size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                      void *user_data)
{
    struct rpccallout *call = nghttp2_session_get_stream_user_data (session, frame->hd.stream_id);
    char text[GRPCWIRE_MESSAGE_MAX + 1];

    (void)flags, (void)user_data;
    if (!call)
        return 0;
    call->header_bytes += name_len + value_len + 32;
    if (call->header_bytes > HEADER_BYTES_MAX) {
        rpclink_drop (call);
        client_call_finish (call, RPC_RESOURCE_EXHAUSTED, "answer headers over 16 KiB");
        return 0;
    }
    if (is (name, name_len, ":status") && value_len == 3) {
        call->http_status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
    } else if (is (name, name_len, "content-type")) {
        call->grpc_content = grpcwire_content_type_ok ((const char *)value, value_len);
    } else if (is (name, name_len, "grpc-status")) {
        call->has_status = true;
        if (!grpcwire_status_parse ((const char *)value, value_len, &call->status))
            call->status = RPC_UNKNOWN;
    } else if (is (name, name_len, "grpc-message") && !call->message) {
        grpcwire_percent_decode ((const char *)value, value_len, text, sizeof (text));
        call->message = strdup (text);
    }
    return 0;
}

/* One whole message is in the reader. False when the call is over or the client gone. */
static bool take_message (struct rpclink *link, struct rpccallout *call)
{
    ProtobufCMessage *message;
    struct err err;

    if (!call->streaming) {
        if (call->has_message) {
            rpclink_drop (call);
            client_call_finish (call, RPC_INTERNAL, "the server sent more than one message");
            return false;
        }
        call->has_message = true;
        call->body = call->reader.body;
        call->body_len = call->reader.len;
        call->reader.body = NULL;
        call->reader.cap = 0;
        grpcwire_reader_next (&call->reader);
        return true;
    }
    message = pbguard_unpack (call->output, call->reader.body, call->reader.len, &err);
    grpcwire_reader_next (&call->reader);
    if (!message) {
        rpclink_drop (call);
        client_call_finish (call, RPC_INTERNAL, err.text);
        return false;
    }
    call->on_message (call->arg, message);
    protobuf_c_message_free_unpacked (message, NULL);
    return link->client && call->link == link; /* destroyed, or cancelled, in on_message */
}

static int on_data (nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                    size_t len, void *user_data)
{
    struct rpccallout *call = nghttp2_session_get_stream_user_data (session, stream_id);
    size_t used;

    (void)flags;
    while (call && len > 0) {
        enum grpcwire_read r = grpcwire_feed (&call->reader, data, len, &used);
        data += used;
        len -= used;
        if (r == GRPCWIRE_COMPLETE && !take_message (user_data, call))
            return 0;
        if (r == GRPCWIRE_COMPLETE || r == GRPCWIRE_MORE)
            continue;
        rpclink_drop (call);
        if (r == GRPCWIRE_TOO_LARGE || r == GRPCWIRE_NOMEM)
            client_call_finish (call, RPC_RESOURCE_EXHAUSTED, "the answer is over the size limit");
        else if (r == GRPCWIRE_COMPRESSED)
            client_call_finish (call, RPC_INTERNAL, "the server compressed its answer unasked");
        else
            client_call_finish (call, RPC_INTERNAL, "malformed message prefix");
        return 0;
    }
    return 0;
}

static int on_frame_recv (nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct rpclink *link = user_data;
    struct rpccallout *call;

    link->proven = true;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM &&
        frame->goaway.last_stream_id == 0) {
        link->proven = false; /* it never was ours: link_ended says why */
        err_set (&link->turned_away, ERR_LIMIT, "%.*s", (int)frame->goaway.opaque_data_len,
                 (const char *)frame->goaway.opaque_data);
    } else if (frame->hd.type == NGHTTP2_GOAWAY && link->client) {
        client_link_going (link);
    }
    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    call = nghttp2_session_get_stream_user_data (session, frame->hd.stream_id);
    if (!call)
        return 0;
    /* An early answer: we need not send the rest, nor wait for the server's reset. */
    if (nghttp2_session_get_stream_local_close (session, frame->hd.stream_id) == 0) {
        rpclink_drop (call);
    } else {
        nghttp2_session_set_stream_user_data (session, frame->hd.stream_id, NULL);
        unlink_call (call);
    }
    conclude (call, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close (nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                            void *user_data)
{
    struct rpccallout *call = nghttp2_session_get_stream_user_data (session, stream_id);
    struct rpclink *link = user_data;

    if (!call)
        return 0;
    unlink_call (call);
    if (link->turned_away.code) {
        client_call_finish (call, RPC_UNAVAILABLE, link->turned_away.text);
    } else if (!call->has_status && error_code == NGHTTP2_REFUSED_STREAM) {
        client_link_going (link);
        client_call_resend (call);
    } else {
        conclude (call, error_code);
    }
    return 0;
}

nghttp2_session_callbacks *rpclink_callbacks (void)
{
    nghttp2_session_callbacks *cb;

    if (nghttp2_session_callbacks_new (&cb) != 0)
        return NULL;
    nghttp2_session_callbacks_set_before_frame_send_callback (cb, on_before_send);
    nghttp2_session_callbacks_set_on_header_callback (cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback (cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback (cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback (cb, on_stream_close);
    return cb;
}
