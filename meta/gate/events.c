/* Server-sent events of jobs: one Watch at the metascheduler for each job and user, whoever many look. An event is the whole
 * state, so one who reads slowly misses none that still holds. A stream ends with its job, its token, or its watch; browsers
 * come again by themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/gate/gate.h"
#include "meta/gate/pbjson.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum { WATCHES_PER_CLIENT = 200, HEARTBEAT_S = 15, CLIENTS_MAX = 32, STREAM_BLOCK = 4096 };

struct event_text {
    unsigned refs;
    size_t len;
    char text[];
};

struct watch;

struct stream {
    struct watch *watch; /* NULL: it is over */
    struct gate *gate;
    struct MHD_Connection *connection;
    struct event_text *event; /* being sent; NULL: none */
    size_t sent;
    const struct event_text *seen; /* the last that was begun, to compare only */
    struct token *token;           /* it ends with that */
    bool suspended, beat, over;
    struct stream *prev, *next;
};

struct watch {
    struct watches *watches;
    char *key; /* user and job */
    struct rpccallout *call;
    uint32_t client;
    struct event_text *latest; /* NULL: nothing has come */
    struct waiting {           /* asks that have no stream yet */
        struct ask *ask;
        struct waiting *next;
    } * waiting;
    struct stream *streams;
    struct watch *prev, *next;
};

struct watches {
    struct gate *gate;
    struct rpcclient
        *client[CLIENTS_MAX]; /* made when needed: a connection carries so many calls */
    uint32_t used[CLIENTS_MAX];
    struct event *ev_beat;
    struct watch *all;
    X509_STORE *store; /* by which the streams' tokens were found good last; a reference */
    unsigned streams;
};

static void event_unref (struct event_text *event)
{
    if (event && --event->refs == 0)
        free (event);
}

static void stream_wake (struct stream *s)
{
    if (s->suspended) {
        s->suspended = false;
        door_resume (s->gate, s->connection);
    }
}

/* Whether what was found good when the stream began still is, by the revocations of now. */
static bool token_holds (const struct gate *gate, const struct token *token, time_us now)
{
    struct principal user;
    struct err err;
    GateDelegation *says =
        gatedeleg_open (gate->id, &token->delegation, tlsid_self (gate->id), now, &user, &err);
    if (says)
        nui__common__v1__gate_delegation__free_unpacked (says, NULL);
    return says != NULL;
}

static void store_keep (struct watches *watches, X509_STORE *store)
{
    X509_STORE_free (watches->store);
    watches->store = store;
    if (store)
        X509_STORE_up_ref (store);
}

static void on_beat (evutil_socket_t fd, short what, void *arg)
{
    struct watches *watches = arg;
    X509_STORE *store = tlsid_store (watches->gate->id);
    bool anew = watches->store != store;
    time_us now = clock_now_us ();
    struct watch *w;
    struct stream *s;
    (void)fd, (void)what;
    if (anew)
        store_keep (watches, store);
    DL_FOREACH (watches->all, w) {
        DL_FOREACH (w->streams, s) {
            s->beat = true;
            s->over |= s->token->says->expires_us <= now ||
                       (anew && !token_holds (watches->gate, s->token, now));
            stream_wake (s);
        }
    }
}

struct watches *watches_create (struct gate *gate)
{
    struct watches *watches = calloc (1, sizeof *watches);
    if (!watches)
        abort ();
    watches->gate = gate;
    store_keep (watches, tlsid_store (gate->id));
    watches->ev_beat = event_new (gate->base, -1, EV_PERSIST, on_beat, watches);
    if (!watches->ev_beat || event_add (watches->ev_beat, &(struct timeval){HEARTBEAT_S, 0}) != 0)
        abort ();
    return watches;
}

unsigned watches_count (const struct watches *watches)
{
    return watches->streams;
}

/* ---- a stream */

