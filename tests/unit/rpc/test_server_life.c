/* The server's life: drain and restart under load, connection age, local socket, health, who may
 * call what. */
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/nui/v1/health.pb-c.h"
#include "proto/rpc/rpcclient_i.h"
#include "tests/unit/rpc/raw.h"

/* ---- 64 calls always in flight, each starting the next */

struct load {
    struct rig *rig;
    unsigned started, done, failed, wanted, running;
    char why[ERR_TEXT_MAX];
};

static void load_next (struct load *load);

static void load_done (void *arg, const struct rpc_result *result)
{
    struct load *load = arg;

    load->done++;
    load->running--;
    if (result->status != RPC_OK && load->failed++ == 0)
        snprintf (load->why, sizeof (load->why), "%d %s", result->status, result->message);
    if (load->started < load->wanted)
        load_next (load);
}

static void load_next (struct load *load)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = load->started % 8 == 0 ? "Sleep" : "Echo",
                                             .request = &request.base,
                                             .done = load_done,
                                             .arg = load};

    request.delay_us = 5000;
    load->started++;
    load->running++;
    rpcclient_start (load->rig->client, &config);
}

static void set_flag (void *arg)
{
    ++*(unsigned *)arg;
}

static void test_restart_under_load (void **state)
{
    enum { RESTARTS = 5, BETWEEN = 1000 };
    struct rig rig;
    struct load load = {.rig = &rig, .wanted = (RESTARTS + 1) * BETWEEN};

    (void)state;
    rig_up (&rig);
    for (int i = 0; i < 64; i++)
        load_next (&load);
    for (unsigned r = 1; r <= RESTARTS; r++) {
        unsigned drained = 0;
        rig_until_count (&rig, &load.done, r * BETWEEN);
        struct rpcserver *old = rig.server;
        rig.server = rig_server (&rig, rig.target); /* the successor listens first */
        rpcserver_drain (old, 10 * US_PER_S, set_flag, &drained);
        rig_until (&rig, &drained);
        rpcserver_destroy (old);
    }
    rig_until_count (&rig, &load.done, load.wanted);
    if (load.failed > 0)
        fail_msg ("%u calls failed, the first: %s", load.failed, load.why);
    assert_int_equal (rig.echo.calls, load.wanted); /* none was executed twice */
    rig_down (&rig);
}

/* What runs may finish; what does not within the grace is cut. */
static void test_drain_grace (void **state)
{
    struct rig rig;
    struct outcome slow, hung;
    Nui__Test__V1__EchoRequest request = REQUEST;
    unsigned drained = 0;

    (void)state;
    rig_up (&rig);
    request.delay_us = 300000;
    rig_start (&rig, &slow, "Sleep", &request, 0, false);
    rig_start (&rig, &hung, "Hang", &request, 0, false);
    rig_until_count (&rig, &rig.echo.open, 2);
    rpcserver_drain (rig.server, US_PER_S, set_flag, &drained);
    rig_until (&rig, &slow.done);
    assert_int_equal (slow.status, RPC_OK);
    assert_int_equal (drained, 0);
    rig_until (&rig, &drained);
    rig_until (&rig, &hung.done);
    assert_int_equal (hung.status, RPC_UNAVAILABLE);
    assert_int_equal (rig.echo.cancelled, 1);
    rig_down (&rig);
}

static void test_connection_age (void **state)
{
    struct rig rig;
    struct load load = {.rig = &rig, .wanted = 1u << 30};
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct err err;

    (void)state;
    rig_up (&rig);
    rpcserver_destroy (rig.server);
    limits.calls_per_s = 0; /* as fast as the machine can */
    const struct rpcserver_config config = {.base = rig.base,
                                            .id = rig.server_id,
                                            .listen = rig.target,
                                            .limits = &limits,
                                            .connection_age_max = 100000};
    rig.server = rpcserver_create (&config, &err);
    assert_non_null (rig.server);
    assert_int_equal (echoserver_add (&rig.echo, rig.server, &err), 0);
    for (int i = 0; i < 16; i++)
        load_next (&load);
    for (int changes = 0; changes < 3;) {
        struct rpclink *was = rig.client->current;
        rig_until_count (&rig, &load.done, load.done + 1);
        changes += was && rig.client->current && was != rig.client->current;
    }
    load.wanted = 0;
    rig_until_count (&rig, &load.done, load.started);
    if (load.failed > 0)
        fail_msg ("%u calls failed, the first: %s", load.failed, load.why);
    rig_down (&rig);
}

