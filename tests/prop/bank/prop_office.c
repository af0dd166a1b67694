/* Random operations of agencies, allocation managers, leads and operators. */
#include <stdio.h>

#include "tests/prop/bank/prop.h"

static const char *const found_job[2 * M_FINDINGS] = {"f0", "f1", "f2", "f3",
                                                      "f4", "f5", "f6", "f7"};
static const char *const kinds[M_KINDS] = {"LATE", "DUPLICATE", "AMOUNT_DIFF"};

static void make_split (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account = draw_account (r), other = draw_account (r), alloc = draw_alloc (r, account);
    long long amount = (long long)draw (r, 900) * 100000 + 1;
    long long begin = one_in (r, 4) ? m->now + (long long)draw (r, 50) - 10 : 0;
    long long end = one_in (r, 4) ? m->now + (long long)draw (r, 300) : 0;
    s->req = req_transfer (&r->rig, draw_named (r, account), draw_named (r, other), amount);
    s->req.kind = LEDGER_SPLIT;
    s->req.transfer.allocation_id = alloc_id (r, alloc);
    s->req.transfer.valid_from = edge (begin);
    s->req.transfer.valid_to = edge (end);
    if (refused (r, s, m->account_is[account] ? m->project[account] : -1, true,
                 model_gave (m, r->agency, alloc)))
        return;
    model_split (m, account, other, alloc, amount, begin, end, r->agency, s->want);
}

/* Of what was split off, mostly. */
static void make_split_back (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    int alloc = (int)draw (r, (uint64_t)r->granted);
    for (int k = 0; k < 40 && !m->alloc[alloc].from; k++)
        alloc = (int)draw (r, (uint64_t)r->granted);
    long long amount = one_in (r, 2) ? 0 : (long long)draw (r, 500) * 100000 - 1;
    int from = m->alloc[alloc].from ? m->alloc[m->alloc[alloc].from - 1].account : -1;
    s->req = req_new (&r->rig, LEDGER_SPLIT_BACK, "nui://t/operator/o");
    s->req.split_back.allocation_id = m->alloc[alloc].id;
    s->req.split_back.amount = amount;
    s->req.split_back.description = "";
    if (refused (r, s, from < 0 ? -1 : m->project[from], true, model_gave (m, r->agency, alloc)))
        return;
    model_split_back (r->model, alloc, amount, r->agency, s->want);
}

static void make_award (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    uint64_t what = draw (r, 9);
    s->req = req_new (&r->rig,
                      what < 4   ? LEDGER_GRANT_EXTEND
                      : what < 7 ? LEDGER_GRANT_AMEND
                                 : LEDGER_GRANT_REVOKE,
                      "nui://t/operator/o");
    long long grant = 1 + (long long)draw (r, (uint64_t)m->grants + 1),
              end = m->now + 1 + (long long)draw (r, 900),
              amount = (long long)draw (r, 4000) * 1000000;
    s->req.award.grant_id = grant;
    s->req.award.valid_to = edge (end);
    s->req.award.amount = amount;
    s->req.award.reason = "why";
    if (refused (r, s, -1, false, model_gave_grant (m, r->agency, grant)))
        return;
    if (what < 4)
        model_extend_grant (m, grant, end, s->want);
    else if (what < 7)
        model_amend (m, grant, amount, s->want);
    else
        model_revoke (m, grant, s->want);
}

static void make_carry (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int alloc = (int)draw (r, (uint64_t)r->granted);
    long long end = m->now + 1 + (long long)draw (r, 700),
              cap = one_in (r, 2) ? 0 : (long long)draw (r, 900) * 100000 - 1;
    s->req = req_new (&r->rig, LEDGER_CARRY_FORWARD, "nui://t/agency/f");
    s->req.carry.allocation_id = m->alloc[alloc].id;
    s->req.carry.cap = cap;
    s->req.carry.valid_to = edge (end);
    s->req.carry.description = "";
    if (refused (r, s, -1, true, model_gave (m, r->agency, alloc)))
        return;
    model_carry (m, alloc, cap, end, s->want);
}

