/* What is said once of a stored record (row.h), made into SQL. Parameters are numbered as the columns stand in the table,
 * the outer keys first, in every text, so that binding is one loop. It knows no table by name. */
#include "proto/store/row.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/strbuf.h"
#include "proto/store/store_i.h"

/* What is written is named by an address too, as a SELECT is by its tail's. */
static const char writes[ROW_HOWS];

static uint32_t outer_count (const struct row_table *table)
{
    uint32_t count = 0;
    while (count < ROW_OUTER_MAX && table->outer[count])
        count++;
    return count;
}

/* ---- texts */

/* Each column's name, outer keys first, of which the flags are as wanted; "name" or "name = ?n". */
static void names (struct strbuf *sql, const struct row_table *table, bool outer, unsigned mask,
                   unsigned wanted, const char *between, const char *equals)
{
    uint32_t keys = outer_count (table), at = 0;
    for (uint32_t i = 0; i < keys + table->count; i++) {
        const struct row_column *column = i < keys ? NULL : &table->column[i - keys];
        if (column ? (column->flags & mask) != wanted : !outer)
            continue;
        strbuf_printf (sql, "%s%s", at++ ? between : "", column ? column->name : table->outer[i]);
        if (equals)
            strbuf_printf (sql, "%s%u", equals, i + 1);
    }
}

static void insert_make (struct strbuf *sql, const struct row_table *table, enum row_how how)
{
    strbuf_printf (sql, "INSERT%s INTO %s (", how == ROW_REPLACE ? " OR REPLACE" : "", table->name);
    names (sql, table, true, 0, 0, ", ", NULL);
    for (uint32_t i = 1; i <= outer_count (table) + table->count; i++)
        strbuf_printf (sql, "%s%u", i == 1 ? ") VALUES (?" : ", ?", i);
    strbuf_puts (sql, ")");
    if (how == ROW_KEEP)
        strbuf_puts (sql, " ON CONFLICT DO NOTHING");
    if (how != ROW_PUT)
        return;
    strbuf_puts (sql, " ON CONFLICT (");
    names (sql, table, true, ROW_KEY, ROW_KEY, ", ", NULL);
    strbuf_puts (sql, ") DO UPDATE SET ");
    names (sql, table, false, ROW_KEY | ROW_ONCE, 0, ", ", " = ?");
}

/* tail: of a SELECT. */
static void sql_make (struct strbuf *sql, const struct row_table *table, enum row_how how,
                      const char *tail)
{
    if (tail) {
        strbuf_puts (sql, "SELECT ");
        names (sql, table, true, 0, 0, ", ", NULL);
        strbuf_puts (sql, tail);
    } else if (how == ROW_UPDATE) {
        strbuf_printf (sql, "UPDATE %s SET ", table->name);
        names (sql, table, false, ROW_KEY | ROW_ONCE, 0, ", ", " = ?");
        strbuf_puts (sql, " WHERE ");
        names (sql, table, true, ROW_KEY, ROW_KEY, " AND ", " = ?");
    } else {
        insert_make (sql, table, how);
    }
}

static struct store_stmt *row_stmt (struct store *store, const struct row_table *table,
                                    enum row_how how, const char *tail)
{
    const struct row_name name = {table, tail ? tail : &writes[how]};
    struct row_sql *known = NULL;
    HASH_FIND (hh, store->rows, &name, sizeof name, known);
    if (!known) {
        struct strbuf sql = STRBUF_INIT;
        sql_make (&sql, table, how, tail);
        known = calloc (1, sizeof *known);
        assert (known && outer_count (table) + table->count <= ROW_COLUMNS_MAX);
        known->name = name;
        known->sql = strdup (strbuf_text (&sql));
        assert (known->sql);
        strbuf_free (&sql);
        HASH_ADD (hh, store->rows, name, sizeof known->name, known);
    }
    return store_stmt (store, known->sql);
}

void store_rows_free (struct store *store)
{
    struct row_sql *known, *next;
    HASH_ITER (hh, store->rows, known, next) {
        HASH_DEL (store->rows, known);
        free (known->sql);
        free (known);
    }
}

/* ---- binding */

/* The pointer that a field is, whatever it points to. */
static const void *field_pointer (const void *field)
{
    const void *pointer;
    memcpy (&pointer, field, sizeof pointer);
    return pointer;
}

static int64_t field_int (const struct row_column *column, const void *field)
{
    switch (column->type) {
    case ROW_BOOL:
        return *(const bool *)field;
    case ROW_INT32:
        return *(const int32_t *)field;
    case ROW_UINT32:
        return *(const uint32_t *)field;
    default:
        return *(const int64_t *)field;
    }
}

