/* How long a call to the real nui-local waits while it reads a large Slurm.
 *
 * slurmrestd is played by a child process from entries that a real one sent: 1,000 nodes of 16
 * processors, 10,000 jobs (NODES and JOBS as arguments) of which a fifth runs and fills the nodes.
 * A small call every few milliseconds, (a) while nui-local sees all of it for the first time, (b)
 * while everything is read once a second and nothing is new, (c) while slurmrestd says that nothing
 * changed (update_time), (d) while jobs end and come, and others are started in their place. Prints
 * quantiles against the bound of 50 ms, and what was asked of slurmrestd. */
#include "tests/unit/local_rm/fake_slurm.h"
#include "tests/unit/local_svc/site.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "proto/nui/v1/health.pb-c.h"

enum { PROCS = 16, GAP_US = 3000, SAMPLES_MAX = 100000, CHURN = 50, BOUND_MS = 50 };
enum mode { ALL_CHANGED, UNCHANGED, JOBS_CHANGE };

static unsigned node_count = 1000, job_count = 10000;

/* What both processes see. */
struct shared {
    enum mode mode;
    uint16_t port;
    unsigned whole, unchanged, started;
};
static struct shared *shared;

/* --- slurmrestd, in the child --------------------------------------------------------------- */

struct cluster {
    json_t *waits, *runs; /* recorded ones */
    json_t *jobs;         /* all of them; an entry's number is its place and one */
    char **text;          /* of each; NULL: to be made anew */
    unsigned count, cap, first_running;
    struct strbuf nodes, partitions;
};

static void set_int (json_t *o, const char *field, int64_t v)
{
    json_object_set_new (o, field, json_integer (v));
}

static void set_text (json_t *o, const char *field, const char *v)
{
    json_object_set_new (o, field, json_string (v));
}

static json_t *job_at (struct cluster *c, unsigned i)
{
    free (c->text[i]);
    c->text[i] = NULL;
    return json_array_get (c->jobs, i);
}

/* Runs now on these nodes ("n0001,n0002"), all alike. */
static void job_runs (struct cluster *c, unsigned i, const char *nodes, unsigned procs_each)
{
    json_t *job = job_at (c, i), *list = json_array ();
    char *copy = strdup (nodes), *save = NULL;
    unsigned count = 0;
    for (char *n = strtok_r (copy, ",", &save); n; n = strtok_r (NULL, ",", &save), count++) {
        json_t *cores = json_object ();
        for (unsigned core = 0; core < procs_each; core++) {
            char key[8];
            snprintf (key, sizeof key, "%u", core);
            set_text (cores, key, "allocated");
        }
        json_array_append_new (list, json_pack ("{s:{s:{s:o}}, s:s, s:i, s:i}", "sockets", "0",
                                                "cores", cores, "nodename", n, "cpus_used", 0,
                                                "memory_allocated", 1));
    }
    free (copy);
    json_object_update (job, c->runs);
    json_object_set_new (job, "job_resources",
                         json_pack ("{s:s, s:o}", "nodes", nodes, "allocated_nodes", list));
    set_int (job, "job_id", (int64_t)i + 1);
    set_int (job, "cpus", (int64_t)procs_each * count);
    set_int (job, "tasks", (int64_t)procs_each * count);
    set_int (job, "node_count", count);
    set_int (job, "time_limit", 600);
    set_int (job, "start_time", clock_now_us () / US_PER_S);
    set_text (job, "nodes", nodes);
    set_text (job, "user_name", i % 3 ? "games" : "news");
    set_text (job, "partition", "nui");
}

static unsigned job_new (struct cluster *c)
{
    unsigned i = c->count++, wide = 1 + i % 4;
    assert_true (c->count <= c->cap);
    json_t *job = json_deep_copy (c->waits);
    json_array_append_new (c->jobs, job);
    set_int (job, "job_id", (int64_t)i + 1);
    set_int (job, "priority", 4294900000 - i);
    set_int (job, "node_count", wide);
    set_int (job, "max_nodes", wide);
    set_int (job, "tasks", (int64_t)wide * PROCS);
    set_int (job, "cpus", (int64_t)wide * PROCS);
    set_int (job, "time_limit", 60 + i % 600);
    const char *const none[] = {"features", "licenses", "tres_per_node", "comment", "account"};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        set_text (job, none[k], "");
    set_text (job, "state_reason", "PartitionDown");
    set_text (job, "user_name", i % 3 ? "games" : "news");
    return i;
}

