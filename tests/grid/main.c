/* grid_sim: see grid.h.
 *
 *   grid_sim [SEEDS [FIRST [PROCESSES]]]
 *                                 worlds by seed; 300 from 1 unless said. One seed alone is traced.
 *   grid_sim --scenarios [NAME]   the rows of the failure table, each by its name */
#include "grid.h"

#include <malloc.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const sites[] = {"alpha", "beta", "gamma", "delta"};
static const char licences[] = "GRIDLICENSE[cad] COUNT=7"; /* GRID_LICENCES */
static const char *const metas[] = {"meta1", "meta2", "meta3"};

/* A job of a world, at its moment. */
struct plan {
    struct todo todo, cancel;
    const struct grid_shape *shape;
    uint32_t job;
};

static void cancel (void *arg)
{
    const struct plan *plan = arg;
    grid_cancel (plan->job);
}

static void submit (void *arg)
{
    struct plan *plan = arg;
    struct grid_ask ask = {.parts = 1};
    char list[GRID_PARTS_MAX][64];
    uint32_t count = plan->shape->sites;
    if (sim_chance (60))
        ask.parts = 2 + (uint32_t)sim_below (count > 2 ? 2 : 1);
    ask.walltime = (10 + (duration_us)sim_below (60)) * SEC;
    if (plan->shape->meta_lines && sim_chance (60)) /* a member of the group gives out 2 or 3 */
        ask.licences = plan->shape->group ? 1 : 1 + (uint32_t)sim_below (GRID_LICENCES / ask.parts);
    if (sim_chance (10))
        ask.not_after = (30 + (duration_us)sim_below (120)) * SEC;
    for (uint32_t p = 0; p < ask.parts; p++) {
        ask.tasks[p] = 1 + (uint32_t)sim_below (3);
        bool two = sim_chance (40);
        snprintf (list[p], sizeof list[p], "%s%s%s", sites[(p + sim_below (2)) % count],
                  two ? "," : "", two ? sites[(p + 2) % count] : "");
        if (sim_chance (50))
            ask.sites[p] = list[p];
    }
    plan->job = grid_submit (metas[sim_below (plan->shape->metas)], &ask);
    if (sim_chance (15))
        todo_set (&plan->cancel, sim.now + (time_us)sim_below (90 * SEC));
}

static void world (uint64_t seed)
{
    static struct plan plan[GRID_JOBS_MAX];
    static struct grid_shape shape;
    uint64_t chance = seed * UINT64_C (0x9E3779B97F4A7C15);
    shape = (struct grid_shape){.sites = 2 + (uint32_t)(chance >> 40) % 3,
                                .metas = 1 + (uint32_t)(chance >> 50) % 3,
                                .balance = ((chance >> 33) % 8 ? 100000 : 300) * 1000000LL};
    if ((chance >> 57) % 3 == 0)
        shape.meta_lines = licences;
    shape.group = shape.metas == 3 && (chance >> 31) % 2;
    for (uint32_t s = 0; s < shape.sites; s++)
        shape.nodes[s] = 1 + (uint32_t)(chance >> (20 + 3 * s)) % 4;
    grid_begin (seed, &shape);
    if (sim_chance (30)) /* clocks that were never set right */
        for (uint32_t i = 0; i < sim.machine_count; i++)
            sim.machine[i].wall_offset = (duration_us)sim_below (400 * SEC) - 200 * SEC;
    sim.overruns = true;
    duration_us faults = (60 + (duration_us)sim_below (120)) * SEC;
    faults_plan (faults);
    uint32_t jobs = 2 + (uint32_t)sim_below (7);
    for (uint32_t j = 0; j < jobs; j++) {
        plan[j] = (struct plan){.shape = &shape};
        plan[j].todo = (struct todo){.fn = submit, .arg = &plan[j]};
        plan[j].cancel = (struct todo){.fn = cancel, .arg = &plan[j]};
        todo_set (&plan[j].todo, sim.now + (time_us)sim_below (60 * SEC));
    }
    sim_run (faults + 45 * SEC); /* by then it has healed, and the last cut is mended */
    grid_finish ();
}

/* With AddressSanitizer: what was freed is used again soon, since touching fresh memory is most of what a
 * world costs; and mistakes with memory that was freed long ago are other tests' business. */
const char *__asan_default_options (void);
const char *__asan_default_options (void)
{
    return "quarantine_size_mb=8:thread_local_quarantine_size_kb=256";
}

/* Returns in each child with its share, and in the parent when all have ended: their worst status. */
static int divide (uint64_t processes, uint64_t *seeds, uint64_t *first)
{
    int worst = 0, status = 0;
    for (uint64_t i = 0; i < processes; i++) {
        uint64_t from = *seeds * i / processes, to = *seeds * (i + 1) / processes;
        pid_t child = fork ();
        if (child < 0)
            abort ();
        if (child == 0) {
            *first += from;
            *seeds = to - from;
            return -1;
        }
    }
    while (wait (&status) > 0)
        worst = !WIFEXITED (status) || WEXITSTATUS (status) > worst ? 1 : worst;
    return worst;
}

int main (int argc, char **argv)
{
    int rc = 0;
    struct timespec begun, now;
    mallopt (M_MMAP_THRESHOLD, 1 << 30); /* large blocks stay with us from world to world */
    mallopt (M_TRIM_THRESHOLD, INT32_MAX);
    if (argc > 1 && strcmp (argv[1], "--scenarios") == 0) {
        grid_open ();
        rc = scenarios_run (argc > 2 ? argv[2] : NULL);
        grid_close ();
        return rc;
    }
    uint64_t seeds = argc > 1 ? strtoull (argv[1], NULL, 10) : 300;
    uint64_t first = argc > 2 ? strtoull (argv[2], NULL, 10) : 1;
    uint64_t processes = argc > 3 ? strtoull (argv[3], NULL, 10) : 1;
    if (processes > 1 && (rc = divide (processes, &seeds, &first)) >= 0)
        return rc;
    rc = 0;
    grid_open ();
    sim.trace = seeds == 1;
    timespec_get (&begun, TIME_UTC);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        world (seed);
    timespec_get (&now, TIME_UTC);
    printf ("%" PRIu64 " worlds in %ld s: jobs %" PRIu64 " completed, %" PRIu64 " failed, %" PRIu64
            " cancelled, %" PRIu64 " refused; %" PRIu64 " launches (%" PRIu64
            " with licences), %" PRIu64 " crashes, %" PRIu64
            " durable steps, %" PRIu64 " messages, %" PRIu64 " events\n",
            seeds, (long)(now.tv_sec - begun.tv_sec), grid_count.completed, grid_count.failed,
            grid_count.cancelled, grid_count.refused, grid_count.launches, grid_count.licensed, grid_count.crashes,
            grid_count.syncs, grid_count.messages, grid_count.events);
    grid_close ();
    return rc;
}
