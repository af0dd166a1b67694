/* A random life of a site, twice: one cluster passes incrementally, its twin forgets everything before
 * each pass (and never counts or uses bit sets where nodes are bound early). After every pass: the
 * same plan, the same reasons; no node over-committed in any resource at any moment, promises
 * included; nobody started or promised where a reservation does not admit him; the first reserved job is not delayed by anything that was backfilled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/pass.h"
#include "local/core/query.h"
#include "tests/prop/local/trace.h"

enum {
    NODES_MOST = 9,
    ACTIVE_MOST = 400,
    DIMS = 4,
    CLASS_COLUMN = RES_GRES0,   /* initiators of class 1 */
    JOBS_COLUMN = RES_GRES0 + 1, /* NODECFG MAXJOB */
    RICH_DIMS = RES_GRES0 + 2,
    LICENCES = 2,
    INSIDE = 1, /* a QoS: QFLAGS USERESERVED */
};

struct life {
    uint64_t seed;
    struct cred_names names;
    struct policy *policy;
    struct cluster *twin[2];
    struct arena *arena[2];
    struct plan plan[2];
    uint32_t nodes;
    uint64_t next_job, next_rsv;
    time_us now;
    bool unit;
    bool rich; /* classes, partitions, node sets, licences, who shares a node */
    uint32_t dims;
    int32_t licence[LICENCES];
    uint32_t nodeset; /* every job's; 0: none */
    bool mandatory;
    uint32_t hosts;
};

static int64_t pick (struct life *l, int64_t low, int64_t high)
{
    return low + (int64_t)(trace_random (&l->seed) % (uint64_t)(high - low + 1));
}

#define BOTH(call)                                                                               \
    do {                                                                                         \
        struct err err_ = {0};                                                                   \
        int rc_[2];                                                                              \
        for (int t = 0; t < 2; t++) {                                                            \
            struct cluster *c = l->twin[t];                                                      \
            rc_[t] = (call);                                                                     \
        }                                                                                        \
        (void)err_;                                                                              \
        assert_int_equal (rc_[0], rc_[1]);                                                       \
    } while (0)

enum { PARTITION_PROCS = 4 };

/* PARCFG of the second partition. */
static void partition_limit (struct policy *p)
{
    p->partition_limits = arena_array (p->arena, PARTITIONS_MAX + 1, sizeof *p->partition_limits);
    p->partitions_limited = partition_bit (2);
    p->partition_limits[2].active_mask = 1u << LIMIT_PROC;
    p->partition_limits[2].active[LIMIT_SOFT][LIMIT_PROC] = PARTITION_PROCS - 2;
    p->partition_limits[2].active[LIMIT_HARD][LIMIT_PROC] = PARTITION_PROCS;
}

static void policy_make (struct life *l)
{
    static const enum node_allocation how[] = {NODEALLOC_FIRSTAVAILABLE, NODEALLOC_LASTAVAILABLE,
                                               NODEALLOC_MINRESOURCE, NODEALLOC_FASTEST,
                                               NODEALLOC_PRIORITY, NODEALLOC_CPULOAD};
    struct err err = {0};
    struct policy *p = policy_create (&l->names);
    struct policy_cred *any = policy_cred_edit (p, CRED_USER, CRED_DEFAULT);

    l->policy = p;
    p->node_allocation = how[pick (l, 0, 5)];
    p->reservation_binding = pick (l, 0, 2) == 0 ? BINDING_LATE : BINDING_EARLY;
    p->backfill_policy = (enum backfill_policy)(pick (l, 0, 3) == 3 ? BACKFILL_NONE
                                                                    : pick (l, 0, 2));
    p->backfill_metric = (enum backfill_metric)pick (l, 0, 5);
    p->backfill_window_order = (enum backfill_window_order)pick (l, 0, 1);
    p->backfill_depth = pick (l, 0, 4) == 0 ? 3 : 0;
    p->reservation_policy = (enum reservation_policy)(pick (l, 0, 6) == 0 ? pick (l, 1, 2) : 0);
    if (pick (l, 0, 5) == 0) {
        p->bf_chunk_procs = 3;
        p->bf_chunk_duration = 20 * US_PER_S;
    }
    p->reservation_retry = pick (l, 0, 2) == 0 ? 30 * US_PER_S : 0;
    if (pick (l, 0, 1)) { /* not by age alone */
        p->sub_weight[PRIO_PROC] = 5;
        p->sub_weight[PRIO_XFACTOR] = 3;
        p->sub_weight[PRIO_BYPASS] = 2;
    }
    if (pick (l, 0, 2) == 0) {
        any->limits.active_mask = 1u << LIMIT_JOB | 1u << LIMIT_PROC;
        any->limits.active[LIMIT_SOFT][LIMIT_JOB] = 2;
        any->limits.active[LIMIT_HARD][LIMIT_JOB] = 4;
        any->limits.active[LIMIT_SOFT][LIMIT_PROC] = 6;
        any->limits.active[LIMIT_HARD][LIMIT_PROC] = 12;
    }
    policy_bucket_set (p, 0, (uint32_t)(pick (l, 0, 1) ? pick (l, 1, 5) : 100), NULL, 0);
    if (l->rich) {
        static const int access[] = {ACCESS_SHARED, ACCESS_SHARED, ACCESS_SINGLEUSER,
                                     ACCESS_SINGLEJOB, ACCESS_SINGLETASK};
        struct policy_cred *inside, *one = policy_cred_edit (p, CRED_USER, 1);
        p->node_access = access[pick (l, 0, 4)];
        inside = policy_cred_edit (p, CRED_QOS, INSIDE);
        inside->qos->flags |= QOS_USERESERVED;
        inside->set |= CRED_SET_QFLAGS;
        one->plist = 1; /* the first partition only */
        one->set |= CRED_SET_PLIST;
        p->system_pdef = (uint32_t)pick (l, 0, 2);
        if (pick (l, 0, 1)) {
            static const enum node_allocation more[] = {NODEALLOC_CONTIGUOUS, NODEALLOC_MAXBALANCE,
                                                        NODEALLOC_LOCAL, NODEALLOC_PRIORITY};
            p->node_allocation = more[pick (l, 0, 3)];
        }
        p->task_distribution = (enum task_distribution)(pick (l, 0, 1) ? pick (l, 0, 3) : 0);
        p->node_load_policy = (enum node_load_policy)pick (l, 0, 1);
        p->node_max_load_milli = 3000;
        p->use_machine_speed = pick (l, 0, 3) == 0;
        p->node_down_delay = pick (l, 0, 3) ? 0 : 15 * US_PER_S;
        if (pick (l, 0, 3) == 0)
            partition_limit (p);
    }
    if (policy_seal (p, &err) != 0)
        fail_msg ("%s", err.text);
}

