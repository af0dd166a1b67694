/* Migrations forward from every earlier version of the schema, each with data of all sorts: the journal and
 * the balances stay as they were, nui verify's rules hold, and the work goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/store/migrations.h"
#include "bank/store/pgloop.h"
#include "bank/store/statements.h"
#include "proto/base/clock.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

#define ALICE "nui://test/user/alice"
#define CREDIT MICRO_PER_CREDIT
#define FOREVER "9223372036854775807"
/* Operations first to last of these kinds, a millisecond each after 1970. */
#define OPS(first, last, kinds)                                                                      \
    "INSERT INTO op SELECT i, 'nui://test/agency/nsf', decode (lpad (to_hex (i), 32, '0'), 'hex'), " \
    "decode (repeat ('00', 32), 'hex'), (ARRAY[" kinds "])[i - " #first " + 1], "                    \
    "'nui://test/agency/nsf', '', '', '', 1000 * i, 1000 * i, 0, '' "                                \
    "FROM generate_series (" #first ", " #last ") i"

/* What a bank can keep, as SQL of the first version: what a later one changes, its own file changes. */
static const char *const data[] = {
    /* Grants of 1,000 and 200 credits; a job that holds 30; one that held 250 of both and was charged 220. */
    OPS (
        1, 10,
        "'project-create', 'user-create', 'member', 'account-create', 'rate-set', 'deposit', 'hold', 'deposit', 'hold', 'charge'"),
    "INSERT INTO project (id, name, description, op_id) VALUES (1, 'physics', '', 1); "
    "INSERT INTO person (id, identity, op_id) VALUES (1, '" ALICE "', 2); "
    "INSERT INTO membership VALUES (1, 1, 1, 'member', 0, " FOREVER ", 3); "
    "INSERT INTO account (id, name, class, project_id, unit_id, op_id) VALUES "
    "(4, 'phys', 'PROJECT', 1, 1, 4), (5, 'site:alpha', 'SITE_EARNED', NULL, 1, 5); "
    "INSERT INTO allocation (id, account_id, valid_from, valid_to, credit_limit, description, op_id) "
    "VALUES (4, 5, 0, " FOREVER ", 0, 'earned', 5), (5, 4, 0, " FOREVER ", 0, 'grant', 6), "
    "(6, 4, 0, 4000000000000000, 0, 'more', 8); "
    "INSERT INTO balance VALUES (5, 1000000000, 20000000, 980000000, 30000000), "
    "(6, 200000000, 200000000, 0, 0); "
    "INSERT INTO rate (site, version, valid_from, multiplier_ppm, op_id) VALUES "
    "('alpha', 1, 0, 1000000, 5); "
    "INSERT INTO entry VALUES (6, 0, 'P', 1, 1, 1, -1000000000, 6000, 6000), "
    "(6, 1, 'P', 1, 4, 5, 1000000000, 6000, 6000), (7, 0, 'H', 1, 5, 4, -30000000, 7000, 7000), "
    "(7, 1, 'H', 1, 4, 5, 30000000, 7000, 7000), (8, 0, 'P', 1, 1, 1, -200000000, 8000, 8000), "
    "(8, 1, 'P', 1, 4, 6, 200000000, 8000, 8000), (9, 0, 'H', 1, 5, 4, -250000000, 9000, 9000), "
    "(9, 1, 'H', 1, 4, 6, 200000000, 9000, 9000), (9, 2, 'H', 1, 4, 5, 50000000, 9000, 9000), "
    "(10, 0, 'H', 1, 4, 6, -200000000, 10000, 10000), (10, 1, 'H', 1, 4, 5, -50000000, 10000, 10000), "
    "(10, 2, 'H', 1, 5, 4, 250000000, 10000, 10000), (10, 3, 'P', 1, 4, 6, -200000000, 10000, 10000), "
    "(10, 4, 'P', 1, 4, 5, -20000000, 10000, 10000), (10, 5, 'P', 1, 5, 4, 220000000, 10000, 10000); "
    "INSERT INTO hold (id, op_id, site, site_job, component, incarnation, grid_job, asked_id, "
    "account_id, identity, procs, walltime_us, start_at, expires_at, rate_version, rate_ppm, amount, "
    "open) VALUES (1, 7, 'alpha', 'alpha.1', 'main', 0, 'grid.1', 4, 4, '" ALICE "', 1, 30000000, "
    "7000, 630007000, 1, 1000000, 30000000, true), (2, 9, 'alpha', 'alpha.9', 'main', 0, 'grid.9', 4, "
    "4, '" ALICE "', 1, 250000000, 9000, 850009000, 1, 1000000, 250000000, false); "
    "INSERT INTO hold_leg VALUES (1, 0, 5, 30000000, 0, 0), (2, 0, 6, 200000000, 200000000, 0), "
    "(2, 1, 5, 50000000, 20000000, 30000000); "
    "INSERT INTO usage (id, site, site_job, component, incarnation, grid_job, hold_id, account_id, "
    "identity, procs, start_at, end_at, total, final) VALUES (1, 'alpha', 'alpha.9', 'main', 0, "
    "'grid.9', 2, 4, '" ALICE "', 1, 9000, 220009000, 220000000, true); "
    "INSERT INTO charge (id, op_id, usage_id, hold_id, sequence, procs, start_at, end_at, final, "
    "successful, rate_version, rate_ppm, amount, total, released, formula) VALUES (1, 10, 1, 2, 1, 1, "
    "9000, 220009000, true, true, 1, 1000000, 220000000, 220000000, 30000000, '220 s'); "
    "INSERT INTO charge_leg VALUES (1, 0, 6, 200000000, 'HELD'), (1, 1, 5, 20000000, 'HELD'); "
    "INSERT INTO site_ack VALUES ('alpha', 1, '')",
    /* What the second leg paid is given back. */
    OPS (11, 11, "'refund'"),
    "INSERT INTO refund_leg VALUES (11, 0, 1, 1, 5, 20000000); "
    "INSERT INTO entry VALUES (11, 0, 'P', 1, 5, 4, -20000000, 11000, 11000), "
    "(11, 1, 'P', 1, 4, 5, 20000000, 11000, 11000); "
    "UPDATE balance SET settled = 0, posted = 1000000000 WHERE allocation_id = 5",
    /* A card with factors: twice as dear, and twice that at QoS high. */
    OPS (12, 12, "'rate-set'"),
    "INSERT INTO rate (site, version, valid_from, multiplier_ppm, op_id, measure) VALUES "
    "('alpha', 2, 12000, 2000000, 12, 'wall'); "
    "INSERT INTO rate_factor VALUES ('alpha', 2, 0, 'qos', 'high', 2000000), "
    "('alpha', 2, 1, 'class', '*', 1000000), ('alpha', 2, 2, 'group', '*', 1500000)",
    /* A grant of 100 credits, of which 40 are split off for a project below. */
    OPS (13, 17, "'funder-create', 'grant', 'project-create', 'account-create', 'split'"),
    "INSERT INTO funder VALUES (1, 'nsf', '', 13); "
    "INSERT INTO award VALUES (1, 1, 4, 'PHY-17', 14); "
    "INSERT INTO project (id, name, description, op_id, parent_id) VALUES (2, 'optics', '', 15, 1); "
    "INSERT INTO account (id, name, class, project_id, unit_id, op_id) VALUES "
    "(6, 'sub', 'PROJECT', 2, 1, 16); "
    "INSERT INTO allocation (id, account_id, valid_from, valid_to, description, op_id, award_id) VALUES "
    "(7, 4, 0, " FOREVER ", 'PHY-17', 14, 1), (8, 6, 0, " FOREVER ", 'part', 17, 1); "
    "INSERT INTO balance VALUES (7, 60000000, 0, 60000000, 0), (8, 40000000, 0, 40000000, 0); "
    "INSERT INTO entry VALUES (14, 0, 'P', 1, 1, 1, -100000000, 14000, 14000), "
    "(14, 1, 'P', 1, 4, 7, 100000000, 14000, 14000), (17, 0, 'P', 1, 4, 7, -40000000, 17000, 17000), "
    "(17, 1, 'P', 1, 6, 8, 40000000, 17000, 17000)",
    /* What memory costs the job that is held for: a quarter of a credit per second. */
    "UPDATE hold SET extra_parts = 250000 * 1024 WHERE id = 1",
    /* A row of reconciliation, and who sees to it. */
    OPS (18, 19, "'reconcile', 'reconcile-set'"),
    "INSERT INTO recon_row VALUES (1, 18, 'alpha', 'LATE', 'alpha.9', 'main', 0, '', 10, '" ALICE
    "', 'phys', "
    "220000000, 1, 1, 10000, ''); "
    "INSERT INTO recon_event VALUES (19, 1, 'owned', '" ALICE "', 0, '')",
    /* The sums of phys after its first charge. */
    "INSERT INTO checkpoint VALUES (4, 10500, 980000000, 30000000, 9); "
    "INSERT INTO checkpoint_run VALUES (10, 10500)",
    /* A quote that keeps the card of before. */
    OPS (20, 20, "'quote'"),
    "INSERT INTO quote (id, op_id, identity, expires_at, reusable) VALUES "
    "(1, 20, '" ALICE "', 4000000000000000, false); "
    "INSERT INTO quote_card (quote_id, position, site, rate_version) VALUES (1, 0, 'alpha', 1)",
    /* The job that is held for was signed. */
    "INSERT INTO signed VALUES ('" ALICE
    "', decode (repeat ('17', 16), 'hex'), decode (repeat ('18', 32), "
    "'hex'), 'grid.1', '', 'main', 1, " FOREVER ")",
    /* Last: all operations in one block. */
    "INSERT INTO block SELECT 1, 1, count (*), max (recorded_at), decode (repeat ('00', 32), 'hex'), "
    "decode (repeat ('01', 32), 'hex'), '', '' FROM op",
};
enum {
    DATA = sizeof (data) / sizeof (data[0]),
    TELLS = 3 /* the version that tells of all there is */
};

