/* Charges record what was really used and are never refused for lack of funds (rules C1 to C5), nor for what they claim
 * beyond what the user signed: that part is nobody's until a person has looked (bank:suspense, and a row of
 * reconciliation). Releases give back what a hold still keeps. */
#include <string.h>

#include "bank/core/posting.h"

/* The hold that the charge belongs to, if any. Returns false when refused. */
static bool charge_hold (struct ledger_view *view, const struct ledger_request *req,
                         struct ledger_hold **hold_out, struct ledger_outcome *out)
{
    const char *id = req->charge.hold_id;
    *hold_out = NULL;
    if (!id[0]) {
        /* A hold that the site no longer knows of still pays. */
        *hold_out = ledger_hold_open_of (view, &req->charge.job);
        return true;
    }
    struct ledger_hold *hold = hold_named (view, id);
    if (!hold || strcmp (hold->job.site, req->charge.job.site) != 0) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "charge: site %s has no hold %s",
                        req->charge.job.site, id);
        return false;
    }
    if (!same_job (&hold->job, &req->charge.job)) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "charge: %s was placed for job %s component '%s' incarnation %lld, not for "
                        "%s '%s' %lld",
                        id, hold->job.site_job, hold->job.component,
                        (long long)hold->job.incarnation, req->charge.job.site_job,
                        req->charge.job.component, (long long)req->charge.job.incarnation);
        return false;
    }
    *hold_out = hold;
    return true;
}

/* Who pays an unheld charge: the account the job names or the first fallback that can, if the
 * signer may use it; NULL (suspense) when nobody can be named. At the QoS that the job ran with. */
static struct ledger_account *unheld_account (struct ledger_view *view,
                                              const struct ledger_request *req,
                                              const struct funding *funding, credit_micro amount)
{
    struct ledger_account *asked = ledger_account_by_name (view, req->charge.account);
    struct candidate list[LEDGER_CANDIDATES_MAX];
    struct ledger_candidate why;
    if (req->charge.claimed && !ledger_site_of (view, req->charge.job.site)->claims)
        return NULL;
    if (!asked || !funds_may_use (view, asked, req->on_behalf))
        return NULL;
    if (freeze_of (view, asked, req->on_behalf)) /* no other one helps it out */
        return asked;
    uint32_t count = funds_candidates (view, asked, req->charge.job.site, list);
    for (uint32_t i = 0; i < count; i++)
        if (funds_check (view, list[i].account, funding, amount, i > 0, &why))
            return list[i].account;
    return asked;
}

/* The signed job's first charge without a hold: it counts among what the job has had. */
static void unheld_keep (struct ledger_view *view, const struct ledger_request *req,
                         const struct posting *p, const struct ledger_usage *usage)
{
    const struct ledger_signature *s = req->charge.signature;
    if (!p->hold && p->account && s)
        signed_keep (view, &s->ask, req->on_behalf, -usage->id);
}

static bool charge_valid (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    if (req->charge.start <= 0 || req->charge.end < req->charge.start ||
        req->charge.end - view->now > 86400 * US_PER_S) {
        outcome_refuse (view, out, ERR_INVALID, true,
                        "charge: from %lld to %lld (s since 1970) is reversed or in the future",
                        (long long)(req->charge.start / US_PER_S),
                        (long long)(req->charge.end / US_PER_S));
        return false;
    }
    return true;
}

/* The usage row of the incarnation, made when this is its first charge. */
static struct ledger_usage *charge_usage (struct ledger_view *view,
                                          const struct ledger_request *req, const struct posting *p)
{
    struct ledger_usage *usage = ledger_usage_of (view, &req->charge.job);
    if (usage)
        return usage;
    usage = ledger_add_usage (view, view->next.usage++, &req->charge.job);
    usage->is_new = true;
    usage->hold_id = p->hold ? p->hold->id : 0;
    usage->account_id = p->account ? p->account->id : LEDGER_ID_SUSPENSE;
    usage->identity = p->hold ? p->hold->identity : req->on_behalf;
    usage->qos = p->funding.qos ? p->funding.qos : "";
    usage->machine = p->funding.machine ? p->funding.machine : "";
    usage->start = req->charge.start;
    unheld_keep (view, req, p, usage);
    return usage;
}

