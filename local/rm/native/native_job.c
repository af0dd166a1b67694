/* One job at a resource manager that is asked and told by programs: what we wish of it and what is told of it. The
 * operations and the looks call it; each call to the resource manager is native_call's. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "local/rm/mistake.h"
#include "local/rm/native/native_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

/* Started so long before its moment: for that its script waits. */
static const duration_us launch_lead = 2 * US_PER_S, again_after = US_PER_S;

/* --- records ------------------------------------------------------------------------------ */

static void key_set (struct native_job *job)
{
    struct native *native = job->owner;
    if (*job->key)
        HASH_DELETE (hh_id, native->by_id, job);
    *job->key = 0;
    if (!*job->job_id)
        return;
    jobdir_key (job->job_id, job->incarnation, job->key);
    HASH_ADD (hh_id, native->by_id, key, strlen (job->key), job);
}

struct native_job *native_job_by_rm (struct native *native, const char *rm_id)
{
    struct native_job *job;
    HASH_FIND_STR (native->jobs, rm_id, job);
    return job;
}

struct native_job *native_job_by_key (struct native *native, const char *key)
{
    struct native_job *job;
    HASH_FIND (hh_id, native->by_id, key, strlen (key), job);
    return job;
}

struct native_job *native_job_by_id (struct native *native, const char *job_id,
                                     uint32_t incarnation)
{
    char key[JOBDIR_KEY_MAX];
    jobdir_key (job_id, incarnation, key);
    return native_job_by_key (native, key);
}

void native_job_rm_id (struct native_job *job, const char *rm_id)
{
    struct native *native = job->owner;
    if (*job->rm_id)
        HASH_DEL (native->jobs, job);
    snprintf (job->rm_id, sizeof job->rm_id, "%s", rm_id);
    if (*job->rm_id)
        HASH_ADD_STR (native->jobs, rm_id, job);
}

void native_job_name (struct native_job *job, const char *job_id, uint32_t incarnation)
{
    if (strcmp (job->job_id, job_id) == 0 && job->incarnation == incarnation)
        return;
    snprintf (job->job_id, sizeof job->job_id, "%s", job_id);
    job->incarnation = incarnation;
    key_set (job);
}

struct native_job *native_job_new (struct native *native, const char *rm_id, time_us submit)
{
    struct native_job *job = calloc (1, sizeof *job);
    assert (job);
    job->owner = native;
    job->submit = submit;
    job->cpu_time = -1;
    native_job_rm_id (job, rm_id);
    return job;
}

void native_job_free (struct native_job *job)
{
    struct native *native = job->owner;
    native_job_rm_id (job, "");
    *job->job_id = 0;
    key_set (job);
    if (job->timer)
        event_free (job->timer);
    if (job->soon)
        DL_DELETE2 (native->unsettled, job, soon_prev, soon_next);
    for (char **word = job->submission; word && *word; word++)
        free (*word);
    free (job->submission);
    free (job->placement);
    free (job->tasklist);
    free (job->user);
    free (job);
}

void native_jobs_stop (struct native *native)
{
    struct native_job *job, *next;
    HASH_ITER (hh, native->jobs, job, next)
        native_job_free (job);
    HASH_ITER (hh_id, native->by_id, job, next)
        native_job_free (job);
}

static void on_again (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    native_job_settle (arg);
}

void native_job_settle_in (struct native_job *job, duration_us d)
{
    if (!job->timer)
        job->timer = evtimer_new (job->owner->base, on_again, job);
    native_timer_set (job->timer, d > 0 ? d : 0);
}

void native_job_settle_soon (struct native_job *job)
{
    if (job->soon)
        return;
    job->soon = true;
    DL_APPEND2 (job->owner->unsettled, job, soon_prev, soon_next);
    native_turn_soon (job->owner);
}

/* --- telling ------------------------------------------------------------------------------ */

/* The job is nobody's any more: told of again only if it is new to whoever listens. */
static void unbind (struct native_job *job)
{
    *job->job_id = 0;
    job->incarnation = 0;
    key_set (job);
    job->started_told = job->suspended_told = job->asked = job->cancel = job->cancelled =
        job->requeue = false;
    job->suspend = NATIVE_AS_IT_IS;
    job->hold = NATIVE_HOLD_NONE;
    job->ran_since = 0;
    job->phase = NATIVE_SETTLED;
    job->digest = 0;
    job->again_at = 0;
    job->tries = 0;
}

