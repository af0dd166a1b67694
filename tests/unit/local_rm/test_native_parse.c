/* What an adapter of RMCFG TYPE=NATIVE says: both forms, and that nothing is believed by halves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local/rm/native/native_parse.h"

static struct arena *arena;
static struct rm_node *node;
static struct native_seen *job;
static uint32_t count;
static const char *licences;
static struct err err;

static int nodes (const char *text, bool counted)
{
    err = (struct err){0};
    return native_parse_nodes (text, strlen (text), counted, arena, &node, &count, &licences, &err);
}

static int jobs (const char *text)
{
    err = (struct err){0};
    return native_parse_jobs (text, strlen (text), false, arena, &job, &count, &err);
}

static void test_nodes (void **state)
{
    (void)state;
    assert_int_equal (
        nodes ("SC=0 COUNT=4 RESPONSE=all of them\n# by hand\n"
               "n10 STATE=Idle;CPROC=4;APROC=4;CMEMORY=4096;AMEMORY=96;FEATURE=big:fast;"
               "CCLASS=[batch:5][debug];CRES=GPU:2;CPULOAD=1.5;GMETRIC[temp]=103.5\n"
               "n2 STATE=Down;CPROC=2;CAT=\"no power; call\\ Ann\"\n\n"
               "n3 STATE=Draining CPROC=1\nn4 STATE=Odd;CPROC=1\n"
               "GLOBAL STATE=Idle;CRES=matlab:6\n",
               true),
        0);
    assert_int_equal (count, 4);
    assert_string_equal (node[0].name, "n2"); /* as rm.h wants them */
    assert_int_equal (node[0].state, RM_NODE_DOWN);
    assert_string_equal (node[0].reason, "no power; call Ann");
    assert_int_equal (node[1].state, RM_NODE_DRAINED);
    assert_int_equal (node[2].state, RM_NODE_DOWN);
    assert_string_equal (node[2].reason, "Odd");
    assert_string_equal (node[3].name, "n10");
    assert_int_equal (node[3].procs, 4);
    assert_int_equal (node[3].memory_used_mb, 4000);
    assert_int_equal (node[3].load_milli, 1500);
    assert_string_equal (node[3].features, "big,fast");
    assert_string_equal (node[3].classes, "batch,debug");
    assert_string_equal (node[3].gres, "GPU:2");
    assert_string_equal (licences, "matlab:6");
    assert_int_equal (nodes ("{\"nodes\":[{\"id\":\"n1\",\"state\":\"Busy\",\"cproc\":4,"
                             "\"feature\":[\"a\",\"b\"]}]}",
                             true),
                      0);
    assert_int_equal (count, 1);
    assert_int_equal (node[0].procs, 4);
    assert_string_equal (node[0].features, "a,b");
}

static void test_jobs (void **state)
{
    (void)state;
    assert_int_equal (
        jobs (
            "SC=0 RESPONSE=\n"
            "12 STATE=Running;UNAME=ann;QUEUETIME=100;STARTTIME=200;TASKS=3;DPROCS=2;RMEM=300;WCLIMIT=600;"
            "TASKLIST=n1:n1:n2;RCLASS=[batch:1];NAME=\"a b\";RFEATURES=big:fast\n"
            "13 STATE=Hold;UNAME=ann;QUEUETIME=100;HOSTLIST=n1,n2\n"
            "3[2].vm STATE=Completed;UNAME=ann;QUEUETIME=1;STARTTIME=2;COMPLETETIME=9;EXITCODE=3;CPUTIME=4\n"
            "4 STATE=Removed;UNAME=ann;QUEUETIME=1;WCLIMIT=-1\n"),
        0);
    assert_int_equal (count, 4);
    assert_string_equal (job[0].native.rm_id, "3[2].vm");
    assert_int_equal (job[0].state, NATIVE_ENDED);
    assert_false (job[0].removed);
    assert_int_equal (job[0].exit_code, 3);
    assert_int_equal (job[0].end, 9 * US_PER_S);
    assert_int_equal (job[0].cpu_time, 4 * US_PER_S);
    assert_true (job[1].removed);
    assert_int_equal (job[1].native.walltime, 0);
    assert_string_equal (job[2].native.placement, "n1:4,n2:2");
    assert_int_equal (job[2].native.procs, 6);
    assert_int_equal (job[2].native.memory_per_proc_mb, 150); /* RMEM is a task's */
    assert_string_equal (job[2].native.class_name, "batch");
    assert_string_equal (job[2].native.name, "a b");
    assert_string_equal (job[2].native.features, "big&fast");
    assert_int_equal (job[2].native.walltime, 600 * US_PER_S);
    assert_true (job[3].native.held_admin);
    assert_int_equal (job[3].native.state, RM_NATIVE_PENDING);
    assert_string_equal (job[3].native.hosts, "n1,n2");
    assert_int_equal (jobs ("{\"jobs\":[]}"), 0);
    assert_int_equal (count, 0);
}

