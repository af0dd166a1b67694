/* Random operations, each asked of the model as it is drawn. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/bank/prop.h"

enum { JOBS = 40 };

const char *const prop_users[M_USERS] = {"nui://t/user/u0", "nui://t/user/u1", "nui://t/user/u2",
                                         "nui://t/user/u3"};
const char *const prop_sites[M_SITES] = {"s0", "s1", "s2"}; /* s2 has no rate */
const char *const prop_projects[M_PROJECTS] = {"p0", "p1", "p2", "p3"};
static const char *const funders[M_FUNDERS] = {"f", "g"};
static const char *const found_job[2 * M_FINDINGS] = {"f0", "f1", "f2", "f3",
                                                      "f4", "f5", "f6", "f7"};
static const char *const kinds[M_KINDS] = {"LATE", "DUPLICATE", "AMOUNT_DIFF"};
static const char *const qos[M_NAMES] = {"q0", "q1"};
static const char *const machines[M_NAMES] = {"m0", "m1"};
static const char *const nodes[M_NAMES] = {"n0", "n1"};

uint64_t draw (struct run *r, uint64_t below)
{
    r->rng = r->rng * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (r->rng >> 33) % below;
}

static bool one_in (struct run *r, uint64_t n)
{
    return draw (r, n) == 0;
}

/* What begins or ends, and what is used: see model.h. 0 and M_NEVER are 0 here. */
static time_us edge (long long tick)
{
    return tick && tick != M_NEVER ? EPOCH + tick * US_PER_S - US_PER_S / 2 : 0;
}

static time_us use_at (long long tick)
{
    return EPOCH + tick * US_PER_S + US_PER_S / 4;
}

/* Mostly one of the first, which are there from the beginning. */
static int draw_account (struct run *r)
{
    return (int)draw (r, one_in (r, 4) ? M_ACCOUNTS : M_ACCOUNTS - 3);
}

static int draw_user (struct run *r)
{
    return (int)draw (r, one_in (r, 8) ? M_USERS : 2);
}

static int draw_name (struct run *r)
{
    return (int)draw (r, M_NAMES + 2) % (M_NAMES + 1) - 1;
}

/* Of one kind: ANY, MEMBERS, names, exclusions, each with luck. */
static uint32_t draw_scope_kind (struct run *r, int kind, const char *const *name, int names,
                                 struct model_scope *scope, struct ledger_scope *out)
{
    static const enum ledger_scope_kind kinds_of[M_SCOPES] = {
        LEDGER_SCOPE_USER, LEDGER_SCOPE_SITE, LEDGER_SCOPE_MACHINE, LEDGER_SCOPE_QOS};
    uint32_t n = 0;
    if ((scope->any[kind] = one_in (r, 5)))
        out[n++] = (struct ledger_scope){kinds_of[kind], "ANY", false};
    if (kind == M_USER && (scope->members = one_in (r, 4)))
        out[n++] = (struct ledger_scope){kinds_of[kind], "MEMBERS", false};
    for (int i = 0; i < names; i++) {
        uint64_t what = draw (r, 4);
        if (what == 0)
            scope->named[kind] |= 1U << i;
        else if (what == 1)
            scope->excluded[kind] |= 1U << i;
        if (what < 2)
            out[n++] = (struct ledger_scope){kinds_of[kind], name[i], what == 1};
    }
    return n;
}

static struct ledger_scopes draw_scopes (struct run *r, bool users_only, struct model_scope *scope,
                                         struct sent *s)
{
    uint32_t n = 0;
    *scope = (struct model_scope){0};
    if (users_only || one_in (r, 3))
        n += draw_scope_kind (r, M_USER, prop_users, M_USERS, scope, s->scope + n);
    if (!users_only && one_in (r, 3))
        n += draw_scope_kind (r, M_SITE, prop_sites, M_SITES, scope, s->scope + n);
    if (!users_only && one_in (r, 3))
        n += draw_scope_kind (r, M_MACHINE, machines, M_NAMES, scope, s->scope + n);
    if (!users_only && one_in (r, 3))
        n += draw_scope_kind (r, M_QOS, qos, M_NAMES, scope, s->scope + n);
    assert (n <= SCOPES_OF_ONE);
    return (struct ledger_scopes){s->scope, n};
}

