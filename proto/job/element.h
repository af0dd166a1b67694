/* element: an array of jobs that was signed as one, and the job that each of its indexes is.
 *
 * The signed job names its indexes; envelope.element says which of them is meant. Who reads such an envelope (a
 * metascheduler, a site, the bank) makes the job of that index itself: the same job with a uuid that follows from the
 * signed one and the index, the signed uuid as its array's id, and its index in what is staged. An index that was not
 * signed is no job. So each has holds, runs and bounds of its own, and nobody can have more of them than were signed. Its
 * jobs may have several components: each index is then a co-allocated job of its own. An array of co-reservations is a
 * standing one: each has its own moment.
 *
 * Pure. An index is looked for range by range; an array has ELEMENTS_MAX at most. */
#ifndef NUI_JOB_ELEMENT_H
#define NUI_JOB_ELEMENT_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"
#include "proto/nui/v1/common.pb-c.h"

enum { ELEMENTS_MAX = 10000, ELEMENT_INDEX_MAX = 1000000, ELEMENT_RANGES_MAX = 4096 };

typedef Nui__Common__V1__IndexRange IndexRange;

/* Is it a sane array: ascending, no index twice, of ELEMENTS_MAX jobs and as many components at most? Also 0 of a job that is
 * no array. ERR_INVALID, ERR_LIMIT. */
int element_check (const Nui__Common__V1__Job *job, struct err *err);
/* Of one that was checked: how many, and which index is at that place. */
uint32_t element_count (const Nui__Common__V1__Job *job);
uint32_t element_index (const Nui__Common__V1__Job *job, uint32_t place);
/* All of them, ascending: element_count of them. */
void element_indexes (const Nui__Common__V1__Job *job, uint32_t *out);
/* Makes of an unpacked array the job of that element, in place. A job that is no array stays as it is. ERR_INVALID: an
 * element of no array, or an array without one; ERR_DENIED: an index that was not signed. */
int element_apply (Nui__Common__V1__Job *job, uint32_t element, struct err *err);
/* The job that the envelope means, guarded as by jobcheck_unpack. NULL with err. */
Nui__Common__V1__Job *element_unpack (const Nui__Common__V1__Envelope *envelope, struct err *err);

/* Checks an array of which views are to be made, once for all of them. ERR_INVALID, ERR_LIMIT; also of a job that is none. */
int element_ready (Nui__Common__V1__Job *array, struct err *err);
/* The same as element_unpack of an array that is ready, stays as it is and outlives it: all but what differs from one to the
 * other is the array's. NULL with err. Freed with element_view_free. */
Nui__Common__V1__Job *element_view (const Nui__Common__V1__Job *array, uint32_t element,
                                    struct err *err);
void element_view_free (Nui__Common__V1__Job *view); /* NULL is a no-op */

/* "grid.42", "grid.42[3]", "grid.42[3-7,20-60:10]". */
struct element_id {
    char prefix[64];
    uint64_t number;
    uint32_t range_count; /* 0: the whole, or a job */
    struct element_range {
        uint32_t from, to, step;
    } range[64];
};

/* ERR_INVALID, ERR_LIMIT. */
int element_id_parse (const char *text, struct element_id *out, struct err *err);
/* Of a job as a metascheduler names it to a site: a name, or one of an array. ERR_INVALID, ERR_LIMIT. */
int element_id_check (const char *text, struct err *err);
bool element_id_has (const struct element_id *id, uint32_t index);
/* It names one index, which is *index_out. */
bool element_id_single (const struct element_id *id, uint32_t *index_out);
/* "1-10000", "0-30:5,99": as --array has it; at most cap bytes of it and then "…". */
void element_ranges_text (const uint32_t *ascending, uint32_t count, size_t cap,
                          struct strbuf *out);
/* How many of them from the first on are so many ranges of that text at most. */
uint32_t element_ranges_fit (const uint32_t *ascending, uint32_t count, uint32_t ranges);

#endif
