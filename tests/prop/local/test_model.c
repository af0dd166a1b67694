/* test_model: the core against the slow model, on thousands of random small clusters with limits and
 * reservations of every kind, and jobs that can never run: every start equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/local/scene.h"

static void scene_engine (struct scene *s, const struct policy *policy,
                          struct engine_result *result)
{
    struct req req[SCENE_JOBS];
    struct engine_job job[SCENE_JOBS];
    struct engine_site site = {.self = s, .furnish = scene_furnish, .roll = scene_roll};
    struct engine_site bare = {.self = s, .furnish = scene_furnish};
    struct engine_setup setup = {.policy = policy, .site = s->rule.block_count ? &site : &bare};
    struct engine_summary summary;
    struct err err = {0};

    scene_jobs (s, job, req);
    if (engine_run (&setup, job, (uint64_t)s->job_count, result, &summary, &err) != 0)
        fail_msg ("%s", err.text);
}

static void scene_compare (uint64_t seed)
{
    struct scene *s = scene_make (seed);
    struct engine_result result[SCENE_JOBS];
    struct policy *policy = scene_policy (s);

    scene_engine (s, policy, result);
    model_run (s->node, s->node_count, s->job, s->job_count, &s->rule);
    for (int i = 0; i < s->job_count; i++) {
        if (result[i].start == (s->job[i].start < 0 ? TIME_US_NONE : scene_time (s->job[i].start)))
            continue;
        scene_show (s, result);
        fail_msg ("seed %llu: job %d differs", (unsigned long long)seed, i + 1);
    }
    policy_destroy (policy);
    scene_free (s);
}

static void test_random (void **state)
{
    const char *from = getenv ("NUI_SEED"), *many = getenv ("NUI_SEEDS");
    uint64_t first = from ? strtoull (from, NULL, 10) : 1;
    uint64_t count = many ? strtoull (many, NULL, 10) : from ? 1 : 1500;

    (void)state;
    setenv ("TZ", "UTC", 1); /* SRCFG goes by the local calendar */
    for (uint64_t seed = first; seed < first + count; seed++)
        scene_compare (seed);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_random)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
