/* err: what a failing call says. Pure.
 *
 * A call that can fail returns 0 or one of enum err_code (negative) and fills a caller-owned
 * struct err with one sentence naming the thing and the bound. A NULL err is allowed. */
#ifndef NUI_BASE_ERR_H
#define NUI_BASE_ERR_H

enum err_code {
    ERR_NONE = 0,
    ERR_INVALID = -1,     /* bad input: malformed, out of range, contradictory */
    ERR_NOT_FOUND = -2,   /* names something that does not exist */
    ERR_EXISTS = -3,      /* already there, with other content */
    ERR_DENIED = -4,      /* the caller may not do this */
    ERR_UNAUTHENTIC = -5, /* identity or signature does not hold */
    ERR_LIMIT = -6,       /* a stated bound would be passed */
    ERR_CONFLICT = -7,    /* the state does not allow it (now) */
    ERR_FUNDS = -8,       /* no allocation covers it */
    ERR_UNAVAILABLE = -9, /* no answer, or not now: may be tried again */
    ERR_TIMEOUT = -10,    /* a deadline passed */
    ERR_IO = -11,         /* the operating system or a library refused */
    ERR_NOMEM = -12,
    ERR_INTERNAL = -13,    /* must not happen; the text says what did */
    ERR_UNSUPPORTED = -14, /* a known thing that is not offered */
};

enum { ERR_TEXT_MAX = 512 };

struct err {
    int code;
    char text[ERR_TEXT_MAX];
};

/* Fills err (when not NULL) and returns code, so that `return err_set (...)` reads well. */
int err_set (struct err *err, int code, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Puts "prefix: " before the text that is there; returns err->code (without err: ERR_INTERNAL). */
int err_prefix (struct err *err, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

void err_clear (struct err *err);

/* "invalid", "not found" …; never NULL. */
const char *err_code_name (int code);

#endif
