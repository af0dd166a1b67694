/* What a user lets a gate do in his name: which jobs it may sign, which calls it may make, and that its own certificate
 * opens nothing. */
#include "tests/unit/rpc/rig.h"

#include <openssl/evp.h>

#include "proto/base/clock.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/gatedeleg.h"

#define GATE "nui://test/gate/door"
#define ALICE "nui://test/user/alice"
#define HOUR (3600 * US_PER_S)

typedef Nui__Common__V1__Job Job;
typedef Nui__Common__V1__Envelope Envelope;

struct fixture {
    struct rig rig;
    struct tlsid *site, *alice, *bob, *gate, *other;
    struct principal who;
    struct err err;
};

static struct tlsid *identity (struct fixture *f, const char *kind, const char *name)
{
    return testca_identity (f->rig.ca, "test", kind, name);
}

static int up (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    rig_up (&f->rig);
    f->site = identity (f, "site", "alpha");
    f->alice = identity (f, "user", "alice");
    f->bob = identity (f, "user", "bob");
    f->gate = identity (f, "gate", "door");
    f->other = identity (f, "gate", "other");
    *state = f;
    return 0;
}

static int down (void **state)
{
    struct fixture *f = *state;
    struct tlsid *all[] = {f->site, f->alice, f->bob, f->gate, f->other};
    for (size_t i = 0; i < 5; i++)
        tlsid_destroy (all[i]);
    rig_down (&f->rig);
    free (f);
    return 0;
}

static char *phys[] = {(char *)"phys"}, *alpha[] = {(char *)"alpha"};
static uint8_t secret_hash[SHA256_BYTES];

/* Ten jobs of at most 5 credits, on account phys, at site alpha. */
static GateDelegation usual (void)
{
    GateDelegation d = NUI__COMMON__V1__GATE_DELEGATION__INIT;
    d.gate = (char *)GATE;
    d.change = true;
    d.jobs_max = 10;
    d.cost_max_micro = 5000000;
    d.n_accounts = d.n_sites = 1;
    d.accounts = phys;
    d.sites = alpha;
    d.secret_hash = (ProtobufCBinaryData){sizeof secret_hash, secret_hash};
    return d;
}

static ProtobufCBinaryData make (struct fixture *f, struct tlsid *signer, const GateDelegation *d)
{
    ProtobufCBinaryData out = {0, NULL};
    if (gatedeleg_make (signer, d, clock_now_us (), HOUR, &out, &f->err) != 0)
        fail_msg ("%s", f->err.text);
    return out;
}

/* ---- jobs that the gate signs */

/* A job within the bounds of the delegation, and what it is made of. */
struct made {
    Job job;
    Nui__Common__V1__Component component, *components[1];
    uint8_t uuid[16];
    ProtobufCBinaryData delegation;
};

static void made_init (struct fixture *f, struct made *m)
{
    GateDelegation d = usual ();
    struct principal gate = *tlsid_self (f->gate);
    m->delegation = make (f, f->alice, &d);
    GateDelegation *is =
        gatedeleg_open (f->site, &m->delegation, &gate, clock_now_us (), &f->who, &f->err);
    assert_non_null (is);
    memset (m->uuid, 0, sizeof m->uuid);
    memcpy (m->uuid, is->series.data, GATEDELEG_SERIES);
    m->uuid[15] = 9; /* the last */
    nui__common__v1__job__init (&m->job);
    nui__common__v1__component__init (&m->component);
    m->components[0] = &m->component;
    m->component.name = (char *)"main";
    m->component.n_sites = 1;
    m->component.sites = alpha;
    m->job.grid = (char *)"test";
    m->job.submitter = (char *)ALICE;
    m->job.uuid = (ProtobufCBinaryData){sizeof m->uuid, m->uuid};
    m->job.created_us = is->created_us;
    m->job.expires_us = is->expires_us;
    m->job.account = (char *)"phys";
    m->job.cost_max_micro = 5000000;
    m->job.n_components = 1;
    m->job.components = m->components;
    nui__common__v1__gate_delegation__free_unpacked (is, NULL);
}

static int check (struct fixture *f, struct made *m, struct tlsid *signer, int64_t in_s)
{
    Envelope *e = NULL;
    uint8_t body[1024];
    size_t len = nui__common__v1__job__pack (&m->job, body);
    assert_int_equal (envelope_sign (signer, body, len, &e, &f->err), 0);
    e->gate_delegation = m->delegation;
    memset (&f->who, 0, sizeof f->who);
    err_clear (&f->err);
    int rc = envelope_verify (f->site, e, clock_now_us () + in_s * US_PER_S, &f->who, &f->err);
    e->gate_delegation = (ProtobufCBinaryData){0, NULL};
    envelope_free (e);
    return rc;
}

static void refused (struct fixture *f, struct made *m, struct tlsid *signer, int64_t in_s,
                     const char *words)
{
    assert_int_equal (check (f, m, signer, in_s), ERR_UNAUTHENTIC);
    if (!strstr (f->err.text, words))
        fail_msg ("'%s' instead of '%s'", f->err.text, words);
}

