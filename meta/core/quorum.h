/* quorum: one decision among several coordinators, of which a minority may be dead (Gray & Lamport,
 * "Consensus on transaction commit": Paxos Commit, with the coordinator as its one resource manager).
 *
 * Pure. Every transaction is an instance of its own. Each member keeps a `vote` for it, durable before
 * it is answered; whoever wants a decision runs a `proposer`. The coordinator that owns the transaction
 * and holds every YES casts COMMIT at ballot 0 without asking first: one round. Whoever comes later
 * (itself after a crash, or a peer that takes over) asks a majority at a ballot of its own above all it
 * knows of; what any of them has voted for at the highest ballot is cast again, and only if none has
 * voted it is free to cast its own proposal. What a majority voted for at one ballot is decided, and
 * no other value can be any more.
 *
 * A proposer's own vote must come first in each round: it is what keeps it from using a ballot again
 * after a crash. */
#ifndef NUI_META_CORE_QUORUM_H
#define NUI_META_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "meta/core/decision.h"

enum { QUORUM_MEMBERS_MAX = 7, QUORUM_STRIDE = 8 };

/* What a member keeps of a transaction. All zero: it has not heard of it. */
struct vote {
    uint64_t promised; /* nothing below is answered with yes */
    bool voted;
    uint64_t accepted; /* ballot of its vote */
    enum decision decision;
    bool over;         /* every site has acknowledged: nobody need decide any more */
};

/* What it answers; promised, voted, accepted and decision as they are afterwards. */
struct vote_answer {
    bool granted;
    struct vote vote;
};

/* The lowest ballot of a member (from 0) above another. */
uint64_t ballot_above (uint64_t ballot, uint32_t member);
/* Whose it is; UINT32_MAX for ballot 0, which is the owner's. */
uint32_t ballot_member (uint64_t ballot);

/* cast false: a promise is asked for. The vote is to be made durable before the answer leaves. */
struct vote_answer vote_take (struct vote *vote, uint64_t ballot, bool cast,
                              enum decision decision);

enum proposer_stage { PROPOSER_ASKING, PROPOSER_CASTING, PROPOSER_DECIDED, PROPOSER_OVER };

struct proposer {
    uint32_t members, self;
    enum proposer_stage stage;
    uint64_t ballot;
    uint64_t seen;          /* highest ballot that anybody named */
    enum decision decision; /* proposed, being cast, or decided */
    uint32_t granted;       /* members that said yes in this stage, as bits */
    bool bound;             /* some member has voted */
    uint64_t bound_ballot;
};

/* The owner's first word: casts at ballot 0. For the one process that has all YES, once. */
void proposer_first (struct proposer *proposer, uint32_t members, uint32_t self,
                     enum decision proposal);
/* Any other: asks. vote: its own. */
void proposer_later (struct proposer *proposer, uint32_t members, uint32_t self,
                     const struct vote *own, enum decision proposal);
/* Another round, above all that was seen: some did not answer or said no. */
void proposer_again (struct proposer *proposer);
/* An answer to what was sent in this stage at `ballot`; true: the stage has changed. */
bool proposer_heard (struct proposer *proposer, uint32_t member, uint64_t ballot, bool cast,
                     const struct vote_answer *answer);

#endif
