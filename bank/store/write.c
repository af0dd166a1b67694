/* write: turns what was decided in a view into rows, table by table, or into one statement for a
 * lone hold or charge. The committer calls it once for each batch. It decides nothing and waits
 * for nothing, and a row it writes without telling the block of it would be found by nui verify
 * --rules. */
#include "bank/store/write.h"

#include <string.h>

#include "bank/store/content.h"
#include "bank/store/statements.h"
#include "proto/base/strbuf.h"

struct writer {
    const struct ledger_view *view;
    bool is_new_hold; /* one that is written by itself: nothing of it was asked for before */
    struct pgargs *put[BANK_STMT_COUNT];    /* NULL: no rows */
    struct pgargs *object[CONTENT_OBJECTS]; /* likewise */
};

static struct pgargs *rows (const struct writer *w, const char *types)
{
    return pgargs_create (w->view->arena, types);
}

static void put_rows (struct writer *w, enum bank_stmt stmt, struct pgargs *args)
{
    if (!pgargs_rows (args))
        return;
    pgargs_seal (args);
    w->put[stmt] = args;
}

static void put_objects (struct writer *w, enum content_object object, struct pgargs *args)
{
    w->object[object] = args;
}

static void write_ops (struct writer *w)
{
    struct pgargs *a = rows (w, "itbbtttttiiib");
    for (uint32_t i = 0; i < w->view->ops.count; i++) {
        const struct ledger_op *op = w->view->ops.item[i];
        if (!op->is_new)
            continue;
        pgargs_i64 (a, 0, op->id);
        pgargs_text (a, 1, op->client);
        pgargs_bytes (a, 2, op->key.b, sizeof (op->key.b));
        pgargs_bytes (a, 3, op->hash, sizeof (op->hash));
        pgargs_text (a, 4, ledger_kind_name (op->kind));
        pgargs_text (a, 5, op->on_behalf);
        pgargs_text (a, 6, op->site);
        pgargs_text (a, 7, op->job);
        pgargs_text (a, 8, op->note);
        pgargs_i64 (a, 9, op->effective_at);
        pgargs_i64 (a, 10, w->view->now);
        pgargs_i64 (a, 11, op->status);
        pgargs_bytes (a, 12, op->outcome, op->outcome_len);
    }
    put_rows (w, ST_ADD_OP, a);
}

static void write_abouts (struct writer *w)
{
    struct pgargs *abouts = rows (w, "iti"), *names = rows (w, "iit");
    for (uint32_t i = 0; i < w->view->abouts.count; i++) {
        const struct ledger_about *about = w->view->abouts.item[i];
        pgargs_i64 (abouts, 0, about->op_id);
        pgargs_text (abouts, 1, about->what);
        pgargs_i64 (abouts, 2, about->id);
    }
    for (uint32_t i = 0; i < w->view->names.count; i++) {
        const struct ledger_name *name = w->view->names.item[i];
        pgargs_i64 (names, 0, name->account_id);
        pgargs_i64 (names, 1, name->op_id);
        pgargs_text (names, 2, name->name);
    }
    put_objects (w, OBJ_ADD_ABOUT, abouts);
    put_objects (w, OBJ_ADD_NAME, names);
}

