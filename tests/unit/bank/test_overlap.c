/* Batches of the committer that are sent before the one before them is committed: when that one
 * fails, nothing of theirs is written, and everybody is answered as if there had been one batch at
 * a time. */
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

enum { PARTS = 4, PART = 20, ALL = PARTS * PART, HALF = ALL / 2 };

struct world {
    struct pg_fixture *pg;
    struct bankrig rig;
    PGconn *sql;
    struct ledger_request req[ALL];
    struct answer answer[ALL];
    char job[ALL][16];
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

static void expect (struct world *w, struct ledger_request req)
{
    struct answer a = bankrig_ask (&w->rig, &req);
    assert_string_equal (a.err.text, "");
}

static void sql (struct world *w, const char *text)
{
    PGresult *result = PQexec (w->sql, text);
    assert_int_equal (PQresultStatus (result), PGRES_COMMAND_OK);
    PQclear (result);
}

/* The first batch stands at its COMMIT long enough for the others to be sent behind it. */
static void pause_at_commit (struct world *w)
{
    sql (w, "CREATE FUNCTION pause () RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep (2); RETURN NULL; END $$");
    sql (w, "CREATE CONSTRAINT TRIGGER pause AFTER INSERT ON hold DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW WHEN (NEW.site_job = 'a.1') EXECUTE FUNCTION pause ()");
}

static int fresh (void **state)
{
    static int n;
    struct world *w = *state;
    char name[32];
    snprintf (name, sizeof (name), "overlap%d", n++);
    const char *conninfo = pg_fixture_database (w->pg, name);
    bankrig_open (&w->rig, conninfo);
    if (!bankrig_wait_up (&w->rig, true))
        return -1;
    w->sql = pg_fixture_connect (conninfo);
    expect (w, req_project (&w->rig, "physics"));
    expect (w, req_user (&w->rig, ALICE));
    expect (w, req_member (&w->rig, "physics", ALICE));
    expect (w, req_account (&w->rig, "phys", "physics", NULL, 0));
    expect (w, req_rate (&w->rig, "alpha", 1000000));
    expect (w, req_deposit (&w->rig, "phys", 100000 * MICRO_PER_CREDIT, 0, 0));
    expect (w, req_hold (&w->rig, "alpha", "a.0", "phys", ALICE, 1, 10)); /* all is known now */
    return 0;
}

static int closed (void **state)
{
    struct world *w = *state;
    bankrig_close (&w->rig);
    PQfinish (w->sql);
    return 0;
}

static void make (struct world *w)
{
    for (int i = 0; i < ALL; i++) {
        snprintf (w->job[i], sizeof (w->job[i]), "a.%d", i + 1);
        w->req[i] = req_hold (&w->rig, "alpha", w->job[i], "phys", ALICE, 1, 10);
    }
}

/* Each part as a batch, when the one before is under way. */
static void send_parts (struct world *w)
{
    const struct committer *c = w->rig.committer;
    while (committer_stats (c).under_way)
        event_base_loop (w->rig.base, EVLOOP_ONCE);
    for (int part = 0; part < PARTS; part++) {
        while (committer_is_up (c) && committer_stats (c).under_way < (uint32_t)part)
            event_base_loop (w->rig.base, EVLOOP_ONCE);
        for (int i = part * PART; i < (part + 1) * PART; i++)
            bankrig_send (&w->rig, &w->req[i], &w->answer[i]);
    }
}

static void run (struct world *w)
{
    uint64_t behind = committer_stats (w->rig.committer).behind;
    send_parts (w);
    for (int i = 0; i < ALL; i++)
        bankrig_await (&w->rig, &w->answer[i]);
    assert_true (committer_stats (w->rig.committer).behind >= behind + PARTS - 1);
}

/* holds: how many were granted; the books are whole. */
static void prove (struct world *w, int holds)
{
    int granted = 0;
    for (int i = 0; i < ALL; i++)
        granted += strncmp (w->answer[i].text, "granted ", 8) == 0;
    assert_int_equal (granted, holds);
    assert_int_equal (
        pg_fixture_number (w->sql, "SELECT count (*) FROM hold WHERE site_job <> 'a.0'"), holds);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT max (id) - count (*) FROM op"), 0);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT max (id) - count (*) FROM hold"), 0);
    assert_int_equal (
        pg_fixture_number (w->sql,
                           "SELECT (SELECT count (*) FROM op) - (SELECT sum (ops) FROM block)"),
        0);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT max (number) - count (*) FROM block"), 0);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT sum (held) FROM balance"),
                      (long long)(holds + 1) * 10 * MICRO_PER_CREDIT);
    assert_int_equal (
        pg_fixture_number (w->sql,
                           "SELECT sum (amount) FROM entry e JOIN account a ON a.id = e.account_id "
                           "WHERE layer = 'H' AND a.name = 'phys'"),
        (long long)(holds + 1) * 10 * MICRO_PER_CREDIT);
}