void native_job_finish (struct native_job *job, const struct rm_status *status)
{
    struct native *native = job->owner;
    char id[JOBDIR_KEY_MAX];
    memcpy (id, job->job_id, sizeof id);
    struct rm_event event = {.kind = RM_EVENT_ENDED,
                             .job_id = id,
                             .incarnation = job->incarnation,
                             .status = status,
                             .submit = job->submit};
    log_event (native->log, LOG_LEVEL_INFO, "native", "job_ended",
               "job=%s rm_job=%s how=%s exit_code=%d", id, job->rm_id, rm_end_name (status->end),
               status->exit_code);
    unbind (job); /* first: the callback may bind the next incarnation */
    if (job->state == NATIVE_ENDED)
        job->digest = 1; /* its end is told: it is not to be told as a new job */
    native->on_event (native->arg, &event);
}

void native_job_unknown (struct native_job *job)
{
    struct native *native = job->owner;
    char id[JOBDIR_KEY_MAX];
    memcpy (id, job->job_id, sizeof id);
    struct rm_event event = {
        .kind = RM_EVENT_UNKNOWN, .job_id = id, .incarnation = job->incarnation};
    native_job_free (job); /* first: the callback may start it again */
    native->on_event (native->arg, &event);
}

void native_job_handed (struct native_job *job, const char *rm_id)
{
    struct native *native = job->owner;
    native_job_rm_id (job, rm_id);
    job->phase = NATIVE_LATER;
    log_event (native->log, LOG_LEVEL_INFO, "native", "job_submitted", "job=%s rm_job=%s",
               job->job_id, rm_id);
    struct rm_event event = {.kind = RM_EVENT_HANDED,
                             .job_id = job->job_id,
                             .incarnation = job->incarnation,
                             .rm_id = rm_id};
    native->on_event (native->arg, &event);
}

static void tell_started (struct native_job *job)
{
    struct native *native = job->owner;
    char id[JOBDIR_KEY_MAX];
    struct rm_status status = {.started = true, .start = job->start};
    if (job->launch_at > status.start) /* until then its script waits */
        status.start = job->launch_at;
    memcpy (id, job->job_id, sizeof id);
    struct rm_event event = {.kind = RM_EVENT_STARTED,
                             .job_id = id,
                             .incarnation = job->incarnation,
                             .status = &status,
                             .placement = job->placement,
                             .unasked = !job->asked};
    job->started_told = true;
    job->start_told = status.start;
    job->start_seen = job->run;
    job->ran_since = 0;
    job->phase = NATIVE_SETTLED;
    native->on_event (native->arg, &event);
}

static void tell_suspended (struct native_job *job)
{
    struct rm_event event = {.kind = RM_EVENT_SUSPENDED,
                             .job_id = job->job_id,
                             .incarnation = job->incarnation,
                             .suspended = job->state == NATIVE_SUSPENDED};
    job->suspended_told = event.suspended;
    job->owner->on_event (job->owner->arg, &event);
}

/* It ran from then on, and waits or runs again: that run is over. */
static void tell_requeued (struct native_job *job, time_us start)
{
    struct rm_status status = {.started = true,
                               .ended = true,
                               .end = RM_END_REQUEUED,
                               .start = start,
                               .end_at = clock_now_us ()};
    if (job->start > start) /* it runs again: the last run was over before */
        status.end_at = job->start;
    native_job_finish (job, &status);
}

/* An exit code as a shell has it. */
static enum rm_end end_of (const struct native_job *job, const struct rm_status *status)
{
    enum { SIGNALS = 64 };
    bool killed = job->removed || job->exit_code > 128;
    if (killed && job->walltime > 0 && status->end_at - status->start >= job->walltime)
        return RM_END_TIMEOUT;
    if (job->removed || (job->cancelled && killed))
        return RM_END_CANCELLED;
    return job->exit_code > 128 && job->exit_code <= 128 + SIGNALS ? RM_END_SIGNALLED
                                                                   : RM_END_EXITED;
}

void native_job_not_started (struct native_job *job)
{
    struct rm_status status = {.ended = true,
                               .end = job->refused ? RM_END_REFUSED : RM_END_START_FAILED};
    text_printf (status.text, sizeof status.text, "%.190s", job->why);
    native_job_finish (job, &status);
}

