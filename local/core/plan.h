/* plan: one scheduling pass. Pure and deterministic.
 *
 * plan_compute decides; plan_commit makes the decisions true in the cluster (started jobs become
 * JOB_STARTING and have their resources; reasons, reservations and bypass counts are stored). The
 * shell that only wants to know (TEST mode) refuses all starts. Between the two, the resources of the
 * plan's starts are taken, while these jobs are still idle ones in views, counts and lists; any event
 * takes them back. A pass can also be made step by step, with readers and newly submitted jobs between
 * the steps; steps.c says how. The same cluster, policy and
 * moment give the same plan and the same hash. What a pass found is kept inside the cluster and
 * used by the next as far as no event made it untrue; the result is the same as from scratch. */
#ifndef NUI_LOCAL_CORE_PLAN_H
#define NUI_LOCAL_CORE_PLAN_H

#include "local/core/cluster.h"
#include "local/core/defer.h"
#include "proto/base/arena.h"

enum plan_phase {                /* in which part of the pass a job got its start */
                  PLAN_RESERVED, /* inside the reservation it names, or on the nodes kept for it */
                  PLAN_PRIORITY, /* in order of priority, under soft limits */
                  PLAN_BACKFILL_SOFT, /* past waiting jobs, under soft limits */
                  PLAN_BACKFILL_HARD, /* the same, over its soft limits */
                  PLAN_RESUMED,       /* was suspended and goes on where it was */
};

struct plan_start {
    struct job_id job;
    enum plan_phase phase;
    bool refused; /* false; the shell may set it before plan_commit: the job stays idle */
    struct allocation allocation; /* the cluster's: holds until the next event; after a commit,
                                     while the job runs */
};

/* A promise to an idle job, made anew in every pass unless the policy keeps it. */
struct plan_reservation {
    struct job_id job;
    time_us start;
    time_us end;
    struct allocation allocation; /* in the arena; count 0 with RESERVATIONBINDING LATE */
};

struct plan_reason {
    struct job_id job;
    int64_t priority;
    struct reason reason;
};

struct plan_deferral {
    struct job_id job;
    enum defer_reason reason;
};

struct plan {
    time_us now;
    uint64_t version; /* of the cluster it was made for */
    uint32_t start_count;
    struct plan_start *start; /* in order of decision */
    uint32_t reservation_count;
    struct plan_reservation *reservation; /* in order of priority */
    /* Waiting jobs whose reason has another code than in the last committed plan; cluster_job_get
     * has the rest. */
    uint32_t reason_count;
    struct plan_reason *reason;
    /* Running jobs to be evicted for preempt_for, which starts in a later pass, once they are gone:
     * PREEMPTPOLICY says how (cluster_job_preempt, cluster_job_suspend, cluster_job_end; while it takes
     * time, cluster_job_eviction_set). In the arena. */
    uint32_t preempt_count;
    struct job_id *preempt;
    struct job_id preempt_for;
    struct allocation preempt_nodes; /* kept for that job for a while, once they are free */
    /* Running jobs past their limit and JOBMAXOVERRUN, for WCVIOLATIONACTION. In the arena. */
    uint32_t violation_count;
    struct job_id *violation;
    /* Idle jobs that cannot be run as they are, for the shell to defer (defer.h). In the arena. */
    uint32_t defer_count;
    struct plan_deferral *defer;
    /* Idle jobs that cannot end by their deadline any more, for the shell to end. In the arena. */
    uint32_t lapsed_count;
    struct job_id *lapsed;
    uint32_t considered; /* idle jobs within hard limits */
    uint32_t bypassed;   /* waiting jobs of higher priority that a backfilled start passed */
    uint64_t hash;       /* of starts and reservations with their nodes and times */
};

/* Everything in *plan_out lives in the arena. ERR_NOMEM, or ERR_INTERNAL when an invariant of the
 * state does not hold. */
int plan_compute (struct cluster *cluster, time_us now, struct arena *arena, struct plan *plan_out,
                  struct err *err);
/* The same in steps that are short, so that others can be served between them: plan_begin, then plan_step
 * while *more_out. plan and arena must stay until then. The steps together decide what plan_compute would
 * have decided at the moment of plan_begin. Between them the cluster may be read and asked
 * (query.h, explain.h: what is started so far counts), and jobs may be submitted: they wait for the
 * next pass. Any other event takes back what was planned, and plan_step returns ERR_CONFLICT: begin
 * again. plan_begin costs what looking at every idle job does and one timeline; a step looks at no more
 * than `most` jobs, or asks the room of one (of several where most allows it), but for the last, which
 * looks at all that wait. */
int plan_begin (struct cluster *cluster, time_us now, struct arena *arena, struct plan *plan_out,
                struct err *err);
int plan_step (struct cluster *cluster, uint32_t most, bool *more_out, struct err *err);
/* The plan must be of this cluster's present version (ERR_CONFLICT otherwise). */
int plan_commit (struct cluster *cluster, const struct plan *plan, struct err *err);

/* Forgets everything kept from earlier passes: the next one computes from scratch. For tests. */
void plan_forget (struct cluster *cluster);

#endif
