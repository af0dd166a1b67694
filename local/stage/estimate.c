/* When files would be here: sizes from the job, from what is known, or asked from their sources; by
 * what has been measured with each host. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "local/stage/stage_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum { KNOWN_MAX = 100000, PROBES_MAX = 8, HOPS_MAX = 5 };
static const duration_us known_for = 600 * US_PER_S;

/* --- sizes that are known --------------------------------------------------------------------- */

struct known_size {
    int64_t size;
    duration_us until; /* monotonic */
    UT_hash_handle hh; /* in the order they were learnt */
    char url[];
};

int64_t estimate_known (const struct stage *stage, const char *url)
{
    struct known_size *k;
    HASH_FIND_STR (stage->known, url, k);
    return k && k->until > clock_monotonic_us () ? k->size : -1;
}

static void known_drop (struct stage *stage, struct known_size *k)
{
    HASH_DEL (stage->known, k);
    free (k);
}

void estimate_learn (struct stage *stage, const char *url, int64_t size)
{
    struct known_size *k;
    HASH_FIND_STR (stage->known, url, k);
    if (k)
        known_drop (stage, k);
    if (size < 0)
        return;
    if (HASH_COUNT (stage->known) >= KNOWN_MAX)
        known_drop (stage, stage->known);
    k = calloc (1, sizeof *k + strlen (url) + 1);
    assert (k);
    memcpy (k->url, url, strlen (url) + 1);
    k->size = size;
    k->until = clock_monotonic_us () + known_for;
    HASH_ADD_STR (stage->known, url, k);
}

/* --- time ------------------------------------------------------------------------------------- */

/* What is to move with one host. */
struct load {
    char host[STAGE_HOST_MAX];
    double bytes;
    UT_hash_handle hh;
};

static void load_add (struct load **loads, const char *host, int64_t bytes, bool own)
{
    struct load *l;
    HASH_FIND_STR (*loads, host, l);
    if (!l && !own)
        return;
    if (!l) {
        l = calloc (1, sizeof *l);
        assert (l);
        snprintf (l->host, sizeof l->host, "%s", host);
        HASH_ADD_STR (*loads, host, l);
    }
    l->bytes += (double)bytes;
}

static int64_t size_of (const struct stage *stage, const struct transfer *t)
{
    int64_t total = t->total >= 0 ? t->total : estimate_known (stage, t->url);
    return total >= 0 ? total : STAGE_SIZE_GUESS;
}

static int64_t rest_of (const struct stage *stage, const struct transfer *t)
{
    int64_t rest = t->state >= STAGE_DONE ? 0 : size_of (stage, t) - t->done;
    return rest > 0 ? rest : 0;
}

/* What goes before a batch of that place in the order, and what is under way. */
static void others_add (const struct stage *stage, struct load **loads,
                        enum stage_direction direction, const struct batch *as)
{
    const struct batch *b;
    DL_FOREACH2 (stage->open, b, after)
    {
        bool before = stage_batch_order (b, as) < 0;
        for (uint32_t i = b->next; i < b->count; i++)
            if (b->direction == direction && strcmp (b->key, as->key) != 0 &&
                (before || b->file[i].run))
                load_add (loads, b->file[i].host, rest_of (stage, &b->file[i]), false);
    }
}

/* Hosts side by side; frees the loads. */
static duration_us slowest (const struct stage *stage, struct load *loads,
                            enum stage_direction direction)
{
    struct load *l, *next;
    double most = 0;
    HASH_ITER (hh, loads, l, next) {
        double s = l->bytes / (double)stage_bandwidth (stage, l->host, direction);
        most = s > most ? s : most;
        HASH_DEL (loads, l);
        free (l);
    }
    return most * (double)US_PER_S < (double)(INT64_MAX / 2)
               ? (duration_us)(most * (double)US_PER_S)
               : INT64_MAX / 2;
}

duration_us estimate_left (const struct batch *b)
{
    struct load *loads = NULL;
    for (uint32_t i = 0; i < b->count; i++)
        load_add (&loads, b->file[i].host, rest_of (b->stage, &b->file[i]), true);
    others_add (b->stage, &loads, b->direction, b);
    return slowest (b->stage, loads, b->direction);
}

int64_t stage_bandwidth (const struct stage *stage, const char *host,
                         enum stage_direction direction)
{
    return bandwidth_rate (bandwidth_find (&stage->bandwidth, host, direction),
                           stage->rules->limit.bandwidth);
}

