/* The embedded runner with real processes: ends of every kind, adoption, at-most-once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/rm/embedded/rm_embedded.h"
#include "proto/base/clock.h"
#include "tests/unit/tmpdir.h"

struct fixture {
    char dir[64];
    char account[64];
    struct event_base *base;
    struct filewatch *watch;
    struct rm rm;
    int started;
    int ended;
    char ended_id[64];
    struct rm_status end;
    struct rm_status start;
    bool gave_up;
};

static void on_event (void *arg, const struct rm_event *event)
{
    struct fixture *f = arg;
    if (event->kind == RM_EVENT_STARTED) {
        f->started++;
        f->start = *event->status;
    }
    if (event->kind == RM_EVENT_ENDED) {
        f->ended++;
        f->end = *event->status;
        snprintf (f->ended_id, sizeof f->ended_id, "%s", event->job_id);
    }
}

static void open_rm (struct fixture *f)
{
    struct err err = {0};
    struct rm_embedded_config config = {
        .base = f->base,
        .watch = f->watch,
        .job_dir = f->dir,
        .supervise_path = NUI_SUPERVISE,
        .kill_grace = US_PER_S / 5,
        .cgroups = true,
        .cgroup_name = "nui-test",
        .on_event = on_event,
        .arg = f,
    };
    if (rm_embedded_create (&config, &f->rm, &err) != 0)
        fail_msg ("%s", err.text);
}

static int setup (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    snprintf (f->dir, sizeof f->dir, "%s/nui-test-rm-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (f->dir));
    chmod (f->dir, 0700); /* the adapter lets jobs pass through it */
    umask (077);          /* as a careful administrator's: must not reach the job's path */
    snprintf (f->account, sizeof f->account, "%s",
              geteuid () == 0 ? "nobody" : getpwuid (geteuid ())->pw_name);
    f->base = event_base_new ();
    f->watch = filewatch_create (f->base);
    open_rm (f);
    *state = f;
    return 0;
}

static int remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove (path);
}

static int teardown (void **state)
{
    struct fixture *f = *state;
    f->rm.ops->destroy (f->rm.self);
    filewatch_destroy (f->watch);
    event_base_free (f->base);
    nftw (f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free (f);
    return 0;
}

static void on_give_up (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ((struct fixture *)arg)->gave_up = true;
}

/* Runs the loop until *count reaches want; the limit is there against hangs only. */
static void wait_for (struct fixture *f, const int *count, int want)
{
    struct timeval limit = {600, 0};
    struct event *timer = event_new (f->base, -1, 0, on_give_up, f);
    event_add (timer, &limit);
    f->gave_up = false;
    while (*count < want && !f->gave_up)
        event_base_loop (f->base, EVLOOP_ONCE);
    event_free (timer);
    if (*count < want)
        fail_msg ("no event within 600 s");
}

static int start_warned (struct fixture *f, const char *id, const char *script,
                         duration_us walltime, time_us at, const char *account,
                         duration_us signal_after, bool signal_script, struct err *err)
{
    static const char *const host[] = {"alpha01", "alpha02"};
    static const uint32_t tasks[] = {2, 1};
    static const char *const arg[] = {"one", "two words"};
    static const char *const env[] = {"COLOUR=deep blue", "NUI_JOBID=t.1", "NUI_TASKS=3"};
    struct rm_job job = {
        .job_id = id,
        .local_account = account,
        .start = at,
        .walltime = walltime,
        .host_count = 2,
        .host = host,
        .host_tasks = tasks,
        .procs = 3,
        .memory_mb = 512,
        .script = script,
        .script_len = strlen (script),
        .arg_count = 2,
        .arg = arg,
        .env_count = 3,
        .env = env,
        .signal = signal_after ? SIGUSR1 : 0,
        .signal_script = signal_script,
        .signal_after = signal_after,
    };
    return f->rm.ops->start (f->rm.self, &job, err);
}

static int start_as (struct fixture *f, const char *id, const char *script, duration_us walltime,
                     time_us at, const char *account, struct err *err)
{
    return start_warned (f, id, script, walltime, at, account, 0, false, err);
}

/* NUI_MARK=x in a script becomes this test process's own, so that two runs at one time on one
 * machine do not count each other's. */
static void start (struct fixture *f, const char *id, const char *script, duration_us walltime)
{
    struct err err = {0};
    char own[1024];
    const char *mark = strstr (script, "NUI_MARK=");
    if (mark) {
        size_t upto = (size_t)(mark - script) + strlen ("NUI_MARK=");
        snprintf (own, sizeof own, "%.*s%ld-%s", (int)upto, script, (long)getpid (), script + upto);
        script = own;
    }
    if (start_as (f, id, script, walltime, 0, f->account, &err) != 0)
        fail_msg ("%s", err.text);
}

static void read_output (struct fixture *f, const char *id, const char *stream, char *out,
                         size_t cap)
{
    struct err err = {0};
    int fd = f->rm.ops->output_open (f->rm.self, id, 0, NULL, stream, &err);
    if (fd < 0)
        fail_msg ("%s", err.text);
    ssize_t n = read (fd, out, cap - 1);
    out[n < 0 ? 0 : n] = 0;
    close (fd);
}

static void runs_and_exits (void **state)
{
    struct fixture *f = *state;
    char out[1024];
    start (f, "t.1",
           "#!/bin/sh\necho \"$1|$2|$COLOUR|$NUI_JOBID|$(id -un)|$(umask)\"; cat $NUI_NODEFILE\n"
           "grep NoNewPrivs /proc/self/status\necho err >&2; exit 0\n",
           60 * US_PER_S);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->started, 1);
    assert_int_equal (f->end.end, RM_END_EXITED);
    assert_int_equal (f->end.exit_code, 0);
    assert_true (f->end.start > 0 && f->end.end_at >= f->end.start);
    char want[512];
    snprintf (want, sizeof want,
              "one|two words|deep blue|t.1|%s|0077\nalpha01\nalpha01\nalpha02\nNoNewPrivs:\t1\n",
              f->account);
    read_output (f, "t.1", "stdout", out, sizeof out);
    assert_string_equal (out, want);
    read_output (f, "t.1", "stderr", out, sizeof out);
    assert_string_equal (out, "err\n");
}

