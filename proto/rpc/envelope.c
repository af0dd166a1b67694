/* envelope: signs with the program's key, and verifies a signature with the chain that came with
 * it. Jobs, quotes, delegations and the bank's blocks pass through here. Nothing of the body may
 * be believed before envelope_verify has said whose it is. */
#include "proto/rpc/envelope.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/rpc/chainmemo.h"
#include "proto/rpc/gatedeleg.h"
#include "proto/rpc/receipt.h"
#include "proto/rpc/sigkey.h"
#include "proto/rpc/tlsreason.h"

enum { CHAIN_MAX = 8, CERT_BYTES_MAX = 16384 };

static bool copy_bytes (ProtobufCBinaryData *out, const void *bytes, size_t len)
{
    out->data = malloc (len > 0 ? len : 1);
    if (!out->data)
        return false;
    if (len > 0)
        memcpy (out->data, bytes, len);
    out->len = len;
    return true;
}

static bool sign_into (struct sigkey *key, const char *domain, const void *body, size_t len,
                       ProtobufCBinaryData *out, struct err *err)
{
    uint8_t signature[SIGKEY_SIGNATURE_MAX];
    size_t n;

    return sigkey_sign (key, domain, body, len, signature, &n, err) == 0 &&
           copy_bytes (out, signature, n);
}

static bool chain_into (STACK_OF (X509) * chain, Nui__Common__V1__Envelope *e)
{
    int count = sk_X509_num (chain);

    if (count > CHAIN_MAX)
        return false;
    e->chain = calloc ((size_t)count, sizeof (e->chain[0]));
    if (!e->chain)
        return false;
    for (int i = 0; i < count; i++) {
        unsigned char *der = NULL;
        int len = i2d_X509 (sk_X509_value (chain, i), &der);
        bool ok = len > 0 && copy_bytes (&e->chain[i], der, (size_t)len);
        OPENSSL_free (der);
        if (!ok)
            return false;
        e->n_chain = (size_t)i + 1;
    }
    return true;
}

int envelope_sign_for (struct tlsid *signer, const char *domain, const void *body, size_t body_len,
                       Nui__Common__V1__Envelope **out, struct err *err)
{
    struct err why = {0};

    if (body_len > ENVELOPE_BODY_MAX)
        return err_set (err, ERR_LIMIT, "envelope: %zu bytes, at most %d can be signed", body_len,
                        ENVELOPE_BODY_MAX);
    Nui__Common__V1__Envelope *e = malloc (sizeof (*e));
    if (!e)
        return err_set (err, ERR_NOMEM, "envelope: out of memory");
    nui__common__v1__envelope__init (e);
    if (!sign_into (tlsid_sigkey (signer), domain, body, body_len, &e->signature, &why) ||
        !copy_bytes (&e->body, body, body_len) || !chain_into (tlsid_chain (signer), e)) {
        ERR_clear_error ();
        envelope_free (e);
        return why.code == ERR_UNSUPPORTED
                   ? err_set (err, why.code, "%s", why.text)
                   : err_set (err, ERR_INTERNAL, "envelope: signing failed");
    }
    *out = e;
    return 0;
}

int envelope_sign (struct tlsid *signer, const void *body, size_t body_len,
                   Nui__Common__V1__Envelope **out, struct err *err)
{
    return envelope_sign_for (signer, ENVELOPE_JOB, body, body_len, out, err);
}

void envelope_free (Nui__Common__V1__Envelope *envelope)
{
    if (envelope)
        nui__common__v1__envelope__free_unpacked (envelope, NULL);
}

void envelope_pack (const Nui__Common__V1__Envelope *envelope, ProtobufCBinaryData *out)
{
    out->len = nui__common__v1__envelope__get_packed_size (envelope);
    out->data = malloc (out->len);
    if (!out->data)
        abort ();
    nui__common__v1__envelope__pack (envelope, out->data);
}

static X509 *cert_of (const ProtobufCBinaryData *der)
{
    const unsigned char *p = der->data;
    X509 *cert =
        der->len > 0 && der->len <= CERT_BYTES_MAX ? d2i_X509 (NULL, &p, (long)der->len) : NULL;

    if (cert && p != der->data + der->len) {
        X509_free (cert);
        cert = NULL;
    }
    ERR_clear_error ();
    return cert;
}