static void refuse (struct world *w, const char *trigger)
{
    sql (w, "CREATE FUNCTION refuse () RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep (2); RAISE EXCEPTION 'not this one'; END $$");
    sql (w, trigger);
}

static void both_written (void **state)
{
    struct world *w = *state;
    make (w);
    pause_at_commit (w);
    run (w);
    prove (w, ALL);
}

/* By a statement: what is behind it finds its transaction failed. */
static void first_refused (void **state)
{
    struct world *w = *state;
    make (w);
    w->req[3] = req_hold (&w->rig, "alpha", w->job[3], "phys", ALICE, 7, 11);
    refuse (
        w, "CREATE TRIGGER refuse BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.amount = 77000000) "
           "EXECUTE FUNCTION refuse ()");
    run (w);
    assert_non_null (strstr (w->answer[3].err.text, "not this one"));
    prove (w, ALL - 1);
}

/* By COMMIT: what is behind it begins a transaction of its own, and misses the block before its
 * own. */
static void first_commit_refused (void **state)
{
    struct world *w = *state;
    make (w);
    w->req[3] = req_hold (&w->rig, "alpha", w->job[3], "phys", ALICE, 7, 11);
    refuse (w,
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON hold DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW WHEN (NEW.procs = 7) EXECUTE FUNCTION refuse ()");
    run (w);
    assert_non_null (strstr (w->answer[3].err.text, "not this one"));
    prove (w, ALL - 1);
}

/* What is sent again while its first sending is being committed has that one's answer. */
static void sent_again (void **state)
{
    struct world *w = *state;
    make (w);
    for (int i = 0; i < HALF; i++)
        w->req[HALF + i] = w->req[i];
    pause_at_commit (w);
    run (w);
    for (int i = 0; i < HALF; i++)
        assert_string_equal (w->answer[HALF + i].text, w->answer[i].text);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT count (*) FROM hold"), HALF + 1);
}

/* The connection goes with some under way: whatever was committed, each is there once. */
static void cut (void **state)
{
    struct world *w = *state;
    make (w);
    refuse (w, "CREATE TRIGGER refuse BEFORE INSERT ON entry FOR EACH ROW WHEN "
               "(pg_terminate_backend (pg_backend_pid ()) "
               "AND false) EXECUTE FUNCTION refuse ()");
    send_parts (w);
    assert_true (bankrig_wait_up (&w->rig, false));
    PQclear (PQexec (w->sql, "DROP TRIGGER refuse ON entry"));
    assert_true (bankrig_wait_up (&w->rig, true));
    for (int i = 0; i < ALL; i++) {
        bankrig_await (&w->rig, &w->answer[i]);
        if (w->answer[i].err.code) /* it was never decided: asked for again */
            w->answer[i] = bankrig_ask (&w->rig, &w->req[i]);
    }
    prove (w, ALL);
}

/* A request whose signature, say, is looked at while PostgreSQL works on it. */
struct ask {
    struct world *w;
    int number;
    bool good;
    int checks;
};

static bool look (void *arg)
{
    struct ask *ask = arg;
    assert_false (ask->w->answer[ask->number].given);
    ask->checks++;
    if (!ask->good)
        err_set (&ask->w->req[ask->number].refused, ERR_UNAUTHENTIC, "not signed");
    return ask->good;
}

static void told (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct ask *ask = arg;
    struct answer *answer = &ask->w->answer[ask->number];
    assert_int_equal (ask->checks, 1);
    answer->given = true;
    answer->err = *err;
    if (!err->code)
        snprintf (answer->text, sizeof (answer->text), "%.*s", (int)len, (const char *)bytes);
}

static void submit (struct world *w, struct ask *ask, int number, bool good)
{
    struct err err = {0};
    *ask = (struct ask){.w = w, .number = number, .good = good};
    w->answer[number] = (struct answer){0};
    assert_int_equal (
        committer_submit (w->rig.committer, &w->req[number], look, told, ask, &err), 0);
}

static void judge (struct world *w, const struct ask *ask)
{
    bankrig_await (&w->rig, &w->answer[ask->number]);
    assert_string_equal (w->answer[ask->number].err.text, ask->good ? "" : "not signed");
}

static void found_bad_alone (void **state)
{
    struct world *w = *state;
    struct ask ask[3];
    make (w);
    memset (w->answer, 0, sizeof (w->answer));
    for (int i = 0; i < 3; i++) {
        assert_true (committer_is_idle (w->rig.committer));
        submit (w, &ask[i], i, i != 1);
        assert_false (committer_is_idle (w->rig.committer));
        judge (w, &ask[i]);
    }
    prove (w, 2);
}

/* What a bad one asks for was given before: its answer is that one's. */
static void found_bad_again (void **state)
{
    struct world *w = *state;
    struct ask ask;
    make (w);
    memset (w->answer, 0, sizeof (w->answer));
    bankrig_send (&w->rig, &w->req[0], &w->answer[0]);
    bankrig_await (&w->rig, &w->answer[0]);
    w->req[1] = w->req[0];
    submit (w, &ask, 1, false);
    bankrig_await (&w->rig, &w->answer[1]);
    assert_string_equal (w->answer[1].text, w->answer[0].text);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT count (*) FROM hold"), 2);
}

static void found_bad_among_others (void **state)
{
    struct world *w = *state;
    struct ask ask[PART];
    make (w);
    memset (w->answer, 0, sizeof (w->answer));
    for (int i = 0; i < PART; i++)
        submit (w, &ask[i], i, i % 5 != 3);
    for (int i = 0; i < PART; i++)
        judge (w, &ask[i]);
    prove (w, PART - PART / 5);
}

/* The database goes with one under way that was found bad: it is not asked about again. */
static void found_bad_and_cut (void **state)
{
    struct world *w = *state;
    struct ask ask;
    make (w);
    memset (w->answer, 0, sizeof (w->answer));
    refuse (w, "CREATE TRIGGER refuse BEFORE INSERT ON entry FOR EACH ROW WHEN "
               "(pg_terminate_backend (pg_backend_pid ()) "
               "AND false) EXECUTE FUNCTION refuse ()");
    submit (w, &ask, 0, false);
    assert_true (bankrig_wait_up (&w->rig, false));
    PQclear (PQexec (w->sql, "DROP TRIGGER refuse ON entry"));
    assert_true (bankrig_wait_up (&w->rig, true));
    judge (w, &ask);
    prove (w, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (both_written, fresh, closed),
        cmocka_unit_test_setup_teardown (first_refused, fresh, closed),
        cmocka_unit_test_setup_teardown (first_commit_refused, fresh, closed),
        cmocka_unit_test_setup_teardown (sent_again, fresh, closed),
        cmocka_unit_test_setup_teardown (cut, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_alone, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_again, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_among_others, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_and_cut, fresh, closed),
    };
    return cmocka_run_group_tests (tests, up, down);
}
