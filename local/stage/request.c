/* request: builds a libcurl handle, opens its socket after hosts_check, and words what came of
 * it. Downloads, uploads and questions for sizes call it. No option that decides whom we talk to
 * may be set elsewhere, and no sentence may quote a secret. */
#include "local/stage/request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const duration_us connect_patience = 30 * US_PER_S;

/* --- whom we talk to ----------------------------------------------------------------------- */

static curl_socket_t socket_open (void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct request *r = arg;
    (void)purpose;
    if (hosts_check (r->rules->hosts, r->host, &address->addr, &r->blocked) != 0)
        return CURL_SOCKET_BAD;
    return socket (address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int host_known (CURL *easy, const struct curl_khkey *known, const struct curl_khkey *found,
                       enum curl_khmatch match, void *arg)
{
    struct request *r = arg;
    (void)easy;
    (void)known;
    (void)found;
    if (match == CURLKHMATCH_OK)
        return CURLKHSTAT_FINE;
    err_set (&r->refused, ERR_DENIED,
             match == CURLKHMATCH_MISMATCH
                 ? "host %s shows another ssh key than the site knows of it"
                 : "the site does not know the ssh key of host %s",
             r->host);
    return CURLKHSTAT_REJECT;
}

static size_t swallow (char *bytes, size_t size, size_t count, void *self)
{
    (void)bytes;
    (void)self;
    return size * count;
}

/* --- options ------------------------------------------------------------------------------- */

void request_header (struct request *r, const char *name, const char *value)
{
    char line[4096];
    snprintf (line, sizeof line, "%s: %s", name, value);
    struct curl_slist *grown = curl_slist_append (r->headers, line);
    assert (grown);
    r->headers = grown;
}

static void web_options (struct request *r, const struct wire *wire)
{
    CURL *e = r->easy;
    const struct credential *c = wire->credential;
    curl_easy_setopt (e, CURLOPT_HTTP_VERSION,
                      (long)CURL_HTTP_VERSION_1_1); /* a connection for each file */
    curl_easy_setopt (e, CURLOPT_USERAGENT, "nui-local/" NUI_VERSION);
    curl_easy_setopt (e, CURLOPT_PATH_AS_IS, (long)wire->s3);
    if (r->rules->ca)
        curl_easy_setopt (e, CURLOPT_CAINFO, r->rules->ca);
    if (wire->s3 && c->access) {
        char signing[128];
        snprintf (signing, sizeof signing, "aws:amz:%.64s:s3", c->region ? c->region : "us-east-1");
        curl_easy_setopt (e, CURLOPT_AWS_SIGV4, signing);
        /* What is sent is read once, so its hash is not known before; TLS guards it. Not every
         * libcurl says so of itself. */
        request_header (r, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
        curl_easy_setopt (e, CURLOPT_USERNAME, c->access);
        curl_easy_setopt (e, CURLOPT_PASSWORD, c->secret);
        if (c->session)
            request_header (r, "x-amz-security-token", c->session);
    }
    if (wire->s3 || !c)
        return;
    if (c->type == CREDENTIAL_BEARER) {
        curl_easy_setopt (e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt (e, CURLOPT_XOAUTH2_BEARER, c->token);
    } else if (c->type == CREDENTIAL_BASIC) {
        curl_easy_setopt (e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt (e, CURLOPT_USERNAME, c->login);
        curl_easy_setopt (e, CURLOPT_PASSWORD, c->password);
    } else {
        r->headers = curl_slist_append (r->headers, c->header);
        assert (r->headers);
    }
}

static void ssh_options (struct request *r, const struct wire *wire)
{
    CURL *e = r->easy;
    const struct credential *c = wire->credential;
    curl_easy_setopt (e, CURLOPT_SSH_KNOWNHOSTS, r->rules->known_hosts);
    curl_easy_setopt (e, CURLOPT_SSH_KEYFUNCTION, host_known);
    curl_easy_setopt (e, CURLOPT_SSH_KEYDATA, r);
    curl_easy_setopt (e, CURLOPT_SSH_AUTH_TYPES, (long)CURLSSH_AUTH_PUBLICKEY);
    curl_easy_setopt (e, CURLOPT_SSH_PRIVATE_KEYFILE, c->key);
    curl_easy_setopt (e, CURLOPT_SSH_PUBLIC_KEYFILE, "");
    if (c->login)
        curl_easy_setopt (e, CURLOPT_USERNAME, c->login);
    curl_easy_setopt (e, CURLOPT_FILETIME, 1L);
}

int request_open (struct request *r, struct curl_loop *loop, const struct rules *rules,
                  const struct wire *wire, request_fn fn, void *arg, struct err *err)
{
    *r = (struct request){
        .easy = curl_easy_init (), .loop = loop, .rules = rules, .fn = fn, .arg = arg};
    if (!r->easy)
        return err_set (err, ERR_NOMEM, "libcurl has no memory");
    CURL *e = r->easy;
    duration_us patience = rules->limit.patience;
    r->sftp = wire->scheme == STAGE_SFTP;
    snprintf (r->host, sizeof r->host, "%s", wire->host);
    curl_easy_setopt (e, CURLOPT_URL, wire->url);
    curl_easy_setopt (e, CURLOPT_PRIVATE, (char *)r);
    curl_easy_setopt (e, CURLOPT_PROTOCOLS_STR, stage_scheme_name (wire->scheme));
    curl_easy_setopt (e, CURLOPT_NOPROXY, "*"); /* whatever the daemon's environment says */
    curl_easy_setopt (e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt (e, CURLOPT_ERRORBUFFER, r->error);
    curl_easy_setopt (e, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    curl_easy_setopt (e, CURLOPT_OPENSOCKETDATA, r);
    curl_easy_setopt (e, CURLOPT_CONNECTTIMEOUT_MS,
                      (long)((patience < connect_patience ? patience : connect_patience) / 1000));
    curl_easy_setopt (e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt (e, CURLOPT_LOW_SPEED_TIME, (long)((patience + US_PER_S - 1) / US_PER_S));
    curl_easy_setopt (e, CURLOPT_BUFFERSIZE,
                      64L << 10); /* libcurl takes up to 100 of these in one go */
    curl_easy_setopt (e, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
    curl_easy_setopt (e, CURLOPT_WRITEFUNCTION, swallow);
    if (r->sftp)
        ssh_options (r, wire);
    else
        web_options (r, wire);
    return 0;
}

int request_go (struct request *r, struct err *err)
{
    if (r->headers)
        curl_easy_setopt (r->easy, CURLOPT_HTTPHEADER, r->headers);
    return curl_loop_add (r->loop, r->easy, err);
}

void request_close (struct request *r)
{
    if (!r->easy)
        return;
    curl_loop_remove (r->loop, r->easy);
    curl_easy_cleanup (r->easy);
    curl_slist_free_all (r->headers);
    r->easy = NULL;
    r->headers = NULL;
}

void request_over (void *arg, CURL *easy, CURLcode code)
{
    struct request *r;
    (void)arg;
    curl_easy_getinfo (easy, CURLINFO_PRIVATE, (char **)&r);
    r->fn (r->arg, code);
}

/* --- what came of it ----------------------------------------------------------------------- */

long request_status (const struct request *r)
{
    long status = 0;
    if (!r->sftp)
        curl_easy_getinfo (r->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

const char *request_answer_header (const struct request *r, const char *name)
{
    struct curl_header *header;
    return curl_easy_header (r->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK
               ? header->value
               : NULL;
}

static enum request_outcome judge_status (const struct request *r, char **location_out,
                                          struct err *err)
{
    long status = request_status (r);
    char *location = NULL;
    if (status >= 200 && status < 300)
        return REQUEST_DONE;
    curl_easy_getinfo (r->easy, CURLINFO_REDIRECT_URL, &location);
    if (status >= 300 && status < 400 && location) {
        *location_out = strdup (location);
        assert (*location_out);
        return REQUEST_REDIRECT;
    }
    if (status == 408 || status == 425 || status == 429 || status >= 500) {
        err_set (err, ERR_UNAVAILABLE, "the server is not able to (HTTP %ld)", status);
        return REQUEST_TRANSIENT;
    }
    if (status == 404 || status == 410)
        err_set (err, ERR_NOT_FOUND, "there is no such file (HTTP %ld)", status);
    else if (status == 401 || status == 403)
        err_set (err, ERR_DENIED, "the server does not allow it (HTTP %ld)", status);
    else
        err_set (err, ERR_INVALID, "the server answered HTTP %ld", status);
    return REQUEST_FAILED;
}

static enum request_outcome judge_code (CURLcode code, struct err *err)
{
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        err_set (err, ERR_NOT_FOUND, "there is no such host");
        return REQUEST_NO_HOST;
    case CURLE_REMOTE_FILE_NOT_FOUND:
        err_set (err, ERR_NOT_FOUND, "there is no such file or folder");
        return REQUEST_FAILED;
    case CURLE_LOGIN_DENIED:
        err_set (err, ERR_DENIED, "the server does not accept the site's credentials");
        return REQUEST_FAILED;
    case CURLE_REMOTE_ACCESS_DENIED:
        err_set (err, ERR_DENIED, "the server does not allow it");
        return REQUEST_FAILED;
    case CURLE_REMOTE_DISK_FULL:
        err_set (err, ERR_LIMIT, "the server's disk is full");
        return REQUEST_FAILED;
    case CURLE_QUOTE_ERROR:
        err_set (err, ERR_DENIED, "the server does not let the file have its name");
        return REQUEST_FAILED;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
        err_set (err, ERR_UNAUTHENTIC, "the server's certificate or key does not hold");
        return REQUEST_FAILED;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CACERT_BADFILE:
        err_set (err, ERR_INVALID, "%s", curl_easy_strerror (code));
        return REQUEST_FAILED;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        err_set (err, ERR_UNAVAILABLE, "the connection was cut");
        return REQUEST_TRANSIENT;
    case CURLE_COULDNT_CONNECT:
        err_set (err, ERR_UNAVAILABLE, "no connection to the host");
        return REQUEST_TRANSIENT;
    case CURLE_OPERATION_TIMEDOUT:
        err_set (err, ERR_UNAVAILABLE, "nothing came any more");
        return REQUEST_TRANSIENT;
    default:
        /* The library's sentence, not its details: those may quote what was sent. */
        err_set (err, ERR_UNAVAILABLE, "%s", curl_easy_strerror (code));
        return REQUEST_TRANSIENT;
    }
}

enum request_outcome request_judge (const struct request *r, CURLcode code, char **location_out,
                                    struct err *err)
{
    *location_out = NULL;
    if (r->refused.code != 0) {
        *err = r->refused;
        return REQUEST_FAILED;
    }
    if (code == CURLE_COULDNT_CONNECT && r->blocked.code != 0) {
        *err = r->blocked;
        return REQUEST_FAILED;
    }
    long status = request_status (r);
    /* An answer says more than how the connection ended. */
    if (code == CURLE_OK ? !r->sftp : status >= 300)
        return judge_status (r, location_out, err);
    return code == CURLE_OK ? REQUEST_DONE : judge_code (code, err);
}
