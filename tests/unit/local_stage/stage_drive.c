/* stage_drive: the engine of staging with a loop of its own, told what to do by lines on stdin
 * (words between tabs), and telling in lines of JSON on stdout. test_stage.py drives it, and kills
 * it.
 *
 *   set NAME VALUE      before start: a number or path of stage_config; root, host: once for each
 *   start               reload: the same for what is set then
 *   file URL PATH CHECKSUM SIZE     collected for the next begin, check or estimate
 *   begin KEY in|out DIR ACCOUNT USER PRIORITY SINCE
 *   check in|out USER
 *   estimate KEY in|out ACCOUNT USER LIMIT_MS
 *   progress KEY        cancel KEY        forget KEY       priority KEY N     bandwidth HOST in|out
 */
#include <assert.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/stage/stage.h"

enum { WORDS_MAX = 10, FILES_MAX = 1000 };

static struct event_base *base;
static struct stage *stage;
static struct stage_config config;
static const char *root[16], *host[64];
static struct stage_file file[FILES_MAX];
static uint32_t file_count;

static void tell (json_t *object)
{
    char *text = json_dumps (object, JSON_COMPACT);
    assert (text);
    puts (text);
    fflush (stdout);
    free (text);
    json_decref (object);
}

static void tell_rc (const char *what, int rc, const struct err *err)
{
    tell (json_pack ("{s:s, s:i, s:s}", "event", what, "code", rc, "text", rc ? err->text : ""));
}

static void on_done (void *arg, const char *key, const struct stage_result *r)
{
    (void)arg;
    tell (json_pack ("{s:s, s:s, s:i, s:s, s:i, s:i, s:I}", "event", "done", "key", key, "code",
                     r->code, "text", r->text, "file", (int)r->file, "failed", (int)r->failed,
                     "bytes", (json_int_t)r->bytes));
}

static void on_estimate (void *arg, const struct stage_estimate *e)
{
    (void)arg;
    tell (json_pack ("{s:s, s:I, s:I, s:i, s:i, s:s}", "event", "estimate", "time",
                     (json_int_t)e->time, "bytes", (json_int_t)e->bytes, "unknown", (int)e->unknown,
                     "missing", (int)e->missing, "text", e->text));
}

static void set (const char *name, const char *value)
{
    int64_t number = strtoll (value, NULL, 10);
    char *text = strdup (value);
    bool kept = true;
    const struct {
        const char *name;
        const char **text;
        int64_t *wide;
        uint32_t *narrow;
    } rows[] = {
        {"state_dir", &config.state_dir, NULL, NULL},
        {"credentials", &config.credentials, NULL, NULL},
        {"known_hosts", &config.known_hosts, NULL, NULL},
        {"ca", &config.ca, NULL, NULL},
        {"transfers_max", NULL, NULL, &config.transfers_max},
        {"host_max", NULL, NULL, &config.host_max},
        {"file_max", NULL, &config.file_max, NULL},
        {"keep_free", NULL, &config.keep_free, NULL},
        {"s3_part", NULL, &config.s3_part, NULL},
        {"bandwidth", NULL, &config.bandwidth, NULL},
        {"tries_max", NULL, NULL, &config.tries_max},
        {"patience", NULL, &config.patience, NULL},
        {"time_max", NULL, &config.time_max, NULL},
        {"rate_min", NULL, &config.rate_min, NULL},
        {"backoff_first", NULL, &config.backoff_first, NULL},
        {"backoff_max", NULL, &config.backoff_max, NULL},
    };
    config.root = root;
    config.host = host;
    assert (text);
    if (strcmp (name, "root") == 0)
        root[config.root_count++] = text;
    else if (strcmp (name, "host") == 0)
        host[config.host_count++] = text;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp (name, rows[i].name) == 0) {
            if (rows[i].text)
                *rows[i].text = text;
            kept = rows[i].text != NULL;
            if (rows[i].wide)
                *rows[i].wide = number;
            if (rows[i].narrow)
                *rows[i].narrow = (uint32_t)number;
        }
    if (!kept)
        free (text);
}

static void files_clear (void)
{
    while (file_count > 0) {
        file_count--;
        free ((char *)file[file_count].url);
        free ((char *)file[file_count].path);
        free ((char *)file[file_count].checksum);
    }
}

static struct stage_batch batch_of (const char *key, const char *direction, const char *account,
                                    const char *user)
{
    return (struct stage_batch){.key = key,
                                .direction = strcmp (direction, "in") == 0 ? STAGE_IN : STAGE_OUT,
                                .dir = -1,
                                .account = account,
                                .user = *user ? user : NULL,
                                .file = file,
                                .file_count = file_count};
}

