/* Administrators' reservations: whom their ACLs admit, affinity, overlaps, parts of nodes, flags. */
#include "tests/unit/local_core/scene.h"

#include "local/core/access.h"

enum { BOB = 1, JOHN, STEVE, BILL, EVE };

static struct acl_entry user (uint32_t id, enum affinity affinity)
{
    return (struct acl_entry){.type = CRED_USER, .affinity = (uint8_t)affinity, .value = id};
}

static struct job_spec job_of (uint64_t id, uint32_t who, const struct req *req, int64_t limit)
{
    struct job_spec job = scene_job (id, 0, limit, req);

    job.cred[CRED_USER] = who;
    return job;
}

static void submit (struct scene *s, uint64_t id, uint32_t who, uint32_t tasks, int64_t limit)
{
    struct req req = scene_req (tasks, 1, 0);
    struct job_spec job = job_of (id, who, &req, limit);

    assert_int_equal (cluster_job_submit (s->c, &job, 0, &s->err), 0);
}

/* Nodes [first, first + count), `tasks` processors of each. */
static int reserve_on (struct scene *s, uint64_t id, uint32_t first, uint32_t count, uint32_t tasks,
                       int64_t start, int64_t end, const struct acl_entry *acl, uint32_t acls,
                       uint32_t flags)
{
    struct req req = scene_req (count * tasks, 1, 0);
    struct placement item[16];
    struct allocation a = {count, item};
    struct rsv_spec rsv = {.id = {id},
                           .kind = RSV_ADMIN,
                           .start = start * S,
                           .end = end < 0 ? TIME_US_MAX : end * S,
                           .req_count = 1,
                           .req = &req,
                           .flags = flags,
                           .acl_count = acls,
                           .acl = acl};

    for (uint32_t i = 0; i < count; i++)
        item[i] = (struct placement){{first + i}, tasks, 0};
    return cluster_rsv_create (s->c, &rsv, &a, 0, &s->err);
}

static uint32_t first_node (struct scene *s, uint64_t job)
{
    struct job_view view = scene_view (s, job);

    assert_true (view.state != JOB_IDLE);
    return view.allocation.item[0].node.v;
}

/* The chapter's example: SRUSERLIST[special] bob john steve= bill-. Nodes 2 and 3 are special. */
static void special (struct scene *s)
{
    struct acl_entry acl[] = {user (BOB, AFFINITY_POSITIVE), user (JOHN, AFFINITY_POSITIVE),
                              user (STEVE, AFFINITY_NEUTRAL), user (BILL, AFFINITY_NEGATIVE)};

    scene_policy (s);
    scene_nodes (s, 6, 2, 1000);
    assert_int_equal (reserve_on (s, 7, 2, 2, 2, 0, -1, acl, 4, 0), 0);
}

static void test_affinity (void **state)
{
    struct scene s;

    (void)state;
    special (&s);
    submit (&s, 1, BOB, 2, 100);  /* attracted: special first */
    submit (&s, 2, BILL, 2, 100); /* elsewhere while there is room */
    submit (&s, 3, EVE, 2, 100);  /* not admitted */
    submit (&s, 4, BILL, 2, 100);
    submit (&s, 5, EVE, 2, 100); /* nodes 0, 1, 4, 5 are taken by now */
    submit (&s, 6, EVE, 2, 100);
    submit (&s, 7, BILL, 2, 100); /* nothing else is free: special */
    scene_pass (&s, 0);
    assert_int_equal (first_node (&s, 1), 2);
    assert_int_equal (first_node (&s, 2), 0);
    assert_int_equal (first_node (&s, 3), 1);
    assert_int_equal (first_node (&s, 4), 4);
    assert_int_equal (first_node (&s, 5), 5);
    assert_false (scene_runs (&s, 6));
    assert_int_equal (scene_view (&s, 6).reason.code, REASON_RESERVED);
    assert_int_equal (first_node (&s, 7), 3);
    scene_free (&s);
}

