/* See against.h. bench_bank calls it in place of all that it does otherwise. */
#include "tests/bench/bank/against.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEFORE, NOW, SIDES };

/* Short turns, since what else the machine does changes within seconds, and CPU time with it. */
#define TURN_S 0.5

/* What is measured. */
struct row {
    const char *part, *title;
    drive_f begin;
    enum kind kind;
    int accounts, flight;
};

static const struct row row[] = {
    {"one", "local pairs, one client", drive_hold, LOCAL, ACCOUNTS, 1},
    {"one", "signed pairs, one client", drive_hold, SIGNED, ACCOUNTS, 1},
    {"spread", "local pairs, 1,000 accounts, 64", drive_hold, LOCAL, ACCOUNTS, FLIGHT},
    {"spread", "signed pairs, 1,000 accounts, 64", drive_hold, SIGNED, ACCOUNTS, FLIGHT},
    {"spread", "local pairs, 1,000 accounts, 1,024", drive_hold, LOCAL, ACCOUNTS, FLIGHT_MAX},
    {"spread", "signed pairs, 1,000 accounts, 1,024", drive_hold, SIGNED, ACCOUNTS, FLIGHT_MAX},
    {"hot", "local pairs, one account, 64", drive_hold, LOCAL, 1, FLIGHT},
    {"hot", "signed pairs, one account, 64", drive_hold, SIGNED, 1, FLIGHT},
    {"read", "balances, one client", drive_read, LOCAL, ACCOUNTS, 1},
    {"read", "balances, 64", drive_read, LOCAL, ACCOUNTS, FLIGHT},
};
enum { ROWS = sizeof (row) / sizeof (row[0]) };

/* Of a row and a side: each turn's. */
struct seen {
    double *cpu, *daemon, *postgres, *per_s, *p99_ms;
};

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median (const double *value, long count)
{
    double *sorted = malloc ((size_t)count * sizeof (*sorted));
    assert (sorted);
    memcpy (sorted, value, (size_t)count * sizeof (*sorted));
    qsort (sorted, (size_t)count, sizeof (*sorted), by_value);
    double m = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    free (sorted);
    return m;
}

static double median_ratio (const double *before, const double *now, long count)
{
    double *ratio = malloc ((size_t)count * sizeof (*ratio));
    assert (ratio);
    for (long i = 0; i < count; i++)
        ratio[i] = now[i] / before[i];
    double m = median (ratio, count);
    free (ratio);
    return m;
}

static double *numbers (long count)
{
    double *n = calloc ((size_t)count, sizeof (*n));
    assert (n);
    return n;
}

static void take (struct bench *b, const struct row *r, struct seen *seen, long turn)
{
    b->kind = r->kind;
    struct rate rate = drive (b, r->begin, r->accounts, r->flight, TURN_S);
    seen->daemon[turn] = rate.each.daemon;
    seen->postgres[turn] = rate.each.postgres;
    seen->cpu[turn] = rate.each.daemon + rate.each.postgres;
    seen->per_s[turn] = rate.per_s;
    seen->p99_ms[turn] = rate.p99_ms;
    if (b->failed)
        printf ("  %s: SOME FAILED\n", r->title);
}

/* Whether it costs little enough. */
static bool row_print (const struct row *r, const struct seen seen[SIDES], long turns)
{
    const struct seen *a = &seen[BEFORE], *z = &seen[NOW];
    double ratio = median_ratio (a->cpu, z->cpu, turns);
    bool good = ratio <= AGAINST_MOST;
    printf ("%-36s %7.1f %7.1f %7.1f %7.1f %6.2f%s", r->title, median (a->daemon, turns),
            median (a->postgres, turns), median (z->daemon, turns), median (z->postgres, turns),
            ratio, good ? " " : "!");
    printf (" %7.0f %7.0f %6.2f %7.2f %7.2f %6.2f\n", median (a->per_s, turns),
            median (z->per_s, turns), median_ratio (a->per_s, z->per_s, turns),
            median (a->p99_ms, turns), median (z->p99_ms, turns),
            median_ratio (a->p99_ms, z->p99_ms, turns));
    fflush (stdout);
    return good;
}

static void open_side (struct bench *b, struct pg_fixture *pg, const char *program,
                       const char *database)
{
    b->pg = pg;
    b->sample = malloc (SAMPLES_MAX * sizeof (double));
    b->conninfo = pg_fixture_database (pg, database);
    if (!b->sample || !drive_open (b, program))
        abort ();
    PGconn *sql = pg_fixture_connect (b->conninfo);
    drive_backends (b, sql);
    assert (b->backends == 3);
    for (b->kind = 0; b->kind < KINDS; b->kind++)
        for (uint64_t first = b->jobs;
             b->jobs < first + ACCOUNTS;) /* warm: each account is looked up once */
            drive (b, drive_hold, ACCOUNTS, FLIGHT, 1);
    pg_fixture_run (sql, "VACUUM ANALYZE");
    PQfinish (sql);
}

bool against (struct pg_fixture *pg, const char *before, long seconds,
              bool (*wanted) (const void *arg, const char *part), const void *arg)
{
    static struct bench bench[SIDES];
    static const char *const program[SIDES] = {[NOW] = NUI_BANK_PROGRAM};
    static const char *const database[SIDES] = {"before", "now"};
    struct seen seen[ROWS][SIDES];
    long turns = (long)((double)seconds / TURN_S);
    bool good = true;
    for (int side = 0; side < SIDES; side++)
        open_side (&bench[side], pg, program[side] ? program[side] : before, database[side]);
    for (int i = 0; i < ROWS; i++)
        for (int side = 0; side < SIDES; side++)
            seen[i][side] = (struct seen){numbers (turns), numbers (turns), numbers (turns),
                                          numbers (turns), numbers (turns)};
    for (long turn = 0; turn < turns; turn++)
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < SIDES && wanted (arg, row[i].part); k++) {
                int side = (int)((k + turn) % SIDES); /* who comes first changes */
                take (&bench[side], &row[i], &seen[i][side], turn);
            }
    printf (
        "\n%-36s %15s %15s %6s  %15s %6s %15s %6s\n%-36s %7s %7s %7s %7s %6s  %7s %7s %6s %7s %7s %6s\n",
        "CPU each, us", "before", "now", "", "/s", "", "p99 ms", "", "", "bank", "PgSQL", "bank",
        "PgSQL", "ratio", "before", "now", "ratio", "before", "now", "ratio");
    for (int i = 0; i < ROWS; i++)
        if (wanted (arg, row[i].part))
            good = row_print (&row[i], seen[i], turns) && good;
    for (int side = 0; side < SIDES; side++) {
        good = good && !bench[side].bad;
        drive_close (&bench[side]);
        free (bench[side].sample);
        for (int i = 0; i < ROWS; i++) {
            free (seen[i][side].cpu);
            free (seen[i][side].daemon);
            free (seen[i][side].postgres);
            free (seen[i][side].per_s);
            free (seen[i][side].p99_ms);
        }
    }
    return good;
}
