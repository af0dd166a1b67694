/* Server and client in one process: what every caller relies on. */
#include "tests/unit/rpc/rig.h"

static void test_unary (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    request.text = (char *)"aloha \xc4\x81";
    request.count = 1;
    rig_start (&rig, &o, "Echo", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_string_equal (o.message, "");
    assert_string_equal (o.text, request.text);
    assert_string_equal (o.peer, "nui://test/user/alice");
    assert_true (rpcclient_connected (rig.client));
    rig_down (&rig);
}

/* Text that is none is mended on its way out of a server. */
static void test_text_is_mended (void **state)
{
    struct rig rig;
    struct outcome o;

    (void)state;
    rig_up (&rig);
    Nui__Test__V1__EchoRequest request = REQUEST;
    request.count = 3; /* an answer that the server itself tears */
    rig_start (&rig, &o, "Echo", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_string_equal (o.text, "cut here: ?");
    rig_down (&rig);
}

static void test_empty_message (void **state)
{
    struct rig rig;
    struct outcome o;

    (void)state;
    rig_up (&rig);
    rig_call (&rig, &o, "Echo", "");
    assert_int_equal (o.status, RPC_OK);
    assert_string_equal (o.text, "");
    rig_down (&rig);
}

static void test_streaming (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    request.count = 1000;
    request.bytes_each = 10000;
    rig_start (&rig, &o, "Stream", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_int_equal (o.messages, 1000);
    assert_int_equal (o.bytes, 10000000);
    request.count = 0;
    rig_start (&rig, &o, "Stream", &request, 0, false);
    rig_until (&rig, &o.done);
    assert_int_equal (o.status, RPC_OK);
    assert_int_equal (o.messages, 0);
    rig_down (&rig);
}

static void test_status (void **state)
{
    struct rig rig;
    struct outcome o;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    request.text = (char *)"kein Guthaben: 5 €, 100 %\n";
    for (uint32_t s = 1; s <= 16; s++) {
        request.status = s;
        rig_start (&rig, &o, "Fail", &request, 0, false);
        rig_until (&rig, &o.done);
        assert_int_equal (o.status, s);
        assert_string_equal (o.message, request.text);
    }
    rig_down (&rig);
}

/* What test_gate lets pass, and when it was asked. */
struct gate {
    bool shut, fails;
    unsigned opened;
};

static bool gate_shut (void *self)
{
    return ((struct gate *)self)->shut;
}

static int gate_open (void *self, struct err *err)
{
    struct gate *gate = self;
    if (!gate->shut)
        return 0;
    gate->opened++;
    if (gate->fails)
        return err_set (err, ERR_IO, "the disk is gone");
    gate->shut = false;
    return 0;
}

/* An answer leaves when the gate was opened, once; where that fails, none leaves. */
static void test_gate (void **state)
{
    struct rig rig;
    struct outcome o, p;
    struct gate gate = {0};
    const struct sendgate sendgate = {gate_shut, gate_open, &gate};
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    rpcserver_set_gate (rig.server, &sendgate);
    request.text = (char *)"a";
    rig_start (&rig, &o, "Echo", &request, 0, false); /* both connect */
    struct rpcclient *one = rig.client, *two = rig.client = rig_client (&rig, rig.user_id);
    rig_start (&rig, &p, "Echo", &request, 0, false);
    rig_until (&rig, &o.done);
    rig_until (&rig, &p.done);
    assert_int_equal (gate.opened, 0);
    gate.shut = true;
    rig_start (&rig, &p, "Echo", &request, 0, false);
    rig_until (&rig, &p.done);
    assert_int_equal (p.status, RPC_OK);
    assert_int_equal (gate.opened, 1);
    gate.shut = gate.fails = true;
    rig_start (&rig, &p, "Echo", &request, 0, false);
    rig.client = one;
    rig_start (&rig, &o, "Echo", &request, 0, false);
    rig_until (&rig, &o.done);
    rig_until (&rig, &p.done);
    assert_int_equal (o.status, RPC_UNAVAILABLE);
    assert_int_equal (p.status, RPC_UNAVAILABLE);
    assert_true (gate.shut);
    rpcclient_destroy (two);
    rig_down (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_unary),         cmocka_unit_test (test_text_is_mended),
        cmocka_unit_test (test_empty_message), cmocka_unit_test (test_streaming),
        cmocka_unit_test (test_status),        cmocka_unit_test (test_gate),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
