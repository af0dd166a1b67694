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
#include "tests/prop/bank/prop.h"

enum { BATCH_MAX = 24 };

static time_us virtual_now = EPOCH;

/* Linked in the place of the real one: time stands still while a batch is under way. */
time_us __wrap_clock_now_us (void);
time_us __wrap_clock_now_us (void)
{
    return virtual_now;
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
    static const int project_of[M_ACCOUNTS - 3] = {0, 0, 0, 1, 1, 0, 1, 0, 0, 1};
    static const int order[M_ACCOUNTS - 3] = {4, 3, 2, 1, 0, 6, 5, 7, 8, 9};
    struct ledger_request below = req_project (&r->rig, "p1");
    struct ledger_request funder = req_new (&r->rig, LEDGER_FUNDER_CREATE, "nui://t/agency/f");
    below.project.parent = "p0";
    funder.funder.name = "f";
    funder.funder.description = "";
    must (r, req_project (&r->rig, "p0"));
    must (r, below);
    must (r, funder);
    m->project_is[0] = m->project_is[1] = m->funder_is[0] = true;
    m->parent[0] = m->parent[2] = m->parent[3] = -1;
    for (int u = 0; u < M_USERS - 1; u++) {
        must (r, req_user (&r->rig, prop_users[u]));
        m->user_is[u] = true;
    }
    must (r, req_member (&r->rig, "p0", prop_users[0]));
    must (r, req_member (&r->rig, "p0", prop_users[1]));
    must (r, req_member (&r->rig, "p1", prop_users[1]));
    m->member[0][0] = m->member[1][0] = m->member[1][1] = true;
    m->member_id[0][0] = 1;
    m->member_id[1][0] = 2;
    m->member_id[1][1] = 3;
    m->next_member = 4;
    m->next_project = 3;
    m->next_user = M_USERS;
    m->next_funder = 2;
    for (int a = 0; a < 4; a++)
        m->fallback[a][m->fallbacks[a]++].account = a + 1;
    m->fallback[5][m->fallbacks[5]++].account = 1;
    m->fallback[5][m->fallbacks[5]++].account = 6;
    /* Four deep at most: a5 -> a1 -> a2 -> a3 -> a4. */
    for (int i = 0; i < M_ACCOUNTS - 3; i++) {
        int a = order[i];
        const char *names[M_FALLBACKS];
        for (int f = 0; f < m->fallbacks[a]; f++) {
            names[f] = model_account_name (m->fallback[a][f].account);
            m->fallback[a][f].site = m->fallback[a][f].qos = -1;
        }
        must (r, req_account (&r->rig, model_account_name (a), prop_projects[project_of[a]], names,
                              (uint32_t)m->fallbacks[a]));
        char sql[80];
        snprintf (sql, sizeof (sql), "SELECT id FROM account WHERE name = '%s'",
                  model_account_name (a));
        m->account_id[a] = pg_fixture_number (r->sql, sql);
        m->project[a] = project_of[a];
        m->account_is[a] = true;
    }
    static const struct model_factor none = {{-1, -1, -1}};
    for (int site = 0; site < 2; site++) {
        m->card[site][m->cards[site]++] = (struct model_card){.base = site ? 1333333 : 1000000,
                                                              .qos = none,
                                                              .machine = none,
                                                              .nodes = none,
                                                              .group = -1,
                                                              .band = -1};
        must (r, req_rate (&r->rig, prop_sites[site], m->card[site][0].base));
    }
    m->band_from = BAND_FROM;
    m->band_to = BAND_TO;
    m->now = 1;
    m->next_alloc = 1 + pg_fixture_number (r->sql, "SELECT max (id) FROM allocation");
    m->next_account = 1 + pg_fixture_number (r->sql, "SELECT max (id) FROM account");
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
                "FROM balance b JOIN allocation l ON l.id = b.allocation_id JOIN account a "
                "ON a.id = l.account_id WHERE a.class <> 'DEBT' ORDER BY 1");
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
    equal (r, "expired",
           pg_fixture_number (r->sql,
                              "SELECT coalesce (sum (amount), 0) FROM entry WHERE account_id = -1"),
           m->expired);
    for (int p = 0; p < M_PROJECTS; p++) {
        char sql[240];
        snprintf (sql, sizeof (sql),
                  "SELECT coalesce (sum (b.posted), 0) FROM balance b JOIN allocation l ON l.id = "
                  "b.allocation_id JOIN account a ON a.id = l.account_id WHERE a.name = 'debt:%s'",
                  prop_projects[p]);
        equal (r, prop_projects[p], pg_fixture_number (r->sql, sql), m->debt[p]); /* what it owes */
    }
    int open = 0, used = 0, cancelled = 0;
    for (int i = 0; i < m->rows; i++)
        open += m->row[i].state == M_OPEN;
    for (int i = 0; i < m->pins; i++) {
        used += m->pin[i].used;
        cancelled += m->pin[i].cancelled;
    }
    equal (r, "rows of reconciliation", pg_fixture_number (r->sql, "SELECT count (*) FROM recon_row"),
           m->rows);
    equal (r, "open ones",
           pg_fixture_number (r->sql, "SELECT count (*) FROM recon_row r WHERE NOT EXISTS (SELECT FROM "
                                      "recon_event e WHERE e.row_id = r.id AND e.kind <> 'owned')"),
           open);
    equal (r, "quotes that were cancelled",
           pg_fixture_number (r->sql, "SELECT count (*) FROM quote_cancel"), cancelled);
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
        {"what is there is not what was granted less what was charged and what expired",
         "SELECT coalesce ((SELECT sum (posted + settled - granted) FROM balance), 0) + (SELECT "
         "coalesce (sum (amount), 0) FROM entry WHERE account_id = -1)"},
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
        r->model->now += draw (r, 20) ? (long long)draw (r, 5) : (long long)draw (r, 60);
        virtual_now = EPOCH + r->model->now * US_PER_S;
        for (; asked > 0; asked--, r->ops++) {
            draw_anew (r, 1);
            if (!left_out (r))
                batch[count++] = prop_make (r);
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
    const struct model *m = r->model;
    struct committer_stats stats = committer_stats (r->rig.committer);
    printf ("prop_bank: seed %" PRIu64
            ": %lld operations in %lld s of the ledger's time, %d holds, %d charges, %d allocations, %d "
            "quotes, %d rows of reconciliation, %lld requests repeated, %lld backends killed, largest "
            "batch %u: every answer and every balance equal\n",
            r->seed, r->ops, m->now, m->holds, m->charges, m->allocs, m->pins, m->rows, r->replays,
            r->kills, stats.batch_max);
    for (int i = 0; i < r->past_count; i++)
        free (r->past[i]);
    bankrig_close (&r->rig);
    PQfinish (r->sql);
    pg_fixture_stop (r->pg);
    free (r->model);
    return 0;
}
