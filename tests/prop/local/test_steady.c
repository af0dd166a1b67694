/* A site in its daily work, twice: reservations with ACLs, node sets, licences, soft limits and a
 * deep queue of promises stand from the beginning; from then on jobs only come, start and end. That
 * is where a pass takes over most of the last one's promises. One cluster does, its twin forgets
 * everything before each pass: the same plans, promises and reasons. And it is seen that promises
 * were taken over as they were, on other nodes, and made anew.
 *
 * The first one's passes are made in steps, and things happen between them. A job that is submitted then
 * must be as if it had been after the pass; that is when the twin hears of it. Whatever else happens ends
 * the pass as if it had never begun; so the twin, too, plans only after that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "local/core/pass.h"
#include "tests/prop/local/trace.h"

enum { NODES = 90, ACCOUNTS = 4, LICENCES = 3, SWITCH = 15, STEPS = 60, JOBS_MOST = 600 };

struct site {
    uint64_t seed;
    struct cred_names names;
    struct policy *policy;
    struct cluster *twin[2];
    struct arena *arena[2];
    struct plan plan[2];
    int from, to;              /* of the twins, that hear of what happens */
    uint64_t beside, given_up; /* jobs that came during a pass, passes that an event ended */
    struct job_id refused;     /* in the last pass; 0: none */
    uint64_t next_job;
    uint32_t nodeset;
    bool guarded;
    time_us now;
};

static int64_t pick (struct site *s, int64_t low, int64_t high)
{
    return low + (int64_t)(trace_random (&s->seed) % (uint64_t)(high - low + 1));
}

#define BOTH(call)                                                                                 \
    do {                                                                                           \
        struct err err = {0};                                                                      \
        for (int t = s->from; t < s->to; t++) {                                                    \
            struct cluster *c = s->twin[t];                                                        \
            if ((call) != 0)                                                                       \
                fail_msg ("%s", err.text);                                                         \
        }                                                                                          \
    } while (0)

static void policy_make (struct site *s)
{
    static const enum node_allocation how[] = {NODEALLOC_LASTAVAILABLE,  NODEALLOC_LASTAVAILABLE,
                                               NODEALLOC_FIRSTAVAILABLE, NODEALLOC_FIRSTAVAILABLE,
                                               NODEALLOC_MINRESOURCE,    NODEALLOC_LOCAL};
    struct err err = {0};
    struct policy *p = policy_create (&s->names);
    struct policy_cred *any = policy_cred_edit (p, CRED_ACCOUNT, CRED_DEFAULT);

    p->node_allocation = how[pick (s, 0, 5)];
    p->backfill_policy = (enum backfill_policy)pick (s, 0, 2);
    p->sub_weight[PRIO_PROC] = (double)pick (s, 0, 1);
    p->sub_weight[PRIO_XFACTOR] = pick (s, 0, 1) ? 0.01 : 0;
    p->sub_weight[PRIO_UJOB] = (double)pick (s, -1, 1);
    p->component_weight[PRIO_RES] = 1;
    if (pick (s, 0, 1)) {
        any->limits.active_mask = 1u << LIMIT_PROC;
        any->limits.active[LIMIT_SOFT][LIMIT_PROC] = 90;
        any->limits.active[LIMIT_HARD][LIMIT_PROC] = 200;
    }
    policy_bucket_set (p, 0, (uint32_t)pick (s, 5, 40), NULL, 0);
    if (policy_seal (p, &err) != 0)
        fail_msg ("%s", err.text);
    s->policy = p;
}

static void nodes_make (struct site *s)
{
    for (uint32_t n = 0; n < NODES; n++) {
        struct node_spec spec = {.partition = 1, .speed_ppm = 1000000};
        spec.configured.v[RES_PROCS] = (int32_t)pick (s, 2, 4);
        spec.configured.v[RES_MEM_MB] = (int32_t)pick (s, 4, 8);
        spec.features.word[0] = (uint64_t)pick (s, 0, 3);
        BOTH (cluster_node_add (c, &spec, s->now, NULL, &err));
    }
}

