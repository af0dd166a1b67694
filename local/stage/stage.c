/* Batches: begun, given their turns, ended, forgotten. */
#include "local/stage/stage.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "local/stage/stage_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum { NO_HOST_TRIES = 3 };
static const duration_us tick_every = US_PER_S, save_every = 10 * US_PER_S;
static const double rate_kept = 0.7; /* of the rate before, each tick */

struct batch *stage_batch_find (const struct stage *stage, const char *key)
{
    struct batch *b;
    HASH_FIND_STR (stage->batches, key, b);
    return b;
}

/* --- turns ---------------------------------------------------------------------------------- */

static uint32_t active_with (const struct stage *stage, const char *host)
{
    const struct pair *in = bandwidth_find (&stage->bandwidth, host, STAGE_IN);
    const struct pair *out = bandwidth_find (&stage->bandwidth, host, STAGE_OUT);
    return (in ? in->active : 0) + (out ? out->active : 0);
}

/* The first file of the batch that may begin; NULL. */
static struct transfer *first_ready (struct batch *b)
{
    while (b->next < b->count && b->file[b->next].state >= STAGE_DONE)
        b->next++;
    for (uint32_t i = b->next; i < b->count; i++)
        if (b->file[i].state == STAGE_WAITING &&
            active_with (b->stage, b->file[i].host) < b->stage->rules->limit.host_max)
            return &b->file[i];
    return NULL;
}

static void turn_soon (struct stage *stage)
{
    event_active (stage->turn, EV_TIMEOUT, 0);
}

static void tick_arm (struct stage *stage)
{
    struct timeval t = {tick_every / US_PER_S, 0};
    if (evtimer_pending (stage->tick, NULL))
        return;
    stage->tick_at = clock_monotonic_us ();
    evtimer_add (stage->tick, &t);
}

/* In order of priority and age, as far as the limits go. A file that fails in its begin may end its
 * batch, which leaves the list; so each is looked for anew from the batch that had the last. */
static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    struct stage *stage = arg;
    struct batch *b = stage->open;
    (void)fd;
    (void)what;
    while (b && stage->active < stage->rules->limit.transfers_max) {
        struct transfer *t = first_ready (b);
        struct batch *after = b->after;
        if (t) {
            run_begin (t);
            tick_arm (stage);
        }
        if (!t || b->done)
            b = after;
    }
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    struct stage *stage = arg;
    duration_us now = clock_monotonic_us ();
    double seconds = (double)(now - stage->tick_at) / (double)US_PER_S;
    struct pair *p, *next;
    struct run *run;
    (void)fd;
    (void)what;
    DL_FOREACH (stage->runs, run) {
        struct transfer *t = run->transfer;
        run_disk_look (run);
        double moved = t->done > t->seen ? (double)(t->done - t->seen) : 0;
        if (seconds > 0)
            t->rate = (int64_t)((double)t->rate * rate_kept + moved / seconds * (1 - rate_kept));
        t->seen = t->done;
        if (run_over_bounds (run, now))
            break; /* the list has changed: the others at the next tick */
    }
    HASH_ITER (hh, stage->bandwidth.pair, p, next)
        if (p->active)
            bandwidth_sample (&stage->bandwidth, p, now);
    if (now - stage->saved_at > save_every || stage->active == 0) {
        bandwidth_save (&stage->bandwidth, stage->state_dir);
        stage->saved_at = now;
    }
    if (stage->active > 0)
        tick_arm (stage);
}

/* --- ends ----------------------------------------------------------------------------------- */

int stage_batch_order (const struct batch *a, const struct batch *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->since != b->since)
        return a->since < b->since ? -1 : 1;
    return strcmp (a->key, b->key);
}

static void open_insert (struct batch *b)
{
    DL_INSERT_INORDER2 (b->stage->open, b, stage_batch_order, prev, after);
}

static void transfer_stop (struct transfer *t)
{
    run_drop (t->run);
    if (t->timer)
        event_free (t->timer);
    t->timer = NULL;
    if (t->state < STAGE_DONE)
        t->state = STAGE_WAITING;
}

static void batch_stop (struct batch *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        transfer_stop (&b->file[i]);
    if (!b->done)
        DL_DELETE2 (b->stage->open, b, prev, after);
    else if (!b->told)
        DL_DELETE2 (b->stage->over, b, prev, after);
    b->done = b->told = true;
}

static void batch_free (struct batch *b)
{
    batch_stop (b);
    HASH_DEL (b->stage->batches, b);
    for (uint32_t i = 0; i < b->count; i++) {
        free (b->file[i].url);
        free (b->file[i].path);
        free (b->file[i].shown);
        free (b->file[i].text);
    }
    free (b->file);
    free (b->user);
    free (b->owner);
    free (b->origin);
    userfile_account_free (&b->account);
    if (b->dir >= 0)
        close (b->dir);
    if (b->memo_dir >= 0)
        close (b->memo_dir);
    free (b);
}

