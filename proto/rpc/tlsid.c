/* tlsid: loads CA, CRL, certificate and key as one bundle, and makes the TLS contexts from it.
 * The skeleton and nui make one; the connections use it. A reload that fails leaves the old
 * bundle in force, and a program never changes its name while it runs. */
#include "proto/rpc/tlsid.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/quantity.h"
#include "proto/rpc/chainmemo.h"
#include "proto/rpc/sigkey.h"
#include "proto/rpc/tlsreason.h"

enum { FILE_CA, FILE_CERT, FILE_KEY, FILE_CRL, FILE_COUNT };
enum { PEM_BYTES_MAX = 4 << 20, PEM_ITEMS_MAX = 256 };

/* Everything that comes from the files; loaded as a whole, swapped as a whole. */
struct bundle {
    SSL_CTX *server, *client;
    X509_STORE *store;
    struct chainmemo *memo; /* chains found good by that store */
    EVP_PKEY *key;
    struct sigkey *sigkey; /* the same, to sign with */
    STACK_OF (X509) * chain;
    struct principal self;
    struct stat stat[FILE_COUNT];
};

struct tlsid {
    char *path[FILE_COUNT]; /* NULL: no CRL */
    struct bundle now;
};

static const char *const kind_names[] = {"none",     "user",   "site", "meta", "bank",
                                         "operator", "agency", "gate", "node"};

const char *principal_kind_name (enum principal_kind kind)
{
    assert ((unsigned)kind < sizeof (kind_names) / sizeof (kind_names[0]));
    return kind_names[kind];
}

/* One part of the URI, up to '/' or the end, into out. */
static int uri_part (const char **at, bool last, const char *what, const char *uri,
                     char out[PRINCIPAL_NAME_MAX], struct err *err)
{
    size_t n = strcspn (*at, "/");

    if (n == 0 || n >= PRINCIPAL_NAME_MAX || ((*at)[n] == '\0') != last)
        return err_set (err, ERR_INVALID,
                        "identity \"%.200s\": not of the form nui://<grid>/<kind>/<name>", uri);
    memcpy (out, *at, n);
    out[n] = '\0';
    *at += n + (last ? 0 : 1);
    return name_check (what, out, err);
}

int principal_parse (const char *uri, struct principal *out, struct err *err)
{
    struct principal p = {0};
    char kind[PRINCIPAL_NAME_MAX];
    const char *at = uri;
    int rc;

    if (strncmp (at, "nui://", 6) != 0)
        return err_set (err, ERR_INVALID, "identity \"%.200s\": does not begin with nui://", uri);
    at += 6;
    if ((rc = uri_part (&at, false, "grid", uri, p.grid, err)) < 0 ||
        (rc = uri_part (&at, false, "kind", uri, kind, err)) < 0 ||
        (rc = uri_part (&at, true, "name", uri, p.name, err)) < 0)
        return rc;
    for (int k = PRINCIPAL_USER; k <= PRINCIPAL_NODE; k++) {
        if (strcmp (kind, kind_names[k]) == 0)
            p.kind = (enum principal_kind)k;
    }
    if (p.kind == PRINCIPAL_NONE)
        return err_set (err, ERR_INVALID,
                        "identity \"%.200s\": kind \"%s\" is none of user, site, meta, bank, "
                        "operator, agency, gate, node",
                        uri, kind);
    *out = p;
    return 0;
}

char *principal_uri (const struct principal *p, char buf[PRINCIPAL_URI_MAX])
{
    static_assert (sizeof ("nui:///operator/") + 2 * PRINCIPAL_NAME_MAX <= PRINCIPAL_URI_MAX,
                   "every principal fits");
    char *end = stpcpy (stpcpy (buf, "nui://"), p->grid); /* not snprintf: several times per call */
    end = stpcpy (stpcpy (stpcpy (end, "/"), principal_kind_name (p->kind)), "/");
    stpcpy (end, p->name);
    return buf;
}