static ssize_t stream_read (void *arg, uint64_t position, char *buf, size_t max)
{
    static const char beat[] = ":\n\n";
    struct stream *s = arg;
    (void)position;
    if (!s->event && s->watch && s->watch->latest && s->watch->latest != s->seen) {
        s->event = s->watch->latest;
        s->event->refs++;
        s->seen = s->event;
        s->sent = 0;
    }
    if (s->event) {
        size_t n = s->event->len - s->sent < max ? s->event->len - s->sent : max;
        memcpy (buf, s->event->text + s->sent, n);
        s->sent += n;
        s->beat = false;
        if (s->sent == s->event->len) {
            event_unref (s->event);
            s->event = NULL;
        }
        return (ssize_t)n;
    }
    if (!s->watch || s->over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (s->beat && max >= sizeof beat) {
        s->beat = false;
        memcpy (buf, beat, sizeof beat - 1);
        return sizeof beat - 1;
    }
    s->suspended = true;
    MHD_suspend_connection (s->connection);
    return 0;
}

static void watch_release (struct watch *w)
{
    struct watches *watches = w->watches;
    if (w->streams || w->waiting || w->call)
        return;
    DL_DELETE (watches->all, w);
    event_unref (w->latest);
    free (w->key);
    free (w);
}

static void stream_free (void *arg)
{
    struct stream *s = arg;
    struct watch *w = s->watch;
    if (w) {
        DL_DELETE (w->streams, s);
        w->watches->streams--;
        if (!w->streams && !w->waiting && w->call) {
            w->key[0] = '\0';            /* nobody joins it */
            rpccallout_cancel (w->call); /* released when that is done */
        } else
            watch_release (w);
    }
    event_unref (s->event);
    token_unref (s->token);
    free (s);
}

static void stream_begin (struct watch *w, struct ask *ask)
{
    const char *last = ask_header (ask, "Last-Event-ID");
    struct stream *s = calloc (1, sizeof *s);
    char id[64];
    if (!s)
        abort ();
    s->watch = w;
    s->gate = ask->gate;
    s->connection = ask->connection;
    s->token = ask->token;
    s->token->refs++;
    text_printf (id, sizeof id, "id: %.40s\n", last ? last : "");
    if (last && w->latest && strncmp (w->latest->text, id, strlen (id)) == 0)
        s->seen = w->latest; /* it has that one */
    DL_APPEND (w->streams, s);
    w->watches->streams++;
    struct MHD_Response *r = MHD_create_response_from_callback (MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                                stream_read, s, stream_free);
    if (!r)
        abort ();
    MHD_add_response_header (r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header (r, "Cache-Control", "no-store");
    ask_stream (ask, r);
}

/* ---- a watch */

static void watch_event (struct watch *w, struct event_text *event)
{
    struct stream *s;
    event_unref (w->latest);
    w->latest = event;
    while (w->waiting) {
        struct waiting *first = w->waiting;
        w->waiting = first->next; /* in the ask's arena */
        stream_begin (w, first->ask);
    }
    DL_FOREACH (w->streams, s) {
        stream_wake (s);
    }
}

static void on_message (void *arg, const ProtobufCMessage *message)
{
    struct watch *w = arg;
    const Nui__Meta__V1__JobStatus *job = (const Nui__Meta__V1__JobStatus *)message;
    json_t *json = pbjson_write (message);
    char *data = json_dumps (json, JSON_COMPACT);
    json_decref (json);
    if (!data)
        abort ();
    size_t most = strlen (data) + 100;
    struct event_text *event = malloc (sizeof *event + most);
    if (!event)
        abort ();
    event->refs = 1;
    event->len = (size_t)snprintf (event->text, most, "id: %llu\nevent: state\ndata: %s\n\n",
                                   (unsigned long long)job->change, data);
    free (data);
    watch_event (w, event);
}

static void on_done (void *arg, const struct rpc_result *result)
{
    struct watch *w = arg;
    struct stream *s, *next;
    w->call = NULL;
    w->watches->used[w->client]--;
    while (w->waiting) {
        struct waiting *first = w->waiting;
        w->waiting = first->next;
        if (result->status == RPC_OK)
            ask_problem (first->ask, MHD_HTTP_SERVICE_UNAVAILABLE, "the job's events ended");
        else
            ask_failed (first->ask, result);
    }
    DL_FOREACH_SAFE (w->streams, s, next) { /* they send what they have, and end */
        DL_DELETE (w->streams, s);
        w->watches->streams--;
        if (!s->event && w->latest && w->latest != s->seen) {
            s->event = w->latest;
            s->event->refs++;
            s->sent = 0;
        }
        s->watch = NULL;
        stream_wake (s);
    }
    watch_release (w);
}

static struct rpcclient *client_of (struct watches *watches, uint32_t *index_out, struct err *err)
{
    const struct gate *gate = watches->gate;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
        const struct rpcclient_config config = {
            .base = gate->base,
            .id = gate->id,
            .log = gate->log,
            .target = gate->config->meta[(gate->meta_now + i) % gate->config->meta_count],
            .expect_kind = PRINCIPAL_META,
            .mend_text = true};
        if (watches->used[i] >= WATCHES_PER_CLIENT)
            continue;
        if (!watches->used[i]) { /* nobody needs it: it may be another's now */
            rpcclient_destroy (watches->client[i]);
            watches->client[i] = NULL;
        }
        if (!watches->client[i])
            watches->client[i] = rpcclient_create (&config, err);
        *index_out = i;
        return watches->client[i];
    }
    err_set (err, ERR_LIMIT, "too many jobs are watched here");
    return NULL;
}

static struct watch *watch_begin (struct watches *watches, struct ask *ask, const char *key,
                                  struct err *err)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    struct watch *w = calloc (1, sizeof *w);
    if (!w)
        abort ();
    w->watches = watches;
    w->key = strdup (key);
    DL_APPEND (watches->all, w);
    request.grid_job_id = ask->argument[0];
    const struct rpccallout_config config = {.service = &nui__meta__v1__meta__descriptor,
                                             .method = "Watch",
                                             .request = &request.base,
                                             .timeout =
                                                 ask->token->says->expires_us - clock_now_us (),
                                             .delegation = ask->token->header,
                                             .on_message = on_message,
                                             .done = on_done,
                                             .arg = w};
    struct rpcclient *client = client_of (watches, &w->client, err);
    if (client) {
        watches->used[w->client]++;
        w->call = rpcclient_start (client, &config);
    }
    if (!w->call) {
        watch_release (w);
        return NULL;
    }
    return w;
}

void events_run (struct ask *ask)
{
    struct watches *watches = ask->gate->watches;
    struct err err = {0};
    struct watch *w;
    if (watches->streams >= (unsigned)ask->gate->config->streams) {
        ask_problem (ask, MHD_HTTP_SERVICE_UNAVAILABLE, "more than %lld streams are open",
                     (long long)ask->gate->config->streams);
        return;
    }
    char *key = arena_printf (ask->arena, "%s %s", ask->token->user.name, ask->argument[0]);
    DL_FOREACH (watches->all, w) {
        if (w->call && strcmp (w->key, key) == 0)
            break;
    }
    if (!w)
        w = watch_begin (watches, ask, key, &err);
    if (!w) {
        ask_fail (ask, &err);
    } else if (w->latest) {
        stream_begin (w, ask);
    } else {
        struct waiting *waiting = arena_array (ask->arena, 1, sizeof *waiting);
        *waiting = (struct waiting){ask, w->waiting};
        w->waiting = waiting;
    }
}

void watches_destroy (struct watches *watches)
{
    if (!watches)
        return;
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        rpcclient_destroy (watches->client[i]); /* its calls end, and with them their watches */
    event_free (watches->ev_beat);
    store_keep (watches, NULL);
    free (watches);
}
