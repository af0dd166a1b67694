#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/interop/testca.h"

enum { DAY = 86400 };

struct fixture {
    char *dir;
    struct testca *ca;
    struct tlsid *site;
    struct principal who;
    struct err err;
};

static struct tlsid *person (struct fixture *f, const struct testca_cert *cert)
{
    testca_issue (f->ca, cert);
    return testca_tlsid (f->dir, "ca", cert->name, false);
}

static int up (void **state)
{
    struct fixture *f = calloc (1, sizeof (*f));

    f->dir = testca_dir ();
    f->ca = testca_create (f->dir, "ca");
    testca_issue (f->ca, &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/alpha"});
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    *state = f;
    return 0;
}

static int down (void **state)
{
    struct fixture *f = *state;

    tlsid_destroy (f->site);
    testca_destroy (f->ca);
    testca_remove (f->dir);
    free (f);
    return 0;
}

static Nui__Common__V1__Envelope *sign (struct fixture *f, const struct testca_cert *cert)
{
    Nui__Common__V1__Envelope *e = NULL;
    struct tlsid *id = person (f, cert);

    assert_int_equal (envelope_sign (id, "a job", 5, &e, &f->err), 0);
    tlsid_destroy (id);
    return e;
}

static int verify (struct fixture *f, const Nui__Common__V1__Envelope *e, int64_t at_s)
{
    return envelope_verify (f->site, e, clock_now_us () + at_s * US_PER_S, &f->who, &f->err);
}

static const struct testca_cert alice = {.name = "alice", .uri = "nui://test/user/alice"};

static void test_good (void **state)
{
    struct fixture *f = *state;

    for (int ed = 0; ed < 2; ed++) {
        struct testca_cert cert = alice;
        cert.ed25519 = ed;
        Nui__Common__V1__Envelope *e = sign (f, &cert);
        /* over the wire */
        size_t len = nui__common__v1__envelope__get_packed_size (e);
        uint8_t *bytes = malloc (len);
        nui__common__v1__envelope__pack (e, bytes);
        envelope_free (e);
        e = nui__common__v1__envelope__unpack (NULL, len, bytes);
        free (bytes);
        assert_int_equal (verify (f, e, 0), 0);
        assert_int_equal (f->who.kind, PRINCIPAL_USER);
        assert_string_equal (f->who.name, "alice");
        envelope_free (e);
    }
}

static void test_tampered (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = sign (f, &alice);

    e->body.data[0] ^= 1;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signature does not fit the content");
    e->body.data[0] ^= 1;
    e->body.len--;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    e->body.len++;
    e->signature.data[e->signature.len / 2] ^= 1;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    e->signature.data[e->signature.len / 2] ^= 1;
    e->signature.len--;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    e->signature.len++;
    e->chain[0].len--;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "certificate 1 of the signer's chain is malformed");
    e->chain[0].len++;
    assert_int_equal (verify (f, e, 0), 0);
    envelope_free (e);
    Nui__Common__V1__Envelope empty = NUI__COMMON__V1__ENVELOPE__INIT;
    assert_int_equal (verify (f, &empty, 0), ERR_UNAUTHENTIC);
    assert_int_equal (verify (f, NULL, 0), ERR_UNAUTHENTIC);
}

/* Bob's certificate with alice's signature. */
static void test_wrong_chain (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = sign (f, &alice);
    Nui__Common__V1__Envelope *b =
        sign (f, &(struct testca_cert){.name = "bob", .uri = "nui://test/user/bob"});
    ProtobufCBinaryData chain = e->chain[0];

    e->chain[0] = b->chain[0];
    b->chain[0] = chain;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signature does not fit the content");
    envelope_free (e);
    envelope_free (b);
    /* an authority that is not ours */
    struct testca *ours = f->ca;
    f->ca = testca_create (f->dir, "ca2");
    testca_issue (f->ca, &alice);
    struct tlsid *other = testca_tlsid (f->dir, "ca2", "alice", false);
    assert_int_equal (envelope_sign (other, "a job", 5, &e, &f->err), 0);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text,
                         "the signer's certificate was not issued by an authority of this grid");
    envelope_free (e);
    tlsid_destroy (other);
    testca_destroy (f->ca);
    f->ca = ours;
    /* another grid under the same authority */
    e = sign (f, &(struct testca_cert){.name = "far", .uri = "nui://far/user/alice"});
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signer belongs to grid far, this is test");
    envelope_free (e);
}

