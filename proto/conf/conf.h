/* conf: files in Maui's configuration syntax, read by tables.
 *
 *     # comment                      (also after a blank, outside quotes)
 *     RMPOLLINTERVAL      00:00:30
 *     RESERVATIONDEPTH[0] 4
 *     USERCFG[john]       MAXPROC=16,20 FSTARGET=20.0-      (lines for one index add up)
 *     USERCFG[john]       PRIORITY=100
 *
 * Keys and attribute names are case-insensitive (kept in upper case); a later value of the same
 * key wins; a value may stand in double quotes; a list may go on after ", "; a line ending in '\'
 * goes on in the next.
 *
 * A program reads a file in three steps: conf_read_file; conf_table_read for each part that has a
 * table of parameters (the daemon skeleton, the policy …), each into a fresh struct; conf_finish,
 * which refuses keys that no table knows, with the line and the nearest name. Only when all three
 * succeeded does the program use the structs: a file is taken whole or refused whole, at start as
 * on reload. Every string handed out points into the conf and lives as long as it.
 *
 * Pure but for conf_read_file, conf_program_check and conf_notify_check. Limits: CONF_FILE_BYTES_MAX, CONF_LINE_BYTES_MAX,
 * CONF_ENTRIES_MAX. Parsing is linear in the file; finding a parameter is linear in the tables. */
#ifndef NUI_CONF_CONF_H
#define NUI_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum {
    CONF_FILE_BYTES_MAX = 16 << 20,
    CONF_LINE_BYTES_MAX = 64 << 10, /* a logical line, continuations included */
    CONF_ENTRIES_MAX = 200000,
    CONF_TABLES_MAX = 16,
};

struct conf;

/* ERR_NOT_FOUND when the file is not there. */
struct conf *conf_read_file (const char *path, struct err *err);
/* The same for who tells every fault of a file: a line that cannot be read is passed over, and is a fault of conf_finish, or
 * a note where the file is partial. */
struct conf *conf_read_all (const char *path, struct err *err);
/* name stands in errors; relative paths resolve against its folder. text needs no NUL. */
struct conf *conf_parse (const char *text, size_t len, const char *name, struct err *err);
/* Lines in the same syntax that stand as if at the end of the file; of them, errors and notes say
 * "changed by hand" in place of file and line. Before the first conf_table_read. */
int conf_append (struct conf *conf, const char *text, struct err *err);
void conf_destroy (struct conf *conf); /* NULL is a no-op */
/* The last one of that key and index (NULL: any) whose value has the words (NULL: any); NULL: there is none. */
const struct conf_entry *conf_entry_last (const struct conf *conf, const char *key,
                                          const char *index, const char *words);
/* Entry i is passed over by every table. */
void conf_drop (struct conf *conf, uint32_t i);
bool conf_dropped (const struct conf *conf, uint32_t i);
struct arena *conf_arena (struct conf *conf); /* for what is to live as long as conf */
const char *conf_name (const struct conf *conf);
/* path, or the file's folder + "/" + path when it is relative; lives as long as conf. */
const char *conf_path (struct conf *conf, const char *path);

/* One value on its way into a struct: of a key, or of one attribute of a key. */
struct conf_value {
    struct conf *conf;
    const char *key;         /* "USERCFG" */
    const char *index;       /* "john"; NULL when the key has none */
    const char *attr;        /* "MAXPROC"; NULL for the key's own value */
    const char *attr_index;  /* "USER:steve" of MAXPROC[USER:steve]; NULL when none */
    const char *text;        /* the value, quotes removed */
    const char *const *word; /* text split at blanks (quotes kept together) */
    uint32_t word_count;
    uint32_t line;
};

enum conf_type {
    CONF_STRING,      /* const char *: one word, or quoted */
    CONF_TEXT,        /* const char *: everything to the end of the line */
    CONF_PATH,        /* const char *: resolved with conf_path */
    CONF_BOOL,        /* bool */
    CONF_INT,         /* int64_t in [min, max] (both 0: any) */
    CONF_U32,         /* uint32_t in [min, max] */
    CONF_PPM,         /* int64_t parts per million: "0.80" -> 800000; [min, max] in ppm */
    CONF_REAL,        /* double of six decimals: "0.80" -> .8; [min, max] in ppm */
    CONF_DURATION,    /* duration_us; INFINITY only with CONF_F_INFINITY; [min, max] in us */
    CONF_SECONDS,     /* int64_t seconds of a duration, at least min; "-1" and INFINITY: -1 */
    CONF_MEMORY,      /* int64_t MB */
    CONF_CREDITS,     /* credit_micro */
    CONF_WORD,        /* int: place of the value in words (case-insensitive), or values[place] */
    CONF_CALL,        /* set () is called with the value */
    CONF_RECORD,      /* KEY[index] ATTR=value …: record () gives the struct, attrs the table */
    CONF_UNSUPPORTED, /* a parameter of Maui's that Nui does not have: noted, see conf_note, unless
                       * a table read earlier took the key */
};