/* Neutral: before nodes that nobody reserved, after those that attract. */
static void test_neutral (void **state)
{
    struct scene s;
    struct acl_entry acl = user (STEVE, AFFINITY_POSITIVE);

    (void)state;
    special (&s);
    submit (&s, 1, STEVE, 2, 100);
    scene_pass (&s, 0);
    assert_int_equal (first_node (&s, 1), 2);
    assert_int_equal (reserve_on (&s, 8, 5, 1, 2, 0, -1, &acl, 1, 0), 0);
    submit (&s, 2, STEVE, 2, 100);
    scene_pass (&s, 0);
    assert_int_equal (first_node (&s, 2), 5);
    scene_free (&s);
}

/* Whoever is not admitted is told by whom it is kept out. */
static void test_barred (void **state)
{
    struct scene s;
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);
    char text[512];

    (void)state;
    scene_policy (&s);
    s.policy->backfill_policy = BACKFILL_NONE;
    scene_nodes (&s, 2, 2, 1000);
    assert_int_equal (reserve_on (&s, 7, 0, 2, 2, 0, -1, &acl, 1, 0), 0);
    submit (&s, 1, EVE, 3, 100);
    scene_pass (&s, 0);
    struct reason why = scene_view (&s, 1).reason;
    assert_int_equal (why.code, REASON_NEVER_FREE); /* the reservation has no end */
    assert_int_equal (why.rsv.v, 7);
    assert_int_equal (why.need, 3);
    assert_int_equal (why.have, 0);
    assert_non_null (strstr (reason_text (&why, NULL, text, sizeof text), "reservation 7"));
    assert_int_equal (cluster_rsv_release (s.c, (struct rsv_id){7}, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 1));
    scene_free (&s);
}

/* Overlapping reservations: only whom both admit; before and after, whom the one admits. */
static void test_overlap (void **state)
{
    struct scene s;
    struct acl_entry one[] = {user (BOB, AFFINITY_POSITIVE), user (JOHN, AFFINITY_POSITIVE)};
    struct acl_entry two[] = {user (JOHN, AFFINITY_POSITIVE), user (EVE, AFFINITY_POSITIVE)};
    struct who who = {.cred = {BOB, CRED_NONE, CRED_NONE, CRED_NONE, CRED_DEFAULT},
                      .walltime = 50 * S,
                      .procs = 2};
    struct req req = scene_req (2, 1, 0);
    struct query q = {.req_count = 1,
                      .req = &req,
                      .duration = 50 * S,
                      .from = 0,
                      .until = TIME_US_MAX,
                      .who = &who};
    struct slot slot;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 1, 2, 1000);
    assert_int_equal (reserve_on (&s, 7, 0, 1, 2, 100, 300, one, 2, 0), 0);
    assert_int_equal (reserve_on (&s, 8, 0, 1, 2, 200, 400, two, 2, RSV_FORCED), 0);
    static const struct {
        uint32_t user;
        int64_t from, start;
    } want[] = {
        {BOB, 60, 60},   {BOB, 160, 400}, {BOB, 250, 400}, /* until 200 it may, not 160 + 50 */
        {BOB, 150, 150}, {JOHN, 60, 60},  {JOHN, 180, 180}, {JOHN, 250, 250},
        {EVE, 40, 40},   {EVE, 60, 300},  {EVE, 210, 300},  {BILL, 60, 400},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        who.cred[CRED_USER] = want[i].user;
        q.from = want[i].from * S;
        assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &slot, &s.err), 0);
        assert_int_equal (slot.start / S, want[i].start);
    }
    scene_free (&s);
}

