/* Random operations against the real committer on a real PostgreSQL and against the model: every
 * answer is compared, and after every batch the books must balance. Backends are killed on the way.
 *
 * NUI_PROP_OPS: how many operations (default 2500); NUI_PROP_SEED: from where (default: fixed);
 * NUI_PROP_WORLDS: how many ledgers, one seed after the other, each with so many operations (default 2);
 * NUI_PROP_WITHOUT: which are left out, "0-99,120-120", in order (long.py shrinks a failure so). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "tests/prop/bank/prop.h"

enum { BATCH_MAX = 150, WHOLE_EVERY = 2000 };

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

void prop_die (struct run *r, const char *what, const struct sent *s)
{
    fprintf (stderr, "prop_bank: seed %" PRIu64 ", operation %lld: %s\n", r->seed, r->ops, what);
    if (s)
        fprintf (stderr, "  %s by %s\n  wanted: %s\n  got:    %s%s\n",
                 ledger_kind_name (s->req.kind), s->req.client, s->want,
                 s->answer.err.code ? s->answer.err.text : "", s->answer.text);
    pg_fixture_stop (r->pg);
    exit (1);
}

static void must (struct run *r, struct ledger_request req)
{
    struct answer a = bankrig_ask (&r->rig, &req);
    if (a.err.code)
        prop_die (r, a.err.text, NULL);
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
    m->project_id[0] = 1;
    m->project_id[1] = 2;
    for (int p = 0; p < M_PROJECTS; p++)
        m->maker[p] = -1;
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
            names[f] = model_first_name (m->fallback[a][f].account);
            m->fallback[a][f].site = m->fallback[a][f].qos = -1;
        }
        must (r, req_account (&r->rig, model_first_name (a), prop_projects[project_of[a]], names,
                              (uint32_t)m->fallbacks[a]));
        char sql[80];
        snprintf (sql, sizeof (sql), "SELECT id FROM account WHERE name = '%s'",
                  model_first_name (a));
        m->account_id[a] = pg_fixture_number (check_sql (r->check), sql);
        m->project[a] = project_of[a];
        m->account_is[a] = true;
    }
    static const struct model_factor none = {{-1, -1, -1}};
    for (int site = 0; site < 2; site++) {
        m->card[site][m->cards[site]++] = (struct model_card){.base = site ? 1333333 : 1000000,
                                                              .qos = none,
                                                              .class = none,
                                                              .machine = none,
                                                              .nodes = none,
                                                              .gres = none,
                                                              .memory = -1,
                                                              .group = -1,
                                                              .band = -1};
        must (r, req_rate (&r->rig, prop_sites[site], m->card[site][0].base));
    }
    m->band_from = BAND_FROM;
    m->band_to = BAND_TO;
    /* From here on the ledger's time is the model's, whatever the clock does. */
    struct ledger_request again = req_user (&r->rig, prop_users[0]);
    m->now = r->wall = 1;
    virtual_now = EPOCH + US_PER_S;
    (void)bankrig_ask (&r->rig, &again);
    m->next_alloc = 1 + pg_fixture_number (check_sql (r->check), "SELECT max (id) FROM allocation");
    m->next_account = 1 + pg_fixture_number (check_sql (r->check), "SELECT max (id) FROM account");
}

static void compare (struct run *r, struct sent *s)
{
    char got[2048];
    if (s->answer.err.code)
        snprintf (got, sizeof (got), "error %d", s->answer.err.code);
    else
        snprintf (got, sizeof (got), "%s", s->answer.text);
    if (strcmp (got, s->want) != 0)
        prop_die (r, "the answers differ", s);
}

/* The error that the bank's clock has now is the one that it may have. */
static void clock_believed (struct run *r)
{
    r->believed = r->shift;
    r->believed_at = r->wall;
}

static void kill_backends (struct run *r)
{
    PQclear (PQexec (check_sql (r->check),
                     "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE "
                     "application_name LIKE 'nui-bank%'"));
    r->kills++;
    clock_believed (r); /* the rig vouches for it when it is there again */
}

/* Sends a batch, all at once or in pieces while the first of them are under way; with a disaster on the
 * way, what was not decided is sent again in its order. */
