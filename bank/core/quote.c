/* Quotes: what holds would cost and who would pay, without holding anything. */
#include <string.h>

#include "bank/core/ledger_impl.h"

/* Remembers refusals, one per account. */
static void note (struct ledger_quote *quote, const struct ledger_candidate *candidate,
                  uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < quote->candidate_count && !seen; k++)
            seen = strcmp (quote->candidate[k].account, candidate[i].account) == 0;
        if (!seen && quote->candidate_count < LEDGER_CANDIDATES_MAX)
            quote->candidate[quote->candidate_count++] = candidate[i];
    }
}

/* Who would pay for these now, together; NULL when nobody can. */
static const char *payer_of (struct ledger_view *view, struct ledger_quote *quote,
                             struct placing *p, uint32_t count)
{
    struct ledger_candidate met[LEDGER_CANDIDATES_MAX];
    uint32_t met_count;
    const struct ledger_account *payer =
        place_all (view, quote->account, p, count, 0, met, &met_count);
    if (!payer)
        note (quote, met, met_count);
    else
        place_undo (p, count);
    return payer ? payer->name : NULL;
}

int ledger_quote (struct ledger_view *view, struct ledger_quote *quote, struct err *err)
{
    struct placing *all = arena_array (view->arena, quote->item_count, sizeof (*all));
    struct ledger_hold_ask *ask = arena_array (view->arena, quote->item_count, sizeof (*ask));
    char formula[PRICE_FORMULA_MAX];
    bool priced = true;

    quote->candidate = arena_array (view->arena, LEDGER_CANDIDATES_MAX, sizeof (*quote->candidate));
    quote->candidate_count = 0;
    quote->total = 0;
    quote->funded = false;
    quote->paying = "";
    for (uint32_t i = 0; i < quote->item_count; i++) {
        struct ledger_quote_item *item = &quote->item[i];
        ask[i] = (struct ledger_hold_ask){.job = {.site = item->site},
                                          .procs = item->procs,
                                          .walltime = item->walltime,
                                          .ask = item->ask,
                                          .start = item->start};
        item->account = item->formula = "";
        item->funded = false;
        if (place_begin (view, &ask[i], quote->identity, &all[i], &item->reason, err) < 0)
            return err_prefix (err, "quote");
        item->amount = all[i].amount;
        priced &= !item->reason;
        if (item->reason)
            continue;
        item->formula =
            arena_strdup (view->arena, price_formula (&all[i].terms, &all[i].use, PRICE_HOLD,
                                                      item->amount, formula));
        if (credit_add (quote->total, item->amount, &quote->total, err) < 0)
            return err->code;
        struct placing one = all[i];
        const char *payer = payer_of (view, quote, &one, 1);
        item->funded = payer != NULL;
        item->account = payer ? payer : "";
    }
    if (quote->all_of && priced) {
        const char *payer = payer_of (view, quote, all, quote->item_count);
        quote->funded = payer != NULL;
        quote->paying = payer ? payer : "";
    }
    return 0;
}
