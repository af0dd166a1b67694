/* rm_native: the operations of the adapter for a resource manager that programs of the site's ask and tell (RMCFG
 * TYPE=NATIVE): start, cancel, hold, suspend and what else the service wants. native_job.c follows each job. It never
 * blocks: every wish is a call under way, and while no good answer comes nothing is concluded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/native/native_i.h"
#include "local/rm/rm_kind.h"
#include "proto/base/clock.h"

/* Ends are said in whole seconds, and by another clock perhaps. */
static const duration_us since_margin = 5 * US_PER_S;

static int native_start (void *self, const struct rm_job *spec, struct err *err)
{
    struct native *native = self;
    if (spec->host_count == 0)
        return err_set (err, ERR_INVALID, "job %s has no nodes", spec->job_id);
    if (!spec->rm_id)
        return native_start_ours (native, spec, err);
    struct native_job *job = native_job_by_rm (native, spec->rm_id);
    if (!job || strcmp (job->job_id, spec->job_id) != 0 || job->incarnation != spec->incarnation)
        return err_set (err, ERR_NOT_FOUND, "the resource manager has no job %s", spec->rm_id);
    if (job->phase != NATIVE_SETTLED)
        return err_set (err, ERR_EXISTS, "job %s is being started", spec->job_id);
    free (job->tasklist);
    job->tasklist = native_tasklist (spec);
    job->asked = true;
    job->phase = NATIVE_START;
    job->deadline = clock_monotonic_us () + native->patience;
    native_job_settle (job);
    return 0;
}

static int native_adopt (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                         struct err *err)
{
    struct native *native = self;
    int rc = name_check ("job id", job_id, err);
    if (rc != 0 || native_job_by_id (native, job_id, incarnation))
        return rc;
    struct native_job *job = native_job_new (native, "", 0);
    job->ours = job->asked = true;
    job->phase = NATIVE_FIND;
    native_job_name (job, job_id, incarnation);
    snprintf (job->mark, sizeof job->mark, "%s", jobdir_or (mark, ""));
    native_recall (job);
    native->job_text_again = true;
    return 0;
}

static int native_bind (void *self, const char *rm_id, time_us submit, const char *job_id,
                        uint32_t incarnation, time_us started, struct err *err)
{
    struct native *native = self;
    int rc = name_check ("job id", job_id, err);
    if (rc != 0)
        return rc;
    struct native_job *job = native_job_by_rm (native, rm_id);
    if (!job)
        job = native_job_new (native, rm_id, submit);
    native_job_name (job, job_id, incarnation);
    job->ran_since = started;
    if (job->state != NATIVE_NONE)
        native_job_settle_soon (job); /* what it is already is told from the loop */
    return 0;
}

/* For a wish about it: none while we only look. */
static struct native_job *job_of (struct native *native, const char *job_id, uint32_t incarnation,
                                  struct err *err)
{
    struct native_job *job =
        native->observe ? NULL : native_job_by_id (native, job_id, incarnation);
    if (!job)
        err_set (err, ERR_NOT_FOUND, "job %s is not with the resource manager", job_id);
    return job;
}

static int native_signal (void *self, const char *job_id, uint32_t incarnation, int signo,
                          struct err *err)
{
    if (!job_of (self, job_id, incarnation, err))
        return ERR_NOT_FOUND;
    return err_set (err, ERR_UNSUPPORTED, "signal %d: no call of TYPE=NATIVE carries one", signo);
}

static int native_cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct native_job *job = job_of (self, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    job->cancel = true;
    native_job_settle_in (job, 0);
    return 0;
}

static int native_output_open (void *self, const char *job_id, uint32_t incarnation,
                               const char *mark, const char *stream, struct err *err)
{
    struct native *native = self;
    return jobdir_output_open (native->dir, job_id, incarnation, mark, stream, err);
}

static int native_poll (void *self, struct err *err)
{
    (void)err;
    native_look (self);
    return 0;
}

