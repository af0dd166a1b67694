/* conf_table: fills a program's struct from the entries of a file, as its table of parameters
 * says: type, words, bounds, default. Daemons, the policy and nui.cfg are read by it. It goes on
 * after a fault, so that one run tells all of them; the caller must not use a struct of which
 * one was told. */
#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/conf/conf_i.h"

static int in_range (const struct conf_param *param, int64_t value, struct err *err)
{
    if ((param->min == 0 && param->max == 0) || (value >= param->min && value <= param->max))
        return 0;
    char low[QUANTITY_TEXT_MAX], high[QUANTITY_TEXT_MAX];
    if (param->type == CONF_DURATION)
        return err_set (err, ERR_LIMIT, "is not between %s and %s",
                        duration_format (param->min, low), duration_format (param->max, high));
    if (param->type == CONF_PPM || param->type == CONF_REAL || param->type == CONF_CREDITS)
        return err_set (err, ERR_LIMIT, "is not between %s and %s", credit_format (param->min, low),
                        credit_format (param->max, high));
    return err_set (err, ERR_LIMIT, "is not between %lld and %lld", (long long)param->min,
                    (long long)param->max);
}

static int parse_word (const struct conf_param *param, const char *text, int *out, struct err *err)
{
    for (int i = 0; param->words[i]; i++) {
        if (strcasecmp (param->words[i], text) == 0) {
            *out = i;
            return 0;
        }
    }
    struct strbuf list = STRBUF_INIT;
    for (int i = 0; param->words[i]; i++)
        strbuf_printf (&list, "%s%s", i ? ", " : "", param->words[i]);
    const char *near = conf_nearest (text, param->words);
    if (near)
        err_set (err, ERR_INVALID, "'%.64s' is none of %s; did you mean %s?", text,
                 strbuf_text (&list), near);
    else
        err_set (err, ERR_INVALID, "'%.64s' is none of %s", text, strbuf_text (&list));
    strbuf_free (&list);
    return ERR_INVALID;
}

static bool is_unlimited (const char *text)
{
    return strcasecmp (text, "UNLIMITED") == 0 || strcasecmp (text, "NOLIMIT") == 0 ||
           strcasecmp (text, "INFINITY") == 0;
}

static int parse_number (const struct conf_param *param, const char *text, int64_t *out,
                         struct err *err)
{
    int rc;
    switch (param->type) {
    case CONF_INT:
    case CONF_U32:
        if (param->min == -1 && is_unlimited (text)) {
            *out = -1;
            return 0;
        }
        rc = int_parse (text, "value", INT64_MIN, INT64_MAX, out, err);
        break;
    case CONF_PPM:
    case CONF_REAL:
        rc = ppm_parse (text, "value", out, err);
        break;
    case CONF_MEMORY:
        rc = memory_parse (text, out, err);
        break;
    case CONF_CREDITS:
        rc = credit_parse (text, out, err);
        break;
    default:
        rc = duration_parse (text, out, err);
        if (rc == 0 && *out == TIME_US_MAX) {
            if (param->flags & CONF_F_INFINITY)
                return 0;
            return err_set (err, ERR_INVALID, "INFINITY is not possible here");
        }
        break;
    }
    return rc < 0 ? rc : in_range (param, *out, err);
}

static int parse_seconds (const struct conf_param *param, const char *text, int64_t *out,
                          struct err *err)
{
    char least[QUANTITY_TEXT_MAX];
    duration_us d = TIME_US_MAX;
    if (strcmp (text, "-1") != 0 && duration_parse (text, &d, err) < 0)
        return ERR_INVALID;
    *out = d == TIME_US_MAX ? -1 : d / US_PER_S;
    if (*out < param->min)
        return err_set (err, ERR_INVALID, "must be at least %s",
                        param->min == 1 ? "a second"
                                        : duration_format (param->min * US_PER_S, least));
    return 0;
}

