/* FILES and FETCH: what lies in a job's directory, and one file of it as a stream, for the job's owner. Files are looked at and
 * opened as the job's account, below its directory and through no link (userfile.h). A stream goes in turns of the loop; the
 * whole file is hashed, also what the caller has already, so that he can check what he put together. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "local/stage/userfile.h"
#include "local/svc/files/stageout.h"
#include "local/svc/job/jobs.h"
#include "local/svc/svc_i.h"
#include "proto/hash/sha256.h"
#include "proto/job/stagespec.h"

enum { CHUNK = 128 * 1024, CHUNKS_PER_TURN = 8, FILES_MAX = 4096 };

struct fetch {
    struct svc *svc;
    struct rpccall *call;
    int fd;
    int64_t at, offset, size; /* hashed so far; sent from; of the file when it was opened */
    EVP_MD_CTX *hash;
    bool blocked; /* the peer is slow: until its ready hook */
    struct event *turn;
    struct fetch *prev, *next;
    uint8_t buf[CHUNK];
};

/* The directory of a job that the caller owns, and its account; *dir_out and *account are the caller's. */
static int fetch_place (struct svc *svc, struct rpccall *call, const char *job_id,
                        const char *component, int *dir_out, struct userfile_account *account,
                        struct err *err)
{
    struct store_job rec = {0};
    int rc = jobs_find (svc, call, job_id, component, &rec, err);
    if (rc != 0)
        return rc;
    rc = jobs_allowed (svc, call, &rec, JOBS_OWNER, err);
    if (rc == 0 && !rec.start)
        rc = err_set (err, ERR_CONFLICT, "job %.80s has not run, so it has no files", job_id);
    if (rc == 0)
        rc = userfile_account_get (rec.local_account, account, err);
    if (rc == 0) {
        *dir_out = files_work_open (svc, &rec, err);
        if (*dir_out < 0) {
            userfile_account_free (account);
            rc = err_set (err, ERR_NOT_FOUND,
                          "the files of job %.80s are not there any more, or not yet", job_id);
        }
    }
    store_job_free (&rec);
    return rc;
}

/* --- FILES ------------------------------------------------------------------------------------ */

struct list {
    struct arena *arena;
    Nui__Local__V1__FilesReply *reply;
};

static void list_add (void *arg, const char *path, const struct stat *st)
{
    struct list *list = arg;
    if (stage_names_check (path, NULL) != 0)
        return; /* no client could ask for it */
    Nui__Local__V1__FileInfo *info = arena_new (list->arena, Nui__Local__V1__FileInfo);
    nui__local__v1__file_info__init (info);
    info->path = arena_strdup (list->arena, path);
    info->bytes = st->st_size;
    info->changed_us = st->st_mtim.tv_sec * US_PER_S + st->st_mtim.tv_nsec / 1000;
    list->reply->files[list->reply->n_files++] = info;
}

void fetch_files (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__FilesRequest *r = (const Nui__Local__V1__FilesRequest *)request;
    Nui__Local__V1__FilesReply reply = NUI__LOCAL__V1__FILES_REPLY__INIT;
    struct userfile_account account;
    struct err err = {0};
    bool more = false;
    int dir;
    int rc = fetch_place (svc, call, r->job_id, r->component, &dir, &account, &err);
    if (rc == 0) {
        arena_reset (svc->call_arena);
        reply.files = arena_array (svc->call_arena, FILES_MAX, sizeof *reply.files);
        struct list list = {svc->call_arena, &reply};
        rc = userfile_list (&account, dir, FILES_MAX, list_add, &list, &more, &err);
        reply.more = more;
        userfile_account_free (&account);
        close (dir);
    }
    if (rc != 0)
        jobs_refuse (svc, call, &err);
    else
        rpccall_reply (call, &reply.base);
}

/* --- FETCH ------------------------------------------------------------------------------------ */

static void fetch_free (struct fetch *f)
{
    DL_DELETE (f->svc->fetches, f);
    event_free (f->turn);
    EVP_MD_CTX_free (f->hash);
    close (f->fd);
    free (f);
}

static void fetch_end (struct fetch *f, enum rpc_status status, const char *message)
{
    struct rpccall *call = f->call;
    fetch_free (f);
    rpccall_finish (call, status, message);
}

