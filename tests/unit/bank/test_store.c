/* The committer against a real PostgreSQL: operations, replays, lost connections, the journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

#define ALICE "nui://test/user/alice"
#define BOB "nui://test/user/bob"
#define CREDIT MICRO_PER_CREDIT

struct world {
    struct pg_fixture *pg;
    struct bankrig rig;
    PGconn *sql;
    const char *conninfo;
};

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    *state = w;
    return 0;
}

static int down (void **state)
{
    struct world *w = *state;
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

static void expect (struct world *w, struct ledger_request req, const char *text)
{
    struct answer a = bankrig_ask (&w->rig, &req);
    assert_string_equal (a.err.text, "");
    assert_string_equal (a.text, text);
}

static void expect_refused (struct world *w, struct ledger_request req, int code, const char *part)
{
    struct answer a = bankrig_ask (&w->rig, &req);
    assert_int_equal (a.err.code, code);
    if (!strstr (a.err.text, part))
        fail_msg ("'%s' does not say '%s'", a.err.text, part);
}

/* Everything that must hold of the books, whatever happened. */
static void prove (struct world *w)
{
    assert_int_equal (
        0, pg_fixture_number (w->sql, "SELECT count (*) FROM (SELECT 1 FROM entry GROUP BY op_id, "
                                      "unit_id, layer HAVING sum (amount) <> 0) x"));
    assert_int_equal (
        0,
        pg_fixture_number (
            w->sql, "SELECT count (*) FROM balance b WHERE posted <> coalesce ((SELECT sum "
                    "(amount) FROM entry e "
                    "WHERE e.allocation_id = b.allocation_id AND layer = 'P'), 0) OR held <> "
                    "coalesce ((SELECT sum (amount) "
                    "FROM entry e WHERE e.allocation_id = b.allocation_id AND layer = 'H'), 0)"));
    assert_int_equal (
        0, pg_fixture_number (w->sql, "SELECT count (*) FROM balance b WHERE held <> coalesce "
                                      "((SELECT sum (g.amount - g.settled - g.released) "
                                      "FROM hold_leg g JOIN hold h ON h.id = g.hold_id WHERE "
                                      "h.open AND g.allocation_id = b.allocation_id), 0)"));
    assert_int_equal (
        0,
        pg_fixture_number (
            w->sql,
            "SELECT count (*) FROM hold h JOIN hold_leg g ON g.hold_id = h.id WHERE NOT h.open AND "
            "g.settled + g.released <> g.amount"));
    assert_int_equal (0,
                      pg_fixture_number (w->sql, "SELECT count (*) FROM charge c WHERE amount <> "
                                                 "coalesce ((SELECT sum (amount) FROM charge_leg g "
                                                 "WHERE g.charge_id = c.id), 0)"));
    /* No reference dangles where there are no foreign keys. */
    assert_int_equal (
        0, pg_fixture_number (w->sql,
                              "SELECT (SELECT count (*) FROM entry e LEFT JOIN op o ON "
                              "o.id = e.op_id LEFT JOIN allocation l "
                              "ON l.id = e.allocation_id AND l.account_id = "
                              "e.account_id WHERE o.id IS NULL OR l.id IS NULL) + "
                              "(SELECT count (*) FROM hold h LEFT JOIN op o ON o.id = "
                              "h.op_id LEFT JOIN account a ON a.id = h.account_id "
                              "WHERE o.id IS NULL OR a.id IS NULL) + (SELECT count (*) "
                              "FROM hold_leg g LEFT JOIN hold h ON "
                              "h.id = g.hold_id LEFT JOIN allocation l ON l.id = "
                              "g.allocation_id WHERE h.id IS NULL OR l.id IS NULL) + "
                              "(SELECT count (*) FROM charge c LEFT JOIN op o ON o.id "
                              "= c.op_id LEFT JOIN usage u ON u.id = c.usage_id "
                              "WHERE o.id IS NULL OR u.id IS NULL) + (SELECT count (*) FROM "
                              "signed s LEFT JOIN hold h ON h.id = s.hold_id WHERE h.id IS NULL)"));
}

