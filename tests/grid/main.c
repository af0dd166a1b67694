/* grid_sim: see grid.h.
 *
 *   grid_sim [SEEDS [FIRST [PROCESSES]]]
 *                                 worlds by seed; 300 from 1 in one process unless said (0: a process
 *                                 for each processor). One seed alone is traced.
 *     --groups                    in each world three or five metaschedulers decide as a group
 *     --coverage                  how often they came to what
 *     --reach FILE                fails unless they came to each of its rows
 *   grid_sim --scenarios [NAME]   the rows of the failure table, each by its name */
#include "grid.h"

#include "workers.h"

#include <malloc.h>
#include <time.h>
#include <unistd.h>

static const char *const sites[] = {"alpha", "beta", "gamma", "delta"};
/* Fewer tries than usual: where clocks are wrong for good each goes as the one before. */
#define TRIES "ATTEMPTSMAX 6\n"
static const char licences[] = TRIES "GRIDLICENSE[cad] COUNT=7"; /* GRID_LICENCES */
static const char *const metas[] = {"meta1", "meta2", "meta3", "meta4", "meta5"};

/* A job of a world, at its moment. */
struct plan {
    struct todo todo, cancel, change;
    bool submitted;
    const struct grid_shape *shape;
    uint32_t job;
    bool reserve; /* where it has several parts: a co-reservation */
    bool array;   /* two or three of it, in half of the cases one at a time */
};

static void cancel (void *arg)
{
    const struct plan *plan = arg;
    grid_cancel (plan->job);
}

/* A co-reservation is to be longer, or shorter. */
static void change (void *arg)
{
    const struct plan *plan = arg;
    if (grid_id (plan->job)[0])
        grid_change (plan->job, (4 + (duration_us)sim_below (60)) * SEC);
}

static void submit (void *arg)
{
    struct plan *plan = arg;
    struct grid_ask ask = {.parts = 1};
    char list[GRID_PARTS_MAX][64];
    uint32_t count = plan->shape->sites;
    if (sim_chance (60))
        ask.parts = 2 + (uint32_t)sim_below (count > 2 ? 2 : 1);
    ask.walltime = (8 + (duration_us)sim_below (32)) * SEC;
    if (plan->shape->meta_lines == licences &&
        sim_chance (60)) /* a member of the group gives out 2 or 3 */
        ask.licences = plan->shape->group ? 1 : 1 + (uint32_t)sim_below (GRID_LICENCES / ask.parts);
    if (sim_chance (10))
        ask.not_after = (20 + (duration_us)sim_below (80)) * SEC;
    for (uint32_t p = 0; p < ask.parts; p++) {
        ask.tasks[p] = 1 + (uint32_t)sim_below (3);
        bool two = sim_chance (40);
        snprintf (list[p], sizeof list[p], "%s%s%s", sites[(p + sim_below (2)) % count],
                  two ? "," : "", two ? sites[(p + 2) % count] : "");
        if (sim_chance (50))
            ask.sites[p] = list[p];
    }
    plan->submitted = true;
    ask.reserve = ask.parts > 1 && !ask.licences && plan->reserve;
    if (plan->array) /* of co-reservations: a standing one */
        ask.array = 2 + ask.tasks[0] % 2;
    ask.limit = ask.array && !ask.licences ? ask.tasks[0] % 2 : 0;
    plan->job = grid_submit (metas[sim_below (plan->shape->metas)], &ask);
    if (ask.reserve && !ask.array)
        todo_set (&plan->change, sim.now + (time_us)sim_below (40 * SEC));
    if (sim_chance (15))
        todo_set (&plan->cancel, sim.now + (time_us)sim_below (60 * SEC));
}

static struct plan plan[GRID_JOBS_MAX];
static uint32_t jobs;

static bool all_over (void *arg)
{
    (void)arg;
    for (uint32_t j = 0; j < jobs; j++)
        if (!plan[j].submitted || !grid_job_over (plan[j].job))
            return false;
    return true;
}

static bool groups_only;

