/* One job at Slurm: what we wish of it and what is told of it. Requests to Slurm are sent one at a
 * time for each job; looks that began before the last of them was answered do not count for it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "local/rm/mistake.h"
#include "local/rm/slurm/slurm_i.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

/* Moved to our partition so long before its moment: Slurm needs that to start it (0.03 to 1 s). */
static const duration_us launch_lead = 2 * US_PER_S, turn_longest = 2000;

/* --- records ------------------------------------------------------------------------------ */

static void key_set (struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    if (*job->key)
        HASH_DELETE (hh_id, slurm->by_id, job);
    *job->key = 0;
    if (!*job->job_id)
        return;
    jobdir_key (job->job_id, job->incarnation, job->key);
    HASH_ADD (hh_id, slurm->by_id, key, strlen (job->key), job);
}

static void number_set (struct slurm_job *job, int64_t number)
{
    struct slurm *slurm = job->owner;
    struct slurm_job *other;
    if (job->number == number)
        return;
    HASH_FIND (hh_number, slurm->by_number, &job->number, sizeof job->number, other);
    if (other == job)
        HASH_DELETE (hh_number, slurm->by_number, job);
    job->number = number;
    HASH_FIND (hh_number, slurm->by_number, &number, sizeof number, other);
    if (number > 0 && !other)
        HASH_ADD (hh_number, slurm->by_number, number, sizeof job->number, job);
}

struct slurm_job *slurm_job_by_rm (struct slurm *slurm, const char *rm_id)
{
    struct slurm_job *job;
    HASH_FIND_STR (slurm->jobs, rm_id, job);
    return job;
}

struct slurm_job *slurm_job_by_id (struct slurm *slurm, const char *job_id, uint32_t incarnation)
{
    char key[JOBDIR_KEY_MAX];
    struct slurm_job *job;
    jobdir_key (job_id, incarnation, key);
    HASH_FIND (hh_id, slurm->by_id, key, strlen (key), job);
    return job;
}

void slurm_title (const char *key, const char *mark, char out[SLURM_TITLE_MAX])
{
    snprintf (out, SLURM_TITLE_MAX, "%s%s%.8s", key, *mark ? "." : "", mark);
}

struct slurm_job *slurm_job_by_title (struct slurm *slurm, const char *title)
{
    struct slurm_job *job;
    char its[SLURM_TITLE_MAX];
    const char *dot = strrchr (title, '.');
    HASH_FIND (hh_id, slurm->by_id, title, strlen (title), job);
    if (!job && dot)
        HASH_FIND (hh_id, slurm->by_id, title, (size_t)(dot - title), job);
    if (job)
        slurm_title (job->key, job->mark, its);
    return job && strcmp (its, title) == 0 ? job : NULL;
}

void slurm_job_rm_id (struct slurm_job *job, const char *rm_id)
{
    struct slurm *slurm = job->owner;
    if (*job->rm_id)
        HASH_DEL (slurm->jobs, job);
    snprintf (job->rm_id, sizeof job->rm_id, "%s", rm_id);
    if (*job->rm_id)
        HASH_ADD_STR (slurm->jobs, rm_id, job);
    number_set (job, strchr (rm_id, '_') ? 0 : strtoll (rm_id, NULL, 10));
}

void slurm_job_name (struct slurm_job *job, const char *job_id, uint32_t incarnation)
{
    if (strcmp (job->job_id, job_id) == 0 && job->incarnation == incarnation)
        return;
    snprintf (job->job_id, sizeof job->job_id, "%s", job_id);
    job->incarnation = incarnation;
    key_set (job);
}

struct slurm_job *slurm_job_new (struct slurm *slurm, const char *rm_id, time_us submit)
{
    struct slurm_job *job = calloc (1, sizeof *job);
    assert (job);
    job->owner = slurm;
    job->submit = submit;
    job->native = true;
    slurm_job_rm_id (job, rm_id);
    return job;
}

