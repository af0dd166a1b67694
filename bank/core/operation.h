/* operation: one row for each kind of operation: its name, what decides it, who may ask for it, what of the ledger it
 * needs. The store loads what a row names, rights.c asks what it says, ledger_decide runs it. What depends on more than
 * a name in the request (the parts of a hold, what is to be frozen) stands where it is asked: bank/store/load.c. */
#ifndef NUI_BANK_CORE_OPERATION_H
#define NUI_BANK_CORE_OPERATION_H

#include <string.h>

#include "bank/core/ledger.h"

/* What a request names, and where: a name (text, "" is none) or a number (int64_t, 0 is none). */
enum subject_of {
    OF_NOTHING,
    OF_ACCOUNT, /* names */
    OF_PROJECT,
    OF_PERSON,
    OF_SITE,
    OF_FUNDER,
    OF_HOLD,
    OF_WHOLE, /* an account, with all that is in it */
    OF_ALLOC, /* numbers */
    OF_GRANT,
    OF_CHARGE,
    OF_QUOTE,
    OF_FROZEN, /* what the request is to freeze */
    OF_BANK,   /* of the bank, or of a site */
};

struct subject {
    enum subject_of of;
    size_t at; /* in struct ledger_request */
};

typedef void operation_decide (struct ledger_view *view, const struct ledger_request *req,
                               struct ledger_outcome *out);

struct operation {
    const char *name; /* as the op table has it */
    operation_decide *decide;
    bool daily;   /* changes nothing but holds, usages and balances */
    bool manager; /* an allocation manager may ask for it */
    bool asker;   /* so may any user; for a quote that is there: who it was made for */
    /* the leads of its project, or of one above, may; OF_NOTHING: they may not */
    struct subject lead;
    struct subject agency[2]; /* must be the agency's own; OF_NOTHING: it may (which calls are an
                               * agency's, the service knows) */
    struct subject needs[3];  /* what it is decided by */
};

const struct operation *operation_of (enum ledger_kind kind);

static inline const char *subject_name (const struct subject *subject,
                                        const struct ledger_request *req)
{
    const char *name;
    memcpy (&name, (const char *)req + subject->at, sizeof (name));
    return name ? name : "";
}

static inline int64_t subject_number (const struct subject *subject,
                                      const struct ledger_request *req)
{
    int64_t number;
    memcpy (&number, (const char *)req + subject->at, sizeof (number));
    return number;
}

#endif
