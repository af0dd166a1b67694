/* clock: the only place of the library that asks the system for the time or for random bytes.
 * Daemons and commands call it and hand the moment on; the pure cores must never include it. */
#include "proto/base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static int64_t read_us (clockid_t id)
{
    struct timespec ts;
    int rc = clock_gettime (id, &ts);
    assert (rc == 0);
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

time_us clock_now_us (void)
{
    return read_us (CLOCK_REALTIME);
}

duration_us clock_monotonic_us (void)
{
    return read_us (CLOCK_BOOTTIME);
}

void random_bytes (void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        ssize_t n = getrandom (at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            abort ();
        at += n;
        len -= (size_t)n;
    }
}

void uuid_make (struct uuid *out)
{
    random_bytes (out->b, sizeof out->b);
    out->b[6] = (uint8_t)((out->b[6] & 0x0f) | 0x40);
    out->b[8] = (uint8_t)((out->b[8] & 0x3f) | 0x80);
}
