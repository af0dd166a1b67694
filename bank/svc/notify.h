/* notify: an operator hears of what should not wait for the next look at the log: a clock that is not believed, a database
 * that is away or commits nothing, writes that it refuses, a state that is not recorded, rows of reconciliation that are
 * nobody's.
 *
 * Leads of projects hear of their allocations by the same way (near.c). Each is told when it begins and when it is over, in order, by NOTIFICATIONPROGRAM and NOTIFICATIONURL (proto/notify).
 * What is wrong is looked for anew after a start, so nothing of this is kept on disk: what goes on is told once more. */
#ifndef NUI_BANK_SVC_NOTIFY_H
#define NUI_BANK_SVC_NOTIFY_H

#include <jansson.h>

#include "bank/svc/service.h"

enum notify_event { /* bits of bank_limits.notify_events */
                    NOTIFY_CLOCK_AHEAD = 1 << 0,
                    NOTIFY_DATABASE_DOWN = 1 << 1,
                    NOTIFY_WRITE_REFUSED = 1 << 2,
                    NOTIFY_STATE_FAILED = 1 << 3,
                    NOTIFY_RECON_OPEN = 1 << 4,
                    NOTIFY_ALLOCATION = 1 << 5, /* near.c */
                    NOTIFY_ALL = (1 << 6) - 1,
};

struct notify;

struct notify *notify_create (struct bank_service *svc, struct err *err);
void notify_destroy (struct notify *notify); /* NULL is a no-op */
/* All of these: NULL is a no-op. The writer's connection is there, or why it is not. */
void notify_writer (struct notify *notify, bool up, const char *why);
/* The state was recorded (NULL), or why not. */
void notify_state (struct notify *notify, const char *why);
/* Whether anybody is told of that. */
bool notify_wanted (const struct notify *notify, unsigned event);
/* A message of another file's, whose members are texts; "event", "object" and "text" are there, "grid", "time" and "key" are
 * added where they are not. Takes over the document. done: why nobody took it, "": it was taken; once, notify_destroy at
 * the latest, but not after a failure of this call. ERR_LIMIT, ERR_INVALID. */
int notify_message (struct notify *notify, json_t *doc, void (*done) (void *arg, const char *why),
                    void *arg, struct err *err);
/* The clock is not believed (why), or is again (NULL). */
void notify_clock (struct notify *notify, const char *why);

#endif
