/* The operations manual rehearsed: a backup restored to a moment, a standby that takes over and a
 * primary that comes back too late, a full disk under the tables and one under pg_wal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

#define ALICE "nui://test/user/alice"
#define CREDIT MICRO_PER_CREDIT

static void expect (struct bankrig *rig, struct ledger_request req, const char *text)
{
    struct answer a = bankrig_ask (rig, &req);
    assert_string_equal (a.err.text, "");
    assert_string_equal (a.text, text);
}

static void found (struct bankrig *rig)
{
    expect (rig, req_project (rig, "physics"), "done project.1");
    expect (rig, req_user (rig, ALICE), "done user.1");
    expect (rig, req_member (rig, "physics", ALICE), "done membership.1");
    expect (rig, req_account (rig, "phys", "physics", NULL, 0), "done account.4");
    expect (rig, req_rate (rig, "alpha", 1000000), "done alpha.1");
    expect (rig, req_deposit (rig, "phys", 1000 * CREDIT, 0, 0), "done alloc.5");
}

static void books_balance (PGconn *sql)
{
    assert_int_equal (
        0, pg_fixture_number (
               sql, "SELECT count (*) FROM balance b WHERE posted <> coalesce ((SELECT "
                    "sum (amount) FROM entry e WHERE e.allocation_id = b.allocation_id "
                    "AND layer = 'P'), 0) OR held <> coalesce ((SELECT sum (amount) FROM "
                    "entry e WHERE e.allocation_id = b.allocation_id AND layer = 'H'), 0)"));
    assert_int_equal (
        0, pg_fixture_number (sql, "SELECT count (*) FROM (SELECT first_op, lag (first_op + "
                                   "ops) OVER (ORDER BY number) AS due FROM block) x WHERE "
                                   "first_op <> due"));
}

static void database_at (const struct pg_fixture *pg, char conninfo[512])
{
    snprintf (conninfo, 512, "host=%s dbname=ledger user=bank", pg_fixture_dir (pg));
}

/* Somebody with the superuser's rights destroys the ledger; it is restored to just before. */
static void point_in_time (void **state)
{
    (void)state;
    struct bankrig rig;
    struct pg_fixture *pg = pg_fixture_start_archiving (), *restored;
    char conninfo[512];
    assert_non_null (pg);
    bankrig_open (&rig, pg_fixture_database (pg, "ledger"));
    assert_true (bankrig_wait_up (&rig, true));
    found (&rig);
    database_at (pg, conninfo);
    PGconn *sql = pg_fixture_connect (conninfo);
    assert_true (pg_fixture_backup (pg));
    /* After the backup: what only the archive has. */
    struct ledger_request hold = req_hold (&rig, "alpha", "a.1", "phys", ALICE, 1, 100);
    expect (&rig, hold, "granted hold.1 100000000 phys");
    char *segment =
        pg_fixture_value (sql, "SELECT pg_walfile_name (pg_create_restore_point ('before'))");
    pg_fixture_run (sql,
                    "SET session_replication_role = replica; DELETE FROM entry; DELETE FROM hold; "
                    "UPDATE balance SET held = 0");
    pg_fixture_run (sql, "SELECT pg_switch_wal ()");
    char archived[160];
    snprintf (archived, sizeof (archived),
              "SELECT count (*) FROM pg_stat_archiver WHERE last_archived_wal >= '%s'", segment);
    free (segment);
    time_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (pg_fixture_number (sql, archived) == 0 && clock_monotonic_us () < deadline)
        nanosleep (&(struct timespec){0, 50000000}, NULL);
    PQfinish (sql);
    pg_fixture_crash (pg);
    restored = pg_fixture_from_backup (pg, "recovery.signal",
                                       "recovery_target_name = 'before'\n"
                                       "recovery_target_action = 'promote'");
    assert_non_null (restored);
    struct bankrig again;
    database_at (restored, conninfo);
    sql = pg_fixture_connect (conninfo);
    deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (pg_fixture_number (sql, "SELECT pg_is_in_recovery ()::int") &&
           clock_monotonic_us () < deadline)
        nanosleep (&(struct timespec){0, 50000000}, NULL);
    bankrig_open (&again, conninfo);
    assert_true (bankrig_wait_up (&again, true));
    books_balance (sql);
    /* What was acknowledged up to then is there: the same request gets its answer. */
    expect (&again, hold, "granted hold.1 100000000 phys");
    again.keys = 1000;
    expect (&again, req_charge (&again, "alpha", "a.1", "hold.1", 1, clock_now_us (), 60, true),
            "charged 60000000 total 60000000 released 40000000 phys acked 0");
    books_balance (sql);
    PQfinish (sql);
    bankrig_close (&again);
    bankrig_close (&rig);
    pg_fixture_stop (restored);
    pg_fixture_stop (pg);
}

