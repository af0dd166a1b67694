/* What may befall a client's calls, and what the caller hears of it. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/rpc/rpcclient_i.h"
#include "tests/unit/rpc/proxy.h"

static void test_daemon_down (void **state)
{
    struct rig rig;
    struct outcome o;
    char want[400];

    (void)state;
    rig_up (&rig);
    rpcserver_destroy (rig.server);
    rig.server = NULL;
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    snprintf (want, sizeof (want), "%s: connection refused", rig.target);
    assert_string_equal (o.message, want);
    assert_false (rpcclient_connected (rig.client));
    /* Back again at the same place: the client finds it, after its back-off. */
    rig.server = rig_server (&rig, rig.target);
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_OK);
    assert_int_equal (rig.lost, 0); /* there was no connection before */
    rpcserver_destroy (rig.server);
    rig.server = NULL;
    rig_until (&rig, &rig.lost);
    assert_int_equal (rig.lost, 1);
    rig_down (&rig);
}

static void test_no_socket (void **state)
{
    struct rig rig;
    struct outcome o;

    (void)state;
    rig_up (&rig);
    rpcclient_destroy (rig.client);
    strcpy (rig.target, "unix:/nonexistent/socket");
    rig.client = rig_client (&rig, NULL);
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    assert_string_equal (o.message, "unix:/nonexistent/socket: no such socket (is the daemon "
                                    "running?)");
    rig_down (&rig);
}

/* The host takes the connection and then says nothing. */
static void test_silent_host (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t len = sizeof (sin);
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal (bind (fd, (struct sockaddr *)&sin, sizeof (sin)), 0);
    assert_int_equal (listen (fd, 4), 0);
    getsockname (fd, (struct sockaddr *)&sin, &len);
    rig_up (&rig);
    rpcclient_destroy (rig.client);
    snprintf (rig.target, sizeof (rig.target), "127.0.0.1:%u", ntohs (sin.sin_port));
    rig.client = rig_client (&rig, rig.user_id);
    rig_start (&rig, &o, "Echo", &request, 100000, true);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_DEADLINE_EXCEEDED);
    rig_down (&rig);
    close (fd);
}

static void test_deadline (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    rig_call (&rig, &o, "Echo", "connected");
    /* On a busy machine a deadline may pass before the handler runs: then try a longer one. */
    for (duration_us us = 50000; rig.echo.open + rig.echo.cancelled == 0; us *= 2) {
        rig_start (&rig, &o, "Hang", &request, us, false);
        rig_until (&rig, &o.done);
        assert_int_equal (o.status, RPC_DEADLINE_EXCEEDED);
        assert_string_equal (o.message, "the deadline passed");
    }
    rig_until (&rig, &rig.echo.cancelled);
    rig_down (&rig);
}

static void test_cancel (void **state)
{
    struct rig rig;
    struct outcome o[3];
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    rig_start (&rig, &o[0], "Hang", &request, 0, false); /* not even connected yet */
    rpccallout_cancel (o[0].call);
    assert_int_equal (o[0].done, 0);
    rig_until (&rig, &o[0].done);
    assert_int_equal (o[0].status, RPC_CANCELLED);
    rig_start (&rig, &o[1], "Hang", &request, 0, false);
    rig_until (&rig, &rig.echo.open);
    rig_start (&rig, &o[2], "Hang", &request, 0, false); /* submitted, not yet written */
    rpccallout_cancel (o[2].call);
    rpccallout_cancel (o[1].call);
    rpccallout_cancel (o[1].call); /* twice is once */
    rig_until (&rig, &o[1].done);
    rig_until (&rig, &o[2].done);
    rig_until (&rig, &rig.echo.cancelled);
    assert_int_equal (o[1].status, RPC_CANCELLED);
    assert_int_equal (o[1].done, 1);
    assert_int_equal (rig.echo.calls, 1);
    rig_down (&rig);
}