static void switches_make (struct site *s)
{
    struct nodeset all = {.policy = NODESET_ONEOF, .attribute = NODESET_SWITCH, .mandatory = true};
    struct switch_spec list[NODES / SWITCH];
    struct node_id node[NODES];

    for (uint32_t n = 0; n < NODES; n++)
        node[n] = (struct node_id){n};
    for (uint32_t i = 0; i < NODES / SWITCH; i++)
        list[i] = (struct switch_spec){0, SWITCH, node + i * SWITCH};
    BOTH (cluster_switches_set (c, list, NODES / SWITCH, s->now, &err));
    BOTH (cluster_nodeset_define (c, &all, &s->nodeset, &err));
}

/* Whole nodes or parts of them, for an account or for short jobs, now, later, for good. */
static void reservation_make (struct site *s, uint64_t id)
{
    static const uint8_t affinity[] = {AFFINITY_POSITIVE, AFFINITY_NEUTRAL, AFFINITY_NEGATIVE};
    bool account = pick (s, 0, 4) > 0;
    struct acl_entry acl = {.type = account ? CRED_ACCOUNT : ACL_DURATION,
                            .compare = ACL_LE,
                            .affinity = affinity[pick (s, 0, 2)],
                            .value = account ? pick (s, 1, ACCOUNTS) : 20 * US_PER_S};
    struct req req = {.tasks = 0};
    struct rsv_spec spec = {.id = {id},
                            .kind = RSV_ADMIN,
                            .req_count = 1,
                            .req = &req,
                            .acl_count = 1,
                            .acl = &acl,
                            .placed = true,
                            .flags = RSV_FORCED};
    struct placement item[6];
    struct allocation a = {(uint32_t)pick (s, 1, 6), item};
    uint32_t first = (uint32_t)pick (s, 0, NODES - 1);

    req.task.v[RES_PROCS] = (int32_t)pick (s, 1, 2);
    for (uint32_t k = 0; k < a.count; k++)
        item[k] = (struct placement){{(first + k) % NODES}, 1, 0};
    req.tasks = a.count;
    spec.start = s->now + (pick (s, 0, 1) ? pick (s, 1, 300) * US_PER_S : 0);
    spec.end = pick (s, 0, 3) ? spec.start + pick (s, 20, 400) * US_PER_S : TIME_US_MAX;
    if (pick (s, 0, 9) == 0)
        spec.flags |= RSV_SINGLEUSE;
    BOTH (cluster_rsv_create (c, &spec, &a, s->now, &err));
}

static void submit (struct site *s)
{
    struct licence licence = {(uint32_t)pick (s, 0, LICENCES - 1), (int32_t)pick (s, 1, 2)};
    struct req req = {.tasks = (uint32_t)(pick (s, 0, 3) ? pick (s, 1, 12) : pick (s, 10, 60))};
    struct job_spec spec = {.id = {s->next_job++},
                            .submit = s->now,
                            .not_before = TIME_US_NONE,
                            .req_count = 1,
                            .req = &req};

    req.task.v[RES_PROCS] = (int32_t)pick (s, 1, 2);
    req.task.v[RES_MEM_MB] = (int32_t)pick (s, 0, 2);
    req.features.word[0] = pick (s, 0, 4) == 0 ? 1 : 0;
    if (s->guarded && pick (s, 0, 1) == 0) {
        spec.licence = &licence;
        spec.licence_count = 1;
    }
    if (s->guarded && req.tasks < 12 && pick (s, 0, 5) == 0)
        req.nodeset = s->nodeset;
    spec.walltime_limit = pick (s, 5, 100) * US_PER_S;
    for (int k = 0; k < CRED_KINDS; k++)
        spec.cred[k] = CRED_NONE;
    spec.cred[CRED_USER] = (uint32_t)pick (s, 1, 6);
    spec.cred[CRED_ACCOUNT] = (uint32_t)pick (s, 1, ACCOUNTS);
    BOTH (cluster_job_submit (c, &spec, s->now, &err));
}

