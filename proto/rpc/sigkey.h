/* sigkey: a key that is prepared once and then signs, or checks signatures, many times.
 *
 * A signature is over a domain string with its terminating NUL, then the bytes. The key's type
 * decides: Ed25519, or ECDSA with SHA-256. Preparing anew for each signature, as
 * EVP_DigestVerifyInit does, costs 15 us beside an ECDSA's 110. Not for several threads. */
#ifndef NUI_RPC_SIGKEY_H
#define NUI_RPC_SIGKEY_H

#include <openssl/evp.h>
#include <stdint.h>

#include "proto/base/err.h"

enum { SIGKEY_SIGNATURE_MAX = 512 };

struct sigkey;

struct sigkey *sigkey_create (EVP_PKEY *key); /* holds a reference; NULL when out of memory */
void sigkey_destroy (struct sigkey *sigkey);  /* NULL is a no-op */
/* ERR_UNSUPPORTED when the key is of neither type; ERR_INTERNAL when OpenSSL fails, as it does
 * without the private part. */
int sigkey_sign (struct sigkey *sigkey, const char *domain, const void *bytes, size_t len,
                 uint8_t signature_out[SIGKEY_SIGNATURE_MAX], size_t *signature_len_out,
                 struct err *err);
/* ERR_UNAUTHENTIC when the signature is not over this, ERR_UNSUPPORTED as above. */
int sigkey_verify (struct sigkey *sigkey, const char *domain, const void *bytes, size_t len,
                   const uint8_t *signature, size_t signature_len, struct err *err);

#endif
