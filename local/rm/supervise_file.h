/* supervise_file: the small files that rm_embedded and nui-supervise exchange in a job's directory.
 * Header only, so that the supervisor links nothing but libc.
 *
 * spec:    NUL-terminated "key=value" strings (values may hold anything else)
 * started: lines  pid, start_us, ticks (of /proc/PID/stat, so that a pid is never mistaken)
 * status:  lines  end, exit_code, start_us, end_us, cpu_us (of all processes; absent: not known), text */
#ifndef NUI_LOCAL_RM_SUPERVISE_FILE_H
#define NUI_LOCAL_RM_SUPERVISE_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUPERVISE_SIGNAL_OFFSET = 1 }; /* SIGRTMIN + this: deliver si_int to the job's group */

/* Room for a file of at most FILE_RESERVED bytes that file_write_durable will write, so that it can be on a full disk,
 * too. */
enum { FILE_RESERVED = 1024 };
static inline int file_reserve (int dirfd, const char *name)
{
    char tmp[80];
    snprintf (tmp, sizeof tmp, ".%s.tmp", name);
    int fd = openat (dirfd, tmp, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    int error = fd < 0 ? errno : posix_fallocate (fd, 0, FILE_RESERVED);
    if (fd >= 0 && error == 0 && fsync (fd) != 0)
        error = errno;
    if (fd >= 0)
        close (fd);
    errno = error;
    return error == 0 ? 0 : -1;
}

/* Writes name in dirfd so that after a crash either all of it or nothing is there. */
static inline int file_write_durable (int dirfd, const char *name, const void *bytes, size_t len,
                                      mode_t mode)
{
    char tmp[80];
    snprintf (tmp, sizeof tmp, ".%s.tmp", name);
    int fd = openat (dirfd, tmp, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                     mode); /* not O_TRUNC: it may be reserved */
    if (fd < 0)
        return -1;
    const char *p = bytes;
    off_t all = (off_t)len;
    while (len > 0) {
        ssize_t n = write (fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            goto fail;
        p += n;
        len -= (size_t)n;
    }
    if (ftruncate (fd, all) != 0 || fsync (fd) != 0)
        goto fail;
    if (close (fd) != 0)
        return -1;
    if (renameat (dirfd, tmp, dirfd, name) != 0)
        return -1;
    return fsync (dirfd);
fail:;
    int saved = errno;
    close (fd);
    errno = saved;
    return -1;
}

/* Whole file, NUL terminated, malloc'ed; NULL with errno. At most 16 MiB. */
static inline char *file_read_all (int dirfd, const char *name, size_t *len_out)
{
    int fd = openat (dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    size_t cap = 4096, len = 0;
    char *buf = malloc (cap + 1);
    while (buf) {
        ssize_t n = read (fd, buf + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || (n > 0 && len + (size_t)n > ((size_t)16 << 20))) {
            free (buf);
            buf = NULL;
            break;
        }
        if (n == 0)
            break;
        len += (size_t)n;
        if (len == cap) {
            char *more = realloc (buf, cap * 2 + 1);
            if (!more)
                free (buf);
            buf = more;
            cap *= 2;
        }
    }
    close (fd);
    if (buf) {
        buf[len] = 0;
        *len_out = len;
    }
    return buf;
}

/* Value of `key=` in NUL-separated strings, or NULL. */
static inline const char *spec_get (const char *spec, size_t len, const char *key)
{
    size_t key_len = strlen (key);
    for (const char *p = spec; p < spec + len; p += strlen (p) + 1)
        if (strncmp (p, key, key_len) == 0 && p[key_len] == '=')
            return p + key_len + 1;
    return NULL;
}

/* Value of `key=` on a line of its own; copied into out (cut to fit). False when absent. */
static inline int lines_get (const char *text, const char *key, char *out, size_t cap)
{
    size_t key_len = strlen (key);
    for (const char *p = text; p && *p; p = strchr (p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp (p, key, key_len) != 0 || p[key_len] != '=')
            continue;
        const char *v = p + key_len + 1;
        size_t n = strcspn (v, "\n");
        if (n >= cap)
            n = cap - 1;
        memcpy (out, v, n);
        out[n] = 0;
        return 1;
    }
    return 0;
}

static inline long long lines_get_int_or (const char *text, const char *key, long long otherwise)
{
    char buf[32];
    return lines_get (text, key, buf, sizeof buf) ? strtoll (buf, NULL, 10) : otherwise;
}

static inline long long lines_get_int (const char *text, const char *key)
{
    return lines_get_int_or (text, key, 0);
}

/* Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat); 0: no such. */
static inline unsigned long long process_ticks (long pid, long *session_out, long *group_out)
{
    char path[64], buf[1024];
    snprintf (path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read (fd, buf, sizeof buf - 1);
    close (fd);
    if (n <= 0)
        return 0;
    buf[n] = 0;
    char *p = strrchr (buf, ')'); /* the command may hold anything, also blanks and brackets */
    long ppid, pgrp, session;
    char state;
    unsigned long long ticks;
    if (!p || sscanf (p + 1,
                      " %c %ld %ld %ld %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                      "%*d %*d %llu",
                      &state, &ppid, &pgrp, &session, &ticks) != 5)
        return 0;
    if (session_out)
        *session_out = session;
    if (group_out)
        *group_out = pgrp;
    return ticks;
}

#endif
