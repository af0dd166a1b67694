/* bench_bank [SECONDS [PART...]]: durable hold+charge pairs per second through nui-bank's RPC front
 * (TLS, signatures checked), over one hot account and over many, with 1 to 1,024 in flight; against
 * pgbench doing the same writes with one prepared statement per transaction on the same schema and
 * server, at its best client count; and balances read, against pgbench's SELECT. Prints ratios, and
 * the CPU time of each process per pair. Last, what PostgreSQL alone makes of what nui-bank sent it
 * (tape.h). SECONDS per measurement: 5; PART: one, spread, hot, read, bare (all). */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/bench/bank/tape.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

enum { ROUNDS = 2, ACCOUNTS = 1000, FLIGHT = 64, FLIGHT_MAX = 1024, SAMPLES_MAX = 1 << 20, BACKENDS_MAX = 8 };
enum { SIGNED_MAX = 1 << 16, TURNS = 5, TURN_SECONDS = 2 };
enum { PER_CONNECTION = 256, CONNECTIONS = FLIGHT_MAX / PER_CONNECTION }; /* the daemon's limit of streams */

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
    struct rpcclient *more[CONNECTIONS]; /* of alpha; the first is the daemon fixture's */
    int accounts; /* used now */
    int flying;
    uint64_t jobs, pairs, failed;
    Nui__Common__V1__Envelope
        *signed_job[SIGNED_MAX]; /* of the next jobs, made before a measurement */
    int signed_first, signed_end;
    duration_us end;
    time_us use;
    const char *conninfo;
    long long account, first; /* of acct0: its id, and its allocation's, which the others' follow */
    pid_t postmaster, backend[BACKENDS_MAX]; /* the daemon's connections */
    int backends;
    double *sample;
    uint32_t samples;
};

static void start_hold (struct slot *s);

static void ended (struct slot *s, bool good)
{
    struct bench *b = s->bench;
    if (!good)
        b->failed++;
    else if (++b->pairs && b->samples < SAMPLES_MAX)
        b->sample[b->samples++] = (double)(clock_monotonic_us () - s->begun) / 1000;
}

static void on_charge (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    struct bench *b = s->bench;
    b->flying--;
    ended (s, result->status == RPC_OK);
    if (clock_monotonic_us () < b->end)
        start_hold (s);
}

static struct rpcclient *client_of (const struct slot *s, enum bankd_who who)
{
    ptrdiff_t connection = (s - s->bench->slot) / PER_CONNECTION;
    return who == WHO_ALPHA && connection > 0 ? s->bench->more[connection] : s->bench->d.client[who];
}

static void start (struct slot *s, enum bankd_who who, const char *method, const ProtobufCMessage *m,
                   void (*done) (void *arg, const struct rpc_result *result))
{
    struct rpccallout_config c = {.service = &nui__bank__v1__bank__descriptor,
                                  .method = method,
                                  .request = m,
                                  .timeout = 30 * US_PER_S,
                                  .done = done,
                                  .arg = s};
    s->bench->flying++;
    rpcclient_start (client_of (s, who), &c);
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
    start (s, WHO_ALPHA, "Charge", &m.base, on_charge);
}

static int account_of (const struct bench *b, uint64_t job)
{
    return (int)(job % (uint64_t)b->accounts);
}

/* Every job is signed anew, as in life: nothing is found good a moment ago. */
static Nui__Common__V1__Envelope *job_sign (struct bench *b, uint64_t job)
{
    char account[16];
    snprintf (account, sizeof (account), "acct%d", account_of (b, job));
    struct bankd_job signed_job = {.account = account};
    return bankd_sign (&b->d, WHO_ALICE, &signed_job);
}

/* Users sign on machines of their own before their jobs come to a site, so the site, which is who
 * calls here, does not do it while it is measured. */
static void jobs_sign (struct bench *b, double count)
{
    while (b->signed_first < b->signed_end)
        envelope_free (b->signed_job[b->signed_first++]);
    b->signed_first = 0;
    b->signed_end = count < SIGNED_MAX ? (int)count : SIGNED_MAX;
    for (int i = 0; i < b->signed_end; i++)
        b->signed_job[i] = job_sign (b, b->jobs + 1 + (uint64_t)i);
}

