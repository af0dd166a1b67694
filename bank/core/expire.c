/* What time brings to an allocation, and that its leads were told of it.
 *
 * The beginning of an allocation that was made before: it repays what its account and project owe by then.
 *
 * The end of one (rules E1, E2): what it has left, and nothing holds, goes to
 * bank:expired; what it is below zero, once nothing is held, is owed by its project. What is held
 * stays for its jobs; what they do not use follows when their holds close. */
#include "bank/core/ledger_impl.h"

/* Why there is nothing to settle. */
static const char *not_expired (const struct ledger_view *view, const struct ledger_alloc *alloc)
{
    if (alloc->valid_to > view->now)
        return "has not ended yet";
    if (alloc->held > 0)
        return "has ended, and what is left of it is held: it follows when the holds close";
    if (alloc->posted < 0)
        return "has ended below zero, and its project's debt is at its bound";
    return "has ended, and nothing is left of it";
}

void decide_expire (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, req->expire.allocation_id);
    if (!alloc) {
        outcome_refuse (view, out, ERR_NOT_FOUND, !req->expire.due,
                        "there is no allocation alloc.%lld", (long long)req->expire.allocation_id);
        return;
    }
    struct journal j = {.view = view, .effective_at = alloc->valid_to};
    credit_micro before = alloc->posted;
    if (expire_rest (view, &j, alloc) == 0) {
        outcome_refuse (view, out, ERR_CONFLICT, !req->expire.due, "expire: alloc.%lld %s",
                        (long long)alloc->id, not_expired (view, alloc));
        return;
    }
    journal_close (&j);
    out->effective_at = alloc->valid_to;
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)alloc->id);
    out->note =
        arena_printf (view->arena, "%s ended%s%s%s", out->done.id, before < 0 ? " below zero" : "",
                      req->expire.description[0] ? ": " : "", req->expire.description);
}

/* Once for an allocation: the bank asks with a key of its own for each. A refusal answers nobody. */
void decide_begin (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, req->begin.allocation_id);
    struct ledger_account *account = alloc ? ledger_account_by_id (view, alloc->account_id) : NULL;
    char text[QUANTITY_TEXT_MAX];
    if (!account || alloc->valid_from > view->now) {
        outcome_refuse (view, out, alloc ? ERR_CONFLICT : ERR_NOT_FOUND, false, "alloc.%lld %s",
                        (long long)req->begin.allocation_id,
                        alloc ? "has not begun yet" : "is not there");
        return;
    }
    struct journal j = {.view = view, .effective_at = view->now};
    credit_micro before = alloc->posted;
    debt_repay (view, &j, account, alloc, alloc->posted);
    journal_close (&j);
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)alloc->id);
    out->note =
        arena_printf (view->arena, "%s of %s began, %s credits repaid what was owed", out->done.id,
                      account->name, credit_format (before - alloc->posted, text));
}

/* Once for an allocation and a threshold, by its key. Nothing changes but that it is written down. */
void decide_told (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    const struct ledger_alloc *alloc = ledger_alloc_by_id (view, req->told.allocation_id);
    if (!alloc) {
        outcome_refuse (view, out, ERR_NOT_FOUND, false, "alloc.%lld is not there",
                        (long long)req->told.allocation_id);
        return;
    }
    struct journal j = {.view = view, .effective_at = view->now};
    journal_close (&j);
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)alloc->id);
    out->note = arena_printf (view->arena, "%s", req->told.text);
}
