/* How long an RPC to nui-local waits while it schedules a long queue.
 *
 * The real daemon, 10,000 nodes of 16 processors (NODES), filled by 200 running jobs; then 100,000
 * waiting jobs of mixed shapes (JOBS), RESERVATIONDEPTH 100 (DEPTH), priority, fairshare and limits on;
 * "bench_daemon JOBS NODES DEPTH". Then one small call every few milliseconds, (a) with nothing else going on, and (b)
 * while jobs are submitted and cancelled all the time, so that passes follow one another. Prints
 * quantiles of both, the passes' own lengths from the daemon's log, and (b) against the bound of
 * 50 ms at the 99th percentile. Between the two, Maui's showq and checkjob on that queue, through the
 * client, against their bounds of 1 s and 50 ms, and what a call waits while the queue is sent; and what a scrape of its
 * metrics a second costs, against 1 % of a core. */
#include "tests/unit/local_svc/site.h"

#include <sys/wait.h>

#include "proto/nui/v1/admin.pb-c.h"
#include "proto/nui/v1/health.pb-c.h"

enum { RUNNING = 200, IN_FLIGHT = 64, SAMPLES = 4000, GAP_US = 3000 };

static unsigned job_count = 100000, node_count = 10000, depth = 100;

static const char policy_text[] =
    "BACKFILLPOLICY FIRSTFIT\nQUEUETIMEWEIGHT 2\nXFACTORWEIGHT 10\n"
    "CREDWEIGHT 1\nUSERWEIGHT 1\nCLASSWEIGHT 1\nRESWEIGHT 1\nPROCWEIGHT 2\nPEWEIGHT 1\nFSWEIGHT 1\n"
    "FSUSERWEIGHT 10\nFSACCOUNTWEIGHT 5\nFSPOLICY DEDICATEDPS\nFSINTERVAL 1:00:00\nFSDEPTH 7\n"
    "FSDECAY 0.8\nUSERCFG[DEFAULT] FSTARGET=25.0 MAXJOB=100000,200000 MAXPROC=400000,500000\n"
    "PEERCAP[DEFAULT] HOLDS=1000000\n";

/* --- submitting, many in flight ------------------------------------------------------------ */

struct feed {
    struct site *s;
    unsigned sent, answered, accepted, total, in_flight;
    bool waiting; /* jobs for the queue, not those that fill the machine */
    char last_id[64];
    uint64_t seed;
};

static uint64_t draw (struct feed *f, uint64_t most)
{
    f->seed ^= f->seed << 13;
    f->seed ^= f->seed >> 7;
    f->seed ^= f->seed << 17;
    return f->seed % most;
}

static void feed_one (struct feed *f);

static void on_submitted (void *arg, const struct rpc_result *result)
{
    struct feed *f = arg;
    f->in_flight--;
    f->answered++;
    if (result->status == RPC_OK) {
        const Nui__Local__V1__SubmitReply *reply =
            (const Nui__Local__V1__SubmitReply *)result->reply;
        if (reply->accepted)
            snprintf (f->last_id, sizeof f->last_id, "%s", reply->site_job_id);
        else if (f->accepted == 0)
            fprintf (stderr, "refused: %s\n", reply->reason ? reply->reason->text : "");
        f->accepted += reply->accepted;
    } else
        fprintf (stderr, "submit: %s\n", result->message);
    feed_one (f);
}

static void feed_one (struct feed *f)
{
    static unsigned serial;
    if (f->sent == f->total)
        return;
    struct job_make make = {.script = "#!/bin/sh\nexec sleep 100000\n",
                            .tasks = node_count * 16 / RUNNING,
                            .walltime = (86400 + 60 * (duration_us)(f->sent % 97)) * US_PER_S};
    if (f->waiting) {
        make.tasks = 16 + (uint32_t)draw (f, 64) * (uint32_t)draw (f, 64);
        make.walltime = (600 + 300 * (duration_us)draw (f, 200)) * US_PER_S;
    }
    char id[64];
    snprintf (id, sizeof id, "grid.%u", ++serial);
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    request.envelope = job_envelope (f->s, &make);
    request.component = (char *)"main";
    request.grid_job_id = id;
    struct rpccallout_config call = {.service = &nui__local__v1__local__descriptor,
                                     .method = "Submit",
                                     .request = &request.base,
                                     .timeout = 300 * US_PER_S,
                                     .idempotent = true,
                                     .done = on_submitted,
                                     .arg = f};
    f->sent++;
    f->in_flight++;
    rpcclient_start (f->s->as_meta, &call);
    envelope_free (request.envelope);
}

static void feed_run (struct feed *f, const char *what)
{
    duration_us begun = clock_monotonic_us ();
    unsigned shown = 0;
    for (unsigned i = 0; i < IN_FLIGHT; i++)
        feed_one (f);
    while (f->answered < f->total) {
        event_base_loop (f->s->base, EVLOOP_ONCE);
        if (f->answered - shown >= 10000)
            fprintf (stderr, "%s: %u/%u\n", what, shown = f->answered, f->total);
    }
    double seconds = (double)(clock_monotonic_us () - begun) / 1e6;
    printf ("%-28s %7u jobs, %u accepted, %.0f per second\n", what, f->total, f->accepted,
            f->total / seconds);
    assert_int_equal (f->accepted, f->total);
}