/* Each cancel is an RST_STREAM; a server that counts them as an attack answers GOAWAY: not to a daemon. */
static void test_cancel_storm (void **state)
{
    enum { ROUNDS = 50, EACH = 64 };
    static struct outcome o[EACH];
    struct rig rig;
    struct outcome last;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    rpcclient_destroy (rig.client);
    rig.client = rig_client (&rig, rig.server_id); /* a site */
    rig_call (&rig, &last, "Echo", "x");
    nghttp2_session *session = rpcclient_session (rig.client);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EACH; i++)
            rig_start (&rig, &o[i], "Hang", &request, 0, false);
        rig_until_count (&rig, &rig.echo.open, EACH);
        for (int i = 0; i < EACH; i++)
            rpccallout_cancel (o[i].call);
        rig_until_count (&rig, &rig.echo.cancelled, (unsigned)(round + 1) * EACH);
    }
    rig_call (&rig, &last, "Echo", "x");
    assert_int_equal (last.status, RPC_OK);
    assert_ptr_equal (rpcclient_session (rig.client), session); /* still the same connection */
    rig_down (&rig);
}

/* A user who does that, over whatever connections, is turned away, and only he. */
static void test_cancel_storm_of_a_user (void **state)
{
    enum { STORM = 300 };
    struct rig rig;
    struct outcome o, last;
    Nui__Test__V1__EchoRequest request = REQUEST;
    bool turned_away = false;

    (void)state;
    rig_up (&rig);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.resets_per_s = 1;
    rpcserver_set_limits (rig.server, &limits);
    for (int i = 0; i < STORM && !turned_away; i++) {
        unsigned open = rig.echo.calls;
        rig_start (&rig, &o, "Hang", &request, 0, false);
        while (!o.done && rig.echo.calls == open)
            rig_turn (&rig);
        if (!o.done)
            rpccallout_cancel (o.call);
        while (!o.done || rig.echo.open > 0)
            rig_turn (&rig);
        turned_away = !rpcclient_connected (rig.client);
    }
    assert_true (turned_away);
    rpcclient_destroy (rig.client);
    rig.client = rig_client (&rig, rig.server_id);
    rig_call (&rig, &last, "Echo", "another");
    assert_int_equal (last.status, RPC_OK);
    rig_down (&rig);
}

/* Executed, and the answer lost: the caller is told that the outcome is unknown, once. */
static void test_lost_not_idempotent (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    struct proxy *proxy = proxy_up (&rig);
    rig_start (&rig, &o, "Hang", &request, 0, false);
    rig_until (&rig, &rig.echo.calls);
    proxy_cut (proxy);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    assert_non_null (strstr (o.message, "whether the call took effect is not known"));
    rig_until (&rig, &rig.echo.cancelled);
    rig_call (&rig, &o, "Echo", "next");
    assert_int_equal (o.status, RPC_OK);
    assert_int_equal (rig.echo.calls, 2); /* Hang once, Echo once */
    proxy_down (proxy);
    rig_down (&rig);
}

/* Lost during the handshake: nothing was asked yet, so any call may try again. */
static void test_lost_in_handshake (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    struct proxy *proxy = proxy_up (&rig);
    rig_start (&rig, &o, "Echo", &request, 0, false);
    for (unsigned round = 1; round <= 3; round++) {
        rig_until_count (&rig, proxy_accepted (proxy), round);
        proxy_cut (proxy);
    }
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_int_equal (rig.echo.calls, 1);
    /* but not for ever */
    rpcclient_destroy (rig.client);
    rig.client = rig_client (&rig, rig.user_id);
    rig_start (&rig, &o, "Echo", &request, 0, false);
    for (unsigned round = 5; round <= 8; round++) {
        rig_until_count (&rig, proxy_accepted (proxy), round);
        proxy_cut (proxy);
    }
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    assert_int_equal (rig.echo.calls, 1);
    assert_int_equal (rig.lost, 0); /* what the server never spoke on was no connection */
    proxy_down (proxy);
    rig_down (&rig);
}

