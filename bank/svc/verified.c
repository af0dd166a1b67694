#include "bank/svc/verified.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_BYTES = 32 };

struct slot {
    uint8_t digest[DIGEST_BYTES];
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

static void add (EVP_MD_CTX *ctx, const ProtobufCBinaryData *part)
{
    uint64_t len = part->len; /* so that no two envelopes are the same bytes in a row */
    EVP_DigestUpdate (ctx, &len, sizeof (len));
    EVP_DigestUpdate (ctx, part->data, part->len);
}

static void digest_of (const Nui__Common__V1__Envelope *envelope, uint8_t out[DIGEST_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new ();
    if (!ctx || EVP_DigestInit_ex (ctx, EVP_sha256 (), NULL) != 1)
        abort ();
    add (ctx, &envelope->body);
    add (ctx, &envelope->signature);
    for (size_t i = 0; i < envelope->n_chain; i++)
        add (ctx, &envelope->chain[i]);
    EVP_DigestFinal_ex (ctx, out, NULL);
    EVP_MD_CTX_free (ctx);
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
    uint8_t digest[DIGEST_BYTES];
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
