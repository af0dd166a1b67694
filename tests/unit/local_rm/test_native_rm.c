/* The adapter for RMCFG TYPE=NATIVE over a program that is played: a job's whole life, jobs of ours, and what happened while
 * nobody looked. What a program does wrong is test_native_hostile.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/local_rm/native_world.h"

static int setup (void **state)
{
    struct native_world *w = native_world_create ();
    w->options.patience = 600 * US_PER_S; /* however slow the machine is */
    *state = w;
    return 0;
}

static int teardown (void **state)
{
    native_world_destroy (*state);
    return 0;
}

#define IDLE "12 STATE=Idle;UNAME=ann;QUEUETIME=100;TASKS=3;DPROCS=2;WCLIMIT=600\n"

static const char runs[] = "12 STATE=%s;UNAME=ann;QUEUETIME=100;TASKS=3;DPROCS=2;WCLIMIT=600;"
                           "STARTTIME=%lld;TASKLIST=n1:n1:n2%s\n";

/* Job 12 as that file of the jobs has it. */
static void job_to (struct native_world *w, const char *file, const char *word, long long start,
                    const char *more)
{
    char line[400];
    snprintf (line, sizeof line, runs, word, start, more);
    native_world_put (w, file, "SC=0 COUNT=1\n%s", line);
}

/* Job 12 as it is from now on. */
static void job_is (struct native_world *w, const char *word, long long start, const char *more)
{
    job_to (w, "jobs", word, start, more);
}

static struct rm_job native_spec (void)
{
    static const char *const hosts[] = {"n1", "n2"};
    static const uint32_t tasks[] = {2, 1};
    return (struct rm_job){.job_id = "site.12",
                           .rm_id = "12",
                           .host_count = 2,
                           .host = hosts,
                           .host_tasks = tasks,
                           .procs = 6,
                           .walltime = 600 * US_PER_S};
}

static long long now_s (void)
{
    return (long long)(clock_now_us () / US_PER_S);
}

/* Open, with job 12 told, bound and started on n1, n1 and n2. */
static void begin_running (struct native_world *w)
{
    struct rm_job spec = native_spec ();
    w->bind_native = true;
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    assert_int_equal (w->last.procs, 6);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobstart 12 n1,n1,n2 ann\n") == 1);
    job_is (w, "Running", now_s () - 100, "");
    UNTIL (w, w->started == 1);
    assert_false (w->unasked);
    assert_string_equal (w->placement, "n1:4,n2:2");
}

static void a_jobs_life (void **state)
{
    struct native_world *w = *state;
    begin_running (w);
    long long start = (long long)(w->start / US_PER_S);
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, true, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsuspend 12\n") == 1);
    job_is (w, "Suspended", start, "");
    UNTIL (w, w->suspended);
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, false, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobresume 12\n") == 1);
    job_is (w, "Running", start, "");
    UNTIL (w, w->suspensions == 2);
    assert_false (w->suspended);
    char more[80];
    snprintf (more, sizeof more, ";COMPLETETIME=%lld;EXITCODE=3;CPUTIME=7", start + 1);
    job_is (w, "Completed", start, more);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_EXITED);
    assert_int_equal (w->end.exit_code, 3);
    assert_int_equal (w->end.start, start * US_PER_S);
    assert_int_equal (w->end.end_at, (start + 1) * US_PER_S);
    assert_true (w->end.cpu_known);
    assert_int_equal (w->end.cpu_time, 7 * US_PER_S);
    /* still in the list for a while: told once */
    unsigned looks = native_world_calls (w, "workloadquery");
    UNTIL (w, native_world_calls (w, "workloadquery") > looks + 3);
    assert_int_equal (w->ended, 1);
    assert_int_equal (w->natives, 2); /* as it waited, and as it ran */
    assert_int_equal (native_world_calls (w, "jobstart"), 1);
}

