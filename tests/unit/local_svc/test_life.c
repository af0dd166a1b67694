/* Running jobs that have to go, and jobs that wait for others: with the real runner and kill -9. */
#include "site.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE(name) NUI__LOCAL__V1__JOB_STATE__JOB_##name

#define QOS                                                                                        \
    "QOSCFG[high] PRIORITY=1000 QFLAGS=PREEMPTOR\nQOSCFG[low] QFLAGS=PREEMPTEE\nQOSWEIGHT 1\n"     \
    "ACCOUNTCFG[chem] QLIST=high,low\n"

struct says {
    const char *id, *code;
};

/* What the site says now of a job, by asking. */
static bool says (struct site *s, void *arg)
{
    const struct says *w = arg;
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    Nui__Local__V1__JobInfo *info = NULL;
    request.job_id = (char *)w->id;
    assert_int_equal (site_call (s->as_alice, "Job", &request, &info, NULL), 0);
    bool same = strcmp (info->reason ? info->reason->code : "", w->code) == 0;
    free_message (info);
    return same;
}

static void wait_says (struct site *s, const char *id, const char *code)
{
    struct says w = {id, code};
    char what[160];
    snprintf (what, sizeof what, "%s to say %s", id, code);
    site_wait (s, says, &w, what);
}

/* Where jobs, which run as another account, may leave things. */
static void box_make (struct site *s)
{
    char path[128];
    snprintf (path, sizeof path, "%s/box", s->dir);
    assert_int_equal (mkdir (path, 0777), 0);
    assert_int_equal (chmod (path, 01777), 0);
}

static void touch (struct site *s, const char *name)
{
    char path[128];
    snprintf (path, sizeof path, "%s/%s", s->dir, name);
    int fd = open (path, O_CREAT | O_WRONLY, 0644);
    assert_true (fd >= 0);
    close (fd);
}

static bool there (struct site *s, void *arg)
{
    char path[128];
    snprintf (path, sizeof path, "%s/%s", s->dir, (const char *)arg);
    return access (path, F_OK) == 0;
}

/* State letters of the processes in /proc that carry the job's id and, since another site's job may have
 * the same, this test's folder. */
static bool stopped (struct site *s, void *arg)
{
    char want[96], path[300], env[8192], stat[512];
    bool any = false, all = true;
    DIR *proc = opendir ("/proc");
    struct dirent *e;
    int n = snprintf (want, sizeof want, "NUI_JOBID=%s", (const char *)arg);
    while ((e = readdir (proc))) {
        snprintf (path, sizeof path, "/proc/%s/environ", e->d_name);
        int fd = open (path, O_RDONLY);
        ssize_t len = fd < 0 ? -1 : read (fd, env, sizeof env - 1);
        if (fd >= 0)
            close (fd);
        if (len <= 0 || !memmem (env, (size_t)len, want, (size_t)n + 1) ||
            !memmem (env, (size_t)len, s->dir, strlen (s->dir)))
            continue;
        snprintf (path, sizeof path, "/proc/%s/stat", e->d_name);
        FILE *f = fopen (path, "r");
        const char *after = f && fgets (stat, sizeof stat, f) ? strrchr (stat, ')') : NULL;
        any = any || after;
        all = all && (!after || after[2] == 'T');
        if (f)
            fclose (f);
    }
    closedir (proc);
    return any && all;
}

static const struct kept_charge *charge_of (struct site *s, const char *job, int which)
{
    for (unsigned i = 0; i < s->charges; i++)
        if (strcmp (s->charge[i].job, job) == 0 && which-- == 0)
            return &s->charge[i];
    return NULL;
}

struct paid {
    const char *job;
    int times;
};

static bool is_paid (struct site *s, void *arg)
{
    const struct paid *p = arg;
    return charge_of (s, p->job, p->times - 1) != NULL;
}

static void wait_paid (struct site *s, const char *job, int times)
{
    struct paid p = {job, times};
    site_wait (s, is_paid, &p, "the charge");
}

