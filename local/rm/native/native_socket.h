/* native_socket: one question over a socket, and its answer, beside the loop: a frame of Wiki's (native_wiki.h) each way, on a
 * connection of its own. */
#ifndef NUI_LOCAL_RM_NATIVE_SOCKET_H
#define NUI_LOCAL_RM_NATIVE_SOCKET_H

#include <event2/event.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"

struct native_socket;

/* problem: NULL, or why there is no answer. text: NUL-terminated, without its head; it holds during the call. */
typedef void (*native_socket_fn) (void *arg, const char *text, const char *problem);

/* server: "host:port" as numbers, or "unix:/path". Read before this returns; the callback comes from the loop, once, and the socket
 * is gone then. NULL with err. */
struct native_socket *native_socket_ask (struct event_base *base, const char *server,
                                         const char *frame, duration_us limit, size_t most,
                                         native_socket_fn fn, void *arg, struct err *err);
/* No callback comes any more. NULL is a no-op. */
void native_socket_drop (struct native_socket *socket);
/* Whether a server is one; ERR_INVALID with a sentence. */
int native_socket_check (const char *server, struct err *err);

#endif
