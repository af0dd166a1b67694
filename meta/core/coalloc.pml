/* The co-allocation protocol as a model for spin: one coordinator, SITES sites, TRIES transactions.
 *
 * What coalloc.c and the sites' side (local/svc/coalloc) do, without dates: every time-out may come
 * at any moment, a lease may end at any moment. The network is the set of all that was ever sent:
 * what is in it may be delivered once, often, late, in any order, or never. A state is durable
 * before anything is sent, so a crash of the coordinator may come between any two steps and loses
 * what was not yet sent; a site's crash loses nothing but messages.
 *
 * With -DREPAIR there is one site more; once, after COMMIT, one site loses what is firm or cannot start it, and
 * that component goes there while the others stay.
 *
 * Checked in every state that can be reached: nothing starts unless every component was firm; while
 * nobody gave up, every one still is; a site never holds for two transactions. Where nothing can
 * happen any more: nothing is held, and all components ran or none.
 *
 * tests/unit/meta/model.sh runs it, and once with each BUG_ to see it fail. */
#ifndef SITES
#define SITES 2
#endif
#ifndef TRIES
#define TRIES 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2 /* of PREPARE for one component within a transaction */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#ifdef REPAIR /* one more site, which may take any one component after COMMIT */
#define PLACES (SITES + 1)
#define LOSSES 1
#else
#define PLACES SITES
#define LOSSES 0
#endif
#define SPARE SITES

#define AT(t, i) ((t) * PLACES + (i))
#define NTH(t, a, i) (((t) * ATTEMPTS + (a)) * PLACES + (i))
#define PER_PART (TRIES * PLACES)
#define PER_ATTEMPT (TRIES * ATTEMPTS * PLACES)

mtype = { UNKNOWN, HELD, EXPIRED, FIRM, RUNNING, OVER, GONE };             /* at a site */
mtype = { PREPARE, DECIDE, COMMIT, READY, START, LIVE, UNDO, ENDED };      /* the group */
mtype = { PREPARING, PREPARED, COMMITTING, WAITING, STANDING, STARTING, STARTED, ABORTING, RELEASING,
          UNDONE, GIVING_BACK };                                           /* a component */
mtype = { NOTHING, SAID_COMMIT, SAID_ABORT };                              /* the decision log */

/* The network: requests, then answers. */
bool prepare[PER_ATTEMPT], commit[PER_ATTEMPT], abort[PER_PART], ready[PER_PART], start[PER_PART],
    release[PER_PART];
bool yes[PER_ATTEMPT], no[PER_ATTEMPT], firm[PER_ATTEMPT], expired[PER_ATTEMPT], aborted[PER_PART],
    is_firm[PER_PART], is_ready[PER_PART], started[PER_PART], released[PER_PART];

/* The sites, durable. */
mtype site[PER_PART] = UNKNOWN;
byte held_attempt[PER_PART];
bool was_firm[PER_PART], ran[PER_PART];

/* The coordinator, durable. */
mtype phase = PREPARE;
mtype part[SITES] = PREPARING;
byte attempt[SITES];
byte try;
byte place[SITES];       /* where it is: its own site, or the spare one */
bool unable[PER_PART];   /* the site says that it is firm and cannot be started there */
bool taken[PER_PART];    /* … or that it has lost it */
byte losses;
bool decided, last, gave_up; /* gave_up: cancelled or a no-show after START left */
mtype log[TRIES] = NOTHING;
mtype proposal = SAID_COMMIT;
byte crashes;
bool cancelled;

#ifdef BUG_EARLY /* START with the first that is firm */
#define EARLY true
#else
#define EARLY false
#endif
#ifdef BUG_LEASE /* a lease ends what is firm */
#define FRAGILE true
#else
#define FRAGILE false
#endif
#ifdef BUG_UNDECIDED /* one that comes back does not ask the log, and takes "it is firm" for an answer */
#define UNASKED true
#else
#define UNASKED false
#endif
#ifdef BUG_KEPT /* what cannot be started there is not given back */
#define KEPT true
#else
#define KEPT false
#endif
#ifdef BUG_ROOM /* a site does not look at what it has promised */
#define BLIND true
#else
#define BLIND false
#endif

inline set_all (what)
{
    for (n : 0 .. SITES - 1) {
        part[n] = what
    }
    n = 0
}

inline see_all (what)
{
    all = true;
    for (n : 0 .. SITES - 1) {
        all = all && part[n] == what
    }
    n = 0
}
#define IF_ALL(what, then)                                                                         \
    see_all (what);                                                                                \
    if                                                                                             \
    :: all -> then                                                                                 \
    :: else -> skip                                                                                \
    fi;                                                                                            \
    all = false

