#include "grid.h"

enum fault { CRASH_STEP, CRASH_NOW, CUT, DISK_FULL, CLOCK, NODE_LOST, OUTAGE, FAULTS };

static struct {
    duration_us until;
    uint32_t kinds;                    /* bits of enum fault that this seed knows */
    duration_us stepped[MACHINES_MAX]; /* by so much each clock */
    struct todo next;
} f;

struct pair {
    uint32_t a, b;
};
static struct pair pairs[MACHINES_MAX * MACHINES_MAX];

static void mend_cut (void *arg)
{
    const struct pair *m = arg;
    sim.cut[m->a][m->b] = sim.cut[m->b][m->a] = false;
}

static void mend_disk (void *arg)
{
    ((struct machine *)arg)->disk_full = false;
}

static struct machine *victim (bool with_disk)
{
    for (;;) {
        struct machine *machine = &sim.machine[sim_below (sim.machine_count)];
        if (machine->program && (!with_disk || machine->kind != PRINCIPAL_BANK))
            return machine;
    }
}

static duration_us for_long (duration_us most)
{
    return SEC + (duration_us)sim_below ((uint64_t)most);
}

static void cut (void)
{
    uint32_t a = machine_index (victim (false)), b = machine_index (victim (false));
    struct pair *m = &pairs[a * MACHINES_MAX + b];
    *m = (struct pair){a, b};
    sim.cut[m->a][m->b] = true;
    if (sim_chance (70)) /* else one way only */
        sim.cut[m->b][m->a] = true;
    TRACE ("%-6s and %s are cut off", sim.machine[m->a].name, sim.machine[m->b].name);
    todo_once (NULL, sim.now + for_long (25 * SEC), mend_cut, m);
}

static void clock_step (struct machine *machine, duration_us by)
{
    f.stepped[machine_index (machine)] += by;
    grid_clock_step (machine, by);
}

static void strike (enum fault fault)
{
    static const char *const name[FAULTS] = {
        "crash at a durable step", "crash", "cut", "full disk", "clock", "node lost", "outage"};
    struct machine *machine = victim (fault == CRASH_STEP || fault == DISK_FULL);
    coverage_count ("fault %s", name[fault]);
    switch (fault) {
    case CRASH_STEP:
        machine->crash_after = 1 + (uint32_t)sim_below (8);
        machine->crash_late = sim_chance (50);
        break;
    case CRASH_NOW:
        if (machine->self)
            machine_kill (machine, for_long (20 * SEC));
        break;
    case CUT:
        cut ();
        break;
    case DISK_FULL:
        TRACE ("%-6s disk is full", machine->name);
        machine->disk_full = true;
        todo_once (NULL, sim.now + for_long (15 * SEC), mend_disk, machine);
        break;
    case CLOCK:
        clock_step (machine, (duration_us)sim_below (300 * SEC) - 150 * SEC);
        break;
    case NODE_LOST:
        if (machine->kind == PRINCIPAL_SITE)
            runner_lose_node (machine);
        break;
    default: /* down for minutes */
        if (machine->self)
            machine_kill (machine, 45 * SEC + for_long (60 * SEC));
        break;
    }
}

void faults_end (void)
{
    todo_drop (&f.next);
    for (uint32_t i = 0; i < sim.machine_count; i++)
        if (f.stepped[i])
            clock_step (&sim.machine[i], -f.stepped[i]);
    grid_heal ();
}

static void next (void *arg)
{
    (void)arg;
    if (sim.now >= f.until) {
        faults_end ();
        return;
    }
    enum fault fault = (enum fault)sim_below (FAULTS);
    if (f.kinds >> fault & 1)
        strike (fault);
    todo_set (&f.next, sim.now + for_long (5 * SEC));
}

void faults_plan (duration_us until)
{
    memset (&f, 0, sizeof f);
    f.until = sim.now + until;
    f.kinds = sim_chance (50) ? (1u << FAULTS) - 1 : (uint32_t)sim_below (1u << FAULTS);
    f.next = (struct todo){.fn = next};
    sim.loss_percent = sim_chance (30) ? 0 : (uint32_t)sim_below (20);
    sim.twice_percent = (uint32_t)sim_below (20);
    sim.slow_percent = sim_chance (50) ? 0 : (uint32_t)sim_below (10);
    todo_set (&f.next, sim.now + for_long (5 * SEC));
}
