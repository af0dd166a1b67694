/* table: keeps cells as values, measures, and prints in the format asked for. Nearly every
 * command of nui ends here. Text that others wrote never reaches a terminal with its control
 * characters, and a table is shortened for people only: JSON and CSV are whole. */
#include "proto/cli/table.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/arena.h"
#include "proto/base/clock.h"
#include "proto/cli/message.h"

struct cell {
    bool is_null;
    int64_t value;    /* every type but TABLE_TEXT */
    const char *text; /* TABLE_TEXT */
};

struct table {
    const struct table_column *column;
    uint32_t columns;
    struct arena *arena;
    const void *beside; /* of cells' functions */
    struct cell *cell;  /* row after row */
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

void table_set_beside (struct table *table, const void *beside)
{
    table->beside = beside;
}

const void *table_beside (const struct table *table)
{
    return table->beside;
}

static bool is_text (const struct table_column *column)
{
    return column->type == TABLE_TEXT || column->type == TABLE_IDENTITY;
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
    assert (is_text (next_column (table)));
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
    add (table, (struct cell){.value = amount,
                              .text = wide[0] ? arena_strdup (table->arena, wide) : NULL});
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

/* --- another order ---------------------------------------------------------------------------- */

static uint32_t column_of (const struct table *table, const char *key, struct err *err)
{
    struct strbuf all = STRBUF_INIT;
    for (uint32_t c = 0; c < table->columns; c++) {
        if (strcmp (table->column[c].key, key) == 0) {
            strbuf_free (&all);
            return c;
        }
        strbuf_printf (&all, "%s%s", c ? ", " : "", table->column[c].key);
    }
    err_set (err, ERR_INVALID, "there is no column '%.40s'; there are %s", key, strbuf_text (&all));
    strbuf_free (&all);
    return table->columns;
}

struct order {
    const struct table *table;
    uint32_t column;
    bool falling;
};

static int rows_compare (const void *pa, const void *pb, void *arg)
{
    const struct order *o = arg;
    uint32_t row_a = *(const uint32_t *)pa, row_b = *(const uint32_t *)pb;
    const struct cell *a = &o->table->cell[(size_t)row_a * o->table->columns + o->column];
    const struct cell *b = &o->table->cell[(size_t)row_b * o->table->columns + o->column];
    int rc = 0;
    if (a->is_null || b->is_null)
        rc = (a->is_null - b->is_null) * (o->falling ? -1 : 1);
    else if (is_text (&o->table->column[o->column]))
        rc = strverscmp (a->text, b->text); /* grid.9 before grid.10 */
    else
        rc = (a->value > b->value) - (a->value < b->value);
    rc = o->falling ? -rc : rc;
    return rc ? rc : (row_a > row_b) - (row_a < row_b);
}

int table_arrange (struct table *table, const char *columns, const char *sort, struct err *err)
{
    uint32_t rows = table_row_count (table), count = 0;
    uint32_t *row = arena_array (table->arena, rows + 1, sizeof *row), chosen[64];
    char *rest = columns ? arena_strdup (table->arena, columns) : NULL;
    while (rest) {
        const char *key = strsep (&rest, ",");
        uint32_t c = column_of (table, key, err);
        if (c == table->columns)
            return err->code;
        if (count == sizeof chosen / sizeof *chosen)
            return err_set (err, ERR_LIMIT, "more than 64 columns");
        chosen[count++] = c;
    }
    for (uint32_t c = 0; !columns && c < table->columns; c++)
        chosen[count++] = c;
    for (uint32_t r = 0; r < rows; r++)
        row[r] = r;
    if (sort) {
        struct order order = {table, column_of (table, sort + (*sort == '-'), err), *sort == '-'};
        if (order.column == table->columns)
            return err->code;
        qsort_r (row, rows, sizeof *row, rows_compare, &order);
    }
    struct table_column *column = arena_array (table->arena, count, sizeof *column);
    struct cell *cell = reallocarray (NULL, (size_t)rows * count + 1, sizeof *cell);
    assert (cell);
    for (uint32_t c = 0; c < count; c++)
        column[c] = table->column[chosen[c]];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < count; c++)
            cell[(size_t)r * count + c] = table->cell[(size_t)row[r] * table->columns + chosen[c]];
    free (table->cell);
    table->cell = cell;
    table->cells = table->cell_cap = (size_t)rows * count;
    table->column = column;
    table->columns = count;
    return 0;
}

/* --- rows from messages --------------------------------------------------------------------- */

static void cell_of_text (struct table *table, const ProtobufCMessage *of,
                          const ProtobufCFieldDescriptor *field)
{
    const char *between = next_column (table)->between;
    const char *text =
        field->type == PROTOBUF_C_TYPE_STRING
            ? message_text (of, field, between ? between : ",", table->arena)
        : field->type == PROTOBUF_C_TYPE_ENUM
            ? message_word (of, field, table->arena)
            : arena_printf (table->arena, "%lld", (long long)message_integer (of, field));
    add (table, (struct cell){.text = arena_strdup (table->arena, text), .is_null = !*text});
}

static void cell_of_field (struct table *table, const ProtobufCMessage *of,
                           const ProtobufCFieldDescriptor *field)
{
    enum table_type type = next_column (table)->type;
    if (type == TABLE_TEXT || type == TABLE_IDENTITY) {
        cell_of_text (table, of, field);
        return;
    }
    int64_t value = message_integer (of, field);
    if (type == TABLE_CREDITS)
        table_credits_wide (table, value, message_wide (of, field));
    else if (type == TABLE_TIME)
        table_time (table, value ? value : TIME_US_NONE);
    else
        add_value (table, type,
                   type == TABLE_PPM && message_field_ends (field, "_milli") ? value * 1000
                                                                             : value);
}

/* The cell of the column that comes next, from a message: for columns with a function. */
static void table_cell (struct table *table, const ProtobufCMessage *message, const char *path)
{
    const ProtobufCFieldDescriptor *field;
    const ProtobufCMessage *of = message_follow (message, path, &field);
    if (of)
        cell_of_field (table, of, field);
    else
        table_null (table);
}

void table_message (struct table *table, const ProtobufCMessage *message,
                    const ProtobufCMessage *other)
{
    assert (table->cells % table->columns == 0);
    table_message_rest (table, message, other);
}

void table_message_rest (struct table *table, const ProtobufCMessage *message,
                         const ProtobufCMessage *other)
{
    for (size_t c = table->cells % table->columns; c < table->columns; c++) {
        const struct table_column *column = &table->column[c];
        const char *path = column->from ? column->from : column->key;
        if (column->cell)
            column->cell (table, message);
        else if (!*path)
            add (table, (struct cell){.text = is_text (column) ? "" : NULL});
        else
            table_cell (
                table, other && !message_field (message->descriptor, path) ? other : message, path);
    }
    table_end_row (table);
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
    const char *slash;
    if (cell->is_null) {
        strbuf_putc (out, '-');
        return;
    }
    switch (column->type) {
    case TABLE_TEXT:
        append_plain (out, cell->text);
        break;
    case TABLE_IDENTITY: /* an operator's stays whole: it is not a user's who is called alike */
        slash = strstr (cell->text, "/operator/") ? NULL : strrchr (cell->text, '/');
        append_plain (out, slash ? slash + 1 : cell->text);
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
    } else if (!is_text (column)) {
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
    case TABLE_IDENTITY:
        jsonout_text (json, cell->text);
        break;
    case TABLE_INT:
        jsonout_int (json, cell->value);
        break;
    case TABLE_CREDITS:
        jsonout_credits_wide (json, cell->value, cell->text ? cell->text : "");
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

/* --- years and zones: once for a column, once for a table ------------------------------------- */

static int year_of (time_us t)
{
    time_t seconds = (time_t)(t / US_PER_S);
    struct tm tm = {0};
    localtime_r (&seconds, &tm);
    return tm.tm_year + 1900;
}

static const struct cell *cell_at (const struct table *table, uint32_t row, uint32_t column)
{
    return &table->cell[(size_t)row * table->columns + column];
}

static bool is_moment (const struct table *table, uint32_t row, uint32_t column)
{
    const struct cell *cell = cell_at (table, row, column);
    return table->column[column].type == TABLE_TIME && !cell->is_null && cell->value != TIME_US_MAX;
}

/* Whether a moment of the column is in another year than now: then all of it says which. */
static bool years_shown (const struct table *table, uint32_t column, time_us now)
{
    for (uint32_t r = 0; r < table_row_count (table) && now; r++)
        if (is_moment (table, r, column) &&
            year_of (cell_at (table, r, column)->value) != year_of (now))
            return true;
    return false;
}

/* "STARTTIME (CET)": the first column of moments says in which zones all are, "CET/CEST" where they differ. */
static void title_put (const struct table *table, uint32_t column, const struct table_look *look,
                       struct strbuf *out)
{
    struct tm tm;
    char zone[2][16] = {"", ""};
    int zones = 0;
    strbuf_puts (out, table->column[column].title);
    for (uint32_t c = 0; c < column; c++)
        if (table->column[c].type == TABLE_TIME)
            return;
    if (!look->zone || table->column[column].type != TABLE_TIME)
        return;
    for (size_t i = 0; i < table->cells && zones < 2; i++) {
        if (!is_moment (table, (uint32_t)(i / table->columns), (uint32_t)(i % table->columns)))
            continue;
        time_t seconds = (time_t)(table->cell[i].value / US_PER_S);
        if (localtime_r (&seconds, &tm) && (zones == 0 || strcmp (zone[0], tm.tm_zone) != 0))
            snprintf (zone[zones++], sizeof zone[0], "%s", tm.tm_zone);
    }
    if (zones)
        strbuf_printf (out, " (%s%s%s)", zone[0], zones > 1 ? "/" : "", zone[1]);
}

/* --- widths ------------------------------------------------------------------------------------- */

enum { SHORTENED_LEAST = 8, SHORTENED_WELL = 24 };

static bool column_is_empty (const struct table *table, uint32_t column)
{
    for (size_t i = column; i < table->cells; i += table->columns)
        if (!table->cell[i].is_null)
            return false;
    return table->cells > 0;
}

/* The one that is missed least; 0, the first, which says which row it is: none. */
static uint32_t column_to_spare (const struct table *table)
{
    uint32_t found = 0;
    for (uint32_t c = table->columns; c-- > 1;)
        if (column_is_empty (table, c))
            return c;
        else if (table->column[c].spare > (found ? table->column[found].spare : 0))
            found = c;
    return found;
}

/* Whether it does not fit even when its texts are shortened. */
static bool is_too_wide (const struct table *table, const struct table_look *look,
                         const size_t *width)
{
    size_t all = 0;
    for (uint32_t c = 0; c < table->columns; c++)
        all += 2 + (c && is_text (&table->column[c]) && width[c] > SHORTENED_WELL ? SHORTENED_WELL
                                                                                  : width[c]);
    return look->width && all > look->width + 2;
}

static void without_column (const struct table *table, uint32_t column, struct table_look look,
                            struct strbuf *out)
{
    uint32_t columns = table->columns, n = 0;
    struct table less = {.columns = columns - 1};
    struct table_column *title = calloc (columns, sizeof *title);
    less.cell = calloc (table->cells + 1, sizeof *less.cell);
    assert (title && less.cell);
    for (uint32_t c = 0; c < columns; c++)
        if (c != column)
            title[n++] = table->column[c];
    for (size_t i = 0; i < table->cells; i++)
        if (i % columns != column)
            less.cell[less.cells++] = table->cell[i];
    less.column = title;
    table_to_text (&less, look, out);
    free (less.cell);
    free (title);
}

/* Columns stand in the order of their importance: from the last one on, texts give up what the terminal has not. The first
 * says which row it is and stays. */
static void widths_fit (const struct table *table, const struct table_look *look,
                        char *const *title, size_t *width)
{
    size_t all = 2 * ((size_t)table->columns - 1);
    for (uint32_t c = 0; c < table->columns; c++)
        all += width[c];
    for (uint32_t c = table->columns; look->width && all > look->width && c-- > 1;) {
        size_t least = look->noheader ? 0 : width_of (title[c]);
        least = least > SHORTENED_LEAST ? least : SHORTENED_LEAST;
        if (!is_text (&table->column[c]) || width[c] <= least)
            continue;
        size_t give = all - look->width;
        give = give < width[c] - least ? give : width[c] - least;
        width[c] -= give;
        all -= give;
    }
}

/* In place, so that it takes so many columns at most, the last of them a mark. */
static void shorten (char **text, size_t width)
{
    static const char mark[] = "…";
    size_t n = 0, at = 0;
    if (width_of (*text) <= width)
        return;
    for (; (*text)[at]; at++) {
        n += ((unsigned char)(*text)[at] & 0xc0) != 0x80;
        if (n == width)
            break;
    }
    struct strbuf out = STRBUF_INIT;
    strbuf_append (&out, *text, at);
    strbuf_puts (&out, mark);
    free (*text);
    *text = strbuf_steal (&out);
}

/* "… clear at 2026-11-26T17:14:19Z": a daemon's sentence says moments in UTC; who reads it at a terminal has them as all moments
 * of tables are. */
static void moments_local (const char *text, time_us now, struct strbuf *out)
{
    static const char pattern[] =
        "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z*";
    while (*text) {
        struct tm tm = {0};
        char local[QUANTITY_TEXT_MAX];
        const char *rest =
            fnmatch (pattern, text, 0) == 0 ? strptime (text, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
        if (!rest) {
            strbuf_putc (out, *text++);
            continue;
        }
        time_us moment = (time_us)timegm (&tm) * US_PER_S;
        strbuf_puts (out, time_format_table (moment, local));
        if (year_of (moment) != year_of (now))
            strbuf_printf (out, " %d", year_of (moment));
        text = rest;
    }
}

static char *cell_spelled (const struct table *table, size_t i, bool year,
                           const struct table_look *look)
{
    struct strbuf b = STRBUF_INIT;
    uint32_t c = (uint32_t)(i % table->columns);
    if (look->width && table->column[c].type == TABLE_TEXT && !table->cell[i].is_null) {
        struct strbuf utc = STRBUF_INIT;
        cell_for_people (&table->column[c], &table->cell[i], &utc);
        moments_local (strbuf_text (&utc), look->now, &b);
        strbuf_free (&utc);
        return strbuf_steal (&b);
    }
    cell_for_people (&table->column[c], &table->cell[i], &b);
    if (year && is_moment (table, (uint32_t)(i / table->columns), c))
        strbuf_printf (&b, " %d", year_of (table->cell[i].value));
    return strbuf_steal (&b);
}

void table_to_text (const struct table *table, struct table_look look, struct strbuf *out)
{
    uint32_t columns = table->columns;
    size_t *width = calloc (columns, sizeof *width);
    bool *year = calloc (columns, sizeof *year);
    char **text = calloc (table->cells + columns, sizeof *text); /* the titles, then the cells */
    assert (width && year && text);
    for (uint32_t c = 0; c < columns; c++) {
        struct strbuf title = STRBUF_INIT;
        title_put (table, c, &look, &title);
        text[c] = strbuf_steal (&title);
        year[c] = years_shown (table, c, look.now);
        width[c] = look.noheader ? 0 : width_of (text[c]);
    }
    for (size_t i = 0; i < table->cells; i++) {
        uint32_t c = (uint32_t)(i % columns);
        text[columns + i] = cell_spelled (table, i, year[c], &look);
        size_t w = width_of (text[columns + i]);
        width[c] = w > width[c] ? w : width[c];
    }
    uint32_t spared = is_too_wide (table, &look, width) ? column_to_spare (table) : 0;
    if (spared)
        without_column (table, spared, look, out);
    widths_fit (table, &look, text, width);
    for (size_t i = 0; i < table->cells + columns; i++) {
        uint32_t c = (uint32_t)(i % columns);
        if (!spared && (i >= columns || !look.noheader)) {
            strbuf_puts (out, look.colour && i == 0 ? "\033[1m" : "");
            shorten (&text[i], width[c]);
            put_padded (out, text[i], width[c], !is_text (&table->column[c]), c + 1 == columns);
            strbuf_puts (out, look.colour && i == columns - 1 ? "\033[0m" : "");
        }
        free (text[i]);
    }
    free (text);
    free (year);
    free (width);
}

struct table_look cli_look (const struct cli_context *ctx)
{
    return (struct table_look){.noheader = cli_noheader (ctx),
                               .colour = cli_colour (ctx),
                               .zone = true,
                               .width = cli_columns (ctx),
                               .now = clock_now_us ()};
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

void table_to_json_members (const struct table *table, uint32_t row, struct jsonout *json)
{
    assert (row < table_row_count (table));
    for (uint32_t c = 0; c < table->columns; c++) {
        jsonout_key (json, table->column[c].key);
        cell_for_json (&table->column[c], &table->cell[(size_t)row * table->columns + c], json);
    }
}

void table_to_json_row (const struct table *table, uint32_t row, struct jsonout *json)
{
    jsonout_object (json);
    table_to_json_members (table, row, json);
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
        table_to_text (table, cli_look (ctx), &out);
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

int table_print_done (struct table *table, struct cli_context *ctx)
{
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

int table_show (struct cli_context *ctx, const struct table_column *columns, uint32_t count,
                const void *items, size_t item_count)
{
    struct table *table = table_create (columns, count);
    const ProtobufCMessage *const *item = items;
    for (size_t i = 0; i < item_count; i++)
        table_message (table, item[i], NULL);
    return table_print_done (table, ctx);
}

/* "Title:  value", the values in one column; nothing of what is not there. */
static void record_to_text (const struct table *table, struct table_look look, struct strbuf *out)
{
    size_t width = 0;
    char **title = calloc (table->columns, sizeof *title);
    assert (title);
    for (uint32_t c = 0; c < table->columns; c++) {
        struct strbuf text = STRBUF_INIT;
        if (table->cell[c].is_null)
            continue;
        title_put (table, c, &look, &text);
        title[c] = strbuf_steal (&text);
        width = width_of (title[c]) > width ? width_of (title[c]) : width;
    }
    for (uint32_t c = 0; c < table->columns; c++) {
        if (!title[c])
            continue;
        char *value = cell_spelled (table, c, years_shown (table, c, look.now), &look);
        strbuf_printf (out, "%s:%*s%s\n", title[c], (int)(width - width_of (title[c])) + 2, "",
                       value);
        free (value);
        free (title[c]);
    }
    free (title);
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
        record_to_text (table, cli_look (ctx), &out);
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}
