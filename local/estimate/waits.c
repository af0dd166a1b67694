/* waits: past waits of jobs alike, and quantiles of them. estimator.c calls it for the method
 * "history". It knows nothing of the queue as it is now. */
#include "local/estimate/waits.h"
#include "proto/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIZES = 5,   /* up to 1, 4, 16, 64, more processors */
    LENGTHS = 4, /* up to 1, 4, 16 hours, more */
    KEPT = 512,
    AFTER_CHANGE = 59, /* the least that says something of a 95 % quantile with 95 % confidence */
    IN_A_ROW = 3,
    ENOUGH = 20, /* below, all jobs of the site are looked at */
};

struct bin {
    uint32_t count, next;
    uint32_t above; /* waits in a row above the 95 % quantile */
    duration_us wait[KEPT];
    duration_us sorted[KEPT];
};

struct waits {
    struct bin bin[SIZES * LENGTHS + 1]; /* the last: all */
};

struct waits *waits_create (void)
{
    struct waits *w = mem_zero (1, sizeof *w);

    return w;
}

void waits_destroy (struct waits *w)
{
    free (w);
}

static uint32_t bin_of (const struct job_known *job)
{
    int64_t hours = job->limit / (3600 * US_PER_S);
    uint32_t size = 0, length = hours < 1 ? 0 : hours < 4 ? 1 : hours < 16 ? 2 : 3;

    for (uint64_t most = 1; size < SIZES - 1 && job->procs > most; most *= 4)
        size++;
    return size * LENGTHS + length;
}

static uint32_t place (const struct bin *b, duration_us wait)
{
    uint32_t low = 0, high = b->count;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (b->sorted[mid] < wait)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void sorted_remove (struct bin *b, duration_us wait)
{
    uint32_t at = place (b, wait);

    b->count--;
    memmove (b->sorted + at, b->sorted + at + 1, (b->count - at) * sizeof *b->sorted);
}

static duration_us quantile (const struct bin *b, double q)
{
    uint32_t at = (uint32_t)(q * b->count);

    return b->sorted[at < b->count ? at : b->count - 1];
}

static void bin_add (struct bin *b, duration_us wait)
{
    uint32_t at;

    if (b->count >= ENOUGH)
        b->above = wait > quantile (b, .95) ? b->above + 1 : 0;
    if (b->count == KEPT)
        sorted_remove (b, b->wait[b->next]);
    at = place (b, wait);
    memmove (b->sorted + at + 1, b->sorted + at, (b->count - at) * sizeof *b->sorted);
    b->sorted[at] = wait;
    b->wait[b->next] = wait;
    b->next = (b->next + 1) % KEPT;
    b->count++;
    if (b->above < IN_A_ROW)
        return;
    b->above = 0; /* another regime: only the newest count */
    while (b->count > AFTER_CHANGE)
        sorted_remove (b, b->wait[(b->next + KEPT - b->count) % KEPT]);
}

void waits_add (struct waits *w, const struct job_known *job, duration_us wait)
{
    bin_add (&w->bin[bin_of (job)], wait);
    bin_add (&w->bin[SIZES * LENGTHS], wait);
}

void waits_estimate (const struct waits *w, const struct job_known *job, struct estimate *out)
{
    const struct bin *b = &w->bin[bin_of (job)];

    memset (out, 0, sizeof *out);
    if (b->count < ENOUGH)
        b = &w->bin[SIZES * LENGTHS];
    if (b->count == 0)
        return;
    out->draws = b->count;
    out->median = quantile (b, .5);
    out->low50 = quantile (b, .25);
    out->high50 = quantile (b, .75);
    out->low95 = quantile (b, .025);
    out->high95 = quantile (b, .975);
}