/* What a charge is priced at. */
struct tariff {
    uint32_t version; /* 0: no card was known */
    struct price_terms terms;
    struct price_use use;
    bool free;              /* the card charges successful jobs only, and this is none (yet) */
    const char *why;        /* the card has nothing for it: suspense */
    struct ledger_pin *pin; /* whose rates it has; NULL: no quote's */
    const char *no_pin;     /* why the quote that the job names does not count */
    struct price_use own;   /* of the use: what the user signed for */
    const char *beyond;     /* why it is less; "": it is not */
    bool unsigned_for;      /* it is nothing: nobody has signed for the job here */
    credit_micro total, own_total; /* so far */
};

/* The card of the quote that the job names, if it may have it: a charge is never refused. Else the one
 * in force at the job's start. */
static const struct ledger_rate *unheld_card (struct ledger_view *view,
                                              const struct ledger_request *req, struct tariff *t)
{
    const struct ledger_ask *ask = &req->charge.ask;
    const struct ledger_rate *card = NULL;
    const char *code;
    if (ask->quote_id)
        t->pin = pin_for (view, ask, req->on_behalf, req->charge.start, &code, &t->no_pin);
    if (t->pin && !(card = pin_card (view, t->pin, req->charge.job.site))) {
        t->no_pin = arena_printf (view->arena, "quote.%lld keeps no rates of this site",
                                  (long long)t->pin->id);
        t->pin = NULL;
    }
    return card ? card : ledger_rate_at (view, req->charge.job.site, req->charge.start);
}

/* P3: the nodes that it really had, at the card that its hold pinned; types that it has nothing for: as
 * they were held. */
static void charge_nodes (struct ledger_view *view, const struct ledger_request *req,
                          const struct ledger_rate *card, struct price_terms *terms)
{
    const struct ledger_ask *ask = &req->charge.ask;
    struct price_terms had = *terms;
    const char *why;
    if (card && ask->nodes_count &&
        rate_nodes (view, card, ask->nodes, ask->nodes_count, PRICE_CHARGE, &had, &why))
        *terms = had;
}

/* C1: the rates pinned by the hold, or by a quote, else those in force at the job's start, else 1 into suspense.
 */
static struct tariff charge_tariff (struct ledger_view *view, const struct ledger_request *req,
                                    const struct ledger_hold *hold)
{
    struct tariff t = {.use = {.procs = req->charge.procs,
                               .time = req->charge.end - req->charge.start,
                               .start = req->charge.start,
                               .cpu = req->charge.cpu,
                               .pe_milli = req->charge.ask.pe_milli}};
    const struct ledger_rate *card =
        hold ? rate_version (view, req->charge.job.site, hold->rate_version)
             : unheld_card (view, req, &t);
    t.terms = price_terms_plain (PRICE_ONE);
    t.version = hold ? hold->rate_version : card ? card->version : 0;
    if (card && !hold)
        rate_terms (view, card, &req->charge.ask, PRICE_CHARGE, &t.terms, &t.why);
    if (card)
        t.free = (card->successful_only && !(req->charge.final && req->charge.successful)) ||
                 (card->measure == PRICE_CPU && !req->charge.final && req->charge.cpu == 0);
    if (hold) {
        t.terms = hold_terms (view, hold, PRICE_CHARGE);
        t.use.pe_milli = t.use.pe_milli ? t.use.pe_milli : hold->pe_milli;
        charge_nodes (view, req, card, &t.terms);
    }
    return t;
}

