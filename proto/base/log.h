/* log: one line per event, key=value, to stderr or a file reopened on request.
 *
 * A line is `2026-11-21T03:43:20.123456Z level area event key=value …`; values with blanks,
 * quotes or control characters are quoted and escaped. One logger per process, created in main
 * and passed where needed; a NULL logger discards. */
#ifndef NUI_BASE_LOG_H
#define NUI_BASE_LOG_H

#include <stddef.h>

#include "proto/base/err.h"

enum log_level { LOG_LEVEL_ERROR = 0, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log;

enum { LOG_AREAS_MAX = 32, LOG_AREA_NAME_MAX = 24 };

/* "info", "3", "info,rm=debug,rpc=error": one for all areas, and others for some. */
struct log_levels {
    enum log_level all;
    unsigned count;
    struct {
        char name[LOG_AREA_NAME_MAX];
        enum log_level level;
    } area[LOG_AREAS_MAX];
};

/* path NULL: stderr. ident names the program. */
struct log *log_create (const char *path, enum log_level level, const char *ident, struct err *err);
void log_destroy (struct log *log);
int log_reopen (struct log *log, struct err *err); /* on SIGHUP */
void log_level_set (struct log *log, enum log_level level);
void log_levels_set (struct log *log, const struct log_levels *levels);
int log_level_parse (const char *text, enum log_level *out, struct err *err);
/* Without a level for all it is INFO. */
int log_levels_parse (const char *text, struct log_levels *out, struct err *err);

/* area: "rpc", "rm", "plan" …; event: "job_started"; fmt: "job=%s nodes=%u" (quote strings that may
 * hold blanks with log_quote). */
void log_event (struct log *log, enum log_level level, const char *area, const char *event,
                const char *fmt, ...) __attribute__ ((format (printf, 5, 6)));
/* Returns text, quoted and escaped into buf when needed. */
const char *log_quote (const char *text, char *buf, size_t cap);

#endif
