/* signature: each signature is verified once in a process. The same job is verified by every metascheduler and
 * site whenever it is asked about, which is an eighth of what a world costs; the answer is a function of the key, the
 * signature and the bytes, and these are all that is looked up. */
#include "sim.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

enum { KNOWN = 4096 };

int __real_EVP_DigestVerify (EVP_MD_CTX *ctx, const unsigned char *signature, size_t signature_len,
                             const unsigned char *bytes, size_t len);
int __wrap_EVP_DigestVerify (EVP_MD_CTX *ctx, const unsigned char *signature, size_t signature_len,
                             const unsigned char *bytes, size_t len);

int __wrap_EVP_DigestVerify (EVP_MD_CTX *ctx, const unsigned char *signature, size_t signature_len,
                             const unsigned char *bytes, size_t len)
{
    static struct {
        uint8_t of[SHA256_DIGEST_LENGTH];
        bool good;
    } known[KNOWN];
    EVP_PKEY *key = EVP_PKEY_CTX_get0_pkey (EVP_MD_CTX_get_pkey_ctx (ctx));
    uint8_t of[SHA256_DIGEST_LENGTH], piece[3 * SHA256_DIGEST_LENGTH], public_key[256];
    size_t key_len;
    if (EVP_PKEY_get_octet_string_param (key, "pub", public_key, sizeof public_key, &key_len) != 1)
        return __real_EVP_DigestVerify (ctx, signature, signature_len, bytes, len);
    SHA256 (public_key, key_len, piece);
    SHA256 (signature, signature_len, piece + SHA256_DIGEST_LENGTH);
    SHA256 (bytes, len, piece + 2 * SHA256_DIGEST_LENGTH);
    SHA256 (piece, sizeof piece, of);
    uint32_t at = ((uint32_t)of[0] | (uint32_t)of[1] << 8) % KNOWN;
    if (!known[at].good || memcmp (known[at].of, of, sizeof of) != 0) {
        int rc = __real_EVP_DigestVerify (ctx, signature, signature_len, bytes, len);
        if (rc != 1)
            return rc;
        memcpy (known[at].of, of, sizeof of);
        known[at].good = true;
    }
    return 1;
}
