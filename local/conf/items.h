/* items: "batch:8,special:4", names of classes or generic resources and how many there are. */
#ifndef NUI_LOCAL_CONF_ITEMS_H
#define NUI_LOCAL_CONF_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* One after the other: false at the end, or with *rc_out for one that cannot be read. count_out is -1 where none is said. */
bool item_next (const char **at, char name[64], int64_t *count_out, struct err *err, int *rc_out);

/* ERR_INVALID for a list with one that cannot be read. */
int items_check (const char *text, struct err *err);

#endif
