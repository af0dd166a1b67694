/* What people may do (nui-bank(8), WHO CAN DO WHAT TO WHOM): allocation managers act for the whole bank,
 * the leads of a project for it and the projects below it. Programs and offices are known by their
 * certificates' kind; the service asks that before anything comes here. */
#include <string.h>

#include "bank/core/ledger_impl.h"

const char *ledger_role_name (enum ledger_role role)
{
    return role == LEDGER_ROLE_MANAGER ? "manager" : "auditor";
}

static bool leads (const struct ledger_view *view, const char *identity, int64_t project_id)
{
    const struct ledger_person *person = ledger_person_of (view, identity);
    const struct ledger_membership *m =
        person ? ledger_membership_of (view, person->id, project_id) : NULL;
    return m && strcmp (m->role, "lead") == 0 && m->valid_from <= view->now &&
           view->now < m->valid_to;
}

/* Of a project, or of one above it. */
static bool leads_any (const struct ledger_view *view, const char *identity, int64_t project_id,
                       const int64_t *ancestor, uint32_t count)
{
    bool does = leads (view, identity, project_id);
    for (uint32_t i = 0; i < count && !does; i++)
        does = leads (view, identity, ancestor[i]);
    return does;
}

static bool leads_named (const struct ledger_view *view, const char *identity, const char *name)
{
    const struct ledger_project *p = name[0] ? ledger_project_of (view, name) : NULL;
    return p && leads_any (view, identity, p->id, p->ancestor, p->ancestor_count);
}

static bool leads_account (const struct ledger_view *view, const char *identity, const char *name)
{
    const struct ledger_account *a = ledger_account_by_name (view, name);
    return a && leads_any (view, identity, a->project_id, a->ancestor, a->ancestor_count);
}

/* The account that a split came from. */
static bool leads_source (const struct ledger_view *view, const char *identity, int64_t alloc_id)
{
    const struct ledger_alloc *alloc = ledger_alloc_by_id (view, alloc_id);
    const struct ledger_alloc *source = alloc ? ledger_alloc_by_id (view, alloc->split_from) : NULL;
    return source &&
           leads_account (view, identity, ledger_account_by_id (view, source->account_id)->name);
}

static bool leads_quote (const struct ledger_view *view, const char *identity, int64_t id)
{
    const struct ledger_pin *pin = ledger_pin_by_id (view, id);
    return pin && leads_any (view, identity, pin->project_id, pin->ancestor, pin->ancestor_count);
}

/* What somebody froze only they thaw, but for the bank's own. */
static bool thaws (const struct ledger_view *view, const struct ledger_request *req)
{
    const struct ledger_account *account = req->freeze.what == LEDGER_FREEZE_ACCOUNT
                                               ? ledger_account_by_name (view, req->freeze.name)
                                               : NULL;
    const struct ledger_project *project = req->freeze.what == LEDGER_FREEZE_PROJECT
                                               ? ledger_project_of (view, req->freeze.name)
                                               : NULL;
    int64_t id = account ? account->id : project ? project->id : req->freeze.grant_id;
    const struct ledger_freeze *freeze = ledger_freeze_of (view, req->freeze.what, id);
    return !req->freeze.undo || !freeze || strcmp (freeze->who, req->client) == 0;
}

static bool may_as_lead (const struct ledger_view *view, const struct ledger_request *req,
                         const struct subject *subject)
{
    switch (subject->of) {
    case OF_PROJECT:
        return leads_named (view, req->client, subject_name (subject, req));
    case OF_ACCOUNT:
        return leads_account (view, req->client, subject_name (subject, req));
    case OF_ALLOC:
        return leads_source (view, req->client, subject_number (subject, req));
    case OF_QUOTE:
        return leads_quote (view, req->client, subject_number (subject, req));
    case OF_FROZEN:
        return req->freeze.what == LEDGER_FREEZE_ACCOUNT &&
               leads_account (view, req->client, req->freeze.name) && thaws (view, req);
    default:
        return false;
    }
}

static bool is_manager (const struct ledger_view *view, const char *identity)
{
    const struct ledger_person *person = ledger_person_of (view, identity);
    return person && (person->roles & LEDGER_ROLE_MANAGER);
}

/* ---- agencies ---- */

static bool made_by (const char *makers, const char *agency)
{
    size_t len = strlen (agency);
    for (const char *at = makers; at && *at; at = strchr (at + 1, ','))
        if (strncmp (at + 1, agency, len) == 0 && at[1 + len] == ',')
            return true;
    return false;
}

static bool agency_made (const struct ledger_view *view, const char *agency, const char *name)
{
    const struct ledger_project *project = ledger_project_of (view, name);
    return !project || made_by (project->makers, agency);
}

/* The same of an account's project. */
static bool agency_made_of (const struct ledger_view *view, const char *agency, const char *name)
{
    const struct ledger_account *account = ledger_account_by_name (view, name);
    return !account || made_by (account->makers, agency);
}

/* Its project is the agency's own, or nothing is in it that another gave. */
static bool agency_pays (const struct ledger_view *view, const char *agency, const char *name)
{
    const struct ledger_account *account = ledger_account_by_name (view, name);
    bool own = true;
    if (!account || made_by (account->makers, agency))
        return true;
    for (uint32_t i = 0; i < account->alloc_count; i++)
        own = own && strcmp (account->alloc[i]->giver, agency) == 0;
    return own && account->alloc_count;
}

