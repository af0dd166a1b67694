/* recent: holds that this writer made a moment ago and that nothing has touched since, so that the charge
 * of a job need not look for its hold and for earlier charges.
 *
 * A cache of RECENT_SETS sets by job incarnation; in a full set the newest takes the place of the oldest. (With one
 * hold per set one charge in a hundred would miss at 256 in flight, and nearly every batch would have one and wait for
 * a look-up of its own.) What is in it is true while this connection holds the writer's lock: forget all when that may
 * have ended. A hold in it is open, and its job has no usage. Copies are made: nothing in it points into a view. */
#ifndef NUI_BANK_STORE_RECENT_H
#define NUI_BANK_STORE_RECENT_H

#include "bank/core/ledger.h"

enum { RECENT_SETS = 2048, RECENT_WAYS = 8 };

struct recent;

struct recent *recent_create (void); /* aborts when out of memory */
void recent_destroy (struct recent *recent);
void recent_forget (struct recent *recent);
/* Puts the hold that a charge names into the view when it is known and keeps enough for it; else false. */
bool recent_take (const struct recent *recent, const struct ledger_request *req,
                  struct ledger_view *view);
/* The view's changes are committed. */
void recent_note (struct recent *recent, const struct ledger_view *view);

#endif
