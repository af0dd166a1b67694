#include "grid_i.h"

#include "proto/base/clock.h"
#include "proto/job/element.h"
#include "proto/job/handover.h"
#include "proto/job/jobcheck.h"

enum { HOLDS_MAX = 4096, PAID_MAX = 256, ITEMS_MAX = 8192 };

struct hold {
    char site[PRINCIPAL_NAME_MAX], job[96];
    uint32_t incarnation;
    uint8_t key[16];
    credit_micro amount;
    time_us expires;
    bool open, refused;
};

static struct {
    struct hold hold[HOLDS_MAX];
    char paid[PAID_MAX][64]; /* the grid's job of each charge of more than nothing */
    uint32_t paid_count;
    uint32_t count;
    credit_micro balance, held, spent;
    uint64_t acked[MACHINES_MAX]; /* of each site's outbox: the highest without a gap */
    bool taken[MACHINES_MAX][ITEMS_MAX];
} bank;

void bank_begin (credit_micro balance)
{
    memset (&bank, 0, sizeof bank);
    bank.balance = balance;
}

static credit_micro price (uint64_t procs, duration_us walltime)
{
    return (credit_micro)procs * walltime;
}

static struct hold *hold_of (const char *id)
{
    unsigned long n = strncmp (id, "hold.", 5) == 0 ? strtoul (id + 5, NULL, 10) : 0;
    return n > 0 && n <= bank.count ? &bank.hold[n - 1] : NULL;
}

bool bank_hold_open (const char *hold_id, time_us *expires_out)
{
    const struct hold *hold = hold_of (hold_id);
    if (hold)
        *expires_out = hold->expires;
    return hold && hold->open;
}

uint32_t bank_holds_open (void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < bank.count; i++)
        open += bank.hold[i].open;
    return open;
}

const char *bank_hold_any (void)
{
    for (uint32_t i = 0; i < bank.count; i++)
        if (bank.hold[i].open)
            return bank.hold[i].job;
    return "none";
}

static void on_quote (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__QuoteRequest *r = (const Nui__Bank__V1__QuoteRequest *)message;
    Nui__Bank__V1__QuoteReply reply = NUI__BANK__V1__QUOTE_REPLY__INIT;
    Nui__Bank__V1__Price *prices = calloc (r->n_items + 1, sizeof *prices);
    Nui__Bank__V1__Price **list = calloc (r->n_items + 1, sizeof *list);
    (void)self;
    if (!prices || !list)
        abort ();
    for (size_t i = 0; i < r->n_items; i++) {
        nui__bank__v1__price__init (&prices[i]);
        prices[i].amount_micro = price (r->items[i]->procs, r->items[i]->walltime_us);
        prices[i].funded = prices[i].amount_micro <= bank.balance - bank.held;
        prices[i].account = (char *)"phys";
        reply.total_micro += prices[i].amount_micro;
        list[i] = &prices[i];
    }
    reply.prices = list;
    reply.n_prices = r->n_items;
    reply.funded = reply.total_micro <= bank.balance - bank.held;
    reply.account = (char *)"phys";
    rpccall_reply (call, &reply.base);
    free (prices);
    free (list);
}

/* Its site does not count on it any more, and is about to return it: its answer came too late. At the end none
 * may be left. */
static bool given_up (const struct hold *hold)
{
    struct svc *svc = svc_of (machine_find (hold->site));
    struct site_job *job =
        svc ? svc_job (svc, strtoull (strchr (hold->job, '.') + 1, NULL, 10)) : NULL;
    return !job ||
           (hold_of (job->rec.hold_id) != hold &&
            (!job->rec.hold_asked || memcmp (job->rec.hold_key, hold->key, sizeof hold->key) != 0));
}

/* Of the hand-overs, as the real one makes it from its database. */
static const uint8_t secret[SHA256_BYTES] = "a bank that is played in tests";

