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

struct sent {
    struct ledger_request req;
    char job[32], hold[32];
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
    int charged, granted; /* charges and allocations of the batches that were answered */
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
    /* a0 -> a1 -> a2 -> a3 -> a4; a5 -> a1, a6; a6 and a7 alone. u0 is in p0 (a0 a1 a2 a5 a7), u1
     * in both projects, u2 nowhere. */
    static const char *const project_of[M_ACCOUNTS] = {"p0", "p0", "p0", "p1",
                                                       "p1", "p0", "p1", "p0"};
    static const int order[M_ACCOUNTS] = {4, 3, 2, 1, 0, 6, 5, 7};
    must (r, req_project (&r->rig, "p0"));
    must (r, req_project (&r->rig, "p1"));
    for (int u = 0; u < M_USERS; u++)
        must (r, req_user (&r->rig, users[u]));
    must (r, req_member (&r->rig, "p0", users[0]));
    must (r, req_member (&r->rig, "p0", users[1]));
    must (r, req_member (&r->rig, "p1", users[1]));
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
        must (r, req_account (&r->rig, model_account_name (a), project_of[a], names,
                              (uint32_t)m->fallbacks[a]));
        m->member[0][a] = strcmp (project_of[a], "p0") == 0;
        m->member[1][a] = true;
    }
    must (r, req_rate (&r->rig, "s0", 1000000));
    must (r, req_rate (&r->rig, "s1", 1333333));
    m->rate[0] = 1000000;
    m->rate[1] = 1333333;
    m->rate[2] = -1;
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
    s->req = req_deposit (&r->rig, model_account_name (account), amount, from, to);
    model_deposit (r->model, account, amount, later, end ? end : INT64_MAX, s->want);
}

static void make_hold (struct run *r, struct sent *s)
{
    int site = (int)draw (r, 12) == 0 ? 2 : (int)draw (r, 2), account = (int)draw (r, M_ACCOUNTS);
    int user = (int)draw (r, 10) == 0 ? 2 : (int)draw (r, 2);
    long long job = (long long)draw (r, JOBS),
              inc = (long long)draw (r, 1 + (uint64_t)r->ops / 200);
    long long procs = draw (r, 40) ? (long long)draw (r, 8) + 1 : 0,
              seconds = (long long)draw (r, 30) + 1;
    snprintf (s->job, sizeof (s->job), "j.%lld", job);
    s->req = req_hold (&r->rig, sites[site], s->job, model_account_name (account), users[user],
                       procs, seconds);
    s->req.hold.job.incarnation = inc;
    request_seal (&s->req);
    model_hold (r->model, site, job, inc, account, user, procs, seconds, s->want);
}

static void make_charge (struct run *r, struct sent *s)
{
    struct model *m = r->model;
    bool held = m->holds && draw (r, 8) != 0;
    long long n = held ? 1 + (long long)draw (r, (uint64_t)m->holds) : 0;
    /* Mostly of late holds, which are still open. */
    if (held && m->holds > 30 && draw (r, 5))
        n = m->holds - (long long)draw (r, 30);
    int site = held ? m->hold[n - 1].site : (int)draw (r, M_SITES), user = (int)draw (r, M_USERS);
    int account = (int)draw (r, M_ACCOUNTS);
    long long job = held ? m->hold[n - 1].job : (long long)draw (r, JOBS);
    long long inc =
        held ? m->hold[n - 1].incarnation : (long long)draw (r, 1 + (uint64_t)r->ops / 200);
    if (held && draw (r, 30) == 0)
        site = !site;
    if (held && draw (r, 30) == 0)
        job++;
    long long procs = draw (r, 50) ? (long long)draw (r, 9) + 1 : 0,
              seconds = (long long)draw (r, 40);
    bool final = draw (r, 3) != 0;
    snprintf (s->job, sizeof (s->job), "j.%lld", job);
    if (held)
        snprintf (s->hold, sizeof (s->hold), "hold.%lld", n);
    s->req = req_charge (&r->rig, sites[site], s->job, s->hold, procs, r->use, seconds, final);
    s->req.charge.job.incarnation = inc;
    s->req.charge.account = held ? "" : model_account_name (account);
    s->req.on_behalf = held ? s->req.client : users[user];
    model_charge (m, site, job, inc, n, account, user, procs, seconds, final, s->want);
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
    if (what < 12)
        make_deposit (r, s);
    else if (what < 20)
        make_correction (r, s);
    else if (what < 54)
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
    if (s->req.kind == LEDGER_HOLD)
        s->req.hold.job.site_job = s->job;
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
        r->sql, "SELECT allocation_id, granted, settled, posted, held FROM balance ORDER BY 1");
    equal (r, "allocations", PQntuples (res), m->allocs);
    for (int i = 0; i < m->allocs; i++) {
        equal (r, "id", atoll (PQgetvalue (res, i, 0)), m->alloc[i].id);
        equal (r, "granted", atoll (PQgetvalue (res, i, 1)), m->alloc[i].granted);
        equal (r, "settled", atoll (PQgetvalue (res, i, 2)), m->alloc[i].settled);
        equal (r, "posted", atoll (PQgetvalue (res, i, 3)), m->alloc[i].posted);
        equal (r, "held", atoll (PQgetvalue (res, i, 4)), m->alloc[i].held);
    }
    PQclear (res);
    equal (r, "suspense",
           pg_fixture_number (r->sql,
                              "SELECT coalesce (-sum (amount), 0) FROM entry WHERE account_id = 2"),
           m->suspense);
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
    }
    struct committer_stats stats = committer_stats (r->rig.committer);
    printf ("prop_bank: seed %" PRIu64
            ": %lld operations, %d holds, %lld requests repeated, %lld backends killed, "
            "largest batch %u: every answer and every balance equal\n",
            r->seed, r->ops, r->model->holds, r->replays, r->kills, stats.batch_max);
    for (int i = 0; i < r->past_count; i++)
        free (r->past[i]);
    bankrig_close (&r->rig);
    PQfinish (r->sql);
    pg_fixture_stop (r->pg);
    free (r->model);
    return 0;
}
