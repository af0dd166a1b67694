/* sim: one process in which the real services of a grid run on a simulated clock, network and disk.
 *
 * What is real: metad (meta/svc, core, link, store) and svc (local/svc, core, link, store), SQLite,
 * signed jobs. What is not, and is given here under the names the services know: libevent
 * (event.c), the gRPC client and server (net.c), clocks and random numbers (sim.c), SQLite's files
 * (disk.c), the daemons' skeleton (machine.c), the runner of processes (runner.c) and the bank
 * (bank.c).
 *
 * Everything that happens is a `todo` at a moment; who comes first is decided by that moment and
 * the order of asking, and chance comes from one seed. A machine dies at a durable step (xSync of
 * its disk), before or after it: from then on nothing of it reaches disk or network, what it had
 * not synced is kept or lost by file, and its program is started anew some time later. */
#ifndef NUI_TESTS_GRID_SIM_H
#define NUI_TESTS_GRID_SIM_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/rpc/rpcclient.h"
#include "proto/rpc/rpcserver.h"
#include "proto/rpc/tlsid.h"
#include "tests/grid/coverage.h"

enum { MACHINES_MAX = 12, SERVICES_MAX = 8 };

#define MS INT64_C (1000)
#define SEC US_PER_S

struct machine;

/* Something that will happen. Embedded in its owner. */
struct todo {
    time_us at;
    uint64_t order;
    size_t place;            /* in the heap, from 1; 0: not there */
    struct machine *machine; /* whose program runs it; NULL: the world itself */
    void (*fn) (void *arg);
    void *arg;
};
void todo_set (struct todo *todo, time_us at); /* also: moves it */
void todo_drop (struct todo *todo);
/* Once. With a machine: only if the program that is up now still is then; else arg, from malloc, is freed. */
void todo_once (struct machine *machine, time_us at, void (*fn) (void *arg), void *arg);

/* What runs on a machine. */
struct program {
    void *(*start) (struct machine *machine, struct err *err);
    void (*stop) (struct machine *machine, void *self);
};

struct service {
    const ProtobufCServiceDescriptor *descriptor;
    const struct rpc_method *methods;
    void *self;
};

struct machine {
    char name[32];
    enum principal_kind kind;
    struct tlsid *id;
    const struct program *program;
    void *self;           /* the program's; NULL while it is down */
    uint64_t life;        /* grows with each start */
    bool dying;           /* crashed inside the callback that runs now, or asked to be stopped */
    bool held_down;       /* does not come up by itself */
    uint32_t crash_after; /* durable steps until it dies; 0: it does not */
    bool crash_late;      /* after that step rather than before it */
    bool disk_full;
    bool ran; /* since the invariants were looked at */
    duration_us wall_offset, mono_base;
    char dir[128]; /* of its state */
    struct event_base *base;
    const struct sendgate *gate;
    struct service service[SERVICES_MAX];
    uint32_t service_count;
    struct rpccall *calls; /* that it has not answered */
    struct todo restart;
    time_us started;
    uint64_t crashes, starts, syncs;
};

struct sim {
    uint64_t seed;
    bool trace;
    time_us now;   /* since the beginning; also everybody's true time */
    time_us epoch; /* the wall clock's moment then */
    struct machine machine[MACHINES_MAX];
    uint32_t machine_count;
    struct machine *self; /* whose code runs */
    const char *method;   /* that it serves, or whose answer it takes; NULL: neither */
    bool answer;
    /* The network's mood. */
    uint32_t loss_percent, twice_percent, slow_percent;
    duration_us latency; /* of each message; 0: as chance has it */
    bool cut[MACHINES_MAX][MACHINES_MAX];
    const char *silenced; /* all requests of this method are lost; NULL: of none */
    bool overruns;        /* some jobs would run past their limits */
    duration_us shortest; /* no job ends by itself before it has run so long */
    uint64_t messages, lost, repeated, timeouts;
    uint64_t events;
    int64_t cpu_asked; /* how often for the processor's time */
    /* Whoever watches. */
    void (*on_reply) (struct machine *server, const char *method, const ProtobufCMessage *request,
                      const ProtobufCMessage *reply);
    void (*on_step) (void); /* after each todo */
};
extern struct sim sim;

void sim_begin (uint64_t seed, time_us epoch);
/* Until nothing is left or `until`; false: nothing is left. */
bool sim_run (time_us until);
void sim_end (void); /* stops every machine, empties the heap */
uint64_t sim_random (void);
uint64_t sim_below (uint64_t n);
bool sim_chance (uint32_t percent);
void sim_fail (const char *fmt, ...) __attribute__ ((format (printf, 1, 2), noreturn));
#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond))                                                                               \
            sim_fail (__VA_ARGS__);                                                                \
    } while (0)
#define TRACE(...)                                                                                 \
    do {                                                                                           \
        if (sim.trace) {                                                                           \
            printf ("%10.3f ", (double)sim.now / 1e6);                                             \
            printf (__VA_ARGS__);                                                                  \
            putchar ('\n');                                                                        \
        }                                                                                          \
    } while (0)

/* machine.c */
struct machine *machine_add (const char *name, enum principal_kind kind,
                             const struct program *program, struct tlsid *id);
struct machine *machine_find (const char *name);
uint32_t machine_index (const struct machine *machine);
void machine_start (struct machine *machine);
/* kill -9 now, from the world's own code; it is started again `after` from now (< 0: not at all).
 */
void machine_kill (struct machine *machine, duration_us after);
/* Called at each durable step, before and after it: whether the machine lives. */
bool machine_lives_through_step (struct machine *machine, bool after);
/* After each todo: what died in it is buried. */
void machines_bury (void);
bool machine_up (const struct machine *machine);
time_us machine_wall (const struct machine *machine);
/* Its wall clock shows `wall`: the true moment of that. */
time_us machine_true (const struct machine *machine, time_us wall);

/* event.c */
struct event_base *simbase_create (struct machine *machine);
void simbase_destroy (struct event_base *base);

/* net.c */
void net_calls_drop (struct machine *machine); /* those that a dead program had not answered */
/* Of what todo_once was given, and is not to happen any more. */
void net_drop (void (*fn) (void *arg), void *arg);
/* A call by `from`, who has no program of its own here (a user). done as in rpcclient.h. */
void net_call (struct machine *from, const char *to, const ProtobufCServiceDescriptor *service,
               const char *method, const ProtobufCMessage *request, duration_us timeout,
               void (*done) (void *arg, const struct rpc_result *result), void *arg);

/* disk.c */
void disk_open (void); /* SQLite's files are these from now on */
/* The machine's disk as a fresh installation leaves it: `format` makes it the first time. */
void disk_format (struct machine *machine, const char *kind,
                  void (*format) (struct machine *machine));
void disk_crash (struct machine *machine); /* what was not synced is kept or lost */
void disk_clear (void);
void disk_close (void);

/* signature.c */
void signature_forget (void);

/* runner.c */
void runner_begin (void);
void runner_end (void);
extern uint64_t runner_started, runner_ended;
/* Jobs of that site that the runner would start or has running. */
uint32_t runner_live (const struct machine *machine);
/* Who waits for a moment waits by the wall clock. */
void runner_clock_stepped (struct machine *machine);
/* A node of a running job is lost: any, if there is one. */
bool runner_lose_node (struct machine *machine);
/* Fails when processors are used twice. */
void runner_check (void);

#endif
