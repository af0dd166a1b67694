/* Batches of the committer that are sent before the one before them is committed, behind it on one
 * connection or beside it on another: when that one fails, nothing of theirs is written, and everybody is answered as
 * if there had been one batch at a time. */
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
    bool beside; /* the second connection is there */
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

static void turn (struct world *w)
{
    struct timeval soon = {0, 10000};
    event_base_loopexit (w->rig.base, &soon);
    event_base_loop (w->rig.base, EVLOOP_ONCE);
}

/* Ends the second connection; keeps it away by its lock. */
static bool second_ends (struct world *w, bool away)
{
    pg_fixture_run (
        w->sql, "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE "
                "application_name = 'nui-bank second committer' AND datname = current_database ()");
    if (away)
        pg_fixture_run (w->sql, "SELECT pg_advisory_lock (22085085163218540)");
    return bankrig_wait_second (&w->rig, false);
}

static int fresh (void **state)
{
    static int n;
    struct world *w = *state;
    char name[32];
    snprintf (name, sizeof (name), "overlap%d", n++);
    const char *conninfo = pg_fixture_database (w->pg, name);
    bankrig_open (&w->rig, conninfo);
    if (!bankrig_wait_up (&w->rig, true) || !bankrig_wait_second (&w->rig, true))
        return -1;
    w->sql = pg_fixture_connect (conninfo);
    w->beside = true;
    expect (w, req_project (&w->rig, "physics"));
    expect (w, req_user (&w->rig, ALICE));
    expect (w, req_member (&w->rig, "physics", ALICE));
    expect (w, req_account (&w->rig, "phys", "physics", NULL, 0));
    expect (w, req_rate (&w->rig, "alpha", 1000000));
    expect (w, req_deposit (&w->rig, "phys", 100000 * MICRO_PER_CREDIT, 0, 0));
    expect (w, req_hold (&w->rig, "alpha", "a.0", "phys", ALICE, 1, 10)); /* all is known now */
    return 0;
}

static int fresh_behind (void **state)
{
    struct world *w = *state;
    if (fresh (state) != 0 || !second_ends (w, true))
        return -1;
    w->beside = false;
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
    memset (w->answer, 0, sizeof (w->answer));
    while (committer_stats (c).under_way)
        turn (w);
    for (int part = 0; part < PARTS; part++) {
        while (committer_is_up (c) && committer_stats (c).under_way < (uint32_t)part &&
               !(part > 0 && w->answer[part * PART - 1].given))
            turn (w);
        for (int i = part * PART; i < (part + 1) * PART; i++)
            bankrig_send (&w->rig, &w->req[i], &w->answer[i]);
    }
}

/* behind: so many batches at least are sent behind, or beside, others; no fourth one beside the second, while the first is
 * under way. */
