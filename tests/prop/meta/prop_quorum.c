/* What a group keeps of a job (meta/core/quorum.h) under messages that are lost, repeated and late, and members that
 * crash, from seeds: whatever a leader has acted on, which a majority has, is behind every state that anybody acts on
 * later; and once it is quiet somebody leads and acts.
 *
 *   prop_quorum [SEEDS [FIRST]] */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/core/quorum.h"

enum { LETTERS_MAX = 512, STATES_MAX = 4096 };

struct letter {
    bool answer, cast, granted;
    uint32_t from, to;
    uint64_t ballot, version;
    uint32_t state; /* cast; or of the answer to a question */
    struct vote vote;
};

/* A member: what it has on disk, and what it wants. */
struct member {
    struct vote vote;
    uint32_t state; /* 0: none */
    bool leader;    /* as far as it knows, itself; on disk */
    uint64_t has[QUORUM_MEMBERS_MAX];
    bool asks;
    struct inquiry inquiry;
    uint32_t best; /* the state that goes on, where it is newer than its own is then */
};

static struct {
    uint64_t seed, chance;
    uint32_t members;
    struct member member[QUORUM_MEMBERS_MAX];
    struct letter letter[LETTERS_MAX];
    uint32_t letters;
    uint32_t before[STATES_MAX], states; /* the state from which each was made */
    uint32_t acted;                      /* the latest that was acted on */
} w;

static uint64_t acts, takes, crashes;

static uint64_t below (uint64_t n)
{
    w.chance = w.chance * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (w.chance >> 33) % n;
}

static void fail (const char *what)
{
    printf ("seed %" PRIu64 ": %s\n", w.seed, what);
    exit (1);
}

static uint32_t state_after (uint32_t before)
{
    assert (w.states + 1 < STATES_MAX);
    w.before[++w.states] = before;
    return w.states;
}

static bool is_behind (uint32_t old, uint32_t state)
{
    while (state && state != old)
        state = w.before[state];
    return state == old;
}

static void act (uint32_t state)
{
    acts++;
    if (is_behind (w.acted, state))
        w.acted = state;
    else if (!is_behind (state, w.acted))
        fail ("acted on what does not know of what was acted on before");
}

static void post (const struct letter *letter)
{
    if (w.letters < LETTERS_MAX)
        w.letter[w.letters++] = *letter;
}

static void to_others (uint32_t self, struct letter letter)
{
    letter.from = self;
    for (letter.to = 0; letter.to < w.members; letter.to++)
        if (letter.to != self)
            post (&letter);
}

static void cast (uint32_t self)
{
    const struct member *m = &w.member[self];
    to_others (self, (struct letter){.cast = true,
                                     .ballot = m->vote.accepted,
                                     .version = m->vote.version,
                                     .state = m->state});
}

/* The next version, on its own disk first. */
static void write_state (uint32_t self, uint64_t ballot, uint32_t from)
{
    struct member *m = &w.member[self];
    if (m->vote.accepted != ballot)
        memset (m->has, 0, sizeof m->has);
    m->state = state_after (from);
    m->vote.accepted = ballot;
    if (m->vote.promised < ballot)
        m->vote.promised = ballot;
    m->vote.version++;
    m->leader = true;
    m->has[self] = m->vote.version;
    cast (self);
}

static void heard (uint32_t self, const struct letter *letter)
{
    struct member *m = &w.member[self];
    bool best;
    if (letter->cast) {
        if (!m->leader || letter->ballot != m->vote.accepted || !letter->granted)
            return;
        uint64_t before = quorum_version (m->has, w.members);
        if (letter->version > m->has[letter->from])
            m->has[letter->from] = letter->version;
        uint64_t now = quorum_version (m->has, w.members);
        uint32_t state = m->state;
        for (uint64_t v = m->vote.version; v > now; v--)
            state = w.before[state];
        if (now > before)
            act (state);
        return;
    }
    if (!m->asks)
        return;
    bool enough = inquiry_heard (&m->inquiry, letter->from, letter->ballot, letter->granted,
                                 &letter->vote, &best);
    if (best)
        m->best = letter->from == self ? 0 : letter->state;
    if (!enough || m->vote.promised > m->inquiry.ballot) /* to another since */
        return;
    takes++;
    m->asks = false;
    if (m->best && vote_newer (&m->inquiry.best, &m->vote)) {
        m->vote.version = m->inquiry.best.version;
        m->state = m->best;
    }
    write_state (self, m->inquiry.ballot, m->state);
}