static void ended_by_others (void **state)
{
    static const struct {
        const char *word, *more;
        enum rm_end end;
        long long ran;
    } cases[] = {
        {"Removed", "", RM_END_CANCELLED, 5},
        {"Completed", ";EXITCODE=137", RM_END_SIGNALLED, 5},
        {"Removed", "", RM_END_TIMEOUT, 600},
        {"Completed", ";EXITCODE=0", RM_END_EXITED, 601},
    };
    struct native_world *w = *state;
    w->bind_native = true;
    w->since = 1;
    native_world_open (w);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        long long start = now_s () - 1000;
        native_world_put (w, "jobs",
                          "SC=0 COUNT=1\n%u STATE=%s;UNAME=ann;QUEUETIME=100;WCLIMIT=600;"
                          "STARTTIME=%lld;COMPLETETIME=%lld;TASKLIST=n1%s\n",
                          i + 20, cases[i].word, start, start + cases[i].ran, cases[i].more);
        UNTIL (w, w->ended == i + 1);
        assert_int_equal (w->end.end, cases[i].end);
    }
}

static void holds_requeues_cancels (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = native_spec ();
    begin_running (w);
    assert_int_equal (w->rm.ops->requeue (w->rm.self, "site.12", 0, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobrequeue 12\n") == 1);
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_REQUEUED);
    assert_string_equal (w->end_job, "site.12-0");
    assert_int_equal (w->rm.ops->hold (w->rm.self, "site.12", 1, RM_HOLD_USER, true, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobmodify -j 12 --set hold=user\n") == 1);
    native_world_put (w, "jobs", "SC=0 COUNT=1\n12 STATE=UserHold;UNAME=ann;QUEUETIME=100\n");
    UNTIL (w, w->last.held_user);
    assert_int_equal (w->rm.ops->hold (w->rm.self, "site.12", 1, RM_HOLD_USER, false, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobmodify -j 12 --clear hold\n") == 1);
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    UNTIL (w, !w->last.held_user);
    spec.incarnation = 1;
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobstart 12 n1,n1,n2 ann\n") == 2);
    job_is (w, "Running", now_s (), "");
    UNTIL (w, w->started == 2);
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "site.12", 1, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobcancel 12\n") >= 1);
    char more[80];
    snprintf (more, sizeof more, ";COMPLETETIME=%lld;EXITCODE=143", now_s ());
    job_is (w, "Completed", now_s () - 1, more);
    UNTIL (w, w->ended == 2);
    assert_int_equal (w->end.end, RM_END_CANCELLED);
}

/* A wish that comes while another is on its way, and the list stays as it is. */
static void two_wishes (void **state)
{
    struct native_world *w = *state;
    begin_running (w);
    native_world_put (w, "do.jobsuspend", "until [ -e go ]; do sleep 0.05; done\n");
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, true, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsuspend 12\n") == 1);
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "site.12", 0, NULL), 0);
    unsigned looks = native_world_calls (w, "workloadquery");
    UNTIL (w, native_world_calls (w, "workloadquery") > looks + 1);
    assert_int_equal (native_world_calls (w, "jobcancel"), 0);
    native_world_put (w, "go", "%s", "");
    UNTIL (w, native_world_calls (w, "jobcancel 12\n") >= 1);
}

/* A while of the loop, in which an answer most likely comes. */
static void turn (struct native_world *w)
{
    for (int i = 0; i < 50; i++) {
        event_base_loop (w->base, EVLOOP_NONBLOCK);
        usleep (5000);
    }
}

/* A job is let go on, or let off its hold, while the opposite is on its way, or has been heard and is not seen yet. */
static void taken_back_on_its_way (void **state)
{
    struct native_world *w = *state;
    begin_running (w);
    long long start = (long long)(w->start / US_PER_S);
    native_world_put (w, "do.jobsuspend", "until [ -e go ]; do sleep 0.05; done\n");
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, true, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsuspend 12\n") == 1);
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, false, NULL), 0);
    job_is (w, "Suspended", start, "");
    native_world_put (w, "go", "%s", "");
    UNTIL (w, native_world_calls (w, "jobresume 12\n") == 1);
    job_is (w, "Running", start, "");
    UNTIL (w, w->suspensions == 2);

    /* No look tells of it before that: whether the first has been answered by then makes no difference. */
    native_world_clear (w, "go");
    native_world_clear (w, "do.jobsuspend");
    native_world_put (w, "do.workloadquery", "until [ -e go ]; do sleep 0.05; done\n");
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, true, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsuspend 12\n") == 2);
    turn (w);
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, false, NULL), 0);
    turn (w);
    job_is (w, "Suspended", start, "");
    native_world_put (w, "go", "%s", "");
    UNTIL (w, native_world_calls (w, "jobresume 12\n") == 2);
}

