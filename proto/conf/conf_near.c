/* conf_near: guesses which known name a misspelt one was meant to be, for the sentence "did you
 * mean". Readers of configuration, options and commands call it. A guess is only ever said,
 * never acted upon. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "proto/conf/conf_i.h"

enum { NAME_MAX_COMPARED = 64 };

static int fold (char c)
{
    return toupper ((unsigned char)c);
}

static uint32_t min3 (uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment: insert, delete, replace, swap neighbours. */
uint32_t conf_distance (const char *a, const char *b, uint32_t limit)
{
    size_t n = strlen (a), m = strlen (b);
    if (n > NAME_MAX_COMPARED || m > NAME_MAX_COMPARED || n > m + limit || m > n + limit)
        return limit + 1;
    uint32_t row[3][NAME_MAX_COMPARED + 1];
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
        now[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t differs = fold (a[i - 1]) != fold (b[j - 1]);
            now[j] = min3 (last[j] + 1, now[j - 1] + 1, last[j - 1] + differs);
            if (i > 1 && j > 1 && fold (a[i - 1]) == fold (b[j - 2]) &&
                fold (a[i - 2]) == fold (b[j - 1]) && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
    }
    uint32_t d = row[n % 3][m];
    return d > limit ? limit + 1 : d;
}

const char *conf_nearest (const char *text, const char *const *names)
{
    uint32_t limit = (uint32_t)(strlen (text) / 3);
    if (limit == 0)
        limit = 1;
    const char *best = NULL;
    uint32_t best_distance = limit + 1;
    for (; *names; names++) {
        uint32_t d = conf_distance (text, *names, limit);
        if (d < best_distance) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

int conf_unknown (const char *what, const char *name, const char *const *names, struct err *err)
{
    const char *near = conf_nearest (name, names);
    if (near)
        return err_set (err, ERR_INVALID, "unknown %s %.80s, did you mean %s?", what, name, near);
    return err_set (err, ERR_INVALID, "unknown %s %.80s", what, name);
}
