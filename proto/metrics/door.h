/* door: GET /metrics over plain HTTP/1.1, for programs of the same machine (Prometheus, an agent, curl).
 *
 * Listens on loopback addresses only: whoever asks from elsewhere does so with a certificate, at the daemon's own port
 * (proto/rpc). 32 connections at a time, each silent for 2 s at the most; one loop, no thread of its own. */
#ifndef NUI_METRICS_DOOR_H
#define NUI_METRICS_DOOR_H

#include <event2/event.h>

#include "proto/base/err.h"
#include "proto/metrics/metrics.h"

struct metrics_door;

/* The text in that form, and how many bytes; it holds until the loop's next turn. */
typedef const char *(*metrics_text_fn) (void *arg, enum metrics_form form, size_t *len);

/* listen: "127.0.0.1:9464", "[::1]:0" (port 0: a free one). ERR_INVALID: not a loopback address and a port. */
int metrics_address_check (const char *listen, struct err *err);
struct metrics_door *metrics_door_open (struct event_base *base, const char *listen,
                                        metrics_text_fn text, void *arg, struct err *err);
uint16_t metrics_door_port (const struct metrics_door *door);
void metrics_door_close (struct metrics_door *door); /* NULL is a no-op */

#endif
