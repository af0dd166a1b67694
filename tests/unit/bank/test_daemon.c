/* The real nui-bank over gRPC with TLS: roles, signatures, money, statements; without its database.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankworld.h"

#define TEXT(s) ((char *)(uintptr_t)(s))
#define CREDIT MICRO_PER_CREDIT

static int fresh (void **state)
{
    return world_fresh (state, "daemon", "");
}

static Nui__Bank__V1__HoldRequest hold_of (struct world *w, Nui__Common__V1__Envelope *envelope,
                                           const char *job, uint64_t procs, int64_t seconds,
                                           uint8_t key[16])
{
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = TEXT (job);
    m.component = TEXT ("main");
    m.procs = procs;
    m.walltime_us = seconds * US_PER_S;
    return m;
}

static void expect_code (struct bankd_reply reply, int code, const char *part)
{
    if (reply.err.code != code || !strstr (reply.err.text, part))
        fail_msg ("got %d '%s', wanted %d '%s'", reply.err.code, reply.err.text, code, part);
    bankd_reply_free (&reply);
}

static Nui__Bank__V1__HoldReply *granted (struct bankd_reply *reply)
{
    Nui__Bank__V1__HoldReply *m = (void *)reply->message;
    assert_string_equal (reply->err.text, "");
    if (!m->granted)
        fail_msg ("not granted: %s", m->reason->text);
    return m;
}

static void balance_is (struct world *w, enum bankd_who who, const char *account, int64_t granted_c,
                        int64_t settled, int64_t held, int64_t available)
{
    Nui__Bank__V1__BalanceRequest m = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    m.account = TEXT (account);
    struct bankd_reply reply = bankd_call (&w->d, who, "Balance", &m.base);
    assert_string_equal (reply.err.text, "");
    Nui__Bank__V1__BalanceReply *r = (void *)reply.message;
    assert_int_equal (r->n_balances, 1);
    assert_int_equal (r->balances[0]->granted_micro, granted_c * CREDIT);
    assert_int_equal (r->balances[0]->settled_micro, settled * CREDIT);
    assert_int_equal (r->balances[0]->held_micro, held * CREDIT);
    assert_int_equal (r->balances[0]->available_micro, available * CREDIT);
    bankd_reply_free (&reply);
}

static void a_job_is_paid (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys"};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    uint8_t key[16], key2[16];
    Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, "alpha.1", 8, 100, key);
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    Nui__Bank__V1__HoldReply *h = granted (&reply);
    assert_int_equal (h->amount_micro, 800 * CREDIT);
    assert_string_equal (h->account, "phys");
    assert_false (h->fallback);
    balance_is (w, WHO_ALICE, "phys", 1000, 0, 800, 200);

    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    charge.key = bankd_key (&w->d, key2);
    charge.sequence = 1;
    charge.hold_id = h->hold_id;
    charge.grid_job_id = TEXT ("grid.1");
    charge.site_job_id = TEXT ("alpha.1");
    charge.component = TEXT ("main");
    charge.procs = 8;
    charge.start_us = clock_now_us ();
    charge.end_us = charge.start_us + 50 * US_PER_S;
    charge.final = true;
    charge.successful = true;
    struct bankd_reply first = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_string_equal (first.err.text, "");
    Nui__Bank__V1__ChargeReply *c = (void *)first.message;
    assert_int_equal (c->charged_micro, 400 * CREDIT);
    assert_int_equal (c->released_micro, 400 * CREDIT);
    assert_int_equal (c->acked_sequence, 1);
    /* Sent again: the same answer, byte for byte, and nothing moves. */
    struct bankd_reply second = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    uint8_t a[256], b[256];
    size_t len = protobuf_c_message_pack (first.message, a);
    assert_int_equal (len, protobuf_c_message_pack (second.message, b));
    assert_memory_equal (a, b, len);
    balance_is (w, WHO_ALICE, "phys", 1000, 400, 0, 600);
    charge.procs = 9;
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base), ERR_CONFLICT,
                 "used before");
    bankd_reply_free (&first);
    bankd_reply_free (&second);
    bankd_reply_free (&reply);
    envelope_free (envelope);
}