static void fetch_over (struct fetch *f)
{
    Nui__Local__V1__FetchChunk chunk = NUI__LOCAL__V1__FETCH_CHUNK__INIT;
    uint8_t sum[SHA256_BYTES];
    sha256_end (f->hash, sum);
    f->hash = NULL;
    chunk.bytes = f->size;
    chunk.sha256.data = sum;
    chunk.sha256.len = sizeof sum;
    rpccall_send (f->call, &chunk.base);
    fetch_end (f, RPC_OK, NULL);
}

/* Hashes what is next, and sends what of it is wanted. False: the file has become shorter, or cannot be read. */
static bool fetch_step (struct fetch *f)
{
    Nui__Local__V1__FetchChunk chunk = NUI__LOCAL__V1__FETCH_CHUNK__INIT;
    int64_t end = f->at < f->offset ? f->offset : f->size;
    size_t want = end - f->at > CHUNK ? CHUNK : (size_t)(end - f->at);
    ssize_t n = pread (f->fd, f->buf, want, f->at);
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    sha256_add (f->hash, f->buf, (size_t)n);
    if (f->at >= f->offset) {
        chunk.data.data = f->buf;
        chunk.data.len = (size_t)n;
        chunk.bytes = f->size;
        f->blocked = !rpccall_send (f->call, &chunk.base);
    }
    f->at += n;
    return true;
}

static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    struct fetch *f = arg;
    (void)fd;
    (void)what;
    for (int i = 0; i < CHUNKS_PER_TURN && !f->blocked && f->at < f->size; i++)
        if (!fetch_step (f)) {
            fetch_end (f, RPC_ABORTED, "the file became shorter while it was being sent");
            return;
        }
    if (f->blocked)
        return;
    if (f->at >= f->size)
        fetch_over (f);
    else
        event_active (f->turn, EV_TIMEOUT, 0);
}

static void on_ready (void *arg)
{
    struct fetch *f = arg;
    if (!f->blocked)
        return;
    f->blocked = false;
    event_active (f->turn, EV_TIMEOUT, 0);
}

static void on_cancel (void *arg)
{
    fetch_end (arg, RPC_CANCELLED, "cancelled");
}

static int file_open (struct svc *svc, struct rpccall *call, const Nui__Local__V1__FetchRequest *r,
                      int *fd, struct stat *st, struct err *err)
{
    struct userfile_account account;
    int dir;
    int rc = stage_names_check (r->path, err);
    if (rc == 0)
        rc = fetch_place (svc, call, r->job_id, r->component, &dir, &account, err);
    if (rc != 0)
        return rc;
    rc = userfile_read (&account, dir, r->path, false, fd, st, err);
    userfile_account_free (&account);
    close (dir);
    if (rc == 0 && (r->offset < 0 || r->offset > st->st_size)) {
        close (*fd);
        rc = err_set (err, ERR_CONFLICT, "file %.200s has %lld bytes, byte %lld is asked for",
                      r->path, (long long)st->st_size, (long long)r->offset);
    }
    return rc;
}

void fetch_serve (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__FetchRequest *r = (const Nui__Local__V1__FetchRequest *)request;
    struct err err = {0};
    struct stat st;
    int fd;
    if (file_open (svc, call, r, &fd, &st, &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    struct fetch *f = calloc (1, sizeof *f);
    assert (f);
    *f =
        (struct fetch){.svc = svc, .call = call, .fd = fd, .offset = r->offset, .size = st.st_size};
    f->hash = sha256_begin ();
    f->turn = evtimer_new (svc->base, on_turn, f);
    assert (f->turn);
    DL_APPEND (svc->fetches, f);
    rpccall_on_cancel (call, on_cancel, f);
    rpccall_on_ready (call, on_ready, f);
    event_active (f->turn, EV_TIMEOUT, 0);
}

void fetch_draining (struct svc *svc)
{
    struct fetch *f, *next;
    DL_FOREACH_SAFE (svc->fetches, f, next)
        fetch_end (f, RPC_UNAVAILABLE, "the site is stopping; ask again from the byte you have");
}

const struct svc_listener fetch_listener = {.stop = fetch_draining};
