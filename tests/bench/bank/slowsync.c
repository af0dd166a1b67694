/* slowsync: preloaded into a PostgreSQL that bench_bank measures, each fsync and fdatasync first waits SLOW_SYNC_US
 * microseconds, so that a disk that syncs at once stands for one that takes its time. What is synced is synced all the
 * same. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int after_wait (const char *name, int fd)
{
    const char *text = getenv ("SLOW_SYNC_US");
    long us = text ? atol (text) : 0;
    struct timespec wait = {us / 1000000, us % 1000000 * 1000};
    int (*sync) (int) = (int (*) (int)) (uintptr_t)dlsym (RTLD_NEXT, name);
    if (us > 0)
        nanosleep (&wait, NULL);
    return sync (fd);
}

int fsync (int fd)
{
    return after_wait ("fsync", fd);
}

int fdatasync (int fd)
{
    return after_wait ("fdatasync", fd);
}
