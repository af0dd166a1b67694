/* series: fills buckets as time goes on, and halves them when the run outgrows them. simrun.c
 * adds, plot.c reads. Its memory stays the same for a day and for ten years of jobs. */
#include "local/sim/series.h"
#include "proto/base/mem.h"

#include <stdlib.h>
#include <string.h>

struct bucket {
    double procs_time; /* integral over the bucket, in units * us */
    double queued_time;
    double queued_max;
};

struct series {
    time_us begin;
    duration_us width; /* of a bucket */
    time_us at;        /* the last change */
    int64_t procs;     /* since then */
    uint32_t queued;
    int started;
    struct bucket bucket[SERIES_BUCKETS];
};

struct series *series_create (void)
{
    struct series *s = mem_zero (1, sizeof *s);
    s->width = US_PER_S;
    return s;
}

void series_destroy (struct series *s)
{
    free (s);
}

static void coarsen (struct series *s)
{
    for (uint32_t i = 0; i < SERIES_BUCKETS / 2; i++) {
        const struct bucket *a = &s->bucket[2 * i], *b = &s->bucket[2 * i + 1];
        s->bucket[i] =
            (struct bucket){a->procs_time + b->procs_time, a->queued_time + b->queued_time,
                            a->queued_max > b->queued_max ? a->queued_max : b->queued_max};
    }
    memset (&s->bucket[SERIES_BUCKETS / 2], 0, SERIES_BUCKETS / 2 * sizeof s->bucket[0]);
    s->width *= 2;
}

static void fill (struct series *s, time_us until)
{
    while (s->at < until) {
        int64_t place = (s->at - s->begin) / s->width;
        time_us stop = s->begin + (place + 1) * s->width;
        if (stop > until)
            stop = until;
        struct bucket *b = &s->bucket[place];
        b->procs_time += (double)s->procs * (double)(stop - s->at);
        b->queued_time += (double)s->queued * (double)(stop - s->at);
        if (s->queued > b->queued_max)
            b->queued_max = s->queued;
        s->at = stop;
    }
}

void series_add (struct series *s, time_us now, int64_t procs, uint32_t queued)
{
    if (!s->started) {
        s->begin = s->at = now;
        s->started = 1;
    }
    while ((now - s->begin) / s->width >= SERIES_BUCKETS)
        coarsen (s);
    fill (s, now);
    s->procs = procs;
    s->queued = queued;
}

time_us series_begin (const struct series *s)
{
    return s->begin;
}

time_us series_end (const struct series *s)
{
    return s->at;
}

void series_resample (const struct series *s, uint32_t count, struct series_point *out)
{
    double span = (double)(s->at - s->begin), step = span / count;
    for (uint32_t i = 0; i < count; i++) {
        double from = step * i, to = step * (i + 1);
        struct series_point p = {0};
        double weight = 0;
        for (int64_t b = (int64_t)(from / (double)s->width);
             b < SERIES_BUCKETS && (double)b * (double)s->width < to; b++) {
            double left = (double)b * (double)s->width, right = left + (double)s->width;
            if (right > span)
                right = span; /* the last bucket is not full */
            double begin = left > from ? left : from, end = right < to ? right : to;
            if (end <= begin)
                continue;
            double share = (end - begin) / (right - left);
            p.procs += s->bucket[b].procs_time * share;
            p.queued += s->bucket[b].queued_time * share;
            weight += end - begin;
            if (s->bucket[b].queued_max > p.queued_max)
                p.queued_max = s->bucket[b].queued_max;
        }
        if (weight > 0) {
            p.procs /= weight;
            p.queued /= weight;
        }
        out[i] = p;
    }
}
