/* nui-supervise DIR: starts one job at its moment, enforces its limit, writes down how it ended.
 *
 * It is the job's parent and the reaper of everything the job leaves behind; it lives in a session of
 * its own, so that the daemon may die and come back. Nothing is launched twice: a record lock says
 * that a supervisor lives, the O_EXCL file `launched` that one once did. Links nothing but libc. */
#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "local/rm/mistake.h"
#include "local/rm/embedded/process_use.h"
#include "local/rm/supervise_file.h"

enum { KILL_AGAIN_MS = 100, WRITE_AGAIN_MS = 1000, OUTPUT_LOOK_MS = 1000 };

struct supervisor {
    int dir;
    int signal_fd;
    int timer_fd;
    char *spec;
    size_t spec_len;
    pid_t child; /* the job's first process, leader of its session and group */
    int64_t start_us;
    const char *cgroup;                      /* "" when there is none */
    bool memory_kept, procs_kept, pids_kept; /* by it: see child_limits for what is not */
    bool cancelled;
    bool timed_out;
    bool overflowed;     /* its output: past output_max_mb */
    int64_t deadline_us; /* on CLOCK_BOOTTIME: its limit */
    bool warned;         /* the signal that it wants before its limit is sent, or none is wanted */
    bool stopped;
    int64_t left_us; /* of its limit, while it is stopped */
    bool killing;    /* KILL was sent: again and again until nobody is left */
    bool child_ended;
    int child_status;
};

