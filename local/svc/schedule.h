/* schedule: schedctl's part: which iteration it is, and whether there will be another.
 *
 * An iteration is a pass; in a simulation, one step of RMPOLLINTERVAL. While it is stopped nothing is
 * decided; jobs run on, ends are seen, and commands work. Not kept over a restart, as Maui's. */
#ifndef NUI_LOCAL_SVC_SCHEDULE_H
#define NUI_LOCAL_SVC_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_NEVER UINT64_MAX

struct schedule {
    uint64_t iteration; /* how many there have been */
    uint64_t stop_at;   /* stops when so many have been; SCHEDULE_NEVER: not */
};

static inline bool schedule_stopped (const struct schedule *s)
{
    return s->iteration >= s->stop_at;
}

#endif
