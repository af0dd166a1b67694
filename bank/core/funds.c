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

credit_micro funds_available (const struct ledger_account *account, time_us at)
{
    __int128 sum = 0;
    for (uint32_t i = 0; i < account->alloc_count; i++) {
        const struct ledger_alloc *alloc = account->alloc[i];
        if (valid_at (alloc, at) || room (alloc) < 0)
            sum += room (alloc);
    }
    return clamp (sum);
}

bool funds_overdrawn (const struct ledger_account *account)
{
    for (uint32_t i = 0; i < account->alloc_count; i++)
        if (room (account->alloc[i]) < 0)
            return true;
    return false;
}

uint32_t funds_candidates (const struct ledger_view *view, struct ledger_account *asked,
                           struct ledger_account *out[LEDGER_CANDIDATES_MAX])
{
    uint32_t count = 0, level_begin = 0;
    out[count++] = asked;
    for (int depth = 1; depth <= LEDGER_FALLBACK_DEPTH_MAX; depth++) {
        uint32_t level_end = count;
        for (uint32_t i = level_begin; i < level_end; i++)
            for (uint32_t f = 0; f < out[i]->fallback_count; f++) {
                struct ledger_account *next = ledger_account_by_id (view, out[i]->fallback[f]);
                bool seen = !next;
                for (uint32_t k = 0; k < count && !seen; k++)
                    seen = out[k] == next;
                if (!seen && count < LEDGER_CANDIDATES_MAX)
                    out[count++] = next;
            }
        level_begin = level_end;
    }
    return count;
}

static bool any_valid (const struct ledger_account *account, time_us at)
{
    for (uint32_t i = 0; i < account->alloc_count; i++)
        if (valid_at (account->alloc[i], at))
            return true;
    return false;
}

bool funds_check (const struct ledger_view *view, const struct ledger_account *account,
                  const char *identity, credit_micro amount, time_us at, bool fallback,
                  struct ledger_candidate *why)
{
    char need[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX], missing[QUANTITY_TEXT_MAX];
    *why = (struct ledger_candidate){
        .account = account->name, .fallback = fallback, .shortfall = amount};
    if (!account->project_id || !ledger_is_member (view, identity, account->project_id)) {
        /* No figures: they are for members. */
        why->code = "NotMember";
        why->text = account->project_id
                        ? arena_printf (view->arena, "%s is not a member of project %s", identity,
                                        account->project)
                        : "a system account pays for no job";
        return false;
    }
    why->available = funds_available (account, at);
    if (amount <= (why->available > 0 ? why->available : 0) && !funds_overdrawn (account))
        return true;
    why->shortfall = clamp ((__int128)amount - why->available);
    credit_format (amount, need);
    credit_format (why->available, have);
    credit_format (why->shortfall, missing);
    if (funds_overdrawn (account)) {
        why->code = "AccountOverdrawn";
        why->text = arena_printf (view->arena,
                                  "overdrawn: %s credits available, %s asked; a deposit "
                                  "of what is missing (%s) opens it again",
                                  have, need, missing);
    } else if (!any_valid (account, at)) {
        why->code = "NoAllocation";
        why->text = arena_printf (view->arena,
                                  "no allocation is valid at the expected start; %s "
                                  "credits asked",
                                  need);
    } else {
        why->code = "InsufficientFunds";
        why->text = arena_printf (view->arena, "%s credits asked, %s available, %s short", need,
                                  have, missing);
    }
    return false;
}

uint32_t funds_fill (struct ledger_view *view, const struct ledger_account *account,
                     credit_micro amount, time_us at, struct share **out)
{
    struct share *share = arena_array (view->arena, account->alloc_count + 1, sizeof (*share));
    uint32_t count = 0;
    for (uint32_t i = 0; i < account->alloc_count && amount > 0; i++) {
        struct ledger_alloc *alloc = account->alloc[i];
        credit_micro here = ledger_room (alloc);
        if (!valid_at (alloc, at) || here <= 0)
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

struct ledger_account *funds_choose (struct ledger_view *view, const char *account_name,
                                     const char *identity, credit_micro amount, time_us at,
                                     struct ledger_candidate *candidate, uint32_t *candidate_count)
{
    struct ledger_account *asked = ledger_account_by_name (view, account_name);
    *candidate_count = 0;
    if (!asked) {
        candidate[(*candidate_count)++] = (struct ledger_candidate){
            .account = account_name,
            .code = "NoAccount",
            .text = account_name[0] ? "there is no such account" : "the job names no account",
            .shortfall = amount};
        return NULL;
    }
    struct ledger_account *list[LEDGER_CANDIDATES_MAX];
    uint32_t count = funds_candidates (view, asked, list);
    for (uint32_t i = 0; i < count; i++) {
        if (funds_check (view, list[i], identity, amount, at, i > 0, &candidate[*candidate_count]))
            return list[i];
        (*candidate_count)++;
    }
    return NULL;
}
