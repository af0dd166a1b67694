#include "tests/interop/testca.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAY_S = 86400, PATH_CAP = 512 };

struct testca {
    char *dir, *name;
    EVP_PKEY *key;
    X509 *cert;
    STACK_OF (X509_REVOKED) * revoked;
    long serial;
};

#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf (stderr, "testca: %s:%d: %s\n", __FILE__, __LINE__, #what);                    \
            abort ();                                                                              \
        }                                                                                          \
    } while (0)

static char *path_of (char buf[PATH_CAP], const char *dir, const char *name, const char *suffix)
{
    MUST (snprintf (buf, PATH_CAP, "%s/%s%s", dir, name, suffix) < PATH_CAP);
    return buf;
}

/* Written beside and renamed, so that a reload sees a new inode. */
static FILE *open_new (const char *path, mode_t mode)
{
    int fd = open (path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, mode);
    FILE *f = fd >= 0 ? fdopen (fd, "w") : NULL;

    MUST (f);
    return f;
}

static void add_ext (X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;

    X509V3_set_ctx (&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid (NULL, &ctx, nid, value);
    MUST (ext && X509_add_ext (cert, ext, -1));
    X509_EXTENSION_free (ext);
}

static X509 *new_cert (struct testca *ca, EVP_PKEY *key, const char *cn, time_t from, time_t to)
{
    X509 *cert = X509_new ();
    X509_NAME *name = X509_NAME_new ();

    MUST (cert && name && X509_set_version (cert, 2));
    MUST (ASN1_INTEGER_set (X509_get_serialNumber (cert), ++ca->serial));
    MUST (X509_NAME_add_entry_by_txt (name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1,
                                      0));
    MUST (X509_set_subject_name (cert, name));
    MUST (X509_set_issuer_name (cert, ca->cert ? X509_get_subject_name (ca->cert) : name));
    MUST (X509_gmtime_adj (X509_getm_notBefore (cert), from));
    MUST (X509_gmtime_adj (X509_getm_notAfter (cert), to));
    MUST (X509_set_pubkey (cert, key));
    X509_NAME_free (name);
    return cert;
}

static void write_cert (const char *path, X509 *cert)
{
    FILE *f = open_new (path, 0644);

    MUST (PEM_write_X509 (f, cert));
    MUST (fclose (f) == 0);
}

struct testca *testca_create_until (const char *dir, const char *ca_name, time_t not_after)
{
    struct testca *ca = calloc (1, sizeof (*ca));
    char path[PATH_CAP];

    MUST (ca);
    ca->dir = strdup (dir);
    ca->name = strdup (ca_name);
    ca->key = EVP_EC_gen ("P-256");
    ca->revoked = sk_X509_REVOKED_new_null ();
    MUST (ca->dir && ca->name && ca->key && ca->revoked);
    X509 *cert = new_cert (ca, ca->key, ca_name, -3650 * DAY_S, not_after);
    add_ext (cert, cert, NID_basic_constraints, "critical,CA:TRUE");
    add_ext (cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign");
    add_ext (cert, cert, NID_subject_key_identifier, "hash");
    MUST (X509_sign (cert, ca->key, EVP_sha256 ()));
    ca->cert = cert;
    write_cert (path_of (path, dir, ca_name, ".pem"), cert);
    testca_write_crl (ca, -DAY_S, 7 * DAY_S);
    return ca;
}

struct testca *testca_create (const char *dir, const char *ca_name)
{
    return testca_create_until (dir, ca_name, 3650 * DAY_S);
}

void testca_destroy (struct testca *ca)
{
    if (!ca)
        return;
    X509_free (ca->cert);
    EVP_PKEY_free (ca->key);
    sk_X509_REVOKED_pop_free (ca->revoked, X509_REVOKED_free);
    free (ca->dir);
    free (ca->name);
    free (ca);
}

void testca_issue (struct testca *ca, const struct testca_cert *c)
{
    EVP_PKEY *key = c->ed25519 ? EVP_PKEY_Q_keygen (NULL, NULL, "ED25519") : EVP_EC_gen ("P-256");
    bool plain = c->not_before == 0 && c->not_after == 0;
    char path[PATH_CAP], san[1024] = "";
    X509 *cert;
    FILE *f;

    MUST (key);
    cert = new_cert (ca, key, c->name, plain ? -DAY_S : c->not_before,
                     plain ? 7 * DAY_S : c->not_after);
    add_ext (cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE");
    add_ext (cert, ca->cert, NID_ext_key_usage,
             c->server_only ? "serverAuth" : "serverAuth,clientAuth");
    if (c->dns_localhost)
        strcat (san, "DNS:localhost,IP:127.0.0.1,");
    if (c->uri)
        snprintf (san + strlen (san), sizeof (san) - strlen (san), "URI:%s,", c->uri);
    if (c->uri2)
        snprintf (san + strlen (san), sizeof (san) - strlen (san), "URI:%s,", c->uri2);
    if (san[0]) {
        san[strlen (san) - 1] = '\0';
        add_ext (cert, ca->cert, NID_subject_alt_name, san);
    }
    MUST (X509_sign (cert, ca->key, EVP_sha256 ()));
    write_cert (path_of (path, ca->dir, c->name, ".pem"), cert);
    f = open_new (path_of (path, ca->dir, c->name, ".key"), 0600);
    MUST (PEM_write_PrivateKey (f, key, NULL, NULL, 0, NULL, NULL));
    MUST (fclose (f) == 0);
    X509_free (cert);
    EVP_PKEY_free (key);
}

void testca_revoke (struct testca *ca, const char *name, time_t revoked_at)
{
    X509_REVOKED *r = X509_REVOKED_new ();
    ASN1_TIME *at = X509_gmtime_adj (NULL, revoked_at);
    char path[PATH_CAP];
    FILE *f = fopen (path_of (path, ca->dir, name, ".pem"), "r");
    X509 *cert = f ? PEM_read_X509 (f, NULL, NULL, NULL) : NULL;

    MUST (r && at && cert);
    MUST (X509_REVOKED_set_serialNumber (r, X509_get_serialNumber (cert)));
    MUST (X509_REVOKED_set_revocationDate (r, at));
    MUST (sk_X509_REVOKED_push (ca->revoked, r));
    fclose (f);
    X509_free (cert);
    ASN1_TIME_free (at);
    testca_write_crl (ca, -DAY_S, 7 * DAY_S);
}

void testca_write_crl (struct testca *ca, time_t this_update, time_t next_update)
{
    X509_CRL *crl = X509_CRL_new ();
    ASN1_TIME *from = X509_gmtime_adj (NULL, this_update);
    ASN1_TIME *to = X509_gmtime_adj (NULL, next_update);
    char path[PATH_CAP], fresh[PATH_CAP];
    FILE *f;

    MUST (crl && from && to && X509_CRL_set_version (crl, 1));
    MUST (X509_CRL_set_issuer_name (crl, X509_get_subject_name (ca->cert)));
    MUST (X509_CRL_set1_lastUpdate (crl, from) && X509_CRL_set1_nextUpdate (crl, to));
    for (int i = 0; i < sk_X509_REVOKED_num (ca->revoked); i++)
        MUST (
            X509_CRL_add0_revoked (crl, X509_REVOKED_dup (sk_X509_REVOKED_value (ca->revoked, i))));
    MUST (X509_CRL_sort (crl) && X509_CRL_sign (crl, ca->key, EVP_sha256 ()));
    path_of (path, ca->dir, ca->name, ".crl");
    path_of (fresh, ca->dir, ca->name, ".crl.new");
    f = open_new (fresh, 0644);
    MUST (PEM_write_X509_CRL (f, crl));
    MUST (fclose (f) == 0 && rename (fresh, path) == 0);
    X509_CRL_free (crl);
    ASN1_TIME_free (from);
    ASN1_TIME_free (to);
}

struct tlsid *testca_tlsid (const char *dir, const char *ca, const char *name, bool with_crl)
{
    char ca_file[PATH_CAP], cert[PATH_CAP], key[PATH_CAP], crl[PATH_CAP];
    struct err err;
    const struct tlsid_config config = {.ca_file = path_of (ca_file, dir, ca, ".pem"),
                                        .cert_file = path_of (cert, dir, name, ".pem"),
                                        .key_file = path_of (key, dir, name, ".key"),
                                        .crl_file =
                                            with_crl ? path_of (crl, dir, ca, ".crl") : NULL};
    struct tlsid *id = tlsid_create (&config, &err);

    if (!id)
        fprintf (stderr, "testca: %s\n", err.text);
    MUST (id);
    return id;
}

struct tlsid *testca_identity (struct testca *ca, const char *grid, const char *kind,
                               const char *name)
{
    char uri[128];
    struct testca_cert cert = {.name = name, .uri = uri};

    MUST (snprintf (uri, sizeof uri, "nui://%s/%s/%s", grid, kind, name) < (int)sizeof uri);
    testca_issue (ca, &cert);
    return testca_tlsid (ca->dir, ca->name, name, true);
}

char *testca_dir (void)
{
    const char *tmp = getenv ("TMPDIR");
    char *dir = malloc (PATH_CAP);

    MUST (dir &&
          snprintf (dir, PATH_CAP, "%s/nui-test-XXXXXX", tmp && *tmp ? tmp : P_tmpdir) < PATH_CAP);
    MUST (mkdtemp (dir));
    return dir;
}

void testca_remove (char *dir)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    char path[PATH_CAP];

    while (d && (e = readdir (d))) {
        if (e->d_name[0] != '.')
            unlink (path_of (path, dir, e->d_name, ""));
    }
    if (d)
        closedir (d);
    rmdir (dir);
    free (dir);
}
