/* bank_clock: how far the bank's clock is from this site's. It is asked every half minute, sooner while it is wrong; a
 * difference beyond the bound (proto/base/clocksapart.h) is said in the log when it begins and when it ends, and the
 * caller is told.
 *
 * One loop. While the bank does not answer, what it showed last stands. */
#ifndef NUI_LOCAL_LINK_BANK_CLOCK_H
#define NUI_LOCAL_LINK_BANK_CLOCK_H

#include <event2/event.h>

#include "proto/base/clocksapart.h"
#include "proto/base/err.h"
#include "proto/rpc/rpcclient.h"

struct bank_clock_config {
    struct event_base *base;
    struct log *log;
    struct rpcclient *client; /* to the bank */
    /* Whether they differ, once it was asked, and when that changes. */
    void (*on_change) (void *arg, bool differ);
    void *arg;
};

struct bank_clock;

struct bank_clock *bank_clock_create (const struct bank_clock_config *config, struct err *err);
void bank_clock_destroy (struct bank_clock *clock); /* after its client; NULL is a no-op */
/* How far it is ahead of this one; 0: nobody knows, or there is no bank (NULL). */
duration_us bank_clock_ahead (const struct bank_clock *clock);

#endif
