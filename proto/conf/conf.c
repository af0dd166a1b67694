/* conf: holds the entries of a file, remembers which somebody asked for, and at the end names
 * those nobody knew. Daemons and commands call it at the start and at each reload. It never
 * prints: faults and notes are kept for the caller, so that a bad file can be refused whole and
 * the old one stays. */
#include "proto/conf/conf.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/strbuf.h"
#include "proto/conf/conf_i.h"

static struct conf *parse (const char *text, size_t len, const char *name, bool all,
                           struct err *err)
{
    if (len > CONF_FILE_BYTES_MAX) {
        err_set (err, ERR_LIMIT, "%s: larger than %d bytes", name, CONF_FILE_BYTES_MAX);
        return NULL;
    }
    struct conf *conf = calloc (1, sizeof *conf);
    assert (conf);
    conf->arena = arena_create (0);
    conf->name = arena_strdup (conf->arena, name);
    const char *slash = strrchr (conf->name, '/');
    int dir_len = slash ? (int)(slash - conf->name) + 1 : 0;
    conf->dir = arena_printf (conf->arena, "%.*s", dir_len, conf->name);
    conf->all = all;
    if (conf_lex (conf, text, len, err) < 0) {
        conf_destroy (conf);
        return NULL;
    }
    conf->all = false;
    return conf;
}

struct conf *conf_parse (const char *text, size_t len, const char *name, struct err *err)
{
    return parse (text, len, name, false, err);
}

int conf_append (struct conf *conf, const char *text, struct err *err)
{
    uint32_t from = conf->slot_count;
    int rc = conf_lex (conf, text, strlen (text), err);
    for (uint32_t i = from; i < conf->slot_count; i++)
        conf->slot[i].entry.line = 0;
    return rc;
}

const char *conf_place (const struct conf *conf, uint32_t line)
{
    if (line == 0)
        return "changed by hand";
    return arena_printf (conf->arena, "%s: line %u", conf->name, line);
}

static int read_whole (int fd, const char *path, struct strbuf *out, struct err *err)
{
    struct stat st;
    if (fstat (fd, &st) < 0)
        return err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    if (!S_ISREG (st.st_mode))
        return err_set (err, ERR_INVALID, "%s: not a regular file", path);
    char chunk[16384];
    while (true) {
        ssize_t n = read (fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
        if (n == 0)
            return 0;
        if (out->len + (size_t)n > CONF_FILE_BYTES_MAX)
            return err_set (err, ERR_LIMIT, "%s: larger than %d bytes", path, CONF_FILE_BYTES_MAX);
        strbuf_append (out, chunk, (size_t)n);
    }
}

static struct conf *read_file (const char *path, bool all, struct err *err)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path, strerror (errno));
        return NULL;
    }
    struct strbuf text = STRBUF_INIT;
    struct conf *conf = NULL;
    if (read_whole (fd, path, &text, err) == 0)
        conf = parse (strbuf_text (&text), text.len, path, all, err);
    strbuf_free (&text);
    close (fd);
    return conf;
}

struct conf *conf_read_file (const char *path, struct err *err)
{
    return read_file (path, false, err);
}

struct conf *conf_read_all (const char *path, struct err *err)
{
    return read_file (path, true, err);
}

void conf_destroy (struct conf *conf)
{
    if (!conf)
        return;
    arena_destroy (conf->arena);
    free (conf);
}

const char *conf_name (const struct conf *conf)
{
    return conf->name;
}

const char *conf_path (struct conf *conf, const char *path)
{
    if (path[0] == '/' || !conf->dir[0])
        return path;
    return arena_printf (conf->arena, "%s%s", conf->dir, path);
}

uint32_t conf_entry_count (const struct conf *conf)
{
    return conf->slot_count;
}

const struct conf_entry *conf_entry (const struct conf *conf, uint32_t i)
{
    return i < conf->slot_count ? &conf->slot[i].entry : NULL;
}

uint32_t conf_note_count (const struct conf *conf)
{
    return conf->note.count;
}

const char *conf_note (const struct conf *conf, uint32_t i)
{
    return i < conf->note.count ? conf->note.item[i].text : NULL;
}

/* The line that a sentence is about. */
static uint32_t line_of (const struct conf *conf, const char *text)
{
    static const char before[] = ": line ";
    size_t len = strlen (conf->name);
    if (strncmp (text, conf->name, len) != 0 ||
        strncmp (text + len, before, sizeof before - 1) != 0)
        return UINT32_MAX;
    return (uint32_t)strtoul (text + len + sizeof before - 1, NULL, 10);
}

