#include "../base/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/store/store.h"
#include "scratch.h"

static const char *const steps_1[] = {"CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
                                      NULL};
static const char *const steps_2[] = {
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    "ALTER TABLE t ADD COLUMN size INTEGER NOT NULL DEFAULT 7; CREATE TABLE child (t INTEGER"
    " REFERENCES t (id))",
    NULL};
static const char *const steps_bad[] = {"CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
                                        "CREATE TABLE fine (x); CREATE TABLE broken (", NULL};

/* Before libc's, also for SQLite. */
static unsigned disk_waits;
static bool disk_fails;

int fdatasync (int fd)
{
    disk_waits++;
    if (disk_fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall (SYS_fdatasync, fd);
}

static int64_t query_int (struct store *store, const char *sql)
{
    struct err err = {0};
    struct store_stmt *q = store_stmt (store, sql);
    int rc = store_step (q, &err);
    assert_ok (rc, err);
    int64_t v = rc == 1 ? store_col_int (q, 0) : -1;
    store_reset (q);
    return v;
}

static void settings_are_durable (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps_1, &err);
    if (!store)
        fail_msg ("%s", err.text);
    assert_int_equal (query_int (store, "PRAGMA synchronous"), 2);
    assert_int_equal (query_int (store, "PRAGMA foreign_keys"), 1);
    struct store_stmt *q = store_stmt (store, "PRAGMA journal_mode");
    assert_int_equal (store_step (q, &err), 1);
    assert_string_equal (store_col_text (q, 0), "wal");
    store_reset (q);
    struct stat st;
    assert_int_equal (stat (s->db, &st), 0);
    assert_int_equal (st.st_mode & 0777, 0600);
    assert_ok (store_check (store, &err), err);
    store_close (store);
}

static void migrations_go_forward_only (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps_1, &err);
    assert_ok (store_exec (store, "INSERT INTO t (name) VALUES ('old')", &err), err);
    store_close (store);
    store = store_open (s->db, steps_2, &err);
    if (!store)
        fail_msg ("%s", err.text);
    assert_int_equal (query_int (store, "SELECT size FROM t"), 7);
    assert_int_equal (query_int (store, "PRAGMA user_version"), 2);
    store_close (store);
    assert_null (store_open (s->db, steps_1, &err));
    assert_int_equal (err.code, ERR_UNSUPPORTED);
    assert_contains (err.text, "newer version");
    store = store_open (s->db, steps_2, &err);
    assert_non_null (store);
    store_close (store);
}

static void a_broken_migration_changes_nothing (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    assert_null (store_open (s->db, steps_bad, &err));
    assert_contains (err.text, "schema step 2");
    struct store *store = store_open (s->db, steps_1, &err);
    assert_non_null (store);
    assert_int_equal (query_int (store, "PRAGMA user_version"), 1);
    assert_int_equal (query_int (store, "SELECT count(*) FROM sqlite_schema WHERE name = 'fine'"),
                      0);
    store_close (store);
}

static void values_come_back (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    static const char *const steps[] = {"CREATE TABLE v (i, t, b, u, n)", NULL};
    struct store *store = store_open (s->db, steps, &err);
    const struct uuid u = {{1, 2, 3, 255}};
    struct store_stmt *q = store_stmt (store, "INSERT INTO v VALUES (?1, ?2, ?3, ?4, ?5)");
    store_bind_int (q, 1, INT64_MIN);
    store_bind_text (q, 2, "it's; DROP TABLE v");
    store_bind_blob (q, 3, NULL, 0);
    store_bind_uuid (q, 4, &u);
    store_bind_null (q, 5);
    assert_ok (store_run (q, &err), err);
    /* A statement asked for again starts with NULLs. */
    q = store_stmt (store, "INSERT INTO v VALUES (?1, ?2, ?3, ?4, ?5)");
    store_bind_text (q, 2, NULL);
    assert_ok (store_run (q, &err), err);
    assert_int_equal (store_changes (store), 1);
    assert_int_equal (store_last_id (store), 2);
    q = store_stmt (store, "SELECT * FROM v ORDER BY rowid");
    assert_int_equal (store_step (q, &err), 1);
    assert_true (store_col_int (q, 0) == INT64_MIN);
    assert_string_equal (store_col_text (q, 1), "it's; DROP TABLE v");
    size_t len = 9;
    store_col_blob (q, 2, &len);
    assert_int_equal (len, 0);
    assert_false (store_col_is_null (q, 2));
    struct uuid back;
    assert_true (store_col_uuid (q, 3, &back));
    assert_memory_equal (back.b, u.b, 16);
    assert_false (store_col_uuid (q, 2, &back));
    assert_true (store_col_is_null (q, 4));
    assert_int_equal (store_step (q, &err), 1);
    assert_true (store_col_is_null (q, 0));
    assert_null (store_col_text (q, 1));
    assert_int_equal (store_step (q, &err), 0);
    store_close (store);
}