static void cluster_make (struct cluster *c)
{
    json_t *jobs = fake_slurm_recorded ("jobs-38"), *nodes = fake_slurm_recorded ("nodes-38");
    json_t *partitions = fake_slurm_recorded ("partitions-38"), *list = json_array ();
    c->cap = job_count + 1000000 / CHURN;
    c->text = calloc (c->cap, sizeof *c->text);
    c->jobs = json_array ();
    c->waits = json_incref (json_array_get (jobs, 0));
    c->runs = json_incref (json_array_get (jobs, 1));
    for (unsigned i = 0; i < node_count; i++) {
        char name[16];
        json_t *node = json_deep_copy (json_array_get (nodes, 1));
        snprintf (name, sizeof name, "n%04u", i + 1);
        set_text (node, "name", name);
        set_int (node, "cpus", PROCS);
        set_int (node, "real_memory", 64000);
        json_array_append_new (list, node);
    }
    fake_slurm_list ("nodes", list, &c->nodes);
    fake_slurm_list ("partitions", partitions, &c->partitions);
    for (unsigned i = 0; i < job_count; i++) {
        char node[16];
        job_new (c);
        snprintf (node, sizeof node, "n%04u", i / 2 + 1);
        if (i < 2 * node_count && i < job_count / 2)
            job_runs (c, i, node, PROCS / 2);
    }
    json_decref (list);
    json_decref (nodes);
    json_decref (jobs);
    json_decref (partitions);
}

/* Since the last look: the oldest that ran ended, as many are new. */
static void churn (struct cluster *c)
{
    for (unsigned ended = 0; ended < CHURN && c->first_running < c->count; c->first_running++) {
        json_t *job = json_array_get (c->jobs, c->first_running);
        if (strcmp (json_string_value (json_object_get (job, "job_state")), "RUNNING") != 0)
            continue;
        job = job_at (c, c->first_running);
        set_text (job, "job_state", "COMPLETED");
        set_int (job, "end_time", clock_now_us () / US_PER_S);
        job_new (c);
        ended++;
    }
}

static void jobs_say (struct cluster *c, struct strbuf *body)
{
    strbuf_puts (body, "{\n  \"meta\": {\n  },\n  \"errors\": [\n  ],\n  \"jobs\": [");
    for (unsigned i = 0; i < c->count; i++) {
        if (!c->text[i])
            c->text[i] = json_dumps (json_array_get (c->jobs, i), JSON_INDENT (2));
        strbuf_puts (body, i ? ",\n" : "\n");
        strbuf_puts (body, c->text[i]);
    }
    strbuf_puts (body, "\n  ]\n}\n");
}

static void job_update (struct cluster *c, unsigned i, const char *sent)
{
    json_t *body = json_loads (sent, 0, NULL);
    const char *nodes = json_string_value (json_object_get (body, "node_list"));
    const char *partition = json_string_value (json_object_get (body, "partition"));
    if (nodes && partition && strcmp (partition, "nui") == 0) {
        job_runs (c, i, nodes, PROCS);
        shared->started++;
    }
    if (json_is_true (json_object_get (body, "hold")))
        set_int (job_at (c, i), "priority", 0);
    json_decref (body);
}

static int answer (void *arg, const char *method, const char *path, const char *query,
                   const char *sent, struct strbuf *body)
{
    struct cluster *c = arg;
    const char *what = strncmp (path, "/slurm/v0.0.38/", 15) == 0 ? path + 15 : path;
    bool list = strcmp (what, "jobs") == 0 || strcmp (what, "nodes") == 0;
    unsigned number;
    if (strcmp (what, "/openapi/v3") == 0) {
        fake_slurm_versions ("v0.0.38", 1, body);
    } else if (list && strstr (query, "update_time=") &&
               (shared->mode == UNCHANGED || (shared->mode == JOBS_CHANGE && *what == 'n'))) {
        shared->unchanged += *what == 'j';
        return 304;
    } else if (strcmp (what, "jobs") == 0) {
        if (shared->mode == JOBS_CHANGE)
            churn (c);
        shared->whole++;
        jobs_say (c, body);
    } else if (strcmp (what, "nodes") == 0) {
        strbuf_append (body, c->nodes.data, c->nodes.len);
    } else if (strcmp (what, "partitions") == 0) {
        strbuf_append (body, c->partitions.data, c->partitions.len);
    } else if (sscanf (what, "job/%u", &number) == 1 && number <= c->count) {
        json_t *one = json_array ();
        if (strcmp (method, "POST") == 0)
            job_update (c, number - 1, sent);
        else
            json_array_append (one, json_array_get (c->jobs, number - 1));
        fake_slurm_list ("jobs", one, body);
        json_decref (one);
    } else {
        return 404;
    }
    return 200;
}

