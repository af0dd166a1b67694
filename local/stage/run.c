/* run: one file under way, from its first request to its name at the end: sizes, room on disk,
 * checksum, fsync, rename. stage.c begins it; download, upload and copy call it between their
 * steps. It never blocks (a thread does what waits for a disk), and a file gets its name only
 * when it is whole, right and on disk. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utlist.h>

#include "local/stage/stage_i.h"
#include "proto/base/clock.h"
#include "proto/hash/sha256.h"

enum { HOPS_MAX = 5 };

/* --- begin and end -------------------------------------------------------------------------- */

void run_drop (struct run *run)
{
    if (!run)
        return;
    struct transfer *t = run->transfer;
    struct stage *stage = run->stage;
    request_close (&run->request);
    curl_slist_free_all (run->after);
    if (run->bringing)
        stage->sent.drop (run->bringing);
    disk_drop (run->disk);
    userfile_close (&run->place);
    if (run->from >= 0)
        close (run->from);
    EVP_MD_CTX_free (run->hash);
    filenote_free (&run->memo);
    strbuf_free (&run->answer);
    bandwidth_leave (&stage->bandwidth, run->pair, clock_monotonic_us ());
    rules_drop (run->rules);
    DL_DELETE (stage->runs, run);
    stage->active--;
    t->run = NULL;
    t->rate = 0;
    free (run);
}

void run_end (struct run *run, enum transfer_end end, const struct err *why)
{
    struct transfer *t = run->transfer;
    struct err kept = why ? *why : (struct err){0};
    curl_off_t after_s = 0;
    if (run->request.easy)
        curl_easy_getinfo (run->request.easy, CURLINFO_RETRY_AFTER, &after_s);
    run_drop (run);
    stage_transfer_ended (t, end, &kept, (duration_us)(after_s > 3600 ? 3600 : after_s) * US_PER_S);
}

void run_fail (struct run *run, const struct err *why)
{
    run_end (run, TRANSFER_FAILED, why);
}

/* Else one source that sends a little now and then would keep a transfer, a place of STAGEMAX and a promise of nodes for
 * as long as it likes. What a thread of ours does (hashing, file:) is no source's doing. */
bool run_over_bounds (struct run *run, duration_us now)
{
    const struct stage_config *limit = &run->rules->limit;
    struct transfer *t = run->transfer;
    struct err err = {0};
    char text[2][QUANTITY_TEXT_MAX];
    if (run->disk || !run->request.easy)
        return false;
    if (now - t->begun > limit->time_max) {
        err_set (&err, ERR_LIMIT,
                 "after %s it is not there, and the site waits no longer (STAGETIMEMAX)",
                 duration_format (limit->time_max, text[0]));
        run_fail (run, &err);
        return true;
    }
    if (!run->window || t->done < run->window_done) { /* from the first byte of the answer on */
        run->window = run->head_seen || t->batch->direction == STAGE_OUT ? now : 0;
        run->window_done = t->done;
        return false;
    }
    duration_us span = now - run->window;
    if (span < limit->patience)
        return false;
    int64_t come = t->done - run->window_done;
    int64_t rate = (int64_t)((double)come * (double)US_PER_S / (double)span);
    run->window = now;
    run->window_done = t->done;
    if (come == 0 || rate >= limit->rate_min)
        return false; /* silence is cut, and tried again */
    err_set (&err, ERR_LIMIT,
             "%lld bytes a second came over %s, the site wants at least %lld (STAGERATEMIN)",
             (long long)rate, duration_format (span / US_PER_S * US_PER_S, text[1]),
             (long long)limit->rate_min);
    run_fail (run, &err);
    return true;
}

void run_begin (struct transfer *t)
{
    struct stage *stage = t->batch->stage;
    struct run *run = calloc (1, sizeof *run);
    struct err err = {0};
    assert (run);
    *run = (struct run){.transfer = t,
                        .stage = stage,
                        .rules = rules_share (stage->rules),
                        .place = {.folder = -1, .fd = -1},
                        .from = -1};
    run->pair = bandwidth_pair (&stage->bandwidth, t->host, t->batch->direction);
    bandwidth_enter (run->pair, clock_monotonic_us ());
    DL_APPEND (stage->runs, run);
    stage->active++;
    t->run = run;
    t->state = STAGE_RUNNING;
    if (!t->begun) {
        t->begun = clock_monotonic_us ();
        t->begun_done = t->done;
    }
    t->seen = t->done;
    snprintf (run->memo_name, sizeof run->memo_name, "%u", t->index);
    filenote_read (t->batch->memo_dir, run->memo_name, t->url, &run->memo);
    if (rules_wire (run->rules, t->url, t->batch->user, &run->wire, &err) != 0)
        run_fail (run, &err);
    else if (run->wire.scheme == STAGE_FILE)
        copy_begin (run);
    else if (run->wire.scheme == STAGE_SENT)
        sent_begin (run);
    else if (t->batch->direction == STAGE_IN)
        download_begin (run);
    else
        upload_begin (run);
}