static void tell_ended (struct native_job *job)
{
    char mistake[MISTAKE_TEXT_MAX];
    struct rm_status status = {.ended = true, .end = RM_END_CANCELLED};
    if (job->phase == NATIVE_BACK && job->ours && !job->start) { /* we took it away */
        native_job_not_started (job);
        return;
    }
    if (job->start) {
        status.started = true;
        status.start =
            job->started_told && job->start_told > job->start ? job->start_told : job->start;
        status.end_at = job->end > status.start ? job->end : status.start;
        status.end = end_of (job, &status);
        status.exit_code = job->exit_code;
        status.cpu_known = job->cpu_time >= 0;
        status.cpu_time = job->cpu_time;
        if (status.end_at == status.start) /* it counts whole seconds */
            status.end_at += US_PER_S;
    }
    if (status.started && native_ran_into_mistake (job, &status, mistake)) {
        status =
            (struct rm_status){.ended = true, .end = RM_END_MISTAKE, .exit_code = status.exit_code};
        text_printf (status.text, sizeof status.text, "%s", mistake);
    }
    native_job_finish (job, &status);
}

/* --- calls about it ----------------------------------------------------------------------- */

static void problem (struct native_job *job, const char *event, const struct native_said *said)
{
    char quoted[600];
    log_event (job->owner->log, LOG_LEVEL_WARN, "native", event, "job=%s rm_job=%s error=%s",
               job->job_id, job->rm_id, log_quote (said->why, quoted, sizeof quoted));
}

static void job_call (struct native_job *job, enum rm_call call, const char *second,
                      const char *third, native_said_fn fn)
{
    const char *const words[] = {job->rm_id, second, third, NULL};
    native_call (job->owner, call, job, NULL, words, fn);
}

/* Whether it was heard shows in a look; then it is tried once more, later each time. */
static void try_again (struct native_job *job)
{
    enum { DOUBLED = 6 };
    duration_us d = again_after << job->tries;
    job->tries += job->tries < DOUBLED;
    job->again_at = clock_monotonic_us () + d;
    native_look (job->owner);
    native_job_settle_in (job, d);
}

static void go_back (struct native_job *job, bool refused, const char *why)
{
    job->phase = NATIVE_BACK;
    job->refused = refused;
    text_printf (job->why, sizeof job->why, "%.190s", why);
}

static void find_soon (struct native_job *job)
{
    job->phase = NATIVE_FIND;
    job->owner->job_text_again = true;
    native_look (job->owner);
}

static void on_submitted (struct native *native, struct native_job *job,
                          const struct native_said *said)
{
    if (said->heard == NATIVE_UNHEARD || (said->heard == NATIVE_DONE && !*said->job_id)) {
        if (said->heard == NATIVE_UNHEARD)
            problem (job, "not_submitted", said);
        text_printf (job->why, sizeof job->why, "%.190s",
                     *said->why ? said->why : "JOBSUBMITURL names no JOBID");
        find_soon (job); /* perhaps it was heard */
        return;
    }
    if (said->heard == NATIVE_REFUSED) {
        problem (job, "not_submitted", said);
        go_back (job, true, said->why);
        native_job_not_started (job);
        native_job_free (job);
        return;
    }
    struct native_job *other = native_job_by_rm (native, said->job_id);
    if (other && other != job) { /* a number that another job has cannot be this one's */
        find_soon (job);
        return;
    }
    native_job_handed (job, said->job_id);
    native_job_settle (job);
}

static void on_started (struct native *native, struct native_job *job,
                        const struct native_said *said)
{
    native_look (native);
    if (job->phase != NATIVE_START)
        return;
    if (said->heard == NATIVE_DONE) {
        job->phase = NATIVE_WATCH;
        job->deadline = clock_monotonic_us () + native->patience;
        native_job_settle_in (job, native->patience);
        return;
    }
    problem (job, "not_started", said);
    if (said->heard == NATIVE_REFUSED || clock_monotonic_us () > job->deadline)
        go_back (job, said->heard == NATIVE_REFUSED, said->why);
    if (said->heard == NATIVE_REFUSED)
        native_job_settle (job);
    else
        try_again (job);
}

/* It is not to start later, when nobody expects it. */
static void on_back (struct native *native, struct native_job *job, const struct native_said *said)
{
    native_look (native);
    if (said->heard == NATIVE_UNHEARD) {
        try_again (job);
        return;
    }
    if (said->heard == NATIVE_REFUSED)
        problem (job, "not_taken_back", said);
    if (job->phase == NATIVE_BACK)
        native_job_not_started (job);
}