/* Stopped, all its processes; killed and restarted meanwhile; goes on, and pays for what it ran. */
static void suspended_and_resumed (void **state)
{
    struct site *s = *state;
    char low[64], high[64], script[512];
    box_make (s);
    site_start (s, QOS "PREEMPTPOLICY SUSPEND\n");
    snprintf (
        script, sizeof script,
        "(: >%s/box/begun; while [ ! -e %s/go ]; do :; done) & wait; echo done\n", /* nobody in
                                                                                      vfork */
        s->dir, s->dir);
    site_submit (s, "grid.1", &(struct job_make){.script = script, .tasks = 8, .qos = "low"}, low);
    site_wait (s, there, (void *)"box/begun", "the job's beginning");
    snprintf (script, sizeof script, "while [ ! -e %s/end ]; do sleep 0.05; done\n", s->dir);
    site_submit (s, "grid.2", &(struct job_make){.script = script, .tasks = 2, .qos = "high"},
                 high);
    site_wait_state (s, high, STATE (RUNNING));
    wait_says (s, low, "Suspended");
    site_wait (s, stopped, low, "its processes to be stopped");
    touch (s, "go"); /* which it cannot see */
    site_kill (s);
    site_start (s, QOS "PREEMPTPOLICY SUSPEND\n");
    wait_says (s, low, "Suspended");
    assert_true (stopped (s, low));
    touch (s, "end");
    site_wait_state (s, high, STATE (COMPLETED));
    site_wait_state (s, low, STATE (COMPLETED));
    wait_paid (s, low, 1);
    wait_paid (s, high, 1);
    assert_null (charge_of (s, low, 1));
    const Nui__Local__V1__JobInfo *e = site_last_event (s, low);
    const struct kept_charge *paid = charge_of (s, low, 0);
    duration_us whole = e->end_us - e->start_us, ran = paid->end_us - paid->start_us;
    assert_true (ran > 0 && whole - ran > 9 * US_PER_S); /* not within ten seconds */
    char *out = site_output (s->as_alice, "grid.1", NULL);
    assert_string_equal (out, "done\n");
    free (out);
}

static void cancelled_for_another (void **state)
{
    struct site *s = *state;
    char low[64], high[64];
    site_start (s, QOS "PREEMPTPOLICY CANCEL\n");
    site_submit (s, "grid.1",
                 &(struct job_make){.script = "exec sleep 1000\n", .tasks = 8, .qos = "low"}, low);
    site_wait_state (s, low, STATE (RUNNING));
    site_submit (s, "grid.2", &(struct job_make){.script = "exit 0\n", .tasks = 2, .qos = "high"},
                 high);
    site_wait_state (s, high, STATE (COMPLETED));
    site_wait_state (s, low, STATE (CANCELLED));
    assert_string_equal (site_last_event (s, low)->reason->code, "Preempted");
}

static void hook_write (struct site *s, const char *text)
{
    char path[128];
    snprintf (path, sizeof path, "%s/hook", s->dir);
    FILE *f = fopen (path, "w");
    fprintf (f, "#!/bin/sh\n%s\n", text);
    fchmod (fileno (f), 0755);
    fclose (f);
}

/* The hook has the job write down how far it is; it goes on from there. A kill in between asks again. */
static void checkpointed (void **state)
{
    struct site *s = *state;
    char low[64], high[64], config[512];
    snprintf (config, sizeof config,
              QOS "PREEMPTPOLICY CHECKPOINT\nCHECKPOINTACCOUNT root\nCHECKPOINTHOOK %s/hook\n",
              s->dir);
    hook_write (s, "touch $(dirname $0)/asked\n"
                   "while [ ! -e $(dirname $0)/may ]; do sleep 0.05; done\n"
                   "echo \"$1 $2\" > $4/state; chmod 644 $4/state; exit 0");
    site_start (s, config);
    site_submit (s, "grid.1",
                 &(struct job_make){.script = "[ -n \"$NUI_CHECKPOINT_DIR\" ] && "
                                              "cat $NUI_CHECKPOINT_DIR/state && "
                                              "echo $NUI_RESTARTS && exit 0\nexec sleep 1000\n",
                                    .tasks = 8,
                                    .qos = "low"},
                 low);
    site_wait_state (s, low, STATE (RUNNING));
    site_submit (s, "grid.2", &(struct job_make){.script = "exit 0\n", .tasks = 2, .qos = "high"},
                 high);
    site_wait (s, there, (void *)"asked", "the hook");
    site_kill (s);
    touch (s, "may");
    site_start (s, config);
    site_wait_state (s, high, STATE (COMPLETED));
    site_wait_state (s, low, STATE (COMPLETED));
    wait_paid (s, low, 2);
    char *out = site_output (s->as_alice, "grid.1", NULL), want[160];
    snprintf (want, sizeof want, "%s ", low);
    assert_ptr_equal (strstr (out, want), out);
    assert_non_null (strstr (out, "\n1\n"));
    free (out);
}