/* R4: how much of all that its job was charged is given back, where that is the policy for the site. */
static credit_micro refund_due (const struct ledger_view *view, const struct ledger_request *req,
                                credit_micro total)
{
    const struct ledger_refunds *policy = &ledger_site_of (view, req->charge.job.site)->refunds;
    duration_us ran = req->charge.end - req->charge.start;
    bool late = policy->window && view->now - req->charge.end > policy->window;
    if (!req->charge.final || !req->charge.site_failed || !policy->on || late)
        return 0;
    if (policy->cap && ran > policy->cap)
        total = (credit_micro)((__int128)total * policy->cap / ran);
    return total >= policy->minimum ? total : 0;
}

/* At most what the signed job may cost with all else that it was paid for. What its hold keeps is within that. */
static void within_cost (struct ledger_view *view, const struct ledger_request *req,
                         const struct ledger_hold *hold, struct tariff *t)
{
    const struct ledger_signature *s = req->charge.signature;
    credit_micro most = hold ? hold->cost_max : s ? s->ask.cost_max : 0;
    if (!most || (hold && t->own_total <= hold->amount))
        return;
    credit_micro beside = signed_spent (view, hold ? hold->identity : req->on_behalf,
                                        hold ? &hold->uuid : &s->ask.uuid, &req->charge.job);
    most = beside < most ? most - beside : 0;
    if (hold && most < hold->amount)
        most = hold->amount;
    if (t->own_total <= most)
        return;
    t->own_total = most;
    t->beyond = arena_printf (view->arena, "%s%smore than the job may cost", t->beyond,
                              t->beyond[0] ? ", " : "");
}

/* What the charge claims, and what of it the user has signed for. ERR_* for figures that nobody can mean. */
static int charge_totals (struct ledger_view *view, const struct ledger_request *req,
                          const struct ledger_hold *hold, struct tariff *t, struct err *err)
{
    t->own = t->use;
    t->beyond = "";
    if (price_compute (&t->terms, &t->use, PRICE_CHARGE, &t->total, err) < 0)
        return err->code;
    t->total = t->free ? 0 : t->total;
    t->own_total = t->total;
    const char *none = !hold && req->charge.signature ? signed_not_charged (view, req) : NULL;
    if (none) {
        t->own_total = 0;
        t->beyond = none;
        t->unsigned_for = true;
        return 0;
    }
    t->beyond = bounds_cut (view, req, hold, &t->own);
    if (t->beyond[0] && !t->free &&
        price_compute (&t->terms, &t->own, PRICE_CHARGE, &t->own_total, err) < 0)
        return err->code;
    t->own_total = t->own_total < t->total ? t->own_total : t->total;
    within_cost (view, req, hold, t);
    return 0;
}

static int64_t work_of (const struct price_use *use)
{
    __int128 work = (__int128)use->procs * use->time;
    return work > INT64_MAX ? INT64_MAX : (int64_t)work;
}

/* A row for a person: what the site claims against what was signed. */
static void dispute_open (struct posting *p, const struct ledger_request *req,
                          const struct tariff *tariff, const struct ledger_usage *usage,
                          credit_micro amount)
{
    struct ledger_view *view = p->view;
    struct ledger_finding f = {
        .kind = "DISPUTED",
        .site_job = req->charge.job.site_job,
        .component = req->charge.job.component,
        .hold = p->hold ? arena_printf (view->arena, "hold.%lld", (long long)p->hold->id) : "",
        .identity = usage->identity,
        .account = p->account ? p->account->name : "bank:suspense",
        .text = tariff->beyond,
        .incarnation = req->charge.job.incarnation,
        .charge_op = view->next.op,
        .amount = amount,
        .site_ps = work_of (&tariff->use),
        .bank_ps = tariff->unsigned_for ? 0 : work_of (&tariff->own),
        .since = req->charge.end};
    recon_open (view, p->site->name, &f);
}

/* ", of which 3 credits are disputed: ran 02:00:00, 01:00:00 are allowed" for what people read; "" where nothing is. */
static const char *dispute_note (struct ledger_view *view, const struct tariff *tariff,
                                 credit_micro amount)
{
    char a[QUANTITY_TEXT_MAX];
    return amount == 0
               ? ""
               : arena_printf (view->arena,
                               ", of which %s credits are disputed, beyond what was signed: %s",
                               credit_format (amount, a), tariff->beyond);
}

