/* Holds: strict, all or nothing, alone or in a group, and made longer (rules H1 to H7). */
#include <stdio.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

static const char *hold_id_text (struct ledger_view *view, const struct ledger_hold *hold)
{
    return arena_printf (view->arena, "hold.%lld", (long long)hold->id);
}

/* Legs that shares become; what they hold was counted when they were found. */
static void legs_add (struct ledger_view *view, struct journal *j, struct ledger_hold *hold,
                      const struct placing *p)
{
    const struct ledger_site *site = ledger_site_of (view, hold->job.site);
    struct ledger_leg *leg = arena_array (view->arena, hold->leg_count + p->shares, sizeof (*leg));
    if (hold->leg_count)
        memcpy (leg, hold->leg, hold->leg_count * sizeof (*leg));
    hold->leg = leg;
    for (uint32_t i = 0; i < p->shares; i++) {
        struct ledger_alloc *alloc = p->share[i].alloc;
        leg[hold->leg_count++] = (struct ledger_leg){
            .allocation_id = alloc->id, .amount = p->share[i].amount, .is_new = true};
        alloc_touch (view, alloc);
        journal_move (j, 'H', site->earned_account_id, site->earned_alloc_id, alloc->account_id,
                      alloc->id, p->share[i].amount);
    }
}

static void hold_apply (struct ledger_view *view, struct journal *j, const char *identity,
                        const char *account, const struct placing *p,
                        const struct ledger_account *payer, struct ledger_granted *out)
{
    const struct ledger_hold_ask *ask = p->ask;
    struct ledger_hold *hold = ledger_add_hold (view, view->next.hold++);
    hold->op_id = view->next.op;
    hold->job = ask->job;
    hold->asked_id = ledger_account_by_name (view, account)->id;
    hold->account_id = payer->id;
    hold->identity = identity;
    hold->procs = ask->procs;
    hold->walltime = ask->walltime;
    hold->start = p->funding.at;
    hold->expires = p->funding.at + ask->walltime + LEDGER_HOLD_GRACE_US;
    hold->rate_version = p->rate->version;
    hold->rate_ppm = p->rate->ppm;
    hold->extra_parts = p->terms.extra_parts;
    hold->qos_ppm = p->terms.qos_ppm;
    hold->class_ppm = p->terms.class_ppm;
    hold->group_ppm = p->terms.group_ppm;
    hold->pe_milli = p->use.pe_milli;
    hold->qos = p->funding.qos ? p->funding.qos : "";
    hold->machine = ask->ask.machine ? ask->ask.machine : "";
    hold->nodes = nodes_text (view, &ask->ask);
    hold->amount = p->amount;
    hold->open = true;
    hold->is_new = true;
    if (ask->is_signed) {
        hold->walltime_max = ask->bounds.walltime;
        hold->cost_max = ask->cost_max;
        hold->uuid = ask->uuid;
    }
    ledger_index_hold (view, hold);
    legs_add (view, j, hold, p);
    signed_keep (view, ask, identity, hold->id);
    *out = (struct ledger_granted){.hold_id = hold_id_text (view, hold),
                                   .account = payer->name,
                                   .qos = p->qos,
                                   .amount = p->amount,
                                   .expires = hold->expires,
                                   .fallback = payer->id != hold->asked_id};
}

/* What forbids the hold number `at` of a request whatever the funds are. Returns true when refused. */
static bool hold_forbidden (struct ledger_view *view, const struct ledger_hold_ask *all,
                            uint32_t at, const char *identity, struct ledger_outcome *out)
{
    const struct ledger_hold_ask *ask = &all[at];
    const struct ledger_hold *open = ledger_hold_open_of (view, &ask->job);
    if (open) {
        hold_refuse (out, "HoldExists",
                     arena_printf (view->arena, "hold.%lld is open for this job incarnation",
                                   (long long)open->id));
        return true;
    }
    if (ask->claimed && !ledger_site_of (view, ask->job.site)->claims) {
        hold_refuse (out, "NotSigned",
                     arena_printf (view->arena,
                                   "nobody signed the job, and site %s may not say itself whose it "
                                   "is: an operator allows that with nui site modify",
                                   ask->job.site));
        return true;
    }
    const struct ledger_usage *usage = ledger_usage_of (view, &ask->job);
    if (usage && usage->final) {
        hold_refuse (out, "JobClosed", "this job incarnation has its final charge");
        return true;
    }
    return bounds_refused (view, ask, out) ||
           signed_refused (view, all, at, identity, view->now, out);
}

/* What its holds and charges so far leave of what a signed job may cost. */
static credit_micro cost_left (const struct ledger_view *view, const struct ledger_hold_ask *ask,
                               const char *identity)
{
    if (!ask->cost_max)
        return PRICE_AMOUNT_MAX;
    credit_micro spent = ask->is_signed ? signed_spent (view, identity, &ask->uuid, NULL) : 0;
    return spent < ask->cost_max ? ask->cost_max - spent : 0;
}

