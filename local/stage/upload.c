/* A file below the job's directory to a URL. */
#include "local/stage/upload.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/hash/sha256.h"

/* --- the bytes ------------------------------------------------------------------------------ */

static size_t on_wanted (char *out, size_t size, size_t count, void *arg)
{
    struct run *run = arg;
    int64_t left = run->part_end - run->transfer->done;
    size_t cap = size * count, len = left < (int64_t)cap ? (size_t)left : cap;
    ssize_t n;
    if (len == 0)
        return 0;
    while ((n = pread (run->from, out, len, run->transfer->done)) < 0 && errno == EINTR)
        continue;
    if (n <= 0) {
        err_set (&run->request.refused, n == 0 ? ERR_CONFLICT : ERR_IO, "%s",
                 n == 0 ? "the file became shorter meanwhile" : strerror (errno));
        return CURL_READFUNC_ABORT;
    }
    run_moved (run, n);
    return (size_t)n;
}

/* The server has bytes already (sftp), or wants them again. */
static int on_seek (void *arg, curl_off_t offset, int origin)
{
    struct run *run = arg;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    run->transfer->done = run->part_begin + offset;
    return CURL_SEEKFUNC_OK;
}

void upload_body (struct run *run, int64_t begin, int64_t end)
{
    CURL *e = run->request.easy;
    run->part_begin = begin;
    run->part_end = end;
    run->transfer->done = begin;
    curl_easy_setopt (e, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt (e, CURLOPT_READFUNCTION, on_wanted);
    curl_easy_setopt (e, CURLOPT_READDATA, run);
    curl_easy_setopt (e, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt (e, CURLOPT_SEEKDATA, run);
    curl_easy_setopt (e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)(end - begin));
}

void upload_sent (struct run *run)
{
    struct err err = {0};
    struct filenote *m = &run->memo;
    m->whole_inode = run->from_stat.st_ino;
    m->whole_size = run->from_stat.st_size;
    *m->upload = 0;
    run->transfer->done = run->transfer->total;
    if (run_memo_write (run, &err) != 0)
        run_fail (run, &err);
    else
        run_end (run, TRANSFER_DONE, NULL);
}

/* --- one request ------------------------------------------------------------------------------ */

static void put (struct run *run);

static void on_over (void *arg, CURLcode code)
{
    if (run_answered (arg, code, put))
        upload_sent (arg);
}

/* A path between quotes, for libcurl's sftp commands; "/~/x" is x in the home directory. */
static void quoted (char *out, size_t cap, const char *path)
{
    size_t n = 0;
    out[n++] = '"';
    for (const char *p = strncmp (path, "/~/", 3) == 0 ? path + 3 : path; *p && n + 4 < cap; p++) {
        if (*p == '"' || *p == '\\')
            out[n++] = '\\';
        out[n++] = *p;
    }
    out[n++] = '"';
    out[n] = 0;
}

/* To a name of this file's very version, and then to its own: whoever reads there sees all of it or
 * nothing. */
static bool sftp_put (struct run *run)
{
    struct wire part = run->wire;
    char path[STAGE_URL_MAX + sizeof ".12345678.part"], from[2 * STAGE_URL_MAX],
        to[2 * STAGE_URL_MAX], line[4 * STAGE_URL_MAX + 16], tail[24];
    uint8_t sum[SHA256_BYTES];
    struct stage_url url;
    struct err err = {0};
    snprintf (line, sizeof line, "%s %u %s %lld", run->transfer->batch->key, run->transfer->index,
              run->memo.modified, (long long)run->from_stat.st_size);
    sha256 (line, strlen (line), sum);
    snprintf (tail, sizeof tail, ".%02x%02x%02x%02x.part", sum[0], sum[1], sum[2], sum[3]);
    size_t len = strlen (part.url);
    snprintf (part.url + len, sizeof part.url - len, "%s", tail);
    if (stage_url_parse (run->transfer->url, &url, &err) != 0 || !run_request (run, &part, on_over))
        return false;
    rules_decode (url.path, path, sizeof path);
    quoted (to, sizeof to, path);
    len = strlen (path);
    snprintf (path + len, sizeof path - len, "%s", tail);
    quoted (from, sizeof from, path);
    CURL *e = run->request.easy;
    snprintf (line, sizeof line, "*rm %s", to);
    run->after = curl_slist_append (NULL, line);
    snprintf (line, sizeof line, "rename %s %s", from, to);
    run->after = curl_slist_append (run->after, line);
    curl_easy_setopt (e, CURLOPT_POSTQUOTE, run->after);
    curl_easy_setopt (e, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)-1);
    curl_easy_setopt (e, CURLOPT_FTP_CREATE_MISSING_DIRS, (long)CURLFTP_CREATE_DIR);
    return true;
}

static void put (struct run *run)
{
    run->transfer->state = STAGE_RUNNING;
    if (run->wire.s3 && run->from_stat.st_size > run->rules->limit.s3_part) {
        upload_s3_begin (run);
        return;
    }
    if (run->wire.scheme == STAGE_SFTP ? !sftp_put (run) : !run_request (run, &run->wire, on_over))
        return;
    upload_body (run, 0, run->from_stat.st_size);
    run_go (run);
}

static void on_hashed (void *arg, struct disk_result *result)
{
    struct run *run = arg;
    struct err err = {0};
    (void)result;
    if (run_sum_fits (run)) {
        put (run);
        return;
    }
    err_set (&err, ERR_CONFLICT, "the sha256 of %s is not the one that the job says",
             run->transfer->path);
    run_fail (run, &err);
}

void upload_begin (struct run *run)
{
    struct transfer *t = run->transfer;
    struct filenote *m = &run->memo;
    struct err err = {0};
    char version[sizeof m->modified];
    int rc = userfile_read (&t->batch->account, t->batch->dir, t->path, true, &run->from,
                            &run->from_stat, &err);
    const struct stat *st = &run->from_stat;
    if (rc == 0)
        rc = run_size_check (run, st->st_size, &err);
    if (rc != 0) {
        run_fail (run, &err);
        return;
    }
    snprintf (version, sizeof version, "%lld.%09ld %llu", (long long)st->st_mtim.tv_sec,
              st->st_mtim.tv_nsec, (unsigned long long)st->st_ino);
    bool same = m->size == st->st_size && strcmp (m->modified, version) == 0;
    if (same && m->whole_inode == st->st_ino) {
        t->done = t->total;
        run_end (run, TRANSFER_DONE, NULL);
        return;
    }
    if (!same) {
        if (*m->upload)
            upload_s3_abandon (run->stage, m);
        filenote_clear (m);
        m->size = st->st_size;
        snprintf (m->modified, sizeof m->modified, "%s", version);
    }
    run_hash_upto (run, run->from, st->st_size, on_hashed);
}
