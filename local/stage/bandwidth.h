/* bandwidth: what has been measured between this site and each host, by direction.
 *
 * Bytes and the seconds in which they moved, both decaying with a minute of such seconds, beside
 * one second of the configured bandwidth: little is said by a small file, and much by a long one.
 * Kept in a file that is written anew beside itself; losing the last of it does no harm. Pure but
 * for load and save. */
#ifndef NUI_LOCAL_STAGE_BANDWIDTH_H
#define NUI_LOCAL_STAGE_BANDWIDTH_H

#include <stdbool.h>
#include <uthash.h>

#include "local/stage/stage.h"

enum { BANDWIDTH_HOSTS_MAX = 10000 };

struct pair {
    char key[STAGE_HOST_MAX + 4]; /* "in HOST", "out HOST" */
    double bytes, seconds;
    uint32_t active;   /* transfers */
    int64_t moved;     /* bytes since `since` */
    duration_us since; /* monotonic */
    int64_t queued;    /* scratch of the estimates */
    UT_hash_handle hh;
};

struct bandwidth {
    struct pair *pair;
    bool changed;
};

/* Found, or made; past BANDWIDTH_HOSTS_MAX one that nobody uses makes room. */
struct pair *bandwidth_pair (struct bandwidth *b, const char *host, enum stage_direction direction);
const struct pair *bandwidth_find (const struct bandwidth *b, const char *host,
                                   enum stage_direction direction);
/* A transfer begins, and ends, with the pair; now: monotonic. */
void bandwidth_enter (struct pair *pair, duration_us now);
void bandwidth_leave (struct bandwidth *b, struct pair *pair, duration_us now);
/* Takes what has moved since the last time into the measure. */
void bandwidth_sample (struct bandwidth *b, struct pair *pair, duration_us now);
/* bytes/s; pair NULL: unknown. */
int64_t bandwidth_rate (const struct pair *pair, int64_t otherwise);

void bandwidth_load (struct bandwidth *b, int dir);
void bandwidth_save (struct bandwidth *b, int dir);
void bandwidth_free (struct bandwidth *b);

#endif
