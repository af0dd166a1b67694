/* The core against the slow model, on thousands of random small clusters: every start equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/local/model.h"
#include "tests/prop/local/trace.h"

enum { NODES = 7, JOBS = 40 };

struct scene {
    struct model_node node[NODES];
    int node_count;
    struct model_job job[JOBS];
    int job_count;
    struct model_rule rule;
    struct model_block block[NODES];
};

static int64_t pick (uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(trace_random (seed) % (uint64_t)(high - low + 1));
}

static struct scene scene_make (uint64_t seed)
{
    struct scene s = {.node_count = (int)pick (&seed, 1, NODES), .job_count = JOBS};
    bool plain = pick (&seed, 0, 2) == 0;
    int most = plain ? 1 : (int)pick (&seed, 1, 4);
    int64_t at = 0;

    s.rule.late = plain && pick (&seed, 0, 1);
    s.rule.backfill = (enum model_backfill)pick (&seed, 0, 2);
    s.rule.depth = pick (&seed, 0, 1) ? 1 : pick (&seed, 0, 1) ? (int)pick (&seed, 2, 5) : 1000;
    s.rule.longest_first = pick (&seed, 0, 3) == 0;
    s.rule.block_count =
        !s.rule.late && pick (&seed, 0, 2) == 0 ? (int)pick (&seed, 1, s.node_count) : 0;
    for (int b = 0; b < s.rule.block_count;
         b++) { /* each on a node of its own; some without an end */
        s.block[b] =
            (struct model_block){b, pick (&seed, 0, 3) ? pick (&seed, 0, 200) : 0, INT64_MAX};
        if (pick (&seed, 0, 1))
            s.block[b].end = s.block[b].start + pick (&seed, 1, 80);
    }
    for (int n = 0; n < s.node_count; n++)
        s.node[n] = (struct model_node){(int)pick (&seed, 1, most), (int)pick (&seed, 2, 8)};
    for (int i = 0; i < s.job_count; i++) {
        struct model_job *j = &s.job[i];
        int total = 0;
        at += pick (&seed, 0, 3) ? pick (&seed, 0, 12) : 0;
        j->submit = at;
        j->limit = pick (&seed, 1, 30);
        j->run = pick (&seed, 0, 3) ? pick (&seed, 0, j->limit) : j->limit;
        j->procs = plain ? 1 : (int)pick (&seed, 1, 2);
        j->mem = plain ? 0 : (int)pick (&seed, 0, 3);
        for (int n = 0; n < s.node_count; n++) {
            int fit = s.node[n].procs / j->procs;
            if (j->mem && s.node[n].mem / j->mem < fit)
                fit = s.node[n].mem / j->mem;
            total += fit;
        }
        if (total == 0) {
            j->procs = 1;
            j->mem = 0;
            total = s.node_count;
        }
        j->tasks = (int)pick (&seed, 1, total);
    }
    return s;
}

static struct policy *policy_of (const struct scene *s, const struct cred_names *names)
{
    static const enum backfill_policy how[] = {BACKFILL_NONE, BACKFILL_FIRSTFIT, BACKFILL_BESTFIT};
    struct err err = {0};
    struct policy *policy =
        trace_policy (names, how[s->rule.backfill], s->rule.late ? BINDING_LATE : BINDING_EARLY,
                      (uint32_t)s->rule.depth);

    if (s->rule.longest_first)
        policy->backfill_window_order = BFWINDOW_LONGESTFIRST;
    assert_int_equal (policy_seal (policy, &err), 0);
    return policy;
}

/* The nodes, and reservations on some of them that admit nobody. */
static int scene_furnish (void *self, struct cluster *cluster, time_us now, struct err *err)
{
    const struct scene *s = self;
    int rc = 0;

    for (int n = 0; n < s->node_count && rc == 0; n++) {
        struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
        node.configured.v[RES_PROCS] = s->node[n].procs;
        node.configured.v[RES_MEM_MB] = s->node[n].mem;
        rc = cluster_node_add (cluster, &node, now, NULL, err);
    }
    for (int b = 0; b < s->rule.block_count && rc == 0; b++) {
        const struct model_block *block = &s->block[b];
        struct req req = {.tasks = (uint32_t)s->node[block->node].procs};
        struct placement item = {{(uint32_t)block->node}, req.tasks, 0};
        struct allocation on = {1, &item};
        struct rsv_spec rsv = {.id = {1000 + (uint64_t)b},
                               .kind = RSV_ADMIN,
                               .req_count = 1,
                               .req = &req,
                               .start = block->start * US_PER_S,
                               .end =
                                   block->end == INT64_MAX ? TIME_US_MAX : block->end * US_PER_S};
        req.task.v[RES_PROCS] = 1;
        rc = cluster_rsv_create (cluster, &rsv, &on, 0, err);
    }
    return rc;
}