static void column_bind (struct store_stmt *q, int at, const struct row_column *column,
                         const char *row)
{
    const void *field = row + column->offset;
    switch (column->type) {
    case ROW_TEXT:
    case ROW_OWNED: {
        const char *text = field_pointer (field);
        bool empty = !text && (column->type == ROW_TEXT || column->flags & ROW_NOT_NULL);
        store_bind_text (q, at, empty ? "" : text);
        break;
    }
    case ROW_CHARS:
        store_bind_text (q, at, field);
        break;
    case ROW_BYTES:
        store_bind_blob (q, at, field, column->size);
        break;
    case ROW_BLOB:
    case ROW_LENT:
        if (field_pointer (field) || column->flags & ROW_NOT_NULL)
            store_bind_blob (q, at, field_pointer (field),
                             *(const size_t *)(const void *)(row + column->size));
        break;
    default:
        store_bind_int (q, at, field_int (column, field));
        break;
    }
}

int store_row_write (struct store *store, const struct row_table *table, enum row_how how,
                     const int64_t *outer, const void *row, struct err *err)
{
    struct store_stmt *q = row_stmt (store, table, how, NULL);
    uint32_t keys = outer_count (table);
    for (uint32_t i = 0; outer && i < keys; i++)
        store_bind_int (q, (int)i + 1, outer[i]);
    for (uint32_t i = 0; i < table->count; i++)
        if (how != ROW_UPDATE || !(table->column[i].flags & ROW_ONCE))
            column_bind (q, (int)(keys + i) + 1, &table->column[i], row);
    return store_run (q, err);
}

/* ---- taking */

struct store_stmt *store_row_select (struct store *store, const struct row_table *table,
                                     const char *tail)
{
    return row_stmt (store, table, ROW_HOWS, tail);
}

static void *copy_of (struct arena *arena, const void *bytes, size_t len)
{
    char *copy = arena ? arena_alloc (arena, len + 1) : malloc (len + 1);
    assert (copy);
    if (len)
        memcpy (copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

static int bytes_take (struct store_stmt *q, int at, const struct row_table *table,
                       const struct row_column *column, void *field, struct err *err)
{
    size_t len = 0;
    const void *bytes = store_col_blob (q, at, &len);
    memset (field, 0, column->size);
    if (len)
        memcpy (field, bytes, len < column->size ? len : column->size);
    return len == column->size ? 0
                               : err_set (err, ERR_IO, "%s.%s is damaged: %zu bytes, not %zu",
                                          table->name, column->name, len, column->size);
}

static int column_take (struct store_stmt *q, int at, const struct row_table *table,
                        const struct row_column *column, struct arena *arena, char *row,
                        struct err *err)
{
    void *field = row + column->offset;
    const char *text;
    const void *bytes;
    size_t len = 0;
    switch (column->type) {
    case ROW_BOOL:
        *(bool *)field = store_col_int (q, at) != 0;
        return 0;
    case ROW_INT32:
    case ROW_UINT32:
        *(uint32_t *)field = (uint32_t)store_col_int (q, at);
        return 0;
    case ROW_INT64:
        *(int64_t *)field = store_col_int (q, at);
        return 0;
    case ROW_TEXT:
    case ROW_OWNED:
        text = store_col_text (q, at);
        if (!text && column->type == ROW_TEXT)
            text = "";
        if (arena || column->type == ROW_OWNED)
            text = text ? copy_of (arena, text, strlen (text)) : NULL;
        memcpy (field, &text, sizeof text);
        return 0;
    case ROW_CHARS:
        text = store_col_text (q, at);
        snprintf (field, column->size, "%s", text ? text : "");
        return 0;
    case ROW_BYTES:
        return bytes_take (q, at, table, column, field, err);
    case ROW_BLOB:
    case ROW_LENT:
        bytes = store_col_blob (q, at, &len);
        if (arena || column->type == ROW_BLOB)
            bytes = store_col_is_null (q, at) ? NULL : copy_of (arena, bytes, len);
        memcpy (field, &bytes, sizeof bytes);
        *(size_t *)(void *)(row + column->size) = len;
        return 0;
    }
    return 0;
}

int store_row_take (struct store_stmt *q, const struct row_table *table, struct arena *arena,
                    void *row, struct err *err)
{
    uint32_t keys = outer_count (table);
    int rc = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        int taken =
            column_take (q, (int)(keys + i), table, &table->column[i], arena, row, rc ? NULL : err);
        rc = rc ? rc : taken;
    }
    return rc;
}
