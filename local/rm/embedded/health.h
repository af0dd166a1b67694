/* health: a host's own word on whether it is fit for jobs: the program of NODEHEALTHPROGRAM, run at once and then at an interval.
 * One that ends with 0 has nothing against the host; another code drains it, for the first line that the program printed. It
 * is killed at its limit, which drains the host, too. One loop; nothing waits for the program. */
#ifndef NUI_LOCAL_RM_EMBEDDED_HEALTH_H
#define NUI_LOCAL_RM_EMBEDDED_HEALTH_H

#include <event2/event.h>

#include "local/rm/rm_kind.h"
#include "proto/base/log.h"

struct health;

/* NULL where no program is named. changed: health_why has another answer. */
struct health *health_begin (struct event_base *base, struct log *log,
                             const struct rm_health *wanted, void (*changed) (void *arg),
                             void *arg);
void health_end (struct health *health); /* NULL is a no-op */
/* Why the host gets no jobs; NULL: nothing is against it. Holds until it changes. */
const char *health_why (const struct health *health);

#endif
