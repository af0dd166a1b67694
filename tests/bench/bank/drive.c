/* See drive.h. The benchmarks call it; one event loop of their own, several connections. */
#include "tests/bench/bank/drive.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/pbcopy.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

static void ended (struct slot *s, bool good, const struct rpc_result *result)
{
    struct bench *b = s->bench;
    if (good && ++b->pairs && b->samples < SAMPLES_MAX)
        b->sample[b->samples++] = (double)(clock_monotonic_us () - s->begun) / 1000;
    if (!good && b->failed++ == 0) /* the others say the same, most often */
        fprintf (stderr, "bench_bank: not answered as it should be: status %d %s\n",
                 (int)result->status, result->message);
}

static void on_charge (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    struct bench *b = s->bench;
    b->flying--;
    ended (s, result->status == RPC_OK, result);
    if (clock_monotonic_us () < b->end)
        drive_hold (s);
}

static struct rpcclient *client_of (const struct slot *s, enum bankd_who who)
{
    ptrdiff_t connection = (s - s->bench->slot) / PER_CONNECTION;
    return who == WHO_ALPHA && connection > 0 ? s->bench->more[connection]
                                              : s->bench->d.client[who];
}

static void start (struct slot *s, enum bankd_who who, const char *method,
                   const ProtobufCMessage *m,
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
    struct arena *arena = arena_create (0);
    Nui__Common__V1__HandOver *sealed =
        b->no_handover ? NULL : bankd_handover (&b->d, envelope, "", "alpha", INT64_MAX, arena);
    if (sealed)
        envelope->handover = (Nui__Common__V1__HandOver *)pbcopy (&sealed->base);
    b->no_handover = !sealed; /* an older build's bank asks for none */
    arena_destroy (arena);
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

void drive_hold (struct slot *s)
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
        m.envelope = b->signed_first < b->signed_end ? b->signed_job[b->signed_first++]
                                                     : job_sign (b, b->jobs);
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = s->job;
    m.component = TEXT ("main");
    m.procs = 1;
    m.walltime_us = 10 * US_PER_S;
    start (s, WHO_ALPHA, "Hold", &m.base, on_hold);
    envelope_free (m.envelope);
}

static void on_balance (void *arg, const struct rpc_result *result)
{
    struct slot *s = arg;
    const Nui__Bank__V1__BalanceReply *r = (const void *)result->reply;
    s->bench->flying--;
    ended (s, result->status == RPC_OK && r->n_balances == 1, result);
    if (clock_monotonic_us () < s->bench->end)
        drive_read (s);
}

void drive_read (struct slot *s)
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

struct stat_line {
    pid_t parent;
    double children; /* CPU time of those that were waited for, in ticks of the system's */
};

