/* slurm_rest: one libcurl transfer per request; answers are taken apart for a few milliseconds
 * at a time. rm_slurm.c, slurm_poll.c and slurm_job.c call it. Each request is answered once,
 * from the loop, and nothing is asked before the version of the API is known. */
#include "local/rm/slurm/slurm_rest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "local/rm/slurm/slurm_json.h"
#include "local/rm/slurm/slurm_token.h"
#include "local/rm/slurm/slurm_wire.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/curl/curl_loop.h"

enum {
    CONNECTIONS_MAX = 4,
    NO_CHANGE = 1900, /* Slurm's own error number for "as it was at update_time" */
    NOT_AUTHENTICATED = 1007,
    BACKLOG_MAX = 4 << 20, /* bytes taken from the network and not looked at yet */
    PIECE = 8 << 10,       /* bytes looked at between looks at the clock */
    PLAIN_MAX = 4 << 20,   /* an answer that is taken whole, of a request without on_object */
    TRIES_MAX = 50,        /* of what Slurm puts off */
};
static const duration_us slice_longest = 2000; /* then other events have their turn */
static const duration_us try_again_in = US_PER_S / 10;
static const long answer_patience_s = 60, connect_patience_s = 5;

struct request {
    struct slurm_rest *rest;
    CURL *easy;
    struct curl_slist *headers;
    char *path, *method, *user, *body;
    json_t *said; /* of which body is made once the version is known */
    int (*on_object) (void *arg, const char *key, json_t *object, struct err *err);
    void (*on_done) (void *arg, const struct slurm_answer *answer);
    void (*on_drop) (void *arg);
    void *arg;
    struct slurm_split split;
    struct strbuf backlog; /* from `looked` on not looked at yet */
    size_t looked;
    struct slurm_answer answer;
    char passed_over[300]; /* a field of ours, and why */
    unsigned tries;
    bool asleep; /* until it is tried again */
    struct event *slice;
    bool plain; /* taken whole, in backlog */
    bool paused;
    bool arrived;       /* the transfer is over */
    struct strbuf head; /* the answer's first bytes, for what is no JSON */
    struct request *prev, *next;
};

struct slurm_rest {
    struct event_base *base;
    struct log *log;
    char *url;         /* "http://host:port" */
    char *socket_path; /* of unix:…; NULL */
    char *user;
    struct slurm_token *token;
    struct slurm_api api;
    struct slurm_offers offers; /* of the answer that is being read */
    struct request *asking;     /* for versions */
    struct curl_loop *loop;
    struct request *sent;    /* with an easy handle */
    struct request *waiting; /* for the version */
};

/* --- answers ------------------------------------------------------------------------------ */

static void transfer_end (struct request *r)
{
    if (r->easy) {
        curl_loop_remove (r->rest->loop, r->easy);
        curl_easy_cleanup (r->easy);
    }
    r->easy = NULL;
    curl_slist_free_all (r->headers);
    r->headers = NULL;
}

static void request_free (struct request *r)
{
    transfer_end (r);
    if (r->slice)
        event_free (r->slice);
    json_decref (r->said);
    slurm_split_free (&r->split);
    strbuf_free (&r->backlog);
    strbuf_free (&r->head);
    free (r->path);
    free (r->method);
    free (r->user);
    free (r->body);
    free (r);
}

static void fail (struct request *r, int code, const char *text)
{
    if (r->answer.code != 0)
        return;
    r->answer.code = code;
    text_printf (r->answer.text, sizeof r->answer.text, "%.399s", text);
}

/* Of "errors": whatever carries a number is one; the first counts. 2042, "job is held", is none: a
 * held submission says it although it succeeded. */
static void errors_take (struct request *r, const json_t *entry)
{
    enum { JOB_HELD = 2042 };
    int64_t number;
    char text[300];
    if (!slurm_error_of (entry, &number, text, sizeof text) || number == JOB_HELD ||
        r->answer.number)
        return;
    r->answer.number = number;
    text_printf (r->answer.text, sizeof r->answer.text, "%s", text);
}

