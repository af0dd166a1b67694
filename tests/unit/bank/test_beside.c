/* Batches beside one another against one request at a time: the same requests, in the same order, must have the same
 * answers and leave the same books. Charges name holds whose own answers are not there yet, jobs are held twice, signed
 * jobs replayed, keys sent again with what they were sent with and with something else: what no honest site does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/rng.h"
#include "tests/unit/bank/bankrig.h"
#include "tests/unit/bank/pg_fixture.h"

enum {
    REQUESTS = 2500,
    JOBS = 2000,
    NEAR = 300,
    ACCOUNTS = 4,
    USERS = 2,
    BURST = 60,
    FLIGHT = 200
};

static const char *const account[ACCOUNTS] = {"a", "b", "c", "d"};
static const char *const user[USERS] = {"nui://test/user/alice", "nui://test/user/bob"};

struct job {
    char name[16], hold[32];
    time_us start;
    int seconds; /* charged so far */
};

struct stream {
    struct rng rng;
    struct ledger_request req[REQUESTS];
    char hold[REQUESTS][32]; /* that a request names */
    struct answer one[REQUESTS], many[REQUESTS];
    struct job job[JOBS];
    bool wild; /* much of what makes batches be decided again; without it more of them go beside one
                  another */
};

struct ledger {
    struct bankrig rig;
    const char *conninfo;
};

static void must (struct ledger *l, struct ledger_request req)
{
    struct answer a = bankrig_ask (&l->rig, &req);
    assert_string_equal (a.err.text, "");
}

static void open_ledger (struct ledger *l, struct pg_fixture *pg, const char *name)
{
    l->conninfo = pg_fixture_database (pg, name);
    bankrig_open (&l->rig, l->conninfo);
    assert_true (bankrig_wait_up (&l->rig, true) && bankrig_wait_second (&l->rig, true));
    must (l, req_project (&l->rig, "physics"));
    for (int i = 0; i < USERS; i++) {
        must (l, req_user (&l->rig, user[i]));
        must (l, req_member (&l->rig, "physics", user[i]));
    }
    must (l, req_rate (&l->rig, "alpha", 1000000));
    for (int i = 0; i < ACCOUNTS; i++) {
        must (l, req_account (&l->rig, account[i], "physics", i ? &account[i - 1] : NULL, i > 0));
        must (l, req_deposit (&l->rig, account[i], 3000 * MICRO_PER_CREDIT, 0, 0));
    }
    for (int i = 0; i < ACCOUNTS * USERS; i++) { /* all is known now */
        char name_of[32];
        snprintf (name_of, sizeof (name_of), "first.%d", i);
        must (l, req_hold (&l->rig, "alpha", name_of, account[i % ACCOUNTS], user[i / ACCOUNTS], 1,
                           10));
    }
}

static int below (struct stream *s, int n)
{
    return (int)rng_below (&s->rng, (uint32_t)n);
}

static void make_hold (struct stream *s, struct ledger *l, int i, struct job *job)
{
    struct ledger_request *req = &s->req[i];
    *req = req_hold (&l->rig, "alpha", job->name, account[below (s, ACCOUNTS)],
                     user[below (s, USERS)], 1, 10 + below (s, 40));
    if (below (s, s->wild ? 4 : 40) == 0) { /* of few signed jobs: many are replays */
        struct ledger_hold_ask *ask = &req->hold;
        ask_sign (ask);
        ask->uuid.b[0] = (uint8_t)below (s, 200);
        ask->hash[0] = ask->uuid.b[0];
        ask->runs_max = 2;
        if (below (s, 2)) /* what else it is paid for counts */
            ask->cost_max = (credit_micro)below (s, 100) * MICRO_PER_CREDIT;
        ask->job.grid_job = below (s, 10) ? "grid.1" : "grid.2";
    }
}

static void make (struct stream *s, struct ledger *l, int i)
{
    struct job *job = &s->job[(i * JOBS / REQUESTS + below (s, NEAR)) % JOBS];
    int luck = below (s, 1000), wild = s->wild ? 20 : 2;
    memcpy (s->hold[i], job->hold, sizeof (s->hold[i]));
    if (i > 0 && luck < wild) {
        int other = i < 60 ? below (s, i) : i - 1 - below (s, 60);
        s->req[i] = s->req[other];
        memcpy (s->hold[i], s->hold[other], sizeof (s->hold[i]));
        if (luck % 4 == 0)
            s->req[i].hash[31] ^= 1;
    } else if (luck < wild + wild / 2 && *job->hold) {
        s->req[i] = req_release (&l->rig, "alpha", s->hold[i]);
    } else if (luck < 500 && *job->hold) {
        job->seconds += 1 + below (s, 20);
        s->req[i] = req_charge (&l->rig, "alpha", job->name, s->hold[i], 1, job->start,
                                job->seconds, below (s, 3) == 0);
    } else {
        make_hold (s, l, i, job);
    }
    if (s->req[i].kind == LEDGER_CHARGE)
        s->req[i].charge.hold_id = s->hold[i];
    if (s->req[i].kind == LEDGER_RELEASE)
        s->req[i].release.hold_id = s->hold[i];
}