static void site_make (struct life *l)
{
    l->nodes = (uint32_t)pick (l, 2, NODES_MOST);
    l->unit = pick (l, 0, 2) == 0;
    for (int t = 0; t < 2; t++) {
        struct cluster_options options = {.gres_kinds = l->rich ? RICH_DIMS - RES_GRES0 : 0};
        l->twin[t] = cluster_create (l->policy, &options, NULL);
        l->arena[t] = arena_create (0);
    }
    if (l->rich) {
        struct node_priority fn[2] = {{{0}}, {{0}}};
        uint32_t id;
        fn[0].weight[TERM_SPEED] = 2;
        fn[0].weight[TERM_CPROCS] = -1;
        fn[1].weight[TERM_APROCS] = 1;
        fn[1].weight[TERM_USAGE] = -.1;
        BOTH (cluster_priority_fn_define (c, &fn[0], &id, &err_));
        BOTH (cluster_priority_fn_define (c, &fn[1], &id, &err_));
    }
    l->twin[1]->planner->plain_counts = true;
    l->twin[1]->planner->plain_room = l->policy->reservation_binding == BINDING_EARLY;
    for (uint32_t n = 0; n < l->nodes; n++) {
        struct node_spec spec = {.partition = 1, .speed_ppm = (int32_t)pick (l, 1, 3) * 1000000,
                                 .priority = (int32_t)pick (l, 0, 3)};
        spec.configured.v[RES_PROCS] = l->unit ? 1 : (int32_t)pick (l, 1, 5);
        spec.configured.v[RES_MEM_MB] = (int32_t)pick (l, 2, 9);
        spec.features.word[0] = (uint64_t)pick (l, 0, 3);
        if (l->rich) {
            spec.partition = (uint32_t)pick (l, 1, 2);
            spec.configured.v[CLASS_COLUMN] = (int32_t)pick (l, 0, 3);
            spec.configured.v[JOBS_COLUMN] = (int32_t)pick (l, 1, 4);
            spec.classes = pick (l, 0, 2) ? 0 : 1;
            spec.max_jobs_per_user = pick (l, 0, 3) ? 0 : 1;
            spec.max_procs_per_user = pick (l, 0, 3) ? 0 : 2;
            spec.priority_fn = (uint32_t)pick (l, 0, 2);
        }
        BOTH (cluster_node_add (c, &spec, l->now, NULL, &err_));
    }
}

/* What the site says of classes, sets and licences. */
static void site_enrich (struct life *l)
{
    uint32_t feature[] = {0, 1};
    struct nodeset set = {.policy = (enum nodeset_policy)pick (l, 0, 2),
                          .attribute = pick (l, 0, 1) ? NODESET_FEATURE : NODESET_SPEED,
                          .priority = (enum nodeset_priority)pick (l, 0, 3),
                          .mandatory = pick (l, 0, 1) == 1,
                          .count = 0,
                          .value = feature};
    struct class_spec class = {.bit = 0, .column = CLASS_COLUMN, .initiators = 1};
    struct node_id host[] = {{0}, {1}};

    for (int k = 0; k < LICENCES; k++)
        l->licence[k] = (int32_t)pick (l, 1, 4);
    if (set.attribute == NODESET_FEATURE)
        set.count = 2;
    l->mandatory = set.mandatory && set.policy != NODESET_ANYOF;
    BOTH (cluster_job_column_set (c, JOBS_COLUMN, l->now, &err_));
    BOTH (cluster_licences_set (c, l->licence, LICENCES, l->now, &err_));
    BOTH (cluster_hosts_define (c, host, 2, &l->hosts, &err_));
    BOTH (cluster_class_set (c, 1, &class, l->now, &err_));
    if (pick (l, 0, 1)) {
        BOTH (cluster_nodeset_define (c, &set, &l->nodeset, &err_));
        BOTH (cluster_nodeset_site_set (c, l->nodeset, l->now, &err_));
    }
}

