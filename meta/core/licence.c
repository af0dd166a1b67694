/* licence: adds bookings up to steps through time and reads from them when another one fits.
 * meta/place/gridlicence.c calls it, with the bookings of all live jobs. It keeps nothing
 * between calls, so that the jobs' records are the only truth. */
#include "meta/core/licence.h"

#include <stdlib.h>

time_us licence_end (time_us begin, duration_us walltime, time_us now)
{
    time_us end = begin + walltime;
    duration_us over = now - end;
    if (over < 0)
        return end;
    return now + (over > LICENCE_OVERDUE ? over : LICENCE_OVERDUE);
}

static int change_compare (const void *pa, const void *pb)
{
    const struct licence_change *a = pa, *b = pb;
    return a->at < b->at ? -1 : a->at > b->at;
}

static uint32_t change_add (struct licence_change *out, uint32_t n, const struct licence_booking *b)
{
    if (b->begin >= b->end)
        return n;
    out[n++] = (struct licence_change){b->begin, b->count};
    out[n++] = (struct licence_change){b->end, -(int64_t)b->count};
    return n;
}

static uint32_t put (struct choose_interval *out, uint32_t n, uint32_t most, time_us begin,
                     time_us end)
{
    if (begin <= end && n < most)
        out[n++] = (struct choose_interval){begin, end};
    return n;
}

uint32_t licence_starts (const struct licence_booking *booking, uint32_t count, uint64_t except,
                         const struct licence_need *need, duration_us walltime, time_us from,
                         time_us until, struct licence_change *scratch, struct choose_interval *out,
                         uint32_t most)
{
    uint32_t changes = 0, n = 0;
    int64_t booked = 0, room = (int64_t)need->total - need->count;
    time_us next = from; /* no start before it is left to look at */
    if (room < 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (booking[i].licence == need->licence && (!except || booking[i].owner != except))
            changes = change_add (scratch, changes, &booking[i]);
    qsort (scratch, changes, sizeof *scratch, change_compare);
    for (uint32_t i = 0; i < changes && next <= until;) {
        bool was_short = booked > room;
        time_us at = scratch[i].at;
        for (; i < changes && scratch[i].at == at; i++)
            booked += scratch[i].by;
        if (!was_short && booked > room) { /* the run has ended by then */
            time_us last = at - walltime;
            n = put (out, n, most, next, last < until ? last : until);
        } else if (was_short && booked <= room && at > next) {
            next = at;
        }
    }
    return put (out, n, most, next, until);
}

uint32_t licence_both (const struct choose_interval *a, uint32_t a_count,
                       const struct choose_interval *b, uint32_t b_count,
                       struct choose_interval *out, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < a_count && k < b_count;) {
        time_us begin = a[i].begin > b[k].begin ? a[i].begin : b[k].begin;
        time_us end = a[i].end < b[k].end ? a[i].end : b[k].end;
        n = put (out, n, most, begin, end);
        if (a[i].end < b[k].end)
            i++;
        else
            k++;
    }
    return n;
}

uint64_t licence_in_use (const struct licence_booking *booking, uint32_t count, uint32_t licence,
                         uint64_t except)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (booking[i].let_go && booking[i].licence == licence &&
            (!except || booking[i].owner != except))
            sum += booking[i].count;
    return sum;
}

bool licence_fits (const struct licence_booking *booking, uint32_t count, uint64_t except,
                   const struct licence_need *need)
{
    return licence_in_use (booking, count, need->licence, except) + need->count <= need->total;
}

uint32_t licence_steps (const struct licence_booking *booking, uint32_t count, uint32_t licence,
                        time_us from, struct licence_change *scratch, struct licence_step *out,
                        uint32_t most)
{
    uint32_t changes = 0, n = 1;
    int64_t booked = 0;
    for (uint32_t i = 0; i < count; i++)
        if (booking[i].licence == licence && !booking[i].other)
            changes = change_add (scratch, changes, &booking[i]);
    qsort (scratch, changes, sizeof *scratch, change_compare);
    out[0] = (struct licence_step){from, 0};
    for (uint32_t i = 0; i < changes;) {
        time_us at = scratch[i].at;
        for (; i < changes && scratch[i].at == at; i++)
            booked += scratch[i].by;
        if (at <= from)
            out[0].booked = (uint64_t)booked;
        else if (n < most)
            out[n++] = (struct licence_step){at, (uint64_t)booked};
    }
    return n;
}