static struct stat_line stat_of (pid_t pid)
{
    struct stat_line st = {0};
    char path[64], line[1024] = "";
    unsigned long t[2] = {0};
    snprintf (path, sizeof (path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen (path, "r");
    if (f && fgets (line, sizeof (line), f) && strrchr (line, ')'))
        sscanf (strrchr (line, ')') + 2,
                "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %lu %lu", &st.parent, &t[0],
                &t[1]);
    if (f)
        fclose (f);
    st.children = (double)(t[0] + t[1]) * 1e6 / (double)sysconf (_SC_CLK_TCK);
    return st;
}

/* Of a process that runs, to the nanosecond. */
static double own_us (pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid (pid, &clock) == 0)
        clock_gettime (clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
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
        sum += own_us (b->backend[i]);
    return sum;
}

struct cpu drive_cpu (const struct bench *b, int client)
{
    return (struct cpu){usage_us (client), own_us (b->d.pid), postgres_us (b, client)};
}

struct cpu drive_cpu_each (const struct bench *b, int client, struct cpu from, double times)
{
    struct cpu to = drive_cpu (b, client);
    times = times > 0 ? times : 1;
    return (struct cpu){(to.client - from.client) / times, (to.daemon - from.daemon) / times,
                        (to.postgres - from.postgres) / times};
}

void drive_cpu_print (struct cpu each)
{
    printf ("; CPU each, us: client %.4g, nui-bank %.4g, PostgreSQL %.4g\n", each.client,
            each.daemon, each.postgres);
    fflush (stdout);
}

pid_t drive_parent (pid_t pid)
{
    return stat_of (pid).parent;
}

const char *const drive_pairs[KINDS] = {"local pairs", "signed pairs"};

struct rate drive (struct bench *b, drive_f begin, int accounts, int flight, double seconds)
{
    b->accounts = accounts;
    b->pairs = b->failed = 0;
    b->samples = 0;
    b->use = clock_now_us ();
    if (begin == drive_hold && b->kind == SIGNED)
        jobs_sign (b, seconds * (flight == 1 ? 1000 : 8000));
    struct cpu cpu = drive_cpu (b, RUSAGE_SELF);
    duration_us begun = clock_monotonic_us ();
    b->end = begun + (duration_us)(seconds * 1e6);
    for (int i = 0; i < flight; i++) {
        b->slot[i].bench = b;
        begin (&b->slot[i]);
    }
    while (b->flying > 0)
        event_base_loop (b->d.base, EVLOOP_ONCE);
    struct rate rate = {.per_s = (double)b->pairs * 1e6 / (double)(clock_monotonic_us () - begun),
                        .count = b->pairs,
                        .each = drive_cpu_each (b, RUSAGE_SELF, cpu, (double)b->pairs)};
    qsort (b->sample, b->samples, sizeof (double), by_value);
    rate.p50_ms = b->samples ? b->sample[b->samples / 2] : 0;
    rate.p99_ms = b->samples ? b->sample[b->samples * 99 / 100] : 0;
    b->bad = b->bad || b->failed || b->samples == 0;
    return rate;
}

struct rate drive_print (struct bench *b, const char *what, drive_f begin, int accounts, int flight,
                         double seconds)
{
    struct rate rate = drive (b, begin, accounts, flight, seconds);
    printf ("  nui-bank %4d account%s %4d in flight: %7.0f %s/s, p50 %.2f ms, p99 %.2f ms%s",
            accounts, accounts == 1 ? " " : "s", flight, rate.per_s, what, rate.p50_ms, rate.p99_ms,
            b->failed ? " (SOME FAILED)" : "");
    drive_cpu_print (rate.each);
    return rate;
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

/* ---- the bank ---- */

/* A script that runs it under something else, callgrind say, is taken for a wrapper of a build that has it. */
static bool has_text (const char *program, const char *text)
{
    char buf[1 << 16];
    size_t kept = 0, len = strlen (text), n;
    bool found = false;
    FILE *f = fopen (program, "r");
    while (f && !found && (n = fread (buf + kept, 1, sizeof (buf) - kept, f)) > 0) {
        n += kept;
        found = (kept == 0 && memcmp (buf, "#!", 2) == 0) || memmem (buf, n, text, len) != NULL;
        kept = n < len ? n : len - 1; /* it may stand over the end */
        memmove (buf, buf + n - kept, kept);
    }
    if (f)
        fclose (f);
    return found;
}

void drive_start (struct bench *b, const char *program, const char *conninfo)
{
    uint64_t keys = b->d.keys;
    char config[100];
    /* One user asks more often than any may. An older build lacks parameters, also that which the fixture adds where
     * nothing is said of it. */
    snprintf (config, sizeof (config), "%s%s", has_text (program, "CALLRATE") ? "CALLRATE 0\n" : "",
              has_text (program, "CHARGETOLERANCE") ? "" : "# CHARGETOLERANCE\n");
    bankd_open (&b->d, program, conninfo, config);
    b->d.keys = keys; /* goes on: those before are taken */
    b->bad = !bankd_wait_serving (&b->d, true) || b->bad;
    connect_more (b);
}

bool drive_open (struct bench *b, const char *program)
{
    drive_start (b, program, b->conninfo);
    if (b->bad) {
        fprintf (stderr, "bench_bank: %s does not serve\n", program);
        return false;
    }
    bankd_found (&b->d);
    accounts_make (b);
    claims_allow (b);
    return true;
}

void drive_close (struct bench *b)
{
    for (int i = 1; i < CONNECTIONS; i++) {
        rpcclient_destroy (b->more[i]);
        b->more[i] = NULL;
    }
    bankd_close (&b->d);
}

void drive_backends (struct bench *b, PGconn *sql)
{
    PGresult *ours =
        PQexec (sql, "SELECT pid FROM pg_stat_activity WHERE datname = current_database () AND "
                     "application_name IN ('nui-bank committer', 'nui-bank second committer', "
                     "'nui-bank reader')");
    for (b->backends = 0; b->backends < PQntuples (ours) && b->backends < BACKENDS_MAX;
         b->backends++)
        b->backend[b->backends] = atoi (PQgetvalue (ours, b->backends, 0));
    PQclear (ours);
}
