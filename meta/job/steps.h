/* steps: a long piece of work, some of it at each turn of the loop, so that it holds up nobody's call: what is done to each of
 * an array. The first turn is the caller's; what is short ends in it. */
#ifndef NUI_META_JOB_STEPS_H
#define NUI_META_JOB_STEPS_H

#include "meta/job/hub.h"

/* Of one turn: jobs written, and bytes of what was signed for them. */
enum { STEPS_JOBS = 128, STEPS_BYTES = 1 << 20 };

struct steps {
    uint32_t count;
    uint32_t at_once; /* at a turn; at least 1 */
    /* Those from `from` on, so many of them. Not 0 ends it. */
    int (*some) (void *arg, uint32_t from, uint32_t n, struct err *err);
    /* Once, with rc and err of what ended it: 0 when all is done, ERR_UNAVAILABLE when the metascheduler stops, and its
     * jobs are gone. */
    void (*done) (void *arg, int rc, const struct err *err);
    void *arg;
};

void steps_begin (struct metad *metad, const struct steps *steps);
extern const struct metad_part steps_part;

#endif
