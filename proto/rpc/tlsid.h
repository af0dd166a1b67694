/* tlsid: who is at the other end. TLS 1.3 contexts with mutual authentication, reloadable
 * certificates and CRL, and the identity in a certificate's SAN URI `nui://<grid>/<kind>/<name>`.
 *
 * A private key file that group or others may read is refused. Certificates must carry exactly one
 * nui:// URI of this grid. Both roles check chain, validity, CRL and URI. */
#ifndef NUI_RPC_TLSID_H
#define NUI_RPC_TLSID_H

#include <openssl/ssl.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum principal_kind {
    PRINCIPAL_NONE = 0,
    PRINCIPAL_USER,
    PRINCIPAL_SITE,
    PRINCIPAL_META,
    PRINCIPAL_BANK,
    PRINCIPAL_OPERATOR,
    PRINCIPAL_AGENCY, /* a funding agency */
    PRINCIPAL_GATE,   /* asks for users by their delegation (gatedeleg.h) */
    PRINCIPAL_NODE,   /* another host of a site: SITE.NODE */
};

enum { PRINCIPAL_NAME_MAX = 64, PRINCIPAL_URI_MAX = 256 };

struct principal {
    enum principal_kind kind;
    char grid[PRINCIPAL_NAME_MAX];
    char name[PRINCIPAL_NAME_MAX];
};

int principal_parse (const char *uri, struct principal *out, struct err *err);
char *principal_uri (const struct principal *p, char buf[PRINCIPAL_URI_MAX]);
const char *principal_kind_name (enum principal_kind kind); /* "user", "site" … */
/* From the certificate's SAN; exactly one nui:// URI. */
int principal_of_cert (X509 *cert, struct principal *out, struct err *err);

struct tlsid_config {
    const char *ca_file;   /* PEM, the grid's CA(s) */
    const char *cert_file; /* PEM, leaf first, then intermediates */
    const char *key_file;  /* PEM, mode 0600 or refused */
    const char *crl_file;  /* PEM; NULL: none is checked (only tools do that) */
};

struct tlsid;
struct chainmemo;
struct sigkey;

struct tlsid *tlsid_create (const struct tlsid_config *config, struct err *err);
/* Of a program that speaks with nobody but its own machine: a key of its own for as long as it runs, a certificate that
 * nobody but it believes, no files. */
struct tlsid *tlsid_create_alone (const struct principal *self, struct err *err);
void tlsid_destroy (struct tlsid *id);
/* Re-reads files whose mtime, size or inode changed; on failure what was loaded stays. New
 * connections use the new ones, the CRL also cuts connections that are open: see rpcserver. */
int tlsid_reload (struct tlsid *id, struct err *err);
const struct principal *tlsid_self (const struct tlsid *id);
SSL_CTX *tlsid_server_ctx (struct tlsid *id);
SSL_CTX *tlsid_client_ctx (struct tlsid *id);
/* Trust store with CRL for checks outside TLS (envelopes); owned by id, changes on reload. */
X509_STORE *tlsid_store (struct tlsid *id);
/* Chains that this store has found good; owned by id, a new one on reload. */
struct chainmemo *tlsid_chainmemo (struct tlsid *id);
struct sigkey *tlsid_sigkey (struct tlsid *id);   /* of its key; owned by id, a new one on reload */
STACK_OF (X509) * tlsid_chain (struct tlsid *id); /* leaf first; owned by id */
/* When its own certificate ends, and the first of its revocation lists (0: it has none). tlsend.c */
time_us tlsid_cert_end (struct tlsid *id);
time_us tlsid_crl_end (struct tlsid *id);
time_us tlsend_moment (const ASN1_TIME *text); /* 0 when it is absent or cannot be told */

#endif
