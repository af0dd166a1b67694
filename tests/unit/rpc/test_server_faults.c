/* What a client may do to the server, and what it gets for it. */
#include "tests/unit/rpc/raw.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/rpc/rpcserver_i.h"

#define ECHO "/nui.test.v1.Echo/"
#define GRPC "application/grpc"

struct bench {
    struct rig rig;
    struct rpcserver *server;
    struct raw raw;
};

static void up (struct bench *b, bool auto_window)
{
    char path[256];

    rig_up (&b->rig);
    b->server = raw_server (&b->rig, path);
    raw_up (&b->raw, &b->rig, path, auto_window);
}

static void down (struct bench *b)
{
    raw_down (&b->raw);
    rpcserver_destroy (b->server);
    rig_down (&b->rig);
}

static void expect (struct bench *b, const char *path, const char *type, const char *timeout,
                    const void *body, size_t len, int http, int grpc, const char *message)
{
    unsigned before = b->raw.ended;

    raw_request (&b->raw, path, type, timeout, body, len, NULL, 0);
    raw_until (&b->raw, &b->raw.ended, before + 1);
    assert_int_equal (b->raw.http_status, http);
    assert_int_equal (b->raw.grpc_status, grpc);
    assert_string_equal (b->raw.message, message);
}

static void test_framing (void **state)
{
    static const uint8_t empty[5] = {0}, compressed[5] = {1}, bad[5] = {7};
    static const uint8_t two[10] = {0}, cut[7] = {0, 0, 0, 0, 9, 1, 1};
    static const uint8_t large[5] = {0, 0x7f, 0, 0, 0};
    static const uint8_t not_utf8[9] = {0, 0, 0, 0, 4, 0x0a, 2, 0xc3, 0x28};
    static const uint8_t garbage[8] = {0, 0, 0, 0, 3, 0xff, 0xff, 0xff};
    struct bench b;

    (void)state;
    up (&b, true);
    expect (&b, ECHO "Echo", GRPC, NULL, empty, 5, 200, 0, "");
    expect (&b, ECHO "Echo", "application/grpc+proto", NULL, empty, 5, 200, 0, "");
    expect (&b, ECHO "Echo", "application/grpcx", NULL, empty, 5, 415, -1, "");
    expect (&b, ECHO "Echo", NULL, NULL, empty, 5, 415, -1, "");
    expect (&b, ECHO "Echo", GRPC, NULL, compressed, 5, 200, RPC_UNIMPLEMENTED,
            "compressed messages are not supported");
    expect (&b, ECHO "Echo", GRPC, NULL, bad, 5, 200, RPC_INTERNAL, "malformed message prefix");
    expect (&b, ECHO "Echo", GRPC, NULL, two, 10, 200, RPC_UNIMPLEMENTED,
            "more than one request message");
    expect (&b, ECHO "Echo", GRPC, NULL, "", 0, 200, RPC_UNIMPLEMENTED,
            "the request message is missing");
    expect (&b, ECHO "Echo", GRPC, NULL, cut, 7, 200, RPC_INTERNAL,
            "the request message is cut short");
    expect (&b, ECHO "Echo", GRPC, NULL, large, 5, 200, RPC_RESOURCE_EXHAUSTED,
            "the request is over this method's size limit");
    expect (&b, ECHO "Echo", GRPC, NULL, not_utf8, 9, 200, RPC_INVALID_ARGUMENT,
            "message nui.test.v1.EchoRequest: field text is not UTF-8 text");
    expect (&b, ECHO "Echo", GRPC, NULL, garbage, 8, 200, RPC_INVALID_ARGUMENT,
            "message nui.test.v1.EchoRequest: field (tag) is malformed");
    expect (&b, ECHO "Nothing", GRPC, NULL, empty, 5, 200, RPC_UNIMPLEMENTED, "no such method");
    expect (&b, ECHO "Absent", GRPC, NULL, empty, 5, 200, RPC_UNIMPLEMENTED, "no such method");
    expect (&b, ECHO "Closed", GRPC, NULL, empty, 5, 200, RPC_PERMISSION_DENIED,
            "this method is not open to callers of this kind");
    expect (&b, ECHO "Echo", GRPC, "123456789m", empty, 5, 200, RPC_INVALID_ARGUMENT,
            "malformed grpc-timeout");
    expect (&b, ECHO "Echo", GRPC, "0n", empty, 5, 200, RPC_DEADLINE_EXCEEDED,
            "the deadline passed before the call was begun");
    assert_int_equal (rpcserver_buffered (b.server), 0);
    assert_false (b.raw.closed);
    down (&b);
}