inline undo (for_good)
{
    last = last || for_good;
    phase = UNDO;
    for (n : 0 .. SITES - 1) {
        part[n] = (decided -> RELEASING : ABORTING)
    }
    n = 0
}

inline undo_finish ()
{
    see_all (UNDONE);
    if
    :: all && !last && try + 1 < TRIES ->
        try++;
        decided = false;
        proposal = SAID_COMMIT;
        phase = PREPARE;
        set_all (PREPARING);
        for (n : 0 .. SITES - 1) {
            attempt[n] = 0;
            place[n] = n
        }
        n = 0
    :: all && (last || try + 1 == TRIES) -> phase = ENDED
    :: !all -> skip
    fi;
    all = false
}

/* The group is as after COMMIT again. */
inline others_wait ()
{
    phase = COMMIT;
    for (n : 0 .. SITES - 1) {
        if
        :: part[n] == STANDING -> part[n] = WAITING
        :: else -> skip
        fi
    }
    n = 0
}

inline move (i)
{
    place[i] = SPARE;
    attempt[i] = 0;
    part[i] = PREPARING
}

/* What the component i awaits is sent (again). */
#define SEND(i)                                                                                    \
    :: atomic { part[i] == PREPARING && (phase == PREPARE || phase == COMMIT) &&                   \
                    !prepare[NTH (try, attempt[i], place[i])] ->                                          \
        prepare[NTH (try, attempt[i], place[i])] = true }                                                 \
    :: atomic { part[i] == COMMITTING && !commit[NTH (try, attempt[i], place[i])] ->                      \
        commit[NTH (try, attempt[i], place[i])] = true }                                                  \
    :: atomic { part[i] == WAITING && phase == READY && !ready[AT (try, place[i])] ->                     \
        ready[AT (try, place[i])] = true }                                                                \
    :: atomic { part[i] == STARTING && !start[AT (try, place[i])] -> start[AT (try, place[i])] = true }          \
    :: atomic { part[i] == ABORTING && !abort[AT (try, place[i])] -> abort[AT (try, place[i])] = true }          \
    :: atomic { (part[i] == RELEASING || part[i] == GIVING_BACK) && !release[AT (try, place[i])] ->            \
        release[AT (try, place[i])] = true }

#define ANSWER(i)                                                                                  \
    :: atomic { phase == PREPARE && part[i] == PREPARING && yes[NTH (try, attempt[i], place[i])] ->       \
        part[i] = PREPARED;                                                                        \
        IF_ALL (PREPARED, phase = DECIDE) }                                                        \
    :: atomic { phase == PREPARE && part[i] == PREPARING && no[NTH (try, attempt[i], place[i])] ->        \
        undo (false) }                                                                             \
    :: atomic { phase == COMMIT && part[i] == PREPARING && yes[NTH (try, attempt[i], place[i])] ->        \
        part[i] = COMMITTING }                                                                     \
    :: atomic { phase == COMMIT && part[i] == PREPARING && no[NTH (try, attempt[i], place[i])] ->         \
        undo (false) }                                                                             \
    :: atomic { phase == COMMIT && part[i] == COMMITTING && firm[NTH (try, attempt[i], place[i])] ->      \
        part[i] = WAITING;                                                                         \
        if                                                                                         \
        :: EARLY -> phase = START; set_all (STARTING)                                              \
        :: !EARLY -> IF_ALL (WAITING, phase = READY)                                               \
        fi }                                                                                       \
    :: atomic { phase == COMMIT && part[i] == COMMITTING && expired[NTH (try, attempt[i], place[i])] ->   \
        if                                                                                         \
        :: attempt[i] + 1 < ATTEMPTS -> attempt[i]++; part[i] = PREPARING                          \
        :: else -> undo (false)                                                                    \
        fi }                                                                                       \
    /* Repair: what was taken away, or is given back first, is prepared elsewhere. */            \
    :: atomic { (phase == COMMIT || phase == READY) && taken[AT (try, place[i])] && place[i] != SPARE &&     \
                    (part[i] == COMMITTING || part[i] == WAITING || part[i] == STANDING) ->        \
        others_wait ();                                                                            \
        move (i) }                                                                                 \
    :: atomic { phase == READY && part[i] == WAITING && unable[AT (try, place[i])] && place[i] != SPARE ->   \
        others_wait ();                                                                            \
        if                                                                                         \
        :: KEPT -> move (i)                                                                        \
        :: !KEPT -> part[i] = GIVING_BACK                                                          \
        fi }                                                                                       \
    :: atomic { phase == COMMIT && part[i] == GIVING_BACK && released[AT (try, place[i])] -> move (i) } \
    :: atomic { phase == READY && part[i] == WAITING && is_ready[AT (try, place[i])] ->                   \
        part[i] = STANDING;                                                                        \
        IF_ALL (STANDING, phase = START; set_all (STARTING)) }                                     \
    :: atomic { phase == START && part[i] == STARTING && started[AT (try, place[i])] ->                   \
        part[i] = STARTED;                                                                         \
        IF_ALL (STARTED, phase = LIVE) }                                                           \
    :: atomic { phase == UNDO && part[i] == ABORTING && is_firm[AT (try, place[i])] ->                    \
        if                                                                                         \
        :: UNASKED -> part[i] = UNDONE; undo_finish ()                                             \
        :: !UNASKED -> part[i] = RELEASING                                                         \
        fi }                                                                                       \
    :: atomic { phase == UNDO && part[i] == ABORTING && aborted[AT (try, place[i])] ->                    \
        part[i] = UNDONE; undo_finish () }                                                         \
    :: atomic { phase == UNDO && part[i] == RELEASING && released[AT (try, place[i])] ->                  \
        part[i] = UNDONE; undo_finish () }                                                         \
    /* Nobody need be asked whose lease has ended. */                                              \
    :: atomic { phase == UNDO && part[i] == ABORTING && site[AT (try, place[i])] != HELD &&               \
                    site[AT (try, place[i])] != FIRM ->                                                   \
        part[i] = UNDONE; undo_finish () }

