/* Why a job waits: limits with value, usage and when they clear; a verdict for each node; priority by
 * its parts. */
#include "local/core/explain.h"
#include "tests/unit/local_core/scene.h"

static uint32_t alice (struct scene *s)
{
    return strtab_intern (s->names.tab[CRED_USER], "alice");
}

static void submit_as_alice (struct scene *s, uint64_t id, const struct req *req, int64_t limit,
                             int64_t now)
{
    struct job_spec spec = scene_job (id, now, limit, req);
    spec.cred[CRED_USER] = alice (s);
    assert_int_equal (cluster_job_submit (s->c, &spec, now * S, &s->err), 0);
}

static void limit_max (struct scene *s, enum limit_kind kind, int64_t soft, int64_t hard)
{
    struct policy_cred *cred = policy_cred_edit (s->policy, CRED_USER, alice (s));
    cred->limits.active_mask |= 1u << kind;
    cred->limits.active[LIMIT_SOFT][kind] = soft;
    cred->limits.active[LIMIT_HARD][kind] = hard;
}

/* Four processors of eight; two jobs end after 100 and 300 s; the third asks three. */
static void limit_with_usage_and_end (void **state)
{
    struct scene s;
    struct explained_limit hit;
    struct req two = scene_req (2, 1, 0), three = scene_req (3, 1, 0), one = scene_req (1, 1, 0);
    (void)state;
    scene_policy (&s);
    limit_max (&s, LIMIT_PROC, 4, 5);
    scene_nodes (&s, 8, 1, 0);
    submit_as_alice (&s, 1, &two, 300, 0);
    submit_as_alice (&s, 2, &two, 100, 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 1) && scene_runs (&s, 2));
    submit_as_alice (&s, 3, &three, 50, 10);
    scene_pass (&s, 10);
    assert_true (explain_limit (s.c, (struct job_id){3}, LIMIT_HARD, 10 * S, &hit));
    assert_int_equal (hit.violation.value, 5);
    assert_int_equal (hit.violation.usage, 4);
    assert_int_equal (hit.violation.request, 3);
    assert_int_equal (hit.clears, 100 * S);
    submit_as_alice (&s, 4, &one, 50, 10);
    assert_false (explain_limit (s.c, (struct job_id){4}, LIMIT_HARD, 10 * S, &hit));
    assert_true (explain_limit (s.c, (struct job_id){4}, LIMIT_SOFT, 10 * S, &hit));
    assert_false (explain_limit (s.c, (struct job_id){1}, LIMIT_HARD, 10 * S, &hit)); /* runs */
    uint32_t cred[CRED_KINDS] = {alice (&s), CRED_NONE, CRED_NONE, CRED_NONE, CRED_NONE};
    assert_false (explain_cred_limit (s.c, cred, 10 * S, &hit)); /* a fifth is allowed */
    scene_free (&s);
}

static void limit_that_never_clears (void **state)
{
    struct scene s;
    struct explained_limit hit;
    struct req six = scene_req (6, 1, 0);
    (void)state;
    scene_policy (&s);
    limit_max (&s, LIMIT_PROC, 5, 5);
    scene_nodes (&s, 8, 1, 0);
    submit_as_alice (&s, 1, &six, 50, 0);
    assert_true (explain_limit (s.c, (struct job_id){1}, LIMIT_HARD, 0, &hit));
    assert_int_equal (hit.clears, TIME_US_NONE);
    scene_free (&s);
}

static void node_update (struct scene *s, uint32_t node, int32_t procs, int32_t mem, bool feature)
{
    struct node_spec spec = {.partition = 1, .speed_ppm = 1000000};
    spec.configured.v[RES_PROCS] = procs;
    spec.configured.v[RES_MEM_MB] = mem;
    spec.features.word[0] = feature;
    assert_int_equal (cluster_node_update (s->c, (struct node_id){node}, &spec, 0, &s->err), 0);
}