static void write_people (struct writer *w)
{
    struct pgargs *projects = rows (w, "ittii"), *moved = rows (w, "ii"),
                  *persons = rows (w, "iti"), *members = rows (w, "iiitiii"),
                  *ended = rows (w, "ii"), *roles = rows (w, "iito"), *funders = rows (w, "itti");
    for (uint32_t i = 0; i < w->view->projects.count; i++) {
        const struct ledger_project *project = w->view->projects.item[i];
        if (!project->is_new && project->parent_dirty) {
            pgargs_i64 (moved, 0, project->id);
            pgargs_i64 (moved, 1, project->ancestor_count ? project->ancestor[0] : 0);
        }
        if (!project->is_new)
            continue;
        pgargs_i64 (projects, 0, project->id);
        pgargs_text (projects, 1, project->name);
        pgargs_text (projects, 2, project->description);
        pgargs_i64 (projects, 3, project->op_id);
        pgargs_i64 (projects, 4, project->ancestor_count ? project->ancestor[0] : 0);
    }
    for (uint32_t i = 0; i < w->view->persons.count; i++) {
        const struct ledger_person *person = w->view->persons.item[i];
        if (!person->is_new)
            continue;
        pgargs_i64 (persons, 0, person->id);
        pgargs_text (persons, 1, person->identity);
        pgargs_i64 (persons, 2, person->op_id);
    }
    for (uint32_t i = 0; i < w->view->role_changes.count; i++) {
        const struct ledger_role_change *change = w->view->role_changes.item[i];
        pgargs_i64 (roles, 0, change->op_id);
        pgargs_i64 (roles, 1, change->person_id);
        pgargs_text (roles, 2, ledger_role_name (change->role));
        pgargs_bool (roles, 3, change->given);
    }
    for (uint32_t i = 0; i < w->view->memberships.count; i++) {
        const struct ledger_membership *m = w->view->memberships.item[i];
        if (!m->is_new && m->dirty) {
            pgargs_i64 (ended, 0, m->id);
            pgargs_i64 (ended, 1, m->valid_to);
        }
        if (!m->is_new)
            continue;
        pgargs_i64 (members, 0, m->id);
        pgargs_i64 (members, 1, m->project_id);
        pgargs_i64 (members, 2, m->person_id);
        pgargs_text (members, 3, m->role);
        pgargs_i64 (members, 4, m->valid_from);
        pgargs_i64 (members, 5, m->valid_to);
        pgargs_i64 (members, 6, m->op_id);
    }
    for (uint32_t i = 0; i < w->view->funders.count; i++) {
        const struct ledger_funder *funder = w->view->funders.item[i];
        if (!funder->is_new)
            continue;
        pgargs_i64 (funders, 0, funder->id);
        pgargs_text (funders, 1, funder->name);
        pgargs_text (funders, 2, funder->description);
        pgargs_i64 (funders, 3, funder->op_id);
    }
    put_objects (w, OBJ_ADD_FUNDER, funders);
    put_objects (w, OBJ_ADD_ROLE, roles);
    put_objects (w, OBJ_ADD_PROJECT, projects);
    put_objects (w, OBJ_PUT_PARENT, moved);
    put_objects (w, OBJ_ADD_PERSON, persons);
    put_objects (w, OBJ_PUT_MEMBERSHIP, ended);
    put_objects (w, OBJ_ADD_MEMBERSHIP, members);
}

static void scope_rows (struct pgargs *a, int64_t id, const struct ledger_scopes *scopes)
{
    for (uint32_t i = 0; i < scopes->count; i++) {
        pgargs_i64 (a, 0, id);
        pgargs_i64 (a, 1, i);
        pgargs_text (a, 2, ledger_scope_name (scopes->item[i].kind));
        pgargs_text (a, 3, scopes->item[i].name);
        pgargs_bool (a, 4, scopes->item[i].exclude);
    }
}

static void account_row (struct pgargs *a, const struct ledger_account *account)
{
    pgargs_i64 (a, 0, account->id);
    pgargs_text (a, 1, account->name);
    pgargs_text (a, 2, account->is_debt ? "DEBT" : account->project_id ? "PROJECT" : "SITE_EARNED");
    pgargs_i64 (a, 3, account->project_id);
    pgargs_i64 (a, 4, account->op_id);
}

static void write_freezes (struct writer *w)
{
    struct pgargs *a = rows (w, "ititotti");
    for (uint32_t i = 0; i < w->view->freezes.count; i++) {
        const struct ledger_freeze *freeze = w->view->freezes.item[i];
        if (!freeze->is_new)
            continue;
        pgargs_i64 (a, 0, freeze->op_id);
        pgargs_text (a, 1, ledger_freezable_name (freeze->what));
        pgargs_i64 (a, 2, freeze->id);
        pgargs_text (a, 3, freeze->name);
        pgargs_bool (a, 4, freeze->frozen);
        pgargs_text (a, 5, freeze->reason);
        pgargs_text (a, 6, freeze->who);
        pgargs_i64 (a, 7, freeze->since);
    }
    put_objects (w, OBJ_ADD_FREEZE, a);
}