static void on_cancelled (struct native *native, struct native_job *job,
                          const struct native_said *said)
{
    job->cancelled = true;
    if (said->heard != NATIVE_DONE)
        problem (job, "not_cancelled", said);
    if (said->heard == NATIVE_UNHEARD) {
        try_again (job);
        return;
    }
    /* What is not gone in a while is told once more. */
    job->again_at = clock_monotonic_us () + native->patience;
    native_look (native);
    native_job_settle_in (job, native->patience);
}

static void on_requeued (struct native *native, struct native_job *job,
                         const struct native_said *said)
{
    if (said->heard != NATIVE_DONE)
        problem (job, "not_requeued", said);
    if (said->heard == NATIVE_UNHEARD) {
        try_again (job);
        return;
    }
    job->requeue = false;
    native_look (native);
}

static void on_suspended (struct native *native, struct native_job *job,
                          const struct native_said *said)
{
    if (said->heard != NATIVE_DONE)
        problem (job, "not_suspended_or_resumed", said);
    if (said->heard == NATIVE_UNHEARD) {
        try_again (job);
        return;
    }
    if (job->suspend == job->suspend_said) /* else another was wished meanwhile */
        job->suspend = NATIVE_AS_IT_IS;
    native_look (native);
}

static void on_held (struct native *native, struct native_job *job, const struct native_said *said)
{
    if (said->heard != NATIVE_DONE)
        problem (job, "not_held", said);
    if (said->heard == NATIVE_UNHEARD) {
        try_again (job);
        return;
    }
    if (job->hold == job->hold_said)
        job->hold = NATIVE_HOLD_NONE;
    native_look (native);
}

static void hold_call (struct native_job *job)
{
    const char *attr = job->hold == NATIVE_HOLD_USER    ? "hold=user"
                       : job->hold == NATIVE_HOLD_ADMIN ? "hold=system"
                                                        : "hold";
    const char *const words[] = {
        "-j", job->rm_id, job->hold == NATIVE_HOLD_RELEASE ? "--clear" : "--set", attr, NULL};
    job->hold_said = job->hold;
    native_call (job->owner, RM_CALL_JOBMODIFY, job, NULL, words, on_held);
}

/* --- the next step ------------------------------------------------------------------------ */

/* Another start, and not the same one in whole seconds. */
static bool later (time_us start, time_us told)
{
    return start > told + US_PER_S;
}

/* Tells what is to be told. Returns whether the job is still what it was. */
static bool told (struct native_job *job)
{
    char key[JOBDIR_KEY_MAX];
    memcpy (key, job->key, sizeof key);
    bool runs = job->state == NATIVE_RUNNING || job->state == NATIVE_SUSPENDED;
    bool again =
        job->state == NATIVE_PENDING || (job->started_told && later (job->run, job->start_seen));
    if (job->ran_since && job->state != NATIVE_NONE &&
        (job->state == NATIVE_PENDING || later (job->run, job->ran_since)))
        tell_requeued (job, job->ran_since);
    else if (job->started_told && again)
        tell_requeued (job, job->start_told);
    else if (runs && !job->started_told)
        tell_started (job);
    else if (job->state == NATIVE_ENDED)
        tell_ended (job);
    if (strcmp (key, job->key) != 0)
        return false;
    if (runs && job->suspended_told != (job->state == NATIVE_SUSPENDED))
        tell_suspended (job);
    return true;
}

/* A start does not overtake the release that it comes from: it would be refused for the hold. */
static bool hold_is_due (const struct native_job *job)
{
    bool starts = job->phase == NATIVE_LATER || job->phase == NATIVE_START;
    if (job->hold == NATIVE_HOLD_NONE || job->state != NATIVE_PENDING)
        return false;
    return job->phase == NATIVE_SETTLED || (starts && job->hold == NATIVE_HOLD_RELEASE);
}

/* A look that began after the last call has told what is to be told of it. One that reads the same text as the look
 * before counts for nobody by itself. */
static bool looked_since (const struct native_job *job)
{
    return job->counted >= job->written || job->owner->whole >= job->written;
}