void conf_say (struct conf *conf, struct conf_list *list, int code, const char *text)
{
    if (list->count == list->cap) {
        uint32_t cap = list->cap ? list->cap * 2 : 8;
        struct conf_said *grown = arena_array (conf->arena, cap, sizeof *grown);
        if (list->count)
            memcpy (grown, list->item, list->count * sizeof *grown);
        list->item = grown;
        list->cap = cap;
    }
    list->item[list->count] = (struct conf_said){line_of (conf, text), list->count, code,
                                                 arena_strdup (conf->arena, text)};
    list->count++;
}

const char *conf_get (struct conf *conf, const char *key)
{
    const char *value = NULL;
    conf_push (conf->arena, &conf->known, &conf->known_count, &conf->known_cap, key);
    for (uint32_t i = 0; i < conf->slot_count; i++) {
        struct slot *slot = &conf->slot[i];
        if (slot->entry.index || strcasecmp (slot->entry.key, key) != 0)
            continue;
        slot->used = true;
        value = conf_unquote (conf->arena, slot->entry.value);
    }
    return value;
}

/* Every key somebody asked for, ended by NULL. */
static const char *const *known_names (struct conf *conf)
{
    const char **list = NULL;
    uint32_t count = 0, cap = 0;
    for (uint32_t t = 0; t < conf->table_count; t++)
        for (const struct conf_param *p = conf->table[t].params; p->name; p++)
            conf_push (conf->arena, &list, &count, &cap, p->name);
    for (uint32_t k = 0; k < conf->known_count; k++)
        conf_push (conf->arena, &list, &count, &cap, conf->known[k]);
    conf_push (conf->arena, &list, &count, &cap, NULL);
    return list;
}

