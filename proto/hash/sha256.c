/* sha256: digests and a MAC over OpenSSL's EVP, with the algorithm fetched once per process.
 * Audit, signatures, signed jobs and delegations call it. It knows nothing of what it hashes,
 * and wipes the padded key of a MAC after use. */
#include "proto/hash/sha256.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum { MAC_BLOCK = 64 }; /* what SHA-256 takes at a time */

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
static EVP_MD *algorithm; /* what a process keeps: it never changes */

static void fetch (void)
{
    algorithm = EVP_MD_fetch (NULL, "SHA256", NULL);
}

static const EVP_MD *fetched (void)
{
    if (CRYPTO_THREAD_run_once (&once, fetch) != 1 || !algorithm)
        abort ();
    return algorithm;
}

void sha256 (const void *bytes, size_t len, uint8_t out[SHA256_BYTES])
{
    if (EVP_Digest (bytes, len, out, NULL, fetched (), NULL) != 1)
        abort ();
}

EVP_MD_CTX *sha256_begin (void)
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new ();
    if (!hash || EVP_DigestInit_ex2 (hash, fetched (), NULL) != 1)
        abort ();
    return hash;
}

void sha256_add (EVP_MD_CTX *hash, const void *bytes, size_t len)
{
    if (EVP_DigestUpdate (hash, bytes, len) != 1)
        abort ();
}

void sha256_add_part (EVP_MD_CTX *hash, const void *bytes, size_t len)
{
    uint64_t before = len;
    sha256_add (hash, &before, sizeof before);
    sha256_add (hash, bytes, len);
}

void sha256_end (EVP_MD_CTX *hash, uint8_t out[SHA256_BYTES])
{
    if (EVP_DigestFinal_ex (hash, out, NULL) != 1)
        abort ();
    EVP_MD_CTX_free (hash);
}

/* RFC 2104, of two digests: OpenSSL's takes several times as long to set up as it works. */
void sha256_mac (const uint8_t key[SHA256_BYTES], const void *bytes, size_t len,
                 uint8_t out[SHA256_BYTES])
{
    uint8_t pad[MAC_BLOCK];
    EVP_MD_CTX *hash = EVP_MD_CTX_new ();
    for (int outer = 0; outer < 2; outer++) {
        memset (pad, outer ? 0x5c : 0x36, sizeof (pad));
        for (int i = 0; i < SHA256_BYTES; i++)
            pad[i] ^= key[i];
        if (!hash || EVP_DigestInit_ex2 (hash, fetched (), NULL) != 1)
            abort ();
        sha256_add (hash, pad, sizeof (pad));
        sha256_add (hash, outer ? out : bytes, outer ? SHA256_BYTES : len);
        if (EVP_DigestFinal_ex (hash, out, NULL) != 1)
            abort ();
    }
    OPENSSL_cleanse (pad, sizeof (pad));
    EVP_MD_CTX_free (hash);
}