/* Its work would be lost: it runs to its end, and the other waits. */
static void checkpoint_fails (void **state)
{
    struct site *s = *state;
    char low[64], high[64], config[512], script[256];
    snprintf (config, sizeof config,
              QOS "PREEMPTPOLICY CHECKPOINT\nCHECKPOINTACCOUNT root\nCHECKPOINTHOOK %s/hook\n",
              s->dir);
    hook_write (s, "touch $(dirname $0)/asked; exit 3");
    site_start (s, config);
    snprintf (script, sizeof script, "while [ ! -e %s/go ]; do sleep 0.05; done; echo whole\n",
              s->dir);
    site_submit (s, "grid.1", &(struct job_make){.script = script, .tasks = 8, .qos = "low"}, low);
    site_wait_state (s, low, STATE (RUNNING));
    site_submit (s, "grid.2", &(struct job_make){.script = "exit 0\n", .tasks = 2, .qos = "high"},
                 high);
    site_wait (s, there, (void *)"asked", "the hook");
    wait_says (s, low, "");
    site_wait_state (s, high, STATE (QUEUED)); /* and it stays so until the gate is open */
    touch (s, "go");
    site_wait_state (s, low, STATE (COMPLETED));
    site_wait_state (s, high, STATE (COMPLETED));
    wait_paid (s, low, 1);
    assert_null (charge_of (s, low, 1)); /* in one go */
    char *out = site_output (s->as_alice, "grid.1", NULL);
    assert_string_equal (out, "whole\n");
    free (out);
}

