/* What accounts and projects owe: what is below zero when an allocation ends is owed by its project (rules E1, E2), and
 * credits that come in repay that first. */
#include "bank/core/ledger_impl.h"

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

static credit_micro debt_pay (struct ledger_view *view, struct journal *j,
                              struct ledger_alloc *from, struct ledger_alloc *to, credit_micro most)
{
    credit_micro room = ledger_room (to);
    if (to == from || room >= 0 || most <= 0)
        return 0;
    credit_micro debt = room == INT64_MIN ? INT64_MAX : -room;
    credit_micro pay = debt < most ? debt : most;
    to->posted += pay;
    from->posted -= pay;
    alloc_touch (view, to);
    alloc_touch (view, from);
    journal_move (j, 'P', from->account_id, from->id, to->account_id, to->id, pay);
    return pay;
}

/* Debt is repaid first: what the account's other allocations are below their limit, then what its
 * project owes. */
void debt_repay (struct ledger_view *view, struct journal *j, const struct ledger_account *account,
                 struct ledger_alloc *from, credit_micro most)
{
    const struct ledger_account *debt = debt_account (view, account);
    credit_micro free = from->posted - from->held;
    most = free < most ? free : most;
    for (uint32_t i = 0; i < account->alloc_count && most > 0; i++)
        most -= debt_pay (view, j, from, account->alloc[i], most);
    if (debt && debt->alloc_count)
        debt_pay (view, j, from, debt->alloc[0], most);
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
