/* pgarg: spells integers, texts and bytes in PostgreSQL's binary array format, and reads results
 * back. All of bank/store calls it. Values never become part of an SQL text; it knows no
 * statement and sends nothing. */
#include "bank/store/pgarg.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

/* Type oids never change: src/include/catalog/pg_type.dat of PostgreSQL. */
enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25 };

/* Head of a one-dimensional array: dimensions, has-null flag, element type, length, lower bound. */
enum { ARRAY_HEAD = 20, ARRAY_HEAD_EMPTY = 12 };

enum { COL_BYTES = 64 }; /* at first: most batches are small */

static void col_put (struct pgargs *args, struct pgcol *col, const void *bytes, size_t len)
{
    if (col->len + len > col->cap) {
        size_t cap = col->cap ? col->cap * 2 : COL_BYTES;
        while (cap < col->len + len)
            cap *= 2;
        unsigned char *bigger = arena_alloc (args->arena, cap);
        if (col->len)
            memcpy (bigger, col->data, col->len);
        col->data = bigger;
        col->cap = cap;
    }
    if (len)
        memcpy (col->data + col->len, bytes, len);
    col->len += len;
}

static void col_element (struct pgargs *args, unsigned i, enum pgcol_type type, const void *bytes,
                         size_t len)
{
    assert (i < args->count && args->col[i].type == type && len < INT32_MAX);
    static const unsigned char head[ARRAY_HEAD];
    struct pgcol *col = &args->col[i];
    uint32_t be = htobe32 ((uint32_t)len);
    if (!col->data)
        col_put (args, col, head, ARRAY_HEAD);
    col_put (args, col, &be, 4);
    col_put (args, col, bytes, len);
    col->count++;
}

struct pgargs *pgargs_create (struct arena *arena, const char *types)
{
    struct pgargs *args = arena_new (arena, struct pgargs);
    args->arena = arena;
    args->count = (unsigned)strlen (types);
    assert (args->count <= PGARGS_MAX);
    args->col = arena_array (arena, args->count, sizeof (*args->col));
    args->value = arena_array (arena, args->count, sizeof (*args->value));
    args->length = arena_array (arena, args->count, sizeof (*args->length));
    args->format = arena_array (arena, args->count, sizeof (*args->format));
    for (unsigned i = 0; i < args->count; i++) {
        switch (types[i]) {
        case 'i':
            args->col[i].type = PGCOL_I64;
            break;
        case 't':
            args->col[i].type = PGCOL_TEXT;
            break;
        case 'b':
            args->col[i].type = PGCOL_BYTES;
            break;
        case 'o':
            args->col[i].type = PGCOL_BOOL;
            break;
        default:
            assert (!"a parameter type that does not exist");
        }
    }
    return args;
}

void pgargs_i64 (struct pgargs *args, unsigned col, int64_t v)
{
    uint64_t be = htobe64 ((uint64_t)v);
    col_element (args, col, PGCOL_I64, &be, 8);
}

void pgargs_text (struct pgargs *args, unsigned col, const char *text)
{
    col_element (args, col, PGCOL_TEXT, text, strlen (text));
}

void pgargs_bytes (struct pgargs *args, unsigned col, const void *bytes, size_t len)
{
    col_element (args, col, PGCOL_BYTES, bytes, len);
}

void pgargs_bool (struct pgargs *args, unsigned col, bool v)
{
    unsigned char byte = v;
    col_element (args, col, PGCOL_BOOL, &byte, 1);
}

uint32_t pgargs_rows (const struct pgargs *args)
{
    return args->col[0].count;
}

const unsigned char *pgcol_next (const struct pgcol *col, size_t *at, size_t *len)
{
    uint32_t be;
    size_t from = *at ? *at : ARRAY_HEAD;
    assert (from + sizeof (be) <= col->len);
    memcpy (&be, col->data + from, sizeof (be));
    *len = be32toh (be);
    *at = from + sizeof (be) + *len;
    assert (*at <= col->len);
    return col->data + from + sizeof (be);
}

void pgargs_seal (struct pgargs *args)
{
    static const uint32_t oid[] = {OID_INT8, OID_TEXT, OID_BYTEA, OID_BOOL};
    for (unsigned i = 0; i < args->count; i++) {
        struct pgcol *col = &args->col[i];
        uint32_t head[5] = {htobe32 (1), 0, htobe32 (oid[col->type]), htobe32 (col->count),
                            htobe32 (1)};
        if (col->count == 0) { /* an empty array has no dimension */
            head[0] = 0;
            col->data = arena_memdup (args->arena, head, ARRAY_HEAD_EMPTY);
            col->len = ARRAY_HEAD_EMPTY;
        } else {
            memcpy (col->data, head, ARRAY_HEAD);
        }
        args->value[i] = (const char *)col->data;
        args->length[i] = (int)col->len;
        args->format[i] = 1;
    }
}

void pgargs_row (const struct pgargs *args, const char **value, int *length)
{
    enum { ELEMENT_HEAD = 4 }; /* its length */
    for (unsigned i = 0; i < args->count; i++) {
        assert (args->col[i].count == 1);
        value[i] = args->value[i] + ARRAY_HEAD + ELEMENT_HEAD;
        length[i] = args->length[i] - ARRAY_HEAD - ELEMENT_HEAD;
    }
}

int64_t pgres_i64 (const PGresult *res, int row, int col)
{
    if (PQgetisnull (res, row, col))
        return 0;
    const char *value = PQgetvalue (res, row, col);
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;
    switch (PQgetlength (res, row, col)) {
    case 8:
        memcpy (&v8, value, 8);
        return (int64_t)be64toh (v8);
    case 4:
        memcpy (&v4, value, 4);
        return (int32_t)be32toh (v4);
    case 2:
        memcpy (&v2, value, 2);
        return (int16_t)be16toh (v2);
    default:
        assert (!"an integer column of another width");
        return 0;
    }
}

bool pgres_bool (const PGresult *res, int row, int col)
{
    assert (PQgetlength (res, row, col) == 1);
    return PQgetvalue (res, row, col)[0] != 0;
}

char *pgres_text (const PGresult *res, int row, int col, struct arena *arena)
{
    return arena_strdup (arena, PQgetvalue (res, row, col)); /* "" where it is NULL */
}
