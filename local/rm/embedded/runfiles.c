/* runfiles: lists, reads and writes the files of a run's working directory, for nui-local that sends a job to another host,
 * and for nui-node that has it. */
#include "local/rm/embedded/runfiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/mem.h"

enum { PATH_BYTES_MAX = 4096 };

static int runfiles_open_below (int dir, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    return (int)syscall (SYS_openat2, dir, path, &how, sizeof how);
}

/* --- the list --------------------------------------------------------------------------------- */

struct walk {
    struct runfiles *out;
    const struct timespec *since;
    char path[PATH_BYTES_MAX];
};

static bool runfiles_later (const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static bool runfiles_wanted (const struct walk *w, const struct stat *st)
{
    if (S_ISDIR (st->st_mode))
        return true;
    return (S_ISREG (st->st_mode) || S_ISLNK (st->st_mode)) &&
           (!w->since || runfiles_later (&st->st_ctim, w->since));
}

static int runfiles_add (struct walk *w, int dir, const char *name, const struct stat *st,
                         struct err *err)
{
    char target[PATH_BYTES_MAX];
    ssize_t n = 0;
    if (w->out->count == RUNFILES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d files", RUNFILES_MAX);
    if (S_ISLNK (st->st_mode)) {
        n = readlinkat (dir, name, target, sizeof target - 1);
        if (n < 0)
            return 0; /* gone by now */
        target[n] = 0;
    }
    w->out->file = mem_resize (w->out->file, (w->out->count + 1) * sizeof *w->out->file);
    w->out->file[w->out->count++] = (struct runfile){
        .path = strdup (w->path),
        .target = S_ISLNK (st->st_mode) ? strdup (target) : NULL,
        .kind = S_ISDIR (st->st_mode)   ? RUNFILE_DIRECTORY
                : S_ISLNK (st->st_mode) ? RUNFILE_LINK
                                        : RUNFILE_PLAIN,
        .mode = st->st_mode & 0777,
        .size = S_ISREG (st->st_mode) ? st->st_size : 0,
    };
    return 0;
}

/* dir is closed. len: of the path so far, with its '/'. */
static int runfiles_walk (struct walk *w, int dir, size_t len, int depth, struct err *err)
{
    DIR *list = fdopendir (dir);
    int rc = 0;
    struct stat st;
    if (!list) {
        close (dir);
        return 0;
    }
    for (struct dirent *e; rc == 0 && (e = readdir (list));) {
        size_t more = strlen (e->d_name);
        if (strcmp (e->d_name, ".") == 0 || strcmp (e->d_name, "..") == 0 ||
            len + more + 2 > sizeof w->path)
            continue;
        memcpy (w->path + len, e->d_name, more + 1);
        if (fstatat (dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !runfiles_wanted (w, &st))
            continue;
        rc = runfiles_add (w, dir, e->d_name, &st, err);
        int below = rc == 0 && S_ISDIR (st.st_mode) && depth < RUNFILES_DEPTH_MAX
                        ? runfiles_open_below (dir, e->d_name, O_RDONLY | O_DIRECTORY)
                        : -1;
        if (below < 0)
            continue;
        w->path[len + more] = '/';
        rc = runfiles_walk (w, below, len + more + 1, depth + 1, err);
    }
    closedir (list);
    return rc;
}

int runfiles_list (int work, const struct timespec *since, struct runfiles *out, struct err *err)
{
    struct walk w = {.out = out, .since = since};
    *out = (struct runfiles){0};
    int dir = openat (work, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = dir < 0 ? err_set (err, ERR_IO, "working directory: %s", strerror (errno))
                     : runfiles_walk (&w, dir, 0, 0, err);
    if (rc != 0)
        runfiles_free (out);
    return rc;
}

void runfiles_free (struct runfiles *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        free (files->file[i].path);
        free (files->file[i].target);
    }
    free (files->file);
    *files = (struct runfiles){0};
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* What a path, or a place in a file, is at fault for is no fault of this host's. */
static int runfiles_code (int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ERR_LIMIT;
    case EXDEV: /* out of the job's directory */
    case ELOOP:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENAMETOOLONG:
    case EINVAL:
        return ERR_INVALID;
    default:
        return ERR_IO;
    }
}

int runfiles_read (int work, const char *path, int64_t offset, void *out, size_t *len_out,
                   struct err *err)
{
    struct stat st;
    int fd = runfiles_open_below (work, path, O_RDONLY);
    if (fd < 0 || fstat (fd, &st) != 0 || !S_ISREG (st.st_mode)) {
        if (fd >= 0)
            close (fd);
        return err_set (err, ERR_NOT_FOUND, "there is no plain file %.200s", path);
    }
    ssize_t n = pread (fd, out, RUNFILES_PIECE, offset);
    int error = errno;
    close (fd);
    if (n < 0)
        return err_set (err, runfiles_code (error), "%.200s: %s", path, strerror (error));
    *len_out = (size_t)n;
    return 0;
}

/* The folder it is in, open, and its name there. */
static int runfiles_parent (int work, const char *path, const char **name_out)
{
    char above[PATH_BYTES_MAX];
    const char *slash = strrchr (path, '/');
    *name_out = slash ? slash + 1 : path;
    if (strlen (path) >= sizeof above || !**name_out || strcmp (*name_out, ".") == 0 ||
        strcmp (*name_out, "..") == 0) {
        errno = EINVAL;
        return -1;
    }
    snprintf (above, sizeof above, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return runfiles_open_below (work, above, O_RDONLY | O_DIRECTORY);
}

/* A plain file of that account's which nobody else has under another name, or a new one. */
static int runfiles_open_own (int parent, const char *name, uid_t uid)
{
    struct stat st;
    int fd = openat (parent, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return openat (parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && st.st_nlink == 1 && st.st_uid == uid)
        return fd;
    close (fd);
    errno = EPERM;
    return -1;
}

static int runfiles_plain_write (int parent, const char *name, const struct runfile *file,
                                 int64_t offset, const void *bytes, size_t len, uid_t uid,
                                 gid_t gid)
{
    const char *at = bytes;
    int fd = runfiles_open_own (parent, name, uid);
    if (fd < 0)
        return -1;
    struct stat st;
    bool ok = (offset > 0 || ftruncate (fd, 0) == 0) && fstat (fd, &st) == 0;
    if (ok && st.st_size < offset) {
        errno = ESPIPE; /* a piece before this one is missing */
        ok = false;
    }
    while (ok && len > 0) {
        ssize_t n = pwrite (fd, at, len, offset);
        ok = n > 0 || (n < 0 && errno == EINTR);
        if (n > 0) {
            at += n;
            offset += n;
            len -= (size_t)n;
        }
    }
    ok = ok && (geteuid () != 0 || fchown (fd, uid, gid) == 0) &&
         fchmod (fd, file->mode & 0777) == 0 && fsync (fd) == 0;
    int saved = errno;
    close (fd);
    errno = saved;
    return ok ? 0 : -1;
}

int runfiles_write (int work, const struct runfile *file, int64_t offset, const void *bytes,
                    size_t len, uid_t uid, gid_t gid, struct err *err)
{
    const char *name;
    int parent = runfiles_parent (work, file->path, &name);
    int rc = parent < 0 ? -1 : 0;
    bool root = geteuid () == 0;
    if (rc == 0 && file->kind == RUNFILE_DIRECTORY) {
        rc = mkdirat (parent, name, file->mode & 0777);
        if (rc == 0 && root)
            rc = fchownat (parent, name, uid, gid, AT_SYMLINK_NOFOLLOW);
        else if (rc != 0 && errno == EEXIST)
            rc = 0;
    } else if (rc == 0 && file->kind == RUNFILE_LINK) {
        unlinkat (parent, name, 0);
        rc = symlinkat (file->target ? file->target : "", parent, name);
        if (rc == 0 && root)
            rc = fchownat (parent, name, uid, gid, AT_SYMLINK_NOFOLLOW);
    } else if (rc == 0) {
        rc = runfiles_plain_write (parent, name, file, offset, bytes, len, uid, gid);
    }
    int error = errno;
    if (parent >= 0)
        close (parent);
    return rc == 0
               ? 0
               : err_set (err, runfiles_code (error), "%.200s: %s", file->path, strerror (error));
}
