/* Taking credits back (withdraw), moving them between accounts (transfer), giving charges back
 * (refund, rules R1 to R3) and credit limits. Each is all or nothing. */
#include <assert.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

uint32_t shares_free (struct ledger_view *view, const char *what, const char *agency, bool moves,
                      const struct ledger_account *account, int64_t alloc_id, credit_micro amount,
                      struct share **out_shares, struct ledger_outcome *out)
{
    struct share *share = arena_array (view->arena, account->alloc_count + 1, sizeof (*share));
    char need[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX];
    uint32_t count = 0;
    credit_micro rest = amount;
    if (funds_overdrawn (account) || funds_debt (view, account)) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "%s: account %s is overdrawn: nothing can be taken out of it", what,
                        account->name);
        return 0;
    }
    const char *frozen = moves ? freeze_of (view, account, NULL) : NULL;
    if (frozen) {
        outcome_refuse (view, out, ERR_CONFLICT, true, "%s: %s", what, frozen);
        return 0;
    }
    for (uint32_t i = 0; i < account->alloc_count && rest > 0; i++) {
        struct ledger_alloc *alloc = account->alloc[i];
        credit_micro free = alloc->posted - alloc->held;
        bool meant = alloc_id ? alloc->id == alloc_id : alloc->valid_from <= view->now;
        if (!meant || alloc->valid_to <= view->now || free <= 0 ||
            (moves && freeze_of_grant (view, alloc)) ||
            (agency && strcmp (agency, alloc->giver) != 0))
            continue;
        credit_micro take = free < rest ? free : rest;
        share[count++] = (struct share){alloc, take};
        rest -= take;
    }
    if (rest > 0) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "%s: %s credits asked, %s of account %s can be taken out", what,
                        credit_format (amount, need), credit_format (amount - rest, have),
                        account->name);
        return 0;
    }
    *out_shares = share;
    return count;
}

void share_leave (struct ledger_view *view, const struct share *share)
{
    share->alloc->posted -= share->amount;
    share->alloc->granted -= share->amount;
    alloc_touch (view, share->alloc);
}

void decide_withdraw (struct ledger_view *view, const struct ledger_request *req,
                      struct ledger_outcome *out)
{
    struct ledger_account *account;
    struct share *share;
    out->note = req->withdraw.description;
    if (amount_refused (view, "withdraw", req->withdraw.amount, out) ||
        !(account = project_account (view, req->withdraw.account, out)))
        return;
    uint32_t count = shares_free (view, "withdraw", req->agency, false, account,
                                  req->withdraw.allocation_id, req->withdraw.amount, &share, out);
    if (count == 0)
        return;
    struct journal j = {.view = view, .effective_at = view->now};
    for (uint32_t i = 0; i < count; i++) {
        share_leave (view, &share[i]);
        journal_move (&j, 'P', account->id, share[i].alloc->id, LEDGER_ID_GRANTS, LEDGER_ID_GRANTS,
                      share[i].amount);
    }
    journal_close (&j);
    out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
}

/* A part of [from, to): 0 is where it begins or ends. */
static bool validity (struct ledger_view *view, const struct ledger_request *req,
                      const struct ledger_alloc *alloc, time_us *from, time_us *to,
                      struct ledger_outcome *out)
{
    *from = req->transfer.valid_from ? req->transfer.valid_from : alloc->valid_from;
    *to = req->transfer.valid_to ? req->transfer.valid_to : alloc->valid_to;
    if (*from >= alloc->valid_from && *to <= alloc->valid_to && *from<*to && * to> view->now)
        return true;
    outcome_refuse (view, out, ERR_CONFLICT, true,
                    "split: not within the time for which alloc.%lld is valid",
                    (long long)alloc->id);
    return false;
}

/* One new allocation per share, with its grant and scopes, valid as long as the one that it comes
 * from (rule E3), or a part of that. */