static void test_moments (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = sign (f, &(struct testca_cert){.name = "old",
                                                                  .uri = "nui://test/user/old",
                                                                  .not_before = -9 * DAY,
                                                                  .not_after = -5 * DAY});

    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signer's certificate has expired");
    /* but it held when it was signed, though the list in hand is newer than that */
    assert_int_equal (verify (f, e, -6 * DAY), 0);
    assert_int_equal (verify (f, e, -10 * DAY), ERR_UNAUTHENTIC);
    envelope_free (e);
}

static void test_revoked (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = sign (f, &alice);

    testca_revoke (f->ca, "alice", -3600);
    assert_int_equal (verify (f, e, 0), 0); /* the list is not read yet */
    assert_int_equal (tlsid_reload (f->site, &f->err), 0);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signer's certificate was revoked");
    assert_int_equal (verify (f, e, -7200), 0); /* signed before the revocation */
    testca_write_crl (f->ca, -9 * DAY, -DAY);
    assert_int_equal (tlsid_reload (f->site, &f->err), 0);
    assert_int_equal (verify (f, e, 0),
                      ERR_UNAVAILABLE); /* a stale list fails closed, and not for ever */
    envelope_free (e);
}

/* A chain that was found good before is looked at again when the certificate has ended, when the
 * list has, when the moment is before the one it was checked for, and when it is revoked later. */
static void test_remembered (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = sign (f, &(struct testca_cert){.name = "brief",
                                                                  .uri = "nui://test/user/brief",
                                                                  .not_before = -2 * DAY,
                                                                  .not_after = DAY / 2});

    assert_int_equal (verify (f, e, 0), 0);
    assert_int_equal (verify (f, e, 60), 0);
    assert_string_equal (f->who.name, "brief");
    assert_int_equal (verify (f, e, DAY / 2 + 60), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signer's certificate has expired");
    assert_int_equal (verify (f, e, -3 * DAY), ERR_UNAUTHENTIC);
    e->signature.data[e->signature.len / 2] ^= 1;
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signature does not fit the content");
    e->signature.data[e->signature.len / 2] ^= 1;
    testca_write_crl (f->ca, -60, 600);
    assert_int_equal (tlsid_reload (f->site, &f->err), 0);
    assert_int_equal (verify (f, e, 0), 0);
    assert_int_equal (verify (f, e, 1200), ERR_UNAVAILABLE); /* the list has ended by then */
    testca_revoke (f->ca, "brief", -3600);
    assert_int_equal (tlsid_reload (f->site, &f->err), 0);
    assert_int_equal (verify (f, e, -7200), 0);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_string_equal (f->err.text, "the signer's certificate was revoked");
    envelope_free (e);
}

static void test_limits (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = NULL;
    struct tlsid *id = person (f, &alice);
    char *big = calloc (1, ENVELOPE_BODY_MAX + 1);

    assert_int_equal (envelope_sign (id, big, ENVELOPE_BODY_MAX + 1, &e, &f->err), ERR_LIMIT);
    assert_null (e);
    assert_int_equal (envelope_sign (id, big, ENVELOPE_BODY_MAX, &e, &f->err), 0);
    assert_int_equal (verify (f, e, 0), 0);
    envelope_free (e);
    assert_int_equal (envelope_sign (id, "", 0, &e, &f->err), 0);
    assert_int_equal (verify (f, e, 0), 0);
    envelope_free (e);
    envelope_free (NULL);
    free (big);
    tlsid_destroy (id);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_good, up, down),
        cmocka_unit_test_setup_teardown (test_tampered, up, down),
        cmocka_unit_test_setup_teardown (test_wrong_chain, up, down),
        cmocka_unit_test_setup_teardown (test_moments, up, down),
        cmocka_unit_test_setup_teardown (test_revoked, up, down),
        cmocka_unit_test_setup_teardown (test_remembered, up, down),
        cmocka_unit_test_setup_teardown (test_limits, up, down),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
