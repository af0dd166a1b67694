/* gridmap: which account of the operating system a grid identity gets at this site.
 *
 * The grid's customary file: one `"IDENTITY" account` per line, quotes optional when the identity has
 * no blanks, '#' begins a comment. Looked at again whenever the file has changed; a file with a
 * mistake in it is refused whole and what was read before stays in force. Lookup O(1). */
#ifndef NUI_LOCAL_LINK_GRIDMAP_H
#define NUI_LOCAL_LINK_GRIDMAP_H

#include "proto/base/err.h"
#include "proto/base/log.h"

struct gridmap;

enum { GRIDMAP_LINES_MAX = 1 << 20 };

int gridmap_open (const char *path, struct log *log, struct gridmap **out, struct err *err);
void gridmap_close (struct gridmap *map);
/* The account, valid until the next call; NULL when the identity is not mapped, or map is NULL. */
const char *gridmap_account (struct gridmap *map, const char *identity);
/* The other way: the identity that is mapped to the account, the first in the file where there are
 * several; NULL: none. O(1). */
const char *gridmap_identity (struct gridmap *map, const char *account);

#endif
