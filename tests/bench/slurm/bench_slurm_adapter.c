/* What the adapter for Slurm costs by itself, over a slurmrestd that is played from what a real one answered
 * (tests/unit/local_rm/play_slurm.h) in a process of its own: NODES nodes of four processors, JOBS waiting jobs.
 *
 *     bench_slurm_adapter [DATA] [NODES] [JOBS]      (26.05.3-v0.0.45, 1000, 5000)
 *
 * Measured: the first reading of all; a look after which nothing has changed; the longest turn of the loop (what a call
 * waits at most) in each; and starts that are asked for in one moment, until each is seen to run. CPU is this process's, so
 * the player's is not in it. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/rm/slurm/rm_slurm.h"
#include "proto/base/clock.h"
#include "tests/unit/local_rm/fake_slurm.h"
#include "tests/unit/local_rm/play_slurm.h"

enum { STARTS = 400 };

struct shared {
    volatile uint16_t port;
    volatile unsigned whole, unchanged, states, updates, fields;
};

struct bench {
    struct event_base *base;
    struct rm rm;
    unsigned natives, started;
    duration_us longest;
};

/* --- slurmrestd, in the child --------------------------------------------------------------- */

static void nodes_make (struct play_slurm *play, unsigned count)
{
    json_t *pattern = json_deep_copy (json_array_get (play->nodes, 0));
    json_array_clear (play->nodes);
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        json_t *node = json_deep_copy (pattern);
        snprintf (name, sizeof name, "n%04u", i + 1);
        json_object_set_new (node, "name", json_string (name));
        json_array_append_new (play->nodes, node);
    }
    json_decref (pattern);
}

static struct shared *shared;

static int counted (void *arg, const char *method, const char *path, const char *query,
                    const char *sent, struct strbuf *body)
{
    struct play_slurm *play = arg;
    int status = play_answer (play, method, path, query, sent, body);
    shared->whole = play->whole;
    shared->unchanged = play->unchanged;
    shared->states = play->states;
    shared->updates = play->updates;
    shared->fields = play->fields;
    return status;
}

static pid_t slurm_play (const char *data, unsigned nodes, unsigned jobs)
{
    pid_t pid = fork ();
    if (pid != 0)
        return pid;
    struct play_slurm play;
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    struct event_base *base = event_base_new ();
    play_init (&play, data);
    nodes_make (&play, nodes);
    for (unsigned i = 0; i < jobs; i++)
        play_sbatch (&play, "games", 1, 1);
    play.changed = 1;
    struct fake_slurm *fake = fake_slurm_create (base, counted, &play);
    shared->port = fake_slurm_port (fake);
    event_base_dispatch (base);
    _exit (0);
}

/* --- the adapter ---------------------------------------------------------------------------- */

static void on_event (void *arg, const struct rm_event *event)
{
    struct bench *b = arg;
    b->natives += event->kind == RM_EVENT_NATIVE ? event->native_count : 0;
    b->started += event->kind == RM_EVENT_STARTED;
}

