/* userfile: walks a path folder by folder with openat, as the job's account. The transfers call
 * it for every file of a user's. No other account's rights and no link may ever lead out of the
 * folder, and root's own are given up during each call. */
#include "local/stage/userfile.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/job/stagespec.h"

enum { GROUPS_MAX = 65536 };

int userfile_account_get (const char *name, struct userfile_account *out, struct err *err)
{
    struct passwd pw, *found = NULL;
    char buf[16384];
    *out = (struct userfile_account){.uid = (uid_t)-1};
    int rc = getpwnam_r (name, &pw, buf, sizeof buf, &found);
    if (rc != 0)
        return err_set (err, ERR_IO, "account %s: %s", name, strerror (rc));
    if (!found)
        return err_set (err, ERR_DENIED, "account %s does not exist on this cluster", name);
    if (pw.pw_uid == 0 && geteuid () == 0)
        return err_set (err, ERR_DENIED, "account %s is root: no job may run as root", name);
    if (geteuid () != 0 && pw.pw_uid != geteuid ())
        return err_set (err, ERR_DENIED, "files of account %s need a daemon that runs as root",
                        name);
    int count = 64;
    gid_t *group = calloc ((size_t)count, sizeof *group);
    assert (group);
    while (getgrouplist (name, pw.pw_gid, group, &count) < 0 && count <= GROUPS_MAX) {
        group = reallocarray (group, (size_t)count, sizeof *group);
        assert (group);
    }
    *out = (struct userfile_account){pw.pw_uid, pw.pw_gid, group, count};
    return 0;
}

void userfile_account_free (struct userfile_account *account)
{
    free (account->group);
    account->group = NULL;
}

/* --- as another, for file systems ---------------------------------------------------------- */

struct back {
    bool changed;
    int group_count;
    gid_t group[GROUPS_MAX];
};

/* libc's setgroups would change all threads. */
static void groups_set (int count, const gid_t *group)
{
    long rc = syscall (SYS_setgroups, (long)count, group);
    assert (rc == 0);
}

static struct back *become (const struct userfile_account *a)
{
    if (geteuid () != 0)
        return NULL;
    struct back *back = malloc (sizeof *back);
    assert (back);
    back->group_count = getgroups (GROUPS_MAX, back->group);
    assert (back->group_count >= 0);
    groups_set (a->group_count, a->group);
    setfsgid (a->gid);
    setfsuid (a->uid); /* takes root's rights on files away, too */
    assert ((uid_t)setfsuid ((uid_t)-1) == a->uid && (gid_t)setfsgid ((gid_t)-1) == a->gid);
    return back;
}

/* Keeps errno. */
static void come_back (struct back *back)
{
    int kept = errno;
    if (!back)
        return;
    setfsuid (0);
    setfsgid (getegid ());
    assert (setfsuid ((uid_t)-1) == 0);
    groups_set (back->group_count, back->group);
    free (back);
    errno = kept;
}

/* --- walking ------------------------------------------------------------------------------- */