static void hold_taken_back_on_its_way (void **state)
{
    struct native_world *w = *state;
    w->bind_native = true;
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    native_world_put (w, "do.jobmodify", "until [ -e go ]; do sleep 0.05; done\n");
    assert_int_equal (w->rm.ops->hold (w->rm.self, "site.12", 0, RM_HOLD_USER, true, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobmodify -j 12 --set hold=user\n") == 1);
    assert_int_equal (w->rm.ops->hold (w->rm.self, "site.12", 0, RM_HOLD_USER, false, NULL), 0);
    /* and the start that this makes possible does not overtake it */
    struct rm_job spec = native_spec ();
    native_world_put (w, "do.jobstart",
                      "grep -q -e '--clear hold' calls && echo in order >> calls\n");
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    native_world_put (w, "go", "%s", "");
    UNTIL (w, native_world_calls (w, "jobstart 12 n1,n1,n2 ann\n") == 1);
    UNTIL (w, native_world_calls (w, "jobmodify -j 12 --clear hold\n") == 1);
    job_is (w, "Running", now_s (), "");
    UNTIL (w, w->started == 1);
    assert_int_equal (native_world_calls (w, "in order\n"), 1);
}

/* A look takes longer than a start is waited for: what it tells decides, and not that it has not told it yet. */
static void started_and_seen_late (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = native_spec ();
    w->bind_native = true;
    w->options.patience = 3 * US_PER_S;
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    native_world_put (w, "do.clusterquery", "[ ! -e slow ] || sleep 2\n");
    native_world_put (w, "do.workloadquery", "[ ! -e slow ] || sleep 2\n");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    native_world_put (w, "slow", "%s", "");
    native_world_put (w, "do.jobstart", "mv running jobs\n");
    job_to (w, "running", "Running", now_s () - 100, "");
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->started + w->ended == 1);
    assert_int_equal (w->ended, 0);
    assert_int_equal (native_world_calls (w, "jobrequeue"), 0);
}

/* It runs again since the last look, which did not see it wait. */
static void requeued_between_looks (void **state)
{
    struct native_world *w = *state;
    begin_running (w);
    time_us first = w->start;
    job_is (w, "Running", (long long)(first / US_PER_S) + 1, "");
    unsigned looks = native_world_calls (w, "workloadquery");
    UNTIL (w, native_world_calls (w, "workloadquery") > looks + 2);
    assert_int_equal (w->ended, 0); /* whole seconds: that is no other run */
    job_is (w, "Running", now_s (), "");
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_REQUEUED);
    UNTIL (w, w->started == 2);
    assert_true (w->start > first);
}

static void started_by_somebody (void **state)
{
    struct native_world *w = *state;
    w->bind_native = true;
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    job_is (w, "Running", now_s () - 1, "");
    UNTIL (w, w->started == 1);
    assert_true (w->unasked);
    assert_int_equal (native_world_calls (w, "jobstart"), 0);
}

