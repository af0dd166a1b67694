/* conf_show: the tables of parameters, read backwards: what is in force, as lines of the same file, and what a row
 * takes, in words. showconfig and the manual's table come from here, so that a parameter is written down once. Pure. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/conf/conf_i.h"

static const char *word_shown (const struct conf_param *param, const char *field)
{
    int value, place = 0;
    memcpy (&value, field, sizeof value);
    while (param->words[place] && (param->values ? param->values[place] : place) != value)
        place++;
    return param->words[place];
}

static const char *text_shown (const char *field)
{
    const char *text;
    memcpy (&text, field, sizeof text);
    return text;
}

/* The same text quoted where the file would split or misread it. */
static const char *quoted (const char *text, struct arena *arena)
{
    bool plain = *text != '\0' && !strpbrk (text, " \t\"#\\");
    char *out = arena_array (arena, 2 * strlen (text) + 3, 1), *at = out;
    if (plain)
        return text;
    *at++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            *at++ = '\\';
        *at++ = *text;
    }
    *at++ = '"';
    *at = '\0';
    return out;
}

static const char *seconds_shown (int64_t seconds, char buf[QUANTITY_TEXT_MAX])
{
    return seconds < 0 ? "-1" : duration_format (seconds * US_PER_S, buf);
}

static const char *number_shown (const struct conf_param *param, const char *field,
                                 char buf[QUANTITY_TEXT_MAX])
{
    uint32_t small;
    int64_t number;
    double real;
    if (param->type == CONF_U32) {
        memcpy (&small, field, sizeof small);
        snprintf (buf, QUANTITY_TEXT_MAX, "%u", small);
        return buf;
    }
    if (param->type == CONF_REAL) {
        memcpy (&real, field, sizeof real);
        return credit_format (llround (real * 1e6), buf);
    }
    memcpy (&number, field, sizeof number);
    if (param->type == CONF_DURATION)
        return number == TIME_US_MAX ? "INFINITY" : duration_format (number, buf);
    if (param->type == CONF_PPM || param->type == CONF_CREDITS)
        return credit_format (number, buf);
    if (param->type == CONF_SECONDS)
        return seconds_shown (number, buf);
    snprintf (buf, QUANTITY_TEXT_MAX, "%lld", (long long)number);
    return buf;
}

/* The text of a row's field; NULL where nothing is set. */
static const char *field_shown (const struct conf_param *param, const void *target,
                                struct arena *arena, char buf[QUANTITY_TEXT_MAX])
{
    const char *field = (const char *)target + param->offset, *text;
    bool flag;
    switch (param->type) {
    case CONF_STRING:
    case CONF_PATH:
        text = text_shown (field);
        return text ? quoted (text, arena) : NULL;
    case CONF_TEXT:
        return text_shown (field);
    case CONF_BOOL:
        memcpy (&flag, field, sizeof flag);
        return flag ? "TRUE" : "FALSE";
    case CONF_WORD:
        return word_shown (param, field);
    default:
        return number_shown (param, field, buf);
    }
}

static const char *entry_name (const struct conf_entry *entry, struct arena *arena)
{
    return entry->index ? arena_printf (arena, "%s[%s]", entry->key, entry->index) : entry->key;
}

static bool same_index (const struct conf_entry *a, const struct conf_entry *b)
{
    return strcmp (a->index ? a->index : "", b->index ? b->index : "") == 0;
}

/* Whether a later line of the same key and index takes the place of this one. */
static bool overruled (const struct conf *conf, const struct conf_param *param, uint32_t at)
{
    const struct conf_entry *entry = &conf->slot[at].entry;
    if (param->type == CONF_RECORD || (param->flags & CONF_F_ADDS))
        return false;
    for (uint32_t i = at + 1; i < conf->slot_count; i++)
        if (strcasecmp (conf->slot[i].entry.key, entry->key) == 0 &&
            same_index (&conf->slot[i].entry, entry))
            return true;
    return false;
}

static bool has_no_field (const struct conf_param *param)
{
    return param->type == CONF_CALL || param->type == CONF_RECORD;
}

