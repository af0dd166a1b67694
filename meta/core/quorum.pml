/* The decision of one transaction among three coordinators as a model for spin.
 *
 * What quorum.c does: the owner casts COMMIT at ballot 0, once; whoever comes later asks at a ballot of
 * its own and casts what it is bound to, else ABORT. The network is the set of all that was ever
 * said: it may be heard once, often, late, in any order or never. A vote is durable before it is
 * answered, so a member's crash loses nothing but messages; a proposer's is one that does not go on.
 *
 * Checked in every state that can be reached: what is decided at one ballot is decided at all.
 *
 * tests/unit/meta/model.sh runs it, and once with each BUG_ to see it fail. */
#define MEMBERS 3
#ifndef BALLOTS
#define BALLOTS 3 /* 0 is the owner's */
#endif
#define AT(b, m) ((b) * MEMBERS + (m))
#define NONE 15

mtype = { NOTHING, SAID_COMMIT, SAID_ABORT };

/* Said. */
bool asked[BALLOTS];
mtype cast[BALLOTS] = NOTHING;
byte report[BALLOTS * MEMBERS] = NONE; /* a promise: ballot of the vote that was given before, + 1 */

/* The members, durable. */
byte promised[MEMBERS], voted[MEMBERS] = NONE;
bool vote[BALLOTS * MEMBERS];

mtype decided = NOTHING;
byte crashes;

#ifdef BUG_FREE /* a proposer casts its own proposal whatever was voted for */
#define UNBOUND true
#else
#define UNBOUND false
#endif
#ifdef BUG_FEW /* one promise is enough */
#define ENOUGH 1
#else
#define ENOUGH 2
#endif
#ifdef BUG_FORGET /* a promise is not on disk */
#define FORGETS true
#else
#define FORGETS false
#endif
#ifdef BUG_OLD /* a vote at a ballot below what was promised */
#define LATE true
#else
#define LATE false
#endif

inline look (b)
{
    n = 0;
    for (k : 0 .. MEMBERS - 1) {
        n = n + vote[AT (b, k)]
    }
    if
    :: n >= 2 ->
        assert (decided == NOTHING || decided == cast[b]);
        decided = cast[b]
    :: else -> skip
    fi;
    n = 0;
    k = 0
}

proctype Proposer (byte b)
{
    byte n, k, best;

end:
    do
    :: atomic { b > 0 && !asked[b] -> asked[b] = true }
    :: atomic { b == 0 && cast[0] == NOTHING -> cast[0] = SAID_COMMIT }
    :: atomic { b > 0 && asked[b] && cast[b] == NOTHING ->
        n = 0;
        best = 0;
        for (k : 0 .. MEMBERS - 1) {
            if
            :: report[AT (b, k)] != NONE ->
                n++;
                if
                :: report[AT (b, k)] > best -> best = report[AT (b, k)]
                :: else -> skip
                fi
            :: else -> skip
            fi
        }
        if
        :: n >= ENOUGH && best > 0 && !UNBOUND -> cast[b] = cast[best - 1]
        :: n >= ENOUGH && (best == 0 || UNBOUND) -> cast[b] = SAID_ABORT
        :: else -> skip
        fi;
        n = 0;
        k = 0;
        best = 0 }
    od
}

#define BALLOT(b)                                                                                  \
    :: atomic { asked[b] && report[AT (b, m)] == NONE && promised[m] <= b ->                       \
        promised[m] = b;                                                                           \
        report[AT (b, m)] = (voted[m] == NONE -> 0 : voted[m] + 1) }                               \
    :: atomic { cast[b] != NOTHING && !vote[AT (b, m)] && (promised[m] <= b || LATE) ->            \
        promised[m] = b;                                                                           \
        voted[m] = b;                                                                              \
        vote[AT (b, m)] = true;                                                                    \
        look (b) }

proctype Member (byte m)
{
    byte n, k;

end:
    do
    BALLOT (0)
    BALLOT (1)
    BALLOT (2)
#if BALLOTS > 3
    BALLOT (3)
#endif
    :: atomic { FORGETS && crashes == 0 -> crashes++; promised[m] = 0 }
    od
}

init
{
    byte n;

    atomic {
        for (n : 0 .. MEMBERS - 1) {
            run Member (n)
        }
        for (n : 0 .. BALLOTS - 1) {
            run Proposer (n)
        }
    }
}
