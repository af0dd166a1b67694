/* A service that does not own its tables: the schema by script, the ledger through the lesser role,
 * and pgTAP over rights, constraints, triggers and plans (rights.sql; left out where pgTAP is not
 * installed). */
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

#define ALICE "nui://test/user/alice"
#define CREDIT MICRO_PER_CREDIT

struct world {
    struct pg_fixture *pg;
    const char *conninfo;
    char service[512]; /* conninfo of the lesser role */
    char out[65536];
};

static int shell (struct world *w, const char *command)
{
    FILE *p = popen (command, "r");
    assert_non_null (p);
    size_t len = fread (w->out, 1, sizeof (w->out) - 1, p);
    w->out[len] = '\0';
    return pclose (p);
}

static void script (struct world *w)
{
    char command[1024];
    snprintf (command, sizeof (command), "'%s' --schema service | psql -qX -d '%s' 2>&1",
              NUI_BANK_PROGRAM, w->conninfo);
    if (shell (w, command) != 0 || strstr (w->out, "ERROR"))
        fail_msg ("%s", w->out + (strlen (w->out) > 900 ? strlen (w->out) - 900 : 0));
}

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->pg = pg_fixture_start (false);
    *state = w;
    if (!w->pg)
        return -1;
    w->conninfo = pg_fixture_database (w->pg, "ledger");
    PGconn *sql = pg_fixture_connect (w->conninfo);
    PQclear (PQexec (sql, "CREATE ROLE service LOGIN; CREATE ROLE other LOGIN"));
    PQfinish (sql);
    const char *user = strstr (w->conninfo, " user=");
    snprintf (w->service, sizeof (w->service), "%.*s user=service", (int)(user - w->conninfo),
              w->conninfo);
    script (w);
    script (w); /* again: nothing is left to do */
    return 0;
}

static int down (void **state)
{
    struct world *w = *state;
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

static void expect (struct bankrig *rig, struct ledger_request req, const char *text)
{
    struct answer a = bankrig_ask (rig, &req);
    assert_string_equal (a.err.text, "");
    assert_string_equal (a.text, text);
}

/* pgTAP first: it looks at an empty ledger and rolls back. */
static void pgtap (void **state)
{
    struct world *w = *state;
    char command[1024];
    PGconn *sql = pg_fixture_connect (w->conninfo);
    long long there = pg_fixture_number (
        sql, "SELECT count (*) FROM pg_available_extensions WHERE name = 'pgtap'");
    PQfinish (sql);
    if (!there) {
        print_message ("pgTAP is not installed (Debian's postgresql-15-pgtap): not run\n");
        skip ();
    }
    snprintf (command, sizeof (command),
              "psql -qXAt -v ON_ERROR_STOP=1 -d '%s' -f '%s/rights.sql' 2>&1", w->conninfo,
              SOURCE_DIR);
    int status = shell (w, command);
    if (strstr (w->out, "not ok"))
        fail_msg ("%.900s", strstr (w->out, "not ok"));
    if (status != 0 || !strstr (w->out, "\n1.."))
        fail_msg ("%s", w->out + (strlen (w->out) > 900 ? strlen (w->out) - 900 : 0));
}

/* Every kind of statement that the service sends is one that its role may. */
static void lesser_role (void **state)
{
    struct world *w = *state;
    struct bankrig rig;
    static const char *const rich[] = {"rich"};
    bankrig_open (&rig, w->service);
    assert_true (bankrig_wait_up (&rig, true));
    expect (&rig, req_project (&rig, "physics"), "done project.1");
    expect (&rig, req_user (&rig, ALICE), "done user.1");
    expect (&rig, req_member (&rig, "physics", ALICE), "done membership.1");
    expect (&rig, req_account (&rig, "rich", "physics", NULL, 0), "done account.4");
    expect (&rig, req_account (&rig, "phys", "physics", rich, 1), "done account.5");
    expect (&rig, req_rate (&rig, "alpha", 1000000), "done alpha.1");
    expect (&rig, req_deposit (&rig, "phys", 1000 * CREDIT, 0, 0), "done alloc.5");
    expect (&rig, req_hold (&rig, "alpha", "a.1", "phys", ALICE, 1, 100),
            "granted hold.1 100000000 phys");
    struct ledger_request extend = req_new (&rig, LEDGER_EXTEND, "alpha");
    extend.extend.site = "alpha";
    extend.extend.hold_id = "hold.1";
    extend.extend.walltime = 200 * US_PER_S;
    expect (&rig, extend, "extended hold.1 200000000 phys");
    struct ledger_request charge =
        req_charge (&rig, "alpha", "a.1", "hold.1", 1, clock_now_us (), 50, false);
    charge.charge.sequence = 1;
    expect (&rig, charge, "charged 50000000 total 50000000 released 0 phys acked 1");
    charge = req_charge (&rig, "alpha", "a.1", "hold.1", 1, clock_now_us (), 60, true);
    charge.charge.sequence = 2;
    expect (&rig, charge, "charged 10000000 total 60000000 released 140000000 phys acked 2");
    expect (&rig, req_limit (&rig, 5, CREDIT), "done alloc.5");
    struct ledger_request member = req_member (&rig, "physics", ALICE);
    member.member.role = "lead";
    expect (&rig, member, "done membership.2");
    struct ledger_request close = req_new (&rig, LEDGER_ACCOUNT_CLOSE, "nsf");
    close.close.name = "rich";
    close.close.reason = "";
    expect (&rig, close, "done account.4");
    bankrig_close (&rig);
}

/* A role without rights is told so, and nothing else happens. */
static void no_rights (void **state)
{
    struct world *w = *state;
    struct bankrig rig;
    struct answer a = {0};
    char conninfo[512];
    const char *user = strstr (w->conninfo, " user=");
    snprintf (conninfo, sizeof (conninfo), "%.*s user=other", (int)(user - w->conninfo),
              w->conninfo);
    bankrig_open (&rig, conninfo);
    struct ledger_request req = req_project (&rig, "x");
    time_us deadline = clock_monotonic_us () + 60 * US_PER_S;
    do {
        event_base_loop (rig.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        assert_int_equal (ERR_UNAVAILABLE,
                          committer_submit (rig.committer, &req, NULL, NULL, NULL, &a.err));
    } while (!strstr (a.err.text, "permission denied") && clock_monotonic_us () < deadline);
    if (!strstr (a.err.text, "permission denied"))
        fail_msg ("%s", a.err.text);
    bankrig_close (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (pgtap),
        cmocka_unit_test (lesser_role),
        cmocka_unit_test (no_rights),
    };
    return cmocka_run_group_tests (tests, up, down);
}