static void go (struct run *r, struct sent **s, int count, bool disaster)
{
    int piece = count < 40 || one_in (r, 3) ? count : 16 + (int)draw (r, (uint64_t)count / 2);
    for (int i = 0; i < count; i++) {
        bankrig_send (&r->rig, &s[i]->req, &s[i]->answer);
        if (i % piece == piece - 1)
            for (int turns = 1 + (int)draw (r, 3); turns > 0; turns--)
                event_base_loop (r->rig.base, EVLOOP_NONBLOCK);
    }
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
                    prop_die (r, "one was decided out of order", s[k]);
                bankrig_send (&r->rig, &s[k]->req, &s[k]->answer);
            }
        bankrig_await (&r->rig, &s[i]->answer);
    }
}

/* Small ones, middling ones, and some large ones. */
static int batch_size (struct run *r)
{
    uint64_t luck = draw (r, 8);
    return 1 + (int)draw (r, luck < 2 ? 4 : luck < 6 ? 30 : BATCH_MAX);
}

enum { CLOCK_BOUND = 60, CLOCK_RENEWED = 3600 };

/* What the bank's clock does between batches: its machine's time goes on, and now and then it steps, ahead or back; what
 * nobody vouched for may add up to the bound. The ledger's own time never goes back, and waits for a clock that did. */
static void time_goes (struct run *r)
{
    r->wall += draw (r, 20) ? (long long)draw (r, 10) : (long long)draw (r, 100);
    if (one_in (r, 8)) {
        long long step = one_in (r, 2) ? -(long long)draw (r, 90) : (long long)draw (r, 150);
        r->shift = one_in (r, 3) ? 0 : r->shift + step;
        r->steps++;
    }
    if (one_in (r, 20))
        r->skew[draw (r, M_SITES)] = (long long)draw (r, 200) - 100;
    virtual_now = EPOCH + r->wall * US_PER_S;
    bankrig_clock_shift (r->shift * US_PER_S);
}

static void refused_all (struct run *r, struct sent *batch[], int count)
{
    for (int i = 0; i < count; i++) {
        struct err err = {0};
        if (committer_submit (r->rig.committer, &batch[i]->req, NULL, NULL, NULL, &err) !=
                ERR_UNAVAILABLE ||
            !strstr (err.text, "clock"))
            prop_die (r, "was taken by a clock that is ahead", batch[i]);
    }
}

/* Too far ahead: whatever comes is refused and changes nothing, until the clock is right again or an operator vouches for
 * it, which is the one request that is taken. Before the operations of a batch are drawn. */
static void clock_ahead (struct run *r)
{
    struct sent probe = {.req = req_user (&r->rig, prop_users[0])}, *all[] = {&probe};
    duration_us ahead = (r->shift - r->believed) * US_PER_S;
    if (committer_clock_ahead (r->rig.committer) != (ahead > CLOCK_BOUND * US_PER_S ? ahead : 0))
        prop_die (r, "the bank believes its clock otherwise", NULL);
    if (ahead > CLOCK_BOUND * US_PER_S) {
        refused_all (r, all, 1);
        if (one_in (r, 2)) {
            struct ledger_request word = req_new (&r->rig, LEDGER_CLOCK, "nui://t/operator/o");
            word.clock.ahead = ahead;
            word.clock.reason = "why";
            must (r, word);
            committer_clock_accept (r->rig.committer);
            clock_believed (r);
            r->vouched++;
        } else {
            r->shift = r->believed;
            bankrig_clock_shift (r->shift * US_PER_S);
        }
    }
    if (r->wall - r->believed_at > CLOCK_RENEWED) /* see bank/store/moment.h */
        clock_believed (r);
    long long now = r->wall + r->shift;
    r->model->now = now > r->model->now ? now : r->model->now;
}

/* The clock steps far ahead while a batch is on its way, and is right again. */
static void clock_steps (struct run *r, struct sent *batch[], int count)
{
    bankrig_clock_shift ((r->believed + CLOCK_BOUND + 1 + (duration_us)draw (r, 1000000)) *
                         US_PER_S);
    refused_all (r, batch, count);
    bankrig_clock_shift (r->shift * US_PER_S);
}

