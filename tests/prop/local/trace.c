#include "tests/prop/local/trace.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

const char *trace_shared (const char *relative)
{
    static char path[1024];
    const char *root = getenv ("NUI_SHARED");

    snprintf (path, sizeof path, "%s/%s", root ? root : NUI_SOURCE_DIR "/../shared", relative);
    return access (path, R_OK) == 0 ? path : NULL;
}

static gzFile open_or_die (const char *path)
{
    gzFile file = gzopen (path, "rb");

    if (file == NULL) {
        fprintf (stderr, "cannot open %s\n", path);
        exit (1);
    }
    gzbuffer (file, 1 << 18);
    return file;
}

static void die (const char *path, const char *line)
{
    fprintf (stderr, "%s: malformed line: %s\n", path, line);
    exit (1);
}

static void job_from_line (struct trace *trace, const char *path, const char *line)
{
    double f[18];
    char *at = (char *)line, *end;
    struct engine_job *j;

    for (int i = 0; i < 18; i++, at = end) {
        f[i] = strtod (at, &end);
        if (end == at)
            die (path, line);
    }
    if (trace->count % 4096 == 0)
        trace->job = realloc (trace->job, (trace->count + 4096) * sizeof *trace->job);
    assert (trace->job);
    j = &trace->job[trace->count++];
    memset (j, 0, sizeof *j);
    j->number = (uint64_t)f[0];
    j->submit = (time_us)f[1] * US_PER_S;
    j->procs = (uint32_t)(f[7] > 0 ? f[7] : f[4]);
    j->limit = (duration_us)(f[8] > 0 ? f[8] : f[3]) * US_PER_S;
    j->run = (duration_us)f[3] * US_PER_S;
    if (j->run > j->limit)
        j->run = j->limit;
    for (int k = 0; k < CRED_KINDS; k++)
        j->cred[k] = CRED_NONE;
    j->cred[CRED_USER] = f[11] >= 0 ? (uint32_t)f[11] : CRED_NONE;
    j->cred[CRED_GROUP] = f[12] >= 0 ? (uint32_t)f[12] : CRED_NONE;
    j->cred[CRED_QOS] = CRED_DEFAULT;
}

struct trace trace_load (const char *path, uint64_t first)
{
    struct trace trace = {0};
    gzFile file = open_or_die (path);
    char line[1024];

    while (gzgets (file, line, sizeof line)) {
        unsigned procs;
        if (line[0] == ';') {
            if (sscanf (line, "; MaxProcs: %u", &procs) == 1)
                trace.procs = procs;
            continue;
        }
        if (first && trace.count == first)
            break;
        job_from_line (&trace, path, line);
    }
    gzclose (file);
    return trace;
}

void trace_free (struct trace *trace)
{
    free (trace->job);
    trace->job = NULL;
}

int64_t *trace_expected (const char *path, const struct trace *trace)
{
    int64_t *start = malloc ((trace->count + 1) * sizeof *start);
    gzFile file = open_or_die (path);
    char line[1024];
    uint64_t max = 0;
    uint64_t *at;

    for (uint64_t i = 0; i < trace->count; i++) {
        start[i] = INT64_MIN;
        max = trace->job[i].number > max ? trace->job[i].number : max;
    }
    at = calloc (max + 1, sizeof *at);
    assert (start && at);
    for (uint64_t i = 0; i < trace->count; i++)
        at[trace->job[i].number] = i + 1;
    while (gzgets (file, line, sizeof line)) {
        unsigned long long number;
        double submit, begin;
        if (sscanf (line, "%llu,%lf,%lf", &number, &submit, &begin) != 3)
            continue; /* the header */
        if (number <= max && at[number])
            start[at[number] - 1] = (int64_t)begin;
    }
    free (at);
    gzclose (file);
    return start;
}

struct policy *trace_policy (const struct cred_names *names, enum backfill_policy backfill,
                             enum reservation_binding binding, uint32_t depth)
{
    struct policy *policy = policy_create (names);

    policy->backfill_policy = backfill;
    policy->reservation_binding = binding;
    policy->node_allocation = NODEALLOC_FIRSTAVAILABLE;
    policy_bucket_set (policy, 0, depth, NULL, 0);
    return policy;
}

struct engine_result *trace_run (const struct trace *trace, const struct policy *policy,
                                 bool pass_per_event, struct engine_summary *summary)
{
    struct node_spec node = {.partition = 1, .speed_ppm = 1000000};
    struct engine_setup setup = {.policy = policy,
                                 .node = &node,
                                 .node_copies = &trace->procs,
                                 .node_group_count = 1,
                                 .pass_per_event = pass_per_event};
    struct engine_result *result = calloc (trace->count + 1, sizeof *result);
    struct err err = {0};

    assert (result);
    node.configured.v[RES_PROCS] = 1;
    if (engine_run (&setup, trace->job, trace->count, result, summary, &err) != 0) {
        fprintf (stderr, "replay: %s\n", err.text);
        exit (1);
    }
    return result;
}

uint64_t trace_random (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C (0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static double uniform (uint64_t *state)
{
    return ((double)(trace_random (state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal (uint64_t *state)
{
    return sqrt (-2 * log (uniform (state))) * cos (6.283185307179586 * uniform (state));
}

static uint32_t size_draw (uint64_t *state, uint32_t procs)
{
    double share = exp (-2.5 + 1.3 * normal (state)) / 4; /* of the machine */
    double size = uniform (state) < 0.25 ? 1 : share * procs;

    if (size > 4 && uniform (state) < 0.7)
        size = exp2 (round (log2 (size)));
    return size < 1 ? 1 : size > procs ? procs : (uint32_t)size;
}

struct trace trace_generate (uint64_t jobs, uint32_t procs, double load, uint64_t seed)
{
    struct trace trace = {calloc (jobs, sizeof (struct engine_job)), jobs, procs};
    double work = 0, at = 0;

    assert (trace.job);
    for (uint64_t i = 0; i < jobs; i++) {
        struct engine_job *j = &trace.job[i];
        double run = exp (6.5 + 1.8 * normal (&seed));
        double factor = 1 + 6 * uniform (&seed) * uniform (&seed);
        j->number = i + 1;
        j->procs = size_draw (&seed, procs);
        j->run = (duration_us)(run < 1 ? 1 : run > 172800 ? 172800 : run) * US_PER_S;
        j->limit = ((duration_us)((double)j->run / 1e6 * factor) / 300 + 1) * 300 * US_PER_S;
        if (j->limit < j->run)
            j->limit = j->run;
        for (int k = 0; k < CRED_KINDS; k++)
            j->cred[k] = CRED_NONE;
        j->cred[CRED_USER] = (uint32_t)(trace_random (&seed) % 200) + 1;
        j->cred[CRED_QOS] = CRED_DEFAULT;
        work += (double)j->procs * (double)j->run / 1e6;
    }
    for (uint64_t i = 0; i < jobs; i++) { /* Poisson arrivals that offer the load */
        at += -log (uniform (&seed)) * work / (load * procs * (double)jobs);
        trace.job[i].submit = (time_us)at * US_PER_S;
    }
    return trace;
}
