/* strbuf: a growing text or byte buffer. Pure. Always NUL terminated; out of memory aborts. */
#ifndef NUI_BASE_STRBUF_H
#define NUI_BASE_STRBUF_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct strbuf {
    char *data; /* owned; NULL until the first append */
    size_t len;
    size_t cap;
};

#define STRBUF_INIT                                                                                \
    {                                                                                              \
        0                                                                                          \
    }

void strbuf_append (struct strbuf *b, const void *bytes, size_t len);
void strbuf_puts (struct strbuf *b, const char *text);
void strbuf_putc (struct strbuf *b, char c);
void strbuf_printf (struct strbuf *b, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));
void strbuf_vprintf (struct strbuf *b, const char *fmt, va_list ap)
    __attribute__ ((format (printf, 2, 0)));
void strbuf_clear (struct strbuf *b); /* len 0, keeps the memory */
void strbuf_free (struct strbuf *b);
char *strbuf_text (struct strbuf *b);                      /* never NULL */
char *strbuf_steal (struct strbuf *b);                     /* the caller frees; b is empty again */
char *strbuf_move (struct strbuf *b, struct arena *arena); /* the text, in the arena; b is freed */

#endif
