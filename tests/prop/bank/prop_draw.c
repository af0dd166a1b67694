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
const char *const prop_funders[M_FUNDERS] = {"f", "g"};
const char *const prop_qos[M_NAMES] = {"q0", "q1"};
const char *const prop_classes[M_NAMES] = {"c0", "c1"};
const char *const prop_machines[M_NAMES] = {"m0", "m1"};
const char *const prop_nodes[M_NAMES] = {"n0", "n1"};
const char *const prop_gres[M_NAMES] = {"g0", "g1"};
static const char *const metas[M_METAS] = {"", "m1", "m2"};

uint64_t draw (struct run *r, uint64_t below)
{
    r->rng = r->rng * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (r->rng >> 33) % below;
}

bool one_in (struct run *r, uint64_t n)
{
    return draw (r, n) == 0;
}

/* What begins or ends, and what is used: see model.h. 0 and M_NEVER are 0 here. */
time_us edge (long long tick)
{
    return tick && tick != M_NEVER ? EPOCH + tick * US_PER_S - US_PER_S / 2 : 0;
}

static time_us use_at (long long tick)
{
    return EPOCH + tick * US_PER_S + US_PER_S / 4;
}

/* Mostly one of the first, which are there from the beginning. */
int draw_account (struct run *r)
{
    return (int)draw (r, one_in (r, 4) ? M_ACCOUNTS : M_ACCOUNTS - 3);
}

const char *draw_named (struct run *r, int account)
{
    return model_any_name (r->model, account, (unsigned)draw (r, 1000));
}

int draw_user (struct run *r)
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

struct ledger_scopes draw_scopes (struct run *r, bool users_only, struct model_scope *scope,
                                  struct sent *s)
{
    uint32_t n = 0;
    *scope = (struct model_scope){0};
    if (users_only || one_in (r, 3))
        n += draw_scope_kind (r, M_USER, prop_users, M_USERS, scope, s->scope + n);
    if (!users_only && one_in (r, 3))
        n += draw_scope_kind (r, M_SITE, prop_sites, M_SITES, scope, s->scope + n);
    if (!users_only && one_in (r, 3))
        n += draw_scope_kind (r, M_MACHINE, prop_machines, M_NAMES, scope, s->scope + n);
    if (!users_only && one_in (r, 3))
        n += draw_scope_kind (r, M_QOS, prop_qos, M_NAMES, scope, s->scope + n);
    assert (n <= SCOPES_OF_ONE);
    return (struct ledger_scopes){s->scope, n};
}

bool refused (struct run *r, struct sent *s, int project, bool manager_may, bool own)
{
    static const char *const agency[M_FUNDERS] = {"nui://t/agency/f", "nui://t/agency/g"};
    s->req.client = s->req.on_behalf = r->as >= 0       ? prop_users[r->as]
                                       : r->agency >= 0 ? agency[r->agency]
                                                        : "nui://t/operator/o";
    s->req.by_user = r->as >= 0;
    s->req.agency = r->agency >= 0 ? prop_funders[r->agency] : NULL;
    if (r->as >= 0 ? model_may (r->model, r->as, project, manager_may) : r->agency < 0 || own)
        return false;
    sprintf (s->want, "error -4");
    s->forgotten = true;
    return true;
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
    funder = funder >= 0 && r->agency >= 0 ? r->agency : funder; /* in its own name: bank/svc */
    long long grant =
        funder < 0 && one_in (r, 5) ? 1 + (long long)draw (r, (uint64_t)m->grants + 2) : 0;
    struct model_scope scope = {0};
    int reference = (int)draw (r, M_SITES);
    bool again = false;
    if (end == 0 || begin == 0) /* tick 0 is not asked for */
        end = end ? end : M_NEVER;
    s->req = req_deposit (&r->rig, draw_named (r, account), amount, edge (begin), edge (end));
    s->req.deposit.grant_id = grant;
    if (one_in (r, 3))
        s->req.deposit.scopes = draw_scopes (r, false, &scope, s);
    if (funder >= 0) {
        s->req.kind = LEDGER_GRANT;
        s->req.deposit.funder = prop_funders[funder];
        again = one_in (r, 2);
        s->req.deposit.again = again;
        s->req.deposit.reference = prop_sites[reference];
    }
    if (refused (r, s, -1, funder < 0, model_gave_grant (m, r->agency, grant)))
        return;
    model_deposit (r->model, account, amount, begin, end, funder, again ? -1 : reference, grant,
                   r->agency, &scope, s->want);
    if (funder >= 0 && strncmp (s->want, "done", 4) == 0)
        r->model->referred[funder][reference] = true;
}

