/* native_call: runs the programs, and asks the HTTP servers, that RMCFG names. native_look.c and native_job.c call it; it
 * never waits. One that hangs, floods, prints what is no answer or ends badly is an ordinary event with its
 * sentence. A few are made at a time; a query does not wait for the others. */
#include <assert.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "local/rm/native/native_i.h"
#include "local/rm/native/native_socket.h"
#include "local/rm/native/native_wiki.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/child/child.h"
#include "proto/curl/curl_loop.h"

enum { CALLS_MAX = 4, LIST_BYTES_MAX = 64 << 20, ANSWER_BYTES_MAX = 64 << 10, ENV_MAX = 64 };

struct native_call {
    struct native *native;
    enum rm_call call;
    char rm_id[NATIVE_ID_MAX], key[JOBDIR_KEY_MAX]; /* "": a query */
    native_said_fn fn;
    char *account;
    struct arena *arena;
    const char **word; /* NULL at the end */
    uint32_t word_count;
    bool running;
    struct child *child;
    struct native_socket *socket;
    CURL *easy;
    struct strbuf answer; /* of HTTP */
    bool flooded;
    struct event *failed; /* could not even be begun: said from the loop */
    struct native_said said;
    struct native_call *prev, *next;
};

static bool query (const struct native_call *c)
{
    return c->call <= RM_CALL_WORKLOADQUERY;
}

bool native_can (const struct native *native, enum rm_call call)
{
    return native->url[call].scheme != NATIVE_NOWHERE;
}

static void call_free (struct native_call *c)
{
    struct native *native = c->native;
    DL_DELETE (native->calls, c);
    if (c->running && !query (c))
        native->calls_running--;
    child_kill (c->child);
    native_socket_drop (c->socket);
    if (c->easy) {
        curl_loop_remove (native->curl, c->easy);
        curl_easy_cleanup (c->easy);
    }
    if (c->failed)
        event_free (c->failed);
    strbuf_free (&c->answer);
    arena_destroy (c->arena);
    free (c->account);
    free (c);
}

/* --- what was answered -------------------------------------------------------------------- */

static void unheard (struct native_call *c, const char *what)
{
    c->said.heard = NATIVE_UNHEARD;
    text_printf (c->said.why, sizeof c->said.why, "%s %.200s %.150s", native_url_name (c->call),
                 c->native->url[c->call].text, what);
}

/* SC and JOBID of what is no query. ok: the program, or the server, says that it went well. */
static void result_read (struct native_call *c, const char *text, size_t len, bool ok,
                         const char *otherwise)
{
    struct err err = {0};
    int rc = native_parse_result (text, len, c->arena, &c->said.job_id, &err);
    if (rc == ERR_CONFLICT) {
        c->said.heard = NATIVE_REFUSED;
        text_printf (c->said.why, sizeof c->said.why, "%s: %.300s", native_url_name (c->call),
                     err.text);
    } else if (rc != 0 || !ok) {
        unheard (c, ok ? err.text : otherwise);
    }
}

static void calls_run (struct native *native);

/* The job that it is about; NULL: it is gone, or the call is about none. */
static struct native_job *call_job (const struct native_call *c)
{
    return *c->rm_id ? native_job_by_rm (c->native, c->rm_id)
           : *c->key ? native_job_by_key (c->native, c->key)
                     : NULL;
}

/* c->said is as it is to be said. */
static void call_over (struct native_call *c)
{
    struct native *native = c->native;
    struct native_job *job = call_job (c);
    struct native_said said = c->said;
    said.job_id = said.job_id ? said.job_id : "";
    if (job) {
        job->busy = false;
        job->written = native->look + 1;
        native->job_text_again |= said.heard == NATIVE_UNHEARD; /* whatever came of it */
    }
    if (c->fn && (job || query (c)))
        c->fn (native, job, &said);
    job = call_job (c);
    if (job) /* what was wished of it meanwhile */
        native_job_settle_soon (job);
    call_free (c);
    calls_run (native);
}