/* A list as it was before is left as it was, and the sentence names what is wrong. */
static void test_nothing_by_halves (void **state)
{
    static const struct {
        const char *text, *says;
        bool jobs, counted;
    } bad[] = {
        {"", "nothing was said", false, false},
        {"SC=0 COUNT=2\nn1 STATE=Idle;CPROC=4\n", "COUNT=2 was announced, and 1 came", false,
         false},
        {"SC=0\nn1 STATE=Idle;CPROC=4\n", "without COUNT", false, true},
        {"SC=0\n", "an empty list without COUNT", false, false},
        {"SC=0\nn1 STATE=Idle;CPROC=4\nn2 STATE=Id", "cut short", false, false},
        {"n1 STATE=Idle;CPROC=4\n", "wanted SC=0", false, false},
        {"SC=-3 RESPONSE=the daemon is away\n", "SC=-3 the daemon is away", false, false},
        {"SC=0\nn1 what\n", "line 2: 'what'", false, false},
        {"SC=0\n-rf STATE=Idle;CPROC=4\n", "'-rf'", false, false},
        {"SC=0\nn1 STATE=Idle;CPROC=4\nn1 STATE=Idle;CPROC=4\n", "n1 is there twice", false, false},
        {"SC=0\nn1 STATE=Idle;CPROC=-4\n", "CPROC", false, false},
        {"SC=0\nn1 STATE=Idle;CPROC=99999999999999999999\n", "CPROC", false, false},
        {"SC=0\nn1 STATE=Idle\n", "has no CPROC", false, false},
        {"SC=0\nn1 STATE=Idle;CPROC=2;APROC=3\n", "more processors free", false, false},
        {"SC=0\nn1 STATE=Idle;CPROC=4;CAT=\xff\n", "no text", false, false},
        {"{\"nodes\":[{\"id\":\"n1\"", "no JSON", false, false},
        {"{\"jobs\":[]}", "no list \"nodes\"", false, false},
        {"{\"sc\":-1,\"response\":\"away\"}", "away", false, false},
        {"{\"nodes\":[{\"state\":\"Idle\"}]}", "without a good \"id\"", false, false},
        {"SC=0\n1 STATE=Runing;UNAME=ann;QUEUETIME=1\n", "'Runing'", true, false},
        {"SC=0\n1 STATE=Idle;QUEUETIME=1\n", "UNAME", true, false},
        {"SC=0\n1 STATE=Idle;UNAME=ann\n", "QUEUETIME", true, false},
        {"SC=0\n1 STATE=Running;UNAME=ann;QUEUETIME=1\n", "STARTTIME", true, false},
        {"SC=0\n1 STATE=Idle;UNAME=ann;QUEUETIME=1\n1 STATE=Idle;UNAME=ann;QUEUETIME=1\n",
         "1 is there twice", true, false},
        {"SC=0\n1 STATE=Completed;UNAME=ann;QUEUETIME=1;STARTTIME=9;COMPLETETIME=5\n",
         "ended before it began", true, false},
        {"SC=0\n1 STATE=Idle;UNAME=ann;QUEUETIME=1;TASKS=1000000;DPROCS=1000000\n", "more than",
         true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        count = 77;
        int rc = bad[i].jobs ? jobs (bad[i].text) : nodes (bad[i].text, bad[i].counted);
        if (rc == 0 || !strstr (err.text, bad[i].says) || count != 77)
            fail_msg ("%zu: %d '%s', wanted '%s'", i, rc, err.text, bad[i].says);
    }
}

static void test_results (void **state)
{
    const char *id;
    (void)state;
    err = (struct err){0};
    assert_int_equal (native_parse_result ("SC=0 JOBID=12 RESPONSE=taken\n", 29, arena, &id, &err),
                      0);
    assert_string_equal (id, "12");
    assert_int_equal (native_parse_result ("SC=-1 RESPONSE=no such job\n", 27, arena, &id, &err),
                      ERR_CONFLICT);
    assert_non_null (strstr (err.text, "no such job"));
    assert_int_equal (native_parse_result ("SC=0 JOBID=--all\n", 17, arena, &id, &err),
                      ERR_INVALID);
    assert_int_equal (native_parse_result ("bye\n", 4, arena, &id, &err), ERR_INVALID);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_nodes),
        cmocka_unit_test (test_jobs),
        cmocka_unit_test (test_nothing_by_halves),
        cmocka_unit_test (test_results),
    };
    arena = arena_create (0);
    int failed = cmocka_run_group_tests (tests, NULL, NULL);
    arena_destroy (arena);
    return failed;
}
