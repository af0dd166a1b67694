/* store: opens and migrates the database, and begins, commits and rolls back. The stores of
 * nui-local and nui-meta stand on it; statements are store_stmt.c's. What failed to commit is
 * rolled back, so that no half of a change is ever seen, and a database that is newer than the
 * program is left alone. */
#include "proto/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/store/store_i.h"

enum { BUSY_TIMEOUT_MS = 5000 };

int store_err (struct store *store, const char *what, struct err *err)
{
    int code = ERR_IO;
    switch (sqlite3_errcode (store->db) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        code = ERR_UNAVAILABLE;
        break;
    case SQLITE_CONSTRAINT:
        switch (sqlite3_extended_errcode (store->db)) {
        case SQLITE_CONSTRAINT_UNIQUE:
        case SQLITE_CONSTRAINT_PRIMARYKEY:
        case SQLITE_CONSTRAINT_ROWID:
            code = ERR_EXISTS;
            break;
        default:
            code = ERR_CONFLICT;
        }
        break;
    case SQLITE_NOMEM:
        code = ERR_NOMEM;
        break;
    case SQLITE_TOOBIG:
        code = ERR_LIMIT;
        break;
    case SQLITE_ERROR:
    case SQLITE_RANGE:
    case SQLITE_MISUSE:
        code = ERR_INTERNAL;
        break;
    default:
        break;
    }
    return err_set (err, code, "database %s: %s (%.120s)", store->path, sqlite3_errmsg (store->db),
                    what);
}

