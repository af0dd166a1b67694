/* endings: running jobs of a draw by when they end. Pure.
 *
 * A heap; of those that end at the same moment the lowest id comes first. Add and pop O(log count),
 * remove O(count). A zeroed one is empty. */
#ifndef NUI_LOCAL_ESTIMATE_ENDINGS_H
#define NUI_LOCAL_ESTIMATE_ENDINGS_H

#include "local/core/types.h"

struct ending {
    time_us at;
    uint64_t id; /* the caller's */
};

struct endings {
    struct ending *heap; /* heap[0] is the next, while count > 0 */
    uint32_t count, cap;
};

void endings_free (struct endings *endings);
void endings_add (struct endings *endings, time_us at, uint64_t id);
struct ending endings_pop (struct endings *endings); /* count > 0 */
/* False: it is not among them. */
bool endings_remove (struct endings *endings, uint64_t id);
/* When the next ends; TIME_US_MAX: nothing runs. */
time_us endings_next (const struct endings *endings);

#endif
