/* What one of many may have: the accounts alone, and a server that keeps them. */
#include "tests/unit/rpc/rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/rpc/connshare.h"
#include "proto/rpc/rpcserver_i.h"

enum { SILENT = 300 };

static void places (void **state)
{
    const struct connshare_limits limits = {.connections = 16,
                                            .per_principal = 4,
                                            .per_address = 8,
                                            .handshakes = 3,
                                            .handshakes_per_address = 2};
    struct connshare *cs = connshare_create (&limits);
    struct connshare_party *here = connshare_party (cs, "address 10.0.0.1", 0);
    struct connshare_party *user[8], *root = connshare_party (cs, "local account root", 0);
    struct err err;
    char name[16];
    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf (name, sizeof name, "user%d", i);
        user[i] = connshare_party (cs, name, 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal (connshare_admit (cs, user[0], here, false, &err), 0);
    assert_int_equal (connshare_admit (cs, user[0], here, false, &err), ERR_LIMIT);
    assert_string_equal (err.text, "user0 has 4 connections here, as many as it may have");
    for (int i = 0; i < 4; i++)
        assert_int_equal (connshare_admit (cs, user[1], here, false, &err), 0);
    assert_int_equal (connshare_admit (cs, user[2], here, false, &err), ERR_LIMIT);
    assert_string_equal (err.text,
                         "address 10.0.0.1 has 8 connections here, as many as an address may have");
    assert_int_equal (connshare_admit (cs, root, here, true, &err),
                      0); /* a daemon on that address */
    for (int i = 0; i < 6; i++)
        assert_int_equal (connshare_admit (cs, user[2 + i], NULL, false, &err), 0);
    assert_int_equal (connshare_admit (cs, user[3], NULL, false, &err), ERR_LIMIT);
    assert_string_equal (err.text, "all 14 connections that are open to it are in use");
    assert_int_equal (connshare_admit (cs, root, NULL, true, &err),
                      0); /* the places that are kept */
    assert_int_equal (connshare_admit (cs, root, NULL, true, &err), ERR_LIMIT);
    connshare_depart (cs, root, NULL, true);
    connshare_depart (cs, user[3], NULL, false);
    assert_int_equal (connshare_admit (cs, user[2], NULL, false, &err), 0);
    connshare_destroy (cs);
}

static void handshakes_give_way (void **state)
{
    const struct connshare_limits limits = {.handshakes = 3, .handshakes_per_address = 2};
    struct connshare *cs = connshare_create (&limits);
    struct connshare_party *a = connshare_party (cs, "a", 0), *b = connshare_party (cs, "b", 0);
    bool own;
    (void)state;
    assert_false (connshare_handshake (cs, a, &own));
    assert_false (connshare_handshake (cs, a, &own));
    assert_true (connshare_handshake (cs, a, &own));
    assert_true (own);
    connshare_handshake_over (cs, a);
    assert_false (connshare_handshake (cs, b, &own));
    assert_true (connshare_handshake (cs, b, &own));
    assert_false (own);
    connshare_destroy (cs);
}

static void rates_recover (void **state)
{
    const struct connshare_limits limits = {.calls_per_s = 10, .resets_per_s = 1};
    struct connshare *cs = connshare_create (&limits);
    struct connshare_party *a = connshare_party (cs, "a", 0), *b = connshare_party (cs, "b", 0);
    uint64_t more = 99;
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_true (connshare_call (cs, a, 0));
    assert_false (connshare_call (cs, a, 0));
    assert_true (connshare_call (cs, b, 0)); /* another's are another's */
    assert_true (connshare_call (cs, a, US_PER_S / 10));
    assert_false (connshare_call (cs, a, US_PER_S / 10));
    for (int i = 0; i < 30; i++)
        assert_true (connshare_reset (cs, a, 0));
    assert_false (connshare_reset (cs, a, 0));
    assert_true (connshare_reset (cs, a, US_PER_S));
    assert_true (connshare_tell (a, 0, &more));
    assert_int_equal (more, 0);
    assert_false (connshare_tell (a, 1, &more));
    assert_false (connshare_tell (a, 2, &more));
    assert_true (connshare_tell (a, US_PER_S, &more));
    assert_int_equal (more, 2);
    connshare_destroy (cs);
}

static void unread_is_bounded (void **state)
{
    const struct connshare_limits limits = {.unread = 100, .unread_each = 60};
    struct connshare *cs = connshare_create (&limits);
    struct connshare_party *a = connshare_party (cs, "a", 0), *b = connshare_party (cs, "b", 0);
    (void)state;
    assert_true (connshare_unread_add (cs, a, 60));
    assert_false (connshare_unread_add (cs, a, 1));
    assert_false (connshare_unread_add (cs, b, 41));
    assert_true (connshare_unread_add (cs, b, 40));
    connshare_unread_drop (cs, a, 30);
    assert_true (connshare_unread_add (cs, a, 30));
    connshare_destroy (cs);
}

static int silent_connection (uint16_t port)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons (port)};
    int fd = socket (AF_INET, SOCK_STREAM, 0);
    sin.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    assert_int_equal (connect (fd, (struct sockaddr *)&sin, sizeof sin), 0);
    return fd;
}

