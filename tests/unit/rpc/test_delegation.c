/* Leave to go on with one job: who may give it, for what, for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/clock.h"
#include "proto/job/delegation.h"
#include "tests/interop/testca.h"

enum { DAY = 86400 };
#define META "nui://test/meta/main"

struct fixture {
    char *dir;
    struct testca *ca;
    struct tlsid *site, *alice, *bob;
    struct principal who;
    struct delegation delegation;
    struct err err;
};

static struct tlsid *person (struct fixture *f, const char *name, const char *uri,
                             time_t not_before, time_t not_after)
{
    testca_issue (f->ca,
                  &(struct testca_cert){
                      .name = name, .uri = uri, .not_before = not_before, .not_after = not_after});
    return testca_tlsid (f->dir, "ca", name, false);
}

static int up (void **state)
{
    struct fixture *f = calloc (1, sizeof (*f));
    f->dir = testca_dir ();
    f->ca = testca_create (f->dir, "ca");
    testca_issue (f->ca, &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/alpha"});
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    f->alice = person (f, "alice", "nui://test/user/alice", 0, 0);
    f->bob = person (f, "bob", "nui://test/user/bob", 0, 0);
    *state = f;
    return 0;
}

static int down (void **state)
{
    struct fixture *f = *state;
    tlsid_destroy (f->site);
    tlsid_destroy (f->alice);
    tlsid_destroy (f->bob);
    testca_destroy (f->ca);
    testca_remove (f->dir);
    free (f);
    return 0;
}

/* A job of alice's, signed with that identity so long ago. */
static Nui__Common__V1__Envelope *job (struct fixture *f, struct tlsid *signer, duration_us ago)
{
    static uint8_t uuid[16];
    Nui__Common__V1__Job m = NUI__COMMON__V1__JOB__INIT;
    Nui__Common__V1__Envelope *e = NULL;
    uint8_t body[512];
    uuid[0]++;
    m.grid = (char *)"test";
    m.submitter = (char *)"nui://test/user/alice";
    m.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    m.created_us = clock_now_us () - ago;
    assert_int_equal (
        envelope_sign (signer, body, nui__common__v1__job__pack (&m, body), &e, &f->err), 0);
    return e;
}

static void delegate (struct fixture *f, struct tlsid *signer, Nui__Common__V1__Envelope *e,
                      duration_us length)
{
    free (e->delegation.data);
    e->delegation = (ProtobufCBinaryData){0, NULL};
    if (delegation_make (signer, e, META, clock_now_us (), length, &e->delegation, &f->err) != 0)
        fail_msg ("%s", f->err.text);
}

static int verify (struct fixture *f, const Nui__Common__V1__Envelope *e, int64_t in_s)
{
    return delegation_verify (f->site, e, clock_now_us () + in_s * US_PER_S, &f->who,
                              &f->delegation, &f->err);
}

static void is_bad (struct fixture *f, const Nui__Common__V1__Envelope *e, int64_t in_s,
                    const char *words)
{
    assert_int_equal (verify (f, e, in_s), 0); /* the job's own signature is good */
    assert_false (f->delegation.good);
    if (!strstr (f->delegation.why, words))
        fail_msg ("'%s' instead of '%s'", f->delegation.why, words);
    assert_int_equal (delegation_until (&f->delegation, "main"), 0);
}

static void good_until_it_ends (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = job (f, f->alice, 0);
    assert_int_equal (verify (f, e, 0), 0);
    assert_false (f->delegation.good);
    assert_string_equal (f->delegation.why, "");
    delegate (f, f->alice, e, 3600 * US_PER_S);
    assert_int_equal (verify (f, e, 0), 0);
    assert_true (f->delegation.good);
    assert_true (f->delegation.expires == delegation_says (e));
    assert_true (delegation_until (&f->delegation, "main") == f->delegation.expires);
    assert_true (delegation_until (&f->delegation, "") == f->delegation.expires);
    assert_int_equal (delegation_until (&f->delegation, "rogue"), 0);
    is_bad (f, e, 3601, "it expired at");
    envelope_free (e);
}

static void for_one_job_by_its_owner (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = job (f, f->alice, 0), *other = job (f, f->alice, 0);
    delegate (f, f->alice, e, 3600 * US_PER_S);
    other->delegation = e->delegation; /* moved to another job of hers */
    is_bad (f, other, 0, "for another job");
    other->delegation = (ProtobufCBinaryData){0, NULL};
    envelope_free (other);
    /* Bob cannot: neither honestly nor by signing alice's words. */
    ProtobufCBinaryData none = {0, NULL};
    assert_int_equal (delegation_make (f->bob, e, META, clock_now_us (), US_PER_S, &none, &f->err),
                      ERR_DENIED);
    Nui__Common__V1__Envelope *sealed =
        nui__common__v1__envelope__unpack (NULL, e->delegation.len, e->delegation.data);
    Nui__Common__V1__Envelope *forged = NULL;
    assert_int_equal (envelope_sign_for (f->bob, DELEGATION_DOMAIN, sealed->body.data,
                                         sealed->body.len, &forged, &f->err),
                      0);
    free (e->delegation.data);
    e->delegation.len = nui__common__v1__envelope__get_packed_size (forged);
    e->delegation.data = malloc (e->delegation.len);
    nui__common__v1__envelope__pack (forged, e->delegation.data);
    is_bad (f, e, 0, "nui://test/user/bob signed it");
    /* The job's own signature is no delegation, though alice made it. */
    envelope_free (forged);
    forged = sealed;
    assert_int_equal (
        envelope_sign (f->alice, sealed->body.data, sealed->body.len, &forged, &f->err), 0);
    free (e->delegation.data);
    e->delegation.len = nui__common__v1__envelope__get_packed_size (forged);
    e->delegation.data = malloc (e->delegation.len);
    nui__common__v1__envelope__pack (forged, e->delegation.data);
    is_bad (f, e, 0, "signature does not fit");
    envelope_free (sealed);
    envelope_free (forged);
    envelope_free (e);
}