static void found (struct world *w)
{
    static const char *const rich[] = {"rich"};
    expect (w, req_project (&w->rig, "physics"), "done project.1");
    expect (w, req_user (&w->rig, ALICE), "done user.1");
    expect (w, req_user (&w->rig, BOB), "done user.2");
    expect (w, req_member (&w->rig, "physics", ALICE), "done membership.1");
    expect (w, req_account (&w->rig, "rich", "physics", NULL, 0), "done account.4");
    expect (w, req_account (&w->rig, "phys", "physics", rich, 1), "done account.5");
    expect (w, req_rate (&w->rig, "alpha", 1000000), "done alpha.1");
    expect (w, req_rate (&w->rig, "beta", 1250000), "done beta.1");
    expect (w, req_deposit (&w->rig, "phys", 1000 * CREDIT, 0, 0), "done alloc.6");
    expect (w, req_deposit (&w->rig, "rich", 100000 * CREDIT, 0, 0), "done alloc.7");
}

static int fresh (void **state)
{
    static int n;
    struct world *w = *state;
    char name[32];
    snprintf (name, sizeof (name), "bank%d", ++n);
    w->conninfo = pg_fixture_database (w->pg, name);
    bankrig_open (&w->rig, w->conninfo);
    if (!bankrig_wait_up (&w->rig, true))
        return -1;
    w->sql = pg_fixture_connect (w->conninfo);
    found (w);
    return 0;
}

static int closed (void **state)
{
    struct world *w = *state;
    bankrig_close (&w->rig);
    PQfinish (w->sql);
    return 0;
}

static void life_of_a_job (void **state)
{
    struct world *w = *state;
    time_us start = clock_now_us () - 3600 * US_PER_S;
    expect (w, req_hold (&w->rig, "alpha", "alpha.1", "phys", ALICE, 8, 100),
            "granted hold.1 800000000 phys");
    expect (w, req_charge (&w->rig, "alpha", "alpha.1", "hold.1", 8, start, 50, false),
            "charged 400000000 total 400000000 released 0 phys acked 0");
    expect (w, req_charge (&w->rig, "alpha", "alpha.1", "hold.1", 8, start, 75, true),
            "charged 200000000 total 600000000 released 200000000 phys acked 0");
    expect_refused (w, req_charge (&w->rig, "alpha", "alpha.1", "hold.1", 8, start, 90, true),
                    ERR_CONFLICT, "final charge already");
    /* 400 are left: a second job does not fit and goes to the fallback. */
    expect (w, req_hold (&w->rig, "beta", "beta.1", "phys", ALICE, 4, 100),
            "granted hold.2 500000000 rich fallback");
    expect (w, req_release (&w->rig, "beta", "hold.2"), "released 500000000 acked 0");
    expect (w, req_hold (&w->rig, "alpha", "alpha.2", "phys", BOB, 1, 1),
            "refused InsufficientFunds phys:NotMember:1000000 rich:NotMember:1000000");
    expect (w, req_hold (&w->rig, "gamma", "gamma.1", "phys", ALICE, 1, 1), "refused NoRate");
    expect (w, req_hold (&w->rig, "alpha", "alpha.3", "phys", ALICE, 100, 100000),
            "refused InsufficientFunds phys:InsufficientFunds:9999600000000 "
            "rich:InsufficientFunds:9900000000000");
    prove (w);
}

static void keys (void **state)
{
    struct world *w = *state;
    struct ledger_request a = req_deposit (&w->rig, "phys", 5 * CREDIT, 0, 0);
    struct ledger_request b = a;
    expect (w, a, "done alloc.8");
    long long entries = pg_fixture_number (w->sql, "SELECT count (*) FROM entry");
    expect (w, a, "done alloc.8");
    b.deposit.amount = 6 * CREDIT;
    request_seal (&b);
    expect_refused (w, b, ERR_CONFLICT, "used before");
    assert_int_equal (entries, pg_fixture_number (w->sql, "SELECT count (*) FROM entry"));
    /* Twice in one batch: one deposit, one answer. */
    struct ledger_request c = req_deposit (&w->rig, "phys", 7 * CREDIT, 0, 0);
    struct answer first, second;
    bankrig_send (&w->rig, &c, &first);
    bankrig_send (&w->rig, &c, &second);
    bankrig_await (&w->rig, &first);
    bankrig_await (&w->rig, &second);
    assert_string_equal (first.text, "done alloc.9");
    assert_string_equal (second.text, "done alloc.9");
    /* A refusal is an answer too. */
    struct ledger_request d = req_project (&w->rig, "physics");
    expect_refused (w, d, ERR_EXISTS, "exists");
    expect_refused (w, d, ERR_EXISTS, "exists");
    /* One that may not be decided is answered from its key only. */
    a.refused.code = ERR_UNAUTHENTIC;
    expect (w, a, "done alloc.8");
    c = req_deposit (&w->rig, "phys", 7 * CREDIT, 0, 0);
    err_set (&c.refused, ERR_UNAUTHENTIC, "the signature does not hold");
    expect_refused (w, c, ERR_UNAUTHENTIC, "signature");
    prove (w);
}

