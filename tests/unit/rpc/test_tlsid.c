/* Identities: the URI, the files, reloading, and each way to be refused on either side. */
#include <sys/stat.h>
#include <unistd.h>

#include "proto/rpc/rpcclient_i.h"
#include "tests/unit/rpc/rig.h"

static void test_principal (void **state)
{
    static const char too_long[] =
        "nui://g/user/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const char *const bad[] = {"",
                                      "nui:",
                                      "nui://",
                                      "nui://g",
                                      "nui://g/user",
                                      "nui://g/user/",
                                      "nui:///user/a",
                                      "nui://g//a",
                                      "nui://g/user/a/b",
                                      "nui://g/user/a/",
                                      "nui://g/root/a",
                                      "nui://g/none/a",
                                      "NUI://g/user/a",
                                      "nui://g/User/a",
                                      "nui://g/user/a b",
                                      "nui://g/user/-a",
                                      "nui://g/user/.a",
                                      too_long,
                                      "http://g/user/a"};
    static const char *const kinds[] = {"user", "site", "meta", "bank", "operator", "agency"};
    struct principal p = {.kind = PRINCIPAL_NONE};
    struct err err;
    char uri[PRINCIPAL_URI_MAX], back[PRINCIPAL_URI_MAX];

    (void)state;
    for (int k = 0; k < 6; k++) {
        snprintf (uri, sizeof (uri), "nui://grid-1/%s/a.b_C-9", kinds[k]);
        assert_int_equal (principal_parse (uri, &p, &err), 0);
        assert_int_equal (p.kind, k + 1);
        assert_string_equal (p.grid, "grid-1");
        assert_string_equal (p.name, "a.b_C-9");
        assert_string_equal (principal_uri (&p, back), uri);
    }
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        if (principal_parse (bad[i], &p, &err) == 0)
            fail_msg ("accepted: %s", bad[i]);
        assert_int_equal (err.code, ERR_INVALID);
        assert_string_equal (p.name, "a.b_C-9"); /* outputs as they were */
    }
}

/* ---- files */

static void file_name (char buf[512], const struct rig *rig, const char *name)
{
    snprintf (buf, 512, "%s/%s", rig->dir, name);
}

static struct tlsid *load (const struct rig *rig, const char *ca, const char *cert, const char *key,
                           const char *crl, struct err *err)
{
    char path[4][512];

    file_name (path[0], rig, ca);
    file_name (path[1], rig, cert);
    file_name (path[2], rig, key);
    file_name (path[3], rig, crl ? crl : "");
    const struct tlsid_config config = {.ca_file = path[0],
                                        .cert_file = path[1],
                                        .key_file = path[2],
                                        .crl_file = crl ? path[3] : NULL};
    return tlsid_create (&config, err);
}

static void test_files (void **state)
{
    struct rig rig;
    struct err err;
    char path[512];

    (void)state;
    rig_up (&rig);
    testca_issue (rig.ca, &(struct testca_cert){.name = "nobody"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "double",
                                                .uri = "nui://test/user/a",
                                                .uri2 = "nui://test/operator/a"});
    testca_issue (rig.ca, &(struct testca_cert){
                              .name = "other", .uri = "https://x", .uri2 = "nui://test/user/b"});
    assert_null (load (&rig, "ca.pem", "nobody.pem", "nobody.key", NULL, &err));
    assert_non_null (strstr (err.text, "no nui:// identity"));
    assert_null (load (&rig, "ca.pem", "double.pem", "double.key", NULL, &err));
    assert_non_null (strstr (err.text, "more than one nui:// identity"));
    struct tlsid *id = load (&rig, "ca.pem", "other.pem", "other.key", NULL, &err);
    assert_non_null (id);
    assert_string_equal (tlsid_self (id)->name, "b");
    tlsid_destroy (id);
    assert_null (load (&rig, "ca.pem", "alice.pem", "alpha.key", NULL, &err));
    assert_non_null (strstr (err.text, "does not belong to certificate"));
    assert_null (load (&rig, "ca.pem", "absent.pem", "alpha.key", NULL, &err));
    assert_int_equal (err.code, ERR_NOT_FOUND);
    assert_null (load (&rig, "ca.pem", "alice.key", "alice.key", NULL, &err));
    assert_non_null (strstr (err.text, "no readable PEM certificate"));
    assert_null (load (&rig, "ca.pem", "alice.pem", "alice.key", "ca.pem", &err));
    assert_non_null (strstr (err.text, "no readable PEM CRL"));
    file_name (path, &rig, "alice.key");
    assert_int_equal (chmod (path, 0640), 0);
    assert_null (load (&rig, "ca.pem", "alice.pem", "alice.key", NULL, &err));
    assert_int_equal (err.code, ERR_DENIED);
    assert_non_null (strstr (err.text, "its mode is 0640, group or others may use it"));
    assert_int_equal (chmod (path, 0604), 0);
    assert_null (load (&rig, "ca.pem", "alice.pem", "alice.key", NULL, &err));
    assert_int_equal (chmod (path, 0600), 0);
    rig_down (&rig);
}