/* Refused, or never begun: what the resource manager says of it is the reason. */
static void not_started (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = native_spec ();
    w->bind_native = true;
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    native_world_put (w, "answer.jobstart", "SC=-1 RESPONSE=n2 is on fire\n");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_REFUSED);
    assert_non_null (strstr (w->end.text, "n2 is on fire"));
    assert_int_equal (native_world_calls (w, "jobrequeue"), 0);
    /* taken, and then nothing comes of it: it is not to start when nobody expects it any more */
    native_world_clear (w, "answer.jobstart");
    native_world_close (w);
    w->options.patience = US_PER_S;
    native_world_open (w);
    w->rm.ops->bind (w->rm.self, "12", 100 * US_PER_S, "site.12", 1, 0, NULL);
    spec.incarnation = 1;
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 2);
    assert_int_equal (w->end.end, RM_END_START_FAILED);
    assert_non_null (strstr (w->end.text, "did not start it on n1,n1,n2"));
    assert_int_equal (native_world_calls (w, "jobrequeue 12"), 1);
}

/* --- jobs of ours ------------------------------------------------------------------------- */

static const char mark[] = "3f09c2aa00000000000000000000000000000000000000000000000000000000";
static const char our_name[] = "site.7.3f09c2aa";

static struct rm_job our_spec (struct native_world *w)
{
    static const char *const hosts[] = {"n1", "n2"}, *const args[] = {"it's", "a b"},
                             *const env[] = {"COLOUR=deep 'blue'"};
    static const uint32_t tasks[] = {2, 1};
    static const char script[] = "#!/bin/sh\necho \"$COLOUR $1 $2 $NUI_NODEFILE\"; exit 4\n";
    return (struct rm_job){.job_id = "site.7",
                           .mark = mark,
                           .local_account = w->account,
                           .start = clock_now_us (),
                           .walltime = 600 * US_PER_S,
                           .host_count = 2,
                           .host = hosts,
                           .host_tasks = tasks,
                           .procs = 6,
                           .memory_mb = 300,
                           .script = script,
                           .script_len = sizeof script - 1,
                           .arg_count = 2,
                           .arg = args,
                           .env_count = 1,
                           .env = env,
                           .class_name = "batch"};
}

/* Entry 5, that job of ours. */
static void ours_is (struct native_world *w, const char *word, const char *more)
{
    native_world_put (w, "jobs",
                      "SC=0 COUNT=1\n5 STATE=%s;UNAME=%s;QUEUETIME=100;NAME=%s;TASKS=3%s\n", word,
                      w->account, our_name, more);
}

static void script_runs_once (struct native_world *w)
{
    char command[400], line[200] = "";
    snprintf (command, sizeof command,
              "%s/site.7/run; [ $? = 4 ] && { %s/site.7/run 2>/dev/null; [ $? = 125 ]; }", w->jobs,
              w->jobs);
    assert_int_equal (system (command), 0);
    snprintf (command, sizeof command, "%s/site.7/work/stdout", w->jobs);
    FILE *f = fopen (command, "r");
    assert_non_null (f);
    assert_non_null (fgets (line, sizeof line, f));
    fclose (f);
    assert_int_equal (strncmp (line, "deep 'blue' it's a b /", 22), 0);
    assert_non_null (strstr (line, "/site.7/work/nodefile\n"));
}

static void a_job_of_ours (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = our_spec (w);
    struct err err = {0};
    char words[600], more[80];
    native_world_put (w, "answer.jobsubmit", "SC=0 JOBID=5 RESPONSE=taken\n");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->handed_count == 1);
    assert_string_equal (w->handed, "site.7=5");
    snprintf (words, sizeof words, "jobsubmit UNAME=%s ", w->account);
    assert_int_equal (native_world_calls (w, words), 1);
    ours_is (w, "Idle", "");
    UNTIL (w, native_world_calls (w, "jobstart 5 n1,n1,n2 ") == 1);
    snprintf (more, sizeof more, ";STARTTIME=%lld;TASKLIST=n1:n1:n2", now_s ());
    ours_is (w, "Running", more);
    UNTIL (w, w->started == 1);
    assert_int_equal (w->natives, 0); /* it is no job of the resource manager's own */
    script_runs_once (w);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, &err), ERR_EXISTS);
    snprintf (more, sizeof more, ";STARTTIME=%lld;COMPLETETIME=%lld;EXITCODE=4", now_s () - 1,
              now_s ());
    ours_is (w, "Completed", more);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.exit_code, 4);
    int fd = w->rm.ops->output_open (w->rm.self, "site.7", 0, mark, "stdout", NULL);
    assert_true (geteuid () == 0 ? fd < 0 : fd >= 0); /* root wrote it here, not the account */
    if (fd >= 0)
        close (fd);
}

