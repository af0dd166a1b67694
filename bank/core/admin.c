/* What agencies and operators do: projects, people, accounts, deposits, rates. */
#include <string.h>

#include "bank/core/ledger_impl.h"

static const char *id_text (struct ledger_view *view, const char *prefix, int64_t id)
{
    return arena_printf (view->arena, "%s.%lld", prefix, (long long)id);
}

void decide_project (struct ledger_view *view, const struct ledger_request *req,
                     struct ledger_outcome *out)
{
    if (name_refused (view, "project", req->project.name, out))
        return;
    out->note = req->project.name;
    if (ledger_project_of (view, req->project.name)) {
        outcome_refuse (view, out, ERR_EXISTS, true, "project %s exists already",
                        req->project.name);
        return;
    }
    const struct ledger_project *parent =
        req->project.parent[0] ? ledger_project_of (view, req->project.parent) : NULL;
    if (req->project.parent[0] && !parent) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no project %s",
                        req->project.parent);
        return;
    }
    if (parent && parent->ancestor_count == LEDGER_TREE_DEPTH_MAX) {
        outcome_refuse (view, out, ERR_LIMIT, true, "project %s would be more than %d deep",
                        req->project.name, LEDGER_TREE_DEPTH_MAX);
        return;
    }
    struct ledger_project *project =
        ledger_add_project (view, view->next.project++, req->project.name);
    if (parent) {
        int64_t *above = arena_array (view->arena, parent->ancestor_count + 1, sizeof (*above));
        above[0] = parent->id;
        if (parent->ancestor_count)
            memcpy (above + 1, parent->ancestor, parent->ancestor_count * sizeof (*above));
        project->ancestor = above;
        project->ancestor_count = parent->ancestor_count + 1;
    }
    project->makers = arena_printf (view->arena, "%s%s%s", parent ? parent->makers : ",",
                                    req->agency ? req->agency : "", req->agency ? "," : "");
    project->description = req->project.description;
    project->is_new = true;
    project->op_id = view->next.op;
    out->done.id = id_text (view, "project", project->id);
}

void decide_user (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    out->note = req->user.identity;
    if (ledger_person_of (view, req->user.identity)) {
        outcome_refuse (view, out, ERR_EXISTS, true, "user %s exists already", req->user.identity);
        return;
    }
    struct ledger_person *person =
        ledger_add_person (view, view->next.person++, req->user.identity);
    person->is_new = true;
    person->op_id = view->next.op;
    out->done.id = id_text (view, "user", person->id);
}

static void membership_end (struct ledger_view *view, struct ledger_membership *m)
{
    m->valid_to = m->valid_from > view->now ? m->valid_from : view->now;
    m->dirty = true;
}

void decide_member (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out)
{
    struct ledger_project *project = ledger_project_of (view, req->member.project);
    const struct ledger_person *person = ledger_person_of (view, req->member.identity);
    const char *role = req->member.role[0] ? req->member.role : "member";
    if (strcmp (role, "member") != 0 && strcmp (role, "lead") != 0) {
        outcome_refuse (view, out, ERR_INVALID, false, "role '%s' is neither member nor lead",
                        role);
        return;
    }
    out->note = arena_printf (view->arena, "%s %s %s as %s", req->member.remove ? "remove" : "add",
                              req->member.identity, req->member.project, role);
    if (!project || !person) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no %s %s",
                        project ? "user" : "project",
                        project ? req->member.identity : req->member.project);
        return;
    }
    struct ledger_membership *m = ledger_membership_of (view, person->id, project->id);
    if (m && m->valid_to != TIME_US_MAX)
        m = NULL;
    bool led = m && strcmp (m->role, "lead") == 0,
         leads = !req->member.remove && strcmp (role, "lead") == 0;
    if (led && !leads && project->leads == 1 && strcmp (req->client, req->member.identity) == 0) {
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "%s is the last lead of project %s: make somebody else one first",
                        req->member.identity, req->member.project);
        return;
    }
    if (req->member.remove) {
        if (!m) {
            outcome_refuse (view, out, ERR_NOT_FOUND, true, "%s is not a member of project %s",
                            req->member.identity, req->member.project);
            return;
        }
        membership_end (view, m);
        project->leads -= led;
        out->done.id = id_text (view, "membership", m->id);
        return;
    }
    if (m && strcmp (m->role, role) == 0) {
        outcome_refuse (view, out, ERR_EXISTS, true, "%s is a %s of project %s already",
                        req->member.identity, role, req->member.project);
        return;
    }
    project->leads += leads - led;
    if (m)
        membership_end (view, m);
    m = ledger_add_membership (view, view->next.membership++, person->id, project->id);
    m->role = role;
    m->valid_from = view->now;
    m->valid_to = TIME_US_MAX;
    m->is_new = true;
    m->op_id = view->next.op;
    out->done.id = id_text (view, "membership", m->id);
}

