/* What becomes of a grant after it was given: a later end, another amount, the end of it. Whoever decides that answers for
 * all of it, wherever it was split to; what jobs have spent or hold is never touched. rights.c says whose it must be. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

void about_add (struct ledger_view *view, const char *what, int64_t id)
{
    for (uint32_t i = 0; i < view->abouts.count; i++) {
        const struct ledger_about *seen = view->abouts.item[i];
        if (seen->op_id == view->next.op && seen->id == id && strcmp (seen->what, what) == 0)
            return;
    }
    struct ledger_about *about = arena_new (view->arena, struct ledger_about);
    *about = (struct ledger_about){.op_id = view->next.op, .id = id, .what = what};
    vec_push (view, &view->abouts, about);
}

/* The grant's allocations by number, whatever was loaded when. */
struct parts {
    struct ledger_alloc **item;
    uint32_t count;
};

static int by_number (const void *a, const void *b)
{
    const struct ledger_alloc *x = *(struct ledger_alloc *const *)a,
                              *y = *(struct ledger_alloc *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static struct parts award_parts (struct ledger_view *view, const struct ledger_grant *grant)
{
    struct parts parts = {.item =
                              arena_array (view->arena, view->allocs.count, sizeof (*parts.item))};
    for (uint32_t i = 0; i < view->allocs.count; i++) {
        struct ledger_alloc *alloc = view->allocs.item[i];
        if (alloc->grant_id == grant->id)
            parts.item[parts.count++] = alloc;
    }
    qsort (parts.item, parts.count, sizeof (struct ledger_alloc *), by_number);
    return parts;
}

/* NULL, with the sentence, when it is not there or was revoked. */
static struct ledger_grant *award_open (struct ledger_view *view, const struct ledger_request *req,
                                        struct ledger_outcome *out)
{
    struct ledger_grant *grant = ledger_grant_by_id (view, req->award.grant_id);
    long long id = (long long)req->award.grant_id;
    if (!req->award.reason[0])
        outcome_refuse (view, out, ERR_INVALID, false, "%s: say why, with a reason",
                        out->operation);
    else if (!grant)
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no grant grant.%lld", id);
    else if (grant->revoked_op_id)
        outcome_refuse (view, out, ERR_CONFLICT, true, "grant.%lld was revoked", id);
    else
        return grant;
    return NULL;
}

static void award_done (struct ledger_view *view, const struct ledger_grant *grant,
                        const struct ledger_request *req, const char *what,
                        struct ledger_outcome *out)
{
    about_add (view, "grant", grant->id);
    about_add (view, "account", grant->account_id);
    const struct parts parts = award_parts (view, grant);
    for (uint32_t i = 0; i < parts.count; i++)
        about_add (view, "account", parts.item[i]->account_id);
    out->done.id = arena_printf (view->arena, "grant.%lld", (long long)grant->id);
    out->note = arena_printf (view->arena, "%s %s: %s", out->done.id, what, req->award.reason);
}

/* An allocation's place among its account's is by its end. */
static void award_end (struct ledger_view *view, struct ledger_alloc *alloc, time_us end)
{
    alloc->valid_to = end;
    alloc->end_dirty = true;
    ledger_alloc_scopes (view, alloc, alloc->scopes);
    alloc_touch (view, alloc);
}

/* What ends with the grant ends later; what was split off for less time does not. */
void decide_grant_extend (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    const struct ledger_grant *grant = award_open (view, req, out);
    time_us end = req->award.valid_to, last = 0;
    char was[QUANTITY_TEXT_MAX], is[QUANTITY_TEXT_MAX];
    if (!grant)
        return;
    const struct parts parts = award_parts (view, grant);
    for (uint32_t i = 0; i < parts.count; i++)
        last = parts.item[i]->valid_to > last ? parts.item[i]->valid_to : last;
    if (last <= view->now || end <= last) {
        outcome_refuse (
            view, out, ERR_CONFLICT, true, "grant-extend: grant.%lld %s%s", (long long)grant->id,
            last <= view->now     ? "has ended: what it had left is gone"
            : last == TIME_US_MAX ? "has no end"
                                  : "does not end before ",
            last <= view->now || last == TIME_US_MAX ? "" : time_format_iso (last, was));
        return;
    }
    for (uint32_t i = 0; i < parts.count; i++)
        if (parts.item[i]->valid_to == last)
            award_end (view, parts.item[i], end);
    award_done (view, grant, req,
                arena_printf (view->arena, "extended from %s to %s", time_format_iso (last, was),
                              time_format_iso (end, is)),
                out);
}

/* More goes to the allocation that the grant was given as. */
static bool award_raise (struct ledger_view *view, const struct ledger_grant *grant,
                         credit_micro more, struct ledger_outcome *out)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, grant->alloc_id);
    struct ledger_account *account = ledger_account_by_id (view, grant->account_id);
    if (!alloc || alloc->valid_to <= view->now || account->closed) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "grant-amend: %s, which grant.%lld was given to, %s", account->name,
                        (long long)grant->id,
                        account->closed ? "is closed" : "has it no longer: it has ended there");
        return false;
    }
    if (too_much (view, "grant-amend", account, more, out))
        return false;
    struct journal j = {.view = view, .effective_at = view->now};
    alloc->posted += more;
    alloc->granted += more;
    alloc_touch (view, alloc);
    journal_move (&j, 'P', LEDGER_ID_GRANTS, LEDGER_ID_GRANTS, account->id, alloc->id, more);
    if (alloc->valid_from <= view->now)
        debt_repay (view, &j, account, alloc, more);
    journal_close (&j);
    return true;
}