static void file_make (const struct fixture *f, const char *name)
{
    char path[256];
    struct passwd *pw = getpwnam (f->account);
    snprintf (path, sizeof path, "%s/%s", f->dir, name);
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true (fd >= 0 && write (fd, "here\n", 5) == 5);
    assert_true (geteuid () != 0 || fchown (fd, pw->pw_uid, pw->pw_gid) == 0);
    close (fd);
}

static void dir_make (const struct fixture *f, const char *name)
{
    char path[256];
    struct passwd *pw = getpwnam (f->account);
    snprintf (path, sizeof path, "%s/%s", f->dir, name);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_true (geteuid () != 0 || chown (path, pw->pw_uid, pw->pw_gid) == 0);
}

/* Files that were brought before are the job's own directory; also where an earlier launch died after it had
 * taken them and before the job was there. */
static void files_brought_before (void **state)
{
    static const uint32_t tasks[] = {1};
    static const char *const host[] = {"alpha01"};
    static const char script[] =
        "#!/bin/sh\ncat data; [ -O data ] && echo mine; ls script nodefile\n";
    struct fixture *f = *state;
    char out[256];
    dir_make (f, ".stage");
    dir_make (f, ".stage/one");
    file_make (f, ".stage/one/data");
    dir_make (f, ".new-t.2");
    dir_make (f, ".new-t.2/work");
    file_make (f, ".new-t.2/work/data");
    for (int i = 1; i <= 2; i++) {
        struct err err = {0};
        struct rm_job job = {.job_id = i == 1 ? "t.1" : "t.2",
                             .local_account = f->account,
                             .walltime = 60 * US_PER_S,
                             .host_count = 1,
                             .host = host,
                             .host_tasks = tasks,
                             .procs = 1,
                             .script = script,
                             .script_len = sizeof script - 1,
                             .staged = i == 1 ? ".stage/one" : ".stage/two"};
        if (f->rm.ops->start (f->rm.self, &job, &err) != 0)
            fail_msg ("%s", err.text);
        wait_for (f, &f->ended, i);
        read_output (f, job.job_id, "stdout", out, sizeof out);
        assert_string_equal (out, "here\nmine\nnodefile\nscript\n");
    }
    snprintf (out, sizeof out, "%s/.stage/one", f->dir);
    assert_int_not_equal (access (out, F_OK), 0);
}

static void exit_code_and_plain_shell (void **state)
{
    struct fixture *f = *state;
    start (f, "t.2", "exit 42\n", 60 * US_PER_S); /* no #! line */
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_EXITED);
    assert_int_equal (f->end.exit_code, 42);
}

static void killed_by_signal (void **state)
{
    struct fixture *f = *state;
    start (f, "t.3", "#!/bin/sh\nkill -SEGV $$\n", 60 * US_PER_S);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_SIGNALLED);
    assert_int_equal (f->end.exit_code, 128 + SIGSEGV);
}

/* What the user got wrong is named, and told from what the site got wrong. */
static void mistakes_are_named (void **state)
{
    struct fixture *f = *state;
    char path[200], script[400];
    struct err err = {0};
    file_make (f, "plain");
    snprintf (path, sizeof path, "%s/plain", f->dir);
    snprintf (script, sizeof script, "#! %s -x\n", path);
    const struct {
        const char *script, *says;
    } tried[] = {
        {"#!/no/such/interpreter\n", "names /no/such/interpreter, which does not exist here"},
        {"#!/bin/bsah -e\necho\n", "names /bin/bsah, which does not exist here"},
        {"#!/etc\n", "names /etc, which is a directory"},
        {script, "which the account may not execute"},
        {"\177ELF\001\001\001 of another machine", "another kind of machine"}};
    for (int i = 0; i < (int)(sizeof tried / sizeof *tried); i++) {
        char id[16];
        snprintf (id, sizeof id, "t.%d", 400 + i);
        start (f, id, tried[i].script, 60 * US_PER_S);
        wait_for (f, &f->ended, i + 1);
        assert_int_equal (f->started, 0);
        assert_int_equal (f->end.end, RM_END_MISTAKE);
        if (!strstr (f->end.text, tried[i].says))
            fail_msg ("'%s' does not say '%s'", f->end.text, tried[i].says);
    }
    assert_int_equal (start_as (f, "t.499", "#!/bin/sh\r\necho\r\n", US_PER_S, 0, f->account, &err),
                      ERR_INVALID);
    assert_non_null (strstr (err.text, "DOS line ends"));
}