static void make_fallbacks (struct run *r, struct sent *s)
{
    int account = draw_account (r), count = (int)draw (r, 3);
    int list[M_FALLBACKS], site[M_FALLBACKS], at[M_FALLBACKS];
    s->req = req_new (&r->rig, LEDGER_ACCOUNT_MODIFY, "nui://t/agency/f");
    s->req.account.name = draw_named (r, account);
    s->req.account.fallbacks = s->fallback;
    s->req.account.fallback_count = (uint32_t)count;
    s->req.account.keep_scopes = true;
    for (int i = 0; i < count; i++) {
        list[i] = ((int)draw (r, M_ACCOUNTS / 2) + i * M_ACCOUNTS / 2) % M_ACCOUNTS;
        if (i && one_in (r, 8)) /* else none twice */
            list[i] = list[0];
        site[i] = one_in (r, 4) ? (int)draw (r, 2) : -1;
        at[i] = one_in (r, 3) ? (int)draw (r, M_NAMES) : -1;
        s->fallback[i] = (struct ledger_fallback_ask){draw_named (r, list[i]),
                                                      site[i] < 0 ? "" : prop_sites[site[i]],
                                                      at[i] < 0 ? "" : prop_qos[at[i]]};
    }
    if (refused (r, s, r->model->account_is[account] ? r->model->project[account] : -1, true,
                 model_made_of (r->model, r->agency, account)))
        return;
    model_fallbacks (r->model, account, list, site, at, count, s->want);
}

static struct model_factor draw_factor (struct run *r, enum ledger_factor_kind kind,
                                        const char *const *name, struct sent *s)
{
    struct model_factor f;
    for (int i = 0; i <= M_NAMES; i++) {
        f.of[i] = draw (r, 3) > (i != M_NAMES) ? (int)draw (r, 300) : -1;
        int64_t unit = kind == LEDGER_FACTOR_GRES ? 1 : 1000000 / M_ONE;
        if (f.of[i] >= 0 && kind == LEDGER_FACTOR_GRES)
            f.of[i] = (int)draw (r, 3000000);
        if (f.of[i] >= 0)
            s->factor[s->req.rate.factor_count++] =
                (struct ledger_factor){kind, i == M_NAMES ? "*" : name[i], f.of[i] * unit};
    }
    return f;
}

static void make_rate (struct run *r, struct sent *s)
{
    static const enum price_measure measure[] = {PRICE_WALL, PRICE_WALL, PRICE_CPU, PRICE_PE};
    static const struct model_factor none = {{-1, -1, -1}};
    const struct model *m = r->model;
    int site = (int)draw (r, 2), how = (int)draw (r, 4);
    struct model_card card = {.base = (long long)draw (r, 3000000),
                              .measure = how == 2   ? M_CPU
                                         : how == 3 ? M_PE
                                                    : M_WALL,
                              .successful_only = one_in (r, 6),
                              .group = one_in (r, 3) ? (int)draw (r, 300) : -1,
                              .band = one_in (r, 3) ? (int)draw (r, 300) : -1,
                              .memory = one_in (r, 3) ? (int)draw (r, 3000) : -1};
    card.from = one_in (r, 4) ? m->now + (long long)draw (r, 100) - 70 : 0;
    s->req = req_rate (&r->rig, prop_sites[site], card.base);
    s->req.rate.from = edge (card.from);
    s->req.rate.measure = measure[how];
    s->req.rate.successful_only = card.successful_only;
    s->req.rate.factor = s->factor;
    card.qos = one_in (r, 3) ? draw_factor (r, LEDGER_FACTOR_QOS, prop_qos, s) : none;
    card.machine = one_in (r, 3) ? draw_factor (r, LEDGER_FACTOR_MACHINE, prop_machines, s) : none;
    card.nodes = one_in (r, 3) ? draw_factor (r, LEDGER_FACTOR_NODES, prop_nodes, s) : none;
    card.class = one_in (r, 4) ? draw_factor (r, LEDGER_FACTOR_CLASS, prop_classes, s) : none;
    card.gres = one_in (r, 4) ? draw_factor (r, LEDGER_FACTOR_GRES, prop_gres, s) : none;
    const struct ledger_factor alone[] = {
        {LEDGER_FACTOR_GROUP, "*", (int64_t)card.group * 1000000 / M_ONE},
        {LEDGER_FACTOR_BAND, BAND, (int64_t)card.band * 1000000 / M_ONE},
        {LEDGER_FACTOR_MEMORY, "*", card.memory}};
    for (int i = 0; i < 3; i++)
        if (alone[i].ppm >= 0)
            s->factor[s->req.rate.factor_count++] = alone[i];
    if (refused (r, s, -1, true, false))
        return;
    model_rate (r->model, site, &card, s->want);
}

