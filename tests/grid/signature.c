/* signature: each signature is verified once in a process. The same job is verified by every metascheduler and
 * site whenever it is asked about, which is an eighth of what a world costs; the answer is a function of the key, the
 * signature and the digest, and all of them are compared. Only a good one is remembered. */
#include "sim.h"

#include <openssl/evp.h>

enum { KNOWN = 64, SIGNATURE_MAX = 80, DIGEST_LEN = 32 };

int __real_EVP_PKEY_verify (EVP_PKEY_CTX *ctx, const unsigned char *signature, size_t signature_len,
                            const unsigned char *digest, size_t len);
int __wrap_EVP_PKEY_verify (EVP_PKEY_CTX *ctx, const unsigned char *signature, size_t signature_len,
                            const unsigned char *digest, size_t len);

static struct known {
    EVP_PKEY *key; /* a reference; NULL: empty */
    uint8_t signature[SIGNATURE_MAX], digest[DIGEST_LEN];
    size_t signature_len;
} known[KNOWN];

static void keep (struct known *k, EVP_PKEY *key, const unsigned char *signature,
                  size_t signature_len, const unsigned char *digest)
{
    if (signature_len > SIGNATURE_MAX || EVP_PKEY_up_ref (key) != 1)
        return;
    EVP_PKEY_free (k->key);
    k->key = key;
    memcpy (k->digest, digest, DIGEST_LEN);
    memcpy (k->signature, signature, signature_len);
    k->signature_len = signature_len;
}

int __wrap_EVP_PKEY_verify (EVP_PKEY_CTX *ctx, const unsigned char *signature, size_t signature_len,
                            const unsigned char *digest, size_t len)
{
    CHECK (len == DIGEST_LEN, "a digest of %zu bytes", len);
    EVP_PKEY *key = EVP_PKEY_CTX_get0_pkey (ctx);
    struct known *k =
        &known[signature_len > 16 ? signature[16] % KNOWN : 0]; /* well inside its first number */
    if (k->key && k->signature_len == signature_len &&
        memcmp (k->signature, signature, signature_len) == 0 &&
        memcmp (k->digest, digest, len) == 0 && (k->key == key || EVP_PKEY_eq (k->key, key) == 1))
        return 1;
    int rc = __real_EVP_PKEY_verify (ctx, signature, signature_len, digest, len);
    if (rc == 1)
        keep (k, key, signature, signature_len, digest);
    return rc;
}

void signature_forget (void)
{
    for (int i = 0; i < KNOWN; i++) {
        EVP_PKEY_free (known[i].key);
        known[i] = (struct known){0};
    }
}