static void make_deposit (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    int account = draw_account (r);
    long long amount =
        draw (r, 20) ? (long long)draw (r, 3000) * 100000 + 1 : -(long long)draw (r, 2);
    amount *= one_in (r, 2) ? 30 : 1;
    long long end = one_in (r, 3) ? m->now + (long long)draw (r, 400) : M_NEVER;
    long long begin = one_in (r, 5) ? m->now + (long long)draw (r, 60) - 10 : 0;
    int funder = draw (r, 4) ? -1 : (int)draw (r, 10) / 8;
    long long grant =
        funder < 0 && one_in (r, 5) ? 1 + (long long)draw (r, (uint64_t)m->grants + 2) : 0;
    struct model_scope scope = {0};
    if (end == 0 || begin == 0) /* tick 0 is not asked for */
        end = end ? end : M_NEVER;
    s->req = req_deposit (&r->rig, model_account_name (account), amount, edge (begin), edge (end));
    s->req.deposit.grant_id = grant;
    if (one_in (r, 3))
        s->req.deposit.scopes = draw_scopes (r, false, &scope, s);
    if (funder >= 0) {
        s->req.kind = LEDGER_GRANT;
        s->req.deposit.funder = funders[funder];
        s->req.deposit.reference = "G";
    }
    model_deposit (r->model, account, amount, begin, end, funder, grant, &scope, s->want);
}

static struct model_ask draw_ask (struct run *r)
{
    struct model_ask ask = {.site = one_in (r, 12) ? 2 : (int)draw (r, 2)};
    ask.job = (long long)draw (r, JOBS);
    ask.incarnation = (long long)draw (r, 1 + (uint64_t)r->ops / 200);
    ask.procs = (long long)draw (r, 8) + 1;
    ask.seconds = (long long)draw (r, 30) + 1;
    ask.claimed = one_in (r, 10);
    ask.qos = draw_name (r);
    ask.machine = draw_name (r);
    ask.start = r->model->now + (one_in (r, 6) ? (long long)draw (r, 60) : 0);
    ask.coreserved = one_in (r, 4);
    ask.successful = !one_in (r, 4);
    ask.site_failed = one_in (r, 3);
    ask.pe = one_in (r, 3) ? (long long)draw (r, 9000) : 0;
    for (int i = 0; i < M_NAMES; i++)
        ask.nodes[i] = one_in (r, 3) ? (long long)draw (r, 4) : 0;
    if (r->quoted && one_in (r, 8))
        ask.quote = 1 + (long long)draw (r, (uint64_t)r->quoted + one_in (r, 20));
    return ask;
}

/* As rates look at it; types is where its node types go. */
static struct ledger_ask ledger_ask_of (const struct model_ask *ask, struct ledger_nodes *types,
                                        const char *job)
{
    struct ledger_ask out = {.qos = ask->qos < 0 ? "" : qos[ask->qos],
                             .class_ = "",
                             .machine = ask->machine < 0 ? "" : machines[ask->machine],
                             .coreserved = ask->coreserved,
                             .pe_milli = ask->pe,
                             .quote_id = ask->quote,
                             .quote_job = job,
                             .nodes = types};
    for (int i = 0; i < M_NAMES; i++)
        if (ask->nodes[i])
            types[out.nodes_count++] = (struct ledger_nodes){nodes[i], ask->nodes[i]};
    return out;
}