/* The client's own clock may be slow or broken: the server ends the call itself. */
static void test_deadline_enforced (void **state)
{
    static const uint8_t empty[5] = {0};
    struct bench b;

    (void)state;
    up (&b, true);
    expect (&b, ECHO "Hang", GRPC, "300m", empty, 5, 200, RPC_DEADLINE_EXCEEDED,
            "the deadline passed");
    assert_int_equal (b.rig.echo.cancelled, 1);
    down (&b);
}

/* Trailers first, then RST_STREAM(NO_ERROR): the client need not send the rest. */
static void test_early_answer (void **state)
{
    struct bench b;

    (void)state;
    up (&b, true);
    expect (&b, ECHO "Closed", GRPC, NULL, NULL, 0, 200, RPC_PERMISSION_DENIED,
            "this method is not open to callers of this kind");
    assert_int_equal (b.raw.resets, 1);
    assert_int_equal (b.raw.reset, NGHTTP2_NO_ERROR);
    down (&b);
}

static void test_header_flood (void **state)
{
    static const uint8_t empty[5] = {0};
    static char value[1000];
    nghttp2_nv extra[60];
    struct bench b;

    (void)state;
    memset (value, 'x', sizeof (value));
    for (size_t i = 0; i < 60; i++)
        extra[i] = (nghttp2_nv){(uint8_t *)"x-flood", (uint8_t *)value, 7, sizeof (value),
                                NGHTTP2_NV_FLAG_NONE};
    up (&b, true);
    raw_request (&b.raw, ECHO "Echo", GRPC, NULL, empty, 5, extra, 10);
    raw_until (&b.raw, &b.raw.ended, 1);
    assert_int_equal (b.raw.grpc_status, RPC_OK);
    raw_request (&b.raw, ECHO "Echo", GRPC, NULL, empty, 5, extra, 17);
    raw_until (&b.raw, &b.raw.ended, 2);
    assert_int_equal (b.raw.grpc_status, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal (b.raw.message, "request headers over 16 KiB");
    assert_int_equal (b.rig.echo.calls, 1);
    down (&b);
}

/* A stream that nobody reads costs a bounded queue, and its producer is told to stop. */
static void test_stalled_reader (void **state)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    uint8_t body[64] = {0};
    struct bench b;

    (void)state;
    up (&b, false);
    request.count = 1000000;
    request.bytes_each = 1000;
    size_t len = nui__test__v1__echo_request__pack (&request, body + 5);
    body[4] = (uint8_t)len;
    for (int i = 0; i < 20; i++)
        raw_request (&b.raw, ECHO "Stream", GRPC, NULL, body, len + 5, NULL, 0);
    raw_until (&b.raw, &b.rig.echo.open, 20);
    for (int i = 0; i < 200; i++)
        raw_pump (&b.raw);
    assert_int_equal (b.raw.data_bytes, 65535); /* the connection's window */
    assert_in_range (b.rig.echo.produced, 20 * 256 * 1024 - 65535, 20 * 260 * 1024 + 65535);
    nghttp2_session_consume (b.raw.session, 1, 60000);
    nghttp2_session_consume (b.raw.session, 3, 5000);
    for (int i = 0; i < 20; i++)
        raw_pump (&b.raw);
    assert_true (b.raw.data_bytes > 65535); /* it goes on when read again */
    assert_int_equal (b.rig.echo.cancelled, 0);
    raw_down (&b.raw);
    rig_until_count (&b.rig, &b.rig.echo.cancelled, 20);
    rpcserver_destroy (b.server);
    rig_down (&b.rig);
}