/* A field narrower than int64_t, or no whole number. */
static void store_number (const struct conf_param *param, int64_t number, char *field)
{
    uint32_t small = (uint32_t)number;
    double real = (double)number / 1e6;
    if (param->type == CONF_U32)
        memcpy (field, &small, sizeof small);
    else if (param->type == CONF_REAL)
        memcpy (field, &real, sizeof real);
    else
        memcpy (field, &number, sizeof number);
}

/* Stores the one word of a value into its field. */
static int store_word (const struct conf_param *param, const struct conf_value *value, char *field,
                       struct err *err)
{
    const char *text = value->text;
    bool flag;
    int word;
    int64_t number;
    switch (param->type) {
    case CONF_STRING:
        memcpy (field, &text, sizeof text);
        return 0;
    case CONF_PATH:
        if (!*text)
            return err_set (err, ERR_INVALID, "the path is empty");
        text = conf_path (value->conf, text);
        memcpy (field, &text, sizeof text);
        return 0;
    case CONF_BOOL:
        if (bool_parse (text, &flag, err) < 0)
            return ERR_INVALID;
        memcpy (field, &flag, sizeof flag);
        return 0;
    case CONF_WORD:
        if (parse_word (param, text, &word, err) < 0)
            return ERR_INVALID;
        if (param->notes && param->notes[word])
            conf_note_add (value, "%s: %s", text, param->notes[word]);
        word = param->values ? param->values[word] : word;
        memcpy (field, &word, sizeof word);
        return 0;
    default:
        break;
    }
    int rc = param->type == CONF_SECONDS ? parse_seconds (param, text, &number, err)
                                         : parse_number (param, text, &number, err);
    if (rc == 0)
        store_number (param, number, field);
    return rc;
}

/* "MAXJOB=10, MAXPROC=20", "FIRSTAVAILABLE;" */
static const char *end_trimmed (const struct conf_value *value, const char *text)
{
    size_t len = strlen (text);
    if (!value->conf->lenient || value->line == 0 || len < 2 || !strchr (",;", text[len - 1]))
        return text;
    conf_note_add (value, "the '%c' at its end has no effect", text[len - 1]);
    return arena_printf (value->conf->arena, "%.*s", (int)len - 1, text);
}

static int store_value (const struct conf_param *param, const struct conf_value *value,
                        void *target, struct err *err)
{
    char *field = (char *)target + param->offset;
    if (param->type == CONF_UNSUPPORTED)
        return 0;
    if (param->type == CONF_CALL) {
        assert (param->set);
        return param->set (target, value, err);
    }
    if (param->type == CONF_TEXT) {
        memcpy (field, &value->text, sizeof value->text);
        return 0;
    }
    if (value->word_count == 0)
        return err_set (err, ERR_INVALID, "has no value");
    struct conf_value first = *value;
    if (value->word_count > 1 && !value->conf->lenient)
        return err_set (err, ERR_INVALID, "takes one value (a value with blanks needs quotes)");
    if (value->word_count > 1) {
        first.text = value->word[0];
        conf_note_add (value, "what follows '%.60s' has no effect", first.text);
    }
    first.text = end_trimmed (value, first.text);
    return store_word (param, &first, field, err);
}

/* Another program's file: what it says is not taken, and told, unless it keeps somebody from something. */
static bool is_told (const struct conf_param *param, const struct conf_value *value,
                     const struct err *err)
{
    bool empty =
        value->text && !*value->text; /* as templates leave it; it keeps nobody from anything */
    if (!value->conf->lenient || value->line == 0 || ((param->flags & CONF_F_GUARDS) && !empty))
        return false;
    conf_note_add (value, "%s; it has no effect", empty ? "has no value" : err->text);
    return true;
}

/* Fills text and words of a value. raw may hold quotes. */
static int fill_value (struct conf_value *value, const char *raw, struct err *err)
{
    struct arena *arena = value->conf->arena;
    struct words words;
    int rc = conf_split (arena, raw, &words, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < words.count; i++) {
        size_t len = strlen (words.word[i]);
        words.word[i] = len > 1 && words.word[i][0] == '\'' && words.word[i][len - 1] == '\''
                            ? arena_printf (arena, "%.*s", (int)len - 2, words.word[i] + 1)
                            : conf_unquote (arena, words.word[i]);
    }
    value->word = words.word;
    value->word_count = words.count;
    value->text = words.count == 1 ? words.word[0] : raw;
    return 0;
}