/* As the ledger is asked; job is where its name goes. */
static struct ledger_hold_ask hold_ask (const struct model_ask *ask, int account, char job[32],
                                        struct ledger_nodes *types)
{
    snprintf (job, 32, "j.%lld", ask->job);
    return (struct ledger_hold_ask){
        .job = {prop_sites[ask->site], job, "main", "grid.1", ask->incarnation},
        .account = model_account_name (account),
        .procs = ask->procs,
        .walltime = ask->seconds * US_PER_S,
        .start = use_at (ask->start),
        .ask = ledger_ask_of (ask, types, job),
        .claimed = ask->claimed};
}

static void make_hold (struct run *r, struct sent *s)
{
    struct model_ask ask = draw_ask (r);
    int account = draw_account (r), user = draw_user (r);
    ask.procs = draw (r, 40) ? ask.procs : 0;
    s->req = req_hold (&r->rig, prop_sites[ask.site], "", model_account_name (account),
                       prop_users[user], ask.procs, ask.seconds);
    s->req.hold = hold_ask (&ask, account, s->job, s->nodes[0]);
    request_seal (&s->req);
    model_holds (r->model, &ask, 1, account, user, s->want);
}

static void make_group (struct run *r, struct sent *s)
{
    struct model_ask ask[M_GROUP];
    int account = draw_account (r), user = draw_user (r);
    int count = 2 + (int)draw (r, M_GROUP - 1);
    s->req = req_new (&r->rig, LEDGER_HOLD_GROUP, "nui://t/meta/m");
    s->req.on_behalf = prop_users[user];
    s->req.group.item = s->group;
    s->req.group.count = (uint32_t)count;
    for (int i = 0; i < count; i++) {
        ask[i] = draw_ask (r);
        ask[i].incarnation += 1000000 * i; /* never one job twice */
        s->group[i] = hold_ask (&ask[i], account, s->jobs[i], s->nodes[i]);
    }
    model_holds (r->model, ask, count, account, user, s->want);
}

/* An outbox's number that may leave a gap, be lost or come twice; mostly the next one. */
static unsigned long long draw_sequence (struct run *r, int site)
{
    unsigned long long last = r->model->acked[site];
    return one_in (r, 6) ? draw (r, 2) * last : last + 1 + (one_in (r, 4) ? draw (r, M_AHEAD) : 0);
}

static void make_charge (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    bool held = m->holds && draw (r, 8) != 0;
    long long n = held ? 1 + (long long)draw (r, (uint64_t)m->holds) : 0;
    /* Mostly of late holds, which are still open. */
    if (held && m->holds > 30 && draw (r, 5))
        n = m->holds - (long long)draw (r, 30);
    int user = (int)draw (r, M_USERS), account = draw_account (r);
    struct model_ask ask = draw_ask (r);
    ask.site = held ? m->hold[n - 1].site : (int)draw (r, M_SITES);
    if (held) {
        ask.job = m->hold[n - 1].job;
        ask.incarnation = m->hold[n - 1].incarnation;
        ask.claimed = false;
        ask.quote = 0;
    }
    if (held && one_in (r, 30))
        ask.site = !ask.site;
    if (held && one_in (r, 30))
        ask.job++;
    ask.procs = draw (r, 50) ? (long long)draw (r, 9) + 1 : 0;
    ask.seconds = (long long)draw (r, 40);
    ask.start = m->now - (long long)draw (r, 60);
    if (one_in (r, 60))
        ask.start += 90000; /* a day ahead */
    ask.cpu = one_in (r, 2) ? (long long)draw (r, 300) : 0;
    bool final = draw (r, 3) != 0;
    unsigned long long sequence = draw_sequence (r, ask.site);
    snprintf (s->job, sizeof (s->job), "j.%lld", ask.job);
    if (held)
        snprintf (s->hold, sizeof (s->hold), "hold.%lld", n);
    s->req = req_charge (&r->rig, prop_sites[ask.site], s->job, s->hold, ask.procs,
                         use_at (ask.start), ask.seconds, final);
    s->req.charge.sequence = sequence;
    s->req.charge.cpu = ask.cpu * US_PER_S;
    s->req.charge.successful = ask.successful;
    s->req.charge.site_failed = ask.site_failed;
    s->req.charge.job.incarnation = ask.incarnation;
    s->req.charge.account = held ? "" : model_account_name (account);
    s->req.charge.claimed = ask.claimed;
    s->req.charge.ask = ledger_ask_of (&ask, s->nodes[0], s->job);
    s->req.on_behalf = held ? s->req.client : prop_users[user];
    model_charge (m, &ask, n, account, user, final, sequence, s->want);
}