static void begin (char **w)
{
    struct err err = {0};
    struct stage_batch batch = batch_of (w[1], w[2], w[4], w[5]);
    batch.dir = open (w[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    batch.priority = strtoll (w[6], NULL, 10);
    batch.since = strtoll (w[7], NULL, 10);
    tell_rc ("begun", stage_begin (stage, &batch, on_done, NULL, &err), &err);
    close (batch.dir);
    files_clear ();
}

static void progress (const char *key)
{
    struct stage_progress p;
    struct err err = {0};
    if (stage_progress (stage, key, &p, &err) != 0) {
        tell_rc ("progress", err.code, &err);
        return;
    }
    json_t *files = json_array ();
    for (uint32_t i = 0; i < p.files; i++) {
        struct stage_file_progress f;
        int rc = stage_file_progress (stage, key, i, &f, &err);
        assert (rc == 0);
        json_array_append_new (files, json_pack ("{s:s, s:s, s:s, s:I, s:I, s:i, s:s}", "state",
                                                 stage_file_state_name (f.state), "url", f.url,
                                                 "path", f.path, "done", (json_int_t)f.bytes_done,
                                                 "total", (json_int_t)f.bytes_total, "tries",
                                                 (int)f.tries, "text", f.text));
    }
    tell (json_pack ("{s:s, s:i, s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:o}", "event", "progress",
                     "code", 0, "over", p.done, "files", (int)p.files, "files_done",
                     (int)p.files_done, "active", (int)p.files_active, "bytes_done",
                     (json_int_t)p.bytes_done, "bytes_total", (json_int_t)p.bytes_total, "rate",
                     (json_int_t)p.rate, "left", (json_int_t)p.left, "file", files));
}

static void run (char **w)
{
    struct err err = {0};
    if (strcmp (w[0], "set") == 0) {
        set (w[1], w[2]);
    } else if (strcmp (w[0], "start") == 0) {
        stage = stage_create (base, NULL, &config, &err);
        tell_rc ("started", stage ? 0 : err.code, &err);
    } else if (strcmp (w[0], "reload") == 0) {
        tell_rc ("reloaded", stage_reconfigure (stage, &config, &err), &err);
    } else if (strcmp (w[0], "file") == 0) {
        assert (file_count < FILES_MAX);
        file[file_count++] = (struct stage_file){strdup (w[1]), strdup (w[2]), strdup (w[3]),
                                                 strtoll (w[4], NULL, 10), false};
    } else if (strcmp (w[0], "begin") == 0) {
        begin (w);
    } else if (strcmp (w[0], "check") == 0) {
        struct stage_batch batch = batch_of ("check", w[1], "", w[2]);
        tell_rc ("checked", stage_check (stage, &batch, &err), &err);
        files_clear ();
    } else if (strcmp (w[0], "estimate") == 0) {
        struct stage_batch batch = batch_of (w[1], w[2], w[3], w[4]);
        int rc = stage_estimate (stage, &batch, strtoll (w[5], NULL, 10) * 1000, on_estimate, NULL,
                                 &err);
        if (rc != 0)
            tell_rc ("estimate", rc, &err);
        files_clear ();
    } else if (strcmp (w[0], "progress") == 0) {
        progress (w[1]);
    } else if (strcmp (w[0], "cancel") == 0) {
        stage_cancel (stage, w[1]);
    } else if (strcmp (w[0], "forget") == 0) {
        stage_forget (stage, w[1]);
    } else if (strcmp (w[0], "priority") == 0) {
        stage_priority_set (stage, w[1], strtoll (w[2], NULL, 10));
    } else if (strcmp (w[0], "bandwidth") == 0) {
        int64_t rate =
            stage_bandwidth (stage, w[1], strcmp (w[2], "in") == 0 ? STAGE_IN : STAGE_OUT);
        tell (json_pack ("{s:s, s:I}", "event", "bandwidth", "rate", (json_int_t)rate));
    } else {
        fprintf (stderr, "stage_drive: '%s' is no command\n", w[0]);
        exit (2);
    }
}

static void on_line (evutil_socket_t fd, short what, void *arg)
{
    struct evbuffer *in = arg;
    char *line;
    (void)what;
    if (evbuffer_read (in, fd, -1) <= 0) {
        event_base_loopbreak (base);
        return;
    }
    while ((line = evbuffer_readln (in, NULL, EVBUFFER_EOL_LF))) {
        char *w[WORDS_MAX] = {0}, *rest = line;
        for (size_t i = 0; i < WORDS_MAX; i++)
            w[i] = rest ? strsep (&rest, "\t") : (char *)"";
        run (w);
        free (line);
    }
}

int main (void)
{
    signal (SIGPIPE, SIG_IGN);
    base = event_base_new ();
    struct evbuffer *in = evbuffer_new ();
    struct event *event = event_new (base, STDIN_FILENO, EV_READ | EV_PERSIST, on_line, in);
    assert (base && in && event);
    event_add (event, NULL);
    event_base_dispatch (base);
    stage_destroy (stage);
    files_clear ();
    event_free (event);
    evbuffer_free (in);
    event_base_free (base);
    return 0;
}
