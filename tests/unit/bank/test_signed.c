/* What one signature pays for: one run at one place, what its retries add, and no more, whoever holds the
 * signed job; how long the bank remembers it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankworld.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define DAY_US (86400 * US_PER_S)

static int fresh (void **state)
{
    return world_fresh (state, "signed", "REPLAYWINDOW 10:00:00:00\n");
}

static Nui__Bank__V1__HoldRequest hold_of (struct world *w, Nui__Common__V1__Envelope *envelope,
                                           const char *part, const char *job, uint8_t key[16])
{
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = TEXT (job);
    m.component = TEXT (part);
    m.procs = 2;
    m.walltime_us = 100 * US_PER_S;
    return m;
}

/* The hold's id, or "" where it is refused for words. */
static void hold (struct world *w, Nui__Common__V1__Envelope *envelope, const char *part,
                  const char *job, uint32_t incarnation, const char *words, char id[32])
{
    uint8_t key[16];
    Nui__Bank__V1__HoldRequest m = hold_of (w, envelope, part, job, key);
    m.incarnation = incarnation;
    struct bankd_reply reply =
        bankd_call (&w->d, *job == 'a' ? WHO_ALPHA : WHO_BETA, "Hold", &m.base);
    assert_string_equal (reply.err.text, "");
    const Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    char got[512] = "";
    if (!h->granted)
        snprintf (got, sizeof (got), "%s: %s", h->reason->code, h->reason->text);
    if (h->granted ? *words != '\0' : !*words || !strstr (got, words))
        fail_msg ("%s: got '%s', wanted '%s'", job, got, words);
    snprintf (id, 32, "%s", h->hold_id);
    bankd_reply_free (&reply);
}

static void refused (struct world *w, Nui__Common__V1__Envelope *envelope, const char *part,
                     const char *job, const char *words)
{
    char id[32];
    hold (w, envelope, part, job, 0, words, id);
}

static void release (struct world *w, const char *job, char *id)
{
    Nui__Bank__V1__ReleaseRequest m = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.hold_id = id;
    m.reason = TEXT ("it goes elsewhere");
    struct bankd_reply reply =
        bankd_call (&w->d, *job == 'a' ? WHO_ALPHA : WHO_BETA, "Release", &m.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
}

static void charge (struct world *w, const char *part, const char *job, uint32_t incarnation,
                    char *id, int64_t seconds, bool final, bool successful)
{
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.hold_id = id;
    m.site_job_id = TEXT (job);
    m.component = TEXT (part);
    m.incarnation = incarnation;
    m.procs = 2;
    m.start_us = clock_now_us ();
    m.end_us = m.start_us + seconds * US_PER_S;
    m.final = final;
    m.successful = successful;
    struct bankd_reply reply =
        bankd_call (&w->d, *job == 'a' ? WHO_ALPHA : WHO_BETA, "Charge", &m.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
}

static void again (struct world *w)
{
    bankd_stop (&w->d, SIGKILL);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
}

static Nui__Common__V1__Envelope *sign (struct world *w, bool two, uint32_t retries)
{
    struct bankd_job job = {.account = "rich", .two = two, .retries = retries};
    return bankd_sign (&w->d, WHO_ALICE, &job);
}

/* An ordinary job: at one place at a time, however often it is handed round, also by a bank that was killed. */
static void one_place (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, false, 0);
    char a[32], b[32];
    hold (w, job, "main", "alpha.1", 0, "", a);
    refused (
        w, job, "main", "beta.1",
        "HeldElsewhere: credits are held for part main of this signed job already, for alpha.1 at "
        "alpha (hold.1): it may be at 1 place at a time");
    refused (w, job, "", "beta.1", "HeldElsewhere"); /* no name is the same part */
    refused (w, job, "main", "alpha.2", "HeldElsewhere");
    again (w);
    refused (w, job, "main", "beta.1", "HeldElsewhere");
    /* What it really used so far changes nothing, the site's own restart is the same run. */
    charge (w, "main", "alpha.1", 0, a, 10, false, false);
    refused (w, job, "main", "beta.1", "HeldElsewhere");
    charge (w, "main", "alpha.1", 0, a, 20, true, false);
    hold (w, job, "main", "alpha.1", 1, "", a);
    refused (w, job, "main", "beta.1", "HeldElsewhere");
    release (w, "alpha.1", a);
    hold (w, job, "main", "beta.1", 0, "", b);
    charge (w, "main", "beta.1", 0, b, 50, true, true);
    refused (
        w, job, "main", "alpha.2",
        "RunsUsedUp: part main of this signed job has ended well as often as its user signed for (1)");
    again (w);
    refused (w, job, "main", "alpha.2", "RunsUsedUp");
    /* Another of the same user's is another matter. */
    Nui__Common__V1__Envelope *other = sign (w, false, 0);
    hold (w, other, "main", "alpha.3", 0, "", a);
    envelope_free (job);
    envelope_free (other);
}

/* A dead site's hold goes on for as long as the job could have. */
static void a_stale_hold_does_not_count (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, false, 0);
    char a[32];
    hold (w, job, "main", "alpha.1", 0, "", a);
    refused (w, job, "main", "beta.1", "HeldElsewhere");
    PQclear (PQexec (w->sql, "UPDATE bank.hold SET expires_at = 1"));
    hold (w, job, "main", "beta.1", 0, "", a);
    envelope_free (job);
}