static void one_at_a_time (struct stream *s, struct ledger *l)
{
    for (int i = 0; i < JOBS; i++) {
        snprintf (s->job[i].name, sizeof (s->job[i].name), "a.%d", i);
        s->job[i].start = clock_now_us ();
    }
    for (int i = 0; i < REQUESTS; i++) {
        make (s, l, i);
        s->one[i] = bankrig_ask (&l->rig, &s->req[i]);
        if (s->req[i].kind == LEDGER_HOLD)
            for (int k = 0; k < JOBS; k++)
                if (strcmp (s->job[k].name, s->req[i].hold.job.site_job) == 0)
                    sscanf (s->one[i].text, "granted %31s", s->job[k].hold);
    }
}

static void many_at_a_time (struct stream *s, struct ledger *l)
{
    for (int sent = 0; sent < REQUESTS;) {
        for (int n = 16 + below (s, BURST); n > 0 && sent < REQUESTS; n--, sent++)
            bankrig_send (&l->rig, &s->req[sent], &s->many[sent]);
        for (int turns = below (s, 4); turns > 0; turns--)
            event_base_loop (l->rig.base, EVLOOP_NONBLOCK);
        if (sent > FLIGHT)
            bankrig_await (&l->rig, &s->many[sent - FLIGHT]);
    }
    for (int i = 0; i < REQUESTS; i++)
        bankrig_await (&l->rig, &s->many[i]);
}

static void same (PGconn *one, PGconn *many, const char *sql)
{
    char *a = pg_fixture_value (one, sql), *b = pg_fixture_value (many, sql);
    assert_string_equal (a, b);
    free (a);
    free (b);
}

static void as_one_at_a_time (uint64_t seed, struct pg_fixture *pg, uint64_t *beside)
{
    static const char *const books[] = {
        "SELECT string_agg (concat_ws (' ', allocation_id, granted, settled, posted, held), ';' ORDER BY allocation_id) "
        "FROM balance",
        "SELECT string_agg (concat_ws (' ', id, site_job, account_id, amount, open), ';' ORDER BY id) FROM hold",
        "SELECT string_agg (concat_ws (' ', hold_id, leg, amount, settled, released), ';' ORDER BY hold_id, leg) "
        "FROM hold_leg",
        "SELECT string_agg (concat_ws (' ', id, site_job, hold_id, total, final), ';' ORDER BY id) FROM usage",
        "SELECT string_agg (concat_ws (' ', op_id, leg, layer, account_id, allocation_id, amount), ';' "
        " ORDER BY op_id, leg) FROM entry",
        "SELECT string_agg (concat_ws (' ', id, kind, job, status, note), ';' ORDER BY id) FROM op",
        "SELECT count (*) FROM block b WHERE NOT EXISTS (SELECT FROM block p WHERE p.number = b.number - 1 AND "
        " p.first_op + p.ops = b.first_op) AND b.number > 1"};
    static struct stream stream;
    struct stream *s = &stream;
    struct ledger one, many;
    memset (s, 0, sizeof (*s));
    rng_seed (&s->rng, seed, 0);
    s->wild = seed % 3 == 0;
    open_ledger (&one, pg, "one");
    one_at_a_time (s, &one);
    open_ledger (&many, pg, "many");
    many_at_a_time (s, &many);
    for (int i = 0; i < REQUESTS; i++)
        if (strcmp (s->one[i].text, s->many[i].text) != 0 ||
            s->one[i].err.code != s->many[i].err.code) {
            print_error ("seed %llu, request %d (%s): %s%s, many at a time %s%s\n",
                         (unsigned long long)seed, i, ledger_kind_name (s->req[i].kind),
                         s->one[i].text, s->one[i].err.text, s->many[i].text, s->many[i].err.text);
            fail ();
        }
    PGconn *a = pg_fixture_connect (one.conninfo), *b = pg_fixture_connect (many.conninfo);
    for (size_t i = 0; i < sizeof (books) / sizeof (books[0]); i++)
        same (a, b, books[i]);
    struct committer_stats stats = committer_stats (many.rig.committer);
    printf ("seed %llu: %llu batches, %llu beside another, %llu given back\n",
            (unsigned long long)seed, (unsigned long long)stats.batches,
            (unsigned long long)stats.beside, (unsigned long long)stats.retries);
    *beside += stats.beside;
    PQfinish (a);
    PQfinish (b);
    bankrig_close (&one.rig);
    bankrig_close (&many.rig);
}

/* NUI_BESIDE_SEED and NUI_BESIDE_SEEDS: others, by hand. */
static void random_streams (void **state)
{
    const char *first = getenv ("NUI_BESIDE_SEED"), *count = getenv ("NUI_BESIDE_SEEDS");
    uint64_t from = first ? strtoull (first, NULL, 10) : 1,
             seeds = count ? strtoull (count, NULL, 10) : 3, beside = 0;
    (void)state;
    for (uint64_t i = 0; i < seeds; i++) {
        struct pg_fixture *pg = pg_fixture_start (false);
        assert_non_null (pg);
        as_one_at_a_time (from + i, pg, &beside);
        pg_fixture_stop (pg);
    }
    assert_true (beside > 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (random_streams)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