static void test_unix_socket (void **state)
{
    struct rig rig;
    struct outcome o;
    struct stat st;
    struct err err;
    char path[256], want[PRINCIPAL_URI_MAX];
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    struct rpcserver *server = raw_server (&rig, path);
    rpcclient_destroy (rig.client);
    snprintf (rig.target, sizeof (rig.target), "unix:%s", path);
    rig.client = rig_client (&rig, NULL);
    request.count = 1;
    rig_start (&rig, &o, "Echo", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    snprintf (want, sizeof (want), "nui://test/user/%s", getpwuid (getuid ())->pw_name);
    assert_string_equal (o.peer, want);
    rig_call (&rig, &o, "Closed", "x");
    assert_int_equal (o.status, RPC_PERMISSION_DENIED);
    /* A second server there is refused while the first lives; a stale socket is replaced. */
    const struct rpcserver_config config = {
        .base = rig.base, .id = rig.server_id, .unix_path = path};
    assert_null (rpcserver_create (&config, &err));
    assert_non_null (strstr (err.text, "another program is listening there"));
    char saved[300];
    snprintf (saved, sizeof (saved), "%s.old", path);
    assert_int_equal (rename (path, saved), 0);
    rpcserver_destroy (server);
    assert_int_equal (rename (saved, path), 0);
    server = rpcserver_create (&config, &err);
    assert_non_null (server);
    rpcserver_destroy (server);
    assert_int_equal (stat (path, &st), -1); /* gone with its server */
    rig_down (&rig);
}

static void health (struct rig *rig, const char *service, int want_rc, int want_status)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err;

    request.service = (char *)service;
    int rc = rpcclient_call (rig->client, &grpc__health__v1__health__descriptor, "Check",
                             &request.base, 0, true, &reply, &err);
    assert_int_equal (rc, want_rc);
    if (rc == 0) {
        assert_int_equal (((Grpc__Health__V1__HealthCheckResponse *)reply)->status, want_status);
        protobuf_c_message_free_unpacked (reply, NULL);
    }
}

static void test_health (void **state)
{
    struct rig rig;

    (void)state;
    rig_up (&rig);
    health (&rig, "", 0, GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING);
    health (&rig, "nui.test.v1.Echo", 0,
            GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING);
    health (&rig, "nui.test.v1.Ech", ERR_NOT_FOUND, 0);
    rig_down (&rig);
}

static void test_who_may_call (void **state)
{
    struct rig rig;
    struct outcome o;

    (void)state;
    rig_up (&rig);
    rig_call (&rig, &o, "Closed", "x");
    assert_int_equal (o.status, RPC_PERMISSION_DENIED);
    assert_int_equal (rig.echo.calls, 0);
    testca_issue (rig.ca, &(struct testca_cert){.name = "op", .uri = "nui://test/operator/op"});
    struct tlsid *op = testca_tlsid (rig.dir, "ca", "op", true);
    rpcclient_destroy (rig.client);
    rig.client = rig_client (&rig, op);
    rig_call (&rig, &o, "Closed", "x");
    assert_int_equal (o.status, RPC_OK);
    rpcclient_destroy (rig.client);
    rig.client = NULL;
    tlsid_destroy (op);
    rig_down (&rig);
}

