/* past: jobs of the grid that ended so long ago that they may be forgotten. Who decides that is svc/forget.c. */
#ifndef NUI_META_STORE_PAST_H
#define NUI_META_STORE_PAST_H

#include "meta/store/metastore.h"

/* A place among jobs by when they were over, and which job that is. */
struct past_row {
    time_us over; /* it had ended, and its signature, so that it could not be sent again */
    time_us end;
    uint64_t number;
    uint64_t array; /* the number of its array's first; 0: of none */
};

/* Those that were over before that moment, behind that place, in that order: at most so many. */
int past_list (struct metastore *store, time_us before, const struct past_row *after,
               uint32_t limit, struct arena *arena, struct past_row **rows_out, uint32_t *count_out,
               struct err *err);
/* Whether all jobs of the array are there and were over before that moment. */
int past_array_over (struct metastore *store, uint64_t array, time_us before, bool *over_out,
                     struct err *err);
/* Whether no other job of its array is there any more: the first, which has what was signed, goes last. */
int past_array_last (struct metastore *store, uint64_t array, bool *last_out, struct err *err);
/* In the transaction that is open. */
int past_forget (struct metastore *store, const struct past_row *row, struct err *err);
/* When the last of those that were forgotten ended; 0: none was. */
int past_forgotten (struct metastore *store, time_us *end_out, struct err *err);

#endif