int principal_of_cert (X509 *cert, struct principal *out, struct err *err)
{
    GENERAL_NAMES *names = X509_get_ext_d2i (cert, NID_subject_alt_name, NULL, NULL);
    char uri[PRINCIPAL_URI_MAX];
    int found = 0, rc = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num (names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value (names, i);
        if (name->type != GEN_URI)
            continue;
        const char *text = (const char *)ASN1_STRING_get0_data (name->d.uniformResourceIdentifier);
        int len = ASN1_STRING_length (name->d.uniformResourceIdentifier);
        if (len < 6 || memcmp (text, "nui://", 6) != 0)
            continue;
        if (len >= PRINCIPAL_URI_MAX || memchr (text, '\0', (size_t)len)) {
            rc = err_set (err, ERR_INVALID, "certificate: malformed nui:// identity");
            goto out;
        }
        memcpy (uri, text, (size_t)len);
        uri[len] = '\0';
        found++;
    }
    if (found != 1)
        rc = err_set (err, ERR_INVALID, "certificate: %s nui:// identity",
                      found ? "more than one" : "no");
    else
        rc = principal_parse (uri, out, err);
out:
    GENERAL_NAMES_free (names);
    return rc;
}

/* Opens path as a memory BIO and remembers what it was, so that reload sees changes. */
static BIO *file_open (const char *path, const char *what, bool is_private, struct stat *st,
                       struct err *err)
{
    BIO *bio = NULL;
    char *bytes = NULL;
    ssize_t n = 0;
    size_t have = 0;
    int fd = open (path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat (fd, st) < 0) {
        err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s %s: %s", what, path,
                 strerror (errno));
        goto out;
    }
    if (is_private && (st->st_mode & 077)) {
        err_set (err, ERR_DENIED,
                 "%s %s: its mode is %04o, group or others may use it; run chmod 600 on it", what,
                 path, (unsigned)st->st_mode & 07777);
        goto out;
    }
    if (!S_ISREG (st->st_mode) || st->st_size > PEM_BYTES_MAX) {
        err_set (err, ERR_INVALID, "%s %s: not a regular file of at most %d bytes", what, path,
                 PEM_BYTES_MAX);
        goto out;
    }
    bytes = malloc ((size_t)st->st_size + 1);
    while (bytes && have < (size_t)st->st_size &&
           (n = read (fd, bytes + have, (size_t)st->st_size - have)) > 0)
        have += (size_t)n;
    bio = bytes && n >= 0 ? BIO_new (BIO_s_mem ()) : NULL;
    if (!bio || (have > 0 && BIO_write (bio, bytes, (int)have) != (int)have)) {
        BIO_free (bio);
        bio = NULL;
        err_set (err, ERR_IO, "%s %s: cannot be read: %s", what, path, strerror (errno));
    }
out:
    if (bytes)
        OPENSSL_cleanse (bytes, have);
    free (bytes);
    if (fd >= 0)
        close (fd);
    return bio;
}

static STACK_OF (X509) *
    read_certs (const char *path, const char *what, struct stat *st, struct err *err)
{
    STACK_OF (X509) *certs = NULL;
    BIO *bio = file_open (path, what, false, st, err);
    X509 *cert;

    if (!bio)
        return NULL;
    certs = sk_X509_new_null ();
    while (certs && sk_X509_num (certs) < PEM_ITEMS_MAX &&
           (cert = PEM_read_bio_X509 (bio, NULL, NULL, NULL)))
        sk_X509_push (certs, cert);
    bool clean = ERR_GET_REASON (ERR_peek_last_error ()) == PEM_R_NO_START_LINE;
    ERR_clear_error ();
    if (!certs || sk_X509_num (certs) == 0 || !clean) {
        err_set (err, ERR_INVALID, "%s %s: no readable PEM certificate", what, path);
        sk_X509_pop_free (certs, X509_free);
        certs = NULL;
    }
    BIO_free (bio);
    return certs;
}

static int no_passphrase (char *buf, int size, int rwflag, void *arg)
{
    (void)buf, (void)size, (void)rwflag, (void)arg;
    return -1;
}