static void write_accounts (struct writer *w)
{
    struct pgargs *accounts = rows (w, "ittii"), *drops = rows (w, "i"),
                  *fallbacks = rows (w, "iiitt"), *scope_drops = rows (w, "i"),
                  *scopes = rows (w, "iitto"), *closed = rows (w, "ii"), *named = rows (w, "it");
    for (uint32_t i = 0; i < w->view->accounts.count; i++) {
        const struct ledger_account *account = w->view->accounts.item[i];
        if (account->is_new)
            account_row (accounts, account);
        if (!account->is_new && account->name_dirty) {
            pgargs_i64 (named, 0, account->id);
            pgargs_text (named, 1, account->name);
        }
        if (account->closed_dirty) {
            pgargs_i64 (closed, 0, account->id);
            pgargs_i64 (closed, 1, account->closed_op_id);
        }
        if (account->scopes_dirty) {
            pgargs_i64 (scope_drops, 0, account->id);
            scope_rows (scopes, account->id, &account->scopes);
        }
        if (!account->fallbacks_dirty)
            continue;
        pgargs_i64 (drops, 0, account->id);
        for (uint32_t k = 0; k < account->fallback_count; k++) {
            pgargs_i64 (fallbacks, 0, account->id);
            pgargs_i64 (fallbacks, 1, k);
            pgargs_i64 (fallbacks, 2, account->fallback[k].account_id);
            pgargs_text (fallbacks, 3, account->fallback[k].site);
            pgargs_text (fallbacks, 4, account->fallback[k].qos);
        }
    }
    put_objects (w, OBJ_ADD_ACCOUNT, accounts);
    put_objects (w, OBJ_PUT_NAME, named);
    put_objects (w, OBJ_DROP_FALLBACKS, drops);
    put_objects (w, OBJ_ADD_FALLBACK, fallbacks);
    put_objects (w, OBJ_DROP_SCOPES, scope_drops);
    put_objects (w, OBJ_ADD_SCOPE, scopes);
    put_objects (w, OBJ_CLOSE_ACCOUNT, closed);
}

static void write_grants (struct writer *w)
{
    struct pgargs *a = rows (w, "iiiti"), *revoked = rows (w, "ii");
    for (uint32_t i = 0; i < w->view->grants.count; i++) {
        const struct ledger_grant *grant = w->view->grants.item[i];
        if (grant->revoked_dirty) {
            pgargs_i64 (revoked, 0, grant->id);
            pgargs_i64 (revoked, 1, grant->revoked_op_id);
        }
        if (!grant->is_new)
            continue;
        pgargs_i64 (a, 0, grant->id);
        pgargs_i64 (a, 1, grant->funder_id);
        pgargs_i64 (a, 2, grant->account_id);
        pgargs_text (a, 3, grant->reference);
        pgargs_i64 (a, 4, grant->op_id);
    }
    put_objects (w, OBJ_ADD_AWARD, a);
    put_objects (w, OBJ_PUT_REVOKED, revoked);
}

static void balance_row (struct pgargs *a, const struct ledger_alloc *alloc)
{
    pgargs_i64 (a, 0, alloc->id);
    pgargs_i64 (a, 1, alloc->granted);
    pgargs_i64 (a, 2, alloc->settled);
    pgargs_i64 (a, 3, alloc->posted);
    pgargs_i64 (a, 4, alloc->held);
}

static void write_allocs (struct writer *w)
{
    struct pgargs *allocs = rows (w, "iiiiitiiitt"), *added = rows (w, "iiiii"),
                  *changed = rows (w, "iiiii"), *limits = rows (w, "ii"), *ends = rows (w, "ii"),
                  *scopes = rows (w, "iitto");
    for (uint32_t i = 0; i < w->view->touched.count; i++) {
        const struct ledger_alloc *alloc = w->view->touched.item[i];
        const struct ledger_account *account = ledger_account_by_id (w->view, alloc->account_id);
        if (!alloc->is_new)
            balance_row (changed, alloc);
        if (!alloc->is_new && alloc->end_dirty) {
            pgargs_i64 (ends, 0, alloc->id);
            pgargs_i64 (ends, 1, alloc->valid_to);
        }
        if (!alloc->is_new && alloc->limit_dirty) {
            pgargs_i64 (limits, 0, alloc->id);
            pgargs_i64 (limits, 1, alloc->credit_limit);
        }
        if (!alloc->is_new)
            continue;
        pgargs_i64 (allocs, 0, alloc->id);
        pgargs_i64 (allocs, 1, alloc->account_id);
        pgargs_i64 (allocs, 2, alloc->valid_from);
        pgargs_i64 (allocs, 3, alloc->valid_to);
        pgargs_i64 (allocs, 4, alloc->credit_limit);
        pgargs_text (allocs, 5, alloc->description);
        pgargs_i64 (allocs, 6, alloc->op_id);
        pgargs_i64 (allocs, 7, alloc->grant_id);
        pgargs_i64 (allocs, 8, alloc->split_from);
        pgargs_text (allocs, 9, alloc->reference);
        pgargs_text (allocs, 10, alloc->giver);
        scope_rows (scopes, alloc->id, &alloc->scopes);
        if (account->project_id) /* system allocations have no balance row */
            balance_row (added, alloc);
    }
    put_objects (w, OBJ_ADD_ALLOC, allocs);
    put_objects (w, OBJ_ADD_ALLOC_SCOPE, scopes);
    put_objects (w, OBJ_PUT_END, ends);
    put_objects (w, OBJ_PUT_LIMIT, limits);
    put_objects (w, OBJ_ADD_BALANCE, added);
    put_rows (w, ST_PUT_BALANCE, changed);
}

