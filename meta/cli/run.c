/* nui run: starts a job's tasks from its script, as srun does. It speaks to no daemon: where the tasks belong stands in the
 * variables that the job was launched with (NUI_NODEFILE: a line for each). Tasks of another host are started by nui-tasks
 * there (run_away.c), or by what the site has for that (run_launch.c). Under Slurm it becomes Slurm's own srun. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meta/cli/grid.h"
#include "meta/cli/run_away.h"
#include "meta/cli/run_launch.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"

struct run_args {
    uint64_t tasks; /* 0: all that the job has */
    bool label, kill_on_bad_exit;
};

static const struct cli_option run_options[] = {
    {"tasks", 'n', CLI_OPT_COUNT, "N", "so many tasks; default all that the job has",
     offsetof (struct run_args, tasks), 1, 1 << 20},
    {"label", 'l', CLI_OPT_FLAG, NULL, "puts the task's number before each line that it prints",
     offsetof (struct run_args, label)},
    {"kill-on-bad-exit", 'k', CLI_OPT_FLAG, NULL,
     "ends all tasks when one ends with another code than 0",
     offsetof (struct run_args, kill_on_bad_exit)},
    {0}};

/* One of the program's processes. */
struct task {
    char *node;
    uint32_t number, node_number, local;
    pid_t pid; /* 0: it has ended */
    int code;
    int out[2]; /* what it prints, with --label; -1: none, or over */
    struct strbuf line[2];
};

struct tasks {
    struct task *task;
    uint32_t count;
};

/* --- signals ---------------------------------------------------------------------------------------- */

static void tasks_signal (const struct tasks *all, int number)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->task[i].pid > 0)
            kill (all->task[i].pid, number);
}

static struct tasks *running; /* for on_signal */

static void on_signal (int number)
{
    int saved = errno;
    tasks_signal (running, number);
    errno = saved;
}

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

static void signals_set (void (*handler) (int))
{
    struct sigaction set = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaction (passed_on[i], &set, NULL);
}

/* --- where they belong ---------------------------------------------------------------------------- */

static void place (struct tasks *all, const char *node, size_t len)
{
    static const struct task fresh = {.out = {-1, -1}, .line = {STRBUF_INIT, STRBUF_INIT}};
    struct task *t;
    all->task = mem_resize (all->task, (all->count + 1) * sizeof *all->task);
    t = &all->task[all->count];
    *t = fresh;
    t->node = mem_copy (node, len + 1);
    t->node[len] = 0;
    t->number = all->count++;
    if (t->number == 0)
        return;
    t->node_number = t[-1].node_number + 1;
    for (const struct task *other = t; other-- > all->task;)
        if (strcmp (other->node, t->node) == 0) {
            t->node_number = other->node_number;
            t->local = other->local + 1;
            return;
        }
}

static int places_read (struct tasks *all, struct err *err)
{
    const char *path = getenv ("NUI_NODEFILE");
    char *line = NULL;
    size_t room = 0;
    if (!path || !getenv ("NUI_JOBID"))
        return err_set (
            err, ERR_INVALID,
            "this starts the tasks of a job from its script, and here is no job: nui submit, on a "
            "cluster nui msub");
    FILE *f = fopen (path, "re");
    if (!f)
        return err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    while (getline (&line, &room, f) >= 0) {
        size_t len = strcspn (line, "\n");
        if (len)
            place (all, line, len);
    }
    free (line);
    fclose (f);
    return all->count ? 0 : err_set (err, ERR_INVALID, "%s names no node", path);
}

static void tasks_free (struct tasks *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        free (all->task[i].node);
        strbuf_free (&all->task[i].line[0]);
        strbuf_free (&all->task[i].line[1]);
    }
    free (all->task);
}

/* --- one of them ------------------------------------------------------------------------------------ */

static void env_number (const char *name, uint32_t number)
{
    char text[16];
    snprintf (text, sizeof text, "%u", number);
    setenv (name, text, 1);
}

/* Its number has Slurm's and PBS's names as well, where the job has those of its job. */
static void task_environment (const struct task *t, uint32_t count)
{
    env_number ("NUI_TASK", t->number);
    env_number ("NUI_LOCAL_TASK", t->local);
    env_number ("NUI_NODE_NUMBER", t->node_number);
    env_number ("NUI_TASKS", count);
    setenv ("NUI_NODE", t->node, 1);
    if (getenv ("SLURM_JOB_ID")) {
        env_number ("SLURM_PROCID", t->number);
        env_number ("SLURM_LOCALID", t->local);
        env_number ("SLURM_NODEID", t->node_number);
        env_number ("SLURM_NTASKS", count);
        env_number ("SLURM_NPROCS", count);
        setenv ("SLURMD_NODENAME", t->node, 1);
    }
    if (getenv ("PBS_JOBID")) {
        env_number ("PBS_TASKNUM", t->number);
        env_number ("PBS_NODENUM", t->node_number);
    }
}

