/* arrive: an array that was signed as one comes into being by turns of the loop (job/steps.h), so that ten thousand jobs hold up
 * nobody's call.
 *
 * It is taken when its first jobs are on disk: with them stands that more are to come, and whatever happens then, a kill -9 or
 * a full disk, they come, since the first has what was signed. Its first jobs may start before. Who submitted it is answered
 * when all of it is there. */
#ifndef NUI_META_SVC_ARRIVE_H
#define NUI_META_SVC_ARRIVE_H

#include "meta/job/job.h"

/* Takes it and inserts the first of it; body is used once more. *number_out is its number; ERR_EXISTS: one of it is there as
 * that number. On failure none of it is there. */
int arrive_begin (struct metad *metad, struct arraybody *body, const char *submitter,
                  uint64_t *number_out, struct err *err);
/* Not all of it is there yet. */
bool arrive_open (const struct metad *metad, uint64_t array);
/* Calls done once, perhaps at once: whether it is whole. It may still become so when it is not: the disk is full, or the
 * metascheduler stops. */
void arrive_then (struct metad *metad, uint64_t array, void (*done) (void *arg, bool whole),
                  void *arg);
/* Goes on with those that an earlier process had taken. */
int arrive_recover (struct metad *metad, struct err *err);
extern const struct metad_part arrive_part;

#endif