static void job_submit (struct life *l)
{
    struct licence licence[LICENCES];
    struct req req[2];
    struct job_spec spec = {.id = {l->next_job++}, .submit = l->now, .not_before = TIME_US_NONE,
                            .req = req, .req_count = 1};

    memset (req, 0, sizeof req);
    for (int r = 0; r < 2; r++) {
        req[r].tasks = (uint32_t)pick (l, 1, 6);
        req[r].task.v[RES_PROCS] = l->unit ? 1 : (int32_t)pick (l, 1, 2);
        if (!l->unit) {
            req[r].task.v[RES_MEM_MB] = (int32_t)pick (l, 0, 2);
            req[r].features.word[0] = pick (l, 0, 4) == 0 ? 1 : 0;
            req[r].exclusive = pick (l, 0, 9) == 0;
            if (pick (l, 0, 6) == 0) {
                req[r].tasks_per_node = 2;
                req[r].tasks = (req[r].tasks + 1) / 2 * 2;
            }
        }
    }
    if (!l->unit && pick (l, 0, 6) == 0)
        spec.req_count = 2;
    spec.walltime_limit = pick (l, 1, 60) * US_PER_S;
    for (int k = 0; k < CRED_KINDS; k++)
        spec.cred[k] = CRED_NONE;
    spec.cred[CRED_USER] = (uint32_t)pick (l, 1, 4);
    spec.cred[CRED_QOS] = CRED_DEFAULT;
    if (l->rich) {
        for (uint32_t k = 0; k < LICENCES; k++) {
            if (pick (l, 0, 3) == 0)
                licence[spec.licence_count++] = (struct licence){k, (int32_t)pick (l, 1, 3)};
        }
        spec.licence = licence;
        spec.cred[CRED_CLASS] = pick (l, 0, 2) ? CRED_NONE : 1;
        spec.cred[CRED_QOS] = pick (l, 0, 7) ? CRED_DEFAULT : INSIDE;
        req[0].hosts = pick (l, 0, 9) ? 0 : l->hosts;
        req[0].access = pick (l, 0, 9) ? ACCESS_SITE : ACCESS_SINGLEUSER;
        req[0].partitions = req[1].partitions = pick (l, 0, 9) ? 0 : 2;
    }
    spec.holds = pick (l, 0, 12) == 0 ? HOLD_USER : 0;
    if (pick (l, 0, 12) == 0)
        spec.not_before = l->now + pick (l, 1, 30) * US_PER_S;
    BOTH (cluster_job_submit (c, &spec, l->now, &err_));
}

static struct job_id some_job (struct life *l, enum job_state state)
{
    struct job_id list[ACTIVE_MOST];
    uint32_t n = cluster_job_list (l->twin[0], state, list, ACTIVE_MOST);

    return n ? list[pick (l, 0, (n < ACTIVE_MOST ? n : ACTIVE_MOST) - 1)] : (struct job_id){0};
}

enum { ACL_MOST = 3 };

/* For a user or two of the four that jobs have, short jobs, small ones; some kept out or demanded. */
static uint32_t acl_make (struct life *l, struct acl_entry acl[ACL_MOST])
{
    static const uint8_t affinity[] = {AFFINITY_POSITIVE, AFFINITY_NEUTRAL, AFFINITY_NEGATIVE};
    uint32_t count = (uint32_t)pick (l, 0, ACL_MOST);

    for (uint32_t i = 0; i < count; i++) {
        int64_t kind = pick (l, 0, 5), how = pick (l, 0, 9);
        acl[i] = (struct acl_entry){.type = kind < 4 ? CRED_USER : kind < 5 ? ACL_DURATION : ACL_PROCS,
                                    .compare = ACL_LE,
                                    .affinity = affinity[pick (l, 0, 2)],
                                    .deny = how == 0,
                                    .required = how == 1,
                                    .value = kind < 4   ? pick (l, 1, 4)
                                             : kind < 5 ? pick (l, 5, 40) * US_PER_S
                                                        : pick (l, 1, 6)};
    }
    return count;
}

/* Nodes named by an administrator, whatever is there. */
static void rsv_force (struct life *l, struct rsv_spec *spec, struct req *req)
{
    struct placement item[NODES_MOST];
    struct allocation a = {0, item};
    struct node_view node;

    req->tasks = 0;
    spec->start = l->now + pick (l, 0, 40) * US_PER_S;
    spec->end = pick (l, 0, 4) ? spec->start + pick (l, 5, 60) * US_PER_S : TIME_US_MAX;
    spec->flags |= RSV_FORCED;
    for (uint32_t n = 0; n < l->nodes; n++) {
        uint32_t tasks;
        assert_int_equal (cluster_node_get (l->twin[0], (struct node_id){n}, &node, NULL), 0);
        tasks = (uint32_t)pick (l, 1, node.spec.configured.v[RES_PROCS]);
        if (pick (l, 0, 2))
            continue;
        item[a.count++] = (struct placement){{n}, tasks, 0};
        req->tasks += tasks;
    }
    BOTH (cluster_rsv_create (c, spec, &a, l->now, &err_));
}

static void rsv_make (struct life *l)
{
    struct req req = {.tasks = (uint32_t)pick (l, 1, 4)};
    struct who who = {.cred = {(uint32_t)pick (l, 1, 5), CRED_NONE, CRED_NONE, CRED_NONE, 0},
                      .walltime = pick (l, 5, 40) * US_PER_S, .procs = req.tasks};
    struct query q = {.req_count = 1, .req = &req, .duration = who.walltime,
                      .from = l->now + pick (l, 0, 40) * US_PER_S, .until = TIME_US_MAX,
                      .queue = pick (l, 0, 1) == 1};
    struct slot slot;
    bool granted;
    struct acl_entry acl[ACL_MOST];
    struct rsv_spec spec = {.id = {l->next_rsv++}, .req_count = 1, .req = &req, .acl = acl};
    struct arena *arena = arena_create (0);

    req.task.v[RES_PROCS] = 1;
    spec.kind = (enum rsv_kind)pick (l, 0, 2);
    if (spec.kind != RSV_ADMIN)
        q.who = spec.who = &who;
    else
        spec.acl_count = acl_make (l, acl);
    if (spec.kind == RSV_ADMIN)
        spec.flags = pick (l, 0, 5) ? 0 : RSV_SINGLEUSE;
    if (spec.kind == RSV_ADMIN && pick (l, 0, 1)) {
        rsv_force (l, &spec, &req);
        arena_destroy (arena);
        return;
    }
    assert_int_equal (query_slot (l->twin[0], &q, q.from, l->now, arena, &granted, &slot, NULL), 0);
    if (slot.start != TIME_US_NONE) {
        spec.start = slot.start;
        spec.end = slot.start + q.duration;
        BOTH (cluster_rsv_create (c, &spec, &slot.allocation, l->now, &err_));
        struct rsv_view view; /* a hold where the query said there is room is granted */
        assert_int_equal (cluster_rsv_get (l->twin[0], spec.id, &view, NULL), 0);
    }
    arena_destroy (arena);
}

