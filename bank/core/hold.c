/* Holds: strict, all or nothing (rules H1 to H6, F1 to F4); and quotes, which hold nothing. */
#include <assert.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

/* Not granted is an answer, not an error: it is recorded and given again for the same key. */
static void hold_refuse (struct ledger_outcome *out, const char *code, const char *text)
{
    out->hold.granted = false;
    out->hold.reason_code = code;
    out->hold.reason_text = text;
}

/* The moment at which the job is expected to start. */
static time_us start_of (const struct ledger_view *view, time_us start)
{
    return start > view->now ? start : view->now;
}

static struct price_use use_of (int64_t procs, duration_us walltime, const struct ledger_ask *ask)
{
    return (struct price_use){.procs = procs, .time = walltime, .pe_milli = ask->pe_milli};
}

static void hold_apply (struct ledger_view *view, const struct ledger_request *req,
                        const struct ledger_rate *rate, const struct price_terms *terms,
                        struct ledger_account *payer, credit_micro amount,
                        struct ledger_outcome *out)
{
    const struct ledger_site *site = ledger_site_of (view, req->hold.job.site);
    time_us start = start_of (view, req->hold.start);
    struct share *share;
    uint32_t count = funds_fill (view, payer, amount, start, &share);
    struct ledger_hold *hold = ledger_add_hold (view, view->next.hold++);

    hold->op_id = view->next.op;
    hold->job = req->hold.job;
    hold->asked_id = ledger_account_by_name (view, req->hold.account)->id;
    hold->account_id = payer->id;
    hold->identity = req->on_behalf;
    hold->procs = req->hold.procs;
    hold->walltime = req->hold.walltime;
    hold->start = start;
    hold->expires = start + req->hold.walltime + LEDGER_HOLD_GRACE_US;
    hold->rate_version = rate->version;
    hold->rate_ppm = rate->ppm;
    hold->extra_ppm = terms->extra_ppm;
    hold->qos_ppm = terms->qos_ppm;
    hold->class_ppm = terms->class_ppm;
    hold->group_ppm = terms->group_ppm;
    hold->pe_milli = req->hold.ask.pe_milli;
    hold->amount = amount;
    hold->open = true;
    hold->is_new = true;
    hold->leg = arena_array (view->arena, count, sizeof (*hold->leg));
    hold->leg_count = count;
    ledger_index_hold (view, hold);

    struct journal j = {.view = view, .effective_at = view->now};
    for (uint32_t i = 0; i < count; i++) {
        struct ledger_alloc *alloc = share[i].alloc;
        hold->leg[i] = (struct ledger_leg){.allocation_id = alloc->id, .amount = share[i].amount};
        alloc->held += share[i].amount;
        alloc_touch (view, alloc);
        journal_move (&j, 'H', site->earned_account_id, site->earned_alloc_id, payer->id, alloc->id,
                      share[i].amount);
    }
    journal_close (&j);

    char formula[PRICE_FORMULA_MAX];
    struct price_use use = use_of (hold->procs, hold->walltime, &req->hold.ask);
    out->note =
        arena_strdup (view->arena, price_formula (terms, &use, PRICE_HOLD, amount, formula));
    out->hold.granted = true;
    out->hold.hold_id = arena_printf (view->arena, "hold.%lld", (long long)hold->id);
    out->hold.amount = amount;
    out->hold.account = payer->name;
    out->hold.fallback = payer->id != hold->asked_id;
    out->hold.expires = hold->expires;
}

/* What forbids a hold whatever the funds are. Returns true when refused. */
static bool hold_forbidden (struct ledger_view *view, const struct ledger_request *req,
                            credit_micro amount, struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    const struct ledger_hold *open = ledger_hold_open_of (view, &req->hold.job);
    if (open) {
        hold_refuse (out, "HoldExists",
                     arena_printf (view->arena, "hold.%lld is open for this job incarnation",
                                   (long long)open->id));
        return true;
    }
    if (req->hold.claimed && !ledger_site_of (view, req->hold.job.site)->claims) {
        hold_refuse (out, "NotSigned",
                     arena_printf (view->arena,
                                   "nobody signed the job, and site %s may not say itself whose it "
                                   "is: an operator allows that with nui site modify",
                                   req->hold.job.site));
        return true;
    }
    const struct ledger_usage *usage = ledger_usage_of (view, &req->hold.job);
    if (usage && usage->final) {
        hold_refuse (out, "JobClosed", "this job incarnation has its final charge");
        return true;
    }
    if (req->hold.expires && req->hold.expires <= view->now) {
        hold_refuse (out, "JobExpired",
                     arena_printf (view->arena, "the signed job expired %s ago",
                                   duration_format (view->now - req->hold.expires, a)));
        return true;
    }
    if (req->hold.cost_max && amount > req->hold.cost_max) {
        hold_refuse (out, "CostExceeded",
                     arena_printf (view->arena, "costs %s credits, the job allows at most %s",
                                   credit_format (amount, a),
                                   credit_format (req->hold.cost_max, b)));
        return true;
    }
    return false;
}

