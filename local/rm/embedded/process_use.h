/* process_use: processor time and memory of a job's processes, from the kernel. Links nothing but libc:
 * used by the supervisor as well. Times in microseconds. */
#ifndef NUI_LOCAL_RM_PROCESS_USE_H
#define NUI_LOCAL_RM_PROCESS_USE_H

#include <stdint.h>
#include <sys/types.h>

/* All that processes in this cgroup (version 2) and below have used; -1: it does not say. */
int64_t cpu_time_cgroup (const char *path);
/* All that the living descendants of a process have used, and what it and they have waited for. Exact
 * to a clock tick (10 ms) per process; cost: a file of /proc for each. -1: no such process. */
int64_t cpu_time_below (pid_t pid);
/* Resident memory of all living descendants, in MB, rounded up; what they share counts for each. */
int64_t memory_below_mb (pid_t pid);

#endif
