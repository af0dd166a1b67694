/* Funders, their grants, how these are split among projects, carried on and closed. */
#include <string.h>

#include "bank/core/ledger_impl.h"

void decide_funder (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    if (name_refused (view, "funder", req->funder.name, out))
        return;
    out->note = req->funder.name;
    if (ledger_funder_of (view, req->funder.name)) {
        outcome_refuse (view, out, ERR_EXISTS, true, "funder %s exists already", req->funder.name);
        return;
    }
    struct ledger_funder *funder = ledger_add_funder (view, view->next.funder++, req->funder.name);
    funder->description = req->funder.description;
    funder->is_new = true;
    funder->op_id = view->next.op;
    out->done.id = arena_printf (view->arena, "funder.%lld", (long long)funder->id);
}

/* A deposit that names who gives it, and why; what is split from it keeps the grant. */
void decide_grant (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    struct ledger_funder *funder = ledger_funder_of (view, req->deposit.funder);
    if (!funder) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no funder %s",
                        req->deposit.funder);
        return;
    }
    if (deposit_malformed (view, req, out))
        return;
    const char *line = arena_printf (view->arena, "\n%s\n", req->deposit.reference);
    if (!req->deposit.again && strstr (funder->references, line)) {
        outcome_refuse (
            view, out, ERR_EXISTS, true,
            "funder %s has given a grant of reference %s already: say that this is another one (--again)",
            funder->name, req->deposit.reference);
        return;
    }
    decide_deposit (view, req, out);
    if (out->code)
        return;
    funder->references = arena_printf (view->arena, "%s%s", funder->references, line);
    struct ledger_alloc *alloc = view->allocs.item[view->allocs.count - 1];
    struct ledger_grant *grant = ledger_add_grant (view, view->next.grant++);
    grant->funder_id = funder->id;
    grant->account_id = alloc->account_id;
    grant->alloc_id = alloc->id;
    grant->reference = req->deposit.reference;
    grant->is_new = true;
    grant->op_id = view->next.op;
    alloc->grant_id = grant->id;
    alloc->giver = grant->funder = funder->name;
    out->note = arena_printf (view->arena, "%s %s%s%s", funder->name, grant->reference,
                              req->deposit.description[0] ? ": " : "", req->deposit.description);
    out->done.id = arena_printf (view->arena, "grant.%lld,%s", (long long)grant->id, out->done.id);
}

/* Downwards only: to the same project or one below it. */
static bool is_below (const struct ledger_account *to, const struct ledger_account *from)
{
    bool below = to->project_id == from->project_id;
    for (uint32_t i = 0; i < to->ancestor_count && !below; i++)
        below = to->ancestor[i] == from->project_id;
    return below;
}

void decide_split (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    const struct ledger_account *from, *to;
    if (transfer_malformed (view, req, out) ||
        !(from = project_account (view, req->transfer.from, out)) ||
        !(to = project_account (view, req->transfer.to, out)))
        return;
    if (!is_below (to, from)) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "split: project %s is not below project %s: a grant is split downwards",
                        to->project, from->project);
        return;
    }
    decide_transfer (view, req, out);
}

/* A split that is not used goes back to the allocation that it came from, by who may give from there. */
void decide_split_back (struct ledger_view *view, const struct ledger_request *req,
                        struct ledger_outcome *out)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, req->split_back.allocation_id);
    struct ledger_alloc *source =
        alloc && alloc->split_from ? ledger_alloc_by_id (view, alloc->split_from) : NULL;
    credit_micro amount = req->split_back.amount;
    struct ledger_account *to;
    struct share *share;
    if (amount && amount_refused (view, "split-back", amount, out))
        return;
    if (!source) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true,
                        "alloc.%lld is not there, or was not split off another one",
                        (long long)req->split_back.allocation_id);
        return;
    }
    const struct ledger_account *from = ledger_account_by_id (view, alloc->account_id);
    if (!(to = project_account (view, ledger_account_by_id (view, source->account_id)->name, out)))
        return;
    if (!is_below (from, to)) {
        outcome_refuse (
            view, out, ERR_CONFLICT, true,
            "split-back: project %s is no longer below project %s: what was split stays there",
            from->project, to->project);
        return;
    }
    if (source->valid_to <= view->now || (amount == 0 && alloc->posted <= alloc->held)) {
        outcome_refuse (view, out, ERR_CONFLICT, true, "split-back: alloc.%lld %s",
                        (long long)(source->valid_to <= view->now ? source->id : alloc->id),
                        source->valid_to <= view->now
                            ? "of which it is a part has ended"
                            : "has nothing that is neither spent nor held");
        return;
    }
    amount = amount ? amount : alloc->posted - alloc->held;
    if (too_much (view, "split-back", to, amount, out) ||
        shares_free (view, "split-back", req->agency, true, from, alloc->id, amount, &share, out) ==
            0)
        return;
    struct journal j = {.view = view, .effective_at = view->now};
    share_leave (view, share);
    source->posted += amount;
    source->granted += amount;
    alloc_touch (view, source);
    journal_move (&j, 'P', from->id, alloc->id, to->id, source->id, amount);
    if (source->valid_from <= view->now)
        debt_repay (view, &j, to, source, amount);
    journal_close (&j);
    out->note = arena_printf (
        view->arena, "%s alloc.%lld back to %s%s%s", from->name, (long long)alloc->id, to->name,
        req->split_back.description[0] ? ": " : "", req->split_back.description);
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)source->id);
}

