/* What the daemon asks: earliest start, start intervals, exact slots, windows, tables. */
#include "local/core/copy.h"
#include "tests/unit/local_core/scene.h"

/* Four nodes of two processors; job 1 has nodes 0 and 1 whole until 100 s. */
static void busy (struct scene *s)
{
    scene_policy (s);
    scene_nodes (s, 4, 2, 1000);
    scene_submit (s, 1, 4, 100, 0);
    scene_pass (s, 0);
    assert_true (scene_runs (s, 1));
    assert_int_equal (scene_view (s, 1).allocation.count, 2);
}

static struct query ask (const struct req *req, int64_t duration)
{
    return (struct query){.req_count = 1,
                          .req = req,
                          .duration = duration * S,
                          .from = TIME_US_NONE,
                          .until = TIME_US_MAX,
                          .queue = true};
}

static void test_earliest (void **state)
{
    struct scene s;
    struct req four = scene_req (4, 1, 0), six = scene_req (6, 1, 0), nine = scene_req (9, 1, 0);
    struct query q = ask (&four, 50);
    struct slot slot;

    (void)state;
    busy (&s);
    assert_int_equal (query_earliest (s.c, &q, 10 * S, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, 10 * S);
    assert_int_equal (slot.allocation.count, 2);
    assert_int_equal (slot.allocation.item[0].node.v, 2);
    q = ask (&six, 50);
    assert_int_equal (query_earliest (s.c, &q, 10 * S, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, 100 * S);
    assert_int_equal (slot.reason.code, REASON_RESOURCES);
    assert_int_equal (slot.reason.need, 6);
    assert_int_equal (slot.reason.have, 4);
    assert_int_equal (slot.reason.clears, 100 * S);
    q = ask (&nine, 50);
    assert_int_equal (query_earliest (s.c, &q, 10 * S, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, TIME_US_NONE);
    assert_int_equal (slot.reason.code, REASON_NEVER_FITS);
    scene_free (&s);
}

static struct rsv_spec hold_spec (uint64_t id, enum rsv_kind kind, int64_t start, int64_t end,
                                  const struct req *req)
{
    return (struct rsv_spec){
        .id = {id}, .kind = kind, .start = start * S, .end = end * S, .req_count = 1, .req = req};
}

/* A courtesy hold at an exact slot: nobody gets its nodes, nobody is promised them. */
static void test_hold (void **state)
{
    struct scene s;
    struct req four = scene_req (4, 1, 0), two = scene_req (2, 1, 0);
    struct query q = ask (&four, 100);
    struct rsv_spec hold = hold_spec (7, RSV_COURTESY, 50, 150, &four);
    struct slot slot;
    struct interval *interval;
    uint32_t count;
    uint64_t version;
    bool granted;

    (void)state;
    busy (&s);
    assert_int_equal (query_slot (s.c, &q, 50 * S, 10 * S, s.arena, &granted, &slot, &s.err), 0);
    assert_true (granted);
    version = cluster_version (s.c);
    assert_int_equal (cluster_rsv_create (s.c, &hold, &slot.allocation, 10 * S, &s.err), 0);
    assert_true (cluster_version (s.c) > version);
    hold.id.v = 8; /* the same nodes again */
    assert_int_equal (cluster_rsv_create (s.c, &hold, &slot.allocation, 10 * S, &s.err),
                      ERR_CONFLICT);
    assert_int_equal (query_slot (s.c, &q, 50 * S, 10 * S, s.arena, &granted, &slot, &s.err), 0);
    assert_false (granted);
    assert_int_equal (slot.start, 100 * S); /* the counter-offer: when job 1 ends */
    q = ask (&two, 30);
    assert_int_equal (query_intervals (s.c, &q, 10 * S, 8, s.arena, &interval, &count, &s.err), 0);
    assert_int_equal (count, 2); /* up to 20, so as to end by 50; then from 100 on */
    assert_int_equal (interval[0].begin, 10 * S);
    assert_int_equal (interval[0].end, 20 * S);
    assert_int_equal (interval[1].begin, 100 * S);
    assert_int_equal (interval[1].end, TIME_US_MAX);
    scene_submit (&s, 2, 2, 41, 10); /* one second too long */
    scene_submit (&s, 3, 2, 40, 10);
    scene_pass (&s, 10);
    assert_false (scene_runs (&s, 2));
    assert_true (scene_runs (&s, 3));
    assert_int_equal (cluster_rsv_release (s.c, (struct rsv_id){7}, 12 * S, &s.err), 0);
    scene_pass (&s, 12);
    assert_true (scene_runs (&s, 2));
    scene_free (&s);
}

/* Each alone could start now; together they are counted one after the other, and nothing stays taken. */
static void test_together (void **state)
{
    struct scene s;
    struct req two = scene_req (2, 1, 0);
    struct query_member member[3];
    struct query_set set;
    struct slot slot;

    (void)state;
    busy (&s);
    for (int i = 0; i < 3; i++)
        member[i] = (struct query_member){.query = ask (&two, 50)};
    for (int again = 0; again < 2; again++) {
        assert_int_equal (
            query_set (s.c, member, 3, 10 * S, 1000 * S, 4, 10 * S, s.arena, &set, &s.err), 0);
        assert_int_equal (set.looked, 3);
        assert_int_equal (set.until, 1000 * S);
        assert_int_equal (set.count, 2); /* two until job 1 ends, then all three */
        assert_int_equal (set.step[0].begin, 10 * S);
        assert_int_equal (set.step[0].end, 100 * S - 1);
        assert_int_equal (set.step[0].members, 2);
        assert_int_equal (set.step[1].begin, 100 * S);
        assert_int_equal (set.step[1].end, 1000 * S);
        assert_int_equal (set.step[1].members, 3);
    }
    /* The third begins when job 1 has ended, if the common moment is 10 s or later. */
    member[2].offset = 90 * S;
    assert_int_equal (query_set (s.c, member, 3, 0, 1000 * S, 1, 0, s.arena, &set, &s.err), 0);
    assert_int_equal (set.step[0].begin, 0); /* the others have ended by then */
    assert_int_equal (set.step[0].members, 3);
    member[2].offset = 40 * S;
    assert_int_equal (query_set (s.c, member, 3, 0, 1000 * S, 1, 0, s.arena, &set, &s.err), 0);
    assert_int_equal (set.step[0].members, 2);
    assert_int_equal (set.step[0].end, 60 * S - 1);
    assert_int_equal (set.step[1].members, 3);
    /* So many spans at which all fit are enough. */
    assert_int_equal (query_set (s.c, member, 1, 0, 1000 * S, 1, 0, s.arena, &set, &s.err), 0);
    assert_int_equal (set.count, 1);
    struct query four = ask (&(struct req){.tasks = 4, .task = two.task}, 10);
    assert_int_equal (query_earliest (s.c, &four, 10 * S, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, 10 * S);
    scene_free (&s);
}

static bool slot_at (struct scene *s, const struct query *q, int64_t at)
{
    struct slot slot;
    bool granted = false;

    assert_int_equal (query_slot (s->c, q, at * S, 10 * S, s->arena, &granted, &slot, &s->err), 0);
    return granted;
}

/* Four processors from 120 s on, and the same job wants six from 100 s, over its own place: only what is more is taken
 * besides, and nobody else finds room in either place while both stand. */
static void test_instead (void **state)
{
    struct scene s;
    struct req four = scene_req (4, 1, 0), six = scene_req (6, 1, 0), two = scene_req (2, 1, 0),
               one = scene_req (1, 1, 0);
    struct query q = ask (&four, 100), own = ask (&six, 100), small = ask (&two, 10),
                 least = ask (&one, 10);
    struct rsv_spec old = hold_spec (7, RSV_COURTESY, 120, 220, &four),
                    fresh = hold_spec (8, RSV_COURTESY, 100, 200, &six);
    struct slot slot;
    bool granted;

    (void)state;
    busy (&s);
    old.whose = 7;
    assert_int_equal (query_slot (s.c, &q, 120 * S, 10 * S, s.arena, &granted, &slot, &s.err), 0);
    assert_int_equal (cluster_rsv_create (s.c, &old, &slot.allocation, 10 * S, &s.err), 0);
    assert_int_equal (cluster_rsv_commit (s.c, old.id, 10 * S, &s.err), 0);
    assert_false (slot_at (&s, &own, 100)); /* it is in its own way */
    own.instead = 9;
    assert_false (slot_at (&s, &own, 100)); /* that is another's */
    own.instead = 7;
    assert_int_equal (query_slot (s.c, &own, 100 * S, 10 * S, s.arena, &granted, &slot, &s.err), 0);
    assert_true (granted);
    fresh.whose = 8;
    assert_int_equal (cluster_rsv_create (s.c, &fresh, &slot.allocation, 10 * S, &s.err),
                      ERR_CONFLICT);
    fresh.instead = 8;
    assert_int_equal (cluster_rsv_create (s.c, &fresh, &slot.allocation, 10 * S, &s.err),
                      ERR_INVALID);
    fresh.instead = 7;
    assert_int_equal (cluster_rsv_create (s.c, &fresh, &slot.allocation, 10 * S, &s.err), 0);
    assert_true (slot_at (&s, &small, 100)); /* six of eight */
    assert_true (slot_at (&s, &small, 150)); /* not ten */
    small.req = &(struct req){.tasks = 3, .task = two.task};
    assert_false (slot_at (&s, &small, 100));
    assert_false (slot_at (&s, &small, 150));
    assert_true (slot_at (&s, &small, 205)); /* four of the first place */
    /* A second part that comes instead of the same finds it used. */
    struct query third = ask (&four, 100);
    third.instead = 7;
    assert_false (slot_at (&s, &third, 100));
    assert_int_equal (cluster_rsv_release (s.c, old.id, 10 * S, &s.err), 0);
    small.req = &two;
    assert_true (slot_at (&s, &small, 150));
    small.req = &(struct req){.tasks = 3, .task = two.task};
    assert_false (slot_at (&s, &small, 150)); /* the new one has all of it */
    assert_true (slot_at (&s, &least, 205));
    assert_int_equal (cluster_rsv_release (s.c, fresh.id, 10 * S, &s.err), 0);
    assert_true (slot_at (&s, &small, 150));
    scene_free (&s);
}

/* A firm reservation starts the job that names it, at its start, and is used up. */
static void test_firm (void **state)
{
    struct scene s;
    struct req four = scene_req (4, 1, 0);
    struct query q = ask (&four, 100);
    struct rsv_spec hold = hold_spec (7, RSV_COURTESY, 50, 150, &four);
    struct job_spec job = scene_job (5, 10, 100, &four);
    struct slot slot;
    struct rsv_view view;
    bool granted;

    (void)state;
    busy (&s);
    assert_int_equal (query_slot (s.c, &q, 50 * S, 10 * S, s.arena, &granted, &slot, &s.err), 0);
    assert_int_equal (cluster_rsv_create (s.c, &hold, &slot.allocation, 10 * S, &s.err), 0);
    job.reservation.v = 7;
    job.holds = HOLD_TOKEN;
    assert_int_equal (cluster_job_submit (s.c, &job, 10 * S, &s.err), 0);
    scene_pass (&s, 50); /* a lease: not even for its own job */
    assert_false (scene_runs (&s, 5));
    assert_int_equal (cluster_job_hold_set (s.c, (struct job_id){5}, 0, 50 * S, &s.err), 0);
    scene_pass (&s, 50);
    assert_false (scene_runs (&s, 5));
    assert_int_equal (scene_view (&s, 5).reason.code, REASON_RESERVATION);
    assert_int_equal (cluster_rsv_commit (s.c, (struct rsv_id){7}, 50 * S, &s.err), 0);
    assert_int_equal (cluster_rsv_commit (s.c, (struct rsv_id){7}, 50 * S, &s.err), 0);
    scene_pass (&s, 50);
    assert_true (scene_runs (&s, 5));
    assert_int_equal (s.plan.start[0].phase, PLAN_RESERVED);
    assert_int_equal (scene_view (&s, 5).allocation.item[0].node.v, 2);
    assert_int_equal (cluster_rsv_get (s.c, (struct rsv_id){7}, &view, &s.err), ERR_NOT_FOUND);
    scene_free (&s);
}

/* The paper's figure 3: two running jobs and a reservation give two windows, nested. */
static void test_windows (void **state)
{
    struct scene s;
    struct window *w;
    uint32_t count;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 6, 1, 0);
    scene_submit (&s, 1, 2, 7200, 0);
    scene_submit (&s, 2, 1, 10800, 0);
    scene_pass (&s, 0);
    scene_submit (&s, 3, 4, 3600, 0); /* needs one of job 1's, at 2 h: nodes 0, 1, 3, 4 */
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 3).reserved_start, 7200 * S);
    assert_int_equal (query_windows (s.c, NULL, true, 0, s.arena, &w, &count, &s.err), 0);
    assert_int_equal (count, 2);
    assert_int_equal (w[0].length, 7200 * S);
    assert_int_equal (w[0].nodes, 3);
    assert_int_equal (w[1].length, TIME_US_MAX);
    assert_int_equal (w[1].nodes, 1);
    assert_int_equal (query_windows (s.c, NULL, false, 0, s.arena, &w, &count, &s.err), 0);
    assert_int_equal (count, 1);
    assert_int_equal (w[0].procs, 3);
    scene_free (&s);
}

static void test_table (void **state)
{
    struct scene s;
    uint32_t size[] = {1, 4, 5, 9};
    duration_us length[] = {10 * S, 1000 * S};
    time_us at[8];

    (void)state;
    busy (&s);
    assert_int_equal (query_table (s.c, size, 4, length, 2, 0, true, 10 * S, at, &s.err), 0);
    assert_int_equal (at[0], 10 * S);
    assert_int_equal (at[3], 10 * S);
    assert_int_equal (at[4], 100 * S);
    assert_int_equal (at[5], 100 * S);
    assert_int_equal (at[7], TIME_US_NONE);
    assert_int_equal (query_table (s.c, size, 4, length, 2, 501, true, 10 * S, at, &s.err), 0);
    assert_int_equal (at[2], 100 * S); /* 501 MB each: one task per node */
    scene_free (&s);
}

/* Several reqs: one node with 900 MB and three tasks of 100 MB elsewhere or beside. */
static void test_reqs (void **state)
{
    struct scene s;
    struct req both[2] = {scene_req (1, 1, 900), scene_req (4, 1, 100)};
    struct query q = ask (both, 10);
    struct slot slot;
    struct interval *interval;
    uint32_t count;

    (void)state;
    busy (&s);
    q.req_count = 2;
    assert_int_equal (query_earliest (s.c, &q, 10 * S, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, 100 * S); /* 3 of 4 processors left beside the large one */
    both[1].tasks = 3;
    assert_int_equal (query_earliest (s.c, &q, 10 * S, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, 10 * S);
    assert_int_equal (slot.allocation.count, 3);
    assert_int_equal (query_intervals (s.c, &q, 10 * S, 8, s.arena, &interval, &count, &s.err), 0);
    assert_int_equal (count, 1);
    assert_int_equal (interval[0].begin, 10 * S);
    scene_free (&s);
}

static void test_bad (void **state)
{
    struct scene s;
    struct req none = scene_req (0, 1, 0), one = scene_req (1, 1, 0);
    struct query q = ask (&none, 10);
    struct slot slot;
    bool granted;

    (void)state;
    busy (&s);
    assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &slot, &s.err), ERR_INVALID);
    q = ask (&one, 0);
    assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &slot, &s.err), ERR_INVALID);
    q = ask (&one, 10);
    assert_int_equal (query_slot (s.c, &q, 5 * S, 10 * S, s.arena, &granted, &slot, &s.err),
                      ERR_INVALID);
    scene_free (&s);
}

