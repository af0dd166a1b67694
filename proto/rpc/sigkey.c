/* sigkey: one prepared OpenSSL context per key and direction. envelope.c, chainmemo.c and
 * tlsid.c call it. It checks a signature and nothing else: whose the key is, and whether it
 * still counts, others have found out. */
#include "proto/rpc/sigkey.h"

#include <openssl/err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hash/sha256.h"

struct sigkey {
    EVP_PKEY *key;
    EVP_PKEY_CTX *sign, *verify; /* of ECDSA; NULL until first used */
    bool is_ec;
};

struct sigkey *sigkey_create (EVP_PKEY *key)
{
    struct sigkey *sigkey = calloc (1, sizeof *sigkey);
    if (!sigkey || EVP_PKEY_up_ref (key) != 1) {
        free (sigkey);
        return NULL;
    }
    sigkey->key = key;
    sigkey->is_ec = EVP_PKEY_is_a (key, "EC");
    return sigkey;
}

void sigkey_destroy (struct sigkey *sigkey)
{
    if (!sigkey)
        return;
    EVP_PKEY_CTX_free (sigkey->sign);
    EVP_PKEY_CTX_free (sigkey->verify);
    EVP_PKEY_free (sigkey->key);
    free (sigkey);
}

/* The domain comes before the bytes, its terminating NUL with it. */
static void digest_of (const char *domain, const void *bytes, size_t len, uint8_t out[SHA256_BYTES])
{
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add (hash, domain, strlen (domain) + 1);
    sha256_add (hash, bytes, len);
    sha256_end (hash, out);
}

/* The same as one piece: Ed25519 has a hash of its own and takes the bytes themselves. */
static uint8_t *signed_bytes (const char *domain, const void *bytes, size_t len, size_t *out_len)
{
    size_t before = strlen (domain) + 1;
    uint8_t *out = malloc (before + len);
    if (!out)
        return NULL;
    memcpy (out, domain, before);
    if (len > 0)
        memcpy (out + before, bytes, len);
    *out_len = before + len;
    return out;
}

static EVP_PKEY_CTX *prepare (EVP_PKEY *key, int (*init) (EVP_PKEY_CTX *), EVP_PKEY_CTX **kept)
{
    if (*kept)
        return *kept;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey (NULL, key, NULL);
    if (ctx && init (ctx) == 1)
        return *kept = ctx;
    EVP_PKEY_CTX_free (ctx);
    return NULL;
}

static int supported (const struct sigkey *sigkey, struct err *err)
{
    if (sigkey->is_ec || EVP_PKEY_is_a (sigkey->key, "ED25519"))
        return 0;
    return err_set (err, ERR_UNSUPPORTED, "signature: the key is neither Ed25519 nor ECDSA");
}

static bool ec_sign (struct sigkey *k, const char *domain, const void *bytes, size_t len,
                     uint8_t *out, size_t *out_len)
{
    uint8_t digest[SHA256_BYTES];
    EVP_PKEY_CTX *ctx = prepare (k->key, EVP_PKEY_sign_init, &k->sign);
    digest_of (domain, bytes, len, digest);
    return ctx && EVP_PKEY_sign (ctx, out, out_len, digest, sizeof digest) == 1;
}

static bool ed_sign (struct sigkey *k, const char *domain, const void *bytes, size_t len,
                     uint8_t *out, size_t *out_len)
{
    size_t all = 0;
    uint8_t *whole = signed_bytes (domain, bytes, len, &all);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new ();
    bool ok = whole && ctx && EVP_DigestSignInit (ctx, NULL, NULL, NULL, k->key) == 1 &&
              EVP_DigestSign (ctx, out, out_len, whole, all) == 1;
    EVP_MD_CTX_free (ctx);
    free (whole);
    return ok;
}

int sigkey_sign (struct sigkey *sigkey, const char *domain, const void *bytes, size_t len,
                 uint8_t signature_out[SIGKEY_SIGNATURE_MAX], size_t *signature_len_out,
                 struct err *err)
{
    int rc = supported (sigkey, err);
    if (rc < 0)
        return rc;
    *signature_len_out = SIGKEY_SIGNATURE_MAX;
    bool ok = (sigkey->is_ec ? ec_sign : ed_sign) (sigkey, domain, bytes, len, signature_out,
                                                   signature_len_out);
    ERR_clear_error ();
    return ok ? 0 : err_set (err, ERR_INTERNAL, "signature: signing failed");
}

static bool ec_verify (struct sigkey *k, const char *domain, const void *bytes, size_t len,
                       const uint8_t *signature, size_t signature_len)
{
    uint8_t digest[SHA256_BYTES];
    EVP_PKEY_CTX *ctx = prepare (k->key, EVP_PKEY_verify_init, &k->verify);
    digest_of (domain, bytes, len, digest);
    return ctx && EVP_PKEY_verify (ctx, signature, signature_len, digest, sizeof digest) == 1;
}

static bool ed_verify (struct sigkey *k, const char *domain, const void *bytes, size_t len,
                       const uint8_t *signature, size_t signature_len)
{
    size_t all = 0;
    uint8_t *whole = signed_bytes (domain, bytes, len, &all);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new ();
    bool ok = whole && ctx && EVP_DigestVerifyInit (ctx, NULL, NULL, NULL, k->key) == 1 &&
              EVP_DigestVerify (ctx, signature, signature_len, whole, all) == 1;
    EVP_MD_CTX_free (ctx);
    free (whole);
    return ok;
}

int sigkey_verify (struct sigkey *sigkey, const char *domain, const void *bytes, size_t len,
                   const uint8_t *signature, size_t signature_len, struct err *err)
{
    int rc = supported (sigkey, err);
    if (rc < 0)
        return rc;
    bool ok = (sigkey->is_ec ? ec_verify : ed_verify) (sigkey, domain, bytes, len, signature,
                                                       signature_len);
    ERR_clear_error ();
    return ok ? 0 : err_set (err, ERR_UNAUTHENTIC, "the signature does not fit the content");
}