static void test_lost_idempotent (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    struct proxy *proxy = proxy_up (&rig);
    request.delay_us = 100000;
    request.text = (char *)"again";
    rig_start (&rig, &o, "Sleep", &request, 0, true);
    for (unsigned round = 1; round <= 3; round++) {
        rig_until_count (&rig, &rig.echo.calls, round);
        proxy_cut (proxy);
        rig_until_count (&rig, &rig.echo.cancelled, round);
        assert_int_equal (o.done, 0);
    }
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_string_equal (o.text, "again");
    assert_int_equal (rig.echo.calls, 4);
    proxy_down (proxy);
    rig_down (&rig);
}

/* The server is away for a while: a call that may be repeated waits for it within its deadline,
 * while a new one is told at once. */
static void test_server_away (void **state)
{
    struct rig rig;
    struct outcome o, fresh;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    request.delay_us = 20000;
    rig_start (&rig, &o, "Sleep", &request, 0, true);
    rig_until (&rig, &rig.echo.open);
    rpcserver_destroy (rig.server);
    rig.server = NULL;
    rig_until_count (&rig, &rig.client->failures, 3);
    assert_int_equal (o.done, 0);
    rig_call (&rig, &fresh, "Echo", "x");
    assert_int_equal (fresh.status, RPC_UNAVAILABLE);
    assert_int_equal (o.done, 0);
    rig.server = rig_server (&rig, rig.target);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    rig_down (&rig);
}

/* 2^30 calls later an id cannot be had: the same as a GOAWAY. */
static void test_stream_ids_used_up (void **state)
{
    struct rig rig;
    struct outcome o[16];
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    rig_call (&rig, &o[0], "Echo", "x");
    nghttp2_session *first = rpcclient_session (rig.client);
    assert_int_equal (nghttp2_session_set_next_stream_id (first, INT32_MAX - 8), 0);
    for (int i = 0; i < 16; i++)
        rig_start (&rig, &o[i], "Echo", &request, 0, false);
    for (int i = 0; i < 16; i++) {
        rig_until (&rig, &o[i].done);
        assert_int_equal (o[i].status, RPC_OK);
    }
    assert_int_equal (rig.echo.calls, 17);
    rig_down (&rig);
}

static unsigned too_large_seen;