/* What is submitted says all that the resource manager must know. */
static void words_of_a_submission (void **state)
{
    static const char *const wanted[] = {
        "WCLIMIT=608",          "TASKS=3",      "DPROCS=2",    "RMEM=100",
        "NAME=site.7.3f09c2aa", "RCLASS=batch", "/site.7/run", "/site.7/work"};
    struct native_world *w = *state;
    struct rm_job spec = our_spec (w);
    char line[2000] = "", path[160];
    w->options.launcher = "ssh -q";
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsubmit") == 1);
    snprintf (path, sizeof path, "%s/site.7/run", w->jobs);
    FILE *script = fopen (path, "r"); /* what nui run asks for */
    while (fgets (line, sizeof line, script) &&
           strcmp (line, "export NUI_LAUNCHER='ssh -q'\n") != 0)
        ;
    assert_false (feof (script));
    fclose (script);
    snprintf (path, sizeof path, "%s/calls", w->dir);
    FILE *f = fopen (path, "r");
    while (fgets (line, sizeof line, f) && strncmp (line, "jobsubmit", 9) != 0)
        ;
    fclose (f);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr (line, wanted[i]))
            fail_msg ("no %s in %s", wanted[i], line);
}

/* The answer is lost: found by its name it is not submitted again, not found it is. */
static void a_lost_submission (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = our_spec (w);
    w->options.patience = 60 * US_PER_S;
    native_world_put (w, "answer.jobsubmit", "SC=0 JO");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsubmit") == 2);
    ours_is (w, "Idle", "");
    UNTIL (w, w->handed_count == 1);
    UNTIL (w, native_world_calls (w, "jobstart 5") == 1);
    unsigned submits = native_world_calls (w, "jobsubmit");
    unsigned looks = native_world_calls (w, "workloadquery");
    UNTIL (w, native_world_calls (w, "workloadquery") > looks + 4);
    assert_int_equal (native_world_calls (w, "jobsubmit"), submits);
}

static void submission_refused (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = our_spec (w);
    native_world_put (w, "answer.jobsubmit", "SC=-3 RESPONSE=no such queue\n");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_REFUSED);
    assert_non_null (strstr (w->end.text, "no such queue"));
}

/* --- while nobody looked ------------------------------------------------------------------ */

static void ended_while_away (void **state)
{
    struct native_world *w = *state;
    begin_running (w);
    native_world_close (w);
    char more[80];
    long long start = (long long)(w->start / US_PER_S);
    snprintf (more, sizeof more, ";COMPLETETIME=%lld;EXITCODE=0", start + 1);
    job_is (w, "Completed", start, more);
    w->bind_native = false;
    native_world_open (w);
    w->rm.ops->bind (w->rm.self, "12", 100 * US_PER_S, "site.12", 0, w->start, NULL);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_EXITED);
    assert_int_equal (w->end.start, w->start);
    assert_int_equal (w->end.end_at, (start + 1) * US_PER_S);
}

/* The accounting has its start from its node, seconds after it was sent there: it is the same run all the same. */
static void ended_while_away_and_began_late (void **state)
{
    struct native_world *w = *state;
    char more[100];
    begin_running (w);
    native_world_close (w);
    long long start = (long long)(w->start / US_PER_S);
    snprintf (more, sizeof more, ";DISPATCHTIME=%lld;COMPLETETIME=%lld;EXITCODE=0", start - 7,
              start + 9);
    job_is (w, "Completed", start + 5, more);
    w->bind_native = false;
    native_world_open (w);
    w->rm.ops->bind (w->rm.self, "12", 100 * US_PER_S, "site.12", 0, w->start, NULL);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_EXITED);
    assert_int_equal (w->end.start, (start + 5) * US_PER_S);
    assert_int_equal (w->end.end_at, (start + 9) * US_PER_S);

    /* a run that began after the one that was told had ended is another */
    native_world_close (w);
    snprintf (more, sizeof more, ";DISPATCHTIME=%lld;COMPLETETIME=%lld;EXITCODE=0", start + 4,
              start + 9);
    job_is (w, "Completed", start + 5, more);
    native_world_open (w);
    w->rm.ops->bind (w->rm.self, "12", 100 * US_PER_S, "site.12", 0, w->start, NULL);
    UNTIL (w, w->ended == 2);
    assert_int_equal (w->end.end, RM_END_REQUEUED);
}

