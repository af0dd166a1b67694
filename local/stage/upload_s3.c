/* An upload to s3 in parts: begun, each part sent and remembered, completed. What was sent stays
 * sent, over cut connections and restarts of the daemon. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "local/stage/upload.h"

enum { PARTS_MAX = 10000, ANSWER_MAX = 64 << 10 };

static void part_next (struct run *run);
static void create (struct run *run);

static size_t on_answer (char *bytes, size_t size, size_t count, void *arg)
{
    struct run *run = arg;
    if (run->answer.len + size * count > ANSWER_MAX)
        return 0;
    strbuf_append (&run->answer, bytes, size * count);
    return size * count;
}

static bool ask (struct run *run, const char *query, request_fn fn)
{
    struct wire wire = run->wire;
    size_t len = strlen (wire.url);
    snprintf (wire.url + len, sizeof wire.url - len, "?%s", query);
    strbuf_clear (&run->answer);
    if (!run_request (run, &wire, fn))
        return false;
    curl_easy_setopt (run->request.easy, CURLOPT_WRITEFUNCTION, on_answer);
    curl_easy_setopt (run->request.easy, CURLOPT_WRITEDATA, run);
    return true;
}

/* "<TAG>…</TAG>" of the answer; false: it is not there, or longer. */
static bool answer_tag (struct run *run, const char *tag, char *out, size_t cap)
{
    char open[64], close[64];
    snprintf (open, sizeof open, "<%s>", tag);
    snprintf (close, sizeof close, "</%s>", tag);
    const char *from = strstr (strbuf_text (&run->answer), open),
               *to = from ? strstr (from, close) : NULL;
    if (!to || (size_t)(to - from) - strlen (open) >= cap)
        return false;
    from += strlen (open);
    snprintf (out, cap, "%.*s", (int)(to - from), from);
    return true;
}

static uint32_t parts_sent (const struct run *run)
{
    uint32_t count = 0;
    for (size_t i = 0; i < run->memo.parts.len; i++)
        count += run->memo.parts.data[i] == '\n';
    return count;
}

/* The id as it stands in a query. */
static void query_id (const struct run *run, char *out, size_t cap)
{
    char *coded = curl_easy_escape (NULL, run->memo.upload, 0);
    assert (coded);
    snprintf (out, cap, "uploadId=%s", coded);
    curl_free (coded);
}

/* The server has forgotten the upload: from its beginning, once. */
static bool forgotten (struct run *run)
{
    if (request_status (&run->request) != 404 || run->fresh++ > 0)
        return false;
    *run->memo.upload = 0;
    strbuf_clear (&run->memo.parts);
    create (run);
    return true;
}

/* --- complete ------------------------------------------------------------------------------- */

static void on_completed (void *arg, CURLcode code)
{
    struct run *run = arg;
    struct err err = {0};
    char reason[100] = "no answer";
    if (forgotten (run) || !run_answered (run, code, NULL))
        return;
    /* S3 may say 200 first, and only then that it failed. */
    if (strstr (strbuf_text (&run->answer), "CompleteMultipartUploadResult")) {
        upload_sent (run);
        return;
    }
    answer_tag (run, "Code", reason, sizeof reason);
    err_set (&err, ERR_UNAVAILABLE, "the parts were not put together: %s", reason);
    run_end (run, TRANSFER_TRANSIENT, &err);
}