static void errors_are_kept_until_the_step (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps_2, &err);
    struct store_stmt *q = store_stmt (store, "INSERT INTO nowhere VALUES (?1)");
    store_bind_int (q, 1, 5);
    assert_int_equal (store_run (q, &err), ERR_INTERNAL);
    assert_contains (err.text, "nowhere");
    q = store_stmt (store, "INSERT INTO t (id, name) VALUES (?1, ?2)");
    store_bind_int (q, 9, 5);
    store_bind_int (q, 1, 5);
    assert_int_equal (store_run (q, &err), ERR_INTERNAL);
    assert_int_equal (query_int (store, "SELECT count(*) FROM t"), 0);
    assert_ok (store_exec (store, "INSERT INTO t VALUES (1, 'a', 0)", &err), err);
    q = store_stmt (store, "INSERT INTO t (id, name) VALUES (?1, ?2)");
    store_bind_int (q, 1, 2);
    store_bind_text (q, 2, "a");
    assert_int_equal (store_run (q, &err), ERR_EXISTS);
    assert_int_equal (store_exec (store, "INSERT INTO child VALUES (99)", &err), ERR_CONFLICT);
    /* "x" is no string. */
    assert_int_equal (store_exec (store, "UPDATE t SET name = \"x\"", &err), ERR_INTERNAL);
    store_close (store);
}

static void transactions (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps_1, &err);
    assert_false (store_in_transaction (store));
    assert_int_equal (store_commit (store, &err), ERR_INTERNAL);
    store_rollback (store);
    assert_ok (store_begin (store, &err), err);
    assert_true (store_in_transaction (store));
    assert_int_equal (store_begin (store, &err), ERR_INTERNAL);
    assert_ok (store_exec (store, "INSERT INTO t (name) VALUES ('gone')", &err), err);
    store_rollback (store);
    assert_int_equal (query_int (store, "SELECT count(*) FROM t"), 0);
    assert_ok (store_begin (store, &err), err);
    assert_ok (store_exec (store, "INSERT INTO t (name) VALUES ('a'), ('b')", &err), err);
    /* A loop left early does not hold the commit up. */
    assert_int_equal (store_step (store_stmt (store, "SELECT * FROM t"), &err), 1);
    assert_ok (store_commit (store, &err), err);
    assert_false (store_in_transaction (store));
    assert_ok (store_begin (store, &err), err);
    assert_ok (store_exec (store, "DELETE FROM t", &err), err);
    store_close (store); /* rolls back */
    store = store_open (s->db, steps_1, &err);
    assert_int_equal (query_int (store, "SELECT count(*) FROM t"), 2);
    store_close (store);
}

static void deferred_constraint_fails_the_commit (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    static const char *const steps[] = {
        "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p (id) DEFERRABLE"
        " INITIALLY DEFERRED)",
        NULL};
    struct store *store = store_open (s->db, steps, &err);
    assert_ok (store_begin (store, &err), err);
    assert_ok (store_exec (store, "INSERT INTO c VALUES (5)", &err), err);
    assert_int_equal (store_commit (store, &err), ERR_CONFLICT);
    assert_false (store_in_transaction (store));
    assert_int_equal (query_int (store, "SELECT count(*) FROM c"), 0);
    store_close (store);
}

static void bad_places (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    assert_null (store_open ("/nonexistent/x.db", steps_1, &err));
    assert_int_equal (err.code, ERR_IO);
    FILE *f = fopen (s->db, "w");
    for (int i = 0; i < 5000; i++)
        fputc ('x', f);
    fclose (f);
    assert_null (store_open (s->db, steps_1, &err));
    assert_int_equal (err.code, ERR_IO);
    assert_contains (err.text, "not a database");
    store_close (NULL);
}

static void row_commit (struct store *store, const char *name)
{
    struct err err = {0};
    assert_ok (store_begin (store, &err), err);
    struct store_stmt *q = store_stmt (store, "INSERT INTO t (name) VALUES (?1)");
    store_bind_text (q, 1, name);
    assert_ok (store_run (q, &err), err);
    assert_ok (store_commit (store, &err), err);
}

/* Many commits, one wait for the disk; and once it has failed nothing counts as durable any more. */
static void deferred_waits_once (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    struct store *store = store_open (s->db, steps_1, &err);
    row_commit (store, "before");
    assert_true (disk_waits > 0);
    assert_ok (store_defer (store, &err), err);
    row_commit (store, "first"); /* may begin the log anew, which waits by itself */
    assert_ok (store_sync (store, &err), err);
    assert_false (store_unsynced (store));
    disk_waits = 0;
    row_commit (store, "a");
    row_commit (store, "b");
    assert_ok (store_exec (store, "INSERT INTO t (name) VALUES ('c')", &err), err);
    assert_int_equal (disk_waits, 0);
    assert_true (store_unsynced (store));
    assert_ok (store_sync (store, &err), err);
    assert_ok (store_sync (store, &err), err);
    assert_int_equal (disk_waits, 1);
    assert_false (store_unsynced (store));
    assert_int_equal (query_int (store, "SELECT count(*) FROM t"), 5);
    assert_false (store_unsynced (store)); /* reading changes nothing */
    row_commit (store, "d");
    disk_fails = true;
    assert_int_equal (store_sync (store, &err), ERR_IO);
    disk_fails = false;
    assert_int_equal (store_sync (store, &err), ERR_IO);
    assert_true (store_unsynced (store));
    store_close (store);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown (f, scratch_setup, scratch_teardown)
        T (settings_are_durable),
        T (migrations_go_forward_only),
        T (a_broken_migration_changes_nothing),
        T (values_come_back),
        T (errors_are_kept_until_the_step),
        T (transactions),
        T (deferred_constraint_fails_the_commit),
        T (deferred_waits_once),
        T (bad_places),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
