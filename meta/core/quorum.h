/* quorum: what a group of coordinators keeps of a job, of whom a minority may be dead.
 *
 * Pure. Each job is a register of its own, after Paxos (Lamport, "The part-time parliament"; with one leader
 * that writes many times as in Multi-Paxos): whoever leads it has a ballot of its own, gives its states ascending
 * versions, and acts on a state only when a majority has it on disk. Whoever wants to lead asks a majority for
 * promises at a ballot above all that it knows of; of what those have, the state of the highest ballot, and of that
 * the highest version, is the one that goes on. Two majorities meet: so it is the one on which the leader before
 * has acted last, or a later one of its; and who was passed over finds no majority any more.
 *
 * The decision of a co-allocation is a state like any other: COMMIT leaves when a majority has written it (the
 * vote of Paxos Commit, Gray & Lamport); where the state that goes on does not have it, it is aborted.
 *
 * One's own vote must be durable first: it is what keeps a ballot from being used again after a crash. */
#ifndef NUI_META_CORE_QUORUM_H
#define NUI_META_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

enum { QUORUM_MEMBERS_MAX = 7, QUORUM_STRIDE = 8 };

/* What a member keeps of a job beside the state itself. All zero: it has not heard of it. */
struct vote {
    uint64_t promised; /* nothing below is taken */
    uint64_t accepted; /* ballot of the state that is kept; 0: none is */
    uint64_t version;  /* of that state */
};

/* Who submits it leads it at that ballot, without asking: nobody else knows of it. */
uint64_t ballot_first (uint32_t member);
/* Whose it is. */
uint32_t ballot_member (uint64_t ballot);

/* Whether a is a later state than b. */
bool vote_newer (const struct vote *a, const struct vote *b);
/* cast false: a promise is asked for. True: granted; the vote is as it is to be on disk before the answer leaves.
 * A state that is not newer than the one that is kept is granted, and not kept. */
bool vote_take (struct vote *vote, uint64_t ballot, bool cast, uint64_t version);

/* More than half: of members as bits; and the highest version that more than half have. */
bool quorum_enough (uint32_t bits, uint32_t members);
uint64_t quorum_version (const uint64_t *has, uint32_t members);

/* The questions of one that wants to lead. */
struct inquiry {
    uint32_t members, self;
    uint64_t ballot;
    uint64_t seen;    /* highest that anybody named */
    uint32_t granted; /* members that promised, as bits; one's own first, when it is durable */
    struct vote best; /* of those */
};

void inquiry_begin (struct inquiry *inquiry, uint32_t members, uint32_t self,
                    const struct vote *own);
/* Another round, above all that was seen: some did not answer or said no. */
void inquiry_again (struct inquiry *inquiry);
/* An answer at that ballot. *best: its state goes on, as far as is known. True: enough have promised. */
bool inquiry_heard (struct inquiry *inquiry, uint32_t member, uint64_t ballot, bool granted,
                    const struct vote *vote, bool *best);

#endif