/* Every type and modifier of an ACL. */
static void test_acl (void **state)
{
    enum { P = AFFINITY_POSITIVE };
    struct acl_entry deny[] = {{.type = CRED_GROUP, .affinity = P, .value = 4},
                               {.type = CRED_USER, .value = EVE, .deny = true}};
    struct acl_entry need[] = {{.type = CRED_CLASS, .affinity = P, .value = 3, .required = true},
                               {.type = CRED_ACCOUNT, .affinity = P, .value = 9},
                               {.type = CRED_QOS, .affinity = P, .value = 2}};
    struct acl_entry brief[] = {
        {.type = ACL_DURATION, .compare = ACL_LE, .affinity = P, .value = 60 * S}};
    struct acl_entry small[] = {
        {.type = ACL_PROCS, .compare = ACL_LT, .affinity = AFFINITY_NEGATIVE, .value = 4}};
    struct acl_entry grid[] = {{.type = ACL_JOBATTR, .affinity = P, .value = JOBATTR_GRID}};
    struct rsv_spec rsv = {.id = {5}, .kind = RSV_ADMIN};
    struct who who = {
        .cred = {BOB, 4, 9, 3, 2}, .walltime = 60 * S, .procs = 4, .attrs = JOBATTR_GRID};
    uint8_t affinity;

    (void)state;
    assert_false (access_admits (&rsv, &who, &affinity)); /* an empty list: nobody */
#define LIST(list) (rsv.acl = list, rsv.acl_count = sizeof list / sizeof *list)
    LIST (deny);
    assert_true (access_admits (&rsv, &who, &affinity));
    who.cred[CRED_USER] = EVE;
    assert_false (access_admits (&rsv, &who, &affinity));
    LIST (need);
    assert_true (access_admits (&rsv, &who, &affinity));
    who.cred[CRED_ACCOUNT] = 8; /* still the QoS */
    assert_true (access_admits (&rsv, &who, &affinity));
    who.cred[CRED_QOS] = 1;
    assert_false (access_admits (&rsv, &who, &affinity));
    who.cred[CRED_QOS] = 2;
    who.cred[CRED_CLASS] = CRED_NONE;
    assert_false (access_admits (&rsv, &who, &affinity));
    LIST (brief);
    assert_true (access_admits (&rsv, &who, &affinity));
    who.walltime++;
    assert_false (access_admits (&rsv, &who, &affinity));
    LIST (small);
    assert_false (access_admits (&rsv, &who, &affinity));
    who.procs = 3;
    assert_true (access_admits (&rsv, &who, &affinity));
    assert_int_equal (affinity, AFFINITY_NEGATIVE);
    LIST (grid);
    assert_true (access_admits (&rsv, &who, &affinity));
    who.attrs = JOBATTR_COALLOCATED;
    assert_false (access_admits (&rsv, &who, &affinity));
    LIST (small);
    rsv.flags = RSV_META;
    assert_false (access_admits (&rsv, &who, &affinity));
    who.attrs |= JOBATTR_GRID;
    assert_true (access_admits (&rsv, &who, &affinity));
    rsv.flags = RSV_BYNAME;
    rsv.group = 77;
    assert_false (access_admits (&rsv, &who, &affinity));
    who.named.v = 5;
    assert_true (access_admits (&rsv, &who, &affinity));
    who.named.v = 77;
    assert_true (access_admits (&rsv, &who, &affinity));
    rsv.flags = RSV_PREEMPTEE;
    rsv.acl_count = 0;
    assert_false (access_admits (&rsv, &who, &affinity));
    who.attrs |= JOBATTR_PREEMPTOR;
    assert_true (access_admits (&rsv, &who, &affinity));
    assert_int_equal (affinity, AFFINITY_PREEMPTIBLE);
    rsv.flags = 0;
    assert_false (access_admits (&rsv, &who, &affinity));
    rsv.owned = true;
    rsv.owner = (struct acl_entry){.type = CRED_GROUP, .value = 4};
    assert_true (access_admits (&rsv, &who, &affinity));
#undef LIST
}

/* Two of a node's four processors: others share the rest, and what its people use is not kept twice. */
static void test_part (void **state)
{
    struct scene s;
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 1, 4, 1000);
    assert_int_equal (reserve_on (&s, 7, 0, 1, 2, 0, 1000, &acl, 1, 0), 0);
    submit (&s, 1, EVE, 3, 100);
    submit (&s, 2, EVE, 1, 100);
    scene_pass (&s, 0);
    assert_false (scene_runs (&s, 1)); /* promised at 1000, when the part is given back */
    assert_int_equal (scene_view (&s, 1).reserved_start, 1000 * S);
    assert_true (scene_runs (&s, 2));
    submit (&s, 3, BOB, 2, 100);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 3));
    submit (&s, 4, EVE, 1, 100); /* 1 + 2 in use, of them 2 in the reservation: one is left */
    submit (&s, 5, EVE, 1, 100);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 4));
    assert_false (scene_runs (&s, 5));
    scene_end (&s, 3, 10); /* free, but kept for bob */
    scene_pass (&s, 10);
    assert_false (scene_runs (&s, 5));
    scene_free (&s);
}

