/* Replays: against the seconds of other simulators and of Maui (README of the shared traces), and
 * how time grows with jobs and processors. CPU seconds of one core, best of five.
 *
 * bench_sim            both
 * bench_sim quick      the rivals only
 * bench_sim LOG RULE   one of them, once (for a profiler) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/prop/local/trace.h"

struct rival {
    const char *log;
    uint64_t first;
    const char *what;
    enum backfill_policy backfill;
    enum reservation_binding binding;
    uint32_t depth;
    double seconds; /* theirs */
    double floor;   /* how many times faster we must be */
};

enum { DEEP = 1000000, TIMES = 5 };

static const struct rival rivals[] = {
    {"KTH-SP2", 0, "EASY", BACKFILL_FIRSTFIT, BINDING_LATE, 1, 3.9, 50},
    {"CTC-SP2-first20000", 0, "EASY", BACKFILL_FIRSTFIT, BINDING_LATE, 1, 4.5, 50},
    {"HPC2N-first20000", 0, "EASY", BACKFILL_FIRSTFIT, BINDING_LATE, 1, 2.2, 50},
    {"SDSC-BLUE-first5000", 0, "EASY", BACKFILL_FIRSTFIT, BINDING_LATE, 1, 0.7, 50},
    {"KTH-SP2", 0, "conservative", BACKFILL_FIRSTFIT, BINDING_LATE, DEEP, 10.9, 20},
    {"CTC-SP2-first20000", 0, "conservative", BACKFILL_FIRSTFIT, BINDING_LATE, DEEP, 33.9, 20},
    {"HPC2N-first20000", 0, "conservative", BACKFILL_FIRSTFIT, BINDING_LATE, DEEP, 7.2, 20},
    {"SDSC-BLUE-first5000", 0, "conservative", BACKFILL_FIRSTFIT, BINDING_LATE, DEEP, 3.1, 20},
    {"KTH-SP2", 20000, "Maui FIRSTFIT", BACKFILL_FIRSTFIT, BINDING_EARLY, 1, 17, 200},
    {"KTH-SP2", 20000, "Maui BESTFIT", BACKFILL_BESTFIT, BINDING_EARLY, 1, 18, 200},
    {"KTH-SP2", 5000, "Maui depth 4", BACKFILL_FIRSTFIT, BINDING_EARLY, 4, 11, 200},
    {"CTC-SP2-first20000", 0, "Maui FIRSTFIT", BACKFILL_FIRSTFIT, BINDING_EARLY, 1, 103, 200},
    {"CTC-SP2-first20000", 0, "Maui BESTFIT", BACKFILL_BESTFIT, BINDING_EARLY, 1, 93, 200},
};

static double seconds (void)
{
    struct timespec t;

    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double replay (const struct trace *trace, const struct rival *r, int times,
                      struct engine_summary *summary)
{
    struct cred_names names;
    struct err err = {0};
    struct policy *policy;
    double best = 1e9;

    cred_names_init (&names);
    policy = trace_policy (&names, r->backfill, r->binding, r->depth);
    if (policy_seal (policy, &err) != 0) {
        fprintf (stderr, "%s\n", err.text);
        exit (1);
    }
    for (int i = 0; i < times; i++) {
        double begin = seconds ();
        free (trace_run (trace, policy, false, summary));
        double took = seconds () - begin;
        best = took < best ? took : best;
    }
    policy_destroy (policy);
    cred_names_free (&names);
    return best;
}

/* log, rule: NULL: all of them. */
static void against_rivals (const char *log, const char *rule)
{
    printf ("%-22s %-14s %8s %10s %10s %8s %8s\n", "log", "rule", "jobs", "theirs s", "ours s",
            "ratio", "floor");
    for (size_t i = 0; i < sizeof rivals / sizeof *rivals; i++) {
        const struct rival *r = &rivals[i];
        struct engine_summary summary;
        struct trace trace;
        char name[256];
        const char *path;
        double took;
        if (log && (strcmp (log, r->log) != 0 || strcmp (rule, r->what) != 0))
            continue;
        snprintf (name, sizeof name, "traces/%s.swf.gz", r->log);
        path = trace_shared (name);
        if (path == NULL) {
            printf ("%s is not here: skipped\n", name);
            continue;
        }
        trace = trace_load (path, r->first);
        took = replay (&trace, r, log ? 1 : TIMES, &summary);
        printf ("%-22s %-14s %8llu %10.1f %10.4f %8.0f %8.0f%s\n", r->log, r->what,
                (unsigned long long)trace.count, r->seconds, took, r->seconds / took, r->floor,
                r->seconds / took < r->floor ? "  MISSED" : "");
        trace_free (&trace);
    }
}

static void growth (const struct rival *r)
{
    static const uint64_t jobs[] = {5000, 20000, 100000, 1000000};
    static const uint32_t procs[] = {100, 1000, 10000, 100000};
    struct engine_summary summary;

    printf ("%-14s %10s %10s %10s %14s\n", r->what, "jobs", "procs", "ours s", "us per job");
    for (int i = 0; i < 8; i++) {
        uint64_t n = i < 4 ? jobs[i] : 20000;
        uint32_t p = i < 4 ? 1000 : procs[i - 4];
        struct trace trace = trace_generate (n, p, 0.9, 1);
        double took = replay (&trace, r, 1, &summary);
        printf ("%-14s %10llu %10u %10.3f %14.2f\n", "", (unsigned long long)n, p, took,
                took * 1e6 / (double)n);
        fflush (stdout);
        trace_free (&trace);
    }
}

int main (int argc, char **argv)
{
    against_rivals (argc > 2 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    if (argc > 2)
        return 0;
    if (argc > 1 && strcmp (argv[1], "quick") == 0)
        return 0;
    growth (&rivals[0]);
    growth (&rivals[8]);
    growth (&rivals[4]);
    return 0;
}
