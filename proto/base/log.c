/* log: puts one line together in a fixed buffer and writes it with one call. Daemons call it
 * from their loop. It never fails its caller: what the device refuses is counted, and told with
 * the next line that goes through. Nothing a peer sent can begin a line of its own. */
#include "proto/base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"

enum { LOG_LINE_MAX = 8192 };

struct log {
    int fd;
    bool fd_owned;
    struct log_levels levels;
    enum log_level most; /* the highest of them */
    uint64_t lines_lost; /* the device refused them; told with the next line that goes through */
    char *path;
    char *ident;
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static int open_append (const char *path, int *fd_out, struct err *err)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
    if (fd < 0)
        return err_set (err, ERR_IO, "log file %s: %s", path, strerror (errno));
    *fd_out = fd;
    return 0;
}

static void announce (struct log *log)
{
    char quoted[128];
    log_event (log, LOG_LEVEL_INFO, "log", "opened", "program=%s pid=%ld",
               log_quote (log->ident, quoted, sizeof quoted), (long)getpid ());
}

struct log *log_create (const char *path, enum log_level level, const char *ident, struct err *err)
{
    int fd = STDERR_FILENO;
    if (path && open_append (path, &fd, err) < 0)
        return NULL;
    struct log *log = calloc (1, sizeof *log);
    assert (log);
    log->fd = fd;
    log->fd_owned = path != NULL;
    log_level_set (log, level);
    log->path = path ? strdup (path) : NULL;
    log->ident = strdup (ident ? ident : "");
    assert (log->ident && (!path || log->path));
    announce (log);
    return log;
}

void log_destroy (struct log *log)
{
    if (!log)
        return;
    if (log->fd_owned)
        close (log->fd);
    free (log->path);
    free (log->ident);
    free (log);
}

int log_reopen (struct log *log, struct err *err)
{
    if (!log || !log->path)
        return 0;
    int fd = -1;
    int rc = open_append (log->path, &fd, err);
    if (rc < 0)
        return rc;
    close (log->fd);
    log->fd = fd;
    announce (log);
    return 0;
}

void log_level_set (struct log *log, enum log_level level)
{
    log_levels_set (log, &(struct log_levels){.all = level});
}

void log_levels_set (struct log *log, const struct log_levels *levels)
{
    if (!log)
        return;
    log->levels = *levels;
    log->most = levels->all;
    for (unsigned i = 0; i < levels->count; i++)
        if (levels->area[i].level > log->most)
            log->most = levels->area[i].level;
}

static enum log_level level_of (const struct log *log, const char *area)
{
    for (unsigned i = 0; i < log->levels.count; i++)
        if (strcmp (log->levels.area[i].name, area) == 0)
            return log->levels.area[i].level;
    return log->levels.all;
}

/* Names, or Maui's numbers 0 … 9 (3 is its usual setting: what happened, not how). */
int log_level_parse (const char *text, enum log_level *out, struct err *err)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcasecmp (text, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    if (text[0] >= '0' && text[0] <= '9' && text[1] == '\0') {
        int n = text[0] - '0';
        *out = n == 0   ? LOG_LEVEL_ERROR
               : n == 1 ? LOG_LEVEL_WARN
               : n <= 3 ? LOG_LEVEL_INFO
                        : LOG_LEVEL_DEBUG;
        return 0;
    }
    return err_set (err, ERR_INVALID, "log level '%s' is none of error, warn, info, debug, 0 to 9",
                    text);
}

/* One piece of a list: "debug" or "rm=debug". */
static int piece_parse (const char *piece, struct log_levels *out, struct err *err)
{
    const char *equals = strchr (piece, '=');
    enum log_level level;
    if (!equals)
        return log_level_parse (piece, &out->all, err);
    size_t n = (size_t)(equals - piece);
    if (n == 0 || n >= LOG_AREA_NAME_MAX || strspn (piece, "abcdefghijklmnopqrstuvwxyz_") != n)
        return err_set (err, ERR_INVALID, "log area '%.*s': wanted a name in small letters", (int)n,
                        piece);
    if (out->count == LOG_AREAS_MAX)
        return err_set (err, ERR_LIMIT, "log levels of more than %d areas", LOG_AREAS_MAX);
    int rc = log_level_parse (equals + 1, &level, err);
    if (rc == 0) {
        memcpy (out->area[out->count].name, piece, n);
        out->area[out->count].name[n] = 0;
        out->area[out->count++].level = level;
    }
    return rc;
}