static void world (uint64_t seed)
{
    static struct grid_shape shape;
    uint64_t chance = seed * UINT64_C (0x9E3779B97F4A7C15);
    shape = (struct grid_shape){.sites = 2 + (uint32_t)(chance >> 40) % 3,
                                .metas = 1 + (uint32_t)(chance >> 50) % 3,
                                .balance = ((chance >> 33) % 8 ? 100000 : 300) * 1000000LL};
    shape.meta_lines = (chance >> 57) % 3 == 0 ? licences : TRIES;
    if (groups_only)
        shape.metas = 3;
    shape.group = shape.metas == 3 && ((chance >> 31) % 2 || groups_only);
    if (shape.group && (chance >> 27) % 5 == 0)
        shape.metas = 5;
    for (uint32_t s = 0; s < shape.sites; s++)
        shape.nodes[s] = 1 + (uint32_t)(chance >> (20 + 3 * s)) % 4;
    grid_begin (seed, &shape);
    if (sim_chance (30)) /* clocks that were never set right */
        for (uint32_t i = 0; i < sim.machine_count; i++)
            sim.machine[i].wall_offset = (duration_us)sim_below (240 * SEC) - 120 * SEC;
    sim.overruns = true;
    duration_us faults = (45 + (duration_us)sim_below (60)) * SEC;
    faults_plan (faults);
    jobs = 2 + (uint32_t)sim_below (7);
    for (uint32_t j = 0; j < jobs; j++) {
        plan[j] = (struct plan){.shape = &shape,
                                .reserve = (chance >> 13) % 8 == j,
                                .array = (chance >> 11) % 4 == j / 2};
        plan[j].todo = (struct todo){.fn = submit, .arg = &plan[j]};
        plan[j].cancel = (struct todo){.fn = cancel, .arg = &plan[j]};
        plan[j].change = (struct todo){.fn = change, .arg = &plan[j]};
        todo_set (&plan[j].todo, sim.now + (time_us)sim_below (40 * SEC));
    }
    grid_until (all_over, NULL,
                faults + 30 * SEC); /* by then it has healed, and the last cut is mended */
    faults_end ();
    oracle_probe ();
    grid_finish ();
}

struct options {
    uint64_t seeds, first, processes;
    bool coverage;
    const char *reach;
};

static void usage (void)
{
    fprintf (stderr,
             "usage: grid_sim [--groups] [--coverage] [--reach FILE] [SEEDS [FIRST [PROCESSES]]]\n"
             "       grid_sim --scenarios [NAME]\n");
    exit (2);
}

/* With AddressSanitizer: what was freed is used again soon, since touching fresh memory is most of what a
 * world costs; and mistakes with memory that was freed long ago are other tests' business. */
const char *__asan_default_options (void);
const char *__asan_default_options (void)
{
    return "quarantine_size_mb=8:thread_local_quarantine_size_kb=256";
}

static uint64_t number (const char *text)
{
    char *end;
    uint64_t value = strtoull (text, &end, 10);
    if (!*text || *end) {
        fprintf (stderr, "grid_sim: %s is no number\n", text);
        exit (2);
    }
    return value;
}

static void summary (uint64_t worlds, long seconds)
{
    printf ("%" PRIu64 " worlds in %ld s: jobs %" PRIu64 " completed, %" PRIu64 " failed, %" PRIu64
            " cancelled, %" PRIu64 " refused; %" PRIu64 " launches (%" PRIu64
            " with licences), %" PRIu64 " crashes, %" PRIu64 " durable steps, %" PRIu64
            " messages, %" PRIu64 " events\n",
            worlds, seconds, coverage_of ("total jobs GRID_COMPLETED"),
            coverage_of ("total jobs GRID_FAILED"), coverage_of ("total jobs GRID_CANCELLED"),
            coverage_of ("total jobs GRID_REFUSED"), coverage_of ("total launches"),
            coverage_of ("total launches with licences"), coverage_of ("total crashes"),
            coverage_of ("total durable steps"), coverage_of ("total messages"),
            coverage_of ("total events"));
}

/* 0: all is well. */
static int worlds_run (const struct options *o)
{
    struct timespec begun, now;
    long processors = sysconf (_SC_NPROCESSORS_ONLN);
    uint32_t processes =
        (uint32_t)(o->processes ? o->processes : (uint64_t)(processors > 0 ? processors : 1));
    uint64_t failures = 0;
    if (processes > WORKERS_MAX)
        processes = WORKERS_MAX;
    coverage_open (processes);
    timespec_get (&begun, TIME_UTC);
    if (o->seeds == 1) {
        sim.trace = true;
        world (o->first);
    } else {
        failures = workers_run (o->first, o->seeds, processes, grid_worker, world, grid_close);
    }
    timespec_get (&now, TIME_UTC);
    if (o->coverage)
        coverage_print (o->seeds);
    bool reached = !o->reach || coverage_reaches (o->reach);
    summary (o->seeds, (long)(now.tv_sec - begun.tv_sec));
    coverage_close ();
    return failures || !reached;
}

int main (int argc, char **argv)
{
    struct options o = {.seeds = 300, .first = 1, .processes = 1};
    uint64_t *const place[] = {&o.seeds, &o.first, &o.processes};
    size_t given = 0;
    mallopt (M_MMAP_THRESHOLD, 1 << 30); /* large blocks stay with us from world to world */
    mallopt (M_TRIM_THRESHOLD, INT32_MAX);
    grid_open ();
    if (argc > 1 && strcmp (argv[1], "--scenarios") == 0) {
        int rc = scenarios_run (argc > 2 ? argv[2] : NULL);
        grid_close ();
        return rc;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp (argv[i], "--groups") == 0)
            groups_only = true;
        else if (strcmp (argv[i], "--coverage") == 0)
            o.coverage = true;
        else if (strcmp (argv[i], "--reach") == 0 && i + 1 < argc)
            o.reach = argv[++i];
        else if (argv[i][0] == '-' || given == sizeof place / sizeof *place)
            usage ();
        else
            *place[given++] = number (argv[i]);
    }
    int rc = worlds_run (&o);
    grid_close ();
    return rc;
}