static void run (struct world *w, uint32_t behind)
{
    struct committer_stats before = committer_stats (w->rig.committer), after;
    send_parts (w);
    for (int i = 0; i < ALL; i++)
        bankrig_await (&w->rig, &w->answer[i]);
    after = committer_stats (w->rig.committer);
    assert_true (after.behind >= before.behind + behind);
    if (w->beside)
        assert_true (after.beside >= before.beside + behind);
    else
        assert_true (after.beside == before.beside);
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

/* After the pause at the first's COMMIT, so that the fourth is sent while the second is still under way. */
static void refuse (struct world *w, const char *trigger)
{
    sql (w, "CREATE FUNCTION refuse () RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep (4); RAISE EXCEPTION 'not this one'; END $$");
    sql (w, trigger);
}

static void both_written (void **state)
{
    struct world *w = *state;
    make (w);
    pause_at_commit (w);
    run (w, PARTS - 1);
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
    run (w, w->beside ? PARTS - 2 : PARTS - 1);
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
    run (w, w->beside ? PARTS - 2 : PARTS - 1);
    assert_non_null (strstr (w->answer[3].err.text, "not this one"));
    prove (w, ALL - 1);
}

/* By a statement of the second batch, or by its COMMIT: what is after it was decided upon it. */
static void second_refused (void **state)
{
    struct world *w = *state;
    make (w);
    w->req[PART + 3] = req_hold (&w->rig, "alpha", w->job[PART + 3], "phys", ALICE, 7, 11);
    pause_at_commit (w);
    refuse (
        w, "CREATE TRIGGER refuse BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.amount = 77000000) "
           "EXECUTE FUNCTION refuse ()");
    run (w, PARTS - 1);
    assert_non_null (strstr (w->answer[PART + 3].err.text, "not this one"));
    prove (w, ALL - 1);
}

static void second_commit_refused (void **state)
{
    struct world *w = *state;
    make (w);
    w->req[PART + 3] = req_hold (&w->rig, "alpha", w->job[PART + 3], "phys", ALICE, 7, 11);
    pause_at_commit (w);
    refuse (w,
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON hold DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW WHEN (NEW.procs = 7) EXECUTE FUNCTION refuse ()");
    run (w, PARTS - 1);
    assert_non_null (strstr (w->answer[PART + 3].err.text, "not this one"));
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
    send_parts (w);
    for (int i = 0; i < ALL; i++)
        bankrig_await (&w->rig, &w->answer[i]);
    for (int i = 0; i < HALF; i++)
        assert_string_equal (w->answer[HALF + i].text, w->answer[i].text);
    assert_int_equal (pg_fixture_number (w->sql, "SELECT count (*) FROM hold"), HALF + 1);
}

/* Neither sees what the other writes: a job that is held by one is not held anew by the other, whose turn comes when
 * that one is committed. Nothing has to be decided again, and nothing waits for a lock. */
static void the_same_jobs (void **state)
{
    struct world *w = *state;
    uint64_t retries = committer_stats (w->rig.committer).retries;
    make (w);
    for (int i = 0; i < PART; i++) {
        w->req[PART + i] = req_hold (&w->rig, "alpha", w->job[i], "phys", ALICE, 1, 10);
        w->req[3 * PART + i] =
            req_hold (&w->rig, "alpha", w->job[2 * PART + i], "phys", ALICE, 1, 10);
    }
    pause_at_commit (w);
    send_parts (w);
    for (int i = 0; i < ALL; i++)
        bankrig_await (&w->rig, &w->answer[i]);
    for (int i = 0; i < ALL; i++)
        assert_true ((strcmp (w->answer[i].text, "refused HoldExists") == 0) ==
                     (i / PART % 2 == 1));
    assert_int_equal (pg_fixture_number (w->sql, "SELECT count (*) FROM hold"), HALF + 1);
    assert_true (committer_stats (w->rig.committer).retries == retries);
}

/* A signed job that is paid for by one is not paid for again by the other: no constraint of the database would say so. */
static void the_same_signed (void **state)
{
    struct world *w = *state;
    make (w);
    for (int i = 0; i < ALL; i++) {
        struct ledger_hold_ask *ask = &w->req[i].hold;
        ask_sign (ask);
        ask->uuid.b[0] = (uint8_t)(1 + i / (2 * PART) * PART + i % PART);
    }
    pause_at_commit (w);
    send_parts (w);
    for (int i = 0; i < ALL; i++)
        bankrig_await (&w->rig, &w->answer[i]);
    for (int i = 0; i < ALL; i++)
        assert_true ((strncmp (w->answer[i].text, "granted", 7) == 0) == (i / PART % 2 == 0));
    assert_int_equal (pg_fixture_number (w->sql, "SELECT count (*) FROM hold"), HALF + 1);
}

/* The second has written what it may before the first comes to the balances that both change. */
static void first_is_slow (void **state)
{
    struct world *w = *state;
    uint64_t retries = committer_stats (w->rig.committer).retries;
    make (w);
    sql (w, "CREATE FUNCTION pause () RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep (2); RETURN NEW; END $$");
    sql (w, "CREATE TRIGGER pause BEFORE INSERT ON op FOR EACH ROW WHEN (NEW.job = 'grid.slow') "
            "EXECUTE FUNCTION pause ()");
    w->req[0].hold.job.grid_job = "grid.slow";
    run (w, PARTS - 2);
    prove (w, ALL);
    assert_true (committer_stats (w->rig.committer).retries == retries);
}

/* The second connection goes with a batch on it: all begins anew, and each is there once. Without one under way the
 * first goes on. */
static void second_cut (void **state)
{
    struct world *w = *state;
    make (w);
    pause_at_commit (w);
    send_parts (w);
    assert_true (committer_stats (w->rig.committer).under_way > 1);
    assert_true (second_ends (w, false));
    for (int i = 0; i < ALL; i++) {
        bankrig_await (&w->rig, &w->answer[i]);
        if (w->answer[i].err.code) /* it was never decided: asked for again */
            w->answer[i] = bankrig_ask (&w->rig, &w->req[i]);
    }
    prove (w, ALL);
    assert_true (bankrig_wait_second (&w->rig, true));
    assert_true (second_ends (w, false));
    assert_true (committer_is_up (w->rig.committer));
    expect (w, req_deposit (&w->rig, "phys", MICRO_PER_CREDIT, 0, 0));
    assert_true (bankrig_wait_second (&w->rig, true));
}

/* Who would be the writer waits for the end of both connections of the one before. */
static void waits_for_both (void **state)
{
    struct world *w = *state;
    second_ends (w, true);
    pg_fixture_run (w->sql,
                    "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE "
                    "application_name = 'nui-bank committer' AND datname = current_database ()");
    assert_true (bankrig_wait_up (&w->rig, false));
    for (int i = 0; i < 100; i++)
        turn (w);
    assert_false (committer_is_up (w->rig.committer));
    pg_fixture_run (w->sql, "SELECT pg_advisory_unlock (22085085163218540)");
    assert_true (bankrig_wait_up (&w->rig, true));
    assert_true (bankrig_wait_second (&w->rig, true));
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
    assert_int_equal (committer_submit (w->rig.committer, &w->req[number], look, told, ask, &err),
                      0);
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
        cmocka_unit_test_setup_teardown (second_refused, fresh, closed),
        cmocka_unit_test_setup_teardown (second_commit_refused, fresh, closed),
        cmocka_unit_test_setup_teardown (sent_again, fresh, closed),
        cmocka_unit_test_setup_teardown (the_same_signed, fresh, closed),
        cmocka_unit_test_setup_teardown (the_same_signed, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (the_same_jobs, fresh, closed),
        cmocka_unit_test_setup_teardown (both_written, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (first_refused, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (first_commit_refused, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (second_refused, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (second_commit_refused, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (sent_again, fresh_behind, closed),
        cmocka_unit_test_setup_teardown (first_is_slow, fresh, closed),
        cmocka_unit_test_setup_teardown (second_cut, fresh, closed),
        cmocka_unit_test_setup_teardown (waits_for_both, fresh, closed),
        cmocka_unit_test_setup_teardown (cut, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_alone, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_again, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_among_others, fresh, closed),
        cmocka_unit_test_setup_teardown (found_bad_and_cut, fresh, closed),
    };
    return cmocka_run_group_tests (tests, up, down);
}
