/* bench_bank [--sync-us N] [SECONDS [PART...]]: durable hold+charge pairs per second through nui-bank's
 * RPC front (TLS), of jobs that a site claims and of jobs that users signed, over one hot account and over
 * many, with 1 to 1,024 in flight; against pgbench doing the same writes with one prepared statement per
 * transaction on the same schema and server, with the audit's chain of blocks and without, at its best
 * client count; and balances read, against pgbench's SELECT. Prints the CPU time of each process per pair,
 * and a table. Last, what PostgreSQL alone makes of what nui-bank sent it (tape.h). N: microseconds that
 * each sync of PostgreSQL's takes longer (slowsync.c): 0; SECONDS per measurement: 5; PART: one, spread,
 * hot, read, bare (all). */
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
/* One user asks more often than any may. */
#define CONFIG "CALLRATE 0\n"

enum { ROUNDS = 2, ACCOUNTS = 1000, FLIGHT = 64, FLIGHT_MAX = 1024, SAMPLES_MAX = 1 << 20, BACKENDS_MAX = 8 };
enum { SIGNED_MAX = 1 << 16, TURNS = 5, TURN_SECONDS = 2 };
enum { SECONDS_MAX = 30, SYNC_US_MAX = 1000000, COMMITS = 101 };
enum { PER_CONNECTION = 256, CONNECTIONS = FLIGHT_MAX / PER_CONNECTION }; /* the daemon's limit of streams */

/* Whose word a job is: the site's, as for what its own users give to its scheduler; or its user's
 * signature. What a local pair writes is what pgbench.sql does; a signed one also remembers its signature. */
enum kind { LOCAL, SIGNED, KINDS };
enum script { PLAIN, CHAIN, SCRIPTS };

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
    enum kind kind;
    int flying;
    uint64_t jobs, pairs, failed;
    bool bad; /* something failed, in any measurement */
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
    Nui__Common__V1__Envelope *envelope = bankd_sign (&b->d, WHO_ALICE, &signed_job);
    bankd_hand_over (&b->d, envelope, "alpha");
    return envelope;
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
    Nui__Bank__V1__SiteClaim claim = NUI__BANK__V1__SITE_CLAIM__INIT;
    char account[16];
    snprintf (account, sizeof (account), "acct%d", s->account);
    claim.identity = TEXT (ALICE_URI);
    claim.account = account;
    m.key = bankd_key (&b->d, key);
    if (b->kind == LOCAL)
        m.claim = &claim;
    else
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

static const char *const pairs_of[KINDS] = {"local pairs", "signed pairs"};

struct rate {
    double per_s, p99_ms;
};

/* Keeps `flight` going for a while and waits for the last. */
static struct rate ours (struct bench *b, const char *what, void (*begin) (struct slot *s), int accounts,
                         int flight, double seconds)
{
    b->accounts = accounts;
    b->pairs = b->failed = 0;
    b->samples = 0;
    b->use = clock_now_us ();
    if (begin == start_hold && b->kind == SIGNED)
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
    struct rate rate = {.per_s = (double)b->pairs * 1e6 / (double)(clock_monotonic_us () - begun)};
    qsort (b->sample, b->samples, sizeof (double), by_value);
    rate.p99_ms = b->samples ? b->sample[b->samples * 99 / 100] : 0;
    b->bad = b->bad || b->failed || b->samples == 0;
    printf ("  nui-bank %4d account%s %4d in flight: %7.0f %s/s, p50 %.2f ms, p99 %.2f ms%s", accounts,
            accounts == 1 ? " " : "s", flight, rate.per_s, what,
            b->samples ? b->sample[b->samples / 2] : 0.0, rate.p99_ms, b->failed ? " (SOME FAILED)" : "");
    cpu_print (b, RUSAGE_SELF, cpu, (double)b->pairs);
    return rate;
}


static const char *const script_of[SCRIPTS] = {"pgbench.sql", "pgbench-chain.sql"};
static const char script_read[] = "pgbench-read.sql";