void slurm_job_free (struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    if (*job->rm_id)
        HASH_DEL (slurm->jobs, job);
    *job->job_id = 0;
    key_set (job);
    number_set (job, 0);
    if (job->timer)
        event_free (job->timer);
    if (job->soon)
        DL_DELETE2 (slurm->unsettled, job, soon_prev, soon_next);
    free (job->placement);
    free (job->hosts);
    free (job->class_name);
    free (job->hosts_wanted);
    free (job->submission);
    free (job->user);
    free (job);
}

/* --- telling ------------------------------------------------------------------------------ */

/* The job is nobody's any more: told of again only if it is new to whoever listens. */
static void unbind (struct slurm_job *job)
{
    *job->job_id = 0;
    job->incarnation = 0;
    key_set (job);
    job->started_told = job->suspended_told = job->asked = job->guarded = job->cancel =
        job->usage_asked = false;
    job->ran_since = 0;
    job->phase = PHASE_NONE;
    job->digest = 0;
}

void slurm_job_finish (struct slurm_job *job, const struct rm_status *status)
{
    struct slurm *slurm = job->owner;
    char id[JOBDIR_KEY_MAX];
    memcpy (id, job->job_id, sizeof id);
    struct rm_event event = {.kind = RM_EVENT_ENDED,
                             .job_id = id,
                             .incarnation = job->incarnation,
                             .status = status,
                             .submit = job->submit};
    char cpu[32] = "";
    if (status->cpu_known)
        snprintf (cpu, sizeof cpu, " cpu_ms=%lld", (long long)status->cpu_time / 1000);
    log_event (slurm->log, LOG_LEVEL_INFO, "slurm", "job_ended",
               "job=%s slurm_job=%s how=%s exit_code=%d%s", id, job->rm_id,
               rm_end_name (status->end), status->exit_code, cpu);
    unbind (job); /* first: the callback may bind the next incarnation */
    if (job->state == SLURM_ENDED)
        job->digest = 1; /* its end is told: it is not to be told as a new job */
    slurm->on_event (slurm->arg, &event);
}

static void tell_started (struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    char id[JOBDIR_KEY_MAX];
    struct rm_status status = {.started = true, .start = job->start};
    /* A job of ours waits in its script for the moment that was agreed. */
    if (job->launch_at > status.start)
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
    job->ran_since = 0;
    job->restarts_told = job->restarts;
    job->phase = PHASE_NONE;
    slurm_resv_leave (job);
    slurm->on_event (slurm->arg, &event);
}

static void tell_suspended (struct slurm_job *job)
{
    struct rm_event event = {.kind = RM_EVENT_SUSPENDED,
                             .job_id = job->job_id,
                             .incarnation = job->incarnation,
                             .suspended = job->state == SLURM_SUSPENDED};
    job->suspended_told = event.suspended;
    job->owner->on_event (job->owner->arg, &event);
}

/* It ran from then on, and waits (or runs, or waited until its end) again: that run is over, by when
 * Slurm took the job for submitted anew. */
static void tell_requeued (struct slurm_job *job, time_us start)
{
    struct rm_status status = {.started = true,
                               .ended = true,
                               .end = RM_END_REQUEUED,
                               .start = start,
                               .end_at = clock_now_us ()};
    if (job->submit >= start / US_PER_S * US_PER_S) /* Slurm counts whole seconds */
        status.end_at = job->submit > start ? job->submit : start + US_PER_S;
    slurm_job_finish (job, &status);
}

/* refused: Slurm said no to it. */
static void start_failed (struct slurm_job *job, bool refused, const char *why)
{
    struct rm_status status = {.ended = true,
                               .end = refused ? RM_END_REFUSED : RM_END_START_FAILED};
    slurm_resv_leave (job);
    text_printf (status.text, sizeof status.text, "%.255s", why);
    slurm_job_finish (job, &status);
}