/* What ended before we first came is none of our business; after we were there once it is. */
static void ends_of_unknown_jobs (void **state)
{
    struct native_world *w = *state;
    long long now = now_s ();
    char jobs[600];
    snprintf (jobs, sizeof jobs,
              "SC=0 COUNT=2\n"
              "30 STATE=Completed;UNAME=ann;QUEUETIME=100;STARTTIME=%lld;COMPLETETIME=%lld\n"
              "31 STATE=Completed;UNAME=ann;QUEUETIME=100;STARTTIME=%lld;COMPLETETIME=%lld\n",
              now - 900, now - 800, now - 200, now - 100);
    native_world_put (w, "jobs", "%s", jobs);
    w->bind_native = true;
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->natives, 0);
    native_world_close (w);
    w->since = (now - 500) * US_PER_S;
    native_world_open (w);
    UNTIL (w, w->ended == 1);
    assert_string_equal (w->told, " 31");
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->ended, 1);
    assert_true (w->rm.ops->settled (w->rm.self) > w->since);
}

static void adopted (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = our_spec (w);
    native_world_open (w);
    assert_int_equal (w->rm.ops->adopt (w->rm.self, "site.7", 0, mark, NULL), 0);
    assert_int_equal (w->rm.ops->adopt (w->rm.self, "site.8", 0, mark, NULL), 0);
    ours_is (w, "Completed", ";STARTTIME=200;COMPLETETIME=300;EXITCODE=4");
    UNTIL (w, w->ended == 1);
    assert_string_equal (w->handed, "site.7=5");
    assert_int_equal (w->end.exit_code, 4);
    UNTIL (w, w->unknown == 1); /* site.8 is nowhere */
    /* of another submission, or of another user: not ours, and nobody's else */
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    native_world_close (w);
    native_world_put (w, "jobs", "SC=0 COUNT=1\n6 STATE=Idle;UNAME=other;QUEUETIME=100;NAME=%s\n",
                      our_name);
    native_world_open (w);
    assert_int_equal (w->rm.ops->adopt (w->rm.self, "site.7", 0, mark, NULL), 0);
    UNTIL (w, w->unknown == 2);
    assert_int_equal (w->natives, 0);
}

/* Submitted and not started yet: it is, on the nodes that were chosen for it. */
static void adopted_before_its_start (void **state)
{
    struct native_world *w = *state;
    struct rm_job spec = our_spec (w);
    native_world_put (w, "do.jobsubmit", "exit 1\n");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobsubmit") == 1);
    native_world_close (w);
    ours_is (w, "Idle", "");
    native_world_open (w);
    assert_int_equal (w->rm.ops->adopt (w->rm.self, "site.7", 0, mark, NULL), 0);
    UNTIL (w, native_world_calls (w, "jobstart 5 n1,n1,n2 ") == 1);
    assert_int_equal (native_world_calls (w, "jobsubmit"), 1);
}

/* Twice in a row it is not in the list: then it is believed. */
static void a_job_that_is_gone (void **state)
{
    struct native_world *w = *state;
    begin_running (w);
    native_world_put (w, "jobs", "SC=0 COUNT=0\n");
    UNTIL (w, w->unknown == 1);
    assert_int_equal (w->ended, 0);
}

/* --- looking ------------------------------------------------------------------------------ */

