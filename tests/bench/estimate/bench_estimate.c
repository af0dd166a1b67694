/* bench_estimate: what one answer costs, at queues of 100, 1,000 and 10,000 jobs.
 *
 * A machine of 1,024 (queues to 1,000) or 4,096 one-processor nodes, full; a queue of made-up jobs
 * of 50 users; a history of 8,192 ended jobs; the arrivals that keep such a machine busy. Prints
 * the median of several answers about a new job at the end of the queue, as a ratio to the goal (10
 * ms at 1,000 jobs, 100 ms at 10,000), and the cost of a whole-queue survey with 240 shapes, which
 * the daemon does in slices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/core/plan.h"
#include "local/estimate/estimator.h"

/* Processor time: others may be busy on the machine. */
static int64_t cpu_us (void)
{
    struct timespec t;
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static const time_us begin = INT64_C (1700000000) * US_PER_S;

static struct job_known made_up (struct rng *rng, uint32_t largest)
{
    struct job_known j = {.procs = 1u << rng_below (rng, 8)};

    if (j.procs > largest)
        j.procs = largest;
    j.limit = (1 + rng_below (rng, 24)) * 1800 * US_PER_S;
    for (int k = 0; k < CRED_KINDS; k++)
        j.cred[k] = CRED_NONE;
    j.cred[CRED_USER] = 1 + rng_below (rng, 50);
    j.cred[CRED_QOS] = CRED_DEFAULT;
    return j;
}

static void submit (struct cluster *c, uint64_t id, const struct job_known *j, time_us now)
{
    struct req req = {.tasks = j->procs};
    struct job_spec spec = {.id = {id},
                            .submit = now,
                            .not_before = TIME_US_NONE,
                            .walltime_limit = j->limit,
                            .req_count = 1,
                            .req = &req};
    struct err err;

    memcpy (spec.cred, j->cred, sizeof spec.cred);
    req.task.v[RES_PROCS] = 1;
    if (cluster_job_submit (c, &spec, now, &err)) {
        fprintf (stderr, "%s\n", err.text);
        exit (1);
    }
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure (uint32_t queue, double goal_ms)
{
    enum { TIMES = 9, SHAPES = 240 };
    struct cred_names names;
    struct err err;
    struct rng rng;
    uint32_t procs = queue > 1000 ? 4096 : 1024;
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    struct cluster_options options = {0, 0};
    struct estimator *e = estimator_create (NULL);
    struct arena *arena = arena_create (0);
    struct plan plan;
    struct estimate raw;
    double ms[TIMES], see[TIMES];
    uint64_t id = 1;
    cred_names_init (&names);
    rng_seed (&rng, queue, 0);
    struct policy *policy = policy_create (&names);
    policy->reservation_binding = BINDING_LATE;
    if (policy_seal (policy, &err))
        exit (1);
    struct cluster *c = cluster_create (policy, &options, &err);
    node.configured.v[RES_PROCS] = 1;
    for (uint32_t i = 0; i < procs; i++)
        (void)cluster_node_add (c, &node, begin, NULL, &err);
    for (int i = 0; i < 8192; i++) {
        struct job_known j = made_up (&rng, procs / 4);
        estimator_ended (e, &j, (duration_us)((double)j.limit * rng_unit (&rng) * rng_unit (&rng)));
        estimator_arrived (e, &j, begin - (8192 - i) * (queue > 1000 ? 45 : 180) * US_PER_S);
    }
    while (cluster_job_count (c, JOB_IDLE) < queue) {
        struct job_known j = made_up (&rng, procs / 4);
        submit (c, id++, &j, begin);
        if (id % 64 == 0 || cluster_job_count (c, JOB_IDLE) == queue) {
            (void)plan_compute (c, begin, arena, &plan, &err);
            (void)plan_commit (c, &plan, &err);
            arena_reset (arena);
        }
    }
    for (int i = 0; i < TIMES; i++) {
        struct job_known j = made_up (&rng, procs / 4);
        struct req req = {.tasks = j.procs};
        struct job_spec spec = {.id = {id + 1000},
                                .submit = begin + 60 * US_PER_S,
                                .not_before = TIME_US_NONE,
                                .walltime_limit = j.limit,
                                .req_count = 1,
                                .req = &req};
        memcpy (spec.cred, j.cred, sizeof spec.cred);
        req.task.v[RES_PROCS] = 1;
        duration_us t0 = cpu_us ();
        (void)estimator_see (e, c, begin + 60 * US_PER_S, &err);
        duration_us t1 = cpu_us ();
        if (estimator_ask (e, ESTIMATE_SIMULATION, c, (struct job_id){0}, &spec, &raw, &err))
            exit (1);
        see[i] = (double)(t1 - t0) / 1e3;
        ms[i] = (double)(cpu_us () - t0) / 1e3;
    }
    qsort (ms, TIMES, sizeof *ms, by_value);
    qsort (see, TIMES, sizeof *see, by_value);
    printf ("queue %6u: one answer %8.2f ms (of it reading the queue %.2f ms), %u draws", queue,
            ms[TIMES / 2], see[TIMES / 2], raw.draws);
    if (goal_ms > 0)
        printf ("; %.2f of the goal of %g ms", ms[TIMES / 2] / goal_ms, goal_ms);
    static struct forward_ghost shape[SHAPES];
    for (uint32_t i = 0; i < SHAPES; i++)
        shape[i] = (struct forward_ghost){1u << i % 12, (1 + i / 12) * 3600 * US_PER_S, 0};
    struct simulate_options sim_options = {40, 0, 1, true, false};
    struct simulation *sim = simulation_create ();
    duration_us t0 = cpu_us (), longest = 0;
    if (simulation_begin (sim, estimator_scene (e), estimator_history (e), c, UINT32_MAX, shape,
                          SHAPES, &sim_options, &err))
        exit (1);
    for (bool done = false; !done;) {
        duration_us s0 = cpu_us ();
        done = simulation_go (sim, 400000);
        longest = cpu_us () - s0 > longest ? cpu_us () - s0 : longest;
    }
    double all = (double)(cpu_us () - t0) / 1e3;
    printf ("\n              all %u and %d shapes, 40 draws: %.0f ms, %.2f ns a unit of work, "
            "longest slice %.2f ms\n",
            queue, SHAPES, all, all * 1e6 / (double)simulation_work (sim), (double)longest / 1e3);
    simulation_destroy (sim);
    estimator_destroy (e);
    cluster_destroy (c);
    policy_destroy (policy);
    cred_names_free (&names);
    arena_destroy (arena);
}

int main (void)
{
    measure (100, 0);
    measure (1000, 10);
    measure (10000, 100);
    return 0;
}
