#include "grid.h"

enum fault { CRASH_STEP, CRASH_NOW, CUT, DISK_FULL, CLOCK, NODE_LOST, OUTAGE, FAULTS };

static struct {
    duration_us until;
    uint32_t kinds; /* bits of enum fault that this seed knows */
    struct todo next;
} f;

struct mending {
    struct machine *machine;
    uint32_t a, b;
};

static void mend_cut (void *arg)
{
    struct mending *m = arg;
    sim.cut[m->a][m->b] = sim.cut[m->b][m->a] = false;
    free (m);
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
    struct mending *m = malloc (sizeof *m);
    if (!m)
        abort ();
    *m = (struct mending){NULL, machine_index (victim (false)), machine_index (victim (false))};
    sim.cut[m->a][m->b] = true;
    if (sim_chance (70)) /* else one way only */
        sim.cut[m->b][m->a] = true;
    TRACE ("%-6s and %s are cut off", sim.machine[m->a].name, sim.machine[m->b].name);
    todo_once (NULL, sim.now + for_long (40 * SEC), mend_cut, m);
}

static void strike (enum fault fault)
{
    struct machine *machine = victim (fault == CRASH_STEP || fault == DISK_FULL);
    switch (fault) {
    case CRASH_STEP:
        machine->crash_after = 1 + (uint32_t)sim_below (8);
        machine->crash_late = sim_chance (50);
        break;
    case CRASH_NOW:
        if (machine->self)
            machine_kill (machine, for_long (30 * SEC));
        break;
    case CUT:
        cut ();
        break;
    case DISK_FULL:
        TRACE ("%-6s disk is full", machine->name);
        machine->disk_full = true;
        todo_once (NULL, sim.now + for_long (20 * SEC), mend_disk, machine);
        break;
    case CLOCK:
        grid_clock_step (machine, (duration_us)sim_below (600 * SEC) - 300 * SEC);
        break;
    case NODE_LOST:
        if (machine->kind == PRINCIPAL_SITE)
            runner_lose_node (machine);
        break;
    default: /* down for minutes */
        if (machine->self)
            machine_kill (machine, 60 * SEC + for_long (120 * SEC));
        break;
    }
}

static void next (void *arg)
{
    (void)arg;
    if (sim.now >= f.until) {
        grid_heal ();
        return;
    }
    enum fault fault = (enum fault)sim_below (FAULTS);
    if (f.kinds >> fault & 1)
        strike (fault);
    todo_set (&f.next, sim.now + for_long (10 * SEC));
}

void faults_plan (duration_us until)
{
    f.until = sim.now + until;
    f.kinds = sim_chance (50) ? (1u << FAULTS) - 1 : (uint32_t)sim_below (1u << FAULTS);
    f.next = (struct todo){.fn = next};
    sim.loss_percent = sim_chance (30) ? 0 : (uint32_t)sim_below (20);
    sim.twice_percent = (uint32_t)sim_below (20);
    sim.slow_percent = sim_chance (50) ? 0 : (uint32_t)sim_below (10);
    todo_set (&f.next, sim.now + for_long (5 * SEC));
}
