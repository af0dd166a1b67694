/* One pass with everything on: all priority components, fairshare of five kinds, soft and hard
 * limits, RESERVATIONDEPTH 100, jobs of mixed shapes. Prints a table and ratios to the floors. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "local/core/plan.h"
#include "tests/bench/growth/growth.h"
#include "tests/prop/local/trace.h"

enum { USERS = 400, GROUPS = 20, ACCOUNTS = 60, CLASSES = 5, QOSES = 4 };

/* What else the site has: reservations with ACLs (each for one account, on a few processors of a few
 * nodes), node sets (switches) of which one job in ten wants one, licences that one in ten wants. */
struct guards {
    uint32_t reservations, sets, licences;
    bool endless; /* every eighth node is kept for one account for ever, and one job in fifty,
                     before all others, wants more nodes with much memory than are left */
};
static const struct guards none = {0}, guarded = {1000, 200, 20, false},
                           endless = {.endless = true};

struct bench {
    struct cred_names names;
    struct policy *policy;
    struct cluster *c;
    struct arena *arena;
    uint64_t seed;
    uint64_t next_id;
    struct guards guards;
    uint32_t nodeset;
    uint64_t hash; /* of all plans: the same before and after whatever made it quicker */
    time_us now;
};

static double seconds (void)
{
    struct timespec t;

    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The most this process ever had. */
static double memory_mb (void)
{
    char line[256];
    unsigned long kb = 0;
    FILE *file = fopen ("/proc/self/status", "r");

    while (file && fgets (line, sizeof line, file)) {
        if (sscanf (line, "VmHWM: %lu", &kb) == 1)
            break;
    }
    if (file)
        fclose (file);
    return (double)kb / 1024;
}

static uint64_t draw (struct bench *b, uint64_t most)
{
    return trace_random (&b->seed) % most;
}

static void limits_on (struct policy *p, enum cred_kind kind, uint32_t id, int64_t jobs,
                       int64_t procs)
{
    struct policy_cred *cred = policy_cred_edit (p, kind, id);

    cred->limits.active_mask = 1u << LIMIT_JOB | 1u << LIMIT_PROC;
    cred->limits.active[LIMIT_SOFT][LIMIT_JOB] = jobs;
    cred->limits.active[LIMIT_HARD][LIMIT_JOB] = jobs * 2;
    cred->limits.active[LIMIT_SOFT][LIMIT_PROC] = procs;
    cred->limits.active[LIMIT_HARD][LIMIT_PROC] = procs * 2;
}

static void policy_everything (struct bench *b, uint32_t nodes, uint32_t depth)
{
    static const uint32_t count[CRED_KINDS] = {USERS, GROUPS, ACCOUNTS, CLASSES, QOSES};
    struct policy *p = policy_create (&b->names);
    struct err err = {0};

    for (int s = 0; s < PRIO_SUBS; s++)
        p->sub_weight[s] = 1 + s % 3;
    p->sub_weight[PRIO_TARGETQUEUETIME] = p->sub_weight[PRIO_TARGETXFACTOR] = 0.001;
    for (int c = 0; c < PRIO_COMPONENTS; c++)
        p->component_weight[c] = 1;
    p->fs_policy = FS_DEDICATEDPS;
    for (int kind = 0; kind < CRED_KINDS; kind++) {
        for (uint32_t i = 1; i <= count[kind]; i++) {
            char name[32];
            uint32_t id;
            snprintf (name, sizeof name, "c%d-%u", kind, i);
            id = strtab_intern (b->names.tab[kind], name);
            struct policy_cred *cred = policy_cred_edit (p, (enum cred_kind)kind, id);
            cred->priority = i % 10;
            cred->fs_target = 100.0 / count[kind];
            cred->fs_target_type = FS_TARGET_TARGET;
            cred->set |= CRED_SET_PRIORITY | CRED_SET_FSTARGET;
        }
    }
    limits_on (p, CRED_USER, CRED_DEFAULT, 30 + nodes / 100, 16 * (int64_t)nodes / 20 + 64);
    limits_on (p, CRED_GROUP, CRED_DEFAULT, 600 + nodes / 10, 16 * (int64_t)nodes / 3 + 64);
    limits_on (p, CRED_ACCOUNT, CRED_DEFAULT, 300 + nodes / 20, 16 * (int64_t)nodes / 5 + 64);
    limits_on (p, CRED_CLASS, CRED_DEFAULT, 1000 + nodes / 2, 16 * (int64_t)nodes / 2 + 64);
    limits_on (p, CRED_QOS, CRED_DEFAULT, 1000 + nodes / 2, 16 * (int64_t)nodes / 2 + 64);
    policy_bucket_set (p, 0, depth, NULL, 0);
    if (policy_seal (p, &err) != 0) {
        fprintf (stderr, "%s\n", err.text);
        exit (1);
    }
    b->policy = p;
}

static void nodes_add (struct bench *b, uint32_t nodes)
{
    struct node_spec spec = {.partition = 1, .speed_ppm = 1000000};

    spec.configured.v[RES_PROCS] = 16;
    for (uint32_t i = 0; i < nodes; i++) {
        spec.configured.v[RES_MEM_MB] = i % 4 == 0 ? 256000 : 64000;
        spec.features.word[0] = 1u << (i % 3) | (i % 4 == 0 ? 8 : 0);
        (void)cluster_node_add (b->c, &spec, b->now, NULL, NULL);
    }
}

static void die_of (const struct err *err)
{
    fprintf (stderr, "%s\n", err->text);
    exit (1);
}

/* One switch for so many neighbours each. */
static void switches_add (struct bench *b, uint32_t nodes)
{
    struct nodeset all = {.policy = NODESET_ONEOF, .attribute = NODESET_SWITCH, .mandatory = true};
    struct switch_spec *list = calloc (b->guards.sets, sizeof *list);
    struct node_id *node = malloc (nodes * sizeof *node);
    struct err err = {0};
    uint32_t each = nodes / b->guards.sets;

    assert (list && node && each > 0);
    for (uint32_t n = 0; n < nodes; n++)
        node[n] = (struct node_id){n};
    for (uint32_t i = 0; i < b->guards.sets; i++)
        list[i] = (struct switch_spec){0, each, node + i * each};
    if (cluster_switches_set (b->c, list, b->guards.sets, b->now, &err) != 0 ||
        cluster_nodeset_define (b->c, &all, &b->nodeset, &err) != 0)
        die_of (&err);
    free (list);
    free (node);
}

static void reservation_without_end (struct bench *b, uint32_t nodes)
{
    struct acl_entry acl = {.type = CRED_ACCOUNT, .value = 1};
    struct req req = {.tasks = nodes / 8};
    struct rsv_spec spec = {.id = {1},
                            .kind = RSV_ADMIN,
                            .req_count = 1,
                            .req = &req,
                            .acl_count = 1,
                            .acl = &acl,
                            .placed = true,
                            .start = b->now,
                            .end = TIME_US_MAX};
    struct placement *item = calloc (req.tasks, sizeof *item);
    struct allocation a = {req.tasks, item};
    struct err err = {0};

    assert (item);
    req.task.v[RES_PROCS] = 16;
    for (uint32_t i = 0; i < req.tasks; i++)
        item[i] = (struct placement){{i * 8}, 1, 0};
    if (cluster_rsv_create (b->c, &spec, &a, b->now, &err) != 0)
        die_of (&err);
    free (item);
}

/* Half of them stand, half begin within a week; each for a day to a week. */
static void reservations_add (struct bench *b, uint32_t nodes)
{
    for (uint32_t i = 0; i < b->guards.reservations; i++) {
        struct acl_entry acl = {.type = CRED_ACCOUNT, .value = 1 + i % ACCOUNTS};
        struct req req = {.tasks = 8};
        struct rsv_spec spec = {.id = {i + 1},
                                .kind = RSV_ADMIN,
                                .req_count = 1,
                                .req = &req,
                                .acl_count = 1,
                                .acl = &acl,
                                .placed = true};
        struct placement item[8];
        struct allocation a = {8, item};
        struct err err = {0};
        req.task.v[RES_PROCS] = 4;
        spec.start = b->now + (i % 2 ? (time_us)(1 + draw (b, 167)) * 3600 * US_PER_S : 0);
        spec.end = spec.start + (time_us)(24 + draw (b, 144)) * 3600 * US_PER_S;
        for (uint32_t k = 0; k < 8; k++)
            item[k] = (struct placement){{(i * 8 + k) % nodes}, 1, 0};
        if (cluster_rsv_create (b->c, &spec, &a, b->now, &err) != 0)
            die_of (&err);
    }
}

static void guards_add (struct bench *b, uint32_t nodes)
{
    int32_t total[LICENCES_MAX];
    struct err err = {0};

    for (uint32_t k = 0; k < b->guards.licences; k++)
        total[k] = 200 + (int32_t)draw (b, 800);
    if (b->guards.licences &&
        cluster_licences_set (b->c, total, b->guards.licences, b->now, &err) != 0)
        die_of (&err);
    if (b->guards.sets)
        switches_add (b, nodes);
    reservations_add (b, nodes);
    if (b->guards.endless)
        reservation_without_end (b, nodes);
}

/* Mixed shapes: serial, threaded, parallel by node, with memory, with features. */
static void submit (struct bench *b, bool small)
{
    static const int32_t threads[] = {1, 1, 2, 4, 8, 16};
    static const int32_t memory[] = {0, 0, 2000, 4000, 16000};
    struct req req = {.tasks = 1};
    struct job_spec spec = {
        .id = {b->next_id++}, .not_before = TIME_US_NONE, .req_count = 1, .req = &req};
    struct err err = {0};

    req.task.v[RES_PROCS] = threads[draw (b, 6)];
    req.task.v[RES_MEM_MB] = memory[draw (b, 5)];
    req.tasks = 1 + (uint32_t)draw (b, small ? 6 : draw (b, 20) == 0 ? 400 : 24);
    if (draw (b, 5) == 0)
        req.features.word[0] = 1u << draw (b, 3);
    if (draw (b, 6) == 0 && req.task.v[RES_PROCS] <= 8) {
        req.tasks_per_node = 2;
        req.tasks = (req.tasks + 1) / 2 * 2;
    }
    struct licence licence = {0, 1};
    if (b->guards.licences && draw (b, 10) == 0) {
        licence.kind = (uint32_t)draw (b, b->guards.licences);
        spec.licence = &licence;
        spec.licence_count = 1;
    }
    if (b->guards.sets && draw (b, 10) == 0)
        req.nodeset = b->nodeset;
    spec.submit = b->now - (time_us)draw (b, 500000) * US_PER_S;
    if (b->guards.endless && !small && draw (b, 50) == 0) { /* before all others */
        req = (struct req){.tasks = 1300};
        req.task.v[RES_PROCS] = 1;
        req.task.v[RES_MEM_MB] = 200000;
        spec.submit = b->now - INT64_C (50000000) * US_PER_S;
    }
    spec.walltime_limit = (duration_us)(1 + draw (b, 96)) * 900 * US_PER_S;
    spec.cred[CRED_USER] = 1 + (uint32_t)draw (b, USERS);
    spec.cred[CRED_GROUP] = 1 + (uint32_t)draw (b, GROUPS);
    spec.cred[CRED_ACCOUNT] = 1 + (uint32_t)draw (b, ACCOUNTS);
    spec.cred[CRED_CLASS] = 1 + (uint32_t)draw (b, CLASSES);
    spec.cred[CRED_QOS] = 1 + (uint32_t)draw (b, QOSES);
    if (cluster_job_submit (b->c, &spec, b->now, &err) != 0) {
        fprintf (stderr, "%s\n", err.text);
        exit (1);
    }
}

static double pass (struct bench *b, struct plan *plan)
{
    struct err err = {0};
    double begin = seconds ();

    arena_reset (b->arena);
    if (plan_compute (b->c, b->now, b->arena, plan, &err) != 0 ||
        plan_commit (b->c, plan, &err) != 0) {
        fprintf (stderr, "%s\n", err.text);
        exit (1);
    }
    b->hash = (b->hash ^ plan->hash) * UINT64_C (0x100000001B3);
    return seconds () - begin;
}

/* Milliseconds of the same thing done again and again: what else runs on the machine only adds to it, so the
 * fastest says most of the program, and the median how disturbed it was. */
struct times {
    double fastest, median;
};

static int compare (const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static struct times times_of (double *ms, uint32_t count)
{
    qsort (ms, count, sizeof *ms, compare);
    return (struct times){ms[0], ms[count / 2]};
}

enum { FULLS = 7, ENDS = 9 };

/* A function of its own for valgrind --tool=callgrind --toggle-collect=full_passes. */
__attribute__ ((noinline)) static struct times full_passes (struct bench *b)
{
    double full[FULLS];
    struct plan plan;

    for (uint32_t i = 0; i < FULLS; i++) {
        plan_forget (b->c);
        full[i] = pass (b, &plan) * 1e3;
    }
    return times_of (full, FULLS);
}

/* One job ends, one pass. Of its own, too. */
__attribute__ ((noinline)) static struct times after_ends (struct bench *b, uint32_t running)
{
    double after[ENDS];
    struct plan plan;

    for (uint32_t i = 0; i < ENDS; i++) {
        struct job_id *active = malloc ((running + 100) * sizeof *active);
        uint32_t n = cluster_job_list (b->c, JOB_STARTING, active, running + 100);
        b->now += 5 * US_PER_S;
        (void)cluster_job_end (b->c, active[draw (b, n)], b->now, NULL);
        after[i] = pass (b, &plan) * 1e3;
        free (active);
    }
    return times_of (after, ENDS);
}

struct figures {
    struct times full, after_end;
    double fill_ms;
    uint32_t running;
    double memory_mb;
    uint64_t hash;
};

static struct figures measure (uint32_t nodes, uint32_t idle, uint32_t running, uint32_t depth,
                               const struct guards *guards)
{
    struct bench b = {
        .seed = 11, .next_id = 1, .now = INT64_C (1700000000) * US_PER_S, .guards = *guards};
    struct figures f = {0};
    struct plan plan;

    cred_names_init (&b.names);
    policy_everything (&b, nodes, depth);
    b.arena = arena_create (0);
    b.c = cluster_create (b.policy, NULL, NULL);
    nodes_add (&b, nodes);
    guards_add (&b, nodes);
    for (uint32_t i = 0; i < running; i++)
        submit (&b, true);
    (void)pass (&b, &plan);
    for (uint32_t i = 0; i < idle; i++)
        submit (&b, false);
    b.now += 60 * US_PER_S;
    f.fill_ms = pass (&b, &plan) * 1e3; /* starts what fits */
    b.now += 60 * US_PER_S;
    f.full = full_passes (&b);
    f.running = cluster_job_count (b.c, JOB_STARTING);
    f.after_end = after_ends (&b, f.running);
    f.memory_mb = memory_mb ();
    f.hash = b.hash;
    cluster_destroy (b.c);
    arena_destroy (b.arena);
    policy_destroy (b.policy);
    cred_names_free (&b.names);
    return f;
}

struct size {
    uint32_t nodes, idle;
};

enum { FULL, AFTER, FILL, MEMORY, RUNNING, VALUES };

static void one_size (const void *arg, double *values)
{
    const struct size *size = arg;
    struct figures f = measure (size->nodes, size->idle, size->nodes * 4 / 5, 100, &none);

    values[FULL] = f.full.fastest;
    values[AFTER] = f.after_end.fastest;
    values[FILL] = f.fill_ms;
    values[MEMORY] = f.memory_mb;
    values[RUNNING] = f.running;
}

static void one_curve (bool by_idle, unsigned limit_s, struct growth *g)
{
    static const uint32_t idle[] = {1000, 10000, 100000, 1000000};
    static const uint32_t nodes[] = {100, 1000, 10000, 100000};

    for (int i = 0; i < 4; i++) {
        struct size size = {by_idle ? 10000 : nodes[i], by_idle ? idle[i] : 100000};
        double x = by_idle ? size.idle : size.nodes, v[VALUES];
        if (!growth_measure (one_size, &size, v, VALUES, limit_s)) {
            printf ("%8u %9u   stopped after %u s\n", size.nodes, size.idle, limit_s);
            return;
        }
        printf ("%8u %9u %8.0f %11.2f %11.2f %11.2f %8.0f\n", size.nodes, size.idle, v[RUNNING],
                v[FILL], v[FULL], v[AFTER], v[MEMORY]);
        fflush (stdout);
        growth_point (g, "full pass", x, v[FULL]);
        growth_point (g, "after one job ended", x, v[AFTER]);
    }
}

/* dir: NULL: no files. */
static void all_growth (const char *dir, unsigned limit_s)
{
    struct growth idle = {.name = "pass-idle",
                          .title = "One pass, everything on: 10,000 nodes",
                          .x_label = "idle jobs",
                          .y_label = "milliseconds",
                          .x_name = "idle",
                          .y_name = "ms"};
    struct growth nodes = {.name = "pass-nodes",
                           .title = "One pass, everything on: 100,000 idle jobs",
                           .x_label = "nodes of 16 processors",
                           .y_label = "milliseconds",
                           .x_name = "nodes",
                           .y_name = "ms"};

    printf ("%8s %9s %8s %11s %11s %11s %8s\n", "nodes", "idle", "running", "filling ms", "full ms",
            "one end ms", "max MB");
    one_curve (true, limit_s, &idle);
    one_curve (false, limit_s, &nodes);
    if (dir == NULL)
        return;
    growth_write (&idle, dir);
    growth_write (&nodes, dir);
}

static void against_floors (const char *what, const struct guards *guards)
{
    struct figures f = measure (10000, 100000, 8000, 100, guards);

    printf ("one pass, everything on%s: 10,000 nodes x 16, 100,000 idle, %u running, depth 100\n",
            what, f.running);
    printf (
        "  filling pass %.1f ms; full pass %.1f ms (median %.1f; floor 200, ratio %.1f); after one end "
        "%.1f ms (median %.1f; floor 20, ratio %.1f); %.0f MB (floor 1024, ratio %.1f)\n",
        f.fill_ms, f.full.fastest, f.full.median, 200 / f.full.fastest, f.after_end.fastest,
        f.after_end.median, 20 / f.after_end.fastest, f.memory_mb, 1024 / f.memory_mb);
    printf ("  hash of the plans %016llx\n", (unsigned long long)f.hash);
    fflush (stdout);
}

/* A reservation for everyone: milliseconds of a pass, and of that for each job. */
static void promises_to_all (uint32_t nodes, uint32_t most)
{
    printf ("a reservation for each of so many idle jobs, %u nodes x 16\n"
            "%8s %11s %11s %11s %11s %8s  %s\n",
            nodes, "idle", "filling ms", "full ms", "one end ms", "us each", "max MB", "plans");
    for (uint32_t idle = 100, step = 0; idle <= most; idle *= step++ % 2 ? 2 : 5) {
        struct figures f = measure (nodes, idle, nodes * 4 / 5, idle, &none);
        printf ("%8u %11.2f %11.2f %11.2f %11.1f %8.0f  %016llx\n", idle, f.fill_ms, f.full.fastest,
                f.after_end.fastest, f.full.fastest * 1e3 / idle, f.memory_mb,
                (unsigned long long)f.hash);
        fflush (stdout);
    }
}

/* bench_pass                     all; the growth on the screen only
 * bench_pass quick               against the floors only
 * bench_pass guarded             the same with reservations, node sets, licences
 * bench_pass endless             the same with a reservation without end and jobs that can never run for it
 * bench_pass deep [NODES [MOST]] a reservation for everyone, of up to MOST idle jobs (1,000; 10,000)
 * bench_pass growth DIR [LIMIT]  the growth only, as tables and pictures in DIR; a point is given LIMIT
 *                                seconds (120), and a curve ends at the first that needs more */
int main (int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp (what, "growth") == 0 && argc > 2) {
        all_growth (argv[2], argc > 3 ? (unsigned)strtoul (argv[3], NULL, 10) : 120);
        return 0;
    }
    if (strcmp (what, "deep") == 0) {
        promises_to_all (argc > 2 ? (uint32_t)strtoul (argv[2], NULL, 10) : 1000,
                         argc > 3 ? (uint32_t)strtoul (argv[3], NULL, 10) : 10000);
        return 0;
    }
    if (*what == 0 || strcmp (what, "quick") == 0)
        against_floors ("", &none);
    if (*what == 0 || strcmp (what, "guarded") == 0)
        against_floors (", 1,000 reservations with ACLs, 200 node sets, 20 licences", &guarded);
    if (*what == 0 || strcmp (what, "endless") == 0)
        against_floors (", a reservation without end, 2,000 jobs that can never run", &endless);
    if (argc == 1)
        all_growth (NULL, 120);
    return 0;
}
