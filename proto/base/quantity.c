/* quantity: numbers, credits, memory, names and ids; times and durations are quantity_time.c's.
 * Configuration, options and what other programs write come through here. Amounts are never
 * computed in floating point, and an overflow is an error, never another number. */
#include "proto/base/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

enum { FIXED_DECIMALS = 6 };

/* Decimal with at most six decimals to millionths, sign allowed. 0, ERR_INVALID or ERR_LIMIT;
 * why says which rule was broken. */
static int fixed_parse (const char *text, int64_t *out, const char **why)
{
    const char *at = text;
    bool negative = *at == '-';
    if (*at == '-' || *at == '+')
        at++;
    int64_t value = 0;
    int digits = 0, decimals = 0;
    bool overflow = false;
    for (; is_digit (*at); at++, digits++)
        overflow |= __builtin_mul_overflow (value, 10, &value) ||
                    __builtin_add_overflow (value, *at - '0', &value);
    *why = "is not a decimal number";
    if (*at == '.') {
        at++;
        for (; is_digit (*at) && decimals < FIXED_DECIMALS; at++, decimals++)
            overflow |= __builtin_mul_overflow (value, 10, &value) ||
                        __builtin_add_overflow (value, *at - '0', &value);
        if (is_digit (*at)) {
            *why = "has more than six decimals";
            return ERR_INVALID;
        }
        if (decimals == 0)
            return ERR_INVALID;
    }
    if (*at || digits + decimals == 0)
        return ERR_INVALID;
    for (; decimals < FIXED_DECIMALS; decimals++)
        overflow |= __builtin_mul_overflow (value, 10, &value);
    if (overflow) {
        *why = "is too large";
        return ERR_LIMIT;
    }
    *out = negative ? -value : value;
    return 0;
}

int credit_parse (const char *text, credit_micro *out, struct err *err)
{
    const char *why = NULL;
    int rc = fixed_parse (text, out, &why);
    return rc < 0 ? err_set (err, rc, "credits: '%.64s' %s", text, why) : 0;
}

int ppm_parse (const char *text, const char *what, int64_t *ppm_out, struct err *err)
{
    const char *why = NULL;
    int rc = fixed_parse (text, ppm_out, &why);
    return rc < 0 ? err_set (err, rc, "%s: '%.64s' %s", what, text, why) : 0;
}

char *credit_format (credit_micro c, char buf[QUANTITY_TEXT_MAX])
{
    uint64_t size = c < 0 ? -(uint64_t)c : (uint64_t)c;
    const char *sign = c < 0 ? "-" : "";
    uint64_t whole = size / MICRO_PER_CREDIT, part = size % MICRO_PER_CREDIT;
    if (part == 0) {
        snprintf (buf, QUANTITY_TEXT_MAX, "%s%" PRIu64, sign, whole);
        return buf;
    }
    int n = snprintf (buf, QUANTITY_TEXT_MAX, "%s%" PRIu64 ".%06" PRIu64, sign, whole, part);
    while (buf[n - 1] == '0')
        buf[--n] = '\0';
    return buf;
}

int credit_add (credit_micro a, credit_micro b, credit_micro *out, struct err *err)
{
    credit_micro sum;
    if (__builtin_add_overflow (a, b, &sum)) {
        char left[QUANTITY_TEXT_MAX], right[QUANTITY_TEXT_MAX];
        return err_set (err, ERR_LIMIT, "credits: %s and %s add up to more than can be kept",
                        credit_format (a, left), credit_format (b, right));
    }
    *out = sum;
    return 0;
}

/* Digits at text to *out; returns how many, 0 when there are none or they overflow. */
static int digits_parse (const char *text, uint64_t *out, bool *overflow)
{
    int n = 0;
    uint64_t value = 0;
    *overflow = false;
    for (; is_digit (text[n]); n++)
        *overflow |= __builtin_mul_overflow (value, (uint64_t)10, &value) ||
                     __builtin_add_overflow (value, (uint64_t)(text[n] - '0'), &value);
    *out = value;
    return n;
}

/* "", K, M, G, T or P, each with an optional B or iB, to KB per unit; 0 when it is none. */
static int64_t memory_unit_kb (const char *suffix)
{
    static const char letters[] = "KMGTP";
    if (!*suffix)
        return 1024;
    const char *letter = strchr (letters, *suffix & ~0x20);
    if (!letter || (suffix[1] && strcasecmp (suffix + 1, "b") && strcasecmp (suffix + 1, "ib")))
        return 0;
    return INT64_C (1) << (10 * (letter - letters));
}

int memory_parse (const char *text, int64_t *mb_out, struct err *err)
{
    uint64_t value;
    bool overflow;
    int n = digits_parse (text, &value, &overflow);
    int64_t unit_kb = n > 0 ? memory_unit_kb (text + n) : 0;
    if (unit_kb == 0)
        return err_set (err, ERR_INVALID,
                        "memory: '%.64s' is not a size such as 512, 2048K, 512M, 4G or 1T", text);
    uint64_t kb;
    if (overflow || __builtin_mul_overflow (value, (uint64_t)unit_kb, &kb) || kb > INT64_MAX)
        return err_set (err, ERR_LIMIT, "memory: '%.64s' is too large", text);
    *mb_out = (int64_t)(kb / 1024 + (kb % 1024 != 0));
    return 0;
}

