/* The end of an allocation (rule E1): what it has left, and nothing holds, goes to bank:expired.
 * What is held stays for its jobs; what they do not use follows when their holds close. */
#include "bank/core/ledger_impl.h"

credit_micro expire_rest (struct ledger_view *view, struct journal *j, struct ledger_alloc *alloc)
{
    if (alloc->valid_to > view->now || alloc->posted <= alloc->held)
        return 0;
    credit_micro rest = alloc->posted - alloc->held;
    alloc->posted = alloc->held;
    alloc_touch (view, alloc);
    journal_move (j, 'P', alloc->account_id, alloc->id, LEDGER_ID_EXPIRED, LEDGER_ID_EXPIRED, rest);
    return rest;
}

void decide_expire (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, req->expire.allocation_id);
    if (!alloc || alloc->valid_to > view->now || alloc->posted <= alloc->held) {
        outcome_refuse (view, out, ERR_CONFLICT, false, "alloc.%lld has nothing that could expire",
                        (long long)req->expire.allocation_id);
        return;
    }
    struct journal j = {.view = view, .effective_at = alloc->valid_to};
    expire_rest (view, &j, alloc);
    journal_close (&j);
    out->effective_at = alloc->valid_to;
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)alloc->id);
    out->note = arena_printf (view->arena, "%s ended", out->done.id);
}
