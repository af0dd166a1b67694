/* gridsim: several sites and a metascheduler in one virtual time, from their logs. Pure but for the
 * memory it takes.
 *
 * Each site is an engine (local/sim/engine.h) with a policy and a machine of its own: the daemon's
 * core. Between them stands the metascheduler's own choice (meta/core/choose.h). What is simulated
 * of it: an ordinary job goes to the site that says it starts it first (a start at once is asked of
 * the site exactly; else its estimate counts, local/estimate), and moves on while it waits, when
 * another site could start it at once and that is clearly sooner (choose_moves). A co-allocated job
 * is two halves at one moment: one at its home, the other at another site; the earliest common
 * start of the sites' exact answers, firm from then on, and earlier when jobs end before their limits. Messages take no time and are never lost.
 *
 * A site that is cut off gets nothing from the metascheduler and gives nothing back; what is there goes on, and promises that it
 * made stand. Its own users' jobs go elsewhere meanwhile, where they can.
 *
 * A visiting job keeps its time of submission; its user is HOME.USER there, under that site's
 * defaults. Jobs that ask for more than processors stay at home. */
#ifndef NUI_LOCAL_SIM_GRID_GRIDSIM_H
#define NUI_LOCAL_SIM_GRID_GRIDSIM_H

#include "local/trace/workload.h"
#include "meta/core/choose.h"

enum { GRIDSIM_SITES_MAX = 64 };

struct gridsim_site {
    const char *name;
    struct cred_names *names; /* grow by visitors */
    const struct policy *policy;
    const struct machine *machine;
    time_us silent_from,
        silent_until; /* the metascheduler hears nothing of it in between: it is cut off */
};

struct gridsim_job {
    const struct workload_job *job;
    time_us submit; /* on the common clock; ascending over the array */
    uint32_t home;  /* site */
};

struct gridsim_setup {
    const struct gridsim_site *site;
    uint32_t site_count;
    const struct gridsim_job *job;
    uint64_t count;
    bool place; /* else every job runs at home */
    bool move;  /* with place */
    struct choose_move_policy moves;
    bool
        slide; /* co-allocated jobs come forward, by the same policy, when something ends at their sites */
    double coallocate; /* this share of jobs, where it can be halved; the same ones are among any
                            larger share */
    uint64_t seed;
    uint32_t draws; /* of an estimate; 0: GRIDSIM_DRAWS */
    void *self;
    void (*progress) (void *self, uint64_t jobs_done); /* or NULL */
};
enum { GRIDSIM_DRAWS = 8, GRIDSIM_PARTS = 2, GRIDSIM_MOVES_MAX = 3 };

struct gridsim_result {
    time_us start; /* on the common clock; TIME_US_NONE: never */
    time_us end;
    uint32_t site; /* where it ran; of a co-allocated job: its first half */
    uint32_t moves;
    bool coallocated;
};

struct gridsim_summary {
    uint64_t moved; /* jobs that moved, or came forward, at least once */
    uint64_t away;  /* ordinary jobs that ran elsewhere than at home */
    uint64_t coallocated;
    uint64_t no_slot;   /* were to be co-allocated and found no common start: ran at home */
    uint64_t never;     /* never ran */
    double utilisation; /* of all processors, from the first submission to the last */
    double
        held_idle; /* share of the same: idle while a promised half waits at that site that would use them */
};

/* Who a job of `home` with the credentials `from` is among other names: HOME.USER, and so for group
 * and account; no class, no QoS. */
void gridsim_visitor (const struct gridsim_site *home, const uint32_t from[CRED_KINDS],
                      struct cred_names *names, uint32_t to[CRED_KINDS]);

/* result has count places. ERR_INVALID names a job; ERR_INTERNAL when a promise was not kept. */
int gridsim_run (const struct gridsim_setup *setup, struct gridsim_result *result,
                 struct gridsim_summary *summary_out, struct err *err);

#endif