static void compare (struct site *s)
{
    struct job_id list[JOBS_MOST];
    uint32_t n = cluster_job_list (s->twin[0], JOB_IDLE, list, JOBS_MOST);

    assert_int_equal (s->plan[0].start_count, s->plan[1].start_count);
    assert_int_equal (s->plan[0].reservation_count, s->plan[1].reservation_count);
    assert_int_equal (s->plan[0].hash, s->plan[1].hash);
    for (uint32_t i = 0; i < n && i < JOBS_MOST; i++) {
        struct job_view a, b;
        assert_int_equal (cluster_job_get (s->twin[0], list[i], &a, NULL), 0);
        assert_int_equal (cluster_job_get (s->twin[1], list[i], &b, NULL), 0);
        assert_int_equal (a.priority, b.priority);
        assert_int_equal (a.reserved_start, b.reserved_start);
        if (list[i].v == s->refused.v)
            continue; /* its reason is that of an earlier pass, or of one that was given up */
        assert_int_equal (a.reason.code, b.reason.code);
        assert_int_equal (a.reason.need, b.reason.need);
        assert_int_equal (a.reason.have, b.reason.have);
        assert_int_equal (a.reason.clears, b.reason.clears);
    }
}

static void end_some (struct site *s)
{
    struct job_id list[JOBS_MOST];
    uint32_t n = cluster_job_list (s->twin[s->from], JOB_STARTING, list, JOBS_MOST);

    struct job_id one = n ? list[pick (s, 0, (int64_t)n - 1)] : (struct job_id){0};

    if (n)
        BOTH (cluster_job_end (c, one, s->now, &err));
}

/* Nobody is lost, and nobody is there twice, whatever a pass is doing. */
static void check_all_there (struct site *s, uint32_t jobs)
{
    static const enum job_state state[] = {JOB_IDLE, JOB_STARTING, JOB_RUNNING};
    struct job_id list[JOBS_MOST];
    uint32_t sum = 0;

    for (int i = 0; i < 3; i++) {
        uint32_t n = cluster_job_count (s->twin[0], state[i]);
        assert_int_equal (cluster_job_list (s->twin[0], state[i], list, JOBS_MOST), n);
        sum += n;
    }
    assert_int_equal (sum, jobs);
}

static uint32_t jobs_of (const struct cluster *c)
{
    return cluster_job_count (c, JOB_IDLE) + cluster_job_count (c, JOB_STARTING);
}

/* The first twin's pass, with `came` jobs submitted between its steps. False: then something ended. */
static bool in_steps (struct site *s, uint32_t *came)
{
    static const uint32_t at_most[] = {1, 1, 7, 300};
    uint32_t most = at_most[pick (s, 0, 3)], jobs = jobs_of (s->twin[0]);
    bool more = true, ends = pick (s, 0, 3) == 0;
    int64_t moment = pick (s, 0, 60);
    struct err err = {0};

    *came = 0;
    arena_reset (s->arena[0]);
    assert_int_equal (plan_begin (s->twin[0], s->now, s->arena[0], &s->plan[0], &err), 0);
    for (int64_t step = 0; more; step++) {
        if (plan_step (s->twin[0], most, &more, &err) != 0)
            fail_msg ("%s", err.text);
        if (step % 16 == 0)
            check_all_there (s, jobs + *came);
        if (more && step == moment && ends && cluster_job_count (s->twin[0], JOB_STARTING)) {
            end_some (s);
            assert_int_equal (plan_step (s->twin[0], most, &more, &err), ERR_CONFLICT);
            return false;
        }
        if (more && *came < (uint32_t)(moment % 3) && step % 5 == moment % 5) {
            submit (s);
            ++*came;
        }
    }
    return true;
}

/* In the twin: the same as the first one saw while its pass was made. */
static void catch_up (struct site *s, const struct site *before, uint32_t came, bool ended)
{
    s->seed = before->seed;
    s->next_job = before->next_job;
    s->from = 1;
    s->to = 2;
    (void)pick (s, 0, 3); /* as in_steps does */
    (void)pick (s, 0, 3);
    (void)pick (s, 0, 60);
    for (uint32_t i = 0; i < came; i++)
        submit (s);
    if (ended)
        end_some (s);
    s->from = 0;
    s->beside += came;
    s->given_up += ended;
}

static void commit (struct site *s, int t, bool refuses)
{
    struct err err = {0};

    s->refused.v = 0;
    if (refuses && s->plan[t].start_count) {
        s->refused = s->plan[t].start[0].job;
        s->plan[t].start[0].refused = true;
    }
    if (plan_commit (s->twin[t], &s->plan[t], &err) != 0)
        fail_msg ("%s", err.text);
}

