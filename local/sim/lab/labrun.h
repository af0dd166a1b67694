/* labrun: one simulation of an experiment, and what is kept of it.
 *
 * A run is described by values only, so that it can be done in another process and known again by
 * its key. What is kept is one record for each job; every number of a page is computed from those.
 */
#ifndef NUI_LOCAL_SIM_LAB_LABRUN_H
#define NUI_LOCAL_SIM_LAB_LABRUN_H

#include "local/trace/workload.h"
#include "proto/base/strbuf.h"

enum lab_scheduler {
    LAB_CORE,
    LAB_PBSFIFO,
    LAB_LOG /* nothing is simulated: as the log says it was */
};

/* One job of one run. Times in seconds; start and end -1: never started. */
struct lab_job {
    double submit, start, end, limit, run;
    uint32_t number;
    uint32_t procs;
    uint32_t user; /* CRED_NONE: nobody's */
    uint32_t account;
    uint32_t backfilled;
    uint32_t agent; /* who made it, in runs with user agents */
};

struct lab_result {
    uint64_t count;
    struct lab_job *job; /* by submit time; owned */
    double wall_s;       /* of the simulation */
    uint64_t passes;
};

struct agents_options; /* agents.h */

struct lab_run {
    const char *label;
    const char *config;      /* text of a maui.cfg */
    const char *config_path; /* the file it was read from, a site's whole one perhaps; or NULL */
    uint64_t seed;           /* of what the policy draws */
    enum lab_scheduler scheduler;        /* LAB_PBSFIFO: config still says what a site is */
    duration_us starving;                /* LAB_PBSFIFO */
    const struct workload *workload;     /* or agents */
    const struct agents_options *agents; /* NULL: the workload's jobs */
    const struct machine *machine;
    struct cred_names *names;
    struct lab_result result; /* once done */
};

typedef void lab_run_progress (void *self, uint64_t jobs_done);

/* Whether its configuration can be read. */
int lab_run_check (const struct lab_run *run, struct err *err);
/* Of everything that decides its result, this program included. */
uint64_t lab_run_key (const struct lab_run *run);
/* How many jobs its progress counts to. */
uint64_t lab_run_size (const struct lab_run *run);
int lab_run_simulate (const struct lab_run *run, lab_run_progress *progress, void *self,
                      struct lab_result *out, struct err *err);

/* As bytes, for a pipe or a file of this machine: a header with the key and a sum at the end. */
void lab_result_write (const struct lab_result *result, uint64_t key, struct strbuf *out);
/* ERR_INVALID: not whole, or of another run. */
int lab_result_read (const void *bytes, size_t len, uint64_t key, struct lab_result *out,
                     struct err *err);
void lab_result_free (struct lab_result *result);

#endif
