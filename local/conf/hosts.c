/* hosts: turns a host expression into a set of nodes. Administrators' reservations and SRCFG
 * call it. A text that is no list of existing nodes is tried as patterns, and one that matches
 * nothing is refused by name: an expression never means no node at all. */
#include "local/conf/hosts.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/arena.h"
#include "proto/base/hostlist.h"
#include "proto/base/strtab.h"

/* LIST_SPARE: so many names more than twice the nodes are still read, to name the one that is none. */
enum { EXPRESSION_MAX = 1 << 16, LIST_SPARE = 1024 };
/* Of the library's regular expressions, which grow by each repetition within a repetition and are slow with back
 * references: an administrator who is not root must not hold the daemon with one. */
enum { PATTERN_MAX = 256, PATTERNS_MAX = 64, REPEATS_MAX = 256 };

/* True: every name of the list is a node. missing: the first that is none. */
static bool list_match (const char *expression, const char *const *name, uint32_t count, bool *out,
                        char *missing, size_t cap)
{
    struct arena *arena = arena_create (0);
    struct strtab *known = strtab_create ();
    const char **wanted;
    uint32_t n;
    bool all =
        hostlist_expand_most (expression, arena, 2 * count + LIST_SPARE, &wanted, &n, NULL) == 0 &&
        n > 0;

    for (uint32_t i = 0; all && i < count; i++)
        (void)strtab_intern (known, name[i]);
    for (uint32_t i = 0; all && i < n; i++) {
        uint32_t at = strtab_find (known, wanted[i]);
        if (at == STRTAB_NONE) {
            snprintf (missing, cap, "%s", wanted[i]);
            all = false;
        } else {
            out[at] = true;
        }
    }
    if (!all)
        memset (out, 0, count * sizeof *out);
    strtab_destroy (known);
    arena_destroy (arena);
    return all;
}

/* What it may cost to read: {n,m} write their piece down m times, and those within another one as often as that. */
static int pattern_check (const char *pattern, size_t len, struct err *err)
{
    uint64_t repeats = 1;
    if (len > PATTERN_MAX)
        return err_set (err, ERR_LIMIT, "a pattern of hosts of more than %d characters",
                        PATTERN_MAX);
    for (size_t i = 0; i < len; i++) {
        if (pattern[i] == '\\' && i + 1 < len && isdigit ((unsigned char)pattern[++i]))
            return err_set (err, ERR_UNSUPPORTED, "a pattern of hosts with a back reference");
        if (pattern[i] != '{')
            continue;
        uint64_t most = 1, n = 0;
        for (i++; i < len && pattern[i] != '}'; i++) {
            n = isdigit ((unsigned char)pattern[i]) ? n * 10 + (uint64_t)(pattern[i] - '0') : 0;
            most = n > most ? n : most;
            if (most > REPEATS_MAX)
                break;
        }
        repeats *= most;
        if (repeats > REPEATS_MAX)
            return err_set (err, ERR_LIMIT, "a pattern of hosts that repeats more than %d times",
                            REPEATS_MAX);
    }
    return 0;
}

static int regex_match (const char *pattern, size_t len, const char *const *name, uint32_t count,
                        bool *out, struct err *err)
{
    regex_t regex;
    char *whole = malloc (len + 5);
    bool any = false;
    int rc = pattern_check (pattern, len, err);

    if (rc == 0 && !whole)
        rc = err_set (err, ERR_NOMEM, "hosts: no memory");
    if (rc != 0) {
        free (whole);
        return rc;
    }
    memcpy (whole, "^(", 2);
    memcpy (whole + 2, pattern, len);
    memcpy (whole + 2 + len, ")$", 3);
    rc = regcomp (&regex, whole, REG_EXTENDED | REG_NOSUB);
    free (whole);
    if (rc != 0)
        return err_set (err, ERR_INVALID, "'%.*s' is neither a host list nor a regular expression",
                        (int)(len < 80 ? len : 80), pattern);
    for (uint32_t i = 0; i < count; i++) {
        if (regexec (&regex, name[i], 0, NULL, 0) == 0)
            any = out[i] = true;
    }
    regfree (&regex);
    return any ? 0 : ERR_NOT_FOUND;
}

int hosts_readable (const char *expression, struct err *err)
{
    struct arena *arena = arena_create (0);
    const char **wanted;
    uint32_t n;
    bool none;
    int rc = 0;

    if (hostlist_expand_most (expression, arena, LIST_SPARE, &wanted, &n, NULL) == 0 && n > 0)
        expression = "";
    for (const char *p = expression; *p && (rc == 0 || rc == ERR_NOT_FOUND);) {
        size_t len = strcspn (p, ", \t");
        rc = len ? regex_match (p, len, NULL, 0, &none, err) : 0;
        p += len + (p[len] != 0);
    }
    arena_destroy (arena);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* One word of an expression that is no list of nodes: a node's name, else a pattern, of which so many are tried. */
static int word_match (const struct strtab *known, const char *word, size_t len,
                       const char *const *name, uint32_t count, uint32_t *patterns, bool *out,
                       struct err *err)
{
    char text[PATTERN_MAX + 1];
    snprintf (text, sizeof text, "%.*s", (int)len, word);
    uint32_t at = len < sizeof text ? strtab_find (known, text) : STRTAB_NONE;
    if (at != STRTAB_NONE) {
        out[at] = true;
        return 0;
    }
    if (strcspn (word, ".[]()*+?{}|^$\\") >= len)
        return ERR_NOT_FOUND;
    if (++*patterns > PATTERNS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d patterns of hosts", PATTERNS_MAX);
    return regex_match (word, len, name, count, out, err);
}

int hosts_match (const char *expression, const char *const *name, uint32_t count, bool *out,
                 struct err *err)
{
    char missing[64] = "";
    uint32_t patterns = 0;
    bool any = false;
    int rc = ERR_NOT_FOUND;

    memset (out, 0, count * sizeof *out);
    if (strlen (expression) > EXPRESSION_MAX)
        return err_set (err, ERR_LIMIT, "a host expression of more than %d characters",
                        EXPRESSION_MAX);
    if (strcasecmp (expression, "ALL") == 0) {
        for (uint32_t i = 0; i < count; i++)
            out[i] = true;
        return 0;
    }
    if (list_match (expression, name, count, out, missing, sizeof missing))
        return 0;
    struct strtab *known = strtab_create ();
    for (uint32_t i = 0; i < count; i++)
        (void)strtab_intern (known, name[i]);
    for (const char *p = expression; *p && (rc == 0 || rc == ERR_NOT_FOUND);) {
        size_t n = strcspn (p, ", \t");
        rc = n ? word_match (known, p, n, name, count, &patterns, out, err) : ERR_NOT_FOUND;
        any = any || rc == 0;
        p += n + (p[n] != 0);
    }
    strtab_destroy (known);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        return rc;
    if (any)
        return 0;
    return err_set (err, ERR_NOT_FOUND, "no node is named %.60s",
                    *missing      ? missing
                    : *expression ? expression
                                  : "''");
}
