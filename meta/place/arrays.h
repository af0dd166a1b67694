/* arrays: whose turn it is among the jobs of an array that was signed as one (proto/job/element.h). Each of them is an
 * ordinary job with a number of its own; they share what was signed and the name grid.N[…], N being the number of the first.
 *
 * At most ARRAY_CHOOSES_MAX of one array choose a site at one time, so that each choice sees where the ones before it
 * went, and a large array does not keep the sites from others' questions; and at most the limit that was signed (%n) are
 * with sites. Those that wait are taken in the order of their indexes. What is known here follows from the durable states
 * of the jobs in memory. A change of one job costs no more than that job. */
#ifndef NUI_META_PLACE_ARRAYS_H
#define NUI_META_PLACE_ARRAYS_H

#include "meta/job/job.h"

enum { ARRAY_CHOOSES_MAX = 1 };

/* Whether it may choose a site now; if not, why, and it is woken when it is its turn. True of a job of no array. */
bool array_admits (struct gridjob *job, struct coalloc_reason *reason);
/* Whether any of it gets its turn from now on: while it is being cancelled, none. */
void array_turns (struct metad *metad, uint64_t number, bool given);
/* Why one waits whose turn has not come. */
void array_reason (const JobMessage *job, struct coalloc_reason *reason);
/* The number of the job that the text names: "grid.42", "grid.42[7]". ERR_INVALID, also of the name of a whole array or of
 * several of it; ERR_NOT_FOUND. */
int array_job_named (struct metad *metad, const char *text, uint64_t *number_out, struct err *err);
extern const struct metad_part arrays_part;

#endif