/* The longest chain of fallbacks below an account; more than the bound when it runs into itself. */
static uint32_t chain_depth (const struct ledger_view *view, const struct ledger_account *account,
                             uint32_t depth)
{
    uint32_t deepest = depth;
    if (depth > LEDGER_FALLBACK_DEPTH_MAX)
        return depth;
    for (uint32_t i = 0; i < account->fallback_count; i++) {
        const struct ledger_account *next =
            ledger_account_by_id (view, account->fallback[i].account_id);
        uint32_t below = next ? chain_depth (view, next, depth + 1) : depth + 1;
        deepest = below > deepest ? below : deepest;
    }
    return deepest;
}

static bool reaches (const struct ledger_view *view, const struct ledger_account *from, int64_t id,
                     uint32_t depth)
{
    if (from->id == id)
        return true;
    for (uint32_t i = 0; depth < LEDGER_FALLBACK_DEPTH_MAX && i < from->fallback_count; i++) {
        const struct ledger_account *next =
            ledger_account_by_id (view, from->fallback[i].account_id);
        if (next && reaches (view, next, id, depth + 1))
            return true;
    }
    return false;
}

/* What forbids one fallback of an account (F2); lists of all sites count, so that no path at all
 * runs in a circle. id is the account's own, 0 when it is being made. */
static bool fallback_refused (struct ledger_view *view, const char *account, int64_t id,
                              const char *name, struct ledger_outcome *out)
{
    const struct ledger_account *fallback = ledger_account_by_name (view, name);
    if (strcmp (name, account) == 0 || (fallback && id && reaches (view, fallback, id, 1)))
        outcome_refuse (view, out, ERR_CONFLICT, true,
                        "fallback %s leads back to account %s: a loop", name, account);
    else if (!fallback || !fallback->project_id || fallback->is_debt || fallback->closed)
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no account %s to fall back to",
                        name);
    else if (chain_depth (view, fallback, 1) > LEDGER_FALLBACK_DEPTH_MAX)
        outcome_refuse (view, out, ERR_LIMIT, true,
                        "fallbacks through %s would be more than %d deep", name,
                        LEDGER_FALLBACK_DEPTH_MAX);
    else
        return false;
    return true;
}

bool same_account (const struct ledger_view *view, const char *a, const char *b)
{
    const struct ledger_account *account = ledger_account_by_name (view, a);
    return strcmp (a, b) == 0 || (account && account == ledger_account_by_name (view, b));
}