/* --- latency ------------------------------------------------------------------------------- */

static int by_value (const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double probe (struct site *s, const char *what, struct feed *churn)
{
    static int64_t sample[SAMPLES];
    for (unsigned i = 0; i < SAMPLES; i++) {
        Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
        struct err err = {0};
        request.service = (char *)"";
        if (churn && i % 16 == 0) { /* a change that calls for a pass, about twenty a second */
            churn->total = churn->sent + 1;
            feed_one (churn);
        }
        duration_us begun = clock_monotonic_us ();
        if (rpcclient_call (s->as_operator, &grpc__health__v1__health__descriptor, "Check",
                            &request.base, 30 * US_PER_S, true, NULL, &err) != 0)
            fail_msg ("%s", err.text);
        sample[i] = clock_monotonic_us () - begun;
        struct timeval gap = {0, GAP_US};
        event_base_loopexit (s->base, &gap);
        event_base_dispatch (s->base);
    }
    qsort (sample, SAMPLES, sizeof *sample, by_value);
    double p99 = (double)sample[SAMPLES * 99 / 100] / 1e3;
    printf ("%-28s p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, longest %.2f ms\n", what,
            (double)sample[SAMPLES / 2] / 1e3, (double)sample[SAMPLES * 9 / 10] / 1e3, p99,
            (double)sample[SAMPLES - 1] / 1e3);
    return p99;
}

/* Lengths of the passes that the daemon itself logged, each without what was done between its slices; and
 * the longest slice of all. */
static void passes_print (struct site *s, const char *what)
{
    char path[128], line[1024];
    static int64_t length[100000];
    int64_t slice = 0;
    unsigned count = 0, given_up = 0;
    snprintf (path, sizeof path, "%s/log", s->dir);
    FILE *f = fopen (path, "r");
    while (f && fgets (line, sizeof line, f)) {
        const char *at = strstr (line, " pass done "), *us = at ? strstr (at, " us=") : NULL;
        const char *longest = us ? strstr (us, " longest_us=") : NULL;
        const char *again = us ? strstr (us, " given_up=") : NULL;
        if (!us || !longest || !again || count == 100000)
            continue;
        length[count++] = atoll (us + 4);
        slice = atoll (longest + 12) > slice ? atoll (longest + 12) : slice;
        given_up += (unsigned)atoi (again + 10);
    }
    if (f) {
        fclose (f);
        f = fopen (path, "w"); /* what comes next is counted by itself */
        fclose (f);
    }
    if (!count)
        return;
    qsort (length, count, sizeof *length, by_value);
    printf (
        "%-28s %u passes, p50 %.1f ms, p99 %.1f ms, longest %.1f ms; longest slice %.1f ms; %u begun "
        "anew\n",
        what, count, (double)length[count / 2] / 1e3, (double)length[count * 99 / 100] / 1e3,
        (double)length[count - 1] / 1e3, (double)slice / 1e3, given_up);
}

/* --- Maui's commands on the long queue ------------------------------------------------------ */

struct counted {
    unsigned rows, chunks;
    bool done;
};

static void on_chunk (void *arg, const ProtobufCMessage *message)
{
    struct counted *c = arg;
    c->rows += (unsigned)((const Nui__Local__V1__QueueChunk *)message)->n_jobs;
    c->chunks++;
}

static void on_end (void *arg, const struct rpc_result *result)
{
    assert_int_equal (result->status, RPC_OK);
    ((struct counted *)arg)->done = true;
}

/* Small calls on another connection while the whole queue is being sent: how long they wait. */
static void queue_stream (struct site *s)
{
    Nui__Local__V1__QueueRequest request = NUI__LOCAL__V1__QUEUE_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckRequest ping = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    struct counted counted = {0};
    struct rpccallout_config call = {.service = &nui__local__v1__admin__descriptor,
                                     .method = "Queue",
                                     .request = &request.base,
                                     .on_message = on_chunk,
                                     .done = on_end,
                                     .arg = &counted};
    int64_t longest = 0;
    unsigned pings = 0;
    ping.service = (char *)"";
    duration_us begun = clock_monotonic_us ();
    rpcclient_start (s->as_local, &call);
    while (!counted.done) {
        struct err err = {0};
        duration_us at = clock_monotonic_us ();
        if (rpcclient_call (s->as_operator, &grpc__health__v1__health__descriptor, "Check",
                            &ping.base, 30 * US_PER_S, true, NULL, &err) != 0)
            fail_msg ("%s", err.text);
        if (clock_monotonic_us () - at > longest)
            longest = clock_monotonic_us () - at;
        pings++;
    }
    printf ("the queue as a stream        %u jobs in %u pieces, %.3f s; of %u calls meanwhile the "
            "longest %.2f ms\n",
            counted.rows, counted.chunks, (double)(clock_monotonic_us () - begun) / 1e6, pings,
            (double)longest / 1e3);
}

/* The client as a person calls it, over the cluster's socket. Returns seconds, the best of three. */
static double command (struct site *s, const char *words)
{
    char line[512];
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        snprintf (line, sizeof line, "%s --config %s/nui.cfg %s > %s/out", NUI_PROGRAM, s->dir,
                  words, s->dir);
        duration_us begun = clock_monotonic_us ();
        int status = system (line);
        double took = (double)(clock_monotonic_us () - begun) / 1e6;
        if (!WIFEXITED (status) || WEXITSTATUS (status) != 0)
            fail_msg ("%s: %d", words, status);
        best = took < best ? took : best;
    }
    return best;
}