/* H5: a hold that no site closes is the bank's to release, long after its end. */
static void a_stale_hold_is_released (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys", .retries = 1};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    uint8_t key[16];
    Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, "alpha.1", 1, 100, key);
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    granted (&reply);
    bankd_reply_free (&reply);
    hold = hold_of (w, envelope, "alpha.2", 1, 100, key);
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    granted (&reply);
    bankd_reply_free (&reply);
    envelope_free (envelope);
    /* One ended six days ago, one eight. */
    PQclear (PQexec (w->sql, "UPDATE bank.hold SET expires_at = expires_at - 86400000000 * CASE "
                             "site_job WHEN 'alpha.1' THEN 6 ELSE 8 END"));
    /* The site sees its own. */
    Nui__Bank__V1__HoldListRequest list = NUI__BANK__V1__HOLD_LIST_REQUEST__INIT;
    list.stale = true;
    reply = bankd_call (&w->d, WHO_BETA, "HoldList", &list.base);
    assert_int_equal (0, ((Nui__Bank__V1__HoldListReply *)reply.message)->n_holds);
    bankd_reply_free (&reply);
    time_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (pg_fixture_number (w->sql, "SELECT count (*) FROM bank.hold WHERE open") > 1 &&
           clock_monotonic_us () < deadline)
        nanosleep (&(struct timespec){0, 50000000}, NULL);
    reply = bankd_call (&w->d, WHO_ALPHA, "HoldList", &list.base);
    const Nui__Bank__V1__HoldListReply *holds = (void *)reply.message;
    assert_int_equal (1, holds->n_holds);
    assert_string_equal ("alpha.1", holds->holds[0]->site_job_id);
    bankd_reply_free (&reply);
    assert_int_equal (1, pg_fixture_number (w->sql, "SELECT count (*) FROM bank.op WHERE kind = "
                                                    "'release' AND client = 'bank:expiry'"));
    balance_is (w, WHO_ALICE, "phys", 1000, 0, 100, 900);
}

/* A site's own word counts where an operator has said so, and only for the site it was said of. */
static void claims (void **state)
{
    struct world *w = *state;
    uint8_t key[16];
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    claim.identity = TEXT (ALICE_URI);
    claim.account = TEXT ("phys");
    Nui__Bank__V1__HoldRequest hold = hold_of (w, NULL, "alpha.1", 1, 100, key);
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base), ERR_INVALID, "no signed job");
    hold = hold_of (w, NULL, "alpha.1", 1, 100, key);
    hold.claim = &claim;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    assert_string_equal (reply.err.text, "");
    assert_false (h->granted);
    assert_string_equal (h->reason->code, "NotSigned");
    bankd_reply_free (&reply);
    /* A charge is never refused: it waits for a person. */
    uint8_t key2[16];
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    charge.key = bankd_key (&w->d, key2);
    charge.claim = &claim;
    charge.site_job_id = TEXT ("alpha.1");
    charge.procs = 1;
    charge.start_us = clock_now_us ();
    charge.end_us = charge.start_us + 50 * US_PER_S;
    charge.final = charge.successful = true;
    reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_string_equal (reply.err.text, "");
    assert_string_equal (((Nui__Bank__V1__ChargeReply *)reply.message)->account, "bank:suspense");
    bankd_reply_free (&reply);
    Nui__Bank__V1__SiteSetRequest set = NUI__BANK__V1__SITE_SET_REQUEST__INIT;
    set.key = bankd_key (&w->d, key);
    set.site = TEXT ("alpha");
    set.claims = true;
    expect_code (bankd_call (&w->d, WHO_ALICE, "SiteSet", &set.base), ERR_DENIED, "");
    expect_code (bankd_call (&w->d, WHO_OPS, "SiteSet", &set.base), 0, "");
    hold = hold_of (w, NULL, "alpha.2", 1, 100, key);
    hold.claim = &claim;
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_string_equal (granted (&reply)->account, "phys");
    bankd_reply_free (&reply);
    hold = hold_of (w, NULL, "beta.1", 1, 100, key);
    hold.claim = &claim;
    reply = bankd_call (&w->d, WHO_BETA, "Hold", &hold.base);
    assert_false (((Nui__Bank__V1__HoldReply *)reply.message)->granted);
    bankd_reply_free (&reply);
    charge.key = bankd_key (&w->d, key2);
    charge.site_job_id = TEXT ("alpha.3");
    reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_string_equal (((Nui__Bank__V1__ChargeReply *)reply.message)->account, "phys");
    bankd_reply_free (&reply);
    balance_is (w, WHO_ALICE, "phys", 1000, 50, 100, 850);
    /* Membership still counts, and who is named must be somebody. */
    claim.identity = TEXT (BOB_URI);
    hold = hold_of (w, NULL, "alpha.4", 1, 100, key);
    hold.claim = &claim;
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_false (((Nui__Bank__V1__HoldReply *)reply.message)->granted);
    bankd_reply_free (&reply);
    claim.identity = TEXT ("nui://elsewhere/user/alice");
    hold = hold_of (w, NULL, "alpha.5", 1, 100, key);
    hold.claim = &claim;
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base), ERR_INVALID,
                 "no user of this grid");
    /* The right outlives the daemon, and can be taken back. */
    bankd_stop (&w->d, SIGKILL);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
    claim.identity = TEXT (ALICE_URI);
    hold = hold_of (w, NULL, "alpha.6", 1, 100, key);
    hold.claim = &claim;
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    granted (&reply);
    bankd_reply_free (&reply);
    set.key = bankd_key (&w->d, key);
    set.claims = false;
    expect_code (bankd_call (&w->d, WHO_OPS, "SiteSet", &set.base), 0, "");
    hold = hold_of (w, NULL, "alpha.7", 1, 100, key);
    hold.claim = &claim;
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_false (((Nui__Bank__V1__HoldReply *)reply.message)->granted);
    bankd_reply_free (&reply);
}

