/* first_config: asks, or takes from options and the machine itself, what a scheduler for this machine alone has to know, and
 * writes it down. main.c calls it for --init instead of starting the daemon; the daemon must never call it: it waits
 * for answers. */
#include "local/rm/embedded/first_config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum { ANSWER_MAX = 256, LEFT_FREE = 10 /* of the memory, a part of it */ };

struct machine {
    char dir[PATH_MAX]; /* absolute */
    const char *said;   /* as it was typed */
    char node[ANSWER_MAX], procs[ANSWER_MAX], memory[ANSWER_MAX];
};

/* The answer to a question, or what stands in it already, where nobody types. */
static void ask (const char *question, char answer[ANSWER_MAX])
{
    char line[ANSWER_MAX];
    if (!isatty (STDIN_FILENO) || !isatty (STDOUT_FILENO))
        return;
    printf ("%s [%s]: ", question, answer);
    fflush (stdout);
    if (fgets (line, sizeof line, stdin) == NULL)
        return;
    line[strcspn (line, "\n")] = 0;
    if (*line)
        snprintf (answer, ANSWER_MAX, "%s", line);
}

/* What this machine is: its name, its processors, and its memory but for what the system needs. */
static void machine_look (struct machine *m)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    struct sysinfo info = {.mem_unit = 1};
    (void)gethostname (host, sizeof host);
    (void)sysinfo (&info);
    snprintf (m->node, sizeof m->node, "%.*s", (int)strcspn (host, "."), host);
    snprintf (m->procs, sizeof m->procs, "%ld", sysconf (_SC_NPROCESSORS_ONLN));
    snprintf (m->memory, sizeof m->memory, "%lluM",
              (unsigned long long)info.totalram * info.mem_unit / (1 << 20) * (LEFT_FREE - 1) /
                  LEFT_FREE);
}

static int machine_check (const struct machine *m, struct err *err)
{
    int64_t memory;
    char *end;
    long procs = strtol (m->procs, &end, 10);
    if (name_check ("node", m->node, err) != 0)
        return err->code;
    if (*end || procs < 1 || procs > INT16_MAX)
        return err_set (err, ERR_INVALID, "'%s' is no number of processors", m->procs);
    return memory_parse (m->memory, &memory, err);
}

/* Never over one that is there. */
static FILE *file_new (const struct machine *m, const char *name, struct err *err)
{
    char path[PATH_MAX + 16];
    snprintf (path, sizeof path, "%s/%s", m->dir, name);
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    FILE *f = fd >= 0 ? fdopen (fd, "w") : NULL;
    if (!f)
        err_set (err, ERR_EXISTS, "%s/%s: %s", m->said, name, strerror (errno));
    return f;
}

static int file_done (FILE *f, const struct machine *m, const char *name, struct err *err)
{
    bool bad = ferror (f) || fflush (f) != 0 || fsync (fileno (f)) != 0;
    return fclose (f) != 0 || bad
               ? err_set (err, ERR_IO, "%s/%s: %s", m->said, name, strerror (errno))
               : 0;
}

static int write_scheduler (const struct machine *m, struct err *err)
{
    const struct passwd *pw = getpwuid (geteuid ());
    FILE *f = file_new (m, "maui.cfg", err);
    if (!f)
        return err->code;
    fprintf (
        f,
        "# Written by nui-local --init for this machine alone. Every parameter: maui.cfg(5), nui-local(8).\n\n"
        "# Where it keeps its state and its jobs' directories, and where its users find it.\n"
        "STATEDIR %s\nJOBDIR   %s/jobs\nSOCKET   %s/socket\n\n"
        "# Who may do everything: hold, change and cancel the jobs of others.\n"
        "ADMIN1 %s\n\n"
        "# The machine. Leave some memory to the system; GRES=gpu:2 where it has two of these.\n"
        "NODECFG[%s] PROCS=%s MEM=%s\n\n"
        "# Who waits longer comes first, and small jobs fill what large ones leave until then.\n"
        "QUEUETIMEWEIGHT 1\nBACKFILLPOLICY  FIRSTFIT\n\n"
        "# Examples, without the number sign in force:\n"
        "# FSPOLICY DEDICATEDPS           who has used less comes first:\n"
        "# FSWEIGHT 10\n# USERCFG[DEFAULT] FSTARGET=10\n"
        "# USERCFG[DEFAULT] MAXPROC=%s     nobody has more than so many processors at a time\n"
        "# CLASSCFG[long] MAX.WCLIMIT=7:00:00:00\n",
        m->dir, m->dir, m->dir, pw ? pw->pw_name : "root", m->node, m->procs, m->memory, m->procs);
    return file_done (f, m, "maui.cfg", err);
}

