/* taskspec: parses RESOURCES=PROCS:1;MEM:512 and its like. SRCFG and the daemon's reservations
 * call it. A word it does not know is refused: a reservation for something else than was asked
 * helps nobody. */
#include "local/conf/taskspec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/base/quantity.h"

static const char *const name[] = {"PROCS", "MEM", "SWAP", "DISK"};
enum { KINDS = sizeof name / sizeof *name };

static int amount_read (int kind, const char *value, int64_t *out, struct err *err)
{
    int rc = kind == RES_PROCS ? int_parse (value, "processors", -1, INT32_MAX, out, err)
                               : memory_parse (value, out, err);
    if (rc == 0 && (*out > INT32_MAX || (kind == RES_PROCS && *out == 0)))
        rc = err_set (err, ERR_INVALID, "%s:%s is out of range", name[kind], value);
    return rc;
}

int taskspec_read (const char *text, struct resources *task, bool *whole, struct err *err)
{
    while (*text) {
        size_t word = strcspn (text, ",;+ \t"), key = strcspn (text, ":=,;+ \t");
        char value[40];
        int64_t n;
        int d = 0;
        while (d < KINDS && !(strlen (name[d]) == key && strncasecmp (text, name[d], key) == 0))
            d++;
        if (word > 0 && (d == KINDS || key + 1 >= word || word - key > sizeof value))
            return err_set (err, ERR_INVALID,
                            "'%.*s' is no resource of a task: say PROCS:n, MEM:n, SWAP:n or DISK:n",
                            (int)(word < 60 ? word : 60), text);
        if (word > 0) {
            snprintf (value, sizeof value, "%.*s", (int)(word - key - 1), text + key + 1);
            int rc = amount_read (d, value, &n, err);
            if (rc != 0)
                return rc;
            *whole = *whole || (d == RES_PROCS && n == -1);
            task->v[d] = d == RES_PROCS && n == -1 ? 1 : (int32_t)n;
        }
        text += word + (text[word] != 0);
    }
    return 0;
}
