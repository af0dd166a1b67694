/* FEEDBACKPROGRAM is run at the end of each job that ran, with its figures as Maui gives them, as NOTIFICATIONACCOUNT. It
 * reads the history row by row, as statdir.c does, one program at a time beside the loop; how far it has come is on disk after
 * each, so that a kill -9 repeats at most the one that was running. What a program answers is its own affair: another exit
 * code than 0 is logged, and the next job is told. One that cannot be run is tried again each minute. Jobs that ended while
 * there was no program are not told afterwards. */
#include "local/svc/memory/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/child/child.h"
#include "proto/conf/conf.h"

enum {
    LIMIT_S = 30,
    AGAIN_S = 60,
    ARGS = 16,
    ROWS_PER_GO = 32,
};
static const char blob_name[] = "feedback";

struct feedback {
    struct svc *svc;
    struct event *timer;
    struct child *child;
    uint64_t sequence; /* all rows up to here are told */
    uint64_t telling;
    bool known; /* sequence is: from the disk, or from now on */
};

static bool wanted (const struct svc *svc)
{
    const struct settings *s = svc->settings;
    return s->feedback_program && (s->mode.mode == MODE_NORMAL || s->mode.mode == MODE_INTERACTIVE);
}

static void wake_in (struct feedback *f, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    if (!f->child && !evtimer_pending (f->timer, NULL))
        evtimer_add (f->timer, &t);
}

/* How far it has come; 0 rows behind nothing: there is no program. */
static int save (struct feedback *f, bool known, uint64_t sequence)
{
    struct err err = {0};
    char text[32];
    int n = snprintf (text, sizeof text, "%llu", (unsigned long long)sequence);
    int rc = svc_begin (f->svc, &err);
    if (rc == 0)
        rc = local_store_blob_put (f->svc->store, blob_name, text, known ? (size_t)n : 0, &err);
    rc = svc_commit (f->svc, rc, &err);
    if (rc == 0) {
        f->known = known;
        f->sequence = sequence;
    }
    return rc;
}

/* --- one job ------------------------------------------------------------------------------ */

struct row {
    struct feedback *of;
    struct arena *arena;
    const char *arg[CHILD_AS_MAX + ARGS + 2];
    uint64_t sequence;
    bool ran;
};

static char *moment (struct arena *arena, time_us t)
{
    return arena_printf (arena, "%lld", (long long)(t / US_PER_S));
}

/* The guide's sixteen, in its order: 17.1, User Feedback. */
static void args_of (struct row *r, const struct history_job *j, const char **out)
{
    struct arena *a = r->arena;
    double queued = j->start > j->eligible ? (double)(j->start - j->eligible) : 0;
    double run = j->end > j->start ? (double)(j->end - j->start) : 0;
    double load = j->cpu > 0 && run > 0 && j->tasks > 0 ? (double)j->cpu / run / j->tasks : 0;
    const char *const list[ARGS] = {
        arena_printf (a, "%s.%llu", r->of->svc->site, (unsigned long long)j->number),
        arena_strdup (a, j->user),
        "NONE", /* where its mail goes */
        j->state == STORE_JOB_CANCELLED ? "Removed" : "Completed",
        arena_strdup (a, *j->qos_asked ? j->qos_asked
                         : *j->qos     ? j->qos
                                       : "DEFAULT"),
        moment (a, j->submit),
        moment (a, j->start),
        moment (a, j->end),
        arena_printf (a, "%.2f", j->walltime > 0 ? 1 + queued / (double)j->walltime : 1),
        moment (a, j->walltime),
        arena_printf (a, "%u", j->procs),
        arena_printf (a, "%d", j->mem_mb),
        arena_printf (a, "%.2f", load),
        "0", /* the greatest load of a task, and memory: not kept */
        "0",
        "0",
    };
    for (int i = 0; i < ARGS; i++)
        out[i] = list[i];
    out[ARGS] = NULL;
}

static void on_row (void *arg, const struct history_job *job)
{
    struct row *r = arg;
    if (r->ran)
        return;
    r->sequence = job->sequence;
    r->ran = job->start != 0;
    if (r->ran)
        args_of (r, job, r->arg + CHILD_AS_MAX + 1);
}