/* One node for each verdict. */
static void a_verdict_for_each_node (void **state)
{
    static const enum node_verdict want[] = {
        NODE_REJECT_STATE, NODE_REJECT_BUSY,   NODE_REJECT_RESERVED, NODE_REJECT_STATE,
        NODE_REJECT_CPU,   NODE_REJECT_MEMORY, NODE_REJECT_FEATURES, NODE_ACCEPTS};
    struct scene s;
    struct explained_nodes nodes;
    struct req fill = scene_req (4, 1, 0), some = scene_req (3, 1, 0), soon = scene_req (4, 1, 0);
    struct req asks = scene_req (9, 2, 1000);
    struct placement at[3] = {{{0}, 4, 0}, {{1}, 3, 0}, {{2}, 4, 0}};
    struct allocation on[3] = {{1, &at[0]}, {1, &at[1]}, {1, &at[2]}};
    struct rsv_spec rsv = {.id = {77},
                           .kind = RSV_COURTESY,
                           .start = 500 * S,
                           .end = 900 * S,
                           .req_count = 1,
                           .req = &soon};
    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 8, 4, 4000);
    for (uint32_t n = 0; n < 8; n++)
        node_update (&s, n, n == 4 ? 1 : 4, n == 5 ? 500 : 4000, n != 6);
    struct job_spec spec = scene_job (1, 0, 1000, &fill);
    assert_int_equal (cluster_job_submit (s.c, &spec, 0, &s.err), 0);
    assert_int_equal (cluster_job_start (s.c, (struct job_id){1}, &on[0], 0, 0, &s.err), 0);
    spec = scene_job (2, 0, 1000, &some);
    assert_int_equal (cluster_job_submit (s.c, &spec, 0, &s.err), 0);
    assert_int_equal (cluster_job_start (s.c, (struct job_id){2}, &on[1], 0, 0, &s.err), 0);
    assert_int_equal (cluster_rsv_create (s.c, &rsv, &on[2], 0, &s.err), 0);
    assert_int_equal (cluster_node_state_set (s.c, (struct node_id){3}, NODE_DRAINED, 0, &s.err),
                      0);
    asks.features.word[0] = 1;
    spec = scene_job (3, 0, 600, &asks);
    assert_int_equal (cluster_job_submit (s.c, &spec, 0, &s.err), 0);
    assert_int_equal (explain_nodes (s.c, (struct job_id){3}, 0, 0, s.arena, &nodes, &s.err), 0);
    for (uint32_t n = 0; n < 8; n++)
        if (nodes.verdict[n] != want[n])
            fail_msg ("node %u: %s, not %s", n,
                      node_verdict_name ((enum node_verdict)nodes.verdict[n]),
                      node_verdict_name (want[n]));
    assert_int_equal (nodes.count[NODE_REJECT_STATE], 2);
    assert_int_equal (nodes.tasks[7], 2);
    assert_int_equal (nodes.feasible_procs, 4);
    assert_int_equal (nodes.idle_procs, 1 + 4 + 1 + 4 + 4 + 4);
    assert_int_equal (nodes.earliest, TIME_US_NONE); /* nine such tasks never fit */
    assert_int_equal (explain_nodes (s.c, (struct job_id){1}, 0, 0, s.arena, &nodes, &s.err),
                      ERR_CONFLICT); /* it runs */
    scene_free (&s);
}

/* A promise of its own is not in a job's way, and the estimate is after what runs. */
static void own_reservation_is_not_in_the_way (void **state)
{
    struct scene s;
    struct explained_nodes nodes;
    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 1, 0);
    scene_submit (&s, 1, 1, 100, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 2, 2, 50, 0);
    scene_pass (&s, 1);
    assert_int_equal (scene_view (&s, 2).reserved_start, 100 * S);
    assert_int_equal (explain_nodes (s.c, (struct job_id){2}, 0, S, s.arena, &nodes, &s.err), 0);
    assert_int_equal (nodes.verdict[1], NODE_ACCEPTS);
    assert_int_equal (nodes.earliest, 100 * S);
    scene_free (&s);
}

static void priority_by_its_parts (void **state)
{
    struct scene s;
    struct priority_explained parts;
    struct explained_job job;
    (void)state;
    scene_policy (&s);
    s.policy->sub_weight[PRIO_QUEUETIME] = 2;
    s.policy->component_weight[PRIO_SERV] = 3;
    scene_nodes (&s, 1, 1, 0);
    scene_submit (&s, 1, 1, 100, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 2, 1, 100, 0);
    scene_pass (&s, 60);
    assert_int_equal (explain_priority (s.c, (struct job_id){2}, 600 * S, &parts, NULL, &s.err), 0);
    assert_true (parts.factor[PRIO_QUEUETIME] == 10);
    assert_true (parts.sub[PRIO_QUEUETIME] == 20);
    assert_true (parts.component[PRIO_SERV] == 60);
    assert_int_equal (parts.priority, 60);
    assert_int_equal (
        cluster_job_system_priority_set (s.c, (struct job_id){2}, 7, true, 600 * S, &s.err), 0);
    assert_int_equal (explain_job (s.c, (struct job_id){2}, &job, &s.err), 0);
    assert_true (job.system_absolute);
    assert_int_equal (job.system_priority, 7);
    assert_int_equal (explain_job (s.c, (struct job_id){99}, &job, &s.err), ERR_NOT_FOUND);
    scene_free (&s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (limit_with_usage_and_end),
        cmocka_unit_test (limit_that_never_clears),
        cmocka_unit_test (a_verdict_for_each_node),
        cmocka_unit_test (own_reservation_is_not_in_the_way),
        cmocka_unit_test (priority_by_its_parts),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