static void write_rates (struct writer *w)
{
    struct pgargs *a = rows (w, "tiiiito"), *factors = rows (w, "tiitti");
    for (uint32_t i = 0; i < w->view->rates.count; i++) {
        const struct ledger_rate *rate = w->view->rates.item[i];
        if (!rate->is_new)
            continue;
        pgargs_text (a, 0, rate->site);
        pgargs_i64 (a, 1, rate->version);
        pgargs_i64 (a, 2, rate->from);
        pgargs_i64 (a, 3, rate->ppm);
        pgargs_i64 (a, 4, rate->op_id);
        pgargs_text (a, 5, price_measure_name (rate->measure));
        pgargs_bool (a, 6, rate->successful_only);
        for (uint32_t k = 0; k < rate->factor_count; k++) {
            pgargs_text (factors, 0, rate->site);
            pgargs_i64 (factors, 1, rate->version);
            pgargs_i64 (factors, 2, k);
            pgargs_text (factors, 3, ledger_factor_name (rate->factor[k].kind));
            pgargs_text (factors, 4, rate->factor[k].name);
            pgargs_i64 (factors, 5, rate->factor[k].ppm);
        }
    }
    put_objects (w, OBJ_ADD_RATE, a);
    put_objects (w, OBJ_ADD_FACTOR, factors);
}

static void write_quotes (struct writer *w)
{
    struct pgargs *a = rows (w, "iitiot"), *cards = rows (w, "iitii"), *uses = rows (w, "iit"),
                  *cancels = rows (w, "iii");
    for (uint32_t i = 0; i < w->view->pins.count; i++) {
        const struct ledger_pin *pin = w->view->pins.item[i];
        if (pin->cancel_op_id) {
            pgargs_i64 (cancels, 0, pin->id);
            pgargs_i64 (cancels, 1, pin->cancel_op_id);
            pgargs_i64 (cancels, 2, pin->cancelled);
        }
        if (!pin->is_new)
            continue;
        pgargs_i64 (a, 0, pin->id);
        pgargs_i64 (a, 1, pin->op_id);
        pgargs_text (a, 2, pin->identity);
        pgargs_i64 (a, 3, pin->expires);
        pgargs_bool (a, 4, pin->reusable);
        pgargs_text (a, 5, pin->account);
        for (uint32_t k = 0; k < pin->card_count; k++) {
            pgargs_i64 (cards, 0, pin->id);
            pgargs_i64 (cards, 1, k);
            pgargs_text (cards, 2, pin->card[k].site);
            pgargs_i64 (cards, 3, pin->card[k].version);
            pgargs_i64 (cards, 4, pin->card[k].price);
        }
    }
    for (uint32_t i = 0; i < w->view->pin_uses.count; i++) {
        const struct ledger_pin_use *use = w->view->pin_uses.item[i];
        pgargs_i64 (uses, 0, use->op_id);
        pgargs_i64 (uses, 1, use->quote_id);
        pgargs_text (uses, 2, use->job);
    }
    put_rows (w, ST_ADD_QUOTE, a);
    put_rows (w, ST_ADD_QUOTE_CARD, cards);
    put_rows (w, ST_ADD_QUOTE_USE, uses);
    put_rows (w, ST_ADD_QUOTE_CANCEL, cancels);
}

