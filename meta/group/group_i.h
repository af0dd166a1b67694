/* group_i: what the files that drive a co-allocated job know of each other: group.c steps its records, group_call.c asks sites, bank
 * and decision log, and makes events of their answers;
 * slide.c has a second record for an earlier slot. */
#ifndef NUI_META_GROUP_GROUP_I_H
#define NUI_META_GROUP_GROUP_I_H

#include "meta/group/group.h"

/* group.c: one event for one of its records; durable before anything is asked. The job may be gone after it. */
void group_step (struct gridjob *job, struct coalloc_record *record, struct coalloc_event *event);

/* group_call.c: does what a step asked for. The job may be gone after it. */
void group_perform (struct gridjob *job, struct coalloc_record *record,
                    const struct coalloc_actions *actions);
void group_reason (struct coalloc_reason *out,
                   const Nui__Common__V1__Reason *reason); /* NULL: none */

/* ---- slide.c */

/* How long until it is to be tried; INT64_MAX: not now. */
duration_us slide_due (struct gridjob *job);
/* After a step, and before the job goes away: who waits for its moment is in metad->firm. */
void slide_list (struct gridjob *job);
void slide_unlist (struct gridjob *job);
/* That site has room: an earlier slot is to be looked for soon. False: it would make no difference. */
bool slide_hear (struct gridjob *job, const struct site *site);
/* The second record, to be begun; false: no earlier moment would be worth it. */
bool slide_prepare (struct gridjob *job);
/* After a step of either record, before it is saved: forgets a second one that holds nothing, and lets
 * one that is firm take the first one's place. */
void slide_settle (struct gridjob *job);
/* Whether the second one is to be given up now. */
bool slide_surplus (const struct gridjob *job);
/* Whether it has to be on disk. */
bool slide_durable (const struct gridjob *job);

#endif