static void batch_done (struct batch *b)
{
    struct stage *stage = b->stage;
    batch_stop (b);
    b->told = false;
    DL_APPEND2 (stage->over, b, prev, after);
    event_active (stage->deliver, EV_TIMEOUT, 0);
    log_event (stage->log, b->code ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "stage", "staged",
               "batch=%s files=%u failed=%u bytes=%lld", b->key, b->count, b->failed,
               (long long)b->moved);
}

/* The receiver may forget any batch. */
static void on_deliver (evutil_socket_t fd, short what, void *arg)
{
    struct stage *stage = arg;
    (void)fd;
    (void)what;
    while (stage->over) {
        struct batch *b = stage->over;
        struct stage_result result = {
            .code = b->code, .file = b->first_failed, .failed = b->failed, .bytes = b->moved};
        DL_DELETE2 (stage->over, b, prev, after);
        b->told = true;
        char *text = b->code ? strdup (b->file[b->first_failed].text) : NULL;
        result.text = text ? text : "";
        if (b->fn)
            b->fn (b->arg, b->key, &result);
        free (text);
    }
}

static void text_set (struct transfer *t, const struct err *why, uint32_t given_up)
{
    char text[STAGE_TEXT_MAX];
    bool in = t->batch->direction == STAGE_IN;
    int len =
        text_printf (text, sizeof text, "stage-%s of %.120s to %.120s: %.200s", in ? "in" : "out",
                     in ? t->shown : t->path, in ? t->path : t->shown, why->text);
    if (given_up > 1 && len > 0 && (size_t)len < sizeof text)
        snprintf (text + len, sizeof text - (size_t)len, " (given up after %u tries)", given_up);
    free (t->text);
    t->text = strdup (text);
    assert (t->text);
}

static void on_backoff (evutil_socket_t fd, short what, void *arg)
{
    struct transfer *t = arg;
    (void)fd;
    (void)what;
    t->state = STAGE_WAITING;
    turn_soon (t->batch->stage);
}

static void back_off (struct transfer *t, duration_us not_before)
{
    struct stage *stage = t->batch->stage;
    const struct stage_config *limit = &stage->rules->limit;
    duration_us wait = limit->backoff_first;
    for (uint32_t i = 1; i < t->tries && wait < limit->backoff_max; i++)
        wait *= 2;
    wait = wait < limit->backoff_max ? wait : limit->backoff_max;
    wait = (duration_us)((double)wait * rng_between (&stage->rng, 0.5, 1));
    wait = wait > not_before ? wait : not_before;
    if (!t->timer)
        t->timer = evtimer_new (stage->base, on_backoff, t);
    assert (t->timer);
    struct timeval tv = {wait / US_PER_S, wait % US_PER_S};
    evtimer_add (t->timer, &tv);
    t->state = STAGE_BACKOFF;
    t->next = clock_now_us () + wait;
}

static bool another_try (struct transfer *t, enum transfer_end end)
{
    uint32_t most = t->batch->stage->rules->limit.tries_max;
    if (end == TRANSFER_NO_HOST && most > NO_HOST_TRIES)
        most = NO_HOST_TRIES;
    t->tries = t->done > t->best ? 1 : t->tries + 1;
    t->best = t->done > t->best ? t->done : t->best;
    return end >= TRANSFER_TRANSIENT && t->tries < most;
}

void stage_transfer_ended (struct transfer *t, enum transfer_end end, const struct err *why,
                           duration_us not_before)
{
    struct batch *b = t->batch;
    turn_soon (b->stage);
    if (end != TRANSFER_DONE) {
        bool again = another_try (t, end);
        text_set (t, why, again || end == TRANSFER_FAILED ? 0 : t->tries);
        log_event (b->stage->log, LOG_LEVEL_INFO, "stage",
                   again ? "transfer_cut" : "transfer_failed",
                   "batch=%s file=%u tries=%u text=\"%s\"", b->key, t->index, t->tries, t->text);
        if (again) {
            back_off (t, not_before);
            return;
        }
        if (b->failed++ == 0) {
            b->first_failed = t->index;
            b->code = why->code ? why->code : ERR_INTERNAL;
        }
    }
    t->state = end == TRANSFER_DONE ? STAGE_DONE : STAGE_FAILED;
    b->ended++;
    if (b->ended == b->count || (b->failed && b->direction == STAGE_IN))
        batch_done (b);
}

/* --- begin ---------------------------------------------------------------------------------- */

