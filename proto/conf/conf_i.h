/* conf_i: what the sources of conf share. Not for others. */
#ifndef NUI_CONF_CONF_I_H
#define NUI_CONF_CONF_I_H

#include "proto/base/arena.h"
#include "proto/conf/conf.h"

struct slot {
    struct conf_entry entry;
    bool used, dropped;
};

/* A note (code 0) or a fault: what is said of which line (UINT32_MAX: of none), and as the how-manieth. */
struct conf_said {
    uint32_t line, number;
    int code;
    const char *text;
};

struct conf_list {
    struct conf_said *item;
    uint32_t count, cap;
};

struct conf {
    struct arena *arena;
    const char *name;
    const char *dir; /* "" or ends with '/' */
    struct slot *slot;
    uint32_t slot_count, slot_cap;
    struct {
        const struct conf_param *params;
        const void *target;
    } table[CONF_TABLES_MAX];
    uint32_t table_count;
    const char **known; /* keys asked for with conf_get */
    uint32_t known_count, known_cap;
    struct conf_list note, fault;
    const char **unread; /* lines that are none, with conf_read_all: each why, with its place */
    uint32_t unread_count, unread_cap;
    const char **loose; /* the same, of lines that can be taken: KEY=value */
    uint32_t loose_count, loose_cap;
    bool tells_unknown, partial, lenient, all;
};

/* "FILE: line 12", or "changed by hand" for line 0; in the arena. */
const char *conf_place (const struct conf *conf, uint32_t line);

/* text begins with its place, if it has one; copied. */
void conf_say (struct conf *conf, struct conf_list *list, int code, const char *text);

/* Splits text into entries. */
int conf_lex (struct conf *conf, const char *text, size_t len, struct err *err);

/* Words of a value: blanks separate, double quotes keep together (and stay in the word). */
struct words {
    const char **word;
    uint32_t count;
};
int conf_split (struct arena *arena, const char *value, struct words *out, struct err *err);
/* The same without quotes and with \" and \\ resolved. */
const char *conf_unquote (struct arena *arena, const char *word);
/* First '=' outside quotes, or NULL. */
const char *conf_equals (const char *word);

/* The row of that name, or NULL. */
const struct conf_param *conf_param_find (const struct conf_param *table, const char *name);
const struct conf_param *conf_param_part (const struct conf_param *table, const char *name,
                                          size_t len);

/* Of another program's file: words that are no ATTRIBUTE=value but nearly, as people write them; told with the line's note. */
void conf_mend (const struct conf_param *attrs, const struct conf_value *line, struct words *words);

/* Grows an arena array of pointers by one place. */
void conf_push (struct arena *arena, const char ***list, uint32_t *count, uint32_t *cap,
                const char *text);

/* 0 or ERR_INVALID "… unknown what NAME, did you mean OTHER?" */
int conf_unknown (const char *what, const char *name, const char *const *names, struct err *err);

#endif
