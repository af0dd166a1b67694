/* row: one description of a stored record, from which the SQL text, the binding and the taking of its columns come.
 *
 *     static const struct row_column job_columns[] = {
 *         ROW (struct job, number, ROW_KEY),
 *         ROW_AS (struct job, start, "start_us", 0),
 *         ROW_OWN (struct job, placement, "placement", 0),
 *     };
 *     static const struct row_table job_table = ROW_TABLE ("job", job_columns);
 *
 *     rc = store_row_write (store, &job_table, ROW_PUT, NULL, &job, err);
 *
 * A column's type is that of its field: bool, (u)int32_t, (u)int64_t, an enum, const char * (NULL is stored as ""),
 * char [n], uint8_t [n], struct uuid. What is owned by the record (ROW_OWN, ROW_DATA) may be NULL, in the store as well.
 *
 * Texts are made once for each store and table. Keys that are not the record's own (the number of the job to which it
 * belongs) stand in the table, are integers, and are given beside it. */
#ifndef NUI_STORE_ROW_H
#define NUI_STORE_ROW_H

#include "proto/base/arena.h"
#include "proto/store/store.h"

enum row_type {
    ROW_BOOL,
    ROW_INT32,
    ROW_UINT32,
    ROW_INT64,
    ROW_TEXT,
    ROW_CHARS,
    ROW_BYTES,
    ROW_OWNED,
    ROW_BLOB,
    ROW_LENT
};

enum row_flag {
    ROW_KEY = 1 << 0,      /* identifies it */
    ROW_ONCE = 1 << 1,     /* written when it is inserted, and never again */
    ROW_NOT_NULL = 1 << 2, /* of an owned text or a blob: NULL is stored as "" */
};

struct row_column {
    const char *name;
    enum row_type type;
    unsigned flags;
    size_t offset;
    size_t size; /* of a blob: the offset of its length, a size_t */
};

enum { ROW_OUTER_MAX = 3, ROW_COLUMNS_MAX = 64 };

struct row_table {
    const char *name;
    const struct row_column *column;
    uint32_t count;
    const char *outer[ROW_OUTER_MAX]; /* keys beside the record; then NULL */
};

#define ROW_FIELD(type, field) (((const type *)0)->field)
#define ROW_TYPE(type, field)                                                                      \
    _Generic (((type *)0)->field, bool: ROW_BOOL, int32_t: ROW_INT32, uint32_t: ROW_UINT32,              \
              int64_t: ROW_INT64, uint64_t: ROW_INT64, const char *: ROW_TEXT, char *: ROW_CHARS,        \
              uint8_t *: ROW_BYTES, struct uuid: ROW_BYTES)
#define ROW_AS(type, field, column, flags)                                                         \
    {                                                                                              \
        column, ROW_TYPE (type, field), flags, offsetof (type, field),                             \
            sizeof (ROW_FIELD (type, field))                                                       \
    }
#define ROW(type, field, flags) ROW_AS (type, field, #field, flags)
/* A char * that is malloc'ed. */
#define ROW_OWN(type, field, column, flags)                                                        \
    {                                                                                              \
        column, ROW_OWNED, flags, offsetof (type, field), sizeof (char *)                          \
    }
/* A pointer and a length: void * is malloc'ed, const void * is not the record's. */
#define ROW_DATA(type, field, length, column, flags)                                                          \
    {                                                                                                         \
        column, _Generic (((type *)0)->field, void *: ROW_BLOB, const void *: ROW_LENT), flags,             \
     offsetof (type, field), offsetof (type, length) \
    }
#define ROW_TABLE(name, columns, ...)                                                              \
    {                                                                                              \
        name, columns, sizeof columns / sizeof *columns,                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

enum row_how {
    ROW_INSERT,  /* a new one: ERR_EXISTS where its keys are there */
    ROW_KEEP,    /* unless there is one: that stays */
    ROW_PUT,     /* or updates the one with its keys, but for what is written once */
    ROW_REPLACE, /* the one with its keys is deleted first, and what hangs on it */
    ROW_UPDATE, /* the one with its keys, but for what is written once; where there is none, nothing
                   happens */
    ROW_HOWS,
};
/* outer: as many keys as the table has, or NULL: SQLite gives them (store_last_id). */
int store_row_write (struct store *store, const struct row_table *table, enum row_how how,
                     const int64_t *outer, const void *row, struct err *err);

/* "SELECT outer keys, columns TAIL" (" FROM job WHERE number = ?1"), to be bound and stepped. The tail is a literal. */
struct store_stmt *store_row_select (struct store *store, const struct row_table *table,
                                     const char *tail);
/* The row at which the statement stands. With an arena its texts and blobs are the arena's; without one what the record
 * owns is malloc'ed, and what it does not (const char *, const void *) lives until the next step. ERR_IO when bytes are
 * not as many as their field has; all that fits is there all the same. */
int store_row_take (struct store_stmt *q, const struct row_table *table, struct arena *arena,
                    void *row, struct err *err);

#endif