/* Whatever the accounts are: too many fallbacks, one twice, scopes that are none. */
static bool account_malformed (struct ledger_view *view, const struct ledger_request *req,
                               struct ledger_outcome *out)
{
    uint32_t count = req->account.fallback_count;
    const struct ledger_fallback_ask *ask = req->account.fallbacks;
    if (count > LEDGER_FALLBACKS_MAX) {
        outcome_refuse (view, out, ERR_LIMIT, false, "%u fallbacks, an account has at most %d",
                        count, LEDGER_FALLBACKS_MAX);
        return true;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (same_account (view, ask[k].account, ask[i].account) &&
                strcmp (ask[k].site, ask[i].site) == 0) {
                outcome_refuse (view, out, ERR_INVALID, false, "fallback %s is named twice",
                                ask[i].account);
                return true;
            }
    return scopes_refused (view, &req->account.scopes, true, out);
}

/* Turns names into ids; refuses unknown ones, loops and chains that are too long. */
static struct ledger_fallback *fallbacks_resolve (struct ledger_view *view,
                                                  const struct ledger_request *req, int64_t id,
                                                  struct ledger_outcome *out)
{
    uint32_t count = req->account.fallback_count;
    const struct ledger_fallback_ask *ask = req->account.fallbacks;
    struct ledger_fallback *list = arena_array (view->arena, count, sizeof (*list));
    for (uint32_t i = 0; i < count; i++) {
        if (fallback_refused (view, req->account.name, id, ask[i].account, out))
            return NULL;
        list[i] = (struct ledger_fallback){ledger_account_by_name (view, ask[i].account)->id,
                                           ask[i].site, ask[i].qos};
    }
    return list;
}

void decide_account_create (struct ledger_view *view, const struct ledger_request *req,
                            struct ledger_outcome *out)
{
    if (name_refused (view, "account", req->account.name, out) ||
        account_malformed (view, req, out))
        return;
    out->note = req->account.name;
    const struct ledger_project *project = ledger_project_of (view, req->account.project);
    if (!project) {
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no project %s",
                        req->account.project);
        return;
    }
    if (ledger_account_by_name (view, req->account.name)) {
        outcome_refuse (view, out, ERR_EXISTS, true, "account %s exists already",
                        req->account.name);
        return;
    }
    struct ledger_fallback *fallback = fallbacks_resolve (view, req, 0, out);
    if (!fallback)
        return;
    struct ledger_account *account =
        ledger_add_account (view, view->next.account++, req->account.name);
    account->project_id = project->id;
    account->project = project->name;
    account->makers = project->makers;
    account->ancestor = project->ancestor;
    account->ancestor_count = project->ancestor_count;
    account->fallback = fallback;
    account->fallback_count = req->account.fallback_count;
    account->scopes = req->account.scopes;
    account->is_new = true;
    account->op_id = view->next.op;
    account->fallbacks_dirty = account->scopes_dirty = true;
    out->done.id = id_text (view, "account", account->id);
}

void decide_account_modify (struct ledger_view *view, const struct ledger_request *req,
                            struct ledger_outcome *out)
{
    out->note = req->account.name;
    if (account_malformed (view, req, out))
        return;
    struct ledger_account *account = project_account (view, req->account.name, out);
    if (!account)
        return;
    struct ledger_fallback *fallback = fallbacks_resolve (view, req, account->id, out);
    if (!fallback)
        return;
    if (!req->account.keep_fallbacks) {
        account->fallback = fallback;
        account->fallback_count = req->account.fallback_count;
        account->fallbacks_dirty = true;
    }
    if (!req->account.keep_scopes) {
        account->scopes = req->account.scopes;
        account->scopes_dirty = true;
    }
    out->done.id = id_text (view, "account", account->id);
}

bool deposit_malformed (struct ledger_view *view, const struct ledger_request *req,
                        struct ledger_outcome *out)
{
    time_us from = req->deposit.valid_from ? req->deposit.valid_from : view->now;
    time_us to = req->deposit.valid_to ? req->deposit.valid_to : TIME_US_MAX;
    if (amount_refused (view, "deposit", req->deposit.amount, out))
        return true;
    if (req->deposit.valid_from >= 0 && req->deposit.valid_to >= 0 && to > from && to > view->now)
        return scopes_refused (view, &req->deposit.scopes, false, out);
    outcome_refuse (view, out, ERR_INVALID, false,
                    "deposit: the allocation would end before it begins, or has ended already");
    return true;
}

