#include "local/link/bank_link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "local/store/runs.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/rpc/rpcclient.h"

enum { WINDOW = 32 };
static const duration_us retry_first = US_PER_S / 5;
static const duration_us retry_max = 10 * US_PER_S;
static const duration_us refused_retry = 60 * US_PER_S;

struct ask {
    struct bank_link *link;
    uint8_t key[16];
    uint64_t job;
    Nui__Bank__V1__HoldRequest *request;
    struct rpccallout *call;
    struct event *timer;
    duration_us backoff;
    bool told_unreachable;
    UT_hash_handle hh;
};

struct sending {
    struct bank_link *link;
    uint64_t sequence; /* 0: free */
    bool done;
    bool charge;
    credit_micro total; /* of its job, as the bank answered */
    struct rpccallout *call;
};

struct bank_link {
    struct bank_link_config config;
    struct rpcclient *client;
    struct ask *asks;
    struct sending sending[WINDOW];
    uint64_t sent;  /* highest sequence in the window */
    uint64_t acked; /* everything up to here is out of the store */
    struct event *drain_event;
    duration_us backoff;
    bool closing;
};

static struct timeval tv (duration_us d)
{
    return (struct timeval){.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
}

/* Full jitter: anywhere in (0, backoff], so that sites do not return in step. */
static duration_us jitter (duration_us *backoff)
{
    uint32_t r;
    duration_us base = *backoff ? *backoff : retry_first;
    random_bytes (&r, sizeof r);
    *backoff = base * 2 > retry_max ? retry_max : base * 2;
    return 1 + (duration_us)((double)base * (r / 4294967296.0));
}

static bool worth_retrying (enum rpc_status status)
{
    switch (status) {
    case RPC_CANCELLED:
    case RPC_UNKNOWN:
    case RPC_DEADLINE_EXCEEDED:
    case RPC_RESOURCE_EXHAUSTED:
    case RPC_UNAVAILABLE:
    case RPC_INTERNAL:
    case RPC_UNIMPLEMENTED: /* an older bank: nothing may be lost while it is replaced */
        return true;
    default:
        return false;
    }
}

/* --- holds -------------------------------------------------------------------------------- */

static void ask_free (struct ask *ask)
{
    if (ask->timer)
        event_free (ask->timer);
    nui__bank__v1__hold_request__free_unpacked (ask->request, NULL);
    free (ask);
}

static void ask_end (struct ask *ask, struct bank_answer *answer)
{
    struct bank_link *link = ask->link;
    answer->key = ask->key;
    answer->job = ask->job;
    HASH_DEL (link->asks, ask);
    link->config.on_answer (link->config.arg, answer);
    ask_free (ask);
}

static const char *code_of_status (enum rpc_status status)
{
    switch (status) {
    case RPC_UNAUTHENTICATED:
        return "BadSignature";
    case RPC_FAILED_PRECONDITION:
        return "InsufficientFunds";
    case RPC_PERMISSION_DENIED:
        return "BankDenied";
    case RPC_NOT_FOUND:
        return "UnknownAtBank";
    default:
        return "BankFailure";
    }
}

static void on_hold_done (void *arg, const struct rpc_result *result)
{
    struct ask *ask = arg;
    struct bank_link *link = ask->link;
    ask->call = NULL;
    if (link->closing)
        return;
    if (worth_retrying (result->status)) {
        struct timeval t = tv (jitter (&ask->backoff));
        log_event (link->config.log, LOG_LEVEL_WARN, "bank", "hold_unanswered",
                   "job=%llu status=%d", (unsigned long long)ask->job, (int)result->status);
        event_add (ask->timer, &t);
        if (!ask->told_unreachable) {
            ask->told_unreachable = true;
            struct bank_answer answer = {.key = ask->key, .job = ask->job,
                                         .outcome = BANK_UNREACHABLE, .code = "BankUnavailable",
                                         .text = result->message};
            link->config.on_answer (link->config.arg, &answer);
        }
        return;
    }
    struct bank_answer answer = {.outcome = BANK_REFUSED};
    if (result->status != RPC_OK) {
        answer.code = code_of_status (result->status);
        answer.text = result->message;
        ask_end (ask, &answer);
        return;
    }
    const Nui__Bank__V1__HoldReply *reply = (const Nui__Bank__V1__HoldReply *)result->reply;
    if (reply->granted) {
        answer.outcome = BANK_GRANTED;
        answer.hold_id = reply->hold_id;
        answer.amount = reply->amount_micro;
        answer.account = reply->account;
        answer.qos = reply->qos;
        answer.expires = reply->expires_us;
    } else {
        answer.code = reply->reason && *reply->reason->code ? reply->reason->code : "BankFailure";
        answer.text = reply->reason && *reply->reason->text ? reply->reason->text
                                                            : "the bank refused the hold";
    }
    ask_end (ask, &answer);
}

static void ask_send (struct ask *ask)
{
    struct rpccallout_config call = {
        .service = &nui__bank__v1__bank__descriptor,
        .method = "Hold",
        .request = &ask->request->base,
        .timeout = ask->link->config.timeout,
        .idempotent = true, /* it carries its key */
        .done = on_hold_done,
        .arg = ask,
    };
    ask->call = rpcclient_start (ask->link->client, &call);
}

static void on_ask_timer (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ask_send (arg);
}

void bank_link_hold (struct bank_link *link, const struct store_hold *hold)
{
    struct ask *ask;
    HASH_FIND (hh, link->asks, hold->key, sizeof hold->key, ask);
    if (ask)
        return;
    ask = calloc (1, sizeof *ask);
    assert (ask);
    ask->link = link;
    memcpy (ask->key, hold->key, sizeof ask->key);
    ask->job = hold->job;
    ask->request = nui__bank__v1__hold_request__unpack (NULL, hold->request_len, hold->request);
    assert (ask->request); /* we packed it ourselves */
    ask->timer = evtimer_new (link->config.base, on_ask_timer, ask);
    HASH_ADD (hh, link->asks, key, sizeof ask->key, ask);
    ask_send (ask);
}

/* --- outbox ------------------------------------------------------------------------------- */

static void drain_after (struct bank_link *link, duration_us d)
{
    struct timeval t = tv (d);
    event_add (link->drain_event, &t);
}

static struct sending *slot_of (struct bank_link *link, uint64_t sequence)
{
    return &link->sending[sequence % WINDOW];
}

/* Everything done without a gap leaves the store. */
static void ack_contiguous (struct bank_link *link)
{
    uint64_t upto = link->acked;
    while (upto < link->sent && slot_of (link, upto + 1)->sequence == upto + 1 &&
           slot_of (link, upto + 1)->done)
        upto++;
    if (upto == link->acked)
        return;
    struct err err = {0};
    struct local_store *store = link->config.store;
    int rc = local_store_begin (store, &err);
    for (uint64_t s = link->acked + 1; s <= upto && rc == 0; s++)
        if (slot_of (link, s)->charge)
            rc = runs_answered (store, s, slot_of (link, s)->total, &err);
    if (rc != 0 || local_store_outbox_ack (store, STORE_OUTBOX_BANK, upto, &err) != 0 ||
        local_store_commit (store, &err) != 0) {
        local_store_rollback (store);
        log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "ack_not_stored", "error=\"%s\"",
                   err.text); /* it stays in the box and is sent again after a restart */
        return;
    }
    for (uint64_t s = link->acked + 1; s <= upto; s++)
        slot_of (link, s)->sequence = 0;
    link->acked = upto;
    drain_after (link, 0);
}