static void schema_upto (PGconn *sql, int version)
{
    char text[128];
    pg_fixture_run (sql,
                    "CREATE SCHEMA bank; CREATE TABLE bank.schema_version (version integer PRIMARY "
                    "KEY, name text NOT NULL, applied_at timestamptz NOT NULL); SET search_path = "
                    "bank");
    for (int i = 0; bank_migrations[i].version && bank_migrations[i].version <= version; i++) {
        pg_fixture_run (sql, bank_migrations[i].sql);
        snprintf (text, sizeof (text), "INSERT INTO schema_version VALUES (%d, '%s', now ())",
                  bank_migrations[i].version, bank_migrations[i].name);
        pg_fixture_run (sql, text);
    }
}

/* All that the books say: each balance, and the journal. */
static char *books (PGconn *sql)
{
    return pg_fixture_value (
        sql,
        "SELECT (SELECT string_agg (concat_ws (' ', allocation_id, granted, settled, posted, held), ', ' "
        "ORDER BY allocation_id) FROM balance) || '; ' || (SELECT string_agg (e::text, ' ' "
        "ORDER BY op_id, leg) FROM entry e)");
}

/* Each of the rules that nui verify --rules asks for. */
static void rules_hold (PGconn *sql)
{
    PGresult *res = PQexec (sql, bank_stmt[BANK_STMT_COUNT + RD_LEDGER_CHECKS].sql);
    assert_string_equal (PQresultErrorMessage (res), "");
    assert_true (PQntuples (res) > 5);
    for (int i = 0; i < PQntuples (res); i++)
        if (strcmp (PQgetvalue (res, i, 2), "0") != 0)
            fail_msg ("%s: %s", PQgetvalue (res, i, 0), PQgetvalue (res, i, 3));
    PQclear (res);
}

