/* stageoption: files to be staged, as people write them. Pure; memory of the arena.
 *
 *   URL=PATH[,sha256=HEX][,bytes=SIZE]   brought in: SIZE as 1500, 20M, 3G (of 1024)
 *   PATH=URL[,always]                    taken away
 *
 * "{index}" in either is the job's index in its array. */
#ifndef NUI_CLI_STAGEOPTION_H
#define NUI_CLI_STAGEOPTION_H

#include <stdbool.h>

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/nui/v1/common.pb-c.h"

/* NULL and ERR_INVALID: the form is wrong; what it may name is for jobstage_check. */
Nui__Common__V1__Transfer *stageoption_in (const char *text, struct arena *arena, struct err *err);
Nui__Common__V1__Transfer *stageoption_out (const char *text, struct arena *arena, struct err *err);
/* Is "key=..." a piece of what --stage-in takes after a comma? */
bool stageoption_piece (const char *key, size_t len);
/* The component's lists as they were, with "{index}" replaced. */
void stageoption_index (Nui__Common__V1__Component *component, uint32_t index, struct arena *arena);

#endif