/* Projects, people, funders and accounts; some are there already. */
static void make_object (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int project = (int)draw (r, M_PROJECTS), parent = (int)draw (r, M_PROJECTS) - 1;
    int account = (int)draw (r, M_ACCOUNTS), user = (int)draw (r, M_USERS),
        funder = (int)draw (r, M_FUNDERS);
    struct model_scope scope = {0};
    switch (draw (r, 5)) {
    case 0:
        s->req = req_project (&r->rig, prop_projects[project]);
        s->req.project.parent = parent < 0 ? "" : prop_projects[parent];
        if (refused (r, s, parent, true, model_made (m, r->agency, parent)))
            return;
        model_project (m, project, parent, r->agency, s->want);
        return;
    case 1:
        s->req = req_user (&r->rig, prop_users[user]);
        if (refused (r, s, -1, true, true))
            return;
        model_user (m, user, s->want);
        return;
    case 2:
        s->req = req_new (&r->rig, LEDGER_FUNDER_CREATE, "nui://t/agency/f");
        funder = r->agency >= 0 ? r->agency : funder;
        s->req.funder.name = prop_funders[funder];
        s->req.funder.description = "";
        if (refused (r, s, -1, false, true))
            return;
        model_funder (m, funder, s->want);
        return;
    case 3:
        account = one_in (r, 2) ? account : M_ACCOUNTS - 1 - (int)draw (r, 3);
        s->req = req_account (&r->rig, draw_named (r, account), prop_projects[project], NULL, 0);
        if (one_in (r, 3))
            s->req.account.scopes = draw_scopes (r, true, &scope, s);
        s->req.account.fallbacks = s->fallback;
        if (refused (r, s, project, true, model_made (m, r->agency, project)))
            return;
        model_account (m, account, project, &scope, s->want);
        return;
    default:
        s->req = req_new (&r->rig, LEDGER_ACCOUNT_MODIFY, "nui://t/agency/f");
        s->req.account.name = draw_named (r, account);
        s->req.account.keep_fallbacks = true;
        if (one_in (r, 2))
            s->req.account.scopes = draw_scopes (r, true, &scope, s);
        if (refused (r, s, m->account_is[account] ? m->project[account] : -1, true,
                     model_made_of (m, r->agency, account)))
            return;
        model_account_users (m, account, &scope, s->want);
    }
}

static void make_role (struct run *r, struct sent *s)
{
    int user = (int)draw (r, M_USERS);
    bool manager = one_in (r, 2), remove = one_in (r, 2);
    s->req = req_new (&r->rig, LEDGER_ROLE_SET, "nui://t/operator/o");
    s->req.role.identity = prop_users[user];
    s->req.role.role = manager ? LEDGER_ROLE_MANAGER : LEDGER_ROLE_AUDITOR;
    s->req.role.remove = remove;
    if (refused (r, s, -1, true, false))
        return;
    model_role (r->model, user, manager, remove, s->want);
}