static void one_batch (struct run *r)
{
    struct sent *batch[BATCH_MAX];
    draw_anew (r, 0);
    int asked = batch_size (r), count = 0;
    static const enum prop_kind kinds[] = {PROP_ANY,   PROP_ANY,   PROP_ANY,   PROP_DAILY,
                                           PROP_DAILY, PROP_HOLDS, PROP_HOLDS, PROP_OFFICE};
    enum prop_kind kind = kinds[draw (r, 8)];
    bool disaster = one_in (r, 50), reads = one_in (r, 2), steps = one_in (r, 20);
    time_goes (r);
    clock_ahead (r);
    for (; asked > 0; asked--, r->ops++) {
        draw_anew (r, 1);
        if (!left_out (r))
            batch[count++] = prop_make (r, kind);
    }
    if (steps)
        clock_steps (r, batch, count);
    go (r, batch, count, disaster);
    for (int i = 0; i < count; i++) {
        compare (r, batch[i]);
        if (batch[i]->kept && !batch[i]->forgotten && r->past_count < PAST_MAX)
            r->past[r->past_count++] = batch[i];
        else
            free (batch[i]);
    }
    check_step (r, r->ops / WHOLE_EVERY != r->whole);
    r->whole = r->ops / WHOLE_EVERY;
    r->charged = r->model->charges;
    r->granted = r->model->allocs;
    r->quoted = r->model->pins;
    r->opened = r->model->rows;
    for (int n = reads ? 2 : 0; n > 0; n--)
        prop_read (r);
}

static void on_reader (void *arg, bool up)
{
    ((struct run *)arg)->reader_up = up;
}

/* One ledger from its foundation on. */
static void world (struct run *r, uint64_t seed, long long wanted)
{
    struct err err = {0};
    r->seed = r->rng = seed;
    r->ops = r->whole = 0;
    r->without_at = r->past_count = r->charged = r->granted = r->quoted = r->opened = 0;
    virtual_now = EPOCH;
    r->wall = r->shift = r->believed = r->believed_at = 0;
    memset (r->skew, 0, sizeof (r->skew));
    bankrig_clock_shift (0);
    char conninfo[400];
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=world user=bank",
              pg_fixture_dir (r->pg));
    pg_fixture_copy (r->pg, "empty", "world");
    r->model = calloc (1, sizeof (*r->model));
    assert (r->model);
    bankrig_open (&r->rig, conninfo);
    assert (bankrig_wait_up (&r->rig, true));
    r->reader = reader_create (r->rig.base, NULL, conninfo, on_reader, r, &err);
    assert (r->reader);
    reader_start (r->reader);
    r->check = check_open (conninfo);
    found (r);
    while (r->ops < wanted)
        one_batch (r);
    check_step (r, true);
    r->all += r->ops;
    r->time += r->model->now;
    r->holds += r->model->holds;
    r->charges += r->model->charges;
    for (int i = 0; i < r->past_count; i++)
        free (r->past[i]);
    struct committer_stats stats = committer_stats (r->rig.committer);
    r->batches += (long long)stats.batches;
    reader_destroy (r->reader);
    bankrig_close (&r->rig);
    check_close (r->check);
    free (r->model);
}

static long long setting (const char *name, long long otherwise)
{
    const char *text = getenv (name);
    return text ? atoll (text) : otherwise;
}

int main (void)
{
    static struct run run;
    struct run *r = &run;
    long long wanted = setting ("NUI_PROP_OPS", 2500), worlds = setting ("NUI_PROP_WORLDS", 2);
    uint64_t seed = (uint64_t)setting ("NUI_PROP_SEED", 20261121);
    without_read (r, getenv ("NUI_PROP_WITHOUT"));
    r->pg = pg_fixture_start (false);
    if (!r->pg)
        return 1;
    bankrig_open (&r->rig, pg_fixture_database (r->pg, "empty"));
    assert (bankrig_wait_up (&r->rig, true)); /* the schema is there */
    bankrig_close (&r->rig);
    for (long long i = 0; i < worlds; i++)
        world (r, seed + (uint64_t)i, wanted);
    printf (
        "prop_bank: seeds %" PRIu64 " to %" PRIu64 ": %lld operations in %lld batches, "
        "%lld s of the ledger's time, %lld holds, %lld charges, %lld requests repeated, "
        "%lld reads, %lld backends killed, %lld steps of the clock, %lld vouched for: every answer and every balance equal\n",
        seed, seed + (uint64_t)worlds - 1, r->all, r->batches, r->time, r->holds, r->charges,
        r->replays, r->reads, r->kills, r->steps, r->vouched);
    pg_fixture_stop (r->pg);
    return 0;
}
