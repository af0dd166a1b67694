/* The files of waiting jobs, on their way in: who wants which, when they are expected, and what of jobs whose files cannot
 * come: they end. The mover's batches are staging_ask.c's, the directories staging_dir.c's. */
#include "local/svc/files/staging.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/svc/files/staging_i.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

#define KEEP_UNUSED (15 * 60 * US_PER_S)

/* --- one component's files ---------------------------------------------------------------------
 */

static void in_free (struct staging_in *in)
{
    HASH_DEL (in->svc->staging->ins, in);
    event_free (in->unused);
    if (in->failing)
        event_free (in->failing);
    free (in);
}

/* Nobody came back for them. */
static void on_unused (evutil_socket_t fd, short what, void *arg)
{
    struct staging_in *in = arg;
    (void)fd;
    (void)what;
    stage_forget (in->svc->staging->mover, in->key);
    staging_dir_remove (in->svc, in->key);
    in_free (in);
}

static void unused_arm (struct staging_in *in)
{
    event_add (in->unused, &(struct timeval){.tv_sec = KEEP_UNUSED / US_PER_S});
}

static struct staging_in *in_add (struct svc *svc, const char *key)
{
    struct staging_in *in = calloc (1, sizeof *in);
    assert (in);
    in->svc = svc;
    snprintf (in->key, sizeof in->key, "%s", key);
    in->unused = evtimer_new (svc->base, on_unused, in);
    assert (in->unused);
    HASH_ADD_STR (svc->staging->ins, key, in);
    return in;
}

static void user_add (struct staging_in *in, struct site_job *job)
{
    job->stage_in = in;
    job->stage_next = in->users;
    in->users = job;
    evtimer_del (in->unused);
}

static void user_take (struct site_job *job)
{
    struct site_job **at = &job->stage_in->users;
    while (*at != job)
        at = &(*at)->stage_next;
    *at = job->stage_next;
    job->stage_in = NULL;
    job->stage_next = NULL;
}

/* The core hears when they are expected; 0: they are here. */
static void expect (struct svc *svc, struct site_job *job, time_us at)
{
    struct err err = {0};
    struct job_view view;
    job->data_at = at;
    if (!job->in_cluster ||
        cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, NULL) != 0 ||
        view.state != JOB_IDLE)
        return;
    if (svc_cluster_modify (svc, job, &err) != 0)
        log_event (svc->log, LOG_LEVEL_ERROR, "svc", "core_disagrees", "error=\"%s\"", err.text);
}

/* It ends for want of its files: an ordinary job, or a part that would have been firm. */
static void job_fail (struct svc *svc, struct site_job *job, const char *text)
{
    struct err err = {0};
    svc_reason (job, "StageIn", "%s", text);
    if (life_end_unstarted (svc, job, STORE_JOB_FAILED, &err) != 0)
        daemon_stop (svc->daemon, &err); /* found again after a restart */
}

static void in_failed (struct staging_in *in, const char *text)
{
    struct svc *svc = in->svc;
    in->state = COMING_FAILED;
    text_printf (in->text, sizeof in->text, "%s", text);
    log_event (svc->log, LOG_LEVEL_WARN, "stage", "stage_in_failed", "key=%s error=\"%s\"", in->key,
               text);
    while (in->users) {
        struct site_job *job = in->users;
        user_take (job);
        if (job->rec.state == STORE_JOB_QUEUED || job->rec.state == STORE_JOB_RESERVED)
            job_fail (svc, job, text);
    }
    unused_arm (in);
}

static void on_moved (void *arg, const char *key, const struct stage_result *result)
{
    struct svc *svc = arg;
    struct staging_in *in = staging_find (svc, key);
    if (!in)
        return;
    if (result->code != 0) {
        in_failed (in, result->text);
        return;
    }
    in->state = COMING_HERE;
    in->expected = 0;
    log_event (svc->log, LOG_LEVEL_INFO, "stage", "staged_in", "key=%s bytes=%lld", key,
               (long long)result->bytes);
    for (struct site_job *job = in->users; job; job = job->stage_next)
        expect (svc, job, 0);
    pass_wake (svc);
}