static void publish (struct world *w, int64_t ppm, const char *measure, bool successful_only,
                     Nui__Bank__V1__RateFactor *factor, size_t count)
{
    uint8_t key[16];
    Nui__Bank__V1__RateFactor *list[8];
    Nui__Bank__V1__RateSetRequest rate = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
    for (size_t i = 0; i < count; i++)
        list[i] = &factor[i];
    rate.key = bankd_key (&w->d, key);
    rate.site = TEXT ("alpha");
    rate.multiplier_ppm = ppm;
    rate.measure = TEXT (measure);
    rate.successful_only = successful_only;
    rate.n_factors = count;
    rate.factors = list;
    expect_code (bankd_call (&w->d, WHO_OPS, "RateSet", &rate.base), 0, "");
}

static Nui__Bank__V1__RateFactor factor_of (const char *kind, const char *name, int64_t ppm)
{
    Nui__Bank__V1__RateFactor factor = NUI__BANK__V1__RATE_FACTOR__INIT;
    factor.kind = TEXT (kind);
    factor.name = TEXT (name);
    factor.ppm = ppm;
    return factor;
}

/* What a hold's card said is what its charge costs, whatever is published in between. */
static void cards (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "rich", .memory_mb = 4096, .gpus = 2, .retries = 1};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    uint8_t key[16], key2[16];
    Nui__Bank__V1__RateFactor factor[] = {
        factor_of ("qos", "high", 2000000), factor_of ("class", "*", 1500000),
        factor_of ("memory", "*", 250000), factor_of ("gres", "gpu", 10000000)};
    Nui__Common__V1__Envelope *plain =
        bankd_sign (&w->d, WHO_ALICE, &(struct bankd_job){.account = "rich"});
    publish (w, 1000000, "cpu", true, factor, 4);
    /* What the user signed counts, not what the site says. */
    Nui__Bank__V1__Asked asked = NUI__BANK__V1__ASKED__INIT;
    asked.memory_mb = 1 << 20;
    Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, "alpha.1", 8, 100, key);
    hold.qos = TEXT ("high");
    hold.class_ = TEXT ("batch");
    hold.asked = &asked;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    Nui__Bank__V1__HoldReply *h = granted (&reply); /* (8 + 4 * .25 + 20) * 100 * 2 * 1.5 */
    assert_int_equal (h->amount_micro, 8700 * CREDIT);
    /* A name that the card does not know. */
    hold = hold_of (w, envelope, "alpha.2", 8, 100, key);
    hold.qos = TEXT ("low");
    struct bankd_reply no = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_false (((Nui__Bank__V1__HoldReply *)no.message)->granted);
    assert_string_equal (((Nui__Bank__V1__HoldReply *)no.message)->reason->code, "NoRate");
    assert_non_null (strstr (((Nui__Bank__V1__HoldReply *)no.message)->reason->text, "QoS low"));
    bankd_reply_free (&no);
    publish (w, 5000000, "wall", false, NULL, 0);
    bankd_stop (&w->d, SIGKILL);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, true));
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    charge.key = bankd_key (&w->d, key2);
    charge.hold_id = h->hold_id;
    charge.site_job_id = TEXT ("alpha.1");
    charge.component = TEXT ("main");
    charge.procs = 8;
    charge.cpu_us = 100 * US_PER_S; /* of 400 */
    charge.start_us = clock_now_us ();
    charge.end_us = charge.start_us + 50 * US_PER_S;
    struct bankd_reply partial = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_string_equal (partial.err.text, ""); /* it may still fail, and then it is free */
    assert_int_equal (((Nui__Bank__V1__ChargeReply *)partial.message)->charged_micro, 0);
    bankd_reply_free (&partial);
    charge.key = bankd_key (&w->d, key2);
    charge.final = charge.successful = true;
    partial = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_string_equal (partial.err.text, ""); /* (100 + 21 * 50) * 3 */
    assert_int_equal (((Nui__Bank__V1__ChargeReply *)partial.message)->charged_micro,
                      3450 * CREDIT);
    assert_int_equal (((Nui__Bank__V1__ChargeReply *)partial.message)->released_micro,
                      5250 * CREDIT);
    bankd_reply_free (&partial);
    bankd_reply_free (&reply);
    /* The new card, and without a hold a name it does not know: nobody is charged by guess. */
    hold = hold_of (w, envelope, "alpha.3", 8, 100, key);
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_int_equal (granted (&reply)->amount_micro, 4000 * CREDIT);
    bankd_reply_free (&reply);
    publish (w, 1000000, "", false, factor, 1);
    charge.key = bankd_key (&w->d, key2);
    charge.hold_id = TEXT ("");
    charge.envelope = plain;
    charge.site_job_id = TEXT ("alpha.4");
    charge.qos = TEXT ("low");
    charge.start_us = clock_now_us ();
    charge.end_us = charge.start_us + US_PER_S;
    reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_string_equal (((Nui__Bank__V1__ChargeReply *)reply.message)->account, "bank:suspense");
    bankd_reply_free (&reply);
    envelope_free (envelope);
    envelope_free (plain);
}