static void on_end (void *arg, int exit_code, bool timed_out)
{
    struct feedback *f = arg;
    f->child = NULL;
    if (timed_out || exit_code != 0)
        log_event (f->svc->log, LOG_LEVEL_WARN, "feedback", "program_failed",
                   "exit_code=%d timed_out=%d", exit_code, timed_out);
    wake_in (f, save (f, true, f->telling) == 0 ? 0 : AGAIN_S * US_PER_S);
}

static int run (struct feedback *f, struct row *r, struct err *err)
{
    static const char *const env[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    const struct settings *s = f->svc->settings;
    const char *argv[CHILD_AS_MAX + ARGS + 2];
    uint32_t as = child_as (s->notify_account, r->arena, argv, err);
    if (err->code != 0 || conf_program_check ("FEEDBACKPROGRAM", s->feedback_program, err) != 0)
        return err->code;
    argv[as] = s->feedback_program;
    for (int i = 0; i <= ARGS; i++)
        argv[as + 1 + (uint32_t)i] = r->arg[CHILD_AS_MAX + 1 + i];
    f->telling = r->sequence;
    f->child = child_run (f->svc->base, argv, env, LIMIT_S * US_PER_S, on_end, f, err);
    return f->child ? 0 : err->code;
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct feedback *f = arg;
    struct history_filter all = {0};
    struct err err = {0};
    struct row r = {.of = f, .arena = arena_create (0)};
    uint64_t last;
    bool more = false;
    char quoted[400];
    (void)fd;
    (void)what;
    if (f->child || !f->known || !wanted (f->svc) || f->svc->closing) {
        arena_destroy (r.arena);
        return;
    }
    int rc = history_read (f->svc->store, &all, f->sequence, ROWS_PER_GO, on_row, &r, &last, &more,
                           &err);
    if (rc == 0 && r.ran)
        rc = run (f, &r, &err);
    else if (rc == 0 && r.sequence > f->sequence) /* none of these ran */
        rc = save (f, true, r.sequence);
    if (rc != 0)
        log_event (f->svc->log, LOG_LEVEL_ERROR, "feedback", "not_run", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
    if (rc != 0 || more)
        wake_in (f, rc != 0 ? AGAIN_S * US_PER_S : 0);
    arena_destroy (r.arena);
}

/* --- beginning and end -------------------------------------------------------------------- */

static int feedback_open (struct svc *svc, struct err *err)
{
    struct feedback *f = calloc (1, sizeof *f);
    void *bytes = NULL;
    size_t len = 0;
    assert (f);
    f->svc = svc;
    f->timer = evtimer_new (svc->base, on_timer, f);
    assert (f->timer);
    svc->feedback = f;
    int rc = local_store_blob_get (svc->store, blob_name, &bytes, &len, err);
    if (rc == 0 && len > 0) {
        char text[32];
        snprintf (text, sizeof text, "%.*s", (int)len, (const char *)bytes);
        f->sequence = strtoull (text, NULL, 10);
        f->known = true;
    }
    free (bytes);
    if (rc == ERR_NOT_FOUND) {
        err_clear (err);
        rc = 0;
    }
    if (rc == 0)
        wake_in (f, 0);
    return rc;
}

/* A program that is new hears of what ends from now on; one that is gone is forgotten. */
static void feedback_pass (struct svc *svc)
{
    struct feedback *f = svc->feedback;
    if (f && f->known != (svc->settings->feedback_program != NULL) && !f->child)
        (void)save (f, !f->known, statdir_written (svc));
}

static void feedback_job_ended (struct svc *svc, uint64_t number)
{
    (void)number;
    if (svc->feedback)
        wake_in (svc->feedback, 0);
}

static void feedback_stop (struct svc *svc)
{
    struct feedback *f = svc->feedback;
    if (!f)
        return;
    child_kill (f->child); /* told again after the next start */
    event_free (f->timer);
    free (f);
    svc->feedback = NULL;
}

const struct svc_listener feedback_listener = {.open = feedback_open,
                                               .pass_done = feedback_pass,
                                               .job_ended = feedback_job_ended,
                                               .stop = feedback_stop};