static void expect (struct bankrig *rig, struct ledger_request req, const char *text)
{
    struct answer a = bankrig_ask (rig, &req);
    assert_string_equal (a.err.text, "");
    assert_string_equal (a.text, text);
}

static void priced (struct bankrig *rig, const char *job, const char *qos, int64_t quote,
                    int number, int64_t credits)
{
    char text[80], hold[32];
    struct ledger_request req = req_hold (rig, "alpha", job, "phys", ALICE, 1, 100);
    req.hold.ask.qos = qos;
    req.hold.ask.quote_id = quote;
    req.hold.ask.quote_job = job;
    request_seal (&req);
    snprintf (hold, sizeof (hold), "hold.%d", number);
    snprintf (text, sizeof (text), "granted %s %lld phys", hold, (long long)(credits * CREDIT));
    expect (rig, req, text);
    snprintf (text, sizeof (text), "released %lld acked 1", (long long)(credits * CREDIT));
    expect (rig, req_release (rig, "alpha", hold), text);
}

/* What was signed is known: as another job of the grid, or with another content, it is a replay. */
static void signed_before (struct bankrig *rig)
{
    struct ledger_request req = req_hold (rig, "alpha", "alpha.8", "phys", ALICE, 1, 100);
    ask_sign (&req.hold);
    memset (req.hold.uuid.b, 0x17, sizeof (req.hold.uuid.b));
    memset (req.hold.hash, 0x18, sizeof (req.hold.hash));
    req.hold.part = "main";
    req.hold.job.grid_job = "grid.2";
    expect (rig, req, "refused Replayed");
    req.key = req_new (rig, LEDGER_HOLD, "alpha").key;
    req.hold.job.grid_job = "grid.1";
    req.hold.hash[0] = 0;
    expect (rig, req, "refused Replayed");
}

