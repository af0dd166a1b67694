/* posting: a charge or release being worked out: who pays and from where. */
#ifndef NUI_BANK_CORE_POSTING_H
#define NUI_BANK_CORE_POSTING_H

#include "bank/core/ledger_impl.h"

/* A charge being worked out: who pays and from where. Nothing is applied before all is known. */
struct posting {
    struct ledger_view *view;
    struct ledger_site *site;
    struct ledger_hold *hold;       /* NULL: unheld */
    struct ledger_account *account; /* NULL: suspense */
    struct funding funding;         /* at the end of the use: which allocations may pay */
    struct journal journal;
    struct ledger_vec legs; /* struct ledger_charge_leg */
    credit_micro released;
};

/* All that a charge takes: from the hold, from what is free, from credit, by force, from suspense; what it takes is in
 * legs and in the journal. */
void posting_pay (struct posting *p, credit_micro amount);
/* What is not the user's: it waits for a person, who finds it among the rows of its site. */
void posting_dispute (struct posting *p, credit_micro amount);
/* Gives back what the hold, if any, still keeps. */
void posting_close_hold (struct posting *p);
/* A closed account keeps nothing: what it is below zero now is its project's. */
void posting_leave (struct posting *p);

#endif