struct model_ask draw_ask (struct run *r)
{
    struct model_ask ask = {.site = one_in (r, 12) ? 2 : (int)draw (r, 2)};
    ask.job = (long long)draw (r, JOBS);
    ask.incarnation = (long long)draw (r, 1 + (uint64_t)r->ops / 40);
    ask.procs = (long long)draw (r, 8) + 1;
    ask.seconds = (long long)draw (r, 30) + 1;
    ask.claimed = one_in (r, 10);
    ask.qos = draw_name (r);
    ask.class = draw_name (r);
    ask.machine = draw_name (r);
    ask.start = r->model->now + (one_in (r, 6) ? (long long)draw (r, 60) : 0);
    ask.coreserved = one_in (r, 4);
    ask.successful = !one_in (r, 4);
    ask.site_failed = one_in (r, 3);
    ask.pe = one_in (r, 3) ? (long long)draw (r, 9000) : 0;
    for (int i = 0; i < M_NAMES; i++)
        ask.nodes[i] = one_in (r, 3) ? (long long)draw (r, 4) : 0;
    for (int i = 0; i < M_NAMES; i++)
        ask.gres[i] = one_in (r, 5) ? (long long)draw (r, 4) : 0;
    ask.memory = one_in (r, 3) ? (long long)draw (r, 9000) : 0;
    if (r->quoted && one_in (r, 14))
        ask.quote = 1 + (long long)draw (r, (uint64_t)r->quoted + one_in (r, 20));
    return ask;
}

/* As rates look at it; named is where its node types and resources go. */
struct ledger_ask ledger_ask_of (const struct model_ask *ask, struct named *named, const char *job)
{
    struct ledger_ask out = {.qos = ask->qos < 0 ? "" : prop_qos[ask->qos],
                             .class_ = ask->class < 0 ? "" : prop_classes[ask->class],
                             .machine = ask->machine < 0 ? "" : prop_machines[ask->machine],
                             .coreserved = ask->coreserved,
                             .pe_milli = ask->pe,
                             .quote_id = ask->quote,
                             .quote_job = job,
                             .memory_mb = ask->memory,
                             .nodes = named->nodes,
                             .gres = named->gres};
    for (int i = 0; i < M_NAMES; i++)
        if (ask->nodes[i])
            named->nodes[out.nodes_count++] = (struct ledger_nodes){prop_nodes[i], ask->nodes[i]};
    for (int i = 0; i < M_NAMES; i++)
        if (ask->gres[i])
            named->gres[out.gres_count++] = (struct ledger_gres){prop_gres[i], ask->gres[i]};
    return out;
}

static void signature_of (const struct model_signature *s, char grid_job[16],
                          struct ledger_hold_ask *out)
{
    if (!s->is)
        return;
    snprintf (grid_job, 16, "grid.%d", s->grid_job);
    out->is_signed = true;
    out->job.grid_job = grid_job;
    memcpy (out->uuid.b, &s->uuid, sizeof (s->uuid));
    out->part = s->part ? "x" : "";
    out->live_max = (uint32_t)s->live_max;
    out->runs_max = (uint32_t)s->runs_max;
    out->hash[0] = (uint8_t)s->content;
    out->meta = metas[s->meta];
    out->meta_group = s->by_group;
    out->expires = edge (s->expires);
    out->cost_max = s->cost_max;
    out->bounds = (struct ledger_bounds){.procs = s->procs,
                                         .procs_max = s->procs_max,
                                         .nodes = s->nodes,
                                         .loose_procs = s->nodes ? 0 : s->procs,
                                         .loose_task = s->nodes ? 0 : s->task,
                                         .walltime = s->seconds * US_PER_S,
                                         .restarts_max = (uint32_t)s->restarts};
}

/* As the ledger is asked; job is where its name goes. */
static struct ledger_hold_ask hold_ask (struct run *r, const struct model_ask *ask, int account,
                                        char job[32], struct named *named)
{
    snprintf (job, 32, "j.%lld", ask->job);
    struct ledger_hold_ask out = {
        .job = {prop_sites[ask->site], job, "main", "grid.1", ask->incarnation},
        .account = draw_named (r, account),
        .procs = ask->procs,
        .walltime = ask->seconds * US_PER_S,
        .start = use_at (ask->start),
        .ask = ledger_ask_of (ask, named, job),
        .meta = "",
        .claimed = ask->claimed};
    signature_of (&ask->signature, named->grid_job, &out);
    return out;
}