/* Retries: two places at most, and so many runs; what failed counts by what it used. */
static void retries (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, false, 1);
    char a[32], b[32];
    hold (w, job, "main", "alpha.1", 0, "", a);
    hold (w, job, "main", "beta.1", 0, "", b);
    refused (w, job, "main", "alpha.2",
             "alpha.1 at alpha (hold.1), beta.1 at beta (hold.2): it may be at "
             "2 places at a time");
    charge (w, "main", "alpha.1", 0, a, 100, true, true);
    hold (w, job, "main", "alpha.2", 0, "", a);
    charge (w, "main", "alpha.2", 0, a, 100, true, true);
    refused (w, job, "main", "alpha.3", "ended well as often as its user signed for (2)");
    envelope_free (job);
    job = sign (w, false, 1); /* 2 processors for 100 s, twice, and once more for what was lost */
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf (name, sizeof (name), "beta.1%d", i);
        hold (w, job, "main", name, 0, "", b);
        charge (w, "main", name, 0, b, 100, true, false);
    }
    refused (
        w, job, "main", "beta.13",
        "has used 00:10:00 of processor time; its user signed for 2 processors for 00:01:40, and 2 such "
        "runs");
    envelope_free (job);
}

static int hold_group (struct world *w, Nui__Common__V1__Envelope *job, const char *part[3],
                       const char *words)
{
    Nui__Bank__V1__HoldGroupRequest m = NUI__BANK__V1__HOLD_GROUP_REQUEST__INIT;
    Nui__Bank__V1__HoldRequest h[3], *holds[3] = {&h[0], &h[1], &h[2]};
    uint8_t key[16], unused[16];
    char name[3][32];
    m.key = bankd_key (&w->d, key);
    m.envelope = job;
    m.n_holds = 3;
    m.holds = holds;
    for (int i = 0; i < 3; i++) {
        snprintf (name[i], sizeof (name[i]), "alpha.%d", ++w->jobs);
        h[i] = hold_of (w, NULL, part[i], name[i], unused);
        h[i].key = (ProtobufCBinaryData){0};
        h[i].site = TEXT ("alpha");
    }
    struct bankd_reply reply = bankd_call (&w->d, WHO_META, "HoldGroup", &m.base);
    assert_string_equal (reply.err.text, "");
    const Nui__Bank__V1__HoldGroupReply *r = (void *)reply.message;
    int granted = r->granted;
    if (!granted && !strstr (r->reason->text, words))
        fail_msg ("'%s' does not say '%s'", r->reason->text, words);
    bankd_reply_free (&reply);
    return granted;
}

