/* store_i: what the sources of store share. Not for others. */
#ifndef NUI_STORE_STORE_I_H
#define NUI_STORE_STORE_I_H

#include <sqlite3.h>
#include <uthash.h>

#include "proto/store/store.h"

enum { STORE_RECENT = 128 };

struct row_table;

/* The text of a statement about a table (row.c), by the addresses of the table and of what is done. */
struct row_name {
    const struct row_table *table;
    const char *tail;
};

struct row_sql {
    struct row_name name;
    char *sql;
    UT_hash_handle hh;
};

struct store_stmt {
    struct store *store;
    char *sql;          /* owned; key */
    sqlite3_stmt *stmt; /* NULL when it could not be prepared */
    bool in_progress;   /* stepped to a row and not reset */
    struct err failed;  /* the first error; told by the next step */
    UT_hash_handle hh;
};

struct store {
    sqlite3 *db;
    char *path;
    struct store_stmt *stmts;
    uint32_t stmt_count;
    struct row_sql *rows;
    uint32_t in_progress; /* so many statements */
    /* The last statement whose text lay at such an address: most texts are literals, and long to hash. */
    struct store_stmt *recent[STORE_RECENT];
    bool unsynced, sync_failed;
    bool reserve, reserved; /* room is wanted; is there */
};

/* The code that fits SQLite's, with its text. what: "begin", or an SQL text. */
int store_err (struct store *store, const char *what, struct err *err);

void store_rows_free (struct store *store);

#endif