const struct conf_param *conf_param_part (const struct conf_param *table, const char *name,
                                          size_t len)
{
    for (; table->name; table++)
        if (strncasecmp (table->name, name, len) == 0 && !table->name[len])
            return table;
    return NULL;
}

const struct conf_param *conf_param_find (const struct conf_param *table, const char *name)
{
    return conf_param_part (table, name, strlen (name));
}

static void note_unsupported (struct conf *conf, const struct conf_param *param,
                              const struct conf_value *value)
{
    if (param->why) {
        conf_note_add (value, "has no effect: %s", param->why);
        return;
    }
    conf_say (conf, &conf->note, 0,
              arena_printf (conf->arena,
                            "%s: %s%s%s is a parameter of Maui's that Nui does not have; "
                            "it has no effect",
                            conf_place (conf, value->line), value->key, value->attr ? " " : "",
                            value->attr ? value->attr : ""));
}

void conf_note_add (const struct conf_value *value, const char *fmt, ...)
{
    struct conf *conf = value->conf;
    bool index = value->index != NULL, attr = value->attr != NULL;
    va_list ap;
    va_start (ap, fmt);
    char *text = arena_vprintf (conf->arena, fmt, ap);
    va_end (ap);
    conf_say (conf, &conf->note, 0,
              arena_printf (conf->arena, "%s: %s%s%s%s%s%s: %s", conf_place (conf, value->line),
                            value->key, index ? "[" : "", index ? value->index : "",
                            index ? "]" : "", attr ? " " : "", attr ? value->attr : "", text));
}

/* Does the word at this place begin NAME=value, or "NAME = value"? */
static bool is_attr (const struct words *words, uint32_t at)
{
    const char *equals = conf_equals (words->word[at]);
    return equals ? equals > words->word[at]
                  : at + 1 < words->count && words->word[at + 1][0] == '=';
}

/* NAME of "NAME[x]=value" into value, and its x; *raw: what follows. */
static int take_name (const struct conf_param *attrs, const char *word, const char **raw,
                      struct conf_value *value, struct err *err)
{
    struct arena *arena = value->conf->arena;
    const char *equals = conf_equals (word);
    if (!equals || equals == word)
        return err_set (err, ERR_INVALID, "expected ATTRIBUTE=value at '%.60s'", word);
    char *name = arena_printf (arena, "%.*s", (int)(equals - word), word);
    char *bracket = strchr (name, '['), *last = name + strlen (name) - 1;
    *raw = equals + 1;
    if (strchr ("<>!", *last)) { /* PROCLIMIT<=4 */
        char how = *last;
        *last = '\0';
        const struct conf_param *param = conf_param_find (attrs, name);
        if (param && (param->flags & CONF_F_COMPARES))
            *raw = arena_printf (arena, "%c%s", how, equals);
        else
            *last = how;
    }
    if (bracket) {
        size_t len = strlen (bracket);
        if (len < 3 || bracket[len - 1] != ']')
            return err_set (err, ERR_INVALID, "'%.60s' is not an attribute", name);
        bracket[len - 1] = '\0';
        *bracket = '\0';
        value->attr_index = bracket + 1;
    }
    for (char *p = name; *p; p++)
        *p = (char)toupper ((unsigned char)*p);
    value->attr = name;
    return 0;
}

/* Is the word at this place more of a list, as in "DAYS=MON TUE" or "USERLIST=bob steve= bill-"? */
static bool is_listed (const struct conf_param *attrs, const struct words *words, uint32_t at)
{
    const char *word = words->word[at], *equals = conf_equals (word);
    if (!is_attr (words, at))
        return true;
    return equals && !equals[1] && !conf_param_part (attrs, word, (size_t)(equals - word));
}

