/* Programs under RMCFG TYPE=NATIVE that hang, flood, print garbage or half a list, lie, or do a thing twice: what was said last
 * stands, one sentence, nothing is lost and nobody else is held up. */
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/local_rm/native_world.h"

static int setup (void **state)
{
    *state = native_world_create ();
    return 0;
}

static int teardown (void **state)
{
    native_world_destroy (*state);
    return 0;
}

#define NODES "SC=0 COUNT=2\nn1 STATE=Idle;CPROC=4\nn2 STATE=Idle;CPROC=4\n"
#define JOBS "SC=0 COUNT=1\n12 STATE=Idle;UNAME=ann;QUEUETIME=100;TASKS=2\n"

static long long now_s (void)
{
    return (long long)(clock_now_us () / US_PER_S);
}

static void job_runs (struct native_world *w)
{
    native_world_put (w, "jobs",
                      "SC=0 COUNT=1\n12 STATE=Running;UNAME=ann;QUEUETIME=100;TASKS=2;"
                      "STARTTIME=%lld;TASKLIST=n1:n1\n",
                      now_s ());
}

static struct rm_job spec_of (const char *job_id, const char *rm_id)
{
    static const char *const hosts[] = {"n1"};
    static const uint32_t tasks[] = {2};
    return (struct rm_job){.job_id = job_id,
                           .rm_id = rm_id,
                           .host_count = 1,
                           .host = hosts,
                           .host_tasks = tasks,
                           .procs = 2,
                           .walltime = 600 * US_PER_S};
}

static struct rm_job ours_of (const struct native_world *w)
{
    struct rm_job spec = spec_of ("site.7", NULL);
    spec.local_account = w->account;
    spec.mark = "3f09c2aa";
    spec.script = "#!/bin/sh\n";
    spec.script_len = strlen (spec.script);
    return spec;
}

static void begin (struct native_world *w)
{
    w->bind_native = true;
    native_world_put (w, "nodes", NODES);
    native_world_put (w, "jobs", JOBS);
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
}

/* --- answers that are none ---------------------------------------------------------------- */

static const struct {
    const char *call, *answer, *act, *says;
} bad[] = {
    {"nodes", NULL, "sleep 1000", "did not answer within 1 s (PATIENCE)"},
    {"jobs", NULL, "sleep 1000", "did not answer within 1 s (PATIENCE)"},
    {"jobs", NULL, "cat jobs; sleep 1000", "did not answer within 1 s (PATIENCE)"},
    {"nodes", NULL, "cat nodes; exit 3", "ended with exit code 3"},
    {"jobs", NULL, "kill -9 $$", "ended with exit code 137"},
    {"jobs", NULL, "echo 'SC=-2 RESPONSE=the master is away'; exit 1", "the master is away"},
    {"nodes", "", NULL, "nothing was said"},
    {"nodes", "\377\376\n", NULL, "is no text"},
    {"nodes", "Segmentation fault\n", NULL, "wanted SC=0"},
    {"nodes", "SC=0 COUNT=2\nn1 STATE=Idle;CPROC=4\n", NULL, "COUNT=2 was announced, and 1 came"},
    {"nodes", "SC=0\nn1 STATE=Idle;CPROC=4\nn2 STATE=Idle;CPR", NULL, "cut short"},
    {"nodes", "SC=0\n", NULL, "may be a list that was cut short"},
    {"nodes", "SC=0 COUNT=2\nn1 STATE=Idle;CPROC=4\nn1 STATE=Idle;CPROC=4\n", NULL, "twice"},
    {"nodes", "SC=0 COUNT=1\nn1 STATE=Idle;CPROC=99999999\n", NULL, "CPROC"},
    {"nodes", "SC=0 COUNT=1\nn1 STATE=Idle;CPROC=2;APROC=9\n", NULL, "more processors free"},
    {"nodes", "SC=0 COUNT=1\n$(reboot) STATE=Idle;CPROC=2\n", NULL, "is not understood"},
    {"nodes", "{\"nodes\":[{\"id\":\"n1\"", NULL, "no JSON"},
    {"jobs", "SC=0 COUNT=1\n12 STATE=Sleeping;UNAME=ann;QUEUETIME=1\n", NULL, "is not known"},
    {"jobs", "SC=0 COUNT=1\n12 STATE=Running;UNAME=ann;QUEUETIME=1\n", NULL, "no STARTTIME"},
    {"jobs", "SC=0 COUNT=1\n12 STATE=Idle;UNAME=../etc;QUEUETIME=1\n", NULL, "no good UNAME"},
    {"jobs", "SC=0 COUNT=1\n--help STATE=Idle;UNAME=ann;QUEUETIME=1\n", NULL, "not understood"},
    {"jobs", "SC=0 COUNT=2\n12 STATE=Idle;UNAME=ann;QUEUETIME=1\n", NULL, "COUNT=2 was announced"},
};