/* Parts are counted each for itself; a group of holds cannot ask for one three times either. */
static void parts (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, true, 0);
    char a[32];
    assert_false (hold_group (
        w, job, (const char *[3]){"main", "main", "main"},
        "part main of this signed job already, for alpha.1 at alpha, alpha.2 at alpha"));
    assert_true (hold_group (w, job, (const char *[3]){"main", "other", "main"}, ""));
    refused (w, job, "main", "beta.1", "HeldElsewhere");
    hold (w, job, "other", "beta.2", 0, "",
          a); /* it moves: the new place before the old one is given up */
    refused (w, job, "other", "beta.3", "HeldElsewhere: credits are held for part other");
    envelope_free (job);
}

/* A licence is promised for a moment: an earlier one is held for before the first is given up, at its site too. */
static void earlier (void **state)
{
    struct world *w = *state;
    struct bankd_job licensed = {.account = "rich", .licence = "cad"};
    Nui__Common__V1__Envelope *job = bankd_sign (&w->d, WHO_ALICE, &licensed);
    char a[32], b[32];
    hold (w, job, "main", "beta.1", 0, "", a);
    hold (w, job, "main", "beta.2", 0, "", b);
    refused (w, job, "main", "alpha.3", "HeldElsewhere");
    release (w, "beta.1", a);
    charge (w, "main", "beta.2", 0, b, 50, true, true);
    refused (w, job, "main", "alpha.3", "RunsUsedUp");
    envelope_free (job);
}

struct flight {
    int left, granted;
};

static void on_hold (void *arg, const struct rpc_result *result)
{
    struct flight *f = arg;
    assert_int_equal (result->status, RPC_OK);
    f->left--;
    f->granted += ((const Nui__Bank__V1__HoldReply *)result->reply)->granted;
}

/* Asked for at once, which is decided together and taken to be new. */
static void at_once (void **state)
{
    enum { JOBS = 8, EACH = 3 };
    struct world *w = *state;
    Nui__Common__V1__Envelope *job[JOBS];
    struct flight flight = {JOBS * EACH, 0};
    struct arena *arena = arena_create (0);
    uint8_t key[JOBS * EACH][16];
    char name[JOBS * EACH][32];
    for (int i = 0; i < JOBS; i++)
        job[i] = sign (w, false, 0);
    for (int i = 0; i < JOBS * EACH; i++) {
        bool alpha = i % 2 == 0;
        snprintf (name[i], sizeof (name[i]), "%s.%d", alpha ? "alpha" : "beta", i);
        Nui__Common__V1__Envelope given = *job[i % JOBS];
        given.handover =
            bankd_handover (&w->d, &given, "main", alpha ? "alpha" : "beta", INT64_MAX, arena);
        Nui__Bank__V1__HoldRequest m = hold_of (w, &given, "main", name[i], key[i]);
        struct rpccallout_config c = {.service = &nui__bank__v1__bank__descriptor,
                                      .method = "Hold",
                                      .request = &m.base,
                                      .timeout = 60 * US_PER_S,
                                      .done = on_hold,
                                      .arg = &flight};
        rpcclient_start (w->d.client[alpha ? WHO_ALPHA : WHO_BETA], &c);
    }
    while (flight.left > 0)
        event_base_loop (w->d.base, EVLOOP_ONCE);
    assert_int_equal (flight.granted, JOBS);
    assert_int_equal (
        JOBS, pg_fixture_number (w->sql, "SELECT count (*) FROM (SELECT uuid FROM bank.signed "
                                         "GROUP BY uuid HAVING count (*) = 1) x"));
    for (int i = 0; i < JOBS; i++)
        envelope_free (job[i]);
    arena_destroy (arena);
}