/* What may be taken out of one of its allocations. */
static credit_micro award_free (const struct ledger_view *view, const struct ledger_alloc *alloc)
{
    const struct ledger_account *account = ledger_account_by_id (view, alloc->account_id);
    bool owes = funds_overdrawn (account) || funds_debt (view, account);
    return owes || alloc->valid_to <= view->now || alloc->posted <= alloc->held
               ? 0
               : alloc->posted - alloc->held;
}

static credit_micro award_take (struct ledger_view *view, struct journal *j,
                                struct ledger_alloc *alloc, credit_micro most)
{
    credit_micro free = award_free (view, alloc), take = free < most ? free : most;
    if (take == 0)
        return 0;
    share_leave (view, &(struct share){alloc, take});
    journal_move (j, 'P', alloc->account_id, alloc->id, LEDGER_ID_GRANTS, LEDGER_ID_GRANTS, take);
    return take;
}

/* Less is taken where it was given to first, then from what was passed on last. */
static bool award_lower (struct ledger_view *view, const struct ledger_grant *grant,
                         credit_micro total, credit_micro less, struct ledger_outcome *out)
{
    char is[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX], to[QUANTITY_TEXT_MAX];
    const struct parts parts = award_parts (view, grant);
    __int128 free = 0;
    for (uint32_t i = 0; i < parts.count; i++)
        free += award_free (view, parts.item[i]);
    if (free < less) {
        outcome_refuse (
            view, out, ERR_CONFLICT, true,
            "grant-amend: %s of the %s credits of grant.%lld are neither spent, held nor ended: it cannot be of %s",
            credit_format ((credit_micro)free, most), credit_format (total, is),
            (long long)grant->id, credit_format (total - less, to));
        return false;
    }
    struct journal j = {.view = view, .effective_at = view->now};
    struct ledger_alloc *first = ledger_alloc_by_id (view, grant->alloc_id);
    if (first)
        less -= award_take (view, &j, first, less);
    for (uint32_t i = parts.count; i > 0 && less > 0; i--)
        less -= award_take (view, &j, parts.item[i - 1], less);
    assert (less == 0); /* so much is free */
    journal_close (&j);
    return true;
}

void decide_grant_amend (struct ledger_view *view, const struct ledger_request *req,
                         struct ledger_outcome *out)
{
    char was[QUANTITY_TEXT_MAX], is[QUANTITY_TEXT_MAX];
    __int128 total = 0;
    if (amount_refused (view, "grant-amend", req->award.amount, out))
        return;
    const struct ledger_grant *grant = award_open (view, req, out);
    if (!grant)
        return;
    const struct parts parts = award_parts (view, grant);
    for (uint32_t i = 0; i < parts.count; i++)
        total += parts.item[i]->granted;
    if (total == req->award.amount || total > INT64_MAX) {
        outcome_refuse (view, out, total > INT64_MAX ? ERR_LIMIT : ERR_EXISTS, true,
                        "grant-amend: grant.%lld is of %s", (long long)grant->id,
                        total > INT64_MAX ? "more than can be told" : "that amount already");
        return;
    }
    credit_micro now = (credit_micro)total, amount = req->award.amount;
    if (amount > now ? !award_raise (view, grant, amount - now, out)
                     : !award_lower (view, grant, now, now - amount, out))
        return;
    award_done (view, grant, req,
                arena_printf (view->arena, "amended from %s to %s credits",
                              credit_format (now, was), credit_format (amount, is)),
                out);
}

/* What is unspent repays what is owed, as when an account is closed, and goes back to where grants come from; all of the
 * grant ends, so that what running jobs hold pays for them and for nothing after. */
void decide_grant_revoke (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    struct ledger_grant *grant = award_open (view, req, out);
    struct journal j = {.view = view, .effective_at = view->now};
    char text[QUANTITY_TEXT_MAX];
    __int128 back = 0;
    if (!grant)
        return;
    const struct parts parts = award_parts (view, grant);
    for (uint32_t i = 0; i < parts.count; i++) {
        struct ledger_alloc *alloc = parts.item[i];
        if (alloc->valid_to <= view->now)
            continue;
        const struct ledger_account *account = ledger_account_by_id (view, alloc->account_id);
        if (alloc->valid_from <= view->now)
            debt_repay (view, &j, account, alloc, alloc->posted);
        credit_micro free = alloc->posted > alloc->held ? alloc->posted - alloc->held : 0;
        share_leave (view, &(struct share){alloc, free});
        journal_move (&j, 'P', account->id, alloc->id, LEDGER_ID_GRANTS, LEDGER_ID_GRANTS, free);
        back += free;
        alloc->credit_limit = 0;
        alloc->limit_dirty = true;
        award_end (view, alloc, alloc->valid_from < view->now ? view->now : alloc->valid_from + 1);
        expire_rest (view, &j, alloc);
    }
    journal_close (&j);
    grant->revoked_op_id = view->next.op;
    grant->revoked_dirty = true;
    award_done (
        view, grant, req,
        arena_printf (view->arena, "revoked, %s credits taken back",
                      credit_format (back > INT64_MAX ? INT64_MAX : (credit_micro)back, text)),
        out);
}