enum {
    CONF_F_REQUIRED = 1, /* conf_table_read fails when the file has no such key */
    CONF_F_INDEX = 2,    /* KEY[index]: allowed */
    CONF_F_INDEX_REQUIRED =
        4, /* KEY[index]: without it is an error (RECORD: so without CONF_F_INDEX) */
    CONF_F_INFINITY = 8,
    CONF_F_FIXED = 256,     /* only from the file, not by conf_append; every CONF_PATH is so. Of a
                             * CONF_RECORD: an index that the file has not, DEFAULT excepted */
    CONF_F_ATTR_INDEX = 16, /* for an attribute: ATTR[x]=value allowed (CONF_CALL only) */
    CONF_F_ALIAS = 32,      /* another name for the field of an earlier row, which shows it */
    CONF_F_PLACE = 128,     /* says where this program is, not what it does */
    CONF_F_TELLS =
        512, /* for a CONF_RECORD: attributes that nobody knows are as conf_tell_unknown has them */
    CONF_F_GUARDS =
        1024, /* keeps somebody from something: a value that cannot be taken is a fault of a partial file, too,
                           * where any other is noted */
    CONF_F_LIST = 2048,     /* for an attribute: its words may have blanks between them */
    CONF_F_COMPARES = 4096, /* for an attribute: ATTR<=value, too, which gives "<=value" */
    CONF_F_ADDS = 64, /* for a CONF_CALL: lines with one key add up; else the last one counts */
};

/* One row of a table; a table ends with name NULL and is static. */
struct conf_param {
    const char *name;
    enum conf_type type;
    size_t offset; /* of the field in the target struct */
    int64_t min, max;
    const char *const *words; /* CONF_WORD: ends with NULL */
    const int *values;        /* CONF_WORD: what each word stands for; NULL: its place */
    const char *const *notes; /* CONF_WORD: what is noted where a word is used; NULL: nothing */
    unsigned flags;
    const char *initial; /* given to the field first, in the file's own syntax; NULL: leave.
                                * Not for CONF_RECORD's attributes: record () sets those. */
    /* CONF_CALL; the error text need not name the line or the key. */
    int (*set) (void *target, const struct conf_value *value, struct err *err);
    /* CONF_RECORD: finds or creates. */
    const struct conf_param *attrs;
    int (*record) (void *target, const char *index, void **record_out, struct err *err);
    const char
        *otherwise;   /* CONF_CALL: what is in force where the file says nothing, for conf_show:
                     * "1", or "[0] 1" where it has an index; NULL: initial, or nothing */
    const char *help; /* one line, for people */
    const char *why; /* CONF_UNSUPPORTED: what there is in its place, for the note; NULL: nothing */
};

/* A row of what Maui has and Nui has not; the sentence says what there is in its place. */
#define CONF_TOLD(key, sentence)                                                                   \
    {                                                                                              \
        .name = key, .type = CONF_UNSUPPORTED, .flags = CONF_F_INDEX, .why = sentence              \
    }

/* Stores every value of the file that the table names into target. Errors read
 * "FILE: line 12: FSDECAY: 'x' is not a decimal number". params must outlive conf_finish; target conf_show, where
 * a row of the table has a field. */
int conf_table_read (struct conf *conf, const struct conf_param *params, void *target,
                     struct err *err);
/* The table's parameters are another program's: taken, whatever they say, and not shown. */
int conf_pass_over (struct conf *conf, const struct conf_param *params, struct err *err);
/* Typed getter for a single key outside tables: the last value, NULL when absent; marks it used. */
const char *conf_get (struct conf *conf, const char *key);
/* Refuses what nobody read: "FILE: line 12: unknown parameter RESERVATIONDEPHT, did you mean
 * RESERVATIONDEPTH?"; and a file that has any other fault, with the first of them. */
