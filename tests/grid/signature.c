/* signature: each signature is verified once in a process. The same job is verified by every metascheduler and
 * site whenever it is asked about, which is an eighth of what a world costs; the answer is a function of the key, the
 * signature and the bytes, and all of them are compared. Only a good one is remembered. */
#include "sim.h"

#include <openssl/evp.h>

enum { KNOWN = 64, SIGNATURE_MAX = 80 };

int __real_EVP_DigestVerifyInit (EVP_MD_CTX *ctx, EVP_PKEY_CTX **out, const EVP_MD *digest, ENGINE *engine,
                                 EVP_PKEY *key);
int __wrap_EVP_DigestVerifyInit (EVP_MD_CTX *ctx, EVP_PKEY_CTX **out, const EVP_MD *digest, ENGINE *engine,
                                 EVP_PKEY *key);
int __real_EVP_DigestVerify (EVP_MD_CTX *ctx, const unsigned char *signature, size_t signature_len,
                             const unsigned char *bytes, size_t len);
int __wrap_EVP_DigestVerify (EVP_MD_CTX *ctx, const unsigned char *signature, size_t signature_len,
                             const unsigned char *bytes, size_t len);

/* What was asked for last; done only when it turns out to be needed. */
static struct {
    EVP_MD_CTX *ctx;
    EVP_PKEY_CTX **out;
    const EVP_MD *digest;
    ENGINE *engine;
    EVP_PKEY *key;
} begun;

int __wrap_EVP_DigestVerifyInit (EVP_MD_CTX *ctx, EVP_PKEY_CTX **out, const EVP_MD *digest, ENGINE *engine,
                                 EVP_PKEY *key)
{
    begun.ctx = ctx;
    begun.out = out;
    begun.digest = digest;
    begun.engine = engine;
    begun.key = key;
    return 1;
}

static struct known {
    EVP_PKEY *key; /* a reference; NULL: empty */
    uint8_t signature[SIGNATURE_MAX];
    uint8_t *bytes;
    size_t signature_len, len;
} known[KNOWN];

static void keep (struct known *k, const unsigned char *signature, size_t signature_len,
                  const unsigned char *bytes, size_t len)
{
    if (signature_len > SIGNATURE_MAX || EVP_PKEY_up_ref (begun.key) != 1)
        return;
    EVP_PKEY_free (k->key);
    k->key = begun.key;
    k->bytes = realloc (k->bytes, len);
    if (!k->bytes)
        abort ();
    memcpy (k->bytes, bytes, len);
    memcpy (k->signature, signature, signature_len);
    k->signature_len = signature_len;
    k->len = len;
}

int __wrap_EVP_DigestVerify (EVP_MD_CTX *ctx, const unsigned char *signature, size_t signature_len,
                             const unsigned char *bytes, size_t len)
{
    CHECK (ctx == begun.ctx, "a verification that was not begun");
    struct known *k = &known[signature_len > 16 ? signature[16] % KNOWN : 0]; /* well inside its first number */
    if (k->key && k->len == len && k->signature_len == signature_len &&
        memcmp (k->signature, signature, signature_len) == 0 && memcmp (k->bytes, bytes, len) == 0 &&
        (k->key == begun.key || EVP_PKEY_eq (k->key, begun.key) == 1))
        return 1;
    int rc = __real_EVP_DigestVerifyInit (ctx, begun.out, begun.digest, begun.engine, begun.key);
    if (rc == 1)
        rc = __real_EVP_DigestVerify (ctx, signature, signature_len, bytes, len);
    if (rc == 1)
        keep (k, signature, signature_len, bytes, len);
    return rc;
}

void signature_forget (void)
{
    for (int i = 0; i < KNOWN; i++) {
        EVP_PKEY_free (known[i].key);
        free (known[i].bytes);
        known[i] = (struct known){0};
    }
}