static void overrun (void **state)
{
    struct world *w = *state;
    time_us start = clock_now_us ();
    expect (w, req_hold (&w->rig, "alpha", "alpha.1", "phys", ALICE, 1, 900),
            "granted hold.1 900000000 phys");
    /* 1100 used: 900 held, 100 available, 100 below zero. */
    expect (w, req_charge (&w->rig, "alpha", "alpha.1", "hold.1", 1, start, 1100, true),
            "charged 1100000000 total 1100000000 released 0 phys acked 0");
    assert_int_equal (
        -100000000,
        pg_fixture_number (w->sql, "SELECT posted FROM balance WHERE allocation_id = 6"));
    char *sources = pg_fixture_value (
        w->sql, "SELECT string_agg (source || ':' || amount, ' ' ORDER BY leg) FROM charge_leg");
    assert_string_equal (sources, "HELD:900000000 AVAILABLE:100000000 OVERRUN:100000000");
    free (sources);
    expect (w, req_hold (&w->rig, "alpha", "alpha.2", "phys", ALICE, 1, 1),
            "granted hold.2 1000000 rich fallback");
    /* A deposit repays first. */
    expect (w, req_deposit (&w->rig, "phys", 150 * CREDIT, 0, 0), "done alloc.8");
    assert_int_equal (
        50000000, pg_fixture_number (w->sql, "SELECT posted FROM balance WHERE allocation_id = 8"));
    expect (w, req_hold (&w->rig, "alpha", "alpha.3", "phys", ALICE, 1, 50),
            "granted hold.3 50000000 phys");
    prove (w);
}

static void unheld (void **state)
{
    struct world *w = *state;
    time_us start = clock_now_us (); /* after rates and grants began */
    struct ledger_request req = req_charge (&w->rig, "beta", "beta.7", "", 4, start, 10, true);
    req.charge.account = "phys";
    req.on_behalf = ALICE;
    req.charge.sequence = 2;
    expect (w, req, "charged 50000000 total 50000000 released 0 phys acked 0");
    req = req_charge (&w->rig, "gamma", "gamma.1", "", 4, start, 10, true);
    req.charge.account = "phys";
    req.on_behalf = ALICE;
    req.charge.sequence = 1;
    /* No rate for gamma: at 1, into suspense. */
    expect (w, req, "charged 40000000 total 40000000 released 0 bank:suspense acked 1");
    req = req_charge (&w->rig, "beta", "beta.8", "", 4, start, 10, true);
    req.charge.account = "phys";
    req.on_behalf = BOB;
    req.charge.sequence = 1;
    expect (w, req, "charged 50000000 total 50000000 released 0 bank:suspense acked 2");
    req = req_release (&w->rig, "beta", "hold.99");
    req.release.sequence = 3;
    expect_refused (w, req, ERR_NOT_FOUND, "no hold");
    assert_int_equal (3,
                      pg_fixture_number (w->sql, "SELECT acked FROM site_ack WHERE site = 'beta'"));
    prove (w);
}

static void one_hold_per_incarnation (void **state)
{
    struct world *w = *state;
    struct ledger_request a = req_hold (&w->rig, "alpha", "alpha.1", "phys", ALICE, 1, 10);
    struct ledger_request b = req_hold (&w->rig, "alpha", "alpha.1", "phys", ALICE, 1, 10);
    struct answer first, second;
    bankrig_send (&w->rig, &a, &first);
    bankrig_send (&w->rig, &b, &second);
    bankrig_await (&w->rig, &first);
    bankrig_await (&w->rig, &second);
    assert_string_equal (first.text, "granted hold.1 10000000 phys");
    assert_string_equal (second.text, "refused HoldExists");
    b = req_hold (&w->rig, "alpha", "alpha.1", "phys", ALICE, 1, 10);
    b.hold.job.incarnation = 1;
    expect (w, b, "granted hold.2 10000000 phys");
    /* Another site cannot release or charge it. */
    expect_refused (w, req_release (&w->rig, "beta", "hold.1"), ERR_NOT_FOUND, "no hold");
    expect_refused (
        w, req_charge (&w->rig, "alpha", "alpha.9", "hold.1", 1, clock_now_us () - 10, 0, true),
        ERR_CONFLICT, "was placed for");
    prove (w);
}