static void on_failed (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    call_over (arg);
}

static void fail_soon (struct native_call *c, const char *what)
{
    unheard (c, what);
    c->failed = evtimer_new (c->native->base, on_failed, c);
    assert (c->failed);
    native_timer_set (c->failed, 0);
}

static void bounds_say (struct native_call *c, bool timed_out)
{
    char text[100];
    if (timed_out)
        snprintf (text, sizeof text, "did not answer within %lld s (PATIENCE)",
                  (long long)(c->native->patience / US_PER_S));
    else
        snprintf (text, sizeof text, "answered with more than %d bytes",
                  query (c) ? LIST_BYTES_MAX : ANSWER_BYTES_MAX);
    unheard (c, text);
}

/* --- programs ----------------------------------------------------------------------------- */

static void on_child (void *arg, const struct child_said *told)
{
    struct native_call *c = arg;
    char how[80];
    c->child = NULL;
    snprintf (how, sizeof how, "ended with exit code %d", told->exit_code);
    if (told->timed_out || told->flooded) {
        bounds_say (c, told->timed_out);
    } else if (!query (c)) {
        result_read (c, told->text, told->len, told->exit_code == 0, how);
    } else if (told->exit_code != 0) {
        struct err err = {0}; /* it may say why */
        bool says = native_parse_result (told->text, told->len, c->arena, &c->said.job_id, &err) ==
                    ERR_CONFLICT;
        unheard (c, says ? err.text : how);
    } else {
        c->said.text = told->text;
        c->said.len = told->len;
    }
    call_over (c);
}

/* As the account, whose s bits go on working: by these some submit commands prove who calls. */
static uint32_t account_words (struct native_call *c, const char *argv[], struct err *err)
{
    uint32_t n = child_as (c->account, c->arena, argv, err);
    if (n == 0)
        return 0;
    argv[n - 2] = argv[n - 1];
    return n - 1;
}

static const char *const *env_of (struct native_call *c)
{
    struct passwd pw, *found = NULL;
    char buf[4096];
    if (!c->account || getpwnam_r (c->account, &pw, buf, sizeof buf, &found) != 0 || !found)
        return c->native->env;
    const char **env = arena_array (c->arena, ENV_MAX + 8, sizeof *env);
    uint32_t n = 0;
    for (; c->native->env[n]; n++)
        env[n] = c->native->env[n];
    env[n++] = arena_printf (c->arena, "HOME=%s", pw.pw_dir);
    env[n++] = arena_printf (c->arena, "USER=%s", pw.pw_name);
    env[n] = arena_printf (c->arena, "LOGNAME=%s", pw.pw_name);
    return env;
}

static void exec_begin (struct native_call *c, const struct native_url *url)
{
    struct err err = {0};
    const char **argv =
        arena_array (c->arena, CHILD_AS_MAX + url->word_count + c->word_count + 1, sizeof *argv);
    uint32_t n = c->account ? account_words (c, argv, &err) : 0;
    for (uint32_t i = 0; i < url->word_count; i++)
        argv[n++] = url->word[i];
    for (uint32_t i = 0; i < c->word_count; i++)
        argv[n++] = c->word[i];
    if (err.code == 0)
        c->child = child_ask (c->native->base, argv, env_of (c), c->native->patience,
                              query (c) ? LIST_BYTES_MAX : ANSWER_BYTES_MAX, on_child, c, &err);
    if (!c->child)
        fail_soon (c, err.text);
}

/* --- HTTP --------------------------------------------------------------------------------- */

static size_t on_bytes (char *bytes, size_t size, size_t count, void *arg)
{
    struct native_call *c = arg;
    size_t len = size * count, most = query (c) ? LIST_BYTES_MAX : ANSWER_BYTES_MAX;
    c->flooded = c->answer.len + len > most;
    if (c->flooded)
        return 0; /* libcurl ends it */
    strbuf_append (&c->answer, bytes, len);
    return len;
}