static void charge_apply (struct posting *p, const struct ledger_request *req,
                          const struct tariff *tariff, struct ledger_outcome *out)
{
    struct ledger_view *view = p->view;
    struct ledger_usage *usage = charge_usage (view, req, p);
    credit_micro before = usage->total, paid = before - usage->disputed;
    credit_micro amount = tariff->total > before ? tariff->total - before : 0;
    credit_micro unpaid = tariff->own_total > paid ? tariff->own_total - paid : 0,
                 own = unpaid < amount ? unpaid : amount;
    char formula[PRICE_FORMULA_MAX];

    posting_pay (p, own);
    posting_dispute (p, amount - own);
    if (amount > own)
        dispute_open (p, req, tariff, usage, amount - own);
    usage->disputed += amount - own;
    if (req->charge.final)
        posting_close_hold (p);
    if (p->account && p->account->closed)
        posting_leave (p);
    journal_close (&p->journal);

    usage->procs = req->charge.procs;
    usage->end = req->charge.end > usage->end ? req->charge.end : usage->end;
    usage->total = before + amount;
    usage->final = req->charge.final;
    usage->dirty = true;

    struct ledger_charge *charge = arena_new (view->arena, struct ledger_charge);
    *charge = (struct ledger_charge){.id = view->next.charge++,
                                     .op_id = view->next.op,
                                     .usage_id = usage->id,
                                     .hold_id = p->hold ? p->hold->id : 0,
                                     .sequence = req->charge.sequence,
                                     .procs = req->charge.procs,
                                     .start = req->charge.start,
                                     .end = req->charge.end,
                                     .cpu = req->charge.cpu,
                                     .ran = req->charge.ran,
                                     .final = req->charge.final,
                                     .refund_due = refund_due (view, req, usage->total),
                                     .successful = req->charge.successful,
                                     .rate_version = tariff->version,
                                     .rate_ppm = tariff->terms.base_ppm,
                                     .amount = amount,
                                     .total = usage->total,
                                     .released = p->released};
    price_formula (&tariff->terms, &tariff->use, PRICE_CHARGE, tariff->total, formula);
    if (tariff->pin)
        pin_use (view, tariff->pin, req->charge.ask.quote_job, out->job);
    charge->formula = arena_printf (
        view->arena, "%s%s%s%s%s%s%s%s%s%s",
        !tariff->free       ? formula
        : req->charge.final ? "free of charge, not successful"
                            : "free of charge so far",
        before ? ", less what was charged before" : "", p->hold ? "" : ", unheld",
        tariff->version ? "" : ", no rate known: at 1", tariff->why ? ": " : "",
        tariff->why ? tariff->why : "", pin_note (view, tariff->pin), tariff->no_pin ? ", " : "",
        tariff->no_pin ? tariff->no_pin : "", dispute_note (view, tariff, amount - own));
    charge->leg = arena_array (view->arena, p->legs.count, sizeof (*charge->leg));
    charge->leg_count = p->legs.count;
    for (uint32_t i = 0; i < p->legs.count; i++)
        charge->leg[i] = *(struct ledger_charge_leg *)p->legs.item[i];
    vec_push (view, &view->charges, charge);

    out->note = charge->formula;
    out->charge.charged = amount;
    out->charge.total = usage->total;
    out->charge.released = p->released;
    out->charge.disputed = amount - own;
    out->charge.account = p->account ? p->account->name : "bank:suspense";
}

static void charge_decided (struct ledger_view *view, const struct ledger_request *req,
                            struct ledger_outcome *out)
{
    struct posting p = {.view = view};
    struct err err = {0};

