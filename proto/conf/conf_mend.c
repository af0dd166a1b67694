/* conf_mend: reads what people meant where another program's file has no ATTRIBUTE=value but nearly: MAXJOB 3,
 * MAXJOB: 3, "MAXJOB=3", MAXJOB<=3, MAXJOB=3,MAXPROC=4. conf_table.c calls it for the words of a line before it takes them. Only
 * names that the table has are mended, and each is told: a limit is not to be lost by a comma. */
#include <ctype.h>
#include <string.h>

#include "proto/conf/conf_i.h"

/* Length of the attribute's name at the beginning of the text, with [x]; 0: the table has none such. */
static size_t mend_name (const struct conf_param *attrs, const char *text,
                         const struct conf_param **param)
{
    size_t len = 0;
    while (isalnum ((unsigned char)text[len]) || text[len] == '.')
        len++;
    *param = len > 0 ? conf_param_part (attrs, text, len) : NULL;
    if (!*param)
        return 0;
    const char *closed = text[len] == '[' ? strchr (text + len, ']') : NULL;
    return closed ? (size_t)(closed - text) + 1 : len;
}

/* "MAXJOB:3" and "MAXJOB<=3" to "MAXJOB=3". */
static const char *mend_sign (const struct conf_param *attrs, const struct conf_value *line,
                              const char *word)
{
    const struct conf_param *param;
    size_t len = mend_name (attrs, word, &param), sign = len;
    if (len == 0)
        return word;
    if (strncmp (word + len, "<=", 2) == 0 && !(param->flags & CONF_F_COMPARES))
        sign = len + 1;
    else if (word[len] != ':')
        return word;
    conf_note_add (line, "'%.*s' is taken as '%.*s='", (int)sign + 1, word, (int)len, word);
    return arena_printf (line->conf->arena, "%.*s=%s", (int)len, word, word + sign + 1);
}

/* "MAXJOB 3": a name alone, and then what is none. */
static bool mend_lacks (const struct conf_param *attrs, const char *word, const char *next)
{
    const struct conf_param *param;
    size_t len = mend_name (attrs, word, &param);
    return len > 0 && !word[len] && !conf_equals (next) && mend_name (attrs, next, &param) == 0;
}

/* "MAXJOB=3,MAXPROC=4": where the second begins; NULL: there is one only. */
static const char *mend_second (const struct conf_param *attrs, const char *word)
{
    for (const char *comma = strpbrk (word, ",;"); comma; comma = strpbrk (comma + 1, ",;")) {
        const struct conf_param *param;
        size_t len = mend_name (attrs, comma + 1, &param);
        if (len > 0 && comma[1 + len] == '=')
            return comma;
    }
    return NULL;
}

void conf_mend (const struct conf_param *attrs, const struct conf_value *line, struct words *words)
{
    struct arena *arena = line->conf->arena;
    struct words out = {0};
    uint32_t cap = 0;
    for (uint32_t i = 0; i < words->count; i++) {
        const char *word = words->word[i], *comma;
        const struct conf_param *param;
        if (*word == '"' && mend_name (attrs, word + 1, &param) > 0)
            word = conf_unquote (arena, word);
        if (i + 1 < words->count && mend_lacks (attrs, word, words->word[i + 1])) {
            conf_note_add (line, "'%.40s %.40s' is taken as '%.40s=%.40s'", word,
                           words->word[i + 1], word, words->word[i + 1]);
            word = arena_printf (arena, "%s=%s", word, words->word[++i]);
        }
        word = mend_sign (attrs, line, word);
        while ((comma = mend_second (attrs, word)) != NULL) {
            conf_push (arena, &out.word, &out.count, &cap,
                       arena_printf (arena, "%.*s", (int)(comma - word), word));
            conf_note_add (line, "the '%c' before '%.40s' is taken as a blank", *comma, comma + 1);
            word = comma + 1;
        }
        conf_push (arena, &out.word, &out.count, &cap, word);
    }
    *words = out;
}
