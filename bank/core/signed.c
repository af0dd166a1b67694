/* What one signed job may have in all: the user's signature stands for one job of the grid, run once at one place,
 * as often as its retries say, for at most what it may cost; who was given it cannot have it paid for more often or for
 * more than that, with a hold or without. What bounds one hold or charge of it is bounds.c's. */
#include <string.h>

#include "bank/core/ledger_impl.h"

void signed_keep (struct ledger_view *view, const struct ledger_hold_ask *ask, const char *identity,
                  int64_t hold_id)
{
    if (!ask->is_signed)
        return;
    struct ledger_signed *row = ledger_add_signed (view, identity, &ask->uuid);
    memcpy (row->hash, ask->hash, sizeof (row->hash));
    row->grid_job = ask->job.grid_job;
    row->meta = ask->meta;
    row->meta_group = ask->meta_group;
    row->part = ask->part;
    row->hold_id = hold_id;
    row->job = ask->job;
    row->expires = ask->expires ? ask->expires : INT64_MAX;
    row->is_new = true;
}

/* A signed job is paid for as the job of the grid that it first was; then also after its expiry. */
static bool replayed (struct ledger_view *view, const struct ledger_hold_ask *ask, time_us at,
                      const struct ledger_signed *first, struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX];
    const struct ledger_signed *held =
        first; /* a charge without a hold does not say whose job of the grid it is */
    while (held && held->hold_id < 0)
        held = held->next;
    if (!first && ask->expires && ask->expires <= at)
        hold_refuse (out, "JobExpired",
                     arena_printf (view->arena, "the signed job expired %s ago",
                                   duration_format (view->now - ask->expires, a)));
    else if (first && memcmp (first->hash, ask->hash, sizeof (first->hash)) != 0)
        hold_refuse (out, "Replayed",
                     arena_printf (view->arena,
                                   "another signed job with the same uuid was paid for as %s",
                                   first->grid_job));
    else if (held && ((!ask->meta_group && strcmp (held->grid_job, ask->job.grid_job) != 0) ||
                      (held->meta[0] && ask->meta[0] && strcmp (held->meta, ask->meta) != 0)))
        hold_refuse (out, "Replayed",
                     arena_printf (view->arena,
                                   "this signed job was paid for as %s of metascheduler %s, and "
                                   "comes again as %s of %s",
                                   held->grid_job, held->meta, ask->job.grid_job, ask->meta));
    else
        return false;
    return true;
}

/* A job that its site starts again is the same run. */
static bool same_run (const struct ledger_job *a, const struct ledger_job *b)
{
    return strcmp (a->site, b->site) == 0 && strcmp (a->site_job, b->site_job) == 0;
}

/* One that is stale no longer counts: its site has ended the job by then, or is dead. */
static bool is_live (const struct ledger_view *view, const struct ledger_signed *row)
{
    const struct ledger_hold *hold = ledger_hold_by_id (view, row->hold_id);
    return hold ? hold->open && hold->expires > view->now
                : row->open && row->hold_expires > view->now;
}

/* Whether what was held for is held for again by a later row. */
static bool held_again (const struct ledger_signed *row)
{
    const struct ledger_signed *later = row->next;
    while (later && !same_job (&later->job, &row->job))
        later = later->next;
    return later != NULL;
}

/* What a signed job has had: runs that ended well, of its part and that its own site started again, and what of
 * it is used. */
struct history {
    uint32_t well, starts;
    __int128 used;
};

/* Adds what became of a run, once however often it was held for. */
static void add_run (const struct ledger_view *view, const struct ledger_hold_ask *ask,
                     const struct ledger_signed *row, struct history *h)
{
    const struct ledger_usage *usage = ledger_usage_of (view, &row->job);
    bool good = row->well, same = same_run (&ask->job, &row->job);
    if (held_again (row))
        return;
    for (uint32_t i = 0; usage && i < view->charges.count; i++) {
        const struct ledger_charge *charge = view->charges.item[i];
        good |= charge->usage_id == usage->id && charge->final && charge->successful;
    }
    h->well += good;
    h->starts += same && (usage || row->ran) && row->job.incarnation != ask->job.incarnation;
    if (same)
        return;
    if (!usage)
        h->used += row->used;
    else if (usage->final)
        h->used += (__int128)usage->procs * (usage->end - usage->start);
}

/* What a hold of it keeps, or what was charged if that is more. */
static credit_micro cost_of (const struct ledger_view *view, const struct ledger_signed *row)
{
    const struct ledger_usage *usage = ledger_usage_of (view, &row->job);
    const struct ledger_hold *hold = ledger_hold_by_id (view, row->hold_id);
    credit_micro paid = usage ? usage->total - usage->disputed : row->paid;
    credit_micro amount = hold ? hold->amount : row->amount;
    bool open = hold ? hold->open : row->open;
    if (held_again (row))
        return 0;
    return open && amount > paid ? amount : paid;
}

