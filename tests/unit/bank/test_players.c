/* May anybody make himself more? Random sequences of whatever there is to ask, by two agencies, a lead and a member,
 * through the committer on a real PostgreSQL: whatever they try one after the other, no agency takes, moves or spends
 * what another gave, and no lead or member ever has more to spend by an act of his own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

#define LEAD "nui://test/user/bob"
#define MEMBER "nui://test/user/alice"
#define CREDIT MICRO_PER_CREDIT

enum { GAMES = 6, CALLS = 250 };
enum { NSF, DFG, AGENCIES, THE_LEAD = AGENCIES, THE_MEMBER, PLAYERS };
static const char *const name_of[PLAYERS] = {"nsf", "dfg", "the lead", "the member"};
static const char *const client_of[PLAYERS] = {"nui://test/agency/nsf", "nui://test/agency/dfg",
                                               LEAD, MEMBER};

struct world {
    struct pg_fixture *pg;
    struct bankrig rig;
    PGconn *sql;
    uint64_t dice;
    int done[LEDGER_KINDS]; /* how often each kind was not refused */
};

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->pg = pg_fixture_start (false);
    *state = w;
    return w->pg ? 0 : -1;
}

static int down (void **state)
{
    struct world *w = *state;
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

static void must (struct world *w, struct ledger_request req)
{
    struct answer a = bankrig_ask (&w->rig, &req);
    if (a.err.code)
        fail_msg ("%s: %s", ledger_kind_name (req.kind), a.err.text);
}

static unsigned throw (struct world * w, unsigned below)
{
    w->dice = w->dice * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (unsigned)(w->dice >> 33) % below;
}

/* ---- what each has ---- */

static credit_micro given_by (struct world *w, const char *agency)
{
    char sql[300];
    snprintf (sql, sizeof (sql),
              "SELECT coalesce (sum (b.posted), 0) FROM balance b JOIN allocation l ON l.id = "
              "b.allocation_id WHERE l.giver = '%s'",
              agency);
    return pg_fixture_number (w->sql, sql);
}

/* All that he could spend, or let somebody spend whom he makes a member: of projects that he is in, and below those
 * that he leads. Closed or not: he is not to open either. */
static credit_micro reach_of (struct world *w, const char *identity)
{
    char sql[1400];
    snprintf (
        sql, sizeof (sql),
        "WITH RECURSIVE mine AS (SELECT m.project_id, m.role FROM membership m JOIN person p ON p.id = m.person_id "
        "WHERE p.identity = '%s' AND m.valid_to = 9223372036854775807), "
        "led AS (SELECT project_id AS id FROM mine WHERE role = 'lead' UNION SELECT c.id FROM project c JOIN led ON "
        "c.parent_id = led.id) "
        "SELECT coalesce (sum (b.posted - b.held + l.credit_limit), 0) FROM allocation l JOIN balance b ON "
        "b.allocation_id = l.id JOIN account a ON a.id = l.account_id WHERE a.class = 'PROJECT' AND "
        "a.project_id IN (SELECT id FROM led UNION SELECT project_id FROM mine)",
        identity);
    return pg_fixture_number (w->sql, sql);
}

struct purse {
    credit_micro of[PLAYERS], all;
};

static struct purse purse_of (struct world *w)
{
    struct purse p = {.all = pg_fixture_number (w->sql, "SELECT sum (posted) FROM balance")};
    for (int i = 0; i < PLAYERS; i++)
        p.of[i] = i < AGENCIES ? given_by (w, name_of[i]) : reach_of (w, client_of[i]);
    return p;
}

/* ---- what they try ---- */

static const char *const accounts[] = {"phys", "rich", "dark", "lasers", "new0", "new1", "new2"};
static const char *const projects[] = {"physics", "other", "optics", "extra", "third"};
enum { ACCOUNTS = 7, PROJECTS = 5 };

static int64_t some_alloc (struct world *w)
{
    return 5 + (int64_t) throw (w, 30);
}

/* Of what moves credits. */
static struct ledger_request moving (struct world *w, unsigned what, const char *a, const char *b)
{
    credit_micro amount = (1 + (credit_micro) throw (w, 60)) * CREDIT;
    int64_t alloc = throw (w, 2) ? some_alloc (w) : 0;
    struct ledger_request req = req_transfer (&w->rig, a, b, amount);
    req.transfer.allocation_id = alloc;
    switch (what) {
    case 0:
        return req;
    case 1:
        if (throw (w, 3)) /* downwards */
            req = req_transfer (&w->rig, throw (w, 2) ? "phys" : "rich",
                                throw (w, 2) ? "lasers" : b, amount);
        req.kind = LEDGER_SPLIT;
        return req;
    case 2:
        req = req_withdraw (&w->rig, a, amount);
        req.withdraw.allocation_id = alloc;
        return req;
    case 3:
        return req_refund (&w->rig, pg_fixture_number (w->sql, "SELECT max (op_id) FROM charge"),
                           0);
    case 4:
        req = req_new (&w->rig, LEDGER_CARRY_FORWARD, "");
        req.carry.allocation_id = some_alloc (w);
        req.carry.valid_to = INT64_MAX - 5;
        req.carry.description = "";
        return req;
    case 5:
    case 6: /* mostly of one that was split off */
        req = req_new (&w->rig, LEDGER_SPLIT_BACK, "");
        req.split_back.allocation_id = pg_fixture_number (
            w->sql, "SELECT coalesce (max (id), 7) FROM allocation WHERE split_from IS NOT NULL");
        if (throw (w, 2))
            req.split_back.allocation_id = some_alloc (w);
        req.split_back.amount = throw (w, 2) ? amount : 0;
        req.split_back.description = "";
        return req;
    case 7:
        return req_limit (&w->rig, some_alloc (w), amount);
    default:
        req = req_new (
            &w->rig, what == 8 && !throw (w, 4) ? LEDGER_ACCOUNT_CLOSE : LEDGER_ACCOUNT_REOPEN, "");
        req.close.name = a;
        req.close.reason = "";
        return req;
    }
}

/* Of what comes from outside; only for those who give it. */
static struct ledger_request giving (struct world *w, unsigned what, const char *a,
                                     const char *funder)
{
    static char reference[32];
    credit_micro amount = (1 + (credit_micro) throw (w, 60)) * CREDIT;
    struct ledger_request req =
        req_deposit (&w->rig, a, amount, 0, clock_now_us () + 900 * US_PER_S);
    snprintf (reference, sizeof (reference), "R%u", throw (w, 1000000));
    req.deposit.reference = reference;
    req.deposit.grant_id = throw (w, 2) ? 1 + throw (w, 6) : 0;
    if (what == 0)
        return req;
    req.deposit.grant_id = 0;
    req.kind = LEDGER_GRANT;
    req.deposit.funder = funder;
    if (what == 1)
        return req;
    req = req_new (&w->rig,
                   what == 2   ? LEDGER_GRANT_EXTEND
                   : what == 3 ? LEDGER_GRANT_AMEND
                               : LEDGER_GRANT_REVOKE,
                   "");
    req.award.grant_id = 1 + throw (w, 6);
    req.award.valid_to = clock_now_us () + (900 + (int64_t) throw (w, 900)) * US_PER_S;
    req.award.amount = amount * 2;
    req.award.reason = "because";
    return req;
}

/* Of what opens ways: projects, people, accounts, roles. */
static struct ledger_request opening (struct world *w, unsigned what, const char *a, const char *b)
{
    static struct ledger_fallback_ask fallback;
    static struct ledger_scope scope;
    static char fresh[32];
    const char *p = projects[throw (w, PROJECTS)], *q = projects[throw (w, PROJECTS)];
    struct ledger_request req = req_member (&w->rig, p, throw (w, 2) ? MEMBER : LEAD);
    switch (what) {
    case 0:
    case 1:
        req.member.role = throw (w, 2) ? "lead" : "member";
        req.member.remove = throw (w, 3) == 0;
        return req;
    case 2:
        req = req_new (&w->rig, LEDGER_ACCOUNT_MODIFY, "");
        fallback = (struct ledger_fallback_ask){b, "", ""};
        scope = (struct ledger_scope){LEDGER_SCOPE_USER, throw (w, 2) ? LEAD : "ANY", false};
        req.account.name = a;
        req.account.project = "";
        req.account.fallbacks = &fallback;
        req.account.fallback_count = 1;
        req.account.scopes = (struct ledger_scopes){&scope, 1};
        req.account.keep_fallbacks = throw (w, 2);
        req.account.keep_scopes = throw (w, 2);
        if (req.account.keep_fallbacks)
            req.account.fallback_count = 0;
        return req;
    case 3:
        req = req_new (&w->rig, LEDGER_ROLE_SET, "");
        req.role.identity = throw (w, 2) ? LEAD : MEMBER;
        req.role.role = LEDGER_ROLE_MANAGER;
        return req;
    case 4:
        req = req_new (&w->rig, LEDGER_FREEZE, "");
        req.freeze.what = LEDGER_FREEZE_ACCOUNT;
        req.freeze.name = a;
        req.freeze.reason = "why";
        req.freeze.undo = throw (w, 3) > 0;
        return req;
    case 5:
        req = req_new (&w->rig, LEDGER_ACCOUNT_RENAME, "");
        req.rename.name = a;
        snprintf (fresh, sizeof (fresh), "n%u", throw (w, 1000000));
        req.rename.to = throw (w, 2) ? b : fresh;
        req.rename.reason = "";
        return req;
    case 6:
        req = req_new (&w->rig, LEDGER_PROJECT_MOVE, "");
        req.move.name = p;
        req.move.parent = throw (w, 3) ? q : "";
        req.move.reason = "";
        return req;
    case 7:
        req = req_project (&w->rig, p);
        req.project.parent = throw (w, 2) ? q : "";
        return req;
    default:
        return req_account (&w->rig, a, p, NULL, 0);
    }
}

static struct ledger_request any_request (struct world *w, int who)
{
    const char *a = accounts[throw (w, ACCOUNTS)], *b = accounts[throw (w, ACCOUNTS)];
    unsigned what = throw (w, 24);
    struct ledger_request req =
        what < 10   ? moving (w, what, a, b)
        : what < 15 ? giving (w, what - 10, a, who < AGENCIES ? name_of[who] : "nsf")
                    : opening (w, what - 15, a, b);
    req.agency = who < AGENCIES ? name_of[who] : NULL;
    req.by_user = who >= AGENCIES;
    req.client = req.on_behalf = client_of[who];
    return req;
}

/* ---- the world that they are in ---- */

static struct ledger_request as (struct ledger_request req, int who)
{
    req.agency = who < AGENCIES ? name_of[who] : NULL;
    req.client = req.on_behalf = client_of[who];
    return req;
}

/* physics, of nsf, with the lead and the member, and optics below it; other is dfg's, where nobody is. Both gave to
 * accounts of both; the lead's first jobs are charged. */
static void found (struct world *w)
{
    static const char *const to[] = {"phys", "dark", "phys", "rich", "lasers"};
    must (w, req_user (&w->rig, LEAD));
    must (w, req_user (&w->rig, MEMBER));
    must (w, as (req_project (&w->rig, "physics"), NSF));
    must (w, as (req_project (&w->rig, "other"), DFG));
    struct ledger_request optics = req_project (&w->rig, "optics"),
                          lead = req_member (&w->rig, "physics", LEAD);
    optics.project.parent = "physics";
    lead.member.role = "lead";
    must (w, optics);
    must (w, lead);
    must (w, req_member (&w->rig, "physics", MEMBER));
    must (w, req_account (&w->rig, "rich", "physics", NULL, 0));
    must (w, req_account (&w->rig, "phys", "physics", NULL, 0));
    must (w, req_account (&w->rig, "lasers", "optics", NULL, 0));
    must (w, req_account (&w->rig, "dark", "other", NULL, 0));
    must (w, req_rate (&w->rig, "alpha", 1000000));
    must (w, req_deposit (&w->rig, "phys", 1000 * CREDIT, 0, 0));
    must (w, req_deposit (&w->rig, "rich", 5000 * CREDIT, 0, 0));
    for (int i = 0; i < AGENCIES; i++) {
        struct ledger_request funder = req_new (&w->rig, LEDGER_FUNDER_CREATE, client_of[i]);
        funder.funder.name = name_of[i];
        funder.funder.description = "";
        must (w, funder);
    }
    for (int i = 0; i < 5; i++) {
        struct ledger_request grant =
            req_deposit (&w->rig, to[i], 100 * CREDIT, 0, clock_now_us () + 900 * US_PER_S);
        grant.kind = LEDGER_GRANT;
        grant.deposit.funder = name_of[i % 2];
        grant.deposit.reference = "R";
        grant.deposit.again = i > 1;
        must (w, grant);
    }
    must (w, req_hold (&w->rig, "alpha", "a.1", "phys", MEMBER, 1, 150));
    must (w, req_charge (&w->rig, "alpha", "a.1", "hold.1", 1, clock_now_us (), 150, true));
    must (w, req_hold (&w->rig, "alpha", "a.2", "phys", MEMBER, 1, 30));
}

static void judge (struct world *w, int step, int who, const struct ledger_request *req,
                   const struct purse *before)
{
    struct purse after = purse_of (w);
    const char *kind = ledger_kind_name (req->kind);
    bool gives = who < AGENCIES && (req->kind == LEDGER_DEPOSIT || req->kind == LEDGER_GRANT ||
                                    req->kind == LEDGER_GRANT_AMEND || req->kind == LEDGER_REFUND);
    if (after.all > before->all && !gives)
        fail_msg ("call %d, %s by %s made %lld of %lld", step, kind, name_of[who],
                  (long long)after.all, (long long)before->all);
    for (int k = 0; k < AGENCIES;
         k++) /* a lead passes on what they gave, where nothing is more or less by it */
        if (k != who && after.of[k] != before->of[k] &&
            (who < AGENCIES || after.all != before->all))
            fail_msg ("call %d, %s by %s: what %s gave went from %lld to %lld", step, kind,
                      name_of[who], name_of[k], (long long)before->of[k], (long long)after.of[k]);
    if (who >= AGENCIES && after.of[who] > before->of[who])
        fail_msg ("call %d, %s by %s: he has %lld to spend, and had %lld", step, kind, name_of[who],
                  (long long)after.of[who], (long long)before->of[who]);
}

/* So many calls in a world of its own, which they use up. */
static void game (struct world *w, int number)
{
    char name[32];
    snprintf (name, sizeof (name), "players%d", number);
    const char *conninfo = pg_fixture_database (w->pg, name);
    bankrig_open (&w->rig, conninfo);
    assert_true (bankrig_wait_up (&w->rig, true));
    w->sql = pg_fixture_connect (conninfo);
    found (w);
    for (int i = 0; i < CALLS; i++) {
        int who = (int) throw (w, PLAYERS);
        struct purse before = purse_of (w);
        struct ledger_request req = any_request (w, who);
        struct answer a = bankrig_ask (&w->rig, &req);
        if (a.err.code == ERR_UNAVAILABLE || a.err.code == ERR_INTERNAL)
            fail_msg ("call %d, %s: %s", i, ledger_kind_name (req.kind), a.err.text);
        w->done[req.kind] += a.err.code == 0;
        judge (w, i, who, &req, &before);
    }
    assert_int_equal (0, pg_fixture_number (w->sql, "SELECT count (*) FROM bank_role"));
    PQfinish (w->sql);
    bankrig_close (&w->rig);
}

static void players (void **state)
{
    static const enum ledger_kind tried[] = {
        LEDGER_SPLIT,          LEDGER_SPLIT_BACK,   LEDGER_TRANSFER,     LEDGER_GRANT,
        LEDGER_GRANT_EXTEND,   LEDGER_GRANT_AMEND,  LEDGER_GRANT_REVOKE, LEDGER_MEMBER,
        LEDGER_ACCOUNT_RENAME, LEDGER_PROJECT_MOVE, LEDGER_FREEZE,       LEDGER_ACCOUNT_CREATE,
        LEDGER_ACCOUNT_MODIFY, LEDGER_DEPOSIT,      LEDGER_WITHDRAW,     LEDGER_CARRY_FORWARD,
        LEDGER_ACCOUNT_CLOSE};
    struct world *w = *state;
    const char *seed = getenv ("NUI_PROP_SEED");
    w->dice = seed ? strtoull (seed, NULL, 10) : 3;
    for (int i = 0; i < GAMES; i++)
        game (w, i);
    for (size_t i = 0; !seed && i < sizeof (tried) / sizeof (tried[0]);
         i++) /* it was not all refused */
        if (w->done[tried[i]] == 0)
            fail_msg ("no %s was done", ledger_kind_name (tried[i]));
}

static int64_t newest_of (struct world *w)
{
    return pg_fixture_number (w->sql, "SELECT max (id) FROM allocation");
}

/* An agency's plain deposit stays its own when the bank's people carry it forward, and when they transfer it. */
static void stays_the_givers (void **state)
{
    struct world *w = *state;
    const char *conninfo = pg_fixture_database (w->pg, "stays");
    bankrig_open (&w->rig, conninfo);
    assert_true (bankrig_wait_up (&w->rig, true));
    w->sql = pg_fixture_connect (conninfo);
    found (w);
    struct ledger_request req =
        req_deposit (&w->rig, "rich", 100 * CREDIT, 0, clock_now_us () + 900 * US_PER_S);
    req.client = client_of[NSF];
    req.agency = name_of[NSF];
    must (w, req);
    credit_micro gave = given_by (w, "nsf");
    req = req_new (&w->rig, LEDGER_CARRY_FORWARD, "nui://test/operator/ops");
    req.carry.allocation_id = newest_of (w);
    req.carry.valid_to = INT64_MAX - 5;
    req.carry.description = "";
    must (w, req);
    assert_int_equal (gave, given_by (w, "nsf"));
    struct ledger_request move = req_transfer (&w->rig, "rich", "phys", 30 * CREDIT);
    move.transfer.allocation_id = newest_of (w);
    must (w, move);
    assert_int_equal (gave, given_by (w, "nsf"));
    req = req_withdraw (&w->rig, "rich", 70 * CREDIT);
    req.withdraw.allocation_id = newest_of (w) - 1;
    req.client = client_of[DFG];
    req.agency = name_of[DFG];
    assert_int_not_equal (0, bankrig_ask (&w->rig, &req).err.code);
    req.key = req_new (&w->rig, LEDGER_WITHDRAW, client_of[NSF]).key;
    req.client = client_of[NSF];
    req.agency = name_of[NSF];
    must (w, req);
    assert_int_equal (gave - 70 * CREDIT, given_by (w, "nsf"));
    PQfinish (w->sql);
    bankrig_close (&w->rig);
}

static void denied (struct world *w, struct ledger_request req, const char *words)
{
    struct answer a = bankrig_ask (&w->rig, &req);
    if (a.err.code != ERR_DENIED || !strstr (a.err.text, words))
        fail_msg ("%s: %d '%s'", ledger_kind_name (req.kind), a.err.code, a.err.text);
}

/* The account, or nsf's first grant. */
static struct ledger_request frozen (struct world *w, const char *account, bool undo)
{
    return req_freeze (&w->rig, account ? LEDGER_FREEZE_ACCOUNT : LEDGER_FREEZE_GRANT, account, 1,
                       undo);
}

/* What is all people's, or was another's to do: rates, sites and roles; credits back for what another paid; and an end
 * of what another has frozen. */
static void not_its_own (struct world *w)
{
    static const char words[] = "is not for agency";
    struct ledger_request site = req_new (&w->rig, LEDGER_SITE_SET, ""),
                          role = req_new (&w->rig, LEDGER_ROLE_SET, "");
    site.site.site = "alpha";
    site.site.claims = site.site.keep_refunds = true;
    role.role.identity = MEMBER;
    role.role.role = LEDGER_ROLE_MANAGER;
    denied (w, as (req_rate (&w->rig, "alpha", 1), NSF), words);
    denied (w, as (site, NSF), words);
    denied (w, as (role, NSF), words);
    int64_t charge = pg_fixture_number (w->sql, "SELECT op_id FROM charge");
    denied (w, as (req_refund (&w->rig, charge, CREDIT), DFG), words);
    must (w, as (req_refund (&w->rig, charge, CREDIT), NSF));
    denied (w, as (frozen (w, NULL, false), DFG), words);
    must (w, frozen (w, NULL, false));
    denied (w, as (frozen (w, NULL, true), NSF), words);
    must (w, frozen (w, NULL, true));
    must (w, as (frozen (w, NULL, false), NSF));
    denied (w, as (frozen (w, NULL, true), DFG), words);
    must (w, as (frozen (w, NULL, true), NSF));
}

/* A lead freezes her own account, and thaws what she has frozen: no more than that. */
static void as_lead (struct world *w)
{
    struct ledger_request thaw = as (frozen (w, "phys", true), THE_LEAD),
                          freeze = as (frozen (w, "phys", false), THE_LEAD);
    must (w, frozen (w, "phys", false));
    thaw.by_user = freeze.by_user = true;
    denied (w, thaw, "neither an allocation manager nor a lead");
    must (w, frozen (w, "phys", true));
    must (w, freeze);
    thaw.key = req_new (&w->rig, LEDGER_FREEZE, LEAD).key;
    must (w, thaw);
}

static void only_what_is_theirs (void **state)
{
    struct world *w = *state;
    const char *conninfo = pg_fixture_database (w->pg, "theirs");
    bankrig_open (&w->rig, conninfo);
    assert_true (bankrig_wait_up (&w->rig, true));
    w->sql = pg_fixture_connect (conninfo);
    found (w);
    not_its_own (w);
    as_lead (w);
    PQfinish (w->sql);
    bankrig_close (&w->rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (stays_the_givers),
        cmocka_unit_test (only_what_is_theirs),
        cmocka_unit_test (players),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, up, down);
}
