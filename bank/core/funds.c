/* Who pays: candidates, what they have, the greedy fill. */
#include <assert.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

static credit_micro clamp (__int128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (credit_micro)v;
}

static __int128 room (const struct ledger_alloc *alloc)
{
    return (__int128)alloc->posted - alloc->held + alloc->credit_limit;
}

credit_micro ledger_room (const struct ledger_alloc *alloc)
{
    return clamp (room (alloc));
}

static bool valid_at (const struct ledger_alloc *alloc, time_us at)
{
    return alloc->valid_from <= at && at < alloc->valid_to;
}

bool funds_usable (const struct ledger_view *view, const struct ledger_account *account,
                   const struct ledger_alloc *alloc, const struct funding *f)
{
    const struct ledger_scopes *scopes = &alloc->scopes;
    return valid_at (alloc, f->at) &&
           (scopes->count == 0 ||
            (scope_admits (scopes, LEDGER_SCOPE_USER, f->identity,
                           ledger_is_member (view, f->identity, account->project_id), true) &&
             scope_admits (scopes, LEDGER_SCOPE_SITE, f->site, false, true) &&
             scope_admits (scopes, LEDGER_SCOPE_MACHINE, f->machine, false, true) &&
             scope_admits (scopes, LEDGER_SCOPE_QOS, f->qos, false, true)));
}

/* What may be promised: of a frozen grant nothing is, though charges take from it. */
static bool funds_promised (const struct ledger_view *view, const struct ledger_account *account,
                            const struct ledger_alloc *alloc, const struct funding *f)
{
    return funds_usable (view, account, alloc, f) && !freeze_of_grant (view, alloc);
}

/* What the account can still promise: the room of its usable allocations, less what any of its
 * allocations is below its limit. Negative when overdrawn. */
static credit_micro funds_available (const struct ledger_view *view,
                                     const struct ledger_account *account, const struct funding *f)
{
    __int128 sum = 0;
    for (uint32_t i = 0; i < account->alloc_count; i++) {
        const struct ledger_alloc *alloc = account->alloc[i];
        if (room (alloc) < 0 || funds_promised (view, account, alloc, f))
            sum += room (alloc);
    }
    return clamp (sum);
}

/* By how much its allocations are below their limits. */
static credit_micro funds_overdraft (const struct ledger_account *account)
{
    __int128 sum = 0;
    for (uint32_t i = 0; i < account->alloc_count; i++)
        if (room (account->alloc[i]) < 0)
            sum -= room (account->alloc[i]);
    return clamp (sum);
}

bool funds_overdrawn (const struct ledger_account *account)
{
    return funds_overdraft (account) > 0;
}

credit_micro funds_debt (const struct ledger_view *view, const struct ledger_account *account)
{
    const struct ledger_account *debt = debt_account (view, account);
    return debt && debt->alloc_count && debt->alloc[0]->posted < 0 ? -debt->alloc[0]->posted : 0;
}

bool funds_may_use (const struct ledger_view *view, const struct ledger_account *account,
                    const char *identity)
{
    bool member = ledger_is_member (view, identity, account->project_id);
    return account->project_id && !account->is_debt &&
           scope_admits (&account->scopes, LEDGER_SCOPE_USER, identity, member, member);
}

static void add_fallbacks (const struct ledger_view *view, const struct candidate *from,
                           const char *site, struct candidate *out, uint32_t *count)
{
    const struct ledger_account *account = from->account;
    bool own = false; /* a list for this site */
    for (uint32_t i = 0; i < account->fallback_count && !own; i++)
        own = site[0] && strcmp (account->fallback[i].site, site) == 0;
    for (uint32_t i = 0; i < account->fallback_count; i++) {
        const struct ledger_fallback *fallback = &account->fallback[i];
        struct ledger_account *next = ledger_account_by_id (view, fallback->account_id);
        bool seen = !next || strcmp (fallback->site, own ? site : "") != 0;
        for (uint32_t k = 0; k < *count && !seen; k++)
            seen = out[k].account == next;
        if (!seen && *count < LEDGER_CANDIDATES_MAX)
            out[(*count)++] =
                (struct candidate){next, fallback->qos[0] ? fallback->qos : from->qos};
    }
}

uint32_t funds_candidates (const struct ledger_view *view, struct ledger_account *asked,
                           const char *site, struct candidate out[LEDGER_CANDIDATES_MAX])
{
    uint32_t count = 0, level_begin = 0;
    out[count++] = (struct candidate){asked, ""};
    for (int depth = 1; depth <= LEDGER_FALLBACK_DEPTH_MAX; depth++) {
        uint32_t level_end = count;
        for (uint32_t i = level_begin; i < level_end; i++)
            add_fallbacks (view, &out[i], site, out, &count);
        level_begin = level_end;
    }
    return count;
}

