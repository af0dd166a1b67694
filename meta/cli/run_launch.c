/* run_launch: a task where the resource manager, or ssh, starts it: the launcher gets the node's name and the path of a script. The
 * script lies beside NUI_NODEFILE, which every node of the job sees, and has the task's environment, its directory and the
 * program: launchers put words together anew, and most pass no environment on. It is gone when it has begun. run.c forks
 * this in the place of the task. */
#include "meta/cli/run_launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/shellword.h"

extern char **environ;

enum { WORDS_MAX = 64 };

static void launch_variables (struct strbuf *b)
{
    for (char **env = environ; *env; env++) {
        size_t name =
            strspn (*env, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        if ((*env)[name] != '=' || name == 0 || (**env >= '0' && **env <= '9'))
            continue; /* a function of bash's, which no shell takes from here */
        strbuf_printf (b, "export %.*s=", (int)name, *env);
        shell_word (b, *env + name + 1);
        strbuf_putc (b, '\n');
    }
}

static void launch_script (struct strbuf *b, char **program)
{
    char *here = getcwd (NULL, 0);
    strbuf_puts (b, "#!/bin/sh\nrm -f -- \"$0\"\n");
    launch_variables (b);
    strbuf_puts (b, "cd ");
    shell_word (b, here ? here : "/");
    strbuf_puts (b, " || exit 126\nexec");
    for (; *program; program++) {
        strbuf_putc (b, ' ');
        shell_word (b, *program);
    }
    strbuf_putc (b, '\n');
    free (here);
}

static bool launch_write (const char *path, char **program)
{
    struct strbuf b = STRBUF_INIT;
    launch_script (&b, program);
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    bool ok = fd >= 0 && write (fd, strbuf_text (&b), b.len) == (ssize_t)b.len;
    if (fd >= 0)
        ok = close (fd) == 0 && ok;
    strbuf_free (&b);
    return ok;
}

int run_launch (const char *launcher, const char *node, uint32_t task, char **program)
{
    char path[4096], *save = NULL, *words = mem_copy (launcher, strlen (launcher) + 1);
    char *argv[WORDS_MAX + 3];
    int n = 0;
    const char *file = getenv ("NUI_NODEFILE"), *slash = file ? strrchr (file, '/') : NULL;
    for (char *w = strtok_r (words, " ", &save); w && n < WORDS_MAX;
         w = strtok_r (NULL, " ", &save))
        argv[n++] = w;
    snprintf (path, sizeof path, "%.*s/.task-%d-%u", slash ? (int)(slash - file) : 1,
              slash ? file : ".", (int)getppid (), task);
    if (n == 0) {
        fprintf (stderr, "nui run: NUI_LAUNCHER names no program\n");
        return 126;
    }
    if (!launch_write (path, program)) {
        fprintf (stderr, "nui run: %s: %s\n", path, strerror (errno));
        unlink (path);
        return 126;
    }
    argv[n++] = mem_copy (node, strlen (node) + 1);
    argv[n++] = path;
    argv[n] = NULL;
    execvp (argv[0], argv);
    fprintf (stderr, "nui run: %s: %s\n", argv[0], strerror (errno));
    unlink (path);
    return 126;
}
