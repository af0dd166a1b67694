/* The members of a group of metaschedulers: who is asked when one does not answer. */
#include "proto/cli/metas.h"
#include "tests/unit/rpc/rig.h"

#define ECHO &nui__test__v1__echo__descriptor

struct pair {
    struct rig rig; /* its server is the first one */
    struct rpcserver *other;
    char target[64];
    struct metas *metas;
};

static struct rpcclient *connect_to (void *arg, const char *target, struct err *err)
{
    struct pair *p = arg;
    struct rpcclient_config config = {
        .base = p->rig.base, .id = p->rig.user_id, .target = target, .expect_kind = PRINCIPAL_SITE};
    return rpcclient_create (&config, err);
}

static int up (void **state)
{
    struct pair *p = calloc (1, sizeof *p);
    struct err err;
    rig_up (&p->rig);
    p->other = rig_server (&p->rig, NULL);
    snprintf (p->target, sizeof p->target, "127.0.0.1:%u", rpcserver_port (p->other));
    p->metas = metas_create (connect_to, p);
    assert_int_equal (metas_add (p->metas, p->rig.target, &err), 0);
    assert_int_equal (metas_add (p->metas, p->target, &err), 0);
    *state = p;
    return 0;
}

static int down (void **state)
{
    struct pair *p = *state;
    metas_destroy (p->metas);
    rpcserver_destroy (p->other);
    rig_down (&p->rig);
    free (p);
    return 0;
}

static void first_dies (struct pair *p)
{
    rpcserver_destroy (p->rig.server);
    p->rig.server = NULL;
}

static int call (struct pair *p, bool change, const char *method, uint32_t status, struct err *err)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    request.text = (char *)(uintptr_t) "x";
    request.status = status;
    *err = (struct err){0};
    return (change ? metas_call_change
                   : metas_call) (p->metas, ECHO, method, &request.base,
                                  strcmp (method, "Hang") ? 600 * US_PER_S : 500000, NULL, err);
}

static void says (const struct err *err, const char *words)
{
    if (!strstr (err->text, words))
        fail_msg ("'%s' does not say '%s'", err->text, words);
}

static void the_next_is_asked (void **state)
{
    struct pair *p = *state;
    struct err err;
    assert_int_equal (call (p, false, "Echo", 0, &err), 0);
    first_dies (p);
    assert_int_equal (call (p, false, "Echo", 0, &err), 0);
    assert_int_equal (call (p, true, "Echo", 0, &err), 0);
    assert_int_equal (p->rig.echo.calls, 3);
    /* What it refuses is an answer; what it does not know, the other may have known. */
    assert_int_equal (call (p, false, "Fail", RPC_ABORTED, &err), ERR_CONFLICT);
    assert_int_equal (call (p, false, "Fail", RPC_NOT_FOUND, &err), ERR_NOT_FOUND);
    rpcserver_destroy (p->other);
    p->other = NULL;
    assert_int_equal (call (p, false, "Echo", 0, &err), ERR_UNAVAILABLE);
    says (&err, "none of 2 metaschedulers answers: ");
    p->other = rig_server (&p->rig, p->target);
    for (int i = 0; i < 20 && call (p, false, "Echo", 0, &err) != 0;) /* after its back-off */
        i++;
    assert_int_equal (err.code, 0);
}

static void not_known_by_another (void **state)
{
    struct pair *p = *state;
    struct err err;
    first_dies (p);
    assert_int_equal (call (p, false, "Fail", RPC_NOT_FOUND, &err), ERR_UNAVAILABLE);
    says (&err, p->rig.target);
    says (&err, "connection refused; another metascheduler answers: ");
}

/* One that hears it and does not answer: another is asked. None answers: what may have been heard is said to be. */
static void heard_and_silent (void **state)
{
    struct pair *p = *state;
    struct err err;
    assert_int_equal (call (p, false, "Echo", 0, &err),
                      0); /* connected: on a busy machine that may take longer */
    assert_int_equal (call (p, true, "Hang", 0, &err), ERR_TIMEOUT);
    says (&err, "none of 2 metaschedulers answers: the deadline passed");
    says (&err, "; one may have heard the request: look (nui jobs) before it is made again");
    assert_int_equal (call (p, false, "Hang", 0, &err), ERR_TIMEOUT);
    assert_null (strstr (err.text, "heard"));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (the_next_is_asked, up, down),
        cmocka_unit_test_setup_teardown (not_known_by_another, up, down),
        cmocka_unit_test_setup_teardown (heard_and_silent, up, down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
