/* engine: replays a workload through the local core in virtual time.
 *
 * Wiring only: the same cluster and plan as the daemon's. The clock jumps from event to event. At one
 * instant: ended jobs free their resources, then arrivals enter the queue, then one pass; a job of
 * zero run time ends at the instant of its start, and another pass follows. With a tick the clock
 * moves in multiples of it (RMPOLLINTERVAL), and what happened since the last one is seen then.
 *
 * Where the policy lets time alone decide (limits on what is left of running jobs, fairshare caps,
 * reservation thresholds of queue time or XFactor, BFCHUNKDURATION; an order that moves by itself; limits
 * that stop clocks), there are passes between events as well while jobs wait: at cluster_next_wakeup and at
 * every RMPOLLINTERVAL from the first submission on, as in the daemon; with any fairshare also where its windows
 * roll.
 *
 * A job that the plan defers (core/defer.h) is deferred as by the daemon, DEFERCOUNT times and then for good.
 * Where nothing runs and nobody is to come, time alone is given sixty days, or all of fairshare's windows; who
 * waits then never runs, and `stuck` says why. So it always ends.
 *
 * The caller owns all arrays. A job runs for min (run, limit). Cost: that of the passes plus
 * O(log running) per job. */
#ifndef NUI_LOCAL_SIM_ENGINE_H
#define NUI_LOCAL_SIM_ENGINE_H

#include "local/core/plan.h"

struct engine_job {
    uint64_t number;   /* > 0, unique; the last tie-break */
    time_us submit;    /* ascending over the array */
    duration_us limit; /* > 0 */
    duration_us run;   /* >= 0 */
    time_us deadline;  /* 0: none; a job that cannot end by then any more leaves the queue */
    uint32_t cred[CRED_KINDS]; /* CRED_NONE where absent */
    uint32_t procs;            /* when req_count is 0: so many tasks of one processor */
    uint32_t req_count;
    const struct req *req;
    bool used_known;    /* else it counts as using all that it has, under FSPOLICY UTILIZEDPS */
    int64_t used_micro; /* processors in use on the average while it runs, in millionths */
    /* starts in this reservation only: a part of a co-allocated job; 0: none */
    struct rsv_id inside;
};

struct engine_result {
    time_us start; /* TIME_US_NONE: never started */
    time_us end;   /* TIME_US_NONE: never ended */
    bool backfilled;
};

/* State right after the pass at `now`, for utilisation and queue-length series. */
struct engine_sample {
    time_us now;
    uint32_t queued;
    uint32_t running;
    int64_t procs_used;
    int64_t procs_total;
    uint64_t jobs_done;
    uint64_t passes;
};

struct engine;
struct engine_hooks { /* any may be NULL */
    void *self;
    void (*sample) (void *self, const struct engine_sample *sample);
    /* At the end, for each job that waits still: its reason is that of the last pass. */
    void (*stuck) (void *self, struct engine *engine, uint64_t index, const struct job_view *job);
    /* The job at place `index` is about to leave the queue: its deadline is lost. */
    void (*lapsed) (void *self, struct engine *engine, uint64_t index, time_us now);
    /* A pass is over, and its plan committed. */
    void (*planned) (void *self, struct engine *engine, const struct plan *plan);
    /* The job at place `index` entered the queue, ahead of the pass that first sees it; started; ended. */
    void (*arrived) (void *self, struct cluster *cluster, uint64_t index, time_us now);
    void (*started) (void *self, uint64_t index, time_us now);
    void (*ended) (void *self, uint64_t index, time_us now);
};

/* Another scheduler in place of the core's pass, for comparison. It decides and makes its decisions
 * true in the cluster (cluster_job_start); of *plan_out only starts (in the arena) and hash count. */
struct engine_scheduler {
    void *self;
    int (*pass) (void *self, struct cluster *cluster, time_us now, struct arena *arena,
                 struct plan *plan_out, struct err *err);
};

/* Jobs made while the simulation runs (users who wait for their jobs before they send the next), in
 * place of a list known beforehand. The array given to engine_run is the source's own: it holds the
 * numbers i + 1 and is otherwise filled by take. */
struct engine_source {
    void *self;
    /* when it wants to act next; TIME_US_MAX: not before a job ends */
    time_us (*next) (void *self);
    /* The job at place `index` (number set), submitted now; *taken_out false: none, after all. */
    int (*take) (void *self, struct cluster *cluster, time_us now, uint64_t index, bool *taken_out,
                 struct err *err);
    void (*started) (void *self, uint64_t index, time_us now);
    void (*ended) (void *self, uint64_t index, time_us now);
};

/* Nodes and all that is said of the place, in place of engine_setup.node; see site.h. */
struct engine_site {
    void *self;
    int (*furnish) (void *self, struct cluster *cluster, time_us now, struct err *err);
    /* Before each pass: standing reservations as they should be then. NULL: there are none. */
    void (*roll) (void *self, struct cluster *cluster, time_us now);
};

struct engine_setup {
    const struct policy *policy;              /* sealed */
    const struct engine_scheduler *scheduler; /* NULL: the core's pass */
    const struct engine_source *source;       /* NULL: all jobs are in the array */
    const struct node_spec *node;             /* node_group_count kinds of nodes … */
    const uint32_t *node_copies;              /* … and how many of each, in node order */
    uint32_t node_group_count;
    const struct engine_site *site; /* NULL: only nodes as above, of which no more is known */
    uint32_t gres_kinds;
    duration_us tick;    /* 0: exact events */
    uint64_t seed;       /* of what the policy draws */
    bool pass_per_event; /* a pass after each end and each arrival, for comparison with
                                       simulators that do so; not with a tick */
    struct engine_hooks hooks;
};

struct engine_summary {
    uint64_t passes;
    uint64_t events;
    uint64_t backfilled;
    uint64_t never_started;
    uint64_t preempted; /* times that a job was sent back to the queue, its work lost */
    time_us first_submit;
    time_us last_end;
    int64_t proc_us_used; /* sum over ended jobs of procs * run, saturating */
    uint64_t plan_hash;   /* of all plans together */
};

/* results has count entries. ERR_INVALID names the job with a bad field. */
int engine_run (const struct engine_setup *setup, const struct engine_job *job, uint64_t count,
                struct engine_result *results, struct engine_summary *summary_out, struct err *err);

/* The same in turns, for several sites in one virtual time. All that is given must outlive the
 * engine; setup, job and results may be filled further by the setup's source. NULL with err. */
struct engine *engine_create (const struct engine_setup *setup, const struct engine_job *job,
                              uint64_t count, struct engine_result *results,
                              struct engine_summary *summary_out, struct err *err);
void engine_destroy (struct engine *engine); /* NULL is a no-op */
/* When something happens next by itself or by its source; TIME_US_MAX: never. */
time_us engine_next (const struct engine *engine);
/* Everything up to `now` (not before the last turn's), then a pass. */
int engine_turn (struct engine *engine, time_us now, struct err *err);
/* To ask, and for reservations. */
struct cluster *engine_cluster (struct engine *engine);
/* The place of a job in the list. */
uint64_t engine_index (const struct engine *engine, struct job_id job);
/* A waiting job leaves the queue; its result stays that of a job never started. */
int engine_withdraw (struct engine *engine, uint64_t index, time_us now, struct err *err);

#endif