static int64_t now_us (void)
{
    struct timespec t;
    clock_gettime (CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static const char *get (const struct supervisor *s, const char *key)
{
    const char *v = spec_get (s->spec, s->spec_len, key);
    return v ? v : "";
}

static int64_t get_int (const struct supervisor *s, const char *key)
{
    return strtoll (get (s, key), NULL, 10);
}

/* Everything the job has used, when all of it is reaped. A process whose parent would not wait for it
 * is known to the cgroup only. */
static int64_t job_cpu_time (const struct supervisor *s)
{
    struct rusage used;
    int64_t by_group = *s->cgroup ? cpu_time_cgroup (s->cgroup) : -1;
    if (getrusage (RUSAGE_CHILDREN, &used) != 0)
        return by_group > 0 ? by_group : 0;
    int64_t reaped = ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                     used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    return by_group > reaped ? by_group : reaped;
}

static void write_status (struct supervisor *s, const char *end, int exit_code, const char *fmt,
                          ...) __attribute__ ((format (printf, 4, 5)));
static void write_status (struct supervisor *s, const char *end, int exit_code, const char *fmt,
                          ...)
{
    char text[256], all[512];
    va_list ap;
    va_start (ap, fmt);
    vsnprintf (text, sizeof text, fmt, ap);
    va_end (ap);
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = ' ';
    int n = snprintf (all, sizeof all,
                      "end=%s\nexit_code=%d\nstart_us=%lld\nend_us=%lld\ncpu_us=%lld\ntext=%s\n",
                      end, exit_code, (long long)s->start_us, (long long)now_us (),
                      (long long)job_cpu_time (s), text);
    /* The end of a job is not lost with a full disk, a quota, a file server that is away: until it is written this
     * process lives, and the daemon waits. */
    for (bool told = false; file_write_durable (s->dir, "status", all, (size_t)n, 0644) != 0;
         told = true) {
        if (errno == ENOENT || errno == ESTALE)
            return; /* the directory is gone */
        if (!told)
            dprintf (STDERR_FILENO, "nui-supervise: status: %s: it is tried again\n",
                     strerror (errno));
        poll (NULL, 0, WRITE_AGAIN_MS);
    }
}

/* --- killing ------------------------------------------------------------------------------ */

/* Whether it was taken; a controller that we were not given has no files. */
static bool cgroup_file (const char *cgroup, const char *name, const char *text)
{
    char path[512];
    snprintf (path, sizeof path, "%s/%s", cgroup, name);
    int fd = open (path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool taken = write (fd, text, strlen (text)) >= 0;
    if (!taken && errno != ENOENT && errno != EOPNOTSUPP)
        dprintf (STDERR_FILENO, "nui-supervise: %s: %s\n", path, strerror (errno));
    close (fd);
    return taken;
}

static unsigned signal_tree (pid_t pid, int signo, pid_t group, int depth);

enum { RUNS_ONLY = -1 }; /* as group: only to processes of nui run, of whatever group */

/* Whether it is nui run, by the name that it gives itself (meta/cli/run.c): it passes signals on to its tasks, wherever
 * they are. */
static bool process_runs_tasks (pid_t pid)
{
    char path[64], name[32] = "";
    snprintf (path, sizeof path, "/proc/%ld/comm", (long)pid);
    FILE *f = fopen (path, "re");
    bool is = f && fgets (name, sizeof name, f) && strcmp (name, "nui run\n") == 0;
    if (f)
        fclose (f);
    return is;
}

/* Runs or sleeps, rather than being stopped or dead. */
static bool process_goes (pid_t pid)
{
    char path[64], stat[512] = "";
    snprintf (path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen (path, "re");
    bool read = f && fgets (stat, sizeof stat, f);
    const char *after = read ? strrchr (stat, ')') : NULL;
    if (f)
        fclose (f);
    return after && strlen (after) > 2 && !strchr ("TtZX", after[2]);
}

/* What one thread has forked. */
static unsigned signal_children (FILE *list, int signo, pid_t group, int depth)
{
    unsigned going = 0;
    long child;
    while (fscanf (list, "%ld", &child) == 1) {
        if (depth < 64)
            going += signal_tree ((pid_t)child, signo, group, depth + 1);
        going += process_goes ((pid_t)child);
        if (group == RUNS_ONLY ? process_runs_tasks ((pid_t)child)
                               : getpgid ((pid_t)child) != group)
            kill ((pid_t)child, signo);
    }
    return going;
}

/* Everything below pid but the group; what is orphaned in between comes back to us as its subreaper. The kernel lists
 * children by the thread that forked them. Returns how many were not stopped before. */
static unsigned signal_tree (pid_t pid, int signo, pid_t group, int depth)
{
    char path[80];
    unsigned going = 0;
    snprintf (path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir (path);
    for (struct dirent *e; tasks && (e = readdir (tasks));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf (path, sizeof path, "/proc/%ld/task/%.20s/children", (long)pid, e->d_name);
        FILE *f = fopen (path, "re");
        if (f) {
            going += signal_children (f, signo, group, depth);
            fclose (f);
        }
    }
    if (tasks)
        closedir (tasks);
    return going;
}

/* Once to each: a handler of SIGTERM must not be interrupted by the same order. */
static unsigned signal_job (struct supervisor *s, int signo)
{
    pid_t group = s->child > 0 && !s->child_ended ? s->child : 0;
    if (group)
        kill (-group, signo);
    unsigned going = signal_tree (getpid (), signo, group, 0);
    if (signo == SIGKILL && *s->cgroup)
        cgroup_file (s->cgroup, "cgroup.kill", "1");
    if (signo == SIGCONT && *s->cgroup)
        cgroup_file (s->cgroup, "cgroup.freeze", "0");
    return going;
}

/* The signal that the job wants before its limit. As under Slurm what the script itself has forked hears nothing of it: a
 * shell, or a program at the end of a pipe, that does not expect the signal would die. */
static void warn_job (struct supervisor *s)
{
    int signo = (int)get_int (s, "signal");
    s->warned = true;
    if (s->child_ended)
        return;
    if (get_int (s, "signal_script"))
        kill (s->child, signo);
    else
        signal_tree (getpid (), signo, RUNS_ONLY, 0);
}

/* Until a whole look meets nothing that still goes: what is forked in between is met next time round. Where there is a
 * cgroup it is frozen as well. */
static void stop_job (struct supervisor *s)
{
    enum { LOOKS_MAX = 500 };
    for (int look = 0; signal_job (s, SIGSTOP) > 0 && look < LOOKS_MAX; look++)
        poll (NULL, 0, 1);
    if (*s->cgroup)
        cgroup_file (s->cgroup, "cgroup.freeze", "1");
}

/* --- the job's first process -------------------------------------------------------------- */

/* How the first process ends where the job does not begin. */
enum { CHILD_FAILED = 127, CHILD_MISTAKE = 126 };

static void child_fail (int report_fd, int code, const char *what)
{
    char text[200];
    int n = snprintf (text, sizeof text, "%s: %s", what, strerror (errno));
    _exit (write (report_fd, text, (size_t)n) < 0 ? CHILD_FAILED : code);
}

static void child_mistaken (int report_fd, const char *text)
{
    _exit (write (report_fd, text, strlen (text)) < 0 ? CHILD_FAILED : CHILD_MISTAKE);
}

/* A file of the job's own that its output goes to. */
static int child_output (const char *name, int report_fd)
{
    char text[MISTAKE_TEXT_MAX];
    int fd = open (name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0 && mistake_of_output (errno, name, text))
        child_mistaken (report_fd, text);
    if (fd >= 0)
        fcntl (fd, F_SETFL, O_APPEND); /* only the opening was not to wait */
    return fd;
}

static void child_limit (int report_fd, int what, int64_t most)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)most, .rlim_max = (rlim_t)most}, now;
    if (getrlimit ((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < limit.rlim_max)
        limit.rlim_cur = limit.rlim_max = now.rlim_max; /* the administrator's is narrower */
    if (most > 0 && setrlimit ((__rlimit_resource_t)what, &limit) != 0)
        child_fail (report_fd, CHILD_FAILED, "setrlimit");
}

/* Processes and threads of an account, which its limit counts. */
static int64_t account_threads (uid_t uid)
{
    DIR *proc = opendir ("/proc");
    struct dirent *e;
    struct stat st;
    int64_t count = 0;
    while (proc && (e = readdir (proc))) {
        char path[300];
        snprintf (path, sizeof path, "%.255s/task", e->d_name);
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            fstatat (dirfd (proc), path, &st, 0) == 0 && st.st_uid == uid)
            count += st.st_nlink > 2 ? (int64_t)st.st_nlink - 2 : 1;
    }
    if (proc)
        closedir (proc);
    return count;
}

/* What no cgroup keeps: the job's memory and processor time for each process of it, and its processes beside those that
 * the account has already. */
static void child_limits (struct supervisor *s, int report_fd)
{
    int64_t seconds = get_int (s, "walltime_us") / 1000000 + 1;
    if (!s->pids_kept)
        child_limit (report_fd, RLIMIT_NPROC,
                     get_int (s, "pids_max") + account_threads ((uid_t)get_int (s, "uid")));
    if (!s->procs_kept && get_int (s, "walltime_us") > 0)
        child_limit (report_fd, RLIMIT_CPU, get_int (s, "procs") * seconds);
    if (!s->memory_kept)
        child_limit (report_fd, RLIMIT_DATA, get_int (s, "memory_mb") << 20);
}

static void child_identity (struct supervisor *s, int report_fd)
{
    uid_t uid = (uid_t)get_int (s, "uid");
    gid_t gid = (gid_t)get_int (s, "gid");
    if (getuid () == 0) {
        if (uid == 0) {
            errno = EPERM;
            child_fail (report_fd, CHILD_FAILED, "account root");
        }
        if (initgroups (get (s, "account"), gid) != 0 || setresgid (gid, gid, gid) != 0 ||
            setresuid (uid, uid, uid) != 0)
            child_fail (report_fd, CHILD_FAILED, "taking on the account");
        if (setuid (0) == 0) { /* must be impossible now */
            errno = EPERM;
            child_fail (report_fd, CHILD_FAILED, "giving up root");
        }
    } else if (uid != getuid ()) {
        errno = EPERM;
        child_fail (report_fd, CHILD_FAILED, "account");
    }
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        child_fail (report_fd, CHILD_FAILED, "no_new_privs");
}

static char **collect (struct supervisor *s, const char *key, const char *first, const char *last)
{
    size_t n = 0, key_len = strlen (key);
    for (const char *p = s->spec; p < s->spec + s->spec_len; p += strlen (p) + 1)
        n++;
    char **list = calloc (n + 3, sizeof *list);
    if (!list)
        return NULL;
    n = 0;
    if (first)
        list[n++] = strdup (first);
    if (last)
        list[n++] = strdup (last);
    for (const char *p = s->spec; p < s->spec + s->spec_len; p += strlen (p) + 1)
        if (strncmp (p, key, key_len) == 0 && p[key_len] == '=')
            list[n++] = strdup (p + key_len + 1);
    return list;
}

/* No #! line: a shell script, as in every batch system; but for a program of another machine. */
static bool script_is_text (int work)
{
    char first[4] = "";
    int fd = openat (work, "script", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read (fd, first, sizeof first) : -1;
    if (fd >= 0)
        close (fd);
    return n >= 0 && !(n == 4 && memcmp (first, "\177ELF", 4) == 0);
}

/* --chdir: as the account, its files are open by then. */
static void child_enter (const struct supervisor *s, int report_fd)
{
    char text[MISTAKE_TEXT_MAX];
    const char *path = get (s, "chdir");
    if (!*path || chdir (path) == 0)
        return;
    if (mistake_of_directory (errno, path, text))
        child_mistaken (report_fd, text);
    child_fail (report_fd, CHILD_FAILED, "the directory where it was to start");
}

static void child_run (struct supervisor *s, int report_fd)
{
    if (setsid () < 0)
        child_fail (report_fd, CHILD_FAILED, "setsid");
    if (*s->cgroup) {
        char pid[24];
        snprintf (pid, sizeof pid, "%ld", (long)getpid ());
        cgroup_file (s->cgroup, "cgroup.procs", pid);
    }
    int work = openat (s->dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (work < 0 || fchdir (work) != 0)
        child_fail (report_fd, CHILD_FAILED, "work directory");
    child_identity (s, report_fd);
    umask (077);
    int in = open ("/dev/null", O_RDONLY);
    int out = child_output (get (s, "stdout"), report_fd);
    int err = child_output (get (s, "stderr"), report_fd);
    if (in < 0 || out < 0 || err < 0)
        child_fail (report_fd, CHILD_FAILED, "stdout or stderr");
    if (dup2 (in, 0) < 0 || dup2 (out, 1) < 0 || dup2 (err, 2) < 0)
        child_fail (report_fd, CHILD_FAILED, "dup2");
    if (close_range (3, ~0u, CLOSE_RANGE_CLOEXEC) != 0) /* the report pipe lives until exec */
        child_fail (report_fd, CHILD_FAILED, "close_range");

    const char *script = *get (s, "chdir") ? get (s, "script") : "./script";
    char **argv = collect (s, "arg", script, NULL);
    char **env = collect (s, "env", NULL, NULL);
    char **sh_argv = collect (s, "arg", "/bin/sh", script);
    if (!argv || !env || !sh_argv)
        child_fail (report_fd, CHILD_FAILED, "memory");
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int signo = 1; signo < 65; signo++)
        sigaction (signo, &dfl, NULL);
    sigset_t none;
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    child_enter (s, report_fd);
    child_limits (s, report_fd); /* last: they are the script's, not ours */
    execve (script, argv, env);
    int number = errno;
    if (number == ENOEXEC && script_is_text (work)) {
        execve ("/bin/sh", sh_argv, env);
        child_fail (report_fd, CHILD_FAILED, "exec of /bin/sh");
    }
    char text[MISTAKE_TEXT_MAX];
    if (mistake_of_exec (work, number, text))
        child_mistaken (report_fd, text);
    errno = number;
    child_fail (report_fd, CHILD_FAILED, "exec of the script");
}

/* 0, or -1 with a sentence in text; *mistake: by the job's own fault. */
static int launch (struct supervisor *s, char *text, size_t cap, bool *mistake)
{
    int report[2], status = 0;
    if (pipe2 (report, O_CLOEXEC) != 0) {
        snprintf (text, cap, "pipe: %s", strerror (errno));
        return -1;
    }
    s->start_us = now_us ();
    s->child = fork ();
    if (s->child == 0) {
        close (report[0]);
        child_run (s, report[1]);
    }
    close (report[1]);
    if (s->child < 0) {
        snprintf (text, cap, "fork: %s", strerror (errno));
        close (report[0]);
        return -1;
    }
    ssize_t n;
    do
        n = read (report[0], text, cap - 1);
    while (n < 0 && errno == EINTR);
    close (report[0]);
    if (n == 0)
        return 0;
    text[n > 0 ? n : 0] = 0;
    *mistake = waitpid (s->child, &status, 0) == s->child && WIFEXITED (status) &&
               WEXITSTATUS (status) == CHILD_MISTAKE;
    s->child = 0;
    s->start_us = 0;
    return -1;
}

/* --- waiting ------------------------------------------------------------------------------ */

static void timer_arm (struct supervisor *s, int clock, int64_t us, bool absolute)
{
    if (s->timer_fd >= 0)
        close (s->timer_fd);
    s->timer_fd = timerfd_create (clock, TFD_CLOEXEC | TFD_NONBLOCK);
    if (us < 1)
        us = 1; /* 0 would disarm */
    struct itimerspec t = {.it_value = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}};
    timerfd_settime (s->timer_fd, absolute ? TFD_TIMER_ABSTIME : 0, &t, NULL);
}

/* Until the moment of the start. False when a cancel came first. */
static bool wait_for_start (struct supervisor *s, int64_t at_us)
{
    while (at_us > now_us ()) {
        timer_arm (s, CLOCK_REALTIME, at_us, true);
        struct pollfd fds[2] = {{s->signal_fd, POLLIN, 0}, {s->timer_fd, POLLIN, 0}};
        if (poll (fds, 2, -1) < 0)
            continue;
        struct signalfd_siginfo info;
        while (read (s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            if (info.ssi_signo == SIGTERM)
                return false;
    }
    return true;
}

static void reap (struct supervisor *s)
{
    int status;
    pid_t pid;
    while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
        if (pid == s->child) {
            s->child_ended = true;
            s->child_status = status;
        }
}

static int64_t boottime_us (void)
{
    struct timespec t;
    clock_gettime (CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* For its limit, or before that for the moment at which it wants a signal. */
static void limit_arm (struct supervisor *s, int64_t left_us)
{
    int64_t before = get_int (s, "walltime_us") - get_int (s, "signal_us");
    s->deadline_us = boottime_us () + left_us;
    timer_arm (s, CLOCK_BOOTTIME, s->warned ? left_us : left_us - before, false);
}

/* Stops everything the job has, and its clock; or lets both go on. */
static void stop_or_go (struct supervisor *s, bool stop)
{
    if (stop == s->stopped || s->child_ended || s->cancelled || s->timed_out || s->overflowed)
        return;
    s->stopped = stop;
    if (!stop) {
        limit_arm (s, s->left_us);
        signal_job (s, SIGCONT);
        return;
    }
    s->left_us = s->deadline_us - boottime_us ();
    timer_arm (s, CLOCK_BOOTTIME, INT64_MAX / 4, false); /* a stopped job has no end */
    stop_job (s);
}

static void on_signal (struct supervisor *s, const struct signalfd_siginfo *info, int64_t grace_us)
{
    if ((int)info->ssi_signo == SIGRTMIN + SUPERVISE_SIGNAL_OFFSET) {
        if (info->ssi_int == SIGSTOP || info->ssi_int == SIGCONT)
            stop_or_go (s, info->ssi_int == SIGSTOP);
        else if (!s->child_ended)
            kill (-s->child, info->ssi_int);
    } else if (info->ssi_signo == SIGTERM && !s->cancelled && !s->child_ended) {
        s->cancelled = !s->timed_out && !s->overflowed;
        signal_job (s, SIGTERM);
        signal_job (s, SIGCONT); /* a stopped job could not die */
        timer_arm (s, CLOCK_BOOTTIME, grace_us, false);
    }
}

static void on_timer (struct supervisor *s, int64_t grace_us)
{
    uint64_t ticks;
    if (read (s->timer_fd, &ticks, sizeof ticks) != (ssize_t)sizeof ticks)
        return;
    if (!s->timed_out && !s->cancelled && !s->overflowed && !s->warned) {
        warn_job (s);
        limit_arm (s, s->deadline_us - boottime_us ());
    } else if (!s->timed_out && !s->cancelled && !s->overflowed) {
        s->timed_out = true;
        signal_job (s, SIGTERM);
        signal_job (s, SIGCONT);
        timer_arm (s, CLOCK_BOOTTIME, grace_us, false);
    } else {
        s->killing = true;
    }
}

/* What its output takes on the disk. */
static int64_t output_mb (const struct supervisor *s)
{
    static const char *const stream[] = {"stdout", "stderr"};
    int64_t blocks = 0;
    for (int i = 0; i < 2; i++) {
        char path[300];
        struct stat st;
        snprintf (path, sizeof path, "work/%s", get (s, stream[i]));
        if (fstatat (s->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode))
            blocks += st.st_blocks;
    }
    return blocks * 512 >> 20;
}

static void output_look (struct supervisor *s, int64_t grace_us)
{
    if (s->timed_out || s->cancelled || s->overflowed || s->child_ended ||
        output_mb (s) <= get_int (s, "output_max_mb"))
        return;
    s->overflowed = true;
    signal_job (s, SIGTERM);
    signal_job (s, SIGCONT);
    timer_arm (s, CLOCK_BOOTTIME, grace_us, false);
}

/* Until the job's first process has ended and nothing it started is left. */
static void watch (struct supervisor *s)
{
    int64_t grace_us = get_int (s, "grace_us");
    bool bounded = get_int (s, "output_max_mb") > 0;
    s->warned = get_int (s, "signal") == 0;
    limit_arm (s, get_int (s, "walltime_us"));
    for (;;) {
        reap (s);
        if (s->child_ended) {
            signal_job (s, SIGKILL);
            if (waitpid (-1, NULL, WNOHANG) < 0 && errno == ECHILD)
                return;
            s->killing = true;
        } else if (s->killing) {
            signal_job (s, SIGKILL);
        }
        struct pollfd fds[2] = {{s->signal_fd, POLLIN, 0}, {s->timer_fd, POLLIN, 0}};
        /* SIGKILL reaches what it reached; a process forked in between is met next time round. */
        int wait_ms = s->killing ? KILL_AGAIN_MS : bounded && !s->stopped ? OUTPUT_LOOK_MS : -1;
        if (poll (fds, 2, wait_ms) < 0)
            continue;
        if (bounded)
            output_look (s, grace_us);
        struct signalfd_siginfo info;
        while (read (s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            on_signal (s, &info, grace_us);
        if (fds[1].revents & POLLIN)
            on_timer (s, grace_us);
    }
}

static void write_end (struct supervisor *s)
{
    int code = WIFEXITED (s->child_status) ? WEXITSTATUS (s->child_status)
                                           : 128 + WTERMSIG (s->child_status);
    char text[160] = "";
    if (s->overflowed)
        snprintf (text, sizeof text,
                  "its output grew past %lld MB (JOBOUTPUTMAX), and it was ended",
                  (long long)get_int (s, "output_max_mb"));
    const char *end = s->timed_out                    ? "timeout"
                      : s->overflowed                 ? "output"
                      : s->cancelled                  ? "cancelled"
                      : WIFSIGNALED (s->child_status) ? "signalled"
                                                      : "exited";
    write_status (s, end, code, "%s", text);
}

/* --- beginning ---------------------------------------------------------------------------- */

static void cgroup_prepare (struct supervisor *s)
{
    char value[32];
    s->cgroup = get (s, "cgroup");
    if (!*s->cgroup)
        return;
    if (mkdir (s->cgroup, 0755) != 0 && errno != EEXIST) {
        dprintf (STDERR_FILENO, "nui-supervise: %s: %s\n", s->cgroup, strerror (errno));
        s->cgroup = "";
        return;
    }
    if (get_int (s, "memory_mb") > 0) {
        snprintf (value, sizeof value, "%lld", (long long)get_int (s, "memory_mb") << 20);
        s->memory_kept = cgroup_file (s->cgroup, "memory.max", value);
        cgroup_file (s->cgroup, "memory.oom.group", "1");
    }
    if (get_int (s, "procs") > 0) {
        snprintf (value, sizeof value, "%lld 100000", (long long)get_int (s, "procs") * 100000);
        s->procs_kept = cgroup_file (s->cgroup, "cpu.max", value);
    }
    s->pids_kept = cgroup_file (s->cgroup, "pids.max", get (s, "pids_max"));
}

/* False: another supervisor lives or lived; nothing may be launched. */
static bool claim (struct supervisor *s)
{
    int fd = openat (s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fd < 0 || fcntl (fd, F_SETLK, &lock) != 0) /* kept until we end; not inherited by the job */
        return false;
    int marker = openat (s->dir, "launched", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (marker < 0)
        return false;
    bool durable = fsync (marker) == 0 && fsync (s->dir) == 0;
    close (marker);
    return durable;
}

static void write_started (struct supervisor *s)
{
    char text[128];
    int n = snprintf (text, sizeof text, "pid=%ld\nticks=%llu\nstart_us=%lld\n", (long)s->child,
                      process_ticks (s->child, NULL, NULL), (long long)s->start_us);
    if (file_write_durable (s->dir, "started", text, (size_t)n, 0644) != 0)
        dprintf (STDERR_FILENO, "nui-supervise: started: %s\n", strerror (errno));
}

static int signals_open (void)
{
    sigset_t set;
    sigemptyset (&set);
    sigaddset (&set, SIGTERM);
    sigaddset (&set, SIGCHLD);
    sigaddset (&set, SIGRTMIN + SUPERVISE_SIGNAL_OFFSET);
    sigprocmask (SIG_BLOCK, &set, NULL);
    signal (SIGHUP, SIG_IGN);
    signal (SIGINT, SIG_IGN);
    signal (SIGPIPE, SIG_IGN);
    return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main (int argc, char **argv)
{
    if (argc != 2) {
        fprintf (stderr,
                 "usage: nui-supervise DIRECTORY (run by nui-local, see nui-supervise(8))\n");
        return 2;
    }
    close_range (3, ~0u, 0);
    struct supervisor s = {.timer_fd = -1, .cgroup = ""};
    s.signal_fd = signals_open ();
    s.dir = open (argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s.dir < 0 || s.signal_fd < 0) {
        fprintf (stderr, "nui-supervise: %s: %s\n", argv[1], strerror (errno));
        return 1;
    }
    if (!claim (&s))
        return 0;
    prctl (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    s.spec = file_read_all (s.dir, "spec", &s.spec_len);
    if (!s.spec) {
        write_status (&s, "start_failed", 127, "spec: %s", strerror (errno));
        return 1;
    }
    if (!wait_for_start (&s, get_int (&s, "start_us"))) {
        write_status (&s, "cancelled", 0, "cancelled before it began");
        free (s.spec);
        return 0;
    }
    if (file_reserve (s.dir, "status") != 0 || file_reserve (s.dir, "started") != 0) {
        write_status (&s, "start_failed", 127, "no room for the end of the job to be written: %s",
                      strerror (errno));
        return 1;
    }
    cgroup_prepare (&s);
    char text[MISTAKE_TEXT_MAX] = "";
    bool mistake = false;
    if (launch (&s, text, sizeof text, &mistake) != 0) {
        write_status (&s, mistake ? "mistake" : "start_failed", 127, "%s", text);
    } else {
        write_started (&s);
        watch (&s);
        write_end (&s);
    }
    if (*s.cgroup)
        rmdir (s.cgroup);
    free (s.spec);
    return 0;
}
