/* machine: a program that starts, dies at a durable step, and starts again; and the daemons'
 * skeleton (proto/rpc/daemon.h) for those that are written against it. */
#include "sim.h"

#include <sys/stat.h>

#include "proto/rpc/daemon.h"

struct machine *machine_find (const char *name)
{
    for (uint32_t i = 0; i < sim.machine_count; i++)
        if (strcmp (sim.machine[i].name, name) == 0)
            return &sim.machine[i];
    return NULL;
}

uint32_t machine_index (const struct machine *machine)
{
    return (uint32_t)(machine - sim.machine);
}

bool machine_up (const struct machine *machine)
{
    return machine->self && !machine->dying;
}

time_us machine_wall (const struct machine *machine)
{
    return sim.epoch + sim.now + machine->wall_offset;
}

time_us machine_true (const struct machine *machine, time_us wall)
{
    return wall - sim.epoch - machine->wall_offset;
}

static void restart (void *arg)
{
    struct machine *machine = arg;
    machine_start (machine);
}

struct machine *machine_add (const char *name, enum principal_kind kind,
                             const struct program *program, struct tlsid *id)
{
    CHECK (sim.machine_count < MACHINES_MAX, "too many machines");
    struct machine *machine = &sim.machine[sim.machine_count++];
    memset (machine, 0, sizeof *machine);
    snprintf (machine->name, sizeof machine->name, "%s", name);
    machine->kind = kind;
    machine->program = program;
    machine->id = id;
    machine->mono_base = (duration_us)sim_below (1000) * 3600 * SEC;
    machine->base = simbase_create (machine);
    machine->restart = (struct todo){.fn = restart, .arg = machine};
    return machine;
}

void machine_start (struct machine *machine)
{
    struct machine *before = sim.self;
    struct err err = {0};
    if (machine->self || !machine->program)
        return;
    todo_drop (&machine->restart);
    machine->life++;
    machine->starts++;
    machine->started = sim.now;
    machine->dying = false;
    machine->service_count = 0;
    machine->gate = NULL;
    sim.self = machine;
    machine->ran = true;
    machine->self = machine->program->start (machine, &err);
    sim.self = before;
    TRACE ("%-6s starts (%" PRIu64 "): %s", machine->name, machine->life,
           machine->self ? "up" : err.text);
    if (!machine->self) { /* it died in it, or its disk is full: as systemd does */
        bool died = machine->dying;
        machine->dying = false;
        machine->crash_after = 0;
        disk_crash (machine);
        CHECK (died || machine->disk_full, "%s does not start: %s", machine->name, err.text);
        if (!machine->held_down)
            todo_set (&machine->restart, sim.now + SEC + (time_us)sim_below (5 * SEC));
    }
}

static void bury (struct machine *machine)
{
    struct machine *before = sim.self;
    TRACE ("%-6s dies", machine->name);
    machine->dying = true;
    machine->crashes++;
    machine->crash_after = 0;
    sim.self = machine;
    machine->program->stop (machine, machine->self);
    sim.self = before;
    machine->self = NULL;
    machine->dying = false;
    net_calls_drop (machine);
    disk_crash (machine);
}

void machines_bury (void)
{
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        struct machine *machine = &sim.machine[i];
        if (!machine->dying || !machine->self)
            continue;
        bury (machine);
        if (!machine->held_down)
            todo_set (&machine->restart, sim.now + SEC / 2 + (time_us)sim_below (30 * SEC));
    }
}

void machine_kill (struct machine *machine, duration_us after)
{
    todo_drop (&machine->restart);
    if (machine->self)
        bury (machine);
    if (after >= 0)
        todo_set (&machine->restart, sim.now + after);
}

bool machine_lives_through_step (struct machine *machine, bool after)
{
    if (machine->dying)
        return false;
    if (after == machine->crash_late && machine->crash_after && --machine->crash_after == 0) {
        TRACE ("%-6s is killed %s a durable step", machine->name, after ? "after" : "before");
        coverage_count ("death %s %s a durable step of %s%s", principal_kind_name (machine->kind),
                        after ? "after" : "before", sim.method ? sim.method : "its own",
                        sim.method && sim.answer ? "'s answer" : "");
        machine->dying = true;
    }
    machine->syncs += after;
    return !machine->dying;
}

/* ---- proto/rpc/daemon.h */

struct daemon {
    struct machine machine; /* a daemon is its machine */
};

static struct machine *of (struct daemon *daemon)
{
    return (struct machine *)(void *)daemon;
}

int daemon_takes_work (struct daemon *daemon, struct err *err)
{
    (void)daemon;
    (void)err;
    return 0; /* these disks are never full */
}

struct event_base *daemon_base (struct daemon *daemon)
{
    return of (daemon)->base;
}

struct log *daemon_log (struct daemon *daemon)
{
    (void)daemon;
    return NULL;
}

struct tlsid *daemon_tlsid (struct daemon *daemon)
{
    return of (daemon)->id;
}

struct rpcserver *daemon_server (struct daemon *daemon)
{
    return (struct rpcserver *)daemon;
}

const char *daemon_grid (const struct daemon *daemon)
{
    (void)daemon;
    return "test";
}

const char *daemon_name (const struct daemon *daemon)
{
    return daemon->machine.name;
}

const char *daemon_state_dir (const struct daemon *daemon)
{
    return daemon->machine.dir;
}

const struct conf *daemon_conf (const struct daemon *daemon)
{
    (void)daemon;
    abort (); /* showconfig is no call of a simulated grid */
}

int daemon_change (struct daemon *daemon, const char *lines, struct err *err)
{
    (void)daemon;
    (void)lines;
    return err_set (err, ERR_UNSUPPORTED, "a simulated daemon keeps its configuration");
}

/* It would end with an exit code and be started again. */
void daemon_stop (struct daemon *daemon, const struct err *why)
{
    TRACE ("%-6s stops: %s", of (daemon)->name, why ? why->text : "asked to");
    of (daemon)->dying = true;
}

void daemon_recycle (struct daemon *daemon)
{
    of (daemon)->dying = true;
}
