/* anchors: this site keeps the bank's word. Every so often the newest block of the bank's history is
 * fetched, its signature checked, and kept in a file (proto/audit/anchor.h); before that the bank must show
 * the block that was kept last once more. Where that is another one, is missing, or the history has become
 * shorter, it was rewritten: said each time, and the file stays as it is, for `nui verify --anchor`.
 *
 * One loop; the file is written in it, a line at a time. */
#ifndef NUI_LOCAL_LINK_ANCHORS_H
#define NUI_LOCAL_LINK_ANCHORS_H

#include <event2/event.h>

#include "proto/audit/anchor.h"
#include "proto/base/log.h"
#include "proto/rpc/rpcclient.h"

struct anchors_config {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    struct rpcclient *client; /* to the bank */
    const char *path;
    duration_us every;
    /* Whether the history is what it was, once it was looked at, and when that changes; with a sentence. */
    void (*on_change) (void *arg, bool rewritten, const char *why);
    void *arg;
};

struct anchors;

/* ERR_INVALID: the file holds something else; ERR_IO. */
struct anchors *anchors_create (const struct anchors_config *config, struct err *err);
void anchors_every (struct anchors *anchors, duration_us every);
void anchors_destroy (struct anchors *anchors); /* after its client */

#endif
