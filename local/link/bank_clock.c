/* bank_clock: a timer that asks the bank what its clock shows, and compares. links.c of the service creates it. A site
 * of a grid is compared with its metaschedulers by their reports; one that has only a bank has nobody else who would
 * see that one of the two clocks is wrong before charges are refused for it. */
#include "local/link/bank_clock.h"

#include <stdlib.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"

static const duration_us ask_every = 30 * US_PER_S, call_longest = 10 * US_PER_S;
static const duration_us ask_again = 5 * US_PER_S; /* while it is wrong */

struct bank_clock {
    struct bank_clock_config config;
    struct event *timer;
    duration_us asked; /* by the monotonic clock */
    duration_us ahead;
    bool told;
};

static void bank_clock_after (struct bank_clock *c, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    evtimer_add (c->timer, &t);
}

/* What it shows was so at some moment between the question and the answer: in their middle, by half of that. */
static void bank_clock_answered (void *arg, const struct rpc_result *result)
{
    struct bank_clock *c = arg;
    if (result->status == RPC_CANCELLED) /* the client is being closed */
        return;
    if (result->status == RPC_OK) {
        const Nui__Bank__V1__ClockReply *reply = (const Nui__Bank__V1__ClockReply *)result->reply;
        duration_us took = clock_monotonic_us () - c->asked;
        duration_us ahead = reply->now_us - (clock_now_us () - took / 2);
        if (clocks_keep (&c->ahead, ahead, c->config.log, "bank", "") || !c->told)
            c->config.on_change (c->config.arg, clocks_differ (ahead));
        c->told = true;
    }
    bank_clock_after (c, clocks_differ (c->ahead) ? ask_again : ask_every);
}

static void bank_clock_on_timer (evutil_socket_t fd, short what, void *arg)
{
    Nui__Bank__V1__ClockRequest request = NUI__BANK__V1__CLOCK_REQUEST__INIT;
    struct bank_clock *c = arg;
    struct rpccallout_config call = {
        .service = &nui__bank__v1__bank__descriptor,
        .method = "Clock",
        .request = &request.base,
        .timeout = call_longest,
        .idempotent = true,
        .done = bank_clock_answered,
        .arg = c,
    };
    (void)fd;
    (void)what;
    c->asked = clock_monotonic_us ();
    rpcclient_start (c->config.client, &call);
}

struct bank_clock *bank_clock_create (const struct bank_clock_config *config, struct err *err)
{
    struct bank_clock *c = calloc (1, sizeof *c);
    if (!c || !(c->timer = evtimer_new (config->base, bank_clock_on_timer, c))) {
        err_set (err, ERR_NOMEM, "no memory for the bank's clock");
        free (c);
        return NULL;
    }
    c->config = *config;
    bank_clock_after (c, 0);
    return c;
}

void bank_clock_destroy (struct bank_clock *c)
{
    if (!c)
        return;
    event_free (c->timer);
    free (c);
}

duration_us bank_clock_ahead (const struct bank_clock *c)
{
    return c ? c->ahead : 0;
}