static void admin_commands (struct site *s, const char *waiting)
{
    char path[128], words[128];
    snprintf (path, sizeof path, "%s/nui.cfg", s->dir);
    FILE *f = fopen (path, "w");
    fprintf (f, "GRID test\nSITECFG[alpha] SOCKET=%s/sock\n", s->dir);
    fclose (f);
    queue_stream (s);
    double showq = command (s, "showq"), json = command (s, "showq --json");
    snprintf (words, sizeof words, "checkjob %s", waiting);
    double check = command (s, words);
    printf ("showq                        %.3f s; / 1 s: %.2f (--json %.3f s)\n", showq, showq,
            json);
    printf ("checkjob                     %.1f ms; / 50 ms: %.2f\n", check * 1e3, check / 0.05);
}

/* The processor time that the daemon has spent on its metrics, as they say; this is a scrape. */
static double scrape (unsigned port)
{
    char line[1024];
    double used = -1;
    snprintf (line, sizeof line, "curl -s http://127.0.0.1:%u/metrics", port);
    FILE *f = popen (line, "r");
    while (f && fgets (line, sizeof line, f))
        sscanf (line, "nui_metrics_cpu_seconds_total %lf", &used);
    if (f)
        pclose (f);
    assert_true (used >= 0);
    return used;
}

static unsigned metrics_port (struct site *s)
{
    char path[128], line[1024];
    unsigned port = 0;
    snprintf (path, sizeof path, "%s/log", s->dir);
    FILE *f = fopen (path, "r");
    while (f && fgets (line, sizeof line, f)) {
        const char *at = strstr (line, " metrics listen="), *is = at ? strstr (at, "port=") : NULL;
        port = is ? (unsigned)atoi (is + 5) : port;
    }
    if (f)
        fclose (f);
    assert_int_not_equal (port, 0);
    return port;
}

static void pause_s (struct site *s, unsigned seconds)
{
    struct timeval gap = {.tv_sec = seconds};
    event_base_loopexit (s->base, &gap);
    event_base_dispatch (s->base);
}

static void scrapes (struct site *s, unsigned port)
{
    enum { SECONDS = 30 };
    double begun = scrape (port);
    for (unsigned i = 0; i < SECONDS; i++) {
        pause_s (s, 1);
        scrape (port);
    }
    double cost = (scrape (port) - begun) / SECONDS;
    printf ("a page a second              %.2f ms, %.3f %% of a core; / 1 %%: %.2f\n", cost * 1e3,
            cost * 100, cost / 0.01);
}

static bool all_running (struct site *s, void *arg)
{
    (void)arg;
    return s->report && s->report->jobs_running >= RUNNING;
}

static void a_long_queue (void **state)
{
    struct site *s = *state;
    char config[2048];
    snprintf (
        config, sizeof config,
        "%sMETRICS 127.0.0.1:0\nRESERVATIONDEPTH[0] %u\nNODECFG[n[00001-%05u]] PROCS=16 MEM=64G\n",
        policy_text, depth, node_count);
    site_start (s, config);
    unsigned port = metrics_port (s);
    struct feed fill = {.s = s, .total = RUNNING, .seed = 88172645463325252u};
    feed_run (&fill, "running jobs");
    site_wait (s, all_running, NULL, "the machine is full");
    struct feed queue = {.s = s, .total = job_count, .waiting = true, .seed = 362436069u};
    feed_run (&queue, "queue");
    passes_print (s, "passes while it filled");
    probe (s, "a call, quiet", NULL);
    scrapes (s, port);
    admin_commands (s, queue.last_id);
    struct feed churn = {.s = s, .waiting = true, .seed = 521288629u};
    passes_print (s, "passes when quiet");
    double p99 = probe (s, "a call, passes all the time", &churn);
    passes_print (s, "passes all the time");
    printf ("p99 during passes / 50 ms: %.2f\n", p99 / 50);
    assert_int_equal (churn.accepted + churn.in_flight, churn.sent);
}

int main (int argc, char **argv)
{
    if (argc > 1)
        job_count = (unsigned)atoi (argv[1]);
    if (argc > 2)
        node_count = (unsigned)atoi (argv[2]);
    if (argc > 3)
        depth = (unsigned)atoi (argv[3]);
    setvbuf (stdout, NULL, _IOLBF, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_long_queue, site_setup, site_teardown)};
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
