/* Told how long everything runs and what comes, a forward simulation must say when each job starts,
 * to the microsecond: forward.h where nodes are bound late, replay.h everywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local/estimate/forward.h"
#include "local/estimate/replay.h"
#include "local/estimate/scene.h"
#include "tests/prop/local/trace.h"

struct oracle {
    const struct trace *trace;
    struct scene scene;
    struct forward *forward;
    struct replay *replay;
    bool replaying;
    uint64_t every;
    uint64_t next; /* arrival */
    time_us *said; /* of job i; TIME_US_NONE: not asked */
    time_us *starts;
};

static bool coming (void *self, time_us *at, struct forward_job *out)
{
    struct oracle *o = self;
    const struct engine_job *j;

    if (o->next == o->trace->count)
        return false;
    j = &o->trace->job[o->next++];
    *at = j->submit;
    *out = (struct forward_job){j->procs, j->limit, j->run, 0, 0};
    return true;
}

static bool coming_known (void *self, time_us *at, struct forward_job *out, struct job_known *known)
{
    struct oracle *o = self;
    const struct engine_job *j = &o->trace->job[o->next];

    if (!coming (self, at, out))
        return false;
    memcpy (known->cred, j->cred, sizeof known->cred);
    known->procs = j->procs;
    known->limit = j->limit;
    return true;
}

/* Numbers of the made-up log are places + 1. */
static const struct engine_job *job_of (const struct oracle *o, struct job_id id)
{
    return &o->trace->job[id.v - 1];
}

static void arrived (void *self, struct cluster *cluster, uint64_t index, time_us now)
{
    struct oracle *o = self;
    struct scene *s = &o->scene;
    struct err err = {0};
    struct forward_run *run;
    struct forward_job *job;

    if (index % o->every)
        return;
    assert_int_equal (scene_read (s, cluster, now, &err), 0);
    assert_true (o->replaying || s->counted);
    run = calloc (s->running_count + 1, sizeof *run);
    job = calloc (s->waiting_count + 1, sizeof *job);
    o->starts = realloc (o->starts, (s->waiting_count + 1) * sizeof *o->starts);
    for (uint32_t i = 0; i < s->running_count; i++)
        run[i] = (struct forward_run){s->running[i].limit_end,
                                      s->running[i].start + job_of (o, s->running[i].id)->run,
                                      s->running[i].job.procs};
    for (uint32_t i = 0; i < s->waiting_count; i++)
        job[i] = (struct forward_job){s->waiting[i].job.procs, s->waiting[i].job.limit,
                                      job_of (o, s->waiting[i].id)->run, s->waiting[i].prio,
                                      s->waiting[i].slope};
    struct forward_setup setup = {.now = now,
                                  .procs_free = s->procs_free,
                                  .depth = s->depth,
                                  .backfill = s->policy->backfill_policy != BACKFILL_NONE,
                                  .best_fit = s->policy->backfill_policy == BACKFILL_BESTFIT,
                                  .run = run,
                                  .run_count = s->running_count,
                                  .job = job,
                                  .job_count = s->waiting_count,
                                  .target = scene_find (s, (struct job_id){index + 1}),
                                  .next = coming,
                                  .self = o,
                                  .until = TIME_US_MAX - 1};
    o->next = index + 1;
    if (o->replaying) {
        assert_int_equal (replay_take (o->replay, s, cluster, &err), 0);
        replay_begin (o->replay, &setup, coming_known, o->starts);
        while (!replay_go (o->replay, 5000)) /* in slices, as a daemon does */
            ;
    } else {
        forward_begin (o->forward, &setup, o->starts);
        while (!forward_go (o->forward, 300))
            ;
        assert_int_equal (forward_found (o->forward), o->starts[setup.target]);
    }
    o->said[index] = o->starts[setup.target];
    free (run);
    free (job);
}

static void play (enum backfill_policy backfill, enum reservation_binding binding, uint32_t depth,
                  int64_t max_job, bool replaying, uint64_t jobs, uint64_t every, uint64_t seed)
{
    struct trace trace = trace_generate (jobs, 48, 1.0, seed);
    struct cred_names names;
    struct oracle o = {.trace = &trace, .replaying = replaying, .every = every};
    struct engine_result *result = calloc (jobs + 1, sizeof *result);
    struct engine_summary summary;
    struct err err = {0};
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    uint64_t asked = 0, wrong = 0;

    cred_names_init (&names);
    struct policy *policy = trace_policy (&names, backfill, binding, depth);
    if (max_job) {
        struct policy_cred *all = policy_cred_edit (policy, CRED_USER, CRED_DEFAULT);
        all->limits.active[LIMIT_SOFT][LIMIT_JOB] = all->limits.active[LIMIT_HARD][LIMIT_JOB] =
            max_job;
        all->limits.active_mask |= 1u << LIMIT_JOB;
    }
    assert_int_equal (policy_seal (policy, &err), 0);
    node.configured.v[RES_PROCS] = 1;
    o.said = calloc (jobs + 1, sizeof *o.said);
    o.forward = forward_create ();
    o.replay = replay_create ();
    scene_init (&o.scene);
    for (uint64_t i = 0; i < jobs; i++)
        assert_int_equal (trace.job[i].number, i + 1);
    struct engine_setup setup = {.policy = policy,
                                 .node = &node,
                                 .node_copies = &trace.procs,
                                 .node_group_count = 1,
                                 .hooks = {.self = &o, .arrived = arrived}};
    assert_int_equal (engine_run (&setup, trace.job, jobs, result, &summary, &err), 0);
    for (uint64_t i = 0; i < jobs; i += every) {
        asked++;
        if (o.said[i] != result[i].start && wrong++ < 3)
            print_error ("seed %llu job %llu: said %lld, started %lld\n", (unsigned long long)seed,
                         (unsigned long long)i + 1, (long long)o.said[i],
                         (long long)result[i].start);
    }
    assert_true (asked > 20);
    assert_int_equal (wrong, 0);
    forward_destroy (o.forward);
    replay_destroy (o.replay);
    scene_free (&o.scene);
    free (o.said);
    free (o.starts);
    free (result);
    policy_destroy (policy);
    cred_names_free (&names);
    trace_free (&trace);
}

static void counted_is_the_core (void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        play (BACKFILL_FIRSTFIT, BINDING_LATE, 1, 0, false, 600, 3, seed);
        play (BACKFILL_FIRSTFIT, BINDING_LATE, 4, 0, false, 600, 3, seed + 10);
        play (BACKFILL_BESTFIT, BINDING_LATE, 1, 0, false, 600, 3, seed + 20);
        play (BACKFILL_NONE, BINDING_LATE, 1, 0, false, 200, 3, seed + 30);
    }
}

static void copy_is_the_core (void **state)
{
    (void)state;
    play (BACKFILL_FIRSTFIT, BINDING_EARLY, 1, 0, true, 300, 7, 1);
    play (BACKFILL_FIRSTFIT, BINDING_EARLY, 4, 0, true, 300, 7, 2);
    play (BACKFILL_BESTFIT, BINDING_EARLY, 2, 0, true, 300, 7, 3);
    play (BACKFILL_FIRSTFIT, BINDING_LATE, 2, 3, true, 300, 7, 4); /* MAXJOB 3 for each user */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (counted_is_the_core),
        cmocka_unit_test (copy_is_the_core),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