static int draw_freezable (struct run *r, int what)
{
    return what == 3 ? 1 + (int)draw (r, (uint64_t)r->model->grants + 1)
                     : (int)draw (r, what == 0   ? M_USERS
                                     : what == 1 ? M_ACCOUNTS
                                                 : M_PROJECTS);
}

/* Whether whoever asks may freeze it, as an agency or as a lead, or is the bank's. */
static bool freezes (const struct run *r, int what, int which)
{
    const struct model *m = r->model;
    if (r->as >= 0)
        return what == 1 && m->account_is[which] && model_may (m, r->as, m->project[which], false);
    if (r->agency < 0)
        return true;
    return what == 1   ? model_pays (m, r->agency, which)
           : what == 2 ? model_made (m, r->agency, which)
                       : what == 3 && model_gave_grant (m, r->agency, which);
}

/* A user, an account, a project or a grant; a lead his account, and thaws only what she froze. Mostly thawed. */
static void make_freeze (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int what = (int)draw (r, 4), which = draw_freezable (r, what);
    bool undo = draw (r, what == 3 ? 2 : 6) != 0,
         *frozen = what == 1 ? m->frozen_account : m->frozen_grant;
    for (int k = 0; what % 2 && k < 30 && !(freezes (r, what, which) && frozen[which] == undo); k++)
        which = draw_freezable (r, what);
    s->req = req_new (&r->rig, LEDGER_FREEZE, "nui://t/operator/o");
    s->req.freeze.what = (enum ledger_freezable)what;
    s->req.freeze.name = what == 0   ? prop_users[which]
                         : what == 1 ? draw_named (r, which)
                         : what == 2 ? prop_projects[which]
                                     : NULL;
    s->req.freeze.grant_id = what == 3 ? which : 0;
    s->req.freeze.reason = "why";
    s->req.freeze.undo = undo;
    int project = what == 1 && m->account_is[which] ? m->project[which] : -1;
    struct model_actor by = {r->as, r->agency};
    bool thaws = !undo || model_thaws (m, by, what, which);
    bool own = r->agency >= 0 && freezes (r, what, which);
    if (refused (r, s, thaws ? project : -1, true, own && thaws))
        return;
    model_freeze (m, what, which, by, undo, s->want);
}

static void make_move (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int project = (int)draw (r, M_PROJECTS), parent = (int)draw (r, M_PROJECTS + 1) - 1;
    s->req = req_new (&r->rig, LEDGER_PROJECT_MOVE, "nui://t/operator/o");
    s->req.move.name = prop_projects[project];
    s->req.move.parent = parent < 0 ? "" : prop_projects[parent];
    s->req.move.reason = "";
    if (refused (r, s, -1, true,
                 model_made (m, r->agency, project) && model_made (m, r->agency, parent)))
        return;
    model_move (m, project, parent, s->want);
}

/* To a name that nobody has, mostly; that of another one, or an own one of before. */
static void make_rename (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account = draw_account (r), other = draw_account (r), name = (int)draw (r, M_RENAMES);
    if (one_in (r, 3))
        name = -1;
    else if (one_in (r, 4) && m->account_is[other] && other != account)
        name = -2 - other;
    s->req = req_new (&r->rig, LEDGER_ACCOUNT_RENAME, "nui://t/operator/o");
    s->req.rename.name = draw_named (r, account);
    s->req.rename.to =
        name >= 0 ? model_new_name (name) : model_first_name (name == -1 ? account : other);
    s->req.rename.reason = "";
    if (refused (r, s, m->account_is[account] ? m->project[account] : -1, true,
                 model_made_of (m, r->agency, account)))
        return;
    model_rename (m, account, name, s->want);
}