proctype Coordinator ()
{
    byte n;
    bool all;

end:
    do
    SEND (0)
    SEND (1)
    ANSWER (0)
    ANSWER (1)
#if SITES > 2
    SEND (2)
    ANSWER (2)
#endif
    /* The log takes the first proposal; its answer rules. */
    :: atomic { phase == DECIDE ->
        if
        :: log[try] == NOTHING -> log[try] = proposal
        :: else -> skip
        fi;
        if
        :: log[try] == SAID_COMMIT -> decided = true; phase = COMMIT; set_all (COMMITTING)
        :: else -> undo (false)
        fi }
    /* It recorded the decision and died before it knew. */
    :: atomic { phase == DECIDE && log[try] == NOTHING && crashes < CRASHES ->
        log[try] = proposal; crashes++; proposal = SAID_ABORT }
    /* Patience ends: PREPARE unanswered, leases too short, COMMIT or barrier late. */
    :: atomic { phase == PREPARE || phase == COMMIT || phase == READY -> undo (false) }
    :: atomic { phase == START -> gave_up = true; undo (true) }
    :: atomic { !cancelled && phase != DECIDE && phase != ENDED ->
        cancelled = true;
        if
        :: phase == UNDO -> last = true
        :: phase == START || phase == LIVE -> gave_up = true; undo (true)
        :: else -> undo (true)
        fi }
    :: atomic { crashes < CRASHES && phase != ENDED ->
        crashes++;
        if
        :: phase == PREPARE || phase == DECIDE -> phase = DECIDE; proposal = SAID_ABORT
        :: phase == COMMIT && UNASKED -> decided = false; undo (false)
        :: phase == READY -> set_all (WAITING)
        :: else -> skip
        fi }
    od
}

inline starts_check (t)
{
    for (n : 0 .. SITES - 1) {
        assert (was_firm[AT (t, place[n])]);
        assert (gave_up || site[AT (t, place[n])] == FIRM || site[AT (t, place[n])] == RUNNING ||
                site[AT (t, place[n])] == OVER)
    }
    n = 0
}

inline holds_check (i)
{
    k = 0;
    for (n : 0 .. TRIES - 1) {
        k = k + (site[AT (n, i)] == HELD || site[AT (n, i)] == FIRM || site[AT (n, i)] == RUNNING)
    }
    assert (k <= 1);
    n = 0;
    k = 0
}

inline is_free (i, t)
{
    all = true;
    for (n : 0 .. TRIES - 1) {
        all = all && (BLIND || n == t ||
                      !(site[AT (n, i)] == HELD || site[AT (n, i)] == FIRM ||
                        site[AT (n, i)] == RUNNING))
    }
    n = 0
}