static void nodes_as_they_are (void **state)
{
    struct native_world *w = *state;
    uint32_t count;
    native_world_put (w, "nodes",
                      "{\"nodes\":[{\"id\":\"n2\",\"state\":\"Idle\",\"cproc\":4,\"cmemory\":1000},"
                      "{\"id\":\"n1\",\"state\":\"Draining\",\"cproc\":2,\"cat\":\"fan\"},"
                      "{\"id\":\"GLOBAL\",\"cres\":\"matlab:2\"}]}");
    native_world_put (w, "jobs", "{\"jobs\":[]}");
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    const struct rm_node *node = w->rm.ops->nodes (w->rm.self, &count);
    assert_int_equal (count, 2);
    assert_string_equal (node[0].name, "n1");
    assert_int_equal (node[0].state, RM_NODE_DRAINED);
    assert_string_equal (node[0].reason, "fan");
    assert_true (w->rm.ops->node_up (w->rm.self, "n2"));
    assert_false (w->rm.ops->node_up (w->rm.self, "n1"));
    assert_false (w->rm.ops->node_up (w->rm.self, "n3"));
    assert_string_equal (w->rm.ops->licences (w->rm.self), "matlab:2");
    assert_int_equal (w->nodes, 1);
    native_world_put (w, "nodes", "SC=0 COUNT=1\nn1 STATE=Idle;CPROC=2;CPULOAD=0.5\n");
    UNTIL (w, w->nodes == 2);
    native_world_put (w, "nodes", "SC=0 COUNT=1\nn1 STATE=Idle;CPROC=2;CPULOAD=1.5\n");
    unsigned looks = native_world_calls (w, "clusterquery");
    UNTIL (w, native_world_calls (w, "clusterquery") > looks + 2);
    assert_int_equal (w->nodes, 2); /* a load is not the configuration */
}

/* --- over HTTP ---------------------------------------------------------------------------- */

struct told {
    struct native_world *w;
    char path[64], body[200], method;
    int status;
};

static void on_request (struct evhttp_request *request, void *arg)
{
    struct told *t = arg;
    struct evbuffer *out = evbuffer_new (), *in = evhttp_request_get_input_buffer (request);
    const char *path = evhttp_uri_get_path (evhttp_request_get_evhttp_uri (request));
    size_t len = evbuffer_get_length (in);
    if (strcmp (path, "/rm/clusterquery") == 0) {
        evbuffer_add_printf (out, "{\"nodes\":[{\"id\":\"n1\",\"state\":\"Idle\",\"cproc\":9}]}");
    } else if (strcmp (path, "/rm/workloadquery") == 0) {
        evbuffer_add_printf (out, "SC=0 COUNT=1\n" IDLE);
    } else {
        snprintf (t->path, sizeof t->path, "%s", path);
        snprintf (t->body, sizeof t->body, "%.*s", (int)len, (char *)evbuffer_pullup (in, -1));
        t->method = evhttp_request_get_command (request) == EVHTTP_REQ_POST ? 'P' : 'G';
        evbuffer_add_printf (out, "SC=-1 RESPONSE=not here\n");
    }
    evhttp_send_reply (request, t->status ? t->status : 200, NULL, out);
    evbuffer_free (out);
}

static void over_http (void **state)
{
    struct native_world *w = *state;
    struct told t = {.w = w};
    struct rm_job spec = native_spec ();
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    char adapter[64];
    uint32_t count;
    struct evhttp *http = evhttp_new (w->base);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle (http, "127.0.0.1", 0);
    evhttp_set_gencb (http, on_request, &t);
    getsockname (evhttp_bound_socket_get_fd (bound), (struct sockaddr *)&at, &len);
    snprintf (adapter, sizeof adapter, "http://127.0.0.1:%u/rm", ntohs (at.sin_port));
    w->options.adapter = adapter;
    w->bind_native = true;
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    assert_int_equal (w->rm.ops->nodes (w->rm.self, &count)->procs, 9);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_REFUSED);
    assert_non_null (strstr (w->end.text, "not here"));
    assert_string_equal (t.path, "/rm/jobstart");
    assert_string_equal (t.body, "arg=12&arg=n1%2Cn1%2Cn2&arg=ann");
    assert_int_equal (t.method, 'P');
    native_world_mark (w);
    t.status = 503;
    UNTIL (w, !native_world_fresh (w));
    assert_true (native_world_said (w, "answered with HTTP status 503") > 0);
    t.status = 0;
    UNTIL (w, native_world_fresh (w));
    native_world_close (w);
    evhttp_free (http);
}

