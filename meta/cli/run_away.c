/* run_away: the near end of a task on another host: asks nui-tasks there to start it, and is its output, its signals and its
 * exit code here. run.c forks it in the place of the task. */
#include "meta/cli/run_away.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "proto/base/strbuf.h"
#include "proto/rpc/tasklink.h"

extern char **environ;

/* host and port of that node's nui-tasks. */
static bool away_place (const char *node, char host[256], char port[8])
{
    const char *path = getenv ("NUI_TASKS_FILE");
    char line[600], name[256];
    bool found = false;
    FILE *f = path ? fopen (path, "re") : NULL;
    while (f && !found && fgets (line, sizeof line, f))
        found = sscanf (line, "%255s %255s %7s", name, host, port) == 3 && strcmp (name, node) == 0;
    if (f)
        fclose (f);
    return found;
}

bool run_is_away (const char *node)
{
    char host[256], port[8];
    return away_place (node, host, port);
}

/* Where the task is to stand there: below the job's directory, of which each host has its own, or where all have the same. */
static void away_stand (void)
{
    const char *file = getenv ("NUI_TASKS_FILE");
    const char *slash = file ? strrchr (file, '/') : NULL;
    size_t len = slash ? (size_t)(slash - file) : 0;
    char here[4096];
    if (!getcwd (here, sizeof here))
        return;
    bool below = len && strncmp (here, file, len) == 0 && (!here[len] || here[len] == '/');
    const char *there = !below ? here : here[len] ? here + len + 1 : ".";
    setenv ("NUI_TASKS_CHDIR", there, 1);
}

static bool away_ask (struct tasklink *link, char **program)
{
    struct strbuf b = STRBUF_INIT;
    int count = 0;
    away_stand ();
    while (program[count])
        count++;
    strbuf_printf (&b, "%d", count);
    strbuf_append (&b, "", 1);
    for (char **word = program; *word; word++)
        strbuf_append (&b, *word, strlen (*word) + 1);
    for (char **word = environ; *word; word++)
        if (strncmp (*word, "NUI_TASKS_SECRET=", 17) != 0)
            strbuf_append (&b, *word, strlen (*word) + 1);
    bool sent = tasklink_send (link, TASKLINK_RUN, b.data, b.len);
    strbuf_free (&b);
    return sent;
}

static void away_print (int fd, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* nobody reads it; the task goes on */
        bytes += n;
        len -= (size_t)n;
    }
}

/* Its exit code, or -1: the host is gone. */
static int away_follow (struct tasklink *link, int signals)
{
    for (;;) {
        struct pollfd fds[2] = {{tasklink_fd (link), POLLIN, 0}, {signals, POLLIN, 0}};
        struct signalfd_siginfo info;
        enum tasklink_type type;
        const uint8_t *bytes;
        size_t len;
        if (!tasklink_pending (link) && poll (fds, 2, -1) < 0)
            continue;
        if (fds[1].revents && read (signals, &info, sizeof info) == (ssize_t)sizeof info) {
            uint8_t number = (uint8_t)info.ssi_signo;
            if (!tasklink_send (link, TASKLINK_SIGNAL, &number, 1))
                return -1;
        }
        if (!fds[0].revents && !tasklink_pending (link))
            continue;
        if (!tasklink_next (link, &type, &bytes, &len))
            return -1;
        if (type == TASKLINK_END)
            return len == 1 ? bytes[0] : -1;
        if (type == TASKLINK_STDOUT || type == TASKLINK_STDERR)
            away_print (type == TASKLINK_STDOUT ? STDOUT_FILENO : STDERR_FILENO, bytes, len);
    }
}

int run_away (const char *node, char **program)
{
    char host[256] = "", port[8] = "";
    uint8_t secret[TASKLINK_SECRET];
    struct tasklink *link = NULL;
    struct err err = {0};
    sigset_t passed;
    int code = -1;
    sigemptyset (&passed);
    for (size_t i = 0; i < 5; i++)
        sigaddset (&passed, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}[i]);
    sigprocmask (SIG_BLOCK, &passed, NULL);
    int signals = signalfd (-1, &passed, SFD_CLOEXEC);
    signal (SIGPIPE, SIG_IGN);
    if (!away_place (node, host, port) ||
        tasklink_secret (getenv ("NUI_TASKS_SECRET"), secret, &err) != 0 ||
        tasklink_connect (host, port, secret, &link, &err) != 0) {
        fprintf (stderr, "nui run: node %s: %s\n", node, err.text);
        return 126;
    }
    if (away_ask (link, program))
        code = away_follow (link, signals);
    tasklink_close (link);
    if (code < 0)
        fprintf (stderr, "nui run: node %s: the connection to it was lost\n", node);
    return code < 0 ? 126 : code;
}
