/* meta_link: keeps the metaschedulers told.
 *
 * A report goes out when something changed (coalesced for 20 ms), and at least every 10 s. It carries
 * the job events that are still in the store's outbox, oldest first; they leave the box when every
 * metascheduler has acknowledged them; to one that the job is not of an event goes empty. One report in
 * flight per metascheduler. */
#ifndef NUI_LOCAL_LINK_META_LINK_H
#define NUI_LOCAL_LINK_META_LINK_H

#include <event2/event.h>

#include "local/store/local_store.h"
#include "proto/base/log.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/tlsid.h"

struct meta_link_config {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    const char *const *targets; /* host:port each */
    uint32_t target_count;
    struct local_store *store;
    /* Fills everything but events; what it points to must hold until the next call. */
    void (*fill) (void *arg, Nui__Meta__V1__SiteReport *report);
    /* Whether a job that `owner` gave may be told to this metascheduler. */
    bool (*concerns) (void *arg, const char *metascheduler, const char *owner);
    /* Who answered at that target, by its certificate, whatever it said; again with each answer. */
    void (*met) (void *arg, uint32_t target, const char *metascheduler);
    /* It has acknowledged a report that left then, by the monotonic clock. May be NULL. */
    void (*heard) (void *arg, const char *metascheduler, duration_us sent);
    void *arg;
};

struct meta_link;

struct meta_link *meta_link_create (const struct meta_link_config *config, struct err *err);
void meta_link_destroy (struct meta_link *link);
void meta_link_poke (struct meta_link *link);
/* The name in the certificate that was shown there last; "": none since link was made. */
const char *meta_link_server (const struct meta_link *link, uint32_t target);
/* For calls of others; it is the link's. */
struct rpcclient *meta_link_client (const struct meta_link *link, uint32_t target);

#endif