/* Seen: connections that never say a word took every place. */
static void silent_ones_lock_nobody_out (void **state)
{
    struct rig rig;
    struct outcome o;
    int fd[SILENT];
    (void)state;
    rig_up (&rig);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.connections = 100;
    rpcserver_set_limits (rig.server, &limits);
    for (int i = 0; i < SILENT; i++) {
        fd[i] = silent_connection (rpcserver_port (rig.server));
        event_base_loop (rig.base, EVLOOP_NONBLOCK);
    }
    assert_in_range (rpcserver_connections (rig.server), 1, limits.handshakes_per_address);
    rig_call (&rig, &o, "Echo", "still served");
    assert_int_equal (o.status, RPC_OK);
    for (int i = 0; i < SILENT; i++)
        close (fd[i]);
    rig_down (&rig);
}

/* One user's connections end at a share, with a sentence; a daemon finds a place. */
static void a_share_of_places (void **state)
{
    struct rig rig;
    struct outcome o;
    (void)state;
    rig_up (&rig);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.per_principal = 1;
    rpcserver_set_limits (rig.server, &limits);
    rig_call (&rig, &o, "Echo", "first");
    assert_int_equal (o.status, RPC_OK);
    struct rpcclient *first = rig.client;
    rig.client = rig_client (&rig, rig.user_id);
    rig_call (&rig, &o, "Echo", "second");
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    assert_non_null (
        strstr (o.message, "nui://test/user/alice has 1 connections here, as many as it may have"));
    rpcclient_destroy (rig.client);
    rig.client = rig_client (&rig, rig.server_id); /* a site's certificate */
    rig_call (&rig, &o, "Echo", "a site");
    assert_int_equal (o.status, RPC_OK);
    rpcclient_destroy (rig.client);
    rig.client = first;
    rig_call (&rig, &o, "Echo", "first again");
    assert_int_equal (o.status, RPC_OK);
    rig_down (&rig);
}

static void a_share_of_calls (void **state)
{
    struct rig rig;
    struct outcome o;
    int served = 0, refused = 0;
    (void)state;
    rig_up (&rig);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.calls_per_s = 1;
    rpcserver_set_limits (rig.server, &limits);
    for (int i = 0; i < 40; i++) {
        rig_call (&rig, &o, "Echo", "again");
        served += o.status == RPC_OK;
        refused += o.status == RPC_RESOURCE_EXHAUSTED;
        if (o.status != RPC_OK)
            assert_string_equal (
                o.message, "more calls a second than you may make here: try again in a moment");
    }
    assert_int_equal (served + refused, 40);
    assert_true (served >= 2 && refused >= 1);
    rig_down (&rig);
}

/* How many streams it opens and resets before the server ends the connection; most: it does not. */
static int resets_until_cut (struct rig *rig, int most)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o;
    rig_call (rig, &o, "Echo", "connected");
    assert_int_equal (o.status, RPC_OK);
    for (int i = 0; i < most; i++) {
        unsigned open = rig->echo.calls;
        rig_start (rig, &o, "Hang", &request, 0, false);
        while (!o.done && rig->echo.calls == open)
            rig_turn (rig);
        if (!o.done)
            rpccallout_cancel (o.call);
        while (!o.done || rig->echo.open > 0)
            rig_turn (rig);
        if (!rpcclient_connected (rig->client))
            return i;
    }
    return most;
}

/* Streams that are opened and reset at once cost the server, not who sends them (CVE-2023-44487). Our own share is as good as
 * off here: the library's defence by itself ends it for people, and not for daemons, whose every deadline is a reset. */
static void resets_by_the_library (void **state)
{
    enum { BURST = 1000, MOST = 2500 };
    struct rig rig;
    (void)state;
    rig_up (&rig);
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    limits.resets_per_s = limits.calls_per_s = 1 << 20;
    rpcserver_set_limits (rig.server, &limits);
    testca_issue (rig.ca, &(struct testca_cert){.name = "nsf", .uri = "nui://test/agency/nsf"});
    struct tlsid *agency = testca_tlsid (rig.dir, "ca", "nsf", false);
    struct tlsid *const who[] = {rig.user_id, agency};
    struct rpcclient *first = rig.client;
    for (int i = 0; i < 2; i++) {
        rig.client = rig_client (&rig, who[i]);
        assert_in_range (resets_until_cut (&rig, MOST), BURST - 1, MOST - 1);
        rpcclient_destroy (rig.client);
    }
    rig.client = rig_client (&rig, rig.server_id); /* a site's certificate */
    assert_int_equal (resets_until_cut (&rig, MOST), MOST);
    rpcclient_destroy (rig.client);
    rig.client = first;
    rig_down (&rig);
    tlsid_destroy (agency);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (resets_by_the_library), cmocka_unit_test (places),
        cmocka_unit_test (handshakes_give_way),   cmocka_unit_test (rates_recover),
        cmocka_unit_test (unread_is_bounded),     cmocka_unit_test (silent_ones_lock_nobody_out),
        cmocka_unit_test (a_share_of_places),     cmocka_unit_test (a_share_of_calls),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
