#include "local/svc/staging.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "local/rm/child.h"
#include "local/rm/jobdir.h"
#include "local/stage/stage.h"

enum { KEY_BYTES = 16, KEY_MAX = 2 * KEY_BYTES + 1, REMOVE_LIMIT_S = 600 };
#define KEEP_UNUSED (15 * 60 * US_PER_S)
#define NOT_KNOWN                                                                                  \
    (10 * 60 * US_PER_S) /* how long it is said to take while nothing is known of its sizes */
#define ASK_LIMIT (3 * US_PER_S)

enum coming { COMING_MOVES, COMING_HERE, COMING_FAILED };

/* The files of one component, wanted by some jobs of this site or, for a while, by none. */
struct staging_in {
    struct svc *svc;
    char key[KEY_MAX];
    enum coming state;
    struct site_job *users; /* by stage_next */
    time_us expected;
    int64_t bytes;             /* that had come … */
    time_us moved_at;          /* … when some came last */
    char text[STAGE_TEXT_MAX]; /* why it failed */
    struct event *unused;
    struct event *failing; /* it could not even begin */
    UT_hash_handle hh;
};

/* Directories that are being removed. */
struct removal {
    struct svc *svc;
    struct child *child;
    struct removal *next;
};

struct staging {
    struct stage *mover;
    struct staging_in *ins; /* hash by key */
    struct removal *removals;
    struct asking *askings;
    int dir; /* JOBDIR/.stage */
};

/* --- the mover's configuration -------------------------------------------------------------- */

static struct stage_config config_of (const struct svc *svc, const struct settings *settings,
                                      char *state, size_t cap)
{
    struct stage_config config = settings_stage_config (&settings->stage);
    snprintf (state, cap, "%s/stage", daemon_state_dir (svc->daemon));
    config.state_dir = state;
    return config;
}

/* JOBDIR/.stage, once something is to lie there. */
static int dir_open (struct svc *svc, bool make, struct err *err)
{
    char path[4200];
    if (svc->staging->dir >= 0)
        return 0;
    snprintf (path, sizeof path, "%s/.stage", svc->job_dir);
    if (!make || mkdir (path, 0700) == 0 || errno == EEXIST)
        svc->staging->dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return svc->staging->dir >= 0 ? 0 : err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
}

static int begin (struct svc *svc, const struct settings *settings, struct err *err)
{
    char state[4096];
    struct stage_config config = config_of (svc, settings, state, sizeof state);
    struct stage *mover = stage_create (svc->base, svc->log, &config, err);
    if (!mover)
        return err ? err->code : ERR_INVALID;
    svc->staging = calloc (1, sizeof *svc->staging);
    assert (svc->staging);
    svc->staging->mover = mover;
    svc->staging->dir = -1;
    (void)dir_open (svc, false, NULL);
    return 0;
}

static bool acts (const struct settings *settings)
{
    return settings->mode.mode == MODE_NORMAL || settings->mode.mode == MODE_INTERACTIVE;
}

int staging_open (struct svc *svc, const struct settings *settings, struct err *err)
{
    static const struct settings_stage nothing;
    char path[4200];
    snprintf (path, sizeof path, "%s/.stage", svc->job_dir);
    if (!acts (settings) ||
        (memcmp (&settings->stage, &nothing, sizeof nothing) == 0 && access (path, F_OK) != 0))
        return 0;
    return begin (svc, settings, err);
}

int staging_need (struct svc *svc, struct err *err)
{
    return svc->staging || !acts (svc->settings) ? 0 : begin (svc, svc->settings, err);
}

int staging_reload (struct svc *svc, const struct settings *settings, struct err *err)
{
    char state[4096];
    if (!svc->staging)
        return staging_open (svc, settings, err);
    struct stage_config config = config_of (svc, settings, state, sizeof state);
    return stage_reconfigure (svc->staging->mover, &config, err);
}

/* --- batches --------------------------------------------------------------------------------- */

static void key_of (const struct jobspec *spec, char out[KEY_MAX])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new ();
    uint8_t hash[EVP_MAX_MD_SIZE];
    const Nui__Common__V1__Job *job = spec->job;
    const char *const parts[] = {job->grid, spec->submitter, spec->local_account,
                                 spec->component->name};
    assert (ctx && EVP_DigestInit_ex (ctx, EVP_sha256 (), NULL) == 1);
    EVP_DigestUpdate (ctx, job->uuid.data, job->uuid.len);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        EVP_DigestUpdate (ctx, parts[i], strlen (parts[i]) + 1);
    EVP_DigestFinal_ex (ctx, hash, NULL);
    EVP_MD_CTX_free (ctx);
    for (size_t i = 0; i < KEY_BYTES; i++)
        snprintf (out + 2 * i, 3, "%02x", hash[i]);
}

