/* bench_size [ENTRIES...]: what a statement, a balance and a job (hold and charge) cost one caller in a
 * ledger of so many entries (a million and ten million), half of them of one account, the others of a
 * million, whose jobs these are; the statement with the bank's checkpoints and without. Prints medians, and
 * ratios to the smallest ledger. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

enum { ACCOUNTS = 1000000, LEGS = 4, TIMES = 41, JOBS = 201, SIZES_MAX = 8 };

/* Of one call: the median of what it took, and the CPU time of nui-bank and its connections. */
struct cost {
    double ms, cpu_us;
};

struct costs {
    struct cost statement, bare, balance, job;
};

/* nui-bank and its connections. */
struct watched {
    pid_t pid[8];
    int count;
};

/* Microseconds on a processor so far, of all of them. */
static double cpu_us (const struct watched *w)
{
    double sum = 0;
    for (int i = 0; i < w->count; i++) {
        char path[64];
        unsigned long long ns = 0;
        snprintf (path, sizeof (path), "/proc/%d/schedstat", (int)w->pid[i]);
        FILE *f = fopen (path, "r");
        if (f && fscanf (f, "%llu", &ns) == 1)
            sum += (double)ns / 1000;
        if (f)
            fclose (f);
    }
    return sum;
}

static struct watched watch (const struct bankd *d, PGconn *conn)
{
    struct watched w = {.pid = {d->pid}, .count = 1};
    PGresult *res =
        PQexec (conn, "SELECT pid FROM pg_stat_activity WHERE application_name IN "
                      "('nui-bank committer', 'nui-bank second committer', 'nui-bank reader')");
    for (int i = 0; i < PQntuples (res) && w.count < 8; i++)
        w.pid[w.count++] = atoi (PQgetvalue (res, i, 0));
    PQclear (res);
    return w;
}

static void run (PGconn *conn, const char *sql)
{
    PGresult *res = PQexec (conn, sql);
    if (PQresultStatus (res) != PGRES_COMMAND_OK && PQresultStatus (res) != PGRES_TUPLES_OK) {
        fprintf (stderr, "bench_size: %s", PQresultErrorMessage (res));
        exit (1);
    }
    PQclear (res);
}

/* Operations of four legs each up to `entries`, in the year before now, as the bank writes a charge. The index over a
 * million accounts is made afterwards: page by page at random it would take longer than all else. */
