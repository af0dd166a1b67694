#include "meta/core/quorum.h"

#include <assert.h>

static_assert (QUORUM_STRIDE > QUORUM_MEMBERS_MAX, "every member has its own ballots");

uint64_t ballot_above (uint64_t ballot, uint32_t member)
{
    assert (member < QUORUM_MEMBERS_MAX);
    return (ballot / QUORUM_STRIDE + 1) * QUORUM_STRIDE + member;
}

uint32_t ballot_member (uint64_t ballot)
{
    return ballot < QUORUM_STRIDE ? UINT32_MAX : (uint32_t)(ballot % QUORUM_STRIDE);
}

struct vote_answer vote_take (struct vote *vote, uint64_t ballot, bool cast,
                              enum decision decision)
{
    bool granted = !vote->over && ballot >= vote->promised;
    /* Ballot 0 has one proposer and no question: only votes, and always the same. */
    if (ballot == 0 && (!cast || (vote->voted && vote->decision != decision)))
        granted = false;
    if (granted) {
        vote->promised = ballot;
        if (cast) {
            vote->voted = true;
            vote->accepted = ballot;
            vote->decision = decision;
        }
    }
    return (struct vote_answer){granted, *vote};
}

static void stage_enter (struct proposer *proposer, enum proposer_stage stage)
{
    proposer->stage = stage;
    proposer->granted = 0;
}

void proposer_first (struct proposer *proposer, uint32_t members, uint32_t self,
                     enum decision proposal)
{
    *proposer = (struct proposer){.members = members, .self = self, .decision = proposal};
    stage_enter (proposer, PROPOSER_CASTING);
}

void proposer_later (struct proposer *proposer, uint32_t members, uint32_t self,
                     const struct vote *own, enum decision proposal)
{
    *proposer = (struct proposer){
        .members = members, .self = self, .decision = proposal, .seen = own->promised};
    proposer_again (proposer);
}

void proposer_again (struct proposer *proposer)
{
    assert (proposer->stage == PROPOSER_ASKING || proposer->stage == PROPOSER_CASTING);
    if (proposer->ballot > proposer->seen)
        proposer->seen = proposer->ballot;
    proposer->ballot = ballot_above (proposer->seen, proposer->self);
    proposer->bound = false;
    stage_enter (proposer, PROPOSER_ASKING);
}

static uint32_t count (uint32_t bits)
{
    uint32_t n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

bool proposer_heard (struct proposer *proposer, uint32_t member, uint64_t ballot, bool cast,
                     const struct vote_answer *answer)
{
    enum proposer_stage stage = cast ? PROPOSER_CASTING : PROPOSER_ASKING;
    const struct vote *vote = &answer->vote;
    if (vote->promised > proposer->seen)
        proposer->seen = vote->promised;
    if (stage != proposer->stage || ballot != proposer->ballot || member >= proposer->members)
        return false;
    if (vote->over) {
        stage_enter (proposer, PROPOSER_OVER);
        return true;
    }
    if (!answer->granted)
        return false;
    proposer->granted |= 1u << member;
    if (!cast && vote->voted && (!proposer->bound || vote->accepted > proposer->bound_ballot)) {
        proposer->bound = true;
        proposer->bound_ballot = vote->accepted;
        proposer->decision = vote->decision;
    }
    if (count (proposer->granted) <= proposer->members / 2)
        return false;
    stage_enter (proposer, cast ? PROPOSER_DECIDED : PROPOSER_CASTING);
    return true;
}