/* PREPARE: yes if there is room, or no; not again what was answered; a tombstone wins. */
inline on_prepare (i, t, a)
{
    is_free (i, t);
    if
    :: all && (site[AT (t, i)] == UNKNOWN ||
               (site[AT (t, i)] == EXPIRED && a > held_attempt[AT (t, i)])) ->
        site[AT (t, i)] = HELD;
        held_attempt[AT (t, i)] = a;
        yes[NTH (t, a, i)] = true
    :: no[NTH (t, a, i)] = true
    fi;
    all = false;
    holds_check (i)
}

inline on_commit (i, t, a)
{
    if
    :: site[AT (t, i)] == HELD && held_attempt[AT (t, i)] == a ->
        site[AT (t, i)] = FIRM;
        was_firm[AT (t, i)] = true;
        firm[NTH (t, a, i)] = true
    :: else -> expired[NTH (t, a, i)] = true
    fi
}

#define ATTEMPT(i, t, a)                                                                           \
    :: atomic { prepare[NTH (t, a, i)] && !yes[NTH (t, a, i)] && !no[NTH (t, a, i)] ->             \
        on_prepare (i, t, a) }                                                                     \
    :: atomic { commit[NTH (t, a, i)] && !firm[NTH (t, a, i)] && !expired[NTH (t, a, i)] ->        \
        on_commit (i, t, a) }

#define TRANSACTION(i, t)                                                                          \
    /* The lease ends. */                                                                          \
    :: atomic { site[AT (t, i)] == HELD || (FRAGILE && site[AT (t, i)] == FIRM) ->                 \
        site[AT (t, i)] = EXPIRED }                                                                \
    :: atomic { abort[AT (t, i)] && !aborted[AT (t, i)] && !is_firm[AT (t, i)] ->                  \
        if                                                                                         \
        :: site[AT (t, i)] == FIRM || site[AT (t, i)] == RUNNING -> is_firm[AT (t, i)] = true      \
        :: else -> site[AT (t, i)] = GONE; aborted[AT (t, i)] = true                               \
        fi }                                                                                       \
    :: atomic { ready[AT (t, i)] && !is_ready[AT (t, i)] && !unable[AT (t, i)] &&                  \
                    site[AT (t, i)] == FIRM ->                                                     \
        is_ready[AT (t, i)] = true }                                                               \
    /* A node is lost, or all that was reserved, before it has said that it is ready. */           \
    :: atomic { i != SPARE && losses < LOSSES && site[AT (t, i)] == FIRM && !is_ready[AT (t, i)] -> \
        losses++;                                                                                  \
        if                                                                                         \
        :: unable[AT (t, i)] = true                                                                \
        :: taken[AT (t, i)] = true; site[AT (t, i)] = GONE                                         \
        fi }                                                               \
    :: atomic { start[AT (t, i)] && site[AT (t, i)] == FIRM ->                                     \
        starts_check (t);                                                                          \
        site[AT (t, i)] = RUNNING;                                                                 \
        ran[AT (t, i)] = true;                                                                     \
        started[AT (t, i)] = true }                                                                \
    /* Its job ends. */                                                                            \
    :: atomic { site[AT (t, i)] == RUNNING -> site[AT (t, i)] = OVER }                             \
    :: atomic { release[AT (t, i)] && !released[AT (t, i)] ->                                      \
        site[AT (t, i)] = (site[AT (t, i)] == RUNNING || site[AT (t, i)] == OVER -> OVER : GONE);  \
        released[AT (t, i)] = true }

proctype Site (byte me)
{
    byte n, k;
    bool all;

end:
    do
    TRANSACTION (me, 0)
    ATTEMPT (me, 0, 0)
#if ATTEMPTS > 1
    ATTEMPT (me, 0, 1)
#endif
#if TRIES > 1
    TRANSACTION (me, 1)
    ATTEMPT (me, 1, 0)
#if ATTEMPTS > 1
    ATTEMPT (me, 1, 1)
#endif
#endif
    od
}

/* When nothing can happen any more. */
proctype Monitor ()
{
    byte n, t, k;

    atomic {
        timeout;
        assert (phase == ENDED || phase == LIVE);
        for (t : 0 .. TRIES - 1) {
            k = 0;
            for (n : 0 .. PLACES - 1) {
                assert (site[AT (t, n)] != HELD && site[AT (t, n)] != FIRM &&
                        site[AT (t, n)] != RUNNING);
                k = k + ran[AT (t, n)]
            }
            assert (k == 0 || k == SITES || gave_up)
        }
    }
}

init
{
    byte n;

    atomic {
        for (n : 0 .. SITES - 1) {
            place[n] = n
        }
        for (n : 0 .. PLACES - 1) {
            run Site (n)
        }
        run Coordinator ();
        run Monitor ()
    }
}