static void scene_roll (void *self, struct cluster *cluster, time_us now)
{
    (void)self;
    (void)cluster;
    (void)now;
}

static void scene_engine (const struct scene *s, const struct policy *policy,
                          struct engine_result *result)
{
    struct node_spec node[NODES];
    uint32_t copies[NODES];
    struct req req[JOBS];
    struct engine_job job[JOBS];
    struct engine_setup setup = {.policy = policy,
                                 .node = node,
                                 .node_copies = copies,
                                 .node_group_count = (uint32_t)s->node_count};
    struct engine_summary summary;
    struct engine_site site = {.self = (void *)s, .furnish = scene_furnish, .roll = scene_roll};
    struct err err = {0};

    if (s->rule.block_count)
        setup.site = &site;
    memset (req, 0, sizeof req);
    memset (job, 0, sizeof job);
    memset (node, 0, sizeof node);
    for (int n = 0; n < s->node_count; n++) {
        node[n].partition = 1;
        node[n].speed_ppm = 1000000;
        node[n].configured.v[RES_PROCS] = s->node[n].procs;
        node[n].configured.v[RES_MEM_MB] = s->node[n].mem;
        copies[n] = 1;
    }
    for (int i = 0; i < s->job_count; i++) {
        req[i].tasks = (uint32_t)s->job[i].tasks;
        req[i].task.v[RES_PROCS] = s->job[i].procs;
        req[i].task.v[RES_MEM_MB] = s->job[i].mem;
        job[i].number = (uint64_t)i + 1;
        job[i].submit = s->job[i].submit * US_PER_S;
        job[i].limit = s->job[i].limit * US_PER_S;
        job[i].run = s->job[i].run * US_PER_S;
        job[i].req_count = 1;
        job[i].req = &req[i];
        for (int k = 0; k < CRED_KINDS; k++)
            job[i].cred[k] = CRED_NONE;
        job[i].cred[CRED_QOS] = CRED_DEFAULT;
    }
    if (engine_run (&setup, job, (uint64_t)s->job_count, result, &summary, &err) != 0)
        fail_msg ("%s", err.text);
}

static void scene_show (const struct scene *s, const struct engine_result *result)
{
    print_message ("backfill %d late %d depth %d longest %d\n", s->rule.backfill, s->rule.late,
                   s->rule.depth, s->rule.longest_first);
    for (int n = 0; n < s->node_count; n++)
        print_message ("node %d: %d procs %d mem\n", n, s->node[n].procs, s->node[n].mem);
    for (int b = 0; b < s->rule.block_count; b++)
        print_message ("reserved: node %d from %lld to %lld\n", s->block[b].node,
                       (long long)s->block[b].start, (long long)s->block[b].end);
    for (int i = 0; i < s->job_count; i++) {
        const struct model_job *j = &s->job[i];
        print_message ("job %d: submit %lld limit %lld run %lld, %d tasks of %d procs %d mem: "
                       "model %lld, core %lld\n",
                       i + 1, (long long)j->submit, (long long)j->limit, (long long)j->run,
                       j->tasks, j->procs, j->mem, (long long)j->start,
                       (long long)(result[i].start / US_PER_S));
    }
}

static void scene_compare (uint64_t seed)
{
    struct scene s = scene_make (seed);
    struct engine_result result[JOBS];
    struct cred_names names;
    struct policy *policy;

    cred_names_init (&names);
    policy = policy_of (&s, &names);
    scene_engine (&s, policy, result);
    s.rule.block = s.block;
    model_run (s.node, s.node_count, s.job, s.job_count, &s.rule);
    for (int i = 0; i < s.job_count; i++) {
        if (result[i].start == (s.job[i].start < 0 ? TIME_US_NONE : s.job[i].start * US_PER_S))
            continue;
        scene_show (&s, result);
        fail_msg ("seed %llu: job %d differs", (unsigned long long)seed, i + 1);
    }
    policy_destroy (policy);
    cred_names_free (&names);
}

static void test_random (void **state)
{
    const char *from = getenv ("NUI_SEED"), *many = getenv ("NUI_SEEDS");
    uint64_t first = from ? strtoull (from, NULL, 10) : 1;
    uint64_t count = many ? strtoull (many, NULL, 10) : from ? 1 : 1500;

    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++)
        scene_compare (seed);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_random)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
