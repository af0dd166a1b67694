#include "tests/grid/workers.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/grid/coverage.h"

enum { LISTED_MAX = 1000, HANGS_S = 600, TELL_S = 60 };

/* What the processes share. */
struct shared {
    _Atomic uint64_t next, done;
    struct {
        _Atomic uint64_t seed; /* that it works on; 0: none */
        _Atomic time_t since;
    } worker[WORKERS_MAX];
};

struct failure {
    uint64_t seed;
    char how[48];
};

struct pool {
    struct shared *shared;
    uint64_t first, seeds;
    pid_t pid[WORKERS_MAX]; /* 0: it has ended */
    bool hung[WORKERS_MAX];
    struct failure *failure;
    uint64_t failures;
    void (*begin) (uint32_t process);
    void (*world) (uint64_t seed);
    void (*end) (void);
};

/* The simulated worlds have clock_gettime () for themselves. */
static time_t now_s (void)
{
    struct timespec now;
    timespec_get (&now, TIME_UTC);
    return now.tv_sec;
}

static void work (struct pool *pool, uint32_t me)
{
    struct shared *shared = pool->shared;
    coverage_process (me);
    pool->begin (me);
    for (uint64_t at; (at = atomic_fetch_add (&shared->next, 1)) < pool->seeds;) {
        atomic_store (&shared->worker[me].since, now_s ());
        atomic_store (&shared->worker[me].seed, pool->first + at);
        pool->world (pool->first + at);
        atomic_fetch_add (&shared->done, 1);
    }
    atomic_store (&shared->worker[me].seed, 0);
    pool->end ();
    exit (0);
}

static void employ (struct pool *pool, uint32_t me)
{
    pool->hung[me] = false;
    fflush (NULL);
    pid_t pid = fork ();
    if (pid < 0) {
        perror ("fork");
        exit (2);
    }
    if (pid == 0)
        work (pool, me);
    pool->pid[me] = pid;
}

static void failed (struct pool *pool, uint32_t me, int status)
{
    struct failure *failure =
        &pool->failure[pool->failures < LISTED_MAX ? pool->failures : LISTED_MAX - 1];
    pool->failures++;
    failure->seed = atomic_load (&pool->shared->worker[me].seed);
    if (pool->hung[me])
        snprintf (failure->how, sizeof failure->how, "hung for %d s", HANGS_S);
    else if (WIFSIGNALED (status))
        snprintf (failure->how, sizeof failure->how, "died by signal %d", WTERMSIG (status));
    else
        snprintf (failure->how, sizeof failure->how, "failed, status %d", WEXITSTATUS (status));
    if (failure->seed == 0)
        snprintf (failure->how, sizeof failure->how, "failed when its worlds were over, status %d",
                  status);
    fprintf (stderr, "seed %" PRIu64 " %s\n", failure->seed, failure->how);
}

/* Of all that have ended; false: none is left. */
static bool bury (struct pool *pool, uint32_t processes)
{
    bool left = false;
    int status;
    for (uint32_t i = 0; i < processes; i++) {
        if (!pool->pid[i])
            continue;
        if (waitpid (pool->pid[i], &status, WNOHANG) == pool->pid[i]) {
            bool over = WIFEXITED (status) && WEXITSTATUS (status) == 0;
            pool->pid[i] = 0;
            if (!over)
                failed (pool, i, status);
            if (!over && atomic_load (&pool->shared->next) < pool->seeds)
                employ (pool, i);
        } else if (atomic_load (&pool->shared->worker[i].seed) && !pool->hung[i] &&
                   now_s () - atomic_load (&pool->shared->worker[i].since) > HANGS_S) {
            pool->hung[i] = true;
            kill (pool->pid[i], SIGKILL);
        }
        left = left || pool->pid[i];
    }
    return left;
}

static void tell (const struct pool *pool, time_t begun)
{
    uint64_t done = atomic_load (&pool->shared->done);
    double seconds = (double)(now_s () - begun), rate = (double)done / (seconds > 0 ? seconds : 1);
    fprintf (stderr,
             "%" PRIu64 " of %" PRIu64 " worlds, %.0f a second, %" PRIu64
             " failed, %.0f min left\n",
             done, pool->seeds, rate, pool->failures,
             rate > 0 ? (double)(pool->seeds - done - pool->failures) / rate / 60 : 0);
}

uint64_t workers_run (uint64_t first, uint64_t seeds, uint32_t processes,
                      void (*begin) (uint32_t process), void (*world) (uint64_t seed),
                      void (*end) (void))
{
    struct pool pool = {.first = first, .seeds = seeds, .begin = begin, .world = world, .end = end};
    struct timespec tick = {0, 20 * 1000 * 1000};
    time_t begun = now_s (), told = begun;
    pool.shared =
        mmap (NULL, sizeof *pool.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pool.failure = calloc (LISTED_MAX, sizeof *pool.failure);
    if (pool.shared == MAP_FAILED || !pool.failure)
        abort ();
    for (uint32_t i = 0; i < processes; i++)
        employ (&pool, i);
    while (bury (&pool, processes)) {
        nanosleep (&tick, NULL);
        if (now_s () - told >= TELL_S) {
            told = now_s ();
            tell (&pool, begun);
        }
    }
    if (pool.failures)
        printf ("%" PRIu64 " of %" PRIu64
                " worlds failed; each alone, with what happens in it: grid_sim 1 SEED\n",
                pool.failures, seeds);
    for (uint64_t i = 0; i < pool.failures && i < LISTED_MAX; i++)
        printf ("  %" PRIu64 " %s\n", pool.failure[i].seed, pool.failure[i].how);
    munmap (pool.shared, sizeof *pool.shared);
    free (pool.failure);
    return pool.failures;
}