/* So far nobody has measured the processor time: nothing, not all of it; a later charge takes nothing back. */
static void partial_by_cpu (void **state)
{
    static const struct {
        int64_t cpu_s, charged;
        bool final;
    } step[] = {{0, 0, false}, {10, 10, false}, {0, 0, false}, {25, 15, true}};
    struct world *w = *state;
    Nui__Common__V1__Envelope *envelope =
        bankd_sign (&w->d, WHO_ALICE, &(struct bankd_job){.account = "rich"});
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    uint8_t key[16];
    publish (w, 1000000, "cpu", false, NULL, 0);
    Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, "alpha.1", 8, 100, key);
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    charge.hold_id = granted (&reply)->hold_id;
    charge.site_job_id = TEXT ("alpha.1");
    charge.component = TEXT ("main");
    charge.procs = 8;
    charge.start_us = clock_now_us ();
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        charge.key = bankd_key (&w->d, key);
        charge.cpu_us = step[i].cpu_s * US_PER_S;
        charge.end_us = charge.start_us + (time_us)(i + 1) * 10 * US_PER_S;
        charge.final = charge.successful = step[i].final;
        struct bankd_reply done = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
        assert_string_equal (done.err.text, "");
        assert_int_equal (((Nui__Bank__V1__ChargeReply *)done.message)->charged_micro,
                          step[i].charged * CREDIT);
        bankd_reply_free (&done);
    }
    bankd_reply_free (&reply);
    envelope_free (envelope);
}

static void signatures_count (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys"};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    uint8_t key[16];
    Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, "alpha.1", 1, 1, key);
    envelope->signature.data[envelope->signature.len - 1] ^= 1;
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base), ERR_UNAUTHENTIC, "");
    envelope_free (envelope);

    job.submitter = ALICE_URI; /* bob signs in alice's name */
    envelope = bankd_sign (&w->d, WHO_BOB, &job);
    hold = hold_of (w, envelope, "alpha.1", 1, 1, key);
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base), ERR_UNAUTHENTIC, "submitter");
    envelope_free (envelope);

    const char *sites[] = {"beta"};
    job = (struct bankd_job){
        .account = "phys", .sites = sites, .site_count = 1, .walltime_us = 10 * US_PER_S};
    envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    hold = hold_of (w, envelope, "alpha.1", 1, 1, key);
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base), ERR_DENIED,
                 "did not allow site alpha");
    hold = hold_of (w, envelope, "beta.1", 1, 11, key);
    struct bankd_reply reply = bankd_call (&w->d, WHO_BETA, "Hold", &hold.base);
    assert_string_equal (((Nui__Bank__V1__HoldReply *)reply.message)->reason->text,
                         "00:00:11 asked, the user signed a walltime of 00:00:10");
    bankd_reply_free (&reply);
    envelope_free (envelope);

    job = (struct bankd_job){.account = "phys", .cost_max_micro = 5 * CREDIT};
    envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    hold = hold_of (w, envelope, "alpha.1", 1, 6, key);
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_string_equal (((Nui__Bank__V1__HoldReply *)reply.message)->reason->code, "CostExceeded");
    bankd_reply_free (&reply);
    envelope_free (envelope);

    job = (struct bankd_job){.account = "phys", .expires_us = clock_now_us () - 1};
    envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    hold = hold_of (w, envelope, "alpha.1", 1, 6, key);
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    assert_string_equal (((Nui__Bank__V1__HoldReply *)reply.message)->reason->code, "JobExpired");
    bankd_reply_free (&reply);
    envelope_free (envelope);
    assert_int_equal (0, pg_fixture_number (w->sql, "SELECT count (*) FROM hold"));
}

