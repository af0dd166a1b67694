/* linereader: the lines of a text file, plain or gzip, one at a time.
 *
 * Lines may have any length up to LINEREADER_LINE_MAX; a longer one, a damaged or truncated gzip
 * stream and a read error are ERR_INVALID or ERR_IO naming file and line. */
#ifndef NUI_LOCAL_TRACE_LINEREADER_H
#define NUI_LOCAL_TRACE_LINEREADER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

enum { LINEREADER_LINE_MAX = 16 << 20 };

struct linereader;

struct linereader *linereader_open (const char *path, struct err *err); /* ERR_NOT_FOUND, ERR_IO */
void linereader_close (struct linereader *reader);                      /* NULL is a no-op */

/* The next line without its end ("\n" or "\r\n"), writable, until the next call; *line_out NULL at
 * the end of the file. */
int linereader_next (struct linereader *reader, char **line_out, struct err *err);
uint64_t linereader_number (const struct linereader *reader); /* of the line last given, from 1 */
const char *linereader_path (const struct linereader *reader);

#endif
