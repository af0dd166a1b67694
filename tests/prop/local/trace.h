/* trace: logs and expected results for the tests and benchmarks of the local core.
 *
 * Reads Standard Workload Format (plain or gz) the way tests/data and the shared folder hold it:
 * normalised, one job per line. Exits with a message on a malformed line: for tests only. */
#ifndef NUI_TESTS_PROP_LOCAL_TRACE_H
#define NUI_TESTS_PROP_LOCAL_TRACE_H

#include "local/sim/engine.h"

struct trace {
    struct engine_job *job;
    uint64_t count;
    uint32_t procs; /* of the machine: "; MaxProcs:" */
};

/* Absolute path of a file in the shared folder ($NUI_SHARED, else ../shared beside the sources);
 * NULL: it is not there. The text holds until the next call. */
const char *trace_shared (const char *relative);

/* At most first jobs (0: all). */
struct trace trace_load (const char *path, uint64_t first);
void trace_free (struct trace *trace);

/* Start seconds per job of the trace from a `job_id,submit,start,end,procs` file; INT64_MIN where
 * the file says nothing of a job. Caller frees. */
int64_t *trace_expected (const char *path, const struct trace *trace);

/* A policy for replays: by submission, one-processor nodes; seal it after changing. */
struct policy *trace_policy (const struct cred_names *names, enum backfill_policy backfill,
                             enum reservation_binding binding, uint32_t depth);

/* Runs it on as many one-processor nodes as the trace says; results are the caller's to free. */
struct engine_result *trace_run (const struct trace *trace, const struct policy *policy,
                                 bool pass_per_event, struct engine_summary *summary);

/* Deterministic numbers. */
uint64_t trace_random (uint64_t *state);

/* A made-up log: lognormal-ish sizes and run times, loose limits, load as a share of the machine. */
struct trace trace_generate (uint64_t jobs, uint32_t procs, double load, uint64_t seed);

#endif