static void test_reload (void **state)
{
    struct rig rig;
    struct err err;
    struct outcome o;
    char path[512];

    (void)state;
    rig_up (&rig);
    X509_STORE *store = tlsid_store (rig.server_id);
    assert_int_equal (tlsid_reload (rig.server_id, &err), 0);
    assert_ptr_equal (tlsid_store (rig.server_id), store); /* nothing changed, nothing done */
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_OK);
    /* A broken file leaves what was loaded. */
    file_name (path, &rig, "alpha.pem");
    FILE *f = fopen (path, "w");
    fputs ("nonsense\n", f);
    fclose (f);
    assert_int_equal (tlsid_reload (rig.server_id, &err), ERR_INVALID);
    assert_ptr_equal (tlsid_store (rig.server_id), store);
    /* Another identity is refused, a renewed certificate is taken. */
    testca_issue (rig.ca, &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/beta"});
    assert_int_equal (tlsid_reload (rig.server_id, &err), ERR_CONFLICT);
    testca_issue (rig.ca, &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/alpha"});
    assert_int_equal (tlsid_reload (rig.server_id, &err), 0);
    rpcserver_recheck_peers (rig.server); /* alice is still good: her connection stays */
    rig_turn (&rig);
    assert_true (rpcclient_connected (rig.client));
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_OK);
    rig_down (&rig);
}

/* Revoked while connected: the open connection goes, and the next is refused. */
static void test_revoked_while_connected (void **state)
{
    struct rig rig;
    struct err err;
    struct outcome o, hung;
    Nui__Test__V1__EchoRequest request = REQUEST;

    (void)state;
    rig_up (&rig);
    rig_call (&rig, &o, "Echo", "x");
    rig_start (&rig, &hung, "Hang", &request, 0, false);
    rig_until (&rig, &rig.echo.open);
    testca_revoke (rig.ca, "alice", 0);
    assert_int_equal (tlsid_reload (rig.server_id, &err), 0);
    rpcserver_recheck_peers (rig.server);
    rig_until (&rig, &hung.done);
    assert_int_equal (hung.status, RPC_UNAVAILABLE);
    assert_int_equal (rig.echo.cancelled, 1);
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_UNAUTHENTICATED);
    assert_non_null (strstr (o.message, "the server refused us: our certificate was revoked"));
    rig_down (&rig);
}

/* ---- refusals, as the caller reads them */

enum { DAY = 86400 };

/* "…" at its end stands for a moment. */
static void assert_says (const char *message, const char *target, const char *sentence)
{
    char want[600], *dots;

    snprintf (want, sizeof (want), "%s: %s", target, sentence);
    dots = strstr (want, "…");
    if (!dots) {
        assert_string_equal (message, want);
        return;
    }
    *dots = '\0';
    char got[600];
    snprintf (got, sizeof (got), "%.*s", (int)strlen (want), message);
    assert_string_equal (got, want);
    assert_int_equal (20, strcspn (message + strlen (want), ":)") +
                              strlen (":MM:SSZ")); /* 2026-11-23T11:00:00Z */
}

static void refused_client (struct rig *rig, struct tlsid *id, const char *sentence)
{
    struct outcome o;

    rpcclient_destroy (rig->client);
    rig->client = rig_client (rig, id);
    rig_call (rig, &o, "Echo", "x");
    assert_says (o.message, rig->target, sentence);
    assert_int_equal (o.status, RPC_UNAUTHENTICATED);
    assert_int_equal (rig->echo.calls, 0);
    assert_int_equal (o.done, 1);
    rpcclient_destroy (rig->client);
    rig->client = NULL;
    tlsid_destroy (id);
}

