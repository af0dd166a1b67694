/* quorum: compares ballots and versions, counts votes, and goes through the answers of an
 * inquiry. meta/lead calls it and does the asking and writing. A vote must never be counted
 * before it is durable where it was given, nor a ballot used twice. */
#include "meta/core/quorum.h"

#include <assert.h>

static_assert (QUORUM_STRIDE > QUORUM_MEMBERS_MAX, "every member has its own ballots");

/* The lowest ballot of a member (from 0) above another. */
static uint64_t ballot_above (uint64_t ballot, uint32_t member)
{
    assert (member < QUORUM_MEMBERS_MAX);
    return (ballot / QUORUM_STRIDE + 1) * QUORUM_STRIDE + member;
}

uint64_t ballot_first (uint32_t member)
{
    return ballot_above (0, member);
}

uint32_t ballot_member (uint64_t ballot)
{
    return (uint32_t)(ballot % QUORUM_STRIDE);
}

bool vote_newer (const struct vote *a, const struct vote *b)
{
    return a->accepted != b->accepted ? a->accepted > b->accepted : a->version > b->version;
}

bool vote_take (struct vote *vote, uint64_t ballot, bool cast, uint64_t version)
{
    struct vote taken = {ballot, ballot, version};
    if (ballot < vote->promised)
        return false;
    vote->promised = ballot;
    if (cast && vote_newer (&taken, vote))
        *vote = taken;
    return true;
}

static uint32_t count (uint32_t bits)
{
    uint32_t n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

bool quorum_enough (uint32_t bits, uint32_t members)
{
    return count (bits) > members / 2;
}

uint64_t quorum_version (const uint64_t *has, uint32_t members)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < members; i++) {
        uint32_t bits = 0;
        for (uint32_t j = 0; j < members; j++)
            bits |= (uint32_t)(has[j] >= has[i]) << j;
        if (has[i] > best && quorum_enough (bits, members))
            best = has[i];
    }
    return best;
}

void inquiry_begin (struct inquiry *inquiry, uint32_t members, uint32_t self,
                    const struct vote *own)
{
    *inquiry = (struct inquiry){.members = members, .self = self, .seen = own->promised};
    inquiry_again (inquiry);
}

void inquiry_again (struct inquiry *inquiry)
{
    if (inquiry->ballot > inquiry->seen)
        inquiry->seen = inquiry->ballot;
    inquiry->ballot = ballot_above (inquiry->seen, inquiry->self);
    inquiry->granted = 0;
    inquiry->best = (struct vote){0};
}

bool inquiry_heard (struct inquiry *inquiry, uint32_t member, uint64_t ballot, bool granted,
                    const struct vote *vote, bool *best)
{
    *best = false;
    if (vote->promised > inquiry->seen)
        inquiry->seen = vote->promised;
    if (!granted || ballot != inquiry->ballot || member >= inquiry->members)
        return false;
    *best = vote_newer (vote, &inquiry->best);
    if (*best)
        inquiry->best = *vote;
    inquiry->granted |= 1u << member;
    return quorum_enough (inquiry->granted, inquiry->members);
}