static double pgbench (struct bench *b, const char *script, int accounts, int clients, double seconds)
{
    char command[2048], line[512];
    double tps = 0, mean_ms = 0;
    struct cpu cpu = cpu_now (b, RUSAGE_CHILDREN);
    snprintf (command, sizeof (command),
              "pgbench -n -M prepared -f %s/%s -D account=%lld -D first=%lld -D last=%lld "
              "-c %d -j %d -T %d '%s' 2>&1",
              NUI_BENCH_DIR, script, b->account, b->first, b->first + accounts - 1, clients,
              clients > 1 ? 2 : 1, (int)(seconds + 0.5), b->conninfo);
    FILE *p = popen (command, "r");
    assert (p);
    while (fgets (line, sizeof (line), p)) {
        if (sscanf (line, "tps = %lf", &tps) != 1 &&
            sscanf (line, "latency average = %lf", &mean_ms) != 1 && strstr (line, "rror"))
            fprintf (stderr, "%s", line);
    }
    bool bad = pclose (p) != 0 || tps <= 0;
    b->bad = b->bad || bad;
    usleep (200000); /* until the postmaster has seen its backends end */
    printf ("  %-17s %4d account%s %3d clients: %7.0f /s, mean %.2f ms%s", script, accounts,
            accounts == 1 ? " " : "s", clients, tps, mean_ms, bad ? " (SOME FAILED)" : "");
    cpu_print (b, RUSAGE_CHILDREN, cpu, tps * seconds);
    return tps;
}

/* Of several numbers in flight. */
static void ours_best (struct bench *b, struct rate *best, const char *what,
                       void (*begin) (struct slot *s), int accounts, double seconds)
{
    for (int flight = FLIGHT; flight <= FLIGHT_MAX; flight *= 4) {
        struct rate rate = ours (b, what, begin, accounts, flight, seconds);
        if (rate.per_s > best->per_s)
            *best = rate;
    }
}

