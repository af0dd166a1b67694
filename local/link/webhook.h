/* webhook: POSTs a JSON document to an administrator's URL, over libcurl in the loop.
 *
 * One at a time; never blocks (names are looked up by a thread of libcurl's). Redirects are not
 * followed: the URL is the administrator's word. One loop, one thread. */
#ifndef NUI_LOCAL_LINK_WEBHOOK_H
#define NUI_LOCAL_LINK_WEBHOOK_H

#include <event2/event.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

enum webhook_outcome {
    WEBHOOK_TAKEN,   /* 2xx */
    WEBHOOK_REFUSED, /* it will not be taken: 3xx, 4xx but 408 and 429 */
    WEBHOOK_SILENT,  /* no connection, no answer in time, 408, 429, 5xx: worth another try */
};

/* text: a sentence for what is not TAKEN. From the loop, never from inside a call. */
typedef void (*webhook_fn) (void *arg, enum webhook_outcome outcome, const char *text);

struct webhook;

/* NULL with err when libcurl does not work. */
struct webhook *webhook_create (struct event_base *base, struct err *err);
void webhook_destroy (struct webhook *hook); /* no callback comes any more; NULL is a no-op */
/* key: sent as Idempotency-Key. ERR_EXISTS while one is under way. Everything is copied. */
int webhook_post (struct webhook *hook, const char *url, const char *key, const char *body,
                  size_t len, duration_us limit, webhook_fn fn, void *arg, struct err *err);

#endif