static int file_check (const struct rules *rules, const struct stage_batch *batch, uint32_t i,
                       struct wire *wire, struct err *err)
{
    const struct stage_file *f = &batch->file[i];
    uint8_t sum[STAGE_SHA256_LEN];
    char shown[120];
    int rc = stage_path_check (f->path, err);
    if (rc == 0 && f->checksum && *f->checksum)
        rc = stage_checksum_parse (f->checksum, sum, err);
    if (rc == 0 && (rc = rules_wire (rules, f->url, batch->user, wire, err)) != 0)
        err_prefix (err, "%s", stage_url_show (f->url, shown, sizeof shown));
    if (rc == 0 && f->size > rules->limit.file_max)
        rc = err_set (err, ERR_LIMIT, "file %s has %lld bytes, the site takes at most %lld",
                      f->path, (long long)f->size, (long long)rules->limit.file_max);
    return rc;
}

static int path_order (const void *a, const void *b)
{
    return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Two sources for one file would overwrite one another. */
static int paths_check (const struct stage_batch *batch, struct err *err)
{
    const char **path = calloc (batch->file_count, sizeof *path);
    int rc = 0;
    assert (path);
    for (uint32_t i = 0; i < batch->file_count; i++)
        path[i] = batch->file[i].path;
    qsort (path, batch->file_count, sizeof *path, path_order);
    for (uint32_t i = 1; rc == 0 && i < batch->file_count; i++)
        if (strcmp (path[i - 1], path[i]) == 0)
            rc = err_set (err, ERR_INVALID, "file %s is staged in twice", path[i]);
    free (path);
    return rc;
}

int stage_check (const struct stage *stage, const struct stage_batch *batch, struct err *err)
{
    struct wire *wire = malloc (sizeof *wire);
    assert (wire);
    int rc = 0;
    if (batch->file_count == 0 || batch->file_count > STAGE_FILES_MAX)
        rc = err_set (err, ERR_LIMIT, "%u files to be staged: wanted 1 to %d", batch->file_count,
                      STAGE_FILES_MAX);
    for (uint32_t i = 0; rc == 0 && i < batch->file_count; i++)
        rc = file_check (stage->rules, batch, i, wire, err);
    free (wire);
    return rc == 0 && batch->direction == STAGE_IN ? paths_check (batch, err) : rc;
}

static void file_take (struct batch *b, uint32_t i, const struct stage_file *f)
{
    struct transfer *t = &b->file[i];
    struct wire *wire = malloc (sizeof *wire);
    assert (wire);
    *t = (struct transfer){.batch = b,
                           .index = i,
                           .url = strdup (f->url),
                           .path = strdup (f->path),
                           .executable = f->executable,
                           .size_said = f->size,
                           .total = f->size};
    assert (t->url && t->path);
    char shown[STAGE_URL_MAX];
    t->shown = strdup (stage_url_show (f->url, shown, sizeof shown));
    assert (t->shown);
    t->sum_given = f->checksum && stage_checksum_parse (f->checksum, t->sum, NULL) == 0;
    if (rules_wire (b->stage->rules, f->url, b->user, wire, NULL) == 0)
        snprintf (t->host, sizeof t->host, "%s", wire->host);
    free (wire);
}

int stage_begin (struct stage *stage, const struct stage_batch *batch, stage_done_fn fn, void *arg,
                 struct err *err)
{
    int rc = strlen (batch->key) < STAGE_KEY_MAX && *batch->key && *batch->key != '.' &&
                     !strchr (batch->key, '/')
                 ? stage_check (stage, batch, err)
                 : err_set (err, ERR_INVALID, "'%.120s' is no key of a batch", batch->key);
    if (rc != 0)
        return rc;
    if (stage_batch_find (stage, batch->key))
        return err_set (err, ERR_EXISTS, "files of %s are being staged", batch->key);
    if (HASH_COUNT (stage->batches) >= STAGE_BATCHES_MAX)
        return err_set (err, ERR_LIMIT, "files of %d jobs are being staged", STAGE_BATCHES_MAX);
    struct userfile_account account;
    rc = userfile_account_get (batch->account, &account, err);
    if (rc != 0)
        return rc;
    struct batch *b = calloc (1, sizeof *b);
    assert (b);
    *b = (struct batch){.stage = stage,
                        .direction = batch->direction,
                        .account = account,
                        .priority = batch->priority,
                        .since = batch->since,
                        .count = batch->file_count,
                        .fn = fn,
                        .arg = arg};
    snprintf (b->key, sizeof b->key, "%s", batch->key);
    b->user = batch->user ? strdup (batch->user) : NULL;
    b->owner = strdup (batch->account);
    b->origin = batch->origin ? strdup (batch->origin) : NULL;
    b->file = calloc (b->count, sizeof *b->file);
    assert (b->file && b->owner && !b->user == !batch->user && !b->origin == !batch->origin);
    for (uint32_t i = 0; i < b->count; i++)
        file_take (b, i, &batch->file[i]);
    HASH_ADD_STR (stage->batches, key, b);
    open_insert (b);
    b->dir = fcntl (batch->dir, F_DUPFD_CLOEXEC, 0);
    if (mkdirat (stage->state_dir, b->key, 0700) == 0 || errno == EEXIST)
        b->memo_dir =
            openat (stage->state_dir, b->key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    else
        b->memo_dir = -1;
    if (b->dir < 0 || b->memo_dir < 0) {
        rc = err_set (err, ERR_IO, "staging for %s: %s", b->key, strerror (errno));
        batch_free (b);
        return rc;
    }
    turn_soon (stage);
    return 0;
}

/* --- cancel, forget --------------------------------------------------------------------------- */

void stage_cancel (struct stage *stage, const char *key)
{
    struct batch *b = stage_batch_find (stage, key);
    if (!b)
        return;
    batch_free (b);
    turn_soon (stage);
}

void stage_forget (struct stage *stage, const char *key)
{
    struct filenote memo;
    struct dirent *entry;
    stage_cancel (stage, key);
    if (strlen (key) >= STAGE_KEY_MAX || !*key || *key == '.' || strchr (key, '/'))
        return;
    int fd = openat (stage->state_dir, key, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
    while (dir && (entry = readdir (dir))) {
        if (*entry->d_name == '.')
            continue;
        filenote_read (dirfd (dir), entry->d_name, NULL, &memo);
        upload_s3_abandon (stage, &memo);
        filenote_free (&memo);
        unlinkat (dirfd (dir), entry->d_name, 0);
    }
    if (dir)
        closedir (dir);
    unlinkat (stage->state_dir, key, AT_REMOVEDIR);
}

void stage_priority_set (struct stage *stage, const char *key, int64_t priority)
{
    struct batch *b = stage_batch_find (stage, key);
    if (!b || b->done || b->priority == priority)
        return;
    DL_DELETE2 (stage->open, b, prev, after);
    b->priority = priority;
    open_insert (b);
    turn_soon (stage);
}

/* --- the engine ------------------------------------------------------------------------------- */

static int state_dir_open (struct stage *stage, const char *path, struct err *err)
{
    if (mkdir (path, 0700) != 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    stage->state_dir = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (stage->state_dir < 0)
        return err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    return 0;
}

struct stage *stage_create (struct event_base *base, struct log *log,
                            const struct stage_config *config, struct err *err)
{
    struct stage *stage = calloc (1, sizeof *stage);
    uint64_t seed;
    assert (stage);
    stage->base = base;
    stage->log = log;
    stage->state_dir = -1;
    random_bytes (&seed, sizeof seed);
    rng_seed (&stage->rng, seed, 0);
    stage->turn = event_new (base, -1, 0, on_turn, stage);
    stage->deliver = event_new (base, -1, 0, on_deliver, stage);
    stage->tick = evtimer_new (base, on_tick, stage);
    assert (stage->turn && stage->deliver && stage->tick);
    if (rules_read (config, &stage->rules, err) != 0 ||
        state_dir_open (stage, config->state_dir, err) != 0 ||
        !(stage->loop = curl_loop_create (base, 0, request_over, NULL, err))) {
        stage_destroy (stage);
        return NULL;
    }
    bandwidth_load (&stage->bandwidth, stage->state_dir);
    return stage;
}

void stage_sent_set (struct stage *stage, const struct stage_sent *sent)
{
    stage->sent = *sent;
}

int stage_reconfigure (struct stage *stage, const struct stage_config *config, struct err *err)
{
    struct rules *rules;
    int rc = rules_read (config, &rules, err);
    if (rc != 0)
        return rc;
    rules_drop (stage->rules);
    stage->rules = rules;
    turn_soon (stage);
    return 0;
}

void stage_destroy (struct stage *stage)
{
    struct batch *b, *next;
    if (!stage)
        return;
    estimate_close (stage);
    HASH_ITER (hh, stage->batches, b, next)
        batch_free (b);
    upload_s3_farewells_drop (stage);
    if (stage->state_dir >= 0) {
        bandwidth_save (&stage->bandwidth, stage->state_dir);
        close (stage->state_dir);
    }
    bandwidth_free (&stage->bandwidth);
    curl_loop_destroy (stage->loop);
    event_free (stage->turn);
    event_free (stage->deliver);
    event_free (stage->tick);
    rules_drop (stage->rules);
    free (stage);
}
