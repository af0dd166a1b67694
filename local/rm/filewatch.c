/* filewatch: one inotify instance, and who waits for what in it. Resource managers and streams of output register here; it
 * calls nobody, it only makes their events active, so that an owner may go while changes are being told. */
#include "local/rm/filewatch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <uthash.h>
#include <utlist.h>

/* The kernel has one watch for each file, whoever asks for it. */
struct filewatch_file {
    int wd;
    struct filewatch_one *ones;
    UT_hash_handle hh;
};

struct filewatch_one {
    struct filewatch *owner;
    struct filewatch_file *file;
    struct event *wake;
    struct filewatch_one *prev, *next;
};

struct filewatch {
    struct event_base *base;
    int fd;
    struct event *readable; /* while fd is there */
    struct filewatch_file *files;
};

struct filewatch *filewatch_create (struct event_base *base)
{
    struct filewatch *watch = calloc (1, sizeof *watch);
    assert (watch);
    watch->base = base;
    watch->fd = -1;
    return watch;
}

void filewatch_destroy (struct filewatch *watch)
{
    if (!watch)
        return;
    assert (!watch->files);
    if (watch->readable)
        event_free (watch->readable);
    if (watch->fd >= 0)
        close (watch->fd);
    free (watch);
}

static void filewatch_wake (struct filewatch_file *file)
{
    struct filewatch_one *one;
    DL_FOREACH (file->ones, one)
        event_active (one->wake, EV_TIMEOUT, 0);
}

static void filewatch_changed (struct filewatch *watch, const struct inotify_event *e)
{
    struct filewatch_file *file, *next;
    if (e->mask & IN_Q_OVERFLOW) {
        HASH_ITER (hh, watch->files, file, next)
            filewatch_wake (file);
        return;
    }
    HASH_FIND_INT (watch->files, &e->wd, file);
    if (file)
        filewatch_wake (file);
}

static void on_readable (evutil_socket_t fd, short what, void *arg)
{
    char buf[16384];
    struct inotify_event e;
    ssize_t n;
    (void)what;
    while ((n = read (fd, buf, sizeof buf)) > 0)
        for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof e + e.len)) {
            memcpy (&e, buf + at, sizeof e);
            filewatch_changed (arg, &e);
        }
}

int filewatch_open (struct filewatch *watch, struct err *err)
{
    if (watch->readable)
        return 0;
    watch->fd = inotify_init1 (IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0)
        return err_set (err, ERR_IO, "changes of files cannot be watched: inotify: %s",
                        strerror (errno));
    watch->readable = event_new (watch->base, watch->fd, EV_READ | EV_PERSIST, on_readable, watch);
    assert (watch->readable);
    event_add (watch->readable, NULL);
    return 0;
}

int filewatch_add (struct filewatch *watch, const char *path, uint32_t mask, struct event *wake,
                   struct filewatch_one **out, struct err *err)
{
    struct filewatch_file *file;
    int rc = filewatch_open (watch, err);
    if (rc != 0)
        return rc;
    int wd = inotify_add_watch (watch->fd, path, mask | IN_MASK_ADD);
    if (wd < 0)
        return err_set (err, ERR_IO, "inotify of %.200s: %s", path, strerror (errno));
    HASH_FIND_INT (watch->files, &wd, file);
    if (!file) {
        file = calloc (1, sizeof *file);
        assert (file);
        file->wd = wd;
        HASH_ADD_INT (watch->files, wd, file);
    }
    struct filewatch_one *one = calloc (1, sizeof *one);
    assert (one);
    *one = (struct filewatch_one){.owner = watch, .file = file, .wake = wake};
    DL_APPEND (file->ones, one);
    *out = one;
    return 0;
}

void filewatch_remove (struct filewatch_one *one)
{
    if (!one)
        return;
    struct filewatch *watch = one->owner;
    struct filewatch_file *file = one->file;
    DL_DELETE (file->ones, one);
    free (one);
    if (file->ones)
        return;
    inotify_rm_watch (watch->fd, file->wd); /* refused when the file is gone */
    HASH_DEL (watch->files, file);
    free (file);
}