static void release (struct world *w, enum bankd_who who, char *hold_id)
{
    Nui__Bank__V1__ReleaseRequest m = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (&w->d, key);
    m.hold_id = hold_id;
    m.reason = TEXT ("it goes elsewhere");
    struct bankd_reply reply = bankd_call (&w->d, who, "Release", &m.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
}

/* A signed job is paid for once as one job of the grid, whoever hands it over to which site. */
static void replays (void **state)
{
    struct world *w = *state;
    static const uint8_t uuid[16] = "one signed job!";
    struct bankd_job job = {
        .account = "phys", .expires_us = clock_now_us () + 3600 * US_PER_S, .uuid = uuid};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job), *other;
    static const struct {
        const char *site_job, *grid_job, *meta, *words; /* words NULL: granted */
        enum bankd_who who;
        bool group;
    } tries[] = {
        {"alpha.1", "grid.1", "main", NULL, WHO_ALPHA, false},
        {"alpha.2", "grid.1", "main", NULL, WHO_ALPHA,
         false}, /* another attempt, or another site */
        {"beta.1", "grid.1", "main", NULL, WHO_BETA, false},
        {"beta.2", "grid.7", "main", "paid for as grid.1 of metascheduler main", WHO_BETA, false},
        {"beta.3", "grid.1", "rogue", "comes again as grid.1 of rogue", WHO_BETA, false},
        {"beta.4", "grid.9", "main", NULL, WHO_BETA, true}, /* another of its group */
        {"beta.5", "grid.1", "rogue", "comes again as grid.1 of rogue", WHO_BETA, true},
    };
    for (int round = 0; round < 2; round++) { /* the second time of a bank that was killed */
        for (size_t i = 0; i < sizeof (tries) / sizeof (tries[0]); i++) {
            uint8_t key[16];
            Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, tries[i].site_job, 1, 5, key);
            hold.grid_job_id = TEXT (tries[i].grid_job);
            hold.metascheduler = TEXT (tries[i].meta);
            hold.group = tries[i].group;
            hold.incarnation = (uint32_t)round;
            struct bankd_reply reply = bankd_call (&w->d, tries[i].who, "Hold", &hold.base);
            assert_int_equal (reply.err.code, 0);
            Nui__Bank__V1__HoldReply *h = (void *)reply.message;
            assert_int_equal (h->granted, tries[i].words == NULL);
            if (tries[i].words) {
                assert_string_equal (h->reason->code, "Replayed");
                assert_non_null (strstr (h->reason->text, tries[i].words));
            } else {
                release (w, tries[i].who, h->hold_id);
            }
            bankd_reply_free (&reply);
        }
        if (round == 0) {
            bankd_stop (&w->d, SIGKILL);
            bankd_start (&w->d, NUI_BANK_PROGRAM);
            assert_true (bankd_wait_serving (&w->d, true));
        }
    }
    /* Another one that she signed, which says that it is the same. */
    job.walltime_us = 60 * US_PER_S;
    other = bankd_sign (&w->d, WHO_ALICE, &job);
    uint8_t key[16];
    Nui__Bank__V1__HoldRequest hold = hold_of (w, other, "alpha.9", 1, 5, key);
    hold.grid_job_id = TEXT ("grid.1");
    hold.metascheduler = TEXT ("main");
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    const Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    assert_false (h->granted);
    assert_string_equal (h->reason->text,
                         "another signed job with the same uuid was paid for as grid.1");
    bankd_reply_free (&reply);
    envelope_free (envelope);
    envelope_free (other);
}

static void without_credits (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys"};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_BOB, &job);
    uint8_t key[16];
    Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, "alpha.1", 1, 1, key);
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
    Nui__Bank__V1__HoldReply *h = (void *)reply.message;
    assert_false (h->granted);
    assert_int_equal (h->n_candidates, 2);
    assert_string_equal (h->candidates[1]->account, "rich");
    assert_true (h->candidates[1]->fallback);
    assert_string_equal (h->candidates[0]->reason->code, "NotMember");
    assert_non_null (strstr (h->reason->text, "phys"));
    bankd_reply_free (&reply);
    envelope_free (envelope);
    /* He sees nothing of it either. */
    Nui__Bank__V1__BalanceRequest m = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    reply = bankd_call (&w->d, WHO_BOB, "Balance", &m.base);
    assert_int_equal (((Nui__Bank__V1__BalanceReply *)reply.message)->n_balances, 0);
    bankd_reply_free (&reply);
    m.account = TEXT ("phys");
    expect_code (bankd_call (&w->d, WHO_BOB, "Balance", &m.base), ERR_NOT_FOUND, "phys");
    Nui__Bank__V1__StatementRequest s = NUI__BANK__V1__STATEMENT_REQUEST__INIT;
    s.account = TEXT ("phys");
    expect_code (bankd_call (&w->d, WHO_BOB, "Statement", &s.base), ERR_NOT_FOUND, "account");
}