/* A question answered from the timeline of an earlier one has the answer of a timeline of its own. */
static void check_question (struct life *l)
{
    struct req req = {.tasks = (uint32_t)pick (l, 1, 6)};
    struct who who = {.cred = {(uint32_t)pick (l, 1, 5), CRED_NONE, CRED_NONE, CRED_NONE, 0},
                      .procs = req.tasks};
    struct query q = {.req_count = 1, .req = &req, .duration = pick (l, 1, 60) * US_PER_S,
                      .until = TIME_US_MAX, .queue = true, .who = pick (l, 0, 1) ? &who : NULL};
    struct slot kept, fresh;
    struct arena *arena = arena_create (0);
    time_us at = l->now + pick (l, 0, 9) * US_PER_S;

    req.task.v[RES_PROCS] = 1;
    q.from = at + pick (l, 0, 3) * US_PER_S;
    assert_int_equal (query_earliest (l->twin[0], &q, at, arena, &kept, NULL), 0);
    q.inside.v = UINT64_MAX; /* no reservation's: nothing is kept for such a question */
    assert_int_equal (query_earliest (l->twin[0], &q, at, arena, &fresh, NULL), 0);
    assert_int_equal (kept.start, fresh.start);
    assert_int_equal (kept.reason.code, fresh.reason.code);
    assert_int_equal (kept.reason.have, fresh.reason.have);
    if (kept.start != TIME_US_NONE) {
        assert_int_equal (kept.allocation.count, fresh.allocation.count);
        assert_memory_equal (kept.allocation.item, fresh.allocation.item,
                             kept.allocation.count * sizeof *kept.allocation.item);
    }
    arena_destroy (arena);
}

static void event (struct life *l)
{
    struct job_id job;
    int64_t what = pick (l, 0, 99);

    if (what < 45) {
        job_submit (l);
    } else if (what < 85) {
        job = some_job (l, JOB_STARTING);
        if (job.v)
            BOTH (cluster_job_end (c, job, l->now, &err_));
    } else if (what < 88) {
        job = some_job (l, JOB_IDLE);
        if (job.v)
            BOTH (cluster_job_remove (c, job, l->now, &err_));
    } else if (what < 91) {
        job = some_job (l, JOB_IDLE);
        int64_t holds = pick (l, 0, 1);
        if (job.v)
            BOTH (cluster_job_hold_set (c, job, (uint32_t)holds, l->now, &err_));
    } else if (what < 92 && l->rich) {
        struct node_id node = {(uint32_t)pick (l, 0, l->nodes - 1)};
        int32_t load = (int32_t)pick (l, 0, 5) * 900;
        BOTH (cluster_node_load_set (c, node, load, l->now, &err_));
    } else if (what < 93) {
        struct node_id node = {(uint32_t)pick (l, 0, l->nodes - 1)};
        enum node_state state = (enum node_state)pick (l, 0, 2);
        BOTH (cluster_node_state_set (c, node, state, l->now, &err_));
    } else if (what < 95) {
        rsv_make (l);
    } else if (what < 97 && l->next_rsv > 1) {
        struct rsv_id rsv = {(uint64_t)pick (l, 1, (int64_t)l->next_rsv - 1)};
        BOTH (cluster_rsv_release (c, rsv, l->now, &err_));
    } else {
        job = some_job (l, JOB_STARTING);
        time_us until = l->now + pick (l, 0, 20) * US_PER_S;
        if (job.v)
            BOTH (cluster_job_requeue (c, job, until, l->now, &err_));
    }
}

/* --- what must hold ----------------------------------------------------------------------------- */

struct use {
    uint32_t node;
    time_us start, end;
    int64_t v[RES_MAX];
    uint32_t user, access;
    int64_t procs; /* of its tasks, whatever else it keeps */
    uint32_t job;    /* its place in the list of jobs and reservations */
    const struct licence *licence; /* of the first placement of each */
    uint32_t licence_count;
};

struct uses {
    struct use list[20000];
    uint32_t count;
    uint32_t jobs;
};

static uint32_t sharing_of (const struct life *l, const struct req *req)
{
    return req->access ? req->access : l->policy->node_access ? (uint32_t)l->policy->node_access
                                                              : ACCESS_SHARED;
}

/* cred NULL: a reservation's. What a job of class 1 takes of initiators is its site's to know. */
static void uses_add (const struct life *l, struct uses *u, const struct req *req,
                      const uint32_t *cred, const struct licence *licence, uint32_t licence_count,
                      const struct allocation *a, time_us start, time_us end)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t i = 0; i < a->count; i++) {
        const struct req *r = &req[a->item[i].req];
        uint32_t access = cred ? sharing_of (l, r) : ACCESS_SHARED;
        bool whole = r->exclusive || access >= ACCESS_SINGLEJOB;
        struct node_view node;
        struct use *one = &u->list[u->count++];
        *one = (struct use){.node = a->item[i].node.v, .start = start, .end = end,
                            .user = cred ? cred[CRED_USER] : 0, .access = access,
                            .procs = (int64_t)a->item[i].tasks * r->task.v[RES_PROCS],
                            .job = u->jobs};
        if (i == 0) {
            one->licence = licence;
            one->licence_count = licence_count;
        }
        assert_int_equal (cluster_node_get (c, a->item[i].node, &node, NULL), 0);
        for (uint32_t d = 0; d < l->dims; d++)
            one->v[d] = whole ? node.spec.configured.v[d]
                              : (int64_t)a->item[i].tasks * r->task.v[d];
        if (l->rich && !whole) {
            one->v[JOBS_COLUMN] = 1;
            for (uint32_t k = 0; k < i; k++)
                one->v[JOBS_COLUMN] -= a->item[k].node.v == a->item[i].node.v;
            one->v[CLASS_COLUMN] = cred && cred[CRED_CLASS] == 1 ? a->item[i].tasks : 0;
        }
        if (access == ACCESS_SINGLETASK)
            assert_int_equal (a->item[i].tasks, 1);
        if (l->rich && cred && cred[CRED_CLASS] == 1 && node.spec.classes)
            assert_true (node.spec.classes & 1);
        if (l->rich && r->hosts)
            assert_true (a->item[i].node.v <= 1);
    }
    u->jobs++;
}