int uint_parse (const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out,
                struct err *err)
{
    uint64_t value;
    bool overflow;
    int n = digits_parse (text, &value, &overflow);
    if (n == 0 || text[n])
        return err_set (err, ERR_INVALID, "%s: '%.64s' is not a whole number", what, text);
    if (overflow || value < min || value > max)
        return err_set (err, ERR_LIMIT, "%s: %.64s is not between %" PRIu64 " and %" PRIu64, what,
                        text, min, max);
    *out = value;
    return 0;
}

int int_parse (const char *text, const char *what, int64_t min, int64_t max, int64_t *out,
               struct err *err)
{
    uint64_t size;
    bool overflow, negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    int n = digits_parse (digits, &size, &overflow);
    if (n == 0 || digits[n])
        return err_set (err, ERR_INVALID, "%s: '%.64s' is not a whole number", what, text);
    uint64_t size_max = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    int64_t value = 0;
    if (!overflow && size <= size_max)
        value = negative ? (int64_t)-size : (int64_t)size;
    else
        overflow = true;
    if (overflow || value < min || value > max)
        return err_set (err, ERR_LIMIT, "%s: %.64s is not between %" PRId64 " and %" PRId64, what,
                        text, min, max);
    *out = value;
    return 0;
}

int bool_parse (const char *text, bool *out, struct err *err)
{
    static const char *const words[][2] = {
        {"FALSE", "TRUE"}, {"OFF", "ON"}, {"NO", "YES"}, {"0", "1"}};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (int value = 0; value < 2; value++) {
            if (strcasecmp (text, words[i][value]) == 0) {
                *out = value;
                return 0;
            }
        }
    }
    return err_set (err, ERR_INVALID, "'%.64s' is neither TRUE nor FALSE", text);
}

enum { NAME_LEN_MAX = 63 };

int name_check (const char *what, const char *name, struct err *err)
{
    size_t len = strnlen (name, NAME_LEN_MAX + 1);
    if (len == 0)
        return err_set (err, ERR_INVALID, "%s: the name is empty", what);
    if (len > NAME_LEN_MAX)
        return err_set (err, ERR_LIMIT, "%s: '%.63s…' is longer than %d bytes", what, name,
                        NAME_LEN_MAX);
    if (name[0] == '-' || name[0] == '.')
        return err_set (err, ERR_INVALID, "%s: '%s' starts with '%c'", what, name, name[0]);
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!is_digit (c) && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') && c != '.' &&
            c != '_' && c != '-')
            return err_set (err, ERR_INVALID,
                            "%s: '%s' may only have letters, digits, '.', '_' and '-'", what, name);
    }
    return 0;
}

int id_parse (const char *text, char *prefix_out, size_t prefix_cap, uint64_t *number_out,
              struct err *err)
{
    const char *dot = strrchr (text, '.');
    uint64_t number;
    bool overflow;
    int n = dot ? digits_parse (dot + 1, &number, &overflow) : 0;
    /* One id has one spelling: no leading zeros. */
    if (n == 0 || dot[1 + n] || overflow || (n > 1 && dot[1] == '0'))
        return err_set (err, ERR_INVALID, "'%.80s' is not an id such as alpha.17", text);
    char prefix[NAME_LEN_MAX + 1];
    size_t len = (size_t)(dot - text);
    if (len >= sizeof prefix || len >= prefix_cap)
        return err_set (err, ERR_LIMIT, "id '%.80s': the name before the dot is too long", text);
    memcpy (prefix, text, len);
    prefix[len] = '\0';
    int rc = name_check ("id", prefix, err);
    if (rc < 0)
        return rc;
    memcpy (prefix_out, prefix, len + 1);
    *number_out = number;
    return 0;
}

char *uuid_format (const struct uuid *u, char buf[QUANTITY_TEXT_MAX])
{
    static const char digit[] = "0123456789abcdef";
    char *at = buf;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digit[u->b[i] >> 4];
        *at++ = digit[u->b[i] & 15];
    }
    *at = '\0';
    return buf;
}

static int hex_value (char c)
{
    if (is_digit (c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int uuid_parse (const char *text, struct uuid *out, struct err *err)
{
    struct uuid parsed;
    const char *at = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (*at != '-')
                goto bad;
            at++;
        }
        int high = hex_value (at[0]);
        int low = high < 0 ? -1 : hex_value (at[1]);
        if (low < 0)
            goto bad;
        parsed.b[i] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    if (*at)
        goto bad;
    *out = parsed;
    return 0;
bad:
    return err_set (err, ERR_INVALID, "'%.64s' is not a UUID", text);
}