static void take_unknown (struct conf *conf, const struct conf_entry *entry)
{
    struct err err = {0};
    const char *const *names = known_names (conf);
    const char *near = conf_nearest (entry->key, names);
    if (conf->tells_unknown && entry->line > 0 && (!near || conf->lenient)) {
        struct conf_value value = {
            .conf = conf, .key = entry->key, .index = entry->index, .line = entry->line};
        conf_note_add (&value, "neither Maui nor Nui has such a parameter, it has no effect%s%s%s",
                       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
        return;
    }
    conf_unknown ("parameter", entry->key, names, &err);
    conf_fault_at (conf, entry, &err);
}

/* A line that is not as it should be: another program's is told, with what becomes of it, one's own is a fault. */
static void line_tell (struct conf *conf, const char *text, const char *becomes)
{
    struct err fault = {0};
    if (conf->lenient) {
        conf_say (conf, &conf->note, 0, arena_printf (conf->arena, "%s; %s", text, becomes));
        return;
    }
    err_set (&fault, ERR_INVALID, "%s", text);
    conf_fault_add (conf, &fault);
}

static int said_order (const void *a, const void *b)
{
    const struct conf_said *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Tables are read one after the other; who reads what they found has the file before him. */
static void by_line (struct conf_list *list)
{
    if (list->count > 1)
        qsort (list->item, list->count, sizeof *list->item, said_order);
}

/* What a tool that writes files from templates would have filled in: "<%= x %>", "{{ x }}", "{% if x %}". */
static const char *blank_form (const char *text)
{
    static const char *const begin[] = {"<%", "{{", "{%"};
    const char *at = NULL;
    for (size_t i = 0; i < sizeof begin / sizeof *begin && !at; i++)
        at = strstr (text, begin[i]);
    return at;
}

/* The first line with such a thing. */
static const char *template_line (const struct conf *conf, uint32_t *line)
{
    const char *first = NULL;
    *line = UINT32_MAX;
    for (uint32_t i = 0; i < conf->slot_count; i++) {
        const struct conf_entry *e = &conf->slot[i].entry;
        const char *at = blank_form (e->value);
        at = !at && e->index ? blank_form (e->index) : at;
        if (at && e->line > 0 && e->line < *line) {
            first = at;
            *line = e->line;
        }
    }
    for (uint32_t i = 0; i < conf->unread_count; i++) {
        const char *at = blank_form (conf->unread[i]);
        if (at && line_of (conf, conf->unread[i]) < *line) {
            first = at;
            *line = line_of (conf, conf->unread[i]);
        }
    }
    return first;
}

/* One sentence of a file that is no configuration at all takes the place of one for each of its lines. */
static bool another_file (struct conf *conf)
{
    struct err fault = {0};
    uint32_t line, strange = conf->unread_count, known = 0;
    const char *form = template_line (conf, &line);
    for (uint32_t i = 0; i < conf->slot_count; i++) {
        strange += !conf->slot[i].used;
        known += conf->slot[i].used && conf->slot[i].entry.line > 0;
    }
    if (form)
        err_set (
            &fault, ERR_INVALID,
            "%s: '%.40s' is for a tool to fill in: this is a template, check the file that is made of it",
            conf_place (conf, line), form);
    else if (strange > known && strange >= 3)
        err_set (
            &fault, ERR_INVALID,
            "%s: line 1: %u of its %u lines say nothing that Maui or Nui knows: is it the right file?",
            conf->name, strange, strange + known);
    else
        return false;
    conf->note.count = conf->fault.count = 0;
    conf_fault_add (conf, &fault);
    return true;
}

int conf_finish (struct conf *conf, struct err *err)
{
    if (conf->lenient && another_file (conf))
        return err_set (err, conf->fault.item[0].code, "%s", conf->fault.item[0].text);
    for (uint32_t i = 0; i < conf->slot_count; i++)
        if (!conf->slot[i].used)
            take_unknown (conf, &conf->slot[i].entry);
    for (uint32_t i = 0; i < conf->loose_count; i++)
        line_tell (conf, conf->loose[i], "taken as one");
    for (uint32_t i = 0; i < conf->unread_count; i++)
        line_tell (conf, conf->unread[i], "the line has no effect");
    by_line (&conf->note);
    by_line (&conf->fault);
    if (conf->fault.count == 0)
        return 0;
    return err_set (err, conf->fault.item[0].code, "%s", conf->fault.item[0].text);
}

const struct conf_entry *conf_entry_last (const struct conf *conf, const char *key,
                                          const char *index, const char *words)
{
    for (uint32_t i = conf->slot_count; i-- > 0;) {
        const struct conf_entry *e = &conf->slot[i].entry;
        if (strcasecmp (e->key, key) == 0 &&
            (!index || (e->index && strcasecmp (e->index, index) == 0)) &&
            (!words || strcasestr (e->value, words)))
            return e;
    }
    return NULL;
}

void conf_drop (struct conf *conf, uint32_t i)
{
    conf->slot[i].used = conf->slot[i].dropped = true;
}

bool conf_dropped (const struct conf *conf, uint32_t i)
{
    return conf->slot[i].dropped;
}

struct arena *conf_arena (struct conf *conf)
{
    return conf->arena;
}

void conf_partial (struct conf *conf)
{
    conf->partial = conf->lenient = true;
}

bool conf_is_partial (const struct conf *conf)
{
    return conf->partial;
}

void conf_lenient (struct conf *conf)
{
    conf->lenient = true;
}

bool conf_is_lenient (const struct conf *conf)
{
    return conf->lenient;
}

bool conf_has (const struct conf *conf, const char *key)
{
    for (uint32_t i = 0; i < conf->slot_count; i++)
        if (strcasecmp (conf->slot[i].entry.key, key) == 0)
            return true;
    return false;
}

void conf_tell_unknown (struct conf *conf)
{
    conf->tells_unknown = true;
}

uint32_t conf_fault_count (const struct conf *conf)
{
    return conf->fault.count;
}

const char *conf_fault (const struct conf *conf, uint32_t i)
{
    return i < conf->fault.count ? conf->fault.item[i].text : NULL;
}

void conf_fault_add (struct conf *conf, const struct err *err)
{
    assert (err->code != 0);
    for (uint32_t i = 0; i < conf->fault.count; i++)
        if (strcmp (conf->fault.item[i].text, err->text) == 0)
            return;
    conf_say (conf, &conf->fault, err->code, err->text);
}

void conf_fault_at (struct conf *conf, const struct conf_entry *entry, struct err *err)
{
    err_prefix (err, "%s", entry ? conf_place (conf, entry->line) : conf->name);
    conf_fault_add (conf, err);
}

int conf_faults_take (struct conf *conf, const struct err *step, size_t count, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        if (step[i].code == 0)
            continue;
        conf_fault_add (conf, &step[i]);
        rc = rc == 0 ? err_set (err, step[i].code, "%s", step[i].text) : rc;
    }
    return rc;
}
