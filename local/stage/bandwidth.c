/* bandwidth: a table of host and direction with decaying sums, and its file. run.c notes what
 * moved, estimate.c asks. A file that is lost or damaged must never stop staging: estimates
 * begin again with the configured bandwidth. */
#include "local/stage/bandwidth.h"

#include <assert.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double memory_s = 60, prior_s = 1;
static const char file_name[] = "bandwidth", beside[] = "bandwidth.new";

static void key_make (const char *host, enum stage_direction direction,
                      char out[sizeof ((struct pair *)0)->key])
{
    snprintf (out, sizeof ((struct pair *)0)->key, "%s %s", direction == STAGE_IN ? "in" : "out",
              host);
}

const struct pair *bandwidth_find (const struct bandwidth *b, const char *host,
                                   enum stage_direction direction)
{
    char key[sizeof ((struct pair *)0)->key];
    struct pair *p;
    key_make (host, direction, key);
    HASH_FIND_STR (b->pair, key, p);
    return p;
}

static void room_make (struct bandwidth *b)
{
    struct pair *p = b->pair; /* the oldest first */
    while (p && p->active > 0)
        p = p->hh.next;
    if (!p || HASH_COUNT (b->pair) < BANDWIDTH_HOSTS_MAX)
        return;
    HASH_DEL (b->pair, p);
    free (p);
}

struct pair *bandwidth_pair (struct bandwidth *b, const char *host, enum stage_direction direction)
{
    struct pair *p = (struct pair *)bandwidth_find (b, host, direction);
    if (p)
        return p;
    room_make (b);
    p = calloc (1, sizeof *p);
    assert (p);
    key_make (host, direction, p->key);
    HASH_ADD_STR (b->pair, key, p);
    return p;
}

void bandwidth_enter (struct pair *p, duration_us now)
{
    if (p->active++ == 0) {
        p->since = now;
        p->moved = 0;
    }
}

void bandwidth_sample (struct bandwidth *b, struct pair *p, duration_us now)
{
    double seconds = (double)(now - p->since) / (double)US_PER_S;
    if (p->moved > 0 && seconds > 0) {
        double kept = exp (-seconds / memory_s);
        p->bytes = p->bytes * kept + (double)p->moved;
        p->seconds = p->seconds * kept + seconds;
        b->changed = true;
    }
    p->moved = 0;
    p->since = now;
}

void bandwidth_leave (struct bandwidth *b, struct pair *p, duration_us now)
{
    bandwidth_sample (b, p, now);
    p->active--;
}

int64_t bandwidth_rate (const struct pair *p, int64_t otherwise)
{
    double rate =
        p ? (p->bytes + prior_s * (double)otherwise) / (p->seconds + prior_s) : (double)otherwise;
    return rate < 1 ? 1 : (int64_t)rate;
}

/* --- on disk ------------------------------------------------------------------------------- */

void bandwidth_load (struct bandwidth *b, int dir)
{
    int fd = openat (dir, file_name, O_RDONLY | O_CLOEXEC);
    FILE *f = fd >= 0 ? fdopen (fd, "r") : NULL;
    char line[512], way[8], host[STAGE_HOST_MAX];
    double bytes, seconds;
    while (f && fgets (line, sizeof line, f)) {
        *host = 0; /* of the site's own file systems it is "" */
        if (sscanf (line, "%lf %lf %7s %255s", &bytes, &seconds, way, host) < 3 ||
            !isfinite (bytes) || !isfinite (seconds) || bytes < 0 || seconds < 0)
            continue;
        struct pair *p = bandwidth_pair (b, host, strcmp (way, "in") == 0 ? STAGE_IN : STAGE_OUT);
        p->bytes = bytes;
        p->seconds = seconds;
    }
    if (f)
        fclose (f);
}

void bandwidth_save (struct bandwidth *b, int dir)
{
    if (!b->changed)
        return;
    int fd = openat (dir, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen (fd, "w") : NULL;
    if (!f)
        return;
    struct pair *p, *next;
    HASH_ITER (hh, b->pair, p, next)
        if (p->seconds > 0)
            fprintf (f, "%.0f %.6f %s\n", p->bytes, p->seconds, p->key);
    bool written = !ferror (f);
    if (fclose (f) == 0 && written && renameat (dir, beside, dir, file_name) == 0)
        b->changed = false;
}

void bandwidth_free (struct bandwidth *b)
{
    struct pair *p, *next;
    HASH_ITER (hh, b->pair, p, next) {
        HASH_DEL (b->pair, p);
        free (p);
    }
}
