#include "proto/hash/sha256.h"

#include <openssl/crypto.h>
#include <openssl/params.h>
#include <stdlib.h>

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
/* What a process keeps: they never change. */
static EVP_MD *algorithm;
static EVP_MAC_CTX *mac;

static void fetch (void)
{
    char name[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string ("digest", name, 0), OSSL_PARAM_construct_end ()};
    EVP_MAC *hmac = EVP_MAC_fetch (NULL, "HMAC", NULL);
    algorithm = EVP_MD_fetch (NULL, name, NULL);
    mac = hmac ? EVP_MAC_CTX_new (hmac) : NULL;
    EVP_MAC_free (hmac);
    if (mac && EVP_MAC_CTX_set_params (mac, params) != 1)
        abort ();
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

void sha256_mac (const uint8_t key[SHA256_BYTES], const void *bytes, size_t len, uint8_t out[SHA256_BYTES])
{
    size_t out_len = 0;
    fetched ();
    EVP_MAC_CTX *one = mac ? EVP_MAC_CTX_dup (mac) : NULL;
    if (!one || EVP_MAC_init (one, key, SHA256_BYTES, NULL) != 1 || EVP_MAC_update (one, bytes, len) != 1 ||
        EVP_MAC_final (one, out, &out_len, SHA256_BYTES) != 1 || out_len != SHA256_BYTES)
        abort ();
    EVP_MAC_CTX_free (one);
}
