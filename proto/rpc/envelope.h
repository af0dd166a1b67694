/* envelope: bytes signed by a member of the grid, checkable by anyone with its CA, years later.
 *
 * The signature is detached, over a domain string, a zero byte and the bytes: one that was made for
 * a job is never good for anything else. The key's type decides: Ed25519, or ECDSA with SHA-256.
 * The signer's chain travels as DER. What a gate signed for a user, by his delegation, is the user's (gatedeleg.h). */
#ifndef NUI_RPC_ENVELOPE_H
#define NUI_RPC_ENVELOPE_H

#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/rpc/tlsid.h"

enum { ENVELOPE_BODY_MAX = 1 << 20 };

#define ENVELOPE_JOB "nui-job-v1" /* the domain of the calls that name none */

/* Fills a message with malloc'ed content; free it with envelope_free. */
int envelope_sign (struct tlsid *signer, const void *body, size_t body_len,
                   Nui__Common__V1__Envelope **out, struct err *err);
int envelope_sign_for (struct tlsid *signer, const char *domain, const void *body, size_t body_len,
                       Nui__Common__V1__Envelope **out, struct err *err);
void envelope_free (Nui__Common__V1__Envelope *envelope);
/* Its bytes, malloc'ed: what is signed may travel in another message. */
void envelope_pack (const Nui__Common__V1__Envelope *envelope, ProtobufCBinaryData *out);

/* Checks chain (against the store and CRL, at moment `at`), signature and the signer's identity. A certificate of the
 * signer that has ended stands in with a receipt (receipt.h) of a moment at which it was good.
 * ERR_UNAUTHENTIC with the reason when it does not hold; ERR_UNAVAILABLE while the revocation list here is none that
 * it can be checked by. */
int envelope_verify (struct tlsid *id, const Nui__Common__V1__Envelope *envelope, time_us at,
                     struct principal *signer_out, struct err *err);
int envelope_verify_for (struct tlsid *id, const char *domain,
                         const Nui__Common__V1__Envelope *envelope, time_us at,
                         struct principal *signer_out, struct err *err);
/* The same for what has no receipt of its own: the signer's certificate may have ended since that moment (0: it may not). */
int envelope_verify_since (struct tlsid *id, const char *domain,
                           const Nui__Common__V1__Envelope *envelope, time_us at, time_us received,
                           struct principal *signer_out, struct err *err);

#endif
