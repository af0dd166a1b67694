/* Rows as lines of JSON, read back from the parameters that are sent to PostgreSQL: what a block tells of a row is what
 * was written. The committer's batches call it; it looks at nothing but the parameters. */
#include "bank/store/content.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

struct content_shape {
    const char *name, *columns; /* of an object: the verb; the table comes first */
};

#define CONTENT_DIRECT_SHAPE(stmt, name, columns) [stmt] = {name, columns},
static const struct content_shape content_direct[BANK_STMT_COUNT] = {
    CONTENT_DIRECT (CONTENT_DIRECT_SHAPE)};

/* The statement by whose name a line tells of a statement's rows. */
static enum bank_stmt content_stmt (enum bank_stmt stmt)
{
    return stmt == ST_ADD_NEW_HOLD ? ST_ADD_HOLD : stmt == ST_ADD_NEW_SIGNED ? ST_ADD_SIGNED : stmt;
}

static const struct content_shape content_object[CONTENT_OBJECTS] = {
    [OBJ_ADD_PROJECT] = {"add", "project id name description op_id parent_id?"},
    [OBJ_PUT_PARENT] = {"put", "project id parent_id?"},
    [OBJ_ADD_PERSON] = {"add", "person id identity op_id"},
    [OBJ_ADD_ROLE] = {"add", "bank_role op_id person_id role granted"},
    [OBJ_ADD_FUNDER] = {"add", "funder id name description op_id"},
    [OBJ_PUT_MEMBERSHIP] = {"put", "membership id valid_to"},
    [OBJ_ADD_MEMBERSHIP] = {"add",
                            "membership id project_id person_id role valid_from valid_to op_id"},
    [OBJ_ADD_ACCOUNT] = {"add", "account id name class project_id? op_id unit_id=1"},
    [OBJ_PUT_NAME] = {"put", "account id name"},
    [OBJ_ADD_NAME] = {"add", "account_name account_id op_id name"},
    [OBJ_CLOSE_ACCOUNT] = {"put", "account id closed_op?"},
    [OBJ_ADD_FREEZE] = {"add", "freezing op_id what object_id name frozen reason who since"},
    [OBJ_DROP_FALLBACKS] = {"drop", "account_fallback account_id"},
    [OBJ_ADD_FALLBACK] = {"add", "account_fallback account_id position fallback_id site qos"},
    [OBJ_DROP_SCOPES] = {"drop", "account_scope account_id"},
    [OBJ_ADD_SCOPE] = {"add", "account_scope account_id position kind name exclude"},
    [OBJ_ADD_AWARD] = {"add", "award id funder_id account_id reference op_id"},
    [OBJ_PUT_REVOKED] = {"put", "award id revoked_op"},
    [OBJ_ADD_ALLOC] =
        {"add",
         "allocation id account_id valid_from valid_to credit_limit description op_id award_id? split_from? "
         "reference giver"},
    [OBJ_ADD_ALLOC_SCOPE] = {"add", "allocation_scope allocation_id position kind name exclude"},
    [OBJ_PUT_END] = {"put", "allocation id valid_to"},
    [OBJ_PUT_LIMIT] = {"put", "allocation id credit_limit"},
    [OBJ_ADD_BALANCE] = {"add", "balance allocation_id granted settled posted held"},
    [OBJ_ADD_ABOUT] = {"add", "about op_id what object_id"},
    [OBJ_ADD_RATE] = {"add",
                      "rate site version valid_from multiplier_ppm op_id measure successful_only"},
    [OBJ_ADD_FACTOR] = {"add", "rate_factor site version position kind name ppm"},
    [OBJ_ADD_RIGHT] =
        {"add",
         "site_right site op_id claims refunds refund_cap_us refund_minimum refund_window_us "
         "node_procs proc_memory_mb overrun_us"},
};

static char *content_int (char *out, int64_t v)
{
    char digits[24];
    unsigned at = sizeof (digits);
    uint64_t n = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    if (v < 0)
        digits[--at] = '-';
    return mempcpy (out, digits + at, sizeof (digits) - at);
}

static const char content_digit[] = "0123456789abcdef";

static char *content_text (char *out, const unsigned char *text, size_t len)
{
    *out++ = '"';
    for (const unsigned char *end = text + len; text < end; text++) {
        if (*text >= ' ' && *text != '"' && *text != '\\') {
            *out++ = (char)*text;
            continue;
        }
        out = mempcpy (out, "\\u00", 4);
        *out++ = content_digit[*text >> 4];
        *out++ = content_digit[*text & 15];
    }
    *out++ = '"';
    return out;
}

/* As PostgreSQL writes bytes: "\\x00ff". */
static char *content_bytes (char *out, const unsigned char *bytes, size_t len)
{
    out = mempcpy (out, "\"\\\\x", 4);
    for (size_t i = 0; i < len; i++) {
        *out++ = content_digit[bytes[i] >> 4];
        *out++ = content_digit[bytes[i] & 15];
    }
    *out++ = '"';
    return out;
}