static void too_large (void *arg, const struct rpc_result *result)
{
    (void)arg;
    assert_int_equal (result->status, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal (result->message, "the answer is over the size limit");
    too_large_seen++;
}

static void test_size_limits (void **state)
{
    static uint8_t big[5 << 20];
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    request.data.data = big;
    request.data.len = 4 << 20;
    rig_start (&rig, &o, "Big", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_int_equal (o.data_len, 4 << 20);
    /* Over the method's limit: an early answer while most of the body is unsent. */
    request.data.len = 5 << 20;
    rig_start (&rig, &o, "Big", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal (o.message, "the request is over this method's size limit");
    rig_start (&rig, &o, "Closed", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_PERMISSION_DENIED);
    rig_start (&rig, &o, "Absent", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_UNIMPLEMENTED);
    /* Over the client's own limit. */
    struct rpccallout_config small = {.service = &nui__test__v1__echo__descriptor,
                                      .method = "Big",
                                      .request = &request.base,
                                      .reply_bytes_max = 1000,
                                      .done = too_large};
    request.data.len = 2000;
    too_large_seen = 0;
    rpcclient_start (rig.client, &small);
    rig_until (&rig, &too_large_seen);
    rig_call (&rig, &o, "Echo", "still there");
    assert_int_equal (o.status, RPC_OK);
    rig_down (&rig);
}

static void test_not_utf8 (void **state)
{
    struct rig rig;
    struct outcome o;

    (void)state;
    rig_up (&rig);
    rig_call (&rig, &o, "Echo", "\xff");
    assert_int_equal (o.status, RPC_INVALID_ARGUMENT);
    assert_string_equal (o.message,
                         "message nui.test.v1.EchoRequest: field text is not UTF-8 text");
    assert_int_equal (rig.echo.calls, 0);
    rig_down (&rig);
}

/* ---- the caller's own doing */

struct killer {
    struct rig *rig;
    struct outcome others[4];
    unsigned done;
};

static void kill_client (void *arg, const struct rpc_result *result)
{
    struct killer *k = arg;

    (void)result;
    rpcclient_destroy (k->rig->client);
    k->rig->client = NULL;
    k->done++;
}

static void kill_client_message (void *arg, const ProtobufCMessage *message)
{
    struct killer *k = arg;

    (void)message;
    rpcclient_destroy (k->rig->client); /* calls count_done below */
    k->rig->client = NULL;
}

static void count_done (void *arg, const struct rpc_result *result)
{
    struct killer *k = arg;

    assert_int_equal (result->status, RPC_CANCELLED);
    k->done++;
}

static void test_destroy_in_callback (void **state)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct rig rig;
    struct killer k = {.rig = &rig};
    struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                       .method = "Echo",
                                       .request = &request.base,
                                       .done = kill_client,
                                       .arg = &k};

    (void)state;
    rig_up (&rig);
    for (int i = 0; i < 4; i++)
        rig_start (&rig, &k.others[i], i < 2 ? "Hang" : "Echo", &request, 0, false);
    rpcclient_start (rig.client, &config);
    rig_until (&rig, &k.done);
    for (int i = 0; i < 4; i++)
        assert_int_equal (k.others[i].done, 1);
    assert_int_equal (k.others[0].status, RPC_CANCELLED);
    /* and inside on_message */
    k.done = 0;
    rig.client = rig_client (&rig, rig.user_id);
    request.count = 100;
    request.bytes_each = 10;
    config.method = "Stream";
    config.on_message = kill_client_message;
    config.done = count_done;
    rpcclient_start (rig.client, &config);
    rpcclient_start (rig.client, &config);
    rig_until_count (&rig, &k.done, 2);
    rig_until_count (&rig, &rig.echo.cancelled, 1);
    rig_down (&rig);
}

static void cancel_message (void *arg, const ProtobufCMessage *message)
{
    struct rpccallout **call = arg;

    (void)message;
    assert_non_null (*call); /* never again after the cancel */
    rpccallout_cancel (*call);
    *call = NULL;
}

static unsigned cancel_in_message_done;

static void cancel_done (void *arg, const struct rpc_result *result)
{
    (void)arg;
    assert_int_equal (result->status, RPC_CANCELLED);
    cancel_in_message_done++;
}

static void test_cancel_in_message (void **state)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct rig rig;
    struct rpccallout *call;
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = "Stream",
                                             .request = &request.base,
                                             .on_message = cancel_message,
                                             .done = cancel_done,
                                             .arg = &call};

    (void)state;
    rig_up (&rig);
    request.count = 100000;
    request.bytes_each = 1000;
    call = rpcclient_start (rig.client, &config);
    rig_until (&rig, &cancel_in_message_done);
    rig_until (&rig, &rig.echo.cancelled);
    rig_down (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_daemon_down),
        cmocka_unit_test (test_no_socket),
        cmocka_unit_test (test_silent_host),
        cmocka_unit_test (test_deadline),
        cmocka_unit_test (test_cancel),
        cmocka_unit_test (test_cancel_storm),
        cmocka_unit_test (test_cancel_storm_of_a_user),
        cmocka_unit_test (test_lost_not_idempotent),
        cmocka_unit_test (test_lost_in_handshake),
        cmocka_unit_test (test_lost_idempotent),
        cmocka_unit_test (test_server_away),
        cmocka_unit_test (test_stream_ids_used_up),
        cmocka_unit_test (test_size_limits),
        cmocka_unit_test (test_not_utf8),
        cmocka_unit_test (test_destroy_in_callback),
        cmocka_unit_test (test_cancel_in_message),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
