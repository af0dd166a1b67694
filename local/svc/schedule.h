/* schedule: schedctl's part: which iteration it is, and whether there will be another.
 *
 * An iteration is a pass; in a simulation, one step of RMPOLLINTERVAL. While it is stopped nothing is
 * decided; jobs run on, ends are seen, and commands work. It also stops at a moment of the schedule's
 * clock, and goes on at one. Not kept over a restart, as Maui's. */
#ifndef NUI_LOCAL_SVC_SCHEDULE_H
#define NUI_LOCAL_SVC_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/quantity.h"

#define SCHEDULE_NEVER UINT64_MAX

struct schedule {
    uint64_t iteration; /* how many there have been */
    uint64_t stop_at;   /* stops when so many have been; SCHEDULE_NEVER: not */
    time_us stop_time;  /* stops then; 0: not */
    time_us resume_at;  /* stopped until then; 0: until it is resumed */
};

static inline bool schedule_stopped (const struct schedule *s, time_us now)
{
    return s->iteration >= s->stop_at || (s->stop_time && now >= s->stop_time);
}

#endif