/* --- requests ------------------------------------------------------------------------------- */

bool run_request (struct run *run, const struct wire *wire, request_fn fn)
{
    struct err err = {0};
    request_close (&run->request);
    curl_slist_free_all (run->after);
    run->after = NULL;
    run->head_seen = run->swallow = run->anew = false;
    run->transfer->state = STAGE_RUNNING;
    if (request_open (&run->request, run->stage->loop, run->rules, wire, fn, run, &err) == 0)
        return true;
    run_fail (run, &err);
    return false;
}

bool run_go (struct run *run)
{
    struct err err = {0};
    if (request_go (&run->request, &err) == 0)
        return true;
    run_fail (run, &err);
    return false;
}

bool run_answered (struct run *run, CURLcode code, void (*again) (struct run *run))
{
    struct err err = {0};
    char *location = NULL;
    switch (request_judge (&run->request, code, &location, &err)) {
    case REQUEST_DONE:
        return true;
    case REQUEST_REDIRECT: {
        int rc = ++run->hops > HOPS_MAX
                     ? err_set (&err, ERR_DENIED, "more than %d redirects", HOPS_MAX)
                     : rules_redirect (run->rules, location, run->transfer->batch->user, &run->wire,
                                       &err);
        free (location);
        if (rc == 0)
            again (run);
        else
            run_fail (run, &err);
        return false;
    }
    case REQUEST_TRANSIENT:
        run_end (run, TRANSFER_TRANSIENT, &err);
        return false;
    case REQUEST_NO_HOST:
        run_end (run, TRANSFER_NO_HOST, &err);
        return false;
    case REQUEST_FAILED:
        run_fail (run, &err);
        return false;
    }
    return false;
}

/* --- sizes ---------------------------------------------------------------------------------- */

void run_moved (struct run *run, int64_t bytes)
{
    run->transfer->done += bytes;
    run->transfer->batch->moved += bytes;
    run->pair->moved += bytes;
}

/* What the others will still write to the same file system. */
static int64_t promised (const struct run *run)
{
    int64_t sum = 0;
    const struct run *other;
    DL_FOREACH (run->stage->runs, other)
        if (other != run && other->place.fd >= 0 &&
            other->place.st.st_dev == run->place.st.st_dev &&
            other->transfer->total > other->transfer->done)
            sum += other->transfer->total - other->transfer->done;
    return sum;
}

int run_size_check (struct run *run, int64_t total, struct err *err)
{
    struct transfer *t = run->transfer;
    const struct stage_config *limit = &run->rules->limit;
    struct statvfs fs;
    if (t->size_said >= 0 && total != t->size_said)
        return err_set (err, ERR_CONFLICT, "it has %lld bytes, the job says %lld", (long long)total,
                        (long long)t->size_said);
    if (total > limit->file_max)
        return err_set (err, ERR_LIMIT, "it has %lld bytes, the site takes files of at most %lld",
                        (long long)total, (long long)limit->file_max);
    t->total = total;
    if (run->place.fd < 0 || fstatvfs (run->place.fd, &fs) != 0)
        return 0;
    int64_t room = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize - limit->keep_free - promised (run);
    if (total - t->done > room)
        return err_set (err, ERR_LIMIT,
                        "no room on the site's disk: %lld bytes are to come, %lld may be used",
                        (long long)(total - t->done), (long long)(room > 0 ? room : 0));
    return 0;
}

int run_memo_write (struct run *run, struct err *err)
{
    return filenote_write (run->transfer->batch->memo_dir, run->memo_name, run->transfer->url,
                           &run->memo, err);
}

/* --- disk ----------------------------------------------------------------------------------- */

void run_disk_look (struct run *run)
{
    if (!run->disk || !run->disk_counts)
        return;
    int64_t now = disk_done (run->disk);
    run_moved (run, now - run->disk_seen);
    run->disk_seen = now;
}