static void uses_all (const struct life *l, struct uses *u)
{
    const struct cluster *c = l->twin[0];

    u->count = u->jobs = 0;
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        time_us end = job->limit_end > l->now ? job->limit_end
                                              : l->now + l->policy->poll_interval;
        uint32_t from = u->count;
        uses_add (l, u, job->spec.req, job->spec.cred, job->spec.licence,
                  job->spec.licence_count, &job->allocation, l->now, end);
        /* Where it names a firm reservation it stands for whom that was made for. */
        for (; job->spec.reservation.v && from < u->count; from++)
            u->list[from].user = 0;
    }
    for (uint32_t i = 0; i < l->plan[0].reservation_count; i++) {
        const struct plan_reservation *r = &l->plan[0].reservation[i];
        struct job_view view;
        assert_int_equal (cluster_job_get (c, r->job, &view, NULL), 0);
        uses_add (l, u, view.spec->req, view.spec->cred, view.spec->licence,
                  view.spec->licence_count, &r->allocation, r->start, r->end);
        assert_true (r->start >= l->now);
    }
    for (uint32_t i = 0; i < c->rsv_count; i++) {
        const struct rsv_spec *spec = &c->rsv[i]->spec;
        if (spec->kind != RSV_ADMIN && spec->end > l->now)
            uses_add (l, u, spec->req, spec->who ? spec->who->cred : NULL, spec->licence, spec->licence_count,
                      &c->rsv[i]->allocation, spec->start, spec->end);
    }
}

/* a job past its limit may still sit where others were promised: not the pass's doing */
static bool overdue (const struct life *l)
{
    return l->twin[0]->run_count && l->twin[0]->run[0].end <= l->now;
}

/* Everything that is on the node of one use at its beginning, together. */
static void check_node (const struct life *l, const struct uses *u, const struct use *one,
                        time_us at)
{
    struct node_view node;
    int64_t sum[RES_MAX] = {0}, own_procs = 0;
    uint32_t own_jobs = 0;

    assert_int_equal (cluster_node_get (l->twin[0], (struct node_id){one->node}, &node, NULL), 0);
    if (!node_plannable (l->twin[0], one->node) || (node.state == NODE_DOWN && at <= l->now) ||
        overdue (l))
        return;
    for (uint32_t k = 0; k < u->count; k++) {
        const struct use *other = &u->list[k];
        if (other->node != one->node || other->start > at || at >= other->end)
            continue;
        for (uint32_t d = 0; d < l->dims; d++)
            sum[d] += other->v[d];
        if (!l->rich || one->user == 0 || other->user == 0)
            continue;
        if (other->user == one->user) {
            own_jobs++;
            own_procs += other->procs;
        } else if (other->access == ACCESS_SINGLEUSER || one->access == ACCESS_SINGLEUSER) {
            fail_msg ("node %u is shared by users %u and %u at %lld s", one->node, one->user,
                      other->user, (long long)(at / US_PER_S));
        }
    }
    for (uint32_t d = 0; d < l->dims; d++) {
        if (sum[d] > node.spec.configured.v[d])
            fail_msg ("node %u holds %lld of resource %d at %lld s, has %d", one->node,
                      (long long)sum[d], d, (long long)(at / US_PER_S),
                      node.spec.configured.v[d]);
    }
    if (l->rich && node.spec.max_jobs_per_user && one->user)
        assert_true (own_jobs <= node.spec.max_jobs_per_user);
    if (l->rich && node.spec.max_procs_per_user && one->user)
        assert_true (own_procs <= node.spec.max_procs_per_user);
}

static void check_licences (const struct life *l, const struct uses *u, time_us at)
{
    int64_t used[LICENCES] = {0};

    for (uint32_t k = 0; k < u->count; k++) {
        const struct use *one = &u->list[k];
        for (uint32_t i = 0; one->start <= at && at < one->end && i < one->licence_count; i++)
            used[one->licence[i].kind] += one->licence[i].count;
    }
    for (int k = 0; k < LICENCES; k++) {
        if (used[k] > l->licence[k] && !overdue (l))
            fail_msg ("%lld of licence %d are in use at %lld s, there are %d", (long long)used[k],
                      k, (long long)(at / US_PER_S), l->licence[k]);
    }
}

static void check_over_commitment (const struct life *l)
{
    static struct uses u;

    uses_all (l, &u);
    for (uint32_t i = 0; i < u.count; i++) {
        time_us at = u.list[i].start < l->now ? l->now : u.list[i].start;
        check_node (l, &u, &u.list[i], at);
        if (l->rich)
            check_licences (l, &u, at);
    }
}