static void roles (void **state)
{
    struct world *w = *state;
    uint8_t key[16];
    Nui__Bank__V1__DepositRequest deposit = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    deposit.key = bankd_key (&w->d, key);
    deposit.account = TEXT ("phys");
    deposit.amount_micro = CREDIT;
    expect_code (bankd_call (&w->d, WHO_ALICE, "Deposit", &deposit.base), ERR_DENIED, "");
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Deposit", &deposit.base), ERR_DENIED, "");
    expect_code (bankd_call (&w->d, WHO_META, "Deposit", &deposit.base), ERR_DENIED, "");
    Nui__Bank__V1__WithdrawRequest withdraw = NUI__BANK__V1__WITHDRAW_REQUEST__INIT;
    Nui__Bank__V1__TransferRequest transfer = NUI__BANK__V1__TRANSFER_REQUEST__INIT;
    Nui__Bank__V1__RefundRequest refund = NUI__BANK__V1__REFUND_REQUEST__INIT;
    Nui__Bank__V1__AllocationModifyRequest limit = NUI__BANK__V1__ALLOCATION_MODIFY_REQUEST__INIT;
    static const enum bankd_who others[] = {WHO_ALPHA, WHO_META};
    for (size_t i = 0; i < 2; i++) {
        expect_code (bankd_call (&w->d, others[i], "Withdraw", &withdraw.base), ERR_DENIED, "");
        expect_code (bankd_call (&w->d, others[i], "Transfer", &transfer.base), ERR_DENIED, "");
        expect_code (bankd_call (&w->d, others[i], "Refund", &refund.base), ERR_DENIED, "");
        expect_code (bankd_call (&w->d, others[i], "AllocationModify", &limit.base), ERR_DENIED,
                     "");
    }
    Nui__Bank__V1__HoldRequest hold = hold_of (w, NULL, "alpha.1", 1, 1, key);
    expect_code (bankd_call (&w->d, WHO_META, "Hold", &hold.base), ERR_DENIED, "");
    expect_code (bankd_call (&w->d, WHO_ALICE, "Hold", &hold.base), ERR_DENIED, "");
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base), ERR_INVALID, "no signed job");
    Nui__Bank__V1__BalanceRequest balance = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    expect_code (bankd_call (&w->d, WHO_ALPHA, "Balance", &balance.base), ERR_DENIED, "");
    deposit.key = (ProtobufCBinaryData){3, key};
    expect_code (bankd_call (&w->d, WHO_OPS, "Deposit", &deposit.base), ERR_INVALID, "16");
    deposit.key = bankd_key (&w->d, key);
    deposit.amount_micro = -5;
    expect_code (bankd_call (&w->d, WHO_OPS, "Deposit", &deposit.base), ERR_INVALID,
                 "not positive");
    deposit.amount_micro = INT64_MAX;
    expect_code (bankd_call (&w->d, WHO_OPS, "Deposit", &deposit.base), ERR_INVALID,
                 "more than 1000000000000");
    deposit.amount_micro = CREDIT;
    deposit.valid_to_us = 5;
    expect_code (bankd_call (&w->d, WHO_OPS, "Deposit", &deposit.base), ERR_INVALID,
                 "ended already");
    deposit.valid_to_us = 0;
    deposit.account = TEXT ("no such");
    expect_code (bankd_call (&w->d, WHO_OPS, "Deposit", &deposit.base), ERR_INVALID, "no such");
    Nui__Bank__V1__UserCreateRequest user = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
    user.key = bankd_key (&w->d, key);
    user.identity = TEXT ("nui://other/user/eve");
    expect_code (bankd_call (&w->d, WHO_OPS, "UserCreate", &user.base), ERR_INVALID,
                 "another grid");
}