void stage_estimate_now (struct stage *stage, const struct stage_batch *batch,
                         struct stage_estimate *out)
{
    struct load *loads = NULL;
    struct batch as = {.priority = batch->priority, .since = batch->since};
    struct wire *wire = malloc (sizeof *wire);
    assert (wire);
    *out = (struct stage_estimate){0};
    snprintf (as.key, sizeof as.key, "%s", batch->key ? batch->key : "");
    for (uint32_t i = 0; i < batch->file_count; i++) {
        const struct stage_file *f = &batch->file[i];
        int64_t size = f->size >= 0 ? f->size : estimate_known (stage, f->url);
        bool known = size >= 0;
        out->bytes += known ? size : 0;
        out->unknown += !known;
        bool allowed = rules_wire (stage->rules, f->url, batch->user, wire, NULL) == 0;
        load_add (&loads, allowed ? wire->host : "", known ? size : STAGE_SIZE_GUESS, true);
    }
    free (wire);
    others_add (stage, &loads, batch->direction, &as);
    out->time = slowest (stage, loads, batch->direction);
}

/* --- asking ------------------------------------------------------------------------------------
 */

struct probe {
    struct estimate *estimate;
    const char *url;
    struct wire wire;
    struct request request;
    int64_t size; /* -1: not told yet */
    unsigned hops;
    struct probe *prev, *next;
};

struct estimate {
    struct stage *stage;
    struct rules *rules;
    struct stage_batch batch; /* its texts are ours */
    struct stage_file *file;
    struct userfile_account account;
    uint32_t asked; /* files before it need no question any more */
    uint32_t active, missing;
    struct probe *probes;
    char text[STAGE_TEXT_MAX];
    struct event *look; /* something may be asked; and the time limit */
    duration_us until;  /* monotonic */
    stage_estimate_fn fn;
    void *arg;
    struct estimate *prev, *next;
};

static void probe_drop (struct probe *p)
{
    request_close (&p->request);
    DL_DELETE (p->estimate->probes, p);
    p->estimate->active--;
    free (p);
}

static void estimate_free (struct estimate *e)
{
    struct probe *p, *next;
    DL_FOREACH_SAFE (e->probes, p, next)
        probe_drop (p);
    DL_DELETE (e->stage->estimates, e);
    for (uint32_t i = 0; i < e->batch.file_count; i++)
        free ((char *)e->file[i].url);
    free (e->file);
    free ((char *)e->batch.key);
    free ((char *)e->batch.user);
    userfile_account_free (&e->account);
    rules_drop (e->rules);
    event_free (e->look);
    free (e);
}

static void missed (struct estimate *e, const char *url, const struct err *why)
{
    char shown[200];
    e->missing++;
    if (!*e->text)
        text_printf (e->text, sizeof e->text, "%s: %.250s",
                     stage_url_show (url, shown, sizeof shown), why->text);
}

