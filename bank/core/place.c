/* Jobs on accounts: priced, then counted as held on the first account that can pay for all of them
 * (rules H1 to H3, H7, F1 to F4). Holds keep what was placed; quotes undo it. */
#include <string.h>

#include "bank/core/ledger_impl.h"

static void reprice (struct ledger_view *view, struct placing *p, const char *qos,
                     const char **why_out)
{
    struct ledger_ask ask = p->ask->ask;
    struct err err = {0};
    if (qos[0])
        ask.qos = qos;
    rate_terms (view, p->rate, &ask, PRICE_HOLD, &p->terms, why_out);
    if (!*why_out && price_compute (&p->terms, &p->use, PRICE_HOLD, &p->amount, &err) < 0)
        *why_out = arena_strdup (view->arena, err.text);
    p->qos = qos;
    p->funding.qos = ask.qos;
}

/* The rate in force now is pinned, so that the price is known before the job waits, or a quote has
 * pinned one before (H1). */
static void place_rate (struct ledger_view *view, struct placing *p, const char **why_out)
{
    const struct ledger_hold_ask *ask = p->ask;
    if (!ask->ask.quote_id) {
        p->rate = ledger_rate_at (view, ask->job.site, view->now);
        return;
    }
    p->pin = pin_for (view, &ask->ask, p->funding.identity, view->now, &p->code, why_out);
    p->rate = p->pin ? pin_card (view, p->pin, ask->job.site) : NULL;
    if (p->pin && !p->rate) {
        p->code = "QuoteSite";
        *why_out = arena_printf (view->arena, "quote.%lld keeps no rates of site %s",
                                 (long long)p->pin->id, ask->job.site);
    }
}

int place_begin (struct ledger_view *view, const struct ledger_hold_ask *ask, const char *identity,
                 struct placing *p, const char **why_out, struct err *err)
{
    *p = (struct placing){
        .ask = ask,
        .use = {.procs = ask->procs, .time = ask->walltime, .pe_milli = ask->ask.pe_milli},
        .code = "NoRate",
        .qos = "",
        .funding = {.identity = identity,
                    .site = ask->job.site,
                    .machine = ask->ask.machine,
                    .qos = ask->ask.qos,
                    .at = ask->start > view->now ? ask->start : view->now}};
    *why_out = NULL;
    if (ask->is_signed) {
        int64_t pe =
            bounds_pe (ledger_site_of (view, ask->job.site), ask->procs, ask->ask.memory_mb);
        p->use.pe_milli = p->use.pe_milli < pe ? p->use.pe_milli : pe;
    }
    p->terms = price_terms_plain (0);
    place_rate (view, p, why_out);
    if (ask->start < 0 || p->funding.at - view->now > PRICE_TIME_US_MAX || ask->walltime <= 0)
        return err_set (err, ERR_INVALID,
                        "a walltime of %lld s from a start %lld s ahead is out of bounds",
                        (long long)(ask->walltime / US_PER_S),
                        (long long)((p->funding.at - view->now) / US_PER_S));
    if (p->rate)
        rate_terms (view, p->rate, &ask->ask, PRICE_HOLD, &p->terms, why_out);
    if (price_compute (&p->terms, &p->use, PRICE_HOLD, &p->amount, err) < 0)
        return err->code;
    p->own_amount = p->amount;
    if (!p->rate && !*why_out)
        *why_out = arena_printf (view->arena,
                                 "site %s has no rate in force: an operator sets "
                                 "one with nui rate set",
                                 ask->job.site);
    return 0;
}

void place_undo (struct placing *p, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < p[i].shares; k++)
            p[i].share[k].alloc->held -= p[i].share[k].amount;
        p[i].shares = 0;
    }
}

/* Whether an account is among those that a job may be paid by at its site; the QoS then. */
static bool listed (const struct ledger_view *view, struct ledger_account *asked,
                    const struct ledger_account *account, const char *site, const char **qos_out)
{
    struct candidate list[LEDGER_CANDIDATES_MAX];
    uint32_t count = funds_candidates (view, asked, site, list);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].account == account) {
            *qos_out = list[i].qos;
            return true;
        }
    return false;
}

static bool too_dear (struct ledger_view *view, credit_micro total, credit_micro most,
                      struct ledger_candidate *why)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    if (total <= most)
        return false;
    why->code = "CostExceeded";
    why->text = arena_printf (view->arena, "costs %s credits there, the job allows at most %s",
                              credit_format (total, a), credit_format (most, b));
    return true;
}

/* All on one account, or none with the reason in why. */
static bool place_on (struct ledger_view *view, struct ledger_account *asked,
                      struct ledger_account *account, struct placing *p, uint32_t count,
                      credit_micro most, struct ledger_candidate *why)
{
    credit_micro total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *qos = "", *unpriced = NULL;
        *why = (struct ledger_candidate){
            .account = account->name, .fallback = account != asked, .shortfall = p[i].own_amount};
        if (count > 1 && !listed (view, asked, account, p[i].ask->job.site, &qos)) {
            why->code = "NotFallback";
            why->text = arena_printf (view->arena, "no fallback of account %s at site %s",
                                      asked->name, p[i].ask->job.site);
        } else {
            if (count == 1)
                listed (view, asked, account, p[i].ask->job.site, &qos);
            reprice (view, &p[i], qos, &unpriced);
            if (unpriced) {
                why->code = "NoRate";
                why->text = unpriced;
            } else if (__builtin_add_overflow (total, p[i].amount, &total) ||
                       total > PRICE_AMOUNT_MAX) {
                why->code = "CostExceeded";
                why->text = "costs more than the ledger can count";
            } else if (!too_dear (view, total, most, why) &&
                       funds_check (view, account, &p[i].funding, p[i].amount, account != asked,
                                    why)) {
                p[i].shares = funds_fill (view, account, &p[i].funding, p[i].amount, &p[i].share);
                for (uint32_t k = 0; k < p[i].shares; k++)
                    p[i].share[k].alloc->held += p[i].share[k].amount;
                continue;
            }
        }
        place_undo (p, i);
        return false;
    }
    return true;
}

struct ledger_account *place_all (struct ledger_view *view, const char *account, struct placing *p,
                                  uint32_t count, credit_micro most,
                                  struct ledger_candidate *candidate, uint32_t *candidate_count)
{
    struct ledger_account *asked = ledger_account_by_name (view, account);
    struct candidate list[LEDGER_CANDIDATES_MAX];
    *candidate_count = 0;
    if (!asked) {
        candidate[(*candidate_count)++] = (struct ledger_candidate){
            .account = account,
            .code = "NoAccount",
            .text = account[0] ? "there is no such account" : "the job names no account",
            .shortfall = p[0].amount};
        return NULL;
    }
    /* What is frozen is not spent by another way. */
    const char *frozen = funds_may_use (view, asked, p[0].funding.identity)
                             ? freeze_of (view, asked, p[0].funding.identity)
                             : NULL;
    if (frozen) {
        candidate[(*candidate_count)++] = (struct ledger_candidate){
            .account = asked->name, .code = "Frozen", .text = frozen, .shortfall = p[0].own_amount};
        return NULL;
    }
    uint32_t listed_count = funds_candidates (view, asked, p[0].ask->job.site, list);
    for (uint32_t i = 0; i < listed_count; i++) {
        if (place_on (view, asked, list[i].account, p, count, most, &candidate[*candidate_count]))
            return list[i].account;
        (*candidate_count)++;
    }
    return NULL;
}
