/* handover: the metascheduler's word, to the bank, of the site to which it gave a part of a signed job.
 *
 * A signed job is shown to every site that might run it (QUERY), so a signature says who asks for what and not where
 * it is to be spent. What binds it to the site that was chosen is this: a keyed hash over the job, the part and the
 * site. The bank makes the keys from a secret that only it has, one for each metascheduler and month, and gives each
 * metascheduler its own; so it checks a hand-over with two hashes (3 us; another signature would be 50) and a key that
 * has leaked ends, and shows whose it was. A key seals for two months from its first day, so that what was handed over
 * on the last day of its month is good for a month more.
 *
 * Pure: no clock, no I/O. */
#ifndef NUI_JOB_HANDOVER_H
#define NUI_JOB_HANDOVER_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/hash/sha256.h"
#include "proto/nui/v1/common.pb-c.h"

#define HANDOVER_PERIOD (30 * 86400 * US_PER_S)
enum { HANDOVER_KEY_BYTES = SHA256_BYTES, HANDOVER_NAME_MAX = 255 };

struct handover_key {
    uint64_t number; /* of the month, counted from 1970 */
    uint8_t bytes[HANDOVER_KEY_BYTES];
};

/* What a hand-over is about. */
struct handover {
    const char *grid, *metascheduler, *site, *component;
    ProtobufCBinaryData uuid;   /* of the job */
    uint8_t hash[SHA256_BYTES]; /* of the bytes that were signed */
};

/* The key of a moment, when it begins to seal, and when the last that it sealed ends. */
uint64_t handover_number (time_us at);
time_us handover_begins (uint64_t number);
time_us handover_ends (uint64_t number);

/* The bank's: a metascheduler's key from the secret. */
void handover_derive (const uint8_t secret[SHA256_BYTES], const char *grid,
                      const char *metascheduler, uint64_t number, struct handover_key *out);

/* Sealed until then, or as long as the key lasts, whichever is sooner; in the arena. */
Nui__Common__V1__HandOver *handover_seal (const struct handover_key *key,
                                          const struct handover *about, time_us expires,
                                          struct arena *arena);

/* The bank's: whether what was given stands for what is asked; about->metascheduler is not looked at. ERR_DENIED, with
 * a sentence, when there is none, it has ended, or it is for another job, part or site or by another key. */
int handover_check (const uint8_t secret[SHA256_BYTES], const Nui__Common__V1__HandOver *given,
                    const struct handover *about, time_us now, struct err *err);

#endif