static void fill (PGconn *conn, long long entries)
{
    char sql[2400];
    long long first = pg_fixture_number (conn, "SELECT coalesce (max (id), 0) + 1 FROM bank.op");
    long long have = pg_fixture_number (conn, "SELECT count (*) FROM bank.entry");
    long long ops = (entries - have) / LEGS,
              end = pg_fixture_number (conn, "SELECT coalesce (max (recorded_at), 0) FROM bank.op");
    long long phys = pg_fixture_number (conn, "SELECT id FROM bank.account WHERE name = 'phys'");
    long long spread =
        pg_fixture_number (conn, "SELECT id FROM bank.account WHERE name = 'spread1'");
    run (conn,
         "SET session_replication_role = replica"); /* what it has is balanced by how it is made */
    run (conn, "DROP INDEX bank.entry_account");
    snprintf (
        sql, sizeof (sql),
        "INSERT INTO bank.op SELECT g, 'nui://test/site/alpha', decode (lpad (to_hex (g), 32, '0'), 'hex'), "
        "decode (repeat ('00', 32), 'hex'), 'charge', 'nui://test/user/alice', 'alpha', 'grid.' || g, '', "
        "%lld + g - %lld, %lld + g - %lld, 0, '' FROM generate_series (%lld, %lld) g",
        end + 1, first, end + 1, first, first, first + ops - 1);
    run (conn, sql);
    run (conn, "SELECT bank.entry_room ()");
    snprintf (
        sql, sizeof (sql),
        "INSERT INTO bank.entry SELECT g, l, (CASE WHEN l < 3 THEN 'P' ELSE 'H' END)::\"char\", 1, "
        "CASE WHEN l %% 2 = 0 THEN 1 WHEN g %% 2 = 0 THEN %lld ELSE %lld + (g / 2) %% %d END, 1, "
        "CASE WHEN l %% 2 = 0 THEN 1000 ELSE -1000 END, %lld + g - %lld, %lld + g - %lld "
        "FROM generate_series (%lld, %lld) g, generate_series (1, %d) l",
        phys, spread, ACCOUNTS, end + 1, first, end + 1, first, first, first + ops - 1, LEGS);
    run (conn, sql);
    run (conn, "SET session_replication_role = origin");
    run (conn, "CREATE INDEX entry_account ON bank.entry (account_id, recorded_at)");
    run (conn, "VACUUM ANALYZE bank.entry");
    run (conn, "VACUUM ANALYZE bank.op");
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct cost median (const struct watched *w, struct bankd *d, enum bankd_who who,
                           const char *method, const ProtobufCMessage *request, int times)
{
    double took[TIMES], cpu = cpu_us (w);
    for (int i = 0; i < times; i++) {
        duration_us begun = clock_monotonic_us ();
        struct bankd_reply reply = bankd_call (d, who, method, request);
        took[i] = (double)(clock_monotonic_us () - begun) / 1000;
        if (!reply.message) {
            fprintf (stderr, "bench_size: %s: %s\n", method, reply.err.text);
            exit (1);
        }
        bankd_reply_free (&reply);
    }
    qsort (took, (size_t)times, sizeof (double), by_value);
    return (struct cost){took[times / 2], (cpu_us (w) - cpu) / times};
}

/* What one call took, and its answer. */
static double timed (struct bankd *d, const char *method, const ProtobufCMessage *request,
                     struct bankd_reply *reply)
{
    duration_us begun = clock_monotonic_us ();
    *reply = bankd_call (d, WHO_ALPHA, method, request);
    if (!reply->message) {
        fprintf (stderr, "bench_size: %s: %s\n", method, reply->err.text);
        exit (1);
    }
    return (double)(clock_monotonic_us () - begun) / 1000;
}

/* A job on an account that none of the last ones named: hold and charge, milliseconds. */
static double job (struct bankd *d)
{
    static int jobs;
    uint8_t key[16];
    char name[32], account[32];
    struct bankd_reply reply;
    snprintf (name, sizeof (name), "alpha.%d", ++jobs);
    snprintf (account, sizeof (account), "spread%d", 1 + (int)((long long)jobs * 7919 % ACCOUNTS));
    struct bankd_job signed_job = {.account = account};
    Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
    m.key = bankd_key (d, key);
    m.envelope = bankd_sign (d, WHO_ALICE, &signed_job);
    m.grid_job_id = (char *)(uintptr_t) "grid.1";
    m.site_job_id = name;
    m.component = (char *)(uintptr_t) "main";
    m.procs = 1;
    m.walltime_us = 10 * US_PER_S;
    double took = timed (d, "Hold", &m.base, &reply);
    const Nui__Bank__V1__HoldReply *held = (const void *)reply.message;
    assert (held->granted);
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    struct bankd_reply charged;
    charge.key = bankd_key (d, key);
    charge.hold_id = held->hold_id;
    charge.grid_job_id = m.grid_job_id;
    charge.site_job_id = name;
    charge.component = m.component;
    charge.procs = 1;
    charge.start_us = clock_now_us ();
    charge.end_us = charge.start_us + 8 * US_PER_S;
    charge.final = charge.successful = true;
    took += timed (d, "Charge", &charge.base, &charged);
    bankd_reply_free (&charged);
    bankd_reply_free (&reply);
    envelope_free (m.envelope);
    return took;
}

static struct cost jobs (const struct watched *w, struct bankd *d)
{
    double took[JOBS], cpu = cpu_us (w);
    for (int i = 0; i < JOBS; i++)
        took[i] = job (d);
    qsort (took, JOBS, sizeof (double), by_value);
    return (struct cost){took[JOBS / 2], (cpu_us (w) - cpu) / JOBS};
}

/* A million accounts, each with an allocation. */
static void accounts_make (PGconn *conn)
{
    char sql[600];
    run (conn, "SET session_replication_role = replica");
    snprintf (
        sql, sizeof (sql),
        "WITH top AS (SELECT (SELECT max (id) FROM bank.account) AS a, (SELECT max (id) FROM bank.allocation) AS l), "
        "acc AS (INSERT INTO bank.account SELECT a + g, 'spread' || g, 'PROJECT', 1, 1 FROM top, "
        "generate_series (1, %d) g), "
        "alloc AS (INSERT INTO bank.allocation SELECT l + g, a + g, 0, 9000000000000000, 0, '', 1 FROM top, "
        "generate_series (1, %d) g) "
        "INSERT INTO bank.balance SELECT l + g, 1000000000000, 0, 1000000000000, 0 FROM top, "
        "generate_series (1, %d) g",
        ACCOUNTS, ACCOUNTS, ACCOUNTS);
    run (conn, sql);
    run (conn, "SET session_replication_role = origin");
    run (conn, "VACUUM ANALYZE");
}

static struct costs measure (struct bankd *d, PGconn *conn)
{
    struct costs c;
    struct watched w = watch (d, conn);
    Nui__Bank__V1__StatementRequest statement = NUI__BANK__V1__STATEMENT_REQUEST__INIT;
    Nui__Bank__V1__BalanceRequest balance = NUI__BANK__V1__BALANCE_REQUEST__INIT;
    long long ops = pg_fixture_number (conn, "SELECT max (id) FROM bank.op");
    for (int i = 0; pg_fixture_number (
                        conn, "SELECT coalesce (max (upto_op), 0) FROM bank.checkpoint_run") < ops;
         i++) {
        if (i > 36000) {
            fprintf (stderr, "bench_size: no checkpoint in an hour\n");
            exit (1);
        }
        usleep (100000);
    }
    statement.account = balance.account = (char *)(uintptr_t) "phys";
    statement.from_us = (clock_now_us () / US_PER_S + 1) * US_PER_S;
    statement.to_us = statement.from_us + US_PER_S;
    while (clock_now_us () <= statement.to_us)
        usleep (10000);
    c.statement = median (&w, d, WHO_ALICE, "Statement", &statement.base, TIMES);
    c.balance = median (&w, d, WHO_ALICE, "Balance", &balance.base, TIMES);
    c.job = jobs (&w, d);
    run (conn, "SET session_replication_role = replica");
    run (conn, "CREATE TABLE bank.set_aside AS SELECT * FROM bank.checkpoint");
    run (conn, "DELETE FROM bank.checkpoint");
    c.bare = median (&w, d, WHO_ALICE, "Statement", &statement.base, 3);
    run (conn, "INSERT INTO bank.checkpoint SELECT * FROM bank.set_aside ON CONFLICT DO NOTHING");
    run (conn, "DROP TABLE bank.set_aside");
    run (conn, "SET session_replication_role = origin");
    return c;
}

int main (int argc, char **argv)
{
    struct bankd d;
    struct costs c[SIZES_MAX];
    long long size[SIZES_MAX] = {1000000, 10000000};
    int sizes = argc > 1 ? 0 : 2;
    for (int i = 1; i < argc && sizes < SIZES_MAX; i++)
        size[sizes++] = atoll (argv[i]);
    signal (SIGPIPE, SIG_IGN);
    struct pg_fixture *pg = pg_fixture_start (true);
    if (!pg)
        return 1;
    const char *conninfo = pg_fixture_database (pg, "bench");
    bankd_open (&d, NUI_BANK_PROGRAM, conninfo, "CALLRATE 0\n");
    if (!bankd_wait_serving (&d, true))
        return 1;
    bankd_found (&d);
    bankd_stop (&d, SIGTERM);
    PGconn *conn = pg_fixture_connect (conninfo);
    run (conn, "ALTER SYSTEM SET max_wal_size = '8GB'"); /* what is loaded is not written twice */
    run (conn, "SELECT pg_reload_conf ()");
    run (conn, "SET maintenance_work_mem = '512MB'");
    accounts_make (conn);
    printf (
        "| entries | load | statement, ms (CPU, us) | without checkpoints | balance | hold and charge |\n"
        "|--:|--:|--:|--:|--:|--:|\n");
    fflush (stdout);
    for (int i = 0; i < sizes; i++) {
        fill (conn, size[i]);
        bankd_start (&d, NUI_BANK_PROGRAM);
        if (!bankd_wait_serving (&d, true))
            return 1;
        c[i] = measure (&d, conn);
        bankd_stop (&d, SIGTERM);
        double load = 0;
        getloadavg (&load, 1);
        printf ("| %lld | %.1f | %.2f (%.0f) | %.1f (%.0f) | %.2f (%.0f) | %.2f (%.0f) |\n",
                size[i], load, c[i].statement.ms, c[i].statement.cpu_us, c[i].bare.ms,
                c[i].bare.cpu_us, c[i].balance.ms, c[i].balance.cpu_us, c[i].job.ms,
                c[i].job.cpu_us);
        fflush (stdout);
    }
    for (int i = 1; i < sizes; i++)
        printf (
            "%lldx the entries: CPU of a statement x%.2f (without checkpoints x%.1f), balance x%.2f, hold and charge "
            "x%.2f\n",
            size[i] / size[0], c[i].statement.cpu_us / c[0].statement.cpu_us,
            c[i].bare.cpu_us / c[0].bare.cpu_us, c[i].balance.cpu_us / c[0].balance.cpu_us,
            c[i].job.cpu_us / c[0].job.cpu_us);
    PQfinish (conn);
    bankd_start (&d, NUI_BANK_PROGRAM); /* closing expects one */
    bankd_close (&d);
    pg_fixture_stop (pg);
    return 0;
}