static void pgbench_best (struct bench *b, double *best, const char *script, int accounts,
                          double seconds)
{
    static const int clients[] = {2, 4, 8, 16, 32, 64};
    for (size_t i = 0; i < sizeof (clients) / sizeof (clients[0]); i++) {
        double tps = pgbench (b, script, accounts, clients[i], seconds);
        *best = tps > *best ? tps : *best;
    }
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

/* Alpha's word is enough for whose job one of its own users' is. */
static void claims_allow (struct bench *b)
{
    uint8_t key[16];
    Nui__Bank__V1__SiteSetRequest m = NUI__BANK__V1__SITE_SET_REQUEST__INIT;
    m.key = bankd_key (&b->d, key);
    m.site = TEXT ("alpha");
    m.claims = true;
    struct bankd_reply reply = bankd_call (&b->d, WHO_OPS, "SiteSet", &m.base);
    assert (reply.err.code == 0);
    bankd_reply_free (&reply);
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
    pg_fixture_run (sql, setup);
    pg_fixture_run (sql, "VACUUM ANALYZE");
    b->postmaster = stat_of ((pid_t)PQbackendPID (sql)).parent;
    PGresult *ours = PQexec (sql, "SELECT pid FROM pg_stat_activity WHERE application_name IN "
                                  "('nui-bank committer', 'nui-bank second committer', 'nui-bank reader')");
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

/* A row of the table; what was not measured is 0. */
struct result {
    const char *part, *title;
    struct rate ours[KINDS]; /* the best of the rounds; of one client the mean; reads are of no kind */
    double pgbench[SCRIPTS];
};

/* Most of it is the disk's wait, which differs from one second to the next: short turns, and their mean. */
static void measure_one (struct bench *b, struct result *r, double seconds)
{
    double turn = seconds < TURN_SECONDS ? seconds : TURN_SECONDS;
    for (int i = 0; i < TURNS; i++) {
        for (b->kind = 0; b->kind < KINDS; b->kind++) {
            struct rate rate = ours (b, pairs_of[b->kind], start_hold, ACCOUNTS, 1, turn);
            r->ours[b->kind].per_s += rate.per_s / (ROUNDS * TURNS);
            r->ours[b->kind].p99_ms += rate.p99_ms / (ROUNDS * TURNS);
        }
        for (int k = 0; k < SCRIPTS; k++)
            r->pgbench[k] += pgbench (b, script_of[k], ACCOUNTS, 1, turn) / (ROUNDS * TURNS);
    }
}

/* Side by side, so that what else the machine does falls on both; the daemon is idle while pgbench
 * runs. */
static void measure (struct bench *b, struct result *r, double seconds)
{
    int accounts = strcmp (r->part, "hot") == 0 ? 1 : ACCOUNTS;
    if (strcmp (r->part, "one") == 0) {
        measure_one (b, r, seconds);
    } else if (strcmp (r->part, "read") == 0) {
        ours (b, "reads", start_read, ACCOUNTS, 1, seconds);
        ours_best (b, &r->ours[0], "reads", start_read, ACCOUNTS, seconds);
        pgbench (b, script_read, ACCOUNTS, 1, seconds);
        pgbench_best (b, &r->pgbench[0], script_read, ACCOUNTS, seconds);
    } else {
        for (b->kind = 0; b->kind < KINDS; b->kind++)
            ours_best (b, &r->ours[b->kind], pairs_of[b->kind], start_hold, accounts, seconds);
        for (int k = 0; k < SCRIPTS; k++)
            pgbench_best (b, &r->pgbench[k], script_of[k], accounts, seconds);
    }
}

static void cell (int width, int digits, double value)
{
    if (value > 0)
        printf (" %*.*f", width, digits, value);
    else
        printf (" %*s", width, "-");
}

static void table_print (const struct result *result, int count)
{
    printf ("\n%-34s %17s %17s %17s %13s %13s\n%-34s %8s %8s %8s %8s %8s %8s %6s %6s %6s %6s\n", "",
            "nui-bank, local", "nui-bank, signed", "pgbench", "local to", "signed to", "", "/s", "p99 ms",
            "/s", "p99 ms", "plain", "chain", "plain", "chain", "plain", "chain");
    for (const struct result *r = result; r < result + count; r++) {
        if (r->ours[0].per_s <= 0)
            continue; /* not asked for */
        printf ("%-34s", r->title);
        for (int i = 0; i < KINDS; i++) {
            cell (8, 0, r->ours[i].per_s);
            cell (8, 2, r->ours[i].p99_ms);
        }
        for (int k = 0; k < SCRIPTS; k++)
            cell (8, 0, r->pgbench[k]);
        for (int i = 0; i < KINDS; i++)
            for (int k = 0; k < SCRIPTS; k++)
                cell (6, 2, r->pgbench[k] > 0 ? r->ours[i].per_s / r->pgbench[k] : 0);
        printf ("\n");
    }
}

/* What pgbench chained is a chain. */
static bool chain_holds (PGconn *sql)
{
    long long broken = pg_fixture_number (
        sql, "SELECT count (*) FROM (SELECT number, prev, lag (number) OVER w AS before, "
             "lag (sha256 (int8send (number) || int8send (first_op) || int8send (ops) || "
             "int8send (recorded_at) || prev || root)) OVER w AS link "
             "FROM bench_block WINDOW w AS (ORDER BY number)) x "
             "WHERE number <> coalesce (before, 0) + 1 OR prev <> coalesce (link, sha256 (''))");
    if (broken)
        fprintf (stderr, "bench_bank: %lld of pgbench's blocks do not follow the one before them\n", broken);
    return !broken;
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
static double bare (struct bench *b, int accounts, double seconds)
{
    char conninfo[200];
    struct tape *tape = tape_record (pg_fixture_dir (b->pg));
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=bench user=bank", tape_dir (tape));
    pg_fixture_copy (b->pg, "bench", "spare");
    uint64_t keys = b->d.keys;
    bankd_open (&b->d, NUI_BANK_PROGRAM, conninfo, CONFIG);
    b->d.keys = keys; /* goes on: those before are taken */
    b->backends = 0;  /* not looked at while it is recorded */
    b->bad = !bankd_wait_serving (&b->d, true) || b->bad;
    connect_more (b);
    ours (b, pairs_of[b->kind], start_hold, accounts, FLIGHT_MAX, seconds); /* recorded */
    clients_close (b);
    tape_end (tape);
    struct tape_result r = tape_play (tape, "bench", "spare");
    double pairs = (double)b->pairs * (r.commits - 1) / (r.commits > 1 ? r.commits : 2);
    printf (
        "  bare     %4d account%s, %u batches: %7.0f %s/s; CPU each, us: PostgreSQL %.0f%s\n",
        accounts, accounts == 1 ? " " : "s", r.commits, pairs / r.seconds, pairs_of[b->kind],
        r.postgres_us / pairs, r.errors ? " (SOME FAILED)" : "");
    tape_destroy (tape);
    b->bad = b->bad || r.commits <= 1 || r.errors > 0;
    return pairs / r.seconds;
}

/* ---- what a sync takes ---- */

/* What the commit of one row takes, in microseconds: a quick one of many, since others may be at work. */
static double commit_us (PGconn *sql, const char *synchronous)
{
    double took[COMMITS];
    char set[64];
    snprintf (set, sizeof (set), "SET synchronous_commit = %s", synchronous);
    pg_fixture_run (sql, set);
    for (int i = 0; i < COMMITS; i++) {
        duration_us begun = clock_monotonic_us ();
        pg_fixture_run (sql, "INSERT INTO public.bench_sync VALUES (1)");
        took[i] = (double)(clock_monotonic_us () - begun);
    }
    qsort (took, COMMITS, sizeof (took[0]), by_value);
    return took[COMMITS / 10];
}

static bool has_loaded (pid_t pid, const char *library)
{
    char path[64], line[1024];
    bool found = false;
    snprintf (path, sizeof (path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen (path, "r");
    while (f && !found && fgets (line, sizeof (line), f))
        found = strstr (line, library) != NULL;
    if (f)
        fclose (f);
    return found;
}

/* How much longer a commit takes for being synced, in microseconds; negative after a sentence where the server does not
 * wait as it was told to. */
static double sync_us (const char *conninfo, long added_us)
{
    PGconn *sql = pg_fixture_connect (conninfo);
    pg_fixture_run (sql, "CREATE TABLE public.bench_sync (n int)");
    double synced = commit_us (sql, "on"), not_synced = commit_us (sql, "off");
    bool told = added_us == 0 ||
                (synced >= (double)added_us && has_loaded (PQbackendPID (sql), NUI_SLOWSYNC));
    pg_fixture_run (sql, "DROP TABLE public.bench_sync");
    PQfinish (sql);
    if (told)
        return synced > not_synced ? synced - not_synced : 0;
    fprintf (stderr,
             "bench_bank: PostgreSQL does not wait %ld us more for its disk (a commit takes %.0f): it did not "
             "load %s; may its user read that?\n",
             added_us, synced, NUI_SLOWSYNC);
    return -1;
}

/* The server alone waits longer for its disk. */
static struct pg_fixture *server_start (long added_us)
{
    char us[32];
    snprintf (us, sizeof (us), "%ld", added_us);
    if (added_us > 0) {
        setenv ("LD_PRELOAD", NUI_SLOWSYNC, 1);
        setenv ("SLOW_SYNC_US", us, 1);
    }
    struct pg_fixture *pg = pg_fixture_start (true);
    unsetenv ("LD_PRELOAD");
    unsetenv ("SLOW_SYNC_US");
    return pg;
}

/* ---- the command line ---- */

struct options {
    long sync_us, seconds;
    char **part; /* those asked for; parts 0: all */
    int parts;
};

static bool wanted (const struct options *o, const char *part)
{
    for (int i = 0; i < o->parts; i++)
        if (strcmp (part, o->part[i]) == 0)
            return true;
    return o->parts == 0;
}

static void number (const char *name, const char *text, long min, long max, long *out)
{
    char *end;
    *out = text ? strtol (text, &end, 10) : 0;
    if (text && *text && !*end && *out >= min && *out <= max)
        return;
    fprintf (stderr, "bench_bank: %s is a whole number from %ld to %ld, not \"%s\"\n", name, min, max,
             text ? text : "");
    exit (2);
}

static struct options options_read (char **argv)
{
    static const char *const known[] = {"one", "spread", "hot", "read", "bare"};
    struct options o = {.seconds = 5};
    if (*++argv && strcmp (*argv, "--sync-us") == 0) {
        number ("--sync-us", argv[1], 0, SYNC_US_MAX, &o.sync_us);
        argv += 2;
    }
    if (*argv)
        number ("SECONDS", *argv++, 1, SECONDS_MAX, &o.seconds);
    o.part = argv;
    for (; *argv; argv++, o.parts++) {
        size_t i = 0;
        while (i < sizeof (known) / sizeof (known[0]) && strcmp (known[i], *argv) != 0)
            i++;
        if (i < sizeof (known) / sizeof (known[0]))
            continue;
        fprintf (stderr, "bench_bank: no part \"%s\": there are one, spread, hot, read and bare\n", *argv);
        exit (2);
    }
    return o;
}

/* ---- */

enum { PARTS = 4, BARE_SPREAD = PARTS, BARE_HOT, RESULTS };

static void run (struct bench *b, const struct options *o, struct result result[RESULTS])
{
    double seconds = (double)o->seconds;
    PGconn *sql = prepare (b);
    for (b->kind = 0; b->kind < KINDS; b->kind++)
        for (uint64_t first = b->jobs; b->jobs < first + ACCOUNTS;) /* warm: each account is looked up once */
            ours (b, pairs_of[b->kind], start_hold, ACCOUNTS, FLIGHT, seconds > 2 ? 2 : seconds);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < PARTS; i++)
            if (wanted (o, result[i].part))
                measure (b, &result[i], seconds);
    b->bad = !chain_holds (sql) || b->bad;
    PQfinish (sql);
    clients_close (b);
    for (b->kind = 0; b->kind < KINDS && wanted (o, "bare"); b->kind++) {
        result[BARE_SPREAD].ours[b->kind].per_s = bare (b, ACCOUNTS, seconds);
        result[BARE_HOT].ours[b->kind].per_s = bare (b, 1, seconds);
    }
}

int main (int argc, char **argv)
{
    static struct bench b;
    struct result result[RESULTS] = {{.part = "one", .title = "one client"},
                                     {.part = "spread", .title = "1,000 accounts"},
                                     {.part = "hot", .title = "one account"},
                                     {.part = "read", .title = "balances read"},
                                     {.part = "bare", .title = "PostgreSQL alone, 1,000 accounts"},
                                     {.part = "bare", .title = "PostgreSQL alone, one account"}};
    double load = 0;
    (void)argc;
    struct options o = options_read (argv);
    signal (SIGPIPE, SIG_IGN);
    getloadavg (&load, 1);
    b.sample = malloc (SAMPLES_MAX * sizeof (double));
    b.pg = server_start (o.sync_us);
    if (!b.pg || !b.sample)
        return 1;
    b.conninfo = pg_fixture_database (b.pg, "bench");
    double sync = sync_us (b.conninfo, o.sync_us);
    if (sync < 0) {
        pg_fixture_stop (b.pg);
        return 1;
    }
    printf ("bench_bank: durable hold+charge pairs, fsync on, %ld s each; a commit waits %.2f ms for the "
            "disk, %.2f of it added; load of the machine before: %.1f\n",
            o.seconds, sync / 1000, (double)o.sync_us / 1000, load);
    bankd_open (&b.d, NUI_BANK_PROGRAM, b.conninfo, CONFIG);
    if (!bankd_wait_serving (&b.d, true))
        return 1;
    connect_more (&b);
    bankd_found (&b.d);
    accounts_make (&b);
    claims_allow (&b);
    run (&b, &o, result);
    table_print (result, RESULTS);
    pg_fixture_stop (b.pg);
    free (b.sample);
    return b.bad ? 1 : 0;
}
