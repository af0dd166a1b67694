/* tasklink: TLS 1.3 with a pre-shared key over TCP, in frames. `nui run` connects, nui-tasks accepts. */
#include "proto/rpc/tasklink.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/mem.h"

struct tasklink {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    uint8_t secret[TASKLINK_SECRET];
    uint8_t frame[TASKLINK_FRAME_MAX];
};

static const unsigned char tasklink_name[] = "nui job";

int tasklink_secret (const char *hex, uint8_t out[TASKLINK_SECRET], struct err *err)
{
    long len = 0;
    uint8_t *bytes = hex ? OPENSSL_hexstr2buf (hex, &len) : NULL;
    if (len == TASKLINK_SECRET)
        memcpy (out, bytes, TASKLINK_SECRET);
    OPENSSL_free (bytes);
    return len == TASKLINK_SECRET ? 0 : err_set (err, ERR_INVALID, "the job has no secret");
}

static SSL_SESSION *tasklink_session (SSL *ssl)
{
    static const unsigned char aes128[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
    struct tasklink *link = SSL_get_app_data (ssl);
    SSL_SESSION *session = SSL_SESSION_new ();
    if (session && SSL_SESSION_set1_master_key (session, link->secret, TASKLINK_SECRET) == 1 &&
        SSL_SESSION_set_cipher (session, SSL_CIPHER_find (ssl, aes128)) == 1 &&
        SSL_SESSION_set_protocol_version (session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free (session);
    return NULL;
}

static int on_use (SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
                   SSL_SESSION **session)
{
    (void)md;
    *id = tasklink_name;
    *id_len = sizeof tasklink_name - 1;
    *session = tasklink_session (ssl);
    return *session != NULL;
}

static int on_find (SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
    bool ours = id_len == sizeof tasklink_name - 1 && memcmp (id, tasklink_name, id_len) == 0;
    *session = ours ? tasklink_session (ssl) : NULL;
    return 1;
}

/* fd is its own from now on. */
static struct tasklink *tasklink_new (int fd, const uint8_t secret[TASKLINK_SECRET], bool server)
{
    struct tasklink *link = mem_zero (1, sizeof *link);
    int one = 1;
    link->fd = fd;
    memcpy (link->secret, secret, TASKLINK_SECRET);
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    link->ctx = SSL_CTX_new (server ? TLS_server_method () : TLS_client_method ());
    if (!link->ctx)
        return link;
    SSL_CTX_set_min_proto_version (link->ctx, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites (link->ctx, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets (link->ctx, 0);
    if (server)
        SSL_CTX_set_psk_find_session_callback (link->ctx, on_find);
    else
        SSL_CTX_set_psk_use_session_callback (link->ctx, on_use);
    link->ssl = SSL_new (link->ctx);
    if (link->ssl) {
        SSL_set_app_data (link->ssl, link);
        SSL_set_fd (link->ssl, fd);
    }
    return link;
}

void tasklink_close (struct tasklink *link)
{
    if (!link)
        return;
    SSL_free (link->ssl);
    SSL_CTX_free (link->ctx);
    OPENSSL_cleanse (link->secret, sizeof link->secret);
    close (link->fd);
    free (link);
}

int tasklink_accept (int fd, const uint8_t secret[TASKLINK_SECRET], struct tasklink **out,
                     struct err *err)
{
    struct tasklink *link = tasklink_new (fd, secret, true);
    *out = NULL;
    if (!link->ssl || SSL_accept (link->ssl) != 1) {
        tasklink_close (link);
        return err_set (err, ERR_UNAUTHENTIC, "somebody without the job's secret");
    }
    *out = link;
    return 0;
}

int tasklink_connect (const char *host, const char *port, const uint8_t secret[TASKLINK_SECRET],
                      struct tasklink **out, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int fd = -1, error = 0;
    *out = NULL;
    int rc = getaddrinfo (host, port, &hints, &list);
    if (rc != 0)
        return err_set (err, ERR_UNAVAILABLE, "%s: %s", host, gai_strerror (rc));
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket (a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect (fd, a->ai_addr, a->ai_addrlen) != 0) {
            error = errno;
            close (fd);
            fd = -1;
        }
    }
    freeaddrinfo (list);
    if (fd < 0)
        return err_set (err, ERR_UNAVAILABLE, "%s port %s: %s", host, port, strerror (error));
    struct tasklink *link = tasklink_new (fd, secret, false);
    if (!link->ssl || SSL_connect (link->ssl) != 1) {
        tasklink_close (link);
        return err_set (err, ERR_UNAUTHENTIC, "%s port %s is not this job's", host, port);
    }
    *out = link;
    return 0;
}

int tasklink_fd (const struct tasklink *link)
{
    return link->fd;
}

bool tasklink_pending (const struct tasklink *link)
{
    return SSL_pending (link->ssl) > 0;
}

static bool tasklink_write (struct tasklink *link, const void *bytes, size_t len)
{
    size_t n;
    return len == 0 || SSL_write_ex (link->ssl, bytes, len, &n) == 1;
}

static bool tasklink_read (struct tasklink *link, uint8_t *bytes, size_t len)
{
    for (size_t n; len > 0; bytes += n, len -= n)
        if (SSL_read_ex (link->ssl, bytes, len, &n) != 1)
            return false;
    return true;
}

bool tasklink_send (struct tasklink *link, enum tasklink_type type, const void *bytes, size_t len)
{
    uint8_t head[5] = {(uint8_t)type, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                       (uint8_t)(len >> 8), (uint8_t)len};
    return len <= TASKLINK_FRAME_MAX && tasklink_write (link, head, sizeof head) &&
           tasklink_write (link, bytes, len);
}

bool tasklink_next (struct tasklink *link, enum tasklink_type *type, const uint8_t **bytes,
                    size_t *len)
{
    uint8_t head[5];
    if (!tasklink_read (link, head, sizeof head))
        return false;
    *type = (enum tasklink_type)head[0];
    *len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    *bytes = link->frame;
    return *len <= TASKLINK_FRAME_MAX && tasklink_read (link, link->frame, *len);
}