/* What is wished of it, whatever phase it is in. False: nothing is. */
static bool wish_call (struct native_job *job)
{
    bool runs = job->state == NATIVE_RUNNING || job->state == NATIVE_SUSPENDED;
    if (job->cancel && *job->rm_id) {
        job_call (job, RM_CALL_JOBCANCEL, NULL, NULL, on_cancelled);
        return true;
    }
    if (job->requeue && runs) {
        job_call (job, RM_CALL_JOBREQUEUE, NULL, NULL, on_requeued);
        return true;
    }
    if (job->suspend != NATIVE_AS_IT_IS && runs) {
        bool on = job->suspend == NATIVE_TO_SUSPEND;
        if (on != (job->state == NATIVE_SUSPENDED)) {
            job->suspend_said = job->suspend;
            job_call (job, on ? RM_CALL_JOBSUSPEND : RM_CALL_JOBRESUME, NULL, NULL, on_suspended);
            return true;
        }
        if (looked_since (job)) /* else the next look tells what the last call has made of it */
            job->suspend = NATIVE_AS_IT_IS;
    }
    if (hold_is_due (job)) {
        hold_call (job);
        return true;
    }
    return false;
}

/* A call that was not answered well may have been heard: nothing more is done before a look that began after it. */
static bool in_the_dark (const struct native_job *job)
{
    return *job->rm_id && job->tries > 0 && !looked_since (job);
}

static void start_step (struct native_job *job)
{
    time_us now = clock_now_us ();
    if (job->phase == NATIVE_LATER && job->launch_at > now + launch_lead) {
        native_job_settle_in (job, job->launch_at - launch_lead - now);
        return;
    }
    if (job->phase == NATIVE_LATER) {
        job->phase = NATIVE_START;
        job->deadline = clock_monotonic_us () + job->owner->patience;
    }
    if (in_the_dark (job))
        return;
    if (job->state == NATIVE_PENDING || job->ours) /* else it runs already, or is gone */
        job_call (job, RM_CALL_JOBSTART, job->tasklist, job->user, on_started);
}

static void back_step (struct native_job *job)
{
    if (in_the_dark (job))
        return;
    if (job->ours) /* its next incarnation is another job there */
        job_call (job, RM_CALL_JOBCANCEL, NULL, NULL, on_back);
    else if (job->refused || !native_can (job->owner, RM_CALL_JOBREQUEUE))
        native_job_not_started (job); /* a refusal has left it as it was */
    else
        job_call (job, RM_CALL_JOBREQUEUE, NULL, NULL, on_back);
}

static void step (struct native_job *job)
{
    duration_us now = clock_monotonic_us ();
    if (job->busy || job->owner->observe || !job->owner->fresh || job->state == NATIVE_ENDED)
        return;
    if (job->again_at > now) {
        native_job_settle_in (job, job->again_at - now);
        return;
    }
    if (wish_call (job))
        return;
    switch (job->phase) {
    case NATIVE_SUBMIT:
        native_call (job->owner, RM_CALL_JOBSUBMIT, job, job->user,
                     (const char *const *)job->submission, on_submitted);
        break;
    case NATIVE_LATER:
    case NATIVE_START:
        start_step (job);
        break;
    case NATIVE_WATCH:
        if (now < job->deadline) {
            native_job_settle_in (job, job->deadline - now);
        } else if (!looked_since (job)) { /* looks are slow: perhaps it runs */
            native_job_settle_in (job, again_after);
        } else {
            char why[160];
            text_printf (why, sizeof why, "the resource manager did not start it on %.100s",
                         job->tasklist ? job->tasklist : "");
            go_back (job, false, why);
            back_step (job);
        }
        break;
    case NATIVE_BACK:
        back_step (job);
        break;
    default:
        break;
    }
}

void native_job_settle (struct native_job *job)
{
    if (job->settling || !*job->job_id)
        return;
    job->settling = true;
    while (!told (job) && *job->job_id)
        ;
    job->settling = false;
    if (*job->job_id)
        step (job);
}

void native_job_seen (struct native_job *job, const struct native_seen *seen)
{
    struct native *native = job->owner;
    const struct rm_native *n = &seen->native;
    time_us now = clock_now_us ();
    job->seen = native->look;
    job->gone = false;
    if (job->busy || job->written > native->look) {
        native->job_text_again = true;
        return;
    }
    job->counted = native->look;
    job->state = seen->state;
    job->removed = seen->removed;
    job->start = n->start < now ? n->start : now; /* nothing has happened yet that will */
    job->run = seen->dispatch && seen->dispatch < job->start ? seen->dispatch : job->start;
    job->end = seen->end < now ? seen->end : now;
    job->exit_code = seen->exit_code;
    job->cpu_time = seen->cpu_time;
    if (!job->user)
        job->user = strdup (n->user);
    if (!job->ours)
        job->walltime = n->walltime;
    if (!job->placement || strcmp (job->placement, n->placement) != 0) {
        free (job->placement);
        job->placement = strdup (n->placement);
    }
    native_job_settle_soon (job);
}
