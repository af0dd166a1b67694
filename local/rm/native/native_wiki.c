/* native_wiki: frames of the Wiki interface, made and taken apart. native_call.c sends them. It believes no length and no list that
 * is not whole: native_parse.c counts what comes. */
#include "local/rm/native/native_wiki.h"

#include <string.h>

#include "proto/base/strbuf.h"

static const char *command_of (enum rm_call call, const char *const *words, struct arena *arena)
{
    static const char *const plain[RM_CALLS] = {[RM_CALL_JOBREQUEUE] = "REQUEUEJOB",
                                                [RM_CALL_JOBSUSPEND] = "SUSPENDJOB",
                                                [RM_CALL_JOBRESUME] = "RESUMEJOB"};
    switch (call) {
    case RM_CALL_CLUSTERQUERY:
        return "CMD=GETNODES ARG=0:ALL";
    case RM_CALL_WORKLOADQUERY:
        return "CMD=GETJOBS ARG=0:ALL";
    case RM_CALL_JOBSTART: {
        char *list = arena_strdup (arena, words[1]);
        for (char *c = list; *c; c++)
            *c = *c == ',' ? ':' : *c;
        return arena_printf (arena, "CMD=STARTJOB ARG=%s TASKLIST=%s", words[0], list);
    }
    case RM_CALL_JOBCANCEL:
        return arena_printf (arena, "CMD=CANCELJOB ARG=%s TYPE=ADMIN", words[0]);
    default:
        return plain[call] ? arena_printf (arena, "CMD=%s ARG=%s", plain[call], words[0]) : NULL;
    }
}

char *native_wiki_ask (enum rm_call call, const char *const *words, long long now,
                       struct arena *arena)
{
    const char *command = command_of (call, words, arena);
    if (!command)
        return NULL;
    const char *body =
        arena_printf (arena, "CK=0000000000000000 TS=%lld AUTH=nui DT=%s", now, command);
    return arena_printf (arena, "%08zu\n%s", strlen (body), body);
}

int native_wiki_length (const char head[NATIVE_WIKI_HEAD], size_t most, size_t *out,
                        struct err *err)
{
    size_t length = 0;
    for (int i = 0; i < NATIVE_WIKI_HEAD - 1; i++) {
        if (head[i] < '0' || head[i] > '9')
            return err_set (err, ERR_INVALID, "an answer that does not begin with its length");
        length = length * 10 + (size_t)(head[i] - '0');
    }
    if (head[NATIVE_WIKI_HEAD - 1] != '\n')
        return err_set (err, ERR_INVALID, "an answer that does not begin with its length");
    if (length > most)
        return err_set (err, ERR_LIMIT, "an answer of %zu bytes: at most %zu", length, most);
    *out = length;
    return 0;
}

/* "2#n1:STATE=Idle;…#n2:…" as lines "n1 STATE=Idle;…". A '#' or ':' that is a value's own has a backslash before it. */
static void list_write (const char *text, struct strbuf *b)
{
    bool name = false, quoted = false;
    for (const char *p = text; *p; p++) {
        if (*p == '\\' && p[1]) {
            strbuf_append (b, p, 2);
            p++;
        } else if (*p == '#' && !quoted) {
            strbuf_putc (b, '\n');
            name = true;
        } else if (*p == ':' && name) {
            strbuf_putc (b, ' ');
            name = false;
        } else if (*p != '\n' && *p != '\r') {
            quoted ^= *p == '"';
            strbuf_putc (b, *p);
        }
    }
    strbuf_putc (b, '\n');
}

int native_wiki_read (const char *text, bool query, struct arena *arena, const char **out,
                      struct err *err)
{
    struct strbuf b = STRBUF_INIT;
    const char *said = strstr (text, "DT="), *arg = said ? strstr (said, " ARG=") : NULL;
    if (!said || strncmp (said, "DT=SC=", 6) != 0)
        return err_set (err, ERR_INVALID, "an answer without DT=SC=: '%.60s'", text);
    said += strlen ("DT=");
    bool failed = said[strlen ("SC=")] == '-';
    if (query && !failed) {
        if (!arg)
            return err_set (err, ERR_INVALID, "a list without ARG: '%.60s'", said);
        strbuf_printf (&b, "%.*s COUNT=", (int)strcspn (said, " "), said);
        list_write (arg + strlen (" ARG="), &b);
    } else {
        strbuf_printf (&b, "%s\n", said);
    }
    *out = strbuf_move (&b, arena);
    return 0;
}
