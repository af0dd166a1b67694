/* keys: what the bank gave this metascheduler to seal hand-overs by (proto/job/handover.h), kept so that jobs are handed
 * over while the bank is away. */
#ifndef NUI_META_STORE_KEYS_H
#define NUI_META_STORE_KEYS_H

#include "meta/store/metastore.h"
#include "proto/job/handover.h"

enum { KEYS_MAX = 4 };

/* The latest, newest first. *count: so many. */
int keys_load (struct metastore *store, struct handover_key out[KEYS_MAX], uint32_t *count,
               struct err *err);
/* Those that the bank gave last stand in place of all that was there. */
int keys_replace (struct metastore *store, const struct handover_key *key, uint32_t count,
                  struct err *err);

#endif