/* What its user signed, always the same for the same job and content. */
static struct model_signature signed_once (int uuid, int content)
{
    struct run luck = {.rng = (uint64_t)(uuid * 2 + content) * UINT64_C (0x9e3779b97f4a7c15)};
    struct run *r = &luck;
    struct model_signature s = {.is = true, .uuid = uuid, .content = content};
    s.live_max = 1 + one_in (r, 3);
    s.runs_max = 1 + one_in (r, 3);
    s.restarts = one_in (r, 3) ? 0 : 1 + (int)draw (r, 3);
    s.cost_max = draw (r, 3) ? (long long)draw (r, 800) * 1000000 : 0;
    s.task = 1 + (long long)draw (r, 3);
    s.procs = s.task * (1 + (long long)draw (r, 4));
    s.procs_max = one_in (r, 4) ? (long long)draw (r, 12) : 0;
    s.nodes = one_in (r, 3) ? 1 + (long long)draw (r, 3) : 0;
    s.seconds = 5 + (long long)draw (r, 40);
    s.parts = one_in (r, 2);
    return s;
}

/* Mostly of jobs that were signed, and mostly as they were the first time. */
static struct model_signature draw_signature (struct run *r)
{
    struct model_signature s = {0};
    if (one_in (r, 3))
        return s;
    s = signed_once (1 + (int)(r->ops / 30) + (int)draw (r, 6), one_in (r, 12));
    s.grid_job = s.uuid + 10000 * one_in (r, 12);
    s.part = s.parts && one_in (r, 2);
    s.meta = one_in (r, 4) ? (int)draw (r, M_METAS) : 1;
    s.by_group = one_in (r, 6);
    s.expires = one_in (r, 4) ? r->model->now + (long long)draw (r, 60) - 20 : 0;
    s.expires = s.expires < 0 ? 0 : s.expires;
    return s;
}

/* An honest site asks for what was signed, or for less; a lying one, or a lying metascheduler, for whatever it likes. */
static void draw_honest (struct run *r, struct model_ask *ask)
{
    if (!ask->signature.is)
        return;
    ask->coreserved = ask->signature.parts;
    if (one_in (r, 6))
        return;
    if (ask->procs > ask->signature.procs)
        ask->procs = ask->signature.procs;
    if (ask->seconds > ask->signature.seconds)
        ask->seconds = ask->signature.seconds;
}

static void make_hold (struct run *r, struct sent *s)
{
    struct model_ask ask = draw_ask (r);
    int account = draw_account (r), user = draw_user (r);
    ask.procs = draw (r, 40) ? ask.procs : 0;
    if (!ask.claimed)
        ask.signature = draw_signature (r);
    draw_honest (r, &ask);
    if (ask.signature.is && one_in (r, 2)) { /* its site starts it again */
        ask.job = 1000 + ask.signature.uuid;
        ask.incarnation = (long long)draw (r, 3);
    }
    s->req = req_hold (&r->rig, prop_sites[ask.site], "", draw_named (r, account), prop_users[user],
                       ask.procs, ask.seconds);
    s->req.hold = hold_ask (r, &ask, account, s->job, &s->named[0]);
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
    struct model_signature signature = draw_signature (r);
    for (int i = 0; i < count; i++) {
        ask[i] = draw_ask (r);
        ask[i].incarnation += 1000000 * i; /* never one job twice */
        ask[i].claimed = false;
        ask[i].signature = signature;
        ask[i].signature.part ^= signature.parts && draw (r, 3) && i;
        draw_honest (r, &ask[i]);
        s->group[i] = hold_ask (r, &ask[i], account, s->jobs[i], &s->named[i]);
    }
    model_holds (r->model, ask, count, account, user, s->want);
}

/* An outbox's number that may leave a gap, be lost or come twice; mostly the next one. */
static unsigned long long draw_sequence (struct run *r, int site)
{
    unsigned long long last = r->model->acked[site];
    return one_in (r, 6) ? draw (r, 2) * last : last + 1 + (one_in (r, 4) ? draw (r, M_AHEAD) : 0);
}

