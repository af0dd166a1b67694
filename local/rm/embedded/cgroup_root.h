/* cgroup_root: a subtree of cgroup v2 for the jobs of one daemon. */
#ifndef NUI_LOCAL_RM_EMBEDDED_CGROUP_ROOT_H
#define NUI_LOCAL_RM_EMBEDDED_CGROUP_ROOT_H

#include "proto/base/log.h"

/* Its path, malloc'ed; NULL: there is none. The log says which limits of jobs are kept by what. */
char *cgroup_root_open (struct log *log, const char *name);
/* have: the controllers that jobs' groups get; "": none. */
void cgroup_limits_tell (struct log *log, const char *have);

#endif