static void quotes (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys"};
    Nui__Bank__V1__QuoteRequest m = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    Nui__Bank__V1__PriceItem a = NUI__BANK__V1__PRICE_ITEM__INIT, b = a, *items[] = {&a, &b};
    a.site = TEXT ("alpha");
    b.site = TEXT ("beta");
    a.procs = b.procs = 8;
    a.walltime_us = b.walltime_us = 100 * US_PER_S;
    m.envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    m.n_items = 2;
    m.items = items;
    m.all_of = true;
    struct bankd_reply reply = bankd_call (&w->d, WHO_META, "Quote", &m.base);
    assert_string_equal (reply.err.text, "");
    Nui__Bank__V1__QuoteReply *q = (void *)reply.message;
    assert_int_equal (q->prices[1]->amount_micro, 1000 * CREDIT);
    assert_string_equal (q->prices[1]->formula, "8 procs * 100 s * 1.25 = 1000 credits");
    assert_true (q->prices[0]->funded && q->prices[1]->funded && q->funded);
    assert_string_equal (q->prices[0]->account, "phys");
    assert_string_equal (q->account, "rich"); /* 1800 together */
    bankd_reply_free (&reply);
    expect_code (bankd_call (&w->d, WHO_BOB, "Quote", &m.base), ERR_DENIED, "not by you");
    envelope_free (m.envelope);
}

/* Statements add up and the closing of one is the opening of the next. */
static void statements (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys", .retries = 1};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    Nui__Bank__V1__StatementRequest s = NUI__BANK__V1__STATEMENT_REQUEST__INIT;
    uint8_t key[16];
    s.account = TEXT ("phys");
    struct bankd_reply first = bankd_call (&w->d, WHO_ALICE, "Statement", &s.base);
    Nui__Bank__V1__StatementReply *one = (void *)first.message;
    assert_string_equal (first.err.text, "");
    assert_int_equal (one->closing_posted_micro, 1000 * CREDIT);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf (name, sizeof (name), "alpha.%d", i);
        Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, name, 1, 100, key);
        struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
        char id[32];
        snprintf (id, sizeof (id), "%s", granted (&reply)->hold_id);
        bankd_reply_free (&reply);
        if (i == 1)
            release (w, WHO_ALPHA, id);
    }
    s.from_us = one->to_us;
    struct bankd_reply second = bankd_call (&w->d, WHO_ALICE, "Statement", &s.base);
    Nui__Bank__V1__StatementReply *two = (void *)second.message;
    assert_int_equal (two->opening_posted_micro, one->closing_posted_micro);
    assert_int_equal (two->opening_held_micro, one->closing_held_micro);
    assert_int_equal (two->n_lines, 4);
    int64_t posted = two->opening_posted_micro, held = two->opening_held_micro;
    for (size_t i = 0; i < two->n_lines; i++) {
        posted += two->lines[i]->amount_micro;
        held += two->lines[i]->held_micro;
        assert_true (two->lines[i]->at_us >= two->from_us && two->lines[i]->at_us < two->to_us);
    }
    assert_int_equal (posted, two->closing_posted_micro);
    assert_int_equal (held, two->closing_held_micro);
    assert_int_equal (held, 200 * CREDIT);
    assert_int_equal (two->available_micro, 800 * CREDIT);
    assert_string_equal (two->lines[0]->kind, "hold");
    assert_string_equal (two->lines[0]->who, ALICE_URI);
    assert_string_equal (two->lines[0]->description, "1 procs * 100 s * 1 = 100 credits");
    bankd_reply_free (&first);
    bankd_reply_free (&second);
    envelope_free (envelope);
}

/* A revoked user's jobs are refused without a restart, also one that was accepted a moment ago. */
static void revoked (void **state)
{
    struct world *w = *state;
    struct bankd_job job = {.account = "phys"};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    uint8_t key[16];
    Nui__Bank__V1__HoldRequest first = hold_of (w, envelope, "alpha.0", 1, 1, key);
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &first.base);
    char id[32];
    snprintf (id, sizeof (id), "%s", granted (&reply)->hold_id);
    bankd_reply_free (&reply);
    testca_revoke (w->d.ca, "alice", -60);
    testca_write_crl (w->d.ca, -60, 86400);
    /* Sooner than what was remembered would fade by itself. */
    duration_us deadline = clock_monotonic_us () + 7 * US_PER_S;
    for (int i = 1;; i++) {
        char name[32];
        uint8_t other[16];
        struct timespec pause = {0, 50000000};
        snprintf (name, sizeof (name), "alpha.%d", i);
        Nui__Bank__V1__HoldRequest hold = hold_of (w, envelope, name, 1, 1, other);
        reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &hold.base);
        int code = reply.err.code;
        bankd_reply_free (&reply);
        if (code == ERR_UNAUTHENTIC)
            break;
        assert_int_equal (code, 0);
        assert_true (clock_monotonic_us () < deadline);
        nanosleep (&pause, NULL);
    }
    /* What was granted before is still the answer of its key. */
    reply = bankd_call (&w->d, WHO_ALPHA, "Hold", &first.base);
    assert_string_equal (id, granted (&reply)->hold_id);
    bankd_reply_free (&reply);
    envelope_free (envelope);
}