/* In the child. What is typed goes to the first task. */
static void task_exec (const struct task *t, uint32_t count, const int pipes[2][2], char **program)
{
    for (int k = 0; k < 2 && pipes[k][1] >= 0; k++)
        dup2 (pipes[k][1], STDOUT_FILENO + k);
    if (t->number > 0 && !freopen ("/dev/null", "r", stdin))
        _exit (126);
    task_environment (t, count);
    if (run_is_away (t->node))
        _exit (run_away (t->node, program));
    const char *launcher = getenv ("NUI_LAUNCHER");
    if (launcher && t->node_number > 0) /* the script is on the first one itself */
        _exit (run_launch (launcher, t->node, t->number, program));
    signal (SIGPIPE, SIG_DFL);
    execvp (program[0], program);
    fprintf (stderr, "nui run: %s: %s\n", program[0], strerror (errno));
    _exit (errno == ENOENT ? 127 : 126);
}

static int task_start (struct task *t, uint32_t count, bool label, char **program, struct err *err)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    for (int k = 0; label && k < 2; k++)
        if (pipe2 (pipes[k], O_CLOEXEC) != 0)
            return err_set (err, ERR_IO, "task %u: %s", t->number, strerror (errno));
    sigset_t all, before;
    sigfillset (&all);
    sigprocmask (SIG_BLOCK, &all, &before); /* until it has no handler of ours */
    t->pid = fork ();
    if (t->pid == 0) {
        signals_set (SIG_DFL);
        prctl (PR_SET_NAME, "nui task"); /* hears of it from us */
    }
    sigprocmask (SIG_SETMASK, &before, NULL);
    if (t->pid == 0)
        task_exec (t, count, pipes, program);
    for (int k = 0; k < 2 && pipes[k][1] >= 0; k++) {
        close (pipes[k][1]);
        t->out[k] = pipes[k][0];
    }
    return t->pid > 0 ? 0 : err_set (err, ERR_IO, "task %u: %s", t->number, strerror (errno));
}

/* --- all of them -------------------------------------------------------------------------------------- */

/* Whole lines, so that tasks do not speak into each other's. */
static void lines_print (struct task *t, int which, bool over)
{
    FILE *to = which ? stderr : stdout;
    const char *text = strbuf_text (&t->line[which]);
    size_t at = 0;
    for (const char *end; (end = strchr (text + at, '\n')) != NULL; at = (size_t)(end - text) + 1)
        fprintf (to, "%u: %.*s\n", t->number, (int)(end - text - (long)at), text + at);
    if (over && text[at])
        fprintf (to, "%u: %s\n", t->number, text + at);
    fflush (to);
    char *rest = strdup (text + at);
    strbuf_clear (&t->line[which]);
    strbuf_puts (&t->line[which], rest);
    free (rest);
}

static void output_take (struct task *t, int which)
{
    char buf[4096];
    ssize_t n = read (t->out[which], buf, sizeof buf);
    if (n < 0 && errno == EINTR)
        return;
    for (ssize_t i = 0; i < n; i++) /* a line is text */
        if (buf[i] == 0)
            buf[i] = ' ';
    if (n > 0)
        strbuf_append (&t->line[which], buf, (size_t)n);
    lines_print (t, which, n <= 0);
    if (n <= 0) {
        close (t->out[which]);
        t->out[which] = -1;
    }
}

/* Until there is something of theirs to print, or a moment has passed; false: nothing will come any more. */
static bool output_wait (struct tasks *all)
{
    struct pollfd *fd = mem_alloc ((2 * all->count + 1) * sizeof *fd);
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * all->count; i++)
        if (all->task[i / 2].out[i % 2] >= 0)
            fd[n++] = (struct pollfd){.fd = all->task[i / 2].out[i % 2], .events = POLLIN};
    bool any = n > 0 && poll (fd, n, 200) > 0;
    for (uint32_t i = 0, k = 0; any && i < 2 * all->count; i++)
        if (all->task[i / 2].out[i % 2] >= 0 && fd[k++].revents)
            output_take (&all->task[i / 2], i % 2);
    free (fd);
    return n > 0;
}

static struct task *task_of (struct tasks *all, pid_t pid)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->task[i].pid == pid)
            return &all->task[i];
    return NULL;
}