static bool agency_gave (const struct ledger_view *view, const char *agency, int64_t alloc_id)
{
    const struct ledger_alloc *alloc = ledger_alloc_by_id (view, alloc_id);
    return !alloc || strcmp (alloc->giver, agency) == 0;
}

static bool agency_gave_grant (const struct ledger_view *view, const char *agency, int64_t id)
{
    const struct ledger_grant *grant = ledger_grant_by_id (view, id);
    return !grant || strcmp (grant->funder, agency) == 0;
}

static bool agency_paid (const struct ledger_view *view, const char *agency, int64_t charge_op)
{
    const struct ledger_paid *paid = ledger_paid_of (view, charge_op);
    bool own = true;
    for (uint32_t i = 0; paid && i < paid->leg_count; i++) {
        const struct ledger_alloc *alloc = ledger_alloc_by_id (view, paid->leg[i].allocation_id);
        own = own && alloc && strcmp (alloc->giver, agency) == 0;
    }
    return own;
}

static bool agency_freezes (const struct ledger_view *view, const struct ledger_request *req)
{
    const char *name = req->freeze.name;
    bool own = req->freeze.what == LEDGER_FREEZE_GRANT
                   ? agency_gave_grant (view, req->agency, req->freeze.grant_id)
               : req->freeze.what == LEDGER_FREEZE_ACCOUNT ? agency_pays (view, req->agency, name)
               : req->freeze.what == LEDGER_FREEZE_PROJECT ? agency_made (view, req->agency, name)
                                                           : false;
    return own && thaws (view, req);
}

/* Own as it is: also in an own project nothing that others gave goes. */
static bool agency_pays_all (const struct ledger_view *view, const char *agency, const char *name)
{
    const struct ledger_account *account = ledger_account_by_name (view, name);
    bool own = account != NULL;
    for (uint32_t i = 0; own && i < account->alloc_count; i++)
        own = strcmp (account->alloc[i]->giver, agency) == 0 ||
              (account->alloc[i]->posted == 0 && account->alloc[i]->held == 0);
    return !account || (own && agency_pays (view, agency, name));
}

/* An agency's are what it gave and the projects that it made, with those below; what is not there at all is
 * refused as that. Withdrawals, transfers and splits take what it gave: see shares_free. */
static bool is_agencys (const struct ledger_view *view, const struct ledger_request *req,
                        const struct subject *subject)
{
    switch (subject->of) {
    case OF_PROJECT:
        return agency_made (view, req->agency, subject_name (subject, req));
    case OF_ACCOUNT:
        return agency_made_of (view, req->agency, subject_name (subject, req));
    case OF_WHOLE:
        return agency_pays_all (view, req->agency, subject_name (subject, req));
    case OF_ALLOC:
        return agency_gave (view, req->agency, subject_number (subject, req));
    case OF_GRANT:
        return agency_gave_grant (view, req->agency, subject_number (subject, req));
    case OF_CHARGE:
        return agency_paid (view, req->agency, subject_number (subject, req));
    case OF_FROZEN:
        return agency_freezes (view, req);
    default:
        return subject->of == OF_NOTHING;
    }
}

/* Whose quote it is says the signature, and of a kept one the bank; of one that is not there it says that. */
static bool may_as_asker (const struct ledger_view *view, const struct ledger_request *req,
                          const struct operation *row)
{
    const struct ledger_pin *pin =
        row->lead.of == OF_QUOTE ? ledger_pin_by_id (view, subject_number (&row->lead, req)) : NULL;
    return row->asker && (!pin || strcmp (pin->identity, req->client) == 0);
}

bool rights_refused (struct ledger_view *view, const struct ledger_request *req,
                     const struct operation *row, struct ledger_outcome *out)
{
    if (req->agency &&
        !(is_agencys (view, req, &row->agency[0]) && is_agencys (view, req, &row->agency[1]))) {
        outcome_refuse (
            view, out, ERR_DENIED, false,
            "%s is not for agency %.80s: it is about what others gave, a project of others, or all",
            row->name, req->agency);
        return true;
    }
    if (!req->by_user || may_as_asker (view, req, row) ||
        (row->manager && is_manager (view, req->client)) || may_as_lead (view, req, &row->lead))
        return false;
    outcome_refuse (
        view, out, ERR_DENIED, false,
        "%s is not for %.200s: neither %san allocation manager nor a lead of the project",
        row->name, req->client, row->lead.of == OF_QUOTE ? "the quote's user nor " : "");
    return true;
}

void decide_role (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    struct ledger_person *person = ledger_person_of (view, req->role.identity);
    const char *role = ledger_role_name ((enum ledger_role)req->role.role);
    out->note = arena_printf (view->arena, "%s %s %s %s", req->role.identity,
                              req->role.remove ? "is no longer" : "is", role, "of the bank");
    if (!person) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no user %s", req->role.identity);
        return;
    }
    if (((person->roles & (unsigned)req->role.role) == 0) == req->role.remove) {
        outcome_refuse (view, out, ERR_EXISTS, true, "%s is %s %s already", req->role.identity,
                        req->role.remove ? "no" : "an", role);
        return;
    }
    person->roles ^= (unsigned)req->role.role;
    struct ledger_role_change *change = arena_new (view->arena, struct ledger_role_change);
    *change = (struct ledger_role_change){.op_id = view->next.op,
                                          .person_id = person->id,
                                          .role = (enum ledger_role)req->role.role,
                                          .given = !req->role.remove};
    vec_push (view, &view->role_changes, change);
    out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
}
