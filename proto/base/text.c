/* Well-formed UTF-8 in bounded buffers, used by every program and core. A malformed byte is shown as
 * '?', never dropped, so that the length of what is mended stays and a reader sees that something was
 * there; only the torn character at the place of a cut goes. */
#include "proto/base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t text_char (const void *at, size_t left)
{
    const uint8_t *p = at;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        return left >= 2 && (p[1] & 0xc0) == 0x80 ? 2 : 0;
    if ((p[0] & 0xf0) == 0xe0) {
        if (left < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
            return 0;
        if (p[0] == 0xe0 && p[1] < 0xa0)
            return 0;
        return p[0] == 0xed && p[1] > 0x9f ? 0 : 3;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        if (left < 4 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80)
            return 0;
        if (p[0] == 0xf0 && p[1] < 0x90)
            return 0;
        return p[0] == 0xf4 && p[1] > 0x8f ? 0 : 4;
    }
    return 0;
}

/* How much of it begins with words of eight characters below 0x80, none of them NUL: most text is that. */
static size_t ascii_run (const uint8_t *p, size_t len)
{
    const uint64_t ones = UINT64_C (0x0101010101010101), high = ones << 7;
    size_t n = 0;

    for (uint64_t word; n + sizeof word <= len; n += sizeof word) {
        memcpy (&word, p + n, sizeof word);
        if ((word | (word - ones)) & high) /* with NUL the subtraction borrows */
            break;
    }
    return n;
}

bool text_ok (const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    while (len > 0) {
        size_t n = ascii_run (p, len);
        if (n == 0 && p[0] != 0)
            n = text_char (p, len);
        if (n == 0)
            return false;
        p += n;
        len -= n;
    }
    return true;
}

void text_mend (void *bytes, size_t len)
{
    uint8_t *p = bytes;

    while (len > 0) {
        size_t n = p[0] == 0 ? 0 : text_char (p, len);
        if (n == 0) {
            *p = '?';
            n = 1;
        }
        p += n;
        len -= n;
    }
}

/* Where the last character begins, if its end is missing; else len. */
static size_t text_whole (const char *text, size_t len)
{
    size_t at = len;

    while (at > 0 && len - at < 4 && ((uint8_t)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at == 0 || (uint8_t)text[at - 1] < 0xc0)
        return len; /* ASCII, or bytes that no character begins */
    at--;
    uint8_t lead = (uint8_t)text[at];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    return len - at < want ? at : len;
}

size_t text_vprintf (char *out, size_t cap, const char *fmt, va_list ap)
{
    int n = vsnprintf (out, cap, fmt, ap);
    size_t len = n < 0 ? 0 : (size_t)n;

    if (len >= cap)
        len = text_whole (out, cap - 1);
    out[len] = '\0';
    text_mend (out, len);
    return len;
}

size_t text_printf (char *out, size_t cap, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    size_t len = text_vprintf (out, cap, fmt, ap);
    va_end (ap);
    return len;
}
