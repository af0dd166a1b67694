/* nui-bank beside a PostgreSQL that is no longer the one that counts: its synchronous standby is gone (and may have taken
 * its place), or it is the standby itself. What it shows may be old, and is not answered. Or beside one that is there and
 * takes nothing: its disk is full. An operator is told of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

static void pause_ms (long ms)
{
    nanosleep (&(struct timespec){0, ms * 1000000}, NULL);
}

/* "": it was answered. */
static char *balance (struct bankd *d, char out[ERR_TEXT_MAX])
{
    Nui__Bank__V1__BalanceRequest m = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    m.account = TEXT ("phys");
    struct bankd_reply reply = bankd_call (d, WHO_OPS, "Balance", &m.base);
    snprintf (out, ERR_TEXT_MAX, "%s", reply.err.text);
    if (!reply.err.code)
        assert_int_equal (1, ((Nui__Bank__V1__BalanceReply *)reply.message)->n_balances);
    bankd_reply_free (&reply);
    return out;
}

/* Until a balance is answered so: part of a refusal, or "" for an answer. */
static void wait_balance (struct bankd *d, const char *part)
{
    char text[ERR_TEXT_MAX];
    time_us deadline = clock_monotonic_us () + 60 * US_PER_S;
    do {
        balance (d, text);
        if (*part ? strstr (text, part) != NULL : !*text)
            return;
        pause_ms (100);
    } while (clock_monotonic_us () < deadline);
    fail_msg ("not within 60 s: '%s', but '%s'", part, text);
}

static void lost (void **state)
{
    (void)state;
    struct bankd_heard heard;
    char config[512];
    bankd_hear (&heard, config);
    strcat (config, "READBOUND 0:00:02\n");
    struct pg_fixture *pg = pg_fixture_start_archiving (), *second;
    struct bankd d, beside;
    char settings[512], conninfo[512], text[ERR_TEXT_MAX];
    assert_non_null (pg);
    const char *first = pg_fixture_database (pg, "ledger");
    assert_true (pg_fixture_backup (pg));
    snprintf (settings, sizeof (settings),
              "primary_conninfo = 'host=%s user=bank application_name=second'",
              pg_fixture_dir (pg));
    second = pg_fixture_from_backup (pg, "standby.signal", settings);
    assert_non_null (second);
    PGconn *sql = pg_fixture_connect (first);
    pg_fixture_run (sql, "ALTER SYSTEM SET synchronous_standby_names = 'second'");
    pg_fixture_run (sql, "SELECT pg_reload_conf ()");
    time_us deadline = clock_monotonic_us () + 60 * US_PER_S;
    while (pg_fixture_number (
               sql, "SELECT count (*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 0 &&
           clock_monotonic_us () < deadline)
        pause_ms (50);
    PQfinish (sql);
    bankd_open (&d, NUI_BANK_PROGRAM, first, config);
    assert_true (bankd_wait_serving (&d, true));
    bankd_found (&d);
    assert_string_equal ("", balance (&d, text));
    pause_ms (900); /* nobody writes, and it is asked to all the same */
    for (int i = 0; i < 5; i++, pause_ms (500))
        wait_balance (&d, "");

    /* The standby is never read from. */
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=ledger user=bank",
              pg_fixture_dir (second));
    bankd_open (&beside, NUI_BANK_PROGRAM, conninfo, "");
    pause_ms (500);
    assert_string_not_equal ("", balance (&beside, text));
    assert_true (bankd_wait_serving (&beside, false));
    bankd_close (&beside);

    /* The standby is lost: for all that the primary knows it has taken over. */
    pg_fixture_crash (second);
    wait_balance (&d, "may be old");
    assert_non_null (strstr (balance (&d, text), "has committed nothing for 00:00:"));
    bankd_wait_heard (
        &heard, "DatabaseDown|database|the bank's database has committed nothing for 00:00:0", 1);
    bankd_wait_heard (&heard, ": is its standby gone?|test", 1);
    /* A bank that begins beside it knows no better. */
    bankd_stop (&d, SIGKILL);
    bankd_start (&d, NUI_BANK_PROGRAM);
    for (int i = 0; i < 6; i++, pause_ms (500))
        assert_string_not_equal ("", balance (&d, text));
    assert_true (bankd_wait_serving (&d, false));
    bankd_wait_heard (&heard, "DatabaseDown|", 2); /* it is another daemon */
    assert_true (pg_fixture_again (second));
    wait_balance (&d, "");
    assert_true (bankd_wait_serving (&d, true));
    bankd_wait_heard (&heard, "DatabaseUp|database|the bank's database commits again|test", 1);

    /* And so it is where the primary itself is gone. */
    pg_fixture_crash (pg);
    wait_balance (&d, "database is away");
    bankd_wait_heard (&heard, "DatabaseDown|database|the bank's database is away for 00:00:0", 1);
    assert_true (pg_fixture_again (pg));
    wait_balance (&d, "");
    bankd_wait_heard (&heard, "DatabaseUp|database|the bank's database commits again|test", 2);
    bankd_close (&d);
    pg_fixture_stop (second);
    pg_fixture_stop (pg);
}

