/* chainmemo: signers' certificate chains that were found good, by the digest of their DER bytes.
 *
 * Checking a chain costs several signature checks and as much parsing; the same users' chains come
 * with every job. Belongs to one trust store with its CRLs: whoever loads those anew destroys it
 * (tlsid does), so that a revocation counts at once. An entry holds for moments from the one it was
 * checked for until its first certificate or CRL ends. CHAINMEMO_SLOTS entries, one place per
 * digest; O(1). Not for several threads. */
#ifndef NUI_RPC_CHAINMEMO_H
#define NUI_RPC_CHAINMEMO_H

#include <openssl/x509_vfy.h>

#include "proto/base/quantity.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/rpc/sigkey.h"
#include "proto/rpc/tlsid.h"

enum { CHAINMEMO_SLOTS = 1024, CHAINMEMO_DIGEST_BYTES = 32 };

struct chainmemo;

struct chainmemo *chainmemo_create (void); /* NULL when out of memory */
void chainmemo_destroy (struct chainmemo *memo);

struct chainmemo_key {
    uint8_t digest[CHAINMEMO_DIGEST_BYTES];
};

/* Of all certificates in order. */
void chainmemo_key (const Nui__Common__V1__Envelope *envelope, struct chainmemo_key *out);
/* The signer's public key (owned by the memo, until the next put), or NULL. */
struct sigkey *chainmemo_get (struct chainmemo *memo, const struct chainmemo_key *key, time_us at,
                              struct principal *signer_out);
/* ctx has verified the leaf for the moment `at`, without exceptions for revocations. */
void chainmemo_put (struct chainmemo *memo, const struct chainmemo_key *key, time_us at,
                    X509_STORE_CTX *ctx, const struct principal *signer);

#endif
