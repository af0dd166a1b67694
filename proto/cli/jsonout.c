/* jsonout: keeps depth and commas; what is printed is appended to a strbuf. Commands whose
 * document is more than one table call it, and table.c. It never writes a number in floating
 * point. */
#include "proto/cli/jsonout.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "proto/base/text.h"

struct jsonout jsonout_make (struct strbuf *out)
{
    return (struct jsonout){.out = out};
}

static void indent (struct jsonout *j)
{
    strbuf_putc (j->out, '\n');
    for (unsigned i = 0; i < j->depth; i++)
        strbuf_puts (j->out, "  ");
}

/* Comma, newline and indentation before an item; a value after its key needs none. */
static void before_item (struct jsonout *j)
{
    if (j->depth == 0)
        return;
    if (j->has_items[j->depth - 1])
        strbuf_putc (j->out, ',');
    j->has_items[j->depth - 1] = true;
    indent (j);
}

static void before_value (struct jsonout *j)
{
    bool in_object = j->depth > 0 && j->is_object[j->depth - 1];
    assert (in_object == j->key_given);
    if (!in_object)
        before_item (j);
    j->key_given = false;
}

static void begin (struct jsonout *j, bool is_object)
{
    before_value (j);
    assert (j->depth < JSONOUT_DEPTH_MAX);
    strbuf_putc (j->out, is_object ? '{' : '[');
    j->is_object[j->depth] = is_object;
    j->has_items[j->depth] = false;
    j->depth++;
}

void jsonout_object (struct jsonout *j)
{
    begin (j, true);
}

void jsonout_array (struct jsonout *j)
{
    begin (j, false);
}

void jsonout_end (struct jsonout *j)
{
    assert (j->depth > 0 && !j->key_given);
    j->depth--;
    if (j->has_items[j->depth])
        indent (j);
    strbuf_putc (j->out, j->is_object[j->depth] ? '}' : ']');
    if (j->depth == 0)
        strbuf_putc (j->out, '\n');
}

static void quote (struct strbuf *out, const char *text)
{
    strbuf_putc (out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t len = text_char (p, strnlen ((const char *)p, 4));
        if (len == 0)
            strbuf_putc (out, '?');
        else if (*p == '"' || *p == '\\')
            strbuf_printf (out, "\\%c", *p);
        else if (*p == '\n')
            strbuf_puts (out, "\\n");
        else if (*p < 0x20 || *p == 0x7f)
            strbuf_printf (out, "\\u%04x", *p);
        else
            strbuf_append (out, p, len);
        p += len ? len : 1;
    }
    strbuf_putc (out, '"');
}

void jsonout_key (struct jsonout *j, const char *key)
{
    assert (j->depth > 0 && j->is_object[j->depth - 1] && !j->key_given);
    before_item (j);
    quote (j->out, key);
    strbuf_puts (j->out, ": ");
    j->key_given = true;
}

static void literal (struct jsonout *j, const char *text)
{
    before_value (j);
    strbuf_puts (j->out, text);
}

void jsonout_text (struct jsonout *j, const char *text)
{
    before_value (j);
    if (text)
        quote (j->out, text);
    else
        strbuf_puts (j->out, "null");
}

void jsonout_int (struct jsonout *j, int64_t value)
{
    before_value (j);
    strbuf_printf (j->out, "%" PRId64, value);
}

void jsonout_uint (struct jsonout *j, uint64_t value)
{
    before_value (j);
    strbuf_printf (j->out, "%" PRIu64, value);
}

void jsonout_bool (struct jsonout *j, bool value)
{
    literal (j, value ? "true" : "false");
}

void jsonout_null (struct jsonout *j)
{
    literal (j, "null");
}

void jsonout_ppm (struct jsonout *j, int64_t ppm)
{
    char buf[QUANTITY_TEXT_MAX];
    literal (j, credit_format (ppm, buf)); /* the same millionths */
}

/* A number, exact. */
static void jsonout_credits (struct jsonout *j, credit_micro amount)
{
    char buf[QUANTITY_TEXT_MAX];
    literal (j, credit_format (amount, buf));
}

void jsonout_credits_wide (struct jsonout *j, credit_micro amount, const char *wide)
{
    if (wide[0])
        literal (j, wide);
    else
        jsonout_credits (j, amount);
}

void jsonout_time (struct jsonout *j, time_us t)
{
    char buf[QUANTITY_TEXT_MAX];
    if (t == TIME_US_NONE || t == TIME_US_MAX)
        jsonout_null (j);
    else
        jsonout_text (j, time_format_iso (t, buf));
}

void jsonout_duration (struct jsonout *j, duration_us d)
{
    char buf[QUANTITY_TEXT_MAX];
    jsonout_text (j, duration_format (d, buf));
}