static int create (struct bankd *d, const char *name)
{
    Nui__Bank__V1__ProjectCreateRequest m = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
    uint8_t key[16];
    m.key = bankd_key (d, key);
    m.name = TEXT (name);
    struct bankd_reply reply = bankd_call (d, WHO_OPS, "ProjectCreate", &m.base);
    int code = reply.err.code;
    bankd_reply_free (&reply);
    return code;
}

/* The disk is full: what is asked for is refused, the state is not recorded, and both are told, until there is room. */
static void full (void **state)
{
    struct bankd_heard heard;
    struct bankd d;
    char config[512], path[300];
    (void)state;
    bankd_hear (&heard, config);
    strcat (config, "NOTIFICATIONEVENTS WriteRefused StateFailed\nSTATEINTERVAL 1:00:00\n");
    struct pg_fixture *pg = pg_fixture_start (false);
    assert_non_null (pg);
    const char *conninfo = pg_fixture_database (pg, "ledger");
    bankd_open (&d, NUI_BANK_PROGRAM, conninfo, config);
    assert_true (bankd_wait_serving (&d, true));
    PGconn *sql = pg_fixture_connect (conninfo);
    pg_fixture_run (
        sql, "CREATE FUNCTION no_room () RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
             "'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$");
    pg_fixture_run (
        sql, "CREATE TRIGGER full_disk BEFORE INSERT ON bank.op EXECUTE FUNCTION no_room ()");
    bankd_wait_heard (&heard, "|", 0);
    assert_int_equal (ERR_UNAVAILABLE, create (&d, "physics"));
    bankd_wait_heard (&heard, "WriteRefused|database|", 1);
    bankd_wait_heard (&heard, "could not extend file: No space left on device", 1);
    pg_fixture_run (sql, "DROP TRIGGER full_disk ON bank.op");
    assert_int_equal (0, create (&d, "physics"));
    bankd_wait_heard (
        &heard, "WriteTaken|database|the bank's database takes what is written again|test", 1);
    /* There is something to record now, which is due at once; only that is refused. */
    assert_int_equal (0, bankd_stop (&d, SIGTERM));
    snprintf (path, sizeof (path), "%s/nui-bank.cfg", d.dir);
    FILE *f = fopen (path, "a");
    assert_non_null (f);
    fprintf (f, "STATEINTERVAL 1\n");
    fclose (f);
    bankd_start (&d, NUI_BANK_PROGRAM);
    assert_true (bankd_wait_serving (&d, true));
    pg_fixture_run (
        sql,
        "CREATE TRIGGER full_disk BEFORE INSERT ON bank.op FOR EACH ROW WHEN (NEW.kind = 'state') "
        "EXECUTE FUNCTION no_room ()");
    assert_int_equal (0, create (&d, "chemistry"));
    bankd_wait_heard (&heard, "StateFailed|state|the state of all objects was not recorded: ", 1);
    pg_fixture_run (sql, "DROP TRIGGER full_disk ON bank.op");
    bankd_wait_heard (&heard, "StateRecorded|state|the state of all objects was recorded|test", 1);
    PQfinish (sql);
    bankd_close (&d);
    pg_fixture_stop (pg);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (lost), cmocka_unit_test (full)};
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