/* The daemon itself finds what has ended; the statement still adds up to the balance. */
static void an_allocation_ends (void **state)
{
    struct world *w = *state;
    uint8_t key[16];
    Nui__Bank__V1__DepositRequest deposit = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    deposit.key = bankd_key (&w->d, key);
    deposit.account = TEXT ("phys");
    deposit.amount_micro = 7 * CREDIT;
    deposit.valid_to_us = clock_now_us () + 300000;
    struct bankd_reply reply = bankd_call (&w->d, WHO_NSF, "Deposit", &deposit.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
    /* One that begins is noticed, too, and once. */
    deposit.key = bankd_key (&w->d, key);
    deposit.amount_micro = 5 * CREDIT;
    deposit.valid_from_us = clock_now_us () + 300000;
    deposit.valid_to_us = 0;
    reply = bankd_call (&w->d, WHO_NSF, "Deposit", &deposit.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
    duration_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (pg_fixture_number (
               w->sql,
               "SELECT count (*) FROM op WHERE kind IN ('expire', 'begin') AND status = 0") < 2) {
        struct timespec pause = {0, 50000000};
        assert_true (clock_monotonic_us () < deadline);
        nanosleep (&pause, NULL);
    }
    balance_is (w, WHO_ALICE, "phys", 1005, 0, 0, 1005);
    Nui__Bank__V1__StatementRequest s = NUI__BANK__V1__STATEMENT_REQUEST__INIT;
    s.account = TEXT ("phys");
    reply = bankd_call (&w->d, WHO_ALICE, "Statement", &s.base);
    Nui__Bank__V1__StatementReply *st = (void *)reply.message;
    assert_string_equal (reply.err.text, "");
    assert_int_equal (st->available_micro, 1005 * CREDIT);
    assert_string_equal (st->lines[st->n_lines - 1]->kind, "expire");
    assert_int_equal (st->lines[st->n_lines - 1]->amount_micro, -7 * CREDIT);
    bankd_reply_free (&reply);
}

static void database_away (void **state)
{
    struct world *w = *state;
    PQfinish (w->sql);
    w->sql = NULL;
    pg_fixture_crash (w->pg);
    assert_true (bankd_wait_serving (&w->d, false));
    Nui__Bank__V1__BalanceRequest m = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    expect_code (bankd_call (&w->d, WHO_ALICE, "Balance", &m.base), ERR_UNAVAILABLE,
                 "database is away");
    uint8_t key[16];
    Nui__Bank__V1__DepositRequest deposit = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    deposit.key = bankd_key (&w->d, key);
    deposit.account = TEXT ("phys");
    deposit.amount_micro = CREDIT;
    expect_code (bankd_call (&w->d, WHO_NSF, "Deposit", &deposit.base), ERR_UNAVAILABLE,
                 "database is away");
    /* A daemon that starts while the database is away waits for it. */
    bankd_stop (&w->d, SIGKILL);
    bankd_start (&w->d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&w->d, false));
    assert_true (pg_fixture_again (w->pg));
    assert_true (bankd_wait_serving (&w->d, true));
    struct bankd_reply reply = bankd_call (&w->d, WHO_NSF, "Deposit", &deposit.base);
    assert_string_equal (reply.err.text, "");
    bankd_reply_free (&reply);
    balance_is (w, WHO_ALICE, "phys", 1001, 0, 0, 1001);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_job_is_paid, fresh, world_closed),
        cmocka_unit_test_setup_teardown (claims, fresh, world_closed),
        cmocka_unit_test_setup_teardown (a_stale_hold_is_released, fresh, world_closed),
        cmocka_unit_test_setup_teardown (cards, fresh, world_closed),
        cmocka_unit_test_setup_teardown (partial_by_cpu, fresh, world_closed),
        cmocka_unit_test_setup_teardown (signatures_count, fresh, world_closed),
        cmocka_unit_test_setup_teardown (replays, fresh, world_closed),
        cmocka_unit_test_setup_teardown (without_credits, fresh, world_closed),
        cmocka_unit_test_setup_teardown (roles, fresh, world_closed),
        cmocka_unit_test_setup_teardown (quotes, fresh, world_closed),
        cmocka_unit_test_setup_teardown (statements, fresh, world_closed),
        cmocka_unit_test_setup_teardown (revoked, fresh, world_closed),
        cmocka_unit_test_setup_teardown (an_allocation_ends, fresh, world_closed),
        cmocka_unit_test_setup_teardown (database_away, fresh, world_closed),
    };
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, world_up, world_down);
}