/* Half a request, then gone. */
static void test_client_killed (void **state)
{
    static const uint8_t empty[5] = {0};
    struct bench b;

    (void)state;
    up (&b, true);
    raw_request (&b.raw, ECHO "Echo", GRPC, NULL, NULL, 0, NULL, 0);
    raw_request (&b.raw, ECHO "Hang", GRPC, NULL, empty, 5, NULL, 0);
    raw_until (&b.raw, &b.rig.echo.open, 1);
    raw_down (&b.raw);
    rig_until (&b.rig, &b.rig.echo.cancelled);
    assert_int_equal (b.rig.echo.calls, 1);
    rpcserver_destroy (b.server);
    rig_down (&b.rig);
}

/* Streams over the limit are refused by HTTP/2, connections over theirs closed. */
static void test_count_limits (void **state)
{
    static const uint8_t empty[5] = {0};
    struct rig rig;
    struct raw raw[3];
    struct err err;
    char path[256];

    (void)state;
    rig_up (&rig);
    snprintf (path, sizeof (path), "%s/sock", rig.dir);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.connections = 2;
    const struct rpcserver_config config = {.base = rig.base,
                                            .id = rig.server_id,
                                            .unix_path = path,
                                            .limits = &limits,
                                            .streams_max = 3};
    struct rpcserver *server = rpcserver_create (&config, &err);
    assert_non_null (server);
    assert_int_equal (echoserver_add (&rig.echo, server, &err), 0);
    for (int i = 0; i < 3; i++)
        raw_up (&raw[i], &rig, path, true);
    for (time_t end = time (NULL) + 20; !raw[2].closed && time (NULL) < end;)
        raw_pump (&raw[2]);
    assert_true (raw[2].closed);
    for (int i = 0; i < 5; i++) /* two wait in the client: the server said 3 */
        raw_request (&raw[0], ECHO "Hang", GRPC, NULL, empty, 5, NULL, 0);
    raw_until (&raw[0], &rig.echo.open, 3);
    for (int i = 0; i < 50; i++)
        raw_pump (&raw[0]);
    assert_int_equal (rig.echo.calls, 3);
    raw_request (&raw[1], ECHO "Echo", GRPC, NULL, empty, 5, NULL, 0);
    raw_until (&raw[1], &raw[1].ended, 1);
    assert_int_equal (raw[1].grpc_status, RPC_OK);
    for (int i = 0; i < 3; i++)
        raw_down (&raw[i]);
    rig_until_count (&rig, &rig.echo.cancelled, 3);
    rpcserver_destroy (server);
    rig_down (&rig);
}

static void test_not_http2 (void **state)
{
    struct bench b;
    static const char hello[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    (void)state;
    up (&b, true);
    nghttp2_session_del (b.raw.session);
    nghttp2_session_callbacks *cb;
    nghttp2_session_callbacks_new (&cb);
    nghttp2_session_client_new (&b.raw.session, cb, &b.raw);
    nghttp2_session_callbacks_del (cb);
    assert_int_equal (write (b.raw.fd, hello, sizeof (hello) - 1), sizeof (hello) - 1);
    const uint8_t *out;
    while (nghttp2_session_mem_send (b.raw.session, &out) > 0)
        ; /* its preface is not sent */
    time_t end = time (NULL) + 20;
    while (!b.raw.closed && time (NULL) < end)
        raw_pump (&b.raw);
    assert_true (b.raw.closed);
    /* It lingers: only its sending side is shut, so that nothing it said is thrown away by a RST.
     * After a second at most it is gone. */
    assert_int_equal (rpcserver_connections (b.server), 1);
    assert_int_equal (send (b.raw.fd, "x", 1, MSG_NOSIGNAL), 1);
    while (rpcserver_connections (b.server) > 0 && time (NULL) < end)
        event_base_loop (b.rig.base, EVLOOP_ONCE);
    assert_int_equal (rpcserver_connections (b.server), 0);
    down (&b);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_framing),        cmocka_unit_test (test_deadline_enforced),
        cmocka_unit_test (test_early_answer),   cmocka_unit_test (test_header_flood),
        cmocka_unit_test (test_stalled_reader), cmocka_unit_test (test_client_killed),
        cmocka_unit_test (test_count_limits),   cmocka_unit_test (test_not_http2),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