static void not_started (struct slurm_job *job)
{
    char why[200];
    text_printf (why, sizeof why, "Slurm did not start it on %.60s: %.80s",
                 job->hosts ? job->hosts : "",
                 *job->back_reason ? job->back_reason : "no reason given");
    start_failed (job, job->refused, why);
}

/* Did it end as our script (rm_slurm.c) does when the job's own cannot be executed, at once, and is that for a fault
 * which is seen from here, too? What the job itself says of it is not believed; who does all that on purpose runs a
 * few seconds for nothing. */
static bool ran_into_mistake (const struct slurm_job *job, const struct rm_status *status,
                              char text[MISTAKE_TEXT_MAX])
{
    enum { AT_ONCE_S = 5 };
    char path[JOBDIR_KEY_MAX + 8];
    if (job->native || !*job->key || status->end != RM_END_EXITED ||
        (status->exit_code != 126 && status->exit_code != 127) ||
        status->end_at - status->start > AT_ONCE_S * US_PER_S)
        return false;
    snprintf (path, sizeof path, "%s/work", job->key);
    int dir = openat (job->owner->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool mistake = dir >= 0 && mistake_of_shell (dir, status->exit_code, text);
    if (dir >= 0)
        close (dir);
    return mistake;
}

static void tell_ended (struct slurm_job *job)
{
    char mistake[MISTAKE_TEXT_MAX];
    struct rm_status status = {.cpu_known = job->usage_asked && job->cpu_time >= 0,
                               .cpu_time = job->cpu_time};
    if (job->owner->usage && job->start && !job->usage_asked) {
        slurm_done_usage (job);
        return;
    }
    if (job->phase == PHASE_BACK && !job->native && !job->start) { /* by our cancel_send */
        not_started (job);
        return;
    }
    slurm_end_of (job->word, job->exit_status, &status);
    if (job->start) {
        status.started = true;
        status.start =
            job->started_told && job->start_told > job->start ? job->start_told : job->start;
        status.end_at = job->end > status.start ? job->end : status.start;
        if (status.end_at == status.start) /* Slurm counts whole seconds */
            status.end_at += US_PER_S;
    } else if (status.end == RM_END_EXITED || status.end == RM_END_TIMEOUT) {
        status.end = RM_END_CANCELLED; /* a deadline passed, or its dependency never comes */
    }
    if (status.started && ran_into_mistake (job, &status, mistake)) {
        status =
            (struct rm_status){.ended = true, .end = RM_END_MISTAKE, .exit_code = status.exit_code};
        text_printf (status.text, sizeof status.text, "%s", mistake);
    }
    slurm_job_finish (job, &status);
}

/* --- requests ----------------------------------------------------------------------------- */

/* A request about a job that may be gone when it is answered. */
struct errand {
    struct slurm *slurm;
    char rm_id[SLURM_ID_MAX], key[JOBDIR_KEY_MAX];
    void (*then) (struct slurm_job *job, const struct slurm_answer *answer);
};

static void on_errand (void *arg, const struct slurm_answer *answer)
{
    struct errand e = *(struct errand *)arg;
    struct slurm_job *job = NULL;
    free (arg);
    if (*e.rm_id)
        job = slurm_job_by_rm (e.slurm, e.rm_id);
    else
        HASH_FIND (hh_id, e.slurm->by_id, e.key, strlen (e.key), job);
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED)
        slurm_unreachable (e.slurm, answer);
    if (!job)
        return;
    job->busy = false;
    job->written = e.slurm->look + 1;
    job->watched = false;
    e.then (job, answer);
}

static void errand_send (struct slurm_job *job, const char *method, const char *path,
                         const char *user, json_t *body,
                         void (*then) (struct slurm_job *job, const struct slurm_answer *answer))
{
    struct errand *e = calloc (1, sizeof *e);
    assert (e && !job->busy);
    e->slurm = job->owner;
    memcpy (e->rm_id, job->rm_id, sizeof e->rm_id);
    memcpy (e->key, job->key, sizeof e->key);
    e->then = then;
    job->busy = true;
    struct slurm_request request = {.method = method,
                                    .path = path,
                                    .user = user,
                                    .body = body,
                                    .on_done = on_errand,
                                    .on_drop = free,
                                    .arg = e};
    slurm_rest_send (job->owner->rest, &request);
}