static void on_item_done (void *arg, const struct rpc_result *result)
{
    struct sending *item = arg;
    struct bank_link *link = item->link;
    item->call = NULL;
    if (link->closing)
        return;
    if (result->status != RPC_OK) {
        bool hopeless = !worth_retrying (result->status);
        log_event (link->config.log, hopeless ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "bank",
                   hopeless ? "item_refused" : "item_unanswered",
                   "sequence=%llu status=%d message=\"%s\"", (unsigned long long)item->sequence,
                   (int)result->status, result->message);
        /* A charge is never given up: one that the bank cannot take stays, loudly. */
        if (!event_pending (link->drain_event, EV_TIMEOUT, NULL))
            drain_after (link, hopeless ? refused_retry : jitter (&link->backoff));
        return;
    }
    link->backoff = 0;
    item->done = true;
    uint64_t bank_has;
    if (item->charge) {
        const Nui__Bank__V1__ChargeReply *reply = (const Nui__Bank__V1__ChargeReply *)result->reply;
        bank_has = reply->acked_sequence;
        item->total = reply->total_micro;
    } else {
        bank_has = ((const Nui__Bank__V1__ReleaseReply *)result->reply)->acked_sequence;
    }
    if (bank_has && bank_has < link->acked)
        log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "gap",
                   "ours=%llu banks=%llu", (unsigned long long)link->acked,
                   (unsigned long long)bank_has);
    ack_contiguous (link);
}

