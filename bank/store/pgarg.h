/* pgarg: parameters and results of PostgreSQL statements in binary form.
 *
 * A column is an array parameter that grows by one element per row written (for unnest). Results
 * are read as binary too; a wrong width asserts, since the statements are ours. */
#ifndef NUI_BANK_STORE_PGARG_H
#define NUI_BANK_STORE_PGARG_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/arena.h"

enum { PGARGS_MAX = 32 };

enum pgcol_type { PGCOL_I64, PGCOL_TEXT, PGCOL_BYTES, PGCOL_BOOL };

struct pgcol {
    enum pgcol_type type;
    uint32_t count;
    unsigned char *data; /* NULL: no element yet */
    size_t len, cap;
};

struct pgargs {
    struct arena *arena;
    unsigned count;
    struct pgcol *col; /* count of each: columns first … */
    /* … then what PQsendQueryPrepared wants, made by pgargs_seal */
    const char **value;
    int *length, *format;
};

/* types: one letter per parameter: i (bigint[]), t (text[]), b (bytea[]), o (boolean[]). */
struct pgargs *pgargs_create (struct arena *arena, const char *types);
void pgargs_i64 (struct pgargs *args, unsigned col, int64_t v);
void pgargs_text (struct pgargs *args, unsigned col, const char *text);
void pgargs_bytes (struct pgargs *args, unsigned col, const void *bytes, size_t len);
void pgargs_bool (struct pgargs *args, unsigned col, bool v);
uint32_t pgargs_rows (const struct pgargs *args); /* of column 0 */
void pgargs_seal (struct pgargs *args);
/* The element at *at, which moves on to the next; *at is 0 at first. */
const unsigned char *pgcol_next (const struct pgcol *col, size_t *at, size_t *len);
/* The elements of the only row, as parameters that are no arrays. */
void pgargs_row (const struct pgargs *args, const char **value, int *length);

int64_t pgres_i64 (const PGresult *res, int row, int col); /* int2, int4, int8; NULL is 0 */
bool pgres_bool (const PGresult *res, int row, int col);
char *pgres_text (const PGresult *res, int row, int col, struct arena *arena); /* NULL is "" */

#endif
