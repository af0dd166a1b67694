/* What happens to a random site. */
#include "tests/prop/local/life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/local/trace.h"

int64_t life_pick (struct life *l, int64_t low, int64_t high)
{
    return low + (int64_t)(trace_random (&l->seed) % (uint64_t)(high - low + 1));
}

#define BOTH(call)                                                                                 \
    do {                                                                                           \
        struct err err_ = {0};                                                                     \
        int rc_[2];                                                                                \
        for (int t = 0; t < 2; t++) {                                                              \
            struct cluster *c = l->twin[t];                                                        \
            rc_[t] = (call);                                                                       \
        }                                                                                          \
        (void)err_;                                                                                \
        assert_int_equal (rc_[0], rc_[1]);                                                         \
    } while (0)

/* PARCFG of the second partition. */
static void partition_limit (struct policy *p)
{
    p->partition_limits = arena_array (p->arena, PARTITIONS_MAX + 1, sizeof *p->partition_limits);
    p->partitions_limited = partition_bit (2);
    p->partition_limits[2].active_mask = 1u << LIMIT_PROC;
    p->partition_limits[2].active[LIMIT_SOFT][LIMIT_PROC] = PARTITION_PROCS - 2;
    p->partition_limits[2].active[LIMIT_HARD][LIMIT_PROC] = PARTITION_PROCS;
}

void life_policy_make (struct life *l)
{
    static const enum node_allocation how[] = {NODEALLOC_FIRSTAVAILABLE, NODEALLOC_LASTAVAILABLE,
                                               NODEALLOC_MINRESOURCE,    NODEALLOC_FASTEST,
                                               NODEALLOC_PRIORITY,       NODEALLOC_CPULOAD};
    struct err err = {0};
    struct policy *p = policy_create (&l->names);
    struct policy_cred *any = policy_cred_edit (p, CRED_USER, CRED_DEFAULT);

    l->policy = p;
    p->node_allocation = how[life_pick (l, 0, 5)];
    p->reservation_binding = life_pick (l, 0, 2) == 0 ? BINDING_LATE : BINDING_EARLY;
    p->backfill_policy =
        (enum backfill_policy) (life_pick (l, 0, 3) == 3 ? BACKFILL_NONE : life_pick (l, 0, 2));
    p->backfill_metric = (enum backfill_metric)life_pick (l, 0, 5);
    p->backfill_window_order = (enum backfill_window_order)life_pick (l, 0, 1);
    p->backfill_depth = life_pick (l, 0, 4) == 0 ? 3 : 0;
    p->reservation_policy =
        (enum reservation_policy) (life_pick (l, 0, 6) == 0 ? life_pick (l, 1, 2) : 0);
    if (life_pick (l, 0, 5) == 0) {
        p->bf_chunk_procs = 3;
        p->bf_chunk_duration = 20 * US_PER_S;
    }
    p->reservation_retry = life_pick (l, 0, 2) == 0 ? 30 * US_PER_S : 0;
    if (life_pick (l, 0, 1)) { /* not by age alone */
        p->sub_weight[PRIO_PROC] = 5;
        p->sub_weight[PRIO_XFACTOR] = 3;
        p->sub_weight[PRIO_BYPASS] = 2;
    }
    if (life_pick (l, 0, 2) == 0) {
        any->limits.active_mask = 1u << LIMIT_JOB | 1u << LIMIT_PROC;
        any->limits.active[LIMIT_SOFT][LIMIT_JOB] = 2;
        any->limits.active[LIMIT_HARD][LIMIT_JOB] = 4;
        any->limits.active[LIMIT_SOFT][LIMIT_PROC] = 6;
        any->limits.active[LIMIT_HARD][LIMIT_PROC] = 12;
    }
    policy_bucket_set (p, 0, (uint32_t)(life_pick (l, 0, 1) ? life_pick (l, 1, 5) : 100), NULL, 0);
    if (l->rich) {
        static const int access[] = {ACCESS_SHARED, ACCESS_SHARED, ACCESS_SINGLEUSER,
                                     ACCESS_SINGLEJOB, ACCESS_SINGLETASK};
        struct policy_cred *inside, *one = policy_cred_edit (p, CRED_USER, 1);
        p->node_access = access[life_pick (l, 0, 4)];
        inside = policy_cred_edit (p, CRED_QOS, INSIDE);
        inside->qos->flags |= QOS_USERESERVED;
        inside->set |= CRED_SET_QFLAGS;
        one->plist = 1; /* the first partition only */
        one->set |= CRED_SET_PLIST;
        p->system_pdef = (uint32_t)life_pick (l, 0, 2);
        if (life_pick (l, 0, 1)) {
            static const enum node_allocation more[] = {NODEALLOC_CONTIGUOUS, NODEALLOC_MAXBALANCE,
                                                        NODEALLOC_LOCAL, NODEALLOC_PRIORITY};
            p->node_allocation = more[life_pick (l, 0, 3)];
        }
        p->task_distribution =
            (enum task_distribution) (life_pick (l, 0, 1) ? life_pick (l, 0, 3) : 0);
        p->node_load_policy = (enum node_load_policy)life_pick (l, 0, 1);
        p->node_max_load_milli = 3000;
        p->use_machine_speed = life_pick (l, 0, 3) == 0;
        p->node_down_delay = life_pick (l, 0, 3) ? 0 : 15 * US_PER_S;
        if (life_pick (l, 0, 3) == 0)
            partition_limit (p);
    }
    if (policy_seal (p, &err) != 0)
        fail_msg ("%s", err.text);
}