static const char *checksum_text (const Nui__Common__V1__Transfer *t, struct arena *arena)
{
    char text[7 + 2 * STAGE_SHA256_LEN + 1] = "sha256:";
    if (t->sha256.len != STAGE_SHA256_LEN)
        return NULL;
    for (size_t i = 0; i < STAGE_SHA256_LEN; i++)
        snprintf (text + 7 + 2 * i, 3, "%02x", t->sha256.data[i]);
    return arena_strdup (arena, text);
}

struct stage_batch staging_batch (const struct jobspec *spec, const char *key, bool out, bool well,
                                  struct arena *arena)
{
    const Nui__Common__V1__Component *c = spec->component;
    size_t count = out ? c->n_stage_out : c->n_stage_in;
    Nui__Common__V1__Transfer *const *list = out ? c->stage_out : c->stage_in;
    struct stage_file *file = arena_array (arena, count + 1, sizeof *file);
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!out || well || list[i]->always)
            file[n++] =
                (struct stage_file){list[i]->url, list[i]->path, checksum_text (list[i], arena),
                                    !out && list[i]->bytes > 0 ? list[i]->bytes : -1};
    return (struct stage_batch){.key = key,
                                .direction = out ? STAGE_OUT : STAGE_IN,
                                .dir = -1,
                                .account = spec->local_account,
                                .user = *spec->submitter ? spec->submitter : NULL,
                                .file = file,
                                .file_count = n};
}

/* --- questions ------------------------------------------------------------------------------- */

static struct staging_in *in_find (const struct svc *svc, const char *key)
{
    struct staging_in *in = NULL;
    if (svc->staging)
        HASH_FIND_STR (svc->staging->ins, key, in);
    return in;
}

int staging_check (struct svc *svc, const struct jobspec *spec, struct err *err)
{
    const Nui__Common__V1__Component *c = spec->component;
    char key[KEY_MAX];
    if (c->n_stage_in == 0 && c->n_stage_out == 0)
        return 0;
    int rc = staging_need (svc, err);
    if (rc != 0 || !svc->staging)
        return rc == 0 ? 0 : err_set (err, ERR_DENIED, "files cannot be staged here now");
    struct arena *arena = arena_create (0);
    key_of (spec, key);
    struct stage_batch in = staging_batch (spec, key, false, true, arena);
    struct stage_batch out = staging_batch (spec, key, true, true, arena);
    if (in.file_count)
        rc = stage_check (svc->staging->mover, &in, err);
    if (rc == 0 && out.file_count)
        rc = stage_check (svc->staging->mover, &out, err);
    arena_destroy (arena);
    const struct staging_in *before = in_find (svc, key);
    if (rc == 0 && before && before->state == COMING_FAILED)
        rc = err_set (err, ERR_DENIED, "%s", before->text);
    if (rc != 0 && err)
        err->code = ERR_DENIED;
    return rc == 0 ? 0 : ERR_DENIED;
}

/* By what the mover knows of one that moves. */
static duration_us left_of (const struct staging_in *in)
{
    struct stage_progress progress;
    if (in->state == COMING_HERE)
        return 0;
    if (stage_progress (in->svc->staging->mover, in->key, &progress, NULL) != 0 ||
        progress.left < 0)
        return NOT_KNOWN;
    return progress.left;
}

time_us staging_expected (struct svc *svc, const struct jobspec *spec, time_us now)
{
    char key[KEY_MAX];
    struct stage_estimate estimate;
    if (!svc->staging || !spec->component || spec->component->n_stage_in == 0)
        return now;
    key_of (spec, key);
    const struct staging_in *in = in_find (svc, key);
    if (in && in->state == COMING_HERE)
        return now;
    if (in && in->users)
        return now + left_of (in);
    struct arena *arena = arena_create (0);
    struct stage_batch batch = staging_batch (spec, key, false, true, arena);
    stage_estimate_now (svc->staging->mover, &batch, &estimate);
    arena_destroy (arena);
    return now + estimate.time;
}

struct asking {
    struct svc *svc;
    void (*fn) (void *arg, const char *missing);
    void *arg;
    struct asking *next;
};

static void asked (void *arg, const struct stage_estimate *estimate)
{
    struct asking *asking = arg, **at = &asking->svc->staging->askings;
    while (*at != asking)
        at = &(*at)->next;
    *at = asking->next;
    asking->fn (asking->arg, estimate->missing ? estimate->text : "");
    free (asking);
}

