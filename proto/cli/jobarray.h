/* jobarray: one submission of many jobs, told apart by an index. Pure.
 *
 * "1-10", "0-30:5,99", "1-1000%20": indexes, ranges with a step, and how many may run at one time. At a site each is a job
 * of its own, with an id, a signature and a price; the grid takes the whole, signed once. */
#ifndef NUI_CLI_JOBARRAY_H
#define NUI_CLI_JOBARRAY_H

#include "proto/base/arena.h"
#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"

enum { JOBARRAY_MAX = 10000 };

struct jobarray {
    uint32_t count;  /* 0: an ordinary job */
    uint32_t *index; /* ascending as given, none twice */
    uint32_t min, max;
    uint32_t limit; /* 0: none */
    struct uuid id;
};

/* text NULL: an ordinary job. ERR_INVALID, ERR_LIMIT. */
int jobarray_parse (const char *text, struct arena *arena, struct jobarray *out, struct err *err);
/* The array's job at place i, in the arena: with a uuid of its own and its index in what is staged. Where
 * there is no array, the job itself. */
Nui__Common__V1__Job *jobarray_element (const struct jobarray *array, uint32_t i,
                                        struct arena *arena, Nui__Common__V1__Job *job);
/* The job becomes the array, signed as one (proto/job/element.h), whose indexes ascend from then on. */
void jobarray_whole (struct jobarray *array, struct arena *arena, Nui__Common__V1__Job *job);

#endif
