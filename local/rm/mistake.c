/* mistake: sentences for jobs that cannot run as they are.
 *
 * The kernel says ENOENT for a script whose interpreter is not there, with the script's own name, which helps
 * nobody: here the first line is read as the kernel reads it. Called by the resource managers before a job is taken,
 * by nui-supervise after a failed execve, and where Slurm ran a job that ended as one ends whose script was not
 * executed; reads files, changes nothing. Where the fault may be the site's (a
 * loader that is missing, a file system mounted noexec) the answer is no, and the job is tried again. */
#include "local/rm/mistake.h"
#include "proto/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_LINE_MAX = 256 }; /* so much of it the kernel reads */

bool mistake_of_script (const void *script, size_t len, char out[MISTAKE_TEXT_MAX])
{
    const char *text = script, *newline = len ? memchr (text, '\n', len) : NULL;
    if (!newline || newline == text || newline[-1] != '\r' ||
        memchr (text, 0, (size_t)(newline - text)))
        return false;
    snprintf (out, MISTAKE_TEXT_MAX,
              "the script has DOS line ends (its first line ends with a carriage return): dos2unix "
              "takes them away");
    return true;
}

/* What the first line names, by the kernel's rule: blanks, then all up to the next blank. "": no #! line. */
static void mistake_interpreter (int dir, char out[FIRST_LINE_MAX])
{
    char line[FIRST_LINE_MAX] = "";
    int fd = openat (dir, "script", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read (fd, line, sizeof line - 1) : -1;
    *out = 0;
    if (fd >= 0)
        close (fd);
    if (n < 2 || memcmp (line, "#!", 2) != 0)
        return;
    line[n] = 0;
    line[strcspn (line, "\n")] = 0;
    const char *word = line + 2 + strspn (line + 2, " \t");
    snprintf (out, FIRST_LINE_MAX, "%.*s", (int)strcspn (word, " \t"), word);
}

static bool mistake_of_interpreter (int dir, char out[MISTAKE_TEXT_MAX])
{
    char name[FIRST_LINE_MAX];
    struct stat st;
    const char *why = NULL;
    mistake_interpreter (dir, name);
    if (!*name)
        return false;
    if (fstatat (dir, name, &st, 0) != 0)
        why = errno == ENOENT || errno == ENOTDIR       ? "which does not exist here"
              : errno == EACCES                         ? "which the account may not reach"
              : errno == ELOOP || errno == ENAMETOOLONG ? "which is no path to a program"
                                                        : NULL;
    else if (!S_ISREG (st.st_mode))
        why = S_ISDIR (st.st_mode) ? "which is a directory" : "which is no program";
    else if (faccessat (dir, name, X_OK, AT_EACCESS) != 0)
        why = "which the account may not execute";
    if (!why)
        return false; /* it is there: its own loader is not, or the script lies where nothing may
                         run */
    text_printf (out, MISTAKE_TEXT_MAX, "the script's first line names %.150s, %s", name, why);
    return true;
}

bool mistake_of_exec (int dir, int number, char out[MISTAKE_TEXT_MAX])
{
    const char *text = NULL;
    switch (number) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case ELOOP:
    case ENAMETOOLONG:
        return mistake_of_interpreter (dir, out);
    case ENOEXEC:
        text = "the script is a program for another kind of machine, or a damaged one";
        break;
    case ELIBBAD:
        text = "the script's interpreter is itself no program that this machine can run";
        break;
    case E2BIG:
        text = "the script's arguments and environment together are too long for this machine";
        break;
    default:
        return false;
    }
    snprintf (out, MISTAKE_TEXT_MAX, "%s", text);
    return true;
}

bool mistake_of_directory (int number, const char *path, char out[MISTAKE_TEXT_MAX])
{
    const char *why = number == ENOENT    ? "does not exist at this site"
                      : number == EACCES  ? "may not be entered by the account"
                      : number == ENOTDIR ? "is no directory at this site"
                      : number == ELOOP || number == ENAMETOOLONG ? "is no path to a directory"
                                                                  : NULL;
    if (why)
        text_printf (out, MISTAKE_TEXT_MAX, "the directory where it was to start, %.120s, %s", path,
                     why);
    return why != NULL;
}

bool mistake_of_shell (int dir, int exit_code, char out[MISTAKE_TEXT_MAX])
{
    struct stat st;
    if (exit_code == 126 && fstatat (dir, ".chdir", &st, AT_SYMLINK_NOFOLLOW) == 0) {
        text_printf (
            out, MISTAKE_TEXT_MAX,
            "the directory where it was to start (--chdir) does not exist at this site, or "
            "may not be entered by the account");
        return true;
    }
    return mistake_of_exec (dir, exit_code == 126 ? EACCES : ENOENT, out);
}

bool mistake_of_output (int number, const char *name, char out[MISTAKE_TEXT_MAX])
{
    const char *why = number == EISDIR  ? "a directory"
                      : number == ELOOP ? "a link"
                      : number == ENXIO ? "a pipe that nobody reads"
                                        : NULL;
    if (!why)
        return false;
    text_printf (out, MISTAKE_TEXT_MAX,
                 "its output file %.100s is %s among the files that it brought", name, why);
    return true;
}
