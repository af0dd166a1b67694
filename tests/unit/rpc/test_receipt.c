/* A metascheduler's receipt: what it makes good of a signature whose certificate has ended, and what it does not. */
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
#include "proto/rpc/gatedeleg.h"
#include "proto/rpc/receipt.h"
#include "tests/interop/testca.h"

enum { HOUR = 3600, DAY = 86400 };
#define S US_PER_S
#define ALICE "nui://test/user/alice"

typedef Nui__Common__V1__Envelope Envelope;

struct fixture {
    char *dir;
    struct testca *ca;
    struct tlsid *site, *meta, *today; /* alice's of now */
    struct tlsid *night;               /* hers of 14 to 2 hours ago */
    time_us now;
    struct principal who;
    struct err err;
};

static struct tlsid *member (struct fixture *f, const char *name, const char *uri,
                             time_t not_before, time_t not_after)
{
    testca_issue (f->ca,
                  &(struct testca_cert){
                      .name = name, .uri = uri, .not_before = not_before, .not_after = not_after});
    return testca_tlsid (f->dir, "ca", name, false);
}

static int up (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    f->dir = testca_dir ();
    f->ca = testca_create (f->dir, "ca");
    f->now = clock_now_us ();
    testca_issue (f->ca, &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/alpha"});
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    f->meta = member (f, "meta", "nui://test/meta/main", 0, 0);
    f->today = member (f, "today", ALICE, 0, 0);
    f->night = member (f, "night", ALICE, -14 * HOUR, -2 * HOUR);
    *state = f;
    return 0;
}

static int down (void **state)
{
    struct fixture *f = *state;
    tlsid_destroy (f->site);
    tlsid_destroy (f->meta);
    tlsid_destroy (f->today);
    tlsid_destroy (f->night);
    testca_destroy (f->ca);
    testca_remove (f->dir);
    free (f);
    return 0;
}

static Envelope *sign (struct fixture *f, struct tlsid *signer, const char *words)
{
    Envelope *e = NULL;
    assert_int_equal (envelope_sign (signer, words, strlen (words), &e, &f->err), 0);
    return e;
}

/* Received by that identity at a moment: seconds from now. */
static void receive (struct fixture *f, Envelope *e, struct tlsid *by, int64_t when_s)
{
    free (e->receipt.data);
    assert_int_equal (receipt_make (by, e, f->now + when_s * S, &e->receipt, &f->err), 0);
}

static int verify (struct fixture *f, const Envelope *e, int64_t at_s)
{
    memset (&f->who, 0, sizeof f->who);
    err_clear (&f->err);
    return envelope_verify (f->site, e, f->now + at_s * S, &f->who, &f->err);
}

static void good (struct fixture *f, const Envelope *e, int64_t at_s)
{
    if (verify (f, e, at_s) != 0)
        fail_msg ("%s", f->err.text);
    assert_int_equal (f->who.kind, PRINCIPAL_USER);
    assert_string_equal (f->who.name, "alice");
}

static void refused (struct fixture *f, const Envelope *e, int64_t at_s, const char *words)
{
    assert_int_equal (verify (f, e, at_s), ERR_UNAUTHENTIC);
    if (!strstr (f->err.text, words))
        fail_msg ("'%s' instead of '%s'", f->err.text, words);
}

/* By that identity, at a moment at which the signer's certificate was good. */
static void refused_by (struct fixture *f, struct tlsid *by, const char *words)
{
    Envelope *e = sign (f, f->night, "a job");
    receive (f, e, by, -3 * HOUR);
    refused (f, e, 0, words);
    envelope_free (e);
    tlsid_destroy (by);
}

static void outlives_the_certificate (void **state)
{
    struct fixture *f = *state;
    Envelope *e = sign (f, f->night, "a job");
    good (f, e, -3 * HOUR);
    refused (f, e, 0, "the signer's certificate has expired");
    receive (f, e, f->meta, -3 * HOUR);
    good (f, e, 0);
    good (f, e, -3 * HOUR);
    /* What is added on the way is no part of it. */
    e->element = 7;
    e->delegation = (ProtobufCBinaryData){1, malloc (1)};
    e->delegation.data[0] = 0;
    size_t len = nui__common__v1__envelope__get_packed_size (e);
    uint8_t *bytes = malloc (len);
    nui__common__v1__envelope__pack (e, bytes);
    envelope_free (e);
    e = nui__common__v1__envelope__unpack (NULL, len, bytes);
    free (bytes);
    good (f, e, 0);
    envelope_free (e);
}

/* No receipt makes anything of a certificate in force better or worse. */
static void nothing_changes_while_it_is_good (void **state)
{
    struct fixture *f = *state;
    Envelope *e = sign (f, f->today, "a job");
    good (f, e, 0);
    receive (f, e, f->today, 0); /* worth nothing */
    good (f, e, 0);
    e->receipt.len = 1;
    good (f, e, 0);
    receive (f, e, f->meta, 0);
    good (f, e, 0);
    e->body.data[0] ^= 1;
    refused (f, e, 0, "the signature does not fit the content");
    envelope_free (e);
    /* Before it begins no more than after. */
    struct tlsid *next = member (f, "next", ALICE, HOUR, DAY);
    e = sign (f, next, "a job");
    receive (f, e, f->meta, 2 * HOUR);
    refused (f, e, 0, "is not valid yet");
    receive (f, e, f->meta, 0);
    refused (f, e, 2 * DAY, "the signer's certificate has expired");
    envelope_free (e);
    tlsid_destroy (next);
}

static void only_by_a_metascheduler_in_force (void **state)
{
    struct fixture *f = *state;
    refused_by (f, member (f, "bob", "nui://test/user/bob", 0, 0), "nui://test/user/bob signed it");
    refused_by (f, member (f, "beta", "nui://test/site/beta", 0, 0), "not a metascheduler");
    refused_by (f, member (f, "door", "nui://test/gate/door", 0, 0), "not a metascheduler");
    refused_by (f, member (f, "other", "nui://other/meta/main", 0, 0), "belongs to grid other");
    refused_by (f, member (f, "old", "nui://test/meta/old", -DAY, -HOUR),
                "its receipt is not good: the signer's certificate has expired");
    /* An authority that is not ours. */
    struct testca *ours = f->ca;
    f->ca = testca_create (f->dir, "ca2");
    testca_issue (f->ca, &(struct testca_cert){.name = "false", .uri = "nui://test/meta/main"});
    refused_by (f, testca_tlsid (f->dir, "ca2", "false", false), "was not issued by an authority");
    testca_destroy (f->ca);
    f->ca = ours;
    /* One that was revoked. */
    struct tlsid *gone = member (f, "gone", "nui://test/meta/gone", 0, 0);
    testca_revoke (f->ca, "gone", -60);
    tlsid_destroy (f->site);
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    refused_by (f, gone, "was revoked");
}

/* A receipt of a receipt would let a metascheduler's key that has ended vouch, too. */
static void no_receipt_of_a_receipt (void **state)
{
    struct fixture *f = *state;
    struct tlsid *old = member (f, "old", "nui://test/meta/old", -DAY, -HOUR);
    Envelope *e = sign (f, f->night, "a job");
    receive (f, e, old, -3 * HOUR);
    Envelope *sealed = nui__common__v1__envelope__unpack (NULL, e->receipt.len, e->receipt.data);
    receive (f, sealed, f->meta, -3 * HOUR);
    free (e->receipt.data);
    e->receipt.len = nui__common__v1__envelope__get_packed_size (sealed);
    e->receipt.data = malloc (e->receipt.len);
    nui__common__v1__envelope__pack (sealed, e->receipt.data);
    refused (f, e, 0, "its receipt is not good: the signer's certificate has expired");
    envelope_free (sealed);
    envelope_free (e);
    tlsid_destroy (old);
}

static void of_a_moment_at_which_it_was_good (void **state)
{
    struct fixture *f = *state;
    Envelope *e = sign (f, f->night, "a job");
    receive (f, e, f->meta, -15 * HOUR); /* before the certificate began */
    refused (f, e, 0, "the signer's certificate has expired");
    receive (f, e, f->meta, -HOUR); /* after it had ended: signed with an old key */
    refused (f, e, 0, "the signer's certificate has expired");
    receive (f, e, f->meta, HOUR);
    refused (f, e, 0, "of another time");
    receive (f, e, f->meta, -13 * HOUR);
    good (f, e, 0);
    envelope_free (e);
    /* For so long and no longer. */
    struct tlsid *summer = member (f, "summer", ALICE, -100 * DAY, -80 * DAY);
    e = sign (f, summer, "a job");
    receive (f, e, f->meta, -90 * DAY);
    good (f, e, 0);
    refused (f, e, 1, "of another time than the last 90 days");
    envelope_free (e);
    tlsid_destroy (summer);
}

static void of_these_very_bytes (void **state)
{
    struct fixture *f = *state;
    Envelope *e = sign (f, f->night, "a job"), *other = sign (f, f->night, "another job");
    receive (f, e, f->meta, -3 * HOUR);
    receive (f, other, f->meta, -3 * HOUR);
    ProtobufCBinaryData mine = e->receipt;
    e->receipt = other->receipt;
    refused (f, e, 0, "it is for something else");
    e->receipt = mine;
    envelope_free (other);
    e->body.data[0] ^= 1;
    refused (f, e, 0, "it is for something else");
    e->body.data[0] ^= 1;
    /* Any of its bytes: its moment is among them. None may crash what reads it, either. */
    for (size_t i = 0; i < e->receipt.len; i++) {
        e->receipt.data[i] ^= 0x10;
        assert_int_equal (verify (f, e, 0), ERR_UNAUTHENTIC);
        e->receipt.data[i] ^= 0x10;
    }
    good (f, e, 0);
    /* The same words, signed as something else. */
    Envelope *sealed = nui__common__v1__envelope__unpack (NULL, e->receipt.len, e->receipt.data);
    Envelope *as_job = NULL;
    assert_int_equal (
        envelope_sign (f->meta, sealed->body.data, sealed->body.len, &as_job, &f->err), 0);
    free (e->receipt.data);
    e->receipt.len = nui__common__v1__envelope__get_packed_size (as_job);
    e->receipt.data = malloc (e->receipt.len);
    nui__common__v1__envelope__pack (as_job, e->receipt.data);
    refused (f, e, 0, "its receipt is not good: the signature does not fit");
    envelope_free (sealed);
    envelope_free (as_job);
    free (e->receipt.data);
    e->receipt.len = RECEIPT_BYTES_MAX + 1;
    e->receipt.data = calloc (1, e->receipt.len);
    refused (f, e, 0, "it is over");
    envelope_free (e);
}

/* A certificate that has ended may still be revoked, and a list that is out of date says nothing of it. */
static void revoked_refuses (void **state)
{
    struct fixture *f = *state;
    Envelope *e = sign (f, f->night, "a job");
    receive (f, e, f->meta, -3 * HOUR);
    good (f, e, 0);
    testca_write_crl (f->ca, -DAY, -HOUR);
    tlsid_destroy (f->site);
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    assert_int_equal (verify (f, e, 0), ERR_UNAVAILABLE);
    testca_revoke (f->ca, "night", -60); /* after it had ended */
    tlsid_destroy (f->site);
    f->site = testca_tlsid (f->dir, "ca", "alpha", true);
    refused (f, e, 0, "was revoked");
    envelope_free (e);
}

static void append (const char *dir, const char *to, const char *from)
{
    char path[512], line[256];
    snprintf (path, sizeof path, "%s/%s", dir, to);
    FILE *out = fopen (path, "a");
    snprintf (path, sizeof path, "%s/%s", dir, from);
    FILE *in = fopen (path, "r");
    assert_non_null (out);
    assert_non_null (in);
    while (fgets (line, sizeof line, in))
        fputs (line, out);
    fclose (in);
    assert_int_equal (fclose (out), 0);
}

/* An authority that has ended takes all that it issued with it. */
static void issuers_are_not_excused (void **state)
{
    struct fixture *f = *state;
    struct testca *ended = testca_create_until (f->dir, "ended", -HOUR);
    testca_issue (ended, &(struct testca_cert){.name = "theirs",
                                               .uri = ALICE,
                                               .not_before = -14 * HOUR,
                                               .not_after = -2 * HOUR});
    append (f->dir, "both.pem", "ca.pem");
    append (f->dir, "both.pem", "ended.pem");
    append (f->dir, "both.crl", "ca.crl");
    append (f->dir, "both.crl", "ended.crl");
    tlsid_destroy (f->site);
    f->site = testca_tlsid (f->dir, "both", "alpha", true);
    struct tlsid *theirs = testca_tlsid (f->dir, "ended", "theirs", false);
    Envelope *e = sign (f, f->night, "a job");
    receive (f, e, f->meta, -3 * HOUR);
    good (f, e, 0);
    envelope_free (e);
    e = sign (f, theirs, "a job");
    receive (f, e, f->meta, -3 * HOUR);
    good (f, e, -3 * HOUR);
    refused (f, e, 0, "the signer's certificate has expired");
    envelope_free (e);
    tlsid_destroy (theirs);
    testca_destroy (ended);
}

/* What a gate signed stands on its user's delegation, which came with it. */
static void of_a_job_that_a_gate_signed (void **state)
{
    struct fixture *f = *state;
    struct tlsid *gate = member (f, "door", "nui://test/gate/door", 0, 0);
    uint8_t secret[32] = {0}, uuid[16], body[512];
    char *account[] = {(char *)"phys"};
    GateDelegation d = NUI__COMMON__V1__GATE_DELEGATION__INIT;
    ProtobufCBinaryData bytes;
    d.gate = (char *)"nui://test/gate/door";
    d.change = true;
    d.jobs_max = 10;
    d.cost_max_micro = 5000000;
    d.accounts = account;
    d.n_accounts = 1;
    d.secret_hash = (ProtobufCBinaryData){sizeof secret, secret};
    assert_int_equal (
        gatedeleg_make (f->night, &d, f->now - 4 * HOUR * S, 2 * DAY * S, &bytes, &f->err), 0);
    GateDelegation *is = gatedeleg_open (f->site, &bytes, tlsid_self (gate), f->now - 3 * HOUR * S,
                                         &f->who, &f->err);
    assert_non_null (is);
    memset (uuid, 0, sizeof uuid);
    memcpy (uuid, is->series.data, GATEDELEG_SERIES);
    Nui__Common__V1__Job m = NUI__COMMON__V1__JOB__INIT;
    m.grid = (char *)"test";
    m.submitter = (char *)ALICE;
    m.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    m.created_us = is->created_us;
    m.expires_us = is->expires_us;
    m.account = account[0];
    m.cost_max_micro = 1;
    Envelope *e = NULL;
    assert_int_equal (
        envelope_sign (gate, body, nui__common__v1__job__pack (&m, body), &e, &f->err), 0);
    e->gate_delegation = bytes;
    good (f, e, -3 * HOUR);
    refused (f, e, 0, "the user's delegation to the gate is not good");
    receive (f, e, f->meta, -3 * HOUR);
    good (f, e, 0);
    refused (f, e, 2 * DAY, "it expired at"); /* the delegation */
    /* At the gate's door, where nobody has received anything, a new one is needed. */
    assert_null (gatedeleg_open (f->site, &bytes, tlsid_self (gate), f->now, &f->who, &f->err));
    /* The same delegation, but signed after her certificate had ended, is no part of what was received. */
    Envelope *sealed = nui__common__v1__envelope__unpack (NULL, bytes.len, bytes.data),
             *again = NULL;
    assert_int_equal (envelope_sign_for (f->night, GATEDELEG_DOMAIN, sealed->body.data,
                                         sealed->body.len, &again, &f->err),
                      0);
    e->gate_delegation.len = nui__common__v1__envelope__get_packed_size (again);
    e->gate_delegation.data = malloc (e->gate_delegation.len);
    nui__common__v1__envelope__pack (again, e->gate_delegation.data);
    good (f, e, -3 * HOUR); /* as her key can */
    refused (f, e, 0, "the user's delegation to the gate is not good");
    envelope_free (sealed);
    envelope_free (again);
    free (bytes.data);
    envelope_free (e);
    nui__common__v1__gate_delegation__free_unpacked (is, NULL);
    tlsid_destroy (gate);
}

/* Leave to go on, signed with a certificate that ended an hour after. */
static void of_a_delegation (void **state)
{
    struct fixture *f = *state;
    Nui__Common__V1__Job m = NUI__COMMON__V1__JOB__INIT;
    uint8_t uuid[16] = {1}, body[512];
    struct delegation says;
    Envelope *e = NULL;
    m.grid = (char *)"test";
    m.submitter = (char *)ALICE;
    m.uuid = (ProtobufCBinaryData){sizeof uuid, uuid};
    m.created_us = f->now - 4 * HOUR * S;
    assert_int_equal (
        envelope_sign (f->night, body, nui__common__v1__job__pack (&m, body), &e, &f->err), 0);
    assert_int_equal (delegation_make (f->night, e, "nui://test/meta/main", f->now - 3 * HOUR * S,
                                       5 * DAY * S, &e->delegation, &f->err),
                      0);
    assert_int_equal (delegation_verify (f->site, e, f->now, &f->who, &says, &f->err),
                      ERR_UNAUTHENTIC);
    assert_false (says.good);
    err_clear (&f->err);
    assert_int_equal (delegation_receive (f->meta, &e->delegation, f->now - 3 * HOUR * S, &f->err),
                      0);
    assert_int_equal (delegation_verify (f->site, e, f->now, &f->who, &says, &f->err), 0);
    assert_true (says.good);
    assert_string_equal (f->who.name, "alice");
    assert_true (delegation_says (e) == f->now + (5 * DAY - 3 * HOUR) * S);
    /* Whoever takes it again says when that was: it may be too late. */
    assert_int_equal (delegation_receive (f->meta, &e->delegation, f->now, &f->err), 0);
    assert_int_equal (delegation_verify (f->site, e, f->now, &f->who, &says, &f->err),
                      ERR_UNAUTHENTIC);
    /* What is none stays as it is. */
    e->delegation.len = 3;
    memset (e->delegation.data, 0xff, 3);
    assert_int_equal (delegation_receive (f->meta, &e->delegation, f->now, &f->err), 0);
    assert_int_equal (e->delegation.len, 3);
    envelope_free (e);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, up, down)
    const struct CMUnitTest tests[] = {
        T (outlives_the_certificate),
        T (nothing_changes_while_it_is_good),
        T (only_by_a_metascheduler_in_force),
        T (no_receipt_of_a_receipt),
        T (of_a_moment_at_which_it_was_good),
        T (of_these_very_bytes),
        T (revoked_refuses),
        T (issuers_are_not_excused),
        T (of_a_job_that_a_gate_signed),
        T (of_a_delegation),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