static void make_release (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    long long n = 1 + (long long)draw (r, (uint64_t)m->holds + 2);
    int site = n <= m->holds && draw (r, 10) ? m->hold[n - 1].site : (int)draw (r, 2);
    unsigned long long sequence = draw_sequence (r, site);
    snprintf (s->hold, sizeof (s->hold), "hold.%lld", n);
    s->req = req_release (&r->rig, prop_sites[site], s->hold);
    s->req.release.sequence = sequence;
    if (one_in (r, 4)) { /* the bank itself: the hold was stale for too long */
        site = -1;
        s->req.client = s->req.on_behalf = "bank:expiry";
        s->req.release.site = NULL;
    }
    model_release (r->model, site, n, sequence, s->want);
}

static void make_extend (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    /* Mostly of late holds, which are still open. */
    long long late = m->holds < 12 ? m->holds : 12;
    long long n = draw (r, 8) && late ? m->holds - (long long)draw (r, (uint64_t)late)
                                      : 1 + (long long)draw (r, (uint64_t)m->holds + 2);
    bool known = n >= 1 && n <= m->holds;
    int site = known && draw (r, 10) ? m->hold[n - 1].site : (int)draw (r, 2);
    long long seconds = (known ? m->hold[n - 1].seconds : 5) + (long long)draw (r, 12) - 1;
    /* Legs of the model are few: a hold is made longer a few times only. */
    if (known && m->hold[n - 1].legs > M_LEGS / 2)
        seconds = m->hold[n - 1].seconds;
    snprintf (s->hold, sizeof (s->hold), "hold.%lld", n);
    s->req = req_new (&r->rig, LEDGER_EXTEND, prop_sites[site]);
    s->req.extend.site = one_in (r, 8) ? NULL : prop_sites[site];
    s->req.extend.walltime = seconds * US_PER_S;
    model_extend (m, s->req.extend.site ? site : -1, n, seconds, s->want);
}

/* One of the account's, if luck wants it; -1: those that are valid now. */
static int draw_alloc (struct run *r, int account)
{
    int alloc = r->granted && one_in (r, 3) ? (int)draw (r, (uint64_t)r->granted) : -1;
    for (int k = 0; alloc >= 0 && k < 20 && r->model->alloc[alloc].account != account; k++)
        alloc = (int)draw (r, (uint64_t)r->granted);
    return alloc;
}

static int64_t alloc_id (const struct run *r, int alloc)
{
    return alloc < 0 ? 0 : r->model->alloc[alloc].id;
}

static void make_refund (struct run *r, struct sent *s)
{
    long long n = 1 + (long long)draw (r, (uint64_t)r->charged);
    long long amount = one_in (r, 2) ? 0 : (long long)draw (r, 20000000);
    char sql[80];
    snprintf (sql, sizeof (sql), "SELECT op_id FROM charge WHERE id = %lld", n);
    s->req = req_refund (&r->rig, pg_fixture_number (r->sql, sql), amount);
    s->req.refund.due = one_in (r, 2);
    if (s->req.refund.due)
        model_refund_due (r->model, n, s->want);
    else
        model_refund (r->model, n, amount, s->want);
}

