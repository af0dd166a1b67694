/* terms: other terms for a co-reservation that is firm (nui coreserve --change): who may come in, until when, how many tasks. All
 * its sites take what is needed besides, or none keeps anything of it.
 *
 * The terms are the job's envelope. They are decided by its being another one, durably and, in a group, by a majority; from then
 * on each site is told of what the envelope says until it has it. Before that nothing of them is on disk: after a crash
 * each site is told of the envelope as it is, by which it gives back what it took. */
#ifndef NUI_META_GROUP_TERMS_H
#define NUI_META_GROUP_TERMS_H

#include "meta/job/job.h"

/* What its user signed for a co-reservation of his: of which job; NULL with err. */
struct gridjob *terms_job (struct metad *metad, const char *submitter, const JobMessage *wanted,
                           struct err *err);
/* err NULL: it is so, for all of the group. The job may be gone. */
typedef void (*terms_done) (void *arg, const struct err *err);
/* Both are copied. done is called once, perhaps at once. */
void terms_begin (struct gridjob *job, const EnvelopeMessage *envelope, terms_done done, void *arg);
/* Its sites may have taken what nobody knows of: they are told what stands. */
void terms_recover (struct gridjob *job);
/* The job is being freed, or another's: who waits hears that nothing is known. */
void terms_drop (struct gridjob *job);

#endif
