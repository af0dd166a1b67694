/* taskspec: what one task of a reservation takes, as administrators write it. */
#ifndef NUI_LOCAL_CONF_TASKSPEC_H
#define NUI_LOCAL_CONF_TASKSPEC_H

#include "local/core/types.h"
#include "proto/base/err.h"

/* "PROCS:1,MEM:512", "PROCS=-1;DISK=2G": of processors, memory, swap and disk those that are named go into
 * *task; PROCS -1 is a whole node (*whole, one processor). */
int taskspec_read (const char *text, struct resources *task, bool *whole, struct err *err);

#endif