static int move_begin (struct staging_in *in, const struct jobspec *spec, time_us since,
                       struct err *err)
{
    struct svc *svc = in->svc;
    struct arena *arena = arena_create (0);
    struct stage_batch batch = staging_batch (spec, in->key, false, true, arena);
    int rc = staging_dir_make (svc, in->key, spec->local_account, &batch.dir, err);
    batch.since = since;
    if (rc == 0) {
        rc = stage_begin (svc->staging->mover, &batch, on_moved, svc, err);
        close (batch.dir);
    }
    arena_destroy (arena);
    in->state = COMING_MOVES;
    in->moved_at = svc_now (svc);
    in->expected = in->moved_at + staging_left (in);
    return rc;
}

/* What could not even begin fails from the loop: the caller is in the middle of something. */
static void on_fail_later (evutil_socket_t fd, short what, void *arg)
{
    struct staging_in *in = arg;
    (void)fd;
    (void)what;
    event_free (in->failing);
    in->failing = NULL;
    char text[STAGE_TEXT_MAX];
    text_printf (text, sizeof text, "%s", in->text);
    in_failed (in, text);
}

void staging_want (struct svc *svc, struct site_job *job, const struct jobspec *spec)
{
    char key[STAGING_KEY_MAX];
    struct err err = {0};
    if (!svc->staging || !spec->component || spec->component->n_stage_in == 0 || job->stage_in)
        return;
    inputs_hold (svc, job, spec);
    staging_key (spec, key);
    struct staging_in *in = staging_find (svc, key);
    bool moves = in && in->state != COMING_FAILED && in->users;
    bool here = in && in->state == COMING_HERE;
    if (!in)
        in = in_add (svc, key);
    user_add (in, job);
    if (!moves && !here) {
        stage_cancel (svc->staging->mover, key); /* of a try that failed, or nobody waited for */
        if (move_begin (in, spec, job->rec.submit, &err) != 0) {
            text_printf (in->text, sizeof in->text, "%s", err.text);
            in->failing = evtimer_new (svc->base, on_fail_later, in);
            event_add (in->failing, &(struct timeval){0});
        }
    }
    expect (svc, job, in->state == COMING_HERE ? 0 : in->expected);
}

void staging_again (struct svc *svc, struct site_job *job)
{
    struct jobspec spec;
    struct err err = {0};
    if (!job->stages || job->stage_in || staging_need (svc, &err) != 0 || !svc->staging)
        return;
    if (jobspec_load (svc, &job->rec, &spec, &err) != 0) {
        log_event (svc->log, LOG_LEVEL_ERROR, "stage", "not_begun", "error=\"%s\"", err.text);
        return;
    }
    staging_want (svc, job, &spec);
    jobspec_free (&spec);
}

/* Others may still want its files. */
static void staging_leave (struct svc *svc, struct site_job *job)
{
    struct staging_in *in = job->stage_in;
    if (!in)
        return;
    user_take (job);
    if (in->users)
        return;
    if (in->state == COMING_MOVES)
        stage_cancel (svc->staging->mover, in->key); /* what has come stays for who comes next */
    unused_arm (in);
}

bool staging_ready (const struct site_job *job)
{
    return !job->stage_in || job->stage_in->state == COMING_HERE;
}

const char *staging_text (const struct site_job *job, struct arena *arena)
{
    const struct staging_in *in = job->stage_in;
    struct stage_progress progress;
    char when[QUANTITY_TEXT_MAX];
    if (stage_progress (in->svc->staging->mover, in->key, &progress, NULL) != 0)
        return "its files are not here yet";
    const char *of = progress.bytes_total >= 0
                         ? arena_printf (arena, " of %lld", (long long)progress.bytes_total)
                         : "";
    return arena_printf (arena,
                         "%u of %u files (%lld%s bytes) are here; the rest is expected at %s",
                         progress.files_done, progress.files, (long long)progress.bytes_done, of,
                         time_format_iso (job->data_at ? job->data_at : in->expected, when));
}