/* What stands before it, and the value. */
static void content_value (struct strbuf *to, char before, const struct pgcol *col, size_t *at,
                           bool zero_is_null)
{
    size_t len;
    const unsigned char *bytes = pgcol_next (col, at, &len);
    char some[256], *from = 16 + 6 * len <= sizeof (some)
                                ? some
                                : malloc (16 + 6 * len); /* a byte becomes at most six */
    char *out = from;
    assert (from);
    uint64_t v;
    *out++ = before;
    switch (col->type) {
    case PGCOL_I64:
        memcpy (&v, bytes, sizeof (v));
        out = v == 0 && zero_is_null ? mempcpy (out, "null", 4)
                                     : content_int (out, (int64_t)be64toh (v));
        break;
    case PGCOL_TEXT:
        out = content_text (out, bytes, len);
        break;
    case PGCOL_BYTES:
        out = content_bytes (out, bytes, len);
        break;
    case PGCOL_BOOL:
        out = *bytes ? mempcpy (out, "true", 4) : mempcpy (out, "false", 5);
        break;
    }
    strbuf_append (to, from, (size_t)(out - from));
    if (from != some)
        free (from);
}

/* The next word of a shape; false: there is none. */
static bool content_word (const char **at, const char **word, size_t *len)
{
    *word = *at + strspn (*at, " ");
    *len = strcspn (*word, " ");
    *at = *word + *len;
    return *len > 0;
}

/* A shape's columns, read once for all rows. */
struct content_col {
    const char *name, *value; /* value: of a constant; NULL: of the parameters */
    size_t name_len, value_len;
    bool zero_is_null;
};
enum { CONTENT_COLS_MAX = 2 * PGARGS_MAX };

static unsigned content_cols (const struct content_shape *shape,
                              struct content_col col[CONTENT_COLS_MAX], const char **table,
                              size_t *table_len)
{
    const char *rest = shape->columns, *word;
    size_t len;
    unsigned count = 0;
    content_word (&rest, table, table_len);
    while (content_word (&rest, &word, &len)) {
        const char *value = memchr (word, '=', len);
        assert (count < CONTENT_COLS_MAX);
        bool zero_is_null = word[len - 1] == '?';
        col[count++] =
            (struct content_col){.name = word,
                                 .name_len = value ? (size_t)(value - word) : len - zero_is_null,
                                 .value = value ? value + 1 : NULL,
                                 .value_len = value ? len - (size_t)(value + 1 - word) : 0,
                                 .zero_is_null = zero_is_null};
    }
    return count;
}

void content_add_object (struct strbuf *out, enum content_object object, const struct pgargs *args)
{
    const struct content_shape *shape = &content_object[object];
    size_t at[PGARGS_MAX] = {0}, table_len;
    struct content_col col[CONTENT_COLS_MAX];
    const char *table;
    uint32_t rows = args ? pgargs_rows (args) : 0;
    if (rows == 0)
        return;
    unsigned count = content_cols (shape, col, &table, &table_len);
    for (uint32_t i = 0; i < rows; i++) {
        unsigned arg = 0;
        strbuf_printf (out, "%s{\"%s\":\"%.*s\"", out->len ? "\n" : "", shape->name, (int)table_len,
                       table);
        for (unsigned k = 0; k < count; k++) {
            strbuf_printf (out, ",\"%.*s\"", (int)col[k].name_len, col[k].name);
            if (col[k].value) {
                strbuf_putc (out, ':');
                strbuf_append (out, col[k].value, col[k].value_len);
                continue;
            }
            assert (arg < args->count);
            content_value (out, ':', &args->col[arg], &at[arg], col[k].zero_is_null);
            arg++;
        }
        strbuf_putc (out, '}');
    }
}

/* How many columns a shape has, and which columns' 0 stands for NULL, by bits. */
static unsigned content_nulls (const char *columns, uint64_t *nulls_out)
{
    unsigned count = 0;
    *nulls_out = 0;
    for (const char *c = columns; *c; c++) {
        count += *c == ' '; /* the table comes first */
        if (*c == '?')
            *nulls_out |= UINT64_C (1) << (count - 1);
    }
    return count;
}

void content_add_direct (struct strbuf *out, enum bank_stmt stmt, const struct pgargs *args)
{
    const struct content_shape *shape = &content_direct[content_stmt (stmt)];
    size_t at[PGARGS_MAX] = {0};
    uint32_t rows = args && shape->name ? pgargs_rows (args) : 0;
    if (rows == 0)
        return;
    uint64_t nulls;
    unsigned count = content_nulls (shape->columns, &nulls);
    assert (count <= args->count); /* what is only looked for comes after the columns */
    for (uint32_t i = 0; i < rows; i++) {
        strbuf_puts (out, out->len ? "\n[\"" : "[\"");
        strbuf_puts (out, shape->name);
        strbuf_putc (out, '"');
        for (unsigned k = 0; k < count; k++)
            content_value (out, ',', &args->col[k], &at[k], nulls >> k & 1);
        strbuf_putc (out, ']');
    }
}
