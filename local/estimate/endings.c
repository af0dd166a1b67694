/* endings: a binary heap of ends by time and id. forward.c and replay.c take the next end of a
 * draw from it. The order must be total, or a draw with the same seed would come out otherwise. */
#include "local/estimate/endings.h"
#include "proto/base/mem.h"

#include <stdlib.h>
#include <string.h>

void endings_free (struct endings *e)
{
    free (e->heap);
    memset (e, 0, sizeof *e);
}

static bool before (struct ending a, struct ending b)
{
    return a.at != b.at ? a.at < b.at : a.id < b.id;
}

static void rise (struct endings *e, uint32_t i, struct ending one)
{
    for (; i > 0 && before (one, e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = one;
}

static void sink (struct endings *e, uint32_t i, struct ending one)
{
    uint32_t child;

    while ((child = 2 * i + 1) < e->count) {
        if (child + 1 < e->count && before (e->heap[child + 1], e->heap[child]))
            child++;
        if (!before (e->heap[child], one))
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    e->heap[i] = one;
}

void endings_add (struct endings *e, time_us at, uint64_t id)
{
    e->heap = mem_grow (e->heap, &e->cap, e->count + 1, sizeof *e->heap);
    rise (e, e->count++, (struct ending){at, id});
}

struct ending endings_pop (struct endings *e)
{
    struct ending top = e->heap[0];

    if (--e->count)
        sink (e, 0, e->heap[e->count]);
    return top;
}

bool endings_remove (struct endings *e, uint64_t id)
{
    uint32_t i = 0;

    while (i < e->count && e->heap[i].id != id)
        i++;
    if (i == e->count)
        return false;
    rise (e, i, (struct ending){TIME_US_NONE, id}); /* to the top: before all */
    (void)endings_pop (e);
    return true;
}

time_us endings_next (const struct endings *e)
{
    return e->count ? e->heap[0].at : TIME_US_MAX;
}