/* The folder of the last name of path, and that name; make: folders on the way. */
static int walk (int dir, const char *path, bool make, char last[256])
{
    int at = openat (dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0) {
        size_t len = strcspn (path, "/");
        if (len == 0 || len > 255) {
            close (at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy (last, path, len);
        last[len] = 0;
        path += len;
        if (!*path)
            return at;
        path++;
        if (make && mkdirat (at, last, 0755) != 0 && errno != EEXIST) {
            int kept = errno;
            close (at);
            errno = kept;
            return -1;
        }
        int next = openat (at, last, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), kept = errno;
        close (at);
        errno = kept;
        at = next;
    }
    return -1;
}

static int fail (const char *path, int number, struct err *err)
{
    bool link = number == ELOOP || number == ENOTDIR;
    int code = number == ENOENT                              ? ERR_NOT_FOUND
               : link || number == EACCES || number == EPERM ? ERR_DENIED
               : number == ENOSPC || number == EDQUOT        ? ERR_LIMIT
                                                             : ERR_IO;
    return err_set (err, code, "file %s: %s", path,
                    link ? "a folder of it is a symbolic link, which is not followed, or no folder"
                         : strerror (number));
}

int userfile_read (const struct userfile_account *a, int dir, const char *path, bool own,
                   int *fd_out, struct stat *st, struct err *err)
{
    char name[256];
    struct back *back = become (a);
    int folder = walk (dir, path, false, name);
    int fd = folder < 0
                 ? -1
                 : openat (folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    come_back (back);
    int number = errno;
    if (folder >= 0)
        close (folder);
    if (fd < 0)
        return fail (path, number, err);
    if (fstat (fd, st) != 0 || !S_ISREG (st->st_mode) || (own && st->st_uid != a->uid)) {
        close (fd);
        return err_set (err, ERR_DENIED, "file %s: %s", path,
                        S_ISREG (st->st_mode) ? "it belongs to another account"
                                              : "it is no plain file");
    }
    *fd_out = fd;
    return 0;
}

/* --- what there is --------------------------------------------------------------------------- */

struct userfile_walk {
    const struct userfile_account *account;
    DIR *folder[USERFILE_DEPTH + 1]; /* from the first one down to where it is */
    size_t len[USERFILE_DEPTH + 1];  /* of the path of each */
    unsigned depth;                  /* of the last one; 0: all has been seen */
    bool left;
    char path[STAGE_PATH_MAX];
};

/* Takes fd over; one that could not be opened is passed over. */
static void walk_down (struct userfile_walk *w, int fd, size_t len)
{
    DIR *folder = fd >= 0 ? fdopendir (fd) : NULL;
    if (!folder) {
        if (fd >= 0)
            close (fd);
        return;
    }
    w->folder[w->depth] = folder;
    w->len[w->depth++] = len;
}

/* False: fn has enough. */
static bool walk_entry (struct userfile_walk *w, const char *name, userfile_fn fn, void *arg)
{
    int folder = dirfd (w->folder[w->depth - 1]);
    size_t len = w->len[w->depth - 1], n = strlen (name), slash = len > 0;
    struct stat st;
    if (strcmp (name, ".") == 0 || strcmp (name, "..") == 0 ||
        fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISREG (st.st_mode) && !S_ISDIR (st.st_mode)))
        return true;
    if (len + slash + n >= sizeof w->path || (S_ISDIR (st.st_mode) && w->depth > USERFILE_DEPTH)) {
        w->left = true;
        return true;
    }
    if (slash)
        w->path[len] = '/';
    memcpy (w->path + len + slash, name, n + 1);
    if (S_ISREG (st.st_mode))
        return fn (arg, w->path, &st);
    walk_down (w, openat (folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
               len + slash + n);
    return true;
}

struct userfile_walk *userfile_walk_begin (const struct userfile_account *a, int dir,
                                           struct err *err)
{
    struct userfile_walk *w = calloc (1, sizeof *w);
    assert (w);
    w->account = a;
    struct back *back = become (a);
    int fd = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), number = errno;
    walk_down (w, fd, 0);
    come_back (back);
    if (w->depth > 0)
        return w;
    free (w);
    err_set (err, ERR_IO, "the job's directory: %s", strerror (number));
    return NULL;
}

bool userfile_walk_some (struct userfile_walk *w, uint32_t entries, userfile_fn fn, void *arg)
{
    struct back *back = become (w->account);
    for (uint32_t i = 0; i < entries && w->depth > 0; i++) {
        struct dirent *one = readdir (w->folder[w->depth - 1]);
        if (!one) {
            closedir (w->folder[--w->depth]);
        } else if (!walk_entry (w, one->d_name, fn, arg)) {
            w->left = true;
            while (w->depth > 0)
                closedir (w->folder[--w->depth]);
        }
    }
    come_back (back);
    return w->depth > 0;
}

bool userfile_walk_left (const struct userfile_walk *w)
{
    return w->left;
}

void userfile_walk_end (struct userfile_walk *w)
{
    while (w && w->depth > 0)
        closedir (w->folder[--w->depth]);
    free (w);
}

static int part_open (const struct userfile_account *a, struct userfile *p)
{
    enum { FLAGS = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };
    int fd = openat (p->folder, p->part, FLAGS, 0644);
    if (fd >= 0 && fstat (fd, &p->st) == 0 && S_ISREG (p->st.st_mode) && p->st.st_nlink == 1 &&
        p->st.st_uid == a->uid)
        return fd;
    if (fd >= 0)
        close (fd);
    else if (errno == ENOSPC || errno == EDQUOT)
        return -1;
    if (unlinkat (p->folder, p->part, 0) != 0 && errno != ENOENT)
        return -1;
    fd = openat (p->folder, p->part, FLAGS | O_EXCL, 0644);
    if (fd >= 0 && fstat (fd, &p->st) != 0) {
        close (fd);
        return -1;
    }
    return fd;
}

int userfile_part_open (const struct userfile_account *a, int dir, const char *path,
                        struct userfile *out, struct err *err)
{
    *out = (struct userfile){.folder = -1, .fd = -1};
    struct back *back = become (a);
    out->folder = walk (dir, path, true, out->name);
    if (out->folder >= 0) {
        int len = snprintf (out->part, sizeof out->part, "%.250s.part", out->name);
        assert (len > 0);
        out->fd = part_open (a, out);
    }
    come_back (back);
    if (out->fd >= 0)
        return 0;
    int number = errno;
    userfile_close (out);
    return fail (path, number, err);
}

int userfile_part_executable (const struct userfile_account *a, struct userfile *p, struct err *err)
{
    struct back *back = become (a);
    int rc = fchmod (p->fd, 0755), number = errno;
    come_back (back);
    return rc == 0 ? 0 : fail (p->name, number, err);
}

int userfile_part_finish (const struct userfile_account *a, struct userfile *p, struct err *err)
{
    struct back *back = become (a);
    int rc = renameat (p->folder, p->part, p->folder, p->name), number = errno;
    int folder = rc == 0 ? openat (p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    come_back (back);
    if (folder >= 0) {
        rc = fsync (folder);
        number = errno;
        close (folder);
    }
    return rc == 0 ? 0 : fail (p->name, number, err);
}

void userfile_part_remove (const struct userfile_account *a, struct userfile *p)
{
    struct back *back = become (a);
    unlinkat (p->folder, p->part, 0);
    come_back (back);
}

void userfile_close (struct userfile *p)
{
    if (p->fd >= 0)
        close (p->fd);
    if (p->folder >= 0)
        close (p->folder);
    p->fd = p->folder = -1;
}

bool userfile_is (const struct userfile *p, ino_t inode, off_t size)
{
    struct stat st;
    return fstatat (p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode) &&
           st.st_ino == inode && st.st_size == size;
}
