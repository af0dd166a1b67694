/* The files of jobs that have ended, on their way out: written down with the end, moved by the mover, tried once more when
 * somebody asks (RESTAGE). It changes nothing of a job but its reason. */
#include "local/svc/files/stageout.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/jobdir.h"
#include "local/store/leaving.h"
#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"
#include "proto/job/jobcheck.h"

struct stageout {
    struct svc *svc;
    uint64_t number;
    char key[STAGE_KEY_MAX];
    uint32_t again[JOB_TRANSFERS_MAX]; /* only these: the others have gone */
    uint32_t again_count;              /* 0: none has gone yet */
    struct event *failing;             /* it could not even begin, for this reason */
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

/* Of a job that ran; sets its reason, where it ended well. */
static int stageout_write (struct svc *svc, struct site_job *job, const struct job_end *end,
                           struct err *err)
{
    struct jobspec spec;
    bool well = job->rec.state == STORE_JOB_COMPLETED, any = well;
    if (end->how != JOB_RAN || !job->stages_out || !staging_mover (svc))
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

/* --- the files -------------------------------------------------------------------------------- */

static void again_keep (void *arg, const struct leaving_file *file)
{
    struct stageout *out = arg;
    if (out->again_count < JOB_TRANSFERS_MAX)
        out->again[out->again_count++] = file->place;
}

/* What is to be taken now. */
static struct stage_batch batch_of (const struct stageout *out, const struct store_job *rec,
                                    const struct jobspec *spec, struct arena *arena)
{
    struct stage_batch batch =
        staging_batch (spec, out->key, true, rec->state == STORE_JOB_COMPLETED, arena);
    if (out->again_count == 0)
        return batch;
    struct stage_file *file = arena_array (arena, out->again_count, sizeof *file);
    for (uint32_t i = 0; i < out->again_count; i++) {
        assert (out->again[i] < batch.file_count && "the signed job is another");
        file[i] = batch.file[out->again[i]];
    }
    batch.file = file;
    batch.file_count = out->again_count;
    return batch;
}

/* In a transaction: which could not go, and why; without progress none has begun. */
static int failed_write (struct stageout *out, const struct stage_batch *batch, const char *failure,
                         struct err *err)
{
    struct svc *svc = out->svc;
    char url[STAGE_URL_MAX];
    int rc = leaving_failed_clear (svc->store, out->number, err);
    for (uint32_t i = 0; i < batch->file_count && rc == 0; i++) {
        struct stage_file_progress p = {.state = STAGE_FAILED, .bytes_total = -1, .text = failure};
        (void)stage_file_progress (staging_mover (svc), out->key, i, &p, NULL);
        if (p.state == STAGE_DONE)
            continue;
        stage_url_show (batch->file[i].url, url, sizeof url);
        struct leaving_file file = {.place = out->again_count ? out->again[i] : i,
                                    .path = batch->file[i].path,
                                    .url = url,
                                    .text = p.text && *p.text ? p.text : failure,
                                    .bytes = p.bytes_total > 0 ? p.bytes_total : 0,
                                    .bytes_done = p.bytes_done};
        rc = leaving_failed_put (svc->store, out->number, &file, err);
    }
    return rc;
}

/* --- their end -------------------------------------------------------------------------------- */

/* No more is to be done, or can be: durable, and told. */
static int over_write (struct stageout *out, const char *failure, struct err *err)
{
    struct svc *svc = out->svc;
    struct site_job ended = {.rec = {0}};
    struct jobspec spec;
    struct stage_batch batch = {0};
    int rc = local_store_job_get (svc->store, out->number, &ended.rec, err);
    if (rc != 0)
        return rc;
    struct arena *arena = arena_create (0);
    bool known = failure && jobspec_load (svc, &ended.rec, &spec, NULL) == 0;
    if (known)
        batch = batch_of (out, &ended.rec, &spec, arena);
    if (ended.rec.state == STORE_JOB_COMPLETED)
        svc_reason (&ended, failure ? "StageOutFailed" : "", "%s", failure ? failure : "");
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = leaving_delete (svc->store, out->number, err);
    if (rc == 0 && (known || !failure))
        rc = failed_write (out, &batch, failure, err);
    if (rc == 0)
        rc = svc_job_write (svc, &ended, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    if (known)
        jobspec_free (&spec);
    arena_destroy (arena);
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
    int rc = over_write (out, failure, &err);
    if (rc != 0 && rc != ERR_NOT_FOUND) { /* the job itself may be forgotten by now */
        daemon_stop (svc->daemon, &err);  /* begun again after a restart */
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

int files_work_open (struct svc *svc, const struct store_job *rec, struct err *err)
{
    char id[SITE_ID_MAX], mark[RM_MARK_MAX];
    life_mark (svc, rec, mark);
    int parent = open (svc->job_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int dir = jobdir_open (parent, site_id (svc, rec->number, id), rec->incarnation, mark, err);
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
    struct stage_batch batch = batch_of (out, rec, &spec, arena);
    batch.since = rec->end;
    batch.dir = files_work_open (svc, rec, err);
    rc = batch.dir < 0 ? ERR_NOT_FOUND
                       : stage_begin (staging_mover (svc), &batch, on_moved, out, err);
    if (batch.dir >= 0)
        close (batch.dir);
    arena_destroy (arena);
    jobspec_free (&spec);
    return rc;
}

/* Nothing happens where nothing was written. */
static void stageout_begin (struct svc *svc, uint64_t number)
{
    struct err err = {0};
    struct store_job rec = {0};
    enum leaving state;
    char id[SITE_ID_MAX];
    if (!staging_mover (svc) || leaving_state (svc->store, number, &state, &err) != 0 ||
        state != LEAVING_NOW)
        return;
    struct stageout *out = calloc (1, sizeof *out);
    assert (out);
    out->svc = svc;
    out->number = number;
    snprintf (out->key, sizeof out->key, "%s.out", site_id (svc, number, id));
    HASH_ADD (hh, svc->stageouts, number, sizeof out->number, out);
    int rc = local_store_job_get (svc->store, number, &rec, &err);
    if (rc == 0)
        rc = leaving_failed_each (svc->store, number, again_keep, out, &err);
    if (rc == 0)
        rc = move (out, &rec, &err);
    store_job_free (&rec);
    if (rc == 0)
        return;
    text_printf (out->text, sizeof out->text, "%s", err.text);
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

static void stageout_close (struct svc *svc)
{
    struct stageout *out, *next;
    HASH_ITER (hh, svc->stageouts, out, next)
        out_free (out);
}

/* --- what is told ----------------------------------------------------------------------------- */

struct telling {
    struct arena *arena;
    Nui__Local__V1__JobInfo *info;
    time_us kept;
};

static void failed_tell (void *arg, const struct leaving_file *file)
{
    struct telling *to = arg;
    Nui__Common__V1__TransferInfo *t = arena_new (to->arena, Nui__Common__V1__TransferInfo);
    if (to->info->n_transfers == JOB_TRANSFERS_MAX)
        return;
    nui__common__v1__transfer_info__init (t);
    t->out = true;
    t->url = arena_strdup (to->arena, file->url);
    t->path = arena_strdup (to->arena, file->path);
    t->text = arena_strdup (to->arena, file->text);
    t->state = (char *)"Failed";
    t->bytes = file->bytes;
    t->bytes_done = file->bytes_done;
    t->kept_us = to->kept;
    to->info->transfers[to->info->n_transfers++] = t;
}

void stageout_info (const struct svc *svc, const struct store_job *rec, struct arena *arena,
                    Nui__Local__V1__JobInfo *info)
{
    const struct stageout *out = out_find (svc, rec->number);
    enum leaving state;
    if (leaving_state (svc->store, rec->number, &state, NULL) != 0 || state == LEAVING_NOTHING)
        return;
    info->stage_out = (char *)(state == LEAVING_NOW ? "Leaving" : "Failed");
    if (state == LEAVING_NOW && out)
        staging_transfers (svc, out->key, true, arena, info);
    if (info->n_transfers == 0) {
        struct telling telling = {arena, info, jobs_kept_until (svc, rec)};
        info->transfers = arena_array (arena, JOB_TRANSFERS_MAX, sizeof *info->transfers);
        (void)leaving_failed_each (svc->store, rec->number, failed_tell, &telling, NULL);
    }
}

/* --- once more -------------------------------------------------------------------------------- */

/* Durable, and told, before it begins. */
static int again_write (struct svc *svc, uint64_t number, struct err *err)
{
    struct site_job ended = {.rec = {0}};
    int rc = local_store_job_get (svc->store, number, &ended.rec, err);
    if (rc != 0)
        return rc;
    if (ended.rec.state == STORE_JOB_COMPLETED)
        svc_reason (&ended, "StageOut", "its files are being taken away");
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = leaving_put (svc->store, number, err);
    if (rc == 0)
        rc = svc_job_write (svc, &ended, true, NULL, 0, err);
    rc = svc_commit (svc, rc, err);
    store_job_free (&ended.rec);
    return rc;
}

static int again (struct svc *svc, const struct store_job *rec, struct err *err)
{
    enum leaving state;
    char id[SITE_ID_MAX], when[QUANTITY_TEXT_MAX];
    time_us kept = jobs_kept_until (svc, rec);
    int rc = leaving_state (svc->store, rec->number, &state, err);
    if (rc != 0 || state != LEAVING_FAILED)
        return rc;
    if (kept && svc_now (svc) >= kept) /* the purge may be at them */
        return err_set (err, ERR_CONFLICT, "the files of job %s were kept until %s",
                        site_id (svc, rec->number, id), time_format_iso (kept, when));
    rc = staging_need (svc, err);
    if (rc == 0 && !staging_mover (svc))
        rc = err_set (err, ERR_DENIED, "files cannot be staged at %s now", svc->site);
    if (rc == 0)
        rc = svc_may_act (svc, err);
    if (rc == 0)
        rc = again_write (svc, rec->number, err);
    if (rc != 0)
        return rc;
    log_event (svc->log, LOG_LEVEL_INFO, "stage", "stage_out_again", "job=%s",
               site_id (svc, rec->number, id));
    stageout_begin (svc, rec->number);
    return 0;
}

void stageout_restage (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__RestageRequest *r = (const Nui__Local__V1__RestageRequest *)request;
    Nui__Local__V1__RestageReply reply = NUI__LOCAL__V1__RESTAGE_REPLY__INIT;
    Nui__Local__V1__JobInfo info = NUI__LOCAL__V1__JOB_INFO__INIT;
    struct store_job rec = {0};
    struct err err = {0};
    char id[SITE_ID_MAX];
    int rc = jobs_find (svc, call, r->job_id, r->component, &rec, &err);
    if (rc == 0)
        rc = jobs_allowed (svc, call, &rec, JOBS_OWNER | JOBS_OPERATOR | JOBS_META, &err);
    site_id (svc, rec.number, id);
    if (rc == 0 && !store_job_ended (rec.state))
        rc = err_set (&err, ERR_CONFLICT, "job %s has not ended", id);
    if (rc == 0 && !r->look)
        rc = again (svc, &rec, &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
    } else {
        arena_reset (svc->call_arena);
        stageout_info (svc, &rec, svc->call_arena, &info);
        reply.site_job_id = id;
        reply.component = rec.component;
        reply.transfers = info.transfers;
        reply.n_transfers = info.n_transfers;
        rpccall_reply (call, &reply.base);
    }
    store_job_free (&rec);
}

const struct svc_listener stageout_listener = {
    .job_ends = stageout_write, .job_ended = stageout_begin, .stop = stageout_close};