static pid_t slurm_play (void)
{
    pid_t pid = fork ();
    if (pid != 0)
        return pid;
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    static struct cluster c;
    struct event_base *base = event_base_new ();
    cluster_make (&c);
    shared->port = fake_slurm_port (fake_slurm_create (base, answer, &c));
    event_base_dispatch (base);
    _exit (0);
}

/* --- calls ---------------------------------------------------------------------------------- */

static int by_value (const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Small calls until `until` of the daemon's log and then for so many seconds, at most 300 in all.
 */
static void probe (struct site *s, const char *what, const char *until, double seconds)
{
    static int64_t sample[SAMPLES_MAX];
    char path[128], line[2048];
    unsigned count = 0;
    bool seen = !until;
    struct shared before = *shared;
    snprintf (path, sizeof path, "%s/log", s->dir);
    FILE *log = fopen (path, "r");
    duration_us begun = clock_monotonic_us (), from = begun, last = 300 * US_PER_S;
    while (count < SAMPLES_MAX && clock_monotonic_us () - begun < last &&
           (!seen || (double)(clock_monotonic_us () - from) < seconds * 1e6)) {
        Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
        struct err err = {0};
        request.service = (char *)"";
        duration_us at = clock_monotonic_us ();
        if (rpcclient_call (s->as_operator, &grpc__health__v1__health__descriptor, "Check",
                            &request.base, 120 * US_PER_S, true, NULL, &err) != 0)
            fail_msg ("%s", err.text);
        sample[count++] = clock_monotonic_us () - at;
        clearerr (log);
        while (!seen && fgets (line, sizeof line, log))
            if (strstr (line, until)) {
                seen = true;
                from = clock_monotonic_us ();
            }
        struct timeval gap = {0, GAP_US};
        event_base_loopexit (s->base, &gap);
        event_base_dispatch (s->base);
    }
    fclose (log);
    if (!seen)
        fail_msg ("the daemon never said '%s'", until);
    qsort (sample, count, sizeof *sample, by_value);
    printf ("%-34s %5.1f s, %5u calls: p50 %.2f ms, p99 %.2f ms, longest %.1f ms (/ %d ms: %.2f); "
            "jobs read %u "
            "times, unchanged %u, started %u\n",
            what, (double)(clock_monotonic_us () - begun) / 1e6, count,
            (double)sample[count / 2] / 1e3, (double)sample[count * 99 / 100] / 1e3,
            (double)sample[count - 1] / 1e3, BOUND_MS, (double)sample[count - 1] / 1e3 / BOUND_MS,
            shared->whole - before.whole, shared->unchanged - before.unchanged,
            shared->started - before.started);
}

static void a_large_slurm (void **state)
{
    struct site *s = *state;
    char config[1024], key[128];
    snprintf (key, sizeof key, "%s/jwt.key", s->dir);
    FILE *f = fopen (key, "w");
    fprintf (f, "0123456789abcdef0123456789abcdef");
    fclose (f);
    pid_t slurm = slurm_play ();
    while (!shared->port && waitpid (slurm, NULL, WNOHANG) == 0)
        usleep (10000);
    snprintf (config, sizeof config,
              "RMCFG[base] TYPE=SLURM SERVER=http://127.0.0.1:%u KEY=%s POLL=1 CHARGE=FALSE\n"
              "RESERVATIONDEPTH[0] 10\nBACKFILLPOLICY FIRSTFIT\n",
              shared->port, key);
    printf ("%u nodes, %u jobs\n", node_count, job_count);
    site_start (s, config);
    probe (s, "seen for the first time", "slurm reached", 8);
    probe (s, "read each second, nothing new", NULL, 10);
    shared->mode = UNCHANGED;
    probe (s, "\"nothing changed\"", NULL, 10);
    shared->mode = JOBS_CHANGE;
    probe (s, "50 end, come and start a look", NULL, 15);
    kill (slurm, SIGKILL);
    waitpid (slurm, NULL, 0);
}

int main (int argc, char **argv)
{
    if (argc > 1)
        node_count = (unsigned)atoi (argv[1]);
    if (argc > 2)
        job_count = (unsigned)atoi (argv[2]);
    setvbuf (stdout, NULL, _IOLBF, 0);
    shared = mmap (NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_large_slurm, site_setup, site_teardown)};
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
