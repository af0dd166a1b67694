/* prop_licence: the grid's licences against counting instant by instant, and a metascheduler that books,
 * lets go, overruns and forgets all that it had not written. Seeds; a failing one is printed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/core/licence.h"

enum { JOBS = 24, KINDS = 3, SPAN = 60, STARTS = 64 };

static uint64_t state, seed;

static uint32_t below (uint32_t n)
{
    state = state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (uint32_t)((state >> 33) % n);
}

#define CHECK(what, ...)                                                                           \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf (stderr, "prop_licence: seed %" PRIu64 ": ", seed);                            \
            fprintf (stderr, __VA_ARGS__);                                                         \
            fprintf (stderr, "\n");                                                                \
            exit (1);                                                                              \
        }                                                                                          \
    } while (0)

static uint64_t booked_at (const struct licence_booking *b, uint32_t count, uint32_t licence,
                           uint64_t except, time_us at, bool others)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (b[i].licence == licence && (!except || b[i].owner != except) && b[i].begin <= at &&
            at < b[i].end && (others || !b[i].other))
            sum += b[i].count;
    return sum;
}

static bool inside (const struct choose_interval *v, uint32_t count, time_us at)
{
    for (uint32_t i = 0; i < count; i++)
        if (v[i].begin <= at && at <= v[i].end)
            return true;
    return false;
}

/* Each moment of the window is offered exactly where the licence is there throughout. */
static void against_counting (void)
{
    struct licence_booking b[JOBS];
    struct licence_change scratch[2 * JOBS];
    struct choose_interval out[STARTS], both[STARTS];
    struct licence_step step[2 * JOBS + 1];
    uint32_t count = below (JOBS + 1);
    for (uint32_t i = 0; i < count; i++) {
        time_us begin = (time_us)below (SPAN) - 10;
        b[i] = (struct licence_booking){below (KINDS),      1 + below (4), begin,
                                        begin + below (20), 1 + below (8), below (2),
                                        below (4) == 0};
    }
    struct licence_need need = {below (KINDS), 1 + below (6), 1 + below (12)};
    duration_us walltime = 1 + below (15);
    uint64_t except = below (3) ? 0 : 1 + below (8);
    time_us from = below (10), until = from + below (SPAN);
    uint32_t n =
        licence_starts (b, count, except, &need, walltime, from, until, scratch, out, STARTS);
    for (uint32_t i = 1; i < n; i++)
        CHECK (out[i - 1].end < out[i].begin, "intervals overlap or are out of order");
    for (time_us s = from - 2; s <= until + 2; s++) {
        bool free = s >= from && s <= until;
        for (time_us t = s; t < s + walltime && free; t++)
            free = booked_at (b, count, need.licence, except, t, true) + need.count <= need.total;
        CHECK (inside (out, n, s) == free, "a start at %lld is %s", (long long)s,
               free ? "not offered" : "offered");
    }
    struct choose_interval window[2] = {{from, from + 5}, {from + 9, until}};
    uint32_t m = licence_both (out, n, window, 2, both, STARTS);
    for (time_us s = from; s <= until; s++)
        CHECK (inside (both, m, s) == (inside (out, n, s) && inside (window, 2, s)),
               "intersection at %lld", (long long)s);
    uint32_t steps = licence_steps (b, count, need.licence, from, scratch, step, 2 * JOBS + 1);
    for (uint32_t i = 0; i < steps; i++)
        for (time_us t = step[i].from; t < (i + 1 < steps ? step[i + 1].from : step[i].from + SPAN);
             t++)
            CHECK (booked_at (b, count, need.licence, 0, t, false) == step[i].booked,
                   "step at %lld", (long long)t);
}

/* ---- a life of jobs */

enum life { FREE, BOOKED, GOING };

struct known { /* by the metascheduler */
    enum life life;
    struct licence_booking booking;
    duration_us walltime;
};

struct job {
    struct known memory, disk;
    bool sent;    /* START is on its way, or has come: it may be running at any moment */
    bool running; /* at its site */
    bool over;    /* and its end was not heard of yet */
    time_us end;
};

static uint32_t list (const struct job *job, time_us now, struct licence_booking *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        if (job[i].memory.life == FREE)
            continue;
        out[n] = job[i].memory.booking;
        out[n++].end = licence_end (job[i].memory.booking.begin, job[i].memory.walltime, now);
    }
    return n;
}

