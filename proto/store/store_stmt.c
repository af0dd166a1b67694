/* store_stmt: prepared statements by their SQL text, bound and stepped, keeping the first error.
 * The stores of nui-local and nui-meta call it. Values are always bound, never pasted into the
 * text: a text per value would also fill the table of statements. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/store/store_i.h"

/* Statements are written by us, not by users: more than this is a text built in a loop. */
enum { STMTS_MAX = 1024 };

static struct store_stmt *prepare (struct store *store, const char *sql)
{
    struct store_stmt *s = calloc (1, sizeof *s);
    assert (s && store->stmt_count < STMTS_MAX);
    s->store = store;
    s->sql = strdup (sql);
    assert (s->sql);
    store->stmt_count++;
    HASH_ADD_KEYPTR (hh, store->stmts, s->sql, strlen (s->sql), s);
    return s;
}

static struct store_stmt *find (struct store *store, const char *sql)
{
    struct store_stmt **recent = &store->recent[((uintptr_t)sql >> 3) % STORE_RECENT];
    struct store_stmt *s = *recent;
    if (s && strcmp (s->sql, sql) == 0)
        return s;
    HASH_FIND (hh, store->stmts, sql, strlen (sql), s);
    *recent = s ? s : prepare (store, sql);
    return *recent;
}

struct store_stmt *store_stmt (struct store *store, const char *sql)
{
    struct store_stmt *s = find (store, sql);
    err_clear (&s->failed);
    if (!s->stmt && sqlite3_prepare_v3 (store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->stmt,
                                        NULL) != SQLITE_OK) {
        store_err (store, sql, &s->failed);
        return s;
    }
    store_reset (s);
    sqlite3_clear_bindings (s->stmt);
    return s;
}

static bool usable (const struct store_stmt *s)
{
    return s->stmt && s->failed.code == ERR_NONE;
}

static void keep_error (struct store_stmt *s, int rc)
{
    if (rc != SQLITE_OK)
        store_err (s->store, s->sql, &s->failed);
}

void store_bind_int (struct store_stmt *stmt, int at, int64_t value)
{
    if (usable (stmt))
        keep_error (stmt, sqlite3_bind_int64 (stmt->stmt, at, value));
}

void store_bind_text (struct store_stmt *stmt, int at, const char *text)
{
    if (!usable (stmt))
        return;
    keep_error (stmt, text ? sqlite3_bind_text (stmt->stmt, at, text, -1, SQLITE_TRANSIENT)
                           : sqlite3_bind_null (stmt->stmt, at));
}

void store_bind_blob (struct store_stmt *stmt, int at, const void *bytes, size_t len)
{
    /* A NULL pointer would bind NULL; an empty blob is not NULL. */
    if (usable (stmt))
        keep_error (stmt, len == 0
                              ? sqlite3_bind_zeroblob (stmt->stmt, at, 0)
                              : sqlite3_bind_blob64 (stmt->stmt, at, bytes, len, SQLITE_TRANSIENT));
}

void store_bind_uuid (struct store_stmt *stmt, int at, const struct uuid *uuid)
{
    store_bind_blob (stmt, at, uuid->b, sizeof uuid->b);
}

void store_bind_null (struct store_stmt *stmt, int at)
{
    if (usable (stmt))
        keep_error (stmt, sqlite3_bind_null (stmt->stmt, at));
}

int store_step (struct store_stmt *stmt, struct err *err)
{
    if (stmt->failed.code != ERR_NONE) {
        int code = err_set (err, stmt->failed.code, "%s", stmt->failed.text);
        store_reset (stmt);
        return code;
    }
    int rc = sqlite3_step (stmt->stmt);
    if (rc == SQLITE_ROW) {
        stmt->store->in_progress += !stmt->in_progress;
        stmt->in_progress = true;
        return 1;
    }
    int result = rc == SQLITE_DONE ? 0 : store_err (stmt->store, stmt->sql, err);
    store_reset (stmt);
    return result;
}

int store_run (struct store_stmt *stmt, struct err *err)
{
    int rc;
    do
        rc = store_step (stmt, err);
    while (rc == 1);
    return rc;
}

void store_reset (struct store_stmt *stmt)
{
    stmt->store->in_progress -= stmt->in_progress;
    stmt->in_progress = false;
    if (stmt->stmt)
        sqlite3_reset (stmt->stmt);
}

int64_t store_col_int (struct store_stmt *stmt, int at)
{
    assert (stmt->in_progress);
    return sqlite3_column_int64 (stmt->stmt, at);
}

const char *store_col_text (struct store_stmt *stmt, int at)
{
    assert (stmt->in_progress);
    return (const char *)sqlite3_column_text (stmt->stmt, at);
}

const void *store_col_blob (struct store_stmt *stmt, int at, size_t *len_out)
{
    assert (stmt->in_progress);
    const void *bytes = sqlite3_column_blob (stmt->stmt, at);
    *len_out = (size_t)sqlite3_column_bytes (stmt->stmt, at);
    return bytes;
}

bool store_col_uuid (struct store_stmt *stmt, int at, struct uuid *out)
{
    size_t len;
    const void *bytes = store_col_blob (stmt, at, &len);
    if (len != sizeof out->b || !bytes)
        return false;
    memcpy (out->b, bytes, sizeof out->b);
    return true;
}

bool store_col_is_null (struct store_stmt *stmt, int at)
{
    assert (stmt->in_progress);
    return sqlite3_column_type (stmt->stmt, at) == SQLITE_NULL;
}

enum store_kind store_col_kind (struct store_stmt *stmt, int at)
{
    assert (stmt->in_progress);
    switch (sqlite3_column_type (stmt->stmt, at)) {
    case SQLITE_NULL:
        return STORE_NULL;
    case SQLITE_INTEGER:
        return STORE_INT;
    case SQLITE_TEXT:
        return STORE_TEXT;
    default:
        return STORE_BLOB;
    }
}

int store_col_count (struct store_stmt *stmt)
{
    return usable (stmt) ? sqlite3_column_count (stmt->stmt) : 0;
}

const char *store_col_name (struct store_stmt *stmt, int at)
{
    return sqlite3_column_name (stmt->stmt, at);
}