static void make_correction (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account = draw_account (r), other = draw_account (r);
    long long amount =
        draw (r, 20) ? (long long)draw (r, 900) * 100000 + 1 : -(long long)draw (r, 2);
    uint64_t what = draw (r, 5);
    int alloc = draw_alloc (r, account);
    if (what == 0) {
        s->req = req_withdraw (&r->rig, model_account_name (account), amount);
        s->req.withdraw.allocation_id = alloc_id (r, alloc);
        model_withdraw (m, account, alloc, amount, s->want);
    } else if (what == 1) {
        s->req = req_transfer (&r->rig, model_account_name (account), model_account_name (other),
                               amount);
        s->req.transfer.allocation_id = alloc_id (r, alloc);
        model_transfer (m, account, other, alloc, amount, s->want);
    } else if (what == 2 && r->granted) {
        alloc = (int)draw (r, (uint64_t)r->granted);
        amount = amount % 50000000;
        s->req = req_limit (&r->rig, m->alloc[alloc].id, amount);
        model_limit (m, alloc, amount, s->want);
    } else if (r->charged) {
        make_refund (r, s);
    } else {
        make_deposit (r, s);
    }
}

/* Mostly of what has ended. */
static void make_expire (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    int alloc = (int)draw (r, (uint64_t)r->granted);
    for (int k = 0; k < r->granted && draw (r, 50); k++) {
        int next = (alloc + k) % r->granted;
        if (m->alloc[next].end <= m->now && m->alloc[next].posted) {
            alloc = next;
            break;
        }
    }
    s->req = req_new (&r->rig, LEDGER_EXPIRE, "bank:expiry");
    s->req.expire.allocation_id = m->alloc[alloc].id;
    model_expire (r->model, alloc, s->want);
}

/* ---- what agencies and operators do ---- */

static void make_split (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account = draw_account (r), other = draw_account (r), alloc = draw_alloc (r, account);
    long long amount = (long long)draw (r, 900) * 100000 + 1;
    long long begin = one_in (r, 4) ? m->now + (long long)draw (r, 50) - 10 : 0;
    long long end = one_in (r, 4) ? m->now + (long long)draw (r, 300) : 0;
    s->req = req_transfer (&r->rig, model_account_name (account), model_account_name (other),
                           amount);
    s->req.kind = LEDGER_SPLIT;
    s->req.transfer.allocation_id = alloc_id (r, alloc);
    s->req.transfer.valid_from = edge (begin);
    s->req.transfer.valid_to = edge (end);
    model_split (m, account, other, alloc, amount, begin, end, s->want);
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
    model_carry (m, alloc, cap, end, s->want);
}

static void make_fallbacks (struct run *r, struct sent *s)
{
    int account = draw_account (r), count = (int)draw (r, 3);
    int list[M_FALLBACKS], site[M_FALLBACKS], at[M_FALLBACKS];
    s->req = req_new (&r->rig, LEDGER_ACCOUNT_MODIFY, "nui://t/agency/f");
    s->req.account.name = model_account_name (account);
    s->req.account.fallbacks = s->fallback;
    s->req.account.fallback_count = (uint32_t)count;
    s->req.account.keep_scopes = true;
    for (int i = 0; i < count; i++) {
        list[i] = ((int)draw (r, M_ACCOUNTS / 2) + i * M_ACCOUNTS / 2) % M_ACCOUNTS; /* none twice */
        site[i] = one_in (r, 4) ? (int)draw (r, 2) : -1;
        at[i] = one_in (r, 3) ? (int)draw (r, M_NAMES) : -1;
        s->fallback[i] = (struct ledger_fallback_ask){
            model_account_name (list[i]), site[i] < 0 ? "" : prop_sites[site[i]],
            at[i] < 0 ? "" : qos[at[i]]};
    }
    model_fallbacks (r->model, account, list, site, at, count, s->want);
}

