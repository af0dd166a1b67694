/* disk: a thread per task, with descriptors of its own, that wakes the loop through an eventfd
 * when it is done. run.c calls it. The thread must touch nothing of the engine's, and the loop
 * never waits for it. */
#include "local/stage/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

struct disk {
    struct disk_order order;
    int wake; /* eventfd */
    atomic_int_least64_t done;
    atomic_bool stop;
    atomic_int owners; /* the loop and the thread */
    int error;         /* the thread's until it woke the loop */
    struct event *event;
    disk_fn fn;
    void *arg;
};

static void let_go (struct disk *d)
{
    if (atomic_fetch_sub (&d->owners, 1) > 1)
        return;
    if (d->order.from >= 0)
        close (d->order.from);
    if (d->order.to >= 0)
        close (d->order.to);
    close (d->wake);
    EVP_MD_CTX_free (d->order.hash);
    free (d);
}

static int write_all (int fd, const char *bytes, size_t len, int64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite (fd, bytes, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        bytes += n;
        len -= (size_t)n;
        at += n;
    }
    return 0;
}

static int run (struct disk *d, char *block)
{
    const struct disk_order *o = &d->order;
    int64_t at = o->begin;
    while (o->from >= 0 && (o->end < 0 || at < o->end) && !atomic_load (&d->stop)) {
        size_t want = o->end < 0 || o->end - at > BLOCK ? BLOCK : (size_t)(o->end - at);
        ssize_t n = pread (o->from, block, want, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0 && o->end >= 0)
            return ESTALE;
        if (n == 0)
            break;
        if (o->hash)
            EVP_DigestUpdate (o->hash, block, (size_t)n);
        int rc = o->to >= 0 ? write_all (o->to, block, (size_t)n, at) : 0;
        if (rc != 0)
            return rc;
        at += n;
        atomic_store (&d->done, at);
    }
    return o->sync && !atomic_load (&d->stop) && fsync (o->to) != 0 ? errno : 0;
}

static void *work (void *arg)
{
    struct disk *d = arg;
    char *block = malloc (BLOCK);
    uint64_t one = 1;
    d->error = block ? run (d, block) : ENOMEM;
    free (block);
    ssize_t n = write (d->wake, &one, sizeof one);
    assert (n == sizeof one);
    let_go (d);
    return NULL;
}

static void on_wake (evutil_socket_t fd, short what, void *arg)
{
    struct disk *d = arg;
    uint64_t one;
    (void)what;
    if (read (fd, &one, sizeof one) != sizeof one)
        return;
    struct disk_result result = {d->error, atomic_load (&d->done), d->order.hash};
    d->order.hash = NULL; /* the thread is through with it */
    disk_fn fn = d->fn;
    void *fn_arg = d->arg;
    disk_drop (d);
    fn (fn_arg, &result);
}

/* Signals are the loop's. */
static int thread_start (struct disk *d)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    int rc = pthread_create (&thread, NULL, work, d);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pthread_detach (thread);
    return rc;
}

static int dup_of (int fd)
{
    return fd < 0 ? -1 : fcntl (fd, F_DUPFD_CLOEXEC, 0);
}

struct disk *disk_begin (struct event_base *base, const struct disk_order *order, disk_fn fn,
                         void *arg, struct err *err)
{
    struct disk *d = calloc (1, sizeof *d);
    assert (d);
    d->order = *order;
    d->order.from = dup_of (order->from);
    d->order.to = dup_of (order->to);
    d->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->fn = fn;
    d->arg = arg;
    atomic_init (&d->done, order->begin);
    atomic_init (&d->stop, false);
    atomic_init (&d->owners, 2);
    d->event = event_new (base, d->wake, EV_READ | EV_PERSIST, on_wake, d);
    bool ready = d->wake >= 0 && d->event && (order->from < 0) == (d->order.from < 0) &&
                 (order->to < 0) == (d->order.to < 0);
    if (ready) {
        event_add (d->event, NULL);
        errno = thread_start (d);
        ready = errno == 0;
    }
    if (ready)
        return d;
    err_set (err, ERR_IO, "a thread for a file: %s", strerror (errno));
    let_go (d); /* there is no thread */
    disk_drop (d);
    return NULL;
}

int64_t disk_done (const struct disk *d)
{
    return atomic_load (&d->done);
}

void disk_drop (struct disk *d)
{
    if (!d)
        return;
    if (d->event)
        event_free (d->event);
    atomic_store (&d->stop, true);
    let_go (d);
}
