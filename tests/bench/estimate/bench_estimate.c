/* bench_estimate: what one answer costs, at queues of 100, 1,000 and 10,000 jobs.
 *
 * A machine of 1,024 (queues to 1,000) or 4,096 one-processor nodes, full; a queue of made-up jobs
 * of 50 users; a history of 8,192 ended jobs; the arrivals that keep such a machine busy. Prints
 * the median of several answers about a new job at the end of the queue, as a ratio to the goal (10
 * ms at 1,000 jobs, 100 ms at 10,000), and of a whole-queue survey with 240 shapes, as the daemon does
 * it: the longest slice, as a ratio to the 5 ms that the daemon's loop may be held. Then the same where
 * memory counts too and draws are made by the core on a copy (one draw). */
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

static void submit (struct cluster *c, uint64_t id, const struct job_known *j, int32_t mem,
                    time_us now)
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
    req.task.v[RES_MEM_MB] = mem;
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

struct site {
    struct cred_names names;
    struct policy *policy;
    struct cluster *cluster;
    struct estimator *estimator;
    struct rng rng;
    uint32_t procs;
    uint64_t next_id;
};

static void site_make (struct site *s, uint32_t queue, int32_t mem)
{
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    struct cluster_options options = {0, 0};
    struct arena *arena = arena_create (0);
    struct plan plan;
    struct err err;

    s->procs = queue > 1000 ? 4096 : 1024;
    s->next_id = 1;
    cred_names_init (&s->names);
    rng_seed (&s->rng, queue, 0);
    s->policy = policy_create (&s->names);
    s->policy->reservation_binding = mem ? BINDING_EARLY : BINDING_LATE;
    if (policy_seal (s->policy, &err))
        exit (1);
    s->cluster = cluster_create (s->policy, &options, &err);
    node.configured.v[RES_PROCS] = 1;
    node.configured.v[RES_MEM_MB] = mem;
    for (uint32_t i = 0; i < s->procs; i++)
        (void)cluster_node_add (s->cluster, &node, begin, NULL, &err);
    s->estimator = estimator_create (NULL);
    for (int i = 0; i < 8192; i++) {
        struct job_known j = made_up (&s->rng, s->procs / 4);
        estimator_ended (s->estimator, &j,
                         (duration_us)((double)j.limit * rng_unit (&s->rng) * rng_unit (&s->rng)));
        estimator_arrived (s->estimator, &j,
                           begin - (8192 - i) * (queue > 1000 ? 45 : 180) * US_PER_S);
    }
    while (cluster_job_count (s->cluster, JOB_IDLE) < queue) {
        struct job_known j = made_up (&s->rng, s->procs / 4);
        submit (s->cluster, s->next_id++, &j, mem / 2, begin);
        if (s->next_id % 64 == 0 || cluster_job_count (s->cluster, JOB_IDLE) == queue) {
            (void)plan_compute (s->cluster, begin, arena, &plan, &err);
            (void)plan_commit (s->cluster, &plan, &err);
            arena_reset (arena);
        }
    }
    arena_destroy (arena);
}

static void site_free (struct site *s)
{
    estimator_destroy (s->estimator);
    cluster_destroy (s->cluster);
    policy_destroy (s->policy);
    cred_names_free (&s->names);
}

static void answers (struct site *s, double goal_ms)
{
    enum { TIMES = 9 };
    double ms[TIMES], see[TIMES];
    struct estimate raw = {0};
    struct err err;

    for (int i = 0; i < TIMES; i++) {
        struct job_known j = made_up (&s->rng, s->procs / 4);
        struct req req = {.tasks = j.procs};
        struct job_spec spec = {.id = {s->next_id + 1000},
                                .submit = begin + 60 * US_PER_S,
                                .not_before = TIME_US_NONE,
                                .walltime_limit = j.limit,
                                .req_count = 1,
                                .req = &req};
        memcpy (spec.cred, j.cred, sizeof spec.cred);
        req.task.v[RES_PROCS] = 1;
        duration_us t0 = cpu_us ();
        (void)estimator_see (s->estimator, s->cluster, begin + 60 * US_PER_S, &err);
        see[i] = (double)(cpu_us () - t0) / 1e3;
        if (estimator_ask (s->estimator, ESTIMATE_SIMULATION, s->cluster, (struct job_id){0}, &spec,
                           &raw, &err))
            exit (1);
        ms[i] = (double)(cpu_us () - t0) / 1e3;
    }
    qsort (ms, TIMES, sizeof *ms, by_value);
    qsort (see, TIMES, sizeof *see, by_value);
    printf ("one answer %.2f ms (of it reading the queue %.2f ms), %u draws", ms[TIMES / 2],
            see[TIMES / 2], raw.draws);
    if (goal_ms > 0)
        printf ("; %.2f of the goal of %g ms", ms[TIMES / 2] / goal_ms, goal_ms);
    printf ("\n              ");
}

static void survey (struct site *s, uint32_t draws)
{
    enum { SHAPES = 240, SLICE = 150000 /* local/svc/forecast/forecast.h */ };
    static struct forward_ghost shape[SHAPES];
    struct simulate_options options = {draws, 0, 1, true, false};
    struct simulation *sim = simulation_create ();
    duration_us t0 = cpu_us (), longest;
    uint32_t slices = 1, over = 0;
    struct err err;

    for (uint32_t i = 0; i < SHAPES; i++)
        shape[i] = (struct forward_ghost){1u << i % 12, (1 + i / 12) * 3600 * US_PER_S, 0};
    if (estimator_see (s->estimator, s->cluster, begin + 60 * US_PER_S, &err) ||
        simulation_begin (sim, estimator_scene (s->estimator), estimator_history (s->estimator),
                          s->cluster, UINT32_MAX, shape, SHAPES, &options, &err))
        exit (1);
    longest = cpu_us () - t0;
    for (bool done = false; !done; slices++) {
        duration_us s0 = cpu_us ();
        done = simulation_go (sim, SLICE);
        duration_us took = cpu_us () - s0;
        longest = took > longest ? took : longest;
        over += took > 5000;
    }
    if (simulation_status (sim, &err)) {
        fprintf (stderr, "%s\n", err.text);
        exit (1);
    }
    double all = (double)(cpu_us () - t0) / 1e3;
    printf (
        "all, and %d shapes, %u draw%s: %.0f ms, %.2f ns a unit of work; of %u slices the longest "
        "%.2f ms, %.2f of the 5 ms allowed, %u over it\n",
        SHAPES, draws, draws == 1 ? " by the core" : "s", all,
        all * 1e6 / (double)simulation_work (sim), slices, (double)longest / 1e3,
        (double)longest / 5e3, over);
    simulation_destroy (sim);
}

static void measure (uint32_t queue, int32_t mem, double goal_ms)
{
    struct site s;

    site_make (&s, queue, mem);
    printf ("queue %6u: ", queue);
    if (mem == 0)
        answers (&s, goal_ms);
    survey (&s, mem ? 1 : 40);
    site_free (&s);
}

int main (void)
{
    measure (100, 0, 0);
    measure (1000, 0, 10);
    measure (10000, 0, 100);
    measure (1000, 1024, 0);
    measure (10000, 1024, 0);
    return 0;
}
