/* bank_link: what this site asks of the bank and tells it, surviving silence on either side.
 *
 * Holds: a request whose row is durable in the store is sent, unchanged, until the bank answers; every
 * answer is reported once, and once per request the fact that the bank cannot be reached. Charges and
 * releases: the store's outbox is drained in order, several in flight, each under its own stored key,
 * until acknowledged. One that the bank will never take, for what it says, becomes a dead letter with the bank's reason,
 * and the rest goes on; while the bank denies that this site may send any (PERMISSION_DENIED), all wait. What the bank acknowledged stays in the box for a while: a bank that answers as if it had never had it was
 * restored to an earlier moment, and gets it again under the same keys.
 *
 * One loop. The store's rows are the caller's to write and (after an answer) to delete. */
#ifndef NUI_LOCAL_LINK_BANK_LINK_H
#define NUI_LOCAL_LINK_BANK_LINK_H

#include <event2/event.h>

#include "local/store/local_store.h"
#include "proto/base/log.h"
#include "proto/rpc/rpcclient.h"

enum bank_outcome {
    BANK_GRANTED,
    BANK_REFUSED,     /* the bank said no, with its sentence; the request is over */
    BANK_UNREACHABLE, /* told once; the request goes on */
};

struct bank_answer {
    const uint8_t *key;
    uint64_t job;
    enum bank_outcome outcome;
    const char *hold_id;
    credit_micro amount;
    const char *account;
    const char *qos; /* that it pays for; "": the job's own */
    time_us expires;
    const char *code; /* why not */
    const char *text;
};

struct bank_link_config {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    const char *target;  /* host:port */
    duration_us timeout; /* of one call */
    struct local_store *store;
    void (*on_answer) (void *arg, const struct bank_answer *answer); /* never from inside a call */
    /* In the transaction in which an item becomes a dead letter: what else is to be kept. */
    int (*on_refused) (void *arg, const struct store_item *item, enum rpc_status status,
                       struct err *err);
    void (*on_denied) (void *arg); /* bank_link_denied has changed; may be NULL */
    void *arg;
};

struct bank_link;

struct bank_link *bank_link_create (const struct bank_link_config *config, struct err *err);
void bank_link_destroy (struct bank_link *link);

/* Begins to ask; copies what it needs. */
void bank_link_hold (struct bank_link *link, const struct store_hold *hold);
/* For other questions to the bank. */
struct rpcclient *bank_link_client (struct bank_link *link);
void bank_link_timeout_set (struct bank_link *link, duration_us timeout);
/* Why the bank takes no message of this site's now, in its words; "": it does, or was not asked. */
const char *bank_link_denied (const struct bank_link *link);
/* Something was put into the outbox. NULL is a no-op. */
void bank_link_poke (struct bank_link *link);

#endif
