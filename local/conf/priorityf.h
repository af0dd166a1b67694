/* priorityf: "SPEED - 10*USAGE + .5*AMEM", a sum of terms with their weights. */
#ifndef NUI_LOCAL_CONF_PRIORITYF_H
#define NUI_LOCAL_CONF_PRIORITYF_H

#include "local/core/policy.h"
#include "proto/base/err.h"

int priorityf_parse (const char *text, struct node_priority *out, struct err *err);

#endif
