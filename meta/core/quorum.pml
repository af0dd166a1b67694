/* What three coordinators keep of one job, and who leads it, as a model for spin.
 *
 * What quorum.c and svc/lead*.c do: who submitted it leads it at ballot 0 and writes one version after the other, its
 * own disk first; whoever wants to lead asks at a ballot of its own, and goes on from the latest state of a majority
 * as the first version of its ballot. The network is the set of all that was ever said: it may be heard once, often,
 * late, in any order or never. A vote is durable before it is answered, so a member's crash loses nothing but
 * messages; who wants to lead and dies is one that does not go on.
 *
 * A leader acts on what a majority has. Checked in every state that can be reached: whatever was acted on at one
 * ballot is behind the state from which each later ballot goes on.
 *
 * tests/unit/meta/model.sh runs it, and once with each BUG_ to see it fail. */
#define MEMBERS 3
#ifndef BALLOTS
#define BALLOTS 4 /* 0 and 3 are the first member's */
#endif
#ifndef VERSIONS
#define VERSIONS 2
#endif
#define AT(b, m) ((b) * MEMBERS + (m))
#define OWNER(b) ((b) % MEMBERS)
#define STATE(b, v) ((b) * VERSIONS + (v)) /* in their order; 0: none */

/* Said. */
bool asked[BALLOTS];
byte report[BALLOTS * MEMBERS]; /* a promise: what was kept then, + 1 */
byte has[BALLOTS * MEMBERS];    /* the version that each has taken; of the owner: that it has written */

/* The members, durable. leads: the ballot, + 1; 0: another does, as far as it knows. */
byte promised[MEMBERS], kept[MEMBERS], leads[MEMBERS];

byte base[BALLOTS]; /* from which it went on; 0: it has not */

#ifdef BUG_FREE /* goes on from its own state, whatever a majority has */
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
#ifdef BUG_OLD /* a state at a ballot below what was promised is taken */
#define LATE true
#else
#define LATE false
#endif
#ifdef BUG_STALE /* what it has written itself since it asked is not looked at */
#define STALE true
#else
#define STALE false
#endif
#ifdef BUG_TWICE /* what it has promised another since it asked is not looked at */
#define TWICE true
#else
#define TWICE false
#endif

/* Whatever the leader of b may have acted on is behind what later ones go on from. */
inline look (b)
{
    n = 0;
    for (k : 0 .. MEMBERS - 1) {
        if
        :: k != OWNER (b) && has[AT (b, k)] > n -> n = has[AT (b, k)]
        :: else -> skip
        fi
    }
    for (k : b + 1 .. BALLOTS - 1) {
        assert (n == 0 || base[k] == 0 || base[k] >= STATE (b, n))
    }
    n = 0;
    k = 0
}

inline look_all ()
{
    for (j : 0 .. BALLOTS - 1) {
        look (j)
    }
    j = 0
}

inline go_on (b)
{
    n = 0;
    best = kept[m] * (UNBOUND || !STALE);
    for (k : 0 .. MEMBERS - 1) {
        n = n + (report[AT (b, k)] != 0);
        if
        :: !UNBOUND && report[AT (b, k)] > best + 1 -> best = report[AT (b, k)] - 1
        :: else -> skip
        fi
    }
    if
    :: n >= ENOUGH ->
        base[b] = best;
        kept[m] = STATE (b, 1);
        has[AT (b, m)] = 1;
        leads[m] = b + 1;
        look_all ()
    :: else -> skip
    fi;
    n = 0;
    k = 0;
    best = 0
}

#define TAKE(b, v)                                                                                 \
    :: atomic { OWNER (b) != m && has[AT (b, OWNER (b))] >= v && kept[m] < STATE (b, v) &&         \
                (promised[m] <= b || LATE) ->                                                      \
        promised[m] = b;                                                                           \
        kept[m] = STATE (b, v);                                                                    \
        has[AT (b, m)] = v;                                                                        \
        leads[m] = 0;                                                                              \
        look (b) }

#define BALLOT(b)                                                                                  \
    :: atomic { OWNER (b) == m && b > 0 && !asked[b] && kept[m] && promised[m] < b ->              \
        asked[b] = true;                                                                           \
        promised[m] = b;                                                                           \
        report[AT (b, m)] = kept[m] + 1 }                                                          \
    :: atomic { OWNER (b) != m && asked[b] && !report[AT (b, m)] && promised[m] < b && !leads[m] -> \
        promised[m] = b;                                                                           \
        report[AT (b, m)] = kept[m] + 1 }                                                          \
    :: atomic { OWNER (b) == m && asked[b] && !base[b] && (promised[m] <= b || TWICE) -> go_on (b) } \
    :: atomic { leads[m] == b + 1 && has[AT (b, m)] < VERSIONS ->                                  \
        has[AT (b, m)] = has[AT (b, m)] + 1;                                                       \
        kept[m] = STATE (b, has[AT (b, m)]) }                                                      \
    TAKE (b, 1)                                                                                    \
    TAKE (b, 2)

proctype Member (byte m)
{
    byte n, k, j, best;

end:
    do
    BALLOT (0)
    BALLOT (1)
    BALLOT (2)
#if BALLOTS > 3
    BALLOT (3)
#endif
    :: atomic { leads[m] -> leads[m] = 0 } /* it hears that another leads */
    :: atomic { FORGETS && promised[m] -> promised[m] = 0 }
    od
}

init
{
    byte n;

    atomic {
        leads[0] = 1;
        kept[0] = STATE (0, 1);
        has[0] = 1;
        for (n : 0 .. MEMBERS - 1) {
            run Member (n)
        }
    }
}
