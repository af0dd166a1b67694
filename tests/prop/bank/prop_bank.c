/* Random operations against the real committer on a real PostgreSQL and against the model: every
 * answer is compared, and after every batch the books must balance. Backends are killed on the way.
 *
 * NUI_PROP_OPS: how many operations (default 1500); NUI_PROP_SEED: from where (default: fixed);
 * NUI_PROP_WITHOUT: which are left out, "0-99,120-120", in order (long.py shrinks a failure so). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "tests/prop/bank/model.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

enum { BATCH_MAX = 24, PAST_MAX = 4096, JOBS = 40, WITHOUT_MAX = 4096 };

static const char *const users[M_USERS] = {"nui://t/user/u0", "nui://t/user/u1", "nui://t/user/u2"};
static const char *const sites[M_SITES] = {"s0", "s1", "s2"}; /* s2 has no rate */
static const char *const projects[M_PROJECTS] = {"p0", "p1"};
static const char *const found_job[2 * M_FINDINGS] = {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"};
static const char *const kinds[M_KINDS] = {"LATE", "DUPLICATE", "AMOUNT_DIFF"};

struct sent {
    struct ledger_request req;
    char job[32], hold[32];
    char jobs[M_GROUP][32];
    struct ledger_hold_ask group[M_GROUP];
    struct ledger_quote quote;
    struct ledger_quote_item item[M_SITES];
    struct ledger_fallback_ask fallback[M_FALLBACKS];
    struct ledger_finding finding[M_FINDINGS];
    char *kind[M_KINDS];
    char want[2048];
    struct answer answer;
};

struct run {
    struct pg_fixture *pg;
    const char *conninfo;
    struct bankrig rig;
    PGconn *sql;
    struct model *model;
    uint64_t rng, seed;
    struct {
        long long first, last;
    } without[WITHOUT_MAX];
    int without_count, without_at;
    time_us use; /* when all charged use begins */
    struct sent *past[PAST_MAX];
    int past_count;
    long long ops, kills, replays;
    /* Charges, allocations, quotes and rows of the batches that were answered. */
    int charged, granted, quoted, opened;
};

static uint64_t draw (struct run *r, uint64_t below)
{
    r->rng = r->rng * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (r->rng >> 33) % below;
}

/* Each operation's draws are its own: leaving others out changes what it meets and nothing else. */
static void draw_anew (struct run *r, uint64_t stream)
{
    uint64_t x = r->seed + UINT64_C (0x9e3779b97f4a7c15) * ((uint64_t)r->ops * 2 + stream + 1);
    x = (x ^ (x >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C (0x94d049bb133111eb);
    r->rng = x ^ (x >> 31);
}

static void without_read (struct run *r, const char *text)
{
    for (int used = 0; text && *text; text += used + (text[used] == ',')) {
        if (r->without_count == WITHOUT_MAX ||
            sscanf (text, "%lld-%lld%n", &r->without[r->without_count].first,
                    &r->without[r->without_count].last, &used) != 2) {
            fprintf (stderr, "prop_bank: NUI_PROP_WITHOUT is no list of ranges at '%s'\n", text);
            exit (2);
        }
        r->without_count++;
    }
}

/* Asked in order. */
static bool left_out (struct run *r)
{
    while (r->without_at < r->without_count && r->without[r->without_at].last < r->ops)
        r->without_at++;
    return r->without_at < r->without_count && r->without[r->without_at].first <= r->ops;
}

static void die (struct run *r, const char *what, const struct sent *s)
{
    fprintf (stderr, "prop_bank: seed %" PRIu64 ", operation %lld: %s\n", r->seed, r->ops, what);
    if (s)
        fprintf (stderr, "  %s\n  wanted: %s\n  got:    %s%s\n", ledger_kind_name (s->req.kind),
                 s->want, s->answer.err.code ? s->answer.err.text : "", s->answer.text);
    pg_fixture_stop (r->pg);
    exit (1);
}

static void must (struct run *r, struct ledger_request req)
{
    struct answer a = bankrig_ask (&r->rig, &req);
    if (a.err.code)
        die (r, a.err.text, NULL);
}

static void found (struct run *r)
{
    struct model *m = r->model;
    /* At first a0 -> a1 -> a2 -> a3 -> a4; a5 -> a1, a6; the others alone. u0 is in p0, u1 in both
     * projects, u2 nowhere. a8 and a9 may be closed. */
    static const int project_of[M_ACCOUNTS] = {0, 0, 0, 1, 1, 0, 1, 0, 0, 1};
    static const int order[M_ACCOUNTS] = {4, 3, 2, 1, 0, 6, 5, 7, 8, 9};
    struct ledger_request below = req_project (&r->rig, "p1");
    struct ledger_request funder = req_new (&r->rig, LEDGER_FUNDER_CREATE, "nui://t/agency/f");
    below.project.parent = "p0";
    funder.funder.name = "f";
    funder.funder.description = "";
    must (r, req_project (&r->rig, "p0"));
    must (r, below);
    must (r, funder);
    for (int u = 0; u < M_USERS; u++)
        must (r, req_user (&r->rig, users[u]));
    must (r, req_member (&r->rig, "p0", users[0]));
    must (r, req_member (&r->rig, "p0", users[1]));
    must (r, req_member (&r->rig, "p1", users[1]));
    m->member[0][0] = m->member[1][0] = m->member[1][1] = true;
    m->member_id[0][0] = 1;
    m->member_id[1][0] = 2;
    m->member_id[1][1] = 3;
    m->next_member = 4;
    for (int a = 0; a < 4; a++)
        m->fallback[a][m->fallbacks[a]++] = a + 1;
    m->fallback[5][m->fallbacks[5]++] = 1;
    m->fallback[5][m->fallbacks[5]++] = 6;
    /* Four deep at most: a5 -> a1 -> a2 -> a3 -> a4. */
    for (int i = 0; i < M_ACCOUNTS; i++) {
        int a = order[i];
        const char *names[M_FALLBACKS];
        for (int f = 0; f < m->fallbacks[a]; f++)
            names[f] = model_account_name (m->fallback[a][f]);
        must (r, req_account (&r->rig, model_account_name (a), projects[project_of[a]], names,
                              (uint32_t)m->fallbacks[a]));
        char sql[80];
        snprintf (sql, sizeof (sql), "SELECT id FROM account WHERE name = '%s'",
                  model_account_name (a));
        m->account_id[a] = pg_fixture_number (r->sql, sql);
        m->project[a] = project_of[a];
    }
    must (r, req_rate (&r->rig, "s0", 1000000));
    must (r, req_rate (&r->rig, "s1", 1333333));
    m->rate[0] = 1000000;
    m->rate[1] = 1333333;
    m->rate[2] = -1;
    m->card[0] = m->card[1] = 1;
    m->next_alloc = 1 + pg_fixture_number (r->sql, "SELECT max (id) FROM allocation");
    r->use = clock_now_us () + 3600 * US_PER_S;
}

static void make_deposit (struct run *r, struct sent *s)
{
    int account = (int)draw (r, M_ACCOUNTS);
    long long amount =
        draw (r, 20) ? (long long)draw (r, 3000) * 100000 + 1 : -(long long)draw (r, 2);
    long long end = draw (r, 3) ? 0 : (long long)(draw (r, 5) + 1) * 100000;
    bool later = draw (r, 6) == 0;
    time_us from = later ? r->use + 86400 * US_PER_S : 0;
    time_us to = end ? r->use + (end + 200000) * US_PER_S : 0;
    int funder = draw (r, 4) ? 0 : 1 + (draw (r, 10) == 0);
    long long grant = !funder && draw (r, 5) == 0 ? 1 + (long long)draw (r, (uint64_t)r->model->grants + 2) : 0;
    s->req = req_deposit (&r->rig, model_account_name (account), amount, from, to);
    s->req.deposit.grant_id = grant;
    if (funder) {
        s->req.kind = LEDGER_GRANT;
        s->req.deposit.funder = funder == 1 ? "f" : "nobody";
        s->req.deposit.reference = "G";
    }
    model_deposit (r->model, account, amount, later, end ? end : INT64_MAX, funder, grant, s->want);
}

static struct model_ask draw_ask (struct run *r)
{
    struct model_ask ask = {.site = (int)draw (r, 12) == 0 ? 2 : (int)draw (r, 2)};
    ask.job = (long long)draw (r, JOBS);
    ask.incarnation = (long long)draw (r, 1 + (uint64_t)r->ops / 200);
    ask.procs = (long long)draw (r, 8) + 1;
    ask.seconds = (long long)draw (r, 30) + 1;
    ask.claimed = draw (r, 10) == 0;
    if (r->quoted && draw (r, 8) == 0)
        ask.quote = 1 + (long long)draw (r, (uint64_t)r->quoted + (draw (r, 20) == 0));
    return ask;
}

static int draw_user (struct run *r)
{
    return (int)draw (r, 10) == 0 ? 2 : (int)draw (r, 2);
}

/* As the ledger is asked; job is where its name goes. */
static struct ledger_hold_ask hold_ask (const struct model_ask *ask, int account, char job[32])
{
    snprintf (job, 32, "j.%lld", ask->job);
    return (struct ledger_hold_ask){
        .job = {sites[ask->site], job, "main", "grid.1", ask->incarnation},
        .account = model_account_name (account),
        .procs = ask->procs,
        .walltime = ask->seconds * US_PER_S,
        .ask = {.quote_id = ask->quote, .quote_job = job},
        .claimed = ask->claimed};
}

static void make_hold (struct run *r, struct sent *s)
{
    struct model_ask ask = draw_ask (r);
    int account = (int)draw (r, M_ACCOUNTS), user = draw_user (r);
    ask.procs = draw (r, 40) ? ask.procs : 0;
    s->req = req_hold (&r->rig, sites[ask.site], "", model_account_name (account), users[user],
                       ask.procs, ask.seconds);
    s->req.hold = hold_ask (&ask, account, s->job);
    request_seal (&s->req);
    model_holds (r->model, &ask, 1, account, user, s->want);
}

static void make_group (struct run *r, struct sent *s)
{
    struct model_ask ask[M_GROUP];
    int account = (int)draw (r, M_ACCOUNTS), user = draw_user (r);
    int count = 2 + (int)draw (r, M_GROUP - 1);
    s->req = req_new (&r->rig, LEDGER_HOLD_GROUP, "nui://t/meta/m");
    s->req.on_behalf = users[user];
    s->req.group.item = s->group;
    s->req.group.count = (uint32_t)count;
    for (int i = 0; i < count; i++) {
        ask[i] = draw_ask (r);
        ask[i].incarnation += 1000000 * i; /* never one job twice */
        s->group[i] = hold_ask (&ask[i], account, s->jobs[i]);
    }
    model_holds (r->model, ask, count, account, user, s->want);
}

static void make_charge (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    bool held = m->holds && draw (r, 8) != 0;
    long long n = held ? 1 + (long long)draw (r, (uint64_t)m->holds) : 0;
    /* Mostly of late holds, which are still open. */
    if (held && m->holds > 30 && draw (r, 5))
        n = m->holds - (long long)draw (r, 30);
    int user = (int)draw (r, M_USERS), account = (int)draw (r, M_ACCOUNTS);
    struct model_ask ask = draw_ask (r);
    ask.site = held ? m->hold[n - 1].site : (int)draw (r, M_SITES);
    if (held) {
        ask.job = m->hold[n - 1].job;
        ask.incarnation = m->hold[n - 1].incarnation;
        ask.claimed = false;
        ask.quote = 0;
    }
    if (held && draw (r, 30) == 0)
        ask.site = !ask.site;
    if (held && draw (r, 30) == 0)
        ask.job++;
    ask.procs = draw (r, 50) ? (long long)draw (r, 9) + 1 : 0;
    ask.seconds = (long long)draw (r, 40);
    bool final = draw (r, 3) != 0;
    snprintf (s->job, sizeof (s->job), "j.%lld", ask.job);
    if (held)
        snprintf (s->hold, sizeof (s->hold), "hold.%lld", n);
    s->req = req_charge (&r->rig, sites[ask.site], s->job, s->hold, ask.procs, r->use, ask.seconds,
                         final);
    s->req.charge.job.incarnation = ask.incarnation;
    s->req.charge.account = held ? "" : model_account_name (account);
    s->req.charge.claimed = ask.claimed;
    s->req.charge.ask.quote_id = ask.quote;
    s->req.charge.ask.quote_job = s->job;
    s->req.on_behalf = held ? s->req.client : users[user];
    model_charge (m, &ask, n, account, user, final, s->want);
}

static void make_release (struct run *r, struct sent *s)
{
    long long n = 1 + (long long)draw (r, (uint64_t)r->model->holds + 2);
    int site = n <= r->model->holds && draw (r, 10) ? r->model->hold[n - 1].site : (int)draw (r, 2);
    snprintf (s->hold, sizeof (s->hold), "hold.%lld", n);
    s->req = req_release (&r->rig, sites[site], s->hold);
    model_release (r->model, site, n, s->want);
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
    s->req = req_new (&r->rig, LEDGER_EXTEND, sites[site]);
    s->req.extend.site = sites[site];
    s->req.extend.walltime = seconds * US_PER_S;
    model_extend (m, site, n, seconds, s->want);
}

static void make_correction (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account = (int)draw (r, M_ACCOUNTS), other = (int)draw (r, M_ACCOUNTS);
    long long amount =
        draw (r, 20) ? (long long)draw (r, 900) * 100000 + 1 : -(long long)draw (r, 2);
    uint64_t what = draw (r, 4);
    if (what == 0) {
        s->req = req_withdraw (&r->rig, model_account_name (account), amount);
        model_withdraw (m, account, amount, s->want);
    } else if (what == 1) {
        s->req = req_transfer (&r->rig, model_account_name (account), model_account_name (other),
                               amount);
        model_transfer (m, account, other, amount, s->want);
    } else if (what == 2 && r->granted) {
        int alloc = (int)draw (r, (uint64_t)r->granted);
        amount = amount % 50000000;
        s->req = req_limit (&r->rig, m->alloc[alloc].id, amount);
        model_limit (m, alloc, amount, s->want);
    } else if (r->charged) {
        long long n = 1 + (long long)draw (r, (uint64_t)r->charged);
        char sql[80];
        snprintf (sql, sizeof (sql), "SELECT op_id FROM charge WHERE id = %lld", n);
        amount = draw (r, 2) ? 0 : amount % 20000000;
        s->req = req_refund (&r->rig, pg_fixture_number (r->sql, sql), amount);
        model_refund (m, n, amount, s->want);
    } else {
        make_deposit (r, s);
    }
}

/* ---- what agencies and operators do ---- */

static void make_carry (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int alloc = (int)draw (r, (uint64_t)r->granted);
    long long end = (long long)(draw (r, 7) + 1) * 100000,
              cap = draw (r, 2) ? 0 : (long long)draw (r, 900) * 100000 - 1;
    s->req = req_new (&r->rig, LEDGER_CARRY_FORWARD, "nui://t/agency/f");
    s->req.carry.allocation_id = m->alloc[alloc].id;
    s->req.carry.cap = cap;
    s->req.carry.valid_to = r->use + (end + 200000) * US_PER_S;
    s->req.carry.description = "";
    model_carry (m, alloc, cap, end, s->want);
}

static void make_fallbacks (struct run *r, struct sent *s)
{
    int account = (int)draw (r, M_ACCOUNTS), list[M_FALLBACKS], count = (int)draw (r, 3);
    s->req = req_new (&r->rig, LEDGER_ACCOUNT_MODIFY, "nui://t/agency/f");
    s->req.account.name = model_account_name (account);
    s->req.account.fallbacks = s->fallback;
    s->req.account.fallback_count = (uint32_t)count;
    s->req.account.keep_scopes = true;
    for (int i = 0; i < count; i++) {
        list[i] = ((int)draw (r, M_ACCOUNTS / 2) + i * M_ACCOUNTS / 2) % M_ACCOUNTS; /* none twice */
        s->fallback[i] = (struct ledger_fallback_ask){model_account_name (list[i]), "", ""};
    }
    model_fallbacks (r->model, account, list, count, s->want);
}

static void make_office (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int account = (int)draw (r, M_ACCOUNTS), other = (int)draw (r, M_ACCOUNTS), site = (int)draw (r, 2);
    uint64_t what = draw (r, 12);
    if (what < 3 && account != other) {
        long long amount = (long long)draw (r, 900) * 100000 + 1;
        s->req = req_transfer (&r->rig, model_account_name (account), model_account_name (other),
                               amount);
        s->req.kind = LEDGER_SPLIT;
        model_split (m, account, other, amount, s->want);
    } else if (what < 5 && r->granted) {
        make_carry (r, s);
    } else if (what == 5 && draw (r, 4) == 0) {
        account = 8 + (int)draw (r, 2);
        s->req = req_new (&r->rig, LEDGER_ACCOUNT_CLOSE, "nui://t/agency/f");
        s->req.close.name = model_account_name (account);
        s->req.close.reason = "";
        model_close (m, account, s->want);
    } else if (what < 7) {
        int user = (int)draw (r, M_USERS), project = (int)draw (r, M_PROJECTS);
        /* u1 mostly stays what it is. */
        bool remove = draw (r, user == 1 ? 9 : 2) == 0;
        s->req = req_member (&r->rig, projects[project], users[user]);
        s->req.member.remove = remove;
        model_member (m, user, project, remove, s->want);
    } else if (what < 9) {
        make_fallbacks (r, s);
    } else if (what < 11) {
        long long ppm = (long long)draw (r, 3000000);
        s->req = req_rate (&r->rig, sites[site], ppm);
        model_rate (m, site, ppm, s->want);
    } else {
        bool claims = draw (r, 2);
        s->req = req_new (&r->rig, LEDGER_SITE_SET, "nui://t/operator/o");
        s->req.site.site = sites[site];
        s->req.site.claims = claims;
        s->req.site.keep_refunds = true;
        model_claims (m, site, claims, s->want);
    }
}

static void make_quote (struct run *r, struct sent *s)
{
    struct model_ask ask[M_SITES];
    int account = (int)draw (r, M_ACCOUNTS), user = draw_user (r), count = 1 + (int)draw (r, 2);
    bool reusable = draw (r, 3) == 0, ended = draw (r, 6) == 0;
    int first = draw (r, 15) ? (int)draw (r, 2) : 2;
    s->req = req_new (&r->rig, LEDGER_QUOTE, users[user]);
    s->req.quote.ask = &s->quote;
    s->req.quote.keep = ended ? 1 : 10 * 86400 * US_PER_S;
    s->req.quote.reusable = reusable;
    s->quote = (struct ledger_quote){.identity = users[user],
                                     .account = model_account_name (account),
                                     .item = s->item,
                                     .item_count = (uint32_t)count};
    for (int i = 0; i < count; i++) {
        ask[i] = draw_ask (r);
        ask[i].site = i ? !first : first;
        ask[i].quote = 0;
        s->item[i] = (struct ledger_quote_item){.site = sites[ask[i].site],
                                                .procs = ask[i].procs,
                                                .walltime = ask[i].seconds * US_PER_S};
    }
    model_quote (r->model, ask, count, account, user, reusable, ended, s->want);
}

static void make_recon (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    int site = (int)draw (r, 2);
    if (r->opened && draw (r, 3) == 0) {
        long long row = 1 + (long long)draw (r, (uint64_t)r->opened + (draw (r, 9) == 0));
        bool close = draw (r, 2), known = draw (r, 4) != 0;
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
    s->req.recon.site = sites[site];
    s->req.recon.from = r->use + from;
    s->req.recon.to = r->use + to;
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
                                                .since = r->use + found[i].since};
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
    } else if (draw (r, 3) == 0) {
        s->req.hash[31] ^= 1;
        sprintf (s->want, "error -7");
    }
}

static struct sent *make (struct run *r)
{
    struct sent *s = calloc (1, sizeof (*s));
    uint64_t what = draw (r, 100);
    assert (s);
    if (what < 10)
        make_deposit (r, s);
    else if (what < 16)
        make_correction (r, s);
    else if (what < 22)
        make_office (r, s);
    else if (what < 24)
        make_quote (r, s);
    else if (what < 26)
        make_recon (r, s);
    else if (what < 29)
        make_group (r, s);
    else if (what < 56)
        make_hold (r, s);
    else if (what < 82)
        make_charge (r, s);
    else if (what < 86)
        make_extend (r, s);
    else if (what < 91 || !r->past_count)
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

static void compare (struct run *r, struct sent *s)
{
    char got[2048];
    if (s->answer.err.code)
        snprintf (got, sizeof (got), "error %d", s->answer.err.code);
    else
        snprintf (got, sizeof (got), "%s", s->answer.text);
    if (strcmp (got, s->want) != 0)
        die (r, "the answers differ", s);
}

static void equal (struct run *r, const char *what, long long bank, long long model)
{
    char text[160];
    snprintf (text, sizeof (text), "%s: the bank has %lld, the model %lld", what, bank, model);
    if (bank != model)
        die (r, text, NULL);
}

static void balances (struct run *r)
{
    struct model *m = r->model;
    PGresult *res = PQexec (
        r->sql, "SELECT b.allocation_id, b.granted, b.settled, b.posted, b.held, coalesce (l.award_id, 0) "
                "FROM balance b JOIN allocation l ON l.id = b.allocation_id ORDER BY 1");
    equal (r, "allocations", PQntuples (res), m->allocs);
    for (int i = 0; i < m->allocs; i++) {
        equal (r, "id", atoll (PQgetvalue (res, i, 0)), m->alloc[i].id);
        equal (r, "granted", atoll (PQgetvalue (res, i, 1)), m->alloc[i].granted);
        equal (r, "settled", atoll (PQgetvalue (res, i, 2)), m->alloc[i].settled);
        equal (r, "posted", atoll (PQgetvalue (res, i, 3)), m->alloc[i].posted);
        equal (r, "held", atoll (PQgetvalue (res, i, 4)), m->alloc[i].held);
        equal (r, "grant", atoll (PQgetvalue (res, i, 5)), m->alloc[i].grant);
    }
    PQclear (res);
    equal (r, "suspense",
           pg_fixture_number (r->sql,
                              "SELECT coalesce (-sum (amount), 0) FROM entry WHERE account_id = 2"),
           m->suspense);
    int open = 0, used = 0;
    for (int i = 0; i < m->rows; i++)
        open += m->row[i].state == M_OPEN;
    for (int i = 0; i < m->pins; i++)
        used += m->pin[i].used;
    equal (r, "rows of reconciliation", pg_fixture_number (r->sql, "SELECT count (*) FROM recon_row"),
           m->rows);
    equal (r, "open ones",
           pg_fixture_number (r->sql, "SELECT count (*) FROM recon_row r WHERE NOT EXISTS (SELECT FROM "
                                      "recon_event e WHERE e.row_id = r.id AND e.kind <> 'owned')"),
           open);
    equal (r, "quotes that were used",
           pg_fixture_number (r->sql, "SELECT count (DISTINCT quote_id) FROM quote_use"), used);
    equal (r, "earned by s1",
           pg_fixture_number (r->sql,
                              "SELECT coalesce (sum (amount), 0) FROM entry e JOIN account a ON "
                              "a.id = e.account_id WHERE a.name = 'site:s1' AND layer = 'P'"),
           m->earned[1]);
}

/* What must hold of the journal, whatever was asked. */
static void invariants (struct run *r)
{
    static const char *const none[][2] = {
        {"an operation does not sum to zero", "SELECT count (*) FROM (SELECT 1 FROM entry GROUP BY "
                                              "op_id, unit_id, layer HAVING sum (amount) <> 0) x"},
        {"a balance is not the sum of its entries",
         "SELECT count (*) FROM balance b LEFT JOIN (SELECT allocation_id, coalesce (sum (amount) "
         "FILTER (WHERE layer = 'P'), 0) p, "
         "coalesce (sum (amount) FILTER (WHERE layer = 'H'), 0) h FROM entry GROUP BY "
         "allocation_id) e USING (allocation_id) "
         "WHERE b.posted <> coalesce (e.p, 0) OR b.held <> coalesce (e.h, 0)"},
        {"what is held is not the sum of open legs",
         "SELECT count (*) FROM balance b LEFT JOIN (SELECT allocation_id, sum (g.amount - "
         "g.settled - g.released) h FROM hold_leg g "
         "JOIN hold ON id = hold_id WHERE open GROUP BY allocation_id) e USING (allocation_id) "
         "WHERE b.held <> coalesce (e.h, 0)"},
        {"a charge is not the sum of its legs",
         "SELECT count (*) FROM charge c LEFT JOIN (SELECT charge_id, sum (amount) a FROM "
         "charge_leg GROUP BY 1) g ON g.charge_id = c.id "
         "WHERE c.amount <> coalesce (g.a, 0)"},
        {"a leg of a charge was refunded more than it paid",
         "SELECT count (*) FROM charge_leg g JOIN (SELECT charge_id, charge_leg, sum (amount) a "
         "FROM refund_leg GROUP BY 1, 2) r ON r.charge_id = g.charge_id AND r.charge_leg = g.leg "
         "WHERE r.a > g.amount"},
        {"an allocation is not what was granted less what was charged",
         "SELECT count (*) FROM (SELECT account_id FROM balance b JOIN allocation l ON l.id = "
         "b.allocation_id GROUP BY 1 HAVING sum (posted + settled - granted) <> 0) x"},
        {"a usage is not the sum of its charges",
         "SELECT count (*) FROM usage u JOIN (SELECT usage_id, sum (amount) a FROM charge GROUP BY "
         "1) c ON c.usage_id = u.id WHERE u.total <> c.a"},
    };
    for (size_t i = 0; i < sizeof (none) / sizeof (none[0]); i++)
        if (pg_fixture_number (r->sql, none[i][1]) != 0)
            die (r, none[i][0], NULL);
}

static void kill_backends (struct run *r)
{
    PQclear (PQexec (r->sql, "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE "
                             "application_name LIKE 'nui-bank%'"));
    r->kills++;
}

/* Sends a batch; with a disaster on the way, what was not decided is sent again in its order. */
static void go (struct run *r, struct sent **s, int count, bool disaster)
{
    for (int i = 0; i < count; i++)
        bankrig_send (&r->rig, &s[i]->req, &s[i]->answer);
    if (disaster) {
        int turns = (int)draw (r, 4);
        for (int i = 0; i < turns; i++)
            event_base_loop (r->rig.base, EVLOOP_NONBLOCK);
        kill_backends (r);
    }
    for (int i = 0; i < count; i++) {
        bankrig_await (&r->rig, &s[i]->answer);
        if (s[i]->answer.err.code == ERR_UNAVAILABLE)
            for (int k = i; k < count; k++) {
                /* All from here on were refused the same way, or come after in order. */
                bankrig_await (&r->rig, &s[k]->answer);
                if (s[k]->answer.err.code != ERR_UNAVAILABLE)
                    die (r, "one was decided out of order", s[k]);
                bankrig_send (&r->rig, &s[k]->req, &s[k]->answer);
            }
        bankrig_await (&r->rig, &s[i]->answer);
    }
}

int main (void)
{
    static struct run run;
    struct run *r = &run;
    const char *ops = getenv ("NUI_PROP_OPS"), *seed = getenv ("NUI_PROP_SEED");
    long long wanted = ops ? atoll (ops) : 1500;
    r->seed = r->rng = seed ? strtoull (seed, NULL, 10) : 20261121;
    without_read (r, getenv ("NUI_PROP_WITHOUT"));
    r->model = calloc (1, sizeof (*r->model));
    r->pg = pg_fixture_start (false);
    if (!r->pg || !r->model)
        return 1;
    r->conninfo = pg_fixture_database (r->pg, "prop");
    bankrig_open (&r->rig, r->conninfo);
    assert (bankrig_wait_up (&r->rig, true));
    r->sql = pg_fixture_connect (r->conninfo);
    found (r);
    while (r->ops < wanted) {
        struct sent *batch[BATCH_MAX];
        draw_anew (r, 0);
        int asked = 1 + (int)draw (r, BATCH_MAX), count = 0;
        bool disaster = draw (r, 25) == 0;
        for (; asked > 0; asked--, r->ops++) {
            draw_anew (r, 1);
            if (!left_out (r))
                batch[count++] = make (r);
        }
        go (r, batch, count, disaster);
        for (int i = 0; i < count; i++) {
            compare (r, batch[i]);
            if (r->past_count < PAST_MAX && strcmp (batch[i]->want, "error -7") != 0)
                r->past[r->past_count++] = batch[i];
            else
                free (batch[i]);
        }
        invariants (r);
        balances (r);
        r->charged = r->model->charges;
        r->granted = r->model->allocs;
        r->quoted = r->model->pins;
        r->opened = r->model->rows;
    }
    struct committer_stats stats = committer_stats (r->rig.committer);
    printf ("prop_bank: seed %" PRIu64
            ": %lld operations, %d holds, %d quotes, %lld grants, %d rows of reconciliation, %lld "
            "requests repeated, %lld backends killed, largest batch %u: every answer and every "
            "balance equal\n",
            r->seed, r->ops, r->model->holds, r->model->pins, r->model->grants, r->model->rows, r->replays, r->kills, stats.batch_max);
    for (int i = 0; i < r->past_count; i++)
        free (r->past[i]);
    bankrig_close (&r->rig);
    PQfinish (r->sql);
    pg_fixture_stop (r->pg);
    free (r->model);
    return 0;
}