static void on_handover_key (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Bank__V1__HandoverKeyReply reply = NUI__BANK__V1__HANDOVER_KEY_REPLY__INIT;
    Nui__Bank__V1__HandoverKey item = NUI__BANK__V1__HANDOVER_KEY__INIT, *items[] = {&item};
    struct handover_key key;
    (void)self;
    (void)message;
    handover_derive (secret, rpccall_peer (call)->grid, rpccall_peer (call)->name,
                     handover_number (clock_now_us ()), &key);
    item.key = key.number;
    item.begins_us = handover_begins (key.number);
    item.ends_us = handover_ends (key.number);
    item.secret = (ProtobufCBinaryData){sizeof key.bytes, key.bytes};
    reply.keys = items;
    reply.n_keys = 1;
    rpccall_reply (call, &reply.base);
}

/* Nobody holds for what was not given to it. A hand-over may have ended on its way: false. */
static bool handed_over (const struct rpccall *call, const Nui__Bank__V1__HoldRequest *r)
{
    const Nui__Common__V1__HandOver *given = r->envelope->handover;
    struct handover about = {.grid = rpccall_peer (call)->grid,
                             .site = rpccall_peer (call)->name,
                             .component = r->component};
    struct err err = {0};
    Nui__Common__V1__Job *job = element_unpack (r->envelope, &err);
    CHECK (job && given, "(vi) %s asks for a hold for what nobody gave it", r->site_job_id);
    about.uuid = job->uuid;
    sha256 (r->envelope->body.data, r->envelope->body.len, about.hash);
    bool ended = given->expires_us <= clock_now_us ();
    CHECK (handover_check (secret, given, &about, ended ? given->expires_us - 1 : clock_now_us (),
                           &err) == 0,
           "(vi) %s asks for a hold: %s", r->site_job_id, err.text);
    nui__common__v1__job__free_unpacked (job, NULL);
    return !ended;
}

static void on_hold (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__HoldRequest *r = (const Nui__Bank__V1__HoldRequest *)message;
    Nui__Bank__V1__HoldReply reply = NUI__BANK__V1__HOLD_REPLY__INIT;
    Nui__Common__V1__Reason reason = NUI__COMMON__V1__REASON__INIT;
    struct hold *hold = NULL;
    char id[32];
    (void)self;
    CHECK (r->key.len == 16 && r->envelope, "a hold is asked for without key or signature");
    for (uint32_t i = 0; i < bank.count && !hold; i++)
        if (memcmp (bank.hold[i].key, r->key.data, 16) == 0)
            hold = &bank.hold[i]; /* the stored answer */
    if (!hold && !handed_over (call, r)) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "the hand-over has ended");
        return;
    }
    if (!hold) {
        CHECK (bank.count < HOLDS_MAX, "too many holds");
        hold = &bank.hold[bank.count++];
        memset (hold, 0, sizeof *hold);
        memcpy (hold->key, r->key.data, 16);
        snprintf (hold->site, sizeof hold->site, "%s", rpccall_peer (call)->name);
        snprintf (hold->job, sizeof hold->job, "%s", r->site_job_id);
        hold->incarnation = r->incarnation;
        hold->amount = price (r->procs, r->walltime_us);
        hold->expires = r->start_us + r->walltime_us + 3600 * SEC;
        hold->open = hold->amount <= bank.balance - bank.held;
        hold->refused = !hold->open;
        bank.held += hold->open ? hold->amount : 0;
        for (struct hold *h = bank.hold; h < hold; h++)
            CHECK (!h->open || !hold->open || strcmp (h->site, hold->site) != 0 ||
                       strcmp (h->job, hold->job) != 0 || h->incarnation != hold->incarnation ||
                       given_up (h) || given_up (hold),
                   "(iii) %s has two open holds", hold->job);
    }
    reply.granted = !hold->refused;
    snprintf (id, sizeof id, "hold.%u", (unsigned)(hold - bank.hold) + 1);
    reason.code = (char *)"InsufficientFunds";
    reason.text = (char *)"account phys is short";
    reply.reason = hold->refused ? &reason : NULL;
    reply.hold_id = hold->refused ? (char *)"" : id;
    reply.amount_micro = hold->amount;
    reply.account = (char *)"phys";
    reply.expires_us = hold->expires;
    rpccall_reply (call, &reply.base);
}