int store_exec (struct store *store, const char *sql, struct err *err)
{
    if (sqlite3_exec (store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return store_err (store, sql, err);
    return 0;
}

bool store_in_transaction (const struct store *store)
{
    return !sqlite3_get_autocommit (store->db);
}

int store_begin (struct store *store, struct err *err)
{
    if (store_in_transaction (store))
        return err_set (err, ERR_INTERNAL, "database %s: a transaction is already open",
                        store->path);
    return store_run (store_stmt (store, "BEGIN IMMEDIATE"), err);
}

static void reset_all (struct store *store)
{
    for (struct store_stmt *s = store->stmts; s && store->in_progress; s = s->hh.next)
        store_reset (s);
}

/* Blocks behind the end of the log: SQLite writes into them, and begins again at its front after a checkpoint. Its
 * locks are on other files, so closing this descriptor loses none. */
static void store_reserve_log (struct store *store)
{
    enum { BYTES = 16 << 20 };
    char *path = sqlite3_mprintf ("%s-wal", store->path);
    int fd = path ? open (path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd >= 0) {
        store->reserved = fallocate (fd, FALLOC_FL_KEEP_SIZE, 0, BYTES) == 0 || errno == EOPNOTSUPP;
        close (fd);
    }
    sqlite3_free (path);
}

void store_reserve (struct store *store)
{
    int keep = 1, chunk = 1 << 20;
    store->reserve = true;
    sqlite3_file_control (store->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep); /* with its room */
    sqlite3_file_control (store->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
    store_reserve_log (store);
}

int store_commit (struct store *store, struct err *err)
{
    if (!store_in_transaction (store))
        return err_set (err, ERR_INTERNAL, "database %s: no transaction is open to commit",
                        store->path);
    reset_all (
        store); /* a statement left on a row would keep the commit from ending the transaction */
    int rc = store_run (store_stmt (store, "COMMIT"), err);
    if (rc < 0)
        store_rollback (store);
    else if (store->reserve && !store->reserved)
        store_reserve_log (store);
    return rc;
}

void store_rollback (struct store *store)
{
    reset_all (store);
    if (store_in_transaction (store))
        sqlite3_exec (store->db, "ROLLBACK", NULL, NULL, NULL);
}

static int pragma_int (struct store *store, const char *sql, int64_t *out, struct err *err)
{
    struct store_stmt *q = store_stmt (store, sql);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = rc == 1 ? store_col_int (q, 0) : 0;
    store_reset (q);
    return 0;
}

static int migrate_step (struct store *store, const char *sql, uint32_t version, struct err *err)
{
    int rc = store_begin (store, err);
    if (rc < 0)
        return rc;
    char pragma[64];
    sqlite3_snprintf (sizeof pragma, pragma, "PRAGMA user_version = %u", version);
    rc = store_exec (store, sql, err);
    if (rc == 0)
        rc = store_exec (store, pragma, err);
    if (rc == 0)
        rc = store_commit (store, err);
    else
        store_rollback (store);
    return rc < 0 ? err_prefix (err, "schema step %u", version) : 0;
}

static int migrate (struct store *store, const char *const *steps, struct err *err)
{
    int64_t version = 0;
    uint32_t known = 0;
    while (steps[known])
        known++;
    int rc = pragma_int (store, "PRAGMA user_version", &version, err);
    if (rc < 0)
        return rc;
    if (version < 0 || version > known)
        return err_set (err, ERR_UNSUPPORTED,
                        "database %s has schema version %lld, this program knows up to %u: it was "
                        "written by a newer version",
                        store->path, (long long)version, known);
    for (uint32_t v = (uint32_t)version; rc == 0 && v < known; v++)
        rc = migrate_step (store, steps[v], v + 1, err);
    return rc;
}

static int setup (struct store *store, const char *const *steps, struct err *err)
{
    sqlite3_extended_result_codes (store->db, 1);
    sqlite3_busy_timeout (store->db, BUSY_TIMEOUT_MS);
    /* Double-quoted texts are names, never strings: a misspelt column is an error. */
    sqlite3_db_config (store->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config (store->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config (store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    struct store_stmt *q = store_stmt (store, "PRAGMA journal_mode = WAL");
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    const char *mode = rc == 1 ? store_col_text (q, 0) : NULL;
    bool wal = mode && strcmp (mode, "wal") == 0;
    store_reset (q);
    if (!wal)
        return err_set (err, ERR_IO, "database %s: write-ahead logging is not possible there",
                        store->path);
    rc = store_exec (store,
                     "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                     "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF",
                     err);
    return rc < 0 ? rc : migrate (store, steps, err);
}

/* SQLite creates files by the umask; state is nobody else's business. */
static int create_private (const char *path, struct err *err)
{
    int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set (err, ERR_IO, "database %s: %s", path, strerror (errno));
    close (fd);
    return 0;
}

struct store *store_open (const char *path, const char *const *steps, struct err *err)
{
    if (create_private (path, err) < 0)
        return NULL;
    struct store *store = calloc (1, sizeof *store);
    assert (store);
    store->path = strdup (path);
    assert (store->path);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
                SQLITE_OPEN_URI; /* for ATTACH; paths of ours begin with / */
    if (sqlite3_open_v2 (path, &store->db, flags, NULL) != SQLITE_OK) {
        err_set (err, ERR_IO, "database %s: %s", path,
                 store->db ? sqlite3_errmsg (store->db) : "out of memory");
        goto failed;
    }
    if (setup (store, steps, err) < 0)
        goto failed;
    return store;
failed:
    store_close (store);
    return NULL;
}

int store_relax (struct store *store, struct err *err)
{
    return store_exec (store, "PRAGMA synchronous = OFF", err);
}

static int committed (void *arg)
{
    ((struct store *)arg)->unsynced = true;
    return 0;
}

int store_defer (struct store *store, struct err *err)
{
    sqlite3_commit_hook (store->db, committed, store);
    return store_exec (store, "PRAGMA synchronous = NORMAL", err);
}

bool store_unsynced (const struct store *store)
{
    return store->unsynced;
}

int store_sync (struct store *store, struct err *err)
{
    sqlite3_file *wal = NULL;
    if (!store->unsynced)
        return 0;
    if (sqlite3_file_control (store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
        !wal || !wal->pMethods || store->sync_failed ||
        wal->pMethods->xSync (wal, SQLITE_SYNC_NORMAL) != SQLITE_OK) {
        store->sync_failed = true;
        return err_set (err, ERR_IO, "database %s: what was written cannot be made durable",
                        store->path);
    }
    store->unsynced = false;
    return 0;
}

void store_close (struct store *store)
{
    if (!store)
        return;
    struct store_stmt *s, *next;
    store_rows_free (store);
    HASH_ITER (hh, store->stmts, s, next) {
        HASH_DEL (store->stmts, s);
        sqlite3_finalize (s->stmt);
        free (s->sql);
        free (s);
    }
    int rc = sqlite3_close (store->db);
    assert (rc == SQLITE_OK);
    free (store->path);
    free (store);
}

int store_check (struct store *store, struct err *err)
{
    struct store_stmt *q = store_stmt (store, "PRAGMA quick_check(1)");
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    const char *says = store_col_text (q, 0);
    if (says && strcmp (says, "ok") != 0)
        rc = err_set (err, ERR_IO, "database %s is damaged: %.200s", store->path, says);
    else
        rc = 0;
    store_reset (q);
    return rc;
}

int64_t store_last_id (struct store *store)
{
    return sqlite3_last_insert_rowid (store->db);
}

int64_t store_changes (struct store *store)
{
    return sqlite3_changes64 (store->db);
}