/* None is taken for the first time so long after it was signed; then it is forgotten, and not before. */
static void forgotten (void **state)
{
    struct world *w = *state;
    struct bankd_job late = {.account = "rich", .age_us = 11 * DAY_US, .expires_us = INT64_MAX},
                     young = {.account = "rich", .age_us = 9 * DAY_US};
    Nui__Common__V1__Envelope *old = bankd_sign (&w->d, WHO_ALICE, &late),
                              *job = bankd_sign (&w->d, WHO_ALICE, &young),
                              *done = sign (w, false, 0);
    char a[32], b[32];
    refused (w, old, "main", "alpha.1", "JobExpired: the signed job expired 1:00:00:0");
    hold (w, job, "main", "alpha.2", 0, "", a);
    hold (w, done, "main", "alpha.3", 0, "", b);
    release (w, "alpha.3", b);
    assert_int_equal (2, pg_fixture_number (w->sql, "SELECT count (*) FROM bank.signed"));
    /* Both expired, one window ago; the one that holds is still there. */
    PQclear (PQexec (w->sql,
                     "SET session_replication_role = replica; UPDATE bank.signed SET expires_at = "
                     "expires_at - 21 * 86400000000; SET session_replication_role = origin"));
    duration_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (pg_fixture_number (w->sql, "SELECT count (*) FROM bank.signed") > 1) {
        assert_true (clock_monotonic_us () < deadline);
        nanosleep (&(struct timespec){0, 50000000}, NULL);
    }
    assert_int_equal (
        1, pg_fixture_number (w->sql, "SELECT count (*) FROM bank.signed s JOIN bank.hold h ON "
                                      "h.id = s.hold_id AND h.site_job = 'alpha.2'"));
    refused (w, job, "main", "beta.1", "HeldElsewhere");
    envelope_free (old);
    envelope_free (job);
    envelope_free (done);
}

/* A run that was held for twice is one run. */
static void held_twice (void **state)
{
    struct world *w = *state;
    Nui__Common__V1__Envelope *job = sign (w, false, 1);
    char id[32];
    hold (w, job, "main", "alpha.7", 0, "", id);
    release (w, "alpha.7", id);
    hold (w, job, "main", "alpha.7", 0, "", id);
    charge (w, "main", "alpha.7", 0, id, 100, true, true);
    hold (w, job, "main", "beta.7", 0, "", id);
    charge (w, "main", "beta.7", 0, id, 100, true, true);
    refused (w, job, "main", "alpha.8", "RunsUsedUp");
    envelope_free (job);
}

/* --- handed over ------------------------------------------------------------------------------ */

/* Asks as the site does, with the envelope as it is. */
static void asked_as_is (struct world *w, enum bankd_who who,
                         const Nui__Common__V1__Envelope *envelope, const char *part,
                         const char *job, const char *words)
{
    uint8_t key[16];
    Nui__Common__V1__Envelope copy = *envelope;
    Nui__Bank__V1__HoldRequest m = hold_of (w, &copy, part, job, key);
    if (who == WHO_OPS)
        m.site = TEXT ("beta");
    w->d.keep_envelopes = true;
    struct bankd_reply reply = bankd_call (&w->d, who, "Hold", &m.base);
    w->d.keep_envelopes = false;
    const Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    if (!*words && (reply.err.code || !h->granted))
        fail_msg ("%s: '%s' '%s'", job, reply.err.text, h && h->reason ? h->reason->text : "");
    if (*words && (reply.err.code != ERR_DENIED || !strstr (reply.err.text, words)))
        fail_msg ("%s: got '%s', wanted '%s'", job, reply.err.text, words);
    bankd_reply_free (&reply);
}

