/* Every EXPIRY_PERIOD_S: allocations that have ended give back what they have left, one operation
 * each. Nothing depends on when it runs: an allocation pays nothing from its end on anyway. */
#include <stdlib.h>
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"

#define CLIENT "bank:expiry"

struct expiry {
    struct bank_service *svc;
    struct event *timer;
    uint32_t asked; /* operations and questions that are under way */
    bool gone;      /* destroyed: the last answer frees it */
};

struct ending {
    struct expiry *expiry;
    struct ledger_request req;
};

static void settle (struct expiry *expiry)
{
    if (--expiry->asked == 0 && expiry->gone)
        free (expiry);
}

static void on_expired (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct ending *ending = arg;
    (void)bytes;
    (void)len;
    if (err->code)
        log_event (ending->expiry->gone ? NULL : ending->expiry->svc->log, LOG_LEVEL_WARN, "bank",
                   "not_expired", "allocation=%lld why=%s",
                   (long long)ending->req.expire.allocation_id,
                   log_quote (err->text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
    settle (ending->expiry);
    free (ending);
}

static void on_ended (void *arg, const struct err *err, const int64_t *id, uint32_t count)
{
    struct expiry *expiry = arg;
    for (uint32_t i = 0; !err->code && !expiry->gone && i < count; i++) {
        struct ending *ending = calloc (1, sizeof (*ending));
        if (!ending)
            break;
        ending->expiry = expiry;
        ending->req =
            (struct ledger_request){.kind = LEDGER_EXPIRE, .client = CLIENT, .on_behalf = CLIENT};
        ending->req.expire.allocation_id = id[i];
        /* A fresh key each time: an allocation may expire twice, when a refund or a repayment
         * reached it after its end. What protects from doing it twice is that nothing is left. */
        uuid_make (&ending->req.key);
        if (committer_submit (expiry->svc->committer, &ending->req, on_expired, ending, NULL) < 0) {
            free (ending);
            break;
        }
        expiry->asked++;
    }
    settle (expiry);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct expiry *expiry = arg;
    if (expiry->asked || !reader_is_up (expiry->svc->reader) ||
        !committer_is_up (expiry->svc->committer))
        return;
    expiry->asked++;
    reader_ended (expiry->svc->reader, clock_now_us (), on_ended, expiry);
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
