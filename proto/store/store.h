/* store: a daemon's state in SQLite. WAL, synchronous=FULL, foreign keys on.
 *
 * One connection, one thread. What store_commit returned 0 for survives a kill -9 and a power
 * failure. Schema versions are steps of SQL: step n takes user_version n to n + 1, in one
 * transaction each; a database of a newer version is refused and left untouched.
 *
 * Statements are cached by their SQL text and owned by the store. Binding and stepping keep the
 * first error and every later call on the statement does nothing until store_step reports it:
 *
 *     struct store_stmt *q = store_stmt (store, "INSERT INTO job (id, name) VALUES (?1, ?2)");
 *     store_bind_int (q, 1, id);
 *     store_bind_text (q, 2, name);
 *     rc = store_run (q, err);
 */
#ifndef NUI_STORE_STORE_H
#define NUI_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct store;
struct store_stmt;

/* steps: SQL texts (several statements each), ended by NULL; never change one that was released.
 * The file is created with mode 0600. */
struct store *store_open (const char *path, const char *const *steps, struct err *err);
void store_close (struct store *store); /* rolls back what is open; NULL is a no-op */
/* PRAGMA quick_check: ERR_IO with what it says when the file is damaged. Slow on large files. */
int store_check (struct store *store, struct err *err);

/* Keeps room on the disk for what is committed from now on (16 MiB of the write-ahead log), so that commits go on
 * for a while on a full disk. What cannot be kept is kept later, with a commit. */
void store_reserve (struct store *store);
/* Commits no longer wait for the disk: for what may be lost with the machine. */
int store_relax (struct store *store, struct err *err);

/* From now on a commit is whole or not at all, and outlives a kill -9, but may be lost with the machine until
 * store_sync has returned 0: for a daemon that lets nothing out before it. */
int store_defer (struct store *store, struct err *err);
bool store_unsynced (
    const struct store *store); /* something was committed since the last store_sync */
/* After a failure what the disk has is not known, and every later call fails as well. */
int store_sync (struct store *store, struct err *err);

/* Transactions do not nest (ERR_INTERNAL). begin takes the write lock at once. A failed commit has
 * rolled back. Rollback without a transaction is a no-op. */
int store_begin (struct store *store, struct err *err);
int store_commit (struct store *store, struct err *err);
void store_rollback (struct store *store);
bool store_in_transaction (const struct store *store);

/* Several statements without parameters. */
int store_exec (struct store *store, const char *sql, struct err *err);

/* Never NULL: an error of the SQL is kept and told by store_step. The statement comes reset, with
 * all parameters NULL. */
struct store_stmt *store_stmt (struct store *store, const char *sql);
/* Parameters count from 1. Texts and blobs are copied. */
void store_bind_int (struct store_stmt *stmt, int at, int64_t value);
void store_bind_text (struct store_stmt *stmt, int at, const char *text); /* NULL binds NULL */
void store_bind_blob (struct store_stmt *stmt, int at, const void *bytes, size_t len);
void store_bind_uuid (struct store_stmt *stmt, int at, const struct uuid *uuid);
void store_bind_null (struct store_stmt *stmt, int at);
/* 1: a row; 0: done (and reset); negative: error (and reset). */
int store_step (struct store_stmt *stmt, struct err *err);
/* Steps to the end, ignoring rows; 0 or an error. */
int store_run (struct store_stmt *stmt, struct err *err);
/* When a loop over rows is left early. */
void store_reset (struct store_stmt *stmt);

/* Columns count from 0; valid until the next step, reset or store_stmt of the same text. */
int64_t store_col_int (struct store_stmt *stmt, int at);
const char *store_col_text (struct store_stmt *stmt, int at); /* NULL for NULL */
const void *store_col_blob (struct store_stmt *stmt, int at, size_t *len_out);
bool store_col_uuid (struct store_stmt *stmt, int at, struct uuid *out); /* false: not 16 bytes */
bool store_col_is_null (struct store_stmt *stmt, int at);
/* For who copies rows as they are. The names also before the first step. */
enum store_kind { STORE_NULL, STORE_INT, STORE_TEXT, STORE_BLOB };
enum store_kind store_col_kind (struct store_stmt *stmt, int at);
int store_col_count (struct store_stmt *stmt); /* 0 after a failed store_stmt */
const char *store_col_name (struct store_stmt *stmt, int at);

int64_t store_last_id (struct store *store); /* rowid of the last insert */
int64_t store_changes (struct store *store); /* rows the last statement changed */

#endif
