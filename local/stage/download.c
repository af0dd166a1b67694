/* URL to a file below the job's directory. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/stage/stage_i.h"
#include "proto/hash/sha256.h"

static void ask (struct run *run);

/* From the first byte: the part is emptied and nothing is known of the source any more. */
static int restart (struct run *run, struct err *err)
{
    filenote_clear (&run->memo);
    EVP_MD_CTX_free (run->hash);
    run->hash = run->transfer->sum_given ? sha256_begin () : NULL;
    run->offset = run->transfer->done = 0;
    return ftruncate (run->place.fd, 0) == 0 ? 0 : err_set (err, ERR_IO, "%s", strerror (errno));
}

/* What the source is, for the next process that finds the part. */
static int identity_keep (struct run *run, int64_t total, struct err *err)
{
    struct filenote *m = &run->memo;
    const char *etag = request_answer_header (&run->request, "ETag");
    const char *modified = request_answer_header (&run->request, "Last-Modified");
    m->size = total;
    m->whole_inode = 0;
    /* A weak tag does not promise the same bytes (RFC 9110, 13.1.5). */
    bool strong = etag && *etag == '"' && strlen (etag) < sizeof m->etag;
    snprintf (m->etag, sizeof m->etag, "%s", strong ? etag : "");
    snprintf (m->modified, sizeof m->modified, "%s", modified ? modified : "");
    return run_memo_write (run, err);
}

/* "bytes 5-9/10": begin and total, -1 where it is '*'. */
static bool content_range (const char *text, int64_t *begin, int64_t *total)
{
    long long from, to, all;
    char tail[24];
    if (!text || sscanf (text, "bytes %lld-%lld/%23s", &from, &to, tail) != 3)
        return false;
    *begin = from;
    *total = sscanf (tail, "%lld", &all) == 1 ? all : -1;
    return true;
}