/* All nodes of a job in one partition, and where that must be in one of the sets. */
static void check_together (const struct life *l, const struct job_view *job,
                            const struct allocation *a)
{
    struct node_view first, node;
    uint64_t common = UINT64_MAX;
    bool same_speed = true;

    if (a->count == 0)
        return;
    assert_int_equal (cluster_node_get (l->twin[0], a->item[0].node, &first, NULL), 0);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal (cluster_node_get (l->twin[0], a->item[i].node, &node, NULL), 0);
        assert_int_equal (node.spec.partition, first.spec.partition);
        if (job->spec->cred[CRED_USER] == 1)
            assert_int_equal (node.spec.partition, 1);
        if (job->spec->req[a->item[i].req].partitions)
            assert_int_equal (node.spec.partition, 2);
        common &= node.spec.features.word[0];
        same_speed = same_speed && node.spec.speed_ppm == first.spec.speed_ppm;
    }
    if (l->nodeset && l->mandatory) {
        const struct nodeset *set = &l->twin[0]->groups.nodeset[l->nodeset - 1];
        assert_true (set->attribute == NODESET_SPEED ? same_speed : (common & 3) != 0);
    }
}

static void check_sets (const struct life *l)
{
    struct job_view view;

    for (uint32_t i = 0; i < l->plan[0].start_count; i++) {
        assert_int_equal (cluster_job_get (l->twin[0], l->plan[0].start[i].job, &view, NULL), 0);
        check_together (l, &view, &view.allocation);
    }
    for (uint32_t i = 0; i < l->plan[0].reservation_count; i++) {
        const struct plan_reservation *r = &l->plan[0].reservation[i];
        assert_int_equal (cluster_job_get (l->twin[0], r->job, &view, NULL), 0);
        check_together (l, &view, &r->allocation);
    }
}

/* --- reservations with ACLs ----------------------------------------------------------------------- */

struct taken { /* by a job, on one node */
    const struct job *job;
    uint32_t node, procs;
    time_us start, end;
    bool fresh; /* decided by this plan */
};

static uint32_t taken_add (struct taken *list, uint32_t n, const struct job *job,
                           const struct allocation *a, time_us start, time_us end, bool fresh)
{
    for (uint32_t i = 0; i < a->count; i++)
        list[n++] = (struct taken){
            job, a->item[i].node.v,
            a->item[i].tasks * (uint32_t)job->spec.req[a->item[i].req].task.v[RES_PROCS], start,
            end, fresh};
    return n;
}

/* By what the manual says of lists, not by the core's own idea of it. */
static bool admitted (const struct rsv *rsv, const struct job *job)
{
    uint32_t ordinary = 0, met = 0, demanded = 0;

    for (uint32_t i = 0; i < rsv->spec.acl_count; i++) {
        const struct acl_entry *e = &rsv->spec.acl[i];
        bool is = e->type == CRED_USER      ? job->spec.cred[CRED_USER] == e->value
                  : e->type == ACL_DURATION ? job->spec.walltime_limit <= e->value
                                            : job->procs <= e->value;
        if (e->deny ? is : e->required && !is)
            return false;
        demanded += e->required;
        ordinary += !e->deny && !e->required;
        met += !e->deny && !e->required && is;
    }
    return ordinary ? met > 0 : demanded > 0;
}

/* What this plan gives to people whom a reservation does not admit leaves it what it keeps, at every
 * moment. All of several that overlap must admit, since each of them is looked at. */
static void check_one (const struct life *l, const struct rsv *rsv, const struct placement *p,
                       const struct taken *list, uint32_t n)
{
    const struct cluster *c = l->twin[0];
    int64_t cap = row (c, c->cap, p->node.v)[RES_PROCS];
    int64_t keep = (int64_t)p->tasks * rsv->spec.req[0].task.v[RES_PROCS];

    for (uint32_t i = 0; i < n; i++) {
        time_us from = list[i].start > rsv->spec.start ? list[i].start : rsv->spec.start;
        if (!list[i].fresh || list[i].node != p->node.v || from >= list[i].end ||
            from >= rsv->spec.end || rsv->spec.end <= l->now || admitted (rsv, list[i].job))
            continue;
        int64_t sum = 0;
        for (uint32_t k = 0; k < n; k++) {
            if (list[k].node == p->node.v && list[k].start <= from && from < list[k].end &&
                !admitted (rsv, list[k].job))
                sum += list[k].procs;
        }
        if (keep >= cap || sum + keep > cap)
            fail_msg ("job %llu at %lld s on node %u, where reservation %llu keeps %lld of %lld: "
                      "others have %lld",
                      (unsigned long long)list[i].job->spec.id.v, (long long)(from / US_PER_S),
                      p->node.v, (unsigned long long)rsv->spec.id.v, (long long)keep,
                      (long long)cap, (long long)sum);
    }
}

static void check_access (const struct life *l)
{
    static struct taken list[20000];
    const struct cluster *c = l->twin[0];
    uint32_t n = 0;

    if (c->run_count && c->run[0].end <= l->now)
        return; /* a job past its limit may sit where others were promised */
    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        bool fresh = false;
        for (uint32_t k = 0; k < l->plan[0].start_count; k++)
            fresh = fresh || l->plan[0].start[k].job.v == job->spec.id.v;
        n = taken_add (list, n, job, &job->allocation, l->now, job->limit_end, fresh);
    }
    for (uint32_t i = 0; i < l->plan[0].reservation_count; i++) {
        const struct plan_reservation *r = &l->plan[0].reservation[i];
        const struct job *job = job_at (c, map_find (&c->map, r->job.v));
        n = taken_add (list, n, job, &r->allocation, r->start, r->end, true);
    }
    for (uint32_t r = 0; r < c->rsv_count; r++) {
        for (uint32_t i = 0; c->rsv[r]->spec.kind == RSV_ADMIN && i < c->rsv[r]->allocation.count;
             i++)
            check_one (l, c->rsv[r], &c->rsv[r]->allocation.item[i], list, n);
    }
}

