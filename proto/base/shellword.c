/* shellword: single quotes keep everything from a shell but themselves. */
#include "proto/base/shellword.h"

void shell_word (struct strbuf *b, const char *text)
{
    strbuf_putc (b, '\'');
    for (; *text; text++)
        if (*text == '\'')
            strbuf_puts (b, "'\\''");
        else
            strbuf_putc (b, *text);
    strbuf_putc (b, '\'');
}