static void hold_row (struct pgargs *a, const struct ledger_hold *hold)
{
    pgargs_i64 (a, 0, hold->id);
    pgargs_i64 (a, 1, hold->op_id);
    pgargs_text (a, 2, hold->job.site);
    pgargs_text (a, 3, hold->job.site_job);
    pgargs_text (a, 4, hold->job.component);
    pgargs_i64 (a, 5, hold->job.incarnation);
    pgargs_text (a, 6, hold->job.grid_job);
    pgargs_i64 (a, 7, hold->asked_id);
    pgargs_i64 (a, 8, hold->account_id);
    pgargs_text (a, 9, hold->identity);
    pgargs_i64 (a, 10, hold->procs);
    pgargs_i64 (a, 11, hold->walltime);
    pgargs_i64 (a, 12, hold->start);
    pgargs_i64 (a, 13, hold->expires);
    pgargs_i64 (a, 14, hold->rate_version);
    pgargs_i64 (a, 15, hold->rate_ppm);
    pgargs_i64 (a, 16, hold->amount);
    pgargs_bool (a, 17, hold->open);
    pgargs_i64 (a, 18, hold->extra_parts);
    pgargs_i64 (a, 19, hold->qos_ppm);
    pgargs_i64 (a, 20, hold->class_ppm);
    pgargs_i64 (a, 21, hold->group_ppm);
    pgargs_i64 (a, 22, hold->pe_milli);
    pgargs_text (a, 23, hold->qos);
    pgargs_text (a, 24, hold->machine);
    pgargs_text (a, 25, hold->nodes);
    pgargs_i64 (a, 26, hold->walltime_max);
    pgargs_i64 (a, 27, hold->cost_max);
    pgargs_bytes (a, 28, hold->uuid.b, hold->walltime_max ? sizeof (hold->uuid.b) : 0);
}

static void leg_row (struct pgargs *a, const struct ledger_hold *hold, uint32_t k, bool is_new)
{
    const struct ledger_leg *leg = &hold->leg[k];
    unsigned col = 0;
    pgargs_i64 (a, col++, hold->id);
    pgargs_i64 (a, col++, k);
    if (is_new) {
        pgargs_i64 (a, col++, leg->allocation_id);
        pgargs_i64 (a, col++, leg->amount);
    }
    pgargs_i64 (a, col++, leg->settled);
    pgargs_i64 (a, col++, leg->released);
}

static void write_holds (struct writer *w)
{
    struct pgargs *added = rows (w, "iitttitiitiiiiiiioiiiiitttiib"), *changed = rows (w, "io"),
                  *longer = rows (w, "iiii");
    struct pgargs *legs = rows (w, "iiiiii"), *legs_changed = rows (w, "iiii");
    for (uint32_t i = 0; i < w->view->holds.count; i++) {
        const struct ledger_hold *hold = w->view->holds.item[i];
        if (!hold->is_new && !hold->dirty)
            continue;
        if (hold->is_new) {
            hold_row (added, hold);
        } else {
            pgargs_i64 (changed, 0, hold->id);
            pgargs_bool (changed, 1, hold->open);
        }
        if (!hold->is_new && hold->extended) {
            pgargs_i64 (longer, 0, hold->id);
            pgargs_i64 (longer, 1, hold->amount);
            pgargs_i64 (longer, 2, hold->walltime);
            pgargs_i64 (longer, 3, hold->expires);
        }
        for (uint32_t k = 0; k < hold->leg_count; k++) {
            bool is_new = hold->is_new || hold->leg[k].is_new;
            leg_row (is_new ? legs : legs_changed, hold, k, is_new);
        }
    }
    put_rows (w, w->is_new_hold ? ST_ADD_NEW_HOLD : ST_ADD_HOLD, added);
    put_rows (w, ST_ADD_LEG, legs);
    put_rows (w, ST_PUT_HOLD, changed);
    put_rows (w, ST_LENGTHEN_HOLD, longer);
    put_rows (w, ST_PUT_LEG, legs_changed);
}

static void write_signed (struct writer *w)
{
    struct pgargs *a = rows (w, w->is_new_hold ? "tbbtttiio" : "tbbtttii");
    for (uint32_t i = 0; i < w->view->signeds.count; i++) {
        const struct ledger_signed *row = w->view->signeds.item[i];
        if (!row->is_new)
            continue;
        pgargs_text (a, 0, row->identity);
        pgargs_bytes (a, 1, row->uuid.b, sizeof (row->uuid.b));
        pgargs_bytes (a, 2, row->hash, sizeof (row->hash));
        pgargs_text (a, 3, row->grid_job);
        pgargs_text (a, 4, row->meta);
        pgargs_text (a, 5, row->part);
        pgargs_i64 (a, 6, row->hold_id);
        pgargs_i64 (a, 7, row->expires);
        if (w->is_new_hold)
            pgargs_bool (a, 8, row->meta_group);
    }
    put_rows (w, w->is_new_hold ? ST_ADD_NEW_SIGNED : ST_ADD_SIGNED, a);
}