static void update (struct slurm_job *job, json_t *body,
                    void (*then) (struct slurm_job *job, const struct slurm_answer *answer))
{
    char path[SLURM_ID_MAX + 8];
    snprintf (path, sizeof path, "job/%s", job->rm_id);
    errand_send (job, "POST", path, NULL, body, then);
}

/* Asks again in a moment. */
static void on_again (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    slurm_job_settle (arg);
}

void slurm_job_settle_in (struct slurm_job *job, duration_us d)
{
    if (!job->timer)
        job->timer = evtimer_new (job->owner->base, on_again, job);
    slurm_timer_set (job->timer, d);
}

/* As many as there is time for: an end or a start that is told of is written to disk. */
static void on_soon (evutil_socket_t fd, short what, void *arg)
{
    struct slurm *slurm = arg;
    duration_us until = clock_monotonic_us () + turn_longest;
    (void)fd;
    (void)what;
    while (slurm->unsettled && clock_monotonic_us () < until) {
        struct slurm_job *job = slurm->unsettled;
        job->soon = false;
        DL_DELETE2 (slurm->unsettled, job, soon_prev, soon_next);
        slurm_job_settle (job);
    }
    if (slurm->unsettled)
        slurm_timer_set (slurm->settle_timer, 0);
    else
        slurm_look_told (slurm);
}

void slurm_job_settle_soon (struct slurm_job *job)
{
    struct slurm *slurm = job->owner;
    if (job->soon)
        return;
    job->soon = true;
    DL_APPEND2 (slurm->unsettled, job, soon_prev, soon_next);
    slurm_timer_set (slurm->settle_timer, 0);
}

int slurm_jobs_init (struct slurm *slurm, struct err *err)
{
    slurm->settle_timer = evtimer_new (slurm->base, on_soon, slurm);
    return slurm->settle_timer ? 0 : err_set (err, ERR_NOMEM, "Slurm: no memory for timers");
}

void slurm_jobs_stop (struct slurm *slurm)
{
    struct slurm_job *job, *next;
    HASH_ITER (hh, slurm->jobs, job, next)
        slurm_job_free (job);
    HASH_ITER (hh_id, slurm->by_id, job, next)
        slurm_job_free (job);
    if (slurm->settle_timer)
        event_free (slurm->settle_timer);
}

static void problem (struct slurm_job *job, const char *event, const struct slurm_answer *answer)
{
    char quoted[600];
    log_event (job->owner->log, LOG_LEVEL_WARN, "slurm", event, "job=%s slurm_job=%s error=%s",
               job->job_id, job->rm_id, log_quote (answer->text, quoted, sizeof quoted));
}

/* --- cancelling --------------------------------------------------------------------------- */

static void on_cancelled (struct slurm_job *job, const struct slurm_answer *answer)
{
    enum { INVALID_JOB = 2017, ALREADY_DONE = 2021 };
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED) {
        slurm_job_settle_in (job, US_PER_S);
        return;
    }
    job->cancel = false;
    if (answer->code != 0 && answer->number != INVALID_JOB && answer->number != ALREADY_DONE)
        problem (job, "not_cancelled", answer);
    slurm_watch (job->owner);
}

static void cancel_send (struct slurm_job *job)
{
    char path[SLURM_ID_MAX + 8];
    snprintf (path, sizeof path, "job/%s", job->rm_id);
    errand_send (job, "DELETE", path, NULL, NULL, on_cancelled);
}

/* --- starting ----------------------------------------------------------------------------- */

static void go_back (struct slurm_job *job, bool refused, const char *reason)
{
    job->phase = PHASE_BACK;
    job->refused = refused;
    text_printf (job->back_reason, sizeof job->back_reason, "%.60s", reason);
}