/* The highest of their codes. */
static int tasks_wait (struct tasks *all, const struct run_args *args)
{
    uint32_t left = 0;
    int highest = 0;
    bool ended = false;
    for (uint32_t i = 0; i < all->count; i++)
        left += all->task[i].pid > 0;
    while (left > 0) {
        int status;
        bool speaks = args->label && output_wait (all);
        pid_t pid = waitpid (-1, &status, speaks ? WNOHANG : 0);
        struct task *t = pid > 0 ? task_of (all, pid) : NULL;
        if (!t)
            continue;
        t->code = WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status);
        t->pid = 0;
        left--;
        highest = t->code > highest ? t->code : highest;
        if (t->code != 0 && args->kill_on_bad_exit && !ended) {
            ended = true;
            fprintf (stderr, "nui run: task %u ended with %d: the others are ended\n", t->number,
                     t->code);
            tasks_signal (all, SIGTERM);
        }
    }
    while (args->label && output_wait (all))
        ;
    return highest;
}

static int tasks_run (struct tasks *all, const struct run_args *args, char **program)
{
    struct err err = {0};
    int rc = 0;
    running = all;
    signals_set (on_signal);
    prctl (PR_SET_NAME,
           "nui run"); /* by which nui-supervise knows whom to signal before the limit */
    for (uint32_t i = 0; rc == 0 && i < all->count; i++)
        rc = task_start (&all->task[i], all->count, args->label, program, &err);
    if (rc != 0)
        tasks_signal (all, SIGTERM);
    int code = tasks_wait (all, args);
    return rc ? cli_fail ("run", &err) : code;
}

/* --- under Slurm ----------------------------------------------------------------------------------------- */

static int slurm_exec (const struct run_args *args, uint32_t tasks, int count, char **program)
{
    enum { OURS_MAX = 5 };
    char number[16];
    const char **argv = mem_alloc ((size_t)(OURS_MAX + count + 1) * sizeof *argv);
    int n = 0;
    snprintf (number, sizeof number, "%u", tasks);
    argv[n++] = "srun";
    argv[n++] = "-n";
    argv[n++] = number;
    if (args->label)
        argv[n++] = "--label";
    if (args->kill_on_bad_exit)
        argv[n++] = "--kill-on-bad-exit";
    memcpy (argv + n, program, (size_t)(count + 1) * sizeof *argv);
    execvp ("srun", (char **)argv);
    free (argv);
    struct err err = {0};
    err_set (&err, ERR_IO, "srun: %s", strerror (errno));
    return cli_fail ("run", &err);
}

static int run_run (struct cli_context *ctx, int argc, char **argv)
{
    struct run_args args = {0};
    struct cli_operands ops;
    struct tasks all = {0};
    struct err err = {0};
    int exit_code;
    if (!cli_options (ctx, run_options, CLI_STOP_AT_OPERAND, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count == 0)
        return cli_usage ("run", "name the program that the tasks run");
    int rc = places_read (&all, &err);
    if (rc == 0 && args.tasks > all.count)
        rc = err_set (&err, ERR_INVALID, "the job has %u task%s, not %llu", all.count,
                      all.count == 1 ? "" : "s", (unsigned long long)args.tasks);
    if (rc == 0) {
        const char *launcher = getenv ("NUI_LAUNCHER");
        char **program = mem_zero ((size_t)ops.count + 1, sizeof *program);
        memcpy (program, ops.item, (size_t)ops.count * sizeof *program);
        uint32_t tasks = args.tasks ? (uint32_t)args.tasks : all.count;
        if (launcher && strcmp (launcher, "srun") == 0) {
            exit_code = slurm_exec (&args, tasks, ops.count, program);
        } else {
            for (; all.count > tasks; all.count--)
                free (all.task[all.count - 1].node);
            exit_code = tasks_run (&all, &args, program);
        }
        free (program);
    } else {
        exit_code = cli_fail ("run", &err);
    }
    tasks_free (&all);
    return exit_code;
}

const struct cli_command run_command = {
    .name = "run",
    .group = CLI_USERS,
    .summary = "starts a program as the tasks of a job, from its script",
    .run = run_run,
    .options = run_options,
    .help = "nui run [-n N] [-l] [-k] PROGRAM [ARGUMENT...]",
    .text =
        "In a job's script: starts PROGRAM once for each task, on the node of the task, as srun does; under Slurm\n"
        "it is srun. Each knows its number (NUI_TASK, and SLURM_PROCID or PBS_TASKNUM where the script speaks\n"
        "those). The exit code is the highest of theirs.",
    .example = "nui run ./model input.nc",
};