static void write_usages (struct writer *w)
{
    struct pgargs *a = rows (w, "itttitiitiiiiotti"), *changed = rows (w, "iiiioi");
    for (uint32_t i = 0; i < w->view->usages.count; i++) {
        const struct ledger_usage *usage = w->view->usages.item[i];
        if (usage->dirty && !usage->is_new) {
            pgargs_i64 (changed, 0, usage->id);
            pgargs_i64 (changed, 1, usage->procs);
            pgargs_i64 (changed, 2, usage->end);
            pgargs_i64 (changed, 3, usage->total);
            pgargs_bool (changed, 4, usage->final);
            pgargs_i64 (changed, 5, usage->disputed);
        }
        if (!usage->dirty || !usage->is_new)
            continue;
        pgargs_i64 (a, 0, usage->id);
        pgargs_text (a, 1, usage->job.site);
        pgargs_text (a, 2, usage->job.site_job);
        pgargs_text (a, 3, usage->job.component);
        pgargs_i64 (a, 4, usage->job.incarnation);
        pgargs_text (a, 5, usage->job.grid_job);
        pgargs_i64 (a, 6, usage->hold_id);
        pgargs_i64 (a, 7, usage->account_id);
        pgargs_text (a, 8, usage->identity);
        pgargs_i64 (a, 9, usage->procs);
        pgargs_i64 (a, 10, usage->start);
        pgargs_i64 (a, 11, usage->end);
        pgargs_i64 (a, 12, usage->total);
        pgargs_bool (a, 13, usage->final);
        pgargs_text (a, 14, usage->qos);
        pgargs_text (a, 15, usage->machine);
        pgargs_i64 (a, 16, usage->disputed);
    }
    put_rows (w, ST_ADD_USAGE, a);
    put_rows (w, ST_PUT_USAGE, changed);
}

static void write_charges (struct writer *w)
{
    struct pgargs *a = rows (w, "iiiiiiiiooiiiiitioiiiitt"), *legs = rows (w, "iiiit");
    for (uint32_t i = 0; i < w->view->charges.count; i++) {
        const struct ledger_charge *charge = w->view->charges.item[i];
        pgargs_i64 (a, 0, charge->id);
        pgargs_i64 (a, 1, charge->op_id);
        pgargs_i64 (a, 2, charge->usage_id);
        pgargs_i64 (a, 3, charge->hold_id);
        pgargs_i64 (a, 4, (int64_t)charge->sequence);
        pgargs_i64 (a, 5, charge->procs);
        pgargs_i64 (a, 6, charge->start);
        pgargs_i64 (a, 7, charge->end);
        pgargs_bool (a, 8, charge->final);
        pgargs_bool (a, 9, charge->successful);
        pgargs_i64 (a, 10, charge->rate_version);
        pgargs_i64 (a, 11, charge->rate_ppm);
        pgargs_i64 (a, 12, charge->amount);
        pgargs_i64 (a, 13, charge->total);
        pgargs_i64 (a, 14, charge->released);
        pgargs_text (a, 15, charge->formula);
        pgargs_i64 (a, 16, charge->refund_due);
        pgargs_bool (a, 17, charge->refund_due > 0);
        pgargs_i64 (a, 18, charge->cpu);
        pgargs_i64 (a, 19, charge->ran.nodes);
        pgargs_i64 (a, 20, charge->ran.memory_mb);
        pgargs_i64 (a, 21, charge->ran.submitted);
        pgargs_text (a, 22, charge->ran.local_user ? charge->ran.local_user : "");
        pgargs_text (a, 23, charge->ran.queue ? charge->ran.queue : "");
        for (uint32_t k = 0; k < charge->leg_count; k++) {
            pgargs_i64 (legs, 0, charge->id);
            pgargs_i64 (legs, 1, k);
            pgargs_i64 (legs, 2, charge->leg[k].allocation_id);
            pgargs_i64 (legs, 3, charge->leg[k].amount);
            pgargs_text (legs, 4, charge->leg[k].source);
        }
    }
    put_rows (w, ST_ADD_CHARGE, a);
    put_rows (w, ST_ADD_CHARGE_LEG, legs);
}