void life_site_make (struct life *l)
{
    l->nodes = (uint32_t)life_pick (l, 2, NODES_MOST);
    l->unit = life_pick (l, 0, 2) == 0;
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
        struct node_spec spec = {.partition = 1,
                                 .speed_ppm = (int32_t)life_pick (l, 1, 3) * 1000000,
                                 .priority = (int32_t)life_pick (l, 0, 3)};
        spec.configured.v[RES_PROCS] = l->unit ? 1 : (int32_t)life_pick (l, 1, 5);
        spec.configured.v[RES_MEM_MB] = (int32_t)life_pick (l, 2, 9);
        spec.features.word[0] = (uint64_t)life_pick (l, 0, 3);
        if (l->rich) {
            spec.partition = (uint32_t)life_pick (l, 1, 2);
            spec.configured.v[CLASS_COLUMN] = (int32_t)life_pick (l, 0, 3);
            spec.configured.v[JOBS_COLUMN] = (int32_t)life_pick (l, 1, 4);
            spec.classes = life_pick (l, 0, 2) ? 0 : 1;
            spec.max_jobs_per_user = life_pick (l, 0, 3) ? 0 : 1;
            spec.max_procs_per_user = life_pick (l, 0, 3) ? 0 : 2;
            spec.priority_fn = (uint32_t)life_pick (l, 0, 2);
        }
        BOTH (cluster_node_add (c, &spec, l->now, NULL, &err_));
    }
}

/* What the site says of classes, sets and licences. */
void life_site_enrich (struct life *l)
{
    uint32_t feature[] = {0, 1};
    struct nodeset set = {.policy = (enum nodeset_policy)life_pick (l, 0, 2),
                          .attribute = life_pick (l, 0, 1) ? NODESET_FEATURE : NODESET_SPEED,
                          .priority = (enum nodeset_priority)life_pick (l, 0, 3),
                          .mandatory = life_pick (l, 0, 1) == 1,
                          .count = 0,
                          .value = feature};
    struct class_spec class = {.bit = 0, .column = CLASS_COLUMN, .initiators = 1};
    struct node_id host[] = {{0}, {1}};

    for (int k = 0; k < LICENCES; k++)
        l->licence[k] = (int32_t)life_pick (l, 1, 4);
    if (set.attribute == NODESET_FEATURE)
        set.count = 2;
    l->mandatory = set.mandatory && set.policy != NODESET_ANYOF;
    BOTH (cluster_job_column_set (c, JOBS_COLUMN, l->now, &err_));
    BOTH (cluster_licences_set (c, l->licence, LICENCES, l->now, &err_));
    BOTH (cluster_hosts_define (c, host, 2, &l->hosts, &err_));
    BOTH (cluster_class_set (c, 1, &class, l->now, &err_));
    if (life_pick (l, 0, 1)) {
        BOTH (cluster_nodeset_define (c, &set, &l->nodeset, &err_));
        BOTH (cluster_nodeset_site_set (c, l->nodeset, l->now, &err_));
    }
}