static void on_http (void *arg, CURL *easy, CURLcode code)
{
    struct native_call *c;
    char *found = NULL, how[200];
    long status = 0;
    (void)arg;
    curl_easy_getinfo (easy, CURLINFO_PRIVATE, &found);
    curl_easy_getinfo (easy, CURLINFO_RESPONSE_CODE, &status);
    c = (void *)found; /* set as such: CURLOPT_PRIVATE */
    const char *text = strbuf_text (&c->answer);
    snprintf (how, sizeof how, "answered with HTTP status %ld", status);
    if (c->flooded || code == CURLE_OPERATION_TIMEDOUT) {
        bounds_say (c, !c->flooded);
    } else if (code != CURLE_OK) {
        unheard (c, curl_easy_strerror (code));
    } else if (!query (c)) {
        result_read (c, text, c->answer.len, status / 100 == 2, how);
    } else if (status / 100 != 2) {
        unheard (c, how);
    } else {
        c->said.text = text;
        c->said.len = c->answer.len;
    }
    call_over (c);
}

/* "arg=…&arg=…". */
static const char *form_build (struct native_call *c)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < c->word_count; i++) {
        char *word = curl_easy_escape (c->easy, c->word[i], 0);
        strbuf_printf (&b, "%sarg=%s", i ? "&" : "", word ? word : "");
        curl_free (word);
    }
    return strbuf_move (&b, c->arena);
}