/* Legs are numbered within their operation; those of one operation follow one another. */
static void write_refunds (struct writer *w)
{
    struct pgargs *a = rows (w, "iiiiii");
    int64_t op = 0;
    uint32_t leg = 0;
    for (uint32_t i = 0; i < w->view->refunds.count; i++) {
        const struct ledger_refund *refund = w->view->refunds.item[i];
        leg = refund->op_id == op ? leg + 1 : 0;
        op = refund->op_id;
        pgargs_i64 (a, 0, op);
        pgargs_i64 (a, 1, leg);
        pgargs_i64 (a, 2, refund->charge_id);
        pgargs_i64 (a, 3, refund->charge_leg);
        pgargs_i64 (a, 4, refund->allocation_id);
        pgargs_i64 (a, 5, refund->amount);
    }
    put_rows (w, ST_ADD_REFUND, a);
}

static void write_recons (struct writer *w)
{
    struct pgargs *a = rows (w, "iittttitittiiiit"), *events = rows (w, "iittit");
    for (uint32_t i = 0; i < w->view->recons.count; i++) {
        const struct ledger_recon *row = w->view->recons.item[i];
        const struct ledger_finding *f = &row->finding;
        if (!row->is_new)
            continue;
        pgargs_i64 (a, 0, row->id);
        pgargs_i64 (a, 1, row->op_id);
        pgargs_text (a, 2, row->site);
        pgargs_text (a, 3, f->kind);
        pgargs_text (a, 4, f->site_job);
        pgargs_text (a, 5, f->component);
        pgargs_i64 (a, 6, f->incarnation);
        pgargs_text (a, 7, f->hold);
        pgargs_i64 (a, 8, f->charge_op);
        pgargs_text (a, 9, f->identity);
        pgargs_text (a, 10, f->account);
        pgargs_i64 (a, 11, f->amount);
        pgargs_i64 (a, 12, f->site_ps);
        pgargs_i64 (a, 13, f->bank_ps);
        pgargs_i64 (a, 14, f->since);
        pgargs_text (a, 15, f->text);
    }
    for (uint32_t i = 0; i < w->view->recon_events.count; i++) {
        const struct ledger_recon_event *event = w->view->recon_events.item[i];
        pgargs_i64 (events, 0, event->op_id);
        pgargs_i64 (events, 1, event->row_id);
        pgargs_text (events, 2, event->kind);
        pgargs_text (events, 3, event->owner);
        pgargs_i64 (events, 4, event->cured_op);
        pgargs_text (events, 5, event->note);
    }
    put_rows (w, ST_ADD_RECON, a);
    put_rows (w, ST_ADD_RECON_EVENT, events);
}

static void write_entries (struct writer *w)
{
    struct pgargs *a = rows (w, "iitiiiii");
    for (uint32_t i = 0; i < w->view->entries.count; i++) {
        const struct ledger_entry *entry = w->view->entries.item[i];
        pgargs_i64 (a, 0, entry->op_id);
        pgargs_i64 (a, 1, entry->leg);
        pgargs_text (a, 2, (char[2]){entry->layer, '\0'});
        pgargs_i64 (a, 3, entry->account_id);
        pgargs_i64 (a, 4, entry->allocation_id);
        pgargs_i64 (a, 5, entry->amount);
        pgargs_i64 (a, 6, entry->effective_at);
        pgargs_i64 (a, 7, w->view->now);
    }
    put_rows (w, ST_ADD_ENTRY, a);
}

static void write_rights (struct writer *w)
{
    struct pgargs *a = rows (w, "tiooiiiiii");
    for (uint32_t i = 0; i < w->view->sites.count; i++) {
        const struct ledger_site *site = w->view->sites.item[i];
        if (!site->right_op_id)
            continue;
        pgargs_text (a, 0, site->name);
        pgargs_i64 (a, 1, site->right_op_id);
        pgargs_bool (a, 2, site->claims);
        pgargs_bool (a, 3, site->refunds.on);
        pgargs_i64 (a, 4, site->refunds.cap);
        pgargs_i64 (a, 5, site->refunds.minimum);
        pgargs_i64 (a, 6, site->refunds.window);
        pgargs_i64 (a, 7, site->given.procs);
        pgargs_i64 (a, 8, site->given.memory_mb);
        pgargs_i64 (a, 9, site->given.overrun);
    }
    put_objects (w, OBJ_ADD_RIGHT, a);
}

static void write_acks (struct writer *w)
{
    struct pgargs *a = rows (w, "tit");
    for (uint32_t i = 0; i < w->view->sites.count; i++) {
        const struct ledger_site *site = w->view->sites.item[i];
        if (!site->dirty)
            continue;
        struct strbuf ahead = STRBUF_INIT;
        for (uint32_t k = 0; k < site->ahead_count; k++)
            strbuf_printf (&ahead, "%s%llu", k ? "," : "", (unsigned long long)site->ahead[k]);
        pgargs_text (a, 0, site->name);
        pgargs_i64 (a, 1, (int64_t)site->acked);
        pgargs_text (a, 2, strbuf_text (&ahead));
        strbuf_free (&ahead);
    }
    put_rows (w, ST_PUT_ACK, a);
}