/* Now and then a start is refused between the plan and its commit, as an administrator may. */
static void pass (struct site *s)
{
    bool refuses = pick (s, 0, 9) == 0, over;
    struct site before;
    struct err err = {0};
    uint32_t came;

    do {
        before = *s;
        s->to = 1;
        over = in_steps (s, &came);
        if (over) {
            commit (s, 0, refuses);
            plan_forget (s->twin[1]);
            arena_reset (s->arena[1]);
            if (plan_compute (s->twin[1], s->now, s->arena[1], &s->plan[1], &err) != 0)
                fail_msg ("%s", err.text);
            commit (s, 1, refuses);
        }
        catch_up (s, &before, came, !over);
    } while (!over);
    compare (s);
}

/* Time goes on; who has reached the limit by then ends there, in most lives. */
static void go_on (struct site *s, time_us to, bool punctual)
{
    struct cluster *first = s->twin[0];

    while (punctual && first->run_count && first->run[0].end <= to) {
        struct job_id id = job_at (first, first->run[0].slot)->spec.id;
        s->now = first->run[0].end;
        BOTH (cluster_job_end (c, id, s->now, &err));
    }
    s->now = to;
}

static void live (uint64_t seed, bool guarded, uint64_t seen[5])
{
    int32_t licence[LICENCES] = {2, 3, 9};
    struct site site = {
        .seed = seed, .next_job = 1, .now = 1000 * US_PER_S, .guarded = guarded, .to = 2};
    struct site *s = &site;
    bool punctual;

    cred_names_init (&s->names);
    policy_make (s);
    for (int t = 0; t < 2; t++) {
        s->twin[t] = cluster_create (s->policy, NULL, NULL);
        s->arena[t] = arena_create (0);
    }
    s->twin[1]->planner->plain_counts = true;
    nodes_make (s);
    if (guarded) {
        switches_make (s);
        BOTH (cluster_licences_set (c, licence, LICENCES, s->now, &err));
        for (uint64_t id = 1; id <= 25; id++)
            reservation_make (s, id);
    }
    punctual = pick (s, 0, 5) > 0;
    for (int k = 0; k < 120; k++)
        submit (s);
    for (int step = 0; step < STEPS; step++) {
        pass (s);
        go_on (s, s->now + pick (s, 0, 3) * US_PER_S, punctual);
        if (pick (s, 0, 3))
            end_some (s);
        for (int64_t k = pick (s, 0, 5) - 2; k > 0; k--)
            submit (s);
    }
    seen[0] += s->twin[0]->planner->kept.same;
    seen[1] += s->twin[0]->planner->kept.moved;
    seen[2] += s->twin[0]->planner->kept.made;
    seen[3] += s->beside;
    seen[4] += s->given_up;
    for (int t = 0; t < 2; t++) {
        cluster_destroy (s->twin[t]);
        arena_destroy (s->arena[t]);
    }
    policy_destroy (s->policy);
    cred_names_free (&s->names);
}

static void lives (bool guarded)
{
    const char *from = getenv ("NUI_SEED"), *many = getenv ("NUI_SEEDS");
    uint64_t first = from ? strtoull (from, NULL, 10) : 1;
    uint64_t count = many ? strtoull (many, NULL, 10) : from ? 1 : 25;
    uint64_t seen[5] = {0};

    for (uint64_t seed = first; seed < first + count; seed++) {
        print_message ("\rseed %llu ", (unsigned long long)seed);
        live (seed, guarded, seen);
    }
    print_message (
        "%llu promises as they were, %llu on other nodes, %llu made anew; %llu jobs came "
        "during a pass, %llu passes were given up\n",
        (unsigned long long)seen[0], (unsigned long long)seen[1], (unsigned long long)seen[2],
        (unsigned long long)seen[3], (unsigned long long)seen[4]);
    if (count > 20) {
        assert_true (seen[0] > count * 50);
        assert_true (seen[1] > count);
        assert_true (seen[2] > count * 20);
        assert_true (seen[3] > count * 50);
        assert_true (seen[4] > count * 5);
    }
}

static void test_plain (void **state)
{
    (void)state;
    lives (false);
}

static void test_guarded (void **state)
{
    (void)state;
    lives (true);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_plain),
                                       cmocka_unit_test (test_guarded)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
