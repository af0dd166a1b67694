/* rm_trace: a heap of jobs by the moment at which something of them is to be told. The mode
 * SIMULATION (svc/modes/simulate.c) creates it and drives its clock. It reads no clock and
 * starts no process. */
#include "local/rm/rm_trace.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

enum { JOB_ID_MAX = 96, KEY_MAX = JOB_ID_MAX + 12, IN_NO_HEAP = -1 };

/* A job of the trace. It is in the heap while something of it is to come. */
struct trace_job {
    char key[KEY_MAX]; /* "alpha.17-0" */
    char job_id[JOB_ID_MAX];
    uint32_t incarnation;
    uint32_t procs;
    bool told_start, suspended;
    enum rm_end end;
    time_us at; /* when its next event is due */
    uint64_t order;
    duration_us left; /* of its run while it is suspended */
    time_us ends_at;
    struct rm_status status;
    int64_t heap_at;
    UT_hash_handle hh;
};

struct rm_trace {
    struct rm_trace_config config;
    struct trace_job *jobs;
    struct trace_job **heap;
    uint32_t count, cap;
    uint64_t order;
};

/* --- the heap ----------------------------------------------------------------------------- */

static bool before (const struct trace_job *a, const struct trace_job *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put (struct rm_trace *rm, uint32_t at, struct trace_job *job)
{
    rm->heap[at] = job;
    job->heap_at = at;
}

static void sift (struct rm_trace *rm, uint32_t at, struct trace_job *job)
{
    while (at > 0 && before (job, rm->heap[(at - 1) / 2])) {
        put (rm, at, rm->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (uint32_t child; (child = 2 * at + 1) < rm->count; at = child) {
        if (child + 1 < rm->count && before (rm->heap[child + 1], rm->heap[child]))
            child++;
        if (!before (rm->heap[child], job))
            break;
        put (rm, at, rm->heap[child]);
    }
    put (rm, at, job);
}

static void leave (struct rm_trace *rm, struct trace_job *job)
{
    if (job->heap_at == IN_NO_HEAP)
        return;
    uint32_t at = (uint32_t)job->heap_at;
    struct trace_job *last = rm->heap[--rm->count];
    job->heap_at = IN_NO_HEAP;
    if (last != job)
        sift (rm, at, last);
}

static void due (struct rm_trace *rm, struct trace_job *job, time_us at)
{
    leave (rm, job);
    if (rm->count == rm->cap) {
        rm->cap = rm->cap ? rm->cap * 2 : 256;
        rm->heap = realloc (rm->heap, rm->cap * sizeof *rm->heap);
        assert (rm->heap && "out of memory");
    }
    job->at = at;
    job->order = ++rm->order;
    sift (rm, rm->count++, job);
}

/* --- operations --------------------------------------------------------------------------- */

static struct trace_job *find (struct rm_trace *rm, const char *job_id, uint32_t incarnation)
{
    char key[KEY_MAX];
    struct trace_job *job;
    snprintf (key, sizeof key, "%.95s-%u", job_id, incarnation);
    HASH_FIND_STR (rm->jobs, key, job);
    return job;
}

static int missing (const char *job_id, struct err *err)
{
    return err_set (err, ERR_NOT_FOUND, "job %.95s was never started", job_id);
}

static int trace_start (void *self, const struct rm_job *wanted, struct err *err)
{
    struct rm_trace *rm = self;
    time_us now = rm->config.now (rm->config.arg);
    if (find (rm, wanted->job_id, wanted->incarnation))
        return err_set (err, ERR_EXISTS, "job %.95s was started before", wanted->job_id);
    struct trace_job *job = calloc (1, sizeof *job);
    if (!job)
        return err_set (err, ERR_NOMEM, "no memory for a job");
    snprintf (job->job_id, sizeof job->job_id, "%.95s", wanted->job_id);
    snprintf (job->key, sizeof job->key, "%.95s-%u", wanted->job_id, wanted->incarnation);
    job->incarnation = wanted->incarnation;
    job->procs = wanted->procs;
    job->heap_at = IN_NO_HEAP;
    duration_us run = rm->config.run_of (rm->config.arg, wanted->job_id, wanted->walltime);
    time_us start = wanted->start > now ? wanted->start : now;
    job->end = run > wanted->walltime ? RM_END_TIMEOUT : RM_END_EXITED;
    job->ends_at = start + (run > wanted->walltime ? wanted->walltime : run);
    HASH_ADD_STR (rm->jobs, key, job);
    due (rm, job, start);
    rm->config.wake (rm->config.arg);
    return 0;
}

static int trace_adopt (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                        struct err *err)
{
    (void)mark;
    return find (self, job_id, incarnation) ? 0 : missing (job_id, err);
}

static int trace_signal (void *self, const char *job_id, uint32_t incarnation, int signo,
                         struct err *err)
{
    struct rm_trace *rm = self;
    struct trace_job *job = find (rm, job_id, incarnation);
    if (!job || job->status.ended)
        return missing (job_id, err);
    if (signo != SIGKILL && signo != SIGTERM)
        return 0; /* it takes notice of no other */
    job->end = RM_END_SIGNALLED;
    job->status.exit_code = 128 + signo;
    job->suspended = false;
    job->ends_at = rm->config.now (rm->config.arg);
    due (rm, job, job->ends_at);
    rm->config.wake (rm->config.arg);
    return 0;
}

static int trace_suspend (void *self, const char *job_id, uint32_t incarnation, bool on,
                          struct err *err)
{
    struct rm_trace *rm = self;
    struct trace_job *job = find (rm, job_id, incarnation);
    time_us now = rm->config.now (rm->config.arg);
    if (!job || job->status.ended || !job->told_start)
        return missing (job_id, err);
    if (on && !job->suspended) {
        job->left = job->ends_at - now;
        leave (rm, job);
    } else if (!on && job->suspended) {
        job->ends_at = now + job->left;
        due (rm, job, job->ends_at);
    }
    job->suspended = on;
    return 0;
}

static int trace_cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct rm_trace *rm = self;
    struct trace_job *job = find (rm, job_id, incarnation);
    if (!job || job->status.ended)
        return missing (job_id, err);
    job->end = RM_END_CANCELLED;
    job->suspended = false;
    job->ends_at = rm->config.now (rm->config.arg);
    due (rm, job, job->ends_at);
    rm->config.wake (rm->config.arg);
    return 0;
}

static int trace_output (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                         const char *stream, struct err *err)
{
    (void)mark;
    (void)self;
    (void)incarnation;
    (void)stream;
    err_set (err, ERR_NOT_FOUND, "job %.95s is simulated: it has no output", job_id);
    return -1;
}

static int trace_poll (void *self, struct err *err)
{
    (void)self;
    (void)err;
    return 0;
}

static bool trace_node_up (void *self, const char *name)
{
    (void)self;
    (void)name;
    return true;
}

static void trace_destroy (void *self)
{
    struct rm_trace *rm = self;
    struct trace_job *job, *next;
    HASH_ITER (hh, rm->jobs, job, next) {
        HASH_DEL (rm->jobs, job);
        free (job);
    }
    free (rm->heap);
    free (rm);
}

static const struct rm_ops trace_ops = {
    .type = "TRACE",
    .warns = true,
    .simulated = true,
    .start = trace_start,
    .adopt = trace_adopt,
    .signal = trace_signal,
    .cancel = trace_cancel,
    .output_open = trace_output,
    .poll = trace_poll,
    .node_up = trace_node_up,
    .suspend = trace_suspend,
    .destroy = trace_destroy,
};

int rm_trace_create (const struct rm_trace_config *config, struct rm *out, struct err *err)
{
    struct rm_trace *rm = calloc (1, sizeof *rm);
    if (!rm)
        return err_set (err, ERR_NOMEM, "trace: no memory");
    rm->config = *config;
    *out = (struct rm){&trace_ops, rm};
    return 0;
}

/* --- time --------------------------------------------------------------------------------- */

static void tell (struct rm_trace *rm, struct trace_job *job, enum rm_event_kind kind)
{
    struct rm_status status = job->status; /* the callback may make the job go away */
    char job_id[JOB_ID_MAX];
    snprintf (job_id, sizeof job_id, "%s", job->job_id);
    struct rm_event event = {
        .kind = kind, .job_id = job_id, .incarnation = job->incarnation, .status = &status};
    rm->config.on_event (rm->config.arg, &event);
}

static void started (struct rm_trace *rm, struct trace_job *job)
{
    job->told_start = true;
    job->status.started = true;
    job->status.start = job->at;
    due (rm, job, job->ends_at);
    tell (rm, job, RM_EVENT_STARTED);
}

static void ended (struct rm_trace *rm, struct trace_job *job)
{
    leave (rm, job);
    job->status.ended = true;
    job->status.end = job->end;
    job->status.end_at = job->at;
    job->status.cpu_known = job->told_start;
    job->status.cpu_time = job->told_start ? (job->at - job->status.start) * job->procs : 0;
    tell (rm, job, RM_EVENT_ENDED);
}

void rm_trace_advance (struct rm *self, time_us now)
{
    struct rm_trace *rm = self->self;
    while (rm->count > 0 && rm->heap[0]->at <= now) {
        struct trace_job *job = rm->heap[0];
        if (!job->told_start && job->end != RM_END_CANCELLED)
            started (rm, job);
        else
            ended (rm, job);
    }
}

time_us rm_trace_next (const struct rm *self)
{
    const struct rm_trace *rm = self->self;
    return rm->count > 0 ? rm->heap[0]->at : TIME_US_MAX;
}