/* Of a head that tells it: "bytes 0-0/N", or the length of the whole. */
static void size_look (struct probe *p)
{
    const char *range =
        p->request.sftp ? NULL : request_answer_header (&p->request, "Content-Range");
    long status = request_status (&p->request);
    long long all;
    curl_off_t length = -1;
    if (p->request.sftp || status == 200) {
        curl_easy_getinfo (p->request.easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        p->size = length;
    } else if (range && (status == 206 || status == 416) && strchr (range, '/') &&
               sscanf (strchr (range, '/') + 1, "%lld", &all) == 1) {
        p->size = all;
    }
}

/* The head is all that is wanted. */
static size_t on_body (char *bytes, size_t size, size_t count, void *arg)
{
    struct probe *p = arg;
    (void)bytes;
    size_look (p);
    return p->size >= 0 ? 0 : size * count;
}

static bool probe_go (struct probe *p, struct err *err);

static void on_over (void *arg, CURLcode code)
{
    struct probe *p = arg;
    struct estimate *e = p->estimate;
    struct err err = {0};
    char *location = NULL;
    if (p->size < 0)
        size_look (p);
    if (p->size >= 0) {
        estimate_learn (e->stage, p->url, p->size);
    } else {
        enum request_outcome outcome = request_judge (&p->request, code, &location, &err);
        bool again =
            outcome == REQUEST_REDIRECT && ++p->hops <= HOPS_MAX &&
            rules_redirect (p->estimate->rules, location, e->batch.user, &p->wire, &err) == 0 &&
            probe_go (p, &err);
        free (location);
        if (again)
            return;
        if (err.code != 0 && outcome != REQUEST_TRANSIENT)
            missed (e, p->url, &err);
    }
    probe_drop (p);
    event_active (e->look, EV_TIMEOUT, 0);
}

/* Not HEAD: a signed URL is signed for GET. */
static bool probe_go (struct probe *p, struct err *err)
{
    request_close (&p->request);
    if (request_open (&p->request, p->estimate->stage->loop, p->estimate->rules, &p->wire, on_over,
                      p, err) != 0)
        return false;
    curl_easy_setopt (p->request.easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt (p->request.easy, CURLOPT_WRITEDATA, p);
    if (!p->request.sftp)
        curl_easy_setopt (p->request.easy, CURLOPT_RANGE, "0-0");
    return request_go (&p->request, err) == 0;
}

static void file_ask (struct estimate *e, const char *url, const struct wire *wire)
{
    struct err err = {0};
    struct stat st;
    const char *below, *root = rules_root_of (e->rules, wire->url, &below);
    int fd = -1, dir = open (root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0 && userfile_read (&e->account, dir, below, false, &fd, &st, &err) == 0)
        estimate_learn (e->stage, url, st.st_size);
    else
        missed (e, url, &err);
    if (fd >= 0)
        close (fd);
    if (dir >= 0)
        close (dir);
}

static void ask (struct estimate *e, const char *url)
{
    struct probe *p = calloc (1, sizeof *p);
    struct err err = {0};
    assert (p);
    *p = (struct probe){.estimate = e, .url = url, .size = -1};
    DL_APPEND (e->probes, p);
    e->active++;
    int rc = rules_wire (e->rules, url, e->batch.user, &p->wire, &err);
    if (rc == 0 && p->wire.scheme != STAGE_FILE && probe_go (p, &err))
        return;
    if (rc == 0 && p->wire.scheme == STAGE_FILE)
        file_ask (e, url, &p->wire);
    else
        missed (e, url, &err);
    probe_drop (p);
}

static void on_look (evutil_socket_t fd, short what, void *arg)
{
    struct estimate *e = arg;
    struct stage_estimate out;
    (void)fd;
    (void)what;
    duration_us left = e->until - clock_monotonic_us ();
    struct timeval limit = {left / US_PER_S, left % US_PER_S};
    bool late = left <= 0;
    while (!late && e->active < PROBES_MAX && e->asked < e->batch.file_count) {
        const struct stage_file *f = &e->file[e->asked++];
        if (e->batch.direction == STAGE_IN && f->size < 0 && estimate_known (e->stage, f->url) < 0)
            ask (e, f->url);
    }
    if (!late && (e->active > 0 || e->asked < e->batch.file_count)) {
        evtimer_add (e->look, &limit);
        return;
    }
    stage_estimate_now (e->stage, &e->batch, &out);
    out.missing = e->missing;
    text_printf (out.text, sizeof out.text, "%s", e->text);
    stage_estimate_fn fn = e->fn;
    void *fn_arg = e->arg;
    estimate_free (e);
    fn (fn_arg, &out);
}

int stage_estimate (struct stage *stage, const struct stage_batch *batch, duration_us limit,
                    stage_estimate_fn fn, void *arg, struct err *err)
{
    struct userfile_account account;
    int rc = stage_check (stage, batch, err);
    if (rc == 0)
        rc = userfile_account_get (batch->account, &account, err);
    if (rc != 0)
        return rc;
    struct estimate *e = calloc (1, sizeof *e);
    assert (e);
    *e = (struct estimate){.stage = stage,
                           .rules = rules_share (stage->rules),
                           .batch = *batch,
                           .account = account,
                           .fn = fn,
                           .arg = arg,
                           .until = clock_monotonic_us () + limit};
    e->file = calloc (batch->file_count, sizeof *e->file);
    e->look = evtimer_new (stage->base, on_look, e);
    assert (e->file && e->look);
    e->batch.file = e->file;
    e->batch.key = strdup (batch->key ? batch->key : "");
    e->batch.user = batch->user ? strdup (batch->user) : NULL;
    for (uint32_t i = 0; i < batch->file_count; i++) {
        e->file[i] =
            (struct stage_file){.url = strdup (batch->file[i].url), .size = batch->file[i].size};
        assert (e->file[i].url);
    }
    DL_APPEND (stage->estimates, e);
    event_active (e->look, EV_TIMEOUT, 0);
    return 0;
}

void estimate_close (struct stage *stage)
{
    while (stage->estimates)
        estimate_free (stage->estimates);
    while (stage->known)
        known_drop (stage, stage->known);
}