static void http_begin (struct native_call *c, const struct native_url *url)
{
    struct err err = {0};
    if (!c->native->curl)
        c->native->curl = curl_loop_create (c->native->base, 0, on_http, NULL, &err);
    c->easy = c->native->curl ? curl_easy_init () : NULL;
    if (!c->easy) {
        fail_soon (c, err.code ? err.text : "libcurl has no memory");
        return;
    }
    curl_easy_setopt (c->easy, CURLOPT_URL, url->text);
    curl_easy_setopt (c->easy, CURLOPT_PRIVATE, (char *)c);
    curl_easy_setopt (c->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt (c->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt (c->easy, CURLOPT_TIMEOUT_MS, (long)(c->native->patience / 1000));
    curl_easy_setopt (c->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt (c->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt (c->easy, CURLOPT_WRITEDATA, c);
    if (!query (c))
        curl_easy_setopt (c->easy, CURLOPT_POSTFIELDS, form_build (c));
    if (curl_loop_add (c->native->curl, c->easy, &err) != 0) {
        curl_easy_cleanup (c->easy);
        c->easy = NULL;
        fail_soon (c, err.text);
    }
}

/* --- Wiki --------------------------------------------------------------------------------- */

static void on_socket (void *arg, const char *text, const char *problem)
{
    struct native_call *c = arg;
    struct err err = {0};
    const char *said = "";
    c->socket = NULL; /* it goes by itself */
    if (problem || native_wiki_read (text, query (c), c->arena, &said, &err) != 0) {
        unheard (c, problem ? problem : err.text);
    } else if (!query (c)) {
        result_read (c, said, strlen (said), true, "");
    } else {
        c->said.text = said;
        c->said.len = strlen (said);
    }
    call_over (c);
}

static void wiki_begin (struct native_call *c, const struct native_url *url)
{
    struct err err = {0};
    const char *frame =
        native_wiki_ask (c->call, c->word, (long long)(clock_now_us () / US_PER_S), c->arena);
    c->socket =
        native_socket_ask (c->native->base, url->text, frame, c->native->patience,
                           query (c) ? LIST_BYTES_MAX : ANSWER_BYTES_MAX, on_socket, c, &err);
    if (!c->socket)
        fail_soon (c, err.text);
}

/* --- calls -------------------------------------------------------------------------------- */

static void call_begin (struct native_call *c)
{
    const struct native_url *url = &c->native->url[c->call];
    c->running = true;
    if (!query (c))
        c->native->calls_running++;
    if (url->scheme == NATIVE_NOWHERE)
        fail_soon (c, "is not said in RMCFG");
    else if (url->scheme == NATIVE_HTTP)
        http_begin (c, url);
    else if (url->scheme == NATIVE_WIKI)
        wiki_begin (c, url);
    else
        exec_begin (c, url);
}

static void calls_run (struct native *native)
{
    struct native_call *c;
    DL_FOREACH (native->calls, c)
        if (!c->running && (query (c) || native->calls_running < CALLS_MAX))
            call_begin (c);
}

void native_call (struct native *native, enum rm_call call, struct native_job *job,
                  const char *account, const char *const *words, native_said_fn fn)
{
    struct native_call *c = calloc (1, sizeof *c);
    assert (c && (!job || !job->busy));
    *c = (struct native_call){.native = native, .call = call, .fn = fn};
    c->arena = arena_create (1024);
    while (words && words[c->word_count])
        c->word_count++;
    c->word = arena_array (c->arena, c->word_count + 1, sizeof *c->word);
    for (uint32_t i = 0; i < c->word_count; i++)
        c->word[i] = arena_strdup (c->arena, words[i]);
    if (account)
        c->account = strdup (account);
    if (job) {
        memcpy (c->rm_id, job->rm_id, sizeof c->rm_id);
        memcpy (c->key, job->key, sizeof c->key);
        job->busy = true;
    }
    DL_APPEND (native->calls, c);
    calls_run (native);
}

/* "SGE_ROOT=/opt/sge;SGE_CELL=priv" behind what every program gets. */
static int env_build (struct native *native, const struct rm_config *config, struct err *err)
{
    struct arena *arena = native->places;
    const char **env = arena_array (arena, ENV_MAX + 1, sizeof *env);
    char *save = NULL,
         *more = arena_strdup (arena, config->options->env ? config->options->env : "");
    uint32_t n = 0;
    env[n++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    env[n++] = "LC_ALL=C";
    env[n++] = arena_printf (arena, "NUI_SITE=%s", native->site);
    env[n++] = arena_printf (arena, "NUI_PATIENCE=%lld", (long long)(native->patience / US_PER_S));
    env[n++] = native->since_word;
    /* what an adapter keeps for itself; no job has a directory of that name */
    env[n++] = arena_printf (arena, "NUI_CACHE=%s/.adapter", native->job_dir);
    for (char *w = strtok_r (more, ";", &save); w; w = strtok_r (NULL, ";", &save)) {
        const char *equals = strchr (w, '=');
        if (!equals || equals == w)
            return err_set (err, ERR_INVALID, "RMCFG: ENV has '%.60s': wanted NAME=value;…", w);
        if (n == ENV_MAX)
            return err_set (err, ERR_LIMIT, "RMCFG: ENV has more than %d variables", ENV_MAX - 6);
        env[n++] = w;
    }
    native->env = env;
    return 0;
}

/* Whatever Wiki has a word for goes to its server. */
static int wiki_places (struct native *native, const char *server, struct err *err)
{
    static const char *const any[] = {"1", "n", "u", NULL};
    for (enum rm_call call = 0; call < RM_CALLS; call++)
        if (native_wiki_ask (call, any, 0, native->places))
            native->url[call] = (struct native_url){.scheme = NATIVE_WIKI,
                                                    .text = arena_strdup (native->places, server)};
    return native_socket_check (server, err);
}

int native_calls_init (struct native *native, const struct rm_config *config, bool wiki,
                       struct err *err)
{
    native->places = arena_create (0);
    if (wiki)
        return wiki_places (native, config->options->server, err);
    int rc = env_build (native, config, err);
    for (enum rm_call call = 0; rc == 0 && call < RM_CALLS; call++)
        rc = native_url_of (config->options, call, native->places, &native->url[call], err);
    return rc;
}

void native_calls_stop (struct native *native)
{
    struct native_call *c, *next;
    DL_FOREACH_SAFE (native->calls, c, next)
        call_free (c);
    curl_loop_destroy (native->curl);
    if (native->places)
        arena_destroy (native->places);
}
