/* follow: what a member of a group missed of jobs that were over before it was back.
 *
 * Who leads a job sends it to all, but asks nobody any more once a majority has its end (lead.h). So each member lists the
 * jobs that are over by when it came to know that, or to know more of them (of files that were taken away later): each
 * other reads on from the place up to which it has everything, asks for those of which it has nothing or less, and
 * notes the place when they are on its disk. From any member, so that it does not matter who led them. */
#ifndef NUI_META_SVC_FOLLOW_H
#define NUI_META_SVC_FOLLOW_H

#include "meta/svc/peers.h"

/* last: the latest place in that member's list, as it says. */
void follow_look (struct peers *peers, struct peer *peer, uint64_t last);
void follow_on_over (void *self, struct rpccall *call, const ProtobufCMessage *message);
void follow_on_state (void *self, struct rpccall *call, const ProtobufCMessage *message);

#endif
