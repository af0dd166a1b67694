/* slide: a co-allocated group that waits for its moment goes to an earlier one when sites free up, and never
 * gives up its place before it has the new one.
 *
 * It is tried from time to time (MOVEINTERVAL) while the group is firm, with a second record of its own
 * transaction (gridjob.slide) that the same state machine drives: asked for an earlier slot, clearly
 * earlier (MOVEGAIN, MOVESHARE), prepared and committed at every site. When all of it is firm the two
 * change places, durably, and what is then the second one is released. Whatever goes wrong before, it is
 * the second one that ends. Only the first ever gets a START.
 *
 * The second record is on disk as soon as a site may hold something for it. */
#ifndef NUI_META_SVC_SLIDE_H
#define NUI_META_SVC_SLIDE_H

#include "meta/svc/job.h"

/* How long until it is to be tried; INT64_MAX: not now. */
duration_us slide_due (struct gridjob *job);
/* The second record, to be begun; false: no earlier moment would be worth it. */
bool slide_prepare (struct gridjob *job);
/* After a step of either record, before it is saved: forgets a second one that holds nothing, and lets
 * one that is firm take the first one's place. */
void slide_settle (struct gridjob *job);
/* Whether the second one is to be given up now. */
bool slide_surplus (const struct gridjob *job);
/* Whether it has to be on disk. */
bool slide_durable (const struct gridjob *job);
void slide_forget (struct gridjob *job);

#endif
