/* The decision of a group (meta/core/quorum.h) under messages that are lost, repeated and late, and
 * members that crash, from seeds: never two decisions for one transaction; only what was proposed, and
 * COMMIT only if the owner has cast it; and once it is quiet somebody's proposal comes to an end.
 *
 *   prop_quorum [SEEDS [FIRST]] */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/core/quorum.h"

enum { LETTERS_MAX = 512, BALLOTS_MAX = 4096 };

struct letter {
    bool answer, cast;
    uint32_t from, to;
    uint64_t ballot;
    enum decision decision;
    struct vote_answer said;
};

/* What was voted for at a ballot, and by whom. */
struct tally {
    uint32_t members;
    enum decision decision;
};

static struct {
    uint64_t seed, chance;
    uint32_t members;
    struct vote vote[QUORUM_MEMBERS_MAX]; /* durable */
    struct proposer proposer[QUORUM_MEMBERS_MAX];
    bool proposes[QUORUM_MEMBERS_MAX];
    struct letter letter[LETTERS_MAX];
    uint32_t letters;
    struct tally tally[BALLOTS_MAX];
    bool owner_cast, decided;
    enum decision decision;
} w;

static uint64_t commits, aborts, silent;

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

static uint32_t count (uint32_t bits)
{
    uint32_t n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

static void decided (enum decision decision)
{
    if (w.decided && w.decision != decision)
        fail ("two decisions");
    if (decision == DECISION_COMMIT && !w.owner_cast)
        fail ("COMMIT, and the owner never said so");
    w.decided = true;
    w.decision = decision;
}

static struct vote_answer vote (uint32_t member, uint64_t ballot, bool cast,
                                enum decision decision)
{
    struct vote_answer said = vote_take (&w.vote[member], ballot, cast, decision);
    if (cast && said.granted) {
        assert (ballot < BALLOTS_MAX);
        struct tally *tally = &w.tally[ballot];
        if (tally->members && tally->decision != decision)
            fail ("one ballot, two votes");
        tally->members |= 1u << member;
        tally->decision = decision;
        if (count (tally->members) > w.members / 2)
            decided (decision);
    }
    return said;
}

static void post (const struct letter *letter)
{
    if (w.letters < LETTERS_MAX)
        w.letter[w.letters++] = *letter;
}

static void go_on (uint32_t member);

static void heard (uint32_t member, const struct letter *letter)
{
    if (w.proposes[member] &&
        proposer_heard (&w.proposer[member], letter->from, letter->ballot, letter->cast,
                        &letter->said))
        go_on (member);
}

/* Its own vote first, as decide.c does. */
static void stage_begin (uint32_t member)
{
    const struct proposer *p = &w.proposer[member];
    struct letter letter = {.cast = p->stage == PROPOSER_CASTING, .from = member,
                            .ballot = p->ballot, .decision = p->decision};
    struct letter own = letter;
    own.answer = true;
    own.said = vote (member, letter.ballot, letter.cast, letter.decision);
    for (letter.to = 0; own.said.granted && letter.to < w.members; letter.to++)
        if (letter.to != member)
            post (&letter);
    heard (member, &own);
}

static void go_on (uint32_t member)
{
    if (w.proposer[member].stage == PROPOSER_DECIDED) {
        decided (w.proposer[member].decision);
        w.proposes[member] = false;
    } else if (w.proposer[member].stage == PROPOSER_CASTING) {
        stage_begin (member);
    } else {
        w.proposes[member] = false;
    }
}

static void deliver (uint32_t at)
{
    struct letter letter = w.letter[at];
    if (below (100) < 85) /* else it comes again */
        w.letter[at] = w.letter[--w.letters];
    if (letter.answer) {
        heard (letter.to, &letter);
        return;
    }
    struct letter back = letter;
    back.answer = true;
    back.from = letter.to;
    back.to = letter.from;
    back.said = vote (letter.to, letter.ballot, letter.cast, letter.decision);
    post (&back);
}

static void propose (uint32_t member)
{
    if (w.proposes[member]) {
        proposer_again (&w.proposer[member]);
    } else {
        proposer_later (&w.proposer[member], w.members, member, &w.vote[member], DECISION_ABORT);
        w.proposes[member] = true;
    }
    stage_begin (member);
}

static void something (void)
{
    uint64_t what = below (100);
    uint32_t member = (uint32_t)below (w.members);
    if (what < 70 && w.letters) {
        deliver ((uint32_t)below (w.letters));
    } else if (what < 80 && w.letters) {
        w.letter[below (w.letters)] = w.letter[w.letters - 1]; /* lost */
        w.letters--;
    } else if (what < 88) {
        w.proposes[member] = false; /* it dies, and comes back without what it wanted */
    } else if (what < 92) {
        propose (member);
    }
}

static void world (uint64_t seed)
{
    memset (&w, 0, sizeof w);
    w.seed = seed;
    w.chance = seed * UINT64_C (0x9E3779B97F4A7C15);
    w.members = 3 + 2 * (uint32_t)below (3);
    uint32_t before = (uint32_t)below (4); /* somebody may be quicker than the owner */
    for (uint32_t i = 0; i < before; i++)
        something ();
    if (below (10) && !w.vote[0].promised) {
        w.owner_cast = true;
        w.proposes[0] = true;
        proposer_first (&w.proposer[0], w.members, 0, DECISION_COMMIT);
        stage_begin (0);
    }
    for (uint32_t i = (uint32_t)below (400); i > 0; i--)
        something ();
    if (!w.decided)
        silent++;
    /* Quiet: one that asks, and all that it asks. */
    w.letters = 0;
    uint32_t last = (uint32_t)below (w.members);
    for (int rounds = 0; rounds < 3; rounds++) {
        propose (last);
        while (w.letters)
            deliver (w.letters - 1);
        if (!w.proposes[last])
            break;
    }
    if (w.proposes[last] || !w.decided)
        fail ("all is quiet, and nothing is decided");
    commits += w.decision == DECISION_COMMIT;
    aborts += w.decision == DECISION_ABORT;
    /* What is over stays silent. */
    w.vote[last].over = true;
    if (vote_take (&w.vote[last], ballot_above (w.vote[last].promised, 1), false, DECISION_ABORT)
            .granted)
        fail ("a promise for what is over");
}

int main (int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull (argv[1], NULL, 10) : 20000;
    uint64_t first = argc > 2 ? strtoull (argv[2], NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        world (seed);
    printf ("%" PRIu64 " worlds: %" PRIu64 " commit, %" PRIu64 " abort, %" PRIu64
            " undecided before it was quiet\n",
            seeds, commits, aborts, silent);
    return commits && aborts && silent ? 0 : 1;
}