/* Something of each kind that outsiders know by its number, of a ledger that goes on. */
static void numbers_given (const char *conninfo, uint64_t keys)
{
    struct bankrig rig;
    bankrig_open (&rig, conninfo);
    assert_true (bankrig_wait_up (&rig, true));
    rig.keys = keys;
    char job[32];
    for (int i = 0; i < 20; i++) {
        snprintf (job, sizeof (job), "a.%llu", (unsigned long long)rig.keys);
        struct ledger_request hold = req_hold (&rig, "alpha", job, "phys", ALICE, 1, 1);
        assert_int_equal (0, bankrig_ask (&rig, &hold).err.code);
    }
    struct ledger_request deposit = req_deposit (&rig, "phys", CREDIT, 0, 0);
    assert_int_equal (0, bankrig_ask (&rig, &deposit).err.code);
    struct ledger_request grant = req_deposit (&rig, "phys", CREDIT, 0, 0);
    grant.kind = LEDGER_GRANT;
    grant.deposit.funder = "f";
    grant.deposit.reference = job;
    assert_string_equal ("", bankrig_ask (&rig, &grant).err.text);
    struct ledger_quote_item item = {.site = "alpha", .procs = 1, .walltime = US_PER_S};
    struct ledger_quote ask = {
        .identity = ALICE, .account = "phys", .item = &item, .item_count = 1};
    struct ledger_request quote = req_new (&rig, LEDGER_QUOTE, ALICE);
    quote.quote.ask = &ask;
    quote.quote.keep = 60 * US_PER_S;
    assert_string_equal ("", bankrig_ask (&rig, &quote).err.text);
    bankrig_close (&rig);
}

/* What a ledger has forgotten that was restored has numbers that no other thing gets: sites' outboxes and people's
 * notes name it. */
