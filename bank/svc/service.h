/* service: nui.bank.v1.Bank on an RPC server, over the committer and the reader.
 *
 * Starts whether or not PostgreSQL is there; until it is, and whenever it goes away, requests are
 * answered UNAVAILABLE and the health service says NOT_SERVING. Caller roles are in the method
 * table (service.c); what a user may see is limited to projects they are a member of. */
#ifndef NUI_BANK_SVC_SERVICE_H
#define NUI_BANK_SVC_SERVICE_H

#include <event2/event.h>

#include "proto/base/log.h"
#include "proto/notify/teller.h"
#include "proto/rpc/rpcserver.h"
#include "proto/rpc/tlsid.h"

struct bank_service;

/* What a reload may change. */
struct bank_limits {
    duration_us state;  /* so often the root over all objects is recorded, if anything was */
    duration_us hold;   /* stale holds are released after it */
    duration_us quote;  /* rates are kept at most so long */
    duration_us replay; /* no signed job is taken for the first time so long after it was signed */
    duration_us read;   /* so long without a commit, what is read may be old */
    duration_us clock;  /* the clock may be so far ahead: store/moment.h */
    duration_us tolerance;   /* that clocks of sites may differ by from the bank's */
    struct teller_to notify; /* who hears of what is wrong: notify.h */
    unsigned notify_events;
    int64_t checkpoint_entries; /* of an account make a checkpoint: store/checkpoint.h */
};

struct bank_service_config {
    struct event_base *base;
    struct log *log;
    struct tlsid *id; /* to verify envelopes */
    struct rpcserver *server;
    const char *database; /* libpq's conninfo; copied */
    struct bank_limits limits;
};

struct bank_service *bank_service_create (const struct bank_service_config *config,
                                          struct err *err);
/* From now on. */
void bank_service_settings (struct bank_service *svc, const struct bank_limits *limits);
/* What it tells of itself (metrics.c), once a second at the most. */
void bank_service_metrics (struct bank_service *svc, struct metrics_page *page);
void bank_service_destroy (struct bank_service *svc);

#endif
