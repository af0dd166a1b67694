/* gridmap: parses the grid map and finds the account of an identity, and the other way. The
 * service asks it for each caller and each job. No identity gets an account that the file does
 * not give it, and no half of a faulty file is used. */
#include "local/link/gridmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <uthash.h>

#include "proto/base/quantity.h"

struct entry {
    char *identity;
    char *account;
    UT_hash_handle hh;
    UT_hash_handle hh_account; /* only the first entry of its account */
};

struct gridmap {
    char *path;
    struct log *log;
    struct entry *entries;
    struct entry *by_account;
    struct stat seen;
};

static void entries_free (struct entry **entries)
{
    struct entry *e, *next;
    HASH_ITER (hh, *entries, e, next) {
        HASH_DEL (*entries, e);
        free (e->identity);
        free (e->account);
        free (e);
    }
}

/* Cuts the next word of *text, which may be quoted; NULL at the end or without a closing quote. */
static char *word (char **text)
{
    char *p = *text + strspn (*text, " \t\r\n");
    char *end;
    if (!*p || *p == '#')
        return NULL;
    if (*p == '"') {
        end = strchr (++p, '"');
        if (!end)
            return NULL;
    } else {
        end = p + strcspn (p, " \t\r\n");
    }
    *text = *end ? end + 1 : end;
    *end = 0;
    return p;
}

static int line_parse (char *line, struct entry **entries, unsigned number, const char *path,
                       struct err *err)
{
    char *p = line + strspn (line, " \t\r\n");
    if (!*p || *p == '#')
        return 0;
    char *identity = word (&p);
    char *account = identity ? word (&p) : NULL;
    if (!identity || !account || word (&p))
        return err_set (err, ERR_INVALID, "%s line %u: wanted \"IDENTITY\" account", path, number);
    if (strncmp (identity, "nui://", 6) != 0)
        return err_set (err, ERR_INVALID, "%s line %u: '%.100s' is not an identity (nui://…)", path,
                        number, identity);
    if (name_check ("account", account, err) != 0)
        return err_prefix (err, "%s line %u", path, number);
    struct entry *e;
    HASH_FIND_STR (*entries, identity, e);
    if (e)
        return err_set (err, ERR_INVALID, "%s line %u: %.100s is mapped twice", path, number,
                        identity);
    e = calloc (1, sizeof *e);
    e->identity = strdup (identity);
    e->account = strdup (account);
    HASH_ADD_KEYPTR (hh, *entries, e->identity, strlen (e->identity), e);
    return 0;
}

static void accounts_index (struct gridmap *map)
{
    struct entry *e, *next, *first;
    HASH_ITER (hh, map->entries, e, next) /* in the file's order */
    {
        HASH_FIND (hh_account, map->by_account, e->account, strlen (e->account), first);
        if (!first)
            HASH_ADD_KEYPTR (hh_account, map->by_account, e->account, strlen (e->account), e);
    }
}

static int load (struct gridmap *map, struct err *err)
{
    char *line = NULL;
    size_t cap = 0;
    unsigned number = 0;
    struct entry *fresh = NULL;
    struct stat st;
    int rc = 0;
    FILE *f = fopen (map->path, "re");
    if (!f || fstat (fileno (f), &st) != 0) {
        rc = err_set (err, ERR_IO, "gridmap %s: %s", map->path, strerror (errno));
        goto out;
    }
    while (rc == 0 && getline (&line, &cap, f) > 0) {
        if (++number > GRIDMAP_LINES_MAX)
            rc = err_set (err, ERR_LIMIT, "gridmap %s: more than %d lines", map->path,
                          GRIDMAP_LINES_MAX);
        else
            rc = line_parse (line, &fresh, number, map->path, err);
    }
    if (rc == 0) {
        HASH_CLEAR (hh_account, map->by_account);
        entries_free (&map->entries);
        map->entries = fresh;
        fresh = NULL;
        accounts_index (map);
    }
    map->seen = st; /* a bad file is complained of once, not at every lookup */
out:
    entries_free (&fresh);
    free (line);
    if (f)
        fclose (f);
    return rc;
}

int gridmap_open (const char *path, struct log *log, struct gridmap **out, struct err *err)
{
    struct gridmap *map = calloc (1, sizeof *map);
    if (!map)
        return err_set (err, ERR_NOMEM, "gridmap: no memory");
    map->path = strdup (path);
    map->log = log;
    int rc = load (map, err);
    if (rc != 0)
        gridmap_close (map);
    else
        *out = map;
    return rc;
}

void gridmap_close (struct gridmap *map)
{
    if (!map)
        return;
    HASH_CLEAR (hh_account, map->by_account);
    entries_free (&map->entries);
    free (map->path);
    free (map);
}

static bool changed (const struct stat *a, const struct stat *b)
{
    return a->st_ino != b->st_ino || a->st_size != b->st_size ||
           a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void refresh (struct gridmap *map)
{
    struct stat st;
    struct err err = {0};
    char quoted[ERR_TEXT_MAX];
    if (stat (map->path, &st) == 0 && changed (&st, &map->seen)) {
        if (load (map, &err) != 0)
            log_event (map->log, LOG_LEVEL_ERROR, "gridmap", "refused", "error=%s",
                       log_quote (err.text, quoted, sizeof quoted));
        else
            log_event (map->log, LOG_LEVEL_INFO, "gridmap", "loaded", "entries=%u",
                       HASH_COUNT (map->entries));
    }
}

const char *gridmap_account (struct gridmap *map, const char *identity)
{
    struct entry *e;
    if (!map)
        return NULL;
    refresh (map);
    HASH_FIND_STR (map->entries, identity, e);
    return e ? e->account : NULL;
}

const char *gridmap_identity (struct gridmap *map, const char *account)
{
    struct entry *e;
    if (!map)
        return NULL;
    refresh (map);
    HASH_FIND (hh_account, map->by_account, account, strlen (account), e);
    return e ? e->identity : NULL;
}
