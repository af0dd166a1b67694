/* Replays: against the seconds of other simulators and of Maui (README of the shared traces), and
 * how time grows with jobs and processors. CPU seconds of one core, best of five.
 *
 * bench_sim                     both; the growth on the screen only
 * bench_sim quick               the rivals only
 * bench_sim growth DIR [LIMIT]  the growth only, as tables and pictures in DIR; a point is given LIMIT
 *                               seconds (120), and a curve ends at the first that needs more
 * bench_sim LOG RULE            one of them, once (for a profiler) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/growth/growth.h"
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

struct size {
    const struct rival *rule;
    uint64_t jobs;
    uint32_t procs;
};

static void one_size (const void *arg, double *values)
{
    const struct size *size = arg;
    struct engine_summary summary;
    struct trace trace = trace_generate (size->jobs, size->procs, 0.9, 1);

    values[0] = replay (&trace, size->rule, 1, &summary);
    trace_free (&trace);
}

static void one_curve (const struct rival *r, bool by_jobs, unsigned limit_s, struct growth *g)
{
    static const uint64_t jobs[] = {5000, 20000, 100000, 1000000};
    static const uint32_t procs[] = {100, 1000, 10000, 100000};

    for (int i = 0; i < 4; i++) {
        struct size size = {r, by_jobs ? jobs[i] : 20000, by_jobs ? 1000 : procs[i]};
        double took;
        if (!growth_measure (one_size, &size, &took, 1, limit_s)) {
            printf ("%-14s %10llu %10u   stopped after %u s\n", r->what,
                    (unsigned long long)size.jobs, size.procs, limit_s);
            return;
        }
        printf ("%-14s %10llu %10u %10.3f %14.2f\n", r->what, (unsigned long long)size.jobs,
                size.procs, took, took * 1e6 / (double)size.jobs);
        fflush (stdout);
        growth_point (g, r->what, by_jobs ? (double)size.jobs : size.procs,
                      took * 1e6 / (double)size.jobs);
    }
}

/* dir: NULL: no files. */
static void all_growth (const char *dir, unsigned limit_s)
{
    static const int rule[] = {0, 8, 4};
    struct growth jobs = {.name = "sim-jobs",
                          .title = "Replay: 1,000 processors, load 0.9",
                          .x_label = "jobs in the log",
                          .y_label = "microseconds per job",
                          .x_name = "jobs",
                          .y_name = "us_per_job"};
    struct growth procs = {.name = "sim-procs",
                           .title = "Replay: 20,000 jobs, load 0.9",
                           .x_label = "processors",
                           .y_label = "microseconds per job",
                           .x_name = "procs",
                           .y_name = "us_per_job"};

    printf ("%-14s %10s %10s %10s %14s\n", "rule", "jobs", "procs", "ours s", "us per job");
    for (int i = 0; i < 3; i++) {
        one_curve (&rivals[rule[i]], true, limit_s, &jobs);
        one_curve (&rivals[rule[i]], false, limit_s, &procs);
    }
    if (dir == NULL)
        return;
    growth_write (&jobs, dir);
    growth_write (&procs, dir);
}

int main (int argc, char **argv)
{
    if (argc > 2 && strcmp (argv[1], "growth") == 0) {
        all_growth (argv[2], argc > 3 ? (unsigned)strtoul (argv[3], NULL, 10) : 120);
        return 0;
    }
    against_rivals (argc > 2 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    if (argc == 1)
        all_growth (NULL, 120);
    return 0;
}
