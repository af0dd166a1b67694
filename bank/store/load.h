/* load: fills a ledger view with all that some requests may touch and that it does not have yet.
 *
 * load_send adds queries to the open batch; load_take reads their results, in the same order. Holds
 * and usages may name accounts that the view lacks: then load_more is true, and a second round of
 * send and take fetches these. Rows are not locked: who decides over them is the only writer. */
#ifndef NUI_BANK_STORE_LOAD_H
#define NUI_BANK_STORE_LOAD_H

#include "bank/core/ledger.h"
#include "bank/store/pgloop.h"
#include "bank/store/recent.h"

struct load;

/* view: what is known already stays and is not asked for again. */
struct load *load_create (struct arena *arena, struct ledger_view *view);
/* With recent, requests that can be are taken to be new: a hold of a job that has none yet, a charge of
 * a hold in recent. What that rests on is not loaded but checked by load_check, which fails the batch
 * when one is not (load_was_wrong): decide them again then, without recent. */
void load_want_request (struct load *load, const struct ledger_request *req,
                        const struct recent *recent);
void load_want_quote (struct load *load, const struct ledger_quote *quote);
bool load_more (const struct load *load); /* is there anything to send? */
void load_send (struct load *load, struct pgloop *loop);
void load_take (struct load *load, const struct pgbatch_result *result);
/* Into the transaction that writes what was decided, before its rows. */
void load_check (const struct load *load, struct pgloop *loop);
/* Of one hold only, which may be taken to be new: where it is granted its rows can say it as well (ST_ADD_NEW_HOLD). */
bool load_is_lone_hold (const struct load *load);
/* Also, when fewer than these requests are recorded in it: the others' keys are no rows that would
 * say it. */
void load_check_ops (const struct load *load, int64_t ops, struct pgloop *loop);
bool load_was_wrong (const struct load *load, const struct pgbatch_result *result);

/* A card's rates as the database gives them, "kind name=ppm;…", cut up in place; returns how many. */
uint32_t load_factors (char *text, struct ledger_factor factor[LEDGER_FACTORS_MAX]);

#endif
