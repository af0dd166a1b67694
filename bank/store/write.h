/* write: the effects of a view as statements in the open batch. */
#ifndef NUI_BANK_STORE_WRITE_H
#define NUI_BANK_STORE_WRITE_H

#include "bank/core/ledger.h"
#include "bank/store/load.h"
#include "bank/store/seal.h"

/* One transaction, a statement per table, or one for all that a lone hold or charge writes, in three
 * parts: PostgreSQL works on one while the next is being made. */

/* What a transaction beside another one writes last, when that one is committed: rows that both may change, balances
 * and how far an outbox has come. NULL: nothing. */
struct write_rest {
    struct pgargs *balance, *ack;
};

/* after: the block on which the batch is built, when that is not committed yet; else 0. */
void write_open (const struct ledger_view *view, const struct load *load, int64_t after,
                 struct pgloop *loop);
/* ops: how many operations are new. early: called when all but the entries is written, or NULL. rest: what is
 * to be written later, or NULL: nothing is. seal learns what its block must tell of. */
void write_rows (const struct ledger_view *view, const struct load *load, int64_t ops,
                 void (*early) (void *arg), struct write_rest *rest, struct seal *seal,
                 struct pgloop *loop);
/* seal: NULL, roll back. commit: false where there is a rest. */
void write_close (const struct seal *seal, bool commit, struct pgloop *loop);
/* In a batch of its own, in the transaction that the others were written in: the rest, and COMMIT. */
void write_last (const struct write_rest *rest, struct pgloop *loop);

#endif