static double cpu_ms (void)
{
    struct rusage use;
    getrusage (RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

/* A turn of the loop, but for the time in which it only waited. */
static void turn (struct bench *b)
{
    double before = cpu_ms ();
    event_base_loop (b->base, EVLOOP_ONCE);
    duration_us took = (duration_us)((cpu_ms () - before) * 1e3);
    b->longest = took > b->longest ? took : b->longest;
}

static void first_reading (struct bench *b, unsigned jobs)
{
    double cpu = cpu_ms ();
    duration_us begun = clock_monotonic_us ();
    b->longest = 0;
    while (!b->rm.ops->fresh (b->rm.self) || b->natives < jobs)
        turn (b);
    printf ("everything read: %.0f ms of CPU, %.1f s; longest turn %.1f ms (/ 100: %.2f)\n",
            cpu_ms () - cpu, (double)(clock_monotonic_us () - begun) / 1e6,
            (double)b->longest / 1e3, (double)b->longest / 1e5);
}

/* Light looks only: the whole one between them is the first reading again. */
static void nothing_new (struct bench *b)
{
    double least = 1e9;
    for (int i = 0; i < 6; i++) {
        unsigned whole = shared->whole, before = shared->states + shared->unchanged;
        double cpu = cpu_ms ();
        b->longest = 0;
        b->rm.ops->poll (b->rm.self, NULL);
        while (shared->states + shared->unchanged == before && shared->whole == whole)
            turn (b);
        duration_us until = clock_monotonic_us () + US_PER_S / 2; /* it is taken in */
        struct timeval gap = {0, 20000};
        while (clock_monotonic_us () < until) {
            event_base_loopexit (b->base, &gap);
            event_base_dispatch (b->base);
        }
        if (shared->whole == whole && cpu_ms () - cpu < least)
            least = cpu_ms () - cpu;
    }
    printf ("a look, nothing changed: %.1f ms of CPU (/ 50: %.2f)\n", least, least / 50);
}

static void starts (struct bench *b, unsigned nodes)
{
    char id[STARTS][16], rm_id[STARTS][16], host[STARTS][16];
    static const uint32_t tasks[] = {1};
    unsigned count = nodes < STARTS ? nodes : STARTS;
    for (unsigned i = 0; i < count; i++) {
        snprintf (id[i], sizeof id[i], "alpha.%u", i + 1);
        snprintf (rm_id[i], sizeof rm_id[i], "%u", i + 1);
        snprintf (host[i], sizeof host[i], "n%04u", i + 1);
        b->rm.ops->bind (b->rm.self, rm_id[i], 0, id[i], 0, 0, NULL);
    }
    double cpu = cpu_ms ();
    duration_us begun = clock_monotonic_us ();
    unsigned updates = shared->updates, fields = shared->fields, states = shared->states,
             whole = shared->whole;
    b->longest = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *at[] = {host[i]};
        struct err err = {0};
        struct rm_job job = {.job_id = id[i],
                             .rm_id = rm_id[i],
                             .host_count = 1,
                             .host = at,
                             .host_tasks = tasks,
                             .procs = 1,
                             .walltime = 60 * US_PER_S};
        if (b->rm.ops->start (b->rm.self, &job, &err) != 0) {
            printf ("start: %s\n", err.text);
            return;
        }
    }
    while (b->started < count)
        turn (b);
    double s = (double)(clock_monotonic_us () - begun) / 1e6;
    printf (
        "%u starts in %.2f s: %.0f each second (/ 200: %.2f), %.2f ms of CPU for each; longest turn "
        "%.1f ms; asked: %u updates, %u jobs, %u lists of states, %u of jobs\n",
        count, s, count / s, count / s / 200, (cpu_ms () - cpu) / count, (double)b->longest / 1e3,
        shared->updates - updates, shared->fields - fields, shared->states - states,
        shared->whole - whole);
}

int main (int argc, char **argv)
{
    const char *data = argc > 1 ? argv[1] : "26.05.3-v0.0.45";
    unsigned nodes = argc > 2 ? (unsigned)atoi (argv[2]) : 1000;
    unsigned jobs = argc > 3 ? (unsigned)atoi (argv[3]) : 5000;
    char dir[] = "/tmp/nui-bench-slurm-XXXXXX", key[64], log[64], jobdir[64], server[64];
    struct err err = {0};
    struct bench b = {0};
    setvbuf (stdout, NULL, _IOLBF, 0);
    shared = mmap (NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp (dir))
        return 1;
    snprintf (key, sizeof key, "%s/key", dir);
    snprintf (log, sizeof log, "%s/log", dir);
    snprintf (jobdir, sizeof jobdir, "%s/jobs", dir);
    FILE *f = fopen (key, "w");
    fprintf (f, "0123456789abcdef0123456789abcdef");
    fclose (f);
    pid_t slurm = slurm_play (data, nodes, jobs);
    while (!shared->port && waitpid (slurm, NULL, WNOHANG) == 0)
        usleep (10000);
    b.base = event_base_new ();
    snprintf (server, sizeof server, "http://127.0.0.1:%u", shared->port);
    struct rm_slurm_config config = {.base = b.base,
                                     .log = log_create (log, LOG_LEVEL_WARN, "bench", &err),
                                     .server = server,
                                     .key_file = key,
                                     .user = "root",
                                     .partition = "nui",
                                     .poll = 3600 * US_PER_S,
                                     .patience = 60 * US_PER_S,
                                     .token_life = 600 * US_PER_S,
                                     .job_dir = jobdir,
                                     .on_event = on_event,
                                     .arg = &b};
    printf ("%s: %u nodes, %u jobs\n", data, nodes, jobs);
    if (rm_slurm_create (&config, &b.rm, &err) != 0) {
        printf ("%s\n", err.text);
        return 1;
    }
    first_reading (&b, jobs);
    nothing_new (&b);
    starts (&b, nodes);
    b.rm.ops->destroy (b.rm.self);
    kill (slurm, SIGKILL);
    waitpid (slurm, NULL, 0);
    char command[96];
    snprintf (command, sizeof command, "rm -rf %s", dir);
    return system (command);
}
