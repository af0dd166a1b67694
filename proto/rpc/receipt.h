/* receipt: a metascheduler's word that it had a signed message at a moment.
 *
 * Certificates of people may last for hours, and what they sign is looked at for weeks: by sites, for queued jobs, later
 * jobs of an array and moves, and by the bank for each new hold. To believe the moment that the message itself says would
 * let whoever has a key that ended long ago sign for a day in the past. So whoever takes the message while its
 * certificate is good vouches for that: it signs the hash of the whole message (body, signature, chain, a gate's
 * delegation) and the moment, with its own key. The receipt travels in the envelope, of a job as of a delegation.
 *
 * What it does is this alone: the signer's own certificate, where it has ended, counts as good still, if it was good at
 * the moment of receipt. All else is looked at as of now, as ever: revocations (of a certificate that has ended, too),
 * the authority's certificate, the signature, the expiry that was signed. The receipt's signer must be a
 * metascheduler whose certificate is good now; so two keys, one of them a metascheduler's in force, are needed to sign
 * for the past, and for no longer than RECEIPT_MAX_US. */
#ifndef NUI_RPC_RECEIPT_H
#define NUI_RPC_RECEIPT_H

#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/rpc/tlsid.h"

#define RECEIPT_DOMAIN "nui-receipt-v1"
#define RECEIPT_MAX_US (90 * 86400 * US_PER_S)
enum { RECEIPT_BYTES_MAX = 64 << 10 }; /* its chain of certificates is most of it */

/* By signer, a metascheduler; *out is malloc'ed and goes into envelope->receipt. Two hashes and a signature. */
int receipt_make (struct tlsid *signer, const Nui__Common__V1__Envelope *envelope, time_us now,
                  ProtobufCBinaryData *out, struct err *err);
/* When the envelope was received by its receipt, as of the moment at: ERR_UNAUTHENTIC where there is none, or it is not good. */
int receipt_read (struct tlsid *id, const Nui__Common__V1__Envelope *envelope, time_us at,
                  time_us *received_out, struct err *err);

#endif
