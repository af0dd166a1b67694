/* link: the metascheduler's connections: one to each site, one to the bank, one to each
 * other of its group.
 *
 * Every request to a site carries a key (transaction, component, attempt; or grid job id and
 * attempt) and every request to the bank is a question, so all calls are marked idempotent: a lost
 * connection leads to a resend within the deadline. `done` is called exactly once and never inside
 * the call that starts it; a link that is destroyed ends its calls with CANCELLED. */
#ifndef NUI_META_LINK_LINK_H
#define NUI_META_LINK_LINK_H

#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/rpcclient.h"

struct link;

struct link_env {
    struct event_base *base;
    struct tlsid *id;
    struct log *log;
    const struct sendgate *gate; /* before every message; outlives the links */
};

typedef void (*link_done_fn) (void *arg, const struct rpc_result *result);

/* The server must show the certificate of site `name` (nui.local.v1). */
struct link *link_to_site (const struct link_env *env, const char *name, const char *server,
                           struct err *err);
/* The server must show a certificate of kind bank (nui.bank.v1). */
struct link *link_to_bank (const struct link_env *env, const char *server, struct err *err);
/* The server must show the certificate of metascheduler `name` (nui.meta.v1.Peers). */
struct link *link_to_peer (const struct link_env *env, const char *name, const char *server,
                           struct err *err);
void link_destroy (struct link *link); /* NULL is a no-op */
const char *link_server (const struct link *link);

/* method: "Query", "Prepare" … of the service at the other end. */
void link_call (struct link *link, const char *method, const ProtobufCMessage *request,
                duration_us timeout, link_done_fn done, void *arg);

#endif
