/* What one signed job may have: the user's signature stands for one job of the grid, run once at one place,
 * and as often as its retries say; who was given it cannot have it paid for more often than that. */
#include <string.h>

#include "bank/core/ledger_impl.h"

void signed_keep (struct ledger_view *view, const struct ledger_hold_ask *ask, const char *identity,
                  const struct ledger_hold *hold)
{
    if (!ask->is_signed)
        return;
    struct ledger_signed *row = ledger_add_signed (view, identity, &ask->uuid);
    memcpy (row->hash, ask->hash, sizeof (row->hash));
    row->grid_job = ask->job.grid_job;
    row->meta = ask->meta;
    row->meta_group = ask->meta_group;
    row->part = ask->part;
    row->hold_id = hold->id;
    row->job = hold->job;
    row->expires = ask->expires ? ask->expires : INT64_MAX;
    row->is_new = true;
}

/* A signed job is paid for as the job of the grid that it first was; then also after its expiry. */
static bool replayed (struct ledger_view *view, const struct ledger_hold_ask *ask,
                      const struct ledger_signed *first, struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX];
    if (!first && ask->expires && ask->expires <= view->now)
        hold_refuse (out, "JobExpired",
                     arena_printf (view->arena, "the signed job expired %s ago",
                                   duration_format (view->now - ask->expires, a)));
    else if (first && memcmp (first->hash, ask->hash, sizeof (first->hash)) != 0)
        hold_refuse (out, "Replayed",
                     arena_printf (view->arena,
                                   "another signed job with the same uuid was paid for as %s",
                                   first->grid_job));
    else if (first && ((!ask->meta_group && strcmp (first->grid_job, ask->job.grid_job) != 0) ||
                       (first->meta[0] && ask->meta[0] && strcmp (first->meta, ask->meta) != 0)))
        hold_refuse (out, "Replayed",
                     arena_printf (view->arena,
                                   "this signed job was paid for as %s of metascheduler %s, and "
                                   "comes again as %s of %s",
                                   first->grid_job, first->meta, ask->job.grid_job, ask->meta));
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
    while (later && (strcmp (later->part, row->part) != 0 || !same_job (&later->job, &row->job)))
        later = later->next;
    return later != NULL;
}

/* Adds what became of a run, if it has ended, once however often it was held for. */
static void add_run (const struct ledger_view *view, const struct ledger_signed *row,
                     uint32_t *well, __int128 *used)
{
    const struct ledger_usage *usage = ledger_usage_of (view, &row->job);
    bool good = row->well;
    if (held_again (row))
        return;
    for (uint32_t i = 0; usage && i < view->charges.count; i++) {
        const struct ledger_charge *charge = view->charges.item[i];
        good |= charge->usage_id == usage->id && charge->final && charge->successful;
    }
    *well += good;
    if (!usage)
        *used += row->used;
    else if (usage->final)
        *used += (__int128)usage->procs * (usage->end - usage->start);
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
    hold_refuse (out, "HeldElsewhere",
                 arena_printf (view->arena,
                               "credits are held for %s already, for %s: it may be at %u place%s at a "
                               "time",
                               whose (view, ask), where, ask->live_max,
                               ask->live_max == 1 ? "" : "s"));
}

static void refuse_runs (struct ledger_view *view, const struct ledger_hold_ask *ask, uint32_t well,
                         __int128 used, struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    const char *text =
        well >= ask->runs_max
            ? arena_printf (view->arena,
                            "%s has ended well as often as its user signed for (%u)",
                            whose (view, ask), ask->runs_max)
            : arena_printf (view->arena,
                            "%s has used %s of processor time; its user signed for %lld processors "
                            "for %s, and %u such run%s",
                            whose (view, ask),
                            duration_format (used > INT64_MAX ? INT64_MAX : (int64_t)used, a),
                            (long long)ask->procs, duration_format (ask->walltime, b),
                            ask->runs_max, ask->runs_max == 1 ? "" : "s");
    hold_refuse (out, "RunsUsedUp", text);
}

/* Runs that failed or were stopped leave room for one more than was signed: a lost node, a preemption. */
static bool too_many (struct ledger_view *view, const struct ledger_hold_ask *all, uint32_t at,
                      const struct ledger_signed *row, struct ledger_outcome *out)
{
    const struct ledger_hold_ask *ask = &all[at];
    const char *where = "";
    uint32_t live = 0, well = 0;
    __int128 used = 0, one = (__int128)ask->procs * ask->walltime;
    for (; row; row = row->next) {
        if (strcmp (row->part, ask->part) != 0 || same_run (&ask->job, &row->job))
            continue;
        add_run (view, row, &well, &used);
        if (is_live (view, row) && ++live <= ask->live_max)
            where = arena_printf (view->arena, "%s%s%s at %s (hold.%lld)", where,
                                  *where ? ", " : "", row->job.site_job, row->job.site,
                                  (long long)row->hold_id);
    }
    for (uint32_t i = 0; i < at; i++)
        if (all[i].is_signed && strcmp (all[i].part, ask->part) == 0 && ++live <= ask->live_max)
            where = arena_printf (view->arena, "%s%s%s at %s", where, *where ? ", " : "",
                                  all[i].job.site_job, all[i].job.site);
    if (live >= ask->live_max)
        refuse_live (view, ask, where, out);
    else if (well >= ask->runs_max || used >= one * (ask->runs_max + 1))
        refuse_runs (view, ask, well, used, out);
    else
        return false;
    return true;
}

bool signed_refused (struct ledger_view *view, const struct ledger_hold_ask *all, uint32_t at,
                     const char *identity, struct ledger_outcome *out)
{
    const struct ledger_hold_ask *ask = &all[at];
    const struct ledger_signed *first =
        ask->is_signed ? ledger_signed_of (view, identity, &ask->uuid) : NULL;
    return replayed (view, ask, first, out) ||
           (ask->is_signed && too_many (view, all, at, first, out));
}
