/* Quotes: what holds would cost and who would pay, without holding anything; and those that keep their rates for jobs
 * that name them (pin.c has how these are used). */
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
        place_all (view, quote->account, p, count, PRICE_AMOUNT_MAX, met, &met_count);
    if (!payer)
        note (quote, met, met_count);
    else
        place_undo (p, count);
    return payer ? payer->name : NULL;
}

/* What the item is priced as; without a number of processors, as the most that a hold for the signed part may be. */
static struct ledger_hold_ask asked_of (struct ledger_view *view,
                                        const struct ledger_quote_item *item)
{
    struct ledger_hold_ask ask = {.job = {.site = item->site},
                                  .procs = item->procs,
                                  .walltime = item->walltime,
                                  .ask = item->ask,
                                  .start = item->start};
    if (ask.procs == 0) {
        static const struct ledger_site unheard;
        const struct ledger_site *known = ledger_site_of (view, item->site),
                                 *site = known ? known : &unheard;
        ask.procs = bounds_procs (&item->bounds, site);
        ask.ask.pe_milli = bounds_pe (site, ask.procs, ask.ask.memory_mb);
        ask.walltime = ask.walltime ? ask.walltime : item->bounds.walltime;
    }
    return ask;
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
        ask[i] = asked_of (view, item);
        item->account = item->formula = "";
        item->funded = false;
        if (place_begin (view, &ask[i], quote->identity, &all[i], &item->reason, err) < 0)
            return err_prefix (err, "quote");
        item->code = all[i].code;
        item->amount = all[i].amount;
        item->rate_version = item->reason ? 0 : all[i].rate->version;
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

/* ---- quotes that keep their rates ---- */

/* The cards that the items were priced with, each site's once; 0 when one was not. */
static uint32_t cards_of (struct ledger_view *view, const struct ledger_quote *quote,
                          const struct ledger_card **out)
{
    struct ledger_card *card = arena_array (view->arena, quote->item_count, sizeof (*card));
    uint32_t count = 0;
    for (uint32_t i = 0; i < quote->item_count; i++) {
        uint32_t k = 0;
        if (quote->item[i].reason)
            return 0;
        while (k < count && strcmp (card[k].site, quote->item[i].site) != 0)
            k++;
        if (k == count)
            card[count++] =
                (struct ledger_card){quote->item[i].site, quote->item[i].rate_version, 0};
        card[k].price += quote->item[i].amount; /* within the total of all, which was added up */
    }
    *out = card;
    return count;
}

void decide_quote (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    struct ledger_quote *answer = arena_new (view->arena, struct ledger_quote);
    struct err err = {0};
    char text[QUANTITY_TEXT_MAX];
    const struct ledger_card *card = NULL;
    for (uint32_t i = 0; i < req->quote.ask->item_count; i++)
        if (req->quote.ask->item[i].ask.quote_id) {
            outcome_refuse (
                view, out, ERR_INVALID, false,
                "quote: the rates of a quote are kept until its end, not by another one");
            return;
        }
    *answer = *req->quote.ask;
    answer->item = arena_array (view->arena, answer->item_count, sizeof (*answer->item));
    memcpy (answer->item, req->quote.ask->item, answer->item_count * sizeof (*answer->item));
    if (ledger_quote (view, answer, &err) < 0) {
        outcome_refuse (view, out, err.code, err.code == ERR_LIMIT, "%s", err.text);
        return;
    }
    uint32_t cards = cards_of (view, answer, &card);
    for (uint32_t i = 0; i < answer->item_count && !cards; i++)
        if (answer->item[i].reason) {
            outcome_refuse (view, out, ERR_CONFLICT, true, "quote: %s", answer->item[i].reason);
            return;
        }
    struct ledger_pin *pin = ledger_add_pin (view, view->next.quote++);
    pin->op_id = view->next.op;
    pin->identity = req->on_behalf;
    pin->expires = view->now + req->quote.keep;
    pin->reusable = req->quote.reusable;
    pin->account = answer->account;
    const struct ledger_account *account = ledger_account_by_name (view, answer->account);
    if (account) {
        pin->project_id = account->project_id;
        pin->ancestor = account->ancestor;
        pin->ancestor_count = account->ancestor_count;
    }
    pin->card = card;
    pin->card_count = cards;
    pin->is_new = true;
    out->quote.answer = answer;
    out->quote.id = arena_printf (view->arena, "quote.%lld", (long long)pin->id);
    out->quote.expires = pin->expires;
    out->site = cards == 1 ? card[0].site : "";
    out->note = arena_printf (view->arena, "%s keeps the rates of %u sites for %s, for %s",
                              out->quote.id, cards, duration_format (req->quote.keep, text),
                              pin->reusable ? "any job" : "one job");
}

void decide_quote_cancel (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    struct ledger_pin *pin = ledger_pin_by_id (view, req->quote_cancel.id);
    const char *id = arena_printf (view->arena, "quote.%lld", (long long)req->quote_cancel.id);
    out->note = arena_printf (view->arena, "%s is cancelled", id);
    if (!pin)
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no %s that keeps rates", id);
    else if (pin->cancelled)
        outcome_refuse (view, out, ERR_EXISTS, true, "%s is cancelled already", id);
    else if (!pin->reusable && pin->job)
        outcome_refuse (view, out, ERR_CONFLICT, true, "%s cannot be cancelled: %s has used it", id,
                        pin->job_name);
    else if (pin->expires <= view->now)
        outcome_refuse (view, out, ERR_CONFLICT, true, "%s has ended", id);
    if (out->code)
        return;
    pin->cancelled = view->now;
    pin->cancel_op_id = view->next.op;
    out->done.id = id;
}