static void job_submit (struct life *l)
{
    struct licence licence[LICENCES];
    struct req req[2];
    struct job_spec spec = {.id = {l->next_job++},
                            .submit = l->now,
                            .not_before = TIME_US_NONE,
                            .req = req,
                            .req_count = 1};

    memset (req, 0, sizeof req);
    for (int r = 0; r < 2; r++) {
        req[r].tasks = (uint32_t)life_pick (l, 1, 6);
        req[r].task.v[RES_PROCS] = l->unit ? 1 : (int32_t)life_pick (l, 1, 2);
        if (!l->unit) {
            req[r].task.v[RES_MEM_MB] = (int32_t)life_pick (l, 0, 2);
            req[r].features.word[0] = life_pick (l, 0, 4) == 0 ? 1 : 0;
            req[r].exclusive = life_pick (l, 0, 9) == 0;
            if (life_pick (l, 0, 6) == 0) {
                req[r].tasks_per_node = 2;
                req[r].tasks = (req[r].tasks + 1) / 2 * 2;
            }
        }
    }
    if (!l->unit && life_pick (l, 0, 6) == 0)
        spec.req_count = 2;
    spec.walltime_limit = life_pick (l, 1, 60) * US_PER_S;
    for (int k = 0; k < CRED_KINDS; k++)
        spec.cred[k] = CRED_NONE;
    spec.cred[CRED_USER] = (uint32_t)life_pick (l, 1, 4);
    spec.cred[CRED_QOS] = CRED_DEFAULT;
    if (l->rich) {
        for (uint32_t k = 0; k < LICENCES; k++) {
            if (life_pick (l, 0, 3) == 0)
                licence[spec.licence_count++] = (struct licence){k, (int32_t)life_pick (l, 1, 3)};
        }
        spec.licence = licence;
        spec.cred[CRED_CLASS] = life_pick (l, 0, 2) ? CRED_NONE : 1;
        spec.cred[CRED_QOS] = life_pick (l, 0, 7) ? CRED_DEFAULT : INSIDE;
        req[0].hosts = life_pick (l, 0, 9) ? 0 : l->hosts;
        req[0].access = life_pick (l, 0, 9) ? ACCESS_SITE : ACCESS_SINGLEUSER;
        req[0].partitions = req[1].partitions = life_pick (l, 0, 9) ? 0 : 2;
    }
    spec.holds = life_pick (l, 0, 12) == 0 ? HOLD_USER : 0;
    if (life_pick (l, 0, 12) == 0)
        spec.not_before = l->now + life_pick (l, 1, 30) * US_PER_S;
    BOTH (cluster_job_submit (c, &spec, l->now, &err_));
}

static struct job_id some_job (struct life *l, enum job_state state)
{
    struct job_id list[ACTIVE_MOST];
    uint32_t n = cluster_job_list (l->twin[0], state, list, ACTIVE_MOST);

    return n ? list[life_pick (l, 0, (n < ACTIVE_MOST ? n : ACTIVE_MOST) - 1)] : (struct job_id){0};
}

enum { ACL_MOST = 3 };