static void put_bad (struct native_world *w, size_t i)
{
    char act[64];
    snprintf (act, sizeof act, "do.%s", bad[i].call[0] == 'n' ? "clusterquery" : "workloadquery");
    if (bad[i].act)
        native_world_put (w, act, "%s\n", bad[i].act);
    else
        native_world_put (w, bad[i].call, "%s", bad[i].answer);
}

static void put_good (struct native_world *w)
{
    native_world_clear (w, "do.clusterquery");
    native_world_clear (w, "do.workloadquery");
    native_world_put (w, "nodes", NODES);
    native_world_put (w, "jobs", JOBS);
}

static void nothing_by_halves (void **state)
{
    struct native_world *w = *state;
    begin (w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t count;
        native_world_mark (w);
        put_bad (w, i);
        unsigned reach = w->reach, looks = native_world_calls (w, "clusterquery");
        UNTIL (w, !native_world_fresh (w));
        if (!native_world_said (w, bad[i].says))
            fail_msg ("'%s' was not said; %s", bad[i].says, w->dir);
        assert_int_equal (native_world_said (w, "s ago stands; nothing is decided"), 1);
        /* it goes on so: one sentence, and what was said last stands */
        UNTIL (w, native_world_calls (w, "clusterquery") > looks + 2);
        assert_int_equal (native_world_said (w, "unreachable"), 1);
        assert_int_equal (w->reach, reach + 1);
        w->rm.ops->nodes (w->rm.self, &count);
        assert_int_equal (count, 2);
        put_good (w);
        UNTIL (w, native_world_fresh (w));
    }
    assert_int_equal (w->ended + w->unknown + w->started, 0);
    assert_int_equal (w->natives, 1);
    assert_int_equal (w->nodes, 1);
}

static void floods (void **state)
{
    static const char *const call[] = {"do.clusterquery", "do.workloadquery"};
    struct native_world *w = *state;
    w->options.patience = 300 * US_PER_S;
    begin (w);
    for (int i = 0; i < 2; i++) {
        native_world_mark (w);
        native_world_put (w, call[i], "yes 'n1 STATE=Idle;CPROC=4'\n");
        UNTIL (w, !native_world_fresh (w));
        assert_int_equal (native_world_said (w, "answered with more than 67108864 bytes"), 1);
        put_good (w);
        UNTIL (w, native_world_fresh (w));
    }
}

static void no_program (void **state)
{
    struct native_world *w = *state;
    native_world_clear (w, "adapter");
    native_world_open (w);
    UNTIL (w, native_world_said (w, "/adapter: No such file or directory"));
    assert_int_equal (native_world_said (w, "nothing was ever heard"), 1);
}

/* --- calls that come to nothing ----------------------------------------------------------- */

static void a_hanging_start_holds_nobody_up (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = spec_of ("site.12", "12");
    w->options.patience = 5 * US_PER_S;
    begin (w);
    native_world_put (w, "do.jobstart", "sleep 1000\n");
    native_world_put (w, "jobs", "%s13 STATE=Idle;UNAME=ann;QUEUETIME=100\n",
                      "SC=0 COUNT=2\n12 STATE=Idle;UNAME=ann;QUEUETIME=100;TASKS=2\n");
    UNTIL (w, w->natives == 2);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobstart 12") == 1);
    /* meanwhile */
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "site.13", 0, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobcancel 13") == 1);
    unsigned looks = native_world_calls (w, "workloadquery");
    UNTIL (w, native_world_calls (w, "workloadquery") > looks + 2);
    assert_int_equal (native_world_said (w, "JOBSTARTURL"), 0); /* it still hangs */
    assert_true (native_world_fresh (w));
    /* it was heard all the same */
    native_world_clear (w, "do.jobstart");
    job_runs (w);
    UNTIL (w, w->started == 1);
    assert_false (w->unasked);
    assert_int_equal (native_world_calls (w, "jobstart"), 1);
    assert_int_equal (native_world_said (w, "not_started"), 1);
}

/* Never answered well: in the end it has not started, and is not to any more. */
static void a_start_never_heard (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = spec_of ("site.12", "12");
    begin (w);
    native_world_put (w, "answer.jobstart", "what?\n");
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_START_FAILED);
    assert_non_null (strstr (w->end.text, "JOBSTARTURL"));
    assert_int_equal (native_world_calls (w, "jobrequeue 12"), 1);
    assert_true (native_world_calls (w, "jobstart 12") >= 2);
}

/* Nor is it submitted for ever. */
static void a_submission_never_heard (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = ours_of (w);
    begin (w);
    native_world_put (w, "do.jobsubmit", "exit 1\n");
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_START_FAILED);
    assert_non_null (strstr (w->end.text, "adapter ended with exit code 1"));
    assert_true (native_world_calls (w, "jobsubmit") >= 2);
}