static struct ledger_alloc *share_arrive (struct ledger_view *view, struct journal *j,
                                          const struct ledger_account *from,
                                          struct ledger_account *to, const struct share *share,
                                          const struct ledger_request *req)
{
    const char *description = req->transfer.description;
    struct ledger_outcome whole;
    time_us begin, end;
    validity (view, req, share->alloc, &begin, &end, &whole); /* was asked before */
    struct ledger_alloc *fresh =
        ledger_add_alloc (view, view->next.allocation++, to->id, begin, end);
    fresh->granted = fresh->posted = share->amount;
    fresh->grant_id = share->alloc->grant_id;
    fresh->split_from = req->kind == LEDGER_SPLIT ? share->alloc->id : 0;
    fresh->giver = share->alloc->giver;
    fresh->description =
        arena_printf (view->arena, "from %s alloc.%lld%s%s", from->name,
                      (long long)share->alloc->id, description[0] ? ": " : "", description);
    fresh->is_new = true;
    fresh->op_id = view->next.op;
    ledger_alloc_scopes (view, fresh, share->alloc->scopes);
    alloc_touch (view, fresh);
    journal_move (j, 'P', from->id, share->alloc->id, to->id, fresh->id, share->amount);
    if (fresh->valid_from <= view->now)
        debt_repay (view, j, to, fresh, fresh->posted);
    return fresh;
}

bool transfer_malformed (struct ledger_view *view, const struct ledger_request *req,
                         struct ledger_outcome *out)
{
    const char *what = out->operation;
    if (amount_refused (view, what, req->transfer.amount, out))
        return true;
    if (!same_account (view, req->transfer.from, req->transfer.to))
        return false;
    outcome_refuse (view, out, ERR_INVALID, false, "%s: from account %s to itself", what,
                    req->transfer.from);
    return true;
}

void decide_transfer (struct ledger_view *view, const struct ledger_request *req,
                      struct ledger_outcome *out)
{
    const char *what = out->operation;
    struct ledger_account *from, *to;
    struct share *share;
    time_us begin, end;
    if (transfer_malformed (view, req, out) ||
        !(from = project_account (view, req->transfer.from, out)) ||
        !(to = project_account (view, req->transfer.to, out)))
        return;
    out->note = arena_printf (view->arena, "%s to %s%s%s", from->name, to->name,
                              req->transfer.description[0] ? ": " : "", req->transfer.description);
    if (too_much (view, what, to, req->transfer.amount, out))
        return;
    uint32_t count = shares_free (view, what, req->agency, true, from, req->transfer.allocation_id,
                                  req->transfer.amount, &share, out);
    for (uint32_t i = 0; i < count; i++)
        if (!validity (view, req, share[i].alloc, &begin, &end, out))
            return;
    struct journal j = {.view = view, .effective_at = view->now};
    for (uint32_t i = 0; i < count; i++) {
        share_leave (view, &share[i]);
        const struct ledger_alloc *fresh = share_arrive (view, &j, from, to, &share[i], req);
        out->done.id = arena_printf (view->arena, "%s%salloc.%lld", i ? out->done.id : "",
                                     i ? "," : "", (long long)fresh->id);
    }
    if (count)
        journal_close (&j);
}

/* ---- refund ---- */

struct ledger_paid *ledger_paid_of (const struct ledger_view *view, int64_t op_id)
{
    for (uint32_t i = 0; i < view->paid.count; i++) {
        struct ledger_paid *paid = view->paid.item[i];
        if (paid->op_id == op_id)
            return paid;
    }
    return NULL;
}

struct ledger_paid *ledger_add_paid (struct ledger_view *view, int64_t op_id)
{
    struct ledger_paid *paid = ledger_paid_of (view, op_id);
    if (paid)
        return paid;
    paid = arena_new (view->arena, struct ledger_paid);
    paid->op_id = op_id;
    vec_push (view, &view->paid, paid);
    return paid;
}

static credit_micro paid_left (const struct ledger_paid *paid)
{
    credit_micro left = 0; /* legs sum to a charge, which is in bounds */
    for (uint32_t i = 0; i < paid->leg_count; i++)
        left += paid->leg[i].amount - paid->leg[i].refunded;
    return left;
}

