/* group_i: the two halves of what drives a co-allocated job: group.c steps its records, group_call.c asks sites, bank
 * and decision log, and makes events of their answers. */
#ifndef NUI_META_SVC_GROUP_I_H
#define NUI_META_SVC_GROUP_I_H

#include "meta/svc/group.h"

/* group.c: one event for one of its records; durable before anything is asked. The job may be gone after it. */
void group_step (struct gridjob *job, struct coalloc_record *record, struct coalloc_event *event);

/* group_call.c: does what a step asked for. The job may be gone after it. */
void group_perform (struct gridjob *job, struct coalloc_record *record,
                    const struct coalloc_actions *actions);
void group_reason (struct coalloc_reason *out, const Nui__Common__V1__Reason *reason); /* NULL: none */

#endif
