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
/* Those that are named, the ones that wait first, then those in queues, then those that run. */
int array_named (struct metad *metad, const struct element_id *id, struct arena *arena,
                 struct element_row **rows_out, uint32_t *count_out, struct err *err);

/* One answer to many votes: begun, added to, and closed; done is called when all are there. */
struct votes_join;
struct votes_join *votes_begin (void (*done) (void *arg, bool stands), void *arg);
void votes_add (struct votes_join *join, struct gridjob *job);
void votes_close (struct votes_join *join);

#endif