static void ask (uint32_t self, bool again)
{
    struct member *m = &w.member[self];
    if (!m->state)
        return;
    if (again && m->asks)
        inquiry_again (&m->inquiry);
    else
        inquiry_begin (&m->inquiry, w.members, self, &m->vote);
    m->asks = true;
    m->best = 0;
    struct letter letter = {.from = self, .to = self, .ballot = m->inquiry.ballot};
    if (!vote_take (&m->vote, letter.ballot, false, 0))
        return;
    struct letter own = letter;
    own.answer = own.granted = true;
    own.vote = m->vote;
    own.state = m->state;
    heard (self, &own);
    to_others (self, letter);
}

static void answer (const struct letter *letter)
{
    struct member *m = &w.member[letter->to];
    struct letter back = *letter;
    struct vote before = m->vote;
    back.answer = true;
    back.from = letter->to;
    back.to = letter->from;
    /* Who leads promises nobody. */
    back.granted = (letter->cast || !m->leader) &&
                   vote_take (&m->vote, letter->ballot, letter->cast, letter->version);
    if (back.granted && letter->cast && vote_newer (&m->vote, &before)) {
        m->state = letter->state;
        m->leader = m->asks = false;
    }
    back.vote = m->vote;
    if (!letter->cast)
        back.state = m->state;
    post (&back);
}

static void deliver (uint32_t at)
{
    struct letter letter = w.letter[at];
    if (below (100) < 85) /* else it comes again */
        w.letter[at] = w.letter[--w.letters];
    if (letter.answer)
        heard (letter.to, &letter);
    else
        answer (&letter);
}

static void crash (struct member *m)
{
    crashes++;
    m->asks = false;
    memset (m->has, 0, sizeof m->has);
    m->has[m - w.member] = m->vote.version;
}

static void something (void)
{
    uint64_t what = below (100);
    uint32_t self = (uint32_t)below (w.members);
    struct member *m = &w.member[self];
    if (what < 65 && w.letters) {
        deliver ((uint32_t)below (w.letters));
    } else if (what < 72 && w.letters) {
        w.letter[below (w.letters)] = w.letter[w.letters - 1]; /* lost */
        w.letters--;
    } else if (what < 82 && m->leader) {
        write_state (self, m->vote.accepted, m->state);
    } else if (what < 86 && m->leader) {
        cast (self);
    } else if (what < 90) {
        crash (m);
    } else if (what < 94) {
        ask (self, below (2));
    } else if (what < 96) {
        m->leader = false; /* it heard that another leads */
    }
}

static void world (uint64_t seed)
{
    memset (&w, 0, sizeof w);
    w.seed = seed;
    w.chance = seed * UINT64_C (0x9E3779B97F4A7C15);
    w.members = 3 + 2 * (uint32_t)below (3);
    write_state (0, ballot_first (0), 0);
    for (uint32_t i = (uint32_t)below (600); i > 0; i--)
        something ();
    /* Quiet: one that asks, and all that it asks. */
    w.letters = 0;
    uint32_t last = (uint32_t)below (w.members), acted = w.acted;
    for (uint32_t i = 0; i < w.members; i++)
        w.member[i].leader = w.member[i].asks = false;
    if (!w.member[last].state)
        last = 0; /* who submitted it has it */
    for (int rounds = 0; rounds < 3 && w.acted == acted; rounds++) {
        ask (last, true);
        while (w.letters)
            deliver (w.letters - 1);
    }
    if (w.acted == acted)
        fail ("all is quiet, and nobody acts");
}

int main (int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull (argv[1], NULL, 10) : 20000;
    uint64_t first = argc > 2 ? strtoull (argv[2], NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        world (seed);
    printf ("%" PRIu64 " worlds: %" PRIu64 " states acted on, %" PRIu64
            " times taken over, %" PRIu64 " crashes\n",
            seeds, acts, takes, crashes);
    return acts && takes && crashes ? 0 : 1;
}
