/* ledger: decides the bank's operations over a view of the part of the ledger that they touch.
 *
 * Pure: no clock, no I/O. The store loads a view (accounts, allocations, holds … that the requests
 * of one batch name), calls ledger_decide for each request in arrival order, and writes the view's
 * effects in one transaction. A refused request changes nothing in the view. Everything lives in
 * the view's arena; amounts are int64 micro-credits and every sum is checked.
 *
 * Entries (double entry): each operation's entries sum to zero in each layer, POSTED and HELD. A
 * deposit moves from the grants account to an allocation, a hold moves in the HELD layer between an
 * allocation and the site's account, a charge in both.
 *
 * The rules H, C, F, P and I that comments name are those of nui-bank(8). */
#ifndef NUI_BANK_CORE_LEDGER_H
#define NUI_BANK_CORE_LEDGER_H

#include "bank/core/ledger_view.h"

struct ledger_candidate {
    const char *account;
    const char *code; /* "InsufficientFunds" … */
    const char *text;
    credit_micro available, shortfall;
    bool fallback;
};

struct ledger_granted {
    const char *hold_id, *account;
    const char *qos; /* of the fallback, that the job must run with; "": its own */
    credit_micro amount;
    time_us expires;
    bool fallback;
};

struct ledger_outcome {
    int code; /* 0, or a negative err_code with text */
    const char *text;
    bool replayed; /* stored holds the earlier answer (a reply when code is 0) */
    bool record;   /* to be given to ledger_record */
    const void *stored;
    size_t stored_len;
    const char *operation; /* its name */
    /* of the operation, for the op row */
    const char *site, *job, *note;
    time_us effective_at;
    int64_t op_id; /* that it will have when it is recorded */
    union {
        struct {
            bool granted;
            struct ledger_granted *item; /* one per hold of the request */
            uint32_t count, refused;     /* refused: which one was not granted */
            const char *reason_code, *reason_text;
            struct ledger_candidate *candidate;
            uint32_t candidate_count;
            credit_micro added; /* by an extension */
        } hold;
        struct {
            credit_micro charged, total, released;
            credit_micro disputed; /* of charged */
            const char *account;
            uint64_t acked;
        } charge;
        struct {
            credit_micro released;
            uint64_t acked;
        } release;
        struct {
            const char *id; /* allocation, project … */
        } done;
        struct {
            credit_micro refunded, left; /* of the charge */
        } refund;
        struct {
            uint32_t opened, open, gone;
        } recon;
        struct {
            const struct ledger_quote *answer;
            const char *id;
            time_us expires;
        } quote;
    };
};

/* Decides one request and applies it to the view. Always gives an outcome. */
void ledger_decide (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out);
/* After the outcome was encoded: remembers the operation with its answer (rule I1). */
void ledger_record (struct ledger_view *view, const struct ledger_request *req,
                    const struct ledger_outcome *out, const void *bytes, size_t len);

/* ---- quotes: no effects unless they are asked for by a request, and then no entries ---- */

struct ledger_quote_item {
    const char *site;
    int64_t procs; /* 0: as many as bounds let the site hold, walltime 0: for as long */
    duration_us walltime;
    struct ledger_bounds bounds; /* of the signed part; none signed: 0 */
    struct ledger_ask ask;
    time_us start; /* 0: now */
    /* out */
    uint32_t rate_version; /* 0: it cannot be priced */
    credit_micro amount;
    const char *formula;
    const char *code, *reason; /* why it cannot be priced; reason NULL: it can */
    bool funded;
    const char *account;
};

struct ledger_quote {
    const char *identity, *account;
    bool all_of;
    struct ledger_quote_item *item;
    uint32_t item_count;
    /* out */
    credit_micro total;
    bool funded;
    const char *paying;
    struct ledger_candidate *candidate; /* when something is not funded */
    uint32_t candidate_count;
};

/* ERR_INVALID for quantities that cannot be priced, ERR_LIMIT for a total out of bounds. */
int ledger_quote (struct ledger_view *view, struct ledger_quote *quote, struct err *err);

/* Whether a charge can cost no more than its hold keeps: what else its signed job is paid for need not be known. */
bool ledger_within_hold (const struct ledger_request *req, const struct ledger_hold *hold);

/* posted - held + credit, clamped to int64. */
credit_micro ledger_room (const struct ledger_alloc *alloc);

#endif
