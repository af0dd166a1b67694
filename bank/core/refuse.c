/* What several operations refuse by: names, amounts, accounts, scopes. Each fills the outcome and changes nothing. */
#include <stdarg.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

void outcome_refuse (struct ledger_view *view, struct ledger_outcome *out, int code, bool record,
                     const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    out->text = arena_vprintf (view->arena, fmt, ap);
    va_end (ap);
    out->code = code;
    out->record = record;
}

void hold_refuse (struct ledger_outcome *out, const char *code, const char *text)
{
    out->hold.granted = false;
    out->hold.reason_code = code;
    out->hold.reason_text = text;
}

bool name_refused (struct ledger_view *view, const char *what, const char *name,
                   struct ledger_outcome *out)
{
    struct err err = {0};
    if (name_check (what, name, &err) == 0)
        return false;
    outcome_refuse (view, out, ERR_INVALID, false, "%s", err.text);
    return true;
}

bool amount_refused (struct ledger_view *view, const char *what, credit_micro amount,
                     struct ledger_outcome *out)
{
    char text[QUANTITY_TEXT_MAX];
    if (amount > 0 && amount <= PRICE_AMOUNT_MAX)
        return false;
    outcome_refuse (view, out, ERR_INVALID, false,
                    "%s: %s credits: not positive, or more than 1000000000000", what,
                    credit_format (amount, text));
    return true;
}

struct ledger_account *project_account (struct ledger_view *view, const char *name,
                                        struct ledger_outcome *out)
{
    struct ledger_account *account = ledger_account_by_name (view, name);
    if (account && account->project_id && !account->is_debt && !account->closed)
        return account;
    if (account && account->closed) {
        outcome_refuse (view, out, ERR_CONFLICT, true, "account %s is closed", name);
        return NULL;
    }
    outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no account %s", name);
    return NULL;
}

bool too_much (struct ledger_view *view, const char *what, const struct ledger_account *account,
               credit_micro amount, struct ledger_outcome *out)
{
    __int128 total = amount;
    for (uint32_t i = 0; i < account->alloc_count; i++)
        total += account->alloc[i]->granted;
    if (total <= PRICE_AMOUNT_MAX)
        return false;
    outcome_refuse (view, out, ERR_LIMIT, true,
                    "%s: account %s would hold more than the ledger can count", what,
                    account->name);
    return true;
}

bool scopes_refused (struct ledger_view *view, const struct ledger_scopes *scopes, bool users_only,
                     struct ledger_outcome *out)
{
    if (scopes->count > LEDGER_SCOPES_MAX) {
        outcome_refuse (view, out, ERR_LIMIT, false, "%u scopes, at most %d are kept",
                        scopes->count, LEDGER_SCOPES_MAX);
        return true;
    }
    for (uint32_t i = 0; i < scopes->count; i++) {
        if (users_only && scopes->item[i].kind != LEDGER_SCOPE_USER) {
            outcome_refuse (view, out, ERR_INVALID, false,
                            "an account is for users; a %s is for an allocation of it to name",
                            ledger_scope_name (scopes->item[i].kind));
            return true;
        }
        for (uint32_t k = 0; k < i; k++)
            if (scopes->item[k].kind == scopes->item[i].kind &&
                strcmp (scopes->item[k].name, scopes->item[i].name) == 0) {
                outcome_refuse (view, out, ERR_INVALID, false, "%s %.200s is named twice",
                                ledger_scope_name (scopes->item[i].kind), scopes->item[i].name);
                return true;
            }
    }
    return false;
}
