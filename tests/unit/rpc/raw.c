#include "tests/unit/rpc/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct body {
    struct body *next; /* all of a raw, freed at its end */
    size_t len, off;
    uint8_t bytes[];
};

struct rpcserver *raw_server (struct rig *rig, char path[256])
{
    struct rpcserver *server;
    struct err err;

    snprintf (path, 256, "%s/sock", rig->dir);
    const struct rpcserver_config config = {
        .base = rig->base, .id = rig->server_id, .unix_path = path};
    server = rpcserver_create (&config, &err);
    if (!server)
        fail_msg ("%s", err.text);
    assert_int_equal (echoserver_add (&rig->echo, server, &err), 0);
    return server;
}

static int on_header (nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                      size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                      void *user_data)
{
    struct raw *raw = user_data;

    (void)session, (void)frame, (void)flags, (void)name_len;
    if (strcmp ((const char *)name, ":status") == 0)
        raw->http_status = atoi ((const char *)value);
    if (strcmp ((const char *)name, "grpc-status") == 0)
        raw->grpc_status = atoi ((const char *)value);
    if (strcmp ((const char *)name, "grpc-message") == 0)
        snprintf (raw->message, sizeof (raw->message), "%.*s", (int)value_len, (const char *)value);
    return 0;
}

static int on_frame (nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct raw *raw = user_data;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        raw->goaways++;
    if (frame->hd.type == NGHTTP2_RST_STREAM)
        raw->resets++;
    return 0;
}

static int on_data (nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                    size_t len, void *user_data)
{
    struct raw *raw = user_data;

    (void)session, (void)flags, (void)stream_id, (void)data;
    raw->data_bytes += len;
    return 0;
}

static int on_close (nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                     void *user_data)
{
    struct raw *raw = user_data;

    (void)session, (void)stream_id;
    raw->ended++;
    raw->reset = error_code;
    return 0;
}

void raw_up (struct raw *raw, struct rig *rig, const char *path, bool auto_window)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    nghttp2_session_callbacks *cb;
    nghttp2_option *option;

    memset (raw, 0, sizeof (*raw));
    raw->rig = rig;
    raw->http_status = raw->grpc_status = -1;
    snprintf (sun.sun_path, sizeof (sun.sun_path), "%s", path);
    raw->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (connect (raw->fd, (struct sockaddr *)&sun, sizeof (sun)), 0);
    assert_int_equal (fcntl (raw->fd, F_SETFL, O_NONBLOCK), 0);
    nghttp2_session_callbacks_new (&cb);
    nghttp2_session_callbacks_set_on_header_callback (cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback (cb, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback (cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback (cb, on_close);
    nghttp2_option_new (&option);
    nghttp2_option_set_no_auto_window_update (option, !auto_window);
    nghttp2_session_client_new2 (&raw->session, cb, raw, option);
    nghttp2_session_callbacks_del (cb);
    nghttp2_option_del (option);
    nghttp2_submit_settings (raw->session, NGHTTP2_FLAG_NONE, NULL, 0);
}

void raw_down (struct raw *raw)
{
    nghttp2_session_del (raw->session);
    close (raw->fd);
    while (raw->bodies) {
        struct body *body = raw->bodies;
        raw->bodies = body->next;
        free (body);
    }
}

void raw_pump (struct raw *raw)
{
    const uint8_t *out;
    uint8_t in[65536];
    ssize_t n = -1;

    while (!raw->closed && (n = nghttp2_session_mem_send (raw->session, &out)) > 0) {
        while (n > 0) {
            ssize_t sent = send (raw->fd, out, (size_t)n, MSG_NOSIGNAL);
            if (sent < 0 && errno == EAGAIN) {
                rig_turn (raw->rig);
                continue;
            }
            if (sent < 0) {
                raw->closed = true;
                break;
            }
            out += sent;
            n -= sent;
        }
    }
    rig_turn (raw->rig);
    while (!raw->closed && (n = recv (raw->fd, in, sizeof (in), 0)) != 0) {
        if (n < 0) {
            raw->closed = errno != EAGAIN;
            break;
        }
        assert_int_equal (nghttp2_session_mem_recv (raw->session, in, (size_t)n), n);
    }
    if (n == 0)
        raw->closed = true;
}

void raw_until (struct raw *raw, const unsigned *count, unsigned wanted)
{
    time_t end = time (NULL) + 80;

    while (*count < wanted && time (NULL) < end && !raw->closed)
        raw_pump (raw);
    if (*count < wanted)
        fail_msg ("%u of %u%s", *count, wanted, raw->closed ? ", the server closed" : "");
}

static ssize_t on_body (nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t cap,
                        uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct body *body = source->ptr;
    size_t n = body->len - body->off < cap ? body->len - body->off : cap;

    (void)session, (void)stream_id, (void)user_data;
    memcpy (buf, body->bytes + body->off, n);
    body->off += n;
    if (body->off == body->len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static ssize_t on_no_body (nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t cap,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    (void)session, (void)stream_id, (void)buf, (void)cap, (void)flags, (void)source;
    (void)user_data;
    return NGHTTP2_ERR_DEFERRED;
}

static nghttp2_nv line (const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen (name), strlen (value), 0};
}

int32_t raw_request (struct raw *raw, const char *path, const char *content_type,
                     const char *timeout, const void *body, size_t body_len,
                     const nghttp2_nv *extra, size_t extra_count)
{
    struct body *copy = malloc (sizeof (*copy) + body_len);
    nghttp2_data_provider provider = {.source.ptr = copy,
                                      .read_callback = body ? on_body : on_no_body};
    nghttp2_nv nv[128];
    size_t n = 0;

    assert_true (extra_count < 100);
    nv[n++] = line (":method", "POST");
    nv[n++] = line (":scheme", "http");
    nv[n++] = line (":path", path);
    nv[n++] = line (":authority", "localhost");
    nv[n++] = line ("te", "trailers");
    if (content_type)
        nv[n++] = line ("content-type", content_type);
    if (timeout)
        nv[n++] = line ("grpc-timeout", timeout);
    for (size_t i = 0; i < extra_count; i++)
        nv[n++] = extra[i];
    copy->next = raw->bodies;
    raw->bodies = copy;
    copy->len = body_len;
    copy->off = 0;
    if (body_len > 0)
        memcpy (copy->bytes, body, body_len);
    raw->http_status = raw->grpc_status = -1;
    raw->message[0] = '\0';
    int32_t id = nghttp2_submit_request (raw->session, NULL, nv, n, &provider, NULL);
    assert_true (id > 0);
    return id;
}
