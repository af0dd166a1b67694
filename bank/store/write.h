/* write: the effects of a view as statements in the open batch. */
#ifndef NUI_BANK_STORE_WRITE_H
#define NUI_BANK_STORE_WRITE_H

#include "bank/core/ledger.h"
#include "bank/store/load.h"
#include "bank/store/seal.h"

/* As one transaction, a statement per table. (One statement with a WITH part per table is slower:
 * all parts are set up each time; measured 1,013 us of PostgreSQL per lone hold+charge pair,
 * against 608.) */
void write_send (const struct ledger_view *view, const struct load *load, const struct seal *seal,
                 struct pgloop *loop);

#endif
