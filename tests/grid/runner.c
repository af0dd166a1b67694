/* runner: local/rm's interface over processes that are not there. What it was given outlives the
 * daemon, as the supervisors of real processes do: a job is launched, runs and ends whether anybody
 * looks or not, and whoever adopts it hears what happened in between. */
#include "sim.h"

#include <uthash.h>

#include "grid.h"
#include "local/rm/embedded/rm_embedded.h"

enum { HOSTS_MAX = 64 };

struct run {
    struct machine *site;
    char job_id[96];
    uint32_t incarnation;
    char host[HOSTS_MAX][24];
    uint32_t host_procs[HOSTS_MAX], host_count;
    uint32_t procs;
    duration_us walltime;
    time_us launch;   /* by the site's wall clock */
    struct todo next; /* its launch, then its end */
    struct rm_status status;
    bool watched;  /* by the program that is up now */
    uint64_t life; /* of that program */
    struct run *next_run;
};

struct runner {
    struct machine *site;
    rm_event_fn on_event;
    void *arg;
};

struct told {
    struct run *run;
    enum rm_event_kind kind;
};

static struct run *runs;
static struct runner *runner_of[MACHINES_MAX];
uint64_t runner_started, runner_ended;

static struct run *find (const struct machine *site, const char *job_id, uint32_t incarnation)
{
    for (struct run *run = runs; run; run = run->next_run)
        if (run->site == site && run->incarnation == incarnation &&
            strcmp (run->job_id, job_id) == 0)
            return run;
    return NULL;
}

static void tell (void *arg)
{
    struct told told = *(struct told *)arg;
    struct runner *runner = runner_of[machine_index (told.run->site)];
    free (arg);
    if (!runner || !told.run->watched)
        return;
    struct rm_status status = told.run->status;
    struct rm_event event = {.kind = told.kind,
                             .job_id = told.run->job_id,
                             .incarnation = told.run->incarnation,
                             .status = &status};
    if (told.kind == RM_EVENT_STARTED)
        status.ended = false;
    struct machine *before = sim.self;
    sim.self = told.run->site;
    sim.self->ran = true;
    runner->on_event (runner->arg, &event);
    sim.self = before;
}

static void tell_soon (struct run *run, enum rm_event_kind kind)
{
    struct told *told;
    if (!run->watched ||
        run->life != run->site->life) /* while it starts, too; not once it is dead: todo_once */
        return;
    told = malloc (sizeof *told);
    if (!told)
        abort ();
    *told = (struct told){run, kind};
    todo_once (run->site, sim.now + MS, tell, told);
}

static void end_as (struct run *run, enum rm_end end, int exit_code)
{
    if (run->status.ended)
        return;
    todo_drop (&run->next);
    run->status.ended = true;
    run->status.end = end;
    run->status.exit_code = exit_code;
    run->status.end_at = machine_wall (run->site);
    if (run->status.started && run->status.end_at < run->status.start)
        run->status.end_at = run->status.start; /* its clock was set back */
    if (run->status.started)
        runner_ended++;
    grid_on_end (run->site, run->job_id, run->status.started, end == RM_END_EXITED);
    tell_soon (run, RM_EVENT_ENDED);
}

static void next (void *arg)
{
    struct run *run = arg;
    if (run->status.started) {
        bool limit = sim.now >= run->next.at && run->status.exit_code == -1;
        end_as (run, limit ? RM_END_TIMEOUT : RM_END_EXITED, 0);
        return;
    }
    run->status.started = true;
    run->status.start = machine_wall (run->site);
    runner_started++;
    TRACE ("%-6s launches %s", run->site->name, run->job_id);
    grid_on_launch (run->site, run->job_id);
    duration_us length =
        SEC + (duration_us)sim_below ((uint64_t)(sim.overruns ? run->walltime + run->walltime / 8
                                                              : run->walltime - SEC));
    length = length < sim.shortest ? sim.shortest : length;
    run->status.exit_code = length > run->walltime ? -1 : 0;
    todo_set (&run->next, sim.now + (length < run->walltime ? length : run->walltime));
    tell_soon (run, RM_EVENT_STARTED);
}

/* ---- operations */

static int start (void *self, const struct rm_job *job, struct err *err)
{
    struct runner *runner = self;
    struct machine *site = runner->site;
    if (find (site, job->job_id, job->incarnation))
        return err_set (err, ERR_EXISTS, "%s was started before", job->job_id);
    struct run *run = calloc (1, sizeof *run);
    uint32_t tasks = 0;
    if (!run || job->host_count > HOSTS_MAX)
        abort ();
    run->site = site;
    snprintf (run->job_id, sizeof run->job_id, "%s", job->job_id);
    run->incarnation = job->incarnation;
    run->procs = job->procs;
    run->walltime = job->walltime;
    run->host_count = job->host_count;
    for (uint32_t i = 0; i < job->host_count; i++)
        tasks += job->host_tasks[i];
    for (uint32_t i = 0; i < job->host_count; i++) {
        snprintf (run->host[i], sizeof run->host[i], "%s", job->host[i]);
        run->host_procs[i] = job->host_tasks[i] * (job->procs / tasks);
    }
    run->watched = true;
    run->life = site->life;
    run->next = (struct todo){.fn = next, .arg = run};
    run->next_run = runs;
    runs = run;
    run->launch = job->start;
    time_us at = machine_true (site, job->start);
    grid_on_handover (site, runner->arg, job->job_id);
    TRACE ("%-6s runner takes %s", site->name, run->job_id);
    todo_set (&run->next, at > sim.now ? at : sim.now + MS);
    return 0;
}