static void on_moved (struct slurm_job *job, const struct slurm_answer *answer)
{
    if (job->phase != PHASE_MOVE)
        return;
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED) {
        slurm_job_settle_in (job, US_PER_S); /* whether it was heard shows when Slurm is back */
        return;
    }
    if (answer->code != 0) {
        problem (job, "not_moved", answer);
        go_back (job, true, answer->text);
        slurm_job_settle (job);
        return;
    }
    job->phase = PHASE_WATCH;
    job->deadline = clock_monotonic_us () + job->owner->patience;
    slurm_watch (job->owner);
}

static void move_send (struct slurm_job *job)
{
    char nodes[32];
    snprintf (nodes, sizeof nodes, "%u-%u", job->host_count, job->host_count);
    json_t *body = json_pack ("{s:s, s:s, s:s}", "partition", job->owner->partition, "node_list",
                              job->hosts, "nodes", nodes);
    if (*job->reservation)
        json_object_set_new (body, "reservation", json_string (job->reservation));
    if (job->restarts > 0) /* else it waits for credentials of its last run to expire */
        json_object_set_new (body, "begin_time", json_string ("now"));
    if (job->limitless) /* what was planned with holds */
        json_object_set_new (body, "time_limit",
                             json_integer ((job->walltime + 60 * US_PER_S - 1) / (60 * US_PER_S)));
    update (job, body, on_moved);
}

const char *slurm_job_class (const struct slurm_job *job)
{
    return job->class_name && *job->class_name ? job->class_name : job->owner->default_class;
}

/* What it was before we chose for it. */
static json_t *back_body (const struct slurm_job *job)
{
    char nodes[32];
    if (job->nodes_max)
        snprintf (nodes, sizeof nodes, "%u-%u", job->nodes_min ? job->nodes_min : 1,
                  job->nodes_max);
    else
        snprintf (nodes, sizeof nodes, "%u", job->nodes_min ? job->nodes_min : 1);
    json_t *body =
        json_pack ("{s:s, s:s, s:s, s:b}", "partition", slurm_job_class (job), "node_list",
                   job->hosts_wanted ? job->hosts_wanted : "", "nodes", nodes, "hold", 0);
    if (*job->reservation)
        json_object_set_new (body, "reservation", json_string (""));
    return body;
}

static void on_back (struct slurm_job *job, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED) {
        slurm_job_settle_in (job, US_PER_S);
        return;
    }
    if (answer->code != 0)
        problem (job, "not_moved_back", answer);
    if (job->phase != PHASE_BACK)
        return;
    not_started (job);
    slurm_look (job->owner, true);
}

static void back_send (struct slurm_job *job)
{
    if (job->native)
        update (job, back_body (job), on_back);
    else
        cancel_send (job); /* the next incarnation is another job of Slurm's */
}

/* --- submitting --------------------------------------------------------------------------- */

static void on_dropped (void *arg, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE)
        slurm_unreachable (arg, answer);
}

static void on_submitted (struct slurm_job *job, const struct slurm_answer *answer)
{
    struct slurm *slurm = job->owner;
    char rm_id[SLURM_ID_MAX];
    if (answer->code == ERR_UNAVAILABLE) {
        job->phase = PHASE_FIND; /* perhaps it was heard */
        return;
    }
    if (answer->code == ERR_DENIED && answer->number == 0) {
        slurm_job_settle_in (job, US_PER_S);
        return;
    }
    bool partly = answer->job_id > 0 && answer->code == ERR_INVALID;
    if (partly) { /* without something that we said: that is not the job */
        char path[SLURM_ID_MAX + 8];
        snprintf (path, sizeof path, "job/%lld", (long long)answer->job_id);
        struct slurm_request cancel = {
            .method = "DELETE", .path = path, .on_done = on_dropped, .arg = slurm};
        slurm_rest_send (slurm->rest, &cancel);
    }
    if (answer->job_id <= 0 || partly) {
        problem (job, "not_submitted", answer);
        start_failed (job, answer->code != 0,
                      *answer->text ? answer->text : "Slurm gave it no number");
        slurm_job_free (job);
        return;
    }
    snprintf (rm_id, sizeof rm_id, "%lld", (long long)answer->job_id);
    slurm_job_rm_id (job, rm_id);
    job->phase = PHASE_LATER;
    log_event (slurm->log, LOG_LEVEL_INFO, "slurm", "job_submitted", "job=%s slurm_job=%s user=%s",
               job->job_id, rm_id, job->user);
    struct rm_event event = {.kind = RM_EVENT_HANDED,
                             .job_id = job->job_id,
                             .incarnation = job->incarnation,
                             .rm_id = rm_id};
    slurm->on_event (slurm->arg, &event);
    slurm_job_settle (job);
}