/* How many processes have this word in their environment's NUI_MARK. */
static int processes_marked (const char *mark)
{
    DIR *proc = opendir ("/proc");
    struct dirent *e;
    char want[80];
    int n = 0;
    snprintf (want, sizeof want, "NUI_MARK=%ld-%s", (long)getpid (), mark);
    while ((e = readdir (proc))) {
        char path[300], buf[8192];
        snprintf (path, sizeof path, "/proc/%.200s/environ", e->d_name);
        int fd = open (path, O_RDONLY);
        ssize_t len = fd < 0 ? -1 : read (fd, buf, sizeof buf - 1);
        if (fd >= 0)
            close (fd);
        for (char *p = buf; len > 0 && p < buf + len; p += strlen (p) + 1) {
            buf[len] = 0;
            if (strcmp (p, want) == 0)
                n++;
        }
    }
    closedir (proc);
    return n;
}

static void limit_kills_what_ignores_term (void **state)
{
    struct fixture *f = *state;
    /* Also a grandchild in a session of its own. */
    start (f, "t.5",
           "#!/bin/sh\ntrap '' TERM\nexport NUI_MARK=limit\nsetsid sleep 300 &\necho on\n"
           "while :; do sleep 300; done\n",
           US_PER_S / 2);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_TIMEOUT);
    assert_int_equal (f->end.exit_code, 128 + SIGKILL);
    duration_us ran = f->end.end_at - f->end.start;
    assert_true (ran >= US_PER_S / 2);
    assert_int_equal (processes_marked ("limit"), 0);
}

static void limit_term_is_enough (void **state)
{
    struct fixture *f = *state;
    start (f, "t.6", "#!/bin/sh\nexec sleep 300\n", US_PER_S / 5);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_TIMEOUT);
    assert_int_equal (f->end.exit_code, 128 + SIGTERM);
}

static void leftovers_end_with_the_job (void **state)
{
    struct fixture *f = *state;
    start (f, "t.7", "#!/bin/sh\nexport NUI_MARK=left\nsetsid sleep 300 & \nsleep 300 &\nexit 3\n",
           60 * US_PER_S);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_EXITED);
    assert_int_equal (f->end.exit_code, 3);
    assert_int_equal (processes_marked ("left"), 0);
}

static void cancel_running (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    start (f, "t.8", "#!/bin/sh\nexec sleep 300\n", 60 * US_PER_S);
    wait_for (f, &f->started, 1);
    assert_int_equal (f->rm.ops->cancel (f->rm.self, "t.8", 0, &err), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_CANCELLED);
    assert_true (f->end.start > 0);
    assert_int_equal (f->rm.ops->cancel (f->rm.self, "t.8", 0, &err), ERR_NOT_FOUND);
}

static int times (const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr (text, word)); text++)
        n++;
    return n;
}

/* A handler that takes its time must not be interrupted by a second one. */
static void term_comes_once (void **state)
{
    enum { PROCESSES = 30 };
    struct fixture *f = *state;
    struct err err = {0};
    char out[4096] = "";
    start (
        f, "t.15",
        "#!/bin/sh\ni=0\nwhile [ $i -lt 30 ]; do i=$((i+1))\n"
        "sh -c 'trap \"echo $0.\" TERM; echo $0 ready; while :; do sleep 0.01; done' $i & done\nwait\n",
        60 * US_PER_S);
    for (int i = 0; times (out, "ready") < PROCESSES; i++) {
        assert_true (i < 6000);
        usleep (5000);
        event_base_loop (f->base, EVLOOP_NONBLOCK);
        if (f->started)
            read_output (f, "t.15", "stdout", out, sizeof out);
    }
    assert_int_equal (f->rm.ops->cancel (f->rm.self, "t.15", 0, &err), 0);
    wait_for (f, &f->ended, 1);
    read_output (f, "t.15", "stdout", out, sizeof out);
    assert_true (strchr (out, '.'));
    for (int i = 1; i <= PROCESSES; i++) {
        char own[16];
        snprintf (own, sizeof own, "\n%d.", i);
        assert_in_range (times (out, own), 0, 1);
    }
}