static void start_hold (struct slot *s)
{
    struct bench *b = s->bench;
    uint8_t key[16];
    snprintf (s->job, sizeof (s->job), "alpha.%llu", (unsigned long long)++b->jobs);
    s->begun = clock_monotonic_us ();
    s->account = account_of (b, b->jobs);
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    m.key = bankd_key (&b->d, key);
    m.envelope =
        b->signed_first < b->signed_end ? b->signed_job[b->signed_first++] : job_sign (b, b->jobs);
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = s->job;
    m.component = TEXT ("main");
    m.procs = 1;
    m.walltime_us = 10 * US_PER_S;
    start (s, WHO_ALPHA, "Hold", &m.base, on_hold);
    envelope_free (m.envelope);
}

static void start_read (struct slot *s);

static void on_balance (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    const Nui__Bank__V1__BalanceReply *r = (const void *)result->reply;
    s->bench->flying--;
    ended (s, result->status == RPC_OK && r->n_balances == 1);
    if (clock_monotonic_us () < s->bench->end)
        start_read (s);
}

static void start_read (struct slot *s)
{
    struct bench *b = s->bench;
    Nui__Bank__V1__BalanceRequest m = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    char account[16];
    snprintf (account, sizeof (account), "acct%d", (int)(++b->jobs % (uint64_t)b->accounts));
    m.account = account;
    s->begun = clock_monotonic_us ();
    start (s, WHO_ALICE, "Balance", &m.base, on_balance);
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* CPU time so far, microseconds: steadier than a rate when the machine is shared. */
struct cpu {
    double client, daemon, postgres;
};

struct stat_line {
    pid_t parent;
    double own, children; /* that were waited for */
};

static struct stat_line stat_of (pid_t pid)
{
    struct stat_line st = {0};
    char path[64], line[1024] = "";
    unsigned long t[4] = {0};
    snprintf (path, sizeof (path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen (path, "r");
    if (f && fgets (line, sizeof (line), f) && strrchr (line, ')'))
        sscanf (strrchr (line, ')') + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
                &st.parent, &t[0], &t[1], &t[2], &t[3]);
    if (f)
        fclose (f);
    double tick = 1e6 / (double)sysconf (_SC_CLK_TCK);
    st.own = (double)(t[0] + t[1]) * tick;
    st.children = (double)(t[2] + t[3]) * tick;
    return st;
}

static double usage_us (int who)
{
    struct rusage r;
    getrusage (who, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* The server's processes that serve who is measured: the daemon's connections, or those of pgbench, which
 * have ended. */
static double postgres_us (const struct bench *b, int client)
{
    double sum = 0;
    if (client == RUSAGE_CHILDREN)
        return stat_of (b->postmaster).children;
    for (int i = 0; i < b->backends; i++)
        sum += stat_of (b->backend[i]).own;
    return sum;
}

static struct cpu cpu_now (const struct bench *b, int client)
{
    return (struct cpu){usage_us (client), stat_of (b->d.pid).own,
                        postgres_us (b, client)};
}

static void cpu_print (const struct bench *b, int client, struct cpu from, double times)
{
    struct cpu to = cpu_now (b, client);
    times = times > 0 ? times : 1;
    printf ("; CPU each, us: client %.4g, nui-bank %.4g, PostgreSQL %.4g\n",
            (to.client - from.client) / times, (to.daemon - from.daemon) / times,
            (to.postgres - from.postgres) / times);
    fflush (stdout);
}

/* Keeps `flight` going for a while and waits for the last: pairs, or reads, per second. */
static double ours (struct bench *b, const char *what, void (*begin) (struct slot *s), int accounts,
                    int flight, double seconds)
{
    b->accounts = accounts;
    b->pairs = b->failed = 0;
    b->samples = 0;
    b->use = clock_now_us ();
    if (begin == start_hold)
        jobs_sign (b, seconds * (flight == 1 ? 1000 : 8000));
    struct cpu cpu = cpu_now (b, RUSAGE_SELF);
    duration_us begun = clock_monotonic_us ();
    b->end = begun + (duration_us)(seconds * 1e6);
    for (int i = 0; i < flight; i++) {
        b->slot[i].bench = b;
        begin (&b->slot[i]);
    }
    while (b->flying > 0)
        event_base_loop (b->d.base, EVLOOP_ONCE);
    double rate = (double)b->pairs * 1e6 / (double)(clock_monotonic_us () - begun);
    qsort (b->sample, b->samples, sizeof (double), by_value);
    printf ("  nui-bank %4d account%s %4d in flight: %7.0f %s/s, p50 %.2f ms, p99 %.2f ms%s", accounts,
            accounts == 1 ? " " : "s", flight, rate, what,
            b->samples ? b->sample[b->samples / 2] : 0.0,
            b->samples ? b->sample[b->samples * 99 / 100] : 0.0, b->failed ? " (SOME FAILED)" : "");
    cpu_print (b, RUSAGE_SELF, cpu, (double)b->pairs);
    return b->failed ? 0 : rate;
}

static double pgbench (const struct bench *b, const char *script, int accounts, int clients,
                       double seconds)
{
    char command[2048], line[512];
    double tps = 0, p_ms = 0;
    struct cpu cpu = cpu_now (b, RUSAGE_CHILDREN);
    snprintf (command, sizeof (command),
              "pgbench -n -M prepared -f %s/%s -D account=%lld -D first=%lld -D last=%lld "
              "-c %d -j %d -T %d '%s' 2>&1",
              NUI_BENCH_DIR, script, b->account, b->first, b->first + accounts - 1, clients,
              clients > 1 ? 2 : 1, (int)(seconds + 0.5), b->conninfo);
    FILE *p = popen (command, "r");
    assert (p);
    while (fgets (line, sizeof (line), p)) {
        if (sscanf (line, "tps = %lf", &tps) != 1 && sscanf (line, "latency average = %lf", &p_ms) != 1 &&
            strstr (line, "ERROR"))
            fprintf (stderr, "%s", line);
    }
    pclose (p);
    usleep (200000); /* until the postmaster has seen its backends end */
    printf ("  pgbench  %4d account%s %3d clients:   %7.0f /s, mean %.2f ms", accounts,
            accounts == 1 ? " " : "s", clients, tps, p_ms);
    cpu_print (b, RUSAGE_CHILDREN, cpu, tps * seconds);
    return tps;
}

static void best_of (double *best, double rate)
{
    *best = rate > *best ? rate : *best;
}

static double ours_best (struct bench *b, const char *what, void (*begin) (struct slot *s),
                         int accounts, double seconds)
{
    double best = 0;
    for (int flight = FLIGHT; flight <= FLIGHT_MAX; flight *= 4)
        best_of (&best, ours (b, what, begin, accounts, flight, seconds));
    return best;
}

static double pgbench_best (const struct bench *b, const char *script, int accounts, double seconds)
{
    static const int clients[] = {2, 4, 8, 16, 32, 64};
    double best = 0;
    for (size_t i = 0; i < sizeof (clients) / sizeof (clients[0]); i++)
        best_of (&best, pgbench (b, script, accounts, clients[i], seconds));
    return best;
}

static void connect_more (struct bench *b)
{
    struct err err = {0};
    for (int i = 1; i < CONNECTIONS; i++) {
        struct rpcclient_config c = {.base = b->d.base,
                                     .id = b->d.id[WHO_ALPHA],
                                     .target = b->d.target,
                                     .expect_kind = PRINCIPAL_BANK};
        b->more[i] = rpcclient_create (&c, &err);
        assert (b->more[i]);
    }
}

/* ---- accounts, each with a deposit ---- */

static void make_account (struct slot *s);

static void on_deposit (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    assert (result->status == RPC_OK);
    s->bench->flying--;
    make_account (s);
}

static void on_account (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    uint8_t key[16];
    char name[16];
    assert (result->status == RPC_OK);
    s->bench->flying--;
    snprintf (name, sizeof (name), "acct%d", s->account);
    Nui__Bank__V1__DepositRequest m = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    m.key = bankd_key (&s->bench->d, key);
    m.account = name;
    m.amount_micro = INT64_C (1000000000) * MICRO_PER_CREDIT;
    start (s, WHO_NSF, "Deposit", &m.base, on_deposit);
}

static void make_account (struct slot *s)
{
    uint8_t key[16];
    char name[16];
    if (s->bench->accounts == ACCOUNTS)
        return;
    s->account = s->bench->accounts++;
    snprintf (name, sizeof (name), "acct%d", s->account);
    Nui__Bank__V1__AccountCreateRequest m = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
    m.key = bankd_key (&s->bench->d, key);
    m.name = name;
    m.project = TEXT ("physics");
    start (s, WHO_NSF, "AccountCreate", &m.base, on_account);
}

static void accounts_make (struct bench *b)
{
    b->accounts = 0;
    for (int i = 0; i < FLIGHT; i++) {
        b->slot[i].bench = b;
        make_account (&b->slot[i]);
    }
    while (b->flying > 0)
        event_base_loop (b->d.base, EVLOOP_ONCE);
}

/* What pgbench needs, and the server's processes. */
static PGconn *prepare (struct bench *b)
{
    PGconn *sql = pg_fixture_connect (b->conninfo);
    char path[512], setup[4096] = "";
    snprintf (path, sizeof (path), "%s/pgbench-setup.sql", NUI_BENCH_DIR);
    FILE *f = fopen (path, "r");
    assert (f && fread (setup, 1, sizeof (setup) - 1, f) > 0);
    fclose (f);
    PQclear (PQexec (sql, setup));
    PQclear (PQexec (sql, "VACUUM ANALYZE"));
    b->postmaster = stat_of ((pid_t)PQbackendPID (sql)).parent;
    PGresult *ours = PQexec (sql, "SELECT pid FROM pg_stat_activity WHERE application_name IN "
                                  "('nui-bank committer', 'nui-bank reader')");
    for (; b->backends < PQntuples (ours) && b->backends < BACKENDS_MAX; b->backends++)
        b->backend[b->backends] = atoi (PQgetvalue (ours, b->backends, 0));
    PQclear (ours);
    b->first = pg_fixture_number (sql, "SELECT min (l.id) FROM allocation l JOIN account a ON "
                                       "a.id = l.account_id WHERE a.name LIKE 'acct%'");
    char ask[100];
    snprintf (ask, sizeof (ask), "SELECT account_id FROM allocation WHERE id = %lld", b->first);
    b->account = pg_fixture_number (sql, ask);
    return sql;
}

struct ratio {
    const char *part;
    double ours, pgbench; /* best of the rounds, per second; of one client the mean */
};

/* Side by side, so that what else the machine does falls on both; the daemon is idle while pgbench
 * runs. */
static void measure (struct bench *b, struct ratio *r, double seconds)
{
    static const char pair[] = "pgbench.sql", read[] = "pgbench-read.sql";
    bool hot = strcmp (r->part, "hot") == 0;
    if (strcmp (r->part, "one") == 0) {
        /* Most of it is the disk's wait, which differs from one second to the next: short turns, and their mean. */
        double turn = seconds < TURN_SECONDS ? seconds : TURN_SECONDS;
        for (int i = 0; i < TURNS; i++) {
            r->ours += ours (b, "pairs", start_hold, ACCOUNTS, 1, turn) / (ROUNDS * TURNS);
            r->pgbench += pgbench (b, pair, ACCOUNTS, 1, turn) / (ROUNDS * TURNS);
        }
    } else if (strcmp (r->part, "read") == 0) {
        ours (b, "reads", start_read, ACCOUNTS, 1, seconds);
        best_of (&r->ours, ours_best (b, "reads", start_read, ACCOUNTS, seconds));
        pgbench (b, read, ACCOUNTS, 1, seconds);
        best_of (&r->pgbench, pgbench_best (b, read, ACCOUNTS, seconds));
    } else {
        int accounts = hot ? 1 : ACCOUNTS;
        best_of (&r->ours, ours_best (b, "pairs", start_hold, accounts, seconds));
        best_of (&r->pgbench, pgbench_best (b, pair, accounts, seconds));
    }
}

/* ---- PostgreSQL alone ---- */

static void clients_close (struct bench *b)
{
    for (int i = 1; i < CONNECTIONS; i++) {
        rpcclient_destroy (b->more[i]);
        b->more[i] = NULL;
    }
    bankd_close (&b->d);
}

/* Nobody is connected to the database. */
static bool bare (struct bench *b, int accounts, double seconds)
{
    char conninfo[200];
    struct tape *tape = tape_record (pg_fixture_dir (b->pg));
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=bench user=bank", tape_dir (tape));
    pg_fixture_copy (b->pg, "bench", "spare");
    uint64_t keys = b->d.keys;
    bankd_open (&b->d, NUI_BANK_PROGRAM, conninfo, "");
    b->d.keys = keys; /* goes on: those before are taken */
    b->backends = 0;  /* not looked at while it is recorded */
    bool ok = bankd_wait_serving (&b->d, true);
    connect_more (b);
    ok = ok && ours (b, "pairs recorded", start_hold, accounts, FLIGHT_MAX, seconds) > 0;
    clients_close (b);
    tape_end (tape);
    struct tape_result r = tape_play (tape, "bench", "spare");
    double pairs = (double)b->pairs * (r.commits - 1) / (r.commits > 1 ? r.commits : 2);
    printf (
        "  bare     %4d account%s, %u batches: %7.0f pairs/s; CPU each, us: PostgreSQL %.0f%s\n",
        accounts, accounts == 1 ? " " : "s", r.commits, pairs / r.seconds, r.postgres_us / pairs,
        r.errors ? " (SOME FAILED)" : "");
    tape_destroy (tape);
    return ok && r.commits > 1 && r.errors == 0;
}

static bool wanted (const char *part, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp (part, argv[i]) == 0)
            return true;
    return argc <= 2;
}

int main (int argc, char **argv)
{
    static struct bench b;
    static struct ratio ratio[] = {{.part = "one"}, {.part = "spread"}, {.part = "hot"}, {.part = "read"}};
    enum { PARTS = sizeof (ratio) / sizeof (ratio[0]) };
    double seconds = argc > 1 ? atof (argv[1]) : 5;
    bool ok = true;
    signal (SIGPIPE, SIG_IGN);
    b.sample = malloc (SAMPLES_MAX * sizeof (double));
    b.pg = pg_fixture_start (true);
    if (!b.pg || !b.sample)
        return 1;
    b.conninfo = pg_fixture_database (b.pg, "bench");
    bankd_open (&b.d, NUI_BANK_PROGRAM, b.conninfo, "");
    if (!bankd_wait_serving (&b.d, true))
        return 1;
    connect_more (&b);
    bankd_found (&b.d);
    accounts_make (&b);
    PGconn *sql = prepare (&b);
    double load = 0;
    getloadavg (&load, 1);
    printf ("bench_bank: durable hold+charge pairs, fsync on, %g s each; load of the machine before: %.1f\n",
            seconds, load);
    do /* warm: each account was named, which is looked up once */
        ours (&b, "pairs", start_hold, ACCOUNTS, FLIGHT, seconds > 2 ? 2 : seconds);
    while (b.jobs < ACCOUNTS);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < PARTS; i++)
            if (wanted (ratio[i].part, argc, argv))
                measure (&b, &ratio[i], seconds);
    for (int i = 0; i < PARTS; i++) {
        if (!wanted (ratio[i].part, argc, argv))
            continue;
        printf ("%s: %.0f/s to pgbench's %.0f/s, ratio %.2f\n", ratio[i].part, ratio[i].ours,
                ratio[i].pgbench, ratio[i].ours / ratio[i].pgbench);
        ok = ok && ratio[i].ours > 0;
    }
    PQfinish (sql);
    clients_close (&b);
    if (wanted ("bare", argc, argv))
        ok = bare (&b, ACCOUNTS, seconds) && bare (&b, 1, seconds) && ok;
    pg_fixture_stop (b.pg);
    free (b.sample);
    return ok ? 0 : 1;
}