credit_micro signed_spent (const struct ledger_view *view, const char *identity,
                           const struct uuid *uuid, const struct ledger_job *but)
{
    __int128 sum = 0;
    for (const struct ledger_signed *row = ledger_signed_of (view, identity, uuid); row;
         row = row->next)
        if (!but || !same_job (&row->job, but))
            sum += cost_of (view, row);
    return sum > PRICE_AMOUNT_MAX ? PRICE_AMOUNT_MAX : (credit_micro)sum;
}

/* "this signed job", "part solver of this signed job". */
static const char *whose (struct ledger_view *view, const struct ledger_hold_ask *ask)
{
    return ask->part[0] ? arena_printf (view->arena, "part %s of this signed job", ask->part)
                        : "this signed job";
}

static void refuse_live (struct ledger_view *view, const struct ledger_hold_ask *ask,
                         const char *where, struct ledger_outcome *out)
{
    hold_refuse (
        out, "HeldElsewhere",
        arena_printf (view->arena,
                      "credits are held for %s already, for %s: it may be at %u place%s at a "
                      "time",
                      whose (view, ask), where, ask->live_max, ask->live_max == 1 ? "" : "s"));
}

static void refuse_runs (struct ledger_view *view, const struct ledger_hold_ask *ask,
                         const struct history *h, struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    const char *text;
    if (h->well >= ask->runs_max)
        text = arena_printf (view->arena, "%s has ended well as often as its user signed for (%u)",
                             whose (view, ask), ask->runs_max);
    else if (h->starts > ask->bounds.restarts_max)
        text =
            arena_printf (view->arena, "site %s has started %s %u times: it may %u", ask->job.site,
                          whose (view, ask), h->starts, ask->bounds.restarts_max + 1);
    else
        text =
            arena_printf (view->arena,
                          "%s has used %s of processor time; its user signed for %lld processors "
                          "for %s, and %u such run%s",
                          whose (view, ask),
                          duration_format (h->used > INT64_MAX ? INT64_MAX : (int64_t)h->used, a),
                          (long long)ask->procs, duration_format (ask->walltime, b), ask->runs_max,
                          ask->runs_max == 1 ? "" : "s");
    hold_refuse (out, "RunsUsedUp", text);
}

/* Runs that failed or were stopped leave room for one more than was signed: a lost node, a preemption. What its own
 * site starts again is the same run while it has not ended well. */
static bool too_many (struct ledger_view *view, const struct ledger_hold_ask *all, uint32_t at,
                      const struct ledger_signed *row, struct ledger_outcome *out)
{
    const struct ledger_hold_ask *ask = &all[at];
    const char *where = "";
    uint32_t live = 0, rows = 0;
    struct history h = {0};
    __int128 one = (__int128)ask->procs * ask->walltime;
    for (; row; row = row->next) {
        rows++;
        if (strcmp (row->part, ask->part) != 0 || same_job (&ask->job, &row->job))
            continue;
        add_run (view, ask, row, &h);
        if (!same_run (&ask->job, &row->job) && is_live (view, row) && ++live <= ask->live_max)
            where =
                arena_printf (view->arena, "%s%s%s at %s (hold.%lld)", where, *where ? ", " : "",
                              row->job.site_job, row->job.site, (long long)row->hold_id);
    }
    for (uint32_t i = 0; i < at; i++)
        if (all[i].is_signed && strcmp (all[i].part, ask->part) == 0 && ++live <= ask->live_max)
            where = arena_printf (view->arena, "%s%s%s at %s", where, *where ? ", " : "",
                                  all[i].job.site_job, all[i].job.site);
    if (live >= ask->live_max)
        refuse_live (view, ask, where, out);
    else if (h.well >= ask->runs_max || h.used >= one * (ask->runs_max + 1) ||
             h.starts > ask->bounds.restarts_max)
        refuse_runs (view, ask, &h, out);
    else if (rows >= LEDGER_SIGNED_MAX)
        hold_refuse (out, "HeldTooOften",
                     arena_printf (view->arena, "this signed job was held for %u times", rows));
    else
        return false;
    return true;
}

bool signed_refused (struct ledger_view *view, const struct ledger_hold_ask *all, uint32_t at,
                     const char *identity, time_us when, struct ledger_outcome *out)
{
    const struct ledger_hold_ask *ask = &all[at];
    const struct ledger_signed *first =
        ask->is_signed ? ledger_signed_of (view, identity, &ask->uuid) : NULL;
    return replayed (view, ask, when, first, out) ||
           (ask->is_signed && too_many (view, all, at, first, out));
}

const char *signed_not_charged (struct ledger_view *view, const struct ledger_request *req)
{
    const struct ledger_signature *s = req->charge.signature;
    struct ledger_outcome no = {0};
    if (s->unsigned_for)
        return s->unsigned_for;
    if (view->now >= s->forgotten)
        return "so long after the signed job's expiry nobody knows what it was charged before";
    return signed_refused (view, &s->ask, 0, req->on_behalf, req->charge.start, &no)
               ? no.hold.reason_text
               : NULL;
}