static void on_disk (void *arg, struct disk_result *result)
{
    struct run *run = arg;
    struct err err = {0};
    if (run->disk_counts)
        run_moved (run, result->end - run->disk_seen);
    run->disk = NULL;
    run->hash = result->hash;
    if (result->error == 0) {
        run->disk_fn (run, result);
        return;
    }
    bool full = result->error == ENOSPC || result->error == EDQUOT;
    err_set (&err,
             full                      ? ERR_LIMIT
             : result->error == ESTALE ? ERR_CONFLICT
                                       : ERR_IO,
             "%s",
             full                      ? "no room on the site's disk"
             : result->error == ESTALE ? "the file became shorter meanwhile"
                                       : strerror (result->error));
    run_fail (run, &err);
}

void run_disk (struct run *run, const struct disk_order *order, bool counts, disk_fn fn)
{
    struct err err = {0};
    struct disk_order mine = *order;
    mine.hash = run->hash;
    run->hash = NULL;
    run->disk_fn = fn;
    run->disk_seen = mine.begin;
    run->disk_counts = counts;
    run->disk = disk_begin (run->stage->base, &mine, on_disk, run, &err);
    if (!run->disk)
        run_fail (run, &err);
}

void run_hash_upto (struct run *run, int fd, int64_t end, disk_fn then)
{
    EVP_MD_CTX_free (run->hash);
    run->hash = run->transfer->sum_given ? sha256_begin () : NULL;
    if (!run->hash || end == 0) {
        then (run, NULL);
        return;
    }
    run->transfer->state = STAGE_CHECKING;
    run_disk (run, &(struct disk_order){fd, -1, 0, end, NULL, false}, false, then);
}

bool run_sum_fits (struct run *run)
{
    uint8_t sum[SHA256_BYTES];
    if (!run->hash)
        return true;
    EVP_DigestFinal_ex (run->hash, sum, NULL);
    return memcmp (sum, run->transfer->sum, STAGE_SHA256_LEN) == 0;
}

/* The checksum was wrong: anew once, then the end. */
static void run_sum_wrong (struct run *run)
{
    struct err err = {0};
    bool last = run->transfer->sum_failed;
    run->transfer->sum_failed = true;
    run->transfer->done = 0;
    err_set (&err, ERR_CONFLICT,
             last ? "its sha256 is not the one that the job says, also after a second transfer"
                  : "its sha256 is not the one that the job says");
    if (ftruncate (run->place.fd, 0) != 0)
        last = true;
    filenote_clear (&run->memo);
    if (!last && run_memo_write (run, &err) != 0)
        last = true;
    run_end (run, last ? TRANSFER_FAILED : TRANSFER_TRANSIENT, &err);
}

/* --- the end of what is made here ------------------------------------------------------------ */

static void on_synced (void *arg, struct disk_result *result)
{
    struct run *run = arg;
    struct err err = {0};
    (void)result;
    run->memo.whole_inode = run->place.st.st_ino;
    run->memo.whole_size = run->transfer->done;
    if (run_memo_write (run, &err) != 0 ||
        userfile_part_finish (&run->transfer->batch->account, &run->place, &err) != 0)
        run_fail (run, &err);
    else
        run_end (run, TRANSFER_DONE, NULL);
}

void run_finish (struct run *run)
{
    if (!run_sum_fits (run)) {
        run_sum_wrong (run);
        return;
    }
    run->transfer->total = run->transfer->done;
    run->transfer->state = STAGE_CHECKING;
    run_disk (run, &(struct disk_order){-1, run->place.fd, 0, 0, NULL, true}, false, on_synced);
}

bool run_was_whole (struct run *run)
{
    const struct filenote *m = &run->memo;
    const struct stat *part = &run->place.st;
    struct transfer *t = run->transfer;
    struct err err = {0};
    if (m->whole_inode == 0)
        return false;
    bool unnamed = part->st_ino == m->whole_inode && part->st_size == m->whole_size;
    if (!unnamed && !userfile_is (&run->place, m->whole_inode, m->whole_size))
        return false;
    t->done = t->total = m->whole_size;
    if (unnamed && userfile_part_finish (&t->batch->account, &run->place, &err) != 0)
        run_fail (run, &err);
    else {
        if (!unnamed)
            userfile_part_remove (&t->batch->account, &run->place);
        run_end (run, TRANSFER_DONE, NULL);
    }
    return true;
}
