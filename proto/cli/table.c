#include "proto/cli/table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/arena.h"

struct cell {
    bool is_null;
    int64_t value;    /* every type but TABLE_TEXT */
    const char *text; /* TABLE_TEXT */
};

struct table {
    const struct table_column *column;
    uint32_t columns;
    struct arena *arena;
    struct cell *cell; /* row after row */
    size_t cells, cell_cap;
};

struct table *table_create (const struct table_column *columns, uint32_t count)
{
    assert (count > 0);
    struct table *table = calloc (1, sizeof *table);
    assert (table);
    table->column = columns;
    table->columns = count;
    table->arena = arena_create (0);
    return table;
}

void table_destroy (struct table *table)
{
    if (!table)
        return;
    arena_destroy (table->arena);
    free (table->cell);
    free (table);
}

static const struct table_column *next_column (const struct table *table)
{
    return &table->column[table->cells % table->columns];
}

static void add (struct table *table, struct cell cell)
{
    if (table->cells == table->cell_cap) {
        size_t cap = table->cell_cap ? table->cell_cap * 2 : 64;
        struct cell *grown = reallocarray (table->cell, cap, sizeof *grown);
        assert (grown);
        table->cell = grown;
        table->cell_cap = cap;
    }
    table->cell[table->cells++] = cell;
}

static void add_value (struct table *table, enum table_type type, int64_t value)
{
    assert (next_column (table)->type == type);
    add (table, (struct cell){.value = value});
}

void table_text (struct table *table, const char *text)
{
    assert (next_column (table)->type == TABLE_TEXT);
    add (table, text ? (struct cell){.text = arena_strdup (table->arena, text)}
                     : (struct cell){.is_null = true});
}

void table_printf (struct table *table, const char *fmt, ...)
{
    assert (next_column (table)->type == TABLE_TEXT);
    va_list ap;
    va_start (ap, fmt);
    add (table, (struct cell){.text = arena_vprintf (table->arena, fmt, ap)});
    va_end (ap);
}

void table_int (struct table *table, int64_t value)
{
    add_value (table, TABLE_INT, value);
}

void table_credits (struct table *table, credit_micro amount)
{
    add_value (table, TABLE_CREDITS, amount);
}

void table_credits_wide (struct table *table, credit_micro amount, const char *wide)
{
    assert (next_column (table)->type == TABLE_CREDITS);
    add (table, (struct cell){.value = amount, .text = wide[0] ? arena_strdup (table->arena, wide) : NULL});
}

void table_duration (struct table *table, duration_us d)
{
    add_value (table, TABLE_DURATION, d);
}

void table_time (struct table *table, time_us t)
{
    if (t == TIME_US_NONE)
        table_null (table);
    else
        add_value (table, TABLE_TIME, t);
}

void table_ppm (struct table *table, int64_t ppm)
{
    add_value (table, TABLE_PPM, ppm);
}

void table_bool (struct table *table, bool value)
{
    add_value (table, TABLE_BOOL, value);
}

void table_null (struct table *table)
{
    add (table, (struct cell){.is_null = true});
}

void table_end_row (struct table *table)
{
    assert (table->cells > 0 && table->cells % table->columns == 0);
}

uint32_t table_row_count (const struct table *table)
{
    return (uint32_t)(table->cells / table->columns);
}

/* --- spelling of one cell ------------------------------------------------------------------- */

/* A decimal with a fixed number of digits, rounded half away from zero, without floating point. */
static void format_ppm (int64_t ppm, unsigned decimals, struct strbuf *out)
{
    uint64_t size = ppm < 0 ? -(uint64_t)ppm : (uint64_t)ppm, unit = 1;
    for (unsigned i = decimals; i < 6; i++)
        unit *= 10;
    size = size / unit + (unit > 1 && size % unit >= unit / 2);
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++)
        one *= 10;
    strbuf_printf (out, "%s%" PRIu64, ppm < 0 && size > 0 ? "-" : "", size / one);
    if (decimals > 0)
        strbuf_printf (out, ".%0*" PRIu64, (int)decimals, size % one);
}