static void a_job_within_bounds_is_the_users (void **state)
{
    struct fixture *f = *state;
    struct made m;
    made_init (f, &m);
    assert_int_equal (check (f, &m, f->gate, 0), 0);
    assert_int_equal (f->who.kind, PRINCIPAL_USER);
    assert_string_equal (f->who.name, "alice");
    refused (f, &m, f->gate, 3601, "it expired at");
    refused (f, &m, f->other, 0, "it is for nui://test/gate/door");
    free (m.delegation.data);
    m.delegation = (ProtobufCBinaryData){0, NULL};
    refused (f, &m, f->gate, 0, "there is none");
}

static void no_job_beyond_them (void **state)
{
    struct fixture *f = *state;
    static char *both[] = {(char *)"alpha", (char *)"beta"};
    Nui__Common__V1__IndexRange range = NUI__COMMON__V1__INDEX_RANGE__INIT, *ranges[] = {&range};
    struct made ok, m;
    made_init (f, &ok);
    /* Each begins with the good one, which points into ok. */
    m = ok, m.job.cost_max_micro = 5000001, refused (f, &m, f->gate, 0, "may cost more");
    m = ok, m.job.cost_max_micro = 0, refused (f, &m, f->gate, 0, "may cost more");
    m = ok, m.job.account = (char *)"chem", refused (f, &m, f->gate, 0, "account 'chem'");
    m = ok, m.job.account = (char *)"", refused (f, &m, f->gate, 0, "account ''");
    m = ok, m.job.submitter = (char *)"nui://test/user/bob";
    refused (f, &m, f->gate, 0, "the job says it is by nui://test/user/bob");
    m = ok, m.job.expires_us++, refused (f, &m, f->gate, 0, "good for longer");
    m = ok, m.job.expires_us = 0, refused (f, &m, f->gate, 0, "good for longer");
    m = ok, m.job.created_us--, refused (f, &m, f->gate, 0, "good for longer");
    m = ok, m.job.n_indexes = 1, m.job.indexes = ranges, refused (f, &m, f->gate, 0, "an array");
    ok.component.sites = both, ok.component.n_sites = 2;
    refused (f, &ok, f->gate, 0, "a site that the delegation does not name");
    ok.component.n_sites = 0;
    refused (f, &ok, f->gate, 0, "a site that the delegation does not name");
    ok.component.n_sites = 1;
    ok.uuid[15] = 10;
    refused (f, &ok, f->gate, 0, "may sign 10 jobs by this delegation, this is number 11");
    m = ok, m.job.question = true; /* costs nothing */
    assert_int_equal (check (f, &m, f->gate, 0), 0);
    ok.uuid[15] = 9, ok.uuid[0] ^= 1;
    refused (f, &ok, f->gate, 0, "none of the delegation's series");
    free (ok.delegation.data);
}

static void what_is_no_delegation (void **state)
{
    struct fixture *f = *state;
    GateDelegation d = usual ();
    ProtobufCBinaryData out;
    assert_int_equal (gatedeleg_make (f->alice, &d, 0, GATEDELEG_MAX_US + 1, &out, &f->err),
                      ERR_INVALID);
    d.accounts = NULL, d.n_accounts = 0;
    assert_int_equal (gatedeleg_make (f->alice, &d, 0, HOUR, &out, &f->err), ERR_INVALID);
    d = usual (), d.gate = (char *)"nui://test/meta/main";
    assert_int_equal (gatedeleg_make (f->alice, &d, 0, HOUR, &out, &f->err), ERR_INVALID);
    /* A site cannot give what is a user's. */
    struct made m;
    made_init (f, &m);
    free (m.delegation.data);
    d = usual ();
    m.delegation = make (f, f->site, &d);
    refused (f, &m, f->gate, 0, "signed it, not a user");
    m.delegation.data[m.delegation.len / 4] ^= 1; /* in its signature or body */
    assert_int_equal (check (f, &m, f->gate, 0), ERR_UNAUTHENTIC);
    free (m.delegation.data);
}

/* ---- calls that it makes */