/* More of a licence than the site has: never, not at the end of time. */
static void more_licences_than_there_are (void **state)
{
    struct scene s;
    int32_t total[1] = {2};
    struct licence want = {0, 3};
    struct req req = scene_req (1, 1, 0);
    struct query q = {.req_count = 1,
                      .req = &req,
                      .duration = 10 * S,
                      .from = TIME_US_NONE,
                      .until = TIME_US_MAX,
                      .licence_count = 1,
                      .licence = &want};
    struct slot out;
    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 1, 0);
    assert_int_equal (cluster_licences_set (s.c, total, 1, 0, &s.err), 0);
    assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &out, &s.err), 0);
    assert_int_equal (out.start, TIME_US_NONE);
    want.count = 2;
    assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &out, &s.err), 0);
    assert_int_equal (out.start, 0);
    scene_free (&s);
}

/* A list of hosts is the same list after nodes have come, and a copy of the site has all lists under the
 * ids of the first. */
static void test_hosts_after_more_nodes (void **state)
{
    struct scene s;
    struct node_id list[2] = {{1}, {3}};
    struct node_spec more = {.partition = 1, .speed_ppm = 1000000};
    struct req one = scene_req (1, 1, 0);
    struct query q = ask (&one, 50);
    struct slot slot;
    uint32_t early, again, other;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 2, 1000);
    assert_int_equal (cluster_hosts_define (s.c, list, 1, &early, &s.err), 0);
    more.configured.v[RES_PROCS] = 2;
    for (uint32_t i = 0; i < 70; i++)
        assert_int_equal (cluster_node_add (s.c, &more, 0, NULL, &s.err), 0);
    assert_int_equal (cluster_hosts_define (s.c, list, 1, &again, &s.err), 0);
    assert_int_equal (again, early);
    assert_int_equal (cluster_hosts_define (s.c, list, 2, &again, &s.err), 0);
    assert_int_not_equal (again, early);
    assert_int_equal (cluster_hosts_define (s.c, list + 1, 1, &other, &s.err), 0);

    struct cluster *copy = cluster_create (s.policy, NULL, &s.err);
    assert_non_null (copy);
    assert_int_equal (cluster_copy_site (s.c, copy, 0, &s.err), 0);
    one.hosts = other;
    assert_int_equal (query_earliest (copy, &q, 0, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.allocation.count, 1);
    assert_int_equal (slot.allocation.item[0].node.v, 3);
    cluster_destroy (copy);
    scene_free (&s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (more_licences_than_there_are),
        cmocka_unit_test (test_hosts_after_more_nodes),
        cmocka_unit_test (test_earliest),
        cmocka_unit_test (test_hold),
        cmocka_unit_test (test_together),
        cmocka_unit_test (test_instead),
        cmocka_unit_test (test_firm),
        cmocka_unit_test (test_windows),
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_reqs),
        cmocka_unit_test (test_bad),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
