/* verified: a table with one place per digest of body, signature and chain. requests.c calls it
 * instead of envelope_verify. Only what was found good is remembered, and never past a reload of
 * certificates or of the revocation list. */
#include "bank/svc/verified.h"

#include <stdlib.h>
#include <string.h>

#include "proto/hash/sha256.h"

struct slot {
    uint8_t digest[SHA256_BYTES];
    time_us at; /* 0: empty */
    struct principal signer;
};

struct verified {
    X509_STORE *store; /* what the entries were checked against; a reference is held, so that a new
                        * store cannot have the old one's address */
    struct slot slot[VERIFIED_SLOTS];
};

struct verified *verified_create (void)
{
    struct verified *verified = calloc (1, sizeof (*verified));
    if (!verified)
        abort ();
    return verified;
}

void verified_destroy (struct verified *verified)
{
    if (!verified)
        return;
    X509_STORE_free (verified->store);
    free (verified);
}

static void digest_of (const Nui__Common__V1__Envelope *envelope, uint8_t out[SHA256_BYTES])
{
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add_part (hash, envelope->body.data, envelope->body.len);
    sha256_add_part (hash, envelope->signature.data, envelope->signature.len);
    for (size_t i = 0; i < envelope->n_chain; i++)
        sha256_add_part (hash, envelope->chain[i].data, envelope->chain[i].len);
    sha256_add_part (hash, envelope->gate_delegation.data, envelope->gate_delegation.len);
    sha256_add_part (hash, envelope->receipt.data, envelope->receipt.len);
    sha256_end (hash, out);
}

static void forget_others (struct verified *verified, X509_STORE *store)
{
    if (verified->store == store)
        return;
    X509_STORE_free (verified->store);
    X509_STORE_up_ref (store);
    memset (verified, 0, sizeof (*verified));
    verified->store = store;
}

int verified_envelope (struct verified *verified, struct tlsid *id,
                       const Nui__Common__V1__Envelope *envelope, time_us now,
                       struct principal *signer_out, struct err *err)
{
    uint8_t digest[SHA256_BYTES];
    forget_others (verified, tlsid_store (id));
    digest_of (envelope, digest);
    struct slot *slot = &verified->slot[(digest[0] | digest[1] << 8) % VERIFIED_SLOTS];
    if (slot->at && slot->at <= now && now - slot->at < VERIFIED_FOR_US &&
        memcmp (slot->digest, digest, sizeof (digest)) == 0) {
        *signer_out = slot->signer;
        return 0;
    }
    if (envelope_verify (id, envelope, now, signer_out, err) < 0)
        return err->code;
    memcpy (slot->digest, digest, sizeof (digest));
    slot->at = now;
    slot->signer = *signer_out;
    return 0;
}
