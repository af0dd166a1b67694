/* bank_link: sends holds and the outbox to the bank, several messages in flight, with back-off.
 * The service starts it and is told each answer. It never invents a request: only what is
 * durable in the store is sent, under the key stored with it, so that the bank counts a
 * repetition once. */
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
    bool done;         /* and waits for those before it to be done */
    bool charge;
    credit_micro total; /* of its job, as the bank answered */
    char job[96];       /* of a charge, as this site calls it; for the log */
    uint64_t floor;     /* the bank had all up to here when it was first asked; 0: not known */
    struct rpccallout *call;
};

struct bank_link {
    struct bank_link_config config;
    struct rpcclient *client;
    struct ask *asks;
    struct sending sending[WINDOW];
    uint64_t read;  /* the highest sequence that was taken into the window */
    uint64_t acked; /* everything up to here has arrived */
    uint64_t fresh; /* what is behind this was never sent before this daemon began */
    /* The bank has forgotten what is behind `again_from`; it is sent again up to again_to (0: it has not). */
    uint64_t again_from, again_to;
    struct event *drain_event;
    duration_us backoff;
    bool full;    /* while the box is read: of the window */
    char *denied; /* why the bank takes nothing of this site's now; NULL: it does */
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

static bool worth_retrying (const struct rpc_result *result)
{
    return result->status != RPC_OK && !(result->answered && rpc_status_is_final (result->status));
}

/* A message that is refused for what it says will be for ever; one that is refused for who sends it (a certificate, a
 * role) is not, and so will be those behind it: they wait, and somebody is told. */
static bool outbox_denied (const struct rpc_result *result)
{
    return result->answered && result->status == RPC_PERMISSION_DENIED;
}

static void denied_set (struct bank_link *link, const char *why)
{
    char quoted[400];
    if (why ? link->denied && strcmp (link->denied, why) == 0 : !link->denied)
        return;
    log_event (
        link->config.log, why ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "bank",
        why ? "denied" : "allowed", "text=%s",
        log_quote (why ? why : "the bank takes this site's messages again", quoted, sizeof quoted));
    free (link->denied);
    link->denied = why ? strdup (why) : NULL;
    if (link->config.on_denied)
        link->config.on_denied (link->config.arg);
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
    if (worth_retrying (result)) {
        struct timeval t = tv (jitter (&ask->backoff));
        log_event (link->config.log, LOG_LEVEL_WARN, "bank", "hold_unanswered",
                   "job=%llu status=%d", (unsigned long long)ask->job, (int)result->status);
        event_add (ask->timer, &t);
        if (!ask->told_unreachable) {
            ask->told_unreachable = true;
            struct bank_answer answer = {.key = ask->key,
                                         .job = ask->job,
                                         .outcome = BANK_UNREACHABLE,
                                         .code = "BankUnavailable",
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

/* The one with that sequence; 0: a free one. NULL: none. */
static struct sending *slot_of (struct bank_link *link, uint64_t sequence)
{
    for (int i = 0; i < WINDOW; i++)
        if (link->sending[i].sequence == sequence)
            return &link->sending[i];
    return NULL;
}

/* Everything up to here is done: numbers that were read and are in no slot need nothing. */
static uint64_t done_up_to (const struct bank_link *link)
{
    uint64_t upto = link->read;
    for (int i = 0; i < WINDOW; i++)
        if (link->sending[i].sequence && !link->sending[i].done &&
            link->sending[i].sequence <= upto)
            upto = link->sending[i].sequence - 1;
    return upto;
}

static void ack_done (struct bank_link *link)
{
    uint64_t upto = done_up_to (link);
    struct err err = {0};
    struct local_store *store = link->config.store;
    if (upto <= link->acked)
        return;
    int rc = local_store_begin (store, &err);
    for (int i = 0; i < WINDOW && rc == 0; i++) {
        const struct sending *slot = &link->sending[i];
        if (slot->sequence && slot->sequence <= upto && slot->charge)
            rc = runs_answered (store, slot->sequence, slot->total, &err);
    }
    if (rc != 0 || local_store_outbox_ack_keep (store, STORE_OUTBOX_BANK, upto, &err) != 0 ||
        local_store_commit (store, &err) != 0) {
        local_store_rollback (store);
        log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "ack_not_stored", "error=\"%s\"",
                   err.text); /* it is sent again after a restart */
        return;
    }
    for (int i = 0; i < WINDOW; i++)
        if (link->sending[i].sequence && link->sending[i].sequence <= upto)
            link->sending[i].sequence = 0;
    link->acked = upto;
    drain_after (link, 0);
}

/* The bank says up to where it has everything: less than it had when this one was asked means that it was restored
 * to an earlier moment. A replayed answer may be old: of what may have been sent before nothing is concluded. A gap
 * that stays (messages that are not kept) is known by then, and passes as the bank gives it up. */
static void history_look (struct bank_link *link, const struct sending *item, uint64_t bank_has)
{
    if (link->again_to && bank_has >= link->again_to)
        link->again_to = 0;
    if (bank_has >= item->floor || (link->again_to && bank_has >= link->again_from))
        return;
    log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "history_lost",
               "ours=%llu banks=%llu text=\"the bank has forgotten messages: they are sent again\"",
               (unsigned long long)item->floor, (unsigned long long)bank_has);
    link->again_to = link->again_to > link->acked ? link->again_to : link->acked;
    link->again_from = bank_has;
    link->acked = link->read = bank_has;
    drain_after (link, 0);
}

struct burying {
    struct bank_link *link;
    const struct rpc_result *result;
    uint64_t sequence;
    int rc;
    struct err *err;
};

static void on_item_buried (void *arg, const struct store_item *item)
{
    struct burying *b = arg;
    if (item->sequence == b->sequence && b->link->config.on_refused)
        b->rc = b->link->config.on_refused (b->link->config.arg, item, b->result->status, b->err);
}

/* A message that the bank will never take: out of the way, with its reason. */
static int item_bury (struct sending *item, const struct rpc_result *result, struct err *err)
{
    struct bank_link *link = item->link;
    struct local_store *store = link->config.store;
    struct burying b = {link, result, item->sequence, 0, err};
    int rc = local_store_begin (store, err);
    if (rc == 0)
        rc = local_store_outbox_read (store, STORE_OUTBOX_BANK, item->sequence - 1, 1,
                                      on_item_buried, &b, err);
    if (rc == 0)
        rc = b.rc;
    if (rc == 0)
        rc = local_store_outbox_bury (store, STORE_OUTBOX_BANK, item->sequence,
                                      rpc_err_of_status (result->status), result->message,
                                      clock_now_us (), err);
    if (rc == 0)
        rc = local_store_commit (store, err);
    if (rc != 0)
        local_store_rollback (store);
    return rc;
}

static void item_refused (struct sending *item, const struct rpc_result *result)
{
    struct bank_link *link = item->link;
    bool denied = outbox_denied (result), hopeless = !denied && !worth_retrying (result);
    char quoted[400];
    struct err err = {0};
    log_event (link->config.log, hopeless ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "bank",
               hopeless ? "dead_letter" : "item_unanswered", "sequence=%llu status=%d message=%s",
               (unsigned long long)item->sequence, (int)result->status,
               log_quote (result->message, quoted, sizeof quoted));
    if (hopeless && item_bury (item, result, &err) == 0) {
        item->done = true;
        item->charge = false; /* the bank answered nothing that its run could keep */
        ack_done (link);
        return;
    }
    if (denied)
        denied_set (link, result->message);
    if (hopeless)
        log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "not_buried", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
    if (!event_pending (link->drain_event, EV_TIMEOUT, NULL))
        drain_after (link, jitter (&link->backoff));
}

static void on_item_done (void *arg, const struct rpc_result *result)
{
    struct sending *item = arg;
    struct bank_link *link = item->link;
    item->call = NULL;
    if (link->closing)
        return;
    if (result->status != RPC_OK) {
        item_refused (item, result);
        return;
    }
    link->backoff = 0;
    item->done = true;
    denied_set (link, NULL);
    uint64_t bank_has;
    char credits[QUANTITY_TEXT_MAX];
    if (item->charge) {
        const Nui__Bank__V1__ChargeReply *reply = (const Nui__Bank__V1__ChargeReply *)result->reply;
        bank_has = reply->acked_sequence;
        item->total = reply->total_micro;
        if (reply->disputed_micro > 0)
            log_event (
                link->config.log, LOG_LEVEL_WARN, "bank", "charge_disputed",
                "job=%s credits=%s text=\"beyond what its user signed and the bank has registered of "
                "this site: nui reconcile says why\"",
                item->job, credit_format (reply->disputed_micro, credits));
    } else {
        bank_has = ((const Nui__Bank__V1__ReleaseReply *)result->reply)->acked_sequence;
    }
    history_look (link, item, bank_has);
    ack_done (link);
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
    slot->charge = strcmp (item->kind, "release") != 0;
    if (slot->charge) {
        request = (ProtobufCMessage *)nui__bank__v1__charge_request__unpack (
            NULL, item->payload_len, item->payload);
        assert (request);
        ((Nui__Bank__V1__ChargeRequest *)request)->sequence = item->sequence;
        snprintf (slot->job, sizeof slot->job, "%s",
                  ((Nui__Bank__V1__ChargeRequest *)request)->site_job_id);
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
    bool known = slot;
    bool nothing = strcmp (item->kind, STORE_ITEM_VOID) == 0;
    link->full |= !known && !nothing && !(slot = slot_of (link, 0));
    if (link->full)
        return; /* read once more when the window moves */
    if (item->sequence > link->read)
        link->read = item->sequence;
    if (nothing || (known && (slot->done || slot->call)))
        return;
    if (!known)
        *slot = (struct sending){
            .link = link,
            .sequence = item->sequence,
            .floor =
                item->sequence > link->fresh && item->sequence > link->again_to ? link->acked : 0};
    item_send (link, slot, item);
}

static void on_drain (evutil_socket_t fd, short what, void *arg)
{
    struct bank_link *link = arg;
    struct err err = {0};
    (void)fd;
    (void)what;
    link->full = false;
    if (local_store_outbox_read (link->config.store, STORE_OUTBOX_BANK, link->acked, WINDOW,
                                 on_item_read, link, &err) != 0) {
        log_event (link->config.log, LOG_LEVEL_ERROR, "bank", "outbox_unreadable", "error=\"%s\"",
                   err.text);
        drain_after (link, retry_max);
    }
    ack_done (link);
}

struct rpcclient *bank_link_client (struct bank_link *link)
{
    return link->client;
}

const char *bank_link_denied (const struct bank_link *link)
{
    return link->denied ? link->denied : "";
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
        .mend_text = true,
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
    if (local_store_outbox_position (config->store, STORE_OUTBOX_BANK, &link->acked, &link->fresh,
                                     err) != 0) {
        bank_link_destroy (link);
        return NULL;
    }
    link->read = link->acked;
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
    HASH_ITER (hh, link->asks, ask, next) {
        HASH_DEL (link->asks, ask);
        ask_free (ask);
    }
    if (link->drain_event)
        event_free (link->drain_event);
    free (link->denied);
    free (link);
}