/* E3: what is left of an allocation, at most a cap, goes on in a new one with a later end. */
void decide_carry (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    struct ledger_alloc *old = ledger_alloc_by_id (view, req->carry.allocation_id);
    char text[QUANTITY_TEXT_MAX];
    if (req->carry.cap && amount_refused (view, "carry-forward", req->carry.cap, out))
        return;
    struct ledger_account *account = old ? ledger_account_by_id (view, old->account_id) : NULL;
    if (!account || !account->project_id || account->is_debt || account->closed) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no open allocation alloc.%lld",
                        (long long)req->carry.allocation_id);
        return;
    }
    credit_micro free = old->posted - old->held;
    if (req->carry.valid_to <= old->valid_to || old->valid_to <= view->now || free <= 0 ||
        funds_overdrawn (account)) {
        outcome_refuse (view, out, ERR_CONFLICT, true, "carry-forward: alloc.%lld %s",
                        (long long)old->id,
                        old->valid_to <= view->now             ? "has ended"
                        : req->carry.valid_to <= old->valid_to ? "does not end before that"
                        : free <= 0                            ? "has nothing left that is not held"
                                                               : "is of an overdrawn account");
        return;
    }
    credit_micro amount = req->carry.cap && req->carry.cap < free ? req->carry.cap : free;
    struct ledger_alloc *fresh = ledger_add_alloc (view, view->next.allocation++, account->id,
                                                   old->valid_from, req->carry.valid_to);
    fresh->granted = fresh->posted = amount;
    fresh->grant_id = old->grant_id;
    fresh->giver = old->giver;
    fresh->split_from = old->split_from;
    fresh->description =
        arena_printf (view->arena, "carried forward from alloc.%lld%s%s", (long long)old->id,
                      req->carry.description[0] ? ": " : "", req->carry.description);
    fresh->is_new = true;
    fresh->op_id = view->next.op;
    ledger_alloc_scopes (view, fresh, old->scopes);
    old->posted -= amount;
    old->granted -= amount;
    alloc_touch (view, old);
    alloc_touch (view, fresh);
    struct journal j = {.view = view, .effective_at = view->now};
    journal_move (&j, 'P', account->id, old->id, account->id, fresh->id, amount);
    if (fresh->valid_from <= view->now)
        debt_repay (view, &j, account, fresh, fresh->posted);
    journal_close (&j);
    out->note = arena_printf (view->arena, "%s of %s: %s", credit_format (amount, text),
                              account->name, fresh->description);
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)fresh->id);
}

/* Closed is closed for spending: what is left repays what is owed and goes back to where grants come from, what is
 * below zero is owed by the project; what is held stays for its jobs, and what they do not use follows, as do
 * refunds (expire_rest). */
void decide_account_close (struct ledger_view *view, const struct ledger_request *req,
                           struct ledger_outcome *out)
{
    struct ledger_account *account = project_account (view, req->close.name, out);
    credit_micro back = 0;
    char text[QUANTITY_TEXT_MAX];
    if (!account)
        return;
    struct journal j = {.view = view, .effective_at = view->now};
    for (uint32_t i = 0; i < account->alloc_count; i++)
        if (account->alloc[i]->valid_from <= view->now)
            debt_repay (view, &j, account, account->alloc[i], account->alloc[i]->posted);
    account->closed = account->closed_dirty = true;
    account->closed_op_id = view->next.op;
    for (uint32_t i = 0; i < account->alloc_count; i++) {
        struct ledger_alloc *alloc = account->alloc[i];
        bool given = alloc->valid_to > view->now && alloc->posted > alloc->held;
        credit_micro moved = expire_rest (view, &j, alloc);
        if (given) {
            alloc->granted -= moved;
            back += moved;
        }
    }
    journal_close (&j);
    about_add (view, "account", account->id);
    out->note = arena_printf (view->arena, "%s closed, %s credits given back%s%s", account->name,
                              credit_format (back, text), req->close.reason[0] ? ": " : "",
                              req->close.reason);
    out->done.id = arena_printf (view->arena, "account.%lld", (long long)account->id);
}

void decide_account_reopen (struct ledger_view *view, const struct ledger_request *req,
                            struct ledger_outcome *out)
{
    struct ledger_account *account = ledger_account_by_name (view, req->close.name);
    if (!account || !account->closed) {
        outcome_refuse (view, out, account ? ERR_CONFLICT : ERR_NOT_FOUND, true,
                        account ? "account %s is not closed" : "there is no account %s",
                        req->close.name);
        return;
    }
    account->closed = false;
    account->closed_dirty = true;
    account->closed_op_id = 0;
    about_add (view, "account", account->id);
    out->note = arena_printf (view->arena, "%s reopened%s%s", account->name,
                              req->close.reason[0] ? ": " : "", req->close.reason);
    out->done.id = arena_printf (view->arena, "account.%lld", (long long)account->id);
}