static struct model_factor draw_factor (struct run *r, enum ledger_factor_kind kind,
                                        const char *const *name, struct sent *s)
{
    struct model_factor f;
    for (int i = 0; i <= M_NAMES; i++) {
        f.of[i] = one_in (r, i == M_NAMES ? 3 : 2) ? (int)draw (r, 3000) : -1;
        if (f.of[i] >= 0)
            s->factor[s->req.rate.factor_count++] = (struct ledger_factor){
                kind, i == M_NAMES ? "*" : name[i], (int64_t)f.of[i] * 1000};
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
                              .group = one_in (r, 3) ? (int)draw (r, 3000) : -1,
                              .band = one_in (r, 3) ? (int)draw (r, 3000) : -1};
    card.from = one_in (r, 4) ? m->now + (long long)draw (r, 100) - 70 : 0;
    s->req = req_rate (&r->rig, prop_sites[site], card.base);
    s->req.rate.from = edge (card.from);
    s->req.rate.measure = measure[how];
    s->req.rate.successful_only = card.successful_only;
    s->req.rate.factor = s->factor;
    card.qos = one_in (r, 3) ? draw_factor (r, LEDGER_FACTOR_QOS, qos, s) : none;
    card.machine = one_in (r, 3) ? draw_factor (r, LEDGER_FACTOR_MACHINE, machines, s) : none;
    card.nodes = one_in (r, 3) ? draw_factor (r, LEDGER_FACTOR_NODES, nodes, s) : none;
    if (card.group >= 0)
        s->factor[s->req.rate.factor_count++] =
            (struct ledger_factor){LEDGER_FACTOR_GROUP, "*", (int64_t)card.group * 1000};
    if (card.band >= 0)
        s->factor[s->req.rate.factor_count++] = (struct ledger_factor){
            LEDGER_FACTOR_BAND, BAND, (int64_t)card.band * 1000};
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
        model_project (m, project, parent, s->want);
        return;
    case 1:
        s->req = req_user (&r->rig, prop_users[user]);
        model_user (m, user, s->want);
        return;
    case 2:
        s->req = req_new (&r->rig, LEDGER_FUNDER_CREATE, "nui://t/agency/f");
        s->req.funder.name = funders[funder];
        s->req.funder.description = "";
        model_funder (m, funder, s->want);
        return;
    case 3:
        account = one_in (r, 2) ? account : M_ACCOUNTS - 1 - (int)draw (r, 3);
        s->req = req_account (&r->rig, model_account_name (account), prop_projects[project], NULL, 0);
        if (one_in (r, 3))
            s->req.account.scopes = draw_scopes (r, true, &scope, s);
        s->req.account.fallbacks = s->fallback;
        model_account (m, account, project, &scope, s->want);
        return;
    default:
        s->req = req_new (&r->rig, LEDGER_ACCOUNT_MODIFY, "nui://t/agency/f");
        s->req.account.name = model_account_name (account);
        s->req.account.keep_fallbacks = true;
        if (one_in (r, 2))
            s->req.account.scopes = draw_scopes (r, true, &scope, s);
        model_account_users (m, account, &scope, s->want);
    }
}

static void make_office (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account, site = (int)draw (r, 2);
    uint64_t what = draw (r, 14);
    if (what < 3) {
        make_split (r, s);
    } else if (what < 5 && r->granted) {
        make_carry (r, s);
    } else if (what == 5 && one_in (r, 4)) {
        account = 8 + (int)draw (r, 5);
        s->req = req_new (&r->rig, LEDGER_ACCOUNT_CLOSE, "nui://t/agency/f");
        s->req.close.name = model_account_name (account);
        s->req.close.reason = "";
        model_close (m, account, s->want);
    } else if (what < 7) {
        int user = (int)draw (r, M_USERS), project = (int)draw (r, M_PROJECTS);
        /* u1 mostly stays what it is. */
        bool remove = one_in (r, user == 1 ? 9 : 2);
        s->req = req_member (&r->rig, prop_projects[project], prop_users[user]);
        s->req.member.remove = remove;
        model_member (m, user, project, remove, s->want);
    } else if (what < 9) {
        make_fallbacks (r, s);
    } else if (what < 11) {
        make_rate (r, s);
    } else if (what < 13) {
        make_object (r, s);
    } else {
        bool claims = one_in (r, 2);
        struct model_policy policy = {.on = !one_in (r, 4),
                                      .cap = one_in (r, 2) ? (long long)draw (r, 30) : 0,
                                      .minimum = one_in (r, 2) ? (long long)draw (r, 50000000) : 0,
                                      .window = one_in (r, 2) ? (long long)draw (r, 60) : 0};
        s->req = req_new (&r->rig, LEDGER_SITE_SET, "nui://t/operator/o");
        s->req.site.site = prop_sites[site];
        s->req.site.claims = claims;
        s->req.site.refunds = (struct ledger_refunds){policy.on, policy.cap * US_PER_S, policy.minimum,
                                                      policy.window * US_PER_S};
        model_site (m, site, claims, &policy, s->want);
    }
}

