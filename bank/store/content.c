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
static const struct content_shape content_direct[BANK_STMT_COUNT] = {CONTENT_DIRECT (CONTENT_DIRECT_SHAPE)};

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
    [OBJ_ADD_MEMBERSHIP] = {"add", "membership id project_id person_id role valid_from valid_to op_id"},
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
    [OBJ_ADD_ALLOC] = {"add", "allocation id account_id valid_from valid_to credit_limit description op_id award_id? split_from? "
                              "reference"},
    [OBJ_ADD_ALLOC_SCOPE] = {"add", "allocation_scope allocation_id position kind name exclude"},
    [OBJ_PUT_END] = {"put", "allocation id valid_to"},
    [OBJ_PUT_LIMIT] = {"put", "allocation id credit_limit"},
    [OBJ_ADD_BALANCE] = {"add", "balance allocation_id granted settled posted held"},
    [OBJ_ADD_ABOUT] = {"add", "about op_id what object_id"},
    [OBJ_ADD_RATE] = {"add", "rate site version valid_from multiplier_ppm op_id measure successful_only"},
    [OBJ_ADD_FACTOR] = {"add", "rate_factor site version position kind name ppm"},
    [OBJ_ADD_RIGHT] = {"add", "site_right site op_id claims refunds refund_cap_us refund_minimum refund_window_us "
                              "node_procs proc_memory_mb overrun_us"},
};

static void content_int (struct strbuf *out, int64_t v)
{
    char digits[24];
    unsigned at = sizeof (digits);
    uint64_t n = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    if (v < 0)
        digits[--at] = '-';
    strbuf_append (out, digits + at, sizeof (digits) - at);
}

static void content_text (struct strbuf *out, const unsigned char *text, size_t len)
{
    size_t done = 0;
    strbuf_putc (out, '"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= ' ' && text[i] != '"' && text[i] != '\\')
            continue;
        strbuf_append (out, text + done, i - done);
        strbuf_printf (out, "\\u%04x", text[i]);
        done = i + 1;
    }
    strbuf_append (out, text + done, len - done);
    strbuf_putc (out, '"');
}

/* As PostgreSQL writes bytes: "\\x00ff". */
static void content_bytes (struct strbuf *out, const unsigned char *bytes, size_t len)
{
    static const char digit[] = "0123456789abcdef";
    strbuf_puts (out, "\"\\\\x");
    for (size_t i = 0; i < len;) {
        char part[64];
        size_t n = 0;
        for (; n < sizeof (part) && i < len; i++) {
            part[n++] = digit[bytes[i] >> 4];
            part[n++] = digit[bytes[i] & 15];
        }
        strbuf_append (out, part, n);
    }
    strbuf_putc (out, '"');
}

static void content_value (struct strbuf *out, const struct pgcol *col, size_t *at, bool zero_is_null)
{
    size_t len;
    const unsigned char *bytes = pgcol_next (col, at, &len);
    uint64_t v;
    switch (col->type) {
    case PGCOL_I64:
        memcpy (&v, bytes, sizeof (v));
        if (v == 0 && zero_is_null)
            strbuf_puts (out, "null");
        else
            content_int (out, (int64_t)be64toh (v));
        return;
    case PGCOL_TEXT:
        content_text (out, bytes, len);
        return;
    case PGCOL_BYTES:
        content_bytes (out, bytes, len);
        return;
    case PGCOL_BOOL:
        strbuf_puts (out, *bytes ? "true" : "false");
        return;
    }
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

static unsigned content_cols (const struct content_shape *shape, struct content_col col[CONTENT_COLS_MAX],
                              const char **table, size_t *table_len)
{
    const char *rest = shape->columns, *word;
    size_t len;
    unsigned count = 0;
    content_word (&rest, table, table_len);
    while (content_word (&rest, &word, &len)) {
        const char *value = memchr (word, '=', len);
        assert (count < CONTENT_COLS_MAX);
        bool zero_is_null = word[len - 1] == '?';
        col[count++] = (struct content_col){.name = word,
                                            .name_len = value ? (size_t)(value - word) : len - zero_is_null,
                                            .value = value ? value + 1 : NULL,
                                            .value_len = value ? len - (size_t)(value + 1 - word) : 0,
                                            .zero_is_null = zero_is_null};
    }
    return count;
}

static void content_rows (struct strbuf *out, const struct content_shape *shape, bool named,
                          const struct pgargs *args)
{
    size_t at[PGARGS_MAX] = {0}, table_len;
    struct content_col col[CONTENT_COLS_MAX];
    struct strbuf first = STRBUF_INIT; /* what each line begins with */
    const char *table;
    uint32_t rows = args ? pgargs_rows (args) : 0;
    if (rows == 0)
        return;
    unsigned count = content_cols (shape, col, &table, &table_len);
    if (named)
        strbuf_printf (&first, "{\"%s\":\"%.*s\"", shape->name, (int)table_len, table);
    else
        strbuf_printf (&first, "[\"%s\"", shape->name);
    for (uint32_t i = 0; i < rows; i++) {
        unsigned arg = 0;
        if (out->len)
            strbuf_putc (out, '\n');
        strbuf_append (out, first.data, first.len);
        for (unsigned k = 0; k < count; k++) {
            strbuf_putc (out, ',');
            if (named) {
                strbuf_putc (out, '"');
                strbuf_append (out, col[k].name, col[k].name_len);
                strbuf_append (out, "\":", 2);
            }
            if (col[k].value) {
                strbuf_append (out, col[k].value, col[k].value_len);
                continue;
            }
            assert (arg < args->count);
            content_value (out, &args->col[arg], &at[arg], col[k].zero_is_null);
            arg++;
        }
        strbuf_putc (out, named ? '}' : ']');
    }
    strbuf_free (&first);
}

void content_add_object (struct strbuf *out, enum content_object object, const struct pgargs *args)
{
    content_rows (out, &content_object[object], true, args);
}

void content_add_direct (struct strbuf *out, enum bank_stmt stmt, const struct pgargs *args)
{
    const struct content_shape *shape = &content_direct[content_stmt (stmt)];
    if (shape->name)
        content_rows (out, shape, false, args);
}