/* A site that was only asked has the signed job, and nothing that makes it the one that was chosen. */
static void only_where_it_was_given (void **state)
{
    struct world *w = *state;
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Envelope *job = sign (w, true, 0), *other = sign (w, true, 0), to = *job;
    asked_as_is (w, WHO_BETA, job, "main", "beta.1",
                 "no metascheduler has handed component main of this job over to site beta");
    to.handover = bankd_handover (&w->d, job, "main", "alpha", INT64_MAX, arena);
    asked_as_is (w, WHO_BETA, &to, "main", "beta.1",
                 "is not for component main of this job at site beta");
    asked_as_is (w, WHO_ALPHA, &to, "other", "alpha.1",
                 "is not for component other of this job at site alpha");
    to.handover = bankd_handover (&w->d, other, "main", "beta", INT64_MAX, arena);
    asked_as_is (w, WHO_BETA, &to, "main", "beta.1",
                 "is not for component main of this job at site beta");
    to.handover = bankd_handover (&w->d, job, "main", "beta", clock_now_us () - 1, arena);
    asked_as_is (w, WHO_BETA, &to, "main", "beta.1",
                 "the hand-over of component main to site beta ended ");
    to.handover = bankd_handover (&w->d, job, "main", "beta", INT64_MAX, arena);
    to.handover->metascheduler = TEXT ("rogue");
    asked_as_is (w, WHO_BETA, &to, "main", "beta.1", "is not for");
    /* the one to which it was given, also at a bank that was killed */
    to.handover = bankd_handover (&w->d, job, "main", "beta", INT64_MAX, arena);
    again (w);
    asked_as_is (w, WHO_BETA, &to, "main", "beta.1", "");
    envelope_free (job);
    envelope_free (other);
    arena_destroy (arena);
}

/* Who chooses needs nobody's word: the user who allowed one site, an operator, a metascheduler that holds itself. */
static void who_chooses_needs_none (void **state)
{
    struct world *w = *state;
    const char *sites[] = {"beta", "alpha"};
    struct bankd_job one = {.account = "rich", .sites = sites, .site_count = 1},
                     two = {.account = "rich", .sites = sites, .site_count = 2};
    Nui__Common__V1__Envelope *job = bankd_sign (&w->d, WHO_ALICE, &one);
    asked_as_is (w, WHO_BETA, job, "main", "beta.1", "");
    envelope_free (job);
    job = bankd_sign (&w->d, WHO_ALICE, &two);
    asked_as_is (w, WHO_BETA, job, "main", "beta.2", "no metascheduler has handed");
    asked_as_is (w, WHO_OPS, job, "main", "beta.2", "");
    envelope_free (job);
    uint8_t key[16], unused[16];
    job = sign (w, false, 0);
    Nui__Bank__V1__HoldRequest item = hold_of (w, NULL, "main", "beta.3", unused),
                               *items[] = {&item};
    Nui__Bank__V1__HoldGroupRequest group = NUI__BANK__V1__HOLD_GROUP_REQUEST__INIT;
    item.key = (ProtobufCBinaryData){0, NULL};
    item.site = TEXT ("beta");
    group.key = bankd_key (&w->d, key);
    group.envelope = job;
    group.n_holds = 1;
    group.holds = items;
    struct bankd_reply reply = bankd_call (&w->d, WHO_META, "HoldGroup", &group.base);
    assert_string_equal (reply.err.text, "");
    assert_true (((Nui__Bank__V1__HoldGroupReply *)reply.message)->granted);
    bankd_reply_free (&reply);
    envelope_free (job);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (held_twice, fresh, world_closed),
        cmocka_unit_test_setup_teardown (only_where_it_was_given, fresh, world_closed),
        cmocka_unit_test_setup_teardown (who_chooses_needs_none, fresh, world_closed),
        cmocka_unit_test_setup_teardown (one_place, fresh, world_closed),
        cmocka_unit_test_setup_teardown (a_stale_hold_does_not_count, fresh, world_closed),
        cmocka_unit_test_setup_teardown (retries, fresh, world_closed),
        cmocka_unit_test_setup_teardown (parts, fresh, world_closed),
        cmocka_unit_test_setup_teardown (earlier, fresh, world_closed),
        cmocka_unit_test_setup_teardown (at_once, fresh, world_closed),
        cmocka_unit_test_setup_teardown (forgotten, fresh, world_closed),
    };
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, world_up, world_down);
}
