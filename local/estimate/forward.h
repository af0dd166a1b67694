/* forward: what the pass will do from the present state on, if jobs run so long as was drawn. Pure.
 *
 * A compact copy of the core's pass for sites where processors are all there is to count: the same
 * order (priority, submission, number), the same reservations by wallclock limits, the same
 * backfill as RESERVATIONBINDING LATE, where the start times equal the engine's, job for job
 * (tests/prop/local). Reservations bound to nodes early are simulated as if bound late: which nodes
 * does not matter much for when. The state itself is never touched: each draw has its own working
 * copy in memory that is kept between draws.
 *
 * Cost of one draw: O(events until the job starts · (kinds of waiting jobs + log running)), a kind
 * being processors and limit; where the order changes as time goes by, O(jobs) in place of kinds.
 */
#ifndef NUI_LOCAL_ESTIMATE_FORWARD_H
#define NUI_LOCAL_ESTIMATE_FORWARD_H

#include "local/core/types.h"

/* A running job: when the pass expects its end, and when it will end in this draw. */
struct forward_run {
    time_us limit_end;
    time_us end;
    uint32_t procs;
};

struct forward_job {
    uint32_t procs;
    duration_us limit;
    duration_us run; /* in this draw */
    double prio;     /* at `now`; higher first, equal ones in the order given */
    double slope;    /* change of prio per second */
};

/* Something that is only asked about: behind everybody, and taking nothing from anybody. */
struct forward_ghost {
    uint32_t procs;
    duration_us limit;
    time_us start; /* out: TIME_US_NONE: not within the draw */
};

/* Jobs that come later. false: no more will. */
typedef bool forward_next (void *self, time_us *at_out, struct forward_job *job_out);

struct forward_setup {
    time_us now;
    int64_t procs_free;
    uint32_t depth; /* reservations a pass makes at most */
    bool backfill;  /* past those: BACKFILLPOLICY other than NONE */
    bool best_fit;  /* the largest first */
    bool reorders;  /* slopes differ: the order changes as time goes by */
    const struct forward_run *run;
    uint32_t run_count;
    const struct forward_job *job; /* the queue in order of priority */
    uint32_t job_count;
    uint32_t target; /* its place in job, where the draw ends; UINT32_MAX: the queue's last */
    /* with a target of UINT32_MAX the draw goes on until all have begun */
    struct forward_ghost *ghost;
    uint32_t ghost_count;
    forward_next *next; /* NULL: none */
    void *self;
    time_us until; /* the draw ends there; TIME_US_MAX: never */
};

struct forward;
struct forward *forward_create (void); /* working memory; never NULL */
void forward_destroy (struct forward *forward);

/* Begins a draw: copies what it is given and makes the first pass. starts (NULL or job_count long)
 * gets the starts of jobs of the queue; TIME_US_NONE: not within the draw. The setup (but not its
 * arrays run and job) is read until the draw is over. */
void forward_begin (struct forward *forward, const struct forward_setup *setup, time_us *starts);
/* Goes on for about so much work (a job looked at or an event is 1: some nanoseconds). True: the
 * draw is over. */
bool forward_go (struct forward *forward, uint64_t work);
/* Since forward_begin. */
uint64_t forward_work (const struct forward *forward);
time_us forward_found (const struct forward *forward); /* the target's start, or TIME_US_NONE */

#endif
