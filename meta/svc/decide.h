/* decide: the decision log of a group (meta/core/quorum.h): proposals over RPC, and this member's
 * own votes. */
#ifndef NUI_META_SVC_DECIDE_H
#define NUI_META_SVC_DECIDE_H

#include "meta/store/votes.h"
#include "meta/svc/peers.h"

struct decision_log decide_log (struct peers *peers);
/* As a proposal of ABORT, for what another has begun; ends without a decision (failed) when that one
 * is heard again. */
void decide_take_over (struct peers *peers, const struct vote_row *row,
                       void (*done) (void *arg, enum decision decided, bool failed), void *arg);
/* Whether one is being sought. */
bool decide_running (const struct peers *peers, const uint8_t transaction[16]);
void decide_on_vote (void *self, struct rpccall *call, const ProtobufCMessage *message);
void decide_close (struct peers *peers);

#endif
