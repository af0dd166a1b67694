/* metrics: what the metascheduler tells Prometheus of itself: jobs, how co-allocations end and how long their PREPAREs take,
 * and how long each site has been silent. Counted as it happens; no user and no job is named. */
#ifndef NUI_META_JOB_METRICS_H
#define NUI_META_JOB_METRICS_H

#include "meta/job/hub.h"

extern const struct metad_part metrics_part;

/* A site has answered a PREPARE, so long after it was sent first. */
void metrics_prepared (struct metad *metad, duration_us took);
void metrics_write (struct metad *metad, struct metrics_page *page);

#endif