/* Of a deposit of an earlier grant. */
static bool deposit_grant_refused (struct ledger_view *view, const struct ledger_request *req,
                                   struct ledger_outcome *out)
{
    long long id = (long long)req->deposit.grant_id;
    const struct ledger_grant *grant = ledger_grant_by_id (view, id);
    if (id == 0 || (grant && !grant->revoked_op_id))
        return false;
    if (grant)
        outcome_refuse (view, out, ERR_CONFLICT, true, "grant.%lld was revoked", id);
    else
        outcome_refuse (view, out, ERR_NOT_FOUND, true, "there is no grant grant.%lld", id);
    return true;
}

/* One of the same reference, which nobody said is another. */
static bool deposited_before (struct ledger_view *view, const struct ledger_request *req,
                              const struct ledger_account *account, struct ledger_outcome *out)
{
    bool looks = req->kind == LEDGER_DEPOSIT && req->deposit.reference[0] && !req->deposit.again;
    for (uint32_t i = 0; looks && i < account->alloc_count; i++) {
        if (strcmp (account->alloc[i]->reference, req->deposit.reference) != 0)
            continue;
        outcome_refuse (
            view, out, ERR_EXISTS, true,
            "account %s has got a deposit of reference %s already, alloc.%lld: say that this is another one (--again)",
            account->name, req->deposit.reference, (long long)account->alloc[i]->id);
        return true;
    }
    return false;
}

void decide_deposit (struct ledger_view *view, const struct ledger_request *req,
                     struct ledger_outcome *out)
{
    time_us from = req->deposit.valid_from ? req->deposit.valid_from : view->now;
    time_us to = req->deposit.valid_to ? req->deposit.valid_to : TIME_US_MAX;
    credit_micro amount = req->deposit.amount;

    out->note = req->deposit.description;
    if (deposit_malformed (view, req, out))
        return;
    struct ledger_account *account = project_account (view, req->deposit.account, out);
    if (!account || too_much (view, "deposit", account, amount, out) ||
        deposit_grant_refused (view, req, out) || deposited_before (view, req, account, out))
        return;
    struct ledger_alloc *alloc =
        ledger_add_alloc (view, view->next.allocation++, account->id, from, to);
    alloc->granted = amount;
    alloc->posted = amount;
    alloc->description = req->deposit.description;
    alloc->grant_id = req->deposit.grant_id;
    alloc->reference = req->kind == LEDGER_DEPOSIT ? req->deposit.reference : "";
    alloc->giver = req->deposit.grant_id ? ledger_grant_by_id (view, alloc->grant_id)->funder
                   : req->agency         ? req->agency
                                         : "";
    alloc->is_new = true;
    alloc->op_id = view->next.op;
    ledger_alloc_scopes (view, alloc, req->deposit.scopes);
    alloc_touch (view, alloc);
    struct journal j = {.view = view, .effective_at = view->now};
    journal_move (&j, 'P', LEDGER_ID_GRANTS, LEDGER_ID_GRANTS, account->id, alloc->id, amount);
    if (from <= view->now)
        debt_repay (view, &j, account, alloc, alloc->posted);
    journal_close (&j);
    out->done.id = id_text (view, "alloc", alloc->id);
}

static bool refunds_refused (struct ledger_view *view, const struct ledger_refunds *r,
                             struct ledger_outcome *out)
{
    bool good = r->cap >= 0 && r->cap <= PRICE_TIME_US_MAX && r->window >= 0 &&
                r->window <= PRICE_TIME_US_MAX && r->minimum >= 0 && r->minimum <= PRICE_AMOUNT_MAX;
    if (!good)
        outcome_refuse (view, out, ERR_INVALID, false,
                        "site: a bound of refunds is negative or more than ten years");
    return !good;
}