/* Two schedulers on one resource manager: this one has no wish. */
static void only_looking (void **state)
{
    struct native_world *w = *state;
    w->observe = w->bind_native = true;
    native_world_put (w, "jobs", "SC=0 COUNT=1\n" IDLE);
    native_world_open (w);
    UNTIL (w, w->natives == 1);
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "site.12", 0, NULL), ERR_NOT_FOUND);
    job_is (w, "Running", now_s (), "");
    UNTIL (w, w->started == 1);
    assert_int_equal (native_world_calls (w, "job"), 0);
}

static void what_is_not_configured (void **state)
{
    struct native_world *w = *state;
    struct err err = {0};
    char nodes[200], jobs[200], start[200];
    const struct rm_options none = {.poll = US_PER_S, .patience = US_PER_S};
    snprintf (nodes, sizeof nodes, "file://%s/nodes", w->dir);
    snprintf (jobs, sizeof jobs, "file://%s/jobs", w->dir);
    snprintf (start, sizeof start, "exec://%s?jobstart", w->program);
    w->options = none;
    assert_int_equal (rm_native_kind.check (&w->options, &err), ERR_INVALID);
    assert_non_null (strstr (err.text, "CLUSTERQUERYURL"));
    w->options.url[RM_CALL_CLUSTERQUERY] = nodes;
    w->options.url[RM_CALL_WORKLOADQUERY] = jobs;
    w->options.url[RM_CALL_JOBSTART] = nodes;
    assert_int_equal (rm_native_kind.check (&w->options, &err), ERR_INVALID);
    assert_non_null (strstr (err.text, "JOBSTARTURL cannot be a file"));
    w->options.url[RM_CALL_JOBSTART] = "ssh://host/x";
    assert_int_equal (rm_native_kind.check (&w->options, &err), ERR_INVALID);
    w->options.url[RM_CALL_JOBSTART] = "exec://x";
    assert_int_equal (rm_native_kind.check (&w->options, &err), ERR_INVALID);
    w->options.url[RM_CALL_JOBSTART] = w->options.url[RM_CALL_JOBCANCEL] = start;
    assert_int_equal (rm_native_kind.check (&w->options, &err), 0);
    native_world_open (w);
    assert_null (w->rm.ops->suspend);
    assert_null (w->rm.ops->requeue);
    assert_null (w->rm.ops->hold);
    UNTIL (w, native_world_fresh (w)); /* from the files */
    struct rm_job spec = our_spec (w);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, &err), ERR_UNSUPPORTED);
    assert_non_null (strstr (err.text, "JOBSUBMITURL"));
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (a_jobs_life),
        TEST (ended_by_others),
        TEST (holds_requeues_cancels),
        TEST (requeued_between_looks),
        TEST (two_wishes),
        TEST (taken_back_on_its_way),
        TEST (hold_taken_back_on_its_way),
        TEST (started_and_seen_late),
        TEST (started_by_somebody),
        TEST (not_started),
        TEST (a_job_of_ours),
        TEST (words_of_a_submission),
        TEST (a_lost_submission),
        TEST (submission_refused),
        TEST (ended_while_away),
        TEST (ended_while_away_and_began_late),
        TEST (ends_of_unknown_jobs),
        TEST (adopted),
        TEST (adopted_before_its_start),
        TEST (a_job_that_is_gone),
        TEST (nodes_as_they_are),
        TEST (over_http),
        TEST (only_looking),
        TEST (what_is_not_configured),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
