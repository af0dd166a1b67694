/* daemon_sys: the skeleton's dealings with the system: options, the lock on the pid file, port
 * file, limit of open files, systemd's notification. daemon.c alone calls it. The pid file is
 * never removed, as the lock on it is what counts. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/rpc/daemon_i.h"

static void print_help (const struct daemon_ops *ops)
{
    printf ("%s: %s\n\n"
            "usage: %s [--config FILE] [--check] [--foreground]%s%s%s\n"
            "  --config FILE  configuration (%s)\n"
            "  --check        read the configuration, say whether it is good, and exit\n"
            "  --foreground   stay in the foreground (it always does)\n",
            ops->program, ops->summary ? ops->summary : "", ops->program, ops->option ? " [--" : "",
            ops->option ? ops->option : "", ops->option ? " VALUE]" : "", ops->config_default);
    if (ops->option)
        printf ("  --%-6s VALUE %s\n", ops->option, ops->option_help);
    printf ("  --version      print the version and exit\n"
            "  --help         print this and exit\n");
}

static bool wrong_usage (const struct daemon_ops *ops, const char *what, const char *arg,
                         int *exit_code)
{
    static const char *const names[] = {"--config",  "--check", "--foreground",
                                        "--version", "--help",  NULL};
    const char *near = arg[0] == '-' ? conf_nearest (arg, names) : NULL;
    fprintf (stderr, "%s: %s '%s'%s%s%s (try %s --help)\n", ops->program, what, arg,
             near && strcmp (near, arg) ? ", did you mean " : "",
             near && strcmp (near, arg) ? near : "", near && strcmp (near, arg) ? "?" : "",
             ops->program);
    *exit_code = 2;
    return false;
}

/* "--mode", or "--mode=VALUE" with the value. */
static bool own_option (const struct daemon_ops *ops, const char *arg, const char **value)
{
    size_t n = ops->option ? strlen (ops->option) : 0;
    if (n == 0 || strncmp (arg, "--", 2) != 0 || strncmp (arg + 2, ops->option, n) != 0)
        return false;
    if (arg[2 + n] == '=')
        *value = arg + 3 + n;
    return arg[2 + n] == '=' || arg[2 + n] == 0;
}

bool daemon_parse_args (const struct daemon_ops *ops, int argc, char **argv,
                        struct daemon_args *args, int *exit_code)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value = NULL;
        if (strcmp (arg, "--check") == 0) {
            args->check = true;
        } else if (strncmp (arg, "--config=", 9) == 0) {
            args->config_file = arg + 9;
        } else if (strcmp (arg, "--config") == 0) {
            if (++i == argc)
                return wrong_usage (ops, "a file is missing after", arg, exit_code);
            args->config_file = argv[i];
        } else if (own_option (ops, arg, &value)) {
            if (!value && ++i < argc)
                value = argv[i];
            if (!value)
                return wrong_usage (ops, "a value is missing after", arg, exit_code);
            args->option = value;
        } else if (strcmp (arg, "--version") == 0) {
            printf ("%s %s\n", ops->program, NUI_VERSION);
            *exit_code = 0;
            return false;
        } else if (strcmp (arg, "--help") == 0) {
            print_help (ops);
            *exit_code = 0;
            return false;
        } else if (strcmp (arg, "--foreground") != 0) {
            return wrong_usage (ops, arg[0] == '-' ? "unknown option" : "unexpected argument", arg,
                                exit_code);
        }
    }
    return true;
}

bool daemon_stamp_changed (const char *path, struct daemon_stamp *stamp)
{
    struct stat st;
    if (stat (path, &st) < 0)
        return false;
    struct daemon_stamp now = {.mtime_ns =
                                   (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
                               .size = st.st_size,
                               .inode = st.st_ino};
    if (now.mtime_ns == stamp->mtime_ns && now.size == stamp->size && now.inode == stamp->inode)
        return false;
    *stamp = now;
    return true;
}

int daemon_pid_lock (const char *path, const char *program, int *fd_out, struct err *err)
{
    int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_set (err, ERR_IO, "pid file %s: %s", path, strerror (errno));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl (fd, F_SETLK, &lock) < 0) {
        int code = errno;
        close (fd);
        if (code != EACCES && code != EAGAIN)
            return err_set (err, ERR_IO, "pid file %s: %s", path, strerror (code));
        struct flock who = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        fd = open (path, O_RDWR | O_CLOEXEC);
        bool known = fd >= 0 && fcntl (fd, F_GETLK, &who) == 0 && who.l_type != F_UNLCK;
        if (fd >= 0)
            close (fd);
        return err_set (err, ERR_EXISTS, "%s runs already on this state (pid %ld holds %s)",
                        program, known ? (long)who.l_pid : -1L, path);
    }
    char text[32];
    int n = snprintf (text, sizeof text, "%ld\n", (long)getpid ());
    if (ftruncate (fd, 0) < 0 || pwrite (fd, text, (size_t)n, 0) != n) {
        err_set (err, ERR_IO, "pid file %s: %s", path, strerror (errno));
        close (fd);
        return ERR_IO;
    }
    *fd_out = fd;
    return 0;
}

/* The file stays: removing it would let two instances lock two files of one name. */
void daemon_pid_unlock (int fd)
{
    if (fd < 0)
        return;
    if (ftruncate (fd, 0) < 0) {
        /* The pid of a process that is gone stays in it; the lock is what counts. */
    }
    close (fd);
}

int daemon_write_number (const char *path, unsigned number, struct err *err)
{
    char fresh[4096], text[32];
    int n = snprintf (fresh, sizeof fresh, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof fresh)
        return err_set (err, ERR_LIMIT, "port file: the path is too long");
    int fd = open (fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return err_set (err, ERR_IO, "port file %s: %s", fresh, strerror (errno));
    n = snprintf (text, sizeof text, "%u\n", number);
    bool written = write (fd, text, (size_t)n) == n && fchmod (fd, 0644) == 0;
    int code = errno;
    if (close (fd) < 0 || !written || rename (fresh, path) < 0) {
        code = written ? errno : code;
        unlink (fresh);
        return err_set (err, ERR_IO, "port file %s: %s", path, strerror (code));
    }
    return 0;
}

void daemon_files_raise (void)
{
    struct rlimit files;
    if (getrlimit (RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit (RLIMIT_NOFILE, &files); /* else it has those it has */
    }
}

void daemon_notify (const char *state)
{
    const char *where = getenv ("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = where ? strlen (where) : 0;
    if (len < 2 || len >= sizeof to.sun_path || (where[0] != '/' && where[0] != '@'))
        return;
    memcpy (to.sun_path, where, len);
    if (where[0] == '@')
        to.sun_path[0] = '\0'; /* the abstract namespace */
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    sendto (fd, state, strlen (state), MSG_NOSIGNAL, (struct sockaddr *)&to,
            (socklen_t)(offsetof (struct sockaddr_un, sun_path) + len));
    close (fd);
}