/* Gives back to the leg's own allocation; what has ended passes it on at once (rule R2). */
static credit_micro refund_leg (struct ledger_view *view, struct journal *j,
                                struct ledger_paid *paid, struct ledger_paid_leg *leg,
                                credit_micro most)
{
    credit_micro take = leg->amount - leg->refunded;
    take = take < most ? take : most;
    if (take == 0)
        return 0;
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, leg->allocation_id);
    leg->refunded += take;
    struct ledger_refund *refund = arena_new (view->arena, struct ledger_refund);
    *refund = (struct ledger_refund){.op_id = view->next.op,
                                     .charge_id = paid->charge_id,
                                     .charge_leg = leg->leg,
                                     .allocation_id = leg->allocation_id,
                                     .amount = take};
    vec_push (view, &view->refunds, refund);
    if (!alloc) {
        assert (leg->allocation_id == LEDGER_ID_SUSPENSE);
        journal_move (j, 'P', paid->earned_account_id, paid->earned_alloc_id, LEDGER_ID_SUSPENSE,
                      LEDGER_ID_SUSPENSE, take);
        return take;
    }
    assert (alloc->settled >= take);
    alloc->posted += take;
    alloc->settled -= take;
    alloc_touch (view, alloc);
    journal_move (j, 'P', paid->earned_account_id, paid->earned_alloc_id, alloc->account_id,
                  alloc->id, take);
    debt_repay (view, j, ledger_account_by_id (view, alloc->account_id), alloc, take);
    expire_rest (view, j, alloc);
    return take;
}

void decide_refund (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    struct ledger_paid *paid = ledger_paid_of (view, req->refund.charge_op);
    char need[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX];
    long long op = (long long)req->refund.charge_op;
    if (req->refund.amount && amount_refused (view, "refund", req->refund.amount, out))
        return;
    if (!paid) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true,
                        "refund: operation %lld is no charge, or it took nothing", op);
        return;
    }
    out->site = paid->site;
    out->job = paid->job;
    credit_micro left = paid_left (paid), amount = req->refund.amount ? req->refund.amount : left;
    if (req->refund.due)
        amount = paid->due < left ? paid->due : left;
    if (amount > left || amount == 0) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "refund: %s credits asked, %s of charge %lld are not refunded yet",
                        credit_format (amount, need), credit_format (left, have), op);
        return;
    }
    struct journal j = {.view = view, .effective_at = view->now};
    credit_micro rest = amount;
    /* R1: the overrun first, then legs in reverse. */
    for (uint32_t i = 0; i < paid->leg_count; i++)
        if (paid->leg[i].overrun)
            rest -= refund_leg (view, &j, paid, &paid->leg[i], rest);
    for (uint32_t i = paid->leg_count; i > 0; i--)
        if (!paid->leg[i - 1].overrun)
            rest -= refund_leg (view, &j, paid, &paid->leg[i - 1], rest);
    assert (rest == 0);
    journal_close (&j);
    out->note = arena_printf (view->arena, "of charge %lld%s%s", op,
                              req->refund.reason[0] ? ": " : "", req->refund.reason);
    out->refund.refunded = amount;
    out->refund.left = left - amount;
}

/* ---- credit limits ---- */

void decide_limit (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, req->limit.allocation_id);
    char text[QUANTITY_TEXT_MAX];
    out->note = arena_printf (view->arena, "alloc.%lld: credit limit %s",
                              (long long)req->limit.allocation_id,
                              credit_format (req->limit.credit_limit, text));
    if (req->limit.credit_limit < 0 || req->limit.credit_limit > PRICE_AMOUNT_MAX) {
        outcome_refuse (view, out, ERR_INVALID, false, "a credit limit of %s is out of bounds",
                        text);
        return;
    }
    if (!alloc) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no allocation alloc.%lld",
                        (long long)req->limit.allocation_id);
        return;
    }
    alloc->credit_limit = req->limit.credit_limit;
    alloc->limit_dirty = true;
    alloc_touch (view, alloc);
    out->done.id = arena_printf (view->arena, "alloc.%lld", (long long)alloc->id);
}