/* What is made of a chain. */
struct look {
    time_us received;   /* when somebody trusted had the message; 0: nobody says so */
    bool revoked_later; /* than the moment that is asked about */
    bool ended;         /* it is the signer's own certificate that is refused, for its end */
    bool excused;       /* … and is not, for what was received */
};

/* The signer's own certificate has ended: was it good when the message was received? Issuers are not excused. */
static int verify_ended (X509_STORE_CTX *ctx, struct look *look)
{
    X509 *leaf = X509_STORE_CTX_get_current_cert (ctx);
    time_us from = tlsend_moment (X509_get0_notBefore (leaf)),
            until = tlsend_moment (X509_get0_notAfter (leaf));

    look->ended = X509_STORE_CTX_get_error_depth (ctx) == 0;
    look->excused = look->ended && from > 0 && from <= look->received && look->received < until;
    return look->excused;
}

/* The CRL in hand is the newest one, the moment may be years ago: a list issued later than that
 * moment is the better list, and a revocation dated after it does not undo the signature. */
static int verify_at (int ok, X509_STORE_CTX *ctx)
{
    time_t at = X509_VERIFY_PARAM_get_time (X509_STORE_CTX_get0_param (ctx));
    struct look *look = X509_STORE_CTX_get_app_data (ctx);
    X509_REVOKED *revoked = NULL;

    if (ok)
        return 1;
    switch (X509_STORE_CTX_get_error (ctx)) {
    case X509_V_ERR_CRL_NOT_YET_VALID:
        return 1;
    case X509_V_ERR_CERT_REVOKED:
        look->revoked_later =
            X509_CRL_get0_by_cert (X509_STORE_CTX_get0_current_crl (ctx), &revoked,
                                   X509_STORE_CTX_get_current_cert (ctx)) == 1 &&
            ASN1_TIME_cmp_time_t (X509_REVOKED_get0_revocationDate (revoked), at) == 1;
        return look->revoked_later;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return verify_ended (ctx, look);
    default:
        return 0;
    }
}

/* Checks the chain and says who its leaf names. What was good without an exception is remembered. */
static int verify_chain (struct tlsid *id, STACK_OF (X509) * chain, time_us at,
                         const struct chainmemo_key *key, struct look *look,
                         struct principal *signer_out, struct err *err)
{
    X509 *leaf = sk_X509_value (chain, 0);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new ();
    struct err why;
    int rc = 0;

    if (!ctx || !X509_STORE_CTX_init (ctx, tlsid_store (id), leaf, chain) ||
        !X509_STORE_CTX_set_app_data (ctx, look)) {
        rc = err_set (err, ERR_NOMEM, "envelope: out of memory");
        goto out;
    }
    X509_VERIFY_PARAM_set_time (X509_STORE_CTX_get0_param (ctx), (time_t)(at / US_PER_S));
    X509_STORE_CTX_set_verify_cb (ctx, verify_at);
    if (X509_verify_cert (ctx) != 1) {
        rc = tlsreason_of_verify (X509_STORE_CTX_get_error (ctx), "the signer's certificate", err);
        if (tlsreason_unchecked (X509_STORE_CTX_get_error (ctx)))
            rc = err->code = ERR_UNAVAILABLE;
        goto out;
    }
    if (principal_of_cert (leaf, signer_out, &why) < 0) {
        rc = err_set (err, ERR_UNAUTHENTIC, "the signer's %s", why.text);
        goto out;
    }
    if (!look->revoked_later && !look->excused)
        chainmemo_put (tlsid_chainmemo (id), key, at, ctx, signer_out);
out:
    ERR_clear_error ();
    X509_STORE_CTX_free (ctx);
    return rc;
}

/* The chain as OpenSSL has it; NULL, with err filled, when a certificate is malformed. */
static STACK_OF (X509) * chain_of (const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    STACK_OF (X509) *chain = sk_X509_new_null ();

    for (size_t i = 0; i < envelope->n_chain; i++) {
        X509 *cert = cert_of (&envelope->chain[i]);
        if (!cert || !chain || !sk_X509_push (chain, cert)) {
            X509_free (cert);
            sk_X509_pop_free (chain, X509_free);
            err_set (err, ERR_UNAUTHENTIC, "certificate %zu of the signer's chain is malformed",
                     i + 1);
            return NULL;
        }
    }
    return chain;
}

