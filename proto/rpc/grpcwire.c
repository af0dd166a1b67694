/* grpcwire: content type, timeouts, status texts, and messages cut from a stream of bytes.
 * Server and client (rpccall.c, rpclink.c) call it with what a peer sent: a size is compared
 * with the limit before anything is allocated for it. */
#include "proto/rpc/grpcwire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"

bool grpcwire_content_type_ok (const char *text, size_t len)
{
    static const char want[] = "application/grpc";
    const size_t n = sizeof (want) - 1;

    if (len < n || memcmp (text, want, n) != 0)
        return false;
    return len == n || text[n] == '+' || text[n] == ';';
}

bool grpcwire_timeout_parse (const char *text, size_t len, duration_us *out)
{
    uint64_t n = 0;

    if (len < 2 || len > 9)
        return false;
    for (size_t i = 0; i < len - 1; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    /* 99999999 H is 3.6e17 us: no overflow anywhere below. */
    switch (text[len - 1]) {
    case 'H':
        *out = (duration_us)(n * 3600 * 1000000);
        return true;
    case 'M':
        *out = (duration_us)(n * 60 * 1000000);
        return true;
    case 'S':
        *out = (duration_us)(n * 1000000);
        return true;
    case 'm':
        *out = (duration_us)(n * 1000);
        return true;
    case 'u':
        *out = (duration_us)n;
        return true;
    case 'n':
        *out = (duration_us)((n + 999) / 1000);
        return true;
    default:
        return false;
    }
}

char *grpcwire_timeout_format (duration_us timeout, char buf[GRPCWIRE_TIMEOUT_MAX])
{
    static const struct {
        int64_t us;
        char unit;
    } units[] = {{1, 'u'}, {1000, 'm'}, {1000000, 'S'}, {60000000, 'M'}, {3600000000, 'H'}};
    uint64_t t = timeout < 1 ? 1 : (uint64_t)timeout;
    uint64_t n = 99999999;
    char unit = 'H';

    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        uint64_t rounded = (t + (uint64_t)units[i].us - 1) / (uint64_t)units[i].us;
        if (rounded <= 99999999) {
            n = rounded;
            unit = units[i].unit;
            break;
        }
    }
    snprintf (buf, GRPCWIRE_TIMEOUT_MAX, "%u%c", (unsigned)n, unit);
    return buf;
}

size_t grpcwire_percent_encode (const char *text, size_t len, char *out, size_t cap)
{
    static const char hex[] = "0123456789ABCDEF";
    const uint8_t *p = (const uint8_t *)text;
    size_t n = 0;

    assert (cap > 0);
    while (len > 0) {
        size_t chars = text_char (p, len);
        if (chars == 0)
            chars = 1; /* a stray byte is carried as it is; the other side decides */
        bool plain = p[0] >= 0x20 && p[0] <= 0x7e && p[0] != '%';
        if (n + (plain ? 1 : 3 * chars) >= cap)
            break;
        for (size_t i = 0; i < chars; i++) {
            if (plain) {
                out[n++] = (char)p[i];
            } else {
                out[n++] = '%';
                out[n++] = hex[p[i] >> 4];
                out[n++] = hex[p[i] & 15];
            }
        }
        p += chars;
        len -= chars;
    }
    out[n] = '\0';
    return n;
}

static int hex_value (char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

size_t grpcwire_percent_decode (const char *text, size_t len, char *out, size_t cap)
{
    size_t n = 0;

    assert (cap > 0);
    for (size_t i = 0; i < len && n + 1 < cap; i++) {
        if (text[i] == '%' && len - i > 2 && hex_value (text[i + 1]) >= 0 &&
            hex_value (text[i + 2]) >= 0) {
            out[n++] = (char)(hex_value (text[i + 1]) << 4 | hex_value (text[i + 2]));
            i += 2;
        } else {
            out[n++] = text[i];
        }
    }
    for (size_t i = 0; i < n;) {
        size_t chars = out[i] == '\0' ? 0 : text_char (out + i, n - i);
        if (chars == 0) {
            out[i] = '?';
            chars = 1;
        }
        i += chars;
    }
    out[n] = '\0';
    return n;
}

bool grpcwire_status_parse (const char *text, size_t len, int *out)
{
    int n = 0;

    if (len < 1 || len > 6)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (text[i] - '0');
    }
    *out = n <= 16 ? n : 2;
    return true;
}

