/* tlsreason: one sentence for each way in which TLS or a certificate is refused. */
#ifndef NUI_RPC_TLSREASON_H
#define NUI_RPC_TLSREASON_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "proto/base/err.h"

/* Why our side refused a chain; verify is an X509_V_ code. who: "the server's certificate". */
int tlsreason_of_verify (long verify, const char *who, struct err *err);

/* Whether it is for want of a good revocation list here, which may come: the chain itself was not found bad. */
bool tlsreason_unchecked (long verify);

/* Why a TLS operation failed, from OpenSSL's error queue (which it empties). peer: "server" or
 * "client", the other side; own: our leaf certificate, to say when it ended (may be NULL).
 * ERR_UNAUTHENTIC for anything about certificates, ERR_UNAVAILABLE otherwise. */
int tlsreason_of_ssl (const SSL *ssl, const char *peer, X509 *own, struct err *err);

#endif