/* One that begins later is kept clear in time; one that ends is open from then on. */
static void test_times (void **state)
{
    struct scene s;
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 1, 2, 1000);
    assert_int_equal (reserve_on (&s, 7, 0, 1, 2, 100, 200, &acl, 1, 0), 0);
    submit (&s, 1, EVE, 1, 101);
    submit (&s, 2, EVE, 1, 100);
    submit (&s, 3, BOB, 1, 500);
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 1).reserved_start, 200 * S);
    assert_true (scene_runs (&s, 2));
    assert_true (scene_runs (&s, 3)); /* past its end too, where nobody was promised both */
    assert_int_equal (cluster_next_wakeup (s.c, 0), 100 * S);
    scene_end (&s, 2, 100);
    scene_end (&s, 3, 150);
    scene_pass (&s, 200);
    assert_true (scene_runs (&s, 1));
    scene_free (&s);
}

/* A job that names a reservation runs there, or waits; others' jobs may not come in by naming it. */
static void test_named (void **state)
{
    struct scene s;
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);
    struct req one = scene_req (1, 1, 0);
    struct job_spec job;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 3, 1, 1000);
    assert_int_equal (reserve_on (&s, 7, 1, 1, 1, 50, -1, &acl, 1, RSV_BYNAME), 0);
    job = job_of (1, BOB, &one, 100);
    job.reservation.v = 7;
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    job = job_of (2, EVE, &one, 100);
    job.reservation.v = 7;
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    submit (&s, 3, BOB, 1, 1000); /* without its name: elsewhere */
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 1).reason.code, REASON_RESERVATION);
    assert_int_equal (scene_view (&s, 1).reason.clears, 50 * S);
    assert_int_equal (scene_view (&s, 2).reason.code, REASON_BARRED);
    assert_int_equal (first_node (&s, 3), 0);
    scene_pass (&s, 50);
    assert_int_equal (first_node (&s, 1), 1);
    assert_false (scene_runs (&s, 2));
    assert_int_equal (cluster_rsv_release (s.c, (struct rsv_id){7}, 60 * S, &s.err), 0);
    scene_pass (&s, 60);
    assert_int_equal (scene_view (&s, 2).reason.code, REASON_RESERVATION_GONE);
    scene_free (&s);
}

/* The first job that comes has it alone; with its end the reservation is gone. */
static void test_single_use (void **state)
{
    struct scene s;
    struct acl_entry acl[] = {user (BOB, AFFINITY_POSITIVE), user (JOHN, AFFINITY_POSITIVE)};
    struct rsv_view view;

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 1, 2, 1000);
    assert_int_equal (reserve_on (&s, 7, 0, 1, 2, 0, -1, acl, 2, RSV_SINGLEUSE), 0);
    submit (&s, 1, BOB, 1, 100);
    submit (&s, 2, JOHN, 1, 100);
    scene_compute (&s, 0);
    assert_int_equal (s.plan.start_count, 1);
    s.plan.start[0].refused = true; /* as if it had not been */
    assert_int_equal (plan_commit (s.c, &s.plan, &s.err), 0);
    assert_int_equal (cluster_rsv_get (s.c, (struct rsv_id){7}, &view, &s.err), 0);
    assert_int_equal (view.used_by.v, 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 1));
    assert_false (scene_runs (&s, 2));
    scene_pass (&s, 1);
    assert_false (scene_runs (&s, 2));
    assert_int_equal (cluster_rsv_get (s.c, (struct rsv_id){7}, &view, &s.err), 0);
    assert_int_equal (view.used_by.v, 1);
    scene_end (&s, 1, 10);
    assert_int_equal (cluster_rsv_get (s.c, (struct rsv_id){7}, &view, &s.err), ERR_NOT_FOUND);
    scene_pass (&s, 10);
    assert_true (scene_runs (&s, 2));
    scene_free (&s);
}

/* What is promised to a co-allocated part is left to it, forced or not; one that the ACL admits may
 * lie inside. */