static void make_quote (struct run *r, struct sent *s)
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
                                     .account = model_account_name (account),
                                     .item = s->item,
                                     .item_count = (uint32_t)count};
    for (int i = 0; i < count; i++) {
        ask[i] = draw_ask (r);
        ask[i].site = i ? !first : first;
        ask[i].quote = 0;
        s->item[i] = (struct ledger_quote_item){.site = prop_sites[ask[i].site],
                                                .procs = ask[i].procs,
                                                .walltime = ask[i].seconds * US_PER_S,
                                                .ask = ledger_ask_of (&ask[i], s->nodes[i], "")};
    }
    model_quote (r->model, ask, count, account, user, reusable, keep, s->want);
}

/* By an operator, or by whose it is; now and then one that is not there. */
static void make_cancel (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    long long quote = 1 + (long long)draw (r, (uint64_t)m->pins + one_in (r, 9));
    bool own = quote <= m->pins && one_in (r, 2);
    s->req = req_new (&r->rig, LEDGER_QUOTE_CANCEL,
                      own ? prop_users[m->pin[quote - 1].user] : "nui://t/operator/o");
    s->req.by_user = own;
    s->req.quote_cancel.id = quote;
    model_quote_cancel (r->model, quote, s->want);
}

static void make_recon (struct run *r, struct sent *s)
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
        found[i] = (struct model_row){.kind = (int)draw (r, M_KINDS),
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
    model_recon (m, site, found, count, looked, from, to, s->want);
}

/* A request of the past, as it was or with another content under its key. */
static void make_again (struct run *r, struct sent *s)
{
    *s = *r->past[draw (r, (uint64_t)r->past_count)];
    r->replays++;
    if (strcmp (s->want, "error -1") == 0 && s->req.kind != LEDGER_CHARGE) {
        /* Malformed: was not remembered, and is refused again. */
    } else if (one_in (r, 3)) {
        s->req.hash[31] ^= 1;
        sprintf (s->want, "error -7");
    }
}

struct sent *prop_make (struct run *r)
{
    struct sent *s = calloc (1, sizeof (*s));
    uint64_t what = draw (r, 100);
    assert (s);
    if (what < 10)
        make_deposit (r, s);
    else if (what < 16)
        make_correction (r, s);
    else if (what < 23)
        make_office (r, s);
    else if (what < 25)
        one_in (r, 4) && r->model->pins ? make_cancel (r, s) : make_quote (r, s);
    else if (what < 27)
        make_recon (r, s);
    else if (what < 30)
        make_group (r, s);
    else if (what < 57)
        make_hold (r, s);
    else if (what < 80)
        make_charge (r, s);
    else if (what < 84)
        make_extend (r, s);
    else if (what < 89 && r->granted)
        make_expire (r, s);
    else if (what < 93 || !r->past_count)
        make_release (r, s);
    else
        make_again (r, s);
    /* The texts that requests point to live in s. */
    if (s->req.kind == LEDGER_CHARGE) {
        s->req.charge.job.site_job = s->job;
        s->req.charge.hold_id = s->hold;
    }
    if (s->req.kind == LEDGER_RELEASE)
        s->req.release.hold_id = s->hold;
    if (s->req.kind == LEDGER_EXTEND)
        s->req.extend.hold_id = s->hold;
    return s;
}