static int object_take (void *arg, const char *key, json_t *object, struct err *err)
{
    struct request *r = arg;
    if (strcmp (key, "errors") == 0) {
        errors_take (r, object);
        return 0;
    }
    return r->on_object ? r->on_object (r->arg, key, object, err) : 0;
}

static void done (struct request *r)
{
    struct slurm_rest *rest = r->rest;
    DL_DELETE (rest->sent, r);
    struct slurm_answer answer = r->answer;
    if (answer.code == ERR_UNAVAILABLE)
        rest->api = (struct slurm_api){0}; /* another one may come up in its place */
    void (*on_done) (void *, const struct slurm_answer *) = r->on_done;
    void *arg = r->arg;
    request_free (r);
    on_done (arg, &answer);
}

/* A field of ours of the wrong type is, from v0.0.40 on, a warning, and the request is done without it. */
static void warning_take (struct request *r, const json_t *entry)
{
    const char *source = json_string_value (json_object_get (entry, "source"));
    const char *why = json_string_value (json_object_get (entry, "description"));
    if (source && strncmp (source, "#/", 2) == 0 && !*r->passed_over)
        text_printf (r->passed_over, sizeof r->passed_over, "%.80s: %s", source, why ? why : "");
}

/* A short answer: its errors, and the number of a job that was submitted. */
static void plain_take (struct request *r)
{
    json_t *doc = json_loads (strbuf_text (&r->backlog), 0, NULL), *entry;
    size_t i;
    json_array_foreach (json_object_get (doc, "errors"), i, entry) errors_take (r, entry);
    if (r->body)
        json_array_foreach (json_object_get (doc, "warnings"), i, entry) warning_take (r, entry);
    r->answer.job_id = json_integer_value (json_object_get (doc, "job_id"));
    json_decref (doc);
}

/* Slurm's own words for: slurmctld was not reached, or broke off. */
static bool number_of_reach (int64_t number)
{
    enum { PROTOCOL_FIRST = 1001, PROTOCOL_LAST = 1004, CTLD_FIRST = 1800, CTLD_LAST = 1805 };
    return (number >= PROTOCOL_FIRST && number <= PROTOCOL_LAST) ||
           (number >= CTLD_FIRST && number <= CTLD_LAST);
}

static void not_accepted (struct request *r)
{
    char text[500];
    text_printf (text, sizeof text, "slurmrestd does not accept our token (%s)",
                 slurm_token_doubt (r->rest->token));
    fail (r, ERR_DENIED, text);
}

/* "Resource temporarily unavailable": its scheduler looks at the job just now. */
static bool tried_again (struct request *r)
{
    if (r->answer.number != EAGAIN || ++r->tries > TRIES_MAX)
        return false;
    transfer_end (r);
    r->answer = (struct slurm_answer){0};
    slurm_split_free (&r->split);
    slurm_split_init (&r->split);
    strbuf_clear (&r->backlog);
    strbuf_clear (&r->head);
    r->looked = 0;
    r->arrived = r->paused = false;
    r->asleep = true;
    struct timeval t = {.tv_usec = try_again_in};
    evtimer_add (r->slice, &t);
    return true;
}

