/* Random lives with preemption, under each PREEMPTPOLICY: firm parts are never displaced, nor what must
 * not run twice; holds are respected; room that was made is used by whom it was made for; suspended jobs
 * go on where they were; what is promised a checkpoint loses no work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/plan.h"
#include "proto/base/rng.h"

#define S US_PER_S

enum { NODES = 12, PROCS = 4, JOBS = 400, STEPS = 600, SEEDS = 12 };
enum { QOS_HIGH = 1, QOS_LOW, QOS_PLAIN };

struct one {
    struct job_spec spec;
    struct req req;
    duration_us run, done; /* work, and how much of it is safe */
    time_us since;         /* runs since then */
    bool there, runs, suspended, held, refused;
    struct allocation nodes; /* where it was suspended */
};

struct life {
    struct rng rng;
    struct cred_names names;
    struct policy *policy;
    struct cluster *c;
    struct arena *arena;
    struct one job[JOBS + 1];
    uint32_t count;
    time_us now;
    uint64_t seed;
    struct job_id room_for; /* evictions were for this one, and all are done */
    uint32_t evicted, refused, resumed;
};

static uint32_t draw (struct life *l, uint32_t n)
{
    return (uint32_t)(rng_next (&l->rng) % n);
}

#define CHECK(l, what)                                                                             \
    do {                                                                                           \
        if (!(what))                                                                               \
            fail_msg ("seed %llu, at %lld s: %s", (unsigned long long)(l)->seed,                   \
                      (long long)((l)->now / S), #what);                                           \
    } while (0)

static void policy_make (struct life *l, enum preempt_policy how)
{
    static const uint32_t flags[] = {0, QOS_PREEMPTOR, QOS_PREEMPTEE, 0};
    static const double priority[] = {0, 1000, 10, 100};
    struct err err = {0};

    cred_names_init (&l->names);
    (void)strtab_intern (l->names.tab[CRED_QOS], "high");
    (void)strtab_intern (l->names.tab[CRED_QOS], "low");
    (void)strtab_intern (l->names.tab[CRED_QOS], "plain");
    l->policy = policy_create (&l->names);
    l->policy->preempt_policy = how;
    l->policy->sub_weight[PRIO_QOS] = 1;
    l->policy->max_overrun = TIME_US_MAX;
    for (uint32_t q = QOS_HIGH; q <= QOS_PLAIN; q++) {
        struct policy_cred *cred = policy_cred_edit (l->policy, CRED_QOS, q);
        cred->priority = priority[q];
        cred->qos->flags = flags[q];
        cred->set |= CRED_SET_PRIORITY | CRED_SET_QFLAGS;
    }
    assert_int_equal (policy_seal (l->policy, &err), 0);
}

static void arrives (struct life *l)
{
    struct one *j = &l->job[++l->count];
    struct err err = {0};

    *j = (struct one){.there = true};
    j->req.tasks = 1 + draw (l, 2 * PROCS);
    j->req.task.v[RES_PROCS] = 1 + (int32_t)draw (l, 2);
    j->run = (duration_us)(1 + draw (l, 400)) * S;
    j->spec = (struct job_spec){.id = {l->count},
                                .submit = l->now,
                                .not_before = TIME_US_NONE,
                                .walltime_limit = j->run + (duration_us)draw (l, 300) * S,
                                .req_count = 1,
                                .req = &j->req};
    for (int k = 0; k < CRED_KINDS; k++)
        j->spec.cred[k] = CRED_NONE;
    j->spec.cred[CRED_QOS] = QOS_HIGH + draw (l, 3);
    j->spec.flags = draw (l, 6) == 0 ? JOB_FIRM : draw (l, 6) == 0 ? JOB_NORESTART : 0;
    j->held = draw (l, 8) == 0;
    j->spec.holds = j->held ? 1u << draw (l, 3) : 0;
    if (cluster_job_submit (l->c, &j->spec, l->now, &err) != 0)
        fail_msg ("%s", err.text);
}

static void ends (struct life *l, struct one *j)
{
    struct err err = {0};

    if (cluster_job_end (l->c, j->spec.id, l->now, &err) != 0)
        fail_msg ("%s", err.text);
    j->runs = j->suspended = j->there = false;
}

static void evict (struct life *l, struct one *j, const struct one *by)
{
    enum preempt_policy how = l->policy->preempt_policy;
    struct job_view view;
    struct err err = {0};
    int rc = 0;

    CHECK (l, j->runs && j->since < l->now + 1);
    CHECK (l, !(j->spec.flags & JOB_FIRM));
    CHECK (l, j->spec.cred[CRED_QOS] == QOS_LOW);
    CHECK (l, by->spec.cred[CRED_QOS] == QOS_HIGH);
    CHECK (l, !j->refused);
    CHECK (l, !(j->spec.flags & JOB_NORESTART) || how == PREEMPT_SUSPEND || how == PREEMPT_CANCEL);
    if (how == PREEMPT_CHECKPOINT && draw (l, 3) == 0) { /* cannot be made: it goes on */
        j->refused = true;
        l->refused++;
        l->room_for.v = 0;
        rc = cluster_job_eviction_set (l->c, j->spec.id, EVICTION_REFUSED, l->now, &err);
    } else if (how == PREEMPT_CANCEL) {
        ends (l, j);
    } else if (how == PREEMPT_SUSPEND) {
        assert_int_equal (cluster_job_get (l->c, j->spec.id, &view, &err), 0);
        free (j->nodes.item);
        j->nodes = view.allocation;
        j->nodes.item = malloc (view.allocation.count * sizeof *j->nodes.item);
        memcpy (j->nodes.item, view.allocation.item, view.allocation.count * sizeof *j->nodes.item);
        j->done += l->now - j->since;
        j->runs = false;
        j->suspended = true;
        rc = cluster_job_suspend (l->c, j->spec.id, l->now, &err);
    } else {
        if (how == PREEMPT_CHECKPOINT)
            j->done += l->now - j->since;
        j->runs = false;
        rc = cluster_job_preempt (l->c, j->spec.id, l->now, &err);
    }
    if (rc != 0)
        fail_msg ("%s", err.text);
    l->evicted++;
}

static void starts (struct life *l, const struct plan_start *start)
{
    struct one *j = &l->job[start->job.v];
    struct err err = {0};

    CHECK (l, j->there && !j->runs);
    CHECK (l, !j->held);
    if (start->phase == PLAN_RESUMED) {
        CHECK (l, j->suspended);
        CHECK (l, start->allocation.count == j->nodes.count);
        CHECK (l, memcmp (start->allocation.item, j->nodes.item,
                          j->nodes.count * sizeof *j->nodes.item) == 0);
        struct job_view view;
        assert_int_equal (cluster_job_get (l->c, start->job, &view, &err), 0);
        CHECK (l, view.limit_end == l->now + j->spec.walltime_limit - j->done);
        l->resumed++;
    } else {
        CHECK (l, !j->suspended);
        if (cluster_job_running (l->c, start->job, l->now, l->now, &err) != 0)
            fail_msg ("%s", err.text);
    }
    j->runs = true;
    j->suspended = j->refused = false;
    j->since = l->now;
}

static void never_too_much (struct life *l)
{
    for (uint32_t n = 0; n < NODES; n++) {
        struct node_view view;
        assert_int_equal (cluster_node_get (l->c, (struct node_id){n}, &view, NULL), 0);
        CHECK (l, view.dedicated.v[RES_PROCS] <= PROCS);
    }
}

/* One pass, and more while room is made. */
static void passes (struct life *l)
{
    struct plan plan;
    struct err err = {0};

    l->room_for.v = 0;
    do {
        bool used = l->room_for.v == 0;
        arena_reset (l->arena);
        if (plan_compute (l->c, l->now, l->arena, &plan, &err) != 0 ||
            plan_commit (l->c, &plan, &err) != 0)
            fail_msg ("%s", err.text);
        for (uint32_t i = 0; i < plan.start_count; i++) {
            used = used || plan.start[i].job.v == l->room_for.v;
            starts (l, &plan.start[i]);
        }
        CHECK (l, used); /* whom the last pass made room for starts in this one */
        never_too_much (l);
        l->room_for = plan.preempt_count ? plan.preempt_for : (struct job_id){0};
        for (uint32_t i = 0; i < plan.preempt_count; i++)
            evict (l, &l->job[plan.preempt[i].v], &l->job[plan.preempt_for.v]);
    } while (plan.preempt_count);
}

static void step (struct life *l)
{
    l->now += (time_us)(1 + draw (l, 40)) * S;
    for (uint32_t i = 1; i <= l->count; i++) {
        struct one *j = &l->job[i];
        if (j->runs && j->done + (l->now - j->since) >= j->run)
            ends (l, j);
        if (j->there && j->held && draw (l, 10) == 0) {
            j->held = false;
            assert_int_equal (cluster_job_hold_set (l->c, j->spec.id, 0, l->now, NULL), 0);
        }
    }
    for (uint32_t n = draw (l, 3); n-- > 0 && l->count < JOBS;)
        arrives (l);
    passes (l);
}

/* All that never ran to its end yet has all its work still ahead, or safe. */
static void lived (enum preempt_policy how, uint64_t seed, uint32_t *evicted, uint32_t *special)
{
    struct life *l = calloc (1, sizeof *l);
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    struct cluster_options options = {0};
    struct err err = {0};
    struct node_id id;

    l->seed = seed;
    rng_seed (&l->rng, seed, (uint64_t)how);
    policy_make (l, how);
    l->arena = arena_create (0);
    l->c = cluster_create (l->policy, &options, &err);
    node.configured.v[RES_PROCS] = PROCS;
    for (uint32_t n = 0; n < NODES; n++)
        assert_int_equal (cluster_node_add (l->c, &node, 0, &id, &err), 0);
    for (uint32_t i = 0; i < STEPS; i++)
        step (l);
    for (uint32_t i = 1; i <= l->count; i++) {
        /* A job that ended did its work but once, where nothing may be lost; one that is left is late at
         * most. */
        if (how == PREEMPT_CHECKPOINT || how == PREEMPT_SUSPEND)
            CHECK (l, l->job[i].done <= l->job[i].run);
        free (l->job[i].nodes.item);
    }
    *evicted += l->evicted;
    *special += how == PREEMPT_CHECKPOINT ? l->refused : l->resumed;
    cluster_destroy (l->c);
    arena_destroy (l->arena);
    policy_destroy (l->policy);
    cred_names_free (&l->names);
    free (l);
}

static void lives (enum preempt_policy how)
{
    uint32_t evicted = 0, special = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        lived (how, seed, &evicted, &special);
    print_message ("%u evictions, %u resumed or refused\n", evicted, special);
    assert_true (evicted > 50); /* else nothing was tried */
    assert_true (special > 10 || how == PREEMPT_REQUEUE || how == PREEMPT_CANCEL);
}

static void requeued (void **state)
{
    (void)state;
    lives (PREEMPT_REQUEUE);
}

static void suspended (void **state)
{
    (void)state;
    lives (PREEMPT_SUSPEND);
}

static void checkpointed (void **state)
{
    (void)state;
    lives (PREEMPT_CHECKPOINT);
}

static void cancelled (void **state)
{
    (void)state;
    lives (PREEMPT_CANCEL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (requeued),
        cmocka_unit_test (suspended),
        cmocka_unit_test (checkpointed),
        cmocka_unit_test (cancelled),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
