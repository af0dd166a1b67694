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

#include "proto/base/strbuf.h"

struct child {
    pid_t pid;
    int pidfd, pipe; /* of its stdout; -1: nobody reads it */
    bool timed_out, flooded;
    struct event *ended, *limit, *readable;
    struct strbuf output;
    size_t most;
    child_fn fn;
    child_said_fn said;
    void *arg;
};

static void child_free (struct child *c)
{
    if (c->ended)
        event_free (c->ended);
    if (c->limit)
        event_free (c->limit);
    if (c->readable)
        event_free (c->readable);
    if (c->pipe >= 0)
        close (c->pipe);
    strbuf_free (&c->output);
    if (c->pidfd >= 0)
        close (c->pidfd);
    free (c);
}

/* Some of what there is; the loop comes again for the rest. All of it once the child is gone: a pipe holds little. */
static void output_take (struct child *c, int turns)
{
    char buf[16 << 10];
    for (ssize_t n; turns-- > 0 && !c->flooded && (n = read (c->pipe, buf, sizeof buf)) >= 0;) {
        if (n == 0) {
            event_del (c->readable);
            return;
        }
        c->flooded = c->output.len + (size_t)n > c->most;
        if (!c->flooded)
            strbuf_append (&c->output, buf, (size_t)n);
    }
    if (c->flooded) {
        event_del (c->readable);
        kill (-c->pid, SIGKILL);
    }
}

static void on_readable (evutil_socket_t fd, short what, void *arg)
{
    enum { TURNS = 16 };
    (void)fd;
    (void)what;
    output_take (arg, TURNS);
}

static void on_ended (evutil_socket_t fd, short what, void *arg)
{
    struct child *c = arg;
    siginfo_t info = {0};
    (void)what;
    if (waitid (P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    int code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    if (c->said) {
        enum { ALL = 1 << 10 };
        output_take (c, ALL);
    }
    struct child done = *c;
    c->output = (struct strbuf){0};
    child_free (c); /* first: the callback may run the next */
    if (!done.said) {
        done.fn (done.arg, code, done.timed_out);
        return;
    }
    struct child_said said = {.exit_code = code,
                              .timed_out = done.timed_out,
                              .flooded = done.flooded,
                              .text = strbuf_text (&done.output),
                              .len = done.output.len};
    done.said (done.arg, &said);
    strbuf_free (&done.output);
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

static int spawn (const char *const *argv, const char *const *envp, int out, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    if (out >= 0)
        posix_spawn_file_actions_adddup2 (&files, out, 1);
    else
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

static struct child *child_begin (struct event_base *base, const char *const *argv,
                                  const char *const *envp, duration_us limit, int out,
                                  const struct child *like, struct err *err)
{
    struct timeval after = {.tv_sec = limit / US_PER_S, .tv_usec = limit % US_PER_S};
    struct child *c = calloc (1, sizeof *c);
    assert (c);
    *c = *like;
    int rc = spawn (argv, envp, out, &c->pid);
    if (rc != 0) {
        err_set (err, ERR_IO, "%s: %s", argv[0], strerror (rc));
        child_free (c);
        return NULL;
    }
    c->pidfd = (int)syscall (SYS_pidfd_open, c->pid, 0);
    if (c->pidfd >= 0) {
        fcntl (c->pidfd, F_SETFD, FD_CLOEXEC);
        c->ended = event_new (base, c->pidfd, EV_READ | EV_PERSIST, on_ended, c);
        c->limit = evtimer_new (base, on_limit, c);
    }
    if (c->pipe >= 0 &&
        (c->readable = event_new (base, c->pipe, EV_READ | EV_PERSIST, on_readable, c)))
        event_add (c->readable, NULL);
    if (c->pidfd < 0 || !c->ended || !c->limit || (c->pipe >= 0 && !c->readable)) {
        err_set (err, ERR_IO, "%s: cannot be watched: %s", argv[0], strerror (errno));
        child_kill (c);
        return NULL;
    }
    event_add (c->ended, NULL);
    event_add (c->limit, &after);
    return c;
}

struct child *child_run (struct event_base *base, const char *const *argv, const char *const *envp,
                         duration_us limit, child_fn fn, void *arg, struct err *err)
{
    const struct child like = {.pidfd = -1, .pipe = -1, .fn = fn, .arg = arg};
    return child_begin (base, argv, envp, limit, -1, &like, err);
}

struct child *child_ask (struct event_base *base, const char *const *argv, const char *const *envp,
                         duration_us limit, size_t most, child_said_fn fn, void *arg,
                         struct err *err)
{
    int fds[2];
    if (pipe2 (fds, O_CLOEXEC) != 0) {
        err_set (err, ERR_IO, "%s: %s", argv[0], strerror (errno));
        return NULL;
    }
    fcntl (fds[0], F_SETFL, O_NONBLOCK);
    const struct child like = {.pidfd = -1, .pipe = fds[0], .most = most, .said = fn, .arg = arg};
    struct child *c = child_begin (base, argv, envp, limit, fds[1], &like, err);
    close (fds[1]);
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