/* The status line and what the body said, in one answer. */
static void conclude (struct request *r)
{
    long status = 0;
    if (r->plain)
        plain_take (r);
    if (tried_again (r))
        return;
    if (r->easy)
        curl_easy_getinfo (r->easy, CURLINFO_RESPONSE_CODE, &status);
    char first[120];
    snprintf (first, sizeof first, "%s", strbuf_text (&r->head));
    first[strcspn (first, "\r\n")] = 0;
    if (status >= 400 && r->answer.code != ERR_UNAVAILABLE)
        r->answer.code = 0; /* whatever its body is taken for */
    if (status == 404 && r->answer.number == 0) {
        fail (r, ERR_NOT_FOUND, "slurmrestd does not know what was asked for (HTTP 404)");
    } else if (r->answer.code != 0) {
    } else if (status == 304 || r->answer.number == NO_CHANGE) {
        r->answer.number = 0;
        r->answer.unchanged = true;
    } else if (status == 401 || r->answer.number == NOT_AUTHENTICATED ||
               strstr (strbuf_text (&r->head), "Authentication failure")) {
        not_accepted (r);
    } else if (r->answer.number != 0) {
        r->answer.code = number_of_reach (r->answer.number) ? ERR_UNAVAILABLE : ERR_CONFLICT;
    } else if (*r->passed_over) {
        char text[400];
        text_printf (text, sizeof text, "slurmrestd passed over what was said of %s",
                     r->passed_over);
        fail (r, ERR_INVALID, text);
    } else if (status >= 500) {
        fail (r, ERR_UNAVAILABLE, "slurmrestd could not answer (is slurmctld up?)");
    } else if (status != 200) {
        char text[200];
        text_printf (text, sizeof text, "slurmrestd answered HTTP %ld: %s", status, first);
        fail (r, ERR_INVALID, text);
    } else if (!r->plain && !r->split.done) {
        fail (r, ERR_UNAVAILABLE, "slurmrestd's answer ended early");
    }
    done (r);
}

/* In the loop's next round: an event that is made active from its own callback would run again in
 * this one, and nothing else would. */
static void slice_soon (struct request *r)
{
    static const struct timeval at_once = {0, 0};
    evtimer_add (r->slice, &at_once);
}

/* Of what came, as much as there is time for. */
static void look (struct request *r)
{
    struct err err = {0};
    duration_us until = clock_monotonic_us () + slice_longest;
    while (r->looked < r->backlog.len && r->answer.code == 0 && clock_monotonic_us () < until) {
        size_t left = r->backlog.len - r->looked, len = left < PIECE ? left : PIECE;
        if (slurm_split_feed (&r->split, r->backlog.data + r->looked, len, object_take, r, &err) !=
            0)
            fail (r, err.code, err.text);
        r->looked += len;
    }
    if (r->answer.code != 0)
        r->looked = r->backlog.len;
    if (r->looked == r->backlog.len) {
        strbuf_clear (&r->backlog);
        r->looked = 0;
    }
}

static void launch (struct slurm_rest *rest, struct request *r, const char *prefix);

/* Looks at some of what came, and says when there is more. */
static void on_slice (evutil_socket_t fd, short what, void *arg)
{
    struct request *r = arg;
    (void)fd;
    (void)what;
    if (r->asleep) {
        r->asleep = false;
        launch (r->rest, r, "/slurm/");
        return;
    }
    if (r->plain) {
        if (r->arrived)
            conclude (r);
        return;
    }
    look (r);
    if (r->backlog.len > 0) {
        slice_soon (r);
    } else if (r->arrived) {
        conclude (r);
    } else if (r->paused) {
        r->paused = false;
        curl_easy_pause (r->easy, CURLPAUSE_CONT);
    }
}