static const char *refunds_text (struct ledger_view *view, const struct ledger_refunds *r)
{
    char a[QUANTITY_TEXT_MAX];
    const char *text = r->on ? "what it failed is given back" : "what it failed is charged";
    if (r->on && r->cap)
        text = arena_printf (view->arena, "%s, at most what %s cost", text,
                             duration_format (r->cap, a));
    if (r->on && r->minimum)
        text = arena_printf (view->arena, "%s, from %s credits on", text,
                             credit_format (r->minimum, a));
    if (r->on && r->window)
        text = arena_printf (view->arena, "%s, charged within %s", text,
                             duration_format (r->window, a));
    return text;
}

static bool given_refused (struct ledger_view *view, const struct ledger_nodes_given *given,
                           struct ledger_outcome *out)
{
    bool good = given->procs >= 0 && given->procs <= PRICE_PROCS_MAX && given->memory_mb >= 0 &&
                given->memory_mb <= INT64_C (1) << 50 && given->overrun >= 0 &&
                given->overrun <= PRICE_TIME_US_MAX;
    if (!good)
        outcome_refuse (
            view, out, ERR_INVALID, false,
            "site: processors of a node, memory of a processor, or how long jobs may run on, are out of bounds");
    return !good;
}

static void given_set (const struct ledger_request *req, struct ledger_nodes_given *given)
{
    if (req->site.set_procs)
        given->procs = req->site.given.procs;
    if (req->site.set_memory)
        given->memory_mb = req->site.given.memory_mb;
    if (req->site.set_overrun)
        given->overrun = req->site.given.overrun;
}

static const char *given_text (struct ledger_view *view, const struct ledger_nodes_given *given)
{
    char a[QUANTITY_TEXT_MAX];
    const char *text = "";
    if (given->procs)
        text = arena_printf (view->arena, "; gives whole nodes of %lld processors",
                             (long long)given->procs);
    if (given->memory_mb)
        text = arena_printf (view->arena, "%s; %lld MB go with a processor", text,
                             (long long)given->memory_mb);
    if (given->overrun)
        text = arena_printf (view->arena, "%s; jobs may run on for %s", text,
                             duration_format (given->overrun, a));
    return text;
}

void decide_site (struct ledger_view *view, const struct ledger_request *req,
                  struct ledger_outcome *out)
{
    const struct ledger_refunds *asked = &req->site.refunds;
    if (name_refused (view, "site", req->site.site, out) || refunds_refused (view, asked, out) ||
        given_refused (view, &req->site.given, out))
        return;
    struct ledger_site *site = ledger_site_of (view, req->site.site);
    out->site = site->name;
    if (!req->site.keep_claims)
        site->claims = req->site.claims;
    if (!req->site.keep_refunds)
        site->refunds.on = asked->on;
    if (!req->site.keep_cap)
        site->refunds.cap = asked->cap;
    if (!req->site.keep_minimum)
        site->refunds.minimum = asked->minimum;
    if (!req->site.keep_window)
        site->refunds.window = asked->window;
    given_set (req, &site->given);
    site->right_op_id = view->next.op;
    out->note = arena_printf (view->arena, "may %sname users of jobs that nobody signed; %s%s",
                              site->claims ? "" : "not ", refunds_text (view, &site->refunds),
                              given_text (view, &site->given));
    out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
}

/* Nothing of the ledger changes: that it was said, by whom and why, is what is recorded. */
void decide_clock (struct ledger_view *view, const struct ledger_request *req,
                   struct ledger_outcome *out)
{
    char ahead[QUANTITY_TEXT_MAX];
    out->note = arena_printf (view->arena, "the clock, %s ahead, is right: %s",
                              duration_format (req->clock.ahead, ahead), req->clock.reason);
    out->done.id = arena_printf (view->arena, "op.%lld", (long long)view->next.op);
}