/* What nothing held may be of a signed job, which may not have been for this site. */
static void draw_unheld (struct run *r, struct model_ask *ask)
{
    ask->signature = draw_signature (r);
    ask->signature.meta = 0;
    ask->signature.by_group = true;
    ask->signature.elsewhere = one_in (r, 8);
    ask->signature.created = r->model->now - (long long)draw (r, 80);
    if (ask->signature.is && one_in (r, 2)) { /* the job that holds are asked for */
        ask->job = 1000 + ask->signature.uuid;
        ask->incarnation = (long long)draw (r, 3);
    }
}

/* A site that lies. */
static void draw_lie (struct run *r, struct model_ask *ask)
{
    ask->procs *= one_in (r, 2) ? 1000 : 1;
    ask->seconds *= one_in (r, 2) ? 100 : 1;
    ask->start -= one_in (r, 2) ? (long long)draw (r, 5000) : 0;
    ask->start += one_in (r, 4) ? (long long)draw (r, 5000) : 0;
    ask->cpu *= one_in (r, 2) ? 100000 : 1;
    ask->pe *= one_in (r, 2) ? 1000 : 1;
    ask->successful = one_in (r, 2);
}

/* All is ahead of the bank's clock, or nothing: that runs on for some microseconds within a tick. */
static void draw_tolerance (struct run *r, struct model_ask *ask)
{
    long long now = r->model->now;
    ask->tolerance = one_in (r, 3) ? (long long)draw (r, 60) : 100000;
    if (ask->start < now + ask->tolerance && ask->start + ask->seconds >= now + ask->tolerance)
        ask->tolerance = ask->start + ask->seconds - now + 1;
}

static void charge_signature (const struct model_ask *ask, struct sent *s)
{
    struct ledger_signature *out = &s->signature;
    if (!ask->signature.is || ask->named)
        return;
    *out = (struct ledger_signature){.ask = {.job = s->req.charge.job,
                                             .account = s->req.charge.account,
                                             .procs = ask->procs,
                                             .walltime = ask->seconds * US_PER_S,
                                             .ask = s->req.charge.ask},
                                     .created = use_at (ask->signature.created),
                                     .forgotten = INT64_MAX,
                                     .unsigned_for = ask->signature.elsewhere ? "elsewhere" : NULL};
    signature_of (&ask->signature, s->named[0].grid_job, &out->ask);
    out->ask.job.site_job = s->job;
    s->req.charge.signature = out;
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
    ask.start = m->now + r->skew[ask.site] - (long long)draw (r, 60);
    if (one_in (r, 60))
        ask.start += 90000; /* a day ahead */
    ask.cpu = one_in (r, 2) ? (long long)draw (r, 300) : 0;
    ask.named = held;
    if (!held && !ask.claimed)
        draw_unheld (r, &ask);
    if (one_in (r, 20))
        draw_lie (r, &ask);
    draw_tolerance (r, &ask);
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
    s->req.charge.account = held ? "" : draw_named (r, account);
    s->req.charge.claimed = ask.claimed;
    s->req.charge.tolerance = ask.tolerance * US_PER_S;
    s->req.charge.ask = ledger_ask_of (&ask, &s->named[0], s->job);
    s->req.on_behalf = held ? s->req.client : prop_users[user];
    charge_signature (&ask, s);
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

/* One of the account's, if luck wants it; -1: those that are valid now. An agency tries others', too. */
int draw_alloc (struct run *r, int account)
{
    int alloc = r->granted && one_in (r, 3) ? (int)draw (r, (uint64_t)r->granted) : -1;
    bool any = r->agency >= 0 && one_in (r, 3);
    for (int k = 0; !any && alloc >= 0 && k < 20 && r->model->alloc[alloc].account != account; k++)
        alloc = (int)draw (r, (uint64_t)r->granted);
    return alloc;
}

int64_t alloc_id (const struct run *r, int alloc)
{
    return alloc < 0 ? 0 : r->model->alloc[alloc].id;
}

/* A job that is charged in this batch: what is due of it the bank asks itself only once that is written. */
static bool under_way (const struct run *r, long long charge)
{
    const struct model *m = r->model;
    int i = r->charged;
    while (i < m->charges && m->charge[i].usage != m->charge[charge - 1].usage)
        i++;
    return i < m->charges;
}

static void make_refund (struct run *r, struct sent *s)
{
    long long n = 1 + (long long)draw (r, (uint64_t)r->charged);
    long long amount = one_in (r, 2) ? 0 : (long long)draw (r, 20000000);
    s->req = req_refund (&r->rig, r->charge_op[n], amount);
    s->req.refund.due = one_in (r, 2) && !under_way (r, n);
    if (refused (r, s, -1, true, model_paid (r->model, r->agency, n)))
        return;
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
        s->req = req_withdraw (&r->rig, draw_named (r, account), amount);
        s->req.withdraw.allocation_id = alloc_id (r, alloc);
        if (refused (r, s, -1, true, model_gave (m, r->agency, alloc)))
            return;
        model_withdraw (m, account, alloc, amount, r->agency, s->want);
    } else if (what == 1) {
        s->req = req_transfer (&r->rig, draw_named (r, account), draw_named (r, other), amount);
        s->req.transfer.allocation_id = alloc_id (r, alloc);
        if (refused (r, s, -1, true, model_gave (m, r->agency, alloc)))
            return;
        model_transfer (m, account, other, alloc, amount, r->agency, s->want);
    } else if (what == 2 && r->granted) {
        alloc = (int)draw (r, (uint64_t)r->granted);
        amount = amount % 50000000;
        s->req = req_limit (&r->rig, m->alloc[alloc].id, amount);
        if (refused (r, s, -1, true, model_gave (m, r->agency, alloc)))
            return;
        model_limit (m, alloc, amount, s->want);
    } else if (r->charged) {
        make_refund (r, s);
    } else {
        make_deposit (r, s);
    }
}