void make_office (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account, site = (int)draw (r, 2);
    uint64_t what = draw (r, 30);
    if (what < 3) {
        make_split (r, s);
    } else if ((what == 16 || what == 17) && r->granted) {
        make_split_back (r, s);
    } else if (what == 14 || what > 27) {
        make_freeze (r, s);
    } else if (what > 24) {
        make_move (r, s);
    } else if (what > 21) {
        make_rename (r, s);
    } else if (what > 17) {
        make_award (r, s);
    } else if (what < 5 && r->granted) {
        make_carry (r, s);
    } else if (what == 5 && one_in (r, 4)) {
        account = 8 + (int)draw (r, 5);
        bool reopen = one_in (r, 2);
        s->req = req_new (&r->rig, reopen ? LEDGER_ACCOUNT_REOPEN : LEDGER_ACCOUNT_CLOSE,
                          "nui://t/agency/f");
        s->req.close.name = draw_named (r, account);
        s->req.close.reason = "";
        if (refused (r, s, -1, true, model_pays_all (m, r->agency, account)))
            return;
        if (reopen)
            model_reopen (m, account, s->want);
        else
            model_close (m, account, s->want);
    } else if (what < 7) {
        int user = (int)draw (r, M_USERS), project = (int)draw (r, M_PROJECTS);
        /* u1 mostly stays what it is. */
        bool remove = one_in (r, user == 1 ? 9 : 2);
        s->req = req_member (&r->rig, prop_projects[project], prop_users[user]);
        s->req.member.remove = remove;
        s->req.member.role = one_in (r, 3) ? "lead" : "member";
        if (refused (r, s, project, true, model_made (m, r->agency, project)))
            return;
        model_member (m, user, project, s->req.member.role[0] == 'l', remove, r->as, s->want);
    } else if (what < 9) {
        make_fallbacks (r, s);
    } else if (what < 11) {
        make_rate (r, s);
    } else if (what < 13) {
        make_object (r, s);
    } else if (what == 13) {
        make_role (r, s);
    } else {
        bool claims = one_in (r, 2);
        struct model_policy policy = {.on = !one_in (r, 4),
                                      .cap = one_in (r, 2) ? (long long)draw (r, 30) : 0,
                                      .minimum = one_in (r, 2) ? (long long)draw (r, 50000000) : 0,
                                      .window = one_in (r, 2) ? (long long)draw (r, 60) : 0};
        struct model_given given = {.procs = one_in (r, 3) ? (long long)draw (r, 9) : 0,
                                    .memory = one_in (r, 2) ? 1 + (long long)draw (r, 2000) : 0,
                                    .overrun = one_in (r, 2) ? (long long)draw (r, 10) : 0};
        s->req = req_new (&r->rig, LEDGER_SITE_SET, "nui://t/operator/o");
        s->req.site.given =
            (struct ledger_nodes_given){given.procs, given.memory, given.overrun * US_PER_S};
        s->req.site.set_procs = s->req.site.set_memory = s->req.site.set_overrun = true;
        s->req.site.site = prop_sites[site];
        s->req.site.claims = claims;
        s->req.site.refunds = (struct ledger_refunds){policy.on, policy.cap * US_PER_S,
                                                      policy.minimum, policy.window * US_PER_S};
        if (refused (r, s, -1, true, false))
            return;
        model_site (m, site, claims, &policy, &given, s->want);
    }
}

void make_quote (struct run *r, struct sent *s)
{
    struct model_ask ask[M_SITES];
    int account = draw_account (r), user = draw_user (r), count = 1 + (int)draw (r, 2);
    bool reusable = one_in (r, 3);
    long long keep = 1 + (long long)draw (r, 120);
    int first = draw (r, 15) ? (int)draw (r, 2) : 2;
    s->req = req_new (&r->rig, LEDGER_QUOTE, prop_users[user]);
    s->req.quote.ask = &s->quote;
    s->req.quote.keep = keep * US_PER_S - US_PER_S / 2;
    s->req.quote.reusable = reusable;
    s->quote = (struct ledger_quote){.identity = prop_users[user],
                                     .account = draw_named (r, account),
                                     .item = s->item,
                                     .item_count = (uint32_t)count};
    for (int i = 0; i < count; i++) {
        ask[i] = draw_ask (r);
        ask[i].site = i ? !first : first;
        ask[i].quote = 0;
        s->item[i] = (struct ledger_quote_item){.site = prop_sites[ask[i].site],
                                                .procs = ask[i].procs,
                                                .walltime = ask[i].seconds * US_PER_S,
                                                .ask = ledger_ask_of (&ask[i], &s->named[i], "")};
    }
    model_quote (r->model, ask, count, account, user, reusable, keep, s->want);
}