int conf_finish (struct conf *conf, struct err *err);
/* From here on conf_finish only notes what nobody read and nobody knows, as Maui passes over it; what looks like a
 * mistyped parameter is refused all the same, unless the file is partial, and so is what was changed by hand. */
void conf_tell_unknown (struct conf *conf);

/* What the administrator should hear of, one sentence each, with file and line. */
uint32_t conf_note_count (const struct conf *conf);
/* For a CONF_CALL: "FILE: line 12: QOSCFG[hi] QFLAGS: " and the text. */
void conf_note_add (const struct conf_value *value, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
const char *conf_note (const struct conf *conf, uint32_t i);

/* Every parameter in force, of all tables that were read, as lines that read back say the same: what has a field from
 * its field, what has not (CONF_CALL, CONF_RECORD) as it stands in the file. name has the index: "USERCFG[john]"; it and value live in the arena or the conf, or for
 * the call only. */
typedef void (*conf_show_fn) (void *arg, const struct conf_param *param, const char *name,
                              const char *value);
void conf_show (const struct conf *conf, struct arena *arena, conf_show_fn fn, void *arg);
/* What a row takes: "0 to 1", "TRUE or FALSE", "EARLY, LATE", "a duration of at least 00:00:01" …; in buf. */
char *conf_takes (const struct conf_param *param, char *buf, size_t size);

/* The file is another program's, which knows nothing of ours: what is CONF_F_REQUIRED may be missing, and it is lenient.
 * Before the first conf_table_read, as the next. */
void conf_partial (struct conf *conf);
bool conf_is_partial (const struct conf *conf);
/* Lines of another program's, taken as they are: what cannot be taken is noted, but for rows with CONF_F_GUARDS. Not what
 * was appended. */
void conf_lenient (struct conf *conf);
bool conf_is_lenient (const struct conf *conf);
/* Is there such a key in the file? */
bool conf_has (const struct conf *conf, const char *key);

/* What the file is refused for, one sentence each, with file and line: a table is read to its end whatever it finds. */
uint32_t conf_fault_count (const struct conf *conf);
const char *conf_fault (const struct conf *conf, uint32_t i);
/* One more, found by who checks what the tables cannot; err is not empty. Once, if it is there already. */
void conf_fault_add (struct conf *conf, const struct err *err);
/* The same of an entry's line (NULL: of the file), which comes to stand before its text. */
void conf_fault_at (struct conf *conf, const struct conf_entry *entry, struct err *err);
/* What came of several steps, an err each: all that failed are added, and the first is the answer; 0: none did. */
int conf_faults_take (struct conf *conf, const struct err *step, size_t count, struct err *err);

/* A program that root is to run must be root's: neither it nor any folder above it is another's, or to be written by
 * others (a sticky folder may be). Where we are not root: root's or our own. ERR_DENIED, with what; name is the parameter's. */
int conf_program_check (const char *name, const char *path, struct err *err);
/* Words of a list (ended by NULL, at most 31), and ALL: word n sets bit n, beside those that are set. ERR_INVALID names all. */
int conf_bits_parse (const struct conf_value *value, const char *const *words, unsigned *bits,
                     struct err *err);
/* Who is told of what should not wait (NOTIFICATIONPROGRAM, NOTIFICATIONACCOUNT, NOTIFICATIONURL; NULL: nobody by that way,
 * the account is there with a program): a program that may be run, an account that exists, a URL's form. ERR_INVALID or
 * ERR_DENIED, with the parameter. */
int conf_notify_check (const char *program, const char *account, const char *url, struct err *err);

/* What stands in the file, in order. value is the raw rest of the line. */
struct conf_entry {
    const char *key;
    const char *index; /* NULL when none */
    const char *value;
    uint32_t line;
};
uint32_t conf_entry_count (const struct conf *conf);
const struct conf_entry *conf_entry (const struct conf *conf, uint32_t i);

/* The name nearest to text (case-insensitive edit distance, at most a third of its length, at
 * least 1), or NULL. names ends with NULL. Also used for commands and options. */
const char *conf_nearest (const char *text, const char *const *names);
/* Edit distance with transpositions, capped at limit + 1. For callers with their own lists. */
uint32_t conf_distance (const char *a, const char *b, uint32_t limit);

#endif