static void item_send (struct bank_link *link, struct sending *slot, const struct store_item *item)
{
    struct rpccallout_config call = {
        .service = &nui__bank__v1__bank__descriptor,
        .timeout = link->config.timeout,
        .idempotent = true,
        .done = on_item_done,
        .arg = slot,
    };
    ProtobufCMessage *request;
    slot->charge = strcmp (item->kind, "charge") == 0;
    if (slot->charge) {
        request = (ProtobufCMessage *)nui__bank__v1__charge_request__unpack (
            NULL, item->payload_len, item->payload);
        assert (request);
        ((Nui__Bank__V1__ChargeRequest *)request)->sequence = item->sequence;
        call.method = "Charge";
    } else {
        request = (ProtobufCMessage *)nui__bank__v1__release_request__unpack (
            NULL, item->payload_len, item->payload);
        assert (request);
        ((Nui__Bank__V1__ReleaseRequest *)request)->sequence = item->sequence;
        call.method = "Release";
    }
    call.request = request;
    slot->call = rpcclient_start (link->client, &call);
    protobuf_c_message_free_unpacked (request, NULL);
}

static void on_item_read (void *arg, const struct store_item *item)
{
    struct bank_link *link = arg;
    struct sending *slot = slot_of (link, item->sequence);
    if (link->acked == 0 && link->sent == 0)
        link->acked = item->sequence - 1; /* where the last run of this daemon stopped */
    if (item->sequence > link->acked + WINDOW)
        return;
    if (slot->sequence == item->sequence && (slot->done || slot->call))
        return;
    slot->link = link;
    slot->sequence = item->sequence;
    slot->done = false;
    if (item->sequence > link->sent)
        link->sent = item->sequence;
    item_send (link, slot, item);
}

static void on_drain (evutil_socket_t fd, short what, void *arg)
{
    struct bank_link *link = arg;
    struct err err = {0};
    (void)fd;
    (void)what;
    if (local_store_outbox_read (link->config.store, STORE_OUTBOX_BANK, link->acked, WINDOW,
                                 on_item_read, link, &err) != 0) {
        log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "outbox_unreadable", "error=\"%s\"",
                   err.text);
        drain_after (link, retry_max);
    }
}

struct rpcclient *bank_link_client (struct bank_link *link)
{
    return link->client;
}

void bank_link_timeout_set (struct bank_link *link, duration_us timeout)
{
    link->config.timeout = timeout;
}

void bank_link_poke (struct bank_link *link)
{
    if (link)
        drain_after (link, 0);
}

struct bank_link *bank_link_create (const struct bank_link_config *config, struct err *err)
{
    struct bank_link *link = calloc (1, sizeof *link);
    if (!link) {
        err_set (err, ERR_NOMEM, "bank link: no memory");
        return NULL;
    }
    link->config = *config;
    struct rpcclient_config rpc = {
        .base = config->base,
        .id = config->id,
        .log = config->log,
        .target = config->target,
        .expect_kind = PRINCIPAL_BANK,
    };
    link->client = rpcclient_create (&rpc, err);
    link->drain_event = evtimer_new (config->base, on_drain, link);
    if (!link->client || !link->drain_event) {
        bank_link_destroy (link);
        return NULL;
    }
    link->config.target = NULL; /* the caller's string; not kept */
    drain_after (link, 0);
    return link;
}

void bank_link_destroy (struct bank_link *link)
{
    struct ask *ask, *next;
    if (!link)
        return;
    link->closing = true;
    if (link->client)
        rpcclient_destroy (link->client);
    HASH_ITER (hh, link->asks, ask, next)
    {
        HASH_DEL (link->asks, ask);
        ask_free (ask);
    }
    if (link->drain_event)
        event_free (link->drain_event);
    free (link);
}
