/* quoteread: quotes that keep their rates, as the reading connection sees them. */
#ifndef NUI_BANK_STORE_QUOTEREAD_H
#define NUI_BANK_STORE_QUOTEREAD_H

#include "bank/store/reader.h"

/* One site of a quote. */
struct quote_row {
    int64_t id;
    const char *identity, *account;   /* account "": not known */
    time_us made, expires, cancelled; /* cancelled 0: not */
    bool reusable;
    const char *job; /* that used it first; "": none yet */
    const char *site;
    int64_t rate_version;
    credit_micro price; /* below 0: not known */
};

struct quotes_ask {
    const char *account; /* "": of all that who sees */
    int64_t id;          /* this one; 0: all */
    int64_t after;       /* by number */
    uint32_t limit;      /* quotes */
    time_us open_at;     /* that can be used then; 0: whatever became of them */
};

typedef void (*quoteread_f) (void *arg, const struct err *err, const struct quote_row *row,
                             uint32_t count);
/* By number, the sites of each in its order. People see their own, leads those for accounts of their
 * projects and the ones below, managers and auditors all. */
void quoteread (struct reader *reader, const char *who, const struct quotes_ask *ask,
                quoteread_f done, void *arg);

#endif
