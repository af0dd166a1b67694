/* verified: remembers for a few seconds which envelopes were found good.
 *
 * One signed job comes several times within moments: a quote from the metascheduler, a hold from
 * the site of each component, and each again when an answer was lost. Three quarters of the
 * daemon's CPU time went into checking the same signatures. Everything is forgotten when
 * certificates or the revocation list are loaded anew. VERIFIED_SLOTS entries, one place per
 * digest; O(1). */
#ifndef NUI_BANK_SVC_VERIFIED_H
#define NUI_BANK_SVC_VERIFIED_H

#include "proto/rpc/envelope.h"

enum { VERIFIED_SLOTS = 1024 };
#define VERIFIED_FOR_US (10 * US_PER_S)

struct verified;

struct verified *verified_create (void);
void verified_destroy (struct verified *verified);
/* As envelope_verify at the moment now. */
int verified_envelope (struct verified *verified, struct tlsid *id,
                       const Nui__Common__V1__Envelope *envelope, time_us now,
                       struct principal *signer_out, struct err *err);

#endif