/* What there is goes on: the open hold, the charge's legs, the rates, what is left of each account. */
static void goes_on (struct bankrig *rig)
{
    signed_before (rig);
    expect (rig, req_charge (rig, "alpha", "alpha.1", "hold.1", 1, clock_now_us (), 20, true),
            "charged 25000000 total 25000000 released 5000000 phys acked 1");
    struct ledger_request row = req_new (rig, LEDGER_RECON_SET, "nui://test/operator/ops");
    row.recon_set.row_id = 1;
    row.recon_set.owner = "";
    row.recon_set.note = "seen to";
    row.recon_set.close = true;
    expect (rig, row, "done row.1");
    priced (rig, "alpha.2", "", 0, 3, 200);
    priced (rig, "alpha.3", "high", 0, 4, 400);
    priced (rig, "alpha.4", "", 1, 5, 100);
    expect (rig, req_hold (rig, "alpha", "alpha.5", "phys", ALICE, 1, 517),
            "granted hold.6 1034000000 phys");
    expect (rig, req_transfer (rig, "sub", "phys", 40 * CREDIT), "done alloc.9");
    expect (rig, req_refund (rig, 10, 200 * CREDIT), "refunded 200000000 left 0");
}

static void from_version (struct pg_fixture *pg, int version, int newest)
{
    char name[32];
    struct bankrig rig;
    snprintf (name, sizeof (name), "version%d", version);
    const char *conninfo = pg_fixture_database (pg, name);
    PGconn *sql = pg_fixture_connect (conninfo);
    pg_fixture_run (sql, "SET client_min_messages = warning");
    schema_upto (sql, version);
    for (int i = 0; i < DATA; i++)
        pg_fixture_run (sql, data[i]);
    if (version >= TELLS) /* by hand: no block tells of it */
        pg_fixture_run (sql, "DELETE FROM unsealed; SELECT tell_again (t) FROM told_tables () t");
    char *before = books (sql);
    bankrig_open (&rig, conninfo);
    assert_true (bankrig_wait_up (&rig, true));
    rig.keys = 5000;
    assert_int_equal (newest, pg_fixture_number (sql, "SELECT max (version) FROM schema_version"));
    char *after = books (sql);
    assert_string_equal (before, after);
    rules_hold (sql);
    goes_on (&rig);
    rules_hold (sql);
    free (before);
    free (after);
    PQfinish (sql);
    bankrig_close (&rig);
}

