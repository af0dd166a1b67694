/* How long a job of some limit has its nodes, where USEMACHINESPEED counts in their speeds. */
#include <stdlib.h>

#include "local/core/state.h"

duration_us speed_length (duration_us limit, int32_t speed_ppm)
{
    __int128 length = ((__int128)limit * 1000000 + speed_ppm - 1) / speed_ppm;

    return length > TIME_US_MAX ? TIME_US_MAX : (duration_us)length;
}

duration_us length_least (const struct cluster *c, duration_us limit)
{
    return c->speed_count ? speed_length (limit, c->speed[c->speed_count - 1]) : limit;
}

static duration_us slowest_length (const struct cluster *c, duration_us limit,
                                   const struct allocation *a)
{
    int32_t slowest = INT32_MAX;

    if (c->speed_count == 0 || a->count == 0)
        return limit;
    for (uint32_t i = 0; i < a->count; i++) {
        int32_t speed = c->node[a->item[i].node.v].speed_ppm;
        slowest = speed < slowest ? speed : slowest;
    }
    return speed_length (limit, slowest);
}

duration_us length_on (const struct cluster *c, const struct job *job, const struct allocation *a)
{
    return job->spec.flags & JOB_FIRM ? job->spec.walltime_limit
                                      : slowest_length (c, job->spec.walltime_limit, a);
}

duration_us cluster_job_scaled (const struct cluster *c, struct job_id id, duration_us d)
{
    uint32_t slot = map_find (&c->map, id.v);

    if (slot == SLOT_NONE || (job_at (c, slot)->spec.flags & JOB_FIRM))
        return d;
    return slowest_length (c, d, &job_at (c, slot)->allocation);
}

static int by_speed (const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void speeds_settle (struct cluster *c)
{
    uint32_t cap = c->speed_cap, count = 0;

    c->speed_count = 0;
    if (!c->policy->use_machine_speed || c->node_count == 0)
        return;
    c->speed = mem_grow (c->speed, &cap, c->node_count, sizeof *c->speed);
    c->speed_cap = cap;
    for (uint32_t n = 0; n < c->node_count; n++)
        c->speed[n] = c->node[n].speed_ppm;
    qsort (c->speed, c->node_count, sizeof *c->speed, by_speed);
    for (uint32_t n = 0; n < c->node_count; n++) {
        if (count == 0 || c->speed[n] != c->speed[count - 1])
            c->speed[count++] = c->speed[n];
    }
    if (count > 1 || c->speed[0] != 1000000)
        c->speed_count = count;
}