static void cancel_before_its_moment (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    assert_int_equal (start_as (f, "t.9", "#!/bin/sh\necho ran\n", 60 * US_PER_S,
                                clock_now_us () + 3600 * US_PER_S, f->account, &err),
                      0);
    /* At once: TERM must not be lost while the supervisor is still coming up. */
    assert_int_equal (f->rm.ops->cancel (f->rm.self, "t.9", 0, &err), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->started, 0);
    assert_int_equal (f->end.end, RM_END_CANCELLED);
    assert_int_equal (f->end.start, 0);
}

static void starts_at_the_moment (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    time_us at = clock_now_us () + US_PER_S / 4;
    assert_int_equal (start_as (f, "t.10", "#!/bin/sh\n", 60 * US_PER_S, at, f->account, &err), 0);
    wait_for (f, &f->started, 1);
    assert_true (f->start.start >= at);
    assert_true (f->start.start < at + US_PER_S);
    wait_for (f, &f->ended, 1);
}

static void signal_is_delivered (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char out[64];
    int fd = -1;
    start (f, "t.11",
           "#!/bin/sh\ntrap 'echo got; exit 9' USR1\necho ready\nwhile :; do sleep 0.05; done\n",
           60 * US_PER_S);
    wait_for (f, &f->started, 1);
    for (int i = 0; i < 2000; i++) { /* until the trap is set, as its output tells */
        fd = f->rm.ops->output_open (f->rm.self, "t.11", 0, NULL, "stdout", &err);
        ssize_t n = fd < 0 ? 0 : read (fd, out, sizeof out);
        if (fd >= 0)
            close (fd);
        if (n > 0)
            break;
        usleep (5000);
    }
    assert_int_equal (f->rm.ops->signal (f->rm.self, "t.11", 0, SIGUSR1, &err), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.exit_code, 9);
}

/* What the script printed; it gets the signal half way to its limit, later and later until it was ready for it by then. */
static void warned (struct fixture *f, const char *script, bool to_script, const char *want)
{
    char out[256] = "";
    for (int half = 1; strcmp (out, want) != 0; half *= 2) {
        struct err err = {0};
        char id[16];
        int ended = f->ended;
        if (half > 8)
            fail_msg ("it printed %s", out);
        snprintf (id, sizeof id, "w.%d%d", half, to_script);
        if (start_warned (f, id, script, 2 * half * US_PER_S, 0, f->account, half * US_PER_S,
                          to_script, &err) != 0)
            fail_msg ("%s", err.text);
        wait_for (f, &f->ended, ended + 1);
        read_output (f, id, "stdout", out, sizeof out);
    }
}

/* To the script, and not to what it has forked; or to nui run, and neither to the script nor to what else it has
 * forked. */
static void a_signal_before_the_limit (void **state)
{
    static const char waits[] = "while :; do sleep 0.05; done\n";
    char script[512];
    snprintf (script, sizeof script,
              "#!/bin/sh\nsleep 300 & \ntrap 'kill $! && echo told; exit' USR1\n%s", waits);
    warned (*state, script, true, "told\n");
    snprintf (script, sizeof script,
              "#!/bin/sh\nsleep 300 &\ncat >'nui run' <<'END'\n#!/bin/sh\n"
              "trap 'echo told; exit 5' USR1\n%sEND\n"
              "chmod 700 'nui run'\n'./nui run'\necho $?\nkill $! && echo lives\n",
              waits);
    warned (*state, script, false, "told\n5\nlives\n");
}

static void adopted_by_a_new_adapter (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char go[128], script[400];
    snprintf (go, sizeof go, "%s/go", f->dir);
    snprintf (script, sizeof script, "#!/bin/sh\nwhile ! [ -e %s ]; do sleep 0.02; done\nexit 7\n",
              go);
    start (f, "t.12", script, 60 * US_PER_S);
    wait_for (f, &f->started, 1);
    f->rm.ops->destroy (f->rm.self); /* the daemon dies … */
    open_rm (f);                     /* … and comes back while the job runs */
    f->started = 0;
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.12", 0, NULL, &err), 0);
    wait_for (f, &f->started, 1);
    assert_int_equal (f->ended, 0);
    assert_true (close (open (go, O_CREAT | O_WRONLY, 0644)) == 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.exit_code, 7);
    /* And again when it had ended in between. */
    f->rm.ops->destroy (f->rm.self);
    open_rm (f);
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.12", 0, NULL, &err), 0);
    wait_for (f, &f->ended, 2);
    assert_int_equal (f->end.exit_code, 7);
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.13", 0, NULL, &err), ERR_NOT_FOUND);
}

static void never_twice (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char out[64], script[300];
    snprintf (script, sizeof script, "#!/bin/sh\necho once\n");
    start (f, "t.14", script, 60 * US_PER_S);
    assert_int_equal (start_as (f, "t.14", script, US_PER_S, 0, f->account, &err), ERR_EXISTS);
    wait_for (f, &f->ended, 1);
    assert_int_equal (start_as (f, "t.14", script, US_PER_S, 0, f->account, &err), ERR_EXISTS);
    /* A second supervisor on the same directory does nothing. */
    char command[600];
    snprintf (command, sizeof command, "%s %s/t.14", NUI_SUPERVISE, f->dir);
    assert_int_equal (system (command), 0);
    read_output (f, "t.14", "stdout", out, sizeof out);
    assert_string_equal (out, "once\n");
}