/* Each once, in whatever order they come. */
static bool fresh (const struct rpccall *call, uint64_t sequence, uint64_t *acked_out)
{
    uint32_t site = machine_index (machine_find (rpccall_peer (call)->name));
    CHECK (sequence < ITEMS_MAX, "too many charges");
    bool first = !bank.taken[site][sequence];
    bank.taken[site][sequence] = true;
    while (bank.acked[site] + 1 < ITEMS_MAX && bank.taken[site][bank.acked[site] + 1])
        bank.acked[site]++;
    *acked_out = bank.acked[site];
    return first;
}

uint32_t bank_charges (const char *grid_job_id)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bank.paid_count; i++)
        count += strcmp (bank.paid[i], grid_job_id) == 0;
    return count;
}

static void hold_close (const char *id, const char *why)
{
    struct hold *hold = hold_of (id);
    CHECK (hold && hold->open, "(iii) hold %s is %s, and is not open", id, why);
    hold->open = false;
    bank.held -= hold->amount;
}

static void on_charge (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__ChargeRequest *r = (const Nui__Bank__V1__ChargeRequest *)message;
    Nui__Bank__V1__ChargeReply reply = NUI__BANK__V1__CHARGE_REPLY__INIT;
    (void)self;
    if (fresh (call, r->sequence, &reply.acked_sequence)) {
        CHECK (r->end_us >= r->start_us, "%s is charged for less than nothing", r->site_job_id);
        bank.spent += price (r->procs, r->end_us - r->start_us);
        if (r->end_us > r->start_us && bank.paid_count < PAID_MAX)
            snprintf (bank.paid[bank.paid_count++], sizeof bank.paid[0], "%s", r->grid_job_id);
        if (r->final && r->hold_id[0])
            hold_close (r->hold_id, "charged");
    }
    rpccall_reply (call, &reply.base);
}

static void on_release (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__ReleaseRequest *r = (const Nui__Bank__V1__ReleaseRequest *)message;
    Nui__Bank__V1__ReleaseReply reply = NUI__BANK__V1__RELEASE_REPLY__INIT;
    (void)self;
    if (fresh (call, r->sequence, &reply.acked_sequence))
        hold_close (r->hold_id, "released");
    rpccall_reply (call, &reply.base);
}

static void on_clock (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    Nui__Bank__V1__ClockReply reply = NUI__BANK__V1__CLOCK_REPLY__INIT;
    (void)self;
    (void)message;
    reply.now_us = clock_now_us ();
    rpccall_reply (call, &reply.base);
}

static const struct rpc_method methods[] = {
    {"Clock", RPC_ALLOW_ANY, false, 0, on_clock},
    {"Quote", RPC_ALLOW (PRINCIPAL_META), false, 0, on_quote},
    {"HandoverKey", RPC_ALLOW (PRINCIPAL_META), false, 0, on_handover_key},
    {"Hold", RPC_ALLOW (PRINCIPAL_SITE), false, 0, on_hold},
    {"Charge", RPC_ALLOW (PRINCIPAL_SITE), false, 0, on_charge},
    {"Release", RPC_ALLOW (PRINCIPAL_SITE), false, 0, on_release},
    {NULL, 0, false, 0, NULL},
};

static void *start (struct machine *machine, struct err *err)
{
    rpcserver_add_service ((struct rpcserver *)machine, &nui__bank__v1__bank__descriptor, methods,
                           NULL, err);
    return &bank;
}

static void stop (struct machine *machine, void *self)
{
    (void)machine;
    (void)self;
}

const struct program bank_program = {start, stop};