static void journal_is_fixed (void **state)
{
    struct world *w = *state;
    static const char *const forbidden[] = {
        "UPDATE entry SET amount = amount + 1",
        "DELETE FROM entry",
        "TRUNCATE entry",
        "UPDATE op SET note = ''",
        "DELETE FROM op",
        "UPDATE rate SET multiplier_ppm = 0",
        "DELETE FROM charge",
        "UPDATE charge_leg SET amount = 1",
        /* unbalanced: one leg only */
        ("INSERT INTO entry SELECT op_id, 77, 'P', 1, account_id, allocation_id, 5, 0, 0"
         " FROM entry LIMIT 1"),
        "UPDATE balance SET held = -1",
    };
    for (size_t i = 0; i < sizeof (forbidden) / sizeof (forbidden[0]); i++) {
        PGresult *res = PQexec (w->sql, forbidden[i]);
        if (PQresultStatus (res) == PGRES_COMMAND_OK)
            fail_msg ("'%s' was let through", forbidden[i]);
        PQclear (res);
    }
    prove (w);
}

static void only_one_writer (void **state)
{
    struct world *w = *state;
    struct bankrig other;
    bankrig_open (&other, w->conninfo);
    struct timeval tv = {0, 300000};
    event_base_loopexit (other.base, &tv);
    event_base_dispatch (other.base);
    assert_false (other.up);
    /* The first goes; the second takes over and knows where ids stand. */
    bankrig_close (&w->rig);
    w->rig = other;
    committer_destroy (other.committer);
    event_base_free (other.base);
    bankrig_open (&w->rig, w->conninfo);
    assert_true (bankrig_wait_up (&w->rig, true));
    w->rig.keys = 1000;
    expect (w, req_deposit (&w->rig, "phys", 5 * CREDIT, 0, 0), "done alloc.8");
}

static void fallback_rules (void **state)
{
    struct world *w = *state;
    static const char *const self[] = {"loop"}, *const unknown[] = {"nobody"},
                             *const phys[] = {"phys"};
    static const char *const names[] = {"a1", "a2", "a3", "a4", "a5"};
    expect_refused (w, req_account (&w->rig, "loop", "physics", self, 1), ERR_CONFLICT, "loop");
    expect_refused (w, req_account (&w->rig, "x", "physics", unknown, 1), ERR_NOT_FOUND, "nobody");
    struct ledger_request modify = req_account (&w->rig, "rich", "", phys, 1);
    modify.kind = LEDGER_ACCOUNT_MODIFY;
    expect_refused (w, modify, ERR_CONFLICT, "loop");
    expect (w, req_account (&w->rig, names[0], "physics", phys, 1), "done account.8");
    expect (w, req_account (&w->rig, names[1], "physics", &names[0], 1), "done account.9");
    expect (w, req_account (&w->rig, names[2], "physics", &names[1], 1), "done account.10");
    expect_refused (w, req_account (&w->rig, names[3], "physics", &names[2], 1), ERR_LIMIT, "deep");
    expect (w, req_hold (&w->rig, "alpha", "alpha.1", "a2", ALICE, 1, 2000),
            "granted hold.1 2000000000 rich fallback");
    modify = req_account (&w->rig, "phys", "", NULL, 0);
    modify.kind = LEDGER_ACCOUNT_MODIFY;
    expect (w, modify, "done account.5");
    expect (w, req_hold (&w->rig, "alpha", "alpha.2", "a2", ALICE, 1, 2000),
            "refused InsufficientFunds a2:NoAllocation:2000000000 a1:NoAllocation:2000000000 "
            "phys:InsufficientFunds:1000000000");
}

static void wait_until (time_us moment)
{
    /* The event is a moment; the database's state cannot be asked for it. */
    while (clock_now_us () <= moment) {
        struct timespec pause = {0, 5000000};
        nanosleep (&pause, NULL);
    }
}