/* Text of others on a terminal: control characters would be commands to it. */
static void append_plain (struct strbuf *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f; /* U+0080 … U+009F */
        strbuf_putc (out, *p < 0x20 || *p == 0x7f || c1 ? '?' : (char)*p);
        p += c1;
    }
}

static void cell_for_people (const struct table_column *column, const struct cell *cell,
                             struct strbuf *out)
{
    char buf[QUANTITY_TEXT_MAX];
    if (cell->is_null) {
        strbuf_putc (out, '-');
        return;
    }
    switch (column->type) {
    case TABLE_TEXT:
        append_plain (out, cell->text);
        break;
    case TABLE_INT:
        strbuf_printf (out, "%" PRId64, cell->value);
        break;
    case TABLE_CREDITS:
        strbuf_puts (out, cell->text ? cell->text : credit_format (cell->value, buf));
        break;
    case TABLE_DURATION:
        strbuf_puts (out, duration_format (cell->value, buf));
        break;
    case TABLE_TIME:
        strbuf_puts (out, time_format_table (cell->value, buf));
        break;
    case TABLE_PPM:
        format_ppm (cell->value, column->decimals > 6 ? 6 : column->decimals, out);
        break;
    case TABLE_BOOL:
        strbuf_puts (out, cell->value ? "yes" : "no");
        break;
    }
}

static void cell_for_csv (const struct table_column *column, const struct cell *cell,
                          struct strbuf *out)
{
    char buf[QUANTITY_TEXT_MAX];
    if (cell->is_null)
        return;
    if (column->type == TABLE_TIME) {
        strbuf_puts (out, time_format_iso (cell->value, buf));
    } else if (column->type == TABLE_PPM) {
        strbuf_puts (out, credit_format (cell->value, buf));
    } else if (column->type == TABLE_BOOL) {
        strbuf_puts (out, cell->value ? "true" : "false");
    } else if (column->type != TABLE_TEXT) {
        cell_for_people (column, cell, out);
    } else if (!strpbrk (cell->text, ",\"\r\n")) {
        strbuf_puts (out, cell->text);
    } else { /* RFC 4180, 2.6 and 2.7 */
        strbuf_putc (out, '"');
        for (const char *p = cell->text; *p; p++) {
            if (*p == '"')
                strbuf_putc (out, '"');
            strbuf_putc (out, *p);
        }
        strbuf_putc (out, '"');
    }
}

static void cell_for_json (const struct table_column *column, const struct cell *cell,
                           struct jsonout *json)
{
    if (cell->is_null) {
        jsonout_null (json);
        return;
    }
    switch (column->type) {
    case TABLE_TEXT:
        jsonout_text (json, cell->text);
        break;
    case TABLE_INT:
        jsonout_int (json, cell->value);
        break;
    case TABLE_CREDITS:
        if (cell->text)
            jsonout_text (json, cell->text);
        else
            jsonout_credits (json, cell->value);
        break;
    case TABLE_DURATION:
        jsonout_duration (json, cell->value);
        break;
    case TABLE_TIME:
        jsonout_time (json, cell->value);
        break;
    case TABLE_PPM:
        jsonout_ppm (json, cell->value);
        break;
    case TABLE_BOOL:
        jsonout_bool (json, cell->value);
        break;
    }
}

/* --- whole tables --------------------------------------------------------------------------- */