/* What no field holds, as the file says it and in its order: USERCFG after SYSCFG may mean another thing than before it. */
static void lines_show (const struct conf *conf, const struct conf_param *params,
                        struct arena *arena, conf_show_fn fn, void *arg)
{
    for (uint32_t i = 0; i < conf->slot_count; i++) {
        const struct conf_entry *entry = &conf->slot[i].entry;
        const struct conf_param *param = conf_param_find (params, entry->key);
        if (param && has_no_field (param) && !overruled (conf, param, i))
            fn (arg, param, entry_name (entry, arena), entry->value);
    }
}

/* What is in force where the file says nothing. */
static void otherwise_show (const struct conf *conf, const struct conf_param *param,
                            struct arena *arena, conf_show_fn fn, void *arg)
{
    const char *value = param->otherwise ? param->otherwise : param->initial;
    bool said = !value;
    for (uint32_t i = 0; i < conf->slot_count && !said; i++)
        said = strcasecmp (conf->slot[i].entry.key, param->name) == 0;
    if (said)
        return;
    const char *blank = value[0] == '[' ? strchr (value, ' ') : NULL;
    const char *name =
        blank ? arena_printf (arena, "%s%.*s", param->name, (int)(blank - value), value)
              : param->name;
    fn (arg, param, name, blank ? blank + 1 : value);
}

static void table_show (const struct conf *conf, const struct conf_param *params,
                        const void *target, struct arena *arena, conf_show_fn fn, void *arg)
{
    char buf[QUANTITY_TEXT_MAX];
    for (const struct conf_param *p = params; p->name; p++) {
        if (p->type == CONF_UNSUPPORTED || (p->flags & CONF_F_ALIAS))
            continue;
        const char *value = has_no_field (p) ? NULL : field_shown (p, target, arena, buf);
        if (value)
            fn (arg, p, p->name, value);
        else if (has_no_field (p))
            otherwise_show (conf, p, arena, fn, arg);
    }
    lines_show (conf, params, arena, fn, arg);
}

void conf_show (const struct conf *conf, struct arena *arena, conf_show_fn fn, void *arg)
{
    for (uint32_t t = 0; t < conf->table_count; t++)
        if (conf->table[t].target) /* else its parameters were passed over */
            table_show (conf, conf->table[t].params, conf->table[t].target, arena, fn, arg);
}

/* ---- what a row takes ---- */

static char *range_shown (const struct conf_param *param, const char *what, char *buf, size_t size)
{
    char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX];
    struct conf_param at = *param;
    at.offset = 0;
    at.type = param->type == CONF_U32    ? CONF_INT
              : param->type == CONF_REAL ? CONF_PPM
                                         : param->type;
    bool bound = param->min != 0 || param->max != 0;
    bool time = param->type == CONF_DURATION || param->type == CONF_SECONDS;
    bool far = param->max >= (time ? 366 * 86400 * US_PER_S : UINT32_MAX) || param->max == 0;
    bool least = bound && far && param->min > 0;
    if (!bound || (far && !least))
        snprintf (buf, size, "%s", what);
    else if (least)
        snprintf (buf, size, "%s of at least %s", what,
                  number_shown (&at, (const char *)&param->min, low));
    else
        snprintf (buf, size, "%s from %s to %s", what,
                  number_shown (&at, (const char *)&param->min, low),
                  number_shown (&at, (const char *)&param->max, high));
    return buf;
}

char *conf_takes (const struct conf_param *param, char *buf, size_t size)
{
    static const char *const what[] = {
        [CONF_STRING] = "a word",       [CONF_TEXT] = "text",
        [CONF_PATH] = "a path",         [CONF_BOOL] = "TRUE, FALSE",
        [CONF_INT] = "a number",        [CONF_U32] = "a number",
        [CONF_PPM] = "a decimal",       [CONF_REAL] = "a decimal",
        [CONF_DURATION] = "a duration", [CONF_SECONDS] = "a duration",
        [CONF_MEMORY] = "memory",       [CONF_CREDITS] = "credits",
        [CONF_CALL] = "see below",      [CONF_RECORD] = "ATTRIBUTE=value ...",
    };
    size_t len = 0;
    if (param->type != CONF_WORD)
        return range_shown (param, what[param->type], buf, size);
    buf[0] = '\0';
    for (int i = 0; param->words[i] && len < size; i++)
        len += (size_t)snprintf (buf + len, size - len, "%s%s", i ? ", " : "", param->words[i]);
    return buf;
}
