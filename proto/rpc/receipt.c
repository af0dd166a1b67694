/* A receipt of something signed: made by nui-meta when it takes a job or leave to go on with one, read by envelope.c where
 * a signer's certificate has ended. Nothing that the envelope says of moments is looked at here. */
#include "proto/rpc/receipt.h"

#include <string.h>

#include "proto/hash/sha256.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbguard.h"

typedef Nui__Common__V1__Envelope Envelope;
typedef Nui__Common__V1__Receipt Receipt;

/* Of all that says who signed what; what is added on the way (hand-overs, delegations, which of an array) is no part. */
static void receipt_hash (const Envelope *envelope, uint8_t out[SHA256_BYTES])
{
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add_part (hash, envelope->body.data, envelope->body.len);
    sha256_add_part (hash, envelope->signature.data, envelope->signature.len);
    sha256_add_part (hash, envelope->gate_delegation.data, envelope->gate_delegation.len);
    for (size_t i = 0; i < envelope->n_chain; i++)
        sha256_add_part (hash, envelope->chain[i].data, envelope->chain[i].len);
    sha256_end (hash, out);
}

int receipt_make (struct tlsid *signer, const Envelope *envelope, time_us now,
                  ProtobufCBinaryData *out, struct err *err)
{
    Receipt r = NUI__COMMON__V1__RECEIPT__INIT;
    uint8_t hash[SHA256_BYTES], body[PRINCIPAL_NAME_MAX + SHA256_BYTES + 32];
    Envelope *sealed = NULL;
    receipt_hash (envelope, hash);
    r.grid = (char *)(uintptr_t)tlsid_self (signer)->grid;
    r.hash = (ProtobufCBinaryData){sizeof hash, hash};
    r.received_us = now;
    size_t len = nui__common__v1__receipt__pack (&r, body);
    int rc = envelope_sign_for (signer, RECEIPT_DOMAIN, body, len, &sealed, err);
    if (rc < 0)
        return rc;
    envelope_pack (sealed, out);
    envelope_free (sealed);
    return 0;
}

/* What it says, after its signature was found good. */
static int receipt_check (const Receipt *r, const struct principal *signer,
                          const Envelope *envelope, time_us at, struct err *err)
{
    uint8_t hash[SHA256_BYTES];
    char uri[PRINCIPAL_URI_MAX];
    if (signer->kind != PRINCIPAL_META)
        return err_set (err, ERR_UNAUTHENTIC, "%s signed it, not a metascheduler",
                        principal_uri (signer, uri));
    receipt_hash (envelope, hash);
    if (r->hash.len != sizeof hash || memcmp (r->hash.data, hash, sizeof hash) != 0 ||
        strcmp (r->grid, signer->grid) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "it is for something else");
    if (r->received_us > at || r->received_us < at - RECEIPT_MAX_US)
        return err_set (err, ERR_UNAUTHENTIC, "it is of another time than the last %d days",
                        (int)(RECEIPT_MAX_US / US_PER_S / 86400));
    return 0;
}

int receipt_read (struct tlsid *id, const Envelope *envelope, time_us at, time_us *received_out,
                  struct err *err)
{
    struct principal signer;
    Envelope *sealed = NULL;
    Receipt *r = NULL;
    const ProtobufCBinaryData *bytes = &envelope->receipt;
    if (bytes->len == 0 || bytes->len > RECEIPT_BYTES_MAX)
        return err_set (err, ERR_UNAUTHENTIC, "there is none, or it is over %d bytes",
                        RECEIPT_BYTES_MAX);
    sealed = (Envelope *)pbguard_unpack (&nui__common__v1__envelope__descriptor, bytes->data,
                                         bytes->len, err);
    int rc = sealed ? envelope_verify_since (id, RECEIPT_DOMAIN, sealed, at, 0, &signer, err)
                    : err->code;
    if (rc == 0) {
        r = (Receipt *)pbguard_unpack (&nui__common__v1__receipt__descriptor, sealed->body.data,
                                       sealed->body.len, err);
        rc = r ? receipt_check (r, &signer, envelope, at, err) : err->code;
    }
    if (rc == 0)
        *received_out = r->received_us;
    if (r)
        nui__common__v1__receipt__free_unpacked (r, NULL);
    envelope_free (sealed);
    return rc;
}
