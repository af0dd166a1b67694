/* Each kind of refusal is one line of the server's log, in one form: who, from where, why. */
#include "tests/unit/rpc/rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct bench {
    struct rig rig;
    struct log *log;
    char path[300];
};

static void up (struct bench *b, const struct connshare_limits *limits, uint32_t allow)
{
    static struct rpc_method methods[4];
    struct err err;

    rig_up (&b->rig);
    rpcserver_destroy (b->rig.server);
    snprintf (b->path, sizeof b->path, "%s/log", b->rig.dir);
    b->log = log_create (b->path, LOG_LEVEL_INFO, "test", &err);
    assert_non_null (b->log);
    const struct rpcserver_config config = {.base = b->rig.base,
                                            .id = b->rig.server_id,
                                            .log = b->log,
                                            .listen = b->rig.target,
                                            .limits = limits};
    b->rig.server = rpcserver_create (&config, &err);
    assert_non_null (b->rig.server);
    if (!allow) {
        assert_int_equal (echoserver_add (&b->rig.echo, b->rig.server, &err), 0);
        return;
    }
    methods[0] = (struct rpc_method){.name = "Echo", .allow = allow};
    assert_int_equal (rpcserver_add_service (b->rig.server, &nui__test__v1__echo__descriptor,
                                             methods, NULL, &err),
                      0);
}

static void down (struct bench *b)
{
    rig_down (&b->rig);
    log_destroy (b->log);
}

/* Lines of refusals that have these words; all refusals come from here. */
static unsigned lines (const struct bench *b, const char *who, const char *why)
{
    char line[2048];
    unsigned n = 0;
    FILE *f = fopen (b->path, "r");

    assert_non_null (f);
    while (fgets (line, sizeof line, f)) {
        if (!strstr (line, " rpc refused "))
            continue;
        assert_non_null (strstr (line, "from=\"address 127.0.0.1\""));
        n += strstr (line, who) && strstr (line, why);
    }
    fclose (f);
    return n;
}

#define ALICE "peer=\"nui://test/user/alice\""
#define NOBODY "peer=\"unknown\""

static void one_line (struct bench *b, const char *who, const char *why)
{
    assert_int_equal (lines (b, who, why), 1);
}

static void a_certificate (void **state)
{
    struct bench b;
    struct outcome o;

    (void)state;
    up (&b, NULL, 0);
    struct testca *other = testca_create (b.rig.dir, "other");
    struct tlsid *mallory = testca_identity (other, "test", "user", "mallory");
    rpcclient_destroy (b.rig.client);
    b.rig.client = rig_client (&b.rig, mallory);
    rig_call (&b.rig, &o, "Echo", "x");
    assert_int_not_equal (o.status, RPC_OK);
    for (int i = 0; i < 1000 && lines (&b, NOBODY, "") == 0; i++)
        rig_turn (&b.rig);
    one_line (&b, NOBODY, "reason=");
    down (&b);
    tlsid_destroy (mallory);
    testca_destroy (other);
}

static void a_revoked_one (void **state)
{
    struct bench b;
    struct outcome o;
    struct err err;

    (void)state;
    up (&b, NULL, 0);
    rig_call (&b.rig, &o, "Echo", "x");
    testca_revoke (b.rig.ca, "alice", 0);
    assert_int_equal (tlsid_reload (b.rig.server_id, &err), 0);
    rpcserver_recheck_peers (b.rig.server);
    one_line (&b, ALICE, "its certificate is no longer valid");
    down (&b);
}

static int silent (uint16_t port)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons (port)};
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    sin.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    assert_int_equal (connect (fd, (struct sockaddr *)&sin, sizeof sin), 0);
    return fd;
}

static void a_handshake (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct bench b;
    int fd[2];

    (void)state;
    limits.handshakes_per_address = 1;
    up (&b, &limits, 0);
    for (int i = 0; i < 2; i++)
        fd[i] = silent (rpcserver_port (b.rig.server));
    for (int i = 0; i < 1000000 && lines (&b, NOBODY, "") == 0; i++)
        rig_turn (&b.rig);
    one_line (&b, NOBODY, "too many TLS handshakes are not finished: the oldest gives way");
    for (int i = 0; i < 2; i++)
        close (fd[i]);
    down (&b);
}

static void a_place (struct connshare_limits limits, const char *why)
{
    struct bench b;
    struct outcome o;

    up (&b, &limits, 0);
    rig_call (&b.rig, &o, "Echo", "first");
    assert_int_equal (o.status, RPC_OK);
    struct rpcclient *first = b.rig.client;
    b.rig.client = rig_client (&b.rig, b.rig.user_id);
    rig_call (&b.rig, &o, "Echo", "second");
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    one_line (&b, ALICE, why);
    rpcclient_destroy (first);
    down (&b);
}

static void places (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;

    (void)state;
    limits.per_principal = 1;
    a_place (limits, "as many as it may have");
    limits = RPCSERVER_LIMITS_DEFAULT;
    limits.per_address = 1;
    a_place (limits, "as many as an address may have");
    limits = RPCSERVER_LIMITS_DEFAULT;
    limits.connections = 1;
    a_place (limits, "connections that are open to it are in use");
}

/* Many a second are one line, and how many more there were is told later. */
static void calls (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct bench b;
    struct outcome o;
    unsigned refused = 0;

    (void)state;
    limits.calls_per_s = 1;
    up (&b, &limits, 0);
    for (int i = 0; i < 1000 && refused == 0; i++) {
        rig_call (&b.rig, &o, "Echo", "again");
        refused += o.status == RPC_RESOURCE_EXHAUSTED;
    }
    assert_int_equal (refused, 1);
    one_line (&b, ALICE, "too many calls a second");
    down (&b);
}

static void resets (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct bench b;
    struct outcome o;

    (void)state;
    limits.resets_per_s = 1;
    up (&b, &limits, 0);
    for (int i = 0; i < 1000 && lines (&b, ALICE, "") == 0; i++) {
        unsigned open = b.rig.echo.calls;
        rig_start (&b.rig, &o, "Hang", &request, 0, false);
        while (!o.done && b.rig.echo.calls == open)
            rig_turn (&b.rig);
        if (!o.done)
            rpccallout_cancel (o.call);
        while (!o.done || b.rig.echo.open > 0)
            rig_turn (&b.rig);
    }
    one_line (&b, ALICE, "too many streams reset a second");
    down (&b);
}

/* Who may not call a method; his attempts count as calls, so that he fills no log. */
static void a_method (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct bench b;
    struct outcome o;
    bool counted = false;

    (void)state;
    limits.calls_per_s = 1;
    up (&b, &limits, RPC_ALLOW (PRINCIPAL_SITE));
    rig_call (&b.rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_PERMISSION_DENIED);
    one_line (&b, ALICE, "it may not call /nui.test.v1.Echo/Echo");
    for (int i = 0; i < 1000 && !counted; i++) {
        rig_call (&b.rig, &o, "Echo", "x");
        counted = o.status == RPC_RESOURCE_EXHAUSTED;
    }
    assert_true (counted);
    down (&b);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_certificate), cmocka_unit_test (a_revoked_one),
        cmocka_unit_test (a_handshake),   cmocka_unit_test (places),
        cmocka_unit_test (calls),         cmocka_unit_test (resets),
        cmocka_unit_test (a_method),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