static EVP_PKEY *read_key (const char *path, struct stat *st, struct err *err)
{
    BIO *bio = file_open (path, "private key", true, st, err);
    EVP_PKEY *key;

    if (!bio)
        return NULL;
    key = PEM_read_bio_PrivateKey (bio, NULL, no_passphrase, NULL);
    if (!key)
        err_set (err, ERR_INVALID,
                 "private key %s: no readable PEM key (encrypted ones are not "
                 "supported)",
                 path);
    ERR_clear_error ();
    BIO_free (bio);
    return key;
}

static int read_crls (const char *path, X509_STORE *store, struct stat *st, struct err *err)
{
    BIO *bio = file_open (path, "revocation list", false, st, err);
    X509_CRL *crl;
    int count = 0;

    if (!bio)
        return ERR_IO;
    while (count < PEM_ITEMS_MAX && (crl = PEM_read_bio_X509_CRL (bio, NULL, NULL, NULL))) {
        count += X509_STORE_add_crl (store, crl);
        X509_CRL_free (crl);
    }
    bool clean = ERR_GET_REASON (ERR_peek_last_error ()) == PEM_R_NO_START_LINE;
    ERR_clear_error ();
    BIO_free (bio);
    if (count == 0 || !clean)
        return err_set (err, ERR_INVALID, "revocation list %s: no readable PEM CRL", path);
    X509_STORE_set_flags (store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return 0;
}

/* The chain as OpenSSL checks it, and then that the peer is somebody of this grid. */
static int verify_peer (X509_STORE_CTX *ctx, void *arg)
{
    const struct tlsid *id = arg;
    struct principal peer;

    if (X509_verify_cert (ctx) <= 0)
        return 0;
    if (principal_of_cert (X509_STORE_CTX_get0_cert (ctx), &peer, NULL) < 0 ||
        strcmp (peer.grid, id->now.self.grid) != 0) {
        /* This code has no row in OpenSSL's table of alerts, so the other side reads
         * certificate_unknown (46), which nothing else sends: tlsreason makes a sentence of it. */
        X509_STORE_CTX_set_error (ctx, X509_V_ERR_PERMITTED_VIOLATION);
        return 0;
    }
    return 1;
}

static int choose_h2 (SSL *ssl, const unsigned char **out, unsigned char *out_len,
                      const unsigned char *in, unsigned in_len, void *arg)
{
    (void)ssl, (void)arg;
    for (unsigned i = 0; i < in_len && in_len - i > in[i]; i += in[i] + 1u) {
        if (in[i] == 2 && memcmp (in + i + 1, "h2", 2) == 0) {
            *out = in + i + 1;
            *out_len = 2;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *make_ctx (struct tlsid *id, const struct bundle *b, bool server, struct err *err)
{
    static const unsigned char alpn[] = "\x02h2";
    SSL_CTX *ctx = SSL_CTX_new (server ? TLS_server_method () : TLS_client_method ());

    if (!ctx || !SSL_CTX_set_min_proto_version (ctx, TLS1_3_VERSION) ||
        SSL_CTX_use_cert_and_key (ctx, sk_X509_value (b->chain, 0), b->key, NULL, 1) != 1)
        goto fail;
    for (int i = 1; i < sk_X509_num (b->chain); i++) {
        if (!SSL_CTX_add1_chain_cert (ctx, sk_X509_value (b->chain, i)))
            goto fail;
    }
    SSL_CTX_set1_cert_store (ctx, b->store);
    SSL_CTX_set_verify (ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback (ctx, verify_peer, id);
    /* No resumption: a session outlives the check of its certificate. */
    SSL_CTX_set_session_cache_mode (ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets (ctx, 0);
    SSL_CTX_set_mode (ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options (ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_read_ahead (ctx, 1);
    SSL_CTX_set_default_read_buffer_len (ctx, 32768);
    if (server)
        SSL_CTX_set_alpn_select_cb (ctx, choose_h2, NULL);
    else if (SSL_CTX_set_alpn_protos (ctx, alpn, sizeof (alpn) - 1) != 0)
        goto fail;
    return ctx;

fail:
    ERR_clear_error ();
    SSL_CTX_free (ctx);
    err_set (err, ERR_INVALID, "certificate %s: OpenSSL does not accept it with key %s",
             id->path[FILE_CERT], id->path[FILE_KEY]);
    return NULL;
}

static void bundle_free (struct bundle *b)
{
    SSL_CTX_free (b->server);
    SSL_CTX_free (b->client);
    X509_STORE_free (b->store);
    chainmemo_destroy (b->memo);
    sigkey_destroy (b->sigkey);
    EVP_PKEY_free (b->key);
    sk_X509_pop_free (b->chain, X509_free);
    memset (b, 0, sizeof (*b));
}

static int load_store (const struct tlsid *id, struct bundle *b, struct err *err)
{
    STACK_OF (X509) *cas = read_certs (id->path[FILE_CA], "CA certificate", &b->stat[FILE_CA], err);
    int rc = 0;

    if (!cas)
        return ERR_INVALID;
    b->store = X509_STORE_new ();
    b->memo = chainmemo_create ();
    for (int i = 0; b->store && i < sk_X509_num (cas); i++)
        X509_STORE_add_cert (b->store, sk_X509_value (cas, i));
    sk_X509_pop_free (cas, X509_free);
    if (!b->store || !b->memo)
        return err_set (err, ERR_NOMEM, "out of memory");
    if (id->path[FILE_CRL])
        rc = read_crls (id->path[FILE_CRL], b->store, &b->stat[FILE_CRL], err);
    return rc;
}

/* Store, chain and key are there: what is made of them. */
static int bundle_complete (struct tlsid *id, struct bundle *b, struct err *err)
{
    X509 *leaf = sk_X509_value (b->chain, 0);

    if (!(b->sigkey = sigkey_create (b->key)))
        return err_set (err, ERR_NOMEM, "out of memory");
    if (X509_check_private_key (leaf, b->key) != 1) {
        ERR_clear_error ();
        return err_set (err, ERR_INVALID, "private key %s: does not belong to certificate %s",
                        id->path[FILE_KEY], id->path[FILE_CERT]);
    }
    if (principal_of_cert (leaf, &b->self, err) < 0)
        return err_prefix (err, "certificate %s", id->path[FILE_CERT]);
    b->server = make_ctx (id, b, true, err);
    b->client = b->server ? make_ctx (id, b, false, err) : NULL;
    return b->client ? 0 : ERR_INVALID;
}

static int bundle_load (struct tlsid *id, struct bundle *b, struct err *err)
{
    memset (b, 0, sizeof (*b));
    if (load_store (id, b, err) < 0)
        goto fail;
    b->chain = read_certs (id->path[FILE_CERT], "certificate", &b->stat[FILE_CERT], err);
    if (!b->chain)
        goto fail;
    b->key = read_key (id->path[FILE_KEY], &b->stat[FILE_KEY], err);
    if (!b->key)
        goto fail;
    if (bundle_complete (id, b, err) < 0)
        goto fail;
    return 0;

fail:
    bundle_free (b);
    return err && err->code ? err->code : ERR_INVALID;
}

struct tlsid *tlsid_create (const struct tlsid_config *config, struct err *err)
{
    const char *paths[FILE_COUNT] = {config->ca_file, config->cert_file, config->key_file,
                                     config->crl_file};
    struct tlsid *id = calloc (1, sizeof (*id));
    struct err local = {0};

    for (int i = 0; id && i < FILE_COUNT; i++) {
        assert (paths[i] || i == FILE_CRL);
        id->path[i] = paths[i] ? strdup (paths[i]) : NULL;
    }
    if (!id) {
        err_set (err, ERR_NOMEM, "out of memory");
        return NULL;
    }
    if (bundle_load (id, &id->now, &local) < 0) {
        err_set (err, local.code, "%s", local.text);
        tlsid_destroy (id);
        return NULL;
    }
    return id;
}

/* --- alone ---------------------------------------------------------------------------------- */

/* Signed by its own key; good for as long as a process may run. */
static X509 *own_cert (const struct principal *self, EVP_PKEY *key)
{
    enum { YEARS_S = 20 * 366 * 86400 };
    char uri[PRINCIPAL_URI_MAX], san[PRINCIPAL_URI_MAX + 4] = "URI:";
    X509 *cert = X509_new ();
    X509_NAME *name = X509_NAME_new ();
    strcat (san, principal_uri (self, uri));
    X509_EXTENSION *ext = X509V3_EXT_conf_nid (NULL, NULL, NID_subject_alt_name, san);
    bool good = cert && name && ext && X509_set_version (cert, 2) &&
                ASN1_INTEGER_set (X509_get_serialNumber (cert), 1) &&
                X509_NAME_add_entry_by_txt (name, "CN", MBSTRING_UTF8,
                                            (const unsigned char *)self->name, -1, -1, 0) &&
                X509_set_subject_name (cert, name) && X509_set_issuer_name (cert, name) &&
                X509_gmtime_adj (X509_getm_notBefore (cert), -86400) &&
                X509_gmtime_adj (X509_getm_notAfter (cert), YEARS_S) &&
                X509_set_pubkey (cert, key) && X509_add_ext (cert, ext, -1) &&
                X509_sign (cert, key, EVP_sha256 ()) > 0;

    X509_EXTENSION_free (ext);
    X509_NAME_free (name);
    if (good)
        return cert;
    X509_free (cert);
    return NULL;
}

struct tlsid *tlsid_create_alone (const struct principal *self, struct err *err)
{
    struct tlsid *id = calloc (1, sizeof (*id));
    struct bundle *b = id ? &id->now : NULL;
    X509 *cert = NULL;

    if (b && (b->key = EVP_EC_gen ("P-256")) && (b->store = X509_STORE_new ()) &&
        (b->memo = chainmemo_create ()) && (b->chain = sk_X509_new_null ()))
        cert = own_cert (self, b->key);
    if (!cert || !sk_X509_push (b->chain, cert)) {
        X509_free (cert);
        tlsid_destroy (id);
        err_set (err, ERR_NOMEM, "out of memory");
        return NULL;
    }
    if (bundle_complete (id, b, err) < 0) {
        tlsid_destroy (id);
        return NULL;
    }
    return id;
}

void tlsid_destroy (struct tlsid *id)
{
    if (!id)
        return;
    bundle_free (&id->now);
    for (int i = 0; i < FILE_COUNT; i++)
        free (id->path[i]);
    free (id);
}

static bool file_changed (const char *path, const struct stat *was)
{
    struct stat st;

    return stat (path, &st) < 0 || st.st_ino != was->st_ino || st.st_dev != was->st_dev ||
           st.st_size != was->st_size || st.st_mode != was->st_mode ||
           st.st_mtim.tv_sec != was->st_mtim.tv_sec || st.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

int tlsid_reload (struct tlsid *id, struct err *err)
{
    struct bundle fresh;
    struct err local = {0};
    char was[PRINCIPAL_URI_MAX], is[PRINCIPAL_URI_MAX];
    bool changed = false;

    for (int i = 0; i < FILE_COUNT; i++)
        changed |= id->path[i] && file_changed (id->path[i], &id->now.stat[i]);
    if (!changed)
        return 0;
    if (bundle_load (id, &fresh, &local) < 0)
        return err_set (err, local.code, "%s", local.text);
    if (strcmp (principal_uri (&id->now.self, was), principal_uri (&fresh.self, is)) != 0) {
        bundle_free (&fresh);
        return err_set (err, ERR_CONFLICT,
                        "certificate %s: now names %s, this program runs as %s; restart it",
                        id->path[FILE_CERT], is, was);
    }
    bundle_free (&id->now);
    id->now = fresh;
    return 0;
}

const struct principal *tlsid_self (const struct tlsid *id)
{
    return &id->now.self;
}

SSL_CTX *tlsid_server_ctx (struct tlsid *id)
{
    return id->now.server;
}

SSL_CTX *tlsid_client_ctx (struct tlsid *id)
{
    return id->now.client;
}

X509_STORE *tlsid_store (struct tlsid *id)
{
    return id->now.store;
}

struct chainmemo *tlsid_chainmemo (struct tlsid *id)
{
    return id->now.memo;
}

struct sigkey *tlsid_sigkey (struct tlsid *id)
{
    return id->now.sigkey;
}

STACK_OF (X509) * tlsid_chain (struct tlsid *id)
{
    return id->now.chain;
}