static void test_server_refuses (void **state)
{
    struct rig rig;
    struct err err;

    (void)state;
    rig_up (&rig);
    struct testca *ca2 = testca_create (rig.dir, "ca2");
    testca_issue (ca2, &(struct testca_cert){.name = "mallory", .uri = "nui://test/user/alice"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "old",
                                                .uri = "nui://test/user/old",
                                                .not_before = -9 * DAY,
                                                .not_after = -DAY});
    testca_issue (rig.ca, &(struct testca_cert){.name = "early",
                                                .uri = "nui://test/user/early",
                                                .not_before = DAY,
                                                .not_after = 9 * DAY});
    testca_issue (rig.ca, &(struct testca_cert){.name = "far", .uri = "nui://far/user/alice"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "bad", .uri = "nui://test/user/bad"});
    testca_issue (rig.ca, &(struct testca_cert){
                              .name = "srv", .uri = "nui://test/site/srv", .server_only = true});
    testca_revoke (rig.ca, "bad", -60);
    assert_int_equal (tlsid_reload (rig.server_id, &err), 0);

    struct tlsid *old = testca_tlsid (rig.dir, "ca", "old", false);
    struct tm tm;
    char sentence[200], end[40];
    ASN1_TIME_to_tm (X509_get0_notAfter (sk_X509_value (tlsid_chain (old), 0)), &tm);
    strftime (end, sizeof (end), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf (sentence, sizeof (sentence),
              "the server refused us: our certificate has expired (%s)", end);
    refused_client (&rig, old, sentence);
    struct tlsid *early = testca_tlsid (rig.dir, "ca", "early", false);
    char begin[40], slow[300];
    ASN1_TIME_to_tm (X509_get0_notBefore (sk_X509_value (tlsid_chain (early), 0)), &tm);
    strftime (begin, sizeof (begin), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf (slow, sizeof (slow),
              "the server refused us: our certificate is valid from %s, and our clock shows …",
              begin);
    refused_client (&rig, early, slow);
    refused_client (&rig, testca_tlsid (rig.dir, "ca", "bad", false),
                    "the server refused us: our certificate was revoked");
    refused_client (&rig, load (&rig, "ca.pem", "mallory.pem", "mallory.key", NULL, &err),
                    "the server refused us: our certificate was not issued by an authority of its "
                    "grid");
    refused_client (&rig, testca_tlsid (rig.dir, "ca", "srv", false),
                    "the server refused us: our certificate may not be used for this (its extended "
                    "key usage lacks it)");
    /* The one of another grid would itself refuse the server: let it trust both names. */
    refused_client (&rig, testca_tlsid (rig.dir, "ca", "far", false),
                    "the server's certificate does not carry exactly one nui:// identity of this "
                    "grid");
    /* A stale CRL fails closed, and the sentence does not blame the user's certificate. */
    testca_write_crl (rig.ca, -9 * DAY, -DAY);
    assert_int_equal (tlsid_reload (rig.server_id, &err), 0);
    struct tlsid *alice = testca_tlsid (rig.dir, "ca", "alice", false);
    ASN1_TIME_to_tm (X509_get0_notAfter (sk_X509_value (tlsid_chain (alice), 0)), &tm);
    strftime (end, sizeof (end), "%Y-%m-%dT%H:%M:%SZ", &tm);
    char stale[300];
    snprintf (stale, sizeof (stale),
              "the server says our certificate has expired, though it is valid until %s: its clock "
              "or its revocation list (CRL) may be out of date",
              end);
    refused_client (&rig, alice, stale);
    testca_destroy (ca2);
    rig_down (&rig);
}

/* The refusal comes while the client still sends: a server that closed at once would answer that
 * with RST, and the alert would be lost. */
static void test_alert_not_lost (void **state)
{
    static uint8_t data[4 << 20];
    Nui__Test__V1__EchoRequest request = REQUEST;
    struct rig rig;
    struct outcome o;
    struct err err;

    (void)state;
    rig_up (&rig);
    testca_revoke (rig.ca, "alice", -60);
    assert_int_equal (tlsid_reload (rig.server_id, &err), 0);
    request.data.data = data;
    request.data.len = sizeof (data);
    for (int i = 0; i < 20; i++) {
        rpcclient_destroy (rig.client);
        rig.client = rig_client (&rig, rig.user_id);
        rig_start (&rig, &o, "Big", &request, 0, false);
        rig_until (&rig, &o.done);
        assert_non_null (strstr (o.message, "our certificate was revoked"));
        assert_int_equal (o.status, RPC_UNAUTHENTICATED);
    }
    rig_down (&rig);
}

/* The server comes up as `name`; alice, who expects a site, connects. */
static void refused_server (struct rig *rig, struct tlsid *id, const char *sentence)
{
    struct tlsid *good = rig->server_id;
    struct outcome o;

    rpcserver_destroy (rig->server);
    rig->server_id = id;
    rig->server = rig_server (rig, rig->target);
    rpcclient_destroy (rig->client);
    rig->client = rig_client (rig, rig->user_id);
    rig_call (rig, &o, "Echo", "x");
    assert_says (o.message, rig->target, sentence);
    assert_int_equal (o.status, RPC_UNAUTHENTICATED);
    assert_int_equal (rig->echo.calls, 0);
    rpcserver_destroy (rig->server);
    rig->server = NULL;
    rig->server_id = good;
    tlsid_destroy (id);
}

static void test_client_refuses (void **state)
{
    struct rig rig;
    struct err err;

    (void)state;
    rig_up (&rig);
    struct testca *ca2 = testca_create (rig.dir, "ca2");
    testca_issue (ca2, &(struct testca_cert){.name = "mallory", .uri = "nui://test/site/alpha"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "old",
                                                .uri = "nui://test/site/alpha",
                                                .not_before = -9 * DAY,
                                                .not_after = -DAY});
    testca_issue (rig.ca, &(struct testca_cert){.name = "far", .uri = "nui://far/site/alpha"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "bad", .uri = "nui://test/site/alpha"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "bank", .uri = "nui://test/bank/bank"});
    testca_issue (rig.ca, &(struct testca_cert){.name = "beta", .uri = "nui://test/site/beta"});
    testca_revoke (rig.ca, "bad", -60);
    assert_int_equal (tlsid_reload (rig.user_id, &err), 0);
    refused_server (&rig, testca_tlsid (rig.dir, "ca", "old", true),
                    "the server's certificate has expired, unless our clock is fast: it shows …");
    testca_issue (rig.ca, &(struct testca_cert){.name = "early",
                                                .uri = "nui://test/site/alpha",
                                                .not_before = DAY,
                                                .not_after = 9 * DAY});
    refused_server (
        &rig, testca_tlsid (rig.dir, "ca", "early", true),
        "the server's certificate is not valid yet, so our clock may be slow: it shows …");
    refused_server (&rig, testca_tlsid (rig.dir, "ca", "bad", true),
                    "the server's certificate was revoked");
    refused_server (&rig, load (&rig, "ca.pem", "mallory.pem", "mallory.key", NULL, &err),
                    "the server's certificate was not issued by an authority of this grid");
    refused_server (&rig, testca_tlsid (rig.dir, "ca", "far", true),
                    "the server's certificate does not carry exactly one nui:// identity of this "
                    "grid");
    refused_server (&rig, testca_tlsid (rig.dir, "ca", "bank", true),
                    "the server there is nui://test/bank/bank, not a site");
    /* a name, too */
    struct outcome o;
    const struct rpcclient_config config = {
        .base = rig.base, .id = rig.user_id, .target = rig.target, .expect_name = "beta"};
    rig.server = rig_server (&rig, rig.target);
    rpcclient_destroy (rig.client);
    rig.client = rpcclient_create (&config, &err);
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_UNAUTHENTICATED);
    assert_non_null (strstr (o.message, "nui://test/site/alpha, its name should be beta"));
    testca_destroy (ca2);
    rig_down (&rig);
}

/* A server that only asks clients for certificates of its grid also refuses one whose URI names
 * another: shown with a client that does not check in turn. */
static void test_other_grid_alert (void **state)
{
    struct rig rig;
    struct outcome o;

    (void)state;
    rig_up (&rig);
    testca_issue (rig.ca, &(struct testca_cert){.name = "far", .uri = "nui://far/user/alice"});
    struct tlsid *far = testca_tlsid (rig.dir, "ca", "far", false);
    SSL_CTX_set_cert_verify_callback (tlsid_client_ctx (far), NULL, NULL);
    rpcclient_destroy (rig.client);
    rig.client = rig_client (&rig, far);
    rig_call (&rig, &o, "Echo", "x");
    assert_int_equal (o.status, RPC_UNAUTHENTICATED);
    assert_non_null (strstr (o.message, "the server refused us: our certificate does not carry "
                                        "exactly one nui:// identity of its grid"));
    assert_int_equal (rig.echo.calls, 0);
    rpcclient_destroy (rig.client);
    rig.client = NULL;
    tlsid_destroy (far);
    rig_down (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_principal),      cmocka_unit_test (test_files),
        cmocka_unit_test (test_reload),         cmocka_unit_test (test_revoked_while_connected),
        cmocka_unit_test (test_server_refuses), cmocka_unit_test (test_alert_not_lost),
        cmocka_unit_test (test_client_refuses), cmocka_unit_test (test_other_grid_alert),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
