/* Quotes that keep their rates: jobs that name one are held at the cards of its moment, whatever was published since
 * (rule H1). For the first job that uses it, or for all of its user's. */
#include <string.h>

#include "bank/core/ledger_impl.h"

struct ledger_pin *ledger_add_pin (struct ledger_view *view, int64_t id)
{
    struct ledger_pin *pin = ledger_pin_by_id (view, id);
    if (pin)
        return pin;
    pin = arena_new (view->arena, struct ledger_pin);
    pin->id = id;
    vec_push (view, &view->pins, pin);
    return pin;
}

struct ledger_pin *ledger_pin_by_id (const struct ledger_view *view, int64_t id)
{
    for (uint32_t i = 0; i < view->pins.count; i++) {
        struct ledger_pin *pin = view->pins.item[i];
        if (pin->id == id)
            return pin;
    }
    return NULL;
}

struct ledger_pin *pin_for (const struct ledger_view *view, const struct ledger_ask *ask,
                            const char *identity, time_us at, const char **code_out,
                            const char **why_out)
{
    char ago[QUANTITY_TEXT_MAX];
    struct ledger_pin *pin = ledger_pin_by_id (view, ask->quote_id);
    const char *id = arena_printf (view->arena, "quote.%lld", (long long)ask->quote_id);
    if (!pin) {
        *code_out = "NoQuote";
        *why_out = ask->quote_id > 0
                       ? arena_printf (view->arena, "there is no %s that keeps rates", id)
                       : "what the job names as its quote is none: quotes are named as quote.7 is";
    } else if (strcmp (pin->identity, identity) != 0) {
        *code_out = "QuoteForeign";
        *why_out = arena_printf (view->arena, "%s was not made for %s", id, identity);
    } else if (pin->cancelled && pin->cancelled <= at) {
        *code_out = "QuoteCancelled";
        *why_out = arena_printf (view->arena, "%s was cancelled: ask for another one", id);
    } else if (pin->expires <= at) {
        *code_out = "QuoteExpired";
        *why_out = arena_printf (view->arena, "%s ended %s before: ask for another one", id,
                                 duration_format (at - pin->expires, ago));
    } else if (!pin->reusable && pin->job && strcmp (pin->job, ask->quote_job) != 0) {
        *code_out = "QuoteUsed";
        *why_out =
            arena_printf (view->arena, "%s is for one job, and %s has used it", id, pin->job_name);
    } else {
        return pin;
    }
    return NULL;
}

const struct ledger_rate *pin_card (const struct ledger_view *view, const struct ledger_pin *pin,
                                    const char *site)
{
    for (uint32_t i = 0; i < pin->card_count; i++)
        if (strcmp (pin->card[i].site, site) == 0)
            return rate_version (view, site, pin->card[i].version);
    return NULL;
}

void pin_use (struct ledger_view *view, struct ledger_pin *pin, const char *job,
              const char *job_name)
{
    uint32_t n = view->pin_uses.count;
    const struct ledger_pin_use *last = n ? view->pin_uses.item[n - 1] : NULL;
    if (last && last->op_id == view->next.op && last->quote_id == pin->id)
        return;
    struct ledger_pin_use *use = arena_new (view->arena, struct ledger_pin_use);
    *use = (struct ledger_pin_use){.op_id = view->next.op, .quote_id = pin->id, .job = job};
    vec_push (view, &view->pin_uses, use);
    if (!pin->job) {
        pin->job = job;
        pin->job_name = job_name;
    }
}

const char *pin_note (const struct ledger_view *view, const struct ledger_pin *pin)
{
    return pin ? arena_printf (view->arena, ", at the rates of quote.%lld", (long long)pin->id)
               : "";
}
