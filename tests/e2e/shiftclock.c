/* Preloaded into one daemon: its wall clock is ahead of the machine's by as many microseconds as the file that
 * NUI_TEST_CLOCK names has, changed at any moment. Monotonic clocks are as they are. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t shift_us (void)
{
    static const volatile int64_t *at;
    const char *path = getenv ("NUI_TEST_CLOCK");
    if (!at && path) {
        int fd = open (path, O_RDONLY | O_CLOEXEC);
        void *map = fd < 0 ? MAP_FAILED : mmap (NULL, sizeof *at, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0)
            close (fd);
        if (map != MAP_FAILED)
            at = map;
    }
    return at ? *at : 0;
}

int clock_gettime (clockid_t id, struct timespec *ts)
{
    static int (*real) (clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym (RTLD_NEXT, "clock_gettime");
    int rc = real (id, ts);
    if (rc == 0 && id == CLOCK_REALTIME) {
        int64_t us = (int64_t)ts->tv_sec * 1000000 + ts->tv_nsec / 1000 + shift_us ();
        ts->tv_sec = us / 1000000;
        ts->tv_nsec = us % 1000000 * 1000;
    }
    return rc;
}

int gettimeofday (struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    int rc = clock_gettime (CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return rc;
}

time_t time (time_t *out)
{
    struct timespec ts;
    clock_gettime (CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
