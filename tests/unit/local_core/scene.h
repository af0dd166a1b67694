/* scene: a small cluster for the unit tests of the local core. Times are seconds. */
#ifndef NUI_TESTS_UNIT_LOCAL_CORE_SCENE_H
#define NUI_TESTS_UNIT_LOCAL_CORE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "local/core/plan.h"
#include "local/core/query.h"

#define S US_PER_S

struct scene {
    struct cred_names names;
    struct policy *policy;
    struct cluster *c;
    struct arena *arena;
    struct plan plan;
    struct err err;
};

static inline void scene_policy (struct scene *s)
{
    memset (s, 0, sizeof *s);
    cred_names_init (&s->names);
    s->policy = policy_create (&s->names);
    s->policy->node_allocation = NODEALLOC_FIRSTAVAILABLE;
    s->arena = arena_create (0);
}

static inline void scene_nodes (struct scene *s, uint32_t nodes, int32_t procs, int32_t mem_mb)
{
    struct node_spec spec = {.partition = 1, .speed_ppm = 1000000};

    assert_int_equal (policy_seal (s->policy, &s->err), 0);
    s->c = cluster_create (s->policy, NULL, &s->err);
    assert_non_null (s->c);
    spec.configured.v[RES_PROCS] = procs;
    spec.configured.v[RES_MEM_MB] = mem_mb;
    for (uint32_t i = 0; i < nodes; i++)
        assert_int_equal (cluster_node_add (s->c, &spec, 0, NULL, &s->err), 0);
}

static inline void scene_free (struct scene *s)
{
    cluster_destroy (s->c);
    policy_destroy (s->policy);
    cred_names_free (&s->names);
    arena_destroy (s->arena);
}

static inline struct req scene_req (uint32_t tasks, int32_t procs, int32_t mem_mb)
{
    struct req req = {.tasks = tasks};

    req.task.v[RES_PROCS] = procs;
    req.task.v[RES_MEM_MB] = mem_mb;
    return req;
}

static inline struct job_spec scene_job (uint64_t id, int64_t submit, int64_t limit,
                                         const struct req *req)
{
    struct job_spec spec = {.id = {id},
                            .submit = submit * S,
                            .not_before = TIME_US_NONE,
                            .walltime_limit = limit * S,
                            .req_count = 1,
                            .req = req};

    for (int k = 0; k < CRED_KINDS; k++)
        spec.cred[k] = CRED_NONE;
    spec.cred[CRED_QOS] = CRED_DEFAULT;
    return spec;
}

/* A job of one-processor tasks. */
static inline void scene_submit (struct scene *s, uint64_t id, uint32_t tasks, int64_t limit,
                                 int64_t now)
{
    struct req req = scene_req (tasks, 1, 0);
    struct job_spec spec = scene_job (id, now, limit, &req);

    assert_int_equal (cluster_job_submit (s->c, &spec, now * S, &s->err), 0);
}

static inline void scene_compute (struct scene *s, int64_t now)
{
    arena_reset (s->arena);
    assert_int_equal (plan_compute (s->c, now * S, s->arena, &s->plan, &s->err), 0);
}

static inline void scene_pass (struct scene *s, int64_t now)
{
    scene_compute (s, now);
    assert_int_equal (plan_commit (s->c, &s->plan, &s->err), 0);
}

static inline struct job_view scene_view (struct scene *s, uint64_t id)
{
    struct job_view view;

    assert_int_equal (cluster_job_get (s->c, (struct job_id){id}, &view, &s->err), 0);
    return view;
}

static inline bool scene_runs (struct scene *s, uint64_t id)
{
    return scene_view (s, id).state != JOB_IDLE;
}

static inline void scene_end (struct scene *s, uint64_t id, int64_t now)
{
    assert_int_equal (cluster_job_end (s->c, (struct job_id){id}, now * S, &s->err), 0);
}

#endif