static struct ledger_request req_expire (struct world *w, int64_t alloc)
{
    struct ledger_request req = req_new (&w->rig, LEDGER_EXPIRE, "bank:expiry");
    req.expire.allocation_id = alloc;
    req.expire.due = true;
    req.expire.description = "";
    return req;
}

/* An allocation ends: it pays no new hold, what it had left goes to bank:expired, what is held
 * stays for its job, and what the job leaves follows. */
static void allocation_ends (void **state)
{
    struct world *w = *state;
    time_us end = clock_now_us () + 700000;
    expect (w, req_account (&w->rig, "short", "physics", NULL, 0), "done account.8");
    expect (w, req_deposit (&w->rig, "short", 100 * CREDIT, 0, end), "done alloc.8");
    expect_refused (w, req_expire (w, 8), ERR_CONFLICT, "has not ended yet");
    expect (w, req_hold (&w->rig, "alpha", "alpha.1", "short", ALICE, 1, 30),
            "granted hold.1 30000000 short");
    struct ledger_request late = req_hold (&w->rig, "alpha", "alpha.2", "short", ALICE, 1, 30);
    late.hold.start = end;
    expect (w, late, "refused NoAllocation short:NoAllocation:30000000");
    wait_until (end);
    expect (w, req_hold (&w->rig, "alpha", "alpha.3", "short", ALICE, 1, 1),
            "refused NoAllocation short:NoAllocation:1000000");
    expect (w, req_expire (w, 8), "done alloc.8");
    expect_refused (w, req_expire (w, 8), ERR_CONFLICT, "what is left of it is held");
    assert_int_equal (
        30000000, pg_fixture_number (w->sql, "SELECT posted FROM balance WHERE allocation_id = 8"));
    assert_int_equal (
        70000000,
        pg_fixture_number (w->sql, "SELECT sum (amount) FROM entry WHERE account_id = -1"));
    char query[160];
    snprintf (query, sizeof (query),
              "SELECT count (*) FROM op WHERE kind = 'expire' AND effective_at = %lld",
              (long long)end);
    assert_int_equal (1, pg_fixture_number (w->sql, query));
    expect (w, req_charge (&w->rig, "alpha", "alpha.1", "hold.1", 1, end - 10 * US_PER_S, 20, true),
            "charged 20000000 total 20000000 released 10000000 short acked 0");
    assert_int_equal (
        0, pg_fixture_number (w->sql, "SELECT posted + held FROM balance WHERE allocation_id = 8"));
    assert_int_equal (
        80000000,
        pg_fixture_number (w->sql, "SELECT sum (amount) FROM entry WHERE account_id = -1"));
    /* What is refunded to it goes the same way at once. */
    int64_t charge = pg_fixture_number (w->sql, "SELECT op_id FROM charge");
    expect (w, req_refund (&w->rig, charge, 5000000), "refunded 5000000 left 15000000");
    expect (w, req_refund (&w->rig, charge, 0), "refunded 15000000 left 0");
    assert_int_equal (
        0, pg_fixture_number (w->sql, "SELECT posted + held FROM balance WHERE allocation_id = 8"));
    assert_int_equal (
        100000000,
        pg_fixture_number (w->sql, "SELECT sum (amount) FROM entry WHERE account_id = -1"));
    prove (w);
}

