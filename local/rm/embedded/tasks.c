/* nui-tasks: on each further host of a job it stands where the script stands on the first: `nui run` there has it start the
 * job's tasks here, over a link that only the job's secret opens. It runs as the job's account, under nui-supervise, which
 * bounds and ends all that it started. Its port is told in `.tasks-port`. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/rm/supervise_file.h"
#include "proto/base/mem.h"
#include "proto/rpc/tasklink.h"

extern char **environ;

enum { TASK_PIECE = 64 << 10 };

/* --- one task --------------------------------------------------------------------------------- */

/* What is a path below our own working directory is another one where the script runs. */
static void task_environment (const char *p, const char *end)
{
    char here[4096];
    size_t len = getcwd (here, sizeof here) ? strlen (here) : 0;
    char **own = environ;
    clearenv ();
    for (; p < end; p += strlen (p) + 1)
        if (strchr (p, '='))
            putenv (strdup (p));
    for (; len && *own; own++) {
        const char *value = strchr (*own, '=');
        if (value && strncmp (value + 1, here, len) == 0 &&
            (!value[1 + len] || value[1 + len] == '/'))
            putenv (*own);
    }
    const char *there = getenv ("NUI_TASKS_CHDIR"); /* where nui run stands */
    if (there && chdir (there) != 0)
        fprintf (stderr, "nui run: %s: %s: in the job's directory instead\n", there,
                 strerror (errno));
    unsetenv ("NUI_TASKS_CHDIR");
    unsetenv ("NUI_TASKS_SECRET");
}

static void task_exec (const char *text, size_t len, const int pipes[2][2])
{
    const char *end = text + len, *p = text;
    long argc = strtol (p, NULL, 10);
    char **argv = argc > 0 && argc < (long)len ? mem_zero ((size_t)argc + 1, sizeof *argv) : NULL;
    p += strlen (p) + 1;
    long i = 0;
    for (; argv && i < argc && p < end; i++, p += strlen (p) + 1)
        argv[i] = strdup (p);
    int null = open ("/dev/null", O_RDONLY);
    dup2 (null, STDIN_FILENO);
    dup2 (pipes[0][1], STDOUT_FILENO);
    dup2 (pipes[1][1], STDERR_FILENO);
    if (!argv || i < argc)
        _exit (126);
    setpgid (0, 0);
    task_environment (p, end);
    close_range (3, ~0u, CLOSE_RANGE_CLOEXEC);
    signal (SIGPIPE, SIG_DFL);
    execvp (argv[0], argv);
    fprintf (stderr, "nui run: %s: %s\n", argv[0], strerror (errno));
    _exit (errno == ENOENT ? 127 : 126);
}

/* What it prints goes over until it is over; false: nobody hears it any more. */
static bool task_output (struct tasklink *link, int *fd, enum tasklink_type type)
{
    char piece[TASK_PIECE];
    ssize_t n = read (*fd, piece, sizeof piece);
    if (n > 0)
        return tasklink_send (link, type, piece, (size_t)n);
    if (n < 0 && errno == EINTR)
        return true;
    close (*fd);
    *fd = -1;
    return true;
}

static bool task_signalled (struct tasklink *link, pid_t pid)
{
    enum tasklink_type type;
    const uint8_t *bytes;
    size_t len;
    if (!tasklink_next (link, &type, &bytes, &len))
        return false;
    if (type == TASKLINK_SIGNAL && len == 1)
        kill (-pid, bytes[0]);
    return true;
}

static void task_watch (struct tasklink *link, pid_t pid, int out[2])
{
    bool heard = true;
    int status = 0;
    while (heard && (out[0] >= 0 || out[1] >= 0)) {
        struct pollfd fds[3] = {
            {out[0], POLLIN, 0}, {out[1], POLLIN, 0}, {tasklink_fd (link), POLLIN, 0}};
        if (!tasklink_pending (link) && poll (fds, 3, -1) < 0)
            continue;
        for (int k = 0; k < 2 && heard; k++)
            if (out[k] >= 0 && fds[k].revents)
                heard = task_output (link, &out[k], k ? TASKLINK_STDERR : TASKLINK_STDOUT);
        if (heard && (fds[2].revents || tasklink_pending (link)))
            heard = task_signalled (link, pid);
    }
    if (!heard)
        kill (-pid, SIGKILL);
    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    uint8_t code = (uint8_t)(WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status));
    if (heard)
        tasklink_send (link, TASKLINK_END, &code, 1);
}

/* In a process of its own. */
static int task_serve (int fd, const uint8_t secret[TASKLINK_SECRET])
{
    struct tasklink *link;
    struct err err = {0};
    enum tasklink_type type;
    const uint8_t *bytes;
    size_t len;
    int pipes[2][2];
    struct timeval patience = {.tv_sec = 20}, none = {0};
    signal (SIGCHLD, SIG_DFL);
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience); /* for a stranger */
    if (tasklink_accept (fd, secret, &link, &err) != 0) {
        fprintf (stderr, "nui-tasks: %s\n", err.text);
        return 1;
    }
    bool asked = tasklink_next (link, &type, &bytes, &len);
    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    if (!asked || type != TASKLINK_RUN || len < 2 || bytes[len - 1] ||
        pipe2 (pipes[0], O_CLOEXEC) != 0 || pipe2 (pipes[1], O_CLOEXEC) != 0) {
        tasklink_close (link);
        return 1;
    }
    pid_t pid = fork ();
    if (pid == 0)
        task_exec ((const char *)bytes, len, (const int (*)[2])pipes);
    close (pipes[0][1]);
    close (pipes[1][1]);
    setpgid (pid, pid);
    if (pid > 0)
        task_watch (link, pid, (int[]){pipes[0][0], pipes[1][0]});
    tasklink_close (link);
    return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int tasks_listen (void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at;
    char text[16];
    int off = 0, fd = socket (AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
        bind (fd, (struct sockaddr *)&any, sizeof any) != 0) { /* a host without IPv6 */
        if (fd >= 0)
            close (fd);
        fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind (fd, (struct sockaddr *)&any4, sizeof any4) != 0)
            return -1;
    }
    if (listen (fd, SOMAXCONN) != 0 || getsockname (fd, (struct sockaddr *)&at, &len) != 0)
        return -1;
    in_port_t port = at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                              : ((struct sockaddr_in *)&at)->sin_port;
    int n = snprintf (text, sizeof text, "%u\n", ntohs (port));
    int here = open (".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool told = here >= 0 && file_write_durable (here, ".tasks-port", text, (size_t)n, 0600) == 0;
    if (here >= 0)
        close (here);
    return told ? fd : -1;
}

int main (void)
{
    uint8_t secret[TASKLINK_SECRET];
    struct err err = {0};
    if (tasklink_secret (getenv ("NUI_TASKS_SECRET"), secret, &err) != 0) {
        fprintf (stderr, "nui-tasks: %s: it is run by nui-node for a job\n", err.text);
        return 2;
    }
    signal (SIGCHLD, SIG_IGN); /* nobody waits for those that serve */
    signal (SIGPIPE, SIG_IGN);
    int fd = tasks_listen ();
    if (fd < 0) {
        fprintf (stderr, "nui-tasks: no port: %s\n", strerror (errno));
        return 1;
    }
    for (;;) {
        int one = accept4 (fd, NULL, NULL, SOCK_CLOEXEC);
        if (one < 0)
            continue;
        if (fork () == 0)
            _exit (task_serve (one, secret));
        close (one);
    }
}
