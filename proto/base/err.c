/* err: fills the sentence that a failing call hands to its caller. Everything calls it. It never
 * allocates and never prints: who shows the sentence is the caller's affair. */
#include "proto/base/err.h"

#include <stdarg.h>
#include <string.h>

#include "proto/base/text.h"

/* Text is formatted aside first: an argument may be err->text itself. */
int err_set (struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start (ap, fmt);
    text_vprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    memcpy (err->text, text, sizeof text);
    err->code = code;
    return code;
}

int err_prefix (struct err *err, const char *fmt, ...)
{
    if (!err)
        return ERR_INTERNAL;
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start (ap, fmt);
    size_t len = text_vprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    text_printf (text + len, sizeof text - len, ": %s", err->text);
    memcpy (err->text, text, sizeof text);
    return err->code;
}

void err_clear (struct err *err)
{
    if (!err)
        return;
    err->code = ERR_NONE;
    err->text[0] = '\0';
}

const char *err_code_name (int code)
{
    switch ((enum err_code)code) {
    case ERR_NONE:
        return "none";
    case ERR_INVALID:
        return "invalid";
    case ERR_NOT_FOUND:
        return "not found";
    case ERR_EXISTS:
        return "exists";
    case ERR_DENIED:
        return "denied";
    case ERR_UNAUTHENTIC:
        return "unauthentic";
    case ERR_LIMIT:
        return "limit";
    case ERR_CONFLICT:
        return "conflict";
    case ERR_FUNDS:
        return "funds";
    case ERR_UNAVAILABLE:
        return "unavailable";
    case ERR_TIMEOUT:
        return "timeout";
    case ERR_IO:
        return "i/o";
    case ERR_NOMEM:
        return "out of memory";
    case ERR_INTERNAL:
        return "internal";
    case ERR_UNSUPPORTED:
        return "unsupported";
    }
    return "unknown";
}
