/* seal: what this metascheduler gives to a site carries its hand-over (proto/job/handover.h): without one the bank lets
 * the site hold nothing for the job. What only asks a site (QUERY) carries none. The keys are the bank's: fetched at
 * start and every hour, and kept in the store. */
#ifndef NUI_META_JOB_SEAL_H
#define NUI_META_JOB_SEAL_H

#include "meta/job/job.h"

/* Of a co-allocated part, which is held for when it is prepared: a site whose part came to nothing can use it for so
 * long. */
#define SEAL_PREPARE (10 * 60 * US_PER_S)
/* Of an ordinary job, which may wait long and be started anew: as long as the key lasts. */
#define SEAL_LONGEST INT64_MAX

extern const struct metad_part seal_part;

/* How far the bank's clock is ahead of this one; 0: nobody knows. */
duration_us seal_bank_clock (const struct metad *metad);

/* Whether it has a key that seals; why jobs wait while it has none. */
bool seal_has_key (const struct metad *metad);
#define SEAL_KEYLESS "the bank has not given the key by which jobs are handed to sites"

/* The job's envelope with the hand-over of the part to the site, until then; in the arena, but for what is the
 * job's. NULL: the bank has not given a key yet. */
EnvelopeMessage *seal_envelope (const struct gridjob *job, uint32_t part, const char *site,
                                time_us expires, struct arena *arena);

#endif