int log_levels_parse (const char *text, struct log_levels *out, struct err *err)
{
    struct log_levels levels = {.all = LOG_LEVEL_INFO};
    int rc = 0;
    do {
        char piece[LOG_AREA_NAME_MAX + 16];
        size_t n = strcspn (text, ",");
        if (n >= sizeof piece)
            return err_set (err, ERR_INVALID, "log level '%.40s' is too long", text);
        memcpy (piece, text, n);
        piece[n] = 0;
        rc = piece_parse (piece, &levels, err);
        text += n;
    } while (rc == 0 && *text++ == ',');
    if (rc == 0)
        *out = levels;
    return rc;
}

static int write_line (int fd, const char *line, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, line, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        line += n;
        len -= (size_t)n;
    }
    return 0;
}

/* One event stays one line whatever a value held; what does not fit is cut and marked. */
static size_t finish_line (char *line, size_t from, size_t len)
{
    for (size_t i = from; i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    while (len > 0 && line[len - 1] == ' ')
        len--;
    line[len++] = '\n';
    return len;
}

void log_event (struct log *log, enum log_level level, const char *area, const char *event,
                const char *fmt, ...)
{
    if (!log || level > log->most || level > level_of (log, area))
        return;
    char line[LOG_LINE_MAX];
    time_us now = clock_now_us ();
    time_t seconds = (time_t)(now / US_PER_S);
    struct tm tm;
    gmtime_r (&seconds, &tm);
    size_t len = strftime (line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    const size_t cap = sizeof line - 8; /* room for " …" and the newline */
    int n = snprintf (line + len, cap - len, ".%06dZ %s %s %s ", (int)(now % US_PER_S),
                      level_names[level], area, event);
    assert (n >= 0);
    len = (size_t)n < cap - len ? len + (size_t)n : cap - 1;
    if (log->lines_lost > 0 && len < cap - 1) {
        n = snprintf (line + len, cap - len, "lines_lost=%llu ",
                      (unsigned long long)log->lines_lost);
        len = (size_t)n < cap - len ? len + (size_t)n : cap - 1;
    }
    size_t from = len;
    va_list ap;
    va_start (ap, fmt);
    n = vsnprintf (line + len, cap - len, fmt, ap);
    va_end (ap);
    if (n >= 0 && (size_t)n >= cap - len) {
        len = cap - 1;
        memcpy (line + len, " cut=1", 6);
        len += 6;
    } else if (n > 0) {
        len += (size_t)n;
    }
    len = finish_line (line, from, len);
    if (write_line (log->fd, line, len) < 0)
        log->lines_lost++;
    else
        log->lines_lost = 0;
}

static bool needs_quotes (const char *text)
{
    if (!*text)
        return true;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p <= ' ' || *p == '"' || *p == '\\' || *p == '=' || *p == 0x7f)
            return true;
    return false;
}

/* Writes the escaped form of c; returns its length (at most 4). */
static size_t escape (unsigned char c, char out[5])
{
    switch (c) {
    case '\n':
        return (size_t)snprintf (out, 5, "\\n");
    case '\r':
        return (size_t)snprintf (out, 5, "\\r");
    case '\t':
        return (size_t)snprintf (out, 5, "\\t");
    case '"':
    case '\\':
        return (size_t)snprintf (out, 5, "\\%c", c);
    default:
        if (c < 0x20 || c == 0x7f)
            return (size_t)snprintf (out, 5, "\\x%02x", c);
        out[0] = (char)c;
        return 1;
    }
}

const char *log_quote (const char *text, char *buf, size_t cap)
{
    if (!text)
        text = "";
    if (!needs_quotes (text))
        return text;
    if (cap < 3)
        return "\"\"";
    size_t len = 0;
    buf[len++] = '"';
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        char piece[5];
        size_t n = escape (*p, piece);
        if (n > cap - 2 - len)
            break;
        memcpy (buf + len, piece, n);
        len += n;
    }
    buf[len++] = '"';
    buf[len] = '\0';
    return buf;
}
