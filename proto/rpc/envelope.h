/* envelope: bytes signed by a user, checkable by anyone with the grid's CA, years later.
 *
 * The signature is detached, over the domain string "nui-job-v1", a zero byte and the bytes. The
 * key's type decides: Ed25519, or ECDSA with SHA-256. The signer's chain travels as DER. */
#ifndef NUI_RPC_ENVELOPE_H
#define NUI_RPC_ENVELOPE_H

#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/rpc/tlsid.h"

enum { ENVELOPE_BODY_MAX = 1 << 20 };

/* Fills a message with malloc'ed content; free it with envelope_free. */
int envelope_sign (struct tlsid *signer, const void *body, size_t body_len,
                   Nui__Common__V1__Envelope **out, struct err *err);
void envelope_free (Nui__Common__V1__Envelope *envelope);

/* Checks chain (against the store and CRL, at moment `at`), signature and the signer's identity.
 * ERR_UNAUTHENTIC with the reason when it does not hold. */
int envelope_verify (struct tlsid *id, const Nui__Common__V1__Envelope *envelope, time_us at,
                     struct principal *signer_out, struct err *err);

#endif
