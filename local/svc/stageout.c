#include "local/svc/stageout.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/jobdir.h"
#include "local/store/leaving.h"
#include "local/svc/staging.h"

struct stageout {
    struct svc *svc;
    uint64_t number;
    char key[STAGE_KEY_MAX];
    struct event *failing; /* it could not even begin, for this reason */
    char text[STAGE_TEXT_MAX];
    UT_hash_handle hh;
};

static struct stageout *out_find (const struct svc *svc, uint64_t number)
{
    struct stageout *out;
    HASH_FIND (hh, svc->stageouts, &number, sizeof number, out);
    return out;
}

static void out_free (struct stageout *out)
{
    HASH_DEL (out->svc->stageouts, out);
    if (out->failing)
        event_free (out->failing);
    free (out);
}

int stageout_write (struct svc *svc, struct site_job *job, struct err *err)
{
    struct jobspec spec;
    bool well = job->rec.state == STORE_JOB_COMPLETED, any = well;
    if (!job->stages_out || !staging_mover (svc))
        return 0;
    int rc = jobspec_load (svc, &job->rec, &spec, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < spec.component->n_stage_out; i++)
        any = any || spec.component->stage_out[i]->always;
    jobspec_free (&spec);
    if (!any)
        return 0;
    if (well)
        svc_reason (job, "StageOut", "its files are being taken away");
    return leaving_put (svc->store, job->rec.number, err);
}

/* No more is to be done, or can be: durable, and told. */
static int over_write (struct svc *svc, uint64_t number, const char *failure, struct err *err)
{
    struct site_job ended = {.rec = {0}};
    int rc = local_store_job_get (svc->store, number, &ended.rec, err);
    if (rc != 0)
        return rc;
    if (ended.rec.state == STORE_JOB_COMPLETED)
        svc_reason (&ended, failure ? "StageOutFailed" : "", "%s", failure ? failure : "");
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = leaving_delete (svc->store, number, err);
    if (rc == 0)
        rc = svc_job_write (svc, &ended, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    store_job_free (&ended.rec);
    return rc;
}

static void over (struct stageout *out, const char *failure)
{
    struct svc *svc = out->svc;
    struct err err = {0};
    char id[SITE_ID_MAX];
    site_id (svc, out->number, id);
    if (failure)
        log_event (svc->log, LOG_LEVEL_WARN, "stage", "stage_out_failed", "job=%s error=\"%s\"", id,
                   failure);
    else
        log_event (svc->log, LOG_LEVEL_INFO, "stage", "staged_out", "job=%s", id);
    if (over_write (svc, out->number, failure, &err) != 0) {
        daemon_stop (svc->daemon, &err); /* begun again after a restart */
        return;
    }
    stage_forget (staging_mover (svc), out->key);
    out_free (out);
}

static void on_moved (void *arg, const char *key, const struct stage_result *result)
{
    (void)key;
    over (arg, result->code != 0 ? result->text : NULL);
}

static void on_failing (evutil_socket_t fd, short what, void *arg)
{
    struct stageout *out = arg;
    (void)fd;
    (void)what;
    over (out, out->text);
}

static int work_open (struct svc *svc, const struct store_job *rec, struct err *err)
{
    char id[SITE_ID_MAX];
    int parent = open (svc->job_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int dir = jobdir_open (parent, site_id (svc, rec->number, id), rec->incarnation, err);
    int work = dir < 0 ? -1 : openat (dir, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir >= 0 && work < 0)
        err_set (err, ERR_NOT_FOUND, "the directory of job %s is gone", id);
    if (dir >= 0)
        close (dir);
    if (parent >= 0)
        close (parent);
    return work;
}

static int move (struct stageout *out, const struct store_job *rec, struct err *err)
{
    struct svc *svc = out->svc;
    struct jobspec spec;
    int rc = jobspec_load (svc, rec, &spec, err);
    if (rc != 0)
        return rc;
    struct arena *arena = arena_create (0);
    struct stage_batch batch =
        staging_batch (&spec, out->key, true, rec->state == STORE_JOB_COMPLETED, arena);
    batch.since = rec->end;
    batch.dir = work_open (svc, rec, err);
    rc = batch.dir < 0 ? ERR_NOT_FOUND
                       : stage_begin (staging_mover (svc), &batch, on_moved, out, err);
    if (batch.dir >= 0)
        close (batch.dir);
    arena_destroy (arena);
    jobspec_free (&spec);
    return rc;
}

void stageout_begin (struct svc *svc, uint64_t number)
{
    struct err err = {0};
    struct store_job rec = {0};
    bool leaves = false;
    char id[SITE_ID_MAX];
    if (!staging_mover (svc) || leaving_has (svc->store, number, &leaves, &err) != 0 || !leaves)
        return;
    struct stageout *out = calloc (1, sizeof *out);
    assert (out);
    out->svc = svc;
    out->number = number;
    snprintf (out->key, sizeof out->key, "%s.out", site_id (svc, number, id));
    HASH_ADD (hh, svc->stageouts, number, sizeof out->number, out);
    int rc = local_store_job_get (svc->store, number, &rec, &err);
    if (rc == 0)
        rc = move (out, &rec, &err);
    store_job_free (&rec);
    if (rc == 0)
        return;
    snprintf (out->text, sizeof out->text, "%s", err.text);
    out->failing = evtimer_new (svc->base, on_failing, out);
    event_add (out->failing, &(struct timeval){0});
}

struct numbers {
    uint64_t *item;
    size_t count, cap;
};

static void number_keep (void *arg, uint64_t number)
{
    struct numbers *list = arg;
    if (list->count == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 16;
        list->item = realloc (list->item, list->cap * sizeof *list->item);
        assert (list->item);
    }
    list->item[list->count++] = number;
}

int stageout_recover (struct svc *svc, struct err *err)
{
    struct numbers list = {0};
    int rc = leaving_each (svc->store, number_keep, &list, err);
    if (rc == 0 && list.count)
        rc = staging_need (svc, err);
    for (size_t i = 0; rc == 0 && i < list.count; i++)
        stageout_begin (svc, list.item[i]);
    free (list.item);
    return rc;
}

void stageout_close (struct svc *svc)
{
    struct stageout *out, *next;
    HASH_ITER (hh, svc->stageouts, out, next)
    out_free (out);
}

void stageout_info (const struct svc *svc, uint64_t number, struct arena *arena,
                    Nui__Local__V1__JobInfo *info)
{
    const struct stageout *out = out_find (svc, number);
    if (out)
        staging_transfers (svc, out->key, true, arena, info);
}