bool staging_ask (struct svc *svc, const struct jobspec *spec,
                  void (*fn) (void *arg, const char *missing), void *arg)
{
    char key[KEY_MAX];
    struct err err = {0};
    if (!svc->staging || spec->component->n_stage_in == 0)
        return false;
    key_of (spec, key);
    if (in_find (svc, key))
        return false;
    struct asking *asking = malloc (sizeof *asking);
    struct arena *arena = arena_create (0);
    assert (asking);
    *asking = (struct asking){svc, fn, arg, svc->staging->askings};
    struct stage_batch batch = staging_batch (spec, key, false, true, arena);
    int rc = stage_estimate (svc->staging->mover, &batch, ASK_LIMIT, asked, asking, NULL, &err);
    arena_destroy (arena);
    if (rc != 0)
        free (asking);
    else
        svc->staging->askings = asking;
    return rc == 0;
}

/* --- directories ------------------------------------------------------------------------------ */

static int dir_make (struct svc *svc, const char *key, const char *account, int *fd_out,
                     struct err *err)
{
    struct passwd pw;
    char buf[4096];
    int rc = jobdir_account (account, &pw, buf, sizeof buf, err);
    if (rc == 0)
        rc = dir_open (svc, true, err);
    if (rc != 0)
        return rc;
    if (mkdirat (svc->staging->dir, key, 0700) != 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "directory for the files of a job: %s", strerror (errno));
    int fd = openat (svc->staging->dir, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || (geteuid () == 0 && fchown (fd, pw.pw_uid, pw.pw_gid) != 0)) {
        rc = err_set (err, ERR_IO, "directory for the files of a job: %s", strerror (errno));
        if (fd >= 0)
            close (fd);
        return rc;
    }
    *fd_out = fd;
    return 0;
}

static void removal_free (struct removal *removal)
{
    struct removal **at = &removal->svc->staging->removals;
    while (*at != removal)
        at = &(*at)->next;
    *at = removal->next;
    free (removal);
}

static void on_removed (void *arg, int exit_code, bool timed_out)
{
    struct removal *removal = arg;
    if (exit_code != 0)
        log_event (removal->svc->log, LOG_LEVEL_ERROR, "stage", "files_not_removed",
                   "exit_code=%d timeout=%d", exit_code, timed_out);
    removal_free (removal);
}

static void dir_remove (struct svc *svc, const char *key)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    char path[4300];
    struct err err = {0};
    snprintf (path, sizeof path, "%s/.stage/%s", svc->job_dir, key);
    const char *const argv[] = {"/bin/rm", "-rf", "--", path, NULL};
    struct removal *removal = calloc (1, sizeof *removal);
    assert (removal);
    removal->svc = svc;
    removal->next = svc->staging->removals;
    svc->staging->removals = removal;
    removal->child =
        child_run (svc->base, argv, envp, REMOVE_LIMIT_S * US_PER_S, on_removed, removal, &err);
    if (!removal->child) {
        log_event (svc->log, LOG_LEVEL_ERROR, "stage", "files_not_removed", "error=\"%s\"",
                   err.text);
        removal_free (removal);
    }
}

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
    dir_remove (in->svc, in->key);
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
    snprintf (in->text, sizeof in->text, "%s", text);
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
    struct staging_in *in = in_find (svc, key);
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
    int rc = dir_make (svc, in->key, spec->local_account, &batch.dir, err);
    batch.since = since;
    if (rc == 0) {
        rc = stage_begin (svc->staging->mover, &batch, on_moved, svc, err);
        close (batch.dir);
    }
    arena_destroy (arena);
    in->state = COMING_MOVES;
    in->moved_at = svc_now (svc);
    in->expected = in->moved_at + left_of (in);
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
    snprintf (text, sizeof text, "%s", in->text);
    in_failed (in, text);
}

