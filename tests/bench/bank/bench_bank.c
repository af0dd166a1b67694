/* bench_bank [--sync-us N] [--against BUILD] [SECONDS [PART...]]: durable hold+charge pairs per second through nui-bank's
 * RPC front (TLS), of jobs that a site claims and of jobs that users signed, over one hot account and over
 * many, with 1 to 1,024 in flight; against pgbench doing the same writes with one prepared statement per
 * transaction on the same schema and server, with the audit's chain of blocks and without, at its best
 * client count; and balances read, against pgbench's SELECT. Prints the CPU time of each process per pair,
 * and a table. Last, what PostgreSQL alone makes of what nui-bank sent it (tape.h). N: microseconds that
 * each sync of PostgreSQL's takes longer (slowsync.c): 0; SECONDS per measurement: 5; PART: one, spread,
 * hot, read, bare (all). BUILD: in place of all this, what an operation costs this build's nui-bank and that
 * one's, by turns (against.h): 10 seconds of each in all. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/bench/bank/against.h"
#include "tests/bench/bank/tape.h"

enum { ROUNDS = 2, TURNS = 5, TURN_SECONDS = 2 };
enum { SECONDS_AGAINST = 10, SECONDS_MAX = 30, SYNC_US_MAX = 1000000, COMMITS = 101 };
enum script { PLAIN, CHAIN, SCRIPTS };

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const char *const script_of[SCRIPTS] = {"pgbench.sql", "pgbench-chain.sql"};
static const char script_read[] = "pgbench-read.sql";

static double pgbench (struct bench *b, const char *script, int accounts, int clients,
                       double seconds)
{
    char command[2048], line[512];
    double tps = 0, mean_ms = 0;
    struct cpu cpu = drive_cpu (b, RUSAGE_CHILDREN);
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
    drive_cpu_print (drive_cpu_each (b, RUSAGE_CHILDREN, cpu, tps * seconds));
    return tps;
}

/* Of several numbers in flight. */
static void ours_best (struct bench *b, struct rate *best, const char *what, drive_f begin,
                       int accounts, double seconds)
{
    for (int flight = FLIGHT; flight <= FLIGHT_MAX; flight *= 4) {
        struct rate rate = drive_print (b, what, begin, accounts, flight, seconds);
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
    b->postmaster = drive_parent ((pid_t)PQbackendPID (sql));
    drive_backends (b, sql);
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
    /* the best of the rounds; of one client the mean; reads are of no kind */
    struct rate ours[KINDS];
    double pgbench[SCRIPTS];
};

/* Most of it is the disk's wait, which differs from one second to the next: short turns, and their mean. */
static void measure_one (struct bench *b, struct result *r, double seconds)
{
    double turn = seconds < TURN_SECONDS ? seconds : TURN_SECONDS;
    for (int i = 0; i < TURNS; i++) {
        for (b->kind = 0; b->kind < KINDS; b->kind++) {
            struct rate rate = drive_print (b, drive_pairs[b->kind], drive_hold, ACCOUNTS, 1, turn);
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
        drive_print (b, "reads", drive_read, ACCOUNTS, 1, seconds);
        ours_best (b, &r->ours[0], "reads", drive_read, ACCOUNTS, seconds);
        pgbench (b, script_read, ACCOUNTS, 1, seconds);
        pgbench_best (b, &r->pgbench[0], script_read, ACCOUNTS, seconds);
    } else {
        for (b->kind = 0; b->kind < KINDS; b->kind++)
            ours_best (b, &r->ours[b->kind], drive_pairs[b->kind], drive_hold, accounts, seconds);
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
            "nui-bank, local", "nui-bank, signed", "pgbench", "local to", "signed to", "", "/s",
            "p99 ms", "/s", "p99 ms", "plain", "chain", "plain", "chain", "plain", "chain");
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
        fprintf (stderr, "bench_bank: %lld of pgbench's blocks do not follow the one before them\n",
                 broken);
    return !broken;
}

/* ---- PostgreSQL alone ---- */

/* Nobody is connected to the database. */
static double bare (struct bench *b, int accounts, double seconds)
{
    char conninfo[200];
    struct tape *tape = tape_record (pg_fixture_dir (b->pg));
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=bench user=bank", tape_dir (tape));
    pg_fixture_copy (b->pg, "bench", "spare");
    drive_start (b, NUI_BANK_PROGRAM, conninfo);
    b->backends = 0; /* not looked at while it is recorded */
    drive_print (b, drive_pairs[b->kind], drive_hold, accounts, FLIGHT_MAX, seconds); /* recorded */
    drive_close (b);
    tape_end (tape);
    struct tape_result r = tape_play (tape, "bench", "spare");
    double pairs = (double)b->pairs * (r.commits - 1) / (r.commits > 1 ? r.commits : 2);
    printf ("  bare     %4d account%s, %u batches: %7.0f %s/s; CPU each, us: PostgreSQL %.0f%s\n",
            accounts, accounts == 1 ? " " : "s", r.commits, pairs / r.seconds, drive_pairs[b->kind],
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
    fprintf (
        stderr,
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
    const char *against;
    char **part; /* those asked for; parts 0: all */
    int parts;
};

static bool wanted (const void *arg, const char *part)
{
    const struct options *o = arg;
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
    fprintf (stderr, "bench_bank: %s is a whole number from %ld to %ld, not \"%s\"\n", name, min,
             max, text ? text : "");
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
    if (*argv && strcmp (*argv, "--against") == 0) {
        o.against = argv[1] ? argv[1] : "";
        o.seconds = SECONDS_AGAINST;
        argv += argv[1] ? 2 : 1;
    }
    if (*argv)
        number ("SECONDS", *argv++, 1, SECONDS_MAX, &o.seconds);
    o.part = argv;
    for (; *argv; argv++, o.parts++) {
        size_t i = 0;
        while (i < sizeof (known) / sizeof (known[0]) && strcmp (known[i], *argv) != 0)
            i++;
        if (i < sizeof (known) / sizeof (known[0]) && !(o.against && strcmp (*argv, "bare") == 0))
            continue;
        fprintf (stderr, "bench_bank: no part \"%s\": there are one, spread, hot, read%s\n", *argv,
                 o.against ? " (--against)" : " and bare");
        exit (2);
    }
    return o;
}

/* Its nui-bank; false, after a sentence, where there is none. */
static bool program_of (const char *build, char *out, size_t size)
{
    int len = snprintf (out, size, "%s/bank/nui-bank", build);
    if (len > 0 && (size_t)len < size && access (out, X_OK) == 0)
        return true;
    fprintf (stderr,
             "bench_bank: --against wants a build's directory, and there is no program %s\n", out);
    return false;
}

/* ---- */

enum { PARTS = 4, BARE_SPREAD = PARTS, BARE_HOT, RESULTS };

static void run (struct bench *b, const struct options *o, struct result result[RESULTS])
{
    double seconds = (double)o->seconds;
    PGconn *sql = prepare (b);
    for (b->kind = 0; b->kind < KINDS; b->kind++)
        for (uint64_t first = b->jobs;
             b->jobs < first + ACCOUNTS;) /* warm: each account is looked up once */
            drive_print (b, drive_pairs[b->kind], drive_hold, ACCOUNTS, FLIGHT,
                         seconds > 2 ? 2 : seconds);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < PARTS; i++)
            if (wanted (o, result[i].part))
                measure (b, &result[i], seconds);
    b->bad = !chain_holds (sql) || b->bad;
    PQfinish (sql);
    drive_close (b);
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
    char other[4096];
    if (o.against && !program_of (o.against, other, sizeof (other)))
        return 2;
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
    printf (
        "bench_bank: durable hold+charge pairs, fsync on, %ld s each; a commit waits %.2f ms for the "
        "disk, %.2f of it added; load of the machine before: %.1f\n",
        o.seconds, sync / 1000, (double)o.sync_us / 1000, load);
    if (o.against) {
        bool good = against (b.pg, other, o.seconds, wanted, &o);
        pg_fixture_stop (b.pg);
        free (b.sample);
        return good ? 0 : 1;
    }
    if (!drive_open (&b, NUI_BANK_PROGRAM))
        return 1;
    run (&b, &o, result);
    table_print (result, RESULTS);
    pg_fixture_stop (b.pg);
    free (b.sample);
    return b.bad ? 1 : 0;
}
