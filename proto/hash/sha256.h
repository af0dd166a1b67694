/* sha256: SHA-256 of bytes, or of several parts one after another.
 *
 * OpenSSL looks the algorithm up for each EVP_sha256() or SHA256(), which costs as much as hashing
 * some hundred bytes (1.1 to 1.4 us for 600 of them, 0.7 to 0.8 without); here it is looked up once
 * per process. Pure but for that; any thread may call. Aborts when OpenSSL has no SHA-256 or no
 * memory. */
#ifndef NUI_HASH_SHA256_H
#define NUI_HASH_SHA256_H

#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256 (const void *bytes, size_t len, uint8_t out[SHA256_BYTES]);

/* The context is the caller's: free it with EVP_MD_CTX_free where it never comes to sha256_end. */
EVP_MD_CTX *sha256_begin (void);
void sha256_add (EVP_MD_CTX *hash, const void *bytes, size_t len);
/* Its length as eight bytes and then the part, so that no two lists of parts are the same bytes. */
void sha256_add_part (EVP_MD_CTX *hash, const void *bytes, size_t len);
void sha256_end (EVP_MD_CTX *hash, uint8_t out[SHA256_BYTES]); /* frees it */

/* HMAC-SHA256 (RFC 2104) with a key of 32 bytes. */
void sha256_mac (const uint8_t key[SHA256_BYTES], const void *bytes, size_t len,
                 uint8_t out[SHA256_BYTES]);

#endif
