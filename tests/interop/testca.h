/* testca: a certificate authority for tests, in a temporary folder. ECDSA P-256 throughout.
 *
 * Writes <dir>/<ca>.pem (the CA), <dir>/<ca>.crl and, per certificate, <dir>/<name>.pem and
 * <dir>/<name>.key (mode 0600). Any failure aborts: it is a test's scaffolding. */
#ifndef NUI_TESTS_INTEROP_TESTCA_H
#define NUI_TESTS_INTEROP_TESTCA_H

#include <stdbool.h>
#include <time.h>

#include "proto/rpc/tlsid.h"

struct testca;

struct testca_cert {
    const char *name;  /* of the files */
    const char *uri;   /* SAN URI; NULL: none */
    const char *uri2;  /* a second one; NULL: none */
    time_t not_before; /* relative to now, in seconds; both 0: yesterday to next week */
    time_t not_after;
    bool server_only;   /* extended key usage serverAuth alone */
    bool dns_localhost; /* SAN also DNS:localhost and IP:127.0.0.1, which grpcio wants */
    bool ed25519;
};

struct testca *testca_create (const char *dir, const char *ca_name);
/* One whose own certificate ends then (relative to now, in seconds). */
struct testca *testca_create_until (const char *dir, const char *ca_name, time_t not_after);
void testca_destroy (struct testca *ca);
void testca_issue (struct testca *ca, const struct testca_cert *cert);
/* Adds the certificate to the CRL (revoked_at relative to now, in seconds). */
void testca_revoke (struct testca *ca, const char *name, time_t revoked_at);
/* Writes the CRL with the given validity (relative to now, in seconds). */
void testca_write_crl (struct testca *ca, time_t this_update, time_t next_update);

/* The identity in <dir>/<name>.*, trusting <dir>/<ca>; aborts when it cannot be loaded. */
struct tlsid *testca_tlsid (const char *dir, const char *ca, const char *name, bool with_crl);

/* Issues a certificate for nui://GRID/KIND/NAME, in <dir>/NAME.*; the identity with it and the CRL. */
struct tlsid *testca_identity (struct testca *ca, const char *grid, const char *kind,
                               const char *name);

/* mkdtemp below TMPDIR; the caller frees. testca_remove deletes its files and itself. */
char *testca_dir (void);
void testca_remove (char *dir);

#endif
