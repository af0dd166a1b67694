/* What reconciliation found: rows that are opened, owned and closed, each by an operation. */
#include <stdlib.h>
#include <string.h>

#include "bank/core/ledger_impl.h"

static struct ledger_recon *ledger_recon_by_id (const struct ledger_view *view, int64_t id)
{
    for (uint32_t i = 0; i < view->recons.count; i++) {
        struct ledger_recon *row = view->recons.item[i];
        if (row->id == id)
            return row;
    }
    return NULL;
}

struct ledger_recon *ledger_add_recon (struct ledger_view *view, int64_t id)
{
    struct ledger_recon *row = ledger_recon_by_id (view, id);
    if (row)
        return row;
    row = arena_new (view->arena, struct ledger_recon);
    row->id = id;
    row->owner = "";
    vec_push (view, &view->recons, row);
    return row;
}

void ledger_add_move (struct ledger_view *view, int64_t op_id)
{
    int64_t *move = arena_new (view->arena, int64_t);
    *move = op_id;
    vec_push (view, &view->moves, move);
}

static int finding_cmp (const struct ledger_finding *a, const struct ledger_finding *b)
{
    int c = strcmp (a->kind, b->kind);
    c = c ? c : strcmp (a->site_job, b->site_job);
    c = c ? c : strcmp (a->component, b->component);
    c = c ? c : strcmp (a->hold, b->hold);
    c = c ? c : (a->incarnation > b->incarnation) - (a->incarnation < b->incarnation);
    return c ? c : (a->charge_op > b->charge_op) - (a->charge_op < b->charge_op);
}

static int by_finding (const void *a, const void *b)
{
    const struct ledger_recon *x = *(struct ledger_recon *const *)a,
                              *y = *(struct ledger_recon *const *)b;
    int c = finding_cmp (&x->finding, &y->finding);
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

/* The newest row of it; NULL: there is none. */
static struct ledger_recon *row_of (struct ledger_recon **row, uint32_t count,
                                    const struct ledger_finding *f)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (finding_cmp (&row[mid]->finding, f) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low && finding_cmp (&row[low - 1]->finding, f) == 0 ? row[low - 1] : NULL;
}

static bool same_figures (const struct ledger_finding *a, const struct ledger_finding *b)
{
    return a->amount == b->amount && a->site_ps == b->site_ps && a->bank_ps == b->bank_ps;
}

static void event_add (struct ledger_view *view, struct ledger_recon *row, const char *kind,
                       const char *owner, int64_t cured_op, const char *note)
{
    struct ledger_recon_event *event = arena_new (view->arena, struct ledger_recon_event);
    *event = (struct ledger_recon_event){view->next.op, row->id, kind, owner, cured_op, note};
    vec_push (view, &view->recon_events, event);
    row->closed |= strcmp (kind, "owned") != 0;
    row->explained |= strcmp (kind, "closed") == 0;
}

void recon_open (struct ledger_view *view, const char *site, const struct ledger_finding *finding)
{
    struct ledger_recon *row = ledger_add_recon (view, view->next.recon++);
    row->site = site;
    row->finding = *finding;
    row->op_id = view->next.op;
    row->is_new = true;
}

static bool looked_for (const struct ledger_request *req, const struct ledger_recon *row)
{
    const struct ledger_finding *f = &row->finding;
    if (f->since < req->recon.from || f->since >= req->recon.to)
        return false;
    for (uint32_t i = 0; i < req->recon.kind_count; i++)
        if (strcmp (req->recon.kind[i], f->kind) == 0)
            return true;
    return false;
}

void decide_recon (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    struct ledger_recon **row = arena_array (view->arena, view->recons.count + 1, sizeof (*row));
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->recons.count; i++) {
        struct ledger_recon *r = view->recons.item[i];
        if (strcmp (r->site, req->recon.site) == 0)
            row[count++] = r;
    }
    if (count)
        qsort (row, count, sizeof (*row), by_finding);
    for (uint32_t i = 0; i < count; i++)
        row[i]->found = false;
    for (uint32_t i = 0; i < req->recon.count; i++) {
        const struct ledger_finding *f = &req->recon.item[i];
        struct ledger_recon *r = row_of (row, count, f);
        if (r && (r->explained ? same_figures (&r->finding, f) : !r->closed)) {
            r->found = true;
            out->recon.open += !r->closed;
            continue;
        }
        recon_open (view, req->recon.site, f);
        out->recon.opened++;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!row[i]->closed && !row[i]->found && looked_for (req, row[i])) {
            event_add (view, row[i], "gone", "", 0, "not found again");
            out->recon.gone++;
        }
    out->site = req->recon.site;
    out->note = arena_printf (view->arena, "reconciled: %u rows opened, %u as before, %u gone",
                              out->recon.opened, out->recon.open, out->recon.gone);
}

static bool op_known (const struct ledger_view *view, int64_t id)
{
    for (uint32_t i = 0; i < view->moves.count; i++)
        if (*(const int64_t *)view->moves.item[i] == id)
            return true;
    return false;
}

void decide_recon_set (struct ledger_view *view, const struct ledger_request *req,
                       struct ledger_outcome *out)
{
    struct ledger_recon *row = ledger_recon_by_id (view, req->recon_set.row_id);
    long long id = (long long)req->recon_set.row_id, op = (long long)req->recon_set.cured_op;
    if (!row) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no row %lld", id);
        return;
    }
    out->site = row->site;
    out->job = row->finding.site_job;
    if (row->closed) {
        outcome_refuse (view, out, ERR_CONFLICT, true, "row %lld is closed", id);
        return;
    }
    if (!req->recon_set.close) {
        event_add (view, row, "owned", req->recon_set.owner, 0, req->recon_set.note);
        out->note = arena_printf (view->arena, "row %lld is %s's", id, req->recon_set.owner);
    } else if (op && !op_known (view, op)) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true,
                        "operation %lld is none of credits: it cannot have put row %lld right", op,
                        id);
        return;
    } else {
        event_add (view, row, "closed", "", op, req->recon_set.note);
        out->note = op ? arena_printf (view->arena, "row %lld closed by operation %lld: %s", id, op,
                                       req->recon_set.note)
                       : arena_printf (view->arena, "row %lld closed: %s", id, req->recon_set.note);
    }
    out->done.id = arena_printf (view->arena, "row.%lld", id);
}
