/* The replay between events: what time alone lets start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "local/sim/engine.h"

#define S US_PER_S

enum { JOBS = 4, NODES = 4 };

struct run {
    struct cred_names names;
    struct policy *policy;
    struct engine_job job[JOBS];
    struct engine_result result[JOBS];
    struct engine_summary summary;
};

static void run_make (struct run *r)
{
    memset (r, 0, sizeof *r);
    cred_names_init (&r->names);
    r->policy = policy_create (&r->names);
    (void)strtab_intern (r->names.tab[CRED_USER], "ann");
    (void)strtab_intern (r->names.tab[CRED_USER], "ben");
    for (uint64_t i = 0; i < JOBS; i++) {
        struct engine_job *j = &r->job[i];
        for (int k = 0; k < CRED_KINDS; k++)
            j->cred[k] = CRED_NONE;
        j->cred[CRED_QOS] = CRED_DEFAULT;
        j->cred[CRED_USER] = 1;
        j->number = i + 1;
        j->procs = 1;
    }
}

static void run_it (struct run *r, uint64_t jobs)
{
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    uint32_t copies = NODES;
    struct err err = {0};
    struct engine_setup setup = {
        .policy = r->policy, .node = &node, .node_copies = &copies, .node_group_count = 1};

    node.configured.v[RES_PROCS] = 1;
    assert_int_equal (policy_seal (r->policy, &err), 0);
    assert_int_equal (engine_run (&setup, r->job, jobs, r->result, &r->summary, &err), 0);
    policy_destroy (r->policy);
    cred_names_free (&r->names);
}

/* MAXPS 1500: of the first job 1,000 s are left, the second asks for 600; from 100 s on there is
 * room, and the next poll sees it. Nothing else happens before 1,000 s. */
static void remaining (enum limit_kind kind, int64_t expected)
{
    struct run r;
    struct policy_cred *any;

    run_make (&r);
    any = policy_cred_edit (r.policy, CRED_USER, CRED_DEFAULT);
    any->limits.active_mask = 1u << kind;
    any->limits.active[LIMIT_SOFT][kind] = any->limits.active[LIMIT_HARD][kind] = 1500;
    r.job[0].limit = r.job[0].run = 1000 * S;
    r.job[1].limit = r.job[1].run = 600 * S;
    run_it (&r, 2);
    assert_int_equal (r.result[0].start, 0);
    assert_int_equal (r.result[1].start, expected * S);
}

static void test_remaining (void **state)
{
    (void)state;
    remaining (LIMIT_PS, 120);
    remaining (LIMIT_WC, 120);
    remaining (LIMIT_JOB, 0); /* nothing that time decides */
}

/* A cap on usage: the first job used it up. It rolls out of the only window, with nothing running
 * and nobody to come. */
static void test_cap_rolls (void **state)
{
    struct run r;
    struct policy_cred *ann;

    (void)state;
    run_make (&r);
    r.policy->fs_policy = FS_DEDICATEDPS;
    r.policy->fs_interval = 3600 * S;
    r.policy->fs_depth = 2;
    ann = policy_cred_edit (r.policy, CRED_USER, 1);
    ann->fs_target = 1200;
    ann->fs_target_type = FS_TARGET_CAP_ABSOLUTE;
    ann->set |= CRED_SET_FSTARGET;
    r.job[0].limit = r.job[0].run = 1000 * S;
    r.job[1].submit = 1000 * S;
    r.job[1].limit = r.job[1].run = 500 * S;
    r.job[2].submit = 1001 * S; /* can never be: the replay ends all the same */
    r.job[2].limit = r.job[2].run = 1500 * S;
    run_it (&r, 3);
    assert_int_equal (r.result[1].start, 7200 * S);
    assert_int_equal (r.result[2].start, TIME_US_NONE);
    assert_int_equal (r.summary.never_started, 1);
}

/* RESERVATIONTHRESHOLD of queue time: from 100 s on the large job has its reservation, and the poll
 * makes it, so that a small one that comes later does not pass. */
static void test_threshold (void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct run r;
        run_make (&r);
        r.policy->reservation_threshold = how ? THRESHOLD_QUEUETIME : THRESHOLD_NONE;
        r.policy->reservation_threshold_value = 100;
        r.job[0].limit = r.job[0].run = 1000 * S;
        r.job[1].limit = r.job[1].run = 100 * S;
        r.job[1].procs = NODES;
        run_it (&r, 2);
        assert_int_equal (r.result[1].start, 1000 * S);
        assert_int_equal (r.summary.passes, how ? 5 + 16 : 5); /* two after starts; 60, 120 … 960 */
    }
}

/* Ann's first job has all four processors for 100 s and uses a twentieth of them, Ben's has them for
 * 50 s and uses all. By what is dedicated Ann is ahead (400 to 200) and Ben's second goes first; by
 * what is used it is Ann's (20 to 200). */
static void utilized (enum fs_policy fs_policy, uint64_t first)
{
    struct run r;

    run_make (&r);
    r.policy->fs_policy = fs_policy;
    r.policy->fs_interval = 3600 * S;
    r.policy->fs_depth = 2;
    r.policy->component_weight[PRIO_SERV] = 0;
    r.policy->component_weight[PRIO_FS] = 1;
    r.policy->sub_weight[PRIO_FSUSER] = 1;
    policy_cred_edit (r.policy, CRED_USER, CRED_DEFAULT)->fs_target_type = FS_TARGET_TARGET;
    policy_cred_edit (r.policy, CRED_USER, CRED_DEFAULT)->fs_target = 50;
    for (uint64_t i = 0; i < 4; i++) {
        r.job[i].cred[CRED_USER] = i == 0 || i == 2 ? 1 : 2;
        r.job[i].submit = i < 2 ? (int64_t)i * S : 110 * S;
        r.job[i].procs = 4;
        r.job[i].limit = r.job[i].run = (i == 0 ? 100 : 50) * S;
    }
    r.job[0].used_known = true;
    r.job[0].used_micro = 200000;
    run_it (&r, 4);
    assert_int_equal (r.result[1].start, 100 * S);
    assert_int_equal (r.result[first].start, 150 * S);
    assert_int_equal (r.result[5 - first].start, 200 * S);
}

static void test_utilized (void **state)
{
    (void)state;
    utilized (FS_DEDICATEDPS, 3);
    utilized (FS_UTILIZEDPS, 2);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_utilized),
        cmocka_unit_test (test_remaining),
        cmocka_unit_test (test_cap_rolls),
        cmocka_unit_test (test_threshold),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
