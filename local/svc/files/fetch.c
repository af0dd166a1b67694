/* FILES and FETCH: what lies in a job's directory, and one file of it as a stream, for the job's owner. Files are looked at and
 * opened as the job's account, below its directory and through no link (userfile.h). Both go in turns of the loop; the
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

enum {
    CHUNK = 128 * 1024,
    CHUNKS_PER_TURN = 8,
    READINGS_OF_ONE = 16,
    READINGS_MAX = 256,
    FILES_MAX = 4096,
    NAMES_MAX = 1 << 20, /* bytes of names in a listing */
    ENTRIES_PER_TURN = 256,
    ENTRIES_MAX = 4 * FILES_MAX,
};

/* What is being read for somebody, one turn of the loop at a time: however many ask, the loop is held for one step of one of
 * them, and then looks at everybody else's calls. */
struct reading {
    struct svc *svc;
    struct rpccall *call;
    uid_t uid;    /* of whom it is read for */
    bool blocked; /* the peer is slow: until its ready hook */
    void (*step) (struct reading *r);
    void (*end) (struct reading *r, enum rpc_status status, const char *message);
    struct reading *prev, *next;
};

struct readings {
    struct reading *list; /* the first has its turn */
    struct event *turn;
};

struct fetch {
    struct reading reading;
    int fd;
    int64_t at, offset, size; /* hashed so far; sent from; of the file when it was opened */
    EVP_MD_CTX *hash;
    uint8_t buf[CHUNK];
};

static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    struct readings *all = arg;
    struct reading *r;
    (void)fd, (void)what;
    DL_SEARCH_SCALAR (all->list, r, blocked, false);
    if (!r)
        return;
    DL_DELETE (all->list, r);
    DL_APPEND (all->list, r);
    event_active (all->turn, EV_TIMEOUT, 0);
    r->step (r);
}

static int reading_admit (struct svc *svc, const struct userfile_account *account, struct err *err)
{
    struct reading *r;
    uint32_t own = 0, all = 0;
    if (!svc->readings) {
        svc->readings = calloc (1, sizeof *svc->readings);
        assert (svc->readings);
        svc->readings->turn = event_new (svc->base, -1, 0, on_turn, svc->readings);
        assert (svc->readings->turn);
    }
    DL_FOREACH (svc->readings->list, r) {
        own += r->uid == account->uid;
        all++;
    }
    if (own >= READINGS_OF_ONE)
        return err_set (err, ERR_LIMIT, "%d of your files are being read here: one after another",
                        READINGS_OF_ONE);
    if (all >= READINGS_MAX)
        return err_set (err, ERR_LIMIT, "%d files are being read here: try again", READINGS_MAX);
    return 0;
}

static void on_ready (void *arg)
{
    struct reading *r = arg;
    r->blocked = false;
    event_active (r->svc->readings->turn, EV_TIMEOUT, 0);
}

static void on_cancel (void *arg)
{
    struct reading *r = arg;
    r->end (r, RPC_CANCELLED, "cancelled");
}

static void reading_begin (struct reading *r)
{
    DL_APPEND (r->svc->readings->list, r);
    rpccall_on_cancel (r->call, on_cancel, r);
    rpccall_on_ready (r->call, on_ready, r);
    event_active (r->svc->readings->turn, EV_TIMEOUT, 0);
}

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

struct listing {
    struct reading reading;
    struct userfile_account account;
    struct userfile_walk *walk;
    struct arena *arena;
    Nui__Local__V1__FilesReply reply;
    size_t bytes;     /* of names */
    uint32_t entries; /* looked at */
};

static bool list_add (void *arg, const char *path, const struct stat *st)
{
    struct listing *l = arg;
    if (stage_names_check (path, NULL) != 0)
        return true; /* no client could ask for it */
    if (l->reply.n_files == FILES_MAX || l->bytes + strlen (path) > NAMES_MAX)
        return false;
    Nui__Local__V1__FileInfo *info = arena_new (l->arena, Nui__Local__V1__FileInfo);
    nui__local__v1__file_info__init (info);
    info->path = arena_strdup (l->arena, path);
    info->bytes = st->st_size;
    info->changed_us = st->st_mtim.tv_sec * US_PER_S + st->st_mtim.tv_nsec / 1000;
    l->reply.files[l->reply.n_files++] = info;
    l->bytes += strlen (path);
    return true;
}

static void listing_free (struct listing *l)
{
    if (l->reading.svc)
        DL_DELETE (l->reading.svc->readings->list, &l->reading);
    userfile_walk_end (l->walk);
    userfile_account_free (&l->account);
    arena_destroy (l->arena);
    free (l);
}