static size_t on_bytes (char *bytes, size_t size, size_t count, void *arg)
{
    struct request *r = arg;
    size_t len = size * count;
    if (r->backlog.len > (r->plain ? PLAIN_MAX : BACKLOG_MAX)) {
        if (r->plain)
            return 0; /* ends the transfer */
        r->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (r->head.len < 256)
        strbuf_append (&r->head, bytes, len < 256 ? len : 256);
    strbuf_append (&r->backlog, bytes, len);
    if (!r->plain)
        slice_soon (r);
    return len;
}

static void over (void *arg, CURL *easy, CURLcode code)
{
    struct slurm_rest *rest = arg;
    struct request *r;
    char text[200];
    curl_easy_getinfo (easy, CURLINFO_PRIVATE, (char **)&r);
    if (code != CURLE_OK) {
        text_printf (text, sizeof text, "slurmrestd at %s: %s",
                     rest->socket_path ? rest->socket_path : rest->url, curl_easy_strerror (code));
        fail (r, ERR_UNAVAILABLE, text);
    }
    r->arrived = true;
    slice_soon (r);
}

/* --- requests ----------------------------------------------------------------------------- */

static void header_add (struct request *r, const char *name, const char *value)
{
    struct strbuf line = STRBUF_INIT;
    strbuf_printf (&line, "%s: %s", name, value);
    r->headers = curl_slist_append (r->headers, strbuf_text (&line));
    strbuf_free (&line);
}

/* Gives it to curl; what fails already here is answered from the loop as well. */
static void launch (struct slurm_rest *rest, struct request *r, const char *prefix)
{
    char url[4096];
    struct err err = {0};
    const char *t = slurm_token_get (rest->token, clock_now_us (), &err);
    r->easy = curl_easy_init ();
    if (r->said) {
        json_t *said = r->said;
        r->said = NULL;
        if (strncmp (r->path, "job/", 4) == 0)
            said = slurm_wire_job (said, rest->api.number, clock_now_us ());
        r->body = json_dumps (said, JSON_COMPACT);
        json_decref (said);
    }
    if (!t || !r->easy) {
        fail (r, t ? ERR_IO : err.code, t ? "libcurl has no memory" : err.text);
        r->arrived = true;
        slice_soon (r);
        return;
    }
    snprintf (url, sizeof url, "%s%s%s%s%s", rest->url, prefix, *prefix ? rest->api.name : "",
              *prefix ? "/" : "", r->path);
    header_add (r, "X-SLURM-USER-NAME", r->user ? r->user : rest->user);
    header_add (r, "X-SLURM-USER-TOKEN", t);
    header_add (r, "Expect", "");
    curl_easy_setopt (r->easy, CURLOPT_URL, url);
    curl_easy_setopt (r->easy, CURLOPT_PRIVATE, (char *)r);
    curl_easy_setopt (r->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt (r->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt (r->easy, CURLOPT_TIMEOUT, answer_patience_s);
    curl_easy_setopt (r->easy, CURLOPT_CONNECTTIMEOUT, connect_patience_s);
    curl_easy_setopt (r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt (r->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt (r->easy, CURLOPT_WRITEDATA, r);
    if (rest->socket_path)
        curl_easy_setopt (r->easy, CURLOPT_UNIX_SOCKET_PATH, rest->socket_path);
    if (strcmp (r->method, "GET") != 0)
        curl_easy_setopt (r->easy, CURLOPT_CUSTOMREQUEST, r->method);
    if (r->body) {
        header_add (r, "Content-Type", "application/json");
        curl_easy_setopt (r->easy, CURLOPT_POSTFIELDS, r->body);
    }
    curl_easy_setopt (r->easy, CURLOPT_HTTPHEADER, r->headers);
    if (curl_loop_add (rest->loop, r->easy, &err) != 0) {
        fail (r, ERR_IO, err.text);
        r->arrived = true;
        slice_soon (r);
    }
}

static struct request *request_new (struct slurm_rest *rest, const char *method, const char *path)
{
    struct request *r = calloc (1, sizeof *r);
    assert (r);
    r->rest = rest;
    r->method = strdup (method);
    r->path = strdup (path);
    r->slice = evtimer_new (rest->base, on_slice, r);
    slurm_split_init (&r->split);
    assert (r->method && r->path && r->slice);
    return r;
}

/* --- versions ----------------------------------------------------------------------------- */

/* What waited for the version goes out, or fails with the same words. */
static void versions_done (struct slurm_rest *rest, const struct slurm_answer *answer)
{
    struct request *list = rest->waiting, *r, *next;
    rest->waiting = NULL;
    rest->asking = NULL;
    DL_FOREACH_SAFE (list, r, next) {
        DL_DELETE (list, r);
        DL_APPEND (rest->sent, r);
        if (answer->code == 0) {
            launch (rest, r, "/slurm/");
        } else {
            fail (r, answer->code, answer->text);
            r->arrived = true;
            slice_soon (r);
        }
    }
}

static int on_versions_path (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm_rest *rest = arg;
    (void)err;
    if (strcmp (key, "paths") == 0)
        slurm_offers_take (&rest->offers, rest->asking->split.name, object);
    return 0;
}

static void on_versions (void *arg, const struct slurm_answer *heard)
{
    struct slurm_rest *rest = arg;
    struct slurm_answer answer = *heard;
    struct err err = {0};
    char offered[200];
    if (answer.code == 0 && slurm_offers_choose (&rest->offers, &rest->api, &err) != 0) {
        answer.code = err.code;
        text_printf (answer.text, sizeof answer.text, "%s", err.text);
    } else if (answer.code == 0) {
        slurm_offers_list (&rest->offers, offered, sizeof offered);
        log_event (rest->log, LOG_LEVEL_INFO, "slurm", "api_version", "version=%s offered=\"%s\"",
                   rest->api.name, offered);
    }
    versions_done (rest, &answer);
}

static void versions_ask (struct slurm_rest *rest)
{
    struct request *r = request_new (rest, "GET", "/openapi/v3");
    rest->asking = r;
    rest->offers.count = 0;
    r->on_object = on_versions_path;
    r->on_done = on_versions;
    r->arg = rest;
    DL_APPEND (rest->sent, r);
    launch (rest, r, "");
}

/* --- interface ---------------------------------------------------------------------------- */

void slurm_rest_send (struct slurm_rest *rest, const struct slurm_request *request)
{
    struct request *r = request_new (rest, request->method, request->path);
    r->on_done = request->on_done;
    r->on_object = request->on_object;
    r->on_drop = request->on_drop;
    r->arg = request->arg;
    r->plain = !request->on_object;
    r->user = request->user ? strdup (request->user) : NULL;
    r->said = request->body;
    if (*rest->api.name) {
        DL_APPEND (rest->sent, r);
        launch (rest, r, "/slurm/");
        return;
    }
    DL_APPEND (rest->waiting, r);
    if (!rest->asking)
        versions_ask (rest);
}

const struct slurm_api *slurm_rest_api (const struct slurm_rest *rest)
{
    return &rest->api;
}

static int server_take (struct slurm_rest *rest, const char *server, struct err *err)
{
    if (strncmp (server, "unix:/", 6) == 0) {
        rest->socket_path = strdup (server + 5);
        rest->url = strdup ("http://localhost");
    } else if (strncmp (server, "http://", 7) == 0 || strncmp (server, "https://", 8) == 0) {
        rest->url = strdup (server);
        size_t len = strlen (rest->url);
        if (rest->url[len - 1] == '/')
            rest->url[len - 1] = 0;
    } else {
        return err_set (err, ERR_INVALID,
                        "slurmrestd's address '%.80s': wanted http://host:port or unix:/path",
                        server);
    }
    return 0;
}

struct slurm_rest *slurm_rest_create (const struct slurm_rest_config *config, struct err *err)
{
    struct slurm_rest *rest = calloc (1, sizeof *rest);
    if (!rest) {
        err_set (err, ERR_NOMEM, "slurmrestd: no memory");
        return NULL;
    }
    rest->base = config->base;
    rest->log = config->log;
    rest->user = strdup (config->user);
    rest->token = slurm_token_create (config->key_file, config->token_file, config->user,
                                      config->token_life, err);
    curl_global_init (CURL_GLOBAL_DEFAULT);
    rest->loop = curl_loop_create (rest->base, CONNECTIONS_MAX, over, rest, err);
    assert (rest->user);
    if (rest->token && rest->loop && server_take (rest, config->server, err) == 0)
        return rest;
    slurm_rest_destroy (rest);
    return NULL;
}

static void drop_all (struct request *list)
{
    struct request *r, *next;
    DL_FOREACH_SAFE (list, r, next) {
        if (r->on_drop)
            r->on_drop (r->arg);
        request_free (r);
    }
}

void slurm_rest_destroy (struct slurm_rest *rest)
{
    if (!rest)
        return;
    drop_all (rest->waiting);
    drop_all (rest->sent);
    curl_loop_destroy (rest->loop);
    slurm_token_destroy (rest->token);
    free (rest->url);
    free (rest->socket_path);
    free (rest->user);
    free (rest);
}