/* How long nothing has come. */
static duration_us stalled_for (struct staging_in *in, time_us now)
{
    struct stage_progress progress;
    if (stage_progress (in->svc->staging->mover, in->key, &progress, NULL) == 0 &&
        progress.bytes_done != in->bytes) {
        in->bytes = progress.bytes_done;
        in->moved_at = now;
    }
    return now > in->moved_at ? now - in->moved_at : 0;
}

/* What has stood still is expected to go on doing so as long again, so that it keeps nobody else
 * waiting. Small changes are not worth another plan; a moment that has passed is none. */
static time_us expected_now (struct staging_in *in, time_us now)
{
    enum { TENTH = 10 };
    duration_us left = staging_left (in), stalled = stalled_for (in, now);
    left = left > stalled ? left : stalled;
    time_us at = now + (left > US_PER_S ? left : US_PER_S);
    duration_us off = at > in->expected ? at - in->expected : in->expected - at;
    if (in->expected <= now || off > (left > 50 * US_PER_S ? left / TENTH : 5 * US_PER_S))
        in->expected = at;
    return in->expected;
}

void staging_settle (struct svc *svc)
{
    struct staging_in *in, *next;
    time_us now = svc_now (svc);
    if (!svc->staging)
        return;
    HASH_ITER (hh, svc->staging->ins, in, next) {
        if (in->state != COMING_MOVES || !in->users)
            continue;
        time_us at = expected_now (in, now);
        for (struct site_job *job = in->users; job; job = job->stage_next)
            if (job->data_at != at)
                expect (svc, job, at);
    }
}

/* It was launched with them. */
static void staging_used (struct svc *svc, struct site_job *job)
{
    struct staging_in *in = job->stage_in;
    if (!in)
        return;
    user_take (job);
    stage_forget (svc->staging->mover, in->key);
    while (in->users) { /* of the same job, and not started */
        struct site_job *other = in->users;
        user_take (other);
    }
    in_free (in);
}

/* --- after a restart ---------------------------------------------------------------------------
 */

void staging_regain (struct svc *svc, struct site_job *job, const struct jobspec *spec)
{
    struct stat st;
    char key[STAGING_KEY_MAX];
    if (!job->stages || staging_need (svc, NULL) != 0 || !svc->staging)
        return;
    inputs_hold (svc, job, spec);
    if (job->rec.state == STORE_JOB_QUEUED) {
        staging_want (svc, job, spec);
        return;
    }
    staging_key (spec, key);
    if (job->rec.state != STORE_JOB_STARTING || svc->staging->dir < 0 ||
        fstatat (svc->staging->dir, key, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* it has them, or wants none yet */
    struct staging_in *in = staging_find (svc, key);
    in = in ? in : in_add (svc, key);
    in->state = COMING_HERE; /* else it would not have been chosen */
    user_add (in, job);
}

void staging_recovered (struct svc *svc)
{
    bool some = svc->staging && svc->staging->dir >= 0;
    int fd = some ? openat (svc->staging->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
    for (struct dirent *one; dir && (one = readdir (dir));)
        if (strlen (one->d_name) == STAGING_KEY_MAX - 1 && !staging_find (svc, one->d_name))
            unused_arm (in_add (svc, one->d_name));
    if (dir)
        closedir (dir);
    else if (fd >= 0)
        close (fd);
}

static void staging_close (struct svc *svc)
{
    struct staging *staging = svc->staging;
    struct staging_in *in, *next;
    if (!staging)
        return;
    HASH_ITER (hh, staging->ins, in, next) {
        while (in->users)
            user_take (in->users);
        in_free (in);
    }
    staging_askings_drop (svc);
    staging_removals_drop (svc);
    stage_destroy (staging->mover);
    if (staging->dir >= 0)
        close (staging->dir);
    free (staging);
    svc->staging = NULL;
}

const struct svc_listener staging_listener = {.open = staging_open,
                                              .reload = staging_reload,
                                              .job_launched = staging_used,
                                              .job_requeued = staging_again,
                                              .job_leaves = staging_leave,
                                              .stop = staging_close};
