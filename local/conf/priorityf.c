/* priorityf: the words of NODECFG PRIORITYF as weights by term. Pure. nodeconf.c reads them with the file, place.c for the core. */
#include "local/conf/priorityf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *blanks (const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\'' || *at == '"')
        at++;
    return at;
}

static bool term_named (const char *text, size_t len, enum node_term *out)
{
    for (int t = 0; t < NODE_TERMS; t++) {
        const char *name = node_term_name ((enum node_term)t);
        if (strlen (name) == len && strncasecmp (name, text, len) == 0 && t != TERM_ONE) {
            *out = (enum node_term)t;
            return true;
        }
    }
    return false;
}

/* One factor: a number or a name. */
static int factor (const char **at, double *number, enum node_term *term, struct err *err)
{
    char *end;
    size_t len;

    *at = blanks (*at);
    if (isdigit ((unsigned char)**at) || **at == '.') {
        *number *= strtod (*at, &end);
        *at = blanks (end);
        return 0;
    }
    len = strspn (*at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    if (len == 0 || *term != TERM_ONE || !term_named (*at, len, term))
        return err_set (err, ERR_INVALID,
                        "'%.40s' is no term; a sum of [number *] one of APROCS, AMEM, "
                        "ASWAP, ADISK, CPROCS, CMEM, CSWAP, CDISK, JOBCOUNT, LOAD, PREF, "
                        "PRIORITY, RESAFFINITY, SPEED, USAGE",
                        *at);
    *at = blanks (*at + len);
    return 0;
}

int priorityf_parse (const char *text, struct node_priority *out, struct err *err)
{
    const char *at = blanks (text);
    bool first = true;

    memset (out, 0, sizeof *out);
    while (first || *at) {
        double number = 1;
        enum node_term term = TERM_ONE;
        int rc;
        if (*at == '+' || *at == '-') {
            number = *at == '-' ? -1 : 1;
            at++;
        } else if (!first) {
            return err_set (err, ERR_INVALID, "'+' or '-' wanted at '%.40s'", at);
        }
        rc = factor (&at, &number, &term, err);
        while (rc == 0 && *at == '*') {
            at++;
            rc = factor (&at, &number, &term, err);
        }
        if (rc != 0)
            return rc;
        out->weight[term] += number;
        first = false;
    }
    return 0;
}