static void submit_send (struct slurm_job *job)
{
    errand_send (job, "POST", "job/submit", job->user, json_loads (job->submission, 0, NULL),
                 on_submitted);
}

/* --- the guard ---------------------------------------------------------------------------- */

static void on_guarded (struct slurm_job *job, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED) {
        slurm_job_settle_in (job, US_PER_S);
        return;
    }
    job->guarded = true; /* refused: it has just ended, which the next look shows */
    slurm_job_settle (job);
}

/* It has its nodes: the reservation that it was started in is not to be kept alive by it. (That of a part stays, and its
 * partition may want one of each job.) */
static json_t *guard_body (const struct slurm_job *job)
{
    json_t *body = json_pack ("{s:b}", "hold", 1);
    if (*job->owner->resv_prefix && !job->owner->only)
        json_object_set_new (body, "reservation", json_string (""));
    return body;
}

/* It was requeued and waits, held, in our partition: back to where its user put it. */
static void on_returned (struct slurm_job *job, const struct slurm_answer *answer)
{
    if (answer->code != 0)
        problem (job, "not_moved_back", answer);
    slurm_look (job->owner, true);
}

/* --- holds -------------------------------------------------------------------------------- */

static void on_held (struct slurm_job *job, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED) {
        slurm_job_settle_in (job, US_PER_S);
        return;
    }
    if (answer->code != 0)
        problem (job, "not_held", answer);
    job->hold = HOLD_WISH_NONE;
    slurm_look (job->owner, true);
}

/* A user's hold is set in the user's name: it is one that the user may release. */
static void hold_send (struct slurm_job *job)
{
    char path[SLURM_ID_MAX + 8];
    bool on = job->hold != HOLD_WISH_RELEASE;
    snprintf (path, sizeof path, "job/%s", job->rm_id);
    errand_send (job, "POST", path, job->hold == HOLD_WISH_USER ? job->user : NULL,
                 json_pack ("{s:b}", "hold", on), on_held);
}

/* --- the next step ------------------------------------------------------------------------ */

/* Tells what is to be told. Returns whether the job is still what it was. */
static bool told (struct slurm_job *job)
{
    char key[JOBDIR_KEY_MAX];
    memcpy (key, job->key, sizeof key);
    bool runs = job->state == SLURM_RUNNING || job->state == SLURM_SUSPENDED;
    if (strcmp (job->word, "COMPLETING") == 0)
        return true; /* an end, or a requeue: it shows when its processes are gone */
    if (job->ran_since && job->state != SLURM_NONE &&
        (job->state == SLURM_PENDING || job->submit > job->ran_since))
        tell_requeued (job, job->ran_since);
    else if (job->started_told &&
             (job->state == SLURM_PENDING || job->restarts > job->restarts_told))
        tell_requeued (job, job->start_told);
    else if (runs && !job->started_told)
        tell_started (job);
    else if (job->state == SLURM_ENDED)
        tell_ended (job);
    if (strcmp (key, job->key) != 0)
        return false;
    if (runs && job->suspended_told != (job->state == SLURM_SUSPENDED))
        tell_suspended (job);
    return true;
}