static const char *beside_text (struct ledger_view *view, credit_micro beside)
{
    char a[QUANTITY_TEXT_MAX];
    return beside ? arena_printf (view->arena, ", %s of them for what it has had",
                                  credit_format (beside, a))
                  : "";
}

/* What the jobs of a request cost together is no more than their signed job allows. */
static bool too_dear (struct ledger_view *view, const struct placing *p, uint32_t count,
                      credit_micro most, struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    credit_micro cost_max = p[0].ask->cost_max;
    __int128 total = 0;
    for (uint32_t i = 0; i < count; i++)
        total += p[i].amount;
    if (!cost_max || total <= most)
        return false;
    total = total > INT64_MAX ? INT64_MAX : total;
    hold_refuse (out, "CostExceeded",
                 arena_printf (view->arena, "costs %s credits, the job allows at most %s%s",
                               credit_format ((credit_micro)total, a), credit_format (cost_max, b),
                               beside_text (view, cost_max - most)));
    return true;
}

/* Prices all and asks what forbids each; false when one is refused. */
static bool holds_begin (struct ledger_view *view, const struct ledger_request *req,
                         const struct ledger_hold_ask *ask, uint32_t count, struct placing *p,
                         credit_micro *most_out, struct ledger_outcome *out)
{
    struct err err = {0};
    const char *why;
    for (uint32_t i = 0; i < count; i++) {
        out->hold.refused = i;
        if (place_begin (view, &ask[i], req->on_behalf, &p[i], &why, &err) < 0) {
            /* What it costs depends on the card. */
            outcome_refuse (view, out, err.code, err.code == ERR_LIMIT, "hold: %s", err.text);
            return false;
        }
        for (uint32_t k = 0; k < i; k++)
            if (same_job (&ask[i].job, &ask[k].job)) {
                outcome_refuse (view, out, ERR_INVALID, false,
                                "hold: job %s of site %s is there twice", ask[i].job.site_job,
                                ask[i].job.site);
                return false;
            }
        if (why) {
            hold_refuse (out, p[i].code, why);
            return false;
        }
        if (hold_forbidden (view, ask, i, req->on_behalf, out))
            return false;
    }
    out->hold.refused = 0;
    *most_out = cost_left (view, ask, req->on_behalf);
    return !too_dear (view, p, count, *most_out, out);
}

static void holds_place (struct ledger_view *view, const struct ledger_request *req,
                         const struct ledger_hold_ask *ask, uint32_t count,
                         struct ledger_outcome *out)
{
    struct placing *p = arena_array (view->arena, count, sizeof (*p));
    struct ledger_candidate *candidate =
        arena_array (view->arena, LEDGER_CANDIDATES_MAX, sizeof (*candidate));
    char formula[PRICE_FORMULA_MAX];
    const char *note = "";
    credit_micro most;
    out->job = ask[0].job.grid_job[0] ? ask[0].job.grid_job : ask[0].job.site_job;
    if (!holds_begin (view, req, ask, count, p, &most, out))
        return;
    const struct ledger_account *payer =
        place_all (view, ask[0].account, p, count, most, candidate, &out->hold.candidate_count);
    out->hold.candidate = candidate;
    if (!payer) {
        credit_micro total = 0;
        for (uint32_t i = 0; i < count; i++)
            total += p[i].amount < PRICE_AMOUNT_MAX - total ? p[i].amount : 0;
        hold_refuse (out, out->hold.candidate_count == 1 ? candidate[0].code : "InsufficientFunds",
                     funds_refusal_text (view, total, candidate, out->hold.candidate_count));
        return;
    }
    struct journal j = {.view = view, .effective_at = view->now};
    out->hold.granted = true;
    out->hold.item = arena_array (view->arena, count, sizeof (*out->hold.item));
    out->hold.count = count;
    for (uint32_t i = 0; i < count; i++) {
        hold_apply (view, &j, req->on_behalf, ask[0].account, &p[i], payer, &out->hold.item[i]);
        if (p[i].pin)
            pin_use (view, p[i].pin, ask[i].ask.quote_job, out->job);
        note =
            arena_printf (view->arena, "%s%s%s%s%s%s", note, i ? "; " : "",
                          count > 1 ? ask[i].job.site : "", count > 1 ? ": " : "",
                          price_formula (&p[i].terms, &p[i].use, PRICE_HOLD, p[i].amount, formula),
                          pin_note (view, p[i].pin));
    }
    journal_close (&j);
    out->note = note;
}

void decide_hold (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    out->site = req->hold.job.site;
    holds_place (view, req, &req->hold, 1, out);
}

/* H7: every hold of a co-allocated job, on one account, or none. */
void decide_hold_group (struct ledger_view *view, const struct ledger_request *req,
                        struct ledger_outcome *out)
{
    if (req->group.count == 0 || req->group.count > LEDGER_GROUP_MAX) {
        outcome_refuse (view, out, ERR_LIMIT, false, "hold: a group has 1 to %d holds, not %u",
                        LEDGER_GROUP_MAX, req->group.count);
        return;
    }
    holds_place (view, req, req->group.item, req->group.count, out);
}

/* ---- longer ---- */

