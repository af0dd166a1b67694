/* Accounts get other names, and projects other places in the tree. What was done under the old name, or there, stays the
 * account's; an old name goes on meaning it, also in jobs that were signed before, so nobody else can ever have it. */
#include <string.h>

#include "bank/core/ledger_impl.h"

void decide_account_rename (struct ledger_view *view, const struct ledger_request *req,
                            struct ledger_outcome *out)
{
    const char *to = req->rename.to;
    if (name_refused (view, "account", to, out))
        return;
    struct ledger_account *account = project_account (view, req->rename.name, out);
    const struct ledger_account *other = ledger_account_by_name (view, to);
    if (!account)
        return;
    if (other && (other != account || strcmp (account->name, to) == 0)) {
        outcome_refuse (view, out, ERR_EXISTS, true, "account %s %s", to,
                        strcmp (other->name, to) == 0
                            ? "exists already"
                            : arena_printf (view->arena, "is account %s now", other->name));
        return;
    }
    out->note = arena_printf (view->arena, "%s renamed to %s%s%s", account->name, to,
                              req->rename.reason[0] ? ": " : "", req->rename.reason);
    struct ledger_name *old = arena_new (view->arena, struct ledger_name);
    *old = (struct ledger_name){
        .op_id = view->next.op, .account_id = account->id, .name = account->name};
    vec_push (view, &view->names, old);
    account->name = to;
    account->name_dirty = true;
    ledger_account_also (view, account, to);
    about_add (view, "account", account->id);
    out->done.id = arena_printf (view->arena, "account.%lld", (long long)account->id);
}

/* Decided alone in its batch: the view's other projects and accounts still have their old places. */
void decide_project_move (struct ledger_view *view, const struct ledger_request *req,
                          struct ledger_outcome *out)
{
    const char *name = req->move.name, *up = req->move.parent;
    struct ledger_project *project = ledger_project_of (view, name);
    const struct ledger_project *parent = up[0] ? ledger_project_of (view, up) : NULL;
    if (!project || (up[0] && !parent)) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no project %s",
                        project ? up : name);
        return;
    }
    bool loop = parent == project;
    for (uint32_t i = 0; parent && i < parent->ancestor_count; i++)
        loop |= parent->ancestor[i] == project->id;
    if (loop) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "project %s is project %s, or below it: a loop", up, name);
        return;
    }
    if ((project->ancestor_count ? project->ancestor[0] : 0) == (parent ? parent->id : 0)) {
        outcome_refuse (view, out, ERR_EXISTS, true, "project %s is %s%s already", name,
                        parent ? "part of " : "part of none", up);
        return;
    }
    if (parent && parent->ancestor_count + 1 + project->height > LEDGER_TREE_DEPTH_MAX) {
        outcome_refuse (view, out, ERR_LIMIT, true, "projects below %s would be more than %d deep",
                        up, LEDGER_TREE_DEPTH_MAX);
        return;
    }
    int64_t *above = arena_array (view->arena, LEDGER_TREE_DEPTH_MAX + 1, sizeof (*above));
    project->ancestor_count = 0;
    if (parent) {
        above[0] = parent->id;
        memcpy (above + 1, parent->ancestor, parent->ancestor_count * sizeof (*above));
        project->ancestor_count = parent->ancestor_count + 1;
    }
    project->ancestor = above;
    project->parent_dirty = true;
    about_add (view, "project", project->id);
    out->note = arena_printf (view->arena, "%s moved to %s%s%s", name, up[0] ? up : "the top",
                              req->move.reason[0] ? ": " : "", req->move.reason);
    out->done.id = arena_printf (view->arena, "project.%lld", (long long)project->id);
}