static bool under (const struct life *l, const struct job *job, uint32_t node)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t r = 0; r < c->rsv_count; r++) {
        const struct rsv *rsv = c->rsv[r];
        for (uint32_t i = 0; i < rsv->allocation.count; i++) {
            if (rsv->spec.kind == RSV_ADMIN && rsv->allocation.item[i].node.v == node &&
                rsv->spec.start <= l->now && rsv->spec.end > l->now && admitted (rsv, job))
                return true;
        }
    }
    return false;
}

/* QFLAGS USERESERVED: started inside reservations that admit the job, and promised nothing else. */
static void check_inside (const struct life *l)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t k = 0; k < l->plan[0].start_count; k++) {
        const struct job *job = job_at (c, map_find (&c->map, l->plan[0].start[k].job.v));
        for (uint32_t i = 0; job->spec.cred[CRED_QOS] == INSIDE && i < job->allocation.count; i++) {
            if (!under (l, job, job->allocation.item[i].node.v))
                fail_msg ("job %llu on node %u, where no reservation admits it",
                          (unsigned long long)job->spec.id.v, job->allocation.item[i].node.v);
        }
    }
    for (uint32_t k = 0; k < l->plan[0].reservation_count; k++) {
        uint32_t slot = map_find (&c->map, l->plan[0].reservation[k].job.v);
        if (job_at (c, slot)->spec.cred[CRED_QOS] == INSIDE)
            fail_msg ("job %llu is promised room outside reservations",
                      (unsigned long long)l->plan[0].reservation[k].job.v);
    }
}

static void check_limits (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    int64_t jobs[8] = {0};

    if (policy_cred (l->policy, CRED_USER, CRED_DEFAULT)->limits.active_mask == 0)
        return;
    for (uint32_t i = 0; i < c->run_count; i++)
        jobs[job_at (c, c->run[i].slot)->spec.cred[CRED_USER]]++;
    for (int u = 0; u < 8; u++)
        assert_true (jobs[u] <= 4);
}

/* PARCFG: so much runs there and no more. */
static void check_partitions (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    int64_t procs = 0;

    for (uint32_t i = 0; i < c->run_count; i++) {
        const struct job *job = job_at (c, c->run[i].slot);
        for (uint32_t k = 0; k < job->allocation.count; k++) {
            const struct placement *p = &job->allocation.item[k];
            if (c->node[p->node.v].partition == 2 && !(job->spec.flags & JOB_FIRM))
                procs += (int64_t)p->tasks * job->spec.req[p->req].task.v[RES_PROCS];
        }
    }
    if (l->policy->partitions_limited && procs > PARTITION_PROCS)
        fail_msg ("%lld processors of partition 2 are in use, its limit is %d", (long long)procs,
                  PARTITION_PROCS);
}

/* Nothing starts on a node that is down, and what is promised there is so from NODEDOWNSTATEDELAYTIME on. */
static void check_down (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    const struct plan *plan = &l->plan[0];

    for (uint32_t i = 0; i < plan->start_count; i++) {
        for (uint32_t k = 0; k < plan->start[i].allocation.count; k++)
            assert_int_equal (c->node_state[plan->start[i].allocation.item[k].node.v], NODE_UP);
    }
    for (uint32_t i = 0; i < plan->reservation_count; i++) {
        const struct plan_reservation *r = &plan->reservation[i];
        for (uint32_t k = 0; k < r->allocation.count; k++) {
            if (c->node_state[r->allocation.item[k].node.v] == NODE_DOWN)
                assert_true (l->policy->node_down_delay > 0 &&
                             r->start >= l->now + l->policy->node_down_delay);
        }
    }
}

/* At each promised start, what runs until then and what was promised before are within the soft limits
 * together with it. */
static void check_soft_promises (const struct life *l)
{
    const struct cluster *c = l->twin[0];
    const struct plan *plan = &l->plan[0];

    if (policy_cred (l->policy, CRED_USER, CRED_DEFAULT)->limits.active_mask == 0 ||
        (c->run_count && c->run[0].end <= l->now))
        return;
    for (uint32_t i = 0; i < plan->reservation_count; i++) {
        struct job_view view, other;
        assert_int_equal (cluster_job_get (c, plan->reservation[i].job, &view, NULL), 0);
        if (view.reason.code != REASON_RESERVED)
            continue; /* kept for RESERVATIONRETRYTIME */
        uint32_t user = view.spec->cred[CRED_USER];
        int64_t jobs = 1, procs = view.procs;
        for (uint32_t k = 0; k < i; k++) {
            const struct plan_reservation *r = &plan->reservation[k];
            assert_int_equal (cluster_job_get (c, r->job, &other, NULL), 0);
            bool there = other.spec->cred[CRED_USER] == user &&
                         r->start <= plan->reservation[i].start &&
                         plan->reservation[i].start < r->end;
            jobs += there;
            procs += there ? other.procs : 0;
        }
        uint32_t started = 0; /* in this pass, and perhaps after the promise: not its concern */
        for (uint32_t k = 0; k < plan->start_count; k++) {
            assert_int_equal (cluster_job_get (c, plan->start[k].job, &other, NULL), 0);
            started += other.spec->cred[CRED_USER] == user;
        }
        for (uint32_t k = 0; k < c->run_count; k++) {
            const struct job *job = job_at (c, c->run[k].slot);
            if (job->spec.cred[CRED_USER] == user && c->run[k].end > plan->reservation[i].start) {
                jobs++;
                procs += job->procs;
            }
        }
        if (started == 0)
            assert_true (jobs <= 2 && procs <= 6);
    }
}