static void test_firm (void **state)
{
    struct scene s;
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);
    struct req two = scene_req (2, 1, 0);
    struct placement item = {{0}, 2, 0};
    struct allocation a = {1, &item};
    struct who who = {.cred = {EVE, CRED_NONE, CRED_NONE, CRED_NONE, CRED_DEFAULT},
                      .walltime = 100 * S,
                      .procs = 2};
    struct rsv_spec part = {.id = {3},
                            .kind = RSV_COURTESY,
                            .start = 100 * S,
                            .end = 200 * S,
                            .req_count = 1,
                            .req = &two,
                            .who = &who};

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 2, 2, 1000);
    assert_int_equal (cluster_rsv_create (s.c, &part, &a, 0, &s.err), 0);
    assert_int_equal (cluster_rsv_commit (s.c, part.id, 0, &s.err), 0);
    assert_int_equal (reserve_on (&s, 7, 0, 2, 2, 150, -1, &acl, 1, RSV_FORCED), ERR_CONFLICT);
    assert_int_equal (reserve_on (&s, 7, 0, 2, 2, 200, -1, &acl, 1, RSV_FORCED), 0);
    assert_int_equal (cluster_rsv_release (s.c, part.id, 0, &s.err), 0);
    assert_int_equal (cluster_rsv_release (s.c, (struct rsv_id){7}, 0, &s.err), 0);
    assert_int_equal (reserve_on (&s, 7, 0, 2, 2, 150, -1, &acl, 1, 0), 0);
    assert_int_equal (cluster_rsv_create (s.c, &part, &a, 0, &s.err), ERR_CONFLICT);
    who.cred[CRED_USER] = BOB;
    assert_int_equal (cluster_rsv_create (s.c, &part, &a, 0, &s.err), 0);
    scene_free (&s);
}

/* What somebody's backfill windows are depends on who asks. */
static void test_windows (void **state)
{
    struct scene s;
    struct who who = {.cred = {BOB, CRED_NONE, CRED_NONE, CRED_NONE, CRED_DEFAULT}};
    struct window *w;
    uint32_t count;

    (void)state;
    special (&s);
    assert_int_equal (query_windows (s.c, &who, false, 0, s.arena, &w, &count, &s.err), 0);
    assert_int_equal (count, 1);
    assert_int_equal (w[0].procs, 12);
    assert_int_equal (query_windows (s.c, NULL, false, 0, s.arena, &w, &count, &s.err), 0);
    assert_int_equal (count, 1);
    assert_int_equal (w[0].procs, 8);
    scene_free (&s);
}

/* All ways of backfill, both bindings: never where it is not admitted, always where it is. */
static void test_everywhere (void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        struct scene s;
        struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);

        scene_policy (&s);
        s.policy->backfill_policy =
            (enum backfill_policy) (how % 3); /* FIRSTFIT, BESTFIT, GREEDY */
        s.policy->reservation_binding = how / 3 ? BINDING_LATE : BINDING_EARLY;
        scene_nodes (&s, 4, 1, 1000);
        assert_int_equal (reserve_on (&s, 7, 2, 2, 1, 0, 1000, &acl, 1, 0), 0);
        submit (&s, 1, EVE, 1, 300);
        submit (&s, 2, EVE, 4, 100); /* first that waits: at 1000 */
        submit (&s, 3, EVE, 2, 50);
        submit (&s, 4, BOB, 2, 900);
        submit (&s, 5, EVE, 1, 900);
        scene_pass (&s, 0);
        assert_true (scene_runs (&s, 1));
        assert_int_equal (scene_view (&s, 2).reserved_start, 1000 * S);
        assert_false (scene_runs (&s, 3));
        assert_true (scene_runs (&s, 4));
        assert_true (first_node (&s, 4) >= 2);
        assert_true (scene_runs (&s, 5));
        assert_true (first_node (&s, 5) < 2);
        scene_free (&s);
    }
}

