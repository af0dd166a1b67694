/* Users, accounts, projects and grants that are frozen: by whom, why, since when. Nothing new is promised for them;
 * what runs goes on, its charges too, and credits that jobs give back come back. The service asks who may (rights.c);
 * nothing here moves credits. */

#include "bank/core/ledger_impl.h"

const char *ledger_freezable_name (enum ledger_freezable what)
{
    static const char *const name[LEDGER_FREEZABLES] = {"user", "account", "project", "grant"};
    return name[what];
}

const struct ledger_freeze *ledger_freeze_of (const struct ledger_view *view,
                                              enum ledger_freezable what, int64_t id)
{
    for (uint32_t i = view->freezes.count; i > 0; i--) {
        const struct ledger_freeze *freeze = view->freezes.item[i - 1];
        if (freeze->what == what && freeze->id == id)
            return freeze->frozen ? freeze : NULL;
    }
    return NULL;
}

static const char *freeze_text (const struct ledger_view *view, const struct ledger_freeze *freeze)
{
    char since[QUANTITY_TEXT_MAX];
    return arena_printf (view->arena, "%s %s is frozen since %s by %s: %s",
                         ledger_freezable_name (freeze->what), freeze->name,
                         time_format_iso (freeze->since, since), freeze->who, freeze->reason);
}

const char *freeze_of (const struct ledger_view *view, const struct ledger_account *account,
                       const char *identity)
{
    const struct ledger_person *person =
        identity && view->freezes.count ? ledger_person_of (view, identity) : NULL;
    const struct ledger_freeze *freeze = NULL;
    if (view->freezes.count == 0)
        return NULL;
    freeze = person ? ledger_freeze_of (view, LEDGER_FREEZE_USER, person->id) : NULL;
    if (!freeze)
        freeze = ledger_freeze_of (view, LEDGER_FREEZE_ACCOUNT, account->id);
    if (!freeze)
        freeze = ledger_freeze_of (view, LEDGER_FREEZE_PROJECT, account->project_id);
    for (uint32_t i = 0; i < account->ancestor_count && !freeze; i++)
        freeze = ledger_freeze_of (view, LEDGER_FREEZE_PROJECT, account->ancestor[i]);
    return freeze ? freeze_text (view, freeze) : NULL;
}

const char *freeze_of_grant (const struct ledger_view *view, const struct ledger_alloc *alloc)
{
    const struct ledger_freeze *freeze =
        alloc->grant_id && view->freezes.count
            ? ledger_freeze_of (view, LEDGER_FREEZE_GRANT, alloc->grant_id)
            : NULL;
    return freeze ? freeze_text (view, freeze) : NULL;
}

/* The number of what is meant, and what people call it; false when there is none. */
static bool freeze_target (struct ledger_view *view, const struct ledger_request *req,
                           int64_t *id_out, const char **name_out)
{
    const char *name = req->freeze.name;
    const struct ledger_person *person;
    const struct ledger_account *account;
    const struct ledger_project *project;
    *id_out = 0;
    *name_out = name;
    switch (req->freeze.what) {
    case LEDGER_FREEZE_USER:
        *id_out = (person = ledger_person_of (view, name)) ? person->id : 0;
        break;
    case LEDGER_FREEZE_ACCOUNT:
        account = ledger_account_by_name (view, name);
        *id_out = account && account->project_id && !account->is_debt ? account->id : 0;
        break;
    case LEDGER_FREEZE_PROJECT:
        *id_out = (project = ledger_project_of (view, name)) ? project->id : 0;
        break;
    case LEDGER_FREEZE_GRANT:
        *name_out = arena_printf (view->arena, "grant.%lld", (long long)req->freeze.grant_id);
        *id_out = ledger_grant_by_id (view, req->freeze.grant_id) ? req->freeze.grant_id : 0;
        break;
    case LEDGER_FREEZABLES:
        break;
    }
    return *id_out != 0;
}

void decide_freeze (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    const char *what = ledger_freezable_name (req->freeze.what), *name;
    int64_t id;
    if (!req->freeze.undo && !req->freeze.reason[0]) {
        outcome_refuse (view, out, ERR_INVALID, false, "freeze: say why, with a reason");
        return;
    }
    if (!freeze_target (view, req, &id, &name)) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no %s %s", what, name);
        return;
    }
    const struct ledger_freeze *now = ledger_freeze_of (view, req->freeze.what, id);
    if ((now != NULL) != req->freeze.undo) {
        outcome_refuse (view, out, ERR_EXISTS, true, "%s",
                        now ? freeze_text (view, now)
                            : arena_printf (view->arena, "%s %s is not frozen", what, name));
        return;
    }
    struct ledger_freeze *freeze = ledger_add_freeze (view, req->freeze.what, id);
    freeze->name = name;
    freeze->reason = req->freeze.reason;
    freeze->who = req->client;
    freeze->since = view->now;
    freeze->frozen = !req->freeze.undo;
    freeze->op_id = view->next.op;
    freeze->is_new = true;
    out->note = arena_printf (view->arena, "%s %s %s%s%s", what, name,
                              freeze->frozen ? "frozen" : "no longer frozen",
                              freeze->reason[0] ? ": " : "", freeze->reason);
    out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
}