/* Holds and charges are taken to be new until the database says that they are not. */
static void not_new (void **state)
{
    struct world *w = *state;
    time_us start = clock_now_us () - 3600 * US_PER_S;
    struct ledger_request hold = req_hold (&w->rig, "alpha", "a.1", "phys", ALICE, 1, 100),
                          other = hold,
                          fresh = req_hold (&w->rig, "alpha", "a.2", "phys", ALICE, 1, 50);
    struct ledger_request charge =
        req_charge (&w->rig, "alpha", "a.1", "hold.1", 1, start, 60, true);
    struct answer replayed, made;
    expect (w, hold, "granted hold.1 100000000 phys");
    expect (w, hold, "granted hold.1 100000000 phys");
    other.hold.procs = 2;
    request_seal (&other);
    expect_refused (w, other, ERR_CONFLICT, "used before");
    expect (w, req_hold (&w->rig, "alpha", "a.1", "phys", ALICE, 1, 100), "refused HoldExists");
    /* One that nothing would be written for. */
    expect (w, req_hold (&w->rig, "alpha", "a.1", "phys", ALICE, 1, 100000000),
            "refused HoldExists");
    /* Beside a replay in its batch, and beside what is refused without a record. */
    bankrig_send (&w->rig, &hold, &replayed);
    bankrig_send (&w->rig, &fresh, &made);
    bankrig_await (&w->rig, &replayed);
    bankrig_await (&w->rig, &made);
    assert_string_equal (replayed.text, "granted hold.1 100000000 phys");
    assert_string_equal (made.text, "granted hold.2 50000000 phys");
    other = req_hold (&w->rig, "alpha", "a.3", "phys", ALICE, -1, 100);
    bankrig_send (&w->rig, &fresh, &replayed);
    bankrig_send (&w->rig, &other, &made);
    bankrig_await (&w->rig, &replayed);
    bankrig_await (&w->rig, &made);
    assert_string_equal (replayed.text, "granted hold.2 50000000 phys");
    assert_int_not_equal (made.err.code, 0);
    expect (w, charge, "charged 60000000 total 60000000 released 40000000 phys acked 0");
    expect (w, charge, "charged 60000000 total 60000000 released 40000000 phys acked 0");
    expect_refused (w, req_charge (&w->rig, "alpha", "a.1", "hold.1", 1, start, 70, true),
                    ERR_CONFLICT, "final charge already");
    expect (w, req_hold (&w->rig, "alpha", "a.1", "phys", ALICE, 1, 100), "refused JobClosed");
    /* A job that was charged in part, and one whose hold was released, by a writer that forgot both. */
    expect (w, req_charge (&w->rig, "alpha", "a.2", "hold.2", 1, start, 10, false),
            "charged 10000000 total 10000000 released 0 phys acked 0");
    bankrig_close (&w->rig);
    bankrig_open (&w->rig, w->conninfo);
    assert_true (bankrig_wait_up (&w->rig, true));
    w->rig.keys = 3000;
    expect (w, req_charge (&w->rig, "alpha", "a.2", "hold.2", 1, start, 30, true),
            "charged 20000000 total 30000000 released 20000000 phys acked 0");
    expect (w, charge, "charged 60000000 total 60000000 released 40000000 phys acked 0");
    prove (w);
}

/* Operations on both sides of a border of the journal's parts. */
static void parts (void **state)
{
    struct world *w = *state;
    time_us start = clock_now_us () - 3600 * US_PER_S;
    bankrig_close (&w->rig);
    pg_fixture_run (
        w->sql,
        "INSERT INTO op SELECT 4194301, client, substr (hash, 1, 16), hash, kind, on_behalf, site, job, "
        "note, effective_at, recorded_at, status, outcome FROM op ORDER BY id DESC LIMIT 1");
    bankrig_open (&w->rig, w->conninfo);
    assert_true (bankrig_wait_up (&w->rig, true));
    w->rig.keys = 3000;
    for (int i = 1; i <= 3; i++) {
        char job[32], hold[32], text[80];
        snprintf (job, sizeof (job), "a.%d", i);
        snprintf (hold, sizeof (hold), "hold.%d", i);
        snprintf (text, sizeof (text), "granted %s 100000000 phys", hold);
        expect (w, req_hold (&w->rig, "alpha", job, "phys", ALICE, 1, 100), text);
        expect (w, req_charge (&w->rig, "alpha", job, hold, 1, start, 60, true),
                "charged 60000000 total 60000000 released 40000000 phys acked 0");
    }
    assert_int_equal (4194303, pg_fixture_number (w->sql, "SELECT max (op_id) FROM entry_0"));
    assert_int_equal (4194304, pg_fixture_number (w->sql, "SELECT min (op_id) FROM entry_1"));
    assert_int_equal (12, pg_fixture_number (w->sql, "SELECT count (*) FROM entry_1"));
    prove (w);
}

/* A database of a newer version is refused. */
static void newer_schema (void **state)
{
    struct world *w = *state;
    bankrig_close (&w->rig);
    pg_fixture_run (w->sql, "INSERT INTO schema_version VALUES (999, 'from the future', now ())");
    bankrig_open (&w->rig, w->conninfo);
    struct timeval tv = {0, 400000};
    event_base_loopexit (w->rig.base, &tv);
    event_base_dispatch (w->rig.base);
    assert_false (w->rig.up);
    struct ledger_request req = req_deposit (&w->rig, "phys", CREDIT, 0, 0);
    struct answer a = {0};
    assert_int_equal (ERR_UNAVAILABLE,
                      committer_submit (w->rig.committer, &req, NULL, NULL, NULL, &a.err));
    assert_non_null (strstr (a.err.text, "made by a newer one"));
}

