/* child: posix_spawn and a pidfd in the loop. Hooks of the notifier, of eviction and of staging,
 * and the remover of old files, run by it. It never waits for a child: the end of one arrives as
 * an event, and one past its limit is killed. */
#include "proto/child/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    int pidfd;
    bool timed_out;
    struct event *ended, *limit;
    child_fn fn;
    void *arg;
};

static void child_free (struct child *c)
{
    if (c->ended)
        event_free (c->ended);
    if (c->limit)
        event_free (c->limit);
    if (c->pidfd >= 0)
        close (c->pidfd);
    free (c);
}

static void on_ended (evutil_socket_t fd, short what, void *arg)
{
    struct child *c = arg;
    siginfo_t info = {0};
    (void)what;
    if (waitid (P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    int code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    struct child done = *c;
    child_free (c); /* first: the callback may run the next */
    done.fn (done.arg, code, done.timed_out);
}

static void on_limit (evutil_socket_t fd, short what, void *arg)
{
    struct child *c = arg;
    (void)fd;
    (void)what;
    c->timed_out = true;
    kill (-c->pid,
          SIGKILL); /* its session's group: it is still unreaped, so the number is its own */
}

static int spawn (const char *const *argv, const char *const *envp, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen (&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init (&attr);
    sigemptyset (&none);
    sigfillset (&all);
    sigdelset (&all, SIGKILL);
    sigdelset (&all, SIGSTOP);
    posix_spawnattr_setsigmask (&attr, &none);
    posix_spawnattr_setsigdefault (&attr, &all);
    posix_spawnattr_setflags (&attr,
                              POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn (pid, argv[0], &files, &attr, (char *const *)argv, (char *const *)envp);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attr);
    return rc;
}

uint32_t child_as (const char *account, struct arena *arena, const char *argv[CHILD_AS_MAX],
                   struct err *err)
{
    struct passwd pw, *found = NULL;
    char buf[4096];
    if (geteuid () != 0)
        return 0;
    if (getpwnam_r (account, &pw, buf, sizeof buf, &found) != 0 || !found) {
        err_set (err, ERR_DENIED, "account %.60s does not exist on this machine", account);
        return 0;
    }
    if (pw.pw_uid == 0)
        return 0;
    argv[0] = "/usr/bin/setpriv";
    argv[1] = arena_printf (arena, "--reuid=%lu", (unsigned long)pw.pw_uid);
    argv[2] = arena_printf (arena, "--regid=%lu", (unsigned long)pw.pw_gid);
    argv[3] = "--init-groups";
    argv[4] = "--no-new-privs";
    argv[5] = "--";
    return CHILD_AS_MAX;
}

struct child *child_run (struct event_base *base, const char *const *argv, const char *const *envp,
                         duration_us limit, child_fn fn, void *arg, struct err *err)
{
    struct timeval after = {.tv_sec = limit / US_PER_S, .tv_usec = limit % US_PER_S};
    struct child *c = calloc (1, sizeof *c);
    assert (c);
    *c = (struct child){.pidfd = -1, .fn = fn, .arg = arg};
    int rc = spawn (argv, envp, &c->pid);
    if (rc != 0) {
        err_set (err, ERR_IO, "%s: %s", argv[0], strerror (rc));
        free (c);
        return NULL;
    }
    c->pidfd = (int)syscall (SYS_pidfd_open, c->pid, 0);
    if (c->pidfd >= 0) {
        fcntl (c->pidfd, F_SETFD, FD_CLOEXEC);
        c->ended = event_new (base, c->pidfd, EV_READ | EV_PERSIST, on_ended, c);
        c->limit = evtimer_new (base, on_limit, c);
    }
    if (c->pidfd < 0 || !c->ended || !c->limit) {
        err_set (err, ERR_IO, "%s: cannot be watched: %s", argv[0], strerror (errno));
        child_kill (c);
        return NULL;
    }
    event_add (c->ended, NULL);
    event_add (c->limit, &after);
    return c;
}

void child_kill (struct child *c)
{
    if (!c)
        return;
    kill (-c->pid, SIGKILL);
    kill (c->pid, SIGKILL); /* should it not have come to its own session yet */
    waitpid (c->pid, NULL, 0);
    child_free (c);
}