/* By an operator, by whose it is, by a lead or manager, or by one who may not; now and then one that
 * is not there. */
void make_cancel (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    long long quote = 1 + (long long)draw (r, (uint64_t)m->pins + one_in (r, 9));
    const struct model_pin *pin = quote <= m->pins ? &m->pin[quote - 1] : NULL;
    s->req = req_new (&r->rig, LEDGER_QUOTE_CANCEL, "nui://t/operator/o");
    s->req.quote_cancel.id = quote;
    if (pin && one_in (r, 2)) {
        s->req.client = s->req.on_behalf = prop_users[pin->user];
        s->req.by_user = true;
    } else if (pin && pin->account >= 0 && pin->user != r->as &&
               refused (r, s, m->project[pin->account], true, true)) {
        return;
    }
    model_quote_cancel (r->model, quote, s->want);
}

void make_recon (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int site = (int)draw (r, 2);
    if (r->opened && one_in (r, 3)) {
        long long row = 1 + (long long)draw (r, (uint64_t)r->opened + one_in (r, 9));
        bool close = one_in (r, 2), known = draw (r, 4) != 0;
        s->req = req_new (&r->rig, LEDGER_RECON_SET, "nui://t/operator/o");
        s->req.recon_set.row_id = row;
        s->req.recon_set.owner = close ? "" : "nui://t/user/u0";
        s->req.recon_set.note = "seen";
        s->req.recon_set.close = close;
        s->req.recon_set.cured_op = close && !known ? INT64_MAX : 0;
        if (refused (r, s, -1, false, true))
            return;
        model_recon_set (m, row, close, known, s->want);
        return;
    }
    struct model_row found[M_FINDINGS];
    int count = (int)draw (r, M_FINDINGS + 1);
    unsigned looked = 1 + (unsigned)draw (r, 7);
    long long from = (long long)draw (r, 3), to = from + (long long)draw (r, 6);
    s->req = req_new (&r->rig, LEDGER_RECON, "nui://t/operator/o");
    s->req.recon.site = prop_sites[site];
    s->req.recon.from = EPOCH + from;
    s->req.recon.to = EPOCH + to;
    s->req.recon.kind = s->kind;
    s->req.recon.item = s->finding;
    s->req.recon.count = (uint32_t)count;
    for (int k = 0; k < M_KINDS; k++)
        if (looked & 1u << k)
            s->kind[s->req.recon.kind_count++] = (char *)(uintptr_t)kinds[k];
    for (int i = 0; i < count; i++) {
        found[i] =
            (struct model_row){.kind = (int)draw (r, M_KINDS),
                               .job = (long long)draw (r, 2) * M_FINDINGS + i, /* none twice */
                               .amount = (long long)draw (r, 2)};
        found[i].since = found[i].job % 6;
        s->finding[i] = (struct ledger_finding){.kind = kinds[found[i].kind],
                                                .site_job = found_job[found[i].job],
                                                .component = "",
                                                .hold = "",
                                                .identity = "",
                                                .account = "",
                                                .text = "",
                                                .amount = found[i].amount,
                                                .since = EPOCH + found[i].since};
    }
    if (refused (r, s, -1, false, true))
        return;
    model_recon (m, site, found, count, looked, from, to, s->want);
}
