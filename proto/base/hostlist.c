/* hostlist: a small parser of one word at a time, and its inverse, which finds runs of numbers.
 * Readers of configuration, Slurm's replies and what people type call it: the text is not ours,
 * so no text makes more names than the caller's bound. */
#include "proto/base/hostlist.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/strbuf.h"

enum { SETS_MAX = 8, NAME_MAX_BYTES = 255, DIGITS_MAX = 18 };

struct names {
    struct arena *arena;
    const char **name;
    uint32_t count;
    uint32_t cap;
    uint32_t max;
};

/* A word as literal, set, literal, set … literal. */
struct word {
    uint32_t set_count;
    const char *literal[SETS_MAX + 1];
    struct names set[SETS_MAX];
};

static int names_add (struct names *names, const char *name, struct err *err)
{
    if (names->count >= names->max)
        return err_set (err, ERR_LIMIT, "host list: more than %u names", names->max);
    if (names->count == names->cap) {
        uint32_t cap = names->cap ? names->cap * 2 : 16;
        const char **grown = arena_alloc (names->arena, cap * sizeof *grown);
        if (names->count)
            memcpy (grown, names->name, names->count * sizeof *grown);
        names->name = grown;
        names->cap = cap;
    }
    names->name[names->count++] = name;
    return 0;
}

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char (char c)
{
    return is_digit (c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == '-';
}

static bool is_separator (char c)
{
    return c == ',' || c == ':' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t digits_at (const char *text, const char *end)
{
    size_t n = 0;
    while (text + n < end && is_digit (text[n]))
        n++;
    return n;
}

/* "001-004,007": widths are kept. */
static int expand_numbers (const char *at, const char *end, struct names *set, struct err *err)
{
    while (true) {
        size_t width = digits_at (at, end);
        if (width == 0 || width > DIGITS_MAX)
            return err_set (err, ERR_INVALID, "host list: expected a number at '%.*s'",
                            (int)(end - at), at);
        uint64_t low = strtoull (at, NULL, 10), high = low;
        at += width;
        if (at < end && *at == '-') {
            at++;
            size_t high_width = digits_at (at, end);
            if (high_width == 0 || high_width > DIGITS_MAX)
                return err_set (err, ERR_INVALID, "host list: a range has no end");
            high = strtoull (at, NULL, 10);
            at += high_width;
        }
        if (high < low)
            return err_set (err, ERR_INVALID, "host list: range %llu-%llu runs backwards",
                            (unsigned long long)low, (unsigned long long)high);
        if (high - low >= set->max)
            return err_set (err, ERR_LIMIT, "host list: range %llu-%llu has more than %u names",
                            (unsigned long long)low, (unsigned long long)high, set->max);
        for (uint64_t n = low; n <= high; n++) {
            const char *text =
                arena_printf (set->arena, "%0*llu", (int)width, (unsigned long long)n);
            int rc = names_add (set, text, err);
            if (rc < 0)
                return rc;
        }
        if (at == end)
            return 0;
        if (*at != ',')
            return err_set (err, ERR_INVALID, "host list: expected ',' at '%.*s'", (int)(end - at),
                            at);
        at++;
    }
}

/* "AB" or "A-C". */
static int expand_characters (const char *at, const char *end, struct names *set, struct err *err)
{
    while (at < end) {
        char low = *at, high = low;
        if (!is_name_char (low) || low == '-')
            return err_set (err, ERR_INVALID, "host list: '%c' cannot stand in a set", low);
        if (end - at >= 3 && at[1] == '-') {
            high = at[2];
            at += 2;
        }
        if (high < low || !is_name_char (high))
            return err_set (err, ERR_INVALID, "host list: set %c-%c runs backwards", low, high);
        for (int c = (unsigned char)low; c <= high; c++) {
            if (!is_name_char ((char)c))
                continue;
            int rc = names_add (set, arena_printf (set->arena, "%c", c), err);
            if (rc < 0)
                return rc;
        }
        at++;
    }
    return 0;
}

static int expand_set (const char *at, const char *end, struct names *set, struct err *err)
{
    if (at == end)
        return err_set (err, ERR_INVALID, "host list: '[]' is empty");
    bool numbers = true;
    for (const char *p = at; p < end; p++)
        if (!is_digit (*p) && *p != '-' && *p != ',')
            numbers = false;
    return numbers ? expand_numbers (at, end, set, err) : expand_characters (at, end, set, err);
}

/* Reads one word up to a separator outside brackets. */
static int parse_word (const char **cursor, struct arena *arena, uint32_t most, struct word *word,
                       struct err *err)
{
    const char *at = *cursor;
    const char *literal = at;
    uint64_t total = 1; /* checked as the word is read: eight large brackets are never expanded */
    memset (word, 0, sizeof *word);
    while (*at && !is_separator (*at)) {
        if (*at != '[') {
            if (!is_name_char (*at))
                return err_set (err, ERR_INVALID, "host list: unexpected character '%c'", *at);
            at++;
            continue;
        }
        const char *end = strchr (at, ']');
        if (!end)
            return err_set (err, ERR_INVALID, "host list: '[' is not closed");
        if (word->set_count == SETS_MAX)
            return err_set (err, ERR_LIMIT, "host list: more than %d brackets in one word",
                            SETS_MAX);
        word->literal[word->set_count] = arena_printf (arena, "%.*s", (int)(at - literal), literal);
        struct names *set = &word->set[word->set_count++];
        set->arena = arena;
        set->max = most;
        int rc = expand_set (at + 1, end, set, err);
        if (rc < 0)
            return rc;
        total *= set->count;
        if (total > most)
            return err_set (err, ERR_LIMIT, "host list: more than %u names", most);
        at = literal = end + 1;
    }
    word->literal[word->set_count] = arena_printf (arena, "%.*s", (int)(at - literal), literal);
    *cursor = at;
    return 0;
}

/* The last bracket varies fastest, as a shell's braces do. */
static int emit_word (const struct word *word, struct names *names, struct err *err)
{
    uint64_t total = 1;
    size_t bytes_max = strlen (word->literal[word->set_count]);
    for (uint32_t s = 0; s < word->set_count; s++) {
        total *= word->set[s].count;
        bytes_max += strlen (word->literal[s]) + DIGITS_MAX;
    }
    if (bytes_max > NAME_MAX_BYTES)
        return err_set (err, ERR_LIMIT, "host list: a name is longer than %d bytes",
                        NAME_MAX_BYTES);
    for (uint64_t i = 0; i < total; i++) {
        char text[NAME_MAX_BYTES + 1];
        size_t len = 0;
        uint64_t rest = i, weight = total;
        for (uint32_t s = 0; s <= word->set_count; s++) {
            size_t n = strlen (word->literal[s]);
            memcpy (text + len, word->literal[s], n);
            len += n;
            if (s == word->set_count)
                break;
            weight /= word->set[s].count;
            const char *piece = word->set[s].name[rest / weight];
            rest %= weight;
            n = strlen (piece);
            memcpy (text + len, piece, n);
            len += n;
        }
        text[len] = '\0';
        int rc = names_add (names, arena_memdup (names->arena, text, len + 1), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int hostlist_expand (const char *text, struct arena *arena, const char ***names_out,
                     uint32_t *count_out, struct err *err)
{
    return hostlist_expand_most (text, arena, HOSTLIST_NAMES_MAX, names_out, count_out, err);
}

int hostlist_expand_most (const char *text, struct arena *arena, uint32_t most,
                          const char ***names_out, uint32_t *count_out, struct err *err)
{
    struct names names = {.arena = arena, .max = most};
    const char *at = text;
    while (*at) {
        if (is_separator (*at)) {
            at++;
            continue;
        }
        struct word word;
        int rc = parse_word (&at, arena, most, &word, err);
        if (rc == 0)
            rc = emit_word (&word, &names, err);
        if (rc < 0)
            return rc;
    }
    *names_out = names.name;
    *count_out = names.count;
    return 0;
}

/* A name as stem, number, tail; the number is the last run of digits. */
struct numbered {
    const char *name;
    size_t stem_len;
    size_t digits;
    uint64_t number;
};

static struct numbered split_number (const char *name)
{
    struct numbered out = {.name = name};
    size_t end = strlen (name);
    while (end > 0 && !is_digit (name[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && is_digit (name[start - 1]))
        start--;
    if (end - start == 0 || end - start > DIGITS_MAX)
        return out;
    out.stem_len = start;
    out.digits = end - start;
    out.number = strtoull (name + start, NULL, 10);
    return out;
}

static bool same_family (const struct numbered *a, const struct numbered *b)
{
    return a->digits && b->digits && a->stem_len == b->stem_len &&
           memcmp (a->name, b->name, a->stem_len) == 0 &&
           strcmp (a->name + a->stem_len + a->digits, b->name + b->stem_len + b->digits) == 0;
}

static bool follows (const struct numbered *a, const struct numbered *b)
{
    bool grows = b->digits == a->digits + 1 && b->name[b->stem_len] != '0' &&
                 (a->digits == 1 || a->name[a->stem_len] != '0');
    return b->number == a->number + 1 && (a->digits == b->digits || grows);
}

char *hostlist_compress (const char *const *names, uint32_t count, struct arena *arena)
{
    struct strbuf out = STRBUF_INIT;
    for (uint32_t i = 0; i < count;) {
        struct numbered first = split_number (names[i]);
        uint32_t end = i + 1;
        while (end < count) {
            struct numbered next = split_number (names[end]);
            if (!same_family (&first, &next))
                break;
            end++;
        }
        if (i > 0)
            strbuf_putc (&out, ',');
        if (end == i + 1) {
            strbuf_puts (&out, names[i++]);
            continue;
        }
        strbuf_append (&out, first.name, first.stem_len);
        strbuf_putc (&out, '[');
        for (uint32_t j = i; j < end;) {
            struct numbered low = split_number (names[j]), high = low;
            uint32_t k = j + 1;
            for (; k < end; k++) {
                struct numbered next = split_number (names[k]);
                if (!follows (&high, &next))
                    break;
                high = next;
            }
            strbuf_printf (&out, "%s%.*s", j > i ? "," : "", (int)low.digits,
                           low.name + low.stem_len);
            if (k > j + 1)
                strbuf_printf (&out, "-%.*s", (int)high.digits, high.name + high.stem_len);
            j = k;
        }
        strbuf_putc (&out, ']');
        strbuf_puts (&out, first.name + first.stem_len + first.digits);
        i = end;
    }
    return strbuf_move (&out, arena);
}