/* A run that was begun in the second in which the one before was ended would have credentials that slurmd
 * takes for revoked. (Slurm itself waits two minutes; move_send does away with that.) */
static const duration_us revoked_for = 2 * US_PER_S;

static void step (struct slurm_job *job)
{
    bool never = strcmp (job->reason, "BadConstraints") == 0;
    if (job->busy || job->owner->observe || job->state == SLURM_ENDED)
        return;
    if (job->cancel && *job->rm_id) {
        cancel_send (job);
        return;
    }
    if (job->hold != HOLD_WISH_NONE && job->phase == PHASE_NONE && job->state == SLURM_PENDING) {
        hold_send (job);
        return;
    }
    switch (job->phase) {
    case PHASE_SUBMIT:
        submit_send (job);
        break;
    case PHASE_LATER:
        if (job->launch_at > clock_now_us () + launch_lead) {
            slurm_job_settle_in (job, job->launch_at - launch_lead - clock_now_us ());
            break;
        }
        job->phase = PHASE_MOVE;
        if (slurm_resv_join (job))
            move_send (job);
        break;
    case PHASE_MOVE:
        if (job->requeued && clock_monotonic_us () < job->requeued + revoked_for) {
            slurm_job_settle_in (job, job->requeued + revoked_for - clock_monotonic_us ());
            break;
        }
        /* Only by what Slurm says now: it may run already, or be gone. */
        if (job->owner->fresh && (job->state == SLURM_PENDING || !job->native) &&
            slurm_resv_join (job))
            move_send (job);
        break;
    case PHASE_BACK:
        back_send (job);
        break;
    case PHASE_WATCH:
        if (job->owner->fresh && (clock_monotonic_us () > job->deadline || never)) {
            go_back (job, never, job->reason);
            back_send (job);
        }
        break;
    default:
        if (job->started_told && !job->guarded && !job->held)
            update (job, guard_body (job), on_guarded);
        else if (job->native && job->state == SLURM_PENDING && job->held &&
                 strcmp (job->partition, job->owner->partition) == 0)
            update (job, back_body (job), on_returned);
        break;
    }
}

void slurm_job_settle (struct slurm_job *job)
{
    if (job->settling || !*job->job_id)
        return;
    job->settling = true;
    while (told (job) == false && *job->job_id)
        ;
    if (*job->job_id)
        step (job);
    job->settling = false;
}

void slurm_job_seen (struct slurm_job *job, const struct slurm_seen *seen, bool asked)
{
    struct slurm *slurm = job->owner;
    const struct rm_native *n = &seen->native;
    job->seen = slurm->look;
    job->gone = false;
    if (job->busy || (job->written > slurm->look && !asked))
        return;
    job->state = seen->state;
    number_set (job, seen->number);
    snprintf (job->word, sizeof job->word, "%s", seen->word);
    text_printf (job->reason, sizeof job->reason, "%s", seen->reason);
    snprintf (job->partition, sizeof job->partition, "%s", seen->partition);
    job->held = seen->priority == 0;
    job->native = strncmp (seen->comment, "nui:", 4) != 0;
    if (!job->user)
        job->user = strdup (n->user);
    job->start = n->start;
    job->end = seen->end;
    job->exit_status = seen->exit_status;
    if (seen->restarts > job->restarts)
        job->requeued = clock_monotonic_us ();
    job->restarts = seen->restarts;
    if (!job->placement || strcmp (job->placement, n->placement) != 0) {
        free (job->placement);
        job->placement = strdup (n->placement);
    }
    if (job->native && seen->state == SLURM_PENDING &&
        strcmp (seen->partition, slurm->partition) != 0) {
        free (job->class_name);
        free (job->hosts_wanted);
        job->class_name = strdup (seen->partition);
        job->hosts_wanted = strdup (n->hosts);
        job->nodes_min = n->nodes_min;
        job->nodes_max = n->nodes_max;
        job->limitless = n->walltime == 0;
    }
    slurm_job_settle (job);
}