/* "Done", and nothing is: it is told again until it is. */
static void a_cancel_without_effect (void **state)
{
    struct native_world *w = *state;
    begin (w);
    job_runs (w);
    UNTIL (w, w->started == 1);
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "site.12", 0, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobcancel 12") == 2);
    native_world_put (w, "answer.jobcancel", "SC=-1 RESPONSE=no\n");
    UNTIL (w, native_world_calls (w, "jobcancel 12") == 3);
    UNTIL (w, native_world_said (w, "not_cancelled"));
    assert_int_equal (w->ended, 0);
    native_world_put (w, "jobs",
                      "SC=0 COUNT=1\n12 STATE=Removed;UNAME=ann;QUEUETIME=100;STARTTIME=%lld;"
                      "COMPLETETIME=%lld\n",
                      (long long)(w->start / US_PER_S), now_s ());
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_CANCELLED);
}

/* --- lies --------------------------------------------------------------------------------- */

static void times_to_come (void **state)
{
    struct native_world *w = *state;
    begin (w);
    native_world_put (w, "jobs",
                      "SC=0 COUNT=1\n12 STATE=Completed;UNAME=ann;QUEUETIME=100;"
                      "STARTTIME=%lld;COMPLETETIME=%lld\n",
                      now_s () + 5000, now_s () + 9000);
    UNTIL (w, w->ended == 1);
    time_us now = clock_now_us ();
    assert_true (w->end.start <= now);
    assert_true (w->end.end_at <= now + US_PER_S);
}

/* Its numbers begin anew: what has the number now is another job. */
static void the_number_of_another (void **state)
{
    struct native_world *w = *state;
    begin (w);
    native_world_put (w, "jobs", "SC=0 COUNT=1\n12 STATE=Idle;UNAME=bob;QUEUETIME=900\n");
    UNTIL (w, w->unknown == 1);
    UNTIL (w, w->natives == 2);
    assert_int_equal (w->last.submit, 900 * US_PER_S);
}

static void a_job_there_twice (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = ours_of (w);
    native_world_put (w, "answer.jobsubmit", "SC=0 JOBID=5 RESPONSE=\n");
    begin (w);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->handed_count == 1);
    native_world_put (w, "jobs",
                      "SC=0 COUNT=2\n"
                      "5 STATE=Idle;UNAME=%s;QUEUETIME=100;NAME=site.7.3f09c2aa\n"
                      "6 STATE=Running;UNAME=%s;QUEUETIME=100;NAME=site.7.3f09c2aa;STARTTIME=200;"
                      "TASKLIST=n1\n",
                      w->account, w->account);
    UNTIL (w, native_world_calls (w, "jobcancel 6") >= 1);
    UNTIL (w, native_world_said (w, "submitted_twice job=site.7 rm_job=5 other=6"));
    assert_int_equal (native_world_calls (w, "jobcancel 5"), 0);
    assert_int_equal (w->started, 0);
    assert_string_equal (w->told, " 12"); /* neither is a job of the resource manager's own */
}

/* A number that another job has is no answer to a submission. */
static void the_number_of_ours (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = ours_of (w);
    native_world_put (w, "answer.jobsubmit", "SC=0 JOBID=12 RESPONSE=\n");
    begin (w);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsubmit") == 2); /* looked for, and not found */
    assert_int_equal (w->handed_count, 0);
    assert_int_equal (native_world_calls (w, "jobstart"), 0);
}

/* We go while programs hang: they go, too. */
static void an_end_in_the_middle (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = spec_of ("site.12", "12");
    begin (w);
    native_world_put (w, "do.jobstart", "echo $$ > pid.new; mv pid.new pid; exec sleep 1000\n");
    native_world_put (w, "do.workloadquery", "exec sleep 1000\n");
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobstart 12") == 1);
    char path[160];
    snprintf (path, sizeof path, "%s/pid", w->dir);
    int pid = 0;
    UNTIL (w, access (path, F_OK) == 0);
    FILE *f = fopen (path, "r");
    assert_int_equal (fscanf (f, "%d", &pid), 1);
    fclose (f);
    native_world_close (w);
    assert_int_not_equal (kill (pid, 0), 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (nothing_by_halves),
        TEST (floods),
        TEST (no_program),
        TEST (a_hanging_start_holds_nobody_up),
        TEST (a_start_never_heard),
        TEST (a_submission_never_heard),
        TEST (a_cancel_without_effect),
        TEST (times_to_come),
        TEST (the_number_of_another),
        TEST (a_job_there_twice),
        TEST (the_number_of_ours),
        TEST (an_end_in_the_middle),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