void write_open (const struct ledger_view *view, const struct load *load, int64_t after,
                 struct pgloop *loop)
{
    pgbatch_add (loop, ST_BEGIN, NULL);
    if (after) {
        struct pgargs *block = pgargs_create (view->arena, "i");
        pgargs_i64 (block, 0, after);
        pgargs_seal (block);
        pgbatch_add (loop, ST_AFTER, block);
    }
    if (!load_is_lone_hold (load))
        load_check (load, loop);
    pgbatch_push (loop);
}

/* What is written as one statement is put there, and is gone. It comes first: nothing that is left is asked for by
 * any of it, and all of it may ask for the operation. */
static void add_together (struct writer *w, struct pgloop *loop)
{
    for (unsigned k = 0; k < BANK_WITH_COUNT; k++) {
        const struct pgwith *with = &bank_with[k];
        if (!pgwith_fits (with, w->put))
            continue;
        pgbatch_add_with (loop, k, w->put);
        for (unsigned i = 0; i < with->count; i++)
            w->put[with->stmt[i]] = NULL;
        return;
    }
}

/* Objects are made by PostgreSQL from their lines. Where nothing new was decided there is no block to hold any. */
static void write_objects (struct writer *w, int64_t ops, struct seal *seal)
{
    seal_begin (seal, ops > 0);
    for (unsigned object = 0; object < CONTENT_OBJECTS; object++)
        content_add_object (&seal->objects, object, w->object[object]);
    if (!seal->objects.len)
        return;
    struct pgargs *a = rows (w, "it");
    pgargs_i64 (a, 0, seal->tip.number + 1);
    pgargs_text (a, 1, strbuf_text (&seal->objects));
    put_rows (w, ST_ADD_CHANGE, a);
}

void write_rows (const struct ledger_view *view, const struct load *load, int64_t ops,
                 void (*early) (void *arg), struct write_rest *rest, struct seal *seal,
                 struct pgloop *loop)
{
    struct writer w = {.view = view, .is_new_hold = load_is_lone_hold (load)};
    write_ops (&w);
    if (view->admin) {
        write_people (&w);
        write_accounts (&w);
        write_grants (&w);
        write_freezes (&w);
        write_abouts (&w);
        write_rates (&w);
        write_rights (&w);
    }
    if (view->recons.count)
        write_recons (&w); /* charges open rows too */
    write_allocs (&w);
    write_refunds (&w);
    write_quotes (&w);
    write_holds (&w);
    write_signed (&w);
    write_usages (&w);
    write_charges (&w);
    write_entries (&w);
    write_acks (&w);
    write_objects (&w, ops, seal);
    memcpy (seal->written, w.put, sizeof (w.put));
    if (w.is_new_hold && !w.put[ST_ADD_NEW_HOLD]) /* refused */
        load_check (load, loop);
    load_check_ops (load, ops, loop);
    if (rest) {
        *rest = (struct write_rest){.balance = w.put[ST_PUT_BALANCE], .ack = w.put[ST_PUT_ACK]};
        w.put[ST_PUT_BALANCE] = w.put[ST_PUT_ACK] = NULL;
    }
    add_together (&w, loop);
    /* In the order of enum bank_stmt. */
    for (unsigned stmt = 0; stmt < BANK_STMT_COUNT; stmt++) {
        if (stmt == ST_ADD_ENTRY && early)
            pgbatch_mark (loop, early);
        if (w.put[stmt])
            pgbatch_add (loop, stmt, w.put[stmt]);
    }
    pgbatch_push (loop);
}

void write_close (const struct seal *seal, bool commit, struct pgloop *loop)
{
    if (seal)
        seal_send (seal, loop);
    if (!seal || commit)
        pgbatch_add (loop, seal ? ST_COMMIT : ST_ROLLBACK, NULL);
}

void write_last (const struct write_rest *rest, struct pgloop *loop)
{
    if (rest->balance)
        pgbatch_add (loop, ST_PUT_BALANCE, rest->balance);
    if (rest->ack)
        pgbatch_add (loop, ST_PUT_ACK, rest->ack);
    pgbatch_add (loop, ST_COMMIT, NULL);
}
