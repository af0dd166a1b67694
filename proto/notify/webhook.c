/* webhook: one POST at a time, its outcome told from the loop. The notifier and nui-meta's hooks
 * call it. It never retries by itself and never follows a redirect: whether a message is sent
 * again is its caller's affair. */
#include "proto/notify/webhook.h"

#include <assert.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"
#include "proto/curl/curl_loop.h"

struct webhook {
    struct curl_loop *loop;
    struct event *finish;            /* tells from the loop what came of it */
    CURL *easy;                      /* NULL: nothing is under way */
    struct curl_slist *headers, *to; /* to: of a mail */
    char *body;
    size_t len, sent;
    char error[CURL_ERROR_SIZE];
    webhook_fn fn;
    void *arg;
    enum webhook_outcome outcome;
    char text[CURL_ERROR_SIZE + 64];
};

/* --- one message -------------------------------------------------------------------------- */

static size_t swallow (char *bytes, size_t size, size_t count, void *self)
{
    (void)bytes;
    (void)self;
    return size * count;
}

static void drop (struct webhook *h)
{
    if (h->easy) {
        curl_loop_remove (h->loop, h->easy);
        curl_easy_cleanup (h->easy);
    }
    curl_slist_free_all (h->headers);
    curl_slist_free_all (h->to);
    free (h->body);
    h->easy = NULL;
    h->headers = h->to = NULL;
    h->body = NULL;
}

static void judge (struct webhook *h, CURLcode code)
{
    long status = 0;
    curl_easy_getinfo (h->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) {
        h->outcome = h->to && status >= 500 ? WEBHOOK_REFUSED : WEBHOOK_SILENT;
        text_printf (h->text, sizeof h->text, "%s",
                     *h->error ? h->error : curl_easy_strerror (code));
        return;
    }
    h->outcome = h->to || (status >= 200 && status < 300)          ? WEBHOOK_TAKEN
                 : status >= 500 || status == 408 || status == 429 ? WEBHOOK_SILENT
                                                                   : WEBHOOK_REFUSED;
    snprintf (h->text, sizeof h->text, "it answered HTTP %ld", status);
}

static void over (void *arg, CURL *easy, CURLcode code)
{
    struct webhook *h = arg;
    (void)easy;
    judge (h, code);
    event_active (h->finish, EV_TIMEOUT, 0);
}

static void on_finish (evutil_socket_t fd, short what, void *arg)
{
    struct webhook *h = arg;
    (void)fd;
    (void)what;
    drop (h);
    h->fn (h->arg, h->outcome, h->text);
}

const char *webhook_sign (const void *secret, size_t secret_len, time_us now, const char *body,
                          size_t len, char out[WEBHOOK_SIGNATURE_MAX])
{
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned mac_len = 0;
    char *text = malloc (len + 32);
    assert (text);
    int head = snprintf (text, 32, "%lld.", (long long)(now / US_PER_S));
    memcpy (text + head, body, len);
    HMAC (EVP_sha256 (), secret, (int)secret_len, (const uint8_t *)text, (size_t)head + len, mac,
          &mac_len);
    free (text);
    int at = snprintf (out, WEBHOOK_SIGNATURE_MAX, "t=%lld,v1=", (long long)(now / US_PER_S));
    for (unsigned i = 0; i < mac_len; i++)
        at += snprintf (out + at, WEBHOOK_SIGNATURE_MAX - (size_t)at, "%02x", mac[i]);
    return out;
}

static int header_add (struct webhook *h, const char *name, const char *value)
{
    char line[192];
    snprintf (line, sizeof line, "%s: %s", name, value);
    struct curl_slist *grown = curl_slist_append (h->headers, line);
    h->headers = grown ? grown : h->headers;
    return grown ? 0 : ERR_NOMEM;
}

static size_t mail_read (char *buffer, size_t size, size_t count, void *self)
{
    struct webhook *h = self;
    size_t left = h->len - h->sent, n = size * count < left ? size * count : left;
    memcpy (buffer, h->body + h->sent, n);
    h->sent += n;
    return n;
}

static void post_options (struct webhook *h, const struct webhook_message *m)
{
    curl_easy_setopt (h->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt (h->easy, CURLOPT_POSTFIELDS, h->body);
    curl_easy_setopt (h->easy, CURLOPT_POSTFIELDSIZE, (long)m->len);
    curl_easy_setopt (h->easy, CURLOPT_HTTPHEADER, h->headers);
    curl_easy_setopt (h->easy, CURLOPT_USERAGENT, m->agent);
}

static void mail_options (struct webhook *h, const struct webhook_message *m)
{
    curl_easy_setopt (h->easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt (h->easy, CURLOPT_MAIL_FROM, m->from);
    curl_easy_setopt (h->easy, CURLOPT_MAIL_RCPT, h->to);
    curl_easy_setopt (h->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt (h->easy, CURLOPT_READFUNCTION, mail_read);
    curl_easy_setopt (h->easy, CURLOPT_READDATA, h);
}

int webhook_post (struct webhook *h, const struct webhook_message *m, duration_us limit,
                  webhook_fn fn, void *arg, struct err *err)
{
    if (h->easy)
        return err_set (err, ERR_EXISTS, "a notification is under way");
    h->easy = curl_easy_init ();
    h->body = malloc (m->len + 1);
    if (m->to)
        h->to = curl_slist_append (NULL, m->to);
    if (!h->easy || !h->body || !h->to != !m->to ||
        header_add (h, "Content-Type", "application/json") ||
        header_add (h, "Idempotency-Key", m->key) ||
        (m->signature && header_add (h, "Nui-Signature", m->signature))) {
        drop (h);
        return err_set (err, ERR_NOMEM, "webhook: no memory");
    }
    memcpy (h->body, m->body, m->len);
    *h->error = 0;
    h->fn = fn;
    h->arg = arg;
    h->len = m->len;
    h->sent = 0;
    curl_easy_setopt (h->easy, CURLOPT_URL, m->url);
    if (m->to)
        mail_options (h, m);
    else
        post_options (h, m);
    curl_easy_setopt (h->easy, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt (h->easy, CURLOPT_ERRORBUFFER, h->error);
    curl_easy_setopt (h->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt (h->easy, CURLOPT_TIMEOUT_MS, (long)(limit / 1000));
    if (m->ca)
        curl_easy_setopt (h->easy, CURLOPT_CAINFO, m->ca);
    int rc = curl_loop_add (h->loop, h->easy, err);
    if (rc != 0)
        drop (h);
    return rc;
}

struct webhook *webhook_create (struct event_base *base, struct err *err)
{
    struct webhook *h = calloc (1, sizeof *h);
    assert (h);
    h->loop = curl_loop_create (base, 0, over, h, err);
    h->finish = event_new (base, -1, 0, on_finish, h);
    assert (h->finish);
    if (!h->loop) {
        webhook_destroy (h);
        return NULL;
    }
    return h;
}

void webhook_destroy (struct webhook *h)
{
    if (!h)
        return;
    drop (h);
    curl_loop_destroy (h->loop);
    event_free (h->finish);
    free (h);
}