/* What one statement writes has one number in its transaction: how many wrote the last operation of a kind, its
 * entries and the rest. */
static long long statements (struct world *w, const char *kind, const char *rest)
{
    char ask[900];
    snprintf (
        ask, sizeof (ask),
        "WITH o AS (SELECT id, cmin::text AS n FROM op WHERE kind = '%s' ORDER BY id DESC LIMIT 1) "
        "SELECT count (DISTINCT n) FROM (SELECT n FROM o UNION ALL SELECT e.cmin::text FROM "
        "entry e JOIN o ON o.id = e.op_id %s) x",
        kind, rest);
    return pg_fixture_number (w->sql, ask);
}

/* A lone hold, of a signed job or of one that a site claims, and its charge are a statement each; one of several rows
 * per table is not. */
static void alone_is_one_statement (void **state)
{
    struct world *w = *state;
    struct ledger_request hold = req_hold (&w->rig, "alpha", "alpha.1", "phys", ALICE, 8, 100);
    ask_sign (&hold.hold);
    hold.hold.part = "main";
    request_seal (&hold);
    expect (w, hold, "granted hold.1 800000000 phys");
    expect (w, req_charge (&w->rig, "alpha", "alpha.1", "hold.1", 8, clock_now_us (), 75, true),
            "charged 600000000 total 600000000 released 200000000 phys acked 0");
    assert_int_equal (statements (w, "hold", "UNION ALL SELECT cmin::text FROM signed"), 1);
    assert_int_equal (statements (w, "charge",
                                  "UNION ALL SELECT cmin::text FROM charge UNION ALL SELECT "
                                  "cmin::text FROM charge_leg UNION ALL SELECT cmin::text FROM "
                                  "usage UNION ALL SELECT cmin::text FROM hold UNION ALL SELECT "
                                  "cmin::text FROM hold_leg"),
                      1);
    expect (w, req_hold (&w->rig, "alpha", "alpha.2", "phys", ALICE, 1, 100),
            "granted hold.2 100000000 phys");
    assert_int_equal (statements (w, "hold",
                                  "UNION ALL SELECT cmin::text FROM hold WHERE id = 2 UNION ALL "
                                  "SELECT cmin::text FROM hold_leg WHERE hold_id = 2 UNION ALL "
                                  "SELECT b.cmin::text FROM balance b JOIN hold_leg g USING "
                                  "(allocation_id) WHERE g.hold_id = 2"),
                      1);
    expect (w, req_deposit (&w->rig, "phys", 1000 * CREDIT, 0, 0), "done alloc.8");
    expect (w, req_hold (&w->rig, "alpha", "alpha.3", "phys", ALICE, 8, 100),
            "granted hold.3 800000000 phys");
    assert_int_equal (
        2, pg_fixture_number (w->sql, "SELECT count (*) FROM hold_leg WHERE hold_id = 3"));
    assert_true (statements (w, "hold", "") > 1); /* on two allocations */
    prove (w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (life_of_a_job, fresh, closed),
        cmocka_unit_test_setup_teardown (alone_is_one_statement, fresh, closed),
        cmocka_unit_test_setup_teardown (keys, fresh, closed),
        cmocka_unit_test_setup_teardown (overrun, fresh, closed),
        cmocka_unit_test_setup_teardown (unheld, fresh, closed),
        cmocka_unit_test_setup_teardown (one_hold_per_incarnation, fresh, closed),
        cmocka_unit_test_setup_teardown (journal_is_fixed, fresh, closed),
        cmocka_unit_test_setup_teardown (only_one_writer, fresh, closed),
        cmocka_unit_test_setup_teardown (fallback_rules, fresh, closed),
        cmocka_unit_test_setup_teardown (allocation_ends, fresh, closed),
        cmocka_unit_test_setup_teardown (not_new, fresh, closed),
        cmocka_unit_test_setup_teardown (parts, fresh, closed),
        cmocka_unit_test_setup_teardown (newer_schema, fresh, closed),
    };
    return cmocka_run_group_tests (tests, up, down);
}