static void complete (struct run *run)
{
    char query[3 * FILENOTE_TEXT_MAX + 64];
    uint32_t number = 0;
    query_id (run, query, sizeof query);
    if (!ask (run, query, on_completed))
        return;
    struct strbuf body = STRBUF_INIT;
    strbuf_puts (&body, "<CompleteMultipartUpload>");
    for (const char *etag = run->memo.parts.data; etag && *etag; etag = strchr (etag, '\n') + 1)
        strbuf_printf (&body, "<Part><PartNumber>%u</PartNumber><ETag>%.*s</ETag></Part>", ++number,
                       (int)strcspn (etag, "\n"), etag);
    strbuf_puts (&body, "</CompleteMultipartUpload>");
    request_header (&run->request, "Content-Type", "application/xml");
    curl_easy_setopt (run->request.easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
    curl_easy_setopt (run->request.easy, CURLOPT_COPYPOSTFIELDS, body.data);
    strbuf_free (&body);
    run_go (run);
}

/* --- parts ---------------------------------------------------------------------------------- */

static void on_part (void *arg, CURLcode code)
{
    struct run *run = arg;
    struct err err = {0};
    if (forgotten (run) || !run_answered (run, code, NULL))
        return;
    const char *etag = request_answer_header (&run->request, "ETag");
    if (!etag || strpbrk (etag, "<>&\n")) {
        err_set (&err, ERR_INVALID, "the server named no tag of a part");
        run_fail (run, &err);
        return;
    }
    strbuf_printf (&run->memo.parts, "%s\n", etag);
    if (run_memo_write (run, &err) != 0)
        run_fail (run, &err);
    else
        part_next (run);
}

static void part_next (struct run *run)
{
    uint32_t sent = parts_sent (run);
    int64_t size = run->from_stat.st_size, begin = sent * run->memo.part_size,
            end = begin + run->memo.part_size;
    char id[3 * FILENOTE_TEXT_MAX + 16], query[3 * FILENOTE_TEXT_MAX + 64];
    if (begin >= size) {
        complete (run);
        return;
    }
    query_id (run, id, sizeof id);
    snprintf (query, sizeof query, "partNumber=%u&%s", sent + 1, id);
    if (!ask (run, query, on_part))
        return;
    upload_body (run, begin, end < size ? end : size);
    run_go (run);
}

/* --- begin ---------------------------------------------------------------------------------- */

static void on_created (void *arg, CURLcode code)
{
    struct run *run = arg;
    struct filenote *m = &run->memo;
    struct err err = {0};
    if (!run_answered (run, code, NULL))
        return;
    if (!answer_tag (run, "UploadId", m->upload, sizeof m->upload)) {
        *m->upload = 0;
        err_set (&err, ERR_INVALID, "the server named no upload in parts");
        run_fail (run, &err);
        return;
    }
    int64_t least = (run->from_stat.st_size + PARTS_MAX - 1) / PARTS_MAX,
            wanted = run->rules->limit.s3_part;
    m->part_size = least > wanted ? least : wanted;
    snprintf (m->bucket_url, sizeof m->bucket_url, "%s", run->transfer->url);
    snprintf (m->user, sizeof m->user, "%s",
              run->transfer->batch->user ? run->transfer->batch->user : "");
    if (run_memo_write (run, &err) != 0)
        run_fail (run, &err);
    else
        part_next (run);
}

static void create (struct run *run)
{
    if (!ask (run, "uploads=", on_created))
        return;
    curl_easy_setopt (run->request.easy, CURLOPT_POSTFIELDSIZE, 0L);
    curl_easy_setopt (run->request.easy, CURLOPT_COPYPOSTFIELDS, "");
    run_go (run);
}

void upload_s3_begin (struct run *run)
{
    if (*run->memo.upload && run->memo.part_size > 0)
        part_next (run);
    else
        create (run);
}

/* --- given up ------------------------------------------------------------------------------- */

struct farewell {
    struct stage *stage;
    struct rules *rules;
    struct request request;
    struct farewell *prev, *next;
};

static void farewell_drop (struct farewell *f)
{
    request_close (&f->request);
    DL_DELETE (f->stage->farewells, f);
    rules_drop (f->rules);
    free (f);
}

static void on_farewell (void *arg, CURLcode code)
{
    (void)code; /* buckets have rules for what stays behind */
    farewell_drop (arg);
}

void upload_s3_abandon (struct stage *stage, const struct filenote *m)
{
    struct wire wire;
    if (!*m->upload ||
        rules_wire (stage->rules, m->bucket_url, *m->user ? m->user : NULL, &wire, NULL) != 0 ||
        !wire.s3)
        return;
    char *coded = curl_easy_escape (NULL, m->upload, 0);
    struct farewell *f = calloc (1, sizeof *f);
    assert (coded && f);
    size_t len = strlen (wire.url);
    snprintf (wire.url + len, sizeof wire.url - len, "?uploadId=%s", coded);
    curl_free (coded);
    f->stage = stage;
    f->rules = rules_share (stage->rules);
    DL_APPEND (stage->farewells, f);
    bool open = request_open (&f->request, stage->loop, f->rules, &wire, on_farewell, f, NULL) == 0;
    if (open)
        curl_easy_setopt (f->request.easy, CURLOPT_CUSTOMREQUEST, "DELETE");
    if (!open || request_go (&f->request, NULL) != 0)
        farewell_drop (f);
}

void upload_s3_farewells_drop (struct stage *stage)
{
    while (stage->farewells)
        farewell_drop (stage->farewells);
}