static int web_head (struct run *run, struct err *err)
{
    long status = request_status (&run->request);
    curl_off_t length = -1;
    int64_t begin = 0, total;
    if (status < 200 || status >= 300) {
        run->swallow = true;
        return 0;
    }
    curl_easy_getinfo (run->request.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    total = length;
    if (status == 206 &&
        (!content_range (request_answer_header (&run->request, "Content-Range"), &begin, &total) ||
         begin != run->offset || (total >= 0 && run->memo.size >= 0 && total != run->memo.size))) {
        run->anew = true;
        return err_set (err, ERR_UNAVAILABLE,
                        "the server sent another part of the file than was asked for");
    }
    int rc = 0;
    if (status != 206 && run->offset > 0)
        rc = restart (run, err); /* it has changed, or the server knows no ranges */
    if (rc == 0 && total >= 0)
        rc = run_size_check (run, total, err);
    return rc != 0 ? rc : identity_keep (run, total, err);
}

static int sftp_head (struct run *run, struct err *err)
{
    struct filenote *m = &run->memo;
    curl_off_t length = -1, when = -1;
    char modified[sizeof m->modified];
    curl_easy_getinfo (run->request.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    curl_easy_getinfo (run->request.easy, CURLINFO_FILETIME_T, &when);
    snprintf (modified, sizeof modified, "%lld", (long long)when);
    int64_t total = length < 0 ? -1 : run->offset + length;
    if (run->offset > 0 && (total != m->size || strcmp (modified, m->modified) != 0)) {
        run->anew = true;
        return err_set (err, ERR_UNAVAILABLE, "it has changed meanwhile");
    }
    int rc = total >= 0 ? run_size_check (run, total, err) : 0;
    m->size = total;
    m->whole_inode = 0;
    snprintf (m->modified, sizeof m->modified, "%s", modified);
    return rc != 0 ? rc : run_memo_write (run, err);
}

/* Once for each answer, before its first byte is taken. */
static bool head_look (struct run *run)
{
    if (run->head_seen)
        return run->request.refused.code == 0;
    run->head_seen = true;
    int rc = run->request.sftp ? sftp_head (run, &run->request.refused)
                               : web_head (run, &run->request.refused);
    if (rc == 0 && !run->swallow)
        estimate_learn (run->stage, run->transfer->url, run->transfer->total);
    return rc == 0;
}

static size_t on_body (char *bytes, size_t size, size_t count, void *arg)
{
    struct run *run = arg;
    struct err *err = &run->request.refused;
    size_t len = size * count, done = 0;
    if (!head_look (run))
        return 0;
    if (run->swallow)
        return len;
    if (run->transfer->done + (int64_t)len > run->rules->limit.file_max) {
        err_set (err, ERR_LIMIT,
                 "it has more than %lld bytes, which is the most that the site takes",
                 (long long)run->rules->limit.file_max);
        return 0;
    }
    while (done < len) {
        ssize_t n =
            pwrite (run->place.fd, bytes + done, len - done, run->transfer->done + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_set (err, errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? ERR_LIMIT : ERR_IO,
                     "the site's disk: %s", strerror (errno));
            return 0;
        }
        done += (size_t)n;
    }
    if (run->hash)
        EVP_DigestUpdate (run->hash, bytes, len);
    run_moved (run, (int64_t)len);
    return len;
}

static void on_over (void *arg, CURLcode code)
{
    struct run *run = arg;
    struct err err = {0};
    bool stale = run->anew || (run->offset > 0 && (request_status (&run->request) == 416 ||
                                                   code == CURLE_BAD_DOWNLOAD_RESUME));
    if (stale && run->fresh++ < 3) {
        if (restart (run, &err) == 0)
            ask (run);
        else
            run_fail (run, &err);
        return;
    }
    if (!run_answered (run, code, ask))
        return;
    if (!head_look (run)) { /* of an empty file */
        err = run->request.refused;
        run_fail (run, &err);
    } else if (run->transfer->total >= 0 && run->transfer->done != run->transfer->total) {
        err_set (&err, ERR_UNAVAILABLE, "%lld bytes came in place of %lld",
                 (long long)run->transfer->done, (long long)run->transfer->total);
        run_end (run, TRANSFER_TRANSIENT, &err);
    } else if (run->transfer->total < 0 && run->transfer->size_said >= 0 &&
               run->transfer->done != run->transfer->size_said) {
        err_set (&err, ERR_CONFLICT, "it has %lld bytes, the job says %lld",
                 (long long)run->transfer->done, (long long)run->transfer->size_said);
        run_fail (run, &err);
    } else {
        run_finish (run);
    }
}

static void ask (struct run *run)
{
    const struct filenote *m = &run->memo;
    char range[40];
    if (!run_request (run, &run->wire, on_over))
        return;
    CURL *e = run->request.easy;
    run->offset = run->transfer->done;
    curl_easy_setopt (e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt (e, CURLOPT_WRITEDATA, run);
    if (run->offset > 0 && run->request.sftp) {
        curl_easy_setopt (e, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)run->offset);
    } else if (run->offset > 0) {
        snprintf (range, sizeof range, "%lld-", (long long)run->offset);
        curl_easy_setopt (e, CURLOPT_RANGE, range);
        request_header (&run->request, "If-Range", *m->etag ? m->etag : m->modified);
    }
    run_go (run);
}

static void go_on (void *arg, struct disk_result *result)
{
    struct run *run = arg;
    (void)result;
    if (run->transfer->done > 0 && run->transfer->done == run->memo.size)
        run_finish (run);
    else
        ask (run);
}

void download_begin (struct run *run)
{
    struct transfer *t = run->transfer;
    const struct filenote *m = &run->memo;
    struct err err = {0};
    if (userfile_part_open (&t->batch->account, t->batch->dir, t->path, &run->place, &err) != 0) {
        run_fail (run, &err);
        return;
    }
    if (run_was_whole (run))
        return;
    bool known = run->wire.scheme == STAGE_SFTP ? *m->modified != 0 && m->size >= 0
                                                : *m->etag || *m->modified;
    int64_t there = run->place.st.st_size;
    if (known && there > 0 && (m->size < 0 || there <= m->size)) {
        t->done = there;
        t->total = m->size;
    } else if (restart (run, &err) != 0) {
        run_fail (run, &err);
        return;
    }
    run_hash_upto (run, run->place.fd, t->done, go_on);
}
