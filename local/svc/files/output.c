/* A job's output as a stream: what is there, and while the job runs what comes, as filewatch tells. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "local/rm/filewatch.h"
#include "local/svc/caller.h"
#include "local/svc/files/stageout.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"

enum { CHUNK = 32 * 1024, STREAMS_OF_ONE = 256, STREAMS_MAX = 1024 };

struct output_stream {
    struct svc *svc;
    struct rpccall *call;
    char who[PRINCIPAL_URI_MAX]; /* follows it */
    uint64_t job;
    uint32_t incarnation;
    char mark[RM_MARK_MAX];
    char stream[8];
    int64_t offset;
    bool follow;
    bool blocked; /* the peer is slow: until its ready hook */
    bool cancelled;
    int fd;
    struct filewatch_one *watched; /* its file, once the job has made it */
    struct event *changed;
    struct output_stream *prev, *next;
};

static void stream_free (struct output_stream *s)
{
    DL_DELETE (s->svc->outputs, s);
    filewatch_remove (s->watched);
    if (s->changed)
        event_free (s->changed);
    if (s->fd >= 0)
        close (s->fd);
    free (s);
}

static void stream_end (struct output_stream *s, enum rpc_status status, const char *message)
{
    struct rpccall *call = s->call;
    stream_free (s);
    rpccall_finish (call, status, message);
}

static void pump (struct output_stream *s);

static void on_change (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    pump (arg);
}

/* Opens the file once the job has made it. */
static void stream_open (struct output_stream *s)
{
    char id[SITE_ID_MAX], path[64];
    struct err err = {0};
    if (s->fd >= 0)
        return;
    s->fd = s->svc->rm.ops->output_open (s->svc->rm.self, site_id (s->svc, s->job, id),
                                         s->incarnation, s->mark, s->stream, NULL);
    if (s->fd < 0 || !s->follow)
        return;
    snprintf (path, sizeof path, "/proc/self/fd/%d", s->fd);
    s->changed = event_new (s->svc->base, -1, 0, on_change, s);
    assert (s->changed);
    /* Where that fails, what is there then is sent when the job ends. */
    if (filewatch_add (s->svc->watch, path, IN_MODIFY, s->changed, &s->watched, &err) != 0)
        log_event (s->svc->log, LOG_LEVEL_WARN, "svc", "output_unwatched", "error=\"%s\"",
                   err.text);
}

static bool send_chunk (struct output_stream *s, const void *data, size_t len, bool eof)
{
    Nui__Common__V1__OutputChunk chunk = NUI__COMMON__V1__OUTPUT_CHUNK__INIT;
    chunk.stream = s->stream;
    chunk.offset = s->offset;
    chunk.data.data = (uint8_t *)data;
    chunk.data.len = len;
    chunk.eof = eof;
    return rpccall_send (s->call, &chunk.base);
}

/* Sends what is there. Frees the stream when that was all there will be. */
static void pump (struct output_stream *s)
{
    char buf[CHUNK];
    struct site_job *live = svc_job (s->svc, s->job); /* before reading: its last words count */
    if (live)
        s->incarnation = live->rec.incarnation;
    stream_open (s);
    while (s->fd >= 0 && !s->blocked) {
        ssize_t n = pread (s->fd, buf, sizeof buf, s->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        s->blocked = !send_chunk (s, buf, (size_t)n, false);
        s->offset += n;
    }
    if (s->blocked || s->cancelled)
        return;
    if (live && s->follow)
        return;
    send_chunk (s, NULL, 0, !live);
    stream_end (s, RPC_OK, NULL);
}

static void on_ready (void *arg)
{
    struct output_stream *s = arg;
    if (!s->blocked)
        return;
    s->blocked = false;
    pump (s);
}

static void on_cancel (void *arg)
{
    struct output_stream *s = arg;
    s->cancelled = true;
    stream_end (s, RPC_CANCELLED, "cancelled");
}

/* Each has a file open: of a caller so many, and of all so many. */
static int stream_admit (struct svc *svc, const char *who, struct err *err)
{
    struct output_stream *s;
    uint32_t own = 0, all = 0;
    DL_FOREACH (svc->outputs, s) {
        own += strcmp (s->who, who) == 0;
        all++;
    }
    if (own >= STREAMS_OF_ONE)
        return err_set (err, ERR_LIMIT, "you follow %d outputs here already", STREAMS_OF_ONE);
    if (all >= STREAMS_MAX)
        return err_set (err, ERR_LIMIT, "%d outputs are followed here: try again", STREAMS_MAX);
    return 0;
}

void output_serve (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__OutputRequest *r = (const Nui__Local__V1__OutputRequest *)request;
    struct store_job rec = {0};
    struct admin_caller caller;
    struct err err = {0};
    const char *stream = *r->stream ? r->stream : "stdout";
    int rc = 0;
    if (strcmp (stream, "stdout") != 0 && strcmp (stream, "stderr") != 0)
        rc = err_set (&err, ERR_INVALID, "stream '%.20s': wanted stdout or stderr", stream);
    if (rc == 0 && r->offset < 0)
        rc = err_set (&err, ERR_INVALID, "offset %lld", (long long)r->offset);
    if (rc == 0)
        rc = jobs_find (svc, call, r->job_id, r->component, &rec, &err);
    if (rc == 0)
        rc = jobs_allowed (svc, call, &rec, JOBS_OWNER | JOBS_OPERATOR, &err);
    if (rc == 0 && !r->follow && !rec.start && !store_job_ended (rec.state))
        rc = err_set (&err, ERR_CONFLICT, "job %.80s has not started, there is no output yet",
                      r->job_id);
    admin_who (svc, call, &caller);
    if (rc == 0)
        rc = stream_admit (svc, caller.name, &err);
    struct output_stream *s = rc == 0 ? calloc (1, sizeof *s) : NULL;
    if (!s) {
        store_job_free (&rec);
        if (rc == 0)
            err_set (&err, ERR_NOMEM, "output: no memory");
        rpccall_fail (call, &err);
        return;
    }
    s->svc = svc;
    s->call = call;
    s->job = rec.number;
    s->incarnation = rec.incarnation;
    life_mark (svc, &rec, s->mark);
    text_printf (s->who, sizeof s->who, "%s", caller.name);
    s->offset = r->offset;
    s->follow = r->follow;
    s->fd = -1;
    snprintf (s->stream, sizeof s->stream, "%s", stream);
    store_job_free (&rec);
    DL_APPEND (svc->outputs, s);
    rpccall_on_cancel (call, on_cancel, s);
    rpccall_on_ready (call, on_ready, s);
    pump (s);
}

static void output_job_ended (struct svc *svc, uint64_t number)
{
    struct output_stream *s, *next;
    DL_FOREACH_SAFE (svc->outputs, s, next)
        if (s->job == number)
            pump (s);
}

void output_draining (struct svc *svc)
{
    struct output_stream *s, *next;
    DL_FOREACH_SAFE (svc->outputs, s, next)
        stream_end (s, RPC_UNAVAILABLE, "the site is stopping; ask again from the offset you have");
}

static void output_job_changed (struct svc *svc, struct site_job *job)
{
    output_job_ended (svc, job->rec.number);
}

const struct svc_listener output_listener = {.job_started = output_job_changed,
                                             .job_requeued = output_job_changed,
                                             .job_ended = output_job_ended,
                                             .stop = output_draining};