/* look: since when the certificate may have ended; whether it has, afterwards. */
static int verify (struct tlsid *id, const char *domain, const Nui__Common__V1__Envelope *envelope,
                   time_us at, struct look *look, struct principal *signer_out, struct err *err)
{
    STACK_OF (X509) *chain = NULL;
    struct principal signer;
    struct chainmemo_key digest;
    struct sigkey *key, *own = NULL;
    int rc = 0;

    if (!envelope || envelope->n_chain == 0 || envelope->n_chain > CHAIN_MAX ||
        envelope->body.len > ENVELOPE_BODY_MAX || envelope->signature.len == 0 ||
        envelope->signature.len > SIGKEY_SIGNATURE_MAX)
        return err_set (err, ERR_UNAUTHENTIC, "it is not signed, or over a size limit");
    chainmemo_key (envelope, &digest);
    key = chainmemo_get (tlsid_chainmemo (id), &digest, at, &signer);
    if (!key) {
        if (!(chain = chain_of (envelope, err)))
            return err->code;
        if ((rc = verify_chain (id, chain, at, &digest, look, &signer, err)) < 0)
            goto out;
        EVP_PKEY *public = X509_get0_pubkey (sk_X509_value (chain, 0));
        if (!public) {
            rc = err_set (err, ERR_UNAUTHENTIC, "the signer's certificate has no usable key");
            goto out;
        }
        if (!(key = own = sigkey_create (public))) {
            rc = err_set (err, ERR_NOMEM, "envelope: out of memory");
            goto out;
        }
    }
    if (strcmp (signer.grid, tlsid_self (id)->grid) != 0) {
        rc = err_set (err, ERR_UNAUTHENTIC, "the signer belongs to grid %s, this is %s",
                      signer.grid, tlsid_self (id)->grid);
        goto out;
    }
    if ((rc = sigkey_verify (key, domain, envelope->body.data, envelope->body.len,
                             envelope->signature.data, envelope->signature.len, err)) < 0)
        goto out;
    *signer_out = signer;
out:
    sigkey_destroy (own);
    sk_X509_pop_free (chain, X509_free);
    return rc;
}

int envelope_verify_since (struct tlsid *id, const char *domain,
                           const Nui__Common__V1__Envelope *envelope, time_us at, time_us received,
                           struct principal *signer_out, struct err *err)
{
    struct look look = {.received = received};
    return verify (id, domain, envelope, at, &look, signer_out, err);
}

int envelope_verify_for (struct tlsid *id, const char *domain,
                         const Nui__Common__V1__Envelope *envelope, time_us at,
                         struct principal *signer_out, struct err *err)
{
    struct look look = {0};
    struct err why = {0};
    time_us received = 0;
    int rc = verify (id, domain, envelope, at, &look, signer_out, err);

    if (rc == 0 || !look.ended || envelope->receipt.len == 0)
        return rc;
    if (receipt_read (id, envelope, at, &received, &why) < 0)
        return err_set (err, why.code == ERR_UNAVAILABLE ? why.code : ERR_UNAUTHENTIC,
                        "the signer's certificate has expired, and its receipt is not good: %.300s",
                        why.text);
    return envelope_verify_since (id, domain, envelope, at, received, signer_out, err);
}

/* The delegation came with the job: what was received was both. */
static int gate_verify (struct tlsid *id, const Nui__Common__V1__Envelope *envelope,
                        const struct principal *gate, time_us at, struct principal *signer_out,
                        struct err *err)
{
    struct err why = {0};
    time_us received = 0;
    int rc = gatedeleg_job (id, envelope, gate, at, 0, signer_out, err);

    if (rc != ERR_UNAUTHENTIC || envelope->receipt.len == 0 ||
        receipt_read (id, envelope, at, &received, &why) < 0)
        return rc;
    return gatedeleg_job (id, envelope, gate, at, received, signer_out, err);
}

int envelope_verify (struct tlsid *id, const Nui__Common__V1__Envelope *envelope, time_us at,
                     struct principal *signer_out, struct err *err)
{
    struct principal signer;
    int rc = envelope_verify_for (id, ENVELOPE_JOB, envelope, at, &signer, err);
    if (rc == 0 && signer.kind == PRINCIPAL_GATE)
        return gate_verify (id, envelope, &signer, at, signer_out, err);
    if (rc == 0)
        *signer_out = signer;
    return rc;
}
