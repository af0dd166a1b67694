/* The beginning of an allocation that was made before: it repays what its account and project owe by then.
 *
 * The end of one (rules E1, E2): what it has left, and nothing holds, goes to
 * bank:expired; what it is below zero, once nothing is held, is owed by its project. What is held
 * stays for its jobs; what they do not use follows when their holds close. */
#include "bank/core/ledger_impl.h"

struct ledger_account *debt_account (const struct ledger_view *view,
                                     const struct ledger_account *account)
{
    for (uint32_t i = 0; i < view->debts.count; i++) {
        struct ledger_account *debt = view->debts.item[i];
        if (debt->project_id == account->project_id)
            return debt;
    }
    return NULL;
}

/* The account is made when its project first owes something. */
static struct ledger_account *debt_made (struct ledger_view *view,
                                         const struct ledger_account *account)
{
    struct ledger_account *debt = debt_account (view, account);
    if (debt)
        return debt;
    debt = ledger_add_account (view, view->next.account++,
                               arena_printf (view->arena, "debt:%s", account->project));
    debt->project_id = account->project_id;
    debt->project = account->project;
    debt->is_new = true;
    debt->op_id = view->next.op;
    ledger_account_is_debt (view, debt);
    struct ledger_alloc *alloc =
        ledger_add_alloc (view, view->next.allocation++, debt->id, 0, TIME_US_MAX);
    alloc->description = arena_printf (view->arena, "owed by project %s", account->project);
    alloc->is_new = true;
    alloc->op_id = view->next.op;
    view->admin = true;
    return debt;
}

credit_micro expire_rest (struct ledger_view *view, struct journal *j, struct ledger_alloc *alloc)
{
    bool ended = alloc->valid_to <= view->now;
    if (!ended && !ledger_account_by_id (view, alloc->account_id)->closed)
        return 0;
    if (alloc->posted > alloc->held) {
        credit_micro rest = alloc->posted - alloc->held;
        alloc->posted = alloc->held;
        alloc_touch (view, alloc);
        int64_t to = ended ? LEDGER_ID_EXPIRED : LEDGER_ID_GRANTS;
        journal_move (j, 'P', alloc->account_id, alloc->id, to, to, rest);
        return rest;
    }
    if (alloc->posted >= 0 || alloc->held > 0)
        return 0;
    credit_micro owed = -alloc->posted;
    struct ledger_account *debt = debt_made (view, ledger_account_by_id (view, alloc->account_id));
    struct ledger_alloc *owing = debt->alloc[0];
    if (owing->posted < owed - PRICE_AMOUNT_MAX)
        return 0; /* more than the books can count: it stays where it is, and blocks there */
    alloc->posted = 0;
    owing->posted -= owed;
    alloc_touch (view, alloc);
    alloc_touch (view, owing);
    journal_move (j, 'P', debt->id, owing->id, alloc->account_id, alloc->id, owed);
    return owed;
}

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
    out->note = arena_printf (view->arena, "%s ended%s%s%s", out->done.id,
                              before < 0 ? " below zero" : "",
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
    out->note = arena_printf (view->arena, "%s of %s began, %s credits repaid what was owed",
                              out->done.id, account->name,
                              credit_format (before - alloc->posted, text));
}