static void never_over_used (const struct job *job, const uint32_t *total)
{
    uint64_t used[KINDS] = {0};
    for (uint32_t i = 0; i < JOBS; i++)
        if (job[i].running)
            used[job[i].disk.booking.licence] += job[i].disk.booking.count;
    for (uint32_t k = 0; k < KINDS; k++)
        CHECK (used[k] <= total[k], "%" PRIu64 " of %u in use", used[k], total[k]);
}

static void book (struct job *job, uint32_t i, const uint32_t *total, time_us now)
{
    struct licence_booking b[JOBS];
    struct licence_change scratch[2 * JOBS];
    struct choose_interval out[1];
    uint32_t kind = below (KINDS), count = list (job, now, b);
    struct licence_need need = {kind, 1 + below (total[kind]), total[kind]};
    duration_us walltime = (1 + below (30)) * US_PER_S;
    if (!licence_starts (b, count, 0, &need, walltime, now, now + 3600 * US_PER_S, scratch, out, 1))
        return;
    job[i].memory =
        (struct known){BOOKED, {kind, need.count, out[0].begin, 0, i + 1, false, false}, walltime};
}

/* What the plan says is not asked again; only whether it fits now. */
static void let_go (struct job *job, uint32_t i, const uint32_t *total, time_us now)
{
    struct licence_booking b[JOBS];
    struct known *known = &job[i].memory;
    struct licence_need need = {known->booking.licence, known->booking.count,
                                total[known->booking.licence]};
    uint32_t count = list (job, now, b);
    if (now < known->booking.begin || !licence_fits (b, count, i + 1, &need))
        return;
    known->life = GOING;
    known->booking.let_go = true;
    known->booking.begin = now;
}

/* One thing happens to a job; the metascheduler writes what it knows before it sends anything, and may be
 * killed before or after it has written. */
static void turn (struct job *job, uint32_t i, const uint32_t *total, time_us now)
{
    struct job *j = &job[i];
    bool killed = below (30) == 0;
    if (j->running && now >= j->end) {
        j->running = false;
        j->over = true;
    } else if (j->sent && below (3) == 0) { /* early or late, and for longer than it said */
        j->sent = false;
        j->running = true;
        j->end = now + (duration_us)below (2 * (uint32_t)(j->disk.walltime / US_PER_S)) * US_PER_S;
    }
    switch (j->memory.life) {
    case FREE:
        book (job, i, total, now);
        break;
    case BOOKED:
        if (below (20) == 0)
            j->memory.life = FREE; /* cancelled: no START has left */
        else
            let_go (job, i, total, now);
        break;
    case GOING:
        if (j->over) /* and now it is known */
            j->memory.life = FREE;
        else if (!j->sent && !j->running)
            j->sent = true; /* again: after a crash nobody knows whether it was */
        break;
    }
    if (killed && below (2))
        for (uint32_t k = 0; k < JOBS; k++)
            job[k].memory = job[k].disk;
    j->disk = j->memory;
    j->over = j->over && j->disk.life != FREE;
    if (killed)
        for (uint32_t k = 0; k < JOBS; k++)
            job[k].memory = job[k].disk;
    else if (j->disk.life == GOING && !j->running && !j->over)
        j->sent = true;
}

static void life (uint32_t turns)
{
    struct job job[JOBS] = {0};
    uint32_t total[KINDS], ran = 0;
    time_us now = 1000 * US_PER_S;
    for (uint32_t k = 0; k < KINDS; k++)
        total[k] = 1 + below (10);
    for (uint32_t t = 0; t < turns; t++, now += below (3000) * 1000) {
        turn (job, below (JOBS), total, now);
        never_over_used (job, total);
        for (uint32_t i = 0; i < JOBS; i++)
            ran += job[i].running;
    }
    CHECK (ran, "nothing ran");
}

int main (int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull (argv[1], NULL, 10) : 2000;
    uint64_t first = argc > 2 ? strtoull (argv[2], NULL, 10) : 1;
    for (seed = first; seed < first + seeds; seed++) {
        state = seed * UINT64_C (0x9e3779b97f4a7c15);
        for (int i = 0; i < 20; i++)
            against_counting ();
        life (2000);
    }
    printf ("%" PRIu64 " seeds\n", seeds);
    return 0;
}