/* Splits NAME[x]=value; the value may go on in the next words after a comma, that of a list after any blank. */
static int take_attr (const struct conf_param *attrs, const struct words *words, uint32_t *at,
                      struct conf_value *value, struct err *err)
{
    struct arena *arena = value->conf->arena;
    const char *word = words->word[*at], *raw = NULL;
    bool blanks = false;
    if (!conf_equals (word) && *at + 1 < words->count &&
        words->word[*at + 1][0] == '=') /* "ATTR = x" */
        word = arena_printf (arena, "%s%s", word, words->word[++*at]);
    if (take_name (attrs, word, &raw, value, err) < 0)
        return err->code;
    const struct conf_param *param = conf_param_find (attrs, value->attr);
    bool list = param && (param->flags & CONF_F_LIST);
    for (; *at + 1 < words->count; (*at)++) {
        const char *next = words->word[*at + 1];
        size_t len = strlen (raw);
        if (!is_attr (words, *at + 1) &&
            (len == 0 || strchr (",:", raw[len - 1]) || strchr (",:", *next)))
            raw = arena_printf (arena, "%s%s", raw,
                                next); /* "ATTR= x", "ATTR=x, y", "ATTR=x :y" go on */
        else if (list && is_listed (attrs, words, *at + 1)) {
            blanks = true;
            raw = arena_printf (arena, "%s %s", raw, next);
        } else
            break;
    }
    if (blanks && value->conf->lenient)
        conf_note_add (value, "'%.60s' is taken as one list", raw);
    (*at)++;
    /* The pieces hold no blanks but quoted ones and those of a list, so text is the whole value. */
    return fill_value (value, end_trimmed (value, raw), err);
}

static int changed_refuse (struct err *err)
{
    return err_set (err, ERR_DENIED,
                    "is changed in the configuration file only: who may change the policy "
                    "does not say what runs, as whom, or whom to believe");
}

static int changed_check (const struct conf_param *param, uint32_t line, struct err *err)
{
    if (line > 0 || (param->type != CONF_PATH && !(param->flags & CONF_F_FIXED)))
        return 0;
    return changed_refuse (err);
}

/* A record whose index is a name to believe: what is appended may change those of the file and DEFAULT's. */
static int index_check (const struct conf *conf, const struct conf_param *param,
                        const struct conf_entry *entry, struct err *err)
{
    if (entry->line > 0 || !(param->flags & CONF_F_FIXED) || !entry->index ||
        strcasecmp (entry->index, "DEFAULT") == 0)
        return 0;
    for (uint32_t i = 0; i < conf->slot_count; i++) {
        const struct conf_entry *e = &conf->slot[i].entry;
        if (e->line > 0 && e->index && strcasecmp (e->key, entry->key) == 0 &&
            strcasecmp (e->index, entry->index) == 0)
            return 0;
    }
    return changed_refuse (err);
}

/* The names of a table, ended by NULL. */
static const char *const *names_of (struct conf *conf, const struct conf_param *table)
{
    const char **names = NULL;
    uint32_t count = 0, cap = 0;
    for (; table->name; table++)
        conf_push (conf->arena, &names, &count, &cap, table->name);
    conf_push (conf->arena, &names, &count, &cap, NULL);
    return names;
}

static int apply_attr (const struct conf_param *attrs, struct conf_value *value, void *record,
                       struct err *err)
{
    const struct conf_param *param = conf_param_find (attrs, value->attr);
    if (!param)
        return conf_unknown ("attribute", value->attr, names_of (value->conf, attrs), err);
    if (value->attr_index && !(param->flags & CONF_F_ATTR_INDEX)) {
        err_set (err, ERR_INVALID, "%s takes no [%.60s]", param->name, value->attr_index);
        return is_told (param, value, err) ? 0 : err->code;
    }
    if (param->type == CONF_UNSUPPORTED)
        note_unsupported (value->conf, param, value);
    uint32_t notes = value->conf->note.count;
    int rc = changed_check (param, value->line, err);
    if (rc == 0)
        rc = store_value (param, value, record, err);
    if (rc < 0 && is_told (param, value, err))
        rc = 0;
    else if (rc == 0 && value->conf->lenient && !*value->text && value->conf->note.count == notes)
        conf_note_add (value, "has no value and says nothing");
    return rc < 0 ? err_prefix (err, "%s", param->name) : 0;
}