static bool native_node_up (void *self, const char *name)
{
    const struct native *native = self;
    uint32_t low = 0, high = native->node_count;
    while (low < high) { /* they are sorted by strverscmp */
        uint32_t middle = (low + high) / 2;
        int order = strverscmp (native->nodes[middle].name, name);
        if (order == 0)
            return native->nodes[middle].state == RM_NODE_UP;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool native_fresh (void *self)
{
    return ((struct native *)self)->fresh;
}

static time_us native_settled (void *self)
{
    return ((struct native *)self)->settled;
}

static const struct rm_node *native_nodes (void *self, uint32_t *count_out)
{
    const struct native *native = self;
    *count_out = native->node_count;
    return native->nodes;
}

static const char *native_licences (void *self)
{
    const struct native *native = self;
    return native->licences ? native->licences : "";
}

static int native_hold (void *self, const char *job_id, uint32_t incarnation, enum rm_hold kind,
                        bool on, struct err *err)
{
    struct native_job *job = job_of (self, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    if (job->state != NATIVE_PENDING || job->phase != NATIVE_SETTLED)
        return err_set (err, ERR_CONFLICT, "job %s does not wait", job_id);
    job->hold = !on                    ? NATIVE_HOLD_RELEASE
                : kind == RM_HOLD_USER ? NATIVE_HOLD_USER
                                       : NATIVE_HOLD_ADMIN;
    native_job_settle_in (job, 0);
    return 0;
}

static int native_requeue (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct native_job *job = job_of (self, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    if (job->ours) /* its next incarnation is another job there */
        return native_cancel (self, job_id, incarnation, err);
    job->requeue = true;
    native_job_settle_in (job, 0);
    return 0;
}

static int native_suspend (void *self, const char *job_id, uint32_t incarnation, bool on,
                           struct err *err)
{
    struct native_job *job = job_of (self, job_id, incarnation, err);
    if (!job)
        return ERR_NOT_FOUND;
    job->suspend = on ? NATIVE_TO_SUSPEND : NATIVE_TO_RESUME;
    native_job_settle_in (job, 0);
    return 0;
}

static int native_forget (void *self, const struct rm_gone *jobs, uint32_t count,
                          void (*done) (void *arg, bool ok), void *arg, struct err *err)
{
    struct native *native = self;
    return remover_go (native->remover, jobs, count, done, arg, err);
}

static void native_destroy (void *self)
{
    struct native *native = self;
    if (!native)
        return;
    remover_destroy (native->remover);
    native_calls_stop (native);
    native_jobs_stop (native);
    native_look_stop (native);
    if (native->dir >= 0)
        close (native->dir);
    free (native->site);
    free (native->launcher);
    free (native->job_dir);
    free (native);
}

/* What is not configured is not there. */
static void ops_fill (struct native *native, const char *type)
{
    bool both = native_can (native, RM_CALL_JOBSUSPEND) && native_can (native, RM_CALL_JOBRESUME);
    native->ops = (struct rm_ops){
        .type = type,
        .start = native_start,
        .adopt = native_adopt,
        .signal = native_signal,
        .cancel = native_cancel,
        .output_open = native_output_open,
        .poll = native_poll,
        .forget = native_forget,
        .node_up = native_node_up,
        .destroy = native_destroy,
        .fresh = native_fresh,
        .settled = native_settled,
        .nodes = native_nodes,
        .licences = native_licences,
        .bind = native_bind,
        .hold = native_can (native, RM_CALL_JOBMODIFY) ? native_hold : NULL,
        .requeue = native_can (native, RM_CALL_JOBREQUEUE) ? native_requeue : NULL,
        .suspend = both ? native_suspend : NULL,
    };
}

static int calls_check (const struct native *native, struct err *err)
{
    static const enum rm_call needed[] = {RM_CALL_JOBSTART, RM_CALL_JOBCANCEL};
    for (size_t i = 0; !native->observe && i < sizeof needed / sizeof *needed; i++)
        if (!native_can (native, needed[i]))
            return err_set (err, ERR_INVALID,
                            "RMCFG has no %s (nor ADAPTER): without it only SERVERMODE TEST is "
                            "possible, which starts nothing",
                            native_url_name (needed[i]));
    return 0;
}

static int native_open (const struct rm_kind *kind, const struct rm_config *config, struct rm *out,
                        struct err *err)
{
    struct native *native = calloc (1, sizeof *native);
    struct err local = {0};
    if (!native)
        return err_set (err, ERR_NOMEM, "no memory for the resource manager");
    native->base = config->base;
    native->log = config->log;
    native->on_event = config->on_event;
    native->arg = config->arg;
    native->observe = config->observe;
    native->poll_every = config->options->poll;
    native->patience = config->options->patience;
    native->since = config->since ? config->since - since_margin : clock_now_us ();
    native->settled = config->observe ? 0 : config->since;
    snprintf (native->since_word, sizeof native->since_word, "NUI_SINCE=%lld",
              (long long)(native->since / US_PER_S));
    native->site = strdup (config->site);
    native->launcher = config->options->launcher ? strdup (config->options->launcher) : NULL;
    native->dir = -1;
    int rc = jobdir_parent (config->job_dir, &native->job_dir, &native->dir, &local);
    if (rc == 0)
        rc = native_calls_init (native, config, kind == &rm_wiki_kind, &local);
    if (rc == 0)
        rc = calls_check (native, &local);
    if (rc == 0 && !(native->remover =
                         remover_create (native->base, native->log, native->job_dir, native->dir)))
        rc = err_set (&local, ERR_NOMEM, "no memory for the resource manager");
    if (rc == 0)
        rc = native_look_init (native, &local);
    if (rc != 0) {
        native_destroy (native);
        return err_set (err, rc, "%s", local.text);
    }
    ops_fill (native, kind->name);
    *out = (struct rm){&native->ops, native};
    return 0;
}

int rm_native_open (const struct rm_config *config, struct rm *out, struct err *err)
{
    return native_open (&rm_native_kind, config, out, err);
}

int rm_wiki_open (const struct rm_config *config, struct rm *out, struct err *err)
{
    return native_open (&rm_wiki_kind, config, out, err);
}