/* The blocking form, with what tools print. */
static void test_blocking (void **state)
{
    struct rig rig;
    Nui__Test__V1__EchoRequest request = REQUEST;
    ProtobufCMessage *reply = NULL;
    struct err err;

    (void)state;
    rig_up (&rig);
    request.text = (char *)"hello";
    assert_int_equal (rpcclient_call (rig.client, &nui__test__v1__echo__descriptor, "Echo",
                                      &request.base, 0, false, &reply, &err),
                      0);
    assert_string_equal (((Nui__Test__V1__EchoReply *)reply)->text, "hello");
    protobuf_c_message_free_unpacked (reply, NULL);
    request.status = RPC_FAILED_PRECONDITION;
    request.text = (char *)"funds: account physics has 3 credits, 5 are needed";
    assert_int_equal (rpcclient_call (rig.client, &nui__test__v1__echo__descriptor, "Fail",
                                      &request.base, 0, false, NULL, &err),
                      ERR_FUNDS);
    assert_string_equal (err.text, "account physics has 3 credits, 5 are needed");
    request.status = RPC_NOT_FOUND;
    request.text = (char *)"";
    assert_int_equal (rpcclient_call (rig.client, &nui__test__v1__echo__descriptor, "Fail",
                                      &request.base, 0, false, NULL, &err),
                      ERR_NOT_FOUND);
    assert_string_equal (err.text, "not found");
    rig_down (&rig);
}

static void test_status_table (void **state)
{
    (void)state;
    for (int code = ERR_UNSUPPORTED; code <= ERR_NONE; code++) {
        int back = rpc_err_of_status (rpc_status_of_err (code));
        if (code != ERR_FUNDS && code != ERR_IO && code != ERR_NOMEM)
            assert_int_equal (back, code);
    }
    assert_int_equal (rpc_status_of_err (-99), RPC_UNKNOWN);
}

/* A handler that keeps its call beyond the server's end. */
static struct rpccall *kept;

static void keep (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    (void)self, (void)request;
    kept = call;
}

static void destroy_server (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct rig *rig = self;

    (void)request;
    rpcserver_destroy (rig->server);
    rig->server = NULL;
    rpccall_finish (call, RPC_OK, NULL);
}

static void test_destroyed_with_calls (void **state)
{
    static const struct rpc_method methods[] = {
        {.name = "Hang", .allow = RPC_ALLOW_ANY, .handler = keep},
        {.name = "Echo", .allow = RPC_ALLOW_ANY, .handler = destroy_server},
        {.name = NULL}};
    struct rig rig;
    struct outcome o;
    struct err err;
    Nui__Test__V1__EchoRequest request = REQUEST;
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;

    (void)state;
    rig_up (&rig);
    rpcserver_destroy (rig.server);
    const struct rpcserver_config config = {
        .base = rig.base, .id = rig.server_id, .listen = rig.target};
    rig.server = rpcserver_create (&config, &err);
    assert_int_equal (
        rpcserver_add_service (rig.server, &nui__test__v1__echo__descriptor, methods, &rig, &err),
        0);
    assert_int_equal (
        rpcserver_add_service (rig.server, &nui__test__v1__echo__descriptor, methods, &rig, &err),
        ERR_EXISTS);
    request.text = (char *)"kept";
    rig_start (&rig, &o, "Hang", &request, 0, false);
    while (!kept)
        event_base_loop (rig.base, EVLOOP_ONCE);
    rig_start (&rig, &o, "Echo", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    assert_null (rig.server);
    assert_string_equal (rpccall_peer (kept)->name, "alice");
    rpccall_reply (kept, &reply.base); /* a no-op that frees */
    kept = NULL;
    rig_down (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_restart_under_load),
        cmocka_unit_test (test_drain_grace),
        cmocka_unit_test (test_connection_age),
        cmocka_unit_test (test_unix_socket),
        cmocka_unit_test (test_health),
        cmocka_unit_test (test_who_may_call),
        cmocka_unit_test (test_blocking),
        cmocka_unit_test (test_status_table),
        cmocka_unit_test (test_destroyed_with_calls),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
