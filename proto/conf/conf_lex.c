/* conf_lex: splits a file's text into lines, keys, indexes and values. conf.c calls it for a
 * whole file, conf_table.c for the words of one value. It knows no parameter, and keeps the
 * number of each line, so that a fault can be found. */
#include <ctype.h>
#include <string.h>

#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/conf/conf_i.h"

static bool is_blank (char c)
{
    return c == ' ' || c == '\t';
}

static bool is_key_char (char c)
{
    return isalnum ((unsigned char)c) || c == '_';
}

/* Length of the line without its comment. */
static size_t strip_comment (const char *line, size_t len)
{
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted && line[i] == '\\' && i + 1 < len)
            i++;
        else if (line[i] == '"')
            quoted = !quoted;
        else if (line[i] == '#' && !quoted && (i == 0 || is_blank (line[i - 1])))
            return i;
    }
    return len;
}

static int check_characters (const char *line, size_t len, struct err *err)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return err_set (err, ERR_INVALID, "a control character (0x%02x)", c);
    }
    if (!text_ok (line, len))
        return err_set (err, ERR_INVALID, "it is not UTF-8 text");
    return 0;
}

static void add_slot (struct conf *conf, const struct conf_entry *entry)
{
    if (conf->slot_count == conf->slot_cap) {
        uint32_t cap = conf->slot_cap ? conf->slot_cap * 2 : 64;
        struct slot *grown = arena_array (conf->arena, cap, sizeof *grown);
        if (conf->slot_count)
            memcpy (grown, conf->slot, conf->slot_count * sizeof *grown);
        conf->slot = grown;
        conf->slot_cap = cap;
    }
    conf->slot[conf->slot_count++] = (struct slot){.entry = *entry};
}

/* The bracket that closes the one at `at`; an index may be a hostlist: NODECFG[node[01-16]]. */
static char *closing (char *at)
{
    int depth = 0;
    for (; *at; at++) {
        depth += *at == '[';
        depth -= *at == ']';
        if (depth == 0)
            return at;
    }
    return NULL;
}