void staging_want (struct svc *svc, struct site_job *job, const struct jobspec *spec)
{
    char key[KEY_MAX];
    struct err err = {0};
    if (!svc->staging || !spec->component || spec->component->n_stage_in == 0 || job->stage_in)
        return;
    key_of (spec, key);
    struct staging_in *in = in_find (svc, key);
    bool moves = in && in->state != COMING_FAILED && in->users;
    bool here = in && in->state == COMING_HERE;
    if (!in)
        in = in_add (svc, key);
    user_add (in, job);
    if (!moves && !here) {
        stage_cancel (svc->staging->mover, key); /* of a try that failed, or nobody waited for */
        if (move_begin (in, spec, job->rec.submit, &err) != 0) {
            snprintf (in->text, sizeof in->text, "%s", err.text);
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

void staging_leave (struct svc *svc, struct site_job *job)
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
    duration_us left = left_of (in), stalled = stalled_for (in, now);
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
    HASH_ITER (hh, svc->staging->ins, in, next)
    {
        if (in->state != COMING_MOVES || !in->users)
            continue;
        time_us at = expected_now (in, now);
        for (struct site_job *job = in->users; job; job = job->stage_next)
            if (job->data_at != at)
                expect (svc, job, at);
    }
}

const char *staging_dir (const struct site_job *job, char *buf, size_t cap)
{
    if (!job->stage_in)
        return NULL;
    snprintf (buf, cap, ".stage/%s", job->stage_in->key);
    return buf;
}

void staging_used (struct svc *svc, struct site_job *job)
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
    char key[KEY_MAX];
    if (!job->stages || staging_need (svc, NULL) != 0 || !svc->staging)
        return;
    if (job->rec.state == STORE_JOB_QUEUED) {
        staging_want (svc, job, spec);
        return;
    }
    key_of (spec, key);
    if (job->rec.state != STORE_JOB_STARTING || svc->staging->dir < 0 ||
        fstatat (svc->staging->dir, key, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* it has them, or wants none yet */
    struct staging_in *in = in_find (svc, key);
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
        if (strlen (one->d_name) == KEY_MAX - 1 && !in_find (svc, one->d_name))
            unused_arm (in_add (svc, one->d_name));
    if (dir)
        closedir (dir);
    else if (fd >= 0)
        close (fd);
}

void staging_close (struct svc *svc)
{
    struct staging *staging = svc->staging;
    struct staging_in *in, *next;
    if (!staging)
        return;
    HASH_ITER (hh, staging->ins, in, next)
    {
        while (in->users)
            user_take (in->users);
        in_free (in);
    }
    for (struct asking *one = staging->askings, *after; one; one = after) {
        after = one->next;
        one->fn (one->arg, NULL);
        free (one);
    }
    while (staging->removals) {
        child_kill (staging->removals->child);
        removal_free (staging->removals);
    }
    stage_destroy (staging->mover);
    if (staging->dir >= 0)
        close (staging->dir);
    free (staging);
    svc->staging = NULL;
}

/* --- what is told -------------------------------------------------------------------------------
 */

static void transfer_fill (const struct svc *svc, const struct stage_file_progress *p, bool out,
                           struct arena *arena, Nui__Common__V1__TransferInfo *info)
{
    static const char *const state[] = {"Waiting", "Active", "Waiting", "Active", "Done", "Failed"};
    nui__common__v1__transfer_info__init (info);
    info->out = out;
    info->url = arena_strdup (arena, p->url);
    info->path = arena_strdup (arena, p->path);
    info->state = (char *)state[p->state];
    info->bytes = p->bytes_total > 0 ? p->bytes_total : 0;
    info->bytes_done = p->bytes_done;
    info->rate = p->rate;
    info->text = arena_strdup (arena, p->text ? p->text : "");
    if (p->state == STAGE_RUNNING && p->rate > 0 && p->bytes_total >= p->bytes_done)
        info->end_us = svc_now (svc) + (p->bytes_total - p->bytes_done) / p->rate * US_PER_S;
}

void staging_transfers (const struct svc *svc, const char *key, bool out, struct arena *arena,
                        Nui__Local__V1__JobInfo *info)
{
    struct stage_progress all;
    struct stage_file_progress one;
    if (!svc->staging || stage_progress (svc->staging->mover, key, &all, NULL) != 0)
        return;
    info->transfers = arena_array (arena, all.files + 1, sizeof *info->transfers);
    for (uint32_t i = 0; i < all.files; i++) {
        if (stage_file_progress (svc->staging->mover, key, i, &one, NULL) != 0)
            continue;
        info->transfers[info->n_transfers] = arena_new (arena, Nui__Common__V1__TransferInfo);
        transfer_fill (svc, &one, out, arena, info->transfers[info->n_transfers++]);
    }
}

void staging_info (const struct svc *svc, const struct site_job *job, struct arena *arena,
                   Nui__Local__V1__JobInfo *out)
{
    if (!job->stage_in)
        return;
    staging_transfers (svc, job->stage_in->key, false, arena, out);
    if (job->stage_in->state == COMING_MOVES)
        out->data_us = job->data_at ? job->data_at : job->stage_in->expected;
}

struct stage *staging_mover (const struct svc *svc)
{
    return svc->staging ? svc->staging->mover : NULL;
}
