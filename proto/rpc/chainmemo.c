/* chainmemo: a table with one place per digest; what comes later to a place takes it. envelope.c
 * looks here before it checks a chain. Only a chain that was found good is put in, and none is
 * answered outside the moments it was found good for. */
#include "proto/rpc/chainmemo.h"

#include <stdlib.h>
#include <string.h>

#include "proto/hash/sha256.h"

struct slot {
    struct chainmemo_key key;
    struct sigkey *signs; /* NULL: empty */
    time_us from, until;
    struct principal signer;
};

struct chainmemo {
    struct slot slot[CHAINMEMO_SLOTS];
};

struct chainmemo *chainmemo_create (void)
{
    return calloc (1, sizeof (struct chainmemo));
}

void chainmemo_destroy (struct chainmemo *memo)
{
    if (!memo)
        return;
    for (int i = 0; i < CHAINMEMO_SLOTS; i++)
        sigkey_destroy (memo->slot[i].signs);
    free (memo);
}

void chainmemo_key (const Nui__Common__V1__Envelope *envelope, struct chainmemo_key *out)
{
    EVP_MD_CTX *hash = sha256_begin ();

    for (size_t i = 0; i < envelope->n_chain; i++)
        sha256_add_part (hash, envelope->chain[i].data, envelope->chain[i].len);
    sha256_end (hash, out->digest);
}

static struct slot *slot_of (struct chainmemo *memo, const struct chainmemo_key *key)
{
    return &memo->slot[(key->digest[0] | key->digest[1] << 8) % CHAINMEMO_SLOTS];
}

struct sigkey *chainmemo_get (struct chainmemo *memo, const struct chainmemo_key *key, time_us at,
                              struct principal *signer_out)
{
    struct slot *slot = slot_of (memo, key);

    if (!slot->signs || at < slot->from || at >= slot->until ||
        memcmp (slot->key.digest, key->digest, sizeof (key->digest)) != 0)
        return NULL;
    *signer_out = slot->signer;
    return slot->signs;
}

/* The first end after `at` of a certificate of the chain, or of any CRL of the store. */
static time_us good_until (X509_STORE_CTX *ctx, time_us at)
{
    STACK_OF (X509) *chain = X509_STORE_CTX_get0_chain (ctx);
    STACK_OF (X509_OBJECT) *objects = X509_STORE_get0_objects (X509_STORE_CTX_get0_store (ctx));
    time_us until = INT64_MAX;

    for (int i = 0; i < sk_X509_num (chain); i++) {
        time_us end = tlsend_moment (X509_get0_notAfter (sk_X509_value (chain, i)));
        until = end < until ? end : until;
    }
    for (int i = 0; i < sk_X509_OBJECT_num (objects); i++) {
        X509_CRL *crl = X509_OBJECT_get0_X509_CRL (sk_X509_OBJECT_value (objects, i));
        time_us end = crl ? tlsend_moment (X509_CRL_get0_nextUpdate (crl)) : 0;
        if (end > at && end < until)
            until = end;
    }
    return until;
}

void chainmemo_put (struct chainmemo *memo, const struct chainmemo_key *key, time_us at,
                    X509_STORE_CTX *ctx, const struct principal *signer)
{
    struct slot *slot = slot_of (memo, key);
    EVP_PKEY *public = X509_get0_pubkey (X509_STORE_CTX_get0_cert (ctx));
    struct sigkey *signs = public ? sigkey_create (public) : NULL;

    if (!signs)
        return;
    sigkey_destroy (slot->signs);
    *slot = (struct slot){
        .key = *key, .signs = signs, .from = at, .until = good_until (ctx, at), .signer = *signer};
}
