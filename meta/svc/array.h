/* array: what a call does with an array, or with those of it that it names: status, cancel, hold. */
#ifndef NUI_META_SVC_ARRAY_H
#define NUI_META_SVC_ARRAY_H

#include "meta/job/job.h"
#include "proto/job/element.h"

/* What all of them have in common, and how many are in each state; where index_wanted, also which. `first` is any of the
 * array. In the arena. NULL with err. */
Nui__Meta__V1__JobStatus *array_status (struct gridjob *first, const struct element_id *id,
                                        const char *text, bool index_wanted, struct arena *arena,
                                        struct err *err);
/* Those that are named, the ones that wait first, then those in queues, then those that run. ERR_UNAVAILABLE: it is just being
 * taken. */
int array_named (struct metad *metad, const struct element_id *id, struct arena *arena,
                 struct element_row **rows_out, uint32_t *count_out, struct err *err);

/* What is done to each of an array, by turns of the loop (job/steps.h). */
struct array_work {
    size_t bytes; /* written for each, beside its row */
    /* The jobs may have ended since, or be gone. Not 0 ends it. */
    int (*some) (void *arg, const struct element_row *row, uint32_t count, struct err *err);
    void (*done) (void *arg, int rc, const struct err *err); /* once, as steps.h says */
    void *arg;
};
void array_each (struct metad *metad, const struct array_work *work, const struct element_row *row,
                 uint32_t count);
/* One of a list that may be older. NULL: it has ended. Others of the group lead those that are not in memory here. */
struct gridjob *array_job (struct metad *metad, const struct element_row *row);

/* One answer to many votes: begun, added to, and closed; done is called when all are there. */
struct votes_join;
struct votes_join *votes_begin (void (*done) (void *arg, bool stands), void *arg);
void votes_add (struct votes_join *join, struct gridjob *job);
void votes_expect (struct votes_join *join); /* one more votes_came, by another way */
void votes_came (void *join, uint64_t as);
void votes_close (struct votes_join *join);

#endif