static int prefix_entry (const struct conf *conf, const struct conf_entry *entry, struct err *err)
{
    if (entry->index)
        return err_prefix (err, "%s: %s[%.60s]", conf_place (conf, entry->line), entry->key,
                           entry->index);
    return err_prefix (err, "%s: %s", conf_place (conf, entry->line), entry->key);
}

/* Of this line: what the record does not know is passed over and told. */
static bool tells (const struct conf *conf, const struct conf_param *param, uint32_t line)
{
    return line > 0 && ((param->flags & CONF_F_TELLS) || conf->lenient);
}

/* An attribute of no table, where the record passes over what it does not know. */
static bool attr_is_told (const struct conf_param *param, const struct conf_value *value)
{
    if (!tells (value->conf, param, value->line) || conf_param_find (param->attrs, value->attr))
        return false;
    const char *near = conf_nearest (value->attr, names_of (value->conf, param->attrs));
    if (near && !value->conf->lenient)
        return false;
    conf_note_add (value, "neither Maui nor Nui has such an attribute, it has no effect%s%s%s",
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return true;
}

/* Words that are no attribute, in one note; the place behind them. */
static uint32_t pass_over (const struct words *words, uint32_t at, const struct conf_value *value)
{
    struct strbuf text = STRBUF_INIT;
    for (bool first = true; at < words->count && !is_attr (words, at); first = false)
        strbuf_printf (&text, "%s%s", first ? "" : " ", words->word[at++]);
    conf_note_add (value, "'%.60s' is no ATTRIBUTE=value, it has no effect", strbuf_text (&text));
    strbuf_free (&text);
    return at;
}

static int apply_record (struct conf *conf, const struct conf_param *param,
                         const struct conf_entry *entry, void *target, struct err *err)
{
    void *record = NULL;
    struct words words;
    int rc = index_check (conf, param, entry, err);
    if (rc == 0)
        rc = param->record (target, entry->index, &record, err);
    if (rc == 0)
        rc = conf_split (conf->arena, entry->value, &words, err);
    const struct conf_value line = {
        .conf = conf, .key = entry->key, .index = entry->index, .line = entry->line};
    if (rc == 0 && conf->lenient && entry->line > 0)
        conf_mend (param->attrs, &line, &words);
    for (uint32_t i = 0; rc == 0 && i < words.count;) {
        struct conf_value value = line;
        if (tells (conf, param, entry->line) && !is_attr (&words, i)) {
            i = pass_over (&words, i, &value);
            continue;
        }
        rc = take_attr (param->attrs, &words, &i, &value, err);
        struct err fault = {0};
        if (rc == 0 && !attr_is_told (param, &value) &&
            apply_attr (param->attrs, &value, record, &fault) < 0) {
            prefix_entry (conf, entry, &fault);
            conf_fault_add (conf, &fault);
        }
    }
    return rc;
}

static int apply_entry (struct conf *conf, const struct conf_param *param,
                        const struct conf_entry *entry, void *target, struct err *err)
{
    bool may = param->type == CONF_RECORD || param->type == CONF_UNSUPPORTED ||
               (param->flags & (CONF_F_INDEX | CONF_F_INDEX_REQUIRED));
    bool must = (param->type == CONF_RECORD && !(param->flags & CONF_F_INDEX)) ||
                (param->flags & CONF_F_INDEX_REQUIRED);
    struct conf_value value = {
        .conf = conf, .key = entry->key, .index = entry->index, .line = entry->line};
    int wrong = 0;
    if (entry->index && !may && !(conf->lenient && strcmp (entry->index, "0") == 0))
        wrong = err_set (err, ERR_INVALID, "takes no [%.60s]", entry->index);
    if (!entry->index && must)
        wrong = err_set (err, ERR_INVALID, "needs an index, as in %s[name]", param->name);
    if (wrong)
        return is_told (param, &value, err) ? 0 : wrong;
    if (param->type == CONF_RECORD)
        return apply_record (conf, param, entry, target, err);
    if (param->type == CONF_UNSUPPORTED)
        note_unsupported (conf, param, &value);
    int rc = changed_check (param, entry->line, err);
    if (rc == 0)
        rc = fill_value (&value, entry->value, err);
    if (rc == 0)
        rc = store_value (param, &value, target, err);
    return rc < 0 && is_told (param, &value, err) ? 0 : rc;
}

static int apply_initials (struct conf *conf, const struct conf_param *params, void *target,
                           struct err *err)
{
    for (const struct conf_param *p = params; p->name; p++) {
        if (!p->initial)
            continue;
        struct conf_value value = {.conf = conf, .key = p->name};
        int rc = fill_value (&value, p->initial, err);
        if (rc == 0)
            rc = store_value (p, &value, target, err);
        if (rc < 0)
            return err_prefix (err, "%s: initial value of %s", conf->name, p->name);
    }
    return 0;
}

static int table_add (struct conf *conf, const struct conf_param *params, const void *target,
                      struct err *err)
{
    if (conf->table_count == CONF_TABLES_MAX)
        return err_set (err, ERR_INTERNAL, "%s: more than %d tables", conf->name, CONF_TABLES_MAX);
    conf->table[conf->table_count].params = params;
    conf->table[conf->table_count++].target = target;
    return 0;
}

int conf_pass_over (struct conf *conf, const struct conf_param *params, struct err *err)
{
    for (uint32_t i = 0; i < conf->slot_count; i++)
        if (conf_param_find (params, conf->slot[i].entry.key))
            conf->slot[i].used = true;
    return table_add (conf, params, NULL, err);
}

int conf_table_read (struct conf *conf, const struct conf_param *params, void *target,
                     struct err *err)
{
    struct err local;
    if (!err)
        err = &local;
    if (table_add (conf, params, target, err) < 0)
        return err->code;
    uint32_t faults = conf->fault.count;
    struct err fault;
    int rc = apply_initials (conf, params, target, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < conf->slot_count; i++) {
        struct slot *slot = &conf->slot[i];
        const struct conf_param *param = conf_param_find (params, slot->entry.key);
        if (!param || slot->dropped || (slot->used && param->type == CONF_UNSUPPORTED))
            continue;
        slot->used = true;
        fault = (struct err){0};
        if (apply_entry (conf, param, &slot->entry, target, &fault) < 0) {
            prefix_entry (conf, &slot->entry, &fault);
            conf_fault_add (conf, &fault);
        }
    }
    for (const struct conf_param *p = params; p->name; p++) {
        if ((p->flags & CONF_F_REQUIRED) && !conf->partial && !conf_has (conf, p->name)) {
            err_set (&fault, ERR_INVALID, "%s: %s is missing", conf->name, p->name);
            conf_fault_add (conf, &fault);
        }
    }
    if (conf->fault.count > faults)
        return err_set (err, conf->fault.item[faults].code, "%s", conf->fault.item[faults].text);
    return 0;
}

int conf_bits_parse (const struct conf_value *value, const char *const *words, unsigned *bits,
                     struct err *err)
{
    unsigned count = 0, all = 0;
    while (words[count])
        count++;
    for (uint32_t i = 0; i < value->word_count; i++) {
        unsigned at = 0;
        while (at < count && strcasecmp (value->word[i], words[at]) != 0)
            at++;
        if (at < count) {
            all |= 1u << at;
        } else if (strcasecmp (value->word[i], "ALL") == 0) {
            all |= (1u << count) - 1;
        } else {
            char known[ERR_TEXT_MAX] = "";
            for (unsigned n = 0; n < count; n++)
                text_printf (known + strlen (known), sizeof known - strlen (known), "%s%s",
                             n ? ", " : "", words[n]);
            return err_set (err, ERR_INVALID, "'%.40s': wanted %s or ALL", value->word[i], known);
        }
    }
    *bits |= all;
    return 0;
}
