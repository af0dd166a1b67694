/* bench_bank: durable hold+charge pairs per second through nui-bank's RPC front (TLS, signatures
 * checked), over one hot account and over many, with 1 and 64 in flight; against pgbench doing the
 * same writes with one prepared statement per transaction on the same schema and server, at its
 * best client count. Prints ratios. Seconds per measurement: argv[1] (5). */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

enum { ROUNDS = 2, ACCOUNTS = 200, FLIGHT = 64, FLIGHT_MAX = 256, SAMPLES_MAX = 1 << 20 };

struct bench;

struct slot {
    struct bench *bench;
    int account;
    char job[32], hold[32];
    duration_us begun;
};

struct bench {
    struct pg_fixture *pg;
    struct bankd d;
    struct slot slot[FLIGHT_MAX];
    int accounts; /* used now */
    int flying;
    uint64_t jobs, pairs, failed;
    duration_us end;
    time_us use;
    pid_t backend; /* the committer's */
    double *sample;
    uint32_t samples;
};

static void start_hold (struct slot *s);

static void on_charge (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    struct bench *b = s->bench;
    b->flying--;
    if (result->status == RPC_OK) {
        b->pairs++;
        if (b->samples < SAMPLES_MAX)
            b->sample[b->samples++] = (double)(clock_monotonic_us () - s->begun) / 1000;
    } else {
        b->failed++;
    }
    if (clock_monotonic_us () < b->end)
        start_hold (s);
}

static void start (struct slot *s, const char *method, const ProtobufCMessage *m,
                   void (*done) (void *arg, const struct rpc_result *result))
{
    struct rpccallout_config c = {.service = &nui__bank__v1__bank__descriptor,
                                  .method = method,
                                  .request = m,
                                  .timeout = 30 * US_PER_S,
                                  .done = done,
                                  .arg = s};
    s->bench->flying++;
    rpcclient_start (s->bench->d.client[WHO_ALPHA], &c);
}

static void on_hold (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    struct bench *b = s->bench;
    const Nui__Bank__V1__HoldReply *r = (const void *)result->reply;
    uint8_t key[16];
    b->flying--;
    if (result->status != RPC_OK || !r->granted) {
        if (b->failed++ == 0)
            fprintf (stderr, "bench_bank: %s %s\n", result->message,
                     result->reply && r->reason ? r->reason->text : "");
        return;
    }
    snprintf (s->hold, sizeof (s->hold), "%s", r->hold_id);
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    m.key = bankd_key (&b->d, key);
    m.hold_id = s->hold;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = s->job;
    m.component = TEXT ("main");
    m.procs = 1;
    m.start_us = b->use;
    m.end_us = b->use + 8 * US_PER_S;
    m.final = m.successful = true;
    start (s, "Charge", &m.base, on_charge);
}