static int adopt (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                  struct err *err)
{
    struct runner *runner = self;
    struct run *run = find (runner->site, job_id, incarnation);
    (void)mark;
    if (!run)
        return err_set (err, ERR_NOT_FOUND, "%s was never started", job_id);
    run->watched = true;
    run->life = runner->site->life;
    if (run->status.started)
        todo_once (runner->site, sim.now + MS, tell,
                   memcpy (malloc (sizeof (struct told)), &(struct told){run, RM_EVENT_STARTED},
                           sizeof (struct told)));
    if (run->status.ended)
        todo_once (runner->site, sim.now + 2 * MS, tell,
                   memcpy (malloc (sizeof (struct told)), &(struct told){run, RM_EVENT_ENDED},
                           sizeof (struct told)));
    return 0;
}

static int send_signal (void *self, const char *job_id, uint32_t incarnation, int signo,
                        struct err *err)
{
    struct runner *runner = self;
    struct run *run = find (runner->site, job_id, incarnation);
    if (!run || run->status.ended)
        return err_set (err, ERR_NOT_FOUND, "%s does not run", job_id);
    if (signo == 9 || signo == 15)
        end_as (run, RM_END_SIGNALLED, 128 + signo);
    return 0;
}

static int cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct runner *runner = self;
    struct run *run = find (runner->site, job_id, incarnation);
    if (!run)
        return err_set (err, ERR_NOT_FOUND, "%s was never started", job_id);
    end_as (run, RM_END_CANCELLED, 143);
    return 0;
}

static int output_open (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                        const char *stream, struct err *err)
{
    (void)mark;
    (void)self;
    (void)incarnation;
    (void)stream;
    err_set (err, ERR_NOT_FOUND, "%s is simulated", job_id);
    return -1;
}

static int poll (void *self, struct err *err)
{
    (void)self;
    (void)err;
    return 0;
}

static bool node_up (void *self, const char *name)
{
    (void)self;
    (void)name;
    return true;
}

static void destroy (void *self)
{
    struct runner *runner = self;
    for (struct run *run = runs; run; run = run->next_run)
        if (run->site == runner->site)
            run->watched = false;
    runner_of[machine_index (runner->site)] = NULL;
    free (runner);
}

static const struct rm_ops ops = {
    .type = "SIMULATED",
    .start = start,
    .adopt = adopt,
    .signal = send_signal,
    .cancel = cancel,
    .output_open = output_open,
    .poll = poll,
    .node_up = node_up,
    .destroy = destroy,
};

/* The one that svc.c opens. */
int rm_embedded_create (const struct rm_embedded_config *config, struct rm *out, struct err *err)
{
    struct runner *runner = calloc (1, sizeof *runner);
    (void)err;
    if (!runner)
        abort ();
    *runner = (struct runner){sim.self, config->on_event, config->arg};
    runner_of[machine_index (sim.self)] = runner;
    *out = (struct rm){&ops, runner};
    return 0;
}

/* ---- for the world */

void runner_begin (void)
{
    runs = NULL;
}

void runner_end (void)
{
    while (runs) {
        struct run *run = runs;
        runs = run->next_run;
        todo_drop (&run->next);
        free (run);
    }
}

uint32_t runner_live (const struct machine *machine)
{
    uint32_t live = 0;
    for (struct run *run = runs; run; run = run->next_run)
        live += run->site == machine && !run->status.ended;
    return live;
}

void runner_clock_stepped (struct machine *machine)
{
    for (struct run *run = runs; run; run = run->next_run)
        if (run->site == machine && !run->status.started && !run->status.ended)
            todo_set (&run->next, machine_true (machine, run->launch));
}

bool runner_lose_node (struct machine *machine)
{
    for (struct run *run = runs; run; run = run->next_run) {
        if (run->site != machine || !run->status.started || run->status.ended)
            continue;
        snprintf (run->status.text, sizeof run->status.text, "node %s was lost", run->host[0]);
        coverage_count ("node lost under a job");
        TRACE ("%-6s loses %s under %s", machine->name, run->host[0], run->job_id);
        end_as (run, RM_END_NODE_FAILURE, 0);
        return true;
    }
    return false;
}

/* (v), where it counts: what really runs at one moment on a node. */
void runner_check (void)
{
    for (struct run *a = runs; a; a = a->next_run) {
        if (!a->status.started || a->status.ended)
            continue;
        for (uint32_t h = 0; h < a->host_count; h++) {
            uint32_t used = 0;
            for (struct run *b = runs; b; b = b->next_run)
                for (uint32_t k = 0; b->status.started && !b->status.ended && k < b->host_count;
                     k++)
                    if (b->site == a->site && strcmp (b->host[k], a->host[h]) == 0)
                        used += b->host_procs[k];
            CHECK (used <= GRID_NODE_PROCS,
                   "(v) node %s of %s runs %u processors at once, %s among them", a->host[h],
                   a->site->name, used, a->job_id);
        }
    }
}
