/* text: UTF-8 that is made well-formed and cut between characters. Pure.
 *
 * What goes over the wire, into a store or to a user as text must be well-formed (RFC 3629): protobuf
 * refuses a whole message for one bad byte. Text is bounded everywhere, so it is cut everywhere, and
 * names of files, messages of libraries and lines of other programs are bytes. These functions are the
 * one way to write such text into a buffer. Cost: one pass. */
#ifndef NUI_BASE_TEXT_H
#define NUI_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Length of the well-formed character at p (left > 0), or 0. NUL counts as a character here. */
size_t text_char (const void *p, size_t left);
/* Whether all is well-formed, without NUL. */
bool text_ok (const void *bytes, size_t len);
/* Every byte that belongs to no character, and NUL, becomes '?'. The length stays. */
void text_mend (void *bytes, size_t len);
/* As snprintf (cap > 0), but the result is well-formed, and what does not fit is cut after a whole
 * character. Returns the length that was written, at most cap - 1. */
size_t text_printf (char *out, size_t cap, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
size_t text_vprintf (char *out, size_t cap, const char *fmt, va_list ap)
    __attribute__ ((format (printf, 3, 0)));

#endif