static int write_client (const struct machine *m, struct err *err)
{
    FILE *f = file_new (m, "nui.cfg", err);
    if (!f)
        return err->code;
    fprintf (
        f,
        "# Of the users' programs: NUI_CONFIG names it, or it stands as /etc/nui/nui.cfg. See nui.cfg(5).\n"
        "SITECFG[local] SOCKET=%s/socket\n",
        m->dir);
    return file_done (f, m, "nui.cfg", err);
}

static int all_write (struct machine *m, struct err *err)
{
    if (mkdir (m->said, 0755) != 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "%s: %s", m->said, strerror (errno));
    if (!realpath (m->said, m->dir))
        return err_set (err, ERR_IO, "%s: %s", m->said, strerror (errno));
    if (strpbrk (m->dir, " \t#\""))
        return err_set (err, ERR_INVALID, "%s: a path in the configuration has no blanks", m->dir);
    int rc = write_scheduler (m, err);
    return rc ? rc : write_client (m, err);
}

static int usage (int code)
{
    fprintf (
        code ? stderr : stdout,
        "usage: nui-local --init DIR [--node NAME] [--procs N] [--memory MEM]\n"
        "Writes a first configuration for this machine alone, DIR/maui.cfg, and the client's, DIR/nui.cfg.\n"
        "On a terminal it asks; what is not said is as the machine has it. Over a Slurm: nui-local --from-slurm.\n"
        "  --node NAME    what the machine is called in listings\n"
        "  --procs N      its processors\n"
        "  --memory MEM   for jobs: 30G\n");
    return code;
}

int first_config_main (int argc, char **argv)
{
    static const struct option options[] = {{"node", required_argument, NULL, 'n'},
                                            {"procs", required_argument, NULL, 'p'},
                                            {"memory", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct machine m;
    struct err err = {0};
    bool asked = true;
    int c;
    machine_look (&m);
    while ((c = getopt_long (argc, argv, "h", options, NULL)) != -1) {
        char *to = c == 'n' ? m.node : c == 'p' ? m.procs : c == 'm' ? m.memory : NULL;
        if (!to)
            return usage (c == 'h' ? 0 : 2);
        snprintf (to, ANSWER_MAX, "%s", optarg);
        asked = false;
    }
    if (optind + 1 != argc)
        return usage (2);
    m.said = argv[optind];
    if (asked) {
        ask ("The name of this machine in listings", m.node);
        ask ("Its processors for jobs", m.procs);
        ask ("Its memory for jobs", m.memory);
    }
    if (machine_check (&m, &err) != 0 || all_write (&m, &err) != 0) {
        fprintf (stderr, "nui-local: %s\n", err.text);
        return 1;
    }
    printf ("%s/maui.cfg: %s with %s processor%s and %s of memory\n"
            "next: cd %s; nui-local --config maui.cfg > nui-local.log 2>&1 &\n"
            "then: export NUI_CONFIG=$PWD/nui.cfg; nui msub SCRIPT\n",
            m.said, m.node, m.procs, strcmp (m.procs, "1") == 0 ? "" : "s", m.memory, m.said);
    return 0;
}