static void listing_end (struct reading *r, enum rpc_status status, const char *message)
{
    struct rpccall *call = r->call;
    listing_free ((struct listing *)r);
    rpccall_finish (call, status, message);
}

static void listing_step (struct reading *r)
{
    struct listing *l = (struct listing *)r;
    l->entries += ENTRIES_PER_TURN;
    bool on = userfile_walk_some (l->walk, ENTRIES_PER_TURN, list_add, l);
    if (on && l->entries < ENTRIES_MAX)
        return;
    l->reply.more = on || userfile_walk_left (l->walk);
    rpccall_reply (r->call, &l->reply.base);
    listing_free (l);
}

void fetch_files (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__FilesRequest *r = (const Nui__Local__V1__FilesRequest *)request;
    struct listing *l = calloc (1, sizeof *l);
    struct err err = {0};
    int dir = -1;
    assert (l);
    l->arena = arena_create (0);
    int rc = fetch_place (svc, call, r->job_id, r->component, &dir, &l->account, &err);
    if (rc == 0)
        rc = reading_admit (svc, &l->account, &err);
    if (rc == 0 && !(l->walk = userfile_walk_begin (&l->account, dir, &err)))
        rc = err.code;
    if (dir >= 0)
        close (dir);
    if (rc != 0) {
        listing_free (l);
        jobs_refuse (svc, call, &err);
        return;
    }
    l->reading = (struct reading){
        .svc = svc, .call = call, .uid = l->account.uid, .step = listing_step, .end = listing_end};
    nui__local__v1__files_reply__init (&l->reply);
    l->reply.files = arena_array (l->arena, FILES_MAX, sizeof *l->reply.files);
    reading_begin (&l->reading);
}

/* --- FETCH ------------------------------------------------------------------------------------ */

static void fetch_end (struct reading *r, enum rpc_status status, const char *message)
{
    struct fetch *f = (struct fetch *)r;
    struct rpccall *call = r->call;
    DL_DELETE (r->svc->readings->list, r);
    EVP_MD_CTX_free (f->hash);
    close (f->fd);
    free (f);
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
    rpccall_send (f->reading.call, &chunk.base);
    fetch_end (&f->reading, RPC_OK, NULL);
}

/* Hashes what is next, and sends what of it is wanted. False: the file has become shorter, or cannot be read. */
static bool fetch_chunk (struct fetch *f)
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
        f->reading.blocked = !rpccall_send (f->reading.call, &chunk.base);
    }
    f->at += n;
    return true;
}

static void fetch_step (struct reading *r)
{
    struct fetch *f = (struct fetch *)r;
    for (int i = 0; i < CHUNKS_PER_TURN && !r->blocked && f->at < f->size; i++)
        if (!fetch_chunk (f)) {
            fetch_end (r, RPC_ABORTED, "the file became shorter while it was being sent");
            return;
        }
    if (!r->blocked && f->at >= f->size)
        fetch_over (f);
}

static int file_open (struct svc *svc, struct rpccall *call, const Nui__Local__V1__FetchRequest *r,
                      int *fd, struct stat *st, uid_t *uid, struct err *err)
{
    struct userfile_account account;
    int dir;
    int rc = stage_names_check (r->path, err);
    if (rc == 0)
        rc = fetch_place (svc, call, r->job_id, r->component, &dir, &account, err);
    if (rc != 0)
        return rc;
    *uid = account.uid;
    rc = reading_admit (svc, &account, err);
    if (rc == 0)
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
    uid_t uid;
    int fd;
    if (file_open (svc, call, r, &fd, &st, &uid, &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    struct fetch *f = calloc (1, sizeof *f);
    assert (f);
    *f = (struct fetch){
        .reading = {.svc = svc, .call = call, .uid = uid, .step = fetch_step, .end = fetch_end},
        .fd = fd,
        .offset = r->offset,
        .size = st.st_size,
        .hash = sha256_begin ()};
    reading_begin (&f->reading);
}

void fetch_draining (struct svc *svc)
{
    struct reading *r, *next;
    if (!svc->readings)
        return;
    DL_FOREACH_SAFE (svc->readings->list, r, next)
        r->end (r, RPC_UNAVAILABLE, "the site is stopping; ask again from the byte you have");
}

static void fetch_close (struct svc *svc)
{
    if (svc->readings)
        event_free (svc->readings->turn);
    free (svc->readings);
    svc->readings = NULL;
}

const struct svc_listener fetch_listener = {.stop = fetch_draining, .close = fetch_close};