static void sent_back_at_its_limit (void **state)
{
    struct site *s = *state;
    char id[64], script[256];
    box_make (s);
    site_start (s, "WCVIOLATIONACTION PREEMPT\nJOBMAXOVERRUN 1\n");
    snprintf (script, sizeof script,
              "[ -e %s/box/once ] && exit 0; touch %s/box/once; exec sleep 1000\n", s->dir, s->dir);
    site_submit (s, "grid.1", &(struct job_make){.script = script, .walltime = US_PER_S}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    wait_paid (s, id, 2);
    const struct kept_charge *first = charge_of (s, id, 0);
    assert_true (first->end_us - first->start_us >= 2 * US_PER_S); /* limit and overrun */
}

/* Its node is gone: it runs again elsewhere; one that must not is ended. */
static void node_goes_down (void **state)
{
    struct site *s = *state;
    char again[64], never[64], path[128], script[256];
    box_make (s);
    site_start (s, "JOBACTIONONNODEFAILURE REQUEUE\nNODEALLOCATIONPOLICY FIRSTAVAILABLE\n"
                   "NODECFG[beta[01-04]] PROCS=2 FEATURES=b\n");
    snprintf (script, sizeof script,
              "[ -e %s/box/once ] && exit 0; touch %s/box/once; exec sleep 1000\n", s->dir, s->dir);
    site_submit (s, "grid.1", &(struct job_make){.script = script, .tasks = 2, .feature = "b"},
                 again);
    site_wait (s, there, (void *)"box/once", "the first run");
    site_submit (
        s, "grid.2",
        &(struct job_make){
            .script = "exec sleep 1000\n", .tasks = 2, .feature = "b", .flag = "NORESTART"},
        never);
    site_wait_state (s, never, STATE (RUNNING));
    site_wait_state (s, again, STATE (RUNNING));
    snprintf (path, sizeof path, "%s/alpha.cfg", s->dir);
    FILE *f = fopen (path, "r+"); /* the first two are not there any more */
    char *text = calloc (1, 65536);
    assert_true (fread (text, 1, 65535, f) > 0);
    char *line = strstr (text, "beta[01-04]");
    assert_non_null (line);
    memcpy (line, "beta[03-04]", 11);
    rewind (f);
    fputs (text, f);
    fclose (f);
    free (text);
    kill (s->pid, SIGHUP);
    site_wait_state (s, again, STATE (COMPLETED));
    site_wait_state (s, never, STATE (CANCELLED));
    assert_string_equal (site_last_event (s, never)->reason->code, "NodeFailure");
    wait_paid (s, again, 2);
}

static void cancel (struct site *s, const char *id)
{
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    request.job_id = (char *)id;
    assert_int_equal (site_call (s->as_operator, "Cancel", &request, NULL, NULL), 0);
}

/* By one user's only job, but not by one that was cancelled; and it stays so over a kill -9. */
static void node_is_set_aside (void **state)
{
    struct site *s = *state;
    static const char config[] = "NODEFAILUREUSERS 1\nNODECFG[beta01] PROCS=2 FEATURES=b\n";
    char id[64];
    site_start (s, config);
    site_submit (s, "grid.1", &(struct job_make){.script = "exec sleep 1000\n", .feature = "b"},
                 id);
    site_wait_state (s, id, STATE (RUNNING));
    cancel (s, id);
    site_wait_state (s, id, STATE (CANCELLED));
    site_submit (s, "grid.2", &(struct job_make){.script = "kill -9 $$\n", .feature = "b"}, id);
    site_wait_state (s, id, STATE (FAILED)); /* there, so the first was no reason */
    site_wait (s, site_logged,
               (void *)"set_aside node=beta01 reason=\"jobs of 1 user failed here, none ended well "
                       "since: alpha.2 was ended by signal 9\"",
               "the node to be set aside");
    site_kill (s);
    site_start (s, config);
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    Nui__Local__V1__SubmitReply *reply = NULL;
    request.envelope = job_envelope (s, &(struct job_make){.script = "exit 0\n", .feature = "b"});
    request.component = (char *)(uintptr_t) "main";
    request.grid_job_id = (char *)(uintptr_t) "grid.3";
    request.attempt = 1;
    assert_int_equal (site_call (s->as_meta, "Submit", &request, &reply, NULL), 0);
    envelope_free (request.envelope);
    assert_false (reply->accepted);
    assert_string_equal (reply->reason->text, "needs 1 task (req 0), all nodes that are up hold 0");
    free_message (reply);
}

/* afterok through a kill -9; what can never be ends, and says so; before… makes the other wait. */
static void waits_for_others (void **state)
{
    struct site *s = *state;
    char first[64], second[64], third[64], fourth[64], fifth[64], script[128];
    site_start (s, NULL);
    snprintf (script, sizeof script, "while [ ! -e %s/go ]; do sleep 0.05; done\n", s->dir);
    site_submit (s, "grid.1", &(struct job_make){.script = script}, first);
    site_submit (
        s, "grid.2",
        &(struct job_make){.script = "exit 0\n", .depend_kind = "afterok", .depend_on = "grid.1"},
        second);
    site_submit (s, "grid.3",
                 &(struct job_make){
                     .script = "exit 0\n", .depend_kind = "jobfailedcomplete", .depend_on = first},
                 third);
    site_submit (s, "grid.4", &(struct job_make){.script = "exit 0\n", .held = true}, fourth);
    site_submit (
        s, "grid.5",
        &(struct job_make){.script = "exit 0\n", .depend_kind = "beforeany", .depend_on = fourth},
        fifth);
    wait_says (s, second, "Dependency");
    wait_says (s, third, "Dependency");
    site_wait_state (s, first, STATE (RUNNING));
    site_kill (s);
    touch (s, "go");
    site_start (s, NULL);
    site_wait_state (s, first, STATE (COMPLETED));
    site_wait_state (s, second, STATE (COMPLETED));
    site_wait_state (s, third, STATE (FAILED)); /* first has not failed: it can never be */
    assert_string_equal (site_last_event (s, third)->reason->code, "DependencyNeverMet");
    site_wait_state (s, fifth, STATE (COMPLETED));
    wait_says (s, fourth, "Hold"); /* what it waited for has come; its user's hold is left */
}

static void bad_wishes_are_refused (void **state)
{
    struct site *s = *state;
    static const struct {
        struct job_make make;
        const char *text;
    } bad[] = {
        {{.script = "x", .depend_kind = "afterwards", .depend_on = "alpha.1"},
         "'afterwards' is no dependency"},
        {{.script = "x", .depend_kind = "afterok", .depend_on = "alpha.99"},
         "afterok: job alpha.99 is not known"},
        {{.script = "x", .depend_kind = "before", .depend_on = "alpha.2"},
         "before alpha.2: it does not wait any more"},
        {{.script = "x", .flag = "PREEMPTOR"}, "flag 'PREEMPTOR'"},
    };
    char id[64];
    site_start (s, NULL);
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n", .held = true}, id);
    site_submit (s, "grid.3", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
        Nui__Local__V1__SubmitReply *reply = NULL;
        struct err err = {0};
        request.envelope = job_envelope (s, &bad[i].make);
        request.component = (char *)"main";
        request.grid_job_id = (char *)"grid.2";
        request.attempt = 1;
        int rc = site_call (s->as_meta, "Submit", &request, &reply, &err);
        assert_true (rc != 0 || !reply->accepted);
        const char *text = rc ? err.text : reply->reason->text;
        if (!strstr (text, bad[i].text))
            fail_msg ("'%s' does not say '%s'", text, bad[i].text);
        if (rc == 0)
            free_message (reply);
        envelope_free (request.envelope);
    }
}

/* Two at one time, through a kill -9. */
static void an_array (void **state)
{
    struct site *s = *state;
    char id[4][64], script[256], want[32];
    site_start (s, NULL);
    snprintf (script, sizeof script,
              "while [ ! -e %s/go$NUI_ARRAY_INDEX ]; do sleep 0.05; done; echo $NUI_ARRAY_INDEX\n",
              s->dir);
    for (uint32_t i = 0; i < 4; i++) {
        char grid[32];
        snprintf (grid, sizeof grid, "grid.%u", i + 1);
        site_submit (s, grid,
                     &(struct job_make){.script = script,
                                        .array = "sixteen bytes it",
                                        .array_limit = 2,
                                        .array_index = 10 + i},
                     id[i]);
    }
    site_wait_state (s, id[0], STATE (RUNNING));
    site_wait_state (s, id[1], STATE (RUNNING));
    wait_says (s, id[2], "ArrayLimit");
    site_kill (s);
    site_start (s, NULL);
    wait_says (s, id[3], "ArrayLimit");
    site_wait_state (s, id[2], STATE (QUEUED));
    touch (s, "go10");
    site_wait_state (s, id[2], STATE (RUNNING));
    wait_says (s, id[3], "ArrayLimit");
    for (uint32_t i = 1; i < 4; i++) {
        snprintf (want, sizeof want, "go%u", 10 + i);
        touch (s, want);
    }
    site_wait_state (s, id[3], STATE (COMPLETED));
    char *out = site_output (s->as_alice, id[3], NULL);
    assert_string_equal (out, "13\n");
    free (out);
}

/* Backfilled before a kill -9, preemptible after it. */
static void backfilled_before_a_restart (void **state)
{
    struct site *s = *state;
    static const char config[] = "BACKFILLPOLICY PREEMPT\nRESWEIGHT 1\nPROCWEIGHT 10\n";
    char first[64], second[64], third[64], script[256];
    site_start (s, config);
    snprintf (script, sizeof script, "while [ ! -e %s/go ]; do sleep 0.05; done\n", s->dir);
    site_submit (s, "grid.1", &(struct job_make){.script = script, .tasks = 6}, first);
    site_wait_state (s, first, STATE (RUNNING));
    site_submit (s, "grid.2", &(struct job_make){.script = "echo all\n", .tasks = 8}, second);
    snprintf (script, sizeof script, "[ -e %s/go ] || exec sleep 1000\n", s->dir);
    site_submit (s, "grid.3",
                 &(struct job_make){.script = script, .tasks = 2, .walltime = 2000 * US_PER_S},
                 third);
    site_wait_state (s, third, STATE (RUNNING));
    site_kill (s);
    touch (s, "go");
    site_start (s, config);
    site_wait_state (s, second, STATE (COMPLETED));
    site_wait_state (s, third, STATE (COMPLETED));
    wait_paid (s, third, 2);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        T (suspended_and_resumed),
        T (cancelled_for_another),
        T (checkpointed),
        T (checkpoint_fails),
        T (sent_back_at_its_limit),
        T (node_goes_down),
        T (node_is_set_aside),
        T (waits_for_others),
        T (bad_wishes_are_refused),
        T (an_array),
        T (backfilled_before_a_restart),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