int grpcwire_status_of_http (int http_status)
{
    switch (http_status) {
    case 400:
        return 13;
    case 401:
        return 16;
    case 403:
        return 7;
    case 404:
        return 12;
    case 429:
    case 502:
    case 503:
    case 504:
        return 14;
    default:
        return 2;
    }
}

int grpcwire_status_of_reset (uint32_t http2_error)
{
    switch (http2_error) {
    case 0x0: /* NO_ERROR: the stream ended and no status came */
        return 2;
    case 0x7: /* REFUSED_STREAM */
        return 14;
    case 0x8: /* CANCEL */
        return 1;
    case 0xb: /* ENHANCE_YOUR_CALM */
        return 8;
    case 0xc: /* INADEQUATE_SECURITY */
        return 7;
    default:
        return 13;
    }
}

void grpcwire_prefix_put (uint8_t out[GRPCWIRE_PREFIX_LEN], uint32_t len)
{
    out[0] = 0;
    out[1] = (uint8_t)(len >> 24);
    out[2] = (uint8_t)(len >> 16);
    out[3] = (uint8_t)(len >> 8);
    out[4] = (uint8_t)len;
}

static bool reader_reserve (struct grpcwire_reader *r, size_t more)
{
    uint64_t need = (uint64_t)r->have + more;
    uint64_t cap = (uint64_t)r->cap * 2;

    if (need <= r->cap)
        return true;
    if (cap < need)
        cap = need;
    if (cap > r->len)
        cap = r->len;
    assert (need <= r->len);
    uint8_t *body = realloc (r->body, cap);
    if (!body)
        return false;
    r->body = body;
    r->cap = (uint32_t)cap;
    return true;
}

enum grpcwire_read grpcwire_feed (struct grpcwire_reader *r, const uint8_t *data, size_t len,
                                  size_t *used)
{
    *used = 0;
    while (r->prefix_have < GRPCWIRE_PREFIX_LEN) {
        if (*used == len)
            return GRPCWIRE_MORE;
        r->prefix[r->prefix_have++] = data[(*used)++];
        if (r->prefix_have < GRPCWIRE_PREFIX_LEN)
            continue;
        if (r->prefix[0] > 1)
            return GRPCWIRE_BAD;
        if (r->prefix[0] == 1)
            return GRPCWIRE_COMPRESSED;
        r->len = (uint32_t)r->prefix[1] << 24 | (uint32_t)r->prefix[2] << 16 |
                 (uint32_t)r->prefix[3] << 8 | r->prefix[4];
        r->have = 0;
        if (r->len > r->max)
            return GRPCWIRE_TOO_LARGE;
    }
    size_t take = len - *used;
    if (take > r->len - r->have)
        take = r->len - r->have;
    if (take > 0) {
        if (!reader_reserve (r, take))
            return GRPCWIRE_NOMEM;
        memcpy (r->body + r->have, data + *used, take);
        r->have += (uint32_t)take;
        *used += take;
    }
    return r->have == r->len ? GRPCWIRE_COMPLETE : GRPCWIRE_MORE;
}

bool grpcwire_reader_idle (const struct grpcwire_reader *r)
{
    return r->prefix_have == 0;
}

void grpcwire_reader_next (struct grpcwire_reader *r)
{
    r->prefix_have = 0;
    r->len = 0;
    r->have = 0;
}

void grpcwire_reader_clear (struct grpcwire_reader *r)
{
    free (r->body);
    r->body = NULL;
    r->cap = 0;
    grpcwire_reader_next (r);
}