static void no_longer_than_may_be (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = job (f, f->alice, 0);
    ProtobufCBinaryData none = {0, NULL};
    assert_int_equal (delegation_make (f->alice, e, META, clock_now_us (),
                                       DELEGATION_MAX_US + US_PER_S, &none, &f->err),
                      ERR_INVALID);
    assert_int_equal (delegation_make (f->alice, e, META, clock_now_us (), 0, &none, &f->err),
                      ERR_INVALID);
    /* For whoever is no metascheduler it is nothing. */
    assert_int_equal (delegation_make (f->alice, e, "nui://test/user/bob", clock_now_us (),
                                       US_PER_S, &e->delegation, &f->err),
                      0);
    is_bad (f, e, 0, "no metascheduler");
    envelope_free (e);
}

/* The certificate of the signature ended since; a newer one of the same person renews. */
static void after_the_certificate_has_ended (void **state)
{
    struct fixture *f = *state;
    struct tlsid *old = person (f, "old", "nui://test/user/alice", -10 * DAY, -1 * DAY);
    Nui__Common__V1__Envelope *e = job (f, old, 2 * DAY * US_PER_S);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    delegate (f, f->alice, e, 3600 * US_PER_S);
    assert_int_equal (verify (f, e, 0), 0);
    assert_string_equal (f->who.name, "alice");
    assert_true (f->delegation.good);
    assert_int_equal (verify (f, e, 3601), ERR_UNAUTHENTIC);
    envelope_free (e);
    /* A certificate that was no good then either stays no good. */
    e = job (f, old, 0);
    delegate (f, f->alice, e, 3600 * US_PER_S);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    envelope_free (e);
    tlsid_destroy (old);
}

static void revoked_with_its_owner (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = job (f, f->alice, 0);
    delegate (f, f->alice, e, 3600 * US_PER_S);
    testca_revoke (f->ca, "alice", -60);
    tlsid_destroy (f->site);
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    assert_false (f->delegation.good);
    envelope_free (e);
}

/* The sentence tells how far it was looked at. */
static void why_is (struct fixture *f, const char *words)
{
    assert_false (f->delegation.good);
    if (!strstr (f->delegation.why, words))
        fail_msg ("'%s' instead of '%s'", f->delegation.why, words);
}

/* What nobody of the grid has signed is not unpacked: neither the delegation nor, for its sake, a job. */
static void nothing_is_read_before_it_is_verified (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Envelope *e = job (f, f->alice, 0), *sealed = NULL;
    uint8_t noise[64], *bytes;
    memset (noise, 0xff, sizeof noise); /* no message */
    assert_int_equal (
        envelope_sign_for (f->alice, "another-domain", noise, sizeof noise, &sealed, &f->err), 0);
    e->delegation.len = nui__common__v1__envelope__get_packed_size (sealed);
    e->delegation.data = malloc (e->delegation.len);
    nui__common__v1__envelope__pack (sealed, e->delegation.data);
    envelope_free (sealed);
    assert_int_equal (verify (f, e, 0), 0);
    why_is (f, "signature");
    /* Larger than one is: not even its envelope. */
    bytes = e->delegation.data;
    e->delegation.len = DELEGATION_BYTES_MAX + 1;
    e->delegation.data = calloc (1, e->delegation.len);
    assert_int_equal (verify (f, e, 0), 0);
    why_is (f, "bytes, at most");
    assert_int_equal (delegation_says (e), 0);
    free (e->delegation.data);
    e->delegation = (ProtobufCBinaryData){0, NULL};
    free (bytes);
    /* A job whose signature is wrong is read only if a delegation of these very bytes is there. */
    delegate (f, f->alice, e, 3600 * US_PER_S);
    memset (e->body.data, 0xff, e->body.len);
    assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
    why_is (f, "for another job");
    envelope_free (e);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, up, down)
    const struct CMUnitTest tests[] = {
        T (good_until_it_ends),     T (for_one_job_by_its_owner),
        T (no_longer_than_may_be),  T (after_the_certificate_has_ended),
        T (revoked_with_its_owner), T (nothing_is_read_before_it_is_verified),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
