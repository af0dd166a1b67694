/* What people may do (nui-bank(8), WHO MAY DO WHAT): allocation managers act for the whole bank,
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

static bool leads_quote (const struct ledger_view *view, const char *identity, int64_t id)
{
    const struct ledger_pin *pin = ledger_pin_by_id (view, id);
    return pin && leads_any (view, identity, pin->project_id, pin->ancestor, pin->ancestor_count);
}

static bool may_as_lead (const struct ledger_view *view, const struct ledger_request *req)
{
    switch (req->kind) {
    case LEDGER_PROJECT_CREATE:
        return leads_named (view, req->client, req->project.parent);
    case LEDGER_MEMBER:
        return leads_named (view, req->client, req->member.project);
    case LEDGER_ACCOUNT_CREATE:
        return leads_named (view, req->client, req->account.project);
    case LEDGER_ACCOUNT_MODIFY:
        return leads_account (view, req->client, req->account.name);
    case LEDGER_SPLIT:
        return leads_account (view, req->client, req->transfer.from);
    case LEDGER_QUOTE_CANCEL:
        return leads_quote (view, req->client, req->quote_cancel.id);
    default:
        return false;
    }
}

static bool may_as_manager (const struct ledger_view *view, const struct ledger_request *req)
{
    const struct ledger_person *person = ledger_person_of (view, req->client);
    if (!person || !(person->roles & LEDGER_ROLE_MANAGER))
        return false;
    switch (req->kind) {
    case LEDGER_PROJECT_CREATE:
    case LEDGER_USER_CREATE:
    case LEDGER_MEMBER:
    case LEDGER_ACCOUNT_CREATE:
    case LEDGER_ACCOUNT_MODIFY:
    case LEDGER_ACCOUNT_CLOSE:
    case LEDGER_DEPOSIT:
    case LEDGER_WITHDRAW:
    case LEDGER_TRANSFER:
    case LEDGER_SPLIT:
    case LEDGER_CARRY_FORWARD:
    case LEDGER_EXPIRE:
    case LEDGER_REFUND:
    case LEDGER_LIMIT_SET:
    case LEDGER_QUOTE_CANCEL:
        return true;
    default:
        return false;
    }
}

/* Whose quote it is says the signature, and of a kept one the bank; of one that is not there it says that. */
static bool may_as_asker (const struct ledger_view *view, const struct ledger_request *req)
{
    if (req->kind != LEDGER_QUOTE_CANCEL)
        return req->kind == LEDGER_QUOTE;
    const struct ledger_pin *pin = ledger_pin_by_id (view, req->quote_cancel.id);
    return !pin || strcmp (pin->identity, req->client) == 0;
}

bool rights_refused (struct ledger_view *view, const struct ledger_request *req,
                     struct ledger_outcome *out)
{
    if (!req->by_user || may_as_asker (view, req) || may_as_manager (view, req) ||
        may_as_lead (view, req))
        return false;
    outcome_refuse (view, out, ERR_DENIED, false,
                    "%s is not for %.200s: neither %san allocation manager nor a lead of the project",
                    ledger_kind_name (req->kind), req->client,
                    req->kind == LEDGER_QUOTE_CANCEL ? "the quote's user nor " : "");
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