    p.journal = (struct journal){.view = view, .effective_at = req->charge.end};
    p.site = ledger_site_of (view, req->charge.job.site);
    out->site = req->charge.job.site;
    out->job = req->charge.job.grid_job[0] ? req->charge.job.grid_job : req->charge.job.site_job;
    out->effective_at = req->charge.end;
    if (!charge_valid (view, req, out) || !charge_hold (view, req, &p.hold, out))
        return;
    struct tariff tariff = charge_tariff (view, req, p.hold);
    if (charge_totals (view, req, p.hold, &tariff, &err) < 0) {
        outcome_refuse (view, out, err.code, true, "charge: %s", err.text);
        return;
    }
    const struct ledger_usage *usage = ledger_usage_of (view, &req->charge.job);
    if (usage && usage->final) {
        if (req->charge.final) {
            outcome_refuse (view, out, ERR_CONFLICT, true,
                            "charge: job %s incarnation %lld has its final charge already",
                            req->charge.job.site_job, (long long)req->charge.job.incarnation);
            return;
        }
        /* A partial charge that was overtaken by the final one: nothing is left to post (C4). */
        struct ledger_account *paid = ledger_account_by_id (view, usage->account_id);
        out->charge.total = usage->total;
        out->charge.account = paid ? paid->name : "bank:suspense";
        return;
    }
    p.funding = (struct funding){.identity = p.hold  ? p.hold->identity
                                             : usage ? usage->identity
                                                     : req->on_behalf,
                                 .site = req->charge.job.site,
                                 .machine = p.hold ? p.hold->machine : req->charge.ask.machine,
                                 .qos = p.hold ? p.hold->qos : req->charge.ask.qos,
                                 .at = req->charge.end};
    if (p.hold)
        p.account = ledger_account_by_id (view, p.hold->account_id);
    else if (usage)
        p.account = usage->account_id == LEDGER_ID_SUSPENSE
                        ? NULL
                        : ledger_account_by_id (view, usage->account_id);
    else if (tariff.version && !tariff.why && !tariff.unsigned_for)
        p.account = unheld_account (view, req, &p.funding, tariff.own_total);
    charge_apply (&p, req, &tariff, out);
}

void decide_charge (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    charge_decided (view, req, out);
    uint64_t acked = site_arrived (view, req->charge.job.site, req->charge.sequence, out);
    if (!out->code)
        out->charge.acked = acked;
}

/* ---- release ---- */

static void release_decided (struct ledger_view *view, const struct ledger_request *req,
                             struct ledger_outcome *out)
{
    struct posting p = {.view = view};
    p.journal = (struct journal){.view = view, .effective_at = view->now};
    p.hold = hold_named (view, req->release.hold_id);
    out->site = req->release.site ? req->release.site : "";
    out->note = req->release.reason;
    if (!p.hold || (req->release.site && strcmp (p.hold->job.site, req->release.site) != 0)) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "release: %s%s has no hold %s",
                        req->release.site ? "site " : "the bank", out->site, req->release.hold_id);
        return;
    }
    /* The names of a bank that was restored come again: whoever says which job's hold it is meant that one. */
    if (req->release.site_job && req->release.site_job[0] &&
        strcmp (p.hold->job.site_job, req->release.site_job) != 0) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true,
                        "release: site %s has no hold %s for job %s", p.hold->job.site,
                        req->release.hold_id, req->release.site_job);
        return;
    }
    out->site = p.hold->job.site;
    p.site = ledger_site_of (view, out->site);
    out->job = p.hold->job.grid_job[0] ? p.hold->job.grid_job : p.hold->job.site_job;
    posting_close_hold (&p);
    journal_close (&p.journal);
    out->release.released = p.released;
}

void decide_release (struct ledger_view *view, const struct ledger_request *req,
                     struct ledger_outcome *out)
{
    release_decided (view, req, out);
    if (!req->release.site)
        return; /* an operator's, or the bank's own: not from a site's outbox */
    uint64_t acked = site_arrived (view, req->release.site, req->release.sequence, out);
    if (!out->code)
        out->release.acked = acked;
}
