/* teller: gives one message at a time to a program and to a URL, so that somebody hears of what should not wait.
 *
 * A message is a JSON object of texts. The program runs with its members "event", "object" and "text" as arguments and
 * each member in the environment (NUI_EVENT, NUI_OBJECT …), as an account without rights where we are root; the URL gets
 * the object in a POST, its "key" as Idempotency-Key. Each of them is tried six times within about half a minute. The
 * queue, and what becomes of a message that nobody took, are the caller's. One loop, one thread. */
#ifndef NUI_NOTIFY_TELLER_H
#define NUI_NOTIFY_TELLER_H

#include <event2/event.h>
#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/base/log.h"

enum { TELLER_WHY_MAX = 300 };

struct teller;

/* Who hears; NULL: nobody by that way. */
struct teller_to {                 /* as conf_notify_check let it pass */
    const char *program, *account; /* the account must be there with a program */
    const char *url;
};

/* The message is done with. why: "", or what the last one said that did not take it. From the loop, or from teller_tell
 * where there is nobody to tell. */
typedef void (*teller_fn) (void *arg, const char *why);

/* agent: who tells ("nui-local"). NULL with err when libcurl does not work. */
struct teller *teller_create (struct event_base *base, struct log *log, const char *agent,
                              struct err *err);
void teller_destroy (struct teller *teller); /* no callback comes any more; NULL is a no-op */
bool teller_is_busy (const struct teller *teller);
/* Not while it is busy. All is copied. */
void teller_tell (struct teller *teller, const struct teller_to *to, const char *body, size_t len,
                  teller_fn fn, void *arg);

#endif