static void on_peer (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    Nui__Test__V1__EchoReply reply = NUI__TEST__V1__ECHO_REPLY__INIT;
    char uri[PRINCIPAL_URI_MAX];
    (void)self, (void)request;
    reply.peer = principal_uri (rpccall_peer (call), uri);
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method methods[] = {
    {.name = "Echo", .allow = RPC_ALLOW (PRINCIPAL_USER) | RPC_GATE_READ, .handler = on_peer},
    {.name = "Big", .allow = RPC_ALLOW (PRINCIPAL_USER) | RPC_GATE_CHANGE, .handler = on_peer},
    {.name = "Fail", .allow = RPC_ALLOW (PRINCIPAL_USER), .handler = on_peer},
    {.name = "Closed", .allow = RPC_ALLOW (PRINCIPAL_OPERATOR) | RPC_GATE_READ, .handler = on_peer},
    {.name = "Hang", .allow = RPC_ALLOW_ANY, .handler = on_peer},
    {.name = NULL},
};

static void on_done (void *arg, const struct rpc_result *result)
{
    const Nui__Test__V1__EchoReply *reply = (const Nui__Test__V1__EchoReply *)result->reply;
    struct outcome *o = arg;
    o->done++;
    o->status = result->status;
    snprintf (o->message, sizeof o->message, "%s", result->message);
    snprintf (o->peer, sizeof o->peer, "%s", reply ? reply->peer : "");
}

static void expect (struct fixture *f, struct rpcclient *client, const char *method,
                    const char *delegation, enum rpc_status status, const char *words)
{
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct outcome o = {0};
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = method,
                                             .request = &request.base,
                                             .delegation = delegation,
                                             .done = on_done,
                                             .arg = &o};
    rpcclient_start (client, &config);
    rig_until (&f->rig, &o.done);
    if (o.status != status || !strstr (status ? o.message : o.peer, words))
        fail_msg ("%s: %d '%s' '%s', not %d '%s'", method, o.status, o.message, o.peer, status,
                  words);
}

static char *base64 (ProtobufCBinaryData bytes)
{
    char *text = malloc (bytes.len * 2 + 8);
    assert_non_null (text);
    EVP_EncodeBlock ((unsigned char *)text, bytes.data, (int)bytes.len);
    free (bytes.data);
    return text;
}

static void calls_are_the_users (void **state)
{
    struct fixture *f = *state;
    char target[64];
    const struct rpcserver_config config = {
        .base = f->rig.base, .id = f->site, .listen = "127.0.0.1:0"};
    struct rpcserver *server = rpcserver_create (&config, &f->err);
    assert_non_null (server);
    assert_int_equal (
        rpcserver_add_service (server, &nui__test__v1__echo__descriptor, methods, NULL, &f->err),
        0);
    snprintf (target, sizeof target, "127.0.0.1:%u", rpcserver_port (server));
    struct rpcclient_config at = {.base = f->rig.base, .id = f->gate, .target = target};
    struct rpcclient *gate = rpcclient_create (&at, &f->err);
    at.id = f->bob;
    struct rpcclient *bob = rpcclient_create (&at, &f->err);
    GateDelegation d = usual ();
    char *all = base64 (make (f, f->alice, &d)), *plain = strdup (all);
    d.change = false, d.jobs_max = 0;
    char *look = base64 (make (f, f->alice, &d));
    d.gate = (char *)"nui://test/gate/other";
    char *others = base64 (make (f, f->alice, &d));
    plain[strcspn (plain, "=")] = '\0';       /* as gRPC's own libraries write it */
    for (int twice = 0; twice < 2; twice++) { /* the second from the memo */
        expect (f, gate, "Echo", all, RPC_OK, ALICE);
        expect (f, gate, "Echo", plain, RPC_OK, ALICE);
        expect (f, gate, "Echo", look, RPC_OK, ALICE);
        expect (f, gate, "Big", all, RPC_OK, ALICE);
        expect (f, gate, "Big", look, RPC_PERMISSION_DENIED, "for looking only");
        expect (f, gate, "Fail", all, RPC_PERMISSION_DENIED, "not open to gates");
        expect (f, gate, "Closed", all, RPC_PERMISSION_DENIED, "not open to gates");
        expect (f, gate, "Hang", all, RPC_OK, ALICE);
    }
    expect (f, gate, "Hang", NULL, RPC_OK, GATE);
    expect (f, gate, "Echo", NULL, RPC_PERMISSION_DENIED, "by a user's delegation only");
    expect (f, gate, "Echo", others, RPC_UNAUTHENTICATED, "it is for nui://test/gate/other");
    expect (f, gate, "Echo", "!!!!", RPC_UNAUTHENTICATED, "no base64");
    expect (f, gate, "Echo", "AAAA", RPC_UNAUTHENTICATED, "not good");
    expect (f, bob, "Echo", NULL, RPC_OK, "nui://test/user/bob");
    expect (f, bob, "Echo", all, RPC_PERMISSION_DENIED, "only a gate");
    /* Her certificate is revoked: at once, also what is in the memo. */
    testca_revoke (f->rig.ca, "alice", -1);
    testca_write_crl (f->rig.ca, -3600, 3600);
    assert_int_equal (tlsid_reload (f->site, &f->err), 0);
    rpcserver_recheck_peers (server);
    expect (f, gate, "Echo", all, RPC_UNAUTHENTICATED, "revoked");
    free (all), free (plain), free (look), free (others);
    rpcclient_destroy (gate);
    rpcclient_destroy (bob);
    rpcserver_destroy (server);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_job_within_bounds_is_the_users, up, down),
        cmocka_unit_test_setup_teardown (no_job_beyond_them, up, down),
        cmocka_unit_test_setup_teardown (what_is_no_delegation, up, down),
        cmocka_unit_test_setup_teardown (calls_are_the_users, up, down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
