/* hosts: which nodes an administrator means.
 *
 * "ALL"; a host list ("node[001-128]", "node[AB],gpu7": proto/base/hostlist) of nodes that exist; else
 * POSIX extended regular expressions, separated by ',' or blanks, each matched against whole names. */
#ifndef NUI_LOCAL_CONF_HOSTS_H
#define NUI_LOCAL_CONF_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

/* Sets out[i] for each of the names that is meant. ERR_NOT_FOUND: none is, or one of a list is not
 * there; ERR_INVALID: an expression that cannot be read. */
int hosts_match (const char *expression, const char *const *name, uint32_t count, bool *out,
                 struct err *err);

/* Can it be read, whatever nodes there are? */
int hosts_readable (const char *expression, struct err *err);

#endif
