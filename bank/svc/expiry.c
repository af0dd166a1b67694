/* Every EXPIRY_PERIOD_S: allocations that were made before they began repay what is owed by then; those
 * that have ended give back what they have left, or leave a
 * debt; holds that are stale for longer than the limit are released (rule H5); what jobs were charged
 * that ended for their site's fault is given back where that is the site's policy (rule R4). One operation
 * each. Nothing depends on when it runs: an allocation pays nothing from its end on, a stale hold counts
 * until it is released, and what is due to be given back is written down with the charge. */
#include <stdlib.h>
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"

#define CLIENT "bank:expiry"
#define REFUNDS "bank:refunds"
#define BEGIN "bank:begin" /* RD_BEGUN names it too */

struct expiry {
    struct bank_service *svc;
    struct event *timer;
    int64_t refunded; /* what was due up to this operation is given back */
    uint32_t asked;   /* operations and questions that are under way */
    bool gone;        /* destroyed: the last answer frees it */
};

struct ending {
    struct expiry *expiry;
    struct ledger_request req;
    char hold_id[32];
};

static void settle (struct expiry *expiry)
{
    if (--expiry->asked == 0 && expiry->gone)
        free (expiry);
}

static void on_done (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct ending *ending = arg;
    struct expiry *expiry = ending->expiry;
    struct log *log = expiry->gone ? NULL : expiry->svc->log;
    (void)bytes;
    (void)len;
    if (err->code)
        log_event (log, LOG_LEVEL_WARN, "bank", "not_expired", "kind=%s why=%s",
                   ledger_kind_name (ending->req.kind),
                   log_quote (err->text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
    else if (ending->req.kind == LEDGER_RELEASE)
        log_event (log, LOG_LEVEL_WARN, "bank", "stale_hold_released", "hold=%s", ending->hold_id);
    settle (expiry);
    free (ending);
}

/* A fresh key each time: an allocation may expire twice, when a refund or a repayment reached it
 * after its end. What protects from doing it twice is that nothing is left. */
static struct ending *ending_new (struct expiry *expiry, enum ledger_kind kind)
{
    struct ending *ending = calloc (1, sizeof (*ending));
    if (!ending)
        abort ();
    ending->expiry = expiry;
    ending->req = (struct ledger_request){.kind = kind, .client = CLIENT, .on_behalf = CLIENT};
    uuid_make (&ending->req.key);
    return ending;
}

static bool ending_submit (struct ending *ending)
{
    struct expiry *expiry = ending->expiry;
    if (committer_submit (expiry->svc->committer, &ending->req, NULL, on_done, ending, NULL) < 0) {
        free (ending);
        return false;
    }
    expiry->asked++;
    return true;
}

static void on_ended (void *arg, const struct err *err, const int64_t *id, uint32_t count)
{
    struct expiry *expiry = arg;
    for (uint32_t i = 0; !err->code && !expiry->gone && i < count; i++) {
        struct ending *ending = ending_new (expiry, LEDGER_EXPIRE);
        ending->req.expire.allocation_id = id[i];
        ending->req.expire.due = true;
        ending->req.expire.description = "";
        if (!ending_submit (ending))
            break;
    }
    settle (expiry);
}

/* The key is the allocation's number, the highest byte first: it begins once. */
static void on_begun (void *arg, const struct err *err, const int64_t *id, uint32_t count)
{
    struct expiry *expiry = arg;
    for (uint32_t i = 0; !err->code && !expiry->gone && i < count; i++) {
        struct ending *ending = ending_new (expiry, LEDGER_BEGIN);
        memset (ending->req.key.b, 0, sizeof (ending->req.key.b));
        for (int k = 0; k < 8; k++)
            ending->req.key.b[k] = (uint8_t)((uint64_t)id[i] >> (56 - 8 * k));
        ending->req.client = ending->req.on_behalf = BEGIN;
        ending->req.begin.allocation_id = id[i];
        if (!ending_submit (ending))
            break;
    }
    settle (expiry);
}

static void on_stale (void *arg, const struct err *err, const int64_t *id, uint32_t count)
{
    struct expiry *expiry = arg;
    for (uint32_t i = 0; !err->code && !expiry->gone && i < count; i++) {
        struct ending *ending = ending_new (expiry, LEDGER_RELEASE);
        snprintf (ending->hold_id, sizeof (ending->hold_id), "hold.%lld", (long long)id[i]);
        ending->req.release.hold_id = ending->hold_id;
        ending->req.release.reason = "stale beyond the bank's limit, and no word from its site";
        if (!ending_submit (ending))
            break;
    }
    settle (expiry);
}

/* The key is the charge's own: given back once, whatever is lost or asked twice. */
static void on_refunds (void *arg, const struct err *err, const int64_t *op, uint32_t count)
{
    struct expiry *expiry = arg;
    for (uint32_t i = 1; !err->code && !expiry->gone && i < count; i++) {
        struct ending *ending = ending_new (expiry, LEDGER_REFUND);
        memset (ending->req.key.b, 0, sizeof (ending->req.key.b));
        memcpy (ending->req.key.b, &op[i], sizeof (op[i]));
        ending->req.client = ending->req.on_behalf = REFUNDS;
        ending->req.refund.charge_op = op[i];
        ending->req.refund.due = true;
        ending->req.refund.reason = "the site failed it";
        if (!ending_submit (ending))
            break;
    }
    if (!err->code && count == 1)
        expiry->refunded = op[0];
    settle (expiry);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct expiry *expiry = arg;
    struct bank_service *svc = expiry->svc;
    if (expiry->asked || !reader_is_up (svc->reader) || !committer_is_up (svc->committer))
        return;
    time_us now = committer_now (svc->committer);
    expiry->asked += 4;
    reader_begun (svc->reader, now, on_begun, expiry);
    reader_ended (svc->reader, now, on_ended, expiry);
    reader_stale (svc->reader, now - svc->limits.hold, on_stale, expiry);
    reader_refunds (svc->reader, expiry->refunded, on_refunds, expiry);
}

struct expiry *expiry_create (struct bank_service *svc)
{
    struct expiry *expiry = calloc (1, sizeof (*expiry));
    struct timeval period = {EXPIRY_PERIOD_S, 0};
    if (!expiry)
        abort ();
    expiry->svc = svc;
    expiry->timer = event_new (svc->base, -1, EV_PERSIST, on_timer, expiry);
    if (!expiry->timer || event_add (expiry->timer, &period) < 0)
        abort ();
    return expiry;
}

void expiry_wake (struct expiry *expiry)
{
    if (expiry)
        event_active (expiry->timer, EV_TIMEOUT, 0);
}

void expiry_destroy (struct expiry *expiry)
{
    if (!expiry)
        return;
    event_free (expiry->timer);
    expiry->timer = NULL;
    expiry->gone = true;
    if (expiry->asked == 0)
        free (expiry);
}