static void on_gone (void *arg, bool ok)
{
    assert_true (ok);
    ++*(int *)arg;
}

static int start_marked (struct fixture *f, const char *mark, const char *script, struct err *err)
{
    static const char *const host[] = {"alpha01"};
    static const uint32_t tasks[] = {1};
    struct rm_job job = {.job_id = "t.21",
                         .mark = mark,
                         .local_account = f->account,
                         .walltime = 60 * US_PER_S,
                         .host_count = 1,
                         .host = host,
                         .host_tasks = tasks,
                         .procs = 1,
                         .script = script,
                         .script_len = strlen (script)};
    return f->rm.ops->start (f->rm.self, &job, err);
}

/* A job of a new state has the number of one whose directory was kept: it runs, and gets nothing of the other's;
 * what the other left stays, under another name. */
static void another_jobs_directory_is_set_aside (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    char out[64], path[200];
    assert_int_equal (start_marked (f, "aaaa1111", "#!/bin/sh\necho first; exit 3\n", &err), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (start_marked (f, "aaaa1111", "#!/bin/sh\n", &err), ERR_EXISTS);
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.21", 0, "bbbb2222", &err), ERR_NOT_FOUND);
    assert_int_equal (f->rm.ops->output_open (f->rm.self, "t.21", 0, "bbbb2222", "stdout", &err),
                      -1);
    assert_int_equal (err.code, ERR_NOT_FOUND);
    dir_make (f, "t.21.checkpoint");
    assert_int_equal (start_marked (f, "bbbb2222", "#!/bin/sh\necho second; exit 4\n", &err), 0);
    wait_for (f, &f->ended, 2);
    assert_int_equal (f->end.exit_code, 4);
    int fd = f->rm.ops->output_open (f->rm.self, "t.21", 0, "bbbb2222", "stdout", &err);
    assert_true (fd >= 0 && read (fd, out, sizeof out) == 7 && memcmp (out, "second\n", 7) == 0);
    close (fd);
    assert_int_equal (f->rm.ops->output_open (f->rm.self, "t.21", 0, "aaaa1111", "stdout", &err),
                      -1);
    snprintf (path, sizeof path, "%s/t.21.aside-1/work/stdout", f->dir);
    assert_int_equal (access (path, F_OK), 0);
    snprintf (path, sizeof path, "%s/t.21.checkpoint.aside-1", f->dir);
    assert_int_equal (access (path, F_OK), 0);
    /* What is removed is what is the job's own. */
    const struct rm_gone other = {"t.21", 0, "cccc3333"}, own = {"t.21", 0, "bbbb2222"};
    int done = 0;
    snprintf (path, sizeof path, "%s/t.21/spec", f->dir);
    assert_int_equal (f->rm.ops->forget (f->rm.self, &other, 1, on_gone, &done, &err), 0);
    wait_for (f, &done, 1);
    assert_int_equal (access (path, F_OK), 0);
    assert_int_equal (f->rm.ops->forget (f->rm.self, &own, 1, on_gone, &done, &err), 0);
    wait_for (f, &done, 2);
    assert_int_not_equal (access (path, F_OK), 0);
}

/* State letters, "T" when all are stopped, of the processes of this mark. */
static bool marked_stand (const char *mark, unsigned want)
{
    char wanted[80];
    unsigned stopped = 0, all = 0;
    DIR *proc = opendir ("/proc");
    struct dirent *e;
    int n = snprintf (wanted, sizeof wanted, "NUI_MARK=%ld-%s", (long)getpid (), mark);
    while ((e = readdir (proc))) {
        char path[300], env[8192], stat[512] = "";
        snprintf (path, sizeof path, "/proc/%.200s/environ", e->d_name);
        int fd = open (path, O_RDONLY);
        ssize_t len = fd < 0 ? -1 : read (fd, env, sizeof env);
        if (fd >= 0)
            close (fd);
        if (len <= 0 || !memmem (env, (size_t)len, wanted, (size_t)n + 1))
            continue;
        snprintf (path, sizeof path, "/proc/%.200s/stat", e->d_name);
        FILE *f = fopen (path, "r");
        const char *after = f && fgets (stat, sizeof stat, f) ? strrchr (stat, ')') : NULL;
        all += after && after[2] != 'Z';
        stopped += after && after[2] == 'T';
        if (f)
            fclose (f);
    }
    closedir (proc);
    return stopped == all && all >= want;
}

/* A thread other than the first has forked, into a session of its own: it stands still like the rest, and goes on. */
static void what_a_thread_forked_stops (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    start (
        f, "t.22",
        "#!/bin/sh\nexport NUI_MARK=thread\nexec python3 -c \"\n"
        "import subprocess, threading, time\n"
        "def go():\n subprocess.Popen(['sleep', '300'], start_new_session=True); print('ready', flush=True); time.sleep(300)\n"
        "threading.Thread(target=go).start()\n\"\n",
        60 * US_PER_S);
    wait_for (f, &f->started, 1);
    char out[64] = "";
    for (int i = 0; !strstr (out, "ready"); i++) {
        assert_true (i < 4000);
        usleep (5000);
        int fd = f->rm.ops->output_open (f->rm.self, "t.22", 0, NULL, "stdout", NULL);
        ssize_t n = fd < 0 ? 0 : read (fd, out, sizeof out - 1);
        out[n > 0 ? n : 0] = 0;
        if (fd >= 0)
            close (fd);
    }
    assert_int_equal (f->rm.ops->suspend (f->rm.self, "t.22", 0, true, &err), 0);
    bool all = false;
    for (int i = 0; i < 2000 && !all; i++) {
        usleep (5000);
        all = marked_stand ("thread", 2);
    }
    assert_true (all);
    assert_int_equal (f->rm.ops->suspend (f->rm.self, "t.22", 0, false, &err), 0);
    assert_int_equal (f->rm.ops->cancel (f->rm.self, "t.22", 0, &err), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_CANCELLED);
}

/* The pid of the supervisor of a job: the parent of the job's first process. */
static pid_t supervisor_of (struct fixture *f, const char *id)
{
    char path[200], line[256];
    long pid = 0, ppid = 0;
    snprintf (path, sizeof path, "%s/%s/started", f->dir, id);
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    assert_int_equal (fscanf (file, "pid=%ld", &pid), 1);
    fclose (file);
    snprintf (path, sizeof path, "/proc/%ld/status", pid);
    file = fopen (path, "r");
    assert_non_null (file);
    while (fgets (line, sizeof line, file))
        sscanf (line, "PPid: %ld", &ppid);
    fclose (file);
    return (pid_t)ppid;
}

static void lost_supervisor_is_a_node_failure (void **state)
{
    struct fixture *f = *state;
    start (f, "t.15", "#!/bin/sh\nexport NUI_MARK=lost\nsleep 300 &\nexec sleep 300\n",
           60 * US_PER_S);
    wait_for (f, &f->started, 1);
    pid_t pid = supervisor_of (f, "t.15");
    assert_true (pid > 1);
    assert_int_equal (kill (pid, SIGKILL), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_NODE_FAILURE);
    assert_true (f->end.start > 0 && f->end.end_at >= f->end.start);
    for (int i = 0; i < 2000 && processes_marked ("lost") > 0; i++)
        usleep (2000); /* KILL was sent; the kernel needs a moment to take them away */
    assert_int_equal (processes_marked ("lost"), 0);
    /* It stays a failure for whoever asks later. */
    memset (&f->end, 0, sizeof f->end);
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.15", 0, NULL, NULL), 0);
    wait_for (f, &f->ended, 2);
    assert_int_equal (f->end.end, RM_END_NODE_FAILURE);
}

static void lost_while_nobody_looked (void **state)
{
    struct fixture *f = *state;
    start (f, "t.16", "#!/bin/sh\nexport NUI_MARK=alone\nexec sleep 300\n", 60 * US_PER_S);
    wait_for (f, &f->started, 1);
    pid_t pid = supervisor_of (f, "t.16");
    f->rm.ops->destroy (f->rm.self);
    assert_int_equal (kill (pid, SIGKILL), 0);
    open_rm (f);
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.16", 0, NULL, NULL), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->end.end, RM_END_NODE_FAILURE);
}

static void accounts_are_checked (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    assert_int_equal (f->rm.ops->account_check ("root", &err), ERR_DENIED);
    assert_int_equal (start_as (f, "t.17", "x", US_PER_S, 0, "root", &err), ERR_DENIED);
    assert_int_equal (start_as (f, "t.17", "x", US_PER_S, 0, "no-such-account", &err), ERR_DENIED);
    assert_int_equal (start_as (f, "../t", "x", US_PER_S, 0, f->account, &err), ERR_INVALID);
    assert_int_equal (f->rm.ops->adopt (f->rm.self, "t.17", 0, NULL, &err), ERR_NOT_FOUND);
}

static void output_that_is_a_link_is_not_read (void **state)
{
    struct fixture *f = *state;
    start (f, "t.18", "#!/bin/sh\nrm -f stdout\nln -s /etc/passwd stdout\n", 60 * US_PER_S);
    wait_for (f, &f->ended, 1);
    struct err err = {0};
    assert_int_equal (f->rm.ops->output_open (f->rm.self, "t.18", 0, NULL, "stdout", &err), -1);
    assert_int_equal (err.code, ERR_NOT_FOUND);
}

static void no_descriptor_leaks (void **state)
{
    struct fixture *f = *state;
    char out[256];
    start (f, "t.19", "#!/bin/sh\nls /proc/self/fd | tr '\\n' ' '\n", 60 * US_PER_S);
    wait_for (f, &f->ended, 1);
    read_output (f, "t.19", "stdout", out, sizeof out);
    assert_string_equal (out, "0 1 2 3 "); /* 3: ls itself, reading the directory */
}

/* The kernel ends each of three burners after one second of processor time: the job's own child, a
 * session of its own, and one that its parent left behind. Measured while it runs and at its end. */
static void processor_time (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct rm_used now = {0};
    duration_us at_last = 0;
    start (f, "t.20",
           "#!/bin/bash\nburn='ulimit -c 0 -t 1; while :; do :; done'\n"
           "setsid bash -c \"$burn\" &\n(bash -c \"$burn\" &)\nbash -c \"$burn\"\nwait\n"
           "until [ -e go ]; do sleep 0.05; done\n",
           60 * US_PER_S);
    wait_for (f, &f->started, 1);
    time_us give_up = clock_monotonic_us () + 60 * US_PER_S;
    while (at_last < 2900000 && clock_monotonic_us () < give_up) {
        assert_int_equal (f->rm.ops->used (f->rm.self, "t.20", 0, &now, &err), 0);
        at_last = now.cpu_time > at_last ? now.cpu_time : at_last;
        event_base_loop (f->base, EVLOOP_NONBLOCK);
    }
    assert_in_range (at_last, 2900000, 5000000);
    assert_in_range (now.memory_mb, 1, 400); /* shells */
    char path[160];
    snprintf (path, sizeof path, "%s/t.20/work/go", f->dir);
    close (open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    wait_for (f, &f->ended, 1);
    assert_true (f->end.cpu_known);
    assert_in_range (f->end.cpu_time, 2900000, 5000000);
    assert_int_equal (f->rm.ops->used (f->rm.self, "t.20", 0, &now, &err), ERR_NOT_FOUND);
}

/* A job's limits, as its processes see them. */
static void limits_of (struct fixture *f, const char *id, char *out, size_t cap)
{
    start (f, id, "#!/bin/sh\ncat /proc/self/limits\n", 60 * US_PER_S);
    wait_for (f, &f->ended, 1);
    read_output (f, id, "stdout", out, cap);
}

/* Memory, processes and processor time without a cgroup; and who takes more than that does not get it. */
static void rlimits_where_no_cgroup_is (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct rm_embedded_config config = {.base = f->base,
                                        .watch = f->watch,
                                        .job_dir = f->dir,
                                        .supervise_path = NUI_SUPERVISE,
                                        .kill_grace = US_PER_S / 5,
                                        .on_event = on_event,
                                        .arg = f};
    char out[4096], most[64];
    f->rm.ops->destroy (f->rm.self);
    assert_int_equal (rm_embedded_create (&config, &f->rm, &err), 0);
    limits_of (f, "t.30", out, sizeof out);
    snprintf (most, sizeof most, "Max data size             %d", 512 << 20);
    if (!strstr (out, most))
        fail_msg ("%s, exit code %d, %s", out, f->end.exit_code, f->end.text);
    const char *processes = strstr (out, "Max processes");
    assert_non_null (processes); /* 1024 for each processor, beside what the account has */
    assert_in_range (strtoul (processes + strlen ("Max processes"), NULL, 10), 3072, 3072 + 1000);
    assert_non_null (
        strstr (out, "Max cpu time              183 ")); /* three processors for 61 s */
    start (f, "t.31", "#!/bin/sh\nhead -c 700000000 /dev/zero | tail -c 650000000 >/dev/null\n",
           60 * US_PER_S);
    wait_for (f, &f->ended, 2);
    assert_int_not_equal (f->end.exit_code, 0);
}

static void spec_with_cgroup (const char *dir, const char *cgroup)
{
    char path[300], spec[65536], more[65536];
    size_t len = 0;
    snprintf (path, sizeof path, "%s/spec", dir);
    FILE *in = fopen (path, "r");
    assert_non_null (in);
    size_t had = fread (spec, 1, sizeof spec, in);
    fclose (in);
    for (const char *p = spec; p < spec + had; p += strlen (p) + 1)
        if (strncmp (p, "cgroup=", 7) != 0)
            len += (size_t)snprintf (more + len, sizeof more - len, "%s", p) + 1;
    len += (size_t)snprintf (more + len, sizeof more - len, "cgroup=%s", cgroup) + 1;
    FILE *out = fopen (path, "w");
    assert_non_null (out);
    assert_int_equal (fwrite (more, 1, len, out), len);
    fclose (out);
}

static void assert_kept (struct fixture *f, const char *id, enum rm_keeper memory,
                         enum rm_keeper processors, enum rm_keeper cpu_time,
                         enum rm_keeper processes)
{
    struct rm_limits by;
    struct err err = {0};
    if (f->rm.ops->limits (f->rm.self, id, 0, &by, &err) != 0)
        fail_msg ("%s", err.text);
    assert_int_equal (by.memory, memory);
    assert_int_equal (by.processors, processors);
    assert_int_equal (by.cpu_time, cpu_time);
    assert_int_equal (by.processes, processes);
}

static void group_file (const char *cgroup, const char *name, const char *text)
{
    char path[300];
    snprintf (path, sizeof path, "%s/%s", cgroup, name);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    assert_true (fputs (text, file) >= 0);
    fclose (file);
}

/* Of a running job by its own group, whatever jobs that are started now would get. */
static void who_keeps_which_limit (void **state)
{
    struct fixture *f = *state;
    struct err err = {0};
    struct rm_embedded_config config = {.base = f->base,
                                        .watch = f->watch,
                                        .job_dir = f->dir,
                                        .supervise_path = NUI_SUPERVISE,
                                        .kill_grace = US_PER_S / 5,
                                        .on_event = on_event,
                                        .arg = f};
    struct rm_limits by;
    char dir[200], cgroup[200];
    f->rm.ops->destroy (f->rm.self);
    assert_int_equal (rm_embedded_create (&config, &f->rm, &err), 0);
    start (f, "t.33", "#!/bin/sh\nsleep 60\n", 60 * US_PER_S);
    wait_for (f, &f->started, 1);
    assert_kept (f, "t.33", RM_KEPT_BY_RLIMIT, RM_KEPT_BY_NOTHING, RM_KEPT_BY_RLIMIT,
                 RM_KEPT_BY_RLIMIT);
    snprintf (dir, sizeof dir, "%s/t.33", f->dir);
    snprintf (cgroup, sizeof cgroup, "%s/group", f->dir);
    assert_int_equal (mkdir (cgroup, 0700), 0);
    spec_with_cgroup (dir, cgroup);
    group_file (cgroup, "memory.max", "536870912\n");
    group_file (cgroup, "pids.max", "max\n");
    assert_kept (f, "t.33", RM_KEPT_BY_CGROUP, RM_KEPT_BY_NOTHING, RM_KEPT_BY_RLIMIT,
                 RM_KEPT_BY_RLIMIT);
    group_file (cgroup, "cpu.max", "300000 100000\n");
    group_file (cgroup, "pids.max", "3072\n");
    assert_kept (f, "t.33", RM_KEPT_BY_CGROUP, RM_KEPT_BY_CGROUP, RM_KEPT_BY_CGROUP,
                 RM_KEPT_BY_CGROUP);
    assert_int_equal (f->rm.ops->cancel (f->rm.self, "t.33", 0, &err), 0);
    wait_for (f, &f->ended, 1);
    assert_int_equal (f->rm.ops->limits (f->rm.self, "t.33", 0, &by, &err), ERR_NOT_FOUND);
}

/* A group with these files keeps what they say: the job gets no rlimit for it. */
static void no_rlimits_where_a_cgroup_is (void **state)
{
    struct fixture *f = *state;
    const char *const once[] = {"launched", "started", "status", "lock", "work/stdout"};
    const char *const file[] = {"memory.max", "memory.oom.group", "cpu.max", "pids.max",
                                "cgroup.procs"};
    char out[4096], dir[200], path[300], cgroup[200], command[800];
    limits_of (f, "t.32", out, sizeof out);
    snprintf (dir, sizeof dir, "%s/t.32", f->dir);
    snprintf (cgroup, sizeof cgroup, "%s/group", f->dir);
    assert_int_equal (mkdir (cgroup, 0700), 0);
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        snprintf (path, sizeof path, "%s/%s", cgroup, file[i]);
        close (open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        snprintf (path, sizeof path, "%s/%s", dir, once[i]);
        unlink (path);
    }
    spec_with_cgroup (dir, cgroup);
    snprintf (command, sizeof command, "%s %s", NUI_SUPERVISE, dir);
    assert_int_equal (system (command), 0);
    read_output (f, "t.32", "stdout", out, sizeof out);
    assert_null (strstr (out, "536870912"));
    const char *processes = strstr (out, "Max processes");
    assert_non_null (processes);
    unsigned long most =
        strtoul (processes + strlen ("Max processes"), NULL, 10); /* 0: unlimited */
    assert_true (most == 0 || most > 3072 + 1000);
    assert_null (strstr (out, "Max cpu time              183 "));
    assert_non_null (strstr (out, "Max data size"));
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T (files_brought_before),
        T (runs_and_exits),
        T (exit_code_and_plain_shell),
        T (killed_by_signal),
        T (mistakes_are_named),
        T (limit_kills_what_ignores_term),
        T (limit_term_is_enough),
        T (leftovers_end_with_the_job),
        T (cancel_running),
        T (term_comes_once),
        T (cancel_before_its_moment),
        T (starts_at_the_moment),
        T (signal_is_delivered),
        T (a_signal_before_the_limit),
        T (adopted_by_a_new_adapter),
        T (never_twice),
        T (lost_supervisor_is_a_node_failure),
        T (lost_while_nobody_looked),
        T (accounts_are_checked),
        T (output_that_is_a_link_is_not_read),
        T (no_descriptor_leaks),
        T (processor_time),
        T (another_jobs_directory_is_set_aside),
        T (what_a_thread_forked_stops),
        T (rlimits_where_no_cgroup_is),
        T (no_rlimits_where_a_cgroup_is),
        T (who_keeps_which_limit),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, NULL, NULL);
}