void decide_hold (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    time_us start = start_of (view, req->hold.start);
    credit_micro amount;
    struct err err = {0};

    out->site = req->hold.job.site;
    out->job = req->hold.job.grid_job[0] ? req->hold.job.grid_job : req->hold.job.site_job;
    if (req->hold.start < 0 || start - view->now > PRICE_TIME_US_MAX || req->hold.walltime <= 0) {
        outcome_refuse (view, out, ERR_INVALID, false,
                        "hold: a walltime of %lld s from a start %lld s ahead is out of bounds",
                        (long long)(req->hold.walltime / US_PER_S),
                        (long long)((start - view->now) / US_PER_S));
        return;
    }
    /* The rate in force now is pinned, so that the price is known before the job waits (H1). */
    const struct ledger_rate *rate = ledger_rate_at (view, req->hold.job.site, view->now);
    struct price_use use = use_of (req->hold.procs, req->hold.walltime, &req->hold.ask);
    struct price_terms terms = price_terms_plain (0);
    const char *why = NULL;
    if (rate)
        rate_terms (view, rate, &req->hold.ask, &terms, &why);
    if (price_compute (&terms, &use, PRICE_HOLD, &amount, &err) < 0) {
        outcome_refuse (view, out, err.code, false, "hold: %s", err.text);
        return;
    }
    if (!rate) {
        hold_refuse (out, "NoRate",
                     arena_printf (view->arena,
                                   "site %s has no rate in force: an operator sets "
                                   "one with nui rate set",
                                   req->hold.job.site));
        return;
    }
    if (why) {
        hold_refuse (out, "NoRate", why);
        return;
    }
    if (hold_forbidden (view, req, amount, out))
        return;

    struct ledger_candidate *candidate =
        arena_array (view->arena, LEDGER_CANDIDATES_MAX, sizeof (*candidate));
    uint32_t count;
    struct ledger_account *payer =
        funds_choose (view, req->hold.account, req->on_behalf, amount, start, candidate, &count);
    out->hold.candidate = candidate;
    out->hold.candidate_count = count;
    if (!payer) {
        hold_refuse (out, count == 1 ? candidate[0].code : "InsufficientFunds",
                     funds_refusal_text (view, amount, candidate, count));
        return;
    }
    hold_apply (view, req, rate, &terms, payer, amount, out);
}

/* ---- quotes ---- */

static int quote_price (struct ledger_view *view, struct ledger_quote_item *item, struct err *err)
{
    const struct ledger_rate *rate = ledger_rate_at (view, item->site, view->now);
    char formula[PRICE_FORMULA_MAX];
    if (item->walltime <= 0)
        return err_set (err, ERR_INVALID, "quote: a walltime of %lld s cannot be priced",
                        (long long)(item->walltime / US_PER_S));
    struct price_use use = use_of (item->procs, item->walltime, &item->ask);
    struct price_terms terms = price_terms_plain (0);
    item->formula = "";
    item->reason = NULL;
    if (rate)
        rate_terms (view, rate, &item->ask, &terms, &item->reason);
    if (price_compute (&terms, &use, PRICE_HOLD, &item->amount, err) < 0)
        return err_prefix (err, "quote");
    if (!rate)
        item->reason = arena_printf (view->arena,
                                     "site %s has no rate in force: an operator sets "
                                     "one with nui rate set",
                                     item->site);
    else if (!item->reason)
        item->formula = arena_strdup (
            view->arena, price_formula (&terms, &use, PRICE_HOLD, item->amount, formula));
    return 0;
}

/* Remembers refusals, one per account and each text once. */
static void quote_note (struct ledger_quote *quote, const struct ledger_candidate *candidate,
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

int ledger_quote (struct ledger_view *view, struct ledger_quote *quote, struct err *err)
{
    struct ledger_candidate *met = arena_array (view->arena, LEDGER_CANDIDATES_MAX, sizeof (*met));
    uint32_t count;
    bool priced = true;
    time_us latest = view->now;

    quote->candidate = arena_array (view->arena, LEDGER_CANDIDATES_MAX, sizeof (*quote->candidate));
    quote->candidate_count = 0;
    quote->total = 0;
    quote->funded = false;
    quote->paying = "";
    for (uint32_t i = 0; i < quote->item_count; i++) {
        struct ledger_quote_item *item = &quote->item[i];
        item->account = "";
        item->funded = false;
        if (quote_price (view, item, err) < 0)
            return err->code;
        if (item->reason) {
            priced = false;
            continue;
        }
        if (credit_add (quote->total, item->amount, &quote->total, err) < 0)
            return err->code;
        time_us start = start_of (view, item->start);
        latest = start > latest ? start : latest;
        struct ledger_account *payer =
            funds_choose (view, quote->account, quote->identity, item->amount, start, met, &count);
        item->funded = payer != NULL;
        item->account = payer ? payer->name : "";
        if (!payer)
            quote_note (quote, met, count);
    }
    if (quote->all_of && priced) {
        struct ledger_account *payer =
            funds_choose (view, quote->account, quote->identity, quote->total, latest, met, &count);
        quote->funded = payer != NULL;
        quote->paying = payer ? payer->name : "";
        if (!payer)
            quote_note (quote, met, count);
    }
    return 0;
}
