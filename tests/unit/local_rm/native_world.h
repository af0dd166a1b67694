/* native_world: an adapter for RMCFG TYPE=NATIVE over a program that a test plays: it prints the files `nodes` and `jobs` of
 * the test's directory, writes down what it is called with, and does to each call what the test says. */
#ifndef NUI_TEST_NATIVE_WORLD_H
#define NUI_TEST_NATIVE_WORLD_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "local/rm/rm_kind.h"
#include "proto/base/clock.h"

struct native_world {
    char dir[64], program[128], jobs[128];
    const char *account;
    struct event_base *base;
    struct log *log;
    long log_from;
    struct rm rm;
    struct rm_options options;
    const struct rm_kind *kind;
    bool observe;
    time_us since;
    /* what was told */
    unsigned reach, nodes, natives, unknown, handed_count, started, ended, suspensions, orphans;
    char handed[64], placement[128], told[4096];
    bool unasked, suspended;
    time_us start;
    struct rm_status end;
    char end_job[64];
    bool bind_native; /* each new one as site.<rm_id> */
    struct rm_native last;
};

struct native_world *native_world_create (void);
void native_world_destroy (struct native_world *w);
void native_world_open (struct native_world *w);
void native_world_close (struct native_world *w); /* the adapter only: as if we died */

/* The file of that name in its directory: "nodes", "jobs", "answer.jobstart", or "do.jobstart", which is run first. */
void native_world_put (struct native_world *w, const char *name, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
void native_world_clear (struct native_world *w, const char *name);
/* How often it was called with a line that begins so. */
unsigned native_world_calls (struct native_world *w, const char *begins);
void native_world_mark (
    struct native_world *w); /* what was logged so far does not count any more */
unsigned native_world_said (struct native_world *w, const char *words);
bool native_world_fresh (struct native_world *w);

#define UNTIL(w, condition)                                                                        \
    do {                                                                                           \
        duration_us until_ = clock_monotonic_us () + 600 * US_PER_S;                               \
        while (!(condition)) {                                                                     \
            if (clock_monotonic_us () > until_)                                                    \
                fail_msg ("in vain: %s; %s", #condition, (w)->dir);                                \
            event_base_loop ((w)->base, EVLOOP_ONCE);                                              \
        }                                                                                          \
    } while (0)

#endif
