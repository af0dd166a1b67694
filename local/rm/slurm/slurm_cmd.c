/* Slurm's own commands, for what its REST API lacks: run one at a time, watched by their pidfd. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utlist.h>

#include "local/rm/slurm/slurm_i.h"
#include "proto/base/strbuf.h"

enum { ARGS_MAX = 24, OUTPUT_MAX = 64 << 20 };

struct slurm_command {
    struct slurm *slurm;
    char *args[ARGS_MAX + 1];
    void (*on_done) (void *arg, int code, const char *text);
    void *arg;
    pid_t pid;
    int pidfd, pipe;
    struct event *ended, *readable;
    struct strbuf output;
    struct slurm_command *prev, *next;
};

static void command_free (struct slurm_command *c)
{
    if (c->ended)
        event_free (c->ended);
    if (c->readable)
        event_free (c->readable);
    if (c->pidfd >= 0)
        close (c->pidfd);
    if (c->pipe >= 0)
        close (c->pipe);
    for (int i = 0; i < ARGS_MAX; i++)
        free (c->args[i]);
    strbuf_free (&c->output);
    free (c);
}

static void first_run (struct slurm *slurm);

static void command_done (struct slurm_command *c, int code)
{
    struct slurm *slurm = c->slurm;
    char quoted[400];
    DL_DELETE (slurm->commands, c);
    if (code != 0)
        log_event (slurm->log, LOG_LEVEL_WARN, "slurm", "command_failed",
                   "command=\"%s %s\" exit=%d "
                   "said=%s",
                   c->args[0], c->args[1] ? c->args[1] : "", code,
                   log_quote (strbuf_text (&c->output), quoted, sizeof quoted));
    c->on_done (c->arg, code, strbuf_text (&c->output));
    command_free (c);
    first_run (slurm);
}

static void drain (struct slurm_command *c)
{
    char buf[4096];
    ssize_t n;
    while ((n = read (c->pipe, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && c->output.len < OUTPUT_MAX)
            strbuf_append (&c->output, buf, (size_t)n);
    if (n == 0)
        event_del (c->readable);
}

static void on_readable (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    drain (arg);
}

static void on_ended (evutil_socket_t fd, short what, void *arg)
{
    struct slurm_command *c = arg;
    siginfo_t info = {0};
    (void)what;
    if (waitid (P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    drain (c);
    if (c->output.len >= OUTPUT_MAX)
        command_done (c, -1);
    else
        command_done (c, info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}

/* The program in BIN, with SLURM_CONF and little else. */
static int spawn (struct slurm_command *c, int out)
{
    struct slurm *slurm = c->slurm;
    char conf[4200], path[4200];
    static char where[] = "PATH=/usr/local/bin:/usr/bin:/bin", plain[] = "LC_ALL=C",
                seconds[] = "SLURM_TIME_FORMAT=%s";
    char *env[] = {where, plain, seconds, NULL, NULL};
    posix_spawn_file_actions_t files;
    if (slurm->slurm_conf) {
        snprintf (conf, sizeof conf, "SLURM_CONF=%s", slurm->slurm_conf);
        env[3] = conf;
    }
    if (slurm->bin_dir)
        snprintf (path, sizeof path, "%s/%s", slurm->bin_dir, c->args[0]);
    else
        snprintf (path, sizeof path, "%s", c->args[0]);
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2 (&files, out, 1);
    posix_spawn_file_actions_adddup2 (&files, out, 2);
    int rc = posix_spawnp (&c->pid, path, &files, NULL, c->args, env);
    posix_spawn_file_actions_destroy (&files);
    return rc;
}

static void first_run (struct slurm *slurm)
{
    struct slurm_command *c = slurm->commands;
    int fds[2];
    if (!c || c->pid)
        return;
    if (pipe2 (fds, O_CLOEXEC) != 0) {
        command_done (c, -1);
        return;
    }
    int rc = spawn (c, fds[1]);
    close (fds[1]);
    c->pipe = fds[0];
    fcntl (c->pipe, F_SETFL, O_NONBLOCK);
    if (rc != 0) {
        strbuf_printf (&c->output, "%s: %s", c->args[0], strerror (rc));
        command_done (c, -1);
        return;
    }
    c->pidfd = (int)syscall (SYS_pidfd_open, c->pid, 0);
    assert (c->pidfd >= 0); /* our own child */
    c->readable = event_new (slurm->base, c->pipe, EV_READ | EV_PERSIST, on_readable, c);
    c->ended = event_new (slurm->base, c->pidfd, EV_READ | EV_PERSIST, on_ended, c);
    event_add (c->readable, NULL);
    event_add (c->ended, NULL);
}

void slurm_command (struct slurm *slurm, const char *const *args,
                    void (*on_done) (void *arg, int code, const char *text), void *arg)
{
    struct slurm_command *c = calloc (1, sizeof *c);
    assert (c);
    c->slurm = slurm;
    c->pidfd = c->pipe = -1;
    c->on_done = on_done;
    c->arg = arg;
    for (int i = 0; i < ARGS_MAX && args[i]; i++)
        c->args[i] = strdup (args[i]);
    DL_APPEND (slurm->commands, c);
    first_run (slurm);
}

void slurm_commands_stop (struct slurm *slurm)
{
    struct slurm_command *c, *next;
    DL_FOREACH_SAFE (slurm->commands, c, next) {
        DL_DELETE (slurm->commands, c);
        if (c->pid > 0) {
            kill (c->pid, SIGKILL);
            waitpid (c->pid, NULL, 0);
        }
        command_free (c);
    }
}