/* What the longer time costs beyond what is held; false when refused. */
static bool extension (struct ledger_view *view, const struct ledger_request *req,
                       const struct ledger_hold *hold, struct placing *p,
                       struct ledger_outcome *out)
{
    struct err err = {0};
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    credit_micro whole;
    if (req->extend.walltime <= hold->walltime) {
        outcome_refuse (view, out, ERR_INVALID, true,
                        "extend: %s is no longer than the %s that %s is for",
                        duration_format (req->extend.walltime, a),
                        duration_format (hold->walltime, b), req->extend.hold_id);
        return false;
    }
    p->terms = hold_terms (view, hold, PRICE_HOLD);
    p->use = (struct price_use){
        .procs = hold->procs, .time = req->extend.walltime, .pe_milli = hold->pe_milli};
    if (price_compute (&p->terms, &p->use, PRICE_HOLD, &whole, &err) < 0) {
        outcome_refuse (view, out, err.code, true, "extend: %s", err.text);
        return false;
    }
    p->amount = whole > hold->amount ? whole - hold->amount : 0;
    p->funding = (struct funding){.identity = hold->identity,
                                  .site = hold->job.site,
                                  .machine = hold->machine,
                                  .qos = hold->qos,
                                  .at = view->now > hold->start ? view->now : hold->start};
    return true;
}

/* What its user signed bounds how long a hold is made, and what it may cost with all else of its job. */
static bool extension_unsigned (struct ledger_view *view, const struct ledger_request *req,
                                const struct ledger_hold *hold, const struct placing *p,
                                struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    if (hold->walltime_max && req->extend.walltime > hold->walltime_max) {
        hold_refuse (out, "BeyondSigned",
                     arena_printf (view->arena, "%s asked, the user signed a walltime of %s",
                                   duration_format (req->extend.walltime, a),
                                   duration_format (hold->walltime_max, b)));
        return true;
    }
    if (!hold->cost_max)
        return false;
    credit_micro beside = signed_spent (view, hold->identity, &hold->uuid, &hold->job);
    __int128 total = (__int128)hold->amount + p->amount + beside;
    if (total <= hold->cost_max)
        return false;
    total = total > INT64_MAX ? INT64_MAX : total;
    hold_refuse (out, "CostExceeded",
                 arena_printf (view->arena, "costs %s credits, the job allows at most %s%s",
                               credit_format ((credit_micro)total, a),
                               credit_format (hold->cost_max, b), beside_text (view, beside)));
    return true;
}

/* H6: from the hold's own account, at the rates that it pinned; the whole extension or none. */
void decide_extend (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    struct ledger_hold *hold = hold_named (view, req->extend.hold_id);
    struct placing p = {.qos = ""};
    char formula[PRICE_FORMULA_MAX];
    if (!hold || (req->extend.site && strcmp (hold->job.site, req->extend.site) != 0)) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "extend: there is no hold %s",
                        req->extend.hold_id);
        return;
    }
    out->site = hold->job.site;
    out->job = hold->job.grid_job[0] ? hold->job.grid_job : hold->job.site_job;
    if (!hold->open || hold->leg_count >= LEDGER_LEGS_MAX) {
        outcome_refuse (view, out, ERR_CONFLICT, true, "extend: %s %s", req->extend.hold_id,
                        hold->open ? "was extended too often" : "is closed");
        return;
    }
    if (!extension (view, req, hold, &p, out) || extension_unsigned (view, req, hold, &p, out))
        return;
    const struct ledger_account *account = ledger_account_by_id (view, hold->account_id);
    struct ledger_candidate *candidate = arena_new (view->arena, struct ledger_candidate);
    if (!funds_check (view, account, &p.funding, p.amount, account->id != hold->asked_id,
                      candidate)) {
        out->hold.candidate = candidate;
        out->hold.candidate_count = 1;
        hold_refuse (out, candidate->code, funds_refusal_text (view, p.amount, candidate, 1));
        return;
    }
    p.shares = funds_fill (view, account, &p.funding, p.amount, &p.share);
    for (uint32_t i = 0; i < p.shares; i++)
        p.share[i].alloc->held += p.share[i].amount;
    struct journal j = {.view = view, .effective_at = view->now};
    legs_add (view, &j, hold, &p);
    journal_close (&j);
    hold->amount += p.amount;
    hold->walltime = req->extend.walltime;
    hold->expires = hold->start + hold->walltime + LEDGER_HOLD_GRACE_US;
    hold->dirty = hold->extended = true;
    out->note = arena_strdup (view->arena,
                              price_formula (&p.terms, &p.use, PRICE_HOLD, hold->amount, formula));
    out->hold.granted = true;
    out->hold.added = p.amount;
    out->hold.count = 1;
    out->hold.item = arena_new (view->arena, struct ledger_granted);
    *out->hold.item = (struct ledger_granted){.hold_id = req->extend.hold_id,
                                              .account = account->name,
                                              .qos = "",
                                              .amount = hold->amount,
                                              .expires = hold->expires,
                                              .fallback = account->id != hold->asked_id};
}
