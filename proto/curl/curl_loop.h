/* curl_loop: libcurl's multi interface in a libevent loop.
 *
 * Never blocks: names are looked up by a thread of libcurl's. One loop, one thread. The handles are
 * the caller's, who sets their options and CURLOPT_PRIVATE. */
#ifndef NUI_CURL_CURL_LOOP_H
#define NUI_CURL_CURL_LOOP_H

#include <curl/curl.h>
#include <event2/event.h>

#include "proto/base/err.h"

struct curl_loop;

/* A transfer is over, from the loop, never from inside a call. The handle is still in:
 * curl_loop_remove. The loop must not be destroyed from within. */
typedef void (*curl_loop_fn) (void *arg, CURL *easy, CURLcode code);

/* connections_max: open at one time; 0: no limit. NULL with err when libcurl does not work. */
struct curl_loop *curl_loop_create (struct event_base *base, long connections_max, curl_loop_fn fn,
                                    void *arg, struct err *err);
/* After all handles are out. NULL is a no-op. */
void curl_loop_destroy (struct curl_loop *loop);
int curl_loop_add (struct curl_loop *loop, CURL *easy, struct err *err);
/* Ends it where it is under way. */
void curl_loop_remove (struct curl_loop *loop, CURL *easy);

#endif