/* Mostly of what has ended; by the bank itself, or asked for. */
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
    bool due = draw (r, 3);
    s->req = req_new (&r->rig, LEDGER_EXPIRE, due ? "bank:expiry" : "nui://t/agency/f");
    s->req.expire.allocation_id = m->alloc[alloc].id;
    s->req.expire.due = due;
    s->req.expire.description = "";
    if (!due && refused (r, s, -1, true, model_gave (m, r->agency, alloc)))
        return;
    model_expire (r->model, alloc, s->want);
    s->forgotten = due && strncmp (s->want, "error", 5) == 0;
}

/* Mostly of what has begun a moment ago. */
static void make_begin (struct run *r, struct sent *s)
{
    const struct model *m = r->model;
    int alloc = (int)draw (r, (uint64_t)r->granted);
    for (int k = 0; k < r->granted && draw (r, 50); k++) {
        int next = (alloc + k) % r->granted;
        if (!m->alloc[next].at_once && m->alloc[next].begin <= m->now &&
            m->alloc[next].posted > 0) {
            alloc = next;
            break;
        }
    }
    s->req = req_new (&r->rig, LEDGER_BEGIN, "bank:begin");
    s->req.begin.allocation_id = m->alloc[alloc].id;
    model_begin (r->model, alloc, s->want);
    s->forgotten = strncmp (s->want, "error", 5) == 0;
}

/* A request of the past, as it was or with another content under its key. */
static void make_again (struct run *r, struct sent *s)
{
    *s = *r->past[draw (r, (uint64_t)r->past_count)];
    r->replays++;
    s->kept = false;
    if (strcmp (s->want, "error -1") == 0 && s->req.kind != LEDGER_CHARGE) {
        /* Malformed: was not remembered, and is refused again. */
    } else if (one_in (r, 3)) {
        s->req.hash[31] ^= 1;
        sprintf (s->want, "error -7");
    }
}

struct sent *prop_make (struct run *r, enum prop_kind kind)
{
    /* Of a hundred and a few more of offices: from what is below on. */
    static const uint64_t
        from[] = {[PROP_ANY] = 0, [PROP_DAILY] = 27, [PROP_HOLDS] = 30, [PROP_OFFICE] = 100},
        to[] = {[PROP_ANY] = 115, [PROP_DAILY] = 100, [PROP_HOLDS] = 57, [PROP_OFFICE] = 101};
    struct sent *s = calloc (1, sizeof (*s));
    uint64_t what = from[kind] + draw (r, to[kind] - from[kind]);
    assert (s);
    s->kept = true;
    r->as = one_in (r, 5) ? draw_user (r) : -1;
    r->agency = r->as < 0 && one_in (r, 3) ? (int)draw (r, M_FUNDERS) : -1;
    if (what < 10)
        make_deposit (r, s);
    else if (what < 16)
        make_correction (r, s);
    else if (what < 23 || what >= 100)
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
        one_in (r, 4) ? make_begin (r, s) : make_expire (r, s);
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
    /* Malformed, so not remembered: sent again it is refused for that or for what its sender may then. */
    if ((s->req.by_user || s->req.agency) && strcmp (s->want, "error -1") == 0)
        s->forgotten = true;
    model_note (r->model, ledger_kind_name (s->req.kind));
    return s;
}
