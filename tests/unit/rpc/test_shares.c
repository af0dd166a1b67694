/* What local accounts may have of a server over its socket, each by itself: places, calls a second, answers that it does
 * not read. The counting itself is test_connshare's; here is what the server makes of it. As root only: who connects is
 * what the kernel says. */
#include "tests/unit/rpc/raw.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ECHO "/nui.test.v1.Echo/"
#define GRPC "application/grpc"

enum { ROOT = 0, DAEMON = 1, BIN = 2, SYS = 3, MIB = 1 << 20 };

struct bench {
    struct rig rig;
    struct rpcserver *server;
    char path[256];
};

static void up (struct bench *b, const struct connshare_limits *limits)
{
    if (geteuid () != 0)
        skip ();
    rig_up (&b->rig);
    b->server = raw_server (&b->rig, b->path);
    assert_int_equal (chmod (b->rig.dir, 0755), 0);
    rpcserver_set_limits (b->server, limits);
}

static void down (struct bench *b)
{
    rpcserver_destroy (b->server);
    rig_down (&b->rig);
}

static void up_as (struct bench *b, struct raw *raw, uid_t uid, bool reads)
{
    assert_int_equal (seteuid (uid), 0);
    raw_up (raw, &b->rig, b->path, reads);
    assert_int_equal (seteuid (ROOT), 0);
}

static int echo (struct raw *raw)
{
    static const uint8_t empty[5] = {0};
    unsigned before = raw->ended;

    raw_request (raw, ECHO "Echo", GRPC, NULL, empty, 5, NULL, 0);
    raw_until (raw, &raw->ended, before + 1);
    return raw->grpc_status;
}

static bool shut (struct raw *raw)
{
    for (time_t end = time (NULL) + 60; !raw->closed && time (NULL) < end;)
        raw_pump (raw);
    return raw->closed;
}

/* An account's connections end at its share; others, and root, find theirs. */
static void places (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct raw mine[3], other, root;
    struct bench b;

    (void)state;
    limits.per_principal = 2;
    up (&b, &limits);
    for (int i = 0; i < 3; i++)
        up_as (&b, &mine[i], DAEMON, true);
    assert_int_equal (echo (&mine[0]), RPC_OK);
    assert_int_equal (echo (&mine[1]), RPC_OK);
    assert_true (shut (&mine[2]));
    assert_int_equal (mine[2].goaways, 1);
    up_as (&b, &other, BIN, true);
    assert_int_equal (echo (&other), RPC_OK);
    up_as (&b, &root, ROOT, true);
    assert_int_equal (echo (&root), RPC_OK);
    raw_down (&mine[0]); /* what it gives back is its own again */
    up_as (&b, &mine[0], DAEMON, true);
    assert_int_equal (echo (&mine[0]), RPC_OK);
    for (int i = 0; i < 3; i++)
        raw_down (&mine[i]);
    raw_down (&other);
    raw_down (&root);
    down (&b);
}

/* One account's calls are too many on all of its connections together, and nobody else's. */
static void calls (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct raw mine[2], other;
    struct bench b;
    int served = 0, refused = 0;

    (void)state;
    limits.calls_per_s = 1;
    up (&b, &limits);
    for (int i = 0; i < 2; i++)
        up_as (&b, &mine[i], DAEMON, true);
    for (int i = 0; i < 60 && refused < 3; i++) {
        int status = echo (&mine[i % 2]);
        served += status == RPC_OK;
        refused += status == RPC_RESOURCE_EXHAUSTED;
    }
    assert_int_equal (refused, 3);
    assert_in_range (served, 1, 57);
    up_as (&b, &other, BIN, true);
    assert_int_equal (echo (&other), RPC_OK);
    for (int i = 0; i < 2; i++)
        raw_down (&mine[i]);
    raw_down (&other);
    down (&b);
}

/* Twenty streams of answers of a gigabyte each, and none is read. */
static void ask_for_much (struct raw *raw)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    uint8_t body[64] = {0};

    request.count = 1000000;
    request.bytes_each = 1000;
    size_t len = nui__test__v1__echo_request__pack (&request, body + 5);
    body[4] = (uint8_t)len;
    for (int i = 0; i < 20; i++)
        raw_request (raw, ECHO "Stream", GRPC, NULL, body, len + 5, NULL, 0);
    for (int i = 0; i < 200; i++)
        raw_pump (raw);
}

/* Seen: 40 connections held 139 MB of answers that nobody read. What one account leaves unread is bounded over all of its
 * connections, what all leave is bounded for the server; who reads is answered meanwhile. */
static void unread (void **state)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    static const uid_t who[] = {DAEMON, DAEMON, BIN};
    struct raw mute[3], other;
    struct bench b;

    (void)state;
    limits.unread_each = MIB;
    limits.unread = 4 * MIB;
    up (&b, &limits);
    for (int i = 0; i < 2; i++) {
        up_as (&b, &mute[i], who[i], false);
        ask_for_much (&mute[i]);
    }
    assert_in_range (b.rig.echo.produced, MIB / 2, MIB + 2 * 256 * 1024);
    assert_true (mute[0].ended > 0); /* those that found no room, with a sentence */
    assert_int_equal (mute[0].grpc_status, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal (mute[0].message,
                         "too many bytes of answers wait to be read: read them first");
    up_as (&b, &mute[2], who[2], false); /* another account's own */
    ask_for_much (&mute[2]);
    assert_in_range (b.rig.echo.produced, MIB + MIB / 2, 2 * MIB + 4 * 256 * 1024);
    up_as (&b, &other, SYS, true);
    assert_int_equal (echo (&other), RPC_OK);
    limits.unread = MIB; /* of all: there is less left than nothing */
    rpcserver_set_limits (b.server, &limits);
    uint64_t before = b.rig.echo.produced;
    raw_down (&other);
    up_as (&b, &other, SYS, false);
    ask_for_much (&other);
    assert_in_range (b.rig.echo.produced - before, 0, 20 * 1000);
    for (int i = 0; i < 3; i++)
        raw_down (&mute[i]);
    raw_down (&other);
    rig_until_count (&b.rig, &b.rig.echo.cancelled, 1);
    down (&b);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (places),
        cmocka_unit_test (calls),
        cmocka_unit_test (unread),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
