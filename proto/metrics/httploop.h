/* httploop: libmicrohttpd on libevent's loop, for every program that has an HTTP listener (metrics, the gate).
 *
 * The caller starts libmicrohttpd's daemon with its own options (MHD_USE_EPOLL among them) and hands it over; from then on it
 * is run whenever something came or its time is due, and stopped by httploop_destroy. One loop, no thread. */
#ifndef NUI_METRICS_HTTPLOOP_H
#define NUI_METRICS_HTTPLOOP_H

#include <event2/event.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct httploop;

/* listen: "127.0.0.1:9464", "[::1]:0" (port 0: a free one), numbers only. False: it is no such text. */
bool httploop_address (const char *listen, struct sockaddr_storage *out);
bool httploop_address_is_loopback (const struct sockaddr_storage *address);

/* Owns http from here on, also when it fails. NULL, with errno set, when http is NULL or there is no room for events. */
struct httploop *httploop_create (struct event_base *base, struct MHD_Daemon *http);
void httploop_turn (struct httploop *loop);                  /* runs what is due now */
void httploop_soon (struct httploop *loop);                  /* the same in the loop's next turn */
unsigned httploop_connections (const struct httploop *loop); /* 0 of NULL */
uint16_t httploop_port (const struct httploop *loop);        /* 0 of NULL */
void httploop_destroy (struct httploop *loop);               /* NULL is a no-op */

#endif