/* KEY, KEY[index] and the rest of a logical line. */
static int take_line (struct conf *conf, char *line, uint32_t number, struct err *err)
{
    while (is_blank (*line))
        line++;
    if (!*line)
        return 0;
    char *at = line;
    while (is_key_char (*at))
        at++;
    if (at == line)
        return err_set (err, ERR_INVALID, "expected a parameter's name at '%.40s'", line);
    struct conf_entry entry = {.line = number};
    char *key = arena_memdup (conf->arena, line, (size_t)(at - line) + 1);
    key[at - line] = '\0';
    for (char *p = key; *p; p++)
        *p = (char)toupper ((unsigned char)*p);
    entry.key = key;
    /* The manual also writes "GROUPCFG [DEFAULT] MAXNODE=64"; "KEY [x]" alone is a value. */
    char *bracket = at + strspn (at, " \t"), *closed = strchr (bracket, ']');
    if (bracket > at && *bracket == '[' && closed && closed[1] && is_blank (closed[1]))
        at = bracket;
    if (*at == '[') {
        char *end = closing (at);
        if (!end)
            return err_set (err, ERR_INVALID, "%s: '[' is not closed", key);
        *end = '\0';
        char *index = at + 1 + strspn (at + 1, " \t");
        for (char *last = end; last > index && is_blank (last[-1]);)
            *--last = '\0';
        entry.index = index;
        if (!*entry.index || strpbrk (entry.index, " \t\"="))
            return err_set (err, ERR_INVALID, "%s: '[%.60s]' is not an index", key, entry.index);
        entry.index = arena_strdup (conf->arena, entry.index);
        at = end + 1;
    }
    char *sign = at + strspn (at, " \t");
    bool joined =
        entry.index && *at && !is_blank (*at); /* USERCFG[x]MAXJOB=3, USERCFG[x],MAXJOB=3 */
    if (conf->all && (*sign == '=' || *at == ':' || joined)) {
        conf_push (conf->arena, &conf->loose, &conf->loose_count, &conf->loose_cap,
                   arena_printf (conf->arena, "%s: %s: expected a blank at '%.40s'",
                                 conf_place (conf, number), key, at));
        at = strchr ("=:,", *sign) ? sign + 1 : at;
    } else if (*at && !is_blank (*at))
        return err_set (err, ERR_INVALID, "%s: expected a blank at '%.40s'", key, at);
    while (is_blank (*at))
        at++;
    entry.value = arena_strdup (conf->arena, at);
    struct words words;
    if (conf_split (conf->arena, entry.value, &words, err) < 0)
        return err_prefix (err, "%s", key);
    if (conf->slot_count >= CONF_ENTRIES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d parameters in one file", CONF_ENTRIES_MAX);
    add_slot (conf, &entry);
    return 0;
}

static size_t trimmed (const char *line, size_t len)
{
    while (len > 0 && (is_blank (line[len - 1]) || line[len - 1] == '\r'))
        len--;
    return len;
}

static void unread_add (struct conf *conf, uint32_t line, const struct err *err)
{
    conf_push (conf->arena, &conf->unread, &conf->unread_count, &conf->unread_cap,
               arena_printf (conf->arena, "%s: %s", conf_place (conf, line), err->text));
}

int conf_lex (struct conf *conf, const char *text, size_t len, struct err *err)
{
    struct strbuf logical = STRBUF_INIT;
    uint32_t number = 0, first = 0;
    int rc = 0;
    if (len >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0) { /* as some editors begin a file */
        text += 3;
        len -= 3;
    }
    for (const char *at = text, *end = text + len; at < end;) {
        const char *newline = memchr (at, '\n', (size_t)(end - at));
        size_t line_len = (size_t)((newline ? newline : end) - at);
        number++;
        if (logical.len == 0)
            first = number;
        size_t used = trimmed (at, strip_comment (at, line_len));
        rc = check_characters (at, used, err);
        bool goes_on = used > 0 && at[used - 1] == '\\';
        if (rc == 0 && logical.len + used > CONF_LINE_BYTES_MAX)
            rc = err_set (err, ERR_LIMIT, "longer than %d bytes", CONF_LINE_BYTES_MAX);
        if (rc == 0)
            strbuf_append (&logical, at, goes_on ? used - 1 : used);
        at += line_len + 1;
        if (rc == 0 && goes_on && newline) {
            strbuf_putc (&logical, ' ');
            continue;
        }
        if (rc == 0)
            rc = take_line (conf, strbuf_text (&logical), first, err);
        if (rc < 0 && conf->all) {
            unread_add (conf, first, err);
            rc = 0;
        }
        if (rc < 0)
            break;
        strbuf_clear (&logical);
    }
    /* A file may end inside a continued line. */
    if (rc == 0 && logical.len > 0)
        rc = take_line (conf, strbuf_text (&logical), first, err);
    if (rc < 0 && conf->all) {
        unread_add (conf, first, err);
        rc = 0;
    }
    strbuf_free (&logical);
    if (rc < 0)
        err_prefix (err, "%s: line %u", conf->name, first);
    return rc;
}

void conf_push (struct arena *arena, const char ***list, uint32_t *count, uint32_t *cap,
                const char *text)
{
    if (*count + 1 >= *cap) { /* always one place left, for a final NULL */
        uint32_t grown_cap = *cap ? *cap * 2 : 8;
        const char **grown = arena_array (arena, grown_cap, sizeof *grown);
        if (*count)
            memcpy (grown, *list, *count * sizeof *grown);
        *list = grown;
        *cap = grown_cap;
    }
    (*list)[(*count)++] = text;
}

int conf_split (struct arena *arena, const char *value, struct words *out, struct err *err)
{
    uint32_t cap = 0;
    *out = (struct words){0};
    const char *at = value;
    while (true) {
        while (is_blank (*at))
            at++;
        if (!*at)
            return 0;
        const char *start = at;
        bool quoted = false;
        for (; *at && (quoted || !is_blank (*at)); at++) {
            if (quoted && *at == '\\' && at[1])
                at++;
            else if (*at == '"')
                quoted = !quoted;
            else if (*at == '\'' && !quoted && at > start && at[-1] == '=') {
                at += 1 + strcspn (at + 1, "'"); /* ATTR='several words', as Maui writes it */
                if (!*at)
                    return err_set (err, ERR_INVALID, "a quote is not closed");
            }
        }
        if (quoted)
            return err_set (err, ERR_INVALID, "a quote is not closed");
        conf_push (arena, &out->word, &out->count, &cap,
                   arena_printf (arena, "%.*s", (int)(at - start), start));
    }
}

const char *conf_unquote (struct arena *arena, const char *word)
{
    if (!strchr (word, '"'))
        return word;
    char *out = arena_alloc (arena, strlen (word) + 1), *to = out;
    bool quoted = false;
    for (; *word; word++) {
        if (quoted && *word == '\\' && (word[1] == '"' || word[1] == '\\'))
            *to++ = *++word;
        else if (*word == '"')
            quoted = !quoted;
        else
            *to++ = *word;
    }
    *to = '\0';
    return out;
}

const char *conf_equals (const char *word)
{
    bool quoted = false;
    for (; *word; word++) {
        if (*word == '"')
            quoted = !quoted;
        else if (*word == '=' && !quoted)
            return word;
    }
    return NULL;
}