/* Other nodes in place of lost ones. */
static void test_move (void **state)
{
    struct scene s;
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);
    struct placement item[2] = {{{0}, 1, 0}, {{3}, 1, 0}};
    struct allocation a = {2, item};

    (void)state;
    scene_policy (&s);
    scene_nodes (&s, 4, 1, 1000);
    assert_int_equal (reserve_on (&s, 7, 0, 2, 1, 0, -1, &acl, 1, 0), 0);
    submit (&s, 1, BOB, 2, 100);
    assert_int_equal (cluster_node_state_set (s.c, (struct node_id){1}, NODE_DOWN, 0, &s.err), 0);
    assert_int_equal (cluster_rsv_move (s.c, (struct rsv_id){7}, 2, &a, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_int_equal (first_node (&s, 1), 0);
    assert_int_equal (scene_view (&s, 1).allocation.item[1].node.v, 3);
    scene_free (&s);
}

/* Two of four nodes are the day's, from two to ten in the evening, each day; two of its days are in the calendar. */
static void daily (struct scene *s)
{
    enum { FROM = 2 * 3600, TO = 22 * 3600, DAY = 24 * 3600, EACH_DAY = 0x7f };
    struct acl_entry acl = user (BOB, AFFINITY_POSITIVE);
    struct req req = scene_req (2, 1, 0);
    struct placement item[] = {{{2}, 1, 0}, {{3}, 1, 0}};
    struct allocation a = {2, item};

    scene_policy (s);
    scene_nodes (s, 4, 1, 1000);
    for (int day = 0; day < 2; day++) {
        struct rsv_spec rsv = {
            .id = {(uint64_t)(7 + day)},
            .kind = RSV_ADMIN,
            .start = (FROM + day * DAY) * S,
            .end = (TO + day * DAY) * S,
            .req_count = 1,
            .req = &req,
            .acl_count = 1,
            .acl = &acl,
            .again = {.series = 1, .days = EACH_DAY, .from = FROM * S, .to = TO * S}};
        assert_int_equal (cluster_rsv_create (s->c, &rsv, &a, 0, &s->err), 0);
    }
}

enum { NIGHT = 4 * 3600, EVENING = 22 * 3600 };

/* A direct question names no moment after the last day either. */
static void test_daily_asked (void **state)
{
    struct scene s;
    struct req three = scene_req (3, 1, 0);
    struct query q = {.req_count = 1,
                      .req = &three,
                      .duration = (NIGHT + 1) * S,
                      .from = TIME_US_NONE,
                      .until = TIME_US_MAX,
                      .queue = true};
    struct slot slot;

    (void)state;
    daily (&s);
    assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, TIME_US_NONE);
    assert_int_equal (slot.reason.code, REASON_NEVER_FREE);
    assert_int_equal (slot.reason.have, 2);
    assert_true (slot.reason.rsv.v == 7 || slot.reason.rsv.v == 8);
    q.duration = NIGHT * S;
    assert_int_equal (query_earliest (s.c, &q, 0, s.arena, &slot, &s.err), 0);
    assert_int_equal (slot.start, EVENING * S);
    scene_free (&s);
}

/* That a job can never run is remembered until it, or a reservation, is another. */
static void test_daily_forgotten (void **state)
{
    struct scene s;
    struct req three = scene_req (3, 1, 0);
    struct job_spec job = job_of (1, EVE, &three, NIGHT + 1);

    (void)state;
    daily (&s);
    assert_int_equal (cluster_job_submit (s.c, &job, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 1).reason.code, REASON_NEVER_FREE);
    job.walltime_limit = NIGHT * S;
    assert_int_equal (cluster_job_modify (s.c, &job, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 1).reserved_start, EVENING * S);
    job.walltime_limit = (NIGHT + 1) * S;
    assert_int_equal (cluster_job_modify (s.c, &job, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_int_equal (scene_view (&s, 1).reason.code, REASON_NEVER_FREE);
    struct placement item = {{3}, 1, 0};
    struct allocation one = {1, &item};
    for (uint64_t day = 7; day < 9; day++) /* the days leave it a node more */
        assert_int_equal (cluster_rsv_move (s.c, (struct rsv_id){day}, 1, &one, 0, &s.err), 0);
    scene_pass (&s, 0);
    assert_true (scene_runs (&s, 1));
    scene_free (&s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_daily_asked), cmocka_unit_test (test_daily_forgotten),
        cmocka_unit_test (test_affinity),    cmocka_unit_test (test_neutral),
        cmocka_unit_test (test_barred),      cmocka_unit_test (test_overlap),
        cmocka_unit_test (test_acl),         cmocka_unit_test (test_part),
        cmocka_unit_test (test_times),       cmocka_unit_test (test_named),
        cmocka_unit_test (test_single_use),  cmocka_unit_test (test_firm),
        cmocka_unit_test (test_windows),     cmocka_unit_test (test_everywhere),
        cmocka_unit_test (test_move),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