/* Columns on a terminal: one per character; continuation bytes of UTF-8 take none. */
static size_t width_of (const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_padded (struct strbuf *out, const char *text, size_t width, bool right, bool last)
{
    size_t pad = width - width_of (text);
    if (right)
        strbuf_printf (out, "%*s", (int)pad, "");
    strbuf_puts (out, text);
    if (!right && !last)
        strbuf_printf (out, "%*s", (int)pad, "");
    strbuf_puts (out, last ? "\n" : "  ");
}

void table_to_text (const struct table *table, bool noheader, bool colour, struct strbuf *out)
{
    size_t *width = calloc (table->columns, sizeof *width);
    char **text = calloc (table->cells + 1, sizeof *text);
    assert (width && text);
    for (uint32_t c = 0; c < table->columns && !noheader; c++)
        width[c] = width_of (table->column[c].title);
    for (size_t i = 0; i < table->cells; i++) {
        uint32_t c = (uint32_t)(i % table->columns);
        struct strbuf b = STRBUF_INIT;
        cell_for_people (&table->column[c], &table->cell[i], &b);
        text[i] = strbuf_steal (&b);
        size_t w = width_of (text[i]);
        width[c] = w > width[c] ? w : width[c];
    }
    if (!noheader) {
        strbuf_puts (out, colour ? "\033[1m" : "");
        for (uint32_t c = 0; c < table->columns; c++)
            put_padded (out, table->column[c].title, width[c], table->column[c].type != TABLE_TEXT,
                        c + 1 == table->columns);
        strbuf_puts (out, colour ? "\033[0m" : "");
    }
    for (size_t i = 0; i < table->cells; i++) {
        uint32_t c = (uint32_t)(i % table->columns);
        put_padded (out, text[i], width[c], table->column[c].type != TABLE_TEXT,
                    c + 1 == table->columns);
        free (text[i]);
    }
    free (text);
    free (width);
}

void table_to_csv (const struct table *table, bool noheader, struct strbuf *out)
{
    for (uint32_t c = 0; c < table->columns && !noheader; c++)
        strbuf_printf (out, "%s%s", table->column[c].key, c + 1 == table->columns ? "\n" : ",");
    for (size_t i = 0; i < table->cells; i++) {
        uint32_t c = (uint32_t)(i % table->columns);
        cell_for_csv (&table->column[c], &table->cell[i], out);
        strbuf_putc (out, c + 1 == table->columns ? '\n' : ',');
    }
}

void table_to_json_row (const struct table *table, uint32_t row, struct jsonout *json)
{
    assert (row < table_row_count (table));
    jsonout_object (json);
    for (uint32_t c = 0; c < table->columns; c++) {
        jsonout_key (json, table->column[c].key);
        cell_for_json (&table->column[c], &table->cell[(size_t)row * table->columns + c], json);
    }
    jsonout_end (json);
}

void table_to_json (const struct table *table, struct jsonout *json)
{
    jsonout_array (json);
    for (uint32_t r = 0; r < table_row_count (table); r++)
        table_to_json_row (table, r, json);
    jsonout_end (json);
}

int cli_output (const struct strbuf *text)
{
    size_t len = text->len;
    bool good = (len == 0 || fwrite (text->data, 1, len, stdout) == len) && fflush (stdout) == 0;
    if (good)
        return CLI_OK;
    if (errno != EPIPE) /* the reader has had enough: no news */
        fprintf (stderr, "nui: the output cannot be written: %s\n", strerror (errno));
    return CLI_FAILED;
}

int table_print (struct table *table, struct cli_context *ctx)
{
    struct strbuf out = STRBUF_INIT;
    struct jsonout json = jsonout_make (&out);
    switch (cli_format (ctx)) {
    case CLI_TABLE:
        table_to_text (table, cli_noheader (ctx), cli_colour (ctx), &out);
        break;
    case CLI_JSON:
        table_to_json (table, &json);
        break;
    case CLI_CSV:
        table_to_csv (table, cli_noheader (ctx), &out);
        break;
    }
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

/* "Title:  value", the values in one column. */
static void record_to_text (const struct table *table, struct strbuf *out)
{
    size_t width = 0;
    for (uint32_t c = 0; c < table->columns; c++) {
        size_t w = width_of (table->column[c].title);
        width = w > width ? w : width;
    }
    for (uint32_t c = 0; c < table->columns; c++) {
        const char *title = table->column[c].title;
        strbuf_printf (out, "%s:%*s", title, (int)(width - width_of (title)) + 2, "");
        cell_for_people (&table->column[c], &table->cell[c], out);
        strbuf_putc (out, '\n');
    }
}

int table_print_record (struct table *table, struct cli_context *ctx)
{
    assert (table_row_count (table) == 1);
    if (cli_format (ctx) == CLI_CSV)
        return table_print (table, ctx);
    struct strbuf out = STRBUF_INIT;
    struct jsonout json = jsonout_make (&out);
    if (cli_format (ctx) == CLI_JSON)
        table_to_json_row (table, 0, &json);
    else
        record_to_text (table, &out);
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}