static void migrations (void **state)
{
    (void)state;
    int newest = 0;
    struct pg_fixture *pg = pg_fixture_start (false);
    assert_non_null (pg);
    for (int i = 0; bank_migrations[i].version; i++)
        newest = bank_migrations[i].version;
    for (int version = 1; version <= newest; version++)
        from_version (pg, version, newest);
    pg_fixture_stop (pg);
}

/* What the bank's own people carried forward, transferred or split of an agency's deposit is the agency's again; what they
 * deposited is nobody's. */
static void givers (void **state)
{
    (void)state;
    struct pg_fixture *pg = pg_fixture_start (false);
    assert_non_null (pg);
    PGconn *sql = pg_fixture_connect (pg_fixture_database (pg, "givers"));
    pg_fixture_run (sql, "SET client_min_messages = warning");
    schema_upto (sql, TELLS);
    for (int i = 0; i < DATA; i++)
        pg_fixture_run (sql, data[i]);
    pg_fixture_run (
        sql,
        "INSERT INTO op SELECT i, 'nui://test/operator/ops', decode (lpad (to_hex (i), 32, '0'), 'hex'), "
        "decode (repeat ('00', 32), 'hex'), (ARRAY['carry-forward', 'transfer', 'deposit', 'split', 'transfer'])[i - 60], "
        "'nui://test/operator/ops', '', '', '', 1000 * i, 1000 * i, 0, '' FROM generate_series (61, 65) i; "
        "INSERT INTO allocation (id, account_id, valid_from, valid_to, description, op_id, split_from) VALUES "
        "(61, 4, 0, " FOREVER ", '', 61, NULL), (62, 6, 0, " FOREVER
        ", '', 62, NULL), (63, 4, 0, " FOREVER ", '', 63, NULL), (64, 6, 0, " FOREVER
        ", '', 64, 62), (65, 6, 0, " FOREVER ", '', 65, NULL), (66, 6, 0, " FOREVER
        ", '', 65, NULL); "
        "INSERT INTO entry VALUES (61, 0, 'P', 1, 4, 5, -9, 1, 1), (61, 1, 'P', 1, 4, 61, 9, 1, 1), "
        "(62, 0, 'P', 1, 4, 61, -9, 1, 1), (62, 1, 'P', 1, 6, 62, 9, 1, 1), "
        "(63, 0, 'P', 1, 1, 1, -9, 1, 1), (63, 1, 'P', 1, 4, 63, 9, 1, 1), "
        "(64, 0, 'P', 1, 6, 62, -5, 1, 1), (64, 1, 'P', 1, 6, 64, 5, 1, 1), "
        "(65, 0, 'P', 1, 4, 63, -2, 1, 1), (65, 1, 'P', 1, 6, 65, 2, 1, 1), "
        "(65, 2, 'P', 1, 4, 61, -3, 1, 1), (65, 3, 'P', 1, 6, 66, 3, 1, 1)");
    for (int i = 0; bank_migrations[i].version; i++)
        if (bank_migrations[i].version > TELLS)
            pg_fixture_run (sql, bank_migrations[i].sql);
    char *seen = pg_fixture_value (
        sql, "SELECT string_agg (id || giver, ' ' ORDER BY id) FROM allocation WHERE id > 3");
    assert_string_equal (seen, "4nsf 5nsf 6nsf 7nsf 8nsf 61nsf 62nsf 63 64nsf 65 66nsf");
    assert_int_not_equal (0, pg_fixture_number (sql, "SELECT count (*) FROM unsealed WHERE line "
                                                     "LIKE '%\"giver\": \"nsf\"%'"));
    free (seen);
    PQfinish (sql);
    pg_fixture_stop (pg);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (migrations), cmocka_unit_test (givers)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