static void start_hold (struct slot *s)
{
    struct bench *b = s->bench;
    uint8_t key[16];
    snprintf (s->job, sizeof (s->job), "alpha.%llu", (unsigned long long)++b->jobs);
    s->begun = clock_monotonic_us ();
    s->account = (int)(b->jobs % (uint64_t)b->accounts);
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    m.key = bankd_key (&b->d, key);
    /* Every job is signed anew, as in life: nothing is found good a moment ago. */
    char account[16];
    snprintf (account, sizeof (account), "acct%d", s->account);
    struct bankd_job signed_job = {.account = account};
    m.envelope = bankd_sign (&b->d, WHO_ALICE, &signed_job);
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = s->job;
    m.component = TEXT ("main");
    m.procs = 1;
    m.walltime_us = 10 * US_PER_S;
    start (s, "Hold", &m.base, on_hold);
    envelope_free (m.envelope);
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* CPU time of a process so far, microseconds: steadier than a rate when the machine is shared. */
static double cpu_us (pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, sys = 0;
    snprintf (path, sizeof (path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen (path, "r");
    if (f && fgets (line, sizeof (line), f) && strrchr (line, ')'))
        sscanf (strrchr (line, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                &user, &sys);
    if (f)
        fclose (f);
    return (double)(user + sys) * 1e6 / (double)sysconf (_SC_CLK_TCK);
}

/* Pairs per second. */
static double ours (struct bench *b, int accounts, int flight, double seconds)
{
    b->accounts = accounts;
    b->pairs = b->failed = 0;
    b->samples = 0;
    b->use = clock_now_us ();
    double daemon = cpu_us (b->d.pid), backend = cpu_us (b->backend);
    duration_us begun = clock_monotonic_us ();
    b->end = begun + (duration_us)(seconds * 1e6);
    for (int i = 0; i < flight; i++) {
        b->slot[i].bench = b;
        start_hold (&b->slot[i]);
    }
    while (b->flying > 0)
        event_base_loop (b->d.base, EVLOOP_ONCE);
    double rate = (double)b->pairs * 1e6 / (double)(clock_monotonic_us () - begun);
    daemon = (cpu_us (b->d.pid) - daemon) / (double)(b->pairs + 1);
    backend = (cpu_us (b->backend) - backend) / (double)(b->pairs + 1);
    qsort (b->sample, b->samples, sizeof (double), by_value);
    printf (
        "  nui-bank  %3d account%s %3d in flight: %8.0f pairs/s, pair p50 %.2f ms, p99 %.2f ms; "
        "CPU per pair: nui-bank %.0f us, "
        "PostgreSQL %.0f us%s\n",
        accounts, accounts == 1 ? " " : "s", flight, rate,
        b->samples ? b->sample[b->samples / 2] : 0.0,
        b->samples ? b->sample[b->samples * 99 / 100] : 0.0, daemon, backend,
        b->failed ? " (SOME FAILED)" : "");
    return b->failed ? 0 : rate;
}

static double pgbench (const char *conninfo, long long account, long long first, long long last,
                       int clients, double seconds)
{
    char command[2048], line[512];
    double tps = 0;
    snprintf (command, sizeof (command),
              "pgbench -n -M prepared -f %s/pgbench.sql -D account=%lld -D first=%lld -D last=%lld "
              "-c %d -j 2 -T %d '%s' 2>&1",
              NUI_BENCH_DIR, account, first, last, clients, (int)(seconds + 0.5), conninfo);
    FILE *p = popen (command, "r");
    assert (p);
    while (fgets (line, sizeof (line), p)) {
        if (sscanf (line, "tps = %lf", &tps) != 1 && strstr (line, "ERROR"))
            fprintf (stderr, "%s", line);
    }
    pclose (p);
    printf ("  pgbench   %3lld account%s %3d clients:   %8.0f pairs/s\n", last - first + 1,
            last == first ? " " : "s", clients, tps);
    return tps;
}

static void best_of (double *best, double rate)
{
    *best = rate > *best ? rate : *best;
}

static double pgbench_best (const char *conninfo, long long account, long long first,
                            long long last, double seconds)
{
    static const int clients[] = {4, 16, 64};
    double best = 0;
    for (size_t i = 0; i < sizeof (clients) / sizeof (clients[0]); i++) {
        double tps = pgbench (conninfo, account, first, last, clients[i], seconds);
        best = tps > best ? tps : best;
    }
    return best;
}

static void accounts_make (struct bench *b)
{
    uint8_t key[16];
    for (int i = 0; i < ACCOUNTS; i++) {
        char name[16];
        struct bankd_reply reply;
        snprintf (name, sizeof (name), "acct%d", i);
        Nui__Bank__V1__AccountCreateRequest a = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
        a.key = bankd_key (&b->d, key);
        a.name = name;
        a.project = TEXT ("physics");
        reply = bankd_call (&b->d, WHO_NSF, "AccountCreate", &a.base);
        assert (reply.message);
        bankd_reply_free (&reply);
        Nui__Bank__V1__DepositRequest m = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
        m.key = bankd_key (&b->d, key);
        m.account = name;
        m.amount_micro = INT64_C (1000000000) * MICRO_PER_CREDIT;
        reply = bankd_call (&b->d, WHO_NSF, "Deposit", &m.base);
        assert (reply.message);
        bankd_reply_free (&reply);
    }
}

int main (int argc, char **argv)
{
    static struct bench b;
    double seconds = argc > 1 ? atof (argv[1]) : 5;
    signal (SIGPIPE, SIG_IGN);
    b.sample = malloc (SAMPLES_MAX * sizeof (double));
    b.pg = pg_fixture_start (true);
    if (!b.pg || !b.sample)
        return 1;
    const char *conninfo = pg_fixture_database (b.pg, "bench");
    bankd_open (&b.d, NUI_BANK_PROGRAM, conninfo, "");
    if (!bankd_wait_serving (&b.d, true))
        return 1;
    bankd_found (&b.d);
    accounts_make (&b);
    PGconn *sql = pg_fixture_connect (conninfo);
    char path[512], setup[4096] = "";
    snprintf (path, sizeof (path), "%s/pgbench-setup.sql", NUI_BENCH_DIR);
    FILE *f = fopen (path, "r");
    assert (f && fread (setup, 1, sizeof (setup) - 1, f) > 0);
    fclose (f);
    PQclear (PQexec (sql, setup));
    PQclear (PQexec (sql, "ANALYZE"));
    b.backend = (pid_t)pg_fixture_number (
        sql, "SELECT pid FROM pg_stat_activity WHERE application_name = 'nui-bank committer'");
    long long account = pg_fixture_number (sql, "SELECT id FROM account WHERE name = 'acct0'");
    long long first =
        pg_fixture_number (sql, "SELECT id FROM allocation WHERE account_id = (SELECT "
                                "id FROM account WHERE name = 'acct0')");
    long long last = first + ACCOUNTS - 1;
    printf ("bench_bank: durable hold+charge pairs, fsync on, %g s each\n", seconds);
    ours (&b, ACCOUNTS, FLIGHT, seconds > 2 ? 2 : seconds); /* warm */
    /* Side by side, so that what else the machine does falls on both; the daemon is idle while
     * pgbench runs. Of ROUNDS the best of each counts. */
    double one = 0, spread = 0, hot = 0, pg_one = 0, pg_spread = 0, pg_hot = 0;
    for (int round = 0; round < ROUNDS; round++) {
        best_of (&one, ours (&b, ACCOUNTS, 1, seconds));
        best_of (&pg_one, pgbench (conninfo, account, first, last, 1, seconds));
        best_of (&spread, ours (&b, ACCOUNTS, FLIGHT, seconds));
        best_of (&spread, ours (&b, ACCOUNTS, FLIGHT_MAX, seconds));
        best_of (&pg_spread, pgbench_best (conninfo, account, first, last, seconds));
        best_of (&hot, ours (&b, 1, FLIGHT, seconds));
        best_of (&hot, ours (&b, 1, FLIGHT_MAX, seconds));
        best_of (&pg_hot, pgbench_best (conninfo, account, first, first, seconds));
    }
    printf ("ratio to pgbench: one client %.2f, spread at best %.2f, hot at best %.2f\n",
            one / pg_one, spread / pg_spread, hot / pg_hot);
    PQfinish (sql);
    bankd_close (&b.d);
    pg_fixture_stop (b.pg);
    free (b.sample);
    return one > 0 && spread > 0 && hot > 0 ? 0 : 1;
}