static void numbers_never_again (void **state)
{
    (void)state;
    static const char *const table[] = {"hold", "allocation", "award", "quote"};
    struct pg_fixture *pg = pg_fixture_start (false);
    struct bankrig rig;
    char conninfo[512], sql[128];
    assert_non_null (pg);
    const char *first = pg_fixture_database (pg, "ledger");
    PGconn *other = pg_fixture_connect (pg_fixture_database (pg, "other"));
    bankrig_open (&rig, first);
    assert_true (bankrig_wait_up (&rig, true));
    found (&rig);
    struct ledger_request funder = req_new (&rig, LEDGER_FUNDER_CREATE, "nui://test/operator/ops");
    funder.funder.name = "f";
    funder.funder.description = "";
    expect (&rig, funder, "done funder.1");
    bankrig_close (&rig);
    bankrig_numbers_leap (100000);
    pg_fixture_run (other, "CREATE DATABASE kept TEMPLATE ledger"); /* the backup */
    numbers_given (first, 1000);                                    /* and what it has not */
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=kept user=bank", pg_fixture_dir (pg));
    numbers_given (conninfo, 2000);
    bankrig_numbers_leap (0);
    PGconn *lost = pg_fixture_connect (first), *restored = pg_fixture_connect (conninfo);
    for (int i = 0; i < 4; i++) {
        snprintf (sql, sizeof (sql), "SELECT max (id) FROM bank.%s", table[i]);
        long long before = pg_fixture_number (lost, sql);
        snprintf (
            sql, sizeof (sql),
            "SELECT min (id) FROM bank.%s WHERE op_id > (SELECT max (op_id) FROM bank.funder)",
            table[i]);
        assert_true (pg_fixture_number (restored, sql) > before);
    }
    books_balance (restored);
    PQfinish (lost);
    PQfinish (restored);
    PQfinish (other);
    pg_fixture_stop (pg);
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

static void turn (struct bankrig *rig, long ms)
{
    struct event *tick = event_new (rig->base, -1, 0, on_tick, NULL);
    struct timeval tv = {0, ms * 1000};
    event_add (tick, &tv);
    event_base_loop (rig->base, EVLOOP_ONCE);
    event_free (tick);
}

/* A standby that has all that was acknowledged takes over; the primary, back from the dead, can
 * acknowledge nothing alone. */
static void standby (void **state)
{
    (void)state;
    struct bankrig rig, other;
    struct pg_fixture *pg = pg_fixture_start_archiving (), *second;
    char conninfo[512], both[1024], settings[512];
    assert_non_null (pg);
    const char *first = pg_fixture_database (pg, "ledger");
    assert_true (pg_fixture_backup (pg));
    snprintf (settings, sizeof (settings),
              "primary_conninfo = 'host=%s user=bank application_name=second'",
              pg_fixture_dir (pg));
    second = pg_fixture_from_backup (pg, "standby.signal", settings);
    assert_non_null (second);
    database_at (pg, conninfo);
    PGconn *sql = pg_fixture_connect (conninfo);
    pg_fixture_run (sql, "ALTER SYSTEM SET synchronous_standby_names = 'second'");
    pg_fixture_run (sql, "SELECT pg_reload_conf ()");
    /* Until the server has read it, and the standby follows. */
    time_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (pg_fixture_number (sql, "SELECT count (*) FROM pg_stat_replication WHERE sync_state = "
                                   "'sync'") == 0 &&
           clock_monotonic_us () < deadline)
        nanosleep (&(struct timespec){0, 50000000}, NULL);
    bankrig_open (&rig, first);
    assert_true (bankrig_wait_up (&rig, true));
    found (&rig);
    struct ledger_request hold = req_hold (&rig, "alpha", "a.1", "phys", ALICE, 1, 100);
    expect (&rig, hold, "granted hold.1 100000000 phys");
    /* A second bank waits while the first has the lock, wherever it would be let in. */
    snprintf (both, sizeof (both),
              "host=%s,%s dbname=ledger user=bank target_session_attrs=read-write",
              pg_fixture_dir (pg), pg_fixture_dir (second));
    bankrig_open (&other, both);
    for (int i = 0; i < 10; i++)
        turn (&other, 50);
    assert_false (other.up);
    PQfinish (sql);
    /* The first machine dies: bank and database. */
    bankrig_close (&rig);
    pg_fixture_crash (pg);
    database_at (second, conninfo);
    sql = pg_fixture_connect (conninfo);
    pg_fixture_run (sql, "SELECT pg_promote ()");
    assert_true (bankrig_wait_up (&other, true));
    expect (&other, hold, "granted hold.1 100000000 phys");
    other.keys = 1000;
    expect (&other, req_hold (&other, "alpha", "a.2", "phys", ALICE, 1, 900),
            "granted hold.2 900000000 phys");
    books_balance (sql);
    /* The dead one comes back with its bank: nothing that it writes is acknowledged. */
    assert_true (pg_fixture_again (pg));
    bankrig_open (&rig, first);
    struct ledger_request late = req_hold (&other, "alpha", "a.3", "phys", ALICE, 1, 900);
    struct answer a = {0};
    deadline = clock_monotonic_us () + 120 * US_PER_S;
    while (!rig.up && clock_monotonic_us () < deadline)
        turn (&rig, 50);
    assert_true (rig.up);
    bankrig_send (&rig, &late, &a);
    for (int i = 0; i < 40 && !a.given; i++)
        turn (&rig, 50);
    assert_false (a.given && a.err.code == 0);
    bankrig_close (&rig);
    PQfinish (sql);
    bankrig_close (&other);
    pg_fixture_stop (second);
    pg_fixture_stop (pg);
}

/* A small file system of this process and its children only, at a new directory; false where it may
 * not be made. */
static bool small_disk (char dir[64], const char *size)
{
    char options[64];
    snprintf (options, sizeof (options), "size=%s,mode=0755", size);
    strcpy (dir, "/tmp/nui-disk-XXXXXX");
    assert_non_null (mkdtemp (dir));
    if (geteuid () == 0 && unshare (CLONE_NEWNS) == 0 &&
        mount ("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount ("tmpfs", dir, "tmpfs", 0, options) == 0)
        return true;
    rmdir (dir);
    return false;
}

static void small_disk_gone (const char *dir)
{
    assert_int_equal (0, umount2 (dir, MNT_DETACH));
    assert_int_equal (0, rmdir (dir));
}

/* Takes all the room that is left. */
static void fill (const char *file)
{
    static const char block[4096];
    int fd = open (file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true (fd >= 0);
    while (write (fd, block, sizeof (block)) > 0)
        ;
    assert_int_equal (ENOSPC, errno);
    close (fd);
}

/* The database is moved to a disk of its own, owned by the server's account. */
static void move_to (struct pg_fixture *pg, const char *dir)
{
    char text[512];
    struct stat st;
    snprintf (text, sizeof (text), "%s/data", pg_fixture_dir (pg));
    assert_int_equal (0, stat (text, &st));
    snprintf (text, sizeof (text), "%s/space", dir);
    assert_int_equal (0, mkdir (text, 0700));
    assert_int_equal (0, chown (text, st.st_uid, st.st_gid));
    snprintf (text, sizeof (text), "host=%s dbname=postgres user=bank", pg_fixture_dir (pg));
    PGconn *sql = pg_fixture_connect (text);
    snprintf (text, sizeof (text), "CREATE TABLESPACE small LOCATION '%s/space'", dir);
    pg_fixture_run (sql, text);
    pg_fixture_run (sql, "ALTER DATABASE ledger SET TABLESPACE small");
    PQfinish (sql);
}

/* Of a job of its own, whose name is kept in job. */
static struct ledger_request hold_number (struct bankrig *rig, int number, char job[32])
{
    snprintf (job, 32, "a.%d", number);
    return req_hold (rig, "alpha", job, "phys", ALICE, 1, 1);
}

/* The disk under the tables is full: holds go on until one needs room. That one is refused with a
 * sentence, nothing of it is written, all that was granted is there; and once there is room it is
 * granted under its old key. */
static void full_disk (void **state)
{
    (void)state;
    enum { MANY = 900 };
    struct bankrig rig;
    char dir[64], file[80], text[64], job[32];
    if (!small_disk (dir, "48m")) {
        print_message (
            "no disk was filled: a small file system needs root and a mount namespace\n");
        skip ();
    }
    struct pg_fixture *pg = pg_fixture_start (false);
    assert_non_null (pg);
    const char *conninfo = pg_fixture_database (pg, "ledger");
    move_to (pg, dir);
    bankrig_open (&rig, conninfo);
    assert_true (bankrig_wait_up (&rig, true));
    found (&rig);
    PGconn *sql = pg_fixture_connect (conninfo);
    snprintf (file, sizeof (file), "%s/filler", dir);
    fill (file);
    struct ledger_request hold;
    struct answer a = {0};
    int granted = 0;
    do {
        hold = hold_number (&rig, granted + 1, job);
        a = bankrig_ask (&rig, &hold);
        granted += !a.err.code;
    } while (!a.err.code && granted < MANY);
    for (int i = 0; i < 3; i++) {
        assert_int_equal (ERR_UNAVAILABLE, a.err.code);
        assert_non_null (strstr (a.err.text, "No space left on device"));
        assert_null (strchr (a.err.text, '\n'));
        assert_int_equal (granted, pg_fixture_number (sql, "SELECT count (*) FROM hold"));
        assert_int_equal (granted * CREDIT,
                          pg_fixture_number (sql, "SELECT sum (held) FROM balance "
                                                  "WHERE held > 0"));
        books_balance (sql);
        a = bankrig_ask (&rig, &hold);
    }
    assert_int_equal (0, unlink (file));
    snprintf (text, sizeof (text), "granted hold.%d 1000000 phys", granted + 1);
    expect (&rig, hold, text);
    expect (&rig, hold, text);
    for (int i = granted + 2; i <= granted + 50; i++) {
        char next[32];
        snprintf (text, sizeof (text), "granted hold.%d 1000000 phys", i);
        expect (&rig, hold_number (&rig, i, next), text);
    }
    assert_int_equal (granted + 50, pg_fixture_number (sql, "SELECT count (*) FROM hold"));
    books_balance (sql);
    PQfinish (sql);
    bankrig_close (&rig);
    pg_fixture_stop (pg);
    small_disk_gone (dir);
}

/* The server's write-ahead log is moved to a disk of its own. */
static void wal_to (struct pg_fixture *pg, const char *dir)
{
    char command[1024];
    pg_fixture_crash (pg);
    snprintf (command, sizeof (command),
              "cp -a %s/data/pg_wal %s/wal && rm -r %s/data/pg_wal && "
              "ln -s %s/wal %s/data/pg_wal",
              pg_fixture_dir (pg), dir, pg_fixture_dir (pg), dir, pg_fixture_dir (pg));
    assert_int_equal (0, system (command));
    assert_true (pg_fixture_again (pg));
}

/* The next record begins a new file. The server may be gone. */
static void next_wal (const char *conninfo)
{
    PGconn *sql = PQconnectdb (conninfo);
    PQclear (PQexec (sql, "SELECT pg_switch_wal ()"));
    PQfinish (sql);
}

static bool log_says (const struct pg_fixture *pg, const char *words)
{
    char command[512];
    snprintf (command, sizeof (command), "grep -q '%s' %s/log", words, pg_fixture_dir (pg));
    return system (command) == 0;
}

/* pg_wal is full: PostgreSQL panics. The hold under way is not answered, others are refused at once; when
 * there is room and PostgreSQL was started it is granted without being asked again, and all that was
 * granted before is there, with the same answers. */
static void full_wal (void **state)
{
    (void)state;
    enum { MANY = 40 };
    static struct ledger_request hold[MANY];
    static char job[MANY][32];
    struct bankrig rig;
    char dir[64], file[80], text[64];
    struct answer a;
    struct err err = {0};
    int n = 0;
    if (!small_disk (dir, "96m")) {
        print_message (
            "no disk was filled: a small file system needs root and a mount namespace\n");
        skip ();
    }
    struct pg_fixture *pg = pg_fixture_start (false);
    assert_non_null (pg);
    const char *conninfo = pg_fixture_database (pg, "ledger");
    wal_to (pg, dir);
    bankrig_open (&rig, conninfo);
    assert_true (bankrig_wait_up (&rig, true));
    found (&rig);
    snprintf (file, sizeof (file), "%s/filler", dir);
    fill (file);
    for (; n < MANY; n++) {
        hold[n] = hold_number (&rig, n + 1, job[n]);
        bankrig_send (&rig, &hold[n], &a);
        while (!a.given && rig.up)
            turn (&rig, 50);
        if (!a.given)
            break;
        assert_int_equal (0, a.err.code);
        next_wal (conninfo);
    }
    assert_in_range (n, 1, MANY - 1);
    assert_true (log_says (pg, "PANIC:.*No space left on device"));
    assert_int_equal (ERR_UNAVAILABLE,
                      committer_submit (rig.committer, &hold[0], NULL, NULL, NULL, &err));
    assert_non_null (strstr (err.text, "send the same request again"));
    assert_int_equal (0, unlink (file));
    pg_fixture_crash (pg); /* where it has not stopped by itself */
    assert_true (pg_fixture_again (pg));
    bankrig_await (&rig, &a);
    snprintf (text, sizeof (text), "granted hold.%d 1000000 phys", n + 1);
    assert_string_equal (a.err.text, "");
    assert_string_equal (a.text, text);
    for (int i = 0; i <= n; i++) {
        snprintf (text, sizeof (text), "granted hold.%d 1000000 phys", i + 1);
        expect (&rig, hold[i], text);
    }
    PGconn *sql = pg_fixture_connect (conninfo);
    assert_int_equal (n + 1, pg_fixture_number (sql, "SELECT count (*) FROM hold"));
    books_balance (sql);
    PQfinish (sql);
    bankrig_close (&rig);
    pg_fixture_stop (pg);
    small_disk_gone (dir);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (point_in_time), cmocka_unit_test (numbers_never_again),
        cmocka_unit_test (standby),       cmocka_unit_test (full_disk),
        cmocka_unit_test (full_wal),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