/* For a user or two of the four that jobs have, short jobs, small ones; some kept out or demanded. */
static uint32_t acl_make (struct life *l, struct acl_entry acl[ACL_MOST])
{
    static const uint8_t affinity[] = {AFFINITY_POSITIVE, AFFINITY_NEUTRAL, AFFINITY_NEGATIVE};
    uint32_t count = (uint32_t)life_pick (l, 0, ACL_MOST);

    for (uint32_t i = 0; i < count; i++) {
        int64_t kind = life_pick (l, 0, 5), how = life_pick (l, 0, 9);
        acl[i] = (struct acl_entry){.type = kind < 4   ? CRED_USER
                                            : kind < 5 ? ACL_DURATION
                                                       : ACL_PROCS,
                                    .compare = ACL_LE,
                                    .affinity = affinity[life_pick (l, 0, 2)],
                                    .deny = how == 0,
                                    .required = how == 1,
                                    .value = kind < 4   ? life_pick (l, 1, 4)
                                             : kind < 5 ? life_pick (l, 5, 40) * US_PER_S
                                                        : life_pick (l, 1, 6)};
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
    spec->start = l->now + life_pick (l, 0, 40) * US_PER_S;
    spec->end = life_pick (l, 0, 4) ? spec->start + life_pick (l, 5, 60) * US_PER_S : TIME_US_MAX;
    spec->flags |= RSV_FORCED;
    for (uint32_t n = 0; n < l->nodes; n++) {
        uint32_t tasks;
        assert_int_equal (cluster_node_get (l->twin[0], (struct node_id){n}, &node, NULL), 0);
        tasks = (uint32_t)life_pick (l, 1, node.spec.configured.v[RES_PROCS]);
        if (life_pick (l, 0, 2))
            continue;
        item[a.count++] = (struct placement){{n}, tasks, 0};
        req->tasks += tasks;
    }
    BOTH (cluster_rsv_create (c, spec, &a, l->now, &err_));
}

static void rsv_make (struct life *l)
{
    struct req req = {.tasks = (uint32_t)life_pick (l, 1, 4)};
    struct who who = {.cred = {(uint32_t)life_pick (l, 1, 5), CRED_NONE, CRED_NONE, CRED_NONE, 0},
                      .walltime = life_pick (l, 5, 40) * US_PER_S,
                      .procs = req.tasks};
    struct query q = {.req_count = 1,
                      .req = &req,
                      .duration = who.walltime,
                      .from = l->now + life_pick (l, 0, 40) * US_PER_S,
                      .until = TIME_US_MAX,
                      .queue = life_pick (l, 0, 1) == 1};
    struct slot slot;
    bool granted;
    struct acl_entry acl[ACL_MOST];
    struct rsv_spec spec = {.id = {l->next_rsv++}, .req_count = 1, .req = &req, .acl = acl};
    struct arena *arena = arena_create (0);

    req.task.v[RES_PROCS] = 1;
    spec.kind = (enum rsv_kind)life_pick (l, 0, 2);
    if (spec.kind != RSV_ADMIN)
        q.who = spec.who = &who;
    else
        spec.acl_count = acl_make (l, acl);
    if (spec.kind == RSV_ADMIN)
        spec.flags = life_pick (l, 0, 5) ? 0 : RSV_SINGLEUSE;
    if (spec.kind == RSV_ADMIN && life_pick (l, 0, 1)) {
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

void life_event (struct life *l)
{
    struct job_id job;
    int64_t what = life_pick (l, 0, 99);

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
        int64_t holds = life_pick (l, 0, 1);
        if (job.v)
            BOTH (cluster_job_hold_set (c, job, (uint32_t)holds, l->now, &err_));
    } else if (what < 92 && l->rich) {
        struct node_id node = {(uint32_t)life_pick (l, 0, l->nodes - 1)};
        int32_t load = (int32_t)life_pick (l, 0, 5) * 900;
        BOTH (cluster_node_load_set (c, node, load, l->now, &err_));
    } else if (what < 93) {
        struct node_id node = {(uint32_t)life_pick (l, 0, l->nodes - 1)};
        enum node_state state = (enum node_state)life_pick (l, 0, 2);
        BOTH (cluster_node_state_set (c, node, state, l->now, &err_));
    } else if (what < 95) {
        rsv_make (l);
    } else if (what < 97 && l->next_rsv > 1) {
        struct rsv_id rsv = {(uint64_t)life_pick (l, 1, (int64_t)l->next_rsv - 1)};
        BOTH (cluster_rsv_release (c, rsv, l->now, &err_));
    } else {
        job = some_job (l, JOB_STARTING);
        time_us until = l->now + life_pick (l, 0, 20) * US_PER_S;
        if (job.v)
            BOTH (cluster_job_requeue (c, job, until, l->now, &err_));
    }
}