static void compare_twins (const struct life *l)
{
    struct job_id list[ACTIVE_MOST];
    uint32_t n = cluster_job_list (l->twin[0], JOB_IDLE, list, ACTIVE_MOST);

    assert_int_equal (l->plan[0].hash, l->plan[1].hash);
    assert_int_equal (n, cluster_job_count (l->twin[1], JOB_IDLE));
    for (uint32_t i = 0; i < n && i < ACTIVE_MOST; i++) {
        struct job_view a, b;
        assert_int_equal (cluster_job_get (l->twin[0], list[i], &a, NULL), 0);
        assert_int_equal (cluster_job_get (l->twin[1], list[i], &b, NULL), 0);
        assert_int_equal (a.priority, b.priority);
        assert_int_equal (a.bypass, b.bypass);
        assert_int_equal (a.reserved_start, b.reserved_start);
        assert_int_equal (a.reason.code, b.reason.code);
        assert_int_equal (a.reason.need, b.reason.need);
        assert_int_equal (a.reason.have, b.reason.have);
        assert_int_equal (a.reason.clears, b.reason.clears);
        assert_true (a.reason.code != REASON_NONE && a.reason.code != REASON_NOT_PLANNED);
    }
}

/* Did something start in a SINGLEUSE reservation, which is closed to all others then, whatever they were
 * promised in it? */
static bool single_used (const struct life *l)
{
    const struct cluster *c = l->twin[0];

    for (uint32_t r = 0; r < c->rsv_count; r++) {
        for (uint32_t i = 0; i < l->plan[0].start_count; i++) {
            if (c->rsv[r]->used_by.v == l->plan[0].start[i].job.v)
                return true;
        }
    }
    return false;
}

/* Asked again at once, the first reserved job must not be worse off for what was just backfilled.
 * Only where the order cannot have changed (bypass counts and limits move it). */
static void check_no_delay (struct life *l)
{
    struct arena *arena = arena_create (0);
    struct plan again;
    struct err err = {0};

    if (l->policy->sub_weight[PRIO_BYPASS] != 0 || single_used (l) || l->policy->partitions_limited ||
        policy_cred (l->policy, CRED_USER, CRED_DEFAULT)->limits.active_mask != 0)
        goto done;
    assert_int_equal (plan_compute (l->twin[1], l->now, arena, &again, &err), 0);
    if (l->plan[1].reservation_count && again.reservation_count &&
        again.reservation[0].job.v == l->plan[1].reservation[0].job.v)
        assert_true (again.reservation[0].start <= l->plan[1].reservation[0].start);
done:
    arena_destroy (arena);
}

/* In steps of one job, of some, or in one; who asks in between learns nothing that is not so, and the plan
 * is the twin's, which is made in one. */
static int plan_in_steps (struct life *l, struct err *err)
{
    static const uint32_t most[] = {1, 20, UINT32_MAX};
    uint32_t at_most = most[pick (l, 0, 2)], step = 0;
    bool more = true;
    int rc = plan_begin (l->twin[0], l->now, l->arena[0], &l->plan[0], err);

    while (rc == 0 && more) {
        rc = plan_step (l->twin[0], at_most, &more, err);
        if (step++ % 16 == 3)
            check_question (l);
    }
    return rc;
}

static void pass (struct life *l)
{
    for (int t = 0; t < 2; t++) {
        struct err err = {0};
        arena_reset (l->arena[t]);
        if (t == 1)
            plan_forget (l->twin[t]);
        if ((t == 0 ? plan_in_steps (l, &err)
                    : plan_compute (l->twin[t], l->now, l->arena[t], &l->plan[t], &err)) != 0 ||
            plan_commit (l->twin[t], &l->plan[t], &err) != 0)
            fail_msg ("%s", err.text);
    }
    compare_twins (l);
    check_limits (l);
    check_soft_promises (l);
    if (l->policy->reservation_binding == BINDING_EARLY)
        check_over_commitment (l);
    check_access (l);
    check_partitions (l);
    check_down (l);
    if (l->rich) {
        check_inside (l);
        check_sets (l);
    }
    check_no_delay (l);
}

static void live (uint64_t seed, bool rich)
{
    struct life life = {.seed = seed, .next_job = 1, .next_rsv = 1, .now = 1000 * US_PER_S,
                        .rich = rich, .dims = rich ? RICH_DIMS : DIMS};
    struct life *l = &life;

    cred_names_init (&l->names);
    for (int i = 1; i < 8; i++) {
        char name[16];
        snprintf (name, sizeof name, "u%d", i);
        strtab_intern (l->names.tab[CRED_USER], name);
    }
    policy_make (l);
    if (rich)
        strtab_intern (l->names.tab[CRED_CLASS], "c1");
    site_make (l);
    if (rich)
        site_enrich (l);
    for (int step = 0; step < 120; step++) {
        for (int64_t k = pick (l, 1, 3); k > 0; k--) {
            event (l);
            check_question (l);
        }
        pass (l);
        check_question (l);
        l->now += pick (l, 0, 3) ? pick (l, 0, 9) * US_PER_S : 0;
    }
    for (int t = 0; t < 2; t++) {
        cluster_destroy (l->twin[t]);
        arena_destroy (l->arena[t]);
    }
    policy_destroy (l->policy);
    cred_names_free (&l->names);
}

static void lives (bool rich)
{
    const char *from = getenv ("NUI_SEED"), *many = getenv ("NUI_SEEDS");
    uint64_t first = from ? strtoull (from, NULL, 10) : 1;
    uint64_t count = many ? strtoull (many, NULL, 10) : from ? 1 : 150;

    for (uint64_t seed = first; seed < first + count; seed++) {
        print_message ("\rseed %llu ", (unsigned long long)seed);
        live (seed, rich);
    }
    print_message ("\n");
}

static void test_lives (void **state)
{
    (void)state;
    lives (false);
}

static void test_rich_lives (void **state)
{
    (void)state;
    lives (true);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_lives),
                                       cmocka_unit_test (test_rich_lives)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
