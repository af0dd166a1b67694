/* How a charge is paid: from what its hold keeps, from what the account has available, from its credit, by force
 * (rules C2, C3); and how a hold ends. charge.c says how much, and what is nobody's yet. */
#include <assert.h>

#include "bank/core/posting.h"

static void posting_leg (struct posting *p, int64_t alloc_id, credit_micro amount,
                         const char *source)
{
    struct ledger_charge_leg *leg = arena_new (p->view->arena, struct ledger_charge_leg);
    *leg = (struct ledger_charge_leg){alloc_id, amount, source};
    vec_push (p->view, &p->legs, leg);
}

/* Takes amount out of an allocation's posted balance. */
static void posting_take (struct posting *p, struct ledger_alloc *alloc, credit_micro amount,
                          const char *source)
{
    if (amount == 0)
        return;
    bool over = __builtin_sub_overflow (alloc->posted, amount, &alloc->posted);
    over |= __builtin_add_overflow (alloc->settled, amount, &alloc->settled);
    assert (!over);
    alloc_touch (p->view, alloc);
    posting_leg (p, alloc->id, amount, source);
    journal_move (&p->journal, 'P', alloc->account_id, alloc->id, p->site->earned_account_id,
                  p->site->earned_alloc_id, amount);
}

/* Gives back part of what a hold's leg keeps. */
static void posting_unhold (struct posting *p, struct ledger_leg *leg, credit_micro amount)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (p->view, leg->allocation_id);
    assert (alloc && alloc->held >= amount);
    alloc->held -= amount;
    alloc_touch (p->view, alloc);
    p->hold->dirty = true;
    journal_move (&p->journal, 'H', alloc->account_id, alloc->id, p->site->earned_account_id,
                  p->site->earned_alloc_id, amount);
}

static credit_micro posting_leg_left (const struct ledger_leg *leg)
{
    return leg->amount - leg->settled - leg->released;
}

/* C2: over the hold's legs, in hold order. Returns what is left to post. */
static credit_micro posting_held (struct posting *p, credit_micro amount)
{
    for (uint32_t i = 0; p->hold && i < p->hold->leg_count && amount > 0; i++) {
        struct ledger_leg *leg = &p->hold->leg[i];
        credit_micro left = posting_leg_left (leg), take = left < amount ? left : amount;
        posting_unhold (p, leg, take);
        leg->settled += take;
        posting_take (p, ledger_alloc_by_id (p->view, leg->allocation_id), take, "HELD");
        amount -= take;
    }
    return amount;
}

/* C3: from what the account has available, then from its credit. */
static credit_micro posting_free (struct posting *p, credit_micro amount, bool credit)
{
    for (uint32_t i = 0; i < p->account->alloc_count && amount > 0; i++) {
        struct ledger_alloc *alloc = p->account->alloc[i];
        if (!funds_usable (p->view, p->account, alloc, &p->funding))
            continue;
        __int128 room = (__int128)alloc->posted - alloc->held + (credit ? alloc->credit_limit : 0);
        if (room <= 0)
            continue;
        credit_micro take = room < amount ? (credit_micro)room : amount;
        posting_take (p, alloc, take, credit ? "CREDIT" : "AVAILABLE");
        amount -= take;
    }
    return amount;
}

/* Where an overrun is forced: the hold's first leg, else the account's allocation that is valid at
 * the time, else the one that ended last. NULL: the account never had any. */
static struct ledger_alloc *posting_overrun (const struct posting *p)
{
    if (p->hold && p->hold->leg_count)
        return ledger_alloc_by_id (p->view, p->hold->leg[0].allocation_id);
    for (uint32_t i = 0; i < p->account->alloc_count; i++) {
        struct ledger_alloc *alloc = p->account->alloc[i];
        if (funds_usable (p->view, p->account, alloc, &p->funding))
            return alloc;
    }
    return p->account->alloc_count ? p->account->alloc[p->account->alloc_count - 1] : NULL;
}

void posting_pay (struct posting *p, credit_micro amount)
{
    struct ledger_alloc *target = NULL;
    amount = posting_held (p, amount);
    if (p->account && amount > 0) {
        if (!p->account->closed) {
            amount = posting_free (p, amount, false);
            amount = posting_free (p, amount, true);
        }
        target = amount > 0 ? posting_overrun (p) : NULL;
    }
    /* An absurd amount must not overflow the books: it waits in suspense for a person. */
    if (target &&
        (target->posted < amount - PRICE_AMOUNT_MAX || target->settled > PRICE_AMOUNT_MAX - amount))
        target = NULL;
    if (target) {
        posting_take (p, target, amount, "OVERRUN");
    } else if (amount > 0) {
        posting_leg (p, LEDGER_ID_SUSPENSE, amount, "SUSPENSE");
        journal_move (&p->journal, 'P', LEDGER_ID_SUSPENSE, LEDGER_ID_SUSPENSE,
                      p->site->earned_account_id, p->site->earned_alloc_id, amount);
    }
}

void posting_dispute (struct posting *p, credit_micro amount)
{
    if (amount == 0)
        return;
    posting_leg (p, LEDGER_ID_SUSPENSE, amount, "DISPUTED");
    journal_move (&p->journal, 'P', LEDGER_ID_SUSPENSE, LEDGER_ID_SUSPENSE,
                  p->site->earned_account_id, p->site->earned_alloc_id, amount);
}

void posting_close_hold (struct posting *p)
{
    if (!p->hold || !p->hold->open)
        return;
    for (uint32_t i = 0; i < p->hold->leg_count; i++) {
        struct ledger_leg *leg = &p->hold->leg[i];
        credit_micro left = posting_leg_left (leg);
        posting_unhold (p, leg, left);
        leg->released += left;
        p->released += left;
        struct ledger_alloc *alloc = ledger_alloc_by_id (p->view, leg->allocation_id);
        debt_repay (p->view, &p->journal, ledger_account_by_id (p->view, alloc->account_id), alloc,
                    left);
        expire_rest (p->view, &p->journal, alloc);
    }
    p->hold->open = false;
    p->hold->dirty = true;
}

void posting_leave (struct posting *p)
{
    for (uint32_t i = 0; i < p->legs.count; i++) {
        const struct ledger_charge_leg *leg = p->legs.item[i];
        struct ledger_alloc *alloc = ledger_alloc_by_id (p->view, leg->allocation_id);
        if (alloc)
            expire_rest (p->view, &p->journal, alloc);
    }
}
