/* hostlist: "node[001-004,007],beta[1-2]" and "node[AB]" to names and back. Pure.
 *
 * At most HOSTLIST_NAMES_MAX names result from one text; more is ERR_LIMIT. */
#ifndef NUI_BASE_HOSTLIST_H
#define NUI_BASE_HOSTLIST_H

#include <stdint.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"

enum { HOSTLIST_NAMES_MAX = 1 << 20 };

/* Expands text (names separated by ',', ':' or blanks, with [..] ranges and character sets) in
 * order, keeping duplicates; *names_out points into the arena. */
int hostlist_expand (const char *text, struct arena *arena, const char ***names_out,
                     uint32_t *count_out, struct err *err);
/* The same, but more than `most` names (at most HOSTLIST_NAMES_MAX) are ERR_LIMIT before they are made. */
int hostlist_expand_most (const char *text, struct arena *arena, uint32_t most,
                          const char ***names_out, uint32_t *count_out, struct err *err);
/* Compact form, in the arena; consecutive numbers of equal width become ranges. */
char *hostlist_compress (const char *const *names, uint32_t count, struct arena *arena);

#endif
