/* webhook: POSTs a JSON document to a URL, or hands a mail to an SMTP server, over libcurl in the loop.
 *
 * One at a time; never blocks (names are looked up by a thread of libcurl's). Redirects are not
 * followed: what the URL was allowed for is that URL. One loop, one thread. */
#ifndef NUI_NOTIFY_WEBHOOK_H
#define NUI_NOTIFY_WEBHOOK_H

#include <event2/event.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum webhook_outcome {
    WEBHOOK_TAKEN,   /* 2xx */
    WEBHOOK_REFUSED, /* it will not be taken: 3xx, 4xx but 408 and 429; of SMTP 5xx */
    WEBHOOK_SILENT, /* no connection, no answer in time, 408, 429, 5xx; of SMTP 4xx: worth another try */
};

/* text: a sentence for what is not TAKEN. From the loop, never from inside a call. */
typedef void (*webhook_fn) (void *arg, enum webhook_outcome outcome, const char *text);

struct webhook;

struct webhook_message {
    const char *url;       /* http, https; of a mail smtp or smtps: the server */
    const char *from, *to; /* of a mail, whose body has its headers; NULL: it is none */
    const char *key;       /* sent as Idempotency-Key */
    const char *agent;     /* as User-Agent */
    const char *signature; /* as Nui-Signature; NULL: none */
    const char *ca;        /* PEM file that https servers are checked by; NULL: the system's */
    const char *body;
    size_t len;
};

/* "t=SECONDS,v1=HEX": HMAC-SHA256 of "SECONDS." and the body, so that a receiver can tell who sent it, and
 * refuse what is old. */
enum { WEBHOOK_SIGNATURE_MAX = 112 };
const char *webhook_sign (const void *secret, size_t secret_len, time_us now, const char *body,
                          size_t len, char out[WEBHOOK_SIGNATURE_MAX]);

/* NULL with err when libcurl does not work. */
struct webhook *webhook_create (struct event_base *base, struct err *err);
void webhook_destroy (struct webhook *hook); /* no callback comes any more; NULL is a no-op */
/* ERR_EXISTS while one is under way. Everything is copied. */
int webhook_post (struct webhook *hook, const struct webhook_message *message, duration_us limit,
                  webhook_fn fn, void *arg, struct err *err);

#endif