static bool any_usable (const struct ledger_view *view, const struct ledger_account *account,
                        const struct funding *f, bool *valid_out, const char **frozen_out)
{
    bool any = false;
    *valid_out = false;
    *frozen_out = NULL; /* why what is there is not promised */
    for (uint32_t i = 0; i < account->alloc_count; i++) {
        *valid_out |= valid_at (account->alloc[i], f->at);
        if (!funds_usable (view, account, account->alloc[i], f))
            continue;
        const char *frozen = freeze_of_grant (view, account->alloc[i]);
        any |= !frozen;
        if (frozen && room (account->alloc[i]) > 0)
            *frozen_out = frozen;
    }
    return any;
}

/* Why somebody may not use an account at all. No figures: they are for members. */
static void not_theirs (const struct ledger_view *view, const struct ledger_account *account,
                        const struct funding *f, struct ledger_candidate *why)
{
    why->code = "NotMember";
    if (!account->project_id || account->is_debt) {
        why->text = "a system account pays for no job";
    } else if (!ledger_is_member (view, f->identity, account->project_id)) {
        why->text = arena_printf (view->arena, "%s is not a member of project %s", f->identity,
                                  account->project);
    } else {
        why->code = "NotUser";
        why->text = arena_printf (view->arena, "the account is not for %s", f->identity);
    }
}

/* Why an account that somebody may use does not pay so much. */
static void cannot (const struct ledger_view *view, const struct ledger_account *account,
                    const struct funding *f, credit_micro amount, struct ledger_candidate *why)
{
    char need[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX], missing[QUANTITY_TEXT_MAX];
    credit_micro debt = funds_debt (view, account), below = funds_overdraft (account);
    const char *frozen;
    bool valid, usable = any_usable (view, account, f, &valid, &frozen);
    /* What is below zero is repaid before anything is paid, also where enough is there for others. */
    __int128 short_by = (__int128)amount - why->available;
    why->shortfall = clamp ((short_by < below ? below : short_by) + debt);
    credit_format (amount, need);
    credit_format (why->available, have);
    credit_format (why->shortfall, missing);
    if (funds_overdrawn (account)) {
        why->code = "AccountOverdrawn";
        why->text = arena_printf (view->arena,
                                  "overdrawn: %s credits available, %s asked; a deposit "
                                  "of what is missing (%s) opens it again",
                                  have, need, missing);
    } else if (debt) {
        why->code = "ProjectInDebt";
        why->text = arena_printf (view->arena,
                                  "project %s owes %s credits from an allocation that ended; a "
                                  "deposit repays them first",
                                  account->project, credit_format (debt, have));
    } else if (frozen) {
        why->code = "Frozen";
        why->text = frozen;
    } else if (!usable) {
        why->code = valid ? "OutOfScope" : "NoAllocation";
        why->text = arena_printf (view->arena,
                                  valid ? "none of its allocations is for this user, site, machine "
                                          "and QoS; %s credits asked"
                                        : "no allocation is valid at the expected start; %s "
                                          "credits asked",
                                  need);
    } else {
        why->code = "InsufficientFunds";
        why->text = arena_printf (view->arena, "%s credits asked, %s available, %s short", need,
                                  have, missing);
    }
}

bool funds_check (const struct ledger_view *view, const struct ledger_account *account,
                  const struct funding *f, credit_micro amount, bool fallback,
                  struct ledger_candidate *why)
{
    *why = (struct ledger_candidate){
        .account = account->name, .fallback = fallback, .shortfall = amount};
    if (!funds_may_use (view, account, f->identity)) {
        not_theirs (view, account, f, why);
        return false;
    }
    if (account->closed) {
        why->code = "AccountClosed";
        why->text = "the account is closed";
        return false;
    }
    const char *frozen = freeze_of (view, account, f->identity);
    if (frozen) {
        why->code = "Frozen";
        why->text = frozen;
        return false;
    }
    why->available = funds_available (view, account, f);
    if (amount <= (why->available > 0 ? why->available : 0) && !funds_overdrawn (account) &&
        funds_debt (view, account) == 0)
        return true;
    cannot (view, account, f, amount, why);
    return false;
}

uint32_t funds_fill (struct ledger_view *view, const struct ledger_account *account,
                     const struct funding *f, credit_micro amount, struct share **out)
{
    struct share *share = arena_array (view->arena, account->alloc_count + 1, sizeof (*share));
    uint32_t count = 0;
    for (uint32_t i = 0; i < account->alloc_count && amount > 0; i++) {
        struct ledger_alloc *alloc = account->alloc[i];
        credit_micro here = ledger_room (alloc);
        if (here <= 0 || !funds_promised (view, account, alloc, f))
            continue;
        credit_micro take = here < amount ? here : amount;
        share[count++] = (struct share){alloc, take};
        amount -= take;
    }
    assert (amount == 0);
    *out = share;
    return count;
}

const char *funds_refusal_text (const struct ledger_view *view, credit_micro amount,
                                const struct ledger_candidate *candidate, uint32_t count)
{
    char need[QUANTITY_TEXT_MAX];
    char *text =
        arena_printf (view->arena, "no account can pay %s credits: ", credit_format (amount, need));
    for (uint32_t i = 0; i < count; i++)
        text =
            arena_printf (view->arena, "%s%s%s%s (%s)", text, i ? "; " : "", candidate[i].account,
                          candidate[i].fallback ? ", a fallback" : "", candidate[i].text);
    return text;
}
