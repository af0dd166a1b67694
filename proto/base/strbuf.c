/* strbuf: one malloc'ed block that doubles. Everything that builds text or bytes piece by piece
 * calls it. It trusts its caller: the length of what comes from outside is bounded before it
 * gets here. */
#include "proto/base/strbuf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/arena.h"

static void reserve (struct strbuf *b, size_t more)
{
    assert (more < SIZE_MAX - b->len);
    size_t need = b->len + more + 1;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *data = realloc (b->data, cap);
    assert (data);
    b->data = data;
    b->cap = cap;
}

void strbuf_append (struct strbuf *b, const void *bytes, size_t len)
{
    reserve (b, len);
    if (len)
        memcpy (b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void strbuf_puts (struct strbuf *b, const char *text)
{
    strbuf_append (b, text, strlen (text));
}

void strbuf_putc (struct strbuf *b, char c)
{
    strbuf_append (b, &c, 1);
}

void strbuf_vprintf (struct strbuf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy (again, ap);
    int n = vsnprintf (NULL, 0, fmt, again);
    va_end (again);
    assert (n >= 0);
    reserve (b, (size_t)n);
    vsnprintf (b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
}

void strbuf_printf (struct strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    strbuf_vprintf (b, fmt, ap);
    va_end (ap);
}

void strbuf_clear (struct strbuf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void strbuf_free (struct strbuf *b)
{
    free (b->data);
    *b = (struct strbuf)STRBUF_INIT;
}

char *strbuf_text (struct strbuf *b)
{
    reserve (b, 0);
    b->data[b->len] = '\0';
    return b->data;
}

char *strbuf_steal (struct strbuf *b)
{
    char *data = strbuf_text (b);
    *b = (struct strbuf)STRBUF_INIT;
    return data;
}

char *strbuf_move (struct strbuf *b, struct arena *arena)
{
    char *text = arena_strdup (arena, strbuf_text (b));
    strbuf_free (b);
    return text;
}
