/* group: drives the coordinator's state machine (meta/core/coalloc) for a co-allocated job: makes the
 * record durable, then performs the actions, and turns every answer into an event. */
#ifndef NUI_META_GROUP_GROUP_H
#define NUI_META_GROUP_GROUP_H

#include "meta/job/job.h"

/* A job that is about to be inserted: one of several components, or that asks for licences of the grid, has a record, and
 * is held here; any other in its queue. */
int group_made (struct gridjob *job, struct err *err);
extern const struct job_driver group_driver;
/* Its records are made, stored and freed with the job. */
extern const struct metad_part group_part;
/* Not begun, or between two tries: it can be held. */
bool group_may_wait (const struct gridjob *job);
void group_cancel (struct gridjob *job, const char *who);
/* The site's word on part p; part[p].info is already the new one. Steps the record once the report
 * is durable. */
void group_heard (struct gridjob *job, uint32_t p);
/* More is free at the site than when it reported before: those with a component there may come forward. */
void group_room (struct metad *metad, const struct site *site);

#endif
